/* Splits and merges: where they cut, their counts, what moves, and what remains of the ranges that they replace. */
#include "account_reshape_harness.h"

/* ---- cuts ---- */

static void in_the_middle_of_the_data(void **state) {
    (void)state;
    start(PLAIN, 400, quiet);
    for (int i = 0; i < 200; i++) {
        put(i, i, i < 20 ? 9000 : 10); /* 20 of the keys hold most of the data */
    }
    uint64_t all = atomic_load(&range_at(0)->bytes);
    assert_int_equal(split(0, 2), OK);
    assert_int_equal(ranges(), 2);
    uint64_t left = atomic_load(&range_at(0)->bytes), right = atomic_load(&range_at(1)->bytes);
    assert_int_equal(left + right, all);
    assert_true(left < right ? right - left < 10000 : left - right < 10000);
    assert_int_equal(range_at(0)->id, 1);
    assert_int_equal(range_at(1)->id, 2);
    harness_check(&h, c);
    assert_int_equal(split(1, 5), OK);
    assert_int_equal(ranges(), 6);
    stop();
}

static void blindly_where_there_is_none(void **state) {
    (void)state;
    start(PLAIN, 400, quiet);
    assert_int_equal(split(0, 4), OK);
    assert_int_equal(ranges(), 4);
    char text[64] = "";
    buf b = {.p = text, .cap = sizeof text, .max = sizeof text};
    epk_write(&b, &c->tiles->map->ranges[2].min);
    assert_string_equal(text, "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
    put(1, 1, 10);
    stop();
}

static void one_partition_is_not_cut(void **state) {
    (void)state;
    account_rules rules = quiet;
    rules.range_bytes = 20000;
    start(PLAIN, 400, rules);
    for (int i = 0; i < 30; i++) {
        put(7, i, 1000);
    }
    account_balance(h.account, 0);
    assert_int_equal(ranges(), 1);
    put(8, 100, 10);
    account_balance(h.account, 0);
    assert_int_equal(ranges(), 2); /* now there are keys to divide */
    account_balance(h.account, 0);
    assert_int_equal(ranges(), 2);
    stop();
}

/* Two keys of a V1 container with colliding hashes differ only in their text; there is no cut between equal EPKs. */
static void ranges_that_cannot_be_cut_are_left_alone(void **state) {
    (void)state;
    start("{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\"}}", 400,
          (account_rules){.no_merges = true, .range_bytes = 3000});
    char body[400], longest[160];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    for (int i = 0; i < 20; i++) { /* V1 hashes only the first hundred characters */
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"%s%d\"}", i, longest, i % 2);
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    }
    account_balance(h.account, 0);
    assert_int_equal(ranges(), 1);
    assert_int_equal(atomic_load(&range_at(0)->uncut), 2);
    offer_replacement more = {.offer = rid_offer(1), .throughput = {.kind = THROUGHPUT_MANUAL, .value = 1000000}};
    assert_int_equal(harness_change(&h, &more, account_replace_offer), OK);
    h.account->rules.range_throughput = 500000; /* throughput needs two ranges; all the data may stay in one */
    account_balance(h.account, 0);
    renew();
    assert_int_equal(ranges(), 2);
    assert_int_equal(atomic_load(&range_at(0)->items) + atomic_load(&range_at(1)->items), 20);
    stop();
}

/* Partitions with equal hashes count as one: a cut is possible after them. */
static void cut_behind_keys_that_are_alike(void **state) {
    (void)state;
    start("{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\"}}", 400, quiet);
    char body[400], longest[160];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"%s%d\"}", i, longest, i % 2);
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    }
    for (int i = 0; i < 8; i++) { /* before and after them */
        put(i, i, 10);
    }
    assert_int_equal(split(0, 2), OK);
    assert_true(atomic_load(&range_at(0)->items) > 0 && atomic_load(&range_at(1)->items) > 0);
    stop();
}

/* V1 and V2 ranges alike: empty ranges are cut into equal widths, and several are merged at once. */
static void evenly_without_data(const char *properties) {
    start(properties, 2000, (account_rules){.range_throughput = 1000});
    assert_int_equal(ranges(), 2);
    offer_replacement more = {.offer = rid_offer(1), .throughput = {.kind = THROUGHPUT_MANUAL, .value = 12000}};
    assert_int_equal(harness_change(&h, &more, account_replace_offer), OK);
    account_balance(h.account, 0);
    renew();
    assert_int_equal(ranges(), 12);
    for (size_t i = 0; i < 12; i++) {
        const partition_range *range = &c->tiles->map->ranges[i];
        double width = epk_position(&c->key, &range->max) - epk_position(&c->key, &range->min);
        assert_true(width > 0.08 && width < 0.09);
    }
    offer_replacement less = {.offer = rid_offer(1), .throughput = {.kind = THROUGHPUT_MANUAL, .value = 400}};
    assert_int_equal(harness_change(&h, &less, account_replace_offer), OK);
    account_balance(h.account, 0);
    renew();
    assert_int_equal(ranges(), harness_homes()); /* ranges in different stores are not merged */
    account_event newest;
    assert_int_equal(account_events(h.account, &newest, 1), 1);
    assert_int_equal(newest.before_n, 12 / harness_homes());
    stop();
}

/* ---- duration ---- */

static const store_ops *quick;
static store_ops slow;

static err write_slowly(store *s, const store_batch *batch) {
    clock_manual_advance(&h.clock, 7);
    return quick->write(s, batch);
}

/* The duration includes the write of the map, in memory and, after a restart, in the store. */
static void an_event_counts_its_write(void **state) {
    (void)state;
    account_event event;
    start(PLAIN, 1000, quiet);
    for (int i = 0; i < 20; i++) {
        put(i, i, 10);
    }
    quick = h.homes[0]->ops;
    slow = *quick;
    slow.write = write_slowly;
    size_t writes = range_at(0)->home->number ? 3 : 1; /* in a home other than the first: segments, ranges, the container's record */
    for (int merges = 0; merges < 2; merges++) {
        for (size_t i = 0; i < h.homes_n; i++) {
            h.homes[i]->ops = &slow;
        }
        assert_int_equal(merges ? merge(0) : split(range_at(0)->id, 2), OK);
        for (size_t i = 0; i < h.homes_n; i++) {
            h.homes[i]->ops = quick;
        }
        for (int again = 0; again < 2; again++) {
            assert_int_equal(account_events(h.account, &event, 1), 1);
            assert_int_equal(event.after_n, merges ? 1 : 2);
            assert_int_equal(event.took_us, 7000 * writes);
            restart();
        }
    }
    stop();
}

static partition_status status_of(const container *of, size_t position) {
    range_info info;
    assert_true(range_info_at(of, position, &info));
    return info.range.status;
}

static partition_status seen[2];

static err write_and_look(store *s, const store_batch *batch) {
    for (size_t i = 0; i < 2; i++) {
        seen[i] = status_of(c, i);
    }
    return quick->write(s, batch);
}

static void a_range_that_is_being_split_says_so(void **state) {
    (void)state;
    start(PLAIN, 2000, (account_rules){.range_throughput = 1000, .no_merges = true});
    for (int i = 0; i < 20; i++) {
        put(i, i, 10);
    }
    renew();
    quick = h.homes[0]->ops;
    slow = *quick;
    slow.write = write_and_look;
    for (size_t i = 0; i < h.homes_n; i++) {
        h.homes[i]->ops = &slow;
    }
    assert_int_equal(split(range_at(0)->id, 2), OK);
    assert_int_equal(seen[0], PARTITION_SPLITTING);
    assert_int_equal(seen[1], PARTITION_ONLINE);
    for (size_t i = 0; i < h.homes_n; i++) {
        h.homes[i]->ops = quick;
    }
    assert_int_equal(split(range_at(0)->id, 1000), E_BAD_REQUEST);
    renew();
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(status_of(c, i), PARTITION_ONLINE);
    }
    stop();
}

static void empty_ranges_are_cut_evenly_and_merged_at_once(void **state) {
    (void)state;
    evenly_without_data(PLAIN);
    evenly_without_data("{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\"}}");
}

/* ---- continuity ---- */

static void tokens_and_numbers_go_on(void **state) {
    (void)state;
    start(UNIQUE, 400, quiet);
    for (int i = 0; i < 40; i++) {
        put(i % 8, i, 10);
    }
    uint64_t lsn = atomic_load(&range_at(0)->lsn);
    assert_int_equal(split(0, 2), OK);
    assert_int_equal(atomic_load(&range_at(0)->lsn), lsn);
    assert_int_equal(atomic_load(&range_at(1)->lsn), lsn);
    const char *before = harness_feed(&h, c, NULL, 7, 1000);
    for (int i = 40; i < 60; i++) {
        put(i % 8, i, 10);
    }
    uint64_t left = atomic_load(&range_at(0)->lsn), right = atomic_load(&range_at(1)->lsn);
    assert_int_equal(left + right, 2 * lsn + 20);
    assert_int_equal(merge(0), OK);
    assert_int_equal(ranges(), 1);
    assert_int_equal(atomic_load(&range_at(0)->lsn), left > right ? left : right);
    assert_int_equal(range_at(0)->id, 3);
    assert_int_equal(c->tiles->map->ranges[0].parents_n, 3);
    assert_int_equal(strlen(harness_feed(&h, c, NULL, 7, 1000)), strlen(before) + 3 * 20);
    restart();
    harness_check(&h, c);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"x\",\"pk\":\"p1\",\"u\":1}"), E_UNIQUE_KEY);
    stop();
}

static void the_smaller_part_moves(void **state) {
    (void)state;
    start(UNIQUE, 400, quiet);
    for (int i = 0; i < 300; i++) {
        put(i % 30, i, 10);
    }
    assert_int_equal(split(0, 3), OK);
    assert_int_equal(sources(), 6);
    harness_check(&h, c);
    const char *feed = harness_feed(&h, c, NULL, 11, 1000);
    for (int i = 300; i < 330; i++) { /* writes during the move */
        put(i % 30, i, 10);
    }
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"p5\"]", "5", NULL), OK);
    account_balance(h.account, 1); /* about one step */
    harness_check(&h, c);
    restart(); /* the move continues after a restart */
    move_all();
    assert_int_equal(sources(), 4); /* one keeps the old segment, which no other uses */
    harness_check(&h, c);
    assert_int_equal(strlen(harness_feed(&h, c, NULL, 11, 1000)), strlen(feed) + 4 * 30 - 2);
    for (int i = 0; i < 330; i++) {
        char key[16], id[16];
        snprintf(key, sizeof key, "[\"p%d\"]", i % 30);
        snprintf(id, sizeof id, "%d", i);
        assert_int_equal(harness_read(&h, c, key, id) != NULL, i != 5);
    }
    stop();
}

/* If ranges are merged back at once, the merged range keeps their segment: nothing has to move. */
static void merged_back_at_once_nothing_moves(void **state) {
    (void)state;
    start(UNIQUE, 400, quiet);
    for (int i = 0; i < 40; i++) {
        put(i % 8, i, 10);
    }
    uint32_t segment = range_at(0)->segment;
    assert_int_equal(split(0, 3), OK);
    assert_int_equal(merge(1), OK);
    assert_int_equal(merge(0), OK);
    move_all();
    assert_int_equal(ranges(), 1);
    assert_int_equal(c->tiles->sources[0].list[0].segment, segment);
    layout_key k;
    slice key, value;
    size_t n = 0;
    layout_segment(&k, segment);
    store_scan *scan = store_scan_open(h.store, STORE_ITEMS, NULL, layout_view(&k), SLICE_EMPTY, false);
    while (store_scan_next(scan, &key, &value) && memcmp(key.p, k.bytes, k.n) == 0) {
        n++;
    }
    assert_int_equal(store_scan_close(scan), OK);
    assert_int_equal(n, 40);
    stop();
}

/* Splits for throughput go on, since they write next to nothing. */
static void nothing_moves_while_the_disk_is_behind(void **state) {
    (void)state;
    start(UNIQUE, 400, quiet);
    for (int i = 0; i < 300; i++) {
        put(i % 30, i, 10);
    }
    h.plan.behind = true;
    assert_int_equal(split(0, 3), OK);
    size_t before = sources();
    for (int i = 0; i < 3; i++) {
        assert_false(account_balance(h.account, 1000)); /* it does not wait for the disk either */
    }
    assert_int_equal(sources(), before);
    harness_check(&h, c);
    h.plan.behind = false;
    move_all();
    assert_int_equal(sources(), 4);
    harness_check(&h, c);
    stop();
}

/* A range is split during its move: its parts leave the segment too, wherever the move was. */
static void split_while_moving(void **state) {
    (void)state;
    start(UNIQUE, 400, quiet);
    for (int i = 0; i < 900; i++) {
        put(i % 30, i, 10);
    }
    assert_int_equal(split(0, 2), OK);
    account_balance(h.account, 1);
    bool left_is_moving = c->space->newest->sources[0].list[0].leaving;
    assert_true(left_is_moving || c->space->newest->sources[1].list[0].leaving);
    assert_int_equal(split(range_at(left_is_moving ? 0 : 1)->id, 3), OK);
    harness_check(&h, c);
    account_balance(h.account, 1);
    assert_int_equal(merge(1), OK);
    harness_check(&h, c);
    move_all();
    for (size_t i = 0; i < ranges(); i++) {
        for (size_t j = 0; j < c->tiles->sources[i].n; j++) {
            assert_false(c->tiles->sources[i].list[j].shared || c->tiles->sources[i].list[j].leaving);
        }
    }
    stop();
}

/* The few items to move come after many that stay: the move continues where it was, also after a restart. */
static void a_move_through_many_that_stay(void **state) {
    (void)state;
    start(PLAIN, 400, quiet);
    for (int i = 0; i < 2500; i++) {
        put(0, i, 1);
    }
    for (int i = 2500; i < 2510; i++) {
        put(1, i, 1);
    }
    assert_int_equal(split(0, 2), OK);
    int steps = 0;
    for (; steps < 20 && sources() > 3; steps++) {
        account_balance(h.account, 1);
        restart();
    }
    assert_in_range(steps, 2, 10);
    stop();
}

/* Expiry: a hint moves with its item, and a sweep submitted with old tiles counts in the new ones. */
static size_t hints(void) {
    size_t n = 0;
    layout_key from, to;
    slice key, value;
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

static void sweep(container *with) {
    atomic_uint in_flight = 0;
    item_sweep(harness_items(&h), with, 1000, &in_flight);
    while (atomic_load(&in_flight)) {
        usleep(100);
    }
}

static void expiry_of_what_moves(void **state) {
    (void)state;
    start("{\"id\":\"c\"," KEY ",\"defaultTtl\":100}", 400, quiet);
    for (int i = 0; i < 60; i++) {
        put(i % 10, i, 10);
    }
    assert_int_equal(hints(), 60);
    container *before = container_take(c);
    assert_int_equal(split(0, 2), OK);
    account_balance(h.account, 1);
    assert_int_equal(hints(), 60);
    assert_int_equal(split(range_at(1)->id, 2), OK);
    move_all();
    assert_int_equal(hints(), 60);
    clock_manual_advance(&h.clock, 50000);
    for (int i = 0; i < 20; i++) {
        put(i % 10, i, 10);
    }
    clock_manual_advance(&h.clock, 60000);
    sweep(before);
    container_give(before);
    assert_int_equal(harness_count(c), 20);
    assert_int_equal(hints(), 20);
    harness_check(&h, c);
    restart();
    assert_int_equal(harness_count(c), 20);
    stop();
}

/* ---- automatic splits and merges ---- */

static err set_throughput(uint32_t value) {
    offer_replacement change = {.offer = rid_offer(1), .throughput = {.kind = THROUGHPUT_MANUAL, .value = value}};
    return harness_change(&h, &change, account_replace_offer);
}

static void throughput_up_and_down(void **state) {
    (void)state;
    start(PLAIN, 1000, (account_rules){.range_throughput = 1000});
    for (int i = 0; i < 500; i++) {
        put(i, i, 20);
    }
    static const struct {
        uint32_t throughput;
        size_t n;
    } steps[] = {{1000, 1}, {4000, 4}, {4500, 5}, {10000, 10}, {3000, 10}, {2900, 9}, {400, 1}, {20000, 20}, {5000, 16}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_int_equal(set_throughput(steps[i].throughput), OK);
        account_balance(h.account, 0);
        renew();
        assert_int_equal(ranges(), steps[i].n);
        harness_check(&h, c);
        assert_int_equal(harness_count(c), 500);
    }
    move_all();
    harness_check(&h, c);
    restart();
    assert_int_equal(ranges(), 16);
    account_event events[100];
    size_t n = account_events(h.account, events, 100);
    assert_true(n > 10 && events[n - 1].reason == PLAN_THROUGHPUT && events[n - 1].before_n == 1 && events[n - 1].after_n == 4);
    stop();
}

static void storage_splits(void **state) {
    (void)state;
    start(PLAIN, 400, (account_rules){.range_bytes = 50000, .partition_bytes = 20000});
    for (int i = 0; i < 400; i++) {
        put(i % 40, i, 500);
        if (i % 10 == 0) {
            account_balance(h.account, 0);
            renew();
        }
    }
    assert_in_range(ranges(), 5, 16);
    for (size_t i = 0; i < ranges(); i++) {
        assert_true(atomic_load(&range_at(i)->bytes) < 60000);
    }
    stop();
}

static void a_full_partition_takes_no_more(void **state) {
    (void)state;
    start(PLAIN, 400, (account_rules){.partition_bytes = 10000, .no_merges = true});
    int n = 0;
    char body[1200];
    err code = OK;
    for (; code == OK; n++) {
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"a\",\"x\":\"%0900d\"}", n, 0);
        code = harness_write(&h, c, ITEM_CREATE, NULL, NULL, body);
    }
    assert_int_equal(code, E_PARTITION_FULL);
    assert_int_equal(n - 1, 10);
    restart(); /* still full */
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), E_PARTITION_FULL);
    item_op o;
    assert_int_equal(harness_one(&h, c, &o, ITEM_UPSERT, NULL, NULL, body), E_PARTITION_FULL);
    assert_string_equal(o.op.detail,
                        "Partition key reached maximum size of 9.8 KB. Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk");
    assert_int_equal(harness_write(&h, c, ITEM_REPLACE, NULL, "3", "{\"id\":\"3\",\"pk\":\"a\"}"), OK); /* smaller than before */
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"x\",\"pk\":\"b\"}"), OK); /* another partition */
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"small\",\"pk\":\"a\"}"), OK);
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"a\"]", "4", NULL), OK);
    assert_non_null(harness_read(&h, c, "[\"a\"]", "5"));
    stop();
}

static void a_fixed_container_has_an_end(void **state) {
    (void)state;
    start("{\"id\":\"c\"}", 400, (account_rules){.fixed_bytes = 1000});
    char body[700];
    snprintf(body, sizeof body, "{\"id\":\"a\",\"x\":\"%0600d\"}", 0);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    body[7] = 'b';
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), E_CONTAINER_FULL);
    assert_int_equal(split(0, 2), E_BAD_REQUEST);
    stop();
}

/* ---- history of replaced ranges ---- */

static uint64_t requests_in_history(void) {
    meter_sample samples[120];
    uint64_t requests = 0;
    report_history(c, REPORT_ALL_RANGES, false, clock_wall_ms(h.account->items.clock) / 1000 - 60, samples, 120);
    for (size_t i = 0; i < 120; i++) {
        requests += samples[i].requests;
    }
    return requests;
}

static size_t hot_keys(void) {
    hotkey top[HOTKEYS_TOP];
    size_t n = 0;
    for (size_t i = 0; i < ranges(); i++) {
        hotkeys *hot = atomic_load(&range_at(i)->hotkeys);
        n += hot ? hotkeys_top_by_ru(hot, clock_monotonic_us(h.account->items.clock) * 1000, top) : 0;
    }
    return n;
}

static void history_and_hot_keys_outlive_a_split(void **state) {
    (void)state;
    start(PLAIN, 400, quiet);
    for (int i = 0; i < 10; i++) {
        put(i, i, 10);
    }
    account_balance(h.account, 0);
    uint64_t before = requests_in_history();
    size_t hot = hot_keys();
    assert_int_equal(before, 10);
    assert_int_equal(hot, 10);
    assert_int_equal(split(0, 3), OK);
    assert_int_equal(requests_in_history(), before);
    assert_int_equal(hot_keys(), hot);
    assert_int_equal(merge(0), OK);
    assert_int_equal(requests_in_history(), before);
    assert_int_equal(hot_keys(), hot);
    stop();
}

static plan_reason last_reason(void) {
    account_event newest;
    assert_int_equal(account_events(h.account, &newest, 1), 1);
    return newest.reason;
}

static void a_merge_that_undoes_a_command_says_so(void **state) {
    (void)state;
    start(PLAIN, 400, (account_rules){0});
    put(1, 1, 10);
    put(2, 2, 10);
    assert_int_equal(split(0, 2), OK);
    assert_int_equal(last_reason(), PLAN_COMMAND);
    atomic_store(&c->space->merges_after_us, 0); /* five minutes later */
    account_balance(h.account, 0);
    renew();
    assert_int_equal(ranges(), 1);
    assert_int_equal(last_reason(), PLAN_UNDO);
    restart();
    assert_int_equal(last_reason(), PLAN_UNDO);
    stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_the_middle_of_the_data),
        cmocka_unit_test(blindly_where_there_is_none),
        cmocka_unit_test(one_partition_is_not_cut),
        cmocka_unit_test(ranges_that_cannot_be_cut_are_left_alone),
        cmocka_unit_test(cut_behind_keys_that_are_alike),
        cmocka_unit_test(empty_ranges_are_cut_evenly_and_merged_at_once),
        cmocka_unit_test(an_event_counts_its_write),
        cmocka_unit_test(a_range_that_is_being_split_says_so),
        cmocka_unit_test(tokens_and_numbers_go_on),
        cmocka_unit_test(the_smaller_part_moves),
        cmocka_unit_test(throughput_up_and_down),
        cmocka_unit_test(storage_splits),
        cmocka_unit_test(a_full_partition_takes_no_more),
        cmocka_unit_test(a_fixed_container_has_an_end),
        cmocka_unit_test(merged_back_at_once_nothing_moves),
        cmocka_unit_test(split_while_moving),
        cmocka_unit_test(nothing_moves_while_the_disk_is_behind),
        cmocka_unit_test(a_move_through_many_that_stay),
        cmocka_unit_test(expiry_of_what_moves),
        cmocka_unit_test(history_and_hot_keys_outlive_a_split),
        cmocka_unit_test(a_merge_that_undoes_a_command_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
