#include "call/call_int.h"

enum { STEPS_MAX = 50000 };

static void page(call *c) {
    call_feed *f = (call_feed *)c;
    if (f->cursor->n) {
        c->code = item_feed(call__items(c), c->op, c->container, f->cursor, f->steps_max, f->sink, f->context, &c->mark);
    }
}

static void go(call *c) {
    call_work(c, NET_PAGES, page);
}

void call_feed_init(call_feed *f, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&f->call, core, client, o, container, done);
    f->cursor = NULL;
    f->steps_max = STEPS_MAX;
    f->sink = NULL;
    f->context = NULL;
}

void call_feed_submit(call_feed *f) {
    epk min, end;
    call__bounds(f->cursor, &min, &end);
    call__enter(&f->call, &min, &end, call__one_range(&f->call, &min, &end), false, go);
}
