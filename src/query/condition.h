/* condition.h — whether one item is so: "FROM c WHERE …" of a patch, for the committer to ask.
 *
 * Read and bound before the write is submitted; evaluated where it is decided, over the item as it is then, so that nothing can come
 * between. All writes of a store wait meanwhile: what one condition may do is far less than what a query may. */
#pragma once

#include "item/item.h"
#include "query/eval.h"

enum { QUERY_CONDITION_STEPS = 50000, QUERY_CONDITION_BYTES_MAX = 32 * 1024 /* of its text */ };

/* E_BAD_QUERY with the service's JSON. The condition and what it is made of live in the operation's arena; the container and the text must
 * live as long. It holds if any row passes: JOINs are allowed, UDFs are not. */
MUST_CHECK err query_condition_read(op *o, const container *c, slice text, const item_condition **condition_out);
