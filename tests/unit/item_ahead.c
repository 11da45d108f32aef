/* Writes on a slow disk: workers read what the committer needs, and a large request does not hold up the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "item/index_entries.h"
#include "item_harness.h"

#define PROPERTIES "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}"

static harness h;
static container *c;

static int set_up(void **state) {
    (void)state;
    harness_open(&h);
    c = harness_container(&h, PROPERTIES, 400);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    container_give(c);
    harness_close(&h);
    return 0;
}

static const char *body_of(unsigned id, const char *pk) {
    char text[100];
    snprintf(text, sizeof text, "{\"id\":\"%u\",\"pk\":\"%s\",\"n\":%u}", id, pk, id);
    return arena_text(&h.arena, slice_str(text));
}

static item_op create_of(unsigned id, const char *pk) {
    item_op o;
    assert_int_equal(harness_prepare(&h, c, &o, ITEM_CREATE, NULL, NULL, body_of(id, pk)), OK);
    return o;
}

static void create(unsigned id, const char *pk) {
    item_op o = create_of(id, pk);
    assert_int_equal(harness_commit(&h, c, &o, 1, true), OK);
}

/* Nothing that was written so far is in memory. */
static void begin_slow(unsigned disk_ms) {
    h.plan.disk_cached = h.plan.disk_scans = true;
    h.plan.disk_held = 0;
    h.plan.disk_ms = disk_ms;
}

static void end_slow(void) {
    h.plan.disk_ms = 0;
    assert_int_equal(h.plan.disk_held, 0);
    harness_check(&h, c);
}

/* ---- local entries ---- */

static size_sum size_of(const char *pk) {
    item_op o = create_of(0, pk);
    layout_key k;
    store_value value;
    epk unused;
    slice partition;
    size_sum size;
    layout_size(&k, c->space->container, &o.key.epk, &o.key.partition);
    assert_int_equal(store_get(h.store, STORE_INDEX, NULL, layout_view(&k), &value), OK);
    assert_true(layout_size_read(layout_view(&k), value.bytes, &unused, &partition, &size));
    store_give(&value);
    return size;
}

static void fill_up_to_local(void) {
    for (unsigned i = 0; i <= LOCAL_FROM; i++) {
        create(i, "a");
    }
    assert_true(size_of("a").local_from > 0);
    assert_true(size_of("a").local == 0);
}

static void a_partition_gets_local_entries_one_write_at_a_time(void **state) {
    (void)state;
    fill_up_to_local();
    begin_slow(1);
    for (unsigned i = 0; i <= LOCAL_FROM / LOCAL_STEP; i++) {
        create(1000 + i, "a");
    }
    end_slow();
    assert_true(size_of("a").local == LOCAL_ALL);
}

/* The partition grows beyond the limit within the request. */
static void a_partition_gets_local_entries_in_one_request(void **state) {
    (void)state;
    enum { N = 100 };
    static item_op ops[N];
    for (unsigned i = 0; i < LOCAL_FROM - N / 2; i++) {
        create(i, "a");
    }
    for (unsigned i = 0; i < N; i++) {
        ops[i] = create_of(1000 + i, "a");
    }
    begin_slow(1);
    assert_int_equal(harness_commit(&h, c, ops, N, false), OK);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(ops[i].code, OK);
    }
    end_slow();
    assert_true(size_of("a").local != 0);
}

/* ---- receipts ---- */

static void a_receipt_is_read_ahead(void **state) {
    (void)state;
    begin_slow(1);
    for (int i = 0; i < 2; i++) {
        item_op o = create_of(1, "a");
        o.receipt = (item_receipt){SLICE_LIT("once"), ITEM_IMAGE_NONE};
        assert_int_equal(harness_commit(&h, c, &o, 1, false), OK);
        assert_int_equal(o.code, OK);
        assert_int_equal(o.repeated, i == 1);
    }
    end_slow();
}

/* ---- a large request ---- */

enum { LARGE = 200, LARGE_DISK_MS = 4 };

static item_op many[LARGE];
static waited_commit large;

static waited_commit commit_of(item_op *ops, size_t n) {
    waited_commit w = {.base = {.items = harness_items(&h), .container = c, .ops = ops, .n = n, .range_id = -1}};
    w.base.op = harness_op(&h);
    w.base.done = commit_is_done;
    return w;
}

/* Each operation holds the committer for a while, since there is no worker to read ahead. */
static void submit_large(void) {
    for (unsigned i = 0; i < LARGE; i++) {
        char pk[16];
        snprintf(pk, sizeof pk, "p%u", i);
        many[i] = create_of(i, arena_text(&h.arena, slice_str(pk)));
    }
    large = commit_of(many, LARGE);
    waiter_init(&large.waiter);
    h.plan.disk_cached = true;
    h.plan.disk_ms = LARGE_DISK_MS;
    assert_int_equal(item_commit_submit(&large.base), OK);
    usleep(LARGE_DISK_MS * 10 * 1000);
}

static err submit_small(void) {
    item_op one = create_of(0, "small");
    waited_commit small = commit_of(&one, 1);
    waiter_init(&small.waiter);
    assert_int_equal(item_commit_submit(&small.base), OK);
    waiter_wait(&small.waiter);
    err code = small.base.base.code != OK ? small.base.base.code : one.code;
    item_commit_give(&small.base);
    return code;
}

static void end_large(void) {
    waiter_wait(&large.waiter);
    h.plan.disk_ms = 0;
    assert_false(item_commit_is_undecided(&large.base));
}

static void a_large_request_makes_way_for_a_small_one(void **state) {
    (void)state;
    submit_large();
    assert_int_equal(submit_small(), OK);
    assert_int_not_equal(sem_trywait(&large.waiter.done), 0); /* the large one goes on */
    end_large();
    assert_int_equal(large.base.base.code, OK);
    for (unsigned i = 0; i < LARGE; i++) {
        assert_int_equal(many[i].code, OK);
        assert_true(i == 0 || many[i].range != many[i - 1].range || many[i].after.lsn > many[i - 1].after.lsn);
    }
    item_commit_give(&large.base);
    harness_check(&h, c);
}

/* The parts before the failure are written, the others are not, and each operation knows. */
static void a_part_that_fails_fails_the_rest(void **state) {
    (void)state;
    size_t written = 0;
    h.plan.write_in = 2;
    submit_large();
    (void)submit_small();
    end_large();
    assert_int_equal(h.plan.fired, 1);
    for (unsigned i = 0; i < LARGE; i++) {
        char key[16], id[16];
        snprintf(key, sizeof key, "[\"p%u\"]", i);
        snprintf(id, sizeof id, "%u", i);
        bool there = harness_read(&h, c, key, id);
        assert_int_equal(many[i].code, there ? OK : E_STORE_IO);
        written += there;
    }
    assert_true(written > 0 && written < LARGE);
    assert_false(item_commit_failed(&large.base));
    item_commit_give(&large.base);
    harness_check(&h, c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_partition_gets_local_entries_one_write_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_partition_gets_local_entries_in_one_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_receipt_is_read_ahead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_large_request_makes_way_for_a_small_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_part_that_fails_fails_the_rest, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
