/* The order of changes: each item once, by its last write, for a range and for a partition, from an lsn or a time on; with splits, merges,
 * moves, reindexing, expiry and restarts between pages. After each step all entries are checked (terms_check.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "item_harness.h"
#include "throughput/charge.h"

#define KEY "{\"id\":\"c\",\"defaultTtl\":-1,\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"
#define FIXED "{\"id\":\"c\"}"

static const char *const policies[] = {
    KEY "}",
    KEY ",\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/v/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}]}}",
    KEY ",\"indexingPolicy\":{\"indexingMode\":\"none\"}}",
};
enum { POLICIES = sizeof policies / sizeof *policies, IDS = 90, KEYS = 17, PARTS_MAX = 64, DAY_MS = 86400000 };

static harness h;
static container *c;

static void start(const char *properties, uint32_t throughput) {
    harness_open(&h);
    h.rules.no_merges = true;
    harness_restart(&h);
    c = harness_container(&h, properties, throughput);
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

static void stop(void) {
    harness_check(&h, c);
    container_give(c);
    harness_close(&h);
}

static const container_tiles *tiles(void) {
    return c->space->newest;
}

static void split(size_t i) {
    err code = account_split(h.account, harness_op(&h), c, tiles()->ranges[i]->id, 2);
    assert_true(code == OK || code == E_BAD_REQUEST);
    renew();
}

/* Ranges of different homes cannot be merged. */
static bool may_merge(size_t i) {
    return tiles()->ranges[i]->home == tiles()->ranges[i + 1]->home;
}

static void merge(size_t i) {
    assert_int_equal(account_merge(h.account, harness_op(&h), c, tiles()->ranges[i]->id, tiles()->ranges[i + 1]->id), OK);
    renew();
}

/* Item i is in partition i % KEYS. */
static void write_item(int i, int version, int ttl, bool indexed) {
    item_op o;
    char body[200];
    int n = snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\",\"v\":%d", i, i % KEYS, version);
    snprintf(body + n, sizeof body - (size_t)n, ttl ? ",\"ttl\":%d}" : "}", ttl);
    assert_int_equal(harness_prepare(&h, c, &o, ITEM_UPSERT, NULL, NULL, body), OK);
    o.not_indexed = !indexed;
    assert_int_equal(harness_commit(&h, c, &o, 1, true), OK);
}

static void put(int i, int version) {
    write_item(i, version, 0, true);
}

static err take_away(int i) {
    char key[16], id[16];
    snprintf(key, sizeof key, "[\"p%d\"]", i % KEYS);
    snprintf(id, sizeof id, "%d", i);
    return harness_write(&h, c, ITEM_DELETE, key, id, NULL);
}

/* ---- reading ---- */

typedef struct got {
    buf text; /* "id:version " each */
    size_t n, most;
    uint64_t last;
    int *versions; /* by id: the last version seen; -1: none. NULL: not tracked */
} got;

static int number_of(slice body, const char *name) {
    bson_iter_t it;
    assert_true(doc_find_key(body, slice_str(name), &it));
    return BSON_ITER_HOLDS_UTF8(&it) ? atoi(bson_iter_utf8(&it, NULL)) : (int)bson_iter_as_int64(&it);
}

static bool see(void *context, const item_found *found) {
    got *g = context;
    if (g->n >= g->most && found->head.lsn != g->last) {
        return false;
    }
    int id = number_of(found->body, "id"), version = number_of(found->body, "v");
    assert_true(found->head.lsn >= g->last);
    g->last = found->head.lsn;
    g->n++;
    buf_addf(&g->text, "%d:%d ", id, version);
    if (g->versions) {
        assert_true(version > g->versions[id]); /* no duplicates, nothing older */
        g->versions[id] = version;
    }
    return true;
}

static item_changes whole(void) {
    return (item_changes){.min = epk_min(), .max = epk_max()};
}

static err read_page(item_changes *what, got *g) {
    item_mark mark;
    uint64_t after = what->after;
    g->n = 0;
    g->last = after;
    err code = item_changes_read(harness_items(&h), harness_op(&h), c, what, see, g, &mark);
    if (code == OK) {
        assert_true(what->after >= after && what->after >= g->last);
        assert_true(what->more || what->after >= mark.lsn);
    }
    return code;
}

/* Reads everything from the given position on, in pages. */
static const char *read_from(item_changes what, size_t page) {
    got g = {.text = buf_init(BUF_NO_LIMIT), .most = page};
    do {
        assert_int_equal(read_page(&what, &g), OK);
        assert_true(!what.more || g.n >= page);
    } while (what.more);
    const char *text = arena_text(&h.arena, buf_view(&g.text));
    buf_free(&g.text);
    return text;
}

static const char *read_key(const char *header, uint64_t after, int64_t since_s, size_t page) {
    item_key key;
    pkey partition;
    op *o = harness_op(&h);
    assert_int_equal(pkey_parse(o, slice_str(header), &partition), OK);
    assert_int_equal(item_check_key(o, c, &partition, SLICE_EMPTY, &key), OK);
    return read_from((item_changes){.partition = &key, .after = after, .since_s = since_s}, page);
}

/* ---- single cases ---- */

static void by_the_last_write(void **state) {
    (void)state;
    start(KEY "}", 400);
    for (int i = 0; i < 6; i++) {
        put(i, 1);
    }
    put(2, 2);
    put(0, 2);
    assert_int_equal(take_away(3), OK);
    put(3, 9); /* a new item with the same id */
    assert_int_equal(take_away(4), OK);
    for (size_t page = 1; page < 8; page++) {
        assert_string_equal(read_from(whole(), page), "1:1 5:1 2:2 0:2 3:9 ");
    }
    item_changes what = whole();
    what.after = 6;
    assert_string_equal(read_from(what, 2), "2:2 0:2 3:9 ");
    what.after = 8;
    assert_string_equal(read_from(what, 2), "3:9 ");
    assert_string_equal(read_key("[\"p2\"]", 0, 0, 1), "2:2 ");
    assert_string_equal(read_key("[\"p4\"]", 0, 0, 1), "");
    restart();
    assert_string_equal(read_from(whole(), 3), "1:1 5:1 2:2 0:2 3:9 ");
    stop();
}

static void from_now_and_from_nowhere(void **state) {
    (void)state;
    start(KEY "}", 400);
    for (int i = 0; i < 5; i++) {
        put(i, 1);
    }
    item_changes what = whole();
    got g = {.text = buf_init(BUF_NO_LIMIT), .most = 100};
    what.from_now = true;
    assert_int_equal(read_page(&what, &g), OK);
    assert_int_equal(what.after, 5);
    assert_false(what.more);
    what.from_now = false;
    put(1, 2);
    assert_string_equal(read_from(what, 9), "1:2 ");
    item_mark mark;
    what.after = UINT64_MAX - 1; /* never given out: treated as the end */
    assert_int_equal(item_changes_read(harness_items(&h), harness_op(&h), c, &what, see, &g, &mark), OK);
    assert_int_equal(what.after, 6);
    assert_int_equal(g.text.n, 0);
    buf_free(&g.text);
    stop();
}

static void a_fixed_container(void **state) {
    (void)state;
    start(FIXED, 400);
    for (int i = 0; i < 4; i++) {
        put(i, 1);
    }
    put(1, 2);
    assert_string_equal(read_from(whole(), 2), "0:1 2:1 3:1 1:2 ");
    item_key key = {0};
    epk_of(&c->key, &key.partition, &key.epk);
    assert_string_equal(read_from((item_changes){.partition = &key}, 2), "0:1 2:1 3:1 1:2 ");
    stop();
}

/* An index that is off, an item excluded from the index, and one with too many terms for it. */
static void whatever_is_indexed(void **state) {
    (void)state;
    for (size_t p = 0; p < POLICIES; p++) {
        start(policies[p], 400);
        put(0, 1);
        write_item(17, 1, 0, false);
        buf body = buf_init(BUF_NO_LIMIT);
        buf_add_lit(&body, "{\"id\":\"34\",\"pk\":\"p0\",\"v\":1,\"list\":[0");
        for (int i = 1; i < INDEX_TERMS_MAX + 10; i++) {
            buf_addf(&body, ",%d", i);
        }
        buf_add(&body, "]}", 3);
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body.p), OK);
        buf_free(&body);
        write_item(0, 2, 0, false);
        assert_string_equal(read_from(whole(), 2), "17:1 34:1 0:2 ");
        assert_string_equal(read_key("[\"p0\"]", 0, 0, 2), "17:1 34:1 0:2 ");
        assert_int_equal(harness_replace_container(&h, "d", "c", policies[(p + 1) % POLICIES]), OK);
        renew();
        put(17, 2);
        harness_build_all(&h, c);
        assert_string_equal(read_from(whole(), 1), "34:1 0:2 17:2 ");
        stop();
    }
}

static void expired_ones_are_gone(void **state) {
    (void)state;
    start(KEY "}", 400);
    put(0, 1);
    write_item(1, 1, 10, true);
    put(2, 1);
    assert_string_equal(read_from(whole(), 1), "0:1 1:1 2:1 ");
    clock_manual_advance(&h.clock, 11000);
    assert_string_equal(read_from(whole(), 1), "0:1 2:1 ");
    assert_string_equal(read_key("[\"p1\"]", 0, 0, 1), "");
    atomic_uint in_flight = 0;
    item_sweep(harness_items(&h), c, 100, &in_flight);
    while (atomic_load(&in_flight)) {
    }
    assert_int_equal(harness_count(c), 2);
    assert_string_equal(read_from(whole(), 1), "0:1 2:1 ");
    stop();
}

/* Two V1 keys with the same first 100 characters share an EPK. */
static void keys_that_hash_alike_stay_apart(void **state) {
    (void)state;
    start("{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":1}}", 400);
    char keys[2][160], body[400], header[2][400];
    for (int k = 0; k < 2; k++) {
        memset(keys[k], 'x', 150);
        keys[k][149] = (char)('a' + k);
        keys[k][150] = 0;
        snprintf(header[k], sizeof header[k], "[\"%s\"]", keys[k]);
    }
    for (int i = 0; i < 6; i++) {
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"%s\",\"v\":1}", i / 2, keys[i % 2]);
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    }
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, header[0], "1", NULL), OK);
    assert_string_equal(read_key(header[0], 0, 0, 1), "0:1 2:1 ");
    assert_string_equal(read_key(header[1], 0, 0, 1), "0:1 1:1 2:1 ");
    stop();
}

/* ---- splits and merges ---- */

static void a_split_goes_on_with_the_parents_lsn(void **state) {
    (void)state;
    start(KEY "}", 400);
    for (int i = 0; i < 40; i++) {
        put(i, 1);
    }
    item_changes what = whole();
    got g = {.text = buf_init(BUF_NO_LIMIT), .most = 10};
    assert_int_equal(read_page(&what, &g), OK);
    assert_int_equal(what.after, 10);
    split(0);
    assert_int_equal(tiles()->map->n, 2);
    assert_int_equal(read_page(&what, &g), E_RANGE_GONE);
    int seen[IDS];
    for (int i = 0; i < IDS; i++) {
        seen[i] = -1;
    }
    g.versions = seen;
    for (int moved = 0; moved < 2; moved++) { /* before and after the move out of the shared segment */
        for (int i = 0; i < 40; i++) {
            seen[i] = -1;
        }
        for (size_t i = 0; i < 2; i++) {
            item_changes part = {.min = tiles()->map->ranges[i].min, .max = tiles()->map->ranges[i].max, .after = 10};
            do {
                assert_int_equal(read_page(&part, &g), OK);
            } while (part.more);
            assert_int_equal(part.after, 40);
        }
        for (int i = 0; i < 40; i++) {
            assert_int_equal(seen[i], i < 10 ? -1 : 1);
        }
        while (account_balance(h.account, 1000)) {
        }
        renew();
    }
    buf_free(&g.text);
    stop();
}

static size_t range_of(int key) {
    pkey partition = {.n = 1, .values = {{.type = PKEY_STRING}}};
    char text[16];
    epk e;
    snprintf(text, sizeof text, "p%d", key);
    partition.values[0].text = slice_str(text);
    epk_of(&c->key, &partition, &e);
    return container_position(tiles(), &e);
}

/* Both ranges have items with lsns 1 to n. A page never separates items with the same lsn, and each part continues with its own lsn. */
static void a_merge_has_lsns_twice(void **state) {
    (void)state;
    start(KEY "}", 2000);
    assert_int_equal(tiles()->map->n, 2);
    if (!may_merge(0)) { /* the two ranges are in different stores */
        stop();
        skip();
    }
    int n[2] = {0}, version = 0;
    for (int i = 0; n[0] < 6 || n[1] < 6; i++) {
        size_t r = range_of(i % KEYS);
        if (n[r] < 6) {
            put(i, ++version);
            n[r]++;
        }
    }
    epk middle = tiles()->map->ranges[0].max;
    merge(0);
    got g = {.text = buf_init(BUF_NO_LIMIT), .most = 1};
    item_changes what = whole();
    size_t all = 0;
    for (uint64_t lsn = 1; lsn <= 6; lsn++) {
        assert_int_equal(read_page(&what, &g), OK);
        assert_int_equal(g.n, 2);
        assert_int_equal(what.after, lsn);
        all += g.n;
    }
    assert_int_equal(all, 12);
    assert_false(what.more);
    item_changes left = {.min = epk_min(), .max = middle, .after = 4}, right = {.min = middle, .max = epk_max(), .after = 1};
    g.most = 100;
    assert_int_equal(read_page(&left, &g), OK);
    assert_int_equal(g.n, 2);
    assert_int_equal(left.after, 6);
    assert_int_equal(read_page(&right, &g), OK);
    assert_int_equal(g.n, 5);
    put(0, 100); /* written in one part: both advance, the other without changes */
    size_t found = 0;
    assert_int_equal(read_page(&left, &g), OK);
    found += g.n;
    assert_int_equal(left.after, 7);
    assert_int_equal(read_page(&right, &g), OK);
    assert_int_equal(found + g.n, 1);
    assert_int_equal(right.after, 7);
    buf_free(&g.text);
    stop();
}

/* ---- from a time on ---- */

static unsigned calls_used(void) {
    return (1000000 - h.plan.get_in) + (1000000 - h.plan.scan_in);
}

static void count_calls(void) {
    h.plan.get_in = h.plan.scan_in = 1000000;
}

static void expect_since(int day, int days, const char *where) {
    got g = {.text = buf_init(BUF_NO_LIMIT), .most = SIZE_MAX};
    size_t n = 0;
    for (size_t i = 0; i < tiles()->map->n; i++) {
        item_changes what = {.min = tiles()->map->ranges[i].min, .max = tiles()->map->ranges[i].max};
        what.since_s = HARNESS_START_S + (int64_t)day * (DAY_MS / 1000);
        assert_int_equal(read_page(&what, &g), OK);
        n += g.n;
    }
    if (n != (size_t)(days - day) * 10) {
        fail_msg("%s: %zu items since day %d, not %d", where, n, day, (days - day) * 10);
    }
    buf_free(&g.text);
}

/* Ten items a day; then the same with several lsn sequences, where lsn order is not time order. */
static void from_a_time_on(void **state) {
    (void)state;
    enum { DAYS = 8 };
    start(KEY "}", 400);
    for (int i = 0; i < DAYS * 10; i++) {
        put(i, 1);
        if (i % 10 == 9) {
            clock_manual_advance(&h.clock, DAY_MS);
        }
    }
    for (int day = 0; day <= DAYS; day++) {
        expect_since(day, DAYS, "one range");
    }
    char expected[32];
    snprintf(expected, sizeof expected, "%d:1 ", 68); /* 68 % 17 = 0, written on day 6 */
    assert_string_equal(read_key("[\"p0\"]", 0, HARNESS_START_S + 6 * (DAY_MS / 1000), 9), expected);
    split(0);
    for (int i = 0; i < DAYS * 10; i++) { /* the left range first, some days before the right one */
        if (range_of(i % KEYS) == 0) {
            put(i, 2);
        }
    }
    int64_t later = (harness_now_s(&h) - HARNESS_START_S) / (DAY_MS / 1000) + 3;
    clock_manual_advance(&h.clock, 3 * (int64_t)DAY_MS);
    int right = 0;
    for (int i = 0; i < DAYS * 10; i++) {
        if (range_of(i % KEYS) == 1) {
            put(i, 2);
            right++;
        }
    }
    for (int step = 0; step < 3; step++) { /* split in one segment; split and moved; merged */
        got g = {.text = buf_init(BUF_NO_LIMIT), .most = SIZE_MAX};
        size_t n = 0;
        for (size_t i = 0; i < tiles()->map->n; i++) {
            item_changes what = {.min = tiles()->map->ranges[i].min, .max = tiles()->map->ranges[i].max};
            what.since_s = HARNESS_START_S + later * (DAY_MS / 1000);
            assert_int_equal(read_page(&what, &g), OK);
            n += g.n;
        }
        assert_int_equal(n, right);
        buf_free(&g.text);
        if (step == 0) {
            while (account_balance(h.account, 1000)) {
            }
            renew();
        } else if (step == 1) {
            merge(0);
            assert_true(tiles()->map->ranges[0].mixed);
            restart();
            assert_true(tiles()->map->ranges[0].mixed);
        }
    }
    stop();
}

/* ---- cost ---- */

/* A page takes the same work and charge at any position, in a large range and in a large partition. */
static void a_page_costs_the_same_anywhere(void **state) {
    (void)state;
    enum { MANY = 2000, PAGE = 20 };
    start(KEY "}", 400);
    for (int i = 0; i < MANY; i++) {
        put(i % 2 ? i * KEYS : i, 1);
    }
    item_key key;
    pkey partition;
    op *o = harness_op(&h);
    assert_int_equal(pkey_parse(o, SLICE_LIT("[\"p0\"]"), &partition), OK);
    assert_int_equal(item_check_key(o, c, &partition, SLICE_EMPTY, &key), OK);
    const uint64_t places[] = {0, MANY / 2, MANY - 2 * PAGE - 4};
    for (int by_key = 0; by_key < 2; by_key++) {
        unsigned calls[3];
        for (int i = 0; i < 3; i++) {
            got g = {.text = buf_init(BUF_NO_LIMIT), .most = PAGE};
            item_changes what = {.partition = by_key ? &key : NULL, .min = epk_min(), .max = epk_max(), .after = places[i]};
            item_mark mark;
            op *asked = harness_op(&h);
            g.last = places[i];
            count_calls();
            assert_int_equal(item_changes_read(harness_items(&h), asked, c, &what, see, &g, &mark), OK);
            calls[i] = calls_used();
            assert_int_equal(g.n, PAGE);
            assert_true(asked->charge_ru > CHARGE_CHANGES + PAGE * 0.0149 && asked->charge_ru < CHARGE_CHANGES + PAGE * 0.015);
            buf_free(&g.text);
        }
        assert_true(calls[0] < (harness_clustered() ? 12 : 3) * PAGE); /* clustered: each item costs a get, others are skipped */
        assert_true(calls[1] <= calls[0] + 2 && calls[2] <= calls[0] + 2);
    }
    h.plan.get_in = h.plan.scan_in = 0;
    stop();
}

static void nothing_new_costs_little(void **state) {
    (void)state;
    start(KEY "}", 400);
    for (int i = 0; i < 50; i++) {
        put(i, 1);
    }
    got g = {.text = buf_init(BUF_NO_LIMIT), .most = 9};
    item_changes what = whole();
    item_mark mark;
    op *o = harness_op(&h);
    what.after = 50;
    count_calls();
    assert_int_equal(item_changes_read(harness_items(&h), o, c, &what, see, &g, &mark), OK);
    assert_int_equal(calls_used(), 0);
    h.plan.get_in = h.plan.scan_in = 0;
    assert_true(o->charge_ru == CHARGE_CHANGES);
    o->strong = true;
    assert_int_equal(item_changes_read(harness_items(&h), o, c, &what, see, &g, &mark), OK);
    assert_true(o->charge_ru == 3 * CHARGE_CHANGES);
    buf_free(&g.text);
    stop();
}

/* A page whose time is over still has one item, and reports that there may be more. */
static void a_page_ends_in_time(void **state) {
    (void)state;
    start(KEY "}", 400);
    for (int i = 0; i < 10; i++) {
        put(i, 1);
    }
    got g = {.text = buf_init(BUF_NO_LIMIT), .most = 100};
    item_changes what = whole();
    clock_manual_advance(&h.clock, 1000);
    what.until_us = 1;
    for (uint64_t i = 1; i <= 10; i++) {
        assert_int_equal(read_page(&what, &g), OK);
        assert_int_equal(g.n, 1);
        assert_int_equal(what.after, i);
        assert_int_equal(what.more, i < 10);
    }
    buf_free(&g.text);
    stop();
}

/* Each call of the store fails once: the reader reports it or does not need the call, and leaves nothing open. */
static void a_store_that_fails(void **state) {
    (void)state;
    start(KEY "}", 400);
    for (int i = 0; i < 12; i++) {
        put(i, 1);
    }
    split(0);
    for (int by_scan = 0; by_scan < 2; by_scan++) {
        bool fired = true;
        for (unsigned in = 1; fired; in++) {
            got g = {.text = buf_init(BUF_NO_LIMIT), .most = 100};
            item_changes what = {.min = tiles()->map->ranges[0].min, .max = tiles()->map->ranges[0].max};
            h.plan.get_in = by_scan ? 0 : in;
            h.plan.scan_in = by_scan ? in : 0;
            h.plan.fired = 0;
            err code = read_page(&what, &g);
            fired = h.plan.fired;
            h.plan.get_in = h.plan.scan_in = 0;
            assert_int_equal(code, fired ? E_STORE_IO : OK);
            buf_free(&g.text);
        }
    }
    stop();
}

/* ---- random lives ---- */

typedef struct part {
    epk min, max;
    uint64_t after;
} part;

/* A reader that copies a container, as the SDKs do: it has parts of the hash space with an lsn each, and cuts a part when its range is
 * gone. */
typedef struct follower {
    size_t n;
    part parts[PARTS_MAX];
    int versions[IDS];
} follower;

typedef struct life {
    random_source r;
    int version;
    bool there[IDS];
    int versions[IDS];
    int64_t dies[IDS]; /* expiry in seconds; 0: never */
    follower followers[3];
} life;

static void follower_init(follower *f) {
    *f = (follower){.n = 1, .parts = {{.min = epk_min(), .max = epk_max()}}};
    for (int i = 0; i < IDS; i++) {
        f->versions[i] = -1;
    }
}

static void cut_part(follower *f, size_t i) {
    const partition_range *first;
    part old = f->parts[i];
    size_t n = partition_map_overlap(tiles()->map, &old.min, &old.max, &first);
    assert_true(n > 1 && f->n + n <= PARTS_MAX);
    f->parts[i].max = first[0].max;
    for (size_t j = 1; j < n; j++) {
        f->parts[f->n++] = (part){first[j].min, j + 1 < n ? first[j].max : old.max, old.after};
    }
}

/* Reads one page of a part. True: there may be more. */
static bool follow(life *l, follower *f, size_t i) {
    got g = {.text = buf_init(BUF_NO_LIMIT), .most = 1 + random_below(&l->r, 6), .versions = f->versions};
    item_changes what = {.min = f->parts[i].min, .max = f->parts[i].max, .after = f->parts[i].after};
    err code = read_page(&what, &g);
    buf_free(&g.text);
    if (code == E_RANGE_GONE) {
        cut_part(f, i);
        return true;
    }
    assert_int_equal(code, OK);
    f->parts[i].after = what.after;
    return what.more;
}

static bool is_alive(life *l, int i) {
    return l->there[i] && (!l->dies[i] || harness_now_s(&h) < l->dies[i]);
}

/* Reads to the end, and checks that the follower knows the latest version of every item. */
static void catch_up(life *l, follower *f) {
    for (size_t i = 0; i < f->n; i++) {
        while (follow(l, f, i)) {
        }
    }
    for (int i = 0; i < IDS; i++) {
        if (is_alive(l, i) && f->versions[i] != l->versions[i]) {
            fail_msg("item %d is of version %d, and the follower knows %d", i, l->versions[i], f->versions[i]);
        }
    }
}

static void change_item(life *l) {
    int i = (int)random_below(&l->r, IDS);
    if (random_below(&l->r, 4)) {
        int ttl = random_below(&l->r, 8) ? 0 : 1 + (int)random_below(&l->r, 30);
        write_item(i, ++l->version, ttl, random_below(&l->r, 8) > 0);
        l->there[i] = true;
        l->versions[i] = l->version;
        l->dies[i] = ttl ? harness_now_s(&h) + ttl : 0;
    } else {
        assert_int_equal(take_away(i), is_alive(l, i) ? OK : E_NOT_FOUND);
        l->there[i] = false;
    }
}

static void change_surroundings(life *l) {
    size_t i = random_below(&l->r, tiles()->map->n);
    switch (random_below(&l->r, 9)) {
    case 0:
    case 1:
        if (tiles()->map->n < 6) {
            split(i);
        }
        break;
    case 2:
        if (i + 1 < tiles()->map->n && may_merge(i)) {
            merge(i);
        }
        break;
    case 3:
    case 4:
        account_balance(h.account, 1 + (unsigned)random_below(&l->r, 20));
        renew();
        break;
    case 5:
        restart();
        break;
    case 6:
        assert_int_equal(harness_replace_container(&h, "d", "c", policies[random_below(&l->r, POLICIES)]), OK);
        renew();
        break;
    case 7:
        clock_manual_advance(&h.clock, (int64_t)random_below(&l->r, 20000));
        break;
    default: {
        atomic_uint in_flight = 0;
        item_sweep(harness_items(&h), c, 5, &in_flight);
        while (atomic_load(&in_flight)) {
        }
    }
    }
}

/* Reads everything from the beginning, by range and by partition, and from some time on; each item must appear once. */
static void check_now(life *l) {
    follower fresh;
    follower_init(&fresh);
    catch_up(l, &fresh);
    int64_t since = harness_now_s(&h) - (int64_t)random_below(&l->r, 60);
    size_t seen = 0, expected = 0;
    for (int k = 0; k < KEYS; k++) {
        char header[16], text[20];
        snprintf(header, sizeof header, "[\"p%d\"]", k);
        const char *all = read_key(header, 0, 0, 3);
        for (int i = k; i < IDS; i += KEYS) {
            int n = snprintf(text, sizeof text, "%d:%d ", i, l->versions[i]);
            const char *at = strstr(all, text);
            bool found = at && (at == all || at[-1] == ' ');
            assert_true(found == is_alive(l, i) || (n && !l->there[i] && !found));
        }
        for (const char *p = read_key(header, 0, since, 100); *p; p++) {
            seen += *p == ' ';
        }
    }
    got g = {.text = buf_init(BUF_NO_LIMIT), .most = SIZE_MAX};
    for (size_t i = 0; i < tiles()->map->n; i++) {
        item_changes what = {.min = tiles()->map->ranges[i].min, .max = tiles()->map->ranges[i].max, .since_s = since};
        assert_int_equal(read_page(&what, &g), OK);
        expected += g.n;
    }
    buf_free(&g.text);
    assert_int_equal(seen, expected);
    harness_check(&h, c);
}

static void random_lives(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 14; seed++) {
        life l = {0};
        random_seed(&l.r, seed);
        start(policies[seed % POLICIES], seed % 2 ? 400 : 3000);
        for (size_t i = 0; i < 3; i++) {
            follower_init(&l.followers[i]);
        }
        for (int step = 0; step < 250; step++) {
            change_item(&l);
            if (random_below(&l.r, 6) == 0) {
                change_surroundings(&l);
            }
            follower *f = &l.followers[random_below(&l.r, 3)];
            if (random_below(&l.r, 3) == 0) {
                follow(&l, f, random_below(&l.r, f->n));
            }
            if (step % 25 == 24) {
                catch_up(&l, &l.followers[(step / 25) % 2]); /* the third one lags behind */
                check_now(&l);
            }
        }
        for (size_t i = 0; i < 3; i++) {
            catch_up(&l, &l.followers[i]);
        }
        stop();
    }
}

int main(void) {
    log_set_level(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_last_write),
        cmocka_unit_test(from_now_and_from_nowhere),
        cmocka_unit_test(a_fixed_container),
        cmocka_unit_test(whatever_is_indexed),
        cmocka_unit_test(expired_ones_are_gone),
        cmocka_unit_test(keys_that_hash_alike_stay_apart),
        cmocka_unit_test(a_split_goes_on_with_the_parents_lsn),
        cmocka_unit_test(a_merge_has_lsns_twice),
        cmocka_unit_test(from_a_time_on),
        cmocka_unit_test(a_page_costs_the_same_anywhere),
        cmocka_unit_test(nothing_new_costs_little),
        cmocka_unit_test(a_page_ends_in_time),
        cmocka_unit_test(a_store_that_fails),
        cmocka_unit_test(random_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
