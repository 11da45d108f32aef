/* store.h — ordered keys in a few families, with atomic batches.
 *
 * One store per data folder. It knows bytes, not items: what keys mean is item/layout.h's and account's business. Any thread may read.
 * Batches are written by one thread, the committer (store/committer.h), which gives every store one order of writes.
 *
 * Three kinds: RocksDB for real, memory for tests, and one that wraps another and fails on demand. */
#pragma once

#include "base/err.h"
#include "store/batch.h"

typedef struct store store;
typedef struct store_ops store_ops;

/* Values returned by a get are pinned where they are (RocksDB's cache, a memtable) and cost no copy; give them back. */
typedef struct store_value {
    slice bytes;
    void *pin;
    store *owner;
} store_value;

typedef struct store_scan store_scan;
typedef struct store_snapshot store_snapshot; /* a state of the whole store to read from, while writes go on */

typedef struct store_options {
    bool sync;          /* a written batch survives power loss; otherwise only the end of the process */
    size_t cache_bytes; /* of blocks read */
    const char *dir;
    size_t tail_bytes;                 /* of index entries in memory before they become a table (store/tail.h); 0: the usual */
    struct store_folder_new *made_out; /* what the open made of the folder (store/folder.h); may be NULL */
} store_options;

struct store_ops {
    const char *name;
    void (*close)(store *);
    err (*get)(store *, store_family, const store_snapshot *, slice key, store_value *value_out);
    void (*give)(store_value *);
    bool (*has_room)(store *, store_use); /* NULL: always */
    err (*write)(store *, const store_batch *);
    store_scan *(*scan_open)(store *, store_family, const store_snapshot *, slice from, slice to, bool backward);
    store_scan *(*stem_open)(store *, const store_snapshot *, slice stem, slice to, bool many); /* NULL: scan_open does it */
    bool (*scan_next)(store_scan *, slice *key_out, slice *value_out);
    void (*scan_seek)(store_scan *, slice key, bool backward);
    err (*scan_close)(store_scan *);
    const store_snapshot *(*snapshot_take)(store *);
    void (*snapshot_give)(store *, const store_snapshot *);
    void (*reclaim)(store *, store_family, slice from, slice to);
    uint64_t (*bytes)(store *, store_family, slice from, slice to);
};

struct store {
    const store_ops *ops;
};

/* Opens or creates the data folder. `why` (of `why_n` bytes) tells a person what is wrong and what to do: not a tesela folder, another
 * server has it, a newer format, no permission, a torn file. */
MUST_CHECK err store_open_rocks(const store_options *options, store **store_out, char *why, size_t why_n);
store *store_open_memory(void);

static inline void store_close(store *s) {
    s->ops->close(s);
}

/* E_NOT_FOUND leaves `value_out` empty. On OK give the value back with store_give. `at` may be NULL: now. */
MUST_CHECK static inline err store_get(store *s, store_family family, const store_snapshot *at, slice key, store_value *value_out) {
    return s->ops->get(s, family, at, key, value_out);
}

static inline void store_give(store_value *value) {
    if (value->owner) {
        value->owner->ops->give(value);
        value->owner = NULL;
    }
}

/* Whether the disk has room for a batch of this use. The writer's thread. */
static inline bool store_has_room(store *s, store_use use) {
    return !s->ops->has_room || s->ops->has_room(s, use);
}

/* All of the batch or nothing. After E_STORE_FULL and the like nothing of it is there, now or after a restart. */
MUST_CHECK static inline err store_write(store *s, const store_batch *batch) {
    return s->ops->write(s, batch);
}

/* Keys in [from, to) in order, or backward from just below `to`; an empty `to` means the end of the family. Slices live until the next
 * step. A scan sees the store as it was when opened; at its end it stays there until it is sought elsewhere. store_scan_close tells whether
 * it ended by an error. */
static inline store_scan *store_scan_open(store *s, store_family family, const store_snapshot *at, slice from, slice to, bool backward) {
    return s->ops->scan_open(s, family, at, from, to, backward);
}

/* Keys of STORE_TERMS that are `stem` and eight bytes more; `to` is the first key beyond them. The same as a scan from `stem` to `to`, but
 * quicker: of a few to come by, of many, if they are walked through again and again, to step through. Forward only. */
static inline store_scan *store_stem_open(store *s, const store_snapshot *at, slice stem, slice to, bool many) {
    return s->ops->stem_open ? s->ops->stem_open(s, at, stem, to, many) : s->ops->scan_open(s, STORE_TERMS, at, stem, to, false);
}

/* The first field of every scan is its store. */
struct store_scan {
    store *owner;
};

static inline bool store_scan_next(store_scan *scan, slice *key_out, slice *value_out) {
    return scan->owner->ops->scan_next(scan, key_out, value_out);
}

/* The next step gives the first key from `key` on, or, backward, the last one before it, and then goes on that way; always within the
 * scan's bounds. */
static inline void store_scan_seek(store_scan *scan, slice key, bool backward) {
    scan->owner->ops->scan_seek(scan, key, backward);
}

MUST_CHECK static inline err store_scan_close(store_scan *scan) {
    return scan->owner->ops->scan_close(scan);
}

static inline const store_snapshot *store_snapshot_take(store *s) {
    return s->ops->snapshot_take(s);
}

static inline void store_snapshot_give(store *s, const store_snapshot *snapshot) {
    s->ops->snapshot_give(s, snapshot);
}

/* Gives disk space of deleted ranges back, soon, in the background. */
static inline void store_reclaim(store *s, store_family family, slice from, slice to) {
    s->ops->reclaim(s, family, from, to);
}

/* About how many bytes [from, to) takes on disk. */
static inline uint64_t store_bytes(store *s, store_family family, slice from, slice to) {
    return s->ops->bytes(s, family, from, to);
}
