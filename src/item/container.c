#include "item/container.h"

#include <stdlib.h>

#include "base/memory.h"
#include "item/layout.h"

container *container_take(container *c) {
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void container_give(container *c) {
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1) {
        if (c->space) { /* else it was never finished */
            container_space_give(c->space);
        }
        arena a = c->arena; /* the container itself lives in it */
        arena_free(&a);
    }
}

static container_range *range_of_hook(commit_hook *hook) {
    return (container_range *)hook;
}

static void range_before(commit_hook *hook, commit_group *group) {
    container_range *range = range_of_hook(hook);
    layout_key key;
    layout_range(&key, range->container, range->id);
    layout_counts_write(store_put_space(&group->batch, STORE_META, layout_view(&key), 32), &range->pending);
}

static void publish(container_range *range) {
    atomic_store_explicit(&range->lsn, range->written.lsn, memory_order_release);
    atomic_store_explicit(&range->items, range->written.items, memory_order_relaxed);
    atomic_store_explicit(&range->bytes, range->written.bytes, memory_order_relaxed);
}

static void range_after(commit_hook *hook, err code) {
    container_range *range = range_of_hook(hook);
    if (code == OK) {
        range->written = range->pending;
        publish(range);
    } else {
        range->pending = range->written;
    }
}

container_space *container_space_new(uint32_t number, partition_map *map, const uint32_t *segments) {
    container_space *space = mem_zero(sizeof *space);
    space->refs = 1;
    space->container = number;
    space->map = map;
    space->ranges = mem_zero(map->n * sizeof *space->ranges);
    for (size_t i = 0; i < map->n; i++) {
        container_range *range = &space->ranges[i];
        range->hook = (commit_hook){.before = range_before, .after = range_after};
        range->container = number;
        range->id = map->ranges[i].id;
        range->segment = segments[i];
        range->pending.number_next = range->written.number_next = 1;
    }
    return space;
}

void container_space_give(container_space *space) {
    if (atomic_fetch_sub_explicit(&space->refs, 1, memory_order_acq_rel) == 1) {
        partition_map_free(space->map);
        free(space->ranges);
        free(space);
    }
}

void container_range_restore(container_range *range, const range_counts *counts) {
    range->pending = range->written = *counts;
    publish(range);
}
