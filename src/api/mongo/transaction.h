/* transaction.h — within api/mongo: transactions of several commands.
 *
 * A command with `autocommit: false` works within its session's transaction (sessions.h). It takes the transaction before it runs and gives
 * it back when it is answered; an error aborts the transaction, as in MongoDB. Reads scan the collection as of the transaction's snapshot,
 * with its own writes on top; a filter that names a document by its key reads only that one. Conflicts show at the commit: 112
 * (WriteConflict), with the label that makes drivers run the whole transaction again. */
#pragma once

#include "api/mongo/scan.h"

/* Takes the transaction that the command belongs to, or begins it. 251 (NoSuchTransaction), 263 (OperationNotSupportedInTransaction). */
MUST_CHECK err mongo_transaction_enter(mongo_request *q);
void mongo_transaction_leave(mongo_request *q, bool failed); /* call when the command is answered */

/* Commits the operations, or adds them to the transaction if there is one. Each operation gets its code. `done` must call
 * call_commit_give(&q->call.commit) in both cases. */
void mongo_commit(mongo_request *q, item_op *ops, size_t n, bool stops, call_step done);

/* A page of a scan within the transaction. `done` finds the next page's beginning in *from. */
void mongo_transaction_page(mongo_request *q, mongo_scan *s, call_step done);
