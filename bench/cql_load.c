/* cql_load.c — cql_load: closed loops over Cassandra's native protocol, version 4, with prepared statements.
 *
 * Each connection logs in and prepares its statement, then executes it. Tables of the keyspace cqlbench, which --setup makes:
 *
 *   items   1 KB rows by id            read, insert; fill loads the rows 0 … N-1
 *   wide    rows of one partition      slice: 1,000 rows from a random place; first, last: 1,000 rows from one end; fillwide loads N rows
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "closed_loop.h"
#include "data.h"

enum { HEAD = 9, SLICE_ROWS = 1000, REQUEST_BYTES = 128 * 1024, ANSWER_BYTES = 64 * 1024 };
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
/* ---- bytes ---- */

typedef struct bytes {
    size_t n;
    char p[REQUEST_BYTES];
} bytes;

typedef struct connection {
    loop_connection base; /* first */
    char id[64];          /* of the prepared statement */
    size_t id_n;
} connection;

static uint64_t random_state = DATA_SEED;
static char *text; /* of a row */

static void add(bytes *b, const void *p, size_t n) {
    if (b->n + n > sizeof b->p) {
        loop_die("the request is too large");
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

static void send_message(loop_connection *c, bytes *message) {
    size_t body = message->n - HEAD, whole = message->n;
    message->n = HEAD - 4;
    add_int(message, (uint32_t)body);
    message->n = whole;
    loop_send(c, message->p, whole);
}

static const char *converse(loop_connection *c, bytes *message) {
    send_message(c, message);
    c->in_n = 0;
    while (c->in_n < HEAD || c->in_n < HEAD + int_at(c->in + 5)) {
        loop_receive(c);
    }
    if (c->in[4] == 0) {
        uint32_t n = (uint32_t)(uint8_t)c->in[HEAD + 4] << 8 | (uint8_t)c->in[HEAD + 5];
        fprintf(stderr, "cql_load: the server refuses: %.*s\n", (int)n, c->in + HEAD + 6);
        exit(1);
    }
    return c->in + HEAD;
}

static void log_in(loop_connection *c) {
    bytes *m = begin(STARTUP);
    add_short(m, 1);
    add_string(m, "CQL_VERSION");
    add_string(m, "3.0.0");
    converse(c, m);
    if (c->in[4] == AUTHENTICATE) {
        m = begin(AUTH_RESPONSE);
        char token[512];
        int n = snprintf(token, sizeof token, "%clocalhost%c%s", 0, 0, loop.key);
        add_value(m, token, (size_t)n);
        converse(c, m);
    }
}

static void query(loop_connection *c, const char *cql) {
    bytes *m = begin(QUERY);
    add_value(m, cql, strlen(cql));
    add_short(m, 1);
    add_byte(m, 0);
    converse(c, m);
}

static void prepare(connection *c, const char *cql) {
    bytes *m = begin(PREPARE);
    add_value(m, cql, strlen(cql));
    const char *body = converse(&c->base, m);
    if (c->base.in[1] & 4) { /* a custom payload comes first */
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

static bytes *execute(const loop_connection *base, unsigned values) {
    const connection *c = (const connection *)base;
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

static void send_read(loop_connection *c) {
    char id[32];
    bytes *m = execute(c, 1);
    add_value(m, id, (size_t)id_of(data_random(&random_state) % loop.items, id));
    send_message(c, m);
}

static void send_insert(loop_connection *c) {
    char id[32];
    bytes *m = execute(c, 3);
    add_value(m, id, (size_t)id_of(loop.next, id));
    add_int_value(m, (uint32_t)loop.next);
    size_t n = data_item(DATA_PLAIN, loop.next++, loop.size, text);
    add_value(m, text, n);
    send_message(c, m);
}

static void send_fill(loop_connection *c) {
    c->done = loop.next >= loop.items;
    if (!c->done) {
        send_insert(c);
    }
}

static void send_fill_wide(loop_connection *c) {
    c->done = loop.next >= loop.items;
    if (!c->done) {
        bytes *m = execute(c, 2);
        add_int_value(m, (uint32_t)loop.next);
        size_t n = data_item(DATA_PLAIN, loop.next++, loop.size, text);
        add_value(m, text, n);
        send_message(c, m);
    }
}

static void send_slice(loop_connection *c) {
    uint64_t places = loop.items > SLICE_ROWS ? loop.items - SLICE_ROWS : 1;
    bytes *m = execute(c, 1);
    add_int_value(m, (uint32_t)(data_random(&random_state) % places));
    send_message(c, m);
}

static void send_end(loop_connection *c) {
    send_message(c, execute(c, 0));
}

typedef struct work {
    const char *mode, *cql;
    void (*request)(loop_connection *c);
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

/* It may be larger than what is kept of it. */
static bool answered(const loop_connection *c, bool *ok_out) {
    bool whole = c->in_n >= HEAD && c->seen >= HEAD + int_at(c->in + 5);
    *ok_out = whole && c->in[4] == RESULT;
    return whole;
}

static void make_table(loop_connection *c, const char *definition) {
    char cql[256], with[64] = "";
    if (loop.throughput) {
        snprintf(with, sizeof with, " WITH cosmosdb_provisioned_throughput = %u", loop.throughput);
    }
    snprintf(cql, sizeof cql, "CREATE TABLE IF NOT EXISTS %s%s", definition, with);
    query(c, cql);
}

static void make_tables(loop_connection *c) {
    query(c, "CREATE KEYSPACE IF NOT EXISTS cqlbench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    make_table(c, "cqlbench.items (id text PRIMARY KEY, n int, body text)");
    make_table(c, "cqlbench.wide (p int, c int, body text, PRIMARY KEY (p, c))");
}

int main(int argc, char **argv) {
    loop.mode = "read";
    loop_parse(argc, argv, "cql_load", "read|insert|fill|fillwide|slice|first|last", REQUEST_BYTES / 2);
    const work *w = work_named(loop.mode);
    text = malloc(loop.size + 4096);
    connection *connections = calloc((size_t)loop.connections, sizeof *connections);
    loop_connection **list = calloc((size_t)loop.connections, sizeof *list);
    for (int i = 0; i < loop.connections; i++) {
        list[i] = &connections[i].base;
        loop_connect(list[i], ANSWER_BYTES);
        log_in(list[i]);
        if (i == 0 && loop.setup) {
            make_tables(list[i]);
        }
        prepare(&connections[i], w->cql);
    }
    loop_run(&(loop_work){.fills = w->fills, .request = w->request, .answered = answered}, list);
    return 0;
}
