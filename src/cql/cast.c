/* cast.c — cast(x AS type). Numbers are converted as Java's Number does: integers keep their low bits, doubles stop at the ends of the
 * range. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cql/big.h"
#include "cql/function_int.h"
#include "cql/value_int.h"

static err fail(op *o, const cql_type *from, const cql_type *to) {
    slice a = cql_type_text(o->arena, from), b = cql_type_text(o->arena, to);
    return op_fail(o, E_BAD_REQUEST, "%.*s cannot be cast to %.*s", slice_shown(a), a.p, slice_shown(b), b.p);
}

/* ---- numbers ---- */

static bool is_floating(const cql_type *t) {
    return t->kind == CQL_FLOAT || t->kind == CQL_DOUBLE;
}

static bool is_big(const cql_type *t) {
    return t->kind == CQL_VARINT || t->kind == CQL_DECIMAL;
}

static int64_t saturated(double number) {
    if (isnan(number)) {
        return 0;
    }
    return number >= 9223372036854775808.0 ? INT64_MAX : number <= -9223372036854775808.0 ? INT64_MIN : (int64_t)number;
}

/* (int) of a double stops at 32 bits; narrower types take the low bits of that. */
static int64_t integer_of_double(double number, cql_kind kind) {
    int64_t wide = saturated(number);
    if (kind == CQL_BIGINT || kind == CQL_COUNTER || kind == CQL_VARINT) {
        return wide;
    }
    return wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : wide;
}

/* Cuts what is behind the point. False: the number is too large to compute with. */
static bool truncate_decimal(cql__decimal *d) {
    mpz_t power;
    if (d->scale < -CQL_DIGITS_MAX) {
        return mpz_sgn(d->unscaled) == 0;
    }
    if (d->scale > 2 * CQL_DIGITS_MAX) { /* no value has so many digits */
        mpz_set_ui(d->unscaled, 0);
    } else {
        mpz_init(power);
        mpz_ui_pow_ui(power, 10, (unsigned long)(d->scale < 0 ? -d->scale : d->scale));
        if (d->scale < 0) {
            mpz_mul(d->unscaled, d->unscaled, power);
        } else {
            mpz_tdiv_q(d->unscaled, d->unscaled, power);
        }
        mpz_clear(power);
    }
    d->scale = 0;
    return true;
}

static int64_t low_bits(const mpz_t number) {
    mpz_t bits;
    mpz_init(bits);
    mpz_fdiv_r_2exp(bits, number, 64);
    uint64_t low = mpz_get_ui(bits);
    mpz_clear(bits);
    return (int64_t)low;
}

static cql_value store_integer(arena *a, cql_kind kind, int64_t number) {
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

/* The nearest double, by the first forty digits. */
static double double_of(const cql__decimal *d) {
    char text[80];
    double number = 0;
    char *digits = mpz_get_str(NULL, 10, d->unscaled);
    const char *first = digits + (digits[0] == '-');
    long long exponent = (long long)strlen(first) - d->scale;
    exponent = exponent > 9999 ? 9999 : exponent < -9999 ? -9999 : exponent;
    int n = snprintf(text, sizeof text, "%s0.%.40sE%lld", digits[0] == '-' ? "-" : "", first, exponent);
    cql__read_double(slice_of(text, (size_t)n), &number);
    free(digits);
    return number;
}

static err from_big(op *o, const cql_type *to, cql__decimal *d, cql_value *value_out) {
    if (is_floating(to)) {
        double number = double_of(d);
        *value_out = to->kind == CQL_FLOAT ? cql_value_float(o->arena, (float)number) : cql_value_double(o->arena, number);
        return OK;
    }
    if (to->kind == CQL_DECIMAL) {
        *value_out = cql__decimal_value(o->arena, d);
        return OK;
    }
    if (!truncate_decimal(d) || (to->kind == CQL_VARINT && mpz_sizeinbase(d->unscaled, 10) > CQL_DIGITS_MAX)) {
        return op_fail(o, E_BAD_REQUEST, "The number has more than %d digits", CQL_DIGITS_MAX);
    }
    *value_out = to->kind == CQL_VARINT ? cql__mpz_value(o->arena, d->unscaled) : store_integer(o->arena, to->kind, low_bits(d->unscaled));
    return OK;
}

static bool load_big(const cql_type *from, cql_value v, cql__decimal *d) {
    int64_t integer = 0;
    double number = 0;
    if (from->kind == CQL_DECIMAL) {
        return cql__decimal_of_value(d, v);
    }
    if (from->kind == CQL_VARINT) {
        cql__mpz_of_bytes(d->unscaled, v.bytes);
        return v.bytes.n <= CQL__BIG_BYTES_MAX;
    }
    if (is_floating(from)) {
        buf text = buf_init(64);
        cql_as_double(v, &number);
        cql__write_double(&text, number);
        bool ok = cql__decimal_of_text(d, buf_view(&text));
        buf_free(&text);
        return ok;
    }
    cql_as_bigint(v, &integer);
    mpz_set_si(d->unscaled, integer);
    return true;
}

static err cast_big(op *o, const cql_type *from, const cql_type *to, cql_value v, cql_value *value_out) {
    cql__decimal d = {.scale = 0};
    double number = 0;
    mpz_init(d.unscaled);
    err code;
    if (is_floating(from) && to->kind == CQL_VARINT) {
        cql_as_double(v, &number);
        mpz_set_si(d.unscaled, saturated(number));
        code = from_big(o, to, &d, value_out);
    } else {
        code = load_big(from, v, &d) ? from_big(o, to, &d, value_out) : fail(o, from, to);
    }
    mpz_clear(d.unscaled);
    return code;
}

static err cast_number(op *o, const cql_type *from, const cql_type *to, cql_value v, cql_value *value_out) {
    int64_t integer = 0;
    double number = 0;
    if (is_big(from) || is_big(to)) {
        return cast_big(o, from, to, v, value_out);
    }
    if (is_floating(from)) {
        cql_as_double(v, &number);
        integer = integer_of_double(number, to->kind);
    } else {
        cql_as_bigint(v, &integer);
        number = (double)integer;
    }
    if (to->kind == CQL_DOUBLE) {
        *value_out = cql_value_double(o->arena, number);
    } else if (to->kind == CQL_FLOAT) {
        *value_out = cql_value_float(o->arena, is_floating(from) ? (float)number : (float)integer);
    } else {
        *value_out = store_integer(o->arena, to->kind, integer);
    }
    return OK;
}

/* ---- others ---- */

static err cast_text(op *o, const cql_type *from, cql_value v, cql_value *value_out) {
    buf text = buf_init_counted(BUF_NO_LIMIT, o->budget);
    cql_value_write_bare(&text, from, v);
    bool ok = buf_ok(&text) && arena_fits(o->arena, text.n);
    *value_out = ok ? cql_value_of(arena_copy(o->arena, buf_view(&text))) : cql_value_null();
    buf_free(&text);
    return ok ? OK : op_fail(o, E_BAD_REQUEST, "The number has more than %d digits", CQL_DIGITS_MAX);
}

static bool is_text(const cql_type *t) {
    return t->kind == CQL_TEXT || t->kind == CQL_ASCII;
}

static err cast_time(op *o, const cql_type *from, const cql_type *to, cql_value v, cql_value *value_out) {
    const cql_function *f;
    const cql_type *returns;
    slice name = to->kind == CQL_DATE ? SLICE_LIT("toDate") : SLICE_LIT("toTimestamp");
    if (cql_function_find(o, SLICE_EMPTY, name, &from, 1, NULL, &f, &returns) != OK) {
        return fail(o, from, to);
    }
    return cql_function_call(o, NULL, f, &from, &v, 1, returns, value_out);
}

err cql_cast(op *o, const cql_type *from, const cql_type *to, cql_value v, cql_value *value_out) {
    bool can_be_text = cql_type_is_number(from) || is_text(from) || from->kind == CQL_BOOLEAN || from->kind == CQL_UUID ||
                       from->kind == CQL_TIMEUUID || from->kind == CQL_INET || from->kind == CQL_DATE || from->kind == CQL_TIME ||
                       from->kind == CQL_TIMESTAMP;
    bool time = from->kind == CQL_TIMEUUID || from->kind == CQL_TIMESTAMP || from->kind == CQL_DATE;
    *value_out = v;
    if (cql_type_same(from, to)) {
        return OK;
    }
    bool numbers = cql_type_is_number(from) && cql_type_is_number(to) && to->kind != CQL_COUNTER;
    bool times = time && (to->kind == CQL_DATE || to->kind == CQL_TIMESTAMP);
    if (!numbers && !times && !(can_be_text && is_text(to) && !(from->kind == CQL_TEXT && to->kind == CQL_ASCII))) {
        return fail(o, from, to);
    }
    if (cql_value_is_null(v) || v.bytes.n == 0) {
        *value_out = cql_value_null();
        return OK;
    }
    if (numbers) {
        return cast_number(o, from, to, v, value_out);
    }
    return times ? cast_time(o, from, to, v, value_out) : cast_text(o, from, v, value_out);
}
