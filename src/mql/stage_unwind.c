/* stage_unwind.c — $unwind: one document for each element of an array. */
#include "mql/pipeline_int.h"
#include "mql/stages.h"

typedef struct unwind {
    slice path, index; /* dotted; `index` is empty if the position is not wanted */
    bool preserve;
} unwind;

slice mql__unwind_path(const mql__stage *s) {
    return ((const unwind *)s->detail)->path;
}

slice mql__unwind_index(const mql__stage *s) {
    return ((const unwind *)s->detail)->index;
}

/* ---- parsing ---- */

static err parse_path(op *o, unwind *u, mql_value v) {
    if (!mql_is_text(v)) {
        return mql_fail(o, 28808, "expected a string as the path for $unwind stage, got %s", mql_type_name(v.type));
    }
    slice path = mql_as_text(v);
    if (path.n == 0) {
        return mql_fail(o, 28812, "no path specified to $unwind stage");
    }
    if (path.p[0] != '$') {
        return mql_fail(o, 28818, "path option to $unwind stage should be prefixed with a '$': %.*s", slice_shown(path), path.p);
    }
    u->path = slice_skip(path, 1);
    return mql__check_path(o, u->path, 16410);
}

static err parse_index(op *o, unwind *u, mql_value v) {
    if (!mql_is_text(v) || mql_as_text(v).n == 0) {
        return mql_fail(o, 28810, "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got %s",
                        mql_type_name(v.type));
    }
    u->index = mql_as_text(v);
    if (u->index.p[0] == '$') {
        return mql_fail(o, 28822, "includeArrayIndex option to $unwind stage should not be prefixed with a '$': %.*s",
                        slice_shown(u->index), u->index.p);
    }
    return mql__check_path(o, u->index, 16410);
}

static err parse_option(op *o, unwind *u, const doc_element *e) {
    if (slice_eq(e->key, SLICE_LIT("path"))) {
        return parse_path(o, u, mql_of(e));
    }
    if (slice_eq(e->key, SLICE_LIT("includeArrayIndex"))) {
        return parse_index(o, u, mql_of(e));
    }
    if (!slice_eq(e->key, SLICE_LIT("preserveNullAndEmptyArrays"))) {
        return mql_fail(o, 28811, "unrecognized option to $unwind stage: %.*s", slice_shown(e->key), e->key.p);
    }
    if (e->type != BSON_TYPE_BOOL) {
        return mql_fail(o, 28809, "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got %s",
                        mql_type_name(e->type));
    }
    u->preserve = mql_as_bool(mql_of(e));
    return OK;
}

static err parse_unwind(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    unwind *u = arena_new(o->arena, unwind);
    doc_walk w;
    doc_element e;
    if (argument.type == BSON_TYPE_UTF8) {
        TRY(parse_path(o, u, argument));
        return mql__add_stage(p, kind, argument, u);
    }
    TRY(mql__is_document(o, argument, 15981, "expected either a string or an object as specification for $unwind stage, got "));
    for (doc_walk_init(&w, argument.bytes); doc_walk_next(&w, &e);) {
        TRY(parse_option(o, u, &e));
    }
    return u->path.n ? mql__add_stage(p, kind, argument, u) : mql_fail(o, 28812, "no path specified to $unwind stage");
}

/* ---- at work ---- */

typedef struct unwinder {
    buf document; /* the one being unwound */
    mql_value array;
    doc_walk walk;
    int64_t position;
    bool active;
} unwinder;

/* The document with a value in place of the array, and with the position. */
static err give(mql__runner *at, slice document, mql_value v, mql_value position, slice *document_out) {
    const unwind *u = at->stage->detail;
    mql_run *r = mql__run_of(at);
    TRY(mql__document_with(r, document, u->path, v, document_out));
    return u->index.n ? mql__document_with(r, *document_out, u->index, position, document_out) : OK;
}

/* A value that is not an array counts as an array of one element. Null, missing and empty arrays give a document only with
 * preserveNullAndEmptyArrays. */
static err give_single(mql__runner *at, slice document, mql_value v, bool *given_out, slice *document_out) {
    const unwind *u = at->stage->detail;
    bool nothing = mql_is_nullish(v) || v.type == BSON_TYPE_ARRAY;
    *given_out = !nothing || u->preserve;
    if (!*given_out) {
        return OK;
    }
    *document_out = document;
    if (v.type == BSON_TYPE_ARRAY) {
        v = mql_missing();
    }
    return u->index.n || mql_is_missing(v) ? give(at, document, v, mql_null(), document_out) : OK;
}

static err begin(mql__runner *at, unwinder *s, slice document) {
    const unwind *u = at->stage->detail;
    buf_clear(&s->document);
    buf_add_slice(&s->document, document);
    if (!buf_ok(&s->document)) {
        return budget_error(at->flow->budget);
    }
    s->array = mql__value_at(mql_document(buf_view(&s->document)), u->path);
    doc_walk_init(&s->walk, s->array.bytes);
    s->position = 0;
    s->active = true;
    return OK;
}

static err next_unwound(mql__runner *at, mql__status *status_out, slice *document_out) {
    unwinder *s = at->state;
    mql_run *r = mql__run_of(at);
    const unwind *u = at->stage->detail;
    s->document.max = BUF_NO_LIMIT;
    s->document.budget = at->flow->budget;
    for (;;) {
        doc_element e;
        if (s->active && doc_walk_next(&s->walk, &e)) {
            *status_out = MQL__DOCUMENT;
            return give(at, buf_view(&s->document), mql_of(&e), mql_int64(r->arena, s->position++), document_out);
        }
        s->active = false;
        arena_mark mark = arena_marked(r->arena);
        slice document;
        TRY(mql__pull(at, status_out, &document));
        if (*status_out != MQL__DOCUMENT) {
            return OK;
        }
        mql_value v = mql__value_at(mql_document(document), u->path);
        if (v.type == BSON_TYPE_ARRAY && mql_length(v) > 0) {
            TRY(begin(at, s, document));
        } else {
            bool given;
            TRY(give_single(at, document, v, &given, document_out));
            if (given) {
                return OK;
            }
        }
        arena_release(r->arena, mark);
    }
}

static void end_unwind(mql__runner *at) {
    unwinder *s = at->state;
    buf_free(&s->document);
}

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$unwind"), MQL__STAGE_SERVICE, parse_unwind, .next = next_unwound, .state_bytes = sizeof(unwinder), .end = end_unwind},
};
const mql__stage_kinds mql__unwind_stages = {rows, 1};
