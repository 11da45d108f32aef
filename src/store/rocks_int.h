/* rocks_int.h — shared by rocks.c, the store on RocksDB, and the parts of it that hold STORE_TERMS. */
#pragma once

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "store/folder.h"
#include "store/store.h"
#include "store/tail.h"

enum { FAMILY_RUNS = STORE_FAMILIES, FAMILIES }; /* the log of runs: nobody's outside */

typedef struct reclaim_job {
    struct reclaim_job *next;
    store_family family;
    buf from, to;
} reclaim_job;

/* An iterator of STORE_TERMS within one stem at a time, as the family was in its edition (rocks_idle.c). */
typedef struct idle_iterator {
    rocksdb_iterator_t *iterator;
    uint64_t edition;
    int64_t made_us;
} idle_iterator;

enum { IDLE_MAX = 16 };

typedef struct idle_iterators {
    pthread_mutex_t lock;
    size_t n;
    bool watched; /* the reclaimer comes by within a second */
    idle_iterator list[IDLE_MAX];
    rocksdb_readoptions_t *read;
    atomic_uint_fast64_t edition;
} idle_iterators;

enum { KEPT_MAX = 512, ASKED_MAX = 256 };

typedef struct kept_list kept_list;

/* What scans of a stem have walked through without a list. */
typedef struct kept_asked {
    uint64_t hash, walked;
    uint64_t tried; /* when a list was last begun: it was longer than that */
} kept_asked;

typedef struct kept_lists {
    pthread_mutex_t lock;
    size_t bytes, bytes_max;
    size_t n, hand;
    kept_list *list[KEPT_MAX];
    kept_asked asked[ASKED_MAX];
} kept_lists;

typedef struct key_range {
    bool any;
    buf from, to; /* both are part of it */
} key_range;

enum {
    SPACE_RESERVE_BYTES = 1024 * 1024 * 1024,
    OPEN_BYTES = 8 * 1024 * 1024,              /* free space that RocksDB needs to open, and to change options: without, it aborts */
    STORE_COMPACTION_BYTES = 512 * 1024 * 1024 /* about as much is compacted at once */
};

/* The disk's free space (rocks_space.c). The committer's, but for what is said to be the reclaimer's. */
typedef struct disk_space {
    int64_t checked_us, said_us;
    store_use room;      /* batches of this use and those behind it are accepted */
    bool no_compactions; /* by RocksDB itself */
    /* under the reclaimer's lock: keys deleted while the disk was nearly full */
    key_range deleted[STORE_FAMILIES];
    bool compact; /* … and not yet looked at */
    int64_t compacted_us;
} disk_space;

typedef struct rocks {
    store base;
    store terms; /* owner of values and scans of STORE_TERMS that are not RocksDB's alone */
    store_folder folder;
    char *db_path;
    rocksdb_t *db;
    rocksdb_column_family_handle_t *families[FAMILIES];
    rocksdb_options_t *db_options;
    rocksdb_options_t *family_options[FAMILIES];
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read_now;
    rocksdb_writeoptions_t *write_options;
    rocksdb_writeoptions_t *write_unsynced; /* for what may be lost, since it would be done again */
    rocksdb_writebatch_t *scratch;          /* the committer's */
    bool read_only, sync;
    bool opened_low;   /* the disk was nearly full then */
    bool opened_full;  /* read-only since there was no space to open it otherwise */
    atomic_int failed; /* err of the write that RocksDB failed */
    store_tail *tail;
    size_t tail_bytes;
    bool tail_whole; /* all of its log was read */
    idle_iterators idle;
    kept_lists kept;

    disk_space space;

    pthread_t reclaimer;
    pthread_mutex_t reclaim_lock;
    pthread_cond_t reclaim_wake;
    reclaim_job *reclaim_jobs, **reclaim_last;
    bool reclaimer_runs, reclaiming, stopping;
} rocks;

struct store_snapshot {
    const rocksdb_snapshot_t *snapshot;
    rocksdb_readoptions_t *read;
    store_version *version; /* of the tail, of the same moment */
    uint64_t edition;       /* of STORE_TERMS, if it is even */
};

/* ---- rocks.c ---- */

err store__classify(char *message, const char *doing); /* frees RocksDB's message, which is logged; NULL is OK */

/* Reads RocksDB alone. */
store_scan *store__plain_open(rocks *r, int family, const store_snapshot *at, slice from, slice to, bool backward);
err store__plain_get(rocks *r, int family, const store_snapshot *at, slice key, store_value *value_out);

store_scan *store__ready_open(rocks *r, idle_iterator ready);

void store__wake_reclaimer(rocks *r); /* there is something to let go in a second */

uint64_t store__plain_bytes(rocks *r, int family, slice from, slice to); /* about how many are in tables and memtables */

/* ---- rocks_space.c ---- */

int64_t store__now_us(void); /* monotonic */

/* The free bytes of the disk, and its floor (rocks_space.c). */
bool store__space_read(const char *path, uint64_t *free_out, uint64_t *floor_out);
bool store__space_is_low(const char *path); /* before RocksDB is opened: it must not compact by itself */

void store__space_open(rocks *r, bool low); /* when all else is open */
void store__space_close(rocks *r);
bool store__space_accepts(rocks *r, store_use use);
void store__space_note(rocks *r, const store_batch *batch);               /* it was written */
void store__space_note_range(rocks *r, int family, slice from, slice to); /* deleted, and compacted when there is space for it */

/* For the reclaimer. Due: with its lock. */
bool store__space_compact_due(rocks *r);
void store__space_compact(rocks *r);
bool store__space_can_drop(rocks *r, int family, slice from, slice to); /* what is left of the files around a dropped range fits the disk */
void store__compact(rocks *r, int family, slice from, slice to);

/* ---- rocks_idle.c ---- */

rocksdb_slicetransform_t *store__stems(void); /* all of a key of STORE_TERMS but its number */

void store__idle_open(rocks *r);
void store__idle_close(rocks *r);
void store__idle_change(rocks *r); /* before STORE_TERMS changes, and after it has */
uint64_t store__terms_edition(rocks *r);

/* False: the edition has passed, or is none. */
bool store__idle_take(rocks *r, uint64_t edition, idle_iterator *taken_out);
void store__idle_give(rocks *r, idle_iterator given);
bool store__idle_drop(rocks *r, int64_t at_us); /* those that are too old at that time (0: now); false: none is left */

/* ---- rocks_kept.c ---- */

void store__kept_open(rocks *r, size_t bytes_max);
void store__kept_close(rocks *r);
void store__kept_drop(rocks *r);                                 /* when their edition has passed */
void store__kept_walked(rocks *r, slice stem, uint64_t entries); /* by a scan that had no list */

/* Over the list of a stem as it was in that edition, forward. NULL: there is none, and making one does not pay yet. */
store_scan *store__kept_scan(rocks *r, uint64_t edition, slice stem, slice to);

/* ---- rocks_terms.c ---- */

err store__terms_open(rocks *r, char *why, size_t why_n); /* the runs that are in the log, when RocksDB is open */
void store__terms_close(rocks *r);
void store__terms_drain(rocks *r); /* all of the tail to tables: what was deleted there leaves them then */

err store__terms_get(rocks *r, const store_snapshot *at, slice key, store_value *value_out);
store_scan *store__terms_scan(rocks *r, const store_snapshot *at, slice from, slice to, bool backward);
store_scan *store__terms_stem(rocks *r, const store_snapshot *at, slice stem, slice to, bool many);
uint64_t store__terms_bytes(rocks *r, slice from, slice to); /* of what is not yet in a table */

/* A snapshot of RocksDB and the version that belongs to it: both have the same batches. */
void store__terms_snapshot(rocks *r, store_snapshot *snapshot);

/* Adds the run, and its number, to the batch about to be written. */
void store__terms_log(rocks *r, store_run *run, rocksdb_writebatch_t *batch);
