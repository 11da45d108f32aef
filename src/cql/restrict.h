/* restrict.h — what a WHERE clause means for a table: which partitions, which rows in them, and what is left to filter.
 *
 * The front end describes the table (cql_table); cql_restrict checks each relation against it by Cassandra's rules, and refuses in its
 * words what Cassandra refuses. The result names the relations, not values, so it is made once when a statement is prepared;
 * cql_restrict_keys and cql_restrict_bounds then compute keys and bounds for each execution.
 *
 * Pure functions, any thread; results live in the operation's arena and point into the statement and the table. */
#pragma once

#include "cql/function.h"
#include "cql/parse.h"

typedef enum cql_column_kind { CQL_COLUMN_PARTITION, CQL_COLUMN_CLUSTERING, CQL_COLUMN_STATIC, CQL_COLUMN_REGULAR } cql_column_kind;

enum {
    CQL_INDEXED_VALUES = 1,  /* = on a plain column; CONTAINS on a collection */
    CQL_INDEXED_KEYS = 2,    /* CONTAINS KEY */
    CQL_INDEXED_ENTRIES = 4, /* m[k] = v */
    CQL_INDEXED_FULL = 8,    /* = on a frozen collection */
};

typedef struct cql_column {
    slice name;
    const cql_type *type; /* resolved */
    cql_column_kind kind;
    uint16_t position; /* among the partition or clustering columns */
    bool descending;   /* clustering columns */
    uint8_t indexed;   /* CQL_INDEXED_… together */
} cql_column;

typedef struct cql_table {
    slice keyspace, name;
    const cql_column *columns; /* partition columns first, then clustering columns, both in their order */
    uint32_t n, partition_n, clustering_n;
} cql_table;

const cql_column *cql_table_column(const cql_table *table, slice name); /* NULL: there is none */

typedef enum cql_restrict_for { CQL_FOR_SELECT, CQL_FOR_UPDATE, CQL_FOR_DELETE } cql_restrict_for;

/* Why a relation that the keys do not cover is there. */
typedef struct cql_filter {
    const cql_relation *relation;
    const cql_column *column;
    bool index; /* an index of the table serves it */
} cql_filter;

typedef struct cql_restrictions {
    const cql_table *table;
    const cql_relation **partition;  /* one for each partition column, = or IN; NULL: not restricted so */
    bool whole_partition_key;        /* all columns have one: the partitions are known */
    bool partition_in;               /* one of them is IN */
    const cql_relation *token[2];    /* token(…): lower and upper bound, or both the same for =; NULL: none */
    const cql_relation **clustering; /* the relation (= or IN, of one column or several) for each clustering column of the prefix */
    uint32_t clustering_n;           /* length of the prefix restricted by = and IN */
    bool clustering_in;
    const cql_relation *slice[2]; /* lower and upper bound of the column or columns after the prefix; NULL: open */
    const cql_filter *filters;    /* what is left: indexed columns, and what needs ALLOW FILTERING */
    uint32_t filters_n;
    bool uses_index;                 /* one of the filters is served by an index */
    bool needs_filtering;            /* only with ALLOW FILTERING */
    const cql_relation *change_feed; /* COSMOS_CHANGEFEED_START_TIME() = …: a timestamp; NULL: none */
    bool static_only;                /* no clustering column restricted, for writes of static columns */
} cql_restrictions;

typedef struct cql_restrict_input {
    const cql_table *table;
    const cql_relation *where;
    uint32_t where_n;
    cql_restrict_for purpose;
    bool allow_filtering;
    bool distinct;
    bool selects_static_only; /* SELECT of partition and static columns only; UPDATE and DELETE of static columns only */
    const cql_type_source *types;
    cql_receiver *markers; /* gets the receivers of bind markers; NULL: do not record */
} cql_restrict_input;

MUST_CHECK err cql_restrict(op *o, const cql_restrict_input *input, cql_restrictions *restrictions_out);

/* ---- at execution ---- */

enum { CQL_KEYS_MAX = 10000 }; /* products of IN: partition keys, or prefixes of clustering columns */

/* For restrictions with `whole_partition_key`. The values of each partition key that they name: `n_out` keys of `table->partition_n`
 * values, one after another, without duplicates, in the order of IN. */
MUST_CHECK err cql_restrict_keys(op *o, const cql_run *run, const cql_restrictions *r, const cql_value **keys_out, uint32_t *n_out);

/* One range of rows of a partition, in clustering order of the table. A bound is a prefix of the clustering columns: `n` values. An
 * inclusive bound includes all rows that begin with it. n = 0: open. */
typedef struct cql_bound {
    const cql_value *values;
    uint32_t n;
    bool inclusive;
} cql_bound;

typedef struct cql_range {
    cql_bound start, end; /* start comes before end in the table's order, descending columns included */
} cql_range;

/* The ranges of rows, ascending in the table's order and without overlap; `n_out` is 0 if none can match. A multi-column slice over columns
 * of mixed order becomes several ranges. */
MUST_CHECK err cql_restrict_ranges(op *o, const cql_run *run, const cql_restrictions *r, const cql_range **ranges_out, uint32_t *n_out);

/* Bounds of a token range: [first, last]; false in `*any_out`: empty. Both ends inclusive. */
MUST_CHECK err cql_restrict_tokens(op *o, const cql_run *run, const cql_restrictions *r, int64_t *first_out, int64_t *last_out,
                                   bool *any_out);

/* ---- conditions ---- */

/* Checks one condition of IF against the table, and records the receivers of its bind markers (NULL: does not). E_BAD_REQUEST: no such
 * column, a column of the primary key, an element of what is no collection, a field that the user type lacks, a slice of durations. */
MUST_CHECK err cql_condition_prepare(op *o, const cql_type_source *types, const cql_table *table, const cql_relation *condition,
                                     cql_receiver *markers, const cql_column **column_out);

/* Whether a column's value passes a relation: =, <, IN, CONTAINS, CONTAINS KEY, LIKE, c[k] = v, != (in conditions). Null passes nothing but
 * = null and != v in conditions of IF, for which `condition` is set. */
MUST_CHECK err cql_relation_holds(op *o, const cql_run *run, const cql_relation *relation, const cql_column *column, cql_value v,
                                  bool condition, bool *holds_out);
