/* Resource ids: layouts observed on the service, made and parsed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "account/rid.h"

static void expect_text(rid r, const char *text) {
    buf out = buf_init(BUF_NO_LIMIT);
    rid_write(&out, &r);
    buf_add_byte(&out, 0);
    assert_string_equal(out.p, text);
    buf_free(&out);
}

static void expect_number(rid r, rid_kind kind, uint64_t number, const char *text) {
    rid again;
    assert_int_equal(rid_kind_of(&r), kind);
    assert_int_equal(rid_number(&r), number);
    expect_text(r, text);
    assert_int_equal(rid_parse(slice_str(text), &again), kind);
    assert_true(rid_equal(&r, &again));
}

static void ids_seen_on_the_service(void **state) {
    (void)state;
    rid r;
    assert_int_equal(rid_parse(SLICE_LIT("DJB7AA=="), &r), RID_DATABASE);
    assert_memory_equal(r.bytes, "\x0c\x90\x7b\x00", 4);
    assert_int_equal(rid_parse(SLICE_LIT("DJB7AI1lZHo="), &r), RID_CONTAINER);
    assert_memory_equal(r.bytes, "\x0c\x90\x7b\x00\x8d\x65\x64\x7a", 8);
    assert_int_equal(rid_parse(SLICE_LIT("DJB7AI1lZHoCAAAAAAAAUA=="), &r), RID_PKRANGE);
    assert_int_equal(rid_number(&r), 2);
    assert_int_equal(rid_parse(SLICE_LIT("DJB7AI1lZHoBAAAAAAAAAA=="), &r), RID_DOCUMENT);
    assert_int_equal(rid_number(&r), 1);
    assert_int_equal(rid_parse(SLICE_LIT("Hu+t"), &r), RID_OFFER);
    assert_int_equal(rid_parse(SLICE_LIT("uT2L"), &r), RID_OFFER);
}

static void databases_containers_and_offers(void **state) {
    (void)state;
    rid database = rid_database(0x7b900c);
    expect_number(database, RID_DATABASE, 0x7b900c, "DJB7AA==");
    expect_number(rid_container(database, 0), RID_CONTAINER, 0, "DJB7AIAAAAA=");
    expect_number(rid_container(database, 0x3d32328d), RID_CONTAINER, 0x3d32328d, "DJB7AI1lZHo=");
    expect_number(rid_container(database, INT32_MAX), RID_CONTAINER, INT32_MAX, "DJB7AP----8=");
    expect_number(rid_user(database, 1), RID_USER, 1, "DJB7AAEAAAA=");
    expect_number(rid_user(database, INT32_MAX), RID_USER, INT32_MAX, "DJB7AH----8=");
    expect_number(rid_offer(0x8b3db9), RID_OFFER, 0x8b3db9, "uT2L");
    expect_number(rid_database(UINT32_MAX), RID_DATABASE, UINT32_MAX, "-----w==");
}

static void children_of_a_container(void **state) {
    (void)state;
    rid container = rid_container(rid_database(0x7b900c), 0x3d32328d);
    static const struct {
        rid_kind kind;
        uint8_t last;
    } kinds[] = {{RID_DOCUMENT, 0x00}, {RID_CONFLICT, 0x40}, {RID_PKRANGE, 0x50}, {RID_UDF, 0x60}, {RID_TRIGGER, 0x70}, {RID_SPROC, 0x80}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        rid r = rid_child(container, kinds[i].kind, 0x0102030405060708);
        rid parent = rid_parent(&r);
        assert_int_equal(r.n, 16);
        assert_int_equal(r.bytes[15], kinds[i].last | 0x01);
        assert_int_equal(rid_kind_of(&r), kinds[i].kind);
        assert_int_equal(rid_number(&r), 0x0102030405060708);
        assert_true(rid_equal(&parent, &container));
    }
    expect_number(rid_child(container, RID_PKRANGE, 2), RID_PKRANGE, 2, "DJB7AI1lZHoCAAAAAAAAUA==");
    expect_number(rid_child(container, RID_DOCUMENT, ((uint64_t)1 << 60) - 1), RID_DOCUMENT, ((uint64_t)1 << 60) - 1,
                  "DJB7AI1lZHr---------Dw==");
}

/* Clients compare documents by bytes 8 to 15 of their rids, as a little-endian number. */
static void document_numbers_are_little_endian(void **state) {
    (void)state;
    rid container = rid_container(rid_database(1), 1);
    static const uint64_t numbers[] = {1, 2, 255, 256, 65535, 65536, 0x0400000000000001, 0x0400000000000002};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        rid r = rid_child(container, RID_DOCUMENT, numbers[i]);
        uint64_t seen = 0;
        for (size_t byte = 16; byte-- > 8;) {
            seen = seen << 8 | (unsigned char)r.bytes[byte];
        }
        assert_int_equal(seen, numbers[i]);
    }
}

static void what_lies_below_users_and_databases(void **state) {
    (void)state;
    rid database = rid_database(0x7b900c);
    rid user = rid_user(database, 5);
    rid permission = rid_permission(user, 9);
    rid key = rid_client_encryption_key(database, 7);
    assert_int_equal(rid_kind_of(&permission), RID_PERMISSION);
    assert_int_equal(rid_number(&permission), 9);
    assert_int_equal(rid_kind_of(&key), RID_CLIENT_ENCRYPTION_KEY);
    assert_int_equal(rid_number(&key), 7);
    rid parent = rid_parent(&permission);
    assert_true(rid_equal(&parent, &user));
    parent = rid_parent(&key);
    assert_true(rid_equal(&parent, &database));
    rid none = rid_container_of(&permission);
    assert_int_equal(none.n, 0);
}

static void parents_and_parts(void **state) {
    (void)state;
    rid database = rid_database(3);
    rid container = rid_container(database, 4);
    rid document = rid_child(container, RID_DOCUMENT, 5);
    rid attachment = document;
    memcpy(attachment.bytes + 16, "\1\0\0\0", 4);
    attachment.n = 20;
    assert_int_equal(rid_kind_of(&attachment), RID_ATTACHMENT);
    assert_int_equal(rid_number(&attachment), 1);
    rid r = rid_parent(&attachment);
    assert_true(rid_equal(&r, &document));
    r = rid_parent(&container);
    assert_true(rid_equal(&r, &database));
    r = rid_database_of(&attachment);
    assert_true(rid_equal(&r, &database));
    r = rid_container_of(&attachment);
    assert_true(rid_equal(&r, &container));
    r = rid_container_of(&container);
    assert_true(rid_equal(&r, &container));
    r = rid_container_of(&database);
    assert_int_equal(r.n, 0);
    r = rid_parent(&database);
    assert_int_equal(r.n, 0);
    rid offer = rid_offer(1);
    r = rid_database_of(&offer);
    assert_int_equal(r.n, 0);
}

static void what_is_no_resource_id(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "a",
                                      "ToDoList",
                                      "DJB7AA=",
                                      "DJB7AA",
                                      "DJB7AA===",
                                      "DJB7AB==",
                                      "AAAAAA==",
                                      "DJB7AI1lZHo",
                                      "DJB7AAAAAAA=",
                                      "DJ/7AA==",
                                      "DJB7AI1lZHoBAAAAAAAAEA==",
                                      "DJB7AAAAAAABAAAAAwAAAA==",
                                      "DJB7AA==DJB7AA==",
                                      "DJB7AI1lZHoBAAAAAAAAAAEAAAABAAAAAA==",
                                      "DJB7AI1lZHoBAAAAAAAAUAEAAAA="};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        rid r;
        assert_int_equal(rid_parse(slice_str(bad[i]), &r), RID_NONE);
        assert_int_equal(r.n, 0);
        assert_int_equal(rid_number(&r), 0);
    }
    rid r;
    assert_int_equal(rid_parse(SLICE_LIT("DJB7\0AA="), &r), RID_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_seen_on_the_service),
        cmocka_unit_test(databases_containers_and_offers),
        cmocka_unit_test(children_of_a_container),
        cmocka_unit_test(document_numbers_are_little_endian),
        cmocka_unit_test(what_lies_below_users_and_databases),
        cmocka_unit_test(parents_and_parts),
        cmocka_unit_test(what_is_no_resource_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
