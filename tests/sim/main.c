/* main.c — the simulation's command line and output. See README.md. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "check.h"
#include "month.h"

/* The options and their bounds. */
enum { SEED, DAYS, RANGES, PARTITIONS, SHARE, SKEW, HOTTEST, SETTINGS };

static const struct setting {
    const char *name;
    double usual, low, high;
} settings[SETTINGS] = {
    [SEED] = {"seed", 1, 0, 0x1p52},        [DAYS] = {"days", 30, 0.5, 366},
    [RANGES] = {"ranges", 10000, 1, 20000}, [PARTITIONS] = {"partitions", 1e8, 100, 4e9},
    [SHARE] = {"share", 0.6, 0.05, 1},      [SKEW] = {"skew", 0.99, 0, 3},
    [HOTTEST] = {"hottest", 1, 0, 1e6},
};

static int usage(void) {
    fprintf(stderr, "usage: simulate [--no-merges]");
    for (int i = 0; i < SETTINGS; i++) {
        fprintf(stderr, " [--%s %g]", settings[i].name, settings[i].usual);
    }
    fputc('\n', stderr);
    return 2;
}

static bool number_in(const char *text, double low, double high, double *value_out) {
    char *end = NULL;
    *value_out = strtod(text, &end);
    return end != text && *end == 0 && *value_out >= low && *value_out <= high;
}

static bool read_options(int argc, char **argv, month_options *o) {
    struct option names[SETTINGS + 2] = {{"no-merges", no_argument, NULL, SETTINGS}};
    double values[SETTINGS];
    for (int i = 0; i < SETTINGS; i++) {
        names[i + 1] = (struct option){settings[i].name, required_argument, NULL, i};
        values[i] = settings[i].usual;
    }
    bool good = true;
    bool merges = true;
    for (int c; good && (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        merges = merges && c != SETTINGS;
        good = c == SETTINGS || (c < SETTINGS && number_in(optarg, settings[c].low, settings[c].high, &values[c]));
    }
    *o = (month_options){
        .seed = (uint64_t)values[SEED],
        .days = values[DAYS],
        .ranges = (uint32_t)values[RANGES],
        .partitions = (uint32_t)values[PARTITIONS],
        .share = values[SHARE],
        .skew = values[SKEW],
        .hottest = values[HOTTEST],
        .merges = merges,
    };
    return good && optind == argc;
}

/* ---- output ---- */

static double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

static void print_head(const month *m) {
    const month_options *o = &m->options;
    printf("seed %" PRIu64 ", %g days, %u ranges at creation, %u logical partitions\n", o->seed, o->days, o->ranges, o->partitions);
    printf("load: Zipf %g, its head flattened by %.0f ranks; the hottest asks for %.0f RU/s on average\n", o->skew, m->world.flat,
           world_rate(&m->world, 0));
    printf("one by one: every logical partition (hash, rate, size, growth), every range in every minute, every split and merge\n");
    printf("in aggregate: requests, as RU/s by range and minute; one by one only in sampled minutes, through the real buckets\n\n");
    printf("          T  ranges  all asked  hottest    data   splits for  ranges  refused, %% of requests\n");
    printf("day   kRU/s             kRU/s     RU/s      TB   RU/s  bytes  merged   equal  follow   least\n");
}

static double terabytes(const month *m) {
    double bytes = 0;
    for (size_t i = 0; i < m->tiles.map->n; i++) {
        bytes += tiles_bytes(&m->tiles.tiles[i], m->age);
    }
    return bytes * 1e-12;
}

static void print_day(const month *m, unsigned day, double throughput, const tiles_counts *before) {
    const month_figures *f = &m->day;
    const tiles_counts *c = &m->tiles.counts;
    printf("%3u  %6.0f  %6zu  %8.0f  %7.0f  %6.2f  %5" PRIu64 "  %5" PRIu64 "  %6" PRIu64 "  %6.3f  %6.3f  %6.3f\n", day + 1,
           throughput * 1e-3, m->tiles.map->n, f->peak * 1e-3, f->hottest, terabytes(m), c->splits_throughput - before->splits_throughput,
           c->splits_storage - before->splits_storage, c->merged - before->merged, percent(f->refused[MONTH_EQUAL], f->asked),
           percent(f->refused[MONTH_FOLLOW], f->asked), percent(f->refused_least, f->asked));
    fflush(stdout);
}

static void print_rule(const month *m, int rule, const char *name) {
    const month_figures *f = &m->all;
    const window_totals *w = &m->windows[rule];
    printf("%s: %.3f %% of requests refused; of keys that ask for less than an equal share %.3f %%; range-minutes with refusals %.3f %%\n",
           name, percent(f->refused[rule], f->asked), percent(f->refused_cool[rule], f->asked_cool),
           percent(f->range_minutes_refusing[rule], f->range_minutes));
    printf("  sampled: %" PRIu64 " minutes, %" PRIu64 " requests, %.2f %% refused; admitted / what the fluid model admits %.4f; "
           "a minute's admitted / provisioned: at most %.4f, under overload %.4f to %.4f\n",
           w->windows, w->requests, percent((double)w->refused, (double)w->requests), w->fluid > 0 ? w->admitted / w->fluid : 0, w->most,
           w->overloaded_least, w->overloaded_most);
    CHECK(w->windows < 30 || (w->admitted < 1.005 * w->fluid && w->admitted > 0.98 * w->fluid), "the fluid model is off: %g RU and %g",
          w->admitted, w->fluid);
}

static void print_total(const month *m) {
    const month_figures *f = &m->all;
    const tiles_counts *c = &m->tiles.counts;
    const operator_state *o = &m->operator;
    printf("\nranges: %zu to %zu, %zu in the end; %" PRIu64 " split for throughput, %" PRIu64 " for storage; %" PRIu64 " merges of %" PRIu64
           "; ids given out %u\n",
           m->ranges_least, m->ranges_most, m->tiles.map->n, c->splits_throughput, c->splits_storage, c->merges, c->merged,
           m->tiles.map->next_id);
    printf("throughput: up %u times, down %u times, at most %.0f kRU/s; %zu logical partitions full; hottest range %.0f RU/s, hottest key "
           "%.0f RU/s\n",
           o->ups, o->downs, o->throughput_most * 1e-3, m->tiles.full, f->hottest, f->hottest_key);
    print_rule(m, MONTH_EQUAL, "equal shares");
    print_rule(m, MONTH_FOLLOW, "following shares");
    printf("least that any rule refuses: %.3f %%\n", percent(f->refused_least, f->asked));
    printf("bill, as parts of T all the time: autoscale %.3f by the busiest range (the service's), %.3f range by range\n",
           o->bill.autoscale / o->bill.manual, o->bill.dynamic / o->bill.manual);
}

static void print_cost(const month *m, double wall) {
    const tiles_counts *c = &m->tiles.counts;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    uint64_t changes = c->splits_throughput + c->splits_storage + c->merges;
    printf("\n%.0f s processor, %.0f s wall, %.0f MB: %.0f s to place the logical partitions, %.0f s minutes, %.0f s splits and merges, "
           "%.0f s "
           "single requests\n",
           month_cpu(), wall, (double)used.ru_maxrss / 1024, m->times.world, m->times.minutes, m->times.settle, m->times.windows);
    printf("each: plan %.3f ms, new map %.2f ms, finding the cuts %.2f ms, shares of both rules %.2f ms\n",
           1e3 * c->plan_seconds / (double)(c->rounds ? c->rounds : 1), 1e3 * c->map_seconds / (double)(changes ? changes : 1),
           1e3 * c->cut_seconds / (double)(changes ? changes : 1), 1e3 * m->times.shares / (double)m->times.shares_n);
    printf("%" PRIu64 " checks held\n", check_total());
}

int main(int argc, char **argv) {
    month_options options;
    if (!read_options(argc, argv, &options)) {
        return usage();
    }
    check_seed(options.seed);
    static month m;
    time_t started = time(NULL);
    month_build(&m, &options);
    print_head(&m);
    bool more = true;
    for (unsigned day = 0; more; day++) {
        tiles_counts before = m.tiles.counts;
        double throughput = m.operator.throughput;
        more = month_day(&m, day);
        print_day(&m, day, throughput, &before);
    }
    print_total(&m);
    print_cost(&m, (double)(time(NULL) - started));
    month_free(&m);
    return 0;
}
