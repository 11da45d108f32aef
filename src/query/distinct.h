/* distinct.h — values that were seen: DISTINCT and MAKESET. They stay in the order in which they came. And keys that were seen, if they
 * are only to be counted. */
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

/* Keeps the `n` smallest values, sorted, and frees everything else in `keep`. */
void query_distinct_cut(query_distinct *d, size_t n);

/* How many different keys there were. Two that hash alike, in 64 bits, count as one. */
typedef struct query_key_count {
    arena *keep;
    uint64_t *table; /* of hashes; 0: nothing */
    size_t n, cap;
} query_key_count;

bool query_key_count_add(query_key_count *c, const query_value *key, size_t values_n); /* true: it was not there */
