/* map.h — the partition map of a container: which range of the hash space has which id.
 *
 * Ranges lie side by side from "" to "FF", sorted, without gap or overlap. A map is built once and never changed, so any thread may read
 * it; a split or a merge makes a new map and the container's pointer moves to it. Whoever holds the last use frees it. */
#pragma once

#include "partition/epk.h"

typedef enum partition_status { PARTITION_ONLINE, PARTITION_SPLITTING, PARTITION_OFFLINE, PARTITION_SPLIT } partition_status;

enum {
    PARTITION_RANGES_MAX = 1 << 16,
    PARTITION_IDS_MAX = 1 << 20, /* in the life of a container: what a rid prefix holds */
    PARTITION_PARENTS_MAX = 512, /* kept of a range, the newest */
};

typedef struct partition_range {
    uint32_t id;         /* "0", "1", … on the wire; never used again in its container */
    uint32_t rid_prefix; /* set in the document numbers that the range gives out, so that ranges never give the same */
    partition_status status;
    bool mixed; /* a merge is among its ancestors: its items' LSNs are of several sequences, and their order is not that of time */
    uint32_t parents_n;
    const uint32_t *parents; /* all ancestors: clients take every id named here as gone */
    epk min;
    epk max; /* exclusive */
} partition_range;

typedef struct partition_map {
    size_t n;
    uint32_t next_id; /* for the next range to be made */
    const partition_range *ranges;
    const uint64_t *heads; /* of each range's min: what the search compares first */
    const uint32_t *by_id; /* positions in `ranges`, ordered by id */
} partition_map;

/* n equal ranges with ids 0 to n-1, as at creation. 1 ≤ n ≤ PARTITION_RANGES_MAX. */
partition_map *partition_map_new(const pkey_definition *definition, uint32_t n);

/* A copy of these ranges, parents included. NULL: they do not tile "" to "FF" in order, or an id is doubled or not below next_id. */
partition_map *partition_map_build(const partition_range *ranges, size_t n, uint32_t next_id);
void partition_map_free(partition_map *map);

/* A split, a merge, or both at once: a new map in which ranges [first, first + n) are replaced by `parts` new ones, cut at
 * cuts[0 … parts-2]. Their ids and rid prefixes are the next ones; their parents are the replaced ranges and the parents of these,
 * ascending, each once, the newest PARTITION_PARENTS_MAX. All other ranges stay as they are, and so does `map`. NULL: there are no such
 * ranges, the cuts do not ascend strictly inside them, or the map or its ids would pass their limits. O(ranges). */
partition_map *partition_map_reshape(const partition_map *map, size_t first, size_t n, const epk *cuts, uint32_t parts);

/* The range that owns an EPK (anything from "FF" on belongs to the last). Never NULL. */
const partition_range *partition_map_find(const partition_map *map, const epk *e);

/* NULL: not in the map. Then partition_map_gone tells an id that was (410) from one that never was (404). */
const partition_range *partition_map_by_id(const partition_map *map, uint32_t id);
bool partition_map_gone(const partition_map *map, uint32_t id);

/* Ranges that share a point with [min, max): a run of `ranges`. 0 when min ≥ max. */
size_t partition_map_overlap(const partition_map *map, const epk *min, const epk *max, const partition_range **first_out);

/* "online", "splitting", … */
const char *partition_status_text(partition_status status);

/* BSON for storage. Reading gives NULL when the bytes are no valid map. */
void partition_map_write(const partition_map *map, buf *out);
partition_map *partition_map_read(slice bson);
