/* window.h — a minute of single requests at one range, through the real bucket, beside a model of it and the fluid that the simulation
 * takes for it otherwise. */
#pragma once

#include "base/random.h"

typedef struct window_totals {
    uint64_t windows, requests, refused;
    double offered, admitted; /* RU */
    double fluid;             /* RU that the simulation would have admitted: what is asked for, up to what is provisioned */
    double provisioned;
    double most;                              /* the highest part of what was provisioned that one window admitted */
    double overloaded_least, overloaded_most; /* the same, of those windows that were asked for 10 % more than provisioned or beyond */
} window_totals;

/* Requests come at random, `demand` RU/s of them; after half a minute the share changes. */
void window_run(window_totals *totals, random_source *r, double demand, double share_before, double share_after);
