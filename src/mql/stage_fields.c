/* stage_fields.c — stages that map one document to one: $project, $addFields, $set, $unset, $replaceRoot, $replaceWith and $redact. */
#include "mql/pipeline_int.h"
#include "mql/project.h"
#include "mql/show.h"
#include "mql/stages.h"

/* ---- $project and $unset ---- */

static err parse_project(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    const mql_project *project;
    TRY(mql__is_document(p->scope->op, argument, 15969, "$project specification must be an object"));
    if (mql_length(argument) == 0) {
        return mql_fail(p->scope->op, 51272, "Invalid $project :: caused by :: projection specification must have at least one field");
    }
    TRY(mql_project_parse(p->scope, argument.bytes, MQL_PROJECT_STAGE, NULL, &project));
    return mql__add_stage(p, kind, argument, project);
}

static err map_project(mql_run *r, const mql__stage *s, slice document, slice *document_out) {
    (void)document;
    return mql_project_apply(r, s->detail, document_out);
}

static err add_excluded(op *o, mql_builder *b, mql_value name) {
    if (!mql_is_text(name) || mql_as_text(name).n == 0) {
        return mql_fail(o, 31120, "$unset specification must be a string or an array containing only string values");
    }
    slice path = mql_as_text(name);
    if (path.p[0] == '$') {
        return mql_fail(
            o, 16410,
            "Invalid $unset :: caused by :: FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    }
    mql_add(b, path, mql_bool(false));
    return OK;
}

/* {$unset: ["a", "b"]} is {$project: {a: false, b: false}}. */
static err parse_unset(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    buf out = buf_init_counted(BUF_NO_LIMIT, o->arena->budget);
    mql_builder b = mql_build(&out);
    slice projection;
    err e = OK;
    if (argument.type == BSON_TYPE_ARRAY && mql_length(argument) > 0) {
        doc_walk w;
        doc_element name;
        for (doc_walk_init(&w, argument.bytes); e == OK && doc_walk_next(&w, &name);) {
            e = add_excluded(o, &b, mql_of(&name));
        }
    } else if (argument.type == BSON_TYPE_ARRAY) {
        e = mql_fail(o, 31119, "$unset specification must be a string or an array with at least one field");
    } else if (argument.type == BSON_TYPE_UTF8) {
        e = add_excluded(o, &b, argument);
    } else {
        e = mql_fail(o, 31002, "$unset specification must be a string or an array");
    }
    if (e == OK && !mql_keep(o->arena, &b, &projection)) {
        e = mql__arena_error(o->arena);
    }
    buf_free(&out);
    const mql_project *project;
    TRY(e);
    TRY(mql_project_parse(p->scope, projection, MQL_PROJECT_STAGE, NULL, &project));
    return mql__add_stage(p, kind, argument, project);
}

/* ---- $replaceRoot and $replaceWith ---- */

static err parse_new_root(mql__stage_parser *p, const mql__stage_kind *kind, mql_value expression, mql_value argument) {
    const mql_expression *e;
    TRY(mql_expression_parse(p->scope, expression, &e));
    return mql__add_stage(p, kind, argument, e);
}

static err parse_replace_root(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    doc_walk w;
    doc_element e;
    mql_value root = mql_missing();
    TRY(mql__is_document(o, argument, 40229, "expected an object as specification for $replaceRoot stage, got "));
    for (doc_walk_init(&w, argument.bytes); doc_walk_next(&w, &e);) {
        if (!slice_eq(e.key, SLICE_LIT("newRoot"))) {
            return mql_fail(o, 40415, "BSON field '$replaceRoot.%.*s' is an unknown field.", slice_shown(e.key), e.key.p);
        }
        root = mql_of(&e);
    }
    return mql_is_missing(root) ? mql_fail(o, 40414, "BSON field '$replaceRoot.newRoot' is missing but a required field")
                                : parse_new_root(p, kind, root, argument);
}

static err parse_replace_with(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    return parse_new_root(p, kind, argument, argument);
}

static err map_new_root(mql_run *r, const mql__stage *s, slice document, slice *document_out) {
    mql_value root;
    TRY(mql_evaluate(r, s->detail, &root));
    if (root.type != BSON_TYPE_DOCUMENT) {
        arena *a = r->op->arena;
        return mql_fail(
            r->op, 40228,
            "'newRoot' expression  must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'. Input "
            "document: %s",
            mql_is_missing(root) ? "MISSING" : mql__show(a, root), mql_type_name(root.type), mql__show(a, mql_document(document)));
    }
    *document_out = root.bytes;
    return OK;
}

/* ---- $redact ----
 *
 * The expression says for each document, and then for those inside it, whether to keep all of it, to prune it, or to descend. */

/* The values of $$DESCEND, $$PRUNE and $$KEEP. */
static const slice decisions[3] = {SLICE_LIT("descend"), SLICE_LIT("prune"), SLICE_LIT("keep")};
enum { DESCEND, PRUNE, KEEP };

static err parse_redact(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    const mql_expression *e;
    TRY(mql_expression_parse(p->scope, argument, &e));
    return mql__add_stage(p, kind, argument, e);
}

static err decide(mql_run *r, const mql_expression *of, int *decision_out) {
    mql_value v;
    TRY(mql_evaluate(r, of, &v));
    for (*decision_out = DESCEND; *decision_out <= KEEP; (*decision_out)++) {
        if (mql_is_text(v) && slice_eq(mql_as_text(v), decisions[*decision_out])) {
            return OK;
        }
    }
    return mql_fail(
        r->op, 17053,
        "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, but returned %s",
        mql__show(r->op->arena, v));
}

static err redact_value(mql_run *r, const mql_expression *of, mql_builder *b, const doc_element *e, bool element, unsigned depth);

static err redact_members(mql_run *r, const mql_expression *of, mql_builder *b, mql_value v, unsigned depth) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, v.bytes); doc_walk_next(&w, &e);) {
        TRY(redact_value(r, of, b, &e, v.type == BSON_TYPE_ARRAY, depth + 1));
    }
    return OK;
}

static err redact_value(mql_run *r, const mql_expression *of, mql_builder *b, const doc_element *e, bool element, unsigned depth) {
    int decision = DESCEND;
    TRY(mql_pay(r, 2));
    if (e->type == BSON_TYPE_DOCUMENT) {
        r->root = mql_of(e);
        TRY(decide(r, of, &decision));
    }
    if (decision == PRUNE) {
        return OK;
    }
    if (!doc_is_container(e->type) || decision == KEEP || depth >= MQL_DEPTH_MAX) {
        if (element) {
            mql_add_next(b, mql_of(e));
        } else {
            mql_add_element(b, e);
        }
        return OK;
    }
    if (element) {
        mql_open_next(b, e->type);
    } else {
        mql_open(b, e->key, e->type);
    }
    TRY(redact_members(r, of, b, mql_of(e), depth));
    mql_close(b);
    return OK;
}

static err map_redact(mql_run *r, const mql__stage *s, slice document, slice *document_out) {
    const mql_expression *of = s->detail;
    int decision;
    TRY(decide(r, of, &decision));
    *document_out = decision == PRUNE ? SLICE_EMPTY : document;
    if (decision != DESCEND) {
        return OK;
    }
    buf out = mql__document_buf(r);
    mql_builder b = mql_build(&out);
    err e = redact_members(r, of, &b, mql_document(document), 0);
    if (e != OK) {
        buf_free(&out);
        return e;
    }
    return mql__document_made(r, &b, document_out);
}

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$project"), MQL__STAGE_SERVICE | MQL__STAGE_UPDATE, parse_project, .map = map_project},
    {SLICE_LIT("$unset"), MQL__STAGE_SERVICE | MQL__STAGE_UPDATE, parse_unset, .map = map_project},
    {SLICE_LIT("$addFields"), MQL__STAGE_SERVICE | MQL__STAGE_UPDATE, mql__parse_add_fields, .map = mql__map_add_fields},
    {SLICE_LIT("$set"), MQL__STAGE_SERVICE | MQL__STAGE_UPDATE, mql__parse_add_fields, .map = mql__map_add_fields},
    {SLICE_LIT("$replaceRoot"), MQL__STAGE_SERVICE | MQL__STAGE_UPDATE, parse_replace_root, .map = map_new_root},
    {SLICE_LIT("$replaceWith"), MQL__STAGE_SERVICE | MQL__STAGE_UPDATE, parse_replace_with, .map = map_new_root},
    {SLICE_LIT("$redact"), MQL__STAGE_SERVICE, parse_redact, .map = map_redact},
};
const mql__stage_kinds mql__field_stages = {rows, sizeof rows / sizeof *rows};
