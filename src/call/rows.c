#include "call/call_int.h"

enum { STEPS_MAX = 200000 }; /* entries per page: about a second at worst */

static void page(call *c) {
    call_rows *r = (call_rows *)c;
    item_rows_page page;
    c->code = item_rows_read(call__items(c), c->op, c->container, &r->ask, &r->cursor, r->sink, r->context, &page);
    if (c->code == OK) {
        r->n = page.rows;
        c->mark = page.mark;
    }
}

static void go(call *c) {
    call_work(c, NET_PAGES, page);
}

void call_rows_init(call_rows *r, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&r->call, core, client, o, container, done);
    r->ask = item_rows_ask_space(epk_min(), epk_max());
    r->cursor = (item_rows_cursor){0};
    r->sink = NULL;
    r->context = NULL;
    r->n = 0;
}

void call_rows_submit(call_rows *r) {
    const item_rows_ask *ask = &r->ask;
    const epk *min = ask->partition ? &ask->partition->epk : &ask->min, *end = ask->partition ? min : &ask->max;
    r->ask.steps_max = ask->steps_max && ask->steps_max < STEPS_MAX ? ask->steps_max : STEPS_MAX;
    call__enter(&r->call, min, end, call__one_range(&r->call, min, end), false, go);
}
