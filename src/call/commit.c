#include "call/call_int.h"

/* The charge of a larger body takes tens of milliseconds to compute: a worker does it, so that the loop serves others meanwhile. */
enum { LARGE_BYTES = 64 * 1024 };

void call_commit_init(call_commit *c, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&c->call, core, client, o, container, done);
    c->ops = NULL;
    c->n = 0;
    c->atomic = c->stops_at_failure = false;
    c->range_id = -1;
    c->write = NULL;
    item_commit_init(&c->commit);
}

void call_commit_give(call_commit *c) {
    item_commit_give(&c->commit);
}

/* ---- after the commit ---- */

static bool is_large(const call_commit *w) {
    size_t bytes = 0;
    for (size_t i = 0; i < w->n; i++) {
        bytes += w->ops[i].result.n + w->ops[i].before_body.n;
    }
    return bytes > LARGE_BYTES;
}

static void price(call *c) {
    call_commit *w = (call_commit *)c;
    item_commit_charge(&w->commit);
    c->code = item_commit_failed(&w->commit) ? w->commit.base.code : OK;
    if (w->commit.tiles) {
        c->mark = item_mark_of(w->ops[0].range ? w->ops[0].range : container_route(w->commit.tiles, &w->ops[0].key.epk));
    }
}

static void price_and_end(call *c) {
    price(c);
    c->done(c);
}

static void on_worker(net_work *work) {
    call *c = (call *)((char *)work - offsetof(call, work));
    const call_commit *w = (const call_commit *)c;
    price(c);
    if (w->write && c->code == OK) {
        w->write(c);
    }
}

/* A committed write is charged and answered even if the server stops or no worker is available. */
static void back_from_worker(net_work *work) {
    call *c = (call *)((char *)work - offsetof(call, work));
    net_work_code(work) == OK ? c->done(c) : price_and_end(c);
}

static void start_work(call *c, net_lane lane, void (*run)(net_work *), void (*done)(net_work *)) {
    net_work_start(c->client, c->op, lane, call_tenant_of_container(c->container), &c->work, run, done);
}

static void prepare_on_worker(net_work *work) {
    call *c = (call *)((char *)work - offsetof(call, work));
    item_commit_prepare(&((call_commit *)c)->commit);
}

static void submit(call *c) {
    err code = item_commit_submit(&((call_commit *)c)->commit);
    if (code != OK) {
        call__end(c, code);
    }
}

static void list_on_worker(net_work *work) {
    call *c = (call *)((char *)work - offsetof(call, work));
    item_commit_list(&((call_commit *)c)->commit);
}

/* Submits even if the worker failed: the committer then lists the terms itself. */
static void submit_listed(net_work *work) {
    submit((call *)((char *)work - offsetof(call, work)));
}

/* If the server stops or no worker is available, the committer does the rest itself. */
static void submit_again(net_work *work) {
    call *c = (call *)((char *)work - offsetof(call, work));
    ((call_commit *)c)->commit.prepares = net_work_code(work) == OK;
    submit(c);
}

static void committed(call *c) {
    call_commit *w = (call_commit *)c;
    if (item_commit_is_undecided(&w->commit)) {
        start_work(c, item_commit_missed(&w->commit) ? NET_READS : NET_ANSWERS, prepare_on_worker, submit_again);
    } else if (is_large(w)) {
        start_work(c, NET_ANSWERS, on_worker, back_from_worker);
    } else {
        price_and_end(c);
    }
}

static void leave_committer(item_commit *done);

static call_commit *of_item_commit(const item_commit *c) {
    return (call_commit *)((char *)(uintptr_t)c - offsetof(call_commit, commit));
}

/* Whether the commit comes here, for the same loop. One with several operations may be continued in another group instead. */
static bool will_post(const commit *next, const item_commit *before) {
    const item_commit *c = (const item_commit *)next;
    return next->done == before->base.done && c->n == 1 && c->done == leave_committer &&
           of_item_commit(c)->call.client->loop == of_item_commit(before)->call.client->loop;
}

/* The results of a group come back one by one, at once. If each woke its loop, a loop on the committer's processor would interrupt it each
 * time, to answer one client. So a result does not wake the loop if another one follows. */
static bool another_follows(const item_commit *done) {
    enum { LOOK = 16 }; /* the next one is near, unless there are many loops */
    const commit *next = done->base.next;
    for (unsigned i = 0; next && i < LOOK; i++, next = next->next) {
        if (will_post(next, done)) {
            return true;
        }
    }
    return false;
}

static void leave_committer(item_commit *done) {
    bool more = another_follows(done);
    done->base.next = NULL; /* if it is submitted again, it may be refused without reaching the committer */
    call__return_with(&of_item_commit(done)->call, committed, more ? net_post_before : net_post);
}

/* ---- submitting ---- */

static void go(call *c) {
    call_commit *w = (call_commit *)c;
    w->commit = (item_commit){
        .items = call__items(c),
        .op = c->op,
        .container = c->container,
        .ops = w->ops,
        .n = w->n,
        .atomic = w->atomic,
        .stops_at_failure = w->stops_at_failure,
        .range_id = w->range_id,
        .prepares = true,
        .done = leave_committer,
    };
    if (item_commit_has_long_lists(&w->commit)) {
        net_work_start(c->client, c->op, NET_BODIES, call_tenant_of_container(c->container), &c->work, list_on_worker, submit_listed);
    } else {
        submit(c);
    }
}

/* The range for faults of one range: the named range, or the range of the common key. */
static int64_t fault_range(const call_commit *w) {
    bool one = w->atomic || w->n == 1;
    return w->range_id >= 0 ? w->range_id : one ? (int64_t)range_mark_at(w->call.container, &w->ops[0].key.epk).range_id : -1;
}

void call_commit_submit(call_commit *w) {
    const epk *at = &w->ops[0].key.epk;
    call__enter(&w->call, at, at, fault_range(w), true, go);
}
