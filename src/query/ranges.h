/* ranges.h — which parts of the hash space a query can find anything in: from the partition keys that its WHERE demands.
 *
 * Understood: equality with a literal or parameter on every path of the key (or on the first ones of a hierarchical key), IN, OR of such,
 * AND with anything. All else: the whole space. */
#pragma once

#include "partition/epk.h"
#include "query/bind.h"

typedef struct query_range {
    epk min, max;
    bool point; /* one key: min and max are the same, both inclusive */
    pkey key;   /* of a point */
} query_range;

/* In EPK order, without overlap. `*n_out` 0: the query can find nothing at all (WHERE false, SELECT 5). NULL and n 1: everything. */
query_range *query_ranges(arena *a, const query *q, const pkey_definition *key, size_t *n_out);
