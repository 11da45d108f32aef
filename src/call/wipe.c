#include "call/call_int.h"

static void written(call *c) {
    call_wipe *w = (call_wipe *)c;
    item_wipe_charge(&w->wipe);
    c->code = w->wipe.base.code;
    if (c->code == OK) {
        c->mark = item_wipe_mark(&w->wipe);
    }
    item_wipe_give(&w->wipe);
    call__finish(c);
}

static void leave_committer(item_wipe *w) {
    call__return((call *)((char *)w - offsetof(call_wipe, wipe)), written);
}

static void submit(call *c) {
    call_wipe *w = (call_wipe *)c;
    w->wipe.items = call__items(c);
    w->wipe.op = c->op;
    w->wipe.container = c->container;
    w->wipe.done = leave_committer;
    err code = item_wipe_submit(&w->wipe);
    if (code != OK) {
        call__end(c, code);
    }
}

void call_wipe_init(call_wipe *w, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&w->call, core, client, o, container, done);
    w->wipe = (item_wipe){0};
}

void call_wipe_submit(call_wipe *w) {
    const epk *at = &w->wipe.key.epk;
    call__enter(&w->call, at, at, call__one_range(&w->call, at, at), true, submit);
}
