/* parse_harness.h — for tests of the query parser: texts parsed into an arena that lives as long as the test. */
#pragma once

#include "base/limits.h"
#include "query/parse.h"

static arena memory;
static op o;

static inline int setup(void **state) {
    (void)state;
    memory = arena_init();
    op_init(&o, &memory, 0);
    return 0;
}

static inline int teardown(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

static inline query_select *parsed_slice(slice text) {
    query_ast *ast;
    op_init(&o, &memory, 0);
    if (query_parse(&o, &memory, text, &ast) != OK) {
        fail_msg("%.*s\n%.*s", slice_shown(text), text.p, (int)o.detail_n, o.detail);
    }
    assert_true(slice_eq(ast->text, text));
    assert_null(ast->select->outer);
    assert_int_equal(ast->depth, ast->select->depth);
    return ast->select;
}

static inline query_select *parsed(const char *text) {
    return parsed_slice(slice_str(text));
}

static inline query_expr *value_of(const char *text) { /* the expression of SELECT VALUE */
    query_select *s = parsed(text);
    assert_true(s->value && s->columns_n == 1);
    return s->columns[0].expr;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
