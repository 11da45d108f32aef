/* Stored procedures, triggers and user-defined functions as resources. They differ only in the word of their path. */
#include "account/scripts.h"

#include "api/sql/listing.h"
#include "throughput/charge.h"

static account_script_kind kind_of(const sql_request *q) {
    switch (q->route.kind) {
    case SQL_SPROCS:
    case SQL_SPROC:
        return ACCOUNT_PROCEDURE;
    case SQL_TRIGGERS:
    case SQL_TRIGGER:
        return ACCOUNT_TRIGGER;
    default:
        return ACCOUNT_FUNCTION;
    }
}

static void write_script(buf *out, const account_script *s) {
    static const char *const words[ACCOUNT_SCRIPT_KINDS] = {"udfs", "triggers", "sprocs"};
    char etag[ITEM_ETAG_BYTES + 1];
    rid container = rid_container_of(&s->rid), database = rid_database_of(&s->rid);
    item_etag(etag, s->version, (uint32_t)s->ts);
    json_from_bson_open(out, s->settings);
    buf_add_lit(out, ",\"_rid\":\"");
    rid_write(out, &s->rid);
    buf_add_lit(out, "\",\"_ts\":");
    buf_add_i64(out, s->ts);
    buf_add_lit(out, ",\"_self\":\"dbs/");
    rid_write(out, &database);
    buf_add_lit(out, "/colls/");
    rid_write(out, &container);
    buf_addf(out, "/%s/", words[s->kind]);
    rid_write(out, &s->rid);
    buf_add_lit(out, "/\",\"_etag\":");
    json_add_string(out, slice_of(etag, ITEM_ETAG_BYTES));
    buf_add_byte(out, '}');
}

static void answer(sql_request *q, unsigned status, const account_script *s) {
    sql_start(q, status);
    sql_add_etag(q, s->version, (uint32_t)s->ts);
    sql_add_session_token(q);
    write_script(sql_start_body(q), s);
    sql_end(q);
}

/* ---- create, replace, delete ---- */

static void answer_made(sql_request *q, account_script *s, bool created) {
    err code = sql_change_code(q);
    op_charge(&q->op, code != OK ? CHARGE_FAILED : created ? charge_create(s->settings.n, 0) : charge_replace(s->settings.n, 0));
    code == OK ? answer(q, created ? 201 : 200, s) : sql_fail(q, code);
    account_script_give(s);
}

static void created(sql_request *q) {
    const script_creation *create = (script_creation *)q->change;
    answer_made(q, create->script_out, create->created);
}

static err begin_create(sql_request *q, script_creation *create) {
    TRY(sql_find_container(q));
    create->database = sql_database_name(q);
    create->container = sql_container_name(q);
    create->kind = kind_of(q);
    create->upsert = sql_flag(q, FIELD_IS_UPSERT);
    return sql_body(q, JSON_OBJECT, &create->settings);
}

void sql_script_create(sql_request *q) {
    script_creation *create = sql_new_change(q, script_creation);
    err code = begin_create(q, create);
    script_pool_warm(q->front->core.scripts); /* start a script process early: the script will soon run */
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_await_change(q, created);
    account_create_script(create);
}

static void replaced(sql_request *q) {
    answer_made(q, ((script_replacement *)q->change)->script_out, false);
}

static err begin_replace(sql_request *q, script_replacement *replace) {
    TRY(sql_find_container(q));
    replace->database = sql_database_name(q);
    replace->container = sql_container_name(q);
    replace->script = sql_child_name(q);
    replace->kind = kind_of(q);
    return sql_body(q, JSON_OBJECT, &replace->settings);
}

void sql_script_replace(sql_request *q) {
    script_replacement *replace = sql_new_change(q, script_replacement);
    err code = begin_replace(q, replace);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_await_change(q, replaced);
    account_replace_script(replace);
}

static void deleted(sql_request *q) {
    account_script *s = ((script_deletion *)q->change)->script_out;
    err code = sql_change_code(q);
    op_charge(&q->op, code != OK ? CHARGE_FAILED : charge_delete(s->settings.n, 0));
    account_script_give(s);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_start(q, 204);
    sql_add_session_token(q);
    sql_start_body(q);
    sql_end(q);
}

void sql_script_delete(sql_request *q) {
    script_deletion *remove = sql_new_change(q, script_deletion);
    err code = sql_find_container(q);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    remove->database = sql_database_name(q);
    remove->container = sql_container_name(q);
    remove->script = sql_child_name(q);
    remove->kind = kind_of(q);
    sql_await_change(q, deleted);
    account_delete_script(remove);
}

/* ---- read, list ---- */

static err find_script(sql_request *q, account_script **script_out) {
    *script_out = NULL;
    TRY(sql_find_container(q));
    return account_find_script(q->front->account, q->container, kind_of(q), q->route.child, q->route.child_by_rid, script_out);
}

void sql_script_read(sql_request *q) {
    account_script *s;
    err code = find_script(q, &s);
    op_charge(&q->op, code == OK ? charge_read(s->settings.n) : CHARGE_FAILED);
    if (code != OK) {
        sql_fail(q, code);
    } else if (item_etag_matches(sql_get(q, FIELD_IF_NONE_MATCH), s->version, (uint32_t)s->ts)) {
        sql_not_modified(q, s->version, (uint32_t)s->ts);
    } else {
        answer(q, 200, s);
    }
    account_script_give(s);
}

static bool list_one(void *context, const account_script *s) {
    buf *out = sql_listing_add(context, s->number);
    if (out) {
        write_script(out, s);
    }
    return out;
}

static void list_all(sql_listing *l) {
    account_each_script(l->q->front->account, l->q->container, kind_of(l->q), l->after, list_one, l);
}

void sql_script_list(sql_request *q) {
    static const char *const names[ACCOUNT_SCRIPT_KINDS] = {"UserDefinedFunctions", "Triggers", "StoredProcedures"};
    err code = sql_find_container(q);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    rid r = sql_container_rid(q->container);
    sql_listing_run(q, &r, names[kind_of(q)], list_all);
}
