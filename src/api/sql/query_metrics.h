/* query_metrics.h — within api/sql: optional header fields with metrics of a query page. */
#pragma once

#include "api/sql/sql_int.h"
#include "query/exec.h"

/* x-ms-documentdb-query-metrics: name=value;… as SDKs parse it. `compile_us`: time taken to parse and bind the text. */
void sql_add_query_metrics(sql_request *q, const query_page *p, uint64_t compile_us);

/* For the log of slow requests: what the page read, how long that took, and which indexes it used or lacked. Contains no values from
 * items. */
void sql_explain_slow(sql_request *q, const query_page *p, uint64_t compile_us);

/* x-ms-cosmos-index-utilization, on pages that have rows. The request field decides the form:
 *   x-ms-cosmos-populateindexmetrics (older .NET and Java SDKs, Python): base64 of
 *     {"UtilizedSingleIndexes":[{"FilterExpression":"(ROOT.a = 1)","IndexSpec":"/a/?","FilterPreciseSet":true,"IndexPreciseSet":true,
 *       "IndexImpactScore":"High"}],"PotentialSingleIndexes":[],"UtilizedCompositeIndexes":[{"IndexSpecs":["/a ASC","/b DESC"],
 *       "IndexPreciseSet":true,"IndexImpactScore":"High"}],"PotentialCompositeIndexes":[]}
 *   x-ms-cosmos-populateindexmetrics-V2: percent-encoded
 *     {"UtilizedIndexes":{"SingleIndexes":[{"IndexSpec":"/a/?"}],"CompositeIndexes":[{"IndexSpecs":["/a ASC","/b DESC"]}]},
 *      "PotentialIndexes":{"SingleIndexes":[]}}; an empty list of composite indexes is left out */
void sql_add_index_utilization(sql_request *q, const query_page *p);
