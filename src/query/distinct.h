/* distinct.h — values that were seen: DISTINCT and MAKESET. They stay in the order in which they came. */
#pragma once

#include "query/value.h"

typedef struct query_distinct {
    arena *keep; /* of the values and the table; must outlive them */
    query_value *values;
    uint64_t *buckets;
    size_t n, cap;
    uint64_t seed; /* of hashes: nobody outside knows which values collide */
} query_distinct;

/* Was it never seen? Then it is kept. False also when there is no memory for it: the budget of `keep` is exceeded then. */
bool query_distinct_add(query_distinct *d, const query_value *v);
