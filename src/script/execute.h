/* execute.h — a whole request with scripts: admission, run in a worker, commit, and retries after write conflicts. On a script thread.
 *
 * The caller's function does one attempt: a stored procedure runs one script; a write with triggers runs one before and one after the
 * write, in the same transaction. An attempt may have no effects outside the transaction. */
#pragma once

#include "script/pool.h"
#include "script/run.h"
#include "script/transaction.h"

typedef struct script_attempt {
    script_transaction *transaction;
    op *op; /* the request's; gets the error message */
    script_pool *pool;
    script_process *process; /* NULL until a script is run */
    int64_t until_us;
    int64_t cpu_us;
    bool unfit;       /* the process cannot be used again */
    unsigned retired; /* processes that ended before their script began */
} script_attempt;

/* Runs a script in an attempt's transaction. Fills in the run's deadline and `call`. On an error the attempt must return it. */
MUST_CHECK err script_attempt_run(script_attempt *a, script_run *run);

/* E_THROTTLED: the range's share is spent, and nothing was done. E_RETRY_WITH: every attempt had a write conflict. The cost is added to the
 * operation's charge even on failure. Ignores the scope's soft_us and sets its own. */
MUST_CHECK err script_transact(script_pool *pool, const script_scope *scope, op *o, err (*attempt)(void *context, script_attempt *a),
                               void *context, item_mark *mark_out);

/* The sequence number of a partition: its scripts run one at a time (pool.h). */
uint64_t script_sequence(const container *c, const item_key *key);
