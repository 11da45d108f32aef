#include "call/call_int.h"

enum { STEPS_MAX = 50000 };

static void page(call *c) {
    call_rows *r = (call_rows *)c;
    size_t steps = r->steps_max ? r->steps_max : STEPS_MAX;
    if (r->cursor->n) {
        c->code = item_feed(call__items(c), c->op, c->container, r->cursor, steps, r->sink, r->context, &c->mark);
    }
}

static void go(call *c) {
    call_work(c, NET_PAGES, page);
}

void call_rows_submit(call_rows *r) {
    epk min, end;
    call__bounds(r->cursor, &min, &end);
    call__enter(&r->call, &min, &end, call__one_range(&r->call, &min, &end), false, go);
}
