/* accumulator.c — parsing accumulators, and tallies. What each does is in accumulator_<kind>.c. */
#include <stdlib.h>

#include "base/memory.h"
#include "mql/accumulator_int.h"

/* ---- the table ---- */

static const mql__accumulators *const kinds[] = {&mql__number_accumulators, &mql__keep_accumulators, &mql__n_accumulators,
                                                 &mql__percentile_accumulators};

const mql__accumulator_row *mql__accumulator_at(size_t position) {
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (position < kinds[k]->n) {
            return &kinds[k]->rows[position];
        }
        position -= kinds[k]->n;
    }
    return NULL;
}

const mql__accumulator_row *mql__accumulator_find(slice name) {
    const mql__accumulator_row *row;
    for (size_t i = 0; (row = mql__accumulator_at(i)) != NULL && !slice_eq(name, slice_str(row->name));) {
        i++;
    }
    return row;
}

/* ---- parsing ---- */

static err parse_argument(mql_scope *s, mql_accumulator *a, mql_value argument) {
    if (argument.type == BSON_TYPE_ARRAY) {
        return mql_fail(s->op, 40237, "The %s accumulator is a unary operator", a->row->name);
    }
    return a->row->parse ? a->row->parse(s, a, argument) : mql_expression_parse(s, argument, &a->input);
}

err mql_accumulator_parse(mql_scope *s, mql_value text, const mql_accumulator **accumulator_out) {
    doc_walk w;
    doc_element e;
    *accumulator_out = NULL;
    if (text.type != BSON_TYPE_DOCUMENT || !doc_walk_init(&w, text.bytes) || !doc_walk_next(&w, &e) || mql_length(text) != 1) {
        return mql_fail(s->op, 40238, "An accumulator must be an object with one field: %s", mql__show(s->op->arena, text));
    }
    mql_accumulator *a = arena_new(s->op->arena, mql_accumulator);
    a->row = mql__accumulator_find(e.key);
    if (slice_eq(e.key, SLICE_LIT("$accumulator"))) {
        return mql_fail(s->op, 31264, "$accumulator not allowed without enabling server-side JavaScript");
    }
    if (!a->row) {
        return mql_fail(s->op, 15952, "unknown group operator '%.*s'", slice_shown(e.key), e.key.p);
    }
    if (s->service && !a->row->service) {
        return mql_fail(s->op, 15952, "The accumulator '%s' is not supported.", a->row->name);
    }
    *accumulator_out = a;
    return parse_argument(s, a, mql_of(&e));
}

void mql_accumulator_paths(const mql_accumulator *a, void (*visit)(void *context, slice path), void *context) {
    if (a->input) {
        mql_expression_paths(a->input, visit, context);
    }
    for (size_t i = 0; i < a->sort.n; i++) {
        visit(context, a->sort.parts[i].path);
    }
}

/* ---- tallies ---- */

mql_tally *mql_tally_begin(arena *memory, const mql_accumulator *a) {
    mql_tally *t = arena_new(memory, mql_tally);
    t->a = a;
    t->budget = memory->budget;
    t->bytes = buf_init_counted(16 * 1024 * 1024, t->budget);
    mql__total_clear(&t->total);
    return t;
}

void mql_tally_free(mql_tally *t) {
    for (size_t i = 0; i < t->kept_n; i++) {
        mql__drop_kept(t, i);
    }
    if (t->budget && t->kept_room) {
        budget_give(t->budget, t->kept_room * sizeof *t->kept);
    }
    free(t->kept);
    buf_free(&t->bytes);
    t->kept = NULL;
    t->kept_n = t->kept_room = 0;
}

err mql__take_n(op *o, arena *a, mql_value v, int64_t *n_out) {
    if (!mql_as_integer(v, n_out)) {
        return mql_fail(o, mql_is_number(v) ? 5787903 : 5787902, "Value for 'n' must be of integral type, but found %s", mql__show(a, v));
    }
    return *n_out > 0 ? OK : mql_fail(o, 5787908, "'n' must be greater than 0, found %lld", (long long)*n_out);
}

err mql_tally_for_group(mql_run *r, mql_tally *t, mql_value group_id) {
    mql_value n, root = r->root;
    if (!t->a->n) {
        t->limit = 1;
        return OK;
    }
    r->root = group_id;
    err e = mql_evaluate(r, t->a->n, &n);
    r->root = root;
    return e ? e : mql__take_n(r->op, r->arena, n, &t->limit);
}

static err know_limit(mql_run *r, mql_tally *t) {
    return t->limit ? OK : mql_tally_for_group(r, t, mql_missing());
}

enum { CHECK_EVERY = 65536 }; /* additions between two check points: some milliseconds */

err mql_tally_add_times(mql_run *r, mql_tally *t, uint64_t times) {
    mql_value v = mql_missing();
    if (t->a->input) {
        TRY(mql_evaluate(r, t->a->input, &v));
    }
    TRY(know_limit(r, t));
    for (uint64_t i = 0; i < times; i++) {
        TRY(t->a->row->add(r, t, v));
        TRY(i % CHECK_EVERY == CHECK_EVERY - 1 ? op_check(r->op) : OK);
    }
    return OK;
}

err mql_tally_add(mql_run *r, mql_tally *t) {
    return mql_tally_add_times(r, t, 1);
}

err mql_tally_merge(mql_run *r, mql_tally *t, const mql_tally *from) {
    t->limit = t->limit ? t->limit : from->limit;
    TRY(know_limit(r, t));
    return t->a->row->merge(r, t, from);
}

err mql_tally_value(mql_run *r, const mql_tally *t, mql_value *value_out) {
    *value_out = mql_null();
    return t->a->row->value(r, t, value_out);
}

err mql_tally_save(mql_run *r, const mql_tally *t, mql_value *state_out) {
    mql__maker m = mql__make(r);
    mql__make_member(&m, SLICE_LIT("limit"), mql_int64(r->arena, t->limit));
    err e = t->a->row->save(r, t, &m);
    return mql__made(r, &m, BSON_TYPE_DOCUMENT, e, state_out);
}

err mql_tally_load(mql_run *r, mql_tally *t, mql_value state) {
    if (state.type != BSON_TYPE_DOCUMENT || !mql_as_integer(mql_member(state, SLICE_LIT("limit")), &t->limit)) {
        return mql_fail(r->op, 2, "not a state of an accumulator");
    }
    return t->a->row->load(r, t, state);
}

err mql__accumulate(mql_run *r, const mql_accumulator *a, const mql_value *operands, size_t n, int64_t limit, mql_value *value_out) {
    err e = mql_pay(r, 2 + n);
    mql_tally *t = mql_tally_begin(r->arena, a);
    t->limit = limit;
    for (size_t i = 0; i < n && e == OK; i++) {
        e = a->row->add(r, t, operands[i]);
    }
    e = e ? e : mql_tally_value(r, t, value_out);
    e = e ? e : mql__check_room(r, value_out->bytes.n);
    if (e == OK && value_out->bytes.n) {
        value_out->bytes = arena_copy(r->arena, value_out->bytes);
    }
    mql_tally_free(t);
    return e;
}

/* ---- kept values ---- */

static bool take(budget *b, size_t n) {
    return !b || budget_take(b, n);
}

static err no_room(const mql_tally *t) {
    return t->budget ? budget_error(t->budget) : E_MEMORY;
}

enum { KEPT_OVERHEAD = 16 }; /* about what malloc adds */

static size_t kept_bytes(const mql__kept *k) {
    return k->value.bytes.n + k->key.bytes.n + KEPT_OVERHEAD;
}

static err copy_kept(mql_tally *t, mql_value value, mql_value key, mql__kept *kept_out) {
    *kept_out = (mql__kept){value, key, t->count};
    if (!take(t->budget, kept_bytes(kept_out))) {
        return no_room(t);
    }
    char *p = mem_alloc(value.bytes.n + key.bytes.n + 1);
    memcpy(p, value.bytes.p, value.bytes.n);
    memcpy(p + value.bytes.n, key.bytes.p, key.bytes.n);
    kept_out->value.bytes.p = p;
    kept_out->key.bytes.p = p + value.bytes.n;
    return OK;
}

void mql__drop_kept(mql_tally *t, size_t position) {
    mql__kept *k = &t->kept[position];
    if (t->budget) {
        budget_give(t->budget, kept_bytes(k));
    }
    free((void *)(uintptr_t)k->value.bytes.p);
}

static err have_room(mql_tally *t) {
    if (t->kept_n < t->kept_room) {
        return OK;
    }
    size_t room = t->kept_room ? 2 * t->kept_room : 4;
    if (!take(t->budget, (room - t->kept_room) * sizeof *t->kept)) {
        return no_room(t);
    }
    t->kept = mem_resize(t->kept, room * sizeof *t->kept);
    t->kept_room = room;
    return OK;
}

err mql__keep_value(mql_tally *t, mql_value value, mql_value key) {
    TRY(have_room(t));
    TRY(copy_kept(t, value, key, &t->kept[t->kept_n]));
    t->kept_n++;
    return OK;
}

err mql__keep_only(mql_tally *t, mql_value value) {
    mql__kept one;
    TRY(have_room(t));
    TRY(copy_kept(t, value, mql_missing(), &one));
    if (t->kept_n) {
        mql__drop_kept(t, 0);
    }
    t->kept[0] = one;
    t->kept_n = 1;
    return OK;
}

err mql__list_kept(mql_run *r, const mql__kept *kept, size_t n, mql_value *value_out) {
    mql__maker m = mql__make(r);
    for (size_t i = 0; i < n && buf_ok(&m.bytes); i++) {
        mql__make_next(&m, kept[i].value);
    }
    return mql__made(r, &m, BSON_TYPE_ARRAY, mql_pay(r, n), value_out);
}
