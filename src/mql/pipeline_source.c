/* pipeline_source.c — which stages at the beginning the source can replace, and moving stages forward where that changes no result. */
#include "mql/match_tree.h"
#include "mql/stages.h"

/* ---- filters that may move ----
 *
 * A $match may move before a stage if the stage leaves the fields alone that the filter looks at. For each kind of stage a function says
 * whether the stage changes what is at a path. */

typedef bool (*changes_fn)(const mql__stage *s, slice path);

static slice head_of(slice path) {
    const char *dot = path.n ? memchr(path.p, '.', path.n) : NULL;
    return dot ? slice_of(path.p, (size_t)(dot - path.p)) : path;
}

static bool same_head(slice a, slice b) {
    return slice_eq(head_of(a), head_of(b));
}

static bool changes_nothing(const mql__stage *s, slice path) {
    (void)s, (void)path;
    return false;
}

static bool adds_path(const mql__stage *s, slice path) {
    return mql__adds_field(s, head_of(path));
}

static bool unwinds_path(const mql__stage *s, slice path) {
    slice index = mql__unwind_index(s);
    return same_head(path, mql__unwind_path(s)) || (index.n && same_head(path, index));
}

static bool unsets_path(const mql__stage *s, slice path) {
    doc_walk w;
    doc_element e;
    if (mql_is_text(s->argument)) {
        return same_head(path, mql_as_text(s->argument));
    }
    for (doc_walk_init(&w, s->argument.bytes); doc_walk_next(&w, &e);) {
        if (same_head(path, doc_element_text(&e))) {
            return true;
        }
    }
    return false;
}

static bool is_plain(bson_type_t type) {
    return type == BSON_TYPE_BOOL || doc_is_number(type);
}

/* Whether a projection leaves the field unchanged: it includes the whole field, or neither excludes nor computes it. */
static bool projects_path(const mql__stage *s, slice path) {
    bool includes = false, kept = slice_eq(head_of(path), SLICE_LIT("_id"));
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, s->argument.bytes); doc_walk_next(&w, &e);) {
        bool id = slice_eq(e.key, SLICE_LIT("_id")), shown = !is_plain(e.type) || mql_truth(mql_of(&e));
        includes = includes || (shown && !id);
        if (same_head(path, e.key)) {
            bool whole = slice_eq(e.key, head_of(path)) && is_plain(e.type) && shown;
            if (!whole) {
                return true;
            }
            kept = true;
        }
    }
    return includes && !kept;
}

/* Whether the stage may change a field that the filter reads. $expr, $text and $jsonSchema count as reading every field. */
static bool changes_filter(const mql_node *n, const mql__stage *s, changes_fn changes, unsigned depth) {
    if (depth > MQL_DEPTH_MAX || n->kind == MQL_EXPR || n->kind == MQL_JSON_SCHEMA || n->kind == MQL_TEXT || n->kind == MQL_NEAR) {
        return true;
    }
    if (n->path.n && changes(s, n->path)) {
        return true;
    }
    bool inside = n->kind == MQL_ELEM_MATCH || n->kind == MQL_ELEM_MATCH_VALUE; /* whose paths begin in the element */
    for (const mql_node *c = n->first; c && !inside; c = c->next) {
        if (changes_filter(c, s, changes, depth + 1)) {
            return true;
        }
    }
    return false;
}

static const struct {
    const char *name;
    changes_fn changes;
} passable[] = {
    {"$sort", changes_nothing}, {"$addFields", adds_path}, {"$set", adds_path},
    {"$unwind", unwinds_path},  {"$unset", unsets_path},   {"$project", projects_path},
};

/* Whether {$match: …} gives the same before the stage as after it. */
static bool can_precede(const mql__stage *match, const mql__stage *before) {
    for (size_t i = 0; i < sizeof passable / sizeof *passable; i++) {
        if (mql__stage_is(before, passable[i].name)) {
            return !changes_filter(mql_match_root(match->detail), before, passable[i].changes, 0);
        }
    }
    return false;
}

/* How many documents the stages from `i` on want, if that is known: $limit, or $skip and $limit. */
static uint64_t wanted(const mql_pipeline *p, size_t i) {
    uint64_t skipped = 0;
    for (; i < p->n; i++) {
        if (mql__stage_is(&p->stages[i], "$limit")) {
            uint64_t limit = mql__stage_number(&p->stages[i]);
            return skipped > UINT64_MAX - limit ? UINT64_MAX : skipped + limit;
        }
        if (!mql__stage_is(&p->stages[i], "$skip")) {
            return UINT64_MAX;
        }
        uint64_t skip = mql__stage_number(&p->stages[i]);
        skipped = skip > UINT64_MAX - skipped ? UINT64_MAX : skipped + skip;
    }
    return UINT64_MAX;
}

void mql__pipeline_optimise(mql_pipeline *p) {
    for (size_t i = 1; i < p->n; i++) {
        for (size_t j = i; j > 0 && mql__stage_is(&p->stages[j], "$match") && can_precede(&p->stages[j], &p->stages[j - 1]); j--) {
            mql__stage swap = p->stages[j];
            p->stages[j] = p->stages[j - 1];
            p->stages[j - 1] = swap;
        }
    }
    for (size_t i = 0; i < p->n; i++) {
        if (mql__stage_is(&p->stages[i], "$sort")) {
            mql__sort_stage *s = (mql__sort_stage *)(uintptr_t)p->stages[i].detail; /* made by this parse, not shared yet */
            s->limit = wanted(p, i + 1);
        }
    }
}

/* ---- the source ---- */

err mql__both_filters(arena *a, slice x, slice y, slice *both_out) {
    *both_out = x.n ? x : y;
    if (!x.n || !y.n) {
        return OK;
    }
    buf out = buf_init_counted(BUF_NO_LIMIT, a->budget);
    mql_builder b = mql_build(&out);
    mql_open(&b, SLICE_LIT("$and"), BSON_TYPE_ARRAY);
    mql_add_next(&b, mql_document(x));
    mql_add_next(&b, mql_document(y));
    mql_close(&b);
    bool kept = mql_keep(a, &b, both_out);
    buf_free(&out);
    return kept ? OK : mql__arena_error(a);
}

static bool has_expression(const mql_node *n, unsigned depth) {
    if (n->kind == MQL_EXPR || depth > MQL_DEPTH_MAX) {
        return true;
    }
    for (const mql_node *c = n->first; c; c = c->next) {
        if (has_expression(c, depth + 1)) {
            return true;
        }
    }
    return false;
}

slice mql__leading_filter(const mql_pipeline *p) {
    bool usable = p->n && mql__stage_is(&p->stages[0], "$match") && !has_expression(mql_match_root(p->stages[0].detail), 0);
    return usable ? p->stages[0].argument.bytes : SLICE_EMPTY;
}

/* Leading $match stages as one filter. */
static err take_filters(mql_scope *s, const mql_pipeline *p, mql_source *source, size_t *at) {
    for (; *at < p->n && mql__stage_is(&p->stages[*at], "$match"); (*at)++) {
        source->match = source->filter.n ? NULL : p->stages[*at].detail;
        TRY(mql__both_filters(s->op->arena, source->filter, p->stages[*at].argument.bytes, &source->filter));
    }
    return source->filter.n && !source->match ? mql_match_parse(s, source->filter, &source->match) : OK;
}

/* Leading $skip and $limit, as one of each. */
static void take_bounds(const mql_pipeline *p, mql_source *source, size_t *at) {
    for (; *at < p->n; (*at)++) {
        const mql__stage *stage = &p->stages[*at];
        if (mql__stage_is(stage, "$limit")) {
            uint64_t limit = mql__stage_number(stage);
            source->limit = limit < source->limit ? limit : source->limit;
        } else if (mql__stage_is(stage, "$skip")) {
            uint64_t skip = mql__stage_number(stage);
            source->skip += skip;
            if (source->limit != UINT64_MAX) {
                source->limit = source->limit > skip ? source->limit - skip : 0;
            }
        } else {
            return;
        }
    }
}

err mql_pipeline_source(mql_scope *s, const mql_pipeline *p, mql_source *source_out, size_t *stages_out) {
    size_t at = 0;
    *source_out = (mql_source){.argument = mql_missing(), .limit = UINT64_MAX};
    *stages_out = 0;
    if (p->n && (p->stages[0].kind->flags & MQL__STAGE_SOURCE)) {
        source_out->kind = (mql_source_kind)p->stages[0].kind->variant;
        source_out->argument = p->stages[0].argument;
        return OK;
    }
    if (p->n && mql__stage_is(&p->stages[0], "$geoNear")) {
        TRY(mql__geo_filter(s->op->arena, &p->stages[0], &source_out->filter));
        return source_out->filter.n ? mql_match_parse(s, source_out->filter, &source_out->match) : OK;
    }
    TRY(take_filters(s, p, source_out, &at));
    if (at < p->n && mql__stage_is(&p->stages[at], "$sort")) {
        source_out->sort = p->stages[at++].argument.bytes;
    }
    take_bounds(p, source_out, &at);
    source_out->counts_only = at < p->n && (mql__stage_is(&p->stages[at], "$count") ||
                                            (mql__stage_is(&p->stages[at], "$group") && mql__group_counts_only(&p->stages[at])));
    if (at < p->n && mql__stage_is(&p->stages[at], "$group")) {
        source_out->group_path = mql__group_path(&p->stages[at]);
    }
    *stages_out = at;
    return OK;
}

/* ---- other collections ---- */

typedef struct visiting {
    void (*visit)(void *context, slice collection);
    void *context;
} visiting;

static void visit_pipeline(void *context, const mql_pipeline *p) {
    const visiting *v = context;
    for (size_t i = 0; p && i < p->n; i++) {
        const mql__stage *s = &p->stages[i];
        const mql_pipeline *inner = NULL;
        slice from = SLICE_EMPTY;
        if (mql__stage_is(s, "$lookup")) {
            from = mql__lookup_from(s, &inner);
        } else if (mql__stage_is(s, "$unionWith")) {
            from = mql__union_from(s, &inner);
        } else if (mql__stage_is(s, "$graphLookup")) {
            from = mql__graph_from(s);
        } else if (mql__stage_is(s, "$facet")) {
            mql__facet_pipelines(s, visit_pipeline, context);
        }
        if (from.n) {
            v->visit(v->context, from);
        }
        visit_pipeline(context, inner); /* recursion is as deep as at parsing, which bounds it */
    }
}

void mql_pipeline_collections(const mql_pipeline *p, void (*visit)(void *context, slice collection), void *context) {
    visiting v = {visit, context};
    visit_pipeline(&v, p);
}
