/* month.h — the simulated time itself: minute by minute the load, both rules of sharing, and what is refused; hour by hour the operator,
 * splits and merges; now and then single requests. */
#pragma once

#include "load.h"
#include "operator.h"
#include "tiles.h"
#include "window.h"

typedef struct month_options {
    uint64_t seed;
    double days;
    uint32_t ranges; /* at creation */
    double share;    /* of each of them, as part of what a range can give: with the ranges that makes T and, in proportion, load and data */
    uint32_t partitions;
    double skew;
    double hottest; /* as part of what a range can give; 0: Zipf's law to its head */
    bool merges;
} month_options;

enum { MONTH_EQUAL, MONTH_FOLLOW, MONTH_RULES };

/* Request units (or their parts of a hundred: charges do not depend on who is refused) over some time. */
typedef struct month_figures {
    double asked;
    double refused[MONTH_RULES];
    double refused_cool[MONTH_RULES]; /* of keys that do not ask for more than an equal share by themselves */
    double asked_cool;
    double refused_least; /* whatever the rule: past the total, or past what one range can give */
    double range_minutes, range_minutes_refusing[MONTH_RULES];
    double peak;        /* RU/s of all, the highest minute */
    double hottest;     /* RU/s that one range was asked for, the highest minute */
    double hottest_key; /* and one logical partition */
} month_figures;

typedef struct month_times {
    double world, settle, minutes, shares, windows;
    uint64_t shares_n;
} month_times;

typedef struct month {
    month_options options;
    double range_most;
    world world;
    load load;
    tiles tiles;
    operator_state operator;
    random_source random;
    double age;        /* seconds of average load so far */
    double *demand;    /* by range, of this minute */
    double *last;      /* of the minute before: what the following shares go by */
    double *extra;     /* of trends */
    double *hot;       /* of keys that ask for more than an equal share */
    double *hour_most; /* RU/s that the range used, the highest minute of the hour, with equal shares */
    double *shares[MONTH_RULES];
    double *hot_rates; /* of the first ranks */
    size_t *hot_tiles;
    size_t hot_n;
    size_t trends_done; /* before this one all are past */
    month_figures day, all;
    uint64_t minutes;
    window_totals windows[MONTH_RULES];
    size_t ranges_least, ranges_most;
    month_times times;
} month;

void month_build(month *m, const month_options *options);
void month_free(month *m);

/* One day; false when the time is over. */
bool month_day(month *m, unsigned day);

double month_cpu(void); /* seconds of processor time so far */
