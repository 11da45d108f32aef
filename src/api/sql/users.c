/* Users of a database. */
#include "api/sql/listing.h"
#include "throughput/charge.h"

static void write_user(buf *out, const user *u) {
    char etag[ITEM_ETAG_BYTES + 1];
    rid database = rid_database_of(&u->rid);
    item_etag(etag, u->version, (uint32_t)u->ts);
    buf_add_lit(out, "{\"id\":");
    json_add_string(out, slice_str(u->id));
    buf_add_lit(out, ",\"_rid\":\"");
    rid_write(out, &u->rid);
    buf_add_lit(out, "\",\"_self\":\"dbs/");
    rid_write(out, &database);
    buf_add_lit(out, "/users/");
    rid_write(out, &u->rid);
    buf_add_lit(out, "/\",\"_etag\":");
    json_add_string(out, slice_of(etag, ITEM_ETAG_BYTES));
    buf_add_lit(out, ",\"_permissions\":\"permissions/\",\"_ts\":");
    buf_add_i64(out, u->ts);
    buf_add_byte(out, '}');
}

static void answer(sql_request *q, unsigned status) {
    sql_start(q, status);
    sql_add_etag(q, q->user->version, (uint32_t)q->user->ts);
    sql_add_account(q);
    write_user(sql_start_body(q), q->user);
    sql_end(q);
}

/* ---- create, replace, delete ---- */

static err read_id(sql_request *q, slice *id_out) {
    slice body;
    bson_iter_t it;
    TRY(sql_body(q, JSON_OBJECT, &body));
    if (!doc_find_key(body, SLICE_LIT("id"), &it) || !BSON_ITER_HOLDS_UTF8(&it)) {
        return op_fail(&q->op, E_BAD_REQUEST, "The input content is invalid because the required properties - 'id; ' - are missing");
    }
    *id_out = doc_text(&it);
    return OK;
}

static void made(sql_request *q, user *u, bool created) {
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    q->user = u;
    sql_change_code(q) == OK ? answer(q, created ? 201 : 200) : sql_fail(q, sql_change_code(q));
}

static void created(sql_request *q) {
    const user_creation *create = (user_creation *)q->change;
    made(q, create->user_out, create->created);
}

void sql_user_create(sql_request *q) {
    user_creation *create = sql_new_change(q, user_creation);
    create->database = sql_database_name(q);
    create->upsert = sql_flag(q, FIELD_IS_UPSERT);
    err code = read_id(q, &create->id);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_await_change(q, created);
    account_create_user(create);
}

static void replaced(sql_request *q) {
    made(q, ((user_replacement *)q->change)->user_out, false);
}

void sql_user_replace(sql_request *q) {
    user_replacement *replace = sql_new_change(q, user_replacement);
    replace->database = sql_database_name(q);
    replace->user = sql_child_name(q);
    err code = read_id(q, &replace->id);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_await_change(q, replaced);
    account_replace_user(replace);
}

void sql_user_delete(sql_request *q) {
    user_deletion *remove = sql_new_change(q, user_deletion);
    remove->database = sql_database_name(q);
    remove->user = sql_child_name(q);
    sql_await_change(q, sql_deleted);
    account_delete_user(remove);
}

/* ---- read, list ---- */

void sql_user_read(sql_request *q) {
    const sql_route *r = &q->route;
    op_charge(&q->op, CHARGE_METADATA_READ);
    err code = account_user(q->front->account, r->database, r->database_by_rid, r->child, r->child_by_rid, &q->user);
    const user *u = q->user;
    if (code != OK) {
        op_fail(&q->op, code, "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found");
        sql_fail(q, code);
    } else if (item_etag_matches(sql_get(q, FIELD_IF_NONE_MATCH), u->version, (uint32_t)u->ts)) {
        sql_not_modified(q, u->version, (uint32_t)u->ts);
    } else {
        answer(q, 200);
    }
}

static bool list_one(void *context, const user *u) {
    buf *out = sql_listing_add(context, u->number);
    if (out) {
        write_user(out, u);
    }
    return out;
}

static void list_all(sql_listing *l) {
    account_each_user(l->q->front->account, l->q->database, l->after, list_one, l);
}

void sql_user_list(sql_request *q) {
    err code = sql_find_database(q);
    if (code != OK) {
        sql_fail(q, code == E_NOT_FOUND ? E_OWNER_NOT_FOUND : code);
        return;
    }
    sql_listing_run(q, &q->database->rid, "Users", list_all);
}
