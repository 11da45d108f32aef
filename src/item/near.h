/* near.h — within item/: items by their places, one after the other, of one home at one snapshot. Any thread, one at a time.
 *
 * Items that were created one after the other lie side by side, and stepping to the next costs a tenth of getting it. A *near* keeps an
 * iterator: while places follow each other closely, forward or backward, it steps; all other items it gets. */
#pragma once

#include "item/item.h"

typedef struct item_near {
    const home *home;
    const store_snapshot *at;
    uint64_t lsn; /* the snapshot has all writes of the items' range up to here: then the cache is asked too; 0: not known */

    /* of the iterator */
    store_scan *scan;
    uint32_t segment;
    bool backward;
    bool live; /* it stands on `place`, whose value is `value` */
    item_place place;
    slice value;
    item_place last; /* that was asked for */
} item_near;

void item__near_open(item_near *n, const home *h, const store_snapshot *at);
MUST_CHECK err item__near_close(item_near *n);

/* The item at found->place. Its body lives until the next one is asked for; give it back before. E_NOT_FOUND: there is none. */
MUST_CHECK err item__near_load(item_near *n, item_found *found);
