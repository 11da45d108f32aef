/* system.h — the tables that drivers and cqlsh read about the server: system, system_schema, system_virtual_schema, system_auth.
 *
 * Their definitions are CQL; their rows are made when they are read. */
#pragma once

#include "api/cassandra/schema.h"

void cass_system_init(void); /* at start */

/* Whether the keyspace is one of the system's; *table_out is then the table, a reference, or NULL if it has no such table. */
bool cass_system_find(slice keyspace, slice name, const cass_table **table_out);
bool cass_system_has(slice keyspace);
