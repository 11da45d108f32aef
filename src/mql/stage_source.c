/* stage_source.c — stages that produce documents. $documents makes its own; the documents of the others come from the front end and pass
 * through. */
#include "mql/show.h"
#include "mql/stages.h"

/* ---- those of the front end ---- */

static err parse_source(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    if (argument.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(p->scope->op, 9, "%.*s must take a nested object but found: %s", (int)kind->name.n, kind->name.p,
                        mql__show(p->scope->op->arena, argument));
    }
    return mql__add_stage(p, kind, argument, NULL);
}

static err map_source(mql_run *r, const mql__stage *s, slice document, slice *document_out) {
    (void)r, (void)s;
    *document_out = document;
    return OK;
}

/* ---- $documents ---- */

static err parse_documents(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    const mql_expression *e;
    TRY(mql_expression_parse(p->scope, argument, &e));
    return mql__add_stage(p, kind, argument, e);
}

typedef struct documents_run {
    bool begun;
    mql__queue queue;
} documents_run;

static err begin(mql__runner *at, documents_run *s) {
    mql_run *r = mql__run_of(at);
    static const char empty[] = "\5\0\0\0";
    mql_value all;
    doc_walk w;
    doc_element e;
    s->begun = true;
    s->queue.bytes = buf_init_counted(BUF_NO_LIMIT, at->flow->budget);
    r->root = mql_document(slice_of(empty, 5));
    TRY(mql_evaluate(r, at->stage->detail, &all));
    if (all.type != BSON_TYPE_ARRAY) {
        return mql_fail(r->op, 5858203, "an array is expected");
    }
    for (doc_walk_init(&w, all.bytes); doc_walk_next(&w, &e);) {
        if (e.type != BSON_TYPE_DOCUMENT) {
            return mql_fail(r->op, 40228,
                            "'newRoot' expression  must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'.",
                            mql__show(r->op->arena, mql_of(&e)), mql_type_name(e.type));
        }
        TRY(mql__queue_push(&s->queue, e.value));
    }
    return OK;
}

static err next_documents(mql__runner *at, mql__status *status_out, slice *document_out) {
    documents_run *s = at->state;
    if (!s->begun) {
        TRY(begin(at, s));
    }
    *status_out = mql__queue_pop(&s->queue, document_out) ? MQL__DOCUMENT : MQL__END;
    return OK;
}

static void end_documents(mql__runner *at) {
    documents_run *s = at->state;
    buf_free(&s->queue.bytes);
}

enum { SOURCE = MQL__STAGE_FIRST | MQL__STAGE_SOURCE | MQL__STAGE_NO_FACET, SOURCE_AT_TOP = SOURCE | MQL__STAGE_TOP_ONLY };

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$documents"), SOURCE, parse_documents, .next = next_documents, .state_bytes = sizeof(documents_run), .end = end_documents,
     .variant = MQL_SOURCE_NONE},
    {SLICE_LIT("$changeStream"), SOURCE_AT_TOP | MQL__STAGE_SERVICE, parse_source, .map = map_source, .variant = MQL_SOURCE_CHANGE_STREAM},
    {SLICE_LIT("$collStats"), SOURCE_AT_TOP, parse_source, .map = map_source, .variant = MQL_SOURCE_COLL_STATS},
    {SLICE_LIT("$currentOp"), SOURCE_AT_TOP, parse_source, .map = map_source, .variant = MQL_SOURCE_CURRENT_OP},
    {SLICE_LIT("$indexStats"), SOURCE_AT_TOP, parse_source, .map = map_source, .variant = MQL_SOURCE_INDEX_STATS},
    {SLICE_LIT("$listLocalSessions"), SOURCE_AT_TOP, parse_source, .map = map_source, .variant = MQL_SOURCE_LIST_SESSIONS},
    {SLICE_LIT("$listSessions"), SOURCE_AT_TOP, parse_source, .map = map_source, .variant = MQL_SOURCE_LIST_SESSIONS},
    {SLICE_LIT("$planCacheStats"), SOURCE_AT_TOP | MQL__STAGE_SERVICE, parse_source, .map = map_source,
     .variant = MQL_SOURCE_PLAN_CACHE_STATS},
};
const mql__stage_kinds mql__source_stages = {rows, sizeof rows / sizeof *rows};
