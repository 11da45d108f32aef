/* Laws of CQL values, on random types and values from a seed: the order of keys is Cassandra's order, and every form gives the value back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "cql/value.h"
#include "doc/order.h"

enum { ROUNDS = 20000 };

typedef struct world {
    random_source random;
    arena memory;
    op op;
} world;

static void open_world(world *w) {
    const char *seed = getenv("TESELA_SEED");
    *w = (world){.memory = arena_init()};
    random_seed(&w->random, seed ? strtoull(seed, NULL, 10) : 20240229);
    op_init(&w->op, &w->memory, 0);
}

/* ---- random types and values ---- */

static const cql_kind natives[] = {CQL_ASCII,    CQL_BIGINT, CQL_BLOB,      CQL_BOOLEAN, CQL_DECIMAL,  CQL_DOUBLE,
                                   CQL_FLOAT,    CQL_INT,    CQL_TIMESTAMP, CQL_UUID,    CQL_TEXT,     CQL_VARINT,
                                   CQL_TIMEUUID, CQL_INET,   CQL_DATE,      CQL_TIME,    CQL_SMALLINT, CQL_TINYINT};
enum { NATIVES = sizeof natives / sizeof *natives };

static const cql_type *random_type(world *w, unsigned depth) {
    uint64_t choice = random_below(&w->random, depth ? NATIVES + 8 : NATIVES);
    arena *a = &w->memory;
    if (choice < NATIVES) {
        return cql_type_of(natives[choice]);
    }
    if (choice < NATIVES + 2) {
        return cql_type_list(a, random_type(w, depth - 1), true);
    }
    if (choice < NATIVES + 4) {
        return cql_type_set(a, random_type(w, depth - 1), true);
    }
    if (choice < NATIVES + 6) {
        const cql_type *key = random_type(w, depth - 1);
        return cql_type_map(a, key, random_type(w, depth - 1), true);
    }
    const cql_type **elements = arena_array(a, const cql_type *, 2);
    elements[0] = random_type(w, depth - 1);
    elements[1] = random_type(w, depth - 1);
    return cql_type_tuple(a, elements, 2);
}

static slice random_slice(world *w, size_t n, const char *alphabet) {
    char *p = arena_alloc(&w->memory, n + 1);
    random_bytes(&w->random, p, n);
    for (size_t i = 0; alphabet && i < n; i++) {
        p[i] = alphabet[random_below(&w->random, strlen(alphabet))];
    }
    return slice_of(p, n);
}

/* Few different values, so that equal ones and neighbours occur. */
static cql_value random_text(world *w, const cql_type *type) {
    static const char *const numbers[] = {
        "0", "1", "1.0", "1.00", "-1", "1E+2", "100", "0.001", "-0.5", "-5E-1", "123456789012345678901234567890123456789", "1E-300"};
    static const char *const integers[] = {
        "0", "1", "-1", "255", "256", "-255", "-256", "9223372036854775807", "9223372036854775808", "-123456789012345678901234567890"};
    static const char *const doubles[] = {"0", "-0.0", "1.5", "-1.5", "NaN", "Infinity", "-Infinity", "1E-300", "0.1", "1E20"};
    const char *const *texts = type->kind == CQL_DECIMAL ? numbers : type->kind == CQL_VARINT ? integers : doubles;
    uint64_t n = type->kind == CQL_DECIMAL ? 12 : 10;
    cql_value v;
    assert_int_equal(cql_value_of_text(&w->op, type, slice_str(texts[random_below(&w->random, n)]), &v), OK);
    return v;
}

static cql_value random_native(world *w, const cql_type *type) {
    int fixed = cql_type_fixed_bytes(type);
    switch (type->kind) {
    case CQL_DECIMAL:
    case CQL_VARINT:
    case CQL_DOUBLE:
    case CQL_FLOAT:
        return random_text(w, type);
    case CQL_TEXT:
    case CQL_ASCII:
        return cql_value_of(random_slice(w, random_below(&w->random, 4), "ab\x7F\x01"));
    case CQL_BLOB:
        return cql_value_of(random_slice(w, random_below(&w->random, 4), "\x01\x80\xFF"));
    case CQL_INET:
        return cql_value_of(random_slice(w, random_below(&w->random, 2) ? 4 : 16, NULL));
    case CQL_TIME:
        return cql_value_bigint(&w->memory, (int64_t)random_below(&w->random, 86400000000000));
    case CQL_BOOLEAN:
        return cql_value_bool(random_below(&w->random, 2));
    default:
        break;
    }
    slice bytes = random_slice(w, (size_t)fixed, "\x01\x02\x7F\x80\xFF");
    char *p = arena_alloc(&w->memory, bytes.n + 1);
    memcpy(p, bytes.p, bytes.n);
    if (type->kind == CQL_TIMEUUID) {
        p[6] = (char)(0x10 | (p[6] & 0x0F));
    } else if (type->kind == CQL_UUID) {
        p[6] = (char)(random_below(&w->random, 2) ? 0x10 | (p[6] & 0x0F) : 0x40 | (p[6] & 0x0F));
    }
    return cql_value_of(slice_of(p, bytes.n));
}

static cql_value random_value(world *w, const cql_type *type) {
    if (type->n == 0) {
        return random_native(w, type);
    }
    cql_value values[6], v, sorted;
    uint32_t n = type->kind == CQL_TUPLE ? 2 : (uint32_t)random_below(&w->random, 3) * (type->kind == CQL_MAP ? 2 : 1);
    for (uint32_t i = 0; i < n; i++) {
        const cql_type *inner = type->inner[type->n == 1 ? 0 : i % 2];
        bool null = type->kind == CQL_TUPLE && random_below(&w->random, 5) == 0;
        values[i] = null ? cql_value_null() : random_value(w, inner);
    }
    assert_true(cql_value_collect(&w->memory, type, values, n, &v));
    assert_int_equal(cql_value_normalise(&w->op, type, v, &sorted), OK);
    assert_int_equal(cql_value_check(&w->op, type, sorted), OK);
    return sorted;
}

static doc_element element_of(world *w, const cql_type *type, cql_value v) {
    buf bson = buf_init(BUF_NO_LIMIT);
    doc_walk walk;
    doc_element e = {0};
    buf_add(&bson, "\0\0\0\0", 4);
    cql_bson_add(&bson, SLICE_LIT("v"), type, v);
    buf_add_byte(&bson, 0);
    doc_store_i32(bson.p, (int32_t)bson.n);
    slice document = arena_copy(&w->memory, buf_view(&bson));
    buf_free(&bson);
    assert_true(doc_is_well_formed(document, 100));
    assert_true(doc_walk_init(&walk, document) && doc_walk_next(&walk, &e));
    return e;
}

/* A law names the type and value that break it. */
static void must(world *w, bool holds, const cql_type *type, cql_value v) {
    if (!holds) {
        buf text = buf_init(BUF_NO_LIMIT);
        cql_type_write(&text, type);
        buf_add_byte(&text, ' ');
        cql_value_write(&text, type, v);
        fail_msg("%.*s: %.*s", (int)text.n, text.p, (int)w->op.detail_n, w->op.detail);
    }
}

static int sign(int n) {
    return (n > 0) - (n < 0);
}

/* ---- laws ---- */

/* Row keys: the encoding of doc/order.h for types that sort, the key text for the others; both ways round for descending columns. */
static void keys_sort_as_cassandra_sorts(void **state) {
    world w;
    (void)state;
    open_world(&w);
    for (int i = 0; i < ROUNDS; i++) {
        const cql_type *type = random_type(&w, 2);
        cql_value x = random_value(&w, type), y = random_value(&w, type);
        int order = sign(cql_compare(type, x, y));
        slice a, b;
        assert_int_equal(cql_key_text(&w.op, type, x, true, &a), OK);
        assert_int_equal(cql_key_text(&w.op, type, y, true, &b), OK);
        assert_int_equal(sign(slice_cmp(a, b)), order);
        assert_int_equal(sign(cql_compare(type, y, x)), -order);
        if (cql_type_sorts(type)) {
            doc_element p = element_of(&w, type, x), q = element_of(&w, type, y);
            assert_int_equal(sign(doc_order_compare(&p, &q)), order);
        }
        if (cql_type_identifies(type)) {
            doc_element p = element_of(&w, type, x), q = element_of(&w, type, y);
            assert_int_equal(doc_order_compare(&p, &q) == 0, slice_eq(x.bytes, y.bytes));
        }
        arena_reset(&w.memory);
    }
    arena_free(&w.memory);
}

static void bson_gives_values_back(void **state) {
    world w;
    (void)state;
    open_world(&w);
    for (int i = 0; i < ROUNDS; i++) {
        const cql_type *type = random_type(&w, 2);
        cql_value v = random_value(&w, type), back;
        doc_element e = element_of(&w, type, v);
        must(&w, cql_bson_read(&w.op, type, &e, &back) == OK && slice_eq(v.bytes, back.bytes), type, v);
        arena_reset(&w.memory);
    }
    arena_free(&w.memory);
}

static void json_gives_values_back(void **state) {
    world w;
    (void)state;
    open_world(&w);
    for (int i = 0; i < ROUNDS; i++) {
        const cql_type *type = random_type(&w, 2);
        cql_value v = random_value(&w, type), back;
        buf json = buf_init(BUF_NO_LIMIT);
        cql_json_write(&json, type, v);
        bool lossy = memmem(json.p, json.n, "null", 4) != NULL; /* NaN and the infinities */
        if (!lossy) {
            must(&w, cql_json_read(&w.op, type, buf_view(&json), &back) == OK && slice_eq(v.bytes, back.bytes), type, v);
        }
        buf_free(&json);
        arena_reset(&w.memory);
    }
    arena_free(&w.memory);
}

/* Bytes that were never checked are compared and written without harm, and the comparison stays an order. */
static void unchecked_bytes_are_safe(void **state) {
    world w;
    (void)state;
    open_world(&w);
    for (int i = 0; i < ROUNDS; i++) {
        const cql_type *type = random_type(&w, 2);
        cql_value x = cql_value_of(random_slice(&w, random_below(&w.random, 12), "\0\1\4\xFF")), y = random_value(&w, type);
        buf out = buf_init(BUF_NO_LIMIT);
        assert_int_equal(sign(cql_compare(type, x, y)), -sign(cql_compare(type, y, x)));
        cql_value_write(&out, type, cql_value_check(&w.op, type, x) == OK ? x : y);
        cql_sortable(&out, type, x);
        buf_free(&out);
        arena_reset(&w.memory);
    }
    arena_free(&w.memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_sort_as_cassandra_sorts),
        cmocka_unit_test(bson_gives_values_back),
        cmocka_unit_test(json_gives_values_back),
        cmocka_unit_test(unchecked_bytes_are_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
