/* steps_group.c — steps that gather under keys or names: group, groupCount, tree, aggregate, store, subgraph, cap. */
#include "gremlin/steps_int.h"

static slice name_of(const gremlin_step *step) { /* of a side effect; empty: none */
    return step->n && step->args[step->n - 1].type == GREMLIN_STRING ? gremlin_text(step->args[step->n - 1]) : SLICE_EMPTY;
}

static void list_by(gremlin_run *m, state *s, const traverser *t) {
    (void)m;
    gremlin__subject_by(s, t, t->value, gremlin__by(s->step, 0));
}

static void pass_all(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin__pass(m, f, s, &batch_at(s)[i]);
    }
}

/* ---- groupCount() ---- */

status gremlin__step_group_count(gremlin_run *m, flow *f, state *s) {
    slice name = name_of(s->step);
    status st = gremlin__with_subjects(m, f, s, list_by);
    if (st != DONE) {
        return st;
    }
    table *t = name.n ? &gremlin__side(m, name, SIDE_COUNTS, s->step)->table : &s->table;
    for (size_t i = 0; i < batch_n(s); i++) {
        const subject *key = &subjects_at(s)[i];
        entry *e = key->productive ? gremlin__entry(t, name.n ? 0 : batch_at(s)[i].tag, key->out, NULL) : NULL;
        if (e) {
            e->n = bulk_plus(e->n, batch_at(s)[i].bulk);
        }
    }
    if (name.n) {
        pass_all(m, f, s);
    }
    return DONE;
}

status gremlin__group_count_finish(gremlin_run *m, flow *f, state *s) {
    for (uint32_t tag = 0; name_of(s->step).n == 0 && tag < f->tags; tag++) {
        gremlin__emit_fresh(m, f, s, tag, gremlin__counts_map(m, &s->table, tag));
    }
    gremlin__table_clear(&s->table);
    return DONE;
}

/* ---- group() ----
 *
 * A traverser is kept with the number of its group as its tag. At the end the value traversal runs once, over all groups: a group is
 * what its tag holds. A value by() that does not reduce gives a list. */

static const gremlin_by *value_by(const gremlin_step *step) {
    return step->by_n > 1 ? &step->bys[1] : NULL;
}

static void list_group(gremlin_run *m, state *s, const traverser *t) {
    const gremlin_by *by = value_by(s->step);
    list_by(m, s, t);
    gremlin__subject_by(s, t, t->value, by && by->traversal ? NULL : by);
}

static void add_to_group(gremlin_run *m, state *s, table *t, queue *kept, const traverser *one, const subject *at) {
    bool reduces = value_by(s->step) && value_by(s->step)->traversal;
    entry *e = at[0].productive ? gremlin__entry(t, one->tag, at[0].out, NULL) : NULL;
    if (!e) {
        return;
    }
    if (reduces) {
        traverser member = *one;
        member.tag = (uint32_t)(e - table_at(t));
        gremlin__put(kept, &member);
        return;
    }
    for (int64_t j = 0; at[1].productive && j < one->bulk && !gremlin__is_out_of_memory(m); j++) {
        gremlin_items_add(&m->heap, &e->items, at[1].out);
    }
}

status gremlin__step_group(gremlin_run *m, flow *f, state *s) {
    slice name = name_of(s->step);
    status st = gremlin__with_subjects(m, f, s, list_group);
    if (st != DONE) {
        return st;
    }
    side *e = name.n ? gremlin__side(m, name, SIDE_GROUPS, s->step) : NULL;
    for (size_t i = 0; i < batch_n(s); i++) {
        traverser one = batch_at(s)[i];
        one.tag = e ? 0 : one.tag;
        add_to_group(m, s, e ? &e->table : &s->table, e ? &e->kept : &s->kept, &one, subjects_at(s) + 2 * i);
    }
    if (e) {
        pass_all(m, f, s);
    }
    return DONE;
}

/* Sets the values of the groups of `t`: WAIT while the value traversal runs. */
static status reduce_groups(gremlin_run *m, flow *f, state *s, const gremlin_step *step, table *t, queue *kept) {
    const gremlin_by *by = value_by(step);
    bool reduces = by && by->traversal;
    if (reduces && s->phase == 0) {
        s->phase = 1;
        return gremlin__run_tagged(m, f, s, by->traversal, queue_at(kept), queue_n(kept), (uint32_t)table_n(t));
    }
    for (size_t i = 0; i < table_n(t); i++) {
        entry *e = &table_at(t)[i];
        size_t n = 1;
        const traverser *found = reduces ? results_of(s, i, &n) : NULL;
        e->value = !reduces ? gremlin_items_list(&m->heap, &e->items, GREMLIN_LIST) : n ? found->value : gremlin_null();
        e->n = n > 0;
    }
    return DONE;
}

status gremlin__group_finish(gremlin_run *m, flow *f, state *s) {
    if (name_of(s->step).n) {
        return DONE;
    }
    status st = reduce_groups(m, f, s, s->step, &s->table, &s->kept);
    if (st != DONE) {
        return st;
    }
    for (uint32_t tag = 0; tag < f->tags; tag++) {
        gremlin__emit_fresh(m, f, s, tag, gremlin__group_map(m, &s->table, tag, GREMLIN_MAP));
    }
    gremlin__table_clear(&s->table);
    gremlin__queue_clear(&s->kept);
    return DONE;
}

/* ---- cap() ---- */

static side *side_to_cap(gremlin_run *m, const state *s, size_t i) {
    return gremlin__side_find(m, gremlin_text(s->step->args[i]));
}

static void emit_cap(gremlin_run *m, flow *f, state *s) {
    gremlin_pairs pairs = {0};
    for (size_t i = 0; i < s->step->n; i++) {
        side *e = side_to_cap(m, s, i);
        gremlin_value v = !e                       ? gremlin_null()
                          : e->kind == SIDE_GROUPS ? gremlin__group_map(m, &e->table, 0, GREMLIN_MAP)
                                                   : gremlin__side_value(m, e);
        gremlin_pairs_add(&m->heap, &pairs, s->step->args[i], v);
    }
    for (uint32_t tag = 0; tag < f->tags; tag++) {
        gremlin__emit_fresh(m, f, s, tag, pairs.n == 1 ? pairs.at[0].value : gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP));
    }
}

status gremlin__cap_finish(gremlin_run *m, flow *f, state *s) {
    for (s->child = s->phase ? s->child : 0; s->child < s->step->n; s->child++, s->phase = 0) {
        side *e = side_to_cap(m, s, s->child);
        if (!e) {
            slice name = gremlin_text(s->step->args[s->child]);
            return gremlin__fail(m, E_BAD_QUERY, "The side-effect key does not exist: %.*s", slice_shown(name), name.p);
        }
        status st = e->kind == SIDE_GROUPS ? reduce_groups(m, f, s, e->step, &e->table, &e->kept) : DONE;
        if (st != DONE) {
            return st;
        }
    }
    emit_cap(m, f, s);
    return DONE;
}

/* ---- aggregate(), store() ---- */

static void add_to_bag(side *e, gremlin_value v, int64_t bulk) {
    entry *one = gremlin__entry(&e->table, 0, v, NULL);
    if (one) {
        one->n = bulk_plus(one->n, bulk);
    }
}

enum { REDUCED_AT_ONCE_MAX = 1000 };

/* How often a value of this bulk is reduced: a sum adds the value times its bulk, and others give the same however often. */
static int64_t times_of(gremlin_run *m, unsigned operator, int64_t bulk, gremlin_value *v) {
    switch (operator) {
    case OPERATOR_MIN:
    case OPERATOR_MAX:
    case OPERATOR_ASSIGN:
    case OPERATOR_AND:
    case OPERATOR_OR:
        return 1;
    case OPERATOR_SUM:
    case OPERATOR_MINUS:
    case OPERATOR_SUM_LONG: {
        gremlin_value n = bulk <= INT32_MAX ? gremlin_int((int32_t)bulk) : gremlin_long(bulk);
        return gremlin_is_number(*v) && gremlin_calculate(&m->heap, GREMLIN_MULTIPLY, *v, n, v) ? 1 : bulk;
    }
    default:
        return bulk;
    }
}

/* withSideEffect('x', 0, sum) */
static status reduce(gremlin_run *m, side *e, gremlin_value v, int64_t bulk) {
    int64_t times = bulk > 1 ? times_of(m, e->reducer.n, bulk, &v) : bulk;
    if (times > REDUCED_AT_ONCE_MAX) {
        return gremlin__fail(m, E_BAD_QUERY, "aggregate() would take too long: a value occurs more than %d times", REDUCED_AT_ONCE_MAX);
    }
    for (int64_t i = 0; i < times && !gremlin__is_out_of_memory(m); i++) {
        if (!gremlin__operate(m, e->reducer.n, e->value, v, &e->value)) {
            return FAILED;
        }
    }
    return DONE;
}

static bool is_lazy(const gremlin_step *step) {
    return step->op == GREMLIN_STORE_STEP || is_local(step);
}

status gremlin__step_aggregate(gremlin_run *m, flow *f, state *s) {
    status st = gremlin__with_subjects(m, f, s, list_by);
    if (st != DONE) {
        return st;
    }
    side *e = gremlin__side(m, name_of(s->step), SIDE_BAG, s->step);
    bool reduces = e->reducer.type != GREMLIN_NULL;
    if (e->kind == SIDE_VALUE && !reduces) { /* withSideEffect('x', […]) */
        gremlin_items items = {0};
        gremlin__items_of(m, e->value, &items);
        e->kind = SIDE_BAG;
        for (size_t i = 0; i < items.n; i++) {
            add_to_bag(e, items.at[i], 1);
        }
    }
    for (size_t i = 0; i < batch_n(s); i++) {
        const subject *one = &subjects_at(s)[i];
        if (one->productive && !reduces) {
            add_to_bag(e, one->out, batch_at(s)[i].bulk);
        } else if (one->productive && reduce(m, e, one->out, batch_at(s)[i].bulk) != DONE) {
            return FAILED;
        }
        if (is_lazy(s->step)) {
            gremlin__pass(m, f, s, &batch_at(s)[i]);
        } else {
            gremlin__put(&s->kept, &batch_at(s)[i]);
        }
    }
    return DONE;
}

status gremlin__aggregate_finish(gremlin_run *m, flow *f, state *s) {
    (void)gremlin__side(m, name_of(s->step), SIDE_BAG, s->step);
    for (size_t i = 0; i < queue_n(&s->kept); i++) {
        gremlin__pass(m, f, s, &queue_at(&s->kept)[i]);
    }
    gremlin__queue_clear(&s->kept);
    return DONE;
}

/* ---- tree(): kept as its paths, made a tree when it is read ---- */

static void list_tree(gremlin_run *m, state *s, const traverser *t) {
    gremlin_value path = gremlin__path_value(m, t, SLICE_EMPTY, SLICE_EMPTY);
    for (size_t i = 0; i < path.path->n; i++) {
        gremlin__subject_by(s, t, path.path->objects[i], gremlin__by(s->step, i));
    }
    traverser end = {.bulk = -1};
    gremlin__subject_by(s, &end, gremlin_null(), NULL);
}

status gremlin__step_tree(gremlin_run *m, flow *f, state *s) {
    slice name = name_of(s->step);
    status st = gremlin__with_subjects(m, f, s, list_tree);
    if (st != DONE) {
        return st;
    }
    table *t = name.n ? &gremlin__side(m, name, SIDE_TREE, s->step)->table : &s->table;
    const subject *at = subjects_at(s);
    for (size_t i = 0; i < batch_n(s); i++, at++) {
        gremlin_items items = {0};
        for (; at->in.bulk != -1 || at->by; at++) {
            gremlin_items_add(&m->heap, &items, at->out);
        }
        (void)gremlin__entry(t, name.n ? 0 : batch_at(s)[i].tag, gremlin_items_list(&m->heap, &items, GREMLIN_LIST), NULL);
    }
    if (name.n) {
        pass_all(m, f, s);
    }
    return DONE;
}

/* A node is an entry whose tag is 1 + its parent's position, 0 for a root. Children come after their parents, so the maps are made from
 * the last node to the first. `first` says where the children of each node begin in `order`. */
static gremlin_value tree_of_nodes(gremlin_run *m, const table *nodes) {
    size_t n = table_n(nodes);
    if (!arena_fits(&m->heap, n * (sizeof(gremlin_pair) + sizeof(gremlin_value)))) {
        (void)gremlin__fail(m, E_MEMORY, "tree() needs more memory than a request may have");
        return gremlin_null();
    }
    const entry *at = table_at(nodes);
    size_t *first = arena_array(&m->heap, size_t, n + 2);
    gremlin_pair *pairs = arena_array(&m->heap, gremlin_pair, n + 1);
    size_t *place = arena_array(&m->heap, size_t, n + 1);
    for (size_t i = 0; i < n; i++) {
        first[at[i].tag + 1]++;
    }
    for (size_t i = 1; i < n + 2; i++) {
        first[i] += first[i - 1];
    }
    size_t *next = arena_array(&m->heap, size_t, n + 1);
    memcpy(next, first, (n + 1) * sizeof *next);
    for (size_t i = 0; i < n; i++) {
        place[i] = next[at[i].tag]++;
        pairs[place[i]].key = at[i].key;
    }
    for (size_t i = n; i-- > 0;) {
        pairs[place[i]].value = gremlin_map_of(&m->heap, GREMLIN_TREE, pairs + first[i + 1], first[i + 2] - first[i + 1]);
    }
    return gremlin_map_of(&m->heap, GREMLIN_TREE, pairs, first[1]);
}

gremlin_value gremlin__tree_of(gremlin_run *m, const table *t, uint32_t tag) {
    table nodes = {buf_init_counted(BUF_NO_LIMIT, m->op->budget), buf_init_counted(BUF_NO_LIMIT, m->op->budget)};
    for (size_t i = 0; i < table_n(t); i++) {
        const gremlin_list *path = table_at(t)[i].key.list;
        uint32_t parent = 0;
        for (size_t j = 0; table_at(t)[i].tag == tag && j < path->n; j++) {
            const entry *e = gremlin__entry(&nodes, parent, path->at[j], NULL);
            if (!e) {
                break;
            }
            parent = (uint32_t)(e - table_at(&nodes)) + 1;
        }
    }
    gremlin_value tree = tree_of_nodes(m, &nodes);
    gremlin__table_free(&nodes);
    return tree;
}

status gremlin__tree_finish(gremlin_run *m, flow *f, state *s) {
    for (uint32_t tag = 0; name_of(s->step).n == 0 && tag < f->tags; tag++) {
        gremlin__emit_fresh(m, f, s, tag, gremlin__tree_of(m, &s->table, tag));
    }
    gremlin__table_clear(&s->table);
    return DONE;
}

/* ---- subgraph() ---- */

status gremlin__step_subgraph(gremlin_run *m, flow *f, state *s) {
    side *e = gremlin__side(m, name_of(s->step), SIDE_SUBGRAPH, s->step);
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_value v = batch_at(s)[i].value;
        if (v.type != GREMLIN_EDGE) {
            return gremlin__fail(m, E_BAD_QUERY, "subgraph() needs edges, but got a value of the type %s",
                                 gremlin_type_name((gremlin_type)v.type));
        }
        add_to_bag(e, gremlin_of_element(v.element->out), 1);
        add_to_bag(e, gremlin_of_element(v.element->in), 1);
        add_to_bag(e, v, 1);
        gremlin__pass(m, f, s, &batch_at(s)[i]);
    }
    return DONE;
}
