/* heap.c — memory of a run: copies everything that is still reachable to a new arena, and frees the old one.
 *
 * Objects are known by their addresses: a table from old address to new keeps shared objects shared, and ends at cycles (an element and the
 * properties that name it as their owner). */
#include <stdlib.h>

#include "base/memory.h"
#include "gremlin/machine_int.h"

typedef struct moved {
    const void *from;
    size_t n; /* of texts: two of them may begin at the same byte */
    void *to;
} moved;

typedef struct mover {
    arena *to;
    moved *slots;
    size_t n, cap;
} mover;

static size_t slot_at(const mover *c, const void *from, size_t n) {
    size_t at = (size_t)((((uintptr_t)from >> 3) + n) * 0x9E3779B97F4A7C15u >> 20) & (c->cap - 1);
    while (c->slots[at].from && (c->slots[at].from != from || c->slots[at].n != n)) {
        at = (at + 1) & (c->cap - 1);
    }
    return at;
}

static void grow(mover *c) {
    mover old = *c;
    c->cap = old.cap ? old.cap * 2 : 1024;
    c->slots = mem_zero(c->cap * sizeof *c->slots);
    for (size_t i = 0; i < old.cap; i++) {
        if (old.slots[i].from) {
            c->slots[slot_at(c, old.slots[i].from, old.slots[i].n)] = old.slots[i];
        }
    }
    free(old.slots);
}

static void *known_text(const mover *c, const void *from, size_t n) {
    return c->cap ? c->slots[slot_at(c, from, n)].to : NULL;
}

static void *note_text(mover *c, const void *from, size_t n, void *to) {
    if (c->n * 2 >= c->cap) {
        grow(c);
    }
    c->slots[slot_at(c, from, n)] = (moved){from, n, to};
    c->n++;
    return to;
}

static void *known(const mover *c, const void *from) {
    return known_text(c, from, 0);
}

static void *note(mover *c, const void *from, void *to) {
    return note_text(c, from, 0, to);
}

static gremlin_value move(mover *c, gremlin_value v);

/* Short texts are copied: that is cheaper than looking for them. */
static slice move_slice(mover *c, slice s) {
    if (s.n <= 64) {
        return s.n ? arena_copy(c->to, s) : SLICE_EMPTY;
    }
    const char *to = known_text(c, s.p, s.n);
    to = to ? to : note_text(c, s.p, s.n, (void *)(uintptr_t)arena_copy(c->to, s).p);
    return (slice){to, s.n};
}

static const gremlin_value *move_values(mover *c, const gremlin_value *at, size_t n) {
    gremlin_value *to = arena_alloc(c->to, n ? n * sizeof *to : 1);
    for (size_t i = 0; i < n; i++) {
        to[i] = move(c, at[i]);
    }
    return to;
}

static const gremlin_list *move_list(mover *c, const gremlin_list *from) {
    gremlin_list *to = known(c, from);
    if (to) {
        return to;
    }
    to = note(c, from, arena_new(c->to, gremlin_list));
    *to = *from;
    to->at = move_values(c, from->at, from->n);
    if (from->bulk) {
        int64_t *bulk = arena_alloc(c->to, from->n ? from->n * sizeof *bulk : 1);
        memcpy(bulk, from->bulk, from->n * sizeof *bulk);
        to->bulk = bulk;
    }
    return to;
}

static const gremlin_map *move_map(mover *c, const gremlin_map *from) {
    gremlin_map *to = known(c, from);
    if (to) {
        return to;
    }
    to = note(c, from, arena_new(c->to, gremlin_map));
    gremlin_pair *at = arena_alloc(c->to, from->n ? from->n * sizeof *at : 1);
    for (size_t i = 0; i < from->n; i++) {
        at[i] = (gremlin_pair){move(c, from->at[i].key), move(c, from->at[i].value)};
    }
    *to = *from;
    to->at = at;
    return to;
}

static gremlin_labels move_labels(mover *c, gremlin_labels from) {
    slice *at = from.n ? arena_alloc(c->to, from.n * sizeof *at) : NULL;
    for (size_t i = 0; i < from.n; i++) {
        at[i] = move_slice(c, from.at[i]);
    }
    return (gremlin_labels){from.n, at};
}

static const gremlin_path *move_path(mover *c, const gremlin_path *from) {
    gremlin_path *to = known(c, from);
    if (to) {
        return to;
    }
    to = note(c, from, arena_new(c->to, gremlin_path));
    gremlin_labels *labels = arena_alloc(c->to, from->n ? from->n * sizeof *labels : 1);
    *to = *from;
    to->objects = move_values(c, from->objects, from->n);
    for (size_t i = 0; i < from->n; i++) {
        labels[i] = move_labels(c, from->labels[i]);
    }
    to->labels = labels;
    return to;
}

static gremlin_element *move_element(mover *c, gremlin_element *from);

static void move_property(mover *c, const gremlin_property *from, gremlin_property *to) {
    *to = *from;
    to->id = move(c, from->id);
    to->key = move_slice(c, from->key);
    to->value = move(c, from->value);
    to->owner = from->owner ? move_element(c, (gremlin_element *)(uintptr_t)from->owner) : NULL;
    gremlin_property *metas = from->n ? arena_alloc(c->to, from->n * sizeof *metas) : NULL;
    for (size_t i = 0; i < from->n; i++) {
        (void)note(c, &from->metas[i], &metas[i]);
        move_property(c, &from->metas[i], &metas[i]);
    }
    to->metas = metas;
}

static gremlin_element *move_element(mover *c, gremlin_element *from) {
    gremlin_element *to = known(c, from);
    if (to) {
        return to;
    }
    to = note(c, from, arena_new(c->to, gremlin_element));
    *to = *from;
    to->id = move(c, from->id);
    to->label = move_slice(c, from->label);
    to->place = move_slice(c, from->place);
    to->out = from->out ? move_element(c, from->out) : NULL;
    to->in = from->in ? move_element(c, from->in) : NULL;
    gremlin_property *properties = from->n ? arena_alloc(c->to, from->n * sizeof *properties) : NULL;
    to->properties = properties;
    for (size_t i = 0; i < from->n; i++) {
        (void)note(c, &from->properties[i], &properties[i]);
        move_property(c, &from->properties[i], &properties[i]);
    }
    return to;
}

/* A property that is not in its owner's list: a copy of it, or the owner changed since. */
static const gremlin_property *move_lone_property(mover *c, const gremlin_property *from) {
    gremlin_property *to = known(c, from);
    if (!to && from->owner) {
        (void)move_element(c, (gremlin_element *)(uintptr_t)from->owner);
        to = known(c, from);
    }
    if (!to) {
        to = note(c, from, arena_new(c->to, gremlin_property));
        move_property(c, from, to);
    }
    return to;
}

static const gremlin_subgraph *move_subgraph(mover *c, const gremlin_subgraph *from) {
    gremlin_subgraph *to = known(c, from);
    if (!to) {
        to = note(c, from, arena_new(c->to, gremlin_subgraph));
        *to = *from;
        to->vertices.at = move_values(c, from->vertices.at, from->vertices.n);
        to->edges.at = move_values(c, from->edges.at, from->edges.n);
    }
    return to;
}

static const gremlin_traverser *move_traverser(mover *c, const gremlin_traverser *from) {
    gremlin_traverser *to = arena_new(c->to, gremlin_traverser);
    *to = (gremlin_traverser){move(c, from->value), from->bulk};
    return to;
}

static gremlin_value move(mover *c, gremlin_value v) {
    switch (v.type) {
    case GREMLIN_STRING:
    case GREMLIN_BINARY:
        v.p = move_slice(c, gremlin_text(v)).p;
        break;
    case GREMLIN_UUID:
        v.uuid = (const uint8_t *)arena_copy(c->to, slice_of(v.uuid, 16)).p;
        break;
    case GREMLIN_BIGINT:
    case GREMLIN_DECIMAL:
        v = v.type == GREMLIN_DECIMAL ? gremlin_decimal(c->to, *v.wide) : gremlin_big(c->to, gremlin_as_big(v));
        break;
    case GREMLIN_DURATION:
        v = gremlin_duration_of(c->to, v.duration->seconds, v.duration->nanos);
        break;
    case GREMLIN_LIST:
    case GREMLIN_SET:
    case GREMLIN_BULKSET:
        v.list = move_list(c, v.list);
        break;
    case GREMLIN_MAP:
    case GREMLIN_TREE:
        v.map = move_map(c, v.map);
        break;
    case GREMLIN_PATH:
        v.path = move_path(c, v.path);
        break;
    case GREMLIN_VERTEX:
    case GREMLIN_EDGE:
        v.element = move_element(c, v.element);
        break;
    case GREMLIN_VERTEX_PROPERTY:
    case GREMLIN_PROPERTY:
        v.property = move_lone_property(c, v.property);
        break;
    case GREMLIN_SUBGRAPH:
        v.subgraph = move_subgraph(c, v.subgraph);
        break;
    case GREMLIN_TRAVERSER:
        v.traverser = move_traverser(c, v.traverser);
        break;
    default:
        break;
    }
    return v;
}

gremlin_value gremlin_copy(arena *a, gremlin_value v) {
    mover c = {.to = a};
    gremlin_value copy = move(&c, v);
    free(c.slots);
    return copy;
}

/* ---- what a run can reach ---- */

/* Paths may be long: from the newest node back to the first that is known, without recursion. */
static const path_node *move_nodes(mover *c, const path_node *from) {
    const path_node *first = NULL;
    path_node *last = NULL;
    while (from) {
        path_node *to = known(c, from);
        bool met = to != NULL;
        if (!met) {
            to = note(c, from, arena_new(c->to, path_node));
            *to = *from;
            to->value = move(c, from->value);
        }
        if (last) {
            last->prev = to;
        }
        first = first ? first : to;
        if (met) {
            break;
        }
        last = to;
        from = from->prev;
    }
    return first;
}

static const loop_mark *move_loops(mover *c, const loop_mark *from) {
    loop_mark *to = from ? known(c, from) : NULL;
    if (!from || to) {
        return to;
    }
    to = note(c, from, arena_new(c->to, loop_mark));
    *to = *from;
    to->outer = move_loops(c, from->outer);
    return to;
}

static void move_traverser_parts(mover *c, traverser *t) {
    t->value = move(c, t->value);
    t->sack = move(c, t->sack);
    t->path = move_nodes(c, t->path);
    t->loops = move_loops(c, t->loops);
}

static void move_queue(mover *c, queue *q) {
    for (size_t i = 0; i < queue_n(q); i++) {
        move_traverser_parts(c, queue_at(q) + i);
    }
}

static void move_table(mover *c, table *t) {
    for (size_t i = 0; i < table_n(t); i++) {
        entry *e = &table_at(t)[i];
        e->key = move(c, e->key);
        e->value = move(c, e->value);
        e->items.at = (gremlin_value *)(uintptr_t)move_values(c, e->items.at, e->items.n);
        e->items.cap = e->items.n;
    }
}

static void move_flow(mover *c, flow *f);

static void move_state(mover *c, state *s) {
    move_queue(c, &s->in);
    move_queue(c, &s->batch);
    move_queue(c, &s->results);
    move_queue(c, &s->kept);
    move_table(c, &s->table);
    s->position = move_slice(c, s->position);
    for (size_t i = 0; i < subjects_n(s); i++) {
        move_traverser_parts(c, &subjects_at(s)[i].in);
        subjects_at(s)[i].out = move(c, subjects_at(s)[i].out);
    }
    if (s->body) {
        move_flow(c, s->body);
    }
}

static void move_flow(mover *c, flow *f) {
    move_queue(c, &f->out);
    for (size_t i = 0; i < f->n; i++) {
        move_state(c, &f->states[i]);
    }
}

enum { COLLECT_AT_LEAST = 4 * 1024 * 1024 };

void gremlin__collect(gremlin_run *m) {
    if (m->heap.held < COLLECT_AT_LEAST || m->heap.held < 2 * m->collected_held) {
        return;
    }
    arena to = arena_init_counted(m->op->budget);
    bool exceeded = m->op->budget && m->op->budget->exceeded;
    mover c = {.to = &to};
    for (flow *f = m->top; f; f = f->parent) {
        if (!f->stays) { /* a body is moved by the state that owns it */
            move_flow(&c, f);
        }
    }
    for (side *e = m->sides; e; e = e->next) {
        e->value = move(&c, e->value);
        move_table(&c, &e->table);
        move_queue(&c, &e->kept);
    }
    move_table(&c, &m->seen);
    free(c.slots);
    arena_free(&m->heap);
    m->heap = to;
    m->collected_held = to.held;
    if (m->op->budget && !exceeded && m->op->budget->used <= m->op->budget->max) {
        budget_renew(m->op->budget); /* only the two copies together were too large */
    }
}
