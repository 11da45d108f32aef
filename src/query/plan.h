/* plan.h — the query plan that SDKs fetch before they run a query over several ranges: how to merge the ranges' results, and the query to
 * send to each.
 *
 * The text is exactly the service's (reference A14), because SDKs rely on its rewrites: aggregates come as {"item": …} parts that can be
 * added up, ORDER BY comes with its values and _rid, GROUP BY with its keys. */
#pragma once

#include "query/target_ranges.h"

/* Features that a client can merge, as bits in the order of `feature_names`. */
typedef enum query_feature {
    FEATURE_AGGREGATE = 1 << 0,
    FEATURE_COMPOSITE_AGGREGATE = 1 << 1,
    FEATURE_DISTINCT = 1 << 2,
    FEATURE_GROUP_BY = 1 << 3,
    FEATURE_MULTIPLE_AGGREGATES = 1 << 4,
    FEATURE_MULTIPLE_ORDER_BY = 1 << 5,
    FEATURE_OFFSET_AND_LIMIT = 1 << 6,
    FEATURE_ORDER_BY = 1 << 7,
    FEATURE_TOP = 1 << 8,
    FEATURE_NON_VALUE_AGGREGATE = 1 << 9,
    FEATURE_NON_STREAMING_ORDER_BY = 1 << 10,
    FEATURE_LIST_AND_SET_AGGREGATE = 1 << 11,
    FEATURE_COUNT_IF = 1 << 12,
    FEATURE_HYBRID_SEARCH = 1 << 13,
    FEATURE_DCOUNT = 1 << 14,
    FEATURE_WEIGHTED_RANK_FUSION = 1 << 15,
    FEATURE_HYBRID_SEARCH_SKIP_ORDER_BY_REWRITE = 1 << 16
} query_feature;

unsigned query_features_parse(slice header); /* "NonValueAggregate, Aggregate, …"; unknown names are ignored */
unsigned query_features_needed(const query *q);

/* Whether a gateway can answer it over several ranges by sending it to each and concatenating the results. */
bool query_is_plain(const query *q);

/* Whether it is a plan's rewritten query with groups or aggregates, whose rows the client merges. */
bool query_is_rewritten(const query *q);

/* Writes the plan as JSON. E_BAD_QUERY: the query cannot run over several ranges, or needs features that are not in `supported`. */
MUST_CHECK err query_plan_write(op *o, arena *a, const query *given, const pkey_definition *key, unsigned supported, buf *out);
