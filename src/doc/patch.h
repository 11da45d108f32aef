/* patch.h — partial update of a document: the service's six operations over JSON-pointer-like paths.
 *
 *   add      sets a member; at an array index inserts before it; "/-" appends
 *   set      like add, but overwrites an array element
 *   replace  the target must be there
 *   remove   the target must be there
 *   incr     a number is added; a missing target starts from it; integers stay integers as long as they fit 64 bits
 *   move     an add of what is at `from`, then a remove of it there (in this order, as the service does: indices in `path` count
 *            before the removal); a path inside `from` is refused
 * The object or array that holds the target must be there: no operation makes parents.
 * Operations are applied in order to the result of the one before; the first that fails fails all. Steps of a path are escaped as
 * in JSON pointers (~0 for ~, ~1 for /). Whether the partition key changes is for the caller to see. */
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

/* Reads {"condition":…,"operations":[…]} or a bare array. The patch points into `request` and the op's arena. Errors carry the
 * service's sentence through op_fail. Refused here: bad syntax, too many operations, paths to id and to system properties. */
MUST_CHECK err patch_parse(op *o, slice request, patch *patch_out);

/* Appends the patched document to `out`, whose limit bounds its size (E_TOO_LARGE); LIMIT_JSON_DEPTH bounds its depth. On an error
 * `out` is as it was. */
MUST_CHECK err patch_apply(op *o, const patch *p, slice document, buf *out);
