/* nearest.h — the vectors nearest to one, by a graph of the range's vectors (item/nearest.h).
 *
 * The asker says whether a graph may be asked at all (query/nearest.c reads it from ORDER BY VectorDistance). Items that a graph finds are
 * offered in any order, and ranked by their exact distances by whoever gets them. */
#pragma once

#include "item/nearest.h"

typedef struct find_access find_access;

typedef struct find_nearest {
    bool indexed; /* the order is by distance from a path that has a vector index */
    bool meant;   /* and a graph may be asked: */
    const index_vector *vector;
    const index_embedding *embedding;
    const double *numbers;
    double list_per_row;
} find_nearest;

/* How a graph was asked. */
typedef struct find_graph_use {
    item_nearest_state state;
    uint64_t known;       /* vectors in it */
    uint64_t others;      /* items that it does not know yet */
    const uint64_t *seen; /* items that were offered, by number: if all must be looked at after all, these were */
    size_t seen_n;
} find_graph_use;

bool find_nearest_was_seen(const find_graph_use *use, uint64_t number);
