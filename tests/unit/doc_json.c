/* JSON text to BSON and back: what is preserved, what is changed and what is rejected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/limits.h"
#include "doc/json.h"
#include "random_document.h"

/* libbson rejects C0 80, our NUL in keys; it must accept everything else. */
static void assert_valid(const buf *bson) {
    bson_t b;
    assert_true(bson_init_static(&b, (const uint8_t *)bson->p, bson->n));
    if (!memmem(bson->p, bson->n, "\xC0\x80", 2)) {
        assert_true(bson_validate(&b, BSON_VALIDATE_UTF8 | BSON_VALIDATE_UTF8_ALLOW_NULL, NULL));
    }
}

static slice view(const bson_t *b) {
    return slice_of(bson_get_data(b), b->len);
}

/* Converts text to BSON and back; libbson must accept the BSON. */
static void assert_becomes(const char *in, size_t in_n, const char *expected, size_t expected_n) {
    buf bson = buf_init(BUF_NO_LIMIT);
    buf text = buf_init(BUF_NO_LIMIT);
    json_error why = {0};
    json_root root;
    err code = json_to_bson(slice_of(in, in_n), NULL, &bson, &root, &why);
    if (code != OK) {
        fail_msg("%s: %s at %zu", in, why.reason, why.offset);
    }
    assert_valid(&bson);
    (root == JSON_OBJECT ? json_from_bson : json_from_bson_array)(&text, buf_view(&bson));
    if (!slice_eq(buf_view(&text), slice_of(expected, expected_n))) {
        fail_msg("%.*s became %.*s, not %.*s", (int)in_n, in, (int)text.n, text.p, (int)expected_n, expected);
    }
    buf_free(&bson);
    buf_free(&text);
}

typedef struct pair {
    const char *in;
    const char *out; /* NULL: the same */
} pair;

static void assert_all(const pair *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char *out = cases[i].out ? cases[i].out : cases[i].in;
        assert_becomes(cases[i].in, strlen(cases[i].in), out, strlen(out));
    }
}
#define ASSERT_ALL(cases) assert_all(cases, sizeof(cases) / sizeof *(cases))

static void values_are_kept(void **state) {
    (void)state;
    static const pair cases[] = {
        {"{}", NULL},
        {"[]", NULL},
        {" \t\r\n{ \"a\" : 1 , \"b\" : [ ] } \n", "{\"a\":1,\"b\":[]}"},
        {"[ 1 ,2, 3 ]", "[1,2,3]"},
        {"{\"a\":true,\"b\":false,\"c\":null}", NULL},
        {"{\"z\":1,\"a\":2,\"m\":3}", NULL}, /* order */
        {"{\"\":1}", NULL},
        {"{\"a\":{\"b\":{\"c\":[[],{},[{}]]}}}", NULL},
        {"[0,1,2,3,4,5,6,7,8,9,10,11]", NULL},
        {"{\"$type\":1,\"a.b\":2,\"_id\":3}", NULL},
        {"[\"\",\"a\",\"ab\",\"abc\",\"abcd\",\"abcdefg\",\"abcdefgh\",\"abcdefghijklmno\",\"abcdefghijklmnop\",\"abcdefghijklmnopq\"]",
         NULL},
    };
    ASSERT_ALL(cases);
}

static void numbers_are_exact_or_shortest(void **state) {
    (void)state;
    static const pair cases[] = {
        {"[0,-1,2147483647,2147483648,-2147483648,-2147483649]", NULL},
        {"[9223372036854775807,-9223372036854775808]", NULL},
        {"[9223372036854775808]", "[9223372036854776000]"},
        {"[18446744073709551615]", "[18446744073709552000]"},
        {"[-0,-0.0,0.0,-0e5]", "[0,0,0,0]"},
        {"[1.0,1e2,1E+2,100e-2,1.50]", "[1,100,100,1,1.5]"},
        {"[0.1,0.2,0.30000000000000004,149.95]", NULL},
        {"[1e21,1e-7,5e-324,1.7976931348623157e308]", "[1e+21,1e-7,5e-324,1.7976931348623157e+308]"},
        {"[1e-400,-1e-400]", "[0,0]"},
    };
    ASSERT_ALL(cases);
}

static void strings_are_kept(void **state) {
    (void)state;
    static const pair cases[] = {
        {"[\"é\",\"漢字\",\"😀\",\"\x7F\",\"\xEF\xBF\xBF\",\"\xF4\x8F\xBF\xBF\",\"\xED\x9F\xBF\",\"\xEE\x80\x80\"]", NULL},
        {"[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]", "[\"\\\"\\\\/\\b\\f\\n\\r\\t\"]"},
        {"[\"\\u0041\\u00e9\\u6F22\\ud83d\\uDE00\"]", "[\"Aé漢😀\"]"},
        {"[\"\\u0000\\u0001\\u001f\\u007f\"]", "[\"\\u0000\\u0001\\u001f\x7F\"]"},
        {"[\"a\\u0000b\"]", NULL},
        /* a lone surrogate becomes U+FFFD */
        {"[\"\\ud800\",\"\\udc00\",\"\\ud800x\",\"\\ud800\\n\",\"\\ud800\\u0041\",\"\\ud800\\ud800\\udc00\",\"\\udc00\\ud800\"]",
         "[\"\xEF\xBF\xBD\",\"\xEF\xBF\xBD\",\"\xEF\xBF\xBDx\",\"\xEF\xBF\xBD\\n\",\"\xEF\xBF\xBD\x41\",\"\xEF\xBF\xBD\xF0\x90\x80\x80\","
         "\"\xEF\xBF\xBD\xEF\xBF\xBD\"]"},
        /* keys too, with NUL in them */
        {"{\"\\u0000\":1,\"a\\u0000b\":2,\"\\\"\\u0000\\n\":3,\"\\ud800\":4,\"é\\u0000\":5}",
         "{\"\\u0000\":1,\"a\\u0000b\":2,\"\\\"\\u0000\\n\":3,\"\xEF\xBF\xBD\":4,\"é\\u0000\":5}"},
        {"{\"a longer key, with a \\\"quote\\\" far behind the first step\":\"a longer text, with a \\\"quote\\\" far behind\"}", NULL},
        {"[\"sixteen bytes ééé and more of it: ééééééééééééééé\"]", NULL},
    };
    ASSERT_ALL(cases);
}

static void the_last_of_equal_keys_wins(void **state) {
    (void)state;
    static const pair cases[] = {
        {"{\"a\":1,\"a\":2}", "{\"a\":2}"},
        {"{\"a\":1,\"b\":2,\"a\":\"three\",\"c\":4}", "{\"a\":\"three\",\"b\":2,\"c\":4}"},
        {"{\"a\":1,\"\\u0061\":2}", "{\"a\":2}"},
        {"{\"\\u0000\":1,\"\\u0000\":2}", "{\"\\u0000\":2}"},
        {"{\"\":1,\"\":2,\"\":3}", "{\"\":3}"},
        {"{\"a\":{\"x\":1,\"x\":2},\"b\":[{\"y\":1,\"y\":2},3]}", "{\"a\":{\"x\":2},\"b\":[{\"y\":2},3]}"},
        {"{\"a\":{\"x\":1,\"x\":2},\"a\":{\"z\":1,\"z\":5}}", "{\"a\":{\"z\":5}}"},
        {"[{\"a\":1,\"a\":{}},{\"a\":1}]", "[{\"a\":{}},{\"a\":1}]"},
        {"{\"ab\":1,\"ba\":2,\"a\":3,\"b\":4,\"abc\":5,\"acb\":6}", NULL},
    };
    ASSERT_ALL(cases);
}

/* Duplicate keys in objects of many sizes, compared with a plain list. */
static void equal_keys_in_objects_of_any_size(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 3);
    for (unsigned n = 1; n < 200; n += 1 + n / 10) {
        int value[200], order[200];
        unsigned known = 0;
        buf in = buf_init(BUF_NO_LIMIT), out = buf_init(BUF_NO_LIMIT);
        memset(value, 0, sizeof value);
        buf_add_lit(&in, "{");
        for (unsigned i = 0; i < n; i++) {
            unsigned key = (unsigned)random_below(&r, n + n / 2);
            key %= 200;
            if (value[key] == 0) {
                order[known++] = (int)key;
            }
            value[key] = (int)i + 1;
            buf_addf(&in, "%s\"key%u\":%u", i ? "," : "", key, i + 1);
        }
        buf_add_lit(&in, "}");
        buf_add_lit(&out, "{");
        for (unsigned i = 0; i < known; i++) {
            buf_addf(&out, "%s\"key%d\":%d", i ? "," : "", order[i], value[order[i]]);
        }
        buf_add_lit(&out, "}");
        assert_becomes(in.p, in.n, out.p, out.n);
        buf_free(&in);
        buf_free(&out);
    }
}

static void what_is_no_json(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t offset;
    } cases[] = {
        {"", 0},
        {"   ", 3},
        {"1", 0},
        {"\"a\"", 0},
        {"null", 0},
        {"{", 1},
        {"[", 1},
        {"}", 0},
        {"{]", 1},
        {"[}", 1},
        {"{\"a\"", 4},
        {"{\"a\":", 5},
        {"{\"a\":1", 6},
        {"{\"a\":1,", 7},
        {"{\"a\":1,}", 7},
        {"{\"a\" 1}", 5},
        {"{\"a\":1 \"b\":2}", 7},
        {"{a:1}", 1},
        {"{'a':1}", 1},
        {"{1:1}", 1},
        {"[1,]", 3},
        {"[,1]", 1},
        {"[1 2]", 3},
        {"[1]]", 3},
        {"{}{}", 2},
        {"{} x", 3},
        {"[tru]", 1},
        {"[nul", 1},
        {"[True]", 1},
        {"[undefined]", 1},
        {"[NaN]", 1},
        {"[Infinity]", 1},
        {"[-Infinity]", 1},
        {"[1e400]", 1},
        {"[01]", 1},
        {"[+1]", 1},
        {"[1.]", 1},
        {"[.5]", 1},
        {"[-]", 1},
        {"[0x10]", 2},
        {"[\"", 2},
        {"[\"abc", 5},
        {"[\"\\\"]", 5},
        {"[\"\\x\"]", 3},
        {"[\"\\u12\"]", 4},
        {"[\"\\u12G4\"]", 4},
        {"[\"\n\"]", 2},
        {"[\"\t\"]", 2},
        {"[\"a long text before the control byte \x01\"]", 38},
        {"[\"\x80\"]", 2},
        {"[\"\xC0\x80\"]", 2}, /* an overlong NUL: our internal form in keys must be rejected as input */
        {"{\"\xC0\x80\":1}", 2},
        {"[\"\xC1\xBF\"]", 2},
        {"[\"\xC3\"]", 2},
        {"[\"\xE0\x9F\xBF\"]", 2}, /* overlong */
        {"[\"\xED\xA0\x80\"]", 2}, /* a surrogate in UTF-8 */
        {"[\"\xF0\x8F\xBF\xBF\"]", 2},
        {"[\"\xF4\x90\x80\x80\"]", 2}, /* above U+10FFFF */
        {"[\"\xF5\x80\x80\x80\"]", 2},
        {"[\"ok é\xE2\x82\"]", 7},
        {"[/* no */1]", 1},
        {"\xEF\xBB\xBF{}", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf out = buf_init(BUF_NO_LIMIT);
        buf_add_lit(&out, "before");
        json_error why = {0};
        assert_int_equal(json_to_bson(slice_str(cases[i].text), NULL, &out, NULL, &why), E_BAD_JSON);
        assert_non_null(why.reason);
        if (why.offset != cases[i].offset) {
            fail_msg("%s: %s at %zu, not at %zu", cases[i].text, why.reason, why.offset, cases[i].offset);
        }
        assert_true(buf_ok(&out));
        assert_true(slice_eq(buf_view(&out), SLICE_LIT("before")));
        buf_free(&out);
    }
    buf out = buf_init(BUF_NO_LIMIT);
    assert_int_equal(json_to_bson(SLICE_EMPTY, NULL, &out, NULL, NULL), E_BAD_JSON);
    assert_int_equal(json_to_bson(slice_of("{\"a\":\0}", 7), NULL, &out, NULL, NULL), E_BAD_JSON);
    assert_int_equal(json_to_bson(slice_of("{}\0", 3), NULL, &out, NULL, NULL), E_BAD_JSON);
    buf_free(&out);
}

/* Any truncated text is rejected, and no byte after its end is read (the sanitizers check that). */
static void every_beginning_is_refused(void **state) {
    (void)state;
    static const char text[] =
        "{\"a\":[1,-2.5e3,true,false,null,\"x\\u00e9\\n\\ud83d\\ude00 é 漢 and some more plain text\"],\"b\":{\"c\":{}}}";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        char *copy = malloc(n ? n : 1); /* its own block, so that the sanitizer sees the end */
        memcpy(copy, text, n);
        buf out = buf_init(BUF_NO_LIMIT);
        assert_int_equal(json_to_bson(slice_of(copy, n), NULL, &out, NULL, NULL), E_BAD_JSON);
        free(copy);
        buf_free(&out);
    }
}

static void depth_is_bounded(void **state) {
    (void)state;
    for (unsigned depth = 1; depth <= LIMIT_JSON_DEPTH + 2; depth++) {
        buf text = buf_init(BUF_NO_LIMIT), out = buf_init(BUF_NO_LIMIT);
        for (unsigned i = 0; i < depth; i++) {
            buf_add_slice(&text, i % 2 ? SLICE_LIT("{\"a\":") : SLICE_LIT("["));
        }
        buf_add_lit(&text, "1");
        for (unsigned i = depth; i > 0; i--) {
            buf_add_byte(&text, i % 2 ? ']' : '}');
        }
        err expected = depth <= LIMIT_JSON_DEPTH ? OK : E_BAD_JSON;
        assert_int_equal(json_to_bson(buf_view(&text), NULL, &out, NULL, NULL), expected);
        if (expected == OK) {
            assert_becomes(text.p, text.n, text.p, text.n);
        }
        json_options shallow = {.depth_max = 3};
        buf_clear(&out);
        assert_int_equal(json_to_bson(buf_view(&text), &shallow, &out, NULL, NULL), depth <= 3 ? OK : E_BAD_JSON);
        buf_free(&text);
        buf_free(&out);
    }
    buf text = buf_init(BUF_NO_LIMIT), out = buf_init(BUF_NO_LIMIT);
    for (unsigned i = 0; i < 2000000; i++) {
        buf_add_byte(&text, '[');
    }
    assert_int_equal(json_to_bson(buf_view(&text), NULL, &out, NULL, NULL), E_BAD_JSON);
    buf_free(&text);
    buf_free(&out);
}

/* A buffer with exactly the needed room is enough; with less, the result is E_TOO_LARGE and the buffer is unchanged. */
static void the_limit_is_the_buffers(void **state) {
    (void)state;
    static const char text[] =
        "{\"id\":\"0123456789 0123456789 é\\n\",\"n\":[1,2.5,9223372036854775807,{\"\":{\"\":1}},[]],\"b\":true,\"a\":1,\"a\":null}";
    buf whole = buf_init(BUF_NO_LIMIT);
    assert_int_equal(json_to_bson(SLICE_LIT(text), NULL, &whole, NULL, NULL), OK);
    size_t before_duplicates = whole.n + 7; /* the first "a":1 is removed only at the end */
    for (size_t max = 0; max <= before_duplicates + 4; max++) {
        buf out = buf_init(max);
        json_error why;
        err code = json_to_bson(SLICE_LIT(text), NULL, &out, NULL, &why);
        assert_int_equal(code, max >= before_duplicates ? OK : E_TOO_LARGE);
        assert_true(buf_ok(&out));
        assert_int_equal(out.n, code == OK ? whole.n : 0);
        if (code == OK) {
            assert_memory_equal(out.p, whole.p, whole.n);
        }
        buf_free(&out);
    }
    buf text_out = buf_init(BUF_NO_LIMIT);
    json_from_bson(&text_out, buf_view(&whole));
    for (size_t max = 0; max <= text_out.n + 4; max++) {
        buf out = buf_init(max);
        json_from_bson(&out, buf_view(&whole));
        assert_int_equal(buf_ok(&out), max >= text_out.n);
        assert_true(out.n <= max);
        buf_free(&out);
    }
    buf_free(&text_out);
    buf_free(&whole);
}

static void some_keys_are_left_out(void **state) {
    (void)state;
    static const slice drop[] = {SLICE_LIT("_rid"), SLICE_LIT("_ts")};
    json_options options = {.drop = drop, .drop_n = 2};
    buf bson = buf_init(BUF_NO_LIMIT), text = buf_init(BUF_NO_LIMIT);
    slice in =
        SLICE_LIT("{\"_rid\":{\"a\":[1,2]},\"id\":\"x\",\"_ts\":1,\"in\":{\"_rid\":1,\"_ts\":2},\"_ts\":5,\"_tsx\":3,\"\\u005frid\":0}");
    assert_int_equal(json_to_bson(in, &options, &bson, NULL, NULL), OK);
    json_from_bson(&text, buf_view(&bson));
    assert_true(slice_eq(buf_view(&text), SLICE_LIT("{\"id\":\"x\",\"in\":{\"_rid\":1,\"_ts\":2},\"_tsx\":3}")));
    buf_clear(&bson);
    assert_int_equal(json_to_bson(SLICE_LIT("{\"_rid\":bad}"), &options, &bson, NULL, NULL), E_BAD_JSON);
    buf_free(&bson);
    buf_free(&text);
}

static void an_open_object_says_if_a_comma_is_due(void **state) {
    (void)state;
    buf bson = buf_init(BUF_NO_LIMIT), text = buf_init(BUF_NO_LIMIT);
    assert_int_equal(json_to_bson(SLICE_LIT("{\"a\":1}"), NULL, &bson, NULL, NULL), OK);
    size_t n = bson.n;
    assert_int_equal(json_to_bson(SLICE_LIT("{}"), NULL, &bson, NULL, NULL), OK);
    assert_true(json_from_bson_open(&text, slice_of(bson.p, n)));
    assert_false(json_from_bson_open(&text, slice_of(bson.p + n, bson.n - n)));
    assert_true(slice_eq(buf_view(&text), SLICE_LIT("{\"a\":1{")));
    buf_free(&bson);
    buf_free(&text);
}

static void single_strings_and_numbers(void **state) {
    (void)state;
    buf text = buf_init(BUF_NO_LIMIT);
    json_add_string(&text, SLICE_EMPTY);
    json_add_string(&text, slice_of("a\0\"", 3));
    json_add_double(&text, 0.5);
    json_add_double(&text, NAN);
    json_add_double(&text, -INFINITY);
    assert_true(slice_eq(buf_view(&text), SLICE_LIT("\"\"\"a\\u0000\\\"\"0.5nullnull")));
    buf_free(&text);
}

static void types_are_the_smallest(void **state) {
    (void)state;
    buf bson = buf_init(BUF_NO_LIMIT);
    assert_int_equal(json_to_bson(SLICE_LIT("[1,2147483648,1.0,-0,\"\",true,null,{},[],9223372036854775808]"), NULL, &bson, NULL, NULL),
                     OK);
    static const bson_type_t expected[] = {BSON_TYPE_INT32, BSON_TYPE_INT64, BSON_TYPE_DOUBLE,   BSON_TYPE_DOUBLE, BSON_TYPE_UTF8,
                                           BSON_TYPE_BOOL,  BSON_TYPE_NULL,  BSON_TYPE_DOCUMENT, BSON_TYPE_ARRAY,  BSON_TYPE_DOUBLE};
    bson_t b;
    bson_iter_t iter;
    assert_true(bson_init_static(&b, (const uint8_t *)bson.p, bson.n) && bson_iter_init(&iter, &b));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_true(bson_iter_next(&iter));
        assert_int_equal(bson_iter_type(&iter), expected[i]);
        assert_int_equal(atoi(bson_iter_key(&iter)), i);
        if (i == 3) {
            assert_true(signbit(bson_iter_double(&iter)));
        }
    }
    assert_false(bson_iter_next(&iter));
    buf_free(&bson);
}

/* Numbers are the same if they are equal, whatever their types. */
static bool same_value(bson_iter_t *a, bson_iter_t *b);

static bool same_members(bson_iter_t *a, bson_iter_t *b) {
    for (;;) {
        bool more = bson_iter_next(a);
        if (more != bson_iter_next(b)) {
            return false;
        }
        if (!more) {
            return true;
        }
        if (strcmp(bson_iter_key(a), bson_iter_key(b)) != 0 || !same_value(a, b)) {
            return false;
        }
    }
}

static bool same_value(bson_iter_t *a, bson_iter_t *b) {
    if (BSON_ITER_HOLDS_NUMBER(a) && BSON_ITER_HOLDS_NUMBER(b)) {
        return BSON_ITER_HOLDS_DOUBLE(a) || BSON_ITER_HOLDS_DOUBLE(b) ? bson_iter_as_double(a) == bson_iter_as_double(b)
                                                                      : bson_iter_as_int64(a) == bson_iter_as_int64(b);
    }
    if (bson_iter_type(a) != bson_iter_type(b)) {
        return false;
    }
    bson_iter_t inner_a, inner_b;
    if (bson_iter_recurse(a, &inner_a) && bson_iter_recurse(b, &inner_b)) {
        return same_members(&inner_a, &inner_b);
    }
    const bson_value_t *x = bson_iter_value(a), *y = bson_iter_value(b);
    bson_t left, right;
    bson_init(&left);
    bson_init(&right);
    bson_append_value(&left, "x", 1, x);
    bson_append_value(&right, "x", 1, y);
    bool same = bson_equal(&left, &right);
    bson_destroy(&left);
    bson_destroy(&right);
    return same;
}

static bool same_documents(const bson_t *a, const bson_t *b) {
    bson_iter_t x, y;
    return bson_iter_init(&x, a) && bson_iter_init(&y, b) && same_members(&x, &y);
}

/* Text to BSON to text to BSON: all values are equal, and all texts that we write are. */
static void random_texts_come_back(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 1);
    for (int i = 0; i < 4000; i++) {
        buf text = buf_init(BUF_NO_LIMIT), bson = buf_init(BUF_NO_LIMIT), again = buf_init(BUF_NO_LIMIT);
        buf bson2 = buf_init(BUF_NO_LIMIT), again2 = buf_init(BUF_NO_LIMIT);
        random_json_object(&r, &text, i % 2);
        json_error why = {0};
        if (json_to_bson(buf_view(&text), NULL, &bson, NULL, &why) != OK) {
            fail_msg("%.*s: %s", (int)text.n, text.p, why.reason);
        }
        json_from_bson(&again, buf_view(&bson));
        assert_int_equal(json_to_bson(buf_view(&again), NULL, &bson2, NULL, NULL), OK);
        json_from_bson(&again2, buf_view(&bson2));
        assert_true(slice_eq(buf_view(&again), buf_view(&again2)));
        bson_t a, b;
        assert_true(bson_init_static(&a, (const uint8_t *)bson.p, bson.n) && bson_init_static(&b, (const uint8_t *)bson2.p, bson2.n));
        assert_valid(&bson);
        assert_true(same_documents(&a, &b));
        buf_free(&text);
        buf_free(&bson);
        buf_free(&again);
        buf_free(&bson2);
        buf_free(&again2);
    }
}

/* libbson reads the text that we write as we do. (It rejects NUL in keys and lone surrogates, so it gets text that we have rewritten.) */
static void libbson_reads_the_same(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 2);
    int compared = 0;
    for (int i = 0; i < 3000; i++) {
        buf text = buf_init(BUF_NO_LIMIT), bson = buf_init(BUF_NO_LIMIT), again = buf_init(BUF_NO_LIMIT);
        random_json_object(&r, &text, true);
        assert_int_equal(json_to_bson(buf_view(&text), NULL, &bson, NULL, NULL), OK);
        json_from_bson(&again, buf_view(&bson));
        bson_error_t error;
        bson_t *theirs =
            memmem(again.p, again.n, "\\u0000", 6) ? NULL : bson_new_from_json((const uint8_t *)again.p, (ssize_t)again.n, &error);
        bson_t ours;
        assert_true(bson_init_static(&ours, (const uint8_t *)bson.p, bson.n));
        if (theirs) {
            compared++;
            if (!same_documents(theirs, &ours)) {
                fail_msg("libbson reads %.*s as %s", (int)again.n, again.p, bson_as_relaxed_extended_json(theirs, NULL));
            }
        }
        bson_destroy(theirs);
        buf_free(&text);
        buf_free(&bson);
        buf_free(&again);
    }
    assert_true(compared > 500);
}

static void other_types_in_extended_json(void **state) {
    (void)state;
    bson_t *b = bson_new();
    bson_oid_t oid;
    bson_oid_init_from_string(&oid, "0123456789abcdef01234567");
    bson_decimal128_t decimal;
    bson_decimal128_from_string("1.10", &decimal);
    bson_t *scope = BCON_NEW("x", BCON_INT32(1));
    BSON_APPEND_OID(b, "oid", &oid);
    BSON_APPEND_DATE_TIME(b, "date", 1715934105123);
    BSON_APPEND_DATE_TIME(b, "second", 951782400000); /* 2000-02-29 */
    BSON_APPEND_DATE_TIME(b, "epoch", 0);
    BSON_APPEND_DATE_TIME(b, "last", 253402300799999);
    BSON_APPEND_DATE_TIME(b, "late", 253402300800000);
    BSON_APPEND_DATE_TIME(b, "early", -1);
    BSON_APPEND_BINARY(b, "binary", BSON_SUBTYPE_UUID, (const uint8_t *)"\x00\xFFhi", 4);
    BSON_APPEND_BINARY(b, "old", BSON_SUBTYPE_BINARY_DEPRECATED, (const uint8_t *)"hi", 2);
    BSON_APPEND_REGEX(b, "regex", "a\"b", "i");
    BSON_APPEND_DBPOINTER(b, "pointer", "db.c", &oid);
    BSON_APPEND_CODE(b, "code", "f()");
    BSON_APPEND_CODE_WITH_SCOPE(b, "scoped", "g()", scope);
    BSON_APPEND_SYMBOL(b, "symbol", "s");
    BSON_APPEND_TIMESTAMP(b, "time", 4294967295u, 7);
    BSON_APPEND_DECIMAL128(b, "decimal", &decimal);
    BSON_APPEND_UNDEFINED(b, "undefined");
    BSON_APPEND_MINKEY(b, "min");
    BSON_APPEND_MAXKEY(b, "max");
    BSON_APPEND_DOUBLE(b, "nan", NAN);
    BSON_APPEND_DOUBLE(b, "inf", INFINITY);
    BSON_APPEND_DOUBLE(b, "neg", -INFINITY);
    buf text = buf_init(BUF_NO_LIMIT);
    json_from_bson(&text, view(b));
    buf_add_byte(&text, 0);
    assert_string_equal(text.p, "{\"oid\":{\"$oid\":\"0123456789abcdef01234567\"},"
                                "\"date\":{\"$date\":\"2024-05-17T08:21:45.123Z\"},"
                                "\"second\":{\"$date\":\"2000-02-29T00:00:00Z\"},"
                                "\"epoch\":{\"$date\":\"1970-01-01T00:00:00Z\"},"
                                "\"last\":{\"$date\":\"9999-12-31T23:59:59.999Z\"},"
                                "\"late\":{\"$date\":{\"$numberLong\":\"253402300800000\"}},"
                                "\"early\":{\"$date\":{\"$numberLong\":\"-1\"}},"
                                "\"binary\":{\"$binary\":{\"base64\":\"AP9oaQ==\",\"subType\":\"04\"}},"
                                "\"old\":{\"$binary\":{\"base64\":\"aGk=\",\"subType\":\"02\"}},"
                                "\"regex\":{\"$regularExpression\":{\"pattern\":\"a\\\"b\",\"options\":\"i\"}},"
                                "\"pointer\":{\"$dbPointer\":{\"$ref\":\"db.c\",\"$id\":{\"$oid\":\"0123456789abcdef01234567\"}}},"
                                "\"code\":{\"$code\":\"f()\"},"
                                "\"scoped\":{\"$code\":\"g()\",\"$scope\":{\"x\":1}},"
                                "\"symbol\":{\"$symbol\":\"s\"},"
                                "\"time\":{\"$timestamp\":{\"t\":4294967295,\"i\":7}},"
                                "\"decimal\":{\"$numberDecimal\":\"1.10\"},"
                                "\"undefined\":{\"$undefined\":true},"
                                "\"min\":{\"$minKey\":1},\"max\":{\"$maxKey\":1},"
                                "\"nan\":{\"$numberDouble\":\"NaN\"},\"inf\":{\"$numberDouble\":\"Infinity\"},"
                                "\"neg\":{\"$numberDouble\":\"-Infinity\"}}");
    buf_free(&text);
    bson_destroy(scope);
    bson_destroy(b);
}

/* For documents of all types, made by libbson: libbson reads our text back as the same document. */
static void libbson_reads_extended_json_back(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 4);
    for (int i = 0; i < 2000; i++) {
        bson_t *document = random_bson(&r);
        buf text = buf_init(BUF_NO_LIMIT);
        json_from_bson(&text, view(document));
        bson_error_t error;
        bson_t *again = bson_new_from_json((const uint8_t *)text.p, (ssize_t)text.n, &error);
        if (!again) {
            fail_msg("%.*s: %s", (int)text.n, text.p, error.message);
        }
        if (!same_documents(document, again)) {
            fail_msg("%.*s", (int)text.n, text.p);
        }
        bson_destroy(again);
        bson_destroy(document);
        buf_free(&text);
    }
}

/* Corrupt bytes: nothing outside is read, and the text is well-formed (our own reader accepts it). */
static void corrupt_documents_are_survived(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 5);
    for (int i = 0; i < 3000; i++) {
        bson_t *document = random_bson(&r);
        size_t n = random_below(&r, 3) ? document->len : random_below(&r, document->len);
        char *bytes = malloc(n ? n : 1); /* its own block, so that the sanitizer sees the end */
        memcpy(bytes, bson_get_data(document), n);
        for (uint64_t k = random_below(&r, 6); k > 0 && n > 0; k--) {
            bytes[random_below(&r, n)] = (char)(random_below(&r, 2) ? random_below(&r, 24) : random_u64(&r));
        }
        buf text = buf_init(BUF_NO_LIMIT), again = buf_init(BUF_NO_LIMIT);
        json_from_bson(&text, slice_of(bytes, n));
        json_from_bson_array(&text, slice_of(bytes, n));
        json_from_bson_open(&text, slice_of(bytes, n));
        buf_clear(&text);
        json_from_bson(&text, slice_of(bytes, n));
        json_error why = {0};
        json_options deep = {.depth_max = 1000};
        err code = json_to_bson(buf_view(&text), &deep, &again, NULL, &why);
        if (code != OK && !strstr(why.reason, "UTF-8")) { /* strings are copied unchecked */
            fail_msg("%.*s: %s at %zu", (int)text.n, text.p, why.reason, why.offset);
        }
        buf_free(&again);
        buf_free(&text);
        free(bytes);
        bson_destroy(document);
    }
}

/* Very deep nesting, as untrusted bytes may have. */
static void deep_documents_are_cut(void **state) {
    (void)state;
    buf text = buf_init(BUF_NO_LIMIT);
    size_t depth = 100000;
    size_t n = depth * 8 + 5; /* a level has 4 bytes of length, 3 of type and key, and a zero byte at its end */
    char *bytes = calloc(1, n);
    for (size_t i = 0; i <= depth; i++) {
        int32_t length = (int32_t)(n - i * 8);
        memcpy(bytes + i * 7, &length, 4);
        if (i < depth) {
            memcpy(bytes + i * 7 + 4, "\x03x", 3);
        }
    }
    json_from_bson(&text, slice_of(bytes, n));
    assert_true(slice_starts(buf_view(&text), SLICE_LIT("{\"x\":{\"x\":{\"x\":")));
    assert_in_range(text.n, 200 * 6, 300 * 6);
    free(bytes);
    buf_free(&text);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double time_to_read(const buf *text) {
    buf out = buf_init(BUF_NO_LIMIT);
    double start = seconds();
    assert_int_equal(json_to_bson(buf_view(text), NULL, &out, NULL, NULL), OK);
    double took = seconds() - start;
    buf_free(&out);
    return took;
}

/* Texts made to be slow: many keys, equal keys, keys that collide in the `seen` set, duplicates at every level. A text eight times as long
 * may take some twenty times as long, not sixty-four. */
static void time_is_linear(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        double took[2];
        for (int size = 0; size < 2; size++) {
            buf text = buf_init(BUF_NO_LIMIT);
            unsigned n = size ? 400000 : 50000;
            buf_add_lit(&text, "{\"first\":0");
            for (unsigned i = 0; i < n; i++) {
                if (kind == 0) {
                    buf_addf(&text, ",\"%x\":1", i);
                } else if (kind == 1) {
                    buf_addf(&text, ",\"%x\":1", i % 7);
                } else if (kind == 2) {
                    buf_addf(&text, ",\"a%06xa%06xa\":%s", i, i, i % 100 == 0 ? "{\"b\":1,\"b\":2}" : "1");
                } else {
                    buf_addf(&text, "%s\"x%xx\":1", i % 33 ? "," : i == 0 ? ",\"o\":[{" : "},{", i);
                }
            }
            buf_add_slice(&text, kind == 3 ? SLICE_LIT("}]}") : SLICE_LIT("}"));
            took[size] = time_to_read(&text);
            buf_free(&text);
        }
        if (took[1] > 0.3 && took[1] > 30 * took[0]) {
            fail_msg("kind %d: %.3f s, then %.3f s", kind, took[0], took[1]);
        }
    }
    buf text = buf_init(BUF_NO_LIMIT);
    for (int i = 0; i < 120; i++) {
        buf_add_lit(&text, "{\"a\":0,\"a\":");
    }
    buf_add_byte(&text, '"');
    for (int i = 0; i < 2000000; i++) {
        buf_add_byte(&text, 'x');
    }
    buf_add_byte(&text, '"');
    for (int i = 0; i < 120; i++) {
        buf_add_byte(&text, '}');
    }
    assert_true(time_to_read(&text) < 2);
    buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_kept),
        cmocka_unit_test(numbers_are_exact_or_shortest),
        cmocka_unit_test(strings_are_kept),
        cmocka_unit_test(the_last_of_equal_keys_wins),
        cmocka_unit_test(equal_keys_in_objects_of_any_size),
        cmocka_unit_test(what_is_no_json),
        cmocka_unit_test(every_beginning_is_refused),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(the_limit_is_the_buffers),
        cmocka_unit_test(some_keys_are_left_out),
        cmocka_unit_test(an_open_object_says_if_a_comma_is_due),
        cmocka_unit_test(single_strings_and_numbers),
        cmocka_unit_test(types_are_the_smallest),
        cmocka_unit_test(random_texts_come_back),
        cmocka_unit_test(libbson_reads_the_same),
        cmocka_unit_test(other_types_in_extended_json),
        cmocka_unit_test(libbson_reads_extended_json_back),
        cmocka_unit_test(corrupt_documents_are_survived),
        cmocka_unit_test(deep_documents_are_cut),
        cmocka_unit_test(time_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
