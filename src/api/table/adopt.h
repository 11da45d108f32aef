/* adopt.h — within api/table: entities that other APIs write (item/foreign.h).
 *
 * PartitionKey and RowKey must be there, as texts by the rules of keys. Timestamp is the time of the write, whatever the item says. Every
 * other member must be a property that a client of the Table API could have written: its name, its type, the sizes, the number of them.
 * Nulls are dropped. `id` is a property like any other; the id in another API's address is the RowKey. */
#pragma once

#include "item/foreign.h"

void adopt_register(void); /* at start */

/* As in item_owner. */
MUST_CHECK err adopt_entity(op *o, const container *c, int64_t now_ms, slice body, slice *stored_out);
