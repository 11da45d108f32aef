/* in_order.c — items in the requested order: walks the entries of the order's path, or of a composite index, up or down. */
#include <stdlib.h>

#include "find/find_int.h"

/* Whether all values of an entry are placed, so that the entry's position is its exact place in the order. */
static bool tells_all(const find__walk *w, slice value) {
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

/* ---- skipping rows ---- */

/* Whether the walk began at this entry, whose row the previous page counted. */
static bool is_start(const find__walk *w, slice value, uint64_t number) {
    const find_start *start = &w->finder->access->asked.start;
    return start->given && number == start->number && slice_eq(value, w->start);
}

static bool is_let_through(const find__finder *f, slice value) {
    for (size_t i = 0; i < f->demands.n; i++) {
        const find_demand *d = &f->demands.list[i];
        bool any = false;
        for (size_t j = 0; j < d->n && !any; j++) {
            any = slice_cmp(value, d->spans[j].from) >= 0 && find_within(&d->spans[j], value);
        }
        if (!any) {
            return false;
        }
    }
    return true;
}

/* Decodes an entry into the values of the order. */
static const find_spelled *values_of(const find__walk *w, slice value) {
    size_t n = w->composite ? w->composite->n : 1;
    arena *a = w->finder->view->op->arena;
    find_spelled *values = arena_array(a, find_spelled, n);
    buf part = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < n; i++) {
        index_value v;
        values[i].undefined = true;
        part.n = 0;
        buf_add_slice(&part, value);
        if (w->composite && w->composite->parts[i].descending) {
            index_spell_downward(&part, 0);
        }
        if (value.n && index_value_read(buf_view(&part), &v)) {
            values[i] = (find_spelled){arena_copy(a, slice_of(part.p, v.n)), v.whole, v.type == INDEX_UNDEFINED};
            value = slice_skip(value, v.n);
        }
    }
    buf_free(&part);
    return values;
}

/* Ends the page; the next one begins with this entry. */
static void stop_skipping(find__walk *w, slice value, uint64_t number) {
    find_access *a = w->finder->access;
    a->reached.stopped_values = values_of(w, value);
    a->reached.stopped_number = w->backward ? number + 1 : number - 1;
    w->finder->view->stopped = true;
}

/* Nothing is skipped once the visitor has matched rows: these come earlier in the order and must be skipped first. */
bool find__skip(find__walk *w, slice value, uint64_t number) {
    find_access *a = w->finder->access;
    bool lacking = value.n == 0;
    if (!w->skips || (lacking && !a->asked.skips_lacking) || a->reached.skipped == a->asked.skip || a->turn.matched || !a->turn.in_order ||
        is_start(w, value, number)) {
        return false;
    }
    if (!a->visitor.may_skip(a->visitor.context)) {
        stop_skipping(w, value, number);
    } else if (lacking || is_let_through(w->finder, value)) {
        a->reached.skipped++;
    }
    return true;
}

static err offer_in_order(find__walk *w, const item_entry *e) {
    find_access *a = w->finder->access;
    a->report.entries++;
    a->turn.in_order = tells_all(w, e->value);
    a->turn.key = w->many || (w->keyed && a->asked.verified) ? e->value : SLICE_EMPTY;
    return find__skip(w, e->value, e->number) ? OK : find__offer(w->finder, (item_ref){e->number, e->segment});
}

bool find__wants_more(const find__walk *w) {
    const find__finder *f = w->finder;
    return !f->view->stopped && !(w->enough && f->access->turn.matched >= w->enough);
}

static err walk_up(find__walk *w, item_lookup *l, const find_span *span) {
    find__finder *f = w->finder;
    item_entry e;
    err code = OK;
    bool resumed = w->start.n && slice_cmp(w->start, span->from) >= 0;
    item_lookup_seek(l, resumed ? w->start : span->from, resumed ? w->start_number : 0, false);
    while (code == OK && find__wants_more(w) && find__next_entry(f, l, &e) && find_within(span, e.value)) {
        code = offer_in_order(w, &e);
    }
    return code;
}

/* Seeks the beginning of a downward walk: the end of the span or, if that is lower, where the previous page ended. */
static void seek_down(find__walk *w, item_lookup *l, const find_span *span) {
    bool fresh = w->start.n == 0 || (span->to.n && slice_cmp(span->to, w->start_whole ? w->start : w->start_beyond) <= 0);
    if (!fresh && w->start_whole) {
        item_lookup_seek(l, w->start, w->start_number + 1, true);
    } else if (!fresh) { /* read all entries with this prefix again; the visitor drops rows that were returned before */
        item_lookup_seek(l, w->start_beyond, 0, true);
    } else if (span->to.n) {
        item_lookup_seek(l, span->to, 0, true);
    } else {
        item_lookup_seek_end(l);
    }
}

static err walk_down(find__walk *w, item_lookup *l, const find_span *span) {
    find__finder *f = w->finder;
    item_entry e;
    err code = OK;
    seek_down(w, l, span);
    while (code == OK && find__wants_more(w) && find__next_entry(f, l, &e) && slice_cmp(e.value, span->from) >= 0) {
        code = offer_in_order(w, &e);
    }
    return code;
}

static err walk_spans(find__walk *w) {
    const find__finder *f = w->finder;
    item_lookup *l = item_lookup_open(f->view, w->path);
    err code = OK;
    for (size_t i = 0; i < w->spans_n && code == OK && find__wants_more(w); i++) {
        code = w->backward ? walk_down(w, l, &w->spans[w->spans_n - 1 - i]) : walk_up(w, l, &w->spans[i]);
    }
    err ended = find__close_lookup(f, l);
    return code != OK ? code : ended;
}

/* ---- preparing a walk ---- */

static int by_from(const void *a, const void *b) {
    return slice_cmp(((const find_span *)a)->from, ((const find_span *)b)->from);
}

/* Sorts the spans and merges those that overlap. */
static size_t tidy_spans(find_span *spans, size_t n) {
    size_t made = 0;
    if (n) {
        qsort(spans, n, sizeof *spans, by_from);
    }
    for (size_t i = 0; i < n; i++) {
        find_span *last = made ? &spans[made - 1] : NULL;
        if (!last || (last->to.n && slice_cmp(last->to, spans[i].from) < 0)) {
            spans[made++] = spans[i];
        } else if (last->to.n && (spans[i].to.n == 0 || slice_cmp(last->to, spans[i].to) < 0)) {
            last->to = spans[i].to;
            last->point = false;
        }
    }
    return made;
}

/* A demand on the walk's own path bounds the walk. */
void find__bound_walk(find__walk *w, arena *a) {
    static const char first = INDEX_NULL;
    for (size_t i = 0; i < w->finder->demands.n && !w->composite && !w->many; i++) {
        const find_demand *c = &w->finder->demands.list[i];
        if (c->steps && index_path_of(c->steps, c->steps_n) == w->path) {
            w->spans = arena_array(a, find_span, c->n + 1);
            memcpy(w->spans, c->spans, c->n * sizeof *c->spans);
            w->spans_n = tidy_spans(w->spans, c->n);
            return;
        }
    }
    w->undefined = !w->composite && !w->keyed;
    w->spans = arena_array(a, find_span, 1);
    w->spans[0] = (find_span){.from = w->composite ? SLICE_EMPTY : slice_of(&first, 1)};
    w->spans_n = 1;
}

static void spell_start(find__walk *w, arena *a) {
    const find_start *start = &w->finder->access->asked.start;
    size_t n = w->composite ? w->composite->n : 1;
    buf b = buf_init(BUF_NO_LIMIT);
    w->start_whole = true;
    if (!start->given || (!w->composite && start->values[0].undefined)) {
        return;
    }
    for (size_t i = 0; i < n && w->start_whole; i++) {
        size_t from = b.n;
        buf_add_slice(&b, start->values[i].bytes);
        w->start_whole = start->values[i].whole;
        if (w->composite && w->composite->parts[i].descending) {
            index_spell_downward(&b, from);
        }
    }
    w->start = arena_copy(a, buf_view(&b));
    w->start_number = w->start_whole ? start->number : 0;
    w->start_beyond = find_prefix_end(a, w->start);
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

static bool has_demand(const find__finder *f, index_path path) {
    for (size_t i = 0; i < f->demands.n; i++) {
        if (find_is_of_path(&f->demands.list[i], path)) {
            return true;
        }
    }
    return false;
}

err find__has_entries(find__finder *f, index_path path, bool *any_out) {
    item_lookup *l = item_lookup_open(f->view, path);
    item_entry e;
    *any_out = find__next_entry(f, l, &e);
    return find__close_lookup(f, l);
}

err find__has_many(find__finder *f, index_path path, bool *many_out) {
    const index_key *key = index_policy_key(&f->view->index->policy, path);
    *many_out = false;
    return key ? find__has_entries(f, key->many, many_out) : OK;
}

/* *served_out: the entries of the key index are in the order. */
static err prepare_keys(find__walk *w, const find_order_part *part, bool *served_out) {
    w->keyed = true;
    TRY(find__has_many(w->finder, w->path, &w->many));
    *served_out = !part->bounded || (!w->many && has_demand(w->finder, w->path));
    return OK;
}

err find__prepare_walk(find__walk *w, bool *served_out) {
    find__finder *f = w->finder;
    const find_order *order = &f->access->asked.order;
    const index_policy *policy = &f->view->index->policy;
    arena *a = f->view->op->arena;
    if (order->n == 1) {
        const find_path *p = &order->parts[0].path;
        *served_out = order->parts[0].known && p->single && index_policy_covers(policy, p->steps, p->n);
        if (!*served_out) {
            return OK;
        }
        w->path = index_path_of(p->steps, p->n);
        w->backward = order->parts[0].descending;
        TRY(p->steps[0].key ? prepare_keys(w, &order->parts[0], served_out) : OK);
    } else {
        w->composite = find_composite_for(order, policy, &w->backward);
        *served_out = w->composite && !has_made(w->composite);
        if (!*served_out) {
            return OK;
        }
        w->path = w->composite->id;
    }
    find__bound_walk(w, a);
    spell_start(w, a);
    return OK;
}

/* Whether the walk begins with items without the path: undefined sorts first, unless the start is after it. */
static bool begins_undefined(const find__walk *w) {
    const find_start *start = &w->finder->access->asked.start;
    return w->undefined && !w->backward && (!start->given || start->values[0].undefined);
}

/* In a downward walk undefined comes last. Pages rarely get there, so the shapes are read only now. */
static err end_undefined(find__walk *w) {
    bool quick = w->finder->access->asked.quick, whole;
    TRY(find__lacking_shapes(w, quick ? FIND_QUICK_ENTRIES : FIND_SHAPES_ALL, &whole));
    return whole ? find__walk_undefined(w) : E_QUERY_TOO_LONG;
}

/* Whether the walked entries alone decide the whole condition. */
static bool decides_condition(const find__finder *f, const find__walk *w) {
    bool decided = !f->access->asked.conditional || (f->demands.whole && !w->composite);
    for (size_t i = 0; i < f->demands.n && decided; i++) {
        decided = f->demands.list[i].exact && find_is_of_path(&f->demands.list[i], w->path);
    }
    return decided;
}

/* Rows cannot be skipped by entries if these may be of expired or wiped items or of other ranges' items, or if items without entries may be
 * anywhere in the order. */
static bool may_skip_entries(const find__finder *f, const find__walk *w) {
    const item_view *v = f->view;
    return f->access->asked.skips && !w->many && !v->filtered && v->container->ttl == TTL_OFF && !v->wipes && f->large.n == 0 &&
           decides_condition(f, w);
}

static err run_walk(find__walk *w) {
    find__refs none = {0};
    find__finder *f = w->finder;
    find_access *a = f->access;
    bool after_values = a->asked.start.given && !w->composite && a->asked.start.values[0].undefined && w->backward;
    TRY(find__find_large(f));
    w->skips = may_skip_entries(f, w);
    a->turn.in_order = false;
    uint64_t before = f->view->stretch.after;
    TRY(find__offer_all(f, &none));
    f->view->stretch.after = before;
    if (begins_undefined(w) && find__wants_more(w)) {
        TRY(find__walk_undefined(w));
    }
    if (find__wants_more(w) && !after_values) {
        TRY(walk_spans(w));
    }
    a->turn.key = SLICE_EMPTY;
    return w->undefined && w->backward && find__wants_more(w) ? end_undefined(w) : OK;
}

err find__in_order(find__finder *f, find__walk *w, bool *found_out) {
    find_access *a = f->access;
    *found_out = !w->undefined || !f->view->index->policy.lean; /* a lean index cannot tell which items lack the path */
    if (*found_out && begins_undefined(w)) {
        TRY(find__lacking_shapes(w, find__shapes_worth_reading(f), found_out));
    }
    if (!*found_out) {
        return a->asked.quick ? E_QUERY_TOO_LONG : OK;
    }
    a->report.way = WAY_IN_ORDER;
    a->report.composite = w->composite;
    a->report.backward = w->backward;
    if (a->visitor.on_walk) {
        a->visitor.on_walk(a->visitor.context);
    }
    TRY(run_walk(w));
    if (a->turn.beyond) { /* only this range is done */
        f->view->stopped = a->turn.beyond = false;
    }
    return OK;
}
