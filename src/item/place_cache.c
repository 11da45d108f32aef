/* Direct-mapped. An entry is two words, each written whole: the number, and the segment beside a piece of the hash. A reader may see the
 * words of two different writes; what it then guesses is checked like any other guess. */
#include "item/place_cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/memory.h"

typedef struct entry {
    _Atomic uint64_t number;
    _Atomic uint64_t tag; /* segment << 32 | upper half of the hash; 0: empty */
} entry;

struct place_cache {
    entry *entries;
    size_t mask;
};

place_cache *place_cache_open(size_t entries) {
    size_t n = 1024;
    while (n < entries) {
        n *= 2;
    }
    place_cache *c = mem_zero(sizeof *c);
    c->entries = mmap(NULL, n * sizeof(entry), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (c->entries == MAP_FAILED) {
        abort();
    }
    c->mask = n - 1;
    return c;
}

void place_cache_close(place_cache *c) {
    munmap(c->entries, (c->mask + 1) * sizeof(entry));
    free(c);
}

uint64_t place_cache_hash(slice primary_key) {
    uint64_t h = primary_key.n * 0x9E3779B97F4A7C15u;
    const char *p = primary_key.p;
    size_t n = primary_key.n;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = (h ^ word) * 0xFF51AFD7ED558CCDu;
        h ^= h >> 32;
    }
    uint64_t rest = 0;
    memcpy(&rest, p, n);
    h = (h ^ rest) * 0xC4CEB9FE1A85EC53u;
    return h ^ (h >> 33);
}

static uint64_t tag_of(uint64_t hash, uint32_t segment) {
    return (uint64_t)segment << 32 | (hash >> 32) | 1;
}

bool place_cache_guess(const place_cache *c, uint64_t hash, item_place *place_out) {
    const entry *e = &c->entries[hash & c->mask];
    uint64_t tag = atomic_load_explicit(&e->tag, memory_order_relaxed);
    *place_out = (item_place){(uint32_t)(tag >> 32), atomic_load_explicit(&e->number, memory_order_relaxed)};
    return tag == tag_of(hash, place_out->segment);
}

void place_cache_note(place_cache *c, uint64_t hash, item_place place) {
    entry *e = &c->entries[hash & c->mask];
    atomic_store_explicit(&e->number, place.number, memory_order_relaxed);
    atomic_store_explicit(&e->tag, tag_of(hash, place.segment), memory_order_relaxed);
}
