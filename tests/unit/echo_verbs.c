/* The verbs of the echo front end: one for each call. The heading of each lists its arguments; "at" is an item's key, "of" a partition's: a
 * document with the properties that the key is made of. */
#include "echo_request.h"
#include "query/schema.h"

/* Initialises the call of this kind for the request. */
#define ECHO_ASK(e, kind)                                                                                                                  \
    call_##kind##_init(&(e)->call.kind, &(e)->front->core, &(e)->frame->client, &(e)->op, (e)->container, echo_done);                      \
    (e)->call.any.seen = &(e)->seen;                                                                                                       \
    (e)->call.any.seen_n = 1

/* The key of an item, or, unless `whole`, only of its partition. */
static err echo_key(const echo_request *e, op *o, slice at, bool whole, item_key *key_out) {
    pkey partition;
    slice row = SLICE_EMPTY;
    if (!e->container || !at.n) {
        return op_fail(o, E_BAD_REQUEST, "A container and a key must be named.");
    }
    TRY(pkey_extract(o, at, &e->container->key, &partition));
    TRY(whole ? row_of(o, o->arena, &e->container->row, at, &row) : OK);
    return item_check_key(o, e->container, e->container->key.n ? &partition : NULL, row, key_out);
}

/* A page covers the whole container, or the named partition. */
static err echo_scope(echo_request *e, const item_key **partition_out) {
    slice of = echo_get(e->ask, "of", BSON_TYPE_DOCUMENT);
    *partition_out = of.n ? &e->partition : NULL;
    return of.n           ? echo_key(e, &e->op, of, false, &e->partition)
           : e->container ? OK
                          : op_fail(&e->op, E_BAD_REQUEST, "A container must be named.");
}

static bool echo_add(echo_request *e, slice row) {
    e->rows_n++;
    buf_add_slice(&e->rows, row);
    return buf_ok(&e->rows);
}

/* The sink of calls that let the sink end a page. A change with the same lsn as the one before it must go in the same page. */
static bool echo_add_item(void *context, const item_found *found) {
    echo_request *e = context;
    bool full = e->rows_n && (e->rows_n >= e->rows_max || e->rows.n + found->body.n > LIMIT_RESPONSE_BYTES);
    if (full && !(e->together && found->head.lsn == e->lsn)) {
        return false;
    }
    e->lsn = found->head.lsn;
    return echo_add(e, found->body);
}

static bool echo_add_found(void *context, const query_found *row) {
    return echo_add(context, row->body);
}

static bool echo_add_change(void *context, const follow_change *change) {
    return echo_add(context, change->body);
}

static void echo_tell_bytes(bson_t *answer, slice bytes) {
    bson_append_binary(answer, "next", 4, BSON_SUBTYPE_BINARY, (const uint8_t *)(bytes.n ? bytes.p : ""), (uint32_t)bytes.n);
}

static slice echo_from(const echo_request *e) {
    return echo_get(e->ask, "from", BSON_TYPE_BINARY);
}

/* ---- read: at ---- */

static err echo_read(echo_request *e) {
    ECHO_ASK(e, read);
    TRY(echo_key(e, &e->op, echo_get(e->ask, "at", BSON_TYPE_DOCUMENT), true, &e->call.read.key));
    call_read_submit(&e->call.read);
    return OK;
}

static void echo_tell_read(echo_request *e, bson_t *answer) {
    (void)answer;
    if (e->call.any.code == OK) {
        echo_add(e, e->call.read.found.body);
        call_read_give(&e->call.read);
    }
}

/* ---- write: ops [{kind (item_kind), item, edit (kind), with, if (kind), test, receipt}, …], atomic ---- */

static err echo_read_op(const echo_request *e, slice asked, item_op *o) {
    uint64_t kind = echo_number(asked, "kind", ITEM_READ + 1);
    o->kind = (item_kind)kind;
    o->body = echo_get(asked, "item", BSON_TYPE_DOCUMENT);
    o->edit = (item_edit){.kind = (uint16_t)echo_number(asked, "edit", 0), .argument = echo_get(asked, "with", BSON_TYPE_DOCUMENT)};
    o->conditions = arena_new(e->op.arena, item_condition);
    o->conditions->kind = (uint16_t)echo_number(asked, "if", 0);
    o->conditions->argument = echo_get(asked, "test", BSON_TYPE_DOCUMENT);
    o->conditions_n = o->conditions->kind != 0;
    o->receipt.key = echo_get(asked, "receipt", BSON_TYPE_UTF8);
    TRY(o->receipt.key.n > ITEM_RECEIPT_KEY_BYTES_MAX ? op_fail(&o->op, E_BAD_REQUEST, "The receipt is too long.") : OK);
    op_init(&o->op, e->op.arena, e->op.now_s);
    TRY(kind > ITEM_READ ? op_fail(&o->op, E_BAD_REQUEST, "There is no such kind of write.") : OK);
    TRY(echo_key(e, &o->op, o->body, true, &o->key));
    return o->kind < ITEM_DELETE ? item_check_body(&o->op, e->container, NULL, o) : OK;
}

static err echo_write(echo_request *e) {
    doc_walk walk;
    doc_element each;
    slice atomic = echo_get(e->ask, "atomic", BSON_TYPE_BOOL);
    ECHO_ASK(e, commit);
    call_commit *c = &e->call.commit;
    c->atomic = atomic.n && atomic.p[0];
    c->ops = arena_array(e->op.arena, item_op, LIMIT_BATCH_OPERATIONS);
    for (doc_walk_init(&walk, echo_get(e->ask, "ops", BSON_TYPE_ARRAY)); doc_walk_next(&walk, &each) && c->n < LIMIT_BATCH_OPERATIONS;) {
        item_op *o = &c->ops[c->n++];
        err code = each.type == BSON_TYPE_DOCUMENT ? echo_read_op(e, each.value, o) : E_BAD_REQUEST;
        if (code != OK) {
            return o->op.detail_n ? op_fail(&e->op, code, "%s", o->op.detail) : code;
        }
    }
    if (!c->n) {
        return op_fail(&e->op, E_BAD_REQUEST, "A write has at least one operation.");
    }
    call_commit_submit(c);
    return OK;
}

static void echo_tell_write(echo_request *e, bson_t *answer) {
    bson_t codes;
    const call_commit *c = &e->call.commit;
    BSON_APPEND_ARRAY_BEGIN(answer, "codes", &codes);
    for (size_t i = 0; i < c->n; i++) {
        bson_append_utf8(&codes, "", 0, err_lookup(c->ops[i].code)->name, -1);
        e->op.retry_after_ms = c->ops[i].op.retry_after_ms > e->op.retry_after_ms ? c->ops[i].op.retry_after_ms : e->op.retry_after_ms;
        if (c->call.code == OK && c->ops[i].code == OK && c->ops[i].result.n) {
            echo_add(e, c->ops[i].result);
        }
    }
    bson_append_array_end(answer, &codes);
    call_commit_give(&e->call.commit);
}

/* ---- feed: of, max, from ---- */

static err echo_feed(echo_request *e) {
    const item_key *partition;
    epk min = epk_min(), max = epk_max();
    ECHO_ASK(e, feed);
    TRY(echo_scope(e, &partition));
    partition ? item_cursor_init_partition(&e->cursor, partition) : item_cursor_init(&e->cursor, &min, &max);
    if (echo_from(e).n && !item_cursor_read(echo_from(e), &e->cursor)) {
        return E_BAD_CONTINUATION;
    }
    e->call.feed.cursor = &e->cursor;
    e->call.feed.sink = echo_add_item;
    e->call.feed.context = e;
    call_feed_submit(&e->call.feed);
    return OK;
}

static void echo_tell_feed(echo_request *e, bson_t *answer) {
    buf next = buf_init(BUF_NO_LIMIT);
    if (e->cursor.n) {
        item_cursor_write(&next, &e->cursor);
    }
    echo_tell_bytes(answer, buf_view(&next));
    buf_free(&next);
}

/* ---- rows: of, ge (row key's first values), max, down, from ---- */

static err echo_rows(echo_request *e) {
    const item_key *partition;
    doc_walk walk;
    doc_element each;
    buf prefix = buf_init(BUF_NO_LIMIT);
    slice down = echo_get(e->ask, "down", BSON_TYPE_BOOL);
    ECHO_ASK(e, rows);
    call_rows *c = &e->call.rows;
    TRY(echo_scope(e, &partition));
    c->ask = partition ? item_rows_ask_partition(partition) : c->ask;
    c->ask.backward = down.n && down.p[0];
    doc_walk_init(&walk, echo_get(e->ask, "ge", BSON_TYPE_ARRAY));
    for (size_t i = 0; i < e->container->row.n && doc_walk_next(&walk, &each); i++) {
        row_add(&prefix, &e->container->row, i, &each);
    }
    c->ask.from = (item_row_bound){.given = partition && prefix.n, .prefix = arena_copy(e->op.arena, buf_view(&prefix))};
    c->ask.rows_max = e->rows_max;
    c->cursor.place = echo_from(e);
    c->sink = echo_add_item;
    c->context = e;
    buf_free(&prefix);
    call_rows_submit(c);
    return OK;
}

static void echo_tell_rows(echo_request *e, bson_t *answer) {
    const item_rows_cursor *cursor = &e->call.rows.cursor;
    echo_tell_bytes(answer, cursor->ended ? SLICE_EMPTY : cursor->place);
}

/* ---- find: where, order, of, max, from ---- */

static void echo_find_again(call *c) {
    echo_request *e = (echo_request *)c;
    buf_clear(&e->rows);
    e->rows_n = 0;
}

static err echo_find(echo_request *e) {
    const item_key *partition;
    ECHO_ASK(e, find);
    call_find *c = &e->call.find;
    TRY(echo_scope(e, &partition));
    c->find.scope = partition ? query_scope_partition(partition) : c->find.scope;
    c->find.where = echo_get(e->ask, "where", BSON_TYPE_DOCUMENT);
    c->find.order = echo_get(e->ask, "order", BSON_TYPE_ARRAY);
    c->from = echo_from(e);
    c->rows_max = e->rows_max;
    c->sink = echo_add_found;
    c->context = e;
    c->again = echo_find_again;
    call_find_submit(c);
    return OK;
}

static void echo_tell_find(echo_request *e, bson_t *answer) {
    echo_tell_bytes(answer, e->call.find.next);
}

/* ---- query: text, max. Returns the first page, as JSON ---- */

static err echo_prepare_query(call_query *c) {
    echo_request *e = (echo_request *)c;
    query_schema schema = query_schema_of(e->container->settings);
    epk min = epk_min(), max = epk_max();
    item_cursor_init(&e->cursor, &min, &max);
    c->cursor = &e->cursor;
    return query_prepare(&e->op, e->op.arena, echo_get(e->ask, "text", BSON_TYPE_UTF8), NULL, 0, &schema, &c->query);
}

static err echo_query(echo_request *e) {
    const item_key *partition;
    ECHO_ASK(e, query);
    TRY(echo_scope(e, &partition));
    call_query *c = &e->call.query;
    c->is_first = true;
    c->is_short = e->ask.n < 4096;
    c->prepare = echo_prepare_query;
    c->rows_max = e->rows_max;
    c->out = &e->rows;
    call_query_submit(c);
    return OK;
}

static void echo_tell_query(echo_request *e, bson_t *answer) {
    bson_append_utf8(answer, "json", 4, e->rows.n ? e->rows.p : "", (int)e->rows.n);
    BSON_APPEND_BOOL(answer, "more", e->call.query.page.outcome.more);
    buf_clear(&e->rows);
}

/* ---- changes: after (an lsn), max. For a container with one range ---- */

static err echo_changes(echo_request *e) {
    ECHO_ASK(e, changes);
    TRY(echo_scope(e, &e->call.changes.what.partition));
    e->call.changes.what.min = e->call.changes.what.partition ? e->partition.epk : epk_min();
    e->call.changes.what.after = echo_number(e->ask, "after", 0);
    e->together = true;
    e->call.changes.item = echo_add_item;
    e->call.changes.context = e;
    call_changes_submit(&e->call.changes);
    return OK;
}

static void echo_tell_changes(echo_request *e, bson_t *answer) {
    BSON_APPEND_INT64(answer, "after", (int64_t)e->call.changes.what.after);
    BSON_APPEND_BOOL(answer, "more", e->call.changes.what.more);
}

/* ---- follow: of, max, wait_ms, now, from ---- */

static err echo_follow(echo_request *e) {
    enum { WAIT_MS_MAX = 60000 };
    slice now = echo_get(e->ask, "now", BSON_TYPE_BOOL);
    uint64_t wait_ms = echo_number(e->ask, "wait_ms", 0);
    ECHO_ASK(e, follow);
    call_follow *c = &e->call.follow;
    TRY(echo_scope(e, &c->start.partition));
    c->start.from_now = now.n && now.p[0];
    c->start.position = echo_from(e);
    c->items_max = e->rows_max;
    c->wait_ms = wait_ms < WAIT_MS_MAX ? (unsigned)wait_ms : WAIT_MS_MAX;
    c->sink = echo_add_change;
    c->context = e;
    call_follow_submit(c);
    return OK;
}

static void echo_tell_follow(echo_request *e, bson_t *answer) {
    echo_tell_bytes(answer, e->call.follow.position);
    BSON_APPEND_BOOL(answer, "more", e->call.follow.more);
}

/* ---- usage ---- */

static err echo_usage(echo_request *e) {
    const item_key *partition;
    ECHO_ASK(e, usage);
    TRY(echo_scope(e, &partition));
    call_usage_submit(&e->call.usage);
    return OK;
}

static void echo_tell_usage(echo_request *e, bson_t *answer) {
    BSON_APPEND_INT64(answer, "items", (int64_t)e->call.usage.usage.items);
    BSON_APPEND_INT64(answer, "partitions", (int64_t)e->call.usage.partitions);
    BSON_APPEND_INT64(answer, "ranges", (int64_t)e->call.usage.ranges);
}

/* ---- receipt: key. Whether a write with this receipt has been applied ---- */

static err echo_receipt(echo_request *e) {
    ECHO_ASK(e, receipt);
    e->call.receipt.key = echo_get(e->ask, "key", BSON_TYPE_UTF8);
    call_receipt_submit(&e->call.receipt);
    return OK;
}

static void echo_tell_receipt(echo_request *e, bson_t *answer) {
    BSON_APPEND_BOOL(answer, "created", e->call.receipt.found.created);
}

/* ---- run: of, script, with (a JSON array). Runs a stored procedure ---- */

static err echo_attempt(call_transact *c, script_attempt *a) {
    return script_attempt_run(a, &((echo_request *)c)->run);
}

static err echo_run(echo_request *e) {
    slice of = echo_get(e->ask, "of", BSON_TYPE_DOCUMENT), id = echo_get(e->ask, "script", BSON_TYPE_UTF8);
    ECHO_ASK(e, transact);
    TRY(echo_key(e, &e->op, of, false, &e->call.transact.key));
    TRY(account_find_script(e->front->core.account, e->container, ACCOUNT_PROCEDURE, id, false, &e->script));
    e->run = (script_run){.kind = "sproc",
                          .id = e->script->id,
                          .source = e->script->body,
                          .arguments = echo_get(e->ask, "with", BSON_TYPE_UTF8),
                          .arena = e->op.arena};
    e->call.transact.attempt = echo_attempt;
    call_transact_submit(&e->call.transact);
    return OK;
}

static void echo_tell_run(echo_request *e, bson_t *answer) {
    bson_append_utf8(answer, "json", 4, e->run.body.n ? e->run.body.p : "", (int)e->run.body.n);
    account_script_give(e->script);
}

/* ---- transactions: begin, end; within: op (as in write), or at (an item), or of (a partition), or none of these: commit ---- */

static err echo_begin(echo_request *e) {
    echo_conn *state = frames_state(e->frame->conn);
    if (state->transaction) {
        return op_fail(&e->op, E_BAD_REQUEST, "The connection has a transaction: end it first.");
    }
    state->transaction = call_transaction_begin(&e->front->core, frames_loop(e->frame->conn));
    echo_answer(e, OK, false);
    return OK;
}

static err echo_end(echo_request *e) {
    echo_conn *state = frames_state(e->frame->conn);
    if (!state->transaction || state->busy) {
        return op_fail(&e->op, E_BAD_REQUEST, "The connection has no transaction, or it is busy.");
    }
    call_transaction_end(state->transaction);
    state->transaction = NULL;
    echo_answer(e, OK, false);
    return OK;
}

static err echo_submit_within(echo_request *e, call_within *c, slice write, slice at, slice of) {
    if (write.n) {
        TRY(echo_read_op(e, write, &e->one));
        c->op = &e->one;
        call_within_write(c);
    } else if (at.n) {
        TRY(echo_key(e, &e->op, at, true, &c->key));
        call_within_read(c);
    } else if (of.n) {
        TRY(echo_key(e, &e->op, of, false, &c->key));
        c->rows = item_rows_ask_partition(&c->key);
        c->rows.rows_max = e->rows_max;
        c->cursor.place = echo_from(e);
        c->sink = echo_add_item;
        c->context = e;
        call_within_rows(c);
    } else {
        call_within_commit(c);
    }
    return OK;
}

static err echo_within(echo_request *e) {
    echo_conn *state = frames_state(e->frame->conn);
    if (!state->transaction || state->busy) {
        return op_fail(&e->op, E_BAD_REQUEST, "The connection has no transaction, or it is busy.");
    }
    call_within_init(&e->call.within, state->transaction, &e->front->core, &e->frame->client, &e->op, e->container, echo_done);
    state->busy = true;
    err code = echo_submit_within(e, &e->call.within, echo_get(e->ask, "op", BSON_TYPE_DOCUMENT),
                                  echo_get(e->ask, "at", BSON_TYPE_DOCUMENT), echo_get(e->ask, "of", BSON_TYPE_DOCUMENT));
    if (code != OK) { /* nothing was submitted */
        state->busy = false;
    }
    return code;
}

static void echo_tell_within(echo_request *e, bson_t *answer) {
    call_within *c = &e->call.within;
    (void)answer;
    ((echo_conn *)frames_state(e->frame->conn))->busy = false;
    if (c->call.code == OK && (c->found.body.n || c->op)) {
        echo_add(e, c->op ? c->op->result : c->found.body);
        call_within_give(c);
    }
}

/* ---- attachments: at; attach: at, item (with its id) ---- */

static err echo_attachments(echo_request *e) {
    ECHO_ASK(e, attachments);
    TRY(echo_key(e, &e->op, echo_get(e->ask, "at", BSON_TYPE_DOCUMENT), true, &e->call.attachments.item));
    call_attachments_submit(&e->call.attachments);
    return OK;
}

static void echo_tell_attachments(echo_request *e, bson_t *answer) {
    call_attachments *c = &e->call.attachments;
    attachment each;
    (void)answer;
    if (c->call.code == OK) {
        while (attach_next(&c->list, &each)) {
            echo_add(e, each.body);
        }
        call_attachments_charge(c, e->rows.n);
        call_attachments_give(c);
    }
}

static err echo_attach(echo_request *e) {
    ECHO_ASK(e, attach);
    attach_write *w = &e->call.attach.write;
    w->kind = ATTACH_UPSERT;
    w->body = echo_get(e->ask, "item", BSON_TYPE_DOCUMENT);
    w->id = echo_get(w->body, "id", BSON_TYPE_UTF8);
    TRY(row_check_id(&e->op, w->id));
    TRY(echo_key(e, &e->op, echo_get(e->ask, "at", BSON_TYPE_DOCUMENT), true, &w->item));
    call_attach_submit(&e->call.attach);
    return OK;
}

static void echo_tell_attach(echo_request *e, bson_t *answer) {
    BSON_APPEND_BOOL(answer, "created", e->call.attach.write.created);
    call_attach_give(&e->call.attach);
}

/* ---- make: a container from settings and rows (container_creation) ---- */

static err echo_make(echo_request *e) {
    container_creation *c = &e->creation;
    call_init(&e->call.any, &e->front->core, &e->frame->client, &e->op, NULL, echo_done);
    c->database.text = echo_get(e->ask, "db", BSON_TYPE_UTF8);
    c->settings = echo_get(e->ask, "settings", BSON_TYPE_DOCUMENT);
    c->rows = echo_get(e->ask, "rows", BSON_TYPE_DOCUMENT);
    c->throughput = (throughput_setting){.kind = THROUGHPUT_MANUAL, .value = (uint32_t)echo_number(e->ask, "throughput", 400)};
    c->api = SLICE_LIT("echo");
    call_await_change(&e->call.any, &c->base);
    account_create_container(c);
    return OK;
}

static void echo_tell_make(echo_request *e, bson_t *answer) {
    (void)answer;
    e->container = e->creation.container_out;
}

/* ---- work: with. A worker sends it back ---- */

static void echo_long_work(call *c) {
    echo_request *e = (echo_request *)c;
    echo_add(e, echo_get(e->ask, "with", BSON_TYPE_DOCUMENT));
}

static err echo_work(echo_request *e) {
    call_init(&e->call.any, &e->front->core, &e->frame->client, &e->op, e->container, echo_done);
    call_work(&e->call.any, NET_SHORT, echo_long_work);
    return OK;
}

/* ---- table of verbs ---- */

const echo_verb *echo_find_verb(slice name) {
    static const echo_verb verbs[] = {
        {"auth", 0, echo_authenticate, NULL},
        {"read", ACCESS_READ, echo_read, echo_tell_read},
        {"write", ACCESS_WRITE, echo_write, echo_tell_write},
        {"feed", ACCESS_READ, echo_feed, echo_tell_feed},
        {"rows", ACCESS_READ, echo_rows, echo_tell_rows},
        {"find", ACCESS_READ, echo_find, echo_tell_find},
        {"query", ACCESS_READ, echo_query, echo_tell_query},
        {"changes", ACCESS_READ, echo_changes, echo_tell_changes},
        {"follow", ACCESS_READ, echo_follow, echo_tell_follow},
        {"usage", ACCESS_READ, echo_usage, echo_tell_usage},
        {"receipt", ACCESS_READ, echo_receipt, echo_tell_receipt},
        {"run", ACCESS_RUN, echo_run, echo_tell_run},
        {"begin", ACCESS_WRITE, echo_begin, NULL},
        {"within", ACCESS_WRITE, echo_within, echo_tell_within},
        {"end", ACCESS_WRITE, echo_end, NULL},
        {"attachments", ACCESS_READ, echo_attachments, echo_tell_attachments},
        {"attach", ACCESS_WRITE, echo_attach, echo_tell_attach},
        {"make", ACCESS_CREATE, echo_make, echo_tell_make},
        {"work", ACCESS_READ, echo_work, NULL},
    };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (slice_eq(name, slice_str(verbs[i].name))) {
            return &verbs[i];
        }
    }
    return NULL;
}
