/* ask.c — asking the graph and taking its answers; making elements. */
#include "gremlin/machine_int.h"

void gremlin__ask_begin(gremlin_run *m, gremlin_ask_kind kind) {
    buf_clear(&m->ask_room);
    buf_clear(&m->answers);
    m->ask = (gremlin_ask){.kind = kind, .limit = -1, .wanted = m->options.batch};
    m->answer_end = SLICE_EMPTY;
}

void *gremlin__ask_add(gremlin_run *m, const void *item, size_t size) {
    buf_add(&m->ask_room, item, size);
    return m->ask_room.p;
}

status gremlin__ask_send(gremlin_run *m) {
    m->asking = true;
    m->answered = false;
    return WAIT;
}

const gremlin_ask *gremlin_run_ask(const gremlin_run *m) {
    return &m->ask;
}

arena *gremlin_answer_arena(gremlin_run *m) {
    return &m->heap;
}

/* ---- loading ---- */

static void want(gremlin_run *m, gremlin_element *e) {
    bool is_new = false;
    if (e->loaded) {
        return;
    }
    entry *known = gremlin__entry(&m->loads, 0, gremlin_of_element(e), &is_new);
    if (!known) {
        return;
    }
    if (is_new) {
        known->n = (int64_t)m->ask.element_n++;
        (void)gremlin__ask_add(m, &e, sizeof e);
    }
    answer_entry pair = {(size_t)known->n, e};
    buf_add(&m->load_pairs, &pair, sizeof pair);
}

static void want_all(gremlin_run *m, gremlin_value v);

static void want_map(gremlin_run *m, const gremlin_map *map) {
    for (size_t i = 0; i < map->n; i++) {
        want_all(m, map->at[i].key);
        want_all(m, map->at[i].value);
    }
}

static void want_values(gremlin_run *m, const gremlin_value *at, size_t n) {
    for (size_t i = 0; i < n; i++) {
        want_all(m, at[i]);
    }
}

/* Elements anywhere in a result. */
static void want_all(gremlin_run *m, gremlin_value v) {
    if (gremlin_is_element(v)) {
        want(m, v.element);
    } else if (gremlin_is_list(v)) {
        want_values(m, v.list->at, v.list->n);
    } else if (gremlin_is_map(v)) {
        want_map(m, v.map);
    } else if (v.type == GREMLIN_PATH) {
        want_values(m, v.path->objects, v.path->n);
    } else if (v.type == GREMLIN_SUBGRAPH) {
        want_values(m, v.subgraph->vertices.at, v.subgraph->vertices.n);
        want_values(m, v.subgraph->edges.at, v.subgraph->edges.n);
    }
}

bool gremlin__loaded(gremlin_run *m, state *s, const gremlin_value *values, size_t n, size_t stride) {
    gremlin__ask_begin(m, GREMLIN_ASK_LOAD);
    gremlin__table_clear(&m->loads);
    buf_clear(&m->load_pairs);
    for (size_t i = 0; i < n; i++) {
        gremlin_value v = *(const gremlin_value *)(const void *)((const char *)values + i * stride);
        if (!s) {
            want_all(m, v);
        } else if (gremlin_is_element(v)) {
            want(m, v.element);
        }
    }
    if (m->ask.element_n == 0) {
        return true;
    }
    m->ask.elements = (gremlin_element *const *)(void *)m->ask_room.p;
    if (s) {
        s->asks++;
    }
    (void)gremlin__ask_send(m);
    return false;
}

/* The element takes over label and properties of what the graph has read. */
void gremlin__complete(gremlin_run *m, gremlin_element *e, const gremlin_element *read) {
    e->loaded = true;
    if (!read || read == e) {
        return;
    }
    gremlin_property *properties = arena_array(&m->heap, gremlin_property, read->n ? read->n : 1);
    for (size_t i = 0; i < read->n; i++) {
        properties[i] = read->properties[i];
        properties[i].owner = e;
    }
    e->n = read->n;
    e->properties = properties;
    e->label = read->label.n ? read->label : e->label;
}

static void complete_all(gremlin_run *m) {
    const answer_entry *pairs = (const answer_entry *)(const void *)m->load_pairs.p;
    size_t n = m->load_pairs.n / sizeof *pairs;
    const gremlin_element **read = arena_array(&m->heap, const gremlin_element *, m->ask.element_n + 1);
    for (size_t i = 0; i < answers_n(m); i++) {
        read[answers_at(m)[i].index] = answers_at(m)[i].element;
    }
    for (size_t i = 0; i < n; i++) {
        gremlin__complete(m, pairs[i].element, read[pairs[i].index]);
    }
}

/* ---- answers ---- */

static size_t indexes_of(const gremlin_ask *a) {
    return a->kind == GREMLIN_ASK_FIND ? 1 : a->kind == GREMLIN_ASK_ADJACENT || a->kind == GREMLIN_ASK_LOAD ? a->element_n : a->target_n;
}

void gremlin_answer_element(gremlin_run *m, size_t index, gremlin_element *e) {
    answer_entry entry = {index, e};
    if (m->asking && index < indexes_of(&m->ask)) {
        buf_add(&m->answers, &entry, sizeof entry);
    }
}

void gremlin_answer_end(gremlin_run *m, slice position) {
    m->answer_end = position.n ? arena_copy(&m->heap, position) : SLICE_EMPTY;
    m->asking = false;
    m->answered = true;
    if (m->ask.kind == GREMLIN_ASK_LOAD) {
        complete_all(m);
    }
}

void gremlin_answer_failure(gremlin_run *m, err e) {
    m->asking = false;
    m->failure = e;
}

/* ---- elements ---- */

gremlin_element *gremlin_make_vertex(arena *a, gremlin_value id, slice label) {
    gremlin_element *e = arena_new(a, gremlin_element);
    *e = (gremlin_element){.id = gremlin_copy(a, id), .label = arena_copy(a, label), .loaded = true};
    return e;
}

gremlin_element *gremlin_make_edge(arena *a, gremlin_value id, slice label, gremlin_element *out, gremlin_element *in) {
    gremlin_element *e = gremlin_make_vertex(a, id, label);
    e->is_edge = true;
    e->out = out;
    e->in = in;
    return e;
}

/* Arrays double when their length is a power of two. */
static gremlin_property *grown(arena *a, const gremlin_property *at, size_t n) {
    if (n & (n - 1)) {
        return (gremlin_property *)(uintptr_t)at;
    }
    gremlin_property *to = arena_array(a, gremlin_property, n ? 2 * n : 1);
    if (n) {
        memcpy(to, at, n * sizeof *to);
    }
    return to;
}

gremlin_property *gremlin_make_property(arena *a, gremlin_element *e, gremlin_value id, slice key, gremlin_value value) {
    gremlin_property *at = grown(a, e->properties, e->n);
    at[e->n] = (gremlin_property){.id = gremlin_copy(a, id), .key = arena_copy(a, key), .value = gremlin_copy(a, value), .owner = e};
    e->properties = at;
    return &at[e->n++];
}

void gremlin_make_meta(arena *a, gremlin_property *p, slice key, gremlin_value value) {
    gremlin_property *at = grown(a, p->metas, p->n);
    at[p->n++] = (gremlin_property){.key = arena_copy(a, key), .value = gremlin_copy(a, value)};
    p->metas = at;
}

/* ---- conditions ---- */

static bool test_value(const gremlin_condition *c, gremlin_value v) {
    return !c->predicate || gremlin_test(c->predicate, v);
}

static bool test_property(const gremlin_element *e, const gremlin_condition *c) {
    for (size_t i = 0; i < e->n; i++) {
        if (slice_eq(e->properties[i].key, c->key) && (c->absent || test_value(c, e->properties[i].value))) {
            return !c->absent;
        }
    }
    return c->absent;
}

static bool is_text_kind(gremlin_value v) {
    return v.type == GREMLIN_STRING || gremlin_is_number(v);
}

/* Ids compare by their text too: '1' finds the vertex with id 1, as users write both. A pair [partition key, id] is compared by its
 * id: the graph has found the element by the whole pair. */
static bool same_id(gremlin_value id, gremlin_value wanted) {
    if (gremlin_is_element(wanted)) {
        wanted = wanted.element->id;
    }
    if (gremlin_is_list(wanted) && wanted.list->n == 2) {
        wanted = wanted.list->at[1];
    }
    if (gremlin_equal(id, wanted) || !is_text_kind(id) || !is_text_kind(wanted) || id.type == wanted.type) {
        return gremlin_equal(id, wanted);
    }
    buf a = buf_init(64), b = buf_init(64);
    gremlin_show(&a, id);
    gremlin_show(&b, wanted);
    bool same = buf_ok(&a) && buf_ok(&b) && slice_eq(buf_view(&a), buf_view(&b));
    buf_free(&a);
    buf_free(&b);
    return same;
}

static bool test_id(gremlin_value id, const gremlin_predicate *p) {
    if (p->kind != P_EQ && p->kind != P_WITHIN) {
        return gremlin_test(p, id);
    }
    for (size_t i = 0; i < p->n; i++) {
        if (same_id(id, p->values[i])) {
            return true;
        }
    }
    return false;
}

static bool test_token(const gremlin_element *e, const gremlin_condition *c) {
    return c->token == T_ID      ? test_id(e->id, c->predicate)
           : c->token == T_LABEL ? gremlin_test(c->predicate, gremlin_string(e->label))
                                 : false;
}

bool gremlin_fulfils(const gremlin_element *e, const gremlin_condition *conditions, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (conditions[i].kind == HAS_TOKEN ? !test_token(e, &conditions[i]) : !test_property(e, &conditions[i])) {
            return false;
        }
    }
    return true;
}
