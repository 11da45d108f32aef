/* demand_int.h — within query/: what demand.c and demand_special.c share. */
#pragma once

#include "query/demand.h"

enum { DEMAND_SPANS_MAX = 1000 };

typedef struct query__demand_reader {
    query_runner *runner;
    const query *query;
    const index_policy *policy;
    arena *arena;
    uint64_t steps; /* left for covers of shapes: of all of them together, however many a WHERE has */
} query__demand_reader;

bool query__demand_path(const query_select *s, const query_expr *e, find_path *path_out);
bool query__demand_constant(query__demand_reader *r, const query_expr *e, query_value *value_out);

/* ST_WITHIN and ST_INTERSECTS of a path and a constant shape, in either order. */
bool query__demand_shapes(query__demand_reader *r, const query_select *s, const query_expr *call, find_demand *c);

/* ST_DISTANCE of such, where at most `most` is let through. `whole` is the condition. */
bool query__demand_distance(query__demand_reader *r, const query_select *s, const query_expr *call, const query_expr *most,
                            const query_expr *whole, find_demand *c);

/* FullTextContains, FullTextContainsAll and FullTextContainsAny: one word that must be there, or one of several. Where more must be there,
 * query__demand_more_words makes a demand of each further one, up to `room`; it returns how many. */
bool query__demand_words(query__demand_reader *r, const query_select *s, const query_expr *call, find_demand *c);
size_t query__demand_more_words(query__demand_reader *r, const query_select *s, const query_expr *call, find_demand *list, size_t room);
