/* condition.h — the condition ITEM_CONDITION_FILTER (item/edit.h): whether one item passes "FROM c WHERE …", as a patch of the SQL API has
 * it.
 *
 * Parsed and bound before the write is submitted; evaluated where the write is decided, over the item as it is then. It holds if any row
 * passes: JOINs are allowed, UDFs are not. It does not hold where nothing is. What one condition may do is far less than what a query may.
 */
#pragma once

#include "item/item.h"
#include "query/eval.h"

enum { QUERY_CONDITION_STEPS = 50000, QUERY_CONDITION_BYTES_MAX = 32 * 1024 /* of its text */ };

void query_condition_register(void); /* at start, by every front end that uses it */

/* The condition with this text, in the arena. item_edit_make_ready tells whether it is a good one: E_BAD_QUERY with the service's JSON. */
item_condition query_condition_of(arena *a, slice text);
