/* steps_map.c — steps that make one value of another: ids, properties, maps of them, selections, paths. */
#include "gremlin/steps_int.h"

void gremlin__items_of(gremlin_run *m, gremlin_value v, gremlin_items *items_out) {
    if (v.type == GREMLIN_PATH) {
        for (size_t i = 0; i < v.path->n; i++) {
            gremlin_items_add(&m->heap, items_out, v.path->objects[i]);
        }
        return;
    }
    if (!gremlin_is_list(v)) {
        gremlin_items_add(&m->heap, items_out, v);
        return;
    }
    for (size_t i = 0; i < v.list->n; i++) {
        int64_t bulk = v.list->bulk ? v.list->bulk[i] : 1;
        for (int64_t j = 0; j < bulk && !gremlin__is_out_of_memory(m); j++) {
            gremlin_items_add(&m->heap, items_out, v.list->at[i]);
        }
    }
}

slice gremlin__shown(gremlin_run *m, gremlin_value v) {
    buf out = buf_init_counted(BUF_NO_LIMIT, m->op->budget);
    gremlin_show(&out, v);
    slice text = buf_ok(&out) ? arena_copy(&m->heap, buf_view(&out)) : SLICE_EMPTY;
    buf_free(&out);
    return text;
}

/* ---- id(), label(), key(), value(), constant() ---- */

status gremlin__step_token(gremlin_run *m, flow *f, state *s) {
    gremlin_op op = s->step->op;
    unsigned token = op == GREMLIN_ID_STEP ? T_ID : op == GREMLIN_LABEL_STEP ? T_LABEL : op == GREMLIN_KEY_STEP ? T_KEY : T_VALUE;
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_value v;
        if (gremlin__token(m, batch_at(s)[i].value, token, &v)) {
            gremlin__emit_value(m, f, s, &batch_at(s)[i], v);
        }
    }
    return DONE;
}

status gremlin__step_constant(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin__emit_value(m, f, s, &batch_at(s)[i], s->step->args[0]);
    }
    return DONE;
}

/* ---- values(), properties() ---- */

static bool is_wanted(const gremlin_step *step, slice key) {
    bool all = true;
    for (size_t i = 0; i < step->n; i++) {
        if (step->args[i].type == GREMLIN_STRING) {
            all = false;
            if (slice_eq(gremlin_text(step->args[i]), key)) {
                return true;
            }
        }
    }
    return all;
}

static gremlin_value property_value(const gremlin_property *p, bool of_vertex) {
    return (gremlin_value){.type = of_vertex ? GREMLIN_VERTEX_PROPERTY : GREMLIN_PROPERTY, .property = p};
}

static bool properties_of(gremlin_value v, const gremlin_property **at_out, size_t *n_out) {
    if (gremlin_is_element(v)) {
        *at_out = v.element->properties;
        *n_out = v.element->n;
        return true;
    }
    if (v.type == GREMLIN_VERTEX_PROPERTY) {
        *at_out = v.property->metas;
        *n_out = v.property->n;
        return true;
    }
    return false;
}

static status not_an_element(gremlin_run *m, const state *s, gremlin_value v) {
    return gremlin__fail(m, E_BAD_QUERY, "%s() needs an element, but got a value of the type %s", gremlin_op_name(s->step->op),
                         gremlin_type_name((gremlin_type)v.type));
}

/* Without keys in the order of the properties, otherwise key by key. */
static void emit_properties(gremlin_run *m, flow *f, state *s, const traverser *t, const gremlin_property *at, size_t n) {
    bool values = s->step->op == GREMLIN_VALUES_STEP, of_vertex = t->value.type == GREMLIN_VERTEX;
    size_t rounds = s->step->n ? s->step->n : 1;
    for (size_t round = 0; round < rounds; round++) {
        for (size_t j = 0; j < n; j++) {
            if (s->step->n == 0 || slice_eq(gremlin_text(s->step->args[round]), at[j].key)) {
                gremlin__emit_value(m, f, s, t, values ? at[j].value : property_value(&at[j], of_vertex));
            }
        }
    }
}

status gremlin__step_values(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        const gremlin_property *at;
        size_t n;
        if (!properties_of(batch_at(s)[i].value, &at, &n)) {
            return not_an_element(m, s, batch_at(s)[i].value);
        }
        emit_properties(m, f, s, &batch_at(s)[i], at, n);
    }
    return DONE;
}

/* ---- valueMap(), propertyMap(), elementMap() ---- */

enum { TOKENS_ID = 1, TOKENS_LABEL = 2, TOKENS_KEY = 4, TOKENS_VALUE = 8, TOKENS_ALL = 15 };

static int tokens_of(const gremlin_step *step) {
    if (step->n && step->args[0].type == GREMLIN_BOOLEAN) {
        return step->args[0].b ? TOKENS_ALL : 0;
    }
    for (size_t i = 0; i < step->given_n; i++) {
        if (gremlin_is_text(step->given[i].key, "~tinkerpop.valueMap.tokens")) {
            return gremlin_is_whole(step->given[i].value) ? (int)step->given[i].value.i : TOKENS_ALL;
        }
    }
    return 0;
}

static void add_tokens(gremlin_run *m, gremlin_pairs *pairs, gremlin_value v, int tokens) {
    bool element = gremlin_is_element(v);
    if (tokens & TOKENS_ID) {
        gremlin_pairs_add(&m->heap, pairs, gremlin_member(GREMLIN_T, T_ID), element ? v.element->id : v.property->id);
    }
    if (element && tokens & TOKENS_LABEL) {
        gremlin_pairs_add(&m->heap, pairs, gremlin_member(GREMLIN_T, T_LABEL), gremlin_string(v.element->label));
    }
    if (!element && tokens & TOKENS_KEY) {
        gremlin_pairs_add(&m->heap, pairs, gremlin_member(GREMLIN_T, T_KEY), gremlin_string(v.property->key));
    }
    if (!element && tokens & TOKENS_VALUE) {
        gremlin_pairs_add(&m->heap, pairs, gremlin_member(GREMLIN_T, T_VALUE), v.property->value);
    }
}

/* Of a vertex each key has a list. */
static void add_property(gremlin_run *m, gremlin_pairs *pairs, const state *s, gremlin_value v, const gremlin_property *p) {
    gremlin_value value = s->step->op == GREMLIN_VALUE_MAP_STEP ? p->value : property_value(p, v.type == GREMLIN_VERTEX);
    gremlin_value key = gremlin_string(p->key);
    if (v.type != GREMLIN_VERTEX) {
        gremlin_pairs_add(&m->heap, pairs, key, value);
        return;
    }
    gremlin_items items = {0};
    gremlin_pair *last = pairs->n ? &pairs->at[pairs->n - 1] : NULL;
    if (last && last->key.type == GREMLIN_STRING && slice_eq(gremlin_text(last->key), p->key)) {
        gremlin__items_of(m, last->value, &items);
        gremlin_items_add(&m->heap, &items, value);
        last->value = gremlin_items_list(&m->heap, &items, GREMLIN_LIST);
        return;
    }
    gremlin_items_add(&m->heap, &items, value);
    gremlin_pairs_add(&m->heap, pairs, key, gremlin_items_list(&m->heap, &items, GREMLIN_LIST));
}

static gremlin_value map_of_properties(gremlin_run *m, const state *s, gremlin_value v, const gremlin_property *at, size_t n) {
    gremlin_pairs pairs = {0};
    add_tokens(m, &pairs, v, tokens_of(s->step));
    for (size_t j = 0; j < n; j++) {
        if (is_wanted(s->step, at[j].key)) {
            add_property(m, &pairs, s, v, &at[j]);
        }
    }
    return gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP);
}

/* by() of valueMap: applies to each value of the map. `kept` has the maps. */
static status by_of_maps(gremlin_run *m, flow *f, state *s) {
    if (s->phase == 1) {
        gremlin__subjects_clear(s);
        for (size_t i = 0; i < queue_n(&s->kept); i++) {
            const gremlin_map *map = queue_at(&s->kept)[i].value.map;
            for (size_t j = 0; j < map->n; j++) {
                bool token = map->at[j].key.type == GREMLIN_ENUM;
                gremlin__subject_by(s, &queue_at(&s->kept)[i], map->at[j].value, token ? NULL : gremlin__by(s->step, 0));
            }
        }
        s->phase = 2;
    }
    status st = gremlin__evaluate(m, f, s);
    if (st != DONE) {
        return st;
    }
    const subject *at = subjects_at(s);
    for (size_t i = 0; i < queue_n(&s->kept); i++) {
        const gremlin_map *map = queue_at(&s->kept)[i].value.map;
        gremlin_pairs pairs = {0};
        for (size_t j = 0; j < map->n; j++, at++) {
            if (at->productive) {
                gremlin_pairs_add(&m->heap, &pairs, map->at[j].key, at->out);
            }
        }
        gremlin__emit_value(m, f, s, &batch_at(s)[i], gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP));
    }
    gremlin__queue_clear(&s->kept);
    return DONE;
}

status gremlin__step_value_map(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; s->phase == 0 && i < batch_n(s); i++) {
        const gremlin_property *at;
        size_t n;
        traverser t = batch_at(s)[i];
        if (!properties_of(t.value, &at, &n)) {
            return not_an_element(m, s, t.value);
        }
        gremlin_value map = map_of_properties(m, s, t.value, at, n);
        if (s->step->by_n) {
            t.value = map;
            gremlin__put(&s->kept, &t);
        } else {
            gremlin__emit_value(m, f, s, &t, map);
        }
    }
    if (s->step->by_n == 0) {
        return DONE;
    }
    s->phase = s->phase ? s->phase : 1;
    return by_of_maps(m, f, s);
}

static gremlin_value end_of(gremlin_run *m, const gremlin_element *e) {
    gremlin_pairs pairs = {0};
    gremlin_pairs_add(&m->heap, &pairs, gremlin_member(GREMLIN_T, T_ID), e->id);
    gremlin_pairs_add(&m->heap, &pairs, gremlin_member(GREMLIN_T, T_LABEL), gremlin_string(e->label));
    return gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP);
}

status gremlin__step_element_map(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_value v = batch_at(s)[i].value;
        const gremlin_property *at;
        size_t n;
        gremlin_pairs pairs = {0};
        if (!properties_of(v, &at, &n)) {
            return not_an_element(m, s, v);
        }
        add_tokens(m, &pairs, v, TOKENS_ALL);
        if (v.type == GREMLIN_EDGE) {
            gremlin_pairs_add(&m->heap, &pairs, gremlin_member(GREMLIN_DIRECTION, DIRECTION_IN), end_of(m, v.element->in));
            gremlin_pairs_add(&m->heap, &pairs, gremlin_member(GREMLIN_DIRECTION, DIRECTION_OUT), end_of(m, v.element->out));
        }
        for (size_t j = 0; j < n; j++) {
            bool again = j > 0 && slice_eq(at[j].key, at[j - 1].key);
            if (again && is_wanted(s->step, at[j].key)) { /* of several values the last remains */
                pairs.at[pairs.n - 1].value = at[j].value;
            } else if (is_wanted(s->step, at[j].key)) {
                gremlin_pairs_add(&m->heap, &pairs, gremlin_string(at[j].key), at[j].value);
            }
        }
        gremlin__emit_value(m, f, s, &batch_at(s)[i], gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP));
    }
    return DONE;
}

/* element(): from a property to what it belongs to. */
status gremlin__step_element(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_value v = batch_at(s)[i].value;
        bool property = v.type == GREMLIN_VERTEX_PROPERTY || v.type == GREMLIN_PROPERTY;
        if (!property) {
            return not_an_element(m, s, v);
        }
        if (v.property->owner) {
            gremlin__emit_value(m, f, s, &batch_at(s)[i], gremlin_of_element((gremlin_element *)(uintptr_t)v.property->owner));
        }
    }
    return DONE;
}

/* ---- path(), select(), project() ---- */

static gremlin_value whole_path(gremlin_run *m, const state *s, const traverser *t) {
    slice from = s->step->from.type == GREMLIN_STRING ? gremlin_text(s->step->from) : SLICE_EMPTY;
    slice to = s->step->to.type == GREMLIN_STRING ? gremlin_text(s->step->to) : SLICE_EMPTY;
    return gremlin__path_value(m, t, from, to);
}

static void list_path(gremlin_run *m, state *s, const traverser *t) {
    gremlin_value path = whole_path(m, s, t);
    for (size_t i = 0; i < path.path->n; i++) {
        gremlin__subject_by(s, t, path.path->objects[i], gremlin__by(s->step, i));
    }
}

status gremlin__step_path(gremlin_run *m, flow *f, state *s) {
    status st = gremlin__with_subjects(m, f, s, list_path);
    if (st != DONE) {
        return st;
    }
    const subject *at = subjects_at(s);
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_value v = whole_path(m, s, &batch_at(s)[i]);
        gremlin_value *objects = (gremlin_value *)(uintptr_t)v.path->objects;
        bool whole = true;
        for (size_t j = 0; j < v.path->n; j++, at++) {
            objects[j] = at->out;
            whole &= at->productive;
        }
        if (whole) {
            gremlin__emit_value(m, f, s, &batch_at(s)[i], v);
        }
    }
    return DONE;
}

static unsigned pop_of(const gremlin_step *step) {
    return step->n && gremlin_is_member(step->args[0], GREMLIN_POP) ? step->args[0].n : POP_LAST;
}

static size_t first_label(const gremlin_step *step) {
    return step->n && gremlin_is_member(step->args[0], GREMLIN_POP) ? 1 : 0;
}

static void list_select(gremlin_run *m, state *s, const traverser *t) {
    for (size_t i = first_label(s->step), by = 0; i < s->step->n; i++, by++) {
        gremlin_value v = gremlin_null();
        bool found = gremlin__select(m, t, gremlin_text(s->step->args[i]), pop_of(s->step), &v);
        gremlin__subject_by(s, t, v, found ? gremlin__by(s->step, by) : NULL);
        subjects_at(s)[subjects_n(s) - 1].missing = !found;
    }
}

static void emit_selected(gremlin_run *m, flow *f, state *s, const traverser *t, const subject *at, size_t n) {
    gremlin_pairs pairs = {0};
    for (size_t j = 0; j < n; j++) {
        if (at[j].missing || !at[j].productive) {
            return;
        }
        gremlin_pairs_add(&m->heap, &pairs, s->step->args[first_label(s->step) + j], at[j].out);
    }
    gremlin__emit_value(m, f, s, t, n == 1 ? at->out : gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP));
}

static status select_column(gremlin_run *m, flow *f, state *s) {
    static const gremlin_by columns[] = {{.kind = BY_COLUMN, .member = COLUMN_KEYS}, {.kind = BY_COLUMN, .member = COLUMN_VALUES}};
    if (s->phase == 0) {
        gremlin__subjects_clear(s);
        for (size_t i = 0; i < batch_n(s); i++) {
            gremlin__subject_by(s, &batch_at(s)[i], batch_at(s)[i].value, &columns[s->step->args[0].n]);
        }
        s->phase = 1;
    }
    status st = gremlin__evaluate(m, f, s);
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        gremlin__emit_value(m, f, s, &batch_at(s)[i], subjects_at(s)[i].out);
    }
    return st;
}

static void list_keys(gremlin_run *m, state *s, const traverser *t) {
    (void)m;
    gremlin__subject_traversal(s, t, s->step->args[s->step->n - 1].traversal);
}

/* select(traversal): the key is what the traversal gives. */
static status select_traversal(gremlin_run *m, flow *f, state *s) {
    status st = gremlin__with_subjects(m, f, s, list_keys);
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        const subject *key = &subjects_at(s)[i];
        const traverser *t = &batch_at(s)[i];
        gremlin_value v;
        const gremlin_value *found = key->productive && gremlin_is_map(t->value) ? gremlin_map_get(t->value, key->out) : NULL;
        if (found) {
            gremlin__emit_value(m, f, s, t, *found);
        } else if (key->productive && key->out.type == GREMLIN_STRING &&
                   gremlin__select(m, t, gremlin_text(key->out), pop_of(s->step), &v)) {
            gremlin__emit_value(m, f, s, t, v);
        }
    }
    return st;
}

status gremlin__step_select(gremlin_run *m, flow *f, state *s) {
    if (gremlin_is_member(s->step->args[0], GREMLIN_COLUMN)) {
        return select_column(m, f, s);
    }
    if (s->step->args[s->step->n - 1].type == GREMLIN_TRAVERSAL) {
        return select_traversal(m, f, s);
    }
    status st = gremlin__with_subjects(m, f, s, list_select);
    size_t per = s->step->n - first_label(s->step);
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        emit_selected(m, f, s, &batch_at(s)[i], subjects_at(s) + i * per, per);
    }
    return st;
}

static void list_project(gremlin_run *m, state *s, const traverser *t) {
    (void)m;
    for (size_t i = 0; i < s->step->n; i++) {
        gremlin__subject_by(s, t, t->value, gremlin__by(s->step, i));
    }
}

status gremlin__step_project(gremlin_run *m, flow *f, state *s) {
    status st = gremlin__with_subjects(m, f, s, list_project);
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        gremlin_pairs pairs = {0};
        const subject *at = subjects_at(s) + i * s->step->n;
        for (size_t j = 0; j < s->step->n; j++) {
            if (at[j].productive) {
                gremlin_pairs_add(&m->heap, &pairs, s->step->args[j], at[j].out);
            }
        }
        gremlin__emit_value(m, f, s, &batch_at(s)[i], gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP));
    }
    return st;
}

/* ---- loops(), sack(), unfold(), index() ---- */

status gremlin__step_loops(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        const loop_mark *mark = batch_at(s)[i].loops;
        while (mark && s->step->n && !slice_eq(mark->name, gremlin_text(s->step->args[0]))) {
            mark = mark->outer;
        }
        gremlin__emit_value(m, f, s, &batch_at(s)[i], gremlin_int(mark ? (int32_t)mark->count : 0));
    }
    return DONE;
}

static void list_by(gremlin_run *m, state *s, const traverser *t) {
    (void)m;
    gremlin__subject_by(s, t, t->value, gremlin__by(s->step, 0));
}

status gremlin__step_sack(gremlin_run *m, flow *f, state *s) {
    if (s->step->n == 0) {
        for (size_t i = 0; i < batch_n(s); i++) {
            gremlin__emit_value(m, f, s, &batch_at(s)[i], batch_at(s)[i].sack);
        }
        return DONE;
    }
    status st = gremlin__with_subjects(m, f, s, list_by);
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        traverser t = batch_at(s)[i];
        const subject *one = &subjects_at(s)[i];
        if (one->productive && gremlin__operate(m, s->step->args[0].n, t.sack, one->out, &t.sack)) {
            gremlin__pass(m, f, s, &t);
        }
    }
    return st;
}

static gremlin_value entry_of(gremlin_run *m, const gremlin_pair *pair) {
    gremlin_value v = gremlin_map_of(&m->heap, GREMLIN_MAP, pair, 1);
    ((gremlin_map *)(uintptr_t)v.map)->is_entry = true;
    return v;
}

status gremlin__step_unfold(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        traverser t = batch_at(s)[i];
        gremlin_value v = t.value;
        if (gremlin_is_map(v) && !v.map->is_entry) {
            for (size_t j = 0; j < v.map->n; j++) {
                gremlin__emit_value(m, f, s, &t, entry_of(m, &v.map->at[j]));
            }
        } else if (gremlin_is_list(v)) {
            for (size_t j = 0; j < v.list->n; j++) {
                traverser one = t;
                one.bulk = bulk_times(one.bulk, v.list->bulk ? v.list->bulk[j] : 1);
                gremlin__emit_value(m, f, s, &one, v.list->at[j]);
            }
        } else {
            gremlin_items items = {0};
            gremlin__items_of(m, v, &items);
            for (size_t j = 0; j < items.n; j++) {
                gremlin__emit_value(m, f, s, &t, items.at[j]);
            }
        }
    }
    return DONE;
}

static bool indexes_as_map(const gremlin_step *step) {
    for (size_t i = 0; i < step->given_n; i++) {
        if (gremlin_is_text(step->given[i].key, "~tinkerpop.index.indexer")) {
            return gremlin_is_whole(step->given[i].value) && step->given[i].value.i == 1;
        }
    }
    return false;
}

/* index(): [[a,0],[b,1]], or {0:a,1:b}. */
status gremlin__step_index(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_items items = {0}, list = {0};
        gremlin_pairs map = {0};
        gremlin__items_of(m, batch_at(s)[i].value, &items);
        for (size_t j = 0; j < items.n; j++) {
            gremlin_items pair = {0};
            gremlin_items_add(&m->heap, &pair, items.at[j]);
            gremlin_items_add(&m->heap, &pair, gremlin_int((int32_t)j));
            gremlin_items_add(&m->heap, &list, gremlin_items_list(&m->heap, &pair, GREMLIN_LIST));
            gremlin_pairs_add(&m->heap, &map, gremlin_int((int32_t)j), items.at[j]);
        }
        gremlin__emit_value(m, f, s, &batch_at(s)[i],
                            indexes_as_map(s->step) ? gremlin_pairs_map(&m->heap, &map, GREMLIN_MAP)
                                                    : gremlin_items_list(&m->heap, &list, GREMLIN_LIST));
    }
    return DONE;
}
