/* statement.h — a statement with its table: names found, types checked, keys and filters worked out. Made once, executed often.
 *
 * It is immutable, in the arena that it was made with: a request's, or that of a prepared statement. It points to its table, whose
 * reference the owner of the arena keeps. */
#pragma once

#include "api/cassandra/edit_kind.h"
#include "api/cassandra/selection.h"

/* What INSERT, UPDATE and DELETE do to columns, in the order of the statement. */
typedef struct cass_change_plan {
    cass_assign_kind kind;
    uint32_t column;
    const cql_term *key, *value; /* value NULL: delete */
    cql_receiver key_receiver, value_receiver;
    cql_value fixed_key; /* a field's number */
    bool has_fixed_key;
} cass_change_plan;

struct cass_statement {
    const cql_statement *tree;
    const cass_table *table;
    cql_receiver *markers;
    uint32_t markers_n;

    /* SELECT, UPDATE, DELETE */
    cql_restrictions where;

    /* SELECT */
    const cass_selection *selection;
    const bool *needed; /* columns of the table that selection and filters read */
    bool uses_static;
    const uint32_t *group; /* columns of GROUP BY; all are key columns */
    uint32_t group_n;
    bool backward; /* ORDER BY against the table's order */
    bool sorts;    /* ORDER BY of several partitions: rows are sorted in memory */

    /* INSERT, UPDATE, DELETE */
    const cass_change_plan *changes;
    uint32_t changes_n;
    const cql_term **key_terms; /* INSERT: one for each key column; NULL: not given */
    bool writes_static, writes_regular;
    bool counts; /* changes counters */

    /* BATCH in text */
    const cass_statement *const *parts;
    uint32_t parts_n;
};

/* Analyses a statement of one table: SELECT, INSERT, UPDATE, DELETE. `statement` has its tree and markers. E_BAD_REQUEST in Cassandra's
 * words. */
MUST_CHECK err cass_analyse(op *o, const cass_table *t, const cql_statement *tree, cql_receiver *markers, cass_statement *statement_out);

const cql_table_name *cass_table_name_of(const cql_statement *tree); /* NULL: it names no table */

/* The marker of each partition key column, for token-aware drivers. False: one of them is not a plain marker. */
bool cass_partition_markers(const cass_statement *s, uint16_t *indexes_out);
