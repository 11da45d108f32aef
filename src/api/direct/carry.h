/* carry.h — a decoded frame as a request of the SQL API, and its answer as a frame. Pure. */
#pragma once

#include "api/direct/request.h"
#include "net/carried.h"

/* Fills in method, verb, path, fields and body. E_METHOD: no operation of ours. E_BAD_REQUEST: names are missing, or a resource id is none.
 * What is made lives in the request's arena. */
MUST_CHECK err direct_carry(const direct_request *q, http_request *http);

/* Appends the answer as a frame. Its tokens are the answer's fields, and those without which SDKs refuse it. */
void direct_answer(buf *out, const direct_request *q, const http_answer *answer);
