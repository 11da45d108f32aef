/* call_int.h — within call/: the ways a call takes, and how it comes back. All but call__return on the loop's thread. */
#pragma once

#include "call/call.h"

const items *call__items(const call *c);

/* What all calls about items begin with: faults on purpose and what the client has seen, of [min, end] of the hash space. If nothing is in
 * the way, `go` is called: at once, or later if a fault delays it. Otherwise the call completes. `range_id`: the range that faults of one
 * range are for; -1: none. */
void call__enter(call *c, const epk *min, const epk *end, int64_t range_id, bool writes, call_step go);

/* Whether a range's faults are for a call about [min, end]: its id; -1 if there are several. */
int64_t call__one_range(const call *c, const epk *min, const epk *end);

/* What is still to be read. */
void call__bounds(const item_cursor *cursor, epk *min_out, epk *end_out);

/* Complete the call: on its loop, now. What the call holds is given back before (`clean`). */
void call__end(call *c, err code);
void call__finish(call *c); /* with the code that it has */

/* `run` on a worker, then `then` on the loop. If there is no worker for it, `code` is set and the call completes. */
void call__on_worker(call *c, net_lane lane, call_step run, call_step then);

/* `run` on a script thread, then `then` on the loop, with the same rule. `sequence`: scripts of one sequence run one after another; 0:
 * none. */
void call__on_script_thread(call *c, uint64_t sequence, call_step run, call_step then);

/* From any thread: `then` on the loop. The last touch of the thread that calls it. */
void call__return(call *c, call_step then);
