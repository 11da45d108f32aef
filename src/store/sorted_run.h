/* sorted_run.h — a sorted run: the changes that one batch, or several consecutive ones, made to STORE_TERMS. Immutable and
 * reference-counted.
 *
 * A run means: first these ranges were deleted, then these keys were put or deleted, with one change per key. So neighbouring runs can be
 * merged into one, in which the newest wins. A run over older runs, or over RocksDB, hides what it replaces.
 *
 * The log stores its bytes, or, if they are many, shortened. Numbers are little-endian; a length has seven bits per byte, lowest first;
 * the eighth bit is set if more follow.
 *
 *   u8 1 · u32 ranges · u32 changes
 *   a range:   length · from · length · to                       in order, none touches another
 *   a change:  (length of key * 4 + kind) · key [· length · value]   in order of keys; kind 0 put empty, 1 put, 2 deleted
 *
 *   shortened:   u8 3 · u32 size of the run as above · u32 ranges · u32 changes · ranges as above
 *   a change:    u16 kind · alike · same · given [· length] [· length] · given bytes [· length · value]
 *
 * The u16 has 2, 4, 6 and 4 bits for these, from the lowest on; to the highest `same` and `given` a length is added that follows. A
 * shortened key begins with `same` bytes of the key before it. If `alike` is not 0, then of its last eight bytes the first `alike` are
 * those of the key before; they come before the last 8 - alike of the given bytes.
 *
 *   compressed:  u8 2 · u32 size · LZ4 block of a run as above      by earlier versions */
#pragma once

#include <stdatomic.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/write_batch.h"

typedef struct store_range {
    slice from, to; /* [from, to) */
} store_range;

typedef struct store_run {
    atomic_uint refs;
    uint64_t first, last; /* numbers of the first and last batch in it */
    bool busy;            /* owned by the tail: being merged or flushed */
    uint32_t n;
    uint32_t ranges_n;
    size_t bytes;
    uint32_t *at; /* offset of each change in `p` */
    store_range *ranges;
    char *p;
} store_run;

typedef struct store_run_change {
    slice key, value;
    bool gone;
} store_run_change;

/* Makes a run of the batch's changes to STORE_TERMS; NULL if there are none. The caller sets its number. */
store_run *store_run_of_batch(const store_batch *batch);

/* The bytes to log. They live as long as the run, or until the next call with the same `scratch`. */
slice store_run_logged(const store_run *run, buf *scratch);

/* Makes a run from logged bytes, which may be damaged: E_STORE_CORRUPT. */
MUST_CHECK err store_run_read(slice logged, uint64_t number, store_run **run_out);

store_run *store_run_merge(store_run *const *runs, size_t n); /* oldest first, at least one; the caller holds them */
store_run *store_run_hold(store_run *run);
void store_run_give(store_run *run);

/* ---- lookups ---- */

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
size_t store_run_find(const store_run *run, slice key);                /* index of the first change whose key is not below `key` */
const store_range *store_run_covers(const store_run *run, slice key);  /* the range that deletes `key`, or NULL */
size_t store_run_bytes_in(const store_run *run, slice from, slice to); /* an empty `to` means the end */
