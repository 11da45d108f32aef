/* expression_variable.c — operators that bind variables: $let, $map, $filter, $reduce.
 *
 * Memory used for one element is freed before the next one. So results are collected outside the run's arena. */
#include "mql/expression_int.h"

/* ---- $let: the variables' values, and then `in` ---- */

static const mql__named let_arguments = {MQL__PARAMETER, 16874, 16875, {{"vars", 16876}, {"in", 16877}}};

static err bind_all(mql_scope *s, mql_value vars) {
    doc_walk w;
    doc_element e;
    size_t slot;
    doc_walk_init(&w, vars.bytes);
    while (doc_walk_next(&w, &e)) {
        TRY(mql__bind(s, e.key, &slot));
    }
    return OK;
}

static err parse_in(mql_scope *s, mql_value vars, mql_value in, const mql_expression **in_out) {
    const mql_name *outer = s->names;
    err e = bind_all(s, vars);
    e = e ? e : mql_expression_parse(s, in, in_out);
    s->names = outer;
    return e;
}

static err parse_let(mql_scope *s, mql_expression *node, mql_value argument) {
    mql_value values[MQL__NAMED_MAX];
    doc_walk w;
    doc_element e;
    TRY(mql__take_named(s, "$let", &let_arguments, argument, values));
    if (values[0].type != BSON_TYPE_DOCUMENT) {
        return mql_fail(s->op, 10065, "invalid parameter: expected an object (vars)");
    }
    node->n = mql_length(values[0]) + 1;
    node->args = arena_array(s->op->arena, const mql_expression *, node->n);
    doc_walk_init(&w, values[0].bytes);
    for (size_t i = 0; doc_walk_next(&w, &e); i++) {
        TRY(mql_expression_parse(s, mql_of(&e), &node->args[i]));
    }
    node->slot = s->slots;
    return parse_in(s, values[0], values[1], &node->args[node->n - 1]);
}

/* All values are computed before the first one is assigned, so that they see the outer variables. */
static err let(const mql__call *c, mql_value *value_out) {
    mql_value *values = arena_array(c->run->arena, mql_value, c->n);
    for (size_t i = 0; i + 1 < c->n; i++) {
        TRY(mql__argument(c, i, &values[i]));
    }
    for (size_t i = 0; i + 1 < c->n; i++) {
        c->run->variables[c->e->slot + i] = values[i];
    }
    return mql__argument(c, c->n - 1, value_out);
}

/* ---- $map and $filter ---- */

enum { INPUT, BODY, LIMIT };

static const mql__named map_arguments = {MQL__PARAMETER, 16878, 16879, {{"input", 16880}, {"in", 16882}, {"as", 0}}};
static const mql__named filter_arguments = {MQL__PARAMETER, 28646, 28647, {{"input", 28648}, {"cond", 28650}, {"as", 0}, {"limit", 0}}};

static err variable_named(mql_scope *s, mql_value as, slice *name_out) {
    *name_out = mql_is_missing(as) ? SLICE_LIT("this") : mql_is_text(as) ? mql_as_text(as) : SLICE_EMPTY;
    return mql__check_variable_name(s->op, *name_out);
}

static err parse_body(mql_scope *s, mql_expression *node, slice variable, mql_value body) {
    const mql_name *outer = s->names;
    err e = mql__bind(s, variable, &node->slot);
    e = e ? e : mql_expression_parse(s, body, &node->args[BODY]);
    s->names = outer;
    return e;
}

static err parse_loop(mql_scope *s, mql_expression *node, mql_value argument) {
    mql_value values[MQL__NAMED_MAX];
    slice variable;
    TRY(mql__take_named(s, node->operator->name, node->operator->variant ? &filter_arguments : & map_arguments, argument, values));
    node->n = 3;
    node->args = arena_array(s->op->arena, const mql_expression *, node->n);
    TRY(mql_expression_parse(s, values[0], &node->args[INPUT]));
    TRY(variable_named(s, values[2], &variable));
    TRY(parse_body(s, node, variable, values[1]));
    return mql_is_missing(values[3]) ? OK : mql_expression_parse(s, values[3], &node->args[LIMIT]);
}

/* Evaluates the body for each element; passes each value to `take`, then frees the memory that the body has used. `take` sets `*done_out`
 * to end the loop. */
typedef struct loop {
    mql__maker made;
    int64_t left; /* $filter: how many elements may still be taken */
    bool filter;
} loop;

static void take(loop *l, mql_value element, mql_value result) {
    if (!l->filter) {
        mql__make_next(&l->made, mql_is_missing(result) ? mql_null() : result);
    } else if (mql_truth(result)) {
        mql__make_next(&l->made, element);
        l->left--;
    }
}

static err each(const mql__call *c, mql_value input, loop *l) {
    doc_walk w;
    doc_element e;
    arena_mark mark = arena_marked(c->run->arena);
    doc_walk_init(&w, input.bytes);
    while (l->left && doc_walk_next(&w, &e)) {
        mql_value result;
        c->run->variables[c->e->slot] = mql_of(&e);
        TRY(mql__argument(c, BODY, &result));
        take(l, mql_of(&e), result);
        arena_release(c->run->arena, mark);
    }
    return OK;
}

static err limit_of(const mql__call *c, int64_t *limit_out) {
    mql_value v;
    *limit_out = -1;
    TRY(mql__argument(c, LIMIT, &v));
    if (mql_is_nullish(v)) {
        return OK;
    }
    if (!mql_as_integer(v, limit_out) || *limit_out != (int32_t)*limit_out) {
        return mql__fail(c, 327391, "$filter: limit must be represented as a 32-bit integral value: %s", mql__show(c->run->arena, v));
    }
    if (*limit_out <= 0) {
        return mql__fail(c, 327392, "$filter: limit must be greater than 0: %s", mql__show(c->run->arena, v));
    }
    return OK;
}

static err run_loop(const mql__call *c, mql_value *value_out) {
    mql_value input;
    loop l = {.left = -1, .filter = c->e->operator->variant };
    TRY(mql__argument(c, INPUT, &input));
    if (mql_is_nullish(input)) {
        *value_out = mql_null();
        return OK;
    }
    if (input.type != BSON_TYPE_ARRAY) {
        return mql__fail(c, l.filter ? 28651 : 16883, "input to %s must be an array not %s", mql__name(c), mql_type_name(input.type));
    }
    TRY(limit_of(c, &l.left));
    l.made = mql__make(c->run);
    err e = each(c, input, &l);
    return mql__made(c->run, &l.made, BSON_TYPE_ARRAY, e, value_out);
}

/* ---- $reduce ---- */

enum { INITIAL = 1, IN };

static const mql__named reduce_arguments = {MQL__REQUIRES, 40075, 40076, {{"input", 40077}, {"initialValue", 40078}, {"in", 40079}}};

static err parse_reduce(mql_scope *s, mql_expression *node, mql_value argument) {
    mql_value values[MQL__NAMED_MAX];
    size_t value_slot;
    TRY(mql__take_named(s, "$reduce", &reduce_arguments, argument, values));
    node->n = 3;
    node->args = arena_array(s->op->arena, const mql_expression *, node->n);
    TRY(mql_expression_parse(s, values[0], &node->args[INPUT]));
    TRY(mql_expression_parse(s, values[1], &node->args[INITIAL]));
    const mql_name *outer = s->names;
    TRY(mql__bind(s, SLICE_LIT("this"), &node->slot));
    TRY(mql__bind(s, SLICE_LIT("value"), &value_slot)); /* node->slot + 1 */
    err e = mql_expression_parse(s, values[2], &node->args[IN]);
    s->names = outer;
    return e;
}

/* Copies the value so far out of the arena, which is then reset to where it was. */
static err hold(mql_run *r, buf *held, mql_value v, mql_value *held_out) {
    buf_clear(held);
    buf_add_slice(held, v.bytes);
    if (!buf_ok(held)) {
        err e = r->arena->budget ? budget_error(r->arena->budget) : OK;
        return e ? e : E_MEMORY;
    }
    *held_out = (mql_value){v.type, held->n ? buf_view(held) : SLICE_LIT("")};
    return OK;
}

/* Each step may nest the value one level deeper. */
static err check_depth(const mql__call *c, mql_value v) {
    bool fits = !doc_is_container(v.type) || doc_is_well_formed(v.bytes, MQL_DEPTH_MAX);
    return fits ? OK : mql__fail(c, 15, "$reduce: the value exceeds the maximum nested object depth of %d", MQL_DEPTH_MAX);
}

static err reduce_all(const mql__call *c, mql_value input, mql_value *so_far, buf held[2]) {
    doc_walk w;
    doc_element e;
    size_t turn = 0;
    arena_mark mark = arena_marked(c->run->arena);
    doc_walk_init(&w, input.bytes);
    while (doc_walk_next(&w, &e)) {
        mql_value next;
        c->run->variables[c->e->slot] = mql_of(&e);
        c->run->variables[c->e->slot + 1] = *so_far;
        TRY(mql__argument(c, IN, &next));
        TRY(mql_pay(c->run, mql__reading(next)));
        TRY(check_depth(c, next));
        TRY(hold(c->run, &held[turn++ % 2], next, so_far)); /* two buffers in turn: `next` may lie in the one used last */
        arena_release(c->run->arena, mark);
    }
    return OK;
}

static err copy_out(mql_run *r, mql_value v, mql_value *value_out) {
    TRY(mql__check_room(r, v.bytes.n));
    *value_out = (mql_value){v.type, v.bytes.n ? arena_copy(r->arena, v.bytes) : SLICE_LIT("")};
    return OK;
}

static err reduce(const mql__call *c, mql_value *value_out) {
    mql_value input, so_far;
    TRY(mql__argument(c, INPUT, &input));
    if (mql_is_nullish(input)) {
        *value_out = mql_null();
        return OK;
    }
    if (input.type != BSON_TYPE_ARRAY) {
        return mql__fail(c, 40080, "$reduce requires that 'input' be an array, found: %s", mql__show(c->run->arena, input));
    }
    TRY(mql__argument(c, INITIAL, &so_far));
    buf held[2] = {buf_init_counted(BUF_NO_LIMIT, c->run->arena->budget), buf_init_counted(BUF_NO_LIMIT, c->run->arena->budget)};
    err e = reduce_all(c, input, &so_far, held);
    e = e ? e : copy_out(c->run, so_far, value_out);
    buf_free(&held[0]);
    buf_free(&held[1]);
    return e;
}

static const mql__operator rows[] = {
    {"$let", .flags = MQL__SERVICE | MQL__LAZY | MQL__VOLATILE, .function = let, .parse = parse_let},
    {"$map", .flags = MQL__SERVICE | MQL__LAZY | MQL__VOLATILE, .function = run_loop, .parse = parse_loop, .variant = false},
    {"$filter", .flags = MQL__SERVICE | MQL__LAZY | MQL__VOLATILE, .function = run_loop, .parse = parse_loop, .variant = true},
    {"$reduce", .flags = MQL__SERVICE | MQL__LAZY | MQL__VOLATILE, .function = reduce, .parse = parse_reduce},
};
const mql__operators mql__variable_operators = MQL__OPERATORS(rows);
