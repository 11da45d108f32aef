/* target.h — what a feed or a query covers (a range, a part of the hash space, a partition key, or everything), and where it resumes. */
#pragma once

#include "api/sql/continuation.h"
#include "api/sql/sql_int.h"

typedef struct sql_target {
    sql_scope scope;
    item_key key; /* if it covers one partition: the cursor points here */
    item_cursor cursor;
} sql_target;

/* Reads the target from the request's fields and a continuation. The request's container and partition key must be set. The target lives in
 * the request's arena. E_RANGE_GONE, E_BAD_REQUEST, E_BAD_CONTINUATION. */
MUST_CHECK err sql_target_read(sql_request *q, slice continuation, sql_target **target_out);
