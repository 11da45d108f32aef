/* Counting in bounded memory: how many, and which are the largest. */
#include "advise_harness.h"

#include <math.h>

#include "advise/distinct.h"
#include "advise/heavy.h"

static uint64_t hash_of(uint64_t x) {
    x = (x + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void different_values_are_counted(void **state) {
    (void)state;
    static const unsigned sizes[] = {0, 1, 10, 1000, 10000, 100000, 1000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        distinct d = {0};
        for (unsigned k = 0; k < sizes[i]; k++) {
            distinct_add(&d, hash_of(k));
            distinct_add(&d, hash_of(k));
        }
        double error = fabs(distinct_count(&d) - sizes[i]);
        assert_true(error <= 0.06 * sizes[i]);
        assert_true(sizes[i] > 10 || error == 0);
    }
}

static void few_keys_are_exact(void **state) {
    (void)state;
    static heavy h;
    for (unsigned i = 0; i < HEAVY_KEYS; i++) {
        for (unsigned k = 0; k < 3; k++) {
            heavy_add(&h, hash_of(i), i + 1, SLICE_LIT("key"));
        }
    }
    heavy_sort(&h);
    assert_true(h.n == HEAVY_KEYS && h.error == 0);
    assert_true(h.keys[0].weight == 3 * HEAVY_KEYS && h.keys[0].hash == hash_of(HEAVY_KEYS - 1));
    assert_true(heavy_find(&h, hash_of(5))->weight == 18);
    assert_null(heavy_find(&h, hash_of(HEAVY_KEYS)));
}

/* Three keys have a tenth each among 200,000 others. */
static void heavy_keys_stay_among_many(void **state) {
    (void)state;
    static heavy h;
    random_source r;
    random_seed(&r, 3);
    for (unsigned i = 0; i < 200000; i++) {
        unsigned dice = (unsigned)random_below(&r, 10);
        heavy_add(&h, hash_of(dice < 3 ? dice : 1000 + i), 1, dice < 3 ? SLICE_LIT("heavy") : SLICE_LIT("light"));
    }
    heavy_sort(&h);
    assert_true(h.error < h.total / 500);
    for (unsigned i = 0; i < 3; i++) {
        double share = h.keys[i].weight / h.total;
        assert_true(h.keys[i].hash == hash_of(0) || h.keys[i].hash == hash_of(1) || h.keys[i].hash == hash_of(2));
        assert_true(share > 0.09 && share < 0.11);
    }
    assert_true(h.keys[3].weight < h.total / 100);
}

static void long_texts_are_cut_between_characters(void **state) {
    (void)state;
    static heavy h;
    static const char text[] = "xññññññññññññññññññññññññññññññ";
    heavy_add(&h, 1, 1, SLICE_LIT(text));
    assert_int_equal(h.keys[0].text_n, 39);
    memset(&h, 0, sizeof h);
    heavy_add(&h, 1, 1, slice_of(text + 1, sizeof text - 2));
    assert_int_equal(h.keys[0].text_n, 38);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(different_values_are_counted),
        cmocka_unit_test(few_keys_are_exact),
        cmocka_unit_test(heavy_keys_stay_among_many),
        cmocka_unit_test(long_texts_are_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
