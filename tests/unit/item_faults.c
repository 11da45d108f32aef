/* The failure sweep: each operation is repeated, failing its first, second, third … call of the store, until it succeeds without a failure.
 * After each try it is applied completely or not at all, the counts agree, and a restart finds the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"

#define PROPERTIES                                                                                                                         \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/"                                                                                       \
    "pk\"],\"kind\":\"Hash\",\"version\":2},\"defaultTtl\":100,\"changeFeedPolicy\":{\"retentionDuration\":10},"                           \
    "\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]},{\"paths\":[\"/v\"]}]}}"

static harness h;
static container *c;

/* Items 1 to 3; item 3 has expired. */
static void set_up(void) {
    harness_open(&h);
    c = harness_container(&h, PROPERTIES, 2000);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"u\":1,\"v\":1}"), OK);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"2\",\"pk\":\"a\",\"u\":2,\"v\":2}"), OK);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"3\",\"pk\":\"a\",\"u\":3,\"v\":3,\"ttl\":5}"), OK);
    clock_manual_advance(&h.clock, 5000);
}

static void tear_down(void) {
    if (c) {
        container_give(c);
    }
    harness_close(&h);
}

/* ---- the operations ---- */

typedef struct step {
    item_kind kind;
    const char *id, *text;
} step;

typedef struct request {
    const char *name;
    bool atomic;
    size_t n;
    step steps[4];
} request;

static const request requests[] = {
    {"create", true, 1, {{ITEM_CREATE, NULL, "{\"id\":\"4\",\"pk\":\"a\",\"u\":4,\"v\":4}"}}},
    {"create in place of an expired one", true, 1, {{ITEM_CREATE, NULL, "{\"id\":\"3\",\"pk\":\"a\",\"u\":4,\"v\":4}"}}},
    {"create with values of an expired one", true, 1, {{ITEM_CREATE, NULL, "{\"id\":\"4\",\"pk\":\"a\",\"u\":3,\"v\":3}"}}},
    {"upsert that inserts", true, 1, {{ITEM_UPSERT, NULL, "{\"id\":\"4\",\"pk\":\"a\",\"u\":4,\"v\":4}"}}},
    {"upsert that overwrites", true, 1, {{ITEM_UPSERT, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"u\":4,\"v\":1,\"ttl\":7}"}}},
    {"replace", true, 1, {{ITEM_REPLACE, "1", "{\"id\":\"1\",\"pk\":\"a\",\"u\":1,\"v\":5}"}}},
    {"patch", true, 1, {{ITEM_EDIT, "1", "[{\"op\":\"set\",\"path\":\"/u\",\"value\":6}]"}}},
    {"delete", true, 1, {{ITEM_DELETE, "1", NULL}}},
    {"batch",
     true,
     4,
     {{ITEM_DELETE, "1", NULL},
      {ITEM_CREATE, NULL, "{\"id\":\"4\",\"pk\":\"a\",\"u\":1,\"v\":1}"},
      {ITEM_EDIT, "4", "[{\"op\":\"set\",\"path\":\"/u\",\"value\":3}]"},
      {ITEM_UPSERT, NULL, "{\"id\":\"2\",\"pk\":\"a\",\"u\":1,\"v\":2}"}}},
    {"bulk",
     false,
     3,
     {{ITEM_DELETE, "1", NULL},
      {ITEM_CREATE, NULL, "{\"id\":\"4\",\"pk\":\"a\",\"u\":4,\"v\":4}"},
      {ITEM_UPSERT, NULL, "{\"id\":\"2\",\"pk\":\"a\",\"u\":5,\"v\":2}"}}},
};

enum { REQUESTS = sizeof requests / sizeof *requests };

static err run(const request *r, item_op *ops) {
    for (size_t i = 0; i < r->n; i++) {
        assert_int_equal(harness_prepare(&h, c, &ops[i], r->steps[i].kind, "[\"a\"]", r->steps[i].id, r->steps[i].text), OK);
    }
    return harness_commit(&h, c, ops, r->n, r->atomic);
}

/* The store after the request if nothing fails. */
static buf outcome(const request *r) {
    item_op ops[4];
    set_up();
    assert_int_equal(run(r, ops), OK);
    for (size_t i = 0; i < r->n; i++) {
        assert_int_equal(ops[i].code, OK);
    }
    buf after = dump_store(h.store, NULL);
    tear_down();
    return after;
}

static void restart_and_check(void) {
    harness_check(&h, c);
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
    assert_non_null(c);
    harness_check(&h, c);
}

static bool same_as(const buf *expected) {
    buf now = dump_store(h.store, NULL);
    bool same = slice_eq(buf_view(&now), buf_view(expected));
    buf_free(&now);
    return same;
}

/* One try; returns whether the failure occurred. */
static bool try_failing(const request *r, unsigned *in, unsigned n, const buf *after) {
    item_op ops[4];
    set_up();
    buf before = dump_store(h.store, NULL);
    *in = n;
    err code = run(r, ops);
    *in = 0;
    bool fired = h.plan.fired > 0;
    if (r->atomic || code != OK) {
        assert_int_equal(code, fired ? E_STORE_IO : OK);
        assert_true(same_as(code == OK ? after : &before));
    } else { /* bulk: some operations failed; the others are checked below */
        size_t failed = 0;
        for (size_t i = 0; i < r->n; i++) {
            failed += ops[i].code != OK;
        }
        assert_true(harness_homes() == 1 ? failed == fired : (failed > 0) == fired); /* a failed write fails all operations of its home */
    }
    restart_and_check();
    if (fired && code != OK) { /* without failures it works */
        assert_int_equal(run(r, ops), OK);
        assert_true(same_as(after));
        harness_check(&h, c);
    }
    buf_free(&before);
    tear_down();
    return fired;
}

static void writes_are_whole_whatever_fails(void **state) {
    (void)state;
    for (size_t i = 0; i < REQUESTS; i++) {
        buf after = outcome(&requests[i]);
        unsigned *const kinds[] = {&h.plan.get_in, &h.plan.write_in, &h.plan.scan_in};
        unsigned tries = 0;
        for (size_t k = 0; k < 3; k++) {
            for (unsigned n = 1; try_failing(&requests[i], kinds[k], n, &after); n++) {
                tries++;
            }
        }
        if (tries < 2) { /* at least one get and the write */
            fail_msg("%s: only %u calls failed", requests[i].name, tries);
        }
        buf_free(&after);
    }
}

/* The disk reports a failure but has written the data: the client's answer is undefined, but after a restart the write is complete. */
static void a_write_that_failed_after_the_fact_is_whole(void **state) {
    (void)state;
    for (size_t i = 0; i < REQUESTS; i++) {
        item_op ops[4];
        buf after = outcome(&requests[i]);
        set_up();
        h.plan.write_in = 1;
        h.plan.torn = true;
        assert_int_equal(run(&requests[i], ops), E_STORE_IO);
        container_give(c);
        harness_restart(&h);
        c = harness_found(&h, "d", "c");
        harness_check(&h, c);
        assert_true(same_as(&after));
        buf_free(&after);
        tear_down();
    }
}

/* A full disk: every write is rejected, nothing changes, reads continue; with space again everything works. */
static void a_full_disk_refuses_and_forgets(void **state) {
    (void)state;
    set_up();
    buf before = dump_store(h.store, NULL);
    h.plan = (store_fault_plan){.code = E_STORE_FULL, .write_in = 1, .sticky = true};
    for (size_t i = 0; i < REQUESTS; i++) {
        item_op ops[4];
        assert_int_equal(run(&requests[i], ops), E_STORE_FULL);
        assert_string_equal(harness_read(&h, c, "[\"a\"]", "1"), "{\"id\":\"1\",\"pk\":\"a\",\"u\":1,\"v\":1}");
        assert_string_equal(harness_feed(&h, c, NULL, 10, 100), "1 2 ");
    }
    assert_true(same_as(&before));
    h.plan = (store_fault_plan){0};
    item_op ops[4];
    assert_int_equal(run(&requests[REQUESTS - 2], ops), OK);
    restart_and_check();
    buf_free(&before);
    tear_down();
}

/* ---- reads ---- */

static err read_one(const char *id) {
    op *o = harness_op(&h);
    pkey header;
    item_key k;
    item_found found;
    assert_int_equal(pkey_parse(o, SLICE_LIT("[\"a\"]"), &header), OK);
    assert_int_equal(item_check_key(o, c, &header, slice_str(id), &k), OK);
    err code = item_read(harness_items(&h), o, c, &k, &found);
    if (code == OK) {
        item_give(&found);
    }
    return code;
}

static bool count_one(void *context, const item_found *found) {
    (void)found;
    ++*(unsigned *)context;
    return true;
}

static err feed_all(bool partition, unsigned *seen) {
    item_op o;
    assert_int_equal(harness_prepare(&h, c, &o, ITEM_READ, "[\"a\"]", "1", NULL), OK);
    item_cursor cursor = harness_cursor();
    item_mark mark;
    cursor.partition = partition ? &o.key : NULL;
    *seen = 0;
    return item_feed(harness_items(&h), harness_op(&h), c, &cursor, 100, count_one, seen, &mark);
}

/* A failed read reports an error, never "not found"; a failed feed does not end as if it were complete. */
static void reads_say_that_they_failed(void **state) {
    (void)state;
    for (unsigned n = 1; n < 10; n++) {
        unsigned seen;
        set_up();
        container_give(c);
        harness_restart(&h); /* with an empty cache */
        c = harness_found(&h, "d", "c");
        h.plan.fired = 0;
        h.plan.get_in = n;
        err code = read_one("2");
        assert_int_equal(code, h.plan.fired ? E_STORE_IO : OK);
        h.plan = (store_fault_plan){.code = E_STORE_CORRUPT, .scan_in = n};
        code = feed_all(false, &seen);
        assert_int_equal(code, h.plan.fired ? E_STORE_CORRUPT : OK);
        assert_true(h.plan.fired || seen == 2);
        h.plan = (store_fault_plan){.code = E_STORE_IO, .get_in = n};
        code = feed_all(true, &seen);
        assert_true(harness_ordered() ? code == OK || code == E_STORE_IO : code == (h.plan.fired ? E_STORE_IO : OK));
        assert_true(code != OK || seen == 2);
        h.plan = (store_fault_plan){0};
        tear_down();
    }
}

/* ---- the account ---- */

typedef enum change_kind {
    CREATE_DATABASE,
    CREATE_SHARED,
    CREATE_CONTAINER,
    REPLACE_CONTAINER,
    DELETE_CONTAINER,
    DELETE_DATABASE
} change_kind;

static err change(change_kind kind) {
    container *made = NULL;
    err code = OK;
    switch (kind) {
    case CREATE_DATABASE:
        return harness_create_database(&h, "e", (throughput_setting){0});
    case CREATE_SHARED:
        return harness_create_database(&h, "e", (throughput_setting){.kind = THROUGHPUT_MANUAL, .value = 400});
    case CREATE_CONTAINER:
        code = harness_create_container(&h, "d", "{\"id\":\"n\",\"partitionKey\":{\"paths\":[\"/pk\"]}}", 3000, &made);
        break;
    case REPLACE_CONTAINER:
        return harness_replace_container(&h, "d", "c",
                                         "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},"
                                         "\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]},{\"paths\":[\"/v\"]}]}}");
    case DELETE_CONTAINER:
        return harness_delete_container(&h, "d", "c");
    case DELETE_DATABASE:
        return harness_delete_database(&h, "d");
    }
    if (made) {
        container_give(made);
    }
    return code;
}

static bool count_database(void *context, const database *d) {
    (void)d;
    ++*(unsigned *)context;
    return true;
}

static bool count_container(void *context, const container *each) {
    (void)each;
    ++*(unsigned *)context;
    return true;
}

static bool count_offer(void *context, const offer *o) {
    (void)o;
    ++*(unsigned *)context;
    return true;
}

/* What is visible in memory: databases, containers of "d", offers, and whether "c" has a ttl. */
static void what_is_seen(unsigned seen[4]) {
    database *d = NULL;
    memset(seen, 0, 4 * sizeof *seen);
    account_each_database(h.account, 0, count_database, &seen[0]);
    if (account_database(h.account, SLICE_LIT("d"), false, &d) == OK) {
        account_each_container(h.account, d, 0, count_container, &seen[1]);
        database_give(d);
    }
    account_each_offer(h.account, 0, count_offer, &seen[2]);
    container *found = harness_find(&h, "d", "c");
    seen[3] = found && found->ttl ? 1 : 0;
    if (found) {
        container_give(found);
    }
}

static void changes_are_whole_whatever_fails(void **state) {
    (void)state;
    for (change_kind kind = CREATE_DATABASE; kind <= DELETE_DATABASE; kind++) {
        for (unsigned n = 1; n <= 2; n++) {
            unsigned before[4], now[4], after[4];
            set_up();
            what_is_seen(before);
            buf stored = dump_store(h.store, NULL);
            container_give(c);
            c = NULL;
            h.plan.write_in = n;
            err code = change(kind);
            h.plan.write_in = 0;
            bool fails = n == 1 || (harness_homes() > 1 && code != OK); /* with several homes a replace writes more than once */
            assert_int_equal(code, fails ? E_STORE_IO : OK);
            what_is_seen(now);
            if (fails) {
                assert_memory_equal(before, now, sizeof now);
                assert_true(harness_homes() > 1 || same_as(&stored));
            } else {
                assert_memory_not_equal(before, now, sizeof now);
            }
            harness_restart(&h);
            what_is_seen(after);
            assert_memory_equal(now, after, sizeof now);
            if (fails) {
                assert_int_equal(change(kind), OK);
            }
            buf_free(&stored);
            tear_down();
        }
    }
}

/* ---- a full disk ---- */

#define PLAIN "{\"id\":\"plain\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},\"defaultTtl\":100}"

/* A create in an empty logical partition looks up the size of the partition, and nothing else; in one that was written just before, the
 * size is known, and it looks up the item. */
static void creates_look_up_one_key(void **state) {
    (void)state;
    harness_open(&h);
    c = harness_container(&h, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}", 2000);
    h.plan.get_in = 2;
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
    h.plan.get_in = 2;
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"2\",\"pk\":\"a\"}"), OK);
    h.plan.get_in = 1;
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"3\",\"pk\":\"a\"}"), E_STORE_IO);
    h.plan.get_in = 0;
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\"}"), E_CONFLICT);
    harness_check(&h, c);
    tear_down();
}

/* Deletes continue, down to the part of the reserve that is kept for containers and databases. */
static void a_full_disk_lets_deletes_through(void **state) {
    (void)state;
    set_up();
    container *plain = harness_container(&h, PLAIN, 400);
    for (char id[] = "1"; *id < '5'; id[0]++) {
        char text[64];
        snprintf(text, sizeof text, "{\"id\":\"%s\",\"pk\":\"a\"%s}", id, *id == '4' ? ",\"ttl\":5" : "");
        assert_int_equal(harness_write(&h, plain, ITEM_CREATE, NULL, NULL, text), OK);
    }
    clock_manual_advance(&h.clock, 6000);
    h.plan.room = STORE_FREES;
    assert_int_equal(harness_write(&h, plain, ITEM_CREATE, NULL, NULL, "{\"id\":\"9\",\"pk\":\"a\"}"), E_STORE_FULL);
    assert_int_equal(harness_write(&h, plain, ITEM_REPLACE, "[\"a\"]", "1", "{\"id\":\"1\",\"pk\":\"a\"}"), E_STORE_FULL);
    assert_int_equal(harness_create_database(&h, "more", (throughput_setting){0}), E_STORE_FULL);
    assert_int_equal(harness_write(&h, plain, ITEM_DELETE, "[\"a\"]", "1", NULL), OK);
    assert_int_equal(harness_write(&h, plain, ITEM_READ, "[\"a\"]", "2", NULL), OK); /* a read within a commit */
    assert_int_equal(plain->tiles->ranges[0]->written.items, 3);
    atomic_uint in_flight = 0;
    item_sweep(harness_items(&h), plain, 100, &in_flight);
    while (in_flight) {
        usleep(50);
    }
    assert_int_equal(plain->tiles->ranges[0]->written.items, 2);                             /* the expired one was removed */
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"a\"]", "1", NULL), E_STORE_FULL); /* it keeps versions: a delete grows */
    h.plan.room = STORE_DROPS;
    assert_int_equal(harness_write(&h, plain, ITEM_DELETE, "[\"a\"]", "2", NULL), E_STORE_FULL);
    assert_int_equal(harness_write(&h, plain, ITEM_READ, "[\"a\"]", "2", NULL), OK);
    container_give(plain);
    assert_int_equal(harness_delete_container(&h, "d", "plain"), OK);
    h.plan.room = STORE_READS;
    assert_int_equal(harness_delete_database(&h, "d"), E_STORE_FULL);
    h.plan.room = STORE_DROPS;
    assert_int_equal(harness_delete_database(&h, "d"), OK);
    tear_down();
}

/* If the account cannot be loaded completely, it must not start. */
static void an_account_is_loaded_whole_or_not_at_all(void **state) {
    (void)state;
    set_up();
    container_give(c);
    c = NULL;
    unsigned *const kinds[] = {&h.plan.get_in, &h.plan.scan_in};
    for (size_t k = 0; k < 2; k++) {
        unsigned n = 1;
        for (;; n++) {
            account *again = NULL;
            char why[256] = "";
            account_options options = harness_options(&h);
            h.plan.fired = 0;
            *kinds[k] = n;
            err code = account_open(&options, &again, why, sizeof why);
            *kinds[k] = 0;
            if (!h.plan.fired) {
                assert_int_equal(code, OK);
                account_close(again);
                break;
            }
            assert_int_not_equal(code, OK);
            assert_null(again);
            assert_true(*why != 0);
        }
        assert_true(n > 3);
    }
    tear_down();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_are_whole_whatever_fails),  cmocka_unit_test(a_write_that_failed_after_the_fact_is_whole),
        cmocka_unit_test(creates_look_up_one_key),          cmocka_unit_test(a_full_disk_lets_deletes_through),
        cmocka_unit_test(a_full_disk_refuses_and_forgets),  cmocka_unit_test(reads_say_that_they_failed),
        cmocka_unit_test(changes_are_whole_whatever_fails), cmocka_unit_test(an_account_is_loaded_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
