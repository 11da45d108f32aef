/* match_int.h — within mql/: what the files of filters share.
 *
 * match_parse.c parses a filter by two tables of operators, one for {a: {$op: …}} and one for {$op: …}. Each operator makes a node; the
 * operators of one subject are in one file (match_compare.c, match_regex.c, …). match.c tests documents: it walks the tree, match_path.c
 * finds the values at a node's path, and the node's kind says which function tests a value. */
#pragma once

#include "mql/match_tree.h"

struct mql_match {
    const mql_node *root;
    const mql_collation *collation;
};

/* ---- parsing ---- */

typedef struct mql__filter_parser {
    mql_scope *scope;
    unsigned depth;
    bool inside;   /* within $elemMatch: the values are not whole documents */
    bool has_text; /* a $text was parsed */
} mql__filter_parser;

/* One operator of {path: {$op: value, …}}, or {$op: value} with an empty path. */
typedef struct mql__operand {
    slice path;
    const doc_element *e; /* the operator's name and value */
    slice siblings;       /* the document that contains it; for $regex and $options */
} mql__operand;

typedef err (*mql__parse_filter_operator)(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);

typedef struct mql__filter_operator {
    slice name;
    mql__parse_filter_operator parse;
    bool service; /* Azure's service offers it */
} mql__filter_operator;

static inline op *mql__op(const mql__filter_parser *p) {
    return p->scope->op;
}
static inline arena *mql__arena(const mql__filter_parser *p) {
    return p->scope->op->arena;
}

/* A node with its path split. It is always made; the memory that it took is checked once per operator, by mql__room. */
mql_node *mql__node(mql__filter_parser *p, mql_node_kind kind, slice path, mql_value value);
mql_node *mql__negated(mql__filter_parser *p, const mql_node *child);

/* A node that gets children, in order. */
typedef struct mql__list {
    mql_node *parent, *last;
} mql__list;

mql__list mql__list_of(mql__filter_parser *p, mql_node_kind kind, slice path, mql_value value);
void mql__add(mql__list *list, mql_node *child); /* NULL adds nothing */

MUST_CHECK err mql__room(const mql__filter_parser *p); /* whether the arena's budget still holds */
/* An array of `n` zeroed elements; NULL: the arena has no room, as mql__room tells. */
void *mql__array(mql__filter_parser *p, size_t n, size_t element_bytes);
#define mql__new_array(p, type, n) ((type *)mql__array((p), (n), sizeof(type)))

/* A document of fields and top-level operators; conditions on one value, such as {$gt: 1, $lt: 5}. */
MUST_CHECK err mql__parse_document(mql__filter_parser *p, slice document, mql_node **node_out);
MUST_CHECK err mql__parse_conditions(mql__filter_parser *p, slice path, slice conditions, mql__list *into);
bool mql__is_conditions(mql_value v); /* an object whose first key begins with $, and not a DBRef */

/* The rows of both tables one after the other, and the names of shapes, for tests and documents; NULL, or empty: no more. */
const mql__filter_operator *mql__filter_operator_at(size_t position);
slice mql__shape_name_at(size_t position, bool *service_out);

bool mql__is_top_operator(slice name);
bool mql__is_field_operator(slice name);

/* A set of types, from names and numbers. */
typedef struct mql__types {
    uint64_t bits[4];
} mql__types;

MUST_CHECK err mql__parse_types(mql__filter_parser *p, const doc_element *e, mql__types *types_out);
bool mql__types_add(mql__types *types, slice alias); /* false: there is no type of this name */
bool mql__types_have(const mql__types *types, bson_type_t type);

/* An integer operand; 9 (FailedToParse) with MongoDB's messages. */
MUST_CHECK err mql__parse_integer(mql__filter_parser *p, const doc_element *e, int64_t *integer_out);
slice mql__shown(mql__filter_parser *p, const doc_element *e); /* `key: value`, for messages */

err mql__parse_eq(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_ne(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_lt(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_lte(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_gt(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_gte(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_in(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_nin(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_regex(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_options(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_exists(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_type(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_size(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_elem_match(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_all(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_mod(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_bits_all_set(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_bits_any_set(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_bits_all_clear(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_bits_any_clear(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_geo_within(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_geo_intersects(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_near(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_near_sphere(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_near_distance(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_json_schema(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
err mql__parse_text(mql__filter_parser *p, const mql__operand *of, mql_node **node_out);
MUST_CHECK err mql__parse_regex_value(mql__filter_parser *p, slice path, mql_value regex, mql_node **node_out);

/* ---- testing ---- */

typedef struct mql__test {
    mql_run *run;
    const mql_collation *collation;
    int64_t *position; /* NULL: not recorded */
} mql__test;

/* Tests a node against a document; or, with `element`, against an element of an array, which nodes without a path test directly. */
MUST_CHECK err mql__test_node(const mql__test *t, const mql_node *n, mql_value v, bool element, bool *matches_out);

typedef err (*mql__test_value)(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out);
err mql__test_compare(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out);
err mql__test_in(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out);
err mql__test_regex(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out);
err mql__test_exists(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out);
err mql__test_type(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out);
err mql__test_size(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out);
err mql__test_elem_match(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out);
err mql__test_mod(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out);
err mql__test_bits(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out);
err mql__test_geo(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out);
err mql__test_near(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out);
err mql__test_json_schema(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out);
err mql__test_text(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out);

/* ---- paths ---- */

typedef struct mql__visit mql__visit;
struct mql__visit {
    mql_run *run;
    const slice *parts;
    size_t parts_n;
    bool whole_arrays; /* of an array at the end of the path, visit only the array, not its elements */
    /* `position`: the index in the array on the way, -1: none. Sets *stop_out to end the visit. */
    err (*found)(mql__visit *v, mql_value value, int64_t position, bool *stop_out);
};

/* Visits the values at a path, by MongoDB's rules; a missing value too. */
MUST_CHECK err mql__visit_path(mql__visit *v, mql_value document, bool *stopped_out);

/* A dotted path in parts, in the arena. */
const slice *mql__parts_of(arena *a, slice path, size_t *n_out);

/* ---- texts ---- */

/* False: the document names a language that is not known; then it is the index's. */
bool mql__text_language(const mql_text_index *x, mql_value document, search_language *language_out);

/* Visits the strings of a document that a text index has. */
typedef err (*mql__text_visit)(void *context, mql_run *r, slice text, double weight);
MUST_CHECK err mql__each_text(mql_run *r, const mql_text_index *x, mql_value document, mql__text_visit found, void *context);
