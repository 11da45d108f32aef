/* sql.h — the SQL (core) API of Cosmos DB over HTTP: the front end that the official SDKs talk to.
 *
 * It decodes requests, checks signatures, calls the core and encodes answers. It touches no store, knows no layout, computes no charge. */
#pragma once

#include "access/aad.h"
#include "access/attempts.h"
#include "access/keys.h"
#include "account/account.h"
#include "account/faults.h"
#include "net/server.h"
#include "script/pool.h"

typedef struct sql_front sql_front;

/* From strongest to weakest: a request may ask for the account's level or a weaker one. */
typedef enum sql_consistency {
    SQL_STRONG,
    SQL_BOUNDED_STALENESS,
    SQL_SESSION,
    SQL_CONSISTENT_PREFIX,
    SQL_EVENTUAL,
    SQL_CONSISTENCY_COUNT
} sql_consistency;

extern const char *const sql_consistency_names[SQL_CONSISTENCY_COUNT];
bool sql_consistency_parse(slice word, sql_consistency *level_out);

typedef struct sql_options {
    account *account;
    const access_keys *keys;   /* outlives the front */
    const access_aad *aad;     /* NULL: Entra ID tokens are not accepted; outlives the front */
    access_attempts *attempts; /* outlives the front */
    sql_consistency consistency;
    uint32_t token_seconds_min; /* the shortest lifetime that a request may set for a resource token; 0: the service's */
    net_server *server;
    script_pool *scripts; /* stopped before the account, closed after the server */
    faults *faults;       /* NULL: fault injection is off; outlives the front */

    /* Handler for paths that are not under /dbs, and for `/` if a browser asks for a page; returns true if it answers the request. It gets
     * upgrades to WebSockets too (net/websocket.h). NULL: none. The request's fields are those of api/sql/fields.h. */
    bool (*extra_handler)(void *context, http_request *request);
    void *extra_context;
} sql_options;

/* For extra_handler: checks the signature of a request that names no resource (type and link are empty). Resource tokens are rejected. */
MUST_CHECK err sql_check_signature(op *o, const access_ring *ring, const http_request *request, access_key *key_out);
slice sql_authorization_of(const http_request *request);           /* the authorization field; p NULL if absent */
slice sql_field_of(const http_request *request, const char *name); /* a field of api/sql/fields.h by its text; p NULL if absent */

sql_front *sql_open(const sql_options *options);
const http_front *sql_http(const sql_front *front);        /* pass this to net_listen */
void sql_set_direct_port(sql_front *front, uint16_t port); /* port of direct mode. Call before net_run; not called: direct mode is off */
void sql_close(sql_front *front);
