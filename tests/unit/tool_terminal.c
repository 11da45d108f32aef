/* Untrusted text in a terminal: cut to its columns, and harmless. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tool/terminal.h"

static char *added(const char *text, size_t n, size_t columns, size_t *used) {
    buf out = buf_init(BUF_NO_LIMIT);
    *used = text_add(&out, slice_of(text, n), columns);
    buf_add_byte(&out, '\0');
    return out.p;
}

static void expect(const char *text, size_t columns, const char *shown, size_t width) {
    size_t used;
    char *got = added(text, strlen(text), columns, &used);
    assert_string_equal(got, shown);
    assert_int_equal(used, width);
    free(got);
}

static void what_fits_is_whole(void **state) {
    (void)state;
    expect("", 5, "", 0);
    expect("abc", 5, "abc", 3);
    expect("abcde", 5, "abcde", 5);
    expect("ñandú", 5, "ñandú", 5);
    expect("日本", 4, "日本", 4);
    expect("e\xCC\x81", 1, "e\xCC\x81", 1); /* e and a combining accent */
}

static void what_does_not_fit_is_cut(void **state) {
    (void)state;
    expect("abcdef", 5, "abcd…", 5);
    expect("abc", 1, "…", 1);
    expect("abc", 0, "", 0);
    expect("日本語", 5, "日本…", 5);
    expect("日本語", 4, "日…", 3); /* half a character is not shown */
}

static void nothing_steers_the_terminal(void **state) {
    (void)state;
    expect("a\x1b[2Jb\r\n\tc\x07", 20, "a?[2Jb???c?", 11);
    expect("\x7f", 5, "?", 1);
    expect("\xC2\x9B"
           "31m",
           5, "?31m", 4);                  /* CSI in one character */
    expect("x\xE2\x80\xAEy", 5, "x?y", 3); /* right-to-left override */
    expect("\xEF\xBB\xBFz", 5, "?z", 2);   /* byte order mark */
    size_t used;
    char *zero = added("a\0b", 3, 5, &used);
    assert_string_equal(zero, "a?b");
    free(zero);
}

static void what_is_no_text_is_shown_byte_by_byte(void **state) {
    (void)state;
    expect("\xFF\xFE", 5, "??", 2);
    expect("a\xE2\x82", 5, "a??", 3);
    expect("\xC0\x80", 5, "?", 1);       /* a zero byte, as BSON keys have it */
    expect("\xED\xA0\x80", 5, "???", 3); /* a surrogate */
    expect("\xF4\x90\x80\x80", 5, "????", 4);
}

/* With any bytes, no control character is written and the columns are kept. */
static void random_bytes_are_harmless(void **state) {
    uint32_t seed = 12345;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[24];
        size_t used, n = (size_t)(seed % 24), columns = (size_t)(seed >> 8) % 12;
        for (size_t i = 0; i < sizeof text; i++) {
            seed = seed * 1664525 + 1013904223;
            text[i] = (char)(seed >> 24);
        }
        char *got = added(text, n, columns, &used);
        assert_true(used <= columns);
        for (const char *c = got; *c; c++) {
            assert_true((unsigned char)*c >= 0x20 && *c != 0x7F);
        }
        free(got);
    }
}

static void cells_are_filled_up(void **state) {
    buf out = buf_init(BUF_NO_LIMIT);
    (void)state;
    text_add_left(&out, SLICE_LIT("ab"), 4);
    buf_add_byte(&out, '|');
    text_add_right(&out, SLICE_LIT("ab"), 4);
    buf_add_byte(&out, '|');
    text_add_right(&out, SLICE_LIT("abcdef"), 4);
    buf_add_byte(&out, '|');
    text_add_left(&out, SLICE_LIT("日本語"), 4);
    buf_add_lit(&out, "|\0");
    assert_string_equal(out.p, "ab  |  ab|abc…|日… |");
    buf_free(&out);
}

static void numbers_have_commas(void **state) {
    static const struct {
        double value;
        const char *shown;
    } cases[] = {{0, "0"},     {7, "7"},        {7.25, "7.2"},     {99.96, "100.0"},       {100.4, "100"},
                 {999, "999"}, {1000, "1,000"}, {12345, "12,345"}, {1234567, "1,234,567"}, {1e9, "1,000,000,000"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf out = buf_init(BUF_NO_LIMIT);
        text_add_number(&out, cases[i].value);
        buf_add_byte(&out, '\0');
        assert_string_equal(out.p, cases[i].shown);
        buf_free(&out);
    }
}

static void expect_marked(const char *text, size_t start, size_t end, const char *shown) {
    buf out = buf_init(BUF_NO_LIMIT);
    text_add_marked(&out, slice_str(text), start, end);
    buf_add_byte(&out, '\0');
    assert_string_equal(out.p, shown);
    buf_free(&out);
}

static void a_place_is_marked(void **state) {
    (void)state;
    expect_marked("SELECT * FORM c", 9, 13, "SELECT * FORM c\n         ^^^^\n");
    expect_marked("SELECT", 6, 6, "SELECT\n      ^\n");
    expect_marked("", 0, 0, "\n^\n");
    expect_marked("a\nbc d\ne", 3, 4, "bc d\n ^\n");
    expect_marked("日本 =", 3, 4, "日本 =\n     ^\n");                       /* two columns each */
    expect_marked("\xF0\x9F\x98\x80 =", 3, 4, "\xF0\x9F\x98\x80 =\n   ^\n"); /* two units of UTF-16 */
    expect_marked("ab\ncd", 1, 5, "ab\n ^\n");                               /* continues on the next line */
    expect_marked("ab", 100, 200, "ab\n  ^\n");
    expect_marked("a\x1b[2Jb", 1, 2, "a?[2Jb\n ^\n");
}

static void expect_count(double n, const char *shown) {
    buf out = buf_init(BUF_NO_LIMIT);
    text_add_count(&out, n, "item");
    buf_add_byte(&out, '\0');
    assert_string_equal(out.p, shown);
    buf_free(&out);
}

static void one_is_singular(void **state) {
    (void)state;
    expect_count(0, "0 items");
    expect_count(1, "1 item");
    expect_count(1234, "1,234 items");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_is_marked),           cmocka_unit_test(one_is_singular),
        cmocka_unit_test(what_fits_is_whole),          cmocka_unit_test(what_does_not_fit_is_cut),
        cmocka_unit_test(nothing_steers_the_terminal), cmocka_unit_test(what_is_no_text_is_shown_byte_by_byte),
        cmocka_unit_test(random_bytes_are_harmless),   cmocka_unit_test(cells_are_filled_up),
        cmocka_unit_test(numbers_have_commas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
