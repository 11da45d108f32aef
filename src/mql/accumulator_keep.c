/* accumulator_keep.c — accumulators that keep values: $first, $last, $min, $max, $push, $addToSet, $mergeObjects. */
#include <stdlib.h>

#include "mql/accumulator_int.h"

/* ---- states: the kept values as an array ---- */

static err save_kept(mql_run *r, const mql_tally *t, mql__maker *m) {
    mql_value values;
    TRY(mql__list_kept(r, t->kept, t->kept_n, &values));
    mql__make_member(m, SLICE_LIT("values"), values);
    return OK;
}

/* Adds the values of a saved state, one after the other. */
static err load_kept(mql_run *r, mql_tally *t, mql_value state) {
    doc_walk w;
    doc_element e;
    mql_value values = mql_member(state, SLICE_LIT("values"));
    if (values.type != BSON_TYPE_ARRAY) {
        return mql_fail(r->op, 2, "not a state of an accumulator");
    }
    doc_walk_init(&w, values.bytes);
    while (doc_walk_next(&w, &e)) {
        TRY(t->a->row->add(r, t, mql_of(&e)));
    }
    return OK;
}

static err merge_kept(mql_run *r, mql_tally *t, const mql_tally *from) {
    for (size_t i = 0; i < from->kept_n; i++) {
        TRY(t->a->row->add(r, t, from->kept[i].value));
    }
    return OK;
}

/* ---- one value ---- */

static err one_value(mql_run *r, const mql_tally *t, mql_value *value_out) {
    (void)r;
    *value_out = t->kept_n ? t->kept[0].value : mql_null();
    return OK;
}

static err add_first(mql_run *r, mql_tally *t, mql_value v) {
    (void)r;
    return t->kept_n ? OK : mql__keep_only(t, mql_is_missing(v) ? mql_null() : v);
}

static err add_last(mql_run *r, mql_tally *t, mql_value v) {
    (void)r;
    return mql__keep_only(t, mql_is_missing(v) ? mql_null() : v);
}

/* `variant`: 1 keeps the largest, -1 the smallest. */
static err add_extreme(mql_run *r, mql_tally *t, mql_value v) {
    if (mql_is_nullish(v)) {
        return OK;
    }
    TRY(mql_pay(r, mql__reading(v)));
    return t->kept_n == 0 || mql__compare(r, v, t->kept[0].value) * t->a->row->variant > 0 ? mql__keep_only(t, v) : OK;
}

/* ---- $push: the elements of the array ---- */

static err check_bytes(mql_run *r, const mql_tally *t) {
    if (buf_ok(&t->bytes)) {
        return OK;
    }
    err e = t->budget ? budget_error(t->budget) : OK;
    return e ? e : mql__check_room(r, SIZE_MAX);
}

static err push(mql_run *r, mql_tally *t, mql_value v) {
    mql__maker m = {t->bytes, t->elements};
    mql__make_next(&m, v);
    t->bytes = m.bytes;
    t->elements = m.n;
    TRY(mql_pay(r, mql__reading(v)));
    return check_bytes(r, t);
}

static err pushed(mql_run *r, const mql_tally *t, mql_value *value_out) {
    size_t n = 4 + t->bytes.n + 1;
    TRY(mql__check_room(r, n));
    char *p = arena_alloc(r->arena, n);
    doc_store_i32(p, (int32_t)n);
    if (t->bytes.n) {
        memcpy(p + 4, t->bytes.p, t->bytes.n);
    }
    p[n - 1] = 0;
    *value_out = mql_array(slice_of(p, n));
    return OK;
}

static err push_all(mql_run *r, mql_tally *t, mql_value array) {
    doc_walk w;
    doc_element e;
    doc_walk_init(&w, array.bytes);
    while (doc_walk_next(&w, &e)) {
        TRY(push(r, t, mql_of(&e)));
    }
    return OK;
}

static err merge_pushed(mql_run *r, mql_tally *t, const mql_tally *from) {
    mql_value array;
    TRY(pushed(r, from, &array));
    return push_all(r, t, array);
}

static err save_pushed(mql_run *r, const mql_tally *t, mql__maker *m) {
    mql_value array;
    TRY(pushed(r, t, &array));
    mql__make_member(m, SLICE_LIT("values"), array);
    return OK;
}

/* ---- $addToSet: sorted and made unique whenever it has doubled, so that adding takes logarithmic time ---- */

static int by_value(const void *x, const void *y, void *run) {
    const mql__kept *a = x, *b = y;
    int by = mql__compare(run, a->value, b->value);
    return by ? by : (a->order > b->order) - (a->order < b->order);
}

static err make_unique(mql_run *r, mql_tally *t) {
    size_t n = 0;
    TRY(mql_pay(r, t->kept_n * 32));
    qsort_r(t->kept, t->kept_n, sizeof *t->kept, by_value, r);
    for (size_t i = 0; i < t->kept_n; i++) {
        if (n && mql__compare(r, t->kept[n - 1].value, t->kept[i].value) == 0) {
            mql__drop_kept(t, i);
        } else {
            t->kept[n++] = t->kept[i];
        }
    }
    t->kept_n = t->sorted_n = n;
    return OK;
}

static err add_to_set(mql_run *r, mql_tally *t, mql_value v) {
    enum { UNSORTED_AT_LEAST = 32 };
    if (mql_is_missing(v)) {
        return OK;
    }
    t->count++;
    TRY(mql__keep_value(t, v, mql_missing()));
    return t->kept_n >= 2 * t->sorted_n + UNSORTED_AT_LEAST ? make_unique(r, t) : OK;
}

/* Sorts a copy, so that reading the value does not change the tally. */
static err set_value(mql_run *r, const mql_tally *t, mql_value *value_out) {
    size_t n = 0;
    TRY(mql_pay(r, t->kept_n * 32));
    TRY(mql__check_room(r, t->kept_n * sizeof(mql__kept)));
    mql__kept *sorted = arena_alloc(r->arena, (t->kept_n + 1) * sizeof *sorted);
    if (t->kept_n) {
        memcpy(sorted, t->kept, t->kept_n * sizeof *sorted);
    }
    qsort_r(sorted, t->kept_n, sizeof *sorted, by_value, r);
    for (size_t i = 0; i < t->kept_n; i++) {
        if (n == 0 || mql__compare(r, sorted[n - 1].value, sorted[i].value) != 0) {
            sorted[n++] = sorted[i];
        }
    }
    return mql__list_kept(r, sorted, n, value_out);
}

/* ---- $mergeObjects ---- */

static err merge_object(mql_run *r, mql_tally *t, mql_value v) {
    mql_value merged;
    if (mql_is_nullish(v)) {
        return OK;
    }
    if (v.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(r->op, 40400, "$mergeObjects requires object inputs, but input %s is of type %s", mql__show(r->arena, v),
                        mql_type_name(v.type));
    }
    mql_value before = t->kept_n ? t->kept[0].value : mql_document(SLICE_LIT("\5\0\0\0\0"));
    size_t room = mql_length(before) + mql_length(v) + 1;
    TRY(mql__check_room(r, room * sizeof(mql__member)));
    mql__member *members = arena_alloc(r->arena, room * sizeof(mql__member));
    size_t n = mql__members(before, members);
    n += mql__members(v, members + n);
    TRY(mql__object_of(r, members, n, &merged));
    return mql__keep_only(t, merged);
}

static err merged_object(mql_run *r, const mql_tally *t, mql_value *value_out) {
    (void)r;
    *value_out = t->kept_n ? t->kept[0].value : mql_document(SLICE_LIT("\5\0\0\0\0"));
    return OK;
}

static err load_pushed(mql_run *r, mql_tally *t, mql_value state) {
    mql_value values = mql_member(state, SLICE_LIT("values"));
    return values.type == BSON_TYPE_ARRAY ? push_all(r, t, values) : mql_fail(r->op, 2, "not a state of an accumulator");
}

static const mql__accumulator_row rows[] = {
    {"$first", true, false, 0, NULL, add_first, merge_kept, one_value, save_kept, load_kept},
    {"$last", true, false, 0, NULL, add_last, merge_kept, one_value, save_kept, load_kept},
    {"$min", true, true, -1, NULL, add_extreme, merge_kept, one_value, save_kept, load_kept},
    {"$max", true, true, 1, NULL, add_extreme, merge_kept, one_value, save_kept, load_kept},
    {"$push", true, false, 0, NULL, push, merge_pushed, pushed, save_pushed, load_pushed},
    {"$addToSet", true, false, 0, NULL, add_to_set, merge_kept, set_value, save_kept, load_kept},
    {"$mergeObjects", false, false, 0, NULL, merge_object, merge_kept, merged_object, save_kept, load_kept},
};
const mql__accumulators mql__keep_accumulators = MQL__OPERATORS(rows);
