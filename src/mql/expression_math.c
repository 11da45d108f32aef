/* expression_math.c — functions of one number: for each a function for doubles, one for decimals, and the range where they are defined.
 * Integers are computed as doubles, except by $abs, $ceil and $floor. */
#include <float.h>
#include <math.h>

#include "mql/expression_int.h"
#include "mql/number.h"

/* ---- what libm has not ---- */

static double degrees_to_radians(double degrees) {
    return degrees * (M_PI / 180);
}

static double radians_to_degrees(double radians) {
    return radians * (180 / M_PI);
}

static bson_decimal128_t scaled(const bson_decimal128_t *x, const char *factor) {
    bson_decimal128_t by;
    bson_decimal128_from_string(factor, &by);
    return mql_decimal_multiply(x, &by);
}

static bson_decimal128_t decimal_to_radians(const bson_decimal128_t *x) {
    return scaled(x, "0.01745329251994329576923690768488613"); /* π/180 */
}

static bson_decimal128_t decimal_to_degrees(const bson_decimal128_t *x) {
    return scaled(x, "57.29577951308232087679815481410517"); /* 180/π */
}

/* ---- the functions ---- */

typedef struct math {
    double (*doubles)(double);
    bson_decimal128_t (*decimals)(const bson_decimal128_t *);
    int code; /* error code if the argument is outside of [low, high]; 0: defined everywhere */
    double low, high;
    const char *message; /* NULL: "cannot apply …" with the bounds */
} math;

enum { CEIL, FLOOR, EXP, LN, LOG10, SQRT, SIN, COS, TAN, ASIN, ACOS, ATAN, SINH, COSH, TANH, ASINH, ACOSH, ATANH, TO_RADIANS, TO_DEGREES };

#define FINITE -DBL_MAX, DBL_MAX
#define POSITIVE 0x1p-1074, INFINITY

static const math functions[] = {
    [CEIL] = {ceil, mql_decimal_ceil, 0, 0, 0, NULL},
    [FLOOR] = {floor, mql_decimal_floor, 0, 0, 0, NULL},
    [EXP] = {exp, mql_decimal_exp, 0, 0, 0, NULL},
    [LN] = {log, mql_decimal_ln, 28766, POSITIVE, "a positive number"},
    [LOG10] = {log10, mql_decimal_log10, 28761, POSITIVE, "a positive number"},
    [SQRT] = {sqrt, mql_decimal_sqrt, 28714, 0, INFINITY, "greater than or equal to 0"},
    [SIN] = {sin, mql_decimal_sin, 50989, FINITE, NULL},
    [COS] = {cos, mql_decimal_cos, 50989, FINITE, NULL},
    [TAN] = {tan, mql_decimal_tan, 50989, FINITE, NULL},
    [ASIN] = {asin, mql_decimal_asin, 50989, -1, 1, NULL},
    [ACOS] = {acos, mql_decimal_acos, 50989, -1, 1, NULL},
    [ATAN] = {atan, mql_decimal_atan, 0, 0, 0, NULL},
    [SINH] = {sinh, mql_decimal_sinh, 0, 0, 0, NULL},
    [COSH] = {cosh, mql_decimal_cosh, 0, 0, 0, NULL},
    [TANH] = {tanh, mql_decimal_tanh, 0, 0, 0, NULL},
    [ASINH] = {asinh, mql_decimal_asinh, 0, 0, 0, NULL},
    [ACOSH] = {acosh, mql_decimal_acosh, 50989, 1, INFINITY, NULL},
    [ATANH] = {atanh, mql_decimal_atanh, 50989, -1, 1, NULL},
    [TO_RADIANS] = {degrees_to_radians, decimal_to_radians, 0, 0, 0, NULL},
    [TO_DEGREES] = {radians_to_degrees, decimal_to_degrees, 0, 0, 0, NULL},
};

static err refuse(const mql__call *c, const math *f) {
    const char *shown = mql__show(c->run->arena, c->args[0]);
    if (f->message) {
        return mql__fail(c, f->code, "%s's argument must be %s, but is %s", mql__name(c), f->message, shown);
    }
    bool open = f->high == DBL_MAX;
    return mql__fail(c, f->code, "cannot apply %s to %s, value must be in %s%g,%g%s", mql__name(c), shown, open ? "(" : "[",
                     open ? -INFINITY : f->low, open ? INFINITY : f->high, open ? ")" : "]");
}

static err check_number(const mql__call *c) {
    return mql_is_number(c->args[0])
               ? OK
               : mql__fail(c, 28765, "%s only supports numeric types, not %s", mql__name(c), mql_type_name(c->args[0].type));
}

/* Decimals reach beyond the range of doubles, so the nearest double may be 0 or infinite. */
static bool within(const math *f, mql_value v) {
    double d = mql_as_double(v);
    if (v.type == BSON_TYPE_DECIMAL128) {
        bson_decimal128_t exact = mql_as_decimal(v);
        bool tiny = d == 0 && !mql_decimal_is_zero(&exact) && !mql_decimal_is_negative(&exact);
        bool huge = isinf(d) && mql_decimal_is_finite(&exact) && f->high == DBL_MAX;
        if (tiny || huge) {
            return f->low <= 0x1p-1074;
        }
    }
    return isnan(d) || (d >= f->low && d <= f->high);
}

static err apply(const mql__call *c, mql_value *value_out) {
    const math *f = &functions[c->e->operator->variant];
    mql_value v = c->args[0];
    TRY(check_number(c));
    if (f->code && !within(f, v)) {
        return refuse(c, f);
    }
    if (v.type == BSON_TYPE_DECIMAL128) {
        bson_decimal128_t x = mql_as_decimal(v), result = f->decimals(&x);
        *value_out = mql_decimal(c->run->arena, &result);
    } else {
        *value_out = mql_double(c->run->arena, f->doubles(mql_as_double(v)));
    }
    return OK;
}

/* $ceil and $floor leave integers alone. */
static err to_integer(const mql__call *c, mql_value *value_out) {
    if (c->args[0].type == BSON_TYPE_INT32 || c->args[0].type == BSON_TYPE_INT64) {
        *value_out = c->args[0];
        return OK;
    }
    return apply(c, value_out);
}

static err absolute(const mql__call *c, mql_value *value_out) {
    mql_value v = c->args[0];
    int64_t integer;
    TRY(check_number(c));
    if (v.type == BSON_TYPE_DECIMAL128) {
        bson_decimal128_t x = mql_as_decimal(v), result = mql_decimal_abs(&x);
        *value_out = mql_decimal(c->run->arena, &result);
    } else if (v.type == BSON_TYPE_DOUBLE) {
        *value_out = mql_double(c->run->arena, fabs(mql_as_double(v)));
    } else if (mql_as_integer(v, &integer) && integer == INT64_MIN) {
        return mql__fail(c, 28680, "can't take $abs of long long min");
    } else {
        *value_out = mql_integer(c->run->arena, v.type, integer < 0 ? -integer : integer);
    }
    return OK;
}

#define MATH(name, which)                                                                                                                  \
    { name, 1, 1, MQL__SERVICE | MQL__NULLS, .function = apply, .variant = which }

static const mql__operator rows[] = {
    {"$abs", 1, 1, MQL__SERVICE | MQL__NULLS, .function = absolute},
    {"$ceil", 1, 1, MQL__SERVICE | MQL__NULLS, .function = to_integer, .variant = CEIL},
    {"$floor", 1, 1, MQL__SERVICE | MQL__NULLS, .function = to_integer, .variant = FLOOR},
    MATH("$exp", EXP),
    MATH("$ln", LN),
    MATH("$log10", LOG10),
    MATH("$sqrt", SQRT),
    MATH("$sin", SIN),
    MATH("$cos", COS),
    MATH("$tan", TAN),
    MATH("$asin", ASIN),
    MATH("$acos", ACOS),
    MATH("$atan", ATAN),
    MATH("$sinh", SINH),
    MATH("$cosh", COSH),
    MATH("$tanh", TANH),
    MATH("$asinh", ASINH),
    MATH("$acosh", ACOSH),
    MATH("$atanh", ATANH),
    MATH("$degreesToRadians", TO_RADIANS),
    MATH("$radiansToDegrees", TO_DEGREES),
};
const mql__operators mql__math_operators = MQL__OPERATORS(rows);
