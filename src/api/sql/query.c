/* POST …/docs as a query: query plans for SDKs, queries that a gateway rejects, and pages of rows made by a worker. */
#include "query/plan.h"

#include "api/sql/query_body.h"
#include "api/sql/query_metrics.h"
#include "api/sql/query_position.h"
#include "api/sql/target.h"
#include "base/request_log.h"

enum {
    QUICK_BODY_BYTES = 4096,      /* longer texts take tens of milliseconds to parse */
    SHORT_BODY_BYTES = 16 * 1024, /* plans of longer texts take too long for the short lane */
};

typedef struct running {
    call_query call; /* must be first */
    sql_request *q;
    sql_query_body asked;
    sql_target *target;
    uint64_t compile_us; /* taken by reading and binding the text */
    buf body;            /* rows, or a plan */
} running;

/* ---- queries that a gateway rejects ---- */

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

/* If the query's filter fixes one partition key, the query is treated as if the request named that key. */
static bool finds_partition(running *r) {
    size_t n;
    sql_request *q = r->q;
    if (is_scoped(q)) {
        return false;
    }
    const query_range *list = query_ranges(q->http->arena, &r->call.query, &q->container->key, &n);
    if (!list || n != 1 || !list[0].point || list[0].shared) {
        return false;
    }
    q->partition = list[0].key;
    q->key_given = true;
    return true;
}

err sql_check_cross_partition(sql_request *q) {
    return is_scoped(q) || sql_flag(q, FIELD_CROSS_PARTITION)
               ? OK
               : op_fail(&q->op, E_BAD_REQUEST,
                         "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, "
                         "specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception.");
}

/* On E_CROSS_PARTITION the answer contains the query plan. */
static err check_gateway(running *r, bool pinned) {
    sql_request *q = r->q;
    const query_select *s = r->call.query.select;
    if (is_scoped(q) || pinned) {
        return OK;
    }
    TRY(sql_check_cross_partition(q));
    if (s->group_n || (s->aggregates_n && !s->value)) {
        return op_fail(&q->op, E_BAD_REQUEST, "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates.");
    }
    return query_is_plain(&r->call.query) ? OK : E_CROSS_PARTITION;
}

/* ---- answering ---- */

static void add_continuation(running *r) {
    buf position = buf_init(BUF_NO_LIMIT), feed = buf_init(BUF_NO_LIMIT), text = buf_init(BUF_NO_LIMIT);
    sql_position_write(&position, r->q->http->arena, &r->call.query, &r->call.page.position);
    sql_continuation_write(&feed, &r->target->scope, &r->target->cursor, r->call.page.outcome.rows);
    sql_position_join(&text, buf_view(&position), buf_view(&feed));
    sql_field_text(r->q, "x-ms-continuation", buf_view(&text));
    buf_free(&position);
    buf_free(&feed);
    buf_free(&text);
}

/* The number of rows and the scan direction. */
static void add_shape(running *r) {
    buf *out = sql_fields(r->q);
    bool down = r->call.query.select->order_n && r->call.query.select->order[0].descending;
    buf_add_lit(out, "x-ms-item-count: ");
    buf_add_u64(out, r->call.page.outcome.rows);
    buf_add_lit(out, "\r\nx-ms-cosmos-query-execution-info: {\"reverseRidEnabled\":false,\"reverseIndexScan\":");
    down ? buf_add_lit(out, "true}\r\n") : buf_add_lit(out, "false}\r\n");
}

static void answer(call *c) {
    running *r = (running *)c;
    sql_request *q = r->q;
    sql_call_done(q, c);
    if (c->code == E_CROSS_PARTITION) {
        buf_free(&r->body);
        answer_refused(q, &r->call.query);
        return;
    }
    sql_explain_slow(q, &r->call.page, r->compile_us);
    if (c->code != OK) {
        buf_free(&r->body);
        sql_fail(q, c->code);
        return;
    }
    rid in = sql_container_rid(q->container);
    sql_start(q, 200);
    sql_add_range(q, q->mark);
    add_shape(r);
    sql_add_query_metrics(q, &r->call.page, r->compile_us);
    sql_add_index_utilization(q, &r->call.page);
    if (r->call.page.outcome.more) {
        add_continuation(r);
    }
    buf *out = sql_start_body(q);
    sql_feed_open(out, &in, "Documents");
    buf_add_slice(out, buf_view(&r->body));
    sql_feed_close(out, r->call.page.outcome.rows);
    buf_free(&r->body);
    sql_end(q);
}

/* ---- running ---- */

static err prepare(call_query *call) {
    running *r = (running *)call;
    sql_request *q = r->q;
    const sql_query_body *a = &r->asked;
    slice continuation;
    query_schema schema = query_schema_of(q->container->settings);
    const clock_source *clock = net_loop_clock(q->http->client->loop);
    int64_t begun = clock_monotonic_us(clock);
    bool part = sql_has(q, FIELD_RANGE_ID) || sql_has(q, FIELD_START_EPK); /* an SDK reads one of a plan's ranges */
    TRY((part ? query_prepare_part : query_prepare)(&q->op, q->http->arena, a->text, a->parameters, a->parameters_n, &schema,
                                                    &call->query));
    r->compile_us = (uint64_t)(clock_monotonic_us(clock) - begun);
    TRY(sql_page_size(q, &call->rows_max));
    TRY(sql_position_read(q->http->arena, sql_get(q, FIELD_CONTINUATION), &call->query, &call->position, &continuation));
    bool pinned = finds_partition(r);
    TRY(check_gateway(r, pinned));
    TRY(sql_target_read(q, continuation, &r->target));
    call->cursor = &r->target->cursor;
    return sql_position_claim(&call->position, &r->target->scope.min);
}

static void run(running *r) {
    sql_request *q = r->q;
    call_query *call = &r->call;
    sql_call_prepare(q, call_query_init, call, answer);
    call->is_short = q->http->body.n <= QUICK_BODY_BYTES;
    call->is_first = !sql_has(q, FIELD_CONTINUATION);
    call->full_goes_on = true;
    call->prepare = prepare;
    call->out = &r->body;
    call->timed = sql_flag(q, FIELD_QUERY_METRICS) || request_log_explains();
    call->notes_indexes = sql_flag(q, FIELD_INDEX_METRICS) || sql_flag(q, FIELD_INDEX_METRICS_V2) || request_log_explains();
    err code = sql_seen(q, &call->call);
    code == OK ? call_query_submit(call) : sql_fail(q, code);
}

/* ---- plans ---- */

static void make_plan(call *c) {
    running *r = (running *)c;
    sql_request *q = r->q;
    unsigned supported = query_features_parse(sql_get(q, FIELD_QUERY_FEATURES));
    query_schema schema = query_schema_of(q->container->settings);
    query *asked = &r->call.query;
    c->code = query_prepare(&q->op, q->http->arena, r->asked.text, r->asked.parameters, r->asked.parameters_n, &schema, asked);
    if (c->code == OK) {
        c->code = query_plan_write(&q->op, q->http->arena, asked, &q->container->key, supported, &r->body);
    }
}

static void answer_plan(call *c) {
    running *r = (running *)c;
    sql_request *q = r->q;
    if (c->code != OK) {
        buf_free(&r->body);
        sql_fail(q, c->code);
        return;
    }
    sql_start(q, 200);
    sql_add_container_paths(q, q->container);
    buf_add_slice(sql_start_body(q), buf_view(&r->body));
    buf_free(&r->body);
    sql_end(q);
}

static void plan(running *r) {
    call *c = &r->call.call;
    size_t bytes = r->q->http->body.n;
    sql_call_init(r->q, c, answer_plan);
    if (bytes <= QUICK_BODY_BYTES) {
        make_plan(c);
        answer_plan(c);
    } else {
        call_work(c, bytes <= SHORT_BODY_BYTES ? NET_SHORT : NET_PAGES, make_plan);
    }
}

/* ---- entry point ---- */

static err read_request(running *r) {
    TRY(sql_query_body_read(r->q, &r->asked));
    TRY(sql_find_container(r->q));
    return sql_partition_key(r->q);
}

void sql_query(sql_request *q) {
    running *r = arena_new(q->http->arena, running);
    r->q = q;
    r->body = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    err code = read_request(r);
    if (code != OK) {
        sql_fail(q, code);
    } else if (sql_flag(q, FIELD_IS_QUERY_PLAN)) {
        plan(r);
    } else {
        run(r);
    }
}
