/* HTTP exchanges, as bytes on a socket. */
#include "net_harness.h"

static int setup(void **state) {
    *state = harness_start();
    return 0;
}

static int teardown(void **state) {
    harness *h = *state;
    AWAIT(net_server_connections(h->server) == 0);
    harness_close(h);
    return 0;
}

/* ---- answers ---- */

static void keeps_alive(void **state) {
    client c = client_open(*state);
    for (int i = 0; i < 3; i++) {
        client_send(&c, "GET /echo?q=1 HTTP/1.1\r\nHost: here:81\r\nx-A:  one \r\nX-B:two\t\r\nX-C: three\r\n\r\n");
        response r = client_response(&c, false);
        assert_int_equal(r.status, 200);
        assert_string_equal(r.body.p, "GET /echo?q=1 host=here:81 a=one b=two body=");
        assert_string_equal(field_of(&r, "Content-Type"), "text/plain");
        assert_null(field_of(&r, "Connection"));
        const char *date = field_of(&r, "Date");
        assert_non_null(date);
        assert_int_equal(strlen(date), strlen("Sun, 15 Nov 2026 09:12:33 GMT"));
        assert_string_equal(date + 26, "GMT");
        buf_free(&r.body);
    }
    client_close(&c);
}

static void one_request_leaves_nothing_for_the_next(void **state) {
    client c = client_open(*state);
    client_send(&c, "POST /echo?q HTTP/1.1\r\nHost: h\r\nx-a: one\r\nContent-Length: 2\r\n\r\nhi");
    expect_response(&c, 200, "POST /echo?q host=h a=one b= body=hi");
    client_send(&c, "GET /echo HTTP/1.1\r\nHost: g\r\nx-b: two\r\n\r\n");
    expect_response(&c, 200, "GET /echo? host=g a= b=two body=");
    client_close(&c);
}

static void closes_when_asked(void **state) {
    static const struct {
        const char *request;
        const char *connection;
        bool closes;
    } cases[] = {
        {"GET /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "close", true},
        {"GET /echo HTTP/1.0\r\n\r\n", "close", true},
        {"GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "keep-alive", false},
        {"GET /echo HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\n\r\n", NULL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        client c = client_open(*state);
        client_send(&c, cases[i].request);
        response r = client_response(&c, false);
        assert_int_equal(r.status, 200);
        const char *connection = field_of(&r, "Connection");
        assert_string_equal(connection ? connection : "-", cases[i].connection ? cases[i].connection : "-");
        if (cases[i].closes) {
            assert_true(client_ended(&c));
        } else {
            client_send(&c, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
            expect_response(&c, 200, NULL);
        }
        buf_free(&r.body);
        client_close(&c);
    }
}

static void bodiless_answers(void **state) {
    client c = client_open(*state);
    client_send(&c, "HEAD /bytes?5000 HTTP/1.1\r\nHost: h\r\n\r\n");
    response r = client_response(&c, true);
    assert_int_equal(r.status, 200);
    assert_string_equal(field_of(&r, "Content-Length"), "5000");
    buf_free(&r.body);
    for (int status = 204; status <= 304; status += 100) {
        char request[100];
        snprintf(request, sizeof request, "GET /status?%d HTTP/1.1\r\nHost: h\r\n\r\n", status);
        client_send(&c, request);
        r = client_response(&c, false);
        assert_int_equal(r.status, status);
        assert_null(field_of(&r, "Content-Length"));
        buf_free(&r.body);
    }
    client_send(&c, "GET /status?449 HTTP/1.1\r\nHost: h\r\n\r\n"); /* no rest of the bodies precedes the answer */
    r = client_response(&c, false);
    assert_int_equal(r.status, 449);
    assert_int_equal(strncmp(r.head, "HTTP/1.1 449 Retry With\r\n", 25), 0);
    buf_free(&r.body);
    client_close(&c);
}

static void targets(void **state) {
    client c = client_open(*state);
    client_send(&c, "GET http://other:8081/echo/a%20b?c=d?e HTTP/1.1\r\nHost: h\r\n\r\n");
    expect_response(&c, 200, "GET /echo/a%20b?c=d?e host=other:8081 a= b= body=");
    client_send(&c, "GET http://other HTTP/1.1\r\nHost: h\r\n\r\n");
    expect_response(&c, 200, "GET /? host=other a= b= body=");
    client_send(&c, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    expect_response(&c, 200, "OPTIONS *? host=h a= b= body=");
    client_send(&c, "REPORT /x? HTTP/1.1\r\nHost: h\r\n\r\n");
    expect_response(&c, 200, "REPORT /x? host=h a= b= body=");
    client_close(&c);
}

static void repeated_fields_are_joined(void **state) {
    client c = client_open(*state);
    client_send(&c, "GET /echo HTTP/1.1\r\nHost: h\r\nx-a: 1\r\nx-b: 2\r\nX-A:\r\nx-A: 3\r\n\r\n");
    expect_response(&c, 200, "GET /echo? host=h a=1, , 3 b=2 body=");
    client_close(&c);
}

static void upgrade_to_h2c_is_ignored(void **state) {
    client c = client_open(*state);
    client_send(&c, "GET /echo HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n");
    expect_response(&c, 200, "GET /echo? host=h a= b= body=");
    client_close(&c);
}

static void line_breaks_in_values_are_dropped(void **state) {
    client c = client_open(*state);
    client_send(&c, "GET /inject HTTP/1.1\r\nHost: h\r\n\r\n");
    response r = client_response(&c, false);
    assert_string_equal(field_of(&r, "X-Value"), "aSet-Cookie: bc");
    assert_null(field_of(&r, "Set-Cookie"));
    buf_free(&r.body);
    client_close(&c);
}

static void a_reply_may_be_abandoned(void **state) {
    client c = client_open(*state);
    client_send(&c, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\nGET /second-thoughts HTTP/1.1\r\nHost: h\r\n\r\n");
    expect_response(&c, 200, NULL);
    response r = client_response(&c, false);
    assert_int_equal(r.status, 404);
    assert_string_equal(r.body.p, "xxx");
    assert_null(field_of(&r, "X-First"));
    buf_free(&r.body);
    client_close(&c);
}

static void too_much_of_an_answer_is_an_error(void **state) {
    log_set_level(LOG_ERROR);
    client c = client_open(*state);
    client_send(&c, "GET /too-much HTTP/1.1\r\nHost: h\r\n\r\nGET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    expect_response(&c, 500, "");
    expect_response(&c, 200, NULL);
    client_close(&c);
}

static void peers_have_names(void **state) {
    client c = client_open(*state);
    struct sockaddr_in own = {0};
    socklen_t n = sizeof own;
    char expected[64];
    getsockname(c.fd, (struct sockaddr *)&own, &n);
    snprintf(expected, sizeof expected, "127.0.0.1:%u", ntohs(own.sin_port));
    client_send(&c, "GET /peer HTTP/1.1\r\nHost: h\r\n\r\n");
    expect_response(&c, 200, expected);
    client_close(&c);
}

/* ---- pipelining and fragments ---- */

enum { PIPELINED = 100 };

static void expect_in_order(client *c, const char *path) {
    for (int i = 0; i < PIPELINED; i++) {
        char expected[100];
        snprintf(expected, sizeof expected, "GET %s?%d host=h a= b= body=", i % 7 == 3 ? path : "/echo", i);
        expect_response(c, 200, expected);
    }
}

static void add_pipelined(buf *b, const char *path) {
    for (int i = 0; i < PIPELINED; i++) {
        buf_addf(b, "GET %s?%d HTTP/1.1\r\nHost: h\r\n\r\n", i % 7 == 3 ? path : "/echo", i);
    }
}

static void pipelined_in_one_write(void **state) {
    buf b = buf_init(BUF_NO_LIMIT);
    add_pipelined(&b, "/echo");
    client c = client_open(*state);
    assert_true(client_try_send(&c, b.p, b.n));
    expect_in_order(&c, "/echo");
    client_close(&c);
    buf_free(&b);
}

static void pipelined_behind_late_answers(void **state) {
    buf b = buf_init(BUF_NO_LIMIT);
    add_pipelined(&b, "/later");
    client c = client_open(*state);
    assert_true(client_try_send(&c, b.p, b.n));
    expect_in_order(&c, "/later");
    client_close(&c);
    buf_free(&b);
}

static void a_reply_over_several_turns_keeps_its_place(void **state) {
    client c = client_open(*state);
    client_send(&c, "GET /echo?1 HTTP/1.1\r\nHost: h\r\n\r\nGET /turns HTTP/1.1\r\nHost: h\r\n\r\nGET /echo?2 HTTP/1.1\r\nHost: h\r\n\r\n");
    expect_response(&c, 200, "GET /echo?1 host=h a= b= body=");
    expect_response(&c, 200, "the beginning and the end");
    expect_response(&c, 200, "GET /echo?2 host=h a= b= body=");
    client_close(&c);
}

static void large_answers_in_a_row(void **state) {
    client c = client_open(*state);
    for (int i = 0; i < 20; i++) {
        client_send(&c, "GET /bytes?300000 HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    client_send(&c, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    for (int i = 0; i < 20; i++) {
        response r = client_response(&c, false);
        assert_int_equal(r.status, 200);
        assert_int_equal(r.body.n, 300000);
        buf_free(&r.body);
    }
    expect_response(&c, 200, "GET /echo? host=h a= b= body=");
    client_close(&c);
}

static void byte_by_byte(void **state) {
    static const char requests[] = "\r\nGET /echo?1 HTTP/1.1\r\nHost: h\r\nx-a:  v w \r\nx-b:\r\n\r\n"
                                   "POST /echo?2 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
                                   "POST /later?3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                                   "3;x=y\r\nabc\r\n00A\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n"
                                   "GET /echo?4 HTTP/1.1\r\nHost: h\r\n\r\n";
    client c = client_open(*state);
    for (size_t i = 0; i < sizeof requests - 1; i++) {
        assert_true(client_try_send(&c, requests + i, 1));
        if (i % 3 == 0) {
            usleep(200); /* so that most bytes arrive in a read of their own */
        }
    }
    expect_response(&c, 200, "GET /echo?1 host=h a=v w b= body=");
    expect_response(&c, 200, "POST /echo?2 host=h a= b= body=hello");
    expect_response(&c, 200, "POST /later?3 host=h a= b= body=abc0123456789");
    expect_response(&c, 200, "GET /echo?4 host=h a= b= body=");
    client_close(&c);
}

/* ---- bodies ---- */

static void chunked_bodies(void **state) {
    client c = client_open(*state);
    client_send(&c, "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n");
    expect_response(&c, 200, "POST /echo? host=h a= b= body=");
    client_send(&c, "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"
                    "GET /echo?next HTTP/1.1\r\nHost: h\r\n\r\n");
    expect_response(&c, 200, "POST /echo? host=h a= b= body=abc");
    expect_response(&c, 200, "GET /echo?next host=h a= b= body=");
    client_close(&c);
}

static void large_bodies_arrive_whole(void **state) {
    enum { BYTES = 2 * 1024 * 1024 };
    client c = client_open(*state);
    char *body = mem_alloc(BYTES);
    for (size_t i = 0; i < BYTES; i++) {
        body[i] = (char)('a' + i % 23);
    }
    for (int chunked = 0; chunked < 2; chunked++) {
        char head[200];
        snprintf(head, sizeof head, "POST /echo HTTP/1.1\r\nHost: h\r\n%s", chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "");
        client_send(&c, head);
        if (!chunked) {
            snprintf(head, sizeof head, "Content-Length: %d\r\n\r\n", BYTES);
            client_send(&c, head);
            assert_true(client_try_send(&c, body, BYTES));
        }
        for (size_t at = 0; chunked && at < BYTES; at += BYTES / 16) {
            snprintf(head, sizeof head, "%x\r\n", BYTES / 16);
            client_send(&c, head);
            assert_true(client_try_send(&c, body + at, BYTES / 16));
            client_send(&c, at + BYTES / 16 < BYTES ? "\r\n" : "\r\n0\r\n\r\n");
        }
        response r = client_response(&c, false);
        const char *prefix = "POST /echo? host=h a= b= body=";
        assert_int_equal(r.body.n, strlen(prefix) + BYTES);
        assert_memory_equal(r.body.p + strlen(prefix), body, BYTES);
        buf_free(&r.body);
    }
    free(body);
    client_close(&c);
}

static void continues_when_expected(void **state) {
    client c = client_open(*state);
    client_send(&c, "PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n");
    response r = client_response(&c, true);
    assert_int_equal(r.status, 100);
    buf_free(&r.body);
    client_send(&c, "abc");
    expect_response(&c, 200, "PUT /echo? host=h a= b= body=abc");
    /* no 100 Continue if the body comes at once */
    client_send(&c, "PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nxyz");
    expect_response(&c, 200, "PUT /echo? host=h a= b= body=xyz");
    /* no 100 Continue for a body that would be discarded */
    client_send(&c, "PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000\r\nExpect: 100-continue\r\n\r\n");
    expect_response(&c, 413, NULL);
    assert_true(client_ended(&c));
    client_close(&c);
}

static bool send_filler(client *c, size_t n) {
    static const char filler[65536];
    for (size_t k; n; n -= k) {
        k = n < sizeof filler ? n : sizeof filler;
        if (!client_try_send(c, filler, k)) {
            return false;
        }
    }
    return true;
}

/* Many clients send large bodies at once, and none completes its body: the kept input is bounded, and other clients are served. */
static void large_bodies_at_once_are_bounded(void **state) {
    enum { CLIENTS = 80, BYTES = 4 * 1000 * 1000 };
    client clients[CLIENTS];
    unsigned refused = 0;
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = client_open(*state);
        client_send(&clients[i], "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n");
        send_filler(&clients[i], BYTES - 1);
    }
    expect_alive(*state);
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (client_try_send(&clients[i], "x", 1)) {
            response r = client_response(&clients[i], false);
            assert_true(r.status == 200 || r.status == 503);
            refused += r.status == 503;
            buf_free(&r.body);
        } else {
            refused++;
        }
        client_close(&clients[i]);
    }
    assert_true(refused > 0 && refused < CLIENTS);
    expect_alive(*state);
}

static void bodies_too_large(void **state) {
    client c = client_open(*state);
    client_send(&c, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000\r\n\r\n");
    assert_true(send_filler(&c, 5000000));
    expect_response(&c, 413, NULL);
    client_send(&c, "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4c4b40\r\n");
    assert_true(send_filler(&c, 5000000));
    client_send(&c, "\r\n0\r\n\r\n");
    expect_response(&c, 413, NULL);
    client_send(&c, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n"); /* the connection still works */
    expect_response(&c, 200, NULL);
    client_send(&c, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 500000000\r\n\r\n"); /* too large to be read and discarded */
    send_filler(&c, 3000000);
    response r = client_response(&c, false);
    assert_int_equal(r.status, 413);
    assert_string_equal(field_of(&r, "Connection"), "close");
    buf_free(&r.body);
    client_close(&c);
    expect_alive(*state);
}

/* ---- refused requests ---- */

#define H "Host: h\r\n"
#define CHUNKED "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"

static const struct {
    const char *what;
    const char *request;
    int status;
} malformed[] = {
    {"not HTTP", "hello\r\n\r\n", 400},
    {"a TLS record in the plain", "\x16\x03\x01\x05\x01\r\n", 400},
    {"unknown method", "FETCH / HTTP/1.1\r\n" H "\r\n", 400},
    {"lower-case method", "get / HTTP/1.1\r\n" H "\r\n", 400},
    {"no target", "GET HTTP/1.1\r\n" H "\r\n", 400},
    {"relative target", "GET x HTTP/1.1\r\n" H "\r\n", 400},
    {"control character in the target", "GET /\x01 HTTP/1.1\r\n" H "\r\n", 400},
    {"raw UTF-8 in the target", "GET /\xC3\xA9 HTTP/1.1\r\n" H "\r\n", 400},
    {"tab in the target", "GET /a\tb HTTP/1.1\r\n" H "\r\n", 400},
    {"fragment in the target", "GET /a#b HTTP/1.1\r\n" H "\r\n", 400},
    {"two blanks before the target", "GET  / HTTP/1.1\r\n" H "\r\n", 400},
    {"two blanks before the version", "GET /  HTTP/1.1\r\n" H "\r\n", 400},
    {"blank behind the version", "GET / HTTP/1.1 \r\n" H "\r\n", 400},
    {"HTTP/0.9", "GET /\r\n\r\n", 400},
    {"HTTP/2.0", "GET / HTTP/2.0\r\n" H "\r\n", 400},
    {"HTTP/1.2", "GET / HTTP/1.2\r\n" H "\r\n", 400},
    {"another protocol", "GET / FTP/1.1\r\n" H "\r\n", 400},
    {"Icecast's protocol", "SOURCE / ICE/1.0\r\n" H "\r\n", 400},
    {"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
    {"two Hosts", "GET / HTTP/1.1\r\n" H H "\r\n", 400},
    {"bare line feeds", "GET / HTTP/1.1\nHost: h\n\n", 400},
    {"one bare line feed", "GET / HTTP/1.1\r\nHost: h\n\r\n", 400},
    {"bare carriage return in a value", "GET / HTTP/1.1\r\n" H "X: a\rb\r\n\r\n", 400},
    {"carriage return for the empty line", "GET / HTTP/1.1\r\n" H "\rX\n", 400},
    {"folded value", "GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n", 400},
    {"folded empty value", "GET / HTTP/1.1\r\n" H "X:\r\n b\r\n\r\n", 400},
    {"blank before a name", "GET / HTTP/1.1\r\n" H " X: a\r\n\r\n", 400},
    {"blank in a name", "GET / HTTP/1.1\r\n" H "X y: a\r\n\r\n", 400},
    {"blank before the colon", "GET / HTTP/1.1\r\n" H "X : a\r\n\r\n", 400},
    {"no name", "GET / HTTP/1.1\r\n" H ": a\r\n\r\n", 400},
    {"no colon", "GET / HTTP/1.1\r\n" H "X\r\n\r\n", 400},
    {"control character in a value", "GET / HTTP/1.1\r\n" H "X: a\x01\r\n\r\n", 400},
    {"delete in a value", "GET / HTTP/1.1\r\n" H "X: 12345678\x7F\r\n\r\n", 400},
    {"negative length", "POST / HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n", 400},
    {"length with a sign", "POST / HTTP/1.1\r\n" H "Content-Length: +1\r\n\r\na", 400},
    {"length no number", "POST / HTTP/1.1\r\n" H "Content-Length: x\r\n\r\n", 400},
    {"empty length", "POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n", 400},
    {"length past 64 bits", "POST / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999\r\n\r\n", 400},
    {"two lengths", "POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
    {"length list", "POST / HTTP/1.1\r\n" H "Content-Length: 1, 1\r\n\r\na", 400},
    {"length and chunked", "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"chunked and length", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400},
    {"other transfer coding", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\n", 400},
    {"two transfer codings", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
    {"chunked twice", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"chunked in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"chunk size no number", CHUNKED "x\r\n", 400},
    {"no chunk size", CHUNKED "\r\n", 400},
    {"blank before the chunk size", CHUNKED " 1\r\na\r\n0\r\n\r\n", 400},
    {"chunk size too long", CHUNKED "123456789\r\n", 400},
    {"chunk size ended by a line feed", CHUNKED "1\na\n0\n\n", 400},
    {"chunk longer than its size", CHUNKED "1\r\nabc\r\n0\r\n\r\n", 400},
    {"chunks ended by nothing", CHUNKED "1\r\na\r\n0\r\n\rX", 400},
    {"control character in an extension", CHUNKED "1;\x01\r\na\r\n0\r\n\r\n", 400},
    {"line feed in a trailer", CHUNKED "0\r\nA: b\n\r\n\r\n", 400},
    {"CONNECT", "CONNECT h:1 HTTP/1.1\r\n" H "\r\n", 405},
    {"WebSocket", "GET / HTTP/1.1\r\n" H "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 400},
};

static void refuses_malformed_requests(void **state) {
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        for (int behind_a_good_one = 0; behind_a_good_one < 2; behind_a_good_one++) {
            client c = client_open(*state);
            if (behind_a_good_one) {
                client_send(&c, "POST /echo HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nok");
            }
            client_send(&c, malformed[i].request);
            if (behind_a_good_one) {
                expect_response(&c, 200, "POST /echo? host=h a= b= body=ok");
            }
            response r = client_response(&c, false);
            if (r.status != malformed[i].status || !client_ended(&c)) {
                fail_msg("%s: status %d", malformed[i].what, r.status);
            }
            assert_string_equal(r.body.p, "refused");
            assert_string_equal(field_of(&r, "Connection"), "close");
            buf_free(&r.body);
            client_close(&c);
        }
    }
    expect_alive(*state);
}

static void refuses_zero_bytes(void **state) {
    static const char request[] = "GET / HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n";
    client c = client_open(*state);
    assert_true(client_try_send(&c, request, sizeof request - 1));
    expect_response(&c, 400, "refused");
    client_close(&c);
}

static void expect_refusal(harness *h, const buf *request, int status, const char *name) {
    client c = client_open(h);
    client_try_send(&c, request->p, request->n);
    response r = client_response(&c, false);
    assert_int_equal(r.status, status);
    assert_string_equal(field_of(&r, "X-Error"), name);
    assert_true(client_ended(&c));
    buf_free(&r.body);
    client_close(&c);
}

static void heads_have_limits(void **state) {
    buf b = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&b, "GET /echo HTTP/1.1\r\n" H);
    for (int i = 0; i < LIMIT_HEADER_COUNT; i++) {
        buf_addf(&b, "f%d: v\r\n", i);
    }
    buf_add_lit(&b, "\r\n");
    expect_refusal(*state, &b, 431, "E_TOO_MANY_HEADERS");
    buf_clear(&b);
    buf_add_lit(&b, "GET /echo HTTP/1.1\r\n" H "x: ");
    for (int i = 0; i < LIMIT_HEADER_BYTES; i++) {
        buf_add_byte(&b, 'v');
    }
    expect_refusal(*state, &b, 431, "E_TOO_MANY_HEADERS");
    buf_clear(&b);
    buf_add_lit(&b, "GET /");
    for (int i = 0; i < LIMIT_URL_BYTES; i++) {
        buf_add_byte(&b, 'u');
    }
    buf_add_lit(&b, " HTTP/1.1\r\n" H "\r\n");
    expect_refusal(*state, &b, 400, "E_BAD_REQUEST");
    buf_free(&b);
    expect_alive(*state);
}

static void heads_up_to_the_limits_are_fine(void **state) {
    buf b = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&b, "GET /");
    for (int i = 0; i < LIMIT_URL_BYTES - 1; i++) {
        buf_add_byte(&b, 'u');
    }
    buf_add_lit(&b, " HTTP/1.1\r\n" H);
    for (int i = 0; i < LIMIT_HEADER_COUNT - 2; i++) {
        buf_addf(&b, "f%d: v\r\n", i);
    }
    buf_add_lit(&b, "x: ");
    while (b.n < LIMIT_HEADER_BYTES - 4) {
        buf_add_byte(&b, 'v');
    }
    buf_add_lit(&b, "\r\n\r\n");
    client c = client_open(*state);
    assert_true(client_try_send(&c, b.p, b.n));
    expect_response(&c, 200, NULL);
    client_close(&c);
    buf_free(&b);
}

/* ---- late answers, lost clients ---- */

static void late_answers_on_many_connections(void **state) {
    enum { CLIENTS = 20, ROUNDS = 10 };
    client c[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        c[i] = client_open(*state);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CLIENTS; i++) {
            char request[100];
            snprintf(request, sizeof request, "POST /later?%d HTTP/1.1\r\nHost: h\r\nx-a: %d\r\nContent-Length: 2\r\n\r\nhi", i, round);
            client_send(&c[i], request);
        }
        for (int i = 0; i < CLIENTS; i++) {
            char expected[100];
            snprintf(expected, sizeof expected, "POST /later?%d host=h a=%d b= body=hi", i, round);
            expect_response(&c[i], 200, expected);
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        client_close(&c[i]);
    }
}

static void a_request_outlives_its_client(void **state) {
    harness *h = *state;
    struct linger reset = {.l_onoff = 1};
    client c[6];
    for (int i = 0; i < 6; i++) {
        c[i] = client_open(h);
        client_send(&c[i], "POST /hold HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    }
    AWAIT(harness_held(h) == 6);
    for (int i = 0; i < 6; i++) {
        if (i % 2) {
            setsockopt(c[i].fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        }
        client_close(&c[i]);
    }
    AWAIT(net_server_connections(h->server) <= 3); /* the clients that reset are gone; the others might still be reading */
    harness_release(h);
    AWAIT(net_server_connections(h->server) == 0);
    expect_alive(h);
}

static void a_client_that_stops_sending_is_answered(void **state) {
    harness *h = *state;
    client c = client_open(h);
    client_send(&c, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\nGET /echo HTTP/1.1\r\nHost: h\r\n\r\nGET /par");
    shutdown(c.fd, SHUT_WR);
    AWAIT(harness_held(h) == 1);
    harness_release(h);
    expect_response(&c, 200, "GET /hold? host=h a= b= body=");
    expect_response(&c, 200, "GET /echo? host=h a= b= body=");
    assert_true(client_ended(&c));
    client_close(&c);
}

/* While a request is served, further input of the client is kept within a bound; all of it is served in the end. */
static void flooding_a_busy_connection(void **state) {
    enum { BODY = 30000, FLOOD_MAX = 64 * 1024 * 1024 };
    harness *h = *state;
    buf request = buf_init(BUF_NO_LIMIT);
    buf_addf(&request, "POST /bytes?10 HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", BODY);
    for (int i = 0; i < BODY; i++) {
        buf_add_byte(&request, 'b');
    }
    client c = client_open(h);
    client_send(&c, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
    AWAIT(harness_held(h) == 1);
    size_t sent = 0;
    struct pollfd writable = {.fd = c.fd, .events = POLLOUT};
    while (sent < FLOOD_MAX && poll(&writable, 1, 300) > 0) { /* until the server reads no more */
        size_t at = sent % request.n;
        ssize_t k = send(c.fd, request.p + at, request.n - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        sent += k > 0 ? (size_t)k : 0;
    }
    assert_true(sent < FLOOD_MAX);
    harness_release(h);
    expect_response(&c, 200, "GET /hold? host=h a= b= body=");
    for (size_t i = 0; i < sent / request.n; i++) {
        expect_response(&c, 200, "xxxxxxxxxx");
    }
    assert_true(client_try_send(&c, request.p + sent % request.n, request.n - sent % request.n));
    expect_response(&c, 200, "xxxxxxxxxx");
    client_close(&c);
    buf_free(&request);
}

/* Clients that do all of this at random, and disconnect at any moment: for the sanitizers. */

typedef struct chaos {
    pthread_t thread;
    harness *h;
    random_source random;
} chaos;

static void add_random_request(buf *b, random_source *random) {
    switch (random_below(random, 8)) {
    case 0:
        buf_add_lit(b, "GET /later?1 HTTP/1.1\r\nHost: h\r\n\r\n");
        break;
    case 1:
        buf_add_lit(b, "POST /turns HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody");
        break;
    case 2:
        buf_add_lit(b, "POST /later HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
        break;
    case 3:
        buf_addf(b, "GET /bytes?%u HTTP/1.1\r\nHost: h\r\n\r\n", (unsigned)random_below(random, 1000000));
        break;
    case 4:
        buf_add_lit(b, "PUT /later HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nxyz");
        break;
    case 5:
        if (random_below(random, 10) == 0) {
            buf_add_lit(b, "GET / HTTP/1.1\r\nmalformed\r\n\r\n");
        }
        break;
    default:
        buf_add_lit(b, "GET /echo HTTP/1.1\r\nHost: h\r\nx-a: b\r\n\r\n");
        break;
    }
}

static void send_in_pieces(int fd, buf *b, random_source *random) {
    static _Thread_local char sink[100000];
    for (size_t at = 0; at < b->n;) {
        size_t n = 1 + random_below(random, random_below(random, 3) ? 2000 : 20);
        ssize_t k = send(fd, b->p + at, n < b->n - at ? n : b->n - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k <= 0 && errno != EAGAIN) {
            return;
        }
        at += k > 0 ? (size_t)k : 0;
        if (k <= 0 || random_below(random, 3) == 0) {
            recv(fd, sink, sizeof sink, MSG_DONTWAIT);
        }
    }
}

static void *be_chaotic(void *argument) {
    chaos *me = argument;
    struct linger reset = {.l_onoff = 1};
    for (int i = 0; i < 60; i++) {
        int fd = client_socket(me->h, AF_INET);
        buf b = buf_init(BUF_NO_LIMIT);
        for (uint64_t n = random_below(&me->random, 40); n; n--) {
            add_random_request(&b, &me->random);
        }
        b.n -= random_below(&me->random, 4) == 0 && b.n ? random_below(&me->random, b.n) : 0;
        send_in_pieces(fd, &b, &me->random);
        if (random_below(&me->random, 2)) {
            usleep((useconds_t)random_below(&me->random, 3000));
        }
        if (random_below(&me->random, 2)) {
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        }
        close(fd);
        buf_free(&b);
    }
    return NULL;
}

static void clients_at_random(void **state) {
    chaos clients[4];
    for (int i = 0; i < 4; i++) {
        clients[i].h = *state;
        random_seed(&clients[i].random, (uint64_t)i + 1);
        pthread_create(&clients[i].thread, NULL, be_chaotic, &clients[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(clients[i].thread, NULL);
    }
    expect_alive(*state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_alive),
        cmocka_unit_test(one_request_leaves_nothing_for_the_next),
        cmocka_unit_test(closes_when_asked),
        cmocka_unit_test(bodiless_answers),
        cmocka_unit_test(targets),
        cmocka_unit_test(repeated_fields_are_joined),
        cmocka_unit_test(upgrade_to_h2c_is_ignored),
        cmocka_unit_test(line_breaks_in_values_are_dropped),
        cmocka_unit_test(a_reply_may_be_abandoned),
        cmocka_unit_test(too_much_of_an_answer_is_an_error),
        cmocka_unit_test(peers_have_names),
        cmocka_unit_test(pipelined_in_one_write),
        cmocka_unit_test(pipelined_behind_late_answers),
        cmocka_unit_test(a_reply_over_several_turns_keeps_its_place),
        cmocka_unit_test(large_answers_in_a_row),
        cmocka_unit_test(byte_by_byte),
        cmocka_unit_test(chunked_bodies),
        cmocka_unit_test(large_bodies_arrive_whole),
        cmocka_unit_test(continues_when_expected),
        cmocka_unit_test(bodies_too_large),
        cmocka_unit_test(large_bodies_at_once_are_bounded),
        cmocka_unit_test(refuses_malformed_requests),
        cmocka_unit_test(refuses_zero_bytes),
        cmocka_unit_test(heads_have_limits),
        cmocka_unit_test(heads_up_to_the_limits_are_fine),
        cmocka_unit_test(late_answers_on_many_connections),
        cmocka_unit_test(a_request_outlives_its_client),
        cmocka_unit_test(a_client_that_stops_sending_is_answered),
        cmocka_unit_test(flooding_a_busy_connection),
        cmocka_unit_test(clients_at_random),
    };
    return cmocka_run_group_tests_name("net/http", tests, setup, teardown);
}
