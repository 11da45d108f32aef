/* mongo.h — the MongoDB API: MongoDB's wire protocol, as Azure Cosmos DB for MongoDB offers it and beyond.
 *
 * It decodes messages, authenticates connections, calls the core and encodes replies. A collection is a container; a document is an item
 * whose row key is its `_id`. The query language itself is src/mql. */
#pragma once

#include "access/attempts.h"
#include "access/keys.h"
#include "account/account.h"
#include "account/faults.h"
#include "net/frames.h"
#include "script/pool.h"

typedef struct mongo_front mongo_front;

/* What is offered: everything, or only what Azure's service offers, with its refusals. */
typedef enum mongo_surface { MONGO_FULL, MONGO_SERVICE } mongo_surface;

#define MONGO_SCRAM_USER "localhost" /* the emulator's account; SCRAM-SHA-1 is offered to this user only, SCRAM-SHA-256 to any */
enum { MONGO_SCRAM_KINDS = 1 << ACCESS_SCRAM_SHA_256 | 1 << ACCESS_SCRAM_SHA_1_MONGO };

typedef struct mongo_options {
    account *account;
    const access_keys *keys;   /* outlives the front */
    access_attempts *attempts; /* outlives the front */
    faults *faults;            /* NULL: fault injection is off; outlives the front */
    script_pool *scripts;
    net_server *server;
    mongo_surface surface;
} mongo_options;

mongo_front *mongo_open(const mongo_options *options);
const frames_front *mongo_frames(const mongo_front *front); /* pass this to net_listen_frames */
void mongo_tick(mongo_front *front);                        /* closes idle cursors; call now and then, from one thread */
void mongo_stop(mongo_front *front); /* before net_close, when no request is served: cursors use memory of the network layer's pool */
void mongo_close(mongo_front *front);
