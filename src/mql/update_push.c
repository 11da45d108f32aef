/* update_push.c — $push, with $each, $position, $sort and $slice. */
#include <stdlib.h>

#include "mql/number.h"
#include "mql/show.h"
#include "mql/sort.h"
#include "mql/update_int.h"

/* The clauses of {$push: {a: {$each: […], $position: 1, $sort: {b: 1}, $slice: -3}}}. */
typedef struct push {
    mql_value each; /* missing: the operand itself is pushed */
    int64_t position, slice;
    bool sorted, by_fields; /* by_fields: sorted by the fields in `sort`; otherwise by the whole element */
    bool descending;
    mql_sort sort;
} push;

/* ---- parsing ---- */

static err parse_sort(op *o, push *p, mql_value v) {
    int64_t direction;
    p->sorted = true;
    if (mql_is_number(v)) {
        if (!mql_as_integer(v, &direction) || (direction != 1 && direction != -1)) {
            return mql_fail(o, 2, "The $sort element value must be either 1 or -1");
        }
        p->descending = direction < 0;
        return OK;
    }
    if (v.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(o, 2, "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields");
    }
    if (mql_length(v) == 0) {
        return mql_fail(o, 2, "The $sort pattern is empty when it should be a set of fields.");
    }
    p->by_fields = true;
    return mql_sort_parse(o, v.bytes, &p->sort);
}

static err parse_clause(op *o, push *p, const doc_element *e) {
    if (slice_eq(e->key, SLICE_LIT("$each"))) {
        p->each = mql_of(e);
        return e->type == BSON_TYPE_ARRAY
                   ? OK
                   : mql_fail(o, 2, "The argument to $each in $push must be an array but it was of type: %s", mql_type_name(e->type));
    }
    if (slice_eq(e->key, SLICE_LIT("$sort"))) {
        return parse_sort(o, p, mql_of(e));
    }
    if (slice_eq(e->key, SLICE_LIT("$slice"))) {
        return mql_as_integer(mql_of(e), &p->slice)
                   ? OK
                   : mql_fail(o, 2, "The value for $slice must be an integer value but was given type: %s", mql_type_name(e->type));
    }
    if (slice_eq(e->key, SLICE_LIT("$position"))) {
        return mql_as_integer(mql_of(e), &p->position)
                   ? OK
                   : mql_fail(o, 2, "The value for $position must be an integer value, not of type: %s", mql_type_name(e->type));
    }
    return mql_fail(o, 2, "Unrecognized clause in $push: %.*s", slice_shown(e->key), e->key.p);
}

static err parse_push(mql__update_parser *parser, mql__leaf *leaf) {
    op *o = parser->scope->op;
    push *p = arena_new(o->arena, push);
    doc_walk w;
    doc_element e;
    *p = (push){.each = mql_missing(), .position = INT64_MAX, .slice = INT64_MAX};
    leaf->detail = p;
    if (leaf->operand.type != BSON_TYPE_DOCUMENT || mql_is_missing(mql_member(leaf->operand, SLICE_LIT("$each")))) {
        return OK;
    }
    for (doc_walk_init(&w, leaf->operand.bytes); doc_walk_next(&w, &e);) {
        TRY(parse_clause(o, p, &e));
    }
    return OK;
}

/* ---- applying ---- */

/* The elements while they are put in order. */
typedef struct list {
    mql_value *values;
    size_t n;
} list;

static void append_all(list *l, mql_value array) {
    doc_walk w;
    doc_element e;
    if (!mql_is_missing(array)) {
        for (doc_walk_init(&w, array.bytes); doc_walk_next(&w, &e);) {
            l->values[l->n++] = mql_of(&e);
        }
    }
}

/* Old and new elements, the new ones at the position; a negative position counts from the end. */
static err join(mql__change *c, const push *p, const mql__leaf *leaf, mql_value old, list *l) {
    size_t had = mql_length(old), more = mql_is_missing(p->each) ? 1 : mql_length(p->each);
    TRY(mql_pay(c->run, 4 + had + more + (old.bytes.n + leaf->operand.bytes.n) / 32));
    TRY(mql__room_for(c->run->arena, (had + 2 * more + 1) * sizeof *l->values));
    l->values = arena_array(c->run->arena, mql_value, had + more + 1);
    append_all(l, old);
    if (mql_is_missing(p->each)) {
        l->values[l->n++] = leaf->operand;
    } else {
        append_all(l, p->each);
    }
    int64_t size = (int64_t)had, at = p->position < 0 ? size + (p->position < -size ? -size : p->position) : p->position;
    if (at < size) {
        mql_value *moved = arena_array(c->run->arena, mql_value, more + 1);
        memcpy(moved, l->values + had, more * sizeof *moved);
        memmove(l->values + at + more, l->values + at, (had - (size_t)at) * sizeof *moved);
        memcpy(l->values + at, moved, more * sizeof *moved);
    }
    return OK;
}

/* An element with its key, while elements are sorted; equal ones keep their order. */
typedef struct keyed {
    mql_value value;
    slice key;
    size_t ordinal;
} keyed;

typedef struct order {
    const push *push;
    const mql_collation *collation;
} order;

static int compare_keyed(const void *a, const void *b, void *context) {
    const keyed *x = a, *y = b;
    const order *o = context;
    int by = o->push->by_fields ? mql_sort_compare(&o->push->sort, o->collation, x->key, y->key)
                                : mql_compare_by(o->collation, x->value, y->value) * (o->push->descending ? -1 : 1);
    return by ? by : (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

static const char empty_document[] = "\5\0\0\0";

static err sort_list(mql__change *c, const push *p, list *l) {
    mql_run *r = c->run;
    size_t logarithm = 1;
    for (size_t n = l->n; n > 1; n /= 2) {
        logarithm++;
    }
    TRY(mql_pay(r, l->n * logarithm * 4));
    TRY(mql__room_for(r->arena, l->n * sizeof(keyed)));
    keyed *all = arena_array(r->arena, keyed, l->n + 1);
    for (size_t i = 0; i < l->n; i++) {
        all[i] = (keyed){l->values[i], SLICE_EMPTY, i};
        if (p->by_fields) { /* elements that are not documents have no sort fields */
            slice document = l->values[i].type == BSON_TYPE_DOCUMENT ? l->values[i].bytes : slice_of(empty_document, 5);
            TRY(mql_sort_key(r, &p->sort, document, &all[i].key));
        }
    }
    order by = {p, r->collation};
    qsort_r(all, l->n, sizeof *all, compare_keyed, &by);
    for (size_t i = 0; i < l->n; i++) {
        l->values[i] = all[i].value;
    }
    return OK;
}

/* The first `slice` elements, or the last if it is negative. */
static void cut(const push *p, list *l) {
    uint64_t most = p->slice < 0 ? 0 - (uint64_t)p->slice : (uint64_t)p->slice;
    if (l->n > most) {
        l->values += p->slice < 0 ? l->n - most : 0;
        l->n = most;
    }
}

static err apply_push(mql__change *c, const mql__leaf *leaf, mql_value old, mql_value *new_out) {
    const push *p = leaf->detail;
    list l = {0};
    if (!mql_is_missing(old) && old.type != BSON_TYPE_ARRAY) {
        slice path = mql__path_now(c);
        return mql_fail(c->run->op, 2, "The field '%.*s' must be an array but is of type %s in document %s", slice_shown(path), path.p,
                        mql_type_name(old.type), mql__show_id(c));
    }
    TRY(join(c, p, leaf, old, &l));
    if (p->sorted) {
        TRY(sort_list(c, p, &l));
    }
    cut(p, &l);
    mql_builder b = mql_build(&c->scratch);
    for (size_t i = 0; i < l.n; i++) {
        mql_add_next(&b, l.values[i]);
    }
    return mql__scratch_value(c, &b, BSON_TYPE_ARRAY, new_out);
}

static const mql__modifier rows[] = {{SLICE_LIT("$push"), parse_push, apply_push, 0}};
const mql__modifiers mql__push_modifiers = {rows, 1};
