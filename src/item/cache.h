/* cache.h — recently read or written items in memory: primary key → item, bounded in bytes.
 *
 * A point read through RocksDB takes two lookups, primary key → place → item; a cache hit takes none. Items that the index leads to are
 * found too: a lossy table maps places to primary keys. Items are reference-counted, so a reader keeps its item even when the entry is
 * evicted.
 *
 * The cache is never older than the store. A write first blocks its key (this removes the entry and prevents a new one), then writes, then
 * unblocks the key and adds the new item. A reader that missed remembers the version of the key before it reads the store; its item is
 * added only if the key was neither blocked nor unblocked since. Blocks and versions are kept per stripe of the hash space. */
#pragma once

#include "item/layout.h"

typedef struct cached_item cached_item; /* reference-counted */

typedef struct cache_ticket { /* returned by a miss, for item_cache_add */
    uint64_t hash;
    uint64_t version;
} cache_ticket;

item_cache *item_cache_open(size_t bytes_max);
void item_cache_close(item_cache *c);
size_t item_cache_longest_chain(const item_cache *c); /* longest hash chain; for tests, while no other thread uses the cache */

/* Any thread. NULL: a miss; use the ticket to add the item. Otherwise release the item with cached_item_give. */
const cached_item *item_cache_take(item_cache *c, slice primary_key, cache_ticket *ticket_out);
void cached_item_give(const cached_item *item);
slice cached_item_key(const cached_item *item);
slice cached_item_value(const cached_item *item); /* head and body, as stored */
item_place cached_item_place(const cached_item *item);

/* Copies key and value. Does nothing if the item may have changed since the ticket, or is too large for the cache. */
void item_cache_add(item_cache *c, const cache_ticket *ticket, slice primary_key, slice value, item_place place);

/* The same for an item that a snapshot has: `now` was asked for before the snapshot was taken. */
uint64_t item_cache_now(const item_cache *c);
void item_cache_add_of(item_cache *c, uint64_t now, slice primary_key, slice value, item_place place);

/* The item at this place, if it is cached and its place still has a note; otherwise NULL. */
const cached_item *item_cache_take_place(item_cache *c, item_place place);

/* Brings what item_cache_take or item_cache_take_place will read into the processor's cache, in ITEM_CACHE_STEPS steps, each of which needs
 * the memory of the one before: call them in turn, with other work between. The first step of a place is its note. */
enum { ITEM_CACHE_STEPS = 3 };
uint64_t item_cache_hash(const item_cache *c, slice primary_key);
void item_cache_prefetch(item_cache *c, uint64_t hash, unsigned step);
void item_cache_prefetch_note(item_cache *c, item_place place);
void item_cache_prefetch_place(item_cache *c, item_place place, unsigned step);

/* Within apply: the group writes (puts, changes or removes) the item with this key, whose place is or was `place`. An operation that fails
 * must undo this with item_cache_cut, since its number goes to another item. */
void item_cache_written(item_cache *c, commit_group *group, slice primary_key, item_place place);
size_t item_cache_mark(const item_cache *c);
void item_cache_cut(item_cache *c, size_t mark); /* undoes all item_cache_written calls since the mark */
