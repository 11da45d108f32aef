/* Rows that are known once all items are read: groups, and distinct values.
 *
 * They come in the order of their keys (the group's values, or the distinct value itself), and the next page begins behind the last key
 * given: wherever its items are by then. When a page's time is up before all items were read, what is known so far goes into the
 * continuation, or, to a client that adds rows up, is shown as a part of them (query_stage). */
#include "query/exec_int.h"

#include <stdlib.h>

#include "query/plan.h"
#include "query/position.h"

enum { PARTS_BYTES_MAX = 1024 * 1024 }; /* held by a page of parts, which is shown whole */

typedef struct keyed keyed;

/* What a page has gathered: groups, or distinct values. */
typedef struct gathered {
    bool (*save)(exec *x, bson_t *list, size_t bytes_max);
    bool (*load)(exec *x, slice list);
    void (*show)(exec *x, keyed *k); /* in order, through give_keyed */
} gathered;

/* Which keys were given by earlier pages. */
typedef struct after_key {
    const query_position *at;
    size_t n;      /* values of a key */
    bool by_check; /* the last key was too long for the continuation, and is still there */
    bool passed;
} after_key;

struct keyed {
    exec *exec;
    const gathered *gathered;
    query_position begun; /* as the page found it */
    after_key after;
    item_cursor cursor; /* moved along by the page, if it reads items */
};

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

/* False: stop. A page whose time is up goes on with the next one, as one that is full does. */
static bool may_show(exec *x) {
    if (!query__may_go_on(x)) {
        x->full = x->late;
        x->runner.code = x->late ? x->runner.code : E_QUERY_TOO_LONG;
        return false;
    }
    return true;
}

static bool give_keyed(exec *x, const query_value *row, const query_value *key) {
    bool go_on = query__give_row(x, row);
    if (!x->full) {
        x->page->position.ordered = true;
        x->page->position.values = (query_value *)(uintptr_t)key;
        x->page->position.cut = 0;
    }
    return go_on;
}

/* ---- through the continuation ---- */

/* Not what subqueries gather, which is no group yet; and without items there is nothing to go on with. */
static bool may_carry(const exec *x) {
    return !x->gather && x->select->sources_n > 0;
}

/* Does the client add rows up, as it does with those of several ranges? */
static bool merges(const exec *x) {
    const query *q = x->page->query;
    bool bounded = q->top >= 0 || q->limit >= 0 || q->offset > 0; /* some rows would be cut off */
    return q->aggregates && !bounded && may_carry(x) && query_is_rewritten(q);
}

/* Puts what was gathered into the position. False: it is too much. */
static bool carry(keyed *k, query_stage stage) {
    exec *x = k->exec;
    query_position *at = &x->page->position;
    bson_t list = BSON_INITIALIZER;
    bool good = may_carry(x) && k->gathered->save(x, &list, QUERY_CARRIED_BYTES_MAX) && list.len <= QUERY_CARRIED_BYTES_MAX;
    if (good) {
        at->stage = stage;
        at->carried = arena_copy(x->page->op->arena, slice_of(bson_get_data(&list), list.len));
    }
    bson_destroy(&list);
    return good;
}

/* What index entries have told so far begins nowhere and ends nowhere: next time items tell it. */
static err begin_again(keyed *k) {
    query_page *p = k->exec->page;
    p->position = k->begun;
    p->position.stage = STAGE_CARRIED;
    p->more = true;
    return OK;
}

/* The time was up before all was read. */
static err go_on_later(keyed *k) {
    exec *x = k->exec;
    if (x->access.way == WAY_COVERED) {
        return begin_again(k);
    }
    if (!carry(k, STAGE_CARRIED)) {
        return E_QUERY_TOO_LONG;
    }
    *x->page->cursor = k->cursor;
    x->page->more = true;
    return OK;
}

/* The first item, or row, is never too late: no page is in vain. */
static void start_clock(exec *x) {
    x->late = false;
    if (!x->page->quick) {
        x->items = 0;
        query_renew_steps(&x->runner, QUERY_ITEM_STEPS);
    }
}

static err show(keyed *k) {
    exec *x = k->exec;
    query_page *p = x->page;
    arena_reset(&x->row_arena);
    start_clock(x);
    k->gathered->show(x, k);
    if (x->full && p->rows == 0 && merges(x)) {
        return E_QUERY_TOO_LONG;
    }
    p->more = x->full;
    bool reads_again = k->begun.stage == STAGE_WHOLE && !(x->late && p->rows == 0); /* the next page may */
    if (x->full && (x->late || k->begun.stage != STAGE_WHOLE) && !carry(k, STAGE_FOUND) && !reads_again) {
        return E_QUERY_TOO_LONG;
    }
    p->cursor->n = p->more ? p->cursor->n : 0;
    return x->runner.code;
}

/* ---- in parts ---- */

/* A part ends before an item, not within its rows. */
static bool may_end_here(const exec *x) {
    return x->page->position.stage == STAGE_PARTS && x->grouped != x->item.number;
}

static bool is_a_part(const keyed *k) {
    const exec *x = k->exec;
    bool small = query_groups_count(x->groups) <= x->page->rows_max && x->keep.held <= PARTS_BYTES_MAX;
    return k->begun.stage == STAGE_PARTS || (small && x->access.way != WAY_COVERED);
}

static bool is_wanted(void *after, const query_value *keys) {
    return is_after(after, keys);
}

/* Groups that were given before there were parts stay given. */
static void leave_out_given(keyed *k) {
    if (k->begun.ordered) {
        query_groups_only(k->exec->groups, is_wanted, &k->after);
    }
}

/* What was gathered is too much for a page, or ends nowhere: some of the same items are read again, as a part, in the time of a second
 * page. */
static err read_a_part(keyed *k) {
    exec *x = k->exec;
    query_page *p = x->page;
    int64_t span = p->until_us - x->begun_us;
    p->until_us = span > 0 ? clock_monotonic_us(p->items->clock) + span : p->until_us;
    x->calls.until_us = p->until_us;
    arena_free(&x->keep);
    arena_free(&x->row_arena);
    if (p->op->budget) {
        budget_renew(p->op->budget);
    }
    x->groups = query_groups_new(&x->keep, x->select);
    x->runner.code = OK;
    x->full = false;
    start_clock(x);
    k->cursor = *p->cursor;
    p->position.stage = STAGE_PARTS;
    leave_out_given(k);
    return query__read_items(x, &k->cursor, SIZE_MAX, true);
}

/* A part is shown whole. VALUE of a sum that is undefined stays so, whatever follows. */
static err show_part(keyed *k) {
    exec *x = k->exec;
    query_page *p = x->page;
    arena_reset(&x->row_arena);
    x->full = false;
    p->rows_max = p->bytes_max = SIZE_MAX;
    p->until_us = 0;
    k->gathered->show(x, k);
    *p->cursor = k->cursor;
    p->cursor->n = x->select->value && query_groups_spoiled(x->groups) ? 0 : k->cursor.n;
    p->more = p->cursor->n > 0;
    p->position = k->begun;
    p->position.carried = SLICE_EMPTY;
    p->position.stage = STAGE_PARTS;
    return p->rows == 0 && p->more ? E_QUERY_TOO_LONG : x->runner.code;
}

/* Not where rows go on behind a key that is not known in full, nor where showing them calls functions, which takes time. */
static err run_in_parts(keyed *k) {
    exec *x = k->exec;
    if (k->begun.cut || (x->select->group_n && query__calls_functions(x))) {
        return E_QUERY_TOO_LONG;
    }
    if (x->runner.code != OK || !is_a_part(k)) {
        TRY(read_a_part(k));
    }
    return show_part(k);
}

/* ---- a page ---- */

static err read_keyed(keyed *k) {
    exec *x = k->exec;
    if (k->begun.stage == STAGE_FOUND) {
        return OK;
    }
    return may_carry(x) ? query__read_items(x, &k->cursor, SIZE_MAX, true) : query__read_all(x);
}

/* Such a position could be ours, and what it carries is read. */
static bool is_sound(keyed *k) {
    const query_position *at = &k->begun;
    if (at->stage == STAGE_WHOLE) {
        return true;
    }
    if (at->stage == STAGE_PARTS) {
        return merges(k->exec) && !at->cut && !at->carried.n;
    }
    bool possible = may_carry(k->exec) && !(at->stage == STAGE_CARRIED && merges(k->exec));
    return possible && (!at->carried.n || k->gathered->load(k->exec, at->carried));
}

static err run_keyed(exec *x, const gathered *gathered, size_t key_n) {
    query_page *p = x->page;
    keyed k = {.exec = x, .gathered = gathered, .begun = p->position, .cursor = *p->cursor};
    k.after = (after_key){.at = &k.begun, .n = key_n};
    if (!is_sound(&k)) {
        return E_BAD_CONTINUATION;
    }
    if (k.begun.stage == STAGE_PARTS) {
        leave_out_given(&k);
    }
    err code = read_keyed(&k);
    bool ended = code == OK && !x->late && k.begun.stage != STAGE_PARTS;
    bool too_much = code == E_QUERY_TOO_LONG || code == E_MEMORY || code == E_BUSY_MEMORY;
    if (!ended && (code == OK || too_much) && !p->quick && merges(x)) {
        return run_in_parts(&k);
    }
    TRY(code);
    return ended ? show(&k) : go_on_later(&k);
}

/* ---- groups ---- */

static bool group_row(void *context) {
    exec *x = context;
    bool may_end = may_end_here(x);
    x->full = may_end && x->keep.held > PARTS_BYTES_MAX;
    if (x->full || !query_groups_add(x->groups, &x->runner, x->times, may_end ? x->page->rows_max : SIZE_MAX)) {
        x->full = true;
        return false;
    }
    x->grouped = x->item.number;
    return query__may_keep(x);
}

static bool save_groups(exec *x, bson_t *list, size_t bytes_max) {
    return query_groups_save(x->groups, list, bytes_max);
}

static bool load_groups(exec *x, slice list) {
    return query_groups_load(x->groups, &x->runner, list);
}

static bool find_check(void *context) {
    keyed *k = context;
    k->after.by_check = query_position_check(k->exec->runner.keys, k->after.n) == k->begun.check;
    return !k->after.by_check;
}

static bool show_group(void *context) {
    keyed *k = context;
    exec *x = k->exec;
    if (!is_after(&k->after, x->runner.keys)) {
        return true;
    }
    if (!may_show(x)) {
        return false;
    }
    uint64_t taken = x->calls.taken;
    query_value v = query_project(&x->runner, x->select);
    if (x->runner.code == E_QUERY_TOO_LONG && query__time_is_up(x->page)) { /* its functions were not called any more */
        x->runner.code = OK;
        x->full = x->late = true;
        return false;
    }
    bool go_on = x->runner.code == OK && (!value_is_defined(&v) || give_keyed(x, &v, x->runner.keys));
    if (!x->full) {
        query__charge_calls(x, taken);
    }
    return go_on;
}

static void show_groups(exec *x, keyed *k) {
    query_groups_sort(x->groups);
    if (k->begun.cut) {
        query_groups_each(x->groups, &x->runner, find_check, k);
    }
    query_groups_each(x->groups, &x->runner, show_group, k);
}

err query__run_groups(exec *x) {
    static const gathered groups = {save_groups, load_groups, show_groups};
    x->groups = query_groups_new(&x->keep, x->select);
    x->on_row = group_row;
    if (x->select->sources_n == 0) {
        query_each_row(&x->runner, x->select, NULL, group_row, x);
    }
    return run_keyed(x, &groups, x->select->group_n);
}

/* ---- DISTINCT ---- */

bool query__is_new(exec *x, const query_value *v) {
    query_pay_value(&x->runner, v);
    return query_distinct_add(&x->distinct, v) && query__may_keep(x);
}

static bool distinct_row(void *context) {
    exec *x = context;
    query_value v = query_project(&x->runner, x->select);
    if (x->runner.code == OK && value_is_defined(&v)) {
        query__is_new(x, &v);
    }
    return x->runner.code == OK;
}

static bool save_distinct(exec *x, bson_t *list, size_t bytes_max) {
    bool good = true;
    for (size_t i = 0; i < x->distinct.n && good; i++) {
        const query_value *v = &x->distinct.values[i];
        good = v->bytes.n <= bytes_max && value_append_exact(list, i, v) && list->len <= bytes_max;
    }
    return good;
}

static bool load_distinct(exec *x, slice list) {
    bson_t document;
    bson_iter_t each;
    bool good = bson_init_static(&document, (const uint8_t *)list.p, list.n) && bson_iter_init(&each, &document);
    while (good && bson_iter_next(&each)) {
        query_value v = value_of_exact(&each);
        good = value_is_defined(&v) && query_distinct_add(&x->distinct, &v);
    }
    return good;
}

static int by_value(const void *a, const void *b) {
    return value_compare(a, b);
}

/* What was seen is not asked for any more: the values may be sorted where they are. */
static void show_distinct(exec *x, keyed *k) {
    query_value *values = x->distinct.values;
    if (x->distinct.n) {
        qsort(values, x->distinct.n, sizeof *values, by_value);
    }
    for (size_t i = 0; i < x->distinct.n && k->begun.cut && !k->after.by_check; i++) {
        k->after.by_check = query_position_check(&values[i], 1) == k->begun.check;
    }
    for (size_t i = 0; i < x->distinct.n; i++) {
        if (is_after(&k->after, &values[i]) && !(may_show(x) && give_keyed(x, &values[i], &values[i]))) {
            break;
        }
    }
}

err query__run_distinct(exec *x) {
    static const gathered distinct = {save_distinct, load_distinct, show_distinct};
    x->on_row = distinct_row;
    return run_keyed(x, &distinct, 1);
}
