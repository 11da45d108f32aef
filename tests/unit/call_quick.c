/* Which queries are tried on the loop: not those that gave up three times in a row, except now and then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "call/call_int.h"

enum { GIVES_UP_AFTER = 3, TRIED_AGAIN = 16 };

static slice long_text, other_text;

static void give_up(uint64_t container, unsigned times) {
    for (unsigned i = 0; i < times; i++) {
        assert_true(call__worth_a_try(container, long_text));
        call__tried(container, long_text, true);
    }
}

static int reset(void **state) {
    (void)state;
    long_text = SLICE_LIT("SELECT * FROM c WHERE c.city = @a");
    other_text = SLICE_LIT("SELECT * FROM c WHERE c.email = @a");
    for (uint64_t container = 1; container <= 2; container++) {
        call__tried(container, long_text, false);
        call__tried(container, other_text, false);
    }
    return 0;
}

static void a_query_that_gives_up_is_no_longer_tried(void **state) {
    (void)state;
    give_up(1, GIVES_UP_AFTER);
    assert_false(call__worth_a_try(1, long_text));
    assert_true(call__worth_a_try(1, other_text));
    assert_true(call__worth_a_try(2, long_text));
}

static void a_try_that_ends_in_time_counts_from_zero(void **state) {
    (void)state;
    give_up(1, GIVES_UP_AFTER - 1);
    call__tried(1, long_text, false);
    give_up(1, GIVES_UP_AFTER);
    assert_false(call__worth_a_try(1, long_text));
}

static void every_sixteenth_request_is_tried(void **state) {
    (void)state;
    give_up(1, GIVES_UP_AFTER);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 1; i < TRIED_AGAIN; i++) {
            assert_false(call__worth_a_try(1, long_text));
        }
        give_up(1, 1);
    }
    for (unsigned i = 1; i < TRIED_AGAIN; i++) {
        assert_false(call__worth_a_try(1, long_text));
    }
    assert_true(call__worth_a_try(1, long_text));
    call__tried(1, long_text, false);
    assert_true(call__worth_a_try(1, long_text));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_query_that_gives_up_is_no_longer_tried, reset),
        cmocka_unit_test_setup(a_try_that_ends_in_time_counts_from_zero, reset),
        cmocka_unit_test_setup(every_sixteenth_request_is_tried, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
