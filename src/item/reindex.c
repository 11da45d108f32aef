/* The state, 'I' in STORE_META of each home: generation u8 · generation being built u8, or 0 · progress of the build (segment, number) ·
 * items built u64 · policy of the current generation as BSON · in a home that does not hold the container's record: policy of the
 * generation being built, if there is one. Without a state, the index has generation 1 and the container's own policy. */
#include "item/reindex.h"

#include <endian.h>

#include "base/log.h"
#include "item/index_entries.h"

enum { STATE_BYTES = 2 + 12 + 8, COST_BYTES = 4096 };

typedef struct state {
    uint8_t generation, building;
    item_place place;
    uint64_t built;
    slice policy;
    slice building_policy; /* empty: the container's own */
} state;

static void put_state(store_batch *batch, uint32_t container, const state *s) {
    layout_key k;
    uint64_t built = htobe64(s->built);
    layout_index_state(&k, container);
    char *p = store_put_space(batch, STORE_META, layout_view(&k), STATE_BYTES + s->policy.n + s->building_policy.n);
    p[0] = (char)s->generation;
    p[1] = (char)s->building;
    layout_place_write(p + 2, s->place);
    memcpy(p + 14, &built, sizeof built);
    memcpy(p + STATE_BYTES, s->policy.p ? s->policy.p : "", s->policy.n);
    memcpy(p + STATE_BYTES + s->policy.n, s->building_policy.p ? s->building_policy.p : "", s->building_policy.n);
}

static bool read_state(slice value, state *s) {
    uint64_t built;
    if (value.n < STATE_BYTES || !layout_place_read(slice_of(value.p + 2, 12), &s->place)) {
        return false;
    }
    s->generation = (uint8_t)value.p[0];
    s->building = (uint8_t)value.p[1];
    memcpy(&built, value.p + 14, sizeof built);
    s->built = be64toh(built);
    slice policies = slice_skip(value, STATE_BYTES);
    uint32_t first = 0;
    memcpy(&first, policies.p, policies.n < sizeof first ? 0 : sizeof first); /* a BSON document begins with its length */
    first = le32toh(first);
    s->policy = first && first < policies.n ? slice_of(policies.p, first) : policies;
    s->building_policy = slice_skip(policies, s->policy.n);
    return true;
}

static uint64_t items_in(const container_part *part) {
    uint64_t n = 0;
    for (size_t i = 0; i < part->tiles->map->n; i++) {
        const container_range *range = part->tiles->ranges[i];
        n += range->home == part->home ? atomic_load(&range->items) : 0;
    }
    return n;
}

static void note_progress(container_part *part, uint64_t built) {
    uint64_t all = items_in(part), percent = all ? built * 100 / all : 99;
    part->index_progress = (uint32_t)(percent < 99 ? percent : 99);
}

/* At the rate since the first step of this build, or since the server's start. */
static void note_seconds(container_part *part, uint64_t built, int64_t now_us) {
    uint64_t all = items_in(part);
    if (!part->build_seen_us) {
        part->build_seen_us = now_us;
        part->build_seen = built;
    } else if (built > part->build_seen) {
        double each_us = (double)(now_us - part->build_seen_us) / (double)(built - part->build_seen);
        part->index_seconds = (uint32_t)(each_us * (double)(all > built ? all - built : 0) / 1e6 + 0.5);
    }
}

static void forget_seconds(container_part *part) {
    part->build_seen_us = 0;
    part->index_seconds = (uint32_t)CONTAINER_UNKNOWN;
}

static err load_part(container *c, container_part *part, slice policy) {
    layout_key k;
    store_value value;
    state now = {0};
    layout_index_state(&k, c->space->container);
    err code = store_get(part->home->store, STORE_META, NULL, layout_view(&k), &value);
    if (code == E_NOT_FOUND) {
        container_part_set_index(c->space, part, container_index_new(1, policy, &c->key), NULL);
        return OK;
    }
    TRY(code);
    bool read = read_state(value.bytes, &now);
    if (read) {
        container_part_set_index(
            c->space, part, container_index_new(now.generation, now.policy, &c->key),
            now.building ? container_index_new(now.building, now.building_policy.n ? now.building_policy : policy, &c->key) : NULL);
    }
    store_give(&value);
    return read ? OK : E_STORE_CORRUPT;
}

err item_index_load(container *c, slice policy) {
    for (size_t i = 0; i < c->space->parts_n; i++) {
        container_part *part = &c->space->parts[i];
        TRY(part->home ? load_part(c, part, policy) : OK);
    }
    return OK;
}

void item_index_new(container *c, slice policy) {
    for (size_t i = 0; i < c->space->parts_n; i++) {
        container_part *part = &c->space->parts[i];
        if (part->home) {
            container_part_set_index(c->space, part, container_index_new(1, policy, &c->key), NULL);
        }
    }
}

static err load_progress(const container *c, container_part *part) {
    layout_key k;
    store_value value;
    state now;
    layout_index_state(&k, c->space->container);
    TRY(store_get(part->home->store, STORE_META, NULL, layout_view(&k), &value));
    bool read = read_state(value.bytes, &now);
    store_give(&value);
    if (read) {
        note_progress(part, now.built);
        forget_seconds(part);
    }
    return read ? OK : E_STORE_CORRUPT;
}

err item_index_progress(container *c) {
    for (size_t i = 0; i < c->space->parts_n; i++) {
        TRY(c->space->parts[i].building ? load_progress(c, &c->space->parts[i]) : OK);
    }
    return OK;
}

/* ---- generations ---- */

static void delete_run(store_batch *batch, layout_key *from) {
    layout_key to = *from;
    layout_after(&to);
    store_delete_range(batch, STORE_TERMS, layout_view(from), layout_view(&to));
}

static void delete_generation(store_batch *batch, uint32_t container, const container_part *part, uint8_t generation) {
    layout_key k;
    for (uint32_t segment = 0; container_tiles_segment(part->tiles, part->home, segment, &segment); segment++) {
        layout_terms(&k, segment, generation);
        delete_run(batch, &k);
    }
    layout_local_terms(&k, container, generation, NULL);
    delete_run(batch, &k);
    layout_shapes(&k, container, generation);
    delete_run(batch, &k);
}

static uint8_t free_generation(uint8_t a, uint8_t b) {
    uint8_t g = 1;
    while (g == a || g == b) {
        g++;
    }
    return g;
}

/* ---- a change of settings ---- */

err item_index_pin(commit_group *group, const container *c, const home *home) {
    layout_key k;
    store_value value;
    bool of_group;
    const container_index *index = container_part_of(c->space, home)->index;
    layout_index_state(&k, c->space->container);
    err code = commit_get(group, STORE_META, layout_view(&k), &value, &of_group);
    if (code == OK) {
        store_give(&value);
    } else if (code == E_NOT_FOUND) {
        put_state(&group->batch, c->space->container, &(state){.generation = index->generation, .policy = index->settings});
        code = OK;
    }
    return code;
}

bool item_index_matches_policy(const container *c, container_part *part) {
    container_index *goal = container_part_next_index(c->space, part);
    bool same = index_policy_same(&goal->policy, &c->index);
    container_index_give(goal);
    return same;
}

void item_index_change(commit_group *group, container *c, const home *home, slice policy, index_change *change_out) {
    uint32_t number = c->space->container;
    container_part *part = container_part_of(c->space, home);
    container_index *index = part->index, *building = part->building;
    *change_out = (index_change){part, index, building, false};
    container_index *wanted = container_index_new(free_generation(index->generation, building ? building->generation : 0), policy, &c->key);
    if (index_policy_same(&(building ? building : index)->policy, &wanted->policy)) {
        container_index_give(wanted);
        return;
    }
    if (building) {
        delete_generation(&group->batch, number, part, building->generation);
    }
    bool back = index_policy_same(&index->policy, &wanted->policy);
    bool at_once = !back && (wanted->policy.off || items_in(part) == 0);
    if (back) {
        container_index_give(wanted);
        *change_out = (index_change){part, index, NULL, true};
    } else if (at_once) {
        delete_generation(&group->batch, number, part, index->generation);
        *change_out = (index_change){part, wanted, NULL, true};
    } else {
        *change_out = (index_change){part, index, wanted, true};
    }
    state now = {.generation = change_out->index->generation,
                 .building = change_out->building ? change_out->building->generation : 0,
                 .policy = change_out->index->settings,
                 .building_policy = home->number && change_out->building ? change_out->building->settings : SLICE_EMPTY};
    put_state(&group->batch, number, &now);
    part->index_switching = true;
}

void item_index_changed(container *c, index_change *change, err code) {
    container_part *part = change->part;
    if (!change->any) {
        return;
    }
    if (code == OK) {
        container_part_set_index(c->space, part, change->index, change->building);
        part->index_progress = change->building ? 0 : 100;
        forget_seconds(part);
    } else {
        if (change->index != part->index) {
            container_index_give(change->index);
        }
        if (change->building && change->building != part->building) {
            container_index_give(change->building);
        }
    }
    part->index_switching = false;
    change->any = false;
}

/* ---- building ---- */

typedef struct build {
    item_work work;
    container_index *index;
    state state;
    unsigned cost_left;
} build;

/* Builds the current version of the item, including the group's changes. */
static err build_one(build *b) {
    stored_item stored;
    item_key key;
    err code = item__load_place(&b->work, b->state.place, &stored);
    if (code == E_NOT_FOUND || code == E_STORE_CORRUPT) { /* deleted; or damaged, which was logged: it stays without entries */
        return OK;
    }
    TRY(code);
    code = item__key_of(b->work.container, b->work.arena, stored.body, &key);
    code = code == OK ? item__enter(&b->work, &key) : code;
    code = code == OK ? item__build_terms(&b->work, b->index, &key, &stored) : code;
    size_t cost = 1 + stored.body.n / COST_BYTES;
    b->cost_left -= cost < b->cost_left ? (unsigned)cost : b->cost_left;
    b->state.built++;
    store_give(&stored.pin);
    return code;
}

static err build_segment(build *b, bool *ended_out) {
    layout_key from, to;
    slice key, value;
    err code = OK;
    layout_item(&from, (item_place){b->state.place.segment, b->state.place.number + 1});
    layout_segment(&to, b->state.place.segment);
    layout_after(&to);
    store_scan *scan = store_scan_open(b->work.group->store, STORE_ITEMS, NULL, layout_view(&from), layout_view(&to), false);
    *ended_out = false;
    while (code == OK && b->cost_left > 0 && !*ended_out) {
        *ended_out = !store_scan_next(scan, &key, &value);
        if (!*ended_out) {
            code = layout_item_read(key, &b->state.place) ? build_one(b) : E_STORE_CORRUPT;
        }
    }
    err ended = store_scan_close(scan);
    return code != OK ? code : ended;
}

/* Continues where the last step ended, through as many segments as the cost allows. *ended_out: no segment is left. */
static err build_some(build *b, bool *ended_out) {
    uint32_t segment;
    *ended_out = false;
    while (b->cost_left > 0 && !*ended_out) {
        bool of_segment;
        if (!container_tiles_segment(b->work.tiles, b->work.home, b->state.place.segment, &segment)) {
            *ended_out = true;
            return OK;
        }
        b->state.place = segment == b->state.place.segment ? b->state.place : (item_place){segment, 0};
        TRY(build_segment(b, &of_segment));
        b->state.place = of_segment ? (item_place){segment + 1, 0} : b->state.place;
        b->cost_left -= b->cost_left > 0;
    }
    return OK;
}

static err load_state(commit_group *group, uint32_t container, arena *a, state *now) {
    layout_key k;
    store_value value;
    bool of_group;
    layout_index_state(&k, container);
    TRY(commit_get(group, STORE_META, layout_view(&k), &value, &of_group));
    bool read = read_state(value.bytes, now);
    now->policy = arena_copy(a, now->policy);
    now->building_policy = arena_copy(a, now->building_policy);
    store_give(&value);
    return read ? OK : E_STORE_CORRUPT;
}

static err run_step(item_index_step *step, commit_group *group, arena *scratch) {
    container_space *space = step->container->space;
    container_part *part = container_part_of(space, step->home);
    build b = {
        .work = {.items = step->items,
                 .home = step->home,
                 .group = group,
                 .container = step->container,
                 .part = part,
                 .tiles = part->tiles,
                 .arena = scratch,
                 .now_s = clock_wall_ms(step->items->clock) / 1000},
        .index = part->building,
        .cost_left = step->cost_max,
    };
    TRY(load_state(group, space->container, scratch, &b.state));
    TRY(build_some(&b, &step->ended));
    put_state(&group->batch, space->container, &b.state);
    note_progress(part, b.state.built);
    note_seconds(part, b.state.built, clock_monotonic_us(step->items->clock));
    return OK;
}

/* Alone in its group: writes before it have maintained both generations, writes after it maintain only the new one. */
static err run_switch(item_index_step *step, commit_group *group) {
    container_space *space = step->container->space;
    container_part *part = container_part_of(space, step->home);
    container_index *made = part->building;
    delete_generation(&group->batch, space->container, part, ((container_index *)part->index)->generation);
    put_state(&group->batch, space->container, &(state){.generation = made->generation, .policy = made->settings});
    step->change = (index_change){part, made, NULL, true};
    part->index_switching = true;
    return OK;
}

static err step_apply(commit *base, commit_group *group) {
    item_index_step *step = (item_index_step *)base;
    arena scratch = arena_init();
    step->ended = false;
    step->change = (index_change){0};
    if (step->container->space->deleted || !container_part_of(step->container->space, step->home)->building) {
        step->ended = true;
        return OK;
    }
    err code = step->switches ? run_switch(step, group) : run_step(step, group, &scratch);
    if (code != OK) {
        log_warn("item", "an index is not built further", "container=%u code=%s", step->container->space->container,
                 err_lookup(code)->name);
    }
    arena_free(&scratch);
    return code;
}

static void step_done(commit *base) {
    item_index_step *step = (item_index_step *)base;
    item_index_changed(step->container, &step->change, base->code);
    step->done(step);
}

void item_index_step_submit(item_index_step *step) {
    step->base = (commit){.queue = &container_part_of(step->container->space, step->home)->commits,
                          .apply = step_apply,
                          .done = step_done,
                          .solo = step->switches};
    committer_submit(step->home->committer, &step->base);
}
