/* value_bson.c — values as BSON; value.h has the table. */
#include <math.h>
#include <stdio.h>

#include "cql/big.h"
#include "cql/value_int.h"

/* ---- writing ---- */

static void add_head(buf *out, bson_type_t type, slice key) {
    buf_add_byte(out, (char)type);
    buf_add_slice(out, key);
    buf_add_byte(out, 0);
}

static void add_i32(buf *out, int32_t number) {
    char bytes[4];
    doc_store_i32(bytes, number);
    buf_add(out, bytes, sizeof bytes);
}

static void add_i64(buf *out, int64_t number) {
    char bytes[8];
    doc_store_i64(bytes, number);
    buf_add(out, bytes, sizeof bytes);
}

static void add_text(buf *out, slice key, slice text) {
    add_head(out, BSON_TYPE_UTF8, key);
    add_i32(out, (int32_t)text.n + 1);
    buf_add_slice(out, text);
    buf_add_byte(out, 0);
}

/* The bare text of a value, as a string. */
static void add_written(buf *out, slice key, const cql_type *type, cql_value v) {
    buf text = buf_init_counted(out->max, out->budget);
    cql_value_write_bare(&text, type, v);
    out->overflow |= text.overflow;
    add_text(out, key, buf_view(&text));
    buf_free(&text);
}

static void add_date(buf *out, slice key, const cql_type *type, cql_value v) {
    int64_t number = 0;
    cql_as_bigint(v, &number);
    add_head(out, BSON_TYPE_DATE_TIME, key);
    add_i64(out, type->kind == CQL_TIMESTAMP ? number : ((int64_t)(uint32_t)number - INT64_C(0x80000000)) * CQL__DAY_MS);
}

static void add_integer(buf *out, slice key, const cql_type *type, cql_value v) {
    int64_t number = 0;
    bool wide = type->kind == CQL_BIGINT || type->kind == CQL_COUNTER;
    cql_as_bigint(v, &number);
    add_head(out, wide ? BSON_TYPE_INT64 : BSON_TYPE_INT32, key);
    if (wide) {
        add_i64(out, number);
    } else {
        add_i32(out, (int32_t)number);
    }
}

static void add_double(buf *out, slice key, const cql_type *type, cql_value v) {
    double number = 0;
    int64_t bits;
    cql_as_double(v, &number);
    if (type->kind == CQL_FLOAT) {
        number = cql__double_of_float((float)number);
    }
    memcpy(&bits, &number, sizeof bits);
    add_head(out, BSON_TYPE_DOUBLE, key);
    add_i64(out, bits);
}

static void add_varint(buf *out, slice key, const cql_type *type, cql_value v) {
    mpz_t number;
    mpz_init(number);
    cql__mpz_of_bytes(number, v.bytes);
    if (mpz_fits_slong_p(number)) {
        add_head(out, BSON_TYPE_INT64, key);
        add_i64(out, mpz_get_si(number));
    } else {
        add_written(out, key, type, v);
    }
    mpz_clear(number);
}

/* Decimal128 keeps the scale if the number has at most 34 digits and its exponent is in range. */
static void add_decimal(buf *out, slice key, const cql_type *type, cql_value v) {
    cql__decimal d = {.scale = 0};
    char text[80] = "";
    bson_decimal128_t decimal;
    mpz_init(d.unscaled);
    bool fits = cql__decimal_of_value(&d, v) && mpz_sizeinbase(d.unscaled, 10) <= 34 && d.scale <= 6176 && d.scale >= -6111;
    if (fits) {
        gmp_snprintf(text, sizeof text, "%ZdE%d", d.unscaled, (int)-d.scale);
        fits = bson_decimal128_from_string(text, &decimal);
    }
    mpz_clear(d.unscaled);
    if (fits) {
        add_head(out, BSON_TYPE_DECIMAL128, key);
        add_i64(out, (int64_t)decimal.low);
        add_i64(out, (int64_t)decimal.high);
    } else {
        add_written(out, key, type, v);
    }
}

static void add_binary(buf *out, slice key, slice bytes) {
    add_head(out, BSON_TYPE_BINARY, key);
    add_i32(out, (int32_t)bytes.n);
    buf_add_byte(out, BSON_SUBTYPE_BINARY);
    buf_add_slice(out, bytes);
}

static size_t open_document(buf *out, bson_type_t type, slice key) {
    add_head(out, type, key);
    add_i32(out, 0);
    return out->n - 4;
}

static void close_document(buf *out, size_t start) {
    buf_add_byte(out, 0);
    if (buf_ok(out)) {
        doc_store_i32(out->p + start, (int32_t)(out->n - start));
    }
}

static void add_array(buf *out, slice key, const cql_type *type, cql_value v) {
    cql_elements e;
    cql_value element;
    const cql_type *inner;
    size_t start = open_document(out, BSON_TYPE_ARRAY, key);
    uint32_t i = 0;
    for (bool more = cql_elements_init(&e, type, v); more && buf_ok(out) && cql_elements_next(&e, &element, &inner); i++) {
        char index[12];
        cql_bson_add(out, slice_of(index, (size_t)snprintf(index, sizeof index, "%u", i)), inner, element);
    }
    close_document(out, start);
}

/* A BSON key ends at a zero byte: one inside is written as doc/json.h does, C0 80. */
static void add_key_text(buf *key, const cql_type *type, cql_value v) {
    buf text = buf_init_counted(key->max, key->budget);
    cql_value_write_bare(&text, type, v);
    for (size_t i = 0; i < text.n; i++) {
        buf_add_slice(key, text.p[i] ? slice_of(text.p + i, 1) : SLICE_LIT("\xC0\x80"));
    }
    key->overflow |= text.overflow;
    buf_free(&text);
}

static void add_map(buf *out, slice key, const cql_type *type, cql_value v) {
    cql_elements e;
    cql_value name, element;
    const cql_type *inner;
    buf text = buf_init_counted(out->max, out->budget);
    size_t start = open_document(out, BSON_TYPE_DOCUMENT, key);
    bool more = cql_elements_init(&e, type, v);
    while (more && buf_ok(out) && cql_elements_next(&e, &name, &inner)) {
        buf_clear(&text);
        add_key_text(&text, inner, name);
        out->overflow |= text.overflow;
        if (!cql_elements_next(&e, &element, &inner)) {
            break;
        }
        cql_bson_add(out, buf_view(&text), inner, element);
    }
    buf_free(&text);
    close_document(out, start);
}

static void add_udt(buf *out, slice key, const cql_type *type, cql_value v) {
    cql_elements e;
    cql_value element;
    const cql_type *inner;
    size_t start = open_document(out, BSON_TYPE_DOCUMENT, key);
    bool more = cql_elements_init(&e, type, v) && type->fields;
    for (uint32_t i = 0; more && buf_ok(out) && cql_elements_next(&e, &element, &inner); i++) {
        cql_bson_add(out, type->fields[i], inner, element);
    }
    close_document(out, start);
}

static void add_native(buf *out, slice key, const cql_type *type, cql_value v) {
    switch (type->kind) {
    case CQL_ASCII:
    case CQL_TEXT:
        add_text(out, key, v.bytes);
        break;
    case CQL_TINYINT:
    case CQL_SMALLINT:
    case CQL_INT:
    case CQL_BIGINT:
    case CQL_COUNTER:
        add_integer(out, key, type, v);
        break;
    case CQL_BOOLEAN:
        add_head(out, BSON_TYPE_BOOL, key);
        buf_add_byte(out, v.bytes.p[0] != 0);
        break;
    case CQL_TIMESTAMP:
    case CQL_DATE:
        add_date(out, key, type, v);
        break;
    case CQL_FLOAT:
    case CQL_DOUBLE:
        add_double(out, key, type, v);
        break;
    case CQL_VARINT:
        add_varint(out, key, type, v);
        break;
    case CQL_DECIMAL:
        add_decimal(out, key, type, v);
        break;
    case CQL_BLOB:
    case CQL_CUSTOM:
    case CQL_EMPTY:
        add_binary(out, key, v.bytes);
        break;
    default:
        add_written(out, key, type, v);
    }
}

static bool has_empty(const cql_type *type) {
    switch (type->kind) {
    case CQL_ASCII:
    case CQL_TEXT:
    case CQL_BLOB:
    case CQL_CUSTOM:
    case CQL_TUPLE:
    case CQL_UDT:
        return false;
    default:
        return true;
    }
}

void cql_bson_add(buf *out, slice key, const cql_type *type, cql_value v) {
    if (cql_value_is_null(v)) {
        add_head(out, BSON_TYPE_NULL, key);
    } else if (v.bytes.n == 0 && has_empty(type)) {
        add_head(out, BSON_TYPE_UNDEFINED, key);
    } else if (type->kind == CQL_MAP) {
        add_map(out, key, type, v);
    } else if (type->kind == CQL_UDT) {
        add_udt(out, key, type, v);
    } else if (type->n || type->kind == CQL_TUPLE) {
        add_array(out, key, type, v);
    } else {
        add_native(out, key, type, v);
    }
}

/* ---- reading ---- */

static err fail(op *o, const cql_type *type, const doc_element *e) {
    slice text = cql_type_text(o->arena, type);
    return op_fail(o, E_BAD_REQUEST, "The item's value of '%.*s' is not of type %.*s", slice_shown(e->key), e->key.p, slice_shown(text),
                   text.p);
}

/* A number as text that the type's own reader takes: exact for integers and decimals. */
static bool number_text(const doc_element *e, char text[BSON_DECIMAL128_STRING + 8]) {
    bson_decimal128_t decimal;
    double number;
    switch (e->type) {
    case BSON_TYPE_INT32:
        snprintf(text, 32, "%d", doc_load_i32(e->value.p));
        return true;
    case BSON_TYPE_INT64:
        snprintf(text, 32, "%lld", (long long)doc_load_i64(e->value.p));
        return true;
    case BSON_TYPE_DOUBLE:
        number = doc_load_double(e->value.p);
        if (fabs(number) < 9e15 && number == floor(number)) {
            snprintf(text, 32, "%.0f", number);
        } else {
            snprintf(text, 40, "%.17g", number);
        }
        return isfinite(number);
    case BSON_TYPE_DECIMAL128:
        decimal.low = (uint64_t)doc_load_i64(e->value.p);
        decimal.high = (uint64_t)doc_load_i64(e->value.p + 8);
        bson_decimal128_to_string(&decimal, text);
        return true;
    default:
        return false;
    }
}

/* The usual case, which needs no text: false if the number is not stored as an integer, or does not fit the type. */
static bool read_integer(arena *a, const cql_type *type, const doc_element *e, cql_value *value_out) {
    int64_t n;
    if (e->type != BSON_TYPE_INT32 && e->type != BSON_TYPE_INT64) {
        return false;
    }
    n = e->type == BSON_TYPE_INT32 ? doc_load_i32(e->value.p) : doc_load_i64(e->value.p);
    switch (type->kind) {
    case CQL_TINYINT:
        *value_out = cql_value_tinyint(a, (int8_t)n);
        return n == (int8_t)n;
    case CQL_SMALLINT:
        *value_out = cql_value_smallint(a, (int16_t)n);
        return n == (int16_t)n;
    case CQL_INT:
        *value_out = cql_value_int(a, (int32_t)n);
        return n == (int32_t)n;
    case CQL_BIGINT:
    case CQL_COUNTER:
        *value_out = cql_value_bigint(a, n);
        return true;
    default:
        return false;
    }
}

static err read_number(op *o, const cql_type *type, const doc_element *e, cql_value *value_out) {
    char text[BSON_DECIMAL128_STRING + 8];
    if (read_integer(o->arena, type, e, value_out)) {
        return OK;
    }
    if (e->type == BSON_TYPE_UTF8 && (type->kind == CQL_VARINT || type->kind == CQL_DECIMAL)) {
        return cql_value_of_text(o, type, doc_element_text(e), value_out);
    }
    if (e->type == BSON_TYPE_DOUBLE && type->kind == CQL_DOUBLE) {
        *value_out = cql_value_double(o->arena, doc_load_double(e->value.p));
        return OK;
    }
    if (e->type == BSON_TYPE_DOUBLE && type->kind == CQL_FLOAT) {
        *value_out = cql_value_float(o->arena, (float)doc_load_double(e->value.p));
        return OK;
    }
    return number_text(e, text) ? cql_value_of_text(o, type, slice_str(text), value_out) : fail(o, type, e);
}

static err read_date(op *o, const cql_type *type, const doc_element *e, cql_value *value_out) {
    if (e->type == BSON_TYPE_UTF8) {
        return cql_value_of_text(o, type, doc_element_text(e), value_out);
    }
    if (e->type != BSON_TYPE_DATE_TIME) {
        return fail(o, type, e);
    }
    int64_t ms = doc_load_i64(e->value.p), days = ms / CQL__DAY_MS - (ms % CQL__DAY_MS < 0);
    if (type->kind == CQL_TIMESTAMP) {
        *value_out = cql_value_bigint(o->arena, ms);
        return OK;
    }
    *value_out = cql_value_int(o->arena, (int32_t)(uint32_t)(days + INT64_C(0x80000000)));
    return days >= INT32_MIN && days <= INT32_MAX ? OK : fail(o, type, e);
}

typedef struct collected {
    cql_value *values;
    uint32_t n;
} collected;

static err collect_room(op *o, slice document, uint32_t per_element, collected *c) {
    doc_walk w;
    doc_element e;
    uint32_t n = 0;
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        n += per_element;
    }
    if (!arena_fits(o->arena, (n + 1) * sizeof(cql_value))) {
        return budget_error(o->budget);
    }
    c->values = arena_array(o->arena, cql_value, n + 1);
    c->n = 0;
    return OK;
}

static err collected_value(op *o, const cql_type *type, const collected *c, cql_value *value_out) {
    if (!cql_value_collect(o->arena, type, c->values, c->n, value_out)) {
        return budget_error(o->budget);
    }
    return cql_value_normalise(o, type, *value_out, value_out);
}

static err read_array(op *o, const cql_type *type, const doc_element *e, cql_value *value_out) {
    bool tuple = type->kind == CQL_TUPLE;
    collected c;
    doc_walk w;
    doc_element inner;
    if (e->type != BSON_TYPE_ARRAY) {
        return fail(o, type, e);
    }
    TRY(collect_room(o, e->value, 1, &c));
    for (doc_walk_init(&w, e->value); doc_walk_next(&w, &inner);) {
        if ((tuple && c.n == type->n) || (!tuple && inner.type == BSON_TYPE_NULL)) {
            return fail(o, type, e);
        }
        TRY(cql_bson_read(o, type->inner[tuple ? c.n : 0], &inner, &c.values[c.n]));
        c.n++;
    }
    if (type->kind == CQL_VECTOR && c.n != type->dimension) {
        return fail(o, type, e);
    }
    return collected_value(o, type, &c, value_out);
}

static slice key_text(arena *a, slice key) {
    if (!memmem(key.p, key.n, "\xC0\x80", 2)) {
        return arena_copy(a, key);
    }
    char *text = arena_alloc_aligned(a, key.n, 1);
    size_t n = 0;
    for (size_t i = 0; i < key.n; i++) {
        bool zero = i + 1 < key.n && (unsigned char)key.p[i] == 0xC0 && (unsigned char)key.p[i + 1] == 0x80;
        text[n++] = zero ? 0 : key.p[i];
        i += zero;
    }
    return slice_of(text, n);
}

static err read_map(op *o, const cql_type *type, const doc_element *e, cql_value *value_out) {
    const cql_type *key_type = type->inner[0];
    collected c;
    doc_walk w;
    doc_element inner;
    if (e->type != BSON_TYPE_DOCUMENT) {
        return fail(o, type, e);
    }
    TRY(collect_room(o, e->value, 2, &c));
    for (doc_walk_init(&w, e->value); doc_walk_next(&w, &inner); c.n += 2) {
        slice key = key_text(o->arena, inner.key);
        if (inner.type == BSON_TYPE_NULL) {
            return fail(o, type, e);
        }
        if (key.n == 0 && key_type->kind != CQL_TEXT && key_type->kind != CQL_ASCII) {
            c.values[c.n] = cql_value_of(SLICE_LIT(""));
        } else {
            TRY(cql_value_of_text(o, key_type->n ? cql_type_of(CQL_BLOB) : key_type, key, &c.values[c.n]));
            TRY(cql_value_check(o, key_type, c.values[c.n]));
        }
        TRY(cql_bson_read(o, type->inner[1], &inner, &c.values[c.n + 1]));
    }
    return collected_value(o, type, &c, value_out);
}

static err read_udt(op *o, const cql_type *type, const doc_element *e, cql_value *value_out) {
    cql_value *values = arena_array(o->arena, cql_value, type->n + 1);
    uint32_t present = 0;
    if (e->type != BSON_TYPE_DOCUMENT || !type->fields) {
        return fail(o, type, e);
    }
    for (uint32_t i = 0; i < type->n; i++) {
        doc_walk w;
        doc_element inner;
        bool found = false;
        for (doc_walk_init(&w, e->value); !found && doc_walk_next(&w, &inner);) {
            found = slice_eq(inner.key, type->fields[i]);
        }
        values[i] = cql_value_null();
        if (found) {
            TRY(cql_bson_read(o, type->inner[i], &inner, &values[i]));
            present = i + 1;
        }
    }
    return cql_value_collect(o->arena, type, values, present, value_out) ? OK : budget_error(o->budget);
}

static err read_native(op *o, const cql_type *type, const doc_element *e, cql_value *value_out) {
    switch (type->kind) {
    case CQL_BOOLEAN:
        if (e->type == BSON_TYPE_BOOL) {
            *value_out = cql_value_bool(e->value.p[0] != 0);
            return OK;
        }
        return fail(o, type, e);
    case CQL_TEXT: /* strings of items are UTF-8 */
        *value_out = e->type == BSON_TYPE_UTF8 ? cql_value_of(doc_element_text(e)) : cql_value_null();
        return e->type == BSON_TYPE_UTF8 ? OK : fail(o, type, e);
    case CQL_BLOB:
    case CQL_CUSTOM:
    case CQL_EMPTY:
        if (e->type == BSON_TYPE_BINARY) {
            *value_out = cql_value_of(slice_skip(e->value, 5));
            return OK;
        }
        return e->type == BSON_TYPE_UTF8 ? cql_value_of_text(o, type, doc_element_text(e), value_out) : fail(o, type, e);
    case CQL_TIMESTAMP:
    case CQL_DATE:
        return read_date(o, type, e, value_out);
    default:
        return e->type == BSON_TYPE_UTF8 ? cql_value_of_text(o, type, doc_element_text(e), value_out) : fail(o, type, e);
    }
}

err cql_bson_read(op *o, const cql_type *type, const doc_element *e, cql_value *value_out) {
    *value_out = cql_value_null();
    if (e->type == BSON_TYPE_NULL) {
        return OK;
    }
    if (e->type == BSON_TYPE_UNDEFINED) {
        *value_out = cql_value_of(SLICE_LIT(""));
        return OK;
    }
    switch (type->kind) {
    case CQL_LIST:
    case CQL_SET:
    case CQL_TUPLE:
    case CQL_VECTOR:
        return read_array(o, type, e, value_out);
    case CQL_MAP:
        return read_map(o, type, e, value_out);
    case CQL_UDT:
        return read_udt(o, type, e, value_out);
    default:
        return cql_type_is_number(type) ? read_number(o, type, e, value_out) : read_native(o, type, e, value_out);
    }
}
