/* Small text functions: base64, numbers in slices, log values, error messages; and the two clocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/date.h"
#include "base/log.h"
#include "base/op.h"
#include "base/percent.h"
#include "base/random.h"

/* ---- base64 ---- */

static void encodes_the_examples_of_rfc_4648(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        buf text = buf_init(100), bytes = buf_init(100);
        base64_encode(&text, slice_str(pairs[i][0]));
        assert_true(slice_eq(buf_view(&text), slice_str(pairs[i][1])));
        assert_true(base64_decode(&bytes, slice_str(pairs[i][1])));
        assert_true(slice_eq(buf_view(&bytes), slice_str(pairs[i][0])));
        buf_free(&text);
        buf_free(&bytes);
    }
}

static void random_bytes_come_back(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 3);
    for (int i = 0; i < 500; i++) {
        char bytes[100];
        size_t n = (size_t)random_below(&r, sizeof bytes);
        random_bytes(&r, bytes, n);
        buf text = buf_init(BUF_NO_LIMIT), back = buf_init(BUF_NO_LIMIT), rid = buf_init(BUF_NO_LIMIT);
        base64_encode(&text, slice_of(bytes, n));
        base64_encode_rid(&rid, slice_of(bytes, n));
        assert_true(base64_decode(&back, buf_view(&text)));
        assert_true(slice_eq(buf_view(&back), slice_of(bytes, n)));
        buf_clear(&back);
        assert_true(base64_decode_rid(&back, buf_view(&rid)));
        assert_true(slice_eq(buf_view(&back), slice_of(bytes, n)));
        assert_true(n == 0 || !memchr(rid.p, '/', rid.n));
        buf_free(&text);
        buf_free(&back);
        buf_free(&rid);
    }
}

static void base64_is_strict(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "Z",    "Zg",   "Zg=",  "Zg===", "Zh==", "Zm9=",     "=Zg=",  "Zg==Zg==",   "Zm9v\n", "Zm 9v",
        "Zm9-", "Zm9_", "====", "A===",  "AA=A", "Zm9v====", "Zm9vZ", "\xC3\xA9zz", "Zm9v ",  "Zm9v=",
    };
    buf out = buf_init(100);
    buf_add_lit(&out, "before");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(base64_decode(&out, slice_str(wrong[i])));
        assert_true(slice_eq(buf_view(&out), SLICE_LIT("before")));
    }
    assert_false(base64_decode(&out, slice_of("Zm9v\0AAA", 8)));
    assert_false(base64_decode_rid(&out, SLICE_LIT("AA/A")));
    assert_true(base64_decode(&out, SLICE_LIT("")));
    buf_free(&out);
}

static void base64_past_a_limit_leaves_the_buffer(void **state) {
    (void)state;
    buf out = buf_init(8);
    buf_add_lit(&out, "before");
    assert_false(base64_decode(&out, SLICE_LIT("QUJDREVG"))); /* six bytes, but room for two */
    assert_int_equal(out.n, 6);
    buf_free(&out);
}

/* ---- slices ---- */

static void unsigned_numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool good;
        uint64_t value;
    } cases[] = {
        {"0", true, 0},
        {"007", true, 7},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", false, 0},
        {"18446744073709551620", false, 0},
        {"99999999999999999999999", false, 0},
        {"", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1a", false, 0},
        {"0x1", false, 0},
        {"\xD9\xA1", false, 0}, /* an Arabic digit */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t value = 99;
        assert_int_equal(slice_to_u64(slice_str(cases[i].text), &value), cases[i].good);
        assert_true(value == cases[i].value);
    }
    uint64_t value;
    assert_false(slice_to_u64(slice_of("1\0", 2), &value));
}

static void signed_numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } cases[] = {
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775807", true, INT64_MAX},
        {"-0", true, 0},
        {"-1", true, -1},
        {"-9223372036854775809", false, 0},
        {"9223372036854775808", false, 0},
        {"-", false, 0},
        {"--1", false, 0},
        {"+1", false, 0},
        {"- 1", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = 99;
        assert_int_equal(slice_to_i64(slice_str(cases[i].text), &value), cases[i].good);
        assert_true(value == cases[i].value);
    }
}

static void order_equality_trimming(void **state) {
    (void)state;
    assert_true(slice_cmp(SLICE_LIT("a"), SLICE_LIT("ab")) < 0);
    assert_true(slice_cmp(SLICE_LIT("b"), SLICE_LIT("ab")) > 0);
    assert_true(slice_cmp(SLICE_LIT("\x80"), SLICE_LIT("\x7F")) > 0); /* compares unsigned bytes */
    assert_int_equal(slice_cmp(SLICE_EMPTY, SLICE_LIT("")), 0);
    assert_true(slice_starts(SLICE_LIT("abc"), SLICE_LIT("ab")));
    assert_true(slice_starts(SLICE_EMPTY, SLICE_EMPTY));
    assert_false(slice_starts(SLICE_LIT("ab"), SLICE_LIT("abc")));
    assert_true(slice_eq_nocase(SLICE_LIT("If-Match"), SLICE_LIT("if-mATCH")));
    assert_false(slice_eq_nocase(SLICE_LIT("a"), SLICE_LIT("b")));
    assert_true(slice_eq(slice_trim(SLICE_LIT(" \t\r\n x y \n")), SLICE_LIT("x y")));
    assert_int_equal(slice_trim(SLICE_LIT(" \n ")).n, 0);
    assert_int_equal(slice_skip(SLICE_LIT("abc"), 5).n, 0);
    assert_true(slice_eq(slice_skip(SLICE_LIT("abc"), 2), SLICE_LIT("c")));
}

/* ---- logs and errors ---- */

static void log_values_are_one_line(void **state) {
    (void)state;
    char into[64];
    assert_string_equal(log_value(into, sizeof into, "plain", 5), "\"plain\"");
    assert_string_equal(log_value(into, sizeof into, "a \"b\" \\", 7), "\"a \\\"b\\\" \\\\\"");
    assert_string_equal(log_value(into, sizeof into, "x\n\r\0\x7F", 5), "\"x\\x0a\\x0d\\x00\\x7f\"");
    assert_string_equal(log_value(into, sizeof into, NULL, 0), "\"\"");
}

static void log_values_are_cut_at_the_end(void **state) {
    (void)state;
    char text[200];
    for (size_t room = 0; room < 64; room++) {
        for (int c = 0; c < 256; c++) {
            char into[64];
            memset(into, 'z', sizeof into);
            memset(text, c, sizeof text);
            const char *value = log_value(into, room, text, sizeof text);
            assert_true(strlen(value) < (room ? room : 1));
            for (size_t i = room; i < sizeof into; i++) {
                assert_int_equal(into[i], 'z');
            }
        }
    }
}

static void log_levels(void **state) {
    (void)state;
    log_level level;
    assert_int_equal(log_level_parse("debug", &level), 0);
    assert_int_equal(level, LOG_DEBUG);
    assert_int_equal(log_level_parse("Debug", &level), -1);
    assert_int_equal(log_level_parse("", &level), -1);
    log_level before = log_get_level();
    log_set_level(LOG_ERROR);
    assert_int_equal(log_get_level(), LOG_ERROR);
    log_info("test", "must not be seen", "x=%d", 1);
    log_set_level(before);
}

static void sentences_are_cut_to_fit(void **state) {
    (void)state;
    static op o;
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    op_init(&o, NULL, 5);
    assert_int_equal(op_fail(&o, E_CONFLICT, "id %s", "7"), E_CONFLICT);
    assert_int_equal(o.detail_n, 4);
    assert_string_equal(o.detail, "id 7");
    assert_int_equal(op_fail(&o, E_BAD_REQUEST, "%s", text), E_BAD_REQUEST);
    assert_int_equal(o.detail_n, sizeof o.detail - 1);
    assert_int_equal(strlen(o.detail), sizeof o.detail - 1);
    op_charge(&o, 1.5);
    op_charge(&o, 2);
    assert_true(o.charge_ru == 3.5);
}

static void every_error_has_its_line(void **state) {
    (void)state;
    for (int code = 0; code < ERR_COUNT; code++) {
        const err_entry *entry = err_lookup((err)code);
        assert_non_null(entry->name);
        assert_non_null(entry->word);
        assert_in_range(entry->http_status, 200, 599);
    }
    assert_string_equal(err_lookup(E_STORE_FULL)->name, "E_STORE_FULL");
    assert_int_equal(err_lookup(E_STORE_FULL)->http_status, 503);
    assert_int_equal(err_lookup(E_KEY_MISMATCH)->http_substatus, 1001);
}

/* ---- clocks and random numbers ---- */

static void a_manual_clock_stands_still(void **state) {
    (void)state;
    clock_manual clock;
    clock_manual_init(&clock, 1000);
    assert_int_equal(clock_wall_ms(&clock.source), 1000);
    clock_manual_advance(&clock, 250);
    assert_int_equal(clock_wall_ms(&clock.source), 1250);
    assert_int_equal(clock_monotonic_us(&clock.source), 250000);
    assert_true(clock_wall_ms(&clock_system) > 1600000000000);
    int64_t before = clock_monotonic_us(&clock_system);
    assert_true(clock_monotonic_us(&clock_system) >= before);
}

static void a_seed_gives_the_same_numbers(void **state) {
    (void)state;
    random_source a, b;
    random_seed(&a, 5);
    random_seed(&b, 5);
    unsigned seen[10] = {0};
    for (int i = 0; i < 10000; i++) {
        assert_true(random_u64(&a) == random_u64(&b));
        uint64_t below = random_below(&a, 10);
        assert_true(below < 10);
        seen[below]++;
        random_below(&b, 10);
    }
    for (int i = 0; i < 10; i++) {
        assert_in_range(seen[i], 800, 1200);
    }
}

/* ---- dates, percent-encoding ---- */

static void iso_dates(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds;
    } good[] = {{"1970-01-01", 0},
                {"2026-11-16", 1794787200},
                {"2026-11-16T14:30Z", 1794839400},
                {"2026-11-16T14:30:07Z", 1794839407},
                {"2026-11-16T14:30:07.1Z", 1794839407},
                {"2026-11-16T14:30:07.1234567Z", 1794839407},
                {"2024-02-29T23:59:59Z", 1709251199},
                {"9999-12-31T23:59:59Z", 253402300799}};
    static const char *const bad[] = {"",
                                      "2026",
                                      "2026-11-1",
                                      "2026-11-16T",
                                      "2026-11-16T14Z",
                                      "2026-11-16T14:30",
                                      "2026-11-16T14:30:07",
                                      "2026-11-16T14:30:7Z",
                                      "2026-11-16T14:30:07.Z",
                                      "2026-11-16T14:30:07.12345678Z",
                                      "2026-11-16T14:30:07.1aZ",
                                      "2026-11-16t14:30:07Z",
                                      "2026-11-16 14:30:07Z",
                                      "2026-11-16T24:00:00Z",
                                      "2026-11-16T14:60Z",
                                      "2026-11-16T14:30:60Z",
                                      "2025-02-29",
                                      "2026-00-10",
                                      "2026-13-10",
                                      "2026-11-31",
                                      "1969-12-31",
                                      "+026-11-16",
                                      "2026-11-16T14:30:07ZZ",
                                      "2026-11-16T14:30:07+00:00",
                                      "2026/11/16"};
    int64_t seconds;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(date_parse_iso(slice_str(good[i].text), &seconds));
        assert_true(seconds == good[i].seconds);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(date_parse_iso(slice_str(bad[i]), &seconds));
    }
}

static void percent_decoding(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"", ""},       {"a+b", "a+b"}, {"%41%6a%6A", "Ajj"}, {"%25", "%"},   {"x%00", "x"},
                                           {"100%", NULL}, {"%4", NULL},   {"%4g", NULL},        {"%%41", NULL}, {"a%C3%B1", "a\xC3\xB1"}};
    char room[32];
    size_t n;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        bool good = percent_decode(slice_str(pairs[i][0]), room, &n);
        assert_int_equal(good, pairs[i][1] != NULL);
        assert_true(!good || slice_eq(slice_of(room, n), slice_of(pairs[i][1], strlen(pairs[i][1]) + (i == 4))));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_the_examples_of_rfc_4648),
        cmocka_unit_test(random_bytes_come_back),
        cmocka_unit_test(base64_is_strict),
        cmocka_unit_test(base64_past_a_limit_leaves_the_buffer),
        cmocka_unit_test(unsigned_numbers),
        cmocka_unit_test(signed_numbers),
        cmocka_unit_test(order_equality_trimming),
        cmocka_unit_test(log_values_are_one_line),
        cmocka_unit_test(log_values_are_cut_at_the_end),
        cmocka_unit_test(log_levels),
        cmocka_unit_test(sentences_are_cut_to_fit),
        cmocka_unit_test(every_error_has_its_line),
        cmocka_unit_test(a_manual_clock_stands_still),
        cmocka_unit_test(iso_dates),
        cmocka_unit_test(percent_decoding),
        cmocka_unit_test(a_seed_gives_the_same_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
