/* evaluate.c — what by() and nested conditions make of values; labels, paths and properties of traversers. */
#include "gremlin/machine_int.h"

const gremlin_by *gremlin__by(const gremlin_step *step, size_t i) {
    return step->by_n ? &step->bys[i % step->by_n] : NULL;
}

/* ---- values of elements ---- */

static bool property_of(const gremlin_property *at, size_t n, slice key, gremlin_value *value_out) {
    for (size_t i = 0; i < n; i++) {
        if (slice_eq(at[i].key, key)) {
            *value_out = at[i].value;
            return true;
        }
    }
    return false;
}

bool gremlin__property_value(gremlin_value v, slice key, gremlin_value *value_out) {
    if (gremlin_is_element(v)) {
        return property_of(v.element->properties, v.element->n, key, value_out);
    }
    if (v.type == GREMLIN_VERTEX_PROPERTY) {
        return property_of(v.property->metas, v.property->n, key, value_out);
    }
    const gremlin_value *found = gremlin_is_map(v) ? gremlin_map_get(v, gremlin_string(key)) : NULL;
    *value_out = found ? *found : gremlin_null();
    return found != NULL;
}

static gremlin_value no_token(gremlin_run *m, gremlin_value v, unsigned token) {
    (void)gremlin__fail(m, E_BAD_QUERY, "%s cannot give its %s", gremlin_type_name((gremlin_type)v.type),
                        gremlin_member_name(GREMLIN_T, token));
    return gremlin_null();
}

bool gremlin__token(gremlin_run *m, gremlin_value v, unsigned token, gremlin_value *value_out) {
    bool property = v.type == GREMLIN_VERTEX_PROPERTY || v.type == GREMLIN_PROPERTY;
    if (gremlin_is_element(v) && token == T_ID) {
        *value_out = v.element->id;
    } else if (gremlin_is_element(v) && token == T_LABEL) {
        *value_out = gremlin_string(v.element->label);
    } else if (property && token == T_ID) {
        *value_out = v.property->id;
    } else if (property && (token == T_KEY || token == T_LABEL)) {
        *value_out = gremlin_string(v.property->key);
    } else if (property) {
        *value_out = v.property->value;
    } else if (gremlin_is_map(v)) {
        const gremlin_value *found = gremlin_map_get(v, gremlin_member(GREMLIN_T, token));
        *value_out = found ? *found : gremlin_null();
        return found != NULL;
    } else {
        *value_out = no_token(m, v, token);
        return false;
    }
    return true;
}

static gremlin_value column_of(gremlin_run *m, gremlin_value v, unsigned column) {
    gremlin_items items = {0};
    if (v.type == GREMLIN_PATH) {
        for (size_t i = 0; i < v.path->n; i++) {
            gremlin_items labels = {0};
            for (size_t j = 0; j < v.path->labels[i].n; j++) {
                gremlin_items_add(&m->heap, &labels, gremlin_string(v.path->labels[i].at[j]));
            }
            gremlin_items_add(&m->heap, &items,
                              column == COLUMN_KEYS ? gremlin_items_list(&m->heap, &labels, GREMLIN_SET) : v.path->objects[i]);
        }
        return gremlin_items_list(&m->heap, &items, GREMLIN_LIST);
    }
    if (!gremlin_is_map(v)) {
        (void)gremlin__fail(m, E_BAD_QUERY, "The provided object does not have accessible %s: %s",
                            column == COLUMN_KEYS ? "keys" : "values", gremlin_type_name((gremlin_type)v.type));
        return gremlin_null();
    }
    if (v.map->is_entry) {
        return column == COLUMN_KEYS ? v.map->at[0].key : v.map->at[0].value;
    }
    for (size_t i = 0; i < v.map->n; i++) {
        gremlin_items_add(&m->heap, &items, column == COLUMN_KEYS ? v.map->at[i].key : v.map->at[i].value);
    }
    return gremlin_items_list(&m->heap, &items, column == COLUMN_KEYS ? GREMLIN_SET : GREMLIN_LIST);
}

/* by() without a traversal. */
static bool simple(gremlin_run *m, const gremlin_by *by, gremlin_value v, gremlin_value *out) {
    *out = v;
    switch (by ? by->kind : BY_IDENTITY) {
    case BY_KEY:
        return gremlin__property_value(v, by->key, out);
    case BY_TOKEN:
        return gremlin__token(m, v, by->member, out);
    case BY_COLUMN:
        *out = column_of(m, v, by->member);
        return true;
    default:
        return true;
    }
}

/* ---- subjects ---- */

void gremlin__subject_by(state *s, const traverser *in, gremlin_value value, const gremlin_by *by) {
    subject one = {.in = *in, .by = by, .traversal = by ? by->traversal : NULL};
    one.in.value = value;
    buf_add(&s->subjects, &one, sizeof one);
}

void gremlin__subject_traversal(state *s, const traverser *in, const gremlin_traversal *t) {
    subject one = {.in = *in, .traversal = t};
    buf_add(&s->subjects, &one, sizeof one);
}

void gremlin__subjects_clear(state *s) {
    buf_clear(&s->subjects);
}

static bool needs_properties(const subject *one) {
    return !one->traversal && one->by && one->by->kind == BY_KEY;
}

/* The elements whose properties a by(key) needs. */
static bool load_subjects(gremlin_run *m, state *s) {
    subject *at = subjects_at(s);
    bool wanted = false;
    for (size_t i = 0; i < subjects_n(s) && !wanted; i++) {
        wanted = needs_properties(&at[i]) && gremlin_is_element(at[i].in.value) && !at[i].in.value.element->loaded;
    }
    return !wanted || gremlin__loaded(m, s, &at->in.value, subjects_n(s), sizeof *at);
}

/* The results of the child that has run, for the subjects of its traversal in their order. */
static void take_results(state *s, const gremlin_traversal *t) {
    size_t tag = 0, n;
    for (size_t i = 0; i < subjects_n(s); i++) {
        subject *one = &subjects_at(s)[i];
        if (one->traversal == t && !one->done) {
            const traverser *found = results_of(s, tag++, &n);
            one->done = true;
            one->productive = n > 0;
            one->out = n ? found->value : gremlin_null();
        }
    }
}

static status run_next(gremlin_run *m, flow *f, state *s) {
    const gremlin_traversal *t = subjects_at(s)[s->subject_at].traversal;
    queue in = {.bytes = buf_init_counted(BUF_NO_LIMIT, m->op->budget)};
    for (size_t i = s->subject_at; i < subjects_n(s); i++) {
        const subject *one = &subjects_at(s)[i];
        if (one->traversal == t && !one->done) {
            gremlin__put(&in, &one->in);
        }
    }
    status st = gremlin__run_child(m, f, s, t, queue_at(&in), queue_n(&in), true);
    gremlin__queue_free(&in);
    return st;
}

static bool next_open(state *s) {
    for (s->subject_at = 0; s->subject_at < subjects_n(s); s->subject_at++) {
        if (!subjects_at(s)[s->subject_at].done) {
            return true;
        }
    }
    return false;
}

enum { EVALUATE_LOAD, EVALUATE_RUN, EVALUATE_TAKE };

status gremlin__evaluate(gremlin_run *m, flow *f, state *s) {
    if (s->evaluating == EVALUATE_LOAD) {
        if (subjects_n(s) && !load_subjects(m, s)) {
            return WAIT;
        }
        for (size_t i = 0; i < subjects_n(s); i++) {
            subject *one = &subjects_at(s)[i];
            if (!one->traversal) {
                one->done = true;
                one->productive = simple(m, one->by, one->in.value, &one->out);
            }
        }
    } else if (s->evaluating == EVALUATE_TAKE) {
        take_results(s, subjects_at(s)[s->subject_at].traversal);
    }
    if (m->failure != OK) {
        return FAILED;
    }
    bool open = next_open(s);
    s->evaluating = open ? EVALUATE_TAKE : EVALUATE_LOAD;
    return open ? run_next(m, f, s) : DONE;
}

status gremlin__with_subjects(gremlin_run *m, flow *f, state *s, void (*list)(gremlin_run *m, state *s, const traverser *t)) {
    if (s->phase == 0) {
        gremlin__subjects_clear(s);
        for (size_t i = 0; i < batch_n(s); i++) {
            list(m, s, &batch_at(s)[i]);
        }
        s->phase = 1;
    }
    return m->failure != OK ? FAILED : gremlin__evaluate(m, f, s);
}

/* ---- paths and labels ---- */

static bool has_label(const path_node *node, slice label) {
    for (size_t i = 0; i < node->labels.n; i++) {
        if (slice_eq(node->labels.at[i], label)) {
            return true;
        }
    }
    return false;
}

/* The nodes from the last `to` back to the last `from` before it; empty labels: no bound. */
gremlin_value gremlin__path_value(gremlin_run *m, const traverser *t, slice from, slice to) {
    const path_node *last = t->path;
    while (to.n && last && !has_label(last, to)) {
        last = last->prev;
    }
    size_t n = 0;
    for (const path_node *node = last; node; node = node->prev) {
        n++;
        if (from.n && has_label(node, from)) {
            break;
        }
    }
    gremlin_path *path = arena_new(&m->heap, gremlin_path);
    gremlin_value *objects = arena_array(&m->heap, gremlin_value, n + 1);
    gremlin_labels *labels = arena_array(&m->heap, gremlin_labels, n + 1);
    unsigned depth = 0, weight = 1;
    for (size_t i = n; i-- > 0; last = last->prev) {
        objects[i] = last->value;
        labels[i] = last->labels;
        depth = gremlin_depth(last->value) > depth ? gremlin_depth(last->value) : depth;
        weight = gremlin_heavier(weight, last->value);
    }
    *path = (gremlin_path){n, depth + 1, weight, objects, labels};
    return (gremlin_value){.type = GREMLIN_PATH, .path = path};
}

static bool select_from_path(gremlin_run *m, const traverser *t, slice label, unsigned pop, gremlin_value *value_out) {
    gremlin_items found = {0};
    for (const path_node *node = t->path; node; node = node->prev) {
        if (has_label(node, label)) {
            gremlin_items_add(&m->heap, &found, node->value);
            if (pop == POP_LAST) {
                break;
            }
        }
    }
    for (size_t i = 0; i < found.n / 2; i++) { /* oldest first */
        gremlin_value other = found.at[i];
        found.at[i] = found.at[found.n - 1 - i];
        found.at[found.n - 1 - i] = other;
    }
    if (found.n == 0) {
        return false;
    }
    bool list = pop == POP_ALL || (pop == POP_MIXED && found.n > 1);
    *value_out = list ? gremlin_items_list(&m->heap, &found, GREMLIN_LIST) : found.at[pop == POP_FIRST ? 0 : found.n - 1];
    return true;
}

bool gremlin__select(gremlin_run *m, const traverser *t, slice label, unsigned pop, gremlin_value *value_out) {
    if (gremlin_is_map(t->value)) {
        const gremlin_value *found = gremlin_map_get(t->value, gremlin_string(label));
        if (found) {
            *value_out = *found;
            return true;
        }
    }
    side *e = gremlin__side_find(m, label);
    if (e) {
        *value_out = gremlin__side_value(m, e);
        return true;
    }
    return select_from_path(m, t, label, pop, value_out);
}
