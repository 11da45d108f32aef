/* match_path.c — finds the values at a path, as MongoDB does for filters. For the path a.b.c:
 *
 *   {a: {b: {c: 1}}}                 1
 *   {a: {b: 5}}, {a: 5}, {}          missing
 *   {a: {b: {c: [1, 2]}}}            1, 2, then [1, 2]
 *   {a: [{b: {c: 1}}, {}, 5, []]}    1 and missing: each document of an array is entered, other elements are passed over
 *   {a: []}                          nothing, not even missing
 *
 * A numeric part, as in a.0.b, is both a field name in the documents of an array and the index of an element. The position told is that of
 * the outermost array on the way; an index in the path discards it, so that then the next array's counts. The depth of the recursion is
 * bounded by the parts of the path and by the nesting of the document; the work, which can be exponential in both, by steps. */
#include "mql/match_int.h"

static err visit_fields(mql__visit *v, mql_value container, size_t at, int64_t position, bool *stopped_out);

/* The path ends at this array. */
static err visit_last_array(mql__visit *v, mql_value array, int64_t position, bool *stopped_out) {
    doc_walk w;
    doc_element e;
    doc_walk_init(&w, array.bytes);
    for (int64_t i = 0; !v->whole_arrays && !*stopped_out && doc_walk_next(&w, &e); i++) {
        TRY(mql_pay(v->run, 2));
        TRY(v->found(v, mql_of(&e), position >= 0 ? position : i, stopped_out));
    }
    return *stopped_out ? OK : v->found(v, array, position, stopped_out);
}

/* Parts from `at` on apply to the elements of this array. */
static err visit_elements(mql__visit *v, mql_value array, size_t at, int64_t position, bool *stopped_out) {
    doc_walk w;
    doc_element e;
    doc_walk_init(&w, array.bytes);
    for (int64_t i = 0; !*stopped_out && doc_walk_next(&w, &e); i++) {
        int64_t here = position >= 0 ? position : i;
        TRY(mql_pay(v->run, 4));
        if (e.type == BSON_TYPE_DOCUMENT) {
            TRY(visit_fields(v, mql_of(&e), at, here, stopped_out));
        }
        if (*stopped_out || !slice_eq(e.key, v->parts[at])) {
            continue;
        }
        if (at + 1 == v->parts_n) {
            TRY(v->found(v, mql_of(&e), here, stopped_out));
        } else if (e.type == BSON_TYPE_DOCUMENT) {
            TRY(visit_fields(v, mql_of(&e), at + 1, -1, stopped_out));
        } else if (e.type == BSON_TYPE_ARRAY) {
            TRY(visit_elements(v, mql_of(&e), at + 1, -1, stopped_out));
        }
    }
    return OK;
}

/* Parts from `at` on are fields of this document. */
static err visit_fields(mql__visit *v, mql_value container, size_t at, int64_t position, bool *stopped_out) {
    mql_value value = container;
    bool first = true;
    for (; at < v->parts_n; at++, first = false) {
        doc_element e;
        uint64_t passed = 0;
        if (value.type == BSON_TYPE_ARRAY && !first) {
            return visit_elements(v, value, at, position, stopped_out);
        }
        bool found = doc_is_container(value.type) && doc_find_member_counted(value.bytes, v->parts[at], &e, &passed);
        TRY(mql_pay(v->run, 1 + passed / 2));
        if (!found) {
            return v->found(v, mql_missing(), position, stopped_out);
        }
        value = mql_of(&e);
    }
    return value.type == BSON_TYPE_ARRAY ? visit_last_array(v, value, position, stopped_out) : v->found(v, value, position, stopped_out);
}

err mql__visit_path(mql__visit *v, mql_value document, bool *stopped_out) {
    *stopped_out = false;
    return visit_fields(v, document, 0, -1, stopped_out);
}
