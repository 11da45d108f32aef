/* The atomic option, g.with('atomic', true): what a script writes becomes visible when the script ends, all of it or nothing.
 *
 * Writes collect in a transaction, which begins with the first of them and is committed before the last response. Until then the script
 * reads items as they are now. After its first write it reads the partition that it writes as the transaction sees it, its own writes on
 * top, and other partitions as they are now. */
#include "api/gremlin/graph.h"

/* ---- the option ---- */

static err read_given(gremlin_eval *q, const gremlin_source *source) {
    for (size_t i = 0; source && i < source->given_n; i++) {
        const gremlin_pair *given = &source->given[i];
        if (!gremlin_is_text(given->key, "atomic")) {
            continue;
        }
        if (given->value.type != GREMLIN_BOOLEAN) {
            return op_fail(&q->op, E_BAD_QUERY, "with('atomic', …) takes true or false.");
        }
        q->atomic = q->atomic || given->value.b;
    }
    return OK;
}

err gremlin_atomic_read_option(gremlin_eval *q) {
    for (size_t i = 0; i < q->script.n; i++) {
        TRY(read_given(q, q->script.traversals[i]->source));
    }
    return OK;
}

/* ---- writing ---- */

/* Admits only keys of the partition that was written first. */
static err check_partition(gremlin_graph *g) {
    gremlin_eval *q = g->q;
    for (size_t i = 0; i < g->ops_n; i++) {
        slice place = pkey_encoded(&g->memory, &g->ops[i].key.partition);
        if (!q->atomic_place.p) {
            char *bytes = arena_alloc(q->frame->arena, place.n + 1);
            memcpy(bytes, place.n ? place.p : "", place.n);
            q->atomic_place = slice_of(bytes, place.n);
        }
        if (!slice_eq(place, q->atomic_place)) {
            return op_fail(&q->op, E_BAD_QUERY,
                           "With 'atomic' a script writes in one partition: this one writes in several. Nothing was written.");
        }
    }
    return OK;
}

/* On a worker. */
static err wrote(void *context, size_t i, err code) {
    gremlin_graph *g = context;
    if (gremlin_write_is_gone(&g->ops[i], code)) {
        g->q->op.detail_n = 0;
        return OK;
    }
    if (code == OK && g->written) {
        g->written(g, i);
    }
    return code;
}

static void all_written(call *c) {
    gremlin_graph *g = ((gremlin_eval *)c)->graph;
    if (c->code != OK) {
        gremlin_graph_fail(g, c->code);
        return;
    }
    g->q->op.admitted = true;
    g->after(g);
}

void gremlin_atomic_write(gremlin_graph *g) {
    gremlin_eval *q = g->q;
    err code = check_partition(g);
    if (code != OK) {
        gremlin_graph_fail(g, code);
        return;
    }
    if (!q->transaction) {
        q->transaction = call_transaction_begin(&q->front->core, q->frame->client.loop);
    }
    call_within *w = &q->call.within;
    call_within_init(w, q->transaction, &q->front->core, &q->frame->client, &q->op, q->container, all_written);
    w->op = g->ops;
    w->n = g->ops_n;
    w->wrote = wrote;
    w->context = g;
    call_within_write_all(w);
}

/* ---- reading ---- */

void gremlin_atomic_read(gremlin_graph *g, void (*read)(void *context, size_t i, const item_found *found), call_step done) {
    gremlin_eval *q = g->q;
    call_within *w = &q->call.within;
    call_within_init(w, q->transaction, &q->front->core, &q->frame->client, &q->op, q->container, done);
    w->keys = g->keys;
    w->n = g->keys_n;
    w->read = read;
    w->context = g;
    call_within_read_all(w);
}

/* A find in all partitions after the first write has two parts: the other partitions as they are now, then the transaction's as it sees it.
 * Its position begins with a letter. */
enum { FROM_BEFORE = 'b', FROM_OTHERS = 'o', FROM_OWN = 't' };

err gremlin_atomic_divide(gremlin_graph *g, const slice **place, slice *from) {
    gremlin_eval *q = g->q;
    g->part = 0;
    if (!q->atomic || *place || !q->container->key.n) {
        return OK;
    }
    g->part = from->n ? from->p[0] : q->transaction ? FROM_OTHERS : FROM_BEFORE;
    *from = from->n ? slice_skip(*from, 1) : *from;
    *place = g->part == FROM_OWN ? &q->atomic_place : NULL;
    return g->part != FROM_BEFORE || !q->transaction
               ? OK
               : op_fail(&q->op, E_BAD_QUERY,
                         "With 'atomic' a script cannot go on reading all partitions after a write: read fewer elements, or name the "
                         "partition. Nothing was written.");
}

bool gremlin_atomic_leaves_out(gremlin_graph *g, slice body) {
    document_parts parts;
    if (g->part != FROM_OTHERS) {
        return false;
    }
    const container *c = g->q->container;
    arena_mark mark = arena_marked(&g->memory);
    document_take_apart(c, body, &parts);
    bool own = slice_eq(document_place(&g->memory, c, &parts), g->q->atomic_place);
    arena_release(&g->memory, mark);
    return own;
}

slice gremlin_atomic_next(gremlin_graph *g, slice next) {
    bool turns = !next.n && g->part == FROM_OTHERS;
    if (!g->part || (!next.n && !turns)) {
        return next;
    }
    char *bytes = arena_alloc(&g->memory, 1 + next.n);
    bytes[0] = (char)(turns ? FROM_OWN : g->part);
    memcpy(bytes + 1, next.n ? next.p : "", next.n);
    return slice_of(bytes, 1 + next.n);
}

/* ---- the end ---- */

static void committed(call *c) {
    gremlin_eval *q = (gremlin_eval *)c;
    c->code == OK ? gremlin_reply_end(q) : gremlin_fail(q, c->code);
}

void gremlin_atomic_commit(gremlin_eval *q) {
    call_within_init(&q->call.within, q->transaction, &q->front->core, &q->frame->client, &q->op, NULL, committed);
    call_within_commit(&q->call.within);
}

void gremlin_atomic_end(gremlin_eval *q) {
    if (q->transaction) {
        call_transaction_end(q->transaction);
        q->transaction = NULL;
    }
}
