/* sql.h — the SQL (core) API of Cosmos DB over HTTP: the front end that the official SDKs talk to.
 *
 * It decodes requests, checks signatures, calls the core and encodes answers. It touches no store, knows no layout, computes no charge. */
#pragma once

#include "access/attempts.h"
#include "access/keys.h"
#include "account/account.h"
#include "account/faults.h"
#include "net/server.h"
#include "script/pool.h"

typedef struct sql_front sql_front;

/* From strongest to weakest: a request may ask for the account's level or one after it. */
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
    access_attempts *attempts; /* likewise */
    sql_consistency consistency;
    uint32_t token_seconds_min; /* the shortest life that a resource token may be asked for; 0: the service's */
    net_server *server;
    script_pool *scripts; /* stopped before the account, closed after the server */
    faults *faults;       /* NULL: there are none, ever; outlives the front */

    /* What else the port serves: asked about paths that are not under /dbs. True: it answers the request. NULL: nothing. The request's
     * fields are those of api/sql/fields.h. */
    bool (*extra_handler)(void *context, http_request *request);
    void *extra_context;
} sql_options;

/* For those beside: checks the signature of a request that names no resource (type and link are empty), and takes no resource tokens. */
MUST_CHECK err sql_check_signature(op *o, const access_ring *ring, const http_request *request, access_key *key_out);
slice sql_authorization_of(const http_request *request); /* the field; p NULL: none */

sql_front *sql_open(const sql_options *options);
const http_front *sql_http(const sql_front *front); /* what net_listen takes */
void sql_close(sql_front *front);
