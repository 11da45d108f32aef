/* bucket.h — a share of provisioned throughput, refilled continuously and spent as requests are charged.
 *
 * A request is admitted while the bucket is not in debt; its real charge, known only afterwards, is taken then and may leave a debt that
 * the following ones wait for. So what is admitted over time is exactly what was provisioned, whatever single requests cost: in any time,
 * at most a second's credit and the charges of the requests then in flight more or less.
 *
 * The bucket is a time, not a level: all that was charged is paid for at `paid_until`. Later than now: in debt. Earlier: credit, kept for
 * one second. One atomic addition charges, two loads admit; there is no lock and no refill timer. Any thread.
 *
 * Beside the bucket itself a request may have to pass
 *   burst     (if on) credit of idle times, up to 300 s of it, spent at 3,000 RU/s at most; only for shares below that
 *   priority  low-priority requests are admitted only while a tenth of a second's credit is left: they are refused first
 *   named     "throughput buckets": a request that names one of five is also held to that named's percentage of the share
 *
 * Who is refused is told when to come back: when the debt is paid and those told earlier had their turn, `usual_charge` apart. A turn is
 * never further than five seconds behind the payment, so that clients which do not wait cannot push those away which do.
 *
 * Times are monotonic nanoseconds. A rate of 0 is no limit at all (throttling turned off): everything is admitted, nothing is charged. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { THROUGHPUT_BUCKETS = 5, BUCKET_BURST_RATE = 3000, BUCKET_BURST_SECONDS = 300 };

typedef enum bucket_priority { BUCKET_HIGH, BUCKET_LOW } bucket_priority;

/* How a request wants to be treated. Zero is the usual. */
typedef struct bucket_class {
    bucket_priority priority;
    uint8_t named; /* 1 to THROUGHPUT_BUCKETS; 0: none */
} bucket_class;

typedef struct named_bucket {
    _Atomic double percent; /* of the share; 0: this named is not limited */
    _Atomic int64_t paid_until;
    _Atomic int64_t promised_until;
} named_bucket;

typedef struct bucket {
    atomic_uint refs;
    _Atomic bool burst;
    _Atomic double rate;         /* RU/s */
    _Atomic double usual_charge; /* of a request, a moving average: how far apart retry times are */
    _Atomic int64_t paid_until;
    _Atomic int64_t burst_paid_until;  /* the 3,000 RU/s bound; long ago where there is none */
    _Atomic int64_t promised_until[2]; /* by priority: retry times are given out one after the other, not all the same */
    named_bucket named[THROUGHPUT_BUCKETS];
} bucket;

/* Counted; starts with a second's credit. */
bucket *bucket_new(double rate, bool burst, int64_t now_ns);
bucket *bucket_take(bucket *b);
void bucket_reset(bucket *b, double rate, bool burst,
                  int64_t now_ns); /* back to the state of a new one; requests may still draw from it meanwhile */
void bucket_give(bucket *b);

/* 0: admitted. Otherwise how many nanoseconds to wait before asking again. */
int64_t bucket_admit(bucket *b, bucket_class class, int64_t now_ns);

/* How many RU a request of this class may spend before the next one would be refused; negative: it is refused now. Infinite without a
 * limit. */
double bucket_room(bucket *b, bucket_class class, int64_t now_ns);

/* Takes a charge, whether or not the bucket has it. */
void bucket_charge(bucket *b, bucket_class class, double ru, int64_t now_ns);

/* A debt or credit stays the same in request units, named' too; charges of the same instant may be taken at either rate. */
void bucket_set_rate(bucket *b, double rate, int64_t now_ns);
void bucket_set_named(bucket *b, unsigned named, double percent);

/* Credit in RU, negative when in debt, 0 without a limit. */
double bucket_level(const bucket *b, int64_t now_ns);

/* New buckets go on where those were whose place they take: with an equal part of their credit or debt each, and with their usual charge.
 * So nobody gets a fresh credit by a change of the shares. */
void bucket_hand_over(bucket *const *before, size_t before_n, bucket *const *after, size_t after_n, int64_t now_ns);
