/* query_position.h — within api/sql: the position of a query, as the part of its continuation that precedes the feed's token
 * (continuation.h), also where that is wrapped: QPS:…;+RID:~… or {"token":"QPS:…;+RID:~…","range":…}.
 *
 *   QPS:{base64 of BSON};       {i: rows returned of the item after the cursor, n: its number, s: rows skipped by OFFSET,
 *                                g: rows returned, p: rows passed;
 *                                with ORDER BY n, r, o: the last item's number, its row, its order values; c, h: which of these
 *                                are truncated, and a checksum of the whole values;
 *                                with groups and distinct values t, a, m: stage, carried state, start of the state's range}
 *
 * The reader accepts everything that the writer wrote, and treats the text as untrusted. Pure functions, any thread. */
#pragma once

#include "query/position.h"

/* Reads the position that the text's token begins with, if any, and returns the rest; without one the position is the query's beginning.
 * Values live in the arena. E_BAD_CONTINUATION. */
MUST_CHECK err sql_position_read(arena *a, slice text, const query *q, query_position *position_out, slice *rest_out);

/* Writes nothing if the position is the beginning. */
void sql_position_write(buf *out, arena *a, const query *q, const query_position *position);

/* Writes both parts as one text: a JSON object if the feed's is one. */
void sql_position_join(buf *out, slice position, slice feed);

/* Assigns the position to the range that begins at `from`, which must outlive it. After a split, clients send the parent's continuation to
 * each child. The first child takes over the carried state; the others drop it and lose nothing, since they continue after the same item.
 * E_BAD_CONTINUATION: the carried state is from a range that begins later. */
MUST_CHECK err sql_position_claim(query_position *at, const epk *from);
