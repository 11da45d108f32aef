/* Row keys and partition keys of any BSON type: which values are allowed, that each key finds its own item only, the order of rows, and
 * that a container keeps its definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>
#include <cmocka.h>

#include "item/rows.h"
#include "item_harness.h"

#define PROPERTIES(paths) "{\"id\":\"c\",\"partitionKey\":{\"paths\":[" paths "],\"kind\":\"Hash\",\"version\":2}}"

static harness h;
static container *c;
static bool on_disk; /* every test runs twice, on an in-memory store and on RocksDB */
static char *folder;

static void open_store(void) {
    folder = on_disk ? make_folder() : NULL;
    harness_open_on(&h, on_disk ? open_rocks(folder) : store_open_memory());
}

static void close_store(void) {
    harness_close(&h);
    if (folder) {
        remove_folder(folder);
        free(folder);
    }
}

static void open_with(const char *properties, const char *rows) {
    open_store();
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    assert_int_equal(harness_create_rows(&h, "d", properties, rows, &c), OK);
}

static void close_all(void) {
    harness_check(&h, c);
    container_give(c);
    close_store();
}

static err write_body(item_kind kind, bson_t *body) {
    item_op o;
    err code = harness_prepare_bson(&h, c, &o, kind, body);
    code = code == OK ? harness_commit(&h, c, &o, 1, true) : code;
    bson_destroy(body);
    return code;
}

/* The `v` of the item with the key of this body; -1: none. */
static int read_body(bson_t *body) {
    item_op o;
    item_found found;
    bson_iter_t it;
    assert_int_equal(harness_prepare_bson(&h, c, &o, ITEM_UPSERT, body), OK);
    bson_destroy(body);
    err code = item_read(harness_items(&h), harness_op(&h), c, &o.key, &found);
    if (code == E_NOT_FOUND) {
        return -1;
    }
    assert_int_equal(code, OK);
    assert_true(doc_find_key(found.body, SLICE_LIT("v"), &it));
    int v = bson_iter_int32(&it);
    item_give(&found);
    return v;
}

/* One value of each type, in row order. Two of them are equal only if they are the same number. */
enum { VALUES = 22 };
static void append_value(bson_t *body, const char *name, int i) {
    bson_oid_t oid;
    bson_decimal128_t decimal;
    bson_t inner = BSON_INITIALIZER;
    static const uint8_t uuid[16] = {1, 2, 3, 4};
    bson_oid_init_from_string(&oid, "656565656565656565656501");
    bson_decimal128_from_string(i == 5 ? "-1.5" : "123456789012345678901234567890.1", &decimal);
    switch (i) {
    case 0:
        BSON_APPEND_MINKEY(body, name);
        break;
    case 1:
        BSON_APPEND_NULL(body, name);
        break;
    case 2:
        BSON_APPEND_BOOL(body, name, false);
        break;
    case 3:
        BSON_APPEND_BOOL(body, name, true);
        break;
    case 4:
        BSON_APPEND_INT64(body, name, INT64_MIN);
        break;
    case 5:
        BSON_APPEND_DECIMAL128(body, name, &decimal);
        break;
    case 6:
        BSON_APPEND_INT32(body, name, 0);
        break;
    case 7:
        BSON_APPEND_DOUBLE(body, name, 0x1p53);
        break;
    case 8:
        BSON_APPEND_INT64(body, name, ((int64_t)1 << 53) + 1);
        break;
    case 9:
        BSON_APPEND_INT64(body, name, INT64_MAX);
        break;
    case 10:
        BSON_APPEND_DECIMAL128(body, name, &decimal);
        break;
    case 11:
        BSON_APPEND_UTF8(body, name, "");
        break;
    case 12:
        BSON_APPEND_UTF8(body, name, "a/b\\");
        break;
    case 13:
        BSON_APPEND_UTF8(body, name, "a/b\\c");
        break;
    case 14:
        BSON_APPEND_INT32(&inner, "x", 1);
        BSON_APPEND_DOCUMENT(body, name, &inner);
        break;
    case 15:
        BSON_APPEND_INT32(&inner, "x", 2);
        BSON_APPEND_DOCUMENT(body, name, &inner);
        break;
    case 16:
        BSON_APPEND_BINARY(body, name, BSON_SUBTYPE_UUID, uuid, sizeof uuid);
        break;
    case 17:
        BSON_APPEND_OID(body, name, &oid);
        break;
    case 18:
        BSON_APPEND_DATE_TIME(body, name, -5);
        break;
    case 19:
        BSON_APPEND_DATE_TIME(body, name, 1700000000123);
        break;
    case 20:
        BSON_APPEND_TIMESTAMP(body, name, 7, 1);
        break;
    default:
        BSON_APPEND_MAXKEY(body, name);
        break;
    }
    bson_destroy(&inner);
}

static bson_t *body_of(int partition, int row, int v) {
    bson_t *body = bson_new();
    append_value(body, "_id", row);
    append_value(body, "pk", partition);
    BSON_APPEND_INT32(body, "v", v);
    return body;
}

static void every_type_can_be_a_row_key_and_a_partition_key(void **state) {
    (void)state;
    open_with(PROPERTIES("\"/pk\""), "{\"typed\":true,\"key\":[{\"path\":\"/_id\"}]}");
    for (int p = 0; p < VALUES; p++) {
        for (int r = VALUES; r-- > 0;) {
            assert_int_equal(write_body(ITEM_CREATE, body_of(p, r, 100 * p + r)), OK);
        }
    }
    for (int p = 0; p < VALUES; p++) {
        for (int r = 0; r < VALUES; r++) {
            assert_int_equal(read_body(body_of(p, r, 0)), 100 * p + r);
            assert_int_equal(write_body(ITEM_CREATE, body_of(p, r, 0)), E_CONFLICT);
        }
    }
    assert_int_equal(harness_count(c), VALUES * VALUES);
    assert_int_equal(write_body(ITEM_REPLACE, body_of(8, 17, 5)), E_BAD_REQUEST); /* the harness sets no row key, so it differs */
    assert_int_equal(write_body(ITEM_DELETE, body_of(8, 17, 0)), OK);
    assert_int_equal(read_body(body_of(8, 17, 0)), -1);
    assert_int_equal(read_body(body_of(7, 17, 0)), 717);
    close_all();
}

typedef struct seen {
    int list[VALUES * 2];
    size_t n;
} seen;

static bool see(void *context, const item_found *found) {
    seen *s = context;
    bson_iter_t it;
    assert_true(doc_find_key(found->body, SLICE_LIT("v"), &it));
    s->list[s->n++] = bson_iter_int32(&it);
    return true;
}

static void read_partition(const item_key *key, bool backward, seen *s) {
    item_rows_ask ask = item_rows_ask_partition(key);
    item_rows_cursor cursor = {0};
    item_rows_page page;
    ask.backward = backward;
    *s = (seen){0};
    assert_int_equal(item_rows_read(harness_items(&h), harness_op(&h), c, &ask, &cursor, see, s, &page), OK);
}

static void rows_of_all_types_come_in_the_order_of_values(void **state) {
    (void)state;
    static const char *const rows[] = {"{\"typed\":true,\"key\":[{\"path\":\"/_id\"}]}",
                                       "{\"typed\":true,\"key\":[{\"path\":\"/_id\",\"order\":\"descending\"}]}"};
    for (int descending = 0; descending < 2; descending++) {
        open_with(PROPERTIES("\"/pk\""), rows[descending]);
        for (int i = 0; i < VALUES; i++) {
            assert_int_equal(write_body(ITEM_CREATE, body_of(8, i * 5 % VALUES, i * 5 % VALUES)), OK);
        }
        item_op o;
        seen s;
        bson_t *body = body_of(8, 0, 0);
        assert_int_equal(harness_prepare_bson(&h, c, &o, ITEM_UPSERT, body), OK);
        bson_destroy(body);
        for (int backward = 0; backward < 2; backward++) {
            read_partition(&o.key, backward, &s);
            assert_int_equal(s.n, VALUES);
            for (int i = 0; i < VALUES; i++) {
                assert_int_equal(s.list[i], backward == descending ? i : VALUES - 1 - i);
            }
        }
        close_all();
    }
}

/* As in MongoDB: 1, 1.0 and Decimal128 1.00 are the same `_id`, and the same shard key. */
static void numbers_are_one_key_whatever_their_type(void **state) {
    (void)state;
    bson_decimal128_t decimal;
    bson_decimal128_from_string("1.00", &decimal);
    open_with(PROPERTIES("\"/pk\""), "{\"typed\":true,\"key\":[{\"path\":\"/_id\"}]}");
    assert_int_equal(write_body(ITEM_CREATE, BCON_NEW("_id", BCON_INT32(1), "pk", BCON_INT32(1), "v", BCON_INT32(9))), OK);
    assert_int_equal(read_body(BCON_NEW("_id", BCON_DOUBLE(1), "pk", BCON_INT64(1))), 9);
    assert_int_equal(read_body(BCON_NEW("_id", BCON_INT64(1), "pk", BCON_DOUBLE(1))), 9);
    assert_int_equal(read_body(BCON_NEW("_id", BCON_DECIMAL128(&decimal), "pk", BCON_DECIMAL128(&decimal))), 9);
    assert_int_equal(write_body(ITEM_CREATE, BCON_NEW("_id", BCON_DOUBLE(1), "pk", BCON_DECIMAL128(&decimal))), E_CONFLICT);
    close_all();
}

/* SQL's numbers are doubles: both of these are 2^53. */
static void a_container_of_the_sql_api_takes_integers_for_doubles(void **state) {
    (void)state;
    open_store();
    c = harness_container(&h, PROPERTIES("\"/pk\""), 0);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":9007199254740993}"), OK);
    assert_non_null(harness_read(&h, c, "[9007199254740992]", "1"));
    assert_int_equal(write_body(ITEM_CREATE, body_of(17, 12, 0)), E_BAD_REQUEST); /* an ObjectId */
    close_all();
}

/* A composite key is hashed as a whole. */
static void a_composite_key_has_up_to_eight_components(void **state) {
    (void)state;
    open_with(PROPERTIES("\"/a\",\"/b\",\"/c\",\"/d\",\"/e\",\"/f\",\"/g\",\"/h\""), "{\"typed\":true,\"key\":[{\"path\":\"/r\"}]}");
    for (int v = 0; v < 3; v++) {
        bson_t *body =
            BCON_NEW("a", BCON_INT32(1), "b", "x", "c", BCON_INT32(v), "r", BCON_INT32(0), "v", BCON_INT32(v), "h", BCON_INT32(1));
        assert_int_equal(write_body(ITEM_CREATE, body), OK);
    }
    for (int v = 0; v < 3; v++) {
        bson_t *body = BCON_NEW("h", BCON_DOUBLE(1), "a", BCON_INT64(1), "b", "x", "c", BCON_INT32(v), "r", BCON_INT32(0));
        assert_int_equal(read_body(body), v);
    }
    assert_int_equal(read_body(BCON_NEW("a", BCON_INT32(1), "b", "x", "c", BCON_INT32(0), "r", BCON_INT32(0))), -1);
    close_all();
    open_store();
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    assert_int_equal(
        harness_create_rows(&h, "d", PROPERTIES("\"/a\",\"/b\",\"/c\",\"/d\",\"/e\",\"/f\",\"/g\",\"/h\",\"/i\""), "{\"typed\":true}", &c),
        E_BAD_REQUEST);
    assert_int_equal(harness_create_container(&h, "d", PROPERTIES("\"/a\",\"/b\""), 0, &c), E_BAD_REQUEST); /* untyped: one path only */
    close_store();
}

static void what_cannot_be_a_key_is_refused(void **state) {
    (void)state;
    bson_t *large = BCON_NEW("pk", BCON_INT32(1));
    char text[LIMIT_TYPED_KEY_BYTES + 1];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    open_with(PROPERTIES("\"/pk\""), "{\"typed\":true,\"key\":[{\"path\":\"/_id\"}]}");
    BSON_APPEND_UTF8(large, "_id", text);
    assert_int_equal(write_body(ITEM_CREATE, large), E_BAD_REQUEST);
    assert_int_equal(write_body(ITEM_CREATE, BCON_NEW("_id", BCON_INT32(1), "pk", BCON_UTF8(text))), E_BAD_REQUEST);
    assert_int_equal(write_body(ITEM_CREATE, BCON_NEW("_id", BCON_INT32(1), "pk", "[", "]")), E_BAD_REQUEST);
    assert_int_equal(write_body(ITEM_CREATE, BCON_NEW("pk", BCON_INT32(1))), E_BAD_REQUEST);           /* no row key */
    assert_int_equal(write_body(ITEM_CREATE, BCON_NEW("_id", BCON_INT32(1), "v", BCON_INT32(3))), OK); /* no partition key: undefined */
    assert_int_equal(read_body(BCON_NEW("_id", BCON_INT32(1))), 3);
    close_all();
}

static void bad_definitions_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "{\"key\":[]}",
        "{\"key\":1}",
        "{\"key\":[\"/a\"]}",
        "{\"key\":[{\"path\":\"a\"}]}",
        "{\"key\":[{\"path\":\"/a\",\"order\":\"up\"}]}",
        "{\"key\":[{\"order\":\"ascending\"}]}",
        "{\"key\":[{\"path\":\"/a\"},{\"path\":\"/b\"},{\"path\":\"/c\"},{\"path\":\"/d\"},{\"path\":\"/e\"},{\"path\":\"/f\"},"
        "{\"path\":\"/g\"},{\"path\":\"/h\"},{\"path\":\"/i\"},{\"path\":\"/j\"},{\"path\":\"/k\"},{\"path\":\"/l\"},"
        "{\"path\":\"/m\"},{\"path\":\"/n\"},{\"path\":\"/o\"},{\"path\":\"/p\"},{\"path\":\"/q\"}]}"};
    open_store();
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(harness_create_rows(&h, "d", PROPERTIES("\"/pk\""), bad[i], &c), E_BAD_REQUEST);
    }
    assert_int_equal(
        harness_create_rows(&h, "d", "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":1}}", "{\"typed\":true}", &c),
        E_BAD_REQUEST);
    close_store();
}

/* Neither a restart nor a replace that does not mention rows changes the definition; a client of the SQL API cannot set it. */
static void a_container_keeps_its_definition(void **state) {
    (void)state;
    open_with(PROPERTIES("\"/pk\""), "{\"typed\":true,\"key\":[{\"path\":\"/_id\",\"order\":\"descending\"}]}");
    assert_int_equal(write_body(ITEM_CREATE, body_of(17, 17, 42)), OK);
    for (int i = 0; i < 2; i++) {
        container_give(c);
        if (i == 0) {
            harness_restart(&h);
        } else {
            assert_int_equal(harness_replace_container(&h, "d", "c", PROPERTIES("\"/pk\"")), OK);
        }
        c = harness_found(&h, "d", "c");
        assert_true(c->key.typed && c->row.n == 1 && c->row.paths[0].descending);
        assert_int_equal(read_body(body_of(17, 17, 0)), 42);
    }
    close_all();
    open_store();
    c = harness_container(&h, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},\"rows\":{\"typed\":true,\"key\":[{\"path\":\"/a\"}]}}",
                          0);
    assert_true(!c->key.typed && c->row.n == 0);
    close_all();
}

/* Writes a key of each type, failing each store call in turn: the item exists completely or not at all, and the next try succeeds. */
static void whatever_fails_a_key_is_whole_or_not_there(void **state) {
    (void)state;
    open_with(PROPERTIES("\"/pk\""), "{\"typed\":true,\"key\":[{\"path\":\"/a\"}]}");
    for (int i = 0; i < VALUES; i++) {
        err code = E_STORE_IO;
        for (unsigned in = 1; code != OK; in++) {
            bson_t *body = bson_new();
            append_value(body, "pk", i);
            append_value(body, "a", i);
            BSON_APPEND_INT32(body, "v", i);
            bson_t *key = bson_copy(body);
            h.plan.get_in = in;
            code = write_body(ITEM_CREATE, body);
            h.plan.get_in = 0;
            assert_true(code == OK || code == E_STORE_IO);
            assert_int_equal(read_body(key), code == OK ? i : -1);
        }
    }
    close_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_can_be_a_row_key_and_a_partition_key),
        cmocka_unit_test(rows_of_all_types_come_in_the_order_of_values),
        cmocka_unit_test(numbers_are_one_key_whatever_their_type),
        cmocka_unit_test(a_container_of_the_sql_api_takes_integers_for_doubles),
        cmocka_unit_test(a_composite_key_has_up_to_eight_components),
        cmocka_unit_test(what_cannot_be_a_key_is_refused),
        cmocka_unit_test(bad_definitions_are_refused),
        cmocka_unit_test(a_container_keeps_its_definition),
        cmocka_unit_test(whatever_fails_a_key_is_whole_or_not_there),
    };
    int failed = cmocka_run_group_tests_name("memory", tests, NULL, NULL);
    on_disk = true;
    return failed + cmocka_run_group_tests_name("RocksDB", tests, NULL, NULL);
}
