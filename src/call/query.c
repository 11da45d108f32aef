/* A page of a query. Finding rows may take seconds, so it runs on a worker. A short text is tried on the loop first: if the index finds a
 * few items quickly, the query is answered there, which saves the trip to a worker. A query that calls user-defined functions runs on a
 * script thread, so that a function that does not end cannot block other queries. */
#include "account/scripts.h"
#include "call/call_int.h"
#include "query/position.h"
#include "query/read_many.h"
#include "script/functions.h"

enum {
    QUICK_ROWS = 64, /* for ordered queries; about the number of entries that the index reads at once (query/access.c) */
};

static call_query *of(call *c) {
    return (call_query *)c;
}

/* ---- a page ---- */

static err run_page(call_query *q, bool quick) {
    call *c = &q->call;
    query_page *p = &q->page;
    const items *items = call__items(c);
    err code;
    query_page_init(p, items, c->op, c->container, &q->query, q->cursor, q->out);
    p->position = q->position;
    p->outcome.mark = c->mark;
    p->ask.rows_max = q->rows_max;
    p->ask.full_goes_on = q->full_goes_on;
    p->ask.until_us = account_page_deadline_us(c->core->account);
    p->ask.udfs = q->udfs;
    p->ask.quick = quick;
    p->ask.timed = q->timed;
    p->ask.notes_indexes = q->notes_indexes;
    TRY(query_position_restore(p));
    q->position = p->position;
    code = q->is_first && query_read_many(p, &code) ? code : query_run_page(p);
    c->mark = p->outcome.mark;
    return code;
}

static void page(call *c) {
    c->code = run_page(of(c), false);
}

static void give_functions(call *c) {
    call_query *q = of(c);
    for (size_t i = 0; i < QUERY_UDFS_MAX && q->functions[i]; i++) {
        account_script_give(q->functions[i]);
        q->functions[i] = NULL;
    }
}

/* ---- with user-defined functions ---- */

static err find_functions(call_query *q) {
    call *c = &q->call;
    for (unsigned i = 0; i < q->query.udfs_n; i++) {
        err code = account_find_script(c->core->account, c->container, ACCOUNT_FUNCTION, q->query.udfs[i], false, &q->functions[i]);
        if (code != OK) {
            return code == E_NOT_FOUND ? query_udf_unknown(c->op, &q->query, i) : code;
        }
    }
    return OK;
}

static void page_with_functions(call *c) {
    call_query *q = of(c);
    script_function list[QUERY_UDFS_MAX];
    script_functions functions;
    for (size_t i = 0; i < q->query.udfs_n; i++) {
        list[i] = (script_function){q->functions[i]->id, q->functions[i]->body};
    }
    script_functions_init(&functions, c->core->scripts, c->op->budget, list, q->query.udfs_n);
    q->udfs = &functions.base;
    c->code = run_page(q, false);
    script_functions_end(&functions);
}

/* ---- on the loop ---- */

static bool wants_few(const call_query *q) {
    const query *asked = &q->query;
    double limit = asked->limit + (asked->offset > 0 ? asked->offset : 0);
    double most = asked->top >= 0 ? asked->top : asked->limit >= 0 ? limit : (double)q->rows_max;
    return most <= QUICK_ROWS || q->rows_max <= QUICK_ROWS;
}

static bool is_large(const call_query *q) {
    const container *c = q->call.container;
    const item_cursor *cursor = q->cursor;
    range_info info;
    return !cursor->partition && cursor->n && range_info_at(c, range_position(c, &cursor->stretches[0].min), &info) &&
           info.usage.items > QUICK_ROWS;
}

static bool spans_ranges(const call_query *q) {
    epk min, end;
    call__bounds(q->cursor, &min, &end);
    return range_is_divided(q->call.container, &min, &end);
}

/* Queries that certainly take too long for a loop: regular expressions; ORDER BY, GROUP BY and DISTINCT over several ranges; many ordered
 * rows without a WHERE. */
static bool is_long(const call_query *q) {
    const query_select *s = q->query.select;
    bool needs_all = s->order_n || s->distinct || q->query.aggregates;
    return q->query.patterns || (needs_all && spans_ranges(q)) || (s->order_n && !s->where && is_large(q) && !wants_few(q));
}

/* False: it gave up, and a worker starts the page over with the query as bound here. */
static bool try_quickly(call_query *q) {
    uint64_t container = call_tenant_of_container(q->call.container);
    slice text = q->query.ast->text;
    if (!q->is_short || is_long(q) || !call__worth_a_try(container, text)) {
        return false;
    }
    item_cursor begun;
    item_cursor_copy(&begun, q->cursor);
    q->call.code = run_page(q, true);
    call__tried(container, text, q->call.code == E_QUERY_TOO_LONG);
    if (q->call.code != E_QUERY_TOO_LONG) {
        return true;
    }
    q->call.code = OK;
    q->call.op->admitted = false;
    item_cursor_copy(q->cursor, &begun);
    buf_clear(q->out);
    return false;
}

static void go(call *c) {
    call_query *q = of(c);
    if (q->query.udfs_n) {
        err code = find_functions(q);
        code == OK ? call__on_script_thread(c, 0, page_with_functions, call__finish) : call__end(c, code);
        return;
    }
    if (try_quickly(q)) {
        call__finish(c);
    } else {
        call_work(c, NET_PAGES, page);
    }
}

static void enter(call *c) {
    epk min, end_of;
    call_query *q = of(c);
    if (c->code != OK) {
        call__finish(c);
        return;
    }
    call__bounds(q->cursor, &min, &end_of);
    call__enter(c, &min, &end_of, call__one_range(c, &min, &end_of), false, go);
}

/* Runs on a worker. */
static void read_text(call *c) {
    c->code = of(c)->prepare(of(c));
}

void call_query_init(call_query *q, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&q->call, core, client, o, container, done);
    q->is_short = q->is_first = q->timed = q->notes_indexes = false;
    q->out = NULL;
    q->prepare = NULL;
    q->cursor = NULL;
    q->position = (query_position){0};
    q->rows_max = SIZE_MAX / 2;
    memset(q->functions, 0, sizeof q->functions);
    q->udfs = NULL;
}

void call_query_submit(call_query *q) {
    call *c = &q->call;
    c->clean = give_functions;
    if (!q->is_short) {
        call__on_worker(c, NET_PAGES, read_text, enter);
        return;
    }
    c->code = q->prepare(q);
    enter(c);
}
