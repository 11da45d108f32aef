/* nearest.h — vector search by a graph of the range's vectors (item/nearest.h).
 *
 * The caller decides whether a graph may be used (query/nearest.c derives it from ORDER BY VectorDistance). Items that a graph finds are
 * offered in any order; the visitor ranks them by their exact distances. */
#pragma once

#include "item/nearest.h"

typedef struct find_access find_access;

typedef struct find_nearest {
    bool indexed; /* the order is by distance, on a path that has a vector index */
    bool meant;   /* a graph may be used; the members below are set */
    const index_vector *vector;
    const index_embedding *embedding;
    const double *numbers;
    double list_per_row;
} find_nearest;

/* How a graph was used. */
typedef struct find_graph_use {
    item_nearest_state state;
    uint64_t known;       /* vectors in the graph */
    uint64_t others;      /* items that are not in the graph yet */
    const uint64_t *seen; /* numbers of items already offered; skipped if all items must be read after all */
    size_t seen_n;
} find_graph_use;

bool find_nearest_was_offered(const find_graph_use *use, uint64_t number);
