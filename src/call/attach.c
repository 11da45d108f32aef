#include "call/call_int.h"

/* ---- reading ---- */

static void open_list(call *c) {
    call_attachments *a = (call_attachments *)c;
    call__end(c, attach_open(call__items(c), c->op, c->container, &a->item, &a->list));
}

void call_attachments_init(call_attachments *a, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&a->call, core, client, o, container, done);
    a->item = (item_key){0};
}

void call_attachments_submit(call_attachments *a) {
    const epk *at = &a->item.epk;
    call__enter(&a->call, at, at, call__one_range(&a->call, at, at), false, open_list);
}

void call_attachments_charge(call_attachments *a, size_t bytes) {
    attach_charge(call__items(&a->call), a->call.op, &a->list, bytes);
}

void call_attachments_give(call_attachments *a) {
    attach_close(&a->list);
}

/* ---- writing ---- */

static void written(call *c) {
    call_attach *a = (call_attach *)c;
    attach_write_charge(&a->write);
    c->code = a->write.base.code;
    if (c->code == OK) {
        c->mark = attach_write_mark(&a->write);
    }
    call__finish(c);
}

static void leave_committer(attach_write *w) {
    call__return((call *)((char *)w - offsetof(call_attach, write)), written);
}

static void submit(call *c) {
    call_attach *a = (call_attach *)c;
    a->write.items = call__items(c);
    a->write.op = c->op;
    a->write.container = c->container;
    a->write.done = leave_committer;
    err code = attach_submit(&a->write);
    if (code != OK) {
        call__end(c, code);
    }
}

void call_attach_init(call_attach *a, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&a->call, core, client, o, container, done);
    a->write = (attach_write){0};
}

void call_attach_submit(call_attach *a) {
    const epk *at = &a->write.item.epk;
    call__enter(&a->call, at, at, call__one_range(&a->call, at, at), true, submit);
}

void call_attach_give(call_attach *a) {
    attach_write_give(&a->write);
}
