/* call_harness.h — for tests of calls through the echo front end and a real socket: a server, on a store in memory or on RocksDB (with
 * TESELA_HOMES=2 on two), a client, and requests of every kind. */
#pragma once

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>

#include "account/scripts.h"
#include "base/base64.h"
#include "echo_front.h"
#include "item/follow.h"
#include "item/range_info.h"
#include "item_harness.h"

#define KEY "bWFzdGVyLWtleS1vZi10aGUtZWNoby10ZXN0"
#define READ_KEY "cmVhZC1vbmx5LWtleS1vZi10aGUtZWNoby10ZXN0"
#define DB "\"db\":\"d\","
#define IN DB "\"in\":\"c\""

enum { ITEMS = 40, PARTITIONS = 5 };

typedef struct world {
    harness h;
    char *folder; /* RocksDB's folder; NULL: in memory */
    access_keys *keys;
    access_attempts *attempts;
    faults *faults;
    script_pool *scripts;
    net_server *server;
    echo_front front;
    uint16_t port;
    pthread_t thread;
    bool running;
} world;

static inline int64_t now_ms(void) {
    return clock_monotonic_us(&clock_system) / 1000;
}

/* Waits for a condition that another thread makes true. */
#define AWAIT(condition)                                                                                                                   \
    do {                                                                                                                                   \
        int64_t until_ = now_ms() + 20000;                                                                                                 \
        while (!(condition)) {                                                                                                             \
            if (now_ms() > until_) {                                                                                                       \
                fail_msg("not within 20 s: %s", #condition);                                                                               \
            }                                                                                                                              \
            usleep(1000);                                                                                                                  \
        }                                                                                                                                  \
    } while (0)

/* ---- the server ---- */

static inline void *run_server(void *server) {
    net_run(server);
    return NULL;
}

static inline void serve(world *w) {
    char why[ACCESS_KEYS_WHY_BYTES] = "";
    net_options options = net_defaults;
    access_keys_options keys = {.given = {[ACCESS_KEY_PRIMARY] = KEY, [ACCESS_KEY_PRIMARY_READ_ONLY] = READ_KEY}};
    options.loops = 2;
    assert_int_equal(net_open(&options, &w->server), OK);
    w->keys = access_keys_open(&keys, why);
    assert_non_null(w->keys);
    access_keys_serve(w->keys, w->server);
    w->attempts = access_attempts_new(&clock_system);
    w->faults = faults_new();
    w->scripts = script_pool_open(&(script_options){.program = getenv("TESELA_SCRIPT")});
    w->front = (echo_front){.core = {w->h.account, w->scripts, w->faults}, .keys = w->keys, .attempts = w->attempts};
    assert_int_equal(echo_listen(&w->front, w->server, &w->port, why, sizeof why), OK);
    assert_int_equal(pthread_create(&w->thread, NULL, run_server, w->server), 0);
    w->running = true;
}

static inline void world_open(world *w, bool rocks, bool limited) {
    *w = (world){.folder = rocks ? make_folder() : NULL};
    log_set_level(LOG_ERROR);
    harness_open_on(&w->h, rocks ? open_rocks(w->folder) : store_open_memory());
    if (limited) {
        w->h.rules.unlimited = false;
        harness_restart(&w->h);
    }
    assert_int_equal(harness_create_database(&w->h, "d", (throughput_setting){0}), OK);
    serve(w);
}

static inline void world_stop(world *w) {
    net_stop(w->server);
    pthread_join(w->thread, NULL);
    w->running = false;
}

static inline void world_close(world *w) {
    if (w->running) {
        world_stop(w);
    }
    assert_int_equal(net_server_stats(w->server).drain_unanswered, 0);
    script_pool_stop(w->scripts);
    account_stop(w->h.account);
    net_close(w->server);
    harness_close(&w->h);
    script_pool_close(w->scripts);
    access_keys_close(w->keys);
    access_attempts_free(w->attempts);
    faults_free(w->faults);
    if (w->folder) {
        remove_folder(w->folder);
        free(w->folder);
    }
}

static inline container *found(world *w) {
    return harness_found(&w->h, "d", "c");
}

static inline size_t count_ranges(world *w) {
    container *c = found(w);
    size_t n = range_count(c);
    container_give(c);
    return n;
}

static inline uint32_t id_of_range(world *w, size_t position) {
    container *c = found(w);
    range_info info;
    assert_true(range_info_at(c, position, &info));
    container_give(c);
    return info.range.id;
}

/* Not every range can be split or merged: a split needs two keys, a merge a neighbour in the same store. */
static inline void split_all(world *w) {
    container *c = found(w);
    size_t before = range_count(c);
    for (size_t i = before; i-- > 0;) {
        err code = account_split(w->h.account, harness_op(&w->h), c, id_of_range(w, i), 2);
        assert_true(code == OK || code == E_BAD_REQUEST);
    }
    assert_true(count_ranges(w) > before);
    container_give(c);
}

static inline void merge_all(world *w) {
    container *c = found(w);
    size_t before = range_count(c);
    for (size_t i = before - 1; i-- > 0;) {
        err code = account_merge(w->h.account, harness_op(&w->h), c, id_of_range(w, i), id_of_range(w, i + 1));
        assert_true(code == OK || code == E_BAD_REQUEST);
    }
    assert_true(count_ranges(w) < before);
    container_give(c);
}

static inline void reshape(world *w) {
    count_ranges(w) > 3 ? merge_all(w) : split_all(w);
}

/* ---- the client ---- */

typedef struct client {
    int fd;
    buf in;
    uint32_t stream; /* the last request's stream */
} client;

/* An answer: its document, and the rows after it. */
typedef struct reply {
    uint32_t stream;
    bool ended; /* the connection has ended */
    buf bytes;
    slice document, rows;
} reply;

static inline client connect_only(const world *w) {
    client c = {.fd = socket(AF_INET, SOCK_STREAM, 0), .in = buf_init(BUF_NO_LIMIT)};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(w->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = 30};
    setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(connect(c.fd, (struct sockaddr *)&to, sizeof to), 0);
    return c;
}

static inline void leave(client *c) {
    close(c->fd);
    buf_free(&c->in);
}

static inline bool send_bytes(client *c, const void *p, size_t n) {
    return send(c->fd, p, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static inline bool send_document(client *c, const void *document, size_t document_n) {
    uint32_t head[2] = {(uint32_t)(8 + document_n), ++c->stream};
    buf frame = buf_init(BUF_NO_LIMIT);
    buf_add(&frame, head, 8);
    buf_add(&frame, document, document_n);
    bool sent = send_bytes(c, frame.p, frame.n);
    buf_free(&frame);
    return sent;
}

/* Sends a document given as Extended JSON. */
static inline void send_json(client *c, const char *json) {
    bson_error_t error;
    bson_t *document = bson_new_from_json((const uint8_t *)json, -1, &error);
    if (!document) {
        fail_msg("%s: %s", error.message, json);
    } else {
        assert_true(send_document(c, bson_get_data(document), document->len));
        bson_destroy(document);
    }
}

static inline void reply_free(reply *r) {
    buf_free(&r->bytes);
    *r = (reply){0};
}

static inline bool receive_more(client *c) {
    char bytes[65536];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        fail_msg("no bytes and no end for 30 s");
    }
    if (n > 0) {
        buf_add(&c->in, bytes, (size_t)n);
    }
    return n > 0;
}

static inline reply next_reply(client *c) {
    reply r = {.bytes = buf_init(BUF_NO_LIMIT)};
    uint32_t head[2] = {0}, n;
    while (c->in.n < 8 || (memcpy(head, c->in.p, 8), c->in.n < head[0])) {
        if (!receive_more(c)) {
            r.ended = true;
            return r;
        }
    }
    r.stream = head[1];
    buf_add(&r.bytes, c->in.p + 8, head[0] - 8);
    c->in.n -= head[0];
    memmove(c->in.p, c->in.p + head[0], c->in.n);
    memcpy(&n, r.bytes.p, 4);
    r.document = slice_of(r.bytes.p, n);
    r.rows = slice_of(r.bytes.p + n, r.bytes.n - n);
    return r;
}

static inline const char *code_of(const reply *r) {
    bson_iter_t it;
    return r->ended ? "ended" : doc_find_key(r->document, SLICE_LIT("code"), &it) ? bson_iter_utf8(&it, NULL) : "none";
}

static inline int64_t number_of(const reply *r, const char *name) {
    bson_iter_t it;
    assert_true(doc_find_key(r->document, slice_str(name), &it));
    return bson_iter_as_int64(&it);
}

static inline const char *text_of(const reply *r, const char *name) {
    bson_iter_t it;
    assert_true(doc_find_key(r->document, slice_str(name), &it));
    return bson_iter_utf8(&it, NULL);
}

/* `next` as {"$binary": …} of Extended JSON; empty: absent. In one of four static buffers. */
static inline const char *next_of(const reply *r) {
    static char ring[4][16384];
    static unsigned turn;
    char *text = ring[turn++ % 4];
    bson_iter_t it;
    uint32_t n = 0;
    const uint8_t *bytes = NULL;
    text[0] = 0;
    if (doc_find_key(r->document, SLICE_LIT("next"), &it)) {
        bson_iter_binary(&it, NULL, &n, &bytes);
    }
    if (n) {
        buf base64 = buf_init(BUF_NO_LIMIT);
        base64_encode(&base64, slice_of(bytes, n));
        snprintf(text, sizeof ring[0], ",\"from\":{\"$binary\":{\"base64\":\"%.*s\",\"subType\":\"00\"}}", (int)base64.n, base64.p);
        buf_free(&base64);
    }
    return text;
}

/* The values of a property in all rows, each followed by a blank. */
static inline const char *values_of(const reply *r, const char *name) {
    static char text[8192];
    size_t at = 0;
    bson_iter_t it;
    text[0] = 0;
    for (slice rest = r->rows; rest.n;) {
        uint32_t n;
        memcpy(&n, rest.p, 4);
        if (doc_find_key(slice_of(rest.p, n), slice_str(name), &it)) {
            at += (size_t)(BSON_ITER_HOLDS_UTF8(&it) ? snprintf(text + at, sizeof text - at, "%s ", bson_iter_utf8(&it, NULL))
                                                     : snprintf(text + at, sizeof text - at, "%ld ", (long)bson_iter_as_int64(&it)));
        }
        rest = slice_skip(rest, n);
    }
    return text;
}

static inline size_t rows_of(const reply *r) {
    size_t count = 0;
    for (slice rest = r->rows; rest.n; count++) {
        uint32_t n;
        memcpy(&n, rest.p, 4);
        rest = slice_skip(rest, n);
    }
    return count;
}

__attribute__((format(printf, 2, 3))) static reply ask(client *c, const char *format, ...) {
    char json[32768];
    va_list list;
    va_start(list, format);
    assert_true(vsnprintf(json, sizeof json, format, list) < (int)sizeof json);
    va_end(list);
    send_json(c, json);
    reply r = next_reply(c);
    assert_true(r.ended || r.stream == c->stream);
    return r;
}

/* Expects this code, and ignores the rest of the answer. */
#define EXPECT(c, code, ...)                                                                                                               \
    do {                                                                                                                                   \
        reply expected_ = ask((c), __VA_ARGS__);                                                                                           \
        assert_string_equal(code_of(&expected_), code);                                                                                    \
        reply_free(&expected_);                                                                                                            \
    } while (0)

static inline reply authenticate(client *c, const char *password) {
    char message[128], base64[256];
    buf encoded = buf_init(BUF_NO_LIMIT);
    int n = snprintf(message, sizeof message, "%cme%c%s", 0, 0, password);
    base64_encode(&encoded, slice_of(message, (size_t)n));
    snprintf(base64, sizeof base64, "%.*s", (int)encoded.n, encoded.p);
    buf_free(&encoded);
    return ask(c, "{\"do\":\"auth\",\"sasl\":{\"$binary\":{\"base64\":\"%s\",\"subType\":\"00\"}}}", base64);
}

static inline client client_with(const world *w, const char *password) {
    client c = connect_only(w);
    reply r = authenticate(&c, password);
    assert_string_equal(code_of(&r), "OK");
    reply_free(&r);
    return c;
}

static inline client client_open(const world *w) {
    return client_with(w, KEY);
}

/* ---- a container and its items: item i has id "i05", v 5 and partition p0 … p4 ---- */

static inline void make_container(client *c, const char *id, const char *rows, unsigned throughput) {
    EXPECT(c, "OK",
           "{\"do\":\"make\"," DB "\"settings\":{\"id\":\"%s\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}},"
           "\"throughput\":%u%s%s}",
           id, throughput, rows ? ",\"rows\":" : "", rows ? rows : "");
}

static inline void put(client *c, int i, int v) {
    EXPECT(c, "OK", "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":%d,\"item\":{\"id\":\"i%02d\",\"pk\":\"p%d\",\"v\":%d}}]}", ITEM_UPSERT, i,
           i % PARTITIONS, v);
}

static inline void fill(client *c) {
    make_container(c, "c", NULL, 3000); /* three ranges */
    for (int i = 0; i < ITEMS; i++) {
        put(c, i, i);
    }
}

/* A successful request of each verb about items. */
static const char *const reads[] = {
    "{\"do\":\"read\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"i01\"}",
    "{\"do\":\"feed\"," IN "",
    "{\"do\":\"rows\"," IN "",
    "{\"do\":\"rows\"," IN ",\"of\":{\"pk\":\"p1\"}",
    "{\"do\":\"find\"," IN ",\"where\":{\"at\":[\"v\"],\"ge\":3}",
    "{\"do\":\"query\"," IN ",\"text\":\"SELECT * FROM c WHERE c.v < 4\"",
    "{\"do\":\"changes\"," IN ",\"of\":{\"pk\":\"p1\"}",
    "{\"do\":\"follow\"," IN "",
    "{\"do\":\"attachments\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"i01\"}",
};
enum { READS = sizeof reads / sizeof *reads };

static const char *const writes[] = {
    "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":1,\"item\":{\"id\":\"i01\",\"pk\":\"p1\",\"v\":1}}]",
    "{\"do\":\"attach\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"i01\"},\"item\":{\"id\":\"photo\"}",
};
enum { WRITES = sizeof writes / sizeof *writes };

static inline const char *request(size_t i, const char *more) {
    static char json[1024];
    snprintf(json, sizeof json, "%s%s}", i < READS ? reads[i] : writes[i - READS], more);
    return json;
}

static inline reply ask_request(client *c, size_t i, const char *more) {
    return ask(c, "%s", request(i, more));
}

static inline void expect_request(client *c, size_t i, const char *more, const char *code) {
    reply r = ask_request(c, i, more);
    if (strcmp(code_of(&r), code) != 0) {
        fail_msg("%s instead of %s: %s (%s)", code_of(&r), code, request(i, more), r.ended ? "" : text_of(&r, "why"));
    }
    reply_free(&r);
}

/* ---- followers ---- */

static inline size_t waiting(world *w) {
    container *c = found(w);
    size_t n = follow_waiting(c->space);
    container_give(c);
    return n;
}

static inline const char *position_now(client *c) {
    reply r = ask(c, "{\"do\":\"follow\"," IN ",\"now\":true}");
    assert_string_equal(code_of(&r), "OK");
    assert_int_equal(rows_of(&r), 0);
    const char *from = next_of(&r);
    assert_true(from[0]);
    reply_free(&r);
    return from;
}

static inline void begin_to_follow(world *w, client *c, const char *from, unsigned wait_ms, size_t waiters) {
    char json[32768];
    snprintf(json, sizeof json, "{\"do\":\"follow\"," IN ",\"wait_ms\":%u%s}", wait_ms, from);
    send_json(c, json);
    AWAIT(waiting(w) == waiters);
}

static inline void expect_followed(client *c, const char *values) {
    reply r = next_reply(c);
    assert_string_equal(code_of(&r), "OK");
    assert_string_equal(values_of(&r, "v"), values);
    reply_free(&r);
}

/* Runs a test over both kinds of store. */
#define BOTH(name)                                                                                                                         \
    static void name##_test(void **state) {                                                                                                \
        (void)state;                                                                                                                       \
        name(false);                                                                                                                       \
        name(true);                                                                                                                        \
    }
