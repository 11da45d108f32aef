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
    size_t drawn;   /* from the pool, in whole steps; it covers `used` past BUDGET_OWN */
    bool exceeded;  /* a take was refused */
    bool starved;   /* … since the pool had too little left */
    size_t overrun; /* how far forced takes went past the limit; tests see to it that this is little */
} budget;

enum {
    BUDGET_STEP = 64 * 1024,  /* what is drawn from the pool at once */
    BUDGET_OWN = 1024 * 1024, /* what every request has without drawing on the pool: ordinary ones go on when the pool is empty */
};

static inline budget budget_init(budget_pool *pool, size_t max) {
    return (budget){.pool = pool, .max = max};
}

bool budget_take(budget *b, size_t n);  /* false: nothing was taken, and `exceeded` is set */
void budget_force(budget *b, size_t n); /* taken whatever the limit; past it `exceeded` is set */
void budget_give(budget *b, size_t n);
void budget_renew(budget *b); /* forgets that takes were refused, for whoever freed enough to try in another way */
void budget_end(budget *b);   /* of a request: gives the pool back what was drawn. What its owner keeps for the next one stays counted */

/* E_MEMORY or E_BUSY_MEMORY, by what was exceeded. OK: nothing was. */
err budget_error(const budget *b);
