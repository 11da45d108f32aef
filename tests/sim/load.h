/* load.h — how the load changes: the day, the week, growth, a campaign, a slump, keys that trend for some hours; and an import of data. */
#pragma once

#include "base/random.h"
#include "world.h"

/* A time that is not like the others: from `from` to `to`, with a ramp of `ramp` seconds at both ends inside. */
typedef struct load_phase {
    double from, to, ramp;
    double factor;
} load_phase;

/* One logical partition asks for this much more for a while. */
typedef struct load_trend {
    uint32_t rank;
    load_phase phase; /* factor: RU/s at its height */
} load_trend;

typedef struct load {
    load_phase campaign, slump;
    load_phase import; /* this many times as much is stored as usual */
    size_t trends_n;
    load_trend *trends; /* in the order of their beginnings */
} load;

void load_build(load *l, random_source *r, double days, double trends_per_day, uint32_t partitions, double range_most);
void load_free(load *l);

double load_wave(const load *l, double second);               /* 1 is average */
double load_growth(const load *l, double second);             /* of the data; 1 is average */
double load_growth_most(const load *l, double days);          /* seconds of average growth in all, at most */
double load_phase_at(const load_phase *phase, double second); /* 0 outside, up to `factor` inside */

double random_fraction(random_source *r); /* 0 to 1 */
