/* rows.h — rows in key order: of one logical partition by row key, or of a part of the hash space by (hash, partition key, row key).
 *
 * The order is that of the primary keys, which name neither a range nor a segment: a reader can continue at such a key whatever was split,
 * merged or moved meanwhile. The rows that a page returns of one range come from one snapshot. Expired rows are skipped.
 *
 * A page has a request (item_rows_ask, constant), a cursor (item_rows_cursor, bytes that may travel to a client and back) and a result (a
 * visitor call for each row, item_rows_page for the rest). Any thread. */
#pragma once

#include "item/item.h"

/* One end of the requested rows. For the text of `id`, the prefix is a prefix of ids: "ab" covers all of "ab…". */
typedef struct item_row_bound {
    bool given;     /* false: no bound */
    slice prefix;   /* a whole row key or its first values, encoded by row_add */
    bool exclusive; /* excludes rows that begin with the prefix */
} item_row_bound;

typedef struct item_rows_ask {
    const item_key *partition; /* one logical partition (its row key is ignored), or NULL: [min, max) */
    item_row_bound from, to;   /* for a partition: the lower and the upper end, whatever the direction */
    epk min, max;
    const pkey *prefix; /* only rows of [min, max) whose partition keys begin with this; NULL: all */
    bool backward;
    size_t rows_max;           /* limit of rows for the visitor; 0: no limit */
    size_t steps_max;          /* limit of entries to look at, so that a page's time is bounded */
    const item_moment *moment; /* read as of this moment, with its transaction's writes; E_TRANSACTION_SPREAD: some rows are in another
                                  home. NULL: now */
    item_visit excludes;       /* NULL, or whether a condition that an index can answer excludes the row, which is then neither offered nor
                                  charged, as in a query; gets the visitor's context */
    bool unpriced;             /* the visitor adds the charges itself */
    bool entered;              /* another attempt at this page has paid what a range costs without its rows */
} item_rows_ask;

/* The next page begins after this key, in the page's direction. A cursor is valid only for the request that it came from; another request
 * rejects a cursor outside its bounds. */
typedef struct item_rows_cursor {
    slice place; /* empty: at the beginning. Set by a page, in its operation's arena */
    bool ended;  /* there are no more rows */
} item_rows_cursor;

typedef struct item_rows_page {
    size_t rows; /* rows that the visitor took */
    item_mark mark;
} item_rows_page;

/* A request for all rows of a partition, or of a part of the hash space (epk_min(), epk_max(): all of it). */
item_rows_ask item_rows_ask_partition(const item_key *partition);
item_rows_ask item_rows_ask_space(epk min, epk max);

/* Reads a page, range by range. It ends at rows_max or steps_max, when the visitor returns false (that row counts as not read), when a
 * range's share is spent after something was read, or at the end. Charged as a query that loads the rows that the visitor took.
 * E_THROTTLED: nothing was read. E_BAD_CONTINUATION: the cursor does not fit this request. */
MUST_CHECK err item_rows_read(const items *s, op *o, container *c, const item_rows_ask *ask, item_rows_cursor *cursor, item_visit visit,
                              void *context, item_rows_page *page_out);
