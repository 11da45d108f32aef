/* match.c — tests documents against parsed filters. */
#include "mql/match_int.h"

const mql_node *mql_match_root(const mql_match *m) {
    return m->root;
}

static const mql_node *conjunct(const mql_node *n, mql_node_kind kind) {
    const mql_node *found = n->kind == kind ? n : NULL;
    for (const mql_node *m = n->kind == MQL_AND ? n->first : NULL; m && !found; m = m->next) {
        found = conjunct(m, kind);
    }
    return found;
}

const mql_node *mql_match_conjunct(const mql_match *m, mql_node_kind kind) {
    return conjunct(m->root, kind);
}

/* ---- kinds of nodes ---- */

typedef struct kind_row {
    mql__test_value test; /* tests one value; NULL: the node only combines others */
    bool whole_arrays;    /* tests arrays themselves, not their elements */
} kind_row;

static err test_expr(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    (void)v; /* always the whole document, the run's root */
    mql_value value;
    TRY(mql_evaluate(t->run, n->detail, &value));
    *matches_out = mql_truth(value);
    return OK;
}

static const kind_row kinds[] = {
    [MQL_EQ] = {mql__test_compare, false},
    [MQL_LT] = {mql__test_compare, false},
    [MQL_LTE] = {mql__test_compare, false},
    [MQL_GT] = {mql__test_compare, false},
    [MQL_GTE] = {mql__test_compare, false},
    [MQL_IN] = {mql__test_in, false},
    [MQL_EXISTS] = {mql__test_exists, true},
    [MQL_TYPE] = {mql__test_type, false},
    [MQL_MOD] = {mql__test_mod, false},
    [MQL_REGEX] = {mql__test_regex, false},
    [MQL_BITS_ALL_SET] = {mql__test_bits, false},
    [MQL_BITS_ANY_SET] = {mql__test_bits, false},
    [MQL_BITS_ALL_CLEAR] = {mql__test_bits, false},
    [MQL_BITS_ANY_CLEAR] = {mql__test_bits, false},
    [MQL_GEO_WITHIN] = {mql__test_geo, false},
    [MQL_GEO_INTERSECTS] = {mql__test_geo, false},
    [MQL_NEAR] = {mql__test_near, false},
    [MQL_SIZE] = {mql__test_size, true},
    [MQL_ELEM_MATCH] = {mql__test_elem_match, true},
    [MQL_ELEM_MATCH_VALUE] = {mql__test_elem_match, true},
    [MQL_JSON_SCHEMA] = {mql__test_json_schema, true},
    [MQL_TEXT] = {mql__test_text, true},
    [MQL_EXPR] = {test_expr, true},
};

/* ---- nodes with a path ---- */

typedef struct path_test {
    mql__visit visit;
    const mql__test *test;
    const mql_node *node;
} path_test;

static err test_found(mql__visit *v, mql_value value, int64_t position, bool *stop_out) {
    path_test *of = (path_test *)v;
    TRY(kinds[of->node->kind].test(of->test, of->node, value, stop_out));
    if (*stop_out && position >= 0 && of->test->position) {
        *of->test->position = position;
    }
    return OK;
}

static err test_path(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    path_test of = {
        .visit = {t->run, n->parts, n->parts_n, kinds[n->kind].whole_arrays, test_found},
        .test = t,
        .node = n,
    };
    return mql__visit_path(&of.visit, v, matches_out);
}

/* ---- nodes of other nodes ---- */

/* Whether some child matches, or does not match, as `wanted` says. */
static err some_child(const mql__test *t, const mql_node *n, mql_value v, bool element, bool wanted, bool *found_out) {
    *found_out = false;
    for (const mql_node *child = n->first; child && !*found_out; child = child->next) {
        bool matches;
        TRY(mql__test_node(t, child, v, element, &matches));
        *found_out = matches == wanted;
    }
    return OK;
}

static err test_and(const mql__test *t, const mql_node *n, mql_value v, bool element, bool *matches_out) {
    bool failed;
    TRY(some_child(t, n, v, element, false, &failed));
    *matches_out = !failed;
    if (failed && t->position) {
        *t->position = -1;
    }
    return OK;
}

/* $or, $nor and $not record no position. */
static err test_some(const mql__test *t, const mql_node *n, mql_value v, bool element, bool *matches_out) {
    mql__test unrecorded = *t;
    unrecorded.position = NULL;
    bool found;
    TRY(some_child(&unrecorded, n, v, element, true, &found));
    *matches_out = found == (n->kind == MQL_OR);
    return OK;
}

err mql__test_node(const mql__test *t, const mql_node *n, mql_value v, bool element, bool *matches_out) {
    *matches_out = false;
    TRY(mql_pay(t->run, 2));
    switch (n->kind) {
    case MQL_AND:
        return test_and(t, n, v, element, matches_out);
    case MQL_OR:
    case MQL_NOR:
    case MQL_NOT:
        return test_some(t, n, v, element, matches_out);
    case MQL_NOTHING:
        return OK;
    default:
        return element && n->parts_n == 0 ? kinds[n->kind].test(t, n, v, matches_out) : test_path(t, n, v, matches_out);
    }
}

err mql_matches_value(mql_run *r, const mql_match *m, mql_value v, bool *matches_out, mql_matched *matched_out) {
    int64_t position = -1;
    mql__test t = {r, m->collation, &position};
    err e = mql__test_node(&t, m->root, v, false, matches_out);
    if (matched_out) {
        matched_out->position = position;
    }
    return e;
}

err mql_matches(mql_run *r, const mql_match *m, bool *matches_out, mql_matched *matched_out) {
    return mql_matches_value(r, m, r->root, matches_out, matched_out);
}
