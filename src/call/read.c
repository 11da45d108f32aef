#include "call/call_int.h"

static void go(call *c) {
    call_read *r = (call_read *)c;
    c->code = item_read(call__items(c), c->op, c->container, &r->key, &r->found);
    if (c->code == OK) {
        c->mark = item_mark_of(r->found.range);
    }
    c->done(c);
}

void call_read_submit(call_read *r) {
    call *c = &r->call;
    call__enter(c, &r->key.epk, &r->key.epk, call__one_range(c, &r->key.epk, &r->key.epk), false, go);
}

void call_read_give(call_read *r) {
    item_give(&r->found);
}
