/* position.h — the position of a query between two pages, as data that is small enough for a header field.
 *
 * ORDER BY continues after a row, which is identified by its order values, its item's number and its index among the item's rows. Long
 * order values are shortened in the continuation, and read from the item again when the query continues; a hash tells whether they are
 * still the same. If they are not, or if the item is gone, all rows whose values have the shortened prefix are returned again, so that none
 * is lost. */
#pragma once

#include "query/exec.h"

enum { QUERY_POSITION_BYTES = 512 }; /* approximate limit for all order values in a continuation */

/* Replaces the position's values by copies in `a`, long ones shortened, and sets `cut` and `check`. */
void query_position_cut(arena *a, size_t n, query_position *at);

/* A hash of full values, the same in every process. */
uint64_t query_position_check(const query_value *values, size_t n);

/* Restores the full values of a page's position, if they were shortened. Charges nothing. */
MUST_CHECK err query_position_restore(query_page *p);

/* ---- as data ---- */

bool query_position_is_begun(const query_position *at); /* false: at the beginning, so it need not be written */

/* Appends the position to a document, long values shortened; `values` is query_position_values. */
void query_position_append(bson_t *document, arena *a, size_t values, const query_position *at);

/* The inverse. The bytes may be anything; the result points into the arena and into `bson`. False: not a position. */
MUST_CHECK bool query_position_parse(arena *a, slice bson, size_t values, query_position *position_out);
