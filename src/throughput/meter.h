/* meter.h — what a range did: counters that requests add to, and their history by second for an hour and by minute for a day.
 *
 * Requests add with relaxed atomics (meter_add: a few tens of nanoseconds). Once a second the balancer's thread, always the same one, calls
 * meter_tick, which moves what was added into the history; a range that did nothing costs nothing then, and one that did nothing for a day
 * holds no history at all. Readers of the history take the meter's lock; any thread may read.
 *
 * Seconds are the wall clock's. Where it jumps back, samples of the same second add up; what it left far behind, or ahead, is forgotten. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct meter_sample {
    float ru;
    uint32_t requests; /* throttled ones included */
    uint32_t throttled;
    uint32_t latency_average_us;
    uint32_t latency_max_us;
    uint16_t normalized; /* tenths of a percent of the share, at most 1,000; of a minute: the highest of its seconds */
} meter_sample;

/* Made on first use; blocks of a minute and of an hour, given back when they are past: 1.5 KB for each minute of the last hour and each
 * hour of the last day in which anything happened. */
typedef struct meter_history meter_history;

typedef struct meter {
    _Atomic uint64_t requests, throttled, failed, micro_ru, latency_us; /* since the server started */
    _Atomic uint32_t latency_max_us;                                    /* since the last tick */
    /* the ticker's */
    uint64_t last_requests, last_throttled, last_micro_ru, last_latency_us;
    int64_t last_second;
    pthread_mutex_t lock; /* of what follows */
    meter_history *history;
    meter_sample last; /* of the last second ticked; zeros when idle */
} meter;

void meter_init(meter *m);
void meter_free(meter *m);

/* A request ended: what it was charged, how long it took. */
void meter_add(meter *m, double ru, uint32_t latency_us, bool throttled, bool failed);

void meter_add_ru(meter *m, double ru); /* more of the charge of one that was counted */

/* `second`: wall clock, seconds; `share`: RU/s that the range has, 0: no limit. Calls with the same second again add up into it. */
void meter_tick(meter *m, int64_t second, double share);

/* Samples from `from` on, `n` of them, one per second (at most 3,600 back) or per minute (`from` counted in seconds too, at most 1,440
 * minutes back); times without a sample are zeros. */
void meter_seconds(meter *m, int64_t from, meter_sample *samples, size_t n);
void meter_minutes(meter *m, int64_t from, meter_sample *samples, size_t n);
meter_sample meter_last(meter *m);

/* Adds another meter's history, as of ranges that were split or merged, to this one's; `from` stays as it is. What was added to `from`
 * since its last tick counts for `second`. The ticker's thread, or while it does not run. */
void meter_absorb(meter *to, meter *from, int64_t second, double share);
