/* expression_arithmetic.c — arithmetic on several numbers, and sums and differences with dates. Functions of one number:
 * expression_math.c. */
#include <inttypes.h>
#include <math.h>

#include "mql/expression_int.h"
#include "mql/number.h"

/* ---- sums with dates: milliseconds, rounded ---- */

static bool as_milliseconds(mql_value v, int64_t *ms_out) {
    *ms_out = 0;
    if (v.type == BSON_TYPE_DOUBLE) {
        double d = mql_as_double(v);
        bool fits = d >= -0x1p63 && d < 0x1p63;
        *ms_out = fits ? llround(d) : 0;
        return fits;
    }
    if (v.type == BSON_TYPE_DECIMAL128) {
        bson_decimal128_t d = mql_as_decimal(v), rounded = mql_decimal_round(&d, 0);
        return mql_decimal_to_int64(&rounded, ms_out);
    }
    return mql_as_integer(v, ms_out);
}

static err date_overflow(const mql__call *c) {
    return mql__fail(c, 15, "date overflow");
}

/* ---- $add and $multiply: until the first null, from left to right ---- */

typedef struct total {
    mql_value number; /* so far */
    bool int32_only;  /* all operands were int32: the result is int32 again if it fits */
    bool has_date;
    int64_t date;
} total;

static err finish_total(const mql__call *c, const total *t, mql_value *value_out) {
    int64_t integer;
    if (t->has_date) {
        int64_t ms;
        if (!as_milliseconds(t->number, &ms) || __builtin_add_overflow(ms, t->date, &ms)) {
            return date_overflow(c);
        }
        *value_out = mql_date(c->run->arena, ms);
        return OK;
    }
    *value_out = t->number;
    bool whole = t->int32_only && t->number.type == BSON_TYPE_INT64 && mql_as_integer(t->number, &integer);
    return whole ? mql__integer_result(c, integer, value_out) : OK;
}

/* With a date each number is rounded by itself. */
static err add_one(const mql__call *c, total *t, mql_value v) {
    int64_t ms;
    if (v.type == BSON_TYPE_DATE_TIME) {
        if (t->has_date) {
            return mql__fail(c, 16612, "only one date allowed in an $add expression");
        }
        t->has_date = true;
        t->date = mql_as_date(v);
        return OK;
    }
    if (!mql_is_number(v)) {
        return mql__fail(c, 14, "$add only supports numeric or date types, not %s", mql_type_name(v.type));
    }
    if (t->has_date) {
        return as_milliseconds(v, &ms) && !__builtin_add_overflow(t->date, ms, &t->date) ? OK : date_overflow(c);
    }
    t->number = mql_sum(c->run->arena, t->number, v);
    return OK;
}

static err multiply_one(const mql__call *c, total *t, mql_value v) {
    if (!mql_is_number(v)) {
        return mql__fail(c, 14, "$multiply only supports numeric types, not %s", mql_type_name(v.type));
    }
    t->number = mql_product(c->run->arena, t->number, v);
    return OK;
}

static err accumulate(const mql__call *c, mql_value *value_out) {
    bool product = c->e->operator->variant;
    total t = {.number = mql_int32(c->run->arena, product), .int32_only = true};
    for (size_t i = 0; i < c->n; i++) {
        mql_value v;
        TRY(mql__argument(c, i, &v));
        if (mql_is_nullish(v)) {
            *value_out = mql_null();
            return OK;
        }
        TRY((product ? multiply_one : add_one)(c, &t, v));
        t.int32_only &= v.type == BSON_TYPE_INT32;
    }
    return finish_total(c, &t, value_out);
}

/* ---- $subtract ---- */

static err refuse_subtract(const mql__call *c) {
    const char *from = c->args[0].type == BSON_TYPE_DATE_TIME ? "Date" : mql_type_name(c->args[0].type);
    return mql__fail(c, 14, "can't $subtract %s from %s", mql_type_name(c->args[1].type), from);
}

static err subtract(const mql__call *c, mql_value *value_out) {
    mql_value x = c->args[0], y = c->args[1];
    int64_t ms, result;
    if (mql_is_number(x) && mql_is_number(y)) {
        *value_out = mql_difference(c->run->arena, x, y);
        return OK;
    }
    bool dates = x.type == BSON_TYPE_DATE_TIME && y.type == BSON_TYPE_DATE_TIME;
    if (x.type != BSON_TYPE_DATE_TIME || !(dates || mql_is_number(y))) {
        return refuse_subtract(c);
    }
    ms = dates ? mql_as_date(y) : 0;
    if ((!dates && !as_milliseconds(y, &ms)) || __builtin_sub_overflow(mql_as_date(x), ms, &result)) {
        return date_overflow(c);
    }
    *value_out = dates ? mql_int64(c->run->arena, result) : mql_date(c->run->arena, result);
    return OK;
}

/* ---- $divide, $mod ---- */

static bool either_decimal(const mql__call *c) {
    return c->args[0].type == BSON_TYPE_DECIMAL128 || c->args[1].type == BSON_TYPE_DECIMAL128;
}

static err divide(const mql__call *c, mql_value *value_out) {
    mql_value x = c->args[0], y = c->args[1];
    if (!mql_is_number(x) || !mql_is_number(y)) {
        return mql__fail(c, 14, "$divide only supports numeric types, not %s and %s", mql_type_name(x.type), mql_type_name(y.type));
    }
    if (mql_as_double(y) == 0) {
        return mql__fail(c, 2, "can't $divide by zero");
    }
    if (either_decimal(c)) {
        bson_decimal128_t dx = mql_to_decimal(x), dy = mql_to_decimal(y), result = mql_decimal_divide(&dx, &dy);
        *value_out = mql_decimal(c->run->arena, &result);
    } else {
        *value_out = mql_double(c->run->arena, mql_as_double(x) / mql_as_double(y));
    }
    return OK;
}

static bool is_decimal_zero(mql_value v) {
    bson_decimal128_t d = mql_to_decimal(v);
    return mql_decimal_is_zero(&d);
}

static err modulo(const mql__call *c, mql_value *value_out) {
    mql_value x = c->args[0], y = c->args[1];
    arena *a = c->run->arena;
    int64_t ix, iy;
    if (!mql_is_number(x) || !mql_is_number(y)) {
        return mql__fail(c, 16611, "$mod only supports numeric types, not %s and %s", mql_type_name(x.type), mql_type_name(y.type));
    }
    if (either_decimal(c) ? is_decimal_zero(y) : mql_as_double(y) == 0) {
        return mql__fail(c, either_decimal(c) ? 5733415 : 16610, "can't $mod by zero");
    }
    if (either_decimal(c)) {
        bson_decimal128_t dx = mql_to_decimal(x), dy = mql_to_decimal(y), result = mql_decimal_remainder(&dx, &dy);
        *value_out = mql_decimal(a, &result);
    } else if (x.type == BSON_TYPE_DOUBLE || !mql_as_integer(y, &iy) || !mql_as_integer(x, &ix)) {
        *value_out = mql_double(a, fmod(mql_as_double(x), mql_as_double(y)));
    } else {
        int64_t result = iy == -1 ? 0 : ix % iy;
        bool wide = x.type == BSON_TYPE_INT64 || y.type == BSON_TYPE_INT64;
        *value_out = wide ? mql_int64(a, result) : mql_int32(a, (int32_t)result);
    }
    return OK;
}

/* ---- $pow ---- */

/* False: the result does not fit. */
static bool integer_power(int64_t base, int64_t exponent, int64_t *power_out) {
    *power_out = 1;
    if (base == 1 || base == 0 || base == -1) {
        *power_out = exponent == 0 || base == 1 ? 1 : base == 0 ? 0 : exponent % 2 ? -1 : 1;
        return true;
    }
    if (exponent < 0 || exponent > 63) {
        return false;
    }
    for (int64_t i = 0; i < exponent; i++) {
        if (__builtin_mul_overflow(*power_out, base, power_out)) {
            return false;
        }
    }
    return true;
}

static err check_power(const mql__call *c) {
    mql_value base = c->args[0], exponent = c->args[1];
    if (!mql_is_number(base)) {
        return mql__fail(c, 28762, "$pow's base must be numeric, not %s", mql_type_name(base.type));
    }
    if (!mql_is_number(exponent)) {
        return mql__fail(c, 28763, "$pow's exponent must be numeric, not %s", mql_type_name(exponent.type));
    }
    if (mql_as_double(base) == 0 && mql_as_double(exponent) < 0) {
        return mql__fail(c, 28764, "$pow cannot take a base of 0 and a negative exponent");
    }
    return OK;
}

static err power(const mql__call *c, mql_value *value_out) {
    mql_value base = c->args[0], exponent = c->args[1];
    int64_t ib, ie, result;
    TRY(check_power(c));
    bson_type_t type = mql_number_type(base.type, exponent.type);
    if (type == BSON_TYPE_DECIMAL128) {
        bson_decimal128_t db = mql_to_decimal(base), de = mql_to_decimal(exponent), raised = mql_decimal_pow(&db, &de);
        *value_out = mql_decimal(c->run->arena, &raised);
    } else if (type != BSON_TYPE_DOUBLE && mql_as_integer(base, &ib) && mql_as_integer(exponent, &ie) && integer_power(ib, ie, &result)) {
        *value_out = mql_integer(c->run->arena, type, result);
    } else {
        *value_out = mql_double(c->run->arena, pow(mql_as_double(base), mql_as_double(exponent)));
    }
    return OK;
}

/* ---- $log ---- */

static bson_decimal128_t decimal_log(const mql__call *c) {
    bson_decimal128_t x = mql_to_decimal(c->args[0]), base = mql_to_decimal(c->args[1]);
    bson_decimal128_t ln_x = mql_decimal_ln(&x), ln_base = mql_decimal_ln(&base);
    return mql_decimal_divide(&ln_x, &ln_base);
}

static err logarithm(const mql__call *c, mql_value *value_out) {
    if (!mql_is_number(c->args[0])) {
        return mql__fail(c, 28756, "$log's argument must be numeric, not %s", mql_type_name(c->args[0].type));
    }
    if (!mql_is_number(c->args[1])) {
        return mql__fail(c, 28757, "$log's base must be numeric, not %s", mql_type_name(c->args[1].type));
    }
    double x = mql_as_double(c->args[0]), base = mql_as_double(c->args[1]);
    if (x <= 0) {
        return mql__fail(c, 28758, "$log's argument must be a positive number, but is %g", x);
    }
    if (base <= 0 || base == 1) {
        return mql__fail(c, 28759, "$log's base must be a positive number not equal to 1, but is %g", base);
    }
    if (either_decimal(c) && !isnan(x) && !isnan(base)) {
        bson_decimal128_t result = decimal_log(c);
        *value_out = mql_decimal(c->run->arena, &result);
    } else {
        *value_out = mql_double(c->run->arena, log(x) / log(base));
    }
    return OK;
}

/* ---- $round, $trunc ---- */

typedef bson_decimal128_t (*rounding)(const bson_decimal128_t *x, int exponent);

static mql_value round_double(arena *a, rounding round, double d, int exponent) {
    if (!isfinite(d)) {
        return mql_double(a, d);
    }
    bson_decimal128_t exact = mql_decimal_exact(d), rounded = round(&exact, exponent);
    return mql_double(a, mql_as_double(mql_decimal(a, &rounded)));
}

static err round_integer(const mql__call *c, rounding round, int exponent, mql_value *value_out) {
    int64_t integer = 0, result;
    mql_as_integer(c->args[0], &integer);
    bson_decimal128_t exact = mql_decimal_of_int64(integer), rounded = round(&exact, exponent);
    if (!mql_decimal_to_int64(&rounded, &result)) {
        return mql__fail(c, 51080, "invalid conversion from Decimal128 result in %s resulting from arguments: [%" PRId64 ", %d]",
                         mql__name(c), integer, -exponent);
    }
    *value_out = mql_integer(c->run->arena, c->args[0].type, result);
    return OK;
}

static err places_of(const mql__call *c, int64_t *places_out) {
    *places_out = 0;
    if (c->n < 2) {
        return OK;
    }
    if (!mql_as_integer(c->args[1], places_out)) {
        return mql__fail(c, 51082, "precision argument to  %s must be a integral value", mql__name(c));
    }
    if (*places_out < -20 || *places_out > 100) {
        return mql__fail(c, 51083, "cannot apply %s with precision value %" PRId64 " value must be in [-20, 100]", mql__name(c),
                         *places_out);
    }
    return OK;
}

static err round_or_cut(const mql__call *c, mql_value *value_out) {
    rounding round = c->e->operator->variant ? mql_decimal_truncate_at : mql_decimal_round;
    mql_value v = c->args[0];
    int64_t places;
    if (!mql_is_number(v)) {
        return mql__fail(c, 51081, "%s only supports numeric types, not %s", mql__name(c), mql_type_name(v.type));
    }
    TRY(places_of(c, &places));
    *value_out = v;
    if (v.type == BSON_TYPE_DECIMAL128) {
        bson_decimal128_t d = mql_as_decimal(v), rounded = round(&d, (int)-places);
        *value_out = mql_decimal(c->run->arena, &rounded);
    } else if (v.type == BSON_TYPE_DOUBLE) {
        *value_out = round_double(c->run->arena, round, mql_as_double(v), (int)-places);
    } else if (places < 0) {
        return round_integer(c, round, (int)-places, value_out);
    }
    return OK;
}

/* ---- $atan2 ---- */

static err arc_tangent(const mql__call *c, mql_value *value_out) {
    for (size_t i = 0; i < 2; i++) {
        if (!mql_is_number(c->args[i])) {
            return mql__fail(c, 51044 + (int)i, "$atan2 only supports numeric types, not %s", mql_type_name(c->args[i].type));
        }
    }
    if (either_decimal(c)) {
        bson_decimal128_t y = mql_to_decimal(c->args[0]), x = mql_to_decimal(c->args[1]), result = mql_decimal_atan2(&y, &x);
        *value_out = mql_decimal(c->run->arena, &result);
    } else {
        *value_out = mql_double(c->run->arena, atan2(mql_as_double(c->args[0]), mql_as_double(c->args[1])));
    }
    return OK;
}

static const mql__operator rows[] = {
    {"$add", 0, MQL__ANY, MQL__SERVICE | MQL__LAZY, .function = accumulate, .variant = 0},
    {"$multiply", 0, MQL__ANY, MQL__SERVICE | MQL__LAZY, .function = accumulate, .variant = 1},
    {"$subtract", 2, 2, MQL__SERVICE | MQL__NULLS, .function = subtract},
    {"$divide", 2, 2, MQL__SERVICE | MQL__NULLS, .function = divide},
    {"$mod", 2, 2, MQL__SERVICE | MQL__NULLS, .function = modulo},
    {"$pow", 2, 2, MQL__SERVICE | MQL__NULLS, .function = power},
    {"$log", 2, 2, MQL__SERVICE | MQL__NULLS, .function = logarithm},
    {"$round", 1, 2, MQL__SERVICE | MQL__NULLS, .function = round_or_cut, .variant = 0},
    {"$trunc", 1, 2, MQL__SERVICE | MQL__NULLS, .function = round_or_cut, .variant = 1},
    {"$atan2", 2, 2, MQL__SERVICE | MQL__NULLS, .function = arc_tangent},
};
const mql__operators mql__arithmetic_operators = MQL__OPERATORS(rows);
