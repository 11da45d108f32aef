/* number.c — sums, differences and products of numbers of any type, and conversions. */
#include "mql/number.h"

#include <math.h>
#include <stdio.h>

/* The three operations, one function for each kind of operands. `integers` returns false on overflow of int64. */
typedef struct operation {
    bool (*integers)(int64_t x, int64_t y, int64_t *result_out);
    double (*doubles)(double x, double y);
    bson_decimal128_t (*decimals)(const bson_decimal128_t *x, const bson_decimal128_t *y);
} operation;

static bool add_integers(int64_t x, int64_t y, int64_t *result_out) {
    return !__builtin_add_overflow(x, y, result_out);
}

static bool subtract_integers(int64_t x, int64_t y, int64_t *result_out) {
    return !__builtin_sub_overflow(x, y, result_out);
}

static bool multiply_integers(int64_t x, int64_t y, int64_t *result_out) {
    return !__builtin_mul_overflow(x, y, result_out);
}

static double add_doubles(double x, double y) {
    return x + y;
}

static double subtract_doubles(double x, double y) {
    return x - y;
}

static double multiply_doubles(double x, double y) {
    return x * y;
}

static const operation sum = {add_integers, add_doubles, mql_decimal_add};
static const operation difference = {subtract_integers, subtract_doubles, mql_decimal_subtract};
static const operation product = {multiply_integers, multiply_doubles, mql_decimal_multiply};

static int width(bson_type_t type) {
    return type == BSON_TYPE_INT32 ? 0 : type == BSON_TYPE_INT64 ? 1 : type == BSON_TYPE_DOUBLE ? 2 : 3;
}

bson_type_t mql_number_type(bson_type_t x, bson_type_t y) {
    return width(x) >= width(y) ? x : y;
}

mql_value mql_integer(arena *a, bson_type_t type, int64_t number) {
    bool small = type == BSON_TYPE_INT32 && number >= INT32_MIN && number <= INT32_MAX;
    return small ? mql_int32(a, (int32_t)number) : mql_int64(a, number);
}

bson_decimal128_t mql_to_decimal(mql_value v) {
    int64_t integer;
    switch (v.type) {
    case BSON_TYPE_DECIMAL128:
        return mql_as_decimal(v);
    case BSON_TYPE_DOUBLE:
        return mql_decimal_of_double(doc_load_double(v.bytes.p));
    default:
        return mql_decimal_of_int64(mql_as_integer(v, &integer) ? integer : 0);
    }
}

/* False: the operands are integers, and the result overflows int64. */
static bool apply(arena *a, const operation *op, mql_value x, mql_value y, mql_value *result_out) {
    bson_type_t type = mql_number_type(x.type, y.type);
    if (type == BSON_TYPE_DECIMAL128) {
        bson_decimal128_t dx = mql_to_decimal(x), dy = mql_to_decimal(y);
        bson_decimal128_t result = op->decimals(&dx, &dy);
        *result_out = mql_decimal(a, &result);
        return true;
    }
    if (type == BSON_TYPE_DOUBLE) {
        *result_out = mql_double(a, op->doubles(mql_as_double(x), mql_as_double(y)));
        return true;
    }
    int64_t ix, iy, result;
    if (!mql_as_integer(x, &ix) || !mql_as_integer(y, &iy) || !op->integers(ix, iy, &result)) {
        *result_out = mql_missing();
        return false;
    }
    *result_out = mql_integer(a, type, result);
    return true;
}

static mql_value apply_growing(arena *a, const operation *op, mql_value x, mql_value y) {
    mql_value result;
    return apply(a, op, x, y, &result) ? result : mql_double(a, op->doubles(mql_as_double(x), mql_as_double(y)));
}

mql_value mql_sum(arena *a, mql_value x, mql_value y) {
    return apply_growing(a, &sum, x, y);
}

mql_value mql_difference(arena *a, mql_value x, mql_value y) {
    return apply_growing(a, &difference, x, y);
}

mql_value mql_product(arena *a, mql_value x, mql_value y) {
    return apply_growing(a, &product, x, y);
}

bool mql_sum_exact(arena *a, mql_value x, mql_value y, mql_value *sum_out) {
    return apply(a, &sum, x, y, sum_out);
}

bool mql_product_exact(arena *a, mql_value x, mql_value y, mql_value *product_out) {
    return apply(a, &product, x, y, product_out);
}

/* ---- converting ---- */

static bool truncated(mql_value v, int64_t *integer_out) {
    *integer_out = 0;
    if (v.type == BSON_TYPE_DECIMAL128) {
        bson_decimal128_t decimal = mql_as_decimal(v);
        return mql_decimal_to_int64(&decimal, integer_out);
    }
    if (v.type != BSON_TYPE_DOUBLE) {
        return mql_as_integer(v, integer_out);
    }
    double number = doc_load_double(v.bytes.p);
    if (!(number >= -0x1p63 && number < 0x1p63)) {
        return false;
    }
    *integer_out = (int64_t)number;
    return true;
}

/* A finite decimal beyond the range of double does not convert. */
static bool to_double(arena *a, mql_value v, mql_value *number_out) {
    double number = mql_as_double(v);
    if (v.type == BSON_TYPE_DECIMAL128) {
        bson_decimal128_t decimal = mql_as_decimal(v);
        bool lost = mql_decimal_is_finite(&decimal) && (isinf(number) || (number == 0 && !mql_decimal_is_zero(&decimal)));
        if (lost) {
            return false;
        }
    }
    *number_out = mql_double(a, number);
    return true;
}

bool mql_number_to(arena *a, mql_value v, bson_type_t type, mql_value *number_out) {
    int64_t integer;
    *number_out = mql_missing();
    switch (type) {
    case BSON_TYPE_INT32:
        if (!truncated(v, &integer) || integer < INT32_MIN || integer > INT32_MAX) {
            return false;
        }
        *number_out = mql_int32(a, (int32_t)integer);
        return true;
    case BSON_TYPE_INT64:
        if (!truncated(v, &integer)) {
            return false;
        }
        *number_out = mql_int64(a, integer);
        return true;
    case BSON_TYPE_DOUBLE:
        return to_double(a, v, number_out);
    case BSON_TYPE_DECIMAL128: {
        bson_decimal128_t decimal = mql_to_decimal(v);
        *number_out = mql_decimal(a, &decimal);
        return true;
    }
    default:
        return false;
    }
}

bson_decimal128_t mql_decimal_exact(double number) {
    char text[64];
    bson_decimal128_t decimal;
    snprintf(text, sizeof text, isfinite(number) ? "%.33e" : "%f", number);
    bson_decimal128_from_string(text, &decimal);
    return decimal;
}
