/* access.h — how a query finds the items of one range: which demands and which order the index answers, and what is left to look at.
 *
 * *By number*: the smallest demand's entries are collected, others are intersected with them
 * where that is cheap, and the items come in number order, as without an index. *In order*: the entries of the ORDER BY's path, or of a
 * composite index, are walked, and items come in the order asked for, until whoever gets them has enough. *By key*: groups and distinct
 * values are shown in the order of their keys, so the entries of the path that keys begin with (cover.h) are walked from the last key that
 * was shown, until there are enough for a page. Vectors have a way of their own (nearest.h). Which one, and whether any, is decided by
 * counting entries, never further than deciding is worth, so the same data gives the same choice. Every item that is found is still asked
 * its WHERE. */
#pragma once

#include "item/view.h"
#include "query/cover.h"
#include "query/nearest.h"

typedef enum query_way {
    WAY_SCAN, /* all items, by number */
    WAY_BY_NUMBER,
    WAY_IN_ORDER,
    WAY_COVERED, /* no items: their entries tell all, or their number does */
    WAY_NEAREST, /* those that a graph of vectors finds */
    WAY_BY_KEY,
} query_way;

/* Where an ordered walk begins: behind this row. */
typedef struct query_order_start {
    bool given;
    const query_value *values;
    uint64_t number;
} query_order_start;

struct query_access {
    query_runner *runner;
    size_t wanted;  /* rows; SIZE_MAX: all there are */
    uint64_t given; /* of an order: so many before them */
    query_order_start start;
    bool quick; /* only what is done at once; what would take longer ends with E_QUERY_TOO_LONG before any item was offered */
    query_cover cover;

    /* Rows that OFFSET passes over, the first of an order: counted by their entries, if each item that WHERE lets through has one row. */
    bool skips;
    bool skips_lacking;                /* … those without the order's path too */
    uint64_t skip;                     /* so many */
    uint64_t skipped;                  /* out: of them, so many were */
    bool (*may_skip)(void *context);   /* asked before each; false: no more */
    const query_value *stopped_values; /* out, if it was false: the next page begins behind these values and this number; or NULL */
    uint64_t stopped_number;
    void (*on_walk)(void *context); /* called before an order is walked */

    /* Groups and distinct values: in the order of their keys, behind `key`, at least `keys_wanted` of each range that has so many. */
    query_lead lead;
    const query_value *key; /* its first value; NULL: from the beginning */
    bool key_cut;           /* only its beginning is known: keys that begin alike come again, and are not counted */
    size_t keys_wanted;
    bool keys_walked;                   /* it is already known that there are more keys than wanted */
    size_t (*keys_held)(void *context); /* how many the visitor has seen */
    bool by_key;                        /* out: the last range was read in the order of keys */
    bool bounded;                       /* out: all ranges were read up to this value, and only keys up to it are complete: */
    char bound[INDEX_VALUE_BYTES_MAX];  /* … how its spelling begins, see query_lead_spell */
    size_t bound_n;                     /* 0: none is known */

    /* for the visitor */
    bool in_order;                      /* no item that is still to come stands before this one in the order asked for */
    bool only_undefined;                /* of this item, rows whose first order value, or lead, is undefined are meant, no others */
    bool only_empty;                    /* of this item, only a row without any member counts */
    bool beyond;                        /* set by the visitor: in this order nothing more is wanted */
    uint64_t matched;                   /* counted by the visitor: rows that belong to the page, or behind it */
    void (*before_load)(void *context); /* each item that is loaded is announced; NULL: to nobody */

    /* In place of items: a document that stands for so many. `decided`: WHERE holds for it. False: no more. */
    bool (*on_value)(void *context, slice body, uint32_t ts, uint64_t times, bool decided);
    void *context;

    /* how it was done, of the last range: for people and for metrics */
    query_way way;
    const query_demand *used;   /* the demand that was collected */
    const query_demand *others; /* all that there were */
    size_t others_n;
    uint32_t intersected; /* with which of them, as bits */
    const index_composite *composite;
    query_nearest nearest;
    query_graph_use graph; /* if one was meant to be asked */
    bool backward;         /* the order was walked so */
    bool too_many;         /* scanned, since every demand has too many entries for the index to pay */
    uint64_t entries;      /* looked at, of all ranges together */
    uint64_t passed;       /* items found that another demand excludes, up to where the page ended; likewise */
};

/* An item_find, but for its context: offers the view's items to its visitor. */
MUST_CHECK err query_access_find(query_access *a, item_view *v, bool *found_out);

/* What the service refuses to order: E_BAD_REQUEST with its sentence. */
MUST_CHECK err query_check_order(op *o, const query *q, const index_policy *policy);

/* The composite index that an ORDER BY over several paths can be walked by, or NULL. *backward_out: all directions turned round. */
const index_composite *query_composite_for(const query *q, const index_policy *policy, bool *backward_out);
