/* Messages of MongoDB's wire protocol: every form, its bounds, and what is wrong with some. */
#include "api/mongo/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/mongo/compress.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "doc/walk.h"

static arena memory;
static op o;
static buf out;

static int set_up(void **state) {
    (void)state;
    memory = arena_init();
    out = buf_init(BUF_NO_LIMIT);
    op_init(&o, &memory, 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    buf_free(&out);
    arena_free(&memory);
    return 0;
}

/* ---- making messages ---- */

static void add_i32(int32_t number) {
    char bytes[4];
    doc_store_i32(bytes, number);
    buf_add(&out, bytes, 4);
}

static void begin(int32_t opcode) {
    buf_clear(&out);
    add_i32(0);
    add_i32(77);
    add_i32(0);
    add_i32(opcode);
}

static slice ended(void) {
    doc_store_i32(out.p, (int32_t)out.n);
    return buf_view(&out);
}

static void add_document(const char *name, int32_t number) {
    bson_t b = BSON_INITIALIZER;
    bson_append_int32(&b, name, -1, number);
    buf_add(&out, bson_get_data(&b), b.len);
    bson_destroy(&b);
}

static void add_body(void) {
    buf_add_byte(&out, 0);
    add_document("insert", 1);
}

static void add_sequence(const char *name, int documents) {
    buf_add_byte(&out, 1);
    size_t at = out.n;
    add_i32(0);
    buf_add(&out, name, strlen(name) + 1);
    for (int i = 0; i < documents; i++) {
        add_document("n", i);
    }
    doc_store_i32(out.p + at, (int32_t)(out.n - at));
}

static void sound(wire_message *m) {
    err code = wire_read(&o, ended(), WIRE_MESSAGE_MAX, m);
    if (code != OK) {
        fail_msg("%.*s", (int)o.detail_n, o.detail);
    }
    assert_int_equal(m->request_id, 77);
}

static void wrong(int32_t code) {
    wire_message m;
    o.protocol_code = 0;
    assert_int_equal(wire_read(&o, ended(), WIRE_MESSAGE_MAX, &m), E_BAD_REQUEST);
    assert_int_equal(o.protocol_code, code);
    assert_true(o.detail_n > 0);
}

/* ---- OP_MSG ---- */

static void sections_in_any_order(void **state) {
    (void)state;
    for (int body_first = 0; body_first < 2; body_first++) {
        wire_message m;
        slice document, rest;
        int n = 0;
        begin(WIRE_MSG);
        add_i32(2 | 1 << 16 | 1 << 30); /* moreToCome, exhaustAllowed, and an unknown optional flag */
        if (body_first) {
            add_body();
        }
        add_sequence("documents", 3);
        if (!body_first) {
            add_body();
        }
        add_sequence("others", 0);
        sound(&m);
        assert_true(m.more_to_come && m.allows_exhaust && !m.is_query);
        assert_int_equal(m.sequences_n, 2);
        assert_true(slice_eq(m.sequences[0].name, SLICE_LIT("documents")));
        for (rest = m.sequences[0].documents; wire_next(&rest, &document); n++) {
            doc_element e;
            uint64_t passed = 0;
            assert_true(doc_find_member_counted(document, SLICE_LIT("n"), &e, &passed));
            assert_int_equal(doc_load_i32(e.value.p), n);
        }
        assert_int_equal(n, 3);
        assert_int_equal(rest.n, 0);
        assert_int_equal(m.sequences[1].documents.n, 0);
    }
}

static void checksums_are_checked(void **state) {
    (void)state;
    wire_message m;
    begin(WIRE_MSG);
    add_i32(1);
    add_body();
    doc_store_i32(out.p, (int32_t)out.n + 4); /* the checksum covers the final length */
    uint32_t sum = crc32c(buf_view(&out));
    add_i32((int32_t)sum);
    sound(&m);
    out.p[out.n - 1] ^= 1;
    wrong(9);
    begin(WIRE_MSG);
    add_i32(1);
    buf_add(&out, "\0\0", 2); /* too short for one */
    wrong(9);
}

static void known_checksums(void **state) {
    (void)state;
    static const unsigned char zeros[32];
    assert_int_equal(crc32c(SLICE_LIT("123456789")), 0xE3069283);        /* the check value of CRC-32C */
    assert_int_equal(crc32c(slice_of(zeros, sizeof zeros)), 0x8A9136AA); /* RFC 3720, B.4 */
    assert_int_equal(crc32c_by_table(0, SLICE_LIT("123456789")), 0xE3069283);
    assert_int_equal(crc32c_by_table(crc32c_by_table(0, slice_of(zeros, 13)), slice_of(zeros, sizeof zeros - 13)), 0x8A9136AA);
}

static void wrong_messages(void **state) {
    (void)state;
    begin(WIRE_MSG);
    add_i32(4); /* an unknown required flag */
    add_body();
    wrong(9);
    begin(WIRE_MSG);
    add_i32(0);
    add_body();
    add_body();
    wrong(9);
    begin(WIRE_MSG);
    add_i32(0);
    add_sequence("documents", 1); /* no body */
    wrong(9);
    begin(WIRE_MSG);
    add_i32(0);
    buf_add_byte(&out, 2); /* an unknown kind */
    add_document("a", 1);
    wrong(9);
    begin(WIRE_MSG);
    add_i32(0);
    add_body();
    out.p[out.n - 1] = 1; /* the body's last byte */
    wrong(22);
    begin(WIRE_MSG);
    add_i32(0);
    for (int i = 0; i <= WIRE_SEQUENCES_MAX; i++) {
        add_sequence("documents", 1);
    }
    wrong(9);
    begin(2006);
    add_body();
    wrong(352);
}

static void sizes_of_sequences(void **state) {
    (void)state;
    for (int32_t size = -5; size < 60; size++) {
        wire_message m;
        begin(WIRE_MSG);
        add_i32(0);
        add_body();
        size_t at = out.n + 1;
        add_sequence("documents", 2);
        int32_t right = doc_load_i32(out.p + at);
        doc_store_i32(out.p + at, size);
        assert_int_equal(wire_read(&o, ended(), WIRE_MESSAGE_MAX, &m) == OK, size == right);
    }
}

static void texts_must_be_utf8(void **state) {
    (void)state;
    bson_t b = BSON_INITIALIZER;
    bson_append_utf8(&b, "ping", -1, "a\0b", 3); /* a zero byte is allowed */
    wire_message m;
    begin(WIRE_MSG);
    add_i32(0);
    buf_add_byte(&out, 0);
    buf_add(&out, bson_get_data(&b), b.len);
    sound(&m);
    char *text = memmem(out.p, out.n, "a\0b", 3);
    assert_non_null(text);
    text[0] = (char)0xFF;
    wrong(22);
    bson_destroy(&b);
}

static void nesting_is_bounded(void **state) {
    (void)state;
    for (int depth = 100; depth <= 200; depth += 100) {
        bson_t list[201];
        wire_message m;
        bson_init(&list[0]);
        for (int i = 0; i < depth; i++) {
            bson_append_document_begin(&list[i], "a", 1, &list[i + 1]);
        }
        for (int i = depth; i > 0; i--) {
            bson_append_document_end(&list[i - 1], &list[i]);
        }
        begin(WIRE_MSG);
        add_i32(0);
        buf_add_byte(&out, 0);
        buf_add(&out, bson_get_data(&list[0]), list[0].len);
        assert_int_equal(wire_read(&o, ended(), WIRE_MESSAGE_MAX, &m), depth == 100 ? OK : E_BAD_REQUEST);
        bson_destroy(&list[0]);
    }
}

/* ---- OP_QUERY, lengths ---- */

static void handshakes(void **state) {
    (void)state;
    wire_message m;
    begin(WIRE_QUERY);
    add_i32(4);
    buf_add(&out, "admin.$cmd", 11);
    add_i32(0);
    add_i32(-1);
    add_document("isMaster", 1);
    sound(&m);
    assert_true(m.is_query);
    assert_true(slice_eq(m.database, SLICE_LIT("admin")));
    out.n -= 3;
    wrong(9);
}

/* A text is looked at eight bytes at a time: the wrong byte may be at any place. */
static void texts_of_all_lengths(void **state) {
    (void)state;
    for (size_t n = 1; n <= 40; n++) {
        for (size_t at = 0; at < n; at++) {
            for (int kind = 0; kind < 2; kind++) {
                char text[48];
                memset(text, 'x', sizeof text);
                text[at] = (char)0xC3;
                text[at + 1] = kind && at + 1 < n ? (char)0xA9 : text[at + 1]; /* "é", or its first half */
                begin(WIRE_MSG);
                add_i32(0);
                buf_add_byte(&out, 0);
                bson_t b = BSON_INITIALIZER;
                bson_append_utf8(&b, "find", 4, text, (int)n);
                buf_add(&out, bson_get_data(&b), b.len);
                bson_destroy(&b);
                wire_message m;
                bool good = kind && at + 1 < n;
                assert_int_equal(wire_read(&o, ended(), 0, &m), good ? OK : E_BAD_REQUEST);
            }
        }
    }
}

static void members_are_listed(void **state) {
    (void)state;
    for (int n = 1; n <= 2 * WIRE_MEMBERS; n++) {
        wire_message m;
        bson_t b = BSON_INITIALIZER;
        for (int i = 0; i < n; i++) {
            char name[8];
            snprintf(name, sizeof name, "m%d", i);
            bson_append_int32(&b, name, -1, i);
        }
        begin(WIRE_MSG);
        add_i32(0);
        buf_add_byte(&out, 0);
        buf_add(&out, bson_get_data(&b), b.len);
        bson_destroy(&b);
        assert_int_equal(wire_read(&o, ended(), 0, &m), OK);
        assert_int_equal(m.members_n, n);
        for (int i = 0; i < n && i < WIRE_MEMBERS; i++) {
            assert_int_equal(doc_load_i32(m.members[i].value.p), i);
        }
    }
}

/* The same message, as if it had come again. */
static void messages_again(void **state) {
    (void)state;
    for (int checked = 0; checked < 2; checked++) {
        wire_message m;
        begin(WIRE_MSG);
        add_i32(checked);
        add_body();
        if (checked) {
            size_t n = out.n;
            add_i32(0);
            ended(); /* the checksum covers the length */
            doc_store_i32(out.p + n, (int32_t)crc32c(slice_of(out.p, n)));
        }
        slice frame = ended(), again = wire_again(&memory, frame, 4711);
        assert_int_equal(again.n, frame.n - 4 * (size_t)checked);
        assert_int_equal(doc_load_i32(again.p), again.n);
        assert_int_equal(wire_read(&o, again, 0, &m), OK);
        assert_int_equal(m.request_id, 4711);
        assert_int_equal(wire_read(&o, frame, 0, &m), OK);
        assert_int_equal(m.request_id, 77);
    }
}

static void lengths(void **state) {
    (void)state;
    uint64_t n;
    assert_false(wire_length((const uint8_t *)"\x10\0\0\0", &n));
    assert_false(wire_length((const uint8_t *)"\0\0\0\x80", &n));
    assert_true(wire_length((const uint8_t *)"\x20\1\0\0", &n));
    assert_int_equal(n, 288);
}

/* ---- OP_COMPRESSED ---- */

static slice compressed(wire_compressor with, slice whole, int32_t claimed) {
    slice body = slice_skip(whole, WIRE_HEADER_BYTES), copy = arena_copy(&memory, body);
    begin(WIRE_COMPRESSED);
    add_i32(WIRE_MSG);
    add_i32(claimed ? claimed : (int32_t)copy.n);
    buf_add_byte(&out, (char)with);
    if (with == COMPRESS_NONE) {
        buf_add_slice(&out, copy);
    } else {
        assert_true(compress_add(&out, with, copy));
    }
    return ended();
}

static void compressed_messages(void **state) {
    (void)state;
    for (wire_compressor with = COMPRESS_NONE; with < COMPRESS_COUNT; with++) {
        for (int claimed = 0; claimed < 3; claimed++) {
            wire_message m;
            begin(WIRE_MSG);
            add_i32(0);
            add_body();
            add_sequence("documents", 200);
            slice plain = arena_copy(&memory, ended());
            int32_t n = (int32_t)plain.n - WIRE_HEADER_BYTES;
            compressed(with, plain, claimed == 0 ? 0 : claimed == 1 ? n - 1 : n + 1);
            err code = wire_read(&o, ended(), WIRE_MESSAGE_MAX, &m);
            assert_int_equal(code, claimed ? E_BAD_REQUEST : OK);
            if (!claimed) {
                assert_int_equal(m.compressor, with);
                assert_int_equal(m.sequences_n, 1);
            }
        }
    }
    begin(WIRE_COMPRESSED);
    add_i32(WIRE_COMPRESSED); /* within itself */
    add_i32(10);
    buf_add_byte(&out, 0);
    buf_add(&out, "0123456789", 10);
    wrong(9);
    begin(WIRE_COMPRESSED);
    add_i32(WIRE_MSG);
    add_i32(INT32_MAX); /* a bomb */
    buf_add_byte(&out, COMPRESS_ZLIB);
    buf_add(&out, "0123456789", 10);
    wrong(9);
    begin(WIRE_COMPRESSED);
    add_i32(WIRE_MSG);
    add_i32(10);
    buf_add_byte(&out, 9); /* an unknown compressor */
    buf_add(&out, "0123456789", 10);
    wrong(9);
}

/* Reads a reply back. */
static void replies(void **state) {
    (void)state;
    for (wire_compressor with = COMPRESS_NONE; with < COMPRESS_COUNT; with++) {
        wire_message request = {.request_id = 5, .compressor = (uint8_t)with}, m;
        buf_clear(&out);
        buf_add_lit(&out, "before");
        size_t start = wire_begin(&out, &request, false);
        assert_int_equal(start, 6);
        bson_t b = BSON_INITIALIZER;
        char text[1000];
        memset(text, 'x', sizeof text);
        bson_append_utf8(&b, "text", -1, text, sizeof text);
        buf_add(&out, bson_get_data(&b), b.len);
        wire_end(&out, start, &request, false);
        slice whole = slice_skip(buf_view(&out), start);
        assert_int_equal(doc_load_i32(whole.p), whole.n);
        assert_int_equal(doc_load_i32(whole.p + 8), 5);
        assert_int_equal(wire_opcode_of(whole), with ? WIRE_COMPRESSED : WIRE_MSG);
        assert_true(with == COMPRESS_NONE || whole.n < 200);
        assert_int_equal(wire_read(&o, whole, WIRE_MESSAGE_MAX, &m), OK);
        assert_true(slice_eq(m.body, slice_of(bson_get_data(&b), b.len)));
        bson_destroy(&b);
    }
}

/* Truncated, changed and random bytes do no harm, which the sanitizers check. */
static void hostile_bytes(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 1);
    for (int round = 0; round < 20000; round++) {
        wire_message m;
        begin(random_below(&r, 2) ? WIRE_MSG : random_below(&r, 2) ? WIRE_QUERY : WIRE_COMPRESSED);
        add_i32(random_below(&r, 2) ? 0 : (int32_t)random_u64(&r));
        add_body();
        add_sequence("documents", (int)random_below(&r, 4));
        for (uint64_t n = random_below(&r, 6); n; n--) {
            out.p[WIRE_HEADER_BYTES + random_below(&r, out.n - WIRE_HEADER_BYTES)] = (char)random_u64(&r);
        }
        out.n -= random_below(&r, out.n - WIRE_HEADER_BYTES);
        slice copy = arena_copy(&memory, ended());
        if (wire_read(&o, copy, WIRE_MESSAGE_MAX, &m) == OK) {
            assert_true(m.body.n >= 5);
        }
        arena_reset(&memory);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(sections_in_any_order), TEST(checksums_are_checked), TEST(known_checksums), TEST(wrong_messages), TEST(sizes_of_sequences),
        TEST(texts_must_be_utf8),    TEST(nesting_is_bounded),    TEST(handshakes),      TEST(lengths),        TEST(compressed_messages),
        TEST(texts_of_all_lengths),  TEST(members_are_listed),    TEST(messages_again),  TEST(replies),        TEST(hostile_bytes),
    };
    return cmocka_run_group_tests_name("api/mongo/wire", tests, NULL, NULL);
}
