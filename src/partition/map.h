/* map.h — the partition map of a container: its ranges of the hash space and their ids.
 *
 * Ranges cover "" to "FF", sorted, without gaps or overlaps. A map is immutable, so any thread may read it. A split or a merge makes a new
 * map, and the container's pointer is changed to it. The holder of the last reference frees the old map. */
#pragma once

#include "partition/epk.h"

typedef enum partition_status { PARTITION_ONLINE, PARTITION_SPLITTING, PARTITION_OFFLINE, PARTITION_SPLIT } partition_status;

enum {
    PARTITION_RANGES_MAX = 1 << 16,
    PARTITION_IDS_MAX = 1 << 20, /* ids in the life of a container: as many as a rid prefix can hold */
    PARTITION_PARENTS_MAX = 512, /* ancestors kept per range, the newest ones */
};

typedef struct partition_range {
    uint32_t id;         /* "0", "1", … on the wire; never reused in its container */
    uint32_t rid_prefix; /* part of the document numbers that the range assigns, so that numbers of different ranges differ */
    partition_status status;
    bool mixed; /* a merge is among its ancestors: its items' LSNs come from several sequences, so their order is not that of time */
    uint32_t parents_n;
    const uint32_t *parents; /* ids of all ancestors; clients treat these ids as gone */
    epk min;
    epk max; /* exclusive */
} partition_range;

typedef struct partition_map {
    size_t n;
    uint32_t next_id; /* id of the next new range */
    const partition_range *ranges;
    const uint64_t *heads; /* first eight bytes of each range's min; the search compares these first */
    const uint32_t *by_id; /* positions in `ranges`, ordered by id */
} partition_map;

/* n equal ranges with ids 0 to n-1, as at creation. 1 ≤ n ≤ PARTITION_RANGES_MAX. */
partition_map *partition_map_new(const pkey_definition *definition, uint32_t n);

/* Makes a map from a copy of these ranges and their parents. NULL: they do not tile "" to "FF" in order, or an id is a duplicate or not
 * below next_id. */
partition_map *partition_map_build(const partition_range *ranges, size_t n, uint32_t next_id);
void partition_map_free(partition_map *map);

/* A split, a merge, or both: makes a new map in which the ranges [first, first + n) are replaced by `parts` new ones with the boundaries
 * cuts[0 … parts-2]. New ranges get the next ids and rid prefixes. Their parents are the replaced ranges and the parents of these:
 * ascending, without duplicates, the newest PARTITION_PARENTS_MAX. `map` and all other ranges stay as they are. NULL: there are no such
 * ranges, the cuts do not ascend strictly inside them, or the map or its ids would exceed their limits. O(ranges). */
partition_map *partition_map_reshape(const partition_map *map, size_t first, size_t n, const epk *cuts, uint32_t parts);

/* The range that owns an EPK; EPKs from "FF" on belong to the last range. Never NULL. */
const partition_range *partition_map_find(const partition_map *map, const epk *e);

/* NULL: not in the map. partition_map_gone then says whether the id existed before (410) or never did (404). */
const partition_range *partition_map_by_id(const partition_map *map, uint32_t id);
bool partition_map_gone(const partition_map *map, uint32_t id);

/* The ranges that overlap [min, max), which are adjacent in `ranges`; returns their number, 0 if min ≥ max. */
size_t partition_map_overlap(const partition_map *map, const epk *min, const epk *max, const partition_range **first_out);

/* "online", "splitting", … */
const char *partition_status_text(partition_status status);

/* BSON for storage. partition_map_read returns NULL if the bytes are not a valid map. */
void partition_map_write(const partition_map *map, buf *out);
partition_map *partition_map_read(slice bson);
