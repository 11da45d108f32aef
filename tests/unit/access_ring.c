/* Key rings: signatures over texts of other protocols, keys as passwords, and serials that distinguish the values of a key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "access/reach.h"

static access_ring *ring_of(const char *primary, const char *secondary, const char *reader) {
    access_ring *ring = access_ring_new();
    const char *const keys[ACCESS_KEY_COUNT] = {primary, secondary, reader, NULL};
    for (access_key key = 0; key < ACCESS_KEY_COUNT; key++) {
        assert_true(!keys[key] || access_ring_set(ring, key, slice_str(keys[key])));
    }
    return ring;
}

/* The storage emulator's key, with which the Table SDK (13.3.2) made these signatures; see "Shared Key for the Table service". */
static const char table_key[] = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

static const struct {
    const char *text, *signature;
} signed_texts[] = {
    /* SharedKeyLite: date, resource */
    {"Mon, 01 Jan 2024 00:00:00 GMT\n/devstoreaccount1/Tables", "YLb1lYsg3mYfEcUoaRzUaTOKPjj+nW2UWYupQxg9WQ8="},
    /* SharedKey: verb, MD5, type, date, resource */
    {"POST\n\napplication/json\nMon, 01 Jan 2024 00:00:00 GMT\n/devstoreaccount1/Tables", "6DosNvWyLfqtZYKWvchJP4oMBFvXLENmLCrBXmuQp5c="},
};

static void signatures_of_the_table_sdk_are_accepted(void **state) {
    (void)state;
    access_ring *ring = ring_of("cHJpbWFyeQ==", "c2Vjb25kYXJ5", table_key);
    access_reach reach;
    for (size_t i = 0; i < sizeof signed_texts / sizeof *signed_texts; i++) {
        slice text = slice_str(signed_texts[i].text), signature = slice_str(signed_texts[i].signature);
        assert_int_equal(access_reach_of_signature(ring, text, signature, &reach), OK);
        assert_int_equal(reach.proof, ACCESS_BY_KEY);
        assert_int_equal(reach.key, ACCESS_KEY_PRIMARY_READ_ONLY);
        assert_int_equal(reach.verbs, ACCESS_ALL_READS);
        assert_int_equal(access_reach_of_signature(ring, slice_of(text.p, text.n - 1), signature, &reach), E_UNAUTHORIZED);
        assert_int_equal(access_reach_of_signature(ring, text, slice_of(signature.p, signature.n - 1), &reach), E_UNAUTHORIZED);
        assert_int_equal(access_reach_of_signature(ring, text, SLICE_EMPTY, &reach), E_UNAUTHORIZED);
        assert_int_equal(reach.proof, ACCESS_NOBODY);
    }
    access_ring_free(ring);
}

static void what_is_signed_is_verified(void **state) {
    (void)state;
    access_ring *ring = ring_of("cHJpbWFyeQ==", "c2Vjb25kYXJ5", NULL);
    for (access_key key = 0; key < ACCESS_KEY_COUNT; key++) {
        buf text = buf_init(100);
        unsigned char bytes[ACCESS_MAC_BYTES];
        access_key found;
        bool there = key < 2;
        assert_int_equal(access_ring_sign(ring, key, SLICE_LIT("any text"), &text), there);
        assert_int_equal(access_signature_read(buf_view(&text), bytes), there);
        assert_true(!there || (access_ring_verify(ring, SLICE_LIT("any text"), bytes, &found) && found == key));
        buf_free(&text);
    }
    access_ring_free(ring);
}

/* "primary" with a zero byte after it; the hash of a long key. */
static void keys_that_sign_alike_are_not_the_same(void **state) {
    (void)state;
    static const char long_key[] = "bG9uZ2VyIHRoYW4gYSBibG9jayBvZiBTSEEtMjU2LCB3aGljaCBpcyBzaXh0eS1mb3VyIGJ5dGVzLCBieSBhIGdvb2QgZGVhbA==";
    static const char its_hash[] = "yY7oImL+1Oec4laKThD1MKDOlNMXT4LTv85sEy9BU6o=";
    access_ring *ring = ring_of("cHJpbWFyeQ==", long_key, NULL);
    access_key key;
    assert_true(access_ring_find(ring, SLICE_LIT("cHJpbWFyeQ=="), &key) && key == ACCESS_KEY_PRIMARY);
    assert_false(access_ring_find(ring, SLICE_LIT("cHJpbWFyeQA="), &key));
    assert_true(access_ring_signs_alike(ring, SLICE_LIT("cHJpbWFyeQA="), &key) && key == ACCESS_KEY_PRIMARY);
    assert_true(access_ring_find(ring, slice_str(long_key), &key) && key == ACCESS_KEY_SECONDARY);
    assert_false(access_ring_find(ring, slice_str(its_hash), &key));
    assert_true(access_ring_signs_alike(ring, slice_str(its_hash), &key) && key == ACCESS_KEY_SECONDARY);
    access_ring_free(ring);
}

static void serials_follow_the_value_of_a_key(void **state) {
    (void)state;
    access_ring *first = ring_of("cHJpbWFyeQ==", "c2Vjb25kYXJ5", NULL);
    access_ring *next = ring_of("cHJpbWFyeQ==", "YW5vdGhlcg==", "cmVhZGVy");
    access_ring *last = ring_of("cHJpbWFyeQ==", "c2Vjb25kYXJ5", NULL);
    access_ring_follow(next, first);
    access_ring_follow(last, next);
    assert_int_not_equal(access_ring_serial(first, ACCESS_KEY_PRIMARY), 0);
    assert_int_equal(access_ring_serial(first, ACCESS_KEY_PRIMARY), access_ring_serial(next, ACCESS_KEY_PRIMARY));
    assert_int_equal(access_ring_serial(first, ACCESS_KEY_PRIMARY), access_ring_serial(last, ACCESS_KEY_PRIMARY));
    assert_int_not_equal(access_ring_serial(first, ACCESS_KEY_SECONDARY), access_ring_serial(next, ACCESS_KEY_SECONDARY));
    assert_int_not_equal(access_ring_serial(first, ACCESS_KEY_SECONDARY), access_ring_serial(last, ACCESS_KEY_SECONDARY)); /* new serial */
    assert_int_equal(access_ring_serial(first, ACCESS_KEY_PRIMARY_READ_ONLY), 0);
    assert_int_not_equal(access_ring_serial(next, ACCESS_KEY_PRIMARY_READ_ONLY), 0);
    assert_int_equal(access_ring_serial(last, ACCESS_KEY_PRIMARY_READ_ONLY), 0);
    access_ring_free(first);
    access_ring_free(next);
    access_ring_free(last);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_of_the_table_sdk_are_accepted),
        cmocka_unit_test(what_is_signed_is_verified),
        cmocka_unit_test(keys_that_sign_alike_are_not_the_same),
        cmocka_unit_test(serials_follow_the_value_of_a_key),
    };
    return cmocka_run_group_tests_name("access/ring", tests, NULL, NULL);
}
