/* parameters.h — reads a query's parameters from a request: [{"name": "@x", "value": …}, …]. */
#pragma once

#include "query/bind.h"

/* Reads "parameters" of a body; missing or null means none. The list is sorted for query_prepare, and lives in the operation's arena;
 * values point into the body. E_BAD_REQUEST: not such a list, a name without @, or a duplicate name. */
MUST_CHECK err query_parameters_read(op *o, slice body, query_parameter **list_out, size_t *n_out);

err query_parameters_bad_body(op *o); /* error: the body is not a query's body */
