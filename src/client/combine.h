/* combine.h — aggregates and groups of several ranges, from the rows that the plan's rewritten query gives:
 *
 *   SELECT VALUE COUNT(1)                   [{"item":3}]
 *   SELECT AVG(c.a) AS a                    {"payload":{"a":{"item":{"sum":6,"count":3}}}}
 *   … GROUP BY c.team                       {"groupByItems":[{"item":"x"}],"payload":{"team":"x","n":{"item":3}}}
 *
 * Groups come in the order in which they first appeared. */
#pragma once

#include "client/plan.h"

typedef struct combiner combiner;

combiner *client__combiner_new(const query_plan *plan, size_t memory); /* the plan must outlive it */
void client__combiner_free(combiner *c);

tesela_status client__combiner_add(combiner *c, slice row, tesela_error *error);

/* The rows that result. client__combiner_write appends one; false: it is undefined, and no row. */
size_t client__combiner_count(const combiner *c);
bool client__combiner_write(const combiner *c, size_t index, buf *out);

/* ---- DISTINCT ---- */

typedef struct distinct distinct;

distinct *client__distinct_new(size_t memory);
void client__distinct_free(distinct *d);

/* *new_out: whether no equal row came before. */
tesela_status client__distinct_add(distinct *d, slice row, bool *new_out, tesela_error *error);
