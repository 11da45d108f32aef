/* Seeding the list of sizes: once all partitions were reported, it has the largest, and it notices when it no longer does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "throughput/hotkeys.h"

static size_t text_of(const void *key, char *into, size_t max) {
    return (size_t)snprintf(into, max, "[%u]", *(const unsigned *)key);
}

static void seed(hotkeys *h, unsigned key, uint64_t bytes) {
    hotkeys_seed(h, key + 1, bytes, text_of, &key);
}

static void set(hotkeys *h, unsigned key, uint64_t bytes) {
    hotkeys_size(h, key + 1, bytes, text_of, &key);
}

/* Keys 0 to n - 1, of 1000 + key bytes. */
static hotkeys *seeded(unsigned n) {
    hotkeys *h = hotkeys_new();
    hotkeys_seed_start(h);
    for (unsigned i = 0; i < n; i++) {
        seed(h, i, 1000 + i);
    }
    hotkeys_seed_end(h);
    return h;
}

static void nothing_is_known_before(void **state) {
    hotkeys *h = hotkeys_new();
    (void)state;
    set(h, 1, 100);
    assert_false(hotkeys_sizes_known(h));
    hotkeys_seed_start(h);
    assert_false(hotkeys_sizes_known(h));
    hotkeys_seed_end(h);
    assert_true(hotkeys_sizes_known(h));
    hotkeys_free(h);
}

static void the_largest_of_many_are_known(void **state) {
    hotkey top[HOTKEYS_TOP];
    hotkeys *h = seeded(10000);
    (void)state;
    assert_true(hotkeys_sizes_known(h));
    assert_int_equal(hotkeys_top_by_size(h, top), HOTKEYS_TOP);
    for (unsigned i = 0; i < HOTKEYS_TOP; i++) {
        assert_int_equal(top[i].hash, 10000 - i);
        assert_int_equal((uint64_t)top[i].value, 1000 + 9999 - i);
    }
    hotkeys_free(h);
}

static void it_stays_known_while_partitions_grow(void **state) {
    hotkeys *h = seeded(1000);
    hotkey top[HOTKEYS_TOP];
    (void)state;
    for (unsigned round = 1; round < 50; round++) {
        for (unsigned i = 0; i < 1000; i++) {
            set(h, i, 1000 + i + round * (i % 7));
            assert_true(hotkeys_sizes_known(h));
        }
    }
    assert_int_equal(hotkeys_top_by_size(h, top), HOTKEYS_TOP);
    assert_int_equal((uint64_t)top[0].value, 1000 + 993 + 49 * 6 + 0); /* 993 % 7 is 6 */
    hotkeys_free(h);
}

/* The list keeps a dozen more than it shows. Once these are deleted too, the next largest of the 1,000 are not in the list. */
static void it_is_not_known_after_many_deletions(void **state) {
    hotkeys *h = seeded(1000);
    unsigned deleted = 0;
    (void)state;
    while (hotkeys_sizes_known(h)) {
        assert_true(deleted < 100);
        set(h, 999 - deleted++, 0);
    }
    assert_in_range(deleted, 12, 14);
    hotkeys_seed_start(h);
    for (unsigned i = 0; i < 1000 - deleted; i++) {
        seed(h, i, 1000 + i);
    }
    assert_false(hotkeys_sizes_known(h));
    hotkeys_seed_end(h);
    assert_true(hotkeys_sizes_known(h));
    hotkeys_free(h);
}

static void few_partitions_stay_known(void **state) {
    hotkeys *h = seeded(5);
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        set(h, i, 0);
        assert_true(hotkeys_sizes_known(h));
    }
    hotkeys_free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_before),
        cmocka_unit_test(the_largest_of_many_are_known),
        cmocka_unit_test(it_stays_known_while_partitions_grow),
        cmocka_unit_test(it_is_not_known_after_many_deletions),
        cmocka_unit_test(few_partitions_stay_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
