#include "store/write_batch.h"

#include <assert.h>
#include <stdlib.h>

#include "base/keyed_hash.h"
#include "base/memory.h"

enum { BUCKETS_MIN = 256 };

static const uint32_t unsought = UINT32_MAX; /* `older` of a change that is in no chain */

void store_batch_init(store_batch *b) {
    *b = (store_batch){.buckets_n = BUCKETS_MIN, .buckets = mem_zero(BUCKETS_MIN * sizeof(uint32_t))};
}

void store_batch_free(store_batch *b) {
    free(b->changes);
    free(b->buckets);
    arena_free(&b->arena);
}

void store_batch_clear(store_batch *b) {
    if (b->n * 4 < b->buckets_n) {
        store_batch_cut(b, 0);
    } else {
        memset(b->buckets, 0, b->buckets_n * sizeof *b->buckets);
    }
    b->n = 0;
    b->use = STORE_GROWS;
    b->bytes = b->bytes_held = 0;
    arena_reset(&b->arena);
}

static uint32_t hash_of(store_family family, slice key) {
    return (uint32_t)keyed_hash_bytes(key, (uint64_t)family);
}

static void link_change(store_batch *b, size_t index) {
    store_change *change = &b->changes[index];
    uint32_t *bucket = &b->buckets[change->hash & (b->buckets_n - 1)];
    change->older = *bucket;
    *bucket = (uint32_t)index + 1;
}

static void grow_buckets(store_batch *b) {
    b->buckets_n *= 4;
    b->buckets = mem_resize(b->buckets, b->buckets_n * sizeof *b->buckets);
    memset(b->buckets, 0, b->buckets_n * sizeof *b->buckets);
    for (size_t i = 0; i < b->n; i++) {
        if (b->changes[i].older != unsought) {
            link_change(b, i);
        }
    }
}

static void hold(store_batch *b, size_t bytes) {
    b->bytes += bytes;
    b->bytes_held += bytes;
}

static store_change *add_unsought(store_batch *b, store_change_kind kind, store_family family, slice key) {
    if (b->n == b->cap) {
        b->cap = b->cap ? b->cap * 2 : 64;
        b->changes = mem_resize(b->changes, b->cap * sizeof *b->changes);
    }
    store_change *change = &b->changes[b->n++];
    *change = (store_change){.kind = kind, .family = family, .key = arena_copy(&b->arena, key), .older = unsought};
    hold(b, key.n);
    return change;
}

static store_change *add(store_batch *b, store_change_kind kind, store_family family, slice key) {
    if (b->n >= b->buckets_n) {
        grow_buckets(b);
    }
    store_change *change = add_unsought(b, kind, family, key);
    change->hash = hash_of(family, key);
    link_change(b, b->n - 1);
    return change;
}

void store_put_unsought(store_batch *b, store_family family, slice key) {
    add_unsought(b, STORE_PUT, family, key);
}

void store_delete_unsought(store_batch *b, store_family family, slice key) {
    add_unsought(b, STORE_DELETE, family, key);
}

void store_put(store_batch *b, store_family family, slice key, slice value) {
    memcpy(store_put_space(b, family, key, value.n), value.p ? value.p : "", value.n);
}

char *store_put_space(store_batch *b, store_family family, slice key, size_t n) {
    store_change *change = add(b, STORE_PUT, family, key);
    char *space = arena_alloc_aligned(&b->arena, n ? n : 1, 1);
    change->value = slice_of(space, n);
    hold(b, n);
    return space;
}

void store_delete(store_batch *b, store_family family, slice key) {
    add(b, STORE_DELETE, family, key);
}

void store_delete_range(store_batch *b, store_family family, slice from, slice to) {
    store_change *change = add(b, STORE_DELETE_RANGE, family, from);
    change->value = arena_copy(&b->arena, to);
    hold(b, to.n);
}

const store_change *store_batch_find(const store_batch *b, store_family family, slice key) {
    uint32_t hash = hash_of(family, key);
    for (uint32_t i = b->buckets[hash & (b->buckets_n - 1)]; i; i = b->changes[i - 1].older) {
        const store_change *change = &b->changes[i - 1];
        if (change->hash == hash && change->family == family && change->kind != STORE_DELETE_RANGE && slice_eq(change->key, key)) {
            return change;
        }
    }
    return NULL;
}

void store_batch_cut(store_batch *b, store_mark mark) {
    assert(mark <= b->n);
    while (b->n > mark) {
        const store_change *change = &b->changes[--b->n];
        if (change->older != unsought) {
            b->buckets[change->hash & (b->buckets_n - 1)] = change->older;
        }
        b->bytes -= change->key.n + change->value.n;
    }
}
