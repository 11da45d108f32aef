/* expression_set.c — arrays as sets. A set is a sorted array; of equal elements the first counts. */
#include <stdlib.h>

#include "mql/expression_int.h"

/* ---- sorting ---- */

static int by_value(const void *x, const void *y, void *run) {
    const mql__ranked *a = x, *b = y;
    int by = mql__compare(run, a->value, b->value);
    return by ? by : (a->at > b->at) - (a->at < b->at);
}

static uint64_t sorting(mql_value array, size_t n) {
    uint64_t rounds = 1;
    while (n >> rounds) {
        rounds++;
    }
    return rounds * (2 * n + array.bytes.n / 64);
}

err mql__sorted(mql_run *r, mql_value array, mql__ranked **sorted_out, size_t *n_out) {
    doc_walk w;
    doc_element e;
    size_t n = mql_length(array);
    TRY(mql_pay(r, sorting(array, n)));
    TRY(mql__check_room(r, n * sizeof(mql__ranked)));
    mql__ranked *sorted = arena_alloc(r->arena, (n + 1) * sizeof(mql__ranked));
    doc_walk_init(&w, array.bytes);
    for (size_t i = 0; i < n && doc_walk_next(&w, &e); i++) {
        sorted[i] = (mql__ranked){mql_of(&e), i};
    }
    qsort_r(sorted, n, sizeof *sorted, by_value, r);
    *sorted_out = sorted;
    *n_out = n;
    return OK;
}

/* ---- sets ---- */

typedef struct set {
    mql__ranked *members; /* sorted, each once */
    size_t n;
} set;

static err set_of(mql_run *r, mql_value array, set *set_out) {
    size_t n, unique = 0;
    TRY(mql__sorted(r, array, &set_out->members, &n));
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || mql__compare(r, set_out->members[i].value, set_out->members[unique - 1].value) != 0) {
            set_out->members[unique++] = set_out->members[i];
        }
    }
    set_out->n = unique;
    return OK;
}

static bool contains(mql_run *r, const set *s, mql_value v) {
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int by = mql__compare(r, s->members[middle].value, v);
        if (by == 0) {
            return true;
        }
        low = by < 0 ? middle + 1 : low;
        high = by < 0 ? high : middle;
    }
    return false;
}

static bool subset(mql_run *r, const set *small, const set *large) {
    for (size_t i = 0; i < small->n; i++) {
        if (!contains(r, large, small->members[i].value)) {
            return false;
        }
    }
    return true;
}

static err made_of(mql_run *r, const set *s, mql_value *value_out) {
    mql__maker m = mql__make(r);
    for (size_t i = 0; i < s->n; i++) {
        mql__make_next(&m, s->members[i].value);
    }
    return mql__made(r, &m, BSON_TYPE_ARRAY, OK, value_out);
}

/* ---- operators ---- */

static err refuse_one(const mql__call *c, int code, bson_type_t type) {
    return mql__fail(c, code, "All operands of %s must be arrays. One argument is of type: %s", mql__name(c), mql_type_name(type));
}

/* The result is null if an argument before the first invalid one is null. */
static err check_all(const mql__call *c, int code, bool *null_out) {
    *null_out = false;
    for (size_t i = 0; i < c->n && !*null_out; i++) {
        *null_out = mql_is_nullish(c->args[i]);
        if (!*null_out && c->args[i].type != BSON_TYPE_ARRAY) {
            return refuse_one(c, code, c->args[i].type);
        }
    }
    return OK;
}

/* Both arguments must be arrays. */
static err check_pair(const mql__call *c, int first_code, int second_code) {
    for (int i = 0; i < 2; i++) {
        if (c->args[i].type != BSON_TYPE_ARRAY) {
            return mql__fail(c, i == 0 ? first_code : second_code, "both operands of %s must be arrays. %s argument is of type: %s",
                             mql__name(c), i == 0 ? "First" : "Second", mql_type_name(c->args[i].type));
        }
    }
    return OK;
}

static err set_union(const mql__call *c, mql_value *value_out) {
    bool null;
    set all;
    mql_value joined;
    TRY(check_all(c, 17043, &null));
    if (null) {
        *value_out = mql_null();
        return OK;
    }
    mql__maker m = mql__make(c->run);
    for (size_t i = 0; i < c->n; i++) {
        doc_walk w;
        doc_element e;
        doc_walk_init(&w, c->args[i].bytes);
        while (buf_ok(&m.bytes) && doc_walk_next(&w, &e)) {
            mql__make_next(&m, mql_of(&e));
        }
    }
    TRY(mql__made(c->run, &m, BSON_TYPE_ARRAY, OK, &joined));
    TRY(set_of(c->run, joined, &all));
    return made_of(c->run, &all, value_out);
}

static err set_intersection(const mql__call *c, mql_value *value_out) {
    bool null;
    set common = {0}, next;
    TRY(check_all(c, 17047, &null));
    if (null) {
        *value_out = mql_null();
        return OK;
    }
    for (size_t i = 0; i < c->n; i++) {
        size_t kept = 0;
        TRY(set_of(c->run, c->args[i], i ? &next : &common));
        for (size_t k = 0; i && k < common.n; k++) {
            if (contains(c->run, &next, common.members[k].value)) {
                common.members[kept++] = common.members[k];
            }
        }
        common.n = i ? kept : common.n;
    }
    return made_of(c->run, &common, value_out);
}

/* In the order of the first array. */
static err set_difference(const mql__call *c, mql_value *value_out) {
    set left, right;
    TRY(check_pair(c, 17048, 17049));
    TRY(set_of(c->run, c->args[0], &left));
    TRY(set_of(c->run, c->args[1], &right));
    size_t n = mql_length(c->args[0]);
    TRY(mql__check_room(c->run, n));
    bool *keep = arena_array(c->run->arena, bool, n + 1);
    for (size_t i = 0; i < left.n; i++) {
        keep[left.members[i].at] = !contains(c->run, &right, left.members[i].value);
    }
    mql__maker m = mql__make(c->run);
    doc_walk w;
    doc_element e;
    doc_walk_init(&w, c->args[0].bytes);
    for (size_t i = 0; i < n && doc_walk_next(&w, &e); i++) {
        mql__make_next(&m, keep[i] ? mql_of(&e) : mql_missing());
    }
    return mql__made(c->run, &m, BSON_TYPE_ARRAY, OK, value_out);
}

static err set_is_subset(const mql__call *c, mql_value *value_out) {
    set left, right;
    TRY(check_pair(c, 17046, 17042));
    TRY(set_of(c->run, c->args[0], &left));
    TRY(set_of(c->run, c->args[1], &right));
    *value_out = mql_bool(subset(c->run, &left, &right));
    return OK;
}

static err set_equals(const mql__call *c, mql_value *value_out) {
    set first, next;
    bool equal = true;
    for (size_t i = 0; i < c->n; i++) {
        if (c->args[i].type != BSON_TYPE_ARRAY) {
            return mql__fail(c, 17044, "All operands of $setEquals must be arrays. %zu-th argument is of type: %s", i + 1,
                             mql_type_name(c->args[i].type));
        }
    }
    TRY(set_of(c->run, c->args[0], &first));
    for (size_t i = 1; i < c->n && equal; i++) {
        TRY(set_of(c->run, c->args[i], &next));
        equal = first.n == next.n && subset(c->run, &first, &next);
    }
    *value_out = mql_bool(equal);
    return OK;
}

static err parse_set_equals(mql_scope *s, mql_expression *node, mql_value argument) {
    TRY(mql__parse_list(s, node, argument));
    return node->n >= 2 ? OK : mql_fail(s->op, 17045, "$setEquals needs at least two arguments had: %zu", node->n);
}

/* $allElementsTrue and $anyElementTrue: `variant` is the truth value of an element that decides the result. */
static err elements_true(const mql__call *c, mql_value *value_out) {
    bool decisive = c->e->operator->variant;
    doc_walk w;
    doc_element e;
    if (c->args[0].type != BSON_TYPE_ARRAY) {
        return mql__fail(c, decisive ? 17041 : 17040, "%s's argument must be an array, but is %s", mql__name(c),
                         mql_type_name(c->args[0].type));
    }
    TRY(mql_pay(c->run, mql__reading(c->args[0])));
    *value_out = mql_bool(!decisive);
    doc_walk_init(&w, c->args[0].bytes);
    while (doc_walk_next(&w, &e)) {
        if (mql_truth(mql_of(&e)) == decisive) {
            *value_out = mql_bool(decisive);
            return OK;
        }
    }
    return OK;
}

static const mql__operator rows[] = {
    {"$setUnion", 0, MQL__ANY, MQL__SERVICE, .function = set_union},
    {"$setIntersection", 0, MQL__ANY, MQL__SERVICE, .function = set_intersection},
    {"$setDifference", 2, 2, MQL__SERVICE | MQL__NULLS, .function = set_difference},
    {"$setIsSubset", 2, 2, MQL__SERVICE, .function = set_is_subset},
    {"$setEquals", .flags = MQL__SERVICE, .function = set_equals, .parse = parse_set_equals},
    {"$allElementsTrue", 1, 1, MQL__SERVICE, .function = elements_true, .variant = false},
    {"$anyElementTrue", 1, 1, MQL__SERVICE, .function = elements_true, .variant = true},
};
const mql__operators mql__set_operators = MQL__OPERATORS(rows);
