/* The history of provisioned throughput: each change is seen from its second on, for a day, in a bounded list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "throughput/provisioned.h"

#define NOON ((int64_t)1700000040)
#define DAY ((int64_t)86400)

static int at(provisioned *p, int64_t second, int64_t step) {
    double ru;
    provisioned_read(p, second, step, &ru, 1);
    return (int)ru;
}

static void a_change_is_seen_from_its_second_on(void **state) {
    (void)state;
    provisioned p;
    provisioned_init(&p);
    assert_int_equal(at(&p, NOON, 1), -1);
    provisioned_note(&p, NOON, 400);
    provisioned_note(&p, NOON + 1, 400);
    provisioned_note(&p, NOON + 10, 1000);
    provisioned_note(&p, NOON + 20, 500);
    assert_int_equal(p.n, 3);
    assert_int_equal(at(&p, NOON - 1, 1), -1);
    assert_int_equal(at(&p, NOON, 1), 400);
    assert_int_equal(at(&p, NOON + 9, 1), 400);
    assert_int_equal(at(&p, NOON + 10, 1), 1000);
    assert_int_equal(at(&p, NOON + 3000, 1), 500);
    assert_int_equal(at(&p, NOON, 60), 1000); /* the highest of the minute */
    assert_int_equal(at(&p, NOON + 60, 60), 500);
    double ru[4];
    provisioned_read(&p, NOON + 8, 1, ru, 4);
    assert_int_equal((int)ru[1], 400);
    assert_int_equal((int)ru[2], 1000);
    provisioned_free(&p);
}

static void changes_of_one_second_are_all_kept(void **state) {
    (void)state;
    provisioned p;
    provisioned_step steps[PROVISIONED_CHANGES_MAX];
    provisioned_init(&p);
    assert_int_equal(provisioned_steps(&p, 0, steps), 0);
    provisioned_note(&p, NOON, 400);
    assert_int_equal(provisioned_steps(&p, 0, steps), 0); /* nothing was known before */
    provisioned_note(&p, NOON, 1000);
    provisioned_note(&p, NOON, 1000);
    provisioned_note(&p, NOON, 500);
    provisioned_note(&p, NOON + 1, 600);
    assert_int_equal(provisioned_steps(&p, NOON, steps), 3);
    assert_true(steps[0].second == NOON && (int)steps[0].before == 400 && (int)steps[0].after == 1000);
    assert_true(steps[1].second == NOON && (int)steps[1].before == 1000 && (int)steps[1].after == 500);
    assert_int_equal(provisioned_steps(&p, NOON + 1, steps), 1);
    assert_true(steps[0].second == NOON + 1 && (int)steps[0].before == 500 && (int)steps[0].after == 600);
    assert_int_equal(provisioned_steps(&p, NOON + 2, steps), 0);
    provisioned_free(&p);
}

static void what_was_over_a_day_ago_is_forgotten(void **state) {
    (void)state;
    provisioned p;
    provisioned_init(&p);
    for (int i = 0; i < 100; i++) {
        provisioned_note(&p, NOON + i, 400 + i);
    }
    provisioned_note(&p, NOON + 2 * DAY, 1000);
    assert_int_equal(p.n, 2);
    assert_int_equal(at(&p, NOON + 2 * DAY - 1, 1), 499);
    for (int i = 0; i < 2 * PROVISIONED_CHANGES_MAX; i++) {
        provisioned_note(&p, NOON + 2 * DAY + i, i % 2 ? 500 : 600);
    }
    assert_int_equal(p.n, PROVISIONED_CHANGES_MAX);
    assert_int_equal(at(&p, NOON + 3 * DAY, 1), 500);
    provisioned_step steps[PROVISIONED_CHANGES_MAX];
    assert_int_equal(provisioned_steps(&p, 0, steps), PROVISIONED_CHANGES_MAX - 1);
    provisioned_free(&p);
}

static void a_clock_set_back_undoes_what_is_later(void **state) {
    (void)state;
    provisioned p;
    provisioned_init(&p);
    provisioned_note(&p, NOON, 400);
    provisioned_note(&p, NOON + 60, 1000);
    provisioned_note(&p, NOON + 59, 1000);
    assert_int_equal(p.n, 2);
    assert_int_equal(at(&p, NOON + 58, 1), 400);
    assert_int_equal(at(&p, NOON + 59, 1), 1000);
    provisioned_note(&p, NOON + 30, 400);
    assert_int_equal(p.n, 1);
    assert_int_equal(at(&p, NOON + 60, 1), 400);
    provisioned_note(&p, NOON - DAY, 400);
    assert_int_equal(p.n, 1);
    assert_int_equal(at(&p, NOON - DAY, 1), 400);
    provisioned_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_is_seen_from_its_second_on),
        cmocka_unit_test(changes_of_one_second_are_all_kept),
        cmocka_unit_test(what_was_over_a_day_ago_is_forgotten),
        cmocka_unit_test(a_clock_set_back_undoes_what_is_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
