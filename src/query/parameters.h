/* parameters.h — a query's parameters as requests bring them: [{"name": "@x", "value": …}, …]. */
#pragma once

#include "query/bind.h"

/* From the "parameters" of a body: not there and null are none. Ready for query_prepare, in the operation's arena; values point into the
 * body. E_BAD_REQUEST: no such list, a name without its @, or twice. */
MUST_CHECK err query_parameters_read(op *o, slice body, query_parameter **list_out, size_t *n_out);

err query_parameters_bad_body(op *o); /* what a query's body must be like */
