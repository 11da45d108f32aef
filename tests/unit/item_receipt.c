/* Receipts: a repeated write is applied once, and gets its first outcome; across restarts, within one group, with images; until it is
 * forgotten. On the in-memory store and on RocksDB; after each test the store is checked for consistency. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "edit_samples.h"
#include "item/receipt.h"
#include "item_harness.h"

#define PROPERTIES "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}"
#define A "[\"a\"]"

static harness h;
static container *c;
static bool on_rocks;
static char *folder;

static int set_up(void **state) {
    (void)state;
    samples_register();
    folder = on_rocks ? make_folder() : NULL;
    harness_open_on(&h, on_rocks ? open_rocks(folder) : store_open_memory());
    c = harness_container(&h, PROPERTIES, 400);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    harness_check(&h, c);
    container_give(c);
    harness_close(&h);
    if (folder) {
        remove_folder(folder);
        free(folder);
    }
    return 0;
}

static void restart(void) {
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
}

static item_op counting(const char *receipt, item_image image) {
    item_op o;
    assert_int_equal(harness_prepare(&h, c, &o, ITEM_DELETE, A, "1", NULL), OK); /* only to make the key */
    o.kind = ITEM_EDIT;
    o.edit = (item_edit){.kind = EDIT_COUNTER, .argument = harness_bson(&h, "{\"by\":1}")};
    o.receipt = (item_receipt){slice_str(receipt), image};
    return o;
}

static item_op count_once(const char *receipt) {
    item_op o = counting(receipt, ITEM_IMAGE_NONE);
    assert_int_equal(harness_commit(&h, c, &o, 1, true), OK);
    return o;
}

static long count_now(void) {
    item_op o;
    assert_int_equal(harness_one(&h, c, &o, ITEM_READ, A, "1", NULL), OK);
    return (long)sample_number(o.result, "n", -1);
}

static void a_repetition_changes_nothing(void **state) {
    (void)state;
    item_op first = count_once("s1"), again = count_once("s1");
    assert_false(first.repeated);
    assert_true(first.created);
    assert_true(again.repeated && again.created && !again.deleted);
    assert_int_equal(sample_number(again.reply, "n", -1), 1);
    assert_int_equal(count_now(), 1);
    item_op other = count_once("s2");
    assert_true(!other.repeated && !other.created);
    assert_int_equal(count_now(), 2);
}

static void a_repetition_after_a_restart(void **state) {
    (void)state;
    count_once("s1");
    restart();
    assert_true(count_once("s1").repeated);
    assert_int_equal(count_now(), 1);
}

static void repetitions_in_one_commit(void **state) {
    (void)state;
    item_op ops[] = {counting("s1", ITEM_IMAGE_NONE), counting("s1", ITEM_IMAGE_NONE), counting("s2", ITEM_IMAGE_NONE)};
    assert_int_equal(harness_commit(&h, c, ops, 3, false), OK);
    assert_true(!ops[0].repeated && ops[1].repeated && !ops[2].repeated);
    assert_int_equal(count_now(), 2);
}

static void images_are_those_of_the_first_time(void **state) {
    (void)state;
    count_once("");
    item_op before = counting("s1", ITEM_IMAGE_BEFORE), after = counting("s2", ITEM_IMAGE_AFTER);
    assert_int_equal(harness_commit(&h, c, &before, 1, true), OK);
    assert_int_equal(harness_commit(&h, c, &after, 1, true), OK);
    count_once("");
    before = counting("s1", ITEM_IMAGE_BEFORE);
    after = counting("s2", ITEM_IMAGE_AFTER);
    assert_int_equal(harness_commit(&h, c, &before, 1, true), OK);
    assert_int_equal(harness_commit(&h, c, &after, 1, true), OK);
    assert_true(before.repeated && after.repeated);
    assert_int_equal(sample_number(before.before_body, "n", -1), 1);
    assert_int_equal(sample_number(after.result, "n", -1), 3);
    assert_int_equal(count_now(), 4);
}

static void a_repeated_create_is_no_conflict(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        item_op o;
        assert_int_equal(harness_prepare(&h, c, &o, ITEM_CREATE, NULL, NULL, "{\"id\":\"x\",\"pk\":\"a\"}"), OK);
        o.receipt.key = slice_str("s1");
        assert_int_equal(harness_commit(&h, c, &o, 1, false), OK);
        assert_int_equal(o.code, OK);
        assert_int_equal(o.repeated, i == 1);
        assert_true(o.created);
    }
    assert_int_equal(harness_count(c), 1);
}

static void a_repeated_delete_spares_the_next_item(void **state) {
    (void)state;
    const char *text = "{\"id\":\"x\",\"pk\":\"a\"}";
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, text), OK);
    for (int i = 0; i < 2; i++) {
        item_op o;
        assert_int_equal(harness_prepare(&h, c, &o, ITEM_DELETE, A, "x", NULL), OK);
        o.receipt.key = slice_str("s1");
        assert_int_equal(harness_commit(&h, c, &o, 1, true), OK);
        assert_int_equal(o.repeated, i == 1);
        assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, text), OK);
    }
    assert_int_equal(harness_count(c), 1);
}

static void what_changed_nothing_leaves_no_receipt(void **state) {
    (void)state;
    item_op o;
    assert_int_equal(harness_prepare(&h, c, &o, ITEM_DELETE, A, "1", NULL), OK);
    o.receipt.key = slice_str("s1");
    assert_int_equal(harness_commit(&h, c, &o, 1, true), E_NOT_FOUND);
    assert_false(count_once("s1").repeated); /* the failed delete took nothing from it */
    item_op left = counting("s2", ITEM_IMAGE_NONE);
    left.edit = (item_edit){.kind = EDIT_SWAP, .argument = harness_bson(&h, "{\"expected\":77,\"value\":2}")};
    assert_int_equal(harness_commit(&h, c, &left, 1, true), OK);
    assert_true(left.left);
    assert_false(count_once("s2").repeated);
}

static void receipts_are_read_outside_a_commit(void **state) {
    (void)state;
    item_receipt_found found;
    assert_int_equal(item_receipt_read(harness_items(&h), harness_op(&h), c, slice_str("s1"), &found), E_NOT_FOUND);
    item_op o = counting("s1", ITEM_IMAGE_AFTER);
    assert_int_equal(harness_commit(&h, c, &o, 1, true), OK);
    assert_int_equal(item_receipt_read(harness_items(&h), harness_op(&h), c, slice_str("s1"), &found), OK);
    assert_true(found.created && !found.deleted && found.image == ITEM_IMAGE_AFTER);
    assert_int_equal(sample_number(found.body, "n", -1), 1);
    assert_int_equal(sample_number(found.reply, "n", -1), 1);
}

static size_t receipts_kept(void) {
    slice key, value;
    size_t n = 0;
    static const char from[] = {0, 0, 0, 0, LAYOUT_RECEIPT}, to[] = {0, 0, 0, 0, LAYOUT_RECEIPT + 1};
    store_scan *scan = store_scan_open(h.store, STORE_INDEX, NULL, slice_of(from, 5), slice_of(to, 5), false);
    while (store_scan_next(scan, &key, &value)) {
        n++;
    }
    assert_int_equal(store_scan_close(scan), OK);
    return n;
}

static void receipts_are_forgotten(void **state) {
    (void)state;
    count_once("s1");
    clock_manual_advance(&h.clock, INT64_C(1000) * ITEM_RECEIPT_PERIOD_S);
    assert_true(count_once("s1").repeated); /* half an hour later it still holds */
    count_once("s2");
    clock_manual_advance(&h.clock, INT64_C(1000) * ITEM_RECEIPT_PERIOD_S);
    assert_false(count_once("s1").repeated); /* after two periods it does not */
    assert_true(count_once("s2").repeated);
    assert_int_equal(receipts_kept(), 2);
    assert_int_equal(count_now(), 3);
}

static void a_receipt_belongs_to_its_container(void **state) {
    (void)state;
    count_once("s1");
    assert_int_equal(harness_delete_container(&h, "d", "c"), OK);
    container_give(c);
    c = harness_container(&h, PROPERTIES, 400);
    assert_false(count_once("s1").repeated);
}

/* Commits, while the store fails as planned; then the server is restarted, and the client repeats. */
static void count_despite(store_fault_plan plan, const char *receipt) {
    h.plan = plan;
    item_op o = counting(receipt, ITEM_IMAGE_NONE);
    (void)harness_commit(&h, c, &o, 1, true);
    h.plan = (store_fault_plan){0};
    restart();
    count_once(receipt);
}

static void whatever_fails_it_is_counted_once(void **state) {
    (void)state;
    long expected = 0;
    for (unsigned n = 1; n < 8; n++) {
        char receipt[3][16];
        for (int i = 0; i < 3; i++) {
            snprintf(receipt[i], sizeof receipt[i], "%d.%u", i, n);
        }
        count_despite((store_fault_plan){.code = E_STORE_IO, .get_in = n}, receipt[0]);
        count_despite((store_fault_plan){.code = E_STORE_IO, .write_in = 1}, receipt[1]);
        count_despite((store_fault_plan){.code = E_STORE_IO, .write_in = 1, .torn = true}, receipt[2]); /* written, but not acknowledged */
        expected += 3;
        assert_int_equal(count_now(), expected);
    }
}

int main(void) {
#define ONE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ONE(a_repetition_changes_nothing),           ONE(a_repetition_after_a_restart),       ONE(repetitions_in_one_commit),
        ONE(images_are_those_of_the_first_time),     ONE(a_repeated_create_is_no_conflict),   ONE(a_repeated_delete_spares_the_next_item),
        ONE(what_changed_nothing_leaves_no_receipt), ONE(receipts_are_read_outside_a_commit), ONE(receipts_are_forgotten),
        ONE(a_receipt_belongs_to_its_container),     ONE(whatever_fails_it_is_counted_once),
    };
    int failed = cmocka_run_group_tests_name("memory", tests, NULL, NULL);
    on_rocks = true;
    return failed + cmocka_run_group_tests_name("rocks", tests, NULL, NULL);
}
