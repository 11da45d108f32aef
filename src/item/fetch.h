/* fetch.h — within item/: the item at a place, wherever its bytes are. Any thread.
 *
 * In most containers an item lies at its place, and its primary key leads there. In a clustered one the item lies at its primary key, and
 * its place has a *lead*, which is that key (layout.h). What STORE_ITEMS holds tells the two apart. */
#pragma once

#include "item/item.h"

/* The item at found->place. E_NOT_FOUND: there is none. On OK give it back. */
MUST_CHECK err item__fetch(store *s, const store_snapshot *at, item_found *found);

/* The same of a value that a scan met at found->place: it must stay until the item is given back. `at` is the scan's. */
MUST_CHECK err item__fetch_value(store *s, const store_snapshot *at, slice value, item_found *found);

/* Head and body, as the cache keeps them. */
static inline slice item__found_value(const item_found *found) {
    return slice_of(found->body.p - LAYOUT_HEAD_BYTES, LAYOUT_HEAD_BYTES + found->body.n);
}
