/* admit.h — within item/: throughput checks and charges of a request. Any thread. */
#pragma once

#include "item/item.h"

/* E_THROTTLED while the range's share is overspent; o->retry_after_ms then says how long to wait. */
MUST_CHECK err item__admit(const items *s, op *o, container_range *range);

/* Takes the actual charge from the range's share, and counts the request. `key`: the partition that it addressed, or NULL. */
void item__settle(const items *s, const op *o, container_range *range, const item_key *key, double ru, bool failed);

/* Takes a further charge of a request that item__settle has counted. */
void item__settle_more(const items *s, const op *o, container_range *range, double ru);
