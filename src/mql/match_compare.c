/* match_compare.c — $eq, $ne, $lt, $lte, $gt, $gte, $in, $nin.
 *
 * Values of different classes do not compare, except that null equals undefined and missing, and that every value is between MinKey and
 * MaxKey. NaN equals NaN and is neither less nor greater than any number. */
#include <stdlib.h>

#include "mql/match_int.h"

/* ---- comparing ---- */

static bool is_nan(mql_value v) {
    double number = v.type == BSON_TYPE_DOUBLE ? doc_load_double(v.bytes.p) : v.type == BSON_TYPE_DECIMAL128 ? mql_as_double(v) : 0;
    return number != number;
}

static bool holds(mql_node_kind kind, int order) {
    switch (kind) {
    case MQL_LT:
        return order < 0;
    case MQL_LTE:
        return order <= 0;
    case MQL_GT:
        return order > 0;
    case MQL_GTE:
        return order >= 0;
    default:
        return order == 0;
    }
}

static bool holds_across_classes(mql_node_kind kind, mql_value v, mql_value operand) {
    if (mql_is_nullish(v) && mql_is_nullish(operand)) {
        return holds(kind, 0);
    }
    if (operand.type == BSON_TYPE_MINKEY || operand.type == BSON_TYPE_MAXKEY) {
        return kind != MQL_EQ && holds(kind, operand.type == BSON_TYPE_MINKEY ? 1 : -1);
    }
    return false;
}

err mql__test_compare(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    if (mql_class(v.type) != mql_class(n->value.type)) {
        *matches_out = holds_across_classes(n->kind, v, n->value);
        return OK;
    }
    size_t shorter = v.bytes.n < n->value.bytes.n ? v.bytes.n : n->value.bytes.n;
    TRY(mql_pay(t->run, 2 + shorter / (t->collation ? 1 : 16)));
    bool nan = is_nan(v), other_nan = is_nan(n->value);
    if (nan || other_nan) {
        *matches_out = nan && other_nan && holds(n->kind, 0);
    } else {
        *matches_out = holds(n->kind, mql_compare_by(t->collation, v, n->value));
    }
    return OK;
}

static err parse_comparison(mql__filter_parser *p, mql_node_kind kind, const mql__operand *of, mql_node **node_out) {
    if (of->e->type == BSON_TYPE_UNDEFINED) {
        return mql_fail(mql__op(p), 2, "cannot compare to undefined");
    }
    if (of->e->type == BSON_TYPE_REGEX && kind != MQL_EQ) {
        return mql_fail(mql__op(p), 2, "Can't have RegEx as arg to predicate over field '%.*s'.", slice_shown(of->path), of->path.p);
    }
    *node_out = mql__node(p, kind, of->path, mql_of(of->e));
    return OK;
}

err mql__parse_eq(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_comparison(p, MQL_EQ, of, node_out);
}

err mql__parse_lt(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_comparison(p, MQL_LT, of, node_out);
}

err mql__parse_lte(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_comparison(p, MQL_LTE, of, node_out);
}

err mql__parse_gt(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_comparison(p, MQL_GT, of, node_out);
}

err mql__parse_gte(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_comparison(p, MQL_GTE, of, node_out);
}

err mql__parse_ne(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    mql_node *equal = NULL;
    if (of->e->type == BSON_TYPE_REGEX) {
        return mql_fail(mql__op(p), 2, "Can't have regex as arg to $ne.");
    }
    TRY(parse_comparison(p, MQL_EQ, of, &equal));
    *node_out = mql__negated(p, equal);
    return OK;
}

/* ---- $in: a sorted list, searched by halving ---- */

typedef struct in_list {
    mql_value *values;
    size_t n;
    bool null; /* is among them */
} in_list;

static int by_value(const void *a, const void *b, void *collation) {
    return mql_compare_by(collation, *(const mql_value *)a, *(const mql_value *)b);
}

static void sort_list(const mql_collation *collation, in_list *list) {
    bool sorted = true;
    for (size_t i = 1; i < list->n && sorted; i++) {
        sorted = mql_compare_by(collation, list->values[i - 1], list->values[i]) <= 0;
    }
    if (!sorted) {
        qsort_r(list->values, list->n, sizeof *list->values, by_value, (void *)(uintptr_t)collation);
    }
}

static err add_to_list(mql__filter_parser *p, const doc_element *e, in_list *list, mql__list *regexes) {
    if (mql__is_conditions(mql_of(e))) {
        return mql_fail(mql__op(p), 2, "cannot nest $ under $in");
    }
    if (e->type == BSON_TYPE_UNDEFINED) {
        return mql_fail(mql__op(p), 2, "cannot compare to undefined");
    }
    if (e->type == BSON_TYPE_REGEX) {
        mql_node *regex;
        TRY(mql__parse_regex_value(p, SLICE_EMPTY, mql_of(e), &regex));
        mql__add(regexes, regex);
        return OK;
    }
    list->null |= e->type == BSON_TYPE_NULL;
    list->values[list->n++] = mql_of(e);
    return OK;
}

static err parse_list(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    doc_walk w;
    doc_element e;
    if (of->e->type != BSON_TYPE_ARRAY) {
        return mql_fail(mql__op(p), 2, "%.*s needs an array", slice_shown(of->e->key), of->e->key.p);
    }
    mql__list in = mql__list_of(p, MQL_IN, of->path, mql_of(of->e));
    in_list *list = arena_new(mql__arena(p), in_list);
    list->values = mql__new_array(p, mql_value, mql_length(mql_of(of->e)) + 1);
    if (!list->values) {
        return mql__room(p);
    }
    *node_out = in.parent;
    in.parent->detail = list;
    for (doc_walk_init(&w, of->e->value); doc_walk_next(&w, &e);) {
        TRY(add_to_list(p, &e, list, &in));
    }
    sort_list(p->scope->collation, list);
    return OK;
}

err mql__parse_in(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_list(p, of, node_out);
}

err mql__parse_nin(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    mql_node *in = NULL;
    TRY(parse_list(p, of, &in));
    *node_out = mql__negated(p, in);
    return OK;
}

static bool list_has(const mql__test *t, const in_list *list, mql_value v) {
    size_t from = 0, to = list->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = mql_compare_by(t->collation, v, list->values[middle]);
        if (order == 0) {
            return true;
        }
        from = order > 0 ? middle + 1 : from;
        to = order < 0 ? middle : to;
    }
    return false;
}

err mql__test_in(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    const in_list *list = n->detail;
    /* a binary search: some 20 comparisons at most, each of no more than the value's bytes */
    TRY(mql_pay(t->run, 4 + v.bytes.n / 4 * (t->collation ? 16 : 1)));
    *matches_out = (list->null && mql_is_nullish(v)) || list_has(t, list, v);
    for (const mql_node *regex = n->first; regex && !*matches_out; regex = regex->next) {
        TRY(mql__test_node(t, regex, v, true, matches_out));
    }
    return OK;
}
