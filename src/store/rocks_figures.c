/* The figures of a store on RocksDB: its statistics, and what it does not count: the log by family, and tables written by the tail. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/rocks_int.h"
#include "store/rocks_stats.h"

static const double gigabyte = 1024.0 * 1024 * 1024;

static const struct {
    const char *name;
    size_t at;
    double unit;
} level_stats[] = {
    {"NumFiles", offsetof(store_level_figures, files), 1},         {"SizeBytes", offsetof(store_level_figures, bytes), 1},
    {"WriteGB", offsetof(store_level_figures, written), gigabyte}, {"ReadGB", offsetof(store_level_figures, read), gigabyte},
    {"CompCount", offsetof(store_level_figures, jobs), 1},
};

static const struct {
    const char *name;
    size_t at;
} family_stats[] = {
    {"num_entries", offsetof(store_family_figures, entries)},
    {"num_deletions", offsetof(store_family_figures, deletions)},
    {"raw_key_size", offsetof(store_family_figures, key_bytes)},
    {"raw_value_size", offsetof(store_family_figures, value_bytes)},
    {"filter_size", offsetof(store_family_figures, filter_bytes)},
    {"index_size", offsetof(store_family_figures, index_bytes)},
    {"io_stalls.total_slowdown", offsetof(store_family_figures, slowed)},
    {"io_stalls.total_stop", offsetof(store_family_figures, stopped)},
};

static uint64_t *field(void *of, size_t at) {
    return (void *)((char *)of + at);
}

static void take_level(store_level_figures *level, const char *name, double value) {
    for (size_t i = 0; i < sizeof level_stats / sizeof *level_stats; i++) {
        if (strcmp(name, level_stats[i].name) == 0) {
            *field(level, level_stats[i].at) = (uint64_t)(value * level_stats[i].unit + 0.5);
        }
    }
    if (strcmp(name, "CompMergeCPU") == 0) {
        level->cpu_s = value;
    }
}

static void take(void *context, const char *name, double value) {
    store_family_figures *out = context;
    unsigned level;
    int prefix = 0;
    if (sscanf(name, "compaction.L%u.%n", &level, &prefix) == 1 && prefix && level < STORE_LEVELS) {
        take_level(&out->levels[level], name + prefix, value);
        return;
    }
    for (size_t i = 0; i < sizeof family_stats / sizeof *family_stats; i++) {
        if (strcmp(name, family_stats[i].name) == 0) {
            *field(out, family_stats[i].at) = (uint64_t)value;
        }
    }
}

static uint64_t property(rocks *r, int family, const char *name) {
    uint64_t value = 0;
    return rocksdb_property_int_cf(r->db, r->families[family], name, &value) == 0 ? value : 0;
}

/* RocksDB's text has this number in gigabytes with three decimals, and no other property has it. */
static uint64_t flushed_bytes(rocks *r, int family) {
    static const char name[] = "Flush(GB): cumulative ";
    char *text = rocksdb_property_value_cf(r->db, r->families[family], "rocksdb.cfstats-no-file-histogram");
    const char *at = text ? strstr(text, name) : NULL;
    double gigabytes = at ? strtod(at + sizeof name - 1, NULL) : 0;
    rocksdb_free(text);
    return (uint64_t)(gigabytes * gigabyte);
}

/* Compactions of tiered families write to level 0 too, so what they wrote is all but the flushes. */
static void sum_levels(store_family_figures *out) {
    uint64_t written = 0;
    for (size_t i = 0; i < STORE_LEVELS; i++) {
        const store_level_figures *level = &out->levels[i];
        out->files += level->files;
        out->bytes += level->bytes;
        out->read_back += level->read;
        written += level->written;
    }
    out->flushed = out->flushed < written ? out->flushed : written;
    out->compacted = written - out->flushed;
}

static void measure_family(rocks *r, int family, store_family_figures *out) {
    out->name = store__family_names[family];
    store__rocks_stats(r->db, r->families[family], "rocksdb.cfstats", take, out);
    store__rocks_stats(r->db, r->families[family], "rocksdb.aggregated-table-properties", take, out);
    out->flushed = flushed_bytes(r, family);
    sum_levels(out);
    out->memtable_bytes = property(r, family, "rocksdb.cur-size-all-mem-tables");
    out->reader_bytes = property(r, family, "rocksdb.estimate-table-readers-mem");
    out->pending_bytes = property(r, family, "rocksdb.estimate-pending-compaction-bytes");
    out->logged = atomic_load(&r->written.logged[family]);
    out->ingested = family == STORE_TERMS ? atomic_load(&r->written.ingested) : 0;
}

uint64_t store__log_bytes(const rocks *r) {
    uint64_t sum = 0;
    struct stat file;
    DIR *d = opendir(r->db_path);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot && strcmp(dot, ".log") == 0 && fstatat(dirfd(d), entry->d_name, &file, 0) == 0) {
            sum += (uint64_t)file.st_size;
        }
    }
    if (d) {
        closedir(d);
    }
    return sum;
}

void store__measure(store *s, store_figures *out) {
    rocks *r = (rocks *)s;
    for (int f = 0; f < FAMILIES; f++) {
        measure_family(r, f, &out->families[out->n++]);
    }
    out->cache_bytes = rocksdb_cache_get_capacity(r->cache);
    out->cache_used = rocksdb_cache_get_usage(r->cache);
    out->cache_pinned = rocksdb_cache_get_pinned_usage(r->cache);
    out->table_reads = store__files_reads(r->files);
    out->table_read_bytes = store__files_bytes(r->files);
    out->tail_bytes = store_tail_held(r->tail);
    out->log_bytes = store__log_bytes(r);
    out->replayed = r->replayed;
    out->open_s = r->open_s;
    out->longest_tail_us = atomic_load(&r->longest.tail);
    out->longest_log_us = atomic_load(&r->longest.log);
}
