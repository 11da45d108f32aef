/* Collations: MongoDB's options, their errors, and that comparison, sort keys and hashes agree; hashes of values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "extended_json.h"
#include "mql/collation.h"
#include "mql/match.h"
#include "mql/sort.h"
#include "random_typed.h"
#include "rounds.h"

static arena memory;
static op operation;

static int set_up(void **state) {
    (void)state;
    memory = arena_init();
    op_init(&operation, &memory, 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

static slice document(const char *text) {
    return extended_json(&memory, text);
}

static mql_collation *collation(const char *text) {
    mql_collation *c;
    if (mql_collation_open(&operation, document(text), &c) != OK) {
        fail_msg("%s: %.*s", text, (int)operation.detail_n, operation.detail);
    }
    return c;
}

static int sign(int order) {
    return (order > 0) - (order < 0);
}

/* Compares two strings by a collation, and checks that sort keys and hashes agree. */
static int compared(const char *options, const char *a, const char *b) {
    mql_collation *c = collation(options);
    buf key_a = buf_init(BUF_NO_LIMIT), key_b = buf_init(BUF_NO_LIMIT);
    int order = sign(mql_collation_compare(c, slice_str(a), slice_str(b)));
    mql_value va = mql_text(&memory, slice_str(a)), vb = mql_text(&memory, slice_str(b));
    mql_collation_key(c, slice_str(a), &key_a);
    mql_collation_key(c, slice_str(b), &key_b);
    assert_int_equal(sign(slice_cmp(buf_view(&key_a), buf_view(&key_b))), order);
    assert_int_equal(sign(mql_compare_by(c, va, vb)), order);
    assert_true(order != 0 || mql_hash(c, va) == mql_hash(c, vb));
    buf_free(&key_a);
    buf_free(&key_b);
    mql_collation_close(c);
    return order;
}

static void options(void **state) {
    (void)state;
    static const struct {
        const char *options, *a, *b;
        int order;
    } cases[] = {
        {"{\"locale\": \"en\"}", "a", "B", -1},
        {"{\"locale\": \"en\"}", "a", "A", -1},
        {"{\"locale\": \"en\", \"strength\": 2}", "a", "A", 0},
        {"{\"locale\": \"en\", \"strength\": 2}", "e", "é", -1},
        {"{\"locale\": \"en\", \"strength\": 1}", "e", "É", 0},
        {"{\"locale\": \"en\", \"strength\": 1, \"caseLevel\": true}", "e", "E", -1},
        {"{\"locale\": \"en\", \"caseFirst\": \"upper\"}", "a", "A", 1},
        {"{\"locale\": \"en\"}", "a10", "a2", -1},
        {"{\"locale\": \"en\", \"numericOrdering\": true}", "a10", "a2", 1},
        {"{\"locale\": \"en\", \"alternate\": \"shifted\", \"strength\": 3}", "black-bird", "blackbird", 0},
        {"{\"locale\": \"en\", \"alternate\": \"shifted\", \"maxVariable\": \"space\", \"strength\": 3}", "black bird", "blackbird", 0},
        {"{\"locale\": \"sv\"}", "z", "ö", -1},
        {"{\"locale\": \"de\"}", "z", "ö", 1},
        {"{\"locale\": \"de@collation=phonebook\"}", "oe", "ö", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int order = compared(cases[i].options, cases[i].a, cases[i].b);
        if (order != cases[i].order) {
            fail_msg("%s: %s and %s compare as %d", cases[i].options, cases[i].a, cases[i].b, order);
        }
    }
    /* Accents count from the end of the word in French of Canada. */
    assert_int_equal(compared("{\"locale\": \"fr\", \"backwards\": true}", "côte", "coté"), -1);
    assert_int_equal(compared("{\"locale\": \"fr\", \"backwards\": false}", "côte", "coté"), 1);
}

static void errors(void **state) {
    (void)state;
    static const struct {
        const char *options;
        int code;
    } cases[] = {
        {"{}", 40414},
        {"{\"locale\": 5}", 14},
        {"{\"locale\": \"xx\"}", 2},
        {"{\"locale\": \"\"}", 2},
        {"{\"locale\": \"en\", \"strength\": 6}", 2},
        {"{\"locale\": \"en\", \"strength\": \"x\"}", 14},
        {"{\"locale\": \"en\", \"caseFirst\": \"x\"}", 2},
        {"{\"locale\": \"en\", \"caseLevel\": 1}", 14},
        {"{\"locale\": \"en\", \"maxVariable\": \"x\"}", 2},
        {"{\"locale\": \"en\", \"foo\": 1}", 40415},
        {"{\"locale\": \"simple\", \"foo\": 1}", 40415},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mql_collation *c;
        assert_int_equal(mql_collation_open(&operation, document(cases[i].options), &c), E_BAD_REQUEST);
        assert_null(c);
        if (operation.protocol_code != cases[i].code) {
            fail_msg("%s: %d %.*s", cases[i].options, operation.protocol_code, (int)operation.detail_n, operation.detail);
        }
    }
    assert_null(collation("{\"locale\": \"simple\"}"));
}

static bool matches(const mql_collation *c, const char *filter, const char *root) {
    const mql_match *m;
    mql_scope s = {.op = &operation, .collation = c};
    mql_run r = {.op = &operation, .arena = &memory, .steps = 1000000, .root = mql_document(document(root)), .collation = c};
    bool yes;
    assert_int_equal(mql_match_parse(&s, document(filter), &m), OK);
    assert_int_equal(mql_matches(&r, m, &yes, NULL), OK);
    return yes;
}

static void filters_and_sorts_by_collation(void **state) {
    (void)state;
    mql_collation *c = collation("{\"locale\": \"en\", \"strength\": 1}");
    assert_true(matches(c, "{\"a\": \"resume\"}", "{\"a\": \"Résumé\"}"));
    assert_true(matches(c, "{\"a\": {\"$in\": [\"z\", \"Y\", \"x\"]}}", "{\"a\": [\"y\"]}"));
    assert_true(matches(c, "{\"a\": {\"$gt\": \"a\"}}", "{\"a\": \"B\"}"));
    assert_true(matches(c, "{\"a\": {\"b\": [\"X\"]}}", "{\"a\": {\"b\": [\"x\"]}}"));
    assert_false(matches(NULL, "{\"a\": \"resume\"}", "{\"a\": \"Résumé\"}"));
    assert_false(matches(c, "{\"a\": {\"$regularExpression\": {\"pattern\": \"^res\", \"options\": \"\"}}}", "{\"a\": \"Res\"}"));
    mql_sort sort;
    mql_run r = {.op = &operation, .arena = &memory, .steps = 1000000, .collation = c};
    slice low, high;
    assert_int_equal(mql_sort_parse(&operation, document("{\"a\": 1}"), &sort), OK);
    assert_int_equal(mql_sort_key(&r, &sort, document("{\"a\": [\"Z\", \"b\"]}"), &low), OK);
    assert_int_equal(mql_sort_key(&r, &sort, document("{\"a\": \"B\"}"), &high), OK);
    assert_int_equal(mql_sort_compare(&sort, c, low, high), 0);
    mql_collation_close(c);
}

static void equal_values_have_equal_hashes(void **state) {
    (void)state;
    static const char *const same[][2] = {
        {"{\"v\": 1}", "{\"v\": {\"$numberDecimal\": \"1.00\"}}"},
        {"{\"v\": 0}", "{\"v\": -0.0}"},
        {"{\"v\": {\"$numberDouble\": \"NaN\"}}", "{\"v\": {\"$numberDecimal\": \"NaN\"}}"},
        {"{\"v\": {\"$numberLong\": \"9007199254740993\"}}", "{\"v\": {\"$numberDecimal\": \"9007199254740993\"}}"},
        {"{\"v\": \"x\"}", "{\"v\": {\"$symbol\": \"x\"}}"},
        {"{\"v\": [1, {\"a\": 2}]}", "{\"v\": [1.0, {\"a\": {\"$numberLong\": \"2\"}}]}"},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        mql_value a = mql_member(mql_document(document(same[i][0])), SLICE_LIT("v"));
        mql_value b = mql_member(mql_document(document(same[i][1])), SLICE_LIT("v"));
        assert_true(mql_same(a, b));
        assert_int_equal(mql_hash(NULL, a), mql_hash(NULL, b));
    }
}

/* Random values of all types: equality and hash agree, and different values rarely share a hash. */
static void hashes_of_random_values(void **state) {
    (void)state;
    random_source random;
    random_seed(&random, 5);
    unsigned collisions = 0, different = 0;
    for (unsigned i = 0; i < ROUNDS(20000); i++) {
        bson_t bson = BSON_INITIALIZER;
        typed_value(&random, &bson, "a", 0);
        typed_value(&random, &bson, "b", 0);
        mql_value whole = mql_document(slice_of(bson_get_data(&bson), bson.len));
        mql_value a = mql_member(whole, SLICE_LIT("a")), b = mql_member(whole, SLICE_LIT("b"));
        bool same_hash = mql_hash(NULL, a) == mql_hash(NULL, b);
        assert_true(!mql_same(a, b) || same_hash);
        different += !mql_same(a, b);
        collisions += !mql_same(a, b) && same_hash;
        bson_destroy(&bson);
    }
    assert_true(different > 1000);
    assert_int_equal(collisions, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(options, set_up, tear_down),
        cmocka_unit_test_setup_teardown(errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(filters_and_sorts_by_collation, set_up, tear_down),
        cmocka_unit_test_setup_teardown(equal_values_have_equal_hashes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hashes_of_random_values, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
