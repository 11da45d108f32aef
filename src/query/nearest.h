/* nearest.h — ORDER BY VectorDistance by a vector index: what of it a graph can be asked (find/nearest.h).
 *
 * `diskANN` is approximate: the nearest are found by a graph of the range's vectors (item/nearest.h), and ranked by their exact distances.
 * `flat` and `quantizedFlat` are exact, and so is VectorDistance with `true` as its third argument: all vectors are compared. Below
 * NEAREST_ITEMS_MIN items, and where no graph can be had, so are those of diskANN; what that costs is the same. Only items that have a
 * vector take part. */
#pragma once

#include "find/nearest.h"
#include "query/demand.h"

/* In the operation's arena; it points into the policy. */
find_nearest query_nearest_of(query_runner *r, const index_policy *policy);
