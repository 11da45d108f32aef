/* find, getMore, killCursors. */
#include "api/mongo/aggregate.h"
#include "api/mongo/batch.h"
#include "api/mongo/change_stream.h"
#include "api/mongo/memo.h"
#include "api/mongo/plan.h"
#include "api/mongo/scan.h"
#include "api/mongo/sorter.h"
#include "api/mongo/views.h"
#include "api/mongo/work.h"
#include "mql/match_tree.h"

enum { SORT_STEPS = 1000000, FIRST_RING_METRES = 1000 };

/* ---- arguments ---- */

static err refuse_options(mongo_request *q) {
    static const char *const refused[] = {"returnKey", "showRecordId", "min", "max"};
    uint64_t names = mongo_name_bit("tailable") | mongo_name_bit("awaitData") | mongo_name_bit("returnKey") |
                     mongo_name_bit("showRecordId") | mongo_name_bit("min") | mongo_name_bit("max");
    if (!(q->names & names)) {
        return OK;
    }
    if (mql_truth(mongo_arg(q, "tailable")) || mql_truth(mongo_arg(q, "awaitData"))) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE,
                          "tailable cursor requested on non capped collection: there are none; a change stream follows a collection");
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (mql_truth(mongo_arg(q, refused[i]))) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_NOT_IMPLEMENTED, "The option '%s' of find is not supported.", refused[i]);
        }
    }
    return OK;
}

typedef struct find_ask {
    mongo_find find;
    int64_t batch_size;
    bool single, no_timeout;
    const mql_match *match; /* the filter, parsed; NULL: there is none */
    bool by_key_alone;      /* a find by key, which says everything that the filter says */
    item_found found;
} find_ask;

static err read_numbers(mongo_request *q, find_ask *a) {
    int64_t skip = 0, limit = 0;
    TRY(mongo_arg_count(q, "skip", &skip));
    TRY(mongo_arg_count(q, "limit", &limit));
    TRY(mongo_arg_count(q, "batchSize", &a->batch_size));
    TRY(mongo_arg_bool(q, "singleBatch", &a->single));
    TRY(mongo_arg_bool(q, "noCursorTimeout", &a->no_timeout));
    if (skip < 0 || (a->batch_size < 0 && mongo_may_have(q, "batchSize") && !mql_is_missing(mongo_arg(q, "batchSize")))) {
        return op_fail_as(&q->op, E_BAD_REQUEST, 51024, "BSON field '%s' value must be >= 0", skip < 0 ? "skip" : "batchSize");
    }
    a->single = a->single || limit < 0;
    a->find.skip = (uint64_t)skip;
    a->find.limit = mongo_limit_of(limit);
    return OK;
}

static err read_ask(mongo_request *q, find_ask *a) {
    *a = (find_ask){.batch_size = -1, .find = {.now_ms = q->now_ms}};
    TRY(mongo_arg_document(q, "filter", &a->find.filter));
    TRY(mongo_arg_document(q, "projection", &a->find.projection));
    TRY(mongo_arg_document(q, "sort", &a->find.sort));
    TRY(mongo_arg_document(q, "let", &a->find.variables));
    TRY(mongo_arg_hint(q, &a->find.hint));
    TRY(read_numbers(q, a));
    a->find.filter = a->find.filter.n <= 5 ? SLICE_EMPTY : a->find.filter;
    a->find.sort = a->find.sort.n <= 5 ? SLICE_EMPTY : a->find.sort;
    return refuse_options(q);
}

/* ---- pages ---- */

static mongo_batch *batch_of(const mongo_request *q) {
    return q->batch;
}

static bool take_found(void *context, const query_found *row) {
    mongo_request *q = context;
    return mongo_batch_add(q, batch_of(q), row->body);
}

static void find_again(call *c) {
    mongo_batch_clear(batch_of((mongo_request *)c));
}

static void sort_instead(mongo_request *q);

static void page_read(call *c) {
    mongo_request *q = (mongo_request *)c;
    mongo_cursor *cursor = batch_of(q)->cursor;
    if (c->code == E_QUERY_TOO_LONG && cursor->find.order.n && batch_of(q)->is_first) { /* the index was dropped just now */
        sort_instead(q);
        return;
    }
    if (c->code == OK && batch_of(q)->is_first) {
        mongo_index_uses_add(q->front->index_uses, cursor->container->space->container, q->call.find.outcome.index);
    }
    if (c->code == OK) {
        buf_clear(&cursor->position);
        buf_add_slice(&cursor->position, q->call.find.next);
        cursor->ended = !q->call.find.next.n;
    }
    mongo_batch_answer(q, c->code);
}

static void read_page(mongo_request *q) {
    mongo_batch *b = batch_of(q);
    const mongo_find *f = &b->cursor->find;
    if (b->rows_max == 0) { /* batchSize 0: only a cursor, no documents */
        mongo_batch_answer(q, OK);
        return;
    }
    call_find_init(&q->call.find, &q->front->core, &q->frame->client, &q->op, b->cursor->container, page_read);
    q->call.find.find.where = f->where;
    q->call.find.find.order = f->order;
    q->call.find.find.skip = f->skip;
    q->call.find.find.limit = f->limit;
    if (f->one_partition) {
        q->call.find.find.scope = query_scope_partition(&f->partition);
    }
    q->call.find.from = buf_view(&b->cursor->position);
    q->call.find.rows_max = b->rows_max < LIMIT_FIND_ROWS ? b->rows_max : LIMIT_FIND_ROWS;
    q->call.find.bytes_max = MONGO_BATCH_BYTES;
    q->call.find.sink = take_found;
    q->call.find.context = q;
    q->call.find.again = b->computes ? NULL : find_again;
    call_find_submit(&q->call.find);
}

/* ---- sorted in memory ---- */

/* Documents of a $near without a sort come by their distance. With a limit and an index, they are read ring by ring: first those within a
 * kilometre, then within four times that, until there are enough. */
typedef struct sorting {
    mql_sort sort;
    const mql_match *text;       /* a filter with $text, whose score the sort needs; NULL: none */
    const mql_node *near;        /* sort by the distance; NULL: do not */
    double ring_from, ring_most; /* distances of this ring; most 0: all beyond `from` */
    uint64_t keep, taken;
    mongo_sorter *sorter;
    mongo_scan scan;
    mongo_find find;
    arena row;
    uint64_t skipped;
    const mql_match *match;
} sorting;

static sorting *sorting_of(const mongo_request *q) {
    return q->sorting;
}

static void free_sorting(mongo_request *q) {
    sorting *s = sorting_of(q);
    if (s) {
        mongo_sorter_free(s->sorter);
        arena_free(&s->row);
        q->sorting = NULL;
    }
}

/* The key of a document in this ring; none if it is in another one. */
static err distance_key(mql_run *r, const sorting *s, slice document, slice *key_out) {
    double distance;
    TRY(mql_near_distance(r, s->near, mql_document(document), &distance));
    if (distance <= s->ring_from || (s->ring_most > 0 && distance > s->ring_most)) {
        return OK;
    }
    buf out = buf_init(64);
    mql_builder b = mql_build(&out);
    mql_add_next(&b, mql_double(r->arena, distance));
    bool kept = mql_keep(r->arena, &b, key_out);
    buf_free(&out);
    return kept ? OK : budget_error(r->arena->budget);
}

static bool take_key(mongo_request *q, slice document) {
    sorting *s = sorting_of(q);
    mql_run r = mongo_run_of(&q->op, &s->row, &batch_of(q)->scope, SORT_STEPS);
    slice key = SLICE_EMPTY;
    bool matches;
    r.root = mql_document(document);
    err code = s->text ? mql_matches(&r, s->text, &matches, NULL) : OK; /* for the score */
    code = code != OK ? code : s->near ? distance_key(&r, s, document, &key) : mql_sort_key(&r, &s->sort, document, &key);
    s->scan.failed = code != OK || !key.n ? code : mongo_sorter_add(s->sorter, &q->op, key, document);
    s->taken += key.n > 0;
    arena_reset(&s->row);
    return s->scan.failed == OK;
}

/* Projects the documents and adds them to the cursor. */
static bool hold(void *context, slice document) {
    mongo_request *q = context;
    mongo_batch *b = batch_of(q);
    sorting *s = sorting_of(q);
    if (s->skipped < b->cursor->find.skip) {
        s->skipped++;
        return true;
    }
    b->failed = mongo_batch_show(q, b, document, &document);
    if (b->failed == OK) {
        buf_add_slice(&b->cursor->held, document);
    }
    arena_reset(&b->row);
    return b->failed == OK;
}

static void sort_on_worker(call *c) {
    mongo_request *q = (mongo_request *)c;
    mongo_sorter_end(sorting_of(q)->sorter, hold, q);
    c->code = batch_of(q)->failed;
}

static void sorted(call *c) {
    mongo_request *q = (mongo_request *)c;
    free_sorting(q);
    batch_of(q)->cursor->ended = true;
    if (c->code == OK) {
        mongo_batch_add_held(q, batch_of(q));
    }
    mongo_batch_answer(q, c->code);
}

static err plan_ring(mongo_request *q) {
    sorting *s = sorting_of(q);
    return mongo_plan(&q->op, q->container, s->match, &s->find);
}

static void read_ring(mongo_request *q, err code) {
    if (code != OK) {
        free_sorting(q);
        mongo_batch_answer(q, code);
        return;
    }
    mongo_scan_start(q, &sorting_of(q)->scan);
}

/* The next ring, if this one has not given enough. */
static bool widen(mongo_request *q) {
    enum { WIDER = 4, METRES_MAX = 5000 * 1000 };
    sorting *s = sorting_of(q);
    if (!s->near || s->ring_most <= 0 || s->taken >= s->keep) {
        return false;
    }
    s->ring_from = s->ring_most;
    s->ring_most = s->ring_most * WIDER * mql_near_metres(s->near) > METRES_MAX ? 0 : s->ring_most * WIDER;
    s->find.near_most = s->ring_most;
    s->find.where = SLICE_EMPTY;
    mongo_work(q, q->large, plan_ring, read_ring);
    return true;
}

static err collected(mongo_request *q) {
    err code = sorting_of(q)->scan.code;
    if (code == OK && widen(q)) {
        return OK;
    }
    if (code != OK) {
        free_sorting(q);
        mongo_batch_answer(q, code);
        return OK;
    }
    call_init(&q->call.any, &q->front->core, &q->frame->client, &q->op, q->container, sorted);
    call_work(&q->call.any, NET_PAGES, sort_on_worker);
    return OK;
}

static bool is_natural(slice sort) {
    mql_value natural = mongo_member(sort, "$natural");
    return mql_is_number(natural) && mql_as_double(natural) > 0;
}

/* Sort by the distance of $near, or by the score of $text. */
static void sort_by_filter(sorting *s, const mongo_find *f, const mql_match *match) {
    static mql_sort_part by_distance[] = {{.path = SLICE_LIT("distance")}};
    s->match = match;
    s->text = match && mql_match_conjunct(match, MQL_TEXT) ? match : NULL;
    s->near = match && !f->sort.n ? mql_match_conjunct(match, MQL_NEAR) : NULL;
    s->ring_from = -1;
    s->ring_most = s->near ? f->near_most : 0;
    if (s->near) {
        s->sort = (mql_sort){by_distance, 1};
    }
}

static err start_sort(mongo_request *q, const mongo_find *f) {
    sorting *s = arena_new(q->frame->arena, sorting);
    sort_by_filter(s, f, ((find_ask *)q->state)->match);
    if (f->sort.n && !is_natural(f->sort)) { /* otherwise all keys are equal, and the order stays */
        TRY(mql_sort_parse(&q->op, f->sort, &s->sort));
    }
    uint64_t keep = f->limit > UINT64_MAX / 4 ? UINT64_MAX : f->limit + f->skip;
    s->keep = keep;
    s->find = *f;
    s->find.order = SLICE_EMPTY;
    s->row = arena_init_counted(q->op.budget);
    s->sorter = mongo_sorter_new(&s->sort, batch_of(q)->scope.scope.collation, keep, q->op.budget);
    s->scan = (mongo_scan){.find = &s->find, .take = take_key, .done = collected};
    q->sorting = s;
    mongo_scan_start(q, &s->scan);
    return OK;
}

static void sort_instead(mongo_request *q) {
    mongo_batch_clear(batch_of(q));
    q->op.detail_n = 0;
    err code = start_sort(q, &batch_of(q)->cursor->find);
    if (code != OK) {
        mongo_batch_answer(q, code);
    }
}

/* ---- cursors ---- */

static slice kept(arena *a, slice s) {
    return s.n ? arena_copy(a, s) : SLICE_EMPTY;
}

static mongo_cursor *make_cursor(mongo_request *q, const find_ask *a) {
    mongo_cursor *c = mongo_cursor_new(mongo_namespace(q->frame->arena, q->database, q->collection), q->conn->reach.serial,
                                       net_loop_memory(q->frame->client.loop));
    mongo_find *f = &c->find;
    *f = a->find;
    f->filter = kept(&c->arena, f->filter);
    f->projection = kept(&c->arena, f->projection);
    f->sort = kept(&c->arena, f->sort);
    f->variables = kept(&c->arena, f->variables);
    f->where = kept(&c->arena, f->where);
    f->order = kept(&c->arena, f->order);
    f->collation = kept(&c->arena, f->collation);
    f->hint = mql_missing();
    for (size_t i = 0; f->one_partition && i < f->partition.partition.n; i++) {
        f->partition.partition.values[i].text = kept(&c->arena, f->partition.partition.values[i].text);
    }
    c->container = container_take(q->container);
    c->no_timeout = a->no_timeout;
    return c;
}

/* ---- a document by its key: the shortest way ----
 *
 * The key stays in q->call.read, also while a worker prepares something. */

/* Tests and shows the document. */
static err show_point(mongo_request *q) {
    const find_ask *a = q->state;
    mongo_batch *b = batch_of(q);
    bool matches = true;
    mongo_batch_clear(b);
    b->steps = q->steps;
    if (q->match) {
        mql_run r = mongo_run_of(&q->op, &b->row, &b->scope, q->steps);
        r.root = mql_document(a->found.body);
        TRY(mql_matches(&r, q->match, &matches, NULL));
    }
    if (matches) {
        mongo_batch_add(q, b, a->found.body);
    }
    return b->failed;
}

static void point_shown(mongo_request *q, err code) {
    item_give(&((find_ask *)q->state)->found);
    mongo_batch_answer(q, code);
}

static void was_read(call *c) {
    mongo_request *q = (mongo_request *)c;
    batch_of(q)->cursor->ended = true;
    if (c->code == OK) {
        q->operation.by_key = true;
        ((find_ask *)q->state)->found = q->call.read.found;
        mongo_work(q, false, show_point, point_shown);
        return;
    }
    q->op.detail_n = c->code == E_NOT_FOUND ? 0 : q->op.detail_n;
    mongo_batch_answer(q, c->code == E_NOT_FOUND ? OK : c->code);
}

static err prepare_point(mongo_request *q);
static void read_point(mongo_request *q, err code);

/* ---- the reply to a find by key ----
 *
 *   {cursor: {firstBatch: [document], id: 0, ns: "database.collection"}, ok: 1}
 *
 * It is written without a builder, since all its lengths are known before. */

enum { DOUBLE_ONE_BYTES = 8 };
static const char double_one[DOUBLE_ONE_BYTES] = {0, 0, 0, 0, 0, 0, (char)0xF0, 0x3F};

static char *put(char *p, const void *bytes, size_t n) {
    memcpy(p, bytes, n);
    return p + n;
}

static char *put_length(char *p, size_t n) {
    doc_store_i32(p, (int32_t)n);
    return p + 4;
}

#define PUT_LIT(p, text) put((p), (text), sizeof(text) - 1)

static void write_plain(char *p, slice document, slice database, slice collection) {
    size_t name = database.n + 1 + collection.n + 1, rows = 4 + (document.n ? 3 + document.n : 0) + 1;
    size_t cursor = 4 + 12 + rows + 4 + 8 + 4 + 4 + name + 1;
    p = put_length(p, 4 + 8 + cursor + 4 + DOUBLE_ONE_BYTES + 1);
    p = PUT_LIT(p, "\3cursor\0");
    p = put_length(p, cursor);
    p = PUT_LIT(p, "\4firstBatch\0");
    p = put_length(p, rows);
    if (document.n) {
        p = PUT_LIT(p, "\0030\0"); /* a document at "0" */
        p = put(p, document.p, document.n);
    }
    p = PUT_LIT(p, "\0\022id\0\0\0\0\0\0\0\0\0\2ns\0");
    p = put_length(p, name);
    p = put(p, database.p, database.n);
    *p++ = '.';
    p = put(p, collection.p, collection.n);
    p = PUT_LIT(p, "\0\0\1ok\0");
    p = put(p, double_one, sizeof double_one);
    *p = 0;
}

static void answer_plain(mongo_request *q, const item_found *found) {
    enum { AROUND_BYTES = 128 };
    slice document = found ? found->body : SLICE_EMPTY;
    buf *out = mongo_answer_bytes(q);
    if (buf_reserve(out, AROUND_BYTES + document.n + q->database.n + q->collection.n)) {
        write_plain(out->p + out->n, document, q->database, q->collection);
        out->n += (size_t)doc_load_i32(out->p + out->n);
    }
    mongo_end_bytes(q);
}

/* A large document is read again, and copied in pieces of work. */
static void was_read_plain(call *c) {
    enum { PLAIN_BYTES = 256 * 1024 };
    mongo_request *q = (mongo_request *)c;
    item_found found = c->code == OK ? q->call.read.found : (item_found){0};
    bool large = c->code == OK && found.body.n > PLAIN_BYTES;
    if (c->code != OK && c->code != E_NOT_FOUND) {
        mongo_fail(q, c->code);
        return;
    }
    if (large) {
        item_give(&found);
        mongo_work(q, q->large, prepare_point, read_point);
        return;
    }
    q->op.detail_n = 0;
    q->operation.by_key = c->code == OK;
    answer_plain(q, c->code == OK ? &found : NULL);
    item_give(&found);
}

static err prepare_point(mongo_request *q) {
    const find_ask *a = q->state;
    mongo_batch *b;
    TRY(mongo_batch_begin(q, make_cursor(q, a), -1, &b));
    b->single = true;
    return a->by_key_alone ? OK : mql_match_parse(&b->scope.scope, a->find.filter, &q->match);
}

static void read_point(mongo_request *q, err code) {
    if (code != OK) {
        mongo_fail(q, code);
        return;
    }
    call_read_init(&q->call.read, &q->front->core, &q->frame->client, &q->op, q->container, was_read);
    call_read_submit(&q->call.read);
}

static void read_plain(mongo_request *q) {
    call_read_init(&q->call.read, &q->front->core, &q->frame->client, &q->op, q->container, was_read_plain);
    call_read_submit(&q->call.read);
}

/* ---- find ---- */

static err plan(mongo_request *q) {
    find_ask *a = q->state;
    mongo_scope scope;
    const mql_match *match = NULL;
    mongo_find *f = &a->find;
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, f->variables, f->now_ms, &scope));
    TRY(mongo_scope_collate(&q->op, q->container, f->collation, &scope));
    if (f->filter.n) {
        TRY(mql_match_parse(&scope.scope, f->filter, &match));
    }
    a->match = match;
    const mql_node *near = match && !f->sort.n ? mql_match_conjunct(match, MQL_NEAR) : NULL;
    if (near && f->limit != UINT64_MAX && !q->transaction && mql_near_metres(near) > 0) {
        f->near_most = FIRST_RING_METRES / mql_near_metres(near);
    }
    return q->container ? mongo_plan(&q->op, q->container, match, f) : OK;
}

static bool is_near(const find_ask *a) {
    return a->match && mql_match_conjunct(a->match, MQL_NEAR) && !a->find.sort.n;
}

static err prepare_find(mongo_request *q) {
    const find_ask *a = q->state;
    mongo_batch *b;
    TRY(plan(q));
    if (q->container) {
        TRY(mongo_batch_begin(q, make_cursor(q, a), a->batch_size, &b));
        b->single = a->single;
    }
    return OK;
}

static void run_find(mongo_request *q, err code) {
    const find_ask *a = q->state;
    const mongo_find *f = &a->find;
    bool sorts = q->transaction || is_near(a) || (f->sort.n && !is_natural(f->sort) && !f->order.n);
    code = code == OK && q->container && sorts ? start_sort(q, f) : code;
    if (code != OK) {
        mongo_fail(q, code);
    } else if (!q->container) {
        mongo_answer_empty(q, mongo_namespace(q->frame->arena, q->database, q->collection));
    } else if (!sorts) {
        read_page(q);
    }
}

static err find_in_view(mongo_request *q, const find_ask *a) {
    mongo_pipeline p = {.let = a->find.variables, .batch_size = a->batch_size, .single = a->single, .no_timeout = a->no_timeout};
    TRY(mongo_view_enter(q));
    TRY(mongo_find_stages(q, &a->find, &p.stages));
    TRY(mongo_join_stages(&q->op, q->view->stages, p.stages, &p.stages));
    mongo_pipeline_run(q, &p);
    return OK;
}

/* Most collections have no options: they are no views, and have no collation. */
static bool is_plain(const mongo_request *q) {
    return q->container && !mongo_may_have(q, "collation") && !mongo_memo_options(q->container).n;
}

err mongo_find_documents(mongo_request *q) {
    find_ask *a = q->state = arena_alloc(q->frame->arena, sizeof *a);
    TRY(read_ask(q, a));
    TRY(mongo_find_collection(q));
    bool plain = is_plain(q);
    if (!plain && q->container && mongo_is_view(q->container)) {
        return find_in_view(q, a);
    }
    TRY(plain ? OK : mongo_arg_collation(q, &a->find.collation));
    bool by_key = q->container && !q->transaction && a->find.filter.n && !a->find.skip && !a->find.collation.n &&
                  mql_is_missing(a->find.hint) &&
                  mongo_plan_point(&q->op, q->container, a->find.filter, &q->call.read.key, &a->by_key_alone);
    if (by_key && a->by_key_alone && a->find.projection.n <= 5 && a->find.variables.n <= 5) {
        read_plain(q);
    } else if (by_key) {
        mongo_work(q, q->large, prepare_point, read_point);
    } else {
        mongo_work(q, q->large, prepare_find, run_find);
    }
    return OK;
}

/* ---- getMore ---- */

static err not_found(mongo_request *q, int64_t id) {
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_CURSOR_NOT_FOUND, "cursor id %lld not found", (long long)id);
}

static err take_cursor(mongo_request *q, int64_t id, mongo_cursor **cursor_out) {
    switch (mongo_cursors_take(q->front->cursors, id, q->conn->reach.serial, cursor_out)) {
    case CURSOR_TAKEN:
        return OK;
    case CURSOR_OF_ANOTHER:
        return op_fail_as(&q->op, E_FORBIDDEN, CODE_UNAUTHORIZED, "cursor id %lld was not created by the authenticated user",
                          (long long)id);
    case CURSOR_BUSY:
        return op_fail_as(&q->op, E_BAD_REQUEST, 12051, "cursor id %lld is already in use", (long long)id);
    default:
        return not_found(q, id);
    }
}

static err renew_container(mongo_request *q, mongo_cursor *c) {
    if (!c->container) {
        return OK;
    }
    container *newest = account_container_newest(q->front->core.account, c->container);
    if (!newest) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_QUERY_PLAN_KILLED, "The collection was dropped while the cursor was open.");
    }
    container_give(c->container);
    c->container = newest;
    return OK;
}

typedef struct more_ask {
    mongo_cursor *cursor;
    int64_t batch_size;
} more_ask;

static err prepare_more(mongo_request *q) {
    const more_ask *a = q->state;
    mongo_batch *b;
    return mongo_batch_begin(q, a->cursor, a->batch_size, &b);
}

static void run_more(mongo_request *q, err code) {
    mongo_cursor *c = ((more_ask *)q->state)->cursor;
    if (!q->batch) { /* no worker has prepared it */
        mongo_cursors_give(q->front->cursors, c, q->started_us);
        mongo_fail(q, code);
        return;
    }
    code = code != OK || c->stream ? code : renew_container(q, c);
    if (code != OK) {
        mongo_fail(q, code);
    } else if (c->stream) {
        mongo_stream_continue(q);
    } else if (c->aggregation) {
        mongo_aggregation_continue(q);
    } else if (c->ended || c->held_at < c->held.n) {
        mongo_batch_add_held(q, batch_of(q));
        mongo_batch_answer(q, OK);
    } else {
        read_page(q);
    }
}

err mongo_get_more(mongo_request *q) {
    int64_t id = 0, batch_size = -1;
    mongo_cursor *c;
    slice collection;
    TRY(mongo_arg_count(q, "getMore", &id));
    TRY(mongo_arg_count(q, "batchSize", &batch_size));
    TRY(mongo_arg_text(q, "collection", &collection));
    TRY(take_cursor(q, id, &c));
    if (!slice_eq(c->ns, mongo_namespace(q->frame->arena, q->database, collection))) {
        op_fail_as(&q->op, E_FORBIDDEN, CODE_UNAUTHORIZED, "Requested getMore on another namespace than the cursor's: %.*s",
                   slice_shown(c->ns), c->ns.p);
        mongo_cursors_give(q->front->cursors, c, q->started_us);
        return E_FORBIDDEN;
    }
    q->operation.timed = c->container ? c->container->space->container + 1 : 0;
    more_ask *a = q->state = arena_new(q->frame->arena, more_ask);
    if (c->limit_ms && !c->stream) {
        mongo_operation_limit(q, c->limit_ms);
    }
    *a = (more_ask){.cursor = c, .batch_size = batch_size > 0 ? batch_size : -1};
    mongo_work(q, c->find.filter.n + c->find.projection.n > MONGO_LARGE_BYTES, prepare_more, run_more);
    return OK;
}

/* ---- killCursors ---- */

err mongo_kill_cursors(mongo_request *q) {
    static const char *const names[] = {"cursorsKilled", "cursorsNotFound", "cursorsAlive", "cursorsUnknown"};
    slice list;
    doc_walk w;
    doc_element e;
    TRY(mongo_arg_array(q, "cursors", &list));
    TRY(mongo_check_ids(q, list));
    buf found = buf_init(BUF_NO_LIMIT), missing = buf_init(BUF_NO_LIMIT);
    mql_builder killed = mql_build(&found), unknown = mql_build(&missing);
    for (doc_walk_init(&w, list); list.n && doc_walk_next(&w, &e);) {
        int64_t id = 0;
        bool good = mql_as_integer(mql_of(&e), &id);
        bool dead = good && mongo_cursors_kill(q->front->cursors, id, q->conn->reach.serial) == CURSOR_TAKEN;
        mql_add_next(dead ? &killed : &unknown, mql_of(&e));
    }
    mql_builder *b = mongo_answer(q);
    mongo_add_array(b, names[0], mql_built(&killed));
    mongo_add_array(b, names[1], mql_built(&unknown));
    for (size_t i = 2; i < 4; i++) {
        mongo_open_array(b, names[i]);
        mql_close(b);
    }
    buf_free(&found);
    buf_free(&missing);
    mongo_end(q);
    return OK;
}
