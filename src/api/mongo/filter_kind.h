/* filter_kind.h — a MongoDB filter as a filter of the core's finds (query/filter.h); and the variables of a command.
 *
 * The argument is {"q": filter, "now": date, "let": variables, "collation": document}; the last two may be left out. */
#pragma once

#include "api/mongo/find.h"
#include "mql/match.h"
#include "query/filter.h"

void mongo_filter_register(void);

/* The names of `let`, and their values. Filters, updates and projections of one command are parsed in the same scope. */
typedef struct mongo_scope {
    mql_scope scope;
    mql_value *variables; /* by slot */
    size_t variables_n;
    int64_t now_ms;
} mongo_scope;

MUST_CHECK err mongo_scope_begin(op *o, bool service, slice let, int64_t now_ms, mongo_scope *scope_out);
/* From now on strings compare by this collation document (empty: by bytes), and $text searches the text index of the collection, which may
 * be NULL. Before anything is parsed. */
MUST_CHECK err mongo_scope_collate(op *o, const container *c, slice collation, mongo_scope *s);
/* Prepares a run with these variables. Call it after everything was parsed. `steps` is the run's budget. */
mql_run mongo_run_of(op *o, arena *a, const mongo_scope *s, uint64_t steps);

slice mongo_filter_argument(arena *a, const mongo_find *f);
