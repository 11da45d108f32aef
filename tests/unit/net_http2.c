/* HTTP/2 over real sockets. The client writes its frames by hand, so that it can send what no library would; the heads of answers are
 * decompressed by nghttp2. Flow control is the client's own: it opens a window only where a test says so. */
#include "net_harness.h"

#include <nghttp2/nghttp2.h>

#include "net/work.h"

enum {
    FRAME_HEAD = 9,
    FRAME_MAX = 16384,
    STREAMS_MAX = 256, /* streams that a peer keeps account of */
    WINDOW = 65535,    /* a client's, unless it says otherwise */
};

/* Flags of frames. */
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

typedef struct answer {
    int status;
    bool continued; /* 100 came first */
    char fields[2048];
    buf body;
    bool whole;
    bool is_reset;
    uint32_t reset;
} answer;

typedef struct peer {
    client c;
    nghttp2_hd_inflater *inflater;
    answer answers[STREAMS_MAX]; /* answers to streams 1, 3, 5, … */
    int64_t window;              /* the server's window for the connection */
    int64_t stream_window;       /* the server's window for stream 1 */
    unsigned acks;               /* acknowledged pings */
    bool gone_away;
    uint32_t goaway_code;
    uint32_t goaway_last;
} peer;

/* ---- frames ---- */

static void add_frame(buf *b, uint8_t type, uint8_t flags, uint32_t stream, const void *p, size_t n) {
    const uint8_t head[FRAME_HEAD] = {(uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, type, flags};
    buf_add(b, head, 5);
    buf_add_be32(b, stream);
    buf_add(b, p, n);
}

static void add_literal(buf *b, const char *name, const char *value) { /* HPACK: RFC 7541, 6.2.2; lengths below 127 */
    buf_add_byte(b, 0);
    buf_add_byte(b, (char)strlen(name));
    buf_add(b, name, strlen(name));
    buf_add_byte(b, (char)strlen(value));
    buf_add(b, value, strlen(value));
}

/* A head: method, path, then pairs of names and values up to NULL. */
static buf head_of(const char *method, const char *path, const char *const *more) {
    buf b = buf_init(BUF_NO_LIMIT);
    add_literal(&b, ":method", method);
    add_literal(&b, ":scheme", "http");
    add_literal(&b, ":path", path);
    for (; more && *more; more += 2) {
        add_literal(&b, more[0], more[1]);
    }
    return b;
}

static void send_buf(peer *p, buf *b) {
    assert_true(client_try_send(&p->c, b->p, b->n));
    buf_free(b);
}

static void send_frame(peer *p, uint8_t type, uint8_t flags, uint32_t stream, const void *bytes, size_t n) {
    buf b = buf_init(BUF_NO_LIMIT);
    add_frame(&b, type, flags, stream, bytes, n);
    send_buf(p, &b);
}

static void add_request_of(buf *b, uint32_t stream, const char *method, const char *path, const char *const *more, uint8_t flags) {
    buf head = head_of(method, path, more);
    add_frame(b, NGHTTP2_HEADERS, flags, stream, head.p, head.n);
    buf_free(&head);
}

static void ask_with(peer *p, uint32_t stream, const char *method, const char *path, const char *const *more, uint8_t flags) {
    buf b = buf_init(BUF_NO_LIMIT);
    add_request_of(&b, stream, method, path, more, flags);
    send_buf(p, &b);
}

static const char *const plain_host[] = {":authority", "h", NULL};

static void ask(peer *p, uint32_t stream, const char *path) {
    ask_with(p, stream, "GET", path, plain_host, END_STREAM | END_HEADERS);
}

static void open_window(peer *p, uint32_t stream, uint32_t bytes) {
    uint8_t n[4] = {(uint8_t)(bytes >> 24), (uint8_t)(bytes >> 16), (uint8_t)(bytes >> 8), (uint8_t)bytes};
    send_frame(p, NGHTTP2_WINDOW_UPDATE, 0, stream, n, 4);
}

static void reset(peer *p, uint32_t stream) {
    send_frame(p, NGHTTP2_RST_STREAM, 0, stream, "\0\0\0\x08", 4);
}

/* ---- the client ---- */

static peer *peer_new(client c) {
    peer *p = mem_zero(sizeof *p);
    p->c = c;
    p->window = p->stream_window = WINDOW;
    assert_int_equal(nghttp2_hd_inflate_new(&p->inflater), 0);
    for (unsigned i = 0; i < STREAMS_MAX; i++) {
        p->answers[i].body = buf_init(BUF_NO_LIMIT);
    }
    client_send(&p->c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    send_frame(p, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    return p;
}

static peer *peer_open(const harness *h) {
    return peer_new(client_open(h));
}

static void peer_close(peer *p) {
    client_close(&p->c);
    nghttp2_hd_inflate_del(p->inflater);
    for (unsigned i = 0; i < STREAMS_MAX; i++) {
        buf_free(&p->answers[i].body);
    }
    free(p);
}

static answer *answer_of(peer *p, uint32_t stream) {
    assert_true(stream % 2 == 1 && stream / 2 < STREAMS_MAX);
    return &p->answers[stream / 2];
}

static uint32_t be32(const char *p) {
    const uint8_t *u = (const uint8_t *)p;
    return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

static void take_field(answer *a, const nghttp2_nv *nv) {
    size_t n = strlen(a->fields);
    if (nv->namelen == 7 && memcmp(nv->name, ":status", 7) == 0) {
        a->continued |= a->status == 100;
        a->status = atoi((const char *)nv->value);
        a->continued |= a->status == 100;
    }
    snprintf(a->fields + n, sizeof a->fields - n, "%.*s: %.*s\n", (int)nv->namelen, nv->name, (int)nv->valuelen, nv->value);
}

static void take_head(peer *p, answer *a, const uint8_t *bytes, size_t n) {
    while (n) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t used = nghttp2_hd_inflate_hd2(p->inflater, &nv, &flags, bytes, n, 1);
        assert_true(used >= 0);
        bytes += used;
        n -= (size_t)used;
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            take_field(a, &nv);
        }
    }
    nghttp2_hd_inflate_end_headers(p->inflater);
}

static void take_initial_window(peer *p, const char *settings, size_t n) {
    for (size_t i = 0; i + 6 <= n; i += 6) {
        if (settings[i + 1] == NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE) {
            p->stream_window += (int64_t)be32(settings + i + 2) - WINDOW;
        }
    }
}

static void take_frame(peer *p, uint8_t type, uint8_t flags, uint32_t stream, const char *bytes, size_t n) {
    if (type == NGHTTP2_HEADERS) {
        take_head(p, answer_of(p, stream), (const uint8_t *)bytes, n);
    } else if (type == NGHTTP2_DATA) {
        buf_add(&answer_of(p, stream)->body, bytes, n);
    } else if (type == NGHTTP2_RST_STREAM) {
        answer_of(p, stream)->is_reset = true;
        answer_of(p, stream)->reset = be32(bytes);
    } else if (type == NGHTTP2_GOAWAY) {
        p->gone_away = true;
        p->goaway_last = be32(bytes);
        p->goaway_code = be32(bytes + 4);
    } else if (type == NGHTTP2_WINDOW_UPDATE) {
        *(stream ? &p->stream_window : &p->window) += be32(bytes);
    } else if (type == NGHTTP2_PING) {
        p->acks += flags & ACK;
    } else if (type == NGHTTP2_SETTINGS && !(flags & ACK)) {
        take_initial_window(p, bytes, n);
    }
    if ((type == NGHTTP2_HEADERS || type == NGHTTP2_DATA) && flags & END_STREAM) {
        answer_of(p, stream)->whole = true;
    }
}

/* Takes one frame. False: the server has closed. */
static bool next_frame(peer *p) {
    buf *in = &p->c.in;
    size_t n = 0;
    while (in->n < FRAME_HEAD || in->n < (n = FRAME_HEAD + (be32(in->p) >> 8))) {
        if (!client_more(&p->c)) {
            return false;
        }
    }
    take_frame(p, (uint8_t)in->p[3], (uint8_t)in->p[4], be32(in->p + 5), in->p + FRAME_HEAD, n - FRAME_HEAD);
    in->n -= n;
    memmove(in->p, in->p + n, in->n);
    return true;
}

/* Takes what has come, without waiting. False: the server has closed. */
static bool take_what_came(peer *p) {
    bool open = true;
    while (open && !p->gone_away && (p->c.in.n >= FRAME_HEAD || recv(p->c.fd, &(char){0}, 1, MSG_PEEK | MSG_DONTWAIT) >= 0)) {
        open = next_frame(p);
    }
    return open;
}

/* Takes frames until the condition holds. */
#define TAKE_UNTIL(p, condition)                                                                                                           \
    while (!(condition)) {                                                                                                                 \
        if (!next_frame(p)) {                                                                                                              \
            fail_msg("the server closed before: %s", #condition);                                                                          \
        }                                                                                                                                  \
    }

static void expect(peer *p, uint32_t stream, int status, const char *body) {
    answer *a = answer_of(p, stream);
    TAKE_UNTIL(p, a->whole || a->is_reset);
    assert_true(a->whole);
    assert_int_equal(a->status, status);
    if (body) {
        buf_add_byte(&a->body, 0);
        assert_string_equal(a->body.p, body);
    }
}

static void expect_error(peer *p, uint32_t stream, int status, const char *name) {
    char line[64];
    snprintf(line, sizeof line, "x-error: %s\n", name);
    expect(p, stream, status, NULL);
    assert_non_null(strstr(answer_of(p, stream)->fields, line));
}

static void expect_reset(peer *p, uint32_t stream, uint32_t code) {
    TAKE_UNTIL(p, answer_of(p, stream)->is_reset);
    assert_int_equal(answer_of(p, stream)->reset, code);
}

static void expect_goaway(peer *p, uint32_t code) {
    TAKE_UNTIL(p, p->gone_away);
    assert_int_equal(p->goaway_code, code);
    while (next_frame(p)) {
    }
}

/* Sends `n` bytes as the body of stream 1, within the server's windows. */
static void send_body(peer *p, size_t n, bool last) {
    static const char filler[FRAME_MAX] = {[0 ... FRAME_MAX - 1] = 'y'};
    while (n) {
        size_t k = n < FRAME_MAX ? n : FRAME_MAX;
        TAKE_UNTIL(p, p->window >= (int64_t)k && p->stream_window >= (int64_t)k);
        n -= k;
        send_frame(p, NGHTTP2_DATA, last && !n ? END_STREAM : 0, 1, filler, k);
        p->window -= (int64_t)k;
        p->stream_window -= (int64_t)k;
    }
}

static int setup(void **state) {
    *state = harness_start();
    return 0;
}

static int teardown(void **state) {
    harness_close(*state);
    return 0;
}

/* A server with short time-outs. */
static harness *hasty_start(void) {
    net_options o = harness_options();
    o.header_timeout_ms = o.untrusted_timeout_ms = o.body_timeout_ms = o.idle_timeout_ms = 300;
    harness *h = harness_open(&o);
    harness_run(h);
    return h;
}

/* ---- requests and answers ---- */

static void requests_are_what_http_1_makes_of_them(void **state) {
    peer *p = peer_open(*state);
    static const char *const fields[] = {":authority", "host:80", "x-a", "one", "other", "x", "x-b", "", "x-a", "two", NULL};
    ask_with(p, 1, "GET", "/echo?q=1", fields, END_STREAM | END_HEADERS);
    expect(p, 1, 200, "GET /echo?q=1 host=host:80 a=one, two b= body=");
    assert_non_null(strstr(p->answers[0].fields, "content-type: text/plain\n"));
    assert_non_null(strstr(p->answers[0].fields, " GMT\n"));
    assert_non_null(strstr(p->answers[0].fields, "content-length: 46\n"));
    static const char *const field_host[] = {"host", "by-field", NULL};
    ask_with(p, 3, "PUT", "/later", field_host, END_HEADERS);
    send_frame(p, NGHTTP2_DATA, 0, 3, "hal", 3);
    send_frame(p, NGHTTP2_DATA, END_STREAM, 3, "lo", 2);
    expect(p, 3, 200, "PUT /later? host=by-field a= b= body=hallo");
    ask(p, 5, "/turns");
    expect(p, 5, 200, "the beginning and the end");
    ask(p, 7, "/second-thoughts");
    expect(p, 7, 404, "xxx");
    assert_null(strstr(answer_of(p, 7)->fields, "x-first"));
    ask(p, 9, "/inject");
    expect(p, 9, 200, NULL);
    assert_non_null(strstr(answer_of(p, 9)->fields, "x-value: aSet-Cookie: bc\n"));
    peer_close(p);
}

static void answers_without_a_body(void **state) {
    peer *p = peer_open(*state);
    ask_with(p, 1, "HEAD", "/bytes?1234", plain_host, END_STREAM | END_HEADERS);
    ask(p, 3, "/status?204");
    ask(p, 5, "/status?304");
    ask(p, 7, "/bytes?0");
    for (uint32_t stream = 1; stream <= 7; stream += 2) {
        expect(p, stream, stream == 3 ? 204 : stream == 5 ? 304 : 200, "");
    }
    assert_non_null(strstr(answer_of(p, 1)->fields, "content-length: 1234\n"));
    assert_null(strstr(answer_of(p, 3)->fields, "content-length"));
    assert_null(strstr(answer_of(p, 5)->fields, "content-length"));
    assert_non_null(strstr(answer_of(p, 7)->fields, "content-length: 0\n"));
    peer_close(p);
}

static void trailers_and_continue(void **state) {
    peer *p = peer_open(*state);
    static const char *const expecting[] = {":authority", "h", "expect", "100-continue", NULL};
    ask_with(p, 1, "POST", "/echo", expecting, END_HEADERS);
    TAKE_UNTIL(p, answer_of(p, 1)->continued);
    assert_false(answer_of(p, 1)->whole);
    send_frame(p, NGHTTP2_DATA, 0, 1, "hi", 2);
    buf trailer = buf_init(BUF_NO_LIMIT);
    add_literal(&trailer, "x-a", "too late");
    send_frame(p, NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 1, trailer.p, trailer.n);
    buf_free(&trailer);
    expect(p, 1, 200, "POST /echo? host=h a= b= body=hi");
    peer_close(p);
}

static void malformed_requests_are_refused(void **state) {
    static const struct {
        const char *method, *path;
        const char *fields[5];
        int status; /* 0: the stream is reset */
        const char *name;
    } bad[] = {
        {"GET", "/a\x7f", {":authority", "h"}, 0, NULL},
        {"GET", "/a#b", {":authority", "h"}, 400, "E_BAD_REQUEST"},
        {"GET", "/\xc3\xa4", {":authority", "h"}, 400, "E_BAD_REQUEST"},
        {"GET", "/a", {NULL}, 0, NULL},
        {"GET", "/a", {":authority", "h", "host", "other"}, 400, "E_BAD_REQUEST"},
        {"GET", "/a", {":authority", "user@h"}, 400, "E_BAD_REQUEST"},
        {"GET", "/a", {"host", "h", "host", "h"}, 0, NULL},
        {"BREW", "/a", {":authority", "h"}, 400, "E_BAD_REQUEST"},
        {"GET", "a", {":authority", "h"}, 0, NULL},
        {"GET", "/a", {":authority", "h", "Upper", "case"}, 0, NULL},
        {"GET", "/a", {":authority", "h", "connection", "close"}, 0, NULL},
        {"GET", "/a", {":authority", "h", "transfer-encoding", "chunked"}, 0, NULL},
        {"GET", "/a", {":authority", "h", "x-a", "line\nbreak"}, 0, NULL},
        {"GET", "/a", {":authority", "h", "content-length", "5"}, 0, NULL},
    };
    peer *p = peer_open(*state);
    for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ask_with(p, 2 * i + 1, bad[i].method, bad[i].path, bad[i].fields, END_STREAM | END_HEADERS);
        if (bad[i].status) {
            expect_error(p, 2 * i + 1, bad[i].status, bad[i].name);
        } else {
            expect_reset(p, 2 * i + 1, NGHTTP2_PROTOCOL_ERROR);
        }
    }
    ask(p, 2 * sizeof bad / sizeof *bad + 1, "/echo"); /* the connection goes on */
    expect(p, 2 * sizeof bad / sizeof *bad + 1, 200, NULL);
    peer_close(p);
}

static void hosts_are_guarded(void **state) {
    harness *h = *state;
    static const char *const ours[] = {":authority", "localhost", NULL}, *const theirs[] = {":authority", "evil.example", NULL};
    static const char *const page[] = {":authority", "localhost", "origin", "http://evil.example", NULL};
    peer *p = peer_open(h);
    net_guard_turn(h->server, true);
    ask_with(p, 1, "GET", "/echo", theirs, END_STREAM | END_HEADERS);
    expect_error(p, 1, 403, "E_WRONG_HOST");
    ask_with(p, 3, "GET", "/echo", page, END_STREAM | END_HEADERS);
    expect_error(p, 3, 403, "E_WRONG_HOST");
    ask_with(p, 5, "GET", "/echo", ours, END_STREAM | END_HEADERS);
    expect(p, 5, 200, NULL);
    net_guard_turn(h->server, false);
    peer_close(p);
}

/* ---- which protocol it is ---- */

static void the_first_bytes_tell(void **state) {
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    peer *p = mem_zero(sizeof *p);
    p->c = client_open(*state);
    assert_int_equal(nghttp2_hd_inflate_new(&p->inflater), 0);
    p->answers[0].body = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < sizeof hello - 1; i++) {
        assert_true(client_try_send(&p->c, hello + i, 1));
        usleep(i % 8 ? 0 : 2000);
    }
    ask(p, 1, "/echo");
    expect(p, 1, 200, NULL);
    peer_close(p);
    static const char *const others[] = {"P", "PR", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r", NULL};
    for (unsigned i = 0; others[i]; i++) {
        client c = client_open(*state);
        client_send(&c, others[i]);
        usleep(20000);
        client_send(&c, i == 0 ? "UT /echo HTTP/1.1\r\nHost: h\r\n\r\n" : "X\r\n\r\n");
        expect_response(&c, i == 0 ? 200 : 400, i == 0 ? "PUT /echo? host=h a= b= body=" : NULL);
        client_close(&c);
    }
    expect_alive(*state);
}

/* ---- many streams ---- */

static void a_hundred_streams_at_once(void **state) {
    peer *p = peer_open(*state);
    buf b = buf_init(BUF_NO_LIMIT);
    for (uint32_t i = 0; i < 102; i++) {
        add_request_of(&b, 2 * i + 1, "GET", "/delay?400", plain_host, END_STREAM | END_HEADERS);
    }
    send_buf(p, &b);
    for (uint32_t i = 0; i < 100; i++) {
        expect(p, 2 * i + 1, 200, "GET /delay?400 host=h a= b= body=");
    }
    expect_reset(p, 201, NGHTTP2_REFUSED_STREAM);
    expect_reset(p, 203, NGHTTP2_REFUSED_STREAM);
    ask(p, 205, "/echo");
    expect(p, 205, 200, NULL);
    peer_close(p);
}

static void one_stream_is_cancelled(void **state) {
    harness *h = *state;
    peer *p = peer_open(h);
    ask(p, 1, "/hold");
    AWAIT(harness_held(h) == 1);
    ask(p, 3, "/hold");
    AWAIT(harness_held(h) == 2);
    reset(p, 1);
    AWAIT(h->held[0]->client->left);
    assert_false(h->held[1]->client->left);
    harness_release(h);
    expect(p, 3, 200, NULL);
    assert_int_equal(answer_of(p, 1)->status, 0);
    peer_close(p);
}

static void the_client_goes_away(void **state) {
    harness *h = *state;
    for (int half = 0; half < 2; half++) {
        peer *p = peer_open(h);
        for (uint32_t i = 0; i < 10; i++) {
            ask(p, 2 * i + 1, "/hold");
        }
        ask_with(p, 21, "POST", "/echo", plain_host, END_HEADERS);
        AWAIT(harness_held(h) == 10);
        if (half) {
            shutdown(p->c.fd, SHUT_WR);
        } else {
            peer_close(p);
        }
        AWAIT(h->held[9]->client->left);
        harness_release(h);
        AWAIT(net_server_stats(h->server).requests == 0);
        if (half) {
            while (next_frame(p)) {
            }
            peer_close(p);
        }
    }
    AWAIT(net_server_connections(h->server) == 0);
}

/* ---- sizes ---- */

static void large_bodies(void **state) {
    peer *p = peer_open(*state);
    ask_with(p, 1, "POST", "/echo", plain_host, END_HEADERS);
    open_window(p, 0, 8 << 20);
    open_window(p, 1, 8 << 20);
    send_body(p, LIMIT_BODY_BYTES, true);
    expect(p, 1, 200, NULL);
    assert_int_equal(answer_of(p, 1)->body.n, strlen("POST /echo? host=h a= b= body=") + LIMIT_BODY_BYTES);
    peer_close(p);
}

static void bodies_past_the_limit(void **state) {
    peer *p = peer_open(*state);
    ask_with(p, 1, "POST", "/echo", plain_host, END_HEADERS);
    send_body(p, LIMIT_BODY_BYTES + 1, true);
    expect(p, 1, 413, "xxxxxxxxxx");
    assert_false(answer_of(p, 1)->is_reset);
    peer_close(p);
    p = peer_open(*state); /* so long that it is not worth waiting for */
    static const char *const endless[] = {":authority", "h", "content-length", "99999999", NULL};
    ask_with(p, 1, "POST", "/echo", endless, END_HEADERS);
    expect(p, 1, 413, NULL);
    expect_reset(p, 1, NGHTTP2_NO_ERROR);
    peer_close(p);
    p = peer_open(*state);
    static const char *const polite[] = {":authority", "h", "content-length", "5000000", "expect", "100-continue", NULL};
    ask_with(p, 1, "POST", "/echo", polite, END_HEADERS);
    expect(p, 1, 413, NULL);
    assert_false(answer_of(p, 1)->continued);
    peer_close(p);
}

static void answers_wait_for_the_window(void **state) {
    harness *h = *state;
    enum { BYTES = 1000000, FURTHER = 100000 };
    AWAIT(net_server_connections(h->server) == 0);
    uint64_t before = net_server_stats(h->server).buffer_bytes;
    peer *p = peer_open(h);
    ask(p, 1, "/bytes?1000000");
    answer *a = answer_of(p, 1);
    TAKE_UNTIL(p, a->body.n == WINDOW);
    ask(p, 3, "/status?204"); /* has no body: no window holds it */
    expect(p, 3, 204, NULL);
    assert_int_equal(a->body.n, WINDOW);
    assert_true(net_server_stats(h->server).buffer_bytes > before + BYTES - WINDOW);
    open_window(p, 0, FURTHER);
    open_window(p, 1, FURTHER);
    TAKE_UNTIL(p, a->body.n == WINDOW + FURTHER);
    open_window(p, 0, BYTES);
    open_window(p, 1, BYTES);
    expect(p, 1, 200, NULL);
    assert_int_equal(a->body.n, BYTES);
    ask(p, 5, "/bytes?1000000"); /* the client resets what it does not want */
    TAKE_UNTIL(p, answer_of(p, 5)->body.n == WINDOW);
    reset(p, 5);
    AWAIT(net_server_stats(h->server).buffer_bytes < before + BYTES / 2);
    peer_close(p);
}

static void heads_past_the_limit(void **state) {
    peer *p = peer_open(*state);
    const char *many[2 * LIMIT_HEADER_COUNT + 3] = {":authority", "h"};
    for (unsigned i = 1; i <= LIMIT_HEADER_COUNT; i++) {
        many[2 * i] = "x";
        many[2 * i + 1] = "y";
    }
    ask_with(p, 1, "GET", "/echo", many, END_STREAM | END_HEADERS);
    expect_error(p, 1, 431, "E_TOO_MANY_HEADERS");
    ask(p, 3, "/echo");
    expect(p, 3, 200, NULL);
    peer_close(p);
}

/* ---- time ---- */

static void slow_senders_end(void **state) {
    (void)state;
    harness *h = hasty_start();
    peer *p = peer_open(h);
    ask(p, 3, "/hold"); /* keeps the connection: only the slow stream ends */
    ask_with(p, 5, "POST", "/echo", plain_host, END_HEADERS);
    send_frame(p, NGHTTP2_DATA, 0, 5, "half", 4);
    expect_error(p, 5, 408, "E_TIMEOUT");
    expect_reset(p, 5, NGHTTP2_NO_ERROR);
    assert_int_equal(net_server_stats(h->server).slow_clients, 1);
    harness_release(h);
    expect(p, 3, 200, NULL);
    peer_close(p);
    p = peer_open(h); /* half a head */
    ask_with(p, 1, "GET", "/echo", plain_host, END_STREAM);
    expect_goaway(p, NGHTTP2_NO_ERROR);
    peer_close(p);
    harness_close(h);
}

static void slow_readers_end(void **state) {
    (void)state;
    harness *h = hasty_start();
    uint64_t before = net_server_stats(h->server).buffer_bytes;
    peer *p = peer_open(h);
    ask(p, 1, "/hold");
    ask(p, 3, "/bytes?1000000"); /* its window is never opened */
    expect_reset(p, 3, NGHTTP2_CANCEL);
    assert_int_equal(answer_of(p, 3)->body.n, WINDOW);
    assert_int_equal(net_server_stats(h->server).slow_clients, 1);
    AWAIT(net_server_stats(h->server).buffer_bytes < before + 500000);
    harness_release(h);
    peer_close(p);
    harness_close(h);
}

/* Windows are open, but nothing is read: what the kernel does not take waits, as with HTTP/1.1. */
static void readers_that_do_not_read_end(void **state) {
    (void)state;
    harness *h = hasty_start();
    peer *p = peer_new(client_open_narrow(h, 16384));
    open_window(p, 0, 100 << 20);
    ask(p, 1, "/bytes?30000000");
    open_window(p, 1, 100 << 20);
    AWAIT(net_server_stats(h->server).slow_clients == 1);
    AWAIT(net_server_connections(h->server) == 0);
    AWAIT(net_server_stats(h->server).waiting_bytes == 0);
    peer_close(p);
    harness_close(h);
}

static void large_answers_pass_a_narrow_socket(void **state) {
    enum { BYTES = 10000000, STREAMS = 3 };
    peer *p = peer_new(client_open_narrow(*state, 16384));
    open_window(p, 0, 100 << 20);
    for (uint32_t i = 0; i < STREAMS; i++) {
        ask(p, 2 * i + 1, "/bytes?10000000");
        open_window(p, 2 * i + 1, 100 << 20);
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        expect(p, 2 * i + 1, 200, NULL);
        assert_int_equal(answer_of(p, 2 * i + 1)->body.n, BYTES);
    }
    peer_close(p);
}

/* A server whose buffers have room for 4 MB. */
static harness *poor_start(void) {
    net_options o = harness_options();
    o.loops = 1;
    o.memory_max = 8 << 20;
    o.least_rate = 1 << 20;
    harness *h = harness_open(&o);
    harness_run(h);
    return h;
}

static void slow_readers_make_room_when_memory_is_scarce(void **state) {
    (void)state;
    harness *h = poor_start();
    peer *p = peer_open(h);
    ask(p, 1, "/bytes?2000000");
    ask(p, 3, "/bytes?1000000");
    TAKE_UNTIL(p, answer_of(p, 1)->body.n == WINDOW);
    assert_int_equal(net_server_stats(h->server).slow_clients, 0);
    while (next_frame(p)) { /* no window is opened: it is ended */
    }
    assert_false(answer_of(p, 1)->whole);
    assert_int_equal(net_server_stats(h->server).slow_clients, 1);
    peer_close(p);
    harness_close(h);
}

static void slow_senders_make_room_when_memory_is_scarce(void **state) {
    (void)state;
    harness *h = poor_start();
    peer *p = peer_open(h);
    ask_with(p, 1, "POST", "/echo", plain_host, END_HEADERS);
    send_body(p, 1800000, false);
    expect_error(p, 1, 408, "E_TIMEOUT");
    expect_reset(p, 1, NGHTTP2_NO_ERROR);
    peer_close(p);
    harness_close(h);
}

/* Answers that do not fit are refused; the connection goes on. */
static void answers_without_room_are_refused(void **state) {
    (void)state;
    harness *h = poor_start();
    peer *p = peer_open(h);
    ask(p, 1, "/bytes?5000000");
    expect_error(p, 1, 503, "E_BUSY_MEMORY");
    ask(p, 3, "/too-much");
    expect(p, 3, 503, NULL);
    ask(p, 5, "/echo");
    expect(p, 5, 200, NULL);
    peer_close(p);
    harness_close(h);
}

static void idle_connections_end(void **state) {
    (void)state;
    harness *h = hasty_start();
    peer *p = peer_open(h);
    ask(p, 1, "/trust");
    expect(p, 1, 200, NULL);
    assert_int_equal(net_server_stats(h->server).authenticated, 1);
    while (!p->gone_away) { /* pings do not keep it open */
        send_frame(p, NGHTTP2_PING, 0, 0, "12345678", 8);
        usleep(20000);
        assert_true(take_what_came(p));
    }
    assert_true(p->gone_away);
    assert_int_equal(p->goaway_code, NGHTTP2_NO_ERROR);
    assert_true(p->acks > 0);
    peer_close(p);
    AWAIT(net_server_connections(h->server) == 0);
    harness_close(h);
}

static void a_stop_answers_what_is_in_flight(void **state) {
    (void)state;
    harness *h = harness_start();
    peer *p = peer_open(h), *quiet = peer_open(h);
    ask(p, 1, "/hold");
    AWAIT(harness_held(h) == 1);
    ask(quiet, 1, "/echo");
    expect(quiet, 1, 200, NULL);
    net_stop(h->server);
    TAKE_UNTIL(p, p->gone_away);
    assert_int_equal(p->goaway_code, NGHTTP2_NO_ERROR);
    assert_int_equal(p->goaway_last, 1);
    expect_goaway(quiet, NGHTTP2_NO_ERROR);
    ask(p, 3, "/echo"); /* too late */
    harness_release(h);
    expect(p, 1, 200, NULL);
    while (next_frame(p)) {
    }
    assert_int_equal(answer_of(p, 3)->status, 0);
    peer_close(p);
    peer_close(quiet);
    harness_join(h);
    assert_int_equal(net_server_stats(h->server).drain_unanswered, 0);
    harness_close(h);
}

/* ---- attacks ---- */

/* Sends until the server has had enough; it must have long before the end. */
static void flood(harness *h, peer *p, const buf *one, unsigned times, uint32_t code) {
    bool open = true;
    for (unsigned i = 0; i < times && open; i++) {
        open = client_try_send(&p->c, one->p, one->n) && take_what_came(p);
    }
    while (!p->gone_away && next_frame(p)) {
    }
    assert_true(p->gone_away);
    assert_int_equal(p->goaway_code, code);
    peer_close(p);
    expect_alive(h);
}

static void rapid_resets(void **state) {
    harness *h = *state;
    peer *p = peer_open(h);
    buf b = buf_init(BUF_NO_LIMIT);
    for (uint32_t i = 0; i < 10000; i++) {
        add_request_of(&b, 2 * i + 1, "GET", "/delay?100", plain_host, END_STREAM | END_HEADERS);
        add_frame(&b, NGHTTP2_RST_STREAM, 0, 2 * i + 1, "\0\0\0\x08", 4);
    }
    client_try_send(&p->c, b.p, b.n);
    buf_free(&b);
    while (!p->gone_away && p->c.fd >= 0) { /* streams beyond those that are kept account of are only refused or reset */
        buf *in = &p->c.in;
        if (in->n < FRAME_HEAD || in->n < FRAME_HEAD + (be32(in->p) >> 8)) {
            assert_true(client_more(&p->c));
            continue;
        }
        size_t n = FRAME_HEAD + (be32(in->p) >> 8);
        if (in->p[3] == NGHTTP2_GOAWAY) {
            take_frame(p, NGHTTP2_GOAWAY, 0, 0, in->p + FRAME_HEAD, n - FRAME_HEAD);
        }
        assert_int_not_equal(in->p[3], NGHTTP2_HEADERS);
        in->n -= n;
        memmove(in->p, in->p + n, in->n);
    }
    assert_int_equal(p->goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
    assert_true(p->goaway_last < 2000);
    peer_close(p);
    AWAIT(net_server_stats(h->server).requests == 0);
    expect_alive(h);
}

static void frames_that_ask_for_nothing(void **state) {
    static const struct {
        uint8_t type;
        uint32_t stream;
        const char *bytes;
        size_t n;
    } kinds[] = {
        {NGHTTP2_PING, 0, "12345678", 8},
        {NGHTTP2_SETTINGS, 0, "\0\4\0\0\x80\0", 6},
        {NGHTTP2_PRIORITY, 9, "\0\0\0\0\5", 5},
        {NGHTTP2_ALTSVC, 0, "\0\1a", 3}, /* a type that only servers send */
        {0x1B, 0, NULL, 0},              /* types that are not assigned */
        {0xFF, 7, "bytes", 5},
    };
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        peer *p = peer_open(*state);
        buf b = buf_init(BUF_NO_LIMIT);
        for (unsigned k = 0; k < 100; k++) {
            add_frame(&b, kinds[i].type, 0, kinds[i].stream, kinds[i].bytes, kinds[i].n);
        }
        flood(*state, p, &b, 5000, NGHTTP2_ENHANCE_YOUR_CALM);
        buf_free(&b);
    }
}

static void empty_data(void **state) {
    peer *p = peer_open(*state);
    ask_with(p, 1, "POST", "/echo", plain_host, END_HEADERS);
    buf b = buf_init(BUF_NO_LIMIT);
    for (unsigned k = 0; k < 100; k++) {
        add_frame(&b, NGHTTP2_DATA, 0, 1, NULL, 0);
    }
    flood(*state, p, &b, 5000, NGHTTP2_ENHANCE_YOUR_CALM);
    buf_free(&b);
}

static void continuations(void **state) {
    peer *p = peer_open(*state);
    ask_with(p, 1, "GET", "/echo", plain_host, END_STREAM);
    buf b = buf_init(BUF_NO_LIMIT);
    add_frame(&b, NGHTTP2_CONTINUATION, 0, 1, "\0\1a\1b", 5);
    flood(*state, p, &b, 100000, NGHTTP2_ENHANCE_YOUR_CALM);
    buf_free(&b);
}

/* A field of 4,000 bytes is put into the table once, and then named by one byte each time. */
static void compressed_bombs(void **state) {
    peer *p = peer_open(*state);
    buf b = head_of("GET", "/echo", plain_host);
    static const char value[4000] = {[0 ... 3999] = 'v'};
    buf_add(&b, "\x40\x03x-c\x7f\xa1\x1e", 8); /* literal with indexing; its value's length: 127 + 0x21 + 0x1e × 128 */
    buf_add(&b, value, sizeof value);
    for (unsigned i = 0; i < 10000; i++) {
        buf_add_byte(&b, (char)(0x80 | 62));
    }
    assert_true(b.n < FRAME_MAX);
    send_frame(p, NGHTTP2_HEADERS, END_STREAM | END_HEADERS, 1, b.p, b.n);
    buf_free(&b);
    expect_goaway(p, NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(answer_of(p, 1)->status, 0);
    peer_close(p);
    expect_alive(*state);
}

static void broken_frames_end_the_connection(void **state) {
    static const struct {
        const char *bytes;
        size_t n;
        uint32_t code;
    } broken[] = {
        {"\xff\xff\xff\x06\0\0\0\0\0", 9, NGHTTP2_FRAME_SIZE_ERROR},
        {"\0\0\x03\0\0\0\0\0\1abc", 12, NGHTTP2_PROTOCOL_ERROR},         /* DATA of an idle stream */
        {"\0\0\x01\x01\x05\0\0\0\1\xff", 10, NGHTTP2_COMPRESSION_ERROR}, /* an index that is cut off */
        {"\0\0\4\x08\0\0\0\0\0\0\0\0\0", 13, NGHTTP2_PROTOCOL_ERROR},    /* a window that opens by nothing */
    };
    for (unsigned i = 0; i < sizeof broken / sizeof *broken; i++) {
        peer *p = peer_open(*state);
        assert_true(client_try_send(&p->c, broken[i].bytes, broken[i].n));
        expect_goaway(p, broken[i].code);
        peer_close(p);
    }
    expect_alive(*state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_what_http_1_makes_of_them),
        cmocka_unit_test(answers_without_a_body),
        cmocka_unit_test(trailers_and_continue),
        cmocka_unit_test(malformed_requests_are_refused),
        cmocka_unit_test(hosts_are_guarded),
        cmocka_unit_test(the_first_bytes_tell),
        cmocka_unit_test(a_hundred_streams_at_once),
        cmocka_unit_test(one_stream_is_cancelled),
        cmocka_unit_test(the_client_goes_away),
        cmocka_unit_test(large_bodies),
        cmocka_unit_test(bodies_past_the_limit),
        cmocka_unit_test(answers_wait_for_the_window),
        cmocka_unit_test(heads_past_the_limit),
        cmocka_unit_test(slow_senders_end),
        cmocka_unit_test(slow_readers_end),
        cmocka_unit_test(readers_that_do_not_read_end),
        cmocka_unit_test(large_answers_pass_a_narrow_socket),
        cmocka_unit_test(slow_readers_make_room_when_memory_is_scarce),
        cmocka_unit_test(slow_senders_make_room_when_memory_is_scarce),
        cmocka_unit_test(answers_without_room_are_refused),
        cmocka_unit_test(idle_connections_end),
        cmocka_unit_test(a_stop_answers_what_is_in_flight),
        cmocka_unit_test(rapid_resets),
        cmocka_unit_test(frames_that_ask_for_nothing),
        cmocka_unit_test(empty_data),
        cmocka_unit_test(continuations),
        cmocka_unit_test(compressed_bombs),
        cmocka_unit_test(broken_frames_end_the_connection),
    };
    return cmocka_run_group_tests_name("net/http2", tests, setup, teardown);
}
