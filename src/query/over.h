/* over.h — a query over documents in memory: databases, containers and offers by query. On a worker.
 *
 * The rows of all documents are held until they are written, so this is for thousands of documents, not for items. Documents are plain:
 * they have the properties that they have, and no others. Time and memory are bounded for all of them together. */
#pragma once

#include "query/eval.h"

typedef struct query_over query_over;

/* The query must outlive it. */
query_over *query_over_new(op *o, const query *q, int64_t now_ms);
void query_over_free(query_over *over);

/* The rows of one more document (BSON), which need not live longer. */
MUST_CHECK err query_over_add(query_over *over, slice document);
size_t query_over_rows(const query_over *over);  /* so far; of groups: none before they are written */
size_t query_over_bytes(const query_over *over); /* about what they take */

/* After the last document: rows as JSON with commas between, in order, bounds applied, without the first `skip`, at most `rows_max` and no
 * more than begin within `bytes_max`. *more_out: there are others. Once. */
MUST_CHECK err query_over_write(query_over *over, uint64_t skip, size_t rows_max, size_t bytes_max, buf *out, size_t *rows_out,
                                bool *more_out);
