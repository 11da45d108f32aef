/* When a loop looks at its sockets once more before it sleeps. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "net/look.h"

static void looks_as_long_as_something_comes(void **state) {
    (void)state;
    net_look look = {0};
    for (int turn = 0; turn < 100; turn++) {
        assert_true(net_look_again(&look, 3, 0));
    }
}

static void sleeps_after_a_turn_without_requests(void **state) {
    (void)state;
    net_look look = {0};
    for (int turn = 0; turn < 100; turn++) {
        assert_false(net_look_again(&look, 0, 0));
    }
    assert_true(net_look_again(&look, 1, 0));
}

/* The loop sleeps after each look, and is woken by a request. Returns how many turns it has slept after without a look. */
static unsigned turns_until_a_look(net_look *look) {
    unsigned turns = 0;
    while (!net_look_again(look, 1, 0)) {
        turns++;
    }
    assert_false(net_look_again(look, 0, 0));
    return turns;
}

static void looks_seldom_where_nothing_comes(void **state) {
    (void)state;
    net_look look = {0};
    const unsigned expected[] = {0, 1, 3, 7, 15, 31, 63, 63, 63};
    for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(turns_until_a_look(&look), expected[i]);
    }
    while (!net_look_again(&look, 1, 0)) {
    }
    assert_true(net_look_again(&look, 1, 0)); /* one that finds something is enough */
}

static void rests_after_it_was_slow(void **state) {
    (void)state;
    net_look look = {0};
    assert_true(net_look_again(&look, 1, 1000));
    net_look_took(&look, NET_LOOK_SLOW_US, 1000);
    assert_true(net_look_again(&look, 1, 1000));
    net_look_took(&look, 4000, 1000);
    assert_false(net_look_again(&look, 1, 1000));
    assert_false(net_look_again(&look, 1, 1799));
    assert_true(net_look_again(&look, 1, 1800));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_as_long_as_something_comes),
        cmocka_unit_test(sleeps_after_a_turn_without_requests),
        cmocka_unit_test(looks_seldom_where_nothing_comes),
        cmocka_unit_test(rests_after_it_was_slow),
    };
    return cmocka_run_group_tests_name("net/look", tests, NULL, NULL);
}
