/* position.h — where a query stands, as data that is small enough for a header field.
 *
 * ORDER BY goes on after a row, which is known by its order values, its item's number and its place among the item's rows. Order values may
 * be long. Then they are cut for the continuation, and taken from the item again when the query goes on; a check value says whether they
 * are still the same. If not, or if the item is gone, rows whose values begin alike come again rather than one being left out. */
#pragma once

#include "query/exec.h"

enum { QUERY_POSITION_BYTES = 512 }; /* about what all order values together take of a continuation */

/* Cuts what is too long of a position's values, which are replaced, and fills `cut` and `check`. */
void query_position_cut(arena *a, size_t n, query_position *at);

/* Tells whether values are the ones that were cut. */
uint64_t query_position_check(const query_value *values, size_t n);

/* Makes the values of a page's position whole, if they were cut. Costs nothing. */
MUST_CHECK err query_position_restore(query_page *p);

/* ---- as data ---- */

bool query_position_is_begun(const query_position *at); /* false: it says nothing, and need not be written */

/* Appends it to a document, values cut; `values`: query_position_values. */
void query_position_append(bson_t *document, arena *a, size_t values, const query_position *at);

/* Back from such a document, whose bytes may be anything; what it points to lives in the arena and in `bson`. False: it is none. */
MUST_CHECK bool query_position_parse(arena *a, slice bson, size_t values, query_position *position_out);
