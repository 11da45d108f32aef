/* Budgets: what is refused, what is counted, and that everything drawn from a pool is returned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"

enum { MB = 1024 * 1024, OWN = 4 * MB };

static void a_take_past_the_limit_is_refused(void **state) {
    (void)state;
    budget b = budget_init(NULL, 1000);
    assert_true(budget_take(&b, 600));
    assert_true(budget_error(&b) == OK);
    assert_false(budget_take(&b, 401));
    assert_int_equal(b.used, 600);
    assert_int_equal(budget_error(&b), E_MEMORY);
    assert_false(budget_take(&b, SIZE_MAX));
    assert_int_equal(b.used, 600);
    assert_true(budget_take(&b, 400));
    assert_int_equal(budget_error(&b), E_MEMORY); /* a refusal is remembered */
}

static void the_pool_bounds_the_sum(void **state) {
    (void)state;
    budget_pool pool = {.max = 10 * MB};
    budget one = budget_init_own(&pool, OWN + 8 * MB, OWN), two = one;
    assert_true(budget_take(&one, OWN + 7 * MB));
    assert_false(budget_take(&two, OWN + 7 * MB));
    assert_int_equal(budget_error(&two), E_BUSY_MEMORY);
    budget_end(&one);
    budget_renew(&two);
    assert_true(budget_take(&two, OWN + 7 * MB));
    budget_end(&two);
    assert_int_equal(pool.used, 0);
}

/* A budget that exceeds its own limit and then empties the pool reports its own limit. */
static void the_first_limit_is_the_reason(void **state) {
    (void)state;
    budget_pool pool = {.max = 10 * MB};
    budget b = budget_init_own(&pool, OWN + 4 * MB, OWN);
    budget_force(&b, OWN + 5 * MB);
    budget_force(&b, 20 * MB);
    assert_int_equal(budget_error(&b), E_MEMORY);
    budget_end(&b);
    assert_int_equal(pool.used, 0);
}

/* A request's first megabytes do not depend on the pool, however full it is. */
static void ordinary_requests_do_not_need_the_pool(void **state) {
    (void)state;
    budget_pool pool = {.max = 10 * MB};
    budget large = budget_init_own(&pool, 20 * MB, OWN), ordinary = large;
    assert_true(budget_take(&large, OWN + 10 * MB));
    assert_true(budget_take(&ordinary, OWN));
    assert_false(budget_take(&ordinary, 1));
    budget_end(&large);
    assert_int_equal(pool.used, 0);
}

static void large_pieces_go_back_to_the_pool_at_once(void **state) {
    (void)state;
    budget_pool pool = {.max = 10 * MB};
    budget one = budget_init(&pool, 8 * MB);
    assert_true(budget_take(&one, 7 * MB));
    budget_give(&one, 7 * MB);
    assert_true(pool.used < MB);
    budget_end(&one);
    assert_int_equal(pool.used, 0);
}

static void an_arena_is_counted(void **state) {
    (void)state;
    budget b = budget_init(NULL, MB);
    arena a = arena_init_counted(&b);
    for (int i = 0; i < 100; i++) {
        arena_alloc(&a, 1000);
    }
    assert_true(b.used >= 100 * 1000 && !b.exceeded);
    assert_true(arena_fits(&a, MB / 2));
    assert_false(arena_fits(&a, MB));
    assert_true(b.exceeded);
    arena_reset(&a);
    assert_true(b.used > 0 && b.used < 32 * 1024); /* one block is kept */
    arena_free(&a);
    assert_int_equal(b.used, 0);
}

static void small_pieces_past_the_limit_are_noticed(void **state) {
    (void)state;
    budget b = budget_init(NULL, 64 * 1024);
    arena a = arena_init_counted(&b);
    for (int i = 0; i < 100 && !b.exceeded; i++) {
        arena_alloc(&a, 1000);
    }
    assert_true(b.exceeded);
    assert_true(b.used < 96 * 1024);
    arena_free(&a);
}

static void a_buffer_overflows_at_the_budget(void **state) {
    (void)state;
    budget b = budget_init(NULL, 10000);
    buf text = buf_init_counted(BUF_NO_LIMIT, &b);
    for (int i = 0; i < 100; i++) {
        buf_add_lit(&text, "a hundred bytes, give or take a few of them, which is what an ordinary row of an answer may have.......");
    }
    assert_false(buf_ok(&text));
    assert_int_equal(budget_error(&b), E_MEMORY);
    assert_true(b.used <= 10000);
    buf_free(&text);
    assert_int_equal(b.used, 0);
}

/* The block that an arena keeps for the next request stays counted after budget_end, but is not drawn from the pool. */
static void what_is_kept_over_the_end_is_not_given_to_the_pool(void **state) {
    (void)state;
    budget_pool pool = {.max = 1 << 20};
    budget b = budget_init(&pool, 1 << 20);
    arena a = arena_init_counted(&b);
    arena_alloc(&a, 100);
    arena_reset(&a);
    budget_end(&b);
    assert_true(b.used > 0);
    assert_int_equal(pool.used, 0);
    arena_reset(&a); /* a request that needs only this block */
    budget_end(&b);
    assert_int_equal(pool.used, 0);
    arena_free(&a);
    budget_end(&b);
    assert_int_equal(pool.used, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_take_past_the_limit_is_refused),
        cmocka_unit_test(the_pool_bounds_the_sum),
        cmocka_unit_test(the_first_limit_is_the_reason),
        cmocka_unit_test(ordinary_requests_do_not_need_the_pool),
        cmocka_unit_test(large_pieces_go_back_to_the_pool_at_once),
        cmocka_unit_test(an_arena_is_counted),
        cmocka_unit_test(small_pieces_past_the_limit_are_noticed),
        cmocka_unit_test(a_buffer_overflows_at_the_budget),
        cmocka_unit_test(what_is_kept_over_the_end_is_not_given_to_the_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
