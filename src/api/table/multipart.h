/* multipart.h — within api/table: the body of a batch, which is HTTP requests in a changeset in a multipart message (RFC 2046).
 *
 *   --batch_1
 *   Content-Type: multipart/mixed; boundary=changeset_1
 *
 *   --changeset_1
 *   Content-Type: application/http
 *   Content-Transfer-Encoding: binary
 *
 *   POST http://host/people HTTP/1.1
 *   Content-Type: application/json
 *
 *   {"PartitionKey":"p", …}
 *   --changeset_1--
 *   --batch_1--
 *
 * Lines end with CRLF or LF, and blank lines may be anywhere between parts, since SDKs differ. Pure functions; slices point into the body.
 */
#pragma once

#include "api/table/errors.h"

/* A request within the batch. */
typedef struct multipart_request {
    slice verb, url;
    slice if_match, prefer, accept, method, content_id; /* p NULL: not given */
    slice body;
} multipart_request;

/* The boundary of a Content-Type; empty: it is not multipart/mixed, or has no sound boundary. */
slice multipart_boundary(slice content_type);

/* Reads up to `max` requests. *changes_out: they are a changeset; otherwise a request stands alone, as reads do. TABLE_INVALID_INPUT with a
 * sentence; TABLE_OUT_OF_RANGE: there are more. */
table_error multipart_read(op *o, slice body, slice boundary, multipart_request *requests, size_t max, size_t *n_out, bool *changes_out);
