/* stage_graph.c — $graphLookup: documents of a collection that can be reached from a value, level by level.
 *
 * For one local document at a time: a find brings the documents whose connectToField is among the values of the frontier; those that were
 * not seen before give the next frontier by their connectFromField, until there are none or maxDepth is reached. */
#include "mql/hash_table.h"
#include "mql/match_int.h"
#include "mql/show.h"
#include "mql/stage_foreign.h"
#include "mql/stages.h"

typedef struct graph {
    mql__from source;
    const mql_match *restriction; /* NULL: none */
    slice from, as, depth_field, restrict_filter;
    slice connect_from, connect_to;
    const slice *from_parts, *to_parts;
    size_t from_parts_n, to_parts_n;
    const mql_expression *start;
    int64_t max_depth; /* -1: any */
} graph;

/* ---- parsing ---- */

static err parse_path(op *o, const doc_element *e, slice *path_out) {
    if (e->type != BSON_TYPE_UTF8) {
        return mql_fail(o, 40103, "expected string as argument for %.*s, found: %s", slice_shown(e->key), e->key.p,
                        mql__show(o->arena, mql_of(e)));
    }
    *path_out = doc_element_text(e);
    return mql__check_path(o, *path_out, 16410);
}

static err parse_depth(op *o, graph *g, mql_value v) {
    if (!mql_is_number(v)) {
        return mql_fail(o, 40100, "maxDepth must be numeric, found type: %s", mql_type_name(v.type));
    }
    if (!mql_as_integer(v, &g->max_depth)) {
        return mql_fail(o, 40102, "maxDepth could not be represented as a long long: %s", mql__show(o->arena, v));
    }
    return g->max_depth < 0 ? mql_fail(o, 40101, "maxDepth requires a nonnegative argument, found: %s", mql__show(o->arena, v)) : OK;
}

static err parse_restriction(mql_scope *s, graph *g, mql_value v) {
    if (v.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(s->op, 40185, "restrictSearchWithMatch must be an object, found %s", mql_type_name(v.type));
    }
    g->restrict_filter = v.bytes;
    return mql_match_parse(s, v.bytes, &g->restriction);
}

static err parse_option(mql_scope *s, graph *g, const doc_element *e) {
    const struct {
        const char *name;
        slice *path;
    } paths[] = {
        {"as", &g->as}, {"depthField", &g->depth_field}, {"connectFromField", &g->connect_from}, {"connectToField", &g->connect_to}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (slice_eq(e->key, slice_str(paths[i].name))) {
            return parse_path(s->op, e, paths[i].path);
        }
    }
    if (slice_eq(e->key, SLICE_LIT("startWith"))) {
        return mql_expression_parse(s, mql_of(e), &g->start);
    }
    if (slice_eq(e->key, SLICE_LIT("maxDepth"))) {
        return parse_depth(s->op, g, mql_of(e));
    }
    if (slice_eq(e->key, SLICE_LIT("restrictSearchWithMatch"))) {
        return parse_restriction(s, g, mql_of(e));
    }
    if (!slice_eq(e->key, SLICE_LIT("from"))) {
        return mql_fail(s->op, 40104, "Unknown argument to $graphLookup: %.*s", slice_shown(e->key), e->key.p);
    }
    if (e->type != BSON_TYPE_UTF8) {
        return mql_fail(s->op, 9, "$graphLookup argument 'from: %s' must be a string, is type %s", mql__show(s->op->arena, mql_of(e)),
                        mql_type_name(e->type));
    }
    g->from = doc_element_text(e);
    return OK;
}

static err parse_graph(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    graph *g = arena_new(o->arena, graph);
    doc_walk w;
    doc_element e;
    g->max_depth = -1;
    TRY(mql__is_document(o, argument, 40327, "the $graphLookup stage specification must be an object, but found "));
    for (doc_walk_init(&w, argument.bytes); doc_walk_next(&w, &e);) {
        TRY(parse_option(p->scope, g, &e));
    }
    if (!g->from.n || !g->as.n || !g->start || !g->connect_from.n || !g->connect_to.n) {
        return mql_fail(o, 40105,
                        "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.");
    }
    g->from_parts = mql__split_path(o->arena, g->connect_from, &g->from_parts_n);
    g->to_parts = mql__split_path(o->arena, g->connect_to, &g->to_parts_n);
    TRY(mql__from_parse(p->scope, g->from, &g->source));
    return mql__add_stage(p, kind, argument, g);
}

/* ---- at work ---- */

typedef struct graph_run {
    bool active;       /* a local document is in progress */
    bool asked;        /* the find of this level has begun */
    buf local;         /* the document */
    arena memory;      /* for data of the local document in progress */
    mql__table values; /* values of all frontiers so far */
    mql__table seen;   /* _id of the documents found */
    int64_t depth;
    buf frontier; /* an array of values, for the next find */
    mql_builder next;
    size_t next_n;
    uint32_t reached; /* number of values when this level began */
    mql__foreign source;
    buf found; /* an array of documents */
    mql_builder results;
} graph_run;

static buf counted_buf(mql__runner *at) {
    return buf_init_counted(BUF_NO_LIMIT, at->flow->budget);
}

static void begin_frontier(mql__runner *at, graph_run *s) {
    if (!s->frontier.p) {
        s->frontier = counted_buf(at);
    }
    buf_clear(&s->frontier);
    s->next = mql_build(&s->frontier);
    s->next_n = 0;
}

static err key_is_new(mql__runner *at, mql__table *t, mql_value v, bool *new_out) {
    buf key = counted_buf(at);
    uint32_t entry;
    err e = mql__value_key(mql__run_of(at), v, &key);
    if (e == OK) {
        e = mql__table_put(t, buf_view(&key), &entry, new_out);
    }
    buf_free(&key);
    return e;
}

/* Adds a value to the next frontier, unless an earlier one had it. */
static err reach(mql__runner *at, graph_run *s, mql_value v) {
    bool new;
    if (mql_is_missing(v)) {
        return OK;
    }
    TRY(key_is_new(at, &s->values, v, &new));
    if (new) {
        mql_add_next(&s->next, v);
        s->next_n++;
    }
    return OK;
}

typedef struct reaching {
    mql__visit visit;
    mql__runner *at;
} reaching;

static err reach_value(mql__visit *v, mql_value value, int64_t position, bool *stop_out) {
    reaching *of = (reaching *)v;
    (void)position;
    *stop_out = false;
    return value.type == BSON_TYPE_ARRAY ? OK : reach(of->at, of->at->state, value);
}

static err begin_document(mql__runner *at, graph_run *s, slice document) {
    const graph *g = at->stage->detail;
    mql_run *r = mql__run_of(at);
    mql_value start;
    buf_clear(&s->local);
    buf_add_slice(&s->local, document);
    arena_free(&s->memory);
    s->memory = arena_init_counted(at->flow->budget);
    mql__table_init(&s->values, &s->memory);
    mql__table_init(&s->seen, &s->memory);
    buf_clear(&s->found);
    s->results = mql_build(&s->found);
    s->depth = 0;
    s->active = true;
    begin_frontier(at, s);
    r->root = mql_document(document);
    TRY(mql_evaluate(r, g->start, &start));
    if (start.type != BSON_TYPE_ARRAY) {
        return reach(at, s, start);
    }
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, start.bytes); doc_walk_next(&w, &e);) {
        TRY(reach(at, s, mql_of(&e)));
    }
    return OK;
}

/* The find for the frontier: {connectToField: {$in: […]}}, and restrictSearchWithMatch. */
static err ask_level(mql__runner *at, graph_run *s) {
    const graph *g = at->stage->detail;
    buf out = counted_buf(at);
    mql_builder b = mql_build(&out);
    mql_open(&b, g->connect_to, BSON_TYPE_DOCUMENT);
    mql_add(&b, SLICE_LIT("$in"), mql_array(mql_built(&s->next)));
    mql_close(&b);
    slice filter = SLICE_EMPTY;
    err e = mql_keep(&s->memory, &b, &filter) ? OK : mql__arena_error(&s->memory);
    buf_free(&out);
    TRY(e);
    TRY(mql__both_filters(&s->memory, filter, g->restrict_filter, &filter));
    mql__foreign_begin(at, &s->source, &g->source, filter);
    s->reached = s->values.n;
    begin_frontier(at, s);
    s->asked = true;
    return OK;
}

static err take_found(mql__runner *at, graph_run *s, slice document) {
    const graph *g = at->stage->detail;
    mql_run *r = mql__run_of(at);
    slice shown = document;
    bool new;
    TRY(key_is_new(at, &s->seen, mql_member(mql_document(document), SLICE_LIT("_id")), &new));
    if (!new) {
        return OK;
    }
    if (g->depth_field.n) {
        TRY(mql__document_with(r, document, g->depth_field, mql_int64(r->arena, s->depth), &shown));
    }
    mql_add_next(&s->results, mql_document(shown));
    if (!buf_ok(&s->found)) {
        return mql__arena_error(r->arena);
    }
    reaching v = {{r, g->from_parts, g->from_parts_n, false, reach_value}, at};
    bool stopped;
    return mql__visit_path(&v.visit, mql_document(document), &stopped);
}

typedef struct connecting {
    mql__visit visit;
    mql__runner *at;
    bool connected;
} connecting;

static err connect_value(mql__visit *v, mql_value value, int64_t position, bool *stop_out) {
    connecting *of = (connecting *)v;
    graph_run *s = of->at->state;
    buf key = counted_buf(of->at);
    uint32_t entry;
    (void)position;
    err e = mql__value_key(v->run, mql_is_missing(value) ? mql_null() : value, &key);
    *stop_out = of->connected = e == OK && mql__table_find(&s->values, buf_view(&key), &entry) && entry < s->reached;
    buf_free(&key);
    return e;
}

/* What the find's filter would have selected; documents of a view come without it. */
static err is_reached(mql__runner *at, slice document, bool *reached_out) {
    const graph *g = at->stage->detail;
    mql_run *r = mql__run_of(at);
    connecting v = {{r, g->to_parts, g->to_parts_n, false, connect_value}, at, false};
    bool stopped;
    TRY(mql_pay(r, 1 + document.n / 64));
    TRY(mql__visit_path(&v.visit, mql_document(document), &stopped));
    *reached_out = v.connected;
    r->root = mql_document(document);
    return v.connected && g->restriction ? mql_matches(r, g->restriction, reached_out, NULL) : OK;
}

/* Level after level, until nothing new is reached. */
static err explore(mql__runner *at, graph_run *s, mql__status *status_out) {
    const graph *g = at->stage->detail;
    for (;;) {
        if (!s->asked) {
            if (s->next_n == 0 || (g->max_depth >= 0 && s->depth > g->max_depth)) {
                *status_out = MQL__DOCUMENT;
                return OK;
            }
            TRY(ask_level(at, s));
        }
        slice found;
        TRY(mql__foreign_next(at, &s->source, status_out, &found));
        if (*status_out == MQL__BLOCKED) {
            return OK;
        }
        bool wanted = *status_out == MQL__DOCUMENT;
        TRY(wanted && g->source.view ? is_reached(at, found, &wanted) : OK);
        if (wanted) {
            TRY(take_found(at, s, found));
        } else if (*status_out == MQL__END) {
            mql__foreign_end(&s->source);
            s->asked = false;
            s->depth++;
        }
    }
}

static err next_graph(mql__runner *at, mql__status *status_out, slice *document_out) {
    graph_run *s = at->state;
    const graph *g = at->stage->detail;
    if (!s->active) {
        if (!s->found.max) {
            s->local = counted_buf(at);
            s->found = mql__document_buf(mql__run_of(at));
            s->found.budget = at->flow->budget;
        }
        TRY(mql__pull(at, status_out, document_out));
        if (*status_out != MQL__DOCUMENT) {
            return OK;
        }
        TRY(begin_document(at, s, *document_out));
    }
    TRY(explore(at, s, status_out));
    if (*status_out == MQL__BLOCKED) {
        return OK;
    }
    s->active = false;
    mql_value results = mql_array(mql_built(&s->results));
    if (!buf_ok(&s->found)) {
        return mql_fail(mql__run_of(at)->op, 40099, "$graphLookup reached maximum memory consumption");
    }
    return mql__document_with(mql__run_of(at), buf_view(&s->local), g->as, results, document_out);
}

static void end_graph(mql__runner *at) {
    graph_run *s = at->state;
    mql__foreign_end(&s->source);
    buf_free(&s->local);
    buf_free(&s->frontier);
    buf_free(&s->found);
    arena_free(&s->memory);
}

slice mql__graph_from(const mql__stage *s) {
    return ((const graph *)s->detail)->source.collection;
}

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$graphLookup"), 0, parse_graph, .next = next_graph, .state_bytes = sizeof(graph_run), .end = end_graph},
};
const mql__stage_kinds mql__graph_stages = {rows, 1};
