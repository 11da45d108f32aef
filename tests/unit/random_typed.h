/* random_typed.h — random BSON values of every type, many of them equal or close to each other, for tests of ordering. */
#pragma once

#include <bson/bson.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "base/random.h"

static const char *const typed_decimals[] = {
    "NaN",
    "-NaN",
    "Infinity",
    "-Infinity",
    "0",
    "-0",
    "0E+6111",
    "-0E-6176",
    "1",
    "1.00",
    "-1",
    "10",
    "1E+1",
    "0.1",
    "0.10",
    "-0.1",
    "0.1000000000000000055511151231257827",
    "0.1000000000000000055511151231257828",
    "0.5",
    "0.50",
    "1.5",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9007199254740992.5",
    "-9007199254740993",
    "9007199254740994",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "9223372036854775807.5",
    "18446744073709551616",
    "1.797693134862315708145274237317043E+308",
    "1.797693134862315708145274237317044E+308",
    "1.8E+308",
    "-1.8E+308",
    "9.999E+6144",
    "-9.999999999999999999999999999999999E+6144",
    "1E-6176",
    "-1E-6176",
    "3E-6176",
    "4.940656458412465E-324",
    "4.941E-324",
    "2.225073858507201E-308",
    "2.225073858507202E-308",
    "1E+22",
    "1E+23",
    "99999999999999991611392",
    "1E-400",
    "123.456",
    "-123.456",
};

static const double typed_doubles[] = {
    0.0,
    -0.0,
    1,
    -1,
    0.1,
    -0.1,
    0.5,
    1.5,
    10,
    123.456,
    -123.456,
    9007199254740991.0,
    9007199254740992.0,
    9007199254740994.0,
    -9007199254740992.0,
    -9007199254740994.0,
    9223372036854774784.0,
    9223372036854775808.0,
    -9223372036854775808.0,
    -9223372036854777856.0,
    18446744073709551616.0,
    DBL_MAX,
    -DBL_MAX,
    DBL_MIN,
    4.9406564584124654e-324,
    -4.9406564584124654e-324,
    2.2250738585072009e-308,
    1e22,
    1e23,
    1e-300,
    4294967296.0,
    2147483648.0,
    -2147483649.0,
};

static const int64_t typed_integers[] = {
    0,
    1,
    -1,
    10,
    2147483647,
    2147483648,
    -2147483648,
    -2147483649,
    4294967296,
    9007199254740991,
    9007199254740992,
    9007199254740993,
    9007199254740994,
    -9007199254740993,
    INT64_MAX,
    INT64_MAX - 1,
    INT64_MIN,
    INT64_MIN + 1,
    1000000000000000000,
    9223372036854774784,
};

#define TYPED_ANY(r, list) ((list)[random_below((r), sizeof(list) / sizeof *(list))])

static inline void typed_double(random_source *r, bson_t *into, const char *key) {
    uint64_t bits = random_u64(r);
    double value = TYPED_ANY(r, typed_doubles);
    switch (random_below(r, 6)) {
    case 0:
        memcpy(&value, &bits, sizeof value); /* any bits, including NaN */
        break;
    case 1:
        value = (double)(int64_t)(bits >> random_below(r, 64));
        break;
    case 2:
        value = random_below(r, 2) ? (double)INFINITY : random_below(r, 2) ? -(double)INFINITY : (double)NAN;
        break;
    default:
        break;
    }
    bson_append_double(into, key, -1, value);
}

static inline void typed_decimal(random_source *r, bson_t *into, const char *key) {
    bson_decimal128_t value;
    char text[64];
    switch (random_below(r, 5)) {
    case 0: /* any bits, including non-canonical ones */
        value.low = random_u64(r);
        value.high = random_u64(r);
        break;
    case 1: /* near a 64-bit integer */
        snprintf(text, sizeof text, "%lld%s", (long long)TYPED_ANY(r, typed_integers),
                 random_below(r, 2)   ? ""
                 : random_below(r, 2) ? ".0"
                                      : ".1");
        bson_decimal128_from_string(text, &value);
        break;
    case 2:
        snprintf(text, sizeof text, "%d.%uE%d", (int)random_below(r, 20) - 10, (unsigned)random_below(r, 1000),
                 (int)random_below(r, 700) - 350);
        bson_decimal128_from_string(text, &value);
        break;
    default:
        bson_decimal128_from_string(TYPED_ANY(r, typed_decimals), &value);
    }
    bson_append_decimal128(into, key, -1, &value);
}

static inline void typed_number(random_source *r, bson_t *into, const char *key) {
    switch (random_below(r, 4)) {
    case 0:
        bson_append_int32(into, key, -1, random_below(r, 2) ? (int32_t)random_below(r, 20) - 10 : (int32_t)random_u64(r));
        break;
    case 1:
        bson_append_int64(into, key, -1,
                          random_below(r, 2) ? TYPED_ANY(r, typed_integers) : (int64_t)(random_u64(r) >> random_below(r, 64)));
        break;
    case 2:
        typed_double(r, into, key);
        break;
    default:
        typed_decimal(r, into, key);
    }
}

/* Few different letters, including the zero byte if `zeros`; sometimes longer than the part of a string that the index stores. */
static inline int typed_text(random_source *r, char text[300], bool zeros) {
    static const char letters[] = {'a', 'b', 1, (char)0xFF, 0};
    uint64_t n = random_below(r, 12) == 0 ? 60 + random_below(r, 12) : random_below(r, 4);
    for (uint64_t i = 0; i < n; i++) {
        text[i] = n > 8 && i < n - 2 ? 'a' : letters[random_below(r, zeros ? 5 : 4)];
    }
    text[n] = 0;
    return (int)n;
}

static inline void typed_bytes(random_source *r, bson_t *into, const char *key) {
    static const bson_subtype_t subtypes[] = {BSON_SUBTYPE_BINARY, BSON_SUBTYPE_UUID, BSON_SUBTYPE_MD5, BSON_SUBTYPE_USER};
    char text[300] = {0};
    int n = typed_text(r, text, true);
    bson_append_binary(into, key, -1, TYPED_ANY(r, subtypes), (const uint8_t *)text, (uint32_t)(random_below(r, 4) ? n : 16));
}

static inline void typed_scope(random_source *r, bson_t *into, const char *key) {
    char text[300];
    bson_t scope = BSON_INITIALIZER;
    typed_text(r, text, false);
    bson_append_int32(&scope, random_below(r, 2) ? "a" : "b", -1, (int32_t)random_below(r, 2));
    bson_append_code_with_scope(into, key, -1, text, &scope);
    bson_destroy(&scope);
}

enum { TYPED_KINDS = 17, TYPED_UNDEFINED = 2 };

/* A scalar of one of the kinds 0 … TYPED_KINDS - 1. */
static inline void typed_scalar(random_source *r, bson_t *into, const char *key, uint64_t kind) {
    char text[300], options[300];
    bson_oid_t oid;
    uint8_t bytes[12] = {(uint8_t)(random_below(r, 3) * 127), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (uint8_t)random_below(r, 3)};
    int n = typed_text(r, text, true);
    bson_oid_init_from_data(&oid, bytes);
    switch (kind) {
    case 0:
        bson_append_minkey(into, key, -1);
        break;
    case 1:
        bson_append_maxkey(into, key, -1);
        break;
    case 2:
        bson_append_undefined(into, key, -1);
        break;
    case 3:
        bson_append_null(into, key, -1);
        break;
    case 4:
        bson_append_bool(into, key, -1, random_below(r, 2));
        break;
    case 5:
        bson_append_utf8(into, key, -1, text, n);
        break;
    case 6:
        typed_bytes(r, into, key);
        break;
    case 7:
        bson_append_oid(into, key, -1, &oid);
        break;
    case 8:
        bson_append_date_time(into, key, -1, random_below(r, 2) ? TYPED_ANY(r, typed_integers) : (int64_t)random_below(r, 9) - 4);
        break;
    case 9:
        bson_append_timestamp(into, key, -1, (uint32_t)random_u64(r) >> random_below(r, 32), (uint32_t)random_below(r, 3));
        break;
    case 10:
        typed_text(r, text, false);
        options[0] = (char)('i' + random_below(r, 2));
        options[random_below(r, 2)] = 0;
        options[1] = 0;
        bson_append_regex(into, key, -1, text, options);
        break;
    case 11:
        typed_text(r, text, false);
        bson_append_dbpointer(into, key, -1, text, &oid);
        break;
    case 12:
        typed_text(r, text, false);
        bson_append_code(into, key, -1, text);
        break;
    case 13:
        bson_append_symbol(into, key, -1, text, n);
        break;
    case 14:
        typed_scope(r, into, key);
        break;
    default:
        typed_number(r, into, key);
    }
}

/* Any value; arrays and objects only while `depth` > 0. */
static inline void typed_value(random_source *r, bson_t *into, const char *key, unsigned depth) {
    uint64_t kind = random_below(r, TYPED_KINDS + (depth ? 4 : 0));
    bson_t child;
    if (kind < TYPED_KINDS) {
        typed_scalar(r, into, key, kind);
        return;
    }
    bool array = kind % 2;
    (array ? bson_append_array_begin : bson_append_document_begin)(into, key, -1, &child);
    for (uint64_t i = 0, n = random_below(r, 4); i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", (unsigned)i);
        typed_value(r, &child, array ? name : random_below(r, 2) ? "a" : random_below(r, 2) ? "b" : "", depth - 1);
    }
    (array ? bson_append_array_end : bson_append_document_end)(into, &child);
}
