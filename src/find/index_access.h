/* index_access.h — the access path to the items of one range: chooses how the index serves a query's demands and order.
 *
 * This layer lies between index entries (item/view.h) and the query language: it knows demands, orders and spelled values, but no query
 * language. A feed calls it for each range that it reads (item_find in item/item.h), on the feed's thread.
 *
 * Ways to find items:
 *   by number   collects the entries of the demand that has the fewest, intersects others with them where that is cheap, and offers the
 *               items in number order, the same order as a scan
 *   in order    walks the entries of the ORDER BY path, or of a composite index, and offers items in that order until the visitor has
 *               enough
 *   by key      groups and distinct values in the order of their keys: walks the entries of the path that keys begin with, from the last
 *               key of the previous page, until there are enough keys for a page
 *   each key    one item of each key of an index, with the number of those that have the key
 *   covered     loads no items: the entries contain everything that the query needs
 *   nearest     vector search (nearest.h)
 *
 * The choice among these and a scan is made by counting entries, only as far as the choice is worth, so the same data gives the same
 * choice, up to some uses after entries were removed (long.c). The visitor must still evaluate the condition on every item found: inexact
 * demands, and demands that were not intersected, let through items that do not meet the condition. */
#pragma once

#include "find/demand.h"
#include "find/nearest.h"
#include "item/view.h"

typedef enum find_way {
    WAY_SCAN, /* all items, by number */
    WAY_BY_NUMBER,
    WAY_IN_ORDER,
    WAY_COVERED, /* no items loaded: entries, or their number, are enough */
    WAY_NEAREST, /* items that a vector graph finds */
    WAY_BY_KEY,
} find_way;

/* A value as the index spells it; if the index does not store it in full, the common prefix of all values that it cannot distinguish. */
typedef struct find_spelled {
    slice bytes;
    bool whole;
    bool undefined;
} find_spelled;

/* ---- the request ---- */

/* An ordered walk begins after this row. */
typedef struct find_start {
    bool given;
    const find_spelled *values; /* one for each part of the order */
    uint64_t number;
} find_start;

/* What a covered query needs: aggregates, groups or distinct values of one path, or only counts. */
typedef struct find_cover {
    bool possible;     /* the query can be covered, and does not depend on the order of rows */
    bool path_given;   /* the query reads only `path` of an item */
    bool counts;       /* only the condition reads items: the number of matching items is enough */
    bool multiplicity; /* the number of items with each value matters */
    bool distinct;     /* each value is needed only once */
    find_path path;
} find_cover;

/* The path of the first value of group keys, or of distinct values. */
typedef struct find_lead {
    bool given;
    find_path path;
    bool alone;        /* the key consists of this value alone */
    bool once;         /* one row per value is enough; only with `alone` */
    bool only_defined; /* items without the path have no key */
    bool in_objects;   /* the key is an object with this value as a member; keys without the member sort last */
    bool sure;         /* every entry is certain to produce a row */
} find_lead;

/* The last key of the previous page: reading continues after it. */
typedef struct find_keys {
    bool given;
    bool defined;  /* its first value is not undefined */
    bool cut;      /* only a prefix of the key is known: keys with that prefix are read again, and not counted */
    slice spelled; /* common prefix of all spellings that the index cannot distinguish from its first value */
    size_t wanted; /* keys to read, at least this many from each range that has them; SIZE_MAX: all */
    bool many;     /* there are known to be more keys than wanted */
} find_keys;

/* One item of each key of a key index, in the place of all that have this key. For queries that need no more of an item than its key. */
typedef struct find_each {
    bool given;
    find_path path; /* of the key index */
    bool any;       /* items with arrays too: they are offered at each of their keys */
    slice separate; /* of keys that begin with this, spelled, every item is offered; empty: there are none */
} find_each;

typedef struct find_asked {
    bool conditional; /* the query has a condition; the demands are the parts of it that the index can serve */
    size_t wanted;    /* rows; SIZE_MAX: all */
    uint64_t given;   /* rows that earlier pages returned, for an ordered query */
    bool narrow;      /* collect items by a condition that few items meet; if there is none, fail with E_QUERY_TOO_LONG before any item is
                         offered: the caller then reads the rows in key order (item/rows.h), which is quicker for many of them */
    bool verified;    /* in the order of a key index: the visitor compares the key of each item with the entry's, find_turn.key */
    bool quick;       /* do only quick work; if it would take longer, fail with E_QUERY_TOO_LONG before any item is offered */
    find_order order;
    find_start start;
    find_cover cover;
    find_lead lead;
    find_keys key;
    find_each each;

    /* Rows to skip at the beginning of the order (OFFSET). They are counted by their entries, if each matching item has exactly one row. */
    bool skips;
    bool skips_lacking; /* rows of items without the order's path can be skipped too */
    uint64_t skip;      /* number of rows to skip */
} find_asked;

/* ---- the visitor ---- */

/* Callbacks in addition to item_visit, which the view has. */
typedef struct find_visitor {
    void *context;
    void (*before_load)(void *context); /* called before each item is loaded; may be NULL */
    void (*on_walk)(void *context);     /* called before an ordered walk begins; may be NULL */
    bool (*may_skip)(void *context);    /* called before each row is skipped; false: stop */
    size_t (*keys_held)(void *context); /* the number of keys that the visitor has seen */

    /* Called instead of offering items: `times` items have this spelled value. It is empty if they lack the path or, with `decided`, if
     * only their number matters and all of them meet the condition. False: stop. */
    bool (*on_value)(void *context, slice spelled, uint64_t times, bool decided);
} find_visitor;

/* State that finder and visitor exchange with each item. */
typedef struct find_turn {
    bool in_order;       /* no later item sorts before this one */
    bool only_undefined; /* take only rows of this item whose first order value, or lead, is undefined */
    bool only_empty;     /* take only rows of this item without any members */
    slice key;           /* the entry of a key index that led to this item, if an item may have several: the visitor takes the item only
                            at the key that is its place in the order. Empty: any */
    uint64_t times;      /* the number of items that this one stands for, with find_each; 0: itself */
    bool beyond;         /* set by the visitor: it needs no later item of this order */
    uint64_t matched;    /* counted by the visitor: rows that belong to this page or a later one */
} find_turn;

/* ---- results ---- */

typedef struct find_reached {
    uint64_t skipped;                   /* rows skipped so far */
    const find_spelled *stopped_values; /* set if may_skip returned false: the next page begins after these values, one for each part of
                                           the order, and `stopped_number`; else NULL */
    uint64_t stopped_number;
    bool by_key;                       /* the last range was read in key order */
    bool bounded;                      /* ranges were read only up to `bound`, so only keys up to it are complete */
    char bound[INDEX_VALUE_BYTES_MAX]; /* prefix of a spelling, as in find_keys */
    size_t bound_n;                    /* 0: no key is complete */
} find_reached;

/* How the last range was read: for explain output and metrics. */
typedef struct find_report {
    find_way way;
    const find_demand *used;   /* the demand whose entries were collected */
    const find_demand *others; /* all demands */
    size_t others_n;
    uint32_t intersected; /* bit set of the demands in `others` that were intersected */
    const index_composite *composite;
    find_nearest nearest;
    find_graph_use graph; /* valid if a graph was to be searched */
    bool backward;        /* the order was walked backward */
    bool too_many;        /* scanned because every demand has too many entries */
    uint64_t entries;     /* index entries read, over all ranges */
    uint64_t passed;      /* found items of this page that another demand excluded, over all ranges */
} find_report;

struct find_access {
    find_asked asked;
    find_visitor visitor;
    find_turn turn;
    find_reached reached;
    find_report report;
};

/* All other members are zero. */
static inline void find_access_init(find_access *a, size_t wanted, const find_visitor *visitor) {
    memset(a, 0, sizeof *a);
    a->asked.wanted = wanted;
    a->visitor = *visitor;
}

/* Offers the view's items to its visitor (item_find in item/item.h explains *found_out). `demands` and `nearest` fit the view's index; they
 * must live as long as the report is used. */
MUST_CHECK err find_items(find_access *a, item_view *v, const find_demands *demands, const find_nearest *nearest, bool *found_out);

/* The entries of each demand in the view, up to `most`: about as many items meet it, fewer if items have several. For estimates; offers
 * nothing. Adds the entries read to *entries_out. */
MUST_CHECK err find_count(item_view *v, const find_demands *demands, size_t most, size_t *counts_out, uint64_t *entries_out);
