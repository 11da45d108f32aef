/* Filters: the parsed tree, bounds of work, and laws that hold for random documents and filters. What single operators do is in
 * tests/mql/match-*.cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "extended_json.h"
#include "mql/match_tree.h"
#include "mql/project.h"
#include "mql/sort.h"
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

static const mql_match *parse(slice filter) {
    const mql_match *m;
    mql_scope s = {.op = &operation};
    if (mql_match_parse(&s, filter, &m) != OK) {
        fail_msg("%.*s", (int)operation.detail_n, operation.detail);
    }
    return m;
}

static mql_run run_on(slice root, uint64_t steps) {
    return (mql_run){.op = &operation, .arena = &memory, .steps = steps, .root = mql_document(root)};
}

static bool matches(const mql_match *m, slice root) {
    mql_run r = run_on(root, 1000 * 1000 * 1000);
    bool yes;
    assert_int_equal(mql_matches(&r, m, &yes, NULL), OK);
    return yes;
}

/* ---- the tree ---- */

static void tree_of_one_equality(void **state) {
    (void)state;
    const mql_node *n = mql_match_root(parse(document("{\"a.b\": 5}")));
    assert_int_equal(n->kind, MQL_EQ);
    assert_true(slice_eq(n->path, SLICE_LIT("a.b")));
    assert_int_equal(n->parts_n, 2);
    assert_true(slice_eq(n->parts[1], SLICE_LIT("b")));
    assert_int_equal(n->value.type, BSON_TYPE_INT32);
}

static void tree_of_negations(void **state) {
    (void)state;
    const mql_node *n = mql_match_root(parse(document("{\"a\": {\"$ne\": 5, \"$nin\": [1]}, \"b\": {\"$exists\": false}}")));
    static const mql_node_kind kinds[] = {MQL_EQ, MQL_IN, MQL_EXISTS};
    assert_int_equal(n->kind, MQL_AND);
    size_t i = 0;
    for (const mql_node *child = n->first; child; child = child->next, i++) {
        assert_int_equal(child->kind, MQL_NOT);
        assert_int_equal(child->first->kind, kinds[i]);
    }
    assert_int_equal(i, 3);
}

static void tree_of_nothing_and_everything(void **state) {
    (void)state;
    const mql_node *everything = mql_match_root(parse(document("{}")));
    assert_int_equal(everything->kind, MQL_AND);
    assert_null(everything->first);
    assert_int_equal(mql_match_root(parse(document("{\"a\": {\"$all\": []}}")))->kind, MQL_NOTHING);
}

static void tree_of_elem_match(void **state) {
    (void)state;
    const mql_node *n = mql_match_root(parse(document("{\"a\": {\"$elemMatch\": {\"b\": 1}}}")));
    assert_int_equal(n->kind, MQL_ELEM_MATCH);
    assert_true(slice_eq(n->first->path, SLICE_LIT("b")));
    n = mql_match_root(parse(document("{\"a\": {\"$elemMatch\": {\"$gt\": 1, \"$lt\": 5}}}")));
    assert_int_equal(n->kind, MQL_ELEM_MATCH_VALUE);
    assert_int_equal(n->first->kind, MQL_GT);
    assert_int_equal(n->first->parts_n, 0);
    assert_int_equal(n->first->next->kind, MQL_LT);
}

static void distances_for_ordering(void **state) {
    (void)state;
    const mql_node *n = mql_match_root(
        parse(document("{\"p\": {\"$near\": {\"$geometry\": {\"type\": \"Point\", \"coordinates\": [0, 0]}, \"$maxDistance\": 300000}}}")));
    mql_run r = run_on(SLICE_EMPTY, 1000000);
    double metres;
    assert_int_equal(mql_near_distance(&r, n, mql_document(document("{\"p\": [[2, 0], [1, 0]]}")), &metres), OK);
    assert_true(fabs(metres - 111318.8) < 1); /* one degree on a globe of 6378100 m */
    assert_int_equal(mql_near_distance(&r, n, mql_document(document("{\"p\": [5, 0]}")), &metres), OK);
    assert_true(isinf(metres));
}

static void prefixes_of_regexes(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *options, *prefix;
    } cases[] = {
        {"^abc", "", "abc"},
        {"^abc", "s", "abc"},
        {"^abc", "i", ""},
        {"^abc", "m", ""},
        {"abc", "", ""},
        {"^", "", ""},
        {"^abc*", "", "ab"},
        {"^ab?c", "", "a"},
        {"^abc{0,2}", "", "ab"},
        {"^ab+c", "", "ab"},
        {"^a|b", "", ""},
        {"^a.c", "", "a"},
        {"^(ab)", "", ""},
        {"^a\\\\.b", "", "a.b"},
        {"^a\\\\db", "", "a"},
        {"^caf\303\251?", "", "caf"},
        {"^caf\303\251s", "", "caf\303\251s"},
        {"^a[bc]", "", "a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"a\": {\"$regularExpression\": {\"pattern\": \"%s\", \"options\": \"%s\"}}}", cases[i].pattern,
                 cases[i].options);
        slice prefix = mql_regex_prefix(&memory, mql_match_root(parse(document(text))));
        if (!slice_eq(prefix, slice_str(cases[i].prefix))) {
            fail_msg("%s: %.*s", cases[i].pattern, (int)prefix.n, prefix.p);
        }
    }
}

/* The score of $text reaches the projection and the sort by the run's metadata. */
static void text_scores_reach_projection_and_sort(void **state) {
    (void)state;
    static const mql_text_field fields[] = {{SLICE_LIT("a"), 2}};
    static const mql_text_index index = {fields, 1, SEARCH_ENGLISH, SLICE_LIT("language")};
    mql_scope s = {.op = &operation, .text = &index};
    const mql_match *m;
    const mql_project *p;
    mql_sort sort;
    slice projected, key;
    bool yes;
    mql_run r = run_on(document("{\"_id\": 1, \"a\": \"tea\"}"), 100000);
    assert_int_equal(mql_match_parse(&s, document("{\"$text\": {\"$search\": \"tea\"}}"), &m), OK);
    assert_int_equal(mql_project_parse(&s, document("{\"score\": {\"$meta\": \"textScore\"}}"), MQL_PROJECT_FIND, m, &p), OK);
    assert_int_equal(mql_sort_parse(&operation, document("{\"score\": {\"$meta\": \"textScore\"}}"), &sort), OK);
    assert_int_equal(mql_matches(&r, m, &yes, NULL), OK);
    assert_true(yes);
    assert_int_equal(mql_project_apply(&r, p, &projected), OK);
    assert_true(slice_eq(projected, document("{\"_id\": 1, \"a\": \"tea\", \"score\": 2.2}")));
    assert_int_equal(mql_sort_key(&r, &sort, r.root.bytes, &key), OK);
    assert_true(mql_as_double(mql_element_at(mql_array(key), 0)) == 2.2);
    assert_true(sort.parts[0].descending);
}

/* ---- bounds ---- */

static void work_is_paid_for(void **state) {
    (void)state;
    char text[400] = "{\"a\": 1}";
    /* a.0.0.0… through {"0": […]}: two ways at each level */
    snprintf(text, sizeof text, "%s", "{\"a");
    for (int i = 0; i < 90; i++) {
        strcat(text, ".0");
    }
    strcat(text, "\": 5}");
    const mql_match *m = parse(document(text));
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mql_open(&b, SLICE_LIT("a"), BSON_TYPE_ARRAY);
    for (int i = 0; i < 80; i++) {
        mql_open(&b, SLICE_LIT("0"), BSON_TYPE_DOCUMENT);
        mql_open(&b, SLICE_LIT("0"), BSON_TYPE_ARRAY);
    }
    for (int i = 0; i < 161; i++) {
        mql_close(&b);
    }
    slice deep;
    assert_true(mql_keep(&memory, &b, &deep));
    buf_free(&out);
    mql_run r = run_on(deep, 1000 * 1000);
    bool yes;
    assert_int_equal(mql_matches(&r, m, &yes, NULL), E_QUERY_TOO_LONG);
}

static void few_steps_are_too_few(void **state) {
    (void)state;
    static const char *const filters[] = {
        "{\"a\": {\"$elemMatch\": {\"$elemMatch\": {\"$gt\": 7}}}}",
        "{\"a\": {\"$in\": [1, 2, 3]}}",
        "{\"$jsonSchema\": {\"properties\": {\"a\": {\"uniqueItems\": true}}}}",
        "{\"a.b\": 1}",
        "{\"a\": {\"$size\": 1000}}",
    };
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mql_open(&b, SLICE_LIT("a"), BSON_TYPE_ARRAY);
    for (int i = 0; i < 5000; i++) {
        mql_add_next(&b, mql_array(SLICE_LIT("\5\0\0\0\0")));
    }
    mql_close(&b);
    slice long_array;
    assert_true(mql_keep(&memory, &b, &long_array));
    buf_free(&out);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        mql_run r = run_on(long_array, 1000);
        bool yes;
        err e = mql_matches(&r, parse(document(filters[i])), &yes, NULL);
        if (e != E_QUERY_TOO_LONG) {
            fail_msg("%s used only %llu steps", filters[i], (unsigned long long)(1000 - r.steps));
        }
    }
}

static void many_values_in_a_list(void **state) {
    (void)state;
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mql_open(&b, SLICE_LIT("a"), BSON_TYPE_DOCUMENT);
    mql_open(&b, SLICE_LIT("$in"), BSON_TYPE_ARRAY);
    for (int i = 0; i < 100000; i++) {
        mql_add_next(&b, mql_int32(&memory, (i * 7919) % 100000 * 2));
    }
    mql_close(&b);
    mql_close(&b);
    slice filter;
    assert_true(mql_keep(&memory, &b, &filter));
    buf_free(&out);
    const mql_match *m = parse(filter);
    assert_true(matches(m, document("{\"a\": 77778}")));
    assert_false(matches(m, document("{\"a\": 77777}")));
    mql_run r = run_on(document("{\"a\": 5}"), 100);
    bool yes;
    assert_int_equal(mql_matches(&r, m, &yes, NULL), OK); /* a binary search, not a walk */
}

static void memory_is_counted(void **state) {
    (void)state;
    budget limit = budget_init(NULL, 256 * 1024);
    arena small = arena_init_counted(&limit);
    op o;
    op_init(&o, &small, 0);
    mql_scope s = {.op = &o};
    const mql_match *m;
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mql_open(&b, SLICE_LIT("$and"), BSON_TYPE_ARRAY);
    for (int i = 0; i < 20000; i++) {
        mql_open_next(&b, BSON_TYPE_DOCUMENT);
        mql_add(&b, SLICE_LIT("a"), mql_null());
        mql_close(&b);
    }
    mql_close(&b);
    assert_int_equal(mql_match_parse(&s, mql_built(&b), &m), E_MEMORY);
    assert_true(limit.overrun < 64 * 1024);
    buf_free(&out);
    arena_free(&small);
}

/* ---- random documents and filters ---- */

typedef struct maker {
    random_source random;
    buf out;
} maker;

static unsigned pick(maker *m, unsigned n) {
    return (unsigned)random_below(&m->random, n);
}

static void add_value(maker *m, unsigned depth);

static void add_list(maker *m, unsigned depth) {
    unsigned n = pick(m, 4);
    buf_add_lit(&m->out, "[");
    for (unsigned i = 0; i < n; i++) {
        buf_addf(&m->out, "%s", i ? ", " : "");
        add_value(m, depth + 1);
    }
    buf_add_lit(&m->out, "]");
}

static const char *const names[] = {"a", "b", "0", "1"};

static void add_object(maker *m, unsigned depth) {
    unsigned n = pick(m, 3);
    buf_add_lit(&m->out, "{");
    for (unsigned i = 0; i < n; i++) {
        buf_addf(&m->out, "%s\"%s\": ", i ? ", " : "", names[(pick(m, 2) * 2 + i) % 4]);
        add_value(m, depth + 1);
    }
    buf_add_lit(&m->out, "}");
}

static void add_scalar(maker *m) {
    static const char *const scalars[] = {"0",
                                          "1",
                                          "2",
                                          "1.0",
                                          "1.5",
                                          "\"x\"",
                                          "\"xy\"",
                                          "\"\"",
                                          "null",
                                          "true",
                                          "false",
                                          "-1",
                                          "{\"$numberDouble\": \"NaN\"}",
                                          "{\"$numberDecimal\": \"2\"}"};
    buf_addf(&m->out, "%s", scalars[pick(m, sizeof scalars / sizeof *scalars)]);
}

static void add_value(maker *m, unsigned depth) {
    unsigned kind = depth > 3 ? 0 : pick(m, 6);
    if (kind == 4) {
        add_list(m, depth);
    } else if (kind == 5) {
        add_object(m, depth);
    } else {
        add_scalar(m);
    }
}

static void add_path(maker *m) {
    static const char *const paths[] = {"a", "b", "a.b", "a.0", "a.b.a", "a.1.b", "a.0.0"};
    buf_addf(&m->out, "\"%s\": ", paths[pick(m, sizeof paths / sizeof *paths)]);
}

static void add_conditions(maker *m, unsigned depth);

static void add_condition(maker *m, unsigned depth) {
    static const char *const simple[] = {"$eq", "$ne", "$lt", "$lte", "$gt", "$gte"};
    static const char *const others[] = {"\"$exists\": true", "\"$exists\": false", "\"$size\": 1", "\"$mod\": [2, 1]",
                                         "\"$all\": []",      "\"$bitsAnySet\": 1", "\"$size\": 2", "\"$all\": [1, \"x\"]"};
    switch (depth > 2 ? pick(m, 3) : pick(m, 6)) {
    case 0:
    case 1:
        buf_addf(&m->out, "\"%s\": ", simple[pick(m, 6)]);
        add_value(m, 2);
        break;
    case 2:
        buf_addf(&m->out, "%s", others[pick(m, 8)]);
        break;
    case 3:
        buf_addf(&m->out, "\"%s\": ", pick(m, 2) ? "$in" : "$nin");
        add_list(m, 2);
        break;
    case 4:
        buf_add_lit(&m->out, "\"$not\": ");
        add_conditions(m, depth + 1);
        break;
    default:
        buf_add_lit(&m->out, "\"$elemMatch\": ");
        add_conditions(m, depth + 1);
    }
}

static void add_conditions(maker *m, unsigned depth) {
    buf_add_lit(&m->out, "{");
    add_condition(m, depth);
    buf_add_lit(&m->out, "}");
}

static void add_filter(maker *m, unsigned depth) {
    unsigned kind = depth > 1 ? 0 : pick(m, 8);
    buf_add_lit(&m->out, "{");
    if (kind >= 6) {
        buf_addf(&m->out, "\"%s\": [", kind == 6 ? "$or" : "$and");
        add_filter(m, depth + 1);
        buf_add_lit(&m->out, ", ");
        add_filter(m, depth + 1);
        buf_add_lit(&m->out, "]");
    } else {
        add_path(m);
        add_conditions(m, 0);
    }
    buf_add_lit(&m->out, "}");
}

static char *made(maker *m, void (*add)(maker *m, unsigned depth)) {
    buf_clear(&m->out);
    add(m, 0);
    return arena_text(&memory, buf_view(&m->out));
}

static const char *printed(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *printed(const char *format, ...) {
    static char text[4][4096];
    static unsigned next;
    va_list args;
    va_start(args, format);
    char *out = text[next++ % 4];
    vsnprintf(out, sizeof text[0], format, args);
    va_end(args);
    return out;
}

static void expect_law(bool holds, const char *law, const char *doc, const char *filter, uint64_t seed) {
    if (!holds) {
        fail_msg("%s: document %s, filter %s, seed %llu", law, doc, filter, (unsigned long long)seed);
    }
}

static void laws_of_logic(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS(20000); seed++) {
        maker m = {.out = buf_init(BUF_NO_LIMIT)};
        random_seed(&m.random, seed);
        const char *doc = made(&m, add_object), *f = made(&m, add_filter), *g = made(&m, add_filter);
        slice d = document(doc);
        bool in_f = matches(parse(document(f)), d), in_g = matches(parse(document(g)), d);
        expect_law(matches(parse(document(printed("{\"$nor\": [%s]}", f))), d) == !in_f, "$nor is the opposite", doc, f, seed);
        expect_law(matches(parse(document(printed("{\"$and\": [%s, %s]}", f, g))), d) == (in_f && in_g), "$and", doc, f, seed);
        expect_law(matches(parse(document(printed("{\"$or\": [%s, %s]}", f, g))), d) == (in_f || in_g), "$or", doc, f, seed);
        expect_law(matches(parse(document(printed("{\"$nor\": [%s, %s]}", f, g))), d) == !(in_f || in_g), "$nor of two", doc, f, seed);
        buf_free(&m.out);
        arena_reset(&memory);
    }
}

static void laws_of_values(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS(20000); seed++) {
        maker m = {.out = buf_init(BUF_NO_LIMIT)};
        random_seed(&m.random, seed);
        const char *doc = made(&m, add_object), *v = made(&m, add_value), *w = made(&m, add_value);
        slice d = document(doc);
        bool eq = matches(parse(document(printed("{\"a.b\": {\"$eq\": %s}}", v))), d);
        bool eq_w = matches(parse(document(printed("{\"a.b\": {\"$eq\": %s}}", w))), d);
        bool lt = matches(parse(document(printed("{\"a.b\": {\"$lt\": %s}}", v))), d);
        expect_law(matches(parse(document(printed("{\"a.b\": {\"$in\": [%s, %s]}}", v, w))), d) == (eq || eq_w), "$in is $or", doc, v,
                   seed);
        expect_law(matches(parse(document(printed("{\"a.b\": {\"$all\": [%s, %s]}}", v, w))), d) == (eq && eq_w), "$all is $and", doc, v,
                   seed);
        expect_law(matches(parse(document(printed("{\"a.b\": {\"$lte\": %s}}", v))), d) == (lt || eq), "$lte is $lt or $eq", doc, v, seed);
        expect_law(matches(parse(document(printed("{\"a.b\": {\"$ne\": %s}}", v))), d) == !eq, "$ne is not $eq", doc, v, seed);
        bool one = matches(parse(document(printed("{\"a\": {\"$elemMatch\": {\"b\": %s, \"a\": %s}}}", v, w))), d);
        bool both = matches(parse(document(printed("{\"a.b\": %s, \"a.a\": %s}", v, w))), d);
        bool arrays = memchr(doc, '[', strlen(doc)) && strstr(doc, "[[");
        expect_law(arrays || !one || both, "$elemMatch implies its conditions one by one", doc, v, seed);
        buf_free(&m.out);
        arena_reset(&memory);
    }
}

/* Keys of random documents compare as a total order, in both directions. */
static void laws_of_sorting(void **state) {
    (void)state;
    enum { N = 3 };
    for (uint64_t seed = 1; seed <= ROUNDS(5000); seed++) {
        maker m = {.out = buf_init(BUF_NO_LIMIT)};
        random_seed(&m.random, seed);
        mql_sort up, down;
        slice keys[N], back[N];
        bool usable = true;
        assert_int_equal(mql_sort_parse(&operation, document("{\"a.b\": 1, \"b\": -1}"), &up), OK);
        assert_int_equal(mql_sort_parse(&operation, document("{\"a.b\": -1, \"b\": 1}"), &down), OK);
        for (size_t i = 0; i < N && usable; i++) {
            slice d = document(made(&m, add_object));
            mql_run r = run_on(d, 1000000);
            usable = mql_sort_key(&r, &up, d, &keys[i]) == OK && mql_sort_key(&r, &down, d, &back[i]) == OK; /* no parallel arrays */
        }
        int ab = usable ? mql_sort_compare(&up, NULL, keys[0], keys[1]) : 0,
            bc = usable ? mql_sort_compare(&up, NULL, keys[1], keys[2]) : 0;
        if (usable) {
            assert_int_equal(mql_sort_compare(&up, NULL, keys[0], keys[0]), 0);
            assert_int_equal(ab<0, mql_sort_compare(&up, NULL, keys[1], keys[0])> 0);
            assert_true(!(ab <= 0 && bc <= 0) || mql_sort_compare(&up, NULL, keys[0], keys[2]) <= 0);
            assert_int_equal(mql_sort_compare(&down, NULL, back[0], back[1]) < 0, mql_sort_compare(&down, NULL, back[1], back[0]) > 0);
        }
        buf_free(&m.out);
        arena_reset(&memory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tree_of_one_equality, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tree_of_negations, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tree_of_nothing_and_everything, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tree_of_elem_match, set_up, tear_down),
        cmocka_unit_test_setup_teardown(distances_for_ordering, set_up, tear_down),
        cmocka_unit_test_setup_teardown(prefixes_of_regexes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(text_scores_reach_projection_and_sort, set_up, tear_down),
        cmocka_unit_test_setup_teardown(work_is_paid_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(few_steps_are_too_few, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_values_in_a_list, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_is_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(laws_of_logic, set_up, tear_down),
        cmocka_unit_test_setup_teardown(laws_of_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(laws_of_sorting, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
