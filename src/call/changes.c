#include "call/call_int.h"

static void page(call *c) {
    call_changes *f = (call_changes *)c;
    const items *s = call__items(c);
    f->what.until_us = account_page_deadline_us(c->core->account);
    c->code = f->version ? item_versions_read(s, c->op, c->container, &f->what, f->version, f->context, &c->mark)
                         : item_changes_read(s, c->op, c->container, &f->what, f->item, f->context, &c->mark);
}

/* Up-to-date readers poll: their requests are answered on the loop, since little can have been written in between. */
static void go(call *c) {
    const item_changes *what = &((call_changes *)c)->what;
    if (what->from_now || what->after >= c->mark.lsn) {
        page(c);
        c->done(c);
    } else {
        call_work(c, NET_PAGES, page);
    }
}

void call_changes_init(call_changes *f, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&f->call, core, client, o, container, done);
    f->what = (item_changes){.min = epk_min(), .max = epk_max()};
    f->item = NULL;
    f->version = NULL;
    f->context = NULL;
}

void call_changes_submit(call_changes *f) {
    const item_changes *what = &f->what;
    const epk *end = what->partition ? &what->min : &what->max;
    call__enter(&f->call, &what->min, end, call__one_range(&f->call, &what->min, end), false, go);
}
