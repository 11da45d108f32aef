/* stage_gather.c — gathers all documents of a stage, by partition and in order: for $setWindowFields, $fill and $densify. */
#include <stdlib.h>

#include "mql/stages.h"

static err make_room(mql__gathering *g) {
    if (g->n < g->room) {
        return OK;
    }
    size_t room = g->room ? 2 * g->room : 64;
    TRY(mql__arena_room(&g->memory, room * sizeof *g->all));
    mql__gathered *more = arena_array(&g->memory, mql__gathered, room);
    if (g->n) {
        memcpy(more, g->all, g->n * sizeof *more);
    }
    g->all = more;
    g->room = room;
    return OK;
}

static err partition_key(mql__runner *at, mql__gathering *g, const mql_expression *partition, slice *key_out) {
    mql_run *r = mql__run_of(at);
    mql_value v;
    buf key = buf_init_counted(BUF_NO_LIMIT, at->flow->budget);
    TRY(mql_evaluate(r, partition, &v));
    if (v.type == BSON_TYPE_ARRAY) {
        return mql_fail(r->op, 14, "An expression used to partition cannot evaluate to value of type array");
    }
    err e = mql__value_key(r, v, &key);
    if (e == OK) {
        e = mql__arena_room(&g->memory, key.n);
    }
    *key_out = e == OK ? arena_copy(&g->memory, buf_view(&key)) : SLICE_EMPTY;
    buf_free(&key);
    return e;
}

static err wrapped_value(mql_run *r, const mql_expression *value, slice *document_out) {
    mql_value v;
    TRY(mql_evaluate(r, value, &v));
    buf out = mql__document_buf(r);
    mql_builder b = mql_build(&out);
    mql_add(&b, SLICE_LIT("v"), v);
    return mql__document_made(r, &b, document_out);
}

static err take(mql__runner *at, mql__gathering *g, const mql__gather_order *order, slice document) {
    mql_run *r = mql__run_of(at);
    slice key = SLICE_EMPTY, partition = SLICE_EMPTY;
    r->root = mql_document(document);
    TRY(make_room(g));
    if (order->partition) {
        TRY(partition_key(at, g, order->partition, &partition));
    }
    if (order->sort) {
        slice sorted = document;
        TRY(order->value ? wrapped_value(r, order->value, &sorted) : OK);
        TRY(mql_sort_key(r, order->sort, sorted, &key));
    }
    TRY(mql__arena_room(&g->memory, document.n + key.n));
    g->all[g->n] = (mql__gathered){arena_copy(&g->memory, document), partition, arena_copy(&g->memory, key), g->n};
    g->n++;
    return mql__arena_error(&g->memory);
}

typedef struct comparison {
    const mql__gather_order *order;
    const mql_collation *collation;
} comparison;

static int compare_gathered(const void *a, const void *b, void *context) {
    const mql__gathered *x = a, *y = b;
    const comparison *c = context;
    int by = slice_cmp(x->partition, y->partition);
    if (by == 0 && c->order->sort) {
        by = mql_sort_compare(c->order->sort, c->collation, x->key, y->key);
    }
    return by ? by : (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

static err sort(mql__runner *at, mql__gathering *g, const mql__gather_order *order) {
    comparison c = {order, mql__run_of(at)->collation};
    size_t bytes = g->n * sizeof *g->all;
    TRY(mql_pay(mql__run_of(at), 64 * g->n));
    if (!budget_take(at->flow->budget, bytes)) { /* what qsort_r takes */
        return budget_error(at->flow->budget);
    }
    if (g->n) {
        qsort_r(g->all, g->n, sizeof *g->all, compare_gathered, &c);
    }
    budget_give(at->flow->budget, bytes);
    return OK;
}

err mql__gather(mql__runner *at, mql__gathering *g, const mql__gather_order *order, mql__status *status_out) {
    arena *a = mql__run_of(at)->arena;
    if (!g->started) {
        g->started = true;
        g->memory = arena_init_counted(at->flow->budget);
    }
    while (!g->ended) {
        arena_mark mark = arena_marked(a);
        slice document;
        TRY(mql__pull(at, status_out, &document));
        if (*status_out == MQL__BLOCKED) {
            return OK;
        }
        g->ended = *status_out == MQL__END;
        TRY(g->ended ? sort(at, g, order) : take(at, g, order, document));
        arena_release(a, mark);
    }
    *status_out = MQL__END;
    return OK;
}

void mql__gather_free(mql__gathering *g) {
    arena_free(&g->memory);
}
