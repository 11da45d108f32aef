/* Limits of the CQL parser: depth, memory, markers; and time linear in the text. The grammar is in tests/cql. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cql/parse.h"

static err parse(budget *b, slice text, char message[200]) {
    arena memory = arena_init_counted(b);
    const cql_statement *s;
    op o;
    op_init(&o, &memory, 0);
    err code = cql_parse(&o, text, &s);
    uint32_t n = o.detail_n < 199 ? o.detail_n : 199;
    memcpy(message, o.detail, n);
    message[n] = 0;
    arena_free(&memory);
    return code;
}

static void repeat(buf *out, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        buf_add_slice(out, slice_str(text));
    }
}

static void nesting_is_bounded(void **state) {
    static const char *const openings[] = {"[", "(", "{", "f(", "- ", "[1 + ", "(int) ", "{a: ", "{1: "};
    char message[200];
    (void)state;
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++) {
        buf text = buf_init(BUF_NO_LIMIT);
        buf_add_lit(&text, "INSERT INTO t (a) VALUES (");
        repeat(&text, openings[i], 100000);
        assert_int_equal(parse(NULL, buf_view(&text), message), E_BAD_QUERY);
        assert_non_null(strstr(message, "nested too deeply"));
        buf_free(&text);
    }
}

static void chains_are_bounded(void **state) {
    char message[200];
    buf text = buf_init(BUF_NO_LIMIT);
    (void)state;
    buf_add_lit(&text, "SELECT a");
    repeat(&text, " + 1", 100000);
    buf_add_lit(&text, " FROM t");
    assert_int_equal(parse(NULL, buf_view(&text), message), E_BAD_REQUEST);
    assert_string_equal(message, "The expression has too many operations");
    buf_free(&text);
}

static void markers_are_bounded(void **state) {
    char message[200];
    buf text = buf_init(BUF_NO_LIMIT);
    (void)state;
    buf_add_lit(&text, "SELECT * FROM t WHERE a IN (?");
    repeat(&text, ",?", CQL_MARKERS_MAX - 1);
    size_t n = text.n;
    buf_add_lit(&text, ")");
    assert_int_equal(parse(NULL, buf_view(&text), message), OK);
    text.n = n;
    buf_add_lit(&text, ",?)");
    assert_int_equal(parse(NULL, buf_view(&text), message), E_BAD_REQUEST);
    buf_free(&text);
}

static void memory_is_counted(void **state) {
    char message[200];
    buf text = buf_init(BUF_NO_LIMIT);
    (void)state;
    buf_add_lit(&text, "INSERT INTO t (a) VALUES ([1");
    repeat(&text, ",1", 200000);
    buf_add_lit(&text, "])");
    budget small = budget_init(NULL, 1 << 20), large = budget_init(NULL, 256 << 20);
    assert_int_equal(parse(&small, buf_view(&text), message), E_MEMORY);
    assert_true(small.overrun < 64 * 1024);
    assert_int_equal(parse(&large, buf_view(&text), message), OK);
    buf_free(&text);
}

static void endless_tokens_are_refused(void **state) {
    char message[200];
    buf text = buf_init(BUF_NO_LIMIT);
    (void)state;
    buf_add_lit(&text, "SELECT ");
    repeat(&text, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", LIMIT_CQL_BYTES / 64);
    assert_int_equal(parse(NULL, buf_view(&text), message), E_BAD_QUERY);
    text.n = LIMIT_CQL_BYTES;
    assert_int_equal(parse(NULL, buf_view(&text), message), E_BAD_QUERY); /* a name of 16 MB, and no FROM */
    assert_true(strlen(message) < 600);
    buf_free(&text);
}

static void texts_must_be_utf8(void **state) {
    char message[200];
    (void)state;
    assert_int_equal(parse(NULL, SLICE_LIT("SELECT * FROM t WHERE a = '\xFF'"), message), E_BAD_QUERY);
    assert_string_equal(message, "The statement is not valid UTF-8");
}

/* The message shows the end of a long text before the wrong token, cut between characters. */
static void long_texts_are_cut_in_messages(void **state) {
    char message[200];
    buf text = buf_init(BUF_NO_LIMIT);
    (void)state;
    buf_add_lit(&text, "SELECT a FROM t WHERE b = '");
    repeat(&text, "\u00E9", 100000);
    buf_add_lit(&text, "' nonsense");
    assert_int_equal(parse(NULL, buf_view(&text), message), E_BAD_QUERY);
    assert_non_null(strstr(message, "missing EOF at 'nonsense' (...\u00E9"));
    buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(chains_are_bounded),
        cmocka_unit_test(markers_are_bounded),
        cmocka_unit_test(memory_is_counted),
        cmocka_unit_test(endless_tokens_are_refused),
        cmocka_unit_test(texts_must_be_utf8),
        cmocka_unit_test(long_texts_are_cut_in_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
