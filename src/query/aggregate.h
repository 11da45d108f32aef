/* aggregate.h — COUNT, SUM, AVG, MIN, MAX, COUNTIF, MAKELIST, MAKESET: fed row by row. */
#pragma once

#include "query/bind.h"
#include "query/distinct.h"

typedef struct query_accumulator {
    query_aggregate_kind kind;
    uint64_t count;
    double sum;
    bool spoiled; /* a value that is no number was added to a sum: the result is undefined */
    bool any;
    query_value best;  /* MIN, MAX: kept in the arena */
    query_value *list; /* MAKELIST */
    size_t list_n, list_cap;
    query_distinct set; /* MAKESET */
} query_accumulator;

void accumulator_init(query_accumulator *a, query_aggregate_kind kind);
void accumulator_add(query_accumulator *a, arena *keep, const query_value *v, uint64_t times);
query_value accumulator_result(const query_accumulator *a, arena *arena);

/* Of these an undefined result means that the array would be too large. */
static inline bool accumulator_makes_array(const query_accumulator *a) {
    return a->kind == AGGREGATE_MAKE_LIST || a->kind == AGGREGATE_MAKE_SET;
}

/* What it holds moves to another arena. */
void accumulator_move(query_accumulator *a, arena *keep);

/* What was added so far, for a later page. False: it is more than `bytes_max`, or cannot be told; or what is read was never saved. */
bool accumulator_save(const query_accumulator *a, bson_t *list, size_t index, size_t bytes_max);
bool accumulator_load(query_accumulator *a, arena *keep, const bson_iter_t *saved);
