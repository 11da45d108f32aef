/* call.h — how a front end asks the core: one way in, one way back.
 *
 * A call is a struct of the front end's own memory, usually in the request's arena. The front end initialises it (call_X_init), fills in
 * what is asked, and submits it once (call_X_submit). It completes once: `done` runs on the loop of the client that asks, at once when it
 * can (before call_X_submit returns), otherwise later. On its way a call may wait for a turn, run on a worker or on a script thread, or be
 * decided by the committer; the front end sees none of that. When the client leaves, or the server stops, a call completes early, with
 * E_CANCELLED or E_UNAVAILABLE; writes that were submitted are decided all the same. Whatever the kind, `code` tells how it went, the
 * operation's `detail` says why not, its `charge_ru` what it cost, and `mark` where the range stands that it was about.
 *
 *   call_read      one item by its key
 *   call_commit    writes, decided together; edits and conditions among them
 *   call_feed      items in pages, in creation order
 *   call_rows      items in pages, in key order: of one partition by row key, or of a part of the hash space
 *   call_find      items in pages, by conditions and in an order, without a query text
 *   call_query     a page of a query of the SQL language
 *   call_changes   a page of what has changed in one range
 *   call_follow    the next changes of a whole container, or of a part of it; waits for them if there are none
 *   call_usage     how much a container holds
 *   call_transact  scripts and their writes over one partition, all or nothing
 *   call_within    a read, a write, rows or the commit of a transaction that its client keeps open
 *   call_attachments, call_attach   an item's attachments: read, write
 *   call_await_change  a change of a database, container, offer, script, user or permission
 *   call_work      the front end's own long work, on a worker
 *
 * What is asked is data: keys, bounds, conditions, edits and continuations are values and bytes, and what a front end must run itself (an
 * edit, a filter) is a kind that it has registered and a BSON argument (item/edit.h, query/filter.h). Functions that calls are given, such
 * as sinks, only take results.
 *
 * Calls about items share what comes before the work: faults on purpose (account/faults.h) hit them here, and what the client has already
 * seen (`seen`) is checked. Admission and charges are the item layer's: a range whose share is spent answers E_THROTTLED, with the time to
 * wait in the operation's `retry_after_ms`. Splits and merges are not seen, between two pages or within one, but by those who name a range
 * (call_commit's range_id, call_changes): E_RANGE_GONE. A front end never sees ranges, tiles or the store: what it may tell of them are
 * values (item/range_info.h). */
#pragma once

#include "account/account.h"
#include "account/faults.h"
#include "item/attach.h"
#include "item/follow.h"
#include "item/range_info.h"
#include "item/rows.h"
#include "item/transaction.h"
#include "net/wait.h"
#include "query/find.h"
#include "script/transact.h"

/* What calls are carried out with: one of a server. It outlives them. */
typedef struct call_core {
    account *account;
    script_pool *scripts;
    faults *faults; /* NULL: there are none, ever */
} call_core;

typedef struct call call;
typedef void (*call_step)(call *c);

struct call {
    /* who asks: call_init's */
    const call_core *core;
    net_client *client;
    op *op; /* class, time, memory; charge and sentence */
    call_step done;

    /* what it is about */
    container *container;  /* the caller's reference is held until done; NULL: none */
    uint64_t tenant;       /* who takes turns with others; 0: the container */
    const item_mark *seen; /* what the client has seen: E_SESSION_NOT_AVAILABLE if a range that is asked is behind it */
    size_t seen_n;

    /* how it went */
    err code;
    item_mark mark;
    bool marked;        /* `mark` is known */
    uint32_t fault;     /* the id of the fault that `code` comes from; 0: it is real */
    uint16_t substatus; /* that the fault asks for in place of the error's own; 0: that */

    /* the layer's own */
    call_step run, then;
    call_step clean; /* gives back what the call holds, before `done`; NULL: nothing */
    net_work work;
    net_task task;
    net_delay delay;
    script_job job;
    op_turn turn;
};

void call_init(call *c, const call_core *core, net_client *client, op *o, container *container, call_step done);

/* Who takes turns with others: what the work is about, or nothing that is there. */
uint64_t call_tenant_of_container(const container *c);
uint64_t call_tenant_of_database(const database *d);
uint64_t call_tenant_of_none(void);

/* Nobody waits for the answer any more: what was not begun need not be. Any thread. */
static inline bool call_client_left(const call *c) {
    return atomic_load_explicit(&c->client->left, memory_order_relaxed);
}

/* Runs `run` on a worker of a lane, and then completes. It sets `code` if it fails. Other codes: E_TENANT_BUSY, E_WORK_BUSY, E_CANCELLED,
 * E_UNAVAILABLE; then `run` was not called. */
void call_work(call *c, net_lane lane, call_step run);

/* For a front end that hands something over by itself: completes the call on its loop, from any thread. The last touch. */
void call_complete(call *c, err code);

/* ---- reading one item ---- */

typedef struct call_read {
    call call; /* first, as in all of them */
    item_key key;

    /* how it went */
    item_found found; /* OK: give it back by call_read_give */
} call_read;

static inline void call_read_init(call_read *r, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&r->call, core, client, o, container, done);
}
void call_read_submit(call_read *r); /* E_NOT_FOUND, E_THROTTLED, E_SESSION_NOT_AVAILABLE */
void call_read_give(call_read *r);

/* ---- writing ---- */

typedef struct call_commit call_commit;
struct call_commit {
    call call;
    item_op *ops;
    size_t n;
    bool atomic;           /* all or nothing, of one partition; otherwise each by itself */
    bool stops_at_failure; /* if not atomic: what follows a failure is not tried */
    int64_t range_id;      /* -1, or the range that the client thinks it talks to: E_RANGE_GONE if it is not there */
    call_step write;       /* NULL, or called on a worker before `done`, if the items are large: to write the answer there */

    item_commit commit; /* the layer's own */
};

void call_commit_init(call_commit *c, const call_core *core, net_client *client, op *o, container *container, call_step done);

/* When it is done, `code` is OK or tells why the request failed as a whole; each operation has a code of its own. Charged. */
void call_commit_submit(call_commit *c);
void call_commit_give(call_commit *c); /* what results point to. Harmless twice, or if nothing was submitted */

/* ---- reading many: sinks are called on a worker ---- */

typedef struct call_feed {
    call call;
    item_cursor *cursor; /* what is asked; moved along */
    size_t steps_max;    /* items looked at; if not set, as many as a page may */
    item_visit sink;     /* false ends the page before the item */
    void *context;
} call_feed;

void call_feed_init(call_feed *f, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_feed_submit(call_feed *f); /* E_THROTTLED, only if nothing was read */

typedef struct call_rows {
    call call;
    item_rows_ask ask;       /* all of the container, from the first row on, unless it is set */
    item_rows_cursor cursor; /* where the page before ended, or empty; then where this one did */
    item_visit sink;         /* false ends the page before the row */
    void *context;

    /* how it went */
    size_t n; /* rows that the sink took */
} call_rows;

void call_rows_init(call_rows *r, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_rows_submit(call_rows *r); /* E_BAD_CONTINUATION, E_THROTTLED */

typedef struct call_find {
    call call;
    query_find find; /* all items of the container, unless it is set */
    slice from;      /* `next` of the page before; empty: from the beginning */
    size_t rows_max, bytes_max;
    bool timed, notes_indexes; /* query_ask's */
    query_sink sink;
    void *context;
    call_step again; /* NULL: always on a worker. Otherwise a short find is tried on the loop, and if that takes too long this is called
                        there, to forget what the sink was given: a worker begins again */

    /* how it went */
    slice next; /* where the next page begins, in the operation's arena; empty: all was given */
    query_outcome outcome;

    query_find_page page; /* the layer's own */
} call_find;

void call_find_init(call_find *f, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_find_submit(call_find *f); /* errors as query_find_run */

/* ---- queries ---- */

typedef struct call_query call_query;
struct call_query {
    call call;
    bool is_short;             /* the text may be read on the loop, and the index be asked there for a few rows */
    bool is_first;             /* no page came before: items that the text names one by one are read just so */
    bool timed, notes_indexes; /* query_ask's */
    buf *out;                  /* rows as JSON, with commas between */

    /* Reads the text and what the page is about: fills in what follows. Once, on the loop or on a worker. */
    err (*prepare)(call_query *c);
    query query;
    item_cursor *cursor; /* moved along */
    query_position position;
    size_t rows_max;

    query_page page; /* how it went: page.outcome, page.position */

    /* the layer's own */
    account_script *functions[QUERY_UDFS_MAX];
    query_udfs *udfs;
};

void call_query_init(call_query *c, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_query_submit(call_query *c);

/* ---- changes ---- */

typedef struct call_changes {
    call call;
    item_changes what; /* from where on, and then where the page ended; until_us is the layer's */

    /* The sink, on a worker: of each item's latest version, or, if `version` is set, of every version and delete. */
    item_visit item;
    bool (*version)(void *context, const logged_version *v);
    void *context;
} call_changes;

void call_changes_init(call_changes *c, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_changes_submit(call_changes *c);

/* The next changes, over all ranges (item/follow.h). If there are none the call waits for up to `wait_ms`, without a thread and without
 * asking again and again; then it completes with n 0. A front end repeats it with the position that it ended at; nothing is lost between
 * two calls. */
typedef struct call_follow {
    call call;
    follow_start start; /* all of the container, from the beginning, in the latest mode, unless it is set */
    size_t items_max, bytes_max;
    unsigned wait_ms;
    follow_visit sink; /* on a worker; false: the page ends before this change */
    void *context;

    /* how it went */
    size_t n;       /* changes that the sink took */
    bool more;      /* there may be more at once */
    slice position; /* where it stands, in the operation's arena; after an error where it stood, or empty if there was none */

    /* the layer's own */
    follower *follower;
    container *newest;
    net_wait wait;
    int64_t until_ms;
} call_follow;

void call_follow_init(call_follow *f, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_follow_submit(call_follow *f); /* errors as follow_open and follow_read */

/* ---- how much there is ---- */

typedef struct call_usage {
    call call;

    /* how it went: of the newest version of the container */
    range_usage usage;   /* items is the number of items; those past their ttl count until they are removed */
    uint64_t partitions; /* logical ones */
    size_t ranges;
} call_usage;

void call_usage_init(call_usage *u, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_usage_submit(call_usage *u); /* costs nothing */

/* ---- scripts ---- */

typedef struct call_transact call_transact;
struct call_transact {
    call call;
    item_key key;                /* the partition; its id is not looked at */
    const script_tokens *tokens; /* NULL: lists and queries of the script have one page */

    /* One attempt, on a script thread; it may be made several times (script/transact.h). */
    err (*attempt)(call_transact *c, script_attempt *a);
};

void call_transact_init(call_transact *t, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_transact_submit(call_transact *c); /* E_RETRY_WITH, E_SCRIPTS_BUSY, E_THROTTLED, and what the attempt answers */

/* ---- attachments ---- */

typedef struct call_attachments {
    call call;
    item_key item;

    /* how it went */
    attach_list list; /* OK: give it back */
} call_attachments;

void call_attachments_init(call_attachments *a, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_attachments_submit(call_attachments *a);               /* E_OWNER_NOT_FOUND, E_THROTTLED */
void call_attachments_charge(call_attachments *a, size_t bytes); /* of attachments that are given to the client */
void call_attachments_give(call_attachments *a);

typedef struct call_attach {
    call call;
    attach_write write; /* from `kind` to `if_match`; then how it went */
} call_attach;

void call_attach_init(call_attach *a, const call_core *core, net_client *client, op *o, container *container, call_step done);
void call_attach_submit(call_attach *a);
void call_attach_give(call_attach *a); /* harmless if nothing was submitted */

/* ---- transactions that a client keeps open (item/transaction.h) ----
 *
 * A front end begins one on the loop of its client, keeps the pointer, and asks within it, one call after the other; a call while another
 * is under way is refused with E_BAD_REQUEST. Nothing waits between two calls. The layer gives up a transaction that is older than
 * LIMIT_TRANSACTION_SECONDS: its calls then complete with E_TRANSACTION_EXPIRED. It is ended by the front end in any case, on the same
 * loop, when no call is under way: after its commit, whatever became of that, or instead of one, which forgets the writes. */

typedef struct call_transaction call_transaction;

call_transaction *call_transaction_begin(const call_core *core, net_loop *loop);
void call_transaction_end(call_transaction *t);

typedef struct call_within {
    call call; /* its container is what the call is about. Of a commit: whose mark is wanted, or NULL */
    call_transaction *transaction;

    item_key key;     /* read: of the item; rows: of the partition */
    bool guarded;     /* read: what was found must still hold at the commit */
    item_found found; /* read: OK: give it back by call_within_give, before the transaction ends */

    item_op *op; /* write: prepared as for call_commit, and answered as item_transaction_write does */

    item_rows_ask rows; /* rows: of one partition; the moment is the layer's */
    item_rows_cursor cursor;
    item_visit sink; /* on a worker: false ends the page before the row */
    void *context;
} call_within;

void call_within_init(call_within *w, call_transaction *t, const call_core *core, net_client *client, op *o, container *container,
                      call_step done);
void call_within_read(call_within *w);  /* E_NOT_FOUND, E_THROTTLED, E_TRANSACTION_SPREAD */
void call_within_write(call_within *w); /* … and what a write of its kind is answered with */
void call_within_rows(call_within *w);  /* … and E_BAD_CONTINUATION */
void call_within_commit(
    call_within *w); /* E_RETRY_WITH, E_UNIQUE_KEY: others were first, nothing is written. Once; then it must be ended */
void call_within_give(call_within *w);

/* ---- resources ---- */

/* The call completes when the change that is submitted next (account_create_database, …) was decided: with its code. The change's account,
 * operation, `done` and `context` are set here. */
void call_await_change(call *c, account_change *change);
