/* accumulator_n.c — accumulators that keep the best n values: $firstN, $lastN, $minN, $maxN, $top, $topN, $bottom, $bottomN.
 *
 * The kept values are a heap whose root is the worst of them, so that a better value replaces it in logarithmic time. */
#include <stdlib.h>

#include "mql/accumulator_int.h"

enum { FIRST, LAST, MIN, MAX, TOP, BOTTOM, SINGLE = 8 /* $top and $bottom: a value, not an array */ };

static int which(const mql_tally *t) {
    return t->a->row->variant & ~SINGLE;
}

/* ---- order ---- */

typedef struct ranking {
    mql_run *run;
    const mql_tally *tally;
} ranking;

static int by_content(mql_run *r, const mql_tally *t, const mql__kept *a, const mql__kept *b) {
    switch (which(t)) {
    case MIN:
        return mql__compare(r, a->value, b->value);
    case MAX:
        return mql__compare(r, b->value, a->value);
    case TOP:
        return mql_sort_compare(&t->a->sort, r->collation, a->key.bytes, b->key.bytes);
    case BOTTOM:
        return mql_sort_compare(&t->a->sort, r->collation, b->key.bytes, a->key.bytes);
    default:
        return 0;
    }
}

/* < 0: a is better than b. */
static int rank(mql_run *r, const mql_tally *t, const mql__kept *a, const mql__kept *b) {
    int by = by_content(r, t, a, b);
    bool later_first = which(t) == LAST || which(t) == BOTTOM;
    int by_order = (a->order > b->order) - (a->order < b->order);
    return by ? by : later_first ? -by_order : by_order;
}

static int by_rank(const void *x, const void *y, void *context) {
    const ranking *k = context;
    return rank(k->run, k->tally, x, y);
}

static int by_order(const void *x, const void *y) {
    const mql__kept *a = x, *b = y;
    return (a->order > b->order) - (a->order < b->order);
}

/* ---- the heap ---- */

static void swap(mql__kept *a, mql__kept *b) {
    mql__kept held = *a;
    *a = *b;
    *b = held;
}

static void sift_up(mql_run *r, mql_tally *t, size_t at) {
    while (at && rank(r, t, &t->kept[at], &t->kept[(at - 1) / 2]) > 0) {
        swap(&t->kept[at], &t->kept[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void sift_down(mql_run *r, mql_tally *t, size_t at) {
    for (;;) {
        size_t worst = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < t->kept_n; child++) {
            worst = rank(r, t, &t->kept[child], &t->kept[worst]) > 0 ? child : worst;
        }
        if (worst == at) {
            return;
        }
        swap(&t->kept[at], &t->kept[worst]);
        at = worst;
    }
}

static err offer(mql_run *r, mql_tally *t, mql_value value, mql_value key) {
    mql__kept candidate = {value, key, ++t->count};
    TRY(mql_pay(r, 4 + mql__reading(key)));
    if ((int64_t)t->kept_n < t->limit) {
        TRY(mql__keep_value(t, value, key));
        sift_up(r, t, t->kept_n - 1);
        return OK;
    }
    if (rank(r, t, &candidate, &t->kept[0]) >= 0) {
        return OK;
    }
    TRY(mql__keep_value(t, value, key));
    mql__drop_kept(t, 0);
    t->kept[0] = t->kept[--t->kept_n];
    sift_down(r, t, 0);
    return OK;
}

/* ---- adding ---- */

static err add_value(mql_run *r, mql_tally *t, mql_value v) {
    bool extreme = which(t) == MIN || which(t) == MAX;
    if (extreme && mql_is_nullish(v)) {
        return OK;
    }
    return offer(r, t, mql_is_missing(v) ? mql_null() : v, mql_missing());
}

static err add_sorted(mql_run *r, mql_tally *t, mql_value v) {
    slice key;
    TRY(mql_sort_key(r, &t->a->sort, r->root.bytes, &key));
    return offer(r, t, mql_is_missing(v) ? mql_null() : v, mql_array(key));
}

/* ---- values ---- */

static err copy_of(mql_run *r, const mql_tally *t, mql__kept **copy_out) {
    TRY(mql_pay(r, t->kept_n * 16));
    TRY(mql__check_room(r, t->kept_n * sizeof(mql__kept)));
    *copy_out = arena_alloc(r->arena, (t->kept_n + 1) * sizeof(mql__kept));
    if (t->kept_n) {
        memcpy(*copy_out, t->kept, t->kept_n * sizeof(mql__kept));
    }
    return OK;
}

static void reverse(mql__kept *kept, size_t n) {
    for (size_t i = 0; i < n / 2; i++) {
        swap(&kept[i], &kept[n - 1 - i]);
    }
}

static err best(mql_run *r, const mql_tally *t, mql_value *value_out) {
    mql__kept *sorted;
    ranking k = {r, t};
    if (t->a->row->variant & SINGLE) {
        *value_out = t->kept_n ? t->kept[0].value : mql_null();
        return OK;
    }
    TRY(copy_of(r, t, &sorted));
    qsort_r(sorted, t->kept_n, sizeof *sorted, by_rank, &k);
    if (which(t) == LAST || which(t) == BOTTOM) {
        reverse(sorted, t->kept_n);
    }
    return mql__list_kept(r, sorted, t->kept_n, value_out);
}

/* ---- in the order in which they came ---- */

static err merge(mql_run *r, mql_tally *t, const mql_tally *from) {
    mql__kept *in_order;
    TRY(copy_of(r, from, &in_order));
    qsort(in_order, from->kept_n, sizeof *in_order, by_order);
    for (size_t i = 0; i < from->kept_n; i++) {
        TRY(offer(r, t, in_order[i].value, in_order[i].key));
    }
    return OK;
}

static err save(mql_run *r, const mql_tally *t, mql__maker *m) {
    mql__kept *in_order;
    mql_value values, keys;
    TRY(copy_of(r, t, &in_order));
    qsort(in_order, t->kept_n, sizeof *in_order, by_order);
    TRY(mql__list_kept(r, in_order, t->kept_n, &values));
    for (size_t i = 0; i < t->kept_n; i++) {
        in_order[i].value = in_order[i].key;
    }
    TRY(mql__list_kept(r, in_order, t->kept_n, &keys));
    mql__make_member(m, SLICE_LIT("values"), values);
    mql__make_member(m, SLICE_LIT("keys"), keys);
    return OK;
}

static bool is_key(const mql_tally *t, mql_value key) {
    return t->a->sort.n ? key.type == BSON_TYPE_ARRAY && mql_length(key) == t->a->sort.n : true;
}

static err load(mql_run *r, mql_tally *t, mql_value state) {
    doc_walk values, keys;
    doc_element value, key;
    mql_value all = mql_member(state, SLICE_LIT("values")), all_keys = mql_member(state, SLICE_LIT("keys"));
    if (all.type != BSON_TYPE_ARRAY || all_keys.type != BSON_TYPE_ARRAY || (t->limit <= 0 && mql_length(all))) {
        return mql_fail(r->op, 2, "not a state of an accumulator");
    }
    doc_walk_init(&values, all.bytes);
    doc_walk_init(&keys, all_keys.bytes);
    while (doc_walk_next(&values, &value)) {
        mql_value its_key = doc_walk_next(&keys, &key) ? mql_of(&key) : mql_missing();
        if (!is_key(t, its_key)) {
            return mql_fail(r->op, 2, "not a state of an accumulator");
        }
        TRY(offer(r, t, mql_of(&value), its_key));
    }
    return OK;
}

/* ---- parsing ---- */

static err take_members(mql_scope *s, mql_accumulator *a, mql_value argument, const char *const names[], int unknown, mql_value values[]) {
    doc_walk w;
    doc_element e;
    doc_walk_init(&w, argument.bytes);
    while (doc_walk_next(&w, &e)) {
        size_t i = 0;
        while (names[i] && !slice_eq(e.key, slice_str(names[i]))) {
            i++;
        }
        if (!names[i]) {
            return unknown == 5787901
                       ? mql_fail(s->op, unknown, "Unknown argument for 'n' operator: %.*s", slice_shown(e.key), e.key.p)
                       : mql_fail(s->op, unknown, "Unknown argument to %s '%.*s'", a->row->name, slice_shown(e.key), e.key.p);
        }
        values[i] = mql_of(&e);
    }
    return OK;
}

static err no_object(mql_scope *s, int code, mql_value found) {
    return mql_fail(s->op, code, "specification must be an object; found %s", mql__show(s->op->arena, found));
}

/* A constant n is checked now. */
static err parse_n(mql_scope *s, mql_accumulator *a, mql_value text) {
    mql_value v;
    int64_t n;
    TRY(mql_expression_parse(s, text, &a->n));
    return mql_expression_constant(a->n, &v) ? mql__take_n(s->op, s->op->arena, v, &n) : OK;
}

static err parse_best(mql_scope *s, mql_accumulator *a, mql_value argument) {
    static const char *const names[] = {"n", "input", NULL};
    mql_value values[2] = {mql_missing(), mql_missing()};
    bool by_place = a->row->variant == FIRST || a->row->variant == LAST;
    if (argument.type != BSON_TYPE_DOCUMENT) {
        return no_object(s, by_place ? 5787801 : 5787900, argument);
    }
    TRY(take_members(s, a, argument, names, 5787901, values));
    for (int i = 0; i < 2; i++) {
        if (mql_is_missing(values[i])) {
            return mql_fail(s->op, 5787906 + i, "Missing value for '%s'", names[i]);
        }
    }
    TRY(parse_n(s, a, values[0]));
    return mql_expression_parse(s, values[1], &a->input);
}

static err parse_sorted(mql_scope *s, mql_accumulator *a, mql_value argument) {
    static const char *const names[] = {"n", "output", "sortBy", NULL};
    mql_value values[3] = {mql_missing(), mql_missing(), mql_missing()};
    bool single = a->row->variant & SINGLE;
    if (argument.type != BSON_TYPE_DOCUMENT) {
        return no_object(s, 5788001, argument);
    }
    TRY(take_members(s, a, argument, names, 5788002, values));
    if (single && !mql_is_missing(values[0])) {
        return mql_fail(s->op, 5788002, "Unknown argument to %s 'n'", a->row->name);
    }
    for (int i = single; i < 3; i++) {
        if (mql_is_missing(values[i])) {
            return mql_fail(s->op, 5788003 + i, "Missing value for '%s'", names[i]);
        }
    }
    if (values[2].type != BSON_TYPE_DOCUMENT) {
        return mql_fail(s->op, 10065, "invalid parameter: expected an object (sortBy)");
    }
    TRY(single ? OK : parse_n(s, a, values[0]));
    TRY(mql_sort_parse(s->op, values[2].bytes, &a->sort));
    return mql_expression_parse(s, values[1], &a->input);
}

static const mql__accumulator_row rows[] = {
    {"$firstN", false, false, FIRST, parse_best, add_value, merge, best, save, load},
    {"$lastN", false, false, LAST, parse_best, add_value, merge, best, save, load},
    {"$minN", false, false, MIN, parse_best, add_value, merge, best, save, load},
    {"$maxN", false, false, MAX, parse_best, add_value, merge, best, save, load},
    {"$top", false, false, TOP | SINGLE, parse_sorted, add_sorted, merge, best, save, load},
    {"$topN", false, false, TOP, parse_sorted, add_sorted, merge, best, save, load},
    {"$bottom", false, false, BOTTOM | SINGLE, parse_sorted, add_sorted, merge, best, save, load},
    {"$bottomN", false, false, BOTTOM, parse_sorted, add_sorted, merge, best, save, load},
};
const mql__accumulators mql__n_accumulators = MQL__OPERATORS(rows);
