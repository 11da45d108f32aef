#include "query/aggregate.h"

#include "base/memory.h"

void accumulator_init(query_accumulator *a, query_aggregate_kind kind) {
    *a = (query_accumulator){.kind = kind};
}

static void add_number(query_accumulator *a, const query_value *v, uint64_t times) {
    if (v->type == TYPE_NUMBER) {
        a->sum += times == 1 ? v->number : v->number * (double)times;
        a->count += times;
    } else {
        a->spoiled = true;
    }
}

/* Only values that have an order take part: arrays and objects spoil the result. */
static void add_best(query_accumulator *a, arena *keep, const query_value *v) {
    if (v->type >= TYPE_ARRAY) {
        a->spoiled = true;
        return;
    }
    int order = a->any ? value_compare(v, &a->best) : 0;
    if (!a->any || (a->kind == AGGREGATE_MIN ? order < 0 : order > 0)) {
        a->best = value_keep(keep, v);
    }
    a->any = true;
}

static void add_to_list(query_accumulator *a, arena *keep, const query_value *v) {
    if (a->list_n == a->list_cap) {
        size_t cap = a->list_cap ? 2 * a->list_cap : 16;
        query_value *list = arena_array(keep, query_value, cap);
        memcpy(list, a->list ? (const void *)a->list : "", a->list_n * sizeof *list);
        a->list = list;
        a->list_cap = cap;
    }
    a->list[a->list_n++] = value_keep(keep, v);
}

void accumulator_add(query_accumulator *a, arena *keep, const query_value *v, uint64_t times) {
    if (v->type == TYPE_UNDEFINED) {
        return;
    }
    switch (a->kind) {
    case AGGREGATE_COUNT:
        a->count += times;
        break;
    case AGGREGATE_COUNT_IF:
        a->count += value_is_true(v) ? times : 0;
        break;
    case AGGREGATE_SUM:
    case AGGREGATE_AVG:
        add_number(a, v, times);
        break;
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
        add_best(a, keep, v);
        break;
    case AGGREGATE_MAKE_SET:
        a->set.keep = keep;
        query_distinct_add(&a->set, v);
        break;
    case AGGREGATE_MAKE_LIST:
        for (; times; times--) {
            add_to_list(a, keep, v);
        }
        break;
    case AGGREGATE_NONE:
        break;
    }
}

query_value accumulator_result(const query_accumulator *a, arena *arena) {
    switch (a->kind) {
    case AGGREGATE_COUNT:
    case AGGREGATE_COUNT_IF:
        return value_integer((int64_t)a->count);
    case AGGREGATE_SUM:
        return a->spoiled ? value_undefined() : value_number(a->sum);
    case AGGREGATE_AVG:
        return a->spoiled || a->count == 0 ? value_undefined() : value_number(a->sum / (double)a->count);
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
        return a->spoiled || !a->any ? value_undefined() : a->best;
    case AGGREGATE_MAKE_LIST:
        return value_array(arena, a->list, a->list_n);
    case AGGREGATE_MAKE_SET:
        return value_array(arena, a->set.values, a->set.n);
    default:
        return value_undefined();
    }
}
