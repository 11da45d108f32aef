/* Property paths: parsing and lookup. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/limits.h"
#include "doc/json.h"
#include "doc/path.h"
#include "doc/walk.h"
#include "random_document.h"

/* `expected` has the steps of the path, each in brackets. */
static void assert_steps(const char *text, const char *expected) {
    arena a = arena_init();
    doc_path path;
    buf steps = buf_init(BUF_NO_LIMIT);
    if (doc_path_parse(&a, slice_str(text), &path) != OK) {
        fail_msg("%s is refused", text);
    }
    assert_true(slice_eq(path.text, slice_str(text)));
    for (size_t i = 0; i < path.steps_n; i++) {
        assert_int_equal(strlen(path.steps[i].p), path.steps[i].n);
        buf_addf(&steps, "[%s]", path.steps[i].p);
    }
    buf_add_byte(&steps, 0);
    assert_string_equal(steps.p, expected);
    buf_free(&steps);
    arena_free(&a);
}

static void paths_have_steps(void **state) {
    (void)state;
    assert_steps("/department", "[department]");
    assert_steps("/properties/name", "[properties][name]");
    assert_steps("/\"nombre de departamento\"/x", "[nombre de departamento][x]");
    assert_steps("/'single'/\"a/b\"", "[single][a/b]");
    assert_steps("/\"a\\\"b\"/'c\\'d'", "[a\"b][c'd]");
    assert_steps("/\"a\\b\"", "[a\\b]");
    assert_steps("/a\"b/é", "[a\"b][é]");
    assert_steps("/ blanks /kept", "[ blanks ][kept]");
    assert_steps("/a/0", "[a][0]");
}

static void what_is_no_path(void **state) {
    (void)state;
    static const char *const texts[] = {"",    "/",    "a",       "a/b",   "//",      "/a/",   "/a//b",
                                        "/\"", "/\"a", "/\"a\"b", "/\"\"", "/\"a\"/", "/'a\"", "/a/\"b\\\""};
    arena a = arena_init();
    doc_path path;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (doc_path_parse(&a, slice_str(texts[i]), &path) != E_BAD_REQUEST) {
            fail_msg("%s is a path", texts[i]);
        }
    }
    char deep[2 * LIMIT_PATH_DEPTH + 3];
    for (size_t i = 0; i < sizeof deep - 1; i += 2) {
        memcpy(deep + i, "/a", 2);
    }
    assert_int_equal(doc_path_parse(&a, slice_of(deep, 2 * LIMIT_PATH_DEPTH), &path), OK);
    assert_int_equal(path.steps_n, LIMIT_PATH_DEPTH);
    assert_int_equal(doc_path_parse(&a, slice_of(deep, 2 * LIMIT_PATH_DEPTH + 2), &path), E_BAD_REQUEST);
    arena_free(&a);
}

static void assert_finds(const char *text, const char *path_text, const char *expected) {
    arena a = arena_init();
    doc_path path;
    bson_iter_t iter;
    buf bson = buf_init(BUF_NO_LIMIT);
    assert_int_equal(json_to_bson(slice_str(text), NULL, &bson, NULL, NULL), OK);
    assert_int_equal(doc_path_parse(&a, slice_str(path_text), &path), OK);
    bool found = doc_find(buf_view(&bson), &path, &iter);
    doc_element e;
    assert_int_equal(found, expected != NULL);
    assert_int_equal(doc_find_element(buf_view(&bson), &path, &e), found);
    if (found) {
        assert_true(BSON_ITER_HOLDS_UTF8(&iter));
        assert_true(slice_eq(doc_text(&iter), slice_str(expected)));
        assert_true(slice_eq(doc_element_text(&e), slice_str(expected)));
        assert_string_equal(bson_iter_key(&iter), path.steps[path.steps_n - 1].p);
    }
    buf_free(&bson);
    arena_free(&a);
}

static void values_are_found(void **state) {
    (void)state;
    assert_finds("{\"a\":\"1\",\"b\":\"2\"}", "/b", "2");
    assert_finds("{\"a\":{\"b\":{\"c\":\"3\"}},\"c\":\"no\"}", "/a/b/c", "3");
    assert_finds("{\"x\":[1,{\"b\":\"no\"}],\"a b\":{\"c/d\":\"4\"}}", "/\"a b\"/\"c/d\"", "4");
    assert_finds("{\"a\":\"1\"}", "/b", NULL);
    assert_finds("{\"a\":\"1\"}", "/a/b", NULL);
    assert_finds("{\"a\":{}}", "/a/b", NULL);
    assert_finds("{\"ab\":\"1\"}", "/a", NULL);
    assert_finds("{\"a\":[\"0\"]}", "/a/0", NULL); /* arrays are not entered */
    assert_finds("{}", "/a", NULL);
}

static void a_nul_in_a_path_is_one_in_a_key(void **state) {
    (void)state;
    arena a = arena_init();
    doc_path path;
    bson_iter_t iter;
    buf bson = buf_init(BUF_NO_LIMIT);
    assert_int_equal(json_to_bson(SLICE_LIT("{\"a\\u0000b\":\"x\"}"), NULL, &bson, NULL, NULL), OK);
    assert_int_equal(doc_path_parse(&a, slice_of("/a\0b", 4), &path), OK);
    assert_true(doc_find(buf_view(&bson), &path, &iter));
    buf_free(&bson);
    arena_free(&a);
}

/* Every key of a random document is found where libbson finds it, with the same value, and the iterator continues as libbson's does. */
static void libbson_agrees(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 11);
    for (int i = 0; i < 500; i++) {
        bson_t *document = random_bson(&r);
        slice bytes = slice_of(bson_get_data(document), document->len);
        bson_iter_t theirs, ours;
        doc_walk w;
        doc_element e;
        assert_true(doc_walk_init(&w, bytes));
        for (bson_iter_init(&theirs, document); bson_iter_next(&theirs);) {
            assert_true(doc_walk_next(&w, &e));
            assert_int_equal(e.type, bson_iter_type(&theirs));
            assert_string_equal(e.key.p, bson_iter_key(&theirs));
            assert_true(doc_find_key(bytes, slice_str(bson_iter_key(&theirs)), &ours));
            assert_int_equal(bson_iter_type(&ours), bson_iter_type(&theirs));
            assert_ptr_equal(bson_iter_key(&ours), bson_iter_key(&theirs));
            assert_true(doc_find_member(bytes, e.key, &e));
            assert_ptr_equal(e.key.p, bson_iter_key(&theirs));
            bson_iter_t next = theirs;
            assert_int_equal(bson_iter_next(&next), bson_iter_next(&ours));
        }
        assert_false(doc_walk_next(&w, &e));
        assert_false(w.corrupt);
        assert_false(doc_find_key(bytes, SLICE_LIT("absent"), &ours));
        bson_destroy(document);
    }
}

static void corrupt_documents_are_survived(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 12);
    arena a = arena_init();
    doc_path path;
    assert_int_equal(doc_path_parse(&a, SLICE_LIT("/field3/k2"), &path), OK);
    for (int i = 0; i < 2000; i++) {
        bson_t *document = random_bson(&r);
        size_t n = random_below(&r, document->len + 1);
        char *bytes = malloc(n ? n : 1); /* its own block, so that the sanitizer sees the end */
        memcpy(bytes, bson_get_data(document), n);
        for (uint64_t k = random_below(&r, 4); k > 0 && n > 0; k--) {
            bytes[random_below(&r, n)] = (char)random_u64(&r);
        }
        bson_iter_t iter;
        doc_find(slice_of(bytes, n), &path, &iter);
        doc_find_key(slice_of(bytes, n), SLICE_LIT("field1"), &iter);
        doc_find_key(slice_of(bytes, n), SLICE_LIT(""), &iter);
        free(bytes);
        bson_destroy(document);
    }
    bson_iter_t iter;
    assert_false(doc_find_key(SLICE_EMPTY, SLICE_LIT("a"), &iter));
    assert_false(doc_find_key(slice_of("\5\0\0\0", 4), SLICE_LIT("a"), &iter));
    assert_false(doc_find_key(slice_of("\4\0\0\0\0", 5), SLICE_LIT("a"), &iter));
    assert_false(doc_find_key(slice_of("\xFF\xFF\xFF\xFF\0", 5), SLICE_LIT("a"), &iter));
    arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_have_steps), cmocka_unit_test(what_is_no_path),
        cmocka_unit_test(values_are_found), cmocka_unit_test(a_nul_in_a_path_is_one_in_a_key),
        cmocka_unit_test(libbson_agrees),   cmocka_unit_test(corrupt_documents_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
