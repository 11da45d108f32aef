/* gremlin_graph.h — a graph in memory that answers the asks of runs, for tests. It answers in small pages and with references where it may,
 * so that the machine's ways of asking again and of loading are used in every case.
 *
 * Graphs: "modern" and "crew" as TinkerPop's documentation has them, "empty", and "ring": 60 vertices, each with edges to the next three.
 */
#pragma once

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "gremlin/run.h"

enum { GRAPH_MAX = 4096 };

typedef struct graph {
    arena memory;
    size_t vertex_n, edge_n;
    gremlin_element *vertices[GRAPH_MAX], *edges[GRAPH_MAX]; /* NULL: dropped */
    int64_t next_id;
    size_t page;  /* elements of one answer */
    bool full;    /* neighbours are loaded */
    bool ignores; /* conditions and limits are not used */
    size_t asks;
} graph;

static slice graph_text(const char *s) {
    return slice_str(s);
}

/* ---- making ---- */

static gremlin_element *graph_vertex(graph *g, gremlin_value id, slice label) {
    assert(g->vertex_n < GRAPH_MAX);
    return g->vertices[g->vertex_n++] = gremlin_make_vertex(&g->memory, id, label);
}

static gremlin_element *graph_edge(graph *g, gremlin_value id, slice label, gremlin_element *out, gremlin_element *in) {
    assert(g->edge_n < GRAPH_MAX);
    return g->edges[g->edge_n++] = gremlin_make_edge(&g->memory, id, label, out, in);
}

static gremlin_value graph_new_id(graph *g) {
    return gremlin_long(g->next_id++);
}

static gremlin_property *graph_add(graph *g, gremlin_element *e, slice key, gremlin_value value) {
    gremlin_value id = e->is_edge ? gremlin_null() : graph_new_id(g);
    return gremlin_make_property(&g->memory, e, id, key, value);
}

static gremlin_element *graph_find(graph *g, bool edge, int id) {
    size_t n = edge ? g->edge_n : g->vertex_n;
    for (size_t i = 0; i < n; i++) {
        gremlin_element *e = edge ? g->edges[i] : g->vertices[i];
        if (e && gremlin_equal(e->id, gremlin_int(id))) {
            return e;
        }
    }
    return NULL;
}

static void graph_named(graph *g, int id, const char *label, const char *name, const char *key, gremlin_value value) {
    gremlin_element *v = graph_vertex(g, gremlin_int(id), graph_text(label));
    graph_add(g, v, graph_text("name"), gremlin_string(graph_text(name)));
    if (key) {
        graph_add(g, v, graph_text(key), value);
    }
}

static gremlin_element *graph_join(graph *g, int id, const char *label, int out, int in) {
    return graph_edge(g, gremlin_int(id), graph_text(label), graph_find(g, false, out), graph_find(g, false, in));
}

static void graph_modern(graph *g) {
    graph_named(g, 1, "person", "marko", "age", gremlin_int(29));
    graph_named(g, 2, "person", "vadas", "age", gremlin_int(27));
    graph_named(g, 3, "software", "lop", "lang", gremlin_string(graph_text("java")));
    graph_named(g, 4, "person", "josh", "age", gremlin_int(32));
    graph_named(g, 5, "software", "ripple", "lang", gremlin_string(graph_text("java")));
    graph_named(g, 6, "person", "peter", "age", gremlin_int(35));
    static const struct {
        int id, out, in;
        const char *label;
        double weight;
    } edges[] = {{7, 1, 2, "knows", 0.5},    {8, 1, 4, "knows", 1.0},    {9, 1, 3, "created", 0.4},
                 {10, 4, 5, "created", 1.0}, {11, 4, 3, "created", 0.4}, {12, 6, 3, "created", 0.2}};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        graph_add(g, graph_join(g, edges[i].id, edges[i].label, edges[i].out, edges[i].in), graph_text("weight"),
                  gremlin_double(edges[i].weight));
    }
}

static void graph_place(graph *g, int id, const char *place, int from, int to) {
    gremlin_element *v = graph_find(g, false, id);
    gremlin_property *p = graph_add(g, v, graph_text("location"), gremlin_string(graph_text(place)));
    gremlin_make_meta(&g->memory, p, graph_text("startTime"), gremlin_int(from));
    if (to) {
        gremlin_make_meta(&g->memory, p, graph_text("endTime"), gremlin_int(to));
    }
}

static void graph_skill(graph *g, int id, const char *label, int out, int in, const char *key, int value) {
    graph_add(g, graph_join(g, id, label, out, in), graph_text(key), gremlin_int(value));
}

static void graph_crew(graph *g) {
    graph_named(g, 1, "person", "marko", NULL, gremlin_null());
    graph_named(g, 7, "person", "stephen", NULL, gremlin_null());
    graph_named(g, 8, "person", "matthias", NULL, gremlin_null());
    graph_named(g, 9, "person", "daniel", NULL, gremlin_null());
    graph_named(g, 10, "software", "gremlin", NULL, gremlin_null());
    graph_named(g, 11, "software", "tinkergraph", NULL, gremlin_null());
    graph_place(g, 1, "san diego", 1997, 2001);
    graph_place(g, 1, "santa cruz", 2001, 2004);
    graph_place(g, 1, "brussels", 2004, 2005);
    graph_place(g, 1, "santa fe", 2005, 0);
    graph_place(g, 7, "centreville", 1990, 2000);
    graph_place(g, 7, "dulles", 2000, 2006);
    graph_place(g, 7, "purcellville", 2006, 0);
    graph_place(g, 8, "bremen", 2004, 2007);
    graph_place(g, 8, "baltimore", 2007, 2011);
    graph_place(g, 8, "oakland", 2011, 2014);
    graph_place(g, 8, "seattle", 2014, 0);
    graph_place(g, 9, "spremberg", 1982, 2005);
    graph_place(g, 9, "kaiserslautern", 2005, 2009);
    graph_place(g, 9, "aachen", 2009, 0);
    graph_skill(g, 13, "develops", 1, 10, "since", 2009);
    graph_skill(g, 14, "develops", 1, 11, "since", 2010);
    graph_skill(g, 15, "uses", 1, 10, "skill", 4);
    graph_skill(g, 16, "uses", 1, 11, "skill", 5);
    graph_skill(g, 17, "develops", 7, 10, "since", 2010);
    graph_skill(g, 18, "develops", 7, 11, "since", 2011);
    graph_skill(g, 19, "uses", 7, 10, "skill", 5);
    graph_skill(g, 20, "uses", 7, 11, "skill", 4);
    graph_skill(g, 21, "develops", 8, 10, "since", 2012);
    graph_skill(g, 22, "uses", 8, 10, "skill", 3);
    graph_skill(g, 23, "uses", 8, 11, "skill", 3);
    graph_skill(g, 24, "uses", 9, 10, "skill", 5);
    graph_skill(g, 25, "uses", 9, 11, "skill", 3);
    (void)graph_join(g, 26, "traverses", 10, 11);
}

enum { RING = 60 };

static void graph_ring(graph *g) {
    char name[16];
    for (int i = 0; i < RING; i++) {
        snprintf(name, sizeof name, "n%d", i);
        graph_named(g, i, i % 3 ? "song" : "artist", name, "plays", gremlin_int(i * 7 % 13));
    }
    for (int i = 0; i < RING; i++) {
        for (int step = 1; step <= 3; step++) {
            gremlin_element *e = graph_join(g, 1000 + i * 3 + step, step == 1 ? "next" : "skips", i, (i + step) % RING);
            graph_add(g, e, graph_text("weight"), gremlin_int(step));
        }
    }
}

static graph *graph_open(const char *name) {
    graph *g = calloc(1, sizeof *g);
    *g = (graph){.memory = arena_init(), .next_id = 5000, .page = 3};
    if (strcmp(name, "modern") == 0) {
        graph_modern(g);
    } else if (strcmp(name, "crew") == 0) {
        graph_crew(g);
    } else if (strcmp(name, "ring") == 0) {
        graph_ring(g);
    } else {
        assert(strcmp(name, "empty") == 0);
    }
    return g;
}

static void graph_close(graph *g) {
    arena_free(&g->memory);
    free(g);
}

/* ---- answering ---- */

/* A copy in the run's memory: the graph's own elements change, what a run has does not. */
static gremlin_element *graph_reference(arena *a, const gremlin_element *v) {
    gremlin_element *e = gremlin_make_vertex(a, v->id, v->label);
    e->loaded = false;
    return e;
}

static void graph_copy_property(arena *a, gremlin_element *to, const gremlin_property *from) {
    gremlin_property *p = gremlin_make_property(a, to, from->id, from->key, from->value);
    for (size_t i = 0; i < from->n; i++) {
        gremlin_make_meta(a, p, from->metas[i].key, from->metas[i].value);
    }
}

static gremlin_element *graph_copy(arena *a, const gremlin_element *e) {
    gremlin_element *to = e->is_edge ? gremlin_make_edge(a, e->id, e->label, graph_reference(a, e->out), graph_reference(a, e->in))
                                     : gremlin_make_vertex(a, e->id, e->label);
    for (size_t i = 0; i < e->n; i++) {
        graph_copy_property(a, to, &e->properties[i]);
    }
    return to;
}

/* Of the properties, only those that the ask needs. */
static gremlin_element *graph_copy_needed(arena *a, const gremlin_ask *ask, const gremlin_element *e) {
    gremlin_element bare = *e;
    bare.n = 0;
    gremlin_element *to = graph_copy(a, &bare);
    for (size_t i = 0; i < e->n; i++) {
        bool needed = ask->key_n == 0;
        for (size_t j = 0; j < ask->key_n && !needed; j++) {
            needed = slice_eq(ask->keys[j], e->properties[i].key);
        }
        if (needed) {
            graph_copy_property(a, to, &e->properties[i]);
        }
    }
    return to;
}

static size_t graph_offset(slice position) {
    uint64_t n = 0;
    (void)slice_to_u64(position, &n);
    return (size_t)n;
}

static bool graph_wanted(const gremlin_ask *ask, const gremlin_element *e) {
    if (!ask->by_ids) {
        return true;
    }
    gremlin_predicate p = {.kind = P_WITHIN, .n = ask->id_n, .values = ask->ids};
    gremlin_condition c = {.kind = HAS_TOKEN, .token = T_ID, .predicate = &p};
    return gremlin_fulfils(e, &c, 1);
}

static void graph_end(gremlin_run *run, size_t next, bool more) {
    char text[32];
    int n = snprintf(text, sizeof text, "%zu", next);
    gremlin_answer_end(run, more ? slice_of(text, (size_t)n) : SLICE_EMPTY);
}

static void graph_answer_find(graph *g, gremlin_run *run, const gremlin_ask *ask) {
    size_t n = ask->edges ? g->edge_n : g->vertex_n, given = 0, i = graph_offset(ask->position);
    for (; i < n && given < g->page; i++) {
        gremlin_element *e = ask->edges ? g->edges[i] : g->vertices[i];
        if (e && graph_wanted(ask, e) && (g->ignores || gremlin_fulfils(e, ask->conditions, ask->condition_n))) {
            gremlin_answer_element(run, 0, graph_copy(gremlin_answer_arena(run), e));
            given++;
        }
    }
    graph_end(run, i, i < n);
}

static bool graph_labelled(const gremlin_ask *ask, const gremlin_element *e) {
    for (size_t i = 0; i < ask->label_n; i++) {
        if (slice_eq(ask->labels[i], e->label)) {
            return true;
        }
    }
    return ask->label_n == 0;
}

static void graph_give_neighbour(graph *g, gremlin_run *run, const gremlin_ask *ask, size_t index, const gremlin_element *e,
                                 gremlin_element *end) {
    arena *a = gremlin_answer_arena(run);
    gremlin_answer_element(run, index, ask->edges ? graph_copy(a, e) : g->full ? graph_copy(a, end) : graph_reference(a, end));
}

static void graph_answer_adjacent(graph *g, gremlin_run *run, const gremlin_ask *ask) {
    size_t from = graph_offset(ask->position), end = from + g->page < g->edge_n ? from + g->page : g->edge_n;
    for (size_t i = from; i < end; i++) { /* edge by edge: the machine puts the answers in order */
        gremlin_element *e = g->edges[i];
        for (size_t j = 0; e && graph_labelled(ask, e) && j < ask->element_n; j++) {
            if (ask->direction != DIRECTION_IN && gremlin_equal(e->out->id, ask->elements[j]->id)) {
                graph_give_neighbour(g, run, ask, j, e, e->in);
            }
            if (ask->direction != DIRECTION_OUT && gremlin_equal(e->in->id, ask->elements[j]->id)) {
                graph_give_neighbour(g, run, ask, j, e, e->out);
            }
        }
    }
    graph_end(run, end, end < g->edge_n);
}

static gremlin_element **graph_slot(graph *g, const gremlin_element *e) {
    size_t n = e->is_edge ? g->edge_n : g->vertex_n;
    for (size_t i = 0; i < n; i++) {
        gremlin_element **slot = e->is_edge ? &g->edges[i] : &g->vertices[i];
        if (*slot && gremlin_equal((*slot)->id, e->id)) {
            return slot;
        }
    }
    return NULL;
}

/* NULL: it was dropped meanwhile; what should be written to it is left out. */
static gremlin_element *graph_element(graph *g, const gremlin_element *e) {
    gremlin_element **slot = graph_slot(g, e);
    return slot ? *slot : NULL;
}

static void graph_answer_load(graph *g, gremlin_run *run, const gremlin_ask *ask) {
    for (size_t i = 0; i < ask->element_n; i++) {
        gremlin_element **slot = graph_slot(g, ask->elements[i]);
        if (slot) {
            gremlin_answer_element(run, i, graph_copy_needed(gremlin_answer_arena(run), ask, *slot));
        }
    }
    gremlin_answer_end(run, SLICE_EMPTY);
}

/* All properties but those that `drops` says. */
static void graph_rebuild(graph *g, gremlin_element *e, bool (*drops)(const gremlin_property *p, const void *what), const void *what) {
    gremlin_element old = *e;
    e->n = 0;
    e->properties = NULL;
    for (size_t i = 0; i < old.n; i++) {
        if (!drops(&old.properties[i], what)) {
            graph_copy_property(&g->memory, e, &old.properties[i]);
        }
    }
}

static bool graph_is_replaced(const gremlin_property *p, const void *what) {
    const gremlin_write *w = what;
    return slice_eq(p->key, w->key) && (w->cardinality != CARDINALITY_SET || gremlin_equal(p->value, w->value));
}

static void graph_write(graph *g, gremlin_element *e, const gremlin_write *w) {
    if (w->cardinality != CARDINALITY_LIST) {
        graph_rebuild(g, e, graph_is_replaced, w);
    }
    gremlin_property *p = graph_add(g, e, w->key, w->value);
    for (size_t i = 0; i < w->n; i++) {
        gremlin_make_meta(&g->memory, p, gremlin_text(w->metas[i].key), w->metas[i].value);
    }
}

static gremlin_property *graph_own(gremlin_element *e, const gremlin_property *p) {
    for (size_t i = 0; i < e->n; i++) {
        if (gremlin_equal(e->properties[i].id, p->id) && slice_eq(e->properties[i].key, p->key)) {
            return (gremlin_property *)(uintptr_t)&e->properties[i];
        }
    }
    return NULL;
}

static void graph_answer_add(graph *g, gremlin_run *run, const gremlin_ask *ask) {
    for (size_t i = 0; i < ask->target_n; i++) {
        const gremlin_target *t = &ask->targets[i];
        gremlin_value id = t->id.type == GREMLIN_NULL ? graph_new_id(g) : t->id;
        gremlin_element *out = ask->edges ? graph_element(g, t->out) : NULL, *in = ask->edges ? graph_element(g, t->in) : NULL;
        if (ask->edges && (!out || !in)) {
            continue;
        }
        gremlin_element *e = ask->edges ? graph_edge(g, id, t->label, out, in) : graph_vertex(g, id, t->label);
        for (size_t j = 0; j < t->n; j++) {
            graph_write(g, e, &t->writes[j]);
        }
        gremlin_answer_element(run, i, graph_copy(gremlin_answer_arena(run), e));
    }
    gremlin_answer_end(run, SLICE_EMPTY);
}

static void graph_answer_set(graph *g, gremlin_run *run, const gremlin_ask *ask) {
    for (size_t i = 0; i < ask->target_n; i++) {
        const gremlin_target *t = &ask->targets[i];
        gremlin_element *e = graph_element(g, t->element);
        if (!e) {
            continue;
        }
        for (size_t j = 0; j < t->n; j++) {
            gremlin_property *of = t->of_property ? graph_own(e, t->of_property) : NULL;
            if (of) {
                gremlin_make_meta(&g->memory, of, t->writes[j].key, t->writes[j].value);
            } else {
                graph_write(g, e, &t->writes[j]);
            }
        }
        gremlin_answer_element(run, i, graph_copy(gremlin_answer_arena(run), e));
    }
    gremlin_answer_end(run, SLICE_EMPTY);
}

static bool graph_is_property(const gremlin_property *p, const void *what) {
    const gremlin_property *other = what;
    return slice_eq(p->key, other->key) && gremlin_equal(p->id, other->id);
}

static void graph_drop(graph *g, const gremlin_element *e) {
    gremlin_element **slot = graph_slot(g, e);
    for (size_t i = 0; slot && !e->is_edge && i < g->edge_n; i++) {
        if (g->edges[i] && (g->edges[i]->out == *slot || g->edges[i]->in == *slot)) {
            g->edges[i] = NULL;
        }
    }
    if (slot) {
        *slot = NULL;
    }
}

static void graph_answer_drop(graph *g, gremlin_run *run, const gremlin_ask *ask) {
    for (size_t i = 0; i < ask->target_n; i++) {
        const gremlin_target *t = &ask->targets[i];
        gremlin_element **slot = graph_slot(g, t->element);
        if (t->property && slot) {
            graph_rebuild(g, *slot, graph_is_property, t->property);
        } else if (!t->property) {
            graph_drop(g, t->element);
        }
    }
    gremlin_answer_end(run, SLICE_EMPTY);
}

static void graph_answer(graph *g, gremlin_run *run) {
    static void (*const answers[])(graph *, gremlin_run *, const gremlin_ask *) = {
        [GREMLIN_ASK_FIND] = graph_answer_find, [GREMLIN_ASK_ADJACENT] = graph_answer_adjacent, [GREMLIN_ASK_LOAD] = graph_answer_load,
        [GREMLIN_ASK_ADD] = graph_answer_add,   [GREMLIN_ASK_SET] = graph_answer_set,           [GREMLIN_ASK_DROP] = graph_answer_drop};
    const gremlin_ask *ask = gremlin_run_ask(run);
    g->asks++;
    answers[ask->kind](g, run, ask);
}

/* ---- running ---- */

typedef void (*graph_sink)(void *context, gremlin_value result, int64_t bulk);

static inline err graph_run(graph *g, op *o, const gremlin_traversal *t, const gremlin_run_options *options, graph_sink sink,
                            void *context) {
    gremlin_run *run = gremlin_run_begin(o, t, options);
    gremlin_need need = GREMLIN_NEED_TURN;
    err e = OK;
    while (e == OK && need != GREMLIN_NEED_NOTHING) {
        e = gremlin_run_step(run, &need);
        if (e == OK && need == GREMLIN_NEED_GRAPH) {
            graph_answer(g, run);
        } else if (e == OK && need == GREMLIN_NEED_TAKE) {
            int64_t bulk;
            gremlin_value v = gremlin_run_take(run, &bulk);
            sink(context, v, bulk);
        }
    }
    gremlin_run_free(run);
    return e;
}
