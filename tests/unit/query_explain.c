/* Explaining a query: which conditions the index answers, and why not; which indexes are used, and which would help; the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "doc/json.h"
#include "query/explain.h"
#include "query/notes.h"

/* A query as after a page, without running one: tests fill in the parts. */
typedef struct told {
    arena arena;
    op op;
    index_policy policy;
    query query;
    query_runner runner;
    container container;
    query_trace trace;
    query_page page;
    query_explained explained;
} told;

static const char excluded[] =
    "{\"indexingMode\":\"consistent\",\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[{\"path\":\"/note/?\"}],"
    "\"compositeIndexes\":[[{\"path\":\"/a\",\"order\":\"ascending\"},{\"path\":\"/b\",\"order\":\"descending\"}]]}";

static void open_told(told *t, const char *policy, const char *text) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    *t = (told){.arena = arena_init()};
    op_init(&t->op, &t->arena, 0);
    assert_int_equal(json_to_bson(slice_str(policy), NULL, &bson, &root, NULL), OK);
    assert_int_equal(index_policy_parse(&t->op, arena_copy(&t->arena, buf_view(&bson)), NULL, 0, &t->policy), OK);
    buf_free(&bson);
    assert_int_equal(query_prepare(&t->op, &t->arena, slice_str(text), NULL, 0, NULL, &t->query), OK);
    query_runner_init(&t->runner, &t->query, &t->op, &t->arena, 0);
    t->runner.context.keep = &t->arena;
    t->runner.steps = QUERY_ITEM_STEPS;
    t->container.key = (pkey_definition){.n = 1, .paths = {{.text = SLICE_LIT("/pk")}}};
    query_page_init(&t->page, NULL, &t->op, &t->container, &t->query, NULL, NULL);
    t->page.ask.trace = &t->trace;
    t->explained = (query_explained){.page = &t->page, .charge_ru = 2.5};
    query_note_where(&t->trace, &t->runner, &t->policy);
    query_note_indexes(&t->page, &t->runner, &t->policy);
}

static void close_told(told *t) {
    arena_free(&t->arena);
}

static void assert_text(slice text, const char *expected) {
    if (!slice_eq(text, slice_str(expected))) {
        fail_msg("\"%.*s\", expected \"%s\"", (int)text.n, text.p, expected);
    }
}

static void assert_reason(const query_reason *reason, const char *expected) {
    buf words = buf_init(BUF_NO_LIMIT);
    query_reason_words(&words, reason);
    assert_text(buf_view(&words), expected);
    buf_free(&words);
}

/* ---- conditions ---- */

static void assert_why(const char *condition, const char *why) {
    told t;
    char text[256];
    snprintf(text, sizeof text, "SELECT * FROM c WHERE %s", condition);
    open_told(&t, excluded, text);
    assert_int_equal(t.trace.where_n, 1);
    assert_reason(&t.trace.where[0].why, why ? why : "");
    assert_int_equal(t.trace.where[0].answered, why == NULL);
    close_told(&t);
}

static void why_the_index_does_not_answer(void **state) {
    (void)state;
    assert_why("c.a = 1", NULL);
    assert_why("c.a IN (1, 2)", NULL);
    assert_why("STARTSWITH(c.a, 'x')", NULL);
    assert_why("ARRAY_CONTAINS(c.tags, 'x')", NULL);
    assert_why("c.a = 1 OR c.b = 2", NULL);
    assert_why("c.note = 'x'", "the indexing policy leaves out /note/?");
    assert_why("UPPER(c.a) = 'X'", "UPPER is computed from each item: the index has values as they are stored");
    assert_why("CONTAINS(c.a, 'x')", "CONTAINS is computed from each item: the index has values as they are stored");
    assert_why("c.a = c.b", "both sides come from the item: the index needs a constant on one");
    assert_why("c.a != 1", "the index finds values that are there, not all others");
    assert_why("c.a NOT IN (1, 2)", "it is a negation: the index finds values that are there, not all others");
    assert_why("c.a LIKE '%x'", "the pattern has no fixed beginning: the index knows how strings begin, not what is in them");
    assert_why("c.a + 1 = 2", "it is computed from each item");
    assert_why("c.a < true", "the other side is no constant of an ordered type (a number or a string)");
    assert_why("ST_DISTANCE(c.p, {'type': 'Point', 'coordinates': [1, 2]}) < 5", "no spatial index answers ST_DISTANCE here");
    assert_why("FullTextContains(c.s, 'x')", "no full-text index answers FullTextContains here");
    assert_why("true", "it does not look at the item at all");
    assert_why("udf.f(c.a) = 1", "the user-defined function f is called with each item");
    assert_why("c.a = 1 OR c.note = 2", "a side of the OR is not answered: the indexing policy leaves out /note/?");
}

static void each_part_of_an_and_is_told(void **state) {
    told t;
    (void)state;
    open_told(&t, excluded, "SELECT * FROM c WHERE c.a = 1 AND c.s LIKE 'x%y' AND UPPER(c.s) = 'X'");
    assert_int_equal(t.trace.where_n, 3);
    assert_text(t.trace.where[0].text, "c.a = 1");
    assert_text(t.trace.where[0].path, "/a/?");
    assert_true(t.trace.where[0].exact && t.trace.where[1].answered && !t.trace.where[1].exact && !t.trace.where[2].answered);
    close_told(&t);
}

static void long_conditions_are_cut(void **state) {
    told t;
    buf text = buf_init(BUF_NO_LIMIT);
    (void)state;
    buf_add_lit(&text, "SELECT * FROM c WHERE c.a = 0");
    for (int i = 1; i < 200; i++) {
        buf_addf(&text, " AND c.a = %d", i);
    }
    buf_add_byte(&text, 0);
    open_told(&t, excluded, text.p);
    assert_int_equal(t.trace.where_n, QUERY_WHERE_SHOWN);
    assert_true(t.trace.where_more);
    close_told(&t);
    buf_free(&text);
}

static void without_an_index(void **state) {
    told t;
    (void)state;
    open_told(&t, "{\"indexingMode\":\"none\",\"automatic\":false}", "SELECT * FROM c WHERE c.a = 1");
    assert_reason(&t.trace.where[0].why, "the container has no index (indexingMode is none)");
    close_told(&t);
}

/* ---- indexes ---- */

/* Notes as text: "+/a/? High" for an index that is used, "-(/a ASC, /b ASC) High" for a composite index that would help. */
static void assert_notes(const char *text, const char *expected) {
    told t;
    buf b = buf_init(BUF_NO_LIMIT);
    open_told(&t, excluded, text);
    for (size_t i = 0; i < t.page.outcome.indexes_n; i++) {
        const query_index_note *note = &t.page.outcome.indexes[i];
        buf_addf(&b, "%s%c%s", i ? " " : "", note->used ? '+' : '-', note->composite ? "(" : "");
        for (size_t j = 0; j < note->specs_n; j++) {
            buf_addf(&b, "%s%.*s", j ? ", " : "", (int)note->specs[j].n, note->specs[j].p);
        }
        buf_addf(&b, "%s %s", note->composite ? ")" : "", note->impact_high ? "High" : "Low");
    }
    assert_text(buf_view(&b), expected);
    buf_free(&b);
    close_told(&t);
}

static void indexes_that_are_used_and_would_help(void **state) {
    (void)state;
    assert_notes("SELECT * FROM c", "");
    assert_notes("SELECT * FROM c WHERE c.name = 'x'", "+/name/? High");
    assert_notes("SELECT * FROM c WHERE c.note = 'x'", "-/note/? High");
    assert_notes("SELECT * FROM c WHERE c.address.zip > 5", "+/address/zip/? High");
    assert_notes("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 'x')", "+/tags/[]/? High");
    assert_notes("SELECT c.id FROM c JOIN x IN c.tags WHERE x.key = 'k'", "+/tags/[]/key/? High");
    assert_notes("SELECT * FROM c WHERE c[\"a b\"] = 1", "+/\"a b\"/? High");
    assert_notes("SELECT * FROM c WHERE IS_DEFINED(c.x)", "+/x/? Low");
    assert_notes("SELECT * FROM c WHERE c.x > 1 AND c.x < 9", "+/x/? High");
    assert_notes("SELECT * FROM c WHERE c.x = 1 OR c.note = 2", "+/x/? High -/note/? High");
    assert_notes("SELECT * FROM c ORDER BY c.x", "+/x/? High");
}

static void composite_indexes(void **state) {
    (void)state;
    assert_notes("SELECT TOP 10 c.id FROM c WHERE c.Item = 'value1234' AND c.Price > 2",
                 "+/Item/? High +/Price/? High -(/Item ASC, /Price ASC) High");
    assert_notes("SELECT * FROM c WHERE c.b > 2 AND c.a = 1", "+/b/? High +/a/? High +(/a ASC, /b DESC) High");
    assert_notes("SELECT * FROM c ORDER BY c.a, c.b DESC", "+(/a ASC, /b DESC) High");
    assert_notes("SELECT * FROM c ORDER BY c.a DESC, c.b", "+(/a ASC, /b DESC) High");
    assert_notes("SELECT * FROM c WHERE c.x = 1 ORDER BY c.y DESC", "+/x/? High +/y/? High -(/x ASC, /y DESC) High");
}

/* The filter in the service's form, and whether the index alone decides. */
static void filters_of_indexes(void **state) {
    told t;
    (void)state;
    open_told(&t, excluded, "SELECT * FROM c AS x WHERE x.name = 'n' AND x.s LIKE 'a%b'");
    assert_text(t.page.outcome.indexes[0].filter, "(ROOT.name = \"n\")");
    assert_true(t.page.outcome.indexes[0].precise && !t.page.outcome.indexes[1].precise);
    close_told(&t);
}

/* ---- text ---- */

static void assert_words(const told *t, const char *expected) {
    buf b = buf_init(BUF_NO_LIMIT);
    query_explain_words(&b, &t->explained);
    assert_text(buf_view(&b), expected);
    buf_free(&b);
}

static void words_of_the_index(void **state) {
    told t;
    (void)state;
    open_told(&t, excluded, "SELECT * FROM c WHERE c.city = 'Lima' AND c.n > 3 AND UPPER(c.s) = 'X'");
    find_demands demands = query_demands_of(&t.runner, &t.policy);
    query_part parts[] = {{.range_id = 3,
                           .asked = true,
                           .items = 12345,
                           .way = WAY_BY_NUMBER,
                           .used = &demands.list[0],
                           .demands = demands.list,
                           .demands_n = demands.n,
                           .intersected = 2,
                           .entries = 1200,
                           .done = {.loaded = 40, .matched = 1, .passed = 7}},
                          {.range_id = 4, .asked = true, .too_many = true, .done = {.loaded = 1}}};
    t.trace.parts = parts;
    t.trace.n = 2;
    t.page.outcome.rows = 1;
    t.page.outcome.metrics.took_us = 1500;
    t.explained.compile_us = 20;
    assert_words(
        &t, "1 row for 2.50 RU in 1.52 ms\n"
            "range 3 (12,345 items): the index finds what has c.city = \"Lima\", and of that only what has c.n > 3; 1,200 entries of the "
            "index looked at, 40 items loaded, 1 matches, 7 passed by.\n"
            "range 4: all items are read: what the index knows of WHERE holds for so many of them that reading all is quicker; 1 item "
            "loaded, 0 match.\n"
            "conditions:\n"
            "  c.city = \"Lima\": the index answers it by /city/?\n"
            "  c.n > 3: the index answers it by /n/?\n"
            "  UPPER(c.s) = \"X\": asked of each item, since UPPER is computed from each item: the index has values as they are "
            "stored\n"
            "what would help:\n"
            "  name a partition key: the query was asked of 2 ranges, and each costs 2.25 RU\n"
            "  on the service a composite index (/city ASC, /n ASC) would help; here single ones are intersected\n"
            "  store the text in one case as a property of its own, and compare with that\n");
    close_told(&t);
}

static void words_of_an_order_and_a_partition(void **state) {
    told t;
    (void)state;
    open_told(&t, excluded, "SELECT * FROM c WHERE c.pk = 'x' ORDER BY c.n DESC");
    query_part part = {.asked = true,
                       .items = 600,
                       .way = WAY_IN_ORDER,
                       .order = query_note_order(&t.arena, &t.query, NULL),
                       .entries = 11,
                       .done = {.loaded = 11, .matched = 11}};
    t.trace.parts = &part;
    t.trace.n = 1;
    t.page.outcome.rows = 10;
    t.page.outcome.more = true;
    t.page.outcome.metrics.took_us = 250;
    t.page.outcome.indexes_n = 0;
    t.explained.partition = SLICE_LIT("[\"x\"]");
    assert_words(&t, "10 rows for 2.50 RU in 0.25 ms; there is more, on another page\n"
                     "partition [\"x\"] (600 items): the index /n DESC is walked until the page is full; 11 entries of the index "
                     "looked at, 11 items loaded, 11 match.\n"
                     "conditions:\n"
                     "  c.pk = \"x\": it names the partition\n");
    close_told(&t);
}

static void the_answer_is_json(void **state) {
    told t;
    buf out = buf_init(BUF_NO_LIMIT), bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    (void)state;
    open_told(&t, excluded, "SELECT * FROM c WHERE c.note = 'quo\"te' AND c.a = 1 ORDER BY c.a");
    query_part part = {.asked = true, .done = {.loaded = 2}};
    t.trace.parts = &part;
    t.trace.n = 1;
    query_explain_json(&out, &t.explained);
    assert_int_equal(json_to_bson(buf_view(&out), NULL, &bson, &root, NULL), OK);
    assert_int_equal(root, JSON_OBJECT);
    buf_free(&out);
    buf_free(&bson);
    close_told(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(why_the_index_does_not_answer),
        cmocka_unit_test(each_part_of_an_and_is_told),
        cmocka_unit_test(long_conditions_are_cut),
        cmocka_unit_test(without_an_index),
        cmocka_unit_test(indexes_that_are_used_and_would_help),
        cmocka_unit_test(composite_indexes),
        cmocka_unit_test(filters_of_indexes),
        cmocka_unit_test(words_of_the_index),
        cmocka_unit_test(words_of_an_order_and_a_partition),
        cmocka_unit_test(the_answer_is_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
