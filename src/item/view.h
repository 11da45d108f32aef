/* view.h — one range or one logical partition of a feed at one snapshot, to be read through the index instead of item by item.
 *
 * A feed whose reader has a `find` function passes it a view for each range it enters (item.h). The view is a snapshot with the tiles and
 * the index that belong to it. `find` scans the index (item_lookup) and offers the items it finds; the feed's visitor gets those that
 * belong to the feed. Valid while `find` runs. */
#pragma once

#include "item/item.h"

struct item_view {
    const items *items;
    op *op;
    container *container;
    container_tiles *tiles;
    container_range *range;
    const range_sources *sources;
    container_index *index;
    const store_snapshot *at;
    uint64_t lsn;              /* the snapshot contains all writes of the range up to this lsn */
    uint64_t now;              /* item_cache_now before the snapshot */
    const item_key *partition; /* NULL: the stretch is read */
    const pkey *prefix;        /* only items of the stretch whose partition keys begin with this; NULL: all */
    uint64_t items_n;          /* approximate number of items in the range or partition */
    bool local;                /* the partition has local entries; if not, it is small, and better read whole */
    item_stretch stretch;
    bool wipes;       /* items of wiped partitions may be there (item/wipe.h) */
    bool narrow;      /* the stretch covers only a part of the range */
    bool filtered;    /* entries may lead to items outside the feed: check each item after loading */
    item_visit visit; /* the feed's */
    void *context;    /* the visitor's */
    bool stopped;     /* the visitor ended the page */
    unsigned loaded;  /* number of items that were not in the cache */
};

/* ---- entries ---- */

typedef struct item_entry {
    slice value; /* encoded; valid until the next step */
    uint64_t number;
    uint32_t segment; /* 0: unknown */
} item_entry;

typedef struct item_lookup item_lookup;

/* Iterates over the entries of a path, ordered by value and number, from the first one on; use seek to start elsewhere. */
item_lookup *item_lookup_open(const item_view *v, index_path path);

/* Only the entries of one value, forward. `many`: a thousand entries or more may be read. */
item_lookup *item_lookup_open_value(const item_view *v, index_path path, slice value, bool many);

bool item_lookup_next(item_lookup *l, item_entry *entry_out);

/* The next step returns the first entry at or after (value, number); backward, the last one before it. */
void item_lookup_seek(item_lookup *l, slice value, uint64_t number, bool backward);
void item_lookup_seek_end(item_lookup *l); /* backward from the last entry */
MUST_CHECK err item_lookup_close(item_lookup *l);

/* The paths that items of this shape have, in the operation's arena. E_NOT_FOUND: unknown shape. */
MUST_CHECK err item_view_shape(const item_view *v, uint64_t shape, index_path **paths_out, size_t *n_out);

/* Whether the container has items without entries because they would have too many (INDEX_PATH_LARGE). Determined once for all ranges of
 * the home, then cached. */
MUST_CHECK err item_view_any_large(const item_view *v, bool *any_out);

/* ---- items ---- */

typedef struct item_ref {
    uint64_t number;
    uint32_t segment; /* 0: unknown */
} item_ref;

/* What an item must belong to, judged by the key in its body. Key values are compared, not only hashes, since clients can construct
 * collisions. */
typedef struct item_scope {
    const item_key *partition; /* one logical partition; if set, min and max are ignored */
    const pkey *prefix;        /* NULL: any */
    const epk *min, *max;      /* NULL: the whole hash space */
} item_scope;
bool item_in_scope(op *o, const container *c, const item_scope *scope, slice body);

/* Loads the item and passes it to the visitor, if it belongs to the feed and is not expired. v->stopped: the visitor wants no more. */
MUST_CHECK err item_view_offer(item_view *v, item_ref ref);

/* Before a list of items is offered one after the other: call it with i = 0, 1, 2 … before each is offered. Their memory is fetched ahead.
 */
void item_view_prefetch(const item_view *v, const item_ref *list, size_t n, size_t i);

/* Within item/: the same for an item that may be gone (E_NOT_FOUND) or belong to another partition. */
MUST_CHECK err item__view_try(item_view *v, uint64_t number);
