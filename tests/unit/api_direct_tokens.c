/* Tokens and frames of direct mode, byte by byte: every type, what is cut short, and frames as the Java SDK sends them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/direct/request.h"

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

#define BYTES(s) SLICE_LIT(s)

/* ---- tokens ---- */

static void every_type_is_read(void **state) {
    (void)state;
    static const struct {
        slice bytes;
        uint8_t type;
        uint64_t number;
        slice value;
    } all[] = {
        {BYTES("\x02\0\x00\x01"), DIRECT_BYTE, 1, BYTES("\x01")},
        {BYTES("\x02\0\x01\x34\x12"), DIRECT_U16, 0x1234, BYTES("\x34\x12")},
        {BYTES("\x02\0\x02\xff\xff\xff\xff"), DIRECT_U32, UINT32_MAX, BYTES("\xff\xff\xff\xff")},
        {BYTES("\x02\0\x03\xff\xff\xff\xff"), DIRECT_I32, UINT64_MAX, BYTES("\xff\xff\xff\xff")},
        {BYTES("\x02\0\x04\1\0\0\0\0\0\0\x80"), DIRECT_U64, 0x8000000000000001u, BYTES("\1\0\0\0\0\0\0\x80")},
        {BYTES("\x02\0\x05\2\0\0\0\0\0\0\0"), DIRECT_I64, 2, BYTES("\2\0\0\0\0\0\0\0")},
        {BYTES("\x02\0\x06"
               "0123456789abcdef"),
         DIRECT_GUID, 0, BYTES("0123456789abcdef")},
        {BYTES("\x02\0\x07\2ab"), DIRECT_TEXT8, 0, BYTES("ab")},
        {BYTES("\x02\0\x08\2\0ab"), DIRECT_TEXT16, 0, BYTES("ab")},
        {BYTES("\x02\0\x09\2\0\0\0ab"), DIRECT_TEXT32, 0, BYTES("ab")},
        {BYTES("\x02\0\x0a\2\0\1"), DIRECT_BYTES8, 0, BYTES("\0\1")},
        {BYTES("\x02\0\x0b\0\0"), DIRECT_BYTES16, 0, BYTES("")},
        {BYTES("\x02\0\x0c\1\0\0\0\xff"), DIRECT_BYTES32, 0, BYTES("\xff")},
        {BYTES("\x02\0\x0d\0\0\x80\x3f"), DIRECT_FLOAT, 0, BYTES("\0\0\x80\x3f")},
        {BYTES("\x02\0\x0e\0\0\0\0\0\0\xf0\x3f"), DIRECT_DOUBLE, 0, BYTES("\0\0\0\0\0\0\xf0\x3f")},
    };
    assert_int_equal(sizeof all / sizeof *all, DIRECT_TYPES);
    for (size_t i = 0; i < DIRECT_TYPES; i++) {
        slice rest = all[i].bytes;
        direct_token t;
        assert_true(direct_token_take(&rest, &t));
        assert_int_equal(rest.n, 0);
        assert_int_equal(t.id, 2);
        assert_int_equal(t.type, all[i].type);
        assert_int_equal(t.number, all[i].number);
        assert_true(slice_eq(t.value, all[i].value));
        for (size_t n = 0; n < all[i].bytes.n; n++) { /* cut short anywhere */
            rest = slice_of(all[i].bytes.p, n);
            assert_false(direct_token_take(&rest, &t));
        }
    }
}

static void strange_types_are_refused(void **state) {
    (void)state;
    for (unsigned type = DIRECT_TYPES; type < 256; type++) {
        char bytes[32] = {1, 0, (char)type};
        slice rest = slice_of(bytes, sizeof bytes);
        direct_token t;
        assert_false(direct_token_take(&rest, &t));
    }
    slice rest = BYTES("\1\0\x09\xff\xff\xff\xff too short");
    direct_token t;
    assert_false(direct_token_take(&rest, &t));
}

static void what_is_written_is_read(void **state) {
    (void)state;
    buf out = buf_init(BUF_NO_LIMIT);
    direct_token t;
    double charge = 2.75, read;
    direct_add_number(&out, 0x0135, DIRECT_U32, 0xCAFE);
    direct_add_double(&out, 0x15, charge);
    direct_add_text(&out, 0x3E, DIRECT_TEXT16, SLICE_LIT("-1#7"));
    slice rest = buf_view(&out);
    assert_true(direct_token_take(&rest, &t) && t.id == 0x0135 && t.number == 0xCAFE);
    assert_true(direct_token_take(&rest, &t) && t.type == DIRECT_DOUBLE);
    memcpy(&read, t.value.p, 8);
    assert_true(read == charge);
    assert_true(direct_token_take(&rest, &t) && slice_eq(t.value, SLICE_LIT("-1#7")));
    assert_int_equal(rest.n, 0);
    static const char long_text[65536];
    direct_add_text(&out, 1, DIRECT_TEXT16, slice_of(long_text, 65535));
    assert_true(buf_ok(&out));
    direct_add_text(&out, 1, DIRECT_TEXT16, slice_of(long_text, 65536));
    assert_false(buf_ok(&out));
    buf_clear(&out);
    direct_add_text(&out, 1, DIRECT_TEXT8, slice_of(long_text, 256));
    assert_false(buf_ok(&out));
    buf_free(&out);
}

static void activities_are_guids(void **state) {
    (void)state;
    static const uint8_t bytes[] = {0x35, 0xab, 0x2a, 0x18, 0x24, 0x32, 0x7c, 0x4d, 0x87, 0xdd, 0x1e, 0xa4, 0xeb, 0x4f, 0xa4, 0x39};
    char text[DIRECT_GUID_TEXT];
    direct_guid_text(bytes, text);
    assert_memory_equal(text, "182aab35-3224-4d7c-87dd-1ea4eb4fa439", DIRECT_GUID_TEXT);
}

/* ---- requests ---- */

#define ACTIVITY "\x09\xce\x1d\xe0\xae\x96\xf3\x41\x90\x11\xbb\x1f\x94\x86\xa6\x54"

/* What the Java SDK sent for a read; the authorization is cut short, and the length with it. */
static const char java_tokens[] = "\x00\x00\x0b\x08\x00\x01\x00\x00\x00\x81\x00\x00\x00"
                                  "\x01\x00\x08\x0d\x00type%3Dmaster"
                                  "\x02\x00\x00\x00"
                                  "\x03\x00\x07\x1dMon, 16 Nov 2026 09:24:28 GMT"
                                  "\x05\x00\x08\x06\x00"
                                  "2:-1#1"
                                  "\x13\x00\x08\x2d\x00/apps/a/services/s/partitions/2/replicas/133s"
                                  "\x15\x00\x08\x01\x00"
                                  "d"
                                  "\x16\x00\x08\x01\x00"
                                  "c"
                                  "\x17\x00\x08\x01\x00"
                                  "x"
                                  "\x2b\x00\x08\x05\x00[\"p\"]"
                                  "\x35\x00\x08\x0c\x00"
                                  "AQAAAIEAAAA="
                                  "\x49\x00\x02\x60\xea\x00\x00"
                                  "\x4a\x00\x02\x00\x00\x00\x00"
                                  "\x4d\x00\x02\x0a\x00\x00\x00"
                                  "\xa2\x00\x02\x0b\x00\x00\x00";

static slice make_frame(uint16_t resource, uint16_t operation, slice tokens, slice rest) {
    buf out = buf_init(BUF_NO_LIMIT);
    direct_put(&out, DIRECT_HEADER_BYTES + tokens.n, 4);
    direct_put(&out, resource, 2);
    direct_put(&out, operation, 2);
    buf_add_lit(&out, ACTIVITY);
    buf_add_slice(&out, tokens);
    buf_add_slice(&out, rest);
    slice frame = arena_copy(&memory, buf_view(&out));
    buf_free(&out);
    return frame;
}

static void expect(slice s, const char *text) {
    assert_int_equal(s.n, strlen(text));
    assert_memory_equal(s.p, text, s.n);
}

static void a_frame_of_the_java_sdk_is_read(void **state) {
    (void)state;
    direct_request q;
    slice frame = make_frame(3, 3, BYTES(java_tokens), SLICE_EMPTY);
    assert_int_equal(direct_request_read(&memory, frame, &q), OK);
    assert_int_equal(q.resource, 3);
    assert_int_equal(q.operation, 3);
    assert_true(q.identified);
    assert_int_equal(q.id, 10);
    expect(q.name[DIRECT_DATABASE], "d");
    expect(q.name[DIRECT_CONTAINER], "c");
    expect(q.name[DIRECT_ITEM], "x");
    expect(q.field[FIELD_AUTHORIZATION], "type%3Dmaster");
    expect(q.field[FIELD_X_MS_DATE], "Mon, 16 Nov 2026 09:24:28 GMT");
    expect(q.field[FIELD_SESSION_TOKEN], "2:-1#1");
    expect(q.field[FIELD_PARTITION_KEY], "[\"p\"]");
    expect(q.field[FIELD_CACHED_RID], "AQAAAIEAAAA=");
    assert_true(slice_eq(q.rid, BYTES("\x01\x00\x00\x00\x81\x00\x00\x00")));
    assert_memory_equal(q.activity, ACTIVITY, 16);
    assert_int_equal(q.payload.n, 0);
    assert_null(q.field[FIELD_CONSISTENCY].p);
    assert_null(q.name[DIRECT_USER].p);
}

static void values_become_fields(void **state) {
    (void)state;
    direct_request q;
    slice frame = make_frame(3, 4,
                             BYTES("\x02\0\0\1"
                                   "\x4d\0\2\1\0\0\0"
                                   "\x04\0\2\xff\xff\xff\xff"
                                   "\x06\0\x08\x07\0a%3Bb%2"
                                   "\x07\0\0\2"
                                   "\x10\0\0\4"
                                   "\x73\0\0\1"
                                   "\x74\0\0\0"
                                   "\x82\0\0\1"
                                   "\xbf\0\0\2"
                                   "\xdb\0\0\5"
                                   "\x08\0\x08\3\0\"1\""
                                   "\xf0\x7f\x0b\1\0?"),
                             BYTES("\3\0\0\0[1]"));
    assert_int_equal(direct_request_read(&memory, frame, &q), OK);
    expect(q.field[FIELD_MAX_ITEM_COUNT], "-1");
    expect(q.field[FIELD_CONTINUATION], "a%3Bb%2"); /* not percent-encoded, so as it is */
    expect(q.field[FIELD_INDEXING_DIRECTIVE], "Exclude");
    expect(q.field[FIELD_CONSISTENCY], "ConsistentPrefix");
    expect(q.field[FIELD_BATCH_ATOMIC], "true");
    expect(q.field[FIELD_BATCH_CONTINUE], "false");
    expect(q.field[FIELD_PREFER], "return=minimal");
    expect(q.field[FIELD_PRIORITY], "Low");
    expect(q.field[FIELD_THROUGHPUT_BUCKET], "5");
    expect(q.match, "\"1\"");
    expect(q.payload, "[1]");
}

#define NEEDED "\x02\0\0\0\x4d\0\2\7\0\0\0"

static void malformed_frames_are_refused(void **state) {
    (void)state;
    static const slice all[] = {
        BYTES(""),                          /* neither PayloadPresent nor TransportRequestID */
        BYTES("\x4d\0\2\1\0\0\0"),          /* no PayloadPresent */
        BYTES("\x02\0\0\0"),                /* no TransportRequestID */
        BYTES(NEEDED "\x02\0\0\0"),         /* twice */
        BYTES(NEEDED "\x01\0\0\1"),         /* another type than the table's */
        BYTES(NEEDED "\x10\0\0\5"),         /* no such consistency level */
        BYTES(NEEDED "\x15\0\x08\0\0"),     /* an empty name */
        BYTES(NEEDED "\x05\0\x08\3\0a\nb"), /* a line break */
        BYTES(NEEDED "\x05\0\x08\xff\xff"
                     "cut"), /* past the frame */
        BYTES(NEEDED "\x05\0\xff"),
        BYTES(NEEDED "\x05"),
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        direct_request q;
        assert_int_equal(direct_request_read(&memory, make_frame(3, 3, all[i], SLICE_EMPTY), &q), E_BAD_REQUEST);
        assert_int_equal(q.identified, i != 0 && i != 2);
        assert_int_equal(q.id, i == 1 ? 1 : i >= 3 ? 7 : 0);
    }
    direct_request q;
    assert_int_equal(direct_request_read(&memory, BYTES("\x10\0\0\0"), &q), E_BAD_REQUEST);
}

static void a_frame_is_as_long_as_its_payload_says(void **state) {
    (void)state;
    slice without = make_frame(3, 3, BYTES(NEEDED), SLICE_EMPTY);
    slice with = make_frame(3, 1, BYTES("\x02\0\0\1\x4d\0\2\7\0\0\0"), BYTES("\5\0\0\0[1,2]"));
    size_t head = with.n - 9;
    uint64_t n = without.n;
    assert_true(direct_request_extend(without, &n) && n == without.n);
    n = head;
    assert_true(direct_request_extend(slice_of(with.p, head), &n) && n == head + 4);
    assert_true(direct_request_extend(slice_of(with.p, head + 4), &n) && n == with.n);
    assert_true(direct_request_extend(with, &n) && n == with.n);
    slice empty = make_frame(3, 1, BYTES("\x02\0\0\1\x4d\0\2\7\0\0\0"), BYTES("\0\0\0\0"));
    n = empty.n;
    assert_true(direct_request_extend(empty, &n) && n == empty.n);
    slice none = make_frame(3, 3, BYTES("\x4d\0\2\1\0\0\0"), SLICE_EMPTY);
    n = none.n;
    assert_false(direct_request_extend(none, &n));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(strange_types_are_refused),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(activities_are_guids),
        cmocka_unit_test_setup_teardown(a_frame_of_the_java_sdk_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(values_become_fields, setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_frames_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_frame_is_as_long_as_its_payload_says, setup, teardown),
    };
    return cmocka_run_group_tests_name("api/direct/tokens", tests, NULL, NULL);
}
