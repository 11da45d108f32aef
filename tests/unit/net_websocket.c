/* WebSockets: the handshake, messages of all shapes, bounds and the closing handshake, as raw bytes; and an independent client.
 *
 * Messages are echoed, with these exceptions: "hold" is echoed at release, "bytes N" is answered with N letters, "many N" with N messages,
 * "close N" closes the connection with that code, "trust" authenticates, "nothing" is not answered, and "state" returns the initial state
 * of the connection. */
#include "net_harness.h"

#include <openssl/evp.h>
#include <sys/wait.h>

#include "net/loop_int.h"
#include "net/websocket.h"

enum { MESSAGE_MAX = 1 << 20, UNTRUSTED_MAX = 100000, IN_FLIGHT = 8 };

typedef struct sockets {
    harness *h;
    frames_front front;
    pthread_mutex_t lock;
    frames_request *held[64];
    unsigned held_n;
    _Atomic unsigned handled, opened, closed, left;
    atomic_bool released;
} sockets;

typedef struct socket_state {
    char word[16];
} socket_state;

static void echo_message(frames_request *r) {
    buf_add_slice(frames_out(r), r->frame);
    frames_end(r);
}

static void answer_letters(frames_request *r, uint64_t n) {
    buf *out = frames_out(r);
    for (uint64_t i = 0; i < n && buf_ok(out); i++) {
        buf_add_byte(out, 'x');
    }
    frames_end(r);
}

static void answer_many(frames_request *r) {
    uint64_t left = 0;
    slice_to_u64(slice_skip(r->frame, 5), &left);
    for (uint64_t i = 0; i + 1 < left; i++) {
        frames_request *more = frames_begin(r->conn);
        assert_non_null(more);
        more->text = true;
        buf_addf(frames_out(more), "part %u", (unsigned)i);
        frames_end(more);
    }
    buf_addf(frames_out(r), "part %u", (unsigned)left - 1);
    frames_end(r);
}

static void hold_message(sockets *s, frames_request *r) {
    pthread_mutex_lock(&s->lock);
    bool keep = !s->released;
    if (keep) {
        s->held[s->held_n++] = r;
    }
    pthread_mutex_unlock(&s->lock);
    if (!keep) {
        echo_message(r);
    }
}

static bool begins(const frames_request *r, const char *word) {
    return slice_starts(r->frame, slice_str(word));
}

static void on_message(frames_request *r) {
    sockets *s = r->context;
    uint64_t n = 0;
    s->handled++;
    if (begins(r, "hold")) {
        hold_message(s, r);
    } else if (begins(r, "bytes ")) {
        slice_to_u64(slice_skip(r->frame, 6), &n);
        answer_letters(r, n);
    } else if (begins(r, "many ")) {
        answer_many(r);
    } else if (begins(r, "close ")) {
        slice_to_u64(slice_skip(r->frame, 6), &n);
        websocket_close(r->conn, (uint16_t)n, SLICE_LIT("as you wish"));
        echo_message(r);
    } else if (begins(r, "trust")) {
        frames_trust(r->conn);
        echo_message(r);
    } else if (begins(r, "nothing")) {
        frames_end(r);
    } else if (begins(r, "state")) {
        buf_addf(frames_out(r), "%s", ((socket_state *)frames_state(r->conn))->word);
        frames_end(r);
    } else {
        echo_message(r);
    }
}

static void on_refusal(frames_request *r, err code) {
    buf_addf(frames_out(r), "refused: %s", err_lookup(code)->name);
    frames_end(r);
}

static void on_opened(frames_conn *conn) {
    ((sockets *)frames_context(conn))->opened++;
}

static void on_closed(frames_conn *conn) {
    ((sockets *)frames_context(conn))->closed++;
}

static sockets *current; /* global, since the harness's front end has its own context */

static void on_request(http_request *r) {
    if (!websocket_wanted(r)) {
        handle(r);
        return;
    }
    if (slice_eq(r->path, SLICE_LIT("/refused"))) {
        http_reply_start(r, 403);
        http_reply_end(r);
        return;
    }
    socket_state state = {.word = "given"};
    bool graph = websocket_offers(r, SLICE_LIT("graph"));
    websocket_accept(r, &current->front, graph ? "graph" : NULL, slice_eq(r->path, SLICE_LIT("/state")) ? &state : NULL);
}

/* Also enables TLS if a folder for its certificate is given. */
static sockets *sockets_open_tls(const net_options *o, const char *folder) {
    char why[256];
    sockets *s = mem_zero(sizeof *s);
    current = s;
    pthread_mutex_init(&s->lock, NULL);
    s->front = (frames_front){
        .name = "echo",
        .untrusted = {.frame_bytes = UNTRUSTED_MAX, .in_flight = IN_FLIGHT, .in_flight_bytes = 1 << 20},
        .trusted = {.frame_bytes = MESSAGE_MAX, .in_flight = IN_FLIGHT, .in_flight_bytes = 1 << 22},
        .state_bytes = sizeof(socket_state),
        .opened = on_opened,
        .closed = on_closed,
        .handle = on_message,
        .refuse = on_refusal,
        .context = s,
    };
    s->h = harness_open(o);
    s->h->front.websockets = true;
    s->h->front.handle = on_request;
    if (folder) {
        assert_int_equal(net_tls(s->h->server, folder, NULL, NULL, why, sizeof why), OK);
    }
    harness_run(s->h);
    return s;
}

static sockets *sockets_open(const net_options *o) {
    return sockets_open_tls(o, NULL);
}

static sockets *sockets_start(void) {
    net_options o = harness_options();
    return sockets_open(&o);
}

static void sockets_close(sockets *s) {
    harness_close(s->h);
    assert_int_equal(s->opened, s->closed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static unsigned held(sockets *s) {
    pthread_mutex_lock(&s->lock);
    unsigned n = s->held_n;
    pthread_mutex_unlock(&s->lock);
    return n;
}

static void run_release(net_task *task) {
    job *j = (job *)task;
    echo_message((frames_request *)(void *)j->request);
    free(j);
}

static void release(sockets *s) {
    pthread_mutex_lock(&s->lock);
    s->released = true;
    for (unsigned i = 0; i < s->held_n; i++) {
        job *j = mem_zero(sizeof *j);
        j->request = (http_request *)(void *)s->held[i];
        j->task.run = run_release;
        net_post(s->held[i]->client.loop, &j->task);
    }
    s->held_n = 0;
    pthread_mutex_unlock(&s->lock);
}

/* ---- the client ---- */

#define HANDSHAKE(path, more)                                                                                                              \
    "GET " path " HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"                                            \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" more "\r\n"

static client upgraded(sockets *s, const char *handshake) {
    client c = client_open(s->h);
    client_send(&c, handshake);
    response r = client_response(&c, true);
    assert_int_equal(r.status, 101);
    assert_string_equal(field_of(&r, "Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="); /* RFC 6455, 1.3 */
    assert_string_equal(field_of(&r, "Upgrade"), "websocket");
    assert_null(field_of(&r, "Content-Length"));
    buf_free(&r.body);
    return c;
}

static client socket_client(sockets *s) {
    return upgraded(s, HANDSHAKE("/", ""));
}

enum { FIN = 0x80, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };

static void add_frame(buf *out, unsigned first, slice payload, bool masked) {
    static const char mask[4] = {0x11, 0x22, 0x33, (char)0x84};
    buf_add_byte(out, (char)first);
    unsigned bit = masked ? 0x80 : 0;
    if (payload.n < 126) {
        buf_add_byte(out, (char)(bit | payload.n));
    } else if (payload.n < 65536) {
        buf_add_byte(out, (char)(bit | 126));
        buf_add_byte(out, (char)(payload.n >> 8));
        buf_add_byte(out, (char)payload.n);
    } else {
        buf_add_byte(out, (char)(bit | 127));
        buf_add_be64(out, payload.n);
    }
    if (masked) {
        buf_add(out, mask, 4);
    }
    for (size_t i = 0; i < payload.n; i++) {
        buf_add_byte(out, (char)(payload.p[i] ^ (masked ? mask[i % 4] : 0)));
    }
}

static void send_frame(client *c, unsigned first, slice payload) {
    buf out = buf_init(BUF_NO_LIMIT);
    add_frame(&out, first, payload, true);
    client_try_send(c, out.p, out.n);
    buf_free(&out);
}

static void send_text(client *c, const char *text) {
    send_frame(c, FIN | TEXT, slice_str(text));
}

typedef struct message {
    int first; /* -1: the connection ended */
    size_t n;
    char text[256];
} message;

static bool have(client *c, size_t n) {
    while (c->in.n < n) {
        if (!client_more(c)) {
            return false;
        }
    }
    return true;
}

static message next_message(client *c) {
    message m = {.first = -1};
    if (!have(c, 2)) {
        return m;
    }
    const unsigned char *p = (const unsigned char *)c->in.p;
    size_t n = p[1], header = n == 127 ? 10 : n == 126 ? 4 : 2;
    assert_true(have(c, header));
    p = (const unsigned char *)c->in.p;
    if (header > 2) {
        n = 0;
        for (size_t i = 2; i < header; i++) {
            n = n << 8 | p[i];
        }
        assert_true(n >= (header == 4 ? 126u : 65536u)); /* the length has its shortest form; and no mask bit, which would make it large */
    }
    assert_true(have(c, header + n));
    m = (message){.first = (unsigned char)c->in.p[0], .n = n};
    memcpy(m.text, c->in.p + header, n < sizeof m.text - 1 ? n : sizeof m.text - 1);
    c->in.n -= header + n;
    memmove(c->in.p, c->in.p + header + n, c->in.n);
    return m;
}

static void expect_message(client *c, int first, const char *text) {
    message m = next_message(c);
    assert_int_equal(m.first, first);
    assert_string_equal(m.text, text);
}

/* Expects the server's close frame with this code, and then the end of the connection. */
static void expect_close(client *c, unsigned code) {
    message m = next_message(c);
    assert_int_equal(m.first, FIN | CLOSE);
    assert_true(m.n >= 2);
    assert_int_equal((unsigned char)m.text[0] << 8 | (unsigned char)m.text[1], code);
    assert_true(client_ended(c));
}

/* ---- the handshake ---- */

static void http_is_upgraded(void **state) {
    (void)state;
    sockets *s = sockets_start();
    client c = client_open(s->h);
    client_send(&c, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n" HANDSHAKE("/", "")); /* after another request, in one write */
    expect_response(&c, 200, NULL);
    response r = client_response(&c, true);
    assert_int_equal(r.status, 101);
    buf_free(&r.body);
    send_text(&c, "hello");
    expect_message(&c, FIN | TEXT, "hello");
    send_frame(&c, FIN | BINARY, SLICE_LIT("\1\2\3"));
    expect_message(&c, FIN | BINARY, "\1\2\3");
    send_frame(&c, FIN | BINARY, SLICE_EMPTY);
    expect_message(&c, FIN | BINARY, "");
    client_close(&c);
    AWAIT(s->closed == 1);
    sockets_close(s);
}

static void messages_may_follow_the_handshake_at_once(void **state) {
    (void)state;
    sockets *s = sockets_start();
    client c = client_open(s->h);
    buf all = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&all, HANDSHAKE("/", ""));
    for (unsigned i = 0; i < 20; i++) {
        add_frame(&all, FIN | TEXT, SLICE_LIT("early"), true);
    }
    assert_true(client_try_send(&c, all.p, all.n));
    response r = client_response(&c, true);
    assert_int_equal(r.status, 101);
    buf_free(&r.body);
    for (unsigned i = 0; i < 20; i++) {
        expect_message(&c, FIN | TEXT, "early");
    }
    buf_free(&all);
    client_close(&c);
    sockets_close(s);
}

static void expect_refused(sockets *s, const char *handshake, int status) {
    client c = client_open(s->h);
    client_send(&c, handshake);
    expect_response(&c, status, NULL);
    client_close(&c);
}

static void improper_handshakes_are_refused(void **state) {
    (void)state;
    sockets *s = sockets_start();
#define HEAD "Host: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    expect_refused(s, "GET / HTTP/1.1\r\n" HEAD "Sec-WebSocket-Version: 13\r\n\r\n", 400);
    expect_refused(s, "GET / HTTP/1.1\r\n" HEAD "Sec-WebSocket-Key: short==\r\nSec-WebSocket-Version: 13\r\n\r\n", 400);
    expect_refused(s, "GET / HTTP/1.1\r\n" HEAD "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j!Q==\r\nSec-WebSocket-Version: 13\r\n\r\n", 400);
    expect_refused(s, "GET / HTTP/1.1\r\n" HEAD "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 8\r\n\r\n", 426);
    expect_refused(s,
                   "POST / HTTP/1.1\r\n" HEAD
                   "Content-Length: 0\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
                   400);
    expect_refused(s, HANDSHAKE("/refused", ""), 403); /* refused by the front end */
    assert_int_equal(s->opened, 0);
    expect_alive(s->h);
    sockets_close(s);
    harness *plain = harness_start(); /* a front end without WebSockets */
    client c = client_open(plain);
    client_send(&c, HANDSHAKE("/", ""));
    expect_response(&c, 400, "refused");
    client_close(&c);
    harness_close(plain);
}

/* The guard also keeps web pages of other sites from connecting by WebSocket. */
static void the_guard_is_asked(void **state) {
    (void)state;
    sockets *s = sockets_start();
    net_guard_turn(s->h->server, true);
    expect_refused(s, HANDSHAKE("/", "Origin: http://evil.example\r\n"), 403);
    assert_int_equal(s->opened, 0);
    client c = upgraded(s, HANDSHAKE("/", ""));
    client_close(&c);
    sockets_close(s);
}

static void subprotocols_are_named(void **state) {
    (void)state;
    sockets *s = sockets_start();
    client c = client_open(s->h);
    client_send(&c, HANDSHAKE("/", "Sec-WebSocket-Protocol: other\r\nSec-WebSocket-Protocol: Graph , graph\r\n"));
    response r = client_response(&c, true);
    assert_int_equal(r.status, 101);
    assert_string_equal(field_of(&r, "Sec-WebSocket-Protocol"), "graph");
    buf_free(&r.body);
    client_close(&c);
    c = client_open(s->h);
    client_send(&c, HANDSHAKE("/", "Sec-WebSocket-Protocol: graphs, Graph\r\n"));
    r = client_response(&c, true);
    assert_int_equal(r.status, 101);
    assert_null(field_of(&r, "Sec-WebSocket-Protocol"));
    buf_free(&r.body);
    client_close(&c);
    sockets_close(s);
}

static void the_front_end_gives_a_state(void **state) {
    (void)state;
    sockets *s = sockets_start();
    client given = upgraded(s, HANDSHAKE("/state", "")), zeros = socket_client(s);
    send_text(&given, "state");
    expect_message(&given, FIN | TEXT, "given");
    send_text(&zeros, "state");
    expect_message(&zeros, FIN | TEXT, "");
    client_close(&given);
    client_close(&zeros);
    sockets_close(s);
}

/* ---- messages ---- */

static void messages_of_all_sizes(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 125, 126, 127, 4095, 4096, 4097, 65535, 65536, 70000, 1 << 20};
    sockets *s = sockets_start();
    client c = socket_client(s);
    send_text(&c, "trust");
    expect_message(&c, FIN | TEXT, "trust");
    static char payload[1 << 20];
    memset(payload, 'p', sizeof payload);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        send_frame(&c, FIN | (i % 2 ? TEXT : BINARY), slice_of(payload, sizes[i]));
        message m = next_message(&c);
        assert_int_equal(m.first, FIN | (i % 2 ? TEXT : BINARY));
        assert_int_equal(m.n, sizes[i]);
        assert_int_equal(m.text[0], 'p');
    }
    client_close(&c);
    sockets_close(s);
}

static void fragments_are_put_together(void **state) {
    (void)state;
    sockets *s = sockets_start();
    client c = socket_client(s);
    send_frame(&c, TEXT, SLICE_LIT("one \xc3"));
    send_frame(&c, FIN | PING, SLICE_LIT("are you there")); /* a ping between fragments */
    send_frame(&c, 0, SLICE_EMPTY);
    send_frame(&c, 0, SLICE_LIT("\xa4 two")); /* a character split over two fragments */
    send_frame(&c, FIN, SLICE_LIT(" three"));
    expect_message(&c, FIN | PONG, "are you there");
    expect_message(&c, FIN | TEXT, "one \xc3\xa4 two three");
    client_close(&c);
    sockets_close(s);
}

/* The bytes may be split into reads anywhere. */
static void torn_frames_are_put_together(void **state) {
    (void)state;
    sockets *s = sockets_start();
    client c = socket_client(s);
    buf all = buf_init(BUF_NO_LIMIT);
    char text[300];
    memset(text, 't', sizeof text);
    add_frame(&all, FIN | TEXT, SLICE_LIT("abc"), true);
    add_frame(&all, FIN | BINARY, slice_of(text, 300), true);
    add_frame(&all, FIN | PING, SLICE_LIT("p"), true);
    add_frame(&all, FIN | TEXT, SLICE_EMPTY, true);
    for (size_t at = 0, step = 1; at < all.n; at += step, step = step % 7 + 1) {
        step = step < all.n - at ? step : all.n - at;
        assert_true(client_try_send(&c, all.p + at, step));
        usleep(300);
    }
    expect_message(&c, FIN | TEXT, "abc");
    assert_int_equal(next_message(&c).n, 300);
    expect_message(&c, FIN | PONG, "p");
    expect_message(&c, FIN | TEXT, "");
    buf_free(&all);
    client_close(&c);
    sockets_close(s);
}

static void several_messages_answer_one(void **state) {
    (void)state;
    sockets *s = sockets_start();
    client c = socket_client(s);
    send_text(&c, "nothing");
    send_text(&c, "many 5");
    for (unsigned i = 0; i < 5; i++) {
        char text[32];
        snprintf(text, sizeof text, "part %u", i);
        expect_message(&c, FIN | TEXT, text);
    }
    client_close(&c);
    sockets_close(s);
}

/* ---- what ends a connection ---- */

static void expect_ended_with(sockets *s, unsigned code, unsigned first, slice payload, bool masked) {
    client c = socket_client(s);
    buf out = buf_init(BUF_NO_LIMIT);
    add_frame(&out, first, payload, masked);
    client_try_send(&c, out.p, out.n);
    buf_free(&out);
    expect_close(&c, code);
    client_close(&c);
}

static void malformed_frames_end_the_connection(void **state) {
    (void)state;
    sockets *s = sockets_start();
    static char large[UNTRUSTED_MAX + 1];
    memset(large, 'l', sizeof large);
    expect_ended_with(s, 1002, FIN | TEXT, SLICE_LIT("not masked"), false);
    expect_ended_with(s, 1002, FIN | 0x40 | TEXT, SLICE_LIT("a reserved bit"), true);
    expect_ended_with(s, 1002, FIN | 3, SLICE_LIT("an unknown kind"), true);
    expect_ended_with(s, 1002, FIN, SLICE_LIT("goes on with nothing"), true);
    expect_ended_with(s, 1002, PING, SLICE_LIT("a ping in fragments"), true);
    expect_ended_with(s, 1002, FIN | PING, slice_of(large, 126), true);
    expect_ended_with(s, 1007, FIN | TEXT, SLICE_LIT("no UTF-8: \xff"), true);
    expect_ended_with(s, 1007, FIN | TEXT, SLICE_LIT("cut off: \xc3"), true);
    expect_ended_with(s, 1009, FIN | TEXT, slice_of(large, UNTRUSTED_MAX + 1), true);
    client c = socket_client(s);
    client_try_send(&c, "\x81\xfe\0\1abcdx", 9); /* the length is not in its shortest form */
    expect_close(&c, 1002);
    client_close(&c);
    c = socket_client(s);
    client_try_send(&c, "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff", 10); /* invalid, but the server waits for the whole header */
    client_try_send(&c, "abcd", 4);
    expect_close(&c, 1009);
    client_close(&c);
    assert_int_equal(s->handled, 0);
    sockets_close(s);
}

static void fragments_count_together(void **state) {
    (void)state;
    sockets *s = sockets_start();
    static char part[40000];
    memset(part, 'l', sizeof part);
    client c = socket_client(s);
    send_frame(&c, TEXT, slice_of(part, sizeof part));
    send_frame(&c, 0, slice_of(part, sizeof part));
    send_frame(&c, 0, slice_of(part, sizeof part));
    expect_close(&c, 1009);
    client_close(&c);
    AWAIT(net_server_stats(s->h->server).buffer_bytes < 1 << 20);
    sockets_close(s);
}

static void either_side_may_close(void **state) {
    (void)state;
    sockets *s = sockets_start();
    client c = socket_client(s);
    send_frame(&c, FIN | CLOSE,
               SLICE_LIT("\x03\xe8"
                         "bye"));
    expect_close(&c, 1000);
    client_close(&c);
    c = socket_client(s);
    send_frame(&c, FIN | CLOSE, SLICE_EMPTY);
    message m = next_message(&c);
    assert_int_equal(m.first, FIN | CLOSE);
    assert_true(client_ended(&c));
    client_close(&c);
    c = socket_client(s);
    send_text(&c, "close 4001");
    expect_message(&c, FIN | TEXT, "close 4001");
    m = next_message(&c);
    assert_int_equal(m.first, FIN | CLOSE);
    assert_int_equal((unsigned char)m.text[0] << 8 | (unsigned char)m.text[1], 4001);
    assert_string_equal(m.text + 2, "as you wish");
    send_frame(&c, FIN | CLOSE, SLICE_LIT("\x0f\xa1"));
    assert_true(client_ended(&c));
    client_close(&c);
    AWAIT(s->closed == 3);
    sockets_close(s);
}

/* No message may follow the server's close frame. */
static void answers_after_the_close_are_thrown_away(void **state) {
    (void)state;
    sockets *s = sockets_start();
    client c = socket_client(s);
    send_text(&c, "hold");
    AWAIT(held(s) == 1);
    assert_false(s->held[0]->client.left);
    send_frame(&c, FIN | CLOSE, SLICE_LIT("\x03\xe8"));
    AWAIT(s->held[0]->client.left);
    release(s);
    expect_close(&c, 1000);
    client_close(&c);
    AWAIT(s->closed == 1);
    sockets_close(s);
}

/* ---- bounds ---- */

static void messages_in_flight_are_bounded(void **state) {
    (void)state;
    enum { MESSAGES = 300 };
    sockets *s = sockets_start();
    client c = socket_client(s);
    buf all = buf_init(BUF_NO_LIMIT);
    for (unsigned i = 0; i < MESSAGES; i++) {
        add_frame(&all, FIN | TEXT, SLICE_LIT("hold"), true);
    }
    assert_true(client_try_send(&c, all.p, all.n)); /* in one write, smaller than wslay's buffer */
    AWAIT(held(s) == IN_FLIGHT);
    usleep(20 * 1000);
    assert_int_equal(held(s), IN_FLIGHT);
    assert_int_equal(s->handled, IN_FLIGHT);
    release(s);
    for (unsigned i = 0; i < MESSAGES; i++) {
        expect_message(&c, FIN | TEXT, "hold");
    }
    buf_free(&all);
    client_close(&c);
    sockets_close(s);
}

static void memory_comes_back(void **state) {
    (void)state;
    enum { CLIENTS = 60 };
    sockets *s = sockets_start();
    client c[CLIENTS];
    static char part[90000];
    memset(part, 'l', sizeof part);
    expect_alive(s->h);
    uint64_t before = net_server_stats(s->h->server).buffer_bytes;
    for (unsigned i = 0; i < CLIENTS; i++) {
        c[i] = socket_client(s);
        send_frame(&c[i], TEXT, slice_of(part, sizeof part)); /* a message without its end */
    }
    AWAIT(net_server_stats(s->h->server).buffer_bytes > before + CLIENTS * sizeof part);
    for (unsigned i = 0; i < CLIENTS; i++) {
        client_close(&c[i]);
    }
    AWAIT(s->closed == CLIENTS);
    AWAIT(net_server_stats(s->h->server).buffer_bytes < before + (2 << 20)); /* some buffers are kept for reuse */
    sockets_close(s);
}

static void slow_readers_are_ended(void **state) {
    (void)state;
    net_options o = harness_options();
    o.body_timeout_ms = 300;
    sockets *s = sockets_open(&o);
    client c = socket_client(s);
    for (unsigned i = 0; i < 3; i++) {
        send_text(&c, "bytes 4000000");
    }
    AWAIT(net_server_stats(s->h->server).slow_clients == 1);
    AWAIT(net_server_stats(s->h->server).waiting_bytes == 0 && s->closed == 1);
    client_close(&c);
    sockets_close(s);
}

static void time_outs(void **state) {
    (void)state;
    net_options o = harness_options();
    o.header_timeout_ms = o.body_timeout_ms = o.untrusted_timeout_ms = 600;
    o.idle_timeout_ms = 1200;
    sockets *s = sockets_open(&o);
    client idle = socket_client(s), torn = socket_client(s), good = socket_client(s), silent = socket_client(s);
    send_text(&good, "trust");
    expect_message(&good, FIN | TEXT, "trust");
    send_text(&silent, "trust");
    expect_message(&silent, FIN | TEXT, "trust");
    client_try_send(&torn, "\x81\xfe", 2);
    expect_close(&torn, 1008);
    expect_close(&idle, 1000); /* not authenticated: closed, without a ping */
    expect_message(&good, FIN | PING, "");
    send_frame(&good, FIN | PONG, SLICE_EMPTY); /* answered, so it stays */
    expect_message(&silent, FIN | PING, "");
    expect_close(&silent, 1001);
    send_text(&good, "still here");
    for (message m = next_message(&good); m.first != (FIN | TEXT); m = next_message(&good)) {
        assert_int_equal(m.first, FIN | PING);
    }
    client *all[] = {&idle, &torn, &good, &silent};
    for (unsigned i = 0; i < 4; i++) {
        client_close(all[i]);
    }
    sockets_close(s);
}

/* ---- stopping ---- */

static void a_stop_is_told(void **state) {
    (void)state;
    sockets *s = sockets_start();
    client idle = socket_client(s), busy = socket_client(s);
    send_text(&busy, "hold");
    AWAIT(held(s) == 1);
    net_stop(s->h->server);
    message m = next_message(&idle);
    assert_int_equal(m.first, FIN | CLOSE);
    assert_memory_equal(m.text, "\x03\xe9", 2);
    send_frame(&idle, FIN | CLOSE, SLICE_LIT("\x03\xe9"));
    assert_true(client_ended(&idle));
    client_close(&idle);
    AWAIT(net_server_stats(s->h->server).drain_requests == 1);
    release(s);
    expect_message(&busy, FIN | TEXT, "hold");
    expect_close(&busy, 1001);
    client_close(&busy);
    harness_join(s->h);
    assert_int_equal(net_server_stats(s->h->server).drain_unanswered, 0);
    sockets_close(s);
}

/* ---- an independent client ---- */

/* Runs tests/python/websockets-client, over plain text and TLS. Its exit code 77 means that the package is not installed. */
static void a_real_client_agrees(void **state) {
    const char *program = getenv("TESELA_WEBSOCKETS_CLIENT");
    (void)state;
    if (!program) { /* not run by meson, which sets the variable */
        skip();
    }
    char folder[] = "/tmp/tesela-ws-XXXXXX", file[64], port[16];
    net_options o = harness_options();
    assert_non_null(mkdtemp(folder));
    sockets *s = sockets_open_tls(&o, folder);
    snprintf(port, sizeof port, "%u", s->h->port);
    snprintf(file, sizeof file, "%s/tls-cert.pem", folder);
    pid_t child = fork();
    if (child == 0) {
        execl("/usr/bin/python3", "python3", program, port, file, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(file);
    snprintf(file, sizeof file, "%s/tls-key.pem", folder);
    unlink(file);
    rmdir(folder);
    sockets_close(s);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) { /* the client's library is not installed */
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http_is_upgraded),
        cmocka_unit_test(messages_may_follow_the_handshake_at_once),
        cmocka_unit_test(improper_handshakes_are_refused),
        cmocka_unit_test(the_guard_is_asked),
        cmocka_unit_test(subprotocols_are_named),
        cmocka_unit_test(the_front_end_gives_a_state),
        cmocka_unit_test(messages_of_all_sizes),
        cmocka_unit_test(fragments_are_put_together),
        cmocka_unit_test(torn_frames_are_put_together),
        cmocka_unit_test(several_messages_answer_one),
        cmocka_unit_test(malformed_frames_end_the_connection),
        cmocka_unit_test(fragments_count_together),
        cmocka_unit_test(either_side_may_close),
        cmocka_unit_test(answers_after_the_close_are_thrown_away),
        cmocka_unit_test(messages_in_flight_are_bounded),
        cmocka_unit_test(memory_comes_back),
        cmocka_unit_test(slow_readers_are_ended),
        cmocka_unit_test(time_outs),
        cmocka_unit_test(a_stop_is_told),
        cmocka_unit_test(a_real_client_agrees),
    };
    return cmocka_run_group_tests_name("net/websocket", tests, NULL, NULL);
}
