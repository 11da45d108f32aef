/* binary.h — bodies in Cosmos binary JSON (doc/json_binary.h). Within api/sql.
 *
 * A request's body that is binary becomes text before anything else looks at it, so limits and charges are those of text. Answers with
 * items, and pages of them, become binary at their end if the client asks for it; errors and query plans stay text, which every reader of
 * the format tells by the first byte. */
#pragma once

#include "api/sql/sql_int.h"

/* Makes text of the body if it is binary. E_TOO_LARGE: the text is longer than `bytes_max`; the body stays as it is. */
MUST_CHECK err sql_binary_read(sql_request *q, size_t bytes_max, json_error *why);

/* Ends the answer, in binary if that is wanted. */
void sql_binary_end(sql_request *q);
