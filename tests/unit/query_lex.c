/* Tokens: names, keywords, numbers and strings, their spans, and what is invalid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "query/lex.h"

static arena memory;

static int setup(void **state) {
    (void)state;
    memory = arena_init();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

/* Collects a text's tokens, and checks that they do not overlap. */
static size_t tokens(slice text, query_token *list, size_t room) {
    query_lexer l = {.text = text};
    uint32_t last = 0;
    for (size_t n = 0; n < room; n++) {
        assert_int_equal(query_lex_next(&l, &list[n]), LEX_OK);
        assert_true(list[n].span.start >= last && list[n].span.end <= text.n && list[n].span.start <= list[n].span.end);
        last = list[n].span.end;
        if (list[n].kind == TOKEN_END) {
            assert_int_equal(list[n].span.start, text.n);
            return n;
        }
    }
    fail_msg("more tokens than expected");
    return 0;
}

static query_token only(const char *text) {
    query_token list[4];
    size_t n = tokens(slice_str(text), list, 4);
    if (n != 1 || list[0].span.end - list[0].span.start != strlen(text)) {
        fail_msg("'%s' is not one token", text);
    }
    return list[0];
}

static void words_are_known_in_any_case(void **state) {
    (void)state;
    static const struct {
        const char *text;
        query_token_kind kind;
    } cases[] = {
        {"SELECT", TOKEN_SELECT},
        {"select", TOKEN_SELECT},
        {"SeLeCt", TOKEN_SELECT},
        {"FROM", TOKEN_FROM},
        {"where", TOKEN_WHERE},
        {"Group", TOKEN_GROUP},
        {"by", TOKEN_BY},
        {"order", TOKEN_ORDER},
        {"asc", TOKEN_ASC},
        {"desc", TOKEN_DESC},
        {"as", TOKEN_AS},
        {"in", TOKEN_IN},
        {"join", TOKEN_JOIN},
        {"and", TOKEN_AND},
        {"or", TOKEN_OR},
        {"not", TOKEN_NOT},
        {"between", TOKEN_BETWEEN},
        {"like", TOKEN_LIKE},
        {"escape", TOKEN_ESCAPE},
        {"exists", TOKEN_EXISTS},
        {"array", TOKEN_ARRAY},
        {"top", TOKEN_TOP},
        {"distinct", TOKEN_DISTINCT},
        {"value", TOKEN_VALUE},
        {"offset", TOKEN_OFFSET},
        {"limit", TOKEN_LIMIT},
        {"left", TOKEN_LEFT},
        {"right", TOKEN_RIGHT},
        {"true", TOKEN_TRUE},
        {"false", TOKEN_FALSE},
        {"null", TOKEN_NULL},
        {"undefined", TOKEN_UNDEFINED},
        {"udf", TOKEN_UDF},
        {"OVER", TOKEN_RESERVED},
        {"case", TOKEN_RESERVED},
        {"Cast", TOKEN_RESERVED},
        {"convert", TOKEN_RESERVED},
        {"cross", TOKEN_RESERVED},
        {"else", TOKEN_RESERVED},
        {"end", TOKEN_RESERVED},
        {"for", TOKEN_RESERVED},
        {"having", TOKEN_RESERVED},
        {"inner", TOKEN_RESERVED},
        {"insert", TOKEN_RESERVED},
        {"into", TOKEN_RESERVED},
        {"is", TOKEN_RESERVED},
        {"on", TOKEN_RESERVED},
        {"outer", TOKEN_RESERVED},
        {"set", TOKEN_RESERVED},
        {"then", TOKEN_RESERVED},
        {"update", TOKEN_RESERVED},
        {"when", TOKEN_RESERVED},
        {"with", TOKEN_RESERVED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(only(cases[i].text).kind, cases[i].kind);
        assert_false(query_lex_is_name(slice_str(cases[i].text)));
    }
}

static void other_words_are_names(void **state) {
    (void)state;
    static const char *const names[] = {
        "c",       "_",        "_ts",   "a1",   "Selected", "SELECTED", "selec", "fro",    "ande",    "an",        "rank",  "RANK",
        "let",     "ALL",      "first", "LAST", "count",    "TRUE",     "True",  "NULL",   "UDF",     "Undefined", "FALSE", "zz",
        "a_b_c_1", "wherever", "withi", "wit",  "inn",      "i",        "orde",  "orders", "_select", "x0x",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(only(names[i]).kind, TOKEN_NAME);
        assert_true(query_lex_is_name(slice_str(names[i])));
    }
    static const char *const others[] = {"", "1a", "a b", "a-b", "a.b", "@a", "$1", "a$", "\"a\"", "é", "a\n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(query_lex_is_name(slice_str(others[i])));
    }
    assert_false(query_lex_is_name(SLICE_LIT("a\0")));
}

static void marks_are_as_long_as_can_be(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        query_token_kind kinds[8];
    } cases[] = {
        {"< <= <> <<", 4, {TOKEN_LESS, TOKEN_LESS_EQUAL, TOKEN_NOT_EQUAL, TOKEN_SHIFT_LEFT}},
        {"> >= >> >>>", 4, {TOKEN_GREATER, TOKEN_GREATER_EQUAL, TOKEN_SHIFT_RIGHT, TOKEN_SHIFT_RIGHT_ZERO}},
        {">>>>", 2, {TOKEN_SHIFT_RIGHT_ZERO, TOKEN_GREATER}},
        {"<<<", 2, {TOKEN_SHIFT_LEFT, TOKEN_LESS}},
        {"= != ==", 4, {TOKEN_EQUAL, TOKEN_NOT_EQUAL, TOKEN_EQUAL, TOKEN_EQUAL}},
        {"| || |||", 4, {TOKEN_PIPE, TOKEN_CONCAT, TOKEN_CONCAT, TOKEN_PIPE}},
        {"? ?? ???", 4, {TOKEN_QUESTION, TOKEN_COALESCE, TOKEN_COALESCE, TOKEN_QUESTION}},
        {"()[]{}", 6, {TOKEN_LEFT_PAREN, TOKEN_RIGHT_PAREN, TOKEN_LEFT_BRACKET, TOKEN_RIGHT_BRACKET, TOKEN_LEFT_BRACE, TOKEN_RIGHT_BRACE}},
        {".,:*/%", 6, {TOKEN_DOT, TOKEN_COMMA, TOKEN_COLON, TOKEN_STAR, TOKEN_SLASH, TOKEN_PERCENT}},
        {"+ - & ^ ~", 5, {TOKEN_PLUS, TOKEN_MINUS, TOKEN_AMPERSAND, TOKEN_CARET, TOKEN_TILDE}},
        {"c.a", 3, {TOKEN_NAME, TOKEN_DOT, TOKEN_NAME}},
        {"c.5", 2, {TOKEN_NAME, TOKEN_NUMBER}},
        {"1-1", 3, {TOKEN_NUMBER, TOKEN_MINUS, TOKEN_NUMBER}},
        {"1 - -1", 4, {TOKEN_NUMBER, TOKEN_MINUS, TOKEN_MINUS, TOKEN_NUMBER}},
        {"1--1", 1, {TOKEN_NUMBER}},
        {"a-- b\nc", 2, {TOKEN_NAME, TOKEN_NAME}},
        {"a-- b\rc", 2, {TOKEN_NAME, TOKEN_NAME}},
        {"-- all of it", 0, {TOKEN_END}},
        {"--\n--\n", 0, {TOKEN_END}},
        {"a --'\n'b'", 2, {TOKEN_NAME, TOKEN_STRING}},
        {"\t\v\f\r\n ", 0, {TOKEN_END}},
        {"\xEF\xBB\xBFselect\xC2\xA0*", 2, {TOKEN_SELECT, TOKEN_STAR}},
        {"@a@b", 2, {TOKEN_PARAMETER, TOKEN_PARAMETER}},
        {"@select", 1, {TOKEN_PARAMETER}},
        {"'a''b'", 2, {TOKEN_STRING, TOKEN_STRING}},
        {"a\"b\"c", 3, {TOKEN_NAME, TOKEN_STRING, TOKEN_NAME}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        query_token list[16];
        assert_int_equal(tokens(slice_str(cases[i].text), list, 16), cases[i].n);
        for (size_t k = 0; k < cases[i].n; k++) {
            assert_int_equal(list[k].kind, cases[i].kinds[k]);
        }
    }
}

/* ---- numbers ---- */

static query_value number(const char *text) {
    query_value v;
    assert_int_equal(only(text).kind, TOKEN_NUMBER);
    assert_true(query_lex_number(&memory, slice_str(text), &v));
    assert_int_equal(v.type, TYPE_NUMBER);
    return v;
}

static void whole_numbers_are_exact(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"0", 0},
        {"7", 7},
        {"007", 7},
        {"00", 0},
        {"000000000000000000000000000001", 1},
        {"0x0", 0},
        {"0x10", 16},
        {"0XfF", 255},
        {"0xdeadBEEF", 0xdeadbeef},
        {"0x0000000000000000000000000000000000001", 1},
        {"2147483648", 2147483648},
        {"9007199254740993", 9007199254740993},
        {"9223372036854775807", INT64_MAX},
        {"0x7FFFFFFFFFFFFFFF", INT64_MAX},
        {"0xe", 14},
        {"0x1e5", 0x1e5},
        {"1.", 1},
        {"001.", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        query_value v = number(cases[i].text);
        assert_true(v.is_integer);
        assert_int_equal(v.integer, cases[i].value);
        assert_true(v.number == (double)cases[i].value);
    }
}

static void others_are_the_nearest_double(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"0.5", 0.5},
        {".5", 0.5},
        {"1.0", 1},
        {"1.5e3", 1500},
        {"1e3", 1000},
        {"1E+3", 1000},
        {"1e-3", 0.001},
        {"1.e2", 100},
        {".5E1", 5},
        {"00.25", 0.25},
        {"007.50", 7.5},
        {"17.25", 17.25},
        {"1e308", 1e308},
        {"5e-324", 5e-324},
        {"1e-400", 0},
        {"18446744073709551615", 18446744073709551616.0},
        {"9223372036854775808", 9223372036854775808.0},
        {"0x8000000000000000", 9223372036854775808.0},
        {"0xFFFFFFFFFFFFFFFF", 18446744073709551616.0},
        {"0x10000000000000000", 18446744073709551616.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        query_value v = number(cases[i].text);
        assert_false(v.is_integer);
        assert_true(v.number == cases[i].value);
    }
}

static void numbers_too_large_are_none(void **state) {
    (void)state;
    char digits[400] = "0x";
    memset(digits + 2, 'f', sizeof digits - 3);
    static const char *const texts[] = {"1e309", "1e99999999999", "123456789e301"};
    query_value v;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(only(texts[i]).kind, TOKEN_NUMBER);
        assert_false(query_lex_number(&memory, slice_str(texts[i]), &v));
    }
    assert_int_equal(only(digits).kind, TOKEN_NUMBER);
    assert_false(query_lex_number(&memory, slice_str(digits), &v));
}

/* ---- strings ---- */

static void strings_are_decoded(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *value;
    } cases[] = {
        {"''", ""},
        {"\"\"", ""},
        {"'a'", "a"},
        {"\"a b\"", "a b"},
        {"'\"'", "\""},
        {"\"'\"", "'"},
        {"'it\\'s'", "it's"},
        {"\"a\\\"b\"", "a\"b"},
        {"'a\\\\b'", "a\\b"},
        {"'\\/\\b\\f\\n\\r\\t'", "/\b\f\n\r\t"},
        {"'\\u0041'", "A"},
        {"'\\u00e9\\u00E9'", "éé"},
        {"'\\u20AC'", "€"},
        {"'\\ud83d\\ude00!'", "😀!"},
        {"'\\ud83d'", "\xEF\xBF\xBD"},
        {"'\\ude00x'", "\xEF\xBF\xBDx"},
        {"'\\ud83d\\u0041'", "\xEF\xBF\xBD"
                             "A"},
        {"'\\ud83d\\ud83d\\ude00'", "\xEF\xBF\xBD😀"},
        {"'\\ud83d\\n'", "\xEF\xBF\xBD\n"},
        {"'é€😀'", "é€😀"},
        {"'line\nline\ttab'", "line\nline\ttab"},
        {"'-- no comment'", "-- no comment"},
        {"'; no end'", "; no end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(only(cases[i].text).kind, TOKEN_STRING);
        slice value = query_lex_string(&memory, slice_str(cases[i].text));
        assert_int_equal(value.n, strlen(cases[i].value));
        assert_memory_equal(value.p, cases[i].value, value.n);
    }
    slice zero = query_lex_string(&memory, SLICE_LIT("'a\\u0000b'"));
    assert_true(slice_eq(zero, SLICE_LIT("a\0b")));
    slice plain = SLICE_LIT("'plain'");
    assert_ptr_equal(query_lex_string(&memory, plain).p, plain.p + 1);
}

/* ---- invalid tokens ---- */

static void mistakes_cover_what_is_wrong(void **state) {
    (void)state;
    static const struct {
        const char *text;
        query_lex_result result;
        uint32_t n;
    } cases[] = {
        {";", LEX_BAD_TOKEN, 1},
        {"; c", LEX_BAD_TOKEN, 1},
        {"$1", LEX_BAD_TOKEN, 1},
        {"#", LEX_BAD_TOKEN, 1},
        {"!", LEX_BAD_TOKEN, 1},
        {"! =", LEX_BAD_TOKEN, 1},
        {"@", LEX_BAD_TOKEN, 1},
        {"@1", LEX_BAD_TOKEN, 1},
        {"@ a", LEX_BAD_TOKEN, 1},
        {"`a`", LEX_BAD_TOKEN, 1},
        {"\\", LEX_BAD_TOKEN, 1},
        {"é", LEX_BAD_TOKEN, 2},
        {"€uro", LEX_BAD_TOKEN, 3},
        {"😀", LEX_BAD_TOKEN, 4},
        {"\x01", LEX_BAD_TOKEN, 1},
        {"\x7F", LEX_BAD_TOKEN, 1},
        {"\xFF", LEX_BAD_TOKEN, 1},
        {"\xC3", LEX_BAD_TOKEN, 1},
        {"\xC3(", LEX_BAD_TOKEN, 1},
        {"\xED\xA0\x80", LEX_BAD_TOKEN, 1},
        {"\xC0\x80", LEX_BAD_TOKEN, 1},
        {"12a", LEX_BAD_NUMBER, 3},
        {"1_000", LEX_BAD_NUMBER, 5},
        {"0x", LEX_BAD_NUMBER, 2},
        {"0xg", LEX_BAD_NUMBER, 3},
        {"1e", LEX_BAD_NUMBER, 2},
        {"1e+", LEX_BAD_NUMBER, 2},
        {"1.5.a", LEX_OK, 3},
        {"0.E", LEX_BAD_NUMBER, 3},
        {"3a63f3c5-1", LEX_BAD_NUMBER, 8},
        {"1.x", LEX_BAD_NUMBER, 3},
        {"'", LEX_BAD_STRING, 1},
        {"\"", LEX_BAD_STRING, 1},
        {"'a", LEX_BAD_STRING, 2},
        {"'a\\'", LEX_BAD_STRING, 4},
        {"'a\\", LEX_BAD_STRING, 3},
        {"'a\"", LEX_BAD_STRING, 3},
        {"'\\d'", LEX_BAD_STRING, 4},
        {"'\\u12'", LEX_BAD_STRING, 6},
        {"'\\u123g' b", LEX_BAD_STRING, 8},
        {"'\\x41'", LEX_BAD_STRING, 6},
        {"'\xFF' x", LEX_BAD_STRING, 3},
        {"'\xC3'", LEX_BAD_STRING, 3},
        {"'\\\xFF'", LEX_BAD_STRING, 4},
        {"'\xF4\x90\x80\x80'", LEX_BAD_STRING, 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        query_lexer l = {.text = slice_str(cases[i].text)};
        query_token token;
        if (query_lex_next(&l, &token) != cases[i].result || token.span.end != cases[i].n) {
            fail_msg("case %zu: '%s' up to %u", i, cases[i].text, token.span.end);
        }
    }
    query_lexer l = {.text = SLICE_LIT("\0")};
    query_token token;
    assert_int_equal(query_lex_next(&l, &token), LEX_BAD_TOKEN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(words_are_known_in_any_case, setup, teardown),
        cmocka_unit_test_setup_teardown(other_words_are_names, setup, teardown),
        cmocka_unit_test_setup_teardown(marks_are_as_long_as_can_be, setup, teardown),
        cmocka_unit_test_setup_teardown(whole_numbers_are_exact, setup, teardown),
        cmocka_unit_test_setup_teardown(others_are_the_nearest_double, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_too_large_are_none, setup, teardown),
        cmocka_unit_test_setup_teardown(strings_are_decoded, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes_cover_what_is_wrong, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
