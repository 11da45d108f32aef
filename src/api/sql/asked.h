/* asked.h — within api/sql: the body of a query: {"query": text, "parameters": [{"name": "@x", "value": …}, …]}, or with content type
 * application/sql the text alone. */
#pragma once

#include "api/sql/sql_int.h"
#include "query/bind.h"

typedef struct sql_asked {
    slice text;
    query_parameter *parameters; /* as query_prepare wants them */
    size_t parameters_n;
} sql_asked;

/* Points into the request's body and arena. E_BAD_REQUEST. */
MUST_CHECK err sql_asked_read(sql_request *q, sql_asked *asked_out);
