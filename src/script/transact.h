/* transact.h — a script's request as a whole: admitted, run in a worker, committed, and run again where others were first. On a script
 * thread.
 *
 * What is done in one attempt is the caller's: a stored procedure runs one script; a write with triggers runs one before and one after it,
 * in the same transaction. An attempt must not leave anything behind but in the transaction. */
#pragma once

#include "script/pool.h"
#include "script/run.h"
#include "script/transaction.h"

typedef struct script_attempt {
    script_transaction *transaction;
    op *op; /* of the request: its sentence is told */
    script_pool *pool;
    script_process *process; /* once a script was run */
    int64_t until_us;
    int64_t cpu_us;
    bool unfit;       /* the process is */
    unsigned retired; /* processes that were gone before they had done anything */
} script_attempt;

/* Within an attempt: runs a script over its transaction. Fills in deadline and calls. Not OK: the attempt must end with that. */
MUST_CHECK err script_attempt_run(script_attempt *a, script_run *run);

/* E_THROTTLED: the range's share is spent, nothing was done. E_RETRY_WITH: others were first, again and again. The cost is added to the
 * operation's charge, whatever became of it. The scope's soft_us is set here. */
MUST_CHECK err script_transact(script_pool *pool, const script_scope *scope, op *o, err (*attempt)(void *context, script_attempt *a),
                               void *context, item_mark *mark_out);

/* The sequence of a partition: scripts over it run one after another (pool.h). */
uint64_t script_sequence(const container *c, const item_key *key);
