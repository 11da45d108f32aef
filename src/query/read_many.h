/* read_many.h — a query that names its items one by one, as SDKs write for read-many, answered by reading just these. */
#pragma once

#include "query/exec.h"

/* Of a first page. True: it was such a query, of two items at least, and the page has all its rows, or *code_out says why not. False: it is
 * for the engine. */
bool query_read_many(query_page *page, err *code_out);
