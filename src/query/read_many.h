/* read_many.h — answers a query that names each of its items, as SDKs write it for read-many, by point reads. */
#pragma once

#include "query/exec.h"

/* For a first page. True: it was such a query with at least two items, and the page has all its rows, or *code_out is the error. False: run
 * it as an ordinary query. */
bool query_read_many(query_page *page, err *code_out);
