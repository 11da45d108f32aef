/* order.h — ORDER BY as the index sees it: its paths, and what the service refuses to order. */
#pragma once

#include "find/demand.h"
#include "query/demand.h"

/* The paths of ORDER BY, in the arena. */
find_order query_order_of(arena *a, const query *q);

/* What the service refuses to order: E_BAD_REQUEST with its sentence. */
MUST_CHECK err query_check_order(op *o, const query *q, const index_policy *policy);
