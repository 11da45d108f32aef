/* wire_load.c — wire_load: closed loops over MongoDB's and Redis's wire protocols, so that both are driven by the same client.
 *
 * One thread with an epoll loop. Each connection authenticates (MongoDB: SCRAM-SHA-256), then sends a request, waits for the whole answer
 * and sends the next. Modes: find and get read items at random; insert adds new ones; fill loads the items 0 … N-1 in batches. One line of
 * JSON on standard output. */
#include <arpa/inet.h>
#include <bson/bson.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "data.h"
#include "histogram.h"

enum { INPUT_BYTES = 1 << 20, CONNECTIONS_MAX = 1024, HEADER = 16, OP_MSG = 2013, HASH = 32, FILL_BATCH = 100 };
static const char emulator_key[] = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

static struct {
    const char *mode, *key;
    uint16_t port;
    int connections;
    uint64_t items, next;
    size_t size;
    double seconds, warm_up;
} set = {.mode = "find", .key = emulator_key, .connections = 32, .items = 10000, .size = 1024, .seconds = 3, .warm_up = 0.5};

typedef struct connection {
    int fd;
    bool done;
    char *in;
    size_t in_n;
    uint64_t sent_at;
} connection;

typedef struct protocol {
    bool mongo;
    void (*request)(connection *c);
} protocol;

static uint64_t random_state = DATA_SEED;
static uint64_t requests, errors;
static char *item_text;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what) {
    fprintf(stderr, "wire_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void send_all(int fd, const void *bytes, size_t n) {
    for (const char *p = bytes; n > 0;) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent < 0) {
            die("send");
        }
        p += sent;
        n -= (size_t)sent;
    }
}

/* ---- MongoDB ---- */

static void send_command(int fd, const bson_t *command) {
    static char message[16 << 20];
    int32_t head[5] = {(int32_t)(HEADER + 5 + command->len), 1, 0, OP_MSG, 0};
    memcpy(message, head, sizeof head);
    message[20] = 0;
    memcpy(message + 21, bson_get_data(command), command->len);
    send_all(fd, message, 21 + command->len);
}

static bool reply_is_ok(const char *message, size_t n) {
    bson_t reply;
    bson_iter_t it, child;
    if (n < 26 || !bson_init_static(&reply, (const uint8_t *)message + 21, n - 21) || !bson_iter_init(&it, &reply)) {
        return false;
    }
    bool ok = false, failed = false;
    while (bson_iter_next(&it)) {
        const char *key = bson_iter_key(&it);
        ok = ok || (strcmp(key, "ok") == 0 && bson_iter_as_bool(&it));
        failed = failed || strcmp(key, "writeErrors") == 0;
        if (strcmp(key, "cursor") == 0 && bson_iter_recurse(&it, &child) && bson_iter_find(&child, "firstBatch")) {
            bson_iter_t row;
            failed = failed || !bson_iter_recurse(&child, &row) || !bson_iter_next(&row);
        }
    }
    return ok && !failed;
}

static size_t receive_whole(int fd, char *into) {
    size_t n = 0;
    int32_t length = HEADER;
    while (n < (size_t)length) {
        ssize_t got = recv(fd, into + n, (size_t)length - n, 0);
        if (got <= 0) {
            die("the server closed the connection");
        }
        n += (size_t)got;
        if (n == HEADER) {
            memcpy(&length, into, 4);
        }
    }
    return n;
}

/* Sends a command and returns the reply's payload as text, for authentication. */
static char *converse(connection *c, const bson_t *command) {
    bson_t reply;
    bson_iter_t it;
    bson_subtype_t subtype;
    uint32_t n;
    const uint8_t *bytes;
    send_command(c->fd, command);
    size_t got = receive_whole(c->fd, c->in);
    if (!reply_is_ok(c->in, got) || !bson_init_static(&reply, (const uint8_t *)c->in + 21, got - 21) ||
        !bson_iter_init_find(&it, &reply, "payload")) {
        fprintf(stderr, "wire_load: the server refused the key\n");
        exit(1);
    }
    bson_iter_binary(&it, &subtype, &n, &bytes);
    return strndup((const char *)bytes, n);
}

static void hmac(const void *key, size_t key_n, const char *text, uint8_t out[HASH]) {
    HMAC(EVP_sha256(), key, (int)key_n, (const unsigned char *)text, strlen(text), out, NULL);
}

static void add_payload(bson_t *command, const char *text) {
    bson_append_binary(command, "payload", -1, BSON_SUBTYPE_BINARY, (const uint8_t *)text, (uint32_t)strlen(text));
    BSON_APPEND_UTF8(command, "$db", "admin");
}

static void salted(const char *salt_base64, int iterations, uint8_t out[HASH]) {
    unsigned char salt[256];
    int n = EVP_DecodeBlock(salt, (const unsigned char *)salt_base64, (int)strlen(salt_base64));
    for (size_t i = strlen(salt_base64); i > 0 && salt_base64[i - 1] == '='; i--) {
        n--;
    }
    PKCS5_PBKDF2_HMAC(set.key, (int)strlen(set.key), salt, n, iterations, EVP_sha256(), HASH, out);
}

/* RFC 5802, with SHA-256. */
static void proof_of(const char *server_first, const char *nonce, char *final_out, size_t final_n) {
    char salt[256] = "", auth[1024], bare[512];
    uint8_t password[HASH], client_key[HASH], stored[HASH], signature[HASH];
    unsigned char proof[64];
    int iterations = 0;
    sscanf(strstr(server_first, "s="), "s=%255[^,],i=%d", salt, &iterations);
    snprintf(bare, sizeof bare, "c=biws,r=%.*s", (int)(strchr(server_first, ',') - server_first - 2), server_first + 2);
    snprintf(auth, sizeof auth, "n=localhost,r=%s,%s,%s", nonce, server_first, bare);
    salted(salt, iterations, password);
    hmac(password, HASH, "Client Key", client_key);
    EVP_Digest(client_key, HASH, stored, NULL, EVP_sha256(), NULL);
    hmac(stored, HASH, auth, signature);
    for (int i = 0; i < HASH; i++) {
        client_key[i] ^= signature[i];
    }
    EVP_EncodeBlock(proof, client_key, HASH);
    snprintf(final_out, final_n, "%s,p=%s", bare, proof);
}

static void authenticate(connection *c) {
    static const char nonce[] = "rOprNGfwEbeRWgbNEkqOwire";
    char text[1024];
    bson_t start = BSON_INITIALIZER, go_on = BSON_INITIALIZER;
    BSON_APPEND_INT32(&start, "saslStart", 1);
    BSON_APPEND_UTF8(&start, "mechanism", "SCRAM-SHA-256");
    bson_t options;
    BSON_APPEND_DOCUMENT_BEGIN(&start, "options", &options);
    BSON_APPEND_BOOL(&options, "skipEmptyExchange", true);
    bson_append_document_end(&start, &options);
    snprintf(text, sizeof text, "n,,n=localhost,r=%s", nonce);
    add_payload(&start, text);
    char *first = converse(c, &start);
    proof_of(first, nonce, text, sizeof text);
    BSON_APPEND_INT32(&go_on, "saslContinue", 1);
    BSON_APPEND_INT32(&go_on, "conversationId", 1);
    add_payload(&go_on, text);
    free(converse(c, &go_on));
    free(first);
    bson_destroy(&start);
    bson_destroy(&go_on);
}

static int id_of(uint64_t number, char out[32]) {
    return snprintf(out, 32, "i%012" PRIu64, number);
}

static void send_find(connection *c) {
    char id[32];
    bson_t command = BSON_INITIALIZER, filter;
    int n = id_of(data_random(&random_state) % set.items, id);
    BSON_APPEND_UTF8(&command, "find", "items");
    BSON_APPEND_DOCUMENT_BEGIN(&command, "filter", &filter);
    bson_append_utf8(&filter, "_id", 3, id, n);
    bson_append_document_end(&command, &filter);
    BSON_APPEND_INT32(&command, "limit", 1);
    BSON_APPEND_BOOL(&command, "singleBatch", true);
    BSON_APPEND_UTF8(&command, "$db", "bench");
    send_command(c->fd, &command);
    bson_destroy(&command);
}

/* A plain item as the SQL measurements have it, with `_id` in front. */
static void add_item(bson_t *list, unsigned at, uint64_t number) {
    char id[32], key[12];
    bson_t item, fields;
    bson_error_t error;
    size_t n = data_item(DATA_PLAIN, number, set.size, item_text);
    if (!bson_init_from_json(&fields, item_text, (ssize_t)n, &error)) {
        fprintf(stderr, "wire_load: %s\n", error.message);
        exit(1);
    }
    snprintf(key, sizeof key, "%u", at);
    bson_append_document_begin(list, key, -1, &item);
    bson_append_utf8(&item, "_id", 3, id, id_of(number, id));
    bson_concat(&item, &fields);
    bson_append_document_end(list, &item);
    bson_destroy(&fields);
}

static void send_inserts(connection *c, unsigned n) {
    bson_t command = BSON_INITIALIZER, list;
    BSON_APPEND_UTF8(&command, "insert", "items");
    BSON_APPEND_ARRAY_BEGIN(&command, "documents", &list);
    for (unsigned i = 0; i < n; i++) {
        add_item(&list, i, set.next++);
    }
    bson_append_array_end(&command, &list);
    BSON_APPEND_UTF8(&command, "$db", "bench");
    send_command(c->fd, &command);
    bson_destroy(&command);
}

static void send_insert(connection *c) {
    send_inserts(c, 1);
}

static void send_fill(connection *c) {
    uint64_t left = set.next < set.items ? set.items - set.next : 0;
    if (left == 0) {
        c->done = true;
        return;
    }
    send_inserts(c, left < FILL_BATCH ? (unsigned)left : FILL_BATCH);
}

/* ---- Redis ---- */

static void send_get(connection *c) {
    char id[32], text[96];
    int n = id_of(data_random(&random_state) % set.items, id);
    int bytes = snprintf(text, sizeof text, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", n, id);
    send_all(c->fd, text, (size_t)bytes);
}

static void send_set(connection *c) {
    char id[32], head[128];
    if (set.next == set.items) {
        c->done = true;
        return;
    }
    int n = id_of(set.next, id);
    size_t value = data_item(DATA_PLAIN, set.next++, set.size, item_text);
    int bytes = snprintf(head, sizeof head, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%zu\r\n", n, id, value);
    send_all(c->fd, head, (size_t)bytes);
    memcpy(item_text + value, "\r\n", 2);
    send_all(c->fd, item_text, value + 2);
}

/* The length of a reply: "$1024\r\n…\r\n" or "+OK\r\n"; 0: not whole yet. */
static size_t redis_length(const char *in, size_t n) {
    const char *end = memchr(in, '\n', n);
    if (!end) {
        return 0;
    }
    size_t head = (size_t)(end - in) + 1;
    long value = in[0] == '$' ? strtol(in + 1, NULL, 10) : -1;
    size_t whole = value < 0 ? head : head + (size_t)value + 2;
    return n >= whole ? whole : 0;
}

/* ---- the loop ---- */

static const struct {
    const char *name;
    protocol protocol;
} modes[] = {
    {"find", {true, send_find}}, {"insert", {true, send_insert}}, {"fill", {true, send_fill}},
    {"get", {false, send_get}},  {"set", {false, send_set}},
};

static const protocol *protocol_named(const char *name) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, name) == 0) {
            return &modes[i].protocol;
        }
    }
    fprintf(stderr, "wire_load: no mode %s\n", name);
    exit(2);
}

static void open_connection(connection *c, const protocol *p) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(set.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    c->in = malloc(INPUT_BYTES);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0) {
        die("connect");
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (p->mongo) {
        authenticate(c);
    }
}

static void send_next(connection *c, const protocol *p) {
    c->in_n = 0;
    c->sent_at = now_ns();
    p->request(c);
}

/* False: the answer is not whole yet. */
static bool read_answer(connection *c, const protocol *p, bool *ok_out) {
    ssize_t got = recv(c->fd, c->in + c->in_n, INPUT_BYTES - c->in_n, 0);
    if (got <= 0) {
        die("the server closed the connection");
    }
    c->in_n += (size_t)got;
    if (!p->mongo) {
        *ok_out = c->in[0] == '+' || (c->in[0] == '$' && c->in[1] != '-');
        return redis_length(c->in, c->in_n) > 0;
    }
    int32_t length = INT32_MAX;
    if (c->in_n >= HEADER) {
        memcpy(&length, c->in, 4);
    }
    if (c->in_n < (size_t)length) {
        return false;
    }
    *ok_out = reply_is_ok(c->in, c->in_n);
    return true;
}

static void run(const protocol *p, connection *connections, histogram *latencies) {
    int epoll = epoll_create1(0), active = set.connections;
    uint64_t start = now_ns(), counted = start + (uint64_t)(set.warm_up * 1e9), end = counted + (uint64_t)(set.seconds * 1e9);
    bool timed = strcmp(set.mode, "fill") != 0 && strcmp(set.mode, "set") != 0;
    for (int i = 0; i < set.connections; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &connections[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &e);
        send_next(&connections[i], p);
        active -= connections[i].done;
    }
    while (active > 0) {
        struct epoll_event events[64];
        int n = epoll_wait(epoll, events, 64, 10000);
        for (int i = 0; i < n; i++) {
            connection *c = events[i].data.ptr;
            bool ok;
            if (!read_answer(c, p, &ok)) {
                continue;
            }
            uint64_t now = now_ns();
            if (!timed || now >= counted) {
                histogram_add(latencies, now - c->sent_at);
                requests++;
                errors += !ok;
            }
            if (timed && now >= end) {
                c->done = true;
            } else {
                send_next(c, p);
            }
            active -= c->done;
        }
        if (n == 0) {
            die("no answer for ten seconds");
        }
    }
    close(epoll);
    if (!timed) {
        set.seconds = (double)(now_ns() - start) / 1e9;
    }
}

static void usage(void) {
    fprintf(stderr,
            "usage: wire_load --port N [--mode find|insert|fill|get|set] [--connections 32] [--items 10000] [--first N] [--size 1024]\n"
            "                 [--seconds 3] [--warm-up 0.5] [--key KEY]\n");
    exit(2);
}

static void parse_flags(int argc, char **argv) {
    static const struct option options[] = {
        {"port", 1, NULL, 'p'}, {"mode", 1, NULL, 'm'},    {"connections", 1, NULL, 'c'}, {"items", 1, NULL, 'i'}, {"first", 1, NULL, 'f'},
        {"size", 1, NULL, 's'}, {"seconds", 1, NULL, 't'}, {"warm-up", 1, NULL, 'w'},     {"key", 1, NULL, 'k'},   {0},
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
        default:
            usage();
        }
    }
    if (set.port == 0 || set.connections < 1 || set.connections > CONNECTIONS_MAX || set.items == 0 || set.size > INPUT_BYTES / 2) {
        usage();
    }
}

int main(int argc, char **argv) {
    static connection connections[CONNECTIONS_MAX];
    static histogram latencies;
    struct rusage used;
    parse_flags(argc, argv);
    const protocol *p = protocol_named(set.mode);
    item_text = malloc(set.size + 4096);
    for (int i = 0; i < set.connections; i++) {
        open_connection(&connections[i], p);
    }
    run(p, connections, &latencies);
    getrusage(RUSAGE_SELF, &used);
    double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    printf("{\"mode\":\"%s\",\"connections\":%d,\"seconds\":%.3f,\"requests\":%" PRIu64 ",\"rate\":%.1f,\"errors\":%" PRIu64 ",", set.mode,
           set.connections, set.seconds, requests, (double)requests / set.seconds, errors);
    histogram_print(&latencies);
    printf(",\"clientCpuMicros\":%.2f}\n", cpu / (double)(requests ? requests : 1));
    return 0;
}
