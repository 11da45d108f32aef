/* demand.h — what the index can tell about a WHERE: for each part of its AND, which entries the items it lets through have
 * (find/demand.h).
 *
 * Understood: =, IN, <, <=, >, >=, BETWEEN with a constant, OR of such, LIKE and STARTSWITH of a beginning,
 * ARRAY_CONTAINS, IS_DEFINED and the types, a path alone (it is true), EXISTS and JOIN over elements; ST_WITHIN, ST_INTERSECTS and
 * ST_DISTANCE below a bound, of a constant shape; FullTextContains and its kin. */
#pragma once

#include "find/demand.h"
#include "query/eval.h"

/* Of paths that the policy indexes. In the operation's arena. */
find_demands query_demands_of(query_runner *r, const index_policy *policy);
find_demands query_demands_in(query_runner *r, const index_policy *policy, const query_expr *condition); /* of a part of WHERE alone */

/* The path of an expression as the index has it: below the item, through elements of arrays where an alias iterates over them. False: it is
 * no such path. */
bool query_path_of(const query *q, const query_expr *e, find_path *path_out);

/* The one spelling of a value; false: it has none that says it whole (objects, arrays, long strings, large integers), and `out` holds what
 * all such values begin with. */
bool query_spell(buf *out, const query_value *v);
