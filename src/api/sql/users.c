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

static void begin(sql_request *q) {
    user_asked *asked = arena_new(q->http->arena, user_asked);
    sql_change_init(q);
    asked->user = q->route.child;
    asked->user_by_rid = q->route.child_by_rid;
    q->change.user = asked;
    q->change.upsert = sql_flag(q, FIELD_IS_UPSERT);
}

static err read_id(sql_request *q) {
    slice body;
    bson_iter_t it;
    TRY(sql_body(q, JSON_OBJECT, &body));
    if (!doc_find_key(body, SLICE_LIT("id"), &it) || !BSON_ITER_HOLDS_UTF8(&it)) {
        return op_fail(&q->op, E_BAD_REQUEST, "The input content is invalid because the required properties - 'id; ' - are missing");
    }
    q->change.user->id = doc_text(&it);
    return OK;
}

static void made(sql_request *q) {
    const user_asked *asked = q->change.user;
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    q->user = asked->user_out;
    q->change.base.code == OK ? answer(q, asked->created ? 201 : 200) : sql_fail(q, q->change.base.code);
}

static void change(sql_request *q, void (*submit)(account_change *)) {
    begin(q);
    err code = read_id(q);
    code == OK ? sql_submit_change(q, submit, made) : sql_fail(q, code);
}

void sql_user_create(sql_request *q) {
    change(q, account_create_user);
}

void sql_user_replace(sql_request *q) {
    change(q, account_replace_user);
}

void sql_user_delete(sql_request *q) {
    begin(q);
    sql_submit_change(q, account_delete_user, sql_deleted);
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
