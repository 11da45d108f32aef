/* The largest logical partitions: all of them known after seeding, with exact sizes whatever failed meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item/hot.h"
#include "item_harness.h"

#define PLAIN "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}"
#define LEVELS "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\",\"/n\"],\"kind\":\"MultiHash\",\"version\":2}}"

static harness h;
static container *c;

static int start(void **state) {
    (void)state;
    harness_open(&h);
    c = harness_container(&h, PLAIN, 400);
    return 0;
}

static int stop(void **state) {
    (void)state;
    container_give(c);
    harness_close(&h);
    return 0;
}

static void restart(void) {
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
}

static void put(unsigned partition, unsigned padding) {
    char body[2000];
    snprintf(body, sizeof body, "{\"id\":\"i\",\"pk\":\"p%u\",\"n\":%u,\"x\":\"%0*d\"}", partition, partition, (int)padding + 1, 0);
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, body), OK);
}

static container_range *range(void) {
    return c->space->newest->ranges[0];
}

static size_t sizes(hot_size top[HOTKEYS_TOP]) {
    size_t n;
    assert_int_equal(item_hot_sizes(c, 0, top, &n), OK);
    return n;
}

static void seed(void) {
    hot_seeding seeding = {0};
    bool ended = false;
    while (!ended) { /* the manual clock stands still, so each call stops at its first look at it */
        assert_int_equal(item_hot_seed(harness_items(&h), c, 0, &seeding, 0, &ended), OK);
    }
}

static void assert_text(const hot_size *found, const char *text) {
    assert_int_equal(found->key.text_n, strlen(text));
    assert_memory_equal(found->key.text, text, strlen(text));
}

static void writes_are_seen_at_once(void **state) {
    hot_size top[HOTKEYS_TOP];
    (void)state;
    put(1, 100);
    put(2, 300);
    assert_int_equal(sizes(top), 2);
    assert_text(&top[0], "[\"p2\"]");
    assert_true(top[0].exact);
    assert_int_equal(top[0].size.items, 1);
    assert_int_equal(top[0].size.bytes + top[1].size.bytes, atomic_load(&range()->bytes));
    assert_int_equal(top[0].size.index_bytes + top[1].size.index_bytes, atomic_load(&range()->index_bytes));
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"p2\"]", "i", NULL), OK);
    assert_int_equal(sizes(top), 1);
    assert_text(&top[0], "[\"p1\"]");
}

static void what_was_written_before_a_restart_is_seeded(void **state) {
    hot_size top[HOTKEYS_TOP];
    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        put(i, i % 500);
    }
    restart();
    assert_int_equal(sizes(top), 0);
    assert_false(item_hot_sizes_known(c, 0));
    seed();
    assert_true(item_hot_sizes_known(c, 0));
    assert_int_equal(sizes(top), HOTKEYS_TOP);
    for (unsigned i = 0; i < HOTKEYS_TOP; i++) {
        char a[32], b[32];
        snprintf(a, sizeof a, "[\"p%u\"]", 499 - i / 2);
        snprintf(b, sizeof b, "[\"p%u\"]", 999 - i / 2);
        slice text = slice_of(top[i].key.text, top[i].key.text_n);
        assert_true(slice_eq(text, slice_str(a)) || slice_eq(text, slice_str(b)));
    }
}

/* A failed batch must not be shown: neither a size that is too large nor a partition that was never created. */
static void failed_writes_are_not_shown(void **state) {
    hot_size top[HOTKEYS_TOP];
    item_op *ops = arena_array(&h.arena, item_op, 2);
    (void)state;
    put(1, 10);
    uint64_t before = atomic_load(&range()->bytes);
    for (unsigned p = 1; p <= 2; p++) {
        char key[32], big[1200];
        snprintf(key, sizeof key, "[\"p%u\"]", p);
        snprintf(big, sizeof big, "{\"id\":\"big\",\"pk\":\"p%u\",\"x\":\"%01000d\"}", p, 0);
        assert_int_equal(harness_prepare(&h, c, &ops[0], ITEM_CREATE, key, NULL, big), OK);
        assert_int_equal(harness_prepare(&h, c, &ops[1], ITEM_DELETE, key, "nobody", NULL), OK);
        assert_int_equal(harness_commit(&h, c, ops, 2, true), E_NOT_FOUND);
    }
    assert_int_equal(sizes(top), 1);
    assert_text(&top[0], "[\"p1\"]");
    assert_int_equal(top[0].size.bytes, before);
}

static void hierarchical_keys_have_all_their_levels(void **state) {
    hot_size top[HOTKEYS_TOP];
    (void)state;
    container_give(c);
    assert_int_equal(harness_delete_container(&h, "d", "c"), OK);
    c = harness_container(&h, LEVELS, 400);
    put(7, 50);
    restart();
    seed();
    assert_int_equal(sizes(top), 1);
    assert_text(&top[0], "[\"p7\",7]");
    assert_true(top[0].exact);
    assert_int_equal(top[0].size.items, 1);
}

/* A key that the sketch truncated cannot be looked up: it is shown with the size of its last write. */
static void long_keys_are_cut(void **state) {
    hot_size top[HOTKEYS_TOP];
    char body[400];
    (void)state;
    snprintf(body, sizeof body, "{\"id\":\"i\",\"pk\":\"%0200d\"}", 0);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    assert_int_equal(sizes(top), 1);
    assert_false(top[0].exact);
    assert_int_equal(top[0].key.text_n, HOTKEY_TEXT_MAX);
    assert_int_equal(top[0].size.bytes, atomic_load(&range()->bytes));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_are_seen_at_once, start, stop),
        cmocka_unit_test_setup_teardown(what_was_written_before_a_restart_is_seeded, start, stop),
        cmocka_unit_test_setup_teardown(failed_writes_are_not_shown, start, stop),
        cmocka_unit_test_setup_teardown(hierarchical_keys_have_all_their_levels, start, stop),
        cmocka_unit_test_setup_teardown(long_keys_are_cut, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
