/* accumulator_percentile.c — $percentile and $median. The percentile p is the smallest of the numbers such that at least the share p of
 * them is not larger. MongoDB approximates it; here it is exact, at 8 bytes a number. */
#include <math.h>
#include <stdlib.h>

#include "mql/accumulator_int.h"

enum { MEDIAN, PERCENTILE };

/* ---- numbers ---- */

static err check_bytes(mql_run *r, const mql_tally *t) {
    if (buf_ok(&t->bytes)) {
        return OK;
    }
    err e = t->budget ? budget_error(t->budget) : OK;
    return e ? e : mql_fail(r->op, 146, "%s used too much memory and cannot spill to disk", t->a->row->name);
}

static err add(mql_run *r, mql_tally *t, mql_value v) {
    double d = mql_is_number(v) ? mql_as_double(v) : NAN;
    if (isnan(d)) {
        return OK;
    }
    buf_add(&t->bytes, &d, sizeof d);
    return check_bytes(r, t);
}

static err merge(mql_run *r, mql_tally *t, const mql_tally *from) {
    buf_add_slice(&t->bytes, buf_view(&from->bytes));
    return check_bytes(r, t);
}

static int by_size(const void *x, const void *y) {
    double a, b;
    memcpy(&a, x, sizeof a);
    memcpy(&b, y, sizeof b);
    return (a > b) - (a < b);
}

static mql_value percentile_of(arena *a, const double *sorted, size_t n, double share) {
    double place = ceil(share * (double)n);
    return mql_double(a, sorted[place < 1 ? 0 : (size_t)place - 1]);
}

static err value(mql_run *r, const mql_tally *t, mql_value *value_out) {
    size_t n = t->bytes.n / sizeof(double);
    TRY(mql_pay(r, n * 16));
    TRY(mql__check_room(r, t->bytes.n));
    double *sorted = arena_alloc(r->arena, t->bytes.n + sizeof(double));
    if (n) {
        memcpy(sorted, t->bytes.p, n * sizeof(double));
    }
    qsort(sorted, n, sizeof(double), by_size);
    if (t->a->row->variant == MEDIAN) {
        *value_out = n ? percentile_of(r->arena, sorted, n, 0.5) : mql_null();
        return OK;
    }
    mql__maker m = mql__make(r);
    for (size_t i = 0; i < t->a->percentiles_n; i++) {
        mql__make_next(&m, n ? percentile_of(r->arena, sorted, n, t->a->percentiles[i]) : mql_null());
    }
    return mql__made(r, &m, BSON_TYPE_ARRAY, OK, value_out);
}

/* ---- states: the numbers as binary ---- */

static err save(mql_run *r, const mql_tally *t, mql__maker *m) {
    TRY(mql__check_room(r, t->bytes.n + 5));
    char *p = arena_alloc(r->arena, t->bytes.n + 5);
    doc_store_i32(p, (int32_t)t->bytes.n);
    p[4] = 0;
    if (t->bytes.n) {
        memcpy(p + 5, t->bytes.p, t->bytes.n);
    }
    mql__make_member(m, SLICE_LIT("numbers"), (mql_value){BSON_TYPE_BINARY, slice_of(p, t->bytes.n + 5)});
    return OK;
}

static err load(mql_run *r, mql_tally *t, mql_value state) {
    mql_value numbers = mql_member(state, SLICE_LIT("numbers"));
    if (numbers.type != BSON_TYPE_BINARY || (numbers.bytes.n - 5) % sizeof(double)) {
        return mql_fail(r->op, 2, "not a state of an accumulator");
    }
    buf_add_slice(&t->bytes, slice_skip(numbers.bytes, 5));
    return check_bytes(r, t);
}

/* ---- parsing ---- */

static err take_shares(mql_scope *s, mql_accumulator *a, mql_value text) {
    static const char message[] = "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: ";
    const mql_expression *e;
    mql_value v;
    TRY(mql_expression_parse(s, text, &e));
    if (!mql_expression_constant(e, &v)) {
        return mql_fail(s->op, 7750300, "The $percentile 'p' field must be an array of constant values, but found value: %s.",
                        mql__show(s->op->arena, text));
    }
    a->percentiles_n = mql_length(v);
    if (v.type != BSON_TYPE_ARRAY || a->percentiles_n == 0) {
        return mql_fail(s->op, 7750301, "%s%s", message, mql__show(s->op->arena, v));
    }
    doc_walk w;
    doc_element each;
    double *shares = arena_array(s->op->arena, double, a->percentiles_n);
    doc_walk_init(&w, v.bytes);
    for (size_t i = 0; i < a->percentiles_n && doc_walk_next(&w, &each); i++) {
        mql_value share = mql_of(&each);
        shares[i] = mql_is_number(share) ? mql_as_double(share) : -1;
        if (!(shares[i] >= 0 && shares[i] <= 1)) {
            return mql_fail(s->op, mql_is_number(share) ? 7750303 : 7750302, "%s%s", message, mql__show(s->op->arena, share));
        }
    }
    a->percentiles = shares;
    return OK;
}

static err check_method(mql_scope *s, const char *name, mql_value method) {
    if (!mql_is_text(method)) {
        return mql_fail(s->op, 14, "BSON field '%s.method' is the wrong type '%s', expected type 'string'", name,
                        mql_type_name(method.type));
    }
    return slice_eq(mql_as_text(method), SLICE_LIT("approximate"))
               ? OK
               : mql_fail(s->op, 7766600, "Currently only approximate percentiles are supported");
}

static err take_members(mql_scope *s, const char *name, mql_value argument, mql_value values[3]) {
    static const char *const names[] = {"input", "method", "p"};
    doc_walk w;
    doc_element e;
    int n = strcmp(name, "$median") == 0 ? 2 : 3;
    doc_walk_init(&w, argument.bytes);
    while (doc_walk_next(&w, &e)) {
        int i = 0;
        while (i < n && !slice_eq(e.key, slice_str(names[i]))) {
            i++;
        }
        if (i == n) {
            return mql_fail(s->op, 40415, "BSON field '%s.%.*s' is an unknown field.", name, slice_shown(e.key), e.key.p);
        }
        values[i] = mql_of(&e);
    }
    for (int i = 0; i < n; i++) {
        if (mql_is_missing(values[i])) {
            return mql_fail(s->op, 40414, "BSON field '%s.%s' is missing but a required field", name, names[i]);
        }
    }
    return OK;
}

static err parse(mql_scope *s, mql_accumulator *a, mql_value argument) {
    mql_value values[3] = {mql_missing(), mql_missing(), mql_missing()};
    if (argument.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(s->op, a->row->variant == MEDIAN ? 7436100 : 7429703, "specification must be an object; found %s",
                        mql__show(s->op->arena, argument));
    }
    TRY(take_members(s, a->row->name, argument, values));
    TRY(check_method(s, a->row->name, values[1]));
    TRY(a->row->variant == MEDIAN ? OK : take_shares(s, a, values[2]));
    return mql_expression_parse(s, values[0], &a->input);
}

static const mql__accumulator_row rows[] = {
    {"$median", false, false, MEDIAN, parse, add, merge, value, save, load},
    {"$percentile", false, false, PERCENTILE, parse, add, merge, value, save, load},
};
const mql__accumulators mql__percentile_accumulators = MQL__OPERATORS(rows);
