/* cassandra_int.h — within api/cassandra: the state of a connection and of one request, and the functions that decode and answer it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "access/reach.h"
#include "api/cassandra/cassandra.h"
#include "api/cassandra/message.h"
#include "api/cassandra/notation.h"
#include "call/call.h"
#include "cql/parse.h"
#include "cql/restrict.h"

#define CASS_API SLICE_LIT("cassandra")
#define CASS_RELEASE "3.11.17"
#define CASS_CQL_VERSION "3.4.5"

/* Codes of errors (native_protocol_v5.spec, section 9), for op_fail_as. Server error is 0 in the protocol, which op.protocol_code cannot
 * hold. */
enum {
    CASS_CODE_PROTOCOL = 0x000A,
    CASS_CODE_CREDENTIALS = 0x0100,
    CASS_CODE_UNAVAILABLE = 0x1000,
    CASS_CODE_OVERLOADED = 0x1001,
    CASS_CODE_WRITE_TIMEOUT = 0x1100,
    CASS_CODE_READ_TIMEOUT = 0x1200,
    CASS_CODE_READ_FAILURE = 0x1300,
    CASS_CODE_FUNCTION = 0x1400,
    CASS_CODE_WRITE_FAILURE = 0x1500,
    CASS_CODE_SYNTAX = 0x2000,
    CASS_CODE_UNAUTHORIZED = 0x2100,
    CASS_CODE_INVALID = 0x2200,
    CASS_CODE_CONFIG = 0x2300,
    CASS_CODE_EXISTS = 0x2400,
    CASS_CODE_UNPREPARED = 0x2500,
};

typedef struct cass_conn cass_conn;
typedef struct cass_schemas cass_schemas;     /* schema.h */
typedef struct cass_prepares cass_prepares;   /* prepared.h */
typedef struct cass_prepared cass_prepared;   /* prepared.h */
typedef struct cass_trace cass_trace;         /* trace.h */
typedef struct cass_traces cass_traces;       /* trace.h */
typedef struct cass_table cass_table;         /* schema.h */
typedef struct cass_statement cass_statement; /* statement.h */

enum { CASS_RANGE_SLOTS = 1024 };

struct cass_front {
    frames_front frames;
    call_core core;
    const access_keys *keys;
    access_attempts *attempts;
    net_server *server;
    cass_schemas *schemas;
    cass_prepares *prepares;
    cass_traces *traces;
    uint8_t host_id[16];
    atomic_int_fast64_t last_us;                     /* the last timestamp that was given to a write */
    atomic_int_fast64_t ranges_us[CASS_RANGE_SLOTS]; /* the latest timestamp of a deleted range, by table: hiding.h */
    atomic_uint_fast64_t ranges_changes;
    budget_pool partials; /* memory for envelopes that come in several segments */

    pthread_mutex_t lock; /* protects the list */
    cass_conn *watchers;  /* connections that registered for events */
};

/* ---- a connection ---- */

struct cass_conn {
    frames_conn *frames;
    access_reach reach;
    uint8_t version; /* of its STARTUP; 0: none yet */
    bool segments;   /* version 5: what follows comes in segments */
    cass_compression compression;
    char keyspace[LIMIT_NAME_BYTES + 1]; /* of USE */
    unsigned events;                     /* bits of cass_event_kind */
    bool watching;
    cass_conn *next, **at; /* in the list of watchers */
    budget budget;
    buf partial; /* the beginning of an envelope that comes in several segments */
};

/* ---- a request ---- */

/* A change of the schema: what the client is told, and the event that others get. */
typedef struct cass_change {
    const char *change; /* CREATED, UPDATED, DROPPED */
    const char *target; /* KEYSPACE, TABLE, TYPE */
    slice keyspace, name;
} cass_change;

/* References that a batch holds, in a list. */
typedef struct cass_held cass_held;
struct cass_held {
    const cass_table *table;
    container *container;
    cass_prepared *prepared;
    cass_held *next;
};

typedef struct cass_request cass_request;

/* OK: the request was answered, or a call was submitted whose `done` answers it. An error is answered by the caller. */
typedef err (*cass_handler)(cass_request *q);

/* An arena object of the frame; lives until the answer is sent. */
struct cass_request {
    union { /* the call in progress; first, so that a call is found to be the request's */
        call any;
        call_read read;
        call_commit commit;
        call_rows rows;
        call_find find;
        call_follow follow;
        call_within within;
        call_wipe wipe;
    } call;
    frames_request *frame;
    cass_front *front;
    cass_conn *conn;
    op op;
    cass_envelope envelope;
    uint8_t version; /* to answer with */
    int64_t now_us;  /* wall clock */
    int64_t started_us;
    cass_payload payload;
    cass_query query;          /* QUERY, PREPARE, EXECUTE */
    cass_batch batch;          /* BATCH */
    const cql_statement *tree; /* of a QUERY or PREPARE */
    const cass_statement *statement;
    cass_prepared *prepared; /* a reference; NULL: none */
    cql_run run;
    slice keyspace; /* the current one */
    bool reads;     /* for the codes of errors */
    bool charged;   /* the answer shows the charge */
    bool bare;      /* the answer is neither compressed nor in segments */

    const cass_table *table; /* a reference, released when the request ends; NULL: none */
    container *container;    /* the same */
    cass_held *held;
    cass_change told; /* what is answered when the change is decided */
    unsigned repeats; /* of the statement, since another change came between */
    account_change *change;
    cass_handler next;                 /* continues when the change is decided */
    void (*clean)(cass_request *q);    /* frees what the request holds outside its arena; NULL: nothing */
    void *state;                       /* of the statement's handler */
    struct cass_hiding *hiding;        /* of a write that looks for deleted ranges */
    slice error_keyspace, error_table; /* of an error 0x2400 */
    slice unprepared;                  /* of an error 0x2500 */
    slice warning;                     /* empty: none */
    cass_trace *trace;                 /* NULL: none was asked for */

    size_t begun;
    bool answering;
    pieces *rows; /* the end of the answer; NULL: `out` has all of it */
};

/* ---- answers: each of cass_end and cass_fail ends the request ---- */

buf *cass_answer(cass_request *q, cass_opcode opcode);
void cass_end(cass_request *q);
void cass_fail(cass_request *q, err code);
err cass_answer_empty(cass_request *q, cass_opcode opcode);
err cass_answer_void(cass_request *q);
err cass_answer_keyspace(cass_request *q, slice name);

typedef enum cass_result_kind {
    CASS_RESULT_VOID = 1,
    CASS_RESULT_ROWS,
    CASS_RESULT_KEYSPACE,
    CASS_RESULT_PREPARED,
    CASS_RESULT_SCHEMA
} cass_result_kind;

err cass_answer_change(cass_request *q, cass_change change); /* and tells the watchers */

void cass_trace_begin(cass_request *q); /* the client asked for a trace; its id begins the answer */

/* ---- requests ---- */

void cass_serve(cass_request *q); /* an envelope whose body is not compressed */
cass_request *cass_request_new(frames_request *frame, const cass_envelope *envelope);
err cass_options_message(cass_request *q);
err cass_startup_message(cass_request *q);
err cass_auth_message(cass_request *q);
err cass_register_message(cass_request *q);
err cass_prepare_message(cass_request *q);
err cass_execute_message(cass_request *q);
err cass_query_message(cass_request *q);
err cass_batch_message(cass_request *q);

/* Invalid request, code 0x2200, with a message in printf's form. */
#define cass_invalid(q, ...) op_fail(&(q)->op, E_BAD_REQUEST, __VA_ARGS__)

/* ---- events ---- */

void cass_watch(cass_conn *c);   /* the connection has registered */
void cass_unwatch(cass_conn *c); /* it closes */
void cass_tell(cass_front *front, cass_change change);

/* ---- changes of resources ---- */

#define cass_new_change(q, type) ((type *)cass_begin_change((q), sizeof(type)))
account_change *cass_begin_change(cass_request *q, size_t bytes);
void cass_await_change(cass_request *q, cass_handler next); /* then call account_…(change) */

/* ---- access ---- */

MUST_CHECK err cass_allow(cass_request *q, unsigned verbs, const container *c);
