#include "store/tail.h"

#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"

enum {
    MERGED_LEAST = 4, /* runs at a time, so that an entry is copied seldom */
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

static store_version *hold_runs(store_tail *tail, size_t from, size_t to) {
    store_version *held = version_make(0, to - from);
    for (size_t i = from; i < to; i++) {
        version_add(held, tail->now->runs[i]);
        held->number = tail->now->runs[i]->last;
    }
    return held;
}

static void mark_busy(const store_version *v, bool busy) {
    for (size_t i = 0; i < v->n; i++) {
        v->runs[i]->busy = busy;
    }
}

/* Runs [from, to) of the newest version. */
typedef struct stretch {
    size_t from, to, bytes;
} stretch;

/* Lock held, but released during the merge. `busy` keeps others from merging these runs meanwhile. */
static void merge(store_tail *tail, stretch s) {
    store_version *job = hold_runs(tail, s.from, s.to);
    mark_busy(job, true);
    pthread_mutex_unlock(&tail->lock);
    store_run *merged = store_run_merge(job->runs, job->n);
    pthread_mutex_lock(&tail->lock);
    size_t at = 0;
    while (tail->now->runs[at] != job->runs[0]) { /* the merger may have removed or merged older runs */
        at++;
    }
    store_version *old = publish(tail, tail->now->number, at, at + job->n, merged);
    pthread_mutex_unlock(&tail->lock);
    store_version_give(old);
    store_version_give(job);
    store_run_give(merged);
    pthread_mutex_lock(&tail->lock);
}

/* Whether a run is merged with the `n` newer ones, which have `bytes` together: while these are few, if it is at most twice as large as one
 * of them on average; later, if it is not larger than all of them. So an entry is copied seldom, and runs stay few. */
static bool is_alike(const store_run *older, size_t bytes, size_t n) {
    return !older->busy && (n < MERGED_LEAST ? older->bytes * n <= 2 * bytes : older->bytes <= bytes);
}

/* The runs to merge with run `newest`: older ones, `most` bytes in all. */
static stretch stretch_to(const store_version *v, size_t newest, size_t most) {
    stretch s = {newest, newest + 1, v->runs[newest]->bytes};
    while (!v->runs[newest]->busy && s.from > 0 && is_alike(v->runs[s.from - 1], s.bytes, s.to - s.from) &&
           s.bytes + v->runs[s.from - 1]->bytes <= most) {
        s.bytes += v->runs[--s.from]->bytes;
    }
    return s;
}

static bool is_several(stretch s) {
    return s.to - s.from > 1;
}

static bool is_worth_merging(stretch s) {
    return s.to - s.from >= MERGED_LEAST;
}

static size_t small_bytes(const store_tail *tail) {
    return tail->options.bytes / SMALL_SHARE;
}

/* ---- the merger ---- */

/* The newest runs that the merger should merge: those that together are too large for the writer. */
static stretch find_large(const store_tail *tail) {
    const store_version *v = tail->now;
    for (size_t i = v->n; i-- > 1;) {
        stretch s = stretch_to(v, i, SIZE_MAX);
        if (is_worth_merging(s) && s.bytes > small_bytes(tail)) {
            return s;
        }
    }
    return (stretch){0};
}

/* There is enough to flush, and the writer is not merging the oldest run. */
static bool is_full(const store_tail *tail) {
    bool due = tail->hurried || tail->now->bytes >= tail->options.bytes;
    return tail->options.flush && tail->now->n && due && !tail->now->runs[0]->busy;
}

/* Takes the oldest runs, up to the first that the writer is merging. */
static store_version *make_job(store_tail *tail) {
    size_t n = 0;
    while (n < tail->now->n && !tail->now->runs[n]->busy) {
        n++;
    }
    store_version *job = hold_runs(tail, 0, n);
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

/* The newest runs, down to the first that is being merged. */
static stretch find_idle(const store_tail *tail) {
    const store_version *v = tail->now;
    stretch s = {v->n, v->n, 0};
    while (s.from > 0 && !v->runs[s.from - 1]->busy) {
        s.from--;
    }
    return s;
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
    stretch idle = find_idle(tail);
    if (!woken && number == tail->now->number && is_several(idle) && !tail->stopping) {
        merge(tail, idle);
    }
}

static void *keep(void *context) {
    store_tail *tail = context;
    pthread_mutex_lock(&tail->lock);
    while (!tail->stopping) {
        stretch large = find_large(tail);
        if (is_full(tail)) {
            flush(tail);
            if (tail->failed != OK && !tail->stopping) {
                sleep_ms(tail, RETRY_MS);
            }
        } else if (is_worth_merging(large)) {
            merge(tail, large);
        } else {
            rest(tail);
        }
    }
    pthread_mutex_unlock(&tail->lock);
    return NULL;
}

/* Lock held. */
static void wake_keeper(store_tail *tail) {
    bool work = is_full(tail) || is_worth_merging(find_large(tail));
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
    stretch small = stretch_to(tail->now, tail->now->n - 1, small_bytes(tail));
    if (is_worth_merging(small)) {
        merge(tail, small);
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
