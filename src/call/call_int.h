/* call_int.h — within call/: steps shared by all calls. Everything except call__return runs on the loop's thread. */
#pragma once

#include "call/call.h"

const items *call__items(const call *c);

/* First step of all calls about items: checks for injected faults and for `seen`, in [min, end] of the hash space. If neither stops the
 * call, calls `go`: at once, or later if a fault delays it. Otherwise completes the call. `range_id`: the range for faults of one range;
 * -1: none. */
void call__enter(call *c, const epk *min, const epk *end, int64_t range_id, bool writes, call_step go);

/* The id of the one range that covers [min, end], for faults of that range; -1 if there are several. */
int64_t call__one_range(const call *c, const epk *min, const epk *end);

/* The part of the hash space that is still to be read. */
void call__bounds(const item_cursor *cursor, epk *min_out, epk *end_out);

/* Both complete the call now. They must run on the call's loop. `clean` runs before `done`. */
void call__end(call *c, err code);
void call__finish(call *c); /* with its current code */

/* Runs `run` on a worker, then `then` on the loop. If no worker is available, sets `code` and completes the call. */
void call__on_worker(call *c, net_lane lane, call_step run, call_step then);

/* Runs `run` on a script thread, then `then` on the loop; if none is available, as above. `sequence`: scripts of one sequence run one after
 * another; 0: none. */
void call__on_script_thread(call *c, uint64_t sequence, call_step run, call_step then);

/* Whether to try a query on the loop before it goes to a worker, judging by its last tries; and the result of a try. Any thread. */
bool call__worth_a_try(uint64_t container, slice text);
void call__tried(uint64_t container, slice text, bool gave_up);

/* A call that reads within a transaction: false, if another one is in progress. The call's `clean` leaves it. */
bool call__transaction_enter(call_transaction *t);
void call__transaction_leave(call_transaction *t);
err call__transaction_busy(op *o);
MUST_CHECK err call__transaction_moment(call_transaction *t, call *c, const item_key *partition, const item_moment **moment_out);

/* Runs `then` on the loop. Any thread, which must not touch the call afterwards. */
void call__return(call *c, call_step then);
void call__return_with(call *c, call_step then, void (*post)(net_loop *loop, net_task *task)); /* net_post, or net_post_before */
