/* decimal.h — IEEE 754 decimal128 arithmetic on BSON's Decimal128, by Intel's decimal floating-point library.
 *
 * BSON stores a Decimal128 in that library's own encoding (BID), so NaN, infinities, -0 and exponents pass through unchanged. Results are
 * rounded half to even, to 34 digits. No function fails: a result that does not exist is NaN. Any thread. */
#pragma once

#include <bson/bson.h>
#include <stdbool.h>

bson_decimal128_t mql_decimal_of_int64(int64_t number);
/* Rounded to 15 significant digits, as MongoDB converts doubles: 0.1 becomes 0.100000000000000. */
bson_decimal128_t mql_decimal_of_double(double number);

/* Truncated towards zero. False if the result does not fit, or the number is not finite. */
bool mql_decimal_to_int64(const bson_decimal128_t *x, int64_t *integer_out);

bool mql_decimal_is_nan(const bson_decimal128_t *x);
bool mql_decimal_is_finite(const bson_decimal128_t *x);
bool mql_decimal_is_zero(const bson_decimal128_t *x);
bool mql_decimal_is_negative(const bson_decimal128_t *x);                        /* the sign bit: true for -0 */
int mql_decimal_compare(const bson_decimal128_t *x, const bson_decimal128_t *y); /* < 0, 0, > 0; NaN comes first and equals itself */

/* bson_decimal128_t mql_decimal_NAME(const bson_decimal128_t *x, const bson_decimal128_t *y); `remainder` has the sign of x, as $mod has */
#define MQL_DECIMAL_BINARY(X) X(add) X(subtract) X(multiply) X(divide) X(remainder) X(pow) X(atan2)
/* bson_decimal128_t mql_decimal_NAME(const bson_decimal128_t *x) */
#define MQL_DECIMAL_UNARY(X)                                                                                                               \
    X(abs)                                                                                                                                 \
    X(negate)                                                                                                                              \
    X(ceil)                                                                                                                                \
    X(floor)                                                                                                                               \
    X(truncate)                                                                                                                            \
    X(sqrt)                                                                                                                                \
    X(exp)                                                                                                                                 \
    X(ln)                                                                                                                                  \
    X(log10)                                                                                                                               \
    X(sin)                                                                                                                                 \
    X(cos)                                                                                                                                 \
    X(tan)                                                                                                                                 \
    X(asin)                                                                                                                                \
    X(acos)                                                                                                                                \
    X(atan)                                                                                                                                \
    X(sinh)                                                                                                                                \
    X(cosh)                                                                                                                                \
    X(tanh)                                                                                                                                \
    X(asinh)                                                                                                                               \
    X(acosh)                                                                                                                               \
    X(atanh)

#define X(name) bson_decimal128_t mql_decimal_##name(const bson_decimal128_t *x, const bson_decimal128_t *y);
MQL_DECIMAL_BINARY(X)
#undef X
#define X(name) bson_decimal128_t mql_decimal_##name(const bson_decimal128_t *x);
MQL_DECIMAL_UNARY(X)
#undef X

/* Rounded to 10^exponent: with -2 to two decimal places, with 2 to hundreds. */
bson_decimal128_t mql_decimal_round(const bson_decimal128_t *x, int exponent);       /* half to even */
bson_decimal128_t mql_decimal_truncate_at(const bson_decimal128_t *x, int exponent); /* towards zero */
