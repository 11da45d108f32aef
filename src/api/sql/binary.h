/* binary.h — bodies in Cosmos binary JSON (doc/json_binary.h). Within api/sql.
 *
 * Binary request bodies are converted to text before they are decoded, so limits and charges are those of text. Items and pages of items
 * are converted to binary when the answer ends, if the client asks for it. Errors and query plans stay text: clients tell the formats apart
 * by the first byte. */
#pragma once

#include "api/sql/sql_int.h"

/* Converts the body to text if it is binary. E_TOO_LARGE: the text is longer than `bytes_max`; the body is unchanged. */
MUST_CHECK err sql_binary_read(sql_request *q, size_t bytes_max, json_error *why);

/* Ends the answer, in binary if the client asks for it. */
void sql_binary_end(sql_request *q);
