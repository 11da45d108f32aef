/* Reading: elements by ids and conditions, edges and neighbours of vertices, properties of references. */
#include "api/gremlin/graph.h"

enum { IDS_MAX = 9000 }; /* less than LIMIT_FIND_CONDITIONS */

static size_t rows_of(const gremlin_ask *ask) {
    size_t wanted = ask->wanted ? ask->wanted : 512;
    return ask->limit >= 0 && (uint64_t)ask->limit < wanted ? (size_t)(ask->limit ? ask->limit : 1) : wanted;
}

static void take_element(gremlin_graph *g, slice body) {
    document_parts parts;
    const container *c = g->q->container;
    document_take_apart(c, body, &parts);
    gremlin_element *e = parts.is_edge == g->ask->edges ? document_read_parts(gremlin_graph_elements(g), c, body, &parts) : NULL;
    gremlin_projection_add(g, e, g->head);
    if (e) {
        gremlin_graph_found(g, 0, e);
    }
}

static void page_is_answer(gremlin_graph *g) {
    gremlin_graph_done(g, g->next);
}

/* ---- by keys ---- */

static void add_key(gremlin_graph *g, slice place, slice id, size_t index) {
    gremlin_eval *q = g->q;
    if (document_key(&q->op, q->container, place, id, &g->keys[g->keys_n]) == OK) {
        g->indexes[g->keys_n++] = index;
    } else {
        q->op.detail_n = 0; /* no item can have this key */
    }
}

static void take_keyed(void *context, size_t i, const item_found *found) {
    gremlin_graph *g = context;
    bool fits = arena_fits(gremlin_graph_elements(g), 4 * found->body.n);
    arena *a = gremlin_graph_elements(g);
    const container *c = g->q->container;
    bool values = g->ask->key_n && !g->shown;
    gremlin_element *e = !fits    ? NULL
                         : values ? document_read_values(a, c, found->body, g->ask->keys, g->ask->key_n)
                                  : document_read_keys(a, c, found->body, g->ask->keys, g->ask->key_n);
    bool wanted =
        e && (g->ask->kind == GREMLIN_ASK_FIND ? e->is_edge == g->ask->edges : e->is_edge == g->ask->elements[g->indexes[i]]->is_edge);
    g->failed = fits ? g->failed : E_MEMORY;
    if (wanted) {
        gremlin_projection_add(g, e, &found->head);
        gremlin_graph_found(g, g->indexes[i], e);
    }
}

static void find_loose(gremlin_graph *g, slice from) {
    g->take = take_element;
    g->read = page_is_answer;
    gremlin_graph_find(g, gremlin_where_ids(g, g->loose, g->loose_n), NULL, from, rows_of(g->ask));
}

static void keys_read(call *c) {
    gremlin_graph *g = ((gremlin_eval *)c)->graph;
    err code = c->code != OK ? c->code : g->failed;
    if (code != OK) {
        gremlin_graph_fail(g, code);
    } else if (g->loose_n) {
        find_loose(g, SLICE_EMPTY);
    } else {
        gremlin_graph_done(g, SLICE_EMPTY);
    }
}

static err allows_all(gremlin_graph *g, unsigned verbs, const slice *places, size_t n) {
    if (gremlin_graph_allows(g, verbs, NULL) == OK) {
        return OK;
    }
    g->q->op.detail_n = 0;
    for (size_t i = 0; i < n; i++) {
        TRY(gremlin_graph_allows(g, verbs, &places[i]));
    }
    return n ? OK : access_refuse(&g->q->op);
}

static void read_keys(gremlin_graph *g, const slice *places) {
    gremlin_eval *q = g->q;
    err code = g->keys_n ? allows_all(g, ACCESS_READ, places, g->keys_n) : OK;
    if (code != OK) {
        gremlin_graph_fail(g, code);
        return;
    }
    call_read_many_init(&q->call.reads, &q->front->core, &q->frame->client, &q->op, q->container, keys_read);
    g->failed = OK;
    if (!g->keys_n) {
        keys_read(&q->call.any);
        return;
    }
    if (q->transaction) {
        gremlin_atomic_read(g, take_keyed, keys_read);
        return;
    }
    q->call.reads.keys = g->keys;
    q->call.reads.n = g->keys_n;
    q->call.reads.sink = take_keyed;
    q->call.reads.context = g;
    call_read_many_submit(&q->call.reads);
}

/* ---- V() and E() ---- */

/* A client's id: a text, a number, an element, or a pair of partition key and id. False: no element can have it. `known`: the partition. */
static bool read_id(gremlin_graph *g, gremlin_value v, slice *id_out, slice *place_out, bool *known_out) {
    arena *a = &g->memory;
    const container *c = g->q->container;
    *place_out = SLICE_EMPTY;
    *known_out = c->key.n == 0;
    if (gremlin_is_list(v)) {
        *known_out = true;
        return v.list->n == 2 && document_place_of(a, c, v.list->at[0], place_out) && document_id(a, v.list->at[1], id_out);
    }
    if (gremlin_is_element(v)) {
        *place_out = v.element->place;
        *known_out = *known_out || v.element->place.n;
        return document_id(a, v.element->id, id_out);
    }
    return document_id(a, v, id_out);
}

static void list_ids(gremlin_graph *g, slice **places_out) {
    const gremlin_ask *ask = g->ask;
    slice id, place, only;
    bool known, one = gremlin_where_place(g, &only);
    slice *places = arena_array(&g->memory, slice, ask->id_n + 1), *loose = arena_array(&g->memory, slice, ask->id_n + 1);
    g->keys = arena_array(&g->memory, item_key, ask->id_n + 1);
    g->indexes = arena_array(&g->memory, size_t, ask->id_n + 1);
    for (size_t i = 0; i < ask->id_n; i++) {
        if (!read_id(g, ask->ids[i], &id, &place, &known)) {
            continue;
        }
        if (known || one) {
            places[g->keys_n] = known ? place : only;
            add_key(g, known ? place : only, id, 0);
        } else {
            loose[g->loose_n++] = id;
        }
    }
    g->loose = loose;
    *places_out = places;
}

void gremlin_read_find(gremlin_graph *g) {
    const gremlin_ask *ask = g->ask;
    slice place, *places;
    if (!ask->by_ids) {
        bool one = gremlin_where_place(g, &place);
        g->take = take_element;
        g->read = page_is_answer;
        gremlin_graph_find(g, gremlin_where_elements(g), one ? &place : NULL, ask->position, rows_of(ask));
        return;
    }
    if (ask->id_n > IDS_MAX) {
        gremlin_graph_fail(g, op_fail(&g->q->op, E_BAD_QUERY, "V() and E() take %d ids at most: divide them.", IDS_MAX));
        return;
    }
    list_ids(g, &places);
    if (ask->position.n) { /* the keys were read with the first page */
        find_loose(g, ask->position);
    } else {
        read_keys(g, places);
    }
}

/* ---- edges and neighbours ---- */

static gremlin_element *neighbour(gremlin_graph *g, const document_parts *edge, bool source) {
    arena *a = gremlin_graph_elements(g);
    const container *c = g->q->container;
    slice id = source ? edge->vertex_id : edge->sink, label = source ? edge->vertex_label : edge->sink_label;
    gremlin_element *v = gremlin_make_vertex(a, gremlin_string(id), label);
    v->place = source ? document_place(a, c, edge) : document_sink_place(a, c, edge);
    v->loaded = false;
    return v;
}

const gremlin_wanted *gremlin_read_owner(gremlin_graph *g, const document_parts *edge, size_t *n_out) {
    const container *c = g->q->container;
    bool anywhere = g->entering && !edge->has_sink_key;
    arena_mark mark = arena_marked(&g->memory);
    slice place = g->entering ? document_sink_place(&g->memory, c, edge) : document_place(&g->memory, c, edge);
    slice id = g->entering ? edge->sink : edge->vertex_id;
    *n_out = 0;
    const gremlin_wanted *of = edge->is_edge ? gremlin_graph_match(g, id, place, anywhere, n_out) : NULL;
    arena_release(&g->memory, mark);
    return of;
}

static void take_edge(gremlin_graph *g, slice body) {
    size_t n;
    document_parts parts;
    document_take_apart(g->q->container, body, &parts);
    const gremlin_wanted *of = gremlin_read_owner(g, &parts, &n);
    gremlin_element *e = NULL;
    if (of && g->ask->edges) {
        e = document_read_parts(gremlin_graph_elements(g), g->q->container, body, &parts);
        gremlin_projection_add(g, e, g->head);
    } else if (of) {
        e = neighbour(g, &parts, g->entering);
    }
    for (size_t i = 0; e && i < n; i++) {
        gremlin_graph_found(g, of[i].index, e);
    }
}

/* A position is a letter, o or i, and where the find goes on. */
static void edges_read(gremlin_graph *g) {
    bool ended = !g->next.n, turns = ended && !g->entering && g->ask->direction == DIRECTION_BOTH;
    slice position = SLICE_EMPTY;
    if (!ended || turns) {
        position = arena_printf(&g->memory, "%c", g->entering || turns ? 'i' : 'o');
        char *bytes = arena_alloc(&g->memory, 1 + g->next.n);
        bytes[0] = position.p[0];
        memcpy(bytes + 1, g->next.n ? g->next.p : "", g->next.n);
        position = slice_of(bytes, 1 + g->next.n);
    }
    gremlin_graph_done(g, position);
}

void gremlin_read_edges(gremlin_graph *g, bool entering, slice from, size_t rows_max) {
    bool one = !entering && g->wanted_n > 0;
    for (size_t i = 1; one && i < g->wanted_n; i++) {
        one = slice_eq(g->wanted[i].place, g->wanted[0].place);
    }
    g->entering = entering;
    gremlin_graph_find(g, gremlin_where_edges(g, entering), one ? &g->wanted[0].place : NULL, from, rows_max);
}

void gremlin_read_adjacent(gremlin_graph *g) {
    const gremlin_ask *ask = g->ask;
    bool entering = ask->position.n ? ask->position.p[0] == 'i' : ask->direction == DIRECTION_IN;
    gremlin_graph_want(g, ask->elements, ask->element_n);
    if (g->wanted_n == 0) {
        gremlin_graph_done(g, SLICE_EMPTY);
        return;
    }
    g->take = take_edge;
    g->read = edges_read;
    size_t rows = ask->condition_n ? (ask->wanted ? ask->wanted : 512) : rows_of(ask);
    gremlin_read_edges(g, entering, ask->position.n ? slice_skip(ask->position, 1) : SLICE_EMPTY, rows);
}

/* ---- properties of references ---- */

void gremlin_read_load(gremlin_graph *g) {
    const gremlin_ask *ask = g->ask;
    slice id, *places = arena_array(&g->memory, slice, ask->element_n + 1);
    g->keys = arena_array(&g->memory, item_key, ask->element_n + 1);
    g->indexes = arena_array(&g->memory, size_t, ask->element_n + 1);
    for (size_t i = 0; i < ask->element_n; i++) {
        if (document_id(&g->memory, ask->elements[i]->id, &id)) {
            places[g->keys_n] = ask->elements[i]->place;
            add_key(g, ask->elements[i]->place, id, i);
        }
    }
    read_keys(g, places);
}

/* ---- places of elements that a client sent ---- */

static void take_place(gremlin_graph *g, slice body) {
    size_t n;
    document_parts parts;
    document_take_apart(g->q->container, body, &parts);
    const gremlin_wanted *of = gremlin_graph_match(g, parts.id, SLICE_EMPTY, true, &n);
    arena *a = gremlin_graph_elements(g);
    for (size_t i = 0; of && i < n; i++) {
        gremlin_element *e = of[i].element;
        if (e->is_edge == parts.is_edge) {
            e->place = document_place(a, g->q->container, &parts);
            e->label = arena_copy(a, parts.label);
        }
    }
}

static void places_read(gremlin_graph *g) {
    if (g->next.n) {
        gremlin_graph_find(g, g->where, NULL, g->next, 512);
        return;
    }
    g->wanted_n = 0;
    g->then(g);
}

static void note(gremlin_element **list, size_t *n, gremlin_element *e) {
    if (e && e->place.n == 0) {
        list[(*n)++] = e;
    }
}

static size_t list_strangers(gremlin_graph *g, gremlin_element ***list_out) {
    const gremlin_ask *ask = g->ask;
    size_t n = 0;
    gremlin_element **list = arena_array(&g->memory, gremlin_element *, ask->element_n + 3 * ask->target_n + 1);
    for (size_t i = 0; i < ask->element_n; i++) {
        note(list, &n, ask->elements[i]);
    }
    for (size_t i = 0; i < ask->target_n; i++) {
        note(list, &n, ask->targets[i].element);
        note(list, &n, ask->targets[i].out);
        note(list, &n, ask->targets[i].in);
    }
    *list_out = list;
    return n;
}

void gremlin_read_places(gremlin_graph *g, void (*then)(gremlin_graph *g)) {
    gremlin_element **list = NULL;
    size_t n = g->q->container->key.n ? list_strangers(g, &list) : 0;
    if (n == 0) {
        then(g);
        return;
    }
    gremlin_graph_want(g, list, n);
    slice *ids = arena_array(&g->memory, slice, n + 1);
    for (size_t i = 0; i < g->wanted_n; i++) {
        ids[i] = g->wanted[i].id;
    }
    g->where = gremlin_where_ids(g, ids, g->wanted_n);
    g->take = take_place;
    g->read = places_read;
    g->then = then;
    gremlin_graph_find(g, g->where, NULL, SLICE_EMPTY, 512);
}
