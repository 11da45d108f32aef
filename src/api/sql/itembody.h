/* itembody.h — within api/sql: patches and result statuses, shared by requests for one item and by batches. */
#pragma once

#include "item/item.h"

/* Reads a patch and its condition from BSON into the operation, whose arena holds them. E_BAD_REQUEST, E_BAD_QUERY with the service's
 * sentence. */
MUST_CHECK err sql_read_patch(op *o, const container *c, slice body, item_op *item);

unsigned sql_item_status(const item_op *item); /* 200, 201, 204, or the status of its error */
