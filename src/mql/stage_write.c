/* stage_write.c — $out and $merge: the last stage. Documents pass through; the flow's caller writes them. */
#include "mql/expression_int.h"
#include "mql/show.h"
#include "mql/stages.h"

typedef struct let_variable {
    const mql_expression *value;
    size_t slot;
} let_variable;

typedef struct written {
    mql_target target;
    let_variable *let;
    size_t let_n;
} written;

static err map_write(mql_run *r, const mql__stage *s, slice document, slice *document_out) {
    (void)r, (void)s;
    *document_out = document;
    return OK;
}

/* ---- the collection ---- */

/* "coll" or {db: …, coll: …}. */
static err parse_collection(op *o, const char *name, mql_target *t, mql_value v) {
    doc_walk w;
    doc_element e;
    if (mql_is_text(v)) {
        t->collection = mql_as_text(v);
    } else if (v.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(o, 16990, "%s only supports a string or object argument, but found %s", name, mql_type_name(v.type));
    } else {
        for (doc_walk_init(&w, v.bytes); doc_walk_next(&w, &e);) {
            bool db = slice_eq(e.key, SLICE_LIT("db"));
            if (!db && !slice_eq(e.key, SLICE_LIT("coll"))) {
                return mql_fail(o, 40415, "BSON field '%s.%.*s' is an unknown field.", name, slice_shown(e.key), e.key.p);
            }
            if (e.type != BSON_TYPE_UTF8) {
                return mql_fail(o, 14, "BSON field '%s.%.*s' is the wrong type '%s', expected type 'string'", name, slice_shown(e.key),
                                e.key.p, mql_type_name(e.type));
            }
            *(db ? &t->database : &t->collection) = doc_element_text(&e);
        }
    }
    return t->collection.n ? OK : mql_fail(o, 73, "Invalid namespace specified for %s: the collection name is empty", name);
}

static err parse_out(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    written *w = arena_new(p->scope->op->arena, written);
    w->target.kind = MQL_TARGET_OUT;
    TRY(parse_collection(p->scope->op, "$out", &w->target, argument));
    return mql__add_stage(p, kind, argument, w);
}

/* ---- $merge ---- */

static err parse_on(op *o, mql_target *t, mql_value v) {
    bool list = v.type == BSON_TYPE_ARRAY;
    doc_walk w;
    doc_element e;
    size_t n = list ? mql_length(v) : 1;
    if (!list && !mql_is_text(v)) {
        return mql_fail(o, 51186, "$merge 'on' field  must be either a string or an array of strings, but found %s", mql_type_name(v.type));
    }
    if (n == 0) {
        return mql_fail(o, 51187, "If explicitly specifying $merge 'on', must include at least one field");
    }
    slice *on = arena_array(o->arena, slice, n);
    t->on = on;
    if (!list) {
        on[t->on_n++] = mql_as_text(v);
        return OK;
    }
    for (doc_walk_init(&w, v.bytes); doc_walk_next(&w, &e);) {
        if (e.type != BSON_TYPE_UTF8) {
            return mql_fail(o, 51134, "$merge 'on' array elements must be strings, but found %s", mql_type_name(e.type));
        }
        on[t->on_n++] = doc_element_text(&e);
    }
    return OK;
}

static bool choose(mql_value v, const char *const *names, size_t n, int *choice_out) {
    for (size_t i = 0; i < n; i++) {
        if (mql_is_text(v) && slice_eq(mql_as_text(v), slice_str(names[i]))) {
            *choice_out = (int)i;
            return true;
        }
    }
    return false;
}

static const char *const matched_names[] = {"merge", "replace", "keepExisting", "fail"};
static const char *const not_matched_names[] = {"insert", "discard", "fail"};

static err parse_when_matched(op *o, mql_target *t, mql_value v) {
    int choice = MQL_MATCHED_PIPELINE;
    if (v.type != BSON_TYPE_ARRAY && !choose(v, matched_names, 4, &choice)) {
        return mql_fail(o, 51191,
                        "$merge 'whenMatched' must be one of 'merge', 'replace', 'keepExisting', 'fail' or a pipeline, but found %s",
                        mql__show(o->arena, v));
    }
    t->when_matched = (mql_when_matched)choice;
    return OK;
}

static err parse_when_not_matched(op *o, mql_target *t, mql_value v) {
    int choice = 0;
    if (!choose(v, not_matched_names, 3, &choice)) {
        return mql_fail(o, 51192, "$merge 'whenNotMatched' must be one of 'insert', 'discard' or 'fail', but found %s",
                        mql__show(o->arena, v));
    }
    t->when_not_matched = (mql_when_not_matched)choice;
    return OK;
}

/* The variables of `let`, $$new, and the pipeline that sees them. */
static err parse_pipeline(mql_scope *s, written *w, mql_value let, mql_value pipeline) {
    const struct mql_name *names = s->names;
    doc_walk walk;
    doc_element e;
    size_t n = mql_is_missing(let) ? 0 : mql_length(let);
    TRY(mql__arena_room(s->op->arena, n * sizeof *w->let));
    w->let = arena_array(s->op->arena, let_variable, n + 1);
    for (doc_walk_init(&walk, let.bytes); n && doc_walk_next(&walk, &e); w->let_n++) {
        TRY(mql_expression_parse(s, mql_of(&e), &w->let[w->let_n].value));
    }
    TRY(mql__bind(s, SLICE_LIT("new"), &w->target.new_slot));
    doc_walk_init(&walk, let.bytes);
    for (size_t i = 0; i < w->let_n && doc_walk_next(&walk, &e); i++) {
        TRY(mql_scope_declare(s, e.key, &w->let[i].slot));
    }
    TRY(mql_update_parse(s, &(mql_update_spec){.update = pipeline}, &w->target.update));
    s->names = names;
    return OK;
}

static err parse_merge(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    written *w = arena_new(o->arena, written);
    mql_target *t = &w->target;
    mql_value let = mql_missing(), matched = mql_missing();
    doc_walk walk;
    doc_element e;
    *t = (mql_target){.kind = MQL_TARGET_MERGE};
    if (mql_is_text(argument)) {
        TRY(parse_collection(o, "$merge", t, argument));
        return mql__add_stage(p, kind, argument, w);
    }
    TRY(mql__is_document(o, argument, 51182, "$merge requires a string or object argument, but found "));
    for (doc_walk_init(&walk, argument.bytes); doc_walk_next(&walk, &e);) {
        mql_value v = mql_of(&e);
        if (slice_eq(e.key, SLICE_LIT("into"))) {
            TRY(parse_collection(o, "$merge", t, v));
        } else if (slice_eq(e.key, SLICE_LIT("on"))) {
            TRY(parse_on(o, t, v));
        } else if (slice_eq(e.key, SLICE_LIT("whenMatched"))) {
            matched = v;
            TRY(parse_when_matched(o, t, v));
        } else if (slice_eq(e.key, SLICE_LIT("whenNotMatched"))) {
            TRY(parse_when_not_matched(o, t, v));
        } else if (slice_eq(e.key, SLICE_LIT("let")) && e.type == BSON_TYPE_DOCUMENT) {
            let = v;
        } else {
            return mql_fail(o, 40415, "BSON field '$merge.%.*s' is an unknown field.", slice_shown(e.key), e.key.p);
        }
    }
    if (t->collection.n == 0) {
        return mql_fail(o, 40414, "BSON field '$merge.into' is missing but a required field");
    }
    if (t->when_matched != MQL_MATCHED_PIPELINE) {
        return mql_is_missing(let)
                   ? mql__add_stage(p, kind, argument, w)
                   : mql_fail(o, 51199, "Cannot use 'let' variables with 'whenMatched: %s' mode", matched_names[t->when_matched]);
    }
    t->pipeline = matched.bytes;
    t->let = mql_is_missing(let) ? SLICE_EMPTY : let.bytes;
    TRY(parse_pipeline(p->scope, w, let, matched));
    return mql__add_stage(p, kind, argument, w);
}

/* ---- for the caller ---- */

static const written *write_of(const mql_pipeline *p) {
    const mql__stage *last = p->n ? &p->stages[p->n - 1] : NULL;
    return last && last->kind->map == map_write ? last->detail : NULL;
}

void mql_pipeline_target(const mql_pipeline *p, mql_target *target_out) {
    static const slice id[] = {SLICE_LIT("_id")};
    const written *w = write_of(p);
    *target_out = w ? w->target : (mql_target){0};
    if (w && target_out->on_n == 0) {
        target_out->on = id;
        target_out->on_n = 1;
    }
}

err mql_target_bind(mql_run *r, const mql_pipeline *p, slice new_document) {
    const written *w = write_of(p);
    mql_value root = r->root;
    if (!w || w->target.when_matched != MQL_MATCHED_PIPELINE) {
        return OK;
    }
    r->root = r->variables[w->target.new_slot] = mql_document(new_document);
    err e = OK;
    for (size_t i = 0; e == OK && i < w->let_n; i++) {
        e = mql_evaluate(r, w->let[i].value, &r->variables[w->let[i].slot]);
    }
    r->root = root;
    return e;
}

enum { FLAGS = MQL__STAGE_SERVICE | MQL__STAGE_LAST | MQL__STAGE_NO_FACET | MQL__STAGE_TOP_ONLY };

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$out"), FLAGS, parse_out, .map = map_write},
    {SLICE_LIT("$merge"), FLAGS, parse_merge, .map = map_write},
};
const mql__stage_kinds mql__write_stages = {rows, sizeof rows / sizeof *rows};
