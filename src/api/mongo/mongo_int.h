/* mongo_int.h — within api/mongo: the state of a connection and of one request, and the functions that decode and answer it. */
#pragma once

#include "access/reach.h"
#include "access/scram.h"
#include "api/mongo/codes.h"
#include "api/mongo/index_uses.h"
#include "api/mongo/mongo.h"
#include "api/mongo/operations.h"
#include "api/mongo/sessions.h"
#include "api/mongo/wire.h"
#include "call/call.h"
#include "mql/value.h"

#define MONGO_API SLICE_LIT("mongo")

typedef struct mongo_cursors mongo_cursors;   /* cursors.h */
typedef struct mongo_scan mongo_scan;         /* scan.h */
typedef struct mongo_creation mongo_creation; /* collections.h */

struct mongo_front {
    frames_front frames;
    call_core core;
    const access_keys *keys;
    access_attempts *attempts;
    net_server *server;
    mongo_surface surface;
    mongo_cursors *cursors;
    mongo_sessions *sessions;
    mongo_operations *operations;
    mongo_index_uses *index_uses;
    uint8_t process_id[12]; /* an ObjectId: topologyVersion.processId */
    int64_t started_ms;
    atomic_uint_fast64_t connections; /* gives out connection ids */
    atomic_uint_fast64_t object_ids;  /* counter of the ObjectIds that are made here */
};

typedef struct mongo_request mongo_request;

/* ---- a connection ---- */

enum { MONGO_NAME_SHOWN = 64, MONGO_IN_FLIGHT = 32 };

/* An authentication in progress. */
typedef struct mongo_sasl {
    access_scram scram;
    int32_t conversation;
    bool skips_empty; /* the client skips the empty exchange at the end */
    bool ending;      /* authenticated, but the client will send one more, empty message */
} mongo_sasl;

typedef struct mongo_hello_state mongo_hello_state; /* hello.c */

typedef struct mongo_conn {
    uint64_t id;
    access_reach reach;
    char user[MONGO_NAME_SHOWN + 1];
    mongo_sasl *sasl; /* NULL: none in progress */
    int32_t conversations;

    /* Requests are carried out side by side, but not beside one without a reply: its client cannot wait for it before it sends the next. */
    bool releasing;
    bool held;                               /* such a request is in progress, or one whose flags are not known yet */
    mongo_request *waiting[MONGO_IN_FLIGHT]; /* until then, in their order */
    size_t waiting_n;

    mongo_hello_state *hello; /* a hello that waits for a change of the topology; NULL: none */

    /* of the last request, for getLastRequestStatistics */
    const struct mongo_command *last_command; /* NULL: there was none */
    double last_charge_ru, last_ms;
} mongo_conn;

#define MONGO_VERSION "7.0.0" /* the MongoDB release whose behaviour clients may expect */

/* ---- a request ---- */

/* OK: the request was answered, or a call was submitted whose `done` answers it. An error is answered by the caller. */
typedef err (*mongo_handler)(mongo_request *q);

typedef enum mongo_flag {
    MONGO_OPEN = 1 << 0,     /* allowed before authentication */
    MONGO_NAMED = 1 << 1,    /* the command's value is a collection's name */
    MONGO_BEYOND = 1 << 2,   /* Azure's service does not have it: refused with 115 if only its commands are offered */
    MONGO_READABLE = 1 << 3, /* its reply is never compressed, as the protocol demands */
    MONGO_WRITES = 1 << 4,   /* may be repeated by a client: retryable */
    MONGO_WITHIN = 1 << 6,   /* allowed within a transaction */
    MONGO_VIEW = 1 << 7,     /* works on views too; others are refused with 166 */
    MONGO_SILENT = 1 << 5,   /* does not count as the last request for getLastRequestStatistics */
} mongo_flag;

typedef struct mongo_command {
    const char *name;
    unsigned access; /* bits of access_verb */
    unsigned flags;
    mongo_handler handle;
} mongo_command;

const mongo_command *mongo_command_of(slice name); /* NULL: there is none */
void mongo_commands_open(void);                    /* before the first of them is looked up */
size_t mongo_commands(const mongo_command **list_out);

/* The logical session that a request names (retry.h). */
typedef struct mongo_session {
    bool given, numbered;
    bool in_transaction; /* autocommit: false */
    mongo_session_id id;
    int64_t number;        /* txnNumber, if numbered */
    int32_t statement;     /* stmtId: the number of its first statement */
    bool retryable;        /* each statement stores a receipt */
    bool perhaps_repeated; /* receipts may exist already */
} mongo_session;

/* An arena object of the frame; lives until the reply is sent. */
struct mongo_request {
    union { /* the call in progress; first member: `done` finds the request by a cast */
        call any;
        call_read read;
        call_commit commit;
        call_find find;
        call_usage usage;
        call_receipt receipt;
        call_within within;
        call_follow follow;
    } call;
    frames_request *frame;
    mongo_front *front;
    mongo_conn *conn;
    const mongo_command *command;
    slice database;   /* $db */
    slice collection; /* of a command with MONGO_NAMED */
    int64_t now_ms, started_us;
    mongo_operation operation;
    mongo_session session;
    call_transaction *transaction;   /* taken from the session; NULL: none */
    session_state transaction_state; /* its state after this command; an error aborts it */
    bool write_failed;               /* there are writeErrors */
    struct writing *writing;         /* the next two: transaction.c */
    struct mongo_reading *reading;
    struct mongo_streaming *streaming; /* change_stream_int.h */
    container *container;              /* a reference, released when the request ends; NULL: none */
    uint64_t names;                    /* mongo_name_bit of each member of the command */

    int64_t streams; /* the cursor whose next batch follows without being asked for; 0: none (exhaust.c) */
    bool holds;      /* its connection's other requests wait for it */
    bool large;      /* the message is: parsing it is left to workers */
    uint64_t steps;  /* this and the next two: work.h */
    mongo_handler work;
    void (*worked)(mongo_request *q, err code);

    account_change *change;
    mongo_handler next;              /* continues when the change is decided */
    void (*clean)(mongo_request *q); /* frees what the request holds outside its arena; NULL: nothing */
    void *state;                     /* belongs to the command's handler */
    struct mongo_view *view;         /* views.h; NULL: what is read is no view */
    struct mongo_pipeline *pipeline; /* aggregate.h; NULL: none */
    mongo_scan *scan;                /* in progress */
    struct mongo_batch *batch;       /* batch.h; NULL: none */
    void *out;                       /* aggregate_write.c */
    struct sorting *sorting;         /* find.c */
    const struct mql_match *match;   /* conditions still to be checked for a document that was read by its key; NULL: none */
    mongo_creation *creation;
    mongo_handler conflict; /* continues if another change of the collection came between; NULL: that is an error */
    mongo_handler logged;   /* change_stream.c */
    mongo_handler after;    /* continues when the database exists, or the collection was changed */

    size_t reply_start;
    bool replying;

    /* Not zeroed when the request is made, since it is large: op_init, wire_clear and mongo_answer do what is needed. */
    op op;
    wire_message message;
    mql_builder reply;
};

/* ---- decoding ---- */

/* Most arguments that a handler asks for are not given: a set of bits tells so for most of them. */
static inline uint64_t mongo_name_bit(const char *name) {
    return (uint64_t)1 << (((unsigned char)name[0] + (name[0] ? 27u * (unsigned char)name[1] : 0)) % 64);
}
static inline bool mongo_may_have(const mongo_request *q, const char *name) {
    return q->names & mongo_name_bit(name);
}
bool mongo_find_member(const mongo_request *q, const char *name, doc_element *e);
static inline bool mongo_get(const mongo_request *q, const char *name, doc_element *e) { /* a member of the command */
    return mongo_may_have(q, name) && mongo_find_member(q, name, e);
}
/* `hint`: the name or the key of an index; missing: none. */
MUST_CHECK err mongo_arg_hint(mongo_request *q, mql_value *hint_out);
MUST_CHECK err mongo_check_hint(op *o, mql_value given, mql_value *hint_out);
/* The collation of the command, or the collection's own (q->container); empty: the simple one. */
MUST_CHECK err mongo_arg_collation(mongo_request *q, slice *collation_out);
MUST_CHECK err mongo_collation_of(mongo_request *q, slice given, slice *collation_out);

mql_value mongo_member(slice document, const char *name);                     /* missing: there is none */
static inline mql_value mongo_arg(const mongo_request *q, const char *name) { /* of the command */
    doc_element e;
    return mongo_get(q, name, &e) ? mql_of(&e) : mql_missing();
}

/* Reads an argument of one type. Null and missing leave the output unchanged. 14 (TypeMismatch): it has another type. */
MUST_CHECK err mongo_arg_document(mongo_request *q, const char *name, slice *document_out); /* else empty */
MUST_CHECK err mongo_arg_array(mongo_request *q, const char *name, slice *array_out);
MUST_CHECK err mongo_arg_text(mongo_request *q, const char *name, slice *text_out);
MUST_CHECK err mongo_arg_bool(mongo_request *q, const char *name, bool *truth);      /* unchanged if not given; numbers count */
MUST_CHECK err mongo_arg_count(mongo_request *q, const char *name, int64_t *number); /* unchanged if not given; an integer, of any type */

uint64_t mongo_limit_of(int64_t limit); /* UINT64_MAX: none */

/* An array argument as documents: from the body or from a sequence beside it. */
typedef struct mongo_list {
    slice rest;
    doc_walk walk;
    bool is_sequence;
} mongo_list;
MUST_CHECK err mongo_list_begin(mongo_request *q, const char *name, mongo_list *list_out, size_t *n_out);
bool mongo_list_next(mongo_list *list, slice *document_out);

MUST_CHECK err mongo_check_ids(mongo_request *q, slice array); /* an array of ids, which the loop goes through, must be short */

/* ---- namespaces ---- */

MUST_CHECK err mongo_check_database(op *o, slice name);
MUST_CHECK err mongo_check_collection(op *o, slice name);          /* 73 (InvalidNamespace) */
slice mongo_namespace(arena *a, slice database, slice collection); /* "db.collection" */
bool mongo_split_namespace(slice text, slice *database_out, slice *collection_out);

/* Fills q->container with the collection, or leaves it NULL if there is none. */
MUST_CHECK err mongo_find_collection(mongo_request *q);
MUST_CHECK err mongo_need_collection(mongo_request *q); /* 26 (NamespaceNotFound) */
MUST_CHECK err mongo_need_own(mongo_request *q);        /* 13 if another API made it */
MUST_CHECK err mongo_need_writable(mongo_request *q);   /* … and 166 if it is a view */

/* ---- replies: each of mongo_end, mongo_ok and mongo_fail ends the request ---- */

mql_builder *mongo_answer(mongo_request *q); /* begins the reply document */
void mongo_end(mongo_request *q);            /* adds ok: 1 */
buf *mongo_answer_bytes(mongo_request *q);   /* the same for a handler that appends the whole document itself, with its ok … */
void mongo_end_bytes(mongo_request *q);      /* … and ends it so */
err mongo_ok(mongo_request *q);              /* {ok: 1} */
void mongo_fail(mongo_request *q, err code);
void mongo_release(mongo_conn *c); /* front.c: the request that held the connection has ended */

/* ---- streams of batches (exhaust.c) ---- */
void mongo_exhaust_offer(mongo_request *q, int64_t cursor); /* before the answer: it may be followed by the cursor's next batch */
void mongo_exhaust_go_on(mongo_request *q);                 /* instead of frames_end, if it is */

/* An error as MongoDB has it. The message is in the operation's arena, or constant. */
typedef struct mongo_error {
    int32_t code;
    const char *name;
    slice message;
    char room[CODE_NAME_BYTES];
} mongo_error;
void mongo_error_of(const op *o, arena *a, err code, mongo_error *error_out);
void mongo_error_of_kill(const mongo_request *q, err code, mongo_error *e); /* replaces it, if the command was killed */

void mongo_add_int(mql_builder *b, const char *key, int32_t number);
void mongo_add_long(mql_builder *b, const char *key, int64_t number);
void mongo_add_double(mql_builder *b, const char *key, double number);
void mongo_add_bool(mql_builder *b, const char *key, bool truth);
void mongo_add_text(mql_builder *b, const char *key, slice text);
void mongo_add_date(mql_builder *b, const char *key, int64_t ms);
void mongo_add_document(mql_builder *b, const char *key, slice document);
void mongo_add_array(mql_builder *b, const char *key, slice array);
void mongo_add_object_id(mql_builder *b, const char *key, const uint8_t bytes[static 12]);
void mongo_add_binary(mql_builder *b, const char *key, uint8_t subtype, slice bytes);
void mongo_open_document(mql_builder *b, const char *key);
void mongo_open_array(mql_builder *b, const char *key);
slice mongo_built_copy(arena *a, mql_builder *b, buf *out); /* the document in the arena; frees the buffer */

void mongo_make_object_id(mongo_request *q, uint8_t bytes[static 12]);
void mongo_make_uuid(mongo_request *q, uint8_t bytes[static 16]);

/* ---- changes of resources ---- */

#define mongo_new_change(q, type) ((type *)mongo_begin_change((q), sizeof(type)))
account_change *mongo_begin_change(mongo_request *q, size_t bytes);
void mongo_await_change(mongo_request *q, mongo_handler next); /* then call account_…(change) */

/* ---- authentication (sasl.c) ---- */

/* The reply of saslStart, added to a document that is open. */
MUST_CHECK err mongo_sasl_start(mongo_request *q, slice command, slice database, buf *payload, bool *done_out);
void mongo_add_sasl(mongo_request *q, mql_builder *b, slice payload, bool done);
void mongo_list_mechanisms(mongo_request *q, mql_builder *b, slice user);
void mongo_conn_end(mongo_conn *c);

/* The session of an `lsid`; false: it is not one. */
bool mongo_session_id_of(const mongo_request *q, mql_value lsid, mongo_session_id *id_out);

/* ---- handlers ---- */
err mongo_end_sessions(mongo_request *q);
err mongo_commit_transaction(mongo_request *q);
err mongo_abort_transaction(mongo_request *q);
err mongo_start_session(mongo_request *q);
err mongo_hello(mongo_request *q);
err mongo_is_master(mongo_request *q);
err mongo_sasl_start_command(mongo_request *q);
err mongo_sasl_continue(mongo_request *q);
err mongo_logout(mongo_request *q);
err mongo_build_info(mongo_request *q);
err mongo_whats_my_uri(mongo_request *q);
err mongo_connection_status(mongo_request *q);
err mongo_last_statistics(mongo_request *q);
err mongo_host_info(mongo_request *q);
err mongo_server_status(mongo_request *q);
err mongo_get_log(mongo_request *q);
err mongo_command_line(mongo_request *q);
err mongo_get_parameter(mongo_request *q);
err mongo_list_commands(mongo_request *q);
err mongo_create(mongo_request *q);
err mongo_drop(mongo_request *q);
err mongo_drop_database(mongo_request *q);
err mongo_rename(mongo_request *q);
err mongo_coll_mod(mongo_request *q);
err mongo_shard_collection(mongo_request *q);
err mongo_list_collections(mongo_request *q);
err mongo_list_databases(mongo_request *q);
err mongo_coll_stats(mongo_request *q);
err mongo_db_stats(mongo_request *q);
err mongo_custom_action(mongo_request *q);
err mongo_insert(mongo_request *q);
err mongo_bulk_write(mongo_request *q);
err mongo_re_index(mongo_request *q);
err mongo_validate_collection(mongo_request *q);
err mongo_top(mongo_request *q);
err mongo_not_supported(mongo_request *q);
err mongo_get_last_error(mongo_request *q);
err mongo_kill_op(mongo_request *q);
err mongo_find_documents(mongo_request *q);
err mongo_get_more(mongo_request *q);
err mongo_kill_cursors(mongo_request *q);
err mongo_update(mongo_request *q);
err mongo_delete(mongo_request *q);
err mongo_find_and_modify(mongo_request *q);
err mongo_count(mongo_request *q);
err mongo_distinct(mongo_request *q);
err mongo_aggregate(mongo_request *q);
err mongo_create_indexes(mongo_request *q);
err mongo_list_indexes(mongo_request *q);
err mongo_drop_indexes(mongo_request *q);
err mongo_explain(mongo_request *q);
err mongo_data_size(mongo_request *q);
err mongo_current_op(mongo_request *q);

/* ---- documents of stages about the server and the collection, one after the other ---- */
void mongo_current_documents(mongo_request *q, buf *out);
MUST_CHECK err mongo_coll_stats_document(mongo_request *q, buf *out);
slice mongo_own_host(mongo_request *q);                                 /* the name and port that the client has used; hello.c */
MUST_CHECK err mongo_index_stats_documents(mongo_request *q, buf *out); /* $indexStats; indexes.c */
