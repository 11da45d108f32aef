/* serve_settings.h — the settings of `tesela serve` from flags and environment variables, checked before anything is opened. */
#pragma once

#include "access/aad.h"
#include "access/keys.h"
#include "account/account.h"
#include "api/mongo/mongo.h"
#include "api/sql/sql.h"
#include "tool/options.h"

#define SERVE_MEMORY_FOR_REQUESTS_MIN ((uint64_t)64 << 20) /* loops keep some buffers allocated; with less, these would take most of it */

/* One port for each protocol. */
typedef enum port_of { PORT_SQL, PORT_DIRECT, PORT_MONGO, PORT_CASSANDRA, PORT_GREMLIN, PORT_TABLE, PORTS } port_of;

typedef struct serve_settings {
    int ports[PORTS]; /* below 0: off */
    account_rules rules;
    uint64_t threads, cache, store_log, vector_memory, max_connections, per_address, least_rate, slow_seconds, unauthenticated_seconds,
        request_memory, memory_for_requests, index_tail, token_seconds_min;
    uint64_t access_log; /* log one of this many requests; 0: none */
    uint64_t slow_ms;    /* threshold of the slow-request log; 0: off */
    const char *record;  /* file of recorded requests; NULL: none */
    uint64_t record_size, record_one_of;
    bool sync, spare_loopback;
    bool loopback; /* listens only on loopback */
    sql_consistency consistency;
    mongo_surface mongo_surface;
    access_keys *keys;
    access_aad *aad; /* NULL: Entra ID tokens are not accepted */
    const char *data, *host, *key_file, *allow_host, *tls_cert, *tls_key, *tls_names, *script_worker, *durability; /* as given */
    bool help, version;
} serve_settings;

enum { SERVE_OPTIONS = 59 };
extern const tool_option serve_options[SERVE_OPTIONS];

/* Call take_flags first; then, unless --help or --version was given, read, which checks the values. Both print what is wrong and return
 * false on an error. Close the keys in every case. */
bool serve_settings_take_flags(serve_settings *s, int argc, char **argv);
bool serve_settings_read(serve_settings *s);
