/* Role assignments: how they are read, and what they reach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "access/roles.h"
#include "base/buf.h"

static arena memory;

static int set_up(void **state) {
    (void)state;
    memory = arena_init();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

static bool read(const char *json, access_roles *roles) {
    char why[200] = "";
    bool good = access_roles_read(&memory, slice_str(json), roles, why, sizeof why);
    assert_int_equal(good, why[0] == 0);
    return good;
}

static access_role role(const access_roles *all, const char *principal, const char *database, const char *container) {
    access_roles of = access_roles_of(all, slice_str(principal));
    return access_roles_in(&of, slice_str(database), slice_str(container));
}

static void scopes_cover_what_is_below(void **state) {
    (void)state;
    access_roles all;
    assert_true(read(
        "[{\"principal\":\"Z\",\"role\":\"Contributor\",\"scope\":\"/dbs/d\"},{\"principal\":\"z\",\"role\":\"reader\",\"scope\":\"/\"},"
        "{\"principal\":\"a\",\"role\":\"reader\",\"scope\":\"/dbs/d/colls/c\"}]",
        &all));
    assert_int_equal(role(&all, "z", "", ""), ACCESS_READER);
    assert_int_equal(role(&all, "Z", "d", ""), ACCESS_CONTRIBUTOR);
    assert_int_equal(role(&all, "z", "d", "x"), ACCESS_CONTRIBUTOR);
    assert_int_equal(role(&all, "z", "e", "x"), ACCESS_READER);
    assert_int_equal(role(&all, "a", "d", "c"), ACCESS_READER);
    assert_int_equal(role(&all, "a", "d", "cc"), ACCESS_NO_ROLE);
    assert_int_equal(role(&all, "a", "d", ""), ACCESS_NO_ROLE);
    assert_int_equal(role(&all, "a", "", ""), ACCESS_NO_ROLE);
    assert_int_equal(role(&all, "", "d", "c"), ACCESS_NO_ROLE);
    assert_int_equal(role(&all, "aa", "d", "c"), ACCESS_NO_ROLE);
}

static void each_principal_is_found_among_many(void **state) {
    (void)state;
    enum { MANY = 1000 };
    buf json = buf_init(BUF_NO_LIMIT);
    access_roles all;
    for (int i = 0; i < MANY; i++) {
        buf_addf(&json, "%s{\"principal\":\"p%d\",\"role\":\"reader\",\"scope\":\"/dbs/%d\"}", i ? "," : "[", i * 7919 % MANY,
                 i * 7919 % MANY);
    }
    buf_add_lit(&json, "]");
    buf_add_byte(&json, 0);
    assert_true(read(json.p, &all));
    buf_free(&json);
    for (int i = 0; i < MANY; i++) {
        char principal[16], database[16];
        snprintf(principal, sizeof principal, "P%d", i);
        snprintf(database, sizeof database, "%d", i);
        assert_int_equal(role(&all, principal, database, ""), ACCESS_READER);
        assert_int_equal(role(&all, principal, "x", ""), ACCESS_NO_ROLE);
    }
}

static void what_cannot_be_read(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "{}",
        "[1]",
        "[{}]",
        "[{\"principal\":\"\",\"role\":\"reader\",\"scope\":\"/\"}]",
        "[{\"principal\":\"a\",\"role\":\"owner\",\"scope\":\"/\"}]",
        "[{\"principal\":\"a\",\"role\":\"reader\"}]",
        "[{\"principal\":\"a\",\"role\":\"reader\",\"scope\":\"\"}]",
        "[{\"principal\":\"a\",\"role\":\"reader\",\"scope\":\"/dbs/\"}]",
        "[{\"principal\":\"a\",\"role\":\"reader\",\"scope\":\"/dbs/d/\"}]",
        "[{\"principal\":\"a\",\"role\":\"reader\",\"scope\":\"/dbs/d/colls/\"}]",
        "[{\"principal\":\"a\",\"role\":\"reader\",\"scope\":\"/dbs/d/colls/c/docs/x\"}]",
    };
    access_roles roles;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(read(bad[i], &roles));
    }
    assert_true(read("[]", &roles));
    assert_int_equal(role(&roles, "a", "", ""), ACCESS_NO_ROLE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(scopes_cover_what_is_below, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_principal_is_found_among_many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_read, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
