/* update_pull.c — $pull and $pullAll.
 *
 * The operand of $pull is one of three: a document of conditions on fields of the elements ({b: {$gt: 1}}), operators on the elements
 * ({$gt: 1}) or a regular expression, or a value that elements equal. */
#include "mql/show.h"
#include "mql/update_int.h"

typedef enum pull_kind { PULL_EQUAL, PULL_OPERATORS, PULL_DOCUMENTS, PULL_ALL } pull_kind;

typedef struct pull {
    pull_kind kind;
    const mql_match *match;
} pull;

static const slice element_name = SLICE_LIT("e");

static bool is_operators(mql_value v) {
    doc_walk w;
    doc_element e;
    return v.type == BSON_TYPE_REGEX || (v.type == BSON_TYPE_DOCUMENT && doc_walk_init(&w, v.bytes) && doc_walk_next(&w, &e) &&
                                         slice_starts(e.key, SLICE_LIT("$")) && !slice_eq(e.key, SLICE_LIT("$ref")));
}

/* {e: operand}, a filter of the documents {e: element}. */
static err parse_wrapped(mql_scope *s, mql_value operand, const mql_match **match_out) {
    arena *a = s->op->arena;
    buf out = buf_init_counted(BUF_NO_LIMIT, a->budget);
    mql_builder b = mql_build(&out);
    slice filter = SLICE_EMPTY;
    mql_add(&b, element_name, operand);
    bool kept = mql_keep(a, &b, &filter);
    buf_free(&out);
    return kept ? mql_match_parse(s, filter, match_out) : budget_error(a->budget);
}

/* Whether the operand is a filter for documents although it begins with an operator: {$or: [{b: 1}, {c: 2}]}. */
static bool is_logical(mql_value v) {
    doc_walk w;
    doc_element e;
    return v.type == BSON_TYPE_DOCUMENT && doc_walk_init(&w, v.bytes) && doc_walk_next(&w, &e) &&
           (slice_eq(e.key, SLICE_LIT("$and")) || slice_eq(e.key, SLICE_LIT("$or")) || slice_eq(e.key, SLICE_LIT("$nor")) ||
            slice_eq(e.key, SLICE_LIT("$expr")));
}

static err parse_pull(mql__update_parser *p, mql__leaf *leaf) {
    pull *of = arena_new(p->scope->op->arena, pull);
    leaf->detail = of;
    if (is_operators(leaf->operand) && !is_logical(leaf->operand)) {
        of->kind = PULL_OPERATORS;
        return parse_wrapped(p->scope, leaf->operand, &of->match);
    }
    if (leaf->operand.type == BSON_TYPE_DOCUMENT) {
        of->kind = PULL_DOCUMENTS;
        return mql_match_parse(p->scope, leaf->operand.bytes, &of->match);
    }
    return OK;
}

static err parse_pull_all(mql__update_parser *p, mql__leaf *leaf) {
    pull *of = arena_new(p->scope->op->arena, pull);
    of->kind = PULL_ALL;
    leaf->detail = of;
    return leaf->operand.type == BSON_TYPE_ARRAY
               ? OK
               : mql_fail(p->scope->op, 2, "$pullAll requires an array argument but was given a %s", mql_type_name(leaf->operand.type));
}

static err is_one_of(mql_run *r, mql_value array, mql_value v, bool *matches_out) {
    doc_walk w;
    doc_element e;
    TRY(mql_pay(r, 1 + array.bytes.n / 32));
    for (doc_walk_init(&w, array.bytes); !*matches_out && doc_walk_next(&w, &e);) {
        *matches_out = mql_compare_by(r->collation, mql_of(&e), v) == 0;
    }
    return OK;
}

static err matches(mql__change *c, const mql__leaf *leaf, mql_value element, bool *matches_out) {
    const pull *of = leaf->detail;
    mql_run *r = c->run;
    *matches_out = false;
    switch (of->kind) {
    case PULL_EQUAL:
        TRY(mql_pay(r, 1 + element.bytes.n / 64));
        *matches_out = mql_compare_by(r->collation, element, leaf->operand) == 0;
        return OK;
    case PULL_ALL:
        return is_one_of(r, leaf->operand, element, matches_out);
    case PULL_OPERATORS:
        return mql__element_matches(r, of->match, element_name, element, matches_out);
    case PULL_DOCUMENTS: {
        if (element.type != BSON_TYPE_DOCUMENT) {
            return OK;
        }
        mql_value root = r->root;
        r->root = element;
        err e = mql_matches(r, of->match, matches_out, NULL);
        r->root = root;
        return e;
    }
    }
    return OK;
}

static err apply_pull(mql__change *c, const mql__leaf *leaf, mql_value old, mql_value *new_out) {
    doc_walk w;
    doc_element e;
    bool removed = false, matched;
    *new_out = old;
    if (mql_is_missing(old)) {
        return OK;
    }
    if (old.type != BSON_TYPE_ARRAY) {
        return mql_fail(c->run->op, 2, "Cannot apply $pull to a non-array value");
    }
    mql_builder b = mql_build(&c->scratch);
    for (doc_walk_init(&w, old.bytes); doc_walk_next(&w, &e);) {
        TRY(matches(c, leaf, mql_of(&e), &matched));
        removed = removed || matched;
        if (!matched) {
            mql_add_next(&b, mql_of(&e));
        }
    }
    return removed ? mql__scratch_value(c, &b, BSON_TYPE_ARRAY, new_out) : OK;
}

static const mql__modifier rows[] = {
    {SLICE_LIT("$pull"), parse_pull, apply_pull, 0},
    {SLICE_LIT("$pullAll"), parse_pull_all, apply_pull, 0},
};
const mql__modifiers mql__pull_modifiers = {rows, sizeof rows / sizeof *rows};
