/* notes.h — what indexes have to do with a query: which ones it uses, which would help, and why the index cannot answer a condition.
 *
 * For x-ms-cosmos-index-utilization and for people (explain.h). Paths are spelled as policies do: "/name/?", "/tags/[]/?"; those of
 * composite indexes "/name ASC". Indexes are named by the shape of the query, as the service does: where reading all of a small partition
 * is quicker, the index that could have been used is named all the same. Composite indexes for filters, which the service uses, are named
 * too, though here single ones are intersected. */
#pragma once

#include "query/exec.h"

/* Fills p->index_notes. */
void query_note_indexes(query_page *p, query_runner *r, const index_policy *policy);

slice query_note_path(arena *a, const index_step *steps, size_t n, const char *end); /* `end`: "/?", " ASC" */

/* The order that is asked for, or the composite index that has it: "/a ASC, /b DESC". */
slice query_note_order(arena *a, const query *q, const index_composite *composite);

/* Fills the trace's conditions: each one's path, or why the index does not answer it, as a clause: "UPPER is computed from each item". */
void query_note_where(query_trace *t, query_runner *r, const index_policy *policy);
