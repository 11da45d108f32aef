#include "query/udf.h"

#include <stdlib.h>

#include "base/memory.h"

/* Limits of a block. Calls beyond them are made one by one. */
enum { CALLS_MAX = 32768, CALLS_BYTES_MAX = 16 * 1024 * 1024 };

void query_calls_init(query_calls *c, query_udfs *udfs, const clock_source *clock, int64_t until_us, budget *budget) {
    *c = (query_calls){.udfs = udfs, .clock = clock, .until_us = until_us, .memory = arena_init_counted(budget)};
}

void query_calls_free(query_calls *c) {
    free(c->list);
    free(c->links);
    free(c->chains);
    arena_free(&c->memory);
}

void query_calls_begin(query_calls *c, const query *q, size_t items_max) {
    c->sites = q->ast->udf_calls;
    if (items_max * c->sites > c->chains_cap) {
        c->chains_cap = items_max * c->sites;
        c->chains = mem_resize(c->chains, c->chains_cap * sizeof *c->chains);
    }
    memset(c->chains, 0, items_max * c->sites * sizeof *c->chains);
    arena_reset(&c->memory);
    c->n = c->made = 0;
    query_calls_leave(c);
}

void query_calls_enter(query_calls *c, size_t item, slice body, bool ahead) {
    c->at = &c->chains[item * c->sites];
    for (size_t i = 0; i < c->sites; i++) {
        c->at[i].hint = c->at[i].first;
    }
    c->body = body;
    c->ahead = ahead;
    c->pass++;
    c->before = c->n;
}

void query_calls_leave(query_calls *c) {
    c->at = NULL;
    c->body = SLICE_EMPTY;
    c->ahead = false;
}

/* ---- making calls ---- */

static err make(query_calls *c, op *o, query_udf_call *calls, size_t n, arena *a, size_t *done_out) {
    *done_out = 0;
    if (c->code != OK) {
        return c->code;
    }
    int64_t begun = clock_monotonic_us(c->clock);
    c->code = c->udfs->call(c->udfs, o, calls, n, a, c->until_us, done_out);
    c->took_us += (uint64_t)(clock_monotonic_us(c->clock) - begun);
    return c->code;
}

bool query_calls_make(query_calls *c, op *o) {
    size_t done, n = c->n - c->made;
    if (n && make(c, o, c->list + c->made, n, &c->memory, &done) == OK) {
        c->made += done;
    }
    return c->made == c->n;
}

/* ---- recording calls ---- */

/* Values inside the item's body, and the item itself (held_item.item), live as long as the block; others are copied. */
static query_value keep(query_calls *c, const query_value *v) {
    bool lies_there = v->type >= TYPE_STRING && v->bytes.p >= c->body.p && v->bytes.p < c->body.p + c->body.n;
    return v->type < TYPE_STRING || lies_there ? *v : value_keep(&c->memory, v);
}

/* False: the block is full. */
static bool note(query_calls *c, const query_expr *e, const query_value *args) {
    if (c->n == CALLS_MAX || c->memory.held > CALLS_BYTES_MAX) {
        return false;
    }
    if (c->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 256;
        c->list = mem_resize(c->list, c->cap * sizeof *c->list);
        c->links = mem_resize(c->links, c->cap * sizeof *c->links);
    }
    query_value *kept = arena_alloc(&c->memory, (e->items_n + 1) * sizeof *kept);
    for (size_t i = 0; i < e->items_n; i++) {
        kept[i] = keep(c, &args[i]);
    }
    query_call_chain *chain = &c->at[e->site];
    c->list[c->n] = (query_udf_call){.function = (unsigned)e->slot, .n = (unsigned)e->items_n, .args = kept};
    c->links[c->n] = (query_call_link){.pass = c->pass};
    *(chain->last ? &c->links[chain->last - 1].next : &chain->first) = (uint32_t)++c->n;
    chain->last = (uint32_t)c->n;
    return true;
}

/* ---- finding recorded calls ---- */

static bool same_value(const query_value *a, const query_value *b) {
    if (a->type != b->type) {
        return false;
    }
    switch (a->type) {
    case TYPE_BOOL:
        return a->truth == b->truth;
    case TYPE_NUMBER:
        return memcmp(&a->number, &b->number, sizeof a->number) == 0 && a->is_integer == b->is_integer && a->integer == b->integer;
    case TYPE_STRING:
    case TYPE_ARRAY:
    case TYPE_OBJECT:
        return !a->item == !b->item && (!a->item || a->item->number == b->item->number) && a->extended == b->extended &&
               a->bytes.n == b->bytes.n && (a->bytes.p == b->bytes.p || slice_eq(a->bytes, b->bytes));
    default:
        return true;
    }
}

static bool same_args(const query_udf_call *call, const query_value *args) {
    for (size_t i = 0; i < call->n; i++) {
        if (!same_value(&call->args[i], &args[i])) {
            return false;
        }
    }
    return true;
}

/* Searches a chain from link `from` up to link `to`; links go up along a chain. Returns 0 if there is no such call. */
static uint32_t search(query_runner *r, uint32_t from, uint32_t to, const query_value *args) {
    const query_calls *c = r->calls;
    for (uint32_t i = from; i && i != to && i <= c->before; i = c->links[i - 1].next) {
        if (c->links[i - 1].pass != c->pass && same_args(&c->list[i - 1], args)) {
            return i;
        }
        query_pay(r, 1);
    }
    return 0;
}

static uint32_t find(query_runner *r, const query_expr *e, const query_value *args) {
    query_calls *c = r->calls;
    query_call_chain *chain = c->at ? &c->at[e->site] : NULL;
    if (!chain || !chain->first) {
        return 0;
    }
    uint32_t found = search(r, chain->hint, 0, args);
    found = found ? found : search(r, chain->first, chain->hint, args);
    if (found) {
        c->links[found - 1].pass = c->pass;
        chain->hint = c->links[found - 1].next;
    }
    return found;
}

/* ---- the value of a call ---- */

static query_value fail(query_runner *r, err code) {
    r->code = r->code == OK ? code : r->code;
    return value_undefined();
}

static query_value wait(query_runner *r) {
    r->waits++;
    return value_undefined();
}

static query_value take(query_runner *r, const query_udf_call *call) {
    query_calls *c = r->calls;
    if (call->threw.p) {
        return fail(r, c->ahead ? E_SCRIPT_FAILED : op_fail(r->op, E_SCRIPT_FAILED, "%.*s", (int)call->threw.n, call->threw.p));
    }
    c->taken += !c->ahead;
    return call->value;
}

/* A call by itself. */
static query_value call_now(query_runner *r, const query_expr *e, const query_value *args) {
    query_udf_call call = {.function = (unsigned)e->slot, .n = (unsigned)e->items_n, .args = args};
    size_t done;
    err code = make(r->calls, r->op, &call, 1, r->context.arena, &done);
    return code != OK ? fail(r, code) : done == 0 ? fail(r, E_QUERY_TOO_LONG) : take(r, &call);
}

query_value query_calls_value(query_runner *r, const query_expr *e, const query_value *args) {
    query_calls *c = r->calls;
    uint32_t found = find(r, e, args);
    if (found && found <= c->made) {
        return take(r, &c->list[found - 1]);
    }
    if (!c->ahead) {
        return call_now(r, e, args);
    }
    return found || note(c, e, args) ? wait(r) : fail(r, E_QUERY_TOO_LONG);
}

err query_udf_unknown(op *o, const query *q, unsigned function) {
    slice name = q->udfs[function];
    query_span where = query_location(q->ast->text, query_name_span(q->ast, name));
    return query_fail(o, where, "SC2006", "'%.*s' is not a recognized user-defined function name.", slice_shown(name), name.p);
}
