#include "window.h"

#include <math.h>

#include "check.h"
#include "load.h"
#include "throughput/bucket.h"

enum { SECONDS = 60 };

static const int64_t second_ns = 1000000000;
static const double charge_most = 100;
static const double charge_mean = 0.8 * 1.5 + 0.19 * 10 + 0.01 * 75;

/* Mostly reads, some writes, few queries. */
static double random_charge(random_source *r) {
    double kind = random_fraction(r);
    double u = random_fraction(r);
    return kind < 0.8 ? 1 + u : kind < 0.99 ? 5 + 10 * u : 50 + 50 * u;
}

/* A straightforward model of a bucket: a level that rises and falls. */
typedef struct level {
    double rate, credit;
    int64_t at_ns;
} level;

static void level_rise(level *l, int64_t now_ns) {
    l->credit = fmin(l->credit + l->rate * (double)(now_ns - l->at_ns) * 1e-9, l->rate);
    l->at_ns = now_ns;
}

/* Results of the two halves of the minute; the share changes between them. */
typedef struct halves {
    double provisioned[2], offered[2];
    double admitted, modelled;
} halves;

static bool overloaded(const halves *h) {
    return h->offered[0] >= 1.1 * h->provisioned[0] && h->offered[1] >= 1.1 * h->provisioned[1];
}

static void check_window(const halves *h) {
    double provisioned = h->provisioned[0] + h->provisioned[1];
    double part = h->admitted / provisioned;
    double slack = 2 * charge_most / provisioned; /* one request may overdraw, and one may be in flight */
    CHECK(part <= 1.02 + slack, "%g RU admitted of %g provisioned", h->admitted, provisioned);
    CHECK(fabs(h->admitted - h->modelled) <= 0.005 * provisioned + 2 * charge_most, "%g RU admitted, %g by the model", h->admitted,
          h->modelled);
    CHECK(!overloaded(h) || part >= 0.98 - slack, "only %g RU of %g admitted under overload", h->admitted, provisioned);
}

static void add_up(window_totals *t, const halves *h) {
    double provisioned = h->provisioned[0] + h->provisioned[1];
    double part = h->admitted / provisioned;
    t->windows++;
    t->offered += h->offered[0] + h->offered[1];
    t->admitted += h->admitted;
    t->provisioned += provisioned;
    t->fluid += fmin(h->offered[0], h->provisioned[0]) + fmin(h->offered[1], h->provisioned[1]);
    t->most = fmax(t->most, part);
    if (overloaded(h)) {
        t->overloaded_most = fmax(t->overloaded_most, part);
        t->overloaded_least = t->overloaded_least > 0 ? fmin(t->overloaded_least, part) : part;
    }
}

/* A bucket and its model, given the same requests. */
typedef struct pair {
    bucket *bucket;
    level model;
} pair;

static pair pair_new(double share, bool used_up, int64_t now_ns) {
    pair p = {.bucket = bucket_new(share, false, now_ns), .model = {.rate = share, .credit = share, .at_ns = now_ns}};
    if (used_up) {
        bucket_charge(p.bucket, (bucket_class){0}, bucket_level(p.bucket, now_ns), now_ns);
        p.model.credit = 0;
    }
    return p;
}

static void pair_change(pair *p, double share, int64_t now_ns) {
    bucket_set_rate(p->bucket, share, now_ns);
    level_rise(&p->model, now_ns);
    p->model.rate = share;
}

static bool pair_ask(pair *p, double charge, int64_t now_ns, halves *h) {
    bool admitted = bucket_admit(p->bucket, (bucket_class){0}, now_ns) == 0;
    if (admitted) {
        bucket_charge(p->bucket, (bucket_class){0}, charge, now_ns);
        h->admitted += charge;
    }
    level_rise(&p->model, now_ns);
    if (p->model.credit >= 0) {
        p->model.credit -= charge;
        h->modelled += charge;
    }
    return admitted;
}

void window_run(window_totals *totals, random_source *r, double demand, double share_before, double share_after) {
    const int64_t start = 1000 * second_ns;
    const int64_t middle = start + SECONDS / 2 * second_ns;
    const int64_t end = start + SECONDS * second_ns;
    halves h = {.provisioned = {share_before * SECONDS / 2, share_after * SECONDS / 2}};
    pair p = pair_new(share_before, demand >= share_before, start); /* no credit if the demand already exceeded the share */
    bool changed = false;
    for (int64_t now = start; demand > 0;) {
        double gap = -log(1 - random_fraction(r)) * charge_mean / demand;
        now += (int64_t)(fmin(gap, SECONDS) * 1e9) + 1;
        if (!changed && now >= middle) {
            pair_change(&p, share_after, middle);
            changed = true;
        }
        if (now >= end) {
            break;
        }
        double charge = random_charge(r);
        h.offered[changed] += charge;
        totals->requests++;
        totals->refused += !pair_ask(&p, charge, now, &h);
    }
    bucket_give(p.bucket);
    check_window(&h);
    add_up(totals, &h);
}
