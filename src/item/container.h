/* container.h — a container as items see it: where its items are, and the settings that rule them.
 *
 * A `container` is one version of the settings, never changed after it is made; replacing the settings makes another that shares the
 * `container_space`. Both are counted: whoever keeps a pointer takes one and gives it back. Names, creation and removal are account/'s. */
#pragma once

#include <stdatomic.h>

#include "item/policy.h"
#include "partition/map.h"
#include "store/committer.h"

/* What a range counts. Every write of the range advances the LSN; numbers are given out once and never again. */
typedef struct range_counts {
    uint64_t lsn;
    uint64_t number_next; /* without the range's prefix */
    uint64_t items;
    uint64_t bytes;
} range_counts;

/* A physical partition: a range of the hash space, and the segment its items are stored under. */
typedef struct container_range {
    commit_hook hook; /* counts are written with every group that touches the range */
    uint32_t container;
    uint32_t id;
    uint32_t segment;
    range_counts pending;               /* the committer's: with this group's changes */
    range_counts written;               /* the committer's: as on disk */
    _Atomic uint64_t lsn, items, bytes; /* as on disk, for everyone */
} container_range;

typedef struct container_space {
    atomic_uint refs;
    uint32_t container; /* the number that begins all its keys; never used again */
    atomic_bool deleted;
    partition_map *map;
    container_range *ranges; /* ranges[i] is map->ranges[i] */

    /* expiry: the committer's, but for the flag */
    int32_t ttl;                       /* of the newest settings */
    uint32_t swept_own, swept_default; /* no entry before these times is left */
    atomic_bool ttl_backfill;          /* the ttl was turned on: items of before still need their entries */
} container_space;

typedef struct unique_key {
    const doc_path *paths;
    size_t n;
} unique_key;

enum { TTL_OFF = 0, TTL_NEVER = -1 };

typedef struct container {
    atomic_uint refs;
    arena arena; /* of everything below */
    container_space *space;

    slice id;
    slice database_id;
    unsigned char rid[8];
    slice settings; /* the resource's JSON properties as BSON, without the system's */
    int64_t ts;
    uint64_t version; /* for the etag */

    pkey_definition key; /* n 0: a fixed container */
    index_policy index;
    const unique_key *unique_keys;
    size_t unique_keys_n;
    int32_t ttl; /* TTL_OFF, TTL_NEVER (items may say), or seconds */
} container;

container *container_take(container *c);
void container_give(container *c);

/* Takes the map over. segments[i] is where the items of map->ranges[i] are stored. */
container_space *container_space_new(uint32_t number, partition_map *map, const uint32_t *segments);
void container_space_give(container_space *space);

static inline container_range *container_range_at(const container *c, const partition_range *range) {
    return &c->space->ranges[range - c->space->map->ranges];
}

static inline container_range *container_route(const container *c, const epk *e) {
    return container_range_at(c, partition_map_find(c->space->map, e));
}

/* For a range read from disk at start. */
void container_range_restore(container_range *range, const range_counts *counts);
