/* restrict_int.h — values of relations, shared by the files of restrict.h. */
#pragma once

#include "cql/restrict.h"

/* What the right side of a relation is assigned to: the column, an element of it, a list of it, … */
cql_receiver cql__relation_receiver(op *o, const cql_relation *r, const cql_column *const *columns);

/* Prepares the terms of a relation; bind markers get their receivers. */
err cql__relation_prepare(op *o, const cql_type_source *types, const cql_relation *r, const cql_column *const *columns,
                          cql_receiver *markers);

/* The values of =, IN or a slice on one column or several: `n_out` rows of `r->columns_n` values each. */
err cql__relation_values(op *o, const cql_run *run, const cql_relation *r, const cql_column *const *columns, const cql_value **values_out,
                         uint32_t *n_out);

static inline bool cql__is_slice(cql_operator op) {
    return op == CQL_LT || op == CQL_LE || op == CQL_GT || op == CQL_GE;
}
static inline bool cql__is_lower(cql_operator op) { /* a bound from below */
    return op == CQL_GT || op == CQL_GE;
}
