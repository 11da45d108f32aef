/* Regular expressions: modifiers, groups, why a pattern is refused, bounds of work, one expression in several threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>

#include "text/regex.h"

static arena memory;

static int set_up(void **state) {
    (void)state;
    memory = arena_init();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

static const text_regex *compiled(const char *pattern, const char *modifiers) {
    const text_regex *r = NULL;
    slice reason;
    if (!text_regex_compile(&memory, slice_str(pattern), slice_str(modifiers), &r, &reason)) {
        fail_msg("%s: %.*s", pattern, (int)reason.n, reason.p);
    }
    return r;
}

static bool found(const char *pattern, const char *modifiers, const char *text) {
    uint64_t steps = 1000000;
    return text_regex_find(compiled(pattern, modifiers), slice_str(text), 0, NULL, &steps) == REGEX_YES;
}

static void modifiers(void **state) {
    (void)state;
    assert_true(found("^b", "m", "a\nb"));
    assert_false(found("^b", "", "a\nb"));
    assert_true(found("É", "i", "é"));
    assert_false(found("É", "", "é"));
    assert_true(found("a.b", "s", "a\nb"));
    assert_false(found("a.b", "", "a\nb"));
    assert_true(found("a b # both", "x", "ab"));
    assert_true(found("", "", ""));
}

static void groups(void **state) {
    (void)state;
    slice g[TEXT_REGEX_GROUPS_MAX];
    uint64_t steps = 1000000;
    const text_regex *r = compiled("(a)|(b+)(c)?", "");
    assert_int_equal(text_regex_groups(r), 3);
    assert_int_equal(text_regex_find(r, SLICE_LIT("xxbb"), 0, g, &steps), REGEX_YES);
    assert_true(slice_eq(g[0], SLICE_LIT("bb")) && slice_eq(g[2], SLICE_LIT("bb")));
    assert_null(g[1].p);
    assert_null(g[3].p);
    assert_int_equal(text_regex_find(r, SLICE_LIT("xxbb"), 3, g, &steps), REGEX_YES);
    assert_true(slice_eq(g[0], SLICE_LIT("b")));
}

/* A pattern with more groups than are reported. */
static void more_groups_than_reported(void **state) {
    (void)state;
    char pattern[512] = "";
    slice g[TEXT_REGEX_GROUPS_MAX];
    for (int i = 0; i < 100; i++) {
        strcat(pattern, "(a)");
    }
    strcat(pattern, "?");
    char text[101] = "";
    memset(text, 'a', 100);
    const text_regex *r = compiled(pattern, "");
    assert_int_equal(text_regex_groups(r), TEXT_REGEX_GROUPS_MAX - 1);
    assert_int_equal(text_regex_find(r, slice_of(text, 100), 0, g, NULL), REGEX_YES);
    assert_int_equal(g[0].n, 100);
    assert_true(g[TEXT_REGEX_GROUPS_MAX - 1].p == text + TEXT_REGEX_GROUPS_MAX - 2);
}

static void refusals(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"(", "", "missing closing parenthesis at offset 1"},
        {"a", "g", "unknown option or verb"},
        {"(*UTF)a", "", "unknown option or verb"},
        {"\\C", "", "using \\C is disabled by the application at offset 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const text_regex *r;
        slice reason = SLICE_EMPTY;
        assert_false(text_regex_compile(&memory, slice_str(cases[i][0]), slice_str(cases[i][1]), &r, &reason));
        if (!slice_eq(reason, slice_str(cases[i][2]))) {
            fail_msg("%s: %.*s", cases[i][0], (int)reason.n, reason.p);
        }
    }
}

static void slow_patterns_end(void **state) {
    (void)state;
    static const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!";
    const text_regex *r = compiled("^(a+)+$", "");
    uint64_t steps = 1000 * 1000 * 1000, few = 1000;
    assert_int_equal(text_regex_find(r, slice_str(text), 0, NULL, &steps), REGEX_TOO_LONG);
    assert_true(steps > 0 && steps < 1000 * 1000 * 1000);
    for (int i = 0; i < 3; i++) { /* and after the first slow search the thread's own time is measured */
        uint64_t before = steps;
        assert_int_equal(text_regex_find(r, slice_str(text), 0, NULL, &steps), REGEX_TOO_LONG);
        assert_true(before - steps > 10000); /* a million backtracks take more than 0.1 ms */
    }
    assert_int_equal(text_regex_find(r, slice_str(text), 0, NULL, &few), REGEX_TOO_LONG);
    assert_int_equal(few, 0);
}

static void *find_often(void *regex) {
    for (int i = 0; i < 20000; i++) {
        char text[32];
        slice g[TEXT_REGEX_GROUPS_MAX];
        int n = snprintf(text, sizeof text, "x%dy", i);
        if (text_regex_find(regex, slice_of(text, (size_t)n), 0, g, NULL) != REGEX_YES || g[1].n != (size_t)n - 2) {
            return regex;
        }
    }
    return NULL;
}

static void one_expression_in_several_threads(void **state) {
    (void)state;
    const text_regex *r = compiled("x([0-9]+)y", "");
    pthread_t threads[3];
    void *failed;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, find_often, (void *)(uintptr_t)r), 0);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(modifiers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(groups, set_up, tear_down),
        cmocka_unit_test_setup_teardown(more_groups_than_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refusals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(slow_patterns_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_expression_in_several_threads, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
