/* Items one at a time: create, upsert, read, replace, patch, delete. */
#include "api/sql/itembody.h"
#include "api/sql/triggers.h"
#include "item/foreign.h"

bool sql_wants_minimal(const sql_request *q) {
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

/* Replaces a rid in the path by the item's id. Items cannot be found by number alone, so the request needs the partition key header. */
static err resolve_rid(sql_request *q) {
    if (!q->route.child_by_rid) {
        return OK;
    }
    item_key key;
    slice id;
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    TRY(item_check_key(&q->op, q->container, sql_header_key(q), SLICE_EMPTY, &key));
    err code = item_row_of_number(account_items(q->front->account), &q->op, q->container, &key, rid_number(&q->route.child_rid), &id);
    container_give(q->container);
    q->container = NULL;
    q->route.child = code == OK ? id : q->route.child;
    q->row_known = code == OK;
    return code == E_NOT_FOUND ? OK : code; /* not a rid then: a name that looks like one */
}

/* Replaces the id in the path by the item's row key. In containers of the SQL API that is the same. */
static err find_row(sql_request *q) {
    TRY(q->row_known ? OK : item_row_of_id(&q->op, q->container, q->route.child, &q->route.child));
    q->row_known = true;
    return OK;
}

static void answer_found(sql_request *q, const item_found *found) {
    slice known = sql_get(q, FIELD_IF_NONE_MATCH);
    bool same = known.n && item_etag_matches(known, item_version(&found->head), found->head.ts);
    sql_start(q, same ? 304 : 200);
    sql_add_etag(q, item_version(&found->head), found->head.ts);
    sql_add_range(q, q->mark);
    buf *fields = sql_fields(q);
    buf_add_lit(fields, "x-ms-item-lsn: ");
    buf_add_u64(fields, found->head.lsn);
    buf_add_lit(fields, "\r\nx-ms-cosmos-item-llsn: ");
    buf_add_u64(fields, found->head.lsn);
    buf_add_lit(fields, "\r\n");
    buf *out = sql_start_body(q);
    if (!same) {
        sql_write_item(out, q->container, found->body, &found->head);
    }
}

static void was_read(call *c) {
    sql_request *q = (sql_request *)((char *)c - offsetof(sql_request, read));
    sql_call_done(q, c);
    if (c->code != OK) {
        sql_fail(q, c->code);
        return;
    }
    answer_found(q, &q->read.found);
    call_read_give(&q->read);
    sql_end(q);
}

static err prepare_read(sql_request *q) {
    TRY(resolve_rid(q));
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    sql_call_prepare(q, call_read_init, &q->read, was_read);
    TRY(sql_seen(q, &q->read.call));
    TRY(find_row(q));
    return item_check_key(&q->op, q->container, sql_header_key(q), q->route.child, &q->read.key);
}

void sql_item_read(sql_request *q) {
    err code = prepare_read(q);
    code == OK ? call_read_submit(&q->read) : sql_fail(q, code);
}

/* ---- write ---- */

static err failure_of(sql_request *q) {
    err code = q->commit.call.code != OK ? q->commit.call.code : q->one.code;
    if (code != OK && q->one.op.detail_n) {
        op_fail(&q->op, code, "%s", q->one.op.detail);
    }
    return code;
}

static void written(call *c) {
    sql_request *q = (sql_request *)((char *)c - offsetof(sql_request, commit));
    item_op *item = &q->one;
    err code = failure_of(q);
    sql_call_done(q, c);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_start(q, sql_item_status(item));
    if (item->kind != ITEM_DELETE) {
        sql_add_etag(q, item_version(&item->after), item->after.ts);
    }
    sql_add_range(q, item_op_mark(item));
    sql_add_usage(q, item_op_usage(item));
    buf *out = sql_start_body(q);
    if (item->kind != ITEM_DELETE && !sql_wants_minimal(q)) {
        sql_write_item(out, q->container, item->result, &item->after);
    }
    sql_end(q);
}

static void submit_one(sql_request *q) {
    if (q->triggers) {
        sql_triggers_run(q);
        return;
    }
    sql_call_prepare(q, call_commit_init, &q->commit, written);
    q->commit.ops = &q->one;
    q->commit.n = 1;
    q->commit.atomic = true;
    call_commit_submit(&q->commit);
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
    if (q->one.kind == ITEM_REPLACE) {
        TRY(find_row(q));
        q->one.key.row = q->route.child;
    }
    q->one.foreign_ms = sql_foreign_ms(q);
    TRY(sql_triggers_find(q, q->one.kind));
    if (q->triggers && q->key_given) { /* the body is checked after the pre-trigger */
        return item_check_key(&q->op, q->container, sql_header_key(q), q->one.key.row, &q->one.key);
    }
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
        sql_query(q);
    } else {
        create(q);
    }
}

void sql_item_replace(sql_request *q) {
    err code = resolve_rid(q);
    start_one(q, ITEM_REPLACE);
    code = code != OK ? code : prepare_body(q);
    code == OK ? submit_one(q) : sql_fail(q, code);
}

static err prepare_addressed(sql_request *q) {
    TRY(resolve_rid(q));
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    TRY(q->one.kind == ITEM_EDIT ? sql_triggers_none(q, "Patch") : sql_triggers_find(q, q->one.kind));
    TRY(find_row(q));
    q->one.foreign_ms = sql_foreign_ms(q);
    return item_check_key(&q->op, q->container, sql_header_key(q), q->route.child, &q->one.key);
}

static err read_patch(sql_request *q) {
    slice body;
    json_root root;
    TRY(sql_body_any(q, &root, &body));
    return sql_read_patch(&q->op, q->container, body, &q->one);
}

void sql_item_patch(sql_request *q) {
    start_one(q, ITEM_EDIT);
    err code = prepare_addressed(q);
    code = code != OK ? code : read_patch(q);
    code == OK ? submit_one(q) : sql_fail(q, code);
}

void sql_item_delete(sql_request *q) {
    start_one(q, ITEM_DELETE);
    err code = prepare_addressed(q);
    code == OK ? submit_one(q) : sql_fail(q, code);
}
