/* Expiry. Reads hide an expired item at once; its bytes are removed later, in small commits between the others.
 *
 * Items with their own ttl have an entry at the time they expire ('t'). Items under the container's default ttl have an entry at the time
 * they were written ('d'), so that a change of the default moves no entries. An entry is only a hint: the item itself decides. */
#include <endian.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "item/stored.h"
#include "item/versions.h"

enum { CLOCK_SLACK_S = 300, BACKFILL_STEP = 500, BACKFILL_BYTES = 1024 * 1024, COST_BYTES = 4096 };

/* ---- dates ---- */

typedef struct earliest {
    int64_t ms;
    bool any;
} earliest;

/* A date is spelled as its class and eight bytes, of which the first has its highest bit inverted (doc/order.h). */
static err keep_earliest(void *context, slice key) {
    earliest *e = context;
    uint64_t bits;
    doc_element date = {.type = BSON_TYPE_DATE_TIME, .value = slice_of("\0\0\0\0\0\0\0", 8)};
    buf spelled = buf_init(BUF_NO_LIMIT);
    mql_key_add(&spelled, NULL, mql_of(&date), false);
    bool is_date = key.n == spelled.n && key.p[0] == spelled.p[0];
    buf_free(&spelled);
    if (is_date) {
        memcpy(&bits, key.p + 1, sizeof bits);
        int64_t ms = (int64_t)(be64toh(bits) ^ UINT64_C(0x8000000000000000));
        e->ms = e->any && e->ms < ms ? e->ms : ms;
        e->any = true;
    }
    return OK;
}

bool item_expires_by_date(const container *c, slice body, int64_t *at_s_out) {
    arena scratch = arena_init();
    op o;
    bool any = false;
    op_init(&o, &scratch, 0);
    for (size_t i = 0; i < c->expiries_n; i++) {
        earliest e = {0};
        const date_expiry *expiry = &c->expiries[i];
        if (mql_index_keys(expiry->index, &o, &scratch, body, keep_earliest, &e) == OK && e.any) {
            int64_t at_s = e.ms / 1000 + expiry->after_s;
            *at_s_out = any && *at_s_out < at_s ? *at_s_out : at_s;
            any = true;
        }
        arena_reset(&scratch);
    }
    arena_free(&scratch);
    return any;
}

static const int64_t TIME_LAST = UINT32_MAX;

typedef struct sweep {
    commit base;
    const items *items;
    home *home;
    container *container;
    unsigned cost_left;
    atomic_uint *in_flight;
    /* new values of the part's members of the same names, once the group is written */
    uint32_t swept_own, swept_default;
    bool ttl_backfill;
} sweep;

static void spend(unsigned *cost_left, size_t bytes) {
    size_t cost = 1 + bytes / COST_BYTES;
    *cost_left -= cost < *cost_left ? (unsigned)cost : *cost_left;
}

/* Removes the item that an entry leads to, if it is expired. Deletes the entry in any case. */
static err visit_entry(item_work *w, slice entry, item_place place, unsigned *cost_left) {
    stored_item stored;
    item_key key;
    err code = item__load_place(w, place, &stored);
    spend(cost_left, code == OK ? stored.body.n : 0);
    if (code == E_NOT_FOUND || code == E_STORE_CORRUPT) { /* a damaged item was logged on loading, and stays */
        store_delete(&w->group->batch, STORE_INDEX, entry);
        return OK;
    }
    TRY(code);
    int64_t at_s;
    bool expired = w->container->expiries_n ? item_expires_by_date(w->container, stored.body, &at_s) && at_s <= w->now_s
                                            : item_expired(w->container, &stored.head, w->now_s);
    code = expired ? item__key_of(w->container, w->arena, stored.body, &key) : OK;
    code = code == OK && expired ? item__enter(w, &key) : code;
    store_mark mark = store_batch_mark(&w->group->batch);
    code = code == OK && expired ? item__remove(w, &key, &stored, true) : code;
    if (code != OK) {
        store_batch_cut(&w->group->batch, mark);
    } else {
        store_delete(&w->group->batch, STORE_INDEX, entry);
    }
    if (code == OK && expired) {
        counts_log_link(w->group, w->range);
    }
    store_give(&stored.pin);
    return code;
}

/* Visits the entries of one list up to `until`, and advances *swept if it saw them all. */
static err sweep_list(item_work *w, layout_tag tag, int64_t until, uint32_t *swept, unsigned *cost_left) {
    layout_key from, to;
    slice key, value;
    uint32_t container = w->container->space->container, time_s;
    item_place place;
    if (until <= 0) {
        return OK;
    }
    until = until < TIME_LAST ? until : TIME_LAST - 1; /* later times are stored as the last second, so they never expire */
    layout_expiry(&from, container, tag, *swept, (item_place){0});
    layout_expiry(&to, container, tag, (uint32_t)until + 1, (item_place){0});
    store_scan *scan = store_scan_open(w->group->store, STORE_INDEX, NULL, layout_view(&from), layout_view(&to), false);
    err code = OK;
    bool all = false;
    while (code == OK && *cost_left > 0) {
        if (!store_scan_next(scan, &key, &value)) {
            all = true;
            break;
        }
        if (layout_expiry_read(key, &time_s, &place)) {
            code = visit_entry(w, key, place, cost_left);
        }
    }
    err ended = store_scan_close(scan);
    if (all && code == OK && ended == OK && until > CLOCK_SLACK_S) {
        *swept = (uint32_t)(until - CLOCK_SLACK_S);
    }
    return code != OK ? code : ended;
}

/* ---- the backfill: entries for items written while the container had no ttl ---- */

/* `value` is the item, or a lead to it. */
static err backfill_one(const item_work *w, item_place place, slice value) {
    layout_key entry;
    stored_item stored;
    slice body;
    item_head head;
    bool read = layout_head_read(value, &head, &body);
    if (!read) {
        err code = item__load_place(w, place, &stored);
        if (code == E_NOT_FOUND || code == E_STORE_CORRUPT) { /* removed by this group; or damaged, and left as it is */
            return OK;
        }
        TRY(code);
        head = stored.head;
        body = stored.body;
    }
    if (item__expiry_key(w->container, w->part, place, &head, body, &entry)) {
        store_put(&w->group->batch, STORE_INDEX, layout_view(&entry), SLICE_EMPTY);
    }
    if (!read) {
        store_give(&stored.pin);
    }
    return OK;
}

/* Adds the entries of a segment's next items, and advances *place. *ended_out: the segment is finished. */
static err backfill_segment(item_work *w, item_place *place, bool *ended_out) {
    layout_key from, to;
    slice key, value;
    err code = OK;
    unsigned n = 0;
    size_t bytes = 0;
    layout_item(&from, (item_place){place->segment, place->number + 1});
    layout_segment(&to, place->segment);
    layout_after(&to);
    store_scan *scan = store_scan_open(w->group->store, STORE_ITEMS, NULL, layout_view(&from), layout_view(&to), false);
    *ended_out = false;
    while (code == OK && n < BACKFILL_STEP && bytes < BACKFILL_BYTES) {
        if (!store_scan_next(scan, &key, &value) || !layout_item_read(key, place)) {
            *ended_out = true;
            break;
        }
        n++;
        bytes += value.n;
        code = backfill_one(w, *place, value);
    }
    err ended = store_scan_close(scan);
    return code != OK ? code : ended;
}

static err backfill_step(item_work *w, bool *ttl_backfill) {
    const container_space *space = w->container->space;
    layout_key k;
    store_value value;
    bool of_group;
    item_place place = {0};
    bool ended;
    layout_backfill(&k, space->container);
    err code = commit_get(w->group, STORE_META, layout_view(&k), &value, &of_group);
    if (code == E_NOT_FOUND) {
        *ttl_backfill = false;
        return OK;
    }
    TRY(code);
    bool placed = layout_place_read(value.bytes, &place);
    store_give(&value);
    uint32_t segment;
    if (!placed || !container_tiles_segment(w->tiles, w->home, place.segment, &segment)) {
        store_delete(&w->group->batch, STORE_META, layout_view(&k));
        *ttl_backfill = false;
        return OK;
    }
    if (segment != place.segment) {
        place = (item_place){segment, 0};
    }
    TRY(backfill_segment(w, &place, &ended));
    if (ended) {
        place = (item_place){place.segment + 1, 0};
    }
    char bytes[12];
    layout_place_write(bytes, place);
    store_put(&w->group->batch, STORE_META, layout_view(&k), slice_of(bytes, 12));
    return OK;
}

void item_backfill_start(commit_group *group, uint32_t container) {
    layout_key k;
    char bytes[12];
    layout_backfill(&k, container);
    layout_place_write(bytes, (item_place){0});
    store_put(&group->batch, STORE_META, layout_view(&k), slice_of(bytes, 12));
}

/* ---- the commit ---- */

static err run_sweep(sweep *s, item_work *w) {
    if (s->ttl_backfill) {
        s->swept_own = s->swept_default = 0;
        TRY(backfill_step(w, &s->ttl_backfill));
    }
    TRY(sweep_list(w, LAYOUT_TTL_OWN, w->now_s, &s->swept_own, &s->cost_left));
    return w->part->ttl > 0 ? sweep_list(w, LAYOUT_TTL_DEFAULT, w->now_s - w->part->ttl, &s->swept_default, &s->cost_left) : OK;
}

/* If the store fails in the middle of a sweep, the sweep keeps what it has done: each item is removed as a whole, and the next sweep
 * continues there. */
static err sweep_apply(commit *base, commit_group *group) {
    sweep *s = (sweep *)base;
    container_space *space = s->container->space;
    container_part *part = container_part_of(space, s->home);
    arena scratch = arena_init();
    item_work w = {
        .items = s->items,
        .home = s->home,
        .group = group,
        .container = s->container,
        .part = part,
        .tiles = part->tiles,
        .arena = &scratch,
        .now_s = clock_wall_ms(s->items->clock) / 1000,
    };
    s->swept_own = part->swept_own;
    s->swept_default = part->swept_default;
    s->ttl_backfill = part->ttl_backfill;
    if (!space->deleted && part->ttl == s->container->ttl && part->ttl != TTL_OFF) { /* else: settings changed, next time */
        err code = run_sweep(s, &w);
        if (code != OK) {
            log_warn("item", "sweep stopped early", "container=%u code=%s", space->container, err_lookup(code)->name);
        }
    }
    arena_free(&scratch);
    return OK;
}

static void sweep_done(commit *base) {
    sweep *s = (sweep *)base;
    container_part *part = container_part_of(s->container->space, s->home);
    if (base->code == OK) {
        part->swept_own = s->swept_own;
        part->swept_default = s->swept_default;
        part->ttl_backfill = s->ttl_backfill;
    }
    atomic_uint *in_flight = s->in_flight;
    container_give(s->container);
    free(s);
    atomic_fetch_sub(in_flight, 1);
}

static void sweep_part(const items *s, container *c, container_part *part, unsigned cost_max, atomic_uint *in_flight) {
    sweep *made = mem_zero(sizeof *made);
    *made = (sweep){
        .base = {.queue = &part->commits,
                 .use = item_versions_kept(c) ? STORE_GROWS : STORE_FREES,
                 .apply = sweep_apply,
                 .done = sweep_done},
        .items = s,
        .home = part->home,
        .container = container_take(c),
        .cost_left = cost_max,
        .in_flight = in_flight,
    };
    atomic_fetch_add(in_flight, 1);
    committer_submit(part->home->committer, &made->base);
}

void item_sweep(const items *s, container *c, unsigned cost_max, atomic_uint *in_flight) {
    for (size_t i = 0; i < c->space->parts_n; i++) {
        if (c->space->parts[i].home) {
            sweep_part(s, c, &c->space->parts[i], cost_max, in_flight);
        }
    }
}
