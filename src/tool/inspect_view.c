#include "tool/inspect_view.h"

#include "doc/path.h"
#include "tool/terminal.h"

typedef void (*each_object)(slice object, buf *out);

static double number(slice object, const char *name) {
    bson_iter_t it;
    return doc_find_key(object, slice_str(name), &it) && BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_double(&it) : 0;
}

static slice text(slice object, const char *name) {
    bson_iter_t it;
    return doc_find_key(object, slice_str(name), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
}

static void each(slice object, const char *array, each_object run, buf *out) {
    bson_iter_t it, element;
    if (!doc_find_key(object, slice_str(array), &it) || !BSON_ITER_HOLDS_ARRAY(&it) || !bson_iter_recurse(&it, &element)) {
        return;
    }
    while (bson_iter_next(&element)) {
        uint32_t n = 0;
        const uint8_t *p = NULL;
        if (BSON_ITER_HOLDS_DOCUMENT(&element)) {
            bson_iter_document(&element, &n, &p);
            run(slice_of(p, n), out);
        }
    }
}

/* A size in megabytes, right-aligned; nothing for 0. */
static void add_mb(buf *out, double bytes) {
    bytes > 0 ? buf_addf(out, " %9.1f", bytes / 1e6) : buf_addf(out, " %9s", "-");
}

static void add_row(buf *out, slice object, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        add_mb(out, number(object, names[i]));
    }
}

#define ARRAY_N(a) (sizeof(a) / sizeof *(a))

static void add_name(buf *out, slice family) {
    text_add_left(out, text(family, "name"), 9);
}

/* ---- sizes ---- */

static void add_size(slice family, buf *out) {
    static const char *const sizes[] = {"bytes", "keyBytes", "valueBytes", "filterBytes", "indexBytes", "memtableBytes", "readerBytes"};
    add_name(out, family);
    buf_addf(out, " %6.0f", number(family, "files"));
    add_row(out, family, sizes, ARRAY_N(sizes));
    buf_addf(out, " %12.0f %10.0f\n", number(family, "entries"), number(family, "deletions"));
}

static void add_sizes(slice store, buf *out) {
    buf_addf(out, "\nMB       %7s %9s %9s %9s %9s %9s %9s %9s %12s %10s\n", "files", "tables", "keys", "values", "filters", "indexes",
             "memtables", "readers", "entries", "deletions");
    each(store, "families", add_size, out);
}

/* ---- bytes written ---- */

/* How often a byte of this family was written to tables, for each time that it came in. */
static double amplification(slice family) {
    double in = number(family, "flushedBytes") + number(family, "ingestedBytes");
    return in > 0 ? (in + number(family, "compactedBytes")) / in : 0;
}

static void add_work(slice family, buf *out) {
    static const char *const work[] = {"loggedBytes", "flushedBytes", "ingestedBytes", "compactedBytes", "readBackBytes", "pendingBytes"};
    add_name(out, family);
    add_row(out, family, work, ARRAY_N(work));
    buf_addf(out, " %9.2f %6.0f %7.0f\n", amplification(family), number(family, "slowed"), number(family, "stopped"));
}

static void add_works(slice store, buf *out) {
    double bytes = number(store, "bytes"), written = number(store, "writtenBytes");
    buf_addf(out, "\nMB since start  %s %9s %9s %9s %9s %9s %9s %6s %7s\n", "log", "flushed", "ingested", "compacted", "read back",
             "pending", "amplified", "slowed", "stopped");
    each(store, "families", add_work, out);
    if (written > 0 && bytes > 0) {
        buf_addf(out, "written %.1f MB in all: %.2f times the %.1f MB of tables\n", written / 1e6, written / bytes, bytes / 1e6);
    }
}

/* ---- levels ---- */

static void add_level(slice level, buf *out) {
    static const char *const sizes[] = {"bytes", "writtenBytes", "readBytes"};
    if (number(level, "files") == 0 && number(level, "writtenBytes") == 0) {
        return;
    }
    buf_addf(out, "  level %.0f %6.0f", number(level, "level"), number(level, "files"));
    add_row(out, level, sizes, ARRAY_N(sizes));
    buf_addf(out, " %7.0f %9.1f\n", number(level, "jobs"), number(level, "cpuSeconds"));
}

static void add_family_levels(slice family, buf *out) {
    if (number(family, "files") > 0 || number(family, "flushedBytes") > 0) {
        add_name(out, family);
        buf_add_byte(out, '\n');
        each(family, "levels", add_level, out);
    }
}

static void add_levels(slice store, buf *out) {
    buf_addf(out, "\nMB       %7s %9s %9s %9s %7s %9s\n", "files", "tables", "written", "read", "jobs", "CPU s");
    each(store, "families", add_family_levels, out);
}

/* ---- all ---- */

static void add_store(slice store, buf *out) {
    buf_addf(out, "tables %.1f MB, log %.1f MB, index entries in memory %.1f MB, block cache %.1f of %.1f MB\n",
             number(store, "bytes") / 1e6, number(store, "logBytes") / 1e6, number(store, "tailBytes") / 1e6,
             number(store, "cacheUsedBytes") / 1e6, number(store, "cacheBytes") / 1e6);
    buf_addf(out, "opened in %.3f s, with %.1f MB of log; since then %.0f blocks of tables read, %.1f MB\n", number(store, "openSeconds"),
             number(store, "replayedBytes") / 1e6, number(store, "tableReads"), number(store, "tableReadBytes") / 1e6);
    buf_addf(out, "a group of writes has waited %.0f ms at most for the index, %.0f ms for the log\n",
             number(store, "longestIndexWaitMicros") / 1e3, number(store, "longestLogMicros") / 1e3);
    add_sizes(store, out);
    add_works(store, out);
    add_levels(store, out);
}

void inspect_store_text(slice answer, buf *out) {
    each(answer, "stores", add_store, out);
}
