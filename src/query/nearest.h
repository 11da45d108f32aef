/* nearest.h — ORDER BY VectorDistance by a vector index: whether a vector graph can answer it (find/nearest.h).
 *
 * `diskANN` is approximate: a graph of the range's vectors (item/nearest.h) finds the nearest items, which are then ranked by their exact
 * distances. `flat` and `quantizedFlat` are exact, and so is VectorDistance with `true` as its third argument: all vectors are compared.
 * With diskANN all vectors are compared as well if there are fewer than NEAREST_ITEMS_MIN items, or if there is no graph; the charge is the
 * same. Items without a vector are left out. */
#pragma once

#include "find/nearest.h"
#include "query/demand.h"

/* In the operation's arena; points into the policy. */
find_nearest query_nearest_of(query_runner *r, const index_policy *policy);
