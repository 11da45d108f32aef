/* Iterating over index entries. Each segment of a range has its own; they are merged by value and number. */
#include <assert.h>
#include <endian.h>
#include <stdlib.h>

#include "base/memory.h"
#include "item/view.h"

enum { BEGINS_MAX = EPK_BYTES_MAX + 16 };

typedef struct run {
    store_scan *scan;
    char begins[BEGINS_MAX]; /* the prefix of its keys, up to and including the path */
    size_t begins_n;
    uint32_t segment;
    bool live; /* value and number are those of its next entry */
    slice value;
    uint64_t number;
} run;

struct item_lookup {
    bool backward;
    err code;
    run *last; /* the run whose entry was returned last */
    size_t n;
    run runs[];
};

static void advance(item_lookup *l, run *r) {
    slice key, unused;
    r->live = store_scan_next(r->scan, &key, &unused);
    if (r->live && !layout_term_read(key, r->begins_n, &r->value, &r->number)) {
        l->code = E_STORE_CORRUPT;
        r->live = false;
    }
}

/* value NULL: all entries of the path. */
static void open_run(const item_view *v, index_path path, const slice *value, bool many, uint32_t segment, run *r) {
    uint64_t be = htobe64(path);
    layout_key k, to;
    if (segment) {
        layout_terms(&k, segment, v->index->generation);
    } else {
        layout_local_terms(&k, v->container->space->container, v->index->generation, &v->partition->epk);
    }
    memcpy(k.bytes + k.n, &be, sizeof be);
    k.n += sizeof be;
    assert(k.n <= BEGINS_MAX);
    memcpy(r->begins, k.bytes, k.n);
    r->begins_n = k.n;
    r->segment = segment;
    if (value && value->n) {
        memcpy(k.bytes + k.n, value->p, value->n);
        k.n += value->n;
    }
    memcpy(to.bytes, k.bytes, to.n = k.n);
    layout_after(&to);
    r->scan = value ? store_stem_open(v->range->home->store, v->at, layout_view(&k), layout_view(&to), many)
                    : store_scan_open(v->range->home->store, STORE_TERMS, v->at, layout_view(&k), layout_view(&to), false);
}

static item_lookup *open_runs(const item_view *v, index_path path, const slice *value, bool many) {
    size_t n = v->partition ? 1 : v->sources->n;
    item_lookup *l = mem_zero(sizeof *l + n * sizeof *l->runs);
    l->n = n;
    for (size_t i = 0; i < n; i++) {
        open_run(v, path, value, many, v->partition ? 0 : v->sources->list[i].segment, &l->runs[i]);
    }
    return l;
}

item_lookup *item_lookup_open(const item_view *v, index_path path) {
    return open_runs(v, path, NULL, false);
}

item_lookup *item_lookup_open_value(const item_view *v, index_path path, slice value, bool many) {
    return open_runs(v, path, &value, many);
}

static int compare(const run *a, const run *b) {
    int order = slice_cmp(a->value, b->value);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static run *next_run(item_lookup *l) {
    run *best = NULL;
    for (size_t i = 0; i < l->n; i++) {
        run *r = &l->runs[i];
        if (r->live && (!best || (compare(r, best) < 0) != l->backward)) {
            best = r;
        }
    }
    return best;
}

bool item_lookup_next(item_lookup *l, item_entry *entry_out) {
    if (l->last) {
        advance(l, l->last);
    } else {
        for (size_t i = 0; i < l->n; i++) {
            advance(l, &l->runs[i]);
        }
    }
    l->last = next_run(l);
    if (!l->last || l->code != OK) {
        return false;
    }
    *entry_out = (item_entry){l->last->value, l->last->number, l->last->segment};
    return true;
}

void item_lookup_seek(item_lookup *l, slice value, uint64_t number, bool backward) {
    layout_key k;
    l->last = NULL;
    l->backward = backward;
    for (size_t i = 0; i < l->n; i++) {
        run *r = &l->runs[i];
        memcpy(k.bytes, r->begins, r->begins_n);
        layout_add_term(&k, r->begins_n, value, number);
        store_scan_seek(r->scan, layout_view(&k), backward);
    }
}

void item_lookup_seek_end(item_lookup *l) {
    static const char high[INDEX_PATH_BYTES] = {(char)0xFF, (char)0xFF, (char)0xFF, (char)0xFF,
                                                (char)0xFF, (char)0xFF, (char)0xFF, (char)0xFF};
    item_lookup_seek(l, slice_of(high, sizeof high), UINT64_MAX, true);
}

err item_lookup_close(item_lookup *l) {
    err code = l->code;
    for (size_t i = 0; i < l->n; i++) {
        err ended = store_scan_close(l->runs[i].scan);
        code = code != OK ? code : ended;
    }
    free(l);
    return code;
}

static err has_large(const item_view *v, uint32_t segment, bool *has_out) {
    static const slice all = {0};
    slice key, unused;
    run r = {0};
    open_run(v, INDEX_PATH_LARGE, &all, false, segment, &r);
    *has_out = store_scan_next(r.scan, &key, &unused);
    return store_scan_close(r.scan);
}

/* A write that creates such an item sets LARGE_SOME before it is written; the compare-exchange here does not overwrite that. */
static err find_any_large(const item_view *v) {
    int unknown = LARGE_UNKNOWN;
    bool any = false;
    for (size_t i = 0; i < v->tiles->map->n && !any; i++) {
        const range_sources *sources = &v->tiles->sources[i];
        bool here = v->tiles->ranges[i]->home == v->range->home; /* an index belongs to one home */
        for (size_t j = 0; j < sources->n && !any && here; j++) {
            TRY(has_large(v, sources->list[j].segment, &any));
        }
    }
    atomic_compare_exchange_strong(&v->index->large, &unknown, any ? LARGE_SOME : LARGE_NONE);
    return OK;
}

err item_view_any_large(const item_view *v, bool *any_out) {
    if (v->index->large == LARGE_UNKNOWN) {
        TRY(find_any_large(v));
    }
    *any_out = v->index->large != LARGE_NONE;
    return OK;
}

err item_view_shape(const item_view *v, uint64_t shape, index_path **paths_out, size_t *n_out) {
    layout_key k;
    store_value value;
    layout_shape(&k, v->container->space->container, v->index->generation, shape);
    TRY(store_get(v->range->home->store, STORE_TERMS, v->at, layout_view(&k), &value));
    size_t n = value.bytes.n / sizeof **paths_out;
    index_path *paths = arena_array(v->op->arena, index_path, n + 1);
    for (size_t i = 0; i < n; i++) {
        uint64_t path;
        memcpy(&path, value.bytes.p + i * sizeof path, sizeof path);
        paths[i] = be64toh(path);
    }
    store_give(&value);
    *paths_out = paths;
    *n_out = n;
    return OK;
}
