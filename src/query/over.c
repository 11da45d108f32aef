#include "query/over.h"

#include <stdlib.h>

#include "base/memory.h"
#include "query/distinct.h"
#include "query/gather.h"
#include "query/group.h"

enum { STEPS = 2 * QUERY_ITEM_STEPS };

typedef struct over_row {
    query_value value;
    query_value *order; /* values of ORDER BY */
    size_t number;      /* insertion order; breaks ties */
} over_row;

struct query_over {
    const query_select *select;
    const query *query;
    query_runner runner;
    arena row_arena, keep;
    query_gather *gather;
    query_groups *groups;
    over_row *rows;
    size_t n, cap;
};

query_over *query_over_new(op *o, const query *q, int64_t now_ms) {
    query_over *over = mem_alloc(sizeof *over);
    *over =
        (query_over){.select = q->select, .query = q, .row_arena = arena_init_counted(o->budget), .keep = arena_init_counted(o->budget)};
    query_runner_init(&over->runner, q, o, &over->row_arena, now_ms);
    query_renew_steps(&over->runner, STEPS);
    over->runner.context.keep = o->arena;
    over->gather = query_gather_new(&over->keep, q->select);
    over->groups = q->aggregates ? query_groups_new(&over->keep, q->select) : NULL;
    return over;
}

void query_over_free(query_over *over) {
    if (over) {
        arena_free(&over->row_arena);
        arena_free(&over->keep);
        free(over->rows);
        free(over);
    }
}

static bool keep_row(void *context) {
    query_over *x = context;
    query_value v = query_project(&x->runner, x->select);
    if (!value_is_defined(&v) || x->runner.code != OK) {
        return x->runner.code == OK;
    }
    if (x->n == x->cap) {
        x->cap = x->cap ? 2 * x->cap : 64;
        x->rows = mem_resize(x->rows, x->cap * sizeof *x->rows);
    }
    over_row *row = &x->rows[x->n];
    *row =
        (over_row){.value = value_keep(&x->keep, &v), .order = arena_array(&x->keep, query_value, x->select->order_n + 1), .number = x->n};
    for (size_t i = 0; i < x->select->order_n; i++) {
        query_value by = query_eval(&x->runner, x->select->order[i].expr);
        row->order[i] = value_keep(&x->keep, &by);
    }
    x->n++;
    return query_may_keep(&x->runner);
}

static bool add_row(void *context) {
    query_over *x = context;
    if (!x->groups) {
        return keep_row(x);
    }
    query_groups_add(x->groups, &x->runner, 1, SIZE_MAX);
    return x->runner.code == OK;
}

err query_over_add(query_over *x, slice document) {
    query_value value = value_document(TYPE_OBJECT, document);
    arena_reset(&x->row_arena);
    if (x->gather) {
        query_gather_add(x->gather, &x->runner, &value);
    } else {
        query_each_row(&x->runner, x->select, &value, add_row, x);
    }
    return x->runner.code;
}

size_t query_over_rows(const query_over *over) {
    return over->n;
}

size_t query_over_bytes(const query_over *over) {
    return over->keep.held;
}

static int by_order(const void *a, const void *b, void *select) {
    const query_select *s = select;
    const over_row *x = a, *y = b;
    for (size_t i = 0; i < s->order_n; i++) {
        int order = value_compare(&x->order[i], &y->order[i]);
        if (order) {
            return s->order[i].descending ? -order : order;
        }
    }
    return x->number < y->number ? -1 : 1;
}

static void drop_doubles(query_over *x) {
    query_distinct seen = {.keep = &x->keep};
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++) {
        if (query_distinct_add(&seen, &x->rows[i].value)) {
            x->rows[n++] = x->rows[i];
        }
    }
    x->n = n;
}

/* The rows [from, to) that OFFSET, TOP and LIMIT select. */
static void bounds(const query_over *x, double *from_out, double *to_out) {
    const query *q = x->query;
    double most = q->top >= 0 && (q->limit < 0 || q->top < q->limit) ? q->top : q->limit;
    *from_out = q->offset > 0 ? q->offset : 0;
    *to_out = most >= 0 && *from_out + most < (double)x->n ? *from_out + most : (double)x->n;
}

static bool may_go_on(void *context) {
    return ((query_over *)context)->runner.code == OK;
}

err query_over_write(query_over *x, uint64_t skip, size_t rows_max, size_t bytes_max, buf *out, size_t *rows_out, bool *more_out) {
    double from, to;
    *rows_out = 0;
    *more_out = false;
    if (x->gather) {
        query_gather_each(x->gather, &x->runner, may_go_on, add_row, x);
    }
    if (x->groups) {
        arena_reset(&x->row_arena);
        query_groups_each(x->groups, &x->runner, keep_row, x);
    }
    if (x->runner.code != OK || x->n == 0) {
        return x->runner.code;
    }
    if (x->select->order_n) {
        qsort_r(x->rows, x->n, sizeof *x->rows, by_order, (void *)(uintptr_t)x->select);
    }
    if (x->select->distinct) {
        drop_doubles(x);
    }
    bounds(x, &from, &to);
    double at = from + (double)skip;
    for (; at < to && *rows_out < rows_max && out->n <= bytes_max; at++) {
        if ((*rows_out)++) {
            buf_add_byte(out, ',');
        }
        value_write(out, &x->rows[(size_t)at].value);
    }
    *more_out = at < to;
    query_may_keep(&x->runner);
    return x->runner.code;
}
