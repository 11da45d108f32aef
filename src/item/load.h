/* load.h — within item/: loads items by place, in one home at one snapshot. Any thread, one at a time.
 *
 * Items that were created one after the other are stored side by side, and stepping an iterator to the next one costs a tenth of a get. An
 * item_near keeps an iterator: while the requested places follow each other closely, forward or backward, it steps; other items it gets. */
#pragma once

#include "item/item.h"

typedef struct item_near {
    const home *home;
    const store_snapshot *at;
    uint64_t lsn; /* the snapshot contains all writes of the items' range up to this lsn, so the cache may be used; 0: unknown */

    /* the iterator */
    store_scan *scan;
    uint32_t segment;
    bool backward;
    bool live; /* it is positioned on `place`, whose value is `value` */
    item_place place;
    slice value;
    item_place last; /* the last place requested */
} item_near;

void item__near_open(item_near *n, const home *h, const store_snapshot *at);
MUST_CHECK err item__near_close(item_near *n);

/* Loads the item at found->place. Its body lives until the next load; release the item before that. E_NOT_FOUND: there is none. */
MUST_CHECK err item__near_load(item_near *n, item_found *found);
