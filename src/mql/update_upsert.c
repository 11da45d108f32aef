/* update_upsert.c — what an upsert takes from the filter: the values of its equalities.
 *
 * {a: 1, "b.c": {$eq: 2}, $and: [{d: {$in: [3]}}]} gives {a: 1, b: {c: 2}, d: 3}: the equalities are leaves of $set in a tree, which is
 * applied to an empty document. */
#include "mql/show.h"
#include "mql/update_int.h"

enum { EQUALITIES_MAX = 10000 };

typedef struct collector {
    mql_run *run;
    mql__leaf *leaves;
    size_t n, room;
} collector;

static err collect(collector *c, slice filter, unsigned depth);

static err add(collector *c, slice path, mql_value v) {
    op *o = c->run->op;
    if (c->n == c->room) {
        size_t room = c->room ? 2 * c->room : 16;
        if (room > EQUALITIES_MAX) {
            return mql_fail(o, 54, "cannot infer query fields to set: more than %d equalities", EQUALITIES_MAX);
        }
        mql__leaf *more = arena_array(c->run->arena, mql__leaf, room);
        if (c->n) {
            memcpy(more, c->leaves, c->n * sizeof *more);
        }
        c->leaves = more;
        c->room = room;
    }
    mql__leaf *leaf = &c->leaves[c->n];
    *leaf = (mql__leaf){.modifier = &mql__set_modifier, .path = path, .operand = v, .ordinal = c->n};
    c->n++;
    return mql__update_path(o, c->run->arena, leaf);
}

/* {$eq: v}, {$in: [v]} and {$all: [v]} are equalities; other operators are not. */
static err collect_operators(collector *c, slice path, slice operators) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, operators); doc_walk_next(&w, &e);) {
        bool in = slice_eq(e.key, SLICE_LIT("$in")), all = slice_eq(e.key, SLICE_LIT("$all"));
        if (slice_eq(e.key, SLICE_LIT("$eq"))) {
            TRY(add(c, path, mql_of(&e)));
        } else if ((in || all) && e.type == BSON_TYPE_ARRAY && (all || mql_length(mql_of(&e)) == 1)) {
            doc_walk values;
            doc_element v;
            for (doc_walk_init(&values, e.value); doc_walk_next(&values, &v);) {
                if (v.type != BSON_TYPE_REGEX) {
                    TRY(add(c, path, mql_of(&v)));
                }
            }
        }
    }
    return OK;
}

static bool has_operators(mql_value v) {
    doc_walk w;
    doc_element e;
    return v.type == BSON_TYPE_DOCUMENT && doc_walk_init(&w, v.bytes) && doc_walk_next(&w, &e) && slice_starts(e.key, SLICE_LIT("$")) &&
           !slice_eq(e.key, SLICE_LIT("$ref")) && !slice_eq(e.key, SLICE_LIT("$id"));
}

static err collect_branches(collector *c, mql_value branches, unsigned depth) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, branches.bytes); doc_walk_next(&w, &e);) {
        if (e.type == BSON_TYPE_DOCUMENT) {
            TRY(collect(c, e.value, depth + 1));
        }
    }
    return OK;
}

static err collect(collector *c, slice filter, unsigned depth) {
    doc_walk w;
    doc_element e;
    if (depth > MQL_DEPTH_MAX) {
        return OK;
    }
    TRY(mql_pay(c->run, 1 + filter.n / 16));
    for (doc_walk_init(&w, filter); doc_walk_next(&w, &e);) {
        mql_value v = mql_of(&e);
        bool all = slice_eq(e.key, SLICE_LIT("$and")), only = slice_eq(e.key, SLICE_LIT("$or")) && mql_length(v) == 1;
        if ((all || only) && e.type == BSON_TYPE_ARRAY) {
            TRY(collect_branches(c, v, depth));
        } else if (slice_starts(e.key, SLICE_LIT("$")) || e.type == BSON_TYPE_REGEX) {
            continue;
        } else if (has_operators(v)) {
            TRY(collect_operators(c, e.key, e.value));
        } else {
            TRY(add(c, e.key, v));
        }
    }
    return OK;
}

/* 54 if two equalities are about the same field, or about a field and one inside it. */
static err check_pairs(op *o, const mql__leaf *sorted, size_t n) {
    for (size_t i = 1; i < n; i++) {
        slice a = sorted[i - 1].path, b = sorted[i].path;
        if (slice_eq(a, b)) {
            return mql_fail(o, 54, "cannot infer query fields to set, path '%.*s' is matched twice", slice_shown(a), a.p);
        }
        if (slice_starts(b, a) && b.p[a.n] == '.') {
            return mql_fail(o, 54, "cannot infer query fields to set, both paths '%.*s' and '%.*s' are matched", slice_shown(a), a.p,
                            slice_shown(b), b.p);
        }
    }
    return OK;
}

err mql__upsert_document(mql_run *r, slice filter, slice *document_out) {
    collector c = {.run = r};
    const mql__update_node *root;
    mql_updated made = {0};
    *document_out = SLICE_EMPTY;
    TRY(collect(&c, filter, 0));
    err e = mql__update_tree(r->op, r->arena, c.leaves, c.n, NULL, 0, &root); /* sorts the leaves */
    TRY(check_pairs(r->op, c.leaves, c.n));
    TRY(e);
    TRY(mql__update_walk(r, root, mql_missing(), true, -1, &made));
    *document_out = made.document;
    return OK;
}
