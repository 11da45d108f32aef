#include "store/figures.h"

#include <inttypes.h>

bool store_measure(store *s, store_figures *figures_out) {
    *figures_out = (store_figures){0};
    if (!s->ops->measure) {
        return false;
    }
    s->ops->measure(s, figures_out);
    return true;
}

uint64_t store_figures_written(const store_figures *figures) {
    uint64_t sum = 0;
    for (size_t i = 0; i < figures->n; i++) {
        const store_family_figures *f = &figures->families[i];
        sum += f->logged + f->ingested + f->flushed + f->compacted;
    }
    return sum;
}

uint64_t store_figures_bytes(const store_figures *figures) {
    uint64_t sum = 0;
    for (size_t i = 0; i < figures->n; i++) {
        sum += figures->families[i].bytes;
    }
    return sum;
}

/* ---- JSON ---- */

typedef struct member {
    const char *name;
    size_t at;
} member;

#define FAMILY(name, field)                                                                                                                \
    { name, offsetof(store_family_figures, field) }
static const member family_members[] = {
    FAMILY("files", files),
    FAMILY("bytes", bytes),
    FAMILY("entries", entries),
    FAMILY("deletions", deletions),
    FAMILY("keyBytes", key_bytes),
    FAMILY("valueBytes", value_bytes),
    FAMILY("filterBytes", filter_bytes),
    FAMILY("indexBytes", index_bytes),
    FAMILY("memtableBytes", memtable_bytes),
    FAMILY("readerBytes", reader_bytes),
    FAMILY("pendingBytes", pending_bytes),
    FAMILY("loggedBytes", logged),
    FAMILY("ingestedBytes", ingested),
    FAMILY("flushedBytes", flushed),
    FAMILY("compactedBytes", compacted),
    FAMILY("readBackBytes", read_back),
    FAMILY("slowed", slowed),
    FAMILY("stopped", stopped),
};

#define LEVEL(name, field)                                                                                                                 \
    { name, offsetof(store_level_figures, field) }
static const member level_members[] = {
    LEVEL("files", files), LEVEL("bytes", bytes), LEVEL("writtenBytes", written), LEVEL("readBytes", read), LEVEL("jobs", jobs),
};

static const member store_members[] = {
    {"cacheBytes", offsetof(store_figures, cache_bytes)},
    {"cacheUsedBytes", offsetof(store_figures, cache_used)},
    {"cachePinnedBytes", offsetof(store_figures, cache_pinned)},
    {"tableReads", offsetof(store_figures, table_reads)},
    {"tableReadBytes", offsetof(store_figures, table_read_bytes)},
    {"tailBytes", offsetof(store_figures, tail_bytes)},
    {"logBytes", offsetof(store_figures, log_bytes)},
    {"replayedBytes", offsetof(store_figures, replayed)},
    {"longestIndexWaitMicros", offsetof(store_figures, longest_tail_us)},
    {"longestLogMicros", offsetof(store_figures, longest_log_us)},
};

static void add_members(buf *out, const member *members, size_t n, const void *of) {
    for (size_t i = 0; i < n; i++) {
        const uint64_t *value = (const void *)((const char *)of + members[i].at);
        buf_addf(out, "%s\"%s\":%" PRIu64, i ? "," : "", members[i].name, *value);
    }
}

#define ADD_MEMBERS(out, members, of) add_members(out, members, sizeof(members) / sizeof *(members), of)

/* Levels below the last one that was ever used are left out. */
static void add_levels(buf *out, const store_family_figures *f) {
    size_t n = STORE_LEVELS;
    while (n > 1 && !f->levels[n - 1].files && !f->levels[n - 1].written) {
        n--;
    }
    for (size_t i = 0; i < n; i++) {
        buf_addf(out, "%s{\"level\":%zu,", i ? "," : "", i);
        ADD_MEMBERS(out, level_members, &f->levels[i]);
        buf_addf(out, ",\"cpuSeconds\":%.3f}", f->levels[i].cpu_s);
    }
}

static void add_family(buf *out, const store_family_figures *f) {
    buf_addf(out, "{\"name\":\"%s\",", f->name);
    ADD_MEMBERS(out, family_members, f);
    buf_add_lit(out, ",\"levels\":[");
    add_levels(out, f);
    buf_add_lit(out, "]}");
}

void store_figures_json(const store_figures *figures, buf *out) {
    buf_add_byte(out, '{');
    ADD_MEMBERS(out, store_members, figures);
    buf_addf(out, ",\"openSeconds\":%.3f,\"bytes\":%" PRIu64 ",\"writtenBytes\":%" PRIu64 ",\"families\":[", figures->open_s,
             store_figures_bytes(figures), store_figures_written(figures));
    for (size_t i = 0; i < figures->n; i++) {
        buf_add(out, ",", i > 0);
        add_family(out, &figures->families[i]);
    }
    buf_add_lit(out, "]}\n");
}
