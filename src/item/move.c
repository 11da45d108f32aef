/* Moving items after a split. At first both new ranges have their items in the parent's segment, and each skips the other's. The smaller
 * range leaves: small commits move its items, with their numbers, to its own segment; when none is left, the parent's segment belongs to
 * the other range alone. The progress of the move is in STORE_META, so it continues after a restart. */
#include "base/log.h"
#include "item/stored.h"

enum { COST_BYTES = 4096, STEPS_PER_COST = 8, SEGMENT_STEPS = 16 };

typedef struct mover {
    item_work work;
    item_move *move;
    const range_sources *sources;
    const partition_range *range;
    item_place place; /* the last place visited */
    unsigned cost_left;
    size_t steps_left; /* limits the items of other ranges, and the segments, that are visited: these are cheap, but not free */
} mover;

/* Finds the next segment, from `segment` on, that the range is leaving. */
static bool leaving_from(const range_sources *sources, uint32_t segment, uint32_t *segment_out) {
    for (size_t i = 0; i < sources->n; i++) {
        if (sources->list[i].leaving && sources->list[i].segment >= segment) {
            *segment_out = sources->list[i].segment;
            return true;
        }
    }
    return false;
}

static bool is_ours(const mover *m, const epk *e) {
    return epk_cmp(&m->range->min, e) <= 0 && epk_cmp(e, &m->range->max) < 0;
}

static err move_stored(mover *m, const item_key *key, stored_item *stored) {
    err code = item__move(&m->work, key, stored, m->work.range->segment);
    size_t cost = 1 + stored->body.n / COST_BYTES;
    m->cost_left -= cost < m->cost_left ? (unsigned)cost : m->cost_left;
    m->move->moved++;
    return code;
}

/* The current group may have changed the item: move its current version. */
static err move_one(mover *m, const item_key *key) {
    stored_item stored;
    err code = item__load_place(&m->work, m->place, &stored);
    if (code == E_NOT_FOUND) {
        return OK;
    }
    TRY(code);
    code = move_stored(m, key, &stored);
    store_give(&stored.pin);
    return code;
}

static err refuse_damaged(const mover *m) {
    log_error("item", "a damaged item is not moved", "segment=%u number=%lu", m->place.segment, (unsigned long)m->place.number);
    return OK;
}

/* The place holds a lead, so the item must be loaded to find its range. */
static err move_led(mover *m) {
    stored_item stored;
    item_key key;
    err code = item__load_place(&m->work, m->place, &stored);
    if (code == E_NOT_FOUND || code == E_STORE_CORRUPT) {
        return code == E_NOT_FOUND ? OK : refuse_damaged(m);
    }
    TRY(code);
    if (item__key_of(m->work.container, m->work.arena, stored.body, &key) != OK) {
        code = refuse_damaged(m);
    } else if (is_ours(m, &key.epk)) {
        code = move_stored(m, &key, &stored);
    }
    store_give(&stored.pin);
    return code;
}

/* A damaged item stays where it is; the move continues with the others. */
static err visit(mover *m, slice value) {
    item_head head;
    slice body, primary;
    item_key key;
    if (layout_lead_read(value, &primary)) {
        return move_led(m);
    }
    if (!layout_head_read(value, &head, &body) || item__key_of(m->work.container, m->work.arena, body, &key) != OK) {
        return refuse_damaged(m);
    }
    return is_ours(m, &key.epk) ? move_one(m, &key) : OK;
}

/* Continues after m->place, as far as the cost allows. *ended_out: the segment is finished. */
static err move_segment(mover *m, bool *ended_out) {
    layout_key from, to;
    slice key, value;
    err code = OK;
    layout_item(&from, (item_place){m->place.segment, m->place.number + 1});
    layout_segment(&to, m->place.segment);
    layout_after(&to);
    store_scan *scan = store_scan_open(m->work.group->store, STORE_ITEMS, NULL, layout_view(&from), layout_view(&to), false);
    *ended_out = false;
    while (code == OK && m->cost_left > 0 && m->steps_left > 0) {
        if (!store_scan_next(scan, &key, &value)) {
            *ended_out = true;
            break;
        }
        item_place before = m->place;
        m->steps_left--;
        code = layout_item_read(key, &m->place) ? visit(m, value) : E_STORE_CORRUPT;
        m->place = code == OK ? m->place : before;
    }
    err ended = store_scan_close(scan);
    m->steps_left -= m->steps_left < SEGMENT_STEPS ? m->steps_left : SEGMENT_STEPS;
    return code != OK ? code : ended;
}

static err load_place(mover *m, const layout_key *k) {
    store_value value;
    bool of_group;
    m->place = (item_place){0};
    err code = commit_get(m->work.group, STORE_META, layout_view(k), &value, &of_group);
    if (code == E_NOT_FOUND) {
        return OK;
    }
    TRY(code);
    bool read = layout_place_read(value.bytes, &m->place);
    store_give(&value);
    return read ? OK : E_STORE_CORRUPT;
}

/* Continues where the last step ended, through as many segments as the cost allows: after many splits and merges, most segments are
 * empty. */
static err run(mover *m) {
    layout_key k;
    char bytes[12];
    uint32_t segment = 0;
    bool ended = true;
    layout_move(&k, m->work.container->space->container, m->move->range_id);
    TRY(load_place(m, &k));
    m->move->ended = !leaving_from(m->sources, m->place.segment, &segment);
    if (m->move->ended) {
        return OK;
    }
    while (ended && m->cost_left > 0 && m->steps_left > 0 && leaving_from(m->sources, m->place.segment, &segment)) {
        m->place = segment == m->place.segment ? m->place : (item_place){segment, 0};
        TRY(move_segment(m, &ended));
        m->place = ended ? (item_place){segment + 1, 0} : m->place;
    }
    m->move->ended = ended && !leaving_from(m->sources, m->place.segment, &segment);
    layout_place_write(bytes, m->place);
    store_put(&m->work.group->batch, STORE_META, layout_view(&k), slice_of(bytes, 12));
    return OK;
}

/* If the range no longer exists, there is nothing to move. */
static err move_apply(commit *base, commit_group *group) {
    item_move *move = (item_move *)base;
    container_part *part = container_part_of(move->container->space, move->home);
    const container_tiles *tiles = part->tiles;
    const partition_range *range = partition_map_by_id(tiles->map, move->range_id);
    move->moved = 0;
    move->ended = move->container->space->deleted || !range;
    if (move->ended) {
        return OK;
    }
    size_t i = (size_t)(range - tiles->map->ranges);
    arena scratch = arena_init();
    mover m = {
        .work = {.items = move->items,
                 .home = move->home,
                 .group = group,
                 .container = move->container,
                 .part = part,
                 .tiles = tiles,
                 .range = tiles->ranges[i],
                 .arena = &scratch},
        .move = move,
        .sources = &tiles->sources[i],
        .range = range,
        .cost_left = move->cost_max,
        .steps_left = (size_t)move->cost_max * STEPS_PER_COST,
    };
    err code = run(&m);
    if (code != OK) { /* the move is tried again */
        log_warn("item", "a move stopped", "container=%u range=%u segment=%u number=%lu code=%s", move->container->space->container,
                 move->range_id, m.place.segment, (unsigned long)m.place.number, err_lookup(code)->name);
    }
    arena_free(&scratch);
    return code;
}

static void move_done(commit *base) {
    item_move *m = (item_move *)base;
    m->done(m);
}

/* The home of the range. If the range no longer exists, any home can find that out. */
static home *home_of(const item_move *m) {
    container_tiles *tiles = container_space_newest(m->container->space);
    const partition_range *range = partition_map_by_id(tiles->map, m->range_id);
    home *found = tiles->ranges[range ? (size_t)(range - tiles->map->ranges) : 0]->home;
    container_tiles_give(tiles);
    return found;
}

void item_move_submit(item_move *m) {
    m->home = home_of(m);
    m->base = (commit){.queue = &container_part_of(m->container->space, m->home)->commits, .apply = move_apply, .done = move_done};
    committer_submit(m->home->committer, &m->base);
}
