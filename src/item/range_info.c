#include "item/range_info.h"

static range_usage usage_of(const container_range *range) {
    return (range_usage){
        .items = atomic_load_explicit(&range->items, memory_order_relaxed),
        .bytes = atomic_load_explicit(&range->bytes, memory_order_relaxed),
        .index_bytes = atomic_load_explicit(&range->index_bytes, memory_order_relaxed),
    };
}

size_t range_count(const container *c) {
    return c->tiles->map->n;
}

bool range_info_at(const container *c, size_t position, range_info *info_out) {
    if (position >= c->tiles->map->n) {
        return false;
    }
    const container_range *range = c->tiles->ranges[position];
    *info_out = (range_info){
        .range = c->tiles->map->ranges[position],
        .mark = item_mark_of(range),
        .usage = usage_of(range),
        .partitions = atomic_load_explicit(&range->partitions, memory_order_relaxed),
        .rate = atomic_load_explicit(&container_range_bucket(range)->rate, memory_order_relaxed),
    };
    if (atomic_load_explicit(&range->splitting, memory_order_relaxed)) {
        info_out->range.status = PARTITION_SPLITTING;
    }
    return true;
}

bool range_info_by_id(const container *c, uint32_t id, range_info *info_out) {
    const partition_map *map = c->tiles->map;
    const partition_range *range = partition_map_by_id(map, id);
    return range && range_info_at(c, (size_t)(range - map->ranges), info_out);
}

size_t range_position(const container *c, const epk *e) {
    return container_position(c->tiles, e);
}

bool range_is_gone(const container *c, uint32_t id) {
    return partition_map_gone(c->tiles->map, id);
}

uint32_t range_next_id(const container *c) {
    return c->tiles->map->next_id;
}

bool range_is_divided(const container *c, const epk *min, const epk *end) {
    const partition_range *first;
    return partition_map_overlap(c->tiles->map, min, end, &first) > 1;
}

item_mark range_mark_at(const container *c, const epk *e) {
    return item_mark_of(container_route(c->tiles, e));
}

item_mark range_mark_first(const container *c) {
    return item_mark_of(c->tiles->ranges[0]);
}

range_usage range_usage_of_all(const container *c) {
    range_usage sum = {0};
    for (size_t i = 0; i < c->tiles->map->n; i++) {
        range_usage one = usage_of(c->tiles->ranges[i]);
        sum.items += one.items;
        sum.bytes += one.bytes;
        sum.index_bytes += one.index_bytes;
    }
    return sum;
}

bool range_has_reached(const container *c, const item_mark *seen, const epk *min, const epk *end) {
    const partition_map *map = c->tiles->map;
    const partition_range *range = partition_map_by_id(map, seen->range_id);
    bool asked = range && epk_cmp(&range->min, end) <= 0 && epk_cmp(min, &range->max) < 0;
    return !asked || seen->lsn <= item_mark_of(c->tiles->ranges[range - map->ranges]).lsn;
}

item_mark item_op_mark(const item_op *op) {
    return (item_mark){op->range->id, op->range->segment, op->after.lsn};
}

range_usage item_op_usage(const item_op *op) {
    return usage_of(op->range);
}

size_t range_largest_keys(const container *c, size_t position, hotkey top[static HOTKEYS_TOP]) {
    hotkeys *hot = atomic_load_explicit(&c->tiles->ranges[position]->hotkeys, memory_order_acquire);
    return hot ? hotkeys_top_by_size(hot, top) : 0;
}

size_t range_hottest_keys(const container *c, size_t position, int64_t now_us, hotkey top[static HOTKEYS_TOP]) {
    hotkeys *hot = atomic_load_explicit(&c->tiles->ranges[position]->hotkeys, memory_order_acquire);
    return hot ? hotkeys_top_by_ru(hot, now_us * 1000, top) : 0;
}
