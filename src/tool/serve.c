#include "tool/serve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "account/scripts.h"
#include "api/admin/admin.h"
#include "api/cassandra/cassandra.h"
#include "api/direct/direct.h"
#include "api/gremlin/gremlin.h"
#include "api/mongo/mongo.h"
#include "api/portal/portal.h"
#include "api/table/table.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/recording.h"
#include "base/request_log.h"
#include "base/thread.h"
#include "store/folder.h"
#include "tool/machine.h"
#include "tool/ready.h"
#include "tool/serve_settings.h"

enum { TICK_MS = 20, WHY_BYTES = 1024 };

typedef struct server {
    serve_settings settings;
    store *store;
    store_folder_new made; /* which parts of the data folder are new */
    account *account;
    net_server *net;
    faults *faults;
    access_attempts *attempts;
    script_pool *scripts;
    admin *admin;
    sql_front *sql;
    direct_front *direct;
    table_front *table;
    mongo_front *mongo;
    cass_front *cassandra;
    gremlin_front *gremlin;
} server;

static server *running; /* for the signal handlers */

/* ---- starting and stopping ---- */

/* Only the first signal counts: the loops end because of it, and later ones may come while everything closes. */
static void on_signal(int number) {
    static atomic_flag asked = ATOMIC_FLAG_INIT;
    (void)number;
    if (!atomic_flag_test_and_set(&asked)) {
        net_stop(running->net);
    }
}

static void on_hangup(int number) {
    (void)number;
    access_keys_reload_soon(running->settings.keys);
}

/* With a key file SIGHUP reloads it. Without one SIGHUP keeps its default action, to end when the terminal hangs up. */
static void take_signals(server *s) {
    struct sigaction stop = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN}, again = {.sa_handler = on_hangup};
    running = s;
    if (s->settings.key_file) {
        sigaction(SIGHUP, &again, NULL);
    }
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

/* Before the keys are closed. */
static void ignore_hangup(void) {
    sigaction(SIGHUP, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
}

static uint64_t default_cache_bytes(void) {
    uint64_t quarter = machine_memory_bytes() / 4;
    uint64_t most = (uint64_t)8 << 30, least = (uint64_t)64 << 20;
    return quarter > most ? most : quarter < least ? least : quarter;
}

/* Adds what to do about unreadable data, which cannot be repaired. */
static void add_remedy(const server *s, char *why) {
    size_t n = strlen(why);
    snprintf(why + n, WHY_BYTES - n,
             ". What to do: copy the folder away, then put a backup of it in its place, or begin anew with another --data or by 'tesela "
             "reset --data %s'",
             s->settings.data);
}

/* Half of the cache is for items, half for the store's blocks. */
static bool open_core(server *s, char *why) {
    uint64_t half = (s->settings.cache ? s->settings.cache : default_cache_bytes()) / 2;
    store_options so = {.sync = s->settings.sync,
                        .cache_bytes = half,
                        .dir = s->settings.data,
                        .tail_bytes = (size_t)s->settings.index_tail,
                        .log_bytes = (size_t)s->settings.store_log,
                        .made_out = &s->made};
    err code = store_open_rocks(&so, &s->store, why, WHY_BYTES);
    if (code == E_STORE_CORRUPT) {
        add_remedy(s, why);
    }
    if (code != OK) {
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

/* Requests on the SQL API's port that are not the SQL API's. */
static bool handle_extra(void *context, http_request *request) {
    static const portal_options portal = {.field = sql_field_of};
    server *s = context;
    return portal_handle(&portal, request) || admin_handle(s->admin, request);
}

/* On loopback with the public emulator key, the admin API needs no key. */
static void open_admin(server *s) {
    admin_options options_admin = {
        .account = s->account,
        .faults = s->faults,
        .keys = s->settings.keys,
        .attempts = s->attempts,
        .server = s->net,
        .scripts = s->scripts,
        .local = s->settings.loopback,
        .authorization = sql_authorization_of,
        .check_signature = sql_check_signature,
    };
    s->admin = admin_open(&options_admin);
}

static size_t default_request_bytes(void) {
    uint64_t quarter = machine_memory_bytes() / 4;
    uint64_t most = (uint64_t)512 << 20;
    return (size_t)(quarter > most ? most : quarter < SERVE_MEMORY_FOR_REQUESTS_MIN ? SERVE_MEMORY_FOR_REQUESTS_MIN : quarter);
}

static net_options net_options_of(const serve_settings *s) {
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
    no.hosts = s->allow_host;
    no.certificate_names = s->tls_names;
    return no;
}

static bool listen_http(server *s, port_of which, const http_front *front, char *why) {
    int port = s->settings.ports[which];
    uint16_t chosen;
    return port < 0 || net_listen(s->net, s->settings.host, (uint16_t)port, front, &chosen, why, WHY_BYTES) == OK;
}

static bool listen_direct(server *s, char *why) {
    int port = s->settings.ports[PORT_DIRECT];
    uint16_t chosen;
    s->direct = direct_open(sql_http(s->sql));
    if (port < 0) {
        return true;
    }
    if (net_listen_frames(s->net, s->settings.host, (uint16_t)port, direct_frames(s->direct), &chosen, why, WHY_BYTES) != OK) {
        return false;
    }
    sql_set_direct_port(s->sql, chosen);
    return true;
}

static bool listen_mongo(server *s, char *why) {
    int port = s->settings.ports[PORT_MONGO];
    uint16_t chosen;
    mongo_options options_mongo = {
        .account = s->account,
        .keys = s->settings.keys,
        .attempts = s->attempts,
        .faults = s->faults,
        .scripts = s->scripts,
        .server = s->net,
        .surface = s->settings.mongo_surface,
    };
    s->mongo = mongo_open(&options_mongo);
    return port < 0 || net_listen_frames(s->net, s->settings.host, (uint16_t)port, mongo_frames(s->mongo), &chosen, why, WHY_BYTES) == OK;
}

static bool listen_cassandra(server *s, char *why) {
    int port = s->settings.ports[PORT_CASSANDRA];
    uint16_t chosen;
    cass_options options_cassandra = {
        .account = s->account,
        .keys = s->settings.keys,
        .attempts = s->attempts,
        .faults = s->faults,
        .scripts = s->scripts,
        .server = s->net,
    };
    s->cassandra = cass_open(&options_cassandra);
    return port < 0 ||
           net_listen_frames(s->net, s->settings.host, (uint16_t)port, cass_frames(s->cassandra), &chosen, why, WHY_BYTES) == OK;
}

static bool listen_gremlin(server *s, char *why) {
    gremlin_options options_gremlin = {
        .account = s->account,
        .keys = s->settings.keys,
        .attempts = s->attempts,
        .faults = s->faults,
        .scripts = s->scripts,
    };
    s->gremlin = gremlin_open(&options_gremlin);
    return listen_http(s, PORT_GREMLIN, gremlin_http(s->gremlin), why);
}

static bool open_net(server *s, char *why) {
    net_options no = net_options_of(&s->settings);
    if (net_open(&no, &s->net) != OK) {
        snprintf(why, WHY_BYTES, "the event loops cannot be made: %s", strerror(errno));
        return false;
    }
    if (net_tls(s->net, s->settings.data, s->settings.tls_cert, s->settings.tls_key, why, WHY_BYTES) != OK) {
        return false;
    }
    s->faults = faults_new();
    s->attempts = access_attempts_new(&clock_system);
    s->scripts = script_pool_open(&(script_options){.program = s->settings.script_worker});
    if (account_has_scripts(s->account)) {
        script_pool_warm(s->scripts);
    }
    access_keys_serve(s->settings.keys, s->net);
    open_admin(s);
    sql_options options_sql = {
        .account = s->account,
        .keys = s->settings.keys,
        .aad = s->settings.aad,
        .attempts = s->attempts,
        .consistency = s->settings.consistency,
        .token_seconds_min = (uint32_t)s->settings.token_seconds_min,
        .server = s->net,
        .faults = s->faults,
        .scripts = s->scripts,
        .extra_handler = handle_extra,
        .extra_context = s,
    };
    s->sql = sql_open(&options_sql);
    table_options options_table = {
        .account = s->account,
        .keys = s->settings.keys,
        .attempts = s->attempts,
        .faults = s->faults,
        .scripts = s->scripts,
    };
    s->table = table_open(&options_table);
    return listen_http(s, PORT_SQL, sql_http(s->sql), why) && listen_direct(s, why) &&
           listen_http(s, PORT_TABLE, table_http(s->table), why) && listen_mongo(s, why) && listen_cassandra(s, why) &&
           listen_gremlin(s, why);
}

static void *prepare_tls(void *unused) {
    net_tls_prepare();
    return unused;
}

/* Opening the store and loading OpenSSL take most of the start-up time, so they run in parallel. */
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
    mongo_tick(s->mongo);
}

static void say_ready(const server *s) {
    buf line = buf_init(BUF_NO_LIMIT);
    tool_ready_line(&line, s->settings.host, s->net, (int)getpid());
    fwrite(line.p, 1, line.n, stdout);
    fflush(stdout);
    buf_free(&line);
    log_info("serve", "ready", "version=" TESELA_VERSION " host=%s ports=%u data=%s durability=%s", s->settings.host,
             net_server_ports(s->net), s->settings.data, s->settings.durability);
}

/* Order: manual splits and scripts end; the committer writes what it has and posts the answers; the connections send them; then the rest
 * closes. */
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
    if (s->mongo) {
        mongo_stop(s->mongo);
    }
    if (s->net) {
        net_close(s->net);
    }
    if (s->direct) {
        direct_close(s->direct);
    }
    if (s->sql) {
        sql_close(s->sql);
    }
    if (s->table) {
        table_close(s->table);
    }
    if (s->mongo) {
        mongo_close(s->mongo);
    }
    if (s->cassandra) {
        cass_close(s->cassandra);
    }
    if (s->gremlin) {
        gremlin_close(s->gremlin);
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
    access_aad_close(s->settings.aad);
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
    ignore_hangup();
    log_info("serve", "stopped", "data=%s", s->settings.data);
    return 0;
}

static int run_command(int argc, char **argv) {
    server s = {0};
    if (!serve_settings_take_flags(&s.settings, argc, argv)) {
        return 2;
    }
    if (s.settings.help || s.settings.version) {
        s.settings.help ? tool_help(&tool_serve) : (void)printf("tesela " TESELA_VERSION "\n");
        return 0;
    }
    if (!serve_settings_read(&s.settings)) {
        access_keys_close(s.settings.keys);
        access_aad_close(s.settings.aad);
        return 2;
    }
    request_log_set(&(request_log_rules){.one_of = (unsigned)s.settings.access_log, .slow_us = (int64_t)s.settings.slow_ms * 1000});
    if (s.settings.record && !recording_open(s.settings.record, s.settings.record_size, (unsigned)s.settings.record_one_of)) {
        fprintf(stderr, "tesela: --record %s cannot be made: %s\n", s.settings.record, strerror(errno));
        access_keys_close(s.settings.keys);
        access_aad_close(s.settings.aad);
        return 1;
    }
    mem_return_large_blocks();
    int status = run(&s);
    close_all(&s);
    recording_close();
    if (status != 0) {
        store_folder_discard(s.settings.data, &s.made);
    }
    return status;
}

const tool_command tool_serve = {
    .name = "serve",
    .summary = "serve a data folder",
    .usage = "[options]",
    .about =
        "Serves a data folder to applications written for Azure Cosmos DB. Prints one line of JSON on standard output when it is ready;\n"
        "SIGTERM or SIGINT finish what is in flight and stop it.",
    .options = serve_options,
    .options_n = SERVE_OPTIONS,
    .notes = "Every option is also an environment variable: TESELA_SQL_PORT=9000 is --sql-port 9000.",
    .examples = "tesela serve                                        # ./tesela-data on localhost:8081\n"
                "tesela serve --data /var/lib/tesela --host 0.0.0.0 --key-file /etc/tesela/keys\n"
                "tesela serve --data $(mktemp -d) --sql-port 0 --durability relaxed   # for a test suite\n"
                "tesela serve --partition-max-throughput 400         # several physical partitions with little throughput\n"
                "tesela serve --partition-max-storage 1MB --logical-partition-max-storage 400KB   # see splits with little data\n"
                "tesela serve --throttling off                       # never 429\n"
                "tesela serve --access-log all --slow-ms 100         # every request in the log, and why some were slow",
    .run = run_command,
};
