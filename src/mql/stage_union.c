/* stage_union.c — $unionWith: passes its input on, then appends the documents of another collection, through a sub-pipeline. */
#include "mql/stage_foreign.h"
#include "mql/stages.h"

typedef struct with {
    mql__from from;
    const mql_pipeline *pipeline; /* NULL: none */
    slice filter;
} with;

static err parse_options(mql__stage_parser *p, with *u, slice *collection, mql_value argument) {
    op *o = p->scope->op;
    doc_walk w;
    doc_element e;
    mql_value pipeline = mql_missing();
    for (doc_walk_init(&w, argument.bytes); doc_walk_next(&w, &e);) {
        if (slice_eq(e.key, SLICE_LIT("coll"))) {
            if (e.type != BSON_TYPE_UTF8) {
                return mql_fail(o, 14, "BSON field '$unionWith.coll' is the wrong type '%s', expected type 'string'",
                                mql_type_name(e.type));
            }
            *collection = doc_element_text(&e);
        } else if (slice_eq(e.key, SLICE_LIT("pipeline"))) {
            if (e.type != BSON_TYPE_ARRAY) {
                return mql_fail(o, 14, "BSON field '$unionWith.pipeline' is the wrong type '%s', expected type 'array'",
                                mql_type_name(e.type));
            }
            pipeline = mql_of(&e);
        } else {
            return mql_fail(o, 40415, "BSON field '$unionWith.%.*s' is an unknown field.", slice_shown(e.key), e.key.p);
        }
    }
    if (!mql_is_missing(pipeline)) {
        TRY(mql__pipeline_parse(p->scope, pipeline.bytes, MQL__IN_UNION, &u->pipeline));
        u->filter = mql__leading_filter(u->pipeline);
    }
    bool own = u->pipeline && u->pipeline->n && mql__stage_is(&u->pipeline->stages[0], "$documents");
    return collection->n || own
               ? OK
               : mql_fail(o, 9, "$unionWith stage without explicit collection must have a pipeline with $documents as first stage");
}

static err parse_union(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    with *u = arena_new(o->arena, with);
    slice collection = SLICE_EMPTY;
    if (argument.type == BSON_TYPE_UTF8) {
        collection = mql_as_text(argument);
    } else {
        TRY(mql__is_document(o, argument, 9, "the $unionWith stage specification must be an object or string, but found "));
        TRY(parse_options(p, u, &collection, argument));
    }
    TRY(mql__from_parse(p->scope, collection, &u->from));
    return mql__add_stage(p, kind, argument, u);
}

typedef struct union_run {
    bool own_ended;
    mql__foreign foreign;
    mql_flow *sub;
} union_run;

static err next_united(mql__runner *at, mql__status *status_out, slice *document_out) {
    union_run *s = at->state;
    const with *u = at->stage->detail;
    if (!s->own_ended) {
        TRY(mql__pull(at, status_out, document_out));
        if (*status_out != MQL__END) {
            return OK;
        }
        s->own_ended = true;
        mql__foreign_begin(at, &s->foreign, &u->from, u->filter);
        s->sub = u->pipeline ? mql__sub_begin(at, u->pipeline) : NULL;
    }
    return s->sub ? mql__foreign_through(at, &s->foreign, s->sub, status_out, document_out)
                  : mql__foreign_next(at, &s->foreign, status_out, document_out);
}

static void end_union(mql__runner *at) {
    union_run *s = at->state;
    mql_flow_free(s->sub);
    mql__foreign_end(&s->foreign);
}

slice mql__union_from(const mql__stage *s, const mql_pipeline **pipeline_out) {
    const with *u = s->detail;
    *pipeline_out = u->pipeline;
    return u->from.collection;
}

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$unionWith"), 0, parse_union, .next = next_united, .state_bytes = sizeof(union_run), .end = end_union},
};
const mql__stage_kinds mql__union_stages = {rows, 1};
