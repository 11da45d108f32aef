#include "api/sql/listing.h"
#include "throughput/charge.h"

static void write_database(buf *out, const database *d) {
    char etag[ITEM_ETAG_BYTES + 1];
    item_etag(etag, d->version, (uint32_t)d->ts);
    buf_add_lit(out, "{\"id\":");
    json_add_string(out, slice_str(d->id));
    buf_add_lit(out, ",\"_rid\":\"");
    rid_write(out, &d->rid);
    buf_add_lit(out, "\",\"_self\":\"dbs/");
    rid_write(out, &d->rid);
    buf_add_lit(out, "/\",\"_etag\":");
    json_add_string(out, slice_of(etag, ITEM_ETAG_BYTES));
    buf_add_lit(out, ",\"_colls\":\"colls/\",\"_users\":\"users/\",\"_ts\":");
    buf_add_i64(out, d->ts);
    buf_add_byte(out, '}');
}

static void answer(sql_request *q, unsigned status, const database *d) {
    sql_start(q, status);
    sql_add_etag(q, d->version, (uint32_t)d->ts);
    sql_add_account(q);
    sql_add_database_path(q, d);
    write_database(sql_start_body(q), d);
    sql_end(q);
}

/* ---- create ---- */

static void created(sql_request *q) {
    database *d = ((database_creation *)q->change)->database_out;
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    if (sql_change_code(q) != OK) {
        database_give(d);
        sql_fail(q, sql_change_code(q));
        return;
    }
    q->database = d;
    answer(q, 201, q->database);
}

static err read_create(sql_request *q, database_creation *create) {
    slice body;
    bson_iter_t it;
    TRY(sql_body(q, JSON_OBJECT, &body));
    if (!doc_find_key(body, SLICE_LIT("id"), &it) || !BSON_ITER_HOLDS_UTF8(&it)) {
        return op_fail(&q->op, E_BAD_REQUEST, "The input content is invalid because the required properties - 'id; ' - are missing");
    }
    create->id = doc_text(&it);
    return sql_throughput(q, &create->throughput);
}

void sql_database_create(sql_request *q) {
    database_creation *create = sql_new_change(q, database_creation);
    err code = read_create(q, create);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_await_change(q, created);
    account_create_database(create);
}

/* ---- list and query ---- */

static bool list_one(void *context, const database *d) {
    buf *out = sql_listing_add(context, d->number);
    if (out) {
        write_database(out, d);
    }
    return out;
}

static void list_all(sql_listing *l) {
    account_each_database(l->q->front->account, l->after, list_one, l);
}

void sql_database_list(sql_request *q) {
    sql_listing_run(q, &(rid){0}, "Databases", list_all);
}

/* ---- read, delete ---- */

static err not_found(sql_request *q, err code) {
    return code == E_NOT_FOUND ? op_fail(&q->op, code, "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found") : code;
}

void sql_database_read(sql_request *q) {
    op_charge(&q->op, CHARGE_METADATA_READ);
    err code = not_found(q, sql_find_database(q));
    const database *d = q->database;
    if (code != OK) {
        sql_fail(q, code);
    } else if (item_etag_matches(sql_get(q, FIELD_IF_NONE_MATCH), d->version, (uint32_t)d->ts)) {
        sql_not_modified(q, d->version, (uint32_t)d->ts);
    } else {
        answer(q, 200, d);
    }
}

void sql_database_delete(sql_request *q) {
    database_deletion *remove = sql_new_change(q, database_deletion);
    remove->database = sql_database_name(q);
    sql_await_change(q, sql_deleted);
    account_delete_database(remove);
}
