/* Reading the log of versions: merges the segments that overlap a stretch of the hash space by lsn.
 *
 * Tiles and data must fit together, as in item/feed.c: the snapshot is taken first, and then the space's epoch is checked. The range's lsn
 * is read before the snapshot, so the snapshot contains all versions up to it. Later versions that the snapshot contains are left for the
 * next page: their commit may not be published yet, and a position beyond the range's lsn would be set back to it.
 *
 * Snapshots do not protect versions from being trimmed. So the floors are checked again after the page is read: a trim raises the floor
 * before anything is removed. */
#include "item/admit.h"
#include "item/stored.h"
#include "item/versions.h"
#include "item/view.h"
#include "throughput/charge.h"

enum { LOOKS_BYTES = 1024 * 1024, LOOKS_VERSIONS = 64 /* read between two looks at the clock */ };

/* The scan of one segment. */
typedef struct source {
    struct source *next;
    store_scan *scan;
    uint32_t segment;
    bool live; /* the rest is that of its next version */
    uint64_t lsn;
    uint16_t place;
    slice value;
} source;

typedef struct reading {
    const items *items;
    op *op;
    container *container;
    item_changes *changes;
    version_visit visit;
    void *context;
    container_tiles *tiles;
    container_range *range;
    const store_snapshot *at;
    uint64_t after; /* where the page began */
    uint64_t lsn;   /* the range's lsn, read before the snapshot */
    source *sources;
    size_t versions, bytes; /* since the last look at the clock */
    double weight;
} reading;

/* ---- log heads: which segments to read, and whether they are complete ---- */

static err too_old(const reading *r) {
    return op_fail(r->op, E_BAD_REQUEST,
                   "The change feed was asked for changes outside of its retention of %u minutes: those after LSN %lu are no longer there. "
                   "Begin anew, from now.",
                   atomic_load(&r->container->space->version_minutes), (unsigned long)r->after);
}

static err not_kept(const reading *r) {
    return op_fail(r->op, E_BAD_REQUEST, "Change Feed 'All Versions and Deletes' mode must be enabled.");
}

static void add_source(reading *r, uint32_t segment) {
    layout_key from, to;
    uint32_t container = r->container->space->container;
    source *s = arena_new(r->op->arena, source);
    layout_version(&from, container, segment, r->after + 1);
    layout_version(&to, container, segment + 1, 0);
    *s = (source){.next = r->sources, .segment = segment};
    s->scan = store_scan_open(r->range->home->store, STORE_VERSIONS, r->at, layout_view(&from), layout_view(&to), false);
    r->sources = s;
}

typedef struct heads {
    bool all_there; /* no version after the page's beginning is missing */
    bool opens;     /* scans of the segments are to be opened */
} heads;

/* Checks the range's own head. *alone_out: no other segment can have versions after the page's beginning. */
static err look_at_own(reading *r, const store_snapshot *at, heads *h, bool *alone_out) {
    layout_key k;
    store_value value;
    log_head head;
    *alone_out = r->after >= r->lsn; /* without a head, nothing was written since the range was created */
    layout_log_head(&k, r->container->space->container, r->range->segment);
    err code = store_get(r->range->home->store, STORE_VERSIONS, at, layout_view(&k), &value);
    if (code == E_NOT_FOUND) {
        return OK;
    }
    TRY(code);
    bool read = layout_log_head_read(value.bytes, &head);
    store_give(&value);
    if (!read) {
        return E_STORE_CORRUPT;
    }
    *alone_out = r->after >= head.born;
    h->all_there = h->all_there && r->after >= head.floor;
    if (*alone_out && h->opens) {
        add_source(r, r->range->segment);
    }
    return OK;
}

/* Whether a segment may have versions of the requested part. */
static bool concerns(const reading *r, const log_head *head) {
    const item_changes *asked = r->changes;
    const epk *first = asked->partition ? &asked->partition->epk : &asked->min;
    bool begins = asked->partition ? epk_cmp(&head->min, first) <= 0 : epk_cmp(&head->min, &asked->max) < 0;
    return begins && epk_cmp(first, &head->max) < 0;
}

static err look_at_all(reading *r, const store_snapshot *at, heads *h) {
    layout_key from, to;
    slice key, value;
    log_head head;
    uint32_t segment;
    err code = OK;
    layout_log_heads(&from, r->container->space->container);
    to = from;
    layout_after(&to);
    store_scan *scan = store_scan_open(r->range->home->store, STORE_VERSIONS, at, layout_view(&from), layout_view(&to), false);
    while (code == OK && store_scan_next(scan, &key, &value)) {
        if (!layout_log_head_segment(key, &segment) || !layout_log_head_read(value, &head)) {
            code = E_STORE_CORRUPT;
        } else if (concerns(r, &head)) {
            h->all_there = h->all_there && r->after >= head.floor;
            if (h->opens) {
                add_source(r, segment);
            }
        }
    }
    err ended = store_scan_close(scan);
    return code != OK ? code : ended;
}

static err look_at_heads(reading *r, const store_snapshot *at, bool opens) {
    heads h = {.all_there = true, .opens = opens};
    bool alone;
    if (r->container->space->deleted) {
        return E_OWNER_NOT_FOUND;
    }
    if (container_part_of(r->container->space, r->range->home)->version_minutes == 0) {
        return not_kept(r);
    }
    TRY(look_at_own(r, at, &h, &alone));
    if (!alone) {
        TRY(look_at_all(r, at, &h));
    }
    return h.all_there ? OK : too_old(r);
}

/* ---- the versions ---- */

static err advance(source *s) {
    slice key;
    s->live = store_scan_next(s->scan, &key, &s->value);
    if (s->live && !layout_version_lsn(key, &s->lsn)) {
        return E_STORE_CORRUPT;
    }
    s->place = s->live ? layout_version_place(key) : 0;
    return OK;
}

static bool precedes(const source *a, const source *b) {
    return a->lsn != b->lsn ? a->lsn < b->lsn : a->segment < b->segment;
}

static source *lowest(const reading *r) {
    source *low = NULL;
    for (source *s = r->sources; s; s = s->next) {
        if (s->live && (!low || precedes(s, low))) {
            low = s;
        }
    }
    return low;
}

/* Keys may share an EPK: for a partition or a prefix, the key itself is compared. */
static bool is_meant(const reading *r, const logged_version *v) {
    const item_changes *asked = r->changes;
    const epk *e = &v->entry.epk;
    bool within = asked->partition ? epk_cmp(e, &asked->partition->epk) == 0 : epk_cmp(&asked->min, e) <= 0 && epk_cmp(e, &asked->max) < 0;
    bool by_key = asked->partition || asked->prefix;
    return within &&
           (!by_key || item_in_scope(r->op, r->container, &(item_scope){.partition = asked->partition, .prefix = asked->prefix}, v->body));
}

/* Checks the clock now and then; a page never ends before its first version. */
static bool is_late(reading *r, size_t bytes) {
    r->versions++;
    r->bytes += bytes;
    if (!r->changes->until_us || (r->versions < LOOKS_VERSIONS && r->bytes < LOOKS_BYTES)) {
        return false;
    }
    r->versions = r->bytes = 0;
    return clock_monotonic_us(r->items->clock) - op_waited_us(r->op) >= r->changes->until_us;
}

static void charge(reading *r, size_t bytes) {
    double weight = charge_query_weight(bytes);
    op_charge(r->op, charge_query_items(r->weight, weight) * (r->op->strong ? CHARGE_STRONG_READ_FACTOR : 1));
    r->weight += weight;
}

/* *full_out: the page is full; this version is not part of it. */
static err offer(reading *r, const source *s, bool *full_out) {
    logged_version v = {.lsn = s->lsn, .segment = s->segment, .place = s->place};
    if (!layout_log_entry_read(s->value, &v.entry, &v.head, &v.body, &v.note)) {
        return E_STORE_CORRUPT;
    }
    if (is_meant(r, &v)) {
        *full_out = !r->visit(r->context, &v);
        if (!*full_out) {
            charge(r, v.body.n);
        }
    }
    return OK;
}

/* After a merge, versions of different ranges may have the same lsn. A page never ends between them, since a position is an lsn. */
static err read_sources(reading *r) {
    item_changes *asked = r->changes;
    bool late = false;
    for (source *s; (s = lowest(r)) && s->lsn <= r->lsn;) {
        bool full = late && s->lsn != asked->after;
        TRY(full ? OK : offer(r, s, &full));
        if (full) {
            asked->after = s->lsn - 1; /* a version with the same lsn may have been skipped before */
            asked->more = true;
            return OK;
        }
        asked->after = s->lsn;
        late = is_late(r, s->value.n) || late;
        TRY(op_check(r->op));
        TRY(advance(s));
    }
    asked->after = r->lsn > asked->after ? r->lsn : asked->after;
    return OK;
}

static err open_sources(reading *r) {
    err code = look_at_heads(r, r->at, true);
    for (source *s = r->sources; s && code == OK; s = s->next) {
        code = advance(s);
    }
    return code;
}

static err close_sources(reading *r) {
    err code = OK;
    for (source *s = r->sources; s; s = s->next) {
        err ended = store_scan_close(s->scan);
        code = code != OK ? code : ended;
    }
    r->sources = NULL;
    return code;
}

/* ---- the page ---- */

/* Finds the range that contains everything requested. */
static bool find_range(reading *r) {
    const item_changes *asked = r->changes;
    size_t i = container_position(r->tiles, asked->partition ? &asked->partition->epk : &asked->min);
    r->range = r->tiles->ranges[i];
    return asked->partition || epk_cmp(&asked->max, &r->tiles->map->ranges[i].max) <= 0;
}

/* Takes a snapshot, with the tiles that were the newest then. */
static err enter(reading *r) {
    container_space *space = r->container->space;
    for (;;) {
        r->tiles = container_space_newest(space);
        if (!find_range(r)) {
            return E_RANGE_GONE;
        }
        r->lsn = atomic_load_explicit(&r->range->lsn, memory_order_acquire);
        r->at = store_snapshot_take(r->range->home->store);
        if (atomic_load(&space->epoch) == r->tiles->epoch) {
            return OK;
        }
        store_snapshot_give(r->range->home->store, r->at);
        r->at = NULL;
        container_tiles_give(r->tiles);
    }
}

static err read_page(reading *r) {
    item_changes *asked = r->changes;
    if (asked->from_now || asked->after > r->lsn) { /* this range never gave out such an lsn */
        asked->after = r->lsn;
    }
    r->after = asked->after;
    err code = open_sources(r);
    code = code == OK && !asked->from_now ? read_sources(r) : code;
    err ended = close_sources(r);
    code = code != OK ? code : ended;
    return code != OK ? code : look_at_heads(r, NULL, false);
}

err item_versions_read(const items *s, op *o, container *c, item_changes *changes, version_visit visit, void *context,
                       item_mark *mark_out) {
    reading r = {.items = s, .op = o, .container = c, .changes = changes, .visit = visit, .context = context};
    changes->more = false;
    err code = enter(&r);
    code = code == OK ? item__admit(s, o, r.range) : code;
    if (code == OK) {
        double before = o->charge_ru;
        op_charge(o, CHARGE_CHANGES * (o->strong ? CHARGE_STRONG_READ_FACTOR : 1));
        code = read_page(&r);
        item__debit(s, o, r.range, changes->partition, METER_CHANGES, o->charge_ru - before, code != OK);
    }
    *mark_out = item_mark_of(r.range);
    mark_out->lsn = mark_out->lsn > r.lsn ? r.lsn : mark_out->lsn;
    if (r.at) {
        store_snapshot_give(r.range->home->store, r.at);
    }
    container_tiles_give(r.tiles);
    return code;
}
