/* findAndModify: one document is found, changed or deleted, and returned as it was before or is now. */
#include "api/mongo/collections.h"
#include "api/mongo/filter_kind.h"
#include "api/mongo/work.h"
#include "api/mongo/writes.h"
#include "mql/project.h"

typedef struct modification {
    mongo_writes writes; /* first: q->state is both */
    mongo_statement statement;
    slice fields;
    bool removes, wants_new;
    slice shown; /* the document of the reply; empty: none */
} modification;

static err show(mongo_request *q) {
    modification *m = q->state;
    mongo_scope scope;
    const mql_match *match;
    const mql_project *project;
    slice document = m->shown = m->removes || !m->wants_new ? m->writes.before : m->writes.after;
    if (!document.n || m->fields.n <= 5) {
        return OK;
    }
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, m->statement.variables, q->now_ms, &scope));
    TRY(mql_match_parse(&scope.scope, m->statement.filter, &match));
    TRY(mql_project_parse(&scope.scope, m->fields, MQL_PROJECT_FIND, match, &project));
    mql_run r = mongo_run_of(&q->op, q->frame->arena, &scope, q->steps);
    r.root = mql_document(document);
    return mql_project_apply(&r, project, &m->shown);
}

static void add_last_error(const modification *m, mql_builder *b) {
    const mongo_statement *s = &m->statement;
    mongo_open_document(b, "lastErrorObject");
    mongo_add_int(b, "n", (int32_t)(s->matched + s->upserted));
    if (!m->removes) {
        mongo_add_bool(b, "updatedExisting", s->matched > 0);
        if (s->upserted) {
            mql_add(b, SLICE_LIT("upserted"), s->upserted_id);
        }
    }
    mql_close(b);
}

static void answer_shown(mongo_request *q, err code) {
    const modification *m = q->state;
    if (code != OK) {
        mongo_fail(q, code);
        return;
    }
    mql_builder *b = mongo_answer(q);
    add_last_error(m, b);
    mql_add(b, SLICE_LIT("value"), m->shown.n ? mql_document(m->shown) : mql_null());
    mongo_end(q);
}

static err answer(mongo_request *q) {
    modification *m = q->state;
    if (m->writes.errors.n) {
        return mongo_first_error(q, &m->writes.errors);
    }
    buf_free(&m->writes.errors.out);
    mongo_work(q, q->large, show, answer_shown);
    return OK;
}

static err read_ask(mongo_request *q, modification *m) {
    mongo_statement *s = &m->statement;
    mql_value update = mongo_arg(q, "update");
    TRY(mongo_arg_document(q, "query", &s->filter));
    TRY(mongo_arg_document(q, "sort", &s->sort));
    TRY(mongo_arg_document(q, "fields", &m->fields));
    TRY(mongo_arg_document(q, "let", &s->variables));
    TRY(mongo_arg_document(q, "collation", &s->collation));
    TRY(mongo_arg_hint(q, &s->hint));
    TRY(mongo_arg_array(q, "arrayFilters", &s->array_filters));
    TRY(mongo_arg_bool(q, "remove", &m->removes));
    TRY(mongo_arg_bool(q, "new", &m->wants_new));
    TRY(mongo_arg_bool(q, "upsert", &s->upsert));
    s->sort = s->sort.n <= 5 ? SLICE_EMPTY : s->sort;
    s->filter = s->filter.n ? s->filter : slice_of("\5\0\0\0", 5);
    s->update = m->removes ? mql_missing() : update;
    bool good = m->removes ? mql_is_missing(update) && !s->upsert && !m->wants_new
                           : update.type == BSON_TYPE_DOCUMENT || update.type == BSON_TYPE_ARRAY;
    return good
               ? OK
               : op_fail_as(&q->op, E_BAD_REQUEST, CODE_FAILED_TO_PARSE, "Either an update or remove=true must be specified, and not both");
}

static err start(mongo_request *q) {
    modification *m = q->state;
    m->writes.list = &m->statement;
    m->writes.n = 1;
    m->writes.ordered = m->writes.keeps = true;
    m->writes.image = m->wants_new && !m->removes ? ITEM_IMAGE_AFTER : ITEM_IMAGE_BEFORE;
    m->writes.done = answer;
    mongo_writes_start(q, &m->writes);
    return OK;
}

err mongo_find_and_modify(mongo_request *q) {
    modification *m = q->state = arena_new(q->frame->arena, modification);
    TRY(read_ask(q, m));
    TRY(mongo_need_writable(q));
    if (q->container) {
        return start(q);
    }
    if (!m->statement.upsert) {
        return answer(q);
    }
    mongo_creation *c = arena_new(q->frame->arena, mongo_creation);
    *c = (mongo_creation){.collection = q->collection, .may_exist = true, .then = start};
    mongo_create_collection(q, c);
    return OK;
}
