/* match_tree.h — a parsed filter as a tree, for planners, which need to know which index serves it and which shard key values it names.
 *
 * Negations are explicit: {a: {$ne: 1}} is MQL_NOT of MQL_EQ, {a: {$exists: false}} is MQL_NOT of MQL_EXISTS, and {a: {$nin: […]}} is
 * MQL_NOT of MQL_IN. {a: {$all: [1, 2]}} is MQL_AND of two MQL_EQ, and {a: {$all: []}} is MQL_NOTHING. The tree is constant, and lives as
 * long as the arena in which it was parsed. */
#pragma once

#include "geo/cells.h"
#include "mql/match.h"

typedef enum mql_node_kind {
    /* of other nodes */
    MQL_AND, /* without children it matches every document */
    MQL_OR,
    MQL_NOR,
    MQL_NOT,     /* one child */
    MQL_NOTHING, /* matches no document */

    /* conditions on the values at a path; an array at its end stands for its elements and for itself */
    MQL_EQ,
    MQL_LT,
    MQL_LTE,
    MQL_GT,
    MQL_GTE,
    MQL_IN,     /* `value` is the array; it may contain regular expressions, which match strings */
    MQL_EXISTS, /* the field exists */
    MQL_TYPE,
    MQL_MOD,
    MQL_REGEX, /* `value` is a regular expression, whichever way it was written */
    MQL_BITS_ALL_SET,
    MQL_BITS_ANY_SET,
    MQL_BITS_ALL_CLEAR,
    MQL_BITS_ANY_CLEAR,
    MQL_GEO_WITHIN,
    MQL_GEO_INTERSECTS,
    MQL_NEAR, /* within the distances; mql_near_distance computes the distance */

    /* conditions on an array at a path */
    MQL_SIZE,
    MQL_ELEM_MATCH,       /* some element is a document or array that matches the child, whose paths begin in the element */
    MQL_ELEM_MATCH_VALUE, /* some element matches all children, whose paths are empty */

    /* of the document */
    MQL_EXPR,
    MQL_JSON_SCHEMA,
    MQL_TEXT,
} mql_node_kind;

typedef struct mql_node mql_node;
struct mql_node {
    mql_node_kind kind;
    slice path;         /* dotted; empty: the value itself, or no path at all */
    const slice *parts; /* of the path */
    size_t parts_n;
    mql_value value;       /* the operand, as it stands in the filter; bytes of the filter or of its arena */
    const mql_node *first; /* child; its siblings follow by `next` */
    const mql_node *next;
    const void *detail; /* private to mql/ */
};

const mql_node *mql_match_root(const mql_match *m);

/* The first node of this kind that every matching document must meet; NULL: there is none. */
const mql_node *mql_match_conjunct(const mql_match *m, mql_node_kind kind);

/* The distance from the point of a MQL_NEAR node to the nearest place in a document, among those within its distances: metres if the point
 * is GeoJSON, radians for a pair with $nearSphere, otherwise the unit of the pair. Infinite if there is none. */
MUST_CHECK err mql_near_distance(mql_run *r, const mql_node *near_node, mql_value document, double *distance_out);
double mql_near_metres(const mql_node *near_node); /* the metres of that unit; 0: the distance is one in the plane */

/* The common prefix of all strings that a MQL_REGEX node matches, such as "ab" for /^ab.c/; empty: none is known. In the arena. */
slice mql_regex_prefix(arena *a, const mql_node *regex);

/* The terms of a MQL_TEXT node: each document that it matches has one of them at least (mql/key.h). In the arena. */
size_t mql_text_terms(const mql_node *text, const slice **terms_out, arena *a);

/* The cells in which every geometry lies, or which lie in it, that a MQL_GEO_WITHIN, MQL_GEO_INTERSECTS or MQL_NEAR node matches.
 * `most`: for MQL_NEAR, a distance in its unit beyond which places do not count; INFINITY: none. 0: no bound is known, as for shapes in
 * the plane. */
enum { MQL_GEO_SPANS_MAX = 1000 };
size_t mql_geo_cells(arena *a, const mql_node *n, double most, const geo_cell_span **spans_out);
