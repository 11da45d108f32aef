/* Databases, containers and offers: creating, changing, deleting, finding by name and by rid, and the same state after a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "account/report.h"
#include "item_harness.h"

#define KEY "\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"

static harness h;

static int set_up(void **state) {
    (void)state;
    harness_open(&h);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    harness_close(&h);
    return 0;
}

static const throughput_setting none = {0};

static throughput_setting manual(uint32_t value) {
    return (throughput_setting){.kind = THROUGHPUT_MANUAL, .value = value};
}

static container *make(const char *database, const char *properties, uint32_t throughput) {
    container *c = NULL;
    assert_int_equal(harness_create_container(&h, database, properties, throughput, &c), OK);
    return c;
}

/* ---- listings as text ---- */

static bool list_database(void *context, const database *d) {
    buf_addf(context, "%s ", d->id);
    return true;
}

static bool list_container(void *context, const container *c) {
    buf_add_slice(context, c->id);
    buf_addf(context, "(%zu) ", c->tiles->map->n);
    return true;
}

static bool list_offer(void *context, const offer *o) {
    buf_addf(context, "%u/%u:%s%u ", o->database, o->container, o->throughput.kind == THROUGHPUT_AUTOSCALE ? "auto" : "",
             o->throughput.value);
    return true;
}

static const char *listing(const char *database) {
    buf text = buf_init(BUF_NO_LIMIT);
    if (!database) {
        account_each_database(h.account, 0, list_database, &text);
    } else {
        struct database *d = NULL;
        assert_int_equal(account_database(h.account, slice_str(database), false, &d), OK);
        account_each_container(h.account, d, 0, list_container, &text);
        database_give(d);
    }
    const char *made = arena_text(&h.arena, buf_view(&text));
    buf_free(&text);
    return made;
}

static const char *offers(void) {
    buf text = buf_init(BUF_NO_LIMIT);
    account_each_offer(h.account, 0, list_offer, &text);
    const char *made = arena_text(&h.arena, buf_view(&text));
    buf_free(&text);
    return made;
}

/* ---- databases ---- */

static void databases_come_and_go(void **state) {
    (void)state;
    assert_int_equal(harness_create_database(&h, "one", none), OK);
    assert_int_equal(harness_create_database(&h, "two words ñ", none), OK);
    assert_int_equal(harness_create_database(&h, "one", none), E_CONFLICT);
    assert_int_equal(harness_create_database(&h, "One", none), OK); /* names are case-sensitive */
    assert_string_equal(listing(NULL), "one two words ñ One ");
    harness_restart(&h);
    assert_string_equal(listing(NULL), "one two words ñ One ");
    assert_int_equal(harness_create_database(&h, "one", none), E_CONFLICT);
    assert_int_equal(harness_delete_database(&h, "one"), OK);
    assert_int_equal(harness_delete_database(&h, "one"), E_NOT_FOUND);
    assert_int_equal(harness_create_database(&h, "one", none), OK); /* a name can be reused; the new one is listed last */
    assert_string_equal(listing(NULL), "two words ñ One one ");
    harness_restart(&h);
    assert_string_equal(listing(NULL), "two words ñ One one ");
}

static void names_that_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"", "a/b", "a\\b", "a#b", "a?b", "blank at the end "};
    char longest[LIMIT_NAME_BYTES + 2];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(harness_create_database(&h, wrong[i], none), E_BAD_REQUEST);
    }
    memset(longest, 'x', sizeof longest);
    longest[LIMIT_NAME_BYTES + 1] = 0;
    assert_int_equal(harness_create_database(&h, longest, none), E_BAD_REQUEST);
    longest[LIMIT_NAME_BYTES] = 0;
    assert_int_equal(harness_create_database(&h, longest, none), OK);
    database_creation c = {.id = slice_of("a\0b", 3)};
    assert_int_equal(harness_change(&h, &c, account_create_database), E_BAD_REQUEST);
    assert_int_equal(harness_create_database(&h, "d", none), OK);
    container *made;
    assert_int_equal(harness_create_container(&h, "d", "{\"id\":\"a\\u0000b\"," KEY "}", 400, &made), E_BAD_REQUEST);
    assert_int_equal(harness_create_container(&h, "d", "{\"id\":\"a/b\"," KEY "}", 400, &made), E_BAD_REQUEST);
    assert_int_equal(harness_create_container(&h, "d", "{\"id\":7," KEY "}", 400, &made), E_BAD_REQUEST);
    assert_int_equal(harness_create_container(&h, "d", "{" KEY "}", 400, &made), E_BAD_REQUEST);
}

/* ---- containers ---- */

static void containers_come_and_go(void **state) {
    (void)state;
    assert_int_equal(harness_create_database(&h, "d", none), OK);
    assert_int_equal(harness_create_database(&h, "e", none), OK);
    container *one = make("d", "{\"id\":\"one\"," KEY "}", 400), *two = make("d", "{\"id\":\"two\"," KEY "}", 4500);
    container *other = make("e", "{\"id\":\"one\"," KEY "}", 0), *made;
    assert_int_equal(harness_create_container(&h, "d", "{\"id\":\"one\"," KEY "}", 400, &made), E_CONFLICT);
    assert_int_equal(harness_create_container(&h, "nobody", "{\"id\":\"one\"," KEY "}", 400, &made), E_OWNER_NOT_FOUND);
    assert_string_equal(listing("d"), "one(1) two(5) ");
    assert_memory_not_equal(one->rid, other->rid, 8);
    unsigned char rid_before[8];
    uint32_t number_before = one->space->container, segment_before = one->tiles->ranges[0]->segment;
    memcpy(rid_before, one->rid, 8);
    harness_restart(&h);
    assert_string_equal(listing("d"), "one(1) two(5) ");
    container *again = harness_found(&h, "d", "one");
    assert_memory_equal(again->rid, rid_before, 8);
    assert_int_equal(again->space->container, number_before);
    assert_int_equal(again->tiles->ranges[0]->segment, segment_before);
    container_give(again);
    assert_int_equal(harness_delete_container(&h, "d", "one"), OK);
    assert_int_equal(harness_delete_container(&h, "d", "one"), E_NOT_FOUND);
    assert_int_equal(harness_delete_container(&h, "nobody", "one"), E_OWNER_NOT_FOUND);
    assert_null(harness_find(&h, "d", "one"));
    harness_restart(&h);
    assert_string_equal(listing("d"), "two(5) ");
    container_give(one);
    container_give(two);
    container_give(other);
}

/* A container created again under an old name is a new one: empty, with new numbers. */
static void a_name_made_again_is_empty(void **state) {
    (void)state;
    assert_int_equal(harness_create_database(&h, "d", none), OK);
    uint32_t last_number = 0, last_segment = 0;
    for (int i = 0; i < 5; i++) {
        container *c = make("d", "{\"id\":\"c\"," KEY "}", 2000);
        assert_true(c->space->container > last_number && c->tiles->ranges[0]->segment > last_segment);
        last_number = c->space->container;
        last_segment = c->tiles->ranges[1]->segment;
        assert_int_equal(harness_count(c), 0);
        assert_string_equal(harness_feed(&h, c, NULL, 10, 100), "");
        assert_null(harness_read(&h, c, "[\"a\"]", "1"));
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
        assert_non_null(harness_read(&h, c, "[\"a\"]", "1"));
        container_give(c);
        if (i % 2) {
            assert_int_equal(harness_delete_container(&h, "d", "c"), OK);
        } else {
            assert_int_equal(harness_delete_database(&h, "d"), OK);
            assert_int_equal(harness_create_database(&h, "d", none), OK);
        }
        if (i == 2) {
            harness_restart(&h);
        }
    }
}

/* Bytes of the slots of the counts log, which are reused in turn and never freed. */
static size_t log_bytes(void) {
    buf log = buf_init(BUF_NO_LIMIT);
    dump_family(h.store, STORE_META, NULL, SLICE_LIT("L"), SLICE_LIT("M"), false, &log);
    size_t n = log.n;
    buf_free(&log);
    return n;
}

/* A deleted container leaves nothing in the store: no item, no index entry, no count, no offer, no backfill. */
static void deleting_leaves_nothing(void **state) {
    (void)state;
    assert_int_equal(harness_create_database(&h, "d", manual(400)), OK);
    assert_int_equal(harness_delete_database(&h, "d"), OK);
    buf before = dump_store(h.store, NULL);
    for (int whole = 0; whole < 2; whole++) {
        assert_int_equal(harness_create_database(&h, "d", manual(400)), OK);
        for (int i = 0; i < 3; i++) {
            char properties[200], body[64];
            snprintf(properties, sizeof properties, "{\"id\":\"c%d\"," KEY "}", i);
            container *c = make("d", properties, i ? 3000 : 0);
            for (int j = 0; j < 30; j++) {
                snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":%d,\"ttl\":50}", j, j);
                assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
            }
            snprintf(properties, sizeof properties, "{\"id\":\"c%d\",\"defaultTtl\":100," KEY "}", i);
            char name[8];
            snprintf(name, sizeof name, "c%d", i);
            assert_int_equal(harness_replace_container(&h, "d", name, properties), OK);
            container_give(c);
        }
        for (int i = 0; i < 3 && !whole; i++) {
            char name[8];
            snprintf(name, sizeof name, "c%d", i);
            assert_int_equal(harness_delete_container(&h, "d", name), OK);
        }
        assert_int_equal(harness_delete_database(&h, "d"), OK);
        assert_string_equal(offers(), "");
        buf after = dump_store(h.store, NULL);
        assert_int_equal(after.n - log_bytes(), before.n); /* only the account's number record differs, with the same length */
        buf_free(&after);
    }
    buf_free(&before);
}

static void replacing_settings(void **state) {
    (void)state;
    assert_int_equal(harness_create_database(&h, "d", none), OK);
    container *before = make("d", "{\"id\":\"a\"," KEY "}", 400), *second = make("d", "{\"id\":\"b\"," KEY "}", 400);
    assert_int_equal(harness_write(&h, before, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
    assert_int_equal(
        harness_replace_container(&h, "d", "a", "{\"id\":\"a\",\"defaultTtl\":10,\"indexingPolicy\":{\"indexingMode\":\"none\"}}"), OK);
    container *after = harness_found(&h, "d", "a");
    assert_ptr_not_equal(before, after);
    assert_ptr_equal(before->space, after->space);
    assert_int_equal(before->ttl, TTL_OFF); /* holders of the old version see no change */
    assert_int_equal(after->ttl, 10);
    assert_true(after->index.off && after->version > before->version);
    assert_int_equal(after->key.n, 1);
    assert_string_equal(listing("d"), "a(1) b(1) "); /* keeps its place */
    static const struct {
        const char *properties;
        err code;
    } wrong[] = {
        {"{\"id\":\"other\"," KEY "}", E_BAD_REQUEST},
        {"{\"id\":\"a\",\"partitionKey\":{\"paths\":[\"/other\"]}}", E_BAD_REQUEST},
        {"{\"id\":\"a\",\"partitionKey\":{\"paths\":[\"/pk\",\"/b\"],\"kind\":\"MultiHash\"}}", E_BAD_REQUEST},
        {"{\"id\":\"a\"," KEY ",\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]}]}}", E_FORBIDDEN},
        {"{\"id\":\"a\"," KEY ",\"defaultTtl\":0}", E_BAD_REQUEST},
        {"{\"id\":\"a\"," KEY ",\"indexingPolicy\":{\"indexingMode\":\"odd\"}}", E_BAD_REQUEST},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(harness_replace_container(&h, "d", "a", wrong[i].properties), wrong[i].code);
    }
    assert_int_equal(harness_replace_container(&h, "d", "nobody", "{\"id\":\"nobody\"," KEY "}"), E_NOT_FOUND);
    container_give(before);
    container_give(after);
    container_give(second);
    harness_restart(&h);
    after = harness_found(&h, "d", "a");
    assert_int_equal(after->ttl, 10);
    assert_int_equal(harness_count(after), 1);
    container_give(after);
    assert_string_equal(listing("d"), "a(1) b(1) ");
}

static void settings_that_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "{\"id\":\"c\",\"partitionKey\":7}",
        "{\"id\":\"c\",\"partitionKey\":{}}",
        "{\"id\":\"c\",\"partitionKey\":{\"paths\":[]}}",
        "{\"id\":\"c\",\"partitionKey\":{\"paths\":\"/pk\"}}",
        "{\"id\":\"c\",\"partitionKey\":{\"paths\":[7]}}",
        "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"pk\"]}}",
        "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/a\",\"/b\"]}}",
        "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/a\"],\"kind\":\"Range\"}}",
        "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/a\"],\"version\":3}}",
        "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/a\",\"/b\",\"/c\",\"/d\"],\"kind\":\"MultiHash\"}}",
        "{\"id\":\"c\"," KEY ",\"defaultTtl\":0}",
        "{\"id\":\"c\"," KEY ",\"defaultTtl\":-2}",
        "{\"id\":\"c\"," KEY ",\"defaultTtl\":\"1\"}",
        "{\"id\":\"c\"," KEY ",\"defaultTtl\":1.5}",
        "{\"id\":\"c\"," KEY ",\"uniqueKeyPolicy\":7}",
        "{\"id\":\"c\"," KEY ",\"uniqueKeyPolicy\":{\"uniqueKeys\":7}}",
        "{\"id\":\"c\"," KEY ",\"uniqueKeyPolicy\":{\"uniqueKeys\":[{}]}}",
        "{\"id\":\"c\"," KEY ",\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[]}]}}",
        "{\"id\":\"c\"," KEY ",\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"u\"]}]}}",
        "{\"id\":\"c\"," KEY ",\"indexingPolicy\":7}",
    };
    assert_int_equal(harness_create_database(&h, "d", none), OK);
    buf before = dump_store(h.store, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        container *c;
        err code = harness_create_container(&h, "d", wrong[i], 400, &c);
        if (code != E_BAD_REQUEST) {
            fail_msg("%s: %s", wrong[i], err_lookup(code)->name);
        }
    }
    buf after = dump_store(h.store, NULL);
    assert_true(slice_eq(buf_view(&before), buf_view(&after)));
    buf_free(&before);
    buf_free(&after);
}

/* ---- finding ---- */

static void by_rid(void **state) {
    (void)state;
    assert_int_equal(harness_create_database(&h, "d", none), OK);
    assert_int_equal(harness_create_database(&h, "e", none), OK);
    container *c = make("d", "{\"id\":\"c\"," KEY "}", 400), *found = NULL;
    struct database *d = NULL, *e = NULL;
    assert_int_equal(account_database(h.account, SLICE_LIT("d"), false, &d), OK);
    assert_int_equal(account_database(h.account, SLICE_LIT("e"), false, &e), OK);
    buf d_rid = buf_init(100), e_rid = buf_init(100), c_rid = buf_init(100);
    rid container_rid = {.n = 8};
    memcpy(container_rid.bytes, c->rid, 8);
    rid_write(&d_rid, &d->rid);
    rid_write(&e_rid, &e->rid);
    rid_write(&c_rid, &container_rid);
    assert_int_equal(account_container(h.account, buf_view(&d_rid), true, buf_view(&c_rid), true, &found), OK);
    assert_ptr_equal(found, c);
    container_give(found);
    assert_int_equal(account_container(h.account, SLICE_LIT("d"), false, SLICE_LIT("c"), false, &found), OK);
    container_give(found);
    assert_int_equal(account_container(h.account, buf_view(&e_rid), true, buf_view(&c_rid), true, &found), E_NOT_FOUND);
    assert_int_equal(account_container(h.account, buf_view(&d_rid), false, buf_view(&c_rid), false, &found), E_OWNER_NOT_FOUND);
    /* A name that looks like a rid is treated as a name if no such rid exists. */
    assert_int_equal(harness_create_database(&h, "AQAAAQ==", none), OK);
    struct database *odd = NULL;
    assert_int_equal(account_database(h.account, SLICE_LIT("AQAAAQ=="), true, &odd), OK);
    assert_string_equal(odd->id, "AQAAAQ==");
    database_give(odd);
    database_give(d);
    database_give(e);
    container_give(c);
    harness_restart(&h);
    assert_int_equal(account_container(h.account, buf_view(&d_rid), true, buf_view(&c_rid), true, &found), OK);
    assert_true(slice_eq(found->id, SLICE_LIT("c")));
    container_give(found);
    buf_free(&d_rid);
    buf_free(&e_rid);
    buf_free(&c_rid);
}

/* ---- offers ---- */

static err replace_offer(uint32_t number, throughput_setting t) {
    offer_replacement c = {.offer = rid_offer(number), .throughput = t};
    return harness_change(&h, &c, account_replace_offer);
}

static double provisioned_before(const container *c, double expected) {
    provisioned_step steps[PROVISIONED_CHANGES_MAX];
    assert_int_equal(report_provisioned_steps(c, 0, steps), 1);
    assert_true((int)steps[0].after == (int)expected);
    return steps[0].before;
}

/* The balancer, which notes it once a second, does not run here: it may be late. */
static void what_is_provisioned_is_noted_when_it_is_set(void **state) {
    (void)state;
    double now;
    assert_int_equal(harness_create_database(&h, "shared", manual(1000)), OK);
    container *shares = make("shared", "{\"id\":\"a\"," KEY "}", 0), *own = make("shared", "{\"id\":\"b\"," KEY "}", 500);
    report_provisioned(own, false, clock_wall_ms(h.account->items.clock) / 1000, &now, 1);
    assert_int_equal((int)now, 500);
    report_provisioned(shares, false, clock_wall_ms(h.account->items.clock) / 1000, &now, 1);
    assert_int_equal((int)now, 1000);
    assert_int_equal(replace_offer(1, manual(2000)), OK);
    assert_int_equal(replace_offer(2, manual(600)), OK);
    assert_int_equal((int)provisioned_before(shares, 2000), 1000);
    assert_int_equal((int)provisioned_before(own, 600), 500);
    account_balance(h.account, 0);
    assert_int_equal((int)provisioned_before(own, 600), 500);
    container_give(shares);
    container_give(own);
}

static void offers_follow_their_resources(void **state) {
    (void)state;
    container *c, *made;
    assert_int_equal(harness_create_database(&h, "shared", manual(1000)), OK);
    assert_int_equal(harness_create_database(&h, "plain", none), OK);
    c = make("shared", "{\"id\":\"a\"," KEY "}", 0); /* without its own offer */
    container_give(c);
    c = make("shared", "{\"id\":\"b\"," KEY "}", 500);
    container_give(c);
    c = make("plain", "{\"id\":\"a\"," KEY "}", 0); /* gets the minimum */
    container_give(c);
    assert_string_equal(offers(), "1/0:1000 1/2:500 2/3:400 ");
    assert_int_equal(harness_create_container(&h, "shared", "{\"id\":\"fixed\"}", 0, &made), E_BAD_REQUEST);
    assert_int_equal(harness_create_container(&h, "plain", "{\"id\":\"x\"," KEY "}", 399, &made), E_BAD_REQUEST);
    assert_int_equal(harness_create_container(&h, "plain", "{\"id\":\"x\"," KEY "}", 450, &made), E_BAD_REQUEST);
    assert_int_equal(harness_create_database(&h, "x", (throughput_setting){.kind = THROUGHPUT_AUTOSCALE, .value = 1500}), E_BAD_REQUEST);
    assert_int_equal(replace_offer(2, manual(100000)), OK);
    assert_int_equal(replace_offer(2, manual(90000)), E_OFFER_BUSY); /* the earlier splits are still pending */
    account_balance(h.account, 0);
    assert_int_equal(replace_offer(2, manual(900)), E_BAD_REQUEST); /* the minimum is a hundredth of the highest value */
    assert_int_equal(replace_offer(2, manual(1000)), OK);
    assert_int_equal(replace_offer(3, (throughput_setting){.kind = THROUGHPUT_AUTOSCALE, .value = 4000}), OK);
    assert_int_equal(replace_offer(77, manual(400)), E_NOT_FOUND);
    harness_restart(&h);
    assert_string_equal(offers(), "1/0:1000 1/2:1000 2/3:auto4000 ");
    offer o;
    assert_true(account_offer_of(h.account, 1, 2, &o));
    assert_int_equal(o.highest, 100000);
    assert_false(account_offer_of(h.account, 1, 1, &o));
    rid third = rid_offer(3);
    assert_int_equal(account_offer(h.account, &third, &o), OK);
    assert_int_equal(o.container, 3);
    assert_int_equal(harness_delete_container(&h, "shared", "b"), OK);
    assert_string_equal(offers(), "1/0:1000 2/3:auto4000 ");
    assert_int_equal(harness_delete_database(&h, "shared"), OK);
    assert_string_equal(offers(), "2/3:auto4000 ");
    harness_restart(&h);
    assert_string_equal(offers(), "2/3:auto4000 ");
}

/* 10 RU/s for each gigabyte, in steps of 1,000 RU/s and of the increment. */
static void autoscale_grows_with_the_data(void **state) {
    (void)state;
    throughput_setting plain = {.kind = THROUGHPUT_AUTOSCALE, .value = 4000}, steps = plain;
    steps.has_increment = true;
    steps.increment_percent = 50;
    uint64_t gigabyte = 1 << 30;
    assert_int_equal(throughput_for_storage(plain, 400 * gigabyte), 4000);
    assert_int_equal(throughput_for_storage(steps, 400 * gigabyte), 4000);
    assert_int_equal(throughput_for_storage(plain, 401 * gigabyte), 5000);
    assert_int_equal(throughput_for_storage(steps, 401 * gigabyte), 6000);
    assert_int_equal(throughput_for_storage(steps, 601 * gigabyte), 9000);
    assert_int_equal(throughput_for_storage(steps, 901 * gigabyte), 14000);
    steps.increment_percent = 1;
    assert_int_equal(throughput_for_storage(steps, 401 * gigabyte), 5000);
    assert_int_equal(throughput_for_storage(steps, 1000000 * gigabyte), THROUGHPUT_MAX);
    steps.increment_percent = INCREMENT_PERCENT_MAX;
    assert_int_equal(throughput_for_storage(steps, 99999 * gigabyte), THROUGHPUT_MAX);
}

static void an_increment_is_kept(void **state) {
    (void)state;
    throughput_setting t = {.kind = THROUGHPUT_AUTOSCALE, .value = 4000, .has_increment = true, .increment_percent = 20};
    assert_int_equal(harness_create_database(&h, "grows", t), OK);
    harness_restart(&h);
    offer o;
    assert_true(account_offer_of(h.account, 1, 0, &o));
    assert_true(o.throughput.has_increment);
    assert_int_equal(o.throughput.increment_percent, 20);
    t.increment_percent = INCREMENT_PERCENT_MAX + 1;
    assert_int_equal(replace_offer(1, t), E_BAD_REQUEST);
}

/* ---- etags, lsn ---- */

static void changes_with_a_wrong_etag_are_refused(void **state) {
    (void)state;
    assert_int_equal(harness_create_database(&h, "d", none), OK);
    container *c = make("d", "{\"id\":\"c\"," KEY "}", 400);
    container_deletion change = {.base = {.if_match = SLICE_LIT("\"0\"")}, .database = harness_name("d"), .container = harness_name("c")};
    database_deletion whole = {.base = {.if_match = SLICE_LIT("\"0\"")}, .database = harness_name("d")};
    assert_int_equal(harness_change(&h, &change, account_delete_container), E_PRECONDITION);
    assert_int_equal(harness_change(&h, &whole, account_delete_database), E_PRECONDITION);
    char etag[ITEM_ETAG_BYTES + 1];
    item_etag(etag, c->version, (uint32_t)c->ts);
    change.base.if_match = slice_str(etag);
    assert_int_equal(harness_change(&h, &change, account_delete_container), OK);
    container_give(c);
}

static void the_accounts_lsn_never_goes_back(void **state) {
    (void)state;
    uint64_t last = account_lsn(h.account);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(i % 2 ? harness_delete_database(&h, "d") : harness_create_database(&h, "d", none), OK);
        assert_true(account_lsn(h.account) > last);
        last = account_lsn(h.account);
        if (i > 3) {
            harness_restart(&h);
            assert_true(account_lsn(h.account) >= last);
        }
    }
}

/* However often the number of pool buckets changes, a range refers to no more buckets than exist. */
static void shared_throughput_leaves_no_buckets_behind(void **state) {
    (void)state;
    uint32_t most = h.rules.range_throughput;
    assert_int_equal(harness_create_database(&h, "shared", manual(most)), OK);
    container *c = make("shared", "{\"id\":\"a\"," KEY "}", 0);
    for (uint32_t i = 0; i < 60; i++) {
        assert_int_equal(replace_offer(1, manual(most * (1 + i % 3))), OK);
        account_balance(h.account, 0);
        container_give(c);
        c = harness_found(&h, "shared", "a");
        database_node *d = account__find_database(h.account, SLICE_LIT("shared"), false);
        assert_int_equal(d->pool_n, 1 + i % 3);
        assert_true(d->pool_n + d->spare_n <= 6);
        for (size_t j = 0; j < c->tiles->map->n; j++) {
            const container_range *range = c->tiles->ranges[j];
            assert_true(range->past_buckets_n <= 7); /* the pool's buckets and its own */
            double rate = atomic_load(&container_range_bucket(range)->rate);
            assert_true(h.rules.unlimited ? rate == 0 : rate > 0);
        }
    }
    container_give(c);
}

/* ---- the clock ---- */

static bool opens(void);

static void a_clock_that_is_wrong_by_ages_is_refused(void **state) {
    (void)state;
    int64_t now = h.clock.wall_ms;
    for (int i = 0; i < 2; i++) {
        h.clock.wall_ms = i ? -1000 : ((int64_t)UINT32_MAX + 5) * 1000;
        assert_false(opens());
    }
    h.clock.wall_ms = now;
    assert_true(opens());
}

/* ---- damaged records ---- */

static void write_meta(const char *key, size_t key_n, slice value) {
    store_batch b;
    store_batch_init(&b);
    store_put(&b, STORE_META, slice_of(key, key_n), value);
    assert_int_equal(store_write(h.store, &b), OK);
    store_batch_free(&b);
}

static bool opens(void) {
    account *a = NULL;
    char why[256] = "";
    account_options options = harness_options(&h);
    err code = account_open(&options, &a, why, sizeof why);
    if (code == OK) {
        account_close(a);
    } else {
        assert_true(*why != 0);
    }
    return code == OK;
}

static void damaged_records_are_told(void **state) {
    (void)state;
    static const struct {
        const char *key;
        size_t n;
    } keys[] = {{"D\0\0\0\1", 5}, {"C\0\0\0\1\0\0\0\1", 9}, {"D\0\0", 3}, {"C\0\0\0\1", 5}, {"C\0\0\0\7\0\0\0\1", 9},
                {"O\0", 2},       {"R\0\0\0\1\0\0\0\0", 9}};
    container *c;
    assert_int_equal(harness_create_database(&h, "d", none), OK);
    c = make("d", "{\"id\":\"c\"," KEY "}", 400);
    container_give(c);
    assert_true(opens());
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        store_value good = {0};
        bool was = store_get(h.store, STORE_META, NULL, slice_of(keys[i].key, keys[i].n), &good) == OK;
        slice before = was ? arena_copy(&h.arena, good.bytes) : SLICE_EMPTY;
        store_give(&good);
        write_meta(keys[i].key, keys[i].n, SLICE_LIT("\5\0\0\0\0"));
        if (opens()) {
            fail_msg("record %zu is damaged, and nobody says so", i);
        }
        if (was) {
            write_meta(keys[i].key, keys[i].n, before);
        } else {
            store_batch b;
            store_batch_init(&b);
            store_delete(&b, STORE_META, slice_of(keys[i].key, keys[i].n));
            assert_int_equal(store_write(h.store, &b), OK);
            store_batch_free(&b);
        }
        assert_true(opens());
    }
}

int main(void) {
    log_set_level(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(databases_come_and_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_that_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(containers_come_and_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_name_made_again_is_empty, set_up, tear_down),
        cmocka_unit_test_setup_teardown(deleting_leaves_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(replacing_settings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(settings_that_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(by_rid, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_provisioned_is_noted_when_it_is_set, set_up, tear_down),
        cmocka_unit_test_setup_teardown(offers_follow_their_resources, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shared_throughput_leaves_no_buckets_behind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(autoscale_grows_with_the_data, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_increment_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_clock_that_is_wrong_by_ages_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(changes_with_a_wrong_etag_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_accounts_lsn_never_goes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_records_are_told, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
