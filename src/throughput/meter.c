#include "throughput/meter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
    BLOCK_SAMPLES = 60,
    SECOND_BLOCKS = 61, /* an hour, plus the current minute */
    MINUTE_BLOCKS = 25,
};

/* The counters of one second: `spent` holds 429,496 RU. */
#define SPENT_UNIT 10000.0
#define SPENT_MAX 100000.0

#define load(p) atomic_load_explicit((p), memory_order_relaxed)
#define add(p, n) ((void)atomic_fetch_add_explicit((p), (n), memory_order_relaxed))

typedef struct block {
    int64_t number; /* counted from 1970 */
    meter_sample samples[BLOCK_SAMPLES];
} block;

/* A ring of blocks with one sample every `unit` seconds; a block's slot is its number modulo `n`. */
typedef struct series {
    int64_t unit;
    unsigned n;
    block **blocks;
} series;

struct meter_history {
    int64_t pruned_minute;
    block *by_second[SECOND_BLOCKS];
    block *by_minute[MINUTE_BLOCKS];
};

static series seconds_of(meter_history *h) {
    return (series){1, SECOND_BLOCKS, h->by_second};
}

static series minutes_of(meter_history *h) {
    return (series){60, MINUTE_BLOCKS, h->by_minute};
}

/* Rounds down for negative times too. */
static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

static block **place_of(series s, int64_t number) {
    int64_t i = number % s.n;
    return &s.blocks[i < 0 ? i + s.n : i];
}

static const meter_sample *find(series s, int64_t time) {
    int64_t index = floor_div(time, s.unit), number = floor_div(index, BLOCK_SAMPLES);
    const block *b = *place_of(s, number);
    return b && b->number == number ? &b->samples[index - number * BLOCK_SAMPLES] : NULL;
}

static meter_sample *find_or_make(series s, int64_t time) {
    int64_t index = floor_div(time, s.unit), number = floor_div(index, BLOCK_SAMPLES);
    block **place = place_of(s, number);
    if (!*place) {
        *place = mem_alloc(sizeof **place);
        (*place)->number = ~number; /* differs from `number`, so that it is cleared below */
    }
    if ((*place)->number != number) {
        **place = (block){.number = number};
    }
    return &(*place)->samples[index - number * BLOCK_SAMPLES];
}

/* Frees the blocks that are farther from `time` than the series is long, in the past or (after the clock was set back) in the future.
 * Returns how many are left. */
static unsigned prune(series s, int64_t time) {
    int64_t number = floor_div(time, s.unit * BLOCK_SAMPLES);
    unsigned left = 0;
    for (unsigned i = 0; i < s.n; i++) {
        block *b = s.blocks[i];
        if (b && (b->number <= number - s.n || b->number >= number + s.n)) {
            free(b);
            s.blocks[i] = NULL;
        }
        left += s.blocks[i] != NULL;
    }
    return left;
}

static void free_series(series s) {
    for (unsigned i = 0; i < s.n; i++) {
        free(s.blocks[i]);
    }
}

void meter_init(meter *m) {
    memset(m, 0, sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
}

void meter_free(meter *m) {
    if (m->history) {
        free_series(seconds_of(m->history));
        free_series(minutes_of(m->history));
        free(m->history);
    }
    pthread_mutex_destroy(&m->lock);
}

const char *meter_work_name(meter_work work) {
    static const char *const names[METER_WORKS] = {"read", "query", "changes", "create", "replace", "delete", "script"};
    return names[work];
}

void meter_add_ru(meter *m, meter_work work, double ru) {
    if (ru > 0) {
        add(&m->micro_ru, (uint64_t)llrint(fmin(ru, 1e9) * 1e6));
        add(&m->spent[work], (uint32_t)lrint(fmin(ru, SPENT_MAX) * SPENT_UNIT));
    }
}

void meter_add(meter *m, meter_work work, double ru, uint32_t latency_us, bool throttled, bool failed) {
    meter_add_ru(m, work, ru);
    add(&m->latency_us, latency_us);
    add(&m->requests, 1);
    if (throttled) {
        add(&m->throttled, 1);
    }
    if (failed) {
        add(&m->failed, 1);
    }
    uint32_t most = load(&m->latency_max_us);
    while (latency_us > most &&
           !atomic_compare_exchange_weak_explicit(&m->latency_max_us, &most, latency_us, memory_order_relaxed, memory_order_relaxed)) {
    }
}

static uint32_t narrow(uint64_t n) {
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static uint64_t grown(_Atomic uint64_t *counter, uint64_t *last) {
    uint64_t now = load(counter), by = now - *last;
    *last = now;
    return by;
}

/* ---- what the RU were spent for ---- */

typedef struct spent {
    double ru[METER_WORKS];
} spent;

static void add_spent(spent *sum, const meter_sample *s) {
    for (unsigned work = 0; work < METER_WORKS; work++) {
        sum->ru[work] += (double)s->ru * s->parts[work] / UINT8_MAX;
    }
}

/* Sets the parts of a sample whose `ru` is set. */
static void set_parts(meter_sample *s, const spent *sum) {
    for (unsigned work = 0; work < METER_WORKS; work++) {
        s->parts[work] = s->ru > 0 ? (uint8_t)lrint(fmin(sum->ru[work] / (double)s->ru, 1) * UINT8_MAX) : 0;
    }
}

void meter_sample_add_ru(meter_sample *to, const meter_sample *s) {
    spent sum = {0};
    add_spent(&sum, to);
    add_spent(&sum, s);
    to->ru += s->ru;
    set_parts(to, &sum);
}

static void collect_ru(meter *m, meter_sample *s) {
    spent sum;
    uint64_t micro_ru = grown(&m->micro_ru, &m->last_micro_ru);
    if (!micro_ru) {
        return;
    }
    for (unsigned work = 0; work < METER_WORKS; work++) {
        sum.ru[work] = atomic_exchange_explicit(&m->spent[work], 0, memory_order_relaxed) / SPENT_UNIT;
    }
    s->ru = (float)((double)micro_ru / 1e6);
    set_parts(s, &sum);
}

/* The counts added since the last tick. */
static meter_sample collect(meter *m) {
    meter_sample s = {0};
    collect_ru(m, &s);
    s.requests = narrow(grown(&m->requests, &m->last_requests));
    s.throttled = narrow(grown(&m->throttled, &m->last_throttled));
    if (s.requests) {
        uint64_t latency = grown(&m->latency_us, &m->last_latency_us);
        s.latency_average_us = narrow((latency + s.requests / 2) / s.requests);
        s.latency_max_us = atomic_exchange_explicit(&m->latency_max_us, 0, memory_order_relaxed);
    }
    return s;
}

/* Combines samples: sums of counts, the request-weighted average, the maximum of maxima. */
static meter_sample together(const meter_sample *samples, size_t n) {
    meter_sample all = {0};
    uint64_t requests = 0, throttled = 0;
    double latency = 0, ru = 0;
    spent sum = {0};
    for (const meter_sample *s = samples; s < samples + n; s++) {
        ru += (double)s->ru;
        add_spent(&sum, s);
        requests += s->requests;
        throttled += s->throttled;
        latency += (double)s->latency_average_us * s->requests;
        all.latency_max_us = s->latency_max_us > all.latency_max_us ? s->latency_max_us : all.latency_max_us;
        all.normalized = s->normalized > all.normalized ? s->normalized : all.normalized;
    }
    all.ru = (float)ru;
    set_parts(&all, &sum);
    all.requests = narrow(requests);
    all.throttled = narrow(throttled);
    all.latency_average_us = requests ? (uint32_t)llrint(latency / (double)requests) : 0;
    return all;
}

static uint16_t normalized(double ru, double share) {
    return share > 0 ? (uint16_t)lrint(fmin(ru / share, 1) * 1000) : 0;
}

static void record(meter *m, int64_t second, const meter_sample *added, double share) {
    if (!m->history) {
        m->history = mem_zero(sizeof *m->history);
        m->history->pruned_minute = floor_div(second, 60);
    }
    meter_sample *of_second = find_or_make(seconds_of(m->history), second);
    *of_second = together((meter_sample[]){*of_second, *added}, 2);
    of_second->normalized = normalized((double)of_second->ru, share);
    m->last = *of_second;

    const meter_sample *first = of_second - (second - floor_div(second, BLOCK_SAMPLES) * BLOCK_SAMPLES);
    *find_or_make(minutes_of(m->history), second) = together(first, BLOCK_SAMPLES); /* the block's 60 seconds are the minute */
}

static void forget_old(meter *m, int64_t second) {
    m->history->pruned_minute = floor_div(second, 60);
    unsigned seconds_left = prune(seconds_of(m->history), second), minutes_left = prune(minutes_of(m->history), second);
    if (seconds_left + minutes_left == 0) {
        free(m->history);
        m->history = NULL;
    }
}

/* Only this thread writes `history` and `last`, so reading them needs no lock here; writing does. */
void meter_tick(meter *m, int64_t second, double share) {
    meter_sample added = collect(m);
    bool idle = added.requests == 0 && added.throttled == 0 && !(added.ru > 0);
    bool last_idle = m->last.requests == 0 && m->last.throttled == 0 && !(m->last.ru > 0);
    bool prunes = m->history && m->history->pruned_minute != floor_div(second, 60);
    bool same_second = second == m->last_second;
    m->last_second = second;
    if (idle && (last_idle || same_second) && !prunes) {
        return;
    }
    pthread_mutex_lock(&m->lock);
    if (!idle) {
        record(m, second, &added, share);
    } else if (!same_second) {
        m->last = (meter_sample){0};
    }
    if (prunes) {
        forget_old(m, second);
    }
    pthread_mutex_unlock(&m->lock);
}

static void copy_samples(series s, int64_t from, meter_sample *samples, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int64_t time;
        if (__builtin_mul_overflow((int64_t)i, s.unit, &time) || __builtin_add_overflow(time, from, &time)) {
            return;
        }
        const meter_sample *found = find(s, time);
        if (found) {
            samples[i] = *found;
        }
    }
}

void meter_seconds(meter *m, int64_t from, meter_sample *samples, size_t n) {
    memset(samples, 0, n * sizeof *samples);
    pthread_mutex_lock(&m->lock);
    if (m->history) {
        copy_samples(seconds_of(m->history), from, samples, n);
    }
    pthread_mutex_unlock(&m->lock);
}

void meter_minutes(meter *m, int64_t from, meter_sample *samples, size_t n) {
    memset(samples, 0, n * sizeof *samples);
    pthread_mutex_lock(&m->lock);
    if (m->history) {
        copy_samples(minutes_of(m->history), from, samples, n);
    }
    pthread_mutex_unlock(&m->lock);
}

meter_sample meter_last(meter *m) {
    pthread_mutex_lock(&m->lock);
    meter_sample last = m->last;
    pthread_mutex_unlock(&m->lock);
    return last;
}

/* Ignores a block that is older than the one in its slot. */
static void absorb_block(series to, const block *b) {
    const block *there = *place_of(to, b->number);
    if (there && there->number > b->number) {
        return;
    }
    for (int64_t i = 0; i < BLOCK_SAMPLES; i++) {
        const meter_sample *s = &b->samples[i];
        if (s->requests || s->ru > 0) {
            meter_sample *sum = find_or_make(to, (b->number * BLOCK_SAMPLES + i) * to.unit);
            *sum = together((meter_sample[]){*sum, *s}, 2);
        }
    }
}

static void absorb_series(series to, series from) {
    for (unsigned i = 0; i < from.n; i++) {
        if (from.blocks[i]) {
            absorb_block(to, from.blocks[i]);
        }
    }
}

void meter_absorb(meter *to, meter *from, int64_t second, double share) {
    meter_tick(from, second, share);
    if (!from->history) {
        return;
    }
    pthread_mutex_lock(&to->lock);
    if (!to->history) {
        to->history = mem_zero(sizeof *to->history);
        to->history->pruned_minute = from->history->pruned_minute;
    }
    absorb_series(seconds_of(to->history), seconds_of(from->history));
    absorb_series(minutes_of(to->history), minutes_of(from->history));
    pthread_mutex_unlock(&to->lock);
}
