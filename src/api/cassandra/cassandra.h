/* cassandra.h — the Cassandra API: Cassandra's native protocol and CQL, as Azure Cosmos DB for Apache Cassandra offers them and beyond.
 *
 * It decodes messages, authenticates connections, calls the core and encodes results. A keyspace is a database, a table is a container, a
 * row is an item. The language itself is src/cql. */
#pragma once

#include "access/attempts.h"
#include "access/keys.h"
#include "account/account.h"
#include "account/faults.h"
#include "net/frames.h"
#include "script/pool.h"

typedef struct cass_front cass_front;

typedef struct cass_options {
    account *account;
    const access_keys *keys;   /* outlives the front */
    access_attempts *attempts; /* outlives the front */
    faults *faults;            /* NULL: fault injection is off; outlives the front */
    script_pool *scripts;
    net_server *server;
} cass_options;

cass_front *cass_open(const cass_options *options);
const frames_front *cass_frames(const cass_front *front); /* pass this to net_listen_frames */
void cass_close(cass_front *front);
