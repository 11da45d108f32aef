/* patch.h — partial update of a document: the service's six operations over JSON-pointer-like paths.
 *
 *   add      sets a member; at an array index inserts before it; "/-" appends
 *   set      like add, but overwrites an array element
 *   replace  overwrites the target, which must exist
 *   remove   deletes the target, which must exist
 *   incr     adds a number to the target, or sets a missing target to it; integers stay integers as long as they fit 64 bits
 *   move     adds the value at `from` to `path`, then removes it from `from` (in this order, as the service does: indices in `path`
 *            count before the removal); a path inside `from` is rejected
 * The object or array that holds the target must exist: no operation creates parents. Each operation is applied to the result of the one
 * before it; if one fails, the whole patch fails. Steps of a path are escaped as in JSON pointers (~0 for ~, ~1 for /). The caller must
 * check whether the partition key changes. */
#pragma once

#include "base/buf.h"
#include "base/op.h"
#include "doc/walk.h"

typedef enum patch_kind { PATCH_ADD, PATCH_SET, PATCH_REPLACE, PATCH_REMOVE, PATCH_INCR, PATCH_MOVE } patch_kind;

typedef struct patch_operation {
    patch_kind kind;
    slice path;
    slice from;        /* move only */
    doc_element value; /* add, set, replace, incr: points into the request's BSON */
} patch_operation;

typedef struct patch {
    patch_operation *operations;
    size_t n;
    slice condition; /* text after "condition", empty if none */
} patch;

/* Reads {"condition":…,"operations":[…]} or a bare array. The patch points into `request` and the op's arena. Errors carry the service's
 * message, set by op_fail. Rejects bad syntax, too many operations, and paths to id and system properties. */
MUST_CHECK err patch_parse(op *o, slice request, patch *patch_out);

/* Appends the patched document to `out`. The limit of `out` bounds its size (E_TOO_LARGE), LIMIT_JSON_DEPTH its depth. On an error `out` is
 * unchanged. */
MUST_CHECK err patch_apply(op *o, const patch *p, slice document, buf *out);
