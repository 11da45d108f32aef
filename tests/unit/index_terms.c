/* Terms of GeoJSON shapes and texts, and which policy changes affect index entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/random.h"
#include "doc/json.h"
#include "geo/cells.h"
#include "geo/geo.h"
#include "index/terms.h"
#include "random_document.h"

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

/* Parses the policy in a container's properties. */
static slice rows_of(slice properties) {
    doc_element e;
    return doc_find_member(properties, SLICE_LIT("rows"), &e) ? e.value : SLICE_EMPTY;
}

static index_policy policy_of(const char *properties) {
    index_policy policy;
    op *o = arena_new(&memory, op);
    op_init(o, &memory, 0);
    if (index_policy_parse(o, index_policy_source(&memory, bson(properties), rows_of(bson(properties))), NULL, 0, &policy) != OK) {
        fail_msg("refused: %s: %.*s", properties, (int)o->detail_n, o->detail);
    }
    return policy;
}

static index_path path_of(const char *names) {
    index_path path = INDEX_PATH_ROOT;
    for (slice rest = slice_str(names); rest.n;) {
        const char *dot = memchr(rest.p, '.', rest.n);
        slice name = slice_of(rest.p, dot ? (size_t)(dot - rest.p) : rest.n);
        path = slice_eq(name, SLICE_LIT("[]")) ? index_path_element(path) : index_path_member(path, name);
        rest = slice_skip(rest, name.n + (dot != NULL));
    }
    return path;
}

static size_t terms_under(const index_list *l, index_path path) {
    buf begins = buf_init(BUF_NO_LIMIT);
    size_t n = 0;
    buf_add_be64(&begins, path);
    for (size_t i = 0; i < l->n; i++) {
        n += slice_starts(index_list_term(l, i), buf_view(&begins));
    }
    buf_free(&begins);
    return n;
}

static bool has_term(const index_list *l, index_path path, slice value) {
    buf whole = buf_init(BUF_NO_LIMIT);
    bool has = false;
    buf_add_be64(&whole, path);
    buf_add_slice(&whole, value);
    for (size_t i = 0; i < l->n; i++) {
        has = has || slice_eq(index_list_term(l, i), buf_view(&whole));
    }
    buf_free(&whole);
    return has;
}

static index_list listed(const index_policy *policy, const char *document) {
    index_list l = {0};
    index_list_make(&l, policy, bson(document), 7);
    return l;
}

/* ---- shapes ---- */

#define POINT "{\"type\":\"Point\",\"coordinates\":[2.35,48.86]}"
#define SPATIAL(path) "{\"indexingPolicy\":{\"spatialIndexes\":[{\"path\":\"" path "\"}]}}"

static size_t shapes(const char *properties, const char *document, const char *names) {
    index_policy policy = policy_of(properties);
    index_list l = listed(&policy, document);
    size_t n = terms_under(&l, index_path_mixed(path_of(names), INDEX_OF_CELLS));
    index_list_free(&l);
    return n;
}

static void shapes_have_cells_where_the_policy_says(void **state) {
    (void)state;
    static const char document[] =
        "{\"a\":{\"at\":" POINT "},\"at\":" POINT ",\"list\":[{\"at\":" POINT "},{\"at\":7},{\"at\":" POINT "}]}";
    assert_int_equal(shapes("{}", document, "at"), 0);
    assert_int_equal(shapes(SPATIAL("/at/?"), document, "at"), 1);
    assert_int_equal(shapes(SPATIAL("/at/?"), document, "a.at"), 0);
    assert_int_equal(shapes(SPATIAL("/a/*"), document, "a.at"), 1);
    assert_int_equal(shapes(SPATIAL("/a/?"), document, "a.at"), 0);
    assert_int_equal(shapes(SPATIAL("/list/[]/at/?"), document, "list.[].at"), 2);
    assert_int_equal(shapes(SPATIAL("/*"), document, "at") + shapes(SPATIAL("/*"), document, "a.at"), 2);
    assert_int_equal(shapes(SPATIAL("/*"), document, "list.[].at"), 2);
    static const char old[] =
        "{\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/*\",\"indexes\":[{\"kind\":\"Spatial\",\"dataType\":\"Point\"}]}]}}";
    assert_int_equal(shapes(old, document, "a.at"), 1);
    assert_int_equal(shapes("{\"indexingPolicy\":{\"indexingMode\":\"none\",\"spatialIndexes\":[{\"path\":\"/at/?\"}]}}", document, "at"),
                     0);
}

static void the_cell_of_a_point_is_where_it_is(void **state) {
    (void)state;
    index_policy policy = policy_of(SPATIAL("/at/?"));
    index_list l = listed(&policy, "{\"at\":" POINT "}");
    buf value = buf_init(BUF_NO_LIMIT);
    geo_cell_spell(&value, geo_cell_at(geo_point_at(2.35, 48.86).v, GEO_CELL_LEVELS));
    assert_true(has_term(&l, index_path_mixed(path_of("at"), INDEX_OF_CELLS), buf_view(&value)));
    buf_free(&value);
    index_list_free(&l);
}

static void what_is_no_shape_has_no_cells(void **state) {
    (void)state;
    static const char *const none[] = {
        "{\"at\":7}",
        "{\"at\":{}}",
        "{\"at\":{\"type\":\"Point\"}}",
        "{\"at\":{\"type\":\"Point\",\"coordinates\":[1]}}",
        "{\"at\":{\"type\":\"Point\",\"coordinates\":[181,0]}}",
        "{\"at\":{\"type\":\"Point\",\"coordinates\":{}}}",
        "{\"at\":{\"type\":\"Circle\",\"coordinates\":[1,2]}}",
        "{\"at\":{\"type\":\"LineString\",\"coordinates\":[[1,2]]}}",
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(shapes(SPATIAL("/at/?"), none[i], "at"), 0);
    }
    assert_in_range(shapes(SPATIAL("/at/?"), "{\"at\":{\"type\":\"LineString\",\"coordinates\":[[1,2],[3,4]]}}", "at"), 1,
                    GEO_CELLS_STORED);
}

/* ---- words ---- */

#define TEXTS(language)                                                                                                                    \
    "{\"fullTextPolicy\":{\"defaultLanguage\":\"" language "\",\"fullTextPaths\":[{\"path\":\"/t\"}]},"                                    \
    "\"indexingPolicy\":{\"fullTextIndexes\":[{\"path\":\"/t\"}]}}"

static bool has_word(const char *properties, const char *document, const char *word) {
    index_policy policy = policy_of(properties);
    index_list l = listed(&policy, document);
    buf value = buf_init(BUF_NO_LIMIT);
    index_spell_string(&value, slice_str(word));
    assert_int_equal(policy.texts_n, 1);
    bool has = has_term(&l, policy.texts[0].id, buf_view(&value));
    buf_free(&value);
    index_list_free(&l);
    return has;
}

static void texts_have_the_stems_of_their_words(void **state) {
    (void)state;
    static const char document[] = "{\"t\":\"The Bicycles, and a MOUNTAIN; mountains!\"}";
    assert_true(has_word(TEXTS("en-US"), document, "bicycl"));
    assert_true(has_word(TEXTS("en-US"), document, "mountain"));
    assert_false(has_word(TEXTS("en-US"), document, "mountains"));
    assert_false(has_word(TEXTS("en-US"), document, "the"));
    assert_true(has_word(TEXTS("de-DE"), "{\"t\":\"Die Häuser\"}", "haus"));
    assert_false(has_word(TEXTS("en-US"), "{\"t\":[\"mountain\"]}", "mountain"));
    assert_false(has_word(TEXTS("en-US"), "{\"u\":\"mountain\"}", "mountain"));
}

/* Every term that a search would compare with is listed exactly once. */
static void all_words_of_random_texts_are_there(void **state) {
    (void)state;
    random_source source;
    index_policy policy = policy_of(TEXTS("en-US"));
    random_seed(&source, 7);
    for (int round = 0; round < 50; round++) {
        buf text = buf_init(BUF_NO_LIMIT), json = buf_init(BUF_NO_LIMIT);
        size_t words = (size_t)random_below(&source, 3000);
        for (size_t i = 0; i < words; i++) {
            buf_addf(&text, "%s%c%llu", i ? " " : "", (char)('a' + random_below(&source, 26)),
                     (unsigned long long)random_below(&source, 40));
        }
        buf_addf(&json, "{\"t\":\"%.*s\"}", (int)text.n, text.p ? text.p : "");
        buf_add_byte(&json, 0);
        index_list l = listed(&policy, json.p);
        index_list_sort(&l);
        size_t listed_n = terms_under(&l, policy.texts[0].id), found = 0;
        search_words w = search_words_of(&memory, SEARCH_ENGLISH, buf_view(&text));
        for (slice term; search_next(&w, &term); found++) {
            buf value = buf_init(BUF_NO_LIMIT);
            index_spell_string(&value, term);
            if (found % 50 == 0) {
                assert_true(has_term(&l, policy.texts[0].id, buf_view(&value)));
            }
            buf_free(&value);
        }
        assert_true(listed_n <= found && listed_n <= 26 * 40);
        buf_free(&text);
        buf_free(&json);
        index_list_free(&l);
    }
}

static index_list of_long_text(const index_policy *policy, size_t words, size_t different) {
    buf json = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&json, "{\"t\":\"");
    for (size_t i = 0; i < words; i++) {
        buf_addf(&json, "w%zu ", i % different);
    }
    buf_add_lit(&json, "\"}");
    buf_add_byte(&json, 0);
    index_list l = listed(policy, json.p);
    buf_free(&json);
    return l;
}

static void long_texts_count_different_words_only(void **state) {
    (void)state;
    index_policy policy = policy_of(TEXTS("en-US"));
    index_list l = of_long_text(&policy, 200000, 5000);
    assert_false(l.large);
    assert_int_equal(terms_under(&l, policy.texts[0].id), 5000);
    index_list_free(&l);
    l = of_long_text(&policy, 60000, 30000);
    assert_true(l.large);
    assert_int_equal(l.n, 0);
    index_list_free(&l);
}

/* ---- policies ---- */

static bool same(const char *a, const char *b) {
    index_policy x = policy_of(a), y = policy_of(b);
    return index_policy_same(&x, &y);
}

static void which_changes_change_entries(void **state) {
    (void)state;
    assert_true(same("{}", "{\"indexingPolicy\":{\"indexingMode\":\"consistent\",\"includedPaths\":[{\"path\":\"/*\"}]}}"));
    assert_true(same("{\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/\"}]}}",
                     "{\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/*\"}]}}"));
    assert_false(same("{}", SPATIAL("/at/?")));
    assert_true(same(SPATIAL("/at/?"), SPATIAL("/at")));
    assert_false(same(SPATIAL("/at/?"), SPATIAL("/at/*")));
    assert_false(same(SPATIAL("/at/?"), SPATIAL("/b/?")));
    assert_false(same("{}", TEXTS("en-US")));
    assert_true(same(TEXTS("en-US"), TEXTS("en-US")));
    assert_false(same(TEXTS("en-US"), TEXTS("fr-FR")));
    assert_true(same("{}", "{\"fullTextPolicy\":{\"defaultLanguage\":\"fr-FR\"}}"));
    static const char vectors[] = "{\"vectorEmbeddingPolicy\":{\"vectorEmbeddings\":[{\"path\":\"/v\",\"dimensions\":3}]},"
                                  "\"indexingPolicy\":{\"vectorIndexes\":[{\"path\":\"/v\",\"type\":\"flat\"}]}}";
    assert_true(same("{}", vectors));
}

static void tuples_are_their_members(void **state) {
    (void)state;
    index_policy policy = policy_of("{\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/e/[]/{name/first, kind}/?\"}],"
                                    "\"excludedPaths\":[{\"path\":\"/*\"}]}}");
    const index_step first[] = {
        {SLICE_LIT("e"), false, 0}, {SLICE_EMPTY, true, 0}, {SLICE_LIT("name"), false, 0}, {SLICE_LIT("first"), false, 0}};
    const index_step kind[] = {{SLICE_LIT("e"), false, 0}, {SLICE_EMPTY, true, 0}, {SLICE_LIT("kind"), false, 0}};
    const index_step other[] = {{SLICE_LIT("e"), false, 0}, {SLICE_EMPTY, true, 0}, {SLICE_LIT("other"), false, 0}};
    assert_true(index_policy_covers(&policy, first, 4));
    assert_true(index_policy_covers(&policy, kind, 3));
    assert_false(index_policy_covers(&policy, other, 3));
}

/* ---- copies of lists ---- */

static void same_lists(const index_list *a, const index_list *b) {
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert_true(slice_eq(index_list_term(a, i), index_list_term(b, i)));
    }
    assert_int_equal(a->paths_n, b->paths_n);
    if (a->paths_n) {
        assert_memory_equal(a->paths, b->paths, a->paths_n * sizeof *a->paths);
    }
    assert_true(a->shape == b->shape && a->large == b->large && a->charged == b->charged);
}

/* A restored copy with a new _ts equals a list made with that _ts. */
static void check_kept(const index_policy *policy, slice document) {
    index_list listed = {0}, restored = {0}, made = {0};
    index_list_make(&listed, policy, document, 0);
    const index_kept *kept = index_list_keep(&memory, &listed);
    index_list_free(&listed);
    index_list_make(&restored, policy, bson("{\"another\":[1,2,3],\"a\":5}"), 7); /* old contents, which restoring replaces */
    index_list_restore(&restored, kept);
    index_list_set_ts(&restored, policy, document, 1800000000);
    index_list_make(&made, policy, document, 1800000000);
    same_lists(&restored, &made);
    assert_int_equal(kept->charged, index_terms(policy, document));
    index_list_add_shape(&restored, true);
    index_list_add_shape(&made, true);
    index_list_sort(&restored);
    index_list_sort(&made);
    same_lists(&restored, &made);
    index_list_free(&restored);
    index_list_free(&made);
}

static void kept_lists_are_those_that_were_made(void **state) {
    (void)state;
    static const char *const properties[] = {
        "{}",
        "{\"indexingPolicy\":{\"indexingMode\":\"none\",\"automatic\":false}}",
        "{\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/a/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}]}}",
        "{\"rows\":{\"lean\":true},\"indexingPolicy\":{\"compositeIndexes\":[[{\"path\":\"/a\"},{\"path\":\"/_ts\"}]]}}",
        "{\"indexingPolicy\":{\"compositeIndexes\":[[{\"path\":\"/a\"},{\"path\":\"/_ts\",\"order\":\"descending\"}]]}}",
    };
    random_source r;
    random_seed(&r, 20);
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        index_policy policy = policy_of(properties[i]);
        check_kept(&policy, bson("{}"));
        for (int k = 0; k < 100; k++) {
            bson_t *document = random_bson(&r);
            check_kept(&policy, slice_of(bson_get_data(document), document->len));
            bson_destroy(document);
        }
        buf many = buf_init(BUF_NO_LIMIT); /* more terms than the limit */
        buf_add_slice(&many, SLICE_LIT("{\"l\":[0"));
        for (int k = 0; k < INDEX_TERMS_MAX; k++) {
            buf_add_slice(&many, SLICE_LIT(",1"));
        }
        buf_add_slice(&many, SLICE_LIT("]}"));
        check_kept(&policy, bson(arena_text(&memory, buf_view(&many))));
        buf_free(&many);
    }
}

/* With a lean policy only the included paths have entries. "lean" counts in `rows` only, not in an indexing policy. */
static void lean_policies_list_what_is_named(void **state) {
    (void)state;
    static const char paths[] = "\"includedPaths\":[{\"path\":\"/a/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}]";
    index_policy lean = policy_of(arena_text(&memory, arena_printf(&memory, "{\"rows\":{\"lean\":true},\"indexingPolicy\":{%s}}", paths)));
    index_policy not_lean =
        policy_of(arena_text(&memory, arena_printf(&memory, "{\"lean\":{},\"indexingPolicy\":{\"lean\":true,%s}}", paths)));
    index_list l = {0};
    const index_step ts = {.name = SLICE_LIT("_ts")}, id = {.name = SLICE_LIT("id")}, a = {.name = SLICE_LIT("a")};
    assert_true(lean.lean && !not_lean.lean && !index_policy_same(&lean, &not_lean));
    assert_true(index_policy_covers(&lean, &a, 1) && !index_policy_covers(&lean, &ts, 1) && !index_policy_covers(&lean, &id, 1));
    assert_true(index_policy_covers(&not_lean, &ts, 1) && index_policy_covers(&not_lean, &id, 1));
    index_list_make(&l, &lean, bson("{\"id\":\"x\",\"a\":1,\"b\":2}"), 5);
    index_list_add_shape(&l, true);
    assert_int_equal(l.n, 1);
    index_list_make(&l, &not_lean, bson("{\"id\":\"x\",\"a\":1,\"b\":2}"), 5);
    index_list_add_shape(&l, true);
    assert_int_equal(l.n, 4);
    index_list_free(&l);
}

static void a_list_without_room_is_not_kept(void **state) {
    (void)state;
    budget little = budget_init(NULL, 32 * 1024);
    arena counted = arena_init_counted(&little);
    index_policy policy = policy_of("{}");
    index_list l = {0};
    buf many = buf_init(BUF_NO_LIMIT);
    buf_add_slice(&many, SLICE_LIT("{\"l\":[0"));
    for (int k = 0; k < 2000; k++) {
        buf_add_slice(&many, SLICE_LIT(",1"));
    }
    buf_add_slice(&many, SLICE_LIT("]}"));
    index_list_make(&l, &policy, bson(arena_text(&memory, buf_view(&many))), 0);
    assert_null(index_list_keep(&counted, &l));
    index_list_free(&l);
    buf_free(&many);
    arena_free(&counted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(shapes_have_cells_where_the_policy_says, tear_down),
        cmocka_unit_test_teardown(the_cell_of_a_point_is_where_it_is, tear_down),
        cmocka_unit_test_teardown(what_is_no_shape_has_no_cells, tear_down),
        cmocka_unit_test_teardown(texts_have_the_stems_of_their_words, tear_down),
        cmocka_unit_test_teardown(all_words_of_random_texts_are_there, tear_down),
        cmocka_unit_test_teardown(long_texts_count_different_words_only, tear_down),
        cmocka_unit_test_teardown(which_changes_change_entries, tear_down),
        cmocka_unit_test_teardown(tuples_are_their_members, tear_down),
        cmocka_unit_test_teardown(kept_lists_are_those_that_were_made, tear_down),
        cmocka_unit_test_teardown(lean_policies_list_what_is_named, tear_down),
        cmocka_unit_test_teardown(a_list_without_room_is_not_kept, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
