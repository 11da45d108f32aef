/* container.h — a container as items see it: its settings, how it is divided into ranges, and where its items are stored.
 *
 * A `container` is one immutable version of settings and tiles. A `container_tiles` is one immutable version of how the container is
 * divided: the partition map, the ranges, and where each range's items are stored. The `container_space` is shared by all versions. All
 * three are reference-counted: code that keeps a pointer takes a reference and gives it back. account/ handles names, creation, splits,
 * merges and removal.
 *
 * A request works with the tiles that were current when it arrived. Point reads need no more, since the keys that lead to items do not name
 * a range. The committer decides writes with the newest tiles. Feeds read with the newest tiles too (item/feed.c). */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "index/terms.h"
#include "item/home.h"
#include "item/row.h"
#include "partition/map.h"
#include "store/committer.h"
#include "throughput/bucket.h"
#include "throughput/hotkeys.h"
#include "throughput/meter.h"
#include "throughput/provisioned.h"

/* Exact counters of a range. Every write of the range advances the LSN; a document number is never given out twice. */
typedef struct range_counts {
    uint64_t lsn;
    uint64_t number_next; /* without the range's prefix bits */
    uint64_t items;
    uint64_t bytes;       /* size of the stored items */
    uint64_t index_bytes; /* size of the keys that lead to the items, except expiry entries */
    uint64_t partitions;  /* number of logical partitions */
} range_counts;

typedef unsigned __int128 hash_place;   /* the first sixteen bytes of an EPK: item/waiters.h */
typedef struct range_watch range_watch; /* item/logical_size.h */
typedef struct range_graph range_graph; /* item/nearest.h */

/* A physical partition: a range of the hash space, and the segment that its new items are stored under. All tiles that contain the range
 * share this object. */
typedef struct container_range {
    commit_hook hook; /* writes the counts with every group that touches the range; link it by counts_log_link */
    home *home;       /* where its items are stored; never changes */
    atomic_uint refs;
    uint32_t container;
    uint32_t id;
    uint32_t rid_prefix;
    uint32_t segment;

    /* owned by the committer of its home */
    range_counts pending;   /* including the current group's changes */
    range_counts written;   /* as on disk */
    range_watch *watch;     /* set while a split of the range is being prepared */
    bool in_log;            /* the counts log of its home holds a record of the range */
    uint64_t batch;         /* the last atomic commit (home.batches) that advanced the lsn: its writes share one */
    bool batch_removes;     /* `batch` has removed items at the current lsn */
    uint64_t log_lsn;       /* the lsn of the last version in the log */
    uint16_t log_place;     /* the place of that version among those of the same lsn */
    uint64_t reserved_next; /* the number after the last reserved one (item_reserve); 0: no number was reserved */
    bool late;              /* the group writes an item whose number was reserved earlier (item_reserve) */
    uint32_t
        log_opened; /* the part's log_generation when the range was found to have a log head on disk (item/versions.h); 0: not found yet */
    atomic_bool splitting; /* for readers: a split of it is on its way */
    atomic_bool gone;      /* the range was split, merged or deleted */
    uint64_t *touched;     /* hashes of the keys that the group writes; collected only while followers wait for keys (item/waiters.h) */
    uint32_t touched_n;
    bool touched_incomplete; /* `touched` is incomplete */

    struct container_space *space; /* the range's space; borrowed: whoever commits to the range holds a reference */
    hash_place first, last;        /* first and last place of its keys */

    _Atomic uint64_t lsn, items, bytes, index_bytes, partitions; /* the counts as on disk, readable by any thread */
    _Atomic uint64_t uncut;                                      /* partitions it had when the balancer found no place to split */

    _Atomic(bucket *) bucket; /* the range's own share of the throughput, or the shared bucket of its database */
    bucket **past_buckets;    /* retired, each once; in-flight requests may still use one */
    size_t past_buckets_n;
    meter meter;
    _Atomic(hotkeys *) hotkeys;    /* NULL until the first request */
    _Atomic(range_graph *) graphs; /* graphs of its vectors; NULL until a query asks for one */
} container_range;

/* One segment that holds items of a range: its own segment or, after a split or a merge, one of its ancestors'. */
typedef struct range_source {
    uint32_t segment;
    bool shared;  /* other ranges have items there too: readers must filter by the range's keys */
    bool leaving; /* the range is moving its items from there to its own segment (item/move.c) */
} range_source;

typedef struct range_sources {
    const range_source *list; /* ordered by segment; the range's own is last */
    size_t n;
} range_sources;

typedef struct container_tiles {
    atomic_uint refs;
    uint64_t epoch; /* version number of the tiles within their space */
    partition_map *map;
    container_range **ranges; /* ranges[i] is map->ranges[i] */
    range_sources *sources;   /* sources[i] belongs to ranges[i] */
    uint32_t *segments;       /* every segment that any range has items in, each once, ascending */
    home **segment_homes;     /* segment_homes[i] stores segments[i] */
    size_t segments_n;
    arena arena; /* holds the lists */
} container_tiles;

enum { ATTACHMENTS_UNKNOWN, ATTACHMENTS_NONE, ATTACHMENTS_SOME };
enum { LARGE_UNKNOWN, LARGE_NONE, LARGE_SOME };

/* One generation of a container's index. A change of the policy builds another generation beside it (item/reindex.c). */
typedef struct container_index {
    atomic_uint refs;
    arena arena;
    uint8_t generation;
    slice settings; /* the policy as BSON */
    index_policy policy;

    atomic_int large; /* whether items have too many terms to be indexed: LARGE_UNKNOWN, LARGE_NONE or LARGE_SOME */

    /* owned by the committer: the shapes known to be in the store, and those that the current group adds (item/index_entries.c) */
    struct known_shape *shapes, *shapes_made;
    size_t shapes_n, shapes_made_n;
    uint64_t shapes_secret[2];
    bool shapes_loaded;
    commit_hook shapes_hook;
    uint32_t shapes_container;

    /* owned by the committer: the settings whose policy was last compared with this index's (item/index_entries.c) */
    uint64_t compared; /* their container_memory.serial; 0: none compared yet */
    bool compared_same;
} container_index;

enum { CONTAINER_UNKNOWN = -1 };

/* A container's state in one home. Only that home's committer changes it. */
typedef struct container_part {
    home *home;             /* NULL: the container has no range in this home */
    commit_queue commits;   /* queue of the commits to its items; the committer serves the queues of all containers in turn */
    commit_queue bulk;      /* the same for commits with many operations, so that others need not wait for all of them */
    container_tiles *tiles; /* the newest for this home's ranges; may lag behind space->newest. Changed on its committer's thread only */

    /* the index; changed under the space's lock */
    _Atomic(container_index *) index;    /* the one that queries use */
    _Atomic(container_index *) building; /* its replacement while that is being built, otherwise NULL; writes maintain both */
    atomic_bool index_switching;         /* a switch is being committed: the disk may hold the old or the new index */
    _Atomic uint32_t index_progress;     /* progress of the index build in per cent */
    _Atomic uint32_t index_seconds;      /* that the build will take from now on; CONTAINER_UNKNOWN: not known yet */
    int64_t build_seen_us;               /* when the build's first step ended, monotonic; 0: it has not. Owned by the committer */
    uint64_t build_seen;                 /* … and how many items it had built by then */

    int attachments; /* ATTACHMENTS_…: whether any item ever had attachments (item/attach.h) */

    uint32_t checks; /* unique keys and date expiries of the newest settings: writes that came with fewer are refused */

    /* expiry */
    int32_t ttl;                       /* from the newest settings that this home has seen */
    uint32_t swept_own, swept_default; /* all entries before these times have been swept */
    atomic_bool ttl_backfill;          /* the ttl was turned on; older items still lack their expiry entries */

    /* the log of versions */
    _Atomic uint32_t version_minutes; /* retention from the newest settings that this home has seen; 0: no log */
    uint32_t log_generation;          /* how many times version_minutes was changed, plus one */
    uint32_t trim_from;               /* the segment that the next trim starts at */
    _Atomic int64_t trim_due_s;
} container_part;

typedef struct container_space {
    atomic_uint refs;
    uint32_t container; /* the number that all its keys begin with; never reused */
    atomic_bool deleted;
    _Atomic int64_t frozen_us;       /* below: container_space_freeze */
    _Atomic uint64_t epoch;          /* the epoch of the newest tiles */
    _Atomic int64_t merges_after_us; /* monotonic; ranges that an operator split are not merged before this time */
    pthread_mutex_t lock;            /* protects `newest`, the claim and the parts' indexes */
    uint64_t claimant;               /* below: container_space_claim */
    int64_t claimed_until_us;
    container_tiles *newest;
    atomic_bool tiles_unrecorded; /* the newest tiles are stored in the reshaped home, but not yet in the container's record */

    meter past; /* the metered history of ranges that were split or merged */
    provisioned provisioned;

    /* owned by the balancer: requests rejected with 429, and all requests, since the last log line about them (account/balance.c) */
    int64_t refused_from_s, refused_logged_s;
    uint64_t refused, refused_among;

    _Atomic uint32_t version_minutes; /* retention from the newest settings; 0: no log */

    /* logical partitions that are being deleted (item/wipe.h) */
    pthread_rwlock_t wipes_lock; /* protects the list */
    struct wipe **wipes;
    _Atomic uint32_t wipes_n;
    _Atomic uint32_t wipes_open;   /* those whose items are not all removed yet */
    _Atomic int64_t wipes_paid_us; /* monotonic; the next items are removed from this time on */

    _Atomic(struct change_waiters *) waiters; /* followers that wait for its changes (item/waiters.h); NULL until the first follower */

    size_t parts_n;
    container_part parts[]; /* indexed by home number */
} container_space;

typedef struct unique_key {
    const doc_path *paths;
    size_t n;
    const mql_index *of; /* only items that have a key in this index count (mql/key.h); NULL: all */
    bool dropped;        /* it checks nothing any more; its number is not used again, since entries may be left */
} unique_key;

/* Items expire at a date that they hold: their earliest key in the index that is a date, plus a number of seconds. */
typedef struct date_expiry {
    const mql_index *index;
    int64_t after_s;
} date_expiry;

enum { TTL_OFF = 0, TTL_NEVER = -1 };

/* The memory that holds a container's settings. Versions of the container that differ only in their tiles share it. */
typedef struct container_memory {
    atomic_uint refs;
    uint64_t serial; /* identifies these settings; unique within the process */
    arena arena;
} container_memory;

typedef struct container {
    atomic_uint refs;
    container_space *space;
    container_tiles *tiles;
    container_memory *memory; /* holds everything below */

    slice id;
    slice database_id;
    unsigned char rid[8];
    slice settings; /* the resource's JSON properties as BSON, without system properties */
    slice api;      /* the API that created it: "sql", "mongo", … */
    slice memo;     /* BSON kept for the front end of that API (schema, indexes), or empty; not interpreted here */
    int64_t ts;
    uint64_t version; /* the etag is made from it */
    bool retired;     /* another container has taken its place (account/switch.c): it takes no more writes */

    pkey_definition key; /* n is 0 for a fixed container */
    row_definition row;
    bool clustered; /* items are stored at their primary keys (layout.h) */
    bool ordered;   /* partitions have creation order and local index entries: always, unless clustered without asking for it */
    index_policy index;
    const unique_key *unique_keys;
    size_t unique_keys_n;
    uint64_t range_bytes; /* storage limit of its ranges, if below the account's; 0: none of its own */
    slice ttl_member;     /* the member of an item that has its own ttl; empty: "ttl" */
    const date_expiry *expiries;
    size_t expiries_n;        /* if there are any, ttl is below TTL_NEVER, and an item's own `ttl` means nothing */
    int32_t ttl;              /* TTL_OFF, TTL_NEVER (only items with their own ttl expire), or seconds */
    uint32_t version_minutes; /* how long every version is kept; 0: no log of versions */
} container;

container *container_new(void);                                                   /* has its own memory, but no space yet */
container *container_with_tiles(const container *before, container_tiles *tiles); /* the same settings; takes ownership of the tiles */
container *container_take(container *c);
void container_give(container *c);

/* ---- tiles ---- */

/* A range that is not in use yet. Its counts are zero; its numbers start at 1. */
container_range *container_range_new(uint32_t container, const partition_range *range, uint32_t segment, home *home);
container_range *container_range_take(container_range *range);
void container_range_give(container_range *range);
void container_range_restore(container_range *range, const range_counts *counts); /* counts from disk or from a split */

/* Takes ownership of the map and of the references in `ranges`. Copies the lists of sources, and sets `shared` in the copies. */
container_tiles *container_tiles_new(partition_map *map, container_range *const *ranges, const range_sources *sources);
container_tiles *container_tiles_take(container_tiles *tiles);
void container_tiles_give(container_tiles *tiles);

/* `policy` is a valid policy as settings hold it; empty: everything is indexed. */
container_index *container_index_new(uint8_t generation, slice policy, const pkey_definition *key);
container_index *container_index_take(container_index *index);
void container_index_give(container_index *index);

/* Takes ownership of the tiles. The space has a part for each of the `homes_n` homes; the parts with ranges get their tiles here and their
 * index from item_index_new or item_index_load. */
container_space *container_space_new(uint32_t number, size_t homes_n, container_tiles *tiles);
void container_space_give(container_space *space);
/* Publishes new tiles after the ranges of `home` changed; takes ownership of the tiles. Called on that home's committer thread. */
void container_space_set(container_space *space, const home *home, container_tiles *tiles);
container_tiles *container_space_newest(container_space *space); /* any thread; returns a reference */
container_index *container_space_index(container_space *space);  /* any thread; returns a reference to that of the first home with ranges */
uint32_t container_space_progress(const container_space *space); /* progress of the index build in per cent: the lowest of all homes */
uint32_t container_space_seconds(const container_space *space);  /* until it ends, the longest of all homes; or CONTAINER_UNKNOWN */

/* ---- freezing: writes are refused for a while, so that a copy can catch up before it takes the container's place ----
 *
 *   0         not frozen
 *   a time    monotonic, us: frozen until then. The time is also the freeze's token
 *   FOREVER   retired: another container has taken its place
 *
 * Whoever finds that the time is over sets 0 by compare-and-swap, and retiring is a compare-and-swap too: so either a write was admitted
 * after the freeze, or the container was retired, never both. */
#define CONTAINER_FOREVER INT64_MAX

/* Freezes until that time. `token`: of a freeze that is prolonged; 0: none. False: it is frozen already, by somebody else, or retired. */
bool container_space_freeze(container_space *space, const clock_source *clock, int64_t token, int64_t until_us);
bool container_space_thaw(container_space *space, int64_t token);   /* false: that freeze is over */
bool container_space_retire(container_space *space, int64_t token); /* likewise */
bool container_space_is_frozen(container_space *space, const clock_source *clock);
/* ---- claims: one client at a time works on another container in the place of this one ----
 *
 * A claim refuses other claims, nothing else. It is held until a time, and renewed by the same claimant. False: somebody else holds one. */
bool container_space_claim(container_space *space, const clock_source *clock, uint64_t claimant, int64_t until_us);

/* Whether a write is refused: OK, E_FROZEN, or E_RETIRED if the request saw the container retired. */
MUST_CHECK err container_check_writable(const container *c, const clock_source *clock);

static inline container_part *container_part_of(container_space *space, const home *home) {
    return &space->parts[home->number];
}
container_index *container_part_index(container_space *space, container_part *part); /* any thread; returns a reference */
static inline uint32_t container_checks(const container *c) {
    return (uint32_t)(c->unique_keys_n + c->expiries_n);
}
void container_part_set_rules(container_part *part, int32_t ttl, uint32_t version_minutes); /* on the part's committer */
container_index *container_part_next_index(container_space *space, container_part *part); /* the one being built, or else the current one */
/* On the part's committer. Takes ownership of both indexes. */
void container_part_set_index(container_space *space, container_part *part, container_index *index, container_index *building);

static inline size_t container_position(const container_tiles *tiles, const epk *e) {
    return (size_t)(partition_map_find(tiles->map, e) - tiles->map->ranges);
}

static inline container_range *container_route(const container_tiles *tiles, const epk *e) {
    return tiles->ranges[container_position(tiles, e)];
}

/* Finds the next segment, from `segment` on, in which the tiles have items in this home. `home` NULL: in any home. False: there are no
 * more. */
bool container_tiles_segment(const container_tiles *tiles, const home *home, uint32_t segment, uint32_t *segment_out);

/* Bytes of data and index together. */
static inline uint64_t container_range_stored(const container_range *range) {
    return atomic_load_explicit(&range->bytes, memory_order_relaxed) + atomic_load_explicit(&range->index_bytes, memory_order_relaxed);
}

/* The bucket that the range draws its throughput from. Never NULL; valid as long as the range. */
static inline bucket *container_range_bucket(const container_range *range) {
    return atomic_load_explicit(&range->bucket, memory_order_acquire);
}
void container_range_set_bucket(container_range *range, bucket *b); /* takes ownership of the reference; one thread at a time */
