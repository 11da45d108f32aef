/* demand.h — what the index can tell about a WHERE: for each part of its AND, which entries the items it lets through have.
 *
 * A demand is a list of *spans*: entries of a path with values from `from` to before `to`. An item that the part of WHERE lets through
 * has at least one entry in one of them; if the demand is *exact*, an item with such an entry is let through, so that nobody needs to
 * load it to know. Understood: =, IN, <, <=, >, >=, BETWEEN with a constant, OR of such, LIKE and STARTSWITH of a beginning,
 * ARRAY_CONTAINS, IS_DEFINED and the types, a path alone (it is true), EXISTS and JOIN over elements; ST_WITHIN, ST_INTERSECTS and
 * ST_DISTANCE below a bound, of a constant shape; FullTextContains and its kin. */
#pragma once

#include "base/limits.h"
#include "index/policy.h"
#include "query/eval.h"

typedef struct query_demand_span {
    index_path path;
    slice from, to; /* spelled values; `to` empty: up to the end */
    bool point;     /* one value: entries come in number order */
} query_demand_span;

typedef struct query_demand {
    query_demand_span *spans;
    size_t n; /* 0: nothing can fulfil it */
    bool exact;
    const query_expr *expr;
    const index_step *steps; /* of the one path that all spans are of; NULL: of several */
    size_t steps_n;
} query_demand;

typedef struct query_demands {
    query_demand *list;
    size_t n;
    bool whole; /* they are all of WHERE: an item that fulfils all of them, exactly, is let through */
} query_demands;

/* Of paths that the policy indexes. In the operation's arena. */
query_demands query_demands_of(query_runner *r, const index_policy *policy);
query_demands query_demands_in(query_runner *r, const index_policy *policy, const query_expr *condition); /* of a part of WHERE alone */

/* The path of an expression as the index has it: below the item, through elements of arrays where an alias iterates over them.
 * *single_out: each item has at most one value there. False: it is no such path. */
typedef struct query_path {
    index_step steps[LIMIT_PATH_DEPTH];
    size_t n;
    bool single;
} query_path;
bool query_path_of(const query *q, const query_expr *e, query_path *path_out);

/* The one spelling of a value; false: it has none that says it whole (objects, arrays, long strings, large integers), and `out` holds what
 * all such values begin with. */
bool query_spell(buf *out, const query_value *v);

/* The first spelling beyond all that begin with this one; empty: there is none. */
slice query_spelled_beyond(arena *a, slice spelled);
