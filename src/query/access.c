#include "query/access_int.h"

#include <endian.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

enum {
    REFS_MAX = 2000000,
    FIRST_PROBE = 64,
    PROBE_FACTOR = 8,
    FEW_ENTRIES = 1024,
    ENTRIES_BETWEEN_CHECKS = 256,
    ITEM_ENTRIES = 16,
    COMPARED_MAX = 1000, /* vectors: so many are compared one by one rather than asked of a graph */
    SHAPE_REFS = 16384
};

/* ---- lists of items ---- */

/* One that was excluded stays in its list, so that it can be counted when the page comes to it. */
enum { SEGMENT_EXCLUDED = UINT32_MAX };

/* False: there is no memory for more, and the finder has the error. */
static bool add_ref(finder *f, refs *r, const item_entry *e) {
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

static void free_refs(const finder *f, refs *r) {
    if (f->view->op->budget) {
        budget_give(f->view->op->budget, r->cap * sizeof *r->list);
    }
    free(r->list);
}

static int by_number(const void *a, const void *b) {
    uint64_t x = ((const item_ref *)a)->number, y = ((const item_ref *)b)->number;
    return (x > y) - (x < y);
}

static void sort_refs(refs *r) {
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

static void exclude(refs *r, size_t i) {
    r->excluded += r->list[i].segment != SEGMENT_EXCLUDED;
    r->list[i].segment = SEGMENT_EXCLUDED;
}

/* Those of `r` that are not in `other` too are excluded; both sorted. */
static void keep_common(refs *r, const refs *other) {
    size_t j = 0;
    for (size_t i = 0; i < r->n; i++) {
        while (j < other->n && other->list[j].number < r->list[i].number) {
            j++;
        }
        if (j == other->n || other->list[j].number != r->list[i].number) {
            exclude(r, i);
        }
    }
}

/* ---- entries of a demand ---- */

/* Now and then others have their turn. An item takes about as long as ITEM_ENTRIES entries. */
static err count_work(finder *f, unsigned entries) {
    f->looked += entries;
    if (f->looked >= ENTRIES_BETWEEN_CHECKS && f->code == OK) {
        f->looked = 0;
        f->code = op_check(f->view->op);
    }
    return f->code;
}

/* False: there is no other, or the work ends, and query__close_lookup has the reason. */
bool query__next_entry(finder *f, item_lookup *l, item_entry *e) {
    return count_work(f, 1) == OK && item_lookup_next(l, e);
}

err query__close_lookup(const finder *f, item_lookup *l) {
    err ended = item_lookup_close(l);
    return f->code != OK ? f->code : ended;
}

static item_lookup *open_span(const finder *f, const query_demand_span *span, size_t most) {
    return span->point ? item_lookup_open_value(f->view, span->path, span->from, most > FEW_ENTRIES)
                       : item_lookup_open(f->view, span->path);
}

/* Entries of one span from number `after` + 1 on where that can be sought; adds them to `found` (if not NULL), up to `most`. */
err query__read_span(finder *f, const query_demand_span *span, uint64_t after, refs *found, size_t most, size_t *n) {
    item_entry e;
    item_lookup *l = open_span(f, span, most);
    item_lookup_seek(l, span->from, span->point ? after + 1 : 0, false);
    while (*n < most && query__next_entry(f, l, &e) && query__within(span, e.value)) {
        (*n)++;
        if (found && e.number > after && !add_ref(f, found, &e)) {
            break;
        }
    }
    return query__close_lookup(f, l);
}

/* *n_out: how many entries the demand has, `most` if it has that many or more. */
static err read_demand(finder *f, const query_demand *c, uint64_t after, refs *found, size_t most, size_t *n_out) {
    *n_out = 0;
    for (size_t i = 0; i < c->n && *n_out < most; i++) {
        TRY(query__read_span(f, &c->spans[i], after, found, most, n_out));
    }
    f->access->entries += *n_out;
    if (found) {
        sort_refs(found);
    }
    return OK;
}

/* ---- choosing ---- */

/* What was found of the best so far is kept: often it is all there is. */
static void keep_probed(finder *f, refs *found, const query_demand *of, uint64_t after) {
    refs before = f->probed;
    f->probed = *found;
    f->probed_of = of;
    f->probed_after = after;
    *found = before;
}

/* The demand with the fewest entries, if it has fewer than `most`: all are counted a little, then further. */
static err smallest(finder *f, uint64_t after, size_t most, const query_demand **best_out) {
    refs found = {0};
    err code = OK;
    *best_out = NULL;
    f->probed_of = NULL;
    for (size_t limit = FIRST_PROBE; f->demands.n; limit *= PROBE_FACTOR) {
        size_t least = limit < most ? limit : most, bound = least;
        for (size_t i = 0; i < f->demands.n && code == OK; i++) {
            size_t n;
            found.n = 0;
            code = read_demand(f, &f->demands.list[i], after, &found, least, &n);
            if (n < least) {
                least = n;
                *best_out = &f->demands.list[i];
                keep_probed(f, &found, *best_out, after);
            }
        }
        if (*best_out || bound == most || code != OK) {
            break;
        }
    }
    free_refs(f, &found);
    return code;
}

/* All of a demand's items behind `after`, by number. */
static err take_all(finder *f, const query_demand *used, uint64_t after, refs *found) {
    size_t n;
    if (used == f->probed_of && after == f->probed_after) {
        *found = f->probed;
        f->probed = (refs){0};
        f->probed_of = NULL;
        return OK;
    }
    return read_demand(f, used, after, found, SIZE_MAX, &n);
}

static bool is_point(const query_demand *d) {
    return d->n == 1 && d->spans[0].point;
}

static const query_demand *a_point(const finder *f) {
    for (size_t i = 0; i < f->demands.n; i++) {
        if (is_point(&f->demands.list[i])) {
            return &f->demands.list[i];
        }
    }
    return NULL;
}

/* How many entries it pays to collect: a found item costs as much as SCAN_PER_LOAD that are just passed by, and passing by ends when the
 * rows wanted were met. */
static size_t worth(const finder *f) {
    double all = (double)f->view->items_n + 1, most = all / SCAN_PER_LOAD;
    if (f->access->wanted != SIZE_MAX) {
        double page = sqrt(2.5 * (double)f->access->wanted * all);
        most = page < most ? page : most;
    }
    most = most < 2 * FIRST_PROBE ? 2 * FIRST_PROBE : most;
    return most < REFS_MAX ? (size_t)most : REFS_MAX;
}

/* ---- by number ---- */

err query__offer(finder *f, item_ref ref) {
    query_access *a = f->access;
    TRY(count_work(f, ITEM_ENTRIES));
    if (a->before_load) {
        a->before_load(a->context);
    }
    return item_view_offer(f->view, ref);
}

/* One of those that come in number order: the stretch goes on behind it, unless the page ends with it. */
static err offer_next(finder *f, item_ref ref) {
    item_view *v = f->view;
    bool excluded = ref.segment == SEGMENT_EXCLUDED;
    if (ref.number <= v->stretch.after) {
        return OK;
    }
    f->access->passed += excluded;
    TRY(excluded ? OK : query__offer(f, ref));
    v->stretch.after = v->stopped ? v->stretch.after : ref.number;
    return OK;
}

static err offer_all(finder *f, const refs *found) {
    size_t j = 0;
    for (size_t i = 0; (i < found->n || j < f->large.n) && !f->view->stopped;) {
        bool large = i == found->n || (j < f->large.n && f->large.list[j].number < found->list[i].number);
        TRY(offer_next(f, large ? f->large.list[j++] : found->list[i++]));
    }
    return OK;
}

/* Those that have no entry of this one value are excluded: entries are passed by where they are near, sought where they are far. */
static err keep_with_value(finder *f, const query_demand_span *span, refs *found) {
    item_entry e = {0};
    item_lookup *l = open_span(f, span, SCAN_PER_LOAD * found->n);
    bool live = true, begun = false;
    for (size_t i = 0; i < found->n; i++) {
        uint64_t number = found->list[i].number;
        unsigned passed = 0;
        if (found->list[i].segment == SEGMENT_EXCLUDED) {
            continue;
        }
        while (live && e.number < number) {
            if (!begun || passed++ == NEAR) {
                item_lookup_seek(l, span->from, number, false);
                begun = true;
            }
            live = query__next_entry(f, l, &e) && query__within(span, e.value);
            f->access->entries++;
        }
        if (!live || e.number != number) {
            exclude(found, i);
        }
    }
    return query__close_lookup(f, l);
}

/* Where entries of other ranges are among those found, only the items can tell: what was excluded could not be counted. */
static err intersect(finder *f, const query_demand *used, refs *found) {
    for (size_t i = 0; i < f->demands.n && found->n > found->excluded && !f->view->filtered; i++) {
        const query_demand *c = &f->demands.list[i];
        size_t most = SCAN_PER_LOAD * (found->n - found->excluded), n;
        refs other = {0};
        if (c == used || (most < FIRST_PROBE && !f->decides)) {
            continue;
        }
        if (is_point(c)) {
            TRY(keep_with_value(f, &c->spans[0], found));
            f->access->intersected |= 1u << i;
            continue;
        }
        err code = read_demand(f, c, f->view->stretch.after, &other, most, &n);
        if (code == OK && n < most) {
            keep_common(found, &other);
            f->access->intersected |= 1u << i;
        }
        free_refs(f, &other);
        TRY(code);
    }
    return OK;
}

static err collect(finder *f, const query_demand *used) {
    refs found = {0};
    err code = take_all(f, used, f->view->stretch.after, &found);
    code = code == OK ? intersect(f, used, &found) : code;
    code = code == OK ? offer_all(f, &found) : code;
    free_refs(f, &found);
    return code;
}

/* Entries of one value, in number order: as many as are wanted. */
static err stream(finder *f, const query_demand *used) {
    item_view *v = f->view;
    item_entry e;
    const query_demand_span *span = &used->spans[0];
    item_lookup *l = open_span(f, span, f->access->wanted);
    size_t j = 0;
    err code = OK;
    item_lookup_seek(l, span->from, v->stretch.after + 1, false);
    while (code == OK && !v->stopped && query__next_entry(f, l, &e) && query__within(span, e.value)) {
        f->access->entries++;
        while (code == OK && !v->stopped && j < f->large.n && f->large.list[j].number < e.number) {
            code = offer_next(f, f->large.list[j++]);
        }
        code = code == OK && !v->stopped ? offer_next(f, (item_ref){e.number, e.segment}) : code;
    }
    err ended = query__close_lookup(f, l);
    refs none = {0};
    code = code != OK ? code : ended;
    return code == OK && !v->stopped ? offer_all(f, &none) : code;
}

err query__find_large(finder *f) {
    static const query_demand_span all = {.path = INDEX_PATH_LARGE, .point = true};
    size_t n = 0;
    bool any;
    TRY(item_view_any_large(f->view, &any));
    return any && !f->large.n ? query__read_span(f, &all, 0, &f->large, REFS_MAX, &n) : OK;
}

static size_t bounded(const finder *f, size_t most) {
    return f->access->quick && most > QUICK_ENTRIES ? QUICK_ENTRIES : most;
}

static err by_number_way(finder *f, bool *found_out) {
    const query_demand *used = NULL;
    query_access *a = f->access;
    bool chosen = f->demands.n == 1 && a_point(f) && !a->quick; /* its entries come in number order: there is nothing to weigh */
    TRY(chosen ? OK : smallest(f, f->view->stretch.after, bounded(f, worth(f)), &used));
    if (a->quick && !used && f->view->items_n > QUICK_ENTRIES) {
        return E_QUERY_TOO_LONG;
    }
    a->used = used ? used : a_point(f);
    *found_out = a->used != NULL;
    a->too_many = !a->used && f->demands.n;
    if (!a->used) {
        return OK;
    }
    a->way = WAY_BY_NUMBER;
    TRY(query__find_large(f));
    return used ? collect(f, used) : stream(f, a->used);
}

/* ---- in order ---- */

const index_composite *query_composite_for(const query *q, const index_policy *policy, bool *backward_out) {
    const query_select *s = q->select;
    for (size_t i = 0; i < policy->composites_n; i++) {
        const index_composite *c = &policy->composites[i];
        size_t same = 0, turned = 0;
        for (size_t j = 0; j < c->n && c->n == s->order_n; j++) {
            query_path p;
            bool here =
                query_path_of(q, s->order[j].expr, &p) && p.single && !policy->off && index_path_of(p.steps, p.n) == c->parts[j].hash;
            same += here && s->order[j].descending == c->parts[j].descending;
            turned += here && s->order[j].descending != c->parts[j].descending;
        }
        if (same == s->order_n || turned == s->order_n) {
            *backward_out = turned > 0;
            return c;
        }
    }
    return NULL;
}

err query_check_order(op *o, const query *q, const index_policy *policy) {
    const query_select *s = q->select;
    query_path p;
    bool backward;
    if (s->order_n > 1 && !query_composite_for(q, policy, &backward)) {
        return op_fail(o, E_BAD_REQUEST, "The order by query does not have a corresponding composite index that it can be served from.");
    }
    if (s->order_n != 1 || !query_path_of(q, s->order[0].expr, &p) || p.n == 0 || index_is_system(p.steps[0])) {
        return OK;
    }
    return index_policy_covers(policy, p.steps, p.n)
               ? OK
               : op_fail(o, E_BAD_REQUEST, "The index path corresponding to the specified order-by item is excluded.");
}

/* Whether an entry tells all of its values, so that it stands where it belongs. */
static bool tells_all(const order_walk *w, slice value) {
    char space[INDEX_VALUE_BYTES_MAX];
    size_t n = w->composite ? w->composite->n : 1;
    for (size_t i = 0; i < n; i++) {
        index_value v;
        slice part = value;
        if (w->composite && w->composite->parts[i].descending) {
            part.n = part.n < sizeof space ? part.n : sizeof space;
            for (size_t j = 0; j < part.n; j++) {
                space[j] = (char)~value.p[j];
            }
            part.p = space;
        }
        if (!index_value_read(part, &v) || !v.placed) {
            return false;
        }
        value = slice_skip(value, v.n);
    }
    return true;
}

/* ---- rows that OFFSET passes over ---- */

/* The walk began here, and the row was counted by the page before. */
static bool is_start(const order_walk *w, slice value, uint64_t number) {
    const query_order_start *start = &w->finder->access->start;
    return start->given && number == start->number && slice_eq(value, w->start);
}

static bool is_let_through(const finder *f, slice value) {
    for (size_t i = 0; i < f->demands.n; i++) {
        const query_demand *d = &f->demands.list[i];
        bool any = false;
        for (size_t j = 0; j < d->n && !any; j++) {
            any = slice_cmp(value, d->spans[j].from) >= 0 && query__within(&d->spans[j], value);
        }
        if (!any) {
            return false;
        }
    }
    return true;
}

/* What an entry tells of the order's values. */
static const query_value *values_of(const order_walk *w, slice value) {
    size_t n = w->composite ? w->composite->n : 1, taken;
    arena *a = w->finder->view->op->arena;
    query_value *values = arena_array(a, query_value, n); /* undefined */
    buf part = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < n && value.n; i++) {
        part.n = 0;
        buf_add_slice(&part, value);
        if (w->composite && w->composite->parts[i].descending) {
            index_spell_downward(&part, 0);
        }
        query_value_spelled(a, buf_view(&part), &values[i], &taken);
        value = slice_skip(value, taken);
    }
    buf_free(&part);
    return values;
}

/* The next page begins with this entry. */
static void stop_skipping(order_walk *w, slice value, uint64_t number) {
    query_access *a = w->finder->access;
    a->stopped_values = values_of(w, value);
    a->stopped_number = w->backward ? number + 1 : number - 1;
    w->finder->view->stopped = true;
}

/* True: its row needs no item, since it is passed over. Rows that the visitor holds come before it, and are to be passed over first. */
static bool skip(order_walk *w, slice value, uint64_t number) {
    query_access *a = w->finder->access;
    bool lacking = value.n == 0;
    if (!w->skips || (lacking && !a->skips_lacking) || a->skipped == a->skip || a->matched || !a->in_order || is_start(w, value, number)) {
        return false;
    }
    if (!a->may_skip(a->context)) {
        stop_skipping(w, value, number);
    } else if (lacking || is_let_through(w->finder, value)) {
        a->skipped++;
    }
    return true;
}

static err offer_in_order(order_walk *w, const item_entry *e) {
    query_access *a = w->finder->access;
    a->entries++;
    a->in_order = tells_all(w, e->value);
    return skip(w, e->value, e->number) ? OK : query__offer(w->finder, (item_ref){e->number, e->segment});
}

static err offer_lacking(order_walk *w, item_ref ref) {
    bool known = w->shapes[0] != 0;
    return known && skip(w, SLICE_EMPTY, ref.number) ? OK : query__offer(w->finder, ref);
}

static bool goes_on(const order_walk *w) {
    const finder *f = w->finder;
    return !f->view->stopped && !(w->enough && f->access->matched >= w->enough);
}

static err walk_up(order_walk *w, item_lookup *l, const query_demand_span *span) {
    finder *f = w->finder;
    item_entry e;
    err code = OK;
    bool resumed = w->start.n && slice_cmp(w->start, span->from) >= 0;
    item_lookup_seek(l, resumed ? w->start : span->from, resumed ? w->start_number : 0, false);
    while (code == OK && goes_on(w) && query__next_entry(f, l, &e) && query__within(span, e.value)) {
        code = offer_in_order(w, &e);
    }
    return code;
}

/* To where a walk down begins: the end of the span, or, if that is lower, where the walk was. */
static void seek_down(order_walk *w, item_lookup *l, const query_demand_span *span) {
    bool fresh = w->start.n == 0 || (span->to.n && slice_cmp(span->to, w->start_whole ? w->start : w->start_beyond) <= 0);
    if (!fresh && w->start_whole) {
        item_lookup_seek(l, w->start, w->start_number + 1, true);
    } else if (!fresh) { /* all that begin so, again: the rows know which were given */
        item_lookup_seek(l, w->start_beyond, 0, true);
    } else if (span->to.n) {
        item_lookup_seek(l, span->to, 0, true);
    } else {
        item_lookup_seek_end(l);
    }
}

static err walk_down(order_walk *w, item_lookup *l, const query_demand_span *span) {
    finder *f = w->finder;
    item_entry e;
    err code = OK;
    seek_down(w, l, span);
    while (code == OK && goes_on(w) && query__next_entry(f, l, &e) && slice_cmp(e.value, span->from) >= 0) {
        code = offer_in_order(w, &e);
    }
    return code;
}

static err walk_spans(order_walk *w) {
    const finder *f = w->finder;
    item_lookup *l = item_lookup_open(f->view, w->path);
    err code = OK;
    for (size_t i = 0; i < w->spans_n && code == OK && goes_on(w); i++) {
        code = w->backward ? walk_down(w, l, &w->spans[w->spans_n - 1 - i]) : walk_up(w, l, &w->spans[i]);
    }
    err ended = query__close_lookup(f, l);
    return code != OK ? code : ended;
}

/* ---- items that lack the path, by shape ---- */

static bool has_path(const index_path *paths, size_t n, index_path wanted) {
    for (size_t i = 0; i < n; i++) {
        if (paths[i] == wanted) {
            return true;
        }
    }
    return false;
}

/* How many shapes it pays to ask for their paths: it takes as long as reading some items each. */
size_t query__shapes_worth(const finder *f) {
    size_t most = (size_t)(f->view->items_n / ITEMS_PER_SHAPE);
    return f->access->quick ? QUICK_ENTRIES : most < SHAPES_WALKED_MAX ? SHAPES_WALKED_MAX : most < SHAPES_ALL ? most : SHAPES_ALL;
}

/* Shapes without the path, up to `most`; of those that are not known it is not known. *whole_out: there are no others. */
err query__lacking_shapes(order_walk *w, size_t most, bool *whole_out) {
    finder *f = w->finder;
    item_entry e;
    err code = OK;
    size_t walked = 0;
    item_lookup *l = item_lookup_open(f->view, INDEX_PATH_SHAPES);
    w->shapes = arena_array(f->view->op->arena, uint64_t, most);
    w->shapes_n = 0;
    *whole_out = true;
    while (code == OK && query__next_entry(f, l, &e) && e.value.n == 8) {
        uint64_t shape;
        index_path *paths;
        size_t n = 0;
        if (++walked == most) {
            *whole_out = false;
            break;
        }
        memcpy(&shape, e.value.p, 8);
        code = item_view_shape(f->view, be64toh(shape), &paths, &n);
        if (code == E_NOT_FOUND || (code == OK && !has_path(paths, n, w->path))) {
            w->shapes[w->shapes_n++] = shape;
            code = OK;
        }
        item_lookup_seek(l, slice_of(&shape, 8), UINT64_MAX, false); /* the next one */
    }
    f->access->entries += walked;
    err ended = query__close_lookup(f, l);
    return code != OK ? code : ended;
}

/* In the direction of the walk, from the item `from` on. */
static err walk_one_shape(order_walk *w, uint64_t shape, uint64_t from) {
    finder *f = w->finder;
    item_entry e;
    err code = OK;
    item_lookup *l = item_lookup_open(f->view, INDEX_PATH_SHAPES);
    item_lookup_seek(l, slice_of(&shape, 8), from, w->backward);
    while (code == OK && goes_on(w) && query__next_entry(f, l, &e) && memcmp(e.value.p, &shape, 8) == 0) {
        f->access->entries++;
        code = offer_lacking(w, (item_ref){e.number, e.segment});
    }
    err ended = query__close_lookup(f, l);
    return code != OK ? code : ended;
}

/* The next items of each shape, in the direction of the walk from `from` on. *edge_out: up to there none is left out. */
static err read_shapes(order_walk *w, const uint64_t *shapes, size_t n, uint64_t from, refs *found, uint64_t *edge_out) {
    finder *f = w->finder;
    size_t each = SHAPE_REFS / n + 1;
    item_lookup *l = item_lookup_open(f->view, INDEX_PATH_SHAPES);
    *edge_out = w->backward ? 0 : UINT64_MAX;
    found->n = 0;
    for (size_t i = 0; i < n; i++) {
        item_entry e;
        size_t k = 0;
        item_lookup_seek(l, slice_of(&shapes[i], 8), from, w->backward);
        while (k < each && query__next_entry(f, l, &e) && memcmp(e.value.p, &shapes[i], 8) == 0 && add_ref(f, found, &e)) {
            k++;
        }
        if (k == each && (e.number < *edge_out) != w->backward) {
            *edge_out = e.number;
        }
        f->access->entries += k;
    }
    sort_refs(found);
    return query__close_lookup(f, l);
}

/* Some of all of them at a time, merged by number: they may be as many as there are items. */
static err walk_many_shapes(order_walk *w, const uint64_t *shapes, size_t n, uint64_t from) {
    refs found = {0};
    err code = OK;
    bool more = true;
    while (more && code == OK && goes_on(w)) {
        uint64_t edge;
        code = read_shapes(w, shapes, n, from, &found, &edge);
        for (size_t i = 0; i < found.n && code == OK && goes_on(w); i++) {
            item_ref ref = found.list[w->backward ? found.n - 1 - i : i];
            if (w->backward ? ref.number < edge : ref.number > edge) {
                break;
            }
            code = offer_lacking(w, ref);
        }
        more = edge != (w->backward ? 0 : UINT64_MAX);
        from = w->backward ? edge : edge + 1;
    }
    free_refs(w->finder, &found);
    return code;
}

err query__walk_undefined(order_walk *w) {
    query_access *a = w->finder->access;
    const uint64_t *shapes = w->shapes;
    size_t n = w->shapes_n;
    bool resumed = a->start.given && a->start.values[0].type == TYPE_UNDEFINED;
    if (n == 0) {
        return OK;
    }
    uint64_t from = !resumed ? (w->backward ? UINT64_MAX : 0) : a->start.number + w->backward;
    a->only_undefined = true;
    a->in_order = n == 1 || shapes[0] != 0;
    err code = n == 1 ? walk_one_shape(w, shapes[0], from) : walk_many_shapes(w, shapes, n, from);
    a->only_undefined = false;
    return code;
}

/* ---- preparing a walk ---- */

static int by_from(const void *a, const void *b) {
    return slice_cmp(((const query_demand_span *)a)->from, ((const query_demand_span *)b)->from);
}

/* In order, without overlap. */
static size_t tidy_spans(query_demand_span *spans, size_t n) {
    size_t made = 0;
    if (n) {
        qsort(spans, n, sizeof *spans, by_from);
    }
    for (size_t i = 0; i < n; i++) {
        query_demand_span *last = made ? &spans[made - 1] : NULL;
        if (!last || (last->to.n && slice_cmp(last->to, spans[i].from) < 0)) {
            spans[made++] = spans[i];
        } else if (last->to.n && (spans[i].to.n == 0 || slice_cmp(last->to, spans[i].to) < 0)) {
            last->to = spans[i].to;
            last->point = false;
        }
    }
    return made;
}

/* What WHERE demands of the path itself bounds the walk. */
void query__bound_walk(order_walk *w, arena *a) {
    static const char first = INDEX_NULL;
    for (size_t i = 0; i < w->finder->demands.n && !w->composite; i++) {
        const query_demand *c = &w->finder->demands.list[i];
        if (c->steps && index_path_of(c->steps, c->steps_n) == w->path) {
            w->spans = arena_array(a, query_demand_span, c->n + 1);
            memcpy(w->spans, c->spans, c->n * sizeof *c->spans);
            w->spans_n = tidy_spans(w->spans, c->n);
            return;
        }
    }
    w->undefined = !w->composite;
    w->spans = arena_array(a, query_demand_span, 1);
    w->spans[0] = (query_demand_span){.from = w->composite ? SLICE_EMPTY : slice_of(&first, 1)};
    w->spans_n = 1;
}

static void spell_start(order_walk *w, arena *a) {
    const query_order_start *start = &w->finder->access->start;
    size_t n = w->composite ? w->composite->n : 1;
    buf b = buf_init(BUF_NO_LIMIT);
    w->start_whole = true;
    if (!start->given || (!w->composite && start->values[0].type == TYPE_UNDEFINED)) {
        return;
    }
    for (size_t i = 0; i < n && w->start_whole; i++) {
        size_t from = b.n;
        w->start_whole = query_spell(&b, &start->values[i]);
        if (w->composite && w->composite->parts[i].descending) {
            index_spell_downward(&b, from);
        }
    }
    w->start = arena_copy(a, buf_view(&b));
    w->start_number = w->start_whole ? start->number : 0;
    w->start_beyond = query_spelled_beyond(a, w->start);
    buf_free(&b);
}

static bool has_made(const index_composite *c) {
    for (size_t i = 0; i < c->n; i++) {
        if (c->parts[i].made) {
            return true;
        }
    }
    return false;
}

static bool prepare_walk(order_walk *w) {
    finder *f = w->finder;
    const query *q = f->access->runner->query;
    const index_policy *policy = &f->view->index->policy;
    arena *a = f->view->op->arena;
    query_path p;
    if (q->select->order_n == 1) {
        if (!query_path_of(q, q->select->order[0].expr, &p) || !p.single || !index_policy_covers(policy, p.steps, p.n)) {
            return false;
        }
        w->path = index_path_of(p.steps, p.n);
        w->backward = q->select->order[0].descending;
    } else {
        w->composite = query_composite_for(q, policy, &w->backward);
        if (!w->composite || has_made(w->composite)) {
            return false;
        }
        w->path = w->composite->id;
    }
    query__bound_walk(w, a);
    spell_start(w, a);
    return true;
}

/* Undefined comes first, unless the walk begins behind it. */
static bool begins_undefined(const order_walk *w) {
    const query_order_start *start = &w->finder->access->start;
    return w->undefined && !w->backward && (!start->given || start->values[0].type == TYPE_UNDEFINED);
}

/* Going down it comes last, and mostly nobody gets so far: only then is it asked which items those are. */
static err end_undefined(order_walk *w) {
    bool quick = w->finder->access->quick, whole;
    TRY(query__lacking_shapes(w, quick ? QUICK_ENTRIES : SHAPES_ALL, &whole));
    return whole ? query__walk_undefined(w) : E_QUERY_TOO_LONG;
}

static bool is_of_path(const query_demand *d, index_path path) {
    return d->steps && index_path_of(d->steps, d->steps_n) == path;
}

/* All of WHERE, by the entries that are walked? */
static bool decides_where(const finder *f, const order_walk *w) {
    bool decided = !f->access->runner->query->select->where || (f->demands.whole && !w->composite);
    for (size_t i = 0; i < f->demands.n && decided; i++) {
        decided = f->demands.list[i].exact && is_of_path(&f->demands.list[i], w->path);
    }
    return decided;
}

/* Expired items have entries, shared segments those of others, and items without entries may stand anywhere in the order. */
static bool may_skip_entries(const finder *f, const order_walk *w) {
    const item_view *v = f->view;
    return f->access->skips && !v->filtered && v->container->ttl == TTL_OFF && f->large.n == 0 && decides_where(f, w);
}

static err run_walk(order_walk *w) {
    refs none = {0};
    finder *f = w->finder;
    query_access *a = f->access;
    bool after_values = a->start.given && !w->composite && a->start.values[0].type == TYPE_UNDEFINED && w->backward;
    TRY(query__find_large(f));
    w->skips = may_skip_entries(f, w);
    a->in_order = false;
    uint64_t before = f->view->stretch.after;
    TRY(offer_all(f, &none));
    f->view->stretch.after = before;
    if (begins_undefined(w) && goes_on(w)) {
        TRY(query__walk_undefined(w));
    }
    if (goes_on(w) && !after_values) {
        TRY(walk_spans(w));
    }
    return w->undefined && w->backward && goes_on(w) ? end_undefined(w) : OK;
}

static err in_order_way(finder *f, order_walk *w, bool *found_out) {
    query_access *a = f->access;
    *found_out = true;
    if (begins_undefined(w)) {
        TRY(query__lacking_shapes(w, query__shapes_worth(f), found_out));
    }
    if (!*found_out) {
        return a->quick ? E_QUERY_TOO_LONG : OK;
    }
    a->way = WAY_IN_ORDER;
    a->composite = w->composite;
    a->backward = w->backward;
    if (a->on_walk) {
        a->on_walk(a->context);
    }
    TRY(run_walk(w));
    if (a->beyond) { /* of this range */
        f->view->stopped = a->beyond = false;
    }
    return OK;
}

/* ---- without items ---- */

static const char empty_document[5] = {5, 0, 0, 0, 0};

bool query__give_value(finder *f, slice body, uint32_t ts, uint64_t times, bool decided) {
    if (times && !f->access->on_value(f->access->context, body, ts, times, decided)) {
        f->view->stopped = true;
    }
    return !f->view->stopped;
}

/* How many items fulfil all demands, which are all of WHERE. */
static err cover_count(finder *f, bool *found_out) {
    const query_demand *used;
    refs found = {0};
    TRY(smallest(f, 0, REFS_MAX, &used));
    *found_out = used != NULL;
    if (!used) {
        return OK;
    }
    f->decides = true;
    err code = take_all(f, used, 0, &found);
    code = code == OK ? intersect(f, used, &found) : code;
    size_t left = found.n - found.excluded;
    *found_out = left == 0 || (size_t)__builtin_popcount(f->access->intersected) == f->demands.n - 1;
    if (code == OK && *found_out) {
        f->access->used = used;
        query__give_value(f, slice_of(empty_document, sizeof empty_document), 0, left, true);
    } else {
        f->access->intersected = 0;
    }
    free_refs(f, &found);
    f->decides = false;
    return code;
}

static bool all_exact(const finder *f) {
    for (size_t i = 0; i < f->demands.n; i++) {
        if (!f->demands.list[i].exact) {
            return false;
        }
    }
    return f->demands.whole;
}

/* Expired items have entries, and shared segments those of others; of a stretch that was begun some items were seen. */
static err covered_way(finder *f, bool *found_out) {
    query_access *a = f->access;
    const item_view *v = f->view;
    const query_select *s = a->runner->query->select;
    *found_out = false;
    if (!a->cover.possible || v->filtered || v->stretch.after || v->container->ttl != TTL_OFF) {
        return OK;
    }
    if (a->cover.counts && !s->where) {
        *found_out = true;
        query__give_value(f, slice_of(empty_document, sizeof empty_document), 0, v->items_n, true);
    } else if (a->quick && v->items_n > QUICK_ENTRIES) {
        return E_QUERY_TOO_LONG;
    } else if (!v->partition || v->local) {
        TRY(query__find_large(f));
        bool path = a->cover.path_given && index_policy_covers(&v->index->policy, a->cover.path.steps, a->cover.path.n);
        if (f->large.n == 0 && path && (a->cover.multiplicity || s->distinct)) {
            TRY(query__cover_path(f, found_out));
        } else if (f->large.n == 0 && a->cover.counts && f->demands.n && all_exact(f)) {
            TRY(cover_count(f, found_out));
        }
        f->large.n = 0;
    }
    a->way = *found_out ? WAY_COVERED : a->way;
    return OK;
}

/* ---- both ---- */

static bool any_of_other_path(const finder *f, index_path path) {
    for (size_t i = 0; i < f->demands.n; i++) {
        if (!is_of_path(&f->demands.list[i], path)) {
            return true;
        }
    }
    return false;
}

static err take_demand(finder *f, const query_demand *used, bool *found_out) {
    f->access->way = WAY_BY_NUMBER;
    f->access->used = used;
    f->access->in_order = false;
    *found_out = true;
    TRY(query__find_large(f));
    return collect(f, used);
}

/* A demand on another path may be so small that sorting what it finds costs less than walking the order past all that it does not. */
static err sorts_better(finder *f, const order_walk *w, const query_demand **used_out) {
    const query_demand *best;
    if (!any_of_other_path(f, w->path)) {
        *used_out = NULL;
        return OK;
    }
    double most = sqrt((double)f->access->wanted * ((double)f->view->items_n + 1));
    *used_out = NULL;
    size_t pays = f->access->wanted == SIZE_MAX ? worth(f) : (size_t)(most < REFS_MAX ? most : REFS_MAX) + FIRST_PROBE;
    TRY(smallest(f, 0, bounded(f, pays), &best));
    *used_out = best && !is_of_path(best, w->path) ? best : NULL;
    return OK;
}

/* Groups and distinct values in the order of their keys, unless a demand on another path leaves fewer items than a page's keys take. */
static err keyed_way(finder *f, bool *found_out) {
    query_access *a = f->access;
    const query_path *p = &a->lead.path;
    const query_demand *best = NULL;
    bool begun = f->view->stretch.after > 0; /* by number, and it goes on so */
    if (!a->lead.given || begun || a->quick || !index_policy_covers(&f->view->index->policy, p->steps, p->n)) {
        return OK;
    }
    index_path path = index_path_of(p->steps, p->n);
    if (any_of_other_path(f, path)) {
        double wanted = a->keys_wanted == SIZE_MAX ? (double)f->view->items_n : (double)a->keys_wanted;
        TRY(smallest(f, 0, (size_t)sqrt(wanted * ((double)f->view->items_n + 1)) + FIRST_PROBE, &best));
    }
    return best && !is_of_path(best, path) ? take_demand(f, best, found_out) : query__in_key_order(f, found_out);
}

/* A demand that few items meet is taken, and all of them compared. Otherwise a graph is asked first, and WHERE of what it finds. */
static err nearest_way(finder *f, bool *found_out) {
    query_access *a = f->access;
    const query_demand *used;
    if (a->quick) {
        return E_QUERY_TOO_LONG;
    }
    TRY(smallest(f, 0, COMPARED_MAX, &used));
    if (!used) {
        TRY(query_nearest_find(a, &a->nearest, f->view, found_out));
        a->way = *found_out ? WAY_NEAREST : a->way;
        return *found_out ? OK : by_number_way(f, found_out);
    }
    return take_demand(f, used, found_out);
}

static bool is_for_graph(const finder *f) {
    return f->access->nearest.meant && f->view->items_n >= NEAREST_ITEMS_MIN && f->view->stretch.after == 0;
}

static err find(finder *f, bool *found_out) {
    order_walk w = {.finder = f};
    const query_demand *used = NULL;
    TRY(covered_way(f, found_out));
    if (*found_out) {
        return OK;
    }
    if (f->view->partition && !f->view->local) { /* small: read whole */
        return f->access->quick && f->view->items_n > QUICK_ENTRIES ? E_QUERY_TOO_LONG : OK;
    }
    if (is_for_graph(f)) {
        return nearest_way(f, found_out);
    }
    TRY(keyed_way(f, found_out));
    if (*found_out) {
        return OK;
    }
    if (f->access->runner->query->select->order_n == 0 || f->access->wanted == SIZE_MAX || !prepare_walk(&w)) {
        return by_number_way(f, found_out);
    }
    TRY(sorts_better(f, &w, &used));
    if (f->access->quick && !used && (f->access->wanted > QUICK_ENTRIES || f->demands.n > 1)) {
        return E_QUERY_TOO_LONG;
    }
    if (!used) {
        return in_order_way(f, &w, found_out);
    }
    return take_demand(f, used, found_out);
}

err query_access_find(query_access *a, item_view *v, bool *found_out) {
    finder f = {.access = a, .view = v};
    f.demands = query_demands_of(a->runner, &v->index->policy);
    a->way = WAY_SCAN;
    a->used = NULL;
    a->intersected = 0;
    a->composite = NULL;
    a->nearest = query_nearest_of(a->runner, &v->index->policy);
    if (v->stretch.after == 0) { /* otherwise the range goes on being read */
        a->graph = (query_graph_use){.state = NEAREST_OFF};
    }
    a->backward = a->too_many = false;
    a->others = f.demands.list;
    a->others_n = f.demands.n;
    a->in_order = a->only_undefined = a->beyond = a->by_key = false;
    err code = a->runner->code != OK ? a->runner->code : find(&f, found_out);
    free_refs(&f, &f.large);
    free_refs(&f, &f.probed);
    return code;
}
