/* Cosmos binary JSON: every kind of value by hand-made bytes, and there and back again against text. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <stdlib.h>

#include "base/limits.h"
#include "doc/json_binary.h"
#include "random_document.h"
#include "rounds.h"

#define BYTES(s) SLICE_LIT(s)

static err to_text(slice binary, size_t max, buf *out, json_error *why) {
    *out = buf_init(max);
    return json_binary_to_text(binary, out, why);
}

static void reads(slice binary, const char *text) {
    buf out;
    json_error why = {0};
    if (to_text(binary, BUF_NO_LIMIT, &out, &why) != OK) {
        fail_msg("%s at %zu, instead of %s", why.reason, why.offset, text);
    }
    buf_add_byte(&out, 0);
    assert_string_equal(out.p, text);
    buf_free(&out);
}

static void refuses(slice binary, const char *reason) {
    buf out;
    json_error why = {0};
    assert_int_equal(to_text(binary, BUF_NO_LIMIT, &out, &why), E_BAD_JSON);
    assert_string_equal(why.reason, reason);
    assert_int_equal(out.n, 0);
    buf_free(&out);
}

static const char early[] = "unexpected end of the value";

static void numbers(void **state) {
    (void)state;
    reads(BYTES("\x80\x00"), "0");
    reads(BYTES("\x80\x1f"), "31");
    reads(BYTES("\x80\xc7\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551615");
    reads(BYTES("\x80\xc8\xff"), "255");
    reads(BYTES("\x80\xc9\x00\x80"), "-32768");
    reads(BYTES("\x80\xca\x00\x00\x00\x80"), "-2147483648");
    reads(BYTES("\x80\xcb\x00\x00\x00\x00\x00\x00\x00\x80"), "-9223372036854775808");
    reads(BYTES("\x80\xcc\x00\x00\x00\x00\x00\x00\xf8\x3f"), "1.5");
    reads(BYTES("\x80\xcc\x00\x00\x00\x00\x00\x00\x00\x80"), "-0");
    reads(BYTES("\x80\xcd\x00\x00\xc0\x3f"), "1.5");
    reads(BYTES("\x80\xce\x00\x00\x00\x00\x00\x00\xf8\xbf"), "-1.5");
    reads(BYTES("\x80\xd7\xfe"), "254");
    reads(BYTES("\x80\xd8\xfe"), "-2");
    reads(BYTES("\x80\xd9\xfe\xff"), "-2");
    reads(BYTES("\x80\xda\xfe\xff\xff\xff"), "-2");
    reads(BYTES("\x80\xdb\xfe\xff\xff\xff\xff\xff\xff\xff"), "-2");
    reads(BYTES("\x80\xdc\xfe\xff\xff\xff"), "4294967294");
    refuses(BYTES("\x80\xcc\x00\x00\x00\x00\x00\x00\xf0\x7f"), "a number is not finite");
    refuses(BYTES("\x80\xcd\x00\x00\xc0\x7f"), "a number is not finite");
    refuses(BYTES("\x80\xca\x00\x00\x00"), early);
}

static void words(void **state) {
    (void)state;
    reads(BYTES("\x80\xd0"), "null");
    reads(BYTES("\x80\xd1"), "false");
    reads(BYTES("\x80\xd2"), "true");
}

static void plain_strings(void **state) {
    (void)state;
    reads(BYTES("\x80\x20"), "\"$s\"");
    reads(BYTES("\x80\x2c"), "\"id\"");
    reads(BYTES("\x80\x3f"), "\"_id\"");
    reads(BYTES("\x80\x80"), "\"\"");
    reads(BYTES("\x80\x83"
                "a\"b"),
          "\"a\\\"b\"");
    reads(BYTES("\x80\xc0\x02"
                "hi"),
          "\"hi\"");
    reads(BYTES("\x80\xc1\x02\x00hi"), "\"hi\"");
    reads(BYTES("\x80\xc2\x02\x00\x00\x00hi"), "\"hi\"");
    refuses(BYTES("\x80\xc0\x03hi"), early);
    refuses(BYTES("\x80\xc2\xff\xff\xff\xffhi"), early);
    refuses(BYTES("\x80\x82\xc3\x28"), "a string is not UTF-8");
    refuses(BYTES("\x80\x82\xc0\x80"), "a string is not UTF-8");
    refuses(BYTES("\x80\x83\xed\xa0\x80"), "a string is not UTF-8");
    refuses(BYTES("\x80\x40"), "user dictionary strings are not supported");
    refuses(BYTES("\x80\x67\x01"), "user dictionary strings are not supported");
}

static void unpacked_strings(void **state) {
    (void)state;
    reads(BYTES("\x80\x71\x01\x00Man"), "\"TWFu\"");
    reads(BYTES("\x80\x71\x01\x01Ma"), "\"TWE=\"");
    reads(BYTES("\x80\x71\x01\x02M"), "\"TQ==\"");
    reads(BYTES("\x80\x72\x01\x00\xfdM"), "\"TQ\"");
    reads(BYTES("\x80\x71\x01\x00\xfb\xff\xfe"), "\"+//+\"");
    reads(BYTES("\x80\x73\x01\x00\xfb\xff\xfe"), "\"-__-\"");
    reads(BYTES("\x80\x74\x01\x00\xfe\xfb\xff"), "\"-_8\"");
    refuses(BYTES("\x80\x71\x01\x80M"), "a base64 string with too much padding");
    refuses(BYTES("\x80\x71\x00\x01"), "a base64 string with too much padding");
    reads(BYTES("\x80\x75\x10\x32\x54\x76\x98\xba\xdc\xfe\x10\x32\x54\x76\x98\xba\xdc\xfe"), "\"01234567-89ab-cdef-0123-456789abcdef\"");
    reads(BYTES("\x80\x76\x10\x32\x54\x76\x98\xba\xdc\xfe\x10\x32\x54\x76\x98\xba\xdc\xfe"), "\"01234567-89AB-CDEF-0123-456789ABCDEF\"");
    reads(BYTES("\x80\x77\x10\x32\x54\x76\x98\xba\xdc\xfe\x10\x32\x54\x76\x98\xba\xdc\xfe"),
          "\"\\\"01234567-89ab-cdef-0123-456789abcdef\\\"\"");
    reads(BYTES("\x80\xd3\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef"), "\"01234567-89ab-cdef-0123-456789abcdef\"");
    reads(BYTES("\x80\x78\x03\x10\x0f"), "\"01f\"");
    reads(BYTES("\x80\x79\x03\x10\x0f"), "\"01F\"");
    reads(BYTES("\x80\x7a\x04\x13\xfe"), "\"20TZ\"");
    refuses(BYTES("\x80\x78\x03\x10\x1f"), "a packed string with unused bits that are not zero");
    reads(BYTES("\x80\x7b\x03\x61\x10\x02"), "\"abc\"");
    reads(BYTES("\x80\x7c\x03\x61\x20\x08"), "\"abc\"");
    reads(BYTES("\x80\x7d\x03\x61\x40\x20\x00"), "\"abc\"");
    reads(BYTES("\x80\x7e\x03\x61\xf1\x18"), "\"abc\"");
    reads(BYTES("\x80\x7f\x03\x00\x61\xf1\x18"), "\"abc\"");
    refuses(BYTES("\x80\x7b\x02\xf8\x10"), "a string is not UTF-8");
    refuses(BYTES("\x80\x7f\xff\xff\x61"), early);
    reads(BYTES("\x80\xdd\x02Ma"), "\"TWE=\"");
    reads(BYTES("\x80\xde\x02\x00Ma"), "\"TWE=\"");
    reads(BYTES("\x80\xdf\x02\x00\x00\x00Ma"), "\"TWE=\"");
}

static void references(void **state) {
    (void)state;
    reads(BYTES("\x80\xe2\x05\x82hi\xc3\x03"), "[\"hi\",\"hi\"]");
    reads(BYTES("\x80\xe2\x06\x82hi\xc4\x03\x00"), "[\"hi\",\"hi\"]");
    reads(BYTES("\x80\xe2\x07\x82hi\xc5\x03\x00\x00"), "[\"hi\",\"hi\"]");
    reads(BYTES("\x80\xe2\x08\x82hi\xc6\x03\x00\x00\x00"), "[\"hi\",\"hi\"]");
    reads(BYTES("\x80\xea\x07\x82hi\x01\xc3\x03\x02"), "{\"hi\":1,\"hi\":2}");
    refuses(BYTES("\x80\xc3\x01"), "a reference that does not point to a string"); /* to itself */
    refuses(BYTES("\x80\xc3\x09"), "a reference that does not point to a string");
    refuses(BYTES("\x80\xe2\x03\x05\xc3\x03"), "expected a string");
    refuses(BYTES("\x80\xe2\x04\xc3\x05\xc3\x03"), "a reference that does not point to a string"); /* one to the other */
}

static void containers(void **state) {
    (void)state;
    reads(BYTES("\x80\xe0"), "[]");
    reads(BYTES("\x80\xe1\x05"), "[5]");
    reads(BYTES("\x80\xe2\x02\x05\x06"), "[5,6]");
    reads(BYTES("\x80\xe3\x02\x00\x05\x06"), "[5,6]");
    reads(BYTES("\x80\xe4\x02\x00\x00\x00\x05\x06"), "[5,6]");
    reads(BYTES("\x80\xe5\x02\x02\x05\x06"), "[5,6]");
    reads(BYTES("\x80\xe6\x02\x00\x02\x00\x05\x06"), "[5,6]");
    reads(BYTES("\x80\xe7\x02\x00\x00\x00\x02\x00\x00\x00\x05\x06"), "[5,6]");
    reads(BYTES("\x80\xe8"), "{}");
    reads(BYTES("\x80\xe9\x2c\x81x"), "{\"id\":\"x\"}");
    reads(BYTES("\x80\xea\x03\x2c\x81x"), "{\"id\":\"x\"}");
    reads(BYTES("\x80\xeb\x03\x00\x2c\x81x"), "{\"id\":\"x\"}");
    reads(BYTES("\x80\xec\x03\x00\x00\x00\x2c\x81x"), "{\"id\":\"x\"}");
    reads(BYTES("\x80\xed\x03\x01\x2c\x81x"), "{\"id\":\"x\"}");
    reads(BYTES("\x80\xee\x03\x00\x01\x00\x2c\x81x"), "{\"id\":\"x\"}");
    reads(BYTES("\x80\xef\x03\x00\x00\x00\x01\x00\x00\x00\x2c\x81x"), "{\"id\":\"x\"}");
    reads(BYTES("\x80\xe2\x05\xe1\xe0\xe9\x2c\xd0"), "[[[]],{\"id\":null}]");
    refuses(BYTES("\x80\xe2\x03\x05\x06"), "an array or object is longer than its parent");
    refuses(BYTES("\x80\xe2\x03\xe2\x05\x01\x02"), "an array or object is longer than its parent");
    refuses(BYTES("\x80\xe2\x02\x05\x81x"), early); /* the string lies partly outside */
    refuses(BYTES("\x80\xe9\x05\x05"), "expected a string");
    refuses(BYTES("\x80\xea\x01\x2c"), early);
    refuses(BYTES("\x80\xe1"), early);
    refuses(BYTES("\x80\xe0\xe0"), "extra bytes after the value");
    refuses(BYTES("\x80"), early);
    refuses(BYTES("{}"), "not Cosmos binary JSON");
    refuses(SLICE_EMPTY, "not Cosmos binary JSON");
}

static void uniform_arrays(void **state) {
    (void)state;
    reads(BYTES("\x80\xf0\xd8\x02\x01\xff"), "[1,-1]");
    reads(BYTES("\x80\xf0\xd7\x02\x01\xff"), "[1,255]");
    reads(BYTES("\x80\xf1\xd9\x02\x00\x01\x00\xff\xff"), "[1,-1]");
    reads(BYTES("\x80\xf0\xda\x01\xff\xff\xff\xff"), "[-1]");
    reads(BYTES("\x80\xf0\xdb\x01\xff\xff\xff\xff\xff\xff\xff\xff"), "[-1]");
    reads(BYTES("\x80\xf0\xcd\x01\x00\x00\xc0\x3f"), "[1.5]");
    reads(BYTES("\x80\xf0\xce\x01\x00\x00\x00\x00\x00\x00\xf8\x3f"), "[1.5]");
    reads(BYTES("\x80\xf0\xd8\x00"), "[]");
    reads(BYTES("\x80\xf2\xf0\xd8\x02\x02\x01\x02\x03\x04"), "[[1,2],[3,4]]");
    reads(BYTES("\x80\xf3\xf1\xd8\x02\x00\x02\x00\x01\x02\x03\x04"), "[[1,2],[3,4]]");
    refuses(BYTES("\x80\xf0\xd8\x03\x01\xff"), early);
    refuses(BYTES("\x80\xf0\xd0\x01\x01"), "a number array whose items are not numbers");
    refuses(BYTES("\x80\xf0\x81\x01x"), "a number array whose items are not numbers");
    refuses(BYTES("\x80\xf2\xf1\xd8\x02\x02\x01\x02\x03\x04"), "a number array whose items are not numbers");
}

/* Markers that mean nothing, or that are for what JSON has not. */
static void unknown_markers(void **state) {
    (void)state;
    static const uint8_t unknown[] = {0xCF, 0xD4, 0xD5, 0xD6, 0xF4, 0xF7, 0xF8, 0xFF};
    for (unsigned i = 0; i < sizeof unknown; i++) {
        char bytes[12] = {(char)0x80, (char)unknown[i]};
        refuses(slice_of(bytes, sizeof bytes), "an unknown kind of value");
    }
    for (unsigned marker = 0x68; marker <= 0x70; marker++) {
        char bytes[12] = {(char)0x80, (char)marker};
        refuses(slice_of(bytes, sizeof bytes), "expected a string");
    }
}

static void depth_is_bounded(void **state) {
    (void)state;
    char bytes[4 * LIMIT_JSON_DEPTH];
    memset(bytes, 0xE1, sizeof bytes);
    bytes[0] = (char)0x80;
    bytes[LIMIT_JSON_DEPTH] = (char)0xE0;
    buf out;
    assert_int_equal(to_text(slice_of(bytes, LIMIT_JSON_DEPTH + 1), BUF_NO_LIMIT, &out, NULL), OK);
    assert_int_equal(out.n, 2 * LIMIT_JSON_DEPTH);
    buf_free(&out);
    bytes[LIMIT_JSON_DEPTH] = (char)0xE1;
    bytes[LIMIT_JSON_DEPTH + 1] = (char)0xE0;
    refuses(slice_of(bytes, LIMIT_JSON_DEPTH + 2), "nested too deeply");
}

/* A string of 60 KB, and 30,000 references to it: 1.8 GB of text. */
static void amplification_is_bounded(void **state) {
    (void)state;
    enum { LONG = 60000, TIMES = 30000, LIMIT = 1 << 20 };
    buf b = buf_init(BUF_NO_LIMIT), out;
    uint32_t n = 3 + LONG + 2 * TIMES;
    buf_add_lit(&b, "\x80\xe4");
    buf_add(&b, &n, 4);
    buf_add_lit(&b, "\xc1\x60\xea");
    for (unsigned i = 0; i < LONG; i++) {
        buf_add_byte(&b, 'x');
    }
    for (unsigned i = 0; i < TIMES; i++) {
        buf_add_lit(&b, "\xc3\x06");
    }
    assert_int_equal(to_text(buf_view(&b), LIMIT, &out, NULL), E_TOO_LARGE);
    assert_int_equal(out.n, 0);
    assert_true(out.cap <= 2 * LIMIT);
    buf_free(&out);
    buf_free(&b);
}

/* ---- there and back ---- */

static void comes_back(slice text) {
    buf binary = buf_init(BUF_NO_LIMIT), back;
    json_error why;
    assert_true(json_binary_from_text(text, &binary));
    assert_true(json_is_binary(buf_view(&binary)));
    if (to_text(buf_view(&binary), BUF_NO_LIMIT, &back, &why) != OK) {
        fail_msg("%s at %zu of what was made from %.*s", why.reason, why.offset, (int)text.n, text.p);
    }
    if (!slice_eq(buf_view(&back), text)) {
        fail_msg("%.*s became %.*s", (int)text.n, text.p, (int)back.n, back.p);
    }
    buf_free(&binary);
    buf_free(&back);
}

static void texts_come_back(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[]",
        "[0,31,32,255,256,-1,-32768,-32769,32767,32768,2147483647,2147483648,-2147483649,9223372036854775807,-9223372036854775808]",
        "[1.5,1e+21,5e-324,-0,18446744073709552000,0.1]",
        "[true,false,null,\"\",\"id\",\"_etag\",\"FeatureCollection\",\"a\\\"\\\\\\n\\u0001\xc3\xa4\xf0\x9f\x98\x80\"]",
        "{\"id\":\"x\",\"_etag\":\"\\\"01234567-89ab-cdef-0123-456789abcdef\\\"\",\"g\":\"01234567-89ab-cdef-0123-456789abcdef\"}",
        "[\"01234567-89AB-CDEF-0123-456789ABCDEF\",\"01234567-89ab-cdef-0123-456789abcdeg\",\"\\\"01234567-89ab-cdef-0123-456789abcdef.\"]",
        "{\"a\":{\"b\":[{\"c\":{}},[[]],[1,[2,[3]]]]}}",
    };
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        comes_back(slice_str(texts[i]));
    }
}

/* As items are answered: random texts, once they have been stored. */
static void random_documents_come_back(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 1);
    for (unsigned i = 0; i < ROUNDS(4000); i++) {
        buf given = buf_init(BUF_NO_LIMIT), bson = buf_init(BUF_NO_LIMIT), text = buf_init(BUF_NO_LIMIT);
        json_root root;
        random_json_object(&r, &given, false);
        if (json_to_bson(buf_view(&given), NULL, &bson, &root, NULL) == OK) {
            json_from_bson(&text, buf_view(&bson));
            comes_back(buf_view(&text));
        }
        buf_free(&given);
        buf_free(&bson);
        buf_free(&text);
    }
}

/* Lengths around those where another marker begins, of strings and of arrays that hold them. */
static void lengths_come_back(void **state) {
    (void)state;
    static const size_t lengths[] = {1, 62, 63, 64, 65, 250, 251, 252, 253, 254, 255, 256, 257, 65535, 65536, 70000};
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        buf b = buf_init(BUF_NO_LIMIT);
        buf_add_lit(&b, "[[\"");
        for (size_t k = 0; k < lengths[i]; k++) {
            buf_add_byte(&b, 'x');
        }
        buf_add_lit(&b, "\"],{\"k\":1}]");
        comes_back(buf_view(&b));
        buf_free(&b);
    }
}

static void escapes_are_read(void **state) {
    (void)state;
    buf b = buf_init(BUF_NO_LIMIT);
    assert_true(json_binary_from_text(SLICE_LIT(" [ \"\\u0041\\/\\u00e4\\ud83d\\ude00\\ud83dx\" , 1 ] "), &b));
    reads(buf_view(&b), "[\"A/\xc3\xa4\xf0\x9f\x98\x80\xef\xbf\xbdx\",1]");
    buf_free(&b);
}

static void what_is_no_text_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"",       "[",       "[1",      "[1,]", "{\"a\"}", "{\"a\":}", "{1:2}", "[1]2",
                                        "\"open", "\"\\x\"", "\"\\u12", "\"\\", "tru",     "-",        "[1 2]", "\"a\nb\""};
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        buf b = buf_init(BUF_NO_LIMIT);
        buf_add_lit(&b, "before");
        assert_false(json_binary_from_text(slice_str(texts[i]), &b));
        assert_int_equal(b.n, 6);
        buf_free(&b);
    }
}

static void sizes_are_small(void **state) {
    (void)state;
    buf b = buf_init(BUF_NO_LIMIT);
    assert_true(json_binary_from_text(SLICE_LIT("{\"id\":\"x\",\"n\":5}"), &b));
    assert_int_equal(b.n, 9);
    assert_memory_equal(b.p, "\x80\xea\x06\x2c\x81x\x81n\x05", 9);
    buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(words),
        cmocka_unit_test(plain_strings),
        cmocka_unit_test(unpacked_strings),
        cmocka_unit_test(references),
        cmocka_unit_test(containers),
        cmocka_unit_test(uniform_arrays),
        cmocka_unit_test(unknown_markers),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(amplification_is_bounded),
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(random_documents_come_back),
        cmocka_unit_test(lengths_come_back),
        cmocka_unit_test(escapes_are_read),
        cmocka_unit_test(what_is_no_text_is_refused),
        cmocka_unit_test(sizes_are_small),
    };
    return cmocka_run_group_tests_name("doc/json_binary", tests, NULL, NULL);
}
