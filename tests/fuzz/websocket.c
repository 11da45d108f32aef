/* WebSocket: the same bytes get the same answers, however they are divided into reads. Messages are within their limit, text is UTF-8, and
 * nothing is leaked.
 *
 * The input's first byte seeds the division. The rest is what a client sends after its handshake. */
#include <unistr.h>

#include "net/frames_int.h"
#include "net/http_int.h"
#include "net/websocket.h"
#include "wire.h"

enum { IN_FLIGHT = 4, MESSAGE_MAX = 3000 };

static frames_conn *open_conn;
static frames_request *held[IN_FLIGHT];
static unsigned held_n;

static void answer(frames_request *r) {
    buf_add_slice(frames_out(r), r->frame);
    frames_end(r);
}

/* Ends the held requests. Each may admit another request, which is held until the next call. */
static void release(void) {
    frames_request *before[IN_FLIGHT];
    unsigned n = held_n;
    memcpy(before, held, sizeof held);
    held_n = 0;
    for (unsigned i = 0; i < n; i++) {
        answer(before[i]);
    }
}

static void handle(frames_request *r) {
    char first = r->frame.n ? r->frame.p[0] : 0;
    check(r->frame.n <= MESSAGE_MAX, "message past its limit");
    check(!r->text || !u8_check((const uint8_t *)r->frame.p, r->frame.n), "text that is not UTF-8");
    check(r->conn->live_n <= IN_FLIGHT && held_n < IN_FLIGHT, "more in flight than may be");
    if (first == 'h') {
        held[held_n++] = r;
        return;
    }
    if (first == 'r') {
        release();
    } else if (first == 't') {
        frames_trust(r->conn);
    } else if (first == 'q') {
        websocket_close(r->conn, 4000, r->frame);
    }
    answer(r);
}

static void refuse(frames_request *r, err code) {
    buf_addf(frames_out(r), "!%s", err_lookup(code)->name);
    frames_end(r);
}

static void opened(frames_conn *conn) {
    open_conn = conn;
}

static void closed(frames_conn *conn) {
    check(open_conn == conn && held_n == 0, "closed with requests in flight");
    open_conn = NULL;
}

static const frames_front front = {
    .name = "fuzz",
    .untrusted = {.frame_bytes = MESSAGE_MAX, .in_flight = IN_FLIGHT, .in_flight_bytes = 4000},
    .trusted = {.frame_bytes = MESSAGE_MAX, .in_flight = IN_FLIGHT, .in_flight_bytes = 8000},
    .opened = opened,
    .closed = closed,
    .handle = handle,
    .refuse = refuse,
};

static void handle_http(http_request *r) {
    websocket_accept(r, &front, NULL, NULL);
}

static void refuse_http(http_request *r, err code) {
    http_reply_start(r, err_lookup(code)->http_status);
    http_reply_end(r);
}

static const http_front http = {.name = "fuzz", .websockets = true, .handle = handle_http, .refuse = refuse_http};

static buf run(const uint8_t *data, size_t n, random_source *cuts) {
    static const char handshake[] =
        "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    static http_service *service;
    if (!service) {
        service = http_service_new(&http);
    }
    wire w = wire_open(&http_protocol, service);
    wire_send(&w, handshake, sizeof handshake - 1);
    check(w.out.n > 12 && memcmp(w.out.p, "HTTP/1.1 101", 12) == 0 && open_conn, "a handshake");
    buf_clear(&w.out);
    wire_send_cut(&w, data, n, cuts);
    wire_close(&w);
    while (held_n) {
        release();
    }
    wire_expect_nothing();
    check(!open_conn, "not closed");
    return w.out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 1 || n > 60000) {
        return 0;
    }
    if (!wire_server) {
        wire_start();
    }
    random_source cuts;
    random_seed(&cuts, data[0]);
    buf whole = run(data + 1, n - 1, NULL), cut = run(data + 1, n - 1, &cuts);
    wire_expect_same(&whole, &cut);
    buf_free(&whole);
    buf_free(&cut);
    return 0;
}
