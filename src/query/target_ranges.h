/* target_ranges.h — the parts of the hash space where a query can find items, from the partition keys that its WHERE allows.
 *
 * Supported: equality with a constant on every path of the key (or on the first ones of a hierarchical key), IN, LIKE without a wildcard,
 * ABS, OR of these, AND with any condition, EXISTS and scalar subqueries that demand one of these. Constant expressions are evaluated, for
 * a bounded time. Anything else means the whole space. */
#pragma once

#include "partition/epk.h"
#include "query/bind.h"

typedef struct query_range {
    epk min, max;
    bool point;  /* one key: min and max are the same, both inclusive */
    bool shared; /* several keys have this hash */
    pkey key;    /* if `point` and not `shared` */
} query_range;

/* The items of a query that names each by its id and partition key, as SDKs write it for read-many: SELECT * FROM c WHERE (c.id = … AND
 * c.pk = …) OR …. A missing key component is written IS_DEFINED(c.pk) = false; if /id is the key, c.id IN (…) counts too. NULL: not such a
 * query. An item may be listed twice. */
typedef struct query_point {
    pkey key;
    slice id;
} query_point;
const query_point *query_named_items(arena *a, const query *q, const pkey_definition *key, size_t *n_out);

/* The ranges in EPK order, without overlap. *n_out 0: the query can find nothing (WHERE false, SELECT 5). NULL with *n_out 1:
 * everything. */
query_range *query_ranges(arena *a, const query *q, const pkey_definition *key, size_t *n_out);
