/* Values: members and elements, system properties, the total order, equality, hashes, JSON, documents made of values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "base/random.h"
#include "doc/json.h"
#include "query/value.h"
#include "random_typed.h"

static arena memory;

static int set_up(void **state) {
    (void)state;
    memory = arena_init();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

/* The value of a JSON text. */
static query_value value(const char *text) {
    buf wrapped = buf_init(BUF_NO_LIMIT), bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    buf_addf(&wrapped, "[%s]", text);
    assert_int_equal(json_to_bson(buf_view(&wrapped), NULL, &bson, &root, NULL), OK);
    slice document = arena_copy(&memory, buf_view(&bson));
    buf_free(&wrapped);
    buf_free(&bson);
    query_value array = value_document(TYPE_ARRAY, document);
    return value_element(&array, 0);
}

static void assert_json(const query_value *v, const char *expected) {
    buf out = buf_init(BUF_NO_LIMIT);
    value_write(&out, v);
    buf_add_byte(&out, 0);
    assert_string_equal(out.p, expected);
    buf_free(&out);
}

/* ---- reading ---- */

static void members_and_elements_are_found(void **state) {
    (void)state;
    query_value v = value("{\"a\":1,\"ab\":{\"c\":[10,20,{\"d\":null}]},\"\":\"empty\",\"n\\u0000l\":true,\"\\u00e9\":2.5}");
    query_value found = value_member(&memory, &v, SLICE_LIT("a"));
    assert_true(found.type == TYPE_NUMBER && found.is_integer && found.integer == 1 && found.number == 1);
    found = value_member(&memory, &v, SLICE_LIT(""));
    assert_json(&found, "\"empty\"");
    found = value_member(&memory, &v, SLICE_LIT("n\0l"));
    assert_json(&found, "true");
    found = value_member(&memory, &v, SLICE_LIT("\xC3\xA9"));
    assert_json(&found, "2.5");
    assert_int_equal(value_member(&memory, &v, SLICE_LIT("b")).type, TYPE_UNDEFINED);
    assert_int_equal(value_member(&memory, &v, SLICE_LIT("_rid")).type, TYPE_UNDEFINED);
    assert_int_equal(value_member(&memory, &found, SLICE_LIT("a")).type, TYPE_UNDEFINED);

    query_value inner = value_member(&memory, &v, SLICE_LIT("ab"));
    query_value list = value_member(&memory, &inner, SLICE_LIT("c"));
    assert_int_equal(value_length(&list), 3);
    assert_int_equal(value_length(&v), 0);
    found = value_element(&list, 1);
    assert_json(&found, "20");
    found = value_element(&list, 2);
    found = value_member(&memory, &found, SLICE_LIT("d"));
    assert_int_equal(found.type, TYPE_NULL);
    assert_int_equal(value_element(&list, 3).type, TYPE_UNDEFINED);
    assert_int_equal(value_element(&list, -1).type, TYPE_UNDEFINED);
    assert_int_equal(value_element(&v, 0).type, TYPE_UNDEFINED);
    assert_int_equal(value_member(&memory, &list, SLICE_LIT("0")).type, TYPE_UNDEFINED);
}

static void an_iterator_gives_the_same_values(void **state) {
    (void)state;
    query_value v = value("[null,true,1,5000000000,1.5,\"text\",[1],{\"a\":2},false]");
    bson_iter_t it;
    assert_true(bson_iter_init_from_data(&it, (const uint8_t *)v.bytes.p, v.bytes.n));
    for (int64_t i = 0; bson_iter_next(&it); i++) {
        query_value a = value_of_iter(&it), b = value_element(&v, i);
        assert_true(value_equal(&a, &b));
        assert_int_equal(a.is_integer, b.is_integer);
    }
}

static const char body_json[] = "{\"id\":\"x\",\"n\":9007199254740993}";

static query_item item_of(query_value *body) {
    *body = value(body_json);
    return (query_item){.body = body->bytes,
                        .number = 13,
                        .version = 7,
                        .ts = 1700000000,
                        .container_rid = {0x0c, 0x90, 0x7b, 0x00, 0x8d, 0x65, 0x64, 0x7a}};
}

static const char whole_json[] =
    "{\"id\":\"x\",\"n\":9007199254740993,\"_rid\":\"DJB7AI1lZHoNAAAAAAAAAA==\","
    "\"_self\":\"dbs/DJB7AA==/colls/DJB7AI1lZHo=/docs/DJB7AI1lZHoNAAAAAAAAAA==/\","
    "\"_etag\":\"\\\"00000007-0000-0d00-0000-6553f1000000\\\"\",\"_attachments\":\"attachments/\",\"_ts\":1700000000}";

static void a_whole_item_has_the_systems_properties(void **state) {
    (void)state;
    query_value body;
    query_item item = item_of(&body);
    query_value whole = value_of_item(&item);
    assert_json(&whole, whole_json);

    static const struct {
        const char *name, *json;
    } cases[] = {
        {"_rid", "\"DJB7AI1lZHoNAAAAAAAAAA==\""},
        {"_self", "\"dbs/DJB7AA==/colls/DJB7AI1lZHo=/docs/DJB7AI1lZHoNAAAAAAAAAA==/\""},
        {"_etag", "\"\\\"00000007-0000-0d00-0000-6553f1000000\\\"\""},
        {"_attachments", "\"attachments/\""},
        {"_ts", "1700000000"},
        {"n", "9007199254740993"},
        {"_lsn", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        query_value found = value_member(&memory, &whole, slice_str(cases[i].name));
        assert_json(&found, cases[i].json);
    }

    query_value plain = value_plain(&memory, &whole);
    assert_null(plain.item);
    assert_json(&plain, whole_json);
    assert_true(value_equal(&plain, &whole));
    assert_true(value_equal(&whole, &whole));
    assert_false(value_equal(&body, &whole));
    assert_int_equal(value_hash(&plain, 3), value_hash(&whole, 3));
    query_item other = item;
    other.number = 14;
    query_value another = value_of_item(&other);
    assert_false(value_equal(&another, &whole));
    assert_true(value_compare(&whole, &another) < 0);

    query_value array = value_array(&memory, &whole, 1);
    query_value inside = value_element(&array, 0);
    assert_json(&inside, whole_json);
    query_value object = value_object(&memory, &(slice){"c", 1}, &whole, 1);
    inside = value_member(&memory, &object, SLICE_LIT("c"));
    assert_json(&inside, whole_json);

    arena keep = arena_init();
    query_value kept = value_keep(&keep, &whole);
    memset((char *)(uintptr_t)item.body.p, 0xFF, item.body.n); /* the row's memory is gone */
    assert_json(&kept, whole_json);
    arena_free(&keep);
}

/* ---- order ---- */

/* In ascending order; values on one line, separated by bars, are equal. */
static const char *ordered[] = {
    "null",
    "false",
    "true",
    "-1e308",
    "-5|-5.0",
    "0|-0.0|0e5",
    "5e-324",
    "1|1.0|1e0",
    "1.5",
    "9007199254740992|9007199254740993", /* equal as doubles */
    "9223372036854775807|9223372036854775808",
    "1e308",
    "\"\"",
    "\"\\u0000\"",
    "\"A\"",
    "\"a\"",
    "\"a\\u0000\"",
    "\"aa\"",
    "\"b\"",
    "\"\\u00e9\"",
    "\"\\ufffd\"",
    "\"\\ud83d\\ude00\"",
    "[]",
    "[null]",
    "[1]",
    "[1,null]",
    "[1,2]",
    "[2]",
    "[\"a\"]",
    "[[]]",
    "[{}]",
    "{}",
    "{\"a\":null}",
    "{\"a\":1}",
    "{\"a\":1,\"b\":1}|{\"b\":1,\"a\":1}",
    "{\"a\":1,\"b\":{\"x\":1,\"y\":[2]}}|{\"b\":{\"y\":[2.0],\"x\":1},\"a\":1}",
    "{\"a\":2}",
    "{\"aa\":1}",
    "{\"b\":1}",
};

static size_t alternatives(const char *line, query_value *values) {
    size_t n = 0;
    for (const char *p = line; p; n++) {
        const char *bar = strchr(p, '|');
        char text[128];
        size_t length = bar ? (size_t)(bar - p) : strlen(p);
        memcpy(text, p, length);
        text[length] = 0;
        values[n] = value(text);
        p = bar ? bar + 1 : NULL;
    }
    return n;
}

static void values_have_one_total_order(void **state) {
    (void)state;
    enum { LINES = sizeof ordered / sizeof *ordered };
    query_value values[LINES][4];
    size_t n[LINES];
    for (size_t i = 0; i < LINES; i++) {
        n[i] = alternatives(ordered[i], values[i]);
    }
    for (size_t i = 0; i < LINES * 4; i++) {
        for (size_t j = 0; j < LINES * 4; j++) {
            if (i % 4 >= n[i / 4] || j % 4 >= n[j / 4]) {
                continue;
            }
            const query_value *a = &values[i / 4][i % 4], *b = &values[j / 4][j % 4];
            int wanted = (i / 4 > j / 4) - (i / 4 < j / 4), got = value_compare(a, b);
            if ((got > 0) - (got < 0) != wanted || value_equal(a, b) != (wanted == 0) ||
                (value_hash(a, 1) == value_hash(b, 1)) != (wanted == 0)) {
                fail_msg("%s against %s: order %d, expected %d", ordered[i / 4], ordered[j / 4], got, wanted);
            }
        }
    }
    query_value undefined = value_undefined(), null = value_null(), nan = value_number(NAN), least = value_number(-INFINITY);
    assert_true(value_compare(&undefined, &null) < 0);
    assert_true(value_equal(&undefined, &undefined));
    assert_true(value_compare(&nan, &least) < 0 && value_compare(&least, &nan) > 0);
    assert_true(value_equal(&nan, &nan));
    assert_false(value_equal(&nan, &least));
}

static query_value random_value(random_source *r, unsigned depth) {
    switch (random_below(r, depth ? 8 : 6)) {
    case 0:
        return value_null();
    case 1:
        return value_bool(random_below(r, 2));
    case 2:
        return value_integer((int64_t)random_below(r, 3));
    case 3:
        return value_number((double)random_below(r, 3));
    case 4:
    case 5:
        return value_string(slice_of("aab", random_below(r, 4)));
    default: {
        query_value parts[24];
        slice names[24];
        bool used[26] = {0};
        size_t n = 0, wanted = random_below(r, 40) == 0 ? 24 : random_below(r, 4);
        while (n < wanted) {
            uint64_t letter = random_below(r, wanted > 4 ? 26 : 4);
            if (!used[letter]) {
                used[letter] = true;
                names[n] = slice_of(&"abcdefghijklmnopqrstuvwxyz"[letter], 1);
                parts[n++] = random_value(r, depth - 1);
            }
        }
        return random_below(r, 2) ? value_array(&memory, parts, n) : value_object(&memory, names, parts, n);
    }
    }
}

/* Antisymmetric, transitive, and consistent with equality and hashes. */
static void the_order_holds_for_random_values(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 11);
    for (int i = 0; i < 20000; i++) {
        query_value a = random_value(&r, 3), b = random_value(&r, 3), c = random_value(&r, 3);
        int ab = value_compare(&a, &b), bc = value_compare(&b, &c), ac = value_compare(&a, &c);
        assert_int_equal((ab > 0) - (ab < 0), -((value_compare(&b, &a) > 0) - (value_compare(&b, &a) < 0)));
        assert_int_equal(value_equal(&a, &b), ab == 0);
        if (ab == 0) {
            assert_int_equal(value_hash(&a, 5), value_hash(&b, 5));
        }
        if (ab <= 0 && bc <= 0) {
            assert_true(ac <= 0);
        }
        arena_reset(&memory);
    }
}

/* ---- types that JSON lacks ---- */

/* In ascending order, as Extended JSON; values separated by bars are equal. */
static const char *typed_ordered[] = {
    "{}",
    "{\"$oid\":\"x\"}", /* a plain object */
    "{\"a\":1}",
    "{\"$minKey\":1}",
    "{\"$numberDecimal\":\"NaN\"}",
    "{\"$numberDecimal\":\"-1E+400\"}",
    "{\"$numberDecimal\":\"0\"}|{\"$numberDecimal\":\"-0.00\"}",
    "{\"$numberDecimal\":\"0.1\"}|{\"$numberDecimal\":\"0.10\"}",
    "{\"$numberDecimal\":\"0.1000000000000000055511151231257827\"}",
    "{\"$numberDecimal\":\"9007199254740992\"}",
    "{\"$numberDecimal\":\"9007199254740993\"}",
    "{\"$binary\":{\"base64\":\"/w==\",\"subType\":\"00\"}}",
    "{\"$binary\":{\"base64\":\"AAA=\",\"subType\":\"00\"}}",
    "{\"$binary\":{\"base64\":\"AAECAwQFBgcICQoLDA0ODw==\",\"subType\":\"04\"}}",
    "{\"$binary\":{\"base64\":\"AAECAwQFBgcICQoLDA0OEA==\",\"subType\":\"04\"}}",
    "{\"$oid\":\"000000000000000000000009\"}",
    "{\"$oid\":\"00000000000000000000000a\"}",
    "{\"$date\":{\"$numberLong\":\"-10000000000000\"}}",
    "{\"$date\":{\"$numberLong\":\"-9\"}}",
    "{\"$date\":\"1970-01-01T00:00:00Z\"}",
    "{\"$date\":\"9999-12-31T23:59:59.999Z\"}",
    "{\"$date\":{\"$numberLong\":\"253402300800000\"}}",
    "{\"$timestamp\":{\"t\":9,\"i\":10}}",
    "{\"$timestamp\":{\"t\":10,\"i\":9}}",
    "{\"$timestamp\":{\"t\":4294967295,\"i\":0}}",
    "{\"$regularExpression\":{\"pattern\":\"a\",\"options\":\"i\"}}",
    "{\"$regularExpression\":{\"pattern\":\"ab\",\"options\":\"\"}}",
    "{\"$code\":\"a\"}",
    "{\"$symbol\":\"a\"}",
    "{\"$maxKey\":1}",
};

/* The BSON value, as another API would write it. */
static query_value extended(const char *text, size_t n) {
    const char *json = arena_text(&memory, arena_printf(&memory, "{\"v\":%.*s}", (int)n, text));
    bson_t *b = bson_new_from_json((const uint8_t *)json, -1, NULL);
    if (!b) { /* {"$oid":"x"} is not a valid ObjectId */
        return value(arena_text(&memory, slice_of(text, n)));
    }
    slice document = arena_copy(&memory, slice_of(bson_get_data(b), b->len));
    query_value whole = value_document(TYPE_OBJECT, document);
    bson_destroy(b);
    return value_member(&memory, &whole, SLICE_LIT("v"));
}

/* Converted to Extended JSON and back, the value is the same. */
static void check_shown(const query_value *v) {
    query_value typed, plain = value_plain(&memory, v);
    if (v->extended) {
        assert_true(value_typed(&memory, &plain, &typed));
        assert_int_equal(typed.extended, v->extended);
        assert_true(slice_eq(typed.bytes, v->bytes));
        assert_true(value_equal(&plain, v) && value_equal(v, &plain));
        assert_true(value_typed(&memory, v, &typed) && value_may_be_typed(&plain));
    } else {
        assert_false(value_typed(&memory, v, &typed));
    }
}

static void non_json_types_are_ordered(void **state) {
    (void)state;
    enum { LINES = sizeof typed_ordered / sizeof *typed_ordered };
    query_value values[LINES][2];
    for (size_t i = 0; i < LINES; i++) {
        const char *text = typed_ordered[i], *bar = strchr(text, '|');
        values[i][0] = extended(text, bar ? (size_t)(bar - text) : strlen(text));
        values[i][1] = bar ? extended(bar + 1, strlen(bar + 1)) : values[i][0];
        check_shown(&values[i][0]);
        check_shown(&values[i][1]);
    }
    for (size_t i = 0; i < 2 * LINES; i++) {
        for (size_t j = 0; j < 2 * LINES; j++) {
            const query_value *a = &values[i / 2][i % 2], *b = &values[j / 2][j % 2];
            int wanted = (i / 2 > j / 2) - (i / 2 < j / 2), got = value_compare(a, b);
            if ((got > 0) - (got < 0) != wanted || value_same(a, b) != (wanted == 0) ||
                (wanted == 0 && value_hash(a, 1) != value_hash(b, 1))) {
                fail_msg("%s against %s: order %d, expected %d", typed_ordered[i / 2], typed_ordered[j / 2], got, wanted);
            }
        }
    }
}

/* The same at any depth: a total order, consistent with hashes. */
static void the_order_holds_for_random_typed_values(void **state) {
    (void)state;
    enum { TRIPLES = 20000 };
    random_source r;
    random_seed(&r, 12);
    for (int i = 0; i < TRIPLES; i++) {
        query_value v[3];
        bson_t *b[3];
        for (size_t j = 0; j < 3; j++) {
            b[j] = bson_new();
            typed_value(&r, b[j], "v", 3);
            query_value whole = value_document(TYPE_OBJECT, slice_of(bson_get_data(b[j]), b[j]->len));
            v[j] = value_member(&memory, &whole, SLICE_LIT("v"));
        }
        int ab = value_compare(&v[0], &v[1]), ba = value_compare(&v[1], &v[0]), bc = value_compare(&v[1], &v[2]);
        assert_int_equal((ab > 0) - (ab < 0), (ba < 0) - (ba > 0));
        assert_int_equal(value_same(&v[0], &v[1]), ab == 0);
        assert_true(ab || value_hash(&v[0], 5) == value_hash(&v[1], 5));
        assert_true(ab > 0 || bc > 0 || value_compare(&v[0], &v[2]) <= 0);
        assert_true(value_same(&v[2], &v[2]) && value_equal(&v[2], &v[2]));
        for (size_t j = 0; j < 3; j++) {
            bson_destroy(b[j]);
        }
        arena_reset(&memory);
    }
}

/* {"a":[{"$oid":…}]} in a query's text equals an item's object with an ObjectId there; for DISTINCT they are two values. */
static void shown_values_are_equal_at_any_depth(void **state) {
    (void)state;
    query_value in = extended("{\"a\":[{\"$oid\":\"000000000000000000000009\"}],\"b\":1}", 52);
    query_value text = value("{\"b\":1,\"a\":[{\"$oid\":\"000000000000000000000009\"}]}");
    query_value other = value("{\"b\":1,\"a\":[{\"$oid\":\"000000000000000000000008\"}]}");
    assert_int_equal(in.extended, 0);
    assert_true(value_equal(&in, &text) && value_equal(&text, &in));
    assert_false(value_same(&in, &text));
    assert_false(value_equal(&in, &other));
}

static void deep_and_broken_documents_end(void **state) {
    (void)state;
    enum { DEPTH = 100000 };
    buf deep = buf_init(BUF_NO_LIMIT);
    for (int i = 0; i < DEPTH; i++) { /* arrays within arrays */
        char head[7];
        doc_store_i32(head, (DEPTH - i) * 8 + 5);
        memcpy(head + 4, "\4\60\0", 3);
        buf_add(&deep, head, 7);
    }
    buf_add(&deep, "\5\0\0\0\0", 5);
    for (int i = 0; i < DEPTH; i++) {
        buf_add_byte(&deep, 0);
    }
    query_value a = value_document(TYPE_ARRAY, buf_view(&deep)), b = value_keep(&memory, &a);
    assert_int_equal(value_length(&a), 1);
    assert_true(value_equal(&a, &b));
    assert_int_equal(value_hash(&a, 0), value_hash(&b, 0));
    buf_free(&deep);

    query_value broken = value_document(TYPE_OBJECT, SLICE_LIT("\xFF\xFF\xFF\x7F\2a"));
    assert_int_equal(value_member(&memory, &broken, SLICE_LIT("a")).type, TYPE_UNDEFINED);
    assert_true(value_equal(&broken, &broken));
    assert_json(&broken, "{}");
}

/* ---- making values ---- */

static void arrays_keep_undefined_until_they_are_written(void **state) {
    (void)state;
    query_value parts[] = {value_integer(1), value_undefined(), value_string(SLICE_LIT("x")), value_number(NAN)};
    query_value array = value_array(&memory, parts, 4);
    assert_true(array.holes);
    assert_int_equal(value_element(&array, 1).type, TYPE_UNDEFINED);
    assert_json(&array, "[1,null,\"x\",null]");
    query_value outer = value_array(&memory, &array, 1), plain = value_plain(&memory, &array);
    assert_false(outer.holes);
    assert_json(&outer, "[[1,null,\"x\",null]]");
    assert_int_equal(value_element(&plain, 1).type, TYPE_NULL);

    slice names[] = {{"a", 1}, {"b", 1}, {"z\0", 2}, {"d", 1}};
    query_value object = value_object(&memory, names, parts, 4);
    assert_json(&object, "{\"a\":1,\"z\\u0000\":\"x\",\"d\":null}");
    query_value none = value_array(&memory, NULL, 0), empty = value_object(&memory, NULL, NULL, 0);
    assert_json(&none, "[]");
    assert_json(&empty, "{}");
}

static void long_arrays_have_decimal_keys(void **state) {
    (void)state;
    enum { MANY = 1234 };
    static query_value parts[MANY];
    for (int i = 0; i < MANY; i++) {
        parts[i] = value_integer((int64_t)i * 3000000);
    }
    query_value array = value_array(&memory, parts, MANY);
    bson_t document;
    assert_true(bson_init_static(&document, (const uint8_t *)array.bytes.p, array.bytes.n));
    assert_true(bson_validate(&document, BSON_VALIDATE_NONE, NULL));
    bson_iter_t it;
    assert_true(bson_iter_init_find(&it, &document, "1000"));
    assert_int_equal(bson_iter_as_int64(&it), 3000000000);
    assert_int_equal(value_element(&array, 1233).integer, 3699000000);
}

static void too_large_values_are_undefined(void **state) {
    (void)state;
    query_value text = value_string(slice_of(arena_zero(&memory, VALUE_BYTES_MAX / 2), VALUE_BYTES_MAX / 2));
    query_value parts[] = {text, text, text};
    slice names[] = {{"a", 1}, {"b", 1}, {"c", 1}};
    assert_int_equal(value_array(&memory, parts, 1).type, TYPE_ARRAY);
    assert_int_equal(value_array(&memory, parts, 3).type, TYPE_UNDEFINED);
    assert_int_equal(value_object(&memory, names, parts, 3).type, TYPE_UNDEFINED);
}

static void values_are_appended_to_documents(void **state) {
    (void)state;
    query_value body;
    query_item item = item_of(&body);
    query_value whole = value_of_item(&item), v = value("[true,5,5000000000,1.5,\"s\",null,{\"a\":[1]},\"\"]");
    query_value undefined = value_undefined(), holes = value_array(&memory, &undefined, 1);
    bson_t document = BSON_INITIALIZER;
    for (int64_t i = 0; i < 8; i++) {
        query_value each = value_element(&v, i);
        char key[2] = {(char)('a' + i), 0};
        value_append(&document, key, -1, &each, false);
    }
    value_append(&document, "undefined", -1, &undefined, false);
    value_append(&document, "n\0l", 3, &undefined, true);
    value_append(&document, "holes", -1, &holes, false);
    value_append(&document, "whole", 5, &whole, false);
    query_value made = value_document(TYPE_OBJECT, slice_of(bson_get_data(&document), document.len));
    char expected[1024];
    snprintf(expected, sizeof expected,
             "{\"a\":true,\"b\":5,\"c\":5000000000,\"d\":1.5,\"e\":\"s\",\"f\":null,\"g\":{\"a\":[1]},\"h\":\"\",\"n\\u0000l\":null,"
             "\"holes\":[null],\"whole\":%s}",
             whole_json);
    assert_json(&made, expected);
    bson_destroy(&document);
}

/* A value that another API wrote reads as its Extended JSON, and is returned unchanged. */
static void extended_types_are_objects(void **state) {
    (void)state;
    bson_oid_t oid;
    bson_oid_init_from_string(&oid, "0123456789abcdef01234567");
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_OID(&document, "oid", &oid);
    BSON_APPEND_DATE_TIME(&document, "date", 1715934105123);
    BSON_APPEND_MINKEY(&document, "min");
    query_value v = value_document(TYPE_OBJECT, slice_of(bson_get_data(&document), document.len));
    query_value id = value_member(&memory, &v, SLICE_LIT("oid")), date = value_member(&memory, &v, SLICE_LIT("date"));
    query_value least = value_member(&memory, &v, SLICE_LIT("min"));
    assert_int_equal(id.type, TYPE_OBJECT);
    assert_json(&id, "{\"$oid\":\"0123456789abcdef01234567\"}");
    assert_json(&date, "{\"$date\":\"2024-05-17T08:21:45.123Z\"}");
    assert_json(&least, "{\"$minKey\":1}");
    query_value text = value_member(&memory, &id, SLICE_LIT("$oid"));
    assert_json(&text, "\"0123456789abcdef01234567\"");
    query_value same = value("{\"$oid\":\"0123456789abcdef01234567\"}");
    assert_true(value_equal(&id, &same));
    assert_false(value_same(&id, &same));
    assert_true(value_compare(&id, &same) > 0);
    assert_false(value_equal(&id, &date));

    query_value array = value_array(&memory, (query_value[]){id, date}, 2);
    assert_int_equal(value_element(&array, 0).extended, BSON_TYPE_OID);
    bson_t copy = BSON_INITIALIZER;
    value_append(&copy, "oid", -1, &id, false);
    value_append(&copy, "date", -1, &date, false);
    value_append(&copy, "min", -1, &least, false);
    assert_true(bson_equal(&copy, &document));
    bson_destroy(&copy);
    bson_destroy(&document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(members_and_elements_are_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_iterator_gives_the_same_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_whole_item_has_the_systems_properties, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_have_one_total_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_order_holds_for_random_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(non_json_types_are_ordered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_order_holds_for_random_typed_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shown_values_are_equal_at_any_depth, set_up, tear_down),
        cmocka_unit_test_setup_teardown(deep_and_broken_documents_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(arrays_keep_undefined_until_they_are_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_arrays_have_decimal_keys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_large_values_are_undefined, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_are_appended_to_documents, set_up, tear_down),
        cmocka_unit_test_setup_teardown(extended_types_are_objects, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("query_value", tests, NULL, NULL);
}
