#include "call/call_int.h"

static void look_up(call *c) {
    call_receipt *r = (call_receipt *)c;
    c->code = item_receipt_read(call__items(c), c->op, c->container, r->key, &r->found);
}

void call_receipt_init(call_receipt *r, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&r->call, core, client, o, container, done);
    r->key = SLICE_EMPTY;
    r->found = (item_receipt_found){0};
}

void call_receipt_submit(call_receipt *r) {
    call_work(&r->call, NET_READS, look_up);
}
