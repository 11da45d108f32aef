/* stage_lookup.h — within mql/: a parsed $lookup; stage_lookup_parse.c makes it, stage_lookup.c runs it. */
#pragma once

#include "mql/stage_foreign.h"
#include "mql/stages.h"

typedef struct mql__let {
    const mql_expression *value;
    size_t slot;
} mql__let;

typedef struct mql__lookup_stage {
    mql__from source;
    slice from, as, local, foreign; /* paths are dotted; `local` and `foreign` are empty without equality */
    const slice *local_parts, *foreign_parts;
    size_t local_n, foreign_n;
    mql__let *let;
    size_t let_n;
    const mql_pipeline *pipeline; /* NULL: none */
    slice filter;                 /* the filter of the pipeline's leading $match stages */
} mql__lookup_stage;

err mql__parse_lookup(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument);
