/* metrics.h — within api/sql: what a page of a query tells about itself in header fields, for those that ask. */
#pragma once

#include "api/sql/sql_int.h"
#include "query/exec.h"

/* x-ms-documentdb-query-metrics: name=value;… as SDKs read it. `compile_us`: what reading and binding the text took. */
void sql_add_query_metrics(sql_request *q, const query_page *p, uint64_t compile_us);

/* For the log of slow requests: what the page read, what that took, and which indexes it used or lacked; no values. */
void sql_explain_slow(sql_request *q, const query_page *p, uint64_t compile_us);

/* x-ms-cosmos-index-utilization, of pages with rows, in one of two forms:
 *   x-ms-cosmos-populateindexmetrics (.NET and Java of some years ago, Python): base64 of
 *     {"UtilizedSingleIndexes":[{"FilterExpression":"(ROOT.a = 1)","IndexSpec":"/a/?","FilterPreciseSet":true,"IndexPreciseSet":true,
 *       "IndexImpactScore":"High"}],"PotentialSingleIndexes":[],"UtilizedCompositeIndexes":[{"IndexSpecs":["/a ASC","/b DESC"],
 *       "IndexPreciseSet":true,"IndexImpactScore":"High"}],"PotentialCompositeIndexes":[]}
 *   x-ms-cosmos-populateindexmetrics-V2: percent-encoded
 *     {"UtilizedIndexes":{"SingleIndexes":[{"IndexSpec":"/a/?"}],"CompositeIndexes":[{"IndexSpecs":["/a ASC","/b DESC"]}]},
 *      "PotentialIndexes":{"SingleIndexes":[]}}, without lists of composite ones that are empty */
void sql_add_index_utilization(sql_request *q, const query_page *p);
