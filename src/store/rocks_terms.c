/* STORE_TERMS on RocksDB: many small keys without values. As single puts they would cost more than the rest of a write.
 *
 * A batch's changes to this family are sorted into a run. The run is put as one value into a separate family, the log of runs, in the same
 * RocksDB write as the rest of the batch; then it joins the tail in memory (store/tail.h). A large tail is written as one sorted file,
 * which RocksDB ingests into the family "terms"; then its runs are deleted from the log. Readers lay the tail over that family.
 *
 * The log:   'n'            → number u64   of the last batch with a run: shows which batches a snapshot has
 *            'r' number u64 → run
 *
 * A crash can leave, besides the log:
 *   a file not ingested       removed at the next start; its runs are in the log
 *   ranges deleted, no file   harmless: the log's runs hide what is missing
 *   a file ingested           and its runs in the log: harmless, since the runs repeat the same changes
 * The file is synced before it is ingested. Without --durability full the log is synced too, so that no entry outlives its item. */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "store/rocks_int.h"

enum { DRAIN_BYTES = 1024 * 1024, LOG_KEY_BYTES = 9, STOP_CHECK = 4096, SEEK_WORTH = 12, NOTED_STEP = 16 };

/* ---- the log ---- */

static slice log_key(char into[LOG_KEY_BYTES], uint64_t number) {
    into[0] = 'r';
    number = htobe64(number);
    memcpy(into + 1, &number, sizeof number);
    return slice_of(into, LOG_KEY_BYTES);
}

void store__terms_log(rocks *r, store_run *run, rocksdb_writebatch_t *batch) {
    char key[LOG_KEY_BYTES];
    rocksdb_column_family_handle_t *family = r->families[FAMILY_RUNS];
    uint64_t number = htobe64(run->last);
    log_key(key, run->last);
    slice logged = store_run_logged(run, &r->logged_run);
    rocksdb_writebatch_put_cf(batch, family, key, sizeof key, logged.p, logged.n);
    atomic_fetch_add_explicit(&r->written.logged[FAMILY_RUNS], sizeof key + logged.n, memory_order_relaxed);
    rocksdb_writebatch_put_cf(batch, family, "n", 1, (const char *)&number, sizeof number);
}

/* The number of the last batch with a run, as a snapshot sees it. */
static err read_number(rocks *r, const store_snapshot *at, uint64_t *number_out) {
    store_value value;
    *number_out = 0;
    err code = store__plain_get(r, FAMILY_RUNS, at, SLICE_LIT("n"), &value);
    if (code == E_NOT_FOUND) {
        return OK;
    }
    TRY(code);
    bool whole = value.bytes.n == sizeof *number_out;
    if (whole) {
        memcpy(number_out, value.bytes.p, sizeof *number_out);
        *number_out = be64toh(*number_out);
    }
    store_give(&value);
    return whole ? OK : E_STORE_CORRUPT;
}

static err load_run(rocks *r, slice key, slice value, uint64_t last) {
    uint64_t number = 0;
    store_run *run = NULL;
    if (key.n == LOG_KEY_BYTES) {
        memcpy(&number, key.p + 1, sizeof number);
        number = be64toh(number);
    }
    TRY(number && number <= last ? store_run_read(value, number, &run) : E_STORE_CORRUPT);
    store_tail_load(r->tail, run);
    return OK;
}

static err load_runs(rocks *r, uint64_t last) {
    slice key, value;
    err code = OK;
    store_scan *scan = store__plain_open(r, FAMILY_RUNS, NULL, SLICE_LIT("r"), SLICE_LIT("s"), false);
    while (code == OK && store_scan_next(scan, &key, &value)) {
        code = load_run(r, key, value, last);
    }
    err ended = store_scan_close(scan);
    return code != OK ? code : ended;
}

/* ---- flushing the tail to a table ---- */

static void file_path(const rocks *r, char path[4096]) {
    snprintf(path, 4096, "%s/tail.sst", r->folder.dir);
}

static char *add_to_file(rocksdb_sstfilewriter_t *file, const store_run_change *c) {
    char *message = NULL;
    if (c->gone) {
        rocksdb_sstfilewriter_delete(file, c->key.p, c->key.n, &message);
    } else {
        rocksdb_sstfilewriter_put(file, c->key.p, c->key.n, c->value.p, c->value.n, &message);
    }
    return message;
}

/* Writes all changes of the runs, one for each key. False: the tail is being closed. */
static bool fill_file(rocks *r, rocksdb_sstfilewriter_t *file, store_cursor *cursor, char **message) {
    for (size_t n = 0; cursor->live && !*message; store_cursor_next(cursor)) {
        *message = add_to_file(file, &cursor->change);
        if (++n % STOP_CHECK == 0 && store_tail_stops(r->tail)) {
            return false;
        }
    }
    if (!*message) {
        rocksdb_sstfilewriter_finish(file, message); /* also syncs the file */
    }
    return true;
}

static err write_file(rocks *r, const char *path, store_cursor *cursor) {
    char *message = NULL;
    rocksdb_envoptions_t *env = store__files_steady();
    rocksdb_sstfilewriter_t *file = rocksdb_sstfilewriter_create(env, r->family_options[STORE_TERMS]);
    rocksdb_sstfilewriter_open(file, path, &message);
    bool whole = message || fill_file(r, file, cursor, &message);
    rocksdb_sstfilewriter_destroy(file);
    rocksdb_envoptions_destroy(env);
    return message ? store__classify(message, "writing index entries to a table failed; they are tried again") : whole ? OK : E_STORE_IO;
}

static err delete_ranges(rocks *r, const store_version *runs) {
    for (size_t i = 0; i < runs->ranged; i++) {
        for (size_t j = 0; j < runs->runs[i]->ranges_n; j++) {
            const store_range *range = &runs->runs[i]->ranges[j];
            char *message = NULL;
            rocksdb_delete_range_cf(r->db, r->write_unsynced, r->families[STORE_TERMS], range->from.p, range->from.n, range->to.p,
                                    range->to.n, &message);
            TRY(store__classify(message, "deleting index entries failed; it is tried again"));
        }
    }
    return OK;
}

static err ingest_file(rocks *r, const char *path) {
    char *message = NULL;
    struct stat file;
    if (stat(path, &file) == 0) {
        atomic_fetch_add_explicit(&r->written.ingested, (uint64_t)file.st_size, memory_order_relaxed);
    }
    rocksdb_ingestexternalfileoptions_t *options = store__files_taking_in();
    rocksdb_ingest_external_file_cf(r->db, r->families[STORE_TERMS], &path, 1, options, &message);
    rocksdb_ingestexternalfileoptions_destroy(options);
    return store__classify(message, "taking in a table of index entries failed; it is tried again");
}

/* Deletes flushed runs from the log. After a failure, the next flush deletes them too. */
static void delete_flushed_runs(rocks *r, uint64_t last) {
    char from[LOG_KEY_BYTES], to[LOG_KEY_BYTES], *message = NULL;
    log_key(from, 0);
    log_key(to, last + 1);
    rocksdb_delete_range_cf(r->db, r->write_unsynced, r->families[FAMILY_RUNS], from, sizeof from, to, sizeof to, &message);
    store__classify(message, "deleting the index's log failed");
}

static err flush(void *context, const store_version *runs) {
    rocks *r = context;
    char path[4096], *message = NULL;
    store_cursor cursor;
    file_path(r, path);
    store_cursor_open(&cursor, runs);
    store_cursor_seek(&cursor, NULL, false);
    bool any = cursor.live;
    err code = any ? write_file(r, path, &cursor) : OK;
    store_cursor_close(&cursor);
    if (code == OK && !r->sync) {
        rocksdb_flush_wal(r->db, 1, &message);
        code = store__classify(message, "syncing the log failed");
    }
    store__terms_edition_advance(r);
    code = code != OK ? code : delete_ranges(r, runs);
    code = code != OK || !any ? code : ingest_file(r, path);
    store__terms_edition_advance(r);
    store__idle_drop(r, INT64_MAX);
    store__kept_drop(r);
    if (code == OK) {
        delete_flushed_runs(r, runs->number);
    }
    unlink(path); /* after a failure; an ingested file has been renamed */
    return code;
}

/* ---- gets ---- */

static void terms_give(store_value *value) {
    store_run_give(value->pin);
}

err store__terms_get(rocks *r, const store_snapshot *at, slice key, store_value *value_out) {
    slice value;
    store_run *run;
    store_version *version = at ? store_version_hold(at->version) : store_tail_take(r->tail);
    store_found found = store_version_get(version, key, &value, &run);
    store_version_give(version);
    *value_out = (store_value){0};
    if (found == STORE_UNKNOWN) {
        return store__plain_get(r, STORE_TERMS, at, key, value_out);
    }
    if (found == STORE_FOUND) {
        *value_out = (store_value){.bytes = value, .pin = run, .owner = &r->terms};
    }
    return found == STORE_FOUND ? OK : E_NOT_FOUND;
}

/* ---- scans: the tail's cursor and RocksDB's iterator side by side ---- */

typedef struct terms_scan {
    store_scan base;
    store_version *version;
    store_cursor cursor;
    store_scan *table;
    slice table_key, table_value;
    bool table_live;
    bool cursor_used, table_used; /* must advance before the next row */
    bool backward, started;
    bool stem;      /* the table's scan does not stop at `to` by itself */
    bool notes;     /* the numbers of all rows from the first on are noted, for a short list */
    bool all_noted; /* … and there are no more */
    uint64_t least; /* rows with numbers below are noted, but not returned */
    size_t noted_n;
    uint64_t *noted;
    bool counted;    /* a stem scan without a list */
    uint64_t walked; /* entries read from the table; a seek counts as several */
    slice from, to;
    char bounds[];
} terms_scan;

static terms_scan *make_scan(rocks *r, store_version *version, store_scan *table, slice from, slice to, bool backward) {
    terms_scan *s = mem_zero(sizeof *s + from.n + to.n);
    s->base.owner = &r->terms;
    s->version = version;
    s->table = table;
    s->backward = backward;
    memcpy(s->bounds, from.p ? from.p : "", from.n);
    memcpy(s->bounds + from.n, to.p ? to.p : "", to.n);
    s->from = slice_of(s->bounds, from.n);
    s->to = slice_of(s->bounds + from.n, to.n);
    store_cursor_open(&s->cursor, version);
    return s;
}

/* Of one stem: the number of entries read is reported to rocks_kept.c, and what fits a short list to rocks_short.c. */
static store_scan *open_over(rocks *r, store_version *version, store_scan *table, slice from, slice to, bool backward, bool of_stem) {
    if (version->n == 0 && !of_stem) {
        store_version_give(version);
        return table;
    }
    terms_scan *s = make_scan(r, version, table, from, to, backward);
    s->counted = s->notes = of_stem;
    return &s->base;
}

static store_scan *open_scan(rocks *r, const store_snapshot *at, slice from, slice to, bool backward, bool of_stem) {
    if (at) {
        store_scan *table = store__plain_open(r, STORE_TERMS, at, from, to, backward);
        return open_over(r, store_version_hold(at->version), table, from, to, backward, of_stem);
    }
    for (;;) {
        store_version *version = store_tail_take(r->tail);
        store_scan *table = store__plain_open(r, STORE_TERMS, NULL, from, to, backward);
        if (!store_tail_overtaken(r->tail, version)) {
            return open_over(r, version, table, from, to, backward, of_stem);
        }
        store_version_give(version); /* RocksDB's iterator may show changes that this version lacks */
        (void)!store_scan_close(table);
    }
}

static void count_scan(rocks *r) {
    atomic_fetch_add_explicit(&r->tiers.scans, 1, memory_order_relaxed);
}

store_scan *store__terms_scan(rocks *r, const store_snapshot *at, slice from, slice to, bool backward) {
    count_scan(r);
    return open_scan(r, at, from, to, backward, false);
}

/* Scans a kept list, or an idle iterator, of this edition. NULL: there is neither. Only a thread that may wait makes a list. */
static store_scan *open_stem_table(rocks *r, const store_snapshot *at, slice stem, slice to, bool many, bool *kept_out) {
    idle_iterator ready;
    uint64_t edition = at ? at->edition : store__terms_edition(r);
    store_scan *kept = store__kept_scan(r, edition, stem, to, many || (at && !at->in_memory));
    *kept_out = kept != NULL;
    if (kept || many) {
        return kept;
    }
    return store__idle_take(r, edition, &ready) ? store__ready_open(r, ready, at && at->in_memory) : NULL;
}

store_scan *store__terms_stem(rocks *r, const store_snapshot *at, slice stem, slice to, bool many) {
    bool kept;
    count_scan(r);
    store_version *version = at ? store_version_hold(at->version) : store_tail_take(r->tail);
    store_scan *list = store__short_scan(r, version->number, stem);
    store_scan *table = list ? NULL : open_stem_table(r, at, stem, to, many, &kept);
    if (table && (at || !store_tail_overtaken(r->tail, version))) {
        terms_scan *s = make_scan(r, version, table, stem, to, false);
        s->stem = s->notes = true;
        s->counted = !kept;
        return &s->base;
    }
    if (table) {
        (void)!store_scan_close(table);
    }
    store_version_give(version);
    return list ? list : open_scan(r, at, stem, to, false, true);
}

/* An iterator limited to one stem must be positioned with a complete key: here the lowest one. */
static void start_stem(terms_scan *s) {
    static const char least[8] = {0};
    char *key = mem_alloc(s->from.n + sizeof least);
    memcpy(key, s->from.p, s->from.n);
    memcpy(key + s->from.n, least, sizeof least);
    store_scan_seek(s->table, slice_of(key, s->from.n + sizeof least), false);
    free(key);
}

/* Moves the cursor to the first row of the scan. */
static void start(terms_scan *s) {
    bool bounded = !s->backward || s->to.n;
    if (s->stem) {
        start_stem(s);
    }
    store_cursor_seek(&s->cursor, bounded ? s->backward ? &s->to : &s->from : NULL, s->backward);
    s->started = true;
    s->cursor_used = false;
    s->table_used = true;
}

static void move_on(terms_scan *s) {
    if (s->cursor_used) {
        store_cursor_next(&s->cursor);
    }
    if (s->table_used) {
        s->table_live = store_scan_next(s->table, &s->table_key, &s->table_value) && (!s->stem || slice_cmp(s->table_key, s->to) < 0);
        s->walked++;
    }
    s->cursor_used = s->table_used = false;
}

static bool cursor_in_bounds(const terms_scan *s) {
    if (!s->cursor.live) {
        return false;
    }
    return s->backward ? slice_cmp(s->cursor.change.key, s->from) >= 0 : !s->to.n || slice_cmp(s->cursor.change.key, s->to) < 0;
}

/* < 0: the cursor's key comes first; > 0: the table's; 0: both are the same. */
static int compare_sides(const terms_scan *s, bool in_bounds) {
    int c = !in_bounds ? 1 : !s->table_live ? -1 : slice_cmp(s->cursor.change.key, s->table_key);
    return in_bounds && s->table_live && s->backward ? -c : c;
}

/* The next row of both sides together. */
static bool next_row(terms_scan *s, slice *key_out, slice *value_out) {
    for (;;) {
        move_on(s);
        bool in_bounds = cursor_in_bounds(s);
        if (!in_bounds && !s->table_live) {
            return false;
        }
        int c = compare_sides(s, in_bounds);
        s->cursor_used = c <= 0;
        s->table_used = c >= 0;
        if (c <= 0 && !s->cursor.change.gone) {
            *key_out = s->cursor.change.key;
            *value_out = s->cursor.change.value;
            return true;
        }
        const store_range *range = c > 0 ? store_version_covers(s->version, s->table_key) : NULL;
        if (range) {
            store_scan_seek(s->table, s->backward ? range->from : range->to, s->backward);
        } else if (c > 0) {
            *key_out = s->table_key;
            *value_out = s->table_value;
            return true;
        }
    }
}

static void note_number(terms_scan *s, uint64_t number) {
    if (s->noted_n == SHORT_MAX) {
        s->notes = false;
        return;
    }
    if (s->noted_n % NOTED_STEP == 0) {
        s->noted = mem_resize(s->noted, (s->noted_n + NOTED_STEP) * sizeof *s->noted);
    }
    s->noted[s->noted_n++] = number;
}

static bool is_of_stem(const terms_scan *s, slice key) {
    return key.n == s->from.n + STEM_NUMBER_BYTES && memcmp(key.p, s->from.p, s->from.n) == 0;
}

static bool next_noted(terms_scan *s, slice *key_out, slice *value_out) {
    while (next_row(s, key_out, value_out)) {
        bool numbered = is_of_stem(s, *key_out);
        uint64_t number = numbered ? store__stem_number(key_out->p + s->from.n) : UINT64_MAX;
        s->notes = s->notes && numbered && value_out->n == 0;
        if (s->notes) {
            note_number(s, number);
        }
        if (number >= s->least) {
            return true;
        }
    }
    s->all_noted = s->notes;
    return false;
}

static bool terms_next(store_scan *base, slice *key_out, slice *value_out) {
    terms_scan *s = (terms_scan *)base;
    if (!s->started) {
        start(s);
    }
    return s->notes ? next_noted(s, key_out, value_out) : next_row(s, key_out, value_out);
}

/* Lookups begin at number 1, with which documents begin. If the scan notes numbers, it starts at the stem itself. */
static bool starts_noting(terms_scan *s, slice key) {
    bool first = s->notes && !s->started && is_of_stem(s, key);
    uint64_t number = first ? store__stem_number(key.p + s->from.n) : 0;
    if (!first || number > 1) {
        return false;
    }
    s->least = number;
    start(s);
    return true;
}

static void terms_seek(store_scan *base, slice key, bool backward) {
    terms_scan *s = (terms_scan *)base;
    if (!backward && starts_noting(s, key)) {
        return;
    }
    slice to = backward && s->to.n && slice_cmp(s->to, key) < 0 ? s->to : key;
    slice from = !backward && slice_cmp(key, s->from) < 0 ? s->from : key;
    store_scan_seek(s->table, key, backward);
    store_cursor_seek(&s->cursor, backward ? &to : &from, backward);
    s->walked += SEEK_WORTH;
    s->backward = backward;
    s->started = s->table_used = true;
    s->cursor_used = s->notes = s->all_noted = false;
}

static rocks *owner_of(const terms_scan *s) {
    return (rocks *)((char *)s->base.owner - offsetof(rocks, terms));
}

static err terms_close(store_scan *base) {
    terms_scan *s = (terms_scan *)base;
    err code = store_scan_close(s->table);
    if (s->all_noted && code == OK) {
        store__short_add(owner_of(s), s->version->number, s->from, s->noted, s->noted_n);
    } else if (s->counted) {
        store__kept_count_reads(owner_of(s), s->from, s->walked);
    }
    free(s->noted);
    store_cursor_close(&s->cursor);
    store_version_give(s->version);
    free(s);
    return code;
}

/* ---- snapshots ---- */

static void make_snapshot(rocks *r, store_snapshot *snapshot) {
    snapshot->snapshot = rocksdb_create_snapshot(r->db);
    snapshot->read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_snapshot(snapshot->read, snapshot->snapshot);
}

static void drop_snapshot(rocks *r, store_snapshot *snapshot) {
    rocksdb_readoptions_destroy(snapshot->read);
    rocksdb_release_snapshot(r->db, snapshot->snapshot);
}

/* The version is taken first, so RocksDB's snapshot has every batch of that version, and everything flushed before the snapshot. It may
 * have one batch more, whose run is about to join the tail; then both are taken again. */
void store__terms_snapshot(rocks *r, store_snapshot *snapshot) {
    for (;;) {
        uint64_t number;
        snapshot->version = store_tail_take(r->tail);
        snapshot->edition = store__terms_edition(r);
        make_snapshot(r, snapshot);
        snapshot->edition |= snapshot->edition != store__terms_edition(r);
        if (!store_tail_writing(r->tail, snapshot->version) || read_number(r, snapshot, &number) != OK ||
            number <= snapshot->version->number || !store_tail_await(r->tail, number)) {
            return;
        }
        store_version_give(snapshot->version);
        drop_snapshot(r, snapshot);
    }
}

/* ---- opening and closing ---- */

uint64_t store__terms_bytes(rocks *r, slice from, slice to) {
    uint64_t bytes = 0;
    store_version *version = store_tail_take(r->tail);
    for (size_t i = 0; i < version->n; i++) {
        bytes += store_run_bytes_in(version->runs[i], from, to);
    }
    store_version_give(version);
    return bytes;
}

static const store_ops terms_ops = {
    .name = "terms",
    .give = terms_give,
    .scan_next = terms_next,
    .scan_seek = terms_seek,
    .scan_close = terms_close,
};

err store__terms_open(rocks *r, char *why, size_t why_n) {
    char path[4096];
    uint64_t number;
    r->terms.ops = &terms_ops;
    file_path(r, path);
    if (!r->read_only && unlink(path) < 0 && errno != ENOENT) {
        snprintf(why, why_n, "cannot remove %s, which a crash left: %s", path, strerror(errno));
        return E_STORE_IO;
    }
    err code = read_number(r, NULL, &number);
    store_tail_options options = {.bytes = r->tail_bytes, .number = number, .context = r};
    options.flush = r->read_only ? NULL : flush;
    r->tail = store_tail_open(&options);
    if (!r->tail) {
        snprintf(why, why_n, THREAD_REFUSED);
        return E_UNAVAILABLE;
    }
    code = code != OK ? code : load_runs(r, number);
    r->tail_whole = code == OK;
    if (code != OK) {
        snprintf(why, why_n, "the data in %s cannot be opened: the index's log is damaged. Restore the folder from a copy", r->folder.dir);
    }
    return code;
}

/* Also compacts the log's tables, which are then empty. Does nothing for a small tail, since every deleted container calls this several
 * times. */
void store__terms_drain(rocks *r) {
    uint64_t logged = 0;
    if (rocksdb_property_int_cf(r->db, r->families[FAMILY_RUNS], "rocksdb.live-sst-files-size", &logged) != 0) {
        logged = 0;
    }
    if (logged + store_tail_held(r->tail) < DRAIN_BYTES) {
        return;
    }
    store_tail_drain(r->tail);
    rocksdb_compact_range_cf(r->db, r->families[FAMILY_RUNS], NULL, 0, NULL, 0);
}

void store__terms_close(rocks *r) {
    if (r->tail) {
        store_tail_close(r->tail, r->tail_whole);
    }
}
