#include "query/parameters.h"

#include <stdlib.h>

#include "doc/path.h"

err query_parameters_bad_body(op *o) {
    return op_fail(o, E_BAD_REQUEST, "A query's body must be {\"query\": text, \"parameters\": [{\"name\": \"@name\", \"value\": …}, …]}.");
}

static err check_name(op *o, slice name) {
    if (name.n < 2 || name.p[0] != '@') {
        return op_fail(o, E_BAD_REQUEST, "The parameter name '%.*s' must begin with '@'.", slice_shown(name), name.p ? name.p : "");
    }
    return OK;
}

static err read_one(op *o, const bson_iter_t *it, query_parameter *parameter_out) {
    bson_iter_t inner, value;
    uint32_t n = 0;
    const uint8_t *p = NULL;
    if (!BSON_ITER_HOLDS_DOCUMENT(it)) {
        return query_parameters_bad_body(o);
    }
    bson_iter_document(it, &n, &p);
    slice document = slice_of(p, n);
    if (!doc_find_key(document, SLICE_LIT("name"), &inner) || !BSON_ITER_HOLDS_UTF8(&inner)) {
        return query_parameters_bad_body(o);
    }
    slice name = doc_text(&inner);
    bool given = doc_find_key(document, SLICE_LIT("value"), &value);
    *parameter_out = (query_parameter){name, given ? value_of_iter(&value) : value_undefined()};
    return check_name(o, name);
}

static err check_each_once(op *o, const query_parameter *list, size_t n) {
    for (size_t i = 1; i < n; i++) {
        slice name = list[i].name;
        if (slice_eq(name, list[i - 1].name)) {
            return op_fail(o, E_BAD_REQUEST, "The parameter '%.*s' is given more than once.", slice_shown(name), name.p);
        }
    }
    return OK;
}

err query_parameters_read(op *o, slice body, query_parameter **list_out, size_t *n_out) {
    bson_iter_t it, each;
    size_t n = 0;
    *list_out = NULL;
    *n_out = 0;
    if (!doc_find_key(body, SLICE_LIT("parameters"), &it) || BSON_ITER_HOLDS_NULL(&it)) {
        return OK;
    }
    if (!BSON_ITER_HOLDS_ARRAY(&it) || !bson_iter_recurse(&it, &each)) {
        return query_parameters_bad_body(o);
    }
    for (bson_iter_t count = each; bson_iter_next(&count);) {
        n++;
    }
    if (n > QUERY_PARAMETERS_MAX) {
        return op_fail(o, E_BAD_REQUEST, "A query may have %d parameters at most.", QUERY_PARAMETERS_MAX);
    }
    query_parameter *list = arena_array(o->arena, query_parameter, n + 1);
    for (size_t i = 0; bson_iter_next(&each); i++) {
        TRY(read_one(o, &each, &list[i]));
    }
    qsort(list, n, sizeof *list, query_parameter_order);
    *list_out = list;
    *n_out = n;
    return check_each_once(o, list, n);
}
