/* distinct.h — a set of values, for DISTINCT and MAKESET, in insertion order; and a counter of distinct keys. */
#pragma once

#include "query/value.h"

typedef struct query_distinct {
    arena *keep; /* owns the values and the table */
    query_value *values;
    uint64_t *buckets;
    size_t n, cap;
    uint64_t seed; /* seed of the hash, so that clients cannot choose values that collide */
} query_distinct;

/* True: the value was new, and was added. False also if there is no memory: then the budget of `keep` is exceeded. */
bool query_distinct_add(query_distinct *d, const query_value *v);

/* Keeps the `n` smallest values, sorted, and frees everything else in `keep`. */
void query_distinct_cut(query_distinct *d, size_t n);

/* Counts distinct keys. Keys with the same 64-bit hash count as one. */
typedef struct query_key_count {
    arena *keep;
    uint64_t *table; /* hashes; 0: empty slot */
    size_t n, cap;
} query_key_count;

bool query_key_count_add(query_key_count *c, const query_value *key, size_t values_n); /* true: the key was new */
