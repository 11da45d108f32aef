/* gather.h — subqueries in FROM that must see all items before they have a row: FROM (SELECT DISTINCT VALUE c.x FROM c) AS x.
 *
 * DISTINCT, aggregates and GROUP BY of a subquery in the place of the container reach over all items, not over each. Such subqueries may
 * stand in each other. Items are added; then the rows of the query around them are visited. */
#pragma once

#include "query/eval.h"

typedef struct query_gather query_gather;

/* Does its FROM have such a subquery? */
bool query_gathers(const query_select *s);

/* NULL: it has none. Everything is kept in `keep`. */
query_gather *query_gather_new(arena *keep, const query_select *s);

const query_select *query_gather_first(const query_gather *g); /* the one whose rows are of single items */

/* An item. The runner's code says what went wrong. */
void query_gather_add(query_gather *g, query_runner *r, const query_value *item);

/* All items were added: visits the rows of the query's sources, its WHERE passed, until the visitor or `go_on` stops, which is asked before
 * each value that a subquery gave. The runner's arena is reset in between. */
void query_gather_each(query_gather *g, query_runner *r, query_row go_on, query_row visit, void *context);
