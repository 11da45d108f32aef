/* window.h — simulates a minute of single requests to one range with the real bucket, and compares it with a model of the bucket and with
 * the fluid approximation that the rest of the simulation uses. */
#pragma once

#include "base/random.h"

typedef struct window_totals {
    uint64_t windows, requests, refused;
    double offered, admitted; /* RU */
    double fluid;             /* RU admitted by the fluid approximation: the smaller of offered and provisioned */
    double provisioned;
    double most;                              /* highest ratio of admitted to provisioned RU of a window */
    double overloaded_least, overloaded_most; /* bounds of that ratio in windows that were offered at least 10 % more than provisioned */
} window_totals;

/* Requests arrive at random, `demand` RU/s on average; after half a minute the share changes. */
void window_run(window_totals *totals, random_source *r, double demand, double share_before, double share_after);
