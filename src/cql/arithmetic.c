/* arithmetic.c — + - * / % and negation, by Cassandra's rules.
 *
 * The type of the result is the wider one of the two:
 *
 *   tinyint < smallint < int < bigint < varint < decimal        float < double < decimal
 *   float with tinyint, smallint, int is float; with bigint double; with varint decimal. A counter counts as bigint.
 *
 * Integers wrap around. varint and decimal are exact; a quotient of decimals has 32 significant digits or more. */
#include <math.h>

#include "cql/big.h"
#include "cql/function_int.h"
#include "cql/value_int.h"

static const char *symbol_of(cql_term_kind operation) {
    static const char *const symbols[] = {"+", "-", "*", "/", "%"};
    return symbols[operation - CQL_TERM_ADD];
}

/* ---- types ---- */

static int width(cql_kind kind) {
    static const cql_kind order[] = {CQL_TINYINT, CQL_SMALLINT, CQL_INT, CQL_BIGINT, CQL_VARINT};
    for (int i = 0; i < (int)(sizeof order / sizeof *order); i++) {
        if (order[i] == kind || (kind == CQL_COUNTER && order[i] == CQL_BIGINT)) {
            return i;
        }
    }
    return -1;
}

static cql_kind wider(cql_kind x, cql_kind y) {
    int wx = width(x), wy = width(y);
    if (wx >= 0 && wy >= 0) {
        cql_kind kind = wx > wy ? x : y;
        return kind == CQL_COUNTER ? CQL_BIGINT : kind;
    }
    if (x == CQL_DECIMAL || y == CQL_DECIMAL || x == CQL_VARINT || y == CQL_VARINT) {
        return CQL_DECIMAL;
    }
    bool wide = x == CQL_DOUBLE || y == CQL_DOUBLE || wx == 3 || wy == 3;
    return wide ? CQL_DOUBLE : CQL_FLOAT;
}

err cql_arithmetic_type(op *o, cql_term_kind operation, const cql_type *x, const cql_type *y, const cql_type **type_out) {
    *type_out = NULL;
    if (cql_type_is_number(x) && cql_type_is_number(y)) {
        *type_out = cql_type_of(wider(x->kind, y->kind));
        return OK;
    }
    bool time = (x->kind == CQL_TIMESTAMP || x->kind == CQL_DATE) && y->kind == CQL_DURATION;
    if (time && (operation == CQL_TERM_ADD || operation == CQL_TERM_SUBTRACT)) {
        *type_out = x;
        return OK;
    }
    slice a = cql_type_text(o->arena, x), b = cql_type_text(o->arena, y);
    return op_fail(o, E_BAD_REQUEST, "the '%s' operation is not supported between %.*s and %.*s", symbol_of(operation), slice_shown(a), a.p,
                   slice_shown(b), b.p);
}

/* ---- integers and doubles ---- */

static err fail_operation(op *o, cql_term_kind operation, const cql_type *type, const char *why) {
    slice text = cql_type_text(o->arena, type);
    return op_fail_as(o, E_BAD_REQUEST, CQL__FUNCTION_FAILURE, "the operation '%.*s %s %.*s' failed: %s", (int)text.n, text.p,
                      symbol_of(operation), (int)text.n, text.p, why);
}

static cql_value integer_of(arena *a, cql_kind kind, int64_t number) {
    switch (kind) {
    case CQL_TINYINT:
        return cql_value_tinyint(a, (int8_t)number);
    case CQL_SMALLINT:
        return cql_value_smallint(a, (int16_t)number);
    case CQL_INT:
        return cql_value_int(a, (int32_t)number);
    default:
        return cql_value_bigint(a, number);
    }
}

static err integers(op *o, cql_term_kind operation, const cql_type *type, int64_t x, int64_t y, cql_value *value_out) {
    uint64_t result = 0;
    if ((operation == CQL_TERM_DIVIDE || operation == CQL_TERM_MODULO) && y == 0) {
        return fail_operation(o, operation, type, "/ by zero");
    }
    switch (operation) {
    case CQL_TERM_ADD:
        result = (uint64_t)x + (uint64_t)y;
        break;
    case CQL_TERM_SUBTRACT:
        result = (uint64_t)x - (uint64_t)y;
        break;
    case CQL_TERM_MULTIPLY:
        result = (uint64_t)x * (uint64_t)y;
        break;
    case CQL_TERM_DIVIDE:
        result = y == -1 ? -(uint64_t)x : (uint64_t)(x / y); /* the smallest number divided by -1 wraps */
        break;
    default:
        result = y == -1 ? 0 : (uint64_t)(x % y);
    }
    *value_out = integer_of(o->arena, type->kind, (int64_t)result);
    return OK;
}

static double doubles(cql_term_kind operation, double x, double y) {
    switch (operation) {
    case CQL_TERM_ADD:
        return x + y;
    case CQL_TERM_SUBTRACT:
        return x - y;
    case CQL_TERM_MULTIPLY:
        return x * y;
    case CQL_TERM_DIVIDE:
        return x / y;
    default:
        return fmod(x, y);
    }
}

/* ---- varint and decimal ---- */

static err varints(op *o, cql_term_kind operation, const cql_type *type, cql__decimal *x, const cql__decimal *y) {
    if ((operation == CQL_TERM_DIVIDE || operation == CQL_TERM_MODULO) && mpz_sgn(y->unscaled) == 0) {
        return fail_operation(o, operation, type, "BigInteger divide by zero");
    }
    switch (operation) {
    case CQL_TERM_ADD:
        mpz_add(x->unscaled, x->unscaled, y->unscaled);
        break;
    case CQL_TERM_SUBTRACT:
        mpz_sub(x->unscaled, x->unscaled, y->unscaled);
        break;
    case CQL_TERM_MULTIPLY:
        mpz_mul(x->unscaled, x->unscaled, y->unscaled);
        break;
    case CQL_TERM_DIVIDE:
        mpz_tdiv_q(x->unscaled, x->unscaled, y->unscaled);
        break;
    default:
        mpz_tdiv_r(x->unscaled, x->unscaled, y->unscaled);
    }
    return OK;
}

static void scale_up(cql__decimal *d, int64_t scale) {
    mpz_t power;
    mpz_init(power);
    mpz_ui_pow_ui(power, 10, (unsigned long)(scale - d->scale));
    mpz_mul(d->unscaled, d->unscaled, power);
    d->scale = scale;
    mpz_clear(power);
}

/* Brings both to the larger scale; false: that would make too many digits. */
static bool align(cql__decimal *x, cql__decimal *y) {
    int64_t scale = x->scale > y->scale ? x->scale : y->scale;
    if (scale - x->scale > CQL_DIGITS_MAX || scale - y->scale > CQL_DIGITS_MAX) {
        return false;
    }
    scale_up(x, scale);
    scale_up(y, scale);
    return true;
}

static int64_t precision(const cql__decimal *d) {
    size_t digits = mpz_sizeinbase(d->unscaled, 10);
    mpz_t power; /* GMP's size may be one too large */
    mpz_init(power);
    mpz_ui_pow_ui(power, 10, digits - 1);
    digits -= digits > 1 && mpz_cmpabs(d->unscaled, power) < 0;
    mpz_clear(power);
    return (int64_t)digits;
}

static void strip_zeros(cql__decimal *d) {
    if (mpz_sgn(d->unscaled) == 0) {
        d->scale = 0;
    }
    while (mpz_sgn(d->unscaled) && mpz_divisible_ui_p(d->unscaled, 10)) {
        mpz_divexact_ui(d->unscaled, d->unscaled, 10);
        d->scale--;
    }
}

/* As DecimalType.divide of Cassandra: at least 32 significant digits and a scale from 32 to 1000, rounded half up, zeros stripped. */
static bool divide(cql__decimal *x, cql__decimal *y) {
    enum { SCALE_MIN = 32, SCALE_MAX = 1000 };
    int64_t scale = SCALE_MIN - ((precision(x) - x->scale) - (precision(y) - y->scale));
    scale = scale > x->scale ? scale : x->scale;
    scale = scale > y->scale ? scale : y->scale;
    scale = scale > SCALE_MIN ? scale : SCALE_MIN;
    scale = scale < SCALE_MAX ? scale : SCALE_MAX;
    int64_t wanted = scale + y->scale + 1; /* one digit more, to round by */
    if (wanted - x->scale > CQL_DIGITS_MAX || x->scale - wanted > CQL_DIGITS_MAX) {
        return false;
    }
    if (wanted > x->scale) {
        scale_up(x, wanted);
    } else {
        scale_up(y, y->scale + x->scale - wanted);
    }
    mpz_tdiv_q(x->unscaled, x->unscaled, y->unscaled);
    if (mpz_sgn(x->unscaled) < 0) {
        mpz_sub_ui(x->unscaled, x->unscaled, 5);
    } else {
        mpz_add_ui(x->unscaled, x->unscaled, 5);
    }
    mpz_tdiv_q_ui(x->unscaled, x->unscaled, 10);
    x->scale = scale;
    strip_zeros(x);
    return true;
}

static err decimals(op *o, cql_term_kind operation, const cql_type *type, cql__decimal *x, cql__decimal *y) {
    bool ok;
    if ((operation == CQL_TERM_DIVIDE || operation == CQL_TERM_MODULO) && mpz_sgn(y->unscaled) == 0) {
        return fail_operation(o, operation, type, "Division by zero");
    }
    if (operation == CQL_TERM_MULTIPLY) {
        mpz_mul(x->unscaled, x->unscaled, y->unscaled);
        x->scale += y->scale;
        ok = true;
    } else if (operation == CQL_TERM_DIVIDE) {
        ok = divide(x, y);
    } else {
        ok = align(x, y) && varints(o, operation, type, x, y) == OK;
    }
    ok = ok && x->scale <= INT32_MAX && x->scale >= INT32_MIN;
    return ok ? OK : fail_operation(o, operation, type, "the result has too many digits");
}

/* A number of any type as a decimal; a double by its shortest digits, as BigDecimal.valueOf does. */
static err load(op *o, const cql_type *type, cql_value v, cql__decimal *d) {
    int64_t integer = 0;
    double number;
    d->scale = 0;
    if (type->kind == CQL_VARINT) {
        if (v.bytes.n > CQL__BIG_BYTES_MAX) {
            return op_fail(o, E_BAD_REQUEST, "The number has more than %d digits", CQL_DIGITS_MAX);
        }
        cql__mpz_of_bytes(d->unscaled, v.bytes);
    } else if (type->kind == CQL_DECIMAL) {
        return cql__decimal_of_value(d, v) ? OK : op_fail(o, E_BAD_REQUEST, "The number has more than %d digits", CQL_DIGITS_MAX);
    } else if (type->kind == CQL_FLOAT || type->kind == CQL_DOUBLE) {
        buf text = buf_init(64);
        cql_as_double(v, &number);
        cql__write_double(&text, number);
        bool ok = cql__decimal_of_text(d, buf_view(&text));
        buf_free(&text);
        return ok ? OK : op_fail(o, E_BAD_REQUEST, "Infinite or NaN");
    } else {
        cql_as_bigint(v, &integer);
        mpz_set_si(d->unscaled, integer);
    }
    return OK;
}

static err big(op *o, cql_term_kind operation, const cql_type *x_type, cql_value x, const cql_type *y_type, cql_value y,
               const cql_type *type, cql_value *value_out) {
    cql__decimal a = {.scale = 0}, b = {.scale = 0};
    mpz_init(a.unscaled);
    mpz_init(b.unscaled);
    err code = load(o, x_type, x, &a);
    code = code != OK ? code : load(o, y_type, y, &b);
    if (code == OK) {
        code = type->kind == CQL_VARINT ? varints(o, operation, type, &a, &b) : decimals(o, operation, type, &a, &b);
    }
    if (code == OK && mpz_sizeinbase(a.unscaled, 10) > CQL_DIGITS_MAX) {
        code = fail_operation(o, operation, type, "the result has too many digits");
    }
    if (code == OK) {
        *value_out = type->kind == CQL_VARINT ? cql__mpz_value(o->arena, a.unscaled) : cql__decimal_value(o->arena, &a);
    }
    mpz_clear(a.unscaled);
    mpz_clear(b.unscaled);
    return code;
}

/* ---- times ---- */

static err add_duration(op *o, const cql_type *type, cql_value x, cql_value y, bool minus, cql_value *value_out) {
    cql__duration d;
    int64_t number = 0, sign = minus ? -1 : 1;
    if (!cql__duration_of(y, &d)) {
        return op_fail(o, E_BAD_REQUEST, "Invalid duration");
    }
    cql_as_bigint(x, &number);
    bool date = type->kind == CQL_DATE;
    if (date && d.ns % CQL__DAY_NS) {
        return op_fail_as(o, E_BAD_REQUEST, CQL__FUNCTION_FAILURE,
                          "the operation 'date %s duration' failed: The duration must have a day precision.", minus ? "-" : "+");
    }
    int64_t ms = date ? ((int64_t)(uint32_t)number - INT64_C(0x80000000)) * CQL__DAY_MS : number;
    int64_t days = ms / CQL__DAY_MS - (ms % CQL__DAY_MS < 0), of_day = ms - days * CQL__DAY_MS;
    days = cql__add_months(days, sign * d.months) + sign * d.days;
    int64_t more = sign * (d.ns / 1000000);
    if (days > INT64_C(100000000000) || days < -INT64_C(100000000000)) {
        return op_fail(o, E_BAD_REQUEST, "The time is out of range");
    }
    ms = days * CQL__DAY_MS + of_day;
    if (__builtin_add_overflow(ms, more, &ms)) {
        return op_fail(o, E_BAD_REQUEST, "The time is out of range");
    }
    days = ms / CQL__DAY_MS - (ms % CQL__DAY_MS < 0);
    if (!date) {
        *value_out = cql_value_bigint(o->arena, ms);
        return OK;
    }
    *value_out = cql_value_int(o->arena, (int32_t)(uint32_t)(days + INT64_C(0x80000000)));
    return days >= INT32_MIN && days <= INT32_MAX ? OK : op_fail(o, E_BAD_REQUEST, "The date is out of range");
}

/* ---- entries ---- */

static bool is_usable(cql_value v) {
    return !cql_value_is_null(v) && v.bytes.n > 0;
}

err cql_arithmetic(op *o, cql_term_kind operation, const cql_type *x_type, cql_value x, const cql_type *y_type, cql_value y,
                   const cql_type *type, cql_value *value_out) {
    int64_t i = 0, j = 0;
    *value_out = cql_value_null();
    if (!is_usable(x) || !is_usable(y)) {
        return OK;
    }
    switch (type->kind) {
    case CQL_TINYINT:
    case CQL_SMALLINT:
    case CQL_INT:
    case CQL_BIGINT:
    case CQL_COUNTER:
        cql_as_bigint(x, &i);
        cql_as_bigint(y, &j);
        return integers(o, operation, type, i, j, value_out);
    case CQL_FLOAT:
    case CQL_DOUBLE: {
        cql_value a, b;
        double p = 0, q = 0;
        TRY(cql_cast(o, x_type, cql_type_of(CQL_DOUBLE), x, &a));
        TRY(cql_cast(o, y_type, cql_type_of(CQL_DOUBLE), y, &b));
        cql_as_double(a, &p);
        cql_as_double(b, &q);
        double result = type->kind == CQL_FLOAT ? (double)(float)doubles(operation, p, q) : doubles(operation, p, q);
        *value_out = type->kind == CQL_FLOAT ? cql_value_float(o->arena, (float)result) : cql_value_double(o->arena, result);
        return OK;
    }
    case CQL_VARINT:
    case CQL_DECIMAL:
        return big(o, operation, x_type, x, y_type, y, type, value_out);
    default:
        return add_duration(o, type, x, y, operation == CQL_TERM_SUBTRACT, value_out);
    }
}

err cql_negate(op *o, const cql_type *type, cql_value v, cql_value *value_out) {
    double number = 0;
    *value_out = cql_value_null();
    if (!is_usable(v)) {
        return OK;
    }
    if (type->kind == CQL_FLOAT || type->kind == CQL_DOUBLE) {
        cql_as_double(v, &number);
        *value_out = type->kind == CQL_FLOAT ? cql_value_float(o->arena, (float)-number) : cql_value_double(o->arena, -number);
        return OK;
    }
    if (!cql_type_is_number(type)) {
        slice text = cql_type_text(o->arena, type);
        return op_fail(o, E_BAD_REQUEST, "the '-' operation is not supported on %.*s", slice_shown(text), text.p);
    }
    const cql_type *result = type->kind == CQL_COUNTER ? cql_type_of(CQL_BIGINT) : type;
    return cql_arithmetic(o, CQL_TERM_SUBTRACT, cql_type_of(CQL_TINYINT), cql_value_of(SLICE_LIT("\0")), type, v, result, value_out);
}
