/* Pages of items in document-number order: a logical partition is read by its 'o' entries, a range by its segments.
 *
 * Tiles and data must fit together: with tiles from before a split, a page would miss items that were written to the new segments since. So
 * the scans are opened first, and then the space's epoch is checked: if the tiles are still the newest, they were so when the scans were
 * opened. */
#include "item/admit.h"
#include "item/fetch.h"
#include "item/index_entries.h"
#include "item/stored.h"
#include "item/view.h"
#include "item/wipe.h"
#include "throughput/charge.h"

enum {
    ITEMS_AHEAD = 2,        /* are offered while memory of a later one is fetched */
    CACHED_PER_VIEW = 1000, /* a page adds no more items to the cache than this */
    PREFETCH_BYTES = 1024,
    CACHE_LINE = 64,
    STEPS_BETWEEN_CHECKS = 32,
};

/* The scan of one segment of a range. */
typedef struct source {
    store_scan *scan;
    bool shared;
    bool live; /* key, value and place are those of its next item */
    slice key, value;
    item_place place;
} source;

typedef struct page {
    const items *items;
    op *op;
    container *container;
    item_cursor *cursor;
    item_reader *reader;
    size_t steps_left;
    container_tiles *tiles;
    const store_snapshot *at; /* set if the page reads from more than one place */
    bool full;                /* ended by the visitor or by steps_max */
    bool any;                 /* at least one range was read */
    bool wipes;               /* they may hide items */
    item_mark *mark;

    /* the stretch being read */
    container_range *range;
    item_stretch stretch;
    bool narrow; /* the stretch is smaller than the range */
    source *sources;
    size_t sources_n;
} page;

/* ---- filters ---- */

bool item_in_scope(op *o, const container *c, const item_scope *scope, slice body) {
    pkey key;
    epk e;
    if (pkey_extract(o, body, &c->key, &key) != OK || (scope->prefix && !pkey_starts(&key, scope->prefix))) {
        return false;
    }
    if (scope->partition || !scope->min) {
        return !scope->partition || pkey_equal(&key, &scope->partition->partition);
    }
    epk_of(&c->key, &key, &e);
    return epk_cmp(&e, scope->min) >= 0 && epk_cmp(&e, scope->max) < 0;
}

static bool is_meant(const page *p, slice body) {
    const item_cursor *c = p->cursor;
    return item_in_scope(p->op, p->container, &(item_scope){c->partition, c->prefix, &p->stretch.min, &p->stretch.max}, body);
}

static double read_price(const page *p, size_t bytes) {
    return charge_read(bytes) * (p->op->strong ? CHARGE_STRONG_READ_FACTOR : 1);
}

/* False: the page is full; this item is not part of it. */
static bool offer(page *p, item_found *found, bool filter) {
    if (item_gone(p->container, p->wipes, &found->head, found->body, p->op->now_s) || (filter && !is_meant(p, found->body))) {
        return true;
    }
    if (!p->reader->visit(p->reader->context, found)) {
        p->full = true;
        return false;
    }
    if (!p->reader->unpriced) {
        op_charge(p->op, read_price(p, found->body.n));
    }
    return true;
}

static bool takes_step(page *p) {
    p->full = p->steps_left == 0;
    p->steps_left -= !p->full;
    return !p->full;
}

static err check(const page *p) {
    return p->steps_left % STEPS_BETWEEN_CHECKS == 0 ? op_check(p->op) : OK;
}

/* Lets the visitor finish the items that it held back. */
static void leave(page *p) {
    if (p->reader->leave && !p->reader->leave(p->reader->context)) {
        p->full = true;
    }
}

/* ---- loading one item by its place ---- */

typedef struct loader {
    const home *home;
    const container *container;
    arena *arena;
    const store_snapshot *at;
    uint64_t lsn;     /* the snapshot contains all writes of the range up to this lsn; 0: unknown */
    uint64_t now;     /* item_cache_now before the snapshot */
    unsigned *loaded; /* counts items that were not in the cache */
} loader;

static err get_place(const loader *l, const store_snapshot *at, item_found *found) {
    return item__fetch(l->home->store, at, found);
}

/* The cache holds the newest version of an item. If that version is not newer than the snapshot, the snapshot has it too. */
static bool take_cached(const loader *l, item_found *found) {
    found->cached = l->lsn ? item_cache_take_place(l->home->cache, found->place) : NULL;
    if (found->cached && layout_head_read(cached_item_value(found->cached), &found->head, &found->body) && found->head.lsn <= l->lsn) {
        return true;
    }
    item_give(found);
    return false;
}

/* Adds the item to the cache under its primary key, unless the version in the snapshot may be outdated. */
static void keep_in_cache(const loader *l, const item_found *found) {
    layout_key k;
    item_key key;
    if (item__key_of(l->container, l->arena, found->body, &key) == OK) {
        layout_primary(&k, l->container->space->container, &key.epk, &key.partition, key.row);
        item_cache_add_of(l->home->cache, l->now, layout_view(&k), item__found_value(found), found->place);
    }
}

static err load_place(const loader *l, item_found *found) {
    if (take_cached(l, found)) {
        return OK;
    }
    TRY(get_place(l, l->at, found));
    if (l->lsn && (*l->loaded)++ < CACHED_PER_VIEW) {
        keep_in_cache(l, found);
    }
    return OK;
}

/* ---- one logical partition ---- */

static bool offer_written(page *p, const item_written *written, uint64_t *after) {
    item_found found = {.range = p->range, .head = written->head, .body = written->body, .place = {.number = written->number}};
    if (!offer(p, &found, true)) { /* it may belong to another partition */
        return false;
    }
    *after = written->number;
    return true;
}

/* Offers the transaction's new items with numbers below `number`. */
static void offer_new(page *p, const item_overlay *overlay, uint64_t number, uint64_t *after) {
    item_written written;
    while (overlay && !p->full && overlay->next_new(overlay, *after, &written) && written.number < number && takes_step(p)) {
        offer_written(p, &written, after);
    }
}

static err offer_place(page *p, const loader *l, item_place place, uint64_t *after) {
    item_found found = {.range = p->range, .place = place};
    item_written written;
    const item_overlay *overlay = p->cursor->moment ? p->cursor->moment->overlay : NULL;
    if (overlay && overlay->find(overlay, place.number, &written)) {
        if (!written.body.n) {
            *after = place.number;
        } else {
            offer_written(p, &written, after);
        }
        return OK;
    }
    err code = load_place(l, &found);
    if (code == E_NOT_FOUND) {
        /* A dangling entry. The files of a deleted container are dropped without waiting for snapshots. */
        return p->container->space->deleted ? E_OWNER_NOT_FOUND : E_STORE_CORRUPT;
    }
    TRY(code);
    if (offer(p, &found, true)) {
        *after = place.number;
    }
    item_give(&found);
    return OK;
}

/* Trials run on loops, which must not wait for the disk. */
static const store_snapshot *take_snapshot(const page *p) {
    store *s = p->range->home->store;
    return p->reader->trial ? store_snapshot_take_in_memory(s) : store_snapshot_take(s);
}

static err read_partition(page *p) {
    layout_key from, to;
    slice key, value;
    item_place place;
    uint32_t number = p->container->space->container;
    const epk *e = &p->cursor->partition->epk;
    uint64_t *after = &p->cursor->stretches[0].after;
    unsigned loaded = 0;
    loader l = {.home = p->range->home, .container = p->container, .arena = p->op->arena, .loaded = &loaded};
    l.lsn = p->cursor->moment ? 0 : atomic_load_explicit(&p->range->lsn, memory_order_acquire);
    l.now = item_cache_now(p->range->home->cache);
    p->at = l.at = p->cursor->moment ? p->cursor->moment->at : take_snapshot(p);
    layout_order(&from, number, e, *after + 1);
    layout_order(&to, number, e, UINT64_MAX);
    store_scan *scan = store_scan_open(p->range->home->store, STORE_INDEX, p->at, layout_view(&from), layout_view(&to), false);
    err code = OK;
    const item_overlay *overlay = p->cursor->moment ? p->cursor->moment->overlay : NULL;
    while (code == OK && !p->full && store_scan_next(scan, &key, &value)) {
        code = layout_order_read(key, value, &place) ? OK : E_STORE_CORRUPT;
        if (code == OK) {
            offer_new(p, overlay, place.number, after);
        }
        if (code == OK && !p->full && takes_step(p)) {
            code = offer_place(p, &l, place, after);
            code = code != OK ? code : check(p);
        }
    }
    if (code == OK) {
        offer_new(p, overlay, UINT64_MAX, after);
    }
    if (code == OK) {
        leave(p);
    }
    err ended = store_scan_close(scan);
    if (!p->cursor->moment) {
        store_snapshot_give(p->range->home->store, p->at);
    }
    p->at = NULL;
    p->cursor->n = p->full ? 1 : 0;
    return code != OK ? code : ended;
}

/* ---- the segments of a range, merged by number ---- */

/* A BSON document's members are read one after the other, which the processor cannot predict: prefetch them. */
static void prefetch(slice value) {
    for (size_t i = 0; i < value.n && i < PREFETCH_BYTES; i += CACHE_LINE) {
        __builtin_prefetch(value.p + i);
    }
}

static err advance(source *s) {
    s->live = store_scan_next(s->scan, &s->key, &s->value);
    prefetch(s->live ? s->value : SLICE_EMPTY);
    return !s->live || layout_item_read(s->key, &s->place) ? OK : E_STORE_CORRUPT;
}

static err open_sources(page *p, const range_sources *sources) {
    err code = OK;
    p->sources = arena_array(p->op->arena, source, sources->n);
    p->sources_n = sources->n;
    p->at = sources->n > 1 || p->container->clustered || p->reader->trial ? take_snapshot(p) : NULL;
    for (size_t i = 0; i < sources->n; i++) {
        layout_key from, to;
        source *s = &p->sources[i];
        layout_item(&from, (item_place){sources->list[i].segment, p->stretch.after + 1});
        layout_segment(&to, sources->list[i].segment);
        layout_after(&to);
        *s = (source){.shared = sources->list[i].shared};
        s->scan = store_scan_open(p->range->home->store, STORE_ITEMS, p->at, layout_view(&from), layout_view(&to), false);
        code = code != OK ? code : advance(s);
    }
    return code;
}

static err close_sources(page *p) {
    err code = OK;
    for (size_t i = 0; i < p->sources_n; i++) {
        err ended = store_scan_close(p->sources[i].scan);
        code = code != OK ? code : ended;
    }
    p->sources_n = 0;
    if (p->at) {
        store_snapshot_give(p->range->home->store, p->at);
        p->at = NULL;
    }
    return code;
}

static source *lowest(page *p) {
    source *low = NULL;
    for (size_t i = 0; i < p->sources_n; i++) {
        source *s = &p->sources[i];
        if (s->live && (!low || s->place.number < low->place.number)) {
            low = s;
        }
    }
    return low;
}

static err read_sources(page *p) {
    for (source *s; (s = lowest(p)) && takes_step(p);) {
        item_found found = {.range = p->range, .place = s->place};
        err code = item__fetch_value(p->range->home->store, p->at, s->value, &found);
        if (code != OK) {
            return code != E_NOT_FOUND ? code : p->container->space->deleted ? E_OWNER_NOT_FOUND : E_STORE_CORRUPT;
        }
        bool taken = offer(p, &found, s->shared || p->narrow || p->cursor->prefix);
        item_give(&found);
        if (!taken) {
            return OK;
        }
        p->cursor->stretches[0].after = s->place.number;
        TRY(advance(s));
        TRY(check(p));
    }
    return OK;
}

/* ---- reading through the index ---- */

static bool is_newest(const page *p);
static void renew_tiles(page *p);
static bool enter_range(page *p);

/* Two partitions may share an EPK. Their local entries are then mixed, or all belong to the other one: v->local must be false. */
static err size_partition(page *p, item_view *v) {
    layout_key from, to, own;
    slice entry, value, key;
    size_sum size;
    epk e;
    size_t n = 0;
    layout_size(&from, p->container->space->container, &v->partition->epk, NULL);
    to = from;
    layout_after(&to);
    layout_size(&own, p->container->space->container, &v->partition->epk, &v->partition->partition);
    store_scan *scan = store_scan_open(p->range->home->store, STORE_INDEX, p->at, layout_view(&from), layout_view(&to), false);
    while (n < 2 && store_scan_next(scan, &entry, &value)) {
        if (layout_size_read(entry, value, &e, &key, &size) && epk_cmp(&e, &v->partition->epk) == 0) {
            bool meant = slice_eq(entry, layout_view(&own));
            v->items_n += meant ? size.items : 0;
            v->local = meant && size.local == LOCAL_ALL;
            n++;
        }
    }
    v->local = v->local && n == 1;
    return store_scan_close(scan);
}

/* Uses the cursor's own moment, unless its index was replaced since. */
static err enter_moment(page *p, item_view *v, bool *entered_out) {
    const container_part *part = container_part_of(p->container->space, p->range->home);
    const item_moment *m = p->cursor->moment;
    v->index = m->index ? container_index_take(m->index) : NULL;
    p->at = m->at;
    *entered_out = m->index && !part->index_switching && part->index == m->index && !m->index->policy.off;
    return OK;
}

/* Takes a snapshot, with the tiles and the index that were the newest then. *entered_out false: the index is just being replaced. */
static err enter_view(page *p, item_view *v, bool *entered_out) {
    container_part *part;
    if (p->cursor->moment) {
        return enter_moment(p, v, entered_out);
    }
    for (;;) {
        if (!p->cursor->partition && !enter_range(p)) {
            return E_BAD_CONTINUATION;
        }
        part = container_part_of(p->container->space, p->range->home);
        v->index = container_part_index(p->container->space, part);
        v->lsn = atomic_load_explicit(&p->range->lsn, memory_order_acquire);
        v->now = item_cache_now(p->range->home->cache);
        p->at = take_snapshot(p);
        if (is_newest(p)) {
            break;
        }
        store_snapshot_give(p->range->home->store, p->at);
        container_index_give(v->index);
        renew_tiles(p);
    }
    *entered_out = !part->index_switching && part->index == v->index && !v->index->policy.off;
    return OK;
}

static void leave_view(page *p, item_view *v) {
    if (!p->cursor->moment) {
        store_snapshot_give(p->range->home->store, p->at);
    }
    if (v->index) {
        container_index_give(v->index);
    }
    p->at = NULL;
}

static void describe(const page *p, item_view *v) {
    size_t i = container_position(p->tiles, v->partition ? &v->partition->epk : &p->stretch.min);
    v->tiles = p->tiles;
    v->range = p->range;
    v->sources = &p->tiles->sources[i];
    v->at = p->at;
    v->stretch = v->partition ? p->cursor->stretches[0] : p->stretch;
    v->narrow = !v->partition && p->narrow;
    v->items_n = v->partition ? 0 : atomic_load_explicit(&p->range->items, memory_order_relaxed);
    for (size_t j = 0; j < v->sources->n && !v->partition; j++) {
        v->filtered = v->filtered || v->sources->list[j].shared;
    }
    v->filtered = v->filtered || v->narrow || v->prefix;
}

static item_view view_of(const page *p) {
    return (item_view){.items = p->items,
                       .op = p->op,
                       .container = p->container,
                       .wipes = p->wipes,
                       .partition = p->cursor->partition,
                       .prefix = p->cursor->prefix,
                       .visit = p->reader->visit,
                       .context = p->reader->context};
}

/* *found_out false: nothing was read. */
static err find_items(page *p, bool *found_out) {
    item_view v = view_of(p);
    err code = enter_view(p, &v, found_out);
    TRY(code);
    if (*found_out) {
        describe(p, &v);
        code = v.partition ? size_partition(p, &v) : OK;
    }
    if (code == OK && *found_out) {
        code = p->reader->find(p->reader->context, &v, found_out);
    }
    leave_view(p, &v);
    if (code != OK || !*found_out) {
        return code;
    }
    p->cursor->stretches[0].after = v.stretch.after;
    p->full = v.stopped;
    return OK;
}

/* If the visitor returns false, the item counts as not read. */
static err found_items(item_view *v, const item_found *found, bool ask_partition) {
    if (item_gone(v->container, v->wipes, &found->head, found->body, v->op->now_s)) {
        return OK;
    }
    const item_scope scope = {v->partition, v->prefix, &v->stretch.min, &v->stretch.max};
    bool asks = v->filtered || (ask_partition && v->partition);
    if (asks && !item_in_scope(v->op, v->container, &scope, found->body)) {
        return OK;
    }
    v->stopped = !v->visit(v->context, found);
    return OK;
}

static err load_and_offer(item_view *v, item_ref ref, bool ask_partition) {
    err code = E_NOT_FOUND;
    loader l = {v->range->home, v->container, v->op->arena, v->at, v->lsn, v->now, &v->loaded};
    item_found found = {.range = v->range};
    for (size_t i = v->sources->n; i-- > 0 && code == E_NOT_FOUND;) {
        uint32_t segment = v->sources->list[i].segment;
        if (ref.segment == 0 || ref.segment == segment) {
            found.place = (item_place){segment, ref.number};
            code = load_place(&l, &found);
        }
    }
    TRY(code);
    code = found_items(v, &found, ask_partition);
    item_give(&found);
    return code;
}

err item_view_offer(item_view *v, item_ref ref) {
    err code = load_and_offer(v, ref, false);
    if (code == E_NOT_FOUND) { /* a dangling entry */
        return v->container->space->deleted ? E_OWNER_NOT_FOUND : E_STORE_CORRUPT;
    }
    return code;
}

/* Step 0 is the note, which leads to the others. */
static void prefetch_ref(const item_view *v, item_ref ref, size_t step) {
    item_cache *cache = v->range->home->cache;
    item_place place = {ref.segment, ref.number};
    if (!ref.segment || !v->lsn) {
        return;
    }
    if (step == 0) {
        item_cache_prefetch_note(cache, place);
    } else {
        item_cache_prefetch_place(cache, place, (unsigned)step - 1);
    }
}

void item_view_prefetch(const item_view *v, const item_ref *list, size_t n, size_t i) {
    for (size_t step = 0; step <= ITEM_CACHE_STEPS; step++) {
        size_t to = i + (ITEM_CACHE_STEPS + 1 - step) * ITEMS_AHEAD;
        for (size_t at = i ? to : 0; at <= to && at < n; at++) {
            prefetch_ref(v, list[at], step);
        }
    }
}

err item__view_try(item_view *v, uint64_t number) {
    return load_and_offer(v, (item_ref){.number = number}, true);
}

/* ---- the cursor ---- */

static void drop_first(item_cursor *c) {
    memmove(c->stretches, c->stretches + 1, --c->n * sizeof *c->stretches);
}

/* Cuts the first stretch to the part that lies in one range; the rest follows with the same `after`. False: too many stretches. */
static bool enter_range(page *p) {
    item_cursor *c = p->cursor;
    item_stretch *first = &c->stretches[0];
    size_t i = container_position(p->tiles, &first->min);
    const partition_range *range = &p->tiles->map->ranges[i];
    if (epk_cmp(&range->max, &first->max) < 0) {
        if (c->n == ITEM_STRETCHES_MAX) {
            return false;
        }
        memmove(first + 1, first, c->n++ * sizeof *first);
        first[1].min = range->max;
        first[0].max = range->max;
    }
    p->range = p->tiles->ranges[i];
    p->stretch = *first;
    p->narrow = epk_cmp(&range->min, &first->min) < 0 || epk_cmp(&first->max, &range->max) < 0;
    return true;
}

static bool is_newest(const page *p) {
    return atomic_load(&p->container->space->epoch) == p->tiles->epoch;
}

static void find_range(page *p) {
    const epk *e = p->cursor->partition ? &p->cursor->partition->epk : &p->cursor->stretches[0].min;
    p->range = container_route(p->tiles, e);
}

static void renew_tiles(page *p) {
    container_tiles_give(p->tiles);
    p->tiles = container_space_newest(p->container->space);
    find_range(p);
}

static err read_stretch(page *p) {
    err code;
    for (;;) {
        if (!enter_range(p)) {
            return E_BAD_CONTINUATION;
        }
        code = open_sources(p, &p->tiles->sources[container_position(p->tiles, &p->stretch.min)]);
        if (is_newest(p)) {
            break;
        }
        TRY(close_sources(p));
        renew_tiles(p);
    }
    code = code != OK ? code : read_sources(p);
    if (code == OK) {
        leave(p);
    }
    err ended = close_sources(p);
    if (code == OK && !p->full) {
        drop_first(p->cursor);
    }
    return code != OK ? code : ended;
}

/* A clustered container may have no creation order within a partition, so this filters all items of the range. Callers should prefer rows
 * in key order (item/rows.h); transactions must use those. */
static err read_filtered(page *p) {
    const item_key *key = p->cursor->partition;
    if (p->cursor->moment) {
        return op_fail(p->op, E_BAD_REQUEST, "The container keeps no creation order within a partition. Read its rows in key order.");
    }
    epk_prefix_range(&p->container->key, &key->partition, &p->cursor->stretches[0].min, &p->cursor->stretches[0].max);
    return read_stretch(p);
}

/* ---- the page ---- */

static void end_found(page *p) {
    if (!p->full) {
        drop_first(p->cursor);
    }
}

static void charge_page(page *p, double before) {
    double ru = p->op->charge_ru - before;
    if (ru < CHARGE_FEED_MIN && !p->any && !p->reader->unpriced) {
        op_charge(p->op, CHARGE_FEED_MIN - ru);
        ru = CHARGE_FEED_MIN;
    }
    if (!p->reader->trial) {
        item__debit(p->items, p->op, p->range, p->cursor->partition, METER_QUERY, ru, false);
    }
    *p->mark = item_mark_of(p->range);
    p->any = true;
}

static void charge_entry(page *p) {
    item_reader *r = p->reader;
    if (!r->any_entered || r->entered != p->range->id) {
        op_charge(p->op, r->entry_charge);
    }
    r->any_entered = true;
    r->entered = p->range->id;
}

/* Reads the page's part of one range. */
static err read_range(page *p) {
    double before = p->op->charge_ru;
    find_range(p);
    if (p->cursor->moment && p->cursor->moment->home != p->range->home) {
        return E_TRANSACTION_SPREAD;
    }
    err code = item__admit(p->items, p->op, p->range);
    if (code == E_THROTTLED && p->any) { /* the page ends with what was read */
        p->op->charge_ru = before;
        p->full = true;
        return OK;
    }
    TRY(code);
    charge_entry(p);
    bool found = false;
    bool written = p->cursor->moment && p->cursor->moment->overlay;
    code = p->reader->find && !written ? find_items(p, &found) : OK;
    if (code == OK && found) {
        end_found(p);
    } else if (code == OK) {
        code = !p->cursor->partition ? read_stretch(p) : p->container->ordered ? read_partition(p) : read_filtered(p);
    }
    charge_page(p, before);
    return code;
}

/* Before the page takes a snapshot. */
static bool wipes_of(const container *c, const item_cursor *cursor) {
    return cursor->moment ? item_wipes_past(c) : item_wipes_now(c);
}

void item_reader_init(item_reader *r, item_visit visit, void *context, size_t steps_max) {
    *r = (item_reader){.visit = visit, .context = context, .steps_max = steps_max};
}

err item_feed(const items *s, op *o, container *c, item_cursor *cursor, size_t steps_max, item_visit visit, void *context,
              item_mark *mark_out) {
    item_reader reader;
    item_reader_init(&reader, visit, context, steps_max);
    return item_feed_by(s, o, c, cursor, &reader, mark_out);
}

err item_feed_by(const items *s, op *o, container *c, item_cursor *cursor, item_reader *reader, item_mark *mark_out) {
    page p = {.items = s,
              .op = o,
              .container = c,
              .cursor = cursor,
              .reader = reader,
              .steps_left = reader->steps_max,
              .wipes = wipes_of(c, cursor),
              .tiles = cursor->moment ? container_tiles_take(cursor->moment->tiles) : container_space_newest(c->space),
              .mark = mark_out};
    err code = OK;
    *mark_out = (item_mark){0};
    while (code == OK && cursor->n && !p.full) {
        if (cursor->stretches[0].after == UINT64_MAX) { /* a client may send this; there is nothing after it */
            drop_first(cursor);
        } else {
            code = reader->trial && p.any ? E_QUERY_TOO_LONG : read_range(&p);
        }
    }
    container_tiles_give(p.tiles);
    return reader->trial && code == E_NOT_IN_MEMORY ? E_QUERY_TOO_LONG : code;
}

/* ---- counting without reading ---- */

static err look_at_range(page *p, item_find look) {
    item_view v = view_of(p);
    bool entered, unused = false;
    TRY(enter_view(p, &v, &entered));
    describe(p, &v);
    item_view shown = v;
    shown.index = entered ? v.index : NULL;
    err code = v.partition ? size_partition(p, &shown) : OK;
    code = code == OK ? look(p->reader->context, &shown, &unused) : code;
    leave_view(p, &v);
    return code;
}

err item_look(const items *s, op *o, container *c, item_cursor *cursor, item_find look, void *context) {
    item_reader reader = {.context = context};
    page p = {.items = s,
              .op = o,
              .container = c,
              .cursor = cursor,
              .reader = &reader,
              .wipes = wipes_of(c, cursor),
              .tiles = container_space_newest(c->space)};
    err code = OK;
    while (code == OK && cursor->n) {
        find_range(&p);
        code = look_at_range(&p, look);
        if (code == OK) {
            drop_first(cursor);
        }
    }
    container_tiles_give(p.tiles);
    return code;
}

/* ---- settling ---- */

static void settle_later(const items *s, const op *o, const container *c, const item_cursor *cursor, const item_mark *mark, double ru) {
    container_tiles *tiles = container_space_newest(c->space);
    const partition_range *found = partition_map_by_id(tiles->map, mark->range_id);
    container_range *range = found ? tiles->ranges[found - tiles->map->ranges] : NULL;
    if (range && cursor) {
        item__debit(s, o, range, cursor->partition, METER_QUERY, ru, false);
    } else if (range) {
        item__debit_more(s, o, range, METER_QUERY, ru);
    }
    container_tiles_give(tiles);
}

void item_debit_trial(const items *s, const op *o, const container *c, const item_cursor *cursor, const item_mark *mark, double ru) {
    settle_later(s, o, c, cursor, mark, ru);
}

void item_debit_more(const items *s, const op *o, const container *c, const item_mark *mark, double ru) {
    settle_later(s, o, c, NULL, mark, ru);
}
