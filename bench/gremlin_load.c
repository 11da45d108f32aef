/* gremlin_load.c — gremlin_load: closed loops over Gremlin Server's protocol, in GraphBinary or GraphSON 3, on the graph of graph.h.
 *
 * Each connection sends a script with bindings, so that servers may keep what they have made of the text. Modes:
 *
 *   read    a vertex by its id             names   the names of the friends of friends      count   how many these are
 *   add     a new vertex                   path    a shortest path to someone three steps away
 *   touch   the friends of each vertex 0 … --items - 1, once, so that a cache has them
 *   sum     counts of the vertices 0 … --items - 1, added up: two servers with one graph have one sum
 *
 * Vertices are asked for by partition key and id, as on the service; with --plain by id alone, without authentication, as TinkerGraph has
 * them. */
#include <getopt.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "graph.h"
#include "loop.h"

enum { REQUEST_BYTES = 8192, PATH_STEPS = 3 };
static const char emulator_key[] = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

static uint64_t items, next, sum, answer_bytes;
static uint64_t random_state = DATA_SEED;
static bool plain, graphson;

/* ---- requests: a WebSocket frame, its head in front of the message once that is known ---- */

enum { FRAME_HEAD = 8 };

typedef struct message {
    size_t n;
    char p[REQUEST_BYTES];
} message;

static void add(message *m, const void *bytes, size_t n) {
    if (m->n + n > sizeof m->p) {
        loop_die("the request is too large");
    }
    memcpy(m->p + m->n, bytes, n);
    m->n += n;
}

static void add_text(message *m, const char *text) {
    add(m, text, strlen(text));
}

static void add_int(message *m, size_t n) {
    char bytes[] = {(char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    add(m, bytes, 4);
}

static void add_sized(message *m, const char *text) {
    add_int(m, strlen(text));
    add_text(m, text);
}

static void add_binary_string(message *m, const char *text) {
    add(m, "\3", 2);
    add_sized(m, text);
}

typedef struct argument {
    const char *name, *text;
} argument;

typedef struct script {
    const char *op;
    argument args[3]; /* of the request; texts */
    argument bindings[4];
} script;

static size_t count_of(const argument *list, size_t most) {
    size_t n = 0;
    while (n < most && list[n].name) {
        n++;
    }
    return n;
}

static void add_binary(message *m, const script *s) {
    size_t args = count_of(s->args, 3), bindings = count_of(s->bindings, 4);
    add_text(m, "\x20"
                "application/vnd.graphbinary-v1.0");
    add(m, "\x81", 1);
    add(m, "gremlin_load uuid", 16);
    add_sized(m, s->op);
    add_sized(m, "");
    add_int(m, args + (bindings > 0));
    for (size_t i = 0; i < args; i++) {
        add_binary_string(m, s->args[i].name);
        add_binary_string(m, s->args[i].text);
    }
    if (bindings) {
        add_binary_string(m, "bindings");
        add(m, "\x0a", 2);
        add_int(m, bindings);
        for (size_t i = 0; i < bindings; i++) {
            add_binary_string(m, s->bindings[i].name);
            add_binary_string(m, s->bindings[i].text);
        }
    }
}

static void add_pairs(message *m, const argument *list, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s\"%s\",\"%s\"", i ? "," : "", list[i].name, list[i].text);
        add_text(m, text);
    }
}

static void add_graphson(message *m, const script *s) {
    add_text(m, "\x21"
                "application/"
                "vnd.gremlin-v3.0+json{\"requestId\":{\"@type\":\"g:UUID\",\"@value\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\"},\"op\":\"");
    add_text(m, s->op);
    add_text(m, "\",\"processor\":\"\",\"args\":{\"@type\":\"g:Map\",\"@value\":[");
    add_pairs(m, s->args, count_of(s->args, 3));
    if (s->bindings[0].name) {
        add_text(m, ",\"bindings\",{\"@type\":\"g:Map\",\"@value\":[");
        add_pairs(m, s->bindings, count_of(s->bindings, 4));
        add_text(m, "]}");
    }
    add_text(m, "]}}");
}

static void send_script(const loop_connection *c, const script *s) {
    static message m;
    m.n = FRAME_HEAD;
    graphson ? add_graphson(&m, s) : add_binary(&m, s);
    size_t body = m.n - FRAME_HEAD;
    bool is_short = body < 126; /* the mask changes nothing */
    char head[FRAME_HEAD] = {(char)0x82, (char)(0x80 | 126), (char)(body >> 8), (char)body};
    char short_head[] = {(char)0x82, (char)(0x80 | body), 0, 0, 0, 0};
    size_t skipped = is_short ? FRAME_HEAD - sizeof short_head : 0;
    memcpy(m.p + skipped, is_short ? short_head : head, FRAME_HEAD - skipped);
    loop_send(c, m.p + skipped, m.n - skipped);
}

/* ---- answers ---- */

static const char *find(const char *p, size_t n, const char *text) {
    const char *at = memmem(p, n, text, strlen(text));
    return at ? at + strlen(text) : NULL;
}

static int status_of(const char *p, size_t n) {
    if (!graphson) {
        bool has_id = n > 2 && p[1] == 0;
        size_t at = has_id ? 18 : 2;
        return n < at + 4 ? 0 : (int)((unsigned)(uint8_t)p[at + 2] << 8 | (uint8_t)p[at + 3]);
    }
    const char *status = find(p, n, "\"status\"");
    const char *code = status ? find(status, n - (size_t)(status - p), "\"code\":") : NULL;
    return code ? atoi(code) : 0;
}

static void take_sum(const char *p, size_t n) {
    const char *data = find(p, n, "\"data\"");
    const char *value = data ? find(data, n - (size_t)(data - p), "\"g:Int64\",\"@value\":") : NULL;
    sum += value ? strtoull(value, NULL, 10) : 0;
}

/* The first whole frame of the input; returns its bytes, 0 if it is not there. */
static size_t frame_of(const loop_connection *c, const char **payload_out, size_t *n_out) {
    const uint8_t *p = (const uint8_t *)c->in;
    if (c->in_n < 2) {
        return 0;
    }
    size_t length = p[1] & 127, head = length == 126 ? 4 : length == 127 ? 10 : 2;
    if (c->in_n < head) {
        return 0;
    }
    if (head > 2) {
        length = 0;
        for (size_t i = 2; i < head; i++) {
            length = length << 8 | p[i];
        }
    }
    *payload_out = c->in + head;
    *n_out = length;
    return c->in_n < head + length ? 0 : head + length;
}

static bool answered(loop_connection *c, bool *ok_out) {
    const char *payload;
    size_t n, whole;
    while ((whole = frame_of(c, &payload, &n)) > 0) {
        int status = (c->in[0] & 15) <= 2 ? status_of(payload, n) : 206; /* not pings */
        if (status == 200 && graphson && strcmp(loop_set.mode, "sum") == 0) {
            take_sum(payload, n);
        }
        answer_bytes += whole;
        memmove(c->in, c->in + whole, c->in_n - whole);
        c->in_n -= whole;
        if (status != 206) {
            *ok_out = status == 200 || status == 204;
            return true;
        }
    }
    return false;
}

/* ---- connecting ---- */

static void converse(loop_connection *c, const script *s, int expected) {
    const char *payload;
    size_t n, whole;
    c->in_n = 0;
    send_script(c, s);
    while ((whole = frame_of(c, &payload, &n)) == 0) {
        loop_receive(c);
    }
    int status = status_of(payload, n);
    if (status != expected) {
        fprintf(stderr, "gremlin_load: %d where %d was expected: %.*s\n", status, expected, (int)n, payload);
        exit(1);
    }
}

static void log_in(loop_connection *c) {
    char text[512];
    unsigned char sasl[1024];
    int n = snprintf(text, sizeof text, "%c/dbs/bench/colls/items%c%s", 0, 0, loop_set.key);
    EVP_EncodeBlock(sasl, (unsigned char *)text, n);
    converse(c, &(script){.op = "eval", .args = {{"gremlin", "g.inject(1)"}}}, 407);
    converse(c, &(script){.op = "authentication", .args = {{"sasl", (char *)sasl}, {"saslMechanism", "PLAIN"}}}, 200);
}

static void open_connection(loop_connection *c) {
    char text[512];
    loop_open(c);
    int n = snprintf(text, sizeof text,
                     "GET /gremlin HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
                     loop_set.port);
    loop_send(c, text, (size_t)n);
    while (!memmem(c->in, c->in_n, "\r\n\r\n", 4)) {
        loop_receive(c);
    }
    if (!memmem(c->in, c->in_n, " 101 ", 5)) {
        loop_die("the server does not speak WebSocket");
    }
    if (!plain) {
        log_in(c);
    }
}

/* ---- the work ---- */

static uint64_t any_vertex(void) {
    return data_random(&random_state) % items;
}

/* A script that begins at a vertex: `rest` follows V(). */
static void send_from(const loop_connection *c, uint64_t vertex, const char *rest, argument more) {
    char text[512], id[GRAPH_NAME_BYTES], key[GRAPH_NAME_BYTES];
    graph_id(vertex, id);
    graph_key(vertex, key);
    snprintf(text, sizeof text, "g.V(%s)%s", plain ? "i" : "[p, i]", rest);
    script s = {.op = "eval", .args = {{"gremlin", text}, {"language", "gremlin-groovy"}}, .bindings = {{"i", id}, {"p", key}, more}};
    send_script(c, &s);
}

static void send_read(loop_connection *c) {
    send_from(c, any_vertex(), "", (argument){0});
}

static void send_names(loop_connection *c) {
    send_from(c, any_vertex(), ".out('knows').out('knows').dedup().values('name')", (argument){0});
}

static const char count_script[] = ".out('knows').out('knows').dedup().count()";

static void send_count(loop_connection *c) {
    send_from(c, any_vertex(), count_script, (argument){0});
}

static void send_in_turn(loop_connection *c, const char *rest) {
    c->done = next >= items;
    if (!c->done) {
        send_from(c, next++, rest, (argument){0});
    }
}

static void send_sum(loop_connection *c) {
    send_in_turn(c, count_script);
}

static void send_touch(loop_connection *c) {
    send_in_turn(c, ".union(__.identity(), __.out('knows')).count()");
}

static void send_path(loop_connection *c) {
    uint64_t from = any_vertex(), to = from;
    char id[GRAPH_NAME_BYTES];
    for (unsigned i = 0; i < PATH_STEPS; i++) {
        to = graph_neighbour(to, (unsigned)(data_random(&random_state) % GRAPH_DEGREE));
    }
    graph_id(to, id);
    send_from(c, from, ".repeat(__.out('knows').simplePath()).until(__.or(__.hasId(t), __.loops().is(3))).hasId(t).limit(1).path().by(id)",
              (argument){"t", id});
}

static void send_add(loop_connection *c) {
    char id[GRAPH_NAME_BYTES], key[GRAPH_NAME_BYTES], text[256], name[DATA_VALUE_MAX];
    graph_id(next, id);
    graph_key(next, key);
    name[data_value(DATA_NAME, next++, name)] = 0;
    snprintf(text, sizeof text, "g.addV('person').property(%s, i).property('pk', p).property('name', n)", plain ? "T.id" : "'id'");
    script s = {
        .op = "eval", .args = {{"gremlin", text}, {"language", "gremlin-groovy"}}, .bindings = {{"i", id}, {"p", key}, {"n", name}}};
    send_script(c, &s);
}

static const loop_work works[] = {
    {"read", send_read, answered, false},  {"names", send_names, answered, false}, {"count", send_count, answered, false},
    {"path", send_path, answered, false},  {"add", send_add, answered, false},     {"sum", send_sum, answered, true},
    {"touch", send_touch, answered, true},
};

static void usage(void) {
    fprintf(
        stderr,
        "usage: gremlin_load --port N [--mode read|add|names|count|path|touch|sum] [--format graphbinary|graphson] [--vertices 100000]\n"
        "                    [--items N] [--first N] [--connections 32] [--seconds 3] [--warm-up 0.5] [--key KEY] [--plain]\n");
    exit(2);
}

static void take_flag(int flag, const char *value) {
    switch (flag) {
    case 'p':
        loop_set.port = (uint16_t)atoi(value);
        break;
    case 'm':
        loop_set.mode = value;
        break;
    case 'g':
        graphson = strcmp(value, "graphson") == 0;
        break;
    case 'v':
        graph_vertices = strtoull(value, NULL, 10);
        break;
    case 'i':
        items = strtoull(value, NULL, 10);
        break;
    case 'f':
        next = strtoull(value, NULL, 10);
        break;
    case 'c':
        loop_set.connections = atoi(value);
        break;
    case 't':
        loop_set.seconds = atof(value);
        break;
    case 'w':
        loop_set.warm_up = atof(value);
        break;
    case 'k':
        loop_set.key = value;
        break;
    case 'P':
        plain = true;
        break;
    default:
        usage();
    }
}

static void parse_flags(int argc, char **argv) {
    static const struct option options[] = {
        {"port", 1, NULL, 'p'},  {"mode", 1, NULL, 'm'},  {"format", 1, NULL, 'g'},      {"vertices", 1, NULL, 'v'},
        {"items", 1, NULL, 'i'}, {"first", 1, NULL, 'f'}, {"connections", 1, NULL, 'c'}, {"seconds", 1, NULL, 't'},
        {"key", 1, NULL, 'k'},   {"plain", 0, NULL, 'P'}, {"warm-up", 1, NULL, 'w'},     {0},
    };
    loop_set.name = "gremlin_load";
    loop_set.mode = "read";
    loop_set.key = emulator_key;
    graph_vertices = 100000;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        take_flag(o, optarg);
    }
    items = items ? items : graph_vertices;
    graphson = graphson || strcmp(loop_set.mode, "sum") == 0;
    if (loop_set.port == 0 || loop_set.connections < 1 || loop_set.connections > LOOP_CONNECTIONS_MAX || items == 0 ||
        items > graph_vertices) {
        usage();
    }
}

int main(int argc, char **argv) {
    static loop_connection connections[LOOP_CONNECTIONS_MAX];
    char more[128];
    parse_flags(argc, argv);
    const loop_work *w = loop_find(works, sizeof works / sizeof *works);
    for (int i = 0; i < loop_set.connections; i++) {
        open_connection(&connections[i]);
    }
    loop_run(w, connections);
    snprintf(more, sizeof more, ",\"answerBytes\":%" PRIu64 ",\"sum\":%" PRIu64, answer_bytes, sum);
    loop_print(more);
    return 0;
}
