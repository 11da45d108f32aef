/* over.h — runs a query over documents in memory: databases, containers and offers. On a worker thread.
 *
 * The rows of all documents are held until they are written, so this is for thousands of documents, not for items. Documents have no system
 * properties beyond those in their body. One limit of time and memory holds for all of them together. */
#pragma once

#include "query/eval.h"

typedef struct query_over query_over;

/* The query must outlive it. */
query_over *query_over_new(op *o, const query *q, int64_t now_ms);
void query_over_free(query_over *over);

/* Adds the rows of one document (BSON), which may be freed afterwards. */
MUST_CHECK err query_over_add(query_over *over, slice document);
size_t query_over_rows(const query_over *over);  /* so far; none before query_over_write if the query has groups */
size_t query_over_bytes(const query_over *over); /* approximate memory of the rows */

/* After the last document, once: writes rows as JSON separated by commas, in order, after OFFSET, TOP and LIMIT. Leaves out the first
 * `skip` rows; writes at most `rows_max`, and starts none beyond `bytes_max`. *more_out: rows are left. */
MUST_CHECK err query_over_write(query_over *over, uint64_t skip, size_t rows_max, size_t bytes_max, buf *out, size_t *rows_out,
                                bool *more_out);
