/* Client encryption keys of a database. */
#include "account/encryption.h"

#include "api/sql/listing.h"
#include "throughput/charge.h"

static void write_key(buf *out, const encryption_key *k) {
    char etag[ITEM_ETAG_BYTES + 1];
    rid database = rid_database_of(&k->rid);
    item_etag(etag, k->version, (uint32_t)k->ts);
    json_from_bson_open(out, k->settings);
    buf_add_lit(out, ",\"_rid\":\"");
    rid_write(out, &k->rid);
    buf_add_lit(out, "\",\"_self\":\"dbs/");
    rid_write(out, &database);
    buf_add_lit(out, "/clientencryptionkeys/");
    rid_write(out, &k->rid);
    buf_add_lit(out, "/\",\"_etag\":");
    json_add_string(out, slice_of(etag, ITEM_ETAG_BYTES));
    buf_add_lit(out, ",\"_ts\":");
    buf_add_i64(out, k->ts);
    buf_add_byte(out, '}');
}

static void answer(sql_request *q, unsigned status, const encryption_key *k) {
    sql_start(q, status);
    sql_add_etag(q, k->version, (uint32_t)k->ts);
    sql_add_account(q);
    write_key(sql_start_body(q), k);
    sql_end(q);
}

/* ---- create, replace ---- */

static void made(sql_request *q, encryption_key *k, unsigned status) {
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    sql_change_code(q) == OK ? answer(q, status, k) : sql_fail(q, sql_change_code(q));
    encryption_key_give(k);
}

static void created(sql_request *q) {
    made(q, ((encryption_key_creation *)q->change)->key_out, 201);
}

void sql_encryption_key_create(sql_request *q) {
    encryption_key_creation *create = sql_new_change(q, encryption_key_creation);
    create->database = sql_database_name(q);
    err code = sql_body(q, JSON_OBJECT, &create->settings);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_await_change(q, created);
    account_create_encryption_key(create);
}

static void replaced(sql_request *q) {
    made(q, ((encryption_key_replacement *)q->change)->key_out, 200);
}

void sql_encryption_key_replace(sql_request *q) {
    encryption_key_replacement *replace = sql_new_change(q, encryption_key_replacement);
    replace->database = sql_database_name(q);
    replace->key = sql_child_name(q);
    err code = sql_body(q, JSON_OBJECT, &replace->settings);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_await_change(q, replaced);
    account_replace_encryption_key(replace);
}

/* ---- read, list ---- */

void sql_encryption_key_read(sql_request *q) {
    const sql_route *r = &q->route;
    encryption_key *k;
    op_charge(&q->op, CHARGE_METADATA_READ);
    err code = account_encryption_key(q->front->account, r->database, r->database_by_rid, r->child, r->child_by_rid, &k);
    if (code != OK) {
        op_fail(&q->op, code, "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found");
        sql_fail(q, code);
    } else if (item_etag_matches(sql_get(q, FIELD_IF_NONE_MATCH), k->version, (uint32_t)k->ts)) {
        sql_not_modified(q, k->version, (uint32_t)k->ts);
    } else {
        answer(q, 200, k);
    }
    encryption_key_give(k);
}

static bool list_one(void *context, const encryption_key *k) {
    buf *out = sql_listing_add(context, k->number);
    if (out) {
        write_key(out, k);
    }
    return out;
}

static void list_all(sql_listing *l) {
    account_each_encryption_key(l->q->front->account, l->q->database, l->after, list_one, l);
}

void sql_encryption_key_list(sql_request *q) {
    err code = sql_find_database(q);
    if (code != OK) {
        sql_fail(q, code == E_NOT_FOUND ? E_OWNER_NOT_FOUND : code);
        return;
    }
    sql_listing_run(q, &q->database->rid, "ClientEncryptionKeys", list_all);
}
