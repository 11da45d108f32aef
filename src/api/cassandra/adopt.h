/* adopt.h — within api/cassandra: rows through other APIs (item/foreign.h).
 *
 * What another API writes is the row as a whole, as INSERT would write it at that time with the table's default time to live: each member
 * is a column, by the name that its member has (schema.h), and columns that are left out are null. Earlier timestamps and times to live of
 * the row, and what is written later with an older timestamp, count no more. Members for this API's own use are made anew, whatever the
 * item brings.
 *
 * Other APIs know a row by a text, its id: the clustering column, or without one the first column of the partition key, as toJson shows it
 * but without quotes; for several clustering columns a JSON array of them.
 *
 * Static columns, tables of counters and tables with user types are written by CQL only. */
#pragma once

#include "api/cassandra/schema.h"

void cass_adopt_register(void);

/* The row that another API writes as `body` at that time. E_BAD_REQUEST: it is no row of the table. */
MUST_CHECK err cass_adopt_row(op *o, const cass_table *t, int64_t now_ms, slice body, slice *stored_out);
