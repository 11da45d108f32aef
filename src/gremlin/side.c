/* side.c — side effects: what aggregate('x'), group('x') and others gather under a name, for cap('x') and select('x'). */
#include "base/memory.h"
#include "gremlin/machine_int.h"
#include "gremlin/steps_int.h"

side *gremlin__side_find(gremlin_run *m, slice name) {
    for (side *e = m->sides; e; e = e->next) {
        if (slice_eq(e->name, name)) {
            return e;
        }
    }
    return NULL;
}

side *gremlin__side(gremlin_run *m, slice name, side_kind kind, const gremlin_step *step) {
    side *e = gremlin__side_find(m, name);
    if (!e) {
        e = mem_zero(sizeof *e);
        *e = (side){.next = m->sides, .name = name, .kind = kind, .step = step};
        buf room = buf_init_counted(BUF_NO_LIMIT, m->op->budget);
        e->table = (table){room, room};
        e->kept = (queue){.bytes = room};
        m->sides = e;
    }
    return e;
}

/* The bag of aggregate() and store(): each value with its bulk. */
static gremlin_value bag_of(gremlin_run *m, const side *e) {
    gremlin_list *list = arena_new(&m->heap, gremlin_list);
    size_t n = table_n(&e->table);
    gremlin_value *at = arena_array(&m->heap, gremlin_value, n + 1);
    int64_t *bulk = arena_array(&m->heap, int64_t, n + 1);
    unsigned depth = 0, weight = 1;
    for (size_t i = 0; i < n; i++) {
        at[i] = table_at(&e->table)[i].key;
        bulk[i] = table_at(&e->table)[i].n;
        depth = gremlin_depth(at[i]) > depth ? gremlin_depth(at[i]) : depth;
        weight = gremlin_heavier(weight, at[i]);
    }
    *list = (gremlin_list){n, depth + 1, weight, at, bulk};
    return (gremlin_value){.type = GREMLIN_BULKSET, .list = list};
}

/* Of the entries of one tag: key to number. */
gremlin_value gremlin__counts_map(gremlin_run *m, const table *t, uint32_t tag) {
    gremlin_pairs pairs = {0};
    for (size_t i = 0; i < table_n(t); i++) {
        if (table_at(t)[i].tag == tag) {
            gremlin_pairs_add(&m->heap, &pairs, table_at(t)[i].key, gremlin_long(table_at(t)[i].n));
        }
    }
    return gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP);
}

gremlin_value gremlin__group_map(gremlin_run *m, const table *t, uint32_t tag, gremlin_type type) {
    gremlin_pairs pairs = {0};
    for (size_t i = 0; i < table_n(t); i++) {
        const entry *e = &table_at(t)[i];
        if (e->tag == tag && e->n) {
            gremlin_pairs_add(&m->heap, &pairs, e->key, e->value);
        }
    }
    return gremlin_pairs_map(&m->heap, &pairs, type);
}

static gremlin_value subgraph_of(gremlin_run *m, const side *e) {
    gremlin_items vertices = {0}, edges = {0};
    for (size_t i = 0; i < table_n(&e->table); i++) {
        gremlin_value v = table_at(&e->table)[i].key;
        gremlin_items_add(&m->heap, v.type == GREMLIN_EDGE ? &edges : &vertices, v);
    }
    gremlin_subgraph *g = arena_new(&m->heap, gremlin_subgraph);
    *g = (gremlin_subgraph){{.n = vertices.n, .depth = 1, .at = vertices.at}, {.n = edges.n, .depth = 1, .at = edges.at}};
    return (gremlin_value){.type = GREMLIN_SUBGRAPH, .subgraph = g};
}

/* Groups whose values are not reduced: lists of what is in them. */
static gremlin_value groups_of(gremlin_run *m, const side *e) {
    for (size_t i = 0; i < table_n(&e->table); i++) {
        entry *group = &table_at(&e->table)[i];
        group->value = gremlin_items_list(&m->heap, &group->items, GREMLIN_LIST);
        group->n = 1;
    }
    return gremlin__group_map(m, &e->table, 0, GREMLIN_MAP);
}

gremlin_value gremlin__side_value(gremlin_run *m, side *e) {
    switch (e->kind) {
    case SIDE_BAG:
        return bag_of(m, e);
    case SIDE_COUNTS:
        return gremlin__counts_map(m, &e->table, 0);
    case SIDE_GROUPS:
        return groups_of(m, e);
    case SIDE_TREE:
        return gremlin__tree_of(m, &e->table, 0);
    case SIDE_SUBGRAPH:
        return subgraph_of(m, e);
    default:
        return e->value;
    }
}
