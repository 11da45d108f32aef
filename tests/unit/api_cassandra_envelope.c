/* Envelopes, segments and compression of Cassandra's native protocol, by bytes that drivers send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/cassandra/envelope.h"

static op begin(arena *a) {
    op o;
    *a = arena_init();
    op_init(&o, a, 0);
    return o;
}

/* An OPTIONS message as the Python driver frames it in version 5. */
static void test_segment_of_a_driver(void **state) {
    static const uint8_t bytes[] = {0x09, 0x00, 0x02, 0xA4, 0xC8, 0xC1, 0x05, 0x00, 0x00, 0x01,
                                    0x05, 0x00, 0x00, 0x00, 0x00, 0xB5, 0x55, 0x74, 0x86};
    arena a;
    op o = begin(&a);
    cass_segment s;
    cass_envelope e;
    uint64_t n;
    (void)state;
    assert_true(cass_segment_length(bytes, false, &n));
    assert_int_equal(n, sizeof bytes);
    assert_int_equal(cass_segment_read(&o, slice_of(bytes, sizeof bytes), false, &s), OK);
    assert_true(s.self_contained && cass_envelope_take(&s.payload, &e));
    assert_int_equal(e.opcode, CASS_OPTIONS);
    assert_int_equal(e.stream, 1);
    for (size_t i = 0; i < sizeof bytes; i++) { /* every changed bit is noticed */
        uint8_t copy[sizeof bytes];
        memcpy(copy, bytes, sizeof copy);
        copy[i] ^= 0x10;
        assert_int_not_equal(cass_segment_read(&o, slice_of(copy, sizeof copy), false, &s), OK);
    }
    arena_free(&a);
}

static void test_large_envelopes_take_several_segments(void **state) {
    enum { BODY = 300000 };
    arena a;
    op o = begin(&a);
    (void)state;
    for (int lz4 = 0; lz4 < 2; lz4++) {
        buf out = buf_init(BUF_NO_LIMIT), whole = buf_init(BUF_NO_LIMIT);
        size_t begun = cass_envelope_begin(&out, 5, 0, 3, CASS_RESULT), parts = 0;
        for (unsigned i = 0; i < BODY; i++) {
            buf_add_byte(&out, (char)(i * i >> 7));
        }
        cass_envelope_end(&out, begun, 0);
        cass_segments_write(&out, begun, lz4);
        for (slice rest = buf_view(&out); rest.n; parts++) {
            cass_segment s;
            uint64_t n;
            assert_true(cass_segment_length((const uint8_t *)rest.p, lz4, &n) && n <= rest.n);
            assert_int_equal(cass_segment_read(&o, slice_of(rest.p, n), lz4, &s), OK);
            assert_false(s.self_contained);
            buf_add_slice(&whole, s.payload);
            rest = slice_skip(rest, n);
        }
        assert_int_equal(parts, 3);
        assert_int_equal(whole.n, CASS_ENVELOPE_HEAD + BODY);
        buf_free(&out);
        buf_free(&whole);
    }
    arena_free(&a);
}

static void test_bodies_are_compressed(void **state) {
    arena a;
    op o = begin(&a);
    (void)state;
    for (cass_compression with = CASS_LZ4; with <= CASS_SNAPPY; with++) {
        buf out = buf_init(BUF_NO_LIMIT);
        size_t begun = cass_envelope_begin(&out, 4, 0, 1, CASS_RESULT);
        cass_envelope e;
        slice body;
        for (int i = 0; i < 1000; i++) {
            buf_add_lit(&out, "row");
        }
        cass_envelope_compress(&out, begun, with);
        cass_envelope_end(&out, begun, 0);
        slice rest = buf_view(&out);
        assert_true(cass_envelope_take(&rest, &e));
        assert_true(e.flags & CASS_FLAG_COMPRESSED && e.body.n < 1000);
        assert_int_equal(cass_expand(&o, with, e.body, &body), OK);
        assert_int_equal(body.n, 3000);
        buf_free(&out);
    }
    arena_free(&a);
}

/* A length that lies takes no memory: lz4 cannot expand four bytes to megabytes. */
static void test_lies_are_refused(void **state) {
    arena a;
    op o = begin(&a);
    slice body;
    (void)state;
    assert_int_equal(cass_expand(&o, CASS_LZ4, SLICE_LIT("\0\xFF\xFF\xFF\x10zzz"), &body), E_BAD_REQUEST);
    assert_int_equal(cass_expand(&o, CASS_LZ4, SLICE_LIT("\xFF\xFF\xFF\xFF\x10zzz"), &body), E_BAD_REQUEST);
    assert_int_equal(cass_expand(&o, CASS_LZ4, SLICE_LIT("\0\0\0\x09\x10z"), &body), E_BAD_REQUEST);
    assert_int_equal(cass_expand(&o, CASS_SNAPPY, SLICE_LIT("\xFF\xFF\xFF\xFF\x0Fzzzz"), &body), E_BAD_REQUEST);
    assert_int_equal(cass_expand(&o, CASS_PLAIN, SLICE_LIT("abc"), &body), E_BAD_REQUEST);
    arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segment_of_a_driver),
        cmocka_unit_test(test_large_envelopes_take_several_segments),
        cmocka_unit_test(test_bodies_are_compressed),
        cmocka_unit_test(test_lies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
