/* Users and permissions: creating, renaming, deleting, cascading deletes, and the same state after a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "account/users.h"
#include "item_harness.h"

#define KEY "\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"

static harness h;
static rid container_rid;

static rid make_container(const char *database, const char *properties) {
    container *c = NULL;
    rid r = {.n = 8};
    assert_int_equal(harness_create_container(&h, database, properties, 400, &c), OK);
    memcpy(r.bytes, c->rid, 8);
    container_give(c);
    return r;
}

static int set_up(void **state) {
    (void)state;
    harness_open(&h);
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    container_rid = make_container("d", "{\"id\":\"c\"," KEY "}");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    harness_close(&h);
    return 0;
}

/* ---- synchronous changes ---- */

static err create_user(const char *id) {
    user_creation c = {.database = harness_name("d"), .id = slice_str(id)};
    err code = harness_change(&h, &c, account_create_user);
    user_give(c.user_out);
    return code;
}

static err rename_user(const char *id, const char *to) {
    user_replacement c = {.database = harness_name("d"), .user = harness_name(id), .id = slice_str(to)};
    err code = harness_change(&h, &c, account_replace_user);
    user_give(c.user_out);
    return code;
}

static err delete_user(const char *id) {
    user_deletion c = {.database = harness_name("d"), .user = harness_name(id)};
    return harness_change(&h, &c, account_delete_user);
}

static grant for_key(const char *text) {
    grant g = {.mode = PERMISSION_ALL,
               .word = SLICE_LIT("All"),
               .kind = RID_CONTAINER,
               .container = container_rid,
               .link = SLICE_LIT("dbs/d/colls/c")};
    if (text) {
        g.key = (pkey){.n = 1, .values = {{.type = PKEY_STRING, .text = slice_str(text)}}};
    }
    return g;
}

static err grant_to(const char *user, const char *id, grant g, bool upsert) {
    permission_creation c = {.database = harness_name("d"), .user = harness_name(user), .id = slice_str(id), .grant = g, .upsert = upsert};
    err code = harness_change(&h, &c, account_create_permission);
    permission_give(c.permission_out);
    return code;
}

static err regrant(const char *user, const char *id, const char *to, grant g) {
    permission_replacement c = {
        .database = harness_name("d"), .user = harness_name(user), .permission = harness_name(id), .id = slice_str(to), .grant = g};
    err code = harness_change(&h, &c, account_replace_permission);
    permission_give(c.permission_out);
    return code;
}

static err take_back(const char *user, const char *id) {
    permission_deletion c = {.database = harness_name("d"), .user = harness_name(user), .permission = harness_name(id)};
    return harness_change(&h, &c, account_delete_permission);
}

/* ---- listings as text ---- */

static bool list_permission(void *context, const permission *p) {
    buf_add_slice(context, p->id);
    if (p->grant.key.n) {
        pkey_write(context, &p->grant.key);
    }
    buf_add_byte(context, ' ');
    return true;
}

static user *found(const char *name) {
    user *u = NULL;
    return account_user(h.account, SLICE_LIT("d"), false, slice_str(name), false, &u) == OK ? u : NULL;
}

static bool list_user(void *context, const user *u) {
    buf_addf(context, "%s ", u->id);
    return true;
}

static const char *users(void) {
    buf text = buf_init(BUF_NO_LIMIT);
    database *d = NULL;
    assert_int_equal(account_database(h.account, SLICE_LIT("d"), false, &d), OK);
    account_each_user(h.account, d, 0, list_user, &text);
    database_give(d);
    const char *made = arena_text(&h.arena, buf_view(&text));
    buf_free(&text);
    return made;
}

static const char *permissions(const char *of) {
    buf text = buf_init(BUF_NO_LIMIT);
    user *u = found(of);
    assert_non_null(u);
    account_each_permission(h.account, u, 0, list_permission, &text);
    user_give(u);
    const char *made = arena_text(&h.arena, buf_view(&text));
    buf_free(&text);
    return made;
}

static size_t records(void) {
    slice key, value;
    size_t n = 0;
    store_scan *scan = store_scan_open(h.store, STORE_META, NULL, SLICE_LIT("P"), SLICE_LIT("V"), false);
    while (store_scan_next(scan, &key, &value)) {
        n += key.p[0] == 'P' || key.p[0] == 'U';
    }
    assert_int_equal(store_scan_close(scan), OK);
    return n;
}

/* ---- tests ---- */

static void users_come_and_go(void **state) {
    (void)state;
    assert_int_equal(create_user("b"), OK);
    assert_int_equal(create_user("a"), OK);
    assert_int_equal(create_user("b"), E_CONFLICT);
    assert_int_equal(create_user("a/b"), E_BAD_REQUEST);
    assert_int_equal(rename_user("b", "a"), E_CONFLICT);
    assert_int_equal(rename_user("b", "z"), OK);
    assert_int_equal(rename_user("b", "y"), E_NOT_FOUND);
    assert_string_equal(users(), "z a "); /* in creation order, not by name */
    harness_restart(&h);
    assert_string_equal(users(), "z a ");
    assert_int_equal(delete_user("z"), OK);
    assert_int_equal(delete_user("z"), E_NOT_FOUND);
    assert_int_equal(create_user("b"), OK);
    assert_string_equal(users(), "a b ");
    harness_restart(&h);
    assert_string_equal(users(), "a b ");
}

static void permissions_come_and_go(void **state) {
    (void)state;
    assert_int_equal(create_user("u"), OK);
    assert_int_equal(grant_to("nobody", "p", for_key(NULL), false), E_OWNER_NOT_FOUND);
    assert_int_equal(grant_to("u", "p", for_key(NULL), false), OK);
    assert_int_equal(grant_to("u", "p", for_key("k"), false), E_CONFLICT);
    assert_int_equal(grant_to("u", "q", for_key(NULL), false), E_CONFLICT);
    assert_int_equal(grant_to("u", "q", for_key("k"), false), OK);
    assert_int_equal(grant_to("u", "q", for_key("l"), true), OK);
    assert_int_equal(grant_to("u", "r", for_key("k"), true), OK); /* the resource is free again */
    assert_string_equal(permissions("u"), "p q[\"l\"] r[\"k\"] ");
    assert_int_equal(regrant("u", "q", "q", for_key("k")), E_CONFLICT);
    assert_int_equal(regrant("u", "q", "p", for_key("l")), E_CONFLICT);
    assert_int_equal(regrant("u", "q", "Q", for_key("\xc3\xb1")), OK);
    assert_int_equal(regrant("u", "q", "Q", for_key("k")), E_NOT_FOUND);
    assert_string_equal(permissions("u"), "p Q[\"\\u00f1\"] r[\"k\"] ");
    harness_restart(&h);
    assert_string_equal(permissions("u"), "p Q[\"\\u00f1\"] r[\"k\"] ");
    assert_int_equal(grant_to("u", "s", for_key("k"), false), E_CONFLICT);
    assert_int_equal(take_back("u", "r"), OK);
    assert_int_equal(take_back("u", "r"), E_NOT_FOUND);
    assert_int_equal(grant_to("u", "s", for_key("k"), false), OK);
    harness_restart(&h);
    assert_string_equal(permissions("u"), "p Q[\"\\u00f1\"] s[\"k\"] ");
}

static void a_grant_is_for_a_container_of_the_database(void **state) {
    (void)state;
    assert_int_equal(harness_create_database(&h, "e", (throughput_setting){0}), OK);
    rid here = container_rid;
    assert_int_equal(create_user("u"), OK);
    container_rid = make_container("e", "{\"id\":\"c\"," KEY "}");
    assert_int_equal(grant_to("u", "p", for_key(NULL), false), E_NOT_FOUND);
    container_rid = here;
    assert_int_equal(harness_delete_container(&h, "d", "c"), OK);
    assert_int_equal(grant_to("u", "p", for_key(NULL), false), E_NOT_FOUND);
    make_container("d", "{\"id\":\"c\"," KEY "}");
    assert_int_equal(grant_to("u", "p", for_key(NULL), false), E_NOT_FOUND); /* a new container with that name */
}

static permission *permission_of(const char *of, const char *name) {
    permission *p = NULL;
    user *u = found(of);
    assert_non_null(u);
    assert_int_equal(account_permission(h.account, u, slice_str(name), false, &p), OK);
    user_give(u);
    return p;
}

/* A permission is valid by rid and version until it changes. */
static void a_version_is_valid_once(void **state) {
    (void)state;
    assert_int_equal(create_user("u"), OK);
    assert_int_equal(grant_to("u", "p", for_key("k"), false), OK);
    permission *p = permission_of("u", "p");
    permission *same = account_permission_valid(h.account, &p->rid, p->version);
    assert_ptr_equal(same, p);
    permission_give(same);
    assert_null(account_permission_valid(h.account, &p->rid, p->version + 1));
    harness_restart(&h);
    same = account_permission_valid(h.account, &p->rid, p->version);
    assert_non_null(same);
    assert_true(pkey_equal(&same->grant.key, &p->grant.key));
    permission_give(same);
    assert_int_equal(rename_user("u", "v"), OK);
    same = account_permission_valid(h.account, &p->rid, p->version);
    assert_non_null(same);
    permission_give(same);
    assert_int_equal(regrant("v", "p", "p", for_key("k")), OK);
    assert_null(account_permission_valid(h.account, &p->rid, p->version));
    permission_give(p);
    p = permission_of("v", "p");
    assert_int_equal(delete_user("v"), OK);
    assert_null(account_permission_valid(h.account, &p->rid, p->version));
    assert_int_equal(create_user("v"), OK);
    assert_int_equal(grant_to("v", "p", for_key("k"), false), OK);
    assert_null(account_permission_valid(h.account, &p->rid, p->version));
    rid none = {0}, database = rid_database(1);
    assert_null(account_permission_valid(h.account, &none, 1));
    assert_null(account_permission_valid(h.account, &database, 1));
    permission_give(p);
}

static void nothing_is_left_of_what_is_deleted(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        char name[16], id[16];
        snprintf(name, sizeof name, "u%d", i);
        assert_int_equal(create_user(name), OK);
        for (int j = 0; j < 5; j++) {
            snprintf(id, sizeof id, "p%d", j);
            assert_int_equal(grant_to(name, id, for_key(id), false), OK);
        }
    }
    assert_int_equal(records(), 3 + 15);
    assert_int_equal(delete_user("u1"), OK);
    assert_int_equal(records(), 2 + 10);
    harness_restart(&h);
    assert_string_equal(users(), "u0 u2 ");
    assert_int_equal(harness_delete_database(&h, "d"), OK);
    assert_int_equal(records(), 0);
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    assert_string_equal(users(), "");
}

/* A change that cannot be written has no effect. */
static void a_failed_write_leaves_all_as_it_was(void **state) {
    (void)state;
    assert_int_equal(create_user("u"), OK);
    assert_int_equal(grant_to("u", "p", for_key(NULL), false), OK);
    permission *p = permission_of("u", "p");
    h.plan.write_in = 1;
    assert_int_equal(create_user("w"), E_STORE_IO);
    h.plan.write_in = 1;
    assert_int_equal(regrant("u", "p", "q", for_key("k")), E_STORE_IO);
    h.plan.write_in = 1;
    assert_int_equal(delete_user("u"), E_STORE_IO);
    assert_string_equal(users(), "u ");
    assert_string_equal(permissions("u"), "p ");
    permission *same = account_permission_valid(h.account, &p->rid, p->version);
    assert_ptr_equal(same, p);
    permission_give(same);
    permission_give(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(users_come_and_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(permissions_come_and_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_grant_is_for_a_container_of_the_database, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_version_is_valid_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_left_of_what_is_deleted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failed_write_leaves_all_as_it_was, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("account/users", tests, NULL, NULL);
}
