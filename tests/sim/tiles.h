/* tiles.h — the container's ranges: the real map, the contents of each range, and splits and merges by the real plan.
 *
 * A range holds consecutive logical partitions in the world's order. Every change is checked as it happens: that the map's boundaries
 * separate these runs, the tiling, the ids and the reason. */
#pragma once

#include "partition/map.h"
#include "partition/split_merge.h"
#include "world.h"

typedef struct tile {
    uint32_t from; /* index of its first partition in the world's order; the next tile's `from` is its end */
    world_sums sums;
    double excess; /* bytes beyond the limit that its full logical partitions would hold without it */
} tile;

typedef struct tiles_counts {
    uint64_t splits_throughput, splits_storage; /* ranges that were split */
    uint64_t merges, merged;                    /* merges, and ranges that went into them */
    uint64_t rounds;                            /* calls of plan_next */
    double plan_seconds, map_seconds, cut_seconds;
} tiles_counts;

typedef struct tiles {
    const world *world;
    plan_limits limits;
    partition_map *map;
    tile *tiles;       /* map->n of them */
    plan_range *plan;  /* map->n of them */
    uint32_t *watched; /* ranks of partitions that may reach their limit */
    size_t watched_n;
    size_t full;           /* logical partitions at their limit */
    world_sums everything; /* never changes */
    tiles_counts counts;
} tiles;

void tiles_build(tiles *t, const world *w, uint32_t ranges, const plan_limits *limits, double age_most);
void tiles_free(tiles *t);

/* Splits and merges until the plan has no more steps. True: something changed. */
bool tiles_settle(tiles *t, double throughput, double age);

/* Checks the whole map, all ranges' contents, and the owners of some random logical partitions. */
void tiles_check(const tiles *t, uint32_t samples, uint64_t seed);

size_t tiles_find(const tiles *t, uint32_t rank); /* by the real hash and map */
double tiles_bytes(const tile *t, double age);
double tiles_width(const partition_range *range);
