/* retry.h — within api/mongo: the session of a request, and writes that their client may repeat.
 *
 * A command with `lsid` and `txnNumber` outside a transaction is *retryable*: each of its statements stores a receipt (item/receipt.h),
 * named by session, number and statement. A repetition gets the first outcome, also after a restart. Statements for several documents
 * cannot be retryable. */
#pragma once

#include "api/mongo/mongo_int.h"

/* Reads lsid and txnNumber into q->session, and records the number. 225 (TransactionTooOld): the session has used a higher one. */
MUST_CHECK err mongo_session_read(mongo_request *q);

/* The receipt of a statement, counted from 0; without a key if the command is not retryable. */
item_receipt mongo_receipt_of(mongo_request *q, size_t statement, item_image image);

/* 72 (InvalidOptions) for a statement for several documents in a retryable command. */
MUST_CHECK err mongo_check_multi(mongo_request *q, bool multi);
