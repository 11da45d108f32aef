#include "query/estimate.h"

#include <math.h>

#include "item/layout.h"
#include "query/demand.h"
#include "query/order_by.h"
#include "throughput/charge.h"

enum {
    COUNTED_MAX = 100000,      /* entries of one condition in one range */
    COUNTED_ALL_MAX = 1000000, /* entries in all ranges: about a second; beyond it ranges are taken to be like those before */
    SYSTEM_BYTES = 200,        /* of a row's JSON: _rid, _etag and the like */
};

typedef struct estimating {
    const query_estimate_ask *ask;
    query_estimate *to;
    query_runner runner;
    query_cost cost;
    const query_select *select;
    double bytes;           /* of all items */
    uint64_t counted_items; /* items of the ranges that were counted */
    double first_rows;      /* rows that the first page still has room for */
    bool unknown;           /* some range's matches were not counted */
} estimating;

/* ---- matches of one range ---- */

/* Each demand leaves its part of the items, whatever the others leave. */
static double together(const size_t *counts, size_t n, double items) {
    double part = 1;
    for (size_t i = 0; i < n; i++) {
        part *= items > 0 ? fmin((double)counts[i] / items, 1) : 0;
    }
    return part * items;
}

static bool is_exact(const find_demands *demands) {
    bool exact = demands->whole && demands->n == 1;
    return exact && demands->list[0].exact && demands->list[0].n <= 1;
}

/* Counts entries where there are any; else takes all items. */
static err count_matches(estimating *e, item_view *v, double *matches_out) {
    size_t counts[FIND_DEMANDS_MAX] = {0};
    query_estimate *to = e->to;
    *matches_out = (double)v->items_n;
    if (!e->select->where) {
        return OK;
    }
    bool indexed = v->index && !(v->partition && !v->local);
    find_demands demands = v->index ? query_demands_of(&e->runner, &v->index->policy) : (find_demands){0};
    TRY(e->runner.code);
    to->rest = to->rest || !demands.whole;
    if (!indexed || demands.n == 0) {
        e->unknown = true;
        return OK;
    }
    if (to->counted > COUNTED_ALL_MAX && e->counted_items) {
        *matches_out *= (double)to->matches / (double)e->counted_items;
        to->capped = e->unknown = true;
        return OK;
    }
    TRY(find_count(v, &demands, COUNTED_MAX, counts, &to->counted));
    for (size_t i = 0; i < demands.n; i++) {
        to->capped = to->capped || counts[i] == COUNTED_MAX;
    }
    e->unknown = e->unknown || !is_exact(&demands) || v->filtered;
    *matches_out = together(counts, demands.n, (double)v->items_n);
    return OK;
}

/* ---- prices ---- */

static void add_items(const estimating *e, query_estimate_price *p, double n) {
    double weight = charge_query_weight(e->to->item_bytes);
    p->loaded += (uint64_t)llround(n);
    p->loaded_ru += charge_query_items(0, n * weight) * e->cost.factor;
}

/* Only whole items are priced by their size; rows of some properties are taken to be small. */
static void add_rows(const estimating *e, query_estimate_price *p, double n) {
    if (e->select->star) {
        p->rows_ru += n * charge_query_row_bytes(e->to->item_bytes + SYSTEM_BYTES) * e->cost.factor;
    }
}

static void add_ranges(const estimating *e, query_estimate_price *p, double n) {
    p->ranges += (uint64_t)n;
    p->ranges_ru += n * query_cost_base(&e->cost);
}

static void add_entries(const estimating *e, query_estimate_price *p, double n) {
    p->entries += (uint64_t)llround(n);
    p->entries_ru += fmax(0, n - CHARGE_ENTRIES_FREE) * CHARGE_ENTRY * e->cost.factor;
}

static void add_calls(const estimating *e, query_estimate_price *p, double items) {
    p->calls_ru += e->ask->query->udfs_n * items * CHARGE_UDF_CALL * e->cost.factor;
}

double query_estimate_ru(const query_estimate_price *p) {
    return p->ranges_ru + p->loaded_ru + p->entries_ru + p->rows_ru + p->search_ru + p->calls_ru;
}

/* ---- how many rows ---- */

/* Rows that TOP or LIMIT allow, with those that OFFSET skips. */
static double rows_asked(const query *q) {
    double most = q->limit >= 0 ? q->limit + fmax(q->offset, 0) : INFINITY;
    return q->top >= 0 ? fmin(q->top, most) : most;
}

/* Whether every page needs all matches. */
static bool needs_all(const estimating *e) {
    const query *q = e->ask->query;
    bool sorted = e->select->order_n && !e->cost.ordered && !e->cost.nearest.indexed;
    return q->aggregates || e->select->group_n || e->select->distinct || e->select->order_by_rank || sorted;
}

/* ---- each range ---- */

static void add_search(estimating *e, const item_view *v) {
    if (e->cost.nearest.meant) {
        double rows = fmin(rows_asked(e->ask->query), (double)e->ask->page_rows);
        double ru = charge_query_search((double)v->items_n, e->cost.nearest.list_per_row * rows) * e->cost.factor;
        e->to->first.search_ru += ru;
        e->to->all.search_ru += ru;
    }
}

/* The average of the range. */
static double item_bytes(const item_view *v) {
    double items = (double)atomic_load_explicit(&v->range->items, memory_order_relaxed);
    double stored = items > 0 ? (double)atomic_load_explicit(&v->range->bytes, memory_order_relaxed) / items : 0;
    return fmax(stored - LAYOUT_HEAD_BYTES, 0);
}

/* A page that streams ends in the range where it is full. */
static void add_range(estimating *e, const item_view *v, double matches) {
    query_estimate *to = e->to;
    bool everywhere = e->select->order_n || to->whole;
    if (everywhere || e->first_rows > 0 || to->ranges == 0) {
        add_ranges(e, &to->first, 1);
    }
    e->first_rows -= matches;
    to->ranges++;
    to->items += v->items_n;
    e->bytes += item_bytes(v) * (double)v->items_n;
    add_search(e, v);
}

static err look(void *context, item_view *v, bool *found_out) {
    estimating *e = context;
    double matches;
    *found_out = true;
    TRY(count_matches(e, v, &matches));
    add_range(e, v, matches);
    e->to->matches += (uint64_t)llround(matches);
    e->counted_items += v->items_n;
    return op_check(e->ask->op);
}

/* ---- the whole ---- */

/* `n` items on pages of `rows`: full pages, then the rest. */
static void add_pages(const estimating *e, query_estimate_price *p, double n, double rows) {
    query_estimate_price full = {0}, last = {0};
    double pages = floor(n / rows);
    add_items(e, &full, rows);
    add_items(e, &last, n - pages * rows);
    p->loaded += (uint64_t)llround(n);
    p->loaded_ru += pages * full.loaded_ru + last.loaded_ru;
    p->pages += (uint64_t)fmax(1, ceil(n / rows));
}

static void price_loaded(const estimating *e) {
    query_estimate *to = e->to;
    double matches = (double)to->matches, page = to->whole ? fmax(matches, 1) : (double)e->ask->page_rows;
    double wanted = to->whole ? matches : fmin(matches, rows_asked(e->ask->query));
    add_pages(e, &to->first, fmin(wanted, page), page);
    add_pages(e, &to->all, wanted, page);
    add_rows(e, &to->first, fmin(wanted, (double)e->ask->page_rows));
    add_rows(e, &to->all, wanted);
    add_calls(e, &to->first, fmin(wanted, page));
    add_calls(e, &to->all, wanted);
    double pages = (double)to->all.pages, ranges = (double)(wanted < matches ? to->first.ranges : to->ranges);
    add_ranges(e, &to->all, e->select->order_n || to->whole ? pages * ranges : ranges + pages - 1);
}

static void price(const estimating *e) {
    query_estimate *to = e->to;
    if (!to->covered) {
        price_loaded(e);
        return;
    }
    to->first.pages = 1;
    add_entries(e, &to->first, e->cost.multiplicity ? (double)to->matches : 0);
    to->all = to->first;
}

static void begin(estimating *e, const query_estimate_ask *ask, arena *row_arena) {
    query_runner_init(&e->runner, ask->query, ask->op, row_arena, clock_wall_ms(ask->items->clock));
    query_renew_steps(&e->runner, QUERY_ITEM_STEPS);
    query_cost_begin(&e->cost, &e->runner, ask->container, ask->cursor->partition != NULL);
    e->to->covered = e->cost.covered;
    e->to->whole = needs_all(e);
    e->to->joined = e->select->sources_n > 1;
    e->first_rows = fmin((double)ask->page_rows, rows_asked(ask->query));
}

err query_estimate_make(const query_estimate_ask *ask, query_estimate *estimate_out) {
    estimating e = {.ask = ask, .to = estimate_out, .select = ask->query->select};
    arena row_arena = arena_init_counted(ask->op->budget);
    *estimate_out = (query_estimate){0};
    begin(&e, ask, &row_arena);
    err code = e.select->order_n ? query_check_order(ask->op, ask->query, &e.cost.index->policy) : OK;
    if (code == OK && e.select->sources_n == 0) {
        estimate_out->ranges = 1;
        estimate_out->exact = true;
        estimate_out->first.pages = 1;
        add_ranges(&e, &estimate_out->first, 1);
        estimate_out->all = estimate_out->first;
    } else if (code == OK) {
        code = item_look(ask->items, ask->op, ask->container, ask->cursor, look, &e);
        estimate_out->item_bytes = estimate_out->items ? (size_t)(e.bytes / (double)estimate_out->items) : 0;
        estimate_out->exact = code == OK && !e.unknown;
        price(&e);
    }
    query_cost_end(&e.cost);
    arena_free(&row_arena);
    return code;
}
