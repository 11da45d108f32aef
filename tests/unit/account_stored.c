/* Old data folders can be opened: account_stored.txt is a dump of a store from when this format was new. It is loaded, passes today's
 * consistency checks (harness_check), and is written to, split, moved and merged. A change that fails here needs a new format version and a
 * migration (store/folder.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "account/scripts.h"
#include "account/users.h"
#include "item_harness.h"
#include "store/folder.h"

enum { LINE_MAX_BYTES = 8192 };

static harness h;

static slice read_hex(const char *text) {
    size_t n = strcmp(text, "-") == 0 ? 0 : strlen(text) / 2;
    char *bytes = arena_alloc(&h.arena, n + 1);
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
        bytes[i] = (char)byte;
    }
    return slice_of(bytes, n);
}

static void load(store *s) {
    static char line[LINE_MAX_BYTES], key[LINE_MAX_BYTES], value[LINE_MAX_BYTES];
    FILE *file = fopen(getenv("TESELA_STORED"), "r");
    store_batch batch;
    size_t n = 0;
    assert_non_null(file);
    store_batch_init(&batch);
    while (fgets(line, sizeof line, file)) {
        int family;
        if (line[0] != '#') {
            assert_int_equal(sscanf(line, "%d %8191s %8191s", &family, key, value), 3);
            store_put(&batch, (store_family)family, read_hex(key), read_hex(value));
            n++;
        }
    }
    fclose(file);
    assert_true(n > 400);
    assert_int_equal(store_write(s, &batch), OK);
    store_batch_free(&batch);
}

/* Fills the store from the dump and opens the harness's account over it. */
static int set_up(void **state) {
    (void)state;
    store *inner = store_open_memory();
    h.arena = arena_init();
    load(inner);
    arena_free(&h.arena);
    harness_open_homes(&h, inner, NULL);
    h.rules.no_merges = true;
    harness_restart(&h);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    harness_close(&h);
    return 0;
}

static void has_items(const char *name, size_t n) {
    container *c = harness_found(&h, "d", name);
    assert_int_equal(harness_count(c), n);
    assert_true(slice_eq(c->api, SLICE_LIT("sql")) && c->memo.n == 0 && !c->clustered);
    harness_check(&h, c);
    container_give(c);
}

static void all_is_there(void **state) {
    (void)state;
    assert_int_equal(STORE_FORMAT_VERSION, 4); /* the dump's version; a new version needs a new dump */
    has_items("plain", 5);
    has_items("tree", 4);
    has_items("unique", 4);
    has_items("ttl", 5);
    has_items("fixed", 3);
    has_items("old", 3);
    has_items("versions", 2);
    has_items("cut", 12);
}

static void items_are_read(void **state) {
    (void)state;
    container *c = harness_found(&h, "d", "plain");
    assert_string_equal(harness_read(&h, c, "[\"p1\"]", "i4"), "{\"id\":\"i4\",\"pk\":\"p1\",\"n\":4}");
    container_give(c);
    c = harness_found(&h, "d", "tree");
    assert_string_equal(harness_read(&h, c, "[\"p0\",3]", "i3"), "{\"id\":\"i3\",\"pk\":\"p0\",\"n\":3}");
    container_give(c);
    c = harness_found(&h, "d", "fixed");
    assert_string_equal(harness_read(&h, c, "[]", "i2"), "{\"id\":\"i2\",\"pk\":\"p2\",\"n\":2}");
    container_give(c);
    c = harness_found(&h, "d", "cut");
    assert_int_equal(c->tiles->map->n, 2);
    assert_string_equal(harness_read(&h, c, "[\"p2\"]", "i8"), "{\"id\":\"i8\",\"pk\":\"p2\",\"n\":8}");
    assert_string_equal(harness_read(&h, c, "[\"p2\"]", "after2"), "{\"id\":\"after2\",\"pk\":\"p2\",\"n\":2}");
    container_give(c);
}

static void items_are_written(void **state) {
    (void)state;
    container *c = harness_found(&h, "d", "unique");
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"i0\",\"pk\":\"p0\",\"n\":9}"), E_CONFLICT);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"x\",\"pk\":\"p0\",\"n\":3}"), E_UNIQUE_KEY);
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"p0\"]", "i3", NULL), OK);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"x\",\"pk\":\"p0\",\"n\":3}"), OK);
    harness_check(&h, c);
    container_give(c);
    c = harness_found(&h, "d", "versions");
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, "{\"id\":\"i1\",\"pk\":\"p1\",\"n\":7}"), OK);
    harness_check(&h, c);
    container_give(c);
    c = harness_found(&h, "d", "ttl");
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, "{\"id\":\"i1\",\"pk\":\"p1\",\"ttl\":9}"), OK);
    harness_check(&h, c);
    container_give(c);
}

static void ranges_are_reshaped(void **state) {
    (void)state;
    container *c = harness_found(&h, "d", "cut");
    for (int step = 0; step < 3; step++) {
        const container_range *const *ranges = (const container_range *const *)c->tiles->ranges;
        switch (step) {
        case 0:
            harness_move(&h, c, 1000);
            break;
        case 1:
            assert_int_equal(account_split(h.account, harness_op(&h), c, ranges[0]->id, 2), OK);
            break;
        default:
            assert_int_equal(account_merge(h.account, harness_op(&h), c, ranges[1]->id, ranges[2]->id), OK);
            break;
        }
        container_give(c);
        harness_restart(&h);
        c = harness_found(&h, "d", "cut");
        assert_int_equal(harness_count(c), 12);
        harness_check(&h, c);
    }
    container_give(c);
}

static void changes_go_on(void **state) {
    (void)state;
    container *c = harness_found(&h, "d", "plain");
    item_changes changes = {.min = epk_min(), .max = epk_max(), .after = 4};
    collected got = {.ids = buf_init(BUF_NO_LIMIT), .most = 100};
    item_mark mark;
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, "{\"id\":\"new\",\"pk\":\"p1\",\"n\":7}"), OK);
    assert_int_equal(item_changes_read(harness_items(&h), harness_op(&h), c, &changes, collect, &got, &mark), OK);
    assert_true(slice_eq(buf_view(&got.ids), SLICE_LIT("i4 new ")));
    buf_free(&got.ids);
    container_give(c);
}

static void scripts_and_users_are_there(void **state) {
    (void)state;
    container *c = harness_found(&h, "d", "cut");
    account_script *s = NULL;
    user *u = NULL;
    permission *p = NULL;
    assert_int_equal(account_find_script(h.account, c, ACCOUNT_PROCEDURE, SLICE_LIT("s"), false, &s), OK);
    assert_true(slice_eq(s->body, SLICE_LIT("function(){}")));
    account_script_give(s);
    assert_int_equal(account_user(h.account, SLICE_LIT("d"), false, SLICE_LIT("u"), false, &u), OK);
    assert_int_equal(account_permission(h.account, u, SLICE_LIT("p"), false, &p), OK);
    assert_true(p->grant.mode == PERMISSION_ALL && p->grant.key.n == 1);
    permission_give(p);
    user_give(u);
    container_give(c);
}

int main(void) {
    log_set_level(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_is_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(items_are_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(items_are_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ranges_are_reshaped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(changes_go_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(scripts_and_users_are_there, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
