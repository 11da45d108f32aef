/* project.c — applies projections.
 *
 * Fields that the projection keeps stay in the document's order; computed fields come after them, in the projection's order. A path goes
 * through arrays: {"a.b": 1} keeps b of each document in a, and drops elements that are not documents; {"a.b": 0} removes b and keeps them.
 */
#include "mql/project_int.h"

typedef struct projector {
    mql_run *run;
    const mql_project *project;
    mql_builder builder;
    int64_t position; /* for the positional projection */
} projector;

static err put_fields(projector *p, const mql__field *parent, slice document, bool narrow);

/* ---- fields ---- */

static err put(projector *p, slice key, mql_value v) {
    mql_add(&p->builder, key, v);
    return mql_pay(p->run, 1 + v.bytes.n / 64);
}

static err put_slice(projector *p, const mql__field *field, slice key, mql_value v) {
    doc_walk w;
    doc_element e;
    if (v.type != BSON_TYPE_ARRAY) {
        return put(p, key, v);
    }
    int64_t n = (int64_t)mql_length(v), from = field->skip < 0 ? n + field->skip : field->skip;
    from = from < 0 ? 0 : from;
    TRY(mql_pay(p->run, 1 + v.bytes.n / 32));
    mql_open(&p->builder, key, BSON_TYPE_ARRAY);
    doc_walk_init(&w, v.bytes);
    for (int64_t i = 0; doc_walk_next(&w, &e); i++) {
        if (i >= from && i - from < field->limit) {
            mql_add_next(&p->builder, mql_of(&e));
        }
    }
    mql_close(&p->builder);
    return OK;
}

/* ---- arrays ---- */

/* Whether an array element that is neither a document nor an array is kept. If the projection computes fields of it, it becomes a document.
 */
static err put_other_element(projector *p, const mql__field *field, mql_value v) {
    if (field->computes) {
        mql_open_next(&p->builder, BSON_TYPE_DOCUMENT);
        TRY(put_fields(p, field, SLICE_LIT("\5\0\0\0\0"), false));
        mql_close(&p->builder);
    } else if (!p->project->inclusion) {
        mql_add_next(&p->builder, v);
    }
    return mql_pay(p->run, 1 + v.bytes.n / 64);
}

static err put_elements(projector *p, const mql__field *field, mql_value array);

static err put_element(projector *p, const mql__field *field, mql_value v) {
    if (!doc_is_container(v.type)) {
        return put_other_element(p, field, v);
    }
    mql_open_next(&p->builder, v.type);
    TRY(v.type == BSON_TYPE_ARRAY ? put_elements(p, field, v) : put_fields(p, field, v.bytes, false));
    mql_close(&p->builder);
    return OK;
}

static err put_elements(projector *p, const mql__field *field, mql_value array) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, array.bytes); doc_walk_next(&w, &e);) {
        TRY(mql_pay(p->run, 1));
        TRY(put_element(p, field, mql_of(&e)));
    }
    return OK;
}

/* The first array on the path of a.$ shrinks to the element that matched. */
static err put_matched_element(projector *p, const mql__field *field, slice key, mql_value array) {
    if (p->position < 0) {
        return mql_fail(p->run->op, 51246, "positional operator '.$' couldn't find a matching element in the array");
    }
    mql_value element = mql_element_at(array, (size_t)p->position);
    if (mql_is_missing(element)) {
        return mql_fail(p->run->op, 51247, "positional operator '.$' element mismatch");
    }
    mql_open(&p->builder, key, BSON_TYPE_ARRAY);
    if (field->kind == MQL__BRANCH) {
        TRY(put_element(p, field, element));
    } else {
        mql_add_next(&p->builder, element);
    }
    mql_close(&p->builder);
    return OK;
}

/* ---- documents ---- */

static err put_branch(projector *p, const mql__field *field, slice key, mql_value v, bool narrow) {
    if (!doc_is_container(v.type)) {
        return p->project->inclusion || field->computes ? OK : put(p, key, v);
    }
    mql_open(&p->builder, key, v.type);
    TRY(v.type == BSON_TYPE_ARRAY ? put_elements(p, field, v) : put_fields(p, field, v.bytes, narrow));
    mql_close(&p->builder);
    return OK;
}

static err put_field(projector *p, const mql__field *field, const doc_element *e, bool narrow) {
    mql_value v = mql_of(e);
    if (!field) {
        return p->project->inclusion ? OK : put(p, e->key, v);
    }
    if (narrow && field->positional && v.type == BSON_TYPE_ARRAY) {
        return put_matched_element(p, field, e->key, v);
    }
    switch (field->kind) {
    case MQL__INCLUDE:
        return put(p, e->key, v);
    case MQL__SLICE:
        return put_slice(p, field, e->key, v);
    case MQL__BRANCH:
        return put_branch(p, field, e->key, v, narrow);
    default: /* excluded, or added later */
        return OK;
    }
}

/* {a: {$elemMatch: …}}: an array of the first element that matches; nothing if none does. */
static err put_first_match(projector *p, const mql__field *field, slice document) {
    mql_value array = mql_member(mql_document(document), field->name);
    mql_matched matched;
    bool matches;
    if (array.type != BSON_TYPE_ARRAY) {
        return OK;
    }
    TRY(mql_matches_value(p->run, field->match, array, &matches, &matched));
    if (matches) {
        mql_open(&p->builder, field->name, BSON_TYPE_ARRAY);
        mql_add_next(&p->builder, mql_element_at(array, (size_t)matched.position));
        mql_close(&p->builder);
    }
    return OK;
}

static err put_computed(projector *p, const mql__field *field, slice document) {
    mql_value v = mql_missing();
    if (field->kind == MQL__FIRST_MATCH) {
        return put_first_match(p, field, document);
    }
    if (field->kind == MQL__COMPUTED) {
        TRY(mql_evaluate(p->run, field->expression, &v));
        return put(p, field->name, v);
    }
    if (doc_is_container(mql_member(mql_document(document), field->name).type)) {
        return OK; /* already added in its place */
    }
    mql_open(&p->builder, field->name, BSON_TYPE_DOCUMENT);
    TRY(put_fields(p, field, SLICE_LIT("\5\0\0\0\0"), false));
    mql_close(&p->builder);
    return OK;
}

static err put_fields(projector *p, const mql__field *parent, slice document, bool narrow) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        TRY(mql_pay(p->run, 2));
        TRY(put_field(p, mql__find_field(parent, e.key), &e, narrow));
    }
    for (const mql__field *field = parent->computes ? parent->first : NULL; field; field = field->next) {
        TRY(mql_pay(p->run, 1));
        TRY(field->computes ? put_computed(p, field, document) : OK);
    }
    return OK;
}

/* ---- the whole ---- */

static err find_position(projector *p) {
    mql_matched matched = {-1};
    bool matches;
    if (p->project->positional) {
        TRY(mql_matches(p->run, p->project->match, &matches, &matched));
    }
    p->position = matched.position;
    return OK;
}

err mql_project_apply(mql_run *r, const mql_project *project, slice *document_out) {
    buf out = buf_init_counted(INT32_MAX, r->arena->budget);
    projector p = {.run = r, .project = project, .builder = mql_build(&out)};
    *document_out = SLICE_EMPTY;
    err e = find_position(&p);
    e = e == OK ? put_fields(&p, &project->root, r->root.bytes, project->positional) : e;
    if (e == OK && !mql_keep(r->arena, &p.builder, document_out)) {
        e = r->arena->budget ? budget_error(r->arena->budget) : OK;
        e = e == OK ? mql_fail(r->op, 15, "exceeded the maximum nesting depth of a document: %d", MQL_DEPTH_MAX) : e;
    }
    buf_free(&out);
    return e;
}
