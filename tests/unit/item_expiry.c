/* Expiry with a manual clock: items are hidden at once, swept later, and counted exactly; turning the ttl on and off, the backfill, and
 * sweeps that the store interrupts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"

#define KEY "\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"
#define UNIQUE ",\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]}]}"

static harness h;
static container *c;

static void start(const char *properties, uint32_t throughput) {
    harness_open(&h);
    c = harness_container(&h, properties, throughput);
}

static void find_again(void) {
    container_give(c);
    c = harness_found(&h, "d", "c");
    assert_non_null(c);
}

static void stop(void) {
    harness_check(&h, c);
    container_give(c);
    harness_close(&h);
}

static void replace(const char *properties) {
    assert_int_equal(harness_replace_container(&h, "d", "c", properties), OK);
    find_again();
}

static err put(item_kind kind, const char *id, const char *more) {
    char body[300];
    snprintf(body, sizeof body, "{\"id\":\"%s\",\"pk\":\"a\"%s}", id, more);
    return harness_write(&h, c, kind, NULL, id, body);
}

static bool there(const char *id) {
    return harness_read(&h, c, "[\"a\"]", id) != NULL;
}

static void pass(int seconds) {
    clock_manual_advance(&h.clock, (int64_t)seconds * 1000);
}

static void sweep(unsigned most) {
    atomic_uint in_flight = 0;
    item_sweep(harness_items(&h), c, most, &in_flight);
    while (in_flight) {
        usleep(50);
    }
}

/* The number of expiry entries in the store. */
static size_t hints(void) {
    layout_key from, to;
    slice key, value;
    size_t n = 0;
    layout_container(&from, c->space->container);
    to = from;
    layout_after(&to);
    store_scan *scan = store_scan_open(h.store, STORE_INDEX, NULL, layout_view(&from), layout_view(&to), false);
    while (store_scan_next(scan, &key, &value)) {
        n += key.p[4] == LAYOUT_TTL_OWN || key.p[4] == LAYOUT_TTL_DEFAULT;
    }
    assert_int_equal(store_scan_close(scan), OK);
    return n;
}

/* ---- hiding ---- */

static void the_default_ttl(void **state) {
    (void)state;
    start("{" KEY ",\"defaultTtl\":10}", 400);
    assert_int_equal(put(ITEM_CREATE, "1", ""), OK);
    pass(9);
    assert_true(there("1"));
    pass(1);
    assert_false(there("1"));
    assert_string_equal(harness_feed(&h, c, NULL, 10, 100), "");
    assert_string_equal(harness_feed(&h, c, "[\"a\"]", 10, 100), "");
    assert_int_equal(harness_count(c), 1); /* it is still stored */
    sweep(100);
    assert_int_equal(harness_count(c), 0);
    assert_int_equal(hints(), 0);
    stop();
}

static void an_items_own_ttl(void **state) {
    (void)state;
    start("{" KEY ",\"defaultTtl\":10}", 400);
    assert_int_equal(put(ITEM_CREATE, "short", ",\"ttl\":2"), OK);
    assert_int_equal(put(ITEM_CREATE, "default", ""), OK);
    assert_int_equal(put(ITEM_CREATE, "long", ",\"ttl\":100"), OK);
    assert_int_equal(put(ITEM_CREATE, "never", ",\"ttl\":-1"), OK);
    pass(2);
    sweep(100);
    assert_string_equal(harness_feed(&h, c, NULL, 10, 100), "default long never ");
    assert_int_equal(harness_count(c), 3);
    pass(8);
    sweep(100);
    assert_string_equal(harness_feed(&h, c, NULL, 10, 100), "long never ");
    pass(1000000);
    sweep(100);
    assert_string_equal(harness_feed(&h, c, NULL, 10, 100), "never ");
    assert_int_equal(harness_count(c), 1);
    stop();
}

static void minus_one_lets_items_say(void **state) {
    (void)state;
    start("{" KEY ",\"defaultTtl\":-1}", 400);
    assert_int_equal(put(ITEM_CREATE, "1", ""), OK);
    assert_int_equal(put(ITEM_CREATE, "2", ",\"ttl\":5"), OK);
    pass(100000);
    sweep(100);
    assert_string_equal(harness_feed(&h, c, NULL, 10, 100), "1 ");
    assert_int_equal(harness_count(c), 1);
    stop();
}

static void off_means_off(void **state) {
    (void)state;
    start("{" KEY "}", 400);
    assert_int_equal(put(ITEM_CREATE, "1", ",\"ttl\":1"), OK);
    pass(100000);
    sweep(100);
    assert_true(there("1"));
    assert_int_equal(hints(), 0);
    stop();
}

/* A write restarts the ttl; so does a patch, which may also set another ttl. */
static void writes_start_the_time_anew(void **state) {
    (void)state;
    start("{" KEY ",\"defaultTtl\":10}", 400);
    assert_int_equal(put(ITEM_CREATE, "1", ""), OK);
    assert_int_equal(put(ITEM_CREATE, "2", ""), OK);
    pass(8);
    assert_int_equal(put(ITEM_UPSERT, "1", ""), OK);
    assert_int_equal(harness_write(&h, c, ITEM_EDIT, "[\"a\"]", "2", "[{\"op\":\"set\",\"path\":\"/ttl\",\"value\":20}]"), OK);
    assert_int_equal(hints(), 2);
    pass(9);
    sweep(100);
    assert_true(there("1") && there("2"));
    pass(1);
    sweep(100);
    assert_false(there("1"));
    pass(10);
    sweep(100);
    assert_int_equal(harness_count(c), 0);
    assert_int_equal(hints(), 0);
    stop();
}

/* ---- replacing expired items ---- */

static void an_expired_item_makes_way(void **state) {
    (void)state;
    start("{" KEY ",\"defaultTtl\":10" UNIQUE "}", 400);
    assert_int_equal(put(ITEM_CREATE, "1", ",\"u\":1"), OK);
    assert_int_equal(put(ITEM_CREATE, "2", ",\"u\":2"), OK);
    pass(10);
    assert_int_equal(put(ITEM_REPLACE, "1", ",\"u\":1"), E_NOT_FOUND);
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"a\"]", "1", NULL), E_NOT_FOUND);
    assert_int_equal(harness_count(c), 2); /* the failed writes changed nothing */
    item_op made;
    assert_int_equal(harness_one(&h, c, &made, ITEM_UPSERT, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"u\":1}"), OK);
    assert_true(made.created);
    assert_false(made.before_there);
    assert_int_equal(put(ITEM_CREATE, "3", ",\"u\":2"), OK); /* the item with this value has expired */
    assert_int_equal(harness_count(c), 2);
    assert_string_equal(harness_feed(&h, c, NULL, 10, 100), "1 3 ");
    harness_check(&h, c);
    sweep(100);
    assert_int_equal(harness_count(c), 2);
    stop();
}

static void a_write_that_fails_leaves_the_expired_item(void **state) {
    (void)state;
    start("{" KEY ",\"defaultTtl\":-1" UNIQUE "}", 400);
    assert_int_equal(put(ITEM_CREATE, "1", ",\"u\":1,\"ttl\":5"), OK);
    assert_int_equal(put(ITEM_CREATE, "2", ",\"u\":2"), OK);
    pass(5);
    assert_int_equal(put(ITEM_CREATE, "1", ",\"u\":2"), E_UNIQUE_KEY);
    harness_check(&h, c);
    assert_int_equal(harness_count(c), 2);
    sweep(10);
    assert_int_equal(harness_count(c), 1);
    stop();
}

/* ---- sweeping ---- */

static void a_sweep_takes_no_more_than_its_share(void **state) {
    (void)state;
    start("{" KEY ",\"defaultTtl\":10}", 3000);
    for (int i = 0; i < 25; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\"%s}", i, i, i % 2 ? ",\"ttl\":3" : "");
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    }
    pass(10);
    static const uint64_t left[] = {15, 5, 0, 0};
    for (int i = 0; i < 4; i++) {
        sweep(10);
        assert_true(harness_homes() == 1 ? harness_count(c) == left[i] : harness_count(c) <= left[i]); /* the limit applies to each home */
        harness_check(&h, c);
    }
    stop();
}

/* The account's tick sweeps all containers. */
static void ticks_sweep_every_container(void **state) {
    (void)state;
    enum { CONTAINERS = 150 };
    harness_open(&h);
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    for (int i = 0; i < CONTAINERS; i++) {
        char properties[200];
        container *made;
        snprintf(properties, sizeof properties, "{\"id\":\"c%d\",\"partitionKey\":{\"paths\":[\"/pk\"]}%s}", i,
                 i % 3 ? ",\"defaultTtl\":5" : "");
        assert_int_equal(harness_create_container(&h, "d", properties, 400, &made), OK);
        assert_int_equal(harness_write(&h, made, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\"}"), OK);
        container_give(made);
    }
    pass(5);
    for (int tick = 0; tick < CONTAINERS; tick++) {
        account_tick(h.account);
        while (atomic_load(&h.account->sweeps_in_flight)) {
            usleep(50);
        }
    }
    for (int i = 0; i < CONTAINERS; i++) {
        char name[20];
        snprintf(name, sizeof name, "c%d", i);
        container *found = harness_found(&h, "d", name);
        assert_int_equal(harness_count(found), i % 3 ? 0 : 1);
        harness_check(&h, found);
        container_give(found);
    }
    harness_close(&h);
}

static void changing_the_default_moves_the_time_of_all(void **state) {
    (void)state;
    start("{" KEY ",\"defaultTtl\":1000}", 400);
    assert_int_equal(put(ITEM_CREATE, "1", ""), OK);
    pass(20);
    replace("{" KEY ",\"defaultTtl\":10}");
    assert_false(there("1"));
    replace("{" KEY ",\"defaultTtl\":1000}");
    assert_true(there("1"));
    sweep(10);
    assert_true(there("1"));
    replace("{" KEY ",\"defaultTtl\":15}");
    sweep(10);
    assert_int_equal(harness_count(c), 0);
    stop();
}

/* Sweeps remember their progress; items that expire later are found nevertheless. */
static void what_was_swept_is_not_looked_at_again(void **state) {
    (void)state;
    start("{" KEY ",\"defaultTtl\":10}", 400);
    for (int i = 0; i < 50; i++) {
        char id[20];
        snprintf(id, sizeof id, "%d", i);
        assert_int_equal(put(ITEM_CREATE, id, i % 2 ? ",\"ttl\":700" : ""), OK);
        pass(40);
        sweep(100);
    }
    assert_true(harness_part(c)->swept_own > HARNESS_START_S && harness_part(c)->swept_default > HARNESS_START_S);
    pass(1000);
    sweep(100);
    assert_int_equal(harness_count(c), 0);
    assert_int_equal(hints(), 0);
    stop();
}

/* ---- turning the ttl on ---- */

static void fill(int n) {
    for (int i = 0; i < n; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\"%s}", i, i % 20,
                 i % 10 == 9   ? ",\"ttl\":-1"
                 : i % 10 == 8 ? ",\"ttl\":50"
                               : "");
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    }
}

static bool fills(void) {
    bool any = false;
    for (size_t i = 0; i < c->space->parts_n; i++) {
        any = any || c->space->parts[i].ttl_backfill;
    }
    return any;
}

static unsigned sweep_until_filled(void) {
    unsigned sweeps = 0;
    while (fills()) {
        sweep(10);
        assert_true(++sweeps < 100);
    }
    return sweeps;
}

static void turned_on_it_holds_for_all(void **state) {
    (void)state;
    enum { N = 1300 };
    start("{" KEY "}", 3000);
    fill(N);
    pass(60);
    assert_int_equal(hints(), 0);
    replace("{" KEY ",\"defaultTtl\":1000}");
    assert_true(harness_part(c)->ttl_backfill);
    unsigned sweeps = sweep_until_filled();
    assert_in_range(sweeps, harness_homes() == 1 ? 4 : 2, 10); /* 500 items at a time, three ranges, one more sweep to see the end */
    for (int i = 0; i < 30; i++) {
        sweep(10);
    }
    assert_int_equal(harness_count(c), N - N / 10); /* those with their own ttl of 50 seconds */
    assert_int_equal(hints(), N - N / 10 * 2);
    harness_check(&h, c);
    pass(1000);
    sweep(N);
    assert_int_equal(harness_count(c), N / 10);
    assert_int_equal(hints(), 0);
    stop();
}

static void the_backfill_goes_on_after_a_restart(void **state) {
    (void)state;
    start("{" KEY "}", 2000);
    fill(1200);
    replace("{" KEY ",\"defaultTtl\":1000}");
    sweep(10);
    assert_true(harness_part(c)->ttl_backfill);
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
    assert_true(harness_part(c)->ttl_backfill);
    sweep_until_filled();
    assert_int_equal(hints(), 1200 - 120);
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
    assert_false(harness_part(c)->ttl_backfill);
    pass(1000);
    sweep(2000);
    assert_int_equal(harness_count(c), 120);
    stop();
}

static void off_and_on_again(void **state) {
    (void)state;
    start("{" KEY ",\"defaultTtl\":10}", 400);
    assert_int_equal(put(ITEM_CREATE, "1", ""), OK);
    replace("{" KEY "}");
    assert_int_equal(put(ITEM_CREATE, "2", ""), OK);
    assert_int_equal(put(ITEM_UPSERT, "1", ",\"x\":1"), OK);
    pass(100);
    sweep(10);
    assert_string_equal(harness_feed(&h, c, NULL, 10, 100), "1 2 ");
    replace("{" KEY ",\"defaultTtl\":200}");
    sweep_until_filled();
    assert_int_equal(harness_count(c), 2);
    pass(100);
    sweep(10);
    sweep(10);
    assert_int_equal(harness_count(c), 0);
    assert_int_equal(hints(), 0);
    stop();
}

/* A request that was in flight when the ttl was turned on writes with the old settings; its item must be swept nevertheless. */
static void a_write_with_the_settings_of_before(void **state) {
    (void)state;
    start("{" KEY "}", 400);
    container *before = container_take(c);
    replace("{" KEY ",\"defaultTtl\":10}");
    sweep_until_filled();
    assert_int_equal(harness_write(&h, before, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
    assert_int_equal(harness_write(&h, before, ITEM_CREATE, NULL, NULL, "{\"id\":\"2\",\"pk\":\"a\",\"ttl\":5}"), OK);
    container_give(before);
    pass(10);
    sweep(10);
    assert_int_equal(harness_count(c), 0);
    stop();
}

/* ---- a store that fails ---- */

typedef struct failing {
    const char *what;
    unsigned *in;
} failing;

static void make_expired(void) {
    start("{" KEY ",\"defaultTtl\":10" UNIQUE "}", 3000);
    for (int i = 0; i < 12; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\",\"u\":%d%s}", i, i % 5, i, i % 3 ? "" : ",\"ttl\":4");
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    }
    pass(400); /* longer than the sweep's clock slack */
}

/* Whichever store call fails, the counts agree, no item is half removed, and the next sweeps finish the work. */
static void sweeps_survive_every_failure(void **state) {
    (void)state;
    failing kinds[] = {{"get", &h.plan.get_in}, {"scan", &h.plan.scan_in}, {"write", &h.plan.write_in}};
    for (size_t k = 0; k < 3; k++) {
        unsigned n = 1;
        for (bool fired = true; fired; n++) {
            make_expired();
            *kinds[k].in = n;
            sweep(100);
            *kinds[k].in = 0;
            fired = h.plan.fired > 0;
            harness_check(&h, c);
            container_give(c);
            harness_restart(&h); /* memory and store must agree */
            c = harness_found(&h, "d", "c");
            harness_check(&h, c);
            sweep(100);
            assert_int_equal(harness_count(c), 0);
            assert_int_equal(hints(), 0);
            stop();
        }
        assert_true(n > (k == 2 ? 2 : 10));
    }
}

/* The same without a restart: a sweep must not treat work as done that was not written. */
static void a_failed_sweep_is_made_up_for(void **state) {
    (void)state;
    for (unsigned n = 1; n < 30; n++) {
        make_expired();
        h.plan.write_in = n == 1;
        h.plan.get_in = n == 1 ? 0 : n;
        sweep(100);
        h.plan.get_in = h.plan.write_in = 0;
        sweep(100);
        assert_int_equal(harness_count(c), 0);
        assert_int_equal(hints(), 0);
        stop();
    }
}

static void backfills_survive_every_failure(void **state) {
    (void)state;
    failing kinds[] = {{"get", &h.plan.get_in}, {"scan", &h.plan.scan_in}, {"write", &h.plan.write_in}};
    for (size_t k = 0; k < 3; k++) {
        bool fired = true;
        for (unsigned n = 1; fired; n += k == 1 ? 7 : 1) {
            start("{" KEY "}", 2000);
            for (int i = 0; i < 40; i++) {
                char body[64];
                snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\"}", i, i % 7);
                assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
            }
            replace("{" KEY ",\"defaultTtl\":1000}");
            *kinds[k].in = n;
            sweep_until_filled();
            *kinds[k].in = 0;
            fired = h.plan.fired > 0;
            assert_int_equal(hints(), 40);
            pass(1000);
            sweep(100);
            assert_int_equal(harness_count(c), 0);
            stop();
        }
    }
}

/* A damaged item must not prevent the others from being swept. */
static void a_damaged_item_does_not_hold_up_the_others(void **state) {
    (void)state;
    start("{" KEY ",\"defaultTtl\":10}", 400);
    item_op first;
    assert_int_equal(harness_one(&h, c, &first, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
    pass(1);
    assert_int_equal(put(ITEM_CREATE, "2", ""), OK);
    assert_int_equal(put(ITEM_CREATE, "3", ""), OK);
    store_batch b;
    layout_key k;
    store_value good;
    layout_item(&k, (item_place){c->tiles->ranges[0]->segment, first.after.number});
    assert_int_equal(store_get(h.store, STORE_ITEMS, NULL, layout_view(&k), &good), OK);
    store_batch_init(&b);
    store_put(&b, STORE_ITEMS, layout_view(&k), SLICE_LIT("rubbish"));
    assert_int_equal(store_write(h.store, &b), OK);
    pass(20);
    sweep(10);
    assert_int_equal(harness_count(c), 1);
    store_batch_clear(&b);
    store_put(&b, STORE_ITEMS, layout_view(&k), good.bytes);
    assert_int_equal(store_write(h.store, &b), OK);
    store_give(&good);
    store_batch_free(&b);
    assert_false(there("1")); /* its expiry entry is gone, but reads still find it expired */
    container_give(c);
    harness_close(&h);
}

/* ---- the last 32-bit second ---- */

/* Times are stored up to 2106: later items get the last second and never expire; sweeps do not restart from the beginning. */
static void times_end_without_harm(void **state) {
    (void)state;
    start("{" KEY ",\"defaultTtl\":100}", 400);
    int64_t last = UINT32_MAX;
    h.clock.wall_ms = (last - 50) * 1000;
    assert_int_equal(put(ITEM_CREATE, "default", ""), OK); /* expires 50 s after the last second */
    assert_int_equal(put(ITEM_CREATE, "short", ",\"ttl\":20"), OK);
    assert_int_equal(put(ITEM_CREATE, "long", ",\"ttl\":2147483647"), OK);
    sweep(100);
    assert_true(there("default") && there("short") && there("long"));
    pass(49);
    sweep(100);
    assert_true(there("default") && !there("short") && there("long"));
    pass(10); /* past the last second */
    assert_int_equal(put(ITEM_CREATE, "later", ",\"ttl\":1"), OK);
    assert_int_equal(put(ITEM_CREATE, "later still", ""), OK);
    for (int i = 0; i < 3; i++) {
        sweep(100);
        assert_true(there("default") == (i == 0));
        assert_true(there("long") && there("later") && there("later still"));
        pass(i ? 100000000 : 50);
    }
    item_found found;
    op *o = harness_op(&h);
    pkey header;
    item_key k;
    assert_int_equal(pkey_parse(o, SLICE_LIT("[\"a\"]"), &header), OK);
    assert_int_equal(item_check_key(o, c, &header, SLICE_LIT("later"), &k), OK);
    assert_int_equal(item_read(harness_items(&h), o, c, &k, &found), OK);
    assert_int_equal(found.head.ts, UINT32_MAX);
    item_give(&found);
    stop();
}

int main(void) {
    log_set_level(LOG_ERROR); /* the intended failures log warnings */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_ttl),
        cmocka_unit_test(an_items_own_ttl),
        cmocka_unit_test(minus_one_lets_items_say),
        cmocka_unit_test(off_means_off),
        cmocka_unit_test(writes_start_the_time_anew),
        cmocka_unit_test(an_expired_item_makes_way),
        cmocka_unit_test(a_write_that_fails_leaves_the_expired_item),
        cmocka_unit_test(a_sweep_takes_no_more_than_its_share),
        cmocka_unit_test(ticks_sweep_every_container),
        cmocka_unit_test(changing_the_default_moves_the_time_of_all),
        cmocka_unit_test(what_was_swept_is_not_looked_at_again),
        cmocka_unit_test(turned_on_it_holds_for_all),
        cmocka_unit_test(the_backfill_goes_on_after_a_restart),
        cmocka_unit_test(off_and_on_again),
        cmocka_unit_test(a_write_with_the_settings_of_before),
        cmocka_unit_test(sweeps_survive_every_failure),
        cmocka_unit_test(a_failed_sweep_is_made_up_for),
        cmocka_unit_test(backfills_survive_every_failure),
        cmocka_unit_test(a_damaged_item_does_not_hold_up_the_others),
        cmocka_unit_test(times_end_without_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
