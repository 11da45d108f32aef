/* itembody.h — within api/sql: what an item's body, a patch and a result have in common, in a request of its own or inside a batch. */
#pragma once

#include "item/item.h"

/* A patch and its condition, from its BSON into the operation; lives in its arena. E_BAD_REQUEST, E_BAD_QUERY with the service's sentence.
 */
MUST_CHECK err sql_read_patch(op *o, const container *c, slice body, item_op *item);

unsigned sql_item_status(const item_op *item); /* 200, 201, 204, or its error's */
