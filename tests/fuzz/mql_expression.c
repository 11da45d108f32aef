/* Any expression, over any document. The input is Extended JSON, {"v": EXPRESSION}, a zero byte and a document; or two documents as BSON.
 * Evaluation ends within its steps and its memory, with a well-formed value or an error that has a code of MongoDB's. It gives the same
 * value again, and an accumulator gives the same value if it is divided, moved and merged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mql/accumulator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { STEPS = 3 * 1000 * 1000, MEMORY_MAX = 16 * 1024 * 1024, OVERRUN_MAX = 512 * 1024, SLOTS_MAX = 10000 };

#define REQUIRE(condition)                                                                                                                 \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            abort();                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

typedef struct world {
    budget memory;
    arena parsing, running;
    op op;
    mql_scope scope;
    mql_run run;
} world;

static void check_outcome(const world *w, err e) {
    REQUIRE(e == OK || e == E_QUERY_TOO_LONG || e == E_MEMORY || (e == E_BAD_REQUEST && w->op.protocol_code != 0));
    REQUIRE(w->memory.overrun <= OVERRUN_MAX);
}

static bool is_whole(mql_value v) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mql_add(&b, SLICE_LIT("v"), v);
    slice document = mql_built(&b);
    bool whole = doc_is_well_formed(document, 100000);
    buf_free(&out);
    return whole;
}

static void forget(world *w) {
    budget_renew(&w->memory);
    w->op.protocol_code = 0;
    w->op.detail_n = 0;
    w->run.steps = STEPS;
}

static bool evaluate(world *w, const mql_expression *e, mql_value *value_out) {
    forget(w);
    err code = mql_evaluate(&w->run, e, value_out);
    check_outcome(w, code);
    REQUIRE(code != OK || is_whole(*value_out));
    return code == OK;
}

static bool is_random(slice text) {
    return memmem(text.p, text.n, "$rand", 5) || memmem(text.p, text.n, "$NOW", 4);
}

static void check_expression(world *w, mql_value text) {
    const mql_expression *e;
    mql_value once, again;
    err code = mql_expression_parse(&w->scope, text, &e);
    check_outcome(w, code);
    if (code != OK || w->scope.slots > SLOTS_MAX) {
        return;
    }
    w->run.variables = arena_array(&w->parsing, mql_value, w->scope.slots + 1);
    if (evaluate(w, e, &once) && evaluate(w, e, &again) && !is_random(text.bytes)) {
        REQUIRE(once.type == again.type && slice_eq(once.bytes, again.bytes));
    }
}

/* The document three times: by one tally, and by two of which one is saved, loaded and merged. */
static err tally(world *w, mql_tally *t[4], mql_value *whole, mql_value *divided) {
    mql_value state;
    for (int i = 0; i < 3; i++) {
        TRY(mql_tally_add(&w->run, t[0]));
        TRY(mql_tally_add(&w->run, t[i == 0 ? 1 : 2]));
    }
    TRY(mql_tally_save(&w->run, t[2], &state));
    REQUIRE(is_whole(state));
    TRY(mql_tally_load(&w->run, t[3], state));
    TRY(mql_tally_merge(&w->run, t[1], t[3]));
    TRY(mql_tally_value(&w->run, t[0], whole));
    return mql_tally_value(&w->run, t[1], divided);
}

static void check_accumulator(world *w, mql_value text) {
    const mql_accumulator *a;
    mql_tally *t[4];
    mql_value whole, divided;
    forget(w);
    err code = mql_accumulator_parse(&w->scope, text, &a);
    check_outcome(w, code);
    if (code != OK || w->scope.slots > SLOTS_MAX) {
        return;
    }
    w->run.variables = arena_array(&w->parsing, mql_value, w->scope.slots + 1);
    for (int i = 0; i < 4; i++) {
        t[i] = mql_tally_begin(&w->parsing, a);
    }
    code = tally(w, t, &whole, &divided);
    check_outcome(w, code);
    if (code == OK && !is_random(text.bytes) && !memmem(text.bytes.p, text.bytes.n, "$stdDev", 7)) {
        REQUIRE(is_whole(whole) && mql_same(whole, divided));
    }
    for (int i = 0; i < 4; i++) {
        mql_tally_free(t[i]);
    }
    forget(w);
    mql_tally *loaded = mql_tally_begin(&w->parsing, a);
    check_outcome(w, mql_tally_load(&w->run, loaded, w->run.root)); /* any document */
    mql_tally_free(loaded);
}

static void check_both(slice expression, slice document) {
    world w = {.memory = budget_init(NULL, MEMORY_MAX)};
    w.parsing = w.running = arena_init_counted(&w.memory);
    op_init(&w.op, &w.parsing, 0);
    w.scope = mql_scope_of(&w.op, false);
    w.run = (mql_run){.op = &w.op, .arena = &w.running, .steps = STEPS, .root = mql_document(document), .now_ms = 1};
    mql_value text = mql_member(mql_document(expression), SLICE_LIT("v"));
    check_expression(&w, text);
    check_accumulator(&w, text);
    arena_free(&w.running);
    arena_free(&w.parsing);
    REQUIRE(w.memory.used == 0);
}

static void check_json(slice expression, slice document) {
    bson_error_t error;
    bson_t *e = bson_new_from_json((const uint8_t *)expression.p, (ssize_t)expression.n, &error);
    bson_t *d = e && document.n ? bson_new_from_json((const uint8_t *)document.p, (ssize_t)document.n, &error) : NULL;
    if (e && d && doc_is_well_formed(slice_of(bson_get_data(e), e->len), MQL_DEPTH_MAX) &&
        doc_is_well_formed(slice_of(bson_get_data(d), d->len), MQL_DEPTH_MAX)) {
        check_both(slice_of(bson_get_data(e), e->len), slice_of(bson_get_data(d), d->len));
    }
    bson_destroy(e);
    bson_destroy(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    slice all = slice_of(data, n);
    if (n && data[0] == '{') {
        const char *zero = memchr(all.p, 0, n);
        size_t first = zero ? (size_t)(zero - all.p) : n;
        if (first && first < n) {
            check_json(slice_of(all.p, first), slice_skip(all, first + 1));
        }
        return 0;
    }
    int32_t first = n >= 4 ? doc_load_i32(all.p) : 0;
    if (first >= 5 && (size_t)first < n) {
        slice expression = slice_of(all.p, (size_t)first), document = slice_skip(all, (size_t)first);
        if (doc_is_well_formed(expression, MQL_DEPTH_MAX) && doc_is_well_formed(document, MQL_DEPTH_MAX)) {
            check_both(expression, document);
        }
    }
    return 0;
}
