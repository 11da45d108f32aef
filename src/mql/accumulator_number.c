/* accumulator_number.c — $sum, $avg, $count, $stdDevPop, $stdDevSamp. What is not a number is ignored. */
#include <math.h>

#include "mql/accumulator_int.h"
#include "mql/number.h"

/* ---- totals ---- */

void mql__total_clear(mql__total *t) {
    *t = (mql__total){.type = BSON_TYPE_INT32, .decimals = mql_decimal_of_int64(0)};
}

/* Neumaier's summation. */
static void add_double(mql__total *t, double d) {
    double sum = t->doubles + d;
    if (isfinite(sum)) {
        t->lost += fabs(t->doubles) >= fabs(d) ? (t->doubles - sum) + d : (d - sum) + t->doubles;
    }
    t->doubles = sum;
}

void mql__total_add(mql__total *t, mql_value number) {
    int64_t integer;
    t->type = mql_number_type(t->type, number.type);
    if (number.type == BSON_TYPE_DOUBLE) {
        add_double(t, mql_as_double(number));
    } else if (number.type == BSON_TYPE_DECIMAL128) {
        bson_decimal128_t d = mql_as_decimal(number);
        t->decimals = mql_decimal_add(&t->decimals, &d);
    } else if (mql_as_integer(number, &integer)) {
        t->integers = (__int128)((unsigned __int128)t->integers + (unsigned __int128)(__int128)integer);
    }
}

void mql__total_merge(mql__total *t, const mql__total *from) {
    t->type = mql_number_type(t->type, from->type);
    t->integers = (__int128)((unsigned __int128)t->integers + (unsigned __int128)from->integers);
    add_double(t, from->doubles);
    t->lost += from->lost;
    t->decimals = mql_decimal_add(&t->decimals, &from->decimals);
}

/* The sum as a double. The integers are added as two doubles: the nearest one, and what it lacks. */
static double total_double(const mql__total *t) {
    mql__total all = *t;
    double high = (double)t->integers;
    add_double(&all, high);
    if (fabs(high) < 0x1p126) {
        add_double(&all, (double)(t->integers - (__int128)high));
    }
    return isfinite(all.doubles) ? all.doubles + all.lost : all.doubles;
}

/* Converts the 128-bit sum in parts of at most 18 digits. */
static bson_decimal128_t integers_decimal(const mql__total *t) {
    const int64_t part = INT64_C(1000000000000000000);
    bson_decimal128_t scale = mql_decimal_of_int64(part), low = mql_decimal_of_int64((int64_t)(t->integers % part));
    if (t->integers == (int64_t)t->integers) {
        return mql_decimal_of_int64((int64_t)t->integers);
    }
    bson_decimal128_t high = mql_decimal_of_int64((int64_t)(t->integers / part % part));
    high = mql_decimal_multiply(&high, &scale);
    return mql_decimal_add(&high, &low);
}

static bson_decimal128_t total_decimal(const mql__total *t) {
    bson_decimal128_t integers = integers_decimal(t), sum = mql_decimal_add(&t->decimals, &integers);
    if (t->doubles != 0 || t->lost != 0) {
        bson_decimal128_t doubles = mql_decimal_exact(t->doubles), lost = mql_decimal_exact(t->lost);
        sum = mql_decimal_add(&sum, &doubles);
        sum = mql_decimal_add(&sum, &lost);
    }
    return sum;
}

mql_value mql__total_value(arena *a, const mql__total *t) {
    if (t->type == BSON_TYPE_DECIMAL128) {
        bson_decimal128_t d = total_decimal(t);
        return mql_decimal(a, &d);
    }
    bool fits = t->integers >= INT64_MIN && t->integers <= INT64_MAX;
    return t->type == BSON_TYPE_DOUBLE || !fits ? mql_double(a, total_double(t)) : mql_integer(a, t->type, (int64_t)t->integers);
}

static mql_value decimal_member(arena *a, const bson_decimal128_t *d) {
    return mql_decimal(a, d);
}

static err save_total(mql_run *r, const mql_tally *t, mql__maker *m) {
    arena *a = r->arena;
    mql__make_member(m, SLICE_LIT("count"), mql_int64(a, (int64_t)t->count));
    mql__make_member(m, SLICE_LIT("type"), mql_int32(a, (int32_t)t->total.type));
    mql__make_member(m, SLICE_LIT("high"), mql_int64(a, (int64_t)(t->total.integers >> 64)));
    mql__make_member(m, SLICE_LIT("low"), mql_int64(a, (int64_t)(uint64_t)t->total.integers));
    mql__make_member(m, SLICE_LIT("doubles"), mql_double(a, t->total.doubles));
    mql__make_member(m, SLICE_LIT("lost"), mql_double(a, t->total.lost));
    mql__make_member(m, SLICE_LIT("decimals"), decimal_member(a, &t->total.decimals));
    return OK;
}

static int64_t integer_in(mql_value state, const char *name) {
    int64_t n = 0;
    mql_as_integer(mql_member(state, slice_str(name)), &n);
    return n;
}

static double double_in(mql_value state, const char *name) {
    mql_value v = mql_member(state, slice_str(name));
    return v.type == BSON_TYPE_DOUBLE ? mql_as_double(v) : 0;
}

static err load_total(mql_run *r, mql_tally *t, mql_value state) {
    (void)r;
    mql_value decimals = mql_member(state, SLICE_LIT("decimals"));
    t->count = (uint64_t)integer_in(state, "count");
    bson_type_t type = (bson_type_t)(uint8_t)integer_in(state, "type");
    t->total.type = doc_is_number(type) || type == BSON_TYPE_DECIMAL128 ? type : BSON_TYPE_INT32;
    t->total.integers = (__int128)((unsigned __int128)(uint64_t)integer_in(state, "high") << 64 | (uint64_t)integer_in(state, "low"));
    t->total.doubles = double_in(state, "doubles");
    t->total.lost = double_in(state, "lost");
    t->total.decimals = decimals.type == BSON_TYPE_DECIMAL128 ? mql_as_decimal(decimals) : mql_decimal_of_int64(0);
    return OK;
}

/* ---- $sum, $avg, $count ---- */

static err add_number(mql_run *r, mql_tally *t, mql_value v) {
    (void)r;
    if (mql_is_number(v)) {
        mql__total_add(&t->total, v);
        t->count++;
    }
    return OK;
}

static err merge_totals(mql_run *r, mql_tally *t, const mql_tally *from) {
    (void)r;
    mql__total_merge(&t->total, &from->total);
    t->count += from->count;
    return OK;
}

static err sum(mql_run *r, const mql_tally *t, mql_value *value_out) {
    *value_out = mql__total_value(r->arena, &t->total);
    return OK;
}

static err average(mql_run *r, const mql_tally *t, mql_value *value_out) {
    if (t->count == 0) {
        return OK;
    }
    if (t->total.type == BSON_TYPE_DECIMAL128) {
        bson_decimal128_t total = total_decimal(&t->total), n = mql_decimal_of_int64((int64_t)t->count);
        bson_decimal128_t mean = mql_decimal_divide(&total, &n);
        *value_out = mql_decimal(r->arena, &mean);
    } else {
        *value_out = mql_double(r->arena, total_double(&t->total) / (double)t->count);
    }
    return OK;
}

static err parse_count(mql_scope *s, mql_accumulator *a, mql_value argument) {
    (void)a;
    bool empty = argument.type == BSON_TYPE_DOCUMENT && mql_length(argument) == 0;
    return empty ? OK : mql_fail(s->op, 9, "$count takes no arguments, i.e. $count:{}");
}

static err add_count(mql_run *r, mql_tally *t, mql_value v) {
    (void)r;
    (void)v;
    t->total.integers++;
    return OK;
}

/* ---- $stdDevPop, $stdDevSamp: Welford's algorithm ---- */

static err add_spread(mql_run *r, mql_tally *t, mql_value v) {
    (void)r;
    if (mql_is_number(v)) {
        double d = mql_as_double(v), from_mean = d - t->mean;
        t->count++;
        t->mean += from_mean / (double)t->count;
        t->squares += from_mean * (d - t->mean);
    }
    return OK;
}

static err merge_spread(mql_run *r, mql_tally *t, const mql_tally *from) {
    (void)r;
    uint64_t n = t->count + from->count;
    if (from->count) {
        double apart = from->mean - t->mean, share = (double)from->count / (double)n;
        t->squares += from->squares + apart * apart * (double)t->count * share;
        t->mean += apart * share;
        t->count = n;
    }
    return OK;
}

static err spread(mql_run *r, const mql_tally *t, mql_value *value_out) {
    uint64_t divisor = t->a->row->variant ? t->count - (t->count > 0) : t->count;
    if (divisor) {
        *value_out = mql_double(r->arena, sqrt(t->squares / (double)divisor));
    }
    return OK;
}

static err save_spread(mql_run *r, const mql_tally *t, mql__maker *m) {
    mql__make_member(m, SLICE_LIT("count"), mql_int64(r->arena, (int64_t)t->count));
    mql__make_member(m, SLICE_LIT("mean"), mql_double(r->arena, t->mean));
    mql__make_member(m, SLICE_LIT("squares"), mql_double(r->arena, t->squares));
    return OK;
}

static err load_spread(mql_run *r, mql_tally *t, mql_value state) {
    (void)r;
    t->count = (uint64_t)integer_in(state, "count");
    t->mean = double_in(state, "mean");
    t->squares = double_in(state, "squares");
    return OK;
}

static const mql__accumulator_row rows[] = {
    {"$sum", true, true, 0, NULL, add_number, merge_totals, sum, save_total, load_total},
    {"$avg", true, true, 0, NULL, add_number, merge_totals, average, save_total, load_total},
    {"$count", false, false, 0, parse_count, add_count, merge_totals, sum, save_total, load_total},
    {"$stdDevPop", true, true, 0, NULL, add_spread, merge_spread, spread, save_spread, load_spread},
    {"$stdDevSamp", true, true, 1, NULL, add_spread, merge_spread, spread, save_spread, load_spread},
};
const mql__accumulators mql__number_accumulators = MQL__OPERATORS(rows);
