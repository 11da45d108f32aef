#include "throughput/shares.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static double smaller(double a, double b) {
    return a < b ? a : b;
}

static double equal_share(const share_rule *rule, size_t n) {
    return smaller(rule->total / (double)n, rule->most);
}

void shares_equal(const share_rule *rule, double *shares, size_t n) {
    for (size_t i = 0; i < n; i++) {
        shares[i] = equal_share(rule, n);
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Water-filling: the level at which the sum of min(size, level) is `water`. Sorts the sizes. */
static double water_level(double *sizes, size_t n, double water) {
    qsort(sizes, n, sizeof *sizes, by_value);
    for (size_t i = 0; i < n; i++) {
        double each = water / (double)(n - i);
        if (each <= sizes[i]) {
            return each;
        }
        water -= sizes[i];
    }
    return sizes[n - 1];
}

/* Clamps each demand to the bounds of one range. Returns the sum. */
static double needs_of(const double *demand, double *needs, size_t n, double least, double most) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        needs[i] = demand[i] > least ? smaller(demand[i], most) : least;
        sum += needs[i];
    }
    return sum;
}

void shares_follow(const share_rule *rule, const double *demand, double *shares, size_t n) {
    assert(rule->least_part > 0 && rule->least_part <= 1);
    if (n == 0) {
        return;
    }
    double equal = equal_share(rule, n), all = equal * (double)n;
    double needed = needs_of(demand, shares, n, rule->least_part * equal, rule->most);
    double *sizes = mem_alloc(n * sizeof *sizes);
    if (needed > all) {
        memcpy(sizes, shares, n * sizeof *sizes);
        double level = water_level(sizes, n, all); /* never below the least part, which every need includes and `all` covers n times */
        for (size_t i = 0; i < n; i++) {
            shares[i] = smaller(shares[i], level);
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            sizes[i] = rule->most - shares[i];
        }
        double level = water_level(sizes, n, all - needed);
        for (size_t i = 0; i < n; i++) {
            shares[i] = smaller(shares[i] + level, rule->most);
        }
    }
    free(sizes);
}
