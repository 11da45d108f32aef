/* steps_list.c — steps on lists: combine, merge, difference, intersect, disjunct, product, conjoin. */
#include "gremlin/steps_int.h"

static void list_other(gremlin_run *m, state *s, const traverser *t) {
    gremlin_value other = s->step->args[0];
    (void)m;
    if (other.type == GREMLIN_TRAVERSAL) {
        gremlin__subject_traversal(s, t, other.traversal);
    } else {
        gremlin__subject_by(s, t, other, NULL);
    }
}

static void add_unique(gremlin_run *m, table *seen, gremlin_items *to, gremlin_value v) {
    bool is_new = false;
    (void)gremlin__entry(seen, 0, v, &is_new);
    if (is_new) {
        gremlin_items_add(&m->heap, to, v);
    }
}

static void note_all(table *t, const gremlin_items *items) {
    for (size_t i = 0; i < items->n; i++) {
        (void)gremlin__entry(t, 1, items->at[i], NULL);
    }
}

/* Those of `a` that are, or are not, in `b`, each once. Tag 1 of the table is `b`, tag 0 what was taken. */
static void add_those(gremlin_run *m, table *t, const gremlin_items *a, const gremlin_items *b, bool in, gremlin_items *to) {
    gremlin__table_clear(t);
    note_all(t, b);
    for (size_t i = 0; i < a->n; i++) {
        if ((gremlin__entry_find(t, 1, a->at[i]) != NULL) == in) {
            add_unique(m, t, to, a->at[i]);
        }
    }
}

static gremlin_value product(gremlin_run *m, const gremlin_items *a, const gremlin_items *b) {
    gremlin_items all = {0};
    for (size_t i = 0; i < a->n; i++) {
        for (size_t j = 0; j < b->n && !gremlin__is_out_of_memory(m); j++) {
            gremlin_items pair = {0};
            gremlin_items_add(&m->heap, &pair, a->at[i]);
            gremlin_items_add(&m->heap, &pair, b->at[j]);
            gremlin_items_add(&m->heap, &all, gremlin_items_list(&m->heap, &pair, GREMLIN_LIST));
        }
    }
    return gremlin_items_list(&m->heap, &all, GREMLIN_LIST);
}

static gremlin_value conjoin(gremlin_run *m, const gremlin_items *a, slice separator) {
    buf out = buf_init_counted(BUF_NO_LIMIT, m->op->budget);
    bool first = true;
    for (size_t i = 0; i < a->n; i++) {
        if (a->at[i].type == GREMLIN_NULL) {
            continue;
        }
        buf_add_slice(&out, first ? SLICE_EMPTY : separator);
        gremlin_show(&out, a->at[i]);
        first = false;
    }
    gremlin_value v = gremlin_string(buf_ok(&out) ? arena_copy(&m->heap, buf_view(&out)) : SLICE_EMPTY);
    buf_free(&out);
    return v;
}

static gremlin_value merge_maps(gremlin_run *m, gremlin_value a, gremlin_value b) {
    gremlin_pairs pairs = {0};
    for (size_t i = 0; i < a.map->n; i++) {
        const gremlin_value *newer = gremlin_map_get(b, a.map->at[i].key);
        gremlin_pairs_add(&m->heap, &pairs, a.map->at[i].key, newer ? *newer : a.map->at[i].value);
    }
    for (size_t i = 0; i < b.map->n; i++) {
        if (!gremlin_map_get(a, b.map->at[i].key)) {
            gremlin_pairs_add(&m->heap, &pairs, b.map->at[i].key, b.map->at[i].value);
        }
    }
    return gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP);
}

static gremlin_value on_lists(gremlin_run *m, state *s, const gremlin_items *a, const gremlin_items *b) {
    gremlin_items to = {0};
    switch (s->step->op) {
    case GREMLIN_COMBINE_STEP:
        for (size_t i = 0; i < a->n + b->n; i++) {
            gremlin_items_add(&m->heap, &to, i < a->n ? a->at[i] : b->at[i - a->n]);
        }
        return gremlin_items_list(&m->heap, &to, GREMLIN_LIST);
    case GREMLIN_MERGE_STEP:
        gremlin__table_clear(&s->table);
        for (size_t i = 0; i < a->n + b->n; i++) {
            add_unique(m, &s->table, &to, i < a->n ? a->at[i] : b->at[i - a->n]);
        }
        break;
    case GREMLIN_DIFFERENCE_STEP:
        add_those(m, &s->table, a, b, false, &to);
        break;
    case GREMLIN_INTERSECT_STEP:
        add_those(m, &s->table, a, b, true, &to);
        break;
    case GREMLIN_DISJUNCT_STEP:
        add_those(m, &s->table, a, b, false, &to);
        add_those(m, &s->table, b, a, false, &to);
        break;
    default:
        return product(m, a, b);
    }
    return gremlin_items_list(&m->heap, &to, GREMLIN_SET);
}

static status on_one(gremlin_run *m, state *s, gremlin_value v, const subject *other, gremlin_value *out) {
    gremlin_items a = {0}, b = {0};
    bool maps = s->step->op == GREMLIN_MERGE_STEP && gremlin_is_map(v) && gremlin_is_map(other->out);
    if (maps) {
        *out = merge_maps(m, v, other->out);
        return DONE;
    }
    if (!gremlin_is_list(v) && v.type != GREMLIN_PATH) {
        return gremlin__fail(m, E_BAD_QUERY, "Incoming traverser for %s step must be of type Iterable or Array, but encountered %s",
                             gremlin_op_name(s->step->op), gremlin_type_name((gremlin_type)v.type));
    }
    gremlin__items_of(m, v, &a);
    if (s->step->op == GREMLIN_CONJOIN_STEP) {
        *out = conjoin(m, &a, gremlin_text(s->step->args[0]));
        return DONE;
    }
    if (!other->productive || (!gremlin_is_list(other->out) && other->out.type != GREMLIN_PATH)) {
        return gremlin__fail(m, E_BAD_QUERY, "The argument of the %s step must yield an iterable type, but encountered %s",
                             gremlin_op_name(s->step->op), gremlin_type_name((gremlin_type)other->out.type));
    }
    gremlin__items_of(m, other->out, &b);
    *out = on_lists(m, s, &a, &b);
    return DONE;
}

status gremlin__step_lists(gremlin_run *m, flow *f, state *s) {
    status st = gremlin__with_subjects(m, f, s, list_other);
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        gremlin_value out;
        st = on_one(m, s, batch_at(s)[i].value, &subjects_at(s)[i], &out);
        if (st == DONE) {
            gremlin__emit_value(m, f, s, &batch_at(s)[i], out);
        }
    }
    return st;
}
