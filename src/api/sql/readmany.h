/* readmany.h — within api/sql: a query that names its items one by one, as SDKs write for read-many, answered by reading just these. */
#pragma once

#include "api/sql/target.h"
#include "query/exec.h"

/* On a worker. True: it was such a query, of two items at least, and the page has all its rows, or *code_out says why not. False: it is for
 * the engine. The page's items, container, query, out and bounds are set. */
bool sql_read_many(sql_request *q, const sql_target *target, query_page *page, err *code_out);
