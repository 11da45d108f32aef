/* tiles.h — the container's ranges: the real map, what each range holds, and splits and merges by the real plan.
 *
 * A range holds a run of the world's order, so a logical partition is in one range if the map's boundaries are where the runs meet: that,
 * the tiling, the ids and the reason for every change are checked as it happens. */
#pragma once

#include "partition/map.h"
#include "partition/plan.h"
#include "world.h"

typedef struct tile {
    uint32_t from; /* in the world's order; up to the next tile's */
    world_sums sums;
    double excess; /* bytes that its full logical partitions would hold without a limit */
} tile;

typedef struct tiles_counts {
    uint64_t splits_throughput, splits_storage; /* ranges that were split */
    uint64_t merges, merged;                    /* merges, and ranges that went into them */
    uint64_t rounds;                            /* times that the plan was asked */
    double plan_seconds, map_seconds, cut_seconds;
} tiles_counts;

typedef struct tiles {
    const world *world;
    plan_limits limits;
    partition_map *map;
    tile *tiles;       /* map->n of them */
    plan_range *plan;  /* as many */
    uint32_t *watched; /* ranks that may fill up */
    size_t watched_n;
    size_t full;           /* logical partitions at their limit */
    world_sums everything; /* never changes */
    tiles_counts counts;
} tiles;

void tiles_build(tiles *t, const world *w, uint32_t ranges, const plan_limits *limits, double age_most);
void tiles_free(tiles *t);

/* Splits and merges until the plan has nothing more to do. True: something changed. */
bool tiles_settle(tiles *t, double throughput, double age);

/* Everything about the map and the runs, and some random logical partitions' owners. */
void tiles_check(const tiles *t, uint32_t samples, uint64_t seed);

size_t tiles_find(const tiles *t, uint32_t rank); /* by the real hash and map */
double tiles_bytes(const tile *t, double age);
double tiles_width(const partition_range *range);
