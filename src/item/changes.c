/* The order of changes: written with every item, and read back from an lsn on, range by range or partition by partition.
 *
 * An item's lsn is that of its last write, so each item is met once. Within a range lsns are given out once, but a range that was merged
 * has the items of several sequences: two of them may have the same lsn, and neither lsn nor time of the one says anything of the other.
 * Within a logical partition they always ascend, with the time.
 *
 * Where the reader stands afterwards is an lsn: everything up to it was seen. The range's lsn is read before the snapshot is taken, so all
 * that was written up to it is in the snapshot. What is met beyond it, written meanwhile or by another range that has items in the same
 * segment, is left for the next page. */
#include "item/changes.h"

#include <assert.h>

#include "item/admit.h"
#include "item/fetch.h"
#include "item/view.h"
#include "item/waiters.h"
#include "throughput/charge.h"

/* ---- writing ---- */

static layout_change change_of(const item_key *key, const item_head *head, uint64_t number) {
    return (layout_change){head->lsn, head->ts, layout_epk_head(&key->epk), number};
}

/* A fixed container is one partition: those of its segment are enough. A clustered one does without. */
static bool has_partitions(const item_work *w) {
    return w->container->key.n > 0 && !w->container->clustered;
}

static void put_in(const item_work *w, layout_key *k, const layout_change *change) {
    layout_add_change(k, k->n, change);
    store_put(&w->group->batch, STORE_TERMS, layout_view(k), SLICE_EMPTY);
}

static void delete_from(const item_work *w, layout_key *k, const layout_change *change) {
    layout_add_change(k, k->n, change);
    store_delete(&w->group->batch, STORE_TERMS, layout_view(k));
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

/* ---- reading: the entries of a partition, or those of a range's segments, merged ---- */

enum { CLOCK_SLACK_S = 300, ENTRIES_PER_LOOK = 256, ENTRIES_PER_CHECK = 64, BEGINS_MAX = EPK_BYTES_MAX + 8, NEAR = 2 };

typedef struct run {
    store_scan *scan;
    char begins[BEGINS_MAX];
    size_t begins_n;
    uint32_t segment; /* 0: not told */
    bool shared;
    bool live; /* `next` is its next entry */
    layout_change next;

    uint64_t loaded;   /* the last number that was */
    store_scan *items; /* of the segment, once some were loaded in a row; it stands at `at` with `value` */
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
    bool narrow;    /* what is asked for is less than the range */
    bool mixed;     /* the order is not that of time */
    uint64_t end;   /* the range's lsn before the snapshot */
    uint64_t last;  /* of the entries looked at, which may be another range's */
    size_t entries; /* looked at since the clock was */
    size_t passed;  /* looked at and not loaded */
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

/* From a time on: where the order is that of time, the place is searched for, and a little before it is begun with, for clocks that were
 * set back. Elsewhere all entries are walked, but none of those before the time is loaded. */
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

/* By the head of the EPK, if that is enough. Two keys may share an EPK: where a key or prefix is asked for, the item itself decides (ASK).
 */
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

/* Items that were created one after the other lie side by side: stepping to the next costs far less than getting it. */
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
    if (code == E_NOT_FOUND) { /* an entry that leads nowhere */
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
    if (meant && !item_expired(d->container, &found.head, d->op->now_s)) {
        d->full = !d->visit(d->context, &found);
        if (!d->full) {
            charge(d, found.body.n);
        }
    }
    item_give(&found);
    return OK;
}

/* The clock is asked now and then, and always after an item; what has one lsn stays together. */
static bool is_late(reader *d, const run *r, bool loaded) {
    bool looks = d->changes->until_us && (loaded || ++d->entries >= ENTRIES_PER_LOOK) && r->next.lsn != d->last;
    d->entries = looks ? 0 : d->entries;
    return looks && d->last && clock_monotonic_us(d->items->clock) - op_waited_us(d->op) >= d->changes->until_us;
}

/* Others have their turn: after each item, and after some entries. */
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

/* The range that has all of what is asked for. */
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

/* Tiles, lsn and snapshot that belong together: if the tiles are the newest once the snapshot is there, they were so when it was taken. */
static err enter(reader *d) {
    container_space *space = d->container->space;
    for (;;) {
        d->tiles = container_space_newest(space);
        if (!find_range(d)) {
            return E_RANGE_GONE;
        }
        d->end = atomic_load_explicit(&d->range->lsn, memory_order_acquire);
        if (d->changes->from_now || d->changes->after >= d->end) { /* nothing to read, and nothing is said of what comes later */
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
    if (c->from_now || c->after >= d->end) { /* an lsn beyond it was never given out: it is not of this range */
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
        item__settle(s, o, d.range, changes->partition, o->charge_ru - before, false);
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
