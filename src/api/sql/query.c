/* POST …/docs as a query: the plan that SDKs ask for, what a gateway refuses, and pages of rows made by a worker. */
#include "query/exec.h"

#include "account/scripts.h"
#include "api/sql/asked.h"
#include "api/sql/metrics.h"
#include "api/sql/position.h"
#include "api/sql/readmany.h"
#include "net/work.h"
#include "query/plan.h"
#include "script/functions.h"

enum {
    PAGE_US = 5000000,
    QUICK_BODY_BYTES = 4096,
    QUICK_ROWS = 64,              /* of an ordered query; about as many as the index is asked for at once (find/access.c) */
    SHORT_BODY_BYTES = 16 * 1024, /* plans of longer texts take too long for the short lane */
};

/* A long text takes tens of milliseconds to parse, and rows may take seconds to find: that is a worker's. A short text is looked at on the
 * loop, and if the index finds a few items at once, it is answered there, which saves the way to the worker and back. One that calls
 * user-defined functions runs on a thread of the scripts' own: a function that does not end holds up no other query. */
typedef struct running {
    net_work work;
    script_job job;
    op_turn turn; /* on a script thread: the work only asks whether the client has left */
    account_script *scripts[QUERY_UDFS_MAX];
    sql_request *q;
    sql_asked asked;
    query query;
    query_udfs *functions; /* NULL: it has none */
    sql_target *target;
    size_t rows_max;
    query_page page;
    query_position begun;      /* where the page began, … */
    item_cursor *begun_cursor; /* … so that a worker can begin it again */
    uint64_t compile_us;       /* taken by reading and binding the text */
    buf body;                  /* rows, or a plan */
    bool prepared;
    err code;
} running;

/* ---- what a gateway does not serve ---- */

static void answer_refused(sql_request *q, const query *query) {
    const err_entry *entry = err_lookup(E_CROSS_PARTITION);
    buf plan = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    err code = query_plan_write(&q->op, q->http->arena, query, &q->container->key, ~0u, &plan);
    if (code != OK) {
        buf_free(&plan);
        sql_fail(q, code);
        return;
    }
    sql_start(q, entry->http_status);
    buf_addf(sql_fields(q), "x-ms-substatus: %u\r\n", entry->http_substatus);
    sql_add_account(q);
    buf *out = sql_start_body(q);
    buf_add_lit(out, "{\"code\":\"BadRequest\",\"message\":");
    json_add_string(out, arena_printf(q->http->arena, "%s\r\nActivityId: %s", entry->sentence, q->activity));
    buf_add_lit(out, ",\"additionalErrorInfo\":");
    json_add_string(out, buf_view(&plan));
    buf_add_byte(out, '}');
    buf_free(&plan);
    sql_end(q);
}

static bool is_scoped(const sql_request *q) {
    return q->key_given || sql_has(q, FIELD_RANGE_ID) || sql_has(q, FIELD_START_EPK) || q->container->key.n == 0;
}

/* One partition key that the query itself demands is as good as one that the request names. */
static bool finds_partition(running *r) {
    size_t n;
    sql_request *q = r->q;
    if (is_scoped(q)) {
        return false;
    }
    const query_range *list = query_ranges(q->http->arena, &r->query, &q->container->key, &n);
    if (!list || n != 1 || !list[0].point || list[0].shared) {
        return false;
    }
    q->partition = list[0].key;
    q->key_given = true;
    return true;
}

/* E_CROSS_PARTITION is answered with the plan. */
static err check_gateway(running *r, bool pinned) {
    sql_request *q = r->q;
    const query_select *s = r->query.select;
    if (is_scoped(q) || pinned) {
        return OK;
    }
    if (!sql_flag(q, FIELD_CROSS_PARTITION)) {
        return op_fail(&q->op, E_BAD_REQUEST,
                       "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, "
                       "specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception.");
    }
    if (s->group_n || (s->aggregates_n && !s->value)) {
        return op_fail(&q->op, E_BAD_REQUEST, "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates.");
    }
    return query_is_plain(&r->query) ? OK : E_CROSS_PARTITION;
}

/* ---- answering ---- */

static void add_continuation(running *r) {
    buf text = buf_init(BUF_NO_LIMIT);
    sql_position_write(&text, r->q->http->arena, &r->query, &r->page.position);
    sql_continuation_write(&text, &r->target->scope, &r->target->cursor, r->page.told.rows);
    sql_field_text(r->q, "x-ms-continuation", buf_view(&text));
    buf_free(&text);
}

/* How many rows, and which way they were read. */
static void add_shape(running *r) {
    buf *out = sql_fields(r->q);
    bool down = r->query.select->order_n && r->query.select->order[0].descending;
    buf_add_lit(out, "x-ms-item-count: ");
    buf_add_u64(out, r->page.told.rows);
    buf_add_lit(out, "\r\nx-ms-cosmos-query-execution-info: {\"reverseRidEnabled\":false,\"reverseIndexScan\":");
    down ? buf_add_lit(out, "true}\r\n") : buf_add_lit(out, "false}\r\n");
}

static void give_scripts(running *r) {
    for (size_t i = 0; i < r->query.udfs_n; i++) {
        account_script_give(r->scripts[i]);
        r->scripts[i] = NULL;
    }
}

static void answer(running *r) {
    sql_request *q = r->q;
    give_scripts(r);
    if (r->code == E_CROSS_PARTITION) {
        buf_free(&r->body);
        answer_refused(q, &r->query);
        return;
    }
    if (r->code != OK) {
        buf_free(&r->body);
        sql_fail(q, r->code);
        return;
    }
    rid in = sql_container_rid(q->container);
    sql_start(q, 200);
    sql_add_range(q, r->page.told.mark);
    add_shape(r);
    sql_add_query_metrics(q, &r->page, r->compile_us);
    sql_add_index_utilization(q, &r->page);
    if (r->page.told.more) {
        add_continuation(r);
    }
    buf *out = sql_start_body(q);
    sql_feed_open(out, &in, "Documents");
    buf_add_slice(out, buf_view(&r->body));
    sql_feed_close(out, r->page.told.rows);
    buf_free(&r->body);
    sql_end(q);
}

/* ---- running ---- */

static err prepare(running *r) {
    sql_request *q = r->q;
    const sql_asked *a = &r->asked;
    slice continuation;
    query_schema schema = query_schema_of(q->container->settings);
    const clock_source *clock = account_items(q->front->account)->clock;
    int64_t begun = clock_monotonic_us(clock);
    bool part = sql_has(q, FIELD_RANGE_ID) || sql_has(q, FIELD_START_EPK); /* as SDKs ask for one of a plan's ranges */
    TRY((part ? query_prepare_part : query_prepare)(&q->op, q->http->arena, a->text, a->parameters, a->parameters_n, &schema, &r->query));
    r->compile_us = (uint64_t)(clock_monotonic_us(clock) - begun);
    TRY(sql_page_size(q, &r->rows_max));
    TRY(sql_position_read(q->http->arena, sql_get(q, FIELD_CONTINUATION), &r->query, &r->begun, &continuation));
    bool pinned = finds_partition(r);
    TRY(check_gateway(r, pinned));
    TRY(sql_target_read(q, continuation, &r->target));
    TRY(sql_position_claim(&r->begun, &r->target->scope.min));
    r->prepared = true;
    return OK;
}

/* `quick`: where it begins is kept, since a worker may have to begin it again. */
static err run_page(running *r, bool quick) {
    sql_request *q = r->q;
    query_page *p = &r->page;
    query_page_init(p, account_items(q->front->account), &q->op, q->container, &r->query, &r->target->cursor, &r->body);
    p->position = r->begun;
    p->told.mark = item_mark_of(q->range);
    p->ask.rows_max = r->rows_max;
    p->ask.until_us = clock_monotonic_us(p->ask.items->clock) + PAGE_US;
    p->ask.udfs = r->functions;
    p->ask.quick = quick;
    p->ask.timed = sql_flag(q, FIELD_QUERY_METRICS);
    p->ask.notes_indexes = sql_flag(q, FIELD_INDEX_METRICS) || sql_flag(q, FIELD_INDEX_METRICS_V2);
    TRY(query_position_restore(p));
    if (quick) {
        r->begun = p->position;
        r->begun_cursor = arena_alloc(q->http->arena, sizeof *r->begun_cursor);
        item_cursor_copy(r->begun_cursor, p->cursor);
    }
    err code;
    return !sql_has(q, FIELD_CONTINUATION) && sql_read_many(q, r->target, p, &code) ? code : query_run_page(p);
}

/* ---- on a script thread ---- */

static void run_with_functions(script_job *job) {
    running *r = (running *)((char *)job - offsetof(running, job));
    script_function list[QUERY_UDFS_MAX];
    script_functions functions;
    if (sql_client_left(r->q)) {
        r->code = E_CANCELLED;
        return;
    }
    for (size_t i = 0; i < r->query.udfs_n; i++) {
        list[i] = (script_function){r->scripts[i]->id, r->scripts[i]->body};
    }
    script_functions_init(&functions, r->q->front->scripts, r->q->op.budget, list, r->query.udfs_n);
    r->functions = &functions.base;
    r->code = run_page(r, false);
    script_functions_end(&functions);
}

static void functions_done(script_job *job) {
    running *r = (running *)((char *)job - offsetof(running, job));
    net_post(r->q->http->client.loop, &r->q->task);
}

static void answer_functions(net_task *task) {
    running *r = ((sql_request *)((char *)task - offsetof(sql_request, task)))->waiting;
    r->code = r->job.code != OK ? r->job.code : r->code;
    r->q->op.turn = NULL;
    answer(r);
}

static err find_functions(running *r) {
    sql_request *q = r->q;
    for (unsigned i = 0; i < r->query.udfs_n; i++) {
        err code = account_find_script(q->front->account, q->container, ACCOUNT_FUNCTION, r->query.udfs[i], false, &r->scripts[i]);
        if (code != OK) {
            return code == E_NOT_FOUND ? query_udf_unknown(&q->op, &r->query, i) : code;
        }
    }
    return OK;
}

static err check_client(op_turn *turn) {
    const running *r = (const running *)((const char *)turn - offsetof(running, turn));
    return sql_client_left(r->q) ? E_CANCELLED : OK;
}

/* The query is prepared. On the loop. */
static void start_functions(running *r) {
    sql_request *q = r->q;
    r->turn = (op_turn){.check = check_client};
    q->op.turn = &r->turn;
    r->job = (script_job){.tenant = sql_tenant(q), .work = run_with_functions, .done = functions_done};
    q->task = (net_task){.run = answer_functions};
    q->waiting = r;
    err code = find_functions(r);
    code = code != OK ? code : script_submit(q->front->scripts, &r->job); /* from here on `r` is the script thread's */
    if (code != OK) {
        r->code = code;
        answer(r);
    }
}

/* ---- on a worker ---- */

static void run(net_work *work) {
    running *r = (running *)work;
    r->code = r->prepared ? OK : prepare(r);
    r->code = r->code != OK || r->query.udfs_n ? r->code : run_page(r, false);
}

static void after_run(net_work *work) {
    running *r = (running *)work;
    r->code = net_work_code(work) != OK ? net_work_code(work) : r->code;
    if (r->code == OK && r->query.udfs_n) {
        start_functions(r);
    } else {
        answer(r);
    }
}

/* ---- on the loop ---- */

static bool spans_ranges(const running *r) {
    const sql_scope *scope = &r->target->scope;
    const partition_range *first;
    return !r->target->cursor.partition && partition_map_overlap(r->q->container->tiles->map, &scope->min, &scope->end, &first) > 1;
}

static bool wants_few(const running *r) {
    const query *q = &r->query;
    double most = q->top >= 0 ? q->top : q->limit >= 0 ? q->limit + (q->offset > 0 ? q->offset : 0) : (double)r->rows_max;
    return most <= QUICK_ROWS || r->rows_max <= QUICK_ROWS;
}

/* Queries that surely take too long for a loop: regular expressions; orders, groups and DISTINCT over several ranges; many rows in an order
 * without a WHERE. */
static bool is_long(const running *r) {
    const query *q = &r->query;
    const query_select *s = q->select;
    bool needs_all = s->order_n || s->distinct || q->aggregates;
    bool large = !r->target->cursor.partition && atomic_load_explicit(&r->q->range->items, memory_order_relaxed) > QUICK_ROWS;
    return q->patterns || (needs_all && spans_ranges(r)) || (s->order_n && !s->where && large && !wants_few(r));
}

/* If it gives up, a worker begins the page anew, with the query as it was bound here. */
static void try_quickly(running *r) {
    sql_request *q = r->q;
    r->code = prepare(r);
    if (r->code == OK && r->query.udfs_n) {
        start_functions(r);
        return;
    }
    r->code = r->code != OK ? r->code : is_long(r) ? E_QUERY_TOO_LONG : run_page(r, true);
    if (r->code == E_QUERY_TOO_LONG && r->prepared) {
        if (r->begun_cursor) {
            item_cursor_copy(&r->target->cursor, r->begun_cursor);
        }
        buf_clear(&r->body);
        q->op.admitted = false;
        sql_work(q, NET_PAGES, &r->work, run, after_run);
    } else {
        answer(r);
    }
}

static void make_plan(running *r) {
    sql_request *q = r->q;
    unsigned supported = query_features_parse(sql_get(q, FIELD_QUERY_FEATURES));
    query_schema schema = query_schema_of(q->container->settings);
    r->code = query_prepare(&q->op, q->http->arena, r->asked.text, r->asked.parameters, r->asked.parameters_n, &schema, &r->query);
    if (r->code == OK) {
        r->code = query_plan_write(&q->op, q->http->arena, &r->query, &q->container->key, supported, &r->body);
    }
}

/* ---- all of it ---- */

static void answer_plan(running *r) {
    sql_request *q = r->q;
    if (r->code != OK) {
        buf_free(&r->body);
        sql_fail(q, r->code);
        return;
    }
    sql_start(q, 200);
    sql_add_container_paths(q, q->container);
    buf_add_slice(sql_start_body(q), buf_view(&r->body));
    buf_free(&r->body);
    sql_end(q);
}

static void plan(net_work *work) {
    make_plan((running *)work);
}

static void after_plan(net_work *work) {
    running *r = (running *)work;
    r->code = net_work_code(work) != OK ? net_work_code(work) : r->code;
    answer_plan(r);
}

static err read_request(running *r) {
    TRY(sql_asked_read(r->q, &r->asked));
    TRY(sql_find_container(r->q));
    return sql_partition_key(r->q);
}

void sql_query(sql_request *q) {
    running *r = arena_new(q->http->arena, running);
    bool planned = sql_flag(q, FIELD_IS_QUERY_PLAN);
    r->q = q;
    r->body = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    err code = read_request(r);
    bool quick = q->http->body.n <= QUICK_BODY_BYTES;
    if (code == OK && quick && planned) {
        make_plan(r);
        answer_plan(r);
    } else if (code == OK && quick) {
        try_quickly(r);
    } else if (code == OK && planned) {
        sql_work(q, q->http->body.n <= SHORT_BODY_BYTES ? NET_SHORT : NET_PAGES, &r->work, plan, after_plan);
    } else if (code == OK) {
        sql_work(q, NET_PAGES, &r->work, run, after_run);
    } else {
        sql_fail(q, code);
    }
}
