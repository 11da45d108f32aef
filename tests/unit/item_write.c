/* Writing items on the in-memory store: rejected writes, stamps, batches, bulk, unique keys; and random writes against a model, with
 * restarts. After each test the store is checked for consistency (harness_check). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"

#define PLAIN "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}"
#define UNIQUE                                                                                                                             \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},"                                                \
    "\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]},{\"paths\":[\"/v\",\"/w/x\"]}]}}"

typedef struct world {
    harness h;
    container *c;
} world;

static world *the;

static int set_up_with(void **state, const char *properties, uint32_t throughput) {
    static world w;
    (void)state;
    harness_open(&w.h);
    w.c = harness_container(&w.h, properties, throughput);
    the = &w;
    return 0;
}

static int plain(void **state) {
    return set_up_with(state, PLAIN, 400);
}

static int ranges(void **state) {
    return set_up_with(state, PLAIN, 5000);
}

static int unique(void **state) {
    return set_up_with(state, UNIQUE, 2000);
}

static int tear_down(void **state) {
    (void)state;
    harness_check(&the->h, the->c);
    container_give(the->c);
    harness_close(&the->h);
    return 0;
}

static err put(item_kind kind, const char *body) {
    return harness_write(&the->h, the->c, kind, NULL, NULL, body);
}

static err take_away(const char *key, const char *id) {
    return harness_write(&the->h, the->c, ITEM_DELETE, key, id, NULL);
}

static void assert_is(const char *key, const char *id, const char *json) {
    const char *found = harness_read(&the->h, the->c, key, id);
    if (!found || strcmp(found, json) != 0) {
        fail_msg("%s is %s, expected %s", id, found ? found : "not there", json);
    }
}

static void assert_absent(const char *key, const char *id) {
    assert_null(harness_read(&the->h, the->c, key, id));
}

/* ---- one at a time ---- */

static void the_life_of_an_item(void **state) {
    (void)state;
    assert_absent("[\"a\"]", "1");
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}"), OK);
    assert_is("[\"a\"]", "1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}");
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"1\",\"pk\":\"a\",\"n\":2}"), E_CONFLICT);
    assert_is("[\"a\"]", "1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}");
    assert_int_equal(put(ITEM_UPSERT, "{\"id\":\"1\",\"pk\":\"a\",\"n\":3}"), OK);
    assert_int_equal(harness_write(&the->h, the->c, ITEM_REPLACE, "[\"a\"]", "1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":4}"), OK);
    assert_int_equal(harness_write(&the->h, the->c, ITEM_EDIT, "[\"a\"]", "1", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":10}]"), OK);
    assert_is("[\"a\"]", "1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":14}");
    assert_int_equal(harness_count(the->c), 1);
    assert_int_equal(take_away("[\"b\"]", "1"), E_NOT_FOUND);
    assert_int_equal(take_away("[\"a\"]", "1"), OK);
    assert_absent("[\"a\"]", "1");
    assert_int_equal(take_away("[\"a\"]", "1"), E_NOT_FOUND);
    assert_int_equal(harness_write(&the->h, the->c, ITEM_REPLACE, "[\"a\"]", "1", "{\"id\":\"1\",\"pk\":\"a\"}"), E_NOT_FOUND);
    assert_int_equal(harness_write(&the->h, the->c, ITEM_EDIT, "[\"a\"]", "1", "[{\"op\":\"remove\",\"path\":\"/n\"}]"), E_NOT_FOUND);
    assert_int_equal(harness_count(the->c), 0);
}

static void the_same_id_in_another_partition_is_another_item(void **state) {
    (void)state;
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"1\",\"pk\":\"b\"}"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"1\",\"pk\":1}"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"1\",\"pk\":null}"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"1\"}"), OK);
    assert_int_equal(take_away("[null]", "1"), OK);
    assert_is("[{}]", "1", "{\"id\":\"1\"}");
    assert_is("[1.0]", "1", "{\"id\":\"1\",\"pk\":1}");
    assert_int_equal(harness_count(the->c), 4);
}

static void stamps_grow_and_numbers_are_never_given_twice(void **state) {
    (void)state;
    item_op made, again, changed, gone;
    assert_int_equal(harness_one(&the->h, the->c, &made, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
    assert_true(made.created);
    assert_int_equal(made.after.ts, HARNESS_START_S);
    clock_manual_advance(&the->h.clock, 5000);
    assert_int_equal(harness_one(&the->h, the->c, &changed, ITEM_UPSERT, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"x\":1}"), OK);
    assert_false(changed.created);
    assert_int_equal(changed.after.number, made.after.number);
    assert_int_equal(changed.after.lsn, made.after.lsn + 1);
    assert_int_equal(changed.after.ts, HARNESS_START_S + 5);
    assert_true(changed.before_there);
    assert_int_equal(changed.before.lsn, made.after.lsn);
    assert_int_equal(harness_one(&the->h, the->c, &gone, ITEM_DELETE, "[\"a\"]", "1", NULL), OK);
    assert_int_equal(gone.after.lsn, changed.after.lsn + 1);
    harness_restart(&the->h);
    container_give(the->c);
    the->c = harness_found(&the->h, "d", "c");
    assert_int_equal(harness_one(&the->h, the->c, &again, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
    assert_int_equal(again.after.number, made.after.number + 1);
    assert_int_equal(again.after.lsn, gone.after.lsn + 1);
}

static void etags(void **state) {
    (void)state;
    item_op o;
    char etag[ITEM_ETAG_BYTES + 1];
    assert_int_equal(harness_one(&the->h, the->c, &o, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
    item_etag(etag, o.after.lsn, o.after.ts);
    assert_string_equal(etag, "\"00000001-0000-0d00-0000-6b49d2000000\"");
    slice quoted = slice_str(etag), bare = slice_of(etag + 1, ITEM_ETAG_BYTES - 2);
    static const item_kind kinds[] = {ITEM_UPSERT, ITEM_REPLACE, ITEM_EDIT, ITEM_DELETE};
    for (size_t i = 0; i < 4; i++) {
        const char *text = kinds[i] == ITEM_EDIT ? "[{\"op\":\"set\",\"path\":\"/x\",\"value\":1}]" : "{\"id\":\"1\",\"pk\":\"a\"}";
        assert_int_equal(harness_prepare(&the->h, the->c, &o, kinds[i], "[\"a\"]", "1", text), OK);
        o.if_match = SLICE_LIT("\"00000009-0000-0d00-0000-6b49d2000000\"");
        assert_int_equal(harness_commit(&the->h, the->c, &o, 1, true), E_PRECONDITION);
    }
    assert_true(item_etag_matches(quoted, 1, HARNESS_START_S) && item_etag_matches(bare, 1, HARNESS_START_S));
    assert_true(item_etag_matches(SLICE_LIT("*"), 7, 7));
    assert_false(item_etag_matches(quoted, 2, HARNESS_START_S) || item_etag_matches(SLICE_EMPTY, 1, HARNESS_START_S));
    assert_int_equal(harness_prepare(&the->h, the->c, &o, ITEM_REPLACE, "[\"a\"]", "1", "{\"id\":\"1\",\"pk\":\"a\",\"x\":2}"), OK);
    o.if_match = quoted;
    assert_int_equal(harness_commit(&the->h, the->c, &o, 1, true), OK);
    assert_int_equal(harness_prepare(&the->h, the->c, &o, ITEM_DELETE, "[\"a\"]", "1", NULL), OK);
    o.if_match = quoted; /* the etag from before the replace */
    assert_int_equal(harness_commit(&the->h, the->c, &o, 1, true), E_PRECONDITION);
    assert_is("[\"a\"]", "1", "{\"id\":\"1\",\"pk\":\"a\",\"x\":2}");
}

static void ranges_have_numbers_of_their_own(void **state) {
    (void)state;
    assert_int_equal(the->c->tiles->map->n, 5);
    uint64_t seen[200];
    bool used[5] = {false};
    for (int i = 0; i < 200; i++) {
        item_op o;
        char body[64];
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\"}", i, i);
        assert_int_equal(harness_one(&the->h, the->c, &o, ITEM_CREATE, NULL, NULL, body), OK);
        seen[i] = o.after.number;
        used[container_route(the->c->tiles, &o.key.epk)->id] = true;
        for (int j = 0; j < i; j++) {
            assert_true(seen[i] != seen[j]);
        }
    }
    for (int i = 0; i < 5; i++) {
        assert_true(used[i]);
    }
    assert_int_equal(harness_count(the->c), 200);
}

/* ---- invalid requests ---- */

static void bodies_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *body, *key;
        err code;
    } cases[] = {
        {"{\"pk\":\"a\"}", NULL, E_BAD_REQUEST},
        {"{\"id\":7,\"pk\":\"a\"}", NULL, E_BAD_REQUEST},
        {"{\"id\":\"\",\"pk\":\"a\"}", NULL, E_BAD_REQUEST},
        {"{\"id\":\"a/b\",\"pk\":\"a\"}", NULL, E_BAD_REQUEST},
        {"{\"id\":\"a\\\\b\",\"pk\":\"a\"}", NULL, E_BAD_REQUEST},
        {"{\"id\":\"1\",\"pk\":[1]}", NULL, E_BAD_REQUEST},
        {"{\"id\":\"1\",\"pk\":{}}", NULL, OK},
        {"{\"id\":\"1\",\"pk\":\"a\"}", "[\"b\"]", E_KEY_MISMATCH},
        {"{\"id\":\"1\",\"pk\":\"a\"}", "[\"a\",\"b\"]", E_KEY_COMPONENTS},
        {"{\"id\":\"1\",\"pk\":\"a\"}", "[]", E_KEY_COMPONENTS},
        {"{\"id\":\"1\"}", "[\"a\"]", E_KEY_MISMATCH},
        {"{\"id\":\"1\",\"pk\":\"a\",\"ttl\":0}", NULL, E_BAD_REQUEST},
        {"{\"id\":\"1\",\"pk\":\"a\",\"ttl\":-2}", NULL, E_BAD_REQUEST},
        {"{\"id\":\"1\",\"pk\":\"a\",\"ttl\":1.5}", NULL, E_BAD_REQUEST},
        {"{\"id\":\"1\",\"pk\":\"a\",\"ttl\":2147483648}", NULL, E_BAD_REQUEST},
        {"{\"id\":\"1\",\"pk\":\"a\",\"ttl\":1e300}", NULL, E_BAD_REQUEST},
        {"{\"id\":\"1\",\"pk\":\"a\",\"ttl\":\"1\"}", NULL, E_BAD_REQUEST},
        {"{\"id\":\"1\",\"pk\":\"a\",\"ttl\":-1}", "[\"a\"]", OK},
        {"{\"id\":\"2\",\"pk\":\"a\",\"ttl\":2147483647}", "[\"a\"]", OK},
        {"{\"id\":\"3\",\"pk\":\"a\",\"ttl\":null}", NULL, E_BAD_REQUEST},
        {"{\"id\":\"4 ?#ñ\",\"pk\":\"a\"}", NULL, OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        err code = harness_write(&the->h, the->c, ITEM_CREATE, cases[i].key, NULL, cases[i].body);
        if (code != cases[i].code) {
            fail_msg("%s: %s", cases[i].body, err_lookup(code)->name);
        }
    }
}

static void ids_up_to_the_limit(void **state) {
    (void)state;
    char body[2000], id[LIMIT_ID_BYTES + 2];
    item_key key;
    pkey header = {.n = 1, .values = {{.type = PKEY_STRING, .text = SLICE_LIT("a")}}};
    memset(id, 'x', sizeof id);
    id[LIMIT_ID_BYTES] = 0;
    snprintf(body, sizeof body, "{\"id\":\"%s\",\"pk\":\"a\"}", id);
    assert_int_equal(put(ITEM_CREATE, body), OK);
    assert_is("[\"a\"]", id, body);
    snprintf(body, sizeof body, "{\"id\":\"%sx\",\"pk\":\"a\"}", id);
    assert_int_equal(put(ITEM_CREATE, body), E_BAD_REQUEST);
    static char longer[20000]; /* as long as a URL may be */
    memset(longer, 'x', sizeof longer);
    op *o = harness_op(&the->h);
    assert_int_equal(item_check_key(o, the->c, &header, slice_of(longer, sizeof longer), &key), E_BAD_REQUEST);
    assert_int_equal(item_check_key(o, the->c, NULL, SLICE_LIT("x"), &key), E_BAD_REQUEST);
}

static void replace_and_patch_keep_the_key(void **state) {
    (void)state;
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
    assert_int_equal(harness_write(&the->h, the->c, ITEM_REPLACE, "[\"a\"]", "1", "{\"id\":\"1\",\"pk\":\"b\"}"), E_KEY_MISMATCH);
    static const char *const patches[] = {
        "[{\"op\":\"set\",\"path\":\"/id\",\"value\":\"2\"}]",
        "[{\"op\":\"set\",\"path\":\"/pk\",\"value\":\"b\"}]",
        "[{\"op\":\"remove\",\"path\":\"/pk\"}]",
        "[{\"op\":\"set\",\"path\":\"/pk\",\"value\":{}}]",
        "[{\"op\":\"set\",\"path\":\"/ttl\",\"value\":0}]",
        "[{\"op\":\"replace\",\"path\":\"/nothing\",\"value\":1}]",
    };
    for (size_t i = 0; i < sizeof patches / sizeof *patches; i++) {
        assert_int_equal(harness_write(&the->h, the->c, ITEM_EDIT, "[\"a\"]", "1", patches[i]), E_BAD_REQUEST);
        assert_is("[\"a\"]", "1", "{\"id\":\"1\",\"pk\":\"a\"}");
    }
    assert_int_equal(harness_write(&the->h, the->c, ITEM_EDIT, "[\"a\"]", "1", "[{\"op\":\"set\",\"path\":\"/pk\",\"value\":\"a\"}]"), OK);
}

static void a_fixed_container_has_no_key(void **state) {
    (void)state;
    harness *h = &the->h;
    container *fixed;
    assert_int_equal(harness_create_container(h, "d", "{\"id\":\"fixed\"}", 400, &fixed), OK);
    assert_int_equal(harness_write(h, fixed, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":[1]}"), OK);
    assert_int_equal(harness_write(h, fixed, ITEM_CREATE, "[]", NULL, "{\"id\":\"2\"}"), OK);
    assert_int_equal(harness_write(h, fixed, ITEM_CREATE, "[{}]", NULL, "{\"id\":\"3\"}"), OK);
    assert_int_equal(harness_write(h, fixed, ITEM_CREATE, "[\"a\"]", NULL, "{\"id\":\"4\"}"), E_KEY_COMPONENTS);
    assert_int_equal(harness_write(h, fixed, ITEM_DELETE, NULL, "2", NULL), OK);
    assert_string_equal(harness_feed(h, fixed, NULL, 10, 100), "1 3 ");
    harness_check(h, fixed);
    container_give(fixed);
}

/* ---- several at once ---- */

static void prepare(item_op *o, item_kind kind, const char *id, const char *text) {
    assert_int_equal(harness_prepare(&the->h, the->c, o, kind, "[\"a\"]", id, text), OK);
}

static void a_batch_sees_its_own_writes(void **state) {
    (void)state;
    item_op ops[7];
    prepare(&ops[0], ITEM_CREATE, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}");
    prepare(&ops[1], ITEM_EDIT, "1", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]");
    prepare(&ops[2], ITEM_READ, "1", NULL);
    prepare(&ops[3], ITEM_DELETE, "1", NULL);
    prepare(&ops[4], ITEM_CREATE, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"n\":9}");
    prepare(&ops[5], ITEM_UPSERT, NULL, "{\"id\":\"2\",\"pk\":\"a\"}");
    prepare(&ops[6], ITEM_READ, "1", NULL);
    assert_int_equal(harness_commit(&the->h, the->c, ops, 7, true), OK);
    buf text = buf_init(BUF_NO_LIMIT);
    json_from_bson(&text, ops[2].result);
    assert_true(slice_eq(buf_view(&text), SLICE_LIT("{\"id\":\"1\",\"pk\":\"a\",\"n\":2}")));
    buf_free(&text);
    assert_is("[\"a\"]", "1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":9}");
    assert_true(ops[4].after.number > ops[0].after.number);
    assert_int_equal(harness_count(the->c), 2);
    assert_string_equal(harness_feed(&the->h, the->c, NULL, 10, 100), "1 2 ");
}

static void a_batch_is_all_or_nothing(void **state) {
    (void)state;
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}"), OK);
    buf before = dump_store(the->h.store, NULL);
    for (size_t bad = 0; bad < 5; bad++) {
        item_op ops[5];
        prepare(&ops[0], ITEM_CREATE, NULL, "{\"id\":\"2\",\"pk\":\"a\"}");
        prepare(&ops[1], ITEM_DELETE, "1", NULL);
        prepare(&ops[2], ITEM_UPSERT, NULL, "{\"id\":\"3\",\"pk\":\"a\"}");
        prepare(&ops[3], ITEM_UPSERT, NULL, "{\"id\":\"3\",\"pk\":\"a\",\"x\":1}");
        prepare(&ops[4], ITEM_CREATE, NULL, "{\"id\":\"4\",\"pk\":\"a\"}");
        prepare(&ops[bad], ITEM_DELETE, "nobody", NULL);
        assert_int_equal(harness_commit(&the->h, the->c, ops, 5, true), E_NOT_FOUND);
        for (size_t i = 0; i < 5; i++) {
            assert_int_equal(ops[i].code, i == bad ? E_NOT_FOUND : E_FAILED_DEPENDENCY);
        }
        harness_check(&the->h, the->c);
    }
    buf after = dump_store(the->h.store, NULL);
    assert_true(slice_eq(buf_view(&before), buf_view(&after)));
    buf_free(&before);
    buf_free(&after);
}

static void bulk_operations_stand_alone(void **state) {
    (void)state;
    item_op ops[5];
    prepare(&ops[0], ITEM_CREATE, NULL, "{\"id\":\"1\",\"pk\":\"a\"}");
    prepare(&ops[1], ITEM_CREATE, NULL, "{\"id\":\"1\",\"pk\":\"a\"}");
    prepare(&ops[2], ITEM_DELETE, "nobody", NULL);
    prepare(&ops[3], ITEM_UPSERT, NULL, "{\"id\":\"2\",\"pk\":\"a\"}");
    prepare(&ops[4], ITEM_CREATE, NULL, "{\"id\":\"3\",\"pk\":\"a\"}");
    ops[4].code = E_BAD_REQUEST; /* failed while it was prepared */
    assert_int_equal(harness_commit(&the->h, the->c, ops, 5, false), OK);
    assert_int_equal(ops[0].code, OK);
    assert_int_equal(ops[1].code, E_CONFLICT);
    assert_int_equal(ops[2].code, E_NOT_FOUND);
    assert_int_equal(ops[3].code, OK);
    assert_int_equal(ops[4].code, E_BAD_REQUEST);
    assert_string_equal(harness_feed(&the->h, the->c, NULL, 10, 100), "1 2 ");
}

static err commit_to_range(item_op *ops, size_t n, int64_t range) {
    waited_commit w = {
        .base = {.items = harness_items(&the->h), .container = the->c, .ops = ops, .n = n, .range_id = range, .done = commit_is_done}};
    waiter_init(&w.waiter);
    w.base.op = harness_op(&the->h);
    assert_int_equal(item_commit_submit(&w.base), OK);
    waiter_wait(&w.waiter);
    item_commit_give(&w.base);
    return w.base.base.code;
}

static void bulk_to_a_range(void **state) {
    (void)state;
    item_op ops[2];
    prepare(&ops[0], ITEM_CREATE, NULL, "{\"id\":\"1\",\"pk\":\"a\"}");
    assert_int_equal(harness_prepare(&the->h, the->c, &ops[1], ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"zz\"}"), OK);
    uint32_t first = container_route(the->c->tiles, &ops[0].key.epk)->id, second = container_route(the->c->tiles, &ops[1].key.epk)->id;
    assert_int_not_equal(first, second);
    assert_int_equal(commit_to_range(ops, 2, 77), E_RANGE_GONE);
    assert_int_equal(harness_count(the->c), 0);
    assert_int_equal(commit_to_range(ops, 2, first), OK);
    assert_int_equal(ops[0].code, OK);
    assert_int_equal(ops[1].code, E_RANGE_GONE);
    assert_int_equal(harness_count(the->c), 1);
}

static void a_deleted_container_takes_no_writes(void **state) {
    (void)state;
    container *gone;
    assert_int_equal(harness_create_container(&the->h, "d", "{\"id\":\"gone\"}", 400, &gone), OK);
    assert_int_equal(harness_write(&the->h, gone, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\"}"), OK);
    assert_int_equal(harness_delete_container(&the->h, "d", "gone"), OK);
    assert_int_equal(harness_write(&the->h, gone, ITEM_CREATE, NULL, NULL, "{\"id\":\"2\"}"), E_OWNER_NOT_FOUND);
    atomic_uint in_flight = 0;
    item_sweep(harness_items(&the->h), gone, 10, &in_flight);
    while (in_flight) {
        usleep(100);
    }
    container_give(gone);
}

/* ---- unique keys ---- */

static void values_are_unique_within_a_partition(void **state) {
    (void)state;
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"1\",\"pk\":\"a\",\"u\":1,\"v\":1}"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"2\",\"pk\":\"a\",\"u\":1,\"v\":2}"), E_UNIQUE_KEY);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"2\",\"pk\":\"a\",\"u\":1.0,\"v\":2}"), E_UNIQUE_KEY);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"2\",\"pk\":\"a\",\"u\":\"1\",\"v\":2}"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"2\",\"pk\":\"b\",\"u\":1,\"v\":1}"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"3\",\"pk\":\"a\",\"v\":3}"), OK); /* a missing value counts as null */
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"4\",\"pk\":\"a\",\"u\":null,\"v\":4}"), E_UNIQUE_KEY);
    assert_int_equal(put(ITEM_UPSERT, "{\"id\":\"2\",\"pk\":\"a\",\"u\":1,\"v\":2}"), E_UNIQUE_KEY);
    assert_int_equal(put(ITEM_UPSERT, "{\"id\":\"1\",\"pk\":\"a\",\"u\":1,\"v\":1,\"x\":1}"), OK); /* its own value */
}

/* Values of types that JSON does not have: equal only within the same type, and by value, not by bytes. */
static void typed_values_are_unique(void **state) {
    (void)state;
    static const struct {
        const char *value;
        err code;
    } cases[] = {
        {"{\"$oid\":\"000000000000000000000001\"}", OK},
        {"{\"$oid\":\"000000000000000000000001\"}", E_UNIQUE_KEY},
        {"{\"$oid\":\"000000000000000000000002\"}", OK},
        {"{\"$date\":{\"$numberLong\":\"5\"}}", OK},
        {"{\"$timestamp\":{\"t\":0,\"i\":5}}", OK}, /* the same bytes as the date */
        {"{\"$date\":{\"$numberLong\":\"5\"}}", E_UNIQUE_KEY},
        {"{\"$numberDecimal\":\"1.0\"}", OK},
        {"{\"$numberDecimal\":\"1.00\"}", E_UNIQUE_KEY},
        {"{\"$minKey\":1}", OK},
        {"{\"$maxKey\":1}", OK},
        {"{\"$minKey\":1}", E_UNIQUE_KEY},
    };
    the->h.extended = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[200];
        snprintf(body, sizeof body, "{\"id\":\"%zu\",\"pk\":\"a\",\"v\":%zu,\"u\":%s}", i, i, cases[i].value);
        assert_int_equal(put(ITEM_CREATE, body), cases[i].code);
    }
    the->h.extended = false;
}

static void the_values_of_several_paths_count_together(void **state) {
    (void)state;
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"1\",\"pk\":\"a\",\"u\":1,\"v\":1,\"w\":{\"x\":1}}"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"2\",\"pk\":\"a\",\"u\":2,\"v\":1,\"w\":{\"x\":2}}"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"3\",\"pk\":\"a\",\"u\":3,\"v\":1,\"w\":{\"x\":2}}"), E_UNIQUE_KEY);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"4\",\"pk\":\"a\",\"u\":4,\"v\":1}"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"5\",\"pk\":\"a\",\"u\":5,\"v\":1,\"w\":7}"), E_UNIQUE_KEY);
}

static void a_value_let_go_is_free(void **state) {
    (void)state;
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"1\",\"pk\":\"a\",\"u\":1,\"v\":1}"), OK);
    assert_int_equal(put(ITEM_UPSERT, "{\"id\":\"1\",\"pk\":\"a\",\"u\":2,\"v\":1}"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"2\",\"pk\":\"a\",\"u\":1,\"v\":2}"), OK);
    assert_int_equal(harness_write(&the->h, the->c, ITEM_EDIT, "[\"a\"]", "2", "[{\"op\":\"set\",\"path\":\"/u\",\"value\":2}]"),
                     E_UNIQUE_KEY);
    assert_int_equal(take_away("[\"a\"]", "1"), OK);
    assert_int_equal(harness_write(&the->h, the->c, ITEM_EDIT, "[\"a\"]", "2", "[{\"op\":\"set\",\"path\":\"/u\",\"value\":2}]"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"3\",\"pk\":\"a\",\"u\":1,\"v\":3}"), OK);
}

static void values_move_within_a_batch(void **state) {
    (void)state;
    item_op ops[3];
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"1\",\"pk\":\"a\",\"u\":1,\"v\":1}"), OK);
    prepare(&ops[0], ITEM_UPSERT, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"u\":2,\"v\":1}");
    prepare(&ops[1], ITEM_CREATE, NULL, "{\"id\":\"2\",\"pk\":\"a\",\"u\":1,\"v\":2}");
    prepare(&ops[2], ITEM_CREATE, NULL, "{\"id\":\"3\",\"pk\":\"a\",\"u\":2,\"v\":3}");
    assert_int_equal(harness_commit(&the->h, the->c, ops, 3, true), E_UNIQUE_KEY);
    assert_int_equal(ops[2].code, E_UNIQUE_KEY);
    assert_is("[\"a\"]", "1", "{\"id\":\"1\",\"pk\":\"a\",\"u\":1,\"v\":1}");
    harness_check(&the->h, the->c);
    prepare(&ops[0], ITEM_UPSERT, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"u\":2,\"v\":1}");
    prepare(&ops[1], ITEM_CREATE, NULL, "{\"id\":\"2\",\"pk\":\"a\",\"u\":1,\"v\":2}");
    assert_int_equal(harness_commit(&the->h, the->c, ops, 2, true), OK);
}

/* Values of any size and type are compared by all of their bytes. */
static void large_values(void **state) {
    (void)state;
    enum { LONG = 100000, ELEMENTS = 200000 };
    buf text = buf_init(BUF_NO_LIMIT);
    for (int kind = 0; kind < 2; kind++) {
        for (int i = 0; i < 3; i++) {
            buf_clear(&text);
            buf_addf(&text, "{\"id\":\"%d-%d\",\"pk\":\"a\",\"v\":\"%d-%d\",\"u\":", kind, i, kind, i);
            buf_add_byte(&text, kind ? '[' : '"');
            for (int j = 0; j < (kind ? ELEMENTS : LONG); j++) {
                buf_add(&text, kind ? "1," : "x", kind ? 2 : 1);
            }
            buf_addf(&text, "%d%s}", i % 2, kind ? "]" : "\""); /* they differ at the very end; the third equals the first */
            buf_add_byte(&text, 0);
            assert_int_equal(put(ITEM_CREATE, text.p), i < 2 ? OK : E_UNIQUE_KEY);
        }
    }
    buf_free(&text);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"o\",\"pk\":\"a\",\"u\":{\"a\":1},\"v\":1}"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"p\",\"pk\":\"a\",\"u\":{\"a\":2},\"v\":2}"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"q\",\"pk\":\"a\",\"u\":{\"a\":1},\"v\":3}"), E_UNIQUE_KEY);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"q\",\"pk\":\"a\",\"u\":{},\"v\":4}"), OK);
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"r\",\"pk\":\"a\",\"u\":[],\"v\":5}"), OK);
    assert_int_equal(take_away("[\"a\"]", "0-0"), OK);
    assert_int_equal(take_away("[\"a\"]", "1-1"), OK);
}

/* ---- against a model ---- */

enum { MODEL_KEYS = 40, MODEL_PARTITIONS = 6, MODEL_VALUES = 60 };

typedef struct model_item {
    bool there;
    int n, u;
} model_item;

static bool held(const model_item *model, unsigned partition, int u, unsigned except) {
    for (unsigned i = 0; i < MODEL_KEYS; i++) {
        if (i != except && i % MODEL_PARTITIONS == partition && model[i].there && model[i].u == u) {
            return true;
        }
    }
    return false;
}

/* `to`: the key that the item has afterwards; a replace may change it. */
static err expected_of(const model_item *model, item_kind kind, unsigned key, unsigned to, int u) {
    bool there = model[key].there;
    if (kind == ITEM_CREATE && there) {
        return E_CONFLICT;
    }
    if (!there && (kind == ITEM_REPLACE || kind == ITEM_DELETE || kind == ITEM_EDIT || kind == ITEM_READ)) {
        return E_NOT_FOUND;
    }
    if (to != key && model[to].there) {
        return E_CONFLICT;
    }
    bool writes_u = kind == ITEM_CREATE || kind == ITEM_UPSERT || kind == ITEM_REPLACE || kind == ITEM_EDIT;
    return writes_u && held(model, key % MODEL_PARTITIONS, u, key) ? E_UNIQUE_KEY : OK;
}

static void model_apply(model_item *model, item_kind kind, unsigned key, unsigned to, int n, int u) {
    model_item *item = &model[to];
    model[key].there = model[key].there && key == to;
    if (kind == ITEM_DELETE) {
        item->there = false;
    } else if (kind == ITEM_EDIT) {
        item->u = u;
    } else if (kind != ITEM_READ) {
        *item = (model_item){true, n, u};
    }
}

static void random_op(random_source *r, item_op *o, item_kind *kind, unsigned *key, unsigned *to, int *n, int *u, int partition) {
    char key_text[32], id[32], text[200];
    static const item_kind kinds[] = {ITEM_CREATE, ITEM_UPSERT, ITEM_REPLACE, ITEM_DELETE, ITEM_EDIT, ITEM_READ};
    *kind = kinds[random_below(r, 6)];
    do {
        *key = (unsigned)random_below(r, MODEL_KEYS);
    } while (partition >= 0 && *key % MODEL_PARTITIONS != (unsigned)partition);
    *to = *key;
    if (*kind == ITEM_REPLACE && random_below(r, 2)) {
        *to = *key % MODEL_PARTITIONS + MODEL_PARTITIONS * (unsigned)random_below(r, MODEL_KEYS / MODEL_PARTITIONS);
    }
    *n = (int)random_below(r, 1000);
    *u = (int)random_below(r, MODEL_VALUES);
    snprintf(key_text, sizeof key_text, "[\"p%u\"]", *key % MODEL_PARTITIONS);
    snprintf(id, sizeof id, "i%u", *key);
    if (*kind == ITEM_EDIT) {
        snprintf(text, sizeof text, "[{\"op\":\"set\",\"path\":\"/u\",\"value\":%d},{\"op\":\"set\",\"path\":\"/v\",\"value\":\"%u/%d\"}]",
                 *u, *key, *u);
    } else {
        snprintf(text, sizeof text, "{\"id\":\"i%u\",\"pk\":\"p%u\",\"n\":%d,\"u\":%d,\"v\":\"%u/%d\"}", *to, *key % MODEL_PARTITIONS, *n,
                 *u, *to, *u);
    }
    assert_int_equal(harness_prepare(&the->h, the->c, o, *kind, key_text, id, text), OK);
}

static void assert_model(const model_item *model) {
    size_t there = 0;
    for (unsigned i = 0; i < MODEL_KEYS; i++) {
        char key[32], id[32], expected[200];
        snprintf(key, sizeof key, "[\"p%u\"]", i % MODEL_PARTITIONS);
        snprintf(id, sizeof id, "i%u", i);
        snprintf(expected, sizeof expected, "{\"id\":\"%s\",\"pk\":\"p%u\",\"n\":%d,\"u\":%d,\"v\":\"%u/%d\"}", id, i % MODEL_PARTITIONS,
                 model[i].n, model[i].u, i, model[i].u);
        model[i].there ? assert_is(key, id, expected) : assert_absent(key, id);
        there += model[i].there;
    }
    assert_int_equal(harness_count(the->c), there);
    harness_check(&the->h, the->c);
}

/* A request of one to eight operations; the model predicts each result. */
static void random_request(random_source *r, model_item *model) {
    item_op ops[8];
    item_kind kinds[8];
    unsigned keys[8], to[8];
    int n[8], u[8];
    bool atomic = random_below(r, 2);
    size_t count = 1 + (size_t)random_below(r, 8);
    int partition = atomic ? (int)random_below(r, MODEL_PARTITIONS) : -1;
    model_item then[MODEL_KEYS];
    err first = OK, expected[8];
    memcpy(then, model, sizeof then);
    for (size_t i = 0; i < count; i++) {
        random_op(r, &ops[i], &kinds[i], &keys[i], &to[i], &n[i], &u[i], partition);
        expected[i] = atomic && first != OK ? E_FAILED_DEPENDENCY : expected_of(then, kinds[i], keys[i], to[i], u[i]);
        first = first == OK ? expected[i] : first;
        if (expected[i] == OK) {
            model_apply(then, kinds[i], keys[i], to[i], n[i], u[i]);
        }
    }
    assert_int_equal(harness_commit(&the->h, the->c, ops, count, atomic), atomic ? first : OK);
    for (size_t i = 0; i < count; i++) {
        bool undone = atomic && first != OK && expected[i] == OK;
        assert_int_equal(ops[i].code, undone ? E_FAILED_DEPENDENCY : expected[i]);
    }
    if (!atomic || first == OK) {
        memcpy(model, then, sizeof then);
    }
}

static void random_requests_agree_with_a_model(void **state) {
    (void)state;
    static model_item model[MODEL_KEYS];
    random_source r;
    random_seed(&r, 2024);
    memset(model, 0, sizeof model);
    for (int round = 0; round < 3000; round++) {
        the->h.plan.miss_in = (unsigned)random_below(&r, 20); /* some requests miss memory, at their first or a later operation */
        random_request(&r, model);
        the->h.plan.miss_in = 0;
        if (round % 100 == 99) {
            assert_model(model);
        }
        if (round % 500 == 499) {
            container_give(the->c);
            harness_restart(&the->h);
            the->c = harness_found(&the->h, "d", "c");
            assert_model(model);
        }
    }
}

/* Blocks the committer, so that what is submitted meanwhile becomes one group. */
typedef struct barrier {
    commit base;
    sem_t reached, open;
} barrier;

static err barrier_apply(commit *base, commit_group *group) {
    barrier *b = (barrier *)base;
    (void)group;
    sem_post(&b->reached);
    sem_wait(&b->open);
    return OK;
}

static void barrier_done(commit *base) {
    (void)base;
}

static void submit(waited_commit *w, item_op *ops, size_t n) {
    *w =
        (waited_commit){.base = {.items = harness_items(&the->h), .container = the->c, .ops = ops, .n = n, .atomic = true, .range_id = -1}};
    w->base.done = commit_is_done;
    waiter_init(&w->waiter);
    w->base.op = harness_op(&the->h);
    assert_int_equal(item_commit_submit(&w->base), OK);
}

/* The number of an item that was not created goes to the next one, which must not be found under the first one's key. */
static void a_number_given_back_leads_to_one_item_only(void **state) {
    (void)state;
    barrier b = {.base = {.apply = barrier_apply, .done = barrier_done}};
    item_op failing[2], good[1];
    waited_commit first, second;
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"there\",\"pk\":\"a\"}"), OK);
    prepare(&failing[0], ITEM_CREATE, NULL, "{\"id\":\"lost\",\"pk\":\"a\"}");
    prepare(&failing[1], ITEM_CREATE, NULL, "{\"id\":\"there\",\"pk\":\"a\"}");
    prepare(&good[0], ITEM_CREATE, NULL, "{\"id\":\"made\",\"pk\":\"a\"}");
    sem_init(&b.reached, 0, 0);
    sem_init(&b.open, 0, 0);
    committer_submit(harness_part(the->c)->home->committer, &b.base);
    sem_wait(&b.reached);
    submit(&first, failing, 2);
    submit(&second, good, 1);
    sem_post(&b.open);
    waiter_wait(&first.waiter);
    waiter_wait(&second.waiter);
    assert_int_equal(first.base.base.code, E_CONFLICT);
    assert_int_equal(second.base.base.code, OK);
    assert_null(harness_read(&the->h, the->c, "[\"a\"]", "lost"));
    assert_string_equal(harness_read(&the->h, the->c, "[\"a\"]", "made"), "{\"id\":\"made\",\"pk\":\"a\"}");
    item_commit_give(&first.base);
    item_commit_give(&second.base);
}

/* The results of one request are bounded, however small the request. */
static void results_of_a_batch_are_bounded(void **state) {
    (void)state;
    enum { NUMBERS = 400 * 1000, READS = 8 };
    buf text = buf_init(BUF_NO_LIMIT);
    item_op ops[READS];
    buf_add_lit(&text, "{\"id\":\"1\",\"pk\":\"a\",\"list\":[0");
    for (int i = 1; i < NUMBERS; i++) {
        buf_add_lit(&text, ",1");
    }
    buf_add_lit(&text, "]}");
    buf_add_byte(&text, 0);
    assert_int_equal(put(ITEM_CREATE, text.p), OK);
    buf_free(&text);
    for (int i = 0; i < READS; i++) {
        prepare(&ops[i], ITEM_READ, "1", NULL);
    }
    assert_int_equal(harness_commit(&the->h, the->c, ops, READS, true), E_TOO_LARGE);
    for (int i = 0; i < READS; i++) {
        prepare(&ops[i], ITEM_EDIT, "1", "{\"operations\":[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]}");
    }
    assert_int_equal(harness_commit(&the->h, the->c, ops, READS, true), E_TOO_LARGE);
    prepare(&ops[0], ITEM_EDIT, "1", "{\"operations\":[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]}");
    assert_int_equal(harness_commit(&the->h, the->c, ops, 1, true), OK);
}

static void bulk_may_stop_at_a_failure(void **state) {
    (void)state;
    item_op ops[3];
    assert_int_equal(put(ITEM_CREATE, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
    prepare(&ops[0], ITEM_CREATE, NULL, "{\"id\":\"2\",\"pk\":\"a\"}");
    prepare(&ops[1], ITEM_CREATE, NULL, "{\"id\":\"1\",\"pk\":\"a\"}");
    prepare(&ops[2], ITEM_CREATE, NULL, "{\"id\":\"3\",\"pk\":\"a\"}");
    waited_commit w = {.base = {.items = harness_items(&the->h), .container = the->c, .ops = ops, .n = 3, .range_id = -1}};
    w.base.stops_at_failure = true;
    w.base.done = commit_is_done;
    waiter_init(&w.waiter);
    w.base.op = harness_op(&the->h);
    assert_int_equal(item_commit_submit(&w.base), OK);
    waiter_wait(&w.waiter);
    item_commit_give(&w.base);
    assert_int_equal(ops[0].code, OK);
    assert_int_equal(ops[1].code, E_CONFLICT);
    assert_int_equal(ops[2].code, E_FAILED_DEPENDENCY);
    assert_int_equal(harness_count(the->c), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_life_of_an_item, plain, tear_down),
        cmocka_unit_test_setup_teardown(the_same_id_in_another_partition_is_another_item, plain, tear_down),
        cmocka_unit_test_setup_teardown(stamps_grow_and_numbers_are_never_given_twice, plain, tear_down),
        cmocka_unit_test_setup_teardown(etags, plain, tear_down),
        cmocka_unit_test_setup_teardown(ranges_have_numbers_of_their_own, ranges, tear_down),
        cmocka_unit_test_setup_teardown(bodies_that_are_refused, plain, tear_down),
        cmocka_unit_test_setup_teardown(ids_up_to_the_limit, plain, tear_down),
        cmocka_unit_test_setup_teardown(replace_and_patch_keep_the_key, plain, tear_down),
        cmocka_unit_test_setup_teardown(a_fixed_container_has_no_key, plain, tear_down),
        cmocka_unit_test_setup_teardown(a_batch_sees_its_own_writes, plain, tear_down),
        cmocka_unit_test_setup_teardown(a_batch_is_all_or_nothing, plain, tear_down),
        cmocka_unit_test_setup_teardown(bulk_operations_stand_alone, plain, tear_down),
        cmocka_unit_test_setup_teardown(bulk_to_a_range, ranges, tear_down),
        cmocka_unit_test_setup_teardown(bulk_may_stop_at_a_failure, plain, tear_down),
        cmocka_unit_test_setup_teardown(a_number_given_back_leads_to_one_item_only, plain, tear_down),
        cmocka_unit_test_setup_teardown(results_of_a_batch_are_bounded, plain, tear_down),
        cmocka_unit_test_setup_teardown(a_deleted_container_takes_no_writes, plain, tear_down),
        cmocka_unit_test_setup_teardown(values_are_unique_within_a_partition, unique, tear_down),
        cmocka_unit_test_setup_teardown(typed_values_are_unique, unique, tear_down),
        cmocka_unit_test_setup_teardown(the_values_of_several_paths_count_together, unique, tear_down),
        cmocka_unit_test_setup_teardown(a_value_let_go_is_free, unique, tear_down),
        cmocka_unit_test_setup_teardown(values_move_within_a_batch, unique, tear_down),
        cmocka_unit_test_setup_teardown(large_values, unique, tear_down),
        cmocka_unit_test_setup_teardown(random_requests_agree_with_a_model, unique, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
