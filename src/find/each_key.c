/* each_key.c — one item of each key of a key index, with the number of items that have this key.
 *
 * A range is read in one go, since a page that ended within it could not be continued after a split. */
#include "find/find_int.h"

enum {
    ITEMS_PER_KEY = 16,   /* with fewer items of each key, reading all items takes less time */
    ITEMS_MAX = 50000000, /* entries that can be read in one go: some five seconds */
};

typedef struct each_walk {
    find__finder *finder;
    find__walk bounds;
    bool counts; /* items with the same key are counted */
    item_ref first;
    char value[INDEX_VALUE_BYTES_MAX]; /* the key of `first` */
    size_t value_n;
    uint64_t times; /* 0: no key is being read */
} each_walk;

/* The items of the entries must be those of the feed, and each item must have an entry. */
static bool is_possible(const find__finder *f) {
    const item_view *v = f->view;
    const find_each *each = &f->access->asked.each;
    return !v->filtered && !v->stretch.after && v->container->ttl == TTL_OFF && !v->wipes && f->large.n == 0 && v->items_n <= ITEMS_MAX &&
           index_policy_covers(&v->index->policy, each->path.steps, each->path.n);
}

/* A condition must be decided by keys of the same index. */
static bool is_decided(const find__finder *f, index_path path) {
    const find_demands *d = &f->demands;
    return !f->access->asked.conditional || (d->whole && d->n == 1 && d->list[0].exact && find_is_of_path(&d->list[0], path));
}

/* Whether the value of a path is not told by the item's keys. */
static err has_arrays(find__finder *f, index_path path, bool *arrays_out) {
    const index_key *key = index_policy_key(&f->view->index->policy, path);
    *arrays_out = true;
    TRY(key ? find__has_entries(f, key->many, arrays_out) : OK);
    return key && !*arrays_out ? find__has_entries(f, key->arrays, arrays_out) : OK;
}

static item_lookup *open_span(const each_walk *w, const find_span *span) {
    item_lookup *l = item_lookup_open(w->finder->view, w->bounds.path);
    item_lookup_seek(l, span->from, 0, false);
    return l;
}

static bool is_separate(const each_walk *w, slice value) {
    const find_each *each = &w->finder->access->asked.each;
    index_value v;
    return !index_value_read(value, &v) || !v.placed || (each->separate.n && slice_starts(value, each->separate));
}

/* ---- whether it pays ---- */

/* Counts keys, and items that would be offered one by one, up to `most`. */
static err count_span(const each_walk *w, const find_span *span, size_t most, size_t *n) {
    find__finder *f = w->finder;
    item_entry e;
    char value[INDEX_VALUE_BYTES_MAX];
    size_t value_n = 0, entries = 0, same = 0;
    item_lookup *l = open_span(w, span);
    for (; *n < most && find__next_entry(f, l, &e) && find_within(span, e.value) && e.value.n <= sizeof value; entries++) {
        bool again = slice_eq(e.value, slice_of(value, value_n)) && !is_separate(w, e.value);
        *n += !again;
        if (!again) {
            memcpy(value, e.value.p, value_n = e.value.n);
            same = 0;
        } else if (++same % FIND_NEAR == 0) {
            item_lookup_seek(l, slice_of(value, value_n), UINT64_MAX, false);
        }
    }
    f->access->report.entries += entries;
    return find__close_lookup(f, l);
}

static err pays(const each_walk *w, bool *pays_out) {
    size_t most = (size_t)(w->finder->view->items_n / ITEMS_PER_KEY) + FIND_FIRST_PROBE, n = 0;
    for (size_t i = 0; i < w->bounds.spans_n && n < most; i++) {
        TRY(count_span(w, &w->bounds.spans[i], most, &n));
    }
    *pays_out = n < most;
    return OK;
}

/* ---- the walk ---- */

static err offer_first(each_walk *w) {
    find_access *a = w->finder->access;
    a->turn.times = w->times;
    w->times = 0;
    return a->turn.times && !w->finder->view->stopped ? find__offer(w->finder, w->first) : OK;
}

static err take_entry(each_walk *w, const item_entry *e) {
    w->finder->access->report.entries++;
    if (e->value.n == 0 || e->value.n > sizeof w->value) {
        return E_STORE_CORRUPT;
    }
    if (w->times && slice_eq(e->value, slice_of(w->value, w->value_n)) && !is_separate(w, e->value)) {
        w->times++;
        return OK;
    }
    TRY(offer_first(w));
    memcpy(w->value, e->value.p, w->value_n = e->value.n);
    w->first = (item_ref){e->number, e->segment};
    w->times = 1;
    return OK;
}

static err walk_span(each_walk *w, const find_span *span) {
    find__finder *f = w->finder;
    item_entry e;
    err code = OK;
    item_lookup *l = open_span(w, span);
    while (code == OK && !f->view->stopped && find__next_entry(f, l, &e) && find_within(span, e.value)) {
        code = take_entry(w, &e);
    }
    err ended = find__close_lookup(f, l);
    code = code != OK ? code : ended;
    return code == OK ? offer_first(w) : code;
}

err find__each_key(find__finder *f, bool *found_out) {
    find_access *a = f->access;
    const find_path *p = &a->asked.each.path;
    each_walk w = {.finder = f, .bounds = {.finder = f, .path = index_path_of(p->steps, p->n), .keyed = true}};
    bool arrays = false;
    *found_out = false;
    if (a->asked.quick && f->view->items_n > FIND_QUICK_ENTRIES) {
        return E_QUERY_TOO_LONG;
    }
    TRY(find__find_large(f));
    if (!is_possible(f) || !is_decided(f, w.bounds.path)) {
        return OK;
    }
    TRY(a->asked.each.any ? OK : has_arrays(f, w.bounds.path, &arrays));
    if (arrays) {
        return OK;
    }
    find__bound_walk(&w.bounds, f->view->op->arena);
    TRY(pays(&w, found_out));
    if (!*found_out) {
        return OK;
    }
    a->report.way = WAY_BY_KEY;
    a->reached.by_key = true;
    err code = OK;
    for (size_t i = 0; i < w.bounds.spans_n && code == OK && !f->view->stopped; i++) {
        code = walk_span(&w, &w.bounds.spans[i]);
    }
    a->turn.times = 0;
    return code;
}
