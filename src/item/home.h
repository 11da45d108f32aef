/* home.h — the home of a range: the store that its items are in, and the state that belongs to that store.
 *
 * A store has one committer, so everything that commits update in memory exists once per store: the item cache, the counts of ranges, the
 * scratch lists for index terms. Every range points to its home, which never changes; all access to a range's items goes through it. An
 * account has one or several homes (items.homes); the first one also holds the metadata. A container's state in each home is its
 * container_part (item/container.h).
 *
 * Any thread may use a home's store and cache, and submit to its committer. Sizes, counts and lists belong to the committer's thread. */
#pragma once

#include "store/committer.h"

typedef struct item_cache item_cache; /* item/cache.h */
typedef struct size_cache size_cache; /* item/size_cache.h */
typedef struct counts_log counts_log; /* item/counts.h */
typedef struct item_lists item_lists; /* item/index_entries.h */

enum { HOMES_MAX = 16 };

typedef struct home {
    uint32_t number;      /* index in items.homes */
    store *store;         /* owned by the caller */
    committer *committer; /* NULL: its thread could not be started, or has been stopped */
    item_cache *cache;
    size_cache *sizes;
    counts_log *counts;
    item_lists *lists;
    uint64_t batches;        /* owned by the committer: the number of the last atomic commit */
    uint32_t receipt_period; /* owned by the committer: the last period in which old receipts were deleted (item/receipt.h) */
} home;

home *home_open(uint32_t number, store *store, size_t cache_bytes);
void home_stop(home *h); /* finishes what was submitted, and accepts no more */
void home_close(home *h);
