#include "api/gremlin/graph.h"

#include <stdlib.h>

enum { QUICK_VERTICES = 4 }; /* whose edges are tried on the loop: those of more are mostly too many there */

gremlin_graph *gremlin_graph_new(gremlin_eval *q) {
    gremlin_graph *g = arena_new(q->frame->arena, gremlin_graph);
    budget *b = q->op.budget;
    *g = (gremlin_graph){.q = q,
                         .memory = arena_init_counted(b),
                         .found = buf_init_counted(BUF_NO_LIMIT, b),
                         .dropping = buf_init_counted(BUF_NO_LIMIT, b),
                         .position = buf_init_counted(BUF_NO_LIMIT, b)};
    return g;
}

void gremlin_graph_free(gremlin_graph *g) {
    buf_free(&g->found);
    buf_free(&g->dropping);
    buf_free(&g->position);
    arena_free(&g->memory);
}

/* ---- the end of an ask ---- */

static void leave(gremlin_graph *g) {
    g->q->op.arena = g->outer;
    buf_clear(&g->found);
    buf_clear(&g->dropping);
    arena_reset(&g->memory);
}

void gremlin_graph_done(gremlin_graph *g, slice position) {
    gremlin_eval *q = g->q;
    const gremlin_answered *found = (const gremlin_answered *)(const void *)g->found.p;
    if (!buf_ok(&g->found)) {
        gremlin_graph_fail(g, E_MEMORY);
        return;
    }
    for (size_t i = 0; i < g->found.n / sizeof *found; i++) {
        gremlin_answer_element(q->run, found[i].index, found[i].element);
    }
    gremlin_answer_end(q->run, position);
    leave(g);
    q->op.admitted = true;
    gremlin_eval_go_on(q);
}

void gremlin_graph_fail(gremlin_graph *g, err code) {
    gremlin_eval *q = g->q;
    leave(g);
    gremlin_fail(q, code);
}

/* ---- what the parts share ---- */

arena *gremlin_graph_elements(gremlin_graph *g) {
    return gremlin_answer_arena(g->q->run);
}

void gremlin_graph_found(gremlin_graph *g, size_t index, gremlin_element *e) {
    gremlin_answered one = {index, e};
    buf_add(&g->found, &one, sizeof one);
}

err gremlin_graph_allows(gremlin_graph *g, unsigned verbs, const slice *place) {
    gremlin_eval *q = g->q;
    pkey key = {.n = 0};
    size_t used;
    bool one = place && q->container->key.n && pkey_decode(&g->memory, *place, 1, &key, &used);
    return access_allows(&q->conn->reach, verbs, q->container, one ? &key : NULL) ? OK : access_refuse(&q->op);
}

static int compare(const void *a, const void *b) {
    const gremlin_wanted *x = a, *y = b;
    int order = slice_cmp(x->id, y->id);
    return order ? order : slice_cmp(x->place, y->place);
}

void gremlin_graph_want(gremlin_graph *g, gremlin_element *const *elements, size_t n) {
    g->wanted = arena_array(&g->memory, gremlin_wanted, n + 1);
    g->wanted_n = 0;
    for (size_t i = 0; i < n; i++) {
        gremlin_wanted *one = &g->wanted[g->wanted_n];
        if (document_id(&g->memory, elements[i]->id, &one->id)) {
            *one = (gremlin_wanted){one->id, elements[i]->place, i, elements[i]};
            g->wanted_n++;
        }
    }
    qsort(g->wanted, g->wanted_n, sizeof *g->wanted, compare);
}

const gremlin_wanted *gremlin_graph_match(const gremlin_graph *g, slice id, slice place, bool anywhere, size_t *n_out) {
    gremlin_wanted key = {.id = id, .place = anywhere ? SLICE_EMPTY : place};
    size_t low = 0, high = g->wanted_n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&g->wanted[middle], &key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    size_t end = low;
    while (end < g->wanted_n && slice_eq(g->wanted[end].id, id) && (anywhere || slice_eq(g->wanted[end].place, place))) {
        end++;
    }
    *n_out = end - low;
    return *n_out ? &g->wanted[low] : NULL;
}

/* ---- finding ---- */

static bool sink(void *context, const query_found *row) {
    gremlin_graph *g = context;
    if (!arena_fits(gremlin_graph_elements(g), 4 * row->body.n) || !buf_ok(&g->found)) {
        g->failed = E_MEMORY;
        return false;
    }
    if (!gremlin_atomic_leaves_out(g, row->body)) {
        g->head = &row->head;
        g->take(g, row->body);
    }
    return true;
}

static void start_over(call *c) {
    gremlin_graph *g = ((gremlin_eval *)c)->graph;
    g->found.n = g->found_before;
    buf_clear(&g->dropping);
    g->failed = OK;
}

static void page_found(call *c) {
    gremlin_eval *q = (gremlin_eval *)c;
    gremlin_graph *g = q->graph;
    err code = c->code != OK ? c->code : g->failed;
    if (code != OK) {
        gremlin_graph_fail(g, code);
        return;
    }
    g->next = gremlin_atomic_next(g, q->call.find.next);
    g->read(g);
}

/* A find without a condition would be one of all items. */
static err check_where(gremlin_graph *g, slice where) {
    op *o = &g->q->op;
    if (where.n) {
        return OK;
    }
    return o->budget && o->budget->exceeded
               ? E_MEMORY
               : op_fail(o, E_BAD_QUERY, "The ids, labels and values of one step take more than %d bytes: divide them.", LIMIT_FIND_BYTES);
}

void gremlin_graph_find(gremlin_graph *g, slice where, const slice *place, slice from, size_t rows_max) {
    gremlin_eval *q = g->q;
    item_key *partition = arena_new(&g->memory, item_key);
    err code = gremlin_graph_allows(g, ACCESS_READ, place);
    code = code == OK ? check_where(g, where) : code;
    code = code == OK ? gremlin_atomic_divide(g, &place, &from) : code;
    if (code == OK && clock_monotonic_us(&clock_system) > q->deadline_us) {
        code = E_TIMEOUT;
    }
    bool one = q->container->key.n ? place != NULL : q->transaction != NULL;
    if (code == OK && one) {
        code = document_key(&q->op, q->container, place ? *place : SLICE_EMPTY, SLICE_LIT("0"), partition);
    }
    if (code != OK) {
        gremlin_graph_fail(g, code);
        return;
    }
    call_find_init(&q->call.find, &q->front->core, &q->frame->client, &q->op, q->container, page_found);
    q->call.find.find.where = where;
    if (one) {
        q->call.find.find.scope = query_scope_partition(partition);
    }
    q->call.find.within = one ? q->transaction : NULL;
    q->call.find.from = from;
    q->call.find.rows_max = rows_max;
    q->call.find.sink = sink;
    q->call.find.context = g;
    q->call.find.again = q->loop_turns && g->wanted_n <= QUICK_VERTICES ? start_over : NULL;
    g->found_before = g->found.n;
    g->failed = OK;
    call_find_submit(&q->call.find);
}

/* ---- asks ---- */

static void dispatch(gremlin_graph *g) {
    static void (*const parts[])(gremlin_graph *) = {
        [GREMLIN_ASK_FIND] = gremlin_read_find, [GREMLIN_ASK_ADJACENT] = gremlin_read_adjacent, [GREMLIN_ASK_LOAD] = gremlin_read_load,
        [GREMLIN_ASK_ADD] = gremlin_write_add,  [GREMLIN_ASK_SET] = gremlin_write_set,          [GREMLIN_ASK_DROP] = gremlin_write_drop};
    parts[g->ask->kind](g);
}

void gremlin_graph_answer(gremlin_eval *q) {
    gremlin_graph *g = q->graph;
    g->outer = q->op.arena;
    q->op.arena = &g->memory;
    g->ask = gremlin_run_ask(q->run);
    g->keys_n = g->loose_n = g->wanted_n = 0;
    g->entering = false;
    gremlin_projection_begin(g);
    gremlin_read_places(g, dispatch);
}
