/* number.c — numbers of all widths: conversion, arithmetic with Java's and TinkerPop's promotion, text. */
#include <bson/bson.h>
#include <math.h>

#include "gremlin/value.h"

#define DECIMAL_CALL_BY_REFERENCE 0
#define DECIMAL_GLOBAL_ROUNDING 0
#define DECIMAL_GLOBAL_EXCEPTION_FLAGS 0
#include <bid_conf.h>
#include <bid_functions.h>

enum { HALF_EVEN = BID_ROUNDING_TO_NEAREST };

static BID_UINT128 bid_of(gremlin_wide w) {
    BID_UINT128 bid;
    bid.w[0] = w.low;
    bid.w[1] = w.high;
    return bid;
}

static gremlin_wide wide_of_bid(BID_UINT128 bid) {
    return (gremlin_wide){bid.w[0], bid.w[1]};
}

gremlin_wide gremlin_wide_of(gremlin_bigint number) {
    return (gremlin_wide){(uint64_t)number, (uint64_t)((unsigned __int128)number >> 64)};
}

static gremlin_bigint big_of_wide(const gremlin_wide *w) {
    return (gremlin_bigint)((unsigned __int128)w->high << 64 | w->low);
}

double gremlin_as_double(gremlin_value number) {
    _IDEC_flags flags = 0;
    switch (number.type) {
    case GREMLIN_FLOAT:
    case GREMLIN_DOUBLE:
        return number.d;
    case GREMLIN_BIGINT:
        return (double)big_of_wide(number.wide);
    case GREMLIN_DECIMAL:
        return bid128_to_binary64(bid_of(*number.wide), HALF_EVEN, &flags);
    default:
        return (double)number.i;
    }
}

static gremlin_bigint big_of_double(double d) {
    return isfinite(d) && fabs(d) < 1e38 ? (gremlin_bigint)d : 0;
}

gremlin_bigint gremlin_as_big(gremlin_value number) {
    switch (number.type) {
    case GREMLIN_FLOAT:
    case GREMLIN_DOUBLE:
        return big_of_double(number.d);
    case GREMLIN_BIGINT:
        return big_of_wide(number.wide);
    case GREMLIN_DECIMAL:
        return big_of_double(gremlin_as_double(number));
    default:
        return number.i;
    }
}

bool gremlin_as_long(gremlin_value number, int64_t *number_out) {
    gremlin_bigint big = gremlin_as_big(number);
    *number_out = (int64_t)big;
    return gremlin_is_whole(number) || (number.type == GREMLIN_BIGINT && big >= INT64_MIN && big <= INT64_MAX);
}

/* ---- arithmetic ---- */

static bool whole_fits(gremlin_type type, gremlin_bigint x) {
    switch (type) {
    case GREMLIN_BYTE:
        return x >= INT8_MIN && x <= INT8_MAX;
    case GREMLIN_SHORT:
        return x >= INT16_MIN && x <= INT16_MAX;
    case GREMLIN_INT:
        return x >= INT32_MIN && x <= INT32_MAX;
    default:
        return x >= INT64_MIN && x <= INT64_MAX;
    }
}

static bool calculate_big(gremlin_arithmetic what, gremlin_bigint x, gremlin_bigint y, gremlin_bigint *result_out) {
    switch (what) {
    case GREMLIN_ADD:
        return !__builtin_add_overflow(x, y, result_out);
    case GREMLIN_SUBTRACT:
        return !__builtin_sub_overflow(x, y, result_out);
    case GREMLIN_MULTIPLY:
        return !__builtin_mul_overflow(x, y, result_out);
    default:
        if (y == 0 || (y == -1 && x < 0 && -(x + 1) == (gremlin_bigint)(((unsigned __int128)1 << 127) - 1))) {
            return false;
        }
        *result_out = x / y;
        return true;
    }
}

static bool calculate_whole(arena *a, gremlin_arithmetic what, gremlin_type type, gremlin_value x, gremlin_value y, gremlin_value *out) {
    gremlin_bigint result;
    if (!calculate_big(what, gremlin_as_big(x), gremlin_as_big(y), &result)) {
        return false;
    }
    while (type < GREMLIN_BIGINT && !whole_fits(type, result)) {
        type++;
    }
    *out = type == GREMLIN_BIGINT ? gremlin_big(a, result) : gremlin_whole(type, (int64_t)result);
    return true;
}

static double calculate_double(gremlin_arithmetic what, double x, double y) {
    switch (what) {
    case GREMLIN_ADD:
        return x + y;
    case GREMLIN_SUBTRACT:
        return x - y;
    case GREMLIN_MULTIPLY:
        return x * y;
    default:
        return x / y;
    }
}

static BID_UINT128 decimal_of(gremlin_value number) {
    char text[64];
    gremlin_wide bits = {0, 0};
    if (number.type == GREMLIN_DECIMAL) {
        return bid_of(*number.wide);
    }
    size_t n = gremlin_is_whole(number) || number.type == GREMLIN_BIGINT ? gremlin_big_write(gremlin_as_big(number), text)
                                                                         : (size_t)snprintf(text, sizeof text, "%.17g", number.d);
    (void)gremlin_decimal_read(slice_of(text, n), &bits);
    return bid_of(bits);
}

static bool calculate_decimal(arena *a, gremlin_arithmetic what, gremlin_value x, gremlin_value y, gremlin_value *out) {
    _IDEC_flags flags = 0;
    BID_UINT128 p = decimal_of(x), q = decimal_of(y), r;
    switch (what) {
    case GREMLIN_ADD:
        r = bid128_add(p, q, HALF_EVEN, &flags);
        break;
    case GREMLIN_SUBTRACT:
        r = bid128_sub(p, q, HALF_EVEN, &flags);
        break;
    case GREMLIN_MULTIPLY:
        r = bid128_mul(p, q, HALF_EVEN, &flags);
        break;
    default:
        if (bid128_isZero(q)) {
            return false;
        }
        r = bid128_div(p, q, HALF_EVEN, &flags);
    }
    *out = gremlin_decimal(a, wide_of_bid(r));
    return true;
}

bool gremlin_calculate(arena *a, gremlin_arithmetic what, gremlin_value x, gremlin_value y, gremlin_value *result_out) {
    gremlin_type wider = x.type > y.type ? x.type : y.type;
    if (wider == GREMLIN_DECIMAL) {
        return calculate_decimal(a, what, x, y, result_out);
    }
    if (wider <= GREMLIN_BIGINT) {
        return calculate_whole(a, what, wider, x, y, result_out);
    }
    double d = calculate_double(what, gremlin_as_double(x), gremlin_as_double(y));
    bool stays_float = wider == GREMLIN_FLOAT && (x.type == y.type || (x.type <= GREMLIN_SHORT || y.type <= GREMLIN_SHORT));
    *result_out = stays_float ? gremlin_float((float)d) : gremlin_double(d);
    return true;
}

/* ---- text ---- */

bool gremlin_decimal_read(slice text, gremlin_wide *bits_out) {
    bson_decimal128_t d;
    char room[512];
    if (text.n == 0 || text.n >= sizeof room) {
        return false;
    }
    memcpy(room, text.p, text.n);
    room[text.n] = 0;
    if (!bson_decimal128_from_string(room, &d)) {
        return false;
    }
    *bits_out = (gremlin_wide){d.low, d.high};
    return true;
}

size_t gremlin_decimal_write(gremlin_wide bits, char room[64]) {
    bson_decimal128_t d = {.low = bits.low, .high = bits.high};
    char text[BSON_DECIMAL128_STRING];
    bson_decimal128_to_string(&d, text);
    size_t n = strlen(text);
    memcpy(room, text, n);
    return n;
}

bool gremlin_big_read(slice digits, gremlin_bigint *number_out) {
    bool negative = digits.n > 0 && digits.p[0] == '-';
    gremlin_bigint number = 0;
    size_t first = negative || (digits.n > 0 && digits.p[0] == '+') ? 1 : 0;
    for (size_t i = first; i < digits.n; i++) {
        if (digits.p[i] < '0' || digits.p[i] > '9' || __builtin_mul_overflow(number, (gremlin_bigint)10, &number) ||
            __builtin_add_overflow(number, (gremlin_bigint)(digits.p[i] - '0'), &number)) {
            return false;
        }
    }
    *number_out = negative ? -number : number;
    return digits.n > first;
}

size_t gremlin_big_write(gremlin_bigint number, char room[64]) {
    unsigned __int128 rest = number < 0 ? -(unsigned __int128)number : (unsigned __int128)number;
    char text[64];
    size_t n = 0;
    do {
        text[n++] = (char)('0' + (int)(rest % 10));
        rest /= 10;
    } while (rest);
    if (number < 0) {
        text[n++] = '-';
    }
    for (size_t i = 0; i < n; i++) {
        room[i] = text[n - 1 - i];
    }
    return n;
}
