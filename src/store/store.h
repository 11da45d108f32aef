/* store.h — ordered keys in a few families, with atomic batches.
 *
 * One store per data folder. A store handles bytes, not items: item/layout.h and account/ define the keys. Any thread may read. One thread,
 * the committer (store/committer.h), writes all batches, so every store has one order of writes.
 *
 * There are three kinds: RocksDB for production, memory for tests, and a wrapper that makes another store fail on demand. */
#pragma once

#include "base/err.h"
#include "store/write_batch.h"

typedef struct store store;
typedef struct store_ops store_ops;
typedef struct store_figures store_figures;

/* A value returned by a get stays pinned where it is (RocksDB's cache, a memtable), without a copy; release it with store_give. */
typedef struct store_value {
    slice bytes;
    void *pin;
    store *owner;
} store_value;

typedef struct store_scan store_scan;
typedef struct store_snapshot store_snapshot; /* a consistent state of the whole store, unaffected by later writes */

typedef struct store_options {
    bool sync;          /* --durability full: written batches survive power loss; otherwise only a crash of the process */
    size_t cache_bytes; /* size of the block cache */
    const char *dir;
    size_t tail_bytes;                 /* index entries kept in memory before they are flushed (store/tail.h); 0: the default */
    size_t log_bytes;                  /* above this size of the log, what it holds is written to tables; 0: the default */
    bool leveled;                      /* merge in levels even if there is room for tiers (rocks_options.c); for tests */
    bool read_only;                    /* change nothing, not even a log that needs replaying */
    struct store_folder_new *made_out; /* what the open created (store/folder.h); may be NULL */
} store_options;

struct store_ops {
    const char *name;
    void (*close)(store *);
    err (*get)(store *, store_family, const store_snapshot *, slice key, store_value *value_out);
    err (*get_in_memory)(store *, store_family, slice key, store_value *value_out); /* NULL: get never waits for a disk */
    void (*give)(store_value *);
    bool (*has_room)(store *, store_use); /* NULL: always true */
    bool (*is_behind)(store *);           /* NULL: never */
    err (*write)(store *, const store_batch *);
    store_scan *(*scan_open)(store *, store_family, const store_snapshot *, slice from, slice to, bool backward);
    store_scan *(*stem_open)(store *, const store_snapshot *, slice stem, slice to, bool many); /* NULL: scan_open is used */
    bool (*scan_next)(store_scan *, slice *key_out, slice *value_out);
    void (*scan_seek)(store_scan *, slice key, bool backward);
    err (*scan_close)(store_scan *);
    const store_snapshot *(*snapshot_take)(store *, bool in_memory);
    void (*snapshot_give)(store *, const store_snapshot *);
    void (*reclaim)(store *, store_family, slice from, slice to);
    uint64_t (*bytes)(store *, store_family, slice from, slice to);
    void (*measure)(store *, store_figures *); /* store/figures.h; NULL: there are no files */
};

struct store {
    const store_ops *ops;
};

/* Opens or creates the data folder. `why` (`why_n` bytes) explains a failure and what to do about it: not a tesela folder, in use by
 * another server, a newer format, no permission, a torn file. */
MUST_CHECK err store_open_rocks(const store_options *options, store **store_out, char *why, size_t why_n);
store *store_open_memory(void);

static inline void store_close(store *s) {
    s->ops->close(s);
}

/* E_NOT_FOUND leaves `value_out` empty. On OK, release the value with store_give. `at` may be NULL for the current state. */
MUST_CHECK static inline err store_get(store *s, store_family family, const store_snapshot *at, slice key, store_value *value_out) {
    return s->ops->get(s, family, at, key, value_out);
}

/* Like store_get of the current state, but never waits for the disk: E_NOT_IN_MEMORY if a block is needed that is not cached. Only for
 * STORE_ITEMS and STORE_INDEX. */
MUST_CHECK static inline err store_get_in_memory(store *s, store_family family, slice key, store_value *value_out) {
    return s->ops->get_in_memory ? s->ops->get_in_memory(s, family, key, value_out) : s->ops->get(s, family, NULL, key, value_out);
}

static inline void store_give(store_value *value) {
    if (value->owner) {
        value->owner->ops->give(value);
        value->owner = NULL;
    }
}

/* Whether the disk has room for a batch that is written for `use`. Only on the writer's thread. */
static inline bool store_has_room(store *s, store_use use) {
    return !s->ops->has_room || s->ops->has_room(s, use);
}

/* Whether the disk does not keep up with what is written: writes are slowed down, or soon will be. Work that can wait should. Any thread.
 */
static inline bool store_is_behind(store *s) {
    return s->ops->is_behind && s->ops->is_behind(s);
}

/* Writes all of the batch or nothing. After E_STORE_FULL and the like, none of it is there, now or after a restart. */
MUST_CHECK static inline err store_write(store *s, const store_batch *batch) {
    return s->ops->write(s, batch);
}

/* Scans the keys in [from, to) in order, or backward from just below `to`; an empty `to` means the end of the family. Slices live until the
 * next step. A scan sees the store as it was when the scan was opened. At its end it stays there until a seek. store_scan_close returns the
 * error, if one ended the scan. */
static inline store_scan *store_scan_open(store *s, store_family family, const store_snapshot *at, slice from, slice to, bool backward) {
    return s->ops->scan_open(s, family, at, from, to, backward);
}

/* Scans the keys of STORE_TERMS that are `stem` plus eight bytes; `to` is the first key beyond them. The result is that of a scan from
 * `stem` to `to`, but faster: without `many` the scan opens faster, for short lists; with `many` it steps faster, for long lists that are
 * scanned repeatedly. Forward only. */
static inline store_scan *store_stem_open(store *s, const store_snapshot *at, slice stem, slice to, bool many) {
    return s->ops->stem_open ? s->ops->stem_open(s, at, stem, to, many) : s->ops->scan_open(s, STORE_TERMS, at, stem, to, false);
}

/* Base of every scan; must be its first field. */
struct store_scan {
    store *owner;
};

static inline bool store_scan_next(store_scan *scan, slice *key_out, slice *value_out) {
    return scan->owner->ops->scan_next(scan, key_out, value_out);
}

/* Moves the scan: the next step returns the first key from `key` on, or, backward, the last one before it, and continues in that direction;
 * always within the scan's bounds. */
static inline void store_scan_seek(store_scan *scan, slice key, bool backward) {
    scan->owner->ops->scan_seek(scan, key, backward);
}

MUST_CHECK static inline err store_scan_close(store_scan *scan) {
    return scan->owner->ops->scan_close(scan);
}

static inline const store_snapshot *store_snapshot_take(store *s) {
    return s->ops->snapshot_take(s, false);
}

/* Reads at this snapshot never wait for the disk: gets and scans end with E_NOT_IN_MEMORY where a block is not cached. */
static inline const store_snapshot *store_snapshot_take_in_memory(store *s) {
    return s->ops->snapshot_take(s, true);
}

static inline void store_snapshot_give(store *s, const store_snapshot *snapshot) {
    s->ops->snapshot_give(s, snapshot);
}

/* Frees the disk space of deleted ranges, soon, in the background. */
static inline void store_reclaim(store *s, store_family family, slice from, slice to) {
    s->ops->reclaim(s, family, from, to);
}

/* Estimates how many bytes [from, to) takes on disk. */
static inline uint64_t store_bytes(store *s, store_family family, slice from, slice to) {
    return s->ops->bytes(s, family, from, to);
}
