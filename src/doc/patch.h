/* patch.h — partial update of a document: the service's six operations over JSON-pointer-like paths.
 *
 *   add      sets a member; at an array index inserts before it; "/-" appends
 *   set      like add, but overwrites an array element
 *   replace  the target must be there
 *   remove   the target must be there
 *   incr     a number is added; a missing target starts from it; integers stay integers
 *   move     `from` is removed and set at `path`; a path inside `from` is refused
 * Operations are applied in order to the result of the one before; the first that fails fails all. */
#pragma once

#include <bson/bson.h>

#include "base/buf.h"
#include "base/op.h"

typedef enum patch_kind { PATCH_ADD, PATCH_SET, PATCH_REPLACE, PATCH_REMOVE, PATCH_INCR, PATCH_MOVE } patch_kind;

typedef struct patch_operation {
    patch_kind kind;
    slice path;
    slice from;        /* move only */
    bson_iter_t value; /* add, set, replace, incr: points into the request's BSON */
} patch_operation;

typedef struct patch {
    patch_operation *operations;
    size_t n;
    slice condition; /* text after "condition", empty if none */
} patch;

/* Reads {"condition":…,"operations":[…]} or a bare array. The patch points into `request` and the op's arena. Errors carry the
 * service's sentence through op_fail. */
MUST_CHECK err patch_parse(op *o, slice request, patch *patch_out);

/* Appends the patched document to `out`. */
MUST_CHECK err patch_apply(op *o, const patch *p, slice document, buf *out);
