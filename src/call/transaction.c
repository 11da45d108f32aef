/* Transactions that a client keeps open: begun on a loop, used call by call from any loop, and expired when they are too old. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "call/call_int.h"

enum {
    LARGE_BYTES = 64 * 1024,                  /* computing the charge of more takes tens of milliseconds */
    MEMORY_MAX = 2 * LIMIT_TRANSACTION_BYTES, /* items and their bookkeeping */
    MEMORY_OWN = 64 * 1024,                   /* not counted against the memory that all requests share; enough for small transactions */
};

struct call_transaction {
    pthread_mutex_t lock;   /* protects the next three members; `core` itself belongs to whoever set `busy` */
    item_transaction *core; /* NULL: ended */
    bool busy;              /* a call is in progress */
    bool overdue;
    budget budget;   /* counted against the memory of all requests, while the transaction is open */
    net_delay delay; /* expiry timer; the struct is freed no earlier than when it fires */
};

/* ---- life ---- */

/* False: another call is in progress. */
static bool enter(call_transaction *t) {
    pthread_mutex_lock(&t->lock);
    bool entered = !t->busy;
    t->busy = true;
    pthread_mutex_unlock(&t->lock);
    return entered;
}

/* With the lock held, while no call is in progress. */
static void expire_if_overdue(call_transaction *t) {
    if (t->overdue && t->core) {
        item_transaction_expire(t->core);
        budget_end(&t->budget);
    }
}

static void leave(call_transaction *t) {
    pthread_mutex_lock(&t->lock);
    t->busy = false;
    expire_if_overdue(t);
    pthread_mutex_unlock(&t->lock);
}

static void release(call_transaction *t) {
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* On the loop that the transaction was begun on. The struct is freed here, or at the end of the transaction if that is later. */
static void is_due(net_delay *delay) {
    call_transaction *t = (call_transaction *)((char *)delay - offsetof(call_transaction, delay));
    pthread_mutex_lock(&t->lock);
    t->overdue = true;
    bool ended = !t->core;
    if (!t->busy) {
        expire_if_overdue(t);
    }
    pthread_mutex_unlock(&t->lock);
    if (ended) {
        release(t);
    }
}

call_transaction *call_transaction_begin(const call_core *core, net_loop *loop) {
    call_transaction *t = mem_zero(sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    t->budget = budget_init_own(net_loop_memory(loop), MEMORY_MAX, MEMORY_OWN);
    item_transaction_ask ask = {
        .items = account_items(core->account), .budget = &t->budget, .lifetime_us = LIMIT_TRANSACTION_SECONDS * INT64_C(1000000)};
    t->core = item_transaction_begin(&ask);
    net_delay_start(loop, &t->delay, LIMIT_TRANSACTION_SECONDS * 1000, is_due);
    return t;
}

void call_transaction_end(call_transaction *t) {
    pthread_mutex_lock(&t->lock);
    assert(!t->busy);
    item_transaction_end(t->core);
    budget_end(&t->budget);
    t->core = NULL;
    bool overdue = t->overdue;
    pthread_mutex_unlock(&t->lock);
    if (overdue) {
        release(t);
    }
}

/* ---- one call ---- */

void call_within_init(call_within *w, call_transaction *t, const call_core *core, net_client *client, op *o, container *container,
                      call_step done) {
    call_init(&w->call, core, client, o, container, done);
    w->transaction = t;
    w->guarded = false;
    w->found = (item_found){0};
    w->op = NULL;
    w->keys = NULL;
    w->n = 0;
    w->read = NULL;
    w->wrote = NULL;
    w->rows = (item_rows_ask){0};
    w->cursor = (item_rows_cursor){0};
    w->sink = NULL;
    w->context = NULL;
}

void call_within_give(call_within *w) {
    item_give(&w->found);
}

static void end(call *c) {
    leave(((call_within *)c)->transaction);
    c->done(c);
}

/* Completes the call, also if no worker was available. */
static void back(net_work *work) {
    call *c = (call *)((char *)work - offsetof(call, work));
    c->code = net_work_code(work) != OK ? net_work_code(work) : c->code;
    end(c);
}

static void run_on_worker(net_work *work) {
    call *c = (call *)((char *)work - offsetof(call, work));
    c->run(c);
}

err call__transaction_busy(op *o) {
    return op_fail(o, E_BAD_REQUEST, "The transaction is busy with another call: send one after the other.");
}

static void refuse_busy(call *c) {
    c->code = call__transaction_busy(c->op);
    c->done(c);
}

/* Runs `run` on the loop, or on a worker if it may take long. */
static void take_turn(call *c, bool is_long, net_lane lane, call_step run) {
    call_transaction *t = ((call_within *)c)->transaction;
    if (!enter(t)) {
        refuse_busy(c);
        return;
    }
    budget_renew(&t->budget); /* a write that exceeded the budget does not end the transaction */
    c->run = run;
    if (is_long) {
        net_work_start(c->client, c->op, lane, call_tenant_of_container(c->container), &c->work, run_on_worker, back);
    } else {
        run(c);
        end(c);
    }
}

static void submit(call *c, const epk *at, bool writes, call_step go) {
    call__enter(c, at, at, call__one_range(c, at, at), writes, go);
}

/* ---- reading and writing ---- */

static void read_one(call *c) {
    call_within *w = (call_within *)c;
    c->code = item_transaction_read(w->transaction->core, c->op, c->container, &w->key, w->guarded, &w->found);
}

static void go_read(call *c) {
    take_turn(c, false, NET_SHORT, read_one);
}

void call_within_read(call_within *w) {
    submit(&w->call, &w->key.epk, false, go_read);
}

static void write_one(call *c) {
    call_within *w = (call_within *)c;
    c->code = item_transaction_write(w->transaction->core, c->op, c->container, w->op);
}

static void go_write(call *c) {
    const item_op *op = ((const call_within *)c)->op;
    bool is_long = op->kind == ITEM_EDIT || op->conditions_n > 0 || op->body.n > LARGE_BYTES;
    take_turn(c, is_long, NET_SHORT, write_one);
}

void call_within_write(call_within *w) {
    submit(&w->call, &w->op->key.epk, true, go_write);
}

/* ---- several reads and writes ---- */

static void read_all(call *c) {
    call_within *w = (call_within *)c;
    for (size_t i = 0; i < w->n && c->code == OK; i++) {
        item_found found;
        c->code = op_check(c->op);
        err code = c->code != OK ? c->code : item_transaction_read(w->transaction->core, c->op, c->container, &w->keys[i], false, &found);
        if (code == OK) {
            w->read(w->context, i, &found);
            item_give(&found);
        } else if (code != E_NOT_FOUND) {
            c->code = code;
        }
    }
}

static void go_read_all(call *c) {
    take_turn(c, true, NET_PAGES, read_all);
}

void call_within_read_all(call_within *w) {
    submit(&w->call, &w->keys[0].epk, false, go_read_all);
}

static void write_all(call *c) {
    call_within *w = (call_within *)c;
    for (size_t i = 0; i < w->n && c->code == OK; i++) {
        c->code = op_check(c->op);
        if (c->code == OK) {
            c->code = w->wrote(w->context, i, item_transaction_write(w->transaction->core, c->op, c->container, &w->op[i]));
        }
    }
}

static void go_write_all(call *c) {
    take_turn(c, true, NET_PAGES, write_all);
}

void call_within_write_all(call_within *w) {
    submit(&w->call, &w->op->key.epk, true, go_write_all);
}

/* ---- rows and finds of one partition ---- */

bool call__transaction_enter(call_transaction *t) {
    bool entered = enter(t);
    if (entered) {
        budget_renew(&t->budget);
    }
    return entered;
}

void call__transaction_leave(call_transaction *t) {
    leave(t);
}

err call__transaction_moment(call_transaction *t, call *c, const item_key *partition, const item_moment **moment_out) {
    return item_transaction_moment(t->core, c->op, c->container, partition, moment_out);
}

static void read_rows(call *c) {
    call_within *w = (call_within *)c;
    item_rows_page page;
    c->code = item_transaction_moment(w->transaction->core, c->op, c->container, &w->key, &w->rows.moment);
    if (c->code == OK) {
        c->code = item_rows_read(call__items(c), c->op, c->container, &w->rows, &w->cursor, w->sink, w->context, &page);
    }
}

static void go_rows(call *c) {
    take_turn(c, true, NET_PAGES, read_rows);
}

void call_within_rows(call_within *w) {
    submit(&w->call, &w->key.epk, false, go_rows);
}

/* ---- the commit ---- */

static void fetch_on_worker(net_work *work) {
    call *c = (call *)((char *)work - offsetof(call, work));
    item_transaction_fetch(((call_within *)c)->transaction->core);
}

/* Also if no worker was available: the committer then waits for the disk. */
static void commit_again(net_work *work) {
    call *c = (call *)((char *)work - offsetof(call, work));
    item_transaction_commit_again(((call_within *)c)->transaction->core, net_work_code(work) == OK);
}

static void committed(call *c) {
    call_within *w = (call_within *)c;
    const container *missed = item_transaction_missed(w->transaction->core);
    if (missed) {
        net_work_start(c->client, c->op, NET_READS, call_tenant_of_container(missed), &c->work, fetch_on_worker, commit_again);
        return;
    }
    c->code = item_transaction_outcome(w->transaction->core, c->op);
    c->marked = c->container && item_transaction_mark(w->transaction->core, c->container, &c->mark);
    end(c);
}

static void leave_committer(void *context) {
    call__return(context, committed);
}

static void commit_now(call *c) {
    c->code = item_transaction_commit(((call_within *)c)->transaction->core, c->op, leave_committer, c);
    if (c->code != OK) { /* on OK the committer owns the call */
        end(c);
    }
}

static void list_on_worker(net_work *work) {
    call *c = (call *)((char *)work - offsetof(call, work));
    item_transaction_list(((call_within *)c)->transaction->core);
}

/* Also if no worker was available: the committer then lists the terms itself. */
static void commit_listed(net_work *work) {
    commit_now((call *)((char *)work - offsetof(call, work)));
}

void call_within_commit(call_within *w) {
    call *c = &w->call;
    if (!enter(w->transaction)) {
        refuse_busy(c);
        return;
    }
    const container *large = item_transaction_large(w->transaction->core);
    if (large) {
        net_work_start(c->client, c->op, NET_BODIES, call_tenant_of_container(large), &c->work, list_on_worker, commit_listed);
    } else {
        commit_now(c);
    }
}
