/* gremlin.h — the Gremlin API: Gremlin Server's protocol over WebSockets, as Azure Cosmos DB for Apache Gremlin offers it and beyond.
 *
 * It accepts WebSockets, authenticates connections, runs scripts and bytecode (src/gremlin) on a graph, and sends the results. A graph is a
 * container of the SQL API; its vertices and edges are items (document.h). */
#pragma once

#include "access/attempts.h"
#include "access/keys.h"
#include "account/account.h"
#include "account/faults.h"
#include "net/frames.h"
#include "script/pool.h"

typedef struct gremlin_front gremlin_front;

typedef struct gremlin_options {
    account *account;
    const access_keys *keys;   /* outlives the front */
    access_attempts *attempts; /* outlives the front */
    faults *faults;            /* NULL: fault injection is off; outlives the front */
    script_pool *scripts;
} gremlin_options;

gremlin_front *gremlin_open(const gremlin_options *options);
const http_front *gremlin_http(const gremlin_front *front); /* pass this to net_listen */
void gremlin_close(gremlin_front *front);
