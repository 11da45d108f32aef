/* pipeline.c — parses pipelines by the table of stages. */
#include "mql/pipeline_int.h"
#include "mql/show.h"

/* ---- the table ---- */

static const mql__stage_kinds *const tables[] = {
    &mql__basic_stages, &mql__bucket_stages, &mql__densify_stages, &mql__facet_stages,  &mql__field_stages, &mql__fill_stages,
    &mql__geo_stages,   &mql__graph_stages,  &mql__group_stages,   &mql__lookup_stages, &mql__sort_stages,  &mql__source_stages,
    &mql__union_stages, &mql__unwind_stages, &mql__window_stages,  &mql__write_stages,
};

const mql__stage_kind *mql__stage_at(size_t position) {
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        if (position < tables[t]->n) {
            return &tables[t]->rows[position];
        }
        position -= tables[t]->n;
    }
    return NULL;
}

const mql__stage_kind *mql__stage_find(slice name) {
    const mql__stage_kind *kind;
    for (size_t i = 0; (kind = mql__stage_at(i)) != NULL; i++) {
        if (slice_eq(kind->name, name)) {
            return kind;
        }
    }
    return NULL;
}

bool mql__stage_is(const mql__stage *s, const char *name) {
    return slice_eq(s->kind->name, slice_str(name));
}

/* ---- parsing ---- */

err mql__add_stage(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument, const void *detail) {
    arena *a = p->scope->op->arena;
    if (p->n == p->room) {
        size_t room = p->room ? 2 * p->room : 8;
        mql__stage *stages = arena_array(a, mql__stage, room);
        if (p->n) {
            memcpy(stages, p->stages, p->n * sizeof *stages);
        }
        p->stages = stages;
        p->room = room;
    }
    p->stages[p->n++] = (mql__stage){kind, argument, detail};
    return mql__arena_error(a);
}

static err check_service(op *o, const mql__stage_kind *kind, bool service) {
    if (service && !(kind->flags & MQL__STAGE_SERVICE)) {
        return mql_fail(o, 40324, "Unrecognized pipeline stage name: '%.*s'", (int)kind->name.n, kind->name.p);
    }
    return OK;
}

static err check_place(const mql__stage_parser *p, const mql__stage_kind *kind, bool first) {
    op *o = p->scope->op;
    int n = (int)kind->name.n;
    const char *name = kind->name.p;
    if (p->place == MQL__IN_UPDATE && !(kind->flags & MQL__STAGE_UPDATE)) {
        return mql_fail(o, 72, "%.*s is not allowed to be used within an update", n, name);
    }
    if (p->place == MQL__IN_FACET && (kind->flags & (MQL__STAGE_NO_FACET | MQL__STAGE_TOP_ONLY))) {
        return mql_fail(o, 40600, "%.*s is not allowed to be used within a $facet stage", n, name);
    }
    if (p->place != MQL__AT_TOP && (kind->flags & MQL__STAGE_TOP_ONLY)) {
        return mql_fail(o, 51047, "%.*s is not allowed within a%s", n, name,
                        p->place == MQL__IN_LOOKUP ? " $lookup's sub-pipeline" : " $unionWith's sub-pipeline");
    }
    if ((kind->flags & MQL__STAGE_FIRST) && !first) {
        return mql_fail(o, 40602, "%.*s is only valid as the first stage in a pipeline", n, name);
    }
    return OK;
}

err mql__parse_stage(mql__stage_parser *p, slice name, mql_value argument) {
    op *o = p->scope->op;
    const mql__stage_kind *kind = mql__stage_find(name);
    if (!kind) {
        return mql_fail(o, 40324, "Unrecognized pipeline stage name: '%.*s'", slice_shown(name), name.p);
    }
    if (p->n && (p->stages[p->n - 1].kind->flags & MQL__STAGE_LAST)) {
        slice last = p->stages[p->n - 1].kind->name;
        return mql_fail(o, 40601, "%.*s can only be the final stage in the pipeline", (int)last.n, last.p);
    }
    TRY(check_place(p, kind, p->n == 0));
    return kind->parse(p, kind, argument);
}

static err parse_member(mql__stage_parser *p, const doc_element *e) {
    op *o = p->scope->op;
    doc_walk w;
    doc_element stage, another;
    if (e->type != BSON_TYPE_DOCUMENT) {
        return mql_fail(o, 14, "Each element of the 'pipeline' array must be an object");
    }
    doc_walk_init(&w, e->value);
    if (!doc_walk_next(&w, &stage) || doc_walk_next(&w, &another)) {
        return mql_fail(o, 40323, "A pipeline stage specification object must contain exactly one field.");
    }
    const mql__stage_kind *kind = mql__stage_find(stage.key);
    if (kind) {
        TRY(check_service(o, kind, p->scope->service));
    }
    return mql__parse_stage(p, stage.key, mql_of(&stage));
}

err mql__pipeline_parse(mql_scope *s, slice stages, mql__place place, const mql_pipeline **pipeline_out) {
    mql_pipeline *made = arena_new(s->op->arena, mql_pipeline);
    mql__stage_parser p = {.scope = s, .place = place};
    doc_walk w;
    doc_element e;
    *pipeline_out = made;
    if (mql_length(mql_array(stages)) > MQL__PIPELINE_STAGES_MAX) {
        return mql_fail(s->op, 7749501, "Pipeline length must be no longer than %d stages", MQL__PIPELINE_STAGES_MAX);
    }
    if (++s->depth > MQL__PIPELINES_DEPTH_MAX) {
        return mql_fail(s->op, 5107200, "Maximum number of nested sub-pipelines exceeded. Limit is %d", MQL__PIPELINES_DEPTH_MAX);
    }
    for (doc_walk_init(&w, stages); doc_walk_next(&w, &e);) {
        TRY(parse_member(&p, &e));
    }
    s->depth--;
    made->stages = p.stages;
    made->n = p.n;
    mql__pipeline_optimise(made);
    return OK;
}

err mql_pipeline_parse(mql_scope *s, slice stages, const mql_pipeline **pipeline_out) {
    return mql__pipeline_parse(s, stages, MQL__AT_TOP, pipeline_out);
}

/* ---- pipelines of updates ---- */

err mql__pipeline_parse_update(mql_scope *s, slice stages, const mql_pipeline **pipeline_out) {
    return mql__pipeline_parse(s, stages, MQL__IN_UPDATE, pipeline_out);
}

err mql__pipeline_map(mql_run *r, const mql_pipeline *p, slice document, slice *document_out) {
    mql_value root = r->root;
    *document_out = document;
    err e = OK;
    for (size_t i = 0; e == OK && i < p->n; i++) {
        r->root = mql_document(*document_out);
        e = p->stages[i].kind->map(r, &p->stages[i], *document_out, document_out);
    }
    r->root = root;
    return e;
}

/* ---- helpers of stages ---- */

err mql__is_document(op *o, mql_value argument, int code, const char *text) {
    bool typed = text[strlen(text) - 1] == ' ';
    return argument.type == BSON_TYPE_DOCUMENT ? OK : mql_fail(o, code, "%s%s", text, typed ? mql_type_name(argument.type) : "");
}

enum { DOCUMENT_BYTES_MAX = 16 * 1024 * 1024, BUILD_STEPS = 40 };

buf mql__document_buf(mql_run *r) {
    return buf_init_counted(DOCUMENT_BYTES_MAX + 16 * 1024, r->arena->budget);
}

err mql__document_made(mql_run *r, mql_builder *b, slice *document_out) {
    buf *out = b->out;
    err e = mql_keep(r->arena, b, document_out) ? mql_pay(r, BUILD_STEPS + document_out->n / 64) : mql__arena_error(r->arena);
    if (e == OK && !buf_ok(out)) {
        e = mql_fail(r->op, 10334, "BSONObj size: %zu is invalid. Size must be between 0 and 16793600(16MB)", out->n);
    }
    buf_free(out);
    return e;
}

const slice *mql__split_path(arena *a, slice path, size_t *n_out) {
    size_t n = 1;
    for (size_t i = 0; i < path.n; i++) {
        n += path.p[i] == '.';
    }
    slice *parts = arena_array(a, slice, n);
    for (size_t i = 0; i < n; i++) {
        const char *dot = memchr(path.p, '.', path.n);
        parts[i] = dot ? slice_of(path.p, (size_t)(dot - path.p)) : path;
        path = slice_skip(path, parts[i].n + 1);
    }
    *n_out = n;
    return parts;
}

mql_value mql__value_at(mql_value document, slice path) {
    while (path.n && !mql_is_missing(document)) {
        const char *dot = memchr(path.p, '.', path.n);
        slice name = dot ? slice_of(path.p, (size_t)(dot - path.p)) : path;
        document = document.type == BSON_TYPE_DOCUMENT ? mql_member(document, name) : mql_missing();
        path = slice_skip(path, name.n + 1);
    }
    return document;
}

/* The members of `old`, with the value at the path. */
static void members_with(mql_builder *b, mql_value old, slice path, mql_value v) {
    const char *dot = memchr(path.p, '.', path.n);
    slice name = dot ? slice_of(path.p, (size_t)(dot - path.p)) : path, rest = slice_skip(path, name.n + 1);
    doc_walk w;
    doc_element e;
    bool done = false;
    if (old.type == BSON_TYPE_DOCUMENT) {
        for (doc_walk_init(&w, old.bytes); doc_walk_next(&w, &e);) {
            if (done || !slice_eq(e.key, name)) {
                mql_add_element(b, &e);
                continue;
            }
            done = true;
            if (dot) {
                mql_open(b, name, BSON_TYPE_DOCUMENT);
                members_with(b, mql_of(&e), rest, v);
                mql_close(b);
            } else {
                mql_add(b, name, v);
            }
        }
    }
    if (!done && dot && !mql_is_missing(v)) {
        mql_open(b, name, BSON_TYPE_DOCUMENT);
        members_with(b, mql_missing(), rest, v);
        mql_close(b);
    } else if (!done) {
        mql_add(b, name, v);
    }
}

err mql__document_with(mql_run *r, slice document, slice path, mql_value v, slice *document_out) {
    buf out = mql__document_buf(r);
    mql_builder b = mql_build(&out);
    members_with(&b, mql_document(document), path, v);
    return mql__document_made(r, &b, document_out);
}

err mql__check_path(op *o, slice path, int code) {
    size_t parts = 1;
    bool good = path.n > 0 && path.p[0] != '.' && path.p[path.n - 1] != '.';
    for (size_t i = 0; good && i < path.n; i++) {
        bool starts = i == 0 || path.p[i - 1] == '.';
        good = !(starts && path.p[i] == '$') && path.p[i] != 0 && !(path.p[i] == '.' && i > 0 && path.p[i - 1] == '.');
        parts += path.p[i] == '.';
    }
    return good && parts < MQL_DEPTH_MAX ? OK : mql_fail(o, code, "'%.*s' is not a valid field path", slice_shown(path), path.p);
}
