/* ranges.h — which parts of the hash space a query can find anything in: from the partition keys that its WHERE demands.
 *
 * Understood: equality with a literal or parameter on every path of the key (or on the first ones of a hierarchical key), IN, OR of such,
 * AND with anything. All else: the whole space. */
#pragma once

#include "partition/epk.h"
#include "query/bind.h"

typedef struct query_range {
    epk min, max;
    bool point;  /* one key: min and max are the same, both inclusive */
    bool shared; /* … or several that hash alike */
    pkey key;    /* of a point that is not shared */
} query_range;

/* Items that a query names one by one, and that it is about nothing else but: SELECT * FROM c WHERE (c.id = … AND c.pk = …) OR …, as SDKs
 * write for read-many, each with an id and a whole key (IS_DEFINED(c.pk) = false for a component that is not there); with /id as the key
 * also c.id IN (…). NULL: it is not such a query. One may be named twice. */
typedef struct query_point {
    pkey key;
    slice id;
} query_point;
const query_point *query_points(arena *a, const query *q, const pkey_definition *key, size_t *n_out);

/* In EPK order, without overlap. `*n_out` 0: the query can find nothing at all (WHERE false, SELECT 5). NULL and n 1: everything. */
query_range *query_ranges(arena *a, const query *q, const pkey_definition *key, size_t *n_out);
