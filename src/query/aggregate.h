/* aggregate.h — accumulators for COUNT, SUM, AVG, MIN, MAX, COUNTIF, MAKELIST, MAKESET; fed row by row. */
#pragma once

#include "query/bind.h"
#include "query/distinct.h"

typedef struct query_accumulator {
    query_aggregate_kind kind;
    uint64_t count;
    double sum;
    bool spoiled; /* the result is undefined: SUM, AVG met a value that is not a number; MIN, MAX met an array or an object */
    bool any;
    query_value best;  /* MIN, MAX: the result so far, in the arena */
    query_value *list; /* MAKELIST */
    size_t list_n, list_cap;
    query_distinct set; /* MAKESET */
} query_accumulator;

void accumulator_init(query_accumulator *a, query_aggregate_kind kind);
void accumulator_add(query_accumulator *a, arena *keep, const query_value *v, uint64_t times);
query_value accumulator_result(const query_accumulator *a, arena *arena);

/* For these kinds, an undefined result means that the array would be too large. */
static inline bool accumulator_makes_array(const query_accumulator *a) {
    return a->kind == AGGREGATE_MAKE_LIST || a->kind == AGGREGATE_MAKE_SET;
}

/* Copies what it holds to another arena. */
void accumulator_move(query_accumulator *a, arena *keep);

/* Saves the state for a later page, and loads it. Save returns false if it takes more than `bytes_max`, or cannot be represented; load
 * returns false if the bytes are not a saved state. */
bool accumulator_save(const query_accumulator *a, bson_t *list, size_t index, size_t bytes_max);
bool accumulator_load(query_accumulator *a, arena *keep, const bson_iter_t *saved);
