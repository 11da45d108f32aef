/* cover.c — covered queries: answered from entries, or from the number of items, without loading items. */
#include "find/find_int.h"

bool find__give_value(find__finder *f, slice spelled, uint64_t times, bool decided) {
    if (times && !f->access->visitor.on_value(f->access->visitor.context, spelled, times, decided)) {
        f->view->stopped = true;
    }
    return !f->view->stopped;
}

/* Whether each entry of the only demand is of another item. */
static err is_entry_per_item(find__finder *f, bool *single_out) {
    const find_demand *d = &f->demands.list[0];
    bool many = false;
    TRY(f->demands.n == 1 && d->steps ? find__has_many(f, index_path_of(d->steps, d->steps_n), &many) : OK);
    *single_out = f->demands.n == 1 && d->steps && !many;
    return OK;
}

/* Counts entries, without a list of their items. */
static err count_entries(find__finder *f) {
    const find_demand *d = &f->demands.list[0];
    find__walk w = {.finder = f, .path = index_path_of(d->steps, d->steps_n)};
    size_t n = 0;
    find__bound_walk(&w, f->view->op->arena);
    for (size_t i = 0; i < w.spans_n; i++) {
        TRY(find__read_span(f, &w.spans[i], 0, NULL, SIZE_MAX, &n));
    }
    f->access->report.entries += n;
    f->access->report.used = d;
    find__give_value(f, SLICE_EMPTY, n, true);
    return OK;
}

/* Counts the items that meet all demands, which together are the whole condition. */
static err cover_count(find__finder *f, bool *found_out) {
    const find_demand *used;
    find__refs found = {0};
    TRY(is_entry_per_item(f, found_out));
    if (*found_out) {
        return count_entries(f);
    }
    TRY(find__smallest(f, 0, FIND_REFS_MAX, &used));
    *found_out = used != NULL;
    if (!used) {
        return OK;
    }
    f->decides = true;
    err code = find__take_all(f, used, 0, &found);
    code = code == OK ? find__intersect(f, used, &found) : code;
    size_t left = found.n - found.excluded;
    *found_out = left == 0 || (size_t)__builtin_popcount(f->access->report.intersected) == f->demands.n - 1;
    if (code == OK && *found_out) {
        f->access->report.used = used;
        find__give_value(f, SLICE_EMPTY, left, true);
    } else {
        f->access->report.intersected = 0;
    }
    find__free_refs(f, &found);
    f->decides = false;
    return code;
}

static bool all_exact(const find__finder *f) {
    for (size_t i = 0; i < f->demands.n; i++) {
        if (!f->demands.list[i].exact) {
            return false;
        }
    }
    return f->demands.whole;
}

/* Not possible where entries may be of expired or wiped items or of other ranges' items, or if items of the stretch were already read. */
err find__covered(find__finder *f, bool *found_out) {
    find_access *a = f->access;
    const item_view *v = f->view;
    *found_out = false;
    if (!a->asked.cover.possible || v->filtered || v->stretch.after || v->container->ttl != TTL_OFF || v->wipes) {
        return OK;
    }
    if (a->asked.cover.counts && !a->asked.conditional) {
        *found_out = true;
        find__give_value(f, SLICE_EMPTY, v->items_n, true);
    } else if (a->asked.quick && v->items_n > FIND_QUICK_ENTRIES) {
        return E_QUERY_TOO_LONG;
    } else if (!v->partition || v->local) {
        TRY(find__find_large(f));
        bool path = a->asked.cover.path_given && index_policy_covers(&v->index->policy, a->asked.cover.path.steps, a->asked.cover.path.n);
        if (f->large.n == 0 && path && (a->asked.cover.multiplicity || a->asked.cover.distinct)) {
            TRY(find__cover_path(f, found_out));
        } else if (f->large.n == 0 && a->asked.cover.counts && f->demands.n && all_exact(f)) {
            TRY(cover_count(f, found_out));
        }
        f->large.n = 0;
    }
    a->report.way = *found_out ? WAY_COVERED : a->report.way;
    return OK;
}
