#include "throughput/bucket.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

static const int64_t SECOND = 1000000000;
static const int64_t LOW_RESERVE = 100000000;   /* credit reserved for high priority */
static const int64_t PROMISE_MOST = 5000000000; /* latest retry time, after the debt is paid */
static const int64_t LONG_AGO = INT64_MIN / 2;
static const int64_t DEBT_MOST = (int64_t)1 << 60; /* 36 years, so that sums fit 64 bits */

#define load(p) atomic_load_explicit((p), memory_order_relaxed)
#define store(p, value) atomic_store_explicit((p), (value), memory_order_relaxed)
#define replace(p, expected, value)                                                                                                        \
    atomic_compare_exchange_weak_explicit((p), (expected), (value), memory_order_relaxed, memory_order_relaxed)

typedef _Atomic int64_t instant;

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The time that it takes to refill `ru`. */
static int64_t refill_ns(double ru, double rate) {
    double ns = ru / rate * (double)SECOND;
    return ns < (double)DEBT_MOST ? llrint(ns) : DEBT_MOST;
}

static bool bursts(const bucket *b, double rate) {
    return rate < BUCKET_BURST_RATE && load(&b->burst);
}

static int64_t credit_window(const bucket *b, double rate) {
    return bursts(b, rate) ? BUCKET_BURST_SECONDS * SECOND : SECOND;
}

static double checked_rate(double rate) {
    return rate > 0 ? rate : 0;
}

bucket *bucket_new(double rate, bool burst, int64_t now_ns) {
    bucket *b = mem_zero(sizeof *b);
    atomic_init(&b->refs, 1);
    bucket_reset(b, rate, burst, now_ns);
    return b;
}

void bucket_reset(bucket *b, double rate, bool burst, int64_t now_ns) {
    store(&b->burst, burst);
    store(&b->rate, checked_rate(rate));
    store(&b->usual_charge, 1);
    store(&b->paid_until, now_ns - SECOND);
    store(&b->burst_paid_until, LONG_AGO);
    store(&b->promised_until[BUCKET_HIGH], LONG_AGO);
    store(&b->promised_until[BUCKET_LOW], LONG_AGO);
    for (unsigned i = 0; i < THROUGHPUT_BUCKETS; i++) {
        store(&b->named[i].percent, 0);
        store(&b->named[i].paid_until, LONG_AGO);
        store(&b->named[i].promised_until, LONG_AGO);
    }
}

bucket *bucket_take(bucket *b) {
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void bucket_give(bucket *b) {
    if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1) {
        free(b);
    }
}

/* The named bucket that limits a request, or NULL. */
static named_bucket *limiting_named(bucket *b, bucket_class class) {
    assert(class.named <= THROUGHPUT_BUCKETS);
    named_bucket *named = class.named ? &b->named[class.named - 1] : NULL;
    return named && load(&named->percent) > 0 ? named : NULL;
}

static double named_rate(named_bucket *named, double rate) {
    return rate * load(&named->percent) / 100;
}

/* Returns the next free turn after `due`. Once the turns of five seconds are taken, all further clients get the last one. Some of these are
 * rejected again, but they do not take the turns of clients that were rejected earlier. */
static int64_t promise(instant *promised_until, int64_t due, double rate, double charge) {
    int64_t step = refill_ns(charge, rate), turn, seen = load(promised_until);
    if (step > PROMISE_MOST) {
        step = PROMISE_MOST;
    }
    do {
        turn = later(seen, due);
        if (turn > due + PROMISE_MOST) {
            turn = due + PROMISE_MOST;
        }
    } while (!replace(promised_until, &seen, turn + step));
    return turn;
}

/* Checks all conditions: the slow path of bucket_admit. */
static int64_t admit_or_promise(bucket *b, bucket_class class, int64_t now) {
    double rate = load(&b->rate);
    if (rate <= 0) {
        return 0;
    }
    int64_t paid = load(&b->paid_until), burst_paid = load(&b->burst_paid_until);
    int64_t due = later(paid, burst_paid) + (class.priority == BUCKET_LOW ? LOW_RESERVE : 0);
    double pace = burst_paid > paid ? BUCKET_BURST_RATE : rate;
    instant *promised_until = &b->promised_until[class.priority];

    named_bucket *named = limiting_named(b, class);
    if (named && load(&named->paid_until) > due) {
        due = load(&named->paid_until);
        pace = named_rate(named, rate);
        promised_until = &named->promised_until;
    }
    return due <= now ? 0 : promise(promised_until, due, pace, load(&b->usual_charge)) - now;
}

int64_t bucket_admit(bucket *b, bucket_class class, int64_t now_ns) {
    bool usual = class.priority == BUCKET_HIGH && class.named == 0;
    if (usual && load(&b->paid_until) <= now_ns && load(&b->burst_paid_until) <= now_ns) {
        return 0;
    }
    return admit_or_promise(b, class, now_ns);
}

/* The credit of a payment time, of which a window counts. */
static double credit(int64_t paid, int64_t window, double rate, int64_t now) {
    return (double)(now - later(paid, now - window)) * rate / (double)SECOND;
}

double bucket_room(bucket *b, bucket_class class, int64_t now_ns) {
    double rate = load(&b->rate);
    if (rate <= 0) {
        return INFINITY;
    }
    double room = credit(load(&b->paid_until), credit_window(b, rate), rate, now_ns);
    if (bursts(b, rate)) {
        room = fmin(room, credit(load(&b->burst_paid_until), SECOND, BUCKET_BURST_RATE, now_ns));
    }
    if (class.priority == BUCKET_LOW) {
        room -= (double)LOW_RESERVE * rate / (double)SECOND;
    }
    named_bucket *named = limiting_named(b, class);
    return named ? fmin(room, credit(load(&named->paid_until), SECOND, named_rate(named, rate), now_ns)) : room;
}

/* Moves a payment time forward by `refill`. Credit from before `oldest` has expired. */
static void pay(instant *paid_until, int64_t oldest, int64_t refill, int64_t now) {
    int64_t paid = load(paid_until);
    while (paid < oldest) {
        if (replace(paid_until, &paid, oldest + refill)) {
            return;
        }
    }
    if (paid < now + DEBT_MOST) {
        atomic_fetch_add_explicit(paid_until, refill, memory_order_relaxed);
    }
}

void bucket_charge(bucket *b, bucket_class class, double ru, int64_t now_ns) {
    assert(isfinite(ru));
    double rate = load(&b->rate);
    if (rate <= 0 || ru <= 0) {
        return;
    }
    pay(&b->paid_until, now_ns - credit_window(b, rate), refill_ns(ru, rate), now_ns);
    if (bursts(b, rate)) {
        pay(&b->burst_paid_until, now_ns - SECOND, refill_ns(ru, BUCKET_BURST_RATE), now_ns);
    }
    named_bucket *named = limiting_named(b, class);
    if (named) {
        pay(&named->paid_until, now_ns - SECOND, refill_ns(ru, named_rate(named, rate)), now_ns);
    }
    double usual = load(&b->usual_charge);
    store(&b->usual_charge, usual + (ru - usual) / 16); /* a concurrent update may be lost, which is fine for an average */
}

/* Scales the time between now and a payment time: at a higher rate the same debt or credit is a shorter time. */
static void rescale(instant *paid_until, int64_t window, double factor, int64_t now) {
    int64_t seen = load(paid_until), scaled;
    do {
        double ahead = (double)(later(seen, now - window) - now) * factor;
        scaled = now + (int64_t)fmax(fmin(ahead, (double)DEBT_MOST), -(double)DEBT_MOST);
    } while (!replace(paid_until, &seen, scaled));
}

void bucket_set_rate(bucket *b, double rate, int64_t now_ns) {
    rate = checked_rate(rate);
    double old = atomic_exchange_explicit(&b->rate, rate, memory_order_relaxed);
    if (old > 0 && rate > 0) {
        rescale(&b->paid_until, credit_window(b, old), old / rate, now_ns);
        for (unsigned i = 0; i < THROUGHPUT_BUCKETS; i++) {
            rescale(&b->named[i].paid_until, SECOND, old / rate, now_ns);
        }
    } else if (rate > 0) {
        store(&b->paid_until, now_ns - SECOND); /* as in a new bucket */
    } else {
        store(&b->paid_until, LONG_AGO); /* a concurrent charge may still add to it, which bucket_admit ignores at rate 0 */
    }
    if (rate <= 0 || !bursts(b, rate)) {
        store(&b->burst_paid_until, LONG_AGO);
    }
}

void bucket_set_named(bucket *b, unsigned named, double percent) {
    assert(named >= 1 && named <= THROUGHPUT_BUCKETS);
    store(&b->named[named - 1].percent, percent > 0 ? percent : 0);
}

double bucket_level(const bucket *b, int64_t now_ns) {
    double rate = load(&b->rate);
    if (rate <= 0) {
        return 0;
    }
    int64_t paid = later(load(&b->paid_until), now_ns - credit_window(b, rate));
    return (double)(now_ns - paid) * rate / (double)SECOND;
}

static void lower_level(bucket *b, double level, int64_t now) {
    double rate = load(&b->rate);
    if (rate > 0 && level < bucket_level(b, now)) {
        store(&b->paid_until, level < 0 ? now + refill_ns(-level, rate) : now - refill_ns(level, rate));
    }
}

void bucket_hand_over(bucket *const *before, size_t before_n, bucket *const *after, size_t after_n, int64_t now_ns) {
    double level = 0, usual = 0;
    for (size_t i = 0; i < before_n; i++) {
        level += bucket_level(before[i], now_ns);
        usual += load(&before[i]->usual_charge);
    }
    for (size_t i = 0; i < after_n && before_n; i++) {
        lower_level(after[i], level / (double)after_n, now_ns);
        store(&after[i]->usual_charge, usual / (double)before_n);
    }
}
