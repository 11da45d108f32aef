/* Deadlines fire never early and at most one tick late, however they are moved. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "base/random.h"
#include "net/wheel.h"

enum { TICK_MS = 10 };

static net_wheel wheel;
static int64_t now;

typedef struct thing {
    net_deadline deadline; /* must be first */
    int64_t wanted_ms;     /* NET_NEVER: must not expire */
    int expired;
} thing;

static void on_expired(net_deadline *d) {
    thing *t = (thing *)d;
    assert_true(t->wanted_ms != NET_NEVER);
    assert_true(now >= t->wanted_ms);
    t->wanted_ms = NET_NEVER;
    t->expired++;
}

static void set(thing *t, int64_t due_ms) {
    t->wanted_ms = due_ms;
    net_wheel_set(&wheel, &t->deadline, due_ms);
}

static int start(void **state) {
    (void)state;
    now = 1000003;
    net_wheel_init(&wheel, TICK_MS, now);
    return 0;
}

static void run_to(int64_t until) {
    for (; now < until; now++) {
        net_wheel_turn(&wheel, now, on_expired);
    }
}

static void expires_within_a_tick(void **state) {
    (void)state;
    for (int64_t after = 0; after < 5000; after += 37) { /* also beyond the ring's size */
        thing t = {0};
        int64_t due = now + after;
        set(&t, due);
        run_to(due);
        assert_int_equal(t.expired, 0);
        run_to(due + 2 * TICK_MS);
        assert_int_equal(t.expired, 1);
    }
}

static void moves_later_and_earlier(void **state) {
    (void)state;
    thing t = {0};
    int64_t begin = now;
    set(&t, begin + 100);
    run_to(begin + 90);
    set(&t, begin + 500); /* later: moved when its current slot is visited */
    run_to(begin + 500);
    assert_int_equal(t.expired, 0);
    set(&t, begin + 100000);
    set(&t, begin + 550); /* earlier: moved at once */
    run_to(begin + 550 + 2 * TICK_MS);
    assert_int_equal(t.expired, 1);
}

static void can_be_disarmed_and_removed(void **state) {
    (void)state;
    thing a = {0}, b = {0};
    set(&a, now + 50);
    set(&b, now + 50);
    set(&a, NET_NEVER);
    net_wheel_remove(&b.deadline);
    b.wanted_ms = NET_NEVER;
    net_wheel_remove(&b.deadline); /* removing twice is allowed */
    run_to(now + 1000);
    assert_int_equal(a.expired + b.expired, 0);
    set(&a, now + 50);
    run_to(now + 50 + 2 * TICK_MS);
    assert_int_equal(a.expired, 1);
}

static void wakes_from_a_long_sleep(void **state) {
    (void)state;
    thing t[10] = {0};
    for (int i = 0; i < 10; i++) {
        set(&t[i], now + 300 * i);
    }
    now += 1000 * 1000;
    net_wheel_turn(&wheel, now, on_expired);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(t[i].expired, 1);
    }
}

static void many_at_random(void **state) {
    (void)state;
    enum { THINGS = 200 };
    static thing t[THINGS];
    random_source random;
    random_seed(&random, 42);
    for (int step = 0; step < 20000; step++) {
        thing *one = &t[random_below(&random, THINGS)];
        uint64_t what = random_below(&random, 10);
        if (what == 0) {
            net_wheel_remove(&one->deadline);
            one->wanted_ms = NET_NEVER;
        } else {
            set(one, what == 1 ? NET_NEVER : now + (int64_t)random_below(&random, what < 4 ? 50 : 10000));
        }
        now += (int64_t)random_below(&random, 20);
        net_wheel_turn(&wheel, now, on_expired);
        for (int i = 0; i < THINGS; i++) {
            assert_true(t[i].wanted_ms == 0 || t[i].wanted_ms == NET_NEVER || t[i].wanted_ms + TICK_MS >= now);
        }
    }
    for (int i = 0; i < THINGS; i++) {
        net_wheel_remove(&t[i].deadline);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(expires_within_a_tick, start),
        cmocka_unit_test_setup(moves_later_and_earlier, start),
        cmocka_unit_test_setup(can_be_disarmed_and_removed, start),
        cmocka_unit_test_setup(wakes_from_a_long_sleep, start),
        cmocka_unit_test_setup(many_at_random, start),
    };
    return cmocka_run_group_tests_name("net/wheel", tests, NULL, NULL);
}
