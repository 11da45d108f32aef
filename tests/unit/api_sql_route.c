/* Paths of the SQL API: every resource, by name and by id, what a client signs for it, and invalid paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/sql/route.h"

static arena memory;

static int setup(void **state) {
    (void)state;
    memory = arena_init();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

static sql_route parsed(const char *path) {
    sql_route r;
    assert_int_equal(sql_route_parse(&memory, slice_str(path), &r), OK);
    return r;
}

static void expect(slice s, const char *text) {
    assert_int_equal(s.n, strlen(text));
    assert_true(slice_eq(s, slice_str(text)));
}

static void every_path_has_its_kind(void **state) {
    (void)state;
    static const struct {
        const char *path;
        sql_kind kind;
        const char *type;
        const char *link;
        const char *child;
    } cases[] = {
        {"", SQL_ACCOUNT, "", "", ""},
        {"/", SQL_ACCOUNT, "", "", ""},
        {"/dbs", SQL_DATABASES, "dbs", "", ""},
        {"/dbs/d", SQL_DATABASE, "dbs", "dbs/d", ""},
        {"/dbs/d/users", SQL_USERS, "users", "dbs/d", ""},
        {"/dbs/d/users/u", SQL_USER, "users", "dbs/d/users/u", "u"},
        {"/dbs/d/users/u/permissions", SQL_PERMISSIONS, "permissions", "dbs/d/users/u", "u"},
        {"/dbs/d/users/u/permissions/p", SQL_PERMISSION, "permissions", "dbs/d/users/u/permissions/p", "p"},
        {"/dbs/d/clientencryptionkeys", SQL_CLIENT_ENCRYPTION_KEYS, "clientencryptionkeys", "dbs/d", ""},
        {"/dbs/d/clientencryptionkeys/k", SQL_CLIENT_ENCRYPTION_KEY, "clientencryptionkeys", "dbs/d/clientencryptionkeys/k", "k"},
        {"/dbs/d/colls", SQL_CONTAINERS, "colls", "dbs/d", ""},
        {"/dbs/d/colls/c", SQL_CONTAINER, "colls", "dbs/d/colls/c", ""},
        {"/dbs/d/colls/c/docs", SQL_ITEMS, "docs", "dbs/d/colls/c", ""},
        {"/dbs/d/colls/c/docs/i", SQL_ITEM, "docs", "dbs/d/colls/c/docs/i", "i"},
        {"/dbs/d/colls/c/docs/i/attachments", SQL_ATTACHMENTS, "attachments", "dbs/d/colls/c/docs/i", "i"},
        {"/dbs/d/colls/c/docs/i/attachments/a", SQL_ATTACHMENT, "attachments", "dbs/d/colls/c/docs/i/attachments/a", "a"},
        {"/dbs/d/colls/c/pkranges", SQL_PKRANGES, "pkranges", "dbs/d/colls/c", ""},
        {"/dbs/d/colls/c/pkranges/0", SQL_PKRANGE, "pkranges", "dbs/d/colls/c/pkranges/0", "0"},
        {"/dbs/d/colls/c/sprocs", SQL_SPROCS, "sprocs", "dbs/d/colls/c", ""},
        {"/dbs/d/colls/c/sprocs/s", SQL_SPROC, "sprocs", "dbs/d/colls/c/sprocs/s", "s"},
        {"/dbs/d/colls/c/triggers", SQL_TRIGGERS, "triggers", "dbs/d/colls/c", ""},
        {"/dbs/d/colls/c/triggers/t", SQL_TRIGGER, "triggers", "dbs/d/colls/c/triggers/t", "t"},
        {"/dbs/d/colls/c/udfs", SQL_UDFS, "udfs", "dbs/d/colls/c", ""},
        {"/dbs/d/colls/c/udfs/f", SQL_UDF, "udfs", "dbs/d/colls/c/udfs/f", "f"},
        {"/dbs/d/colls/c/conflicts", SQL_CONFLICTS, "conflicts", "dbs/d/colls/c", ""},
        {"/dbs/d/colls/c/conflicts/x", SQL_CONFLICT, "conflicts", "dbs/d/colls/c/conflicts/x", "x"},
        {"/dbs/d/colls/c/operations/partitionkeydelete", SQL_PARTITION_KEY_DELETE, "colls", "dbs/d/colls/c", ""},
        {"/offers", SQL_OFFERS, "offers", "", ""},
        {"/offers/uT2L", SQL_OFFER, "offers", "offers/uT2L", "uT2L"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sql_route r = parsed(cases[i].path);
        assert_int_equal(r.kind, cases[i].kind);
        expect(r.type, cases[i].type);
        expect(r.link, cases[i].link);
        expect(r.child, cases[i].child);
        assert_false(r.database_by_rid || r.container_by_rid || r.owner_by_rid);
    }
}

static void names_are_where_they_belong(void **state) {
    (void)state;
    sql_route r = parsed("/dbs/data/colls/cont/docs/item/attachments/att");
    expect(r.database, "data");
    expect(r.container, "cont");
    expect(r.owner, "item");
    expect(r.child, "att");
    r = parsed("/dbs/data/users/me/permissions/p");
    expect(r.database, "data");
    assert_null(r.container.p);
    expect(r.owner, "me");
    expect(r.child, "p");
}

static void names_are_decoded(void **state) {
    (void)state;
    sql_route r = parsed("/dbs/a%20b/colls/%C3%B1%2f%2B+/docs/%E6%97%A5=&%25");
    expect(r.database, "a b");
    expect(r.container, "ñ/++");
    expect(r.child, "日=&%");
    expect(r.link, "dbs/a b/colls/ñ/++/docs/日=&%");
    r = parsed("/dbs/ñ"); /* unescaped bytes */
    expect(r.database, "ñ");
    r = parsed("/dbs/a%00b");
    assert_true(slice_eq(r.database, SLICE_LIT("a\0b")));
}

static void slashes_too_many_are_skipped(void **state) {
    (void)state;
    static const char *const paths[] = {"dbs/d/colls/c", "//dbs/d/colls/c", "/dbs/d/colls/c/", "//dbs//d///colls//c//", "/DBS/d/Colls/c"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        sql_route r = parsed(paths[i]);
        assert_int_equal(r.kind, SQL_CONTAINER);
        expect(r.link, "dbs/d/colls/c");
    }
    assert_int_equal(parsed("//dbs/").kind, SQL_DATABASES);
    assert_int_equal(parsed("//").kind, SQL_ACCOUNT);
    assert_int_equal(parsed("/dbs/d/colls/c/docs/").kind, SQL_ITEMS);
}

static void what_is_no_path(void **state) {
    (void)state;
    static const char *const paths[] = {
        "/x",
        "/dbs/d/x",
        "/dbs/d/docs",
        "/dbs/d/colls/c/users",
        "/dbs/d/colls/c/x/y",
        "/dbs/d/colls/c/docs/i/x",
        "/dbs/d/colls/c/docs/i/attachments/a/b",
        "/dbs/d/colls/c/operations",
        "/dbs/d/colls/c/operations/x",
        "/dbs/d/colls/c/operations/partitionkeydelete/x",
        "/dbs/d/operations/partitionkeydelete",
        "/dbs/d/colls/c/conflicts/x/conflicts",
        "/offers/o/x",
        "/colls/c",
        "/dbs/%",
        "/dbs/%4",
        "/dbs/a%4",
        "/dbs/%zz",
        "/dbs/%4g",
        "/dbs/%g4/colls",
        "/dbs/%-1",
        "/dbs/%C3",
        "/dbs/%FF",
        "/dbs/%ED%A0%80",
        "/dbs/\xC3",
        "/%64bs",
    };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        sql_route r;
        assert_int_equal(sql_route_parse(&memory, slice_str(paths[i]), &r), E_BAD_URL);
    }
}

static void paths_by_id(void **state) {
    (void)state;
    sql_route r = parsed("/dbs/DJB7AA==");
    assert_true(r.database_by_rid);
    assert_int_equal(rid_kind_of(&r.database_rid), RID_DATABASE);
    expect(r.link, "dbs/DJB7AA==");
    expect(r.link_rid, "djb7aa==");
    r = parsed("/dbs/DJB7AA==/colls/DJB7AI1lZHo=/docs");
    assert_true(r.database_by_rid && r.container_by_rid);
    expect(r.link_rid, "djb7ai1lzho=");
    r = parsed("/dbs/DJB7AA%3D%3D/colls/DJB7AI1lZHo=/docs/DJB7AI1lZHoBAAAAAAAAAA==/");
    assert_true(r.database_by_rid && r.container_by_rid && r.child_by_rid);
    assert_int_equal(rid_number(&r.child_rid), 1);
    expect(r.link, "dbs/DJB7AA==/colls/DJB7AI1lZHo=/docs/DJB7AI1lZHoBAAAAAAAAAA==");
    expect(r.link_rid, "djb7ai1lzhobaaaaaaaaaa==");
    r = parsed("/dbs/DJB7AA==/colls/DJB7AI1lZHo=/pkranges/DJB7AI1lZHoCAAAAAAAAUA==");
    assert_true(r.child_by_rid);
    r = parsed("/dbs/DJB7AA==/users/DJB7AAEAAAA=/permissions/DJB7AAEAAAAJAAAAAAAAAA==");
    assert_true(r.owner_by_rid && r.child_by_rid);
    r = parsed("/offers/uT2L");
    assert_true(r.child_by_rid);
    expect(r.link_rid, "ut2l");
}

static void what_only_looks_like_an_id_is_a_name(void **state) {
    (void)state;
    assert_false(parsed("/dbs/ToDoList").database_by_rid);     /* six bytes */
    assert_false(parsed("/dbs/DJB7AI1lZHo=").database_by_rid); /* a container's */
    assert_false(parsed("/dbs/AAAAAA==").database_by_rid);     /* number 0 is invalid */
    assert_null(parsed("/dbs/ToDoList").link_rid.p);
    /* an item whose id is a GUID in base64, below names */
    assert_false(parsed("/dbs/d/colls/c/docs/DJB7AI1lZHoBAAAAAAAAAA==").child_by_rid);
    assert_false(parsed("/dbs/d/colls/DJB7AI1lZHo=").container_by_rid);
    /* ids of another database, another container, another kind */
    assert_false(parsed("/dbs/DZB7AA==/colls/DJB7AI1lZHo=").container_by_rid);
    assert_false(parsed("/dbs/DJB7AA==/colls/DJB7AI1lZHs=/docs/DJB7AI1lZHoBAAAAAAAAAA==").child_by_rid);
    assert_false(parsed("/dbs/DJB7AA==/colls/DJB7AI1lZHo=/docs/DJB7AI1lZHoCAAAAAAAAUA==").child_by_rid);
    assert_false(parsed("/dbs/DJB7AA==/colls/DJB7AAEAAAA=").container_by_rid);
    sql_route r = parsed("/dbs/DJB7AA==/colls/name/docs/DJB7AI1lZHoBAAAAAAAAAA==");
    assert_true(r.database_by_rid);
    assert_false(r.container_by_rid || r.child_by_rid);
    assert_int_equal(r.container_rid.n, 0);
    assert_int_equal(r.child_rid.n, 0);
    assert_false(parsed("/offers/offer1").child_by_rid);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_path_has_its_kind),
        TEST(names_are_where_they_belong),
        TEST(names_are_decoded),
        TEST(slashes_too_many_are_skipped),
        TEST(what_is_no_path),
        TEST(paths_by_id),
        TEST(what_only_looks_like_an_id_is_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
