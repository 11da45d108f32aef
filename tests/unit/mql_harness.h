/* mql_harness.h — evaluates expressions written as JSON with ' for ". A key that begins with $ is an operator. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "mql/expression.h"

enum { SLOTS = 64 };

typedef struct world {
    arena parsing, running;
    op op;
    mql_scope scope;
    mql_run run;
    mql_value variables[SLOTS];
    bson_t *kept[16];
    size_t kept_n;
} world;

static void world_open(world *w) {
    memset(w, 0, sizeof *w);
    op_init(&w->op, &w->parsing, 1700000000);
    w->scope = mql_scope_of(&w->op, false);
    w->run = (mql_run){.op = &w->op, .arena = &w->running, .steps = 100000000, .variables = w->variables, .now_ms = 1700000000000};
}

static void world_close(world *w) {
    for (size_t i = 0; i < w->kept_n; i++) {
        bson_destroy(w->kept[i]);
    }
    arena_free(&w->running);
    arena_free(&w->parsing);
}

/* {v: TEXT} as BSON. */
static mql_value read_value(world *w, const char *text) {
    bson_error_t error;
    char *json = malloc(strlen(text) + 8);
    sprintf(json, "{\"v\":%s}", text);
    for (char *p = json; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    bson_t *b = bson_new_from_json((const uint8_t *)json, -1, &error);
    if (!b) {
        fail_msg("%s: %s", json, error.message);
    }
    free(json);
    assert_true(w->kept_n < 16);
    w->kept[w->kept_n++] = b;
    return mql_element_at(mql_array(slice_of(bson_get_data(b), b->len)), 0);
}

static const char *written(mql_value v, char room[static 4096]) {
    if (mql_is_missing(v)) {
        return "missing";
    }
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mql_add(&b, SLICE_LIT("v"), v);
    slice built = mql_built(&b);
    bson_t doc;
    assert_true(bson_init_static(&doc, (const uint8_t *)built.p, built.n));
    char *text = bson_as_relaxed_extended_json(&doc, NULL);
    snprintf(room, 4096, "%s", text);
    bson_free(text);
    buf_free(&out);
    return room;
}

static const mql_expression *parse(world *w, const char *text) {
    const mql_expression *e;
    if (mql_expression_parse(&w->scope, read_value(w, text), &e) != OK) {
        fail_msg("%s: %.*s", text, (int)w->op.detail_n, w->op.detail);
    }
    return e;
}

/* `expected` NULL: missing. Compares types too. */
static inline void expect(const char *document, const char *text, const char *expected) {
    world w;
    mql_value v;
    char found[4096], wanted[4096];
    world_open(&w);
    const mql_expression *e = parse(&w, text);
    assert_true(w.scope.slots <= SLOTS);
    w.run.root = read_value(&w, document);
    if (mql_evaluate(&w.run, e, &v) != OK) {
        fail_msg("%s of %s: %d %.*s", text, document, w.op.protocol_code, (int)w.op.detail_n, w.op.detail);
    }
    written(v, found);
    if (strcmp(written(v, found), expected ? written(read_value(&w, expected), wanted) : "missing") != 0) {
        fail_msg("%s of %s is %s, not %s", text, document, written(v, found), expected ? expected : "missing");
    }
    world_close(&w);
}

static inline void expect_error(const char *document, const char *text, int code) {
    world w;
    mql_value v = mql_missing();
    const mql_expression *e;
    char found[4096];
    world_open(&w);
    err bad = mql_expression_parse(&w.scope, read_value(&w, text), &e);
    if (bad == OK) {
        w.run.root = read_value(&w, document);
        bad = mql_evaluate(&w.run, e, &v);
    }
    if (bad == OK) {
        fail_msg("%s of %s is %s", text, document, written(v, found));
    }
    if (w.op.protocol_code != code) {
        fail_msg("%s fails with %d (%.*s), not %d", text, w.op.protocol_code, (int)w.op.detail_n, w.op.detail, code);
    }
    world_close(&w);
}
