/* Conditions of a traversal as conditions of a find (query/find.h). They are advice: what an index cannot answer is left out, and the
 * traversal tests all of them again. */
#include "api/gremlin/graph.h"

#include <stdio.h>

typedef struct writer {
    buf out;
    size_t top, list;
    unsigned n;
    const container *container;
    bool edges;
} writer;

static writer begin(gremlin_graph *g) {
    writer w = {.out = buf_init_counted(LIMIT_FIND_BYTES, g->q->op.budget), .container = g->q->container, .edges = g->ask->edges};
    w.top = member_begin(&w.out);
    w.list = member_open(&w.out, BSON_TYPE_ARRAY, SLICE_LIT("and"));
    return w;
}

static slice end(gremlin_graph *g, writer *w) {
    member_close(&w->out, w->list);
    member_close(&w->out, w->top);
    slice where = w->n && buf_ok(&w->out) ? arena_copy(&g->memory, buf_view(&w->out)) : SLICE_EMPTY;
    buf_free(&w->out);
    return where;
}

/* ---- paths ---- */

static size_t open_at(writer *w, slice name, bool within) {
    size_t condition = member_open_at(&w->out, BSON_TYPE_DOCUMENT, w->n++);
    size_t path = member_open(&w->out, BSON_TYPE_ARRAY, SLICE_LIT("at"));
    member_text(&w->out, SLICE_LIT("0"), name);
    if (within) {
        member_null(&w->out, SLICE_LIT("1"));
        member_text(&w->out, SLICE_LIT("2"), SLICE_LIT("_value"));
    }
    member_close(&w->out, path);
    return condition;
}

/* A property of a vertex is in an array, unless it is flat. */
static size_t open_property(writer *w, slice key) {
    return open_at(w, key, !w->edges && !document_is_flat(w->container, key));
}

static void add_in(writer *w, const slice *texts, size_t n) {
    size_t list = member_open(&w->out, BSON_TYPE_ARRAY, SLICE_LIT("in"));
    for (size_t i = 0; i < n; i++) {
        char digits[24];
        int length = snprintf(digits, sizeof digits, "%zu", i);
        member_text(&w->out, slice_of(digits, (size_t)length), texts[i]);
    }
    member_close(&w->out, list);
}

static void add_names(writer *w, slice name, const slice *texts, size_t n) {
    size_t condition = open_at(w, name, false);
    add_in(w, texts, n);
    member_close(&w->out, condition);
}

/* ---- predicates ---- */

static bool compares(gremlin_value v) {
    return v.type == GREMLIN_STRING || (gremlin_is_number(v) && member_fits(v));
}

static bool all_fit(const gremlin_predicate *p) {
    for (size_t i = 0; i < p->n; i++) {
        if (!member_fits(p->values[i])) {
            return false;
        }
    }
    return p->n > 0;
}

static bool answers(const gremlin_predicate *p) {
    switch (p->kind) {
    case P_EQ:
        return p->n == 1 && all_fit(p);
    case P_WITHIN:
        return all_fit(p) && p->n <= 1000;
    case P_LT:
    case P_LTE:
    case P_GT:
    case P_GTE:
        return p->n == 1 && compares(p->values[0]);
    case P_INSIDE:
    case P_BETWEEN:
        return p->n == 2 && compares(p->values[0]) && compares(p->values[1]) &&
               (p->values[0].type == GREMLIN_STRING) == (p->values[1].type == GREMLIN_STRING);
    case P_STARTING_WITH:
        return p->n == 1 && p->values[0].type == GREMLIN_STRING && p->values[0].n > 0;
    default:
        return false;
    }
}

/* An id is stored as text. */
static void add_value(writer *w, arena *a, const char *key, gremlin_value v, bool is_id) {
    slice text;
    if (is_id && document_id(a, v, &text)) {
        v = gremlin_string(text);
    }
    (void)member_value(&w->out, slice_str(key), v);
}

static void add_values(writer *w, arena *a, const gremlin_predicate *p, bool is_id) {
    size_t list = member_open(&w->out, BSON_TYPE_ARRAY, SLICE_LIT("in"));
    for (size_t i = 0; i < p->n; i++) {
        char digits[24];
        snprintf(digits, sizeof digits, "%zu", i);
        add_value(w, a, digits, p->values[i], is_id);
    }
    member_close(&w->out, list);
}

static void add_predicate(writer *w, arena *a, const gremlin_predicate *p, bool is_id) {
    static const char *const names[P_KINDS] = {
        [P_EQ] = "eq", [P_LT] = "lt", [P_LTE] = "le", [P_GT] = "gt", [P_GTE] = "ge", [P_STARTING_WITH] = "begins"};
    if (p->kind == P_WITHIN) {
        add_values(w, a, p, is_id);
    } else if (p->kind == P_INSIDE || p->kind == P_BETWEEN) {
        add_value(w, a, p->kind == P_INSIDE ? "gt" : "ge", p->values[0], is_id);
        add_value(w, a, "lt", p->values[1], is_id);
    } else {
        add_value(w, a, names[p->kind], p->values[0], is_id);
    }
}

/* ---- conditions ---- */

static void add_test(writer *w, arena *a, const gremlin_condition *c, const gremlin_predicate *p) {
    bool is_id = c->kind == HAS_TOKEN && c->token == T_ID;
    if (p && p->kind == P_AND) {
        add_test(w, a, c, p->left);
        add_test(w, a, c, p->right);
        return;
    }
    if (p ? !answers(p) : c->kind == HAS_TOKEN) {
        return;
    }
    size_t condition = c->kind == HAS_TOKEN ? open_at(w, is_id ? SLICE_LIT("id") : SLICE_LIT("label"), false) : open_property(w, c->key);
    if (p) {
        add_predicate(w, a, p, is_id);
    } else {
        member_bool(&w->out, SLICE_LIT("exists"), true);
    }
    member_close(&w->out, condition);
}

/* Ids may be given in forms that only the traversal compares: pairs, elements. */
static bool is_plain(const gremlin_condition *c) {
    if (c->kind != HAS_TOKEN) {
        return !c->absent && !memchr(c->key.n ? c->key.p : "", '\0', c->key.n);
    }
    if (c->token != T_ID && c->token != T_LABEL) {
        return false;
    }
    return c->token == T_LABEL || (c->predicate && (c->predicate->kind == P_EQ || c->predicate->kind == P_WITHIN));
}

static void add_kind(writer *w) {
    size_t condition = open_at(w, SLICE_LIT("_isEdge"), false);
    if (w->edges) {
        member_bool(&w->out, SLICE_LIT("eq"), true);
    } else {
        member_bool(&w->out, SLICE_LIT("exists"), false);
    }
    member_close(&w->out, condition);
}

slice gremlin_where_elements(gremlin_graph *g) {
    writer w = begin(g);
    for (size_t i = 0; i < g->ask->condition_n; i++) {
        const gremlin_condition *c = &g->ask->conditions[i];
        if (is_plain(c) && (c->kind == HAS_TOKEN || !gremlin_projection_shows(g, c->key))) {
            add_test(&w, &g->memory, c, c->predicate);
        }
    }
    add_kind(&w);
    return end(g, &w);
}

slice gremlin_where_ids(gremlin_graph *g, const slice *ids, size_t n) {
    writer w = begin(g);
    add_names(&w, SLICE_LIT("id"), ids, n);
    return end(g, &w);
}

slice gremlin_where_edges(gremlin_graph *g, bool entering) {
    writer w = begin(g);
    slice *ids = arena_array(&g->memory, slice, g->wanted_n + 1);
    for (size_t i = 0; i < g->wanted_n; i++) {
        ids[i] = g->wanted[i].id;
    }
    add_names(&w, entering ? SLICE_LIT("_sink") : SLICE_LIT("_vertexId"), ids, g->wanted_n);
    if (g->ask->label_n) {
        add_names(&w, SLICE_LIT("label"), g->ask->labels, g->ask->label_n);
    }
    return end(g, &w);
}

bool gremlin_where_place(gremlin_graph *g, slice *place_out) {
    const container *container = g->q->container;
    for (size_t i = 0; container->key.n && i < g->ask->condition_n; i++) {
        const gremlin_condition *c = &g->ask->conditions[i];
        bool is_key = c->kind == HAS_PROPERTY && slice_eq(c->key, document_key_name(container));
        if (is_key && c->predicate && c->predicate->kind == P_EQ && c->predicate->n == 1) {
            return document_place_of(&g->memory, container, c->predicate->values[0], place_out);
        }
    }
    return false;
}
