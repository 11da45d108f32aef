/* Every call, through the echo front end and a real socket: results, bad input, throttling, faults, disconnects, server shutdown, splits
 * between pages. Over a memory store and over RocksDB; with TESELA_HOMES=2 on two stores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>

#include "account/scripts.h"
#include "base/base64.h"
#include "echo_front.h"
#include "item/follow.h"
#include "item/range_info.h"
#include "item_harness.h"
#include "rounds.h"

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

static int64_t now_ms(void) {
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

static void *run_server(void *server) {
    net_run(server);
    return NULL;
}

static void serve(world *w) {
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

static void world_open(world *w, bool rocks, bool limited) {
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

static void world_stop(world *w) {
    net_stop(w->server);
    pthread_join(w->thread, NULL);
    w->running = false;
}

static void world_close(world *w) {
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

static container *found(world *w) {
    return harness_found(&w->h, "d", "c");
}

static size_t count_ranges(world *w) {
    container *c = found(w);
    size_t n = range_count(c);
    container_give(c);
    return n;
}

static uint32_t id_of_range(world *w, size_t position) {
    container *c = found(w);
    range_info info;
    assert_true(range_info_at(c, position, &info));
    container_give(c);
    return info.range.id;
}

/* Not every range can be split or merged: a split needs two keys, a merge a neighbour in the same store. */
static void split_all(world *w) {
    container *c = found(w);
    size_t before = range_count(c);
    for (size_t i = before; i-- > 0;) {
        err code = account_split(w->h.account, harness_op(&w->h), c, id_of_range(w, i), 2);
        assert_true(code == OK || code == E_BAD_REQUEST);
    }
    assert_true(count_ranges(w) > before);
    container_give(c);
}

static void merge_all(world *w) {
    container *c = found(w);
    size_t before = range_count(c);
    for (size_t i = before - 1; i-- > 0;) {
        err code = account_merge(w->h.account, harness_op(&w->h), c, id_of_range(w, i), id_of_range(w, i + 1));
        assert_true(code == OK || code == E_BAD_REQUEST);
    }
    assert_true(count_ranges(w) < before);
    container_give(c);
}

static void reshape(world *w) {
    count_ranges(w) > 3 ? merge_all(w) : split_all(w);
}

/* ---- the client ---- */

typedef struct client {
    int fd;
    buf in;
    uint32_t stream; /* of the last request */
} client;

/* An answer: its document, and the rows after it. */
typedef struct reply {
    uint32_t stream;
    bool ended; /* the connection has ended */
    buf bytes;
    slice document, rows;
} reply;

static client connect_only(const world *w) {
    client c = {.fd = socket(AF_INET, SOCK_STREAM, 0), .in = buf_init(BUF_NO_LIMIT)};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(w->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = 30};
    setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(connect(c.fd, (struct sockaddr *)&to, sizeof to), 0);
    return c;
}

static void leave(client *c) {
    close(c->fd);
    buf_free(&c->in);
}

static bool send_bytes(client *c, const void *p, size_t n) {
    return send(c->fd, p, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static bool send_document(client *c, const void *document, size_t document_n) {
    uint32_t head[2] = {(uint32_t)(8 + document_n), ++c->stream};
    buf frame = buf_init(BUF_NO_LIMIT);
    buf_add(&frame, head, 8);
    buf_add(&frame, document, document_n);
    bool sent = send_bytes(c, frame.p, frame.n);
    buf_free(&frame);
    return sent;
}

/* Sends a document given as Extended JSON. */
static void send_json(client *c, const char *json) {
    bson_error_t error;
    bson_t *document = bson_new_from_json((const uint8_t *)json, -1, &error);
    if (!document) {
        fail_msg("%s: %s", error.message, json);
    } else {
        assert_true(send_document(c, bson_get_data(document), document->len));
        bson_destroy(document);
    }
}

static void reply_free(reply *r) {
    buf_free(&r->bytes);
    *r = (reply){0};
}

static bool receive_more(client *c) {
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

static reply next_reply(client *c) {
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

static const char *code_of(const reply *r) {
    bson_iter_t it;
    return r->ended ? "ended" : doc_find_key(r->document, SLICE_LIT("code"), &it) ? bson_iter_utf8(&it, NULL) : "none";
}

static int64_t number_of(const reply *r, const char *name) {
    bson_iter_t it;
    assert_true(doc_find_key(r->document, slice_str(name), &it));
    return bson_iter_as_int64(&it);
}

static const char *text_of(const reply *r, const char *name) {
    bson_iter_t it;
    assert_true(doc_find_key(r->document, slice_str(name), &it));
    return bson_iter_utf8(&it, NULL);
}

/* `next` as {"$binary": …} of Extended JSON; empty: absent. In one of four static buffers. */
static const char *next_of(const reply *r) {
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
static const char *values_of(const reply *r, const char *name) {
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

static size_t rows_of(const reply *r) {
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

static reply authenticate(client *c, const char *password) {
    char message[128], base64[256];
    buf encoded = buf_init(BUF_NO_LIMIT);
    int n = snprintf(message, sizeof message, "%cme%c%s", 0, 0, password);
    base64_encode(&encoded, slice_of(message, (size_t)n));
    snprintf(base64, sizeof base64, "%.*s", (int)encoded.n, encoded.p);
    buf_free(&encoded);
    return ask(c, "{\"do\":\"auth\",\"sasl\":{\"$binary\":{\"base64\":\"%s\",\"subType\":\"00\"}}}", base64);
}

static client client_with(const world *w, const char *password) {
    client c = connect_only(w);
    reply r = authenticate(&c, password);
    assert_string_equal(code_of(&r), "OK");
    reply_free(&r);
    return c;
}

static client client_open(const world *w) {
    return client_with(w, KEY);
}

/* ---- a container and its items: item i has id "i05", v 5 and partition p0 … p4 ---- */

static void make_container(client *c, const char *id, const char *rows, unsigned throughput) {
    EXPECT(c, "OK",
           "{\"do\":\"make\"," DB "\"settings\":{\"id\":\"%s\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}},"
           "\"throughput\":%u%s%s}",
           id, throughput, rows ? ",\"rows\":" : "", rows ? rows : "");
}

static void put(client *c, int i, int v) {
    EXPECT(c, "OK", "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":%d,\"item\":{\"id\":\"i%02d\",\"pk\":\"p%d\",\"v\":%d}}]}", ITEM_UPSERT, i,
           i % PARTITIONS, v);
}

static void fill(client *c) {
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

static const char *request(size_t i, const char *more) {
    static char json[1024];
    snprintf(json, sizeof json, "%s%s}", i < READS ? reads[i] : writes[i - READS], more);
    return json;
}

static reply ask_request(client *c, size_t i, const char *more) {
    return ask(c, "%s", request(i, more));
}

static void expect_request(client *c, size_t i, const char *more, const char *code) {
    reply r = ask_request(c, i, more);
    if (strcmp(code_of(&r), code) != 0) {
        fail_msg("%s instead of %s: %s (%s)", code_of(&r), code, request(i, more), r.ended ? "" : text_of(&r, "why"));
    }
    reply_free(&r);
}

/* ---- results of each call ---- */

static void items_are_read_and_written(client *c) {
    reply r = ask(c, "{\"do\":\"read\"," IN ",\"at\":{\"pk\":\"p2\",\"id\":\"i07\"}}");
    assert_string_equal(values_of(&r, "v"), "7 ");
    assert_true(number_of(&r, "lsn") > 0);
    reply_free(&r);
    EXPECT(c, "E_NOT_FOUND", "{\"do\":\"read\"," IN ",\"at\":{\"pk\":\"p2\",\"id\":\"none\"}}");
    r = ask(c,
            "{\"do\":\"write\"," IN ",\"atomic\":true,\"ops\":["
            "{\"kind\":%d,\"item\":{\"id\":\"i07\",\"pk\":\"p2\"},\"edit\":%d,\"with\":{\"operations\":[{\"op\":\"incr\",\"path\":\"/v\","
            "\"value\":100}]}},{\"kind\":%d,\"item\":{\"id\":\"new\",\"pk\":\"p2\"},\"if\":%d}]}",
            ITEM_EDIT, ITEM_EDIT_PATCH, ITEM_CREATE, ITEM_CONDITION_ABSENT);
    assert_string_equal(code_of(&r), "OK");
    assert_int_equal(rows_of(&r), 2);
    assert_string_equal(values_of(&r, "v"), "107 ");
    reply_free(&r);
    EXPECT(c, "OK", "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":%d,\"item\":{\"id\":\"new\",\"pk\":\"p2\"}}]}", ITEM_DELETE);
    put(c, 7, 7);
}

/* Reads all pages of a verb; returns the property of every row, in order. */
static const char *all_pages(client *c, const char *verb, const char *name, void (*between)(world *w), world *w) {
    static char all[8192];
    char json[32768];
    size_t pages = 0;
    const char *from = "";
    all[0] = 0;
    for (bool more = true; more; pages++) {
        snprintf(json, sizeof json, "{%s,\"max\":7%s}", verb, from);
        reply r = ask(c, "%s", json);
        assert_string_equal(code_of(&r), "OK");
        assert_true(pages < 200);
        strcat(all, values_of(&r, name));
        from = next_of(&r);
        more = from[0] && (strstr(verb, "follow") == NULL || rows_of(&r));
        reply_free(&r);
        if (pages == 1 && between) {
            between(w);
        }
    }
    assert_true(pages > 2);
    return all;
}

static int compare_words(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Each item once, in any order. */
static void expect_all_ids(const char *ids) {
    char copy[8192], *words[2 * ITEMS], *rest = NULL;
    size_t n = 0;
    snprintf(copy, sizeof copy, "%s", ids);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        assert_true(n < 2 * ITEMS);
        words[n++] = word;
    }
    if (n != ITEMS) {
        fail_msg("%zu ids: %s", n, ids);
    }
    qsort(words, n, sizeof *words, compare_words);
    for (int i = 0; i < ITEMS; i++) {
        char id[16];
        snprintf(id, sizeof id, "i%02d", i);
        assert_string_equal(words[i], id);
    }
}

static void expect_sorted(const char *numbers, bool down) {
    long last = down ? ITEMS : -1, value, n = 0;
    for (char *end; (value = strtol(numbers, &end, 10)), end != numbers; numbers = end, n++) {
        assert_int_equal(value, down ? last - 1 : last + 1);
        last = value;
    }
    assert_int_equal(n, ITEMS);
}

static void pages_give_each_item_once(client *c, world *w, void (*between)(world *w)) {
    expect_all_ids(all_pages(c, "\"do\":\"feed\"," IN, "id", between, w));
    expect_all_ids(all_pages(c, "\"do\":\"rows\"," IN, "id", between, w));
    expect_all_ids(all_pages(c, "\"do\":\"find\"," IN, "id", between, w));
    expect_all_ids(all_pages(c, "\"do\":\"follow\"," IN, "id", between, w));
    expect_sorted(all_pages(c, "\"do\":\"find\"," IN ",\"order\":[{\"at\":[\"v\"]}]", "v", between, w), false);
    expect_sorted(all_pages(c, "\"do\":\"find\"," IN ",\"order\":[{\"at\":[\"v\"],\"down\":true}]", "v", between, w), true);
}

static void rows_come_in_key_order(client *c) {
    reply r = ask(c, "{\"do\":\"rows\"," IN ",\"of\":{\"pk\":\"p3\"},\"max\":3}");
    assert_string_equal(values_of(&r, "id"), "i03 i08 i13 ");
    reply_free(&r);
    r = ask(c, "{\"do\":\"rows\"," IN ",\"of\":{\"pk\":\"p3\"},\"max\":3,\"down\":true}");
    assert_string_equal(values_of(&r, "id"), "i38 i33 i28 ");
    reply_free(&r);
    make_container(c, "t", "{\"typed\":true,\"key\":[{\"path\":\"/n\"}],\"clustered\":true}", 400);
    for (int i = 10; i > 0; i--) {
        EXPECT(c, "OK", "{\"do\":\"write\"," DB "\"in\":\"t\",\"ops\":[{\"kind\":%d,\"item\":{\"pk\":1,\"n\":%d}}]}", ITEM_CREATE, i * 3);
    }
    r = ask(c, "{\"do\":\"rows\"," DB "\"in\":\"t\",\"of\":{\"pk\":1},\"ge\":[10],\"max\":4}");
    assert_string_equal(values_of(&r, "n"), "12 15 18 21 ");
    reply_free(&r);
}

static void conditions_find_items(client *c) {
    reply r = ask(c, "{\"do\":\"find\"," IN ",\"where\":{\"at\":[\"v\"],\"ge\":10,\"lt\":13},\"order\":[{\"at\":[\"v\"]}]}");
    assert_string_equal(values_of(&r, "v"), "10 11 12 ");
    reply_free(&r);
    r = ask(c, "{\"do\":\"find\"," IN ",\"of\":{\"pk\":\"p0\"},\"where\":{\"at\":[\"v\"],\"in\":[5,6,35]}}");
    assert_string_equal(values_of(&r, "v"), "5 35 ");
    reply_free(&r);
    r = ask(c, "{\"do\":\"query\"," IN ",\"text\":\"SELECT VALUE COUNT(1) FROM c WHERE c.v >= 20\"}");
    assert_string_equal(text_of(&r, "json"), "20");
    reply_free(&r);
}

static void changes_are_told(client *c) {
    reply r = ask(c, "{\"do\":\"changes\"," IN ",\"of\":{\"pk\":\"p4\"},\"max\":100}");
    assert_int_equal(rows_of(&r), ITEMS / PARTITIONS);
    int64_t after = number_of(&r, "after");
    reply_free(&r);
    r = ask(c, "{\"do\":\"changes\"," IN ",\"of\":{\"pk\":\"p4\"},\"after\":{\"$numberLong\":\"%ld\"}}", (long)after);
    assert_int_equal(rows_of(&r), 0);
    reply_free(&r);
    EXPECT(c, "E_RANGE_GONE", "{\"do\":\"changes\"," IN "}"); /* the call is for one range, and there are three */
}

static void scripts_run(world *w, client *c) {
    script_creation make = {
        .database = harness_name("d"),
        .container = harness_name("c"),
        .kind = ACCOUNT_PROCEDURE,
        .settings =
            harness_bson(&w->h, "{\"id\":\"hello\",\"body\":\"function (who) { getContext().getResponse().setBody('hello, ' + who); }\"}"),
    };
    assert_int_equal(harness_change(&w->h, &make, account_create_script), OK);
    account_script_give(make.script_out);
    reply r = ask(c, "{\"do\":\"run\"," IN ",\"of\":{\"pk\":\"p1\"},\"script\":\"hello\",\"with\":\"[\\\"echo\\\"]\"}");
    assert_string_equal(code_of(&r), "OK");
    assert_string_equal(text_of(&r, "json"), "\"hello, echo\"");
    reply_free(&r);
    EXPECT(c, "E_NOT_FOUND", "{\"do\":\"run\"," IN ",\"of\":{\"pk\":\"p1\"},\"script\":\"other\"}");
}

static void the_rest(client *c) {
    reply r = ask(c, "{\"do\":\"usage\"," IN "}");
    assert_int_equal(number_of(&r, "items"), ITEMS);
    assert_int_equal(number_of(&r, "partitions"), PARTITIONS);
    assert_int_equal(number_of(&r, "ranges"), 3);
    reply_free(&r);
    r = ask(c, "{\"do\":\"attach\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"i01\"},\"item\":{\"id\":\"photo\",\"size\":3}}");
    assert_string_equal(code_of(&r), "OK");
    reply_free(&r);
    r = ask(c, "{\"do\":\"attachments\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"i01\"}}");
    assert_string_equal(values_of(&r, "size"), "3 ");
    reply_free(&r);
    EXPECT(c, "E_OWNER_NOT_FOUND", "{\"do\":\"attachments\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"none\"}}");
    r = ask(c, "{\"do\":\"work\",\"with\":{\"n\":5}}");
    assert_string_equal(values_of(&r, "n"), "5 ");
    reply_free(&r);
}

static void every_call_answers(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w);
    fill(&c);
    items_are_read_and_written(&c);
    pages_give_each_item_once(&c, &w, NULL);
    rows_come_in_key_order(&c);
    conditions_find_items(&c);
    changes_are_told(&c);
    the_rest(&c);
    scripts_run(&w, &c);
    leave(&c);
    world_close(&w);
}

static void splits_and_merges_between_pages(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w);
    fill(&c);
    pages_give_each_item_once(&c, &w, reshape);
    leave(&c);
    world_close(&w);
}

/* ---- transactions ---- */

static void write_within(client *c, int i, int v) {
    EXPECT(c, "OK", "{\"do\":\"within\"," IN ",\"op\":{\"kind\":%d,\"item\":{\"id\":\"i%02d\",\"pk\":\"p%d\",\"v\":%d}}}", ITEM_UPSERT, i,
           i % PARTITIONS, v);
}

static void expect_item(client *c, const char *verb, int i, const char *v) {
    reply r = ask(c, "{\"do\":\"%s\"," IN ",\"at\":{\"id\":\"i%02d\",\"pk\":\"p%d\"}}", verb, i, i % PARTITIONS);
    assert_string_equal(code_of(&r), "OK");
    assert_string_equal(values_of(&r, "v"), v);
    reply_free(&r);
}

static void a_transaction_is_seen_when_it_is_committed(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w), other = client_open(&w);
    fill(&c);
    EXPECT(&c, "E_BAD_REQUEST", "{\"do\":\"within\"," IN "}");
    EXPECT(&c, "OK", "{\"do\":\"begin\"}");
    EXPECT(&c, "E_BAD_REQUEST", "{\"do\":\"begin\"}");
    write_within(&c, 1, 100);
    write_within(&c, 6, 600);
    expect_item(&c, "within", 1, "100 ");
    expect_item(&other, "read", 1, "1 ");
    reply r = ask(&c, "{\"do\":\"within\"," IN ",\"of\":{\"pk\":\"p1\"},\"max\":3}");
    assert_string_equal(values_of(&r, "v"), "100 600 11 ");
    reply_free(&r);
    EXPECT(&c, "OK", "{\"do\":\"within\"," IN "}");
    EXPECT(&c, "OK", "{\"do\":\"end\"}");
    expect_item(&other, "read", 1, "100 ");
    expect_item(&other, "read", 6, "600 ");
    leave(&c);
    leave(&other);
    world_close(&w);
}

/* A conflicting commit fails with E_RETRY_WITH; a client that disconnects has written nothing; a server can stop with a transaction
 * open. */
static void transactions_that_come_to_nothing(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w), other = client_open(&w), left = client_open(&w);
    fill(&c);
    EXPECT(&c, "OK", "{\"do\":\"begin\"}");
    EXPECT(&left, "OK", "{\"do\":\"begin\"}");
    write_within(&c, 2, 200);
    write_within(&left, 3, 300);
    put(&other, 2, 222);
    EXPECT(&c, "E_RETRY_WITH", "{\"do\":\"within\"," IN "}");
    EXPECT(&c, "OK", "{\"do\":\"end\"}");
    leave(&left);
    expect_item(&other, "read", 2, "222 ");
    expect_item(&other, "read", 3, "3 ");
    EXPECT(&other, "OK", "{\"do\":\"begin\"}");
    write_within(&other, 4, 400);
    world_stop(&w);
    leave(&c);
    leave(&other);
    world_close(&w);
}

/* ---- following ---- */

static size_t waiting(world *w) {
    container *c = found(w);
    size_t n = follow_waiting(c->space);
    container_give(c);
    return n;
}

static const char *position_now(client *c) {
    reply r = ask(c, "{\"do\":\"follow\"," IN ",\"now\":true}");
    assert_string_equal(code_of(&r), "OK");
    assert_int_equal(rows_of(&r), 0);
    const char *from = next_of(&r);
    assert_true(from[0]);
    reply_free(&r);
    return from;
}

static void begin_to_follow(world *w, client *c, const char *from, unsigned wait_ms, size_t waiters) {
    char json[32768];
    snprintf(json, sizeof json, "{\"do\":\"follow\"," IN ",\"wait_ms\":%u%s}", wait_ms, from);
    send_json(c, json);
    AWAIT(waiting(w) == waiters);
}

static void expect_followed(client *c, const char *values) {
    reply r = next_reply(c);
    assert_string_equal(code_of(&r), "OK");
    assert_string_equal(values_of(&r, "v"), values);
    reply_free(&r);
}

static void followers_are_woken(bool rocks) {
    enum { FOLLOWERS = 20 };
    world w;
    world_open(&w, rocks, false);
    client writer = client_open(&w), followers[FOLLOWERS];
    fill(&writer);
    const char *from = position_now(&writer);
    for (size_t i = 0; i < FOLLOWERS; i++) {
        followers[i] = client_open(&w);
        begin_to_follow(&w, &followers[i], from, 60000, i + 1);
    }
    put(&writer, 3, 300);
    for (size_t i = 0; i < FOLLOWERS; i++) {
        expect_followed(&followers[i], "300 ");
        leave(&followers[i]);
    }
    assert_int_equal(waiting(&w), 0);
    leave(&writer);
    world_close(&w);
}

/* Spurious wakes and splits do not end a wait; a timeout does, and so does the deletion of the container. */
static void a_follower_waits_for_changes_only(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w), writer = client_open(&w);
    fill(&writer);
    const char *from = position_now(&c);
    int64_t before = now_ms();
    reply r = ask(&c, "{\"do\":\"follow\"," IN ",\"wait_ms\":120%s}", from);
    assert_string_equal(code_of(&r), "OK");
    assert_int_equal(rows_of(&r), 0);
    assert_true(now_ms() - before >= 120);
    from = next_of(&r);
    reply_free(&r);
    begin_to_follow(&w, &c, from, 60000, 1);
    EXPECT(&writer, "OK", "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":%d,\"item\":{\"id\":\"i39\",\"pk\":\"p4\"}}]}", ITEM_DELETE);
    split_all(&w);
    AWAIT(waiting(&w) == 1); /* waiting again */
    put(&writer, 39, 390);
    expect_followed(&c, "390 ");
    from = position_now(&c);
    begin_to_follow(&w, &c, from, 60000, 1);
    assert_int_equal(harness_delete_container(&w.h, "d", "c"), OK);
    r = next_reply(&c);
    assert_string_equal(code_of(&r), "E_OWNER_NOT_FOUND");
    reply_free(&r);
    leave(&c);
    leave(&writer);
    world_close(&w);
}

/* ---- clients that leave, a server that stops ---- */

static void a_client_that_leaves_is_not_waited_for(bool rocks) {
    enum { FOLLOWERS = 8 };
    world w;
    world_open(&w, rocks, false);
    client writer = client_open(&w), c = client_open(&w);
    fill(&writer);
    const char *from = position_now(&writer);
    for (size_t i = 0; i < FOLLOWERS; i++) { /* on one connection */
        begin_to_follow(&w, &c, from, 60000, i + 1);
    }
    leave(&c);
    AWAIT(waiting(&w) == 0);
    put(&writer, 1, 100);
    c = client_open(&w);
    uint32_t id;
    assert_int_equal(faults_add(w.faults, &(fault){.range = -1, .percent = 100, .delay_ms = 100}, &id), OK);
    for (size_t i = 0; i < READS + WRITES; i++) {
        send_json(&c, request(i, ""));
    }
    AWAIT(faults_hits(w.faults) >= READS + WRITES);
    leave(&c);
    AWAIT(net_server_stats(w.server).requests == 0);
    assert_true(faults_remove(w.faults, id));
    expect_request(&writer, 0, "", "OK");
    leave(&writer);
    world_close(&w);
}

static void a_server_that_stops_answers_what_is_in_flight(bool rocks) {
    enum { FOLLOWERS = 5 };
    world w;
    world_open(&w, rocks, false);
    client follows = client_open(&w), delayed = client_open(&w);
    fill(&follows);
    const char *from = position_now(&follows);
    for (size_t i = 0; i < FOLLOWERS; i++) {
        begin_to_follow(&w, &follows, from, 60000, i + 1);
    }
    uint32_t id;
    assert_int_equal(faults_add(w.faults, &(fault){.range = -1, .percent = 100, .delay_ms = 60000}, &id), OK);
    for (size_t i = 0; i < READS + WRITES; i++) {
        send_json(&delayed, request(i, ""));
    }
    AWAIT(faults_hits(w.faults) >= READS + WRITES);
    int64_t before = now_ms();
    world_stop(&w);
    assert_true(now_ms() - before < 20000);
    for (size_t i = 0; i < FOLLOWERS; i++) {
        expect_followed(&follows, "");
    }
    for (size_t i = 0; i < READS + WRITES; i++) {
        reply r = next_reply(&delayed);
        assert_true(strcmp(code_of(&r), "OK") == 0 || strcmp(code_of(&r), "E_UNAVAILABLE") == 0);
        reply_free(&r);
    }
    reply r = next_reply(&delayed);
    assert_true(r.ended);
    leave(&follows);
    leave(&delayed);
    world_close(&w);
}

/* ---- rejections ---- */

static void a_spent_share_is_told(bool rocks) {
    world w;
    world_open(&w, rocks, true);
    client c = client_open(&w);
    make_container(&c, "c", NULL, 400);
    put(&c, 1, 1);
    bool throttled = false;
    for (int i = 0; i < 2000 && !throttled; i++) { /* the clock stands still */
        reply r = ask_request(&c, 0, "");
        throttled = strcmp(code_of(&r), "E_THROTTLED") == 0;
        reply_free(&r);
    }
    assert_true(throttled);
    for (size_t i = 0; i < READS + WRITES; i++) {
        reply r = ask_request(&c, i, "");
        if (strcmp(code_of(&r), "E_THROTTLED") != 0) {
            fail_msg("%s: %s", code_of(&r), request(i, ""));
        }
        assert_true(number_of(&r, "retry_ms") > 0);
        reply_free(&r);
    }
    EXPECT(&c, "OK", "{\"do\":\"usage\"," IN "}"); /* no charge */
    leave(&c);
    world_close(&w);
}

static void faults_hit_every_call(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w);
    fill(&c);
    uint32_t id;
    for (size_t i = 0; i < READS + WRITES; i++) {
        fault once = {.range = -1, .percent = 100, .count = 1, .code = E_UNAVAILABLE, .retry_after_ms = 7};
        once.operation = i < READS ? FAULT_READ : FAULT_WRITE;
        assert_int_equal(faults_add(w.faults, &once, &id), OK);
        reply r = ask_request(&c, i, "");
        assert_string_equal(code_of(&r), "E_UNAVAILABLE");
        assert_int_equal(number_of(&r, "retry_ms"), 7);
        reply_free(&r);
        expect_request(&c, i, "", "OK");
        fault late = {.range = -1, .percent = 100, .count = 1, .delay_ms = 30};
        assert_int_equal(faults_add(w.faults, &late, &id), OK);
        int64_t before = now_ms();
        expect_request(&c, i, "", "OK");
        assert_true(now_ms() - before >= 30);
    }
    assert_int_equal(faults_hits(w.faults), 2 * (READS + WRITES));
    assert_int_equal(faults_add(w.faults, &(fault){.range = -1, .percent = 100, .count = 2, .code = E_UNAVAILABLE}, &id), OK);
    EXPECT(&c, "E_UNAVAILABLE", "{\"do\":\"usage\"," IN "}");
    EXPECT(&c, "E_UNAVAILABLE", "{\"do\":\"changes\"," IN ",\"of\":{\"pk\":\"p2\"}}");
    EXPECT(&c, "OK", "{\"do\":\"usage\"," IN "}");
    leave(&c);
    world_close(&w);
}

static void what_was_seen_is_checked(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w);
    make_container(&c, "c", NULL, 400);
    put(&c, 1, 1);
    for (size_t i = 0; i < READS; i++) {
        expect_request(&c, i, ",\"range\":0,\"lsn\":1", "OK");
        expect_request(&c, i, ",\"range\":0,\"lsn\":1000000", "E_SESSION_NOT_AVAILABLE");
    }
    EXPECT(&c, "E_SESSION_NOT_AVAILABLE", "{\"do\":\"usage\"," IN ",\"range\":0,\"lsn\":1000000}");
    uint32_t id;
    fault late = {.range = -1, .percent = 100, .count = 1, .delay_ms = 5}; /* only a delay */
    assert_int_equal(faults_add(w.faults, &late, &id), OK);
    expect_request(&c, 0, ",\"range\":0,\"lsn\":1000000", "E_SESSION_NOT_AVAILABLE");
    leave(&c);
    world_close(&w);
}

/* ---- authentication and malformed requests ---- */

static void keys_are_asked_for(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = connect_only(&w);
    EXPECT(&c, "E_UNAUTHORIZED", "{\"do\":\"usage\"," IN "}");
    leave(&c);
    c = connect_only(&w);
    reply r = authenticate(&c, "d3Jvbmc=");
    assert_string_equal(code_of(&r), "E_UNAUTHORIZED");
    reply_free(&r);
    r = next_reply(&c);
    assert_true(r.ended);
    assert_int_equal(access_attempts_total(w.attempts, ATTEMPT_WRONG), 1);
    leave(&c);
    client owner = client_open(&w);
    fill(&owner);
    c = client_with(&w, READ_KEY);
    expect_request(&c, 0, "", "OK");
    for (size_t i = READS; i < READS + WRITES; i++) {
        expect_request(&c, i, "", "E_FORBIDDEN");
    }
    leave(&c);
    leave(&owner);
    world_close(&w);
}

static void wrong_requests_are_refused(bool rocks) {
    static const char *const wrong[] = {
        "{}",
        "{\"do\":\"dance\"}",
        "{\"do\":5}",
        "{\"do\":\"read\"," IN "}",
        "{\"do\":\"read\"," DB "\"at\":{\"pk\":\"p\",\"id\":\"i\"}}",
        "{\"do\":\"read\"," IN ",\"at\":{\"pk\":[1],\"id\":\"i\"}}",
        "{\"do\":\"read\"," IN ",\"at\":{\"pk\":\"p\"}}",
        "{\"do\":\"write\"," IN "}",
        "{\"do\":\"write\"," IN ",\"ops\":[5]}",
        "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":77,\"item\":{\"pk\":\"p\",\"id\":\"i\"}}]}",
        "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":0,\"item\":{\"pk\":\"p\",\"id\":5}}]}",
        "{\"do\":\"write\"," IN ",\"atomic\":true,\"ops\":[{\"kind\":4,\"item\":{\"pk\":\"p\",\"id\":\"i\"},\"edit\":63}]}",
        "{\"do\":\"write\"," IN ",\"atomic\":true,\"ops\":[{\"kind\":0,\"item\":{\"pk\":\"p\",\"id\":\"i\"},\"if\":63}]}",
        "{\"do\":\"find\"," IN ",\"where\":{\"at\":5}}",
        "{\"do\":\"find\"," IN ",\"order\":[{\"at\":[null]}]}",
        "{\"do\":\"find\"," IN ",\"where\":{\"filter\":55}}",
        "{\"do\":\"usage\"}",
        "{\"do\":\"feed\"}",
    };
    static const char *const pages[] = {"feed", "rows", "find", "follow"};
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w);
    fill(&c);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        reply r = ask(&c, "%s", wrong[i]);
        if (strcmp(code_of(&r), "E_BAD_REQUEST") != 0) {
            fail_msg("%s: %s", code_of(&r), wrong[i]);
        }
        reply_free(&r);
    }
    EXPECT(&c, "E_NOT_FOUND", "{\"do\":\"usage\"," DB "\"in\":\"none\"}");
    EXPECT(&c, "E_BAD_QUERY", "{\"do\":\"query\"," IN ",\"text\":\"SELEC\"}");
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        EXPECT(&c, "E_BAD_CONTINUATION", "{\"do\":\"%s\"," IN ",\"from\":{\"$binary\":{\"base64\":\"AAECAwQ=\",\"subType\":\"00\"}}}",
               pages[i]);
    }
    leave(&c);
    world_close(&w);
}

/* Requests of each verb with some bytes changed: each is answered, and the server keeps running. */
static void changed_bytes_do_no_harm(bool rocks) {
    world w;
    random_source dice;
    world_open(&w, rocks, false);
    client c = client_open(&w);
    fill(&c);
    random_seed(&dice, 20261118);
    for (int round = 0; round < ROUNDS(1200); round++) {
        const char *json = request((size_t)round % (READS + WRITES), "");
        bson_t *document = bson_new_from_json((const uint8_t *)json, -1, NULL);
        assert_non_null(document);
        char *bytes = arena_alloc(&w.h.arena, document->len);
        memcpy(bytes, bson_get_data(document), document->len);
        for (uint64_t n = 1 + random_below(&dice, 3); n; n--) {
            bytes[random_below(&dice, document->len)] = (char)random_below(&dice, 256);
        }
        assert_true(send_document(&c, bytes, document->len));
        bson_destroy(document);
        reply r = next_reply(&c);
        assert_false(r.ended);
        assert_int_equal(r.stream, c.stream);
        reply_free(&r);
    }
    assert_true(send_bytes(&c, "\4\0\0\0\1\0\0\0", 8)); /* shorter than its header */
    reply r = next_reply(&c);
    assert_string_equal(code_of(&r), "E_BAD_REQUEST");
    reply_free(&r);
    r = next_reply(&c);
    assert_true(r.ended);
    leave(&c);
    c = client_open(&w);
    expect_request(&c, 7, "", "OK");
    leave(&c);
    world_close(&w);
}

/* Runs each test over both kinds of store. */
#define BOTH(name)                                                                                                                         \
    static void name##_test(void **state) {                                                                                                \
        (void)state;                                                                                                                       \
        name(false);                                                                                                                       \
        name(true);                                                                                                                        \
    }
BOTH(every_call_answers)
BOTH(splits_and_merges_between_pages)
BOTH(a_transaction_is_seen_when_it_is_committed)
BOTH(transactions_that_come_to_nothing)
BOTH(followers_are_woken)
BOTH(a_follower_waits_for_changes_only)
BOTH(a_client_that_leaves_is_not_waited_for)
BOTH(a_server_that_stops_answers_what_is_in_flight)
BOTH(a_spent_share_is_told)
BOTH(faults_hit_every_call)
BOTH(what_was_seen_is_checked)
BOTH(keys_are_asked_for)
BOTH(wrong_requests_are_refused)
BOTH(changed_bytes_do_no_harm)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_answers_test),
        cmocka_unit_test(splits_and_merges_between_pages_test),
        cmocka_unit_test(a_transaction_is_seen_when_it_is_committed_test),
        cmocka_unit_test(transactions_that_come_to_nothing_test),
        cmocka_unit_test(followers_are_woken_test),
        cmocka_unit_test(a_follower_waits_for_changes_only_test),
        cmocka_unit_test(a_client_that_leaves_is_not_waited_for_test),
        cmocka_unit_test(a_server_that_stops_answers_what_is_in_flight_test),
        cmocka_unit_test(a_spent_share_is_told_test),
        cmocka_unit_test(faults_hit_every_call_test),
        cmocka_unit_test(what_was_seen_is_checked_test),
        cmocka_unit_test(keys_are_asked_for_test),
        cmocka_unit_test(wrong_requests_are_refused_test),
        cmocka_unit_test(changed_bytes_do_no_harm_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
