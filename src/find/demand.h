/* demand.h — conditions as index entries tell them: what is asked of the index, without a query language.
 *
 * A demand is a list of *spans*: entries of a path with values from `from` to before `to`, spelled as index/key.h spells them. An item that
 * fulfils the condition has at least one entry in one of the spans. If the demand is *exact*, an item with such an entry fulfils it, so
 * that nobody needs to load the item to know. Whoever asks makes demands from conditions of its own (query/demand.c does from WHERE). */
#pragma once

#include "base/limits.h"
#include "index/policy.h"

typedef struct find_span {
    index_path path;
    slice from, to; /* spelled values; `to` empty: up to the end */
    bool point;     /* one value: entries come in number order */
} find_span;

typedef struct find_demand {
    find_span *spans;
    size_t n; /* 0: nothing can fulfil it */
    bool exact;
    const void *condition;   /* the asker's own; not looked at here */
    const index_step *steps; /* of the one path that all spans are of; NULL: of several */
    size_t steps_n;
} find_demand;

enum { FIND_DEMANDS_MAX = 32 };

typedef struct find_demands {
    find_demand *list; /* at most FIND_DEMANDS_MAX: an item must fulfil all of them */
    size_t n;
    bool whole; /* they are all of the condition: an item that fulfils all of them, exactly, is let through */
} find_demands;

/* A property's path as the index has it: below the item, through elements of arrays. */
typedef struct find_path {
    index_step steps[LIMIT_PATH_DEPTH];
    size_t n;
    bool single; /* each item has at most one value there */
} find_path;

/* An order by one or several paths. */
typedef struct find_order_part {
    find_path path;
    bool known; /* it is a path; otherwise the index does not have the order */
    bool descending;
} find_order_part;

typedef struct find_order {
    const find_order_part *parts;
    size_t n; /* 0: none is asked for */
} find_order;

/* The composite index that an order over several paths can be walked by, or NULL. *backward_out: all directions turned round. */
const index_composite *find_composite_for(const find_order *order, const index_policy *policy, bool *backward_out);

/* Whether a spelled value lies before the span's end. */
static inline bool find_within(const find_span *span, slice value) {
    return span->to.n == 0 || slice_cmp(value, span->to) < 0;
}

static inline bool find_is_point(const find_demand *d) {
    return d->n == 1 && d->spans[0].point;
}

static inline bool find_is_of_path(const find_demand *d, index_path path) {
    return d->steps && index_path_of(d->steps, d->steps_n) == path;
}

/* The first spelling beyond all that begin with this one; empty: there is none. */
slice find_beyond(arena *a, slice spelled);

/* How many bytes the spellings of one cluster share: those of one value, or those that the index does not tell apart (long strings that
 * begin alike, all arrays, all objects). */
size_t find_cluster_bytes(slice spelled);
