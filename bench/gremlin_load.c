/* gremlin_load.c — gremlin_load: closed loops over Gremlin Server's protocol, in GraphBinary or GraphSON 3, on the graph of graph.h.
 *
 * Each connection sends a script with bindings, so that servers may keep what they have made of the text. Modes:
 *
 *   read    a vertex by its id             names   the names of the friends of friends      count   how many these are
 *   add     a new vertex                   path    a shortest path to someone three steps away
 *   touch   the friends of each vertex 0 … --items - 1, once, so that a cache has them
 *   sum     counts of the vertices 0 … --items - 1, added up: two servers with one graph have one sum
 *
 * Vertices are asked for by partition key and id, as on the service; with --open by id alone, without authentication, as TinkerGraph has
 * them. --format is graphbinary or graphson. */
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "closed_loop.h"
#include "data.h"
#include "graph.h"

enum { REQUEST_BYTES = 8192, ANSWER_BYTES = 1 << 20, PATH_STEPS = 3 };

static uint64_t sum;
static uint64_t random_state = DATA_SEED;
static bool graphson, sums;

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

static void send_script(loop_connection *c, const script *s) {
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

/* The whole frame at a position of the input; returns its bytes, 0 if it is not there. */
static size_t frame_at(const loop_connection *c, size_t at, const char **payload_out, size_t *n_out) {
    const uint8_t *p = (const uint8_t *)c->in + at;
    size_t here = c->in_n - at;
    if (here < 2) {
        return 0;
    }
    size_t length = p[1] & 127, head = length == 126 ? 4 : length == 127 ? 10 : 2;
    if (here < head) {
        return 0;
    }
    if (head > 2) {
        length = 0;
        for (size_t i = 2; i < head; i++) {
            length = length << 8 | p[i];
        }
    }
    *payload_out = (const char *)p + head;
    *n_out = length;
    return here < head + length ? 0 : head + length;
}

/* Frames of part of the results come before the last one. */
static bool answered(const loop_connection *c, bool *ok_out) {
    const char *payload;
    size_t n, whole;
    for (size_t at = 0; (whole = frame_at(c, at, &payload, &n)) > 0; at += whole) {
        int status = (c->in[at] & 15) <= 2 ? status_of(payload, n) : 206; /* not pings */
        if (status != 206) {
            *ok_out = status == 200 || status == 204;
            if (status == 200 && sums) {
                take_sum(payload, n);
            }
            return true;
        }
    }
    if (c->seen > ANSWER_BYTES) {
        loop_die("an answer is too large");
    }
    return false;
}

/* ---- connecting ---- */

static void converse(loop_connection *c, const script *s, int expected) {
    const char *payload;
    size_t n;
    c->in_n = 0;
    send_script(c, s);
    while (frame_at(c, 0, &payload, &n) == 0) {
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
    int n = snprintf(text, sizeof text, "%c/dbs/bench/colls/items%c%s", 0, 0, loop.key);
    EVP_EncodeBlock(sasl, (unsigned char *)text, n);
    converse(c, &(script){.op = "eval", .args = {{"gremlin", "g.inject(1)"}}}, 407);
    converse(c, &(script){.op = "authentication", .args = {{"sasl", (char *)sasl}, {"saslMechanism", "PLAIN"}}}, 200);
}

static void open_connection(loop_connection *c) {
    char text[512];
    loop_connect(c, ANSWER_BYTES);
    int n = snprintf(text, sizeof text,
                     "GET /gremlin HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
                     loop.port);
    loop_send(c, text, (size_t)n);
    while (!memmem(c->in, c->in_n, "\r\n\r\n", 4)) {
        loop_receive(c);
    }
    if (!memmem(c->in, c->in_n, " 101 ", 5)) {
        loop_die("the server does not speak WebSocket");
    }
    if (!loop.open) {
        log_in(c);
    }
}

/* ---- the work ---- */

static uint64_t any_vertex(void) {
    return data_random(&random_state) % loop.items;
}

/* A script that begins at a vertex: `rest` follows V(). */
static void send_from(loop_connection *c, uint64_t vertex, const char *rest, argument more) {
    char text[512], id[GRAPH_NAME_BYTES], key[GRAPH_NAME_BYTES];
    graph_id(vertex, id);
    graph_key(vertex, key);
    snprintf(text, sizeof text, "g.V(%s)%s", loop.open ? "i" : "[p, i]", rest);
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
    c->done = loop.next >= loop.items;
    if (!c->done) {
        send_from(c, loop.next++, rest, (argument){0});
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
    graph_id(loop.next, id);
    graph_key(loop.next, key);
    name[data_value(DATA_NAME, loop.next++, name)] = 0;
    snprintf(text, sizeof text, "g.addV('person').property(%s, i).property('pk', p).property('name', n)", loop.open ? "T.id" : "'id'");
    script s = {
        .op = "eval", .args = {{"gremlin", text}, {"language", "gremlin-groovy"}}, .bindings = {{"i", id}, {"p", key}, {"n", name}}};
    send_script(c, &s);
}

typedef struct work {
    const char *mode;
    void (*request)(loop_connection *c);
    bool fills;
} work;

static const work works[] = {
    {"read", send_read, false}, {"names", send_names, false}, {"count", send_count, false}, {"path", send_path, false},
    {"add", send_add, false},   {"sum", send_sum, true},      {"touch", send_touch, true},
};

static const work *work_named(const char *mode) {
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        if (strcmp(works[i].mode, mode) == 0) {
            return &works[i];
        }
    }
    fprintf(stderr, "gremlin_load: no mode %s\n", mode);
    exit(2);
}

static void print_sum(void) {
    printf(",\"sum\":%" PRIu64, sum);
}

int main(int argc, char **argv) {
    loop.mode = "read";
    loop.items = UINT64_MAX;
    loop_parse(argc, argv, "gremlin_load", "read|add|names|count|path|touch|sum", loop.size);
    const work *w = work_named(loop.mode);
    graph_vertices = loop.vertices;
    loop.items = loop.items < graph_vertices ? loop.items : graph_vertices;
    sums = w->request == send_sum;
    graphson = sums || (loop.format && strcmp(loop.format, "graphson") == 0);
    loop_connection *connections = calloc((size_t)loop.connections, sizeof *connections);
    loop_connection **list = calloc((size_t)loop.connections, sizeof *list);
    for (int i = 0; i < loop.connections; i++) {
        list[i] = &connections[i];
        open_connection(list[i]);
    }
    loop_run(&(loop_work){.fills = w->fills, .request = w->request, .answered = answered, .more = print_sum}, list);
    return 0;
}
