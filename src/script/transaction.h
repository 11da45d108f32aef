/* transaction.h — a script's transaction: reads and writes one logical partition (all of a fixed container), atomically.
 *
 * It wraps a transaction of the core (item/transaction.h) and adds what scripts need: calls and answers in the protocol's form, limits on
 * time and charge, and numbers for new items, since scripts see these before the items are written. The snapshot is taken at the beginning.
 * Transactions of one partition that run one at a time (a sequence of pool.h) are serial.
 *
 * After SCRIPT_OPERATIONS_MAX writes, SCRIPT_WRITTEN_BYTES_MAX of items, or the limit on time or charge, further calls are not accepted;
 * the script sees this (isAccepted is false) and can end cleanly. One thread at a time; it may wait for the committer. */
#pragma once

#include "base/random.h"
#include "item/transaction.h"
#include "query/exec.h"
#include "script/pool.h"

enum {
    SCRIPT_OPERATIONS_MAX = LIMIT_TRANSACTION_WRITES,
    SCRIPT_WRITTEN_BYTES_MAX = LIMIT_TRANSACTION_BYTES,
    SCRIPT_TRIES_MAX = 5, /* attempts after write conflicts */
};

typedef struct script_transaction script_transaction;

/* Continuation tokens of lists and queries, read and written by the front end. `query` and `position` are NULL for a list. */
typedef struct script_tokens {
    err (*read)(arena *a, const container *c, slice text, const query *query, query_position *position, item_cursor *cursor);
    void (*write)(buf *out, arena *a, const container *c, const query *query, const query_position *position, const item_cursor *cursor,
                  size_t rows);
} script_tokens;

typedef struct script_scope {
    const items *items;
    container *container;        /* the caller keeps its reference until the end */
    const item_key *key;         /* the partition; must live as long */
    const script_tokens *tokens; /* NULL: lists and queries return only one page */
    /* Finds the text of a user-defined function that a query calls; it lives in the arena. E_NOT_FOUND. NULL: queries may not call any. */
    err (*function)(void *context, arena *a, slice id, slice *body_out);
    void *context;
    script_pool *pool; /* runs these functions */
    int64_t soft_us;   /* calls are accepted until this time (script_now_us); 0: no limit */
} script_scope;

/* Takes the request's priority, throughput bucket and budget from `o`. */
script_transaction *script_transaction_begin(const script_scope *scope, const op *o);
void script_transaction_end(script_transaction *t); /* discards uncommitted writes */

/* The transaction's own op: holds the charge so far and the message of the last error. */
op *script_transaction_op(script_transaction *t);
double script_transaction_unsettled(const script_transaction *t); /* the part of the charge not yet taken from the range's share */

/* Writes an item of this partition, like item_transaction_write; only the key's row is used. */
MUST_CHECK err script_transaction_write(script_transaction *t, item_op *op);

/* Serves a script's call (script_run.call); `context` is the transaction. */
MUST_CHECK err script_transaction_call(void *context, slice call, buf *answer);

/* Writes an item as scripts and clients see it, with system properties. */
void script_write_document(buf *out, const container *c, const item_head *head, slice body);

/* Call it once. E_RETRY_WITH: write conflict; begin again. The mark is that of the writes, or the current one if nothing was written. */
MUST_CHECK err script_transaction_commit(script_transaction *t, item_mark *mark_out);

/* ---- within script/ ---- */

/* Reads an item, own writes included; charged. E_NOT_FOUND. On OK the caller gives `*found_out` back. */
MUST_CHECK err script__read(script_transaction *t, slice id, item_found *found_out);
MUST_CHECK err script__find_number(script_transaction *t, uint64_t number, slice *id_out); /* id in the call's arena; E_NOT_FOUND */
const script_scope *script__scope(const script_transaction *t);
const item_moment *script__moment(const script_transaction *t);
bool script__accepts(script_transaction *t, size_t bytes); /* whether `bytes` more may be written */
arena *script__arena(script_transaction *t);               /* reset with each call */
random_source *script__random(script_transaction *t);
