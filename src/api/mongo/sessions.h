/* sessions.h — logical sessions: the numbers of their retryable writes, and their transactions. Shared by all loops.
 *
 * A session is named by its client (`lsid`) and belongs to the key that the client has used. It exists from its first retryable write or
 * transaction until nobody has used it for half an hour. Numbers (`txnNumber`) ascend within a session. A session has one transaction at
 * a time:
 *
 *              begin                 commit
 *   SESSION_IDLE ───▶ SESSION_OPEN ─────────▶ SESSION_COMMITTED ──▶ begin with a higher number
 *                        │ abort, an error, a minute without use, endSessions
 *                        ▼
 *                     SESSION_ABORTED ──▶ begin with a higher number
 *
 * A request *takes* the transaction while it works with it, so a transaction is used by one request at a time. The number of sessions is
 * bounded; when there are too many, the one that was not used for the longest time is forgotten. Any thread. */
#pragma once

#include "call/call.h"

typedef struct mongo_sessions mongo_sessions;

typedef struct mongo_session_id {
    uint8_t uuid[16];
    uint64_t owner; /* serial of the key that its client has used */
} mongo_session_id;

enum { MONGO_SESSIONS_MAX = 100000, MONGO_SESSION_IDLE_S = 1800 };

mongo_sessions *mongo_sessions_new(void);
void mongo_sessions_free(mongo_sessions *t); /* ends the open transactions */
void mongo_sessions_tick(mongo_sessions *t, int64_t now_us);
size_t mongo_sessions_count(mongo_sessions *t);
size_t mongo_sessions_open(mongo_sessions *t); /* number of open transactions */

/* ---- retryable writes ---- */

typedef enum session_write {
    SESSION_FIRST,   /* the number is new: no receipt can exist */
    SESSION_AGAIN,   /* the number was used, or may have been: look for receipts */
    SESSION_TOO_OLD, /* a higher number was used before */
} session_write;

session_write mongo_sessions_write(mongo_sessions *t, const mongo_session_id *id, int64_t number, int64_t now_us);

/* ---- transactions ---- */

typedef enum session_turn {
    SESSION_TAKEN,      /* give it back */
    SESSION_BUSY,       /* another request is working with it */
    SESSION_NONE,       /* there is no such transaction, or it was aborted */
    SESSION_IS_OVER,    /* it was committed */
    SESSION_NUMBER_OLD, /* begin: a number that was used before */
    SESSION_CROWDED,    /* begin: too many transactions are open */
} session_turn;

/* Registers a transaction and takes it. An open transaction of the session with a lower number is aborted. On failure the caller still owns
 * `transaction`. */
session_turn mongo_sessions_begin(mongo_sessions *t, const mongo_session_id *id, int64_t number, call_transaction *transaction,
                                  int64_t now_us);
session_turn mongo_sessions_take(mongo_sessions *t, const mongo_session_id *id, int64_t number, int64_t now_us,
                                 call_transaction **transaction_out);

typedef enum session_state { SESSION_IDLE, SESSION_OPEN, SESSION_COMMITTED, SESSION_ABORTED } session_state;

/* Gives back what was taken. Unless `state` is SESSION_OPEN, this ends the transaction. */
void mongo_sessions_give(mongo_sessions *t, const mongo_session_id *id, session_state state, int64_t now_us);

/* endSessions: forgets the session; an open transaction is aborted, at once or when it is given back. */
void mongo_sessions_end(mongo_sessions *t, const mongo_session_id *id);

enum { MONGO_TRANSACTIONS_MAX = 1000 }; /* each holds a snapshot */
