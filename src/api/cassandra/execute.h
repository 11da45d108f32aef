/* execute.h — within api/cassandra: running statements. Each function answers the request, now or later, or returns an error. */
#pragma once

#include "api/cassandra/statement.h"
#include "api/cassandra/system.h"

err cass_execute(cass_request *q);       /* q->statement, of the kinds below */
err cass_execute_other(cass_request *q); /* q->tree: everything that names no table to read or write */

err cass_select(cass_request *q);
err cass_write(cass_request *q);

enum { CASS_BATCH_ROWS = 2000 }; /* that a batch may change */

/* Several writes as one: a BATCH in text, or a BATCH message. */
typedef struct cass_batch_item {
    const cass_statement *statement;
    const cql_value *values;
    uint32_t values_n;
} cass_batch_item;
err cass_write_batch(cass_request *q, cql_batch_kind kind, const cass_batch_item *items, uint32_t n, const cql_using *usings);

/* Looking at all tables of a keyspace, which may be thousands: `look` runs on a worker, then `go_on` on the loop. */
typedef struct cass_look cass_look;
struct cass_look {
    database *keyspace; /* a reference */
    err (*look)(cass_request *q, cass_look *l);
    err (*go_on)(cass_request *q, const cass_look *l);
    slice found; /* what `look` leaves for `go_on`, in the request's arena; empty: nothing */
};
void cass_look_at_tables(cass_request *q, const cass_look *l); /* takes over the reference */

/* Schema */
MUST_CHECK err cass_throughput_of(cass_request *q, const cql_properties *properties, throughput_setting *throughput_out);
err cass_create_keyspace(cass_request *q);
err cass_alter_keyspace(cass_request *q);
err cass_drop_keyspace(cass_request *q);
err cass_create_table(cass_request *q);
err cass_alter_table(cass_request *q);
err cass_drop_table(cass_request *q);
err cass_truncate(cass_request *q);
err cass_create_index(cass_request *q);
err cass_drop_index(cass_request *q);
err cass_create_type(cass_request *q);
err cass_alter_type(cass_request *q);
err cass_drop_type(cass_request *q);

/* A table of the system's: its rows, as cells, one after another. */
typedef struct cass_system_rows {
    cass_row *rows;
    uint32_t n, room;
} cass_system_rows;
bool cass_system_is_large(const cass_table *t); /* read by a worker, since its rows may be many */
MUST_CHECK err cass_system_read(cass_request *q, const cass_table *t, cass_system_rows *rows_out);

/* The timestamp of a write that names none: the clock's, and never the same twice. */
int64_t cass_write_time(cass_front *front, int64_t now_us);

/* Appends a whole Rows result: metadata, paging state, and rows that were encoded before. */
typedef struct cass_rows_answer {
    const cass_selection *selection;
    slice paging_state; /* empty: no more pages */
    uint32_t n;
    pieces *rows; /* sent without copying if they are many; lives as long as the request, which frees what it holds */
} cass_rows_answer;
void cass_rows_put(cass_request *q, const cass_rows_answer *a);
