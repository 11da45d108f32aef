#include "api/sql/asked.h"

#include <stdlib.h>

static err bad_body(sql_request *q) {
    return op_fail(&q->op, E_BAD_REQUEST,
                   "A query's body must be {\"query\": text, \"parameters\": [{\"name\": \"@name\", \"value\": …}, …]}.");
}

static err check_name(sql_request *q, slice name) {
    if (name.n < 2 || name.p[0] != '@') {
        return op_fail(&q->op, E_BAD_REQUEST, "The parameter name '%.*s' must begin with '@'.", slice_shown(name), name.p ? name.p : "");
    }
    return OK;
}

static err read_parameter(sql_request *q, const bson_iter_t *it, sql_asked *a) {
    bson_iter_t inner, value;
    uint32_t n = 0;
    const uint8_t *p = NULL;
    if (!BSON_ITER_HOLDS_DOCUMENT(it)) {
        return bad_body(q);
    }
    bson_iter_document(it, &n, &p);
    slice document = slice_of(p, n);
    if (!doc_find_key(document, SLICE_LIT("name"), &inner) || !BSON_ITER_HOLDS_UTF8(&inner)) {
        return bad_body(q);
    }
    slice name = doc_text(&inner);
    TRY(check_name(q, name));
    bool given = doc_find_key(document, SLICE_LIT("value"), &value);
    a->parameters[a->parameters_n++] = (query_parameter){name, given ? value_of_iter(&value) : value_undefined()};
    return OK;
}

static err read_parameters(sql_request *q, slice body, sql_asked *a) {
    bson_iter_t it, each;
    if (!doc_find_key(body, SLICE_LIT("parameters"), &it) || BSON_ITER_HOLDS_NULL(&it)) {
        return OK;
    }
    if (!BSON_ITER_HOLDS_ARRAY(&it) || !bson_iter_recurse(&it, &each)) {
        return bad_body(q);
    }
    size_t n = 0;
    for (bson_iter_t count = each; bson_iter_next(&count);) {
        n++;
    }
    if (n > QUERY_PARAMETERS_MAX) {
        return op_fail(&q->op, E_BAD_REQUEST, "A query may have %d parameters at most.", QUERY_PARAMETERS_MAX);
    }
    a->parameters = arena_array(q->http->arena, query_parameter, n + 1);
    while (bson_iter_next(&each)) {
        TRY(read_parameter(q, &each, a));
    }
    qsort(a->parameters, a->parameters_n, sizeof *a->parameters, query_parameter_order);
    for (size_t i = 1; i < a->parameters_n; i++) {
        slice name = a->parameters[i].name;
        if (slice_eq(name, a->parameters[i - 1].name)) {
            return op_fail(&q->op, E_BAD_REQUEST, "The parameter '%.*s' is given more than once.", slice_shown(name), name.p);
        }
    }
    return OK;
}

err sql_asked_read(sql_request *q, sql_asked *a) {
    bson_iter_t it;
    slice body;
    *a = (sql_asked){0};
    if (slice_starts(sql_get(q, FIELD_CONTENT_TYPE), SLICE_LIT("application/sql"))) {
        a->text = q->http->body;
        return bson_utf8_validate(a->text.p ? a->text.p : "", a->text.n, true) ? OK : bad_body(q);
    }
    TRY(sql_body(q, JSON_OBJECT, &body));
    if (!doc_find_key(body, SLICE_LIT("query"), &it) || !BSON_ITER_HOLDS_UTF8(&it)) {
        return bad_body(q);
    }
    a->text = doc_text(&it);
    return read_parameters(q, body, a);
}
