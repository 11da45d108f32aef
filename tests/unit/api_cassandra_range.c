/* Deleted ranges of a partition: which rows they hide, against a plain search; stored and read again; and how many are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/cassandra/range.h"
#include "doc/walk.h"

enum { NOW_S = 1000 };

static uint64_t seed = 1;

static uint32_t draw(uint32_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* A row has three values, which are letters; a bound has the first one, two or three. */
static slice letters(arena *a, unsigned n) {
    char text[3];
    for (unsigned i = 0; i < n; i++) {
        text[i] = (char)('a' + draw(3));
    }
    return arena_copy(a, slice_of(text, n));
}

static item_row_bound random_bound(arena *a) {
    item_row_bound b = {.given = draw(4), .exclusive = draw(2)};
    b.prefix = b.given ? letters(a, 1 + draw(3)) : SLICE_EMPTY;
    return b;
}

static int order(slice row, slice prefix) {
    return memcmp(row.p, prefix.p, prefix.n);
}

static bool is_within(slice row, const item_row_bound *from, const item_row_bound *to) {
    bool after = !from->given || order(row, from->prefix) > 0 || (order(row, from->prefix) == 0 && !from->exclusive);
    bool before = !to->given || order(row, to->prefix) < 0 || (order(row, to->prefix) == 0 && !to->exclusive);
    return after && before;
}

static void read_again(op *o, const cass_range *ranges, uint32_t n, cass_range **ranges_out, uint32_t *n_out) {
    buf out = buf_init(BUF_NO_LIMIT);
    buf_add(&out, "\0\0\0\0", 4);
    cass_ranges_put(&out, ranges, n);
    buf_add_byte(&out, 0);
    doc_store_i32(out.p, (int32_t)out.n);
    slice array = arena_copy(o->arena, buf_view(&out));
    buf_free(&out);
    assert_true(doc_is_well_formed(array, 10));
    assert_int_equal(cass_ranges_read(o, array, NOW_S, ranges_out, n_out), OK);
}

static void test_ranges_hide_what_they_have(void **state) {
    enum { RANGES = 12, ROWS = 40, ROUNDS = 300 };
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        arena a = arena_init();
        op o;
        item_row_bound from[RANGES], to[RANGES];
        int64_t us[RANGES];
        cass_range *ranges = NULL;
        uint32_t n = 0;
        op_init(&o, &a, NOW_S);
        for (unsigned i = 0; i < RANGES; i++) {
            from[i] = random_bound(&a);
            to[i] = random_bound(&a);
            us[i] = draw(20);
            cass_range more = cass_range_of(&from[i], &to[i], us[i], NOW_S + 10);
            assert_int_equal(cass_ranges_add(&o, ranges, n, &more, &ranges, &n), OK);
            read_again(&o, ranges, n, &ranges, &n);
        }
        for (unsigned k = 0; k < ROWS; k++) {
            slice row = letters(&a, 3);
            int64_t expected = -1, hidden = -1;
            for (unsigned i = 0; i < RANGES; i++) {
                expected = is_within(row, &from[i], &to[i]) && us[i] > expected ? us[i] : expected;
            }
            assert_int_equal(cass_ranges_hide(ranges, n, row, &hidden), expected >= 0);
            assert_int_equal(hidden, expected);
        }
        arena_free(&a);
    }
}

static void test_ranges_are_forgotten(void **state) {
    arena a = arena_init();
    op o;
    cass_range *ranges = NULL;
    item_row_bound open = {0};
    uint32_t n = 0;
    (void)state;
    op_init(&o, &a, NOW_S);
    for (int i = 0; i < 3; i++) {
        item_row_bound from = {.given = true, .prefix = slice_of(&"abc"[i], 1)};
        cass_range more = cass_range_of(&from, &open, 10 - i, NOW_S + (i == 1 ? 0 : 10));
        assert_int_equal(cass_ranges_add(&o, ranges, n, &more, &ranges, &n), OK);
    }
    assert_int_equal(n, 3);
    read_again(&o, ranges, n, &ranges, &n);
    assert_int_equal(n, 2); /* the time of one is over */
    cass_range all = cass_range_of(&open, &open, 9, NOW_S + 10);
    assert_int_equal(cass_ranges_add(&o, ranges, n, &all, &ranges, &n), OK);
    assert_int_equal(n, 2); /* it covers the one with the timestamp 8 */
    arena_free(&a);
}

static void test_ranges_are_limited(void **state) {
    arena a = arena_init();
    op o;
    cass_range *ranges = NULL;
    uint32_t n = 0;
    int64_t us;
    (void)state;
    op_init(&o, &a, NOW_S);
    for (int i = 0; i < CASS_RANGES_MAX + 10; i++) {
        char key[8];
        item_row_bound at = {.given = true};
        at.prefix = arena_copy(&a, slice_of(key, (size_t)snprintf(key, sizeof key, "%06d", i)));
        cass_range more = cass_range_of(&at, &at, 100 + i, NOW_S + 10);
        assert_int_equal(cass_ranges_add(&o, ranges, n, &more, &ranges, &n), OK);
    }
    assert_int_equal(n, CASS_RANGES_MAX);
    assert_false(cass_ranges_hide(ranges, n, SLICE_LIT("000009"), &us)); /* those with the earliest timestamps went */
    assert_true(cass_ranges_hide(ranges, n, SLICE_LIT("000010"), &us));
    assert_int_equal(us, 110);
    arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_hide_what_they_have),
        cmocka_unit_test(test_ranges_are_forgotten),
        cmocka_unit_test(test_ranges_are_limited),
    };
    return cmocka_run_group_tests_name("api_cassandra_range", tests, NULL, NULL);
}
