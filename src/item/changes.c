/* The order of changes: written with every item, and read from an lsn on, by range or by partition.
 *
 * An item's lsn is that of its last write, so each item appears once. Within a range no lsn is given out twice. But a merged range has the
 * items of several lsn sequences: two items may have the same lsn, and lsns or times of different sequences cannot be compared. Within a
 * logical partition both always ascend.
 *
 * A reader's position is an lsn up to which it has seen everything. The range's lsn is read before the snapshot is taken, so the snapshot
 * contains all writes up to it. Entries beyond that lsn are left for the next page: they were written meanwhile, or by another range with
 * items in the same segment. */
#include "item/changes.h"

#include <assert.h>

#include "item/admit.h"
#include "item/fetch.h"
#include "item/view.h"
#include "item/waiters.h"
#include "item/wipe.h"
#include "throughput/charge.h"

/* ---- writing ---- */

static layout_change change_of(const item_key *key, const item_head *head, uint64_t number) {
    return (layout_change){head->lsn, head->ts, layout_epk_head(&key->epk), number};
}

/* A fixed container is one partition, so its segment entries suffice. A clustered container has no local entries. */
static bool has_partitions(const item_work *w) {
    return w->container->key.n > 0 && !w->container->clustered;
}

static void put_in(const item_work *w, layout_key *k, const layout_change *change) {
    layout_add_change(k, k->n, change);
    store_put_unsought(&w->group->batch, STORE_TERMS, layout_view(k));
}

static void delete_from(const item_work *w, layout_key *k, const layout_change *change) {
    layout_add_change(k, k->n, change);
    store_delete_unsought(&w->group->batch, STORE_TERMS, layout_view(k));
}

static void begin_local(const item_work *w, const item_key *key, layout_key *k) {
    layout_local_changes(k, w->container->space->container, &key->epk);
}

void item__put_change(const item_work *w, const item_key *key, item_place place, const item_head *head, const stored_item *before) {
    layout_key k;
    waiters_touch(w->range, &key->epk);
    if (before->there) {
        item__remove_change(w, key, before);
    }
    layout_change change = change_of(key, head, place.number);
    layout_changes(&k, place.segment);
    put_in(w, &k, &change);
    if (has_partitions(w)) {
        begin_local(w, key, &k);
        put_in(w, &k, &change);
    }
}

void item__remove_change(const item_work *w, const item_key *key, const stored_item *stored) {
    layout_key k;
    waiters_touch(w->range, &key->epk);
    layout_change change = change_of(key, &stored->head, stored->place.number);
    layout_changes(&k, stored->place.segment);
    delete_from(w, &k, &change);
    if (has_partitions(w)) {
        begin_local(w, key, &k);
        delete_from(w, &k, &change);
    }
}

void item__move_change(const item_work *w, const item_key *key, const stored_item *stored, uint32_t segment) {
    layout_key k;
    layout_change change = change_of(key, &stored->head, stored->place.number);
    layout_changes(&k, stored->place.segment);
    delete_from(w, &k, &change);
    layout_changes(&k, segment);
    put_in(w, &k, &change);
}

/* ---- reading: merges the entries of a range's segments, or reads those of one partition ---- */

enum { CLOCK_SLACK_S = 300, ENTRIES_PER_LOOK = 256, ENTRIES_PER_CHECK = 64, BEGINS_MAX = EPK_BYTES_MAX + 8, NEAR = 2 };

typedef struct run {
    store_scan *scan;
    char begins[BEGINS_MAX];
    size_t begins_n;
    uint32_t segment; /* 0: unknown */
    bool shared;
    bool live; /* `next` holds its next entry */
    layout_change next;

    uint64_t loaded;   /* the last number loaded */
    store_scan *items; /* iterator over the segment's items, opened for runs of adjacent items; positioned at `at` with `value` */
    uint64_t at;
    slice value;
} run;

typedef struct reader {
    const items *items;
    op *op;
    container *container;
    item_changes *changes;
    item_visit visit;
    void *context;
    container_tiles *tiles;
    container_range *range;
    const range_sources *sources;
    const store_snapshot *at;
    bool narrow;    /* the requested part is smaller than the range */
    bool mixed;     /* lsn order is not time order */
    uint64_t end;   /* the range's lsn, read before the snapshot */
    uint64_t last;  /* lsn of the last entry read, which may belong to another range */
    size_t entries; /* entries read since the last look at the clock */
    size_t passed;  /* entries read but not loaded */
    double weight;
    bool full;
    size_t runs_n;
    run *runs;
} reader;

static err advance(run *r) {
    slice key, unused;
    r->live = store_scan_next(r->scan, &key, &unused);
    return !r->live || layout_change_read(key, r->begins_n, &r->next) ? OK : E_STORE_CORRUPT;
}

static void open_run(const reader *d, run *r, layout_key *k) {
    assert(k->n <= BEGINS_MAX);
    memcpy(r->begins, k->bytes, k->n);
    r->begins_n = k->n;
    layout_after(k);
    r->scan = store_scan_open(d->range->home->store, STORE_TERMS, d->at, slice_of(r->begins, r->begins_n), layout_view(k), false);
}

static bool is_local(const reader *d) {
    return d->changes->partition && d->container->key.n && !d->container->clustered;
}

static void open_runs(reader *d) {
    layout_key k;
    d->runs_n = is_local(d) ? 1 : d->sources->n;
    d->runs = arena_array(d->op->arena, run, d->runs_n);
    for (size_t i = 0; i < d->runs_n; i++) {
        run *r = &d->runs[i];
        *r = (run){0};
        if (is_local(d)) {
            layout_local_changes(&k, d->container->space->container, &d->changes->partition->epk);
        } else {
            r->segment = d->sources->list[i].segment;
            r->shared = d->sources->list[i].shared;
            d->mixed = d->mixed || r->shared;
            layout_changes(&k, r->segment);
        }
        open_run(d, r, &k);
    }
}

static err close_runs(reader *d) {
    err code = OK;
    for (size_t i = 0; i < d->runs_n; i++) {
        err ended = store_scan_close(d->runs[i].scan);
        code = code != OK ? code : ended;
        ended = d->runs[i].items ? store_scan_close(d->runs[i].items) : OK;
        code = code != OK ? code : ended;
    }
    return code;
}

static run *lowest(reader *d) {
    run *low = NULL;
    for (size_t i = 0; i < d->runs_n; i++) {
        run *r = &d->runs[i];
        bool below = low && (r->next.lsn != low->next.lsn ? r->next.lsn < low->next.lsn : r->next.number < low->next.number);
        low = r->live && (!low || below) ? r : low;
    }
    return low;
}

static err seek(reader *d, uint64_t after) {
    layout_key k;
    for (size_t i = 0; i < d->runs_n; i++) {
        run *r = &d->runs[i];
        memcpy(k.bytes, r->begins, r->begins_n);
        layout_add_change(&k, r->begins_n, &(layout_change){.lsn = after + 1});
        store_scan_seek(r->scan, layout_view(&k), false);
        TRY(advance(r));
    }
    return OK;
}

/* Starts at a time. If lsn order is time order, this is a binary search; it starts a little early in case the clock was set back. Otherwise
 * all entries are scanned, but only those from that time on are loaded. */
static err seek_time(reader *d) {
    uint64_t low = d->changes->after, high = d->end;
    int64_t from = d->changes->since_s - CLOCK_SLACK_S;
    while (low < high && !d->mixed) {
        uint64_t middle = low + (high - low) / 2;
        TRY(seek(d, middle));
        run *r = lowest(d);
        if (r && r->next.ts < from) {
            low = r->next.lsn;
        } else {
            high = middle;
        }
    }
    return seek(d, low);
}

/* ---- items ---- */

typedef enum verdict { OUT, IN, ASK } verdict;

/* Decides by the first bytes of the EPK if they suffice. Two keys may share an EPK: for a key or a prefix, the item itself must be checked
 * (ASK). */
static verdict judge(const reader *d, const run *r) {
    const item_changes *c = d->changes;
    if (c->partition) {
        return is_local(d) || d->container->key.n == 0 || r->next.head == layout_epk_head(&c->partition->epk) ? ASK : OUT;
    }
    if (!r->shared && !d->narrow) {
        return c->prefix ? ASK : IN;
    }
    uint32_t head = r->next.head, min = layout_epk_head(&c->min), max = layout_epk_head(&c->max);
    return head < min || head > max ? OUT : head == min || head == max || c->prefix ? ASK : IN;
}

static bool step(run *r) {
    slice key;
    item_place place;
    bool live = store_scan_next(r->items, &key, &r->value) && layout_item_read(key, &place);
    r->at = live ? place.number : UINT64_MAX;
    return live;
}

static void seek_items(const reader *d, run *r, uint64_t number) {
    layout_key from, to;
    layout_item(&from, (item_place){r->segment, number});
    if (r->items) {
        store_scan_seek(r->items, layout_view(&from), false);
    } else {
        layout_segment(&to, r->segment);
        layout_after(&to);
        r->items = store_scan_open(d->range->home->store, STORE_ITEMS, d->at, layout_view(&from), layout_view(&to), false);
    }
    step(r);
}

/* Items that were created one after the other are stored side by side: stepping to the next one is much cheaper than a get. */
static bool is_next(const reader *d, run *r) {
    uint64_t number = r->next.number;
    bool near = r->segment && r->loaded && number > r->loaded && number - r->loaded <= NEAR;
    bool stands = r->items && r->at < number && number - r->at <= NEAR;
    r->loaded = number;
    if (near && !stands) {
        seek_items(d, r, number);
    }
    while (near && r->at < number && step(r)) {
    }
    return near && r->at == number;
}

static err get(const reader *d, const run *r, item_found *found) {
    layout_key k;
    err code = E_NOT_FOUND;
    for (size_t i = d->sources->n; i-- > 0 && code == E_NOT_FOUND;) {
        uint32_t segment = d->sources->list[i].segment;
        if (r->segment == 0 || r->segment == segment) {
            found->place = (item_place){segment, r->next.number};
            layout_item(&k, found->place);
            code = store_get(d->range->home->store, STORE_ITEMS, d->at, layout_view(&k), &found->value);
        }
    }
    if (code == E_NOT_FOUND) { /* a dangling entry */
        return d->container->space->deleted ? E_OWNER_NOT_FOUND : E_STORE_CORRUPT;
    }
    return code;
}

static err load(const reader *d, run *r, item_found *found) {
    slice value;
    if (is_next(d, r)) {
        found->place = (item_place){r->segment, r->next.number};
        value = r->value;
    } else {
        TRY(get(d, r, found));
        value = found->value.bytes;
    }
    err code = item__fetch_value(d->range->home->store, d->at, value, found);
    if (code == E_NOT_FOUND) {
        return d->container->space->deleted ? E_OWNER_NOT_FOUND : E_STORE_CORRUPT;
    }
    if (code == OK && found->head.lsn != r->next.lsn) {
        item_give(found);
        code = E_STORE_CORRUPT;
    }
    return code;
}

static void charge(reader *d, size_t bytes) {
    double weight = charge_query_weight(bytes);
    op_charge(d->op, charge_query_items(d->weight, weight) * (d->op->strong ? CHARGE_STRONG_READ_FACTOR : 1));
    d->weight += weight;
}

static err offer(reader *d, run *r, bool ask) {
    const item_changes *c = d->changes;
    item_found found = {.range = d->range};
    TRY(load(d, r, &found));
    bool meant = !ask || item_in_scope(d->op, d->container, &(item_scope){c->partition, c->prefix, &c->min, &c->max}, found.body);
    if (meant && !item_gone(d->container, item_wipes_past(d->container), &found.head, found.body, d->op->now_s)) {
        d->full = !d->visit(d->context, &found);
        if (!d->full) {
            charge(d, found.body.n);
        }
    }
    item_give(&found);
    return OK;
}

/* Checks the clock now and then, and always after loading an item. Entries with the same lsn are not separated. */
static bool is_late(reader *d, const run *r, bool loaded) {
    bool looks = d->changes->until_us && (loaded || ++d->entries >= ENTRIES_PER_LOOK) && r->next.lsn != d->last;
    d->entries = looks ? 0 : d->entries;
    return looks && d->last && clock_monotonic_us(d->items->clock) - op_waited_us(d->op) >= d->changes->until_us;
}

/* Yields to other jobs after each item, and after some entries. */
static err check(reader *d, bool loaded) {
    return loaded || ++d->passed % ENTRIES_PER_CHECK == 0 ? op_check(d->op) : OK;
}

static err walk(reader *d) {
    bool loaded = false;
    for (run *r; (r = lowest(d)) && r->next.lsn <= d->end;) {
        if (is_late(d, r, loaded)) {
            d->full = true;
        } else {
            verdict v = r->next.ts < d->changes->since_s ? OUT : judge(d, r);
            loaded = v != OUT;
            TRY(loaded ? offer(d, r, v == ASK) : OK);
        }
        if (d->full) {
            d->changes->after = r->next.lsn - 1;
            return OK;
        }
        d->last = r->next.lsn;
        TRY(check(d, loaded));
        TRY(advance(r));
    }
    d->changes->after = d->end;
    return OK;
}

/* ---- a page ---- */

/* Finds the range that contains everything requested. */
static bool find_range(reader *d) {
    const item_changes *c = d->changes;
    size_t i = container_position(d->tiles, c->partition ? &c->partition->epk : &c->min);
    const partition_range *range = &d->tiles->map->ranges[i];
    d->range = d->tiles->ranges[i];
    d->sources = &d->tiles->sources[i];
    d->mixed = range->mixed && !c->partition;
    d->narrow = !c->partition && (epk_cmp(&range->min, &c->min) < 0 || epk_cmp(&c->max, &range->max) < 0);
    return c->partition || epk_cmp(&c->max, &range->max) <= 0;
}

/* Gets tiles, lsn and snapshot that belong together: if the tiles are still the newest after the snapshot was taken, they were so when it
 * was taken. */
static err enter(reader *d) {
    container_space *space = d->container->space;
    for (;;) {
        d->tiles = container_space_newest(space);
        if (!find_range(d)) {
            return E_RANGE_GONE;
        }
        d->end = atomic_load_explicit(&d->range->lsn, memory_order_acquire);
        if (d->changes->from_now || d->changes->after >= d->end) { /* nothing to read */
            return OK;
        }
        d->at = store_snapshot_take(d->range->home->store);
        if (atomic_load(&space->epoch) == d->tiles->epoch) {
            return OK;
        }
        store_snapshot_give(d->range->home->store, d->at);
        d->at = NULL;
        container_tiles_give(d->tiles);
    }
}

static err read_page(reader *d) {
    item_changes *c = d->changes;
    if (c->from_now || c->after >= d->end) { /* a greater lsn was never given out by this range */
        c->after = d->end;
        return OK;
    }
    open_runs(d);
    err code = c->since_s > 0 ? seek_time(d) : seek(d, c->after);
    code = code == OK ? walk(d) : code;
    err ended = close_runs(d);
    return code != OK ? code : ended;
}

err item_changes_read(const items *s, op *o, container *c, item_changes *changes, item_visit visit, void *context, item_mark *mark_out) {
    reader d = {.items = s, .op = o, .container = c, .changes = changes, .visit = visit, .context = context};
    err code = enter(&d);
    code = code == OK && !changes->unpriced ? item__admit(s, o, d.range) : code;
    if (code == OK && changes->unpriced) {
        code = read_page(&d);
    } else if (code == OK) {
        double before = o->charge_ru;
        op_charge(o, CHARGE_CHANGES * (o->strong ? CHARGE_STRONG_READ_FACTOR : 1));
        code = read_page(&d);
        item__debit(s, o, d.range, changes->partition, METER_CHANGES, o->charge_ru - before, false);
    }
    *mark_out = item_mark_of(d.range);
    mark_out->lsn = mark_out->lsn > d.end ? d.end : mark_out->lsn;
    changes->more = d.full;
    if (d.at) {
        store_snapshot_give(d.range->home->store, d.at);
    }
    container_tiles_give(d.tiles);
    return code;
}
