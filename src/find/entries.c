/* entries.c — lists of items, and reading the entries of demands into them. */
#include <stdlib.h>

#include "base/memory.h"
#include "find/find_int.h"

enum { ENTRIES_BETWEEN_CHECKS = 256, FEW_ENTRIES = 1024 };

/* ---- lists of items ---- */

bool find__add_ref(find__finder *f, find__refs *r, const item_entry *e) {
    budget *b = f->view->op->budget;
    if (r->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 256;
        if (b && !budget_take(b, (cap - r->cap) * sizeof *r->list)) {
            f->code = budget_error(b);
            return false;
        }
        r->cap = cap;
        r->list = mem_resize(r->list, r->cap * sizeof *r->list);
    }
    r->list[r->n++] = (item_ref){e->number, e->segment};
    return true;
}

void find__free_refs(const find__finder *f, find__refs *r) {
    if (f->view->op->budget) {
        budget_give(f->view->op->budget, r->cap * sizeof *r->list);
    }
    free(r->list);
}

static int by_number(const void *a, const void *b) {
    uint64_t x = ((const item_ref *)a)->number, y = ((const item_ref *)b)->number;
    return (x > y) - (x < y);
}

void find__sort_refs(find__refs *r) {
    size_t n = 0;
    bool sorted = true;
    for (size_t i = 1; i < r->n && sorted; i++) {
        sorted = r->list[i - 1].number < r->list[i].number;
    }
    if (sorted) {
        return;
    }
    qsort(r->list, r->n, sizeof *r->list, by_number);
    for (size_t i = 0; i < r->n; i++) {
        if (n == 0 || r->list[n - 1].number != r->list[i].number) {
            r->list[n++] = r->list[i];
        }
    }
    r->n = n;
}

/* ---- entries of a demand ---- */

err find__count_work(find__finder *f, unsigned entries) {
    f->looked += entries;
    if (f->looked >= ENTRIES_BETWEEN_CHECKS && f->code == OK) {
        f->looked = 0;
        f->code = op_check(f->view->op);
    }
    return f->code;
}

bool find__next_entry(find__finder *f, item_lookup *l, item_entry *e) {
    return find__count_work(f, 1) == OK && item_lookup_next(l, e);
}

err find__close_lookup(const find__finder *f, item_lookup *l) {
    err ended = item_lookup_close(l);
    return f->code != OK ? f->code : ended;
}

item_lookup *find__open_span(const find__finder *f, const find_span *span, size_t most) {
    return span->point ? item_lookup_open_value(f->view, span->path, span->from, most > FEW_ENTRIES)
                       : item_lookup_open(f->view, span->path);
}

err find__read_span(find__finder *f, const find_span *span, uint64_t after, find__refs *found, size_t most, size_t *n) {
    item_entry e;
    item_lookup *l = find__open_span(f, span, most);
    item_lookup_seek(l, span->from, span->point ? after + 1 : 0, false);
    while (*n < most && find__next_entry(f, l, &e) && find_within(span, e.value)) {
        (*n)++;
        if (found && e.number > after && !find__add_ref(f, found, &e)) {
            break;
        }
    }
    return find__close_lookup(f, l);
}

err find__read_demand(find__finder *f, const find_demand *c, uint64_t after, find__refs *found, size_t most, size_t *n_out) {
    *n_out = 0;
    for (size_t i = 0; i < c->n && *n_out < most; i++) {
        TRY(find__read_span(f, &c->spans[i], after, found, most, n_out));
    }
    f->access->report.entries += *n_out;
    if (found) {
        find__sort_refs(found);
    }
    return OK;
}

err find__find_large(find__finder *f) {
    static const find_span all = {.path = INDEX_PATH_LARGE, .point = true};
    size_t n = 0;
    bool any;
    TRY(item_view_any_large(f->view, &any));
    return any && !f->large.n ? find__read_span(f, &all, 0, &f->large, FIND_REFS_MAX, &n) : OK;
}
