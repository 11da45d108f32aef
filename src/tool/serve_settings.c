#include "tool/serve_settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "net/guard.h"
#include "tool/environment.h"

/* The texts as given; serve_settings_read parses them. */
static struct {
    const char *data, *host, *sql_port, *direct_port, *mongo_port, *cassandra_port, *gremlin_port, *table_port;
    const char *mongo_surface;
    const char *key, *secondary_key, *read_only_key, *secondary_read_only_key, *key_file;
    const char *allow_well_known_key, *allow_host;
    const char *aad_issuer, *aad_audience, *aad_keys, *aad_roles, *aad_emulator;
    const char *durability, *consistency, *partition_max_storage, *partition_max_throughput, *partition_initial_throughput;
    const char *logical_partition_max_storage;
    const char *fixed_container_max_storage, *throttling, *burst_capacity, *throughput_shares, *merges, *serverless;
    const char *tls_cert, *tls_key, *threads, *cache, *store_log, *vector_memory, *max_connections, *max_connections_per_address,
        *least_rate, *slow_seconds, *unauthenticated_seconds, *request_memory, *memory_for_requests, *index_tail, *token_seconds_min,
        *script_worker, *log_level, *access_log, *slow_ms, *record, *record_size, *record_one_of, *page_ms, *tls_names, *help, *version;
} given = {
    .data = "tesela-data",
    .host = "localhost",
    .sql_port = "8081",
    .mongo_surface = "full",
    .durability = "full",
    .consistency = "Session",
    .partition_max_storage = "50GB",
    .partition_max_throughput = "10000",
    .partition_initial_throughput = "6000",
    .logical_partition_max_storage = "20GB",
    .fixed_container_max_storage = "10GB",
    .throttling = "on",
    .throughput_shares = "equal",
    .merges = "auto",
    .threads = "0",
    .cache = "0",
    .store_log = "128MB",
    .vector_memory = "0",
    .max_connections = "10000",
    .max_connections_per_address = "auto",
    .least_rate = "4KB",
    .slow_seconds = "30",
    .unauthenticated_seconds = "10",
    .request_memory = "128MB",
    .memory_for_requests = "0",
    .token_seconds_min = "600",
    .page_ms = "5000",
    .index_tail = "0",
    .log_level = "info",
    .access_log = "off",
    .record_size = "64MB",
    .record_one_of = "1",
    .slow_ms = "off",
};

const tool_option serve_options[SERVE_OPTIONS] = {
    {"data", "DIR", "the data folder; made if it is not there", &given.data, false},
    {"host", "HOST", "address to listen on; localhost means 127.0.0.1 and ::1", &given.host, false},
    {"sql-port", "PORT", "SQL API, http and https; 0 picks a free port, off closes it", &given.sql_port, false},
    {"direct-port", "PORT",
     "direct mode of the .NET and Java SDKs (rntbd); 10250 unless given, or any free port if --sql-port is 0; off closes it",
     &given.direct_port, false},
    {"mongo-port", "PORT", "MongoDB API, plain and TLS; 10255, or a free port if --sql-port is 0; off closes it", &given.mongo_port, false},
    {"mongo-surface", "WORD", "full: all commands of the MongoDB API; service: refuse what Azure's service refuses", &given.mongo_surface,
     false},
    {"cassandra-port", "PORT", "Cassandra API, plain and TLS; 10350, or a free port if --sql-port is 0; off closes it",
     &given.cassandra_port, false},
    {"gremlin-port", "PORT", "Gremlin API, plain and TLS; 8901, or a free port if --sql-port is 0; off closes it", &given.gremlin_port,
     false},
    {"table-port", "PORT", "Table API, http and https; 8902, or a free port if --sql-port is 0; off closes it", &given.table_port, false},
    {"key", "BASE64", "primary key; without it the emulator's well-known one, on loopback only", &given.key, true},
    {"secondary-key", "BASE64", "secondary key", &given.secondary_key, true},
    {"read-only-key", "BASE64", "primary read-only key", &given.read_only_key, true},
    {"secondary-read-only-key", "BASE64", "secondary read-only key", &given.secondary_read_only_key, true},
    {"key-file", "FILE", "the keys in this order, one a line (- for none), instead of the four flags above; read again on SIGHUP",
     &given.key_file, false},
    {"allow-well-known-key", NULL, "take the emulator's key from other machines too: whoever reaches the port may then do everything",
     &given.allow_well_known_key, false},
    {"allow-host", "NAMES", "further names, with commas between, that clients may call the server by while it takes the emulator's key",
     &given.allow_host, false},
    {"aad-issuer", "URL", "accept Entra ID tokens of this issuer; the next three belong to it", &given.aad_issuer, false},
    {"aad-audience", "URLS", "which tokens are for this server, with commas between", &given.aad_audience, false},
    {"aad-keys", "FILE", "the issuer's keys, a JSON Web Key Set", &given.aad_keys, false},
    {"aad-roles", "FILE", "which principal is a reader or contributor of what, a JSON array", &given.aad_roles, false},
    {"aad-emulator", NULL, "accept any well-formed Entra ID token, whoever signed it; on loopback with the emulator's key only",
     &given.aad_emulator, false},
    {"durability", "full|relaxed", "full: an answered write survives power loss; relaxed: the process's end", &given.durability, false},
    {"consistency", "LEVEL", "the account's default: Strong, BoundedStaleness, Session, ConsistentPrefix, Eventual", &given.consistency,
     false},
    {"partition-max-storage", "SIZE", "of a physical partition, when it splits", &given.partition_max_storage, false},
    {"partition-max-throughput", "RU", "RU/s of a physical partition", &given.partition_max_throughput, false},
    {"partition-initial-throughput", "RU", "RU/s that each physical partition of a new container is made for, if it has more than one",
     &given.partition_initial_throughput, false},
    {"logical-partition-max-storage", "SIZE", "of a logical partition, when it refuses writes", &given.logical_partition_max_storage,
     false},
    {"fixed-container-max-storage", "SIZE", "of a container without a partition key", &given.fixed_container_max_storage, false},
    {"throttling", "on|off", "off: nobody is refused (429) for spending more than was provisioned", &given.throttling, false},
    {"burst-capacity", NULL, "idle physical partitions save up to 5 minutes of their share", &given.burst_capacity, false},
    {"throughput-shares", "equal|follow-load", "how a container's RU/s are divided among its physical partitions", &given.throughput_shares,
     false},
    {"merges", "auto|off", "auto: physical partitions that are far from any limit become one again", &given.merges, false},
    {"serverless", NULL, "no throughput is provisioned; each physical partition gives 5,000 RU/s", &given.serverless, false},
    {"tls-cert", "FILE", "certificate chain (PEM); without it a self-signed one is made in the data folder", &given.tls_cert, false},
    {"tls-key", "FILE", "its private key (PEM)", &given.tls_key, false},
    {"tls-names", "NAMES", "further names and addresses, with commas between, that the self-signed certificate is for", &given.tls_names,
     false},
    {"threads", "N", "event loops; 0: one per processor", &given.threads, false},
    {"cache", "SIZE", "memory for items and blocks read; 0: a quarter of the machine's, at most 8GB", &given.cache, false},
    {"store-log", "SIZE", "above this size, what the store's log holds is written to tables; bounds a start after a crash",
     &given.store_log, false},
    {"vector-memory", "SIZE", "memory for graphs of vectors (diskANN), built when first asked for; 0: an eighth of the machine's",
     &given.vector_memory, false},
    {"max-connections", "N", "further ones take the place of the oldest that has not authenticated, or are refused", &given.max_connections,
     false},
    {"max-connections-per-address", "N|auto|off",
     "of an IPv4 address or IPv6 /64. auto: a quarter of all, loopback exempt; off: behind a proxy", &given.max_connections_per_address,
     false},
    {"least-rate", "SIZE", "per second, at which a client must send a body and read an answer, after 30 s; 0: any", &given.least_rate,
     false},
    {"memory-for-requests", "SIZE", "of all requests and answers together; 0: a quarter of the machine's, at most 512MB",
     &given.memory_for_requests, false},
    {"slow-seconds", "N", NULL, &given.slow_seconds, false},                       /* net_options.body_timeout_ms, for tests */
    {"unauthenticated-seconds", "N", NULL, &given.unauthenticated_seconds, false}, /* net_options.untrusted_timeout_ms, for tests */
    {"request-memory", "SIZE", "that one request may take while it is served; a query that needs more is refused", &given.request_memory,
     false},
    {"page-ms", "MS", "time limit of one page of a query or feed; a query that needs more goes on with a continuation, or ends in 408",
     &given.page_ms, false},
    {"index-tail", "SIZE", NULL, &given.index_tail, false},            /* store_options.tail_bytes, for tests */
    {"token-seconds-min", "N", NULL, &given.token_seconds_min, false}, /* resource token lifetime; below the service's 600 for tests */
    {"script-worker", "PROGRAM", NULL, &given.script_worker, false},   /* instead of tesela-script beside our own program, for tests */
    {"log-level", "LEVEL", "error, warn, info or debug", &given.log_level, false},
    {"access-log", "off|all|N", "one line for each request, or for one of N: verb, path, status, charge, time; no bodies, no keys",
     &given.access_log, false},
    {"slow-ms", "MS|off", "a line for each request that took this long or longer, with what it spent its time on", &given.slow_ms, false},
    {"record", "FILE", "queries and writes of the SQL API as JSON lines, for tesela advise; with key values and parameters", &given.record,
     false},
    {"record-size", "SIZE", "of that file and the one before it, FILE.1, together", &given.record_size, false},
    {"record-one-of", "N", "record one of this many requests", &given.record_one_of, false},
    {"help", NULL, "this text", &given.help, false},
    {"version", NULL, "the version", &given.version, false},
};

/* Says what is wrong with a setting. */
static bool __attribute__((format(printf, 1, 2))) fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "tesela: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    return false;
}

/* True for loopback addresses and "localhost", which net binds to both loopback addresses. Other names may resolve to anything. */
static bool is_loopback(const char *host) {
    struct in_addr v4;
    struct in6_addr v6;
    return strcmp(host, "localhost") == 0 || (inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127) ||
           (inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6));
}

static bool read_keys(serve_settings *s) {
    access_keys_options options_keys = {
        .given = {given.key, given.secondary_key, given.read_only_key, given.secondary_read_only_key},
        .file = given.key_file,
        .exposed = !s->loopback,
        .allow_well_known = given.allow_well_known_key != NULL,
        .scram_user = s->ports[PORT_MONGO] >= 0 ? MONGO_SCRAM_USER : NULL,
        .scram_any_user = true,
        .scram_kinds = MONGO_SCRAM_KINDS,
    };
    char why[ACCESS_KEYS_WHY_BYTES] = "";
    if (!given.key && !given.key_file && options_keys.exposed && !options_keys.allow_well_known) {
        return fail("listening on %s needs a key of your own (--key-file, or TESELA_KEY): the emulator's is known to everyone. "
                    "--allow-well-known-key takes it all the same",
                    given.host);
    }
    s->keys = access_keys_open(&options_keys, why);
    return s->keys ? true : fail("%s", why);
}

static bool check_aad(const serve_settings *s) {
    bool any = given.aad_issuer || given.aad_audience || given.aad_keys || given.aad_roles;
    bool all = given.aad_issuer && given.aad_audience && given.aad_keys && given.aad_roles;
    if (any && !all) {
        return fail("--aad-issuer, --aad-audience, --aad-keys and --aad-roles go together");
    }
    if (!given.aad_emulator) {
        return true;
    }
    if (any) {
        return fail("--aad-emulator accepts tokens of any issuer: leave --aad-issuer and its fellows out");
    }
    return s->loopback && access_keys_source(s->keys) == ACCESS_KEYS_WELL_KNOWN
               ? true
               : fail("--aad-emulator accepts any token, so it is for a server on loopback that takes the emulator's key");
}

static bool read_aad(serve_settings *s) {
    char why[ACCESS_AAD_WHY_BYTES];
    access_aad_options options_aad = {.issuer = given.aad_issuer,
                                      .audience = given.aad_audience,
                                      .keys_file = given.aad_keys,
                                      .roles_file = given.aad_roles,
                                      .any = given.aad_emulator != NULL};
    if (!check_aad(s)) {
        return false;
    }
    s->aad = given.aad_issuer || options_aad.any ? access_aad_open(&options_aad, why) : NULL;
    return s->aad || (!given.aad_issuer && !options_aad.any) ? true : fail("--aad-keys, --aad-roles: %s", why);
}

/* The text must be one of two words; the second sets the flag. */
static bool read_choice(const char *flag, const char *text, const char *first, const char *second, bool *second_out) {
    *second_out = strcmp(text, second) == 0;
    return *second_out || strcmp(text, first) == 0 ? true : fail("--%s must be %s or %s, not '%s'", flag, first, second, text);
}

static bool read_rules(account_rules *r) {
    uint64_t throughput = 0, initial = 0, page_ms = 0;
    bool good = tool_read_bytes("partition-max-storage", given.partition_max_storage, &r->range_bytes) &&
                tool_read_bytes("logical-partition-max-storage", given.logical_partition_max_storage, &r->partition_bytes) &&
                tool_read_bytes("fixed-container-max-storage", given.fixed_container_max_storage, &r->fixed_bytes) &&
                tool_read_number("partition-max-throughput", given.partition_max_throughput, 1, 1000000, &throughput) &&
                tool_read_number("partition-initial-throughput", given.partition_initial_throughput, 1, 1000000, &initial) &&
                tool_read_number("page-ms", given.page_ms, 1, 600000, &page_ms) &&
                read_choice("throttling", given.throttling, "on", "off", &r->unlimited) &&
                read_choice("throughput-shares", given.throughput_shares, "equal", "follow-load", &r->follow_load) &&
                read_choice("merges", given.merges, "auto", "off", &r->no_merges);
    r->range_throughput = (uint32_t)throughput;
    r->initial_range_throughput = (uint32_t)initial;
    r->page_ms = (uint32_t)page_ms;
    r->burst = given.burst_capacity != NULL;
    r->serverless = given.serverless != NULL;
    return good;
}

static bool read_per_address(serve_settings *s) {
    const char *text = given.max_connections_per_address;
    s->spare_loopback = strcmp(text, "auto") == 0;
    s->per_address = s->spare_loopback ? (s->max_connections + 3) / 4 : 0;
    return s->spare_loopback || strcmp(text, "off") == 0 ||
           tool_read_number("max-connections-per-address", text, 1, 1000000, &s->per_address);
}

static bool check_net(const serve_settings *s) {
    if (s->memory_for_requests && s->memory_for_requests < SERVE_MEMORY_FOR_REQUESTS_MIN) {
        return fail("--memory-for-requests must be 0 or at least 64MB, not '%s'", given.memory_for_requests);
    }
    return s->least_rate <= 1 << 30 ? true : fail("--least-rate must be at most 1GB, not '%s'", given.least_rate);
}

static bool read_net(serve_settings *s) {
    return tool_read_number("max-connections", given.max_connections, 1, 1000000, &s->max_connections) && read_per_address(s) &&
           tool_read_bytes("least-rate", given.least_rate, &s->least_rate) &&
           tool_read_number("slow-seconds", given.slow_seconds, 1, 3600, &s->slow_seconds) &&
           tool_read_number("unauthenticated-seconds", given.unauthenticated_seconds, 1, 3600, &s->unauthenticated_seconds) &&
           tool_read_bytes("request-memory", given.request_memory, &s->request_memory) &&
           tool_read_bytes("memory-for-requests", given.memory_for_requests, &s->memory_for_requests) && check_net(s);
}

static bool read_limits(serve_settings *s) {
    return read_rules(&s->rules) && tool_read_number("threads", given.threads, 0, 1024, &s->threads) &&
           tool_read_bytes("cache", given.cache, &s->cache) && tool_read_bytes("store-log", given.store_log, &s->store_log) &&
           tool_read_bytes("vector-memory", given.vector_memory, &s->vector_memory) &&
           tool_read_bytes("index-tail", given.index_tail, &s->index_tail) &&
           tool_read_number("token-seconds-min", given.token_seconds_min, 1, 86400, &s->token_seconds_min) && read_net(s);
}

/* ---- ports ---- */

typedef struct port_flag {
    const char *flag, **given;
    const char *usual; /* the default */
} port_flag;

static const port_flag port_flags[PORTS] = {
    [PORT_SQL] = {"sql-port", &given.sql_port, "8081"},
    [PORT_DIRECT] = {"direct-port", &given.direct_port, "10250"},
    [PORT_MONGO] = {"mongo-port", &given.mongo_port, "10255"},
    [PORT_CASSANDRA] = {"cassandra-port", &given.cassandra_port, "10350"},
    [PORT_GREMLIN] = {"gremlin-port", &given.gremlin_port, "8901"},
    [PORT_TABLE] = {"table-port", &given.table_port, "8902"},
};

static bool is_given(const char *text, const char *word) {
    return text && strcmp(text, word) == 0;
}

/* A server whose SQL port is picked by the system, as in a test suite, must not collide with another one on any port. So the ports that are
 * not given are picked too. Direct mode is a part of the SQL API, and is off with it. */
static const char *port_text(const port_flag *p) {
    bool off = p->given == &given.direct_port && is_given(given.sql_port, "off");
    return *p->given ? *p->given : off ? "off" : is_given(given.sql_port, "0") ? "0" : p->usual;
}

static bool read_ports(serve_settings *s) {
    bool listens = false;
    if (is_given(given.sql_port, "off") && given.direct_port && !is_given(given.direct_port, "off")) {
        return fail("--direct-port needs --sql-port: clients find it by the SQL API");
    }
    for (unsigned i = 0; i < PORTS; i++) {
        const port_flag *p = &port_flags[i];
        if (!tool_read_port(p->flag, port_text(p), &s->ports[i])) {
            return false;
        }
        listens = listens || s->ports[i] >= 0;
    }
    return listens ? true : fail("all ports are off, which leaves nothing to listen on: give --sql-port a port, or 0 for any free one");
}

/* ---- logs ---- */

static bool read_logs(serve_settings *s) {
    log_level level;
    if (log_level_parse(given.log_level, &level) != 0) {
        return fail("--log-level must be error, warn, info or debug, not '%s'", given.log_level);
    }
    log_set_level(level);
    bool all = strcmp(given.access_log, "all") == 0;
    s->access_log = all;
    if (!all && strcmp(given.access_log, "off") != 0 && !tool_read_number("access-log", given.access_log, 1, 1000000, &s->access_log)) {
        return false;
    }
    s->record = given.record;
    if (!tool_read_bytes("record-size", given.record_size, &s->record_size) ||
        !tool_read_number("record-one-of", given.record_one_of, 1, 1000000, &s->record_one_of)) {
        return false;
    }
    return strcmp(given.slow_ms, "off") == 0 || tool_read_number("slow-ms", given.slow_ms, 1, 3600000, &s->slow_ms);
}

/* ---- TLS ---- */

static bool check_file(const char *flag, const char *path) {
    struct stat is;
    if (!path) {
        return true;
    }
    if (stat(path, &is) != 0 || access(path, R_OK) != 0) {
        return fail("--%s %s cannot be read: %s", flag, path, strerror(errno));
    }
    return S_ISDIR(is.st_mode) ? fail("--%s %s is a folder, not a PEM file", flag, path) : true;
}

static bool check_tls(void) {
    if (!given.tls_cert != !given.tls_key) {
        return fail("--tls-cert and --tls-key go together");
    }
    if (given.tls_names && given.tls_cert) {
        return fail("--tls-names are for the self-signed certificate; --tls-cert has its own");
    }
    if (given.tls_names && !net_guard_list_good(slice_str(given.tls_names))) {
        return fail("--tls-names must be names or addresses without ports, with commas between, not '%s'", given.tls_names);
    }
    return check_file("tls-cert", given.tls_cert) && check_file("tls-key", given.tls_key);
}

/* ---- all settings ---- */

bool serve_settings_read(serve_settings *s) {
    if (!read_logs(s)) {
        return false;
    }
    tool_environment_check(serve_options, SERVE_OPTIONS);
    s->sync = strcmp(given.durability, "full") == 0;
    if (!s->sync && strcmp(given.durability, "relaxed") != 0) {
        return fail("--durability must be full or relaxed, not '%s'", given.durability);
    }
    if (!sql_consistency_parse(slice_str(given.consistency), &s->consistency)) {
        return fail("--consistency must be Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual, not '%s'", given.consistency);
    }
    if (given.allow_host && !net_guard_list_good(slice_str(given.allow_host))) {
        return fail("--allow-host must be names or addresses without ports, with commas between, not '%s'", given.allow_host);
    }
    bool service;
    if (!read_choice("mongo-surface", given.mongo_surface, "full", "service", &service)) {
        return false;
    }
    s->mongo_surface = service ? MONGO_SERVICE : MONGO_FULL;
    return check_tls() && read_ports(s) && read_limits(s) && read_keys(s) && read_aad(s);
}

bool serve_settings_take_flags(serve_settings *s, int argc, char **argv) {
    if (!tool_options_read(serve_options, SERVE_OPTIONS, argc, argv, "serve")) {
        return false;
    }
    *s = (serve_settings){
        .data = given.data,
        .host = given.host,
        .key_file = given.key_file,
        .allow_host = given.allow_host,
        .tls_cert = given.tls_cert,
        .tls_key = given.tls_key,
        .tls_names = given.tls_names,
        .script_worker = given.script_worker,
        .durability = given.durability,
        .loopback = is_loopback(given.host),
        .help = given.help != NULL,
        .version = given.version != NULL,
    };
    return true;
}
