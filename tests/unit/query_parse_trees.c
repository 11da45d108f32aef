/* Trees that the parser makes: places, names, values, depth; and the limits of texts and of trees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "parse_harness.h"

/* ---- trees ---- */

static slice shown(const char *text, query_span span) {
    return slice_of(text + span.start, span.end - span.start);
}

#define assert_text(text, span, expected) assert_true(slice_eq(shown(text, span), slice_str(expected)))

static void everything_knows_its_place(void **state) {
    (void)state;
    const char *text = "SELECT TOP 5 (c.a + 1) AS x, f( c.b ) FROM root c JOIN ( SELECT 2 ) d WHERE ((c.a) = 1 AND (c.b)) OR c.d "
                       "OFFSET 1 LIMIT 22";
    query_select *s = parsed(text);
    assert_text(text, s->span, text);
    assert_text(text, s->top.span, "5");
    assert_text(text, s->columns_span, "(c.a + 1) AS x, f( c.b )");
    assert_text(text, s->columns[0].expr->span, "c.a + 1");
    assert_text(text, s->columns[0].expr->items[0]->span, "c.a");
    assert_text(text, s->columns[0].expr->items[0]->items[0]->span, "c");
    assert_text(text, s->columns[1].expr->span, "f( c.b )");
    assert_text(text, s->sources[0].span, "root c");
    assert_text(text, s->sources[0].from->span, "root");
    assert_text(text, s->sources[1].span, "( SELECT 2 ) d");
    assert_text(text, s->sources[1].select->span, "SELECT 2");
    assert_text(text, s->where_span, "((c.a) = 1 AND (c.b)) OR c.d");
    assert_text(text, s->where->span, "((c.a) = 1 AND (c.b)) OR c.d");
    assert_text(text, s->where->items[0]->span, "(c.a) = 1 AND (c.b)");
    assert_text(text, s->where->items[0]->items[0]->span, "(c.a) = 1");
    assert_text(text, s->where->items[0]->items[1]->span, "c.b");
    assert_text(text, s->offset.span, "1");
    assert_text(text, s->limit.span, "22");
}

static void calls_know_where_their_name_is(void **state) {
    (void)state;
    const char *text = "SELECT (BADFUNC(1)), udf.g()";
    query_ast *ast;
    assert_int_equal(query_parse(&o, &memory, slice_str(text), &ast), OK);
    query_expr *f = ast->select->columns[0].expr;
    query_expr *g = ast->select->columns[1].expr;
    assert_text(text, f->span, "BADFUNC(1)");
    assert_text(text, query_name_span(ast, f->name), "BADFUNC");
    assert_text(text, g->span, "udf.g()");
    assert_text(text, query_name_span(ast, g->name), "g");
}

static void columns_have_names(void **state) {
    (void)state;
    static const char *const expected[] = {"c", "a", "b", "x y", "$1", "$2", "n", "$3", "x", "$4", "q", "$5"};
    query_select *s = parsed("SELECT c, c.a, c.a.b, c['x y'], c.list[0], 1, COUNT(1) AS n, c[@p], f(1).x, @p, (c.q), NOT c.a FROM c");
    assert_int_equal(s->columns_n, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < s->columns_n; i++) {
        assert_true(slice_eq(s->columns[i].alias, slice_str(expected[i])));
        assert_int_equal(s->columns[i].alias_given, i == 6);
    }
    s = parsed("SELECT VALUE c.a FROM c");
    assert_int_equal(s->columns[0].alias.n, 0);
    s = parsed("SELECT * FROM c");
    assert_true(s->star && s->columns_n == 0);
}

static void sources_have_names(void **state) {
    (void)state;
    static const struct {
        const char *text, *alias;
        bool given;
        query_source_kind kind;
    } cases[] = {
        {"SELECT * FROM c", "c", false, SOURCE_ROOT},
        {"SELECT * FROM c AS d", "d", true, SOURCE_ROOT},
        {"SELECT * FROM c.a.b", "b", false, SOURCE_ROOT},
        {"SELECT * FROM c['a b']", "a b", false, SOURCE_ROOT},
        {"SELECT * FROM c.a[0]", "", false, SOURCE_ROOT},
        {"SELECT * FROM c.a[0] d", "d", true, SOURCE_ROOT},
        {"SELECT * FROM x IN c.a", "x", true, SOURCE_ITEMS},
        {"SELECT * FROM x IN (SELECT VALUE c.a)", "x", true, SOURCE_ITEMS},
        {"SELECT * FROM (SELECT 1)", "", false, SOURCE_SUBQUERY},
        {"SELECT * FROM (SELECT 1) d", "d", true, SOURCE_SUBQUERY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        query_select *s = parsed(cases[i].text);
        assert_int_equal(s->sources_n, 1);
        assert_int_equal(s->sources[0].kind, cases[i].kind);
        assert_int_equal(s->sources[0].alias_given, cases[i].given);
        assert_true(slice_eq(s->sources[0].alias, slice_str(cases[i].alias)));
        assert_int_equal(s->sources[0].select != NULL, cases[i].kind == SOURCE_SUBQUERY);
        assert_int_equal(s->sources[0].from != NULL, cases[i].kind != SOURCE_SUBQUERY);
    }
}

static void members_and_indexes_differ(void **state) {
    (void)state;
    query_expr *e = value_of("SELECT VALUE c.a");
    assert_int_equal(e->kind, EXPR_MEMBER);
    assert_false(e->quoted);
    assert_int_equal(e->items_n, 1);
    e = value_of("SELECT VALUE c['\\u0061']");
    assert_int_equal(e->kind, EXPR_MEMBER);
    assert_true(e->quoted && slice_eq(e->name, SLICE_LIT("a")));
    e = value_of("SELECT VALUE c[('a')]");
    assert_int_equal(e->kind, EXPR_MEMBER);
    e = value_of("SELECT VALUE c[1]");
    assert_int_equal(e->kind, EXPR_INDEX);
    assert_true(e->items[1]->value.is_integer && e->items[1]->value.integer == 1);
    e = value_of("SELECT VALUE c['a' || 'b']");
    assert_int_equal(e->kind, EXPR_INDEX);
}

static void literals_have_values(void **state) {
    (void)state;
    query_value v = value_of("SELECT VALUE -9223372036854775808")->value;
    assert_true(v.is_integer && v.integer == INT64_MIN);
    v = value_of("SELECT VALUE - - 9223372036854775808")->value;
    assert_true(!v.is_integer && v.number == 9223372036854775808.0);
    v = value_of("SELECT VALUE -9007199254740993")->value;
    assert_true(v.is_integer && v.integer == -9007199254740993);
    v = value_of("SELECT VALUE -0")->value;
    assert_true(!v.is_integer && v.number == 0 && signbit(v.number));
    v = value_of("SELECT VALUE -2.5")->value;
    assert_true(!v.is_integer && v.number == -2.5);
    assert_int_equal(value_of("SELECT VALUE undefined")->value.type, TYPE_UNDEFINED);
    assert_int_equal(value_of("SELECT VALUE null")->value.type, TYPE_NULL);
    assert_true(value_of("SELECT VALUE true")->value.truth);
    assert_int_equal(value_of("SELECT VALUE TRUE")->kind, EXPR_NAME);
    assert_true(slice_eq(value_of("SELECT VALUE 'a\\nb'")->value.bytes, SLICE_LIT("a\nb")));
    assert_int_equal(value_of("SELECT VALUE -c.a")->kind, EXPR_UNARY);
}

static void predicates_are_one_node(void **state) {
    (void)state;
    query_expr *e = value_of("SELECT VALUE 1 NOT IN (2, 3)");
    assert_true(e->kind == EXPR_IN && e->negated && e->items_n == 3);
    e = value_of("SELECT VALUE 1 BETWEEN 2 AND 3");
    assert_true(e->kind == EXPR_BETWEEN && !e->negated && e->items_n == 3);
    e = value_of("SELECT VALUE 'a' LIKE 'b'");
    assert_true(e->kind == EXPR_LIKE && !e->negated && e->items_n == 2);
    e = value_of("SELECT VALUE 'a' NOT LIKE 'b' ESCAPE 'c'");
    assert_true(e->kind == EXPR_LIKE && e->negated && e->items_n == 3);
    e = value_of("SELECT VALUE {a: 1, 'b': 2}");
    assert_true(e->kind == EXPR_OBJECT && e->items_n == 2 && slice_eq(e->names[1], SLICE_LIT("b")));
}

static void subqueries_know_what_they_stand_in(void **state) {
    (void)state;
    query_select *s = parsed("SELECT EXISTS(SELECT 1 WHERE (SELECT VALUE 2)) FROM (SELECT 3) x WHERE ARRAY(SELECT 4)");
    query_select *exists = s->columns[0].expr->select;
    assert_ptr_equal(exists->outer, s);
    assert_ptr_equal(exists->where->select->outer, exists);
    assert_ptr_equal(s->sources[0].select->outer, s);
    assert_ptr_equal(s->where->select->outer, s);
    assert_int_equal(s->where->kind, EXPR_ARRAY_OF);
    s = parsed("SELECT * FROM x IN (SELECT VALUE 1)");
    assert_int_equal(s->sources[0].from->kind, EXPR_SUBQUERY);
    assert_ptr_equal(s->sources[0].from->select->outer, s);
}

static void directions_are_kept(void **state) {
    (void)state;
    query_select *s = parsed("SELECT * FROM c ORDER BY c.a, c.b ASC, c.c DESC");
    assert_true(!s->order[0].descending && !s->order[0].direction_given);
    assert_true(!s->order[1].descending && s->order[1].direction_given);
    assert_true(s->order[2].descending && s->order[2].direction_given);
    assert_false(s->order_by_rank);
    s = parsed("SELECT * FROM c ORDER BY RANK f(1)");
    assert_true(s->order_by_rank && s->order[0].expr->kind == EXPR_CALL);
    s = parsed("SELECT * FROM c ORDER BY RANK(1)");
    assert_true(!s->order_by_rank && s->order[0].expr->kind == EXPR_CALL);
}

static void joins_and_udfs_are_counted(void **state) {
    (void)state;
    query_ast *ast;
    slice text = SLICE_LIT("SELECT udf.a(udf.b()) FROM c JOIN d IN c.d JOIN (SELECT udf.a() FROM e IN c.e JOIN f IN e.f) g");
    assert_int_equal(query_parse(&o, &memory, text, &ast), OK);
    assert_int_equal(ast->joins, 3);
    assert_int_equal(ast->udf_calls, 3);
    assert_int_equal(ast->slots, 5);
}

/* ---- limits ---- */

static void add_times(buf *text, const char *piece, int n) {
    for (int i = 0; i < n; i++) {
        buf_add(text, piece, strlen(piece));
    }
}

/* Parses start, before × n, middle, after × n. */
static err parse_repeated(const char *start, const char *before, const char *middle, const char *after, int n) {
    buf text = buf_init(BUF_NO_LIMIT);
    query_ast *ast;
    buf_add(&text, start, strlen(start));
    add_times(&text, before, n);
    buf_add(&text, middle, strlen(middle));
    add_times(&text, after, n);
    err code = query_parse(&o, &memory, buf_view(&text), &ast);
    assert_true(code == OK || code == E_BAD_QUERY);
    assert_true(code != OK || ast->depth <= QUERY_DEPTH_MAX);
    buf_free(&text);
    return code;
}

static void depth_is_bounded(void **state) {
    (void)state;
    static const struct {
        const char *before, *middle, *after;
    } cases[] = {
        {"(", "1", ")"},
        {"[", "1", "]"},
        {"{\"a\":", "1", "}"},
        {"f(", "1", ")"},
        {"NOT ", "c", ""},
        {"- ", "c", ""},
        {"~", "1", ""},
        {"1 + (", "1", ")"},
        {"c[", "1", "]"},
        {"(SELECT VALUE ", "1", ")"},
        {"1 ? ", "1", " : 1"},
        {"1 ? 1 : ", "1", ""},
        {"1 ?? ", "1", ""},
        {"EXISTS(SELECT VALUE ", "1", ")"},
        {"1 IN (", "1", ")"},
        {"", "c", ".a"},
        {"", "c", "[0]"},
        {"", "1", " + 1"},
        {"", "1", " = 1"},
        {"", "1", " || 1"},
        {"1 BETWEEN 1 AND (", "1", ")"},
        {"1 LIKE (", "1", ")"},
        {"(1 AND ", "1", ")"},
        {"(SELECT 1 FROM ", "c", ")"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases - 1; i++) {
        assert_int_equal(parse_repeated("SELECT VALUE ", cases[i].before, cases[i].middle, cases[i].after, 100), OK);
        assert_int_equal(parse_repeated("SELECT VALUE ", cases[i].before, cases[i].middle, cases[i].after, 20000), E_BAD_QUERY);
        assert_non_null(strstr(o.detail, "\"SC3021\""));
    }
    assert_int_equal(parse_repeated("SELECT * FROM ", "(SELECT * FROM ", "c", ")", 100), OK);
    assert_int_equal(parse_repeated("SELECT * FROM ", "(SELECT * FROM ", "c", ")", 10000), E_BAD_QUERY);
    assert_int_equal(parse_repeated("SELECT * FROM ", "", "c", ".a", 10000), E_BAD_QUERY);
    assert_int_equal(parse_repeated("SELECT VALUE ", "(", "1", "", 400000), E_BAD_QUERY);
}

/* A tree of the greatest depth can be printed and parsed again: printing adds parentheses, but no levels. */
static void the_deepest_trees_print_and_parse(void **state) {
    (void)state;
    static const struct {
        const char *before, *middle, *after;
    } cases[] = {
        {"NOT ", "c", ""},     {"~ ", "c", ""}, {"", "c", " + 1"}, {"1 ?? ", "1", ""},
        {"1 ? 1 : ", "1", ""}, {"", "c", ".a"}, {"f(", "1", ")"},  {"(SELECT VALUE ", "1", ")"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n = 1;
        while (parse_repeated("SELECT VALUE ", cases[i].before, cases[i].middle, cases[i].after, n) == OK) {
            n++;
        }
        buf text = buf_init(BUF_NO_LIMIT);
        buf printed = buf_init(BUF_NO_LIMIT);
        buf_add_lit(&text, "SELECT VALUE ");
        add_times(&text, cases[i].before, n - 1);
        buf_add(&text, cases[i].middle, strlen(cases[i].middle));
        add_times(&text, cases[i].after, n - 1);
        query_print_select(&printed, parsed_slice(buf_view(&text)));
        buf_clear(&text);
        query_print_select(&text, parsed_slice(buf_view(&printed)));
        assert_true(slice_eq(buf_view(&text), buf_view(&printed)));
        buf_free(&text);
        buf_free(&printed);
    }
}

static void lists_and_chains_may_be_long(void **state) {
    (void)state;
    static const struct {
        const char *start, *piece, *end;
        int n;
    } cases[] = {
        {"SELECT * FROM c WHERE c.a IN (0", ",1", ")", 100000},
        {"SELECT * FROM c WHERE c.a = 0", " OR c.a = 1", "", 40000},
        {"SELECT * FROM c WHERE c.a = 0", " AND c.a = 1", "", 40000},
        {"SELECT 0", ",1", "", 100000},
        {"SELECT VALUE [0", ",1", "]", 100000},
        {"SELECT VALUE f(0", ",1", ")", 100000},
        {"SELECT VALUE {\"a\":0", ",a:1", "}", 100000},
        {"SELECT * FROM c ORDER BY c.a", ",c.a", "", 50000},
        {"SELECT * FROM c GROUP BY c.a", ",c.a", "", 50000},
        {"SELECT * FROM c", " JOIN c", "", 50000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf text = buf_init(BUF_NO_LIMIT);
        buf printed = buf_init(BUF_NO_LIMIT);
        buf_add(&text, cases[i].start, strlen(cases[i].start));
        add_times(&text, cases[i].piece, cases[i].n);
        buf_add(&text, cases[i].end, strlen(cases[i].end));
        query_select *s = parsed_slice(buf_view(&text));
        assert_true(s->depth < 64);
        query_print_select(&printed, s);
        assert_true(printed.n >= text.n);
        buf_free(&text);
        buf_free(&printed);
        arena_reset(&memory);
    }
}

/* Chains of 64 operands become left-deep trees; longer ones become balanced trees. Both keep the order of operands. */
static void chains_are_grouped(void **state) {
    (void)state;
    for (int n = 64; n <= 65; n++) {
        buf text = buf_init(BUF_NO_LIMIT);
        buf_add_lit(&text, "SELECT VALUE a0");
        for (int i = 1; i < n; i++) {
            buf_addf(&text, " OR a%d", i);
        }
        query_expr *e = parsed_slice(buf_view(&text))->columns[0].expr;
        assert_int_equal(e->depth, n == 64 ? 64 : 8);
        buf printed = buf_init(BUF_NO_LIMIT);
        buf words = buf_init(BUF_NO_LIMIT);
        query_print_expr(&printed, e);
        for (size_t i = 0; i < printed.n; i++) {
            if (printed.p[i] != '(' && printed.p[i] != ')') {
                buf_add_byte(&words, printed.p[i]);
            }
        }
        assert_true(slice_eq(buf_view(&words), slice_skip(buf_view(&text), strlen("SELECT VALUE "))));
        buf_free(&text);
        buf_free(&printed);
        buf_free(&words);
    }
}

static void texts_have_a_limit(void **state) {
    (void)state;
    buf text = buf_init(BUF_NO_LIMIT);
    query_ast *ast;
    buf_add_lit(&text, "SELECT 1");
    while (text.n < LIMIT_QUERY_BYTES) {
        buf_add_byte(&text, ' ');
    }
    assert_int_equal(query_parse(&o, &memory, buf_view(&text), &ast), OK);
    buf_add_byte(&text, ' ');
    assert_int_equal(query_parse(&o, &memory, buf_view(&text), &ast), E_BAD_QUERY);
    assert_string_equal(o.detail,
                        "{\"errors\":[{\"severity\":\"Error\",\"location\":{\"start\":0,\"end\":524289},\"code\":\"SC3020\",\"message\":"
                        "\"The SQL query text exceeded the maximum limit of 524288 characters.\"}]}");
    buf_free(&text);
}

static void places_count_as_the_service_does(void **state) {
    (void)state;
    slice text = SLICE_LIT("aé€😀b");
    static const struct {
        query_span bytes, units;
    } cases[] = {
        {{0, 1}, {0, 1}},   {{1, 3}, {1, 2}},  {{3, 6}, {2, 3}}, {{6, 10}, {3, 5}}, {{10, 11}, {5, 6}},
        {{11, 11}, {6, 6}}, {{0, 11}, {0, 6}}, {{0, 0}, {0, 0}}, {{6, 6}, {3, 3}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        query_span units = query_location(text, cases[i].bytes);
        assert_int_equal(units.start, cases[i].units.start);
        assert_int_equal(units.end, cases[i].units.end);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(everything_knows_its_place),
        TEST(calls_know_where_their_name_is),
        TEST(columns_have_names),
        TEST(sources_have_names),
        TEST(members_and_indexes_differ),
        TEST(literals_have_values),
        TEST(predicates_are_one_node),
        TEST(subqueries_know_what_they_stand_in),
        TEST(directions_are_kept),
        TEST(joins_and_udfs_are_counted),
        TEST(depth_is_bounded),
        TEST(the_deepest_trees_print_and_parse),
        TEST(lists_and_chains_may_be_long),
        TEST(chains_are_grouped),
        TEST(texts_have_a_limit),
        TEST(places_count_as_the_service_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
