/* sort.h — sort keys ({a: 1, "b.c": -1}): comparing documents as MongoDB does. A missing field counts as null; of an array the smallest
 * element counts, or the largest if descending. */
#pragma once

#include "mql/run.h"

typedef struct mql_sort_part {
    slice path; /* dotted */
    bool descending;
    bool by_text_score; /* {$meta: "textScore"} */
} mql_sort_part;

typedef struct mql_sort {
    mql_sort_part *parts;
    size_t n;
} mql_sort;

enum { MQL_SORT_PARTS_MAX = 32 };
MUST_CHECK err mql_sort_parse(op *o, slice spec, mql_sort *sort_out); /* in the operation's arena */

/* Visits the values of the parts: once, or, if a path leads through an array, once for each element. `all_missing`: the document has none
 * of the fields. An error of `visit` ends it. */
typedef err (*mql_sort_visit)(void *context, const mql_value *values, bool all_missing);
MUST_CHECK err mql_sort_each(mql_run *r, const mql_sort *s, slice document, mql_sort_visit visit, void *context);

/* The sort key of a document: an array of one value per part, in the run's arena. Keys compare with mql_sort_compare. */
MUST_CHECK err mql_sort_key(mql_run *r, const mql_sort *s, slice document, slice *key_out);
int mql_sort_compare(const mql_sort *s, const mql_collation *collation, slice key_a, slice key_b);
