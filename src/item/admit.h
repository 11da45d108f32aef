/* admit.h — within item/: a request before and after its work, as throughput sees it. Any thread. */
#pragma once

#include "item/item.h"

/* E_THROTTLED, with the time to wait in the operation, while the range's share is overspent. */
MUST_CHECK err item__admit(const items *s, op *o, container_range *range);

/* Takes the real charge, and counts the request. `key` is the partition that it was about, or NULL. */
void item__settle(const items *s, const op *o, container_range *range, const item_key *key, double ru, bool failed);

/* More of the charge of a request that was counted. */
void item__settle_more(const items *s, const op *o, container_range *range, double ru);
