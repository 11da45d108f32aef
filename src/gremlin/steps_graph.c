/* steps_graph.c — steps that read the graph: V, E, out and its relatives, the ends of edges; has(). */
#include <stdlib.h>

#include "gremlin/steps_int.h"

/* ---- V(), E() ---- */

/* V(ids): lists among the ids are taken apart, except pairs of partition key and id. */
static void list_ids(gremlin_run *m, const gremlin_step *step) {
    bool edges = step->op == GREMLIN_E_STEP;
    gremlin_items ids = {0};
    for (size_t i = 0; i < step->n; i++) {
        gremlin_value id = step->args[i];
        bool pair = gremlin_is_list(id) && id.list->n == 2 && !gremlin_is_element(id.list->at[0]);
        if (!gremlin_is_list(id) || pair) {
            gremlin_items_add(&m->heap, &ids, id);
        }
        for (size_t j = 0; gremlin_is_list(id) && !pair && j < id.list->n; j++) {
            gremlin_items_add(&m->heap, &ids, id.list->at[j]);
        }
    }
    m->ask.edges = edges;
    m->ask.by_ids = step->n > 0;
    m->ask.id_n = ids.n;
    m->ask.ids = ids.at;
}

enum { FIRST_PAGE = 128, LARGEST_PAGE = 4096 };

/* The step's own conditions and, of vertices, the one that holds everywhere. */
static void list_conditions(gremlin_run *m, const gremlin_step *step) {
    m->ask.conditions = step->conditions;
    m->ask.condition_n = step->condition_n;
    if (m->everywhere.key.n && !m->ask.edges) {
        gremlin_condition *all = arena_array(&m->heap, gremlin_condition, step->condition_n + 1);
        if (step->condition_n) {
            memcpy(all, step->conditions, step->condition_n * sizeof *all);
        }
        all[m->ask.condition_n++] = m->everywhere;
        m->ask.conditions = all;
    }
}

static status find(gremlin_run *m, state *s) {
    gremlin__ask_begin(m, GREMLIN_ASK_FIND);
    list_ids(m, s->step);
    list_conditions(m, s->step);
    m->ask.limit = batch_n(s) == 1 ? s->step->limit : -1;
    s->number = s->number ? s->number * 2 : FIRST_PAGE;
    s->number = s->number < LARGEST_PAGE ? s->number : LARGEST_PAGE;
    m->ask.wanted = m->ask.limit >= 0 && m->ask.limit < s->number ? (size_t)m->ask.limit : (size_t)s->number;
    m->ask.position = s->position;
    s->asks++;
    return gremlin__ask_send(m);
}

static bool tests_properties(const gremlin_step *step) {
    for (size_t i = 0; i < step->condition_n; i++) {
        if (step->conditions[i].kind == HAS_PROPERTY) {
            return true;
        }
    }
    return false;
}

/* Keeps the answers in s->kept: their tag is the index. So they can be loaded before they are tested. */
static void keep_answers(gremlin_run *m, state *s) {
    for (size_t i = 0; i < answers_n(m); i++) {
        traverser t = gremlin__fresh((uint32_t)answers_at(m)[i].index, gremlin_of_element(answers_at(m)[i].element));
        gremlin__put(&s->kept, &t);
    }
    s->position = m->answer_end;
}

static bool kept_loaded(gremlin_run *m, state *s) {
    return (!tests_properties(s->step) && !m->everywhere.key.n) || !queue_n(&s->kept) ||
           gremlin__loaded(m, s, &queue_at(&s->kept)->value, queue_n(&s->kept), sizeof(traverser));
}

static bool fulfils(const gremlin_run *m, const state *s, gremlin_value v) {
    if (m->everywhere.key.n && v.type == GREMLIN_VERTEX && !gremlin_fulfils(v.element, &m->everywhere, 1)) {
        return false;
    }
    return gremlin_fulfils(v.element, s->step->conditions, s->step->condition_n);
}

enum { FIND_ASK, FIND_TAKE, FIND_LOAD };

status gremlin__step_v(gremlin_run *m, flow *f, state *s) {
    if (s->phase == FIND_ASK) {
        if (batch_n(s) == 0) {
            return DONE;
        }
        s->phase = FIND_TAKE;
        return find(m, s);
    }
    if (s->phase == FIND_TAKE) {
        gremlin__queue_clear(&s->kept);
        keep_answers(m, s);
        s->phase = FIND_LOAD;
    }
    if (!kept_loaded(m, s)) {
        return WAIT;
    }
    for (size_t i = 0; i < batch_n(s); i++) {
        for (size_t j = 0; j < queue_n(&s->kept); j++) {
            gremlin_value v = queue_at(&s->kept)[j].value;
            if (fulfils(m, s, v)) {
                gremlin__emit_value(m, f, s, &batch_at(s)[i], v);
            }
        }
    }
    gremlin__queue_clear(&s->kept);
    if (s->position.n == 0) {
        return DONE;
    }
    s->phase = FIND_ASK;
    return YIELD;
}

/* ---- out(), in(), both() and their edges ---- */

static unsigned direction_of(const gremlin_step *step) {
    switch (step->op) {
    case GREMLIN_OUT_STEP:
    case GREMLIN_OUT_E_STEP:
        return DIRECTION_OUT;
    case GREMLIN_IN_STEP:
    case GREMLIN_IN_E_STEP:
        return DIRECTION_IN;
    case GREMLIN_TO_STEP:
    case GREMLIN_TO_E_STEP:
        return step->args[0].n;
    default:
        return DIRECTION_BOTH;
    }
}

static bool wants_edges(gremlin_op op) {
    return op == GREMLIN_OUT_E_STEP || op == GREMLIN_IN_E_STEP || op == GREMLIN_BOTH_E_STEP || op == GREMLIN_TO_E_STEP;
}

static void list_labels(gremlin_run *m, const gremlin_step *step) {
    size_t from = step->op == GREMLIN_TO_STEP || step->op == GREMLIN_TO_E_STEP ? 1 : 0;
    slice *labels = arena_array(&m->heap, slice, step->n + 1);
    for (size_t i = from; i < step->n; i++) {
        if (step->args[i].type == GREMLIN_STRING) {
            labels[m->ask.label_n++] = gremlin_text(step->args[i]);
        }
    }
    m->ask.labels = labels;
    if (step->n > from && m->ask.label_n == 0) { /* only null: no label is null */
        labels[m->ask.label_n++] = SLICE_LIT("\xff");
    }
}

static status adjacent(gremlin_run *m, state *s) {
    gremlin__ask_begin(m, GREMLIN_ASK_ADJACENT);
    for (size_t i = 0; i < batch_n(s); i++) {
        if (batch_at(s)[i].value.type != GREMLIN_VERTEX) {
            return gremlin__fail(m, E_BAD_QUERY, "%s() needs vertices, but got a value of the type %s", gremlin_op_name(s->step->op),
                                 gremlin_type_name((gremlin_type)batch_at(s)[i].value.type));
        }
        (void)gremlin__ask_add(m, &batch_at(s)[i].value.element, sizeof(gremlin_element *));
    }
    m->ask.elements = (gremlin_element *const *)(void *)m->ask_room.p;
    m->ask.element_n = batch_n(s);
    m->ask.direction = direction_of(s->step);
    m->ask.edges = wants_edges(s->step->op);
    list_labels(m, s->step);
    list_conditions(m, s->step);
    m->ask.limit = batch_n(s) == 1 ? s->step->limit : -1;
    m->ask.position = s->position;
    s->asks++;
    return gremlin__ask_send(m);
}

static bool is_sorted(const queue *q) {
    bool sorted = true;
    for (size_t i = 1; i < queue_n(q) && sorted; i++) {
        sorted = queue_at(q)[i - 1].tag <= queue_at(q)[i].tag;
    }
    return sorted;
}

/* Answers come in any order: those of each of the `tags` vertices are put together, in the order in which they came. */
static void sort_kept(state *s, size_t tags) {
    size_t n = queue_n(&s->kept);
    gremlin__queue_clear(&s->results);
    if (is_sorted(&s->kept) || !buf_reserve(&s->offsets, (tags + 1) * sizeof(uint32_t)) ||
        !buf_reserve(&s->results.bytes, n * sizeof(traverser))) {
        return;
    }
    const traverser *from = queue_at(&s->kept);
    traverser *to = (traverser *)(void *)s->results.bytes.p;
    uint32_t *offsets = (uint32_t *)(void *)s->offsets.p;
    memset(offsets, 0, (tags + 1) * sizeof *offsets);
    for (size_t i = 0; i < n; i++) {
        offsets[from[i].tag + 1]++;
    }
    for (size_t i = 1; i <= tags; i++) {
        offsets[i] += offsets[i - 1];
    }
    for (size_t i = 0; i < n; i++) {
        to[offsets[from[i].tag]++] = from[i];
    }
    s->results.bytes.n = n * sizeof *to;
    queue sorted = s->results;
    s->results = s->kept;
    s->kept = sorted;
    gremlin__queue_clear(&s->results);
}

status gremlin__step_adjacent(gremlin_run *m, flow *f, state *s) {
    if (s->phase == FIND_ASK) {
        s->phase = FIND_TAKE;
        return batch_n(s) ? adjacent(m, s) : DONE;
    }
    if (s->phase == FIND_TAKE) {
        gremlin__queue_clear(&s->kept);
        keep_answers(m, s);
        sort_kept(s, batch_n(s));
        s->phase = FIND_LOAD;
    }
    if (!kept_loaded(m, s)) {
        return WAIT;
    }
    for (size_t i = 0; i < queue_n(&s->kept); i++) {
        const traverser *found = &queue_at(&s->kept)[i];
        if (fulfils(m, s, found->value)) {
            gremlin__emit_value(m, f, s, &batch_at(s)[found->tag], found->value);
        }
    }
    gremlin__queue_clear(&s->kept);
    if (s->position.n == 0) {
        return DONE;
    }
    s->phase = FIND_ASK;
    return YIELD;
}

/* ---- the vertices of edges ---- */

status gremlin__step_ends(gremlin_run *m, flow *f, state *s) {
    gremlin_op op = s->step->op;
    unsigned direction = op == GREMLIN_OUT_V_STEP  ? DIRECTION_OUT
                         : op == GREMLIN_IN_V_STEP ? DIRECTION_IN
                         : op == GREMLIN_TO_V_STEP ? s->step->args[0].n
                                                   : DIRECTION_BOTH;
    for (size_t i = 0; i < batch_n(s); i++) {
        const traverser *t = &batch_at(s)[i];
        if (t->value.type != GREMLIN_EDGE) {
            return gremlin__fail(m, E_BAD_QUERY, "%s() needs edges, but got a value of the type %s", gremlin_op_name(op),
                                 gremlin_type_name((gremlin_type)t->value.type));
        }
        if (direction != DIRECTION_IN) {
            gremlin__emit_value(m, f, s, t, gremlin_of_element(t->value.element->out));
        }
        if (direction != DIRECTION_OUT) {
            gremlin__emit_value(m, f, s, t, gremlin_of_element(t->value.element->in));
        }
    }
    return DONE;
}

/* The vertex from which the edge was reached is the last one before it in the path. */
status gremlin__step_other_v(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        const traverser *t = &batch_at(s)[i];
        if (t->value.type != GREMLIN_EDGE) {
            return gremlin__fail(m, E_BAD_QUERY, "otherV() needs edges, but got a value of the type %s",
                                 gremlin_type_name((gremlin_type)t->value.type));
        }
        const gremlin_element *e = t->value.element;
        const path_node *node = t->path;
        while (node && node->value.type != GREMLIN_VERTEX) {
            node = node->prev;
        }
        if (!node) {
            return gremlin__fail(m, E_BAD_QUERY, "otherV() needs an edge that was reached from a vertex");
        }
        bool from_out = gremlin_same(gremlin_of_element(e->out), node->value);
        gremlin__emit_value(m, f, s, t, gremlin_of_element(from_out ? e->in : e->out));
    }
    return DONE;
}

/* ---- has() ---- */

static bool has_of_property(const gremlin_property *p, const gremlin_condition *c, gremlin_type type) {
    gremlin_value v = c->token == T_KEY || c->token == T_LABEL ? gremlin_string(p->key) : c->token == T_VALUE ? p->value : p->id;
    if (c->kind == HAS_TOKEN) {
        return gremlin_test(c->predicate, v);
    }
    bool found = type == GREMLIN_VERTEX_PROPERTY &&
                 gremlin__property_value((gremlin_value){.type = GREMLIN_VERTEX_PROPERTY, .property = p}, c->key, &v);
    return found ? !c->absent && (!c->predicate || gremlin_test(c->predicate, v)) : c->absent;
}

static bool has_one(gremlin_value v, const gremlin_condition *c) {
    if (gremlin_is_element(v)) {
        return gremlin_fulfils(v.element, c, 1);
    }
    if (v.type == GREMLIN_VERTEX_PROPERTY || v.type == GREMLIN_PROPERTY) {
        return has_of_property(v.property, c, (gremlin_type)v.type);
    }
    return false;
}

status gremlin__step_has(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        bool all = true;
        for (size_t j = 0; j < s->step->condition_n && all; j++) {
            all = has_one(batch_at(s)[i].value, &s->step->conditions[j]);
        }
        if (all) {
            gremlin__pass(m, f, s, &batch_at(s)[i]);
        }
    }
    return DONE;
}

/* ---- inject(), call() ---- */

status gremlin__step_inject(gremlin_run *m, flow *f, state *s) {
    if (!s->number) { /* the injected values come first, once for each tag */
        s->number = 1;
        for (uint32_t tag = 0; tag < f->tags; tag++) {
            for (size_t i = 0; i < s->step->n; i++) {
                traverser t = gremlin__fresh(tag, gremlin_null());
                t.sack = batch_n(s) ? batch_at(s)->sack : gremlin_null();
                gremlin__emit_value(m, f, s, &t, s->step->args[i]);
            }
        }
    }
    for (size_t i = 0; i < batch_n(s); i++) {
        if (!batch_at(s)[i].seed) {
            gremlin__pass(m, f, s, &batch_at(s)[i]);
        }
    }
    return DONE;
}

status gremlin__step_call(gremlin_run *m, flow *f, state *s) {
    (void)f;
    slice name = s->step->n ? gremlin_text(s->step->args[0]) : SLICE_LIT("--list");
    if (slice_eq(name, SLICE_LIT("--list"))) {
        return DONE; /* there are no services */
    }
    return gremlin__fail(m, E_BAD_QUERY, "Unrecognized service: %.*s", slice_shown(name), name.p);
}
