/* transaction.h — what a script sees and writes: one logical partition (of a fixed container: all of it), all or nothing.
 *
 * It is a transaction of the core (item/transaction.h) with what scripts need beside it: calls and answers in the script's terms, a time
 * and a charge after which nothing more is accepted, and the numbers of new items, which scripts are told before the items are written. The
 * snapshot is taken when it begins. Transactions of one partition that are run one after another (a sequence of pool.h) are serial.
 *
 * Bounded: past SCRIPT_OPERATIONS_MAX writes, SCRIPT_WRITTEN_BYTES_MAX of items, its time or its charge nothing more is accepted, and the
 * script is told so (isAccepted false) and can end in good order. One thread at a time; it may wait for the committer. */
#pragma once

#include "base/random.h"
#include "item/transaction.h"
#include "query/exec.h"
#include "script/pool.h"

enum {
    SCRIPT_OPERATIONS_MAX = LIMIT_TRANSACTION_WRITES,
    SCRIPT_WRITTEN_BYTES_MAX = LIMIT_TRANSACTION_BYTES,
    SCRIPT_TRIES_MAX = 5, /* runs of a script whose items were changed by others meanwhile */
};

typedef struct script_transaction script_transaction;

/* Where lists and queries go on, as text: the front end's business. `query` and `position` are NULL for a list. */
typedef struct script_tokens {
    err (*read)(arena *a, const container *c, slice text, const query *query, query_position *position, item_cursor *cursor);
    void (*write)(buf *out, arena *a, const container *c, const query *query, const query_position *position, const item_cursor *cursor,
                  size_t rows);
} script_tokens;

typedef struct script_scope {
    const items *items;
    container *container;        /* the caller's reference is held until the end */
    const item_key *key;         /* the partition; its texts live as long */
    const script_tokens *tokens; /* NULL: lists and queries of a script have one page */
    /* User-defined functions that queries name, by their id: the text, in the arena. E_NOT_FOUND. NULL: they are refused. */
    err (*function)(void *context, arena *a, slice id, slice *body_out);
    void *context;
    script_pool *pool; /* where they run */
    int64_t soft_us;   /* calls are accepted until then, of script_now_us; 0: always */
} script_scope;

/* The request's class and time come from `o`, which is not changed. */
script_transaction *script_transaction_begin(const script_scope *scope, const op *o);
void script_transaction_end(script_transaction *t); /* what was not committed is gone */

/* Its own: what it has cost so far, and the sentence of the last error. */
op *script_transaction_op(script_transaction *t);
double script_transaction_unsettled(const script_transaction *t); /* of the cost: not taken from the range's share yet */

/* One write of this partition, as item_transaction_write; of the key only the row key is looked at. */
MUST_CHECK err script_transaction_write(script_transaction *t, item_op *op);

/* A call of a script, as run.h hands it over; `context` is the transaction. */
MUST_CHECK err script_transaction_call(void *context, slice call, buf *answer);

/* The item as scripts and clients see it, system properties included. */
void script_write_document(buf *out, const container *c, const item_head *head, slice body);

/* Once. E_RETRY_WITH: somebody else was there first; begin again. The mark is of what was written, or of now if nothing was. */
MUST_CHECK err script_transaction_commit(script_transaction *t, item_mark *mark_out);

/* ---- within script/ ---- */

/* Own writes first; charged. E_NOT_FOUND. On OK give it back. */
MUST_CHECK err script__read(script_transaction *t, slice id, item_found *found_out);
MUST_CHECK err script__find_number(script_transaction *t, uint64_t number, slice *id_out); /* in the call's arena; E_NOT_FOUND */
const script_scope *script__scope(const script_transaction *t);
const item_moment *script__moment(const script_transaction *t);
bool script__accepts(script_transaction *t, size_t bytes); /* more of them to write */
arena *script__arena(script_transaction *t);               /* of the call */
random_source *script__random(script_transaction *t);
