/* budget.h — a limit for the memory of one request, counted before allocation.
 *
 * A budget has its own limit and draws on a pool that all requests share. Arenas and buffers with a budget take from it when they grow and
 * give back when they shrink. A refused take sets `exceeded`, which stays set: evaluators check it between steps, and the request ends with
 * budget_error().
 *
 * Small allocations are counted without asking (budget_force), and an excess is noticed at the next step. Large ones must ask first
 * (budget_take, arena_fits), so that they are not made at all.
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
    budget_pool *pool; /* NULL: no shared pool */
    size_t max, used;
    size_t own;     /* bytes not drawn from the pool, so that small requests are served even if the pool is empty */
    size_t drawn;   /* bytes drawn from the pool, in whole steps; covers the part of `used` above `own` */
    bool exceeded;  /* a take was refused */
    bool starved;   /* the first refusal was because the pool had too little left */
    size_t overrun; /* by how much forced takes exceeded the limit; tests check that it stays small */
} budget;

enum { BUDGET_STEP = 64 * 1024 }; /* drawn from the pool in multiples of this */

static inline budget budget_init(budget_pool *pool, size_t max) {
    return (budget){.pool = pool, .max = max};
}

static inline budget budget_init_own(budget_pool *pool, size_t max, size_t own) {
    return (budget){.pool = pool, .max = max, .own = own};
}

bool budget_take(budget *b, size_t n);  /* false: nothing was taken, and `exceeded` is set */
void budget_force(budget *b, size_t n); /* always takes; above the limit `exceeded` is set */
void budget_give(budget *b, size_t n);
void budget_renew(budget *b); /* clears `exceeded`, for a caller that freed memory and tries another way */
void budget_end(budget *b); /* at the end of a request: returns drawn bytes to the pool. `used` stays, for the block that the arena keeps */

/* E_MEMORY if the own limit was exceeded, E_BUSY_MEMORY if the pool's was, otherwise OK. */
err budget_error(const budget *b);
