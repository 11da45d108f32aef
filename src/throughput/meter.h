/* meter.h — metrics of a range: counters that requests add to, and their history by second for an hour and by minute for a day.
 *
 * Requests add with relaxed atomics (meter_add takes a few tens of nanoseconds). Once a second the balancer's thread, always the same one,
 * calls meter_tick, which moves the new counts into the history. That costs nothing for an idle range, and a range that was idle for a day
 * has no history at all. Any thread may read the history; readers take the meter's lock.
 *
 * Seconds are those of the wall clock. If it jumps back, samples of the same second are added up; samples too far from the current time, in
 * either direction, are dropped. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What request units are spent for. */
typedef enum meter_work {
    METER_READ,    /* point reads, attachments */
    METER_QUERY,   /* queries, and lists of items */
    METER_CHANGES, /* the change feed */
    METER_CREATE,
    METER_REPLACE, /* upserts over an item and patches too */
    METER_DELETE,
    METER_SCRIPT, /* stored procedures and other transactions that settle at their end */
    METER_WORKS
} meter_work;
const char *meter_work_name(meter_work work); /* "read", … */

typedef struct meter_sample {
    float ru;
    uint32_t requests; /* includes throttled ones */
    uint32_t throttled;
    uint32_t latency_average_us;
    uint32_t latency_max_us;
    uint16_t normalized;        /* RU spent, in tenths of a percent of the share, at most 1,000; for a minute, the highest of its seconds */
    uint8_t parts[METER_WORKS]; /* of `ru`, for each kind of work, in 255ths */
} meter_sample;

/* Adds RU and parts of a sample; the other members stay. */
void meter_sample_add_ru(meter_sample *to, const meter_sample *s);

/* Allocated on first use, in blocks that are freed when they are too old: 1.9 KB for each minute of the last hour, and each hour of the
 * last day, that had any requests. */
typedef struct meter_history meter_history;

typedef struct meter {
    _Atomic uint64_t requests, throttled, failed, micro_ru, latency_us; /* since the server started */
    _Atomic uint32_t latency_max_us;                                    /* since the last tick */
    _Atomic uint32_t spent[METER_WORKS];                                /* likewise, in 10,000ths of an RU */
    /* used by meter_tick only */
    uint64_t last_requests, last_throttled, last_micro_ru, last_latency_us;
    int64_t last_second;
    pthread_mutex_t lock; /* protects the members below */
    meter_history *history;
    meter_sample last; /* the last second's sample; zeros if idle */
} meter;

void meter_init(meter *m);
void meter_free(meter *m);

/* Records a finished request: its charge and latency. */
void meter_add(meter *m, meter_work work, double ru, uint32_t latency_us, bool throttled, bool failed);

void meter_add_ru(meter *m, meter_work work, double ru); /* a further charge of a request that was recorded before */

/* `second`: wall clock in seconds; `share`: the range's RU/s, 0: no limit. Repeated calls for the same second are added up. */
void meter_tick(meter *m, int64_t second, double share);

/* Read `n` samples from the second `from` on: one per second (at most 3,600 back), or one per minute (at most 1,440 back). Times without a
 * sample are zeros. */
void meter_seconds(meter *m, int64_t from, meter_sample *samples, size_t n);
void meter_minutes(meter *m, int64_t from, meter_sample *samples, size_t n);
meter_sample meter_last(meter *m);

/* Adds the history of another meter, for ranges that were split or merged; `from` keeps its own. Counts added to `from` since its last tick
 * are recorded at `second`. Call it on the thread that calls meter_tick, or while that is not running. */
void meter_absorb(meter *to, meter *from, int64_t second, double share);
