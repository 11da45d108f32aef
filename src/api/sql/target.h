/* target.h — what a feed or a query is about: a range, a part of the hash space, a partition key, or all; and where it goes on. */
#pragma once

#include "api/sql/continuation.h"
#include "api/sql/sql_int.h"

typedef struct sql_target {
    sql_scope scope;
    item_key key; /* of one partition: the cursor points here */
    item_cursor cursor;
} sql_target;

/* From the request's fields and a continuation; its container and partition key were found. The target is the request's.
 * E_RANGE_GONE, E_BAD_REQUEST, E_BAD_CONTINUATION. */
MUST_CHECK err sql_target_read(sql_request *q, slice continuation, sql_target **target_out);
