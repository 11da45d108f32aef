/* access_int.h — what the parts of finding items share: access.c (by number, in order), access_keys.c (in the order of keys). For this
 * folder. */
#pragma once

#include "query/access.h"

enum {
    NEAR = 24, /* entries: to pass by so many costs as much as to seek */
    QUICK_ENTRIES = 64,
    SCAN_PER_LOAD = 4,
    SHAPES_WALKED_MAX = 512,
    ITEMS_PER_SHAPE = 16,
    SHAPES_ALL = 4098, /* more than items know (item/terms.c), and one for all others */
};

typedef struct refs {
    item_ref *list;
    size_t n, cap;
    size_t excluded;
} refs;

typedef struct finder {
    query_access *access;
    item_view *view;
    query_demands demands;
    refs probed; /* all items of `probed_of` behind `probed_after` */
    const query_demand *probed_of;
    uint64_t probed_after;
    bool decides;    /* all demands must be met: nobody asks the items afterwards */
    refs large;      /* items that have no entries, since they would have too many */
    unsigned looked; /* at so many entries since the last check */
    err code;        /* … whose result it is */
} finder;

/* A walk through the entries of a path, or of a composite index. */
typedef struct order_walk {
    finder *finder;
    index_path path;
    const index_composite *composite; /* NULL: one path */
    bool backward;
    bool undefined; /* items without the path have no entry, and are meant too: those of … */
    uint64_t *shapes;
    size_t shapes_n;
    query_demand_span *spans;
    size_t spans_n;
    slice start;        /* spelled; empty: from the beginning */
    slice start_beyond; /* the first spelling beyond all that begin so */
    bool start_whole;
    uint64_t start_number;
    bool skips;      /* entries tell which rows WHERE lets through */
    uint64_t enough; /* the walk ends when the visitor has matched so many; 0: it does not */
} order_walk;

/* ---- access.c ---- */

static inline bool query__within(const query_demand_span *span, slice value) {
    return span->to.n == 0 || slice_cmp(value, span->to) < 0;
}

bool query__next_entry(finder *f, item_lookup *l, item_entry *e); /* item_lookup_next; now and then others have their turn */
err query__close_lookup(const finder *f, item_lookup *l);
err query__offer(finder *f, item_ref ref);
err query__find_large(finder *f);
err query__read_span(finder *f, const query_demand_span *span, uint64_t after, refs *found, size_t most, size_t *n);
void query__bound_walk(order_walk *w, arena *a);
size_t query__shapes_worth(const finder *f);
err query__lacking_shapes(order_walk *w, size_t most, bool *whole_out);
err query__walk_undefined(order_walk *w);
bool query__give_value(finder *f, slice body, uint32_t ts, uint64_t times, bool decided);

/* ---- access_keys.c ---- */

err query__cover_path(finder *f, bool *found_out);   /* items are told by the entries of the one path that matters */
err query__in_key_order(finder *f, bool *found_out); /* items are loaded, in the order of the path that keys begin with */
