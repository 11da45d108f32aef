/* typed_body.h — a document from JSON, with its extended-JSON objects as the typed values that they stand for.
 *
 * {"at":{"$date":"2024-05-17T08:21:45Z"}} becomes a document whose `at` is a date. This reverses what doc/json.h writes for the types that
 * JSON lacks (docs/json.md), at any depth; everything else is kept as it is. Any thread. */
#pragma once

#include "base/op.h"

/* `body` is a well-formed document or array. The result is in the operation's arena, or `body` itself if it has no such objects. E_MEMORY,
 * E_BUSY_MEMORY: the budget has no room. E_TOO_LARGE: too large, or nested too deeply. */
MUST_CHECK err query_typed_body(op *o, slice body, slice *typed_out);
