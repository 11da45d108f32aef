/* Containers of any API: the API that made a container and the front end's memo survive replaces, renames, splits, restarts and failed
 * writes. On both kinds of store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"

#define KEY "\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"
#define MEMO "{\"columns\":[{\"name\":\"a\",\"type\":13}],\"ttl\":\"/t\"}"

static harness h;
static char *folder; /* RocksDB's folder; NULL: in memory */

static int set_up(void **state) {
    (void)state;
    harness_open_on(&h, store_open_memory());
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    return 0;
}

static int set_up_rocks(void **state) {
    (void)state;
    folder = make_folder();
    harness_open_on(&h, open_rocks(folder));
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    harness_close(&h);
    if (folder) {
        remove_folder(folder);
        free(folder);
        folder = NULL;
    }
    return 0;
}

/* ---- changes ---- */

static err create(const char *properties, const char *api, slice memo) {
    container_creation c = {.database = harness_name("d"),
                            .settings = harness_bson(&h, properties),
                            .throughput = {.kind = THROUGHPUT_MANUAL, .value = 400},
                            .api = api ? slice_str(api) : SLICE_EMPTY,
                            .memo = memo};
    err code = harness_change(&h, &c, account_create_container);
    if (c.container_out) {
        container_give(c.container_out);
    }
    return code;
}

static err replace(const char *name, const char *properties, const slice *memo, uint64_t expected) {
    container_replacement c = {.database = harness_name("d"),
                               .container = harness_name(name),
                               .settings = properties ? harness_bson(&h, properties) : SLICE_EMPTY,
                               .memo = memo,
                               .expected = expected};
    err code = harness_change(&h, &c, account_replace_container);
    if (c.container_out) {
        container_give(c.container_out);
    }
    return code;
}

static err rename_to(const char *name, const char *id, bool replaces) {
    container_renaming c = {.database = harness_name("d"), .container = harness_name(name), .id = slice_str(id), .replaces = replaces};
    err code = harness_change(&h, &c, account_rename_container);
    if (c.container_out) {
        container_give(c.container_out);
    }
    return code;
}

/* Adds "name api memo " for each container, in listing order. */
static bool list(void *context, const container *c) {
    buf_add_slice(context, c->id);
    buf_add_byte(context, ' ');
    buf_add_slice(context, c->api);
    buf_add_byte(context, ' ');
    if (c->memo.n) {
        json_from_bson(context, c->memo);
        buf_add_byte(context, ' ');
    }
    return true;
}

static const char *listing(void) {
    buf text = buf_init(BUF_NO_LIMIT);
    database *d = NULL;
    assert_int_equal(account_database(h.account, SLICE_LIT("d"), false, &d), OK);
    account_each_container(h.account, d, 0, list, &text);
    database_give(d);
    const char *made = arena_text(&h.arena, buf_view(&text));
    buf_free(&text);
    return made;
}

static uint64_t version_of(const char *name) {
    container *c = harness_found(&h, "d", name);
    uint64_t version = c->version;
    container_give(c);
    return version;
}

static void put(const char *container_name, const char *id) {
    container *c = harness_found(&h, "d", container_name);
    char body[100];
    snprintf(body, sizeof body, "{\"id\":\"%s\",\"pk\":\"p\"}", id);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    container_give(c);
}

static bool has(const char *container_name, const char *id) {
    container *c = harness_found(&h, "d", container_name);
    bool there = harness_read(&h, c, "[\"p\"]", id) != NULL;
    container_give(c);
    return there;
}

/* ---- tests ---- */

static void who_made_it_and_its_memo_are_kept(void **state) {
    (void)state;
    assert_int_equal(create("{\"id\":\"s\"," KEY "}", NULL, SLICE_EMPTY), OK);
    assert_int_equal(create("{\"id\":\"m\"," KEY "}", "mongo", harness_bson(&h, MEMO)), OK);
    assert_int_equal(create("{\"id\":\"e\"," KEY "}", "gremlin", SLICE_EMPTY), OK);
    const char *expected = "s sql m mongo " MEMO " e gremlin ";
    assert_string_equal(listing(), expected);
    harness_restart(&h);
    assert_string_equal(listing(), expected);
}

/* Records of SQL containers have the same form as before other APIs existed. */
static void a_container_of_the_sql_api_has_neither_in_its_record(void **state) {
    (void)state;
    slice key, value;
    bson_iter_t it;
    size_t n = 0;
    assert_int_equal(create("{\"id\":\"s\"," KEY "}", "sql", SLICE_EMPTY), OK);
    store_scan *scan = store_scan_open(h.store, STORE_META, NULL, SLICE_LIT("C"), SLICE_LIT("D"), false);
    while (store_scan_next(scan, &key, &value)) {
        assert_false(doc_find_key(value, SLICE_LIT("api"), &it) || doc_find_key(value, SLICE_LIT("memo"), &it));
        n++;
    }
    assert_int_equal(store_scan_close(scan), OK);
    assert_int_equal(n, 1);
    assert_string_equal(listing(), "s sql ");
}

static void a_replace_of_settings_keeps_them(void **state) {
    (void)state;
    assert_int_equal(create("{\"id\":\"m\"," KEY "}", "table", harness_bson(&h, MEMO)), OK);
    assert_int_equal(replace("m", "{\"id\":\"m\"," KEY ",\"defaultTtl\":60}", NULL, 0), OK);
    assert_string_equal(listing(), "m table " MEMO " ");
    harness_restart(&h);
    assert_string_equal(listing(), "m table " MEMO " ");
    container *c = harness_found(&h, "d", "m");
    assert_int_equal(c->ttl, 60);
    container_give(c);
}

static void a_memo_is_changed_alone_or_with_the_settings(void **state) {
    (void)state;
    slice one = harness_bson(&h, "{\"v\":1}"), two = harness_bson(&h, "{\"v\":2}"), nothing = SLICE_EMPTY;
    assert_int_equal(create("{\"id\":\"m\"," KEY ",\"defaultTtl\":60}", "cassandra", SLICE_EMPTY), OK);
    put("m", "x");
    container *c = harness_found(&h, "d", "m");
    assert_int_equal(replace("m", NULL, &one, 0), OK);
    assert_string_equal(listing(), "m cassandra {\"v\":1} ");
    container *after = harness_found(&h, "d", "m");
    assert_true(slice_eq(c->settings, after->settings) && after->space == c->space && after->ttl == 60);
    assert_null(harness_part(after)->building); /* no reindexing */
    container_give(after);
    assert_int_equal(replace("m", "{\"id\":\"m\"," KEY ",\"defaultTtl\":70}", &two, 0), OK);
    after = harness_found(&h, "d", "m");
    assert_int_equal(after->ttl, 70);
    container_give(after);
    container_give(c);
    harness_restart(&h);
    assert_string_equal(listing(), "m cassandra {\"v\":2} ");
    assert_int_equal(replace("m", NULL, &nothing, 0), OK);
    assert_string_equal(listing(), "m cassandra ");
    assert_true(has("m", "x"));
}

/* Two front ends change a memo concurrently: the second must read it again. */
static void a_memo_is_changed_if_it_is_still_the_one_that_was_read(void **state) {
    (void)state;
    slice one = harness_bson(&h, "{\"v\":1}"), two = harness_bson(&h, "{\"v\":2}");
    assert_int_equal(create("{\"id\":\"m\"," KEY "}", "mongo", SLICE_EMPTY), OK);
    uint64_t read = version_of("m");
    assert_int_equal(replace("m", NULL, &one, read), OK);
    assert_int_equal(replace("m", NULL, &two, read), E_PRECONDITION);
    assert_string_equal(listing(), "m mongo {\"v\":1} ");
    assert_int_equal(replace("m", NULL, &two, version_of("m")), OK);
    assert_string_equal(listing(), "m mongo {\"v\":2} ");
}

static void another_api_does_not_replace_it(void **state) {
    (void)state;
    assert_int_equal(create("{\"id\":\"m\"," KEY "}", "mongo", SLICE_EMPTY), OK);
    container_replacement c = {.database = harness_name("d"),
                               .container = harness_name("m"),
                               .settings = harness_bson(&h, "{\"id\":\"m\"," KEY ",\"defaultTtl\":60}"),
                               .api = SLICE_LIT("sql")};
    assert_int_equal(harness_change(&h, &c, account_replace_container), E_FORBIDDEN);
    assert_null(c.container_out);
    c.api = SLICE_LIT("mongo");
    assert_int_equal(harness_change(&h, &c, account_replace_container), OK);
    container_give(c.container_out);
}

static void a_split_keeps_them(void **state) {
    (void)state;
    assert_int_equal(create("{\"id\":\"m\"," KEY "}", "mongo", harness_bson(&h, MEMO)), OK);
    container *c = harness_found(&h, "d", "m");
    assert_int_equal(account_split(h.account, harness_op(&h), c, 0, 2), OK);
    container_give(c);
    assert_string_equal(listing(), "m mongo " MEMO " ");
    harness_restart(&h);
    assert_string_equal(listing(), "m mongo " MEMO " ");
}

static void bad_memos_and_names_are_refused(void **state) {
    (void)state;
    char *large = mem_zero(LIMIT_MEMO_BYTES + 100);
    bson_t fits = BSON_INITIALIZER;
    memset(large, 'x', LIMIT_MEMO_BYTES);
    bson_append_utf8(&fits, "t", -1, large, LIMIT_MEMO_BYTES - 13); /* plus 4 + 1 + 2 + 4 + 1 + 1 bytes of BSON around it */
    assert_int_equal(fits.len, LIMIT_MEMO_BYTES);
    assert_int_equal(create("{\"id\":\"m\"," KEY "}", "mongo", slice_of(large, LIMIT_MEMO_BYTES + 1)), E_TOO_LARGE);
    assert_int_equal(create("{\"id\":\"m\"," KEY "}", "mongo", SLICE_LIT("no bson")), E_BAD_REQUEST);
    assert_int_equal(create("{\"id\":\"m\"," KEY "}", "mongo", slice_of("\x0c\0\0\0\x02t\0\xff\0\0\0", 12)), E_BAD_REQUEST);
    assert_int_equal(create("{\"id\":\"m\"," KEY "}", "Mongo", SLICE_EMPTY), E_BAD_REQUEST);
    assert_int_equal(create("{\"id\":\"m\"," KEY "}", "abcdefghijklmnopq", SLICE_EMPTY), E_BAD_REQUEST);
    assert_string_equal(listing(), "");
    assert_int_equal(create("{\"id\":\"m\"," KEY "}", "mongo", slice_of(bson_get_data(&fits), fits.len)), OK);
    slice bad = SLICE_LIT("no bson");
    assert_int_equal(replace("m", NULL, &bad, 0), E_BAD_REQUEST);
    harness_restart(&h);
    container *c = harness_found(&h, "d", "m");
    assert_int_equal(c->memo.n, LIMIT_MEMO_BYTES);
    container_give(c);
    bson_destroy(&fits);
    free(large);
}

static void a_renamed_container_is_the_same_one(void **state) {
    (void)state;
    assert_int_equal(create("{\"id\":\"a\"," KEY "}", "mongo", harness_bson(&h, MEMO)), OK);
    assert_int_equal(create("{\"id\":\"b\"," KEY "}", NULL, SLICE_EMPTY), OK);
    put("a", "x");
    container *before = harness_found(&h, "d", "a");
    assert_int_equal(rename_to("a", "z", false), OK);
    assert_null(harness_find(&h, "d", "a"));
    container *after = harness_found(&h, "d", "z");
    assert_true(after->space == before->space && memcmp(after->rid, before->rid, sizeof after->rid) == 0);
    assert_true(after->version != before->version);
    container_give(after);
    assert_true(has("z", "x"));
    put("z", "y");
    /* A request that found the container under its old name still works. */
    assert_int_equal(harness_write(&h, before, ITEM_CREATE, NULL, NULL, "{\"id\":\"late\",\"pk\":\"p\"}"), OK);
    container_give(before);
    assert_string_equal(listing(), "z mongo " MEMO " b sql "); /* its place is unchanged */
    offer o;
    assert_true(account_offer_of(h.account, 1, 1, &o));
    harness_restart(&h);
    assert_string_equal(listing(), "z mongo " MEMO " b sql ");
    assert_true(has("z", "x") && has("z", "y") && has("z", "late"));
    assert_int_equal(create("{\"id\":\"a\"," KEY "}", NULL, SLICE_EMPTY), OK); /* the old name is free */
    assert_false(has("a", "x"));
    container *c = harness_found(&h, "d", "z");
    harness_check(&h, c);
    container_give(c);
}

/* A creation that names the version of an empty container takes its place, in one change. */
static err create_again(const char *properties, uint64_t replaces) {
    container_creation c = {.database = harness_name("d"), .settings = harness_bson(&h, properties), .replaces = replaces};
    err code = harness_change(&h, &c, account_create_container);
    if (c.container_out) {
        container_give(c.container_out);
    }
    return code;
}

static void an_empty_container_is_replaced_by_a_new_one(void **state) {
    (void)state;
    assert_int_equal(create("{\"id\":\"c\"," KEY "}", "mongo", SLICE_EMPTY), OK);
    uint64_t version = version_of("c");
    container *before = harness_found(&h, "d", "c");
    assert_int_equal(create_again("{\"id\":\"c\"," KEY "}", 0), E_CONFLICT);
    assert_int_equal(create_again("{\"id\":\"c\"," KEY "}", version + 1), E_PRECONDITION);
    put("c", "1");
    assert_int_equal(create_again("{\"id\":\"c\"," KEY "}", version), E_PRECONDITION); /* it has an item */
    assert_true(has("c", "1"));
    assert_int_equal(create("{\"id\":\"e\"," KEY "}", "mongo", SLICE_EMPTY), OK);
    assert_int_equal(create_again("{\"id\":\"e\"," KEY "}", version_of("e")), OK);
    assert_string_equal(listing(), "c mongo e sql ");
    put("e", "2");
    assert_true(has("e", "2"));
    container_give(before);
}

/* One change: no moment and no failed write leaves the name without a container. */
static err truncate_container(const char *name, uint64_t version) {
    buf text = buf_init(BUF_NO_LIMIT);
    buf_addf(&text, "{\"id\":\"%s\"," KEY "}", name);
    container_creation c = {.database = harness_name("d"),
                            .settings = harness_bson(&h, arena_text(&h.arena, buf_view(&text))),
                            .replaces = version,
                            .truncates = true};
    buf_free(&text);
    err code = harness_change(&h, &c, account_create_container);
    if (c.container_out) {
        container_give(c.container_out);
    }
    return code;
}

static void a_container_with_items_is_truncated(void **state) {
    (void)state;
    assert_int_equal(create("{\"id\":\"c\"," KEY "}", NULL, SLICE_EMPTY), OK);
    put("c", "1");
    assert_int_equal(truncate_container("c", version_of("c") + 1), E_PRECONDITION);
    h.plan = (store_fault_plan){.write_in = 1, .code = E_STORE_IO};
    assert_int_equal(truncate_container("c", version_of("c")), E_STORE_IO);
    assert_true(has("c", "1"));
    assert_int_equal(truncate_container("c", version_of("c")), OK);
    assert_false(has("c", "1"));
    put("c", "2");
    harness_restart(&h);
    assert_string_equal(listing(), "c sql ");
    assert_true(has("c", "2") && !has("c", "1"));
}

static void names_that_are_taken(void **state) {
    (void)state;
    assert_int_equal(create("{\"id\":\"a\"," KEY "}", NULL, SLICE_EMPTY), OK);
    assert_int_equal(create("{\"id\":\"b\"," KEY "}", "mongo", harness_bson(&h, MEMO)), OK);
    put("a", "old");
    put("b", "new");
    assert_int_equal(rename_to("b", "a", false), E_CONFLICT);
    assert_int_equal(rename_to("b", "b", true), E_BAD_REQUEST);
    assert_int_equal(rename_to("b", "no/name", false), E_BAD_REQUEST);
    assert_int_equal(rename_to("nobody", "x", false), E_NOT_FOUND);
    assert_string_equal(listing(), "a sql b mongo " MEMO " ");
    container *gone = harness_found(&h, "d", "a");
    assert_int_equal(rename_to("b", "a", true), OK);
    assert_true(atomic_load(&gone->space->deleted));
    assert_int_equal(harness_write(&h, gone, ITEM_CREATE, NULL, NULL, "{\"id\":\"x\",\"pk\":\"p\"}"), E_OWNER_NOT_FOUND);
    container_give(gone);
    assert_string_equal(listing(), "a mongo " MEMO " ");
    assert_true(has("a", "new") && !has("a", "old"));
    harness_restart(&h);
    assert_string_equal(listing(), "a mongo " MEMO " ");
    assert_true(has("a", "new") && !has("a", "old"));
}

/* A change whose write fails has no effect. */
static void failed_writes_change_nothing(void **state) {
    (void)state;
    slice one = harness_bson(&h, "{\"v\":1}");
    assert_int_equal(create("{\"id\":\"a\"," KEY "}", "mongo", harness_bson(&h, MEMO)), OK);
    assert_int_equal(create("{\"id\":\"b\"," KEY "}", NULL, SLICE_EMPTY), OK);
    put("a", "x");
    const char *before = listing();
    for (int what = 0; what < 4; what++) {
        h.plan.write_in = 1;
        h.plan.fired = 0;
        err code = what == 0   ? rename_to("a", "c", false)
                   : what == 1 ? rename_to("a", "b", true)
                   : what == 2 ? replace("a", NULL, &one, 0)
                               : create("{\"id\":\"n\"," KEY "}", "table", harness_bson(&h, MEMO));
        assert_int_equal(code, E_STORE_IO);
        assert_int_equal(h.plan.fired, 1);
        h.plan.write_in = 0;
        assert_string_equal(listing(), before);
        assert_true(has("a", "x"));
        container *b = harness_found(&h, "d", "b");
        assert_false(atomic_load(&b->space->deleted));
        container_give(b);
        harness_restart(&h);
        assert_string_equal(listing(), before);
    }
    assert_int_equal(rename_to("a", "b", true), OK);
    assert_string_equal(listing(), "b mongo " MEMO " ");
}

/* What a container's settings take from the memo of a database is not older than the memo. */
static void a_container_follows_the_newest_memo_of_its_database(void **state) {
    (void)state;
    container_creation before = {.database = harness_name("d"),
                                 .settings = harness_bson(&h, "{\"id\":\"before\"," KEY "}"),
                                 .throughput = {.kind = THROUGHPUT_MANUAL, .value = 400},
                                 .as_of = account_lsn(h.account)};
    container_creation after = before;
    database_noting note = {.database = harness_name("d"), .memo = harness_bson(&h, MEMO)};
    assert_int_equal(harness_change(&h, &note, account_note_database), OK);
    database_give(note.database_out);
    assert_int_equal(harness_change(&h, &before, account_create_container), E_RETRY_WITH);
    assert_null(before.container_out);
    after.as_of = account_lsn(h.account);
    assert_int_equal(harness_change(&h, &after, account_create_container), OK);
    container_give(after.container_out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define ON_BOTH(test)                                                                                                                      \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down), cmocka_unit_test_setup_teardown(test, set_up_rocks, tear_down)
        ON_BOTH(who_made_it_and_its_memo_are_kept),
        ON_BOTH(a_container_of_the_sql_api_has_neither_in_its_record),
        ON_BOTH(a_replace_of_settings_keeps_them),
        ON_BOTH(a_memo_is_changed_alone_or_with_the_settings),
        ON_BOTH(a_memo_is_changed_if_it_is_still_the_one_that_was_read),
        ON_BOTH(another_api_does_not_replace_it),
        ON_BOTH(a_split_keeps_them),
        ON_BOTH(bad_memos_and_names_are_refused),
        ON_BOTH(a_renamed_container_is_the_same_one),
        ON_BOTH(an_empty_container_is_replaced_by_a_new_one),
        ON_BOTH(a_container_with_items_is_truncated),
        ON_BOTH(names_that_are_taken),
        ON_BOTH(a_container_follows_the_newest_memo_of_its_database),
        ON_BOTH(failed_writes_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
