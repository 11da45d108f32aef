/* range.h — ranges of rows that were deleted, as their partition remembers them.
 *
 * A range delete deletes the rows that are there. Writes with earlier timestamps may come later, also of rows that were not there: the
 * range hides them. So it is kept for gc_grace_seconds, with the static columns of its partition (row.h), under "r" of _cql:
 *
 *   [{"f": first row key, "g": after it, "t": last row key, "u": after it, "d": timestamp, "e": until when, in seconds}, …]
 *
 * A bound is the encoded key of the first clustering columns; "after" means after all rows whose keys begin with it. A partition has a
 * limited number of ranges; the one with the earliest timestamp goes first. Pure functions, any thread. */
#pragma once

#include "base/buf.h"
#include "base/op.h"
#include "item/rows.h"

typedef struct cass_bound {
    slice at;
    bool after;
} cass_bound;

typedef struct cass_range {
    cass_bound from, to; /* to: exclusive */
    int64_t us, until_s;
} cass_range;

enum { CASS_RANGES_MAX = 256, CASS_RANGES_BYTES = 128 * 1024 };

/* The range between two bounds of a read. */
cass_range cass_range_of(const item_row_bound *from, const item_row_bound *to, int64_t us, int64_t until_s);

/* Reads the array of BSON; without ranges whose time is over. */
MUST_CHECK err cass_ranges_read(op *o, slice array, int64_t now_s, cass_range **ranges_out, uint32_t *n_out);

/* The ranges with one more; those that it covers go. */
MUST_CHECK err cass_ranges_add(op *o, const cass_range *ranges, uint32_t n, const cass_range *more, cass_range **ranges_out,
                               uint32_t *n_out);

void cass_ranges_put(buf *out, const cass_range *ranges, uint32_t n); /* the elements of the array */

/* The latest timestamp up to which a row is hidden. False: no range has it. */
bool cass_ranges_hide(const cass_range *ranges, uint32_t n, slice row, int64_t *us_out);
