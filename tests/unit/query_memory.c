/* Memory of queries: a value that would be too large is rejected before it is allocated, with an error that says so; all counted memory is
 * given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "doc/json.h"
#include "item_harness.h"
#include "query/condition.h"
#include "query/exec.h"

enum { MB = 1024 * 1024, MEMORY_MAX = 24 * MB, OVERRUN_MAX = MB / 4, BIG_BYTES = 1900 * 1000, ELEMENTS = 100 * 1000 };

static harness h;
static container *c;

static void add_item(const char *id, char fill, size_t n, bool list) {
    buf body = buf_init(BUF_NO_LIMIT);
    buf_addf(&body, "{\"id\":\"%s\",\"pk\":\"p\",\"s\":\"", id);
    for (size_t i = 0; i < (list ? 10 : n); i++) {
        buf_add_byte(&body, fill);
    }
    buf_add_lit(&body, "\",\"n\":[0");
    for (size_t i = 1; i < (list ? n : 10); i++) {
        buf_addf(&body, ",%zu", i);
    }
    buf_add_lit(&body, "]}");
    buf_add_byte(&body, 0);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body.p), OK);
    buf_free(&body);
}

static int set_up(void **state) {
    (void)state;
    harness_open(&h);
    c = harness_container(&h, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}", 400);
    add_item("big", 'x', BIG_BYTES, false);
    add_item("list", 'y', ELEMENTS, true);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    container_give(c);
    harness_close(&h);
    return 0;
}

/* Runs the query's first page within the budget. */
static err run(slice text, budget_pool *pool, size_t *rows_out) {
    budget b = budget_init_own(pool, MEMORY_MAX, MB);
    arena memory = arena_init_counted(&b);
    buf out = buf_init_counted(BUF_NO_LIMIT, &b);
    item_cursor cursor = {.n = 1, .stretches = {{.min = epk_min(), .max = epk_max()}}};
    query q;
    op o;
    op_init(&o, &memory, harness_now_s(&h));
    err code = query_prepare(&o, &memory, text, NULL, 0, NULL, &q);
    query_page p;
    query_page_init(&p, harness_items(&h), &o, c, &q, &cursor, &out);
    p.ask.rows_max = 100;
    code = code == OK ? query_run_page(&p) : code;
    *rows_out = p.outcome.rows;
    assert_true(b.overrun <= OVERRUN_MAX);
    buf_free(&out);
    arena_free(&memory);
    budget_end(&b);
    assert_int_equal(b.used, 0);
    return code;
}

/* Makes "head unit,unit,… tail"; '#' in the unit becomes its number. */
static slice text_of(arena *a, const char *head, const char *unit, size_t n, const char *tail) {
    buf text = buf_init(BUF_NO_LIMIT);
    buf_add(&text, head, strlen(head));
    for (size_t i = 0; i < n; i++) {
        size_t before = strcspn(unit, "#");
        buf_add(&text, ",", i > 0);
        buf_add(&text, unit, before);
        if (unit[before]) {
            buf_add_u64(&text, i);
            buf_add(&text, unit + before + 1, strlen(unit + before + 1));
        }
    }
    buf_add(&text, tail, strlen(tail));
    slice copy = arena_copy(a, buf_view(&text));
    buf_free(&text);
    return copy;
}

#define OF_BIG " FROM c WHERE c.id = 'big'"
#define OF_LIST " FROM c WHERE c.id = 'list'"

static void too_much_is_refused_before_it_is_made(void **state) {
    static const struct {
        const char *head, *unit;
        size_t n;
        const char *tail;
        err code;
    } cases[] = {
        {"SELECT VALUE [", "c", 5000, "]" OF_BIG, E_VALUE_TOO_LARGE},
        {"SELECT VALUE [", "c", 3, "]" OF_BIG, OK},
        {"SELECT ", "c AS c#", 5000, OF_BIG, E_VALUE_TOO_LARGE},
        {"SELECT ", "c.s AS c#", 9, OF_BIG, E_VALUE_TOO_LARGE},
        {"SELECT VALUE {", "c#: c.s", 9, "}" OF_BIG, E_VALUE_TOO_LARGE},
        {"SELECT VALUE [", "[c, c, c, c]", 4, "]" OF_BIG, E_MEMORY},
        {"SELECT VALUE ARRAY(SELECT VALUE c", "", 0, " FROM x IN c.n)" OF_LIST, E_VALUE_TOO_LARGE},
        {"SELECT VALUE ARRAY(SELECT VALUE {a: x, b: [x]}", "", 0, " FROM x IN c.n JOIN y IN c.n)" OF_LIST, E_MEMORY},
        {"SELECT VALUE [", "CONCAT(c.s, c.s)", 20, "]" OF_BIG, E_MEMORY},
        {"SELECT VALUE [", "c.s || c.s", 20, "]" OF_BIG, E_MEMORY},
        {"SELECT VALUE [", "ToString(c)", 40, "]" OF_BIG, E_MEMORY},
        {"SELECT VALUE LENGTH(REPLACE(c.s, 'x', '", "xxxxxxxxxx", 1, "'))" OF_BIG, E_VALUE_TOO_LARGE},
        {"SELECT VALUE ARRAY_LENGTH(ARRAY_CONCAT(", "c.n", 50, "))" OF_LIST, E_VALUE_TOO_LARGE},
        {"SELECT VALUE [", "SetUnion(c.n, c.n)", 20, "]" OF_LIST, E_MEMORY},
        {"SELECT VALUE [", "StringSplit(c.s, 'x')", 2, "]" OF_BIG, E_MEMORY},
        {"SELECT VALUE MAKELIST(", "c.s", 1, ") FROM c JOIN x IN c.n WHERE c.id = 'big'", E_VALUE_TOO_LARGE},
        {"SELECT VALUE MAKELIST({a: x, b: [", "x, x", 1,
         "]})"
         " FROM c JOIN x IN c.n WHERE c.id = 'list'",
         E_MEMORY},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE CONCAT(ToString(x), '", "0123456789", 40, "') FROM c JOIN x IN c.n)", E_MEMORY},
        {"SELECT VALUE COUNT(1) FROM c JOIN x IN c.n ", "", 0, "WHERE [x, x, x] != [1]", OK}, /* each row frees its memory */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena a = arena_init();
        size_t rows;
        slice text = text_of(&a, cases[i].head, cases[i].unit, cases[i].n, cases[i].tail);
        err code = run(text, NULL, &rows);
        if (code != cases[i].code) {
            print_error("%.*s…: %s\n", text.n > 60 ? 60 : (int)text.n, text.p, err_lookup(code)->name);
        }
        assert_int_equal(code, cases[i].code);
        arena_free(&a);
    }
}

static void a_long_text_is_counted(void **state) {
    (void)state;
    arena a = arena_init();
    size_t rows;
    assert_int_equal(run(text_of(&a, "SELECT VALUE [", "1", 200 * 1000, "]"), NULL, &rows), E_MEMORY);
    assert_int_equal(run(text_of(&a, "SELECT VALUE [", "1", 20 * 1000, "]"), NULL, &rows), OK);
    arena_free(&a);
}

static void an_empty_pool_refuses_large_queries_only(void **state) {
    (void)state;
    budget_pool pool = {.max = 0};
    arena a = arena_init();
    size_t rows;
    assert_int_equal(run(SLICE_LIT("SELECT VALUE [c, c]" OF_BIG), &pool, &rows), E_BUSY_MEMORY);
    assert_int_equal(run(SLICE_LIT("SELECT VALUE c.id FROM c"), &pool, &rows), OK);
    assert_int_equal(rows, 2);
    assert_int_equal(pool.used, 0);
    arena_free(&a);
}

/* The condition of a patch that runs out of memory fails with that error, instead of being decided without the missing value. */
static void a_condition_needs_its_memory(void **state) {
    (void)state;
    budget_pool pool = {.max = 0};
    budget b = budget_init_own(&pool, MEMORY_MAX, MB);
    arena a = arena_init(), memory = arena_init_counted(&b);
    slice json = text_of(&a, "{\"id\":\"1\",\"s\":\"[", "1", ELEMENTS, "]\"}");
    buf body = buf_init(BUF_NO_LIMIT);
    json_root root;
    item_condition condition = query_condition_of(&a, SLICE_LIT("FROM c WHERE NOT IS_DEFINED(StringToArray(c.s))"));
    item_op write = {.kind = ITEM_DELETE, .conditions = &condition, .conditions_n = 1};
    item_edit_budget steps = {.steps = QUERY_CONDITION_STEPS};
    item_edit_result result;
    int32_t ttl;
    op o;
    op_init(&o, &memory, harness_now_s(&h));
    assert_int_equal(json_to_bson(json, NULL, &body, &root, NULL), OK);
    query_condition_register();
    assert_int_equal(item_edit_make_ready(&o, c, &write), OK);
    item_edit_input in = {.container = c, .there = true, .body = buf_view(&body)};
    assert_int_equal(item_edit_run(&o, &write, &in, &steps, &result, &ttl), E_BUSY_MEMORY);
    buf_free(&body);
    arena_free(&memory);
    arena_free(&a);
    budget_end(&b);
    assert_int_equal(pool.used, 0);
}

/* ---- op_check ---- */

typedef struct counted_turn {
    op_turn turn;
    size_t checks, stop_at;
} counted_turn;

static err count_check(op_turn *turn) {
    counted_turn *t = (counted_turn *)turn;
    return ++t->checks == t->stop_at ? E_CANCELLED : OK;
}

/* One item with very many rows calls op_check often, and ends when it returns an error. */
static void long_rows_ask_whether_to_go_on(void **state) {
    (void)state;
    for (size_t stop_at = 0; stop_at <= 10; stop_at += 10) {
        arena memory = arena_init();
        buf out = buf_init(BUF_NO_LIMIT);
        counted_turn turn = {.turn = {.check = count_check}, .stop_at = stop_at};
        item_cursor cursor = {.n = 1, .stretches = {{.min = epk_min(), .max = epk_max()}}};
        query q;
        op o;
        op_init(&o, &memory, harness_now_s(&h));
        o.turn = &turn.turn;
        slice text = SLICE_LIT("SELECT VALUE COUNT(1) FROM c JOIN x IN c.n JOIN y IN c.n WHERE c.id = 'list' AND x + y < 0");
        assert_int_equal(query_prepare(&o, &memory, text, NULL, 0, NULL, &q), OK);
        query_page p;
        query_page_init(&p, harness_items(&h), &o, c, &q, &cursor, &out);
        p.ask.rows_max = 10;
        err code = query_run_page(&p);
        assert_int_equal(code, stop_at ? E_CANCELLED : E_QUERY_TOO_LONG);
        assert_true(stop_at ? turn.checks == stop_at : turn.checks >= QUERY_ITEM_STEPS / QUERY_CHECK_STEPS - 1);
        buf_free(&out);
        arena_free(&memory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_much_is_refused_before_it_is_made),    cmocka_unit_test(a_long_text_is_counted),
        cmocka_unit_test(an_empty_pool_refuses_large_queries_only), cmocka_unit_test(a_condition_needs_its_memory),
        cmocka_unit_test(long_rows_ask_whether_to_go_on),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
