/* bucket.h — a share of provisioned throughput, refilled continuously and spent as requests are charged.
 *
 * A request is admitted while the bucket is not in debt. Its actual charge is known only afterwards and is taken then; it may leave a debt
 * that later requests wait for. So over time exactly the provisioned throughput is admitted, whatever single requests cost. Over any
 * interval the difference is at most one second's credit and the charges of the requests in flight.
 *
 * The bucket is stored as a time, not a level: everything charged so far is paid for at `paid_until`. If that is later than now, the bucket
 * is in debt; if earlier, it has credit, which is kept for one second. A charge is one atomic addition, an admission two loads; there is no
 * lock and no refill timer. Any thread.
 *
 * A request is also subject to
 *   burst     (if on) up to 300 s of unused credit is kept and spent at no more than 3,000 RU/s; only for shares below that rate
 *   priority  low-priority requests are admitted only while a tenth of a second's credit is left, so they are rejected first
 *   named     the service's "throughput buckets": a request that names one of the five is also limited to its percentage of the share
 *
 * A rejected request is told when to retry: once the debt is paid and the clients that were rejected earlier had their turns, which are
 * `usual_charge` apart. A turn is at most five seconds after the debt is paid, so that clients which retry too early cannot displace those
 * which wait.
 *
 * Times are monotonic nanoseconds. A rate of 0 means no limit (throttling is off): everything is admitted, nothing is charged. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { THROUGHPUT_BUCKETS = 5, BUCKET_BURST_RATE = 3000, BUCKET_BURST_SECONDS = 300 };

typedef enum bucket_priority { BUCKET_HIGH, BUCKET_LOW } bucket_priority;

/* How a request is to be treated. Zero is the default. */
typedef struct bucket_class {
    bucket_priority priority;
    uint8_t named; /* 1 to THROUGHPUT_BUCKETS; 0: none */
} bucket_class;

typedef struct named_bucket {
    _Atomic double percent; /* limit in percent of the share; 0: no limit */
    _Atomic int64_t paid_until;
    _Atomic int64_t promised_until;
} named_bucket;

typedef struct bucket {
    atomic_uint refs;
    _Atomic bool burst;
    _Atomic double rate;         /* RU/s */
    _Atomic double usual_charge; /* moving average of requests' charges; spaces out the retry times */
    _Atomic int64_t paid_until;
    _Atomic int64_t burst_paid_until;  /* enforces the 3,000 RU/s limit; long ago if bursts are off */
    _Atomic int64_t promised_until[2]; /* next free retry time, by priority: each rejected request gets its own */
    named_bucket named[THROUGHPUT_BUCKETS];
} bucket;

/* Reference-counted; starts with one second's credit. */
bucket *bucket_new(double rate, bool burst, int64_t now_ns);
bucket *bucket_take(bucket *b);
void bucket_reset(bucket *b, double rate, bool burst, int64_t now_ns); /* back to the initial state; requests may use it concurrently */
void bucket_give(bucket *b);

/* 0: admitted. Otherwise how many nanoseconds to wait before asking again. */
int64_t bucket_admit(bucket *b, bucket_class class, int64_t now_ns);

/* How many RU a request of this class may spend before the next one would be refused; negative: it is refused now. Infinite without a
 * limit. */
double bucket_room(bucket *b, bucket_class class, int64_t now_ns);

/* Takes a charge, even if the bucket goes into debt. */
void bucket_charge(bucket *b, bucket_class class, double ru, int64_t now_ns);

/* Debts and credits, those of named buckets included, stay the same in request units. Concurrent charges may use either rate. */
void bucket_set_rate(bucket *b, double rate, int64_t now_ns);
void bucket_set_named(bucket *b, unsigned named, double percent);

/* Credit in RU; negative if in debt, 0 without a limit. */
double bucket_level(const bucket *b, int64_t now_ns);

/* Passes the state of replaced buckets on to the new ones: each gets an equal part of the credit or debt, and the average usual charge. So
 * a change of shares does not give anyone fresh credit. */
void bucket_hand_over(bucket *const *before, size_t before_n, bucket *const *after, size_t after_n, int64_t now_ns);
