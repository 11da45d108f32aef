/* update_apply.c — walks the tree of an update and a document together, and writes the new document.
 *
 * Values that the tree does not mention are copied. A removed value is left out; in an array it becomes null, so that the others keep their
 * positions. A path through missing fields makes documents, but only if a modifier at its end writes something; otherwise they are taken
 * back (rewind). */
#include <inttypes.h>
#include <stdio.h>

#include "mql/show.h"
#include "mql/update_int.h"

enum { PADDING_MAX = 1500000, DOCUMENT_BYTES_MAX = 16 * 1024 * 1024, SHOWN_PATH_BYTES_MAX = 4096 };

/* The place of a new value: a member of a document, or the next element of an array. */
typedef struct slot {
    slice key;
    bool in_array;
} slot;

static err apply_node(mql__change *c, const mql__update_node *node, slot at, mql_value old, bool *wrote_out);

/* ---- writing ---- */

static err too_large(mql__change *c) {
    if (c->run->arena->budget && c->run->arena->budget->exceeded) {
        return budget_error(c->run->arena->budget);
    }
    if (c->out.depth >= MQL_DEPTH_MAX) {
        return mql_fail(c->run->op, 15, "Document exceeds maximum nested object depth: %d", MQL_DEPTH_MAX);
    }
    return c->inserting ? mql_fail(c->run->op, 17420, "Document to upsert is larger than %d", DOCUMENT_BYTES_MAX)
                        : mql_fail(c->run->op, 17419, "Resulting document after update is larger than %d", DOCUMENT_BYTES_MAX);
}

static err add(mql__change *c, slot at, mql_value v) {
    TRY(mql_pay(c->run, 2 + v.bytes.n / 64));
    if (at.in_array) {
        mql_add_next(&c->out, v);
    } else {
        mql_add(&c->out, at.key, v);
    }
    return buf_ok(&c->bytes) ? OK : too_large(c);
}

static err open_container(mql__change *c, slot at, bson_type_t type) {
    if (at.in_array) {
        mql_open_next(&c->out, type);
    } else {
        mql_open(&c->out, at.key, type);
    }
    return buf_ok(&c->bytes) ? OK : too_large(c);
}

static err close_container(mql__change *c) {
    mql_close(&c->out);
    return buf_ok(&c->bytes) ? OK : too_large(c);
}

/* A position in the output, to truncate it to. */
typedef struct place {
    size_t n;
    unsigned depth;
    uint32_t elements;
} place;

static place here(const mql__change *c) {
    return (place){c->bytes.n, c->out.depth, c->out.elements[c->out.depth]};
}

static void rewind_to(mql__change *c, place p) {
    c->bytes.n = p.n;
    c->out.depth = p.depth;
    c->out.elements[p.depth] = p.elements;
}

err mql__scratch_value(mql__change *c, mql_builder *b, bson_type_t type, mql_value *value_out) {
    slice built = mql_built(b);
    *value_out = (mql_value){type, built};
    return buf_ok(&c->scratch) ? OK : too_large(c);
}

/* ---- the path, for error texts ---- */

static size_t enter(mql__change *c, slice name) {
    size_t before = c->path.n;
    if (before) {
        buf_add_byte(&c->path, '.');
    }
    buf_add_slice(&c->path, name);
    return before;
}

static size_t enter_index(mql__change *c, uint64_t index) {
    char text[24];
    int n = snprintf(text, sizeof text, "%" PRIu64, index);
    return enter(c, slice_of(text, (size_t)n));
}

const char *mql__show_id(const mql__change *c) {
    mql_value id = mql_member(c->root, SLICE_LIT("_id"));
    arena *a = c->run->op->arena;
    return mql_is_missing(id) ? "{no id}" : arena_text(a, arena_printf(a, "{_id: %s}", mql__show(a, id)));
}

/* The last name of the path and the value: `a: 5`. */
static const char *show_member(mql__change *c, mql_value v) {
    slice path = mql__path_now(c);
    size_t from = path.n;
    while (from > 0 && path.p[from - 1] != '.') {
        from--;
    }
    arena *a = c->run->op->arena;
    slice name = slice_skip(path, from);
    return arena_text(a, arena_printf(a, "%.*s: %s", slice_shown(name), name.p, mql__show(a, v)));
}

/* ---- leaves ---- */

static bool identical(mql_value a, mql_value b) {
    return a.type == b.type && slice_eq(a.bytes, b.bytes);
}

static err apply_leaf(mql__change *c, const mql__leaf *leaf, slot at, mql_value old, bool *wrote_out) {
    mql_value new = mql_missing();
    buf_clear(&c->scratch);
    TRY(mql_pay(c->run, 4));
    TRY(leaf->modifier->apply(c, leaf, old, &new));
    if (at.in_array && mql_is_missing(new) && !mql_is_missing(old)) {
        new = mql_null();
    }
    c->modified = c->modified || !identical(old, new);
    *wrote_out = !mql_is_missing(new);
    return *wrote_out ? add(c, at, new) : OK;
}

/* ---- merging, where `$` or several array filters lead to the same element ---- */

static err merge(mql__change *c, const mql__update_node *a, const mql__update_node *b, unsigned depth, const mql__update_node **merged_out);

static err merge_children(mql__change *c, const mql__update_node *a, const mql__update_node *b, unsigned depth, mql__update_node *merged) {
    size_t i = 0, j = 0;
    TRY(mql__room_for(c->run->arena, (a->n + b->n) * sizeof *merged->children));
    merged->children = arena_array(c->run->arena, const mql__update_node *, a->n + b->n + 1);
    while (i < a->n || j < b->n) {
        int by = i == a->n ? 1 : j == b->n ? -1 : mql__compare_names(a->children[i]->name, b->children[j]->name);
        const mql__update_node *next = by <= 0 ? a->children[i] : b->children[j];
        if (by == 0) {
            size_t before = enter(c, next->name);
            TRY(merge(c, a->children[i], b->children[j], depth + 1, &next));
            c->path.n = before;
        }
        merged->children[merged->n++] = next;
        i += by <= 0;
        j += by >= 0;
    }
    return mql_pay(c->run, 4 * merged->n);
}

static err merge(mql__change *c, const mql__update_node *a, const mql__update_node *b, unsigned depth,
                 const mql__update_node **merged_out) {
    slice path = mql__path_now(c);
    if (a->leaf || b->leaf || a->filtered != b->filtered || depth > MQL_DEPTH_MAX) {
        return mql_fail(c->run->op, 40, "Update created a conflict at '%.*s'", slice_shown(path), path.p);
    }
    mql__update_node *merged = arena_new(c->run->arena, mql__update_node);
    *merged = (mql__update_node){.name = a->name, .filter = a->filter, .filtered = a->filtered};
    *merged_out = merged;
    return merge_children(c, a, b, depth, merged);
}

/* The node with its child `$` under the name of the position that the filter matched. */
static err place_positional(mql__change *c, const mql__update_node *node, const mql__update_node **placed_out) {
    arena *a = c->run->arena;
    *placed_out = node;
    if (!node->positional) {
        return OK;
    }
    if (c->position < 0) {
        return mql_fail(c->run->op, 2, "The positional operator did not find the match needed from the query.");
    }
    mql__update_node *child = arena_new(a, mql__update_node), *single = arena_new(a, mql__update_node);
    *child = *node->positional;
    child->name = arena_printf(a, "%" PRId64, c->position);
    single->children = arena_array(a, const mql__update_node *, 1);
    single->children[single->n++] = child;
    return merge(c, node, single, 0, placed_out);
}

/* ---- documents ---- */

static const mql__update_node *find_child(const mql__update_node *node, slice name, size_t *at_out) {
    size_t low = 0, high = node->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int by = mql__compare_names(name, node->children[middle]->name);
        if (by == 0) {
            *at_out = middle;
            return node->children[middle];
        }
        low = by > 0 ? middle + 1 : low;
        high = by > 0 ? high : middle;
    }
    return NULL;
}

static err apply_child(mql__change *c, const mql__update_node *child, slot at, mql_value old, bool *wrote_out) {
    size_t before = enter(c, child->name);
    TRY(apply_node(c, child, at, old, wrote_out));
    c->path.n = before;
    return OK;
}

/* Appends the children whose fields the document lacks, in order. */
static err add_new_members(mql__change *c, const mql__update_node *node, const bool *done, bool *wrote_out) {
    for (size_t i = 0; i < node->n; i++) {
        bool wrote = false;
        if (!done || !done[i]) {
            TRY(apply_child(c, node->children[i], (slot){node->children[i]->name, false}, mql_missing(), &wrote));
            *wrote_out = *wrote_out || wrote;
        }
    }
    return OK;
}

static err apply_members(mql__change *c, const mql__update_node *node, mql_value old) {
    doc_walk w;
    doc_element e;
    bool wrote = false;
    TRY(mql__room_for(c->run->arena, node->n));
    bool *done = arena_array(c->run->arena, bool, node->n + 1);
    for (doc_walk_init(&w, old.bytes); doc_walk_next(&w, &e);) {
        size_t at = 0;
        const mql__update_node *child = find_child(node, e.key, &at);
        TRY(mql_pay(c->run, 1));
        if (child && !done[at]) {
            done[at] = true;
            TRY(apply_child(c, child, (slot){e.key, false}, mql_of(&e), &wrote));
        } else {
            TRY(add(c, (slot){e.key, false}, mql_of(&e)));
        }
    }
    return add_new_members(c, node, done, &wrote);
}

/* The field is missing: a document is made for the children, if one of them writes something. */
static err apply_to_missing(mql__change *c, const mql__update_node *node, slot at, bool *wrote_out) {
    place before = here(c);
    *wrote_out = false;
    TRY(open_container(c, at, BSON_TYPE_DOCUMENT));
    TRY(add_new_members(c, node, NULL, wrote_out));
    if (!*wrote_out) {
        rewind_to(c, before);
        return OK;
    }
    return close_container(c);
}

/* ---- what cannot have the fields ---- */

static err not_viable(mql__change *c, slice name, mql_value old) {
    return mql_fail(c->run->op, 28, "Cannot create field '%.*s' in element {%s}", slice_shown(name), name.p, show_member(c, old));
}

/* Fails if a child would write into a value that cannot have fields. Otherwise does nothing. */
static err refuse_child(mql__change *c, const mql__update_node *child, mql_value old) {
    place before = here(c);
    bool wrote = false, modified = c->modified;
    TRY(apply_child(c, child, (slot){child->name, false}, mql_missing(), &wrote));
    rewind_to(c, before);
    c->modified = modified;
    return wrote ? not_viable(c, child->name, old) : OK;
}

static err apply_to_scalar(mql__change *c, const mql__update_node *node, slot at, mql_value old) {
    for (size_t i = 0; i < node->n; i++) {
        TRY(refuse_child(c, node->children[i], old));
    }
    return add(c, at, old);
}

/* ---- arrays ---- */

static err pad(mql__change *c, uint64_t from, uint64_t to) {
    if (to - from > PADDING_MAX) {
        return mql_fail(c->run->op, 34, "can't backfill more than %d elements", PADDING_MAX);
    }
    for (uint64_t i = from; i < to; i++) {
        TRY(add(c, (slot){SLICE_EMPTY, true}, mql_null()));
    }
    return OK;
}

/* A child for an index at or beyond the end of the array. */
static err add_new_element(mql__change *c, const mql__update_node *child, uint64_t index, uint64_t *length) {
    place before = here(c);
    bool wrote = false, modified = c->modified;
    TRY(apply_child(c, child, (slot){SLICE_EMPTY, true}, mql_missing(), &wrote));
    if (!wrote) {
        return OK;
    }
    if (index > *length) { /* it writes something: undo it, append nulls up to the index, and apply it again */
        rewind_to(c, before);
        c->modified = modified;
        TRY(pad(c, *length, index));
        TRY(apply_child(c, child, (slot){SLICE_EMPTY, true}, mql_missing(), &wrote));
    }
    *length = index + 1;
    return OK;
}

/* Children with names that are indexes; they come first among the children, in order. */
static err apply_indexes(mql__change *c, const mql__update_node *node, mql_value old) {
    doc_walk w;
    doc_element e;
    size_t next = 0;
    uint64_t index, length = 0;
    bool wrote;
    for (doc_walk_init(&w, old.bytes); doc_walk_next(&w, &e); length++) {
        if (next < node->n && mql__is_index(node->children[next]->name, &index) && index == length) {
            TRY(apply_child(c, node->children[next++], (slot){SLICE_EMPTY, true}, mql_of(&e), &wrote));
        } else {
            TRY(add(c, (slot){SLICE_EMPTY, true}, mql_of(&e)));
        }
    }
    for (; next < node->n; next++) {
        if (mql__is_index(node->children[next]->name, &index)) {
            TRY(add_new_element(c, node->children[next], index, &length));
        } else {
            TRY(refuse_child(c, node->children[next], old));
        }
    }
    return OK;
}

err mql__element_matches(mql_run *r, const mql_match *m, slice name, mql_value element, bool *matches_out) {
    mql_value root = r->root;
    arena_mark mark = arena_marked(r->arena);
    buf wrapped = buf_init_counted(BUF_NO_LIMIT, r->arena->budget);
    mql_builder b = mql_build(&wrapped);
    mql_add(&b, name, element);
    slice document = mql_built(&b);
    *matches_out = false;
    err e = buf_ok(&wrapped) ? mql_pay(r, 8 + element.bytes.n / 64) : budget_error(r->arena->budget);
    if (e == OK) {
        r->root = mql_document(document);
        e = mql_matches(r, m, matches_out, NULL);
        r->root = root;
    }
    buf_free(&wrapped);
    arena_release(r->arena, mark);
    return e;
}

/* The nodes of all array filters that match the element, merged into one; NULL: none does. */
static err choose(mql__change *c, const mql__update_node *node, mql_value element, const mql__update_node **chosen_out) {
    *chosen_out = NULL;
    for (size_t i = 0; i < node->n; i++) {
        const mql__update_node *child = node->children[i];
        bool matches = true;
        if (child->filter) {
            TRY(mql__element_matches(c->run, child->filter->match, child->filter->identifier, element, &matches));
        }
        if (matches && *chosen_out) {
            TRY(merge(c, *chosen_out, child, 0, chosen_out));
        } else if (matches) {
            *chosen_out = child;
        }
    }
    return OK;
}

static err apply_filtered(mql__change *c, const mql__update_node *node, slot at, mql_value old) {
    slice path = mql__path_now(c);
    doc_walk w;
    doc_element e;
    bool wrote;
    if (mql_is_missing(old)) {
        return mql_fail(c->run->op, 2, "The path '%.*s' must exist in the document in order to apply array updates.", slice_shown(path),
                        path.p);
    }
    if (old.type != BSON_TYPE_ARRAY) {
        return mql_fail(c->run->op, 2, "Cannot apply array updates to non-array element %s", show_member(c, old));
    }
    TRY(open_container(c, at, BSON_TYPE_ARRAY));
    doc_walk_init(&w, old.bytes);
    for (uint64_t i = 0; doc_walk_next(&w, &e); i++) {
        const mql__update_node *chosen;
        size_t before = enter_index(c, i);
        TRY(choose(c, node, mql_of(&e), &chosen));
        if (chosen) {
            TRY(apply_node(c, chosen, (slot){SLICE_EMPTY, true}, mql_of(&e), &wrote));
        } else {
            TRY(add(c, (slot){SLICE_EMPTY, true}, mql_of(&e)));
        }
        c->path.n = before;
    }
    return close_container(c);
}

/* ---- all nodes ---- */

static err apply_to_container(mql__change *c, const mql__update_node *node, slot at, mql_value old) {
    TRY(open_container(c, at, old.type));
    TRY(old.type == BSON_TYPE_ARRAY ? apply_indexes(c, node, old) : apply_members(c, node, old));
    return close_container(c);
}

static err apply_node(mql__change *c, const mql__update_node *node, slot at, mql_value old, bool *wrote_out) {
    *wrote_out = !mql_is_missing(old);
    TRY(mql__memory(c->run->arena));
    if (node->leaf) {
        return apply_leaf(c, node->leaf, at, old, wrote_out);
    }
    if (node->filtered) {
        return apply_filtered(c, node, at, old);
    }
    TRY(place_positional(c, node, &node));
    if (mql_is_missing(old)) {
        return apply_to_missing(c, node, at, wrote_out);
    }
    return doc_is_container(old.type) ? apply_to_container(c, node, at, old) : apply_to_scalar(c, node, at, old);
}

static err finish(mql__change *c, mql_updated *updated_out) {
    slice document = mql_built(&c->out);
    if (!buf_ok(&c->bytes) || document.n > DOCUMENT_BYTES_MAX) {
        return too_large(c);
    }
    TRY(mql_pay(c->run, 1 + document.n / 32));
    if (!doc_is_well_formed(document, MQL_DEPTH_MAX)) {
        return mql_fail(c->run->op, 15, "Document exceeds maximum nested object depth: %d", MQL_DEPTH_MAX);
    }
    TRY(mql__room_for(c->run->arena, document.n));
    updated_out->document = arena_copy(c->run->arena, document);
    updated_out->modified = c->modified;
    return OK;
}

err mql__update_walk(mql_run *r, const mql__update_node *root, mql_value document, bool inserting, int64_t position,
                     mql_updated *updated_out) {
    static const char empty[] = "\5\0\0\0";
    mql__change c = {.run = r, .inserting = inserting, .position = position};
    c.root = mql_is_missing(document) ? mql_document(slice_of(empty, 5)) : document;
    c.bytes = buf_init_counted(DOCUMENT_BYTES_MAX, r->arena->budget);
    c.scratch = buf_init_counted(DOCUMENT_BYTES_MAX, r->arena->budget);
    c.path = buf_init(SHOWN_PATH_BYTES_MAX);
    c.out = mql_build(&c.bytes);
    err e = apply_members(&c, root, c.root);
    if (e == OK) {
        e = finish(&c, updated_out);
    }
    buf_free(&c.bytes);
    buf_free(&c.scratch);
    buf_free(&c.path);
    return e;
}
