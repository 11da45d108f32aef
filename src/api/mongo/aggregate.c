/* aggregate: drives a flow (mql/pipeline.h) with documents of the core.
 *
 * The flow says what it needs next; `drive` gets it, on the loop, and comes back:
 *
 *   input    a page of the collection; the sink pushes each document and steps the flow, on the page's worker
 *   lookup   a page of another collection, pushed likewise; the next step is a worker's
 *   take     the output goes into the batch
 *   nothing  the end
 *
 * A page ends before the next document when the flow needs something else, or when the batch is full. The flow, the place in the collection
 * and the place in a lookup stay with the cursor. In a transaction the pages are those of its snapshot (transaction.h). */
#include "api/mongo/aggregate.h"

#include <stdlib.h>

#include "api/mongo/aggregate_write.h"
#include "api/mongo/change_stream.h"
#include "api/mongo/plan.h"
#include "api/mongo/transaction.h"
#include "api/mongo/views.h"
#include "api/mongo/work.h"
#include "base/memory.h"

#define FLOW_MEMORY_MAX ((size_t)100 << 20) /* MongoDB's limit for a stage */
#define FLOW_STEPS ((uint64_t)1000000000)   /* limit of one step: some ten seconds */

enum { LOOKUP_ROWS = 1000, OUTPUT_MAX = 64 << 20 };

struct mongo_aggregation {
    op op; /* for parsing: the trees live in the cursor's arena */
    mongo_scope scope;
    const mql_pipeline *pipeline;
    mql_source source;
    budget memory;
    mql_flow *flow;
    mongo_find find; /* of the source */
    buf position;
    bool input_ended, over;
    mql_need need;

    mongo_scan scan, lookup_scan; /* pages in a transaction */

    mql_lookup lookup; /* the one in progress */
    buf lookup_position;
    mongo_find lookup_find;
    container *lookup_container; /* referenced while a page is read; NULL: none */
    err failed;

    mql_target target; /* $out, $merge */
    buf output;        /* what they write */
};

void mongo_aggregation_free(mongo_aggregation *a) {
    if (a->flow) {
        mql_flow_free(a->flow);
    }
    budget_end(&a->memory);
    buf_free(&a->position);
    buf_free(&a->lookup_position);
    buf_free(&a->output);
    free(a);
}

static mongo_batch *batch_of(const mongo_request *q) {
    return q->batch;
}

static mongo_aggregation *aggregation_of(const mongo_request *q) {
    return batch_of(q)->cursor->aggregation;
}

static err take_error(mongo_request *q, const op *o, err code) {
    return code == OK || !o->detail_n ? code : op_fail_as(&q->op, code, o->protocol_code, "%.*s", (int)o->detail_n, o->detail);
}

/* ---- stepping, on a worker ---- */

static mongo_scan *scan_of(const mongo_request *q) {
    return q->pipeline ? q->pipeline->scan : NULL;
}

static bool is_full(const mongo_request *q) {
    const mongo_batch *b = batch_of(q);
    if (b->cursor->aggregation->target.kind != MQL_TARGET_NONE || scan_of(q)) {
        return false;
    }
    return b->rows_n >= b->rows_max || b->rows.n >= MONGO_BATCH_BYTES;
}

/* Gives a document of the output to whom it is for. False: to no one, for now or at all. */
static bool deliver(mongo_request *q, mongo_aggregation *a, slice document) {
    mongo_batch *b = batch_of(q);
    mongo_scan *scan = scan_of(q);
    if (a->target.kind != MQL_TARGET_NONE) {
        buf_add_slice(&a->output, document);
        return true;
    }
    if (scan && !scan->take(q, document)) {
        a->need = MQL_NEED_NOTHING;
        b->failed = scan->failed;
        return false;
    }
    if (!scan && !mongo_batch_add(q, b, document)) { /* no room for it: it begins the next batch */
        buf_add_slice(&b->cursor->held, document);
        return false;
    }
    return true;
}

/* Steps until the flow needs something from outside, or the batch is full. */
static err step(mongo_request *q) {
    mongo_aggregation *a = aggregation_of(q);
    mongo_batch *b = batch_of(q);
    while (!is_full(q)) {
        mql_run r = mongo_run_of(&q->op, &b->row, &a->scope, FLOW_STEPS);
        err code = mql_flow_step(a->flow, &r, &a->need);
        if (code == OK && a->need == MQL_NEED_TAKE) {
            if (!deliver(q, a, mql_flow_take(a->flow))) {
                return b->failed;
            }
        }
        arena_reset(&b->row);
        TRY(code);
        if (a->need != MQL_NEED_TAKE) {
            return OK;
        }
        TRY(op_check(&q->op));
    }
    return OK;
}

static slice empty_document(void) {
    return slice_of("\5\0\0\0", 5);
}

static bool take_input(void *context, const query_found *row) {
    mongo_request *q = context;
    mongo_aggregation *a = aggregation_of(q);
    if (a->need != MQL_NEED_INPUT || a->failed != OK || is_full(q)) {
        return false;
    }
    a->failed = mql_flow_push_times(a->flow, a->source.counts_only ? empty_document() : row->body, row->times);
    a->failed = a->failed != OK ? a->failed : step(q);
    return true;
}

/* The same in a transaction, where pages are scans. */
static bool push_input(mongo_request *q, slice document) {
    mongo_aggregation *a = aggregation_of(q);
    a->failed = mql_flow_push(a->flow, document);
    a->failed = a->failed != OK ? a->failed : step(q);
    a->scan.paused = a->need != MQL_NEED_INPUT || is_full(q);
    return a->failed == OK;
}

static bool push_lookup(mongo_request *q, slice document) {
    mongo_aggregation *a = aggregation_of(q);
    a->failed = mql_flow_lookup_push(a->flow, document);
    return a->failed == OK;
}

static bool take_lookup(void *context, const query_found *row) {
    mongo_request *q = context;
    mongo_aggregation *a = aggregation_of(q);
    a->failed = a->failed != OK ? a->failed : mql_flow_lookup_push(a->flow, row->body);
    return a->failed == OK;
}

/* ---- driving, on the loop ---- */

static void drive(mongo_request *q);

static void answer(mongo_request *q, err code) {
    mongo_aggregation *a = aggregation_of(q);
    batch_of(q)->cursor->ended = a->over;
    mongo_batch_answer(q, code);
}

static void go_on(mongo_request *q, err code) {
    mongo_aggregation *a = aggregation_of(q);
    code = code != OK ? code : a->failed;
    if (code != OK) {
        answer(q, code);
        return;
    }
    drive(q);
}

static void step_on_worker(call *c) {
    c->code = step((mongo_request *)c);
}

static void stepped(call *c) {
    go_on((mongo_request *)c, c->code);
}

static void start_step(mongo_request *q) {
    call_init(&q->call.any, &q->front->core, &q->frame->client, &q->op, q->container, stepped);
    if (!q->container) {
        q->call.any.tenant = call_tenant_of_none();
    }
    call_work(&q->call.any, NET_PAGES, step_on_worker);
}

static void begin_find(mongo_request *q, container *c, const mongo_find *f, const buf *position, call_step done) {
    call_find_init(&q->call.find, &q->front->core, &q->frame->client, &q->op, c, done);
    q->call.find.find.where = f->where;
    q->call.find.find.order = f->order;
    q->call.find.find.skip = f->skip;
    q->call.find.find.limit = f->limit;
    if (f->one_partition) {
        q->call.find.find.scope = query_scope_partition(&f->partition);
    }
    q->call.find.from = buf_view(position);
    q->call.find.context = q;
}

static void keep_position(buf *position, slice next) {
    buf_clear(position);
    buf_add_slice(position, next);
}

/* Where the next page begins; empty: there is none. */
static slice next_of(const mongo_request *q) {
    return q->transaction ? q->scan->from : q->call.find.next;
}

static err page_code(const mongo_request *q, const call *c) {
    return c->code == OK && q->transaction ? q->scan->failed : c->code;
}

static void input_read(call *c) {
    mongo_request *q = (mongo_request *)c;
    mongo_aggregation *a = aggregation_of(q);
    err code = page_code(q, c);
    if (code == OK) {
        uint64_t counted = q->transaction ? 0 : q->call.find.outcome.counted;
        if (!q->transaction && !a->position.n) {
            mongo_index_uses_add(q->front->index_uses, q->container->space->container, q->call.find.outcome.index);
        }
        keep_position(&a->position, next_of(q));
        a->input_ended = !next_of(q).n;
        code = counted ? mql_flow_push_times(a->flow, empty_document(), counted) : OK;
    }
    go_on(q, code);
}

static void read_within(mongo_request *q, mongo_scan *scan, const buf *position, call_step done) {
    q->scan = scan;
    scan->from = buf_view(position);
    mongo_transaction_page(q, scan, done);
}

static void read_input(mongo_request *q) {
    mongo_aggregation *a = aggregation_of(q);
    if (a->input_ended) {
        mql_flow_end(a->flow);
        start_step(q);
        return;
    }
    if (q->transaction) {
        a->scan = (mongo_scan){.find = &a->find, .take = push_input};
        read_within(q, &a->scan, &a->position, input_read);
        return;
    }
    begin_find(q, q->container, &a->find, &a->position, input_read);
    q->call.find.find.counts = a->find.counts;
    q->call.find.find.each = a->find.each;
    q->call.find.sink = take_input;
    call_find_submit(&q->call.find);
}

/* ---- lookups ---- */

static void lookup_ended(mongo_request *q) {
    mongo_aggregation *a = aggregation_of(q);
    mql_flow_lookup_end(a->flow);
    a->lookup.id = 0;
    buf_clear(&a->lookup_position);
    start_step(q);
}

static void lookup_read(call *c) {
    mongo_request *q = (mongo_request *)c;
    mongo_aggregation *a = aggregation_of(q);
    container_give(a->lookup_container);
    a->lookup_container = NULL;
    err code = page_code(q, c);
    if (code != OK || a->failed != OK) {
        go_on(q, code);
        return;
    }
    keep_position(&a->lookup_position, next_of(q));
    if (!next_of(q).n) {
        lookup_ended(q);
    } else {
        start_step(q);
    }
}

static err plan_lookup(mongo_request *q, mongo_aggregation *a) {
    mongo_scope scope;
    const mql_match *match = NULL;
    mongo_find *f = &a->lookup_find;
    *f = (mongo_find){.filter = a->lookup.filter.n > 5 ? a->lookup.filter : SLICE_EMPTY, .now_ms = a->find.now_ms, .limit = UINT64_MAX};
    f->collation = a->find.collation;
    TRY(mongo_scope_begin(&q->op, false, SLICE_EMPTY, f->now_ms, &scope));
    TRY(mongo_scope_collate(&q->op, a->lookup_container, f->collation, &scope));
    if (f->filter.n) {
        TRY(mql_match_parse(&scope.scope, f->filter, &match));
    }
    return mongo_plan(&q->op, a->lookup_container, match, f);
}

static void read_lookup(mongo_request *q) {
    mongo_aggregation *a = aggregation_of(q);
    mql_lookup wanted;
    mql_flow_lookup(a->flow, &wanted);
    if (wanted.id != a->lookup.id) {
        buf_clear(&a->lookup_position);
    }
    a->lookup = wanted;
    err code = account_container(q->front->core.account, q->database, false, wanted.collection, false, &a->lookup_container);
    if (code == E_OWNER_NOT_FOUND || code == E_NOT_FOUND) { /* a collection that does not exist is empty */
        q->op.detail_n = 0;
        a->lookup_container = NULL;
        lookup_ended(q);
        return;
    }
    code = code != OK ? code : plan_lookup(q, a);
    if (code != OK) {
        if (a->lookup_container) {
            container_give(a->lookup_container);
            a->lookup_container = NULL;
        }
        answer(q, code);
        return;
    }
    if (q->transaction) {
        a->lookup_scan =
            (mongo_scan){.find = &a->lookup_find, .take = push_lookup, .container = a->lookup_container, .rows_max = LOOKUP_ROWS};
        read_within(q, &a->lookup_scan, &a->lookup_position, lookup_read);
        return;
    }
    begin_find(q, a->lookup_container, &a->lookup_find, &a->lookup_position, lookup_read);
    q->call.find.rows_max = LOOKUP_ROWS;
    q->call.find.sink = take_lookup;
    call_find_submit(&q->call.find);
}

static void write_output(mongo_request *q) {
    mongo_aggregation *a = aggregation_of(q);
    err code = buf_ok(&a->output) ? mongo_target_write(q, &a->target, buf_view(&a->output))
                                  : op_fail_as(&q->op, E_MEMORY, CODE_SORT_MEMORY, "$out and $merge write %d bytes at most.", OUTPUT_MAX);
    if (code != OK) {
        mongo_fail(q, code);
    }
}

static void end_scan(mongo_request *q, mongo_scan *scan) {
    scan->code = OK;
    err code = scan->done(q);
    if (code != OK) {
        mongo_fail(q, code);
    }
}

static void drive(mongo_request *q) {
    mongo_aggregation *a = aggregation_of(q);
    a->over = a->need == MQL_NEED_NOTHING;
    if (a->over && a->target.kind != MQL_TARGET_NONE) {
        write_output(q);
    } else if (a->over && scan_of(q)) {
        end_scan(q, scan_of(q));
    } else if (a->over || is_full(q)) {
        answer(q, OK);
    } else if (a->need == MQL_NEED_INPUT) {
        read_input(q);
    } else if (a->need == MQL_NEED_LOOKUP) {
        read_lookup(q);
    } else {
        start_step(q);
    }
}

void mongo_aggregation_continue(mongo_request *q) {
    mongo_batch *b = batch_of(q);
    mongo_aggregation *a = b->cursor->aggregation;
    a->failed = OK;
    q->container = b->cursor->container ? container_take(b->cursor->container) : NULL;
    mongo_batch_add_held(q, b);
    if (b->cursor->held_at >= b->cursor->held.n) {
        buf_clear(&b->cursor->held);
        b->cursor->held_at = 0;
    }
    if (is_full(q)) {
        answer(q, OK);
        return;
    }
    a->need == MQL_NEED_TAKE ? start_step(q) : drive(q);
}

/* ---- the command ---- */

/* A leading $sort is the flow's; then only the filters before it are the source's. */
static size_t leading_filters(slice stages) {
    doc_walk w, inner;
    doc_element e, first;
    size_t n = 0;
    for (doc_walk_init(&w, stages); doc_walk_next(&w, &e) && doc_walk_init(&inner, e.value) && doc_walk_next(&inner, &first); n++) {
        if (!slice_eq(first.key, SLICE_LIT("$match"))) {
            break;
        }
    }
    return n;
}

void mongo_want_of_source(const mql_source *source, bool in_transaction, mongo_find *f) {
    bool whole = !in_transaction && !source->sort.n && !source->skip && source->limit == UINT64_MAX;
    f->count_only = whole && source->counts_only;
    f->value_path = whole && !source->counts_only ? source->group_path : SLICE_EMPTY;
    f->distinct = false;
}

static err find_source(mongo_request *q, mongo_aggregation *a, slice stages, slice let, size_t *from) {
    mongo_find *f = &a->find;
    TRY(mql_pipeline_source(&a->scope.scope, a->pipeline, &a->source, from));
    a->input_ended = a->source.kind != MQL_SOURCE_COLLECTION || !q->container;
    if (a->source.kind != MQL_SOURCE_COLLECTION) {
        return OK;
    }
    f->filter = a->source.filter;
    f->variables = let;
    f->now_ms = q->now_ms;
    f->sort = q->transaction ? SLICE_EMPTY : a->source.sort; /* in a transaction the source only filters */
    f->skip = a->source.skip;
    f->limit = a->source.limit;
    mongo_want_of_source(&a->source, q->transaction != NULL, f);
    TRY(q->container ? mongo_plan(&a->op, q->container, a->source.match, f) : OK);
    f->hint = mql_missing();
    if ((a->source.sort.n && !f->order.n) || q->transaction) { /* no index has the order */
        *from = leading_filters(stages);
        f->skip = 0;
        f->limit = UINT64_MAX;
        a->source.counts_only = false;
    }
    return OK;
}

static err make_documents(mongo_request *q, mongo_aggregation *a, buf *out) {
    switch (a->source.kind) {
    case MQL_SOURCE_COLL_STATS:
        return q->view ? mongo_refuse_view(q) : mongo_coll_stats_document(q, out);
    case MQL_SOURCE_CURRENT_OP:
        if (!slice_eq(q->database, SLICE_LIT("admin")) || mql_is_text(mongo_arg(q, "aggregate"))) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_NAMESPACE,
                              "$currentOp must be run against the 'admin' database with {aggregate: 1}");
        }
        mongo_current_documents(q, out);
        return OK;
    case MQL_SOURCE_INDEX_STATS:
        return q->view ? mongo_refuse_view(q) : mongo_index_stats_documents(q, out);
    case MQL_SOURCE_PLAN_CACHE_STATS: /* plans are not kept */
    case MQL_SOURCE_COLLECTION:
    case MQL_SOURCE_NONE:
        return OK;
    default:
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_COMMAND_NOT_SUPPORTED, "The first stage of the pipeline is not supported.");
    }
}

/* The documents of a stage about the server or the collection. */
static err push_documents(mongo_request *q, mongo_aggregation *a) {
    buf out = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    slice rest, document;
    err code = make_documents(q, a, &out);
    code = code != OK || buf_ok(&out) ? code : budget_error(q->op.budget);
    for (rest = buf_view(&out); code == OK && wire_next(&rest, &document);) {
        code = mql_flow_push(a->flow, document);
    }
    buf_free(&out);
    return code;
}

static err parse(mongo_request *q, mongo_aggregation *a, slice stages, slice let) {
    size_t from = 0;
    TRY(mongo_scope_begin(&a->op, q->front->surface == MONGO_SERVICE, let, q->now_ms, &a->scope));
    TRY(mongo_scope_collate(&a->op, q->container, a->find.collation, &a->scope));
    a->scope.scope.views = mongo_views_of(q);
    TRY(mql_pipeline_parse(&a->scope.scope, stages, &a->pipeline));
    mql_pipeline_target(a->pipeline, &a->target);
    TRY(mongo_target_check(q, &a->op, &a->target));
    TRY(find_source(q, a, stages, let, &from));
    a->memory = budget_init(net_loop_memory(q->frame->client.loop), FLOW_MEMORY_MAX);
    a->flow = mql_flow_begin(a->pipeline, from, &a->memory);
    a->need = MQL_NEED_TAKE; /* begin with a step */
    return push_documents(q, a);
}

static err make_cursor(mongo_request *q, slice stages, slice let, mongo_cursor **cursor_out) {
    slice ns = mongo_namespace(q->frame->arena, q->database, q->collection);
    mongo_cursor *c = *cursor_out = mongo_cursor_new(ns, q->conn->reach.serial, net_loop_memory(q->frame->client.loop));
    mongo_aggregation *a = c->aggregation = mem_zero(sizeof *a);
    c->container = q->container ? container_take(q->container) : NULL;
    c->find.now_ms = q->now_ms;
    a->position = buf_init_counted(BUF_NO_LIMIT, &c->memory);
    a->lookup_position = buf_init_counted(BUF_NO_LIMIT, &c->memory);
    a->output = buf_init_counted(OUTPUT_MAX, &c->memory);
    op_init(&a->op, &c->arena, q->op.now_s);
    TRY(mongo_arg_hint(q, &a->find.hint));
    TRY(mongo_arg_collation(q, &a->find.collation));
    if (!arena_fits(&c->arena, stages.n + let.n + a->find.collation.n)) {
        return budget_error(&c->memory);
    }
    a->find.collation = a->find.collation.n ? arena_copy(&c->arena, a->find.collation) : SLICE_EMPTY;
    return take_error(q, &a->op, parse(q, a, arena_copy(&c->arena, stages), let.n ? arena_copy(&c->arena, let) : let));
}

static err read_collection(mongo_request *q) {
    mql_value name = mongo_arg(q, "aggregate");
    if (!mql_is_text(name)) { /* {aggregate: 1}, without a collection */
        q->collection = SLICE_LIT("$cmd.aggregate");
        return OK;
    }
    q->collection = mql_as_text(name);
    TRY(mongo_check_collection(&q->op, q->collection));
    return mongo_find_collection(q);
}

static err prepare(mongo_request *q) {
    const mongo_pipeline *p = q->pipeline;
    mongo_cursor *c;
    mongo_batch *b;
    err code = make_cursor(q, p->stages, p->let, &c);
    if (code != OK) {
        mongo_cursor_free(c);
        return code;
    }
    c->no_timeout = p->no_timeout;
    TRY(mongo_batch_begin(q, c, p->batch_size, &b));
    b->single = p->single;
    return OK;
}

static void run(mongo_request *q, err code) {
    if (code != OK) {
        mongo_fail(q, code);
    } else if (batch_of(q)->rows_max == 0 && aggregation_of(q)->target.kind == MQL_TARGET_NONE && !scan_of(q)) {
        mongo_batch_answer(q, OK);
    } else {
        start_step(q);
    }
}

void mongo_pipeline_run(mongo_request *q, const mongo_pipeline *p) {
    q->pipeline = arena_new(q->frame->arena, mongo_pipeline);
    *q->pipeline = *p;
    mongo_work(q, q->large, prepare, run);
}

/* The pipeline of the command, over the collection that is there or over what a view shows. */
static err run_command(mongo_request *q, slice stages) {
    mongo_pipeline p = {.stages = stages};
    slice cursor;
    TRY(mongo_view_enter(q));
    TRY(q->view ? mongo_join_stages(&q->op, q->view->stages, stages, &p.stages) : OK);
    TRY(mongo_arg_document(q, "let", &p.let));
    TRY(mongo_arg_document(q, "cursor", &cursor));
    p.batch_size = mongo_batch_size(cursor);
    mongo_pipeline_run(q, &p);
    return OK;
}

err mongo_aggregate(mongo_request *q) {
    slice stages;
    TRY(mongo_arg_array(q, "pipeline", &stages));
    if (!stages.n) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_TYPE_MISMATCH, "'pipeline' option must be specified as an array");
    }
    TRY(read_collection(q));
    if (q->transaction && mongo_is_stream(stages)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_NOT_IN_TRANSACTION, "$changeStream cannot be used in a transaction");
    }
    if (mongo_is_stream(stages)) {
        return q->container && mongo_is_view(q->container) ? mongo_refuse_view(q) : mongo_stream_open(q, stages);
    }
    return run_command(q, stages);
}
