#include "item/container.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "item/counts.h"
#include "item/logical_size.h"
#include "item/nearest.h"
#include "item/waiters.h"
#include "item/wipe.h"

container *container_new(void) {
    static _Atomic uint64_t serials = 1;
    container *c = mem_zero(sizeof *c);
    c->refs = 1;
    c->memory = mem_zero(sizeof *c->memory);
    *c->memory = (container_memory){.refs = 1, .serial = atomic_fetch_add(&serials, 1), .arena = arena_init_small()};
    return c;
}

container *container_with_tiles(const container *before, container_tiles *tiles) {
    enum { REST = offsetof(container, space) }; /* all but the refcount, which other threads may be changing */
    container *c = mem_alloc(sizeof *c);
    memcpy((char *)c + REST, (const char *)before + REST, sizeof *c - REST);
    atomic_init(&c->refs, 1);
    c->tiles = tiles;
    atomic_fetch_add_explicit(&c->memory->refs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->space->refs, 1, memory_order_relaxed);
    return c;
}

container *container_take(container *c) {
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void container_give(container *c) {
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (c->space) { /* otherwise it was never completed */
        container_tiles_give(c->tiles);
        container_space_give(c->space);
    }
    if (atomic_fetch_sub_explicit(&c->memory->refs, 1, memory_order_acq_rel) == 1) {
        arena_free(&c->memory->arena);
        free(c->memory);
    }
    free(c);
}

/* ---- ranges ---- */

static container_range *range_of_hook(commit_hook *hook) {
    return (container_range *)hook;
}

static void range_before(commit_hook *hook, commit_group *group) {
    container_range *range = range_of_hook(hook);
    counts_log_add(range->home->counts, range);
    if (range->watch) {
        range_watch_count(range->watch, group);
    }
}

static void publish(container_range *range) {
    atomic_store_explicit(&range->lsn, range->written.lsn, memory_order_release);
    atomic_store_explicit(&range->items, range->written.items, memory_order_relaxed);
    atomic_store_explicit(&range->bytes, range->written.bytes, memory_order_relaxed);
    atomic_store_explicit(&range->index_bytes, range->written.index_bytes, memory_order_relaxed);
    atomic_store_explicit(&range->partitions, range->written.partitions, memory_order_relaxed);
}

static void range_after(commit_hook *hook, err code) {
    container_range *range = range_of_hook(hook);
    if (range->watch) {
        range_watch_end(range->watch, code);
    }
    bool advanced = code == OK && range->pending.lsn != range->written.lsn;
    if (code == OK) {
        range->written = range->pending;
        publish(range);
    } else {
        range->pending = range->written;
        if (range->pending.number_next < range->reserved_next) { /* reserved numbers stay reserved */
            range->pending.number_next = range->reserved_next;
        }
    }
    range->late = false;
    waiters_published(range, advanced);
}

container_range *container_range_new(uint32_t container, const partition_range *range, uint32_t segment, home *home) {
    container_range *made = mem_zero(sizeof *made);
    made->hook = (commit_hook){.before = range_before, .after = range_after};
    made->refs = 1;
    made->home = home;
    made->container = container;
    made->id = range->id;
    made->rid_prefix = range->rid_prefix;
    made->segment = segment;
    made->first = waiters_first(&range->min);
    made->last = waiters_last(&range->max);
    made->pending.number_next = made->written.number_next = 1;
    made->bucket = bucket_new(0, false, 0);
    meter_init(&made->meter);
    return made;
}

container_range *container_range_take(container_range *range) {
    atomic_fetch_add_explicit(&range->refs, 1, memory_order_relaxed);
    return range;
}

void container_range_give(container_range *range) {
    if (atomic_fetch_sub_explicit(&range->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < range->past_buckets_n; i++) {
        bucket_give(range->past_buckets[i]);
    }
    free(range->past_buckets);
    free(range->touched);
    bucket_give(range->bucket);
    meter_free(&range->meter);
    hotkeys *hot = atomic_load(&range->hotkeys);
    if (hot) {
        hotkeys_free(hot);
    }
    range_graphs_free(atomic_load(&range->graphs));
    free(range);
}

void container_range_restore(container_range *range, const range_counts *counts) {
    range->pending = range->written = *counts;
    publish(range);
}

void container_range_set_bucket(container_range *range, bucket *b) {
    bucket *before = atomic_exchange(&range->bucket, b);
    for (size_t i = 0; i < range->past_buckets_n; i++) {
        if (range->past_buckets[i] == before) { /* already in the list */
            bucket_give(before);
            return;
        }
    }
    range->past_buckets = mem_resize(range->past_buckets, (range->past_buckets_n + 1) * sizeof *range->past_buckets);
    range->past_buckets[range->past_buckets_n++] = before;
}

/* ---- tiles ---- */

typedef struct segment_use {
    uint32_t segment;
    home *home;
    range_source *source;
} segment_use;

static int by_segment(const void *a, const void *b) {
    uint32_t x = ((const segment_use *)a)->segment, y = ((const segment_use *)b)->segment;
    return (x > y) - (x < y);
}

/* A segment in the lists of two ranges is shared. */
static void mark_shared(segment_use *uses, size_t n) {
    qsort(uses, n, sizeof *uses, by_segment);
    for (size_t i = 0; i < n; i++) {
        bool before = i > 0 && uses[i - 1].segment == uses[i].segment;
        bool after = i + 1 < n && uses[i + 1].segment == uses[i].segment;
        uses[i].source->shared = before || after;
    }
}

static void copy_sources(container_tiles *tiles, const range_sources *sources) {
    size_t total = 0, at = 0, n = tiles->map->n;
    for (size_t i = 0; i < n; i++) {
        total += sources[i].n;
    }
    range_source *list = arena_array(&tiles->arena, range_source, total);
    segment_use *uses = mem_alloc(total * sizeof *uses);
    for (size_t i = 0; i < n; i++) {
        tiles->sources[i] = (range_sources){list + at, sources[i].n};
        for (size_t j = 0; j < sources[i].n; j++, at++) {
            list[at] = sources[i].list[j];
            uses[at] = (segment_use){list[at].segment, tiles->ranges[i]->home, &list[at]};
        }
    }
    mark_shared(uses, total);
    tiles->segments = arena_array(&tiles->arena, uint32_t, total);
    tiles->segment_homes = arena_array(&tiles->arena, home *, total);
    for (size_t i = 0; i < total; i++) {
        if (i == 0 || uses[i].segment != uses[i - 1].segment) {
            tiles->segment_homes[tiles->segments_n] = uses[i].home;
            tiles->segments[tiles->segments_n++] = uses[i].segment;
        }
    }
    free(uses);
}

container_tiles *container_tiles_new(partition_map *map, container_range *const *ranges, const range_sources *sources) {
    container_tiles *tiles = mem_zero(sizeof *tiles);
    tiles->refs = 1;
    tiles->arena = arena_init_small();
    tiles->map = map;
    tiles->ranges = arena_array(&tiles->arena, container_range *, map->n);
    tiles->sources = arena_array(&tiles->arena, range_sources, map->n);
    memcpy(tiles->ranges, ranges, map->n * sizeof *ranges);
    copy_sources(tiles, sources);
    return tiles;
}

container_tiles *container_tiles_take(container_tiles *tiles) {
    atomic_fetch_add_explicit(&tiles->refs, 1, memory_order_relaxed);
    return tiles;
}

void container_tiles_give(container_tiles *tiles) {
    if (atomic_fetch_sub_explicit(&tiles->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < tiles->map->n; i++) {
        container_range_give(tiles->ranges[i]);
    }
    partition_map_free(tiles->map);
    arena_free(&tiles->arena);
    free(tiles);
}

bool container_tiles_segment(const container_tiles *tiles, const home *home, uint32_t segment, uint32_t *segment_out) {
    size_t low = 0, high = tiles->segments_n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (tiles->segments[middle] < segment) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (home && low < tiles->segments_n && tiles->segment_homes[low] != home) {
        low++;
    }
    if (low == tiles->segments_n) {
        return false;
    }
    *segment_out = tiles->segments[low];
    return true;
}

/* ---- the space ---- */

container_index *container_index_new(uint8_t generation, slice policy, const pkey_definition *key) {
    container_index *index = mem_zero(sizeof *index);
    op unused;
    index->refs = 1;
    index->generation = generation;
    index->arena = arena_init_small();
    index->settings = arena_copy(&index->arena, policy);
    op_init(&unused, &index->arena, 0);
    if (index_policy_parse(&unused, index->settings, key->paths, key->n, &index->policy) != OK) {
        index->policy.off = true; /* cannot happen, since the policy was validated before; if it did, the index would be off */
    }
    return index;
}

container_index *container_index_take(container_index *index) {
    atomic_fetch_add_explicit(&index->refs, 1, memory_order_relaxed);
    return index;
}

void container_index_give(container_index *index) {
    if (index && atomic_fetch_sub_explicit(&index->refs, 1, memory_order_acq_rel) == 1) {
        arena_free(&index->arena);
        free(index->shapes);
        free(index->shapes_made);
        free(index);
    }
}

/* Sets the space of new ranges before any commit writes to them. */
static void belong(container_space *space, const container_tiles *tiles) {
    for (size_t i = 0; i < tiles->map->n; i++) {
        if (!tiles->ranges[i]->space) {
            tiles->ranges[i]->space = space;
        }
    }
}

container_space *container_space_new(uint32_t number, size_t homes_n, container_tiles *tiles) {
    container_space *space = mem_zero(sizeof *space + homes_n * sizeof *space->parts);
    space->refs = 1;
    space->container = number;
    space->newest = tiles;
    space->epoch = tiles->epoch;
    space->parts_n = homes_n;
    for (size_t i = 0; i < homes_n; i++) {
        space->parts[i].index_progress = 100;
        space->parts[i].log_generation = 1;
    }
    for (size_t i = 0; i < tiles->map->n; i++) {
        container_part *part = container_part_of(space, tiles->ranges[i]->home);
        if (!part->home) {
            part->home = tiles->ranges[i]->home;
            part->tiles = container_tiles_take(tiles);
        }
    }
    pthread_mutex_init(&space->lock, NULL);
    pthread_rwlock_init(&space->wipes_lock, NULL);
    meter_init(&space->past);
    provisioned_init(&space->provisioned);
    belong(space, tiles);
    return space;
}

void container_space_give(container_space *space) {
    if (atomic_fetch_sub_explicit(&space->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < space->parts_n; i++) {
        container_part *part = &space->parts[i];
        if (part->tiles) {
            container_tiles_give(part->tiles);
        }
        container_index_give(part->index);
        container_index_give(part->building);
    }
    container_tiles_give(space->newest);
    waiters_free(atomic_load(&space->waiters));
    pthread_mutex_destroy(&space->lock);
    item__wipes_free(space);
    meter_free(&space->past);
    provisioned_free(&space->provisioned);
    free(space);
}

void container_space_set(container_space *space, const home *home, container_tiles *tiles) {
    container_part *part = container_part_of(space, home);
    tiles->epoch = space->newest->epoch + 1;
    belong(space, tiles);
    container_tiles_give(part->tiles);
    part->tiles = container_tiles_take(tiles);
    pthread_mutex_lock(&space->lock);
    container_tiles *before = space->newest;
    space->newest = tiles;
    pthread_mutex_unlock(&space->lock);
    atomic_store(&space->epoch, tiles->epoch);
    container_tiles_give(before);
}

container_tiles *container_space_newest(container_space *space) {
    pthread_mutex_lock(&space->lock);
    container_tiles *tiles = container_tiles_take(space->newest);
    pthread_mutex_unlock(&space->lock);
    return tiles;
}

/* ---- freezing ---- */

/* Whether the freeze is in force. One that is over is removed, unless somebody retires the container at that very moment. */
static bool holds(container_space *space, const clock_source *clock, int64_t *until_out) {
    int64_t until = atomic_load(&space->frozen_us);
    bool over = until != CONTAINER_FOREVER && clock_monotonic_us(clock) >= until;
    if (until && over && atomic_compare_exchange_strong(&space->frozen_us, &until, 0)) {
        until = 0;
    }
    *until_out = until;
    return until != 0;
}

bool container_space_freeze(container_space *space, const clock_source *clock, int64_t token, int64_t until_us) {
    int64_t now;
    bool frozen = holds(space, clock, &now);
    return (frozen ? now != CONTAINER_FOREVER && now == token : token == 0) &&
           atomic_compare_exchange_strong(&space->frozen_us, &now, until_us);
}

bool container_space_thaw(container_space *space, int64_t token) {
    return token > 0 && token != CONTAINER_FOREVER && atomic_compare_exchange_strong(&space->frozen_us, &token, 0);
}

bool container_space_retire(container_space *space, int64_t token) {
    return token > 0 && token != CONTAINER_FOREVER && atomic_compare_exchange_strong(&space->frozen_us, &token, CONTAINER_FOREVER);
}

bool container_space_is_frozen(container_space *space, const clock_source *clock) {
    int64_t until;
    return atomic_load(&space->frozen_us) && holds(space, clock, &until);
}

bool container_space_claim(container_space *space, const clock_source *clock, uint64_t claimant, int64_t until_us) {
    pthread_mutex_lock(&space->lock);
    bool held = space->claimed_until_us > clock_monotonic_us(clock);
    bool good = !held || space->claimant == claimant;
    if (good) {
        space->claimant = claimant;
        space->claimed_until_us = until_us;
    }
    pthread_mutex_unlock(&space->lock);
    return good;
}

err container_check_writable(const container *c, const clock_source *clock) {
    return !container_space_is_frozen(c->space, clock) ? OK : c->retired ? E_RETIRED : E_FROZEN;
}

container_index *container_space_index(container_space *space) {
    container_part *part = space->parts;
    while (!part->home) { /* every container has a range, so some part has a home */
        part++;
    }
    return container_part_index(space, part);
}

void container_part_set_rules(container_part *part, int32_t ttl, uint32_t version_minutes) {
    part->ttl = ttl;
    if (version_minutes != atomic_load(&part->version_minutes)) {
        part->log_generation++;
        part->trim_from = 0;
        atomic_store(&part->trim_due_s, 0);
    }
    atomic_store(&part->version_minutes, version_minutes);
}

uint32_t container_space_progress(const container_space *space) {
    uint32_t least = 100;
    for (size_t i = 0; i < space->parts_n; i++) {
        uint32_t progress = atomic_load(&space->parts[i].index_progress);
        least = progress < least ? progress : least;
    }
    return least;
}

uint32_t container_space_seconds(const container_space *space) {
    uint32_t most = 0;
    for (size_t i = 0; i < space->parts_n; i++) {
        const container_part *part = &space->parts[i];
        uint32_t seconds = atomic_load(&part->index_progress) < 100 ? atomic_load(&part->index_seconds) : 0;
        most = seconds > most ? seconds : most; /* CONTAINER_UNKNOWN is the highest */
    }
    return most;
}

container_index *container_part_index(container_space *space, container_part *part) {
    pthread_mutex_lock(&space->lock);
    container_index *index = container_index_take(part->index);
    pthread_mutex_unlock(&space->lock);
    return index;
}

container_index *container_part_next_index(container_space *space, container_part *part) {
    pthread_mutex_lock(&space->lock);
    container_index *index = container_index_take(part->building ? part->building : part->index);
    pthread_mutex_unlock(&space->lock);
    return index;
}

void container_part_set_index(container_space *space, container_part *part, container_index *index, container_index *building) {
    container_index *before = part->index, *other = part->building;
    pthread_mutex_lock(&space->lock);
    part->index = index;
    part->building = building;
    pthread_mutex_unlock(&space->lock);
    if (before != index && before != building) {
        container_index_give(before);
    }
    if (other != index && other != building) {
        container_index_give(other);
    }
}
