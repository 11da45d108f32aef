/* message.h — the bodies of requests: STARTUP, QUERY, PREPARE, EXECUTE, BATCH, REGISTER (native_protocol_v5.spec, section 4.1).
 *
 * Each reader takes a whole body. E_BAD_REQUEST: it is malformed; the client gets a protocol error. Results point into the body, lists are
 * in the operation's arena. Pure functions, any thread. */
#pragma once

#include "api/cassandra/envelope.h"
#include "cql/parse.h"
#include "cql/value.h"

typedef struct cass_startup {
    slice cql_version, compression;
    bool throws_on_overload;
} cass_startup;

MUST_CHECK err cass_startup_read(op *o, slice body, cass_startup *startup_out);

/* What a client asks to be told about: bits of cass_event_kind. */
typedef enum cass_event_kind { CASS_TOPOLOGY_CHANGE = 1, CASS_STATUS_CHANGE = 2, CASS_SCHEMA_CHANGE = 4 } cass_event_kind;
MUST_CHECK err cass_register_read(op *o, slice body, unsigned *kinds_out);

/* Entries of a custom payload. */
typedef struct cass_payload {
    slice provisioned_throughput, autoscale_throughput; /* decimal digits; empty: not given */
} cass_payload;
MUST_CHECK err cass_payload_read(op *o, slice *rest, cass_payload *payload_out);

typedef enum cass_consistency {
    CASS_ANY,
    CASS_ONE,
    CASS_QUORUM = 4,
    CASS_SERIAL = 8,
    CASS_LOCAL_SERIAL = 9,
    CASS_CONSISTENCY_LAST = 0x0A
} cass_consistency;

/* The parameters of a query, or of a batch as a whole. */
typedef struct cass_params {
    uint16_t consistency, serial_consistency;
    bool skip_metadata;
    const cql_value *values;
    const slice *names; /* of the values, or NULL */
    uint32_t values_n;
    int32_t page_size; /* 0: no paging */
    slice paging_state;
    bool timed;
    int64_t timestamp_us; /* if timed */
    slice keyspace;       /* version 5 */
    bool has_now;
    int32_t now_s; /* if has_now; version 5 */
} cass_params;

typedef struct cass_query {
    slice text; /* QUERY, PREPARE */
    slice id;   /* EXECUTE */
    slice result_id;
    cass_params params;
} cass_query;

MUST_CHECK err cass_query_read(op *o, slice body, unsigned version, cass_query *query_out);
MUST_CHECK err cass_prepare_read(op *o, slice body, unsigned version, cass_query *query_out);
MUST_CHECK err cass_execute_read(op *o, slice body, unsigned version, cass_query *query_out);

typedef struct cass_batch_part {
    slice text, id;            /* one of them */
    const cql_statement *tree; /* of a text; set by whoever parses it */
    const cql_value *values;
    uint32_t values_n;
} cass_batch_part;

typedef struct cass_batch {
    uint8_t kind; /* cql_batch_kind */
    cass_batch_part *parts;
    uint32_t n;
    cass_params params;
} cass_batch;

MUST_CHECK err cass_batch_read(op *o, slice body, unsigned version, cass_batch *batch_out);
