/* System functions of times, full text and vectors; how functions are found; arguments that are cached, hostile or random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "functions_harness.h"

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
    return cmocka_run_group_tests_name("query_functions_more", tests, NULL, NULL);
}
