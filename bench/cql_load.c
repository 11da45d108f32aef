/* cql_load.c — cql_load: closed loops over Cassandra's native protocol, version 4, with prepared statements.
 *
 * One thread with an epoll loop. Each connection logs in, prepares its statement, then sends an EXECUTE, waits for the whole answer and
 * sends the next. Tables of the keyspace cqlbench, which --setup makes:
 *
 *   items   1 KB rows by id            read, insert; fill loads the rows 0 … N-1
 *   wide    rows of one partition      slice: 1,000 rows from a random place; first, last: 1,000 rows from one end; fillwide loads N rows
 *
 * One line of JSON on standard output. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "data.h"
#include "histogram.h"

enum { CONNECTIONS_MAX = 1024, HEAD = 9, SLICE_ROWS = 1000, REQUEST_BYTES = 128 * 1024, ANSWER_BYTES = 64 * 1024 };
enum {
    STARTUP = 0x01,
    READY = 0x02,
    AUTHENTICATE = 0x03,
    QUERY = 0x07,
    RESULT = 0x08,
    PREPARE = 0x09,
    EXECUTE = 0x0A,
    AUTH_RESPONSE = 0x0F
};
static const char emulator_key[] = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

static struct {
    const char *mode, *key;
    uint16_t port;
    int connections;
    uint64_t items, next;
    unsigned throughput; /* of new tables; 0: the service's default */
    size_t size;
    double seconds, warm_up;
    bool setup;
} set = {.mode = "read", .key = emulator_key, .connections = 32, .items = 10000, .size = 1024, .seconds = 3, .warm_up = 0.5};

/* ---- bytes ---- */

typedef struct bytes {
    size_t n;
    char p[REQUEST_BYTES];
} bytes;

typedef struct connection {
    int fd;
    bool done;
    char *in;
    size_t in_n, in_room;
    char id[64]; /* of the prepared statement */
    size_t id_n;
    uint64_t sent_at;
} connection;

static uint64_t random_state = DATA_SEED;
static uint64_t requests, errors, answer_bytes;
static char *text; /* of a row */

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what) {
    fprintf(stderr, "cql_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void add(bytes *b, const void *p, size_t n) {
    if (b->n + n > sizeof b->p) {
        die("the request is too large");
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

static void add_byte(bytes *b, unsigned n) {
    add(b, &(char){(char)n}, 1);
}

static void add_short(bytes *b, unsigned n) {
    add_byte(b, n >> 8);
    add_byte(b, n);
}

static void add_int(bytes *b, uint32_t n) {
    add_short(b, n >> 16);
    add_short(b, n);
}

static void add_string(bytes *b, const char *s) {
    add_short(b, (unsigned)strlen(s));
    add(b, s, strlen(s));
}

static void add_value(bytes *b, const void *p, size_t n) {
    add_int(b, (uint32_t)n);
    add(b, p, n);
}

static void add_int_value(bytes *b, uint32_t n) {
    add_int(b, 4);
    add_int(b, n);
}

static uint32_t int_at(const char *p) {
    const uint8_t *u = (const uint8_t *)p;
    return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

/* ---- messages ---- */

static bytes *begin(unsigned opcode) {
    static bytes message;
    message.n = 0;
    add(&message, "\4\0\0\1", 4);
    add_byte(&message, opcode);
    add_int(&message, 0);
    return &message;
}

static void send_message(connection *c, bytes *message) {
    size_t body = message->n - HEAD, at = message->n;
    message->n = HEAD - 4;
    add_int(message, (uint32_t)body);
    message->n = at;
    for (const char *p = message->p; at > 0;) {
        ssize_t sent = send(c->fd, p, at, MSG_NOSIGNAL);
        if (sent < 0) {
            die("send");
        }
        p += sent;
        at -= (size_t)sent;
    }
}

/* Of a large answer the head is kept and the rest is counted. */
static void receive(connection *c) {
    size_t room = c->in_room - c->in_n;
    static char rest[256 * 1024];
    ssize_t got = room ? recv(c->fd, c->in + c->in_n, room, 0) : recv(c->fd, rest, sizeof rest, 0);
    if (got <= 0) {
        die("the server closed the connection");
    }
    if (room) {
        c->in_n += (size_t)got;
    } else {
        answer_bytes += (uint64_t)got;
    }
}

static const char *converse(connection *c, bytes *message) {
    send_message(c, message);
    c->in_n = 0;
    while (c->in_n < HEAD || c->in_n < HEAD + int_at(c->in + 5)) {
        receive(c);
    }
    if (c->in[4] == 0) {
        uint32_t n = (uint32_t)(uint8_t)c->in[HEAD + 4] << 8 | (uint8_t)c->in[HEAD + 5];
        fprintf(stderr, "cql_load: the server refuses: %.*s\n", (int)n, c->in + HEAD + 6);
        exit(1);
    }
    return c->in + HEAD;
}

static void log_in(connection *c) {
    bytes *m = begin(STARTUP);
    add_short(m, 1);
    add_string(m, "CQL_VERSION");
    add_string(m, "3.0.0");
    converse(c, m);
    if (c->in[4] == AUTHENTICATE) {
        m = begin(AUTH_RESPONSE);
        char token[512];
        int n = snprintf(token, sizeof token, "%clocalhost%c%s", 0, 0, set.key);
        add_value(m, token, (size_t)n);
        converse(c, m);
    }
}

static void query(connection *c, const char *cql) {
    bytes *m = begin(QUERY);
    add_value(m, cql, strlen(cql));
    add_short(m, 1);
    add_byte(m, 0);
    converse(c, m);
}

static void prepare(connection *c, const char *cql) {
    bytes *m = begin(PREPARE);
    add_value(m, cql, strlen(cql));
    const char *body = converse(c, m);
    if (c->in[1] & 4) { /* a custom payload comes first */
        const uint8_t *p = (const uint8_t *)body;
        unsigned entries = (unsigned)p[0] << 8 | p[1];
        for (body += 2; entries > 0; entries--) {
            body += 2 + ((unsigned)(uint8_t)body[0] << 8 | (uint8_t)body[1]);
            body += 4 + int_at(body);
        }
    }
    c->id_n = (size_t)(uint8_t)body[4] << 8 | (uint8_t)body[5];
    memcpy(c->id, body + 6, c->id_n);
}

static bytes *execute(connection *c, unsigned values) {
    bytes *m = begin(EXECUTE);
    add_short(m, (unsigned)c->id_n);
    add(m, c->id, c->id_n);
    add_short(m, 10); /* LOCAL_ONE */
    add_byte(m, 1 | 2);
    add_short(m, values);
    return m;
}

/* ---- the work ---- */

static int id_of(uint64_t number, char out[32]) {
    return snprintf(out, 32, "i%012" PRIu64, number);
}

static void send_read(connection *c) {
    char id[32];
    bytes *m = execute(c, 1);
    add_value(m, id, (size_t)id_of(data_random(&random_state) % set.items, id));
    send_message(c, m);
}

static void send_insert(connection *c) {
    char id[32];
    bytes *m = execute(c, 3);
    add_value(m, id, (size_t)id_of(set.next, id));
    add_int_value(m, (uint32_t)set.next);
    size_t n = data_item(DATA_PLAIN, set.next++, set.size, text);
    add_value(m, text, n);
    send_message(c, m);
}

static void send_fill(connection *c) {
    c->done = set.next >= set.items;
    if (!c->done) {
        send_insert(c);
    }
}

static void send_fill_wide(connection *c) {
    c->done = set.next >= set.items;
    if (!c->done) {
        bytes *m = execute(c, 2);
        add_int_value(m, (uint32_t)set.next);
        size_t n = data_item(DATA_PLAIN, set.next++, set.size, text);
        add_value(m, text, n);
        send_message(c, m);
    }
}

static void send_slice(connection *c) {
    uint64_t places = set.items > SLICE_ROWS ? set.items - SLICE_ROWS : 1;
    bytes *m = execute(c, 1);
    add_int_value(m, (uint32_t)(data_random(&random_state) % places));
    send_message(c, m);
}

static void send_end(connection *c) {
    send_message(c, execute(c, 0));
}

typedef struct work {
    const char *mode, *cql;
    void (*request)(connection *c);
    bool fills;
} work;

static const work works[] = {
    {"read", "SELECT * FROM cqlbench.items WHERE id = ?", send_read, false},
    {"insert", "INSERT INTO cqlbench.items (id, n, body) VALUES (?, ?, ?)", send_insert, false},
    {"fill", "INSERT INTO cqlbench.items (id, n, body) VALUES (?, ?, ?)", send_fill, true},
    {"fillwide", "INSERT INTO cqlbench.wide (p, c, body) VALUES (1, ?, ?)", send_fill_wide, true},
    {"slice", "SELECT * FROM cqlbench.wide WHERE p = 1 AND c >= ? LIMIT 1000", send_slice, false},
    {"first", "SELECT * FROM cqlbench.wide WHERE p = 1 LIMIT 1000", send_end, false},
    {"last", "SELECT * FROM cqlbench.wide WHERE p = 1 ORDER BY c DESC LIMIT 1000", send_end, false},
};

static const work *work_named(const char *mode) {
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        if (strcmp(works[i].mode, mode) == 0) {
            return &works[i];
        }
    }
    fprintf(stderr, "cql_load: no mode %s\n", mode);
    exit(2);
}

/* Whether the whole answer is there; it may be larger than what is kept of it. */
static bool is_whole(const connection *c, size_t seen) {
    return c->in_n >= HEAD && seen >= HEAD + int_at(c->in + 5);
}

static void open_connection(connection *c) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(set.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    c->in_room = ANSWER_BYTES;
    c->in = malloc(c->in_room);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0) {
        die("connect");
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    log_in(c);
}

static void make_table(connection *c, const char *definition) {
    char cql[256], with[64] = "";
    if (set.throughput) {
        snprintf(with, sizeof with, " WITH cosmosdb_provisioned_throughput = %u", set.throughput);
    }
    snprintf(cql, sizeof cql, "CREATE TABLE IF NOT EXISTS %s%s", definition, with);
    query(c, cql);
}

static void make_tables(connection *c) {
    query(c, "CREATE KEYSPACE IF NOT EXISTS cqlbench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    make_table(c, "cqlbench.items (id text PRIMARY KEY, n int, body text)");
    make_table(c, "cqlbench.wide (p int, c int, body text, PRIMARY KEY (p, c))");
}

static size_t seen[CONNECTIONS_MAX]; /* bytes of the answer that is coming */

static void send_next(connection *c, const work *w, size_t *seen_of) {
    c->in_n = *seen_of = 0;
    c->sent_at = now_ns();
    w->request(c);
}

static bool read_answer(connection *c, size_t *seen_of) {
    size_t kept = c->in_n;
    uint64_t before = answer_bytes;
    receive(c);
    *seen_of += c->in_n - kept + (size_t)(answer_bytes - before);
    answer_bytes = before;
    if (!is_whole(c, *seen_of)) {
        return false;
    }
    answer_bytes += *seen_of;
    return true;
}

static void run(const work *w, connection *connections, histogram *latencies) {
    int epoll = epoll_create1(0), active = set.connections;
    uint64_t start = now_ns(), counted = start + (uint64_t)(set.warm_up * 1e9), end = counted + (uint64_t)(set.seconds * 1e9);
    for (int i = 0; i < set.connections; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &e);
        send_next(&connections[i], w, &seen[i]);
        active -= connections[i].done;
    }
    while (active > 0) {
        struct epoll_event events[64];
        int n = epoll_wait(epoll, events, 64, 20000);
        for (int i = 0; i < n; i++) {
            uint32_t at = events[i].data.u32;
            connection *c = &connections[at];
            if (!read_answer(c, &seen[at])) {
                continue;
            }
            uint64_t now = now_ns();
            if (w->fills || now >= counted) {
                histogram_add(latencies, now - c->sent_at);
                requests++;
                errors += c->in[4] != RESULT;
            }
            if (!w->fills && now >= end) {
                c->done = true;
            } else {
                send_next(c, w, &seen[at]);
            }
            active -= c->done;
        }
        if (n == 0) {
            die("no answer for twenty seconds");
        }
    }
    close(epoll);
    if (w->fills) {
        set.seconds = (double)(now_ns() - start) / 1e9;
    }
}

static void usage(void) {
    fprintf(stderr,
            "usage: cql_load --port N [--setup] [--mode read|insert|fill|fillwide|slice|first|last] [--connections 32] [--items 10000]\n"
            "                [--first N] [--size 1024] [--seconds 3] [--warm-up 0.5] [--key KEY] [--throughput RU]\n");
    exit(2);
}

static void parse_flags(int argc, char **argv) {
    static const struct option options[] = {
        {"port", 1, NULL, 'p'},  {"mode", 1, NULL, 'm'},  {"connections", 1, NULL, 'c'}, {"items", 1, NULL, 'i'},
        {"first", 1, NULL, 'f'}, {"size", 1, NULL, 's'},  {"seconds", 1, NULL, 't'},     {"warm-up", 1, NULL, 'w'},
        {"key", 1, NULL, 'k'},   {"setup", 0, NULL, 'S'}, {"throughput", 1, NULL, 'u'},  {0},
    };
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (o) {
        case 'p':
            set.port = (uint16_t)atoi(optarg);
            break;
        case 'm':
            set.mode = optarg;
            break;
        case 'c':
            set.connections = atoi(optarg);
            break;
        case 'i':
            set.items = strtoull(optarg, NULL, 10);
            break;
        case 'f':
            set.next = strtoull(optarg, NULL, 10);
            break;
        case 's':
            set.size = strtoull(optarg, NULL, 10);
            break;
        case 't':
            set.seconds = atof(optarg);
            break;
        case 'w':
            set.warm_up = atof(optarg);
            break;
        case 'k':
            set.key = optarg;
            break;
        case 'u':
            set.throughput = (unsigned)atoi(optarg);
            break;
        case 'S':
            set.setup = true;
            break;
        default:
            usage();
        }
    }
    if (set.port == 0 || set.connections < 1 || set.connections > CONNECTIONS_MAX || set.items == 0 || set.size > REQUEST_BYTES / 2) {
        usage();
    }
}

int main(int argc, char **argv) {
    static connection connections[CONNECTIONS_MAX];
    static histogram latencies;
    struct rusage used;
    parse_flags(argc, argv);
    const work *w = work_named(set.mode);
    text = malloc(set.size + 4096);
    for (int i = 0; i < set.connections; i++) {
        open_connection(&connections[i]);
        if (i == 0 && set.setup) {
            make_tables(&connections[i]);
        }
        prepare(&connections[i], w->cql);
    }
    run(w, connections, &latencies);
    getrusage(RUSAGE_SELF, &used);
    double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    printf("{\"mode\":\"%s\",\"connections\":%d,\"seconds\":%.3f,\"requests\":%" PRIu64 ",\"rate\":%.1f,\"errors\":%" PRIu64 ",", set.mode,
           set.connections, set.seconds, requests, (double)requests / set.seconds, errors);
    histogram_print(&latencies);
    printf(",\"bytesPerAnswer\":%.0f,\"clientCpuMicros\":%.2f}\n", (double)answer_bytes / (double)(requests ? requests : 1),
           cpu / (double)(requests ? requests : 1));
    return 0;
}
