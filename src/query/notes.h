/* notes.h — index notes for a query: which indexes it uses, which would help, and why the index cannot answer a condition.
 *
 * For the header x-ms-cosmos-index-utilization and for explain.h. Paths are written as in policies: "/name/?", "/tags/[]/?", and "/name
 * ASC" for composite indexes. As on the service, the notes depend on the query only: if a small partition is read whole, the index that
 * could have been used is still named. Composite indexes for filters are named because the service uses them, although here single indexes
 * are intersected instead. */
#pragma once

#include "query/exec.h"

/* Fills p->outcome.indexes. */
void query_note_indexes(query_page *p, query_runner *r, const index_policy *policy);

slice query_note_path(arena *a, const index_step *steps, size_t n, const char *end); /* `end`: "/?", " ASC" */

/* The order of ORDER BY, or of the composite index if not NULL: "/a ASC, /b DESC". */
slice query_note_order(arena *a, const query *q, const index_composite *composite);

/* Fills the trace's conditions: the path of each, or the reason why the index does not answer it. */
void query_note_where(query_trace *t, query_runner *r, const index_policy *policy);
