/* Indexing policies: which paths are indexed, which of two paths wins, and how many terms a document or a change has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "doc/json.h"
#include "index/terms.h"

static arena memory;

static int tear_down(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

static slice bson(const char *json) {
    buf b = buf_init(BUF_NO_LIMIT);
    json_root root;
    if (json_to_bson(slice_str(json), NULL, &b, &root, NULL) != OK) {
        fail_msg("no JSON: %s", json);
    }
    slice made = arena_copy(&memory, buf_view(&b));
    buf_free(&b);
    return made;
}

static err parse(const char *json, index_policy *policy) {
    op *o = arena_new(&memory, op);
    op_init(o, &memory, 0);
    err code = index_policy_parse(o, bson(json), NULL, 0, policy);
    assert_true(code == OK || o->detail_n > 0);
    return code;
}

/* The number of scalars that a policy indexes. */
static size_t scalars(const char *policy_json, const char *document) {
    index_policy policy;
    assert_int_equal(parse(policy_json, &policy), OK);
    size_t terms = index_terms(&policy, bson(document));
    assert_int_equal(terms % 2, 1);
    return terms / 2;
}

#define ALL "\"includedPaths\":[{\"path\":\"/*\"}]"
#define NONE "\"excludedPaths\":[{\"path\":\"/*\"}]"

static void the_default_counts_everything(void **state) {
    (void)state;
    static const char document[] = "{\"id\":\"1\",\"a\":{\"b\":[1,2,{\"c\":null}]},\"d\":true,\"e\":{},\"f\":[]}";
    assert_int_equal(scalars("{}", document), 5);
    assert_int_equal(scalars("{" ALL "}", document), 5);
    index_policy policy;
    op o;
    op_init(&o, &memory, 0);
    assert_int_equal(index_policy_parse(&o, SLICE_EMPTY, NULL, 0, &policy), OK);
    assert_int_equal(index_terms(&policy, bson(document)), 11);
}

static void mode_none_counts_nothing(void **state) {
    (void)state;
    index_policy policy;
    assert_int_equal(parse("{\"indexingMode\":\"None\"}", &policy), OK);
    assert_true(policy.off);
    assert_int_equal(index_terms(&policy, bson("{\"a\":1}")), 0);
    assert_int_equal(index_terms_changed(&memory, &policy, bson("{\"a\":1}"), bson("{\"a\":2}")), 0);
}

static void excluding_some(void **state) {
    (void)state;
    static const char document[] = "{\"a\":1,\"b\":{\"c\":2,\"d\":{\"e\":3}},\"f\":[4,5]}";
    assert_int_equal(scalars("{" ALL ",\"excludedPaths\":[{\"path\":\"/b/*\"}]}", document), 3);
    assert_int_equal(scalars("{" ALL ",\"excludedPaths\":[{\"path\":\"/b/c/?\"}]}", document), 4);
    assert_int_equal(scalars("{" ALL ",\"excludedPaths\":[{\"path\":\"/b/?\"}]}", document), 5); /* b is not a scalar */
    assert_int_equal(scalars("{" ALL ",\"excludedPaths\":[{\"path\":\"/f/[]/?\"}]}", document), 3);
    assert_int_equal(scalars("{" ALL ",\"excludedPaths\":[{\"path\":\"/f/*\"}]}", document), 3);
}

static void including_some(void **state) {
    (void)state;
    static const char document[] = "{\"a\":1,\"b\":{\"c\":2,\"d\":{\"e\":3}},\"f\":[4,{\"g\":5}]}";
    assert_int_equal(scalars("{" NONE "}", document), 0);
    assert_int_equal(scalars("{\"includedPaths\":[{\"path\":\"/a/?\"}]," NONE "}", document), 1);
    assert_int_equal(scalars("{\"includedPaths\":[{\"path\":\"/a\"}]," NONE "}", document), 1); /* the form of older policies */
    assert_int_equal(scalars("{\"includedPaths\":[{\"path\":\"/b/*\"}]," NONE "}", document), 2);
    assert_int_equal(scalars("{\"includedPaths\":[{\"path\":\"/f/[]/g/?\"}]," NONE "}", document), 1);
    assert_int_equal(scalars("{\"includedPaths\":[{\"path\":\"/f/[]/?\"}]," NONE "}", document), 1);
}

/* The deeper path wins, whether included or excluded; at the same depth the scalar form beats the star. */
static void precedence(void **state) {
    (void)state;
    static const char document[] = "{\"a\":{\"b\":{\"c\":1,\"d\":2},\"e\":3},\"f\":4}";
    assert_int_equal(scalars("{" ALL ",\"excludedPaths\":[{\"path\":\"/a/*\"},{\"path\":\"/a/b/d/?\"}]}", document), 1);
    assert_int_equal(
        scalars("{\"includedPaths\":[{\"path\":\"/*\"},{\"path\":\"/a/b/*\"}],\"excludedPaths\":[{\"path\":\"/a/*\"}]}", document), 3);
    assert_int_equal(
        scalars("{\"includedPaths\":[{\"path\":\"/a/*\"}],\"excludedPaths\":[{\"path\":\"/*\"},{\"path\":\"/a/b/*\"}]}", document), 1);
    assert_int_equal(
        scalars("{\"includedPaths\":[{\"path\":\"/a/b/c/?\"}],\"excludedPaths\":[{\"path\":\"/*\"},{\"path\":\"/a/b/*\"}]}", document), 1);
    assert_int_equal(scalars("{" ALL ",\"excludedPaths\":[{\"path\":\"/f/?\"},{\"path\":\"/a/e/*\"}]}", document), 2);
}

static void quoted_steps(void **state) {
    (void)state;
    static const char document[] = "{\"a b\":1,\"c/d\":{\"e\":2},\"_etag\":3}";
    assert_int_equal(scalars("{" ALL ",\"excludedPaths\":[{\"path\":\"/\\\"a b\\\"/?\"}]}", document), 2);
    assert_int_equal(scalars("{" ALL ",\"excludedPaths\":[{\"path\":\"/\\\"c/d\\\"/*\"}]}", document), 2);
    assert_int_equal(scalars("{" ALL ",\"excludedPaths\":[{\"path\":\"/\\\"_etag\\\"/?\"}]}", document), 2);
}

static void policies_that_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "{\"indexingMode\":\"sometimes\"}",
        "{\"indexingMode\":7}",
        "{\"includedPaths\":{}}",
        "{\"includedPaths\":[7]}",
        "{\"includedPaths\":[{}]}",
        "{\"includedPaths\":[{\"path\":7}]}",
        "{\"includedPaths\":[{\"path\":\"\"}]}",
        "{\"includedPaths\":[{\"path\":\"a\"}]}",
        "{\"includedPaths\":[{\"path\":\"/a//b/?\"}]}",
        "{\"includedPaths\":[{\"path\":\"/\\\"a/?\"}]}",
        "{\"includedPaths\":[{\"path\":\"/\\\"a\\\"b/?\"}]}",
        "{\"includedPaths\":[{\"path\":\"/a/?\"}]}", /* no rule for all other paths */
        "{\"excludedPaths\":[{\"path\":\"/a/*\"}]}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        index_policy policy;
        if (parse(wrong[i], &policy) != E_BAD_REQUEST) {
            fail_msg("accepted: %s", wrong[i]);
        }
    }
}

static void very_deep_and_very_many_paths_are_refused(void **state) {
    (void)state;
    index_policy policy;
    buf deep = buf_init(BUF_NO_LIMIT), many = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&deep, "{\"includedPaths\":[{\"path\":\"/*\"},{\"path\":\"");
    for (int i = 0; i < 40; i++) {
        buf_add_lit(&deep, "/a");
    }
    buf_add_lit(&deep, "/?\"}]}");
    buf_add_byte(&deep, 0);
    assert_int_equal(parse(deep.p, &policy), E_BAD_REQUEST);
    buf_add_lit(&many, "{\"includedPaths\":[{\"path\":\"/*\"}");
    for (int i = 0; i < 1501; i++) {
        buf_addf(&many, ",{\"path\":\"/p%d/?\"}", i);
    }
    buf_add_lit(&many, "]}");
    buf_add_byte(&many, 0);
    assert_int_equal(parse(many.p, &policy), E_BAD_REQUEST);
    buf_free(&deep);
    buf_free(&many);
}

static size_t changed(const char *policy_json, const char *before, const char *after) {
    index_policy policy;
    assert_int_equal(parse(policy_json, &policy), OK);
    return index_terms_changed(&memory, &policy, bson(before), bson(after));
}

static void terms_that_a_change_moves(void **state) {
    (void)state;
    static const char item[] = "{\"id\":\"1\",\"n\":1,\"s\":\"x\",\"l\":[1,2,3]}";
    assert_int_equal(changed("{}", item, item), 0);
    assert_int_equal(changed("{}", item, "{\"id\":\"1\",\"s\":\"x\",\"n\":1,\"l\":[1,2,3]}"), 0); /* order does not matter */
    assert_int_equal(changed("{}", item, "{\"id\":\"1\",\"n\":2,\"s\":\"x\",\"l\":[1,2,3]}"), 4);
    assert_int_equal(changed("{}", item, "{\"id\":\"1\",\"n\":1.0,\"s\":\"x\",\"l\":[1,2,3]}"), 0);   /* the same number */
    assert_int_equal(changed("{}", item, "{\"id\":\"1\",\"n\":\"1\",\"s\":\"x\",\"l\":[1,2,3]}"), 4); /* another type */
    assert_int_equal(changed("{}", item, "{\"id\":\"1\",\"n\":1,\"s\":\"x\",\"l\":[3,2,1]}"), 0);     /* positions do not count */
    assert_int_equal(changed("{}", item, "{\"id\":\"1\",\"n\":1,\"s\":\"x\",\"l\":[1,2,3,3]}"), 2);   /* one more */
    assert_int_equal(changed("{}", item, "{\"id\":\"1\",\"n\":1,\"s\":\"x\",\"l\":[1,2]}"), 2);
    assert_int_equal(changed("{}", item, "{}"), 12);
    assert_int_equal(changed("{}", "{\"a\":{\"b\":1}}", "{\"a\":1,\"b\":1}"), 6);
    assert_int_equal(changed("{\"includedPaths\":[{\"path\":\"/n/?\"}]," NONE "}", item, "{\"n\":1,\"new\":7}"), 0);
}

/* The largest policy and the largest item that a client may send take bounded time. */
static void a_hostile_pair_takes_bounded_time(void **state) {
    (void)state;
    index_policy policy;
    buf text = buf_init(BUF_NO_LIMIT), item = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&text, "{\"includedPaths\":[{\"path\":\"/*\"}");
    for (int i = 0; i < 1400; i++) {
        buf_addf(&text, ",{\"path\":\"/%05d/?\"}", i);
    }
    buf_add_lit(&text, "]}");
    buf_add_byte(&text, 0);
    assert_int_equal(parse(text.p, &policy), OK);
    buf_add_byte(&item, '{');
    for (int i = 0; i < 150000; i++) {
        buf_addf(&item, "%s\"%05d\":1", i ? "," : "", i + 50000);
    }
    buf_add_byte(&item, '}');
    buf_add_byte(&item, 0);
    slice document = bson(item.p);
    clock_t start = clock();
    assert_int_equal(index_terms(&policy, document), 300001);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    printf("%.3f s for 150,000 properties against 1,401 paths\n", seconds);
    assert_true(seconds < 1);
    buf_free(&text);
    buf_free(&item);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_default_counts_everything, tear_down),
        cmocka_unit_test_teardown(mode_none_counts_nothing, tear_down),
        cmocka_unit_test_teardown(excluding_some, tear_down),
        cmocka_unit_test_teardown(including_some, tear_down),
        cmocka_unit_test_teardown(precedence, tear_down),
        cmocka_unit_test_teardown(quoted_steps, tear_down),
        cmocka_unit_test_teardown(policies_that_are_refused, tear_down),
        cmocka_unit_test_teardown(very_deep_and_very_many_paths_are_refused, tear_down),
        cmocka_unit_test_teardown(terms_that_a_change_moves, tear_down),
        cmocka_unit_test_teardown(a_hostile_pair_takes_bounded_time, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
