/* index_access.c — chooses how a range's items are found. */
#include <math.h>

#include "find/find_int.h"

enum {
    COMPARED_MAX = 1000, /* up to this many vectors are compared one by one rather than by a graph */
    ROWS_PER_LOAD = 9,   /* loading a found item takes as long as reading this many rows that lie side by side */
};

static bool any_of_other_path(const find__finder *f, index_path path) {
    for (size_t i = 0; i < f->demands.n; i++) {
        if (!find_is_of_path(&f->demands.list[i], path)) {
            return true;
        }
    }
    return false;
}

static err take_demand(find__finder *f, const find_demand *used, bool *found_out) {
    f->access->report.way = WAY_BY_NUMBER;
    f->access->report.used = used;
    f->access->turn.in_order = false;
    *found_out = true;
    TRY(find__find_large(f));
    return find__collect(f, used);
}

/* Finds a demand on another path that is so small that sorting its items costs less than walking the order. NULL: there is none. */
static err smaller_demand_of_other_path(find__finder *f, const find__walk *w, const find_demand **used_out) {
    const find_demand *best;
    if (!any_of_other_path(f, w->path)) {
        *used_out = NULL;
        return OK;
    }
    double rows = (double)f->access->asked.wanted * ((double)f->view->items_n + 1);
    double most = sqrt(f->access->asked.narrow ? rows / ROWS_PER_LOAD : rows);
    *used_out = NULL;
    size_t pays = f->access->asked.wanted == SIZE_MAX ? find__entries_worth_collecting(f)
                                                      : (size_t)(most < FIND_REFS_MAX ? most : FIND_REFS_MAX) + FIND_FIRST_PROBE;
    TRY(find__smallest(f, 0, find__quick_limit(f, pays), &best));
    *used_out = best && !find_is_of_path(best, w->path) ? best : NULL;
    return OK;
}

/* Reads groups and distinct values in key order, unless a demand on another path leaves fewer items than a page's keys would take. */
static err keyed_way(find__finder *f, bool *found_out) {
    find_access *a = f->access;
    const find_path *p = &a->asked.lead.path;
    const find_demand *best = NULL;
    bool begun = f->view->stretch.after > 0; /* the range was begun by number, and is continued that way */
    if (!a->asked.lead.given || begun || a->asked.quick || !index_policy_covers(&f->view->index->policy, p->steps, p->n)) {
        return OK;
    }
    index_path path = index_path_of(p->steps, p->n);
    if (any_of_other_path(f, path)) {
        double wanted = a->asked.key.wanted == SIZE_MAX ? (double)f->view->items_n : (double)a->asked.key.wanted;
        TRY(find__smallest(f, 0, (size_t)sqrt(wanted * ((double)f->view->items_n + 1)) + FIND_FIRST_PROBE, &best));
    }
    return best && !find_is_of_path(best, path) ? take_demand(f, best, found_out) : find__in_key_order(f, found_out);
}

/* If few items meet a demand, compares all of these. Otherwise searches the graph first, and evaluates WHERE on what it finds. */
static err nearest_way(find__finder *f, bool *found_out) {
    find_access *a = f->access;
    const find_demand *used;
    if (a->asked.quick) {
        return E_QUERY_TOO_LONG;
    }
    TRY(find__smallest(f, 0, COMPARED_MAX, &used));
    if (!used) {
        TRY(find__nearest(a, &a->report.nearest, f->view, found_out));
        a->report.way = *found_out ? WAY_NEAREST : a->report.way;
        return *found_out ? OK : find__by_number(f, found_out);
    }
    return take_demand(f, used, found_out);
}

static bool is_for_graph(const find__finder *f) {
    return f->access->report.nearest.meant && f->view->items_n >= NEAREST_ITEMS_MIN && f->view->stretch.after == 0;
}

static err find(find__finder *f, bool *found_out) {
    find__walk w = {.finder = f};
    const find_demand *used = NULL;
    TRY(find__covered(f, found_out));
    if (*found_out) {
        return OK;
    }
    if (f->view->partition && !f->view->local) { /* a small logical partition: scan it */
        bool quick = f->access->asked.quick && f->view->items_n > FIND_QUICK_ENTRIES;
        return quick || f->access->asked.narrow ? E_QUERY_TOO_LONG : OK;
    }
    if (is_for_graph(f)) {
        return nearest_way(f, found_out);
    }
    TRY(f->access->asked.each.given ? find__each_key(f, found_out) : OK);
    if (*found_out) {
        return OK;
    }
    TRY(keyed_way(f, found_out));
    if (*found_out) {
        return OK;
    }
    bool served = f->access->asked.order.n > 0 && f->access->asked.wanted < SIZE_MAX;
    TRY(served ? find__prepare_walk(&w, &served) : OK);
    if (!served) {
        return find__by_number(f, found_out);
    }
    TRY(smaller_demand_of_other_path(f, &w, &used));
    if (f->access->asked.quick && !used && (f->access->asked.wanted > FIND_QUICK_ENTRIES || f->demands.n > 1)) {
        return E_QUERY_TOO_LONG;
    }
    if (!used) {
        return f->access->asked.narrow ? E_QUERY_TOO_LONG : find__in_order(f, &w, found_out);
    }
    return take_demand(f, used, found_out);
}

static void begin(find_access *a, const find__finder *f, const find_nearest *nearest) {
    find_report *r = &a->report;
    r->way = WAY_SCAN;
    r->used = NULL;
    r->intersected = 0;
    r->composite = NULL;
    r->nearest = *nearest;
    if (f->view->stretch.after == 0) { /* the range is read from its beginning */
        r->graph = (find_graph_use){.state = NEAREST_OFF};
    }
    r->backward = r->too_many = false;
    r->others = f->demands.list;
    r->others_n = f->demands.n;
    a->turn.in_order = a->turn.only_undefined = a->turn.beyond = a->reached.by_key = false;
    a->turn.key = SLICE_EMPTY;
    a->turn.times = 0;
}

/* Takes the narrower demands of keys where the view's items allow that. */
static err narrow_demands(find__finder *f) {
    find_demand *list = NULL;
    for (size_t i = 0; i < f->demands.n; i++) {
        const find_demand *d = &f->demands.list[i];
        bool many = true;
        TRY(d->alone ? find__has_many(f, index_path_of(d->steps, d->steps_n), &many) : OK);
        if (many) {
            continue;
        }
        if (!list) {
            list = arena_array(f->view->op->arena, find_demand, f->demands.n);
            memcpy(list, f->demands.list, f->demands.n * sizeof *list);
            f->demands.list = list;
        }
        list[i] = *d->alone;
    }
    return OK;
}

err find_items(find_access *a, item_view *v, const find_demands *demands, const find_nearest *nearest, bool *found_out) {
    find__finder f = {.access = a, .view = v, .demands = *demands};
    err code = narrow_demands(&f);
    begin(a, &f, nearest);
    code = code == OK ? find(&f, found_out) : code;
    find__free_refs(&f, &f.large);
    find__free_refs(&f, &f.probed);
    return code;
}
