/* Reads of several items: what the item cache has is read on the loop, and a few others that are in memory; the rest by a worker. */
#include "call/call_int.h"

/* On the loop, in one request. */
enum {
    CACHED_MAX = 128, /* some 0.1 ms */
    FOUND_MAX = 8,    /* that the item cache did not have */
    BYTES_MAX = 256 * 1024,
};

static err read_one(call_read_many *r, bool in_memory, item_found *found) {
    const item_key *key = &r->keys[r->next];
    call *c = &r->call;
    return in_memory ? item_read_in_memory(call__items(c), c->op, c->container, key, found)
                     : item_read(call__items(c), c->op, c->container, key, found);
}

/* What a read on the loop may still do. */
typedef struct allowance {
    size_t cached, others, bytes;
} allowance;

/* False: the next item is for a worker. `found` may have nothing. */
static bool spend(allowance *left, const item_found *found) {
    size_t *reads = found->cached ? &left->cached : &left->others, bytes = found->body.n;
    *reads -= 1;
    left->bytes -= bytes < left->bytes ? bytes : left->bytes;
    return left->cached && left->others && left->bytes;
}

static void take(call_read_many *r, item_found *found) {
    r->call.mark = item_mark_of(found->range);
    r->sink(r->context, r->next, found);
    item_give(found);
}

static err read_rest(call_read_many *r, bool in_memory) {
    item_ahead ahead;
    allowance left = {CACHED_MAX, FOUND_MAX, BYTES_MAX};
    bool goes_on = true;
    for (size_t first = r->next; r->next < r->n; r->next++) {
        item_found found = {0};
        if (!goes_on) {
            return E_NOT_IN_MEMORY;
        }
        item_read_ahead(r->call.container, r->keys + first, r->n - first, r->next - first, &ahead);
        err code = in_memory ? OK : op_check(r->call.op);
        code = code == OK ? read_one(r, in_memory, &found) : code;
        if (code != OK && code != E_NOT_FOUND) {
            return code;
        }
        goes_on = !in_memory || spend(&left, &found);
        if (code == OK) {
            take(r, &found);
        }
    }
    return OK;
}

static void on_worker(call *c) {
    c->code = read_rest((call_read_many *)c, false);
}

static void go(call *c) {
    call_read_many *r = (call_read_many *)c;
    c->code = r->n > 1 && !c->op->admitted ? item_admit_many(call__items(c), c->op, c->container, r->keys, r->n) : OK;
    c->code = c->code == OK ? read_rest(r, true) : c->code;
    if (c->code == E_NOT_IN_MEMORY) {
        c->code = OK;
        call_work(c, r->n - r->next <= FOUND_MAX ? NET_READS : NET_PAGES, on_worker);
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
