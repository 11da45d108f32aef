/* figures.h — where a store's bytes are, and which work wrote them: family by family, level by level.
 *
 * Sizes describe the folder and are known for any open store. Counters begin at zero when the store is opened. A table is written by a
 * flush of a memtable, by a flush of the tail (store/tail.h), or by a compaction, which reads tables and writes new ones. */
#pragma once

#include "base/buf.h"
#include "store/store.h"

enum { STORE_LEVELS = 7, STORE_FIGURES_FAMILIES = 8 };

typedef struct store_level_figures {
    uint64_t files, bytes;
    uint64_t written, read; /* by flushes and compactions whose output is in this level; flushes write to level 0 */
    uint64_t jobs;
    double cpu_s;
} store_level_figures;

typedef struct store_family_figures {
    const char *name;
    uint64_t files, bytes;
    uint64_t entries, deletions;        /* in tables */
    uint64_t key_bytes, value_bytes;    /* size of these entries before compression */
    uint64_t filter_bytes, index_bytes; /* parts of the tables that lookups need first */
    uint64_t memtable_bytes;
    uint64_t reader_bytes;  /* memory of open tables, besides the cache */
    uint64_t pending_bytes; /* estimate of the bytes that compactions have yet to rewrite */
    /* counters */
    uint64_t logged;   /* bytes of keys and values written to the log */
    uint64_t ingested; /* tables written by the tail */
    uint64_t flushed, compacted, read_back;
    uint64_t slowed, stopped; /* how often RocksDB delayed writes or stopped them */
    store_level_figures levels[STORE_LEVELS];
} store_family_figures;

struct store_figures {
    size_t n;
    store_family_figures families[STORE_FIGURES_FAMILIES];
    uint64_t cache_bytes, cache_used, cache_pinned; /* the block cache */
    uint64_t table_reads, table_read_bytes;         /* counters: blocks of tables that were not in the cache; compactions' too */
    uint64_t tail_bytes;                            /* index entries in memory */
    uint64_t log_bytes;                             /* files of the log */
    uint64_t replayed;                              /* bytes of log that were read when the store was opened */
    double open_s;                                  /* how long that took */
    uint64_t longest_tail_us, longest_log_us;       /* of a group of writes since: its waits for the index, and for the log */
};

/* False: this kind of store has no files. Any thread; takes milliseconds. */
bool store_measure(store *s, store_figures *figures_out);

/* What all families together have written to tables and to the log, and the tables that are left. */
uint64_t store_figures_written(const store_figures *figures);
uint64_t store_figures_bytes(const store_figures *figures);

void store_figures_json(const store_figures *figures, buf *out);
