/* demand_int.h — within query/: shared by demand.c, demand_keys.c and demand_special.c. */
#pragma once

#include "query/demand.h"

enum { DEMAND_SPANS_MAX = 1000 };

typedef struct query__demand_reader {
    query_runner *runner;
    const query *query;
    const index_policy *policy;
    arena *arena;
    uint64_t steps; /* budget for covering shapes by cells; one for the whole WHERE */
} query__demand_reader;

bool query__demand_path(const query_select *s, const query_expr *e, find_path *path_out);
bool query__is_constant(const query_expr *e); /* it has the same value for every row, and in every run */
bool query__demand_constant(query__demand_reader *r, const query_expr *e, query_value *value_out);

/* Adds the entries of a key index with keys of the span. The demand is of that index. */
struct query_key_span;
void query__demand_add_keys(query__demand_reader *r, find_demand *c, const struct query_key_span *span);

/* A comparison, IN, BETWEEN, LIKE, STARTSWITH or ARRAY_CONTAINS of a path that a key index begins with. */
bool query__demand_keys(query__demand_reader *r, const query_select *s, const query_expr *e, find_demand *c);

/* ST_WITHIN and ST_INTERSECTS of a path and a constant shape, in either order. */
bool query__demand_shapes(query__demand_reader *r, const query_select *s, const query_expr *call, find_demand *c);

/* ST_DISTANCE of such arguments, compared with an upper bound `most`. `whole` is the comparison. */
bool query__demand_distance(query__demand_reader *r, const query_select *s, const query_expr *call, const query_expr *most,
                            const query_expr *whole, find_demand *c);

/* FullTextContains, FullTextContainsAll and FullTextContainsAny: a demand for one word that must be there, or for any of several. If
 * further words must be there, query__demand_more_words makes a demand for each, up to `room`, and returns how many. */
bool query__demand_words(query__demand_reader *r, const query_select *s, const query_expr *call, find_demand *c);
size_t query__demand_more_words(query__demand_reader *r, const query_select *s, const query_expr *call, find_demand *list, size_t room);
