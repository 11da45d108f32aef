/* Rows that are known once all items are read: groups, and distinct values. */
#include "query/exec_int.h"

#include <stdlib.h>

#include "query/position.h"

/* ---- groups ---- */

static bool group_row(void *context) {
    exec *x = context;
    query_groups_add(x->groups, &x->runner, x->times);
    return query__may_keep(x);
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
    bool go_on = query__give_row(x, row);
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
    if (!query__may_show(x)) {
        return false;
    }
    if (!is_after(&s->after, x->runner.keys)) {
        return true;
    }
    uint64_t taken = x->calls.taken;
    query_value v = query_project(&x->runner, x->select);
    bool go_on = x->runner.code == OK && (!value_is_defined(&v) || give_keyed(x, &v, x->runner.keys));
    if (!x->full) {
        query__charge_calls(x, taken);
    }
    return go_on;
}

err query__run_groups(exec *x) {
    query_page *p = x->page;
    x->groups = query_groups_new(&x->keep, x->select);
    x->on_row = group_row;
    if (x->select->sources_n == 0) {
        query_each_row(&x->runner, x->select, NULL, group_row, x);
    }
    TRY(query__read_all(x));
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

static int by_value(const void *a, const void *b) {
    return value_compare(a, b);
}

err query__run_distinct(exec *x) {
    x->on_row = distinct_row;
    TRY(query__read_all(x));
    query_position begun = x->page->position;
    after_key after = {.at = &begun, .n = 1};
    query_value *values = x->distinct.values;
    if (x->distinct.n) {
        qsort(values, x->distinct.n, sizeof *values, by_value);
    }
    for (size_t i = 0; i < x->distinct.n && begun.cut && !after.by_check; i++) {
        after.by_check = query_position_check(&values[i], 1) == begun.check;
    }
    for (size_t i = 0; i < x->distinct.n && query__may_show(x); i++) {
        if (is_after(&after, &values[i]) && !give_keyed(x, &values[i], &values[i])) {
            break;
        }
    }
    end_keyed(x);
    return x->runner.code;
}
