/* range_info.h — information about a container's ranges for code outside the core: plain values, as of the call. */
#pragma once

#include "item/item.h"

typedef struct range_usage {
    uint64_t items, bytes, index_bytes;
} range_usage;

typedef struct range_info {
    partition_range range; /* its list of parents lives as long as this version of the container */
    item_mark mark;
    range_usage usage;
    uint64_t partitions; /* number of logical partitions */
    double rate;         /* its throughput in RU/s; 0: no limit */
} range_info;

/* Ranges by position, in the order of the hash space. False: no such range. */
size_t range_count(const container *c);
bool range_info_at(const container *c, size_t position, range_info *info_out);
bool range_info_by_id(const container *c, uint32_t id, range_info *info_out);
size_t range_position(const container *c, const epk *e); /* position of the range that owns this EPK */
bool range_is_gone(const container *c, uint32_t id);     /* a range of this id existed, and was split or merged */
uint32_t range_next_id(const container *c);              /* grows with every split and merge */

/* Whether [min, end) spans several ranges. */
bool range_is_divided(const container *c, const epk *min, const epk *end);

item_mark range_mark_at(const container *c, const epk *e); /* mark of the range that owns this EPK */
item_mark range_mark_first(const container *c);
range_usage range_usage_of_all(const container *c);

/* Whether the container is recent enough for a client that has seen `seen` and reads [min, end]: if that range still exists and overlaps
 * [min, end], it must have reached the lsn. Ranges that are gone are ignored, since their children continued with their lsn. */
bool range_has_reached(const container *c, const item_mark *seen, const epk *min, const epk *end);

/* After a write: the lsn of its range after it, and the size of the range. Valid until item_commit_give. */
item_mark item_op_mark(const item_op *op);
range_usage item_op_usage(const item_op *op);

/* The largest logical partitions that the range's sketch knows, and those that cost most in the last minute. */
size_t range_largest_keys(const container *c, size_t position, hotkey top[static HOTKEYS_TOP]);
size_t range_hottest_keys(const container *c, size_t position, int64_t now_us, hotkey top[static HOTKEYS_TOP]);
