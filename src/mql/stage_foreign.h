/* stage_foreign.h — within mql/: where $lookup, $graphLookup and $unionWith read: a collection, or a view, which is a collection seen
 * through a pipeline. */
#pragma once

#include "mql/pipeline_int.h"

typedef struct mql__from {
    slice collection;
    const mql_pipeline *view; /* NULL: it is no view */
    slice filter;             /* what the view begins with */
} mql__from;

/* Asks the scope's views what the name stands for. */
MUST_CHECK err mql__from_parse(mql_scope *s, slice name, mql__from *from_out);

/* A read in progress. */
typedef struct mql__foreign {
    mql__ask ask;
    mql_flow *view; /* NULL: none */
} mql__foreign;

/* The filter only spares documents: those of a view come without it. It must live as long as the read. */
void mql__foreign_begin(mql__runner *at, mql__foreign *f, const mql__from *from, slice filter);
MUST_CHECK err mql__foreign_next(mql__runner *at, mql__foreign *f, mql__status *status_out, slice *document_out);
/* The same through a sub-pipeline as well, which the caller has begun and frees. */
MUST_CHECK err mql__foreign_through(mql__runner *at, mql__foreign *f, mql_flow *sub, mql__status *status_out, slice *document_out);
void mql__foreign_end(mql__foreign *f);
