/* order_number.c — numbers of all four types as bytes that sort exactly.
 *
 * A number x is spelled as its *base*, which is x rounded toward zero to a double, and if that is not exact a *rest*, which is x itself in
 * decimal:
 *
 *   offset  size
 *   0       8     the base as an integer that sorts: big-endian, sign bit inverted if x is positive, all bits if it is negative; NaN is 0
 *   8       1     0: x equals the base. 1: x is farther from zero, and the rest follows:
 *   9       2     the exponent E of |x| = 0.d1d2… × 10^E, d1 not 0, plus EXPONENT_BIAS, big-endian
 *   11      15    d1d2… as an integer of 34 digits, big-endian
 *
 * From offset 8 on, the bytes of a negative number are inverted. A number that no double equals is an integer of 19 digits or a Decimal128,
 * so 34 digits represent it exactly. Two numbers with the same base and a rest compare by the rest alone. Example: the double 0.1 is
 * BFB999999999999A 00 (inverting the sign bit turns 3FB… into BFB…). The Decimal128 0.1 is less than that double, so its base is the double
 * below: BFB9999999999999 01 1838 (E = 0), then 10^33. */
#include <endian.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "doc/order_int.h"

enum {
    DIGITS = 34,
    EXPONENT_BIAS = 6200, /* E is from -6175 to 6145 */
    DECIMAL_BIAS = 6176,  /* bias of the exponent in a Decimal128 */
    DECIMAL_EXPONENT_MAX = 12287,
    BASE_BYTES = 8,
    REST_BYTES = 17
};

/* A finite number, not 0: ± digits × 10^exponent. */
typedef struct decimal {
    unsigned __int128 digits;
    int exponent;
    bool negative;
} decimal;

typedef struct parts {
    double base; /* has x's sign even if it is 0 */
    bool more;   /* x is `rest`, not `base` */
    decimal rest;
} parts;

static unsigned __int128 power10(int n) {
    unsigned __int128 power = 1;
    for (; n > 0; n--) {
        power *= 10;
    }
    return power;
}

/* ---- taking numbers apart ---- */

static parts of_double(double x) {
    return (parts){.base = x == 0 ? 0 : x};
}

static parts of_integer(int64_t x) {
    uint64_t magnitude = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    int extra = magnitude >> 53 ? 11 - __builtin_clzll(magnitude) : 0; /* low bits that do not fit a double's mantissa */
    uint64_t kept = magnitude >> extra << extra;
    parts p = {.base = x < 0 ? -(double)kept : (double)kept, .more = kept != magnitude};
    p.rest = (decimal){.digits = magnitude, .negative = x < 0};
    return p;
}

/* |d| as a double, rounded by `mode`. The text has no decimal point, so every locale reads it the same way. */
static double round_decimal(const decimal *d, int mode) {
    char text[80];
    uint64_t low_power = 1000000000000000000u; /* 10^18 */
    int before = fegetround();
    snprintf(text, sizeof text, "%llu%018llue%d", (unsigned long long)(d->digits / low_power), (unsigned long long)(d->digits % low_power),
             d->exponent);
    fesetround(mode);
    double rounded = strtod(text, NULL);
    fesetround(before);
    return rounded;
}

/* Reads an IEEE 754-2008 decimal128 with a binary integer significand; a significand of too many digits counts as 0. False: not finite, and
 * `*special` is the value. */
static bool read_decimal(const char *p, decimal *d_out, double *special) {
    uint64_t low = (uint64_t)doc_load_i64(p), high = (uint64_t)doc_load_i64(p + 8);
    bool negative = high >> 63;
    unsigned combination = (unsigned)(high >> 58) & 31;
    if (combination >= 30) {
        *special = combination == 31 ? (double)NAN : negative ? -(double)INFINITY : (double)INFINITY;
        return false;
    }
    bool too_many = combination >= 24; /* a significand of 2^113 or more */
    int exponent = (int)(too_many ? high >> 47 & 0x3FFF : high >> 49 & 0x3FFF);
    unsigned __int128 digits = too_many ? 0 : (unsigned __int128)(high & 0x1FFFFFFFFFFFF) << 64 | low;
    *d_out = (decimal){.digits = digits >= power10(DIGITS) ? 0 : digits, .exponent = exponent - DECIMAL_BIAS, .negative = negative};
    return true;
}

static parts of_decimal(const char *bytes) {
    decimal d;
    double special;
    if (!read_decimal(bytes, &d, &special)) {
        return of_double(special);
    }
    if (d.digits == 0) {
        return of_double(0);
    }
    double base = round_decimal(&d, FE_DOWNWARD);
    return (parts){.base = d.negative ? -base : base, .more = base != round_decimal(&d, FE_UPWARD), .rest = d};
}

static parts parts_of(const doc_element *e) {
    switch (e->type) {
    case BSON_TYPE_INT32:
        return of_double(doc_load_i32(e->value.p));
    case BSON_TYPE_INT64:
        return of_integer(doc_load_i64(e->value.p));
    case BSON_TYPE_DOUBLE:
        return of_double(doc_load_double(e->value.p));
    default:
        return of_decimal(e->value.p);
    }
}

/* Numbers beyond the largest double give infinity. */
double doc_order_nearest(const doc_element *number, bool *exact_out) {
    parts p = parts_of(number);
    *exact_out = !p.more;
    if (!p.more) {
        return p.base;
    }
    double magnitude = round_decimal(&p.rest, FE_TONEAREST);
    return p.rest.negative ? -magnitude : magnitude;
}

/* ---- spelling ---- */

static uint64_t sortable(double base) {
    uint64_t bits;
    if (isnan(base)) {
        return 0;
    }
    memcpy(&bits, &base, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static void spell_rest(char *into, const decimal *d) {
    int n = 1;
    for (unsigned __int128 above = 10; n < DIGITS && d->digits >= above; above *= 10) {
        n++;
    }
    uint16_t exponent = htobe16((uint16_t)(n + d->exponent + EXPONENT_BIAS));
    unsigned __int128 aligned = d->digits * power10(DIGITS - n);
    memcpy(into, &exponent, sizeof exponent);
    for (int i = REST_BYTES - 1; i >= 2; i--, aligned >>= 8) {
        into[i] = (char)(unsigned char)aligned;
    }
}

size_t doc__order_spell_number(char *into, const doc_element *e) {
    parts p = parts_of(e);
    uint64_t base = htobe64(sortable(p.base));
    size_t n = BASE_BYTES + 1;
    memcpy(into, &base, sizeof base);
    into[BASE_BYTES] = p.more;
    if (p.more) {
        spell_rest(into + n, &p.rest);
        n += REST_BYTES;
    }
    for (size_t i = BASE_BYTES; signbit(p.base) && !isnan(p.base) && i < n; i++) {
        into[i] = (char)~into[i];
    }
    return n;
}

/* ---- comparing ---- */

static int compare_doubles(double a, double b) {
    if (a < b || a > b) {
        return a < b ? -1 : 1;
    }
    return (a == a) - (b == b);
}

static int compare_integers(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int64_t integer_of(const doc_element *e) {
    return e->type == BSON_TYPE_INT32 ? doc_load_i32(e->value.p) : doc_load_i64(e->value.p);
}

static int compare_spelled(const doc_element *a, const doc_element *b) {
    char sa[DOC_ORDER_NUMBER_BYTES], sb[DOC_ORDER_NUMBER_BYTES];
    size_t na = doc__order_spell_number(sa, a), nb = doc__order_spell_number(sb, b);
    return slice_cmp(slice_of(sa, na), slice_of(sb, nb));
}

int doc__order_compare_numbers(const doc_element *a, const doc_element *b) {
    bool integer_a = a->type == BSON_TYPE_INT32 || a->type == BSON_TYPE_INT64;
    bool integer_b = b->type == BSON_TYPE_INT32 || b->type == BSON_TYPE_INT64;
    if (integer_a && integer_b) {
        return compare_integers(integer_of(a), integer_of(b));
    }
    if (a->type == BSON_TYPE_DOUBLE && b->type == BSON_TYPE_DOUBLE) {
        return compare_doubles(doc_load_double(a->value.p), doc_load_double(b->value.p));
    }
    return compare_spelled(a, b);
}

/* ---- reading ---- */

static double from_sortable(uint64_t bits) {
    double base;
    if (bits == 0) {
        return (double)NAN;
    }
    bits = bits >> 63 ? bits & ~((uint64_t)1 << 63) : ~bits;
    memcpy(&base, &bits, sizeof base);
    return base;
}

static void read_base(double x, char *value, bson_type_t *type_out) {
    bool integer = x >= -9223372036854775808.0 && x < 9223372036854775808.0 && x == (double)(int64_t)x;
    int64_t bits;
    if (integer && (int64_t)x == (int32_t)(int64_t)x) {
        *type_out = BSON_TYPE_INT32;
        doc_store_i32(value, (int32_t)x);
        return;
    }
    *type_out = integer ? BSON_TYPE_INT64 : BSON_TYPE_DOUBLE;
    memcpy(&bits, &x, sizeof bits);
    doc_store_i64(value, integer ? (int64_t)x : bits);
}

static bool read_rest(const char *p, bool negative, char *value, bson_type_t *type_out) {
    unsigned char bytes[REST_BYTES];
    decimal d = {.negative = negative};
    for (size_t i = 0; i < REST_BYTES; i++) {
        bytes[i] = (unsigned char)(negative ? ~p[i] : p[i]);
        d.digits = i < 2 ? 0 : d.digits << 8 | bytes[i];
    }
    d.exponent = (bytes[0] << 8 | bytes[1]) - EXPONENT_BIAS - DIGITS;
    if (d.digits == 0) {
        return false;
    }
    for (; d.digits % 10 == 0; d.digits /= 10) {
        d.exponent++;
    }
    const unsigned __int128 least = (unsigned __int128)1 << 63;
    if (d.exponent >= 0 && d.exponent < 19 && d.digits <= least && d.digits * power10(d.exponent) <= least - !negative) {
        uint64_t magnitude = (uint64_t)(d.digits * power10(d.exponent));
        *type_out = BSON_TYPE_INT64;
        doc_store_i64(value, (int64_t)(negative ? 0 - magnitude : magnitude));
        return true;
    }
    for (; d.exponent + DECIMAL_BIAS > DECIMAL_EXPONENT_MAX && d.digits < power10(DIGITS - 1); d.digits *= 10) {
        d.exponent--;
    }
    int exponent = d.exponent + DECIMAL_BIAS;
    if (exponent < 0 || exponent > DECIMAL_EXPONENT_MAX || d.digits >= power10(DIGITS)) {
        return false;
    }
    *type_out = BSON_TYPE_DECIMAL128;
    doc_store_i64(value, (int64_t)(uint64_t)d.digits);
    doc_store_i64(value + 8, (int64_t)((uint64_t)negative << 63 | (uint64_t)exponent << 49 | (uint64_t)(d.digits >> 64)));
    return true;
}

size_t doc__order_read_number(slice spelled, char value[16], bson_type_t *type_out) {
    uint64_t bits;
    char again[DOC_ORDER_NUMBER_BYTES];
    if (spelled.n < BASE_BYTES + 1) {
        return 0;
    }
    memcpy(&bits, spelled.p, sizeof bits);
    double base = from_sortable(be64toh(bits));
    bool negative = signbit(base) && !isnan(base);
    bool more = (char)(negative ? ~spelled.p[BASE_BYTES] : spelled.p[BASE_BYTES]) != 0;
    size_t n = BASE_BYTES + 1 + (more ? REST_BYTES : 0);
    if (spelled.n < n) {
        return 0;
    }
    if (!more) {
        read_base(base, value, type_out);
    } else if (!read_rest(spelled.p + BASE_BYTES + 1, negative, value, type_out)) {
        return 0;
    }
    size_t value_n = *type_out == BSON_TYPE_DECIMAL128 ? 16 : *type_out == BSON_TYPE_INT32 ? 4 : 8;
    doc_element e = {.type = *type_out, .value = slice_of(value, value_n)};
    return doc__order_spell_number(again, &e) == n && memcmp(again, spelled.p, n) == 0 ? n : 0;
}
