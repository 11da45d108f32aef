/* project.h — projections of find and $project: inclusion, exclusion, $slice, $elemMatch, positional, computed fields. */
#pragma once

#include "mql/match.h"

typedef struct mql_project mql_project;

typedef enum mql_project_kind { MQL_PROJECT_FIND, MQL_PROJECT_STAGE } mql_project_kind; /* which rules apply */

/* `match` is the find's filter, for positional projections; NULL: none. */
MUST_CHECK err mql_project_parse(mql_scope *s, slice projection, mql_project_kind kind, const mql_match *match,
                                 const mql_project **project_out);
/* Applies the projection to the document in `r->root`. The result is in the run's arena. */
MUST_CHECK err mql_project_apply(mql_run *r, const mql_project *p, slice *document_out);
