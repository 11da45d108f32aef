#include "query/exec.h"

#include <stdlib.h>

#include "base/memory.h"
#include "query/distinct.h"
#include "query/gather.h"
#include "query/group.h"
#include "query/notes.h"
#include "query/position.h"
#include "query/rank.h"

enum {
    STEPS = 20000,
    QUICK_STEPS = 256, /* entries of a small partition, of which */
    QUICK_ITEMS = 128, /* … so many are looked at, with */
    QUICK_BYTES = 256 * 1024,
    QUICK_BUDGET = 50000, /* … so many steps of evaluation in all: half a millisecond */
    ITEMS_BETWEEN_CLOCKS = 64,
    STEPS_BETWEEN_CLOCKS = 20000,
    ORDERED_MAX = 200000,
    KEPT_BODY_BYTES = 16 * 1024,
    ORDER_GARBAGE_BYTES = 16 * 1024 * 1024
};

typedef struct exec exec;

/* A row that ORDER BY holds: where it is, not what it shows. */
typedef struct ordered_row {
    query_value *values;
    item_place place;
    uint64_t row; /* of its item */
    slice body;   /* of a small item that came in order and so will be shown; empty: to be loaded again */
    item_head head;
} ordered_row;

struct exec {
    query_page *page;
    const query_select *select;
    query_runner runner;
    arena row_arena;     /* of the item being looked at */
    arena keep;          /* through the page */
    arena ordered;       /* order values of the rows held */
    size_t ordered_live; /* bytes of it that were in use when it was last made anew */
    query_item item;
    query_value item_value;
    uint64_t row;   /* of the item, counted from 0 */
    bool full;      /* the page is */
    bool finished;  /* TOP or LIMIT is reached */
    bool late;      /* its time is up */
    uint64_t items; /* looked at */
    int64_t lap_us; /* when it was last looked at the clock, if the page is timed */
    uint64_t times; /* items that the one being looked at stands for */
    bool (*on_row)(void *exec);
    bool matched; /* the item had a row */
    const item_found *found;

    query_access access;
    query_cost cost;
    bool entered;         /* ranges were read once, and need not be paid for again */
    double settled_ru;    /* of the charge: taken from a range's share */
    query_part *part;     /* of the trace */
    query_gather *gather; /* of subqueries in FROM; NULL: items are rows at once */
    query_groups *groups;
    query_rank *rank;
    ordered_row *rows; /* a heap: the last in order is on top */
    size_t rows_n, rows_cap, rows_wanted;
    query_value *stopped_values; /* of the item that an ordered walk stopped before, for want of time */
    uint64_t stopped_number;
    bool by_count;  /* DISTINCT in another order: rows of earlier pages come again, so many, */
    bool recalling; /* … and are not given, but remembered */
    query_distinct distinct;
    uint64_t seen_before; /* of gathered rows: by earlier pages */
};

/* ---- one item ---- */

static void set_item(exec *x, const item_found *found) {
    x->item = (query_item){.body = found->body, .number = found->head.number, .lsn = found->head.lsn, .ts = found->head.ts};
    memcpy(x->item.container_rid, x->page->container->rid, sizeof x->item.container_rid);
    x->item_value = value_of_item(&x->item);
    x->row = 0;
    x->times = 1;
    x->found = found;
}

static bool time_is_up(const query_page *p) {
    return p->until_us && clock_monotonic_us(p->items->clock) >= p->until_us;
}

/* Adds what has passed since the last lap; NULL: to nothing. */
static void lap(exec *x, uint64_t *to) {
    if (x->page->timed) {
        int64_t now = clock_monotonic_us(x->page->items->clock);
        *(to ? to : &(uint64_t){0}) += (uint64_t)(now - x->lap_us);
        x->lap_us = now;
    }
}

/* What rows leave behind is bounded, also when one item has very many of them. */
static bool may_keep(exec *x) {
    return query_may_keep(&x->runner, x->keep.held + x->ordered.held);
}

/* Each item has its own; a quick page has one budget for all. */
static void renew_steps(exec *x) {
    if (!x->page->quick) {
        x->runner.steps = QUERY_ITEM_STEPS;
    }
}

/* False: no more, and this one was not looked at. The clock is asked now and then, and after an item that took long. */
static bool may_go_on(exec *x) {
    bool asks = ++x->items % ITEMS_BETWEEN_CLOCKS == 0 || QUERY_ITEM_STEPS - x->runner.steps > STEPS_BETWEEN_CLOCKS;
    x->late = asks && time_is_up(x->page);
    renew_steps(x);
    if (x->page->quick && x->items > QUICK_ITEMS) {
        x->runner.code = E_QUERY_TOO_LONG;
    }
    return !x->late && may_keep(x) && x->runner.code == OK;
}

/* Rows of those that have looked at all items: there is no other page to go on with. False: stop. */
static bool may_show(exec *x) {
    if (!may_go_on(x)) {
        x->runner.code = E_QUERY_TOO_LONG;
    }
    return x->runner.code == OK;
}

static bool matched_row(void *context) {
    exec *x = context;
    x->matched = true;
    return x->on_row(x);
}

/* Which range is being read, for those who ask. */
static void enter_part(exec *x, uint32_t range_id) {
    query_trace *t = x->page->trace;
    if (!t || (x->part && x->part->range_id == range_id)) {
        return;
    }
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 8;
        query_part *more = arena_array(x->page->op->arena, query_part, t->cap);
        for (size_t i = 0; i < t->n; i++) {
            more[i] = t->parts[i];
        }
        t->parts = more;
    }
    x->part = &t->parts[t->n++];
    *x->part = (query_part){.range_id = range_id};
    x->cost.done = &x->part->done;
}

static void count_item(exec *x, const item_found *found) {
    query_metrics *m = &x->page->metrics;
    m->read++;
    m->read_bytes += found->body.n;
    m->matched += x->matched;
    query_cost_item(&x->cost, &x->item_value, found->body.n, x->matched);
}

static bool take_stop_values(void *context) {
    exec *x = context;
    for (size_t i = 0; i < x->select->order_n; i++) {
        query_value v = query_eval(&x->runner, x->select->order[i].expr);
        x->stopped_values[i] = value_keep(&x->keep, &v);
    }
    return false;
}

/* The time is up in the middle of an ordered walk: the next page begins with this item, whatever WHERE says of it. */
static void stop_before(exec *x, const item_found *found) {
    query_select all = *x->select;
    all.where = NULL;
    arena_reset(&x->row_arena);
    set_item(x, found);
    x->stopped_values = arena_array(&x->keep, query_value, x->select->order_n); /* undefined */
    query_each_row(&x->runner, &all, &x->item_value, take_stop_values, x);
    if (x->access.only_undefined) {
        x->stopped_values[0] = value_undefined();
    }
    x->stopped_number = x->select->order[0].descending ? found->place.number + 1 : found->place.number - 1;
}

static bool visit_item(void *context, const item_found *found) {
    exec *x = context;
    query_page *p = x->page;
    size_t rows = p->rows;
    lap(x, &p->metrics.load_us);
    if (p->quick && p->metrics.read_bytes + found->body.n > QUICK_BYTES) {
        x->runner.code = E_QUERY_TOO_LONG;
    }
    if (!may_go_on(x)) {
        if (x->late && x->access.in_order && !x->by_count) {
            stop_before(x, found);
        }
        return false;
    }
    enter_part(x, found->range->id);
    arena_reset(&x->row_arena);
    set_item(x, found);
    x->matched = x->gather != NULL;
    if (x->gather) {
        query_gather_add(x->gather, &x->runner, &x->item_value);
    } else {
        query_each_row(&x->runner, x->select, &x->item_value, matched_row, x);
    }
    lap(x, NULL);
    bool for_later = x->access.beyond || (x->full && p->rows == rows);
    if (x->runner.code == OK && !for_later) {
        count_item(x, found);
    }
    if (x->full || x->finished || x->access.beyond || x->runner.code != OK) {
        return false;
    }
    if (p->position.number == x->item.number) {
        p->position.rows_of_item = 0;
    }
    return true;
}

/* ---- a row's way out ---- */

static double rows_left(const exec *x) {
    const query *q = x->page->query;
    double most = q->top >= 0 && (q->limit < 0 || q->top < q->limit) ? q->top : q->limit;
    double left = most - (double)x->page->position.given;
    return most < 0 ? -1 : left > 0 ? left : 0;
}

/* False: not in this page. */
static bool write_row(exec *x, const query_value *v) {
    query_page *p = x->page;
    size_t before = p->out->n;
    if (p->rows == p->rows_max) {
        return false;
    }
    if (p->rows) {
        buf_add_byte(p->out, ',');
    }
    lap(x, NULL);
    value_write(p->out, v);
    lap(x, &p->metrics.write_us);
    if (p->rows && p->out->n > p->bytes_max) {
        p->out->n = before;
        return false;
    }
    p->rows++;
    p->metrics.rows_bytes += p->out->n - before;
    query_cost_row(&x->cost, p->out->n - before);
    return true;
}

/* OFFSET, TOP and LIMIT, then the page. False: stop. */
static bool give_row(exec *x, const query_value *v) {
    query_position *at = &x->page->position;
    if (x->page->query->offset > 0 && (double)at->skipped < x->page->query->offset) {
        at->skipped++;
        return true;
    }
    if (rows_left(x) == 0) {
        x->finished = true;
        return false;
    }
    if (!write_row(x, v)) {
        x->full = true;
        return false;
    }
    at->given++;
    x->finished = rows_left(x) == 0;
    return !x->finished;
}

/* ---- streaming ---- */

static bool stream_row(void *context) {
    exec *x = context;
    query_position *at = &x->page->position;
    if (at->number == x->item.number && x->row < at->rows_of_item) { /* given by the page before */
        x->row++;
        return true;
    }
    query_value v = query_project(&x->runner, x->select);
    if (x->runner.code != OK) {
        return false;
    }
    bool goes_on = !value_is_defined(&v) || give_row(x, &v);
    at->number = x->item.number;
    at->rows_of_item = x->row + !x->full;
    x->row++;
    return goes_on;
}

/* No item, but what its index entry tells, or just how many there are. */
static bool visit_value(void *context, slice body, uint32_t ts, uint64_t times, bool decided) {
    exec *x = context;
    item_found found = {.body = body, .head = {.ts = ts}};
    if (!may_go_on(x)) {
        return false;
    }
    arena_reset(&x->row_arena);
    set_item(x, &found);
    x->times = times;
    x->matched = decided;
    if (decided) {
        x->runner.item = &x->item_value;
        x->runner.slots[x->select->first_slot] = x->item_value;
        x->on_row(x);
    } else {
        query_each_row(&x->runner, x->select, &x->item_value, matched_row, x);
    }
    x->page->metrics.matched += x->matched ? times : 0;
    query_cost_told(&x->cost, &x->item_value, times, x->matched);
    return !x->full && !x->finished && x->runner.code == OK;
}

static void before_load(void *context) {
    exec *x = context;
    lap(x, &x->page->metrics.index_us);
}

static void note_part(exec *x, const item_view *v, uint64_t entries) {
    const query_access *a = &x->access;
    query_part *part = x->part;
    part->asked = true;
    part->items = v->items_n;
    part->way = a->way;
    part->used = a->used;
    part->demands = a->others;
    part->demands_n = a->others_n;
    part->intersected = a->intersected;
    part->backward = a->composite && a->backward; /* of one path, the order itself says so */
    part->too_many = a->too_many;
    part->small = v->partition && !v->local;
    part->entries += entries;
    part->order = a->way == WAY_IN_ORDER ? query_note_order(x->page->op->arena, x->page->query, a->composite) : SLICE_EMPTY;
}

static err find_items(void *context, item_view *v, bool *found_out) {
    exec *x = context;
    query_access *a = &x->access;
    uint64_t entries = a->entries, passed = a->passed;
    enter_part(x, v->range->id);
    lap(x, NULL);
    err code = query_access_find(a, v, found_out);
    query_cost_passed(&x->cost, a->passed - passed);
    lap(x, &x->page->metrics.index_us);
    x->page->metrics.entries += a->entries - entries;
    if (x->part) {
        note_part(x, v, a->entries - entries);
    }
    return code;
}

/* Reads items until the visitor stops, all are read, or, if `may_stop`, the time is up. `wanted` rows will do. */
static err read_items(exec *x, item_cursor *cursor, size_t wanted, bool may_stop) {
    query_page *p = x->page;
    err code = OK;
    x->access = (query_access){.runner = &x->runner,
                               .wanted = wanted,
                               .start = {p->position.ordered && !x->by_count, p->position.values, p->position.number},
                               .quick = p->quick,
                               .cover = query_cover_of(p->query),
                               .on_value = visit_value,
                               .before_load = p->timed ? before_load : NULL,
                               .context = x};
    cursor->find = x->gather || x->select->order_by_rank || p->scans ? NULL : find_items;
    cursor->unpriced = true;
    cursor->trial = p->quick;
    cursor->any_entered = false;
    cursor->entry_charge = x->entered ? 0 : query_cost_base(&x->cost);
    x->entered = true;
    while (code == OK && cursor->n && !x->full && !x->finished && !x->late && x->runner.code == OK) {
        code = item_feed(p->items, p->op, p->container, cursor, p->quick ? QUICK_STEPS : STEPS, visit_item, x, &p->mark);
        p->op->admitted = true;
        x->settled_ru = p->quick ? x->settled_ru : p->op->charge_ru;
        code = code == OK && p->quick && cursor->n && !x->full && !x->finished ? E_QUERY_TOO_LONG : code;
    }
    code = code != OK ? code : x->runner.code;
    return code == OK && x->late && !may_stop ? E_QUERY_TOO_LONG : code;
}

static bool may_go_on_with_value(void *context) {
    return may_go_on(context);
}

/* Rows that are known once all items are read. */
static err read_all(exec *x) {
    item_cursor all = *x->page->cursor;
    TRY(read_items(x, &all, SIZE_MAX, false));
    if (x->gather) {
        query_gather_each(x->gather, &x->runner, may_go_on_with_value, x->on_row, x);
    }
    return x->runner.code != OK ? x->runner.code : x->late ? E_QUERY_TOO_LONG : OK;
}

/* Given by earlier pages: passed over. */
static bool gathered_row(void *context) {
    exec *x = context;
    query_value v = query_project(&x->runner, x->select);
    if (!value_is_defined(&v) || x->row++ < x->seen_before) {
        return x->runner.code == OK;
    }
    return x->runner.code == OK && give_row(x, &v);
}

static err run_gathered(exec *x) {
    query_page *p = x->page;
    x->seen_before = p->position.given + p->position.skipped;
    x->on_row = gathered_row;
    TRY(read_all(x));
    p->more = x->full;
    p->cursor->n = p->more ? p->cursor->n : 0;
    return OK;
}

static err run_streaming(exec *x) {
    x->on_row = stream_row;
    TRY(read_items(x, x->page->cursor, x->page->rows_max, true));
    if (x->finished) {
        x->page->cursor->n = 0;
    }
    x->page->more = x->page->cursor->n > 0;
    return OK;
}

/* ---- groups ---- */

static bool group_row(void *context) {
    exec *x = context;
    query_groups_add(x->groups, &x->runner, x->times);
    return may_keep(x);
}

/* Rows that are known once all items are read come in the order of their keys (the group's values, or the distinct value itself), and the
 * next page begins behind the last key given: wherever its items are by then. */
typedef struct after_key {
    const query_position *at;
    size_t n;      /* values of a key */
    bool by_check; /* the last key was too long for the continuation, and is still there */
    bool passed;
} after_key;

static bool is_after(after_key *k, const query_value *key) {
    if (!k->at->ordered || k->passed) {
        return true;
    }
    if (k->by_check) {
        k->passed = query_position_check(key, k->n) == k->at->check;
        return false;
    }
    int order = 0;
    for (size_t i = 0; i < k->n && order == 0; i++) {
        order = value_compare(&key[i], &k->at->values[i]);
    }
    return k->at->cut ? order >= 0 : order > 0;
}

static bool give_keyed(exec *x, const query_value *row, const query_value *key) {
    bool go_on = give_row(x, row);
    if (!x->full) {
        x->page->position.ordered = true;
        x->page->position.values = (query_value *)(uintptr_t)key;
        x->page->position.cut = 0;
    }
    return go_on;
}

static void end_keyed(exec *x) {
    query_page *p = x->page;
    p->more = x->full;
    p->cursor->n = p->more ? p->cursor->n : 0;
}

typedef struct shown {
    exec *exec;
    query_position begun;
    after_key after;
} shown;

static bool find_check(void *context) {
    shown *s = context;
    s->after.by_check = query_position_check(s->exec->runner.keys, s->after.n) == s->begun.check;
    return !s->after.by_check;
}

static bool show_group(void *context) {
    shown *s = context;
    exec *x = s->exec;
    if (!may_show(x)) {
        return false;
    }
    if (!is_after(&s->after, x->runner.keys)) {
        return true;
    }
    query_value v = query_project(&x->runner, x->select);
    if (!value_is_defined(&v)) {
        return x->runner.code == OK;
    }
    return x->runner.code == OK && give_keyed(x, &v, x->runner.keys);
}

static err run_groups(exec *x) {
    query_page *p = x->page;
    x->groups = query_groups_new(&x->keep, x->select);
    x->on_row = group_row;
    if (x->select->sources_n == 0) {
        query_each_row(&x->runner, x->select, NULL, group_row, x);
    }
    TRY(read_all(x));
    arena_reset(&x->row_arena);
    query_groups_sort(x->groups);
    shown s = {.exec = x, .begun = p->position};
    s.after = (after_key){.at = &s.begun, .n = x->select->group_n};
    if (s.begun.cut) {
        query_groups_each(x->groups, &x->runner, find_check, &s);
    }
    query_groups_each(x->groups, &x->runner, show_group, &s);
    end_keyed(x);
    return x->runner.code;
}

/* ---- DISTINCT ---- */

static bool is_new(exec *x, const query_value *v) {
    query_pay_value(&x->runner, v);
    return query_distinct_add(&x->distinct, v) && may_keep(x);
}

static bool distinct_row(void *context) {
    exec *x = context;
    query_value v = query_project(&x->runner, x->select);
    if (x->runner.code == OK && value_is_defined(&v)) {
        is_new(x, &v);
    }
    return x->runner.code == OK;
}

static int by_value(const void *a, const void *b) {
    return value_compare(a, b);
}

static err run_distinct(exec *x) {
    x->on_row = distinct_row;
    TRY(read_all(x));
    query_position begun = x->page->position;
    after_key after = {.at = &begun, .n = 1};
    query_value *values = x->distinct.values;
    if (x->distinct.n) {
        qsort(values, x->distinct.n, sizeof *values, by_value);
    }
    for (size_t i = 0; i < x->distinct.n && begun.cut && !after.by_check; i++) {
        after.by_check = query_position_check(&values[i], 1) == begun.check;
    }
    for (size_t i = 0; i < x->distinct.n && may_show(x); i++) {
        if (is_after(&after, &values[i]) && !give_keyed(x, &values[i], &values[i])) {
            break;
        }
    }
    end_keyed(x);
    return x->runner.code;
}

/* ---- ORDER BY ---- */

/* Equal values: in the direction of the first, by number, since that is how SDKs take them when they go on in the middle. */
static int compare_rows(const query_select *s, const query_value *a, uint64_t a_number, uint64_t a_row, const query_value *b,
                        uint64_t b_number, uint64_t b_row) {
    for (size_t i = 0; i < s->order_n; i++) {
        int order = value_compare(&a[i], &b[i]);
        if (order) {
            return s->order[i].descending ? -order : order;
        }
    }
    if (a_number != b_number) {
        return (a_number < b_number) != s->order[0].descending ? -1 : 1;
    }
    return a_row < b_row ? -1 : a_row > b_row;
}

static int compare_ordered(const query_select *s, const ordered_row *a, const ordered_row *b) {
    return compare_rows(s, a->values, a->place.number, a->row, b->values, b->place.number, b->row);
}

static void swap_rows(ordered_row *a, ordered_row *b) {
    ordered_row t = *a;
    *a = *b;
    *b = t;
}

static void sift_up(exec *x, size_t i) {
    while (i && compare_ordered(x->select, &x->rows[(i - 1) / 2], &x->rows[i]) < 0) {
        swap_rows(&x->rows[(i - 1) / 2], &x->rows[i]);
        i = (i - 1) / 2;
    }
}

static void sift_down(exec *x, size_t i) {
    for (;;) {
        size_t last = i, left = 2 * i + 1, right = left + 1;
        last = left < x->rows_n && compare_ordered(x->select, &x->rows[last], &x->rows[left]) < 0 ? left : last;
        last = right < x->rows_n && compare_ordered(x->select, &x->rows[last], &x->rows[right]) < 0 ? right : last;
        if (last == i) {
            return;
        }
        swap_rows(&x->rows[i], &x->rows[last]);
        i = last;
    }
}

static void keep_values(exec *x, const query_value *values, query_value *into) {
    for (size_t i = 0; i < x->select->order_n; i++) {
        into[i] = value_keep(&x->ordered, &values[i]);
    }
}

/* Values of rows that were pushed out are garbage: when there is more of it than anything else, what is held moves to a new arena. */
static void tidy_values(exec *x) {
    if (x->ordered.held < 2 * x->ordered_live + ORDER_GARBAGE_BYTES) {
        return;
    }
    arena before = x->ordered;
    x->ordered = arena_init();
    for (size_t i = 0; i < x->rows_n; i++) {
        keep_values(x, x->rows[i].values, x->rows[i].values);
    }
    x->ordered_live = x->ordered.held;
    arena_free(&before);
}

static void hold_row(exec *x, const query_value *values) {
    ordered_row row = {.place = x->found->place, .row = x->row};
    if (x->rows_n == x->rows_wanted) {
        ordered_row *top = &x->rows[0];
        if (compare_rows(x->select, values, row.place.number, row.row, top->values, top->place.number, top->row) >= 0) {
            x->access.beyond = x->access.in_order;
            return;
        }
        row.values = top->values;
        keep_values(x, values, row.values);
        *top = row;
        sift_down(x, 0);
        tidy_values(x);
        return;
    }
    if (x->rows_n == x->rows_cap) {
        x->rows_cap = x->rows_cap ? 2 * x->rows_cap : 64;
        x->rows = mem_resize(x->rows, x->rows_cap * sizeof *x->rows);
    }
    row.values = arena_array(&x->keep, query_value, x->select->order_n);
    keep_values(x, values, row.values);
    if (x->access.in_order && x->found->body.n <= KEPT_BODY_BYTES) {
        row.body = arena_copy(&x->keep, x->found->body);
        row.head = x->found->head;
    }
    x->rows[x->rows_n++] = row;
    sift_up(x, x->rows_n - 1);
}

/* Values are shown themselves. */
static bool shows_order_value(const query_select *s) {
    return s->order_n == 1 && s->columns_n == 1 && query_same_expr(s->columns[0].expr, s->order[0].expr);
}

/* Rows that have their item's _rid are one of a kind: SDKs ask for it when they merge ranges in order. */
static bool shows_rid(const query_select *s) {
    for (size_t i = 0; i < s->columns_n && s->sources_n == 1; i++) {
        const query_expr *e = s->columns[i].expr;
        if (e->kind == EXPR_MEMBER && e->items[0]->kind == EXPR_NAME && slice_eq(e->name, SLICE_LIT("_rid"))) {
            return true;
        }
    }
    return false;
}

static bool order_row(void *context) {
    exec *x = context;
    const query_position *at = &x->page->position;
    query_value values[16];
    for (size_t i = 0; i < x->select->order_n; i++) {
        values[i] = query_eval(&x->runner, x->select->order[i].expr);
        query_pay_value(&x->runner, &values[i]);
    }
    bool again = x->select->distinct && shows_order_value(x->select); /* equal ones were seen */
    uint64_t number = again ? at->number : x->found->place.number, row = again ? at->row : x->row;
    bool after = x->by_count || !at->ordered || compare_rows(x->select, values, number, row, at->values, at->number, at->row) > 0;
    bool meant = !x->access.only_undefined || !value_is_defined(&values[0]);
    if (after && meant && x->runner.code == OK) {
        hold_row(x, values);
    }
    x->row++;
    return may_keep(x);
}

static int sort_order(const void *a, const void *b, void *select) {
    return compare_ordered(select, a, b);
}

/* The row again, now to be shown: its item is loaded, its rows counted up to it. */
typedef struct shown_row {
    exec *exec;
    uint64_t wanted;
    bool go_on;
} shown_row;

static bool show_row(void *context) {
    shown_row *s = context;
    exec *x = s->exec;
    if (x->row++ != s->wanted) {
        return true;
    }
    query_value v = query_project(&x->runner, x->select);
    bool wanted = value_is_defined(&v) && (!x->select->distinct || is_new(x, &v));
    s->go_on = x->runner.code == OK && (!wanted || x->recalling || give_row(x, &v));
    return false;
}

static err show_ordered(exec *x, const ordered_row *row, bool *go_on_out) {
    item_found found = {.head = row->head, .body = row->body, .place = row->place};
    err code = row->body.n ? OK : item_again(x->page->items, x->page->container, row->place, &found);
    *go_on_out = true;
    if (code == E_NOT_FOUND) { /* deleted meanwhile */
        return OK;
    }
    TRY(code);
    shown_row s = {x, row->row, true};
    arena_reset(&x->row_arena);
    set_item(x, &found);
    query_each_row(&x->runner, x->select, &x->item_value, show_row, &s);
    *go_on_out = s.go_on;
    if (!x->full) {
        query_cost_shown(&x->cost, row->place.number, found.body.n);
    }
    item_give(&found);
    return x->runner.code;
}

/* Those before `first` were given by earlier pages. */
static err show_all_ordered(exec *x, size_t first) {
    query_page *p = x->page;
    if (x->rows_n == 0) {
        return OK;
    }
    qsort_r(x->rows, x->rows_n, sizeof *x->rows, sort_order, (void *)(uintptr_t)x->select);
    for (size_t i = 0; i < x->rows_n; i++) {
        bool go_on;
        x->recalling = i < first;
        if (!may_go_on(x) && i > first) { /* one row a page at least: the next begins where this one ends */
            x->full = x->runner.code == OK;
            return x->runner.code;
        }
        TRY(show_ordered(x, &x->rows[i], &go_on));
        if (x->full) {
            break;
        }
        p->position.passed += i >= first;
        p->position.ordered = true;
        p->position.values = x->rows[i].values;
        p->position.number = x->rows[i].place.number;
        p->position.row = x->rows[i].row;
        if (!go_on) {
            break;
        }
    }
    return OK;
}

/* ---- ORDER BY RANK ---- */

static bool count_row(void *context) {
    exec *x = context;
    query_rank_count(x->rank, &x->runner);
    return x->runner.code == OK;
}

/* What the scores are reckoned from: all items, whatever WHERE says. */
static err count_items(exec *x) {
    const query_select *select = x->select;
    query_select all = *select;
    item_cursor cursor = *x->page->cursor;
    all.where = NULL;
    x->select = &all;
    x->on_row = count_row;
    err code = query_rank_counts(x->rank) ? read_items(x, &cursor, SIZE_MAX, false) : OK;
    x->select = select;
    return code;
}

static bool rank_row(void *context) {
    exec *x = context;
    if (x->rows_n == x->rows_cap) {
        x->rows_cap = x->rows_cap ? 2 * x->rows_cap : 64;
        x->rows = mem_resize(x->rows, x->rows_cap * sizeof *x->rows);
    }
    ordered_row *row = &x->rows[x->rows_n++];
    *row = (ordered_row){.place = x->found->place, .row = x->row++};
    row->values = arena_array(&x->keep, query_value, query_rank_scores_n(x->rank) + 1);
    query_rank_scores(x->rank, &x->runner, row->values);
    if (x->rows_n > ORDERED_MAX) {
        x->runner.code = E_QUERY_TOO_LONG;
    }
    return x->runner.code == OK;
}

static void fuse_rows(exec *x) {
    query_value **values = arena_array(&x->keep, query_value *, x->rows_n + 1);
    for (size_t i = 0; i < x->rows_n; i++) {
        values[i] = x->rows[i].values;
    }
    query_rank_fuse(x->rank, &x->keep, values, x->rows_n);
}

/* Only those after the page before. */
static void drop_given(exec *x) {
    const query_position *at = &x->page->position;
    size_t n = 0;
    for (size_t i = 0; i < x->rows_n; i++) {
        const ordered_row *row = &x->rows[i];
        if (!at->ordered || compare_rows(x->select, row->values, row->place.number, row->row, at->values, at->number, at->row) > 0) {
            x->rows[n++] = *row;
        }
    }
    x->rows_n = n;
}

static err run_ranked(exec *x) {
    query_page *p = x->page;
    item_cursor all = *p->cursor;
    x->rank = query_rank_new(&x->keep, x->select);
    TRY(count_items(x));
    x->on_row = rank_row;
    TRY(read_items(x, &all, SIZE_MAX, false));
    fuse_rows(x);
    drop_given(x);
    TRY(show_all_ordered(x, 0));
    p->more = x->full;
    p->cursor->n = p->more ? p->cursor->n : 0;
    return OK;
}

/* ---- ORDER BY, all of it ---- */

static err check_order(const exec *x) {
    container_index *index = container_space_index(x->page->container->space);
    err code = query_check_order(x->page->op, x->page->query, &index->policy);
    container_index_give(index);
    return code;
}

static err run_ordered(exec *x) {
    query_page *p = x->page;
    item_cursor all = *p->cursor;
    TRY(check_order(x));
    x->by_count = x->select->distinct && !shows_order_value(x->select) && !shows_rid(x->select);
    uint64_t passed = x->by_count ? p->position.passed : 0;
    double offset_left = p->query->offset > (double)p->position.skipped ? p->query->offset - (double)p->position.skipped : 0;
    double left = x->select->distinct ? -1 : rows_left(x);
    double wanted = (double)passed + offset_left + (left >= 0 && left < (double)p->rows_max ? left : (double)p->rows_max) + 1;
    if (x->select->order_n > 16 || wanted > ORDERED_MAX) {
        return E_QUERY_TOO_LONG;
    }
    x->rows_wanted = (size_t)wanted;
    x->on_row = order_row;
    TRY(read_items(x, &all, x->rows_wanted, p->cursor->n == 1));
    if (x->late && (!x->stopped_values || all.n > 1)) { /* what is held may not be the first */
        return E_QUERY_TOO_LONG;
    }
    size_t held = x->rows_n;
    TRY(show_all_ordered(x, passed));
    p->more = x->full || (held == x->rows_wanted && !x->finished);
    if (x->stopped_values && !x->full && !x->finished) {
        p->position.ordered = p->more = true;
        p->position.values = x->stopped_values;
        p->position.number = x->stopped_number;
        p->position.row = UINT32_MAX;
    }
    p->cursor->n = p->more ? p->cursor->n : 0;
    return OK;
}

/* ---- the page ---- */

/* Values that a continuation needs outlive the page's own memory. */
static void keep_position(exec *x) {
    query_position *at = &x->page->position;
    if (at->ordered) {
        size_t n = query_position_values(x->page->query);
        query_value *values = arena_array(x->page->op->arena, query_value, n + 1);
        for (size_t i = 0; i < n; i++) {
            values[i] = value_keep(x->page->op->arena, &at->values[i]);
        }
        at->values = values;
    }
}

/* What the page cost and did, beside its rows. */
static void end_page(exec *x, int64_t begun) {
    query_page *p = x->page;
    x->runner.steps = QUERY_ITEM_STEPS;
    query_cost_rows(&x->cost);
    double ru = p->op->charge_ru - x->settled_ru;
    if (p->quick && x->entered && p->mark.segment) {
        item_settle_trial(p->items, p->op, p->container, p->cursor, &p->mark, ru);
    } else if (p->mark.segment && ru > 0) {
        item_settle_more(p->items, p->op, p->container, &p->mark, ru);
    }
    if (p->trace) {
        query_note_where(p->trace, &x->runner, &x->cost.index->policy);
    }
    if (p->notes_indexes) {
        query_note_indexes(p, &x->runner, &x->cost.index->policy);
    }
    p->metrics.rows = p->rows;
    p->metrics.took_us = (uint64_t)(clock_monotonic_us(p->items->clock) - begun);
}

/* Without FROM there is one row, and no item. */
static err run_without_items(exec *x) {
    x->page->cursor->n = 0;
    op_charge(x->page->op, query_cost_base(&x->cost));
    if (x->page->query->aggregates) {
        return run_groups(x);
    }
    query_each_row(&x->runner, x->select, NULL, stream_row, x);
    return x->runner.code;
}

err query_run_page(query_page *p) {
    exec x = {.page = p, .select = p->query->select, .times = 1, .row_arena = arena_init(), .keep = arena_init(), .ordered = arena_init()};
    int64_t begun = clock_monotonic_us(p->items->clock);
    query_runner_init(&x.runner, p->query, p->op, &x.row_arena, clock_wall_ms(p->items->clock));
    x.runner.udfs = p->udfs;
    x.distinct.keep = &x.keep;
    x.lap_us = begun;
    x.settled_ru = p->op->charge_ru;
    x.gather = query_gather_new(&x.keep, x.select);
    x.runner.context.keep = p->op->arena; /* as long-lived as the tree, which holds what is prepared */
    x.runner.steps = p->quick ? QUICK_BUDGET : QUERY_ITEM_STEPS;
    query_cost_begin(&x.cost, &x.runner, p->container, p->cursor->partition != NULL);
    err code = x.select->sources_n == 0  ? run_without_items(&x)
               : p->query->aggregates    ? run_groups(&x)
               : x.select->order_by_rank ? run_ranked(&x)
               : x.select->order_n       ? run_ordered(&x)
               : x.select->distinct      ? run_distinct(&x)
               : x.gather                ? run_gathered(&x)
                                         : run_streaming(&x);
    if (code == OK) {
        keep_position(&x);
        end_page(&x, begun);
    } else if (p->quick && code == E_QUERY_TOO_LONG) {
        p->op->charge_ru = x.settled_ru;
    }
    query_cost_end(&x.cost);
    free(x.rows);
    arena_free(&x.row_arena);
    arena_free(&x.keep);
    arena_free(&x.ordered);
    return code;
}
