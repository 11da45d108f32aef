#include "store/tail.h"

#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"

enum {
    SMALL_SHARE = 32, /* the writer merges runs of up to 1/32 of the flush size, which takes half a millisecond at most */
    STALL_TIMES = 3,  /* the writer waits while the tail is three times the flush size */
    IDLE_MS = 1000,
    RETRY_MS = 1000,
    STALL_SAY_S = 10, /* interval of log lines while writes wait */
    CLOSE_BYTES = 1024 * 1024,
};

struct store_tail {
    store_tail_options options;
    pthread_mutex_t lock;    /* protects the members below, and the runs' `busy` */
    pthread_cond_t progress; /* signalled when a batch ended, or runs were flushed or failed to be */
    pthread_cond_t work;
    store_version *now;
    uint64_t ended;
    err failed; /* result of the last flush */
    bool stopping;
    int64_t stall_said_s;
    bool hurried;                              /* flush even a small tail: a thread waits for it */
    enum { WORKS, NAPS, SLEEPS } merger_state; /* NAPS: sleeps with a timeout */
    pthread_t merger;
    atomic_uint_fast64_t begun, flushing; /* batch numbers */
    atomic_bool stops;
};

/* ---- versions ---- */

static store_version *version_make(uint64_t number, size_t n) {
    store_version *v = mem_zero(sizeof *v + n * sizeof *v->runs);
    atomic_init(&v->refs, 1);
    v->number = number;
    return v;
}

static void version_add(store_version *v, store_run *run) {
    v->runs[v->n++] = store_run_hold(run);
    v->bytes += store_run_held(run);
    v->ranged = run->ranges_n ? v->n : v->ranged;
}

store_version *store_version_hold(store_version *version) {
    atomic_fetch_add_explicit(&version->refs, 1, memory_order_relaxed);
    return version;
}

void store_version_give(store_version *version) {
    if (atomic_fetch_sub_explicit(&version->refs, 1, memory_order_acq_rel) == 1) {
        for (size_t i = 0; i < version->n; i++) {
            store_run_give(version->runs[i]);
        }
        free(version);
    }
}

store_version *store_tail_take(store_tail *tail) {
    pthread_mutex_lock(&tail->lock);
    store_version *version = store_version_hold(tail->now);
    pthread_mutex_unlock(&tail->lock);
    return version;
}

/* Lock held. Publishes a version with `run` in place of runs [from, to), or without them if it is NULL. The caller gives the returned old
 * version back without the lock: that may free large runs. */
static store_version *publish(store_tail *tail, uint64_t number, size_t from, size_t to, store_run *run) {
    store_version *old = tail->now, *next = version_make(number, old->n - (to - from) + 1);
    for (size_t i = 0; i < from; i++) {
        version_add(next, old->runs[i]);
    }
    if (run) {
        version_add(next, run);
    }
    for (size_t i = to; i < old->n; i++) {
        version_add(next, old->runs[i]);
    }
    tail->now = next;
    return old;
}

/* Lock held, but released during the merge. `busy` keeps others from merging these runs meanwhile. */
static void merge_pair(store_tail *tail, size_t i) {
    store_run *older = store_run_hold(tail->now->runs[i]), *newer = store_run_hold(tail->now->runs[i + 1]);
    older->busy = newer->busy = true;
    pthread_mutex_unlock(&tail->lock);
    store_run *merged = store_run_merge(older, newer);
    pthread_mutex_lock(&tail->lock);
    for (i = 0; tail->now->runs[i] != older; i++) { /* the merger may have removed or merged older runs */
    }
    store_version *old = publish(tail, tail->now->number, i, i + 2, merged);
    pthread_mutex_unlock(&tail->lock);
    store_version_give(old);
    store_run_give(older);
    store_run_give(newer);
    store_run_give(merged);
    pthread_mutex_lock(&tail->lock);
}

static bool alike(const store_version *v, size_t i) {
    return !v->runs[i]->busy && !v->runs[i + 1]->busy && v->runs[i]->bytes <= 2 * v->runs[i + 1]->bytes;
}

static bool is_small(const store_tail *tail, size_t i) {
    return tail->now->runs[i]->bytes + tail->now->runs[i + 1]->bytes <= tail->options.bytes / SMALL_SHARE;
}

/* ---- the merger ---- */

/* The newest pair that the merger should merge, or SIZE_MAX. */
static size_t find_pair(const store_tail *tail) {
    for (size_t i = tail->now->n; i-- > 1;) {
        if (alike(tail->now, i - 1) && !is_small(tail, i - 1)) {
            return i - 1;
        }
    }
    return SIZE_MAX;
}

/* There is enough to flush, and the writer is not merging the oldest run. */
static bool is_full(const store_tail *tail) {
    bool due = tail->hurried || tail->now->bytes >= tail->options.bytes;
    return tail->options.flush && tail->now->n && due && !tail->now->runs[0]->busy;
}

static void mark_busy(const store_version *v, bool busy) {
    for (size_t i = 0; i < v->n; i++) {
        v->runs[i]->busy = busy;
    }
}

/* Takes the oldest runs, up to the first that the writer is merging. */
static store_version *make_job(store_tail *tail) {
    store_version *job = version_make(0, tail->now->n);
    for (size_t i = 0; i < tail->now->n && !tail->now->runs[i]->busy; i++) {
        version_add(job, tail->now->runs[i]);
        job->number = tail->now->runs[i]->last;
    }
    mark_busy(job, true);
    atomic_store(&tail->flushing, job->number);
    return job;
}

/* Lock held, but released during the flush. */
static void flush(store_tail *tail) {
    store_version *job = make_job(tail);
    pthread_mutex_unlock(&tail->lock);
    err code = tail->options.flush(tail->options.context, job);
    pthread_mutex_lock(&tail->lock);
    if (code == OK) {
        store_version *old = publish(tail, tail->now->number, 0, job->n, NULL);
        pthread_mutex_unlock(&tail->lock);
        store_version_give(old);
        pthread_mutex_lock(&tail->lock);
    }
    mark_busy(job, false);
    tail->failed = code;
    pthread_cond_broadcast(&tail->progress);
    pthread_mutex_unlock(&tail->lock);
    store_version_give(job);
    pthread_mutex_lock(&tail->lock);
}

/* Lock held. False: it timed out. */
static bool sleep_ms(store_tail *tail, long ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms % 1000 * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_cond_timedwait(&tail->work, &tail->lock, &until) == 0;
}

static bool can_merge_last(const store_tail *tail) {
    const store_version *v = tail->now;
    return v->n >= 2 && !v->runs[v->n - 1]->busy && !v->runs[v->n - 2]->busy && !tail->stopping;
}

/* Called when there is no work: waits, and merges all runs into one after a while without writes. */
static void rest(store_tail *tail) {
    uint64_t number = tail->now->number;
    if (tail->now->n < 2) {
        tail->merger_state = SLEEPS;
        pthread_cond_wait(&tail->work, &tail->lock);
        tail->merger_state = WORKS;
        return;
    }
    tail->merger_state = NAPS;
    bool woken = sleep_ms(tail, IDLE_MS);
    tail->merger_state = WORKS;
    while (!woken && number == tail->now->number && can_merge_last(tail)) {
        merge_pair(tail, tail->now->n - 2);
    }
}

static void *keep(void *context) {
    store_tail *tail = context;
    pthread_mutex_lock(&tail->lock);
    while (!tail->stopping) {
        size_t pair = find_pair(tail);
        if (is_full(tail)) {
            flush(tail);
            if (tail->failed != OK && !tail->stopping) {
                sleep_ms(tail, RETRY_MS);
            }
        } else if (pair != SIZE_MAX) {
            merge_pair(tail, pair);
        } else {
            rest(tail);
        }
    }
    pthread_mutex_unlock(&tail->lock);
    return NULL;
}

/* Lock held. */
static void wake_keeper(store_tail *tail) {
    bool work = is_full(tail) || find_pair(tail) != SIZE_MAX;
    if ((tail->merger_state == NAPS && work) || (tail->merger_state == SLEEPS && (work || tail->now->n >= 2))) {
        pthread_cond_signal(&tail->work);
    }
}

void store_tail_drain(store_tail *tail) {
    pthread_mutex_lock(&tail->lock);
    uint64_t last = tail->now->number;
    while (tail->now->n && tail->now->runs[0]->first <= last && tail->failed == OK && !tail->stopping) {
        tail->hurried = true;
        wake_keeper(tail);
        pthread_cond_wait(&tail->progress, &tail->lock);
    }
    tail->hurried = false;
    pthread_mutex_unlock(&tail->lock);
}

/* ---- the writer ---- */

static void wait_for_progress(store_tail *tail) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (!tail->stall_said_s || until.tv_sec - tail->stall_said_s >= STALL_SAY_S) {
        tail->stall_said_s = until.tv_sec;
        log_warn("store", "writes wait for the index: its entries come faster than they can be written to tables", "tail_bytes=%zu",
                 tail->now->bytes);
    }
    until.tv_sec++;
    pthread_cond_timedwait(&tail->progress, &tail->lock, &until);
}

err store_tail_admit(store_tail *tail) {
    pthread_mutex_lock(&tail->lock);
    while (tail->now->bytes > STALL_TIMES * tail->options.bytes && tail->failed == OK) {
        wait_for_progress(tail);
    }
    err code = tail->now->bytes > STALL_TIMES * tail->options.bytes ? tail->failed : OK;
    pthread_mutex_unlock(&tail->lock);
    return code;
}

uint64_t store_tail_begin(store_tail *tail) {
    return atomic_fetch_add(&tail->begun, 1) + 1;
}

/* Lock held. Merges that the writer does itself. */
static void merge_small(store_tail *tail) {
    for (size_t n = tail->now->n; n >= 2 && alike(tail->now, n - 2) && is_small(tail, n - 2); n = tail->now->n) {
        merge_pair(tail, n - 2);
    }
}

static void append(store_tail *tail, uint64_t number, store_run *run) {
    pthread_mutex_lock(&tail->lock);
    store_version *old = publish(tail, number, tail->now->n, tail->now->n, run);
    tail->ended = number;
    pthread_cond_broadcast(&tail->progress);
    merge_small(tail);
    wake_keeper(tail);
    pthread_mutex_unlock(&tail->lock);
    store_version_give(old);
    store_run_give(run);
}

void store_tail_end(store_tail *tail, store_run *run, bool written) {
    if (written) {
        append(tail, run->last, run);
        return;
    }
    pthread_mutex_lock(&tail->lock);
    tail->ended = run->last;
    pthread_cond_broadcast(&tail->progress);
    pthread_mutex_unlock(&tail->lock);
    store_run_give(run);
}

void store_tail_load(store_tail *tail, store_run *run) {
    append(tail, tail->options.number, run);
}

/* ---- readers ---- */

bool store_tail_writing(store_tail *tail, const store_version *version) {
    return atomic_load(&tail->begun) != version->number;
}

bool store_tail_await(store_tail *tail, uint64_t number) {
    pthread_mutex_lock(&tail->lock);
    while (tail->ended < number) {
        pthread_cond_wait(&tail->progress, &tail->lock);
    }
    bool there = tail->now->number >= number;
    pthread_mutex_unlock(&tail->lock);
    return there;
}

bool store_tail_overtaken(store_tail *tail, const store_version *version) {
    return atomic_load(&tail->flushing) > version->number;
}

bool store_tail_stops(store_tail *tail) {
    return atomic_load_explicit(&tail->stops, memory_order_relaxed);
}

size_t store_tail_held(store_tail *tail) {
    pthread_mutex_lock(&tail->lock);
    size_t bytes = tail->now->bytes;
    pthread_mutex_unlock(&tail->lock);
    return bytes;
}

store_found store_version_get(const store_version *version, slice key, slice *value_out, store_run **run_out) {
    for (size_t i = version->n; i-- > 0;) {
        store_run *run = version->runs[i];
        size_t at = store_run_find(run, key);
        store_run_change change = at < run->n ? store_run_get(run, at) : (store_run_change){0};
        if (at < run->n && slice_eq(change.key, key)) {
            *value_out = change.value;
            *run_out = change.gone ? NULL : store_run_hold(run);
            return change.gone ? STORE_GONE : STORE_FOUND;
        }
        if (store_run_covers(run, key)) {
            return STORE_GONE;
        }
    }
    return STORE_UNKNOWN;
}

const store_range *store_version_covers(const store_version *version, slice key) {
    for (size_t i = 0; i < version->ranged; i++) {
        const store_range *range = store_run_covers(version->runs[i], key);
        if (range) {
            return range;
        }
    }
    return NULL;
}

/* ---- opening and closing ---- */

static void free_tail(store_tail *tail) {
    store_version_give(tail->now);
    pthread_mutex_destroy(&tail->lock);
    pthread_cond_destroy(&tail->progress);
    pthread_cond_destroy(&tail->work);
    free(tail);
}

store_tail *store_tail_open(const store_tail_options *options) {
    store_tail *tail = mem_zero(sizeof *tail);
    pthread_condattr_t monotonic;
    tail->options = *options;
    tail->now = version_make(options->number, 0);
    tail->ended = options->number;
    atomic_init(&tail->begun, options->number);
    pthread_mutex_init(&tail->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&tail->progress, &monotonic);
    pthread_cond_init(&tail->work, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (!thread_start(&tail->merger, "index-tail", keep, tail)) {
        free_tail(tail);
        return NULL;
    }
    return tail;
}

/* Called when no other thread uses the tail. Flushes a large tail, since reading its log would slow the next start; a failure is
 * harmless. */
static void flush_last(store_tail *tail) {
    atomic_store(&tail->stops, false);
    if (tail->options.flush && tail->now->bytes >= CLOSE_BYTES && tail->failed == OK) {
        store_version *job = make_job(tail);
        (void)!tail->options.flush(tail->options.context, job);
        store_version_give(job);
    }
}

void store_tail_close(store_tail *tail, bool whole) {
    pthread_mutex_lock(&tail->lock);
    tail->stopping = true;
    atomic_store(&tail->stops, true);
    pthread_cond_signal(&tail->work);
    pthread_mutex_unlock(&tail->lock);
    pthread_join(tail->merger, NULL);
    if (whole) {
        flush_last(tail);
    }
    free_tail(tail);
}
