/* in_number_order.c — items in number order: the entries of one demand, intersected with those of others. */
#include "find/find_int.h"

err find__offer(find__finder *f, item_ref ref) {
    find_access *a = f->access;
    TRY(find__count_work(f, FIND_ITEM_ENTRIES));
    if (a->visitor.before_load) {
        a->visitor.before_load(a->visitor.context);
    }
    return item_view_offer(f->view, ref);
}

/* Offers an item in number order, and moves the stretch past it unless the visitor stopped. */
static err offer_next(find__finder *f, item_ref ref) {
    item_view *v = f->view;
    bool excluded = ref.segment == FIND_SEGMENT_EXCLUDED;
    if (ref.number <= v->stretch.after) {
        return OK;
    }
    f->access->report.passed += excluded;
    TRY(excluded ? OK : find__offer(f, ref));
    v->stretch.after = v->stopped ? v->stretch.after : ref.number;
    return OK;
}

err find__offer_all(find__finder *f, const find__refs *found) {
    size_t j = 0;
    for (size_t i = 0; (i < found->n || j < f->large.n) && !f->view->stopped;) {
        item_view_prefetch(f->view, found->list, found->n, i);
        bool large = i == found->n || (j < f->large.n && f->large.list[j].number < found->list[i].number);
        TRY(offer_next(f, large ? f->large.list[j++] : found->list[i++]));
    }
    return OK;
}

static void exclude(find__refs *r, size_t i) {
    r->excluded += r->list[i].segment != FIND_SEGMENT_EXCLUDED;
    r->list[i].segment = FIND_SEGMENT_EXCLUDED;
}

/* Excludes the items of `r` that are not in `other`; both are sorted. */
static void keep_common(find__refs *r, const find__refs *other) {
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

/* Whether a value that `tried` items were sought at is worth seeking further: it must exclude some of them. Not if it decides. */
static bool pays(const find__finder *f, size_t tried, size_t excluded) {
    return f->decides || tried < FIND_TRIED || excluded * FIND_PAYS >= tried;
}

/* Excludes the items without an entry in this point span, or stops where most of them have one: the condition is evaluated on them all.
 * Steps over entries if the next item is near, seeks if it is far. */
static err keep_with_value(find__finder *f, const find_span *span, find__refs *found) {
    item_entry e = {0};
    item_lookup *l = find__open_span(f, span, FIND_SCAN_PER_LOAD * found->n);
    bool live = true, begun = false;
    size_t tried = 0, before = found->excluded;
    for (size_t i = 0; i < found->n && pays(f, tried, found->excluded - before); i++) {
        uint64_t number = found->list[i].number;
        unsigned passed = 0;
        if (found->list[i].segment == FIND_SEGMENT_EXCLUDED) {
            continue;
        }
        tried++;
        while (live && e.number < number) {
            if (!begun || passed++ == FIND_NEAR) {
                item_lookup_seek(l, span->from, number, false);
                begun = true;
            }
            live = find__next_entry(f, l, &e) && find_within(span, e.value);
            f->access->report.entries++;
        }
        if (!live || e.number != number) {
            exclude(found, i);
        }
    }
    return find__close_lookup(f, l);
}

/* Does nothing in a filtered view: entries there may belong to other ranges, so excluded items could not be counted. */
err find__intersect(find__finder *f, const find_demand *used, find__refs *found) {
    for (size_t i = 0; i < f->demands.n && found->n > found->excluded && !f->view->filtered; i++) {
        const find_demand *c = &f->demands.list[i];
        size_t most = FIND_SCAN_PER_LOAD * (found->n - found->excluded), n;
        find__refs other = {0};
        if (c == used || (most < FIND_FIRST_PROBE && !f->decides)) {
            continue;
        }
        if (find_is_point(c)) {
            TRY(keep_with_value(f, &c->spans[0], found));
            f->access->report.intersected |= 1u << i;
            continue;
        }
        err code = find__read_demand(f, c, f->view->stretch.after, &other, most, &n);
        if (code == OK && n < most) {
            keep_common(found, &other);
            f->access->report.intersected |= 1u << i;
        }
        find__free_refs(f, &other);
        TRY(code);
    }
    return OK;
}

err find__collect(find__finder *f, const find_demand *used) {
    find__refs found = {0};
    err code = find__take_all(f, used, f->view->stretch.after, &found);
    code = code == OK ? find__intersect(f, used, &found) : code;
    code = code == OK ? find__offer_all(f, &found) : code;
    find__free_refs(f, &found);
    return code;
}

/* Offers the items of a point demand straight from its entries, which come in number order, until the visitor stops. */
static err stream(find__finder *f, const find_demand *used) {
    item_view *v = f->view;
    item_entry e;
    const find_span *span = &used->spans[0];
    item_lookup *l = find__open_span(f, span, f->access->asked.wanted);
    size_t j = 0;
    err code = OK;
    item_lookup_seek(l, span->from, v->stretch.after + 1, false);
    while (code == OK && !v->stopped && find__next_entry(f, l, &e) && find_within(span, e.value)) {
        f->access->report.entries++;
        while (code == OK && !v->stopped && j < f->large.n && f->large.list[j].number < e.number) {
            code = offer_next(f, f->large.list[j++]);
        }
        code = code == OK && !v->stopped ? offer_next(f, (item_ref){e.number, e.segment}) : code;
    }
    err ended = find__close_lookup(f, l);
    find__refs none = {0};
    code = code != OK ? code : ended;
    return code == OK && !v->stopped ? find__offer_all(f, &none) : code;
}

err find__by_number(find__finder *f, bool *found_out) {
    const find_demand *used = NULL;
    find_access *a = f->access;
    bool chosen = f->demands.n == 1 && find__first_point_demand(f) && !a->asked.quick; /* a single point demand is always streamed */
    TRY(chosen ? OK : find__smallest(f, f->view->stretch.after, find__quick_limit(f, find__entries_worth_collecting(f)), &used));
    if (a->asked.quick && !used && f->view->items_n > FIND_QUICK_ENTRIES) {
        return E_QUERY_TOO_LONG;
    }
    a->report.used = used ? used : find__first_point_demand(f);
    *found_out = a->report.used != NULL;
    a->report.too_many = !a->report.used && f->demands.n;
    if (!a->report.used) {
        return OK;
    }
    a->report.way = WAY_BY_NUMBER;
    TRY(find__find_large(f));
    return used ? find__collect(f, used) : stream(f, a->report.used);
}
