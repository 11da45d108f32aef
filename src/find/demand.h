/* demand.h — demands: conditions in terms of index entries, independent of a query language.
 *
 * A demand is a list of *spans*. A span is the entries of a path with values in [`from`, `to`), spelled as in index/entry_key.h. An item
 * that meets the condition has at least one entry in one of the spans. If the demand is *exact*, every item with such an entry meets the
 * condition, so the item need not be loaded to know. Callers make demands from their own conditions (query/demand.c makes them from
 * WHERE). */
#pragma once

#include "base/limits.h"
#include "index/policy.h"

typedef struct find_span {
    index_path path;
    slice from, to; /* spelled values; `to` empty: no upper bound */
    bool point;     /* a single value: its entries come in number order */
} find_span;

typedef struct find_demand {
    find_span *spans;
    size_t n; /* 0: no item can meet it */
    bool exact;
    const struct find_demand *alone; /* of keys: a narrower demand, which holds if no item has several keys; NULL: none */
    const void *condition;           /* the caller's; not used here */
    const index_step *steps;         /* the path of all spans; NULL: they have different paths */
    size_t steps_n;
} find_demand;

enum { FIND_DEMANDS_MAX = 32 };

typedef struct find_demands {
    find_demand *list; /* at most FIND_DEMANDS_MAX; an item must meet all of them */
    size_t n;
    bool whole; /* together they are the whole condition: an item that meets them all meets it (if all are exact) */
} find_demands;

/* A property's path as in the index: from the item's root, through members and array elements. */
typedef struct find_path {
    index_step steps[LIMIT_PATH_DEPTH];
    size_t n;
    bool single; /* each item has at most one value there */
} find_path;

/* An order by one or several paths. */
typedef struct find_order_part {
    find_path path;
    bool known; /* false: the order is not by a path, and the index cannot serve it */
    bool descending;
    bool bounded; /* by a key index: the order is that of the entries only within the demand on its path, and if each item has one key */
} find_order_part;

typedef struct find_order {
    const find_order_part *parts;
    size_t n; /* 0: no order requested */
} find_order;

/* The composite index that serves an order over several paths, or NULL. *backward_out: it must be walked backward. */
const index_composite *find_composite_for(const find_order *order, const index_policy *policy, bool *backward_out);

/* Whether a spelled value is before the span's end. */
static inline bool find_within(const find_span *span, slice value) {
    return span->to.n == 0 || slice_cmp(value, span->to) < 0;
}

static inline bool find_is_point(const find_demand *d) {
    return d->n == 1 && d->spans[0].point;
}

static inline bool find_is_of_path(const find_demand *d, index_path path) {
    return d->steps && index_path_of(d->steps, d->steps_n) == path;
}

/* The upper bound of all spellings with this prefix; empty if there is none. */
slice find_prefix_end(arena *a, slice spelled);

/* The length of the prefix that all spellings of a cluster share. A cluster is the entries of one value, or of values that the index cannot
 * distinguish (long strings with a common prefix, all arrays, all objects). */
size_t find_cluster_bytes(slice spelled);
