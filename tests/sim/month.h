/* month.h — the simulation loop: every minute the load, both rules for shares, and rejected requests; every hour the operator, splits and
 * merges; now and then single requests. */
#pragma once

#include "load.h"
#include "operator.h"
#include "tiles.h"
#include "window.h"

typedef struct month_options {
    uint64_t seed;
    double days;
    uint32_t ranges; /* at creation */
    double share;    /* each range's share as a fraction of t. Together with `ranges` this gives T; load and data are in proportion */
    uint32_t partitions;
    double skew;
    double hottest; /* rate of the hottest key, as a fraction of t; 0: by Zipf's law */
    bool merges;
} month_options;

enum { MONTH_EQUAL, MONTH_FOLLOW, MONTH_RULES };

/* Request units (or fractions of them) over a period. */
typedef struct month_figures {
    double asked;
    double refused[MONTH_RULES];
    double refused_cool[MONTH_RULES]; /* refused requests of keys that alone need no more than an equal share */
    double asked_cool;
    double refused_least; /* unavoidable by any rule: beyond the total, or beyond the limit of one range */
    double range_minutes, range_minutes_refusing[MONTH_RULES];
    double peak;        /* total RU/s in the highest minute */
    double hottest;     /* highest demand on one range in a minute, RU/s */
    double hottest_key; /* the same for one logical partition */
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
    double *demand;    /* this minute's, by range */
    double *last;      /* the previous minute's demand, which the following shares use */
    double *extra;     /* load of trends, by range */
    double *hot;       /* load of keys that need more than an equal share, by range */
    double *hour_most; /* RU/s used by the range in the highest minute of the hour, with equal shares */
    double *shares[MONTH_RULES];
    double *hot_rates; /* rates of the first ranks */
    size_t *hot_tiles;
    size_t hot_n;
    size_t trends_done; /* all trends before this index are over */
    month_figures day, all;
    uint64_t minutes;
    window_totals windows[MONTH_RULES];
    size_t ranges_least, ranges_most;
    month_times times;
} month;

void month_build(month *m, const month_options *options);
void month_free(month *m);

/* Simulates one day; false at the end. */
bool month_day(month *m, unsigned day);

double month_cpu(void); /* seconds of processor time so far */
