/* call.h — calls: how a front end submits requests to the core and gets their results.
 *
 * A call is a struct in the front end's memory, usually in the request's arena. The front end initialises it (call_X_init), fills in the
 * request, and submits it once (call_X_submit). It completes once: `done` runs on the client's loop, immediately if possible (before
 * call_X_submit returns), otherwise later. In between a call may wait for its turn, run on a worker or a script thread, or be decided by
 * the committer; the front end sees none of that. If the client disconnects or the server stops, a call completes early, with E_CANCELLED
 * or E_UNAVAILABLE; submitted writes are still decided. For every kind, `code` is the result, the operation's `detail` explains an error,
 * its `charge_ru` is the charge, and `mark` the position of the range concerned.
 *
 *   call_read      one item by its key
 *   call_read_many several items by their keys
 *   call_commit    writes, decided together, including edits and conditions
 *   call_feed      items in pages, in creation order
 *   call_rows      items in pages, in key order: of one partition by row key, or of a part of the hash space
 *   call_find      items in pages, by conditions and in an order given as data, without a query text
 *   call_query     a page of a query of the SQL language
 *   call_changes   a page of changes in one range
 *   call_follow    the next changes of a container or a part of it; waits for them if there are none
 *   call_usage     how much a container holds
 *   call_transact  scripts and their writes over one partition, all or nothing
 *   call_within    reads, writes, rows or the commit within a transaction that a client keeps open
 *   call_wipe      all items of a logical partition deleted at once
 *   call_attachments, call_attach   an item's attachments: read, write
 *   call_receipt   the first outcome of a write that its client repeats
 *   call_await_change  a change of a database, container, offer, script, user or permission
 *   call_work      the front end's own long work, on a worker
 *
 * Requests are data: keys, bounds, conditions, edits and continuations are values and bytes. Code that a front end supplies (an edit, a
 * filter) is named by a registered kind with a BSON argument (item/edit.h, query/filter.h). Callbacks in a call, such as sinks, only
 * receive results.
 *
 * All calls about items first check for injected faults (account/faults.h), and for ranges that are behind what the client has already
 * seen (`seen`). Admission and charges happen in the item layer: a range whose share is spent answers E_THROTTLED, with the time to
 * wait in the operation's `retry_after_ms`. Splits and merges, within a page or between pages, are visible only to calls that name a range
 * (call_commit's range_id, call_changes): E_RANGE_GONE. A front end never sees ranges, tiles or the store; what it may report about them
 * are plain values (item/range_info.h). */
#pragma once

#include "account/account.h"
#include "account/faults.h"
#include "item/attach.h"
#include "item/follow.h"
#include "item/range_info.h"
#include "item/receipt.h"
#include "item/rows.h"
#include "item/transaction.h"
#include "item/wipe.h"
#include "net/wait.h"
#include "query/find.h"
#include "script/execute.h"

/* The core that executes calls; one per server. It outlives all calls. */
typedef struct call_core {
    account *account;
    script_pool *scripts;
    faults *faults; /* NULL: fault injection is off */
} call_core;

typedef struct call call;
typedef void (*call_step)(call *c);

struct call {
    /* the client; set by call_init */
    const call_core *core;
    net_client *client;
    op *op; /* in: priority, time, memory; out: charge, error message */
    call_step done;

    /* the request */
    container *container;  /* the caller keeps its reference until `done`; NULL: none */
    uint64_t tenant;       /* tenant for fair scheduling; 0: the container */
    const item_mark *seen; /* what the client has seen: E_SESSION_NOT_AVAILABLE if a requested range is behind it */
    size_t seen_n;

    /* result */
    err code;
    item_mark mark;
    bool marked;        /* mark is set */
    uint32_t fault;     /* id of the injected fault that caused `code`; 0: none */
    uint16_t substatus; /* requested by the fault; 0: the error's default */

    /* private to call/ */
    call_step run, then;
    call_step clean; /* releases what the call holds, before `done`; NULL: nothing to release */
    net_work work;
    net_task task;
    net_delay delay;
    script_job job;
    op_turn turn;
};

void call_init(call *c, const call_core *core, net_client *client, op *o, container *container, call_step done);

/* Tenants for fair scheduling: a container, a database, or a shared tenant for work about neither. */
uint64_t call_tenant_of_container(const container *c);
uint64_t call_tenant_of_database(const database *d);
uint64_t call_tenant_of_none(void);

/* The client has disconnected: work that has not started can be skipped. Any thread. */
static inline bool call_client_left(const call *c) {
    return atomic_load_explicit(&c->client->left, memory_order_relaxed);
}

/* Runs `run` on a worker of the lane, then completes the call. `run` sets `code` on failure. If `run` could not be called, the code is
 * E_TENANT_BUSY, E_WORK_BUSY, E_CANCELLED or E_UNAVAILABLE. */
void call_work(call *c, net_lane lane, call_step run);

/* For a front end that hands work over itself: completes the call on its loop. Any thread; the caller must not touch the call
 * afterwards. */
void call_complete(call *c, err code);

/* ---- reading one item ---- */

typedef struct call_read {
    call call; /* first member, as in all kinds */
    item_key key;

    /* result */
    item_found found; /* on OK, release it by call_read_give */
} call_read;

static inline void call_read_init(call_read *r, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&r->call, core, client, o, container, done);
}
void call_read_submit(call_read *r); /* E_NOT_FOUND, E_THROTTLED, E_SESSION_NOT_AVAILABLE */
void call_read_give(call_read *r);

/* ---- reading several items ---- */

typedef struct call_read_many {
    call call;
    const item_key *keys; /* at least one */
    size_t n;

    /* Called for each item that exists, in the order of the keys: on the loop or on a worker. */
    void (*sink)(void *context, size_t index, const item_found *found);
    void *context;

    size_t next; /* private to call/ */
} call_read_many;

void call_read_many_init(call_read_many *r, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_read_many_submit(call_read_many *r); /* E_THROTTLED, E_SESSION_NOT_AVAILABLE; some items may have been read */

/* ---- writing ---- */

typedef struct call_commit call_commit;
struct call_commit {
    call call;
    item_op *ops;
    size_t n;
    bool atomic;           /* all or nothing, within one partition; otherwise each operation by itself */
    bool stops_at_failure; /* if not atomic: operations after a failure are skipped */
    int64_t range_id;      /* -1, or the range that the client addresses: E_RANGE_GONE if it does not exist */
    call_step write;       /* optional; if the items are large, called on a worker before `done` to write the answer */

    item_commit commit; /* private to call/ */
};

void call_commit_init(call_commit *c, const call_core *core, net_client *client, op *o, container *container, call_step done);

/* After completion `code` is OK, or the error of the request as a whole; each operation has its own code. The call is charged. */
void call_commit_submit(call_commit *c);
void call_commit_give(call_commit *c); /* releases the memory that results point to; safe to call twice, or if nothing was submitted */

/* ---- reading many items: sinks are called on a worker ---- */

typedef struct call_feed {
    call call;
    item_cursor *cursor; /* which items, and the position; advanced by the call */
    size_t steps_max;    /* limit of items examined; default: the page limit */
    item_visit sink;     /* returns false to end the page before this item */
    void *context;
} call_feed;

void call_feed_init(call_feed *f, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_feed_submit(call_feed *f); /* E_THROTTLED, only if nothing was read */

typedef struct call_rows {
    call call;
    item_rows_ask ask;       /* default: the whole container, from the first row */
    item_rows_cursor cursor; /* in: the end of the previous page, or empty; out: the end of this one */
    item_visit sink;         /* false ends the page before the row */
    void *context;

    /* result */
    size_t n; /* rows that the sink took */
} call_rows;

void call_rows_init(call_rows *r, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_rows_submit(call_rows *r); /* E_BAD_CONTINUATION, E_THROTTLED */

typedef struct call_transaction call_transaction;

typedef struct call_find {
    call call;
    query_find find; /* default: all items of the container */
    slice from;      /* `next` of the previous page; empty: from the beginning */
    size_t rows_max, bytes_max;
    bool timed, notes_indexes; /* as in query_ask */
    query_sink sink;
    void *context;
    call_transaction *within; /* a find of one partition, as this transaction sees it; NULL: as the partition is now */
    call_step again; /* NULL: always runs on a worker. Otherwise a short find is tried on the loop first; if that takes too long, this is
                      * called to discard what the sink got, and a worker starts over */

    /* result */
    slice next; /* start of the next page, in the operation's arena; empty: no more */
    query_outcome outcome;
} call_find;

void call_find_init(call_find *f, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_find_submit(call_find *f); /* errors as query_find_run */

/* ---- queries ---- */

typedef struct call_query call_query;
struct call_query {
    call call;
    bool is_short;                           /* the text may be parsed on the loop, and a few rows looked up there */
    bool is_first;                           /* the first page: items that the text names one by one are read directly */
    bool timed, notes_indexes, full_goes_on; /* as in query_ask */
    buf *out;                                /* rows as JSON, separated by commas */

    /* Parses the text and fills in the members below. Called once, on the loop or on a worker. */
    err (*prepare)(call_query *c);
    query query;
    item_cursor *cursor; /* advanced by the call */
    query_position position;
    size_t rows_max;

    query_page page; /* result: page.outcome, page.position */

    /* private to call/ */
    account_script *functions[QUERY_UDFS_MAX];
    query_udfs *udfs;
};

void call_query_init(call_query *c, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_query_submit(call_query *c);

/* ---- changes ---- */

typedef struct call_changes {
    call call;
    item_changes what; /* in: the start position; out: the end of the page. until_us is private to call/ */

    /* The sink, called on a worker: `item` for each item's latest version, or, if set, `version` for every version and delete. */
    item_visit item;
    bool (*version)(void *context, const logged_version *v);
    void *context;
} call_changes;

void call_changes_init(call_changes *c, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_changes_submit(call_changes *c);

/* The next changes over all ranges (item/follow.h). If there are none, the call waits for up to `wait_ms` without a thread and without
 * polling; then it completes with n 0. The front end repeats the call with the returned position; no change is lost between two calls. */
typedef struct call_follow {
    call call;
    follow_start start; /* default: the whole container, from the beginning, in the latest mode */
    size_t items_max, bytes_max;
    unsigned wait_ms;
    follow_visit sink; /* called on a worker; returns false to end the page before this change */
    void *context;

    /* result */
    size_t n;       /* changes that the sink took */
    bool more;      /* more changes may be available now */
    slice position; /* the end position, in the operation's arena; after an error the start position, or empty if there was none */

    /* private to call/ */
    follower *follower;
    container *newest;
    net_wait wait;
    int64_t until_ms;
} call_follow;

void call_follow_init(call_follow *f, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_follow_submit(call_follow *f); /* errors as follow_open and follow_read */

/* ---- usage ---- */

typedef struct call_usage {
    call call;

    /* result, for the newest version of the container */
    range_usage usage;   /* expired items count until they are removed */
    uint64_t partitions; /* logical partitions */
    size_t ranges;
} call_usage;

void call_usage_init(call_usage *u, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_usage_submit(call_usage *u); /* no charge */

/* ---- scripts ---- */

typedef struct call_transact call_transact;
struct call_transact {
    call call;
    item_key key;                /* the partition; its row key is ignored */
    const script_tokens *tokens; /* NULL: the script's lists and queries return only one page */

    /* One attempt, on a script thread; may be called several times (script/execute.h). */
    err (*attempt)(call_transact *c, script_attempt *a);
};

void call_transact_init(call_transact *t, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_transact_submit(call_transact *c); /* E_RETRY_WITH, E_SCRIPTS_BUSY, E_THROTTLED, and errors of the attempt */

/* ---- attachments ---- */

typedef struct call_attachments {
    call call;
    item_key item;

    /* result */
    attach_list list; /* on OK, release it by call_attachments_give */
} call_attachments;

void call_attachments_init(call_attachments *a, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_attachments_submit(call_attachments *a);               /* E_OWNER_NOT_FOUND, E_THROTTLED */
void call_attachments_charge(call_attachments *a, size_t bytes); /* for attachments that are returned to the client */
void call_attachments_give(call_attachments *a);

typedef struct call_attach {
    call call;
    attach_write write; /* in: the members from `kind` to `if_match`; out: the result */
} call_attach;

void call_attach_init(call_attach *a, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_attach_submit(call_attach *a);
void call_attach_give(call_attach *a); /* safe if nothing was submitted */

/* ---- deleting a logical partition ---- */

typedef struct call_wipe {
    call call;
    item_wipe wipe; /* in: the key; out: the result */
} call_wipe;

void call_wipe_init(call_wipe *w, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_wipe_submit(call_wipe *w); /* E_OWNER_NOT_FOUND, E_TENANT_BUSY, E_THROTTLED */

/* ---- writes that a client repeats (item/receipt.h) ---- */

typedef struct call_receipt {
    call call;
    slice key;

    /* result */
    item_receipt_found found; /* on OK */
} call_receipt;

void call_receipt_init(call_receipt *r, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_receipt_submit(call_receipt *r); /* E_NOT_FOUND: the write has not been applied. No charge */

/* ---- transactions that a client keeps open (item/transaction.h) ----
 *
 * A front end begins a transaction on a client's loop, keeps the pointer, and submits one call after the other, from any loop; a call while
 * another one is in progress is rejected with E_BAD_REQUEST. No thread waits between calls. A transaction older than
 * LIMIT_TRANSACTION_SECONDS is expired: its calls then complete with E_TRANSACTION_EXPIRED. The front end must always end it, while no call
 * is in progress: after the commit, whatever its result, or without a commit, which discards the writes. */

call_transaction *call_transaction_begin(const call_core *core, net_loop *loop);
void call_transaction_end(call_transaction *t);

typedef struct call_within {
    call call; /* its container is the one to read or write; for a commit the one whose mark the caller wants, or NULL */
    call_transaction *transaction;

    item_key key;     /* read: of the item; rows: of the partition */
    bool guarded;     /* read: the commit fails if the item has changed */
    item_found found; /* read: on OK, release it by call_within_give before the transaction ends */

    item_op *op; /* write: prepared as for call_commit; results as of item_transaction_write */

    /* several reads or writes in one call, on a worker; both functions are called there */
    const item_key *keys; /* read_all: items that are not there are left out */
    size_t n;             /* of keys; write_all: of operations at `op` */
    void (*read)(void *context, size_t i, const item_found *found);
    err (*wrote)(void *context, size_t i, err code); /* after each write, while its results live: an error ends the call with it */

    item_rows_ask rows; /* rows: of one partition; `moment` is private to call/ */
    item_rows_cursor cursor;
    item_visit sink; /* called on a worker; returns false to end the page before this row */
    void *context;
} call_within;

void call_within_init(call_within *w, call_transaction *t, const call_core *core, net_client *client, op *o, container *container,
                      call_step done);
void call_within_read(call_within *w);      /* E_NOT_FOUND, E_THROTTLED, E_TRANSACTION_SPREAD */
void call_within_write(call_within *w);     /* the same, and the errors of a write of its kind */
void call_within_read_all(call_within *w);  /* E_CANCELLED, and the errors of a read but E_NOT_FOUND */
void call_within_write_all(call_within *w); /* in order, until `wrote` returns an error: E_CANCELLED, and what it returns */
void call_within_rows(call_within *w);      /* the errors of a read, and E_BAD_CONTINUATION */
void call_within_commit(
    call_within *w); /* E_RETRY_WITH, E_UNIQUE_KEY: another write conflicts, nothing is written. Call once; then end the transaction */
void call_within_give(call_within *w);

/* ---- resources ---- */

/* Prepares the call for the change that is submitted next (account_create_database, …): the call completes when the change was decided,
 * with its code. Sets the change's account, operation, `done` and `context`. */
void call_await_change(call *c, account_change *change);
