/* Items of queries that call user-defined functions: a block of items is held back, evaluated ahead to learn which calls it needs, and
 * evaluated for real when the calls were made (query/udf.h). The first blocks are small, so that a query for a few rows makes few needless
 * calls. Block sizes do not depend on time, because charges must not. */
#include "query/exec_int.h"

#include "base/memory.h"
#include "throughput/charge.h"

enum { BLOCK_FIRST = 8, BLOCK_FACTOR = 4, BLOCK_MAX = 512, BLOCK_BYTES_MAX = 1024 * 1024 };

/* ---- evaluating ahead ---- */

/* Evaluates the expressions that the page will evaluate for this row. */
static bool evaluate_row(void *context) {
    exec *x = context;
    query_runner *r = &x->runner;
    const query_select *s = x->gather ? query_gather_first(x->gather) : x->select;
    if (s->aggregates_n || s->group_n) {
        for (size_t i = 0; i < s->group_n; i++) {
            query_eval(r, s->group[i]);
        }
        for (size_t i = 0; i < s->aggregates_n; i++) {
            query_eval(r, s->aggregates[i]->items[0]);
        }
    } else if (s->order_n && !s->order_by_rank) {
        for (size_t i = 0; i < s->order_n; i++) {
            query_eval(r, s->order[i].expr);
        }
    } else if (s->order_n == 0) {
        query_project(r, s);
    }
    return r->code == OK;
}

static bool evaluate_shown(void *context) {
    exec *x = context;
    if (x->row++ != x->wanted_row) {
        return x->runner.code == OK;
    }
    query_project(&x->runner, x->select);
    return false;
}

/* Errors are dropped here: the real evaluation meets them again, if it gets there. */
static void look_at(exec *x, size_t i, query_row row) {
    held_item *h = &x->held[i];
    query_runner *r = &x->runner;
    const query_select *s = x->gather ? query_gather_first(x->gather) : x->select;
    query_value item = value_of_item(&h->item);
    arena_reset(&x->row_arena);
    query_calls_enter(&x->calls, i, h->found.body, true);
    r->random = h->random;
    query_renew_steps(r, QUERY_ITEM_STEPS);
    r->waits = 0;
    x->row = 0;
    query_each_row(r, s, &item, row, x);
    h->known = r->waits == 0;
    r->waits = 0;
    r->code = OK;
}

/* False: the deadline passed. */
static bool look_at_all(exec *x, query_row row, const ordered_row *rows) {
    for (size_t i = 0; i < x->held_n; i++) {
        if (x->held[i].known) {
            continue;
        }
        x->wanted_row = rows ? rows[i].row : 0;
        look_at(x, i, row);
        if ((i % 64 == 63 || QUERY_ITEM_STEPS - x->runner.steps > 20000) && query__time_is_up(x->page)) {
            return false;
        }
    }
    return true;
}

/* Each round may reach calls that waited for values of the round before. There are at most as many rounds as call sites, since no site
 * waits for itself. */
static void look_ahead(exec *x, query_row row, const ordered_row *rows) {
    bool goes_on = true;
    for (unsigned round = 0; round < x->page->ask.query->ast->udf_calls && goes_on; round++) {
        goes_on = look_at_all(x, row, rows) && x->calls.n > x->calls.made && query_calls_make(&x->calls, x->page->ask.op);
    }
    for (size_t i = 0; i < x->held_n && goes_on; i++) {
        x->held[i].known = true;
    }
    query_calls_leave(&x->calls);
    query_renew_steps(&x->runner, QUERY_ITEM_STEPS);
}

/* ---- a block ---- */

static void begin_block(exec *x) {
    x->held_max = x->held_max == 0 ? BLOCK_FIRST : x->held_max * BLOCK_FACTOR < BLOCK_MAX ? x->held_max * BLOCK_FACTOR : BLOCK_MAX;
    x->held = mem_resize(x->held, x->held_max * sizeof *x->held);
    x->held_n = x->held_bytes = 0;
    query_calls_begin(&x->calls, x->page->ask.query, x->held_max);
}

static held_item *hold(exec *x, const item_found *found) {
    held_item *h = &x->held[x->held_n++];
    *h = (held_item){.found = *found, .random = x->runner.random};
    h->found.value = (store_value){0};
    h->found.cached = NULL;
    h->found.body = arena_copy(&x->calls.memory, found->body);
    query__set_item(x, &h->found);
    h->item = x->item;
    x->held_bytes += found->body.n;
    return h;
}

static void enter(exec *x, size_t i) {
    x->unknown = !x->held[i].known;
    x->runner.random = x->held[i].random;
    query_calls_enter(&x->calls, i, x->held[i].found.body, false);
}

void query__drop_held(exec *x) {
    x->held_n = 0;
    x->unknown = false;
    query_calls_leave(&x->calls);
}

/* ---- holding items ---- */

static uint64_t *cursor_after(exec *x) {
    return x->view ? &x->view->stretch.after : &x->cursor->stretches[0].after;
}

bool query__hold_item(void *context, const item_found *found) {
    exec *x = context;
    query__lap(x, &x->page->outcome.metrics.load_us);
    if (x->held_n == 0) {
        begin_block(x);
        x->held_after = *cursor_after(x);
    }
    held_item *h = hold(x, found);
    h->passed = x->access.report.passed;
    h->in_order = x->access.turn.in_order;
    h->only_undefined = x->access.turn.only_undefined;
    return x->held_n < x->held_max && x->held_bytes < BLOCK_BYTES_MAX ? true : query__evaluate_held(x);
}

/* Moves the cursor back to before item i, at which the evaluation stopped. */
static void go_back(exec *x, size_t i) {
    *cursor_after(x) = i ? x->held[i - 1].found.place.number : x->held_after;
    x->access.report.passed = x->held[i].passed;
}

bool query__evaluate_held(void *context) {
    exec *x = context;
    find_access *a = &x->access;
    bool in_order = a->turn.in_order, only_undefined = a->turn.only_undefined, goes_on = true;
    if (x->held_n) {
        look_ahead(x, evaluate_row, NULL);
        query__lap(x, NULL);
    }
    for (size_t i = 0; i < x->held_n && goes_on; i++) {
        a->turn.in_order = x->held[i].in_order;
        a->turn.only_undefined = x->held[i].only_undefined;
        enter(x, i);
        goes_on = query__visit_item(x, &x->held[i].found);
        if (!goes_on) {
            go_back(x, i);
        }
    }
    query__drop_held(x);
    a->turn.in_order = in_order;
    a->turn.only_undefined = only_undefined;
    return goes_on;
}

/* ---- rows to be returned ---- */

err query__load_ahead(exec *x, const ordered_row *rows, size_t n, size_t *n_out) {
    begin_block(x);
    while (x->held_n < n && x->held_n < x->held_max && x->held_bytes < BLOCK_BYTES_MAX) {
        const ordered_row *row = &rows[x->held_n];
        item_found found = {.head = row->head, .body = row->body, .place = row->place};
        err code =
            row->body.n ? OK : item_read_place(x->page->ask.items, x->page->ask.container, x->page->cursor->moment, row->place, &found);
        if (code != OK && code != E_NOT_FOUND) {
            return code;
        }
        hold(x, &found)->known = code == E_NOT_FOUND;
        item_give(&found);
    }
    *n_out = x->held_n;
    look_ahead(x, evaluate_shown, rows);
    return OK;
}

void query__enter_loaded(exec *x, size_t i) {
    x->kept = &x->held[i].found;
    enter(x, i);
}

void query__charge_calls(exec *x, uint64_t before) {
    query_cost_calls(&x->cost, x->calls.taken - before);
}
