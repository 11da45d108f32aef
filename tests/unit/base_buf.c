/* Buffers: growth, limits and overflow, numbers, big-endian integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/random.h"

static void assert_holds(const buf *b, const char *text) {
    assert_true(buf_ok(b));
    assert_int_equal(b->n, strlen(text));
    assert_memory_equal(b->p, text, b->n);
}

static void grows_as_needed(void **state) {
    (void)state;
    buf b = buf_init(BUF_NO_LIMIT);
    for (unsigned i = 0; i < 100000; i++) {
        buf_add_byte(&b, (char)i);
    }
    assert_int_equal(b.n, 100000);
    for (unsigned i = 0; i < 100000; i++) {
        assert_int_equal(b.p[i], (char)i);
    }
    buf_free(&b);
    assert_null(b.p);
    buf_add_lit(&b, "again");
    assert_holds(&b, "again");
    buf_free(&b);
}

static void takes_exactly_its_limit(void **state) {
    (void)state;
    for (size_t max = 0; max < 600; max++) {
        buf b = buf_init(max);
        for (size_t i = 0; i < max; i++) {
            buf_add_byte(&b, 'x');
        }
        assert_true(buf_ok(&b));
        assert_int_equal(b.n, max);
        assert_true(b.cap <= max);
        buf_add_byte(&b, 'y');
        assert_false(buf_ok(&b));
        assert_int_equal(b.n, max);
        buf_free(&b);
    }
}

/* An append that exceeds the limit leaves the buffer unchanged, and so do all later appends, even those that would fit. */
static void overflow_stays_until_cleared(void **state) {
    (void)state;
    buf b = buf_init(10);
    buf_add_lit(&b, "12345678");
    buf_add_lit(&b, "abc");
    assert_false(buf_ok(&b));
    buf_add_lit(&b, "d");
    buf_add_byte(&b, 'e');
    buf_addf(&b, "%d", 1);
    buf_add_hex(&b, SLICE_LIT("x"));
    buf_add_u64(&b, 1);
    assert_false(buf_reserve(&b, 1));
    assert_int_equal(b.n, 8);
    assert_memory_equal(b.p, "12345678", 8);
    buf_clear(&b);
    buf_add_lit(&b, "0123456789");
    assert_holds(&b, "0123456789");
    buf_free(&b);
}

static void absurd_sizes_overflow(void **state) {
    (void)state;
    buf b = buf_init(1000);
    buf_add_lit(&b, "x");
    assert_false(buf_grow(&b, SIZE_MAX));
    assert_false(buf_ok(&b));
    buf_clear(&b);
    assert_false(buf_grow(&b, SIZE_MAX - 1));
    buf_free(&b);
}

static void taking_hands_the_bytes_over(void **state) {
    (void)state;
    buf b = buf_init(100);
    size_t n;
    buf_add_lit(&b, "bytes");
    char *p = buf_take(&b, &n);
    assert_int_equal(n, 5);
    assert_memory_equal(p, "bytes", 5);
    assert_null(b.p);
    assert_int_equal(b.max, 100);
    free(p);
}

static void decimal_numbers(void **state) {
    (void)state;
    buf b = buf_init(BUF_NO_LIMIT);
    buf_add_u64(&b, 0);
    buf_add_byte(&b, ' ');
    buf_add_u64(&b, UINT64_MAX);
    buf_add_byte(&b, ' ');
    buf_add_i64(&b, INT64_MIN);
    buf_add_byte(&b, ' ');
    buf_add_i64(&b, INT64_MAX);
    buf_add_byte(&b, ' ');
    buf_add_i64(&b, -1);
    assert_holds(&b, "0 18446744073709551615 -9223372036854775808 9223372036854775807 -1");
    buf_free(&b);
}

static void hex_and_format(void **state) {
    (void)state;
    buf b = buf_init(BUF_NO_LIMIT);
    buf_add_hex(&b, slice_of("\x00\x9a\xff", 3));
    buf_addf(&b, " %s %u", "text", 7u);
    buf_add_slice(&b, SLICE_EMPTY);
    buf_add(&b, NULL, 0);
    assert_holds(&b, "009AFF text 7");
    buf_free(&b);
}

static void byte_order_is_value_order(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 7);
    for (int i = 0; i < 2000; i++) {
        uint64_t x = random_u64(&r) >> random_below(&r, 64), y = random_u64(&r) >> random_below(&r, 64);
        buf a = buf_init(16), b = buf_init(16);
        buf_add_be64(&a, x);
        buf_add_be64(&b, y);
        buf_add_be32(&a, (uint32_t)x);
        buf_add_be32(&b, (uint32_t)y);
        assert_int_equal(a.n, 12);
        int order = slice_cmp(slice_of(a.p, 8), slice_of(b.p, 8));
        assert_true(x < y ? order < 0 : x > y ? order > 0 : order == 0);
        int order32 = slice_cmp(slice_of(a.p + 8, 4), slice_of(b.p + 8, 4));
        assert_true((uint32_t)x < (uint32_t)y ? order32 < 0 : (uint32_t)x > (uint32_t)y ? order32 > 0 : order32 == 0);
        buf_free(&a);
        buf_free(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_as_needed),
        cmocka_unit_test(takes_exactly_its_limit),
        cmocka_unit_test(overflow_stays_until_cleared),
        cmocka_unit_test(absurd_sizes_overflow),
        cmocka_unit_test(taking_hands_the_bytes_over),
        cmocka_unit_test(decimal_numbers),
        cmocka_unit_test(hex_and_format),
        cmocka_unit_test(byte_order_is_value_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
