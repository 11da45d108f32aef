/* find.h — within api/mongo: a find (filter, sort, projection), its plan, and reading its documents.
 *
 * The plan is the part that the core's index can evaluate (plan.c): conditions, a partition. The whole filter is always among the
 * conditions, so that the result is exact. */
#pragma once

#include "account/account.h"
#include "mql/value.h"
#include "query/find.h"

typedef struct mongo_find {
    slice filter;     /* BSON; empty: all documents */
    slice projection; /* BSON; empty: whole documents */
    slice sort;       /* BSON; empty: natural order */
    slice variables;  /* `let`; empty: none */
    int64_t now_ms;   /* $$NOW */
    slice collation;  /* BSON; empty: the simple one */
    mql_value hint;   /* the name or the key of an index; missing: none */
    uint64_t skip;
    uint64_t limit; /* UINT64_MAX: none */

    /* what is enough of the documents, if the indexes have it */
    bool count_only;  /* their number */
    slice value_path; /* one for each value at this path, with their number; empty: all of them */
    bool distinct;    /* … without the number; elements of arrays are values too */

    double near_most; /* of $near: places within this distance are enough; 0: all. The plan sets it to 0 if no index serves it */

    /* the plan */
    slice where; /* a condition of the core; empty: all items */
    slice order; /* an order of the core that gives the sort; empty: no index has it */
    bool counts; /* index entries tell the number of documents */
    slice each;  /* one document of each key is enough (query/find.h); empty: it is not */
    slice keys;  /* `counts`, `each`: the index's name */
    bool one_partition;
    item_key partition; /* if one_partition */
} mongo_find;
