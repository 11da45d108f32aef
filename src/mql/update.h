/* update.h — updates: operators ({$set: …, $inc: …}) with positional paths and array filters, replacements, and pipelines. Parsed once,
 * applied to a document or to nothing (upsert). A parsed update is constant and may be used by several threads. */
#pragma once

#include "mql/match.h"

typedef struct mql_update mql_update;

typedef struct mql_update_spec {
    mql_value update;       /* a document (operators or a replacement) or an array (a pipeline) */
    slice array_filters;    /* a BSON array; empty: none */
    const mql_match *match; /* the filter that found the document: for `$` and for upserts; NULL: none */
    slice filter;           /* the filter itself: an upsert takes the values of its equalities */
} mql_update_spec;

bool mql_update_replaces(mql_value update); /* it is a replacement */
MUST_CHECK err mql_update_parse(mql_scope *s, const mql_update_spec *spec, const mql_update **update_out);

typedef struct mql_updated {
    slice document; /* in the run's arena */
    bool modified;  /* false: the document did not change */
} mql_updated;

/* `r->root` is the current document; missing: an upsert inserts. An upsert without `_id` leaves it out: the caller makes one. Fails with 66
 * (ImmutableField) if _id would change. */
MUST_CHECK err mql_update_apply(mql_run *r, const mql_update *u, mql_updated *updated_out);
