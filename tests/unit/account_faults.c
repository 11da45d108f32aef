/* Fault injection: which requests are hit, how often, in which order; and that the same seed hits the same requests. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "account/faults.h"

static faults *f;

static int start(void **state) {
    (void)state;
    f = faults_new();
    return 0;
}

static int stop(void **state) {
    (void)state;
    faults_free(f);
    return 0;
}

static fault any(err code) {
    return (fault){.code = code, .range = -1, .percent = 100};
}

static uint32_t add(fault made) {
    uint32_t id = 0;
    assert_int_equal(faults_add(f, &made, &id), OK);
    return id;
}

static fault_request request(const char *database, const char *container, int64_t range, bool writes) {
    return (fault_request){slice_str(database), slice_str(container), range, writes};
}

/* The id of the fault that hits the request; 0: none. */
static uint32_t hit(fault_request r) {
    fault found;
    return faults_hit(f, &r, &found) ? found.id : 0;
}

static const fault_request plain = {{"d", 1}, {"c", 1}, 0, false};

static void without_faults_nothing_is_hit(void **state) {
    (void)state;
    assert_false(faults_any(f));
    assert_int_equal(hit(plain), 0);
    assert_int_equal(faults_hits(f), 0);
}

static void a_fault_hits_as_often_as_it_says(void **state) {
    fault made = any(E_THROTTLED), found;
    (void)state;
    made.count = 3;
    made.retry_after_ms = 250;
    made.substatus = 3201;
    uint32_t id = add(made);
    assert_true(faults_any(f));
    assert_true(faults_hit(f, &plain, &found));
    assert_int_equal(found.id, id);
    assert_int_equal(found.code, E_THROTTLED);
    assert_int_equal(found.retry_after_ms, 250);
    assert_int_equal(found.substatus, 3201);
    assert_int_equal(hit(plain), id);
    assert_int_equal(hit(plain), id);
    assert_int_equal(hit(plain), 0);
    assert_false(faults_any(f));
    assert_int_equal(faults_hits(f), 3);
}

static void only_those_it_is_for(void **state) {
    (void)state;
    fault made = any(E_RETRY_WITH);
    snprintf(made.database, sizeof made.database, "d");
    snprintf(made.container, sizeof made.container, "c");
    made.range = 7;
    made.operation = FAULT_WRITE;
    uint32_t id = add(made);
    assert_int_equal(hit(request("d", "c", 7, true)), id);
    assert_int_equal(hit(request("x", "c", 7, true)), 0);
    assert_int_equal(hit(request("d", "x", 7, true)), 0);
    assert_int_equal(hit(request("d", "cc", 7, true)), 0);
    assert_int_equal(hit(request("d", "c", 8, true)), 0);
    assert_int_equal(hit(request("d", "c", -1, true)), 0); /* the request's range is unknown */
    assert_int_equal(hit(request("d", "c", 7, false)), 0);
    faults_clear(f);
    made.operation = FAULT_READ;
    id = add(made);
    assert_int_equal(hit(request("d", "c", 7, true)), 0);
    assert_int_equal(hit(request("d", "c", 7, false)), id);
}

static void the_first_that_is_for_it_hits(void **state) {
    (void)state;
    fault once = any(E_UNAVAILABLE);
    once.count = 1;
    fault writes = any(E_TIMEOUT);
    writes.operation = FAULT_WRITE;
    uint32_t first = add(writes), second = add(once), third = add(once);
    assert_int_equal(hit(plain), second);
    assert_int_equal(hit(plain), third);
    assert_int_equal(hit(plain), 0);
    assert_int_equal(hit(request("d", "c", 0, true)), first);
}

static void they_can_be_taken_back(void **state) {
    fault list[FAULTS_MAX];
    (void)state;
    uint32_t first = add(any(E_INTERNAL)), second = add(any(E_TIMEOUT));
    assert_int_equal(hit(plain), first);
    assert_true(faults_remove(f, first));
    assert_false(faults_remove(f, first));
    assert_int_equal(hit(plain), second);
    assert_int_equal(faults_list(f, list), 1);
    assert_int_equal(list[0].id, second);
    assert_int_equal(list[0].hits, 1);
    assert_int_equal(faults_clear(f), 1);
    assert_false(faults_any(f));
    assert_int_equal(faults_clear(f), 0);
}

static void there_are_no_more_than_there_may_be(void **state) {
    uint32_t id;
    fault made = any(E_INTERNAL), list[FAULTS_MAX];
    (void)state;
    for (int i = 0; i < FAULTS_MAX; i++) {
        add(made);
    }
    assert_int_equal(faults_add(f, &made, &id), E_BAD_REQUEST);
    assert_int_equal(faults_list(f, list), FAULTS_MAX);
    faults_remove(f, list[50].id);
    assert_int_equal(faults_add(f, &made, &id), OK);
}

static void the_seed_decides_which_are_hit(void **state) {
    (void)state;
    char first[1001], second[1001], other[1001];
    char *const runs[] = {first, second, other};
    for (unsigned run = 0; run < 3; run++) {
        fault made = any(E_UNAVAILABLE);
        made.percent = 30;
        made.seed = run == 2 ? 43 : 42;
        add(made);
        unsigned hits = 0;
        for (unsigned i = 0; i < 1000; i++) {
            hits += runs[run][i] = hit(plain) != 0;
        }
        assert_in_range(hits, 250, 350);
        faults_clear(f);
    }
    assert_memory_equal(first, second, 1000);
    assert_memory_not_equal(first, other, 1000);
}

static void percent_and_count_go_together(void **state) {
    (void)state;
    fault made = any(E_UNAVAILABLE);
    made.percent = 50;
    made.count = 5;
    add(made);
    unsigned hits = 0;
    for (unsigned i = 0; i < 1000; i++) {
        hits += hit(plain) != 0;
    }
    assert_int_equal(hits, 5);
}

static void statuses_that_a_fault_may_give(void **state) {
    static const unsigned good[] = {408, 410, 429, 449, 500, 503}, bad[] = {0, 200, 304, 400, 401, 404, 409, 412, 501, 999};
    err code;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(fault_status_read(good[i], &code));
        assert_int_equal(err_lookup(code)->http_status, good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(fault_status_read(bad[i], &code));
    }
}

/* With concurrent requests, a fault hits exactly `count` times and is then gone. */
static void *ask(void *hits) {
    for (unsigned i = 0; i < 20000; i++) {
        if (faults_any(f) && hit(plain)) {
            (*(unsigned *)hits)++;
        }
    }
    return NULL;
}

static void threads_share_the_count(void **state) {
    pthread_t threads[4];
    unsigned hits[4] = {0};
    fault made = any(E_THROTTLED);
    (void)state;
    made.count = 1000;
    add(made);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &hits[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(hits[0] + hits[1] + hits[2] + hits[3], 1000);
    assert_false(faults_any(f));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_faults_nothing_is_hit, start, stop),
        cmocka_unit_test_setup_teardown(a_fault_hits_as_often_as_it_says, start, stop),
        cmocka_unit_test_setup_teardown(only_those_it_is_for, start, stop),
        cmocka_unit_test_setup_teardown(the_first_that_is_for_it_hits, start, stop),
        cmocka_unit_test_setup_teardown(they_can_be_taken_back, start, stop),
        cmocka_unit_test_setup_teardown(there_are_no_more_than_there_may_be, start, stop),
        cmocka_unit_test_setup_teardown(the_seed_decides_which_are_hit, start, stop),
        cmocka_unit_test_setup_teardown(percent_and_count_go_together, start, stop),
        cmocka_unit_test_setup_teardown(statuses_that_a_fault_may_give, start, stop),
        cmocka_unit_test_setup_teardown(threads_share_the_count, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
