/* position.h — within api/sql: where a query stands, as the part of its continuation that comes before a feed's:
 *
 *   QPS:{base64 of BSON};       {i: rows given of the item after the cursor, n: its number, s: skipped by OFFSET, g: given, p: passed,
 *                                n, r, o: of ORDER BY the item's number, its row, its order values; c, h: which are cut, and their check;
 *                                t, a, m: of groups and distinct values the stage, what is carried, and where its range begins}
 *
 * What comes back may be anything; what is written is always read again. Pure functions, any thread. */
#pragma once

#include "query/position.h"

/* Takes it off the text, if it begins with it; else it is the beginning. Values live in the arena. E_BAD_CONTINUATION. */
MUST_CHECK err sql_position_read(arena *a, slice text, const query *q, query_position *position_out, slice *rest_out);

/* Writes nothing where there is nothing to say. */
void sql_position_write(buf *out, arena *a, const query *q, const query_position *position);

/* The position is of a range that begins here; `from` must outlive it. After a split, clients go on in each part with the continuation of
 * the whole: what it carries is the first part's. Of the others nothing is lost, since they go on behind the same item. E_BAD_CONTINUATION:
 * what it carries is of a range that begins later. */
MUST_CHECK err sql_position_claim(query_position *at, const epk *from);
