/* container.h — a container as items see it: how it is cut into ranges, where its items are, and the settings that rule them.
 *
 * A `container` is one version of settings and tiles, never changed after it is made. A `container_tiles` is one version of how the
 * container is cut: the partition map, the ranges, and where each range's items are stored. The `container_space` is what stays the same
 * through all of them. All are counted: whoever keeps a pointer takes one and gives it back. Names, creation, splits, merges and removal
 * are account/'s.
 *
 * A request works with the tiles it came in with. Point reads need no more: keys that lead to items do not name a range. Writes are
 * decided by the committer with the newest tiles. Pages of items look at the newest too (item/feed.c). */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "index/terms.h"
#include "item/home.h"
#include "item/row.h"
#include "partition/map.h"
#include "store/committer.h"
#include "throughput/bucket.h"
#include "throughput/hotkeys.h"
#include "throughput/meter.h"

/* What a range counts, exactly. Every write of the range advances the LSN; numbers are given out once and never again. */
typedef struct range_counts {
    uint64_t lsn;
    uint64_t number_next; /* without the range's prefix */
    uint64_t items;
    uint64_t bytes;       /* of the items as stored */
    uint64_t index_bytes; /* of the keys that lead to them, but for those of expiry */
    uint64_t partitions;  /* logical ones */
} range_counts;

typedef unsigned __int128 hash_place;   /* the first sixteen bytes of an EPK: item/waiters.h */
typedef struct range_watch range_watch; /* item/sizes.h */
typedef struct range_graph range_graph; /* item/nearest.h */

/* A physical partition: a range of the hash space, and the segment that its new items are stored under. Shared by all tiles it is in. */
typedef struct container_range {
    commit_hook hook; /* counts are written with every group that touches the range; link it by counts_log_link */
    home *home;       /* where its items are, for life */
    atomic_uint refs;
    uint32_t container;
    uint32_t id;
    uint32_t rid_prefix;
    uint32_t segment;

    /* the committer's of its home */
    range_counts pending;   /* with this group's changes */
    range_counts written;   /* as on disk */
    range_watch *watch;     /* while a split of the range is prepared */
    bool in_log;            /* its home's log has counts of it */
    uint64_t reserved_next; /* the number after the last that was reserved (item_reserve); 0: none was */
    bool late;              /* the group has an item whose number was given out before (item_reserve) */
    uint32_t log_opened; /* its part's log_turns when the log of versions was seen to have a head for it (item/versions.h); 0: it was not */
    atomic_bool gone;    /* it was split, merged or deleted */
    uint64_t *touched;   /* hashes of the keys that the group writes, if followers wait for some (item/waiters.h) */
    uint32_t touched_n;
    bool touched_unknown; /* it writes others too */

    struct container_space *space; /* that it is of; not counted: whoever commits to the range holds it */
    hash_place first, last;        /* of its keys */

    _Atomic uint64_t lsn, items, bytes, index_bytes, partitions; /* as on disk, for everyone */
    _Atomic uint64_t uncut;                                      /* the balancer found no place to cut while it had so many partitions */

    _Atomic(bucket *) bucket; /* its share of the throughput, or the part of its database's that it draws from */
    bucket **past_buckets;    /* retired, each once; in-flight requests may still look at one */
    size_t past_buckets_n;
    meter meter;
    _Atomic(hotkeys *) hotkeys;    /* NULL until the first request */
    _Atomic(range_graph *) graphs; /* of its vectors, once some were asked for */
} container_range;

/* Where items of a range are: in its own segment, and, after a split or a merge, in those of its ancestors too. */
typedef struct range_source {
    uint32_t segment;
    bool shared;  /* other ranges have items there: only those of the range's keys are meant */
    bool leaving; /* the range moves its items from there to its own segment (item/move.c) */
} range_source;

typedef struct range_sources {
    const range_source *list; /* by segment, the range's own last */
    size_t n;
} range_sources;

typedef struct container_tiles {
    atomic_uint refs;
    uint64_t epoch; /* counts the tiles of a space */
    partition_map *map;
    container_range **ranges; /* ranges[i] is map->ranges[i] */
    range_sources *sources;   /* sources[i] is of ranges[i] */
    uint32_t *segments;       /* that any range has items in, each once, in order */
    home **segment_homes;     /* segment_homes[i] is where segments[i] is */
    size_t segments_n;
    arena arena; /* of the lists */
} container_tiles;

enum { ATTACHMENTS_UNKNOWN, ATTACHMENTS_NONE, ATTACHMENTS_SOME };
enum { LARGE_UNKNOWN, LARGE_NONE, LARGE_SOME };

/* One generation of a container's index. A change of the policy builds another beside it (item/reindex.c). */
typedef struct container_index {
    atomic_uint refs;
    arena arena;
    uint8_t generation;
    slice settings; /* the policy as BSON */
    index_policy policy;

    atomic_int large; /* items with too many terms: LARGE_UNKNOWN, none, some */

    /* the committer's: shapes that are known to be in the store, and those that the group adds (item/terms.c) */
    struct known_shape *shapes, *shapes_made;
    size_t shapes_n, shapes_made_n;
    uint64_t shapes_secret[2];
    bool shapes_loaded;
    commit_hook shapes_hook;
    uint32_t shapes_container;

    /* the committer's: the settings whose policy was last compared with this one (item/terms.c) */
    uint64_t compared; /* container_memory.serial; 0: none was */
    bool compared_same;
} container_index;

/* What a container keeps in one home. Its committer's to change. */
typedef struct container_part {
    home *home;             /* NULL: the container has no range there */
    commit_queue commits;   /* of its items: they take turns with those of other containers */
    container_tiles *tiles; /* the newest, as far as ranges of this home are concerned: changed on its committer's thread only */

    /* the index: changed under the space's lock */
    _Atomic(container_index *) index;    /* that queries use */
    _Atomic(container_index *) building; /* that will take its place, or NULL: writes keep both */
    atomic_bool index_switching;         /* what is on disk may be of the one or the other */
    _Atomic uint32_t index_progress;     /* per cent */

    int attachments; /* whether any item has had some (item/attach.h) */

    /* expiry */
    int32_t ttl;                       /* by the newest settings that this home has heard of */
    uint32_t swept_own, swept_default; /* no entry before these times is left */
    atomic_bool ttl_backfill;          /* the ttl was turned on: items of before still need their entries */

    /* the log of versions */
    _Atomic uint32_t version_minutes; /* how long they are kept, by those settings; 0: no log */
    uint32_t log_turns;               /* counts how often that was changed, from 1 */
    uint32_t trim_from;               /* the segment that the next trim begins with */
    _Atomic int64_t trim_due_s;
} container_part;

typedef struct container_space {
    atomic_uint refs;
    uint32_t container; /* the number that begins all its keys; never used again */
    atomic_bool deleted;
    _Atomic uint64_t epoch;          /* of the newest tiles */
    _Atomic int64_t merges_after_us; /* monotonic: what was split by command is not merged again at once */
    pthread_mutex_t lock;            /* of `newest` and the parts' indexes */
    container_tiles *newest;
    atomic_bool tiles_unrecorded; /* the newest tiles are in the store of what was reshaped, and not in the container's record yet */

    meter past; /* the history of ranges that were split or merged */

    /* the balancer's: requests refused with 429, and all, since the log told of some (account/balance.c) */
    int64_t refused_from_s, refused_told_s;
    uint64_t refused, refused_of;

    _Atomic uint32_t version_minutes; /* how long versions are kept, by the newest settings; 0: no log */

    _Atomic(struct change_waiters *) waiters; /* for its changes (item/waiters.h); NULL: nobody ever followed it */

    size_t parts_n;
    container_part parts[]; /* by the homes' numbers */
} container_space;

typedef struct unique_key {
    const doc_path *paths;
    size_t n;
} unique_key;

enum { TTL_OFF = 0, TTL_NEVER = -1 };

/* What a container's settings lie in: shared by its versions that differ in their tiles only. */
typedef struct container_memory {
    atomic_uint refs;
    uint64_t serial; /* of these settings: no others of this process ever have it */
    arena arena;
} container_memory;

typedef struct container {
    atomic_uint refs;
    container_space *space;
    container_tiles *tiles;
    container_memory *memory; /* of everything below */

    slice id;
    slice database_id;
    unsigned char rid[8];
    slice settings; /* the resource's JSON properties as BSON, without the system's */
    slice api;      /* that made it: "sql", "mongo", … */
    slice memo;     /* BSON that the front end of that API keeps with it, or empty: schema, indexes; nobody else reads it */
    int64_t ts;
    uint64_t version; /* for the etag */

    pkey_definition key; /* n 0: a fixed container */
    row_definition row;
    bool clustered; /* items lie at their primary keys (layout.h) */
    index_policy index;
    const unique_key *unique_keys;
    size_t unique_keys_n;
    int32_t ttl;              /* TTL_OFF, TTL_NEVER (items may say), or seconds */
    uint32_t version_minutes; /* that every version is kept; 0: no log of them */
} container;

container *container_new(void);                                                   /* with memory of its own, and no space yet */
container *container_with_tiles(const container *before, container_tiles *tiles); /* the same settings; takes the tiles over */
container *container_take(container *c);
void container_give(container *c);

/* ---- tiles ---- */

/* A range that is not in use yet; its counts are zero, its numbers start at 1. */
container_range *container_range_new(uint32_t container, const partition_range *range, uint32_t segment, home *home);
container_range *container_range_take(container_range *range);
void container_range_give(container_range *range);
void container_range_restore(container_range *range, const range_counts *counts); /* from disk, at start, or by a split */

/* Takes the map over, and the references of `ranges`. The lists of sources are copied, and `shared` is set from them all. */
container_tiles *container_tiles_new(partition_map *map, container_range *const *ranges, const range_sources *sources);
container_tiles *container_tiles_take(container_tiles *tiles);
void container_tiles_give(container_tiles *tiles);

/* A good policy, as settings hold it; empty: everything is indexed. */
container_index *container_index_new(uint8_t generation, slice policy, const pkey_definition *key);
container_index *container_index_take(container_index *index);
void container_index_give(container_index *index);

/* The space takes the tiles over. It has a part for each of `homes_n` homes; those that have ranges get an index of this policy. */
container_space *container_space_new(uint32_t number, size_t homes_n, container_tiles *tiles);
void container_space_give(container_space *space);
/* The committer's thread of the home whose ranges are others now: takes the tiles over, as the newest. */
void container_space_set(container_space *space, const home *home, container_tiles *tiles);
container_tiles *container_space_newest(container_space *space); /* any thread: a reference */
container_index *container_space_index(container_space *space);  /* any thread: a reference to that of the first range */
uint32_t container_space_progress(const container_space *space); /* of the index in all its homes, per cent */

static inline container_part *container_part_of(container_space *space, const home *home) {
    return &space->parts[home->number];
}
container_index *container_part_index(container_space *space, container_part *part);        /* any thread: a reference */
void container_part_set_rules(container_part *part, int32_t ttl, uint32_t version_minutes); /* the part's committer */
container_index *container_part_goal(container_space *space, container_part *part); /* the same of the one being built, if there is one */
/* The part's committer: takes over. */
void container_part_set_index(container_space *space, container_part *part, container_index *index, container_index *building);

static inline size_t container_position(const container_tiles *tiles, const epk *e) {
    return (size_t)(partition_map_find(tiles->map, e) - tiles->map->ranges);
}

static inline container_range *container_route(const container_tiles *tiles, const epk *e) {
    return tiles->ranges[container_position(tiles, e)];
}

/* The next segment of this home that the tiles have items in, from `segment` on; false: no more. `home` NULL: of any. */
bool container_tiles_segment(const container_tiles *tiles, const home *home, uint32_t segment, uint32_t *segment_out);

/* Data and index together. */
static inline uint64_t container_range_stored(const container_range *range) {
    return atomic_load_explicit(&range->bytes, memory_order_relaxed) + atomic_load_explicit(&range->index_bytes, memory_order_relaxed);
}

/* The range's share. Never NULL; valid as long as the range. */
static inline bucket *container_range_bucket(const container_range *range) {
    return atomic_load_explicit(&range->bucket, memory_order_acquire);
}
void container_range_set_bucket(container_range *range, bucket *b); /* takes the reference over; one thread at a time */
