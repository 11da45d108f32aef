/* expression_array.c — arrays: elements, parts, and new arrays. */
#include <inttypes.h>
#include <stdlib.h>

#include "mql/expression_int.h"
#include "mql/sort.h"

/* ---- elements ---- */

static err check_array(const mql__call *c, int code, const char *which) {
    bson_type_t type = c->args[0].type;
    return type == BSON_TYPE_ARRAY ? OK
                                   : mql__fail(c, code, "%s's %s must be an array, but is %s", mql__name(c), which, mql_type_name(type));
}

/* Negative positions count from the end. */
static mql_value element_from(mql_value array, int64_t position) {
    int64_t at = position < 0 ? position + (int64_t)mql_length(array) : position;
    return at < 0 ? mql_missing() : mql_element_at(array, (size_t)at);
}

static err element_at(const mql__call *c, mql_value *value_out) {
    int32_t position;
    TRY(check_array(c, 28689, "first argument"));
    if (!mql_is_number(c->args[1])) {
        return mql__fail(c, 28690, "$arrayElemAt's second argument must be a numeric value, but is %s", mql_type_name(c->args[1].type));
    }
    if (!mql__as_int32(c->args[1], &position)) {
        return mql__fail(c, 28691, "$arrayElemAt's second argument must be representable as a 32-bit integer: %s",
                         mql__show(c->run->arena, c->args[1]));
    }
    TRY(mql_pay(c->run, mql__reading(c->args[0])));
    *value_out = element_from(c->args[0], position);
    return OK;
}

static err first_or_last(const mql__call *c, mql_value *value_out) {
    TRY(check_array(c, 28689, "argument"));
    TRY(mql_pay(c->run, mql__reading(c->args[0])));
    *value_out = element_from(c->args[0], c->e->operator->variant);
    return OK;
}

static err is_array(const mql__call *c, mql_value *value_out) {
    *value_out = mql_bool(c->args[0].type == BSON_TYPE_ARRAY);
    return OK;
}

static err size(const mql__call *c, mql_value *value_out) {
    if (c->args[0].type != BSON_TYPE_ARRAY) {
        return mql__fail(c, 17124, "The argument to $size must be an array, but was of type: %s", mql_type_name(c->args[0].type));
    }
    TRY(mql_pay(c->run, mql__reading(c->args[0])));
    return mql__integer_result(c, (int64_t)mql_length(c->args[0]), value_out);
}

/* ---- searching ---- */

/* The position of a value from `from` to before `to`; -1: none. */
static err find_value(mql_run *r, mql_value array, mql_value v, size_t from, size_t to, int64_t *position_out) {
    doc_walk w;
    doc_element e;
    *position_out = -1;
    TRY(mql_pay(r, mql__reading(array) * 2));
    doc_walk_init(&w, array.bytes);
    for (size_t i = 0; i < to && doc_walk_next(&w, &e); i++) {
        if (i >= from && mql__compare(r, mql_of(&e), v) == 0) {
            *position_out = (int64_t)i;
            return OK;
        }
    }
    return OK;
}

static err in(const mql__call *c, mql_value *value_out) {
    int64_t position;
    if (c->args[1].type != BSON_TYPE_ARRAY) {
        return mql__fail(c, 40081, "$in requires an array as a second argument, found: %s", mql_type_name(c->args[1].type));
    }
    TRY(find_value(c->run, c->args[1], c->args[0], 0, SIZE_MAX, &position));
    *value_out = mql_bool(position >= 0);
    return OK;
}

static err bound(const mql__call *c, size_t which, const char *name, size_t *bound_out) {
    int32_t integer;
    mql_value v = c->args[which];
    if (!mql__as_int32(v, &integer)) {
        return mql__fail(c, 40096, "%s requires an integral %s, found a value of type: %s, with value: %s", mql__name(c), name,
                         mql_type_name(v.type), mql__show(c->run->arena, v));
    }
    if (integer < 0) {
        return mql__fail(c, 40097, "%s requires a nonnegative %s, found: %" PRId32, mql__name(c), name, integer);
    }
    *bound_out = (size_t)integer;
    return OK;
}

err mql__bounds(const mql__call *c, size_t length, size_t *from_out, size_t *to_out) {
    *from_out = 0;
    *to_out = length;
    if (c->n > 2) {
        TRY(bound(c, 2, "starting index", from_out));
    }
    if (c->n > 3) {
        TRY(bound(c, 3, "ending index", to_out));
        *to_out = *to_out < length ? *to_out : length;
    }
    return OK;
}

static err index_of(const mql__call *c, mql_value *value_out) {
    size_t from, to;
    int64_t position;
    if (mql_is_nullish(c->args[0])) {
        *value_out = mql_null();
        return OK;
    }
    if (c->args[0].type != BSON_TYPE_ARRAY) {
        return mql__fail(c, 40090, "$indexOfArray requires an array as a first argument, found: %s", mql_type_name(c->args[0].type));
    }
    TRY(mql__bounds(c, mql_length(c->args[0]), &from, &to));
    TRY(find_value(c->run, c->args[0], c->args[1], from, to, &position));
    return mql__integer_result(c, position, value_out);
}

/* ---- parts ---- */

static err slice_argument(const mql__call *c, size_t which, int code, const char *name, int32_t *integer_out) {
    mql_value v = c->args[which];
    if (!mql_is_number(v)) {
        return mql__fail(c, code, "%s argument to $slice must be %s, but is of type: %s", name, which == 1 ? "a numeric value" : "numeric",
                         mql_type_name(v.type));
    }
    if (!mql__as_int32(v, integer_out)) {
        return mql__fail(c, code + 1, "%s argument to $slice can't be represented as a 32-bit integer: %s", name,
                         mql__show(c->run->arena, v));
    }
    return OK;
}

static err part(mql_run *r, mql_value array, int64_t from, int64_t count, mql_value *value_out) {
    mql__maker m = mql__make(r);
    doc_walk w;
    doc_element e;
    doc_walk_init(&w, array.bytes);
    for (int64_t i = 0; i < from + count && doc_walk_next(&w, &e); i++) {
        if (i >= from) {
            mql__make_next(&m, mql_of(&e));
        }
    }
    return mql__made(r, &m, BSON_TYPE_ARRAY, mql_pay(r, mql__reading(array)), value_out);
}

static int64_t from_end(int64_t position, int64_t length) {
    return position >= 0 ? position : position + length > 0 ? position + length : 0;
}

static err slice_of_array(const mql__call *c, mql_value *value_out) {
    int32_t first, count;
    if (c->args[0].type != BSON_TYPE_ARRAY) {
        return mql__fail(c, 28724, "First argument to $slice must be an array, but is of type: %s", mql_type_name(c->args[0].type));
    }
    int64_t length = (int64_t)mql_length(c->args[0]);
    TRY(slice_argument(c, 1, 28725, "Second", &first));
    if (c->n == 2) {
        return first >= 0 ? part(c->run, c->args[0], 0, first, value_out)
                          : part(c->run, c->args[0], from_end(first, length), length, value_out);
    }
    TRY(slice_argument(c, 2, 28727, "Third", &count));
    if (count <= 0) {
        return mql__fail(c, 28729, "Third argument to $slice must be positive: %" PRId32, count);
    }
    return part(c->run, c->args[0], from_end(first, length), count, value_out);
}

/* ---- new arrays ---- */

static err add_all(const mql__call *c, mql__maker *m, mql_value array) {
    doc_walk w;
    doc_element e;
    TRY(mql_pay(c->run, mql__reading(array)));
    doc_walk_init(&w, array.bytes);
    while (buf_ok(&m->bytes) && doc_walk_next(&w, &e)) {
        mql__make_next(m, mql_of(&e));
    }
    return OK;
}

static err concat_arrays(const mql__call *c, mql_value *value_out) {
    for (size_t i = 0; i < c->n; i++) {
        if (mql_is_nullish(c->args[i])) {
            *value_out = mql_null();
            return OK;
        }
        if (c->args[i].type != BSON_TYPE_ARRAY) {
            return mql__fail(c, 28664, "$concatArrays only supports arrays, not %s", mql_type_name(c->args[i].type));
        }
    }
    mql__maker m = mql__make(c->run);
    err e = OK;
    for (size_t i = 0; i < c->n && e == OK; i++) {
        e = add_all(c, &m, c->args[i]);
    }
    return mql__made(c->run, &m, BSON_TYPE_ARRAY, e, value_out);
}

static err reverse(const mql__call *c, mql_value *value_out) {
    mql_value *elements;
    size_t n;
    if (c->args[0].type != BSON_TYPE_ARRAY) {
        return mql__fail(c, 34435, "The argument to $reverseArray must be an array, but was of type: %s", mql_type_name(c->args[0].type));
    }
    TRY(mql__elements(c->run, c->args[0], &elements, &n));
    mql__maker m = mql__make(c->run);
    while (n) {
        mql__make_next(&m, elements[--n]);
    }
    return mql__made(c->run, &m, BSON_TYPE_ARRAY, OK, value_out);
}

/* ---- $range ---- */

enum { RANGE_BYTES_MAX = 16 * 1024 * 1024, RANGE_ELEMENT_BYTES = 7 }; /* the shortest element: type, one-digit name, zero byte, int32 */

static err range_argument(const mql__call *c, size_t which, int code, const char *name, int32_t *integer_out) {
    mql_value v = c->args[which];
    if (!mql_is_number(v)) {
        return mql__fail(c, code, "$range requires a numeric %s value, found value of type: %s", name, mql_type_name(v.type));
    }
    if (!mql__as_int32(v, integer_out)) {
        return mql__fail(c, code + 1, "$range requires %s %s value that can be represented as a 32-bit integer, found value: %s",
                         name[0] == 'e' ? "an" : "a", name, mql__show(c->run->arena, v));
    }
    return OK;
}

static err check_range(const mql__call *c, int64_t from, int64_t to, int64_t step) {
    int64_t n = (to - from) / step + 1;
    if (n > 0 && n > RANGE_BYTES_MAX / RANGE_ELEMENT_BYTES) {
        return mql__fail(c, 146, "$range would use too much memory (%" PRId64 " bytes) and cannot spill to disk. Memory limit: %d bytes",
                         n * RANGE_ELEMENT_BYTES, RANGE_BYTES_MAX);
    }
    return mql_pay(c->run, n > 0 ? (uint64_t)n * 2 : 1);
}

static err range(const mql__call *c, mql_value *value_out) {
    int32_t from, to, step = 1;
    TRY(range_argument(c, 0, 34443, "starting", &from));
    TRY(range_argument(c, 1, 34445, "ending", &to));
    if (c->n == 3) {
        TRY(range_argument(c, 2, 34447, "step", &step));
    }
    if (step == 0) {
        return mql__fail(c, 34449, "$range requires a non-zero step value");
    }
    TRY(check_range(c, from, to, step));
    mql__maker m = mql__make(c->run);
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step) {
        char bytes[4];
        doc_store_i32(bytes, (int32_t)i);
        mql__make_next(&m, (mql_value){BSON_TYPE_INT32, slice_of(bytes, 4)});
    }
    return mql__made(c->run, &m, BSON_TYPE_ARRAY, OK, value_out);
}

/* ---- $zip: the inputs, then as many defaults or none ---- */

typedef struct zip_plan {
    size_t inputs;
    bool longest;
} zip_plan;

static const mql__named zip_arguments = {MQL__FOUND, 34460, 34464, {{"inputs", 34465}, {"useLongestLength", 0}, {"defaults", 0}}};

static err check_zip(op *o, const mql_value values[], size_t inputs, size_t defaults, bool longest) {
    if (!mql_is_missing(values[2]) && values[2].type != BSON_TYPE_ARRAY) {
        return mql_fail(o, 34462, "defaults must be an array of expressions, found %s", mql_type_name(values[2].type));
    }
    if (!mql_is_missing(values[1]) && values[1].type != BSON_TYPE_BOOL) {
        return mql_fail(o, 34463, "useLongestLength must be a bool, found %s", mql_type_name(values[1].type));
    }
    if (inputs == 0) {
        return mql_fail(o, 34465, "$zip requires at least one input array");
    }
    if (defaults && !longest) {
        return mql_fail(o, 34466, "cannot specify defaults unless useLongestLength is true");
    }
    return defaults == 0 || defaults == inputs ? OK : mql_fail(o, 34467, "defaults and inputs must have the same length");
}

static err parse_each(mql_scope *s, mql_value array, const mql_expression **args) {
    doc_walk w;
    doc_element e;
    if (array.type == BSON_TYPE_ARRAY && doc_walk_init(&w, array.bytes)) {
        while (doc_walk_next(&w, &e)) {
            TRY(mql_expression_parse(s, mql_of(&e), args++));
        }
    }
    return OK;
}

static err parse_zip(mql_scope *s, mql_expression *node, mql_value argument) {
    mql_value values[MQL__NAMED_MAX];
    TRY(mql__take_named(s, "$zip", &zip_arguments, argument, values));
    if (values[0].type != BSON_TYPE_ARRAY) {
        return mql_fail(s->op, 34461, "inputs must be an array of expressions, found %s", mql_type_name(values[0].type));
    }
    zip_plan *plan = arena_new(s->op->arena, zip_plan);
    size_t defaults = values[2].type == BSON_TYPE_ARRAY ? mql_length(values[2]) : 0;
    *plan = (zip_plan){mql_length(values[0]), values[1].type == BSON_TYPE_BOOL && mql_as_bool(values[1])};
    TRY(check_zip(s->op, values, plan->inputs, defaults, plan->longest));
    node->prepared = plan;
    node->n = plan->inputs + defaults;
    node->args = arena_array(s->op->arena, const mql_expression *, node->n);
    TRY(parse_each(s, values[0], node->args));
    return parse_each(s, values[2], node->args + plan->inputs);
}

static err check_zip_inputs(const mql__call *c, size_t inputs, bool *null_out) {
    *null_out = false;
    for (size_t i = 0; i < inputs && !*null_out; i++) {
        *null_out = mql_is_nullish(c->args[i]);
        if (!*null_out && c->args[i].type != BSON_TYPE_ARRAY) {
            return mql__fail(c, 34468, "$zip found a non-array expression in input: %s", mql__show(c->run->arena, c->args[i]));
        }
    }
    return OK;
}

static err zip_row(const mql__call *c, doc_walk *walks, size_t inputs, mql__maker *out) {
    mql__maker row = mql__make(c->run);
    mql_value made;
    for (size_t i = 0; i < inputs; i++) {
        doc_element e;
        mql_value otherwise = c->n > inputs && !mql_is_missing(c->args[inputs + i]) ? c->args[inputs + i] : mql_null();
        mql__make_next(&row, doc_walk_next(&walks[i], &e) ? mql_of(&e) : otherwise);
    }
    TRY(mql__made(c->run, &row, BSON_TYPE_ARRAY, mql_pay(c->run, inputs * 3), &made));
    mql__make_next(out, made);
    return OK;
}

static err zip_rows(const mql__call *c, const zip_plan *plan, mql__maker *m) {
    doc_walk *walks = arena_array(c->run->arena, doc_walk, plan->inputs);
    size_t rows = plan->longest ? 0 : SIZE_MAX;
    for (size_t i = 0; i < plan->inputs; i++) {
        size_t n = mql_length(c->args[i]);
        TRY(mql_pay(c->run, mql__reading(c->args[i])));
        rows = (plan->longest ? n > rows : n < rows) ? n : rows;
        doc_walk_init(&walks[i], c->args[i].bytes);
    }
    arena_mark mark = arena_marked(c->run->arena);
    for (size_t i = 0; i < rows && buf_ok(&m->bytes); i++) {
        TRY(zip_row(c, walks, plan->inputs, m));
        arena_release(c->run->arena, mark);
    }
    return OK;
}

static err zip(const mql__call *c, mql_value *value_out) {
    const zip_plan *plan = c->e->prepared;
    bool null;
    TRY(check_zip_inputs(c, plan->inputs, &null));
    if (null) {
        *value_out = mql_null();
        return OK;
    }
    mql__maker m = mql__make(c->run);
    err e = zip_rows(c, plan, &m);
    return mql__made(c->run, &m, BSON_TYPE_ARRAY, e, value_out);
}

static const mql__operator rows[] = {
    {"$arrayElemAt", 2, 2, MQL__SERVICE | MQL__NULLS, .function = element_at},
    {"$first", 1, 1, MQL__NULLS, .function = first_or_last, .variant = 0},
    {"$last", 1, 1, MQL__NULLS, .function = first_or_last, .variant = -1},
    {"$isArray", 1, 1, MQL__SERVICE, .function = is_array},
    {"$size", 1, 1, MQL__SERVICE, .function = size},
    {"$in", 2, 2, MQL__SERVICE, .function = in},
    {"$indexOfArray", 2, 4, MQL__SERVICE, .function = index_of},
    {"$slice", 2, 3, MQL__SERVICE | MQL__NULLS, .function = slice_of_array},
    {"$concatArrays", 0, MQL__ANY, MQL__SERVICE, .function = concat_arrays},
    {"$reverseArray", 1, 1, MQL__SERVICE | MQL__NULLS, .function = reverse},
    {"$range", 2, 3, MQL__SERVICE, .function = range},
    {"$zip", .flags = MQL__SERVICE, .function = zip, .parse = parse_zip},
};
const mql__operators mql__array_operators = MQL__OPERATORS(rows);
