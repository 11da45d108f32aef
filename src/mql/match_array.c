/* match_array.c — $size, $elemMatch, $all. */
#include "mql/match_int.h"

/* ---- $size ---- */

err mql__parse_size(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    int64_t *size = arena_new(mql__arena(p), int64_t);
    err e = mql__parse_integer(p, of->e, size);
    if (e != OK) {
        slice reason = arena_copy(mql__arena(p), slice_of(mql__op(p)->detail, mql__op(p)->detail_n));
        return mql_fail(mql__op(p), 2, "Failed to parse $size. %.*s", (int)reason.n, reason.p);
    }
    if (*size < 0) {
        slice shown = mql__shown(p, of->e);
        return mql_fail(mql__op(p), 2, "Failed to parse $size. Expected a non-negative number in: %.*s", (int)shown.n, shown.p);
    }
    *node_out = mql__node(p, MQL_SIZE, of->path, mql_of(of->e));
    (*node_out)->detail = size;
    return OK;
}

err mql__test_size(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    if (v.type != BSON_TYPE_ARRAY) {
        return OK;
    }
    size_t length = mql_length(v);
    *matches_out = (int64_t)length == *(const int64_t *)n->detail;
    return mql_pay(t->run, length / 2);
}

/* ---- $elemMatch ---- */

/* Whether the conditions are on elements that are values, {$gt: 1}, and not on elements that are documents, {b: 1} or {$or: […]}. */
static bool are_of_values(slice conditions) {
    doc_walk w;
    doc_element e;
    return doc_walk_init(&w, conditions) && doc_walk_next(&w, &e) && e.key.n && e.key.p[0] == '$' && !mql__is_top_operator(e.key);
}

err mql__parse_elem_match(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    mql__filter_parser inside = *p;
    inside.inside = true;
    if (of->e->type != BSON_TYPE_DOCUMENT) {
        return mql_fail(mql__op(p), 2, "$elemMatch needs an Object");
    }
    if (are_of_values(of->e->value)) {
        mql__list conditions = mql__list_of(p, MQL_ELEM_MATCH_VALUE, of->path, mql_of(of->e));
        *node_out = conditions.parent;
        return mql__parse_conditions(&inside, SLICE_EMPTY, of->e->value, &conditions);
    }
    mql_node *child = NULL;
    TRY(mql__parse_document(&inside, of->e->value, &child));
    *node_out = mql__node(p, MQL_ELEM_MATCH, of->path, mql_of(of->e));
    (*node_out)->first = child;
    return OK;
}

static err test_element(const mql__test *t, const mql_node *n, mql_value element, bool *matches_out) {
    if (n->kind == MQL_ELEM_MATCH) {
        *matches_out = false;
        return doc_is_container(element.type) ? mql__test_node(t, n->first, element, false, matches_out) : OK;
    }
    *matches_out = true;
    for (const mql_node *child = n->first; child && *matches_out; child = child->next) {
        TRY(mql__test_node(t, child, element, true, matches_out));
    }
    return OK;
}

err mql__test_elem_match(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    mql__test unrecorded = {t->run, t->collation, NULL};
    doc_walk w;
    doc_element e;
    *matches_out = false;
    if (v.type != BSON_TYPE_ARRAY) {
        return OK;
    }
    doc_walk_init(&w, v.bytes);
    for (int64_t i = 0; !*matches_out && doc_walk_next(&w, &e); i++) {
        TRY(mql_pay(t->run, 2));
        TRY(test_element(&unrecorded, n, mql_of(&e), matches_out));
        if (*matches_out && t->position) {
            *t->position = i;
        }
    }
    return OK;
}

/* ---- $all ---- */

static bool first_of(mql_value document, doc_element *e) {
    doc_walk w;
    return document.type == BSON_TYPE_DOCUMENT && doc_walk_init(&w, document.bytes) && doc_walk_next(&w, e);
}

static bool is_elem_match(mql_value v, doc_element *e) {
    return first_of(v, e) && slice_eq(e->key, SLICE_LIT("$elemMatch"));
}

static err parse_all_value(mql__filter_parser *p, slice path, const doc_element *e, mql_node **node_out) {
    doc_element first;
    mql__operand of = {.path = path, .e = e};
    if (e->type == BSON_TYPE_REGEX) {
        return mql__parse_regex_value(p, path, mql_of(e), node_out);
    }
    if (first_of(mql_of(e), &first) && mql__is_field_operator(first.key)) {
        return mql_fail(mql__op(p), 2, "no $ expressions in $all");
    }
    return mql__parse_eq(p, &of, node_out);
}

static err parse_all_elem_match(mql__filter_parser *p, slice path, const doc_element *e, mql_node **node_out) {
    doc_element conditions;
    if (!is_elem_match(mql_of(e), &conditions)) {
        return mql_fail(mql__op(p), 2, "$all/$elemMatch has to be consistent");
    }
    mql__operand of = {.path = path, .e = &conditions};
    return mql__parse_elem_match(p, &of, node_out);
}

err mql__parse_all(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    doc_walk w;
    doc_element e, unused;
    if (of->e->type != BSON_TYPE_ARRAY) {
        return mql_fail(mql__op(p), 2, "$all needs an array");
    }
    mql__list all = mql__list_of(p, MQL_AND, SLICE_EMPTY, mql_missing());
    bool elem_match = is_elem_match(mql_element_at(mql_of(of->e), 0), &unused);
    for (doc_walk_init(&w, of->e->value); doc_walk_next(&w, &e);) {
        mql_node *child = NULL;
        TRY((elem_match ? parse_all_elem_match : parse_all_value)(p, of->path, &e, &child));
        TRY(mql__room(p));
        mql__add(&all, child);
    }
    *node_out = all.last ? all.parent : mql__node(p, MQL_NOTHING, SLICE_EMPTY, mql_missing());
    return OK;
}
