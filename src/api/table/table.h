/* table.h — the Table API: Azure Table Storage and Cosmos DB's Table API, which is OData JSON over HTTP.
 *
 * It decodes requests, checks signatures, calls the core and encodes answers. A table is a container of the database TablesDB, with the
 * partition key /PartitionKey and the row key /RowKey; an entity is an item. */
#pragma once

#include "access/attempts.h"
#include "access/keys.h"
#include "account/account.h"
#include "account/faults.h"
#include "script/pool.h"

typedef struct table_front table_front;

typedef struct table_options {
    account *account;
    const access_keys *keys;   /* outlives the front */
    access_attempts *attempts; /* outlives the front */
    faults *faults;            /* NULL: fault injection is off; outlives the front */
    script_pool *scripts;
} table_options;

table_front *table_open(const table_options *options);
const http_front *table_http(const table_front *front); /* pass this to net_listen */
void table_close(table_front *front);
