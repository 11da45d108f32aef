/* access.h — how the items of one range are found: which demands and which order the index answers, and what is left to look at.
 *
 * The layer between index entries (item/view.h) and whoever has conditions: it knows demands, orders and spelled values, and no query
 * language. Called by a feed for each range that it comes to (item_find in item/item.h), on the feed's thread.
 *
 * Ways to find items:
 *   by number   the smallest demand's entries are collected, others are intersected with them where that is cheap, and the items come in
 *               number order, as without an index
 *   in order    the entries of the order's path, or of a composite index, are walked, and items come in the order asked for, until whoever
 *               gets them has enough
 *   by key      groups and distinct values come in the order of their keys: the entries of the path that keys begin with are walked from
 *               the last key that was shown, until there are enough for a page
 *   covered     no items: entries tell all that is asked
 *   nearest     vectors (nearest.h)
 *
 * Which one, and whether any, is decided by counting entries, never further than deciding is worth, so the same data gives the same choice.
 * Every item that is found must still be asked its condition: a demand that is not exact, and demands that were not intersected, let items
 * through that do not fulfil them. */
#pragma once

#include "find/demand.h"
#include "find/nearest.h"
#include "item/view.h"

typedef enum find_way {
    WAY_SCAN, /* all items, by number */
    WAY_BY_NUMBER,
    WAY_IN_ORDER,
    WAY_COVERED, /* no items: their entries tell all, or their number does */
    WAY_NEAREST, /* those that a graph of vectors finds */
    WAY_BY_KEY,
} find_way;

/* A value as the index spells it; of one that is not told whole, what all such values begin with. */
typedef struct find_spelled {
    slice bytes;
    bool whole;
    bool undefined;
} find_spelled;

/* ---- what is asked ---- */

/* Where an ordered walk begins: behind this row. */
typedef struct find_start {
    bool given;
    const find_spelled *values; /* one for each part of the order */
    uint64_t number;
} find_start;

/* Rows that can be told by entries: aggregates, groups and distinct values of one path, and counts. */
typedef struct find_cover {
    bool possible;     /* what is asked can be told so, and the order in which rows come does not matter to it */
    bool path_given;   /* all that is asked of an item is this path; otherwise nothing, or (see `counts`) */
    bool counts;       /* only the condition asks anything of an item: whoever knows how many pass can say the rest */
    bool multiplicity; /* how many items have a value matters */
    bool distinct;     /* values are wanted each once */
    find_path path;
} find_cover;

/* What keys of groups, or distinct values, begin with. */
typedef struct find_lead {
    bool given;
    find_path path;
    bool alone;        /* a key is this value and nothing more */
    bool once;         /* … and one row of a value is as good as all of them */
    bool only_defined; /* items without it have no key */
    bool in_objects;   /* a key is an object, and the value a member of it: keys without it come behind all others */
    bool sure;         /* each entry surely has a row */
} find_lead;

/* Keys are read behind this one. */
typedef struct find_keys {
    bool given;
    bool defined;  /* its first value is */
    bool cut;      /* only its beginning is known: keys that begin alike come again, and are not counted */
    slice spelled; /* the common beginning of all spellings that the index does not tell apart from its first value */
    size_t wanted; /* keys: at least so many of each range that has them; SIZE_MAX: all */
    bool many;     /* it is already known that there are more keys than wanted */
} find_keys;

typedef struct find_asked {
    bool conditional; /* there is a condition: demands are what the index knows of it */
    size_t wanted;    /* rows; SIZE_MAX: all there are */
    uint64_t given;   /* of an order: so many before them */
    bool quick;       /* only what is done at once; what would take longer ends with E_QUERY_TOO_LONG before any item was offered */
    find_order order;
    find_start start;
    find_cover cover;
    find_lead lead;
    find_keys key;

    /* Rows that are passed over, the first of an order: counted by their entries, if each item that is let through has one row. */
    bool skips;
    bool skips_lacking; /* … those without the order's path too */
    uint64_t skip;      /* so many */
} find_asked;

/* ---- who gets the items ---- */

/* Beside item_visit, which the view has. */
typedef struct find_visitor {
    void *context;
    void (*before_load)(void *context); /* each item that is loaded is announced; NULL: to nobody */
    void (*on_walk)(void *context);     /* called before an order is walked; NULL: nobody minds */
    bool (*may_skip)(void *context);    /* asked before each row that is passed over; false: no more */
    size_t (*keys_held)(void *context); /* how many keys the visitor has seen */

    /* In place of items: one entry, whose spelled value stands for so many. Empty: they lack the path, or (`decided`) only their number is
     * told, and the condition holds for all of them. False: no more. */
    bool (*on_value)(void *context, slice spelled, uint64_t times, bool decided);
} find_visitor;

/* What finder and visitor tell each other with each item. */
typedef struct find_turn {
    bool in_order;       /* no item that is still to come stands before this one in the order asked for */
    bool only_undefined; /* of this item, rows whose first order value, or lead, is undefined are meant, no others */
    bool only_empty;     /* of this item, only a row without any member counts */
    bool beyond;         /* set by the visitor: in this order nothing more is wanted */
    uint64_t matched;    /* counted by the visitor: rows that belong to the page, or behind it */
} find_turn;

/* ---- what came of it ---- */

typedef struct find_reached {
    uint64_t skipped;                   /* rows that were passed over */
    const find_spelled *stopped_values; /* the visitor let no more be passed over: the next page begins behind these values, one for each
                                           part of the order, and this number; or NULL */
    uint64_t stopped_number;
    bool by_key;                       /* the last range was read in the order of keys */
    bool bounded;                      /* all ranges were read up to this value, and only keys up to it are complete: */
    char bound[INDEX_VALUE_BYTES_MAX]; /* … how its spelling begins, see find_keys */
    size_t bound_n;                    /* 0: none is known */
} find_reached;

/* How it was done, of the last range: for people and for metrics. */
typedef struct find_report {
    find_way way;
    const find_demand *used;   /* the demand that was collected */
    const find_demand *others; /* all that there were */
    size_t others_n;
    uint32_t intersected; /* with which of them, as bits */
    const index_composite *composite;
    find_nearest nearest;
    find_graph_use graph; /* if one was meant to be asked */
    bool backward;        /* the order was walked so */
    bool too_many;        /* scanned, since every demand has too many entries for the index to pay */
    uint64_t entries;     /* looked at, of all ranges together */
    uint64_t passed;      /* items found that another demand excludes, up to where the page ended; likewise */
} find_report;

struct find_access {
    find_asked asked;
    find_visitor visitor;
    find_turn turn;
    find_reached reached;
    find_report report;
};

/* Everything else is nothing yet. */
static inline void find_access_init(find_access *a, const find_asked *asked, const find_visitor *visitor) {
    *a = (find_access){.asked = *asked, .visitor = *visitor};
}

/* Offers the view's items to its visitor (item_find in item/item.h says what *found_out means). `demands` and `nearest` are what the
 * view's index knows; they live as long as the report is looked at. */
MUST_CHECK err find_items(find_access *a, item_view *v, const find_demands *demands, const find_nearest *nearest, bool *found_out);
