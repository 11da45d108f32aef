/* expression_evaluate.c — evaluates expressions, and what the operators share: results of limited size, arrays and documents. */
#include <stdio.h>

#include "base/limits.h"
#include "mql/expression_path.h"

enum {
    RESULT_BYTES_MAX = 16 * 1024 * 1024 + 16 * 1024, /* a document of 16 MB and what a reply adds to it, as MongoDB limits it */
    ARGS_ON_STACK = 8,
};

/* ---- evaluation ---- */

err mql__argument(const mql__call *c, size_t position, mql_value *value_out) {
    *value_out = mql_missing();
    const mql_expression *arg = position < c->e->n ? c->e->args[position] : NULL;
    return arg ? mql_evaluate(c->run, arg, value_out) : OK;
}

static err evaluate_args(mql_run *r, const mql_expression *e, mql_value *args, bool *null_out) {
    *null_out = false;
    size_t n = e->operator->eager ? e->operator->eager : e->n;
    for (size_t i = 0; i < e->n; i++) {
        args[i] = mql_missing();
        if (i < n && e->args[i]) {
            TRY(mql_evaluate(r, e->args[i], &args[i]));
        }
        *null_out |= mql_is_nullish(args[i]);
    }
    return OK;
}

static err call_eager(mql_run *r, const mql_expression *e, mql_value *args, mql_value *value_out) {
    bool null;
    TRY(evaluate_args(r, e, args, &null));
    if (null && (e->operator->flags & MQL__NULLS)) {
        *value_out = mql_null();
        return OK;
    }
    mql__call c = {r, e, args, e->n};
    return e->operator->function(&c, value_out);
}

static err evaluate_operator(mql_run *r, const mql_expression *e, mql_value *value_out) {
    mql_value few[ARGS_ON_STACK];
    if (e->operator->flags & MQL__LAZY) {
        mql__call c = {r, e, NULL, e->n};
        return e->operator->function(&c, value_out);
    }
    return call_eager(r, e, e->n <= ARGS_ON_STACK ? few : arena_array(r->arena, mql_value, e->n), value_out);
}

/* Elements without a value are null. */
static err evaluate_array(mql_run *r, const mql_expression *e, mql_value *value_out) {
    mql__maker m = mql__make(r);
    err bad = OK;
    for (size_t i = 0; i < e->n && bad == OK; i++) {
        mql_value v;
        bad = mql_evaluate(r, e->args[i], &v);
        mql__make_next(&m, mql_is_missing(v) ? mql_null() : v);
    }
    return mql__made(r, &m, BSON_TYPE_ARRAY, bad, value_out);
}

/* Members without a value are left out. */
static err evaluate_object(mql_run *r, const mql_expression *e, mql_value *value_out) {
    mql__maker m = mql__make(r);
    err bad = OK;
    for (size_t i = 0; i < e->n && bad == OK; i++) {
        mql_value v;
        bad = mql_evaluate(r, e->args[i], &v);
        mql__make_member(&m, e->steps[i], v);
    }
    return mql__made(r, &m, BSON_TYPE_DOCUMENT, bad, value_out);
}

err mql_evaluate(mql_run *r, const mql_expression *e, mql_value *value_out) {
    *value_out = mql_missing();
    TRY(mql_pay(r, 2));
    if (r->arena->budget && r->arena->budget->exceeded) {
        return budget_error(r->arena->budget);
    }
    switch (e->kind) {
    case MQL__CONSTANT:
        *value_out = e->constant;
        return OK;
    case MQL__PATH:
        return mql__evaluate_path(r, e, value_out);
    case MQL__ARRAY:
        return evaluate_array(r, e, value_out);
    case MQL__OBJECT:
        return evaluate_object(r, e, value_out);
    default:
        return evaluate_operator(r, e, value_out);
    }
}

/* ---- results ---- */

static err too_large(mql_run *r) {
    return mql_fail(r->op, 10334, "BSONObj size is invalid: a result of an expression is larger than %d bytes (16MB)", RESULT_BYTES_MAX);
}

err mql__check_room(mql_run *r, size_t bytes) {
    if (bytes > RESULT_BYTES_MAX) {
        return too_large(r);
    }
    TRY(mql_pay(r, bytes / 256));
    return arena_fits(r->arena, bytes) ? OK : budget_error(r->arena->budget);
}

err mql__text_result(const mql__call *c, slice text, mql_value *value_out) {
    *value_out = mql_missing();
    TRY(mql__check_room(c->run, text.n + 5));
    *value_out = mql_text(c->run->arena, text);
    return OK;
}

err mql__integer_result(const mql__call *c, int64_t number, mql_value *value_out) {
    bool small = number >= INT32_MIN && number <= INT32_MAX;
    *value_out = small ? mql_int32(c->run->arena, (int32_t)number) : mql_int64(c->run->arena, number);
    return OK;
}

/* ---- building ---- */

mql__maker mql__make(mql_run *r) {
    mql__maker m = {buf_init_counted(RESULT_BYTES_MAX, r->arena->budget), 0};
    buf_add(&m.bytes, "\0\0\0\0", 4);
    return m;
}

void mql__make_member(mql__maker *m, slice key, mql_value v) {
    if (mql_is_missing(v)) {
        return;
    }
    buf_add_byte(&m->bytes, (char)v.type);
    buf_add_slice(&m->bytes, key);
    buf_add_byte(&m->bytes, 0);
    buf_add_slice(&m->bytes, v.bytes);
    m->n++;
}

/* The decimal digits of a position, written backwards. */
static slice position_key(char text[static 12], uint32_t n) {
    char *p = text + 12;
    do {
        *--p = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    return slice_of(p, (size_t)(text + 12 - p));
}

void mql__make_next(mql__maker *m, mql_value v) {
    char text[12];
    mql__make_member(m, position_key(text, m->n), v);
}

static err keep(mql_run *r, mql__maker *m, bson_type_t type, mql_value *value_out) {
    buf_add_byte(&m->bytes, 0);
    if (!buf_ok(&m->bytes)) {
        err e = r->arena->budget ? budget_error(r->arena->budget) : OK;
        return e ? e : too_large(r);
    }
    TRY(mql__check_room(r, m->bytes.n));
    doc_store_i32(m->bytes.p, (int32_t)m->bytes.n);
    *value_out = (mql_value){type, arena_copy(r->arena, buf_view(&m->bytes))};
    return OK;
}

err mql__made(mql_run *r, mql__maker *m, bson_type_t type, err so_far, mql_value *value_out) {
    *value_out = mql_missing();
    err e = so_far ? so_far : keep(r, m, type, value_out);
    buf_free(&m->bytes);
    return e;
}

err mql__elements(mql_run *r, mql_value array, mql_value **elements_out, size_t *n_out) {
    doc_walk w;
    doc_element e;
    size_t n = mql_length(array);
    TRY(mql_pay(r, 1 + 2 * n));
    TRY(mql__check_room(r, n * sizeof(mql_value)));
    mql_value *elements = arena_alloc(r->arena, n * sizeof(mql_value) + 1);
    doc_walk_init(&w, array.bytes);
    for (size_t i = 0; i < n && doc_walk_next(&w, &e); i++) {
        elements[i] = mql_of(&e);
    }
    *elements_out = elements;
    *n_out = n;
    return OK;
}

int mql__compare(const mql_run *r, mql_value a, mql_value b) {
    return mql_compare_by(r->collation, a, b);
}

err mql__operands(const mql__call *c, mql_value **operands_out, size_t *n_out) {
    if (c->n == 1 && c->args[0].type == BSON_TYPE_ARRAY) {
        return mql__elements(c->run, c->args[0], operands_out, n_out);
    }
    *operands_out = c->args;
    *n_out = c->n;
    return OK;
}
