/* range_info.h — what may be told of a container's ranges outside the core: values, as of the moment they are asked for. */
#pragma once

#include "item/item.h"

typedef struct range_usage {
    uint64_t items, bytes, index_bytes;
} range_usage;

typedef struct range_info {
    partition_range range; /* its list of parents lives as long as the container's version */
    item_mark mark;
    range_usage usage;
    uint64_t partitions; /* logical ones */
    double rate;         /* RU/s that it may spend; 0: no limit */
} range_info;

/* The ranges in order of the hash space. False: there is no such one. */
size_t range_count(const container *c);
bool range_info_at(const container *c, size_t position, range_info *info_out);
bool range_info_by_id(const container *c, uint32_t id, range_info *info_out);
size_t range_position(const container *c, const epk *e); /* of the range that owns this point */
bool range_is_gone(const container *c, uint32_t id);     /* there was one of this id, and it was split or merged */
uint32_t range_next_id(const container *c);              /* grows with every split and merge */

/* Whether [min, end) lies in several ranges. */
bool range_is_divided(const container *c, const epk *min, const epk *end);

item_mark range_mark_at(const container *c, const epk *e); /* of the range that owns this point */
item_mark range_mark_first(const container *c);
range_usage range_usage_of_all(const container *c);

/* Whether a client that has seen `seen` may be shown [min, end]: the range of that id, if it is there and in [min, end], has come as far.
 * Marks of ranges that are gone hold nobody up: their children went on with their lsn. */
bool range_has_reached(const container *c, const item_mark *seen, const epk *min, const epk *end);

/* Of a write that was decided: where its range stands after it, and how full that is. Until item_commit_give. */
item_mark item_op_mark(const item_op *op);
range_usage item_op_usage(const item_op *op);

/* The largest logical partitions that the range knows of, and those that cost most in the last minute. */
size_t range_largest_keys(const container *c, size_t position, hotkey top[static HOTKEYS_TOP]);
size_t range_hottest_keys(const container *c, size_t position, int64_t now_us, hotkey top[static HOTKEYS_TOP]);
