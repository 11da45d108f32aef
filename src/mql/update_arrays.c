/* update_arrays.c — $addToSet and $pop. */
#include "mql/number.h"
#include "mql/show.h"
#include "mql/update_int.h"

/* ---- $addToSet ---- */

static const slice each = SLICE_LIT("$each");

/* {$each: […]} adds several values. It counts only if $each is the first member. */
static err parse_add(mql__update_parser *p, mql__leaf *leaf) {
    op *o = p->scope->op;
    doc_walk w;
    doc_element e;
    if (leaf->operand.type != BSON_TYPE_DOCUMENT || !doc_walk_init(&w, leaf->operand.bytes) || !doc_walk_next(&w, &e) ||
        !slice_eq(e.key, each)) {
        return OK;
    }
    if (e.type != BSON_TYPE_ARRAY) {
        return mql_fail(o, 14, "The argument to $each in $addToSet must be an array but it was of type %s", mql_type_name(e.type));
    }
    if (mql_length(leaf->operand) > 1) {
        return mql_fail(o, 2, "Found unexpected fields after $each in $addToSet: %s", mql__show(o->arena, leaf->operand));
    }
    mql_value *values = arena_new(o->arena, mql_value);
    *values = mql_of(&e);
    leaf->detail = values;
    return OK;
}

/* Whether one of the array's first `n` elements is the value. */
static err contains(mql_run *r, mql_value array, size_t n, mql_value v, bool *contains_out) {
    doc_walk w;
    doc_element e;
    if (mql_is_missing(array)) {
        return OK;
    }
    doc_walk_init(&w, array.bytes);
    for (size_t i = 0; i < n && !*contains_out && doc_walk_next(&w, &e); i++) {
        TRY(mql_pay(r, 2 + e.value.n / 64));
        *contains_out = mql_compare_by(r->collation, mql_of(&e), v) == 0;
    }
    return OK;
}

static void copy_elements(mql_builder *b, mql_value array) {
    doc_walk w;
    doc_element e;
    if (!mql_is_missing(array)) {
        for (doc_walk_init(&w, array.bytes); doc_walk_next(&w, &e);) {
            mql_add_next(b, mql_of(&e));
        }
    }
}

/* Adds the elements of `more` that are neither in `old` nor earlier in `more`. */
static err add_each(mql__change *c, mql_builder *b, mql_value old, mql_value more, bool *added_out) {
    doc_walk w;
    doc_element e;
    doc_walk_init(&w, more.bytes);
    for (size_t i = 0; doc_walk_next(&w, &e); i++) {
        bool there = false;
        TRY(contains(c->run, old, SIZE_MAX, mql_of(&e), &there));
        TRY(contains(c->run, more, i, mql_of(&e), &there));
        if (!there) {
            mql_add_next(b, mql_of(&e));
            *added_out = true;
        }
    }
    return OK;
}

static err add_one(mql__change *c, mql_builder *b, mql_value old, mql_value v, bool *added_out) {
    bool there = false;
    TRY(contains(c->run, old, SIZE_MAX, v, &there));
    if (!there) {
        mql_add_next(b, v);
        *added_out = true;
    }
    return OK;
}

static err add_to_set(mql__change *c, const mql__leaf *leaf, mql_value old, mql_value *new_out) {
    const mql_value *several = leaf->detail;
    bool added = false;
    if (!mql_is_missing(old) && old.type != BSON_TYPE_ARRAY) {
        slice field = leaf->parts[leaf->parts_n - 1];
        return mql_fail(c->run->op, 2, "Cannot apply $addToSet to non-array field. Field named '%.*s' has non-array type %s",
                        slice_shown(field), field.p, mql_type_name(old.type));
    }
    mql_builder b = mql_build(&c->scratch);
    TRY(mql_pay(c->run, 1 + old.bytes.n / 32));
    copy_elements(&b, old);
    TRY(several ? add_each(c, &b, old, *several, &added) : add_one(c, &b, old, leaf->operand, &added));
    if (!added && !mql_is_missing(old)) {
        *new_out = old;
        return OK;
    }
    return mql__scratch_value(c, &b, BSON_TYPE_ARRAY, new_out);
}

/* ---- $pop ---- */

static err parse_pop(mql__update_parser *p, mql__leaf *leaf) {
    op *o = p->scope->op;
    int64_t end;
    const char *shown = mql__show(o->arena, leaf->operand);
    if (!mql_is_number(leaf->operand)) {
        return mql_fail(o, 9, "Expected a number in: %.*s: %s", slice_shown(leaf->path), leaf->path.p, shown);
    }
    if (!mql_as_integer(leaf->operand, &end)) {
        return mql_fail(o, 9, "Expected an integer: %.*s: %s", slice_shown(leaf->path), leaf->path.p, shown);
    }
    return end == 1 || end == -1 ? OK : mql_fail(o, 9, "$pop expects 1 or -1, found: %s", shown);
}

static err pop(mql__change *c, const mql__leaf *leaf, mql_value old, mql_value *new_out) {
    int64_t end;
    doc_walk w;
    doc_element e;
    *new_out = old;
    if (mql_is_missing(old)) {
        return OK;
    }
    slice path = mql__path_now(c);
    if (old.type != BSON_TYPE_ARRAY) {
        return mql_fail(c->run->op, 14, "Path '%.*s' contains an element of non-array type '%s'", slice_shown(path), path.p,
                        mql_type_name(old.type));
    }
    size_t n = mql_length(old);
    TRY(mql_pay(c->run, 1 + old.bytes.n / 32));
    if (n == 0 || !mql_as_integer(leaf->operand, &end)) {
        return OK;
    }
    size_t removed = end < 0 ? 0 : n - 1;
    mql_builder b = mql_build(&c->scratch);
    doc_walk_init(&w, old.bytes);
    for (size_t i = 0; doc_walk_next(&w, &e); i++) {
        if (i != removed) {
            mql_add_next(&b, mql_of(&e));
        }
    }
    return mql__scratch_value(c, &b, BSON_TYPE_ARRAY, new_out);
}

static const mql__modifier rows[] = {
    {SLICE_LIT("$addToSet"), parse_add, add_to_set, 0},
    {SLICE_LIT("$pop"), parse_pop, pop, 0},
};
const mql__modifiers mql__array_modifiers = {rows, sizeof rows / sizeof *rows};
