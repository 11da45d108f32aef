/* admit.h — within item/: throughput checks and charges of a request. Any thread. */
#pragma once

#include "item/item.h"

/* E_THROTTLED while the range's share is overspent; o->retry_after_ms then says how long to wait. */
MUST_CHECK err item__admit(const items *s, op *o, container_range *range);

/* Admits operations of a request that stand each for itself, one by one, while the shares of their ranges last: by what each will cost, as
 * far as that is known before. The others get E_THROTTLED and a time to wait: the first of a range until its debt is paid, each further one
 * as long as its own cost takes to be refilled. So a client that waits for one after the other is back when all can be admitted. */
void item__admit_each(item_commit *c);

/* Takes the actual charge from the range's share, and counts the request. `key`: the partition that it addressed, or NULL. */
void item__debit(const items *s, const op *o, container_range *range, const item_key *key, meter_work work, double ru, bool failed);

/* Takes a further charge of a request that item__debit has counted. */
void item__debit_more(const items *s, const op *o, container_range *range, meter_work work, double ru);
