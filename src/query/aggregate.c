#include "query/aggregate.h"

#include "base/memory.h"

enum { SAVED_VALUES = 3 }; /* index of the first value in a saved state */

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

/* Arrays and objects make the result undefined. */
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

/* False: out of memory. */
static bool add_to_list(query_accumulator *a, arena *keep, const query_value *v) {
    if (a->list_n == a->list_cap) {
        size_t cap = a->list_cap ? 2 * a->list_cap : 16;
        if (!arena_fits(keep, cap * sizeof *a->list)) {
            return false;
        }
        query_value *list = arena_array(keep, query_value, cap);
        memcpy(list, a->list ? (const void *)a->list : "", a->list_n * sizeof *list);
        a->list = list;
        a->list_cap = cap;
    }
    a->list[a->list_n++] = value_keep(keep, v);
    return !keep->budget || !keep->budget->exceeded;
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
        while (times && add_to_list(a, keep, v)) {
            times--;
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

void accumulator_move(query_accumulator *a, arena *keep) {
    query_accumulator before = *a;
    a->best = value_keep(keep, &before.best);
    a->list = NULL;
    a->list_n = a->list_cap = 0;
    a->set = (query_distinct){.keep = keep};
    for (size_t i = 0; i < before.list_n; i++) {
        add_to_list(a, keep, &before.list[i]);
    }
    for (size_t i = 0; i < before.set.n; i++) {
        query_distinct_add(&a->set, &before.set.values[i]);
    }
}

/* ---- saving and loading: [count, sum, spoiled, then the best value, or the values of the list or set] ---- */

static bool save_values(bson_t *list, const query_value *values, size_t n, size_t bytes_max) {
    bool good = n <= bytes_max;
    for (size_t i = 0; i < n && good; i++) {
        good = values[i].bytes.n <= bytes_max && value_append_exact(list, SAVED_VALUES + i, &values[i]) && list->len <= bytes_max;
    }
    return good;
}

bool accumulator_save(const query_accumulator *a, bson_t *list, size_t index, size_t bytes_max) {
    char number[16];
    const char *key;
    bson_t saved;
    size_t n = bson_uint32_to_string((uint32_t)index, &key, number, sizeof number);
    bson_append_array_begin(list, key, (int)n, &saved);
    bson_append_int64(&saved, "0", 1, (int64_t)a->count);
    bson_append_double(&saved, "1", 1, a->sum);
    bson_append_bool(&saved, "2", 1, a->spoiled);
    bool good = save_values(&saved, &a->best, a->any, bytes_max) && save_values(&saved, a->list, a->list_n, bytes_max) &&
                save_values(&saved, a->set.values, a->set.n, bytes_max);
    bson_append_array_end(list, &saved);
    return good;
}

static void load_value(query_accumulator *a, arena *keep, const query_value *v) {
    if (a->kind == AGGREGATE_MIN || a->kind == AGGREGATE_MAX) {
        add_best(a, keep, v);
    } else if (a->kind == AGGREGATE_MAKE_SET || a->kind == AGGREGATE_MAKE_LIST) {
        accumulator_add(a, keep, v, 1);
    }
}

bool accumulator_load(query_accumulator *a, arena *keep, const bson_iter_t *saved) {
    bson_iter_t it = *saved, each;
    if (!BSON_ITER_HOLDS_ARRAY(&it) || !bson_iter_recurse(&it, &each)) {
        return false;
    }
    bool good = bson_iter_next(&each) && BSON_ITER_HOLDS_INT64(&each);
    int64_t count = good ? bson_iter_int64(&each) : -1;
    good = good && bson_iter_next(&each) && BSON_ITER_HOLDS_DOUBLE(&each);
    a->sum = good ? bson_iter_double(&each) : 0;
    good = good && bson_iter_next(&each) && BSON_ITER_HOLDS_BOOL(&each);
    a->spoiled = good && bson_iter_bool(&each);
    a->count = (uint64_t)count;
    while (good && bson_iter_next(&each)) {
        query_value v = value_of_exact(&each);
        good = value_is_defined(&v);
        load_value(a, keep, &v);
    }
    return good && count >= 0 && count < INT64_MAX / 2;
}
