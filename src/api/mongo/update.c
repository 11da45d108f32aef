/* update and delete. */
#include "api/mongo/collections.h"
#include "api/mongo/retry.h"
#include "api/mongo/writes.h"

enum { STATEMENTS_MAX = 100000 };

/* ---- statements ---- */

static err wrong(mongo_request *q, const char *what) {
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_FAILED_TO_PARSE, "%s", what);
}

static err missing(mongo_request *q, const char *what) {
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_MISSING_FIELD, "BSON field '%s' is missing but a required field", what);
}

static slice document_in(slice statement, const char *name, bson_type_t type) {
    mql_value v = mongo_member(statement, name);
    return v.type == type ? v.bytes : SLICE_EMPTY;
}

static err read_update(mongo_request *q, slice each, mongo_statement *s) {
    mql_value update = mongo_member(each, "u");
    *s = (mongo_statement){
        .filter = document_in(each, "q", BSON_TYPE_DOCUMENT),
        .update = update,
        .array_filters = document_in(each, "arrayFilters", BSON_TYPE_ARRAY),
        .sort = document_in(each, "sort", BSON_TYPE_DOCUMENT),
        .collation = document_in(each, "collation", BSON_TYPE_DOCUMENT),
        .upsert = mql_truth(mongo_member(each, "upsert")),
        .multi = mql_truth(mongo_member(each, "multi")),
    };
    if (mql_is_missing(update)) {
        return missing(q, "update.updates.u");
    }
    if (!s->filter.n || (update.type != BSON_TYPE_DOCUMENT && update.type != BSON_TYPE_ARRAY)) {
        return wrong(q, "An update has a filter 'q' and an update 'u', which is a document or an array.");
    }
    return mongo_check_hint(&q->op, mongo_member(each, "hint"), &s->hint);
}

static err read_delete(mongo_request *q, slice each, mongo_statement *s) {
    mql_value limit = mongo_member(each, "limit");
    int64_t n = -1;
    *s = (mongo_statement){.filter = document_in(each, "q", BSON_TYPE_DOCUMENT),
                           .update = mql_missing(),
                           .collation = document_in(each, "collation", BSON_TYPE_DOCUMENT)};
    if (mql_is_missing(limit)) {
        return missing(q, "delete.deletes.limit");
    }
    if (!s->filter.n || !mql_as_integer(limit, &n) || n < 0 || n > 1) {
        return wrong(q, "A delete has a filter 'q' and a 'limit' of 0 or 1.");
    }
    s->multi = n == 0;
    return mongo_check_hint(&q->op, mongo_member(each, "hint"), &s->hint);
}

static err read_statements(mongo_request *q, const char *name, err (*read)(mongo_request *, slice, mongo_statement *), mongo_writes *w) {
    mongo_list list;
    slice each, variables;
    size_t n;
    w->ordered = true;
    TRY(mongo_arg_bool(q, "ordered", &w->ordered));
    TRY(mongo_arg_document(q, "let", &variables));
    TRY(mongo_list_begin(q, name, &list, &n));
    if (n == 0 || n > STATEMENTS_MAX) {
        return op_fail_as(&q->op, E_BAD_REQUEST, 16, "Write batch sizes must be between 1 and %d. Got %zu operations.", STATEMENTS_MAX, n);
    }
    if (!arena_fits(q->frame->arena, n * sizeof(mongo_statement))) {
        return budget_error(q->op.budget);
    }
    w->list = arena_array(q->frame->arena, mongo_statement, n);
    while (mongo_list_next(&list, &each)) {
        TRY(read(q, each, &w->list[w->n]));
        TRY(mongo_check_multi(q, w->list[w->n].multi));
        w->list[w->n++].variables = variables;
    }
    return OK;
}

/* ---- answers ---- */

static void add_upserted(mongo_writes *w, mql_builder *b) {
    bool any = false;
    for (size_t i = 0; i < w->n; i++) {
        if (!w->list[i].upserted) {
            continue;
        }
        if (!any) {
            mongo_open_array(b, "upserted");
            any = true;
        }
        mql_open_next(b, BSON_TYPE_DOCUMENT);
        mongo_add_int(b, "index", (int32_t)i);
        mql_add(b, SLICE_LIT("_id"), w->list[i].upserted_id);
        mql_close(b);
    }
    if (any) {
        mql_close(b);
    }
}

static err answer_update(mongo_request *q) {
    mongo_writes *w = q->state;
    uint64_t n = 0, modified = 0;
    for (size_t i = 0; i < w->n; i++) {
        n += w->list[i].matched + w->list[i].upserted;
        modified += w->list[i].modified;
    }
    mql_builder *b = mongo_answer(q);
    mongo_add_int(b, "n", (int32_t)n);
    add_upserted(w, b);
    mongo_add_int(b, "nModified", (int32_t)modified);
    mongo_write_errors_answer(&w->errors, b);
    mongo_end(q);
    return OK;
}

static err answer_delete(mongo_request *q) {
    mongo_writes *w = q->state;
    uint64_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        n += w->list[i].matched;
    }
    mql_builder *b = mongo_answer(q);
    mongo_add_int(b, "n", (int32_t)n);
    mongo_write_errors_answer(&w->errors, b);
    mongo_end(q);
    return OK;
}

/* ---- commands ---- */

static err start(mongo_request *q) {
    mongo_writes_start(q, q->state);
    return OK;
}

static bool any_upsert(const mongo_writes *w) {
    for (size_t i = 0; i < w->n; i++) {
        if (w->list[i].upsert) {
            return true;
        }
    }
    return false;
}

err mongo_update(mongo_request *q) {
    mongo_writes *w = q->state = arena_new(q->frame->arena, mongo_writes);
    TRY(read_statements(q, "updates", read_update, w));
    w->done = answer_update;
    TRY(mongo_need_writable(q));
    if (q->container) {
        return start(q);
    }
    if (!any_upsert(w)) {
        return answer_update(q);
    }
    mongo_creation *c = arena_new(q->frame->arena, mongo_creation);
    *c = (mongo_creation){.collection = q->collection, .may_exist = true, .then = start};
    mongo_create_collection(q, c);
    return OK;
}

err mongo_delete(mongo_request *q) {
    mongo_writes *w = q->state = arena_new(q->frame->arena, mongo_writes);
    TRY(read_statements(q, "deletes", read_delete, w));
    w->done = answer_delete;
    TRY(mongo_need_writable(q));
    if (q->container) {
        return start(q);
    }
    return answer_delete(q);
}
