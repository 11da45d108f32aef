/* transaction.h — several reads and writes as one: of several partitions and containers of one store, all or nothing.
 *
 * A transaction sees its store as it was at one moment, with its own writes on top. Writes are kept here, in order, until the commit; each
 * item that they touch is remembered as the moment had it. The commit is one group of item_commits (item.h), on condition that each of
 * those items is still the same. So what holds is *snapshot isolation*: nothing uncommitted and nothing changing is read, and no update is
 * lost. Who is too late is told so at the commit, and begins again:
 *
 *   E_RETRY_WITH   another writer changed, made or deleted an item that this transaction writes or guards
 *   E_UNIQUE_KEY   another writer took a unique value that this transaction gives to an item
 *
 * Reads are not checked at the commit, unless they are *guarded*: a guarded read, also one that found nothing, must still hold. A
 * transaction that guards all of its point reads, and scans nothing, is serializable. Splits, merges and moves of items are no conflicts.
 *
 * All items must be of one home. The first call decides which; a call about an item of another home is refused with E_TRANSACTION_SPREAD,
 * and the transaction goes on without it.
 *
 * Between two calls a transaction holds no lock, no thread and no place in a queue: only its memory, which is bounded
 * (LIMIT_TRANSACTION_WRITES, LIMIT_TRANSACTION_BYTES), and a snapshot of its store, which keeps old versions of items from being
 * compacted. So it has a deadline. After it every call is answered with E_TRANSACTION_EXPIRED; whoever owns idle transactions gives the
 * snapshots of overdue ones back by item_transaction_expire.
 *
 * Each read and write is admitted and charged when it is made, as one outside of a transaction would be, whether or not it is committed.
 * The commit itself costs nothing more.
 *
 * Calls are answered at once, on the caller's thread: one thread at a time. The commit is decided by the store's committer. */
#pragma once

#include "item/item.h"

typedef struct item_transaction item_transaction;

typedef struct item_transaction_ask {
    const items *items;
    budget *budget;      /* that its memory is counted against (E_MEMORY, E_BUSY_MEMORY); NULL: none. Outlives it */
    int64_t lifetime_us; /* 0: no deadline, the caller has one of its own */
    bool unsettled;      /* the caller admits, and takes the charges from the ranges' shares itself (item_settle) */

    /* The number of an item that is made: NULL: the commit gives it. For callers that must tell it before (item_reserve). */
    err (*number)(void *context, container *c, const item_key *key, uint64_t *number_out);
    void *context;
} item_transaction_ask;

item_transaction *item_transaction_begin(const item_transaction_ask *ask);
void item_transaction_end(item_transaction *t); /* what was not committed is gone. Not while a commit is under way */

/* ---- calls ----
 *
 * Class, time, memory, charge and sentence are those of `o`, of the request that makes the call. Containers are counted here: the caller's
 * reference need not outlive the call. */

/* The item of a key, own writes first. E_NOT_FOUND, E_THROTTLED, E_TRANSACTION_SPREAD, E_TRANSACTION_EXPIRED; a guarded one: E_TOO_LARGE.
 * On OK give it back; the body lives as long as that and the transaction. */
MUST_CHECK err item_transaction_read(item_transaction *t, op *o, container *c, const item_key *key, bool guarded, item_found *found_out);

/* One write, prepared as for a commit, of any kind but read; edits and conditions are run here, and may take up to LIMIT_EDIT_STEPS_MAX. On
 * OK `after`, `result`, `created`, `deleted`, `left`, `reply`, `before_there`, `before` and `before_body` of *op are set: `before_body`
 * (and, of an edit that left the item, `result`) until the next call, the rest as long as the transaction. What is told is what the commit
 * will leave, etag and time included, but for the number and lsn of `after`. E_CONFLICT, E_NOT_FOUND, E_PRECONDITION, E_UNIQUE_KEY and
 * friends: nothing was written, and the transaction goes on. E_TOO_LARGE: it is full. */
MUST_CHECK err item_transaction_write(item_transaction *t, op *o, container *c, item_op *op);

/* For feeds, rows and queries (item_cursor.moment, item_rows_ask.moment): the container as the transaction sees it, for as long as it
 * lives. They are of the partition of `key`, or of any other in the same home. */
MUST_CHECK err item_transaction_moment(item_transaction *t, op *o, container *c, const item_key *key, const item_moment **moment_out);

/* Whether there is room for another write of so many bytes. */
bool item_transaction_accepts(const item_transaction *t, size_t bytes);

/* ---- the end ---- */

/* The deadline has passed: the snapshot is given back now, and so are the writes. Not while a call or a commit is under way. */
void item_transaction_expire(item_transaction *t);
bool item_transaction_is_overdue(const item_transaction *t);

/* Once. `done` is called on the committer's thread, or at once if nothing was written; it must hand over. OK is not the outcome, which
 * item_transaction_outcome has: E_TRANSACTION_EXPIRED: nothing was submitted, `done` is not called. Afterwards there is only the end. */
MUST_CHECK err item_transaction_commit(item_transaction *t, op *o, void (*done)(void *context), void *context);
MUST_CHECK err item_transaction_outcome(const item_transaction *t,
                                        op *o); /* after done; its sentence, if there is one, is the operation's */

/* After a commit: where the range stands that the container was written to last. False: nothing of it was written. */
bool item_transaction_mark(const item_transaction *t, const container *c, item_mark *mark_out);

/* The row key of the item with this number in the key's partition, own writes first, in the operation's arena. E_NOT_FOUND. Not charged. */
MUST_CHECK err item_transaction_row_of(item_transaction *t, op *o, container *c, const item_key *key, uint64_t number, slice *row_out);
