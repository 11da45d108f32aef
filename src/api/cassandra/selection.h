/* selection.h — what SELECT returns: expressions over a row, aggregates over several, and the columns of the result.
 *
 * A selection is made once, when a statement is analysed, and is immutable. A *gathering* is the state of its aggregates for one group of
 * rows. Pure functions, any thread; memory is the operation's. */
#pragma once

#include "api/cassandra/row.h"

typedef struct cass_expression cass_expression;

typedef struct cass_result_column {
    slice name;
    const cql_type *type;
    const cass_expression *expression;
} cass_result_column;

typedef struct cass_selection {
    const cass_table *table;
    const cass_result_column *columns;
    uint32_t n;
    bool json;             /* one column, made of `columns` */
    const uint32_t *plain; /* of each column the table's; NULL: some are more than a column of the table */
    bool uses_static;
    const bool *needed; /* columns of the table that are read; one more is shown to be live by them */
    const cass_expression *const *aggregates;
    uint32_t aggregates_n;
} cass_selection;

MUST_CHECK err cass_selection_make(op *o, const cass_table *t, const cql_select *select, const cql_type_source *types,
                                   cql_receiver *markers, const cass_selection **selection_out);

/* What an expression is computed from. */
typedef struct cass_scope {
    op *o;
    const cql_run *run;
    const cass_table *table;
    const cass_row *row;
    int64_t now_s;
    const cql_value *aggregated; /* results of the aggregates; NULL: there are none */
} cass_scope;

MUST_CHECK err cass_evaluate(const cass_scope *s, const cass_expression *e, cql_value *value_out);

/* Appends the metadata of a result, and a row of it. */
void cass_metadata_put(buf *out, const cass_selection *s, unsigned version); /* global table spec and columns */
MUST_CHECK err cass_result_row_put(const cass_scope *s, const cass_selection *selection, buf *out);

/* ---- groups ---- */

typedef struct cass_gathering {
    cql_aggregate *states;
    cass_row first; /* of the group; for columns that are not aggregated */
    bool any;
} cass_gathering;

MUST_CHECK err cass_gathering_init(op *o, const cass_selection *s, cass_gathering *g);
MUST_CHECK err cass_gathering_add(op *o, const cass_scope *s, const cass_selection *selection, cass_gathering *g);
MUST_CHECK err cass_gathering_put(op *o, const cass_scope *s, const cass_selection *selection, const cass_gathering *g, buf *out);

int64_t cass_token_of_row(op *o, const cass_table *t, const cass_row *row);
