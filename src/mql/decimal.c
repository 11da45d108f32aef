/* decimal.c — a thin layer over Intel's library (libbidgcc000: values passed by value, rounding mode and flags as arguments). */
#include "mql/decimal.h"

#include <math.h>

#define DECIMAL_CALL_BY_REFERENCE 0
#define DECIMAL_GLOBAL_ROUNDING 0
#define DECIMAL_GLOBAL_EXCEPTION_FLAGS 0
#include <bid_conf.h>
#include <bid_functions.h>

enum { HALF_EVEN = BID_ROUNDING_TO_NEAREST, TOWARDS_ZERO = BID_ROUNDING_TO_ZERO };
enum { EXPONENT_MIN = -6176, EXPONENT_MAX = 6111, DIGITS_OF_DOUBLE = 15 };

static BID_UINT128 in(const bson_decimal128_t *x) {
    BID_UINT128 bid;
    bid.w[0] = x->low;
    bid.w[1] = x->high;
    return bid;
}

static bson_decimal128_t out(BID_UINT128 bid) {
    return (bson_decimal128_t){.low = bid.w[0], .high = bid.w[1]};
}

/* ---- converting ---- */

bson_decimal128_t mql_decimal_of_int64(int64_t number) {
    return out(bid128_from_int64(number));
}

/* The number 1 × 10^exponent: bid128_quantize takes its target exponent from such a number. */
static BID_UINT128 unit(int exponent) {
    BID_UINT128 bid;
    bid.w[0] = 1;
    bid.w[1] = (uint64_t)(exponent - EXPONENT_MIN) << 49;
    return bid;
}

bson_decimal128_t mql_decimal_of_double(double number) {
    _IDEC_flags flags = 0;
    BID_UINT128 exact = binary64_to_bid128(number, HALF_EVEN, &flags);
    if (number == 0 || !isfinite(number)) {
        return out(exact);
    }
    int exponent = bid128_ilogb(exact, &flags) - DIGITS_OF_DOUBLE + 1;
    BID_UINT128 rounded = bid128_quantize(exact, unit(exponent), HALF_EVEN, &flags);
    if (bid128_ilogb(rounded, &flags) - exponent == DIGITS_OF_DOUBLE) { /* 9.99… became 10.0… */
        rounded = bid128_quantize(exact, unit(exponent + 1), HALF_EVEN, &flags);
    }
    return out(rounded);
}

bool mql_decimal_to_int64(const bson_decimal128_t *x, int64_t *integer_out) {
    _IDEC_flags flags = 0;
    int64_t integer = (int64_t)bid128_to_int64_int(in(x), &flags);
    bool valid = !(flags & BID_INVALID_EXCEPTION);
    *integer_out = valid ? integer : 0;
    return valid;
}

/* ---- asking ---- */

bool mql_decimal_is_nan(const bson_decimal128_t *x) {
    return bid128_isNaN(in(x));
}

bool mql_decimal_is_finite(const bson_decimal128_t *x) {
    return bid128_isFinite(in(x));
}

bool mql_decimal_is_zero(const bson_decimal128_t *x) {
    return bid128_isZero(in(x));
}

bool mql_decimal_is_negative(const bson_decimal128_t *x) {
    return bid128_isSigned(in(x));
}

int mql_decimal_compare(const bson_decimal128_t *x, const bson_decimal128_t *y) {
    _IDEC_flags flags = 0;
    bool x_nan = mql_decimal_is_nan(x), y_nan = mql_decimal_is_nan(y);
    if (x_nan || y_nan) {
        return (int)y_nan - (int)x_nan;
    }
    return bid128_quiet_greater(in(x), in(y), &flags) - bid128_quiet_less(in(x), in(y), &flags);
}

/* ---- arithmetic ---- */

#define BINARY_ROUNDED(name, function)                                                                                                     \
    bson_decimal128_t mql_decimal_##name(const bson_decimal128_t *x, const bson_decimal128_t *y) {                                         \
        _IDEC_flags flags = 0;                                                                                                             \
        return out(function(in(x), in(y), HALF_EVEN, &flags));                                                                             \
    }
BINARY_ROUNDED(add, bid128_add)
BINARY_ROUNDED(subtract, bid128_sub)
BINARY_ROUNDED(multiply, bid128_mul)
BINARY_ROUNDED(divide, bid128_div)
BINARY_ROUNDED(pow, bid128_pow)
BINARY_ROUNDED(atan2, bid128_atan2)

bson_decimal128_t mql_decimal_remainder(const bson_decimal128_t *x, const bson_decimal128_t *y) {
    _IDEC_flags flags = 0;
    return out(bid128_fmod(in(x), in(y), &flags));
}

#define UNARY_ROUNDED(name, function)                                                                                                      \
    bson_decimal128_t mql_decimal_##name(const bson_decimal128_t *x) {                                                                     \
        _IDEC_flags flags = 0;                                                                                                             \
        return out(function(in(x), HALF_EVEN, &flags));                                                                                    \
    }
UNARY_ROUNDED(sqrt, bid128_sqrt)
UNARY_ROUNDED(exp, bid128_exp)
UNARY_ROUNDED(ln, bid128_log)
UNARY_ROUNDED(log10, bid128_log10)
UNARY_ROUNDED(sin, bid128_sin)
UNARY_ROUNDED(cos, bid128_cos)
UNARY_ROUNDED(tan, bid128_tan)
UNARY_ROUNDED(asin, bid128_asin)
UNARY_ROUNDED(acos, bid128_acos)
UNARY_ROUNDED(atan, bid128_atan)
UNARY_ROUNDED(sinh, bid128_sinh)
UNARY_ROUNDED(cosh, bid128_cosh)
UNARY_ROUNDED(tanh, bid128_tanh)
UNARY_ROUNDED(asinh, bid128_asinh)
UNARY_ROUNDED(acosh, bid128_acosh)
UNARY_ROUNDED(atanh, bid128_atanh)

#define UNARY_EXACT(name, function)                                                                                                        \
    bson_decimal128_t mql_decimal_##name(const bson_decimal128_t *x) {                                                                     \
        _IDEC_flags flags = 0;                                                                                                             \
        return out(function(in(x), &flags));                                                                                               \
    }
UNARY_EXACT(ceil, bid128_round_integral_positive)
UNARY_EXACT(floor, bid128_round_integral_negative)
UNARY_EXACT(truncate, bid128_round_integral_zero)

bson_decimal128_t mql_decimal_abs(const bson_decimal128_t *x) {
    return out(bid128_abs(in(x)));
}

bson_decimal128_t mql_decimal_negate(const bson_decimal128_t *x) {
    return out(bid128_negate(in(x)));
}

/* A number that already ends at or above 10^exponent is left as it is: quantizing would add zeros, or fail if 34 digits do not suffice. */
static bson_decimal128_t round_at(const bson_decimal128_t *x, int exponent, unsigned mode) {
    _IDEC_flags flags = 0;
    int at = exponent < EXPONENT_MIN ? EXPONENT_MIN : exponent > EXPONENT_MAX ? EXPONENT_MAX : exponent;
    BID_UINT128 rounded = bid128_quantize(in(x), unit(at), mode, &flags);
    return flags & BID_INVALID_EXCEPTION ? *x : out(rounded);
}

bson_decimal128_t mql_decimal_round(const bson_decimal128_t *x, int exponent) {
    return round_at(x, exponent, HALF_EVEN);
}

bson_decimal128_t mql_decimal_truncate_at(const bson_decimal128_t *x, int exponent) {
    return round_at(x, exponent, TOWARDS_ZERO);
}
