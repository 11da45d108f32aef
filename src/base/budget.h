/* budget.h — the memory that one request may hold, counted before it is allocated.
 *
 * A budget has a limit of its own and draws on a pool that all requests share. Arenas and buffers that are given a budget take from it when
 * they grow and give back when they shrink. A refused take sets `exceeded`, which stays set: whoever evaluates looks at it between steps,
 * and the request ends with budget_error().
 *
 * What is allocated in small pieces is counted as it is allocated (budget_force) and noticed at the next step. What may be large is asked
 * for first (budget_take, arena_fits), since it must not be allocated at all.
 *
 * A budget belongs to one thread at a time; a pool may be shared by all. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct budget_pool {
    atomic_size_t used;
    size_t max;
} budget_pool;

typedef struct budget {
    budget_pool *pool; /* NULL: none is shared */
    size_t max, used;
    size_t own;     /* not drawn from the pool: so small requests go on when the pool is empty */
    size_t drawn;   /* from the pool, in whole steps; it covers `used` past `own` */
    bool exceeded;  /* a take was refused */
    bool starved;   /* … because the pool had too little left */
    size_t overrun; /* how far forced takes went past the limit; tests check that it stays small */
} budget;

enum { BUDGET_STEP = 64 * 1024 }; /* what is drawn from the pool at once */

static inline budget budget_init(budget_pool *pool, size_t max) {
    return (budget){.pool = pool, .max = max};
}

static inline budget budget_init_own(budget_pool *pool, size_t max, size_t own) {
    return (budget){.pool = pool, .max = max, .own = own};
}

bool budget_take(budget *b, size_t n);  /* false: nothing was taken, and `exceeded` is set */
void budget_force(budget *b, size_t n); /* taken whatever the limit; past it `exceeded` is set */
void budget_give(budget *b, size_t n);
void budget_renew(budget *b); /* clears `exceeded`, for a caller that freed memory and tries another way */
void budget_end(budget *b);   /* of a request: returns what was drawn to the pool. `used` stays, for the block that the arena keeps */

/* E_MEMORY or E_BUSY_MEMORY, by what was exceeded. OK: nothing was. */
err budget_error(const budget *b);
