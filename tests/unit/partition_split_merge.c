/* Plans: what is split and merged, when, and that it ends. A model carries out the steps: ranges of the line from 0 to 1, with logical
 * partitions that have a place on it and a weight. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "partition/split_merge.h"

enum { RANGES_MAX = 400, PARTITIONS_MAX = 600, LIMIT_BYTES = 1000000 };

typedef struct partition {
    double at;
    uint64_t weight;
} partition;

typedef struct model {
    size_t n;
    double starts[RANGES_MAX + 1]; /* starts[n] is 1 */
    size_t partitions_n;
    partition partitions[PARTITIONS_MAX]; /* in order */
} model;

static plan_limits limits_of(double throughput) {
    return (plan_limits){
        .throughput = throughput, .range_most = 10000, .range_bytes = LIMIT_BYTES, .ranges_max = RANGES_MAX, .merges = true};
}

static void describe(const model *m, plan_range *ranges) {
    size_t p = 0;
    for (size_t i = 0; i < m->n; i++) {
        ranges[i] = (plan_range){.width = m->starts[i + 1] - m->starts[i]};
        for (; p < m->partitions_n && m->partitions[p].at < m->starts[i + 1]; p++) {
            ranges[i].bytes += m->partitions[p].weight;
            ranges[i].partitions++;
        }
    }
    assert_int_equal(p, m->partitions_n);
}

static void splice(model *m, size_t first, size_t n, const double *cuts, size_t cuts_n) {
    assert_true(m->n - n + cuts_n + 1 <= RANGES_MAX);
    memmove(m->starts + first + cuts_n + 1, m->starts + first + n, (m->n + 1 - first - n) * sizeof *m->starts);
    memcpy(m->starts + first + 1, cuts, cuts_n * sizeof *cuts);
    m->n = m->n - n + cuts_n + 1;
    for (size_t i = 0; i < m->n; i++) {
        assert_true(m->starts[i] < m->starts[i + 1]);
    }
}

static size_t cuts_between_partitions(const model *m, size_t range, uint64_t bytes, uint32_t parts, double *cuts) {
    plan_cutter cutter = {.total = bytes, .parts = parts};
    size_t n = 0;
    for (size_t p = 0; p < m->partitions_n; p++) {
        bool inside = m->partitions[p].at >= m->starts[range] && m->partitions[p].at < m->starts[range + 1];
        if (inside && plan_cut_here(&cutter, m->partitions[p].weight)) {
            cuts[n++] = m->partitions[p].at;
        }
    }
    return n;
}

static void carry_out(model *m, const plan_range *ranges, plan_step step) {
    double cuts[RANGES_MAX];
    size_t n = 0;
    if (step.parts > 1 && ranges[step.first].partitions > 1) {
        n = cuts_between_partitions(m, step.first, ranges[step.first].bytes, step.parts, cuts);
        assert_in_range(n, 1, step.parts - 1);
    } else {
        for (; n + 1 < step.parts; n++) {
            cuts[n] = m->starts[step.first] + ranges[step.first].width * (double)(n + 1) / step.parts;
        }
    }
    splice(m, step.first, step.n, cuts, n);
}

/* Every step must have a valid reason. */
static void expect_legitimate(const plan_limits *limits, const plan_range *ranges, size_t n, plan_step step) {
    double wanted = ceil(limits->throughput / limits->range_most);
    const plan_range *first = &ranges[step.first];
    assert_true(step.first + step.n <= n);
    assert_true(n - step.n + step.parts <= limits->ranges_max);
    uint64_t bytes = 0;
    for (size_t i = 0; i < step.n; i++) {
        bytes += first[i].bytes;
    }
    if (step.reason == PLAN_STORAGE) {
        assert_true(step.n == 1 && step.parts >= 2 && step.parts <= first->partitions && first->bytes > limits->range_bytes);
    } else if (step.reason == PLAN_THROUGHPUT) {
        assert_true(step.n == 1 && step.parts >= 2 && (double)n < wanted && (double)(n + step.parts - 1) <= wanted);
        assert_true(first->partitions < 2 || step.parts <= first->partitions);
    } else {
        assert_int_equal(step.reason, PLAN_SCALE_DOWN);
        assert_true(limits->merges && step.n >= 2 && step.parts == 1);
        assert_true(limits->throughput / (double)n < 0.3 * limits->range_most);
        assert_true(limits->throughput / (double)(n - step.n + 1) <= limits->range_most);
        assert_true((double)bytes <= 0.4 * (double)limits->range_bytes);
    }
}

typedef struct counts {
    size_t splits, merges, splits_after_merge;
} counts;

/* Runs steps until there is nothing to do. This ends, since each split adds a range, and merged ranges are not split again. */
static counts settle(model *m, const plan_limits *limits) {
    static plan_range ranges[RANGES_MAX];
    counts c = {0};
    for (size_t steps = 0;; steps++) {
        assert_true(steps < 3 * RANGES_MAX);
        describe(m, ranges);
        plan_step step = plan_next(limits, ranges, m->n);
        if (step.reason == PLAN_NOTHING) {
            return c;
        }
        expect_legitimate(limits, ranges, m->n, step);
        c.merges += step.n > 1;
        c.splits += step.n == 1;
        c.splits_after_merge += step.n == 1 && c.merges;
        carry_out(m, ranges, step);
    }
}

static int by_place(const void *a, const void *b) {
    double x = ((const partition *)a)->at;
    double y = ((const partition *)b)->at;
    return (x > y) - (x < y);
}

static double fraction(random_source *r) {
    return (double)(random_u64(r) >> 11) * 0x1p-53;
}

/* Makes any number of ranges with random boundaries, and any number of partitions with weights from equal to very uneven. */
static void scramble(model *m, random_source *r) {
    *m = (model){.n = 1, .starts = {0, 1}};
    m->partitions_n = random_below(r, 4) ? random_below(r, PARTITIONS_MAX) : random_below(r, 5);
    double skew = 6 * fraction(r);
    for (size_t i = 0; i < m->partitions_n; i++) {
        double weight = 4 * LIMIT_BYTES * pow(fraction(r), 1 + skew);
        m->partitions[i] = (partition){.at = fraction(r), .weight = (uint64_t)weight / (1 + m->partitions_n / 8)};
    }
    qsort(m->partitions, m->partitions_n, sizeof *m->partitions, by_place);
    for (size_t ranges = random_below(r, 50); m->n < ranges;) {
        double cut = fraction(r);
        size_t i = 0;
        while (m->starts[i + 1] <= cut) {
            i++;
        }
        if (cut > m->starts[i]) {
            splice(m, i, 1, &cut, 1);
        }
    }
}

static void expect_settled(const model *m, const plan_limits *limits, counts c) {
    static plan_range ranges[RANGES_MAX];
    describe(m, ranges);
    double wanted = fmin(ceil(limits->throughput / limits->range_most), RANGES_MAX);
    assert_true((double)m->n >= wanted);
    assert_int_equal(c.splits_after_merge, 0);
    if (c.merges == 0 && c.splits == 0) {
        return; /* the initial state was already stable */
    }
    double lightest = INFINITY;
    for (size_t i = 0; i < m->n; i++) {
        assert_true(ranges[i].bytes <= LIMIT_BYTES || ranges[i].partitions == 1 || m->n == RANGES_MAX);
        lightest = i ? fmin(lightest, (double)(ranges[i].bytes + ranges[i - 1].bytes)) : lightest;
    }
    bool may_merge = m->n > 1 && limits->merges && limits->throughput / (double)m->n < 0.3 * limits->range_most;
    assert_true(!may_merge || lightest > 0.4 * LIMIT_BYTES);
}

static void any_state_settles(void **state) {
    (void)state;
    static model m;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        random_source r;
        random_seed(&r, seed);
        scramble(&m, &r);
        plan_limits limits = limits_of(floor(fraction(&r) * fraction(&r) * 1e6));
        limits.merges = random_below(&r, 3) > 0;
        counts c = settle(&m, &limits);
        expect_settled(&m, &limits, c);
        limits.throughput = floor(fraction(&r) * fraction(&r) * 1e6); /* scaled up or down, from a settled state */
        c = settle(&m, &limits);
        expect_settled(&m, &limits, c);
    }
}

static void splits_for_throughput_end_at_the_ranges_wanted(void **state) {
    (void)state;
    static model m;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        random_source r;
        random_seed(&r, seed);
        scramble(&m, &r);
        plan_limits limits = limits_of(1 + floor(fraction(&r) * 2e6));
        limits.range_bytes = 0;
        size_t n = m.n;
        size_t wanted = (size_t)ceil(limits.throughput / limits.range_most);
        limits.merges = wanted > n;
        settle(&m, &limits);
        assert_int_equal(m.n, wanted > n ? wanted : n);
    }
}

static void equal_ranges(model *m, size_t n) {
    *m = (model){.n = n};
    for (size_t i = 0; i <= n; i++) {
        m->starts[i] = (double)i / (double)n;
    }
}

/* Partitions of weight 100, evenly spread. */
static void fill_evenly(model *m, size_t partitions) {
    m->partitions_n = partitions;
    for (size_t i = 0; i < partitions; i++) {
        m->partitions[i] = (partition){.at = ((double)i + 0.5) / (double)partitions, .weight = 100};
    }
}

static void scaling_even_data_up_and_down_stays_even(void **state) {
    (void)state;
    static model m;
    static plan_range ranges[RANGES_MAX];
    static const size_t sizes[] = {1, 10, 25, 26, 50, 77, 100, 30, 12, 3};
    equal_ranges(&m, 1);
    fill_evenly(&m, 600);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        bool up = sizes[k] >= m.n;
        plan_limits limits = limits_of((double)sizes[k] * (up ? 10000 : 3000));
        size_t before = m.n;
        counts c = settle(&m, &limits);
        assert_int_equal(m.n, sizes[k]);
        assert_true(c.splits <= before);
        describe(&m, ranges);
        for (size_t i = 0; i < m.n; i++) {
            assert_true((double)ranges[i].bytes <= 2.1 * 60000 / (double)m.n);
        }
    }
}

static void one_step_makes_all_that_one_range_can_give(void **state) {
    (void)state;
    plan_range one = {.bytes = 1000, .partitions = 500, .width = 1};
    plan_limits limits = limits_of(100000);
    plan_step step = plan_next(&limits, &one, 1);
    assert_int_equal(step.reason, PLAN_THROUGHPUT);
    assert_int_equal(step.parts, 10);
    limits.throughput = 100001;
    assert_int_equal(plan_next(&limits, &one, 1).parts, 11);
    limits.throughput = 10000;
    assert_int_equal(plan_next(&limits, &one, 1).reason, PLAN_NOTHING);
    one = (plan_range){.width = 1}; /* an empty container too */
    limits.throughput = 100000;
    assert_int_equal(plan_next(&limits, &one, 1).parts, 10);
}

static void the_most_data_is_split_first(void **state) {
    (void)state;
    plan_range ranges[] = {{.bytes = 10, .partitions = 5, .width = 0.4},
                           {.bytes = 900, .partitions = 1, .width = 0.2},
                           {.bytes = 30, .partitions = 9, .width = 0.1},
                           {.bytes = 0, .partitions = 0, .width = 0.3}};
    plan_limits limits = limits_of(50000);
    assert_int_equal(plan_next(&limits, ranges, 4).first, 2);
    ranges[2].partitions = ranges[0].partitions = 1;
    assert_int_equal(plan_next(&limits, ranges, 4).first, 3); /* single partitions last */
    ranges[3].partitions = 1;
    assert_int_equal(plan_next(&limits, ranges, 4).first, 0); /* then the widest */
}

static void storage_splits_need_two_partitions(void **state) {
    (void)state;
    plan_range ranges[] = {{.bytes = LIMIT_BYTES + 1, .partitions = 1, .width = 0.5}, {.bytes = 5, .partitions = 2, .width = 0.5}};
    plan_limits limits = limits_of(20000);
    assert_int_equal(plan_next(&limits, ranges, 2).reason, PLAN_NOTHING);
    ranges[0].partitions = 2;
    plan_step step = plan_next(&limits, ranges, 2);
    assert_int_equal(step.reason, PLAN_STORAGE);
    assert_true(step.first == 0 && step.n == 1 && step.parts == 2);
    ranges[0].bytes = LIMIT_BYTES; /* at the limit, not beyond it */
    assert_int_equal(plan_next(&limits, ranges, 2).reason, PLAN_NOTHING);
    ranges[0] = (plan_range){.bytes = 10 * LIMIT_BYTES, .partitions = 1000, .width = 0.5}; /* the limit was lowered */
    assert_int_equal(plan_next(&limits, ranges, 2).parts, 20);
    limits.ranges_max = 5;
    assert_int_equal(plan_next(&limits, ranges, 2).parts, 4);
    limits.ranges_max = 2;
    assert_int_equal(plan_next(&limits, ranges, 2).reason, PLAN_NOTHING);
}

static void fixed_containers_never_change(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 5);
    static model m;
    static plan_range ranges[RANGES_MAX];
    for (int i = 0; i < 200; i++) {
        scramble(&m, &r);
        describe(&m, ranges);
        plan_limits limits = limits_of(fraction(&r) * 1e6);
        limits.fixed = true;
        assert_int_equal(plan_next(&limits, ranges, m.n).reason, PLAN_NOTHING);
    }
    plan_limits limits = limits_of(400);
    assert_int_equal(plan_next(&limits, ranges, 0).reason, PLAN_NOTHING);
}

static void without_throughput_of_its_own_only_storage_counts(void **state) {
    (void)state;
    plan_range ranges[] = {{.bytes = 2 * LIMIT_BYTES, .partitions = 10, .width = 0.5},
                           {.bytes = 100, .partitions = 10, .width = 0.3},
                           {.bytes = 200, .partitions = 10, .width = 0.2}};
    plan_limits limits = limits_of(0);
    assert_int_equal(plan_next(&limits, ranges, 3).reason, PLAN_STORAGE);
    ranges[0].bytes = LIMIT_BYTES;
    plan_step step = plan_next(&limits, ranges, 3);
    assert_true(step.reason == PLAN_SCALE_DOWN && step.first == 1 && step.n == 2 && step.parts == 1);
    limits.merges = false;
    assert_int_equal(plan_next(&limits, ranges, 3).reason, PLAN_NOTHING);
}

static void merges_start_with_the_lightest_pair(void **state) {
    (void)state;
    plan_range ranges[] = {{.bytes = 500, .partitions = 5, .width = 0.25},
                           {.bytes = 400, .partitions = 5, .width = 0.25},
                           {.bytes = 100, .partitions = 5, .width = 0.25},
                           {.bytes = 450, .partitions = 5, .width = 0.25}};
    plan_limits limits = limits_of(9000); /* three of 3,000 are no longer below 30 % */
    plan_step step = plan_next(&limits, ranges, 4);
    assert_true(step.reason == PLAN_SCALE_DOWN && step.first == 1 && step.n == 2);
    assert_int_equal(plan_next(&limits, ranges, 3).reason, PLAN_NOTHING);
    limits.throughput = 400; /* one is enough */
    step = plan_next(&limits, ranges, 4);
    assert_true(step.first == 0 && step.n == 4);
}

/* ---- the cutter ---- */

static void pieces_are_balanced_within_the_heaviest_partition(void **state) {
    (void)state;
    static uint64_t weights[5000];
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        random_source r;
        random_seed(&r, seed);
        size_t n = 1 + random_below(&r, seed % 10 ? 300 : 5000);
        uint32_t parts = 1 + (uint32_t)random_below(&r, 40);
        double skew = 10 * fraction(&r);
        uint64_t total = 0;
        uint64_t heaviest = 0;
        for (size_t i = 0; i < n; i++) {
            weights[i] = random_below(&r, 20) ? (uint64_t)(1e9 * pow(fraction(&r), 1 + skew)) : 0;
            total += weights[i];
            heaviest = weights[i] > heaviest ? weights[i] : heaviest;
        }
        plan_cutter c = {.total = total, .parts = parts};
        double even = (double)total / parts;
        uint64_t piece = 0;
        uint32_t pieces = 1;
        for (size_t i = 0; i < n; i++) {
            bool cut = plan_cut_here(&c, weights[i]);
            assert_true(!cut || i > 0);
            if (cut) {
                assert_true(fabs((double)piece - even) <= (double)heaviest + 1);
                piece = 0;
                pieces++;
            }
            piece += weights[i];
        }
        assert_true(fabs((double)piece - even) <= (double)heaviest + 1);
        assert_true(pieces <= parts && pieces <= n);
        assert_true(pieces >= (parts < 2 || n < 2 ? 1 : 2));
        assert_true(pieces == parts || n < parts || (double)heaviest > even);
    }
}

static void expect_pieces(const uint64_t *weights, size_t n, uint32_t parts, const uint64_t *pieces, size_t pieces_n) {
    plan_cutter c = {.parts = parts};
    for (size_t i = 0; i < n; i++) {
        c.total += weights[i];
    }
    uint64_t sums[16] = {0};
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        at += plan_cut_here(&c, weights[i]);
        assert_true(at < 16);
        sums[at] += weights[i];
    }
    assert_int_equal(at + 1, pieces_n);
    assert_memory_equal(sums, pieces, pieces_n * sizeof *pieces);
}

static void a_heavy_partition_gets_a_piece_and_the_rest_is_divided_anew(void **state) {
    (void)state;
    static const uint64_t heavy_first[] = {50, 10, 10, 10, 10, 10};
    static const uint64_t heavy_last[] = {10, 10, 10, 10, 10, 50};
    static const uint64_t even[] = {1, 1, 1, 1, 1, 1};
    expect_pieces(heavy_first, 6, 2, (const uint64_t[]){50, 50}, 2);
    expect_pieces(heavy_first, 6, 3, (const uint64_t[]){50, 20, 30}, 3);
    expect_pieces(heavy_first, 6, 6, heavy_first, 6);
    expect_pieces(heavy_last, 6, 3, (const uint64_t[]){30, 20, 50}, 3);
    expect_pieces(even, 6, 3, (const uint64_t[]){2, 2, 2}, 3);
    expect_pieces(even, 6, 1, (const uint64_t[]){6}, 1);
    expect_pieces(even, 6, 16, even, 6);
    expect_pieces((const uint64_t[]){0, 7}, 2, 2, (const uint64_t[]){0, 7}, 2);
    expect_pieces((const uint64_t[]){7, 0}, 2, 2, (const uint64_t[]){7, 0}, 2);
}

static void weights_may_be_as_large_as_they_like(void **state) {
    (void)state;
    plan_cutter c = {.total = UINT64_MAX, .parts = UINT32_MAX};
    assert_false(plan_cut_here(&c, UINT64_MAX / 2));
    assert_true(plan_cut_here(&c, UINT64_MAX / 2));
    plan_cutter less = {.total = 10, .parts = 3}; /* more weight than `total` */
    assert_false(plan_cut_here(&less, 10));
    assert_true(plan_cut_here(&less, 10));
    assert_true(plan_cut_here(&less, 10));
    assert_false(plan_cut_here(&less, 10));
}

static void reasons_have_names(void **state) {
    (void)state;
    assert_string_equal(plan_reason_text(PLAN_NOTHING), "nothing");
    assert_string_equal(plan_reason_text(PLAN_THROUGHPUT), "throughput");
    assert_string_equal(plan_reason_text(PLAN_STORAGE), "storage");
    assert_string_equal(plan_reason_text(PLAN_SCALE_DOWN), "scale-down");
    assert_string_equal(plan_reason_text(PLAN_COMMAND), "command");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_state_settles),
        cmocka_unit_test(splits_for_throughput_end_at_the_ranges_wanted),
        cmocka_unit_test(scaling_even_data_up_and_down_stays_even),
        cmocka_unit_test(one_step_makes_all_that_one_range_can_give),
        cmocka_unit_test(the_most_data_is_split_first),
        cmocka_unit_test(storage_splits_need_two_partitions),
        cmocka_unit_test(fixed_containers_never_change),
        cmocka_unit_test(without_throughput_of_its_own_only_storage_counts),
        cmocka_unit_test(merges_start_with_the_lightest_pair),
        cmocka_unit_test(pieces_are_balanced_within_the_heaviest_partition),
        cmocka_unit_test(a_heavy_partition_gets_a_piece_and_the_rest_is_divided_anew),
        cmocka_unit_test(weights_may_be_as_large_as_they_like),
        cmocka_unit_test(reasons_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
