/* Partition key values: reading and writing the header, documents, limits, and the order-preserving encoding. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "partition/epk.h"
#include "partition/partition_key.h"

static arena memory;
static op o;

static int setup(void **state) {
    (void)state;
    memory = arena_init();
    op_init(&o, &memory, 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

static pkey parsed(const char *header) {
    pkey key;
    assert_int_equal(pkey_parse(&o, slice_str(header), &key), OK);
    return key;
}

static void expect_text(const pkey *key, const char *text) {
    buf out = buf_init(BUF_NO_LIMIT);
    pkey_write(&out, key);
    buf_add_byte(&out, 0);
    assert_string_equal(out.p, text);
    buf_free(&out);
}

/* ---- header ---- */

static void every_type_of_component_is_read(void **state) {
    (void)state;
    pkey key = parsed(" [ \"a\" , true,null ] ");
    assert_int_equal(key.n, 3);
    assert_int_equal(key.values[0].type, PKEY_STRING);
    assert_true(slice_eq(key.values[0].text, SLICE_LIT("a")));
    assert_int_equal(key.values[1].type, PKEY_TRUE);
    assert_int_equal(key.values[2].type, PKEY_NULL);
    key = parsed("[false,-12.5,{}]");
    assert_int_equal(key.values[0].type, PKEY_FALSE);
    assert_int_equal(key.values[1].type, PKEY_NUMBER);
    assert_true(key.values[1].number == -12.5);
    assert_int_equal(key.values[2].type, PKEY_UNDEFINED);
}

static void none_and_the_empty_prefix_differ(void **state) {
    (void)state;
    assert_int_equal(parsed("[]").n, 0);
    pkey none = parsed("[{}]");
    assert_int_equal(none.n, 1);
    assert_int_equal(none.values[0].type, PKEY_UNDEFINED);
}

static void the_plain_and_the_escaped_form_of_a_string_are_one(void **state) {
    (void)state;
    pkey plain = parsed("[\"Stack/1 b\"]");
    pkey escaped = parsed("[\"\\u0053tack\\/1\\u0020b\"]");
    pkey blanks = parsed("[ \"Stack/1 b\"]");
    assert_true(pkey_equal(&plain, &escaped));
    assert_true(pkey_equal(&plain, &blanks));
    pkey empty = parsed("[\"\"]");
    assert_int_equal(empty.values[0].type, PKEY_STRING);
    assert_int_equal(empty.values[0].text.n, 0);
}

static void strings_keep_every_character(void **state) {
    (void)state;
    pkey key = parsed("[\"\\u00f1\\u65e5\\ud83d\\ude00\\u0000\\\"\\\\\\n\"]");
    assert_true(slice_eq(key.values[0].text, SLICE_LIT("ñ日😀\0\"\\\n")));
    expect_text(&key, "[\"\\u00f1\\u65e5\\ud83d\\ude00\\u0000\\\"\\\\\\u000a\"]");
    pkey raw = parsed("[\"ñ日😀\\u0000\\\"\\\\\\n\"]");
    assert_true(pkey_equal(&key, &raw));
}

static void written_keys_read_back_as_they_were(void **state) {
    (void)state;
    static const char *const headers[] = {"[]",     "[{}]", "[null]",  "[true]",      "[false,{}]", "[\"\"]", "[\"redmond\",5.5,true]",
                                          "[-0.0]", "[0]",  "[1e300]", "[123456789]", "[5e-324]",   "[-1]",   "[\"a\\u0000b\"]"};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        buf out = buf_init(BUF_NO_LIMIT);
        pkey key = parsed(headers[i]);
        pkey again;
        pkey_write(&out, &key);
        assert_int_equal(pkey_parse(&o, buf_view(&out), &again), OK);
        assert_true(pkey_equal(&key, &again));
        buf_free(&out);
    }
}

static void integers_become_the_nearest_double(void **state) {
    (void)state;
    assert_true(parsed("[9007199254740993]").values[0].number == 9007199254740992.0);
    assert_true(parsed("[-9223372036854775808]").values[0].number == -0x1p63);
    assert_true(parsed("[18446744073709551616]").values[0].number == 0x1p64);
}

static void what_is_no_key_is_refused_with_the_services_sentence(void **state) {
    (void)state;
    static const char *const headers[] = {"",      "x",       "\"a\"",      "{}",         "[",          "[1",          "[1,]",
                                          "[[]]",  "[[1]]",   "[{\"a\":1]", "[1,2,3,4]",  "[\"a\"] x",  "[\"a\x01\"]", "[\"a\"b\"]",
                                          "[NaN]", "[1e400]", "[\"\\x\"]",  "[\"\xff\"]", "[[[[[]]]]]", "[\"a\",\"b"};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        pkey key;
        char expected[256];
        assert_int_equal(pkey_parse(&o, slice_str(headers[i]), &key), E_BAD_REQUEST);
        assert_int_equal(key.n, 0);
        snprintf(expected, sizeof expected, "Partition key %s is invalid.", headers[i]);
        assert_int_equal(o.detail_n, strlen(expected));
        assert_memory_equal(o.detail, expected, o.detail_n);
    }
}

static void a_huge_header_is_refused_without_harm(void **state) {
    (void)state;
    buf header = buf_init(BUF_NO_LIMIT);
    pkey key;
    buf_add_byte(&header, '[');
    for (int i = 0; i < 20000; i++) {
        buf_add_lit(&header, "1,");
    }
    buf_add_lit(&header, "1]");
    assert_int_equal(pkey_parse(&o, buf_view(&header), &key), E_BAD_REQUEST);
    assert_true(o.detail_n < 400);
    buf_free(&header);
}

/* ---- documents ---- */

static pkey_definition definition_of(pkey_kind kind, uint8_t version, const char *const *paths, uint8_t n) {
    pkey_definition d = {.kind = kind, .version = version, .n = n};
    for (uint8_t i = 0; i < n; i++) {
        assert_int_equal(doc_path_parse(&memory, slice_str(paths[i]), &d.paths[i]), OK);
    }
    return d;
}

static err extract(const pkey_definition *d, bson_t *document, pkey *key) {
    slice copied = arena_copy(&memory, slice_of(bson_get_data(document), document->len));
    bson_destroy(document);
    return pkey_extract(&o, copied, d, key);
}

static void scalars_are_taken_out_of_documents(void **state) {
    (void)state;
    const char *const paths[] = {"/a", "/b/c", "/d"};
    pkey_definition d = definition_of(PKEY_MULTI_HASH, 2, paths, 3);
    bson_t *document = BCON_NEW("b", "{", "c", BCON_INT64(5), "}", "a", BCON_UTF8("x"), "d", BCON_BOOL(true));
    pkey key;
    assert_int_equal(extract(&d, document, &key), OK);
    pkey expected = parsed("[\"x\",5,true]");
    assert_true(pkey_equal(&key, &expected));
    document = BCON_NEW("a", BCON_INT32(7), "b", "{", "c", BCON_DOUBLE(0.5), "}", "d", BCON_NULL);
    assert_int_equal(extract(&d, document, &key), OK);
    expected = parsed("[7,0.5,null]");
    assert_true(pkey_equal(&key, &expected));
}

static void what_is_missing_is_undefined(void **state) {
    (void)state;
    const char *const paths[] = {"/a", "/b/c"};
    pkey_definition d = definition_of(PKEY_MULTI_HASH, 2, paths, 2);
    pkey key;
    pkey none = parsed("[{},{}]");
    assert_int_equal(extract(&d, BCON_NEW("b", BCON_INT32(1)), &key), OK);
    assert_true(pkey_equal(&key, &none));
    pkey_definition fixed = {0};
    assert_int_equal(extract(&fixed, BCON_NEW("b", BCON_INT32(1)), &key), OK);
    assert_int_equal(key.n, 0);
}

static void arrays_cannot_be_keys_and_objects_are_undefined(void **state) {
    (void)state;
    const char *const paths[] = {"/a"};
    pkey_definition d = definition_of(PKEY_HASH, 2, paths, 1);
    pkey key;
    assert_int_equal(extract(&d, BCON_NEW("a", "[", BCON_INT32(1), "]"), &key), E_BAD_REQUEST);
    assert_non_null(strstr(o.detail, "'/a'"));
    assert_non_null(strstr(o.detail, "only supported types"));
    pkey undefined = parsed("[{}]");
    assert_int_equal(extract(&d, BCON_NEW("a", "{", "}"), &key), OK);
    assert_true(pkey_equal(&key, &undefined));
    assert_int_equal(extract(&d, BCON_NEW("a", "{", "b", BCON_INT32(1), "}"), &key), OK);
    assert_true(pkey_equal(&key, &undefined));
    key = parsed("[{\"a\":{\"b\":[1]}}]");
    assert_true(pkey_equal(&key, &undefined));
    assert_int_equal(extract(&d, BCON_NEW("a", BCON_DOUBLE(NAN)), &key), E_BAD_REQUEST);
    assert_int_equal(extract(&d, BCON_NEW("a", BCON_DATE_TIME(1)), &key), E_BAD_REQUEST);
}

/* ---- rules ---- */

static void sizes_are_limited(void **state) {
    (void)state;
    char *text = calloc(1, LIMIT_KEY_BYTES + 2);
    memset(text, 'a', LIMIT_KEY_BYTES + 1);
    pkey key = {.n = 1, .values = {{.type = PKEY_STRING, .text = slice_of(text, LIMIT_KEY_BYTES)}}};
    assert_int_equal(pkey_check_size(&o, &key), OK);
    key.values[0].text.n = LIMIT_KEY_BYTES + 1;
    assert_int_equal(pkey_check_size(&o, &key), E_BAD_REQUEST);
    assert_non_null(strstr(o.detail, "2048"));
    free(text);
}

static void whole_keys_have_as_many_components_as_paths(void **state) {
    (void)state;
    pkey_definition d = {.kind = PKEY_MULTI_HASH, .version = 2, .n = 2};
    pkey one = parsed("[1]");
    pkey two = parsed("[1,2]");
    pkey three = parsed("[1,2,3]");
    assert_int_equal(pkey_check_whole(&o, &d, &one), E_KEY_COMPONENTS);
    assert_int_equal(o.detail_n, 0);
    assert_int_equal(pkey_check_whole(&o, &d, &two), OK);
    assert_int_equal(pkey_check_whole(&o, &d, &three), E_KEY_COMPONENTS);
    assert_non_null(strstr(o.detail, "more components"));
}

static void keys_are_equal_only_when_all_of_them_is(void **state) {
    (void)state;
    static const char *const different[] = {"[]",     "[{}]", "[null]", "[false]", "[true]",  "[0]",
                                            "[-0.0]", "[1]",  "[\"\"]", "[\"1\"]", "[\"a\"]", "[\"a\",1]"};
    size_t n = sizeof different / sizeof different[0];
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            pkey a = parsed(different[i]);
            pkey b = parsed(different[j]);
            assert_int_equal(pkey_equal(&a, &b), i == j);
        }
    }
}

static void a_key_starts_with_its_own_first_components(void **state) {
    (void)state;
    static const char *const prefixes[] = {"[]", "[\"a\"]", "[\"a\",1]", "[\"a\",1,null]"};
    static const char *const others[] = {"[\"b\"]", "[\"aa\"]", "[1]", "[null]", "[{}]", "[\"a\",2]", "[\"a\",\"1\"]", "[\"a\",1,{}]"};
    pkey whole = parsed("[\"a\",1,null]");
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        pkey prefix = parsed(prefixes[i]);
        assert_true(pkey_starts(&whole, &prefix));
        assert_int_equal(pkey_starts(&prefix, &whole), prefix.n == whole.n);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        pkey other = parsed(others[i]);
        assert_false(pkey_starts(&whole, &other));
    }
}

/* ---- encoding ---- */

static buf encoded(const pkey *key) {
    buf out = buf_init(BUF_NO_LIMIT);
    pkey_encode(&out, key);
    return out;
}

static pkey_value text_value(const char *p, size_t n) {
    return (pkey_value){.type = PKEY_STRING, .text = slice_of(p, n)};
}

static void byte_order_is_value_order(void **state) {
    (void)state;
    const pkey_value ordered[] = {
        {.type = PKEY_UNDEFINED},
        {.type = PKEY_NULL},
        {.type = PKEY_FALSE},
        {.type = PKEY_TRUE},
        {.type = PKEY_NUMBER, .number = -INFINITY},
        {.type = PKEY_NUMBER, .number = -1e300},
        {.type = PKEY_NUMBER, .number = -2},
        {.type = PKEY_NUMBER, .number = -1.5},
        {.type = PKEY_NUMBER, .number = -5e-324},
        {.type = PKEY_NUMBER, .number = -0.0},
        {.type = PKEY_NUMBER, .number = 0.0},
        {.type = PKEY_NUMBER, .number = 5e-324},
        {.type = PKEY_NUMBER, .number = 1},
        {.type = PKEY_NUMBER, .number = 1.0000000000000002},
        {.type = PKEY_NUMBER, .number = 1e300},
        {.type = PKEY_NUMBER, .number = INFINITY},
        text_value("", 0),
        text_value("\0", 1),
        text_value("\0\0", 2),
        text_value("\0\x01", 2),
        text_value("\0\xFF", 2),
        text_value("\x01", 1),
        text_value("a", 1),
        text_value("a\0", 2),
        text_value("a\0b", 3),
        text_value("aa", 2),
        text_value("ab", 2),
        text_value("b", 1),
        text_value("\xF4\x8F\xBF\xBF", 4),
    };
    size_t n = sizeof ordered / sizeof ordered[0];
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            pkey a = {.n = 2, .values = {ordered[i], {.type = PKEY_TRUE}}};
            pkey b = {.n = 2, .values = {ordered[j], {.type = PKEY_NULL}}};
            buf x = encoded(&a);
            buf y = encoded(&b);
            int c = slice_cmp(buf_view(&x), buf_view(&y));
            assert_true(i < j ? c < 0 : c > 0);
            assert_false(slice_starts(buf_view(&y), buf_view(&x)));
            buf_free(&x);
            buf_free(&y);
        }
    }
}

static void a_prefix_of_a_key_is_a_prefix_of_its_bytes(void **state) {
    (void)state;
    pkey whole = parsed("[\"a\\u0000\",5,null]");
    pkey prefix = parsed("[\"a\\u0000\",5]");
    buf x = encoded(&whole);
    buf y = encoded(&prefix);
    assert_true(slice_starts(buf_view(&x), buf_view(&y)));
    buf_free(&x);
    buf_free(&y);
}

static pkey_value random_value(random_source *r, char *room, size_t room_n) {
    static const pkey_type types[] = {PKEY_UNDEFINED, PKEY_NULL, PKEY_FALSE, PKEY_TRUE, PKEY_NUMBER, PKEY_STRING, PKEY_STRING};
    pkey_value v = {.type = types[random_below(r, sizeof types / sizeof types[0])]};
    if (v.type == PKEY_NUMBER) {
        uint64_t bits = random_u64(r);
        memcpy(&v.number, &bits, sizeof bits);
        v.number = isnan(v.number) ? 1 : v.number;
    } else if (v.type == PKEY_STRING) {
        size_t n = random_below(r, room_n + 1);
        for (size_t i = 0; i < n; i++) {
            static const char bytes[] = {0, 0, 1, 'a', 'b', '\xFF', '\xFE'};
            room[i] = bytes[random_below(r, sizeof bytes)];
        }
        v.text = slice_of(room, n);
    }
    return v;
}

static void random_keys_come_back_from_their_bytes(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 7);
    for (int round = 0; round < 20000; round++) {
        char room[LIMIT_KEY_LEVELS][12];
        pkey key = {.n = random_below(&r, LIMIT_KEY_LEVELS + 1)};
        for (size_t i = 0; i < key.n; i++) {
            key.values[i] = random_value(&r, room[i], sizeof room[i]);
        }
        buf bytes = encoded(&key);
        size_t whole = bytes.n;
        buf_add_lit(&bytes, "row key");
        pkey again;
        size_t used = 0;
        assert_true(pkey_decode(&memory, buf_view(&bytes), key.n, &again, &used));
        assert_true(pkey_equal(&key, &again));
        assert_int_equal(used, whole);
        assert_false(whole && pkey_decode(&memory, slice_of(bytes.p, whole - 1), key.n, &again, &used));
        buf_free(&bytes);
        arena_reset(&memory);
    }
}

static void bytes_that_are_no_encoding_are_refused(void **state) {
    (void)state;
    static const slice bad[] = {
        {"", 0},     {"\x04", 1},   {"\x09", 1},       {"\xFF", 1},       {"\x05\x80\0\0", 4},
        {"\x08", 1}, {"\x08\0", 2}, {"\x08\0\x01", 3}, {"\x08\0\xFF", 3}, {"\x05\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 9}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pkey key;
        size_t used = 0;
        assert_false(pkey_decode(&memory, bad[i], 1, &key, &used));
        assert_int_equal(key.n, 0);
    }
    pkey key;
    size_t used = 0;
    assert_false(pkey_decode(&memory, SLICE_LIT("\1\1\1\1\1\1\1\1\1"), LIMIT_KEY_COMPONENTS + 1, &key, &used));
}

/* ---- typed keys ---- */

static const pkey_definition typed = {.kind = PKEY_HASH, .version = 2, .n = 1, .typed = true};

/* The value of {"x": …} as a typed key; its bytes live in `memory`. */
static pkey typed_key(bson_t *document) {
    doc_element e;
    slice bytes = arena_copy(&memory, slice_of(bson_get_data(document), document->len));
    bson_destroy(document);
    assert_true(doc_find_member(bytes, SLICE_LIT("x"), &e));
    return (pkey){.n = 1, .values = {pkey_typed_value(&e)}};
}

static bson_t *typed_document(int i) {
    bson_oid_t oid;
    bson_decimal128_t decimal;
    bson_oid_init_from_string(&oid, "0102030405060708090a0b0c");
    bson_decimal128_from_string("0.1", &decimal);
    switch (i) {
    case 0:
        return BCON_NEW("x", BCON_NULL);
    case 1:
        return BCON_NEW("x", BCON_BOOL(true));
    case 2:
        return BCON_NEW("x", BCON_INT64(INT64_MIN));
    case 3:
        return BCON_NEW("x", BCON_INT32(-7));
    case 4:
        return BCON_NEW("x", BCON_DECIMAL128(&decimal));
    case 5:
        return BCON_NEW("x", BCON_DOUBLE(0.1)); /* slightly more than the Decimal128 0.1 */
    case 6:
        return BCON_NEW("x", BCON_DOUBLE(0x1p53));
    case 7:
        return BCON_NEW("x", BCON_INT64(((int64_t)1 << 53) + 1));
    case 8:
        return BCON_NEW("x", BCON_INT64(((int64_t)1 << 53) + 2));
    case 9:
        return BCON_NEW("x", BCON_INT64(INT64_MAX));
    case 10:
        return BCON_NEW("x", BCON_DOUBLE(0x1p63));
    case 11:
        return BCON_NEW("x", "text");
    case 12:
        return BCON_NEW("x", "{", "y", BCON_INT32(1), "}");
    case 13:
        return BCON_NEW("x", BCON_BIN(BSON_SUBTYPE_UUID, (const uint8_t *)"0123456789abcdef", 16));
    case 14:
        return BCON_NEW("x", BCON_OID(&oid));
    case 15:
        return BCON_NEW("x", BCON_DATE_TIME(5));
    default:
        return BCON_NEW("x", BCON_TIMESTAMP(5, 6));
    }
}
enum { TYPED = 17 };

static void typed_keys_sort_by_value_and_come_back(void **state) {
    (void)state;
    for (int i = 0; i < TYPED; i++) {
        pkey key = typed_key(typed_document(i)), again;
        size_t used = 0;
        buf bytes = encoded(&key);
        assert_true(pkey_decode(&memory, buf_view(&bytes), 1, &again, &used));
        assert_int_equal(used, bytes.n);
        assert_true(pkey_equal(&key, &again));
        for (int j = 0; j < TYPED; j++) {
            pkey other = typed_key(typed_document(j));
            buf others = encoded(&other);
            epk a, b;
            int order = slice_cmp(buf_view(&bytes), buf_view(&others));
            assert_true(i < j ? order < 0 : i > j ? order > 0 : order == 0);
            assert_int_equal(pkey_equal(&key, &other), i == j);
            epk_of(&typed, &key, &a);
            epk_of(&typed, &other, &b);
            assert_int_equal(epk_cmp(&a, &b) == 0, i == j);
            buf_free(&others);
        }
        buf_free(&bytes);
    }
}

/* Typed keys hash as untyped ones, and equal numbers of different types are the same key. */
static void typed_keys_of_known_types_lie_where_plain_ones_do(void **state) {
    (void)state;
    static const char *const headers[] = {"[null]", "[true]", "[0.5]", "[-7]", "[\"text\"]", "[{}]", "[0]"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        pkey plain, made;
        epk a, b;
        op o;
        op_init(&o, &memory, 0);
        assert_int_equal(pkey_parse(&o, slice_str(headers[i]), &plain), OK);
        pkey_make_typed(&memory, &plain, &made);
        assert_int_equal(made.values[0].type, PKEY_TYPED);
        epk_of(&typed, &plain, &a);
        epk_of(&typed, &made, &b);
        assert_int_equal(epk_cmp(&a, &b), 0);
        assert_true(pkey_equal(&plain, &made) && pkey_equal(&made, &plain));
        buf text = buf_init(BUF_NO_LIMIT);
        pkey_write(&text, &made);
        assert_true(slice_eq(buf_view(&text), slice_str(headers[i])));
        buf_free(&text);
    }
    bson_decimal128_t decimal;
    bson_decimal128_from_string("-7.0", &decimal);
    pkey seven = typed_key(BCON_NEW("x", BCON_DECIMAL128(&decimal))), other = typed_key(BCON_NEW("x", BCON_INT64(-7)));
    epk a, b;
    epk_of(&typed, &seven, &a);
    epk_of(&typed, &other, &b);
    assert_true(pkey_equal(&seven, &other) && epk_cmp(&a, &b) == 0);
}

static void typed_keys_are_shown_as_extended_json(void **state) {
    (void)state;
    static const struct {
        int i;
        const char *text;
    } shown[] = {{7, "[9007199254740993]"}, {12, "[{\"y\":1}]"}, {14, "[{\"$oid\":\"0102030405060708090a0b0c\"}]"}};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        pkey key = typed_key(typed_document(shown[i].i));
        buf text = buf_init(BUF_NO_LIMIT);
        pkey_write(&text, &key);
        assert_string_equal(arena_text(&memory, buf_view(&text)), shown[i].text);
        buf_free(&text);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_type_of_component_is_read),
        TEST(none_and_the_empty_prefix_differ),
        TEST(the_plain_and_the_escaped_form_of_a_string_are_one),
        TEST(strings_keep_every_character),
        TEST(written_keys_read_back_as_they_were),
        TEST(integers_become_the_nearest_double),
        TEST(what_is_no_key_is_refused_with_the_services_sentence),
        TEST(a_huge_header_is_refused_without_harm),
        TEST(scalars_are_taken_out_of_documents),
        TEST(what_is_missing_is_undefined),
        TEST(arrays_cannot_be_keys_and_objects_are_undefined),
        TEST(sizes_are_limited),
        TEST(whole_keys_have_as_many_components_as_paths),
        TEST(keys_are_equal_only_when_all_of_them_is),
        TEST(a_key_starts_with_its_own_first_components),
        TEST(byte_order_is_value_order),
        TEST(a_prefix_of_a_key_is_a_prefix_of_its_bytes),
        TEST(random_keys_come_back_from_their_bytes),
        TEST(bytes_that_are_no_encoding_are_refused),
        TEST(typed_keys_sort_by_value_and_come_back),
        TEST(typed_keys_of_known_types_lie_where_plain_ones_do),
        TEST(typed_keys_are_shown_as_extended_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
