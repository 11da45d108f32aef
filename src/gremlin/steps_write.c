/* steps_write.c — steps that change the graph: addV, addE, property, drop. A batch is one ask. */
#include "gremlin/steps_int.h"

/* ---- arguments that may be traversals ----
 *
 * `list` adds a subject for each traversal, in a fixed order; `taken` takes the results in the same order. */

static void list_value(state *s, const traverser *t, gremlin_value v) {
    if (v.type == GREMLIN_TRAVERSAL) {
        gremlin__subject_traversal(s, t, v.traversal);
    }
}

typedef struct cursor {
    const subject *at;
} cursor;

static bool taken(cursor *c, gremlin_value v, gremlin_value *out) {
    *out = v;
    if (v.type != GREMLIN_TRAVERSAL) {
        return true;
    }
    const subject *one = c->at++;
    *out = one->out;
    return one->productive;
}

static void list_settings(state *s, const traverser *t) {
    for (size_t i = 0; i < s->step->setting_n; i++) {
        const gremlin_setting *setting = &s->step->settings[i];
        list_value(s, t, setting->key);
        list_value(s, t, setting->value);
        for (size_t j = 0; j < setting->n; j++) {
            list_value(s, t, setting->metas[j].value);
        }
    }
}

static status check_value(gremlin_run *m, gremlin_value v) {
    bool storable = v.type < GREMLIN_TREE && !(gremlin_is_list(v) && v.type == GREMLIN_BULKSET);
    return storable
               ? DONE
               : gremlin__fail(m, E_BAD_QUERY, "A property cannot have a value of the type %s", gremlin_type_name((gremlin_type)v.type));
}

static bool write_metas(gremlin_run *m, cursor *c, const gremlin_setting *setting, gremlin_write *w) {
    gremlin_pair *metas = arena_array(&m->heap, gremlin_pair, setting->n + 1);
    for (size_t j = 0; j < setting->n; j++) {
        metas[w->n].key = setting->metas[j].key;
        if (taken(c, setting->metas[j].value, &metas[w->n].value)) {
            w->n++;
        }
    }
    w->metas = metas;
    return true;
}

/* One setting: a token changes the target itself, a key becomes a write. */
static status resolve_setting(gremlin_run *m, cursor *c, const gremlin_setting *setting, gremlin_target *target, gremlin_write *w) {
    gremlin_value key, value;
    bool has_key = taken(c, setting->key, &key), has_value = taken(c, setting->value, &value);
    *w = (gremlin_write){.cardinality = setting->cardinality};
    (void)write_metas(m, c, setting, w);
    if (!has_key || !has_value) {
        return YIELD; /* nothing to write */
    }
    if (gremlin_is_member(key, GREMLIN_T)) {
        if (key.n == T_ID) {
            target->id = value;
        } else if (key.n == T_LABEL && value.type == GREMLIN_STRING) {
            target->label = gremlin_text(value);
        } else {
            return gremlin__fail(m, E_BAD_QUERY, "property() does not take T.%s", gremlin_member_name(GREMLIN_T, key.n));
        }
        return YIELD;
    }
    if (key.type != GREMLIN_STRING) {
        return gremlin__fail(m, E_BAD_QUERY, "The key of a property must be a string, not %s", gremlin_type_name((gremlin_type)key.type));
    }
    w->key = gremlin_text(key);
    w->value = value;
    return check_value(m, value);
}

static bool writes_key(const gremlin_target *target, const gremlin_write *writes, slice key) {
    for (size_t i = 0; i < target->n; i++) {
        if (slice_eq(writes[i].key, key)) {
            return true;
        }
    }
    return false;
}

static status resolve_settings(gremlin_run *m, cursor *c, const gremlin_step *step, gremlin_target *target) {
    gremlin_write *writes = arena_array(&m->heap, gremlin_write, step->setting_n + 1);
    slice added = m->added.key.type == GREMLIN_STRING ? gremlin_text(m->added.key) : SLICE_EMPTY;
    for (size_t i = 0; i < step->setting_n; i++) {
        status st = resolve_setting(m, c, &step->settings[i], target, &writes[target->n]);
        if (st == FAILED) {
            return FAILED;
        }
        target->n += st == DONE;
    }
    if (added.n && step->op == GREMLIN_ADD_V_STEP && !writes_key(target, writes, added)) {
        writes[target->n++] = (gremlin_write){.cardinality = -1, .key = added, .value = m->added.value};
    }
    target->writes = writes;
    return DONE;
}

/* ---- addV(), addE() ---- */

static void list_add(gremlin_run *m, state *s, const traverser *t) {
    (void)m;
    if (s->step->n) {
        list_value(s, t, s->step->args[0]);
    }
    list_value(s, t, s->step->from);
    list_value(s, t, s->step->to);
    list_settings(s, t);
}

static status no_vertex(gremlin_run *m, const char *end, gremlin_value v) {
    return gremlin__fail(m, E_BAD_QUERY, "The value given to addE(%s) must resolve to a Vertex but %s was specified instead", end,
                         gremlin_type_name((gremlin_type)v.type));
}

/* One end of a new edge: a label, a vertex, what a traversal gives, or the traverser itself. */
static status resolve_end(gremlin_run *m, cursor *c, const traverser *t, gremlin_value given, const char *end, gremlin_element **out) {
    gremlin_value v = t->value;
    bool found = true;
    if (given.type == GREMLIN_STRING) {
        found = gremlin__select(m, t, gremlin_text(given), POP_LAST, &v);
    } else if (given.type != GREMLIN_NULL) {
        found = taken(c, given, &v);
    }
    if (!found) {
        return gremlin__fail(m, E_BAD_QUERY, "The provided traverser does not map to a value: addE().%s()", end);
    }
    if (v.type != GREMLIN_VERTEX) {
        return no_vertex(m, end, v);
    }
    *out = v.element;
    return DONE;
}

static status resolve_target(gremlin_run *m, state *s, cursor *c, const traverser *t, gremlin_target *target) {
    bool edge = s->step->op == GREMLIN_ADD_E_STEP;
    gremlin_value label = gremlin_string(SLICE_LIT("vertex"));
    *target = (gremlin_target){0};
    if (s->step->n && !taken(c, s->step->args[0], &label)) {
        label = gremlin_null();
    }
    if (label.type != GREMLIN_STRING) {
        return gremlin__fail(m, E_BAD_QUERY, "A label must be a string, not %s", gremlin_type_name((gremlin_type)label.type));
    }
    target->label = gremlin_text(label);
    if (edge && resolve_end(m, c, t, s->step->from, "from", &target->out) != DONE) {
        return FAILED;
    }
    if (edge && resolve_end(m, c, t, s->step->to, "to", &target->in) != DONE) {
        return FAILED;
    }
    return resolve_settings(m, c, s->step, target);
}

enum { WRITE_RESOLVED = 1, WRITE_ASKED };

static status ask_add(gremlin_run *m, state *s) {
    cursor c = {subjects_at(s)};
    gremlin__ask_begin(m, GREMLIN_ASK_ADD);
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_target target;
        if (resolve_target(m, s, &c, &batch_at(s)[i], &target) != DONE) {
            return FAILED;
        }
        m->ask.targets = gremlin__ask_add(m, &target, sizeof target);
        m->ask.target_n++;
    }
    m->ask.edges = s->step->op == GREMLIN_ADD_E_STEP;
    s->asks++;
    s->phase = WRITE_ASKED;
    return gremlin__ask_send(m);
}

status gremlin__step_add(gremlin_run *m, flow *f, state *s) {
    if (batch_n(s) == 0) {
        return DONE;
    }
    if (s->phase <= WRITE_RESOLVED) {
        status st = gremlin__with_subjects(m, f, s, list_add);
        return st == DONE ? ask_add(m, s) : st;
    }
    for (size_t i = 0; i < answers_n(m); i++) {
        const answer_entry *a = &answers_at(m)[i];
        gremlin__emit_value(m, f, s, &batch_at(s)[a->index], gremlin_of_element(a->element));
    }
    return DONE;
}

/* ---- property() ---- */

static void list_property(gremlin_run *m, state *s, const traverser *t) {
    (void)m;
    list_settings(s, t);
}

static status ask_set(gremlin_run *m, state *s) {
    cursor c = {subjects_at(s)};
    gremlin__ask_begin(m, GREMLIN_ASK_SET);
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_value v = batch_at(s)[i].value;
        gremlin_target target = {0};
        if (v.type == GREMLIN_VERTEX_PROPERTY && v.property->owner) {
            target.of_property = v.property;
            target.element = (gremlin_element *)(uintptr_t)v.property->owner;
        } else if (gremlin_is_element(v)) {
            target.element = v.element;
        } else {
            return gremlin__fail(m, E_BAD_QUERY, "property() needs an element, but got a value of the type %s",
                                 gremlin_type_name((gremlin_type)v.type));
        }
        if (resolve_settings(m, &c, s->step, &target) != DONE) {
            return FAILED;
        }
        if (target.id.type != GREMLIN_NULL || target.label.n) {
            return gremlin__fail(m, E_BAD_QUERY, "The id and the label of an element that exists cannot be changed");
        }
        m->ask.targets = gremlin__ask_add(m, &target, sizeof target);
        m->ask.target_n++;
    }
    s->asks++;
    s->phase = WRITE_ASKED;
    return gremlin__ask_send(m);
}

/* A vertex property as its vertex has it now. */
static gremlin_value newest(gremlin_value v) {
    const gremlin_element *owner = v.type == GREMLIN_VERTEX_PROPERTY ? v.property->owner : NULL;
    for (size_t i = 0; owner && i < owner->n; i++) {
        if (slice_eq(owner->properties[i].key, v.property->key) && gremlin_equal(owner->properties[i].id, v.property->id)) {
            v.property = &owner->properties[i];
            break;
        }
    }
    return v;
}

status gremlin__step_property(gremlin_run *m, flow *f, state *s) {
    if (batch_n(s) == 0) {
        return DONE;
    }
    if (s->phase <= WRITE_RESOLVED) {
        status st = gremlin__with_subjects(m, f, s, list_property);
        return st == DONE ? ask_set(m, s) : st;
    }
    for (size_t i = 0; i < answers_n(m); i++) {
        gremlin_target *target = &((gremlin_target *)(uintptr_t)m->ask.targets)[answers_at(m)[i].index];
        gremlin__complete(m, target->element, answers_at(m)[i].element);
    }
    for (size_t i = 0; i < batch_n(s); i++) {
        traverser t = batch_at(s)[i];
        t.value = newest(t.value);
        gremlin__pass(m, f, s, &t);
    }
    return DONE;
}

/* ---- drop() ---- */

static bool drop_target(gremlin_value v, gremlin_target *target) {
    *target = (gremlin_target){0};
    if (gremlin_is_element(v)) {
        target->element = v.element;
        return true;
    }
    if (v.type == GREMLIN_VERTEX_PROPERTY || v.type == GREMLIN_PROPERTY) {
        target->property = v.property;
        target->element = (gremlin_element *)(uintptr_t)v.property->owner;
        return target->element != NULL;
    }
    return false;
}

status gremlin__step_drop(gremlin_run *m, flow *f, state *s) {
    (void)f;
    if (s->phase || batch_n(s) == 0) {
        return DONE;
    }
    gremlin__ask_begin(m, GREMLIN_ASK_DROP);
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_target target;
        if (!drop_target(batch_at(s)[i].value, &target)) {
            return gremlin__fail(m, E_BAD_QUERY, "The incoming object is not removable: %s",
                                 gremlin_type_name((gremlin_type)batch_at(s)[i].value.type));
        }
        m->ask.targets = gremlin__ask_add(m, &target, sizeof target);
        m->ask.target_n++;
    }
    s->asks++;
    s->phase = 1;
    return gremlin__ask_send(m);
}
