/* json_extended.c — writes the BSON types that JSON lacks as MongoDB's relaxed Extended JSON (v2). Other APIs store such values; the SQL
 * API never does. */
#include <inttypes.h>
#include <math.h>

#include "base/base64.h"
#include "doc/json_int.h"

static void add_number_double(buf *out, const doc_element *e) {
    double value = doc_load_double(e->value.p);
    buf_addf(out, "{\"$numberDouble\":\"%s\"}", isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

static void add_binary(buf *out, const doc_element *e) {
    slice bytes = slice_skip(e->value, 5);
    unsigned subtype = (unsigned char)e->value.p[4];
    if (subtype == BSON_SUBTYPE_BINARY_DEPRECATED && bytes.n >= 4) {
        bytes = slice_skip(bytes, 4); /* this subtype repeats the length */
    }
    buf_add_lit(out, "{\"$binary\":{\"base64\":\"");
    base64_encode(out, bytes);
    buf_addf(out, "\",\"subType\":\"%02x\"}}", subtype);
}

static void add_oid_bytes(buf *out, const char *oid) {
    char text[25];
    for (size_t i = 0; i < 12; i++) {
        text[2 * i] = "0123456789abcdef"[(unsigned char)oid[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[(unsigned char)oid[i] & 15];
    }
    buf_add_lit(out, "{\"$oid\":\"");
    buf_add(out, text, 24);
    buf_add_lit(out, "\"}");
}

static void add_oid(buf *out, const doc_element *e) {
    add_oid_bytes(out, e->value.p);
}

/* `day` counts from 1970-01-01 in the proleptic Gregorian calendar and is not negative. */
static void add_date(buf *out, int64_t day) {
    int64_t shifted = day + 719468; /* days since 0000-03-01, so that a leap day is the last day of its year */
    int64_t era = shifted / 146097;
    int64_t in_era = shifted % 146097;
    int64_t year_in_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year_in_era + year_in_era / 4 - year_in_era / 100);
    int64_t month_from_march = (5 * in_year + 2) / 153;
    int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
    int64_t year = era * 400 + year_in_era + (month <= 2);
    buf_addf(out, "%04" PRId64 "-%02" PRId64 "-%02" PRId64, year, month, in_year - (153 * month_from_march + 2) / 5 + 1);
}

static void add_date_time(buf *out, const doc_element *e) {
    const int64_t day_ms = 86400000;
    const int64_t year_10000_ms = 253402300800000;
    int64_t ms = doc_load_i64(e->value.p);
    if (ms < 0 || ms >= year_10000_ms) {
        buf_addf(out, "{\"$date\":{\"$numberLong\":\"%" PRId64 "\"}}", ms);
        return;
    }
    buf_add_lit(out, "{\"$date\":\"");
    add_date(out, ms / day_ms);
    int64_t s = ms % day_ms / 1000;
    buf_addf(out, "T%02" PRId64 ":%02" PRId64 ":%02" PRId64, s / 3600, s / 60 % 60, s % 60);
    if (ms % 1000) {
        buf_addf(out, ".%03" PRId64, ms % 1000);
    }
    buf_add_lit(out, "Z\"}");
}

static void add_regex(buf *out, const doc_element *e) {
    slice pattern = slice_str(e->value.p);
    buf_add_lit(out, "{\"$regularExpression\":{\"pattern\":");
    json_add_string(out, pattern);
    buf_add_lit(out, ",\"options\":");
    json_add_string(out, slice_str(pattern.p + pattern.n + 1));
    buf_add_lit(out, "}}");
}

static void add_pointer(buf *out, const doc_element *e) {
    buf_add_lit(out, "{\"$dbPointer\":{\"$ref\":");
    json_add_string(out, slice_of(e->value.p + 4, e->value.n - 12 - 5));
    buf_add_lit(out, ",\"$id\":");
    add_oid_bytes(out, e->value.p + e->value.n - 12);
    buf_add_lit(out, "}}");
}

static void add_tagged_text(buf *out, const char *tag, slice text) {
    buf_addf(out, "{\"%s\":", tag);
    json_add_string(out, text);
    buf_add_byte(out, '}');
}

static void add_code(buf *out, const doc_element *e) {
    add_tagged_text(out, "$code", doc_element_text(e));
}

static void add_symbol(buf *out, const doc_element *e) {
    add_tagged_text(out, "$symbol", doc_element_text(e));
}

/* The value is an int32 (its whole length), a string and a document. */
static void add_code_with_scope(buf *out, const doc_element *e, unsigned depth) {
    slice rest = slice_skip(e->value, 4);
    int64_t n = doc_load_i32(rest.p);
    slice code = SLICE_EMPTY;
    if (n > 0 && n + 4 <= (int64_t)rest.n) {
        code = slice_of(rest.p + 4, (size_t)n - 1);
        rest = slice_skip(rest, (size_t)n + 4);
    }
    buf_add_lit(out, "{\"$code\":");
    json_add_string(out, code);
    buf_add_lit(out, ",\"$scope\":");
    json__add_document(out, rest, false, depth);
    buf_add_byte(out, '}');
}

static void add_timestamp(buf *out, const doc_element *e) {
    uint64_t value = (uint64_t)doc_load_i64(e->value.p);
    buf_addf(out, "{\"$timestamp\":{\"t\":%u,\"i\":%u}}", (unsigned)(value >> 32), (unsigned)value);
}

static void add_decimal(buf *out, const doc_element *e) {
    bson_decimal128_t value = {.low = (uint64_t)doc_load_i64(e->value.p), .high = (uint64_t)doc_load_i64(e->value.p + 8)};
    char text[BSON_DECIMAL128_STRING];
    bson_decimal128_to_string(&value, text);
    buf_addf(out, "{\"$numberDecimal\":\"%s\"}", text);
}

static void add_undefined(buf *out, const doc_element *e) {
    (void)e;
    buf_add_lit(out, "{\"$undefined\":true}");
}

static void add_min_key(buf *out, const doc_element *e) {
    (void)e;
    buf_add_lit(out, "{\"$minKey\":1}");
}

static void add_max_key(buf *out, const doc_element *e) {
    (void)e;
    buf_add_lit(out, "{\"$maxKey\":1}");
}

void json__add_extended(buf *out, const doc_element *e, unsigned depth) {
    static void (*const writers[256])(buf *, const doc_element *) = {
        [BSON_TYPE_DOUBLE] = add_number_double, [BSON_TYPE_BINARY] = add_binary,
        [BSON_TYPE_UNDEFINED] = add_undefined,  [BSON_TYPE_OID] = add_oid,
        [BSON_TYPE_DATE_TIME] = add_date_time,  [BSON_TYPE_REGEX] = add_regex,
        [BSON_TYPE_DBPOINTER] = add_pointer,    [BSON_TYPE_CODE] = add_code,
        [BSON_TYPE_SYMBOL] = add_symbol,        [BSON_TYPE_TIMESTAMP] = add_timestamp,
        [BSON_TYPE_DECIMAL128] = add_decimal,   [BSON_TYPE_MINKEY] = add_min_key,
        [BSON_TYPE_MAXKEY] = add_max_key,
    };
    if (e->type == BSON_TYPE_CODEWSCOPE) {
        add_code_with_scope(out, e, depth);
    } else {
        writers[e->type](out, e);
    }
}
