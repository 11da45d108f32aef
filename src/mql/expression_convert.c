/* expression_convert.c — types and conversions. A failed conversion returns the value of `onError`, or else fails with 241
 * (ConversionFailure).
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mql/date_text.h"
#include "mql/expression_date.h"
#include "mql/number.h"

enum { CONVERSION_FAILURE = 241 };

/* ---- text of values ---- */

/* The shortest digits that read back as the same number. */
static slice double_text(arena *a, double d) {
    char text[40];
    if (!isfinite(d)) {
        return isnan(d) ? SLICE_LIT("NaN") : d < 0 ? SLICE_LIT("-Infinity") : SLICE_LIT("Infinity");
    }
    if (d == floor(d) && fabs(d) < 1e16) {
        snprintf(text, sizeof text, "%.0f", d);
        return arena_copy(a, slice_str(text));
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, d);
        if (strtod(text, NULL) == d) {
            break;
        }
    }
    if (fabs(d) >= 1e16 && !strchr(text, 'e')) { /* 17 digits without an exponent */
        snprintf(text, sizeof text, "%.16e", d);
    }
    return arena_copy(a, slice_str(text));
}

static slice decimal_text(arena *a, mql_value v) {
    char text[BSON_DECIMAL128_STRING];
    bson_decimal128_t d = mql_as_decimal(v);
    bson_decimal128_to_string(&d, text);
    return arena_copy(a, slice_str(text));
}

static slice object_id_text(arena *a, mql_value v) {
    char text[25];
    for (size_t i = 0; i < 12; i++) {
        snprintf(text + 2 * i, 3, "%02x", (unsigned char)v.bytes.p[i]);
    }
    return arena_copy(a, slice_of(text, 24));
}

static bool date_as_text(arena *a, int64_t ms, slice *text_out) {
    buf text = buf_init(64);
    bool ok = mql_date_write(&text, MQL_DATE_ISO, ms, MQL_UTC);
    *text_out = ok ? arena_copy(a, buf_view(&text)) : SLICE_EMPTY;
    buf_free(&text);
    return ok;
}

/* False: values of this type cannot be converted to a string. */
static bool text_of(arena *a, mql_value v, slice *text_out) {
    int64_t integer;
    switch (v.type) {
    case BSON_TYPE_UTF8:
    case BSON_TYPE_SYMBOL:
        *text_out = mql_as_text(v);
        return true;
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
        mql_as_integer(v, &integer);
        *text_out = arena_printf(a, "%" PRId64, integer);
        return true;
    case BSON_TYPE_DOUBLE:
        *text_out = double_text(a, mql_as_double(v));
        return true;
    case BSON_TYPE_DECIMAL128:
        *text_out = decimal_text(a, v);
        return true;
    case BSON_TYPE_DATE_TIME:
        return date_as_text(a, mql_as_date(v), text_out);
    default:
        return false;
    }
}

static slice timestamp_text(arena *a, mql_value v) {
    uint64_t bits = (uint64_t)doc_load_i64(v.bytes.p);
    return arena_printf(a, "Timestamp(%" PRIu64 ", %" PRIu64 ")", bits >> 32, bits & 0xFFFFFFFF);
}

err mql__coerce_text(const mql__call *c, mql_value v, slice *text_out) {
    *text_out = SLICE_LIT("");
    if (mql_is_nullish(v) || text_of(c->run->arena, v, text_out)) {
        return OK;
    }
    if (v.type == BSON_TYPE_DATE_TIME) {
        return mql__fail(c, 18537, "failed while coercing date to string: the year is outside the supported range of 0-9999");
    }
    if (v.type == BSON_TYPE_CODE || v.type == BSON_TYPE_TIMESTAMP) {
        *text_out = v.type == BSON_TYPE_CODE ? mql_as_text(v) : timestamp_text(c->run->arena, v);
        return OK;
    }
    return mql__fail(c, 16007, "can't convert from BSON type %s to String", mql_type_name(v.type));
}

/* ---- conversions: OK, or 241 ---- */

#define NO_ON_ERROR "in $convert with no onError value"

static err unsupported(const mql__call *c, mql_value v, bson_type_t type) {
    return mql__fail(c, CONVERSION_FAILURE, "Unsupported conversion from %s to %s " NO_ON_ERROR, mql_type_name(v.type),
                     mql_type_name(type));
}

static err overflow(const mql__call *c, mql_value v) {
    return mql__fail(c, CONVERSION_FAILURE, "Conversion would overflow target type " NO_ON_ERROR ": %s", mql__show(c->run->arena, v));
}

/* Numbers to numbers. */
static err number_to(const mql__call *c, mql_value v, bson_type_t type, mql_value *value_out) {
    double d = mql_as_double(v);
    bool integer = type == BSON_TYPE_INT32 || type == BSON_TYPE_INT64;
    if (integer && isnan(d)) {
        return mql__fail(c, CONVERSION_FAILURE, "Attempt to convert NaN value to integer type " NO_ON_ERROR);
    }
    if (integer && isinf(d) && v.type == BSON_TYPE_DOUBLE) {
        return mql__fail(c, CONVERSION_FAILURE, "Attempt to convert infinity value to integer type " NO_ON_ERROR);
    }
    return mql_number_to(c->run->arena, v, type, value_out) ? OK : overflow(c, v);
}

static err refuse_number(const mql__call *c, slice text, const char *reason) {
    return mql__fail(c, CONVERSION_FAILURE, "Failed to parse number '%.*s' " NO_ON_ERROR ": %s", slice_shown(text), text.p, reason);
}

static err integer_of_text(const mql__call *c, slice text, bson_type_t type, mql_value *value_out) {
    int64_t integer;
    slice digits = text.n > 1 && text.p[0] == '+' ? slice_skip(text, 1) : text;
    if (digits.n == 0 || digits.n > 64 || !slice_to_i64(digits, &integer)) {
        return refuse_number(c, text, text.n ? "Did not consume whole string." : "No digits");
    }
    if (type == BSON_TYPE_INT32 && integer != (int32_t)integer) {
        return refuse_number(c, text, "Overflow");
    }
    *value_out = type == BSON_TYPE_INT32 ? mql_int32(c->run->arena, (int32_t)integer) : mql_int64(c->run->arena, integer);
    return OK;
}

enum { NUMBER_BYTES_MAX = 400 };

static err double_of_text(const mql__call *c, slice text, mql_value *value_out) {
    char copy[NUMBER_BYTES_MAX + 1], *end;
    bool blank = text.n == 0 || text.p[0] == ' ' || text.p[0] == '\t' || text.p[0] == '\n';
    if (blank || text.n > NUMBER_BYTES_MAX || memchr(text.p, 0, text.n) || memchr(text.p, 'x', text.n) || memchr(text.p, 'X', text.n)) {
        return refuse_number(c, text, text.n ? "Did not consume whole string." : "Empty string");
    }
    memcpy(copy, text.p, text.n);
    copy[text.n] = 0;
    double d = strtod(copy, &end);
    if (*end) {
        return refuse_number(c, text, "Did not consume whole string.");
    }
    if (isinf(d) && !strpbrk(copy, "iI")) {
        return refuse_number(c, text, "Out of range");
    }
    *value_out = mql_double(c->run->arena, d);
    return OK;
}

static err decimal_of_text(const mql__call *c, slice text, mql_value *value_out) {
    bson_decimal128_t d;
    if (text.n == 0 || text.n > NUMBER_BYTES_MAX || !bson_decimal128_from_string_w_len(text.p, (int)text.n, &d)) {
        return refuse_number(c, text, "Failed to parse string to decimal");
    }
    bool nan = mql_decimal_is_nan(&d) && !slice_eq_nocase(text, SLICE_LIT("nan"));
    if (nan) {
        return refuse_number(c, text, "Failed to parse string to decimal");
    }
    *value_out = mql_decimal(c->run->arena, &d);
    return OK;
}

static err number_of_text(const mql__call *c, slice text, bson_type_t type, mql_value *value_out) {
    if (slice_starts(text, SLICE_LIT("0x"))) {
        return mql__fail(c, CONVERSION_FAILURE, "Illegal hexadecimal input " NO_ON_ERROR ": %.*s", slice_shown(text), text.p);
    }
    return type == BSON_TYPE_DOUBLE       ? double_of_text(c, text, value_out)
           : type == BSON_TYPE_DECIMAL128 ? decimal_of_text(c, text, value_out)
                                          : integer_of_text(c, text, type, value_out);
}

static err to_number(const mql__call *c, mql_value v, bson_type_t type, mql_value *value_out) {
    if (mql_is_number(v)) {
        return number_to(c, v, type, value_out);
    }
    switch (v.type) {
    case BSON_TYPE_UTF8:
        return number_of_text(c, mql_as_text(v), type, value_out);
    case BSON_TYPE_BOOL:
        return number_to(c, mql_int32(c->run->arena, mql_as_bool(v)), type, value_out);
    case BSON_TYPE_DATE_TIME:
        return type == BSON_TYPE_INT32 ? unsupported(c, v, type) : number_to(c, mql_int64(c->run->arena, mql_as_date(v)), type, value_out);
    default:
        return unsupported(c, v, type);
    }
}

static err to_date(const mql__call *c, mql_value v, bson_type_t type, mql_value *value_out) {
    int64_t ms;
    mql_date_read read;
    if (mql_is_number(v) && v.type != BSON_TYPE_INT32) {
        mql_value integer;
        TRY(number_to(c, v, BSON_TYPE_INT64, &integer));
        *value_out = mql_date(c->run->arena, doc_load_i64(integer.bytes.p));
        return OK;
    }
    if (mql_is_text(v)) {
        slice text = mql_as_text(v);
        if (!mql_date_parse(text, NULL, MQL_UTC, &read)) {
            return mql__fail(c, CONVERSION_FAILURE, "Error parsing date string '%.*s'; %zu: %s", slice_shown(text), text.p, read.at,
                             read.reason ? read.reason : "");
        }
        *value_out = mql_date(c->run->arena, read.ms);
        return OK;
    }
    if (!mql__as_moment(v, &ms)) {
        return unsupported(c, v, type);
    }
    *value_out = mql_date(c->run->arena, ms);
    return OK;
}

static err to_text(const mql__call *c, mql_value v, bson_type_t type, mql_value *value_out) {
    slice text;
    if (v.type == BSON_TYPE_BOOL) {
        text = mql_as_bool(v) ? SLICE_LIT("true") : SLICE_LIT("false");
    } else if (v.type == BSON_TYPE_OID) {
        text = object_id_text(c->run->arena, v);
    } else if (v.type == BSON_TYPE_SYMBOL || !text_of(c->run->arena, v, &text)) {
        return v.type == BSON_TYPE_DATE_TIME
                   ? mql__fail(c, 18537, "Could not convert date to string: date component was outside the supported range of 0-9999")
                   : unsupported(c, v, type);
    }
    return mql__text_result(c, text, value_out);
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static err to_object_id(const mql__call *c, mql_value v, bson_type_t type, mql_value *value_out) {
    uint8_t bytes[12];
    if (v.type == BSON_TYPE_OID) {
        *value_out = v;
        return OK;
    }
    if (!mql_is_text(v)) {
        return unsupported(c, v, type);
    }
    slice text = mql_as_text(v);
    for (size_t i = 0; i < 12; i++) {
        int high = text.n == 24 ? hex_digit(text.p[2 * i]) : -1, low = text.n == 24 ? hex_digit(text.p[2 * i + 1]) : -1;
        if (high < 0 || low < 0) {
            return mql__fail(c, CONVERSION_FAILURE, "Failed to parse objectId '%.*s' " NO_ON_ERROR ": %s", slice_shown(text), text.p,
                             text.n == 24 ? "Invalid character found in hex string" : "Invalid string length for parsing to OID");
        }
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    *value_out = mql_object_id(c->run->arena, bytes);
    return OK;
}

static err to_bool(const mql__call *c, mql_value v, bson_type_t type, mql_value *value_out) {
    (void)c;
    (void)type;
    *value_out = mql_bool(mql_truth(v));
    return OK;
}

static err convert_to(const mql__call *c, mql_value v, bson_type_t type, mql_value *value_out) {
    switch (type) {
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DECIMAL128:
        return to_number(c, v, type, value_out);
    case BSON_TYPE_DATE_TIME:
        return to_date(c, v, type, value_out);
    case BSON_TYPE_UTF8:
        return to_text(c, v, type, value_out);
    case BSON_TYPE_OID:
        return to_object_id(c, v, type, value_out);
    case BSON_TYPE_BOOL:
        return to_bool(c, v, type, value_out);
    default:
        return unsupported(c, v, type);
    }
}

/* ---- $convert ---- */

enum { INPUT, TO, ON_ERROR, ON_NULL };

static const mql__named convert_arguments = {MQL__CONVERTS, 9, 9, {{"input", 9}, {"to", 9}, {"onError", 0}, {"onNull", 0}}};

static bool type_named(slice name, bson_type_t *type_out) {
    for (int type = 0; type < 256; type++) {
        const char *known = mql_type_name((bson_type_t)type);
        if (strcmp(known, "unknown") != 0 && slice_eq(name, slice_str(known))) {
            *type_out = (bson_type_t)type;
            return true;
        }
    }
    return false;
}

static err target_type(const mql__call *c, mql_value to, bson_type_t *type_out) {
    int32_t number;
    if (mql_is_text(to)) {
        slice name = mql_as_text(to);
        return type_named(name, type_out) ? OK : mql__fail(c, 2, "Unknown type name: %.*s", slice_shown(name), name.p);
    }
    if (!mql_is_number(to)) {
        return mql__fail(c, 9, "$convert's 'to' argument must be a string or number, but is %s", mql_type_name(to.type));
    }
    if (!mql__as_int32(to, &number)) {
        return mql__fail(c, 9, "In $convert, numeric 'to' argument is not an integer");
    }
    if (number < -1 || number > 127 || strcmp(mql_type_name((bson_type_t)(uint8_t)number), "unknown") == 0) {
        return mql__fail(c, 9, "In $convert, numeric value for 'to' does not correspond to a BSON type: %" PRId32, number);
    }
    *type_out = (bson_type_t)(uint8_t)number;
    return OK;
}

static err convert(const mql__call *c, mql_value *value_out) {
    bson_type_t type = BSON_TYPE_EOD;
    *value_out = mql_null();
    if (!mql_is_nullish(c->args[TO])) {
        TRY(target_type(c, c->args[TO], &type));
    }
    if (mql_is_nullish(c->args[INPUT])) {
        return c->e->args[ON_NULL] ? mql__argument(c, ON_NULL, value_out) : OK;
    }
    if (mql_is_nullish(c->args[TO])) {
        return OK;
    }
    err e = convert_to(c, c->args[INPUT], type, value_out);
    if (e && c->run->op->protocol_code == CONVERSION_FAILURE && c->e->args[ON_ERROR]) {
        c->run->op->protocol_code = 0;
        c->run->op->detail_n = 0;
        return mql__argument(c, ON_ERROR, value_out);
    }
    return e;
}

/* ---- $toInt and the others ---- */

static err parse_short(mql_scope *s, mql_expression *node, mql_value argument) {
    TRY(mql__parse_list(s, node, argument));
    return node->n == 1 ? OK : mql_fail(s->op, 50723, "%s requires a single argument, got %zu", node->operator->name, node->n);
}

static err convert_short(const mql__call *c, mql_value *value_out) {
    return convert_to(c, c->args[0], (bson_type_t)c->e->operator->variant, value_out);
}

/* ---- types ---- */

static err type_of(const mql__call *c, mql_value *value_out) {
    return mql__text_result(c, slice_str(mql_type_name(c->args[0].type)), value_out);
}

static err is_number(const mql__call *c, mql_value *value_out) {
    *value_out = mql_bool(mql_is_number(c->args[0]));
    return OK;
}

#define SHORT(name, type)                                                                                                                  \
    { name, .flags = MQL__SERVICE | MQL__NULLS, .function = convert_short, .parse = parse_short, .variant = type }

static const mql__operator rows[] = {
    {"$convert", .flags = MQL__SERVICE, .eager = ON_ERROR, .function = convert, .named = &convert_arguments},
    SHORT("$toBool", BSON_TYPE_BOOL),
    SHORT("$toDate", BSON_TYPE_DATE_TIME),
    SHORT("$toDecimal", BSON_TYPE_DECIMAL128),
    SHORT("$toDouble", BSON_TYPE_DOUBLE),
    SHORT("$toInt", BSON_TYPE_INT32),
    SHORT("$toLong", BSON_TYPE_INT64),
    SHORT("$toObjectId", BSON_TYPE_OID),
    SHORT("$toString", BSON_TYPE_UTF8),
    {"$type", 1, 1, MQL__SERVICE, .function = type_of},
    {"$isNumber", 1, 1, 0, .function = is_number},
};
const mql__operators mql__convert_operators = MQL__OPERATORS(rows);
