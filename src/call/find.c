/* A page of a find runs like a page of a query (query.c): tried on the loop if it is short and the caller can start over, otherwise on a
 * worker. */
#include <assert.h>

#include "call/call_int.h"

enum {
    SHORT_BYTES = 4096, /* conditions, order and continuation together: longer ones take too long to parse on a loop */
};

/* The page is on the stack, since it is large, and front ends make calls of all kinds in one place. */
static err run_page(call_find *f, bool quick) {
    call *c = &f->call;
    const items *items = call__items(c);
    query_find_page p;
    query_find_init(&p, items, c->op, c->container, &f->find, f->from, f->sink, f->context);
    query_ask *ask = &p.page.ask;
    ask->rows_max = f->rows_max ? f->rows_max : ask->rows_max;
    ask->bytes_max = f->bytes_max ? f->bytes_max : ask->bytes_max;
    ask->until_us = account_page_deadline_us(c->core->account);
    ask->quick = quick;
    ask->timed = f->timed;
    ask->notes_indexes = f->notes_indexes;
    p.page.outcome.mark = c->mark;
    TRY(query_find_run(&p));
    f->next = p.next;
    f->outcome = p.page.outcome;
    c->mark = f->outcome.mark;
    return OK;
}

static void page(call *c) {
    c->code = run_page((call_find *)c, false);
}

/* ---- within a transaction ---- */

static void page_within(call *c) {
    call_find *f = (call_find *)c;
    c->code = call__transaction_moment(f->within, c, f->find.scope.partition, &f->find.moment);
    c->code = c->code == OK ? run_page(f, false) : c->code;
}

static void leave(call *c) {
    call__transaction_leave(((call_find *)c)->within);
}

static void go_within(call *c) {
    if (!call__transaction_enter(((call_find *)c)->within)) {
        call__end(c, call__transaction_busy(c->op));
        return;
    }
    c->clean = leave;
    call_work(c, NET_PAGES, page_within);
}

/* ---- on the loop ---- */

/* False: it gave up, and a worker starts the page over. */
static bool try_quickly(call_find *f) {
    call *c = &f->call;
    if (!f->again || f->find.where.n + f->find.order.n + f->from.n > SHORT_BYTES) {
        return false;
    }
    c->code = run_page(f, true);
    if (c->code != E_QUERY_TOO_LONG) {
        return true;
    }
    c->code = OK;
    c->op->admitted = false;
    c->op->detail_n = 0;
    f->again(c);
    return false;
}

static void go(call *c) {
    if (try_quickly((call_find *)c)) {
        call__finish(c);
    } else {
        call_work(c, NET_PAGES, page);
    }
}

void call_find_init(call_find *f, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&f->call, core, client, o, container, done);
    f->find = (query_find){.limit = UINT64_MAX, .scope = query_scope_all()};
    f->from = SLICE_EMPTY;
    f->rows_max = f->bytes_max = 0;
    f->timed = f->notes_indexes = false;
    f->sink = NULL;
    f->context = NULL;
    f->again = NULL;
    f->within = NULL;
    f->next = SLICE_EMPTY;
    f->outcome = (query_outcome){0};
}

void call_find_submit(call_find *f) {
    const query_scope *scope = &f->find.scope;
    const epk *min = scope->partition ? &scope->partition->epk : &scope->min, *end = scope->partition ? min : &scope->max;
    assert(!f->within || scope->partition);
    call__enter(&f->call, min, end, call__one_range(&f->call, min, end), false, f->within ? go_within : go);
}
