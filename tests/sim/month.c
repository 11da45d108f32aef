#include "month.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "check.h"
#include "throughput/shares.h"

enum { HOT_MOST = 1 << 16, MINUTE = 60, HOURS_OF_DAY = 24 };

static const double range_most = 10000;     /* t, RU/s */
static const double range_bytes = 50e9;     /* storage limit of a range */
static const double partition_bytes = 20e9; /* and of a logical partition */
static const double load_at_start = 0.55;   /* average load over a week, as a fraction of T */
static const double bytes_at_start = 8e5;   /* data per RU/s of T: 4.8 GB for 6,000 RU/s */
static const double trends_at_start = 4e-7; /* new trends a day per RU/s of T: 24 for 60 million */
static const double bytes_per_ru = 0.5;     /* growth in a month; shorter simulations run through the same events faster */

double month_cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- start ---- */

static double throughput_at_start(const month_options *o) {
    return o->share * range_most * o->ranges;
}

static world_options world_of(const month_options *o) {
    return (world_options){
        .seed = o->seed,
        .partitions = o->partitions,
        .rate = load_at_start * throughput_at_start(o),
        .skew = o->skew,
        .hottest = o->hottest * range_most,
        .size_mean = bytes_at_start * throughput_at_start(o) / o->partitions,
        .size_limit = partition_bytes,
        .bytes_per_ru = bytes_per_ru * 30 / o->days,
    };
}

static void begin_arrays(month *m, size_t ranges_max) {
    double **arrays[] = {&m->demand, &m->last, &m->extra, &m->hot, &m->hour_most, &m->shares[MONTH_EQUAL], &m->shares[MONTH_FOLLOW]};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        *arrays[i] = mem_zero(ranges_max * sizeof(double));
    }
    m->hot_n = m->options.partitions < HOT_MOST ? m->options.partitions : HOT_MOST;
    m->hot_tiles = mem_zero(m->hot_n * sizeof *m->hot_tiles);
    m->hot_rates = mem_zero(m->hot_n * sizeof *m->hot_rates);
    for (size_t i = 0; i < m->hot_n; i++) {
        m->hot_rates[i] = world_rate(&m->world, (uint32_t)i);
    }
}

/* Recomputes everything that depends on the map. */
static void after_change(month *m, double wave) {
    for (size_t i = 0; i < m->hot_n; i++) {
        m->hot_tiles[i] = tiles_find(&m->tiles, (uint32_t)i);
    }
    for (size_t i = 0; i < m->tiles.map->n; i++) {
        m->last[i] = m->tiles.tiles[i].sums.rate * wave;
    }
    m->ranges_least = m->tiles.map->n < m->ranges_least ? m->tiles.map->n : m->ranges_least;
    m->ranges_most = m->tiles.map->n > m->ranges_most ? m->tiles.map->n : m->ranges_most;
}

void month_build(month *m, const month_options *options) {
    double started = month_cpu();
    world_options w = world_of(options);
    plan_limits limits = {
        .range_most = range_most, .range_bytes = (uint64_t)range_bytes, .ranges_max = PARTITION_RANGES_MAX, .merges = options->merges};
    *m = (month){.options = *options, .range_most = range_most, .ranges_least = options->ranges, .ranges_most = options->ranges};
    random_seed(&m->random, options->seed);
    world_build(&m->world, &w);
    double trends = fmax(trends_at_start * throughput_at_start(options), 4);
    load_build(&m->load, &m->random, options->days, trends, options->partitions, range_most);
    tiles_build(&m->tiles, &m->world, options->ranges, &limits, load_growth_most(&m->load, options->days));
    operator_begin(&m->operator, throughput_at_start(options));
    begin_arrays(m, limits.ranges_max);
    after_change(m, load_wave(&m->load, 0));
    m->times.world = month_cpu() - started;
}

void month_free(month *m) {
    double *arrays[] = {m->demand, m->last, m->extra, m->hot, m->hour_most, m->shares[MONTH_EQUAL], m->shares[MONTH_FOLLOW]};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        free(arrays[i]);
    }
    free(m->hot_tiles);
    free(m->hot_rates);
    tiles_free(&m->tiles);
    load_free(&m->load);
    world_free(&m->world);
}

/* ---- a minute ---- */

/* Adds one key's load to its range's hot load, if the key alone needs more than an equal share. */
static void meet_key(month *m, size_t tile, double rate, double equal) {
    m->hot[tile] += rate > equal ? rate : 0;
    m->day.hottest_key = fmax(m->day.hottest_key, rate);
}

static void add_trends(month *m, double second, double wave, double equal) {
    const load *l = &m->load;
    while (m->trends_done < l->trends_n && l->trends[m->trends_done].phase.to < second) {
        m->trends_done++;
    }
    for (size_t i = m->trends_done; i < l->trends_n && l->trends[i].phase.from <= second; i++) {
        double more = load_phase_at(&l->trends[i].phase, second);
        if (more > 0) {
            size_t tile = tiles_find(&m->tiles, l->trends[i].rank);
            m->extra[tile] += more;
            meet_key(m, tile, more + world_rate(&m->world, l->trends[i].rank) * wave, equal);
        }
    }
}

static double make_demand(month *m, double second) {
    size_t n = m->tiles.map->n;
    double wave = load_wave(&m->load, second) * (0.99 + 0.02 * random_fraction(&m->random));
    double equal = fmin(m->operator.throughput /(double) n, range_most);
    memset(m->extra, 0, n * sizeof *m->extra);
    memset(m->hot, 0, n * sizeof *m->hot);
    for (size_t i = 0; i < m->hot_n && m->hot_rates[i] * wave > equal; i++) {
        meet_key(m, m->hot_tiles[i], m->hot_rates[i] * wave, equal);
    }
    add_trends(m, second, wave, equal);
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        double jitter = 0.95 + 0.1 * random_fraction(&m->random);
        m->demand[i] = m->tiles.tiles[i].sums.rate * wave * jitter + m->extra[i];
        total += m->demand[i];
    }
    m->age += load_growth(&m->load, second) * MINUTE;
    return total;
}

static void share_out(month *m) {
    size_t n = m->tiles.map->n;
    share_rule rule = {.total = m->operator.throughput, .most = range_most, .least_part = 0.1};
    double started = month_cpu();
    shares_equal(&rule, m->shares[MONTH_EQUAL], n);
    shares_follow(&rule, m->last, m->shares[MONTH_FOLLOW], n);
    m->times.shares += month_cpu() - started;
    m->times.shares_n++;
    for (int k = 0; k < MONTH_RULES; k++) {
        double sum = 0;
        double least = INFINITY;
        double most = 0;
        for (size_t i = 0; i < n; i++) {
            sum += m->shares[k][i];
            least = fmin(least, m->shares[k][i]);
            most = fmax(most, m->shares[k][i]);
        }
        CHECK(sum <= rule.total * (1 + 1e-9), "shares of %g RU/s in all of %g", sum, rule.total);
        CHECK(sum >= fmin(rule.total, (double)n * range_most) * (1 - 1e-9), "only %g RU/s of %g shared out", sum, rule.total);
        CHECK(most <= range_most * (1 + 1e-9) && least >= 0.1 * rule.total / (double)n * (1 - 1e-9), "shares from %g to %g", least, most);
    }
}

/* Demand beyond the share is rejected. A bucket's credit of a second is negligible here, and rejected requests are not retried. */
static void account(month *m, double total) {
    size_t n = m->tiles.map->n;
    month_figures *f = &m->day;
    double possible = 0;
    double admitted[MONTH_RULES] = {0};
    f->asked += total * MINUTE;
    f->range_minutes += (double)n;
    for (size_t i = 0; i < n; i++) {
        double d = m->demand[i];
        double cool = fmax(d - m->hot[i], 0);
        possible += fmin(d, range_most);
        f->asked_cool += cool * MINUTE;
        f->hottest = fmax(f->hottest, d);
        for (int k = 0; k < MONTH_RULES; k++) {
            double over = d - m->shares[k][i];
            admitted[k] += over > 0 ? m->shares[k][i] : d;
            if (over > 0) {
                f->refused[k] += over * MINUTE;
                f->refused_cool[k] += over / d * cool * MINUTE;
                f->range_minutes_refusing[k]++;
            }
        }
        m->hour_most[i] = fmax(m->hour_most[i], fmin(d, m->shares[MONTH_EQUAL][i]));
    }
    f->refused_least += (total - fmin(possible, m->operator.throughput)) * MINUTE;
    f->peak = fmax(f->peak, total);
    for (int k = 0; k < MONTH_RULES; k++) {
        CHECK(admitted[k] <= m->operator.throughput *(1 + 1e-9), "%g RU/s admitted of %g", admitted[k], m->operator.throughput);
    }
}

static void minute(month *m, double second) {
    double total = make_demand(m, second);
    share_out(m);
    account(m, total);
    operator_minute(&m->operator, total);
    double *last = m->last;
    m->last = m->demand;
    m->demand = last;
    m->minutes++;
}

/* ---- an hour ---- */

/* Simulates single requests, alternately at the range with the most demand and at a random one. Two hours use equal shares; the next two
 * use shares that follow the load, which change from equal in the middle of the minute. */
static void look_closely(month *m, unsigned hour) {
    size_t n = m->tiles.map->n;
    size_t chosen = random_below(&m->random, n);
    for (size_t i = 0; i < n && hour % 2; i++) {
        chosen = m->last[i] > m->last[chosen] ? i : chosen;
    }
    int rule = hour / 2 % 2 ? MONTH_FOLLOW : MONTH_EQUAL;
    double before = m->shares[MONTH_EQUAL][chosen];
    double after = m->shares[rule][chosen];
    double started = month_cpu();
    window_run(&m->windows[rule], &m->random, fmin(m->last[chosen], 2.5 * fmax(before, after)), before, after);
    m->times.windows += month_cpu() - started;
}

static void bill(month *m) {
    size_t n = m->tiles.map->n;
    operator_bill *b = &m->operator.bill;
    double normalised = 0.1;
    double by_range = 0;
    for (size_t i = 0; i < n; i++) {
        double share = m->shares[MONTH_EQUAL][i];
        normalised = fmax(normalised, m->hour_most[i] / share);
        by_range += fmax(m->hour_most[i], 0.1 * share);
        m->hour_most[i] = 0;
    }
    b->manual += m->operator.throughput;
    b->autoscale += normalised * m->operator.throughput;
    b->dynamic += by_range;
}

static void hour(month *m, unsigned number) {
    double second = number * 3600.0;
    double started = month_cpu();
    if (tiles_settle(&m->tiles, m->operator.throughput, m->age)) {
        after_change(m, load_wave(&m->load, second));
    }
    double settled = month_cpu();
    m->times.settle += settled - started;
    for (int i = 0; i < 60; i++) {
        minute(m, second + i * MINUTE);
    }
    m->times.minutes += month_cpu() - settled;
    look_closely(m, number);
    bill(m);
    operator_hour(&m->operator);
}

/* ---- a day ---- */

static void add_day(month_figures *all, const month_figures *day) {
    all->asked += day->asked;
    all->asked_cool += day->asked_cool;
    all->refused_least += day->refused_least;
    all->range_minutes += day->range_minutes;
    all->peak = fmax(all->peak, day->peak);
    all->hottest = fmax(all->hottest, day->hottest);
    all->hottest_key = fmax(all->hottest_key, day->hottest_key);
    for (int k = 0; k < MONTH_RULES; k++) {
        all->refused[k] += day->refused[k];
        all->refused_cool[k] += day->refused_cool[k];
        all->range_minutes_refusing[k] += day->range_minutes_refusing[k];
    }
}

bool month_day(month *m, unsigned day) {
    unsigned hours = (unsigned)lround(m->options.days * HOURS_OF_DAY);
    unsigned first = day * HOURS_OF_DAY;
    m->day = (month_figures){0};
    for (unsigned h = first; h < first + HOURS_OF_DAY && h < hours; h++) {
        hour(m, h);
    }
    tiles_check(&m->tiles, 2000, m->options.seed + day);
    operator_day(&m->operator);
    add_day(&m->all, &m->day);
    return first + HOURS_OF_DAY < hours;
}
