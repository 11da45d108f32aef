/* LIKE: a table, comparison with a slow and simple matcher, and patterns that are made to be slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/clock.h"
#include "base/random.h"
#include "query/like.h"

static void patterns_match(void **state) {
    static const struct {
        const char *pattern, *escape, *text;
        bool matches;
    } cases[] = {
        {"abc", "", "abc", true},
        {"abc", "", "abcd", false},
        {"abc", "", "ABC", false},
        {"", "", "", true},
        {"", "", "a", false},
        {"%", "", "", true},
        {"%", "", "anything", true},
        {"%%", "", "", true},
        {"a%", "", "abc", true},
        {"a%", "", "a", true},
        {"a%", "", "ba", false},
        {"%c", "", "abc", true},
        {"%c", "", "abcd", false},
        {"%driver%", "", "a screwdriver set", true},
        {"%driver%", "", "a screw", false},
        {"fruit%", "", "fruits", true},
        {"%Road", "", "Long Road", true},
        {"%SO%PS%", "", "xSOyyPSz", true},
        {"%SO%PS%", "", "xPSyySOz", false},
        {"%SO_PS%", "", "SOAPS", true},
        {"%SO_PS%", "", "SOxPS", true},
        {"%SO_PS%", "", "SOxxPS", false},
        {"%SO[t-z]PS%", "", "aSOuPSb", true},
        {"%SO[t-z]PS%", "", "aSOsPSb", false},
        {"%SO[^abc]PS%", "", "SOdPS", true},
        {"%SO[^abc]PS%", "", "SOaPS", false},
        {"_", "", "a", true},
        {"_", "", "", false},
        {"_", "", "ab", false},
        {"_", "", "é", true},
        {"_", "", "😀", true},
        {"a_c", "", "a😀c", true},
        {"%_", "", "", false},
        {"%_", "", "é", true},
        {"_%_", "", "a", false},
        {"_%_", "", "ab", true},
        {"%a%b%c%", "", "xaxbxcx", true},
        {"%a%b%c%", "", "xcxbxax", false},
        {"%ab%ab", "", "ab", false},
        {"%ab%ab", "", "abab", true},
        {"a%a", "", "a", false},
        {"a%a", "", "aa", true},
        {"%aab%", "", "aaab", true},
        {"[a-c][0-9]", "", "b7", true},
        {"[a-c][0-9]", "", "d7", false},
        {"[é-ü]", "", "ö", true},
        {"[é-ü]", "", "a", false},
        {"[^é]", "", "é", false},
        {"[^é]", "", "e", true},
        {"[😀]x", "", "😀x", true},
        {"[a-]", "", "-", true},
        {"[-a]", "", "-", true},
        {"[z-a]", "", "m", false},
        {"[]", "", "", false},
        {"[]", "", "a", false},
        {"[^]", "", "a", true},
        {"20-30[%]", "", "20-30%", true},
        {"20-30[%]", "", "20-30x", false},
        {"[_]n", "", "_n", true},
        {"[_]n", "", "an", false},
        {"[ [ ]", "", "[", true},
        {"[[]", "", "[", true},
        {"]", "", "]", true},
        {"[abc", "", "[abc", true},
        {"[abc", "", "a", false},
        {"[[[[", "", "[[[[", true},
        {"%20^%%", "^", "only 20% off", true},
        {"%20^%%", "^", "only 200 off", false},
        {"a!_b", "!", "a_b", true},
        {"a!_b", "!", "axb", false},
        {"a!!b", "!", "a!b", true},
        {"a!", "!", "a!", true},
        {"[!]a]", "!", "]", true},
        {"[a--]", "-", "-", true},
        {"[a--]", "-", "b", false},
        {"aéb", "é", "ab", true},
        {"a%b", "%", "ab", true},
        {"%", "%", "%", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (query_like(slice_str(cases[i].text), slice_str(cases[i].pattern), slice_str(cases[i].escape)) != cases[i].matches) {
            fail_msg("'%s' LIKE '%s' ESCAPE '%s' is not %d", cases[i].text, cases[i].pattern, cases[i].escape, cases[i].matches);
        }
    }
    assert_false(query_like(SLICE_EMPTY, SLICE_LIT("a"), SLICE_EMPTY));
    assert_true(query_like(SLICE_EMPTY, SLICE_EMPTY, SLICE_EMPTY));
    arena a = arena_init();
    assert_null(query_like_compile(&a, SLICE_LIT("a"), SLICE_LIT("!!")));
    assert_null(query_like_compile(&a, SLICE_LIT("a"), SLICE_LIT("\xFF")));
    arena_free(&a);
}

/* Backtracks over all possibilities; ASCII only. */
static bool slow_like(const char *p, const char *t) {
    if (*p == 0) {
        return *t == 0;
    }
    if (*p == '%') {
        return slow_like(p + 1, t) || (*t && slow_like(p, t + 1));
    }
    if (*t == 0) {
        return false;
    }
    const char *close = *p == '[' ? strchr(p + 1, ']') : NULL;
    if (!close) {
        return (*p == '_' || *p == *t) && slow_like(p + 1, t + 1);
    }
    const char *at = p + 1;
    bool negated = *at == '^', in = false;
    at += negated;
    while (at < close) {
        bool range = at + 2 < close && at[1] == '-';
        in |= *t >= at[0] && *t <= at[range ? 2 : 0];
        at += range ? 3 : 1;
    }
    return in != negated && slow_like(close + 1, t + 1);
}

static void both_matchers_agree(void **state) {
    static const char pattern_letters[] = "ab%_[]^-c%%", text_letters[] = "abc-[]^";
    random_source r;
    size_t matches = 0;
    (void)state;
    random_seed(&r, 3);
    for (int i = 0; i < 200000; i++) {
        char pattern[12] = {0}, text[12] = {0};
        size_t n = random_below(&r, sizeof pattern), m = random_below(&r, sizeof text);
        for (size_t k = 0; k < n; k++) {
            pattern[k] = pattern_letters[random_below(&r, sizeof pattern_letters - 1)];
        }
        for (size_t k = 0; k < m; k++) {
            text[k] = text_letters[random_below(&r, sizeof text_letters - 1)];
        }
        bool got = query_like(slice_str(text), slice_str(pattern), SLICE_EMPTY);
        if (got != slow_like(pattern, text)) {
            fail_msg("'%s' LIKE '%s' is %d", text, pattern, got);
        }
        matches += got;
    }
    assert_true(matches > 1000);
}

static void prefixes_are_known(void **state) {
    static const struct {
        const char *pattern, *prefix;
        bool whole;
    } cases[] = {
        {"abc%", "abc", false}, {"abc", "abc", true}, {"", "", true},          {"%abc", "", false},
        {"ab_c", "ab", false},  {"_ab", "", false},   {"a!%b%", "a%b", false}, {"[a]b", "", false},
    };
    (void)state;
    arena a = arena_init();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool whole;
        slice prefix = query_like_prefix(query_like_compile(&a, slice_str(cases[i].pattern), SLICE_LIT("!")), &whole);
        assert_true(slice_eq(prefix, slice_str(cases[i].prefix)));
        assert_int_equal(whole, cases[i].whole);
    }
    arena_free(&a);
}

static slice repeated(arena *a, const char *part, size_t times) {
    size_t n = strlen(part);
    char *p = arena_alloc_aligned(a, n * times, 1);
    for (size_t i = 0; i < times; i++) {
        memcpy(p + i * n, part, n);
    }
    return slice_of(p, n * times);
}

static void hostile_patterns_end(void **state) {
    static const char *const parts[] = {"%a", "%a_b", "[", "[a]", "%[ab]", "_%", "%aaaaaaaaaaaaaaaaab", "[^a", "%_a"};
    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        arena a = arena_init();
        slice text = repeated(&a, "a", 1000000), pattern = repeated(&a, parts[i], 200000 / strlen(parts[i]));
        int64_t before = clock_monotonic_us(&clock_system);
        query_like(text, pattern, SLICE_EMPTY);
        assert_true(clock_monotonic_us(&clock_system) - before < 5000000);
        arena_free(&a);
    }
    arena a = arena_init();
    uint64_t steps = 100000;
    slice text = repeated(&a, "a", 1000000);
    assert_false(query_like_match(query_like_compile(&a, SLICE_LIT("%a_a_a_a_b%"), SLICE_EMPTY), text, &steps));
    assert_int_equal(steps, 0);
    arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match),
        cmocka_unit_test(both_matchers_agree),
        cmocka_unit_test(prefixes_are_known),
        cmocka_unit_test(hostile_patterns_end),
    };
    return cmocka_run_group_tests_name("query_like", tests, NULL, NULL);
}
