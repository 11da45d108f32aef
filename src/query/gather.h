/* gather.h — subqueries in FROM that must see all items before they have a row: FROM (SELECT DISTINCT VALUE c.x FROM c) AS x.
 *
 * If a subquery takes the place of the container, its DISTINCT, aggregates and GROUP BY apply to all items together, not to each one. Such
 * subqueries may be nested. Items are added first; then the rows of the outer query are visited. */
#pragma once

#include "query/eval.h"

typedef struct query_gather query_gather;

/* Whether FROM has such a subquery. */
bool query_has_gathered_subquery(const query_select *s);

/* NULL: there is no such subquery. Everything is allocated in `keep`. */
query_gather *query_gather_new(arena *keep, const query_select *s);

const query_select *query_gather_first(const query_gather *g); /* the innermost select, which reads items */

/* Adds an item. Errors are in the runner's code. */
void query_gather_add(query_gather *g, query_runner *r, const query_value *item);

/* After all items: visits the rows of the outer query that pass its WHERE. `go_on` is called before each row of a subquery; it or the
 * visitor may stop. The runner's arena is reset in between. */
void query_gather_each(query_gather *g, query_runner *r, query_row go_on, query_row visit, void *context);
