/* How the index spells values: in the query language's order, upward and downward, alone and in sequence; and reading spellings back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "doc/order.h"
#include "index/entry_key.h"
#include "query/demand.h"
#include "random_typed.h"

enum { VALUES = 700 };

typedef struct sample {
    bson_t document; /* has one member, the value */
    doc_element element;
    query_value value;
    buf up, down;
    bool whole;
} sample;

static sample samples[VALUES];
static random_source dice;

/* ---- random values that often nearly collide ---- */

static void add_string(bson_t *to) {
    char text[200];
    size_t n = random_below(&dice, 3) ? random_below(&dice, 6) : 60 + random_below(&dice, 10);
    for (size_t i = 0; i < n; i++) { /* long strings share a prefix */
        text[i] = i >= 6 && i < 60 ? 'm' : "\0\1ab\x7Fz"[random_below(&dice, 6)];
    }
    for (size_t i = 0; i < n && n >= 60 && i < 60; i++) {
        text[i] = 'm';
    }
    assert_true(bson_append_utf8(to, "v", 1, text, (int)n));
}

static void add_number(bson_t *to) {
    static const double edges[] = {0.0,
                                   -0.0,
                                   1,
                                   -1,
                                   0.5,
                                   -0.5,
                                   1e300,
                                   -1e300,
                                   5e-324,
                                   -5e-324,
                                   INFINITY,
                                   -INFINITY,
                                   (double)NAN,
                                   9007199254740992.0,
                                   9007199254740994.0,
                                   -9007199254740992.0};
    switch (random_below(&dice, 4)) {
    case 0:
        assert_true(bson_append_int64(to, "v", 1, INT64_C(9007199254740990) + (int64_t)random_below(&dice, 8)));
        break;
    case 1:
        assert_true(bson_append_int32(to, "v", 1, (int32_t)random_below(&dice, 20) - 10));
        break;
    case 2:
        assert_true(bson_append_double(to, "v", 1, edges[random_below(&dice, sizeof edges / sizeof *edges)]));
        break;
    default: {
        double number;
        uint64_t bits = random_u64(&dice);
        memcpy(&number, &bits, sizeof number);
        assert_true(bson_append_double(to, "v", 1, isnan(number) ? 7 : number));
    }
    }
}

static void add_container(bson_t *to) {
    bson_t inner = BSON_INITIALIZER;
    if (random_below(&dice, 2)) {
        bson_append_int32(&inner, "0", 1, (int32_t)random_below(&dice, 3));
    }
    if (random_below(&dice, 2)) {
        assert_true(bson_append_array(to, "v", 1, &inner));
    } else {
        assert_true(bson_append_document(to, "v", 1, &inner));
    }
    bson_destroy(&inner);
}

static void add_value(bson_t *to) {
    uint64_t kind = random_below(&dice, 20);
    if (kind >= 12) {
        uint64_t type = random_below(&dice, TYPED_KINDS);
        typed_scalar(&dice, to, "v", type == TYPED_UNDEFINED ? TYPED_KINDS - 1 : type);
    } else if (kind < 5) {
        add_string(to);
    } else if (kind < 9) {
        add_number(to);
    } else if (kind == 9) {
        add_container(to);
    } else {
        assert_true(kind == 10 ? bson_append_null(to, "v", 1) : bson_append_bool(to, "v", 1, random_below(&dice, 2)));
    }
}

static void make_sample(sample *s) {
    doc_walk w;
    buf other = buf_init(BUF_NO_LIMIT);
    bson_init(&s->document);
    add_value(&s->document);
    assert_true(doc_walk_init(&w, slice_of(bson_get_data(&s->document), s->document.len)));
    assert_true(doc_walk_next(&w, &s->element));
    s->value = value_of_element(&s->element);
    s->up = s->down = buf_init(BUF_NO_LIMIT);
    index_spell_element(&s->up, &s->element);
    index_spell_element(&s->down, &s->element);
    index_spell_downward(&s->down, 0);
    assert_true(s->up.n <= INDEX_VALUE_BYTES_MAX);
    s->whole = query_index_encode(&other, &s->value); /* queries spell whole values the same way */
    assert_true(s->whole ? slice_eq(buf_view(&other), buf_view(&s->up)) : slice_starts(buf_view(&s->up), buf_view(&other)));
    buf_free(&other);
}

static int set_up(void **state) {
    (void)state;
    random_seed(&dice, 5);
    for (size_t i = 0; i < VALUES; i++) {
        make_sample(&samples[i]);
    }
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    for (size_t i = 0; i < VALUES; i++) {
        bson_destroy(&samples[i].document);
        buf_free(&samples[i].up);
        buf_free(&samples[i].down);
    }
    return 0;
}

static int sign(int order) {
    return (order > 0) - (order < 0);
}

/* ---- order ---- */

static void byte_order_is_value_order(void **state) {
    (void)state;
    size_t told = 0;
    for (size_t i = 0; i < VALUES; i++) {
        for (size_t j = 0; j < VALUES; j++) {
            const sample *a = &samples[i], *b = &samples[j];
            int order = value_compare(&a->value, &b->value), spelled = slice_cmp(buf_view(&a->up), buf_view(&b->up));
            bool alike = !a->whole && !b->whole && a->value.type == b->value.type &&
                         a->value.extended == b->value.extended; /* then the index may not distinguish them */
            if (!alike || a->value.type == TYPE_NUMBER) {
                told++;
                assert_int_equal(sign(spelled), sign(order));
                assert_int_equal(sign(slice_cmp(buf_view(&a->down), buf_view(&b->down))), -sign(order));
            } else if (spelled == 0 && a->value.type == TYPE_STRING) {
                assert_int_equal(order, 0); /* same prefix and same hash */
            }
        }
    }
    assert_true(told > VALUES * VALUES / 2);
}

/* Two spellings in sequence sort by the first value, then by the second. */
static void several_in_a_row(void **state) {
    (void)state;
    for (int i = 0; i < 50000; i++) {
        const sample *a = &samples[random_below(&dice, VALUES)], *b = &samples[random_below(&dice, VALUES)];
        const sample *c = &samples[random_below(&dice, VALUES)], *d = &samples[random_below(&dice, VALUES)];
        bool down = random_below(&dice, 2);
        buf one = buf_init(BUF_NO_LIMIT), two = buf_init(BUF_NO_LIMIT);
        b = random_below(&dice, 2) ? a : b;
        buf_add_slice(&one, buf_view(down ? &a->down : &a->up));
        buf_add_slice(&one, buf_view(&c->up));
        buf_add_slice(&two, buf_view(down ? &b->down : &b->up));
        buf_add_slice(&two, buf_view(&d->up));
        int first = slice_cmp(buf_view(&a->up), buf_view(&b->up)), second = slice_cmp(buf_view(&c->up), buf_view(&d->up));
        int wanted = first ? (down ? -first : first) : second;
        assert_int_equal(sign(slice_cmp(buf_view(&one), buf_view(&two))), sign(wanted));
        buf_free(&one);
        buf_free(&two);
    }
}

static void beginnings(void **state) {
    (void)state;
    size_t begin = 0;
    for (size_t i = 0; i < VALUES; i++) {
        for (size_t j = 0; j < VALUES; j++) {
            slice text = samples[i].value.bytes, of = samples[j].value.bytes;
            if (samples[i].value.type != TYPE_STRING || samples[j].value.type != TYPE_STRING) {
                continue;
            }
            buf prefix = buf_init(BUF_NO_LIMIT);
            index_spell_prefix(&prefix, text);
            bool told = slice_starts(buf_view(&samples[j].up), buf_view(&prefix)), begins = slice_starts(of, text);
            assert_true(told || !begins);
            assert_true(begins || !told || text.n > INDEX_STRING_BYTES);
            begin += begins;
            buf_free(&prefix);
        }
    }
    assert_true(begin > VALUES);
}

/* ---- reading ---- */

/* A placed value of a type that JSON lacks can be read back, a Decimal128 as an equal one; other values cannot. */
static void check_typed(const sample *s, const index_value *v) {
    buf value = buf_init(BUF_NO_LIMIT);
    bson_type_t type;
    bool told = index_value_typed(buf_view(&s->up), v, &value, &type);
    assert_int_equal(told, s->value.extended && v->placed);
    if (told) {
        doc_element e = {.type = type, .value = buf_view(&value)};
        assert_int_equal(type, s->element.type);
        assert_int_equal(doc_order_compare(&e, &s->element), 0);
    }
    buf_free(&value);
}

static void taken_apart_again(void **state) {
    (void)state;
    for (size_t i = 0; i < VALUES; i++) {
        const sample *s = &samples[i];
        index_value v;
        buf text = buf_init(BUF_NO_LIMIT), longer = buf_init(BUF_NO_LIMIT);
        buf_add_slice(&longer, buf_view(&s->up));
        buf_add_lit(&longer, "\xFF\x00\x01 and more");
        assert_true(index_value_read(buf_view(&longer), &v));
        assert_int_equal(v.n, s->up.n);
        assert_int_equal(v.placed, s->whole);
        assert_int_equal(v.whole, s->whole && v.type != INDEX_DECIMAL);
        check_typed(s, &v);
        if (v.type == INDEX_NUMBER) {
            assert_true(isnan(v.number) ? isnan(s->value.number) : v.number == s->value.number);
        } else if (v.type == INDEX_STRING) {
            index_unescape(&text, v.text);
            assert_true(v.whole ? slice_eq(buf_view(&text), s->value.bytes)
                                : slice_eq(buf_view(&text), slice_of(s->value.bytes.p, INDEX_STRING_BYTES)));
        }
        for (size_t n = 0; n < s->up.n; n++) { /* no prefix is a valid spelling */
            assert_false(index_value_read(slice_of(s->up.p, n), &v));
        }
        buf_free(&text);
        buf_free(&longer);
    }
}

static void what_is_no_value(void **state) {
    (void)state;
    index_value v;
    for (int i = 0; i < 100000; i++) {
        char bytes[24];
        size_t n = random_below(&dice, sizeof bytes);
        random_bytes(&dice, bytes, n);
        if (n && random_below(&dice, 2)) {
            bytes[0] = (char)(1 + random_below(&dice, INDEX_TYPE_END));
        }
        if (index_value_read(slice_of(bytes, n), &v)) { /* any value read lies inside the bytes */
            assert_true(v.n >= 1 && v.n <= n && v.text.n < n);
        }
    }
    assert_false(index_value_read(SLICE_EMPTY, &v));
}

/* ---- bytes on disk ---- */

/* These bytes are stored on disk, so they must never change. */
static void json_values_have_the_bytes_they_had(void **state) {
    (void)state;
    static const struct {
        const char *json;
        slice spelled;
    } cases[] = {
        {"{\"v\":null}", SLICE_LIT("\x02")},
        {"{\"v\":false}", SLICE_LIT("\x03")},
        {"{\"v\":true}", SLICE_LIT("\x04")},
        {"{\"v\":1}", SLICE_LIT("\x05\xBF\xF0\x00\x00\x00\x00\x00\x00")},
        {"{\"v\":-1.5}", SLICE_LIT("\x05\x40\x07\xFF\xFF\xFF\xFF\xFF\xFF")},
        {"{\"v\":9007199254740993}", SLICE_LIT("\x05\xC3\x40\x00\x00\x00\x00\x00\x00")},
        {"{\"v\":\"a\"}", SLICE_LIT("\x06"
                                    "a\x00\x01")},
        {"{\"v\":\"0123456789012345678901234567890123456789012345678901234567890123x\"}",
         SLICE_LIT("\x06"
                   "0123456789012345678901234567890123456789012345678901234567890123\x00\x02\xD5\x2D\x8F\xD1")},
        {"{\"v\":[1]}", SLICE_LIT("\x07")},
        {"{\"v\":{}}", SLICE_LIT("\x08")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bson_t *b = bson_new_from_json((const uint8_t *)cases[i].json, -1, NULL);
        doc_walk w;
        doc_element e;
        buf out = buf_init(BUF_NO_LIMIT);
        assert_true(doc_walk_init(&w, slice_of(bson_get_data(b), b->len)) && doc_walk_next(&w, &e));
        index_spell_element(&out, &e);
        if (!slice_eq(buf_view(&out), cases[i].spelled)) {
            fail_msg("%s", cases[i].json);
        }
        buf_free(&out);
        bson_destroy(b);
    }
}

/* ---- paths ---- */

static void paths_are_told_apart(void **state) {
    (void)state;
    index_path a = index_path_member(INDEX_PATH_ROOT, SLICE_LIT("a")), b = index_path_member(INDEX_PATH_ROOT, SLICE_LIT("b"));
    index_path list[] = {a,
                         b,
                         index_path_member(a, SLICE_LIT("b")),
                         index_path_member(b, SLICE_LIT("a")),
                         index_path_element(a),
                         index_path_element(index_path_element(a)),
                         index_path_member(index_path_element(a), SLICE_LIT("b")),
                         index_path_member(INDEX_PATH_ROOT, SLICE_LIT("a\0")),
                         index_path_member(INDEX_PATH_ROOT, SLICE_LIT("")),
                         index_path_member(INDEX_PATH_ROOT, SLICE_LIT("[]")),
                         index_path_element(INDEX_PATH_ROOT),
                         index_path_mixed(a, 1),
                         index_path_mixed(a, 0),
                         INDEX_PATH_SHAPES,
                         INDEX_PATH_LARGE};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_true(list[i] != list[j]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_order_is_value_order),
        cmocka_unit_test(several_in_a_row),
        cmocka_unit_test(beginnings),
        cmocka_unit_test(taken_apart_again),
        cmocka_unit_test(what_is_no_value),
        cmocka_unit_test(paths_are_told_apart),
        cmocka_unit_test(json_values_have_the_bytes_they_had),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
