/* SASL PLAIN: messages as drivers send them, and malformed ones. access_reach.c tests tokens as passwords. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "access/plain.h"
#include "base/base64.h"
#include "base/limits.h"

static arena memory;
static op o;

static int set_up(void **state) {
    (void)state;
    memory = arena_init();
    op_init(&o, &memory, 1800000000);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

#define MESSAGE(s) slice_of(s, sizeof(s) - 1)

static void messages_are_cut_at_their_zeros(void **state) {
    (void)state;
    access_plain plain;
    assert_int_equal(access_plain_read(&o, MESSAGE("\0tim\0tanstaaftanstaaf"), &plain), OK); /* RFC 4616, section 4 */
    assert_true(plain.identity.n == 0 && slice_eq(plain.user, SLICE_LIT("tim")) && slice_eq(plain.password, SLICE_LIT("tanstaaftanstaaf")));
    assert_int_equal(access_plain_read(&o, MESSAGE("Ursel\0Kurt\0xipj3plmq"), &plain), OK); /* the same */
    assert_true(slice_eq(plain.identity, SLICE_LIT("Ursel")) && slice_eq(plain.user, SLICE_LIT("Kurt")) &&
                slice_eq(plain.password, SLICE_LIT("xipj3plmq")));
    char room[100];
    buf bytes = {.p = room, .cap = sizeof room, .max = sizeof room};
    assert_true(base64_decode(&bytes, SLICE_LIT("AC9kYnMvZGIvY29sbHMvZ3JhcGgAS0VZPT0="))); /* recorded from Gremlin's driver */
    assert_int_equal(access_plain_read(&o, buf_view(&bytes), &plain), OK);
    assert_true(slice_eq(plain.user, SLICE_LIT("/dbs/db/colls/graph")) && slice_eq(plain.password, SLICE_LIT("KEY==")));
}

static void other_messages_are_malformed(void **state) {
    (void)state;
    static const slice bad[] = {
        {NULL, 0},
        {"", 0},
        {"user", 4},
        {"\0", 1},
        {"\0\0", 2},
        {"\0user", 5},
        {"\0user\0", 6},
        {"\0\0password", 10},
        {"\0user\0pass\0word", 15},
        {"\0user\0password\0", 15},
        {"\0us\xFF\0password", 13},
        {"\xC3\0user\0password", 15},
        {"\0user\0pass\xF0\x9F", 12},
    };
    access_plain plain;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(access_plain_read(&o, bad[i], &plain), E_BAD_AUTHORIZATION);
        assert_true(plain.user.p == NULL && plain.password.p == NULL);
    }
    char text[LIMIT_SASL_BYTES + 1] = "\0user";
    memset(text + 6, 'p', sizeof text - 6);
    assert_int_equal(access_plain_read(&o, slice_of(text, LIMIT_SASL_BYTES), &plain), OK);
    assert_int_equal(access_plain_read(&o, slice_of(text, LIMIT_SASL_BYTES + 1), &plain), E_BAD_AUTHORIZATION);
}

static void keys_are_passwords(void **state) {
    (void)state;
    access_ring *ring = access_ring_new();
    access_reach reach;
    slice user;
    assert_true(access_ring_set(ring, ACCESS_KEY_PRIMARY, SLICE_LIT("cHJpbWFyeQ==")));
    assert_true(access_ring_set(ring, ACCESS_KEY_SECONDARY_READ_ONLY, SLICE_LIT("cmVhZGVy")));
    assert_int_equal(access_plain_check(&o, ring, NULL, MESSAGE("\0me\0cHJpbWFyeQ=="), &user, &reach), OK);
    assert_true(slice_eq(user, SLICE_LIT("me")) && reach.key == ACCESS_KEY_PRIMARY && reach.verbs == ACCESS_ALL);
    assert_int_equal(access_plain_check(&o, ring, NULL, MESSAGE("me\0me\0cmVhZGVy"), &user, &reach), OK);
    assert_true(reach.key == ACCESS_KEY_SECONDARY_READ_ONLY && reach.verbs == ACCESS_ALL_READS);

    static const slice wrong[] = {{"\0me\0cHJpbWFyeQ", 14},
                                  {"\0me\0cHJpbWFyeR==", 16},
                                  {"\0me\0primary", 11},
                                  {"\0me\0CHJPBWFYEQ==", 16},
                                  {"you\0me\0cHJpbWFyeQ==", 19}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(access_plain_check(&o, ring, NULL, wrong[i], &user, &reach), E_UNAUTHORIZED);
        assert_true(reach.proof == ACCESS_NOBODY && slice_eq(user, SLICE_LIT("me")));
    }
    assert_int_equal(access_plain_check(&o, ring, NULL, MESSAGE("me"), &user, &reach), E_BAD_AUTHORIZATION);
    assert_true(reach.proof == ACCESS_NOBODY && user.p == NULL);
    access_ring_free(ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(messages_are_cut_at_their_zeros, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_messages_are_malformed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keys_are_passwords, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("access/plain", tests, NULL, NULL);
}
