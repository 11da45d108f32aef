/* fetch.h — within item/: loads the item at a place. Any thread.
 *
 * In most containers the item is stored at its place, and its primary key leads there. In a clustered container the item is stored at its
 * primary key, and its place holds a *lead*, which is that key (layout.h). The value in STORE_ITEMS shows which of the two it is. */
#pragma once

#include "item/item.h"

/* Gets a value for `found`: in memory only, if it says so. */
MUST_CHECK err item__get(store *s, store_family family, const store_snapshot *at, slice key, const item_found *found,
                         store_value *value_out);

/* Loads the item at found->place. E_NOT_FOUND: there is none. On OK release it with item_give. */
MUST_CHECK err item__fetch(store *s, const store_snapshot *at, item_found *found);

/* The same for a value that a scan at snapshot `at` found at found->place. The value must stay valid until the item is released. */
MUST_CHECK err item__fetch_value(store *s, const store_snapshot *at, slice value, item_found *found);

/* Head and body, as the cache keeps them. */
static inline slice item__found_value(const item_found *found) {
    return slice_of(found->body.p - LAYOUT_HEAD_BYTES, LAYOUT_HEAD_BYTES + found->body.n);
}
