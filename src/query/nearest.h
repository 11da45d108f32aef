/* nearest.h — ORDER BY VectorDistance by a vector index: what of it a graph can be asked, and asking it.
 *
 * `diskANN` is approximate: the nearest are found by a graph of the range's vectors (item/nearest.h), and ranked by their exact distances.
 * `flat` and `quantizedFlat` are exact, and so is VectorDistance with `true` as its third argument: all vectors are compared. Below
 * NEAREST_ITEMS_MIN items, and where no graph can be had, so are those of diskANN; what that costs is the same. Only items that have a
 * vector take part. */
#pragma once

#include "item/nearest.h"
#include "query/demand.h"

typedef struct query_access query_access;

typedef struct query_nearest {
    bool indexed; /* the order is by distance from a path that has a vector index */
    bool meant;   /* and a graph may be asked: */
    const index_vector *vector;
    const index_embedding *embedding;
    const double *numbers;
    double list_per_row;
} query_nearest;

/* In the operation's arena; it points into the policy. */
query_nearest query_nearest_of(query_runner *r, const index_policy *policy);

/* How a graph was asked. */
typedef struct query_graph_use {
    item_nearest_state state;
    uint64_t known;       /* vectors in it */
    uint64_t others;      /* items that it does not know yet */
    const uint64_t *seen; /* items that were offered, by number: if all must be looked at after all, these were */
    size_t seen_n;
} query_graph_use;

/* Offers the nearest, in any order. *found_out false: it cannot say which they are, and the others must be looked at too. */
MUST_CHECK err query_nearest_find(query_access *a, const query_nearest *n, item_view *v, bool *found_out);

bool query_nearest_was_seen(const query_graph_use *use, uint64_t number);
