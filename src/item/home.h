/* home.h — the home of a range: the store that its items are in, and what belongs to that one store.
 *
 * A store has one committer, so everything that a commit leaves in memory is kept per store too: the cache of items, the counts of ranges,
 * the lists that index terms are made in. Every range points to its home for life, and everything that reads or writes a range's items goes
 * through it. An account has one home or several (items.homes); the first one holds the metadata as well. What a container keeps in each
 * home is its container_part (item/container.h).
 *
 * Any thread may use a home's store and cache, and submit to its committer. Counts and lists belong to the committer's thread. */
#pragma once

#include "store/committer.h"

typedef struct item_cache item_cache; /* item/cache.h */
typedef struct counts_log counts_log; /* item/counts.h */
typedef struct item_lists item_lists; /* item/terms.h */

enum { HOMES_MAX = 16 };

typedef struct home {
    uint32_t number;      /* its place in items.homes */
    store *store;         /* the caller's */
    committer *committer; /* NULL: its thread could not be started, or it was stopped */
    item_cache *cache;
    counts_log *counts;
    item_lists *lists;
} home;

home *home_open(uint32_t number, store *store, size_t cache_bytes);
void home_stop(home *h); /* finishes what was submitted and takes no more */
void home_close(home *h);
