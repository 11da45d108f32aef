/* condition.h — the condition ITEM_CONDITION_FILTER (item/edit.h): whether one item passes "FROM c WHERE …", the condition of a patch in
 * the SQL API.
 *
 * The text is parsed and bound before the write is submitted; the committer evaluates it on the item's current version. The condition holds
 * if any row passes. JOINs are allowed, UDFs are not. It fails if the item does not exist. Its limits are much lower than those of a
 * query. */
#pragma once

#include "item/item.h"
#include "query/eval.h"

enum { QUERY_CONDITION_STEPS = 50000, QUERY_CONDITION_BYTES_MAX = 32 * 1024 /* length of the text */ };

void query_condition_register(void); /* at start, by each front end that uses it */

/* The condition with this text, in the arena. item_edit_make_ready checks it: E_BAD_QUERY with the service's JSON. */
item_condition query_condition_of(arena *a, slice text);
