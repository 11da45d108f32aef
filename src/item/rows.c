#include "item/rows.h"

#include <assert.h>

#include "item/admit.h"
#include "item/load.h"
#include "item/wipe.h"
#include "throughput/charge.h"

enum {
    STEPS_MAX = 1000 * 1000,
    STEPS_BETWEEN_CHECKS = 32,
    PASSED_BEFORE_SEEK = 4, /* after this many entries in a row that are not primary keys */
    CURSOR_VERSION = 1,
    STEM_BYTES = 5 /* container and tag */
};

/* [low, high). Keys are large, so they are kept outside of `page`, which is cleared. */
typedef struct bounds {
    layout_key low, high;
} bounds;

typedef struct page {
    const items *items;
    op *op;
    container *container;
    const item_rows_ask *ask;
    item_rows_cursor *cursor;
    item_rows_page *out;
    item_visit visit;
    void *context;
    size_t steps_left;
    bool full;     /* ended by the visitor, rows_max or steps_max */
    bool any;      /* at least one range was read */
    bool wipes;    /* they may hide items */
    double weight; /* total weight of the rows charged so far */
    container_tiles *tiles;
    const store_snapshot *snapshot;
    container_range *range;
    item_near near;
    bounds *left;     /* primary keys that are left to read */
    bounds *inner;    /* the part of `left` in the current range */
    layout_key *last; /* the last entry read */
    bool moved;       /* `last` is set */
    layout_key *at;   /* new rows of the transaction are offered from here on; backward, those before it */
    slice prefix;     /* required prefix of the encoded partition key; empty: any */
    size_t passed;
    uintptr_t fetched; /* where the fetched memory ends */
} page;

item_rows_ask item_rows_ask_partition(const item_key *partition) {
    return (item_rows_ask){.partition = partition, .steps_max = STEPS_MAX};
}

item_rows_ask item_rows_ask_space(epk min, epk max) {
    return (item_rows_ask){.min = min, .max = max, .steps_max = STEPS_MAX};
}

/* ---- bounds ---- */

enum { PREFIX_BYTES_MAX = 2 * LIMIT_ROW_BYTES }; /* no row key is longer */

static err check_bounds(op *o, const item_rows_ask *ask) {
    bool fits = ask->from.prefix.n <= PREFIX_BYTES_MAX && ask->to.prefix.n <= PREFIX_BYTES_MAX;
    return !ask->partition || fits ? OK : op_fail(o, E_BAD_REQUEST, "A bound of the rows is longer than a row key can be.");
}

static void add_bytes(layout_key *k, slice bytes) {
    assert(bytes.n <= sizeof k->bytes - k->n);
    memcpy(k->bytes + k->n, bytes.p ? bytes.p : "", bytes.n);
    k->n += bytes.n;
}

static void set_partition(page *p) {
    const item_key *key = p->ask->partition;
    const item_row_bound *from = &p->ask->from, *to = &p->ask->to;
    layout_primary(&p->left->low, p->container->space->container, &key->epk, &key->partition, SLICE_EMPTY);
    layout_copy(&p->left->high, &p->left->low);
    add_bytes(&p->left->low, from->given ? from->prefix : SLICE_EMPTY);
    add_bytes(&p->left->high, to->given ? to->prefix : SLICE_EMPTY);
    if (from->given && from->exclusive) {
        layout_after(&p->left->low);
    }
    if (!to->given || !to->exclusive) {
        layout_after(&p->left->high);
    }
}

static void set_space(page *p) {
    uint32_t container = p->container->space->container;
    layout_partitions(&p->left->low, container, &p->ask->min);
    layout_partitions(&p->left->high, container, &p->ask->max);
    if (p->ask->prefix) {
        buf encoded = buf_init(BUF_NO_LIMIT);
        pkey_encode(&encoded, p->ask->prefix);
        p->prefix = arena_copy(p->op->arena, buf_view(&encoded));
        buf_free(&encoded);
    }
}

static slice place_of(const item_rows_cursor *c) {
    return slice_skip(c->place, 1);
}

/* Forward, the next possible key is the cursor's key followed by a zero byte. */
static err resume(page *p) {
    layout_key at;
    if (p->cursor->place.n == 0) {
        return OK;
    }
    slice place = place_of(p->cursor);
    if (p->cursor->place.p[0] != CURSOR_VERSION || place.n + STEM_BYTES + 1 > sizeof at.bytes) {
        return E_BAD_CONTINUATION;
    }
    at.n = STEM_BYTES;
    memcpy(at.bytes, p->left->low.bytes, STEM_BYTES);
    add_bytes(&at, place);
    if (slice_cmp(layout_view(&at), layout_view(&p->left->low)) < 0 || slice_cmp(layout_view(&at), layout_view(&p->left->high)) >= 0) {
        return E_BAD_CONTINUATION;
    }
    if (!p->ask->backward) {
        add_bytes(&at, SLICE_LIT("\0"));
    }
    layout_copy(p->ask->backward ? &p->left->high : &p->left->low, &at);
    return OK;
}

static bool nothing_left(const page *p) {
    return slice_cmp(layout_view(&p->left->low), layout_view(&p->left->high)) >= 0;
}

static void keep_place(page *p) {
    p->cursor->ended = nothing_left(p);
    if (p->cursor->ended || !p->moved) {
        p->cursor->place = p->cursor->ended ? SLICE_EMPTY : p->cursor->place;
        return;
    }
    size_t n = p->last->n - STEM_BYTES;
    char *bytes = arena_alloc_aligned(p->op->arena, 1 + n, 1);
    bytes[0] = CURSOR_VERSION;
    memcpy(bytes + 1, p->last->bytes + STEM_BYTES, n);
    p->cursor->place = slice_of(bytes, 1 + n);
}

/* ---- one row ---- */

static err load(page *p, slice value, item_found *found) {
    slice item;
    if (layout_row_read(value, &found->place.segment, &item)) { /* the row of a clustered container */
        bool read = layout_head_read(item, &found->head, &found->body);
        found->place.number = found->head.number;
        return read ? OK : E_STORE_CORRUPT;
    }
    if (!layout_place_read(value, &found->place)) {
        return E_STORE_CORRUPT;
    }
    err code = item__near_load(&p->near, found);
    if (code == E_NOT_FOUND) { /* the files of a deleted container are dropped without waiting for snapshots */
        return p->container->space->deleted ? E_OWNER_NOT_FOUND : E_STORE_CORRUPT;
    }
    return code;
}

static void charge(const page *p, double ru) {
    op_charge(p->op, ru * (p->op->strong ? CHARGE_STRONG_READ_FACTOR : 1));
}

/* p->full: the visitor did not take the row. */
static void offer(page *p, const item_found *found) {
    if (item_gone(p->container, p->wipes, &found->head, found->body, p->op->now_s) ||
        (p->ask->excludes && p->ask->excludes(p->context, found))) {
        return;
    }
    p->full = !p->visit(p->context, found);
    p->out->rows += !p->full;
    if (!p->full && !p->ask->unpriced) {
        double weight = charge_query_weight(found->body.n);
        charge(p, charge_query_items(p->weight, weight));
        p->weight += weight;
    }
}

/* ---- the transaction's writes ---- */

static const item_overlay *overlay_of(const page *p) {
    return p->ask->moment ? p->ask->moment->overlay : NULL;
}

static void offer_written(page *p, const item_written *written) {
    item_found found = {.range = p->range, .head = written->head, .body = written->body, .place = {.number = written->number}};
    offer(p, &found);
}

/* An item that the transaction has renamed is offered at its new key (offer_new). */
static err offer_stored(page *p, slice key, slice value) {
    item_found found = {.range = p->range};
    item_written written;
    const item_overlay *overlay = overlay_of(p);
    TRY(load(p, value, &found));
    if (!overlay || !overlay->find(overlay, found.place.number, &written)) {
        offer(p, &found);
    } else if (written.body.n && slice_eq(written.primary, key)) {
        offer_written(p, &written);
    }
    item_give(&found);
    return OK;
}

static void stand_behind(page *p, slice key) {
    p->at->n = 0;
    add_bytes(p->at, key);
    if (!p->ask->backward) {
        add_bytes(p->at, SLICE_LIT("\0"));
    }
}

/* ---- one range ---- */

/* A primary key consists of an EPK, its tag, and the partition key. False: another entry, or a row outside the prefix. */
static bool is_row(page *p, slice key, size_t *epk_n_out) {
    slice tail = slice_skip(key, STEM_BYTES);
    size_t n = epk_length(&p->container->key, tail);
    *epk_n_out = n;
    if (n >= tail.n || tail.p[n] != LAYOUT_PRIMARY) {
        return false;
    }
    slice partition = slice_skip(tail, n + 1);
    return partition.n >= p->prefix.n && memcmp(partition.p, p->prefix.p ? p->prefix.p : "", p->prefix.n) == 0;
}

/* Entries of other kinds come after the primary keys of their EPK: after a few of them, seeks to where rows may follow. */
static void pass(page *p, store_scan *scan, slice key, size_t epk_n) {
    layout_key to;
    to.n = STEM_BYTES + epk_n;
    if (++p->passed < PASSED_BEFORE_SEEK || to.n >= key.n) {
        return;
    }
    memcpy(to.bytes, key.p, to.n);
    to.bytes[to.n++] = (char)(p->ask->backward ? LAYOUT_PRIMARY : LAYOUT_UNIQUE) + 1;
    bool onward = p->ask->backward ? slice_cmp(layout_view(&to), key) < 0 : slice_cmp(layout_view(&to), key) > 0;
    if (onward) {
        store_scan_seek(scan, layout_view(&to), p->ask->backward);
    }
    p->passed = 0;
}

/* A seek invalidates the key, so it is copied before. */
static void keep_last(page *p, slice key) {
    p->last->n = 0;
    add_bytes(p->last, key);
    p->moved = true;
}

/* The end of a row is looked at before its middle, so the processor would not guess what comes next. The next row mostly lies behind this
 * one: it is fetched while this one is copied. */
static void fetch_early(page *p, slice value) {
    enum { LINE_BYTES = 64, FETCHED_BYTES = 2048, BETWEEN_BYTES = 128 };
    uintptr_t begin = (uintptr_t)value.p, bytes = value.n < FETCHED_BYTES ? value.n : FETCHED_BYTES;
    uintptr_t at = begin, end = begin + bytes + (p->ask->backward ? 0 : BETWEEN_BYTES + bytes);
    if (p->fetched > at && p->fetched < end) {
        at = p->fetched;
    }
    for (; at < end; at += LINE_BYTES) {
        __builtin_prefetch((const void *)at);
    }
    p->fetched = at;
}

static err visit_entry(page *p, store_scan *scan, slice key, slice value) {
    size_t epk_n = 0;
    fetch_early(p, value);
    if (!p->ask->partition && !is_row(p, key, &epk_n)) {
        keep_last(p, key);
        pass(p, scan, layout_view(p->last), epk_n);
        return OK;
    }
    p->passed = 0;
    TRY(offer_stored(p, key, value));
    if (!p->full) {
        keep_last(p, key);
    }
    return OK;
}

/* An item that was deleted and created anew has the same key as the stored one: it comes first, and the stored one is skipped. */
static bool comes_before(const page *p, slice key, slice until, bool inclusive) {
    int order = slice_cmp(key, until);
    return p->ask->backward ? order >= 0 : order < 0 || (inclusive && order == 0);
}

static bool takes_more(page *p) {
    p->full = p->full || p->steps_left == 0 || (p->ask->rows_max && p->out->rows == p->ask->rows_max);
    return !p->full;
}

/* Offers the new rows that come before `until`. */
static void offer_new(page *p, slice until, bool inclusive) {
    const item_overlay *overlay = overlay_of(p);
    item_written written;
    size_t unused;
    while (overlay && overlay->next_row(overlay, layout_view(p->at), p->ask->backward, &written) &&
           comes_before(p, written.primary, until, inclusive) && takes_more(p)) {
        p->steps_left--;
        if (p->ask->partition || is_row(p, written.primary, &unused)) {
            offer_written(p, &written);
        }
        if (!p->full) {
            keep_last(p, written.primary);
            stand_behind(p, written.primary);
        }
    }
}

static err visit_in_order(page *p, store_scan *scan, slice key, slice value) {
    if (overlay_of(p)) {
        offer_new(p, key, true);
        if (!takes_more(p)) {
            return OK;
        }
        stand_behind(p, key);
    }
    p->steps_left--;
    return visit_entry(p, scan, key, value);
}

/* Reads the entries of [low, high) in one range. */
static err walk(page *p) {
    slice key, value, low = layout_view(&p->inner->low), high = layout_view(&p->inner->high);
    err code = OK;
    if (slice_cmp(low, high) >= 0) {
        return OK;
    }
    layout_copy(p->at, p->ask->backward ? &p->inner->high : &p->inner->low);
    store_scan *scan = store_scan_open(p->range->home->store, STORE_INDEX, p->snapshot, low, high, p->ask->backward);
    while (code == OK && takes_more(p) && store_scan_next(scan, &key, &value)) {
        code = visit_in_order(p, scan, key, value);
        if (code == OK && p->steps_left % STEPS_BETWEEN_CHECKS == 0) {
            code = op_check(p->op);
        }
    }
    if (code == OK && !p->full) {
        offer_new(p, p->ask->backward ? low : high, false);
    }
    err ended = store_scan_close(scan);
    return code != OK ? code : ended;
}

/* The position of the range with the next entry. */
static size_t next_range(const page *p) {
    const layout_key *at = p->ask->backward ? &p->left->high : &p->left->low;
    layout_key min;
    epk e = {.n = (uint8_t)(at->n - STEM_BYTES < EPK_BYTES_MAX ? at->n - STEM_BYTES : EPK_BYTES_MAX)};
    memcpy(e.bytes, at->bytes + STEM_BYTES, e.n);
    size_t i = container_position(p->tiles, &e);
    layout_partitions(&min, p->container->space->container, &p->tiles->map->ranges[i].min);
    bool empty = p->ask->backward && slice_cmp(layout_view(&min), layout_view(at)) >= 0; /* the range has nothing below `at` */
    return i - (empty && i > 0);
}

static void keep_inner(page *p, const partition_range *range) {
    layout_key bound;
    layout_partitions(&bound, p->container->space->container, &range->min);
    if (slice_cmp(layout_view(&bound), layout_view(&p->inner->low)) > 0) {
        layout_copy(&p->inner->low, &bound);
    }
    layout_partitions(&bound, p->container->space->container, &range->max);
    if (slice_cmp(layout_view(&bound), layout_view(&p->inner->high)) < 0) {
        layout_copy(&p->inner->high, &bound);
    }
}

static void find_range(page *p) {
    size_t i = p->ask->partition ? container_position(p->tiles, &p->ask->partition->epk) : next_range(p);
    layout_copy(&p->inner->low, &p->left->low);
    layout_copy(&p->inner->high, &p->left->high);
    if (!p->ask->partition) {
        keep_inner(p, &p->tiles->map->ranges[i]);
    }
    p->range = p->tiles->ranges[i];
}

static void settle(page *p, double before) {
    item__debit(p->items, p->op, p->range, p->ask->partition, METER_QUERY, p->op->charge_ru - before, false);
    p->out->mark = item_mark_of(p->range);
    p->any = true;
}

/* The range's lsn is read before the snapshot is taken, so the snapshot contains all writes up to it. */
static err read_at_once(page *p) {
    const home *h = p->range->home;
    const item_moment *moment = p->ask->moment;
    uint64_t lsn = moment ? 0 : atomic_load_explicit(&p->range->lsn, memory_order_acquire);
    if (moment && moment->home != h) {
        return E_TRANSACTION_SPREAD;
    }
    p->snapshot = moment ? moment->at : store_snapshot_take(h->store);
    item__near_open(&p->near, h, p->snapshot);
    p->near.lsn = lsn;
    err code = walk(p);
    err ended = item__near_close(&p->near);
    if (!moment) {
        store_snapshot_give(h->store, p->snapshot);
    }
    return code != OK ? code : ended;
}

static err read_range(page *p) {
    double before = p->op->charge_ru;
    find_range(p);
    err code = item__admit(p->items, p->op, p->range);
    if (code == E_THROTTLED && p->any) { /* the page ends with what was read */
        p->full = true;
        return OK;
    }
    TRY(code);
    charge(p, p->ask->unpriced || p->ask->entered ? 0 : CHARGE_QUERY);
    code = read_at_once(p);
    settle(p, before);
    if (code == OK && !p->full && p->ask->backward) {
        layout_copy(&p->left->high, &p->inner->low);
    } else if (code == OK && !p->full) {
        layout_copy(&p->left->low, &p->inner->high);
    }
    return code;
}

/* ---- the page ---- */

err item_rows_read(const items *s, op *o, container *c, const item_rows_ask *ask, item_rows_cursor *cursor, item_visit visit, void *context,
                   item_rows_page *page_out) {
    bounds left, inner;
    layout_key last, at;
    page whole = {.items = s, .op = o, .container = c, .ask = ask, .cursor = cursor, .out = page_out, .visit = visit, .context = context};
    page *p = &whole;
    p->left = &left;
    p->inner = &inner;
    p->last = &last;
    p->at = &at;
    p->steps_left = ask->steps_max;
    p->wipes = ask->moment ? item_wipes_past(c) : item_wipes_now(c);
    *page_out = (item_rows_page){0};
    if (cursor->ended) {
        return OK;
    }
    TRY(check_bounds(o, ask));
    ask->partition ? set_partition(p) : set_space(p);
    TRY(resume(p));
    p->tiles = ask->moment ? container_tiles_take(ask->moment->tiles) : container_space_newest(c->space);
    err code = OK;
    do { /* an empty range of keys is admitted and charged too, as a page without rows */
        code = read_range(p);
    } while (code == OK && !p->full && !nothing_left(p));
    container_tiles_give(p->tiles);
    if (code == OK) {
        keep_place(p);
    }
    return code;
}
