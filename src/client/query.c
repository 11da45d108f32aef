/* query.c — queries: in one logical partition page by page, or across ranges by the server's plan.
 *
 * Rows go through these steps, those that the plan names:
 *
 *   producers → in the order of ranges, or merged by ORDER BY → aggregates and groups → DISTINCT → OFFSET, LIMIT, TOP → the page */
#include <tesela/query.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "client/combine.h"
#include "client/json.h"
#include "client/plan.h"
#include "client/producers.h"
#include "client/value.h"
#include "doc/json.h"

enum { PAGE_ITEMS = 1000, PAGE_BYTES = 4 << 20, NON_STREAMING_ROWS_MAX = 50000 };

#define FEATURES                                                                                                                           \
    "NonValueAggregate,Aggregate,Distinct,MultipleOrderBy,OffsetAndLimit,OrderBy,Top,CompositeAggregate,GroupBy,MultipleAggregates,"       \
    "NonStreamingOrderBy,ListAndSetAggregate,CountIf"

static const char placeholder[] = "{documentdb-formattableorderbyquery-filter}";

typedef struct sorted_row {
    char *text;
    size_t n, number;
    buf order;
} sorted_row;

typedef struct query {
    tesela_container *container;
    char *text, *parameters; /* parameters: the REST API's array */
    char *key;               /* of the whole partition key, as its header; NULL: across ranges */
    bool prefix;             /* across the ranges of a key's first components: */
    pkey prefix_key;
    char *prefix_texts;
    char *continuation, *consistency, *session_token;
    int page_items, parallelism, buffered_items;
    size_t memory;
    bool unordered; /* a page of whichever range has one */
    bool begun;

    /* one logical partition */
    buf token;
    bool last;

    /* across ranges */
    query_plan plan;
    producers rows;
    combiner *combiner;
    size_t combined; /* rows of the combiner that were given out */
    bool gathered;   /* the combiner, or the sort, has all rows */
    distinct *distinct;
    sorted_row *sorted;
    size_t sorted_n, sorted_at, sorted_held;
    int64_t skip, left; /* OFFSET yet to skip; rows yet to give, −1: any number */
} query;

/* ---- the request's body ---- */

/* {"@a":1} becomes [{"name":"@a","value":1}]; an array stays. */
static tesela_status copy_parameters(query *q, const char *parameters, tesela_error *error) {
    json_walk w;
    slice name, value, given = slice_str(parameters ? parameters : "[]");
    buf out = buf_init(CLIENT_REQUEST_BYTES_MAX);
    if (!json_is_value(given) || !json_enter(given, &w)) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The query's parameters are not a JSON object or array.");
    }
    if (!w.object) {
        buf_add_slice(&out, given);
    } else {
        buf_add_byte(&out, '[');
        while (json_next(&w, &name, &value)) {
            buf_addf(&out, "%s{\"name\":", out.n > 1 ? "," : "");
            buf_add_slice(&out, name);
            buf_add_lit(&out, ",\"value\":");
            buf_add_slice(&out, value);
            buf_add_byte(&out, '}');
        }
        buf_add_byte(&out, ']');
    }
    q->parameters = mem_text(out.p, out.n);
    buf_free(&out);
    return TESELA_OK;
}

static void write_body(buf *out, const char *text, const char *parameters) {
    buf_add_lit(out, "{\"query\":");
    json_add_string(out, slice_str(text));
    buf_addf(out, ",\"parameters\":");
    buf_add_slice(out, slice_str(parameters));
    buf_add_byte(out, '}');
}

static exchange *query_exchange(tesela_container *k, const char *text, const char *parameters) {
    exchange *x = client__container_exchange(k, "POST", "docs", true);
    buf_add_lit(&x->path, "/docs");
    client__exchange_text(x, "Content-Type", "application/query+json");
    client__exchange_text(x, "x-ms-documentdb-isquery", "True");
    x->has_body = true;
    write_body(&x->body, text, parameters);
    return x;
}

/* ---- one logical partition ---- */

static tesela_status fill_single(tesela_cursor *cursor, tesela_error *error) {
    query *q = cursor->state;
    if (q->last) {
        return TESELA_DONE;
    }
    exchange *x = query_exchange(q->container, q->text, q->parameters);
    client__exchange_text(x, "x-ms-documentdb-partitionkey", q->key);
    client__exchange_field(x, "x-ms-continuation", buf_view(&q->token));
    client__exchange_text(x, "x-ms-consistency-level", q->consistency);
    if (q->session_token) {
        client__exchange_text(x, "x-ms-session-token", q->session_token);
        x->own_session = true;
    }
    if (q->page_items) {
        client__exchange_number(x, "x-ms-max-item-count", q->page_items);
    }
    tesela_status status = client__exchange_run(x, error);
    client__cursor_count(cursor, x);
    if (status == TESELA_OK && client__cursor_add_all(cursor, client__response_body(x->response), "Documents") < 0) {
        status = client__fail(error, TESELA_BAD_RESPONSE, "A page of the query has no list of Documents.");
    }
    if (status == TESELA_OK) {
        buf_clear(&q->token);
        buf_add_slice(&q->token, client__response_field(x->response, "x-ms-continuation"));
        q->last = q->token.n == 0;
    }
    client__exchange_free(x);
    return status;
}

/* ---- the plan ---- */

static exchange *plan_exchange(tesela_container *k, const char *text, const char *parameters) {
    exchange *x = query_exchange(k, text, parameters);
    client__exchange_text(x, "x-ms-cosmos-is-query-plan-request", "True");
    client__exchange_text(x, "x-ms-cosmos-supported-query-features", FEATURES);
    client__exchange_text(x, "x-ms-cosmos-query-version", "1.4");
    client__exchange_text(x, "x-ms-documentdb-query-enablecrosspartition", "True");
    return x;
}

tesela_status tesela_query_plan(tesela_container *k, const char *text, const char *parameters, tesela_response **response_out,
                                tesela_error *error) {
    query q = {0};
    if (response_out) {
        *response_out = NULL;
    }
    if (!text || !bson_utf8_validate(text, strlen(text), false)) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The query is not UTF-8.");
    }
    tesela_status status = copy_parameters(&q, parameters, error);
    if (status == TESELA_OK) {
        status = client__exchange_finish(plan_exchange(k, text, q.parameters), response_out, error);
    }
    free(q.parameters);
    return status;
}

static tesela_status read_plan(query *q, tesela_cursor *cursor, tesela_error *error) {
    exchange *x = plan_exchange(q->container, q->text, q->parameters);
    tesela_status status = client__exchange_run(x, error);
    client__cursor_count(cursor, x);
    if (status == TESELA_OK) {
        client__plan_free(&q->plan);
        status = client__plan_read(client__response_body(x->response), &q->plan, error);
    }
    client__exchange_free(x);
    return status;
}

/* ---- beginning across ranges ---- */

/* The rewritten query, with a condition that is always true in the place of where an ORDER BY would be resumed. */
static char *final_text(const query *q) {
    const char *text = q->plan.rewritten ? q->plan.rewritten : q->text, *at = strstr(text, placeholder);
    buf out = buf_init(8 << 20);
    if (at) {
        buf_add(&out, text, (size_t)(at - text));
        buf_add_lit(&out, "true");
        text = at + sizeof placeholder - 1;
    }
    buf_add_slice(&out, slice_str(text));
    char *copy = mem_text(out.p ? out.p : "", out.n);
    buf_free(&out);
    return copy;
}

static bool overlaps_plan(const query_plan *p, const routing_range *g) {
    for (size_t i = 0; i < p->ranges_n; i++) {
        const plan_range *r = &p->ranges[i];
        int c = epk_cmp(&g->min, &r->max);
        if (epk_cmp(&r->min, &g->max) < 0 && (c < 0 || (c == 0 && r->max_included))) {
            return true;
        }
    }
    return false;
}

static void add_prefix_producers(query *q, const routing *r) {
    epk min, max;
    size_t first;
    epk_prefix_range(&r->definition, &q->prefix_key, &min, &max);
    size_t n = client__routing_overlap(r, &min, &max, &first);
    for (size_t i = first; i < first + n; i++) {
        const routing_range *g = &r->ranges[i];
        client__producers_add(&q->rows, epk_cmp(&g->min, &min) > 0 ? &g->min : &min, epk_cmp(&g->max, &max) < 0 ? &g->max : &max, false);
    }
}

static bool read_position(query *q, slice one) {
    epk min, max;
    buf text = buf_init(64 * 1024);
    bool good = json_text(json_member(one, "min"), &text) && epk_parse(buf_view(&text), &min);
    buf_clear(&text);
    good = good && json_text(json_member(one, "max"), &text) && epk_parse(buf_view(&text), &max) && epk_cmp(&min, &max) < 0;
    if (good) {
        producer *d = client__producers_add(&q->rows, &min, &max, !q->prefix);
        buf_clear(&text);
        d->token = json_text(json_member(one, "token"), &text) ? mem_text(text.p ? text.p : "", text.n) : NULL;
        d->skip = (size_t)json_whole(json_member(one, "skip"), 0, INT32_MAX, 0);
    }
    buf_free(&text);
    return good;
}

static tesela_status add_continued(query *q, tesela_error *error) {
    slice text = slice_str(q->continuation), one;
    json_walk w;
    bool good = json_number(json_member(text, "version"), 0) == 1 && json_enter(json_member(text, "ranges"), &w);
    while (good && json_next(&w, NULL, &one)) {
        good = read_position(q, one);
    }
    if (client__plan_combines(&q->plan)) {
        return client__fail(error, TESELA_BAD_ARGUMENT,
                            "A query across partitions with DISTINCT, GROUP BY, aggregates or an order by vector distance cannot be "
                            "continued: the continuation would have to hold all values that it has seen.");
    }
    if (!good || !q->rows.n || w.broken) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The continuation does not belong to this query.");
    }
    q->skip = json_whole(json_member(text, "offset"), 0, INT64_C(1) << 53, 0);
    q->left = json_whole(json_member(text, "left"), 0, INT64_C(1) << 53, -1);
    return TESELA_OK;
}

static void add_producers(query *q, const routing *r) {
    if (q->prefix) {
        add_prefix_producers(q, r);
        return;
    }
    for (size_t i = 0; i < r->n; i++) {
        if (overlaps_plan(&q->plan, &r->ranges[i])) {
            client__producers_add(&q->rows, &r->ranges[i].min, &r->ranges[i].max, true);
        }
    }
}

static void set_counts(query *q) {
    const query_plan *p = &q->plan;
    q->skip = p->offset > 0 ? p->offset : 0;
    q->left = p->limit >= 0 ? p->limit : -1;
    if (p->top >= 0 && (q->left < 0 || p->top < q->left)) {
        q->left = p->top;
    }
}

static void set_up_rows(query *q, tesela_cursor *cursor) {
    producers *p = &q->rows;
    buf body = buf_init(CLIENT_REQUEST_BYTES_MAX);
    char *text = final_text(q);
    write_body(&body, text, q->parameters);
    free(text);
    p->container = q->container;
    p->body = mem_text(body.p, body.n);
    p->consistency = q->consistency;
    p->session_token = q->session_token;
    p->page_items = q->page_items;
    p->parallelism = q->parallelism < 0 ? INT_MAX : q->parallelism;
    p->buffered_max = q->buffered_items > 0 ? q->buffered_items : INT_MAX;
    p->cursor = cursor;
    buf_free(&body);
}

static tesela_status begin(query *q, tesela_cursor *cursor, tesela_error *error) {
    routing *r;
    tesela_status status = read_plan(q, cursor, error);
    if (status == TESELA_OK) {
        status = client__routing_take(q->container, &r, error);
    }
    if (status != TESELA_OK) {
        return status;
    }
    set_up_rows(q, cursor);
    set_counts(q);
    if (q->continuation) {
        status = add_continued(q, error);
    } else {
        add_producers(q, r);
    }
    client__routing_give(r);
    if (q->plan.aggregates_n || q->plan.aliases_n || q->plan.grouped) {
        q->combiner = client__combiner_new(&q->plan, q->memory);
    }
    if (q->plan.distinct) {
        q->distinct = client__distinct_new(q->memory);
    }
    q->unordered = q->unordered && !q->plan.orders_n && !client__plan_combines(&q->plan);
    q->begun = status == TESELA_OK;
    return status;
}

/* ---- rows in order ---- */

/* The values of ORDER BY of a producer's first row. */
static bool read_order(slice row, buf *order) {
    json_root root;
    if (!order->n) {
        slice items = json_member(row, "orderByItems");
        return items.n && json_to_bson(items, NULL, order, &root, NULL) == OK && root == JSON_ARRAY;
    }
    return true;
}

static int compare_orders(const query_plan *p, slice a, slice b) {
    doc_walk v, w;
    doc_element x, y, item, other;
    if (!doc_walk_init(&v, a) || !doc_walk_init(&w, b)) {
        return 0;
    }
    for (size_t i = 0; i < p->orders_n && doc_walk_next(&v, &x) && doc_walk_next(&w, &y); i++) {
        bool has = doc_find_member(x.value, SLICE_LIT("item"), &item), has_other = doc_find_member(y.value, SLICE_LIT("item"), &other);
        int c = client__value_compare(has ? &item : NULL, has_other ? &other : NULL);
        if (c) {
            return p->descending[i] ? -c : c;
        }
    }
    return 0;
}

/* The producer whose first row comes next; ties go to the one whose range comes first. rows.n: none has one. */
static tesela_status least(query *q, size_t *at_out, slice *row_out, tesela_error *error) {
    producers *p = &q->rows;
    size_t best;
    unsigned changes;
    do {
        changes = p->changes;
        best = p->n;
        for (size_t i = 0; i < p->n; i++) {
            slice row;
            tesela_status status = client__producers_head(p, i, &row, error);
            if (status != TESELA_OK) {
                return status;
            }
            if (!row.n) {
                continue;
            }
            if (!read_order(row, &p->list[i]->order)) {
                return client__fail(error, TESELA_BAD_RESPONSE, "A row of the query lacks its orderByItems.");
            }
            if (best >= p->n || compare_orders(&q->plan, buf_view(&p->list[i]->order), buf_view(&p->list[best]->order)) < 0) {
                best = i;
                *row_out = row;
            }
        }
    } while (changes != p->changes);
    *at_out = best;
    return TESELA_OK;
}

/* In the order of ranges. */
static tesela_status following(query *q, size_t *at_out, slice *row_out, tesela_error *error) {
    producers *p = &q->rows;
    size_t i = 0;
    for (; i < p->n; i++) {
        producer *d = p->list[i];
        if (d->started && d->done && d->at == d->rows_n && !d->flight) {
            continue;
        }
        tesela_status status = client__producers_head(p, i, row_out, error);
        if (status != TESELA_OK || row_out->n) {
            *at_out = i;
            return status;
        }
    }
    *at_out = i;
    return TESELA_OK;
}

static tesela_status whichever(query *q, size_t *at_out, slice *row_out, tesela_error *error) {
    tesela_status status = client__producers_any(&q->rows, at_out, error);
    if (status == TESELA_OK && *at_out < q->rows.n) {
        const producer *d = q->rows.list[*at_out];
        *row_out = d->rows[d->at];
    }
    return status;
}

/* The next row of all ranges, in the query's order; empty: no more. `at_out` is its producer, to be popped when the row was used. */
static tesela_status next_row(query *q, size_t *at_out, slice *row_out, tesela_error *error) {
    *row_out = SLICE_EMPTY;
    bool merged = q->plan.orders_n && !q->plan.non_streaming;
    tesela_status status = merged         ? least(q, at_out, row_out, error)
                           : q->unordered ? whichever(q, at_out, row_out, error)
                                          : following(q, at_out, row_out, error);
    if (status == TESELA_OK && *at_out >= q->rows.n) {
        *row_out = SLICE_EMPTY;
    }
    return status;
}

/* ---- orders that need all rows: by vector distance ---- */

static int compare_sorted(const void *a, const void *b, void *plan) {
    const sorted_row *x = a, *y = b;
    int c = compare_orders(plan, buf_view(&x->order), buf_view(&y->order));
    return c ? c : (x->number > y->number) - (x->number < y->number);
}

static tesela_status keep_sorted(query *q, slice row, tesela_error *error) {
    slice payload = json_member(row, "payload");
    if ((q->sorted_n & (q->sorted_n - 1)) == 0) {
        q->sorted = mem_resize(q->sorted, (q->sorted_n ? q->sorted_n * 2 : 1) * sizeof *q->sorted);
    }
    sorted_row *s = &q->sorted[q->sorted_n];
    *s = (sorted_row){
        .text = mem_text(payload.n ? payload.p : "", payload.n), .n = payload.n, .number = q->sorted_n, .order = buf_init(1 << 20)};
    q->sorted_n++;
    q->sorted_held += sizeof *s + row.n * 2;
    if (!read_order(row, &s->order)) {
        return client__fail(error, TESELA_BAD_RESPONSE, "A row of the query lacks its orderByItems.");
    }
    if (q->sorted_n > NON_STREAMING_ROWS_MAX || q->sorted_held > q->memory) {
        return client__fail(error, TESELA_LIMIT, "The query sorts more rows than the client keeps; give it a smaller TOP or LIMIT.");
    }
    return TESELA_OK;
}

/* Takes all rows into the combiner or the sort. */
static tesela_status gather(query *q, tesela_error *error) {
    slice row;
    size_t at;
    for (;;) {
        tesela_status status = next_row(q, &at, &row, error);
        if (status != TESELA_OK) {
            return status;
        }
        if (!row.n) {
            break;
        }
        status = q->combiner ? client__combiner_add(q->combiner, row, error) : keep_sorted(q, row, error);
        if (status != TESELA_OK) {
            return status;
        }
        client__producers_pop(&q->rows, at);
    }
    if (q->sorted_n) {
        qsort_r(q->sorted, q->sorted_n, sizeof *q->sorted, compare_sorted, &q->plan);
    }
    q->gathered = true;
    return TESELA_OK;
}

/* ---- the page ---- */

/* Counts a row against OFFSET and LIMIT, and adds it. */
static tesela_status give(query *q, tesela_cursor *cursor, slice row, tesela_error *error) {
    bool new = true;
    if (q->distinct) {
        tesela_status status = client__distinct_add(q->distinct, row, &new, error);
        if (status != TESELA_OK) {
            return status;
        }
    }
    if (!new) {
        return TESELA_OK;
    }
    if (q->skip > 0) {
        q->skip--;
    } else if (q->left != 0) {
        q->left -= q->left > 0;
        client__cursor_add(cursor, row);
    }
    return TESELA_OK;
}

static bool page_is_full(const query *q, const tesela_cursor *cursor) {
    size_t most = q->page_items > 0 ? (size_t)q->page_items : PAGE_ITEMS;
    if (q->unordered) { /* the server's page: a continuation after it need not ask for a part of it again */
        return q->left == 0 || (cursor->rows_n && q->rows.list[q->rows.turn]->at == q->rows.list[q->rows.turn]->rows_n);
    }
    return cursor->rows_n >= most || cursor->text.n >= PAGE_BYTES || q->left == 0;
}

/* Rows that gather has taken. */
static tesela_status give_gathered(query *q, tesela_cursor *cursor, tesela_error *error) {
    tesela_status status = q->gathered ? TESELA_OK : gather(q, error);
    buf row = buf_init(q->memory);
    while (status == TESELA_OK && !page_is_full(q, cursor)) {
        buf_clear(&row);
        if (q->combiner) {
            if (q->combined == client__combiner_count(q->combiner)) {
                break;
            }
            if (client__combiner_write(q->combiner, q->combined++, &row)) {
                status = give(q, cursor, buf_view(&row), error);
            }
        } else {
            if (q->sorted_at == q->sorted_n) {
                break;
            }
            const sorted_row *s = &q->sorted[q->sorted_at++];
            status = s->n ? give(q, cursor, slice_of(s->text, s->n), error) : TESELA_OK;
        }
    }
    buf_free(&row);
    return status == TESELA_OK && !cursor->rows_n ? TESELA_DONE : status;
}

/* Rows as they come. What an error interrupts is given out first; the next call meets the error again, or not. */
static tesela_status give_streamed(query *q, tesela_cursor *cursor, tesela_error *error) {
    slice row;
    size_t at;
    while (!page_is_full(q, cursor)) {
        tesela_status status = next_row(q, &at, &row, error);
        if (status == TESELA_OK && !row.n) {
            return cursor->rows_n ? TESELA_OK : TESELA_DONE;
        }
        if (status == TESELA_OK) {
            slice value = q->plan.orders_n ? json_member(row, "payload") : row;
            status = value.n ? give(q, cursor, value, error) : TESELA_OK;
        }
        if (status != TESELA_OK) {
            return cursor->rows_n ? TESELA_OK : status;
        }
        client__producers_pop(&q->rows, at);
    }
    return cursor->rows_n ? TESELA_OK : TESELA_DONE;
}

static tesela_status fill_query(tesela_cursor *cursor, tesela_error *error) {
    query *q = cursor->state;
    if (q->key) {
        return fill_single(cursor, error);
    }
    if (!q->begun) {
        tesela_status status = begin(q, cursor, error);
        if (status != TESELA_OK) {
            return status;
        }
    }
    return q->combiner || q->plan.non_streaming ? give_gathered(q, cursor, error) : give_streamed(q, cursor, error);
}

/* ---- continuation ---- */

/* Each range that is not at its end: the continuation of the page that is held, and how many of its rows were given out. */
static void write_position(const producer *d, buf *out) {
    const char *token = d->at < d->rows_n ? d->before : d->token;
    buf_add_lit(out, "{\"min\":\"");
    epk_write(out, &d->min);
    buf_add_lit(out, "\",\"max\":\"");
    epk_write(out, &d->max);
    buf_add_byte(out, '"');
    if (token) {
        buf_add_lit(out, ",\"token\":");
        json_add_string(out, slice_str(token));
    }
    buf_addf(out, ",\"skip\":%zu}", d->at < d->rows_n ? d->at : d->skip);
}

static void continue_query(tesela_cursor *cursor, buf *out) {
    const query *q = cursor->state;
    size_t open = 0;
    if (q->key) {
        buf_add_slice(out, buf_view(&q->token));
        return;
    }
    if (!q->begun || client__plan_combines(&q->plan) || q->left == 0) {
        return;
    }
    buf_add_lit(out, "{\"version\":1,\"ranges\":[");
    for (size_t i = 0; i < q->rows.n; i++) {
        const producer *d = q->rows.list[i];
        if (d->started && d->done && d->at == d->rows_n && !d->flight) {
            continue;
        }
        if (open++) {
            buf_add_byte(out, ',');
        }
        write_position(d, out);
    }
    buf_addf(out, "],\"offset\":%lld,\"left\":%lld}", (long long)q->skip, (long long)q->left);
    if (!open) {
        out->n = 0;
    }
}

static void free_query(void *state) {
    query *q = state;
    client__combiner_free(q->combiner);
    client__distinct_free(q->distinct);
    for (size_t i = 0; i < q->sorted_n; i++) {
        free(q->sorted[i].text);
        buf_free(&q->sorted[i].order);
    }
    free(q->sorted);
    client__producers_free(&q->rows);
    client__plan_free(&q->plan);
    buf_free(&q->token);
    free(q->text);
    free(q->parameters);
    free(q->key);
    free(q->prefix_texts);
    free(q->continuation);
    free(q->consistency);
    free(q->session_token);
    free(q);
}

static const cursor_source query_source = {fill_query, continue_query, free_query};

/* ---- opening ---- */

static char *copy(const char *text) {
    return text ? mem_text(text, strlen(text)) : NULL;
}

/* The texts of a prefix key are kept with the query. */
static void keep_prefix(query *q, const pkey *key) {
    size_t n = 0;
    for (size_t i = 0; i < key->n; i++) {
        n += key->values[i].text.n;
    }
    q->prefix = true;
    q->prefix_key = *key;
    q->prefix_texts = mem_alloc(n ? n : 1);
    char *at = q->prefix_texts;
    for (size_t i = 0; i < key->n; i++) {
        slice *text = &q->prefix_key.values[i].text;
        memcpy(at, text->n ? text->p : "", text->n);
        text->p = at;
        at += text->n;
    }
}

static tesela_status set_key(query *q, const tesela_key *given, tesela_error *error) {
    pkey key;
    routing *r;
    if (!client__key_of(given, &key)) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The partition key has a text that is not UTF-8, or a number that is not finite.");
    }
    tesela_status status = client__routing_take(q->container, &r, error);
    if (status != TESELA_OK) {
        return status;
    }
    if (key.n > r->definition.n) {
        status = client__fail(error, TESELA_BAD_ARGUMENT, "The partition key has more components than the container's.");
    } else if (key.n < r->definition.n) {
        keep_prefix(q, &key);
    } else {
        buf header = buf_init(64 * 1024);
        pkey_write(&header, &key);
        q->key = mem_text(header.p, header.n);
        buf_free(&header);
    }
    client__routing_give(r);
    return status;
}

static void set_options(query *q, const tesela_query_options *o) {
    q->page_items = o->page_items;
    q->parallelism = o->parallelism;
    q->buffered_items = o->buffered_items;
    q->unordered = o->unordered;
    q->continuation = copy(o->continuation);
    q->consistency = copy(o->consistency ? o->consistency : q->container->client->consistency);
    q->session_token = copy(o->session_token);
    q->memory = o->memory ? o->memory : 256u << 20;
}

tesela_status tesela_query(tesela_container *k, const char *text, const char *parameters, const tesela_query_options *options,
                           tesela_cursor **cursor_out, tesela_error *error) {
    static const tesela_query_options defaults;
    *cursor_out = NULL;
    if (!text || !bson_utf8_validate(text, strlen(text), false)) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The query is not UTF-8.");
    }
    query *q = mem_zero(sizeof *q);
    q->container = k;
    q->text = copy(text);
    q->token = buf_init(1 << 20);
    set_options(q, options ? options : &defaults);
    tesela_status status = copy_parameters(q, parameters, error);
    if (status == TESELA_OK && options && options->key) {
        status = set_key(q, options->key, error);
    }
    if (status != TESELA_OK) {
        free_query(q);
        return status;
    }
    if (q->key && q->continuation) {
        buf_add_slice(&q->token, slice_str(q->continuation));
    }
    *cursor_out = client__cursor_new(&query_source, q, k->client->response_bytes * 2);
    return TESELA_OK;
}
