/* Deleting a logical partition as a whole: items are gone at once, what is written afterwards stays, the bytes are removed step by step at
 * a tenth of the throughput, over restarts and store failures, and are counted exactly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item/wipe.h"
#include "item_harness.h"

#define KEY "\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"
#define UNIQUE ",\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]}]}"

static harness h;
static container *c;

static void start(const char *properties) {
    harness_open(&h);
    c = harness_container(&h, properties, 400);
}

static void restart(void) {
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
}

static void stop(void) {
    harness_check(&h, c);
    container_give(c);
    harness_close(&h);
}

static void pass(int seconds) {
    clock_manual_advance(&h.clock, (int64_t)seconds * 1000);
}

static err put(item_kind kind, const char *id, const char *pk, const char *more) {
    char body[300];
    snprintf(body, sizeof body, "{\"id\":\"%s\",\"pk\":\"%s\"%s}", id, pk, more);
    return harness_write(&h, c, kind, NULL, id, body);
}

static void put_many(const char *pk, int n) {
    for (int i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        assert_int_equal(put(ITEM_CREATE, id, pk, ""), OK);
    }
}

typedef struct waited {
    item_wipe base;
    waiter waiter;
} waited;

static void wipe_is_done(item_wipe *w) {
    sem_post(&((waited *)w)->waiter.done);
}

static err wipe(const char *key, bool *pending_out) {
    waited w = {.base = {.items = harness_items(&h), .op = harness_op(&h), .container = c, .done = wipe_is_done}};
    pkey header;
    assert_int_equal(pkey_parse(w.base.op, slice_str(key), &header), OK);
    assert_int_equal(item_check_key(w.base.op, c, &header, SLICE_EMPTY, &w.base.key), OK);
    waiter_init(&w.waiter);
    TRY(item_wipe_submit(&w.base));
    waiter_wait(&w.waiter);
    item_wipe_charge(&w.base);
    item_wipe_give(&w.base);
    *pending_out = w.base.pending;
    return w.base.base.code;
}

static void wiped(const char *key) {
    bool pending;
    assert_int_equal(wipe(key, &pending), OK);
    assert_true(pending);
}

typedef struct removal {
    item_wipe_step base;
    waiter waiter;
} removal;

static void removal_is_done(item_wipe_step *step) {
    sem_post(&((removal *)step)->waiter.done);
}

/* False: there was nothing to do. */
static bool step(unsigned cost, err expected) {
    removal w = {.base = {.items = harness_items(&h), .container = c, .cost_max = cost, .done = removal_is_done}};
    waiter_init(&w.waiter);
    if (!item_wipes_due(harness_items(&h), c) || !item_wipe_step_submit(&w.base)) {
        return false;
    }
    waiter_wait(&w.waiter);
    assert_int_equal(w.base.base.code, expected);
    return true;
}

static size_t records(void) {
    slice key, value;
    size_t n = 0;
    store_scan *scan = store_scan_open(h.store, STORE_META, NULL, SLICE_LIT("W"), SLICE_LIT("X"), false);
    while (store_scan_next(scan, &key, &value)) {
        n++;
    }
    assert_int_equal(store_scan_close(scan), OK);
    return n;
}

static void items_are_gone_at_once(void **state) {
    (void)state;
    start("{" KEY "}");
    put_many("a", 5);
    put_many("b", 2);
    wiped("[\"a\"]");
    assert_null(harness_read(&h, c, "[\"a\"]", "1"));
    assert_non_null(harness_read(&h, c, "[\"b\"]", "1"));
    assert_string_equal(harness_feed(&h, c, NULL, 10, 100), "0 1 ");
    assert_string_equal(harness_feed(&h, c, "[\"a\"]", 10, 100), "");
    assert_int_equal(put(ITEM_REPLACE, "1", "a", ""), E_NOT_FOUND);
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"a\"]", "2", NULL), E_NOT_FOUND);
    assert_int_equal(records(), 1);
    while (step(2, OK)) {
    }
    assert_int_equal(harness_count(c), 2);
    assert_int_equal(records(), 0);
    stop();
}

static void later_items_stay(void **state) {
    (void)state;
    start("{" KEY UNIQUE "}");
    assert_int_equal(put(ITEM_CREATE, "1", "a", ",\"u\":1"), OK);
    assert_int_equal(put(ITEM_CREATE, "2", "a", ",\"u\":2"), OK);
    wiped("[\"a\"]");
    assert_int_equal(put(ITEM_CREATE, "1", "a", ",\"u\":2"), OK); /* an id and a unique value that were taken */
    assert_int_equal(put(ITEM_CREATE, "3", "a", ",\"u\":3"), OK);
    assert_int_equal(put(ITEM_CREATE, "4", "a", ",\"u\":3"), E_UNIQUE_KEY);
    while (step(1, OK)) {
    }
    assert_string_equal(harness_feed(&h, c, "[\"a\"]", 10, 100), "1 3 ");
    assert_int_equal(harness_count(c), 2);
    stop();
}

static void again_while_the_first_is_under_way(void **state) {
    (void)state;
    start("{" KEY "}");
    put_many("a", 6);
    wiped("[\"a\"]");
    assert_true(step(3, OK));
    assert_int_equal(put(ITEM_CREATE, "0", "a", ""), OK);
    wiped("[\"a\"]");
    assert_string_equal(harness_feed(&h, c, NULL, 10, 100), "");
    assert_int_equal(records(), 1);
    assert_true(item_wipes_now(c));
    while (step(3, OK)) {
    }
    assert_false(item_wipes_now(c));
    assert_int_equal(harness_count(c), 0);
    stop();
}

static void an_empty_partition_leaves_nothing(void **state) {
    (void)state;
    bool pending = true;
    start("{" KEY "}");
    put_many("b", 1);
    assert_int_equal(wipe("[\"a\"]", &pending), OK);
    assert_false(pending);
    assert_int_equal(records(), 0);
    assert_false(step(1, OK));
    stop();
}

static void a_restart_goes_on(void **state) {
    (void)state;
    start("{" KEY "}");
    put_many("a", 6);
    wiped("[\"a\"]");
    assert_true(step(2, OK));
    restart();
    assert_int_equal(harness_count(c), 4);
    assert_string_equal(harness_feed(&h, c, NULL, 10, 100), "");
    while (step(2, OK)) {
    }
    assert_int_equal(harness_count(c), 0);
    restart();
    assert_false(item_wipes_past(c));
    stop();
}

static void a_deleted_container_leaves_no_record(void **state) {
    (void)state;
    start("{" KEY "}");
    put_many("a", 2);
    wiped("[\"a\"]");
    assert_int_equal(harness_delete_container(&h, "d", "c"), OK);
    assert_int_equal(records(), 0);
    container_give(c);
    harness_close(&h);
}

/* Old snapshots may still show the items, so a finished wipe is remembered for a while. */
static void finished_ones_are_forgotten_later(void **state) {
    (void)state;
    start("{" KEY "}");
    put_many("a", 2);
    wiped("[\"a\"]");
    while (step(10, OK)) {
    }
    assert_true(item_wipes_past(c));
    assert_false(item_wipes_now(c)); /* queries may count index entries again */
    pass(LIMIT_TRANSACTION_SECONDS + 31);
    assert_false(step(10, OK));
    assert_false(item_wipes_past(c));
    stop();
}

static void a_tenth_of_the_throughput(void **state) {
    (void)state;
    harness_open(&h);
    container_give(harness_container(&h, "{\"id\":\"other\",\"partitionKey\":{\"paths\":[\"/pk\"]}}", 400));
    account_close(h.account);
    h.rules.unlimited = false;
    harness_open_account(&h);
    c = harness_container(&h, "{" KEY "}", 400);
    for (int i = 0; i < 20; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        assert_int_equal(put(ITEM_CREATE, id, "a", ""), OK);
        pass(1);
    }
    wiped("[\"a\"]");
    int ms = 0;
    for (; harness_count(c) && ms < 60000; ms += 10) {
        while (step(1, OK)) {
        }
        clock_manual_advance(&h.clock, 10);
    }
    assert_int_equal(harness_count(c), 0);
    assert_in_range(ms, 2000, 4500); /* 20 deletes of about 6 RU at 40 RU/s */
    stop();
}

/* Some steps, whatever comes of them. */
static void try_steps(void) {
    for (int i = 0; i < 5 && item_wipes_due(harness_items(&h), c); i++) {
        removal w = {.base = {.items = harness_items(&h), .container = c, .cost_max = 2, .done = removal_is_done}};
        waiter_init(&w.waiter);
        if (item_wipe_step_submit(&w.base)) {
            waiter_wait(&w.waiter);
        }
    }
}

/* Fails one call of the store; returns whether it came to that. */
static bool fail_once(unsigned *in, unsigned n) {
    bool pending;
    start("{" KEY "}");
    put_many("a", 3);
    *in = n;
    err code = wipe("[\"a\"]", &pending);
    try_steps();
    bool fired = h.plan.fired > 0;
    *in = 0;
    restart();
    const char *left = harness_feed(&h, c, NULL, 10, 100);
    assert_string_equal(left, code == OK ? "" : "0 1 2 ");
    while (step(2, OK)) {
    }
    assert_int_equal(harness_count(c), code == OK ? 0 : 3);
    stop();
    return fired;
}

static void a_failing_store(void **state) {
    (void)state;
    unsigned *const calls[] = {&h.plan.get_in, &h.plan.write_in, &h.plan.scan_in};
    for (size_t i = 0; i < 3; i++) {
        unsigned n = 1;
        while (fail_once(calls[i], n)) {
            n++;
        }
        assert_in_range(n, 2, 200);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_gone_at_once),
        cmocka_unit_test(later_items_stay),
        cmocka_unit_test(again_while_the_first_is_under_way),
        cmocka_unit_test(an_empty_partition_leaves_nothing),
        cmocka_unit_test(a_restart_goes_on),
        cmocka_unit_test(a_deleted_container_leaves_no_record),
        cmocka_unit_test(finished_ones_are_forgotten_later),
        cmocka_unit_test(a_tenth_of_the_throughput),
        cmocka_unit_test(a_failing_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
