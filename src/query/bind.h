/* bind.h — binds a parsed query, so that it can be run: resolves names to slots, looks up functions, collects aggregates, checks rules.
 *
 * Errors that the service reports are reported here with its codes: unknown functions (SC2005), wrong numbers of arguments (SC2050),
 * duplicate aliases (SC2022), SELECT * with GROUP BY (SC2041), TOP, OFFSET and LIMIT out of bounds (SC2060 to SC2062), nested aggregates
 * (SC2101), columns that are neither grouped nor aggregated (SC2102), unresolved names, too many JOINs and UDF references. */
#pragma once

#include "query/function.h"
#include "query/parse.h"
#include "query/schema.h"

enum {
    QUERY_JOINS_MAX = 10,
    QUERY_UDFS_MAX = 10,
    QUERY_UDFS_REWRITTEN_MAX = 40,
    QUERY_SLOTS_MAX = 64,
    QUERY_PARAMETERS_MAX = 20000,
    QUERY_SCORES_MAX = 32
};

typedef enum query_aggregate_kind {
    AGGREGATE_COUNT,
    AGGREGATE_SUM,
    AGGREGATE_AVG,
    AGGREGATE_MIN,
    AGGREGATE_MAX,
    AGGREGATE_COUNT_IF,
    AGGREGATE_MAKE_LIST,
    AGGREGATE_MAKE_SET,
    AGGREGATE_NONE
} query_aggregate_kind;

query_aggregate_kind query_aggregate_of(slice name); /* case-insensitive; AGGREGATE_NONE: not an aggregate */

/* A parameter. Lists are sorted by name (query_parameter_order), without duplicates. */
typedef struct query_parameter {
    slice name; /* with its @ */
    query_value value;
} query_parameter;

int query_parameter_order(const void *a, const void *b); /* for qsort */

/* A computed property that the query uses, bound once: SELECT VALUE expression FROM c, with its own slots. */
typedef struct query_computed {
    slice name;
    const query_select *select;
} query_computed;

/* A query that is ready to run. */
typedef struct query {
    query_ast *ast;
    query_select *select;
    const query_parameter *parameters;
    size_t parameters_n;
    query_schema schema;
    slice udfs[QUERY_UDFS_MAX]; /* names of the UDFs that it calls, without duplicates; slices of the text */
    unsigned udfs_n;
    bool aggregates;              /* it has aggregates or GROUP BY */
    bool counts;                  /* a find (find.h) that wants only the number of items */
    const struct query_key *each; /* a find that wants one item of each key of this index … */
    bool each_any;                /* … and of items with arrays at each of their keys */
    bool patterns;                /* it uses regular expressions, whose running time cannot be predicted */
    double top, offset, limit;    /* -1: not given */
} query;

/* Whether two expressions are written the same: the same names, operators and literals. */
bool query_same_expr(const query_expr *a, const query_expr *b);

/* Parses and binds. E_BAD_QUERY with the service's JSON. The result lives in `a`, and points into the text, the parameters and the schema's
 * settings. `schema` NULL: no computed properties, default policies. */
MUST_CHECK err query_prepare(op *o, arena *a, slice text, const query_parameter *parameters, size_t parameters_n,
                             const query_schema *schema, query *query_out);

/* The same for a text that may come from a plan (query/plan.h): rewrites repeat UDF calls, so more of them are allowed. */
MUST_CHECK err query_prepare_part(op *o, arena *a, slice text, const query_parameter *parameters, size_t parameters_n,
                                  const query_schema *schema, query *query_out);

MUST_CHECK err query_prepare_condition(op *o, arena *a, slice text, query *query_out); /* FROM c WHERE …, as a patch has it */
