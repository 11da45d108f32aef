/* plan.h — the part of a MongoDB filter that the core can evaluate: one document by its key, one partition, conditions for the index.
 *
 * The filter implies the conditions: each document that matches the filter meets them. The filter itself is always
 * added as a custom filter, so the result is exact. */
#pragma once

#include "api/mongo/find.h"
#include "mql/match.h"

/* Fills in the plan of a find: where, partition. `match` is its parsed filter; NULL: all documents. */
MUST_CHECK err mongo_plan(op *o, const container *c, const mql_match *match, mongo_find *f);

/* Whether the filter names one document by the values of its key. Its other conditions remain to be checked, unless *alone_out. */
bool mongo_plan_point(op *o, const container *c, slice filter, item_key *key_out, bool *alone_out);

/* The key of a document. 61 (ShardKeyNotFound) if it lacks its shard key; other errors as item_check_body. */
MUST_CHECK err mongo_key_of(op *o, const container *c, slice document, item_key *key_out);
