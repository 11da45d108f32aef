/* value_check.c — whether bytes are a value of a type, with the messages of Cassandra's serializers. */
#include <unistr.h>

#include "cql/big.h"
#include "cql/value_int.h"

static err check(op *o, const cql_type *type, cql_value v, unsigned depth);

typedef struct sized {
    cql_kind kind;
    size_t bytes;
    bool empty; /* no bytes are fine too */
    const char *message;
} sized;

static const sized sizes[] = {
    {CQL_INT, 4, true, "Expected 4 or 0 byte int"},
    {CQL_BIGINT, 8, true, "Expected 8 or 0 byte long"},
    {CQL_COUNTER, 8, true, "Expected 8 or 0 byte long"},
    {CQL_SMALLINT, 2, true, "Expected 2 bytes for a smallint"},
    {CQL_TINYINT, 1, true, "Expected 1 byte for a tinyint"},
    {CQL_BOOLEAN, 1, true, "Expected 1 or 0 byte value"},
    {CQL_DOUBLE, 8, true, "Expected 8 or 0 byte value for a double"},
    {CQL_FLOAT, 4, true, "Expected 4 or 0 byte value for a float"},
    {CQL_TIMESTAMP, 8, true, "Expected 8 or 0 byte long for date"},
    {CQL_DATE, 4, true, "Expected 4 byte long for date"},
    {CQL_TIME, 8, true, "Expected 8 byte long for time"},
    {CQL_UUID, 16, true, "UUID should be 16 or 0 bytes"},
    {CQL_TIMEUUID, 16, true, "UUID should be 16 or 0 bytes"},
};

static err check_size(op *o, const cql_type *type, slice bytes) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const sized *s = &sizes[i];
        if (s->kind == type->kind && bytes.n != s->bytes && !(s->empty && bytes.n == 0)) {
            return op_fail(o, E_BAD_REQUEST, "%s (%zu)", s->message, bytes.n);
        }
    }
    return OK;
}

static err check_ascii(op *o, slice bytes) {
    for (size_t i = 0; i < bytes.n; i++) {
        if (bytes.p[i] & 0x80) {
            return op_fail(o, E_BAD_REQUEST, "Invalid byte for ascii: %d", (signed char)bytes.p[i]);
        }
    }
    return OK;
}

static err check_duration(op *o, cql_value v) {
    cql__duration d;
    if (v.bytes.n < 3) {
        return op_fail(o, E_BAD_REQUEST, "Expected at least 3 bytes for a duration (%zu)", v.bytes.n);
    }
    if (!cql__duration_of(v, &d)) {
        return op_fail(o, E_BAD_REQUEST, "Invalid duration: months and days must be 32-bit integers");
    }
    bool positive = d.months > 0 || d.days > 0 || d.ns > 0, negative = d.months < 0 || d.days < 0 || d.ns < 0;
    if (positive && negative) {
        return op_fail(o, E_BAD_REQUEST, "The duration months, days and nanoseconds must be all of the same sign (%d, %d, %lld)", d.months,
                       d.days, (long long)d.ns);
    }
    return OK;
}

static err check_time(op *o, cql_value v) {
    int64_t ns;
    if (cql_as_bigint(v, &ns) && (ns < 0 || ns >= CQL__DAY_NS)) {
        return op_fail(o, E_BAD_REQUEST, "Expected a time of day between 0 and 86399999999999 nanoseconds (%lld)", (long long)ns);
    }
    return OK;
}

static err check_big(op *o, const cql_type *type, slice bytes) {
    if (type->kind == CQL_DECIMAL && bytes.n && bytes.n < 5) {
        return op_fail(o, E_BAD_REQUEST, "Expected 0 or at least 4 bytes (%zu)", bytes.n);
    }
    return bytes.n > CQL__BIG_BYTES_MAX ? op_fail(o, E_BAD_REQUEST, "The number has more than %d digits", CQL_DIGITS_MAX) : OK;
}

static bool is_utf8(slice text) {
    size_t i = slice_ascii(text); /* most texts are nothing else */
    return i == text.n || !u8_check((const uint8_t *)text.p + i, text.n - i);
}

static err check_native(op *o, const cql_type *type, cql_value v) {
    slice bytes = v.bytes;
    TRY(check_size(o, type, bytes));
    switch (type->kind) {
    case CQL_ASCII:
        return check_ascii(o, bytes);
    case CQL_TEXT:
        return is_utf8(bytes) ? OK : op_fail(o, E_BAD_REQUEST, "String didn't validate.");
    case CQL_VARINT:
    case CQL_DECIMAL:
        return check_big(o, type, bytes);
    case CQL_INET:
        return bytes.n && bytes.n != 4 && bytes.n != 16 ? op_fail(o, E_BAD_REQUEST, "Expected 4 or 16 byte inetaddress; got %zu", bytes.n)
                                                        : OK;
    case CQL_TIMEUUID:
        return bytes.n && (bytes.p[6] & 0xF0) != 0x10 ? op_fail(o, E_BAD_REQUEST, "Invalid version for TimeUUID type.") : OK;
    case CQL_TIME:
        return check_time(o, v);
    case CQL_DURATION:
        return bytes.n ? check_duration(o, v) : OK;
    case CQL_EMPTY:
        return bytes.n ? op_fail(o, E_BAD_REQUEST, "EmptyType only accept empty values") : OK;
    default:
        return OK;
    }
}

static err check_collection(op *o, const cql_type *type, cql_value v, unsigned depth) {
    const char *what = type->kind == CQL_LIST ? "list" : type->kind == CQL_SET ? "set" : "map";
    cql_elements e;
    cql_value element;
    const cql_type *inner;
    if (!cql_elements_init(&e, type, v)) {
        return op_fail(o, E_BAD_REQUEST, "Not enough bytes to read a %s", what);
    }
    while (e.at < e.n) {
        if (!cql_elements_next(&e, &element, &inner)) {
            return op_fail(o, E_BAD_REQUEST, "Not enough bytes to read a %s", what);
        }
        if (cql_value_is_null(element)) {
            return op_fail(o, E_BAD_REQUEST, "null is not supported inside collections");
        }
        TRY(check(o, inner, element, depth + 1));
    }
    return e.rest.n ? op_fail(o, E_BAD_REQUEST, "Unexpected extraneous bytes after %s value", what) : OK;
}

static err check_tuple(op *o, const cql_type *type, cql_value v, unsigned depth) {
    const char *what = type->kind == CQL_UDT ? "field" : "component";
    slice rest = v.bytes;
    for (uint32_t i = 0; i < type->n && rest.n; i++) {
        cql_value element;
        if (rest.n < 4) {
            return op_fail(o, E_BAD_REQUEST, "Not enough bytes to read size of %uth %s", i, what);
        }
        if (!cql_value_decode(&rest, &element) || element.unset) {
            return op_fail(o, E_BAD_REQUEST, "Not enough bytes to read %uth %s", i, what);
        }
        TRY(check(o, type->inner[i], element, depth + 1));
    }
    if (rest.n) {
        return op_fail(o, E_BAD_REQUEST, "Invalid remaining data after end of %s value", type->kind == CQL_UDT ? "UDT" : "tuple");
    }
    return OK;
}

static err check_vector(op *o, const cql_type *type, cql_value v, unsigned depth) {
    int bytes = cql_type_fixed_bytes(type);
    cql_elements e;
    cql_value element;
    const cql_type *inner;
    if (bytes < 0 || v.bytes.n != (size_t)bytes) {
        return op_fail(o, E_BAD_REQUEST, "Required %u elements, but saw %zu bytes", type->dimension, v.bytes.n);
    }
    for (cql_elements_init(&e, type, v); cql_elements_next(&e, &element, &inner);) {
        TRY(check(o, inner, element, depth + 1));
    }
    return OK;
}

static err check(op *o, const cql_type *type, cql_value v, unsigned depth) {
    if (cql_value_is_null(v)) {
        return OK;
    }
    if (depth > CQL_VALUE_DEPTH) {
        return op_fail(o, E_BAD_REQUEST, "The value is nested too deeply");
    }
    switch (type->kind) {
    case CQL_LIST:
    case CQL_SET:
    case CQL_MAP:
        return check_collection(o, type, v, depth);
    case CQL_TUPLE:
    case CQL_UDT:
        return check_tuple(o, type, v, depth);
    case CQL_VECTOR:
        return check_vector(o, type, v, depth);
    default:
        return check_native(o, type, v);
    }
}

err cql_value_check(op *o, const cql_type *type, cql_value v) {
    return check(o, type, v, 0);
}
