/* cache.h — items lately read or written, in memory: primary key → item, bounded in bytes.
 *
 * A point read through RocksDB takes two lookups, primary key → place → item; one that is answered here takes none. Nor does one of an
 * item that the index leads to: which primary key belongs to a place is noted too, in a table that forgets. Items are shared and counted,
 * so what a reader holds stays whatever happens to the entry.
 *
 * What is answered is never older than the store. A write first blocks its key (the entry goes, and none may come), then is written, then
 * unblocks it and puts the new item in; a reader that missed remembers the key's version before it asks the store, and its item is taken in
 * only if the key was neither blocked nor unblocked since. Blocks and epochs are kept per stripe of the hash space. */
#pragma once

#include "item/layout.h"

typedef struct cached_item cached_item; /* a counted item */

typedef struct cache_ticket { /* a miss, for item_cache_add */
    uint64_t hash;
    uint64_t version;
} cache_ticket;

item_cache *item_cache_open(size_t bytes_max);
void item_cache_close(item_cache *c);
size_t item_cache_longest_chain(const item_cache *c); /* entries that a look-up may have to pass; for tests, with nobody at work */

/* Any thread. NULL: not there, and the ticket is for adding it. Otherwise give it back. */
const cached_item *item_cache_take(item_cache *c, slice primary_key, cache_ticket *ticket_out);
void cached_item_give(const cached_item *item);
slice cached_item_value(const cached_item *item); /* as the store has it: head and body */
item_place cached_item_place(const cached_item *item);

/* Copies key and value. Does nothing if the item may have changed since the ticket, or is too large to be worth it. */
void item_cache_add(item_cache *c, const cache_ticket *ticket, slice primary_key, slice value, item_place place);

/* The item at this place, if it is there and the table knows its key; otherwise NULL. */
const cached_item *item_cache_take_place(item_cache *c, item_place place);

/* Within apply: the item of this key, which is or was at this place, is written by the group: put, changed or removed. An operation that
 * fails takes back what it said: its number goes to another item. */
void item_cache_written(item_cache *c, commit_group *group, slice primary_key, item_place place);
size_t item_cache_mark(const item_cache *c);
void item_cache_cut(item_cache *c, size_t mark); /* forgets all that was said since */
