/* POST …/docs as a query: the plan that SDKs ask for, what a gateway refuses, and pages of rows made by a worker.
 *
 * A continuation is a feed's (continuation.h), before it, if the query itself stands somewhere: QPS:{base64 of BSON}; */
#include "query/exec.h"

#include <stdlib.h>

#include "api/sql/asked.h"
#include "api/sql/readmany.h"
#include "base/base64.h"
#include "net/work.h"
#include "query/plan.h"

enum { PAGE_US = 5000000 };

/* Everything but reading the body is a worker's: a long text takes tens of milliseconds to parse. */
typedef struct running {
    net_work work;
    sql_request *q;
    sql_asked asked;
    query query;
    sql_target target;
    query_page page;
    buf body; /* rows, or a plan */
    err code;
} running;

/* ---- what a gateway does not serve ---- */

static void answer_refused(sql_request *q, const query *query) {
    const err_entry *entry = err_lookup(E_CROSS_PARTITION);
    buf plan = buf_init(BUF_NO_LIMIT);
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
    if (!list || n != 1 || !list[0].point) {
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

/* ---- where it goes on ---- */

static bool read_position(running *r, slice bson) {
    query_position *at = &r->page.position;
    bson_iter_t it, each;
    size_t n = 0;
    at->rows_of_item = doc_find_key(bson, SLICE_LIT("i"), &it) ? (uint64_t)bson_iter_as_int64(&it) : 0;
    at->skipped = doc_find_key(bson, SLICE_LIT("s"), &it) ? (uint64_t)bson_iter_as_int64(&it) : 0;
    at->given = doc_find_key(bson, SLICE_LIT("g"), &it) ? (uint64_t)bson_iter_as_int64(&it) : 0;
    at->number = doc_find_key(bson, SLICE_LIT("n"), &it) ? (uint64_t)bson_iter_as_int64(&it) : 0;
    at->row = doc_find_key(bson, SLICE_LIT("r"), &it) ? (uint64_t)bson_iter_as_int64(&it) : 0;
    if (!doc_find_key(bson, SLICE_LIT("o"), &it)) {
        return true;
    }
    if (!BSON_ITER_HOLDS_ARRAY(&it) || !bson_iter_recurse(&it, &each)) {
        return false;
    }
    at->ordered = true;
    at->values = arena_array(r->q->http->arena, query_value, r->query.select->order_n + 1);
    while (n < r->query.select->order_n && bson_iter_next(&each)) { /* undefined stands as an object with nothing in it: {} */
        query_value v = value_of_iter(&each);
        at->values[n++] = v.type == TYPE_OBJECT && v.bytes.n == 5 ? value_undefined() : v;
    }
    return n == r->query.select->order_n;
}

/* Takes QPS:…; off the continuation. */
static err split_continuation(running *r, slice *rest_out) {
    slice text = sql_get(r->q, FIELD_CONTINUATION);
    *rest_out = text;
    if (!slice_starts(text, SLICE_LIT("QPS:"))) {
        return OK;
    }
    const char *end = memchr(text.p, ';', text.n);
    if (!end || text.n > CONTINUATION_BYTES_MAX) {
        return E_BAD_CONTINUATION;
    }
    slice coded = slice_of(text.p + 4, (size_t)(end - text.p) - 4);
    buf bytes = buf_init(CONTINUATION_BYTES_MAX);
    bool good = base64_decode(&bytes, coded);
    slice bson = arena_copy(r->q->http->arena, buf_view(&bytes));
    buf_free(&bytes);
    bson_t checked;
    good = good && bson_init_static(&checked, (const uint8_t *)bson.p, bson.n) && bson_validate(&checked, BSON_VALIDATE_NONE, NULL);
    *rest_out = slice_skip(text, (size_t)(end - text.p) + 1);
    return good && read_position(r, bson) ? OK : E_BAD_CONTINUATION;
}

static void write_position(const running *r, buf *out) {
    const query_position *at = &r->page.position;
    bson_t document = BSON_INITIALIZER, list;
    bson_append_int64(&document, "i", 1, (int64_t)at->rows_of_item);
    bson_append_int64(&document, "s", 1, (int64_t)at->skipped);
    bson_append_int64(&document, "g", 1, (int64_t)at->given);
    if (at->ordered) {
        bson_append_int64(&document, "n", 1, (int64_t)at->number);
        bson_append_int64(&document, "r", 1, (int64_t)at->row);
        bson_append_array_begin(&document, "o", 1, &list);
        for (size_t i = 0; i < r->query.select->order_n; i++) {
            char key[4] = {(char)('0' + i / 10), (char)('0' + i % 10)};
            bson_t nothing = BSON_INITIALIZER;
            if (value_is_defined(&at->values[i])) {
                value_append(&list, key, 2, &at->values[i], true);
            } else {
                bson_append_document(&list, key, 2, &nothing);
            }
            bson_destroy(&nothing);
        }
        bson_append_array_end(&document, &list);
    }
    buf_add_lit(out, "QPS:");
    base64_encode(out, slice_of(bson_get_data(&document), document.len));
    buf_add_byte(out, ';');
    bson_destroy(&document);
}

static void add_continuation(running *r) {
    const query_position *at = &r->page.position;
    buf text = buf_init(BUF_NO_LIMIT);
    if (at->rows_of_item || at->skipped || at->given || at->ordered) {
        write_position(r, &text);
    }
    sql_continuation_write(&text, &r->target.scope, &r->target.cursor, r->page.rows);
    sql_field_text(r->q, "x-ms-continuation", buf_view(&text));
    buf_free(&text);
}

/* ---- answering ---- */

static void add_metrics(running *r) {
    const query_metrics *m = &r->page.metrics;
    double ms = (double)m->took_us / 1000;
    if (!sql_flag(r->q, FIELD_QUERY_METRICS)) {
        return;
    }
    buf_addf(sql_fields(r->q),
             "x-ms-documentdb-query-metrics: totalExecutionTimeInMs=%.2f;queryCompileTimeInMs=0.00;queryLogicalPlanBuildTimeInMs=0.00;"
             "queryPhysicalPlanBuildTimeInMs=0.00;queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs=%.2f;indexLookupTimeInMs=0.00;"
             "documentLoadTimeInMs=%.2f;systemFunctionExecuteTimeInMs=0.00;userFunctionExecuteTimeInMs=0.00;retrievedDocumentCount=%lu;"
             "retrievedDocumentSize=%lu;outputDocumentCount=%lu;outputDocumentSize=%lu;writeOutputTimeInMs=0.00;"
             "indexUtilizationRatio=%.2f\r\n",
             ms, ms, ms, (unsigned long)m->read, (unsigned long)m->read_bytes, (unsigned long)m->rows, (unsigned long)m->rows_bytes,
             m->read ? (double)m->rows / (double)m->read : 1.0);
}

static void answer(net_work *work) {
    running *r = (running *)work;
    sql_request *q = r->q;
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
    sql_add_range(q, r->page.mark);
    buf_addf(sql_fields(q), "x-ms-item-count: %zu\r\n", r->page.rows);
    buf_add_lit(sql_fields(q), "x-ms-cosmos-query-execution-info: {\"reverseRidEnabled\":false,\"reverseIndexScan\":false}\r\n");
    add_metrics(r);
    if (r->page.more) {
        add_continuation(r);
    }
    buf *out = sql_start_body(q);
    sql_feed_open(out, &in, "Documents");
    buf_add_slice(out, buf_view(&r->body));
    sql_feed_close(out, r->page.rows);
    buf_free(&r->body);
    sql_end(q);
}

/* ---- on the worker ---- */

static err prepare(running *r) {
    sql_request *q = r->q;
    const sql_asked *a = &r->asked;
    slice continuation;
    query_schema schema = query_schema_of(q->container->settings);
    TRY(query_prepare(&q->op, q->http->arena, a->text, a->parameters, a->parameters_n, &schema, &r->query));
    TRY(sql_page_size(q, &r->page.rows_max));
    TRY(split_continuation(r, &continuation));
    bool pinned = finds_partition(r);
    TRY(check_gateway(r, pinned));
    TRY(sql_target_read(q, &r->target, continuation));
    r->page.mark = item_mark_of(q->range);
    return OK;
}

static err run_page(running *r) {
    sql_request *q = r->q;
    query_page *p = &r->page;
    p->items = account_items(q->front->account);
    p->op = &q->op;
    p->container = q->container;
    p->query = &r->query;
    p->cursor = &r->target.cursor;
    p->bytes_max = LIMIT_RESPONSE_BYTES;
    p->until_us = clock_monotonic_us(p->items->clock) + PAGE_US;
    p->out = &r->body;
    err code;
    return !sql_has(q, FIELD_CONTINUATION) && sql_read_many(q, &r->target, p, &code) ? code : query_run_page(p);
}

static void run(net_work *work) {
    running *r = (running *)work;
    r->code = prepare(r);
    r->code = r->code != OK ? r->code : run_page(r);
}

static void plan(net_work *work) {
    running *r = (running *)work;
    sql_request *q = r->q;
    unsigned supported = query_features_parse(sql_get(q, FIELD_QUERY_FEATURES));
    query_schema schema = query_schema_of(q->container->settings);
    r->code = query_prepare(&q->op, q->http->arena, r->asked.text, r->asked.parameters, r->asked.parameters_n, &schema, &r->query);
    if (r->code == OK) {
        r->code = query_plan_write(&q->op, q->http->arena, &r->query, &q->container->key, supported, &r->body);
    }
}

/* ---- all of it ---- */

static void answer_plan(net_work *work) {
    running *r = (running *)work;
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

static err read_request(running *r) {
    TRY(sql_asked_read(r->q, &r->asked));
    TRY(sql_find_container(r->q));
    return sql_partition_key(r->q);
}

void sql_query(sql_request *q) {
    running *r = arena_new(q->http->arena, running);
    bool planned = sql_flag(q, FIELD_IS_QUERY_PLAN);
    r->q = q;
    r->body = buf_init(BUF_NO_LIMIT);
    err code = read_request(r);
    if (code == OK) {
        net_work_start(q->http->loop, &r->work, planned ? plan : run, planned ? answer_plan : answer);
    } else {
        sql_fail(q, code);
    }
}
