/* batch.h — the body of a transactional batch or a bulk request, read into item operations. Knows no HTTP. */
#pragma once

#include "item/item.h"

typedef struct sql_batch_target {
    const container *container;
    const pkey *key; /* from the request, or NULL; in bulk each operation has its own */
    bool atomic;
    int64_t foreign_ms; /* as in item_op */
} sql_batch_target;

/* `list` is the body's array as BSON. An invalid operation gets its error code and sentence; the others are ready for item_commit_submit. A
 * bulk list may be empty. E_BAD_REQUEST: the list as a whole is invalid. Operations live in the op's arena and point into `list`. */
MUST_CHECK err sql_batch_read(op *o, const sql_batch_target *target, slice list, item_op **ops_out, size_t *n_out);
