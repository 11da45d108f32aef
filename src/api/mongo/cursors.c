#include "api/mongo/cursors.h"

#include "api/mongo/aggregate.h"
#include "api/mongo/change_wide.h"

#include <openssl/rand.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"

/* uthash's default has unannotated switch fall-through, which clang rejects. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

/* An entry of the table. While a request uses the cursor, `cursor` is NULL. */
struct mongo_cursor_link {
    int64_t id;
    uint64_t owner;
    mongo_cursor *cursor; /* NULL: in use */
    bool killed, no_timeout;
    size_t held;
    int64_t used_us;
    UT_hash_handle hh;
};

typedef struct mongo_cursor_link link_of;

/* What the cursors of one key take. An account has four keys; when a key was changed, cursors of the old one may remain. */
typedef struct share {
    uint64_t owner;
    size_t n, held;
} share;

enum { SHARES = 16 };

struct mongo_cursors {
    pthread_mutex_t lock;
    link_of *links;
    size_t held; /* bytes that all cursors hold */
    share shares[SHARES];
};

mongo_cursors *mongo_cursors_new(void) {
    mongo_cursors *t = mem_zero(sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

mongo_cursor *mongo_cursor_new(slice ns, uint64_t owner, budget_pool *pool) {
    mongo_cursor *c = mem_zero(sizeof *c);
    c->owner = owner;
    c->memory = budget_init_own(pool, MONGO_CURSOR_MEMORY_MAX, MONGO_CURSOR_MEMORY_OWN);
    c->arena = arena_init_small();
    c->arena.budget = &c->memory;
    c->ns = arena_copy(&c->arena, ns);
    c->position = buf_init_counted(BUF_NO_LIMIT, &c->memory);
    c->held = buf_init_counted(BUF_NO_LIMIT, &c->memory);
    return c;
}

void mongo_cursor_free(mongo_cursor *c) {
    if (c->container) {
        container_give(c->container);
    }
    if (c->aggregation) {
        mongo_aggregation_free(c->aggregation);
    }
    if (c->stream) {
        mongo_wide_free(c->stream->wide);
    }
    buf_free(&c->position);
    buf_free(&c->held);
    arena_free(&c->arena);
    budget_end(&c->memory);
    free(c);
}

/* The share of the owner, or one that is not used; NULL: all are used by others. */
static share *share_of(mongo_cursors *t, uint64_t owner) {
    share *unused = NULL;
    for (size_t i = 0; i < SHARES; i++) {
        share *s = &t->shares[i];
        if (s->n && s->owner == owner) {
            return s;
        }
        unused = s->n ? unused : s;
    }
    return unused;
}

/* Call with the lock held. Returns the cursor, for the caller to free; NULL: it is in use. */
static mongo_cursor *remove_link(mongo_cursors *t, link_of *l) {
    mongo_cursor *c = l->cursor;
    share *s = share_of(t, l->owner);
    t->held -= l->held;
    s->held -= l->held;
    s->n--;
    HASH_DEL(t->links, l);
    free(l);
    return c;
}

void mongo_cursors_clear(mongo_cursors *t) {
    link_of *l, *next;
    HASH_ITER(hh, t->links, l, next) {
        mongo_cursor *c = remove_link(t, l);
        if (c) {
            mongo_cursor_free(c);
        }
    }
}

void mongo_cursors_free(mongo_cursors *t) {
    mongo_cursors_clear(t);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static link_of *find(mongo_cursors *t, int64_t id) {
    link_of *l;
    HASH_FIND(hh, t->links, &id, sizeof id, l);
    return l;
}

static int64_t random_id(mongo_cursors *t) {
    int64_t id;
    do {
        int good = RAND_bytes((unsigned char *)&id, sizeof id);
        id = good == 1 ? id & INT64_MAX : 0;
    } while (id == 0 || find(t, id));
    return id;
}

/* Results that were computed ahead, the position, and the copies of filter, pipeline and variables with their trees. */
static size_t memory_of(const mongo_cursor *c) {
    return c->held.cap + c->position.cap + c->arena.held;
}

err mongo_cursors_add(mongo_cursors *t, mongo_cursor *c, int64_t now_us) {
    size_t held = memory_of(c);
    pthread_mutex_lock(&t->lock);
    share *s = share_of(t, c->owner);
    bool full = HASH_COUNT(t->links) >= MONGO_CURSORS_MAX || t->held + held > MONGO_CURSORS_HELD_MAX || !s ||
                s->n >= MONGO_CURSORS_MAX / 2 || (s->n && s->held + held > MONGO_CURSORS_HELD_MAX / 2);
    if (!full) {
        *s = (share){c->owner, s->n + 1, (s->n ? s->held : 0) + held};
        link_of *l = mem_zero(sizeof *l);
        *l = (link_of){.id = random_id(t), .owner = c->owner, .cursor = c, .no_timeout = c->no_timeout, .held = held, .used_us = now_us};
        c->id = l->id;
        t->held += l->held;
        HASH_ADD(hh, t->links, id, sizeof l->id, l);
    }
    pthread_mutex_unlock(&t->lock);
    return full ? E_BUSY_MEMORY : OK;
}

cursor_state mongo_cursors_take(mongo_cursors *t, int64_t id, uint64_t owner, mongo_cursor **cursor_out) {
    cursor_state state = CURSOR_TAKEN;
    *cursor_out = NULL;
    pthread_mutex_lock(&t->lock);
    link_of *l = find(t, id);
    if (!l || l->killed) {
        state = CURSOR_UNKNOWN;
    } else if (l->owner != owner) {
        state = CURSOR_OF_ANOTHER;
    } else if (!l->cursor) {
        state = CURSOR_BUSY;
    } else {
        *cursor_out = l->cursor;
        l->cursor = NULL;
    }
    pthread_mutex_unlock(&t->lock);
    return state;
}

void mongo_cursors_give(mongo_cursors *t, mongo_cursor *c, int64_t now_us) {
    pthread_mutex_lock(&t->lock);
    link_of *l = find(t, c->id);
    bool killed = l->killed;
    l->used_us = now_us;
    l->cursor = killed ? NULL : c;
    if (killed) {
        remove_link(t, l);
    }
    pthread_mutex_unlock(&t->lock);
    if (killed) {
        mongo_cursor_free(c);
    }
}

void mongo_cursors_drop(mongo_cursors *t, mongo_cursor *c) {
    pthread_mutex_lock(&t->lock);
    link_of *l = find(t, c->id);
    if (l) {
        remove_link(t, l);
    }
    pthread_mutex_unlock(&t->lock);
    mongo_cursor_free(c);
}

cursor_state mongo_cursors_kill(mongo_cursors *t, int64_t id, uint64_t owner) {
    mongo_cursor *dead = NULL;
    pthread_mutex_lock(&t->lock);
    link_of *l = find(t, id);
    cursor_state state = !l || l->killed ? CURSOR_UNKNOWN : l->owner != owner ? CURSOR_OF_ANOTHER : CURSOR_TAKEN;
    if (state == CURSOR_TAKEN && l->cursor) {
        dead = remove_link(t, l);
    } else if (state == CURSOR_TAKEN) {
        l->killed = true;
    }
    pthread_mutex_unlock(&t->lock);
    if (dead) {
        mongo_cursor_free(dead);
    }
    return state;
}

/* Limit of one tick, so that the lock is not held for long; the next tick closes the rest. */
void mongo_cursors_tick(mongo_cursors *t, int64_t now_us) {
    enum { AT_ONCE = 64 };
    mongo_cursor *dead[AT_ONCE];
    size_t n = 0;
    link_of *l, *next;
    pthread_mutex_lock(&t->lock);
    HASH_ITER(hh, t->links, l, next) {
        int64_t idle_s = (now_us - l->used_us) / 1000000;
        if (n < AT_ONCE && l->cursor && idle_s >= (l->no_timeout ? MONGO_CURSOR_IDLE_LONG_S : MONGO_CURSOR_IDLE_S)) {
            dead[n++] = remove_link(t, l);
        }
    }
    pthread_mutex_unlock(&t->lock);
    for (size_t i = 0; i < n; i++) {
        mongo_cursor_free(dead[i]);
    }
}

size_t mongo_cursors_open(mongo_cursors *t) {
    pthread_mutex_lock(&t->lock);
    size_t n = HASH_COUNT(t->links);
    pthread_mutex_unlock(&t->lock);
    return n;
}
