/* demand.h — what the index can answer of a WHERE: for each operand of its AND, the index entries of which each matching item must have at
 * least one (find/demand.h).
 *
 * Supported: =, IN, <, <=, >, >=, BETWEEN with constants, OR of these, LIKE and STARTSWITH with a constant prefix, ARRAY_CONTAINS,
 * IS_DEFINED and the type tests, a path alone (meaning = true), EXISTS and JOIN over array elements; ST_WITHIN, ST_INTERSECTS and
 * ST_DISTANCE below a bound, with a constant shape; the FullTextContains functions. */
#pragma once

#include "find/demand.h"
#include "query/eval.h"

/* The demands of the query's WHERE on paths that the policy indexes. In the operation's arena. */
find_demands query_demands_of(query_runner *r, const index_policy *policy);
find_demands query_demands_in(query_runner *r, const index_policy *policy,
                              const query_expr *condition); /* the demands of one operand of WHERE */

/* The index path of an expression: from the item, through array elements where an alias iterates over them. False: not such a path. */
bool query_path_of(const query *q, const query_expr *e, find_path *path_out);

/* Appends the index encoding of a value. False: the encoding does not identify the value (objects, arrays, long strings, large integers);
 * `out` then holds the common prefix of all values like it. */
bool query_index_encode(buf *out, const query_value *v);
