/* itembody.h — within api/sql: what an item's body, a patch and a result have in common, in a request of its own or inside a batch. */
#pragma once

#include "item/item.h"

/* Written by us into every item that goes out, and left out of every one that comes in. */
enum { SQL_SYSTEM_PROPERTIES = 6 };
extern const slice sql_system_properties[SQL_SYSTEM_PROPERTIES];

slice sql_without_system(arena *a, slice body); /* the same bytes if there is none in it */

/* A patch and its condition, from its BSON into the operation; lives in its arena. E_BAD_REQUEST, E_BAD_QUERY with the service's sentence.
 */
MUST_CHECK err sql_read_patch(op *o, const container *c, slice body, item_op *item);

unsigned sql_item_status(const item_op *item); /* 200, 201, 204, or its error's */
