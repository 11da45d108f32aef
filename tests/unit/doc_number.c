/* Numbers: reading text, writing doubles, and that the two agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "doc/number.h"

static number_value read_whole(const char *text) {
    number_value value;
    const char *reason = NULL;
    const char *after = number_read(text, text + strlen(text), &value, &reason);
    if (after != text + strlen(text)) {
        fail_msg("%s: %s", text, reason ? reason : "not read to its end");
    }
    return value;
}

static void integers_are_exact(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"0", 0},
        {"7", 7},
        {"-7", -7},
        {"2147483647", INT32_MAX},
        {"-2147483648", INT32_MIN},
        {"2147483648", 2147483648},
        {"9007199254740993", 9007199254740993},
        {"999999999999999999", 999999999999999999},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775807", -INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        number_value value = read_whole(cases[i].text);
        assert_true(value.integer);
        assert_int_equal(value.i, cases[i].value);
        char text[NUMBER_TEXT_MAX];
        size_t n = number_write_integer(text, value.i);
        assert_int_equal(n, strlen(cases[i].text));
        assert_memory_equal(text, cases[i].text, n);
    }
}

static void other_numbers_are_the_nearest_double(void **state) {
    (void)state;
    static const char *const texts[] = {
        "0.0",
        "1.0",
        "1e0",
        "1E5",
        "1e+5",
        "1e-5",
        "0.1",
        "-0.1",
        "3.14159",
        "123456789.125",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999",
        "1e22",
        "1e23",
        "9007199254740993.0",
        "9007199254740992.5",
        "9007199254740993.00000000000000000000000000000000000000000000000000001",
        "0.500000000000000166533453693773481063544750213623046875",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.797693134862315807e308",
        "2.2250738585072014e-308",
        "2.2250738585072011e-308",
        "4.9e-324",
        "2.4703282292062327208e-324",
        "2.4703282292062328e-324",
        "1e-400",
        "1e-99999999999999999999",
        "0e99999999999999999999",
        "0.000000000000000000000000000000000000000000000000000001e54",
        "7.0420557077594588669468784357561207962098443483187940792729600000e+59",
        "6929495644600919.5",
        "3.2378839133029012895883524125015321748630094488e-19",
        "1090544144181609348671888949248",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        number_value value = read_whole(texts[i]);
        assert_false(value.integer);
        double expected = strtod(texts[i], NULL);
        if (memcmp(&value.d, &expected, sizeof expected) != 0) {
            fail_msg("%s: %.17g, not %.17g", texts[i], value.d, expected);
        }
    }
    number_value zero = read_whole("-0");
    assert_false(zero.integer);
    assert_true(zero.d == 0 && signbit(zero.d));
    assert_true(signbit(read_whole("-0.0e7").d));
}

static void what_is_no_number(void **state) {
    (void)state;
    static const char *const texts[] = {"",      "-",       "+1",  ".5",       "-.5",       "01",           "-01",   "00",
                                        "1.",    "1.e5",    "1e",  "1e+",      "1e-",       "abc",          "1e400", "-1e400",
                                        "1e309", "1.8e308", "NaN", "Infinity", "-Infinity", "1e99999999999"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        number_value value;
        const char *reason = NULL;
        if (number_read(texts[i], texts[i] + strlen(texts[i]), &value, &reason)) {
            fail_msg("%s was read", texts[i]);
        }
        assert_non_null(reason);
    }
}

static void reading_stops_after_the_number(void **state) {
    (void)state;
    number_value value;
    const char *reason;
    const char *text = "12,34";
    assert_ptr_equal(number_read(text, text + 5, &value, &reason), text + 2);
    assert_int_equal(value.i, 12);
    text = "1.5]";
    assert_ptr_equal(number_read(text, text + 4, &value, &reason), text + 3);
    text = "12345"; /* reading stops at the given end */
    assert_ptr_equal(number_read(text, text + 2, &value, &reason), text + 2);
    assert_int_equal(value.i, 12);
}

/* Two megabytes of digits, as in a hostile body. */
static void very_long_numbers(void **state) {
    (void)state;
    size_t n = 2 * 1024 * 1024;
    char *text = calloc(1, n + 1);
    number_value value;
    const char *reason;
    memset(text, '9', n);
    assert_null(number_read(text, text + n, &value, &reason));
    memcpy(text, "0.", 2);
    assert_ptr_equal(number_read(text, text + n, &value, &reason), text + n);
    assert_true(value.d == 1.0);
    memset(text, '0', n);
    memcpy(text, "0.", 2);
    text[n - 1] = '1';
    assert_ptr_equal(number_read(text, text + n, &value, &reason), text + n);
    assert_true(value.d == 0);
    memcpy(text, "9007199254740993.", 17); /* halfway between two doubles; only the last digit decides */
    assert_ptr_equal(number_read(text, text + n, &value, &reason), text + n);
    assert_true(value.d == 9007199254740994.0);
    text[n - 1] = '0';
    assert_ptr_equal(number_read(text, text + n, &value, &reason), text + n);
    assert_true(value.d == 9007199254740992.0);
    free(text);
}

static void doubles_look_as_in_javascript(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {149.95, "149.95"},
        {1069307.249, "1069307.249"},
        {100, "100"},
        {1e20, "100000000000000000000"},
        {123456789012345680000.0, "123456789012345680000"},
        {1e21, "1e+21"},
        {1.5e21, "1.5e+21"},
        {-1e300, "-1e+300"},
        {0.000001, "0.000001"},
        {0.0000015, "0.0000015"},
        {1e-7, "1e-7"},
        {1.25e-7, "1.25e-7"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {9007199254740992.0, "9007199254740992"},
        {9007199254740994.0, "9007199254740994"},
        {9223372036854775808.0, "9223372036854776000"},
        {5.684341886080801486968994140625e-14, "5.684341886080802e-14"}, /* a power of two: the gap below is half the gap above */
        {4.35, "4.35"},
        {2.0 / 3, "0.6666666666666666"},
        {1e23, "1e+23"},
        {-2.1686, "-2.1686"},
        {123456.789e-10, "0.0000123456789"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[NUMBER_TEXT_MAX + 1];
        text[number_write_double(text, cases[i].value)] = 0;
        assert_string_equal(text, cases[i].text);
    }
}

static double random_double(random_source *r) {
    for (;;) {
        uint64_t bits = random_u64(r);
        double value;
        switch (random_below(r, 6)) {
        case 0:
            bits &= 0xFFF0000000000000; /* powers of two */
            break;
        case 1:
            bits &= 0x800FFFFFFFFFFFFF; /* subnormal */
            break;
        case 2:
            value = (double)(int64_t)bits / 1e6;
            memcpy(&bits, &value, sizeof bits);
            break;
        case 3:
            value = (double)(int32_t)bits * 0.001;
            memcpy(&bits, &value, sizeof bits);
            break;
        case 4:
            value = (double)bits;
            memcpy(&bits, &value, sizeof bits);
            break;
        default:
            break;
        }
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) {
            return value;
        }
    }
}

static int count_digits(const char *text) {
    int n = 0, zeros = 0;
    for (const char *p = text; *p && *p != 'e'; p++) {
        if (*p >= '1' && *p <= '9') {
            n += zeros + 1;
            zeros = 0;
        } else if (*p == '0' && n > 0) {
            zeros++; /* trailing zeros are not counted */
        }
    }
    return n;
}

/* No text of fewer digits reads as the same double. */
static void assert_shortest(double value, const char *text) {
    int digits = count_digits(text);
    for (int precision = 1; precision < digits; precision++) {
        char shorter[64];
        snprintf(shorter, sizeof shorter, "%.*e", precision - 1, value);
        if (strtod(shorter, NULL) == value) {
            fail_msg("%s is longer than %s", text, shorter);
        }
    }
}

static void random_doubles_come_back(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 20240517);
    for (int i = 0; i < 200000; i++) {
        double value = random_double(&r);
        char text[NUMBER_TEXT_MAX + 1];
        size_t n = number_write_double(text, value);
        assert_in_range(n, 1, NUMBER_TEXT_MAX);
        text[n] = 0;
        number_value again = read_whole(text);
        double read = again.integer ? (double)again.i : again.d;
        if (read != value || strtod(text, NULL) != value) {
            fail_msg("%.17g became %s", value, text);
        }
        if (i % 16 == 0) {
            assert_shortest(value, text);
        }
    }
}

static void random_texts_read_as_strtod_reads_them(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 7);
    for (int i = 0; i < 100000; i++) {
        char text[128];
        snprintf(text, sizeof text, "%.*e", (int)random_below(&r, 30), random_double(&r));
        if (!isfinite(strtod(text, NULL))) {
            continue;
        }
        number_value value = read_whole(text);
        double expected = strtod(text, NULL);
        if (memcmp(&value.d, &expected, sizeof expected) != 0) {
            fail_msg("%s: %.17g, not %.17g", text, value.d, expected);
        }
    }
}

/* The exact midpoint of two doubles, and numbers just above and below it. */
static void middles_go_to_the_even_one(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 99);
    for (int i = 0; i < 2000; i++) {
        double low = ldexp((double)(random_u64(&r) >> 11 | 1ULL << 52), (int)random_below(&r, 200) - 150);
        double high = nextafter(low, INFINITY);
        char text[400];
        int n = snprintf(text, sizeof text, "%.300Lf", ((long double)low + (long double)high) / 2); /* exact in 64 bits of mantissa */
        assert_true(read_whole(text).d == strtod(text, NULL));
        text[n - 1] = '1';
        assert_true(read_whole(text).d == high);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_exact),         cmocka_unit_test(other_numbers_are_the_nearest_double),
        cmocka_unit_test(what_is_no_number),          cmocka_unit_test(reading_stops_after_the_number),
        cmocka_unit_test(very_long_numbers),          cmocka_unit_test(doubles_look_as_in_javascript),
        cmocka_unit_test(random_doubles_come_back),   cmocka_unit_test(random_texts_read_as_strtod_reads_them),
        cmocka_unit_test(middles_go_to_the_even_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
