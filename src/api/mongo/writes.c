#include "api/mongo/writes.h"

#include <stdlib.h>

#include "api/mongo/filter_kind.h"
#include "api/mongo/memo.h"
#include "api/mongo/plan.h"
#include "api/mongo/retry.h"
#include "api/mongo/transaction.h"
#include "api/mongo/update_kind.h"
#include "api/mongo/work.h"
#include "mql/sort.h"

enum {
    BATCH_MAX = 128,
    ATTEMPTS_MAX = 8,
    SORT_STEPS = 1000000,
    ERRORS_DETAILED_BYTES = 1024 * 1024,
    ERRORS_BYTES_MAX = 16 * 1024 * 1024, /* 100000 errors without details take some 5 MB */
};

/* ---- errors ---- */

/* The index that a duplicate violates: _id, or the only unique one. */
static bool violated_index(const container *c, err code, mongo_index *x) {
    doc_walk list;
    doc_element each;
    size_t n = 0;
    mongo_index one;
    for (doc_walk_init(&list, mongo_memo_of(c).indexes); doc_walk_next(&list, &each);) {
        bool is_id = mongo_index_read(each.value, &one) && slice_eq(one.name, SLICE_LIT("_id_"));
        if (code == E_CONFLICT ? is_id : one.unique && !is_id) {
            *x = one;
            n++;
        }
    }
    return n == 1;
}

static void add_duplicate(mongo_request *q, mql_builder *b, const mongo_index *x, slice document) {
    doc_walk keys;
    doc_element key;
    mongo_add_document(b, "keyPattern", x->key);
    mongo_open_document(b, "keyValue");
    for (doc_walk_init(&keys, x->key); doc_walk_next(&keys, &key);) {
        mql_value v = mongo_member(document, arena_text(q->frame->arena, key.key));
        mql_add(b, key.key, mql_is_missing(v) ? mql_null() : v);
    }
    mql_close(b);
}

mongo_write_errors mongo_write_errors_new(void) {
    return (mongo_write_errors){.out = buf_init(ERRORS_BYTES_MAX)};
}

void mongo_write_errors_add(mongo_request *q, mongo_write_errors *e, size_t index, const op *o, err code, slice document) {
    mongo_error error;
    mongo_index x;
    char key[24];
    arena *a = q->frame->arena;
    bool detailed = e->out.n < ERRORS_DETAILED_BYTES && document.n < ERRORS_DETAILED_BYTES;
    bool duplicate = detailed && (code == E_CONFLICT || code == E_UNIQUE_KEY) && q->container && violated_index(q->container, code, &x);
    mongo_error_of(o, a, code, &error);
    mongo_error_of_kill(q, code, &error);
    if (error.code == CODE_DUPLICATE_KEY) {
        error.message =
            arena_printf(a, "E11000 duplicate key error collection: %.*s.%.*s index: %.*s", slice_shown(q->database), q->database.p,
                         slice_shown(q->collection), q->collection.p, duplicate ? slice_shown(x.name) : 1, duplicate ? x.name.p : "?");
    }
    e->first = e->n ? e->first : code;
    q->write_failed = true;
    buf_add_byte(&e->out, BSON_TYPE_DOCUMENT);
    buf_add(&e->out, key, (size_t)snprintf(key, sizeof key, "%zu", e->n++) + 1);
    mql_builder b = mql_build(&e->out);
    mongo_add_int(&b, "index", (int32_t)index);
    mongo_add_int(&b, "code", error.code);
    if (duplicate) {
        add_duplicate(q, &b, &x, document);
    }
    mongo_add_text(&b, "errmsg", detailed || e->n == 1 ? error.message : SLICE_EMPTY);
    mql_built(&b);
}

void mongo_write_errors_answer(mongo_write_errors *e, mql_builder *b) {
    if (e->n) {
        buf array = buf_init(BUF_NO_LIMIT);
        buf_add(&array, "\0\0\0\0", 4);
        buf_add_slice(&array, buf_view(&e->out));
        buf_add_byte(&array, 0);
        doc_store_i32(array.p, (int32_t)array.n);
        mongo_add_array(b, "writeErrors", buf_view(&array));
        buf_free(&array);
    }
    buf_free(&e->out);
}

err mongo_first_error(mongo_request *q, mongo_write_errors *e) {
    doc_element code = {0}, text = {0};
    uint64_t passed = 0;
    slice document = slice_of(e->out.p + 3, e->out.n - 3); /* after the type and the key "0" */
    bool good = doc_find_member_counted(document, SLICE_LIT("code"), &code, &passed) &&
                doc_find_member_counted(document, SLICE_LIT("errmsg"), &text, &passed);
    slice message = good ? doc_element_text(&text) : SLICE_EMPTY;
    op_fail_as(&q->op, e->first, good ? doc_load_i32(code.value.p) : 0, "%.*s", (int)message.n, message.p ? message.p : "");
    buf_free(&e->out);
    return e->first;
}

/* ---- documents ---- */

static err check_id(op *o, mql_value id) {
    bool bad = id.type == BSON_TYPE_ARRAY || id.type == BSON_TYPE_UNDEFINED || id.type == BSON_TYPE_REGEX;
    return bad ? op_fail_as(o, E_BAD_REQUEST, 53, "The '_id' value cannot be of type %s", mql_type_name(id.type)) : OK;
}

err mongo_prepare_document(mongo_request *q, op *o, slice document, slice *prepared_out) {
    doc_walk w;
    doc_element e;
    size_t max = q->front->surface == MONGO_SERVICE ? MONGO_SERVICE_DOCUMENT_MAX : MONGO_DOCUMENT_MAX;
    mql_value id = mongo_member(document, "_id");
    TRY(check_id(o, id));
    if (document.n > max) {
        return op_fail_as(o, E_TOO_LARGE, CODE_DOCUMENT_TOO_LARGE, "object to insert too large. size in bytes: %zu, max size: %zu",
                          document.n, max);
    }
    *prepared_out = document;
    if (doc_walk_init(&w, document) && doc_walk_next(&w, &e) && slice_eq(e.key, SLICE_LIT("_id"))) {
        return OK;
    }
    buf out = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    mql_builder b = mql_build(&out);
    if (mql_is_missing(id)) {
        uint8_t bytes[12];
        mongo_make_object_id(q, bytes);
        mongo_add_object_id(&b, "_id", bytes);
    } else {
        mql_add(&b, SLICE_LIT("_id"), id);
    }
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        if (!slice_eq(e.key, SLICE_LIT("_id"))) {
            mql_add_element(&b, &e);
        }
    }
    *prepared_out = mongo_built_copy(q->frame->arena, &b, &out);
    return prepared_out->n ? OK : budget_error(q->op.budget);
}

/* ---- making operations ---- */

static mongo_writes *writes_of(mongo_request *q) {
    return q->state;
}

static item_edit edit_of(mongo_request *q, const mongo_statement *s, bool upsert) {
    bool service = q->front->surface == MONGO_SERVICE;
    return mongo_edit_of(q->frame->arena, &(mongo_edit_ask){.filter = s->filter,
                                                            .update = s->update,
                                                            .array_filters = s->array_filters,
                                                            .variables = s->variables,
                                                            .collation = s->collation,
                                                            .now_ms = q->now_ms,
                                                            .upsert = upsert,
                                                            .service = service,
                                                            .bytes_max = service ? MONGO_SERVICE_DOCUMENT_MAX : MONGO_DOCUMENT_MAX});
}

static void init_op(mongo_request *q, item_op *o, const item_key *key) {
    *o = (item_op){.kind = ITEM_EDIT, .key = *key};
    op_init(&o->op, q->frame->arena, q->op.now_s);
}

static void commit_ops(mongo_request *q, size_t n, bool stops, call_step done) {
    mongo_commit(q, writes_of(q)->ops, n, stops, done);
}

static void run_next(mongo_request *q);

/* Adds the result of an operation to its statement. */
static err tally(mongo_request *q, mongo_statement *s, const item_op *o) {
    mongo_writes *w = writes_of(q);
    if (o->code != OK) {
        return o->code == E_NOT_FOUND ? OK : o->code;
    }
    bool changed = !o->left;
    if (o->created) {
        s->upserted = true;
        s->upserted_id = o->result.n ? mongo_member(arena_copy(q->frame->arena, o->result), "_id")
                                     : mongo_member(arena_copy(q->frame->arena, o->reply), "id");
    } else {
        s->matched += changed || o->reply.n;
        s->modified += changed;
    }
    if (w->keeps && (changed || o->reply.n)) {
        w->before = o->before_there && o->before_body.n ? arena_copy(q->frame->arena, o->before_body)
                    : o->left                           ? arena_copy(q->frame->arena, o->result)
                                                        : SLICE_EMPTY;
        w->after = !o->deleted && o->result.n ? arena_copy(q->frame->arena, o->result) : SLICE_EMPTY;
    }
    return OK;
}

static void note_error(mongo_request *q, const op *o, err code, slice document) {
    mongo_writes *w = writes_of(q);
    mongo_write_errors_add(q, &w->errors, w->base + w->at, o, code, document);
}

static void finish(mongo_request *q) {
    mongo_writes *w = writes_of(q);
    arena_free(&w->page);
    err code = w->done(q);
    if (code != OK) {
        buf_free(&w->errors.out);
        mongo_fail(q, code);
    }
}

/* After an error of a statement: continues with the next one (unordered), or ends. */
static void statement_ended(mongo_request *q, bool failed) {
    mongo_writes *w = writes_of(q);
    w->at++;
    w->attempts = 0;
    if (failed && w->ordered) {
        finish(q);
    } else {
        run_next(q);
    }
}

static void fail_statement(mongo_request *q, err code) {
    note_error(q, &q->op, code, SLICE_EMPTY);
    q->op.detail_n = 0;
    q->op.protocol_code = 0;
    statement_ended(q, true);
}

/* ---- statements for one document by its key ---- */

static void points_decided(call *c) {
    mongo_request *q = (mongo_request *)c;
    mongo_writes *w = writes_of(q);
    bool failed = false;
    for (size_t i = 0; i < w->batch_n && !(failed && w->ordered); i++) {
        const item_op *o = &w->ops[i];
        err code = c->code != OK && c->code != E_THROTTLED ? c->code : tally(q, &w->list[w->at], o);
        failed = code != OK;
        if (failed) {
            note_error(q, o->op.detail_n || o->op.protocol_code || o->op.retry_after_ms ? &o->op : &q->op, code, w->list[w->at].filter);
        }
        w->at++;
    }
    q->op.detail_n = 0;
    q->op.protocol_code = 0;
    call_commit_give(&q->call.commit);
    if (failed && w->ordered) {
        finish(q);
    } else {
        run_next(q);
    }
}

/* Refused, as in MongoDB: all documents would become the same. */
static bool replaces_many(const mongo_statement *s) {
    return s->multi && mql_update_replaces(s->update);
}

static bool make_point(mongo_request *q, mongo_statement *s, item_op *o) {
    item_key key;
    bool alone;
    if (replaces_many(s) || s->sort.n || s->collation.n || !mql_is_missing(s->hint) ||
        !mongo_plan_point(&q->op, q->container, s->filter, &key, &alone)) {
        return false;
    }
    init_op(q, o, &key);
    o->edit = edit_of(q, s, s->upsert);
    o->receipt = mongo_receipt_of(q, writes_of(q)->base + (size_t)(s - writes_of(q)->list), writes_of(q)->image);
    return true;
}

/* The statements from `at` on that are such, as many as go in one commit. */
static err make_points(mongo_request *q) {
    mongo_writes *w = writes_of(q);
    w->batch_n = 0;
    w->refused = OK;
    while (w->batch_n < BATCH_MAX && w->at + w->batch_n < w->n) {
        item_op *o = &w->ops[w->batch_n];
        TRY(op_check(&q->op));
        if (!make_point(q, &w->list[w->at + w->batch_n], o)) {
            break;
        }
        err code = item_edit_make_ready(&o->op, q->container, o);
        if (code != OK) { /* after others it begins the next commit, and fails there */
            w->refused = w->batch_n ? OK : code;
            break;
        }
        w->batch_n++;
    }
    return OK;
}

static void find_documents(mongo_request *q);

static void points_made(mongo_request *q, err code) {
    mongo_writes *w = writes_of(q);
    if (code != OK) {
        fail_statement(q, code);
    } else if (w->refused != OK) {
        note_error(q, &w->ops[0].op, w->refused, SLICE_EMPTY);
        statement_ended(q, true);
    } else if (w->batch_n) {
        commit_ops(q, w->batch_n, w->ordered, points_decided);
    } else {
        find_documents(q);
    }
}

/* ---- statements that find their documents ---- */

struct mongo_best {
    mql_sort sort;
    mongo_scope scope;
    arena row; /* of one document */
    buf key;   /* sort key of the best document; empty: none yet */
};

static void copy_key(arena *a, item_key *to, const item_key *from) {
    *to = *from;
    to->row = arena_copy(a, from->row);
    for (size_t i = 0; i < to->partition.n; i++) {
        to->partition.values[i].text = arena_copy(a, from->partition.values[i].text);
    }
}

static bool keep_key(mongo_request *q, slice document, size_t at) {
    mongo_writes *w = writes_of(q);
    item_key key;
    w->scan.failed = mongo_key_of(&q->op, q->container, document, &key);
    if (w->scan.failed != OK) {
        return false;
    }
    copy_key(w->best ? q->frame->arena : &w->page, &w->keys[at], &key);
    w->keys_n = at + 1;
    return true;
}

static bool take_best(mongo_request *q, slice document) {
    mongo_writes *w = writes_of(q);
    struct mongo_best *best = w->best;
    mql_run r = mongo_run_of(&q->op, &best->row, &best->scope, SORT_STEPS);
    slice key;
    w->scan.failed = mql_sort_key(&r, &best->sort, document, &key);
    bool better = w->scan.failed == OK && (!best->key.n || mql_sort_compare(&best->sort, NULL, key, buf_view(&best->key)) < 0);
    if (better) {
        buf_clear(&best->key);
        buf_add_slice(&best->key, key);
        keep_key(q, document, 0);
    }
    arena_reset(&best->row);
    return w->scan.failed == OK;
}

static bool take_key(mongo_request *q, slice document) {
    return keep_key(q, document, writes_of(q)->keys_n);
}

static void edits_decided(call *c);

static err edit_found(mongo_request *q) {
    mongo_writes *w = writes_of(q);
    for (size_t i = 0; i < w->keys_n; i++) {
        init_op(q, &w->ops[i], &w->keys[i]);
        op_init(&w->ops[i].op, &w->page, q->op.now_s);
        w->ops[i].edit = w->edit;
        w->ops[i].receipt = mongo_receipt_of(q, w->base + w->at, w->image); /* only statements for one document are retryable */
    }
    commit_ops(q, w->keys_n, w->ordered, edits_decided);
    return OK;
}

static err page_found(mongo_request *q) {
    mongo_writes *w = writes_of(q);
    if (w->keys_n && !w->best) {
        return edit_found(q);
    }
    mongo_scan_next(q);
    return OK;
}

static void begin_page(mongo_request *q) {
    mongo_writes *w = writes_of(q);
    if (!w->best) {
        w->keys_n = 0;
        arena_reset(&w->page);
    }
}

static void run_scan(mongo_request *q);
static err make_upsert(mongo_request *q);
static void insert_upsert(mongo_request *q, err code);

static void free_best(mongo_writes *w) {
    if (w->best) {
        buf_free(&w->best->key);
        arena_free(&w->best->row);
        w->best = NULL;
    }
}

static void edits_decided(call *c) {
    mongo_request *q = (mongo_request *)c;
    mongo_writes *w = writes_of(q);
    mongo_statement *s = &w->list[w->at];
    uint64_t before = s->matched;
    err code = c->code == E_THROTTLED ? OK : c->code;
    for (size_t i = 0; i < w->keys_n && code == OK; i++) {
        code = tally(q, s, &w->ops[i]);
        if (code != OK) {
            note_error(q, &w->ops[i].op, code, SLICE_EMPTY);
        }
    }
    if (c->code != OK && c->code != E_THROTTLED) {
        note_error(q, &q->op, c->code, SLICE_EMPTY);
    }
    q->op.detail_n = 0;
    call_commit_give(&q->call.commit);
    bool again = code == OK && !s->multi && s->matched == before && w->attempts++ < ATTEMPTS_MAX;
    free_best(w);
    if (code != OK) {
        statement_ended(q, true);
    } else if (again) { /* the document has changed meanwhile: look for another one */
        run_scan(q);
    } else if (s->multi) {
        mongo_scan_next(q);
    } else {
        statement_ended(q, false);
    }
}

static err scan_ended(mongo_request *q) {
    mongo_writes *w = writes_of(q);
    mongo_statement *s = &w->list[w->at];
    if (w->scan.code != OK) {
        free_best(w);
        fail_statement(q, w->scan.code);
        return OK;
    }
    if (w->best && w->keys_n) {
        return edit_found(q);
    }
    free_best(w);
    if (s->upsert && !s->matched && !mql_is_missing(s->update)) {
        mongo_work(q, q->large, make_upsert, insert_upsert);
        return OK;
    }
    statement_ended(q, false);
    return OK;
}

static err prepare_scan(mongo_request *q) {
    mongo_writes *w = writes_of(q);
    mongo_statement *s = &w->list[w->at];
    mongo_scope scope;
    const mql_match *match;
    if (replaces_many(s)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_FAILED_TO_PARSE, "multi update is not supported for replacement-style update");
    }
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, s->variables, q->now_ms, &scope));
    TRY(mongo_scope_collate(&q->op, q->container, s->collation, &scope));
    TRY(mql_match_parse(&scope.scope, s->filter, &match));
    w->find = (mongo_find){.filter = s->filter,
                           .variables = s->variables,
                           .sort = s->sort.n > 5 ? s->sort : SLICE_EMPTY,
                           .collation = s->collation,
                           .hint = s->hint,
                           .now_ms = q->now_ms,
                           .limit = UINT64_MAX};
    TRY(mongo_plan(&q->op, q->container, match, &w->find));
    if (s->sort.n > 5 && (!w->find.order.n || q->transaction)) {
        struct mongo_best *best = arena_new(q->frame->arena, struct mongo_best);
        *best = (struct mongo_best){
            .scope = scope, .row = arena_init_counted(q->op.budget), .key = buf_init_counted(BUF_NO_LIMIT, q->op.budget)};
        TRY(mql_sort_parse(&q->op, s->sort, &best->sort));
        w->best = best;
    }
    /* A bad update is reported even if nothing matches. */
    item_op probe;
    item_key none = {0};
    init_op(q, &probe, &none);
    probe.edit = edit_of(q, s, false);
    err code = item_edit_make_ready(&probe.op, q->container, &probe);
    if (code != OK) {
        return op_fail_as(&q->op, code, probe.op.protocol_code, "%.*s", (int)probe.op.detail_n, probe.op.detail);
    }
    w->edit = probe.edit;
    return OK;
}

static void start_scan(mongo_request *q, err code) {
    mongo_writes *w = writes_of(q);
    mongo_statement *s = &w->list[w->at];
    if (code != OK) {
        free_best(w);
        fail_statement(q, code);
        return;
    }
    w->keys_n = 0;
    w->scan = (mongo_scan){.find = &w->find,
                           .take = w->best ? take_best : take_key,
                           .begin_page = begin_page,
                           .page = page_found,
                           .done = scan_ended,
                           .rows_max = w->best    ? 0
                                       : s->multi ? BATCH_MAX
                                                  : 1};
    mongo_scan_start(q, &w->scan);
}

static void run_scan(mongo_request *q) {
    mongo_work(q, q->large, prepare_scan, start_scan);
}

/* ---- upserts that insert ---- */

static void inserted(call *c) {
    mongo_request *q = (mongo_request *)c;
    mongo_writes *w = writes_of(q);
    mongo_statement *s = &w->list[w->at];
    err code = c->code != OK && c->code != E_THROTTLED ? c->code : w->ops[0].code;
    if (code == OK) {
        slice document = arena_copy(q->frame->arena, w->ops[0].body);
        s->upserted = true;
        s->upserted_id = mongo_member(document, "_id");
        w->after = w->keeps ? document : SLICE_EMPTY;
    } else {
        note_error(q, &w->ops[0].op, code, w->ops[0].body);
        q->op.detail_n = 0;
    }
    call_commit_give(&q->call.commit);
    statement_ended(q, code != OK);
}

static err make_upsert(mongo_request *q) {
    mongo_writes *w = writes_of(q);
    mongo_statement *s = &w->list[w->at];
    mongo_scope scope;
    const mql_match *match;
    const mql_update *update;
    const mongo_validator *validator;
    mql_updated made;
    slice document;
    item_key none = {0};
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, s->variables, q->now_ms, &scope));
    TRY(mongo_scope_collate(&q->op, q->container, s->collation, &scope));
    TRY(mql_match_parse(&scope.scope, s->filter, &match));
    mql_update_spec spec = {.update = s->update, .array_filters = s->array_filters, .match = match, .filter = s->filter};
    TRY(mql_update_parse(&scope.scope, &spec, &update));
    mql_run r = mongo_run_of(&q->op, q->frame->arena, &scope, q->steps);
    TRY(mql_update_apply(&r, update, &made));
    TRY(mongo_prepare_document(q, &q->op, made.document, &document));
    TRY(mongo_validator_read(&q->op, q->container, &validator));
    TRY(mongo_validate(&q->op, q->frame->arena, validator, document, &r.steps));
    init_op(q, &w->ops[0], &none);
    w->ops[0].kind = ITEM_CREATE;
    w->ops[0].body = document;
    w->ops[0].receipt = mongo_receipt_of(q, w->base + w->at, ITEM_IMAGE_AFTER);
    TRY(mongo_key_of(&q->op, q->container, document, &none));
    return item_check_body(&q->op, q->container, NULL, &w->ops[0]);
}

static void insert_upsert(mongo_request *q, err code) {
    if (code != OK) {
        fail_statement(q, code);
        return;
    }
    commit_ops(q, 1, true, inserted);
}

/* ---- statements that may be repetitions ---- */

/* Answers a repeated statement with the outcome that its receipt has. */
static item_op repeated_op(const item_receipt_found *found) {
    bool before = found->image == ITEM_IMAGE_BEFORE;
    return (item_op){.repeated = true,
                     .created = found->created,
                     .deleted = found->deleted,
                     .reply = found->reply,
                     .before_there = before,
                     .before_body = before ? found->body : SLICE_EMPTY,
                     .result = found->image == ITEM_IMAGE_AFTER ? found->body : SLICE_EMPTY};
}

static void receipt_read(call *c) {
    mongo_request *q = (mongo_request *)c;
    mongo_writes *w = writes_of(q);
    if (c->code == OK) {
        item_op o = repeated_op(&q->call.receipt.found);
        tally(q, &w->list[w->at], &o);
        statement_ended(q, false);
    } else if (c->code == E_NOT_FOUND) {
        run_scan(q);
    } else {
        fail_statement(q, c->code);
    }
}

/* Looks for the receipt first: after the first time, the document may no longer match. */
static void look_for_receipt(mongo_request *q) {
    mongo_writes *w = writes_of(q);
    call_receipt_init(&q->call.receipt, &q->front->core, &q->frame->client, &q->op, q->container, receipt_read);
    q->call.receipt.key = mongo_receipt_of(q, w->base + w->at, w->image).key;
    call_receipt_submit(&q->call.receipt);
}

/* ---- all statements ---- */

static void find_documents(mongo_request *q) {
    if (q->session.perhaps_repeated) {
        look_for_receipt(q);
    } else {
        run_scan(q);
    }
}

static void run_next(mongo_request *q) {
    mongo_writes *w = writes_of(q);
    if (w->at >= w->n) {
        finish(q);
    } else {
        mongo_work(q, q->large, make_points, points_made);
    }
}

/* A statement has its own collation, or the collection's. */
static err collate_statements(mongo_request *q, mongo_writes *w) {
    slice own;
    TRY(mongo_collation_of(q, SLICE_EMPTY, &own));
    for (size_t i = 0; i < w->n; i++) {
        mongo_statement *s = &w->list[i];
        bool given = s->collation.n > 0;
        TRY(given ? mongo_collation_of(q, s->collation, &s->collation) : OK);
        s->collation = given ? s->collation : own;
    }
    return OK;
}

void mongo_writes_start(mongo_request *q, mongo_writes *w) {
    err code = collate_statements(q, w);
    if (code != OK) {
        mongo_fail(q, code);
        return;
    }
    q->state = w;
    w->errors = mongo_write_errors_new();
    w->page = arena_init_counted(q->op.budget);
    w->ops = arena_array(q->frame->arena, item_op, BATCH_MAX);
    w->keys = arena_array(q->frame->arena, item_key, BATCH_MAX);
    run_next(q);
}
