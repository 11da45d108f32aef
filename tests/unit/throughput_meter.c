/* Meters: every request is counted in exactly one second and one minute, whatever the clock does; an idle range holds no memory. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "throughput/meter.h"

#define NOON ((int64_t)1700000040) /* the start of a minute, not of an hour */
#define DAY ((int64_t)86400)

static meter_sample second_of(meter *m, int64_t second) {
    meter_sample s;
    meter_seconds(m, second, &s, 1);
    return s;
}

static meter_sample minute_of(meter *m, int64_t second) {
    meter_sample s;
    meter_minutes(m, second, &s, 1);
    return s;
}

static void assert_sample(meter_sample s, double ru, unsigned requests, unsigned throttled, unsigned average, unsigned most,
                          unsigned part) {
    assert_true((double)s.ru > ru - 0.01 && (double)s.ru < ru + 0.01);
    assert_int_equal(s.requests, requests);
    assert_int_equal(s.throttled, throttled);
    assert_int_equal(s.latency_average_us, average);
    assert_int_equal(s.latency_max_us, most);
    assert_int_equal(s.normalized, part);
}

static void a_second_has_what_was_added(void **state) {
    (void)state;
    meter m;
    meter_init(&m);
    meter_add(&m, METER_READ, 6.67, 100, false, false);
    meter_add(&m, METER_READ, 1, 300, false, true);
    meter_add(&m, METER_READ, 0.38, 20, true, true);
    meter_tick(&m, NOON, 400);
    assert_sample(meter_last(&m), 8.05, 3, 1, 140, 300, 20);
    assert_sample(second_of(&m, NOON), 8.05, 3, 1, 140, 300, 20);
    assert_sample(second_of(&m, NOON + 1), 0, 0, 0, 0, 0, 0);
    assert_int_equal(m.requests, 3);
    assert_int_equal(m.throttled, 1);
    assert_int_equal(m.failed, 2);
    assert_int_equal(m.micro_ru, 8050000);
    meter_tick(&m, NOON + 1, 400);
    assert_sample(meter_last(&m), 0, 0, 0, 0, 0, 0);
    meter_free(&m);
}

/* In percent of the sample's RU. */
static long part_of(meter_sample s, meter_work work) {
    return lrint(s.parts[work] * 100.0 / UINT8_MAX);
}

static void samples_say_what_was_paid_for(void **state) {
    (void)state;
    meter m, heir;
    meter_init(&m);
    meter_init(&heir);
    meter_add(&m, METER_CREATE, 6, 100, false, false);
    meter_add_ru(&m, METER_QUERY, 4);
    meter_tick(&m, NOON, 400);
    meter_add(&m, METER_QUERY, 10, 100, false, false);
    meter_tick(&m, NOON + 1, 400);
    assert_int_equal(part_of(second_of(&m, NOON), METER_CREATE), 60);
    assert_int_equal(part_of(second_of(&m, NOON), METER_QUERY), 40);
    assert_int_equal(part_of(second_of(&m, NOON + 1), METER_QUERY), 100);
    meter_sample minute = minute_of(&m, NOON);
    assert_int_equal(part_of(minute, METER_CREATE), 30);
    assert_int_equal(part_of(minute, METER_QUERY), 70);
    assert_int_equal(part_of(minute, METER_READ), 0);
    meter_add(&heir, METER_DELETE, 20, 100, false, false);
    meter_tick(&heir, NOON, 400);
    meter_absorb(&heir, &m, NOON + 2, 400);
    assert_int_equal(part_of(minute_of(&heir, NOON), METER_DELETE), 50);
    assert_int_equal(part_of(minute_of(&heir, NOON), METER_CREATE), 15);
    meter_free(&m);
    meter_free(&heir);
}

static void a_minute_is_made_of_its_seconds(void **state) {
    (void)state;
    meter m;
    meter_init(&m);
    for (int64_t s = 0; s < 60; s++) {
        for (int64_t k = 0; k <= s % 3; k++) {
            meter_add(&m, METER_READ, 10, (uint32_t)(100 * (s % 3)), s % 3 == 2, false);
        }
        meter_tick(&m, NOON + s, 100);
    }
    /* 20 seconds each of 1 request of 0 µs, 2 of 100 µs and 3 of 200 µs */
    assert_sample(minute_of(&m, NOON), 1200, 120, 60, 133, 200, 300);
    assert_sample(minute_of(&m, NOON + 59), 1200, 120, 60, 133, 200, 300);
    assert_sample(minute_of(&m, NOON + 60), 0, 0, 0, 0, 0, 0);
    meter_free(&m);
}

static void the_same_second_adds_up(void **state) {
    (void)state;
    meter m;
    meter_init(&m);
    meter_add(&m, METER_READ, 30, 100, false, false);
    meter_tick(&m, NOON, 100);
    meter_add(&m, METER_READ, 20, 400, false, false);
    meter_add(&m, METER_READ, 20, 400, true, false);
    meter_tick(&m, NOON, 100);
    meter_tick(&m, NOON, 100);
    assert_sample(meter_last(&m), 70, 3, 1, 300, 400, 700);
    assert_sample(second_of(&m, NOON), 70, 3, 1, 300, 400, 700);
    assert_sample(minute_of(&m, NOON), 70, 3, 1, 300, 400, 700);
    meter_free(&m);
}

static void shares_of_any_size(void **state) {
    (void)state;
    meter m;
    meter_init(&m);
    meter_add(&m, METER_READ, 900, 1, false, false);
    meter_tick(&m, NOON, 400); /* spent from saved credit: capped at 100 % */
    assert_int_equal(meter_last(&m).normalized, 1000);
    meter_add(&m, METER_READ, 900, 1, false, false);
    meter_tick(&m, NOON + 1, 0);
    assert_int_equal(meter_last(&m).normalized, 0);
    meter_add(&m, METER_READ, -1, 1, false, false);
    meter_tick(&m, NOON + 2, 400);
    assert_sample(meter_last(&m), 0, 1, 0, 1, 1, 0);
    meter_free(&m);
}

static void idle_ranges_hold_nothing(void **state) {
    (void)state;
    meter m;
    meter_init(&m);
    assert_true(sizeof m <= 192);
    for (int64_t s = 0; s < 1000; s++) {
        meter_tick(&m, NOON + s, 400);
    }
    assert_null(m.history);
    meter_add(&m, METER_READ, 1, 1, false, false);
    meter_tick(&m, NOON + 1000, 400);
    assert_non_null(m.history);
    for (int64_t s = 1001; s < 2 * DAY; s += 7) {
        meter_tick(&m, NOON + s, 400);
        if (s < 1000 + 3600) {
            assert_int_equal(second_of(&m, NOON + 1000).requests, 1);
        }
        if (s < 1000 + DAY) {
            assert_int_equal(minute_of(&m, NOON + 1000).requests, 1);
        }
    }
    assert_null(m.history);
    meter_free(&m);
}

/* Compares every sample of the last hour and day with a model. */
static void history_is_whole_and_bounded(void **state) {
    (void)state;
    enum { LENGTH = 2 * 86400 };
    meter m;
    meter_init(&m);
    random_source random;
    random_seed(&random, 3);
    uint32_t *model = calloc(LENGTH, sizeof *model);
    static meter_sample seconds[3600], minutes[1440];
    for (int64_t s = 0; s < LENGTH; s++) {
        model[s] = s / 7200 % 2 ? 0 : (uint32_t)random_below(&random, 3);
        for (uint32_t i = 0; i < model[s]; i++) {
            meter_add(&m, METER_READ, 1, 10, false, false);
        }
        meter_tick(&m, NOON + s, 400);
        if (s >= 86400 && s % 9973 == 0) {
            meter_seconds(&m, NOON + s - 3599, seconds, 3600);
            meter_minutes(&m, NOON + (s / 60 - 1439) * 60, minutes, 1440);
            for (int64_t i = 0; i < 3600; i++) {
                assert_int_equal(seconds[i].requests, model[s - 3599 + i]);
            }
            for (int64_t i = 0; i < 1440; i++) {
                uint32_t sum = 0;
                for (int64_t k = 0; k < 60; k++) {
                    int64_t at = (s / 60 - 1439 + i) * 60 + k;
                    sum += at <= s ? model[at] : 0;
                }
                assert_int_equal(minutes[i].requests, sum);
            }
        }
    }
    free(model);
    meter_free(&m);
}

static void add_one(meter *m, int64_t second) {
    meter_add(m, METER_READ, 1, 10, false, false);
    meter_tick(m, second, 400);
    assert_int_equal(meter_last(m).requests >= 1, 1);
}

static void clocks_that_jump_do_no_harm(void **state) {
    (void)state;
    static const int64_t jumps[] = {-1,      1,         -70,          3,  -3600,       3600, -5 * DAY,
                                    5 * DAY, 365 * DAY, -30000 * DAY, 60, 30000 * DAY, -61,  -86400 * 3};
    meter m;
    meter_init(&m);
    int64_t second = NOON;
    for (unsigned i = 0; i < sizeof jumps / sizeof *jumps; i++) {
        second += jumps[i];
        for (unsigned k = 0; k < 200; k++) {
            add_one(&m, second);
            assert_true(second_of(&m, second).requests >= 1);
            assert_true(minute_of(&m, second).requests >= 1);
            assert_true(second_of(&m, second).requests <= 3); /* at most 3, since the clock may step back over a second */
            second++;
        }
    }
    meter_free(&m);

    meter_init(&m);
    add_one(&m, NOON);
    add_one(&m, NOON + 100 * DAY); /* drops the first */
    assert_int_equal(second_of(&m, NOON).requests, 0);
    assert_int_equal(minute_of(&m, NOON).requests, 0);
    meter_free(&m);
}

static void odd_questions_have_empty_answers(void **state) {
    (void)state;
    meter m;
    meter_init(&m);
    add_one(&m, NOON);
    static meter_sample samples[100];
    static const int64_t starts[] = {INT64_MIN, INT64_MIN + 50, -1, 0, NOON - 200, NOON + 1, INT64_MAX - 50, INT64_MAX};
    for (unsigned i = 0; i < sizeof starts / sizeof *starts; i++) {
        memset(samples, 0xff, sizeof samples);
        meter_seconds(&m, starts[i], samples, 100);
        for (unsigned k = 0; k < 100; k++) {
            assert_int_equal(samples[k].requests, 0);
        }
        meter_minutes(&m, starts[i], samples, starts[i] == NOON - 200 || starts[i] == NOON + 1 ? 0 : 100);
    }
    meter_free(&m);
}

enum { THREADS = 3, ADDS = 30000 };

static void *add_much(void *p) {
    for (unsigned i = 0; i < ADDS; i++) {
        meter_add(p, METER_READ, 1, i % 1000, i % 10 == 0, false);
    }
    return NULL;
}

static void *read_much(void *p) {
    meter_sample samples[120];
    for (unsigned i = 0; i < 300; i++) {
        meter_seconds(p, NOON, samples, 120);
        meter_minutes(p, NOON, samples, 20);
        meter_last(p);
    }
    return NULL;
}

static void threads_lose_nothing(void **state) {
    (void)state;
    meter m;
    meter_init(&m);
    pthread_t threads[THREADS + 1];
    for (unsigned i = 0; i <= THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, i < THREADS ? add_much : read_much, &m), 0);
    }
    for (int64_t s = 0; s < 1000; s++) {
        meter_tick(&m, NOON + s / 10, 400);
    }
    for (unsigned i = 0; i <= THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    meter_tick(&m, NOON + 100, 400);
    meter_sample samples[101];
    meter_seconds(&m, NOON, samples, 101);
    uint64_t requests = 0, throttled = 0;
    double ru = 0;
    for (unsigned i = 0; i < 101; i++) {
        requests += samples[i].requests;
        throttled += samples[i].throttled;
        ru += (double)samples[i].ru;
    }
    assert_int_equal(requests, THREADS * ADDS);
    assert_int_equal(throttled, THREADS * ADDS / 10);
    assert_true(ru > THREADS * ADDS - 1 && ru < THREADS * ADDS + 1);
    assert_int_equal(minute_of(&m, NOON).requests + minute_of(&m, NOON + 60).requests, THREADS * ADDS);
    meter_free(&m);
}

static void what_ranges_of_before_did_stays_known(void **state) {
    (void)state;
    meter past, left, right;
    meter_init(&past);
    meter_init(&left);
    meter_init(&right);
    meter_add(&left, METER_READ, 10, 100, false, false);
    meter_tick(&left, NOON, 100);
    meter_add(&left, METER_READ, 5, 100, true, false); /* not ticked yet */
    meter_add(&right, METER_READ, 30, 300, false, false);
    meter_tick(&right, NOON, 100);
    meter_absorb(&past, &left, NOON + 1, 100);
    meter_absorb(&past, &right, NOON + 1, 100);
    assert_sample(second_of(&past, NOON), 40, 2, 0, 200, 300, 300);
    assert_sample(second_of(&past, NOON + 1), 5, 1, 1, 100, 100, 50);
    assert_int_equal(minute_of(&past, NOON).requests, 3);
    meter_tick(&past, NOON + DAY + 7200, 0); /* a day later all history is freed */
    assert_null(past.history);
    meter_free(&past);
    meter_free(&left);
    meter_free(&right);
}

static void old_blocks_do_not_displace_newer_ones(void **state) {
    (void)state;
    meter past, stale, fresh;
    meter_init(&past);
    meter_init(&stale);
    meter_init(&fresh);
    meter_add(&stale, METER_READ, 1, 1, false, false);
    meter_tick(&stale, NOON, 0);
    meter_add(&fresh, METER_READ, 1, 1, false, false);
    meter_tick(&fresh, NOON + (int64_t)61 * 60, 0); /* the same slot in the ring of blocks */
    meter_absorb(&past, &fresh, NOON + (int64_t)61 * 60, 0);
    meter_absorb(&past, &stale, NOON, 0);
    assert_int_equal(second_of(&past, NOON + (int64_t)61 * 60).requests, 1);
    assert_int_equal(minute_of(&past, NOON).requests, 1);
    meter_free(&past);
    meter_free(&stale);
    meter_free(&fresh);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_has_what_was_added),
        cmocka_unit_test(samples_say_what_was_paid_for),
        cmocka_unit_test(a_minute_is_made_of_its_seconds),
        cmocka_unit_test(the_same_second_adds_up),
        cmocka_unit_test(shares_of_any_size),
        cmocka_unit_test(idle_ranges_hold_nothing),
        cmocka_unit_test(history_is_whole_and_bounded),
        cmocka_unit_test(clocks_that_jump_do_no_harm),
        cmocka_unit_test(odd_questions_have_empty_answers),
        cmocka_unit_test(what_ranges_of_before_did_stays_known),
        cmocka_unit_test(old_blocks_do_not_displace_newer_ones),
        cmocka_unit_test(threads_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
