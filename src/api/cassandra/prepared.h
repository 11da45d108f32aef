/* prepared.h — prepared statements: shared by all connections, found by an id made of keyspace and text.
 *
 * A statement is kept with the version of its table. After a change of the schema, and when it was pushed out by newer ones, its id is
 * unknown: clients get 0x2500 and prepare it again. Any thread. */
#pragma once

#include "api/cassandra/statement.h"

enum { CASS_ID_BYTES = 16 };

struct cass_prepared {
    atomic_uint refs;
    arena arena;
    uint8_t id[CASS_ID_BYTES], result_id[CASS_ID_BYTES];
    slice keyspace; /* the current one at PREPARE */
    slice text;
    const cql_statement *tree;
    cass_statement statement;
    const cass_table *table; /* a reference, or NULL */
    cass_prepared *next;     /* in the cache */
    uint64_t used;
};

cass_prepares *cass_prepares_new(void);
void cass_prepares_free(cass_prepares *p);

/* NULL: not known. A reference for the caller. */
cass_prepared *cass_prepared_find(cass_prepares *p, slice id);
void cass_prepared_keep(cass_prepares *p, cass_prepared *made); /* the cache takes a reference of its own */
void cass_prepared_forget(cass_prepares *p, const cass_prepared *old);
void cass_prepared_give(cass_prepared *p);

void cass_prepared_id(slice keyspace, slice text, uint8_t id_out[CASS_ID_BYTES]);
