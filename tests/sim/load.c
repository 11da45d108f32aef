#include "load.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

static const double day = 86400;

double random_fraction(random_source *r) {
    return (double)(random_u64(r) >> 11) * 0x1p-53;
}

static double between(random_source *r, double low, double high) {
    return low + (high - low) * random_fraction(r);
}

static int by_beginning(const void *a, const void *b) {
    double x = ((const load_trend *)a)->phase.from;
    double y = ((const load_trend *)b)->phase.from;
    return (x > y) - (x < y);
}

static load_trend random_trend(random_source *r, double seconds, uint32_t partitions, double range_most) {
    double from = between(r, 0, seconds);
    double ramp = between(r, 600, 3600);
    return (load_trend){
        .rank = (uint32_t)random_below(r, partitions),
        .phase = {.from = from,
                  .to = from + 2 * ramp + between(r, 1800, 6 * 3600),
                  .ramp = ramp,
                  .factor = range_most * exp(between(r, log(0.2), log(3)))},
    };
}

void load_build(load *l, random_source *r, double days, double trends_per_day, uint32_t partitions, double range_most) {
    double seconds = days * day;
    double campaign = between(r, 0.25, 0.32);
    double slump = between(r, 0.48, 0.55);
    *l = (load){
        .campaign = {.from = campaign * seconds, .to = (campaign + 0.09) * seconds, .ramp = seconds / 90, .factor = between(r, 1.5, 1.9)},
        .slump = {.from = slump * seconds, .to = (slump + 0.24) * seconds, .ramp = seconds / 60, .factor = between(r, 0.15, 0.25)},
        .import = {.from = 0.84 * seconds, .to = 0.94 * seconds, .ramp = seconds / 100, .factor = between(r, 80, 120)},
        .trends_n = (size_t)ceil(days * trends_per_day),
    };
    l->trends = mem_alloc(l->trends_n * sizeof *l->trends);
    for (size_t i = 0; i < l->trends_n; i++) {
        l->trends[i] = random_trend(r, seconds, partitions, range_most);
    }
    qsort(l->trends, l->trends_n, sizeof *l->trends, by_beginning);
}

void load_free(load *l) {
    free(l->trends);
}

/* 0 outside, 1 in the middle, linear ramps between. */
static double height(const load_phase *p, double second) {
    double in = second - p->from;
    double out = p->to - second;
    return fmax(0, fmin(1, fmin(in, out) / p->ramp));
}

double load_phase_at(const load_phase *p, double second) {
    return p->factor * height(p, second);
}

static double multiplier(const load_phase *p, double second) {
    double h = height(p, second);
    return 1 - h + h * p->factor;
}

/* Peaks of 1.45 at midday and 0.55 at night; three quarters on Saturdays and Sundays; growth of 0.6 % a day. */
double load_wave(const load *l, double second) {
    double days = second / day;
    double of_day = 1 + 0.45 * sin(2 * M_PI * (days - 0.33));
    double of_week = fmod(days, 7) >= 5 ? 0.75 : 1.07;
    return of_day * of_week * exp(0.006 * days) * multiplier(&l->campaign, second) * multiplier(&l->slump, second);
}

double load_growth(const load *l, double second) {
    return load_wave(l, second) + load_phase_at(&l->import, second);
}

double load_growth_most(const load *l, double days) {
    return 2 * days * day + (l->import.to - l->import.from) * l->import.factor;
}
