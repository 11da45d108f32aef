#include "api/sql/query_body.h"

#include "query/parameters.h"

err sql_query_body_read(sql_request *q, sql_query_body *a) {
    bson_iter_t it;
    slice body;
    *a = (sql_query_body){0};
    if (slice_starts(sql_get(q, FIELD_CONTENT_TYPE), SLICE_LIT("application/sql"))) {
        a->text = q->http->body;
        return bson_utf8_validate(a->text.p ? a->text.p : "", a->text.n, true) ? OK : query_parameters_bad_body(&q->op);
    }
    TRY(sql_body(q, JSON_OBJECT, &body));
    if (!doc_find_key(body, SLICE_LIT("query"), &it) || !BSON_ITER_HOLDS_UTF8(&it)) {
        return query_parameters_bad_body(&q->op);
    }
    a->text = doc_text(&it);
    return query_parameters_read(&q->op, body, &a->parameters, &a->parameters_n);
}
