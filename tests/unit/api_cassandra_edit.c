/* What the edit of a row says that it costs: the committer's thread runs only short ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/cassandra/edit_kind.h"

static const item_edit_kind *kind;

static int set_up(void **state) {
    (void)state;
    cass_edit_register();
    kind = item_edit_kind_of(ITEM_EDIT_CASSANDRA);
    return kind ? 0 : -1;
}

static uint64_t estimate(const cass_mutation *m, size_t stored) {
    item_edit edit = cass_edit_of(m);
    return kind->estimate(&(item_edit_input){.body = {NULL, stored}, .argument = edit.argument, .ready = edit.ready});
}

static void test_estimate_counts_what_comes(void **state) {
    cass_mutation small = {.assigns_n = 1, .bytes = 100}, large = {.assigns_n = 1, .bytes = 1024 * 1024, .collections = 1};
    cass_mutation many = {.assigns_n = 200, .bytes = 1600, .collections = 200};
    (void)state;
    assert_true(estimate(&small, 0) < LIMIT_EDIT_STEPS);
    assert_true(estimate(&small, 4096) < LIMIT_EDIT_STEPS);
    assert_true(estimate(&large, 0) > LIMIT_EDIT_STEPS);
    assert_true(estimate(&many, 4096) > LIMIT_EDIT_STEPS);
}

static void test_apply_pays_before_it_works(void **state) {
    arena a = arena_init();
    op o;
    item_edit_budget left = {.steps = 10000};
    item_edit_result result = {0};
    cass_mutation large = {.assigns_n = 1, .bytes = 1024 * 1024, .collections = 1};
    item_edit edit = cass_edit_of(&large);
    (void)state;
    op_init(&o, &a, 0);
    item_edit_input in = {.argument = edit.argument, .ready = edit.ready};
    assert_int_equal(kind->apply(&o, &in, &left, &result), E_EDIT_TOO_LONG);
    assert_true(left.exceeded);
    arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_estimate_counts_what_comes),
        cmocka_unit_test(test_apply_pays_before_it_works),
    };
    return cmocka_run_group_tests_name("api_cassandra_edit", tests, set_up, NULL);
}
