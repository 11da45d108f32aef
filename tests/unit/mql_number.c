/* Numbers of the MongoDB language: growth of integers, mixing of types, Decimal128, conversions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "mql/number.h"

static arena a;

static int teardown(void **state) {
    (void)state;
    arena_free(&a);
    return 0;
}

static mql_value i32(int32_t n) {
    return mql_int32(&a, n);
}
static mql_value i64(int64_t n) {
    return mql_int64(&a, n);
}
static mql_value real(double n) {
    return mql_double(&a, n);
}
static mql_value dec(const char *text) {
    bson_decimal128_t d;
    assert_true(bson_decimal128_from_string(text, &d));
    return mql_decimal(&a, &d);
}

static void is_i32(mql_value v, int32_t n) {
    assert_int_equal(v.type, BSON_TYPE_INT32);
    assert_int_equal(doc_load_i32(v.bytes.p), n);
}
static void is_i64(mql_value v, int64_t n) {
    assert_int_equal(v.type, BSON_TYPE_INT64);
    assert_true(doc_load_i64(v.bytes.p) == n);
}
static void is_real(mql_value v, double n) {
    assert_int_equal(v.type, BSON_TYPE_DOUBLE);
    double is = doc_load_double(v.bytes.p);
    assert_true(is == n || (isnan(is) && isnan(n)));
}
static void is_dec(mql_value v, const char *text) {
    char shown[BSON_DECIMAL128_STRING];
    assert_int_equal(v.type, BSON_TYPE_DECIMAL128);
    bson_decimal128_t d = mql_as_decimal(v);
    bson_decimal128_to_string(&d, shown);
    assert_string_equal(shown, text);
}

static void integers_grow(void **state) {
    (void)state;
    is_i32(mql_sum(&a, i32(1), i32(2)), 3);
    is_i64(mql_sum(&a, i32(INT32_MAX), i32(1)), (int64_t)INT32_MAX + 1);
    is_i64(mql_difference(&a, i32(INT32_MIN), i32(1)), (int64_t)INT32_MIN - 1);
    is_i64(mql_sum(&a, i32(1), i64(2)), 3);
    is_real(mql_sum(&a, i64(INT64_MAX), i32(1)), 0x1p63);
    is_real(mql_difference(&a, i64(INT64_MIN), i64(1)), -0x1p63);
    is_i64(mql_product(&a, i32(1 << 20), i32(1 << 20)), (int64_t)1 << 40);
    is_real(mql_product(&a, i64(INT64_MAX), i64(2)), 0x1p64);
}

static void doubles_and_decimals_win(void **state) {
    (void)state;
    is_real(mql_sum(&a, i32(1), real(0.5)), 1.5);
    is_real(mql_sum(&a, real(INFINITY), i64(1)), INFINITY);
    is_real(mql_difference(&a, real(INFINITY), real(INFINITY)), NAN);
    is_dec(mql_sum(&a, dec("1.10"), i32(2)), "3.10");
    is_dec(mql_sum(&a, dec("0.1"), dec("0.2")), "0.3");
    is_dec(mql_sum(&a, dec("1"), real(0.1)), "1.100000000000000");
    is_dec(mql_product(&a, dec("1.10"), dec("2.0")), "2.200");
    is_dec(mql_sum(&a, dec("9.999999999999999999999999999999999E+6144"), dec("9E+6144")), "Infinity");
    is_dec(mql_difference(&a, dec("Infinity"), dec("Infinity")), "NaN");
    is_dec(mql_product(&a, dec("-0"), i32(3)), "-0");
    is_dec(mql_sum(&a, dec("1E+3"), dec("0E+3")), "1E+3");
}

static void updates_refuse_overflow(void **state) {
    (void)state;
    mql_value v;
    assert_true(mql_sum_exact(&a, i32(INT32_MAX), i32(1), &v));
    is_i64(v, (int64_t)INT32_MAX + 1);
    assert_false(mql_sum_exact(&a, i64(INT64_MAX), i32(1), &v));
    assert_true(mql_is_missing(v));
    assert_false(mql_product_exact(&a, i64(INT64_MIN), i32(-1), &v));
    assert_true(mql_sum_exact(&a, i64(INT64_MAX), real(1), &v));
    is_real(v, 0x1p63);
    assert_true(mql_product_exact(&a, dec("2"), i64(INT64_MAX), &v));
    is_dec(v, "18446744073709551614");
}

static void doubles_become_decimals_of_15_digits(void **state) {
    (void)state;
    static const struct {
        double from;
        const char *to;
    } rows[] = {
        {0.1, "0.100000000000000"},
        {2.5, "2.50000000000000"},
        {-1.0 / 3, "-0.333333333333333"},
        {0.0, "0"},
        {-0.0, "-0"},
        {1e300, "1.00000000000000E+300"},
        {5e-324, "4.94065645841247E-324"},
        {9.9999999999999999, "10.0000000000000"},
        {9.999999999999999, "10.0000000000000"},
        {123456789012345678.0, "1.23456789012346E+17"},
        {INFINITY, "Infinity"},
        {-INFINITY, "-Infinity"},
        {NAN, "NaN"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bson_decimal128_t d = mql_decimal_of_double(rows[i].from);
        is_dec(mql_decimal(&a, &d), rows[i].to);
    }
}

static void conversions_check_the_range(void **state) {
    (void)state;
    mql_value v;
    assert_true(mql_number_to(&a, real(-1.9), BSON_TYPE_INT32, &v));
    is_i32(v, -1);
    assert_true(mql_number_to(&a, dec("1.9"), BSON_TYPE_INT64, &v));
    is_i64(v, 1);
    assert_true(mql_number_to(&a, dec("9223372036854775807.9"), BSON_TYPE_INT64, &v));
    is_i64(v, INT64_MAX);
    assert_false(mql_number_to(&a, dec("9223372036854775808"), BSON_TYPE_INT64, &v));
    assert_false(mql_number_to(&a, i64((int64_t)INT32_MAX + 1), BSON_TYPE_INT32, &v));
    assert_false(mql_number_to(&a, real(0x1p63), BSON_TYPE_INT64, &v));
    assert_false(mql_number_to(&a, real(NAN), BSON_TYPE_INT64, &v));
    assert_false(mql_number_to(&a, dec("NaN"), BSON_TYPE_INT32, &v));
    assert_true(mql_number_to(&a, dec("NaN"), BSON_TYPE_DOUBLE, &v));
    is_real(v, NAN);
    assert_false(mql_number_to(&a, dec("1E+400"), BSON_TYPE_DOUBLE, &v));
    assert_false(mql_number_to(&a, dec("1E-400"), BSON_TYPE_DOUBLE, &v));
    assert_true(mql_number_to(&a, i64(INT64_MIN), BSON_TYPE_DECIMAL128, &v));
    is_dec(v, "-9223372036854775808");
}

static void decimals_are_read_as_integers_exactly(void **state) {
    (void)state;
    int64_t n;
    assert_true(mql_as_integer(dec("9007199254740993"), &n));
    assert_true(n == 9007199254740993);
    assert_true(mql_as_integer(dec("1E+3"), &n) && n == 1000);
    assert_false(mql_as_integer(dec("1.5"), &n));
    assert_false(mql_as_integer(dec("1E+30"), &n));
    assert_false(mql_as_integer(dec("NaN"), &n));
}

static void decimal_functions(void **state) {
    (void)state;
    bson_decimal128_t x = mql_as_decimal(dec("1.2345")), y = mql_as_decimal(dec("-7.5")), z = mql_as_decimal(dec("2")), r;
    r = mql_decimal_round(&x, -2);
    is_dec(mql_decimal(&a, &r), "1.23");
    r = mql_decimal_truncate_at(&x, -3);
    is_dec(mql_decimal(&a, &r), "1.234");
    r = mql_decimal_remainder(&y, &z);
    is_dec(mql_decimal(&a, &r), "-1.5");
    r = mql_decimal_floor(&y);
    is_dec(mql_decimal(&a, &r), "-8");
    r = mql_decimal_divide(&z, &y);
    is_dec(mql_decimal(&a, &r), "-0.2666666666666666666666666666666667");
    r = mql_decimal_sqrt(&z);
    is_dec(mql_decimal(&a, &r), "1.414213562373095048801688724209698");
    assert_true(mql_decimal_compare(&y, &x) < 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(integers_grow, teardown),
        cmocka_unit_test_teardown(doubles_and_decimals_win, teardown),
        cmocka_unit_test_teardown(updates_refuse_overflow, teardown),
        cmocka_unit_test_teardown(doubles_become_decimals_of_15_digits, teardown),
        cmocka_unit_test_teardown(conversions_check_the_range, teardown),
        cmocka_unit_test_teardown(decimals_are_read_as_integers_exactly, teardown),
        cmocka_unit_test_teardown(decimal_functions, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
