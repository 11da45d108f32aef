#include "base/request_recent.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

typedef struct ring {
    recent_request kept[RECENT_KEPT];
    size_t n; /* recorded so far; the newest is at (n - 1) % RECENT_KEPT */
} ring;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ring rings[2]; /* successes, failures */
static uint64_t last_number;
static int64_t this_second;
static unsigned in_this_second;
static atomic_uint watchers;

void request_recent_watch(bool on) {
    on ? atomic_fetch_add(&watchers, 1) : atomic_fetch_sub(&watchers, 1);
}

bool request_recent_is_watched(void) {
    return atomic_load_explicit(&watchers, memory_order_relaxed) > 0;
}

static bool has_room(int64_t ts_ms) {
    if (ts_ms / 1000 != this_second) {
        this_second = ts_ms / 1000;
        in_this_second = 0;
    }
    return in_this_second++ < RECENT_PER_SECOND;
}

static void fill(recent_request *r, const request_log_entry *e, int64_t ts_ms) {
    *r = (recent_request){
        .number = ++last_number,
        .ts_ms = ts_ms,
        .status = e->status,
        .substatus = e->substatus,
        .charge_ru = e->charge_ru,
        .us = e->us,
        .range = e->range,
        .failed = e->failed,
    };
    request_log_plain(r->api, sizeof r->api, slice_str(e->api));
    request_log_plain(r->verb, sizeof r->verb, e->verb);
    request_log_plain(r->path, sizeof r->path, e->path);
}

void request_recent_note(const request_log_entry *e) {
    int64_t ts_ms = clock_wall_ms(&clock_system);
    pthread_mutex_lock(&lock);
    if (has_room(ts_ms)) {
        ring *to = &rings[e->failed];
        fill(&to->kept[to->n++ % RECENT_KEPT], e, ts_ms);
    }
    pthread_mutex_unlock(&lock);
}

static int by_number(const void *a, const void *b) {
    uint64_t x = ((const recent_request *)a)->number, y = ((const recent_request *)b)->number;
    return (x > y) - (x < y);
}

/* The newest come first out of each ring; both are walked backwards until `after`. */
static size_t collect(uint64_t after, recent_request *found, size_t max) {
    size_t n = 0, back[2] = {0, 0};
    while (n < max) {
        const recent_request *newest = NULL;
        size_t from = 0;
        for (size_t i = 0; i < 2; i++) {
            const ring *r = &rings[i];
            bool more = back[i] < r->n && back[i] < RECENT_KEPT;
            const recent_request *next = more ? &r->kept[(r->n - 1 - back[i]) % RECENT_KEPT] : NULL;
            if (next && next->number > after && (!newest || next->number > newest->number)) {
                newest = next;
                from = i;
            }
        }
        if (!newest) {
            break;
        }
        back[from]++;
        found[n++] = *newest;
    }
    return n;
}

size_t request_recent(uint64_t after, recent_request *found, size_t max) {
    pthread_mutex_lock(&lock);
    size_t n = collect(after, found, max);
    pthread_mutex_unlock(&lock);
    qsort(found, n, sizeof *found, by_number);
    return n;
}
