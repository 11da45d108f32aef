/* rocks_int.h — shared by rocks.c, the store on RocksDB, and the other rocks_*.c files. */
#pragma once

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "store/batch_order.h"
#include "store/figures.h"
#include "store/folder.h"
#include "store/rocks_files.h"
#include "store/store.h"
#include "store/tail.h"

enum { FAMILY_RUNS = STORE_FAMILIES, FAMILIES }; /* the log of runs: not visible outside */

typedef struct reclaim_job {
    struct reclaim_job *next;
    store_family family;
    buf from, to;
} reclaim_job;

/* A reusable iterator of STORE_TERMS, for one stem at a time. It shows the family as of its edition (rocks_idle.c). */
typedef struct idle_iterator {
    rocksdb_iterator_t *iterator;
    uint64_t edition;
    int64_t made_us;
} idle_iterator;

enum { IDLE_MAX = 16 };

typedef struct idle_iterators {
    pthread_mutex_t lock;
    size_t n;
    bool watched; /* the reclaimer will look for expired ones within a second */
    idle_iterator list[IDLE_MAX];
    rocksdb_readoptions_t *read, *read_unfiltered;
    atomic_uint_fast64_t edition;
} idle_iterators;

enum { STEM_NUMBER_BYTES = 8 };

/* The numbers of one stem (rocks_list.c). */
typedef struct stem_list {
    atomic_uint refs;
    bool used;            /* since the clock hand last passed (CLOCK eviction) */
    uint64_t hash, as_of; /* of the stem; the edition, or the number of the batch, that it shows */
    size_t n, stem_n;
    uint64_t *numbers;
    char *stem;
    uint64_t own[]; /* the numbers, unless they were made elsewhere; then the stem */
} stem_list;

enum { KEPT_MAX = 512, ASKED_MAX = 256 };

/* How many entries scans of a stem have read without a list. */
typedef struct kept_usage {
    uint64_t hash, walked;
    uint64_t tried; /* value of `walked` at the last attempt to make a list, which was too long */
} kept_usage;

typedef struct kept_lists {
    pthread_mutex_t lock;
    size_t bytes, bytes_max;
    size_t n, hand;
    stem_list *list[KEPT_MAX];
    uint64_t hashes[KEPT_MAX]; /* of the lists: each lookup searches them */
    kept_usage asked[ASKED_MAX];
} kept_lists;

enum { SHORT_MAX = 256, SHORT_SHARDS = 64 }; /* numbers of a short list */

typedef struct short_shard {
    pthread_mutex_t lock;
    stem_list **slots;
    size_t bytes, hand;
} short_shard;

typedef struct short_lists {
    size_t slots_n, bytes_max; /* of a shard */
    atomic_bool any;           /* a list has been made */
    atomic_uint_fast64_t all_changed, *changed;
    stem_list **slots;
    short_shard shards[SHORT_SHARDS];
} short_lists;

typedef struct key_range {
    bool any;
    buf from, to; /* inclusive */
} key_range;

enum {
    SPACE_RESERVE_BYTES = 1024 * 1024 * 1024,
    OPEN_BYTES = 8 * 1024 * 1024,              /* free space that RocksDB needs to open, and to change options; with less it aborts */
    STORE_COMPACTION_BYTES = 512 * 1024 * 1024 /* approximate maximum size of one compaction, except of tiered families */
};

enum { STORE_FLUSHES = 2, STORE_COMPACTIONS = 3, STORE_OPENING_THREADS = 16 }; /* threads of RocksDB */

/* State of the disk's free space (rocks_space.c). Only the committer uses it, except where noted. */
typedef struct disk_space {
    int64_t checked_us, said_us;
    store_use room;      /* batches with this use or a higher one are accepted */
    bool no_compactions; /* RocksDB's automatic compactions are off */
    bool no_tiers;       /* automatic compactions of tiered families are off */
    /* Under the reclaimer's lock: keys deleted while the disk was nearly full. */
    key_range deleted[STORE_FAMILIES];
    bool compact; /* some of them have not been considered for compaction yet */
    int64_t compacted_us;
} disk_space;

/* Deletes in the tables (rocks_space.c). */
typedef struct garbage {
    atomic_uint writes;   /* batches; counted by the committer */
    atomic_bool watched;  /* the reclaimer will look again */
    unsigned writes_seen; /* the rest is the reclaimer's */
    int64_t looked_us;
    double kept[STORE_FAMILIES]; /* deletes that were left by the last merge */
} garbage;

/* Bytes written since the store was opened that RocksDB does not count by family (store/figures.h). */
typedef struct written_bytes {
    atomic_uint_fast64_t logged[FAMILIES]; /* keys and values; counted by the committer */
    atomic_uint_fast64_t ingested;         /* tables of the tail; counted by the merger */
} written_bytes;

/* The longest times that a batch has taken since the store was opened, in microseconds; measured by the committer. */
typedef struct longest_waits {
    atomic_uint_fast64_t tail; /* until the tail had room for it */
    atomic_uint_fast64_t log;  /* writing and syncing the log, and the memtables */
} longest_waits;

/* When tiered families are merged (rocks_tiers.c). Since the store is open, the reclaimer's. */
typedef struct tiers {
    int now[FAMILIES];          /* sorted sequences at which merging begins */
    int64_t looked_us, fast_us; /* fast_us: when entries came fast */
    uint64_t logged_seen, scans_seen;
    atomic_uint_fast64_t scans; /* of STORE_TERMS; counted by readers */
} tiers;

typedef struct rocks {
    store base;
    store terms; /* owner of STORE_TERMS values and scans that come from the tail too, not from RocksDB alone */
    store_folder folder;
    char *db_path;
    rocksdb_t *db;
    rocksdb_column_family_handle_t *families[FAMILIES];
    rocksdb_options_t *db_options;
    store_files *files;
    rocksdb_options_t *family_options[FAMILIES];
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read_now;
    rocksdb_writeoptions_t *write_options;
    rocksdb_writeoptions_t *write_unsynced; /* for writes that are repeated if they are lost */
    rocksdb_writebatch_t *scratch;          /* the committer's */
    buf logged_run;                         /* the committer's: a run as it is logged */
    batch_point *points;                    /* the committer's: a batch's changes to STORE_INDEX, and as much room again */
    size_t points_cap;
    bool read_only, sync;
    bool tiered; /* families with random keys are tiered (rocks_options.c) */
    tiers tiers;
    size_t log_bytes;  /* above this size of the log, memtables are flushed */
    bool opened_low;   /* the disk was nearly full at open */
    bool opened_full;  /* opened read-only because there was no space to open for writes */
    atomic_int failed; /* error of a failed RocksDB write; OK: none */
    store_tail *tail;
    size_t tail_bytes;
    bool tail_whole; /* its log was read completely */
    idle_iterators idle;
    kept_lists kept;
    short_lists short_lists;

    written_bytes written;
    longest_waits longest;
    uint64_t replayed; /* bytes of the log at open */
    double open_s;     /* how long RocksDB and the tail took to open */

    disk_space space;
    garbage garbage;

    pthread_t reclaimer;
    pthread_mutex_t reclaim_lock;
    pthread_cond_t reclaim_wake;
    reclaim_job *reclaim_jobs, **reclaim_last;
    bool reclaimer_runs, reclaiming, stopping;
} rocks;

struct store_snapshot {
    const rocksdb_snapshot_t *snapshot;
    rocksdb_readoptions_t *read;
    store_version *version; /* the tail at the same moment */
    uint64_t edition;       /* edition of STORE_TERMS; unusable if odd */
    bool in_memory;         /* its reads never wait for the disk (rocks_files.h) */
};

/* ---- rocks.c ---- */

extern const char *const store__family_names[FAMILIES];

err store__classify(char *message, const char *doing); /* logs and frees RocksDB's message; NULL gives OK */

/* Read from RocksDB only, without the tail. */
store_scan *store__plain_open(rocks *r, int family, const store_snapshot *at, slice from, slice to, bool backward);
err store__plain_get(rocks *r, int family, const store_snapshot *at, slice key, store_value *value_out);

store_scan *store__ready_open(rocks *r, idle_iterator ready, bool in_memory);

void store__wake_reclaimer(rocks *r); /* there is work for it now, or within a second */

uint64_t store__plain_bytes(rocks *r, int family, slice from, slice to); /* estimate, in tables and memtables */

/* ---- rocks_options.c ---- */

rocksdb_options_t *store__db_options(rocks *r);
rocksdb_options_t *store__family_options(rocks *r, int family);
bool store__is_tiered(const rocks *r, int family);

/* ---- rocks_figures.c ---- */

void store__measure(store *s, store_figures *out);
uint64_t store__log_bytes(const rocks *r); /* size of RocksDB's log files */

/* ---- rocks_tiers.c ---- */

bool store__is_behind(store *s);

/* ---- rocks_space.c ---- */

int64_t store__now_us(void); /* monotonic clock */

/* Returns the free bytes of the disk, and its floor (rocks_space.c). */
bool store__space_read(const char *path, uint64_t *free_out, uint64_t *floor_out);
uint64_t store__tables_bytes(const char *path); /* size of all tables in the folder, finished or not */
bool store__space_has_tiers(const rocks *r);    /* whether there is room to merge whole families (rocks_options.c) */
bool store__space_is_low(const char *path);     /* checked before RocksDB is opened: if low, it must not compact automatically */

void store__flush_large(rocks *r);          /* call before closing */
void store__space_open(rocks *r, bool low); /* call when everything else is open */
void store__space_close(rocks *r);
bool store__space_accepts(rocks *r, store_use use);
void store__space_note(rocks *r, const store_batch *batch);               /* call after the batch was written */
void store__space_note_range(rocks *r, int family, slice from, slice to); /* a deleted range, to be compacted when there is space for it */

void store__garbage_note_write(rocks *r); /* call after each batch */

/* For the reclaimer, with its lock held, which is released meanwhile: the family whose deleted entries are worth merging, or -1.
 * Also adapts the tiers, and cuts the log where RocksDB does not. */
int store__garbage_next(rocks *r);
void store__garbage_merge(rocks *r, int family);

/* For the reclaimer. store__space_compact_due is called with its lock held. */
bool store__space_compact_due(rocks *r);
void store__space_compact(rocks *r);
bool store__space_pays(rocks *r, int family, slice from, slice to);     /* the range is large enough for a compaction */
bool store__space_can_drop(rocks *r, int family, slice from, slice to); /* the disk has room to compact what is left around the range */
void store__compact(rocks *r, int family, slice from, slice to);

/* ---- rocks_tiers.c ---- */

int store__tiers_of(const rocks *r, uint64_t bytes); /* at how many sequences merging begins in a family of this size */
void store__tiers_begin(rocks *r, rocksdb_options_t *o, int family, uint64_t bytes); /* sets its options for that, before it is opened */
bool store__tiers_loading(rocks *r, int64_t now_us); /* whether index entries have been loaded, not read, since the last call */
bool store__tiers_late(const rocks *r);              /* index entries are merged late now */
void store__tiers_fit(rocks *r, int64_t now_us);     /* for the reclaimer, every few seconds: adapts them to sizes and work */

/* ---- rocks_idle.c ---- */

rocksdb_slicetransform_t *store__stems(void); /* the prefix extractor of STORE_TERMS: a key without its trailing number */

void store__idle_open(rocks *r);
void store__idle_close(rocks *r);
void store__terms_edition_advance(rocks *r); /* call before STORE_TERMS changes, and again afterwards */
uint64_t store__terms_edition(rocks *r);

/* False: the edition is no longer current, or is odd. */
bool store__idle_take(rocks *r, uint64_t edition, idle_iterator *taken_out);
void store__idle_give(rocks *r, idle_iterator given);
bool store__idle_drop(rocks *r, int64_t at_us); /* drops those that are expired at that time (0: now); false: none is left */

/* ---- rocks_kept.c ---- */

void store__kept_open(rocks *r, size_t bytes_max);
void store__kept_close(rocks *r);
void store__kept_drop(rocks *r);                                      /* call when their edition has ended */
void store__kept_count_reads(rocks *r, slice stem, uint64_t entries); /* counts entries read by a scan without a list */

/* Opens a forward scan over the list of a stem as of that edition. NULL: there is no list, and making one does not pay yet, or this caller
 * may not take the time. */
store_scan *store__kept_scan(rocks *r, uint64_t edition, slice stem, slice to, bool may_make);

/* ---- rocks_list.c ---- */

/* A list with room for `n` numbers; of none, `numbers` is NULL, and may be set to memory of its own. */
stem_list *store__list_make(uint64_t hash, uint64_t as_of, slice stem, size_t n);
size_t store__list_bytes(const stem_list *l);
void store__list_give(stem_list *l);
uint64_t store__stem_number(const char *p); /* the number after a stem */
store_scan *store__list_scan(stem_list *l); /* forward only; takes over the reference */

/* ---- rocks_short.c ---- */

void store__short_open(rocks *r, size_t bytes_max);
void store__short_close(rocks *r);
void store__short_note(rocks *r, const store_run *run); /* call before the run joins the tail, and before its batch is written */

/* A forward scan over the list of a stem, for a reader of the tail's version with this number. NULL: there is none. */
store_scan *store__short_scan(rocks *r, uint64_t number, slice stem);
/* Adds a list of all numbers of a stem, as a reader of this version has found them; at most SHORT_MAX. */
void store__short_add(rocks *r, uint64_t number, slice stem, const uint64_t *numbers, size_t n);

/* ---- rocks_terms.c ---- */

err store__terms_open(rocks *r, char *why, size_t why_n); /* loads the runs from the log; call when RocksDB is open */
void store__terms_close(rocks *r);
void store__terms_drain(rocks *r); /* flushes the whole tail to tables, so that entries deleted there are gone */

err store__terms_get(rocks *r, const store_snapshot *at, slice key, store_value *value_out);
store_scan *store__terms_scan(rocks *r, const store_snapshot *at, slice from, slice to, bool backward);
store_scan *store__terms_stem(rocks *r, const store_snapshot *at, slice stem, slice to, bool many);
uint64_t store__terms_bytes(rocks *r, slice from, slice to); /* size of the entries in the tail */

/* Takes a snapshot of RocksDB and a version of the tail that have the same batches. */
void store__terms_snapshot(rocks *r, store_snapshot *snapshot);

/* Adds the run, and its number, to the batch that is about to be written. */
void store__terms_log(rocks *r, store_run *run, rocksdb_writebatch_t *batch);
