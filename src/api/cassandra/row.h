/* row.h — a row as cells with timestamps, and as the item that stores it.
 *
 *   {"user": "theo", "id": 1,                  the key columns
 *    "_key": {"id": "…"},                      key texts of those that need them (schema.h)
 *    "message": "hello", …                     regular columns; null ones are left out
 *    "_cql": {"t": 1700000000000000,           the row's timestamp, in microseconds: that of every cell not listed below
 *             "l": 60, "e": 1700000060,        the row's time to live and when it ends, in seconds; left out: none
 *             "m": false,                      no INSERT made the row: it exists as long as one of its cells does
 *             "d": 1600000000000000,           the row was deleted with this timestamp: older writes stay hidden
 *             "c": {"message": {"t", "l", "e", "x"}},       cells that differ from the row; x: deleted
 *             "x": {"tags": {"d", "s": [{"k", "t", "l", "e", "x"}]}},   collections: deleted as a whole; elements that differ
 *             "r": […]},                   with static columns: ranges of the partition's rows that were deleted (range.h)
 *    "_ttl": 60}                               when the core may remove the item: everything in it has expired
 *
 * The static columns of a partition are an item of their own, before all rows: its clustering columns are MinKey, or MaxKey where the order
 * is descending. Tables without static columns have it too, in partitions with deleted ranges. A deleted row stays as a tombstone for
 * gc_grace_seconds, so that older writes which come late stay hidden.
 *
 * Merging follows Cassandra: the greater timestamp wins; with equal ones a deletion, then the greater value. Pure functions, any thread. */
#pragma once

#include "api/cassandra/range.h"
#include "api/cassandra/schema.h"

typedef struct cass_stamp {
    int64_t us;
    int32_t ttl; /* 0: none */
    int64_t expires_s;
} cass_stamp;

typedef struct cass_element {
    cql_value key;   /* of a set the element, of a user type the field's number as a smallint; of a list none */
    cql_value value; /* of a list, map or user type */
    cass_stamp stamp;
    bool dead;
} cass_element;

typedef struct cass_cell {
    bool there; /* a value, or a deletion that is remembered */
    bool dead;
    cql_value value; /* of a collection: all live elements; null if there are none */
    cass_stamp stamp;
    int64_t deleted_us;     /* a collection as a whole; CASS_NEVER: not */
    cass_element *elements; /* only if the row was read to be changed, or stamps differ; else NULL */
    uint32_t n;
} cass_cell;

#define CASS_NEVER INT64_MIN

typedef struct cass_row {
    bool marked; /* an INSERT made it */
    cass_stamp marker;
    int64_t deleted_us;
    bool is_static;
    cass_cell *cells;   /* one for each column of the table; of key columns the value alone */
    cass_range *ranges; /* of a static row */
    uint32_t ranges_n;
} cass_row;

/* Reads an item. Cells that have expired at `now_s` become deletions. `needed`: which columns, or NULL for all; `to_change`: collections
 * are taken apart. E_BAD_REQUEST: it is not a row of the table. */
MUST_CHECK err cass_row_read(op *o, const cass_table *t, slice body, int64_t now_s, const bool *needed, bool to_change, cass_row *row_out);

void cass_row_init(op *o, const cass_table *t, cass_row *row_out); /* an absent row */
bool cass_row_is_live(const cass_table *t, const cass_row *row, int64_t now_s);
bool cass_stamp_is_live(const cass_stamp *s, int64_t now_s);

/* The item of a row. *body_out is empty if nothing is left to remember at `now_s`. */
MUST_CHECK err cass_row_write(op *o, const cass_table *t, const cass_row *row, int64_t now_s, slice *body_out);

/* Makes `value` of a collection from its live elements. */
MUST_CHECK err cass_cell_assemble(op *o, const cql_type *type, cass_cell *cell, int64_t now_s);
/* Takes a collection apart. */
MUST_CHECK err cass_cell_divide(op *o, const cql_type *type, cql_value value, cass_stamp stamp, cass_element **elements_out,
                                uint32_t *n_out);

/* By their keys: elements of sets and maps, fields of user types. */
int cass_element_compare(const cql_type *type, const cass_element *a, const cass_element *b);

/* ---- keys ---- */

/* The item's key from the values of its key columns; `clustering` NULL: the static row. E_BAD_REQUEST: null, or too long. */
MUST_CHECK err cass_key_of(op *o, const cass_table *t, const container *c, const cql_value *partition, const cql_value *clustering,
                           item_key *key_out);

/* The encoded row key of the first `n` clustering columns. */
MUST_CHECK err cass_row_prefix(op *o, const cass_table *t, const container *c, const cql_value *clustering, uint32_t n, slice *prefix_out);

/* The encoded row key in a table without clustering columns: the first column of the partition key. */
MUST_CHECK err cass_single_row(op *o, const cass_table *t, const container *c, cql_value first, slice *row_out);
