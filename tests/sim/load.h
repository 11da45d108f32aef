/* load.h — how the load changes over time: day, week, growth, a campaign, a slump, keys that trend for some hours, and a data import. */
#pragma once

#include "base/random.h"
#include "world.h"

/* An exceptional period from `from` to `to`, with ramps of `ramp` seconds inside both ends. */
typedef struct load_phase {
    double from, to, ramp;
    double factor;
} load_phase;

/* One logical partition has extra load for a while. */
typedef struct load_trend {
    uint32_t rank;
    load_phase phase; /* factor: extra RU/s at the peak */
} load_trend;

typedef struct load {
    load_phase campaign, slump;
    load_phase import; /* factor: growth of the data relative to the usual growth */
    size_t trends_n;
    load_trend *trends; /* sorted by beginning */
} load;

void load_build(load *l, random_source *r, double days, double trends_per_day, uint32_t partitions, double range_most);
void load_free(load *l);

double load_wave(const load *l, double second);               /* 1 is average */
double load_growth(const load *l, double second);             /* growth of the data; 1 is average */
double load_growth_most(const load *l, double days);          /* upper bound of the total growth, in seconds of average growth */
double load_phase_at(const load_phase *phase, double second); /* 0 outside, up to `factor` inside */

double random_fraction(random_source *r); /* 0 to 1 */
