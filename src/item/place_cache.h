/* place_cache.h — a guess where an item is: hash of its primary key → place, in memory, bounded.
 *
 * A point read needs two lookups in the store, primary key → place → item; a right guess saves the first. A guess is only ever a guess:
 * the reader checks that the item found there has the key it asked for, and document numbers are never used again, so a stale or
 * colliding entry costs a lookup and can do no harm. Hence no locks, no invalidation. Any thread. */
#pragma once

#include "item/layout.h"

typedef struct place_cache place_cache;

place_cache *place_cache_open(size_t entries); /* rounded up to a power of two; 16 bytes each, touched only when used */
void place_cache_close(place_cache *c);

uint64_t place_cache_hash(slice primary_key);
bool place_cache_guess(const place_cache *c, uint64_t hash, item_place *place_out);
void place_cache_note(place_cache *c, uint64_t hash, item_place place);
