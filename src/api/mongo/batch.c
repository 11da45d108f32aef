#include "api/mongo/batch.h"

#include "api/mongo/change_event.h"
#include "mql/match_tree.h"

enum { PROJECT_STEPS = 10000000 };

static mongo_batch *batch_of(const mongo_request *q) {
    return q->batch;
}

static void clean(mongo_request *q) {
    mongo_batch *b = batch_of(q);
    buf_free(&b->rows);
    arena_free(&b->row);
    if (b->cursor && b->cursor->id) {
        mongo_cursors_drop(q->front->cursors, b->cursor);
    } else if (b->cursor) {
        mongo_cursor_free(b->cursor);
    }
    if (b->clean) {
        b->clean(q);
    }
}

int64_t mongo_batch_size(slice cursor) {
    int64_t size;
    return mql_as_integer(mongo_member(cursor, "batchSize"), &size) ? size : -1;
}

static bool has_expressions(slice projection) {
    doc_walk w;
    doc_element e;
    bool plain = true;
    for (doc_walk_init(&w, projection); plain && doc_walk_next(&w, &e);) {
        plain = e.type == BSON_TYPE_BOOL || mql_is_number(mql_of(&e));
    }
    return !plain;
}

err mongo_batch_begin(mongo_request *q, mongo_cursor *c, int64_t batch_size, mongo_batch **batch_out) {
    mongo_batch *b = *batch_out = q->batch = arena_new(q->frame->arena, mongo_batch);
    const mongo_find *f = &c->find;
    *b = (mongo_batch){.cursor = c,
                       .is_first = c->id == 0,
                       .rows_max = batch_size >= 0 ? (size_t)batch_size
                                   : c->id         ? SIZE_MAX
                                                   : MONGO_BATCH_FIRST,
                       .steps = PROJECT_STEPS,
                       .rows = buf_init_counted(BUF_NO_LIMIT, q->op.budget),
                       .row = arena_init_counted(q->op.budget),
                       .clean = q->clean};
    q->clean = clean;
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, f->variables, f->now_ms, &b->scope));
    TRY(mongo_scope_collate(&q->op, c->container, f->collation, &b->scope));
    const mql_match *match = NULL;
    if (f->projection.n <= 5) {
        return OK;
    }
    b->computes = has_expressions(f->projection);
    if (f->filter.n) {
        TRY(mql_match_parse(&b->scope.scope, f->filter, &match));
        b->text = mql_match_conjunct(match, MQL_TEXT) ? match : NULL;
    }
    return mql_project_parse(&b->scope.scope, f->projection, MQL_PROJECT_FIND, match, &b->project);
}

err mongo_batch_show(mongo_request *q, mongo_batch *b, slice document, slice *shown_out) {
    *shown_out = document;
    if (!b->project) {
        return OK;
    }
    mql_run r = mongo_run_of(&q->op, &b->row, &b->scope, b->steps);
    r.root = mql_document(document);
    bool matches;
    TRY(b->text ? mql_matches(&r, b->text, &matches, NULL) : OK); /* for the score */
    return mql_project_apply(&r, b->project, shown_out);
}

static bool is_full(const mongo_batch *b, size_t more) {
    return b->rows_n >= b->rows_max || (b->rows_n && b->rows.n + more > MONGO_BATCH_BYTES);
}

bool mongo_batch_add(mongo_request *q, mongo_batch *b, slice document) {
    if (is_full(b, document.n)) {
        return false;
    }
    b->failed = mongo_batch_show(q, b, document, &document);
    if (b->failed == OK) {
        buf_add_byte(&b->rows, BSON_TYPE_DOCUMENT);
        buf_add_u64(&b->rows, b->rows_n++);
        buf_add_byte(&b->rows, 0);
        buf_add_slice(&b->rows, document);
    }
    arena_reset(&b->row);
    return b->failed == OK && buf_ok(&b->rows);
}

void mongo_batch_clear(mongo_batch *b) {
    buf_clear(&b->rows);
    b->rows_n = 0;
    b->failed = OK;
}

void mongo_batch_add_held(mongo_request *q, mongo_batch *b) {
    mongo_cursor *c = b->cursor;
    slice rest = c->held.n ? slice_skip(buf_view(&c->held), c->held_at) : SLICE_EMPTY, document;
    const mql_project *project = b->project;
    b->project = NULL; /* the held documents were projected already */
    while (wire_next(&rest, &document) && mongo_batch_add(q, b, document)) {
        c->held_at += document.n;
    }
    b->project = project;
}

/* ---- answers ---- */

static void write_cursor(mongo_request *q, const mongo_batch *b, int64_t id, slice ns) {
    mongo_exhaust_offer(q, id);
    mql_builder *reply = mongo_answer(q);
    mongo_open_document(reply, "cursor");
    mongo_open_array(reply, b->is_first ? "firstBatch" : "nextBatch");
    buf_add_slice(frames_out(q->frame), buf_view(&b->rows));
    mql_close(reply);
    mongo_add_long(reply, "id", id);
    mongo_add_text(reply, "ns", ns);
    if (b->token.n) {
        mongo_token_add(reply, SLICE_LIT("postBatchResumeToken"), b->token);
    }
    mql_close(reply);
    mongo_end(q);
}

/* The time that later batches may take: a cursor's maxTimeMS is for all of them. */
static void note_limit(const mongo_request *q, mongo_cursor *c, int64_t now_us) {
    int64_t limit = q->operation.limit_ms, used = (now_us - q->started_us) / 1000;
    c->limit_ms = limit <= 0 ? 0 : used < limit ? limit - used : 1;
}

/* The id of the cursor if it stays open, otherwise 0. */
static err keep_cursor(mongo_request *q, mongo_batch *b, int64_t *id_out) {
    mongo_cursor *c = b->cursor;
    int64_t now_us = clock_monotonic_us(net_loop_clock(q->frame->client.loop));
    *id_out = 0;
    if (b->single || (c->ended && c->held_at >= c->held.n)) {
        return OK; /* `clean` frees it */
    }
    note_limit(q, c, now_us);
    if (c->id) {
        *id_out = c->id;
        b->cursor = NULL;
        mongo_cursors_give(q->front->cursors, c, now_us);
        return OK;
    }
    TRY(mongo_cursors_add(q->front->cursors, c, now_us));
    *id_out = c->id;
    b->cursor = NULL;
    return OK;
}

void mongo_batch_answer(mongo_request *q, err code) {
    mongo_batch *b = batch_of(q);
    slice ns = arena_copy(q->frame->arena, b->cursor->ns);
    int64_t id = 0;
    code = code != OK ? code : b->failed != OK ? b->failed : !buf_ok(&b->rows) ? budget_error(q->op.budget) : keep_cursor(q, b, &id);
    if (code != OK) {
        if (b->cursor->id && err_lookup(code)->mongo_code == CODE_TOO_MANY_REQUESTS) { /* the client may repeat the getMore */
            mongo_cursors_give(q->front->cursors, b->cursor, q->started_us);
            b->cursor = NULL;
        }
        mongo_fail(q, code);
        return;
    }
    write_cursor(q, b, id, ns);
}

void mongo_answer_list(mongo_request *q, slice ns, buf *documents) {
    mongo_batch *b;
    mongo_cursor *c = mongo_cursor_new(ns, q->conn->reach.serial, net_loop_memory(q->frame->client.loop));
    mql_value options = mongo_arg(q, "cursor");
    c->ended = true;
    c->held = *documents;
    *documents = buf_init(BUF_NO_LIMIT);
    err code = mongo_batch_begin(q, c, mongo_batch_size(options.type == BSON_TYPE_DOCUMENT ? options.bytes : SLICE_EMPTY), &b);
    if (code == OK && buf_ok(&c->held)) {
        mongo_batch_add_held(q, b);
    }
    mongo_batch_answer(q, code != OK ? code : buf_ok(&c->held) ? OK : E_MEMORY);
}

void mongo_answer_empty(mongo_request *q, slice ns) {
    buf none = buf_init(BUF_NO_LIMIT);
    mongo_answer_list(q, ns, &none);
}
