/* strategy.c — withStrategies(): which strategies there are; SubgraphStrategy, as filters after the steps that read; checks
 * of what a traversal contains. PartitionStrategy and SeedStrategy act when a traversal runs (machine.c), ReadOnlyStrategy when it is
 * built. */
#include "gremlin/build_int.h"

const gremlin_strategy *gremlin_strategy_find(const gremlin_source *source, slice name) {
    for (size_t i = 0; source && i < source->strategy_n; i++) {
        if (slice_eq(source->strategies[i]->name, name)) {
            return source->strategies[i];
        }
    }
    return NULL;
}

const gremlin_value *gremlin_strategy_setting(const gremlin_strategy *s, const char *key) {
    for (size_t i = 0; s && i < s->n; i++) {
        if (gremlin_is_text(s->settings[i].key, key)) {
            return &s->settings[i].value;
        }
    }
    return NULL;
}

static bool is_true(const gremlin_value *v) {
    return v && v->type == GREMLIN_BOOLEAN && v->b;
}

/* ---- SubgraphStrategy: its two filters ---- */

static gremlin_value of_traversal(const gremlin_traversal *t) {
    return (gremlin_value){.type = GREMLIN_TRAVERSAL, .traversal = t};
}

/* name(…), or name().filter(inner) */
static err make(gremlin_builder *b, const char *name, const gremlin_value *args, size_t n, const gremlin_traversal *inner,
                const gremlin_traversal **out) {
    gremlin_draft *d;
    TRY(gremlin_draft_begin(b, true, &d));
    TRY(gremlin_draft_step(b, d, slice_str(name), args, n));
    if (inner) {
        gremlin_value filter = of_traversal(inner);
        TRY(gremlin_draft_step(b, d, SLICE_LIT("filter"), &filter, 1));
    }
    return gremlin_draft_end(b, d, out);
}

/* An edge is in the subgraph if both of its vertices are. */
static err join_ends(gremlin_builder *b, const gremlin_traversal *vertices, const gremlin_traversal **edges) {
    gremlin_value parts[3];
    size_t n = 0;
    const gremlin_traversal *in, *out;
    TRY(make(b, "inV", NULL, 0, vertices, &in));
    TRY(make(b, "outV", NULL, 0, vertices, &out));
    parts[n++] = of_traversal(in);
    parts[n++] = of_traversal(out);
    if (*edges) {
        parts[n++] = of_traversal(*edges);
    }
    return make(b, "and", parts, n, NULL, edges);
}

static err filter_named(gremlin_builder *b, const gremlin_strategy *s, const char *name, const gremlin_traversal **out) {
    const gremlin_value *v = gremlin_strategy_setting(s, name);
    *out = v && v->type == GREMLIN_TRAVERSAL ? v->traversal : NULL;
    return !v || *out ? OK : op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: SubgraphStrategy: %s is not a traversal.", name);
}

static err take_subgraph(gremlin_builder *b, const gremlin_strategy *s) {
    const gremlin_traversal *vertices, *edges;
    const gremlin_value *checks = gremlin_strategy_setting(s, "checkAdjacentVertices");
    if (gremlin_strategy_setting(s, "vertexProperties")) {
        return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: SubgraphStrategy: vertexProperties are not supported.");
    }
    TRY(filter_named(b, s, "vertices", &vertices));
    TRY(filter_named(b, s, "edges", &edges));
    b->rules.crosses_edges = edges != NULL;
    if (vertices && (!checks || is_true(checks))) {
        TRY(join_ends(b, vertices, &edges));
    }
    b->rules.vertices = vertices;
    b->rules.edges = edges;
    return OK;
}

/* ---- SubgraphStrategy: the steps of a traversal ---- */

static bool gives_vertices(gremlin_op op) {
    return op == GREMLIN_V_STEP || op == GREMLIN_OUT_STEP || op == GREMLIN_IN_STEP || op == GREMLIN_BOTH_STEP || op == GREMLIN_TO_STEP ||
           op == GREMLIN_IN_V_STEP || op == GREMLIN_OUT_V_STEP || op == GREMLIN_BOTH_V_STEP || op == GREMLIN_OTHER_V_STEP ||
           op == GREMLIN_TO_V_STEP;
}

static bool gives_edges(gremlin_op op) {
    return op == GREMLIN_E_STEP || op == GREMLIN_OUT_E_STEP || op == GREMLIN_IN_E_STEP || op == GREMLIN_BOTH_E_STEP ||
           op == GREMLIN_TO_E_STEP;
}

static const char *edges_of(gremlin_op op) {
    return op == GREMLIN_OUT_STEP    ? "outE"
           : op == GREMLIN_IN_STEP   ? "inE"
           : op == GREMLIN_BOTH_STEP ? "bothE"
           : op == GREMLIN_TO_STEP   ? "toE"
                                     : NULL;
}

static const char *end_of(gremlin_op op) {
    return op == GREMLIN_OUT_STEP ? "inV" : op == GREMLIN_IN_STEP ? "outV" : "otherV";
}

static gremlin_step step_of(gremlin_builder *b, gremlin_op op, const gremlin_traversal *t) {
    gremlin_value *args = arena_new(b->arena, gremlin_value);
    *args = of_traversal(t);
    return (gremlin_step){.op = op, .n = 1, .args = args, .times = -1, .limit = -1};
}

/* out('x') becomes flatMap(outE('x').inV()), whose steps are filtered as all others. */
static err cross_edges(gremlin_builder *b, gremlin_step *s) {
    gremlin_draft *d;
    const gremlin_traversal *t;
    TRY(gremlin_draft_begin(b, true, &d));
    TRY(gremlin_draft_step(b, d, slice_str(edges_of(s->op)), s->args, s->n));
    TRY(gremlin_draft_step(b, d, slice_str(end_of(s->op)), NULL, 0));
    TRY(gremlin_draft_end(b, d, &t));
    gremlin_step crossing = step_of(b, GREMLIN_FLAT_MAP_STEP, t);
    crossing.labels = s->labels;
    *s = crossing;
    return OK;
}

static err restrict_step(gremlin_builder *b, gremlin_step *s, const gremlin_traversal **filter_out) {
    const gremlin_rules *rules = &b->rules;
    *filter_out = gives_vertices(s->op) ? rules->vertices : gives_edges(s->op) ? rules->edges : NULL;
    if (rules->crosses_edges && edges_of(s->op)) {
        *filter_out = NULL;
        return cross_edges(b, s);
    }
    return OK;
}

err gremlin__restrict(gremlin_builder *b, gremlin_draft *d) {
    gremlin_step *all = NULL;
    size_t n = 0;
    const gremlin_traversal *filter;
    if (!b->rules.vertices && !b->rules.edges) {
        return OK;
    }
    for (size_t i = 0; i < d->n; i++) {
        TRY(restrict_step(b, &d->steps[i], &filter));
        d->steps[i].limit = filter ? -1 : d->steps[i].limit;
        all = gremlin__appended(b->arena, all, n++, &d->steps[i], sizeof *all);
        if (filter) {
            gremlin_step s = step_of(b, GREMLIN_FILTER_STEP, filter);
            all = gremlin__appended(b->arena, all, n++, &s, sizeof *all);
        }
    }
    d->steps = all;
    d->n = n;
    return OK;
}

/* ---- checks ---- */

static bool names_no_label(const gremlin_step *s) {
    return s->n == 0 && (edges_of(s->op) || s->op == GREMLIN_OUT_E_STEP || s->op == GREMLIN_IN_E_STEP || s->op == GREMLIN_BOTH_E_STEP);
}

static bool is_reserved(const gremlin_rules *rules, gremlin_value key) {
    for (size_t i = 0; i < rules->reserved_n; i++) {
        if (gremlin_same(rules->reserved[i], key)) {
            return true;
        }
    }
    return false;
}

err gremlin__check_rules(gremlin_builder *b, const gremlin_draft *d) {
    for (size_t i = 0; i < d->n; i++) {
        const gremlin_step *s = &d->steps[i];
        if (b->rules.names_edges && names_no_label(s)) {
            return op_fail(b->op, E_BAD_QUERY, "The provided traversal contains a vertex step without any specified edge label: %s()",
                           gremlin_op_name(s->op));
        }
        for (size_t j = 0; j < s->setting_n; j++) {
            slice key = s->settings[j].key.type == GREMLIN_STRING ? gremlin_text(s->settings[j].key) : SLICE_EMPTY;
            if (key.n && is_reserved(&b->rules, s->settings[j].key)) {
                return op_fail(b->op, E_BAD_QUERY,
                               "The provided traversal contains a %s() that is setting a property key to a reserved word: %.*s",
                               gremlin_op_name(s->op), slice_shown(key), key.p);
            }
        }
    }
    return OK;
}

static void take_reserved(gremlin_builder *b, const gremlin_strategy *s) {
    gremlin_items keys = {0};
    const gremlin_value *given = gremlin_strategy_setting(s, "keys");
    given = given ? given : gremlin_strategy_setting(s, "reservedKeys");
    if (given && gremlin_is_list(*given)) {
        b->rules.reserved = given->list->at;
        b->rules.reserved_n = given->list->n;
        return;
    }
    gremlin_items_add(b->arena, &keys, gremlin_string(SLICE_LIT("id")));
    gremlin_items_add(b->arena, &keys, gremlin_string(SLICE_LIT("label")));
    b->rules.reserved = keys.at;
    b->rules.reserved_n = keys.n;
}

/* ---- withStrategies() ---- */

static bool is(const gremlin_strategy *s, const char *name) {
    return slice_eq(s->name, slice_str(name));
}

/* Strategies that change what a traversal gives. All others only make it faster in TinkerPop, and mean nothing here. */
static bool is_unsupported(const gremlin_strategy *s) {
    static const char *const names[] = {
        "ElementIdStrategy", "EventStrategy",      "HaltedTraverserStrategy", "ProductiveByStrategy",
        "SackStrategy",      "SideEffectStrategy", "VertexProgramStrategy",   "MessagePassingReductionStrategy"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (is(s, names[i])) {
            return true;
        }
    }
    return false;
}

err gremlin__take_strategy(gremlin_builder *b, const gremlin_strategy *s) {
    bool throws = is_true(gremlin_strategy_setting(s, "throwException"));
    if (is_unsupported(s)) {
        return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: %.*s is not supported.", slice_shown(s->name), s->name.p);
    }
    if (is(s, "SubgraphStrategy")) {
        return take_subgraph(b, s);
    }
    if (throws && is(s, "ReservedKeysVerificationStrategy")) {
        take_reserved(b, s);
    }
    b->rules.names_edges |= throws && is(s, "EdgeLabelVerificationStrategy");
    return OK;
}
