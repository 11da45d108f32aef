/* wipe.h — deleting all items of a logical partition at once.
 *
 * A *wipe* is a record of the partition and of its range's lsn at that moment, written by one small commit. From then on every item of the
 * partition whose last write is not younger than that lsn counts as absent, for readers and writers alike (item_gone); items that are
 * written later are not concerned. The bytes are removed afterwards, in small commits that the balancer starts, at a tenth of the range's
 * throughput. The record is deleted with the last item, so the removal continues after a restart.
 *
 * A finished wipe stays in memory for a while: a page or a transaction that began earlier may still read a snapshot with its items.
 */
#pragma once

#include "item/item.h"

enum { LIMIT_WIPES = 1000 }; /* per container; further ones are rejected until some are finished */

typedef struct item_wipe item_wipe;
struct item_wipe {
    commit base;
    const items *items;
    op *op;               /* the request's */
    container *container; /* the caller keeps its reference until `done` */
    item_key key;         /* its row key is ignored */
    void (*done)(item_wipe *w);

    /* output, besides base.code */
    bool pending; /* there are items to remove */
    uint64_t lsn;
    container_range *range; /* valid until item_wipe_give */
    container_tiles *tiles;
};

MUST_CHECK err item_wipe_submit(item_wipe *w); /* E_THROTTLED: nothing submitted. E_OWNER_NOT_FOUND, E_TENANT_BUSY come in `done` */
void item_wipe_charge(item_wipe *w);           /* after done, on the caller's thread */
item_mark item_wipe_mark(const item_wipe *w);  /* the range's lsn after the write */
void item_wipe_give(item_wipe *w);

/* ---- readers ---- */

/* Whether wipes may hide items of the container from a reader that looks at the store, or takes its snapshot, after this call. Then index
 * entries alone do not tell which items there are. Any thread. */
static inline bool item_wipes_now(const container *c) {
    return atomic_load_explicit(&c->space->wipes_open, memory_order_acquire) != 0;
}

/* The same for a snapshot that was taken earlier: it may also have items of wipes that are finished by now. */
static inline bool item_wipes_past(const container *c) {
    return atomic_load_explicit(&c->space->wipes_n, memory_order_acquire) != 0;
}

/* ---- the removal ---- */

/* Whether a step can do something now. Any thread. */
bool item_wipes_open(const container *c); /* items are still to be removed */
bool item_wipes_due(const items *s, const container *c);

/* Removes some items of one wipe, by a commit of its own, and forgets wipes that were finished long ago. One step of a container at a
 * time. */
typedef struct item_wipe_step item_wipe_step;
struct item_wipe_step {
    commit base; /* base.code is the result */
    const items *items;
    container *container; /* the caller keeps its reference until `done` */
    unsigned cost_max;    /* an item costs 1, plus 1 for each 4 KB */
    void (*done)(item_wipe_step *step);

    /* private to wipe.c */
    home *home;
    struct wipe *wipe;
    container_range *range; /* the range that items were removed from; NULL: none */
    unsigned cost_left;
    double ru;
    bool ended;
    buf at;
};
bool item_wipe_step_submit(item_wipe_step *step); /* false: nothing to remove, and `done` is not called */

/* ---- start and end of a space ---- */

MUST_CHECK err item_wipes_load(container *c);          /* from all homes of the container */
void item_wipes_drop(store_batch *b, uint32_t number); /* deletes the records of a deleted container */
void item__wipes_free(container_space *space);         /* when the space is freed */
