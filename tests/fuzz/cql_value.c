/* Values (cql/value.h). The input is a type as text, a line feed, and the bytes of two values with a length each. What cql_value_check
 * accepts comes back from text, JSON and BSON, and sorts as bytes as it compares. Bytes that it refuses are safe to compare and to write
 * too. */
#include <assert.h>

#include "cql/function.h"
#include "cql/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_kind(const cql_type *t, cql_kind kind) {
    for (uint32_t i = 0; i < t->n; i++) {
        if (has_kind(t->inner[i], kind)) {
            return true;
        }
    }
    return t->kind == kind;
}

/* The integers of a duration may be longer than they need be on the wire; Cassandra compares them as bytes. */
static bool is_same(const cql_type *type, cql_value x, cql_value y) {
    return has_kind(type, CQL_DURATION) || cql_compare(type, x, y) == 0;
}

static int sign(int n) {
    return (n > 0) - (n < 0);
}

static void check_order(const cql_type *type, cql_value x, cql_value y) {
    buf a = buf_init(1 << 20), b = buf_init(1 << 20);
    int order = cql_compare(type, x, y);
    assert(sign(order) == -sign(cql_compare(type, y, x)) && cql_compare(type, x, x) == 0);
    cql_sortable(&a, type, x);
    cql_sortable(&b, type, y);
    if (buf_ok(&a) && buf_ok(&b)) {
        assert(sign(slice_cmp(buf_view(&a), buf_view(&b))) == sign(order));
    }
    buf_free(&a);
    buf_free(&b);
}

static void check_bson(op *o, const cql_type *type, cql_value v) {
    buf bson = buf_init(1 << 20);
    cql_value back;
    doc_walk w;
    doc_element e;
    buf_add(&bson, "\0\0\0\0", 4);
    cql_bson_add(&bson, SLICE_LIT("v"), type, v);
    buf_add_byte(&bson, 0);
    if (buf_ok(&bson)) {
        doc_store_i32(bson.p, (int32_t)bson.n);
        assert(doc_is_well_formed(buf_view(&bson), 64));
        bool found = doc_walk_init(&w, buf_view(&bson)) && doc_walk_next(&w, &e);
        assert(found);
        if (cql_bson_read(o, type, &e, &back) == OK) {
            assert(cql_value_check(o, type, back) == OK && is_same(type, back, v));
        }
    }
    buf_free(&bson);
}

static void check_text(op *o, const cql_type *type, cql_value v) {
    buf text = buf_init(1 << 20);
    cql_value back;
    cql_json_write(&text, type, v);
    if (buf_ok(&text) && cql_json_read(o, type, buf_view(&text), &back) == OK) {
        assert(cql_value_check(o, type, back) == OK);
    }
    buf_clear(&text);
    cql_value_write(&text, type, v);
    if (buf_ok(&text) && type->n == 0 && type->kind != CQL_CUSTOM && v.bytes.n) {
        buf_clear(&text);
        cql_value_write_bare(&text, type, v);
        if (buf_ok(&text) && cql_value_of_text(o, type, buf_view(&text), &back) == OK) {
            assert(is_same(type, back, v));
        }
    }
    buf_free(&text);
}

static void check_functions(op *o, const cql_type *type, cql_value x, cql_value y) {
    static const cql_kind targets[] = {CQL_TINYINT, CQL_INT,     CQL_BIGINT, CQL_VARINT, CQL_FLOAT,
                                       CQL_DOUBLE,  CQL_DECIMAL, CQL_TEXT,   CQL_DATE,   CQL_TIMESTAMP};
    const cql_type *result;
    cql_value v;
    for (cql_term_kind kind = CQL_TERM_ADD; kind <= CQL_TERM_MODULO; kind++) {
        if (cql_arithmetic_type(o, kind, type, type, &result) == OK && cql_arithmetic(o, kind, type, x, type, y, result, &v) == OK) {
            assert(cql_value_check(o, result, v) == OK);
        }
    }
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        if (cql_cast(o, type, cql_type_of(targets[i]), x, &v) == OK) {
            assert(cql_value_check(o, cql_type_of(targets[i]), v) == OK);
        }
    }
}

static void check(op *o, const cql_type *type, slice rest) {
    cql_value x = cql_value_null(), y = cql_value_null();
    cql_value_decode(&rest, &x);
    cql_value_decode(&rest, &y);
    check_order(type, x, y);
    bool sound = cql_value_check(o, type, x) == OK && cql_value_check(o, type, y) == OK;
    if (sound) {
        assert(cql_value_normalise(o, type, x, &x) == OK && cql_value_normalise(o, type, y, &y) == OK);
        check_order(type, x, y);
        if (!has_kind(type, CQL_EMPTY)) {
            check_bson(o, type, x);
        }
        check_text(o, type, x);
        check_functions(o, type, x, y);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *line = memchr(data, '\n', size);
    arena memory = arena_init();
    const cql_type *raw, *type;
    cql_type_source none = {0};
    op o;
    op_init(&o, &memory, 0);
    if (line && cql_type_read(&o, slice_of(data, (size_t)(line - (const char *)data)), &raw) == OK &&
        cql_type_resolve(&o, &none, raw, &type) == OK) {
        check(&o, type, slice_of(line + 1, size - (size_t)(line + 1 - (const char *)data)));
    }
    arena_free(&memory);
    return 0;
}
