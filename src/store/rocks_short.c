/* Short lists of the numbers of a stem, cached in memory: the tail's entries and the tables' together, as one batch left them. A lookup
 * that finds its list needs neither RocksDB nor the tail. Scans of a whole stem note what they read, so making a list costs no read of its
 * own.
 *
 * Flushes change no list, because they change no entry. Batches do: before a batch's run joins the tail, the writer notes its number for
 * each stem that it changes. So whoever can see the batch can see that note. A list is right for a reader if the last batch that changed
 * its stem is in both, in what the list was made from and in what the reader sees:
 *
 *     changed[stem] <= list.as_of  and  changed[stem] <= number of the reader's version
 *
 * `changed` has one number for all stems whose hashes collide there, which may hide a list, and never shows a wrong one. A deleted range
 * counts as a change of all stems, as does every run while there are no lists, so that loading data costs the writer nothing. */
#include <stdlib.h>

#include "base/hash.h"
#include "base/memory.h"
#include "store/rocks_int.h"

enum {
    CHANGED = 1 << 16, /* numbers of batches, by the stem's hash */
    WAYS = 4,
    BYTES_PER_SLOT = 128,
    MALLOC_BYTES = 16,
};

/* ---- what batches changed ---- */

static atomic_uint_fast64_t *changed_of(short_lists *t, uint64_t hash) {
    return &t->changed[(hash >> 32) % CHANGED];
}

/* The last batch that may have changed the stem. */
static uint64_t last_change(short_lists *t, uint64_t hash) {
    uint64_t one = atomic_load_explicit(changed_of(t, hash), memory_order_relaxed);
    uint64_t all = atomic_load_explicit(&t->all_changed, memory_order_relaxed);
    return one > all ? one : all;
}

static void note_stems(short_lists *t, const store_run *run) {
    slice last = SLICE_EMPTY;
    for (uint32_t i = 0; i < run->n; i++) {
        slice stem = store_run_key(run, i);
        stem.n -= stem.n < STEM_NUMBER_BYTES ? stem.n : STEM_NUMBER_BYTES;
        if (i == 0 || !slice_eq(stem, last)) {
            atomic_store_explicit(changed_of(t, hash_bytes(stem, 0)), run->last, memory_order_relaxed);
        }
        last = stem;
    }
}

void store__short_note(rocks *r, const store_run *run) {
    short_lists *t = &r->short_lists;
    if (run->ranges_n || !atomic_load_explicit(&t->any, memory_order_relaxed)) {
        atomic_store_explicit(&t->all_changed, run->last, memory_order_relaxed);
    } else {
        note_stems(t, run);
    }
}

/* ---- the table: sets of WAYS slots, in shards with a lock each ---- */

static short_shard *shard_of(short_lists *t, uint64_t hash) {
    return &t->shards[hash % SHORT_SHARDS];
}

static stem_list **set_of(short_lists *t, short_shard *s, uint64_t hash) {
    return &s->slots[hash / SHORT_SHARDS % (t->slots_n / WAYS) * WAYS];
}

static size_t cost_of(const stem_list *l) {
    return store__list_bytes(l) + MALLOC_BYTES;
}

/* Lock held, as for all that follow. */
static void drop(short_shard *s, stem_list **slot) {
    if (*slot) {
        s->bytes -= cost_of(*slot);
        store__list_give(*slot);
        *slot = NULL;
    }
}

static stem_list **find(short_lists *t, short_shard *s, uint64_t hash, slice stem) {
    stem_list **set = set_of(t, s, hash);
    for (stem_list **slot = set; slot < set + WAYS; slot++) {
        if (*slot && (*slot)->hash == hash && slice_eq(slice_of((*slot)->stem, (*slot)->stem_n), stem)) {
            return slot;
        }
    }
    return NULL;
}

/* A free slot of the set, or one whose list was not used lately. */
static stem_list **choose(stem_list **set) {
    stem_list **chosen = set;
    for (stem_list **slot = set; slot < set + WAYS && *chosen; slot++) {
        chosen = !*slot || ((*chosen)->used && !(*slot)->used) ? slot : chosen;
    }
    for (size_t i = 0; *chosen && i < WAYS; i++) {
        set[i]->used = false;
    }
    return chosen;
}

/* CLOCK eviction. */
static void make_room(short_lists *t, short_shard *s) {
    while (s->bytes > t->bytes_max) {
        stem_list **slot = &s->slots[s->hand++ % t->slots_n];
        if (*slot && (*slot)->used) {
            (*slot)->used = false;
        } else {
            drop(s, slot);
        }
    }
}

static void put(short_lists *t, short_shard *s, stem_list *l) {
    stem_list **slot = find(t, s, l->hash, slice_of(l->stem, l->stem_n));
    if (slot && (*slot)->as_of > l->as_of) {
        store__list_give(l);
        return;
    }
    slot = slot ? slot : choose(set_of(t, s, l->hash));
    drop(s, slot);
    *slot = l;
    s->bytes += cost_of(l);
    make_room(t, s);
}

/* ---- scans ---- */

store_scan *store__short_scan(rocks *r, uint64_t number, slice stem) {
    short_lists *t = &r->short_lists;
    if (!atomic_load_explicit(&t->any, memory_order_relaxed)) {
        return NULL;
    }
    uint64_t hash = hash_bytes(stem, 0);
    short_shard *s = shard_of(t, hash);
    stem_list *list = NULL;
    pthread_mutex_lock(&s->lock);
    stem_list **slot = find(t, s, hash, stem);
    uint64_t last = last_change(t, hash); /* after the list was found, which may be newer than what this thread knew before */
    if (slot && (*slot)->as_of < last) {
        drop(s, slot);
    } else if (slot && last <= number) {
        list = *slot;
        list->used = true;
        atomic_fetch_add_explicit(&list->refs, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&s->lock);
    return list ? store__list_scan(list) : NULL;
}

void store__short_add(rocks *r, uint64_t number, slice stem, const uint64_t *numbers, size_t n) {
    short_lists *t = &r->short_lists;
    uint64_t hash = hash_bytes(stem, 0);
    atomic_store_explicit(&t->any, true, memory_order_relaxed);
    if (last_change(t, hash) > number) {
        return;
    }
    stem_list *l = store__list_make(hash, number, stem, n);
    if (n) {
        memcpy(l->numbers, numbers, n * sizeof *numbers);
    }
    short_shard *s = shard_of(t, hash);
    pthread_mutex_lock(&s->lock);
    put(t, s, l);
    pthread_mutex_unlock(&s->lock);
}

/* ---- open and close ---- */

void store__short_open(rocks *r, size_t bytes_max) {
    short_lists *t = &r->short_lists;
    t->bytes_max = bytes_max / SHORT_SHARDS;
    t->slots_n = WAYS;
    while (t->slots_n < t->bytes_max / BYTES_PER_SLOT) {
        t->slots_n *= 2;
    }
    t->changed = mem_zero(CHANGED * sizeof *t->changed); /* untouched pages take no memory, here and below */
    t->slots = mem_zero(SHORT_SHARDS * t->slots_n * sizeof *t->slots);
    for (size_t i = 0; i < SHORT_SHARDS; i++) {
        pthread_mutex_init(&t->shards[i].lock, NULL);
        t->shards[i].slots = t->slots + i * t->slots_n;
    }
}

void store__short_close(rocks *r) {
    short_lists *t = &r->short_lists;
    for (size_t i = 0; i < SHORT_SHARDS; i++) {
        for (size_t j = 0; j < t->slots_n && t->shards[i].bytes; j++) {
            drop(&t->shards[i], &t->shards[i].slots[j]);
        }
        pthread_mutex_destroy(&t->shards[i].lock);
    }
    free(t->slots);
    free(t->changed);
}
