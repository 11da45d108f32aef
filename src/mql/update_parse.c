/* update_parse.c — operators of an update: the table, their paths, and the tree of them. */
#include <stdlib.h>

#include "mql/show.h"
#include "mql/update_int.h"

/* ---- the table ---- */

static const mql__modifiers *const tables[] = {&mql__field_modifiers, &mql__number_modifiers, &mql__array_modifiers, &mql__push_modifiers,
                                               &mql__pull_modifiers};

const mql__modifier *mql__modifier_at(size_t position) {
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        if (position < tables[t]->n) {
            return &tables[t]->rows[position];
        }
        position -= tables[t]->n;
    }
    return NULL;
}

static const mql__modifier *find_modifier(slice name) {
    const mql__modifier *row;
    for (size_t i = 0; (row = mql__modifier_at(i)) != NULL && !slice_eq(row->name, name);) {
        i++;
    }
    return row;
}

/* ---- names and paths ---- */

bool mql__is_index(slice name, uint64_t *index_out) {
    *index_out = 0;
    return name.n > 0 && name.n < 19 && (name.n == 1 || name.p[0] != '0') && slice_to_u64(name, index_out);
}

int mql__compare_names(slice a, slice b) {
    uint64_t x, y;
    bool a_number = mql__is_index(a, &x), b_number = mql__is_index(b, &y);
    if (a_number && b_number) {
        return (x > y) - (x < y);
    }
    return a_number != b_number ? (int)b_number - (int)a_number : slice_cmp(a, b);
}

static bool is_filtered(slice part) { /* $[] or $[identifier] */
    return part.n >= 3 && slice_starts(part, SLICE_LIT("$[")) && part.p[part.n - 1] == ']';
}

static bool is_positional(slice part) {
    return slice_eq(part, SLICE_LIT("$"));
}

static err split(op *o, arena *a, mql__leaf *leaf) {
    size_t n = 1;
    for (size_t i = 0; i < leaf->path.n; i++) {
        n += leaf->path.p[i] == '.';
    }
    if (n > MQL_DEPTH_MAX) {
        return mql_fail(o, 15, "The update path has %zu components; the maximum nested object depth is %d.", n, MQL_DEPTH_MAX);
    }
    slice *parts = arena_array(a, slice, n);
    slice rest = leaf->path;
    for (size_t i = 0; i < n; i++) {
        const char *dot = rest.n ? memchr(rest.p, '.', rest.n) : NULL;
        parts[i] = dot ? slice_of(rest.p, (size_t)(dot - rest.p)) : rest;
        rest = slice_skip(rest, parts[i].n + 1);
    }
    leaf->parts = parts;
    leaf->parts_n = n;
    return OK;
}

static err check_dollars(op *o, const mql__leaf *leaf) {
    int shown = slice_shown(leaf->path);
    size_t positional = 0;
    if (is_positional(leaf->parts[0])) {
        return mql_fail(o, 2, "Cannot have positional (i.e. '$') element in the first position in path '%.*s'", shown, leaf->path.p);
    }
    if (is_filtered(leaf->parts[0])) {
        return mql_fail(o, 2, "Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '%.*s'", shown,
                        leaf->path.p);
    }
    for (size_t i = 0; i < leaf->parts_n; i++) {
        positional += is_positional(leaf->parts[i]);
        if (slice_starts(leaf->parts[i], SLICE_LIT("$")) && !is_positional(leaf->parts[i]) && !is_filtered(leaf->parts[i])) {
            return mql_fail(o, 52, "The dollar ($) prefixed field '%.*s' in '%.*s' is not valid for storage.", slice_shown(leaf->parts[i]),
                            leaf->parts[i].p, shown, leaf->path.p);
        }
    }
    return positional > 1 ? mql_fail(o, 2, "Too many positional (i.e. '$') elements found in path '%.*s'", shown, leaf->path.p) : OK;
}

err mql__update_path(op *o, arena *a, mql__leaf *leaf) {
    if (leaf->path.n == 0) {
        return mql_fail(o, 56, "An empty update path is not valid.");
    }
    err e = split(o, a, leaf);
    for (size_t i = 0; e == OK && i < leaf->parts_n; i++) {
        if (leaf->parts[i].n == 0) {
            e = mql_fail(o, 56, "The update path '%.*s' contains an empty field name, which is not allowed.", slice_shown(leaf->path),
                         leaf->path.p);
        }
    }
    return e;
}

/* ---- the tree ---- */

static int compare_leaves(const void *a, const void *b) {
    const mql__leaf *x = a, *y = b;
    for (size_t i = 0; i < x->parts_n && i < y->parts_n; i++) {
        int by = mql__compare_names(x->parts[i], y->parts[i]);
        if (by) {
            return by;
        }
    }
    return x->parts_n != y->parts_n ? (x->parts_n > y->parts_n) - (x->parts_n < y->parts_n)
                                    : (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

/* The beginning of the path, with that many components. */
static slice prefix(const mql__leaf *leaf, size_t parts) {
    return slice_of(leaf->path.p, parts ? (size_t)(leaf->parts[parts - 1].p + leaf->parts[parts - 1].n - leaf->path.p) : 0);
}

static err conflict(op *o, const mql__leaf *a, const mql__leaf *b, size_t parts) {
    const mql__leaf *later = a->ordinal > b->ordinal ? a : b;
    slice at = prefix(later, parts);
    return mql_fail(o, 40, "Updating the path '%.*s' would create a conflict at '%.*s'", slice_shown(later->path), later->path.p,
                    slice_shown(at), at.p);
}

typedef struct planter {
    op *op;
    arena *arena;
    const mql__leaf *leaves; /* sorted */
    mql__array_filter *filters;
    size_t filters_n;
} planter;

static err find_filter(const planter *p, const mql__leaf *leaf, slice part, mql__update_node *node) {
    node->name = slice_of(part.p + 2, part.n - 3);
    for (size_t i = 0; node->name.n && i < p->filters_n; i++) {
        if (slice_eq(p->filters[i].identifier, node->name)) {
            p->filters[i].used = true;
            node->filter = &p->filters[i];
        }
    }
    if (node->name.n && !node->filter) {
        return mql_fail(p->op, 2, "No array filter found for identifier '%.*s' in path '%.*s'", slice_shown(node->name), node->name.p,
                        slice_shown(leaf->path), leaf->path.p);
    }
    return OK;
}

static size_t end_of_group(const planter *p, size_t from, size_t to, size_t depth) {
    size_t end = from + 1;
    while (end < to && slice_eq(p->leaves[end].parts[depth], p->leaves[from].parts[depth])) {
        end++;
    }
    return end;
}

/* Makes the children of a node from the leaves [from, to), which share the first `depth` components. */
static err plant(const planter *p, size_t from, size_t to, size_t depth, mql__update_node *node) {
    const mql__leaf *first = &p->leaves[from];
    size_t groups = 0;
    if (first->parts_n == depth) {
        node->leaf = first;
        return to - from > 1 ? conflict(p->op, first, &p->leaves[from + 1], depth) : OK;
    }
    for (size_t i = from; i < to; i = end_of_group(p, i, to, depth)) {
        groups++;
    }
    node->filtered = is_filtered(first->parts[depth]);
    node->children = arena_array(p->arena, const mql__update_node *, groups);
    for (size_t i = from, end; i < to; i = end) {
        const mql__leaf *leaf = &p->leaves[i];
        slice part = leaf->parts[depth];
        end = end_of_group(p, i, to, depth);
        if (is_filtered(part) != node->filtered) {
            return conflict(p->op, first, leaf, depth);
        }
        mql__update_node *child = arena_new(p->arena, mql__update_node);
        child->name = part;
        if (node->filtered) {
            TRY(find_filter(p, leaf, part, child));
        }
        TRY(plant(p, i, end, depth + 1, child));
        if (is_positional(part)) {
            node->positional = child;
        } else {
            node->children[node->n++] = child;
        }
    }
    return OK;
}

err mql__update_tree(op *o, arena *a, mql__leaf *leaves, size_t n, mql__array_filter *filters, size_t filters_n,
                     const mql__update_node **root_out) {
    planter p = {o, a, leaves, filters, filters_n};
    mql__update_node *root = arena_new(a, mql__update_node);
    *root_out = root;
    if (n == 0) {
        return OK;
    }
    qsort(leaves, n, sizeof *leaves, compare_leaves);
    return plant(&p, 0, n, 0, root);
}

/* ---- operators ---- */

static err check_used(op *o, const mql__update_parser *p, mql_value update) {
    for (size_t i = 0; i < p->filters_n; i++) {
        if (!p->filters[i].used) {
            return mql_fail(o, 9, "The array filter for identifier '%.*s' was not used in the update %s",
                            slice_shown(p->filters[i].identifier), p->filters[i].identifier.p, mql__show(o->arena, update));
        }
    }
    return OK;
}

err mql__update_add(mql__update_parser *p, const mql__modifier *m, slice path, mql_value operand, mql__leaf **leaf_out) {
    op *o = p->scope->op;
    mql__leaf *leaf = &p->leaves[p->n];
    *leaf = (mql__leaf){.modifier = m, .path = path, .operand = operand, .ordinal = p->n};
    p->n++;
    *leaf_out = leaf;
    TRY(mql__update_path(o, o->arena, leaf));
    TRY(check_dollars(o, leaf));
    for (size_t i = 0; i < leaf->parts_n; i++) {
        p->positional = p->positional || is_positional(leaf->parts[i]);
    }
    return mql__memory(o->arena);
}

static err parse_operator(mql__update_parser *p, const doc_element *operator) {
    op *o = p->scope->op;
    const mql__modifier *m = find_modifier(operator->key);
    doc_walk w;
    doc_element e;
    if (!m) {
        return mql_fail(o, 9, "Unknown modifier: %.*s. Expected a valid update modifier or pipeline-style update specified as an array",
                        slice_shown(operator->key), operator->key.p);
    }
    if (operator->type != BSON_TYPE_DOCUMENT) {
        return mql_fail(o, 9,
                        "Modifiers operate on fields but we found type %s instead. For example: {$mod: {<field>: ...}} not {%.*s: %s}",
                        mql_type_name(operator->type), slice_shown(operator->key), operator->key.p, mql__show(o->arena, mql_of(operator)));
    }
    for (doc_walk_init(&w, operator->value); doc_walk_next(&w, &e);) {
        mql__leaf *leaf;
        TRY(mql__update_add(p, m, e.key, mql_of(&e), &leaf));
        if (m->parse) {
            TRY(m->parse(p, leaf));
        }
    }
    return OK;
}

/* Two leaves for each field: $rename needs both. */
static size_t count_leaves(slice update) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    for (doc_walk_init(&w, update); doc_walk_next(&w, &e);) {
        n += 2 * mql_length(mql_of(&e));
    }
    return n;
}

err mql__operators_parse(mql_scope *s, const mql_update_spec *spec, mql_update *update) {
    arena *a = s->op->arena;
    mql__update_parser p = {.scope = s, .room = count_leaves(spec->update.bytes)};
    doc_walk w;
    doc_element e;
    TRY(mql__room_for(a, p.room * sizeof(mql__leaf)));
    TRY(mql__array_filters_parse(s, spec->array_filters, &p.filters, &p.filters_n));
    p.leaves = arena_array(a, mql__leaf, p.room ? p.room : 1);
    for (doc_walk_init(&w, spec->update.bytes); doc_walk_next(&w, &e);) {
        TRY(parse_operator(&p, &e));
    }
    update->positional = p.positional;
    TRY(mql__update_tree(s->op, a, p.leaves, p.n, p.filters, p.filters_n, &update->root));
    TRY(check_used(s->op, &p, spec->update));
    return mql__memory(a);
}
