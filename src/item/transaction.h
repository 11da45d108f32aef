/* transaction.h — transactions: several reads and writes across partitions and containers of one store, all or nothing.
 *
 * A transaction sees its store as of one snapshot, with its own writes on top. Writes are kept here, in order, until the commit; for each
 * item that they touch, the version in the snapshot is remembered. The commit is one group of item_commits (item.h), on condition that each
 * of those items is still the same. This gives *snapshot isolation*: no dirty reads, no non-repeatable reads, no lost updates. A
 * transaction that loses a conflict fails at the commit, and must be restarted:
 *
 *   E_RETRY_WITH   another writer changed, created or deleted an item that this transaction writes or guards
 *   E_UNIQUE_KEY   another writer took a unique value that this transaction gives to an item
 *
 * The commit does not check reads, unless they are *guarded*: a guarded read must still hold, even if it found nothing. A transaction
 * that guards all of its point reads, and scans nothing, is serializable. Splits, merges and moves of items cause no conflicts.
 *
 * All items must be in one home. The first call decides which; a call for an item of another home is rejected with E_TRANSACTION_SPREAD,
 * and the transaction stays open.
 *
 * Between two calls a transaction holds no lock, no thread and no place in a queue: only its memory, which is bounded
 * (LIMIT_TRANSACTION_WRITES, LIMIT_TRANSACTION_BYTES), and a snapshot of its store, which keeps old versions of items from being compacted.
 * So it has a deadline. After the deadline every call fails with E_TRANSACTION_EXPIRED; the owner of idle transactions releases the
 * snapshots of overdue ones by item_transaction_expire.
 *
 * Each read and write is admitted and charged when it is made, as outside of a transaction, whether or not it is committed. The commit
 * itself adds no charge.
 *
 * Calls are answered at once on the caller's thread; one thread at a time. The store's committer decides the commit. */
#pragma once

#include "item/item.h"

/* New items are shown with provisional numbers until the commit assigns real ones. They sort after all others, in order of creation. */
#define ITEM_PROVISIONAL (UINT64_MAX - UINT32_MAX)

typedef struct item_transaction item_transaction;

typedef struct item_transaction_ask {
    const items *items;
    budget *budget;      /* limits its memory (E_MEMORY, E_BUSY_MEMORY); NULL: no limit. Must outlive the transaction */
    int64_t lifetime_us; /* 0: no deadline; the caller enforces its own */
    bool unsettled;      /* the caller itself admits requests and takes the charges from the ranges' shares (item_debit) */

    /* Provides the number of an item being created, for callers that must know it before the commit (item_reserve). NULL: the commit
     * assigns numbers. */
    err (*number)(void *context, container *c, const item_key *key, uint64_t *number_out);
    void *context;
} item_transaction_ask;

item_transaction *item_transaction_begin(const item_transaction_ask *ask);
void item_transaction_end(item_transaction *t); /* discards what was not committed. Not while a commit is running */

/* ---- calls ----
 *
 * Priority, time, memory, charge and error text are those of `o`, the request that makes the call. The transaction takes its own reference
 * to a container: the caller's need not outlive the call. */

/* Reads the item of a key, own writes first. E_NOT_FOUND, E_THROTTLED, E_TRANSACTION_SPREAD, E_TRANSACTION_EXPIRED; if guarded, also
 * E_TOO_LARGE. On OK release it with item_give; the body lives until then, but not longer than the transaction. */
MUST_CHECK err item_transaction_read(item_transaction *t, op *o, container *c, const item_key *key, bool guarded, item_found *found_out);

/* One write of any kind but read, prepared as for a commit. Edits and conditions are run here, with up to LIMIT_EDIT_STEPS_MAX. On OK these
 * members of *op are set: `after`, `result`, `created`, `deleted`, `left`, `reply`, `before_there`, `before` and `before_body`.
 * `before_body` (and `result` of an edit that left the item) lives until the next call, the rest as long as the transaction. They are what
 * the commit will write, etag and time included, except the number and lsn in `after`. E_CONFLICT, E_NOT_FOUND, E_PRECONDITION,
 * E_UNIQUE_KEY and similar: nothing was written, and the transaction stays open. E_TOO_LARGE: the transaction is full. */
MUST_CHECK err item_transaction_write(item_transaction *t, op *o, container *c, item_op *op);

/* For feeds, rows and queries (item_cursor.moment, item_rows_ask.moment): the container as the transaction sees it, valid as long as the
 * transaction. They may read the partition of `key`, or any other in the same home. */
MUST_CHECK err item_transaction_moment(item_transaction *t, op *o, container *c, const item_key *key, const item_moment **moment_out);

/* Whether there is room for another write of this many bytes. */
bool item_transaction_accepts(const item_transaction *t, size_t bytes);

/* ---- the end ---- */

/* Call it when the deadline has passed: releases the snapshot and discards the writes now. Not while a call or a commit is running. */
void item_transaction_expire(item_transaction *t);
bool item_transaction_is_overdue(const item_transaction *t);

/* Lists the index terms of all writes. Call it before the commit, not on a loop if the writes to a container are large: of these the
 * committer lists them otherwise. item_transaction_large is the first such container, or NULL. */
const container *item_transaction_large(const item_transaction *t);
void item_transaction_list(item_transaction *t);

/* Call it once; afterwards only item_transaction_outcome, item_transaction_mark and item_transaction_end may follow. `done` is called on
 * the committer's thread, or at once if nothing was written; it must hand over. OK means submitted: item_transaction_outcome has the
 * outcome, unless item_transaction_missed. On E_TRANSACTION_EXPIRED nothing was submitted, and `done` is not called. */
MUST_CHECK err item_transaction_commit(item_transaction *t, op *o, void (*done)(void *context), void *context);

/* In `done`: a container whose data the committer did not find in memory; NULL: the commit is decided. Call item_transaction_fetch on a
 * thread that may wait for the disk, then item_transaction_commit_again, after which `done` is called once more. `fetched` false: no such
 * thread was available, and the committer waits for the disk. */
const container *item_transaction_missed(const item_transaction *t);
void item_transaction_fetch(item_transaction *t);
void item_transaction_commit_again(item_transaction *t, bool fetched);

MUST_CHECK err item_transaction_outcome(const item_transaction *t, op *o); /* after done; copies the error text, if there is one, to `o` */

/* After a commit: the mark of the range that was last written in this container. False: the transaction wrote nothing there. */
bool item_transaction_mark(const item_transaction *t, const container *c, item_mark *mark_out);

/* The row key of the item with this number in the key's partition, own writes first, in the operation's arena. E_NOT_FOUND. Not charged. */
MUST_CHECK err item_transaction_row_of(item_transaction *t, op *o, container *c, const item_key *key, uint64_t number, slice *row_out);
