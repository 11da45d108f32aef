/* update_int.h — within mql/: the tree of an update, the rows of the table of operators, and what the operators share.
 *
 * {$set: {"a.b": 1, "a.c": 2}, $inc: {"d.$[x].n": 1}} becomes
 *
 *   (root) ─┬─ a ─┬─ b        $set 1
 *           │     └─ c        $set 2
 *           └─ d ── $[x] ── n $inc 1
 *
 * update_parse.c makes the tree, update_apply.c walks it and the document together and writes the new document. A leaf has a modifier,
 * which makes a new value of the old one; either may be missing. The modifiers of one subject are in one file, and end with their rows. */
#pragma once

#include "mql/update.h"

typedef struct mql__modifier mql__modifier;

/* One path of one operator. */
typedef struct mql__leaf {
    const mql__modifier *modifier;
    slice path; /* as written */
    const slice *parts;
    size_t parts_n;
    mql_value operand;
    const void *detail; /* computed by the modifier from the operand, at parsing */
    size_t ordinal;     /* position in the update */
} mql__leaf;

typedef struct mql__array_filter {
    slice identifier;
    const mql_match *match; /* a filter on the document {identifier: element} */
    bool used;
} mql__array_filter;

typedef struct mql__update_node mql__update_node;
struct mql__update_node {
    slice name;            /* field name; if the parent is `filtered`, the identifier of the array filter, or empty for all elements */
    const mql__leaf *leaf; /* NULL: it has children */
    const mql__array_filter *filter;    /* the filter of `$[identifier]`; NULL: every element */
    bool filtered;                      /* the children are for elements of an array: `$[]` and `$[identifier]` */
    const mql__update_node *positional; /* the child `$`, which is not one of `children`; NULL: none */
    const mql__update_node **children;  /* sorted by mql__compare_names */
    size_t n;
};

typedef enum mql__update_kind { MQL__OPERATORS_UPDATE, MQL__REPLACEMENT, MQL__PIPELINE_UPDATE } mql__update_kind;

struct mql_update {
    mql__update_kind kind;
    mql_value source;             /* the replacement */
    const mql__update_node *root; /* of operators */
    const struct mql_pipeline *pipeline;
    const mql_match *match;
    slice filter;
    bool positional; /* some path contains `$` */
};

/* ---- parsing ---- */

typedef struct mql__update_parser {
    mql_scope *scope;
    mql__leaf *leaves;
    size_t n, room;
    mql__array_filter *filters;
    size_t filters_n;
    bool positional;
} mql__update_parser;

/* Splits and checks the path of a leaf. 56 and 2 with MongoDB's texts. */
MUST_CHECK err mql__update_path(op *o, arena *a, mql__leaf *leaf);
/* Sorts the leaves and makes a tree of them; 40 if two paths are in conflict. In the arena. */
MUST_CHECK err mql__update_tree(op *o, arena *a, mql__leaf *leaves, size_t n, mql__array_filter *filters, size_t filters_n,
                                const mql__update_node **root_out);
MUST_CHECK err mql__array_filters_parse(mql_scope *s, slice filters, mql__array_filter **filters_out, size_t *n_out);
MUST_CHECK err mql__operators_parse(mql_scope *s, const mql_update_spec *spec, mql_update *update);
/* Adds a leaf for another path than the operator's own, as $rename does. */
MUST_CHECK err mql__update_add(mql__update_parser *p, const mql__modifier *m, slice path, mql_value operand, mql__leaf **leaf_out);

/* Numbers first, by value, then other names by their bytes. */
int mql__compare_names(slice a, slice b);
bool mql__is_index(slice name, uint64_t *index_out); /* digits without a leading zero */

/* ---- applying ---- */

/* An update being applied to a document. */
typedef struct mql__change {
    mql_run *run;
    bool inserting;
    bool modified;
    mql_value root;   /* the document before */
    int64_t position; /* of `$` */
    buf bytes;        /* of the new document */
    mql_builder out;
    buf scratch; /* where a modifier may build its value; cleared before each */
    buf path;    /* of the value being changed, for error texts */
} mql__change;

struct mql__modifier {
    slice name; /* with its $ */
    /* Checks the operand; NULL: any value. */
    err (*parse)(mql__update_parser *p, mql__leaf *leaf);
    /* Makes the new value. Its bytes may be in the old value, the operand, the scratch buffer or the run's arena. */
    err (*apply)(mql__change *c, const mql__leaf *leaf, mql_value old, mql_value *new_out);
    int variant; /* for functions that serve several operators */
};

typedef struct mql__modifiers {
    const mql__modifier *rows;
    size_t n;
} mql__modifiers;

extern const mql__modifiers mql__field_modifiers, mql__number_modifiers, mql__array_modifiers, mql__push_modifiers, mql__pull_modifiers;
extern const mql__modifier mql__set_modifier;
/* The rows one after the other, for tests and documents; NULL: no more. */
const mql__modifier *mql__modifier_at(size_t position);

/* Applies a tree to a document (missing: to an empty one). */
MUST_CHECK err mql__update_walk(mql_run *r, const mql__update_node *root, mql_value document, bool inserting, int64_t position,
                                mql_updated *updated_out);
/* The document that an upsert starts with: the equalities of the filter. */
MUST_CHECK err mql__upsert_document(mql_run *r, slice filter, slice *document_out);

/* The document's _id for error texts: "{_id: 1}", or "{no id}". */
const char *mql__show_id(const mql__change *c);
/* Ends the array or document built in `scratch`: 17419 if it is too large. */
MUST_CHECK err mql__scratch_value(mql__change *c, mql_builder *b, bson_type_t type, mql_value *value_out);
/* Tests an element of an array with a filter, as the document {name: element}. */
MUST_CHECK err mql__element_matches(mql_run *r, const mql_match *m, slice name, mql_value element, bool *matches_out);

/* Whether the arena has room for so many more bytes; whether its budget was not exceeded. */
MUST_CHECK static inline err mql__room_for(arena *a, size_t bytes) {
    return arena_fits(a, bytes) ? OK : budget_error(a->budget);
}
MUST_CHECK static inline err mql__memory(const arena *a) {
    return a->budget ? budget_error(a->budget) : OK;
}

static inline slice mql__path_now(const mql__change *c) {
    return buf_view(&c->path);
}
