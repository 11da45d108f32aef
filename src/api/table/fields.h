/* fields.h — the one list of request header fields that the Table API reads; net passes their values indexed by these numbers. */
#pragma once

#define TABLE_FIELDS(X)                                                                                                                    \
    X(AUTHORIZATION, "authorization")                                                                                                      \
    X(X_MS_DATE, "x-ms-date")                                                                                                              \
    X(DATE, "date")                                                                                                                        \
    X(VERSION, "x-ms-version")                                                                                                             \
    X(CLIENT_ID, "x-ms-client-request-id")                                                                                                 \
    X(CONTENT_TYPE, "content-type")                                                                                                        \
    X(CONTENT_MD5, "content-md5")                                                                                                          \
    X(ACCEPT, "accept")                                                                                                                    \
    X(PREFER, "prefer")                                                                                                                    \
    X(IF_MATCH, "if-match")                                                                                                                \
    X(METHOD, "x-http-method")                                                                                                             \
    X(ORIGIN, "origin")                                                                                                                    \
    X(CORS_METHOD, "access-control-request-method")                                                                                        \
    X(CORS_HEADERS, "access-control-request-headers")                                                                                      \
    X(OFFER_THROUGHPUT, "x-ms-offer-throughput")                                                                                           \
    X(OFFER_AUTOPILOT, "x-ms-cosmos-offer-autopilot-settings")                                                                             \
    X(LARGE_ENTITIES, "x-tesela-large-entities")                                                                                           \
    X(PRIORITY, "x-ms-cosmos-priority-level")

typedef enum table_field {
#define TABLE_FIELD_NAME(name, text) TABLE_FIELD_##name,
    TABLE_FIELDS(TABLE_FIELD_NAME)
#undef TABLE_FIELD_NAME
        TABLE_FIELD_COUNT
} table_field;
