/* run.h — a sorted run: what one batch, or several one after the other, did to STORE_TERMS. Never changed once it is made; counted.
 *
 * A run says: first these ranges were deleted, then these keys were put or deleted, one change for a key. So two runs merge into one, the
 * newer one's word counting, and a run laid over older ones, or over RocksDB, hides what it replaces.
 *
 * Its bytes are what is logged. Numbers are little-endian; a length is seven bits a byte, the lowest first, the eighth: more follow.
 *
 *   u8 1 · u32 ranges · u32 changes
 *   a range:   length · from · length · to                       in order, none touches another
 *   a change:  (length of key * 4 + kind) · key [· length · value]   in order of keys; kind 0 put empty, 1 put, 2 deleted */
#pragma once

#include <stdatomic.h>

#include "base/err.h"
#include "store/batch.h"

typedef struct store_range {
    slice from, to; /* [from, to) */
} store_range;

typedef struct store_run {
    atomic_uint refs;
    uint64_t first, last; /* numbers of the batches it holds */
    bool busy;            /* the tail's: being merged or written to a table */
    uint32_t n;
    uint32_t ranges_n;
    size_t bytes;
    uint32_t *at; /* where each change begins */
    store_range *ranges;
    char *p;
} store_run;

typedef struct store_run_change {
    slice key, value;
    bool gone;
} store_run_change;

/* What the batch does to STORE_TERMS; NULL: nothing. The number is the caller's to set. */
store_run *store_run_of_batch(const store_batch *batch);

/* From logged bytes, which may be anything: E_STORE_CORRUPT. */
MUST_CHECK err store_run_read(slice logged, uint64_t number, store_run **run_out);

store_run *store_run_merge(const store_run *older, const store_run *newer);
store_run *store_run_hold(store_run *run);
void store_run_give(store_run *run);

/* ---- looking ---- */

static inline size_t store_run_held(const store_run *run) {
    return sizeof *run + run->bytes + run->n * sizeof *run->at + run->ranges_n * sizeof *run->ranges;
}

static inline const char *store_run_length(const char *p, size_t *length_out) {
    size_t length = (unsigned char)*p & 127;
    for (unsigned shift = 7; *p++ & 128; shift += 7) {
        length |= ((size_t)(unsigned char)*p & 127) << shift;
    }
    *length_out = length;
    return p;
}

static inline slice store_run_key(const store_run *run, size_t i) {
    size_t head;
    const char *p = store_run_length(run->p + run->at[i], &head);
    return slice_of(p, head >> 2);
}

store_run_change store_run_get(const store_run *run, size_t i);
size_t store_run_find(const store_run *run, slice key);                /* the first change not below `key` */
const store_range *store_run_covers(const store_run *run, slice key);  /* the range that deletes it, or NULL */
size_t store_run_bytes_in(const store_run *run, slice from, slice to); /* an empty `to`: the end */
