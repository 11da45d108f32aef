/* The store on RocksDB.
 *
 * DIR/FORMAT   one line, "tesela data 4": marks the folder as ours, has the format's version, and is locked by its server
 * DIR/db/      RocksDB's files
 * DIR/tail.sst  a table of index entries being written (rocks_terms.c); removed at start after a crash
 *
 * Disk errors: writes are refused before the disk is full (rocks_space.c), so that RocksDB does not fail in the middle of its log; they
 * resume when space is free again. If the disk is full at start, only reads are served. After any other failed write, all writes are
 * refused until a restart, since only then is it known what the log holds; reads continue. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "store/rocks_back.h"
#include "store/rocks_int.h"
#include "store/wal.h"

const char *const store__family_names[FAMILIES] = {"default", "items", "index", "terms", "versions", "runs"};

enum {
    LISTS_BYTES = 64 * 1024 * 1024, /* limit of rocks_kept.c and of rocks_short.c, or a sixteenth of the cache if that is less */
    TAIL_BYTES = 32 * 1024 * 1024,  /* default of store_options.tail_bytes */
    LOG_BYTES = 128 * 1024 * 1024,  /* default of store_options.log_bytes */
    REPLAY_WORTH_SAYING = 1024 * 1024,
};

/* ---- errors ---- */

err store__classify(char *message, const char *doing) {
    if (!message) {
        return OK;
    }
    if (strstr(message, STORE_WOULD_WAIT)) {
        rocksdb_free(message);
        return E_NOT_IN_MEMORY;
    }
    err code = strstr(message, "No space left") ? E_STORE_FULL : strstr(message, "Corruption") ? E_STORE_CORRUPT : E_STORE_IO;
    char shown[512];
    log_error("store", doing, "reason=%s", log_value(shown, sizeof shown, message, strlen(message)));
    rocksdb_free(message);
    return code;
}

/* ---- reading ---- */

typedef struct rocks_scan {
    store_scan base;
    rocksdb_iterator_t *iterator;
    rocksdb_readoptions_t *read;
    char *bounds;        /* lower, then upper bound: RocksDB keeps pointers to them */
    idle_iterator ready; /* a pooled iterator; if it is set, `read` and `bounds` are not used */
    bool backward, started, ended;
    bool sought;    /* the iterator is already at the next row */
    bool in_memory; /* it never waits for the disk */
    rocks_back back;
} rocks_scan;

/* RocksDB counts the steps of each thread, for a report that nobody asks for: a tenth of what a step of a scan costs. */
static void count_nothing(void) {
    static _Thread_local bool done;
    if (!done) {
        done = true;
        rocksdb_set_perf_level(rocksdb_disable);
    }
}

static err get_plain(rocks *r, int family, const store_snapshot *at, bool in_memory, slice key, store_value *value_out) {
    char *message = NULL;
    const rocksdb_readoptions_t *options = at ? at->read : r->read_now;
    *value_out = (store_value){0};
    count_nothing();
    bool before = store__files_no_wait(in_memory);
    rocksdb_pinnableslice_t *pin = rocksdb_get_pinned_cf(r->db, options, r->families[family], key.p, key.n, &message);
    store__files_no_wait(before);
    if (message) {
        return store__classify(message, "read failed");
    }
    if (!pin) {
        return E_NOT_FOUND;
    }
    size_t n;
    const char *p = rocksdb_pinnableslice_value(pin, &n);
    *value_out = (store_value){.bytes = slice_of(p, n), .pin = pin, .owner = &r->base};
    return OK;
}

err store__plain_get(rocks *r, int family, const store_snapshot *at, slice key, store_value *value_out) {
    return get_plain(r, family, at, at && at->in_memory, key, value_out);
}

static err rocks_get_in_memory(store *s, store_family family, slice key, store_value *value_out) {
    rocks *r = (rocks *)s;
    return get_plain(r, (int)family, NULL, true, key, value_out);
}

static err rocks_get(store *s, store_family family, const store_snapshot *at, slice key, store_value *value_out) {
    rocks *r = (rocks *)s;
    return family == STORE_TERMS ? store__terms_get(r, at, key, value_out) : store__plain_get(r, (int)family, at, key, value_out);
}

static void rocks_give(store_value *value) {
    rocksdb_pinnableslice_destroy(value->pin);
}

store_scan *store__plain_open(rocks *r, int family, const store_snapshot *at, slice from, slice to, bool backward) {
    rocks_scan *scan = mem_zero(sizeof *scan);
    scan->base.owner = &r->base;
    scan->backward = backward;
    scan->bounds = mem_alloc(from.n + to.n);
    memcpy(scan->bounds, from.p ? from.p : "", from.n);
    memcpy(scan->bounds + from.n, to.p ? to.p : "", to.n);
    scan->read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_iterate_lower_bound(scan->read, scan->bounds, from.n);
    if (to.n) {
        rocksdb_readoptions_set_iterate_upper_bound(scan->read, scan->bounds + from.n, to.n);
    }
    if (at) {
        rocksdb_readoptions_set_snapshot(scan->read, at->snapshot);
        scan->in_memory = at->in_memory;
    }
    rocksdb_readoptions_set_total_order_seek(scan->read, 1); /* prefix filters cover one stem, and this scan may leave it */
    scan->iterator = rocksdb_create_iterator_cf(r->db, scan->read, r->families[family]);
    store__back_init(&scan->back, slice_of(scan->bounds, from.n));
    return &scan->base;
}

store_scan *store__ready_open(rocks *r, idle_iterator ready, bool in_memory) {
    rocks_scan *scan = mem_zero(sizeof *scan);
    scan->base.owner = &r->base;
    scan->iterator = ready.iterator;
    scan->ready = ready;
    scan->in_memory = in_memory;
    store__back_init(&scan->back, SLICE_EMPTY);
    return &scan->base;
}

static store_scan *rocks_scan_open(store *s, store_family family, const store_snapshot *at, slice from, slice to, bool backward) {
    rocks *r = (rocks *)s;
    return family == STORE_TERMS ? store__terms_scan(r, at, from, to, backward) : store__plain_open(r, (int)family, at, from, to, backward);
}

static store_scan *rocks_stem_open(store *s, const store_snapshot *at, slice stem, slice to, bool many) {
    return store__terms_stem((rocks *)s, at, stem, to, many);
}

static void start(rocks_scan *scan) {
    if (!scan->started) {
        scan->started = scan->sought = true;
        scan->backward ? rocksdb_iter_seek_to_last(scan->iterator) : rocksdb_iter_seek_to_first(scan->iterator);
    }
}

static bool next_forward(rocks_scan *scan, slice *key_out, slice *value_out) {
    if (!scan->sought) {
        rocksdb_iter_next(scan->iterator);
    }
    if (!rocksdb_iter_valid(scan->iterator)) {
        return false;
    }
    key_out->p = rocksdb_iter_key(scan->iterator, &key_out->n);
    value_out->p = rocksdb_iter_value(scan->iterator, &value_out->n);
    return true;
}

static bool rocks_scan_next(store_scan *base, slice *key_out, slice *value_out) {
    rocks_scan *scan = (rocks_scan *)base;
    if (scan->ended) { /* RocksDB would abort if stepped past the end */
        return false;
    }
    bool before = scan->in_memory && store__files_no_wait(true);
    start(scan);
    scan->ended = scan->backward ? !store__back_next(&scan->back, scan->iterator, scan->sought, key_out, value_out)
                                 : !next_forward(scan, key_out, value_out);
    scan->sought = false;
    if (scan->in_memory) {
        store__files_no_wait(before);
    }
    return !scan->ended;
}

static void rocks_scan_seek(store_scan *base, slice key, bool backward) {
    rocks_scan *scan = (rocks_scan *)base;
    bool before = store__files_no_wait(scan->in_memory);
    scan->started = scan->sought = true;
    scan->ended = false;
    scan->backward = backward;
    store__back_restart(&scan->back);
    backward ? store__back_seek(scan->iterator, key) : rocksdb_iter_seek(scan->iterator, key.p, key.n);
    store__files_no_wait(before);
}

static err rocks_scan_close(store_scan *base) {
    rocks_scan *scan = (rocks_scan *)base;
    char *message = NULL;
    rocksdb_iter_get_error(scan->iterator, &message);
    err code = store__classify(message, "scan failed");
    if (scan->ready.iterator && code == OK) {
        store__idle_give((rocks *)base->owner, scan->ready);
    } else {
        rocksdb_iter_destroy(scan->iterator);
    }
    if (scan->read) {
        rocksdb_readoptions_destroy(scan->read);
    }
    store__back_free(&scan->back);
    free(scan->bounds);
    free(scan);
    return code;
}

static const store_snapshot *rocks_snapshot_take(store *s, bool in_memory) {
    store_snapshot *snapshot = mem_zero(sizeof *snapshot);
    count_nothing();
    store__terms_snapshot((rocks *)s, snapshot);
    snapshot->in_memory = in_memory;
    return snapshot;
}

static void rocks_snapshot_give(store *s, const store_snapshot *snapshot) {
    rocksdb_readoptions_destroy(snapshot->read);
    rocksdb_release_snapshot(((rocks *)s)->db, snapshot->snapshot);
    store_version_give(snapshot->version);
    free((void *)(uintptr_t)snapshot);
}

uint64_t store__plain_bytes(rocks *r, int family, slice from, slice to) {
    uint64_t bytes = 0;
    char *message = NULL;
    rocksdb_approximate_sizes_cf(r->db, r->families[family], 1, &from.p, &from.n, &to.p, &to.n, &bytes, &message);
    return store__classify(message, "size estimate failed") == OK ? bytes : 0;
}

static uint64_t rocks_bytes(store *s, store_family family, slice from, slice to) {
    rocks *r = (rocks *)s;
    uint64_t bytes = store__plain_bytes(r, (int)family, from, to);
    return family == STORE_TERMS ? bytes + store__terms_bytes(r, from, to) : bytes;
}

/* ---- writing ---- */

static void fill_change(rocks *r, const store_change *c) {
    rocksdb_column_family_handle_t *family = r->families[c->family];
    atomic_fetch_add_explicit(&r->written.logged[c->family], c->key.n + c->value.n, memory_order_relaxed);
    switch (c->kind) {
    case STORE_PUT:
        rocksdb_writebatch_put_cf(r->scratch, family, c->key.p, c->key.n, c->value.p, c->value.n);
        break;
    case STORE_DELETE:
        rocksdb_writebatch_delete_cf(r->scratch, family, c->key.p, c->key.n);
        break;
    case STORE_DELETE_RANGE:
        rocksdb_writebatch_delete_range_cf(r->scratch, family, c->key.p, c->key.n, c->value.p, c->value.n);
        break;
    }
}

/* Lists the changes to STORE_INDEX. False: there are deleted ranges, so the order counts. */
static bool list_points(rocks *r, const store_batch *batch, size_t *n_out) {
    *n_out = 0;
    if (r->points_cap < batch->n) {
        r->points_cap = batch->n;
        free(r->points);
        r->points = mem_alloc(2 * r->points_cap * sizeof *r->points);
    }
    for (uint32_t i = 0; i < batch->n; i++) {
        if (batch->changes[i].family == STORE_INDEX) {
            if (batch->changes[i].kind == STORE_DELETE_RANGE) {
                return false;
            }
            r->points[(*n_out)++].index = i;
        }
    }
    return true;
}

/* Changes to STORE_INDEX in the order of their keys, the last of each key only. The memtable's search for the place of a key begins at the
 * place of the one before (rocks_memtable.h). */
static void fill_sorted(rocks *r, const store_batch *batch, size_t n) {
    store_batch_order(batch->changes, r->points, r->points + n, n);
    for (size_t i = 0; i < n; i++) {
        if (store_batch_is_last(batch->changes, r->points, n, i)) {
            fill_change(r, &batch->changes[r->points[i].index]);
        }
    }
}

/* Skips STORE_TERMS, whose changes are in the run. */
static void fill_batch(rocks *r, const store_batch *batch) {
    size_t n;
    bool sorted = list_points(r, batch, &n);
    rocksdb_writebatch_clear(r->scratch);
    for (size_t i = 0; i < batch->n; i++) {
        const store_change *c = &batch->changes[i];
        if (c->family != STORE_TERMS && !(sorted && c->family == STORE_INDEX)) {
            fill_change(r, c);
        }
    }
    if (sorted && n) {
        fill_sorted(r, batch, n);
    }
}

/* Writes the scratch batch. A run, if there is one, is logged in it and then joins the tail. */
static err write_scratch(rocks *r, store_run *run) {
    char *message = NULL;
    if (run) {
        run->first = run->last = store_tail_begin(r->tail);
        store__short_note(r, run);
        store__terms_log(r, run, r->scratch);
    }
    rocksdb_write(r->db, r->write_options, r->scratch, &message);
    err code = store__classify(message, "write failed");
    if (run) {
        store_tail_end(r->tail, run, code == OK);
    }
    return code;
}

static void note_longest(atomic_uint_fast64_t *longest, int64_t begun_us) {
    uint64_t took = (uint64_t)(store__now_us() - begun_us);
    if (took > atomic_load_explicit(longest, memory_order_relaxed)) {
        atomic_store_explicit(longest, took, memory_order_relaxed);
    }
}

static bool rocks_has_room(store *s, store_use use) {
    return store__space_accepts((rocks *)s, use);
}

static err rocks_write(store *s, const store_batch *batch) {
    rocks *r = (rocks *)s;
    if (r->read_only || r->failed) {
        return r->opened_full ? E_STORE_FULL : E_STORE_READ_ONLY;
    }
    if (!store__space_accepts(r, batch->use)) {
        return E_STORE_FULL;
    }
    count_nothing();
    int64_t begun = store__now_us();
    TRY(store_tail_admit(r->tail));
    note_longest(&r->longest.tail, begun);
    fill_batch(r, batch);
    store_run *run = store_run_of_batch(batch);
    begun = store__now_us();
    err code = write_scratch(r, run);
    note_longest(&r->longest.log, begun);
    if (code == OK) {
        store__space_note(r, batch);
        store__garbage_note_write(r);
        return OK;
    }
    if (code != E_STORE_FULL) { /* RocksDB recovers from a full disk itself: it checks for space every few seconds */
        log_error("store", "no more writes until a restart", "dir=%s", r->folder.dir);
        r->space.said_us = store__now_us();
        r->failed = code;
    }
    return E_STORE_IO; /* the batch may be in the log, so the error must not say "nothing was written" */
}

/* ---- giving space back ---- */

static void reclaim_now(rocks *r, const reclaim_job *job) {
    rocksdb_column_family_handle_t *family = r->families[job->family];
    char *message = NULL;
    bool pays = store__space_pays(r, (int)job->family, buf_view(&job->from), buf_view(&job->to));
    if (job->family == STORE_TERMS) {
        store__terms_drain(r);
        store__idle_drop(r, INT64_MAX);
    }
    /* Most of the space is freed by dropping whole files. The file with the range's tombstone may be among them, while older files that
     * only overlap the range stay. So the tombstone is written again first, to the memtable. */
    rocksdb_delete_range_cf(r->db, r->write_unsynced, family, job->from.p, job->from.n, job->to.p, job->to.n, &message);
    if (store__classify(message, "reclaim: deleting failed") != OK) {
        return;
    }
    message = NULL;
    rocksdb_delete_file_in_range_cf(r->db, family, job->from.p, job->from.n, job->to.p, job->to.n, &message);
    if (store__classify(message, "reclaim: dropping files failed") != OK) {
        return;
    }
    if (!pays) {
        return; /* the next compaction of these tables drops the rest */
    }
    if (store__space_can_drop(r, (int)job->family, buf_view(&job->from), buf_view(&job->to))) {
        store__compact(r, (int)job->family, buf_view(&job->from), buf_view(&job->to));
    } else {
        store__space_note_range(r, (int)job->family, buf_view(&job->from), buf_view(&job->to));
    }
}

static void reclaim_and_free(rocks *r, reclaim_job *job) {
    reclaim_now(r, job);
    buf_free(&job->from);
    buf_free(&job->to);
    free(job);
}

/* Lock held. Waits until there is a job, iterators have expired, or a compaction may be due. */
static void wait_for_job(rocks *r) {
    struct timespec until;
    if (r->reclaim_jobs || r->stopping) {
        return; /* since the lock was released last */
    }
    if (!store__idle_drop(r, 0) && !r->space.compact && !atomic_load(&r->garbage.watched)) {
        pthread_cond_wait(&r->reclaim_wake, &r->reclaim_lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_cond_timedwait(&r->reclaim_wake, &r->reclaim_lock, &until);
}

static void *reclaimer(void *context) {
    rocks *r = context;
    pthread_mutex_lock(&r->reclaim_lock);
    while (!r->stopping) {
        reclaim_job *job = r->reclaim_jobs;
        bool low = store__space_compact_due(r);
        int family = job || low ? -1 : store__garbage_next(r);
        if (!job && !low && family < 0) {
            wait_for_job(r);
            continue;
        }
        r->reclaiming = true;
        if (job) {
            r->reclaim_jobs = job->next;
            r->reclaim_last = job->next ? r->reclaim_last : &r->reclaim_jobs;
        }
        pthread_mutex_unlock(&r->reclaim_lock);
        job ? reclaim_and_free(r, job) : low ? store__space_compact(r) : store__garbage_merge(r, family);
        pthread_mutex_lock(&r->reclaim_lock);
        r->reclaiming = false;
    }
    pthread_mutex_unlock(&r->reclaim_lock);
    return NULL;
}

void store__wake_reclaimer(rocks *r) {
    pthread_mutex_lock(&r->reclaim_lock);
    pthread_cond_signal(&r->reclaim_wake);
    pthread_mutex_unlock(&r->reclaim_lock);
}

static void rocks_reclaim(store *s, store_family family, slice from, slice to) {
    rocks *r = (rocks *)s;
    if (r->read_only) {
        return;
    }
    reclaim_job *job = mem_zero(sizeof *job);
    job->family = family;
    job->from = job->to = buf_init(BUF_NO_LIMIT);
    buf_add_slice(&job->from, from);
    buf_add_slice(&job->to, to);
    pthread_mutex_lock(&r->reclaim_lock);
    *r->reclaim_last = job;
    r->reclaim_last = &job->next;
    pthread_cond_signal(&r->reclaim_wake);
    pthread_mutex_unlock(&r->reclaim_lock);
}

/* If the reclaimer is waiting for a compaction, cancels it. Only then: after the cancel RocksDB ingests no more files, and the last tail
 * has yet to be flushed. */
static void stop_reclaimer(rocks *r) {
    pthread_mutex_lock(&r->reclaim_lock);
    r->stopping = true;
    bool works = r->reclaiming;
    pthread_cond_signal(&r->reclaim_wake);
    pthread_mutex_unlock(&r->reclaim_lock);
    if (works) {
        rocksdb_cancel_all_background_work(r->db, 0);
    }
    if (r->reclaimer_runs) {
        pthread_join(r->reclaimer, NULL);
    }
    for (reclaim_job *job = r->reclaim_jobs, *next; job; job = next) {
        next = job->next;
        buf_free(&job->from);
        buf_free(&job->to);
        free(job);
    }
}

/* ---- opening and closing ---- */

static void make_options(rocks *r, const store_options *options) {
    size_t lists = options->cache_bytes / 16 < LISTS_BYTES ? options->cache_bytes / 16 : LISTS_BYTES;
    r->cache = rocksdb_cache_create_lru(options->cache_bytes - lists); /* without the short lists */
    r->opened_low = store__space_is_low(r->db_path);
    r->tiered = !options->leveled && store__space_has_tiers(r);
    r->log_bytes = options->log_bytes ? options->log_bytes : LOG_BYTES;
    r->db_options = store__db_options(r);
    for (int f = 0; f < FAMILIES; f++) {
        r->family_options[f] = store__family_options(r, f);
    }
    r->read_now = rocksdb_readoptions_create();
    store__idle_open(r);
    store__kept_open(r, lists);
    store__short_open(r, lists);
    r->write_options = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(r->write_options, options->sync);
    r->write_unsynced = rocksdb_writeoptions_create();
    r->scratch = rocksdb_writebatch_create();
    r->logged_run = buf_init(BUF_NO_LIMIT);
}

static void close_db(rocks *r) {
    for (int f = 0; f < FAMILIES; f++) {
        if (r->families[f]) {
            rocksdb_column_family_handle_destroy(r->families[f]);
            r->families[f] = NULL;
        }
    }
    if (r->db) {
        rocksdb_close(r->db);
        r->db = NULL;
    }
}

static void rocks_destroy(rocks *r) {
    stop_reclaimer(r);
    store__space_close(r);
    store__terms_close(r);
    store__idle_close(r);
    store__kept_close(r);
    store__short_close(r);
    close_db(r);
    for (int f = 0; f < FAMILIES; f++) {
        rocksdb_options_destroy(r->family_options[f]);
    }
    rocksdb_options_destroy(r->db_options);
    store__files_close(r->files);
    rocksdb_cache_destroy(r->cache);
    rocksdb_readoptions_destroy(r->read_now);
    rocksdb_writeoptions_destroy(r->write_options);
    rocksdb_writeoptions_destroy(r->write_unsynced);
    rocksdb_writebatch_destroy(r->scratch);
    buf_free(&r->logged_run);
    free(r->points);
    pthread_mutex_destroy(&r->reclaim_lock);
    pthread_cond_destroy(&r->reclaim_wake);
    store_folder_close(&r->folder);
    free(r->db_path);
    free(r);
}

static void rocks_close(store *s) {
    store__flush_large((rocks *)s);
    rocks_destroy((rocks *)s);
}

static const store_ops rocks_ops = {
    .name = "rocksdb",
    .close = rocks_close,
    .get = rocks_get,
    .get_in_memory = rocks_get_in_memory,
    .give = rocks_give,
    .has_room = rocks_has_room,
    .is_behind = store__is_behind,
    .write = rocks_write,
    .scan_open = rocks_scan_open,
    .stem_open = rocks_stem_open,
    .scan_next = rocks_scan_next,
    .scan_seek = rocks_scan_seek,
    .scan_close = rocks_scan_close,
    .snapshot_take = rocks_snapshot_take,
    .snapshot_give = rocks_snapshot_give,
    .reclaim = rocks_reclaim,
    .bytes = rocks_bytes,
    .measure = store__measure,
};

static err open_once(rocks *r, char *why, size_t why_n) {
    char *message = NULL;
    const rocksdb_options_t *family_options[FAMILIES];
    for (int f = 0; f < FAMILIES; f++) {
        family_options[f] = r->family_options[f];
    }
    if (r->read_only) {
        r->db = rocksdb_open_for_read_only_column_families(r->db_options, r->db_path, FAMILIES, store__family_names, family_options,
                                                           r->families, 0, &message);
    } else {
        r->db =
            rocksdb_open_column_families(r->db_options, r->db_path, FAMILIES, store__family_names, family_options, r->families, &message);
    }
    if (message) {
        snprintf(why, why_n, "the data in %s cannot be opened: %s", r->folder.dir, message);
        r->db = NULL;
    }
    return store__classify(message, "open failed");
}

static bool has_database(const rocks *r) {
    char path[4096];
    snprintf(path, sizeof path, "%s/CURRENT", r->db_path);
    return access(path, F_OK) == 0;
}

static bool is_live(const rocksdb_livefiles_t *live, const char *name) {
    for (int i = 0; i < rocksdb_livefiles_count(live); i++) {
        const char *known = rocksdb_livefiles_name(live, i); /* "/000012.sst" */
        if (strcmp(known + (*known == '/'), name) == 0) {
            return true;
        }
    }
    return false;
}

/* Removes tables that were being written when the process was killed. RocksDB would remove them after opening, but opening may need their
 * space. True: some were removed. */
static bool remove_strays(rocks *r) {
    const rocksdb_livefiles_t *live = rocksdb_livefiles(r->db);
    bool any = false;
    DIR *d = opendir(r->db_path);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot && strcmp(dot, ".sst") == 0 && !is_live(live, entry->d_name)) {
            any = unlinkat(dirfd(d), entry->d_name, 0) == 0 || any;
        }
    }
    if (d) {
        closedir(d);
    }
    rocksdb_livefiles_destroy(live);
    return any;
}

/* E_STORE_FULL also means that there was too little space to try. */
static err open_for_writes(rocks *r, char *why, size_t why_n) {
    uint64_t space, floor;
    bool full = store__space_read(r->folder.dir, &space, &floor) && space < OPEN_BYTES;
    r->read_only = false;
    return full ? E_STORE_FULL : open_once(r, why, why_n);
}

static err open_for_reads(rocks *r, char *why, size_t why_n) {
    r->read_only = true;
    return open_once(r, why, why_n);
}

/* Opening for writes needs space, because the log is flushed to tables. On a full disk the data is opened for reads only. */
static err open_db(rocks *r, char *why, size_t why_n) {
    err code = r->folder.read_only ? open_for_reads(r, why, why_n) : open_for_writes(r, why, why_n);
    if (code != E_STORE_FULL) {
        return code;
    }
    if (!has_database(r)) {
        snprintf(why, why_n, "the disk of the data folder %s is full: nothing can be stored there. Free space, then start again",
                 r->folder.dir);
        return E_STORE_FULL;
    }
    TRY(open_for_reads(r, why, why_n));
    if (remove_strays(r)) {
        close_db(r);
        code = open_for_writes(r, why, why_n);
        if (code != E_STORE_FULL) {
            return code;
        }
        TRY(open_for_reads(r, why, why_n));
    }
    r->opened_full = true;
    r->space.said_us = store__now_us();
    log_error("store", "disk full: reads are served, writes are refused. Free space, then restart", "dir=%s", r->folder.dir);
    return OK;
}

/* RocksDB aborts if it cannot start its threads: those for flushes and compactions, and those that read tables while it opens. */
static err check_threads(char *why, size_t why_n) {
    if (!thread_can_start(STORE_FLUSHES + STORE_COMPACTIONS + STORE_OPENING_THREADS)) {
        snprintf(why, why_n, THREAD_REFUSED);
        return E_UNAVAILABLE;
    }
    return OK;
}

static err start_reclaimer(rocks *r, char *why, size_t why_n) {
    r->reclaimer_runs = thread_start(&r->reclaimer, "reclaimer", reclaimer, r);
    if (!r->reclaimer_runs) {
        snprintf(why, why_n, THREAD_REFUSED);
        return E_UNAVAILABLE;
    }
    return OK;
}

/* Opens RocksDB and the tail, and says how much of the log was replayed. */
static err open_data(rocks *r, char *why, size_t why_n) {
    int64_t begun = store__now_us();
    r->replayed = store__log_bytes(r);
    TRY(open_db(r, why, why_n));
    TRY(store__terms_open(r, why, why_n));
    r->open_s = (double)(store__now_us() - begun) / 1e6;
    if (r->replayed >= REPLAY_WORTH_SAYING && !r->folder.read_only) {
        log_info("store", "log replayed", "bytes=%lu tail_bytes=%zu open_ms=%.0f", (unsigned long)r->replayed, store_tail_held(r->tail),
                 r->open_s * 1e3);
    }
    return OK;
}

err store_open_rocks(const store_options *options, store **store_out, char *why, size_t why_n) {
    store_folder folder;
    *store_out = NULL;
    TRY(options->read_only ? store_folder_open_to_read(&folder, options->dir, why, why_n)
                           : store_folder_open(&folder, options->dir, options->made_out, why, why_n));
    rocks *r = mem_zero(sizeof *r);
    r->base.ops = &rocks_ops;
    r->folder = folder;
    r->sync = options->sync;
    r->tail_bytes = options->tail_bytes ? options->tail_bytes : TAIL_BYTES;
    r->reclaim_last = &r->reclaim_jobs;
    r->db_path = mem_alloc(strlen(options->dir) + 4);
    sprintf(r->db_path, "%s/db", options->dir);
    pthread_mutex_init(&r->reclaim_lock, NULL);
    pthread_cond_init(&r->reclaim_wake, NULL);
    make_options(r, options);
    err code = options->sync ? store_wal_check(r->db_path, why, why_n) : OK; /* without sync, batches may be torn anywhere in the log */
    code = code != OK ? code : check_threads(why, why_n);
    code = code != OK ? code : open_data(r, why, why_n);
    code = code != OK ? code : start_reclaimer(r, why, why_n);
    if (code != OK) {
        rocks_destroy(r);
        return code;
    }
    if (!r->read_only) {
        store__space_open(r, r->opened_low);
    } else if (!r->opened_full && !options->read_only) {
        log_warn("store", "data folder is read-only: reads are served, writes are refused", "dir=%s", r->folder.dir);
    }
    *store_out = &r->base;
    return OK;
}
