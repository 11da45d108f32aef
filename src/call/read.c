/* Point reads. What is in memory is answered on the loop; what is not is read by a worker, so that a loop never waits for the disk. */
#include "call/call_int.h"

static void set_mark(call *c, const item_found *found) {
    if (c->code == OK) {
        c->mark = item_mark_of(found->range);
    }
}

static void read_stored(call *c) {
    call_read *r = (call_read *)c;
    c->code = item_read(call__items(c), c->op, c->container, &r->key, &r->found);
    set_mark(c, &r->found);
}

/* If the server stops meanwhile, the call fails although the item was read. */
static void release_if_failed(call *c) {
    if (c->code != OK) {
        item_give(&((call_read *)c)->found);
    }
}

static void go(call *c) {
    call_read *r = (call_read *)c;
    c->code = item_read_in_memory(call__items(c), c->op, c->container, &r->key, &r->found);
    if (c->code == E_NOT_IN_MEMORY) {
        c->clean = release_if_failed;
        call_work(c, NET_READS, read_stored);
        return;
    }
    set_mark(c, &r->found);
    c->done(c);
}

void call_read_submit(call_read *r) {
    call *c = &r->call;
    call__enter(c, &r->key.epk, &r->key.epk, call__one_range(c, &r->key.epk, &r->key.epk), false, go);
}

void call_read_give(call_read *r) {
    item_give(&r->found);
}
