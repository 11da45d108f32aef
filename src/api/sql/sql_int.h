/* sql_int.h — within api/sql: one request on its way, and how it is answered. */
#pragma once

#include "access/reach.h"
#include "api/sql/fields.h"
#include "api/sql/route.h"
#include "api/sql/sql.h"
#include "doc/json.h"
#include "net/work.h"
#include "script/transact.h"

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
    const access_keys *keys;
    access_attempts *attempts;
    sql_consistency consistency;
    uint32_t token_seconds_min;
    net_server *server;
    faults *faults;
    script_pool *scripts;
    bool (*beside)(void *context, http_request *request);
    void *beside_context;
    sql_loop *loops;
    unsigned loops_n;
};

/* An arena object of the HTTP request; lives until the answer is sent. */
struct sql_request {
    http_request *http;
    sql_front *front;
    op op;
    sql_route route;
    access_reach reach; /* what its sender may do; ended with the request */
    char activity[37];
    uint16_t substatus; /* of the error, in place of its own; 0: that */
    uint32_t fault;     /* the id of the fault that the error comes from; 0: it is real */
    int64_t started_us;

    database *database; /* references, given back when the request ends */
    container *container;
    user *user;
    void *tokens;                 /* of a list of permissions: what their tokens are made with */
    const container_range *range; /* of the container's tiles or the commit's, once it is known which */
    bool key_given;               /* the partition key header is there */
    pkey partition;
    sql_decoded *decoded;          /* the body, if a worker has decoded it (large.c); NULL: it has not */
    sql_triggers *triggers;        /* of a write of one item, or NULL */
    void (*write)(sql_request *q); /* writes a large commit's answer into `written`, on a worker; NULL: it is written on the loop */
    buf written;

    net_task task; /* brings the answer of a commit back to the loop */
    void (*resume)(sql_request *q);
    item_commit commit;
    account_change *change; /* of a resource; in the arena. NULL: none was begun */
    item_op one;
    void *waiting; /* a handler's own, while it waits for an answer from elsewhere */
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
bool sql_is_query(const sql_request *q);      /* a POST that reads; never a batch */

/* API versions are dates; their order is text order. */
bool sql_version_at_least(const sql_request *q, const char *date);

/* ---- decoding ---- */
MUST_CHECK err sql_body(sql_request *q, json_root root, slice *bson_out);          /* without system properties; lives with the request */
MUST_CHECK err sql_body_any(sql_request *q, json_root *root_out, slice *bson_out); /* an object or an array */
MUST_CHECK err sql_find_database(sql_request *q);                                  /* fills q->database */
MUST_CHECK err sql_find_container(sql_request *q);                                 /* fills q->container */
MUST_CHECK err sql_partition_key(sql_request *q);                                  /* fills q->partition, q->key_given */
MUST_CHECK err sql_range_id(sql_request *q, uint32_t *id_out);                     /* of the range that the request names */
MUST_CHECK err sql_page_size(sql_request *q, size_t *size_out);
MUST_CHECK err sql_throughput(sql_request *q, throughput_setting *setting_out);
MUST_CHECK err sql_check_session(sql_request *q, const epk *min, const epk *max); /* the ranges of [min, max] have reached the token */
const pkey *sql_header_key(const sql_request *q);                                 /* NULL if not given */

/* ---- going to a worker and back ---- */

/* Nobody waits for the answer: what was not begun need not be. Any thread. */
static inline bool sql_client_left(const sql_request *q) {
    return atomic_load_explicit(&q->http->client.left, memory_order_relaxed);
}

/* Who takes turns with others: the container that the request names, or else the database; what is not there has one turn in all. Never 0.
 */
uint64_t sql_tenant(const sql_request *q);

/* net_work_start for that tenant. */
void sql_work(sql_request *q, net_lane lane, net_work *work, void (*run)(net_work *), void (*done)(net_work *));

/* Calls the handler; if the body is large, after a worker has decoded it for sql_body. If too many bodies wait, it answers with an error
 * instead. */
void sql_handle_decoded(sql_request *q, sql_handler handler);

/* ---- going to the committer and back ---- */
void sql_submit_items(sql_request *q, void (*resume)(sql_request *q)); /* resumed when charged. Or answers: the range's share is spent */
void sql_price_items(sql_request *q);                                  /* charges what was committed, and resumes */

/* A change of a resource: the struct of its verb (account/account.h), zero but for the account, the operation and the etag from the fields.
 * It becomes q->change. Then sql_await_change, and account_…(change). */
#define sql_new_change(q, type) ((type *)sql_begin_change((q), sizeof(type)))
account_change *sql_begin_change(sql_request *q, size_t bytes);
void sql_await_change(sql_request *q, void (*resume)(sql_request *q));
static inline err sql_change_code(const sql_request *q) { /* once resumed */
    return q->change->commit.code;
}
static inline account_name sql_database_name(const sql_request *q) { /* as the path has it */
    return (account_name){q->route.database, q->route.database_by_rid};
}
static inline account_name sql_container_name(const sql_request *q) {
    return (account_name){q->route.container, q->route.container_by_rid};
}
static inline account_name sql_child_name(const sql_request *q) {
    return (account_name){q->route.child, q->route.child_by_rid};
}

/* A fault on purpose hits the request: true, and it is answered or will be handled later. Before anything else of an item request. */
bool sql_fault(sql_request *q, sql_handler handler);

/* ---- answering: each ends the request ---- */
void sql_fail(sql_request *q, err code);
void sql_not_modified(sql_request *q, uint64_t version, uint32_t ts);
void sql_deleted(sql_request *q);                /* a database or a container */
void sql_start(sql_request *q, unsigned status); /* status and the fields every answer has, the charge among them */
buf *sql_fields(sql_request *q);
void sql_field_text(sql_request *q, const char *name, slice value);
void sql_add_range(sql_request *q, item_mark mark); /* session token, range id, lsn, content path */
void sql_add_database_path(sql_request *q, const database *d);
void sql_add_container_paths(sql_request *q, const container *c);
void sql_add_account(sql_request *q); /* the session token of answers about databases, containers and offers */
void sql_add_place(sql_request *q);   /* the session token of the request's container, if it is about one, or else the account's */
void sql_add_etag(sql_request *q, uint64_t version, uint32_t ts);
void sql_add_usage(sql_request *q, container_range *const *ranges, size_t n); /* nothing for a token that is for a part of the container */
buf *sql_start_body(sql_request *q);
void sql_end(sql_request *q);

void sql_write_charge(buf *out, double ru); /* two decimals at most */
void sql_write_item(buf *out, const container *c, slice body, const item_head *head);
rid sql_container_rid(const container *c);

/* A feed's frame: {"_rid":…,"Name":[ … ],"_count":n}. */
void sql_feed_open(buf *out, const rid *parent, const char *name);
void sql_feed_close(buf *out, size_t count);

/* Continuation of metadata feeds: the number of the last resource. */
MUST_CHECK err sql_continuation_number(sql_request *q, uint32_t *after_out);
void sql_add_continuation_number(sql_request *q, uint32_t last);

/* ---- scripts ---- */
script_scope sql_script_scope(sql_request *q, const item_key *key); /* the key's partition of the request's container */
void sql_add_script_log(sql_request *q, slice log);
void sql_script_links(const container *c, arena *a, slice *self_out, slice *alt_out); /* of the collection, as scripts are told */

/* ---- handlers ---- */
void sql_account_read(sql_request *q);
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
void sql_query(sql_request *q);
void sql_attachment_list(sql_request *q);
void sql_attachment_post(sql_request *q);
void sql_attachment_read(sql_request *q);
void sql_attachment_replace(sql_request *q);
void sql_attachment_delete(sql_request *q);
void sql_conflict_list(sql_request *q);
void sql_conflict_none(sql_request *q);
void sql_script_create(sql_request *q); /* stored procedures, triggers, user-defined functions alike */
void sql_script_list(sql_request *q);
void sql_script_read(sql_request *q);
void sql_script_replace(sql_request *q);
void sql_script_delete(sql_request *q);
