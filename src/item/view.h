/* view.h — what one range, or one logical partition, has of a feed at one moment: to be read through the index instead of item by item.
 *
 * A feed whose cursor has a `find` hands it a view for each range it comes to (item.h). The view is a snapshot with the tiles and the index
 * that belong to it. `find` walks the index (item_lookup) and offers the items that it finds; the feed's visitor gets those that are
 * meant. Valid while `find` runs. */
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
    uint64_t lsn;              /* the snapshot has all writes of the range up to here */
    const item_key *partition; /* NULL: the stretch */
    const pkey *prefix;        /* of the stretch only items whose keys start so; NULL: all */
    uint64_t items_n;          /* that the range or partition has, about */
    bool local;                /* the partition has entries of its own: without them it is small, and better read whole */
    item_stretch stretch;
    bool narrow;      /* the stretch is less than the range */
    bool filtered;    /* entries may lead to items that are not meant: only the item itself can tell */
    item_visit visit; /* the feed's */
    void *context;    /* its visitor's */
    bool stopped;     /* the visitor ended the page */
    unsigned loaded;  /* items that were not in the cache */
};

/* ---- entries ---- */

typedef struct item_entry {
    slice value; /* spelled; until the next step */
    uint64_t number;
    uint32_t segment; /* 0: not told */
} item_entry;

typedef struct item_lookup item_lookup;

/* Entries of a path in the order of value and number. They begin at the first one; seek to begin elsewhere. */
item_lookup *item_lookup_open(const item_view *v, index_path path);

/* Of one value only, forward. `many`: a thousand entries or more may be walked through. */
item_lookup *item_lookup_open_value(const item_view *v, index_path path, slice value, bool many);

bool item_lookup_next(item_lookup *l, item_entry *entry_out);

/* The next step gives the first entry from value · number on; backward, the last one before it, and so on. */
void item_lookup_seek(item_lookup *l, slice value, uint64_t number, bool backward);
void item_lookup_seek_end(item_lookup *l); /* backward from the last one */
MUST_CHECK err item_lookup_close(item_lookup *l);

/* The paths that items of a shape have; E_NOT_FOUND: not known. In the operation's arena. */
MUST_CHECK err item_view_shape(const item_view *v, uint64_t shape, index_path **paths_out, size_t *n_out);

/* Whether the container has items that have no entries, since they would have too many (INDEX_PATH_LARGE). Found out once, of all ranges
 * of the home. */
MUST_CHECK err item_view_any_large(const item_view *v, bool *any_out);

/* ---- items ---- */

typedef struct item_ref {
    uint64_t number;
    uint32_t segment; /* 0: not told */
} item_ref;

/* What an item must belong to, by the key in its body. Key values decide: anybody can make two that hash alike. */
typedef struct item_scope {
    const item_key *partition; /* one logical partition; NULL: the rest counts */
    const pkey *prefix;        /* NULL: any */
    const epk *min, *max;      /* NULL: the whole hash space */
} item_scope;
bool item_in_scope(op *o, const container *c, const item_scope *scope, slice body);

/* Loads the item and gives it to the visitor, if it is meant and not expired. v->stopped says that no more is wanted. */
MUST_CHECK err item_view_offer(item_view *v, item_ref ref);

/* Within item/: the same of one that may be gone (E_NOT_FOUND) or another partition's. */
MUST_CHECK err item__view_try(item_view *v, uint64_t number);
