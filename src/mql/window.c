/* window.c — the functions of $setWindowFields: accumulators over windows, ranks, shifts, changes over time, and filling of gaps. */
#include "mql/window.h"

#include <math.h>

#include "mql/show.h"

enum { NEEDS_SORT = 1, NO_WINDOW = 2, NO_ARGUMENT = 4, NEEDS_WINDOW = 8 };

struct mql__window_function {
    slice name;
    int flags;
    err (*parse)(mql_scope *s, mql_value argument, mql__window_output *output); /* NULL: the argument is an expression */
    err (*compute)(const mql__partition *p, const mql__window_output *output, mql_value *values);
    int variant;
};

static mql_run *run_of(const mql__partition *p) {
    return mql__run_of(p->at);
}

/* ---- windows ---- */

/* The value of the sort field, by which ranges and slopes are measured. */
static mql_value sort_value(const mql__partition *p, size_t i) {
    return mql__value_at(mql_document(p->documents[i].document), p->sort->parts[0].path);
}

typedef struct span {
    size_t from, to; /* [from, to) */
} span;

static size_t document_edge(const mql__partition *p, const mql__edge *e, size_t i, bool high) {
    if (e->kind == MQL__UNBOUNDED) {
        return high ? p->n : 0;
    }
    int64_t by = e->kind == MQL__CURRENT ? 0 : e->by, at;
    if (__builtin_add_overflow((int64_t)i + (high ? 1 : 0), by, &at)) {
        return by < 0 ? 0 : p->n;
    }
    return at < 0 ? 0 : (uint64_t)at > p->n ? p->n : (size_t)at;
}

/* For a lower edge: the first document at or beyond it. For an upper edge: the first one beyond it. */
static err range_edge(const mql__partition *p, const mql__edge *e, size_t i, bool high, size_t *at_out) {
    mql_run *r = run_of(p);
    mql_value v = sort_value(p, i), bound = v;
    *at_out = high ? p->n : 0;
    if (e->kind == MQL__UNBOUNDED) {
        return OK;
    }
    if (e->kind == MQL__AT && !mql__step_from(r->arena, v, &e->step, &bound)) {
        return e->step.dated
                   ? mql_fail(r->op, 5429513, "Invalid range: Expected the sortBy field to be a Date, but it was %s", mql_type_name(v.type))
                   : mql_fail(r->op, 5429414, "Invalid range: Expected the sortBy field to be a number, but it was %s",
                              mql_type_name(v.type));
    }
    size_t low = 0, end = p->n;
    while (low < end) {
        size_t middle = (low + end) / 2;
        int by = mql_compare(sort_value(p, middle), bound);
        if (high ? by <= 0 : by < 0) {
            low = middle + 1;
        } else {
            end = middle;
        }
    }
    *at_out = low;
    return mql_pay(r, 32);
}

static err window_of(const mql__partition *p, const mql__window *w, size_t i, span *span_out) {
    *span_out = (span){0, p->n};
    if (!w->given) {
        return OK;
    }
    if (w->range) {
        TRY(range_edge(p, &w->low, i, false, &span_out->from));
        TRY(range_edge(p, &w->high, i, true, &span_out->to));
    } else {
        *span_out = (span){document_edge(p, &w->low, i, false), document_edge(p, &w->high, i, true)};
    }
    if (span_out->from > span_out->to) {
        span_out->from = span_out->to;
    }
    return OK;
}

/* Keeps a value until the partition is done. */
static err keep(const mql__partition *p, mql_value v, mql_value *value_out) {
    TRY(mql__arena_room(p->memory, v.bytes.n));
    *value_out = (mql_value){v.type, arena_copy(p->memory, v.bytes)};
    return mql__arena_error(p->memory);
}

static err input_of(const mql__partition *p, const mql_expression *e, size_t i, mql_value *value_out) {
    mql_run *r = run_of(p);
    r->root = mql_document(p->documents[i].document);
    return mql_evaluate(r, e, value_out);
}

/* ---- accumulators ---- */

/* If the window begins where the previous one did, only the new documents are added; otherwise the tally starts over. */
static err accumulate(const mql__partition *p, const mql__window_output *output, mql_value *values) {
    mql_run *r = run_of(p);
    arena memory = arena_init_counted(p->at->flow->budget);
    mql_tally *t = NULL;
    span has = {0, 0};
    err e = OK;
    for (size_t i = 0; e == OK && i < p->n; i++) {
        arena_mark mark = arena_marked(r->arena);
        span wanted = {0, 0};
        e = window_of(p, &output->window, i, &wanted);
        if (e == OK && (!t || wanted.from != has.from || wanted.to < has.to)) {
            if (t) {
                mql_tally_free(t);
                arena_reset(&memory);
            }
            t = mql_tally_begin(&memory, output->accumulator);
            has = (span){wanted.from, wanted.from};
        }
        for (; e == OK && has.to < wanted.to; has.to++) {
            r->root = mql_document(p->documents[has.to].document);
            e = mql_tally_add(r, t);
        }
        mql_value v = mql_null();
        e = e == OK ? mql_tally_value(r, t, &v) : e;
        e = e == OK ? keep(p, mql_is_missing(v) ? mql_null() : v, &values[i]) : e;
        arena_release(r->arena, mark);
    }
    if (t) {
        mql_tally_free(t);
    }
    arena_free(&memory);
    return e;
}

static const mql__window_function accumulator_function = {.compute = accumulate};

/* ---- ranks ---- */

enum { RANK, DENSE_RANK, NUMBER };

static err ranks(const mql__partition *p, const mql__window_output *output, mql_value *values) {
    int64_t rank = 1, dense = 1;
    for (size_t i = 0; i < p->n; i++) {
        bool tied = i > 0 && mql_sort_compare(p->sort, run_of(p)->collation, p->documents[i - 1].key, p->documents[i].key) == 0;
        rank = tied ? rank : (int64_t)i + 1;
        dense += i > 0 && !tied;
        int variant = output->function->variant;
        int64_t number = variant == RANK ? rank : variant == DENSE_RANK ? dense : (int64_t)i + 1;
        values[i] = mql_integer(p->memory, BSON_TYPE_INT32, number);
    }
    return mql_pay(run_of(p), 8 * p->n);
}

/* ---- $shift ---- */

static err parse_shift(mql_scope *s, mql_value argument, mql__window_output *output) {
    mql_value value = mql_member(argument, SLICE_LIT("output")), by = mql_member(argument, SLICE_LIT("by"));
    const mql_expression *fallback;
    mql_value none = mql_member(argument, SLICE_LIT("default"));
    if (argument.type != BSON_TYPE_DOCUMENT || mql_is_missing(value) || !mql_as_integer(by, &output->by)) {
        return mql_fail(s->op, 9, "$shift requires an 'output' expression and 'by' as an integer");
    }
    output->fallback = mql_null();
    if (!mql_is_missing(none)) {
        TRY(mql_expression_parse(s, none, &fallback));
        if (!mql_expression_constant(fallback, &output->fallback)) {
            return mql_fail(s->op, 9, "'$shift:default' expression must yield a constant value.");
        }
    }
    return mql_expression_parse(s, value, &output->input);
}

static err shift(const mql__partition *p, const mql__window_output *output, mql_value *values) {
    for (size_t i = 0; i < p->n; i++) {
        int64_t from;
        mql_value v = output->fallback;
        arena_mark mark = arena_marked(run_of(p)->arena);
        if (!__builtin_add_overflow((int64_t)i, output->by, &from) && from >= 0 && (uint64_t)from < p->n) {
            TRY(input_of(p, output->input, (size_t)from, &v));
            v = mql_is_missing(v) ? mql_null() : v;
        }
        TRY(keep(p, v, &values[i]));
        arena_release(run_of(p)->arena, mark);
    }
    return OK;
}

/* ---- $expMovingAvg ---- */

static err parse_moving(mql_scope *s, mql_value argument, mql__window_output *output) {
    mql_value input = mql_member(argument, SLICE_LIT("input")), n = mql_member(argument, SLICE_LIT("N")),
              alpha = mql_member(argument, SLICE_LIT("alpha"));
    int64_t count = 0;
    if (argument.type != BSON_TYPE_DOCUMENT || mql_is_missing(input) || mql_is_missing(n) == mql_is_missing(alpha)) {
        return mql_fail(
            s->op, 9,
            "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either an 'N' field or an 'alpha' field");
    }
    if (!mql_is_missing(n) && (!mql_as_integer(n, &count) || count <= 0)) {
        return mql_fail(s->op, 9, "'N' field must be an integer greater than zero, but found %s", mql__show(s->op->arena, n));
    }
    output->alpha = mql_is_missing(n) ? (mql_is_number(alpha) ? mql_as_double(alpha) : 0) : 2.0 / (double)(count + 1);
    if (!(output->alpha > 0 && output->alpha <= 1) || (mql_is_missing(n) && output->alpha == 1)) {
        return mql_fail(s->op, 9, "'alpha' must be between 0 and 1 (exclusive), found alpha: %s", mql__show(s->op->arena, alpha));
    }
    return mql_expression_parse(s, input, &output->input);
}

static err moving(const mql__partition *p, const mql__window_output *output, mql_value *values) {
    mql_run *r = run_of(p);
    mql_value average = mql_null();
    for (size_t i = 0; i < p->n; i++) {
        arena_mark mark = arena_marked(r->arena);
        mql_value v;
        TRY(input_of(p, output->input, i, &v));
        if (mql_is_number(v)) {
            mql_value part = mql_product(r->arena, v, mql_double(r->arena, output->alpha));
            mql_value rest =
                mql_is_number(average) ? mql_product(r->arena, average, mql_double(r->arena, 1 - output->alpha)) : mql_missing();
            TRY(keep(p, mql_is_missing(rest) ? v : mql_sum(r->arena, part, rest), &average));
        }
        values[i] = average;
        arena_release(r->arena, mark);
    }
    return OK;
}

/* ---- $derivative and $integral ---- */

static err parse_slope(mql_scope *s, mql_value argument, mql__window_output *output) {
    mql_value input = mql_member(argument, SLICE_LIT("input")), unit = mql_member(argument, SLICE_LIT("unit"));
    if (argument.type != BSON_TYPE_DOCUMENT || mql_is_missing(input)) {
        return mql_fail(s->op, 9, "$derivative and $integral require an 'input' expression");
    }
    output->has_unit = !mql_is_missing(unit);
    if (output->has_unit) {
        TRY(mql__parse_unit(s->op, unit, &output->unit));
        if (mql_unit_ms(output->unit) == 0) {
            return mql_fail(s->op, 5490704, "unit must be 'week' or smaller");
        }
    }
    return mql_expression_parse(s, input, &output->input);
}

/* A point (x, y) of a document: x is the sort's value. False if either is no number (or date, with a unit). */
static err point_at(const mql__partition *p, const mql__window_output *output, size_t i, double *x_out, double *y_out, bool *there_out) {
    mql_run *r = run_of(p);
    arena_mark mark = arena_marked(r->arena);
    mql_value x = sort_value(p, i), y;
    TRY(input_of(p, output->input, i, &y));
    bool dated = x.type == BSON_TYPE_DATE_TIME;
    if (dated != output->has_unit && !mql_is_nullish(x)) {
        return dated ? mql_fail(r->op, 5624901, "$derivative and $integral where the sortBy is a Date require a unit")
                     : mql_fail(r->op, 5624900, "$derivative and $integral with a unit expect the sortBy field to be a Date");
    }
    *there_out = (dated || mql_is_number(x)) && mql_is_number(y);
    if (*there_out) {
        *x_out = dated ? (double)mql_as_date(x) / (double)mql_unit_ms(output->unit) : mql_as_double(x);
        *y_out = mql_as_double(y);
    }
    arena_release(r->arena, mark);
    return OK;
}

static err derivative(const mql__partition *p, const mql__window_output *output, mql_value *values) {
    for (size_t i = 0; i < p->n; i++) {
        span w;
        double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
        bool first = false, last = false;
        TRY(window_of(p, &output->window, i, &w));
        if (w.to > w.from + 1) {
            TRY(point_at(p, output, w.from, &x0, &y0, &first));
            TRY(point_at(p, output, w.to - 1, &x1, &y1, &last));
        }
        values[i] = first && last && x1 != x0 ? mql_double(p->memory, (y1 - y0) / (x1 - x0)) : mql_null();
    }
    return OK;
}

static err integral(const mql__partition *p, const mql__window_output *output, mql_value *values) {
    for (size_t i = 0; i < p->n; i++) {
        span w;
        double area = 0, x0 = 0, y0 = 0, x, y;
        bool any = false, there;
        TRY(window_of(p, &output->window, i, &w));
        for (size_t j = w.from; j < w.to; j++) {
            TRY(point_at(p, output, j, &x, &y, &there));
            if (there) {
                area += any ? (x - x0) * (y + y0) / 2 : 0;
                x0 = x;
                y0 = y;
                any = true;
            }
            TRY(mql_pay(run_of(p), 4));
        }
        values[i] = any ? mql_double(p->memory, area) : mql_null();
    }
    return OK;
}

/* ---- covariance ---- */

enum { POPULATION, SAMPLE };

static err parse_pair(mql_scope *s, mql_value argument, mql__window_output *output) {
    if (argument.type != BSON_TYPE_ARRAY || mql_length(argument) != 2) {
        return mql_fail(s->op, 9, "$covariancePop and $covarianceSamp expect an array of two expressions");
    }
    TRY(mql_expression_parse(s, mql_element_at(argument, 0), &output->input));
    return mql_expression_parse(s, mql_element_at(argument, 1), &output->other);
}

static err covariance(const mql__partition *p, const mql__window_output *output, mql_value *values) {
    mql_run *r = run_of(p);
    for (size_t i = 0; i < p->n; i++) {
        span w;
        double mean_x = 0, mean_y = 0, total = 0, n = 0;
        TRY(window_of(p, &output->window, i, &w));
        for (size_t j = w.from; j < w.to; j++) {
            arena_mark mark = arena_marked(r->arena);
            mql_value x, y;
            TRY(input_of(p, output->input, j, &x));
            TRY(input_of(p, output->other, j, &y));
            if (mql_is_number(x) && mql_is_number(y)) {
                n++;
                double dx = mql_as_double(x) - mean_x;
                mean_x += dx / n;
                mean_y += (mql_as_double(y) - mean_y) / n;
                total += dx * (mql_as_double(y) - mean_y);
            }
            arena_release(r->arena, mark);
            TRY(mql_pay(r, 4));
        }
        double by = output->function->variant == SAMPLE ? n - 1 : n;
        values[i] = by > 0 ? mql_double(p->memory, total / by) : mql_null();
    }
    return OK;
}

/* ---- filling ---- */

static err carry_forward(const mql__partition *p, const mql__window_output *output, mql_value *values) {
    mql_run *r = run_of(p);
    mql_value last = mql_null();
    for (size_t i = 0; i < p->n; i++) {
        arena_mark mark = arena_marked(r->arena);
        mql_value v;
        TRY(input_of(p, output->input, i, &v));
        if (!mql_is_nullish(v)) {
            TRY(keep(p, v, &last));
        }
        values[i] = last;
        arena_release(r->arena, mark);
    }
    return OK;
}

static double line_value(const mql__partition *p, size_t i) {
    mql_value v = sort_value(p, i);
    return v.type == BSON_TYPE_DATE_TIME ? (double)mql_as_date(v) : mql_is_number(v) ? mql_as_double(v) : NAN;
}

/* Fills the gap between two known values by linear interpolation. */
static err fill_gap(const mql__partition *p, mql_value *values, size_t from, size_t to) {
    double x0 = line_value(p, from), x1 = line_value(p, to), y0 = mql_as_double(values[from]), y1 = mql_as_double(values[to]);
    if (isnan(x0) || isnan(x1)) {
        return mql_fail(run_of(p)->op, 14, "$linearFill requires the sortBy field to be numeric or a date");
    }
    if (x0 == x1 && to > from + 1) {
        return mql_fail(run_of(p)->op, 6050106, "There can be no repeated values in the sort field");
    }
    for (size_t i = from + 1; i < to; i++) {
        values[i] = mql_double(p->memory, y0 + (y1 - y0) * (line_value(p, i) - x0) / (x1 - x0));
    }
    return OK;
}

static err fill_linear(const mql__partition *p, const mql__window_output *output, mql_value *values) {
    mql_run *r = run_of(p);
    size_t known = SIZE_MAX;
    for (size_t i = 0; i < p->n; i++) {
        arena_mark mark = arena_marked(r->arena);
        mql_value v;
        TRY(input_of(p, output->input, i, &v));
        values[i] = mql_null();
        if (!mql_is_nullish(v)) {
            if (!mql_is_number(v)) {
                return mql_fail(r->op, 14, "Value to be filled must be numeric or nullish");
            }
            TRY(keep(p, v, &values[i]));
            if (known != SIZE_MAX) {
                TRY(fill_gap(p, values, known, i));
            }
            known = i;
        }
        arena_release(r->arena, mark);
        TRY(mql_pay(r, 4));
    }
    return OK;
}

/* ---- the table ---- */

static const mql__window_function functions[] = {
    {SLICE_LIT("$rank"), NEEDS_SORT | NO_WINDOW | NO_ARGUMENT, NULL, ranks, RANK},
    {SLICE_LIT("$denseRank"), NEEDS_SORT | NO_WINDOW | NO_ARGUMENT, NULL, ranks, DENSE_RANK},
    {SLICE_LIT("$documentNumber"), NEEDS_SORT | NO_WINDOW | NO_ARGUMENT, NULL, ranks, NUMBER},
    {SLICE_LIT("$shift"), NEEDS_SORT | NO_WINDOW, parse_shift, shift, 0},
    {SLICE_LIT("$expMovingAvg"), NEEDS_SORT | NO_WINDOW, parse_moving, moving, 0},
    {SLICE_LIT("$derivative"), NEEDS_SORT | NEEDS_WINDOW, parse_slope, derivative, 0},
    {SLICE_LIT("$integral"), NEEDS_SORT, parse_slope, integral, 0},
    {SLICE_LIT("$covariancePop"), 0, parse_pair, covariance, POPULATION},
    {SLICE_LIT("$covarianceSamp"), 0, parse_pair, covariance, SAMPLE},
    {SLICE_LIT("$locf"), NO_WINDOW, NULL, carry_forward, 0},
    {SLICE_LIT("$linearFill"), NEEDS_SORT | NO_WINDOW, NULL, fill_linear, 0},
};

slice mql__window_name_at(size_t position) {
    return position < sizeof functions / sizeof *functions ? functions[position].name : SLICE_EMPTY;
}

static const mql__window_function *find_function(slice name) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (slice_eq(functions[i].name, name)) {
            return &functions[i];
        }
    }
    return NULL;
}

static err check_function(op *o, const mql__window_function *f, mql_value argument, bool sorted, const mql__window *w) {
    int n = (int)f->name.n;
    if ((f->flags & NEEDS_SORT) && !sorted) {
        return mql_fail(o, 5371602, "%.*s requires a sortBy", n, f->name.p);
    }
    if ((f->flags & NO_WINDOW) && w->given) {
        return mql_fail(o, 5371601, "%.*s does not accept a 'window' field", n, f->name.p);
    }
    if ((f->flags & NEEDS_WINDOW) && !w->given) {
        return mql_fail(o, 9, "%.*s requires explicit window bounds", n, f->name.p);
    }
    if ((f->flags & NO_ARGUMENT) && !(argument.type == BSON_TYPE_DOCUMENT && mql_length(argument) == 0)) {
        return mql_fail(o, 5371603, "%.*s must be specified with '{}' as the value", n, f->name.p);
    }
    return OK;
}

/* {name: argument}, as accumulators are parsed. */
static err parse_accumulator(mql_scope *s, slice name, mql_value argument, mql__window_output *output) {
    arena *a = s->op->arena;
    buf out = buf_init_counted(BUF_NO_LIMIT, a->budget);
    mql_builder b = mql_build(&out);
    slice text;
    mql_add(&b, name, argument);
    bool kept = mql_keep(a, &b, &text);
    buf_free(&out);
    TRY(kept ? OK : mql__arena_error(a));
    output->function = &accumulator_function;
    return mql_accumulator_parse(s, mql_document(text), &output->accumulator);
}

err mql__window_parse(mql_scope *s, slice name, mql_value argument, bool sorted, mql__window_output *output) {
    const mql__window_function *f = find_function(name);
    if (!f) {
        return parse_accumulator(s, name, argument, output);
    }
    output->function = f;
    TRY(check_function(s->op, f, argument, sorted, &output->window));
    if (f->flags & NO_ARGUMENT) {
        return OK;
    }
    return f->parse ? f->parse(s, argument, output) : mql_expression_parse(s, argument, &output->input);
}

err mql__window_compute(const mql__partition *p, const mql__window_output *output, mql_value *values) {
    return output->function->compute(p, output, values);
}
