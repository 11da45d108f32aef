/* ORDER BY and ORDER BY RANK. If an index has the order, only as many rows as the page needs are read; otherwise all items are read, and
 * the first rows in order held in a heap. */
#include "query/exec_int.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/memory.h"
#include "query/order_by.h"

enum {
    ORDERED_MAX = 200000,
    ORDERED_WINDOW = LIMIT_PAGE_ITEMS_MAX + 1,
    KEPT_BODY_BYTES = 16 * 1024,
    ORDER_GARBAGE_BYTES = 16 * 1024 * 1024
};

/* ---- ORDER BY ---- */

static err sorts_too_long(const exec *x) {
    return x->page->ask.quick
               ? E_QUERY_TOO_LONG
               : op_fail(x->page->ask.op, E_QUERY_TOO_LONG,
                         "ORDER BY without an index that has its order reads all items for each page, and they are too many: add "
                         "an index for its path, a composite index for several, name a partition key, or make the condition "
                         "narrower.");
}

/* Rejected at once: all items would have to be read, and too many rows held. */
static err refuse_sorting(const exec *x) {
    return x->page->ask.quick
               ? E_QUERY_TOO_LONG
               : op_fail(x->page->ask.op, E_QUERY_TOO_LONG,
                         "ORDER BY without an index that has its order keeps at most %d rows of OFFSET and page: add an index for "
                         "its path, a composite index for several, or make OFFSET smaller.",
                         (int)ORDERED_MAX);
}

/* Rows with equal values are ordered by item number, in the direction of the first value: SDKs expect that when they continue among
 * them. */
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

/* The values of rows that were pushed out are garbage. If they outweigh the rest, the held values move to a new arena. */
static void tidy_values(exec *x) {
    if (x->ordered.held < 2 * x->ordered_live + ORDER_GARBAGE_BYTES) {
        return;
    }
    arena before = x->ordered;
    x->ordered = arena_init_counted(before.budget);
    for (size_t i = 0; i < x->rows_n; i++) {
        keep_values(x, x->rows[i].values, x->rows[i].values);
    }
    x->ordered_live = x->ordered.held;
    arena_free(&before);
}

/* False: out of memory; the runner has the error. */
static bool make_room(exec *x) {
    if (x->rows_n < x->rows_cap) {
        return true;
    }
    size_t cap = x->rows_cap ? 2 * x->rows_cap : 64;
    budget *b = x->page->ask.op->budget;
    if (b && !budget_take(b, (cap - x->rows_cap) * sizeof *x->rows)) {
        return query__may_keep(x);
    }
    x->rows_cap = cap;
    x->rows = mem_resize(x->rows, cap * sizeof *x->rows);
    return true;
}

void query__free_rows(exec *x) {
    if (x->page->ask.op->budget) {
        budget_give(x->page->ask.op->budget, x->rows_cap * sizeof *x->rows);
    }
    free(x->rows);
}

static void hold_row(exec *x, const query_value *values) {
    ordered_row row = {.place = x->found->place, .row = x->row};
    if (x->rows_n == 0 && x->access.reached.skipped) { /* skipped rows are not held */
        x->rows_wanted =
            x->rows_total - x->access.reached.skipped < x->rows_wanted ? x->rows_total - x->access.reached.skipped : x->rows_wanted;
    }
    if (x->rows_n == ORDERED_MAX || (x->rows_wanted > ORDERED_MAX && x->access.report.way == WAY_SCAN)) {
        x->runner.code = refuse_sorting(x);
        return;
    }
    if (x->rows_n == x->rows_wanted) {
        ordered_row *top = &x->rows[0];
        if (compare_rows(x->select, values, row.place.number, row.row, top->values, top->place.number, top->row) >= 0) {
            x->access.turn.beyond = x->access.turn.in_order;
            return;
        }
        row.values = top->values;
        keep_values(x, values, row.values);
        *top = row;
        sift_down(x, 0);
        tidy_values(x);
        return;
    }
    if (!make_room(x)) {
        return;
    }
    row.values = arena_array(&x->keep, query_value, x->select->order_n);
    keep_values(x, values, row.values);
    if (x->access.turn.in_order && x->found->body.n <= KEPT_BODY_BYTES) {
        row.body = arena_copy(&x->keep, x->found->body);
        row.head = x->found->head;
    }
    x->rows[x->rows_n++] = row;
    sift_up(x, x->rows_n - 1);
}

/* Whether the order value is itself the row. */
static bool shows_order_value(const query_select *s) {
    return s->order_n == 1 && s->columns_n == 1 && query_same_expr(s->columns[0].expr, s->order[0].expr);
}

/* Rows with their item's _rid are distinct anyway: SDKs select it when they merge ranges in order. */
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
    bool again = x->select->distinct && shows_order_value(x->select); /* rows with an equal value were returned already */
    uint64_t number = again ? at->number : x->found->place.number, row = again ? at->row : x->row;
    bool after = x->by_count || !at->ordered || compare_rows(x->select, values, number, row, at->values, at->number, at->row) > 0;
    bool defined = value_is_defined(&values[0]);
    bool meant = x->cost.nearest.indexed ? defined : !x->access.turn.only_undefined || !defined;
    if (after && meant && x->runner.code == OK) {
        x->access.turn.matched++;
        hold_row(x, values);
    }
    x->row++;
    return query__may_keep(x);
}

static int sort_order(const void *a, const void *b, void *select) {
    return compare_ordered(select, a, b);
}

/* A held row that is now returned: its item is loaded, and its rows are counted up to the one wanted. */
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
    bool wanted = value_is_defined(&v) && (!x->select->distinct || query__add_distinct(x, &v));
    s->go_on = x->runner.code == OK && (!wanted || x->recalling || query__give_row(x, &v));
    return false;
}

static err show_ordered(exec *x, const ordered_row *row, bool *go_on_out) {
    item_found found = {.head = row->head, .body = row->body, .place = row->place};
    err code = OK;
    if (x->kept) {
        found = *x->kept;
        code = found.body.n ? OK : E_NOT_FOUND;
    } else if (!row->body.n) {
        code = item_read_place(x->page->ask.items, x->page->ask.container, x->page->cursor->moment, row->place, &found);
    }
    *go_on_out = true;
    if (code == E_NOT_FOUND) { /* deleted since */
        return OK;
    }
    TRY(code);
    shown_row s = {x, row->row, true};
    uint64_t taken = x->calls.taken, skipped = x->page->position.skipped;
    arena_reset(&x->row_arena);
    query__set_item(x, &found);
    query_each_row(&x->runner, x->select, &x->item_value, show_row, &s);
    *go_on_out = s.go_on;
    if (x->skips && x->page->position.skipped > skipped) {
        query_cost_skipped(&x->cost, 1);
    } else if (!x->full) {
        query__charge_calls(x, taken);
        query_cost_shown(&x->cost, row->place.number, found.body.n);
    }
    item_give(&found);
    return x->runner.code;
}

/* Rows before `first` were returned by earlier pages. */
static err show_all_ordered(exec *x, size_t first) {
    query_page *p = x->page;
    if (x->rows_n == 0) {
        return OK;
    }
    qsort_r(x->rows, x->rows_n, sizeof *x->rows, sort_order, (void *)(uintptr_t)x->select);
    for (size_t i = 0, begin = 0, n = 0; i < x->rows_n; i++) {
        bool go_on;
        if (query__calls_functions(x)) {
            if (i == begin + n) {
                begin = i;
                TRY(query__load_ahead(x, &x->rows[i], x->rows_n - i, &n));
            }
            query__enter_loaded(x, i - begin);
        }
        x->recalling = i < first;
        if (!query__may_continue(x) && i > first) { /* at least one row a page; the next page begins here */
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

/* Gathers text statistics over all items, whether they pass WHERE or not: scores depend on them. */
static err count_items(exec *x) {
    const query_select *select = x->select;
    query_select all = *select;
    item_cursor cursor;
    item_cursor_copy(&cursor, x->page->cursor);
    all.where = NULL;
    x->select = &all;
    x->on_row = count_row;
    err code = query_rank_counts(x->rank) ? query__read_items(x, &cursor, SIZE_MAX, false) : OK;
    x->select = select;
    return code;
}

static bool rank_row(void *context) {
    exec *x = context;
    if (!make_room(x)) {
        return false;
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

/* Drops rows that earlier pages returned. */
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

err query__run_ranked(exec *x) {
    query_page *p = x->page;
    item_cursor all;
    item_cursor_copy(&all, p->cursor);
    x->rank = query_rank_new(&x->keep, x->select);
    TRY(count_items(x));
    x->on_row = rank_row;
    TRY(query__read_items(x, &all, SIZE_MAX, false));
    fuse_rows(x);
    drop_given(x);
    TRY(show_all_ordered(x, 0));
    p->outcome.more = x->full;
    p->cursor->n = p->outcome.more ? p->cursor->n : 0;
    return OK;
}

/* ---- running a page of ORDER BY ---- */

static err check_order(const exec *x) {
    if (x->page->ask.sorts) {
        return OK;
    }
    container_index *index = container_space_index(x->page->ask.container->space);
    err code = query_check_order(x->page->ask.op, x->page->ask.query, &index->policy);
    container_index_give(index);
    return code;
}

/* Whether each item that passes WHERE has exactly one row, so that a row can be counted without being made. */
static bool has_one_row(const exec *x) {
    const query *q = x->page->ask.query;
    const query_select *s = x->select;
    find_path shown, ordered;
    if (s->sources_n != 1 || s->sources[0].kind != SOURCE_ROOT || s->distinct || q->udfs_n) {
        return false;
    }
    if (!s->value || !query_path_of(q, s->columns[0].expr, &shown)) {
        return !s->value || s->columns[0].expr->kind == EXPR_OBJECT || s->columns[0].expr->kind == EXPR_ARRAY;
    }
    bool id = shown.n == 1 && slice_eq(shown.steps[0].name, SLICE_LIT("id"));
    return shown.n == 0 || id || (query_path_of(q, s->order[0].expr, &ordered) && query_same_expr(s->columns[0].expr, s->order[0].expr));
}

/* Whether index entries also tell which items pass WHERE. Then a skipped row is charged as an entry, however it was found. */
static bool skips_by_entries(exec *x) {
    const query_select *s = x->select;
    find_path p;
    if (x->page->ask.query->offset <= 0 || !x->cost.ordered || !has_one_row(x) ||
        !query_path_of(x->page->ask.query, s->order[0].expr, &p)) {
        return false;
    }
    if (!s->where) {
        return true;
    }
    find_demands all = query_demands_of(&x->runner, &x->cost.index->policy);
    bool decided = all.whole && s->order_n == 1;
    for (size_t i = 0; i < all.n && decided; i++) {
        const find_demand *d = &all.list[i];
        decided = d->exact && d->steps && index_path_of(d->steps, d->steps_n) == index_path_of(p.steps, p.n);
    }
    return decided;
}

/* An ordered walk needs to hold one window of rows at a time; a sort must hold all rows of OFFSET and the page together. */
void query__enter_walk(void *context) {
    exec *x = context;
    if (!x->several && !x->select->distinct && x->rows_n == 0) {
        x->windowed = x->rows_wanted > ORDERED_WINDOW;
        x->rows_wanted = x->windowed ? ORDERED_WINDOW : x->rows_wanted;
    }
}

/* Rows that OFFSET and the page still need, and one more. */
static double count_wanted(const exec *x, uint64_t passed) {
    const query_page *p = x->page;
    double left = x->select->distinct ? -1 : query__rows_left(x), room = (double)(p->ask.rows_max - p->outcome.rows);
    return (double)passed + (double)query__offset_left(x) + (left >= 0 && left < room ? left : room) + 1;
}

/* The deadline passed: the next page begins with the item, or the entry, at which this one stopped. */
static void stop_at(query_page *p, const query_value *values, uint64_t number) {
    p->position.ordered = p->outcome.more = true;
    p->position.values = (query_value *)(uintptr_t)values;
    p->position.number = number;
    p->position.row = UINT32_MAX;
}

/* The values of the entry at which the walk stopped. */
static const query_value *values_reached(exec *x) {
    query_value *values = arena_array(&x->keep, query_value, x->select->order_n); /* all undefined */
    size_t n;
    for (size_t i = 0; i < x->select->order_n; i++) {
        query_value_decode(&x->keep, x->access.reached.stopped_values[i].bytes, &values[i], &n);
    }
    return values;
}

/* Reads and returns as many rows as are held at a time. */
static err run_window(exec *x) {
    query_page *p = x->page;
    item_cursor all;
    item_cursor_copy(&all, p->cursor);
    uint64_t passed = x->by_count ? p->position.passed : 0;
    double wanted = count_wanted(x, passed);
    if (x->select->distinct && wanted > ORDERED_MAX) { /* each page reads all of them again */
        return refuse_sorting(x);
    }
    x->rows_wanted = x->rows_total = wanted < (double)SIZE_MAX / 2 ? (size_t)wanted : SIZE_MAX / 2;
    x->rows_n = 0;
    x->windowed = false;
    x->stopped_values = NULL;
    err code = query__read_items(x, &all, x->rows_wanted, p->cursor->n == 1);
    if (code == E_QUERY_TOO_LONG && x->late) {
        return sorts_too_long(x);
    }
    TRY(code);
    const query_value *stopped = x->access.reached.stopped_values ? values_reached(x) : x->stopped_values;
    uint64_t number = x->access.reached.stopped_values ? x->access.reached.stopped_number : x->stopped_number;
    if (x->late && (!stopped || all.n > 1)) { /* the rows held may not be the first in order */
        return sorts_too_long(x);
    }
    size_t held = x->rows_n;
    p->position.skipped += x->access.reached.skipped;
    query_cost_skipped(&x->cost, x->access.reached.skipped);
    TRY(show_all_ordered(x, passed));
    p->outcome.more = x->full || (held == x->rows_wanted && !x->finished);
    if (stopped && !x->full && !x->finished) {
        stop_at(p, stopped, number);
        x->windowed = false;
    }
    return OK;
}

err query__run_ordered(exec *x) {
    query_page *p = x->page;
    TRY(check_order(x));
    x->by_count = x->select->distinct && !shows_order_value(x->select) && !shows_rid(x->select);
    x->skips = skips_by_entries(x);
    x->on_row = order_row;
    if (x->select->order_n > 16) {
        return E_QUERY_TOO_LONG;
    }
    TRY(run_window(x));
    while (x->windowed && p->outcome.more && !x->full) {
        query__keep_position(x);
        arena_reset(&x->keep);
        arena_reset(&x->ordered);
        x->ordered_live = 0;
        TRY(run_window(x));
    }
    p->cursor->n = p->outcome.more ? p->cursor->n : 0;
    return OK;
}
