/* update.c — parses and applies the three kinds of updates; makes the documents of upserts; protects _id. */
#include "mql/pipeline_int.h"
#include "mql/show.h"
#include "mql/update_int.h"

static const slice id_name = SLICE_LIT("_id");

/* ---- parsing ---- */

static bool has_operators(slice update) {
    doc_walk w;
    doc_element e;
    return doc_walk_init(&w, update) && doc_walk_next(&w, &e) && slice_starts(e.key, SLICE_LIT("$"));
}

bool mql_update_replaces(mql_value update) {
    return update.type == BSON_TYPE_DOCUMENT && !has_operators(update.bytes);
}

static err check_replacement(op *o, slice replacement) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, replacement); doc_walk_next(&w, &e);) {
        if (slice_starts(e.key, SLICE_LIT("$"))) {
            return mql_fail(o, 52,
                            "The dollar ($) prefixed field '%.*s' in '%.*s' is not allowed in the context of an update's replacement "
                            "document. Consider using an aggregation pipeline with $replaceWith.",
                            slice_shown(e.key), e.key.p, slice_shown(e.key), e.key.p);
        }
    }
    return OK;
}

static err refuse_filters(op *o, const mql_update_spec *spec, const char *style) {
    bool any = spec->array_filters.n && mql_length(mql_array(spec->array_filters)) > 0;
    return any ? mql_fail(o, 9, "arrayFilters may not be specified for %s updates", style) : OK;
}

err mql_update_parse(mql_scope *s, const mql_update_spec *spec, const mql_update **update_out) {
    mql_update *u = arena_new(s->op->arena, mql_update);
    *update_out = u;
    *u = (mql_update){.source = spec->update, .match = spec->match, .filter = spec->filter};
    if (spec->update.type == BSON_TYPE_ARRAY) {
        u->kind = MQL__PIPELINE_UPDATE;
        TRY(refuse_filters(s->op, spec, "pipeline-style"));
        return mql__pipeline_parse_update(s, spec->update.bytes, &u->pipeline);
    }
    if (spec->update.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(s->op, 9, "Update argument must be either an object or an array");
    }
    if (!has_operators(spec->update.bytes)) {
        u->kind = MQL__REPLACEMENT;
        TRY(refuse_filters(s->op, spec, "replacement-style"));
        return check_replacement(s->op, spec->update.bytes);
    }
    u->kind = MQL__OPERATORS_UPDATE;
    return mql__operators_parse(s, spec, u);
}

/* ---- applying ---- */

/* The document with `id` in front, and without another _id. */
static err with_id(mql_run *r, mql_value id, slice document, slice *document_out) {
    doc_walk w;
    doc_element e;
    buf out = buf_init_counted(BUF_NO_LIMIT, r->arena->budget);
    mql_builder b = mql_build(&out);
    mql_add(&b, id_name, id);
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        if (!slice_eq(e.key, id_name)) {
            mql_add_element(&b, &e);
        }
    }
    bool kept = mql_keep(r->arena, &b, document_out);
    buf_free(&out);
    TRY(mql_pay(r, 1 + document.n / 32));
    return kept ? OK : budget_error(r->arena->budget);
}

static bool has_id_first(slice document) {
    doc_walk w;
    doc_element e;
    return doc_walk_init(&w, document) && doc_walk_next(&w, &e) && slice_eq(e.key, id_name);
}

static err replace(mql_run *r, slice replacement, mql_value before, mql_updated *updated_out) {
    mql_value own = mql_member(mql_document(replacement), id_name), id = mql_member(before, id_name);
    updated_out->document = replacement;
    if (mql_is_missing(own) ? !mql_is_missing(id) : !has_id_first(replacement)) {
        TRY(with_id(r, mql_is_missing(own) ? id : own, replacement, &updated_out->document));
    }
    updated_out->modified = !slice_eq(updated_out->document, before.bytes);
    return OK;
}

static err find_position(mql_run *r, const mql_update *u, int64_t *position_out) {
    mql_matched matched = {-1};
    bool matches = false;
    if (u->positional && u->match && !mql_is_missing(r->root)) {
        TRY(mql_matches(r, u->match, &matches, &matched));
    }
    *position_out = matches ? matched.position : -1;
    return OK;
}

static err apply(mql_run *r, const mql_update *u, mql_value before, bool inserting, mql_updated *updated_out) {
    int64_t position;
    switch (u->kind) {
    case MQL__REPLACEMENT:
        return replace(r, u->source.bytes, before, updated_out);
    case MQL__PIPELINE_UPDATE:
        TRY(mql__pipeline_map(r, u->pipeline, before.bytes, &updated_out->document));
        updated_out->modified = !slice_eq(updated_out->document, before.bytes);
        return OK;
    case MQL__OPERATORS_UPDATE:
        TRY(find_position(r, u, &position));
        return mql__update_walk(r, u->root, before, inserting, position, updated_out);
    }
    return OK;
}

/* 66 if the document's _id is another one than before. */
static err check_id(mql_run *r, const mql_update *u, mql_value before, const mql_updated *updated) {
    mql_value old = mql_member(before, id_name), new = mql_member(mql_document(updated->document), id_name);
    op *o = r->op;
    if (mql_is_missing(old) || (!mql_is_missing(new) && mql_compare(old, new) == 0)) {
        return OK;
    }
    if (u->kind == MQL__OPERATORS_UPDATE) {
        return mql_fail(o, 66, "Performing an update on the path '_id' would modify the immutable field '_id'");
    }
    return mql_fail(o, 66, "After applying the update, the (immutable) field '_id' was found to have been altered to _id: %s",
                    mql__show(o->arena, new));
}

static err check_id_type(op *o, mql_value id) {
    bool refused = id.type == BSON_TYPE_ARRAY || id.type == BSON_TYPE_REGEX || id.type == BSON_TYPE_UNDEFINED;
    return refused ? mql_fail(o, 53, "The '_id' value cannot be of type %s", mql_type_name(id.type)) : OK;
}

/* The document that an upsert starts from: the equalities of the filter; for a replacement, only _id of these. */
static err upsert_base(mql_run *r, const mql_update *u, mql_value *base_out) {
    slice base;
    TRY(mql__upsert_document(r, u->filter, &base));
    mql_value id = mql_member(mql_document(base), id_name);
    if (u->kind == MQL__REPLACEMENT) {
        static const char empty[] = "\5\0\0\0";
        TRY(with_id(r, id, slice_of(empty, 5), &base));
    } else if (!mql_is_missing(id) && !has_id_first(base)) {
        TRY(with_id(r, id, base, &base));
    }
    *base_out = mql_document(base);
    return OK;
}

err mql_update_apply(mql_run *r, const mql_update *u, mql_updated *updated_out) {
    bool inserting = mql_is_missing(r->root);
    mql_value before = r->root;
    *updated_out = (mql_updated){0};
    if (inserting) {
        TRY(upsert_base(r, u, &before));
    }
    TRY(apply(r, u, before, inserting, updated_out));
    TRY(check_id(r, u, before, updated_out));
    mql_value id = mql_member(mql_document(updated_out->document), id_name);
    TRY(check_id_type(r->op, id));
    if (inserting) {
        updated_out->modified = true;
        if (!mql_is_missing(id) && !has_id_first(updated_out->document)) {
            TRY(with_id(r, id, updated_out->document, &updated_out->document));
        }
    } else if (!updated_out->modified) {
        updated_out->document = before.bytes;
    }
    return OK;
}
