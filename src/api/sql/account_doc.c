/* GET /: the account document. Its endpoints repeat the host that the client used, or SDKs would connect elsewhere. */
#include "api/sql/sql_int.h"

/* Settings that the .NET SDK passes to its query planner: JSON as a string. */
static const char query_engine[] =
    "{\"allowNewKeywords\":true,\"maxJoinsPerSqlQuery\":10,\"maxQueryRequestTimeoutFraction\":0.9,\"maxSqlQueryInputLength\":524288,"
    "\"maxUdfRefPerSqlQuery\":10,\"queryMaxInMemorySortDocumentCount\":-1000,\"spatialMaxGeometryPointCount\":256,"
    "\"sqlAllowNonFiniteNumbers\":false,\"sqlDisableOptimizationFlags\":0,\"sqlQueryILDisableOptimizationFlags\":0,"
    "\"clientDisableOptimisticDirectExecution\":false,\"queryEnableFullText\":true,\"queryEnableFullTextPreviewFeatures\":false,"
    "\"queryMaxFullTextScoreSearchTerms\":30,\"queryMaxRrfArgumentCount\":100,\"enableSpatialIndexing\":true,"
    "\"maxInExpressionItemsCount\":2147483647,\"maxLogicalAndPerSqlQuery\":2147483647,\"maxLogicalOrPerSqlQuery\":2147483647,"
    "\"maxSpatialQueryCells\":2147483647,\"sqlAllowAggregateFunctions\":true,\"sqlAllowGroupByClause\":true,\"sqlAllowLike\":true,"
    "\"sqlAllowSubQuery\":true,\"sqlAllowScalarSubQuery\":true,\"sqlAllowTop\":true}";

static slice endpoint(sql_request *q) {
    slice host = q->http->host.n ? q->http->host : SLICE_LIT("localhost:8081");
    return arena_printf(q->http->arena, "%s://%.*s/", q->http->tls ? "https" : "http", (int)host.n, host.p);
}

static void add_location(buf *out, const char *name, slice url) {
    buf_add_byte(out, '"');
    buf_add(out, name, strlen(name));
    buf_add_lit(out, "\":[{\"name\":\"South Central US\",\"databaseAccountEndpoint\":");
    json_add_string(out, url);
    buf_add_lit(out, "}],");
}

void sql_account_read(sql_request *q) {
    slice url = endpoint(q);
    slice host = q->http->host.n ? q->http->host : SLICE_LIT("localhost");
    sql_start(q, 200);
    buf_add_lit(sql_fields(q), "x-ms-max-media-storage-usage-mb: 2048\r\nx-ms-media-storage-usage-mb: 0\r\n"
                               "x-ms-databaseaccount-consumed-mb: 0\r\nx-ms-databaseaccount-reserved-mb: 0\r\n"
                               "x-ms-databaseaccount-provisioned-mb: 0\r\n");
    sql_add_account(q);
    sql_field_text(q, "content-location", url);
    buf *out = sql_start_body(q);
    buf_add_lit(out, "{\"_self\":\"\",\"id\":\"localhost\",\"_rid\":");
    json_add_string(out, host);
    buf_add_lit(out, ",\"media\":\"//media/\",\"addresses\":\"//addresses/\",\"_dbs\":\"//dbs/\",");
    add_location(out, "writableLocations", url);
    add_location(out, "readableLocations", url);
    buf_add_lit(out, "\"enableMultipleWriteLocations\":false,\"continuousBackupEnabled\":false,\"enableNRegionSynchronousCommit\":false,"
                     "\"enablePerPartitionFailoverBehavior\":false,\"disableCrossRegionalHedging\":false,"
                     "\"userReplicationPolicy\":{\"asyncReplication\":false,\"minReplicaSetSize\":3,\"maxReplicasetSize\":4},"
                     "\"userConsistencyPolicy\":{\"defaultConsistencyLevel\":\"");
    const char *level = sql_consistency_names[q->front->consistency];
    buf_add(out, level, strlen(level));
    buf_add_lit(out, "\"},\"systemReplicationPolicy\":{\"minReplicaSetSize\":3,\"maxReplicasetSize\":4},"
                     "\"readPolicy\":{\"primaryReadCoefficient\":1,\"secondaryReadCoefficient\":1},\"queryEngineConfiguration\":");
    json_add_string(out, SLICE_LIT(query_engine));
    buf_add_byte(out, '}');
    sql_end(q);
}
