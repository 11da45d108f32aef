/* stage_lookup_parse.c — the options of $lookup. */
#include "mql/stage_lookup.h"

static err parse_let(mql__stage_parser *p, mql__lookup_stage *l, mql_value let) {
    mql_scope *s = p->scope;
    doc_walk w;
    doc_element e;
    size_t n = mql_length(let);
    TRY(mql__arena_room(s->op->arena, n * sizeof *l->let));
    l->let = arena_array(s->op->arena, mql__let, n + 1);
    /* Parses all expressions before it declares the names, so that they do not see each other. */
    for (doc_walk_init(&w, let.bytes); doc_walk_next(&w, &e); l->let_n++) {
        TRY(mql_expression_parse(s, mql_of(&e), &l->let[l->let_n].value));
    }
    doc_walk_init(&w, let.bytes);
    for (size_t i = 0; doc_walk_next(&w, &e); i++) {
        TRY(mql_scope_declare(s, e.key, &l->let[i].slot));
    }
    return OK;
}

static err text_option(op *o, const doc_element *e, slice *text_out) {
    if (e->type != BSON_TYPE_UTF8) {
        return mql_fail(o, 9, "$lookup argument '%.*s' must be a string, found type %s", slice_shown(e->key), e->key.p,
                        mql_type_name(e->type));
    }
    *text_out = doc_element_text(e);
    return OK;
}

typedef struct options {
    mql_value let, pipeline;
} options;

static err parse_option(op *o, mql__lookup_stage *l, options *more, const doc_element *e) {
    if (slice_eq(e->key, SLICE_LIT("from"))) {
        return text_option(o, e, &l->from);
    }
    if (slice_eq(e->key, SLICE_LIT("as"))) {
        TRY(text_option(o, e, &l->as));
        return mql__check_path(o, l->as, 16410);
    }
    if (slice_eq(e->key, SLICE_LIT("localField"))) {
        TRY(text_option(o, e, &l->local));
        return mql__check_path(o, l->local, 16410);
    }
    if (slice_eq(e->key, SLICE_LIT("foreignField"))) {
        TRY(text_option(o, e, &l->foreign));
        return mql__check_path(o, l->foreign, 16410);
    }
    if (slice_eq(e->key, SLICE_LIT("pipeline"))) {
        more->pipeline = mql_of(e);
        return e->type == BSON_TYPE_ARRAY
                   ? OK
                   : mql_fail(o, 9, "$lookup argument 'pipeline' must be an array, is type %s", mql_type_name(e->type));
    }
    if (slice_eq(e->key, SLICE_LIT("let"))) {
        more->let = mql_of(e);
        return e->type == BSON_TYPE_DOCUMENT
                   ? OK
                   : mql_fail(o, 9, "$lookup argument 'let' must be an object, is type %s", mql_type_name(e->type));
    }
    return mql_fail(o, 9, "unknown argument to $lookup: %.*s", slice_shown(e->key), e->key.p);
}

static bool begins_with_documents(mql_value pipeline) {
    return !mql_is_missing(mql_member(mql_element_at(pipeline, 0), SLICE_LIT("$documents")));
}

static err check_options(mql_scope *s, const mql__lookup_stage *l, const options *more) {
    op *o = s->op;
    bool piped = !mql_is_missing(more->pipeline);
    if (s->service && (piped || !mql_is_missing(more->let))) {
        return mql_fail(o, 40324, "let is not supported");
    }
    if (l->as.n == 0) {
        return mql_fail(o, 9, "must specify 'as' field for a $lookup");
    }
    if (l->from.n == 0 && !(piped && begins_with_documents(more->pipeline))) {
        return mql_fail(o, 9, "missing 'from' option to $lookup stage specification: must specify 'from'");
    }
    if ((l->local.n == 0) != (l->foreign.n == 0) || (!piped && l->local.n == 0)) {
        return mql_fail(o, 9, "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified");
    }
    return !piped && !mql_is_missing(more->let) ? mql_fail(o, 9, "$lookup with a 'let' argument must also specify 'pipeline'") : OK;
}

err mql__parse_lookup(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    mql__lookup_stage *l = arena_new(o->arena, mql__lookup_stage);
    options more = {mql_missing(), mql_missing()};
    const struct mql_name *names = p->scope->names;
    doc_walk w;
    doc_element e;
    TRY(mql__is_document(o, argument, 9, "the $lookup specification must be an object, but found "));
    for (doc_walk_init(&w, argument.bytes); doc_walk_next(&w, &e);) {
        TRY(parse_option(o, l, &more, &e));
    }
    TRY(check_options(p->scope, l, &more));
    TRY(mql__from_parse(p->scope, l->from, &l->source));
    if (!mql_is_missing(more.let)) {
        TRY(parse_let(p, l, more.let));
    }
    if (!mql_is_missing(more.pipeline)) {
        TRY(mql__pipeline_parse(p->scope, more.pipeline.bytes, MQL__IN_LOOKUP, &l->pipeline));
        l->filter = mql__leading_filter(l->pipeline);
    }
    p->scope->names = names;
    if (l->local.n) {
        l->local_parts = mql__split_path(o->arena, l->local, &l->local_n);
        l->foreign_parts = mql__split_path(o->arena, l->foreign, &l->foreign_n);
    }
    return mql__add_stage(p, kind, argument, l);
}

slice mql__lookup_from(const mql__stage *s, const mql_pipeline **pipeline_out) {
    const mql__lookup_stage *l = s->detail;
    *pipeline_out = l->pipeline;
    return l->source.collection;
}
