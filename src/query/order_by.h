/* order_by.h — the paths of ORDER BY, and the orders that the service rejects. */
#pragma once

#include "find/demand.h"
#include "query/demand.h"

/* The paths of ORDER BY, in the arena. */
find_order query_order_of(arena *a, const query *q);

/* Rejects an ORDER BY that the service rejects: E_BAD_REQUEST with its message. */
MUST_CHECK err query_check_order(op *o, const query *q, const index_policy *policy);
