/* Reads of several items: a few are tried on the loop; many, and what is not in memory, are read by a worker. */
#include "call/call_int.h"

enum { ON_LOOP_MAX = 8 };

static err read_one(call_read_many *r, bool in_memory, item_found *found) {
    const item_key *key = &r->keys[r->next];
    call *c = &r->call;
    return in_memory ? item_read_in_memory(call__items(c), c->op, c->container, key, found)
                     : item_read(call__items(c), c->op, c->container, key, found);
}

static err read_rest(call_read_many *r, bool in_memory) {
    item_ahead ahead;
    for (size_t first = r->next; r->next < r->n; r->next++) {
        item_found found = {0};
        item_read_ahead(r->call.container, r->keys + first, r->n - first, r->next - first, &ahead);
        err code = in_memory ? OK : op_check(r->call.op);
        code = code == OK ? read_one(r, in_memory, &found) : code;
        if (code == E_NOT_FOUND) {
            continue;
        }
        if (code != OK) {
            return code;
        }
        r->call.mark = item_mark_of(found.range);
        r->sink(r->context, r->next, &found);
        item_give(&found);
    }
    return OK;
}

static void on_worker(call *c) {
    c->code = read_rest((call_read_many *)c, false);
}

static void go(call *c) {
    call_read_many *r = (call_read_many *)c;
    c->code = r->n > 1 && !c->op->admitted ? item_admit_many(call__items(c), c->op, c->container, r->keys, r->n) : OK;
    if (c->code == OK && r->n <= ON_LOOP_MAX) {
        c->code = read_rest(r, true);
    } else if (c->code == OK) {
        c->code = E_NOT_IN_MEMORY;
    }
    if (c->code == E_NOT_IN_MEMORY) {
        c->code = OK;
        call_work(c, r->n <= ON_LOOP_MAX ? NET_READS : NET_PAGES, on_worker);
        return;
    }
    call__finish(c);
}

void call_read_many_init(call_read_many *r, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&r->call, core, client, o, container, done);
    r->keys = NULL;
    r->n = r->next = 0;
    r->sink = NULL;
    r->context = NULL;
}

void call_read_many_submit(call_read_many *r) {
    const epk *at = &r->keys[0].epk;
    call__enter(&r->call, at, at, r->n == 1 ? call__one_range(&r->call, at, at) : -1, false, go);
}
