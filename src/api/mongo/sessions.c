#include "api/mongo/sessions.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/keyed_hash.h"
#include "base/memory.h"

/* Clients choose the ids. The hash is keyed, so that they cannot choose colliding ones. */
#define HASH_FUNCTION(key, n, hash_out) ((hash_out) = (unsigned)keyed_hash_bytes(slice_of((key), (n)), 0))
#include <uthash.h>

typedef struct session {
    mongo_session_id id;
    int64_t number; /* the highest that was used */
    int64_t used_us;
    session_state state;
    bool taken;
    bool ending;                   /* endSessions while it was taken */
    call_transaction *transaction; /* NULL: none is open */
    struct session *newer, *older; /* by last use */
    UT_hash_handle hh;
} session;

struct mongo_sessions {
    pthread_mutex_t lock;
    session *table;
    session *newest, *oldest;
    size_t open;
};

mongo_sessions *mongo_sessions_new(void) {
    mongo_sessions *t = mem_zero(sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

/* ---- the list by last use; with the lock held from here on ---- */

static void unlink_session(mongo_sessions *t, session *s) {
    *(s->newer ? &s->newer->older : &t->newest) = s->older;
    *(s->older ? &s->older->newer : &t->oldest) = s->newer;
    s->newer = s->older = NULL;
}

static void link_newest(mongo_sessions *t, session *s) {
    s->older = t->newest;
    *(t->newest ? &t->newest->newer : &t->oldest) = s;
    t->newest = s;
}

static void touch(mongo_sessions *t, session *s, int64_t now_us) {
    s->used_us = now_us;
    unlink_session(t, s);
    link_newest(t, s);
}

static void close_transaction(mongo_sessions *t, session *s, session_state state) {
    if (s->transaction) {
        call_transaction_end(s->transaction);
        s->transaction = NULL;
        t->open--;
    }
    s->state = state;
}

static void forget(mongo_sessions *t, session *s) {
    close_transaction(t, s, SESSION_ABORTED);
    unlink_session(t, s);
    HASH_DEL(t->table, s);
    free(s);
}

/* Forgets the oldest session that no request is working with. */
static void make_room(mongo_sessions *t) {
    session *s = t->oldest;
    while (s && s->taken) {
        s = s->newer;
    }
    if (s && HASH_COUNT(t->table) >= MONGO_SESSIONS_MAX) {
        forget(t, s);
    }
}

static session *find(mongo_sessions *t, const mongo_session_id *id) {
    session *s;
    HASH_FIND(hh, t->table, id, sizeof *id, s);
    return s;
}

/* The number of a new session is below all others. */
static session *find_or_add(mongo_sessions *t, const mongo_session_id *id, int64_t now_us) {
    session *s = find(t, id);
    if (!s) {
        make_room(t);
        s = mem_zero(sizeof *s);
        s->id = *id;
        s->number = -1;
        HASH_ADD(hh, t->table, id, sizeof s->id, s);
        link_newest(t, s);
    }
    touch(t, s, now_us);
    return s;
}

/* ---- retryable writes ---- */

static session_write note_write(session *s, int64_t number) {
    if (number < s->number) {
        return SESSION_TOO_OLD;
    }
    bool known = s->number >= 0; /* a session that this process does not know may have been used before a restart */
    bool again = number == s->number || !known;
    s->number = number;
    return again ? SESSION_AGAIN : SESSION_FIRST;
}

session_write mongo_sessions_write(mongo_sessions *t, const mongo_session_id *id, int64_t number, int64_t now_us) {
    pthread_mutex_lock(&t->lock);
    session_write result = note_write(find_or_add(t, id, now_us), number);
    pthread_mutex_unlock(&t->lock);
    return result;
}

/* ---- transactions ---- */

static session_turn begin(mongo_sessions *t, session *s, int64_t number, call_transaction *transaction) {
    if (number <= s->number) {
        return SESSION_NUMBER_OLD;
    }
    if (s->taken) {
        return SESSION_BUSY;
    }
    close_transaction(t, s, SESSION_ABORTED);
    if (t->open >= MONGO_TRANSACTIONS_MAX) {
        return SESSION_CROWDED;
    }
    s->number = number;
    s->state = SESSION_OPEN;
    s->transaction = transaction;
    s->taken = true;
    t->open++;
    return SESSION_TAKEN;
}

session_turn mongo_sessions_begin(mongo_sessions *t, const mongo_session_id *id, int64_t number, call_transaction *transaction,
                                  int64_t now_us) {
    pthread_mutex_lock(&t->lock);
    session_turn turn = begin(t, find_or_add(t, id, now_us), number, transaction);
    pthread_mutex_unlock(&t->lock);
    return turn;
}

static session_turn take(session *s, int64_t number, call_transaction **transaction_out) {
    if (s->number != number || s->ending) {
        return SESSION_NONE;
    }
    if (s->state != SESSION_OPEN) {
        return s->state == SESSION_COMMITTED ? SESSION_IS_OVER : SESSION_NONE;
    }
    if (s->taken) {
        return SESSION_BUSY;
    }
    s->taken = true;
    *transaction_out = s->transaction;
    return SESSION_TAKEN;
}

session_turn mongo_sessions_take(mongo_sessions *t, const mongo_session_id *id, int64_t number, int64_t now_us,
                                 call_transaction **transaction_out) {
    session_turn turn = SESSION_NONE;
    *transaction_out = NULL;
    pthread_mutex_lock(&t->lock);
    session *s = find(t, id);
    if (s) {
        touch(t, s, now_us);
        turn = take(s, number, transaction_out);
    }
    pthread_mutex_unlock(&t->lock);
    return turn;
}

void mongo_sessions_give(mongo_sessions *t, const mongo_session_id *id, session_state state, int64_t now_us) {
    pthread_mutex_lock(&t->lock);
    session *s = find(t, id); /* never NULL: a taken session is not forgotten */
    s->taken = false;
    touch(t, s, now_us);
    if (s->ending) {
        forget(t, s);
    } else if (state != SESSION_OPEN) {
        close_transaction(t, s, state);
    }
    pthread_mutex_unlock(&t->lock);
}

void mongo_sessions_end(mongo_sessions *t, const mongo_session_id *id) {
    pthread_mutex_lock(&t->lock);
    session *s = find(t, id);
    if (s && s->taken) {
        s->ending = true;
    } else if (s) {
        forget(t, s);
    }
    pthread_mutex_unlock(&t->lock);
}

/* ---- all of them ---- */

/* Sessions lie in the order of their last use, so the walk ends at the first one that is neither idle nor overdue. */
void mongo_sessions_tick(mongo_sessions *t, int64_t now_us) {
    pthread_mutex_lock(&t->lock);
    for (session *s = t->oldest, *newer; s; s = newer) {
        newer = s->newer;
        int64_t idle_s = (now_us - s->used_us) / 1000000;
        if (idle_s < LIMIT_TRANSACTION_SECONDS) {
            break;
        }
        if (!s->taken && s->state == SESSION_OPEN) {
            close_transaction(t, s, SESSION_ABORTED);
        }
        if (!s->taken && idle_s >= MONGO_SESSION_IDLE_S) {
            forget(t, s);
        }
    }
    pthread_mutex_unlock(&t->lock);
}

size_t mongo_sessions_count(mongo_sessions *t) {
    pthread_mutex_lock(&t->lock);
    size_t n = HASH_COUNT(t->table);
    pthread_mutex_unlock(&t->lock);
    return n;
}

size_t mongo_sessions_open(mongo_sessions *t) {
    pthread_mutex_lock(&t->lock);
    size_t n = t->open;
    pthread_mutex_unlock(&t->lock);
    return n;
}

void mongo_sessions_free(mongo_sessions *t) {
    while (t->oldest) {
        forget(t, t->oldest);
    }
    pthread_mutex_destroy(&t->lock);
    free(t);
}
