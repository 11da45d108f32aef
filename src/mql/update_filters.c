/* update_filters.c — arrayFilters: each is a filter of documents {identifier: element}. */
#include "mql/update_int.h"

/* The first field that a filter names, which is its identifier; empty: none. For $and, $or and $nor it is that of their branches. */
static slice first_field(slice filter, unsigned depth) {
    doc_walk w;
    doc_element e, branch;
    for (doc_walk_init(&w, filter); depth < MQL_DEPTH_MAX && doc_walk_next(&w, &e);) {
        if (!slice_starts(e.key, SLICE_LIT("$"))) {
            return e.key;
        }
        doc_walk branches;
        if (e.type != BSON_TYPE_ARRAY || !doc_walk_init(&branches, e.value)) {
            continue;
        }
        while (doc_walk_next(&branches, &branch)) {
            slice found = branch.type == BSON_TYPE_DOCUMENT ? first_field(branch.value, depth + 1) : SLICE_EMPTY;
            if (found.n) {
                return found;
            }
        }
    }
    return SLICE_EMPTY;
}

static slice head_of(slice path) {
    const char *dot = path.n ? memchr(path.p, '.', path.n) : NULL;
    return dot ? slice_of(path.p, (size_t)(dot - path.p)) : path;
}

/* 9 if the filter names another identifier than its first. */
static err check_fields(op *o, slice filter, slice identifier, unsigned depth) {
    doc_walk w;
    doc_element e, branch;
    for (doc_walk_init(&w, filter); depth < MQL_DEPTH_MAX && doc_walk_next(&w, &e);) {
        slice head = head_of(e.key);
        if (!slice_starts(e.key, SLICE_LIT("$"))) {
            if (!slice_eq(head, identifier)) {
                return mql_fail(
                    o, 9, "Error parsing array filter :: caused by :: Expected a single top-level field name, found '%.*s' and '%.*s'",
                    slice_shown(identifier), identifier.p, slice_shown(head), head.p);
            }
            continue;
        }
        doc_walk branches;
        if (e.type == BSON_TYPE_ARRAY && doc_walk_init(&branches, e.value)) {
            while (doc_walk_next(&branches, &branch)) {
                if (branch.type == BSON_TYPE_DOCUMENT) {
                    TRY(check_fields(o, branch.value, identifier, depth + 1));
                }
            }
        }
    }
    return OK;
}

static bool is_identifier(slice name) {
    bool valid = name.n > 0 && name.p[0] >= 'a' && name.p[0] <= 'z';
    for (size_t i = 0; valid && i < name.n; i++) {
        char c = name.p[i];
        valid = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    }
    return valid;
}

static err parse_filter(mql_scope *s, const doc_element *e, mql__array_filter *filter, const mql__array_filter *before, size_t n) {
    if (e->type != BSON_TYPE_DOCUMENT) {
        return mql_fail(s->op, 14, "BSON field 'update.updates.arrayFilters.%.*s' is the wrong type '%s', expected type 'object'",
                        slice_shown(e->key), e->key.p, mql_type_name(e->type));
    }
    filter->identifier = head_of(first_field(e->value, 0));
    if (filter->identifier.n == 0) {
        return mql_fail(s->op, 9, "Cannot use an expression without a top-level field name in arrayFilters");
    }
    if (!is_identifier(filter->identifier)) {
        return mql_fail(s->op, 2,
                        "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string beginning with "
                        "a lowercase letter, found '%.*s'",
                        slice_shown(filter->identifier), filter->identifier.p);
    }
    for (size_t i = 0; i < n; i++) {
        if (slice_eq(before[i].identifier, filter->identifier)) {
            return mql_fail(s->op, 9, "Found multiple array filters with the same top-level field name %.*s",
                            slice_shown(filter->identifier), filter->identifier.p);
        }
    }
    TRY(check_fields(s->op, e->value, filter->identifier, 0));
    return mql_match_parse(s, e->value, &filter->match);
}

enum { ARRAY_FILTERS_MAX = 1000 }; /* identifiers are compared one by one */

err mql__array_filters_parse(mql_scope *s, slice filters, mql__array_filter **filters_out, size_t *n_out) {
    doc_walk w;
    doc_element e;
    size_t n = filters.n ? mql_length(mql_array(filters)) : 0;
    *n_out = n;
    *filters_out = NULL;
    if (n > ARRAY_FILTERS_MAX) {
        return mql_fail(s->op, 9, "Too many array filters: %zu, at most %d", n, ARRAY_FILTERS_MAX);
    }
    if (n == 0) {
        return OK;
    }
    *filters_out = arena_array(s->op->arena, mql__array_filter, n);
    doc_walk_init(&w, filters);
    for (size_t i = 0; doc_walk_next(&w, &e); i++) {
        TRY(parse_filter(s, &e, *filters_out + i, *filters_out, i));
    }
    return OK;
}
