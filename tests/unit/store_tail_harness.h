/* store_tail_harness.h — for tests of how index entries are stored: random changes from few keys, and two stores, in memory and on disk,
 * that get the same batches and must read the same. */
#pragma once

#include "store/rocks_int.h"
#include "store_harness.h"

enum { TINY = 400, LITTLE = 20000 }; /* sizes of tails, in bytes */

/* ---- random changes ---- */

/* Keys from a small set, so that changes hit the same keys. */
static inline slice random_key(random_source *r, char into[8]) {
    static const unsigned char letters[] = {0, 1, 'a', 'b', 0x7F, 0x80, 0xFE, 0xFF};
    size_t n = 1 + (size_t)random_below(r, 4);
    for (size_t i = 0; i < n; i++) {
        into[i] = (char)letters[random_below(r, sizeof letters)];
    }
    return slice_of(into, n);
}

/* Random changes, mostly in STORE_TERMS and mostly without values. */
static inline void fill_terms(store_batch *b, random_source *r) {
    static char value[300];
    char key[8], to[8];
    uint64_t n = 1 + random_below(r, 40);
    for (uint64_t i = 0; i < n; i++) {
        store_family family = random_below(r, 8) ? STORE_TERMS : (store_family)random_below(r, STORE_FAMILIES);
        slice k = random_key(r, key), end = random_key(r, to);
        uint64_t kind = random_below(r, 60);
        if (kind < 35) {
            size_t size = random_below(r, 4) ? 0 : (size_t)random_below(r, sizeof value);
            random_bytes(r, value, size);
            store_put(b, family, k, slice_of(value, size));
        } else if (kind < 59) {
            store_delete(b, family, k);
        } else if (family == STORE_TERMS || slice_cmp(k, end) < 0) {
            store_delete_range(b, family, k, end); /* in STORE_TERMS the range may be empty or reversed */
        }
    }
}

static inline store_run *random_run(random_source *r, uint64_t number) {
    store_batch b;
    store_run *run = NULL;
    store_batch_init(&b);
    while (!run) {
        store_batch_clear(&b);
        fill_terms(&b, r);
        run = store_run_of_batch(&b);
    }
    store_batch_free(&b);
    run->first = run->last = number;
    return run;
}

/* ---- two stores ---- */

typedef struct pair {
    store *memory, *rocks;
    char *folder;
    size_t tail_bytes;
    random_source random;
    store_batch batch;
} pair;

static inline void pair_open(pair *p, uint64_t seed, size_t tail_bytes) {
    p->folder = make_folder();
    p->tail_bytes = tail_bytes;
    p->memory = store_open_memory();
    p->rocks = open_rocks_tail(p->folder, tail_bytes);
    random_seed(&p->random, seed);
    store_batch_init(&p->batch);
}

static inline void pair_close(pair *p) {
    store_close(p->memory);
    store_close(p->rocks);
    remove_folder(p->folder);
    free(p->folder);
    store_batch_free(&p->batch);
}

/* Writes the batch to both stores and clears it. */
static inline void write_both(pair *p) {
    assert_int_equal(store_write(p->memory, &p->batch), OK);
    assert_int_equal(store_write(p->rocks, &p->batch), OK);
    store_batch_clear(&p->batch);
}

static inline void assert_same(pair *p, const store_snapshot *memory_at, const store_snapshot *rocks_at) {
    buf left = dump_store(p->memory, memory_at), right = dump_store(p->rocks, rocks_at);
    assert_true(slice_eq(buf_view(&left), buf_view(&right)));
    buf_free(&left);
    buf_free(&right);
}

/* Scans of both stores in step. */
typedef struct walk {
    const store_snapshot *memory_at, *rocks_at;
    store_scan *memory, *rocks;
} walk;
