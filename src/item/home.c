#include "item/home.h"

#include <stdlib.h>

#include "base/memory.h"
#include "item/cache.h"
#include "item/counts.h"
#include "item/index_entries.h"
#include "item/size_cache.h"

enum { SIZES_SHARE = 64, SIZES_BYTES_MAX = 1024 * 1024 }; /* of the cache's bytes */

home *home_open(uint32_t number, store *store, size_t cache_bytes) {
    home *h = mem_zero(sizeof *h);
    size_t sizes_bytes = cache_bytes / SIZES_SHARE < SIZES_BYTES_MAX ? cache_bytes / SIZES_SHARE : SIZES_BYTES_MAX;
    *h = (home){
        .number = number,
        .store = store,
        .committer = committer_open(store),
        .cache = item_cache_open(cache_bytes - sizes_bytes),
        .sizes = size_cache_open(sizes_bytes),
        .counts = mem_zero(sizeof(counts_log)),
        .lists = item_lists_new(),
    };
    counts_log_open(h->counts);
    return h;
}

void home_stop(home *h) {
    if (h->committer) {
        committer_close(h->committer);
        h->committer = NULL;
    }
}

void home_close(home *h) {
    home_stop(h);
    item_cache_close(h->cache);
    size_cache_close(h->sizes);
    item_lists_free(h->lists);
    counts_log_close(h->counts);
    free(h->counts);
    free(h);
}
