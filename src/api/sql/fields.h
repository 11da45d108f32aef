/* fields.h — the one list of request header fields that the SQL API reads; net passes their values indexed by these numbers. */
#pragma once

#define SQL_FIELDS(X)                                                                                                                      \
    X(AUTHORIZATION, "authorization")                                                                                                      \
    X(X_MS_DATE, "x-ms-date")                                                                                                              \
    X(DATE, "date")                                                                                                                        \
    X(VERSION, "x-ms-version")                                                                                                             \
    X(ACTIVITY_ID, "x-ms-activity-id")                                                                                                     \
    X(CONTENT_TYPE, "content-type")                                                                                                        \
    X(PARTITION_KEY, "x-ms-documentdb-partitionkey")                                                                                       \
    X(RANGE_ID, "x-ms-documentdb-partitionkeyrangeid")                                                                                     \
    X(START_EPK, "x-ms-start-epk")                                                                                                         \
    X(END_EPK, "x-ms-end-epk")                                                                                                             \
    X(INTENDED_RID, "x-ms-cosmos-intended-collection-rid")                                                                                 \
    X(CACHED_RID, "x-ms-documentdb-collection-rid")                                                                                        \
    X(CONSISTENCY, "x-ms-consistency-level")                                                                                               \
    X(SESSION_TOKEN, "x-ms-session-token")                                                                                                 \
    X(IF_MATCH, "if-match")                                                                                                                \
    X(IF_NONE_MATCH, "if-none-match")                                                                                                      \
    X(IF_MODIFIED_SINCE, "if-modified-since")                                                                                              \
    X(PREFER, "prefer")                                                                                                                    \
    X(SCRIPT_LOGGING, "x-ms-documentdb-script-enable-logging")                                                                             \
    X(INDEXING_DIRECTIVE, "x-ms-indexing-directive")                                                                                       \
    X(IS_UPSERT, "x-ms-documentdb-is-upsert")                                                                                              \
    X(IS_QUERY, "x-ms-documentdb-isquery")                                                                                                 \
    X(IS_QUERY_PLAN, "x-ms-cosmos-is-query-plan-request")                                                                                  \
    X(MAX_ITEM_COUNT, "x-ms-max-item-count")                                                                                               \
    X(CONTINUATION, "x-ms-continuation")                                                                                                   \
    X(IS_BATCH, "x-ms-cosmos-is-batch-request")                                                                                            \
    X(BATCH_ATOMIC, "x-ms-cosmos-batch-atomic")                                                                                            \
    X(BATCH_CONTINUE, "x-ms-cosmos-batch-continue-on-error")                                                                               \
    X(OFFER_THROUGHPUT, "x-ms-offer-throughput")                                                                                           \
    X(OFFER_TYPE, "x-ms-offer-type")                                                                                                       \
    X(OFFER_AUTOPILOT, "x-ms-cosmos-offer-autopilot-settings")                                                                             \
    X(MIGRATE_TO_MANUAL, "x-ms-cosmos-migrate-offer-to-manual-throughput")                                                                 \
    X(MIGRATE_TO_AUTOPILOT, "x-ms-cosmos-migrate-offer-to-autopilot")                                                                      \
    X(TOKEN_EXPIRY, "x-ms-documentdb-expiry-seconds")                                                                                      \
    X(PRE_TRIGGERS, "x-ms-documentdb-pre-trigger-include")                                                                                 \
    X(PRE_TRIGGERS_NOT, "x-ms-documentdb-pre-trigger-exclude")                                                                             \
    X(POST_TRIGGERS, "x-ms-documentdb-post-trigger-include")                                                                               \
    X(POST_TRIGGERS_NOT, "x-ms-documentdb-post-trigger-exclude")                                                                           \
    X(A_IM, "a-im")                                                                                                                        \
    X(CROSS_PARTITION, "x-ms-documentdb-query-enablecrosspartition")                                                                       \
    X(QUERY_FEATURES, "x-ms-cosmos-supported-query-features")                                                                              \
    X(QUERY_METRICS, "x-ms-documentdb-populatequerymetrics")                                                                               \
    X(INDEX_METRICS, "x-ms-cosmos-populateindexmetrics")                                                                                   \
    X(INDEX_METRICS_V2, "x-ms-cosmos-populateindexmetrics-v2")                                                                             \
    X(STATISTICS, "x-ms-documentdb-populatepartitionstatistics")                                                                           \
    X(PRIORITY, "x-ms-cosmos-priority-level")                                                                                              \
    X(THROUGHPUT_BUCKET, "x-ms-cosmos-throughput-bucket")                                                                                  \
    X(SUPPORTED_FORMATS, "x-ms-cosmos-supported-serialization-formats")                                                                    \
    X(CONTENT_FORMAT, "x-ms-documentdb-content-serialization-format")                                                                      \
    X(ACCEPT, "accept")                                                                                                                    \
    X(ACCEPT_ENCODING, "accept-encoding")                                                                                                  \
    X(SEC_FETCH_SITE, "sec-fetch-site")                                                                                                    \
    X(SEC_FETCH_MODE, "sec-fetch-mode")

typedef enum sql_field {
#define SQL_FIELD_NAME(name, text) FIELD_##name,
    SQL_FIELDS(SQL_FIELD_NAME)
#undef SQL_FIELD_NAME
        FIELD_COUNT
} sql_field;
