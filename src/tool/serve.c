#include "tool/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "account/scripts.h"
#include "api/admin/admin.h"
#include "api/sql/sql.h"
#include "base/log.h"
#include "base/thread.h"
#include "net/guard.h"
#include "tool/machine.h"
#include "tool/options.h"

enum { TICK_MS = 20, WHY_BYTES = 1024 };

#define MEMORY_FOR_REQUESTS_MIN ((uint64_t)64 << 20) /* loops keep some buffers at hand; below this they would be most of it */

/* As given; read into `settings` below. */
static struct {
    const char *data, *host, *sql_port, *mongo_port, *cassandra_port, *gremlin_port, *table_port;
    const char *key, *secondary_key, *read_only_key, *secondary_read_only_key, *key_file;
    const char *allow_well_known_key, *allow_host;
    const char *durability, *consistency, *partition_max_storage, *partition_max_throughput, *logical_partition_max_storage;
    const char *fixed_container_max_storage, *throttling, *burst_capacity, *throughput_shares, *merges, *serverless;
    const char *tls_cert, *tls_key, *threads, *cache, *vector_memory, *max_connections, *max_connections_per_address, *least_rate,
        *slow_seconds, *unauthenticated_seconds, *request_memory, *memory_for_requests, *index_tail, *token_seconds_min, *script_worker,
        *log_level, *help, *version;
} given = {
    .data = "tesela-data",
    .host = "localhost",
    .sql_port = "8081",
    .mongo_port = "10255",
    .cassandra_port = "10350",
    .gremlin_port = "8901",
    .table_port = "8902",
    .durability = "full",
    .consistency = "Session",
    .partition_max_storage = "50GB",
    .partition_max_throughput = "10000",
    .logical_partition_max_storage = "20GB",
    .fixed_container_max_storage = "10GB",
    .throttling = "on",
    .throughput_shares = "equal",
    .merges = "auto",
    .threads = "0",
    .cache = "0",
    .vector_memory = "0",
    .max_connections = "10000",
    .max_connections_per_address = "auto",
    .least_rate = "4KB",
    .slow_seconds = "30",
    .unauthenticated_seconds = "10",
    .request_memory = "128MB",
    .memory_for_requests = "0",
    .token_seconds_min = "600",
    .index_tail = "0",
    .log_level = "info",
};

static const tool_option options[] = {
    {"data", "DIR", "the data folder; made if it is not there", &given.data, false},
    {"host", "HOST", "address to listen on; localhost means 127.0.0.1 and ::1", &given.host, false},
    {"sql-port", "PORT", "SQL API, http and https; 0 picks a free port, off closes it", &given.sql_port, false},
    {"mongo-port", "PORT", "MongoDB API (to come)", &given.mongo_port, false},
    {"cassandra-port", "PORT", "Cassandra API (to come)", &given.cassandra_port, false},
    {"gremlin-port", "PORT", "Gremlin API (to come)", &given.gremlin_port, false},
    {"table-port", "PORT", "Table API (to come)", &given.table_port, false},
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
    {"durability", "full|relaxed", "full: an answered write survives power loss; relaxed: the process's end", &given.durability, false},
    {"consistency", "LEVEL", "the account's default: Strong, BoundedStaleness, Session, ConsistentPrefix, Eventual", &given.consistency,
     false},
    {"partition-max-storage", "SIZE", "of a physical partition, when it splits", &given.partition_max_storage, false},
    {"partition-max-throughput", "RU", "RU/s of a physical partition", &given.partition_max_throughput, false},
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
    {"threads", "N", "event loops; 0: one per processor", &given.threads, false},
    {"cache", "SIZE", "memory for items and blocks read; 0: a quarter of the machine's, at most 8GB", &given.cache, false},
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
    {"index-tail", "SIZE", NULL, &given.index_tail, false},            /* store_options.tail_bytes, for tests */
    {"token-seconds-min", "N", NULL, &given.token_seconds_min, false}, /* of a resource token; below the service's 600 for tests */
    {"script-worker", "PROGRAM", NULL, &given.script_worker, false},   /* instead of tesela-script beside our own program, for tests */
    {"log-level", "LEVEL", "error, warn, info or debug", &given.log_level, false},
    {"help", NULL, "this text", &given.help, false},
    {"version", NULL, "the version", &given.version, false},
};

enum { OPTIONS = sizeof options / sizeof *options };

typedef struct settings {
    int sql_port;
    account_rules rules;
    uint64_t threads, cache, vector_memory, max_connections, per_address, least_rate, slow_seconds, unauthenticated_seconds, request_memory,
        memory_for_requests, index_tail, token_seconds_min;
    bool sync, spare_loopback;
    sql_consistency consistency;
    access_keys *keys;
} settings;

typedef struct server {
    settings settings;
    store *store;
    account *account;
    net_server *net;
    faults *faults;
    access_attempts *attempts;
    script_pool *scripts;
    admin *admin;
    sql_front *sql;
    uint16_t sql_port;
} server;

static server *running; /* for the signal handlers */

static void help(void) {
    printf("usage: tesela serve [options]\n\nServes a data folder to applications written for Azure Cosmos DB. Prints one line of JSON on "
           "standard output\n"
           "when it is ready; SIGTERM or SIGINT finish what is in flight and stop it.\n\n");
    tool_options_help(options, OPTIONS);
    printf("\nEvery option is also an environment variable: TESELA_SQL_PORT=9000 is --sql-port 9000.\n\n"
           "examples:\n"
           "  tesela serve                                        # ./tesela-data on localhost:8081\n"
           "  tesela serve --data /var/lib/tesela --host 0.0.0.0 --key-file /etc/tesela/keys\n"
           "  TESELA_KEY=$(openssl rand -base64 64 | tr -d '\\n') tesela serve --host 0.0.0.0\n"
           "  tesela serve --data $(mktemp -d) --sql-port 0 --durability relaxed   # for a test suite\n"
           "  tesela serve --partition-max-throughput 400         # several physical partitions with little throughput\n"
           "  tesela serve --partition-max-storage 1MB --logical-partition-max-storage 400KB   # see splits with little data\n"
           "  tesela serve --throttling off                       # never 429\n");
}

/* ---- reading the settings ---- */

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

/* An address or "localhost", which net takes to mean both loopback addresses; any other name may lead anywhere. */
static bool is_loopback(const char *host) {
    struct in_addr v4;
    struct in6_addr v6;
    return strcmp(host, "localhost") == 0 || (inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127) ||
           (inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6));
}

static bool read_keys(settings *s) {
    access_keys_options options_keys = {
        .given = {given.key, given.secondary_key, given.read_only_key, given.secondary_read_only_key},
        .file = given.key_file,
        .exposed = !is_loopback(given.host),
        .allow_well_known = given.allow_well_known_key != NULL,
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

/* One of two words; the second sets the flag. */
static bool read_choice(const char *flag, const char *text, const char *first, const char *second, bool *second_out) {
    *second_out = strcmp(text, second) == 0;
    return *second_out || strcmp(text, first) == 0 ? true : fail("--%s must be %s or %s, not '%s'", flag, first, second, text);
}

static bool read_rules(account_rules *r) {
    uint64_t throughput = 0;
    bool good = tool_read_bytes("partition-max-storage", given.partition_max_storage, &r->range_bytes) &&
                tool_read_bytes("logical-partition-max-storage", given.logical_partition_max_storage, &r->partition_bytes) &&
                tool_read_bytes("fixed-container-max-storage", given.fixed_container_max_storage, &r->fixed_bytes) &&
                tool_read_number("partition-max-throughput", given.partition_max_throughput, 1, 1000000, &throughput) &&
                read_choice("throttling", given.throttling, "on", "off", &r->unlimited) &&
                read_choice("throughput-shares", given.throughput_shares, "equal", "follow-load", &r->follow_load) &&
                read_choice("merges", given.merges, "auto", "off", &r->no_merges);
    r->range_throughput = (uint32_t)throughput;
    r->burst = given.burst_capacity != NULL;
    r->serverless = given.serverless != NULL;
    return good;
}

static bool read_per_address(settings *s) {
    const char *text = given.max_connections_per_address;
    s->spare_loopback = strcmp(text, "auto") == 0;
    s->per_address = s->spare_loopback ? (s->max_connections + 3) / 4 : 0;
    return s->spare_loopback || strcmp(text, "off") == 0 ||
           tool_read_number("max-connections-per-address", text, 1, 1000000, &s->per_address);
}

static bool check_net(const settings *s) {
    if (s->memory_for_requests && s->memory_for_requests < MEMORY_FOR_REQUESTS_MIN) {
        return fail("--memory-for-requests must be 0 or at least 64MB, not '%s'", given.memory_for_requests);
    }
    return s->least_rate <= 1 << 30 ? true : fail("--least-rate must be at most 1GB, not '%s'", given.least_rate);
}

static bool read_net(settings *s) {
    return tool_read_number("max-connections", given.max_connections, 1, 1000000, &s->max_connections) && read_per_address(s) &&
           tool_read_bytes("least-rate", given.least_rate, &s->least_rate) &&
           tool_read_number("slow-seconds", given.slow_seconds, 1, 3600, &s->slow_seconds) &&
           tool_read_number("unauthenticated-seconds", given.unauthenticated_seconds, 1, 3600, &s->unauthenticated_seconds) &&
           tool_read_bytes("request-memory", given.request_memory, &s->request_memory) &&
           tool_read_bytes("memory-for-requests", given.memory_for_requests, &s->memory_for_requests) && check_net(s);
}

static bool read_limits(settings *s) {
    return read_rules(&s->rules) && tool_read_number("threads", given.threads, 0, 1024, &s->threads) &&
           tool_read_bytes("cache", given.cache, &s->cache) && tool_read_bytes("vector-memory", given.vector_memory, &s->vector_memory) &&
           tool_read_bytes("index-tail", given.index_tail, &s->index_tail) &&
           tool_read_number("token-seconds-min", given.token_seconds_min, 1, 86400, &s->token_seconds_min) && read_net(s);
}

static bool read_settings(settings *s) {
    log_level level;
    if (log_level_parse(given.log_level, &level) != 0) {
        return fail("--log-level must be error, warn, info or debug, not '%s'", given.log_level);
    }
    log_set_level(level);
    s->sync = strcmp(given.durability, "full") == 0;
    if (!s->sync && strcmp(given.durability, "relaxed") != 0) {
        return fail("--durability must be full or relaxed, not '%s'", given.durability);
    }
    if (!sql_consistency_parse(slice_str(given.consistency), &s->consistency)) {
        return fail("--consistency must be Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual, not '%s'", given.consistency);
    }
    if (!given.tls_cert != !given.tls_key) {
        return fail("--tls-cert and --tls-key go together");
    }
    if (given.allow_host && !net_guard_list_good(slice_str(given.allow_host))) {
        return fail("--allow-host must be names or addresses without ports, with commas between, not '%s'", given.allow_host);
    }
    int unused;
    return tool_read_port("sql-port", given.sql_port, &s->sql_port) && tool_read_port("mongo-port", given.mongo_port, &unused) &&
           tool_read_port("cassandra-port", given.cassandra_port, &unused) && tool_read_port("gremlin-port", given.gremlin_port, &unused) &&
           tool_read_port("table-port", given.table_port, &unused) && read_limits(s) && read_keys(s);
}

/* ---- starting and stopping ---- */

static void on_signal(int number) {
    (void)number;
    net_stop(running->net);
}

static void on_hangup(int number) {
    (void)number;
    access_keys_reload_soon(running->settings.keys);
}

/* A server with a key file is no child of a terminal that may hang up: the signal asks it to read the file again. */
static void take_signals(server *s) {
    struct sigaction stop = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN}, again = {.sa_handler = on_hangup};
    running = s;
    if (given.key_file) {
        sigaction(SIGHUP, &again, NULL);
    }
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

static uint64_t default_cache_bytes(void) {
    uint64_t quarter = machine_memory_bytes() / 4;
    uint64_t most = (uint64_t)8 << 30, least = (uint64_t)64 << 20;
    return quarter > most ? most : quarter < least ? least : quarter;
}

/* Half of the cache is for items as they are read, half for the store's blocks. */
static bool open_core(server *s, char *why) {
    uint64_t half = (s->settings.cache ? s->settings.cache : default_cache_bytes()) / 2;
    store_options so = {.sync = s->settings.sync, .cache_bytes = half, .dir = given.data, .tail_bytes = (size_t)s->settings.index_tail};
    if (store_open_rocks(&so, &s->store, why, WHY_BYTES) != OK) {
        return false;
    }
    account_options ao = {
        .store = s->store,
        .clock = &clock_system,
        .item_cache_bytes = half,
        .vector_bytes = s->settings.vector_memory ? s->settings.vector_memory : machine_memory_bytes() / 8,
        .rules = s->settings.rules,
        .background = true,
    };
    return account_open(&ao, &s->account, why, WHY_BYTES) == OK;
}

/* With the key that everybody knows, on this machine alone, nobody is asked for it. */
static void open_admin(server *s) {
    admin_options options_admin = {
        .account = s->account,
        .faults = s->faults,
        .keys = s->settings.keys,
        .attempts = s->attempts,
        .server = s->net,
        .scripts = s->scripts,
        .local = is_loopback(given.host),
        .authorization = sql_authorization_of,
        .check_signature = sql_check_beside,
    };
    s->admin = admin_open(&options_admin);
}

static size_t default_request_bytes(void) {
    uint64_t quarter = machine_memory_bytes() / 4;
    uint64_t most = (uint64_t)512 << 20;
    return (size_t)(quarter > most ? most : quarter < MEMORY_FOR_REQUESTS_MIN ? MEMORY_FOR_REQUESTS_MIN : quarter);
}

static net_options net_options_of(const settings *s) {
    net_options no = net_defaults;
    no.loops = (unsigned)s->threads;
    no.connections_max = (unsigned)s->max_connections;
    no.per_address_max = (unsigned)s->per_address;
    no.spare_loopback = s->spare_loopback;
    no.least_rate = (unsigned)s->least_rate;
    no.body_timeout_ms = (unsigned)s->slow_seconds * 1000;
    no.untrusted_timeout_ms = (unsigned)s->unauthenticated_seconds * 1000;
    no.request_memory_max = (size_t)s->request_memory;
    no.memory_max = s->memory_for_requests ? (size_t)s->memory_for_requests : default_request_bytes();
    no.hosts = given.allow_host;
    return no;
}

static bool open_net(server *s, char *why) {
    net_options no = net_options_of(&s->settings);
    if (net_open(&no, &s->net) != OK) {
        snprintf(why, WHY_BYTES, "the event loops cannot be made: %s", strerror(errno));
        return false;
    }
    if (net_tls(s->net, given.data, given.tls_cert, given.tls_key, why, WHY_BYTES) != OK) {
        return false;
    }
    s->faults = faults_new();
    s->attempts = access_attempts_new(&clock_system);
    s->scripts = script_pool_open(&(script_options){.program = given.script_worker});
    if (account_has_scripts(s->account)) {
        script_pool_warm(s->scripts);
    }
    access_keys_serve(s->settings.keys, s->net);
    open_admin(s);
    sql_options options_sql = {
        .account = s->account,
        .keys = s->settings.keys,
        .attempts = s->attempts,
        .consistency = s->settings.consistency,
        .token_seconds_min = (uint32_t)s->settings.token_seconds_min,
        .server = s->net,
        .faults = s->faults,
        .scripts = s->scripts,
        .beside = admin_handle,
        .beside_context = s->admin,
    };
    s->sql = sql_open(&options_sql);
    return s->settings.sql_port < 0 ||
           net_listen(s->net, given.host, (uint16_t)s->settings.sql_port, sql_http(s->sql), &s->sql_port, why, WHY_BYTES) == OK;
}

static void *prepare_tls(void *unused) {
    net_tls_prepare();
    return unused;
}

/* Opening the store and loading OpenSSL take most of the start: side by side. */
static bool open_all(server *s, char *why) {
    pthread_t beside;
    bool started = thread_start(&beside, "tls", prepare_tls, NULL);
    bool opened = open_core(s, why);
    if (started) {
        pthread_join(beside, NULL);
    }
    return opened && open_net(s, why);
}

static void tick(void *context) {
    server *s = context;
    account_tick(s->account);
    access_keys_tick(s->settings.keys);
    access_attempts_tick(s->attempts);
}

static void say_ready(const server *s) {
    const char *host = strcmp(given.host, "localhost") == 0 ? "127.0.0.1" : given.host;
    bool v6 = strchr(host, ':') != NULL;
    printf("{\"ready\":true");
    if (s->settings.sql_port >= 0) {
        printf(",\"sql\":\"%s%s%s:%u\"", v6 ? "[" : "", host, v6 ? "]" : "", s->sql_port);
    }
    printf(",\"pid\":%d}\n", (int)getpid());
    fflush(stdout);
    log_info("serve", "ready", "version=" TESELA_VERSION " host=%s sql_port=%u data=%s durability=%s", given.host, s->sql_port, given.data,
             given.durability);
}

/* In this order: splits by hand and scripts end; what the committer still has is written and its answers posted; the connections send them;
 * then the rest. */
static void close_all(server *s) {
    if (s->admin) {
        admin_stop(s->admin);
    }
    if (s->scripts) {
        script_pool_stop(s->scripts);
    }
    if (s->account) {
        account_stop(s->account);
    }
    if (s->net) {
        net_close(s->net);
    }
    if (s->sql) {
        sql_close(s->sql);
    }
    if (s->admin) {
        admin_close(s->admin);
    }
    faults_free(s->faults);
    access_attempts_free(s->attempts);
    if (s->scripts) {
        script_pool_close(s->scripts);
    }
    if (s->account) {
        account_close(s->account);
    }
    if (s->store) {
        store_close(s->store);
    }
    access_keys_close(s->settings.keys);
}

static int run(server *s) {
    char why[WHY_BYTES] = "";
    if (!open_all(s, why)) {
        fprintf(stderr, "tesela: %s\n", why);
        return 1;
    }
    net_every(s->net, TICK_MS, tick, s);
    take_signals(s);
    say_ready(s);
    net_run(s->net);
    log_info("serve", "stopped", "data=%s", given.data);
    return 0;
}

int tool_serve(int argc, char **argv) {
    server s = {0};
    if (!tool_options_read(options, OPTIONS, argc, argv, "serve")) {
        return 2;
    }
    if (given.help || given.version) {
        given.help ? help() : (void)printf("tesela " TESELA_VERSION "\n");
        return 0;
    }
    if (!read_settings(&s.settings)) {
        access_keys_close(s.settings.keys);
        return 2;
    }
    int status = run(&s);
    close_all(&s);
    return status;
}
