/* bucket.h — a share of provisioned throughput, refilled continuously and spent as requests are charged.
 *
 * A request is admitted while the bucket is not in debt; its real charge, known only afterwards, is taken then and may leave a debt that
 * the following ones wait for. So what is admitted over time is exactly what was provisioned, whatever single requests cost.
 *
 * The bucket is a time, not a level: all that was charged is paid for at `paid_until`. Later than now: in debt. Earlier: credit, kept for
 * one second. One atomic addition charges, one load admits; there is no lock and no refill timer. Any thread.
 *
 * Beside the bucket itself a request may have to pass
 *   burst     (if on) credit of idle times, up to 300 s of it, spent at 3,000 RU/s at most; only for shares below that
 *   priority  low-priority requests are admitted only while a tenth of a second's credit is left: they are refused first
 *   lanes     "throughput buckets": a request that names one of five is also held to that lane's percentage of the share
 *
 * Times are monotonic nanoseconds. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { BUCKET_LANES = 5, BUCKET_BURST_RATE = 3000, BUCKET_BURST_SECONDS = 300 };

typedef enum bucket_priority { BUCKET_HIGH, BUCKET_LOW } bucket_priority;

/* How a request wants to be treated. Zero is the usual. */
typedef struct bucket_class {
    bucket_priority priority;
    uint8_t lane; /* 1 to BUCKET_LANES; 0: none */
} bucket_class;

typedef struct bucket_lane {
    _Atomic double percent; /* of the share; 0: this lane is not limited */
    _Atomic int64_t paid_until;
} bucket_lane;

typedef struct bucket {
    atomic_uint refs;
    _Atomic double rate; /* RU/s */
    _Atomic int64_t paid_until;
    _Atomic int64_t promised_until; /* retry times are given out one after the other, not all the same */
    _Atomic double usual_charge;    /* of a request, a moving average: how far apart retry times are */
    _Atomic bool burst;
    _Atomic int64_t burst_paid_until; /* the 3,000 RU/s bound */
    bucket_lane lanes[BUCKET_LANES];
} bucket;

/* Counted; starts with a second's credit. */
bucket *bucket_new(double rate, bool burst, int64_t now_ns);
bucket *bucket_take(bucket *b);
void bucket_give(bucket *b);

/* 0: admitted. Otherwise how many nanoseconds to wait before asking again. */
int64_t bucket_admit(bucket *b, bucket_class class, int64_t now_ns);

/* Takes a charge, whether or not the bucket has it. */
void bucket_charge(bucket *b, bucket_class class, double ru, int64_t now_ns);

/* A debt or credit stays the same in request units. */
void bucket_set_rate(bucket *b, double rate, int64_t now_ns);
void bucket_set_lane(bucket *b, unsigned lane, double percent);

/* Credit in RU, negative when in debt; for display and tests. */
double bucket_level(const bucket *b, int64_t now_ns);
