/* sorter.h — within api/mongo: sorts the documents of a find in memory, within a bound; with a limit it keeps only the first ones. One
 * thread at a time. */
#pragma once

#include "base/budget.h"
#include "mql/sort.h"

#define MONGO_SORT_BYTES ((size_t)64 << 20)

typedef struct mongo_sorter mongo_sorter;

/* `keep`: how many documents are wanted; UINT64_MAX: all. */
mongo_sorter *mongo_sorter_new(const mql_sort *sort, const mql_collation *collation, uint64_t keep, budget *memory);
void mongo_sorter_free(mongo_sorter *s);

/* 292 (QueryExceededMemoryLimitNoDiskUseAllowed) beyond MONGO_SORT_BYTES. */
MUST_CHECK err mongo_sorter_add(mongo_sorter *s, op *o, slice key, slice document);

/* Sorts, and visits the documents in order; equal ones in the order in which they were added. False ends it. */
void mongo_sorter_end(mongo_sorter *s, bool (*visit)(void *context, slice document), void *context);
