/* Shares: they add up to the whole throughput, each is within its bounds, and a range that gets less than its demand gets no less than any
 * other. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "throughput/shares.h"

enum { RANGES_MOST = 200 };

static void assert_near(double a, double b) {
    if (!(fabs(a - b) <= 1e-6 * (1 + fabs(b)))) {
        fail_msg("%.9g is not %.9g", a, b);
    }
}

static void equal_shares_end_at_the_physical_limit(void **state) {
    (void)state;
    double shares[4] = {0};
    shares_equal(&(share_rule){1000, 10000, 0.1}, shares, 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_near(shares[i], 250);
    }
    shares_equal(&(share_rule){100000, 10000, 0.1}, shares, 4);
    assert_near(shares[3], 10000);
    shares_equal(&(share_rule){100000, 10000, 0.1}, shares, 0);
}

static void check(share_rule rule, const double *demand, const double *expected, size_t n) {
    double shares[RANGES_MOST];
    shares_follow(&rule, demand, shares, n);
    for (size_t i = 0; i < n; i++) {
        assert_near(shares[i], expected[i]);
    }
}

static void a_hot_range_takes_what_others_leave(void **state) {
    (void)state;
    share_rule rule = {1000, 10000, 0.1};
    check(rule, (double[]){2000, 0, 0, 0}, (double[]){925, 25, 25, 25}, 4);
    check(rule, (double[]){2000, 100, 0, 0}, (double[]){850, 100, 25, 25}, 4);
    check(rule, (double[]){2000, 3000, 0, 0}, (double[]){475, 475, 25, 25}, 4);
    check(rule, (double[]){2000, 3000, 300, 0}, (double[]){337.5, 337.5, 300, 25}, 4);
}

static void what_nobody_asks_for_is_spread(void **state) {
    (void)state;
    share_rule rule = {1000, 10000, 0.1};
    check(rule, (double[]){0, 0, 0, 0}, (double[]){250, 250, 250, 250}, 4);
    check(rule, (double[]){425, 25, 0, 0}, (double[]){550, 150, 150, 150}, 4);
    rule.most = 500;
    check(rule, (double[]){425, 25, 0, 0}, (double[]){500, 500.0 / 3, 500.0 / 3, 500.0 / 3}, 4);
    check(rule, (double[]){9000, 25, 0, 0}, (double[]){500, 500.0 / 3, 500.0 / 3, 500.0 / 3}, 4);
    rule.total = 5000;
    check(rule, (double[]){9000, 25, 0, 0}, (double[]){500, 500, 500, 500}, 4);
}

static void one_range_and_none(void **state) {
    (void)state;
    check((share_rule){400, 10000, 0.1}, (double[]){0}, (double[]){400}, 1);
    check((share_rule){400, 10000, 1}, (double[]){1e12, 0}, (double[]){200, 200}, 2);
    check((share_rule){400, 10000, 0.1}, NULL, NULL, 0);
}

static void odd_demands_do_no_harm(void **state) {
    (void)state;
    check((share_rule){1000, 10000, 0.1}, (double[]){(double)NAN, (double)INFINITY, -5, 0}, (double[]){25, 925, 25, 25}, 4);
    check((share_rule){0, 10000, 0.1}, (double[]){5, 0}, (double[]){0, 0}, 2);
}

static void random_demands_keep_the_rules(void **state) {
    (void)state;
    random_source random;
    random_seed(&random, 11);
    double demand[RANGES_MOST], shares[RANGES_MOST];
    for (unsigned round = 0; round < 2000; round++) {
        size_t n = 1 + random_below(&random, RANGES_MOST);
        share_rule rule = {(double)(1 + random_below(&random, 1000000)), (double)(1 + random_below(&random, 20000)), 0.1};
        for (size_t i = 0; i < n; i++) {
            demand[i] = (double)random_below(&random, random_below(&random, 2) ? 100 : 30000);
        }
        shares_follow(&rule, demand, shares, n);
        double equal = fmin(rule.total / (double)n, rule.most), least = rule.least_part * equal, sum = 0, highest = 0, needs = 0;
        for (size_t i = 0; i < n; i++) {
            sum += shares[i];
            highest = fmax(highest, shares[i]);
            needs += fmin(fmax(demand[i], least), rule.most);
            assert_true(shares[i] >= least * 0.999999);
            assert_true(shares[i] <= rule.most);
        }
        assert_near(sum, equal * (double)n);
        for (size_t i = 0; i < n; i++) {
            double need = fmin(fmax(demand[i], least), rule.most);
            if (needs <= equal * (double)n) {
                assert_true(shares[i] >= need * 0.999999);
            } else {
                assert_true(shares[i] <= need * 1.000001);
                assert_true(shares[i] >= need * 0.999999 || shares[i] >= highest * 0.999999);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_shares_end_at_the_physical_limit),
        cmocka_unit_test(a_hot_range_takes_what_others_leave),
        cmocka_unit_test(what_nobody_asks_for_is_spread),
        cmocka_unit_test(one_range_and_none),
        cmocka_unit_test(odd_demands_do_no_harm),
        cmocka_unit_test(random_demands_keep_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
