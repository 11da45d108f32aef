/* Items one at a time: create, upsert, read, replace, patch, delete. */
#include "api/sql/itembody.h"
#include "api/sql/sql_int.h"
#include "throughput/charge.h"

static bool wants_minimal(const sql_request *q) {
    return slice_eq_nocase(sql_get(q, FIELD_PREFER), SLICE_LIT("return=minimal"));
}

static err read_directive(sql_request *q, item_op *item) {
    slice word = sql_get(q, FIELD_INDEXING_DIRECTIVE);
    item->not_indexed = slice_eq_nocase(word, SLICE_LIT("Exclude"));
    if (word.n && !item->not_indexed && !slice_eq_nocase(word, SLICE_LIT("Include")) && !slice_eq_nocase(word, SLICE_LIT("Default"))) {
        return op_fail(&q->op, E_BAD_REQUEST, "x-ms-indexing-directive must be Default, Include or Exclude.");
    }
    return OK;
}

/* ---- read ---- */

static bool reads_twice(const sql_request *q) {
    sql_consistency level = q->front->consistency;
    sql_consistency_parse(sql_get(q, FIELD_CONSISTENCY), &level);
    return level <= SQL_BOUNDED_STALENESS;
}

static err find_item(sql_request *q, item_found *found) {
    item_key key;
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    TRY(item_check_key(&q->op, q->container, sql_header_key(q), q->route.child, &key));
    q->range = container_route(q->container, &key.epk);
    TRY(sql_check_session(q, q->range));
    err code = item_read(account_items(q->front->account), &q->op, q->container, &key, found);
    if (reads_twice(q)) {
        q->op.charge_ru *= CHARGE_STRONG_READ_FACTOR;
    }
    return code;
}

/* An item addressed by rid has no partition key in its address; its number does not lead to it, so the key header must be there and the
 * id is looked up from the item feed of that key. */
typedef struct by_rid {
    uint64_t number;
    arena *arena;
    slice id;
} by_rid;

static bool match_number(void *context, const item_found *found) {
    by_rid *wanted = context;
    bson_iter_t it;
    if (found->head.number == wanted->number && doc_find_key(found->body, SLICE_LIT("id"), &it)) {
        wanted->id = arena_copy(wanted->arena, doc_text(&it));
    }
    return false;
}

static err resolve_rid(sql_request *q) {
    if (!q->route.child_by_rid) {
        return OK;
    }
    item_key key;
    by_rid wanted = {.number = rid_number(&q->route.child_rid), .arena = q->http->arena};
    op unused;
    bool more;
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    TRY(item_check_key(&q->op, q->container, sql_header_key(q), q->route.child, &key));
    op_init(&unused, q->http->arena, q->op.now_s);
    item_scope scope = {.range = container_route(q->container, &key.epk), .partition = &key};
    uint64_t after = wanted.number - 1;
    TRY(item_feed(account_items(q->front->account), &unused, q->container, &scope, &after, 1, match_number, &wanted, &more));
    container_give(q->container);
    q->container = NULL;
    if (wanted.id.n) {
        q->route.child = wanted.id;
    }
    return OK;
}

void sql_item_read(sql_request *q) {
    item_found found = {0};
    err code = resolve_rid(q);
    code = code != OK ? code : find_item(q, &found);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    slice known = sql_get(q, FIELD_IF_NONE_MATCH);
    bool same = known.n && item_etag_matches(known, found.head.lsn, found.head.ts);
    sql_start(q, same ? 304 : 200);
    sql_add_etag(q, found.head.lsn, found.head.ts);
    sql_add_range(q, found.range, atomic_load_explicit(&found.range->lsn, memory_order_acquire));
    buf *fields = sql_fields(q);
    buf_add_lit(fields, "x-ms-item-lsn: ");
    buf_add_u64(fields, found.head.lsn);
    buf_add_lit(fields, "\r\nx-ms-cosmos-item-llsn: ");
    buf_add_u64(fields, found.head.lsn);
    buf_add_lit(fields, "\r\n");
    buf *out = sql_start_body(q);
    if (!same) {
        sql_write_item(out, q->container, found.body, &found.head);
    }
    item_give(&found);
    sql_end(q);
}

/* ---- write ---- */

static err failure_of(sql_request *q) {
    err code = q->commit.base.code != OK ? q->commit.base.code : q->one.code;
    if (code != OK && q->one.op.detail_n) {
        op_fail(&q->op, code, "%s", q->one.op.detail);
    }
    return code;
}

static void written(sql_request *q) {
    item_op *item = &q->one;
    err code = failure_of(q);
    op_charge(&q->op, code == OK ? item_commit_charge(&q->commit) : CHARGE_FAILED);
    if (code != OK) {
        item_commit_give(&q->commit);
        sql_fail(q, code);
        return;
    }
    sql_start(q, sql_item_status(item));
    if (item->kind != ITEM_DELETE) {
        sql_add_etag(q, item->after.lsn, item->after.ts);
    }
    sql_add_range(q, q->range, item->after.lsn);
    sql_add_usage(q, q->range, 1);
    buf *out = sql_start_body(q);
    if (item->kind != ITEM_DELETE && !wants_minimal(q)) {
        sql_write_item(out, q->container, item->result, &item->after);
    }
    item_commit_give(&q->commit);
    sql_end(q);
}

static void submit_one(sql_request *q) {
    q->range = container_route(q->container, &q->one.key.epk);
    q->commit = (item_commit){.ops = &q->one, .n = 1, .atomic = true, .range_id = -1};
    sql_submit_items(q, written);
}

static void start_one(sql_request *q, item_kind kind) {
    q->one = (item_op){.kind = kind, .if_match = sql_get(q, FIELD_IF_MATCH)};
    op_init(&q->one.op, q->http->arena, q->op.now_s);
}

static err prepare_body(sql_request *q) {
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    TRY(read_directive(q, &q->one));
    TRY(sql_body(q, JSON_OBJECT, &q->one.body));
    return item_check_body(&q->op, q->container, sql_header_key(q), &q->one);
}

static void create(sql_request *q) {
    start_one(q, sql_flag(q, FIELD_IS_UPSERT) ? ITEM_UPSERT : ITEM_CREATE);
    err code = prepare_body(q);
    code == OK ? submit_one(q) : sql_fail(q, code);
}

void sql_item_post(sql_request *q) {
    if (sql_flag(q, FIELD_IS_BATCH)) {
        sql_item_batch(q);
    } else if (sql_is_query(q)) {
        sql_item_query(q);
    } else {
        create(q);
    }
}

void sql_item_replace(sql_request *q) {
    err code = resolve_rid(q);
    start_one(q, ITEM_REPLACE);
    q->one.key.id = q->route.child;
    code = code != OK ? code : prepare_body(q);
    code == OK ? submit_one(q) : sql_fail(q, code);
}

static err prepare_addressed(sql_request *q) {
    TRY(resolve_rid(q));
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    return item_check_key(&q->op, q->container, sql_header_key(q), q->route.child, &q->one.key);
}

static err read_patch(sql_request *q) {
    slice body;
    json_root root;
    TRY(sql_body_any(q, &root, &body));
    return sql_read_patch(&q->op, body, &q->one.patch);
}

void sql_item_patch(sql_request *q) {
    start_one(q, ITEM_PATCH);
    err code = prepare_addressed(q);
    code = code != OK ? code : read_patch(q);
    code == OK ? submit_one(q) : sql_fail(q, code);
}

void sql_item_delete(sql_request *q) {
    start_one(q, ITEM_DELETE);
    err code = prepare_addressed(q);
    code == OK ? submit_one(q) : sql_fail(q, code);
}
