/* expression_accumulator.c — accumulators as expressions: {$sum: ["$a", "$b"]}, {$max: "$array"}, {$firstN: …}, {$median: …}; and
 * $sortArray. */
#include <stdlib.h>

#include "mql/accumulator_int.h"

/* ---- of a list of operands, or of the elements of one array ---- */

static err parse_operands(mql_scope *s, mql_expression *node, mql_value argument) {
    mql_accumulator *a = arena_new(s->op->arena, mql_accumulator);
    a->row = mql__accumulator_find(slice_str(node->operator->name));
    node->prepared = a;
    return mql__parse_list(s, node, argument);
}

static err operands(const mql__call *c, mql_value *value_out) {
    mql_value *all;
    size_t n;
    TRY(mql__operands(c, &all, &n));
    return mql__accumulate(c->run, c->e->prepared, all, n, 1, value_out);
}

/* ---- {n, input}, where input is an array ---- */

static err parse_spec(mql_scope *s, mql_expression *node, mql_value argument) {
    mql_accumulator *a = arena_new(s->op->arena, mql_accumulator);
    a->row = mql__accumulator_find(slice_str(node->operator->name));
    TRY(a->row->parse(s, a, argument));
    node->prepared = a;
    node->n = 2;
    node->args = arena_array(s->op->arena, const mql_expression *, 2);
    node->args[0] = a->input;
    node->args[1] = a->n;
    return OK;
}

static err best(const mql__call *c, mql_value *value_out) {
    mql_value *elements;
    size_t elements_n;
    int64_t n;
    TRY(mql__take_n(c->run->op, c->run->arena, c->args[1], &n));
    if (c->args[0].type != BSON_TYPE_ARRAY) {
        return mql__fail(c, 5788200, "Input must be an array");
    }
    TRY(mql__elements(c->run, c->args[0], &elements, &elements_n));
    return mql__accumulate(c->run, c->e->prepared, elements, elements_n, n, value_out);
}

/* ---- $median and $percentile, of an array or of one number ---- */

static err percentile(const mql__call *c, mql_value *value_out) {
    mql_value *elements = c->args;
    size_t n = 1;
    if (c->args[0].type == BSON_TYPE_ARRAY) {
        TRY(mql__elements(c->run, c->args[0], &elements, &n));
    }
    return mql__accumulate(c->run, c->e->prepared, elements, n, 1, value_out);
}

/* ---- $sortArray ---- */

typedef struct array_sort {
    mql_sort sort; /* n 0: whole elements are compared */
    bool descending;
} array_sort;

static err take_direction(mql_scope *s, mql_value by, array_sort *sort_out) {
    int64_t direction;
    if (by.type == BSON_TYPE_DOCUMENT) {
        return mql_sort_parse(s->op, by.bytes, &sort_out->sort);
    }
    if (!mql_is_number(by)) {
        return mql_fail(s->op, 2942507,
                        "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields");
    }
    if (!mql_as_integer(by, &direction) || (direction != 1 && direction != -1)) {
        return mql_fail(s->op, 2942506, "The $sort element value must be either 1 or -1");
    }
    sort_out->descending = direction < 0;
    return OK;
}

static err parse_sort_array(mql_scope *s, mql_expression *node, mql_value argument) {
    static const mql__named arguments = {MQL__REQUIRES, 2942500, 2942501, {{"input", 2942502}, {"sortBy", 2942503}}};
    mql_value values[MQL__NAMED_MAX];
    array_sort *sort = arena_new(s->op->arena, array_sort);
    TRY(mql__take_named(s, "$sortArray", &arguments, argument, values));
    TRY(take_direction(s, values[1], sort));
    node->prepared = sort;
    node->n = 1;
    node->args = arena_array(s->op->arena, const mql_expression *, 1);
    return mql_expression_parse(s, values[0], &node->args[0]);
}

typedef struct sorting {
    mql_run *run;
    const array_sort *sort;
} sorting;

static int by_key(const void *x, const void *y, void *context) {
    const sorting *s = context;
    const mql__kept *a = x, *b = y;
    int by = s->sort->sort.n ? mql_sort_compare(&s->sort->sort, s->run->collation, a->key.bytes, b->key.bytes)
                             : mql__compare(s->run, a->value, b->value);
    by = s->sort->descending ? -by : by;
    return by ? by : (a->order > b->order) - (a->order < b->order);
}

/* What is not a document has no fields. */
static err key_of(mql_run *r, const array_sort *sort, mql_value v, mql_value *key_out) {
    slice key, document = v.type == BSON_TYPE_DOCUMENT ? v.bytes : SLICE_LIT("\5\0\0\0\0");
    *key_out = mql_missing();
    if (sort->sort.n == 0) {
        return OK;
    }
    TRY(mql_sort_key(r, &sort->sort, document, &key));
    *key_out = mql_array(key);
    return OK;
}

static err sort_array(const mql__call *c, mql_value *value_out) {
    sorting s = {c->run, c->e->prepared};
    mql_value *elements;
    size_t n;
    if (c->args[0].type != BSON_TYPE_ARRAY) {
        return mql__fail(c, 2942504, "The input argument to $sortArray must be an array, but was of type: %s",
                         mql_type_name(c->args[0].type));
    }
    TRY(mql__elements(c->run, c->args[0], &elements, &n));
    TRY(mql_pay(c->run, n * 16));
    TRY(mql__check_room(c->run, n * sizeof(mql__kept)));
    mql__kept *sorted = arena_alloc(c->run->arena, (n + 1) * sizeof *sorted);
    for (size_t i = 0; i < n; i++) {
        sorted[i] = (mql__kept){elements[i], mql_missing(), i};
        TRY(key_of(c->run, s.sort, elements[i], &sorted[i].key));
    }
    qsort_r(sorted, n, sizeof *sorted, by_key, &s);
    return mql__list_kept(c->run, sorted, n, value_out);
}

#define OPERANDS(name)                                                                                                                     \
    { name, .flags = MQL__SERVICE, .function = operands, .parse = parse_operands }

static const mql__operator rows[] = {
    OPERANDS("$sum"),
    OPERANDS("$avg"),
    OPERANDS("$min"),
    OPERANDS("$max"),
    OPERANDS("$stdDevPop"),
    OPERANDS("$stdDevSamp"),
    {"$firstN", .flags = 0, .function = best, .parse = parse_spec},
    {"$lastN", .flags = 0, .function = best, .parse = parse_spec},
    {"$minN", .flags = 0, .function = best, .parse = parse_spec},
    {"$maxN", .flags = 0, .function = best, .parse = parse_spec},
    {"$median", .flags = 0, .function = percentile, .parse = parse_spec},
    {"$percentile", .flags = 0, .function = percentile, .parse = parse_spec},
    {"$sortArray", .flags = MQL__NULLS, .function = sort_array, .parse = parse_sort_array},
};
const mql__operators mql__accumulator_operators = MQL__OPERATORS(rows);
