/* value_text.c — values as literals of CQL and as bare text, and back from text. */
#include <arpa/inet.h>

#include "base/hex.h"
#include "cql/big.h"
#include "cql/value_int.h"

/* ---- writing ---- */

static void write_inet(buf *out, slice bytes) {
    char text[INET6_ADDRSTRLEN];
    if (inet_ntop(bytes.n == 4 ? AF_INET : AF_INET6, bytes.p, text, sizeof text)) {
        buf_add_slice(out, slice_str(text));
    }
}

static void write_big(buf *out, const cql_type *type, cql_value v) {
    cql__decimal d = {.scale = 0};
    mpz_init(d.unscaled);
    if (type->kind == CQL_VARINT) {
        if (v.bytes.n <= CQL__BIG_BYTES_MAX) {
            cql__mpz_of_bytes(d.unscaled, v.bytes);
            cql__mpz_write(out, d.unscaled);
        } else {
            out->overflow = true;
        }
    } else if (cql__decimal_of_value(&d, v)) {
        cql__decimal_write(out, &d);
    } else {
        out->overflow = true;
    }
    mpz_clear(d.unscaled);
}

static void write_hex(buf *out, slice bytes) {
    static const char digits[] = "0123456789abcdef";
    buf_add_lit(out, "0x");
    for (size_t i = 0; i < bytes.n; i++) {
        unsigned char c = (unsigned char)bytes.p[i];
        buf_add_byte(out, digits[c >> 4]);
        buf_add_byte(out, digits[c & 15]);
    }
}

static void write_floating(buf *out, const cql_type *type, cql_value v) {
    double number = 0;
    cql_as_double(v, &number);
    if (type->kind == CQL_FLOAT) {
        cql__write_float(out, (float)number);
    } else {
        cql__write_double(out, number);
    }
}

static void write_time_of(buf *out, const cql_type *type, cql_value v) {
    int64_t number = 0;
    cql_as_bigint(v, &number);
    if (type->kind == CQL_TIMESTAMP) {
        cql__write_timestamp(out, number, 'T');
    } else if (type->kind == CQL_DATE) {
        cql__write_date(out, (int64_t)(uint32_t)number - INT64_C(0x80000000));
    } else {
        cql__write_time(out, number);
    }
}

static void write_duration(buf *out, cql_value v) {
    cql__duration d = {0};
    cql__duration_of(v, &d);
    cql__write_duration(out, &d);
}

void cql_value_write_bare(buf *out, const cql_type *type, cql_value v) {
    int64_t number = 0;
    if (cql_value_is_null(v)) {
        buf_add_lit(out, "null");
        return;
    }
    if (v.bytes.n == 0) {
        return;
    }
    switch (type->kind) {
    case CQL_TINYINT:
    case CQL_SMALLINT:
    case CQL_INT:
    case CQL_BIGINT:
    case CQL_COUNTER:
        cql_as_bigint(v, &number);
        buf_add_i64(out, number);
        break;
    case CQL_BOOLEAN:
        buf_add_slice(out, v.bytes.p[0] ? SLICE_LIT("true") : SLICE_LIT("false"));
        break;
    case CQL_FLOAT:
    case CQL_DOUBLE:
        write_floating(out, type, v);
        break;
    case CQL_VARINT:
    case CQL_DECIMAL:
        write_big(out, type, v);
        break;
    case CQL_TIMESTAMP:
    case CQL_DATE:
    case CQL_TIME:
        write_time_of(out, type, v);
        break;
    case CQL_UUID:
    case CQL_TIMEUUID:
        cql__uuid_write(out, v.bytes);
        break;
    case CQL_INET:
        write_inet(out, v.bytes);
        break;
    case CQL_DURATION:
        write_duration(out, v);
        break;
    case CQL_ASCII:
    case CQL_TEXT:
        buf_add_slice(out, v.bytes);
        break;
    default:
        write_hex(out, v.bytes);
    }
}

static void write_quoted(buf *out, const cql_type *type, cql_value v) {
    buf_add_byte(out, '\'');
    for (size_t i = 0; (type->kind == CQL_TEXT || type->kind == CQL_ASCII) && i < v.bytes.n; i++) {
        if (v.bytes.p[i] == '\'') {
            buf_add_byte(out, '\'');
        }
        buf_add_byte(out, v.bytes.p[i]);
    }
    if (type->kind != CQL_TEXT && type->kind != CQL_ASCII) {
        cql_value_write_bare(out, type, v);
    }
    buf_add_byte(out, '\'');
}

static void write_elements(buf *out, const cql_type *type, cql_value v) {
    static const char *const brackets[] = {"[]", "{}", "()"};
    const char *pair = brackets[type->kind == CQL_LIST || type->kind == CQL_VECTOR ? 0 : type->kind == CQL_TUPLE ? 2 : 1];
    cql_elements e;
    cql_value element;
    const cql_type *inner;
    uint32_t i = 0;
    buf_add_byte(out, pair[0]);
    for (bool more = cql_elements_init(&e, type, v); more && cql_elements_next(&e, &element, &inner); i++) {
        bool value_of_pair = type->kind == CQL_MAP && i % 2;
        buf_add_slice(out, value_of_pair ? SLICE_LIT(": ") : i ? SLICE_LIT(", ") : SLICE_EMPTY);
        if (type->kind == CQL_UDT && type->fields) {
            cql_name_write(out, type->fields[i]);
            buf_add_lit(out, ": ");
        }
        cql_value_write(out, inner, element);
    }
    buf_add_byte(out, pair[1]);
}

void cql_value_write(buf *out, const cql_type *type, cql_value v) {
    if (cql_value_is_null(v)) {
        buf_add_lit(out, "null");
        return;
    }
    switch (type->kind) {
    case CQL_LIST:
    case CQL_SET:
    case CQL_MAP:
    case CQL_TUPLE:
    case CQL_UDT:
    case CQL_VECTOR:
        write_elements(out, type, v);
        break;
    case CQL_ASCII:
    case CQL_TEXT:
    case CQL_TIMESTAMP:
    case CQL_DATE:
    case CQL_TIME:
    case CQL_INET:
        write_quoted(out, type, v);
        break;
    case CQL_BLOB:
    case CQL_CUSTOM:
    case CQL_EMPTY:
        write_hex(out, v.bytes);
        break;
    default:
        if (v.bytes.n == 0) {
            buf_add_lit(out, "''");
        } else {
            cql_value_write_bare(out, type, v);
        }
    }
}

/* ---- reading ---- */

static err fail(op *o, const char *message, slice text) {
    return op_fail(o, E_BAD_REQUEST, "%s '%.*s'", message, slice_shown(text), text.p);
}

static err read_integer(op *o, const cql_type *type, slice text, cql_value *value_out) {
    int64_t number;
    slice digits = text.n > 1 && text.p[0] == '+' && text.p[1] != '-' ? slice_skip(text, 1) : text;
    bool ok = slice_to_i64(digits, &number);
    switch (type->kind) {
    case CQL_TINYINT:
        *value_out = cql_value_tinyint(o->arena, (int8_t)number);
        return ok && number == (int8_t)number ? OK : fail(o, "Unable to make byte from", text);
    case CQL_SMALLINT:
        *value_out = cql_value_smallint(o->arena, (int16_t)number);
        return ok && number == (int16_t)number ? OK : fail(o, "Unable to make short from", text);
    case CQL_INT:
        *value_out = cql_value_int(o->arena, (int32_t)number);
        return ok && number == (int32_t)number ? OK : fail(o, "Unable to make int from", text);
    default:
        *value_out = cql_value_bigint(o->arena, number);
        return ok ? OK : fail(o, "Unable to make long from", text);
    }
}

static err read_big(op *o, const cql_type *type, slice text, cql_value *value_out) {
    cql__decimal d = {.scale = 0};
    mpz_init(d.unscaled);
    bool ok = type->kind == CQL_VARINT ? cql__mpz_of_text(d.unscaled, text) : cql__decimal_of_text(&d, text);
    if (ok) {
        *value_out = type->kind == CQL_VARINT ? cql__mpz_value(o->arena, d.unscaled) : cql__decimal_value(o->arena, &d);
    }
    mpz_clear(d.unscaled);
    return ok ? OK : fail(o, type->kind == CQL_VARINT ? "unable to make int from" : "unable to make BigDecimal from", text);
}

static err read_floating(op *o, const cql_type *type, slice text, cql_value *value_out) {
    double number;
    if (!cql__read_double(text, &number)) {
        return fail(o, type->kind == CQL_FLOAT ? "Unable to make float from" : "Unable to make double from", text);
    }
    *value_out = type->kind == CQL_FLOAT ? cql_value_float(o->arena, (float)number) : cql_value_double(o->arena, number);
    return OK;
}

static err read_date(op *o, slice text, cql_value *value_out) {
    int64_t days;
    if (slice_to_i64(text, &days)) { /* days with 1970-01-01 at 2^31, as on the wire */
        *value_out = cql_value_int(o->arena, (int32_t)(uint32_t)days);
        return days >= 0 && days <= UINT32_MAX ? OK : fail(o, "Input out of bounds for date type:", text);
    }
    if (!cql__read_date(text, &days) || days < INT32_MIN || days > INT32_MAX) {
        return op_fail(o, E_BAD_REQUEST, "Unable to coerce '%.*s' to a formatted date (long)", slice_shown(text), text.p);
    }
    *value_out = cql_value_int(o->arena, (int32_t)(uint32_t)(days + INT64_C(0x80000000)));
    return OK;
}

static err read_time(op *o, slice text, cql_value *value_out) {
    int64_t ns;
    if ((!slice_to_i64(text, &ns) && !cql__read_time(text, &ns)) || ns < 0 || ns >= CQL__DAY_NS) {
        return op_fail(o, E_BAD_REQUEST, "Unable to coerce '%.*s' to a formatted time (long)", slice_shown(text), text.p);
    }
    *value_out = cql_value_bigint(o->arena, ns);
    return OK;
}

static err read_timestamp(op *o, slice text, cql_value *value_out) {
    int64_t ms;
    if (slice_eq_nocase(text, SLICE_LIT("now"))) {
        ms = o->now_s * 1000;
    } else if (!cql__read_timestamp(text, &ms)) {
        return fail(o, "Unable to parse a date/time from", text);
    }
    *value_out = cql_value_bigint(o->arena, ms);
    return OK;
}

static err read_uuid(op *o, const cql_type *type, slice text, cql_value *value_out) {
    uint8_t *bytes = arena_alloc_aligned(o->arena, 16, 1);
    if (!cql__uuid_read(text, bytes)) {
        return fail(o, "Unable to make UUID from", text);
    }
    *value_out = cql_value_of(slice_of(bytes, 16));
    return type->kind == CQL_TIMEUUID && bytes[6] >> 4 != 1 ? op_fail(o, E_BAD_REQUEST, "TimeUUID supports only version 1 UUIDs") : OK;
}

static err read_inet(op *o, slice text, cql_value *value_out) {
    char copy[INET6_ADDRSTRLEN + 1];
    char *bytes = arena_alloc_aligned(o->arena, 16, 1);
    if (text.n < sizeof copy) {
        memcpy(copy, text.p, text.n);
        copy[text.n] = 0;
        bool zeros = memchr(text.p, 0, text.n) != NULL;
        size_t n = inet_pton(AF_INET, copy, bytes) == 1 ? 4 : inet_pton(AF_INET6, copy, bytes) == 1 ? 16 : 0;
        if (n && !zeros) {
            *value_out = cql_value_of(slice_of(bytes, n));
            return OK;
        }
    }
    return fail(o, "Unable to make inet address from", text);
}

static err read_hex(op *o, slice text, cql_value *value_out) {
    slice digits = slice_starts(text, SLICE_LIT("0x")) || slice_starts(text, SLICE_LIT("0X")) ? slice_skip(text, 2) : text;
    if (!arena_fits(o->arena, digits.n)) {
        return budget_error(o->budget);
    }
    char *bytes = arena_alloc_aligned(o->arena, digits.n / 2 + 1, 1);
    for (size_t i = 0; i + 1 < digits.n; i += 2) {
        int high = hex_digit(digits.p[i]), low = hex_digit(digits.p[i + 1]);
        if (high < 0 || low < 0) {
            return op_fail(o, E_BAD_REQUEST, "cannot parse '%.*s' as hex bytes", slice_shown(text), text.p);
        }
        bytes[i / 2] = (char)(high * 16 + low);
    }
    *value_out = cql_value_of(slice_of(bytes, digits.n / 2));
    return digits.n % 2 ? op_fail(o, E_BAD_REQUEST, "cannot parse '%.*s' as hex bytes", slice_shown(text), text.p) : OK;
}

static err read_boolean(op *o, slice text, cql_value *value_out) {
    bool truth = slice_eq_nocase(text, SLICE_LIT("true"));
    *value_out = cql_value_bool(truth);
    return truth || slice_eq_nocase(text, SLICE_LIT("false")) ? OK : fail(o, "Unable to make boolean from", text);
}

static err read_duration(op *o, slice text, cql_value *value_out) {
    cql__duration d;
    if (!cql__read_duration(text, &d)) {
        return op_fail(o, E_BAD_REQUEST, "Unable to convert '%.*s' to a duration", slice_shown(text), text.p);
    }
    *value_out = cql__duration_value(o->arena, &d);
    return OK;
}

err cql_value_of_text(op *o, const cql_type *type, slice text, cql_value *value_out) {
    *value_out = cql_value_null();
    switch (type->kind) {
    case CQL_ASCII:
    case CQL_TEXT:
        *value_out = cql_value_of(text);
        return cql_value_check(o, type, *value_out);
    case CQL_TINYINT:
    case CQL_SMALLINT:
    case CQL_INT:
    case CQL_BIGINT:
    case CQL_COUNTER:
        return read_integer(o, type, text, value_out);
    case CQL_VARINT:
    case CQL_DECIMAL:
        return read_big(o, type, text, value_out);
    case CQL_FLOAT:
    case CQL_DOUBLE:
        return read_floating(o, type, text, value_out);
    case CQL_BOOLEAN:
        return read_boolean(o, text, value_out);
    case CQL_TIMESTAMP:
        return read_timestamp(o, text, value_out);
    case CQL_DATE:
        return read_date(o, text, value_out);
    case CQL_TIME:
        return read_time(o, text, value_out);
    case CQL_UUID:
    case CQL_TIMEUUID:
        return read_uuid(o, type, text, value_out);
    case CQL_INET:
        return read_inet(o, text, value_out);
    case CQL_DURATION:
        return read_duration(o, text, value_out);
    case CQL_BLOB:
    case CQL_CUSTOM:
        return read_hex(o, text, value_out);
    default:
        return op_fail(o, E_BAD_REQUEST, "Unable to read a value of this type from '%.*s'", slice_shown(text), text.p);
    }
}
