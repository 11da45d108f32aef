/* aggregate.c — count, min, max, sum, avg. Sums of integers wrap around in the type of the column, as Cassandra's do; averages of integers
 * are computed in 64 bits and cut. */
#include "cql/big.h"
#include "cql/function_int.h"

static bool kind_of(slice name, cql_aggregate_kind *kind_out) {
    static const struct {
        const char *name;
        cql_aggregate_kind kind;
    } kinds[] = {{"count", CQL_COUNT}, {"countrows", CQL_COUNT_ROWS}, {"min", CQL_MIN}, {"max", CQL_MAX}, {"sum", CQL_SUM},
                 {"avg", CQL_AVG}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (slice_eq_nocase(name, slice_str(kinds[i].name))) {
            *kind_out = kinds[i].kind;
            return true;
        }
    }
    return false;
}

static bool is_exact(const cql_type *t) {
    return t->kind == CQL_VARINT || t->kind == CQL_DECIMAL;
}

err cql_aggregate_init(op *o, cql_aggregate *g, slice name, const cql_type *type, const cql_type **returns_out) {
    *g = (cql_aggregate){.type = type, .value = cql_value_null()};
    if (!kind_of(name, &g->kind)) {
        return op_fail(o, E_BAD_REQUEST, "Unknown function '%.*s'", slice_shown(name), name.p);
    }
    if (g->kind == CQL_COUNT && !type) {
        g->kind = CQL_COUNT_ROWS;
    }
    if (g->kind == CQL_COUNT || g->kind == CQL_COUNT_ROWS) {
        *returns_out = cql_type_of(CQL_BIGINT);
        return OK;
    }
    if (!type || ((g->kind == CQL_SUM || g->kind == CQL_AVG) && !cql_type_is_number(type))) {
        return op_fail(o, E_BAD_REQUEST, "Invalid call to function %.*s, none of its type signatures match", slice_shown(name), name.p);
    }
    bool counter = type->kind == CQL_COUNTER;
    *returns_out = counter ? cql_type_of(CQL_BIGINT) : type;
    return OK;
}

/* Copies a value to the aggregate's own memory, which is used again if it fits. */
static err keep(op *o, cql_aggregate *g, cql_value v) {
    if (v.bytes.n > g->room_n || !g->room) {
        size_t room = v.bytes.n * 2 + 16;
        if (!arena_fits(o->arena, room)) {
            return budget_error(o->budget);
        }
        g->room = arena_alloc_aligned(o->arena, room, 1);
        g->room_n = room;
    }
    if (v.bytes.n) {
        memmove(g->room, v.bytes.p, v.bytes.n);
    }
    g->value = cql_value_of(slice_of(g->room, v.bytes.n));
    return OK;
}

static err add_exact(op *o, cql_aggregate *g, cql_value v) {
    arena_mark mark = arena_marked(o->arena);
    cql_value sum;
    if (cql_value_is_null(g->value)) {
        return keep(o, g, v);
    }
    TRY(cql_arithmetic(o, CQL_TERM_ADD, g->type, g->value, g->type, v, g->type, &sum));
    if (sum.bytes.n <= g->room_n) {
        TRY(keep(o, g, sum));
        arena_release(o->arena, mark);
        return OK;
    }
    return keep(o, g, sum);
}

static void add_double(cql_aggregate *g, double number) {
    double y = number - g->lost, sum = g->sum + y;
    g->lost = sum - g->sum - y;
    g->sum = sum;
}

static err add_number(op *o, cql_aggregate *g, cql_value v) {
    int64_t integer = 0;
    double number = 0;
    if (is_exact(g->type)) {
        return add_exact(o, g, v);
    }
    if (g->type->kind == CQL_FLOAT || g->type->kind == CQL_DOUBLE) {
        cql_as_double(v, &number);
        add_double(g, number);
    } else {
        cql_as_bigint(v, &integer);
        g->integer = (int64_t)((uint64_t)g->integer + (uint64_t)integer);
    }
    return OK;
}

err cql_aggregate_add(op *o, cql_aggregate *g, cql_value v) {
    if (g->kind == CQL_COUNT_ROWS) {
        g->count++;
        return OK;
    }
    if (cql_value_is_null(v) || (v.bytes.n == 0 && cql_type_is_number(g->type))) {
        return OK;
    }
    g->count++;
    if (g->kind == CQL_COUNT) {
        return OK;
    }
    if (g->kind == CQL_SUM || g->kind == CQL_AVG) {
        return add_number(o, g, v);
    }
    int c = cql_value_is_null(g->value) ? 0 : cql_compare(g->type, v, g->value);
    bool first = cql_value_is_null(g->value);
    return first || (g->kind == CQL_MIN ? c < 0 : c > 0) ? keep(o, g, v) : OK;
}

/* ---- results ---- */

/* The average of decimals keeps the scale of the sum and is rounded half to even; of varints it is cut. */
static err average_exact(op *o, const cql_aggregate *g, cql_value *value_out) {
    cql__decimal sum = {.scale = 0};
    bool varint = g->type->kind == CQL_VARINT, ok = true;
    mpz_t twice, rest;
    mpz_inits(sum.unscaled, twice, rest, NULL);
    if (varint) {
        cql__mpz_of_bytes(sum.unscaled, g->value.bytes);
    } else {
        ok = cql__decimal_of_value(&sum, g->value);
    }
    mpz_set_si(rest, g->count);
    mpz_tdiv_qr(sum.unscaled, twice, sum.unscaled, rest);
    int sign = mpz_sgn(twice);
    mpz_mul_2exp(twice, twice, 1);
    int half = mpz_cmpabs(twice, rest);
    if (!varint && (half > 0 || (half == 0 && mpz_odd_p(sum.unscaled)))) {
        mpz_set_si(rest, sign);
        mpz_add(sum.unscaled, sum.unscaled, rest);
    }
    *value_out = varint ? cql__mpz_value(o->arena, sum.unscaled) : cql__decimal_value(o->arena, &sum);
    mpz_clears(sum.unscaled, twice, rest, NULL);
    return ok ? OK : op_fail(o, E_BAD_REQUEST, "The number has more than %d digits", CQL_DIGITS_MAX);
}

static err exact_result(op *o, const cql_aggregate *g, cql_value *value_out) {
    if (g->count == 0) {
        return cql_value_of_text(o, g->type, SLICE_LIT("0"), value_out);
    }
    *value_out = g->value;
    return g->kind == CQL_AVG ? average_exact(o, g, value_out) : OK;
}

static cql_value integer_result(op *o, const cql_aggregate *g) {
    int64_t number = g->kind == CQL_AVG && g->count ? g->integer / g->count : g->integer;
    switch (g->type->kind) {
    case CQL_TINYINT:
        return cql_value_tinyint(o->arena, (int8_t)number);
    case CQL_SMALLINT:
        return cql_value_smallint(o->arena, (int16_t)number);
    case CQL_INT:
        return cql_value_int(o->arena, (int32_t)number);
    default:
        return cql_value_bigint(o->arena, number);
    }
}

err cql_aggregate_result(op *o, const cql_aggregate *g, cql_value *value_out) {
    *value_out = g->value;
    if (g->kind == CQL_COUNT || g->kind == CQL_COUNT_ROWS) {
        *value_out = cql_value_bigint(o->arena, g->count);
        return OK;
    }
    if (g->kind == CQL_MIN || g->kind == CQL_MAX) {
        return OK;
    }
    if (is_exact(g->type)) {
        return exact_result(o, g, value_out);
    }
    if (g->type->kind != CQL_FLOAT && g->type->kind != CQL_DOUBLE) {
        *value_out = integer_result(o, g);
        return OK;
    }
    double number = g->kind == CQL_AVG && g->count ? g->sum / (double)g->count : g->sum;
    *value_out = g->type->kind == CQL_FLOAT ? cql_value_float(o->arena, (float)number) : cql_value_double(o->arena, number);
    return OK;
}
