/* Splits and merges: where they cut, their counts, and that no item is lost, duplicated or out of order, whatever happens between two of
 * them: writes, moves, store failures, restarts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "account/account_int.h"
#include "account/report.h"
#include "item/range_info.h"
#include "item_harness.h"
#include "rounds.h"

#define KEY "\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"
#define UNIQUE "{\"id\":\"c\"," KEY ",\"defaultTtl\":-1,\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]}]}}"
#define PLAIN "{\"id\":\"c\"," KEY "}"

static harness h;
static container *c;

/* The balancer does nothing unless a test's rules say so. */
static void start(const char *properties, uint32_t throughput, account_rules rules) {
    rules.unlimited = true;
    rules.range_throughput = rules.range_throughput ? rules.range_throughput : 1000000;
    harness_open(&h);
    h.rules = rules;
    harness_restart(&h);
    c = harness_container(&h, properties, throughput);
}

static const account_rules quiet = {.no_merges = true};

static void stop(void) {
    harness_check(&h, c);
    container_give(c);
    harness_close(&h);
}

static void renew(void) {
    container_give(c);
    c = harness_found(&h, "d", "c");
}

static void restart(void) {
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
}

static void put(int partition, int id, unsigned padding) {
    char *body = malloc(padding + 200);
    snprintf(body, padding + 200, "{\"id\":\"%d\",\"pk\":\"p%d\",\"u\":%d,\"x\":\"%0*d\"}", id, partition, id, (int)padding + 1, 0);
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, body), OK);
    free(body);
}

static size_t ranges(void) {
    return c->space->newest->map->n;
}

static container_range *range_at(size_t i) {
    return c->space->newest->ranges[i];
}

static err split(uint32_t id, uint32_t parts) {
    err code = account_split(h.account, harness_op(&h), c, id, parts);
    renew();
    return code;
}

static err merge(size_t i) {
    err code = account_merge(h.account, harness_op(&h), c, range_at(i)->id, range_at(i + 1)->id);
    renew();
    return code;
}

static void move_all(void) {
    while (account_balance(h.account, 1000)) {
    }
    renew();
}

static size_t sources(void) {
    size_t n = 0;
    for (size_t i = 0; i < ranges(); i++) {
        n += c->space->newest->sources[i].n;
    }
    return n;
}

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

/* ---- failures of the store ---- */

enum { FAIL_GET, FAIL_SCAN, FAIL_WRITE, FAIL_KINDS };
enum { DO_SPLIT, DO_MERGE, DO_MOVE, DO_KINDS };

static void fail_in(unsigned kind, unsigned in) {
    h.plan.get_in = kind == FAIL_GET ? in : 0;
    h.plan.scan_in = kind == FAIL_SCAN ? in : 0;
    h.plan.write_in = kind == FAIL_WRITE ? in : 0;
    h.plan.fired = 0;
}

/* Forty items in ten partitions, in one range or two. */
static void start_with(unsigned what) {
    start(UNIQUE, 400, quiet);
    for (int i = 0; i < 40; i++) {
        put(i % 10, i, 10);
    }
    if (what != DO_SPLIT) {
        assert_int_equal(split(0, 2), OK);
    }
}

static err do_it(unsigned what) {
    if (what == DO_MOVE) {
        account_balance(h.account, 100);
        return OK;
    }
    return what == DO_SPLIT ? split(0, 2) : merge(0);
}

static size_t ranges_after(unsigned what) {
    return what == DO_MERGE ? 1 : 2;
}

/* Each store call of a split, a merge or a move fails once: afterwards the change is either complete or absent, also after a restart. */
static void failures_leave_one_map(void **state) {
    (void)state;
    for (unsigned what = 0; what < DO_KINDS; what++) {
        for (unsigned kind = 0; kind < FAIL_KINDS; kind++) {
            for (unsigned in = 1, fired = 1; fired; in++) {
                start_with(what);
                const char *feed = harness_feed(&h, c, NULL, 100, 1000);
                size_t before = ranges();
                fail_in(kind, in);
                err code = do_it(what);
                fired = h.plan.fired;
                fail_in(0, 0);
                assert_true(fired || code == OK);
                size_t after = code == OK ? ranges_after(what) : before;
                assert_int_equal(ranges(), after);
                harness_check(&h, c);
                assert_int_equal(strlen(harness_feed(&h, c, NULL, 100, 1000)), strlen(feed));
                put(3, 78, 10);
                harness_check(&h, c);
                restart();
                assert_int_equal(ranges(), after);
                put(3, 77, 10);
                move_all();
                stop();
            }
        }
    }
}

/* The write reaches the disk but reports failure: nothing more is written, and after a restart the change is complete. */
static void a_reshape_that_failed_after_the_fact_is_whole(void **state) {
    (void)state;
    for (unsigned what = 0; what < DO_KINDS; what++) {
        unsigned fired = 1;
        for (unsigned in = 1; fired; in++) {
            start_with(what);
            const char *feed = harness_feed(&h, c, NULL, 100, 1000);
            size_t before = ranges();
            h.plan.torn = h.plan.sticky = true;
            fail_in(FAIL_WRITE, in);
            err code = do_it(what);
            fired = h.plan.fired;
            bool first = range_at(0)->home->number == 0;
            bool told = fired && what != DO_MOVE && in <= (first ? 1 : 2); /* the last write only stores the duration */
            bool begun = first || in > 1 || !told;                         /* in other homes segment numbers are written first */
            assert_int_equal(code, told ? E_STORE_IO : OK);
            assert_int_equal(ranges(), code == OK ? ranges_after(what) : before);
            fail_in(0, 0);
            h.plan.torn = h.plan.sticky = false;
            restart();
            assert_int_equal(ranges(), begun ? ranges_after(what) : before);
            harness_check(&h, c);
            assert_int_equal(strlen(harness_feed(&h, c, NULL, 100, 1000)), strlen(feed));
            put(3, 77, 10);
            move_all();
            stop();
        }
    }
}

/* Sizes that do not add up mean corruption: the map stays, and everything else still works. */
static void a_split_of_damaged_sizes_is_given_up(void **state) {
    (void)state;
    start_with(DO_SPLIT);
    layout_key k;
    pkey key = {.n = 1, .values = {{.type = PKEY_STRING, .text = SLICE_LIT("p3")}}};
    epk e;
    store_value value;
    store_batch batch;
    char damaged[LAYOUT_SIZE_BYTES];
    epk_of(&c->key, &key, &e);
    layout_size(&k, c->space->container, &e, &key);
    assert_int_equal(store_get(h.store, STORE_INDEX, NULL, layout_view(&k), &value), OK);
    slice whole = arena_copy(&h.arena, value.bytes);
    store_give(&value);
    memcpy(damaged, whole.p, sizeof damaged);
    damaged[7] ^= 1; /* the item count */
    store_batch_init(&batch);
    store_put(&batch, STORE_INDEX, layout_view(&k), slice_of(damaged, sizeof damaged));
    assert_int_equal(store_write(h.store, &batch), OK);
    assert_int_equal(split(0, 2), E_STORE_CORRUPT);
    assert_int_equal(ranges(), 1);
    put(4, 77, 10);
    store_batch_clear(&batch);
    store_put(&batch, STORE_INDEX, layout_view(&k), whole);
    assert_int_equal(store_write(h.store, &batch), OK);
    store_batch_free(&batch);
    assert_int_equal(split(0, 2), OK);
    stop();
}

/* ---- random lives, by seed ---- */

enum { KEYS = 25, IDS = 300, SEVERAL = 8 };

typedef struct model {
    bool there[IDS];   /* item i is in partition i % KEYS */
    bool deleted[IDS]; /* deleted at some time since this was cleared */
} model;

static bool check_seen(void *context, const item_found *found) {
    unsigned *seen = context;
    bson_iter_t it;
    assert_true(doc_find_key(found->body, SLICE_LIT("id"), &it));
    seen[atoi(bson_iter_utf8(&it, NULL))]++;
    return true;
}

static bool seen_three(void *context, const item_found *found) {
    struct {
        unsigned left;
        unsigned *seen;
    } *page = context;
    return page->left-- > 0 && check_seen(page->seen, found);
}

static void check_model(const model *m) {
    unsigned seen[IDS] = {0};
    item_cursor cursor = harness_cursor();
    item_mark mark;
    harness_check(&h, c);
    while (cursor.n) {
        assert_int_equal(item_feed(harness_items(&h), harness_op(&h), c, &cursor, 17, check_seen, seen, &mark), OK);
    }
    for (int i = 0; i < IDS; i++) {
        assert_int_equal(seen[i], m->there[i]);
    }
}

static void change_item(random_source *r, model *m) {
    int i = (int)random_below(r, IDS);
    char key[16], id[16];
    if (random_below(r, 3)) {
        put(i % KEYS, i, (unsigned)random_below(r, 200));
        m->there[i] = true;
    } else {
        snprintf(key, sizeof key, "[\"p%d\"]", i % KEYS);
        snprintf(id, sizeof id, "%d", i);
        assert_int_equal(harness_write(&h, c, ITEM_DELETE, key, id, NULL), m->there[i] ? OK : E_NOT_FOUND);
        m->deleted[i] = m->deleted[i] || m->there[i];
        m->there[i] = false;
    }
}

/* ---- several items in one request, in several ranges and so in several stores; each independent ---- */

typedef struct several {
    size_t n;
    int ids[SEVERAL];
    bool deletes[SEVERAL];
    item_op ops[SEVERAL];
} several;

static void choose_several(random_source *r, const model *m, several *s) {
    char key[16], id[16], body[100];
    int from = (int)random_below(r, IDS);
    s->n = 1 + random_below(r, SEVERAL);
    for (size_t k = 0; k < s->n; k++) {
        int i = s->ids[k] = (from + 7 * (int)k) % IDS;
        s->deletes[k] = m->there[i] && random_below(r, 3) == 0;
        snprintf(key, sizeof key, "[\"p%d\"]", i % KEYS);
        snprintf(id, sizeof id, "%d", i);
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\",\"u\":%d}", i, i % KEYS, i);
        err code = s->deletes[k] ? harness_prepare(&h, c, &s->ops[k], ITEM_DELETE, key, id, NULL)
                                 : harness_prepare(&h, c, &s->ops[k], ITEM_UPSERT, NULL, NULL, body);
        assert_int_equal(code, OK);
    }
}

static void note(model *m, int i, bool there) {
    m->deleted[i] = m->deleted[i] || (m->there[i] && !there);
    m->there[i] = there;
}

static void change_several(random_source *r, model *m) {
    several s;
    choose_several(r, m, &s);
    assert_int_equal(harness_commit(&h, c, s.ops, s.n, false), OK);
    for (size_t k = 0; k < s.n; k++) {
        assert_int_equal(s.ops[k].code, OK);
        note(m, s.ids[k], !s.deletes[k]);
    }
}

/* The disks fail at some write, which may or may not be on disk, and the server restarts. Acknowledged writes must be there. */
static void change_several_badly(random_source *r, model *m) {
    several s;
    char key[16], id[16];
    bool torn = random_below(r, 2);
    choose_several(r, m, &s);
    h.plan.sticky = true;
    h.plan.torn = torn;
    fail_in(FAIL_WRITE, 1 + (unsigned)random_below(r, 2));
    err code = harness_commit(&h, c, s.ops, s.n, false);
    fail_in(0, 0);
    h.plan.sticky = h.plan.torn = false;
    restart();
    for (size_t k = 0; k < s.n; k++) {
        int i = s.ids[k];
        bool done = code == OK && s.ops[k].code == OK, was = m->there[i];
        snprintf(key, sizeof key, "[\"p%d\"]", i % KEYS);
        snprintf(id, sizeof id, "%d", i);
        note(m, i, harness_read(&h, c, key, id) != NULL);
        assert_true(done ? m->there[i] == !s.deletes[k] : torn || m->there[i] == was);
    }
}

static void change_items(random_source *r, model *m) {
    for (int i = 0; i < 3; i++) {
        change_item(r, m);
    }
    if (random_below(r, 3)) {
        change_several(r, m);
    } else {
        change_several_badly(r, m);
    }
}

/* ---- ranges ---- */

/* Ranges in different stores must not be merged. */
static err merge_if_together(size_t i) {
    bool together = range_at(i)->home == range_at(i + 1)->home;
    err code = merge(i);
    assert_true(together || code == E_BAD_REQUEST);
    return together ? code : OK;
}

/* OK also if there was nothing to do. */
static err change_tiles(random_source *r) {
    uint64_t what = random_below(r, 10);
    size_t i = random_below(r, ranges());
    if (what < 4 && ranges() < 12) {
        err code = split(range_at(i)->id, 2 + (uint32_t)random_below(r, 3));
        return code == E_BAD_REQUEST ? OK : code;
    }
    if (what < 7 && i + 1 < ranges()) {
        return merge_if_together(i);
    }
    if (what < 9) {
        account_balance(h.account, 1);
        renew();
    } else {
        restart();
    }
    return OK;
}

/* The store fails at some call; or its disk fails for good, with or without the last write, and the server restarts. */
static void change_tiles_badly(random_source *r) {
    unsigned kind = (unsigned)random_below(r, FAIL_KINDS), in = 1 + (unsigned)random_below(r, 12);
    h.plan.sticky = kind == FAIL_WRITE && random_below(r, 2);
    h.plan.torn = h.plan.sticky && random_below(r, 2);
    uint64_t what = random_below(r, 3);
    size_t i = random_below(r, ranges());
    fail_in(kind, in);
    err code = what == 0                       ? split(range_at(i)->id, 2)
               : what == 1 && i + 1 < ranges() ? merge_if_together(i)
                                               : (account_balance(h.account, 1), OK);
    bool fired = h.plan.fired, ends = h.plan.sticky;
    fail_in(0, 0);
    h.plan.sticky = h.plan.torn = false;
    assert_true(code == OK || code == E_BAD_REQUEST || (fired && code == E_STORE_IO));
    if (ends) {
        restart();
    } else {
        renew();
    }
}

/* A feed that begins before all changes and ends after them must contain each permanent item exactly once. */
static void random_lives(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS(12); seed++) {
        random_source r;
        model m = {0};
        random_seed(&r, seed);
        account_rules rules = quiet;
        rules.range_throughput = 1000;
        start(seed % 2 ? UNIQUE : PLAIN, seed % 4 < 2 ? 1000 : 4000, rules);
        assert_true(ranges() == 1 || range_at(0)->home != range_at(1)->home || h.homes_n == 1);
        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < 60; i++) {
                change_item(&r, &m);
            }
            memset(m.deleted, 0, sizeof m.deleted);
            model first = m;
            unsigned seen[IDS] = {0};
            item_cursor cursor = harness_cursor();
            item_mark mark;
            while (cursor.n) {
                struct {
                    unsigned left;
                    unsigned *seen;
                } page = {1 + (unsigned)random_below(&r, 9), seen};
                assert_int_equal(item_feed(harness_items(&h), harness_op(&h), c, &cursor, 40, seen_three, &page, &mark), OK);
                if (random_below(&r, 4)) {
                    assert_int_equal(change_tiles(&r), OK);
                } else {
                    change_tiles_badly(&r);
                }
                change_items(&r, &m);
            }
            for (int i = 0; i < IDS; i++) {
                assert_true(m.deleted[i] || (first.there[i] ? seen[i] == 1 : seen[i] <= 1));
            }
            check_model(&m);
        }
        move_all();
        check_model(&m);
        stop();
    }
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
    log_set_level(LOG_ERROR);
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
        cmocka_unit_test(failures_leave_one_map),
        cmocka_unit_test(random_lives),
        cmocka_unit_test(merged_back_at_once_nothing_moves),
        cmocka_unit_test(split_while_moving),
        cmocka_unit_test(a_move_through_many_that_stay),
        cmocka_unit_test(expiry_of_what_moves),
        cmocka_unit_test(a_reshape_that_failed_after_the_fact_is_whole),
        cmocka_unit_test(history_and_hot_keys_outlive_a_split),
        cmocka_unit_test(a_merge_that_undoes_a_command_says_so),
        cmocka_unit_test(a_split_of_damaged_sizes_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
