/* sql_int.h — within api/sql: the state of one request, and the functions that decode and answer it. */
#pragma once

#include "access/reach.h"
#include "api/sql/fields.h"
#include "api/sql/route.h"
#include "api/sql/sql.h"
#include "call/call.h"
#include "doc/json.h"

typedef struct sql_request sql_request;
typedef struct sql_triggers sql_triggers; /* api/sql/triggers.h */
typedef struct sql_decoded sql_decoded;   /* api/sql/large.c */

/* Per loop: memory that requests borrow while they are decoded. */
typedef struct sql_loop {
    buf scratch;
} sql_loop;

struct sql_front {
    http_front http;
    account *account;
    call_core core;
    const access_keys *keys;
    const access_aad *aad; /* NULL: Entra ID tokens are not accepted */
    access_attempts *attempts;
    sql_consistency consistency;
    uint32_t token_seconds_min;
    net_server *server;
    uint16_t direct_port; /* 0: there is no direct mode */
    bool (*extra_handler)(void *context, http_request *request);
    void *extra_context;
    sql_loop *loops;
    unsigned loops_n;
};

/* An arena object of the HTTP request; lives until the answer is sent. */
struct sql_request {
    http_request *http;
    sql_front *front;
    op op;
    sql_route route;
    access_reach reach; /* what its sender may do; released with the request */
    char activity[37];
    uint16_t substatus; /* the answer's substatus; 0: the default of the error code */
    uint32_t fault;     /* id of the injected fault that caused the error; 0: none */
    int64_t started_us;
    uint16_t status;   /* HTTP status of the answer */
    int64_t range;     /* id of the range that the answer names, plus one; 0: none */
    slice explanation; /* for the slow-request log: where the time went (base/request_log.h) */

    database *database; /* references, released when the request ends */
    container *container;
    user *user;
    void *tokens;   /* for a list of permissions: the key and lifetime for their tokens (permissions.c) */
    item_mark mark; /* position of the request's range */
    bool marked;    /* mark is set */
    bool key_given; /* the partition key header is there */
    pkey partition;
    sql_decoded *decoded;   /* the body as decoded by a worker (large.c), or NULL */
    bool row_known;         /* route.child is the row key of an item that the path named by rid */
    sql_triggers *triggers; /* for a write of one item, or NULL */
    slice operations;       /* a batch's operations, as a BSON array */
    bool rows;              /* the batch came as HybridRow records (batch_rows.h), and is answered so */
    buf written;            /* the answer of a batch, if a worker wrote it */

    /* not cleared by make_request: each user initialises its own */
    call_read read;
    call_commit commit;
    item_op one;
    call changing;                  /* the call of a change to a resource */
    account_change *change;         /* the change; in the arena */
    void (*resume)(sql_request *q); /* called after the change */
};

typedef void (*sql_handler)(sql_request *q);

static inline slice sql_get(const sql_request *q, sql_field field) {
    return q->http->field[field];
}

bool sql_flag(const sql_request *q, sql_field field); /* "True", "true", "1" */
static inline bool sql_has(const sql_request *q, sql_field field) {
    return q->http->field[field].p != NULL;
}

bool sql_wants_minimal(const sql_request *q); /* no body in the answer to a write */
bool sql_is_query(const sql_request *q);      /* a POST that only reads; never a batch */

/* API versions are dates; their order is text order. */
bool sql_version_at_least(const sql_request *q, const char *date);

/* ---- decoding ---- */
MUST_CHECK err sql_body(sql_request *q, json_root root, slice *bson_out);          /* without system properties; lives with the request */
MUST_CHECK err sql_body_any(sql_request *q, json_root *root_out, slice *bson_out); /* an object or an array */
MUST_CHECK err sql_find_database(sql_request *q);                                  /* fills q->database */
MUST_CHECK err sql_find_container(sql_request *q);                                 /* fills q->container */
int64_t sql_foreign_ms(const sql_request *q);     /* the time now if another API made the container, else 0: for item_op.foreign_ms */
MUST_CHECK err sql_partition_key(sql_request *q); /* fills q->partition, q->key_given */
MUST_CHECK err sql_check_cross_partition(sql_request *q);      /* E_BAD_REQUEST: a query of all partitions whose request does not say so */
MUST_CHECK err sql_range_id(sql_request *q, uint32_t *id_out); /* id in the range header */
MUST_CHECK err sql_page_size(sql_request *q, size_t *size_out);
MUST_CHECK err sql_throughput(sql_request *q, throughput_setting *setting_out);

/* A whole number of a document; UINT32_MAX, which is beyond all limits, stands for any other number. False: no number is there. */
bool sql_whole(slice document, const doc_path *path, uint32_t *value_out);

/* {"maxThroughput": 4000, "autoUpgradePolicy": {"throughputPolicy": {"incrementPercent": 10}}}, of which the first must be there. */
bool sql_autopilot(slice settings, throughput_setting *setting_out);
MUST_CHECK err sql_seen(sql_request *q, call *c); /* fills c->seen from the session token */
const pkey *sql_header_key(const sql_request *q); /* NULL if not given */

/* ---- asking the core ---- */

/* Initialises a call of any kind for the request; q->container must be set. Example: sql_call_prepare(q, call_read_init, &q->read,
 * was_read). */
#define sql_call_prepare(q, init, c, done) init((c), &(q)->front->core, (q)->http->client, &(q)->op, (q)->container, (done))

/* call_init, usable before the container is found: the scheduling tenant then comes from the path. */
void sql_call_init(sql_request *q, call *c, call_step done);

/* Call this when a call has completed: copies its mark and fault into the request, for the answer. */
void sql_call_done(sql_request *q, const call *c);

/* Calls the handler; if the body is large, after a worker has decoded it for sql_body. If too many bodies are queued, answers with an error
 * instead. */
void sql_handle_decoded(sql_request *q, sql_handler handler);

/* Starts a change of a resource: allocates its struct (account/account.h), zero except for the account, the operation and the etag from the
 * fields, and sets q->change. Then call sql_await_change and account_…(change). */
#define sql_new_change(q, type) ((type *)sql_begin_change((q), sizeof(type)))
account_change *sql_begin_change(sql_request *q, size_t bytes);
void sql_await_change(sql_request *q, void (*resume)(sql_request *q));
static inline err sql_change_code(const sql_request *q) { /* valid in `resume` */
    return q->change->commit.code;
}
static inline account_name sql_database_name(const sql_request *q) { /* as in the path */
    return (account_name){q->route.database, q->route.database_by_rid};
}
static inline account_name sql_container_name(const sql_request *q) {
    return (account_name){q->route.container, q->route.container_by_rid};
}
static inline account_name sql_child_name(const sql_request *q) {
    return (account_name){q->route.child, q->route.child_by_rid};
}

/* ---- answering: each ends the request ---- */
void sql_fail(sql_request *q, err code);

/* Answers a rejected request, whose retry-after time is q->op.retry_after_ms. If the client did not wait as long as it was told before, the
 * answer is delayed: a rejection costs the loop as much as a point read. */
void sql_refuse(sql_request *q, err code, void (*answer)(sql_request *q, err code));
void sql_not_modified(sql_request *q, uint64_t version, uint32_t ts);
void sql_deleted(sql_request *q);                /* a database or a container */
void sql_start(sql_request *q, unsigned status); /* status and the fields common to all answers, the charge included */
buf *sql_fields(sql_request *q);
void sql_field_text(sql_request *q, const char *name, slice value);
void sql_add_range(sql_request *q, item_mark mark); /* session token, range id, lsn, content path */
void sql_add_database_path(sql_request *q, const database *d);
void sql_add_container_paths(sql_request *q, const container *c);
void sql_add_account(sql_request *q);       /* the session token of answers about databases, containers and offers */
void sql_add_session_token(sql_request *q); /* the session token of the request's container if it has one, else the account's */
void sql_add_etag(sql_request *q, uint64_t version, uint32_t ts);
void sql_add_usage(sql_request *q, range_usage usage); /* writes nothing if a token covers only a part of the container */
buf *sql_start_body(sql_request *q);
void sql_end(sql_request *q);
int64_t sql_elapsed_us(const sql_request *q);

void sql_write_charge(buf *out, double ru); /* two decimals at most */
void sql_write_item(buf *out, const container *c, slice body, const item_head *head);
rid sql_container_rid(const container *c);

/* The JSON around a feed's items: {"_rid":…,"Name":[ … ],"_count":n}. */
void sql_feed_open(buf *out, const rid *parent, const char *name);
void sql_feed_close(buf *out, size_t count);

/* Continuation of metadata feeds: the number of the last resource. */
MUST_CHECK err sql_continuation_number(sql_request *q, uint32_t *after_out);
void sql_add_continuation_number(sql_request *q, uint32_t last);

/* ---- scripts ---- */
extern const script_tokens sql_script_tokens; /* reads and writes the continuations of a script's lists and queries */
void sql_add_script_log(sql_request *q, slice log);
void sql_script_links(const container *c, arena *a, slice *self_out, slice *alt_out); /* links of the collection, as scripts see them */

/* ---- handlers ---- */
void sql_account_read(sql_request *q);
MUST_CHECK err sql_address_route(sql_request *q); /* the route of what the addresses are asked for: clients sign that */
void sql_address_list(sql_request *q);
void sql_database_head(sql_request *q);
void sql_container_head(sql_request *q);
void sql_database_create(sql_request *q);
void sql_database_list(sql_request *q);
void sql_database_read(sql_request *q);
void sql_database_delete(sql_request *q);
void sql_container_create(sql_request *q);
void sql_container_list(sql_request *q);
void sql_container_read(sql_request *q);
void sql_container_replace(sql_request *q);
void sql_container_delete(sql_request *q);
void sql_user_create(sql_request *q);
void sql_user_list(sql_request *q);
void sql_user_read(sql_request *q);
void sql_user_replace(sql_request *q);
void sql_user_delete(sql_request *q);
void sql_permission_create(sql_request *q);
void sql_permission_list(sql_request *q);
void sql_permission_read(sql_request *q);
void sql_permission_replace(sql_request *q);
void sql_permission_delete(sql_request *q);
void sql_permission_resolve(sql_request *q); /* if the token's permission was made before its resource: finds the resource now */
void sql_encryption_key_create(sql_request *q);
void sql_encryption_key_list(sql_request *q);
void sql_encryption_key_read(sql_request *q);
void sql_encryption_key_replace(sql_request *q);
void sql_range_list(sql_request *q);
void sql_range_read(sql_request *q);
void sql_offer_list(sql_request *q);
void sql_offer_read(sql_request *q);
void sql_offer_replace(sql_request *q);
void sql_script_execute(sql_request *q);
void sql_item_post(sql_request *q);
void sql_item_list(sql_request *q);
void sql_changes_list(sql_request *q);
void sql_item_read(sql_request *q);
void sql_item_replace(sql_request *q);
void sql_item_patch(sql_request *q);
void sql_item_delete(sql_request *q);
void sql_item_batch(sql_request *q);
void sql_partition_delete(sql_request *q);
void sql_query(sql_request *q);
void sql_attachment_list(sql_request *q);
void sql_attachment_post(sql_request *q);
void sql_attachment_read(sql_request *q);
void sql_attachment_replace(sql_request *q);
void sql_attachment_delete(sql_request *q);
void sql_conflict_list(sql_request *q);
void sql_conflict_query(sql_request *q);
void sql_conflict_none(sql_request *q);
void sql_script_create(sql_request *q); /* these five serve stored procedures, triggers and user-defined functions */
void sql_script_list(sql_request *q);
void sql_script_read(sql_request *q);
void sql_script_replace(sql_request *q);
void sql_script_delete(sql_request *q);
