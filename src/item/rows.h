/* rows.h — rows in key order: of one logical partition by row key, or of a part of the hash space by (hash, partition key, row key).
 *
 * The order is that of the primary keys, which name neither a range nor a segment: a reader that stands at one of them goes on from there
 * whatever was split, merged or moved meanwhile. What a page has of one range is of one moment. Expired rows are not seen.
 *
 * A page is asked for (item_rows_ask, which is not changed), continued (item_rows_cursor, which is bytes and may travel to a client and
 * back) and answered (a visitor for each row, item_rows_page for the rest). Any thread. */
#pragma once

#include "item/item.h"

/* One end of the rows that are meant. For the text of `id` it is a beginning of ids: all of "ab…" for "ab". */
typedef struct item_row_bound {
    bool given;     /* false: no bound */
    slice prefix;   /* a whole row key or its first values, as row_add makes them */
    bool exclusive; /* rows that begin with the prefix are left out */
} item_row_bound;

typedef struct item_rows_ask {
    const item_key *partition; /* one logical partition, or NULL: [min, max); its row key is not looked at */
    item_row_bound from, to;   /* of the partition's rows: the lower and the upper end, whatever the direction */
    epk min, max;
    const pkey *prefix; /* of [min, max) only rows whose partition keys start so; NULL: all */
    bool backward;
    size_t rows_max;           /* that the visitor gets; 0: as many as there are */
    size_t steps_max;          /* entries that are looked at, so that a page's time is bounded */
    const item_moment *moment; /* as it was then, with what its transaction has written since; E_TRANSACTION_SPREAD: some of it is of
                                  another home. NULL: now */
    bool unpriced;             /* the visitor adds the charges of rows itself */
} item_rows_ask;

/* Where the next page begins: behind this place, in the page's direction. A cursor belongs to the ask that it came from: another one
 * refuses it if it lies outside. */
typedef struct item_rows_cursor {
    slice place; /* empty: at the beginning. What a page sets lives in its operation's arena */
    bool ended;  /* there is nothing more */
} item_rows_cursor;

typedef struct item_rows_page {
    size_t rows; /* that the visitor took */
    item_mark mark;
} item_rows_page;

/* All rows of a partition, or of a part of the hash space (epk_min(), epk_max(): all of it), from the first one on. */
item_rows_ask item_rows_ask_partition(const item_key *partition);
item_rows_ask item_rows_ask_space(epk min, epk max);

/* Reads a page, range by range. It ends with the rows or the steps that were asked for, when the visitor returns false (the row counts as
 * not seen), when a range's share is spent after some was read, or at the end. Adds the charge of a feed. E_THROTTLED: nothing was read.
 * E_BAD_CONTINUATION: the cursor is not one of this ask's. */
MUST_CHECK err item_rows_read(const items *s, op *o, container *c, const item_rows_ask *ask, item_rows_cursor *cursor, item_visit visit,
                              void *context, item_rows_page *page_out);
