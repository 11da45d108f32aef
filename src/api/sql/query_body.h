/* query_body.h — within api/sql: the body of a query: {"query": text, "parameters": [{"name": "@x", "value": …}, …]}, or with content type
 * application/sql the text alone. */
#pragma once

#include "api/sql/sql_int.h"
#include "query/bind.h"

typedef struct sql_query_body {
    slice text;
    query_parameter *parameters; /* in the form that query_prepare takes */
    size_t parameters_n;
} sql_query_body;

/* Reads the body; the result points into the request's body and arena. E_BAD_REQUEST. */
MUST_CHECK err sql_query_body_read(sql_request *q, sql_query_body *asked_out);
