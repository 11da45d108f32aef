/* The system functions, tested by tables: name, arguments, expected value. Arguments and values are written as in a query, strings in
 * single quotes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "base/random.h"
#include "doc/number.h"
#include "query/function.h"

static arena row, keep;
static uint64_t steps, random_state;

static query_context context(void) {
    steps = 1000000000;
    random_state = 88172645463325252;
    /* 2024-10-14T14:20:30.666Z, the time in the documentation's examples, cut to milliseconds */
    return (query_context){.arena = &row, .keep = &keep, .now_ms = 1728915630666, .random = &random_state, .steps = &steps};
}

static int set_up(void **state) {
    (void)state;
    row = arena_init();
    keep = arena_init();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&row);
    arena_free(&keep);
    return 0;
}

/* ---- values as text ---- */

static void blanks(const char **p) {
    while (**p == ' ' || **p == '\n') {
        ++*p;
    }
}

static bool word(const char **p, const char *w) {
    size_t n = strlen(w);
    if (strncmp(*p, w, n) != 0) {
        return false;
    }
    *p += n;
    return true;
}

static void add_character(buf *out, unsigned c) {
    if (c < 0x80) {
        buf_add_byte(out, (char)c);
    } else if (c < 0x800) {
        buf_add(out, (char[]){(char)(0xC0 | c >> 6), (char)(0x80 | (c & 63))}, 2);
    } else {
        buf_add(out, (char[]){(char)(0xE0 | c >> 12), (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63))}, 3);
    }
}

static slice read_text(const char **p) {
    buf out = buf_init(BUF_NO_LIMIT);
    char quote = *(*p)++;
    for (; **p != quote; ++*p) {
        assert_int_not_equal(**p, 0);
        if (**p != '\\') {
            buf_add_byte(&out, **p);
            continue;
        }
        switch (*++*p) {
        case 'n':
            buf_add_byte(&out, '\n');
            break;
        case 't':
            buf_add_byte(&out, '\t');
            break;
        case 'u': {
            char digits[5] = {0};
            memcpy(digits, *p + 1, 4);
            add_character(&out, (unsigned)strtoul(digits, NULL, 16));
            *p += 4;
            break;
        }
        default:
            buf_add_byte(&out, **p);
        }
    }
    ++*p;
    slice made = arena_copy(&row, buf_view(&out));
    buf_free(&out);
    return made;
}

static slice read_name(const char **p) {
    if (**p == '\'' || **p == '"') {
        return read_text(p);
    }
    const char *from = *p;
    while (**p != ':' && **p != ' ') {
        ++*p;
    }
    return slice_of(from, (size_t)(*p - from));
}

enum { MEMBERS_MAX = 64 };

static query_value read_value(const char **p);

/* Reads values up to a closing character, or to the end of the text. */
static size_t read_list(const char **p, char close, slice *names, query_value *values) {
    size_t n = 0;
    for (blanks(p); **p != close; blanks(p)) {
        if (names) {
            names[n] = read_name(p);
            blanks(p);
            assert_true(word(p, ":"));
        }
        assert_true(n < MEMBERS_MAX);
        values[n++] = read_value(p);
        blanks(p);
        if (!word(p, ",")) {
            break;
        }
    }
    assert_int_equal(**p, close);
    *p += close != 0;
    return n;
}

static query_value read_value(const char **p) {
    query_value values[MEMBERS_MAX];
    slice names[MEMBERS_MAX];
    blanks(p);
    if (**p == '\'' || **p == '"') {
        return value_string(read_text(p));
    }
    if (word(p, "[")) {
        size_t n = read_list(p, ']', NULL, values);
        return value_array(&row, values, n);
    }
    if (word(p, "{")) {
        size_t n = read_list(p, '}', names, values);
        return value_object(&row, names, values, n);
    }
    static const struct {
        const char *text;
        query_value value;
    } words[] = {
        {"undefined", {.type = TYPE_UNDEFINED}},
        {"null", {.type = TYPE_NULL}},
        {"true", {.type = TYPE_BOOL, .truth = true}},
        {"false", {.type = TYPE_BOOL}},
        {"NaN", {.type = TYPE_NUMBER, .number = NAN}},
        {"Infinity", {.type = TYPE_NUMBER, .number = INFINITY}},
        {"-Infinity", {.type = TYPE_NUMBER, .number = -INFINITY}},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (word(p, words[i].text)) {
            return words[i].value;
        }
    }
    number_value number;
    const char *reason = "", *end = number_read(*p, *p + strlen(*p), &number, &reason);
    if (!end) {
        fail_msg("no value at «%s»: %s", *p, reason);
    }
    *p = end;
    return number.integer ? value_integer(number.i) : value_number(number.d);
}

static query_value value(const char *text) {
    return read_value(&text);
}

/* ---- calling ---- */

static query_value call_with(query_context *c, const char *name, const query_value *args, size_t n) {
    const query_function *f = query_function_find(slice_str(name));
    if (!f) {
        fail_msg("there is no function %s", name);
    }
    if (n < f->least || (f->most != QUERY_ANY_NUMBER && n > f->most)) {
        fail_msg("%s takes %d to %d arguments, not %zu", name, f->least, f->most, n);
    }
    for (size_t i = 0; i < n && !f->sees_undefined; i++) {
        if (!value_is_defined(&args[i])) {
            return value_undefined();
        }
    }
    return f->call(c, args, n);
}

static query_value call(const char *name, const char *text) {
    query_value args[MEMBERS_MAX];
    query_context c = context();
    size_t n = read_list(&text, 0, NULL, args);
    return call_with(&c, name, args, n);
}

typedef struct one_call {
    const char *name, *args, *expected;
} one_call;

static void json_of(buf *out, const query_value *v) {
    if (value_is_defined(v)) {
        value_write(out, v);
    } else {
        buf_add_lit(out, "undefined");
    }
    buf_add_byte(out, 0);
}

static size_t failures;

static void check(const one_call *c) {
    query_value got = call(c->name, c->args), expected = value(c->expected);
    buf a = buf_init(BUF_NO_LIMIT), b = buf_init(BUF_NO_LIMIT);
    json_of(&a, &got);
    json_of(&b, &expected);
    if (strcmp(a.p, b.p) != 0) {
        print_error("%s(%s) is %s, expected %s\n", c->name, c->args, a.p, b.p);
        failures++;
    }
    buf_free(&a);
    buf_free(&b);
    arena_reset(&row);
}

static void check_all(const one_call *calls, size_t n) {
    failures = 0;
    for (size_t i = 0; i < n; i++) {
        check(&calls[i]);
    }
    assert_int_equal(failures, 0);
}

#define CHECK(table) check_all((table), sizeof(table) / sizeof *(table))

/* ---- tables ---- */

static void functions_do_what_is_documented(void **state) {
    static const one_call calls[] = {
#include "query_functions_documented.h"
    };
    (void)state;
    CHECK(calls);
}

static void strings_are_cut_by_utf16_units(void **state) {
    static const one_call calls[] = {
        {"LENGTH", "'é'", "1"},
        {"LENGTH", "'😀'", "2"},
        {"LENGTH", "'a😀b'", "4"},
        {"LENGTH", "'日本語'", "3"},
        {"LENGTH", "5", "undefined"},
        {"LENGTH", "null", "undefined"},
        {"LENGTH", "['a']", "undefined"},
        {"LENGTH", "undefined", "undefined"},
        {"SUBSTRING", "'a😀b', 1, 2", "'😀'"},
        {"SUBSTRING", "'a😀b', 0, 1", "'a'"},
        {"SUBSTRING", "'a😀b', 3, 1", "'b'"},
        {"SUBSTRING", "'a😀b', 0, 2", "'a\\ufffd'"},
        {"SUBSTRING", "'a😀b', 2, 2", "'\\ufffdb'"},
        {"SUBSTRING", "'a😀b', 2, 1", "'\\ufffd'"},
        {"SUBSTRING", "'a😀😀b', 2, 2", "'\\ufffd\\ufffd'"},
        {"SUBSTRING", "'héllo wörld', 1, 4", "'éllo'"},
        {"SUBSTRING", "'abc', 3, 1", "''"},
        {"SUBSTRING", "'abc', 99, 1", "''"},
        {"SUBSTRING", "'abc', -1, 2", "''"},
        {"SUBSTRING", "'abc', 1, 0", "''"},
        {"SUBSTRING", "'abc', 1, 1000.0", "'bc'"},
        {"SUBSTRING", "'abc', 1, 9223372036854775807", "'bc'"},
        {"SUBSTRING", "'abc', 9223372036854775807, 9223372036854775807", "''"},
        {"SUBSTRING", "'abc', 0.5, 1", "undefined"},
        {"SUBSTRING", "'abc', 0, 0.5", "undefined"},
        {"SUBSTRING", "'abc', '0', 1", "undefined"},
        {"SUBSTRING", "7, 0, 1", "undefined"},
        {"SUBSTRING", "'', 0, 1", "''"},
        {"LEFT", "'héllo', 2", "'hé'"},
        {"LEFT", "'Hello', -3", "''"},
        {"LEFT", "'😀😀', 3", "'😀\\ufffd'"},
        {"LEFT", "'Hello', 1.5", "undefined"},
        {"RIGHT", "'héllo', 4", "'éllo'"},
        {"RIGHT", "'Hello', 1.5", "undefined"},
        {"RIGHT", "'Hello', -3", "''"},
        {"RIGHT", "'Hello', 2147483648", "'Hello'"},
        {"RIGHT", "'a😀', 2", "'😀'"},
        {"RIGHT", "'a😀', 1", "'\\ufffd'"},
        {"REVERSE", "'añ😀'", "'😀ña'"},
        {"REVERSE", "''", "''"},
        {"REVERSE", "1", "undefined"},
        {"TRIM", "'\\u00a0\\tx\\u3000\\n'", "'x'"},
        {"TRIM", "'   '", "''"},
        {"TRIM", "''", "''"},
        {"TRIM", "'éxéyé', 'é'", "'xéy'"},
        {"TRIM", "'😀x😀', '😀'", "'x'"},
        {"TRIM", "'zyxwvutsrqponmlkjihgfedcba0123456789ABCDEF.abc', 'abcdefghijklmnopqrstuvwxyz0123456789ABCDEF'", "'.'"},
        {"TRIM", "'x', 'xyz'", "''"},
        {"TRIM", "'x', 1", "undefined"},
        {"LTRIM", "'aab', 'a'", "'b'"},
        {"RTRIM", "'baa', 'a'", "'b'"},
        {"RTRIM", "'b  \\n'", "'b'"},
    };
    (void)state;
    CHECK(calls);
}

static void strings_are_searched(void **state) {
    static const one_call calls[] = {
        {"CONTAINS", "'abc', ''", "true"},
        {"CONTAINS", "'', ''", "true"},
        {"CONTAINS", "'', 'a'", "false"},
        {"CONTAINS", "'abc', 'bc', false", "true"},
        {"CONTAINS", "'ÀÉÎ', 'éî', true", "true"},
        {"CONTAINS", "'ÀÉÎ', 'éî'", "false"},
        {"CONTAINS", "'abc', 'B', null", "undefined"},
        {"CONTAINS", "'abc', 1", "undefined"},
        {"CONTAINS", "undefined, 'a'", "undefined"},
        {"STARTSWITH", "'Éab', 'é', true", "true"},
        {"STARTSWITH", "'ab', 'abc'", "false"},
        {"STARTSWITH", "'ab', ''", "true"},
        {"STARTSWITH", "'ab', '', true", "true"},
        {"STARTSWITH", "'aBCdefghijkl', 'AbC', true", "true"},
        {"ENDSWITH", "'xÉ', 'é', true", "true"},
        {"ENDSWITH", "'abcdefghijklmnÉ', 'é', true", "true"},
        {"ENDSWITH", "'ab', 'cab'", "false"},
        {"ENDSWITH", "'ab', ''", "true"},
        {"StringEquals", "'ÉA', 'éa', true", "true"},
        {"StringEquals", "'ÉA', 'éab', true", "false"},
        {"StringEquals", "'', '', true", "true"},
        {"StringEquals", "'a', '', true", "false"},
        {"STRING_EQUALS", "'a', 'a'", "true"},
        {"StringEquals", "1, 1", "undefined"},
        {"CONTAINS_ALL_CS", "'Have a nice day!', 'have', 'nice', 'day!'", "false"},
        {"CONTAINS_ALL_CS", "'Have a nice day!', 'Have', 'nice'", "true"},
        {"ContainsAllCi", "'Have a nice day!', 'HAVE', 'nice'", "true"},
        {"ContainsAnyCs", "'Have a nice day!', 'had', 'day'", "true"},
        {"ContainsAnyCi", "'Have a nice day!', 'had', 1", "undefined"},
        {"ContainsAnyCi", "'Have a nice day!', 'DAY', 1", "true"},
        {"ContainsAllCi", "1, 'a'", "undefined"},
        {"INDEX_OF", "'a😀b', 'b'", "3"},
        {"INDEX_OF", "'a😀b', '😀'", "1"},
        {"INDEX_OF", "'éa', 'a', 1", "1"},
        {"INDEX_OF", "'abcabc', 'c', 3", "5"},
        {"INDEX_OF", "'abc', ''", "0"},
        {"INDEX_OF", "'abc', '', 2", "2"},
        {"INDEX_OF", "'abc', '', 3", "3"},
        {"INDEX_OF", "'abc', 'a', 99", "-1"},
        {"INDEX_OF", "'abc', 'a', -5", "0"},
        {"INDEX_OF", "'abc', 'a', 0.5", "undefined"},
        {"INDEX_OF", "'abc', 1", "undefined"},
        {"LastIndexOf", "'aXbXc', 'X'", "3"},
        {"LastIndexOf", "'aXbXc', 'X', 2", "1"},
        {"LastIndexOf", "'aXbXc', 'X', 3", "3"},
        {"LastIndexOf", "'aXbXc', 'X', 99", "3"},
        {"LastIndexOf", "'aXbXc', 'X', 0", "-1"},
        {"LastIndexOf", "'abc', ''", "3"},
        {"LastIndexOf", "'abc', 'a', -1", "-1"},
        {"LastIndexOf", "'aaa', 'aa'", "1"},
        {"LastIndexOf", "'é😀é', 'é'", "3"},
        {"LastIndexOf", "'abcdefghijklmnopqrst--abcdefghijklmnopqrst', 'abcdefghijklmnopqrst'", "22"},
        {"LastIndexOf", "'abcdefghijklmnopqrst--abcdefghijklmnopqrst', 'abcdefghijklmnopqrst', 40", "0"},
        {"LastIndexOf", "'abcdefghijklmnopqrst', 'bcdefghijklmnopqrstu'", "-1"},
        {"SubstringAfter", "'Hello world', 'o'", "' world'"},
        {"SubstringBefore", "'Hello world', 'o'", "'Hell'"},
        {"LastSubstringAfter", "'Hello world', 'o'", "'rld'"},
        {"LastSubstringBefore", "'Hello world', 'o'", "'Hello w'"},
        {"SubstringAfter", "'Hello', 'x'", "undefined"},
        {"LastSubstringBefore", "'Hello', 'x'", "undefined"},
    };
    (void)state;
    CHECK(calls);
}

static void strings_are_made(void **state) {
    static const one_call calls[] = {
        {"UPPER", "'straße'", "'STRAßE'"},
        {"UPPER", "'àéîǆѫ'", "'ÀÉÎǄѪ'"},
        {"LOWER", "'ÀÉÎΣ'", "'àéîσ'"},
        {"LOWER", "'İ'", "'i'"},
        {"UPPER", "'ɐ'", "'Ɐ'"}, /* two bytes become three */
        {"LOWER", "''", "''"},
        {"UPPER", "1", "undefined"},
        {"CONCAT", "'a', '', 'b'", "'ab'"},
        {"CONCAT", "'', ''", "''"},
        {"CONCAT", "'a', 1", "undefined"},
        {"CONCAT", "'a', null", "undefined"},
        {"REPLACE", "'aaa', 'a', 'bb'", "'bbbbbb'"},
        {"REPLACE", "'aaa', 'aa', 'b'", "'ba'"},
        {"REPLACE", "'abc', '', 'x'", "'abc'"},
        {"REPLACE", "'abab', 'ab', ''", "''"},
        {"REPLACE", "'abc', 'z', 'y'", "'abc'"},
        {"REPLACE", "'', 'z', 'y'", "''"},
        {"REPLACE", "'a', 'a', 1", "undefined"},
        {"REPLICATE", "'ab', 2.9", "'abab'"},
        {"REPLICATE", "'', 1e300", "''"},
        {"REPLICATE", "'a', 0", "''"},
        {"REPLICATE", "'a', -1", "undefined"},
        {"REPLICATE", "'a', 10001", "undefined"},
        {"REPLICATE", "'Hello', 10000", "undefined"},
        {"REPLICATE", "'a', NaN", "undefined"},
        {"REPLICATE", "'a', Infinity", "undefined"},
        {"REPLICATE", "'a', 1e300", "undefined"},
        {"REPLICATE", "1, 2", "undefined"},
        {"StringJoin", "[], ','", "''"},
        {"StringJoin", "['a'], ','", "'a'"},
        {"StringJoin", "['', ''], ','", "','"},
        {"StringJoin", "['a', 1], ','", "undefined"},
        {"StringJoin", "'a', ','", "undefined"},
        {"STRING_JOIN", "['a', 'b'], 1", "undefined"},
        {"StringSplit", "'a,,b', ','", "['a', '', 'b']"},
        {"StringSplit", "',', ','", "['', '']"},
        {"StringSplit", "'abc', 'z'", "['abc']"},
        {"StringSplit", "'', ','", "['']"},
        {"STRING_SPLIT", "'aéb', 'é'", "['a', 'b']"},
        {"StringSplit", "1, ','", "undefined"},
    };
    (void)state;
    CHECK(calls);
}

static void values_are_converted(void **state) {
    static const one_call calls[] = {
        {"ToString", "1e21", "'1e+21'"},
        {"ToString", "-0.0", "'0'"},
        {"ToString", "null", "'null'"},
        {"ToString", "true", "'true'"},
        {"ToString", "''", "''"},
        {"ToString", "9007199254740993", "'9007199254740993'"},
        {"ToString", "-Infinity", "'-Infinity'"},
        {"ToString", "['q\\'', 1.5, {a: null}]", "'[\"q\\'\",1.5,{\"a\":null}]'"},
        {"ToString", "[undefined]", "'[null]'"},
        {"TO_STRING", "5", "'5'"},
        {"StringToNumber", "'9007199254740993'", "9007199254740993"},
        {"StringToNumber", "' \\n1.5e3\\t'", "1500"},
        {"StringToNumber", "'-0'", "0"},
        {"StringToNumber", "'1e400'", "undefined"},
        {"StringToNumber", "''", "undefined"},
        {"StringToNumber", "'  '", "undefined"},
        {"StringToNumber", "'0x10'", "undefined"},
        {"StringToNumber", "'12abc'", "undefined"},
        {"StringToNumber", "'.5'", "undefined"},
        {"StringToNumber", "'+1'", "undefined"},
        {"StringToNumber", "'NaN'", "undefined"},
        {"StringToNumber", "5", "undefined"},
        {"StringToBoolean", "'TRUE'", "undefined"},
        {"StringToBoolean", "''", "undefined"},
        {"STRING_TO_BOOLEAN", "'false'", "false"},
        {"StringToNull", "'nul'", "undefined"},
        {"StringToArray", "'{}'", "undefined"},
        {"StringToArray", "'[1,]'", "undefined"},
        {"StringToArray", "'[[[['", "undefined"},
        {"StringToArray", "''", "undefined"},
        {"StringToArray", "'  [1, {\"a\": [true]}]  '", "[1, {a: [true]}]"},
        {"StringToObject", "'[]'", "undefined"},
        {"StringToObject", "'{\"a\":1,\"a\":2}'", "{a: 2}"},
        {"IS_BOOLEAN", "false", "true"},
        {"IS_DEFINED", "undefined", "false"},
        {"IS_DEFINED", "null", "true"},
        {"IS_ARRAY", "undefined", "false"},
        {"IS_PRIMITIVE", "undefined", "false"},
        {"IS_PRIMITIVE", "[]", "false"},
        {"IS_NULL", "undefined", "false"},
        {"IS_NUMBER", "NaN", "true"},
        {"IS_FINITE_NUMBER", "NaN", "false"},
        {"IS_FINITE_NUMBER", "Infinity", "false"},
        {"IS_FINITE_NUMBER", "'1'", "false"},
        {"IS_FINITE_NUMBER", "undefined", "false"},
        {"IS_INTEGER", "5.0", "true"},
        {"IS_INTEGER", "-0.0", "true"},
        {"IS_INTEGER", "1e18", "true"},
        {"IS_INTEGER", "9223372036854775808", "false"},
        {"IS_INTEGER", "NaN", "false"},
        {"IS_INTEGER", "'5'", "false"},
    };
    (void)state;
    CHECK(calls);
}

static void patterns_match(void **state) {
    static const one_call calls[] = {
        {"RegexMatch", "'a\\nb', '^b'", "false"},
        {"RegexMatch", "'a\\nb', '^b', 'm'", "true"},
        {"RegexMatch", "'a\\nb', 'a.b'", "false"},
        {"RegexMatch", "'a\\nb', 'a.b', 's'", "true"},
        {"RegexMatch", "'A\\nB', '^ b $', 'imx'", "true"},
        {"RegexMatch", "'', ''", "true"},
        {"RegexMatch", "'', '^$'", "true"},
        {"RegexMatch", "'é', '^.$'", "true"},
        {"RegexMatch", "'😀', '^.$'", "true"},
        {"RegexMatch", "'ÀÉ', 'àé', 'i'", "true"},
        {"RegexMatch", "'abab', '^(ab)\\\\1$'", "true"},
        {"RegexMatch", "'price: 20', '(?<=: )[0-9]+'", "true"},
        {"RegexMatch", "'a', '('", "undefined"},
        {"RegexMatch", "'a', '[a'", "undefined"},
        {"RegexMatch", "'a', 'a', 'z'", "undefined"},
        {"RegexMatch", "'a', 'a', 1", "undefined"},
        {"RegexMatch", "1, 'a'", "undefined"},
        {"RegexMatch", "'a', null", "undefined"},
        {"RegexMatch", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', '^(a+)+$'", "undefined"},
        {"RegexMatch", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', '^(a|aa)+$'", "undefined"},
        {"RegexMatch", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', '(.*a){20}$'", "undefined"},
        {"RegexMatch", "'x', '((((((((((a{1,100}){1,100}){1,100}){1,100})))))))'", "undefined"},
        {"RegexExtract", "'abc123def45', '[0-9]+'", "'123'"},
        {"RegexExtract", "'a1b2', '([a-z])([0-9])', '', 2", "'1'"},
        {"RegexExtract", "'a1b2', '([A-Z])([0-9])', 'i', 1", "'a'"},
        {"RegexExtract", "'a1b2', '([a-z])([0-9])', '', 3", "undefined"},
        {"RegexExtract", "'a1b2', '([a-z])([0-9])', '', -1", "undefined"},
        {"RegexExtract", "'b', '(a)?b', '', 1", "undefined"},
        {"RegexExtract", "'abc', 'x'", "undefined"},
        {"RegexExtract", "'abc', ''", "''"},
        {"RegexExtractAll", "'a1b2', '[a-z]([0-9])'", "[['a1'], ['b2']]"},
        {"RegexExtractAll", "'a1b2', '[a-z]([0-9])', '', [1]", "[['1'], ['2']]"},
        {"RegexExtractAll", "'a1b2', '([a-z])([0-9])', '', [2, 1]", "[['1', 'a'], ['2', 'b']]"},
        {"RegexExtractAll", "'ab', '(a)|(b)', '', [1, 2]", "[['a', null], [null, 'b']]"},
        {"RegexExtractAll", "'aé', 'x*'", "[[''], [''], ['']]"},
        {"RegexExtractAll", "'', 'x*'", "[['']]"},
        {"RegexExtractAll", "'abc', 'x'", "[]"},
        {"RegexExtractAll", "'abc', 'b', '', [1]", "undefined"},
        {"RegexExtractAll", "'abc', 'b', '', []", "undefined"},
    };
    (void)state;
    CHECK(calls);
}

static void numbers_are_computed(void **state) {
    static const one_call calls[] = {
        {"ABS", "-5", "5"},
        {"ABS", "'a'", "undefined"},
        {"ABS", "null", "undefined"},
        {"ABS", "undefined", "undefined"},
        {"ASIN", "1", "1.5707963267948966"},
        {"POWER", "2, -1", "0.5"},
        {"POWER", "2, 'a'", "undefined"},
        {"LOG", "8, 2", "3"},
        {"LOG", "9, 3", "2"},
        {"LOG", "'a'", "undefined"},
        {"LOG10", "1000", "3"},
        {"NumberBin", "-5, 2", "-6"},
        {"NumberBin", "37.752", "37"},
        {"NumberBin", "5, 'a'", "undefined"},
        {"ROUND", "-0.5", "-1"},
        {"ROUND", "0.5", "1"},
        {"ROUND", "-6.5", "-7"},
        {"ROUND", "6.5", "7"},
        {"ROUND", "4840904997601420", "4840904997601420"},
        {"ROUND", "0.49999999999999994", "0"},
        {"TRUNC", "-0.5", "0"},
        {"SIGN", "-0.1", "-1"},
        {"SIGN", "0.0", "0"},
        {"CEILING", "-0.5", "0"},
        {"PI", "", "3.141592653589793"},
        {"IntAdd", "9223372036854775807, 1", "-9223372036854775808"},
        {"IntAdd", "20.0, 10", "30"},
        {"IntAdd", "1e300, 1", "undefined"},
        {"IntAdd", "'1', 1", "undefined"},
        {"IntAdd", "NaN, 1", "undefined"},
        {"IntSub", "-9223372036854775808, 1", "9223372036854775807"},
        {"IntMul", "3037000500, 3037000500", "-9223372036709301616"},
        {"IntMultiply", "3, 4", "12"},
        {"IntMul", "9007199254740993, 1", "9007199254740993"},
        {"IntDiv", "-7, 2", "-3"},
        {"IntDiv", "-9223372036854775808, -1", "-9223372036854775808"},
        {"IntMod", "-9223372036854775808, -1", "0"},
        {"IntMod", "-7, 2", "-1"},
        {"IntBitLeftShift", "1, 63", "-9223372036854775808"},
        {"IntBitLeftShift", "1, 64", "1"},
        {"IntBitRightShift", "-8, 1", "-4"},
        {"IntBitwiseAnd", "6, 3", "2"},
        {"IntBitwiseOr", "6, 3", "7"},
        {"IntBitwiseXor", "6, 3", "5"},
        {"IntBitwiseNot", "-1", "0"},
        {"IntBitwiseLeftShift", "1, 4", "16"},
        {"IntBitwiseRightShift", "16, 4", "1"},
    };
    (void)state;
    CHECK(calls);
    query_context c = context();
    double least = 1, most = 0, sum = 0;
    for (int i = 0; i < 10000; i++) {
        query_value v = call_with(&c, "RAND", NULL, 0);
        assert_true(v.type == TYPE_NUMBER && v.number >= 0 && v.number < 1);
        least = fmin(least, v.number);
        most = fmax(most, v.number);
        sum += v.number;
    }
    assert_true(least < 0.01 && most > 0.99 && fabs(sum / 10000 - 0.5) < 0.02);
    query_value v = call("SQRT", "-1");
    assert_true(v.type == TYPE_NUMBER && isnan(v.number));
}

static void arrays_are_handled(void **state) {
    static const one_call calls[] = {
        {"ARRAY_CONTAINS", "[1, 2], 1.0", "true"},
        {"ARRAY_CONTAINS", "[[1, 2]], [1, 2]", "true"},
        {"ARRAY_CONTAINS", "[{a: 1, b: 2}], {b: 2, a: 1}", "true"},
        {"ARRAY_CONTAINS", "[{a: 1}], {a: 1}, undefined", "true"},
        {"ARRAY_CONTAINS", "[{a: 1, b: 2}], {a: 1}, undefined", "false"},
        {"ARRAY_CONTAINS", "[{a: {b: 1, c: 2}}], {a: {b: 1}}, true", "false"},
        {"ARRAY_CONTAINS", "[{a: {b: 1, c: 2}, d: 1}], {a: {c: 2, b: 1}}, true", "true"},
        {"ARRAY_CONTAINS", "[{a: 1}], {}, true", "true"},
        {"ARRAY_CONTAINS", "[1], {}, true", "false"},
        {"ARRAY_CONTAINS", "[1, 2], 1, true", "true"},
        {"ARRAY_CONTAINS", "[null], null", "true"},
        {"ARRAY_CONTAINS", "['1'], 1", "false"},
        {"ARRAY_CONTAINS", "[], 1", "false"},
        {"ARRAY_CONTAINS", "[1], undefined", "undefined"},
        {"ARRAY_CONTAINS", "undefined, 1", "undefined"},
        {"ARRAY_CONTAINS", "'x', 'x'", "undefined"},
        {"ARRAY_CONTAINS", "[1], 1, 'x'", "undefined"},
        {"ARRAY_CONTAINS_ALL", "'x', 1", "undefined"},
        {"ARRAY_CONTAINS_ALL", "[1, 2], 2, 1", "true"},
        {"ARRAY_CONTAINS_ANY", "[1, 2], 3, 2", "true"},
        {"ARRAY_SLICE", "[1, 2, 3], -10", "[1, 2, 3]"},
        {"ARRAY_SLICE", "[1, 2, 3], 5", "[]"},
        {"ARRAY_SLICE", "[1, 2, 3], 1, -1", "[]"},
        {"ARRAY_SLICE", "[1, 2, 3], 1, 0", "[]"},
        {"ARRAY_SLICE", "[1, 2, 3], -9223372036854775808, 9223372036854775807", "[1, 2, 3]"},
        {"ARRAY_SLICE", "[1, 2, 3], 0.5", "undefined"},
        {"ARRAY_SLICE", "[1, 2, 3], 0, '1'", "undefined"},
        {"ARRAY_SLICE", "'abc', 1", "undefined"},
        {"ARRAY_SLICE", "[], 0", "[]"},
        {"ARRAY_CONCAT", "[1], 'a'", "undefined"},
        {"ARRAY_CONCAT", "[], []", "[]"},
        {"ARRAY_CONCAT", "[1], [[2]], [{a: 3}]", "[1, [2], {a: 3}]"},
        {"ARRAY_LENGTH", "'abc'", "undefined"},
        {"ARRAY_LENGTH", "{}", "undefined"},
        {"ARRAY_LENGTH", "[[1, 2], []]", "2"},
        {"ARRAY_MAX", "[]", "undefined"},
        {"ARRAY_MIN", "[]", "undefined"},
        {"ARRAY_MIN", "[[1], 2]", "undefined"},
        {"ARRAY_MIN", "[undefined, 2]", "2"},
        {"ARRAY_MAX", "'abc'", "undefined"},
        {"ARRAY_SUM", "[]", "0"},
        {"ARRAY_AVG", "[]", "undefined"},
        {"ARRAY_AVG", "5", "undefined"},
        {"ARRAY_MEDIAN", "[5]", "5"},
        {"ARRAY_MEDIAN", "[3, 1, 2]", "2"},
        {"SetUnion", "[1, 1.0, '1'], [[], {}, []]", "[1, '1', [], {}]"},
        {"SetIntersect", "[{a: 1, b: 2}], [{b: 2, a: 1}]", "[{b: 2, a: 1}]"},
        {"SetEqual", "[], []", "true"},
        {"SetDifference", "[1, null, [1]], [null]", "[1, [1]]"},
        {"SET_UNION", "[1], 2", "undefined"},
        {"SET_DIFFERENCE", "[1], [1]", "[]"},
        {"SET_EQUAL", "[1], [2]", "false"},
        {"SET_INTERSECT", "[], [1]", "[]"},
        {"CHOOSE", "1, undefined, 2", "undefined"},
        {"CHOOSE", "2, undefined, 2", "2"},
        {"CHOOSE", "1.5, 1, 2", "undefined"},
        {"CHOOSE", "-1, 1, 2", "undefined"},
        {"CHOOSE", "'a', 1", "undefined"},
        {"CHOOSE", "undefined, 1", "undefined"},
        {"ObjectToArray", "{}", "[]"},
        {"ObjectToArray", "{a: 1}, 'name', 'worth'", "[{name: 'a', worth: 1}]"},
        {"ObjectToArray", "{a: 1}, 'name'", "[{name: 'a', v: 1}]"},
        {"ObjectToArray", "{'z\\u0000': [1]}", "[{k: 'z\\u0000', v: [1]}]"},
        {"OBJECT_TO_ARRAY", "[1]", "undefined"},
        {"ObjectToArray", "{a: 1}, 5, 6", "undefined"},
        {"IIF", "undefined, 1, 2", "2"},
        {"IIF", "true, undefined, 2", "undefined"},
        {"IIF", "null, 1, 2", "2"},
        {"DOCUMENTID", "{}", "undefined"},
    };
    (void)state;
    CHECK(calls);
}

static void moments_are_computed(void **state) {
    static const one_call calls[] = {
        {"DateTimeAdd", "'mm', 1, '2020-01-31T00:00:00Z'", "'2020-02-29T00:00:00.0000000Z'"},
        {"DateTimeAdd", "'mm', -1, '2021-03-31'", "'2021-02-28T00:00:00.0000000Z'"},
        {"DateTimeAdd", "'mm', 11, '2020-02-10'", "'2021-01-10T00:00:00.0000000Z'"},
        {"DateTimeAdd", "'yyyy', 1, '2020-02-29'", "'2021-02-28T00:00:00.0000000Z'"},
        {"DateTimeAdd", "'ns', 150, '2020-01-01'", "'2020-01-01T00:00:00.0000001Z'"},
        {"DateTimeAdd", "'ns', -99, '2020-01-01'", "'2020-01-01T00:00:00.0000000Z'"},
        {"DateTimeAdd", "'mcs', -1, '2020-01-01'", "'2019-12-31T23:59:59.9999990Z'"},
        {"DateTimeAdd", "'millisecond', 1, '2020-01-01'", "'2020-01-01T00:00:00.0010000Z'"},
        {"DateTimeAdd", "'n', 61, '2020-01-01'", "'2020-01-01T01:01:00.0000000Z'"},
        {"DateTimeAdd", "'yyyy', 8000, '2020-01-01'", "undefined"},
        {"DateTimeAdd", "'yyyy', -2020, '2020-01-01'", "undefined"},
        {"DateTimeAdd", "'yyyy', -2019, '2020-01-01'", "'0001-01-01T00:00:00.0000000Z'"},
        {"DateTimeAdd", "'mm', 9223372036854775807, '2020-01-01'", "undefined"},
        {"DateTimeAdd", "'dd', 9223372036854775807, '2020-01-01'", "undefined"},
        {"DateTimeAdd", "'ns', -9223372036854775808, '2020-01-01'", "undefined"},
        {"DateTimeAdd", "'dd', 1.5, '2020-01-01'", "undefined"},
        {"DateTimeAdd", "'dd', '1', '2020-01-01'", "undefined"},
        {"DateTimeAdd", "'dd', 1, '2020-02-30'", "undefined"},
        {"DateTimeAdd", "'week', 1, '2020-01-01'", "undefined"},
        {"DateTimeAdd", "'dd', 1, 20200101", "undefined"},
        {"DateTimeDiff", "'yyyy', '2019-12-31T23:59:59.9999999Z', '2020-01-01'", "1"},
        {"DateTimeDiff", "'mm', '2020-01-31', '2020-02-01'", "1"},
        {"DateTimeDiff", "'mm', '2020-12-01', '2019-11-30'", "-13"},
        {"DateTimeDiff", "'dd', '2020-01-01T23:59:59', '2020-01-02T00:00:00'", "1"},
        {"DateTimeDiff", "'dd', '2020-01-01T00:00:00', '2020-01-01T23:59:59'", "0"},
        {"DateTimeDiff", "'hh', '1969-12-31T23:59:59', '1970-01-01T00:00:00'", "1"},
        {"DateTimeDiff", "'ms', '1969-12-31T23:59:59.9999', '1970-01-01'", "1"},
        {"DateTimeDiff", "'ns', '2020-01-01', '2020-01-01T00:00:00.0000001'", "100"},
        {"DateTimeDiff", "'yyyy', '2028-01-01T01:02:03.1234527Z', '2020 - 01 - 03T01: 02:03.1234567Z'", "undefined"},
        {"DateTimeDiff", "'xx', '2020-01-01', '2020-01-01'", "undefined"},
        {"DateTimeBin", "'1969-12-31T23:00:00', 'dd'", "'1969-12-31T00:00:00.0000000Z'"},
        {"DateTimeBin", "'2021-08-15', 'mm', 6", "'2021-07-01T00:00:00.0000000Z'"},
        {"DateTimeBin", "'2021-08-15', 'yyyy', 10", "'2020-01-01T00:00:00.0000000Z'"},
        {"DateTimeBin", "'1965-08-15', 'yyyy', 10", "'1960-01-01T00:00:00.0000000Z'"},
        {"DateTimeBin", "'2021-08-15', 'mm', 1, '2021-01-20'", "'2021-07-20T00:00:00.0000000Z'"},
        {"DateTimeBin", "'2021-01-08T18:35:12.1234567', 'ms'", "'2021-01-08T18:35:12.1230000Z'"},
        {"DateTimeBin", "'2021-01-08T18:35:12.1234567', 'ns', 1000", "'2021-01-08T18:35:12.1234560Z'"},
        {"DateTimeBin", "'2021-01-08T18:35:12.1234567', 'ns'", "'2021-01-08T18:35:12.1234567Z'"},
        {"DateTimeBin", "'2021-01-08', 'dd', 9223372036854775807", "'1970-01-01T00:00:00.0000000Z'"},
        {"DateTimeBin", "'1960-01-08', 'dd', 9223372036854775807", "undefined"},
        {"DateTimeBin", "'2021-01-08', 'yyyy', 9223372036854775807", "'1970-01-01T00:00:00.0000000Z'"},
        {"DateTimeBin", "'2021-01-08', 'dd', 0", "undefined"},
        {"DateTimeBin", "'2021-01-08', 'dd', -1", "undefined"},
        {"DateTimeBin", "'2021-01-08', 'dd', 1.5", "undefined"},
        {"DateTimeBin", "'2021-01-08', 'dd', 1, '1600-12-31'", "undefined"},
        {"DateTimeBin", "'2021-01-08', 'dd', 1, '1601-01-01'", "'2021-01-08T00:00:00.0000000Z'"},
        {"DateTimePart", "'mcs', '2020-01-02T03:04:05.6789123Z'", "678912"},
        {"DateTimePart", "'y', '2020-01-02'", "undefined"},
        {"DateTimeFromParts", "2020, 2, 30", "undefined"},
        {"DateTimeFromParts", "2020, 2, 29", "'2020-02-29T00:00:00.0000000Z'"},
        {"DateTimeFromParts", "2020, 1, 1, 24", "undefined"},
        {"DateTimeFromParts", "2020, 1, 1, 0, 0, 0, 10000000", "undefined"},
        {"DateTimeFromParts", "0, 1, 1", "undefined"},
        {"DateTimeFromParts", "10000, 1, 1", "undefined"},
        {"DateTimeFromParts", "2020, 1.5, 1", "undefined"},
        {"DateTimeFromParts", "2020, '1', 1", "undefined"},
        {"DateTimeFromParts", "9999, 12, 31, 23, 59, 59, 9999999", "'9999-12-31T23:59:59.9999999Z'"},
        {"TicksToDateTime", "2534023008000000000", "undefined"},
        {"TicksToDateTime", "253402300799999999", "'2772-12-31T16:47:59.9999999Z'"},
        {"TicksToDateTime", "0.5", "undefined"},
        {"TicksToDateTime", "'0'", "undefined"},
        {"TicksToDateTime", "-1", "'1969-12-31T23:59:59.9999999Z'"},
        {"TimestampToDateTime", "-62135596800000", "'0001-01-01T00:00:00.0000000Z'"},
        {"TimestampToDateTime", "-62135596800001", "undefined"},
        {"TimestampToDateTime", "253402300799999", "'9999-12-31T23:59:59.9990000Z'"},
        {"TimestampToDateTime", "253402300800000", "undefined"},
        {"DateTimeToTimestamp", "'1969-12-31T23:59:59.9995Z'", "-1"},
        {"DateTimeToTimestamp", "'2020-07-09'", "1594252800000"},
        {"DateTimeToTicks", "'2020-01-02T03:04:05Z'", "15779342450000000"},
        {"DateTimeToTicks", "'x'", "undefined"},
        {"YEAR", "'x'", "undefined"},
        {"DAY", "5", "undefined"},
        {"Now", "'dd'", "undefined"},
        {"GetCurrentDateTime", "", "'2024-10-14T14:20:30.6660000Z'"},
        {"GetCurrentDateTimeStatic", "", "'2024-10-14T14:20:30.6660000Z'"},
        {"GetCurrentTicks", "", "17289156306660000"},
        {"GetCurrentTicksStatic", "", "17289156306660000"},
        {"GetCurrentTimestamp", "", "1728915630666"},
        {"GetCurrentTimestampStatic", "", "1728915630666"},
        {"DateTimeFormat", "'2024-10-10 04:05:06.07', 'h:m:s.f tt, dddd d MMMM yy'", "'4:5:6.0 AM, Thursday 10 October 24'"},
        {"DateTimeFormat", "'2024-10-10 14:05:06.07', 'hh:mm:ss.ff t ddd MMM y'", "'02:05:06.07 P Thu Oct 24'"},
        {"DateTimeFormat", "'2024-10-10 00:05:06.07', 'hh HH ss.FFF'", "'12 00 06.07'"},
        {"DateTimeFormat", "'2024-10-10', 'yyyyy fffffff FFFFFFF'", "'02024 0000000 '"},
        {"DateTimeFormat", "'2024-10-10', 'yyyy\\\\'", "'2024\\\\'"},
        {"DateTimeFormat", "'2024-10-10', ''", "''"},
        {"DateTimeFormat", "'2024-10-10', 5", "undefined"},
        {"DateTimeFormat", "'2024', 'yyyy'", "undefined"},
        {"DateTimeFormat", "'1969-12-28', 'dddd'", "'Sunday'"},
        {"DateTimeFormat", "'0001-01-01', 'dddd'", "'Monday'"},
    };
    (void)state;
    CHECK(calls);
}

static void moments_are_recognised(void **state) {
    static const char *const right[] = {"2024-02-29",
                                        "2000-02-29",
                                        "2023-03-06T15:29:59.9",
                                        "2023-03-06T15:29:59.1234567Z",
                                        "0001-01-01",
                                        "9999-12-31T23:59:59.9999999Z",
                                        "2023-03-06 00:00:00"};
    static const char *const wrong[] = {"2023-02-29",
                                        "1900-02-29",
                                        "2023-13-01",
                                        "2023-00-01",
                                        "2023-01-00",
                                        "2023-1-01",
                                        "23-01-01",
                                        "",
                                        "2023-03-06T15:29:59.12345678",
                                        "2023-03-06t15:29:59",
                                        "2023-03-06 15:29:59z",
                                        "2023-03-06T15:29",
                                        "0000-01-01",
                                        "2023-03-06T24:00:00",
                                        "2023-03-06T23:60:00",
                                        "2023-03-06T23:00:60",
                                        "2023-03-06ZZ",
                                        "2023-03-06T",
                                        "2023-03-06 ",
                                        " 2023-03-06",
                                        "2023-03-06T15:29:59+01:00",
                                        "2023/03/06",
                                        "20230306",
                                        "2023-03-06T15:29:59.",
                                        "2023-03-06T15:29:59.Z",
                                        "-023-03-06"};
    (void)state;
    query_context c = context();
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        query_value v = value_string(slice_str(right[i])), is = call_with(&c, "IS_DATETIME", &v, 1);
        if (!value_is_true(&is)) {
            fail_msg("%s is not recognised", right[i]);
        }
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        query_value v = value_string(slice_str(wrong[i])), is = call_with(&c, "IS_DATETIME", &v, 1);
        if (value_is_true(&is)) {
            fail_msg("%s is recognised", wrong[i]);
        }
    }
    query_value number = value_integer(5), undefined = value_undefined();
    query_value of_number = call_with(&c, "IS_DATETIME", &number, 1), of_undefined = call_with(&c, "IS_DATETIME", &undefined, 1);
    assert_true(of_number.type == TYPE_BOOL && !of_number.truth);
    assert_true(of_undefined.type == TYPE_BOOL && !of_undefined.truth);
}

static void full_text_is_found(void **state) {
    static const one_call calls[] = {
        {"FullTextContains", "'A red bicycle.', 'red bicycle'", "true"},
        {"FullTextContains", "'A red bicycle.', 'bicycle red'", "false"},
        {"FullTextContains", "'A red mountain bicycle', 'red bicycle'", "false"},
        {"FullTextContains", "'red, the bicycle', 'red bicycle'", "false"},
        {"FullTextContains", "'red, the bicycle', 'a red and bicycle'", "true"},
        {"FullTextContains", "'red new bicycle', 'red and bicycle'", "true"},
        {"FullTextContains", "'red bicycle', 'red and bicycle'", "false"},
        {"FullTextContains", "'mountain bike for the mountain', 'bike mountain'", "false"},
        {"FullTextContains", "'mountain bike for the mountain', 'bike for the mountain'", "true"},
        {"FullTextContains", "'The bicycles were RED', 'bicycle'", "true"},
        {"FullTextContains", "'She was running fast', 'run'", "true"},
        {"FullTextContains", "'redish', 'red'", "false"},
        {"FullTextContains", "'red-green', 'green'", "true"},
        {"FullTextContains", "'red red red bicycle', 'red red bicycle'", "true"},
        {"FullTextContains", "'the end', 'the'", "false"},
        {"FullTextContains", "'dogs', 'dog\\u2019s'", "true"},
        {"FullTextContains", "'a dog\\u2019s life', 'dog\\'s life'", "true"},
        {"FullTextContains", "'ÉCOLE supérieure', 'école'", "true"},
        {"FullTextContains", "'日本語 テキスト', 'テキスト'", "true"},
        {"FullTextContains", "'', 'red'", "false"},
        {"FullTextContains", "'red', ''", "false"},
        {"FullTextContains", "'a bicycle', {term: 'bycycle', distance: 1}", "true"},
        {"FullTextContains", "'a bicycle', {term: 'bycicle', distance: 1}", "false"},
        {"FullTextContains", "'a bicycle', {term: 'bycicle', distance: 2}", "true"},
        {"FullTextContains", "'a bicycle', {term: 'bicycle'}", "true"},
        {"FullTextContains", "'a bicycle', {term: 'bicycle', distance: 3}", "undefined"},
        {"FullTextContains", "'a bicycle', {term: 5}", "undefined"},
        {"FullTextContains", "'x', 5", "undefined"},
        {"FullTextContains", "5, 'x'", "undefined"},
        {"FullTextContains", "undefined, 'x'", "undefined"},
        {"FULLTEXT_CONTAINS", "'red', 'red'", "true"},
        {"FullTextContainsAll", "'a red mountain bicycle', 'red', 'bicycle'", "true"},
        {"FullTextContainsAll", "'a red mountain bicycle', 'red', 'skateboard'", "false"},
        {"FullTextContainsAny", "'a red mountain bicycle', 'skateboard', 'bicycle'", "true"},
        {"FullTextContainsAny", "'a red mountain bicycle', 'skateboard', 'green'", "false"},
        {"FULLTEXT_CONTAINS_ALL", "'red', 'red'", "true"},
        {"FULLTEXT_CONTAINS_ANY", "'red', 'blue', 'red'", "true"},
        {"FullTextScore", "'red', 'red'", "undefined"},
        {"RRF", "1, 2", "undefined"},
    };
    (void)state;
    CHECK(calls);
    assert_true(query_function_is_rank_only(query_function_find(SLICE_LIT("fulltextscore"))));
    assert_false(query_function_is_rank_only(query_function_find(SLICE_LIT("FullTextContains"))));
}

static void vectors_are_compared(void **state) {
    static const one_call calls[] = {
        {"VectorDistance", "[1, 0], [1, 0]", "1"},
        {"VectorDistance", "[1, 0], [0, 1]", "0"},
        {"VectorDistance", "[1, 2, 3], [-1, -2, -3]", "-1"},
        {"VectorDistance", "[3, 4], [3, 0], false", "0.6"},
        {"VectorDistance", "[1, 2, 3, 4, 5], [1, 1, 1, 1, 1], true, {distanceFunction: 'DotProduct'}", "15"},
        {"VectorDistance", "[1, 2], [4, 6], false, {distanceFunction: 'euclidean', dataType: 'Float32'}", "5"},
        {"VectorDistance", "[1, 2], [4, 6], false, {}", "0.9922778767136677"},
        {"VectorDistance", "[1, 2], [4, 6], false, {distanceFunction: 'manhattan'}", "undefined"},
        {"VectorDistance", "[1, 2], [4, 6], 1", "undefined"},
        {"VectorDistance", "[1, 2], [4, 6], false, 5", "undefined"},
        {"VectorDistance", "[1, 2], [1, 2, 3]", "undefined"},
        {"VectorDistance", "[], []", "undefined"},
        {"VectorDistance", "[[1]], [[1]]", "undefined"},
        {"VectorDistance", "['1'], [1]", "undefined"},
        {"VectorDistance", "[0, 0], [1, 1]", "undefined"},
        {"VectorDistance", "'1', [1]", "undefined"},
    };
    (void)state;
    CHECK(calls);
}

static void a_document_has_a_number(void **state) {
    (void)state;
    query_value body = value("{id: 'x'}");
    query_item item = {.body = body.bytes, .number = 13, .container_rid = {0x0c, 0x90, 0x7b, 0x00, 0x8d, 0x65, 0x64, 0x7a}};
    query_value whole = value_of_item(&item);
    query_context c = context();
    query_value v = call_with(&c, "DOCUMENTID", &whole, 1);
    assert_true(v.is_integer && v.integer == 13);
    v = call_with(&c, "ObjectToArray", &whole, 1);
    assert_int_equal(value_length(&v), 6);
    query_value list[] = {value_array(&row, &whole, 1), whole};
    v = call_with(&c, "ARRAY_CONTAINS", list, 2);
    assert_true(value_is_true(&v));
    v = call_with(&c, "ToString", &whole, 1);
    assert_non_null(memmem(v.bytes.p, v.bytes.n, "\"_etag\":", 8));
}

/* ---- the table itself ---- */

static void functions_are_found_in_any_case(void **state) {
    (void)state;
    size_t count = 0;
    for (const query_function *const *table = query_function_tables; *table; table++) {
        for (const query_function *f = *table; f->name; f++, count++) {
            char other[64];
            size_t n = strlen(f->name);
            for (size_t i = 0; i <= n; i++) {
                other[i] = (char)(f->name[i] ^ (((f->name[i] | 32) >= 'a' && (f->name[i] | 32) <= 'z') ? 32 : 0));
            }
            assert_ptr_equal(query_function_find(slice_str(other)), f); /* so no earlier entry has the same name */
            assert_non_null(f->call);
            assert_true(f->least <= f->most);
        }
    }
    assert_true(count > 160);
    assert_null(query_function_find(SLICE_LIT("")));
    assert_null(query_function_find(SLICE_LIT("COUNT")));
    assert_null(query_function_find(SLICE_LIT("HASH")));
    assert_null(query_function_find(SLICE_LIT("ABSX")));
    assert_null(query_function_find(SLICE_LIT("AB")));
}

/* ---- cached arguments ---- */

#define LONG_ARRAY                                                                                                                         \
    "['a text', 'another', 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29.0, "        \
    "{'a': [1.0]}, null, null]"

/* One call site over many rows, whose other arguments change now and then: each row gives the result of a first call. */
static void prepared_patterns_are_only_used_for_themselves(void **state) {
    static const struct {
        const char *name, *rows[4], *expected[4];
    } cases[] = {
        {"RegexMatch", {"'abc', 'b'", "'abc', 'B', 'i'", "'abc', 'B'", "'xbx', 'b'"}, {"true", "true", "false", "true"}},
        {"RegexMatch", {"'abc', '('", "'abc', 'b'", "'abc', '('", "'abc', 'c'"}, {"undefined", "true", "undefined", "true"}},
        {"FullTextContains", {"'red fox', 'fox'", "'red fox', 'cat'", "'cat', 'fox'", "'fox', 'fox'"}, {"true", "false", "false", "true"}},
        {"VectorDistance", {"[1, 0], [1, 0]", "[1, 0], [0, 1]", "[0, 1], [1, 0]", "[2, 0], [1, 0]"}, {"1", "0", "0", "1"}},
        {"ARRAY_CONTAINS",
         {LONG_ARRAY ", 29", LONG_ARRAY ", '29'", "[1, 2, 3], 29", LONG_ARRAY ", {'a': [1]}"},
         {"true", "false", "false", "true"}},
        {"ST_DISTANCE",
         {"{type: 'Point', coordinates: [0, 0]}, {type: 'Point', coordinates: [0, 0]}",
          "{type: 'Point', coordinates: [0, 0]}, {type: 'Point', coordinates: [0, 95]}",
          "{type: 'Point', coordinates: [5, 5]}, {type: 'Point', coordinates: [5, 5]}",
          "{type: 'Point', coordinates: [0, 0]}, {type: 'Point', coordinates: [0, 0]}"},
         {"0", "undefined", "0", "0"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const void *prepared = NULL;
        for (size_t j = 0; j < 40; j++) {
            query_value args[MEMBERS_MAX];
            query_context c = context();
            c.prepared = &prepared;
            const char *text = cases[i].rows[j % 4];
            size_t n = read_list(&text, 0, NULL, args);
            query_value got = call_with(&c, cases[i].name, args, n), expected = value(cases[i].expected[j % 4]);
            if (!value_equal(&got, &expected)) {
                fail_msg("%s(%s) in row %zu", cases[i].name, cases[i].rows[j % 4], j);
            }
            arena_reset(&row);
        }
        assert_non_null(prepared);
        arena_reset(&keep);
    }
}

/* ---- limits ---- */

static query_value repeated(const char *part, size_t times) {
    size_t n = strlen(part);
    char *p = arena_alloc_aligned(&row, n * times + 1, 1);
    for (size_t i = 0; i < times; i++) {
        memcpy(p + i * n, part, n);
    }
    return value_string(slice_of(p, n * times));
}

/* Expensive calls end when their steps are used up, and no result grows beyond its limit. */
static void hostile_arguments_end(void **state) {
    (void)state;
    query_value long_a = repeated("a", 2000000), half_a = repeated("a", 1000000), comma = value_string(SLICE_LIT("a"));
    query_value tail = repeated("a", 999999);
    query_context c = context();
    query_value needle[] = {value_string(SLICE_LIT("b")), tail};
    needle[0] = call_with(&c, "CONCAT", needle, 2); /* baaa… */

    query_value last[] = {long_a, needle[0]};
    assert_int_equal(call_with(&c, "LastIndexOf", last, 2).integer, -1);
    assert_int_equal(call_with(&c, "INDEX_OF", last, 2).integer, -1);
    query_value trim[] = {long_a, long_a};
    assert_int_equal(call_with(&c, "TRIM", trim, 2).bytes.n, 0);
    query_value replace[] = {long_a, comma, half_a};
    assert_int_equal(call_with(&c, "REPLACE", replace, 3).type, TYPE_UNDEFINED);
    query_value split[] = {long_a, comma};
    assert_int_equal(call_with(&c, "StringSplit", split, 2).type, TYPE_UNDEFINED);
    query_value joined[64];
    for (size_t i = 0; i < 64; i++) {
        joined[i] = long_a;
    }
    assert_int_equal(call_with(&c, "CONCAT", joined, 64).type, TYPE_UNDEFINED);
    query_value pattern[] = {long_a, value_string(SLICE_LIT("(?:a|aa)+[bc]"))};
    assert_int_equal(call_with(&c, "RegexMatch", pattern, 2).type, TYPE_UNDEFINED);
    static const char *const slow[] = {"a*+[bc]", "[a-z]*[bc]", "(?=a*[bc])a", "(a+)+[bc]", "^(a|a)*$", "x*a*[bc]", "(?<=a)a*[bc]"};
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
        query_value args[] = {long_a, value_string(slice_str(slow[i]))};
        steps = 1000000; /* about 10 ms */
        int64_t before = clock_monotonic_us(&clock_system);
        assert_int_equal(call_with(&c, "RegexMatch", args, 2).type, TYPE_UNDEFINED);
        assert_true(clock_monotonic_us(&clock_system) - before < 2000000);
    }
    query_value all[] = {half_a, value_string(SLICE_LIT("a"))};
    steps = 1000000;
    assert_int_equal(call_with(&c, "RegexExtractAll", all, 2).type, TYPE_UNDEFINED);
    assert_int_equal(steps, 0);

    steps = 1000; /* not enough for the long text; then none are left */
    assert_int_equal(call_with(&c, "UPPER", &long_a, 1).type, TYPE_UNDEFINED);
    assert_int_equal(call_with(&c, "UPPER", &comma, 1).type, TYPE_UNDEFINED);
}

/* ---- random arguments ---- */

static query_value any_value(random_source *r, unsigned depth) {
    static const char *const texts[] = {"",
                                        "a",
                                        "abc",
                                        "ABC",
                                        "é😀",
                                        "2020-02-29T12:00:00.1234567Z",
                                        "2021-01-01",
                                        "yyyy",
                                        "dd",
                                        "ns",
                                        "%a_[b-c]",
                                        "(a+)+$",
                                        "[1,2]",
                                        "{\"a\":1}",
                                        " 5 ",
                                        "true",
                                        "null",
                                        "i",
                                        "red bicycle",
                                        "\xFF\xC0\x80\xE2",
                                        "cosine",
                                        "MM"};
    static const double numbers[] = {0,     1,      -1,     0.5, 2,   3,    1e18,     -1e18, 9007199254740992,
                                     1e300, -1e300, 5e-324, 90,  180, 45.5, INFINITY, NAN};
    static const char *const shapes[] = {
        "{type: 'Point', coordinates: [1, 2]}",
        "{type: 'Point', coordinates: [181, 2]}",
        "{type: 'LineString', coordinates: [[1, 2], [3, 4], [5, 0]]}",
        "{type: 'Polygon', coordinates: [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}",
        "{type: 'Polygon', coordinates: [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]], [[1, 1], [2, 1], [2, 2], [1, 1]]]}",
        "{type: 'MultiPolygon', coordinates: []}",
        "{type: 'MultiPolygon', coordinates: [[[[0, 80], [120, 80], [-120, 80], [0, 80]]]]}",
        "{term: 'red', distance: 1}",
    };
    switch (random_below(r, depth ? 10 : 7)) {
    case 0:
        return value_undefined();
    case 1:
        return random_below(r, 2) ? value_null() : value_bool(random_below(r, 2));
    case 2:
        return value_integer(random_below(r, 4) ? (int64_t)random_below(r, 20) - 5 : (int64_t)random_u64(r));
    case 3:
        return value_number(numbers[random_below(r, sizeof numbers / sizeof *numbers)]);
    case 4:
    case 5:
        return value_string(slice_str(texts[random_below(r, sizeof texts / sizeof *texts)]));
    case 6:
        return value(shapes[random_below(r, sizeof shapes / sizeof *shapes)]);
    default: {
        query_value parts[6];
        slice names[6];
        size_t n = random_below(r, 6);
        for (size_t i = 0; i < n; i++) {
            parts[i] = any_value(r, depth - 1);
            names[i] = slice_of(&"abcdef"[i], 1);
        }
        return random_below(r, 2) ? value_array(&row, parts, n) : value_object(&row, names, parts, n);
    }
    }
}

/* Any arguments are safe; deterministic functions give equal results; few steps do no harm. */
static void functions_take_anything(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 17);
    for (int round = 0; round < 60; round++) {
        for (const query_function *const *table = query_function_tables; *table; table++) {
            for (const query_function *f = *table; f->name; f++) {
                query_value args[6];
                size_t most = f->most < 6 ? f->most : 6, n = f->least + random_below(&r, most - f->least + 1);
                for (size_t i = 0; i < n; i++) {
                    args[i] = any_value(&r, 2);
                }
                query_context c = context();
                const void *prepared = NULL;
                c.prepared = random_below(&r, 2) ? &prepared : NULL;
                query_value first = call_with(&c, f->name, args, n), second = call_with(&c, f->name, args, n);
                if (f->deterministic && !value_equal(&first, &second)) {
                    fail_msg("%s gave two values", f->name);
                }
                buf out = buf_init(BUF_NO_LIMIT);
                value_write(&out, &first);
                buf_free(&out);
                steps = random_below(&r, 20);
                call_with(&c, f->name, args, n);
                arena_reset(&row);
                arena_reset(&keep);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(functions_do_what_is_documented, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strings_are_cut_by_utf16_units, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strings_are_searched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strings_are_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_are_converted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(patterns_match, set_up, tear_down),
        cmocka_unit_test_setup_teardown(numbers_are_computed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(arrays_are_handled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(moments_are_computed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(moments_are_recognised, set_up, tear_down),
        cmocka_unit_test_setup_teardown(full_text_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(vectors_are_compared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_document_has_a_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(functions_are_found_in_any_case, set_up, tear_down),
        cmocka_unit_test_setup_teardown(prepared_patterns_are_only_used_for_themselves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hostile_arguments_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(functions_take_anything, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("query_functions", tests, NULL, NULL);
}
