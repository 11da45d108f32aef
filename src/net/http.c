/* The lifecycle of exchanges: bytes become requests, requests go to the front end, answers go out in order. Answers are written in reply.c.
 *
 *   exchange NULL                idle
 *   exchange, not handed         reading a request
 *   exchange, handed             the front end has it; further input is kept, within a bound
 *   net_conn_is_stuck            output is queued, the client does not read: nothing is parsed until it does
 *
 * `pump` is the only place that parses: it runs when bytes come, when an answer ends, and when queued output has been sent. The answers of
 * one pump go out in one write. */
#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "net/http_int.h"

enum {
    EXCHANGES_KEPT = 64,         /* free exchanges kept per loop, each with one arena block */
    FLUSH_BYTES = 64 * 1024,     /* answers are sent before the end of the pump once they exceed this */
    WAITING_BYTES = 64 * 1024,   /* input kept while the front end works; above it the socket is not read */
    HOLD_BYTES = 16 * 1024,      /* answers up to this size are held until the end of the turn */
    OWN_BYTES = 4 * 1024 * 1024, /* request memory not drawn from the pool: enough for a page of an answer */
};

/* ---- exchanges ---- */

static http_exchange *exchange_make(net_loop *loop) {
    http_exchange *x = mem_zero(sizeof *x);
    net_serving_init(&x->serving, loop, OWN_BYTES);
    x->request.arena = &x->serving.arena;
    x->client.loop = loop;
    x->request.client = &x->client;
    return x;
}

static http_exchange *exchange_take(http_conn *h) {
    net_conn *c = net_conn_of(h);
    net_loop *loop = net_conn_loop(c);
    http_exchange *x = loop->exchanges;
    if (x) {
        loop->exchanges = x->next;
        loop->exchanges_free--;
    } else {
        x = exchange_make(loop);
    }
    net_serving_begin(loop);
    x->conn = h;
    x->service = h->service;
    x->front = h->service->front;
    x->request.context = h->service->front->context;
    x->request.tls = net_conn_is_tls(c);
    x->peer = net_conn_peer(c);
    h->reading.timing = NET_UNTIMED;
    x->to = NULL;
    x->last = x->linger = x->starved = false;
    http_framing_start(&x->framing, h->service->names, h->service->limits);
    return x;
}

static void exchange_give(http_exchange *x) {
    net_loop *loop = x->request.client->loop;
    for (unsigned i = 0; i < x->framing.found_n; i++) {
        x->request.field[x->framing.found[i].field] = SLICE_EMPTY;
    }
    bool reuse = loop->exchanges_free < EXCHANGES_KEPT;
    net_serving_end(&x->serving, loop, reuse);
    if (reuse) {
        x->next = loop->exchanges;
        loop->exchanges = x;
        loop->exchanges_free++;
    } else {
        free(x);
    }
    net_loop_check_drained(loop);
}

void http_free_exchanges(net_loop *loop) {
    while (loop->exchanges) {
        http_exchange *x = loop->exchanges;
        loop->exchanges = x->next;
        net_serving_free(&x->serving);
        free(x);
    }
}

/* ---- from bytes to a request ---- */

http_method http__method(unsigned method) {
    static const uint8_t known[64] = {
        /* verb + 1; 0: any other */
        [HTTP_GET] = VERB_GET + 1,       [HTTP_POST] = VERB_POST + 1, [HTTP_PUT] = VERB_PUT + 1,         [HTTP_PATCH] = VERB_PATCH + 1,
        [HTTP_DELETE] = VERB_DELETE + 1, [HTTP_HEAD] = VERB_HEAD + 1, [HTTP_OPTIONS] = VERB_OPTIONS + 1,
    };
    return method < sizeof known && known[method] ? (http_method)(known[method] - 1) : VERB_OTHER;
}

/* The part between "//" and the path: "host:port", an IPv6 host with its brackets. */
static slice authority_of(slice url, const struct http_parser_url *parts) {
    size_t from = parts->field_data[UF_HOST].off, to = from + parts->field_data[UF_HOST].len;
    bool brackets = from > 0 && url.p[from - 1] == '[';
    from -= brackets;
    to += brackets;
    if (parts->field_set & 1 << UF_PORT) {
        to = parts->field_data[UF_PORT].off + parts->field_data[UF_PORT].len;
    }
    return slice_of(url.p + from, to - from);
}

/* "http://host:port/path?query", as clients of a proxy send it. */
static void split_absolute_url(http_request *r, slice url) {
    struct http_parser_url parts;
    http_parser_url_init(&parts);
    if (http_parser_parse_url(url.p, url.n, 0, &parts) != 0) {
        return;
    }
    r->path = SLICE_LIT("/");
    if (parts.field_set & 1 << UF_PATH) {
        r->path = slice_of(url.p + parts.field_data[UF_PATH].off, parts.field_data[UF_PATH].len);
    }
    if (parts.field_set & 1 << UF_QUERY) {
        r->query = slice_of(url.p + parts.field_data[UF_QUERY].off, parts.field_data[UF_QUERY].len);
    }
    if (parts.field_set & 1 << UF_HOST) {
        bool named = !(parts.field_set & 1 << UF_USERINFO); /* "user@host" in an http URL is an attack (RFC 9110, 4.2.4) */
        r->host = named ? authority_of(url, &parts) : SLICE_EMPTY;
    }
}

void http__split_url(http_request *r, slice url) {
    const char *mark = memchr(url.p, '?', url.n);
    size_t n = mark ? (size_t)(mark - url.p) : url.n;
    r->path = slice_of(url.p, n);
    r->query = mark ? slice_of(mark + 1, url.n - n - 1) : SLICE_EMPTY;
    if (url.p[0] != '/' && url.n > 1) {
        split_absolute_url(r, url);
    }
}

slice http__joined(arena *a, slice first, slice more) {
    char *p = arena_alloc_aligned(a, first.n + 2 + more.n, 1);
    memcpy(p, first.p, first.n);
    memcpy(p + first.n, ", ", 2);
    memcpy(p + first.n + 2, more.p, more.n);
    return slice_of(p, first.n + 2 + more.n);
}

static void fill_request(http_exchange *x, const char *bytes) {
    const http_framing *f = &x->framing;
    http_request *r = &x->request;
    r->method = http__method(f->method);
    r->verb = slice_str(http_method_str((enum http_method)f->method));
    r->host = slice_of(bytes + f->host.at, f->host.n);
    r->body = slice_of(bytes + f->body.at, f->body.n);
    r->body_too_large = f->body_too_large;
    for (unsigned i = 0; i < f->found_n; i++) {
        slice *field = &r->field[f->found[i].field];
        slice value = slice_of(bytes + f->found[i].value.at, f->found[i].value.n);
        *field = field->p ? http__joined(x->request.arena, *field, value) : value;
    }
    http__split_url(r, slice_of(bytes + f->url.at, f->url.n));
}

static void refuse(http_conn *h, http_exchange *x, err code);

static void local_address(const void *conn, uint8_t into[static 16]) {
    net_peer local = net_conn_local(conn);
    net_address_map(local.ipv6, local.address, into);
}

bool http__is_welcome(net_conn *c, const http_request *r, slice host_field, slice origin) {
    const net_guard *guard = &net_conn_loop(c)->shared->guard;
    net_caller caller = {.host = r->host, .origin = origin, .tls = r->tls, .local_address = local_address, .context = c};
    if (!net_guard_allows(guard, &caller)) {
        return false;
    }
    caller.host = host_field;
    caller.origin = SLICE_EMPTY;
    return r->host.p == host_field.p || net_guard_allows(guard, &caller);
}

static void hand_over(http_conn *h, http_exchange *x) {
    const http_framing *f = &x->framing;
    const char *bytes = net_serving_adopt(&x->serving, x->request.client->loop, &h->in, f->body.at + f->body.n, f->used);
    fill_request(x, bytes);
    slice origin = f->origin_seen ? slice_of(bytes + f->origin.at, f->origin.n) : SLICE_EMPTY;
    if (!http__is_welcome(net_conn_of(h), &x->request, slice_of(bytes + f->host.at, f->host.n), origin)) {
        refuse(h, x, E_WRONG_HOST);
        return;
    }
    if (f->websocket && !x->front->websockets) {
        refuse(h, x, E_BAD_REQUEST);
        return;
    }
    x->last = !f->keep_alive || f->abandon;
    x->linger = f->abandon;
    x->client.left = h->ended;
    h->handed = true;
    x->front->handle(&x->request);
}

void http__refuse(http_exchange *x, err code) {
    http_request *r = &x->request;
    r->method = VERB_OTHER;
    r->verb = r->path = r->query = r->host = r->body = slice_str("");
    r->body_too_large = false;
    x->front->refuse(r, code);
}

static void refuse(http_conn *h, http_exchange *x, err code) {
    x->last = x->linger = true;
    h->handed = true;
    http__refuse(x, code);
}

/* ---- bounds ---- */

static void free_input(http_conn *h) {
    net_input_free(&h->in);
    net_input_weigh(&h->in, net_conn_loop(net_conn_of(h)));
}

static bool weighs_too_much(const http_conn *h, net_loop *loop) {
    return h->exchange && !h->handed && net_input_weighs_too_much(&h->in, loop);
}

/* ---- the pump ---- */

/* Sends the complete answers. A reply in progress (begun in one callback, to be ended in another) stays in its buffer, since the front end
 * may hold a pointer to it. */
static void flush(http_conn *h) {
    http_exchange *x = h->exchange;
    net_loop *loop = net_conn_loop(net_conn_of(h));
    bool in_progress = x && x->out;
    if (!h->out || (in_progress && x->reply_at == 0)) {
        return;
    }
    if (!in_progress) {
        net_conn_send(net_conn_of(h), h->out);
        net_loop_give_out(loop, h->out);
        h->out = NULL;
        return;
    }
    buf *ready = net_loop_take_out(loop);
    size_t n = x->reply_at;
    buf_add(ready, h->out->p, n);
    if (!buf_ok(ready)) { /* no memory to copy complete answers */
        net_conn_close(net_conn_of(h));
    }
    h->out->n -= n;
    memmove(h->out->p, h->out->p + n, h->out->n);
    x->reply_at = 0;
    x->length_at -= x->length_at ? n : 0;
    x->body_at -= x->body_at ? n : 0;
    net_conn_send(net_conn_of(h), ready);
    net_loop_give_out(loop, ready);
}

void http_send_answered(http_exchange *x) {
    if (x->conn) {
        flush(x->conn);
    }
}

/* Sets the deadline, and turns reading on or off, for what the connection waits for next. */
static void wait_for_next(http_conn *h) {
    net_conn *c = net_conn_of(h);
    net_loop *loop = net_conn_loop(c);
    if (h->handed) {
        net_conn_no_deadline(c);
        net_conn_read(c, h->in.n < WAITING_BYTES);
    } else if (h->last) {
        net_conn_finish(c, h->linger || h->in.n);
        free_input(h);
    } else if (net_conn_is_stuck(c)) {
        return; /* `drained` follows, or the deadline for stalled writes */
    } else if (h->ended || (loop->draining && !h->exchange)) {
        net_conn_finish(c, false);
    } else {
        net_conn_read(c, true);
        if (h->exchange) {
            net_reading_time(&h->reading, c, h->exchange->framing.head_whole);
        } else if (!h->idle) {
            h->idle = true;
            net_reading_idle(c, &loop->shared->options, loop->shared->options.idle_timeout_ms);
        }
    }
}

static bool can_parse(http_conn *h) {
    net_conn *c = net_conn_of(h);
    return !h->handed && !h->last && net_conn_is_open(c) && !net_conn_is_stuck(c);
}

/* Empty lines may precede a request (RFC 9112, 2.2); they do not begin one. */
static bool request_begins(http_conn *h) {
    while (h->in.n && !h->exchange && (h->in.p[0] == '\r' || h->in.p[0] == '\n')) {
        net_input_skip(&h->in, 1);
    }
    return h->in.n > 0;
}

static void say_continue(http_conn *h) {
    if (!h->out) {
        h->out = net_loop_take_out(net_conn_loop(net_conn_of(h)));
    }
    buf_add_lit(h->out, "HTTP/1.1 100 Continue\r\n\r\n");
}

static bool step(http_conn *h) { /* false: bytes are missing */
    if (!h->exchange) {
        h->exchange = exchange_take(h);
        h->idle = false;
    }
    http_exchange *x = h->exchange;
    switch (http_framing_next(&x->framing, &h->in)) {
    case HTTP_MORE:
        return false;
    case HTTP_CONTINUE:
        say_continue(h);
        return true;
    case HTTP_WHOLE:
        net_is_unaffordable(x->request.client->loop, x->framing.used) ? refuse(h, x, net_count_starved(x->request.client->loop))
                                                                      : hand_over(h, x);
        break;
    case HTTP_REFUSED:
        refuse(h, x, x->framing.refusal);
        break;
    }
    if (h->out && h->out->n >= FLUSH_BYTES) {
        flush(h);
    }
    return true;
}

static void send_now(http_conn *h) {
    flush(h);
    wait_for_next(h);
}

static void send_held(net_held *held) {
    send_now((http_conn *)((char *)held - offsetof(http_conn, held)));
}

/* Switches to another protocol, whose state takes the place of ours. */
static void switch_protocol(http_conn *h) {
    net_conn *c = net_conn_of(h);
    net_loop *loop = net_conn_loop(c);
    http_switch *to = h->to;
    h->to = NULL;
    flush(h);
    if (!net_conn_is_open(c)) {
        free(to);
        return;
    }
    net_input in = h->in;
    bool has_ended = h->ended;
    net_loop_forget(loop, &h->held);
    net_input_weigh_to(&in, loop, 0);
    net_conn_switch(c, to->protocol);
    to->begin(to, c);
    if (in.n) {
        to->protocol->bytes(c, in.p, in.n);
    }
    if (has_ended && net_conn_is_open(c)) {
        to->protocol->ended(c);
    }
    if (loop->draining && net_conn_is_open(c)) {
        to->protocol->stopping(c);
    }
    net_input_free(&in);
    free(to);
}

static void pump_end(http_conn *h) {
    net_loop *loop = net_conn_loop(net_conn_of(h));
    net_input_keep(&h->in);
    net_input_weigh(&h->in, loop);
    if (weighs_too_much(h, loop)) {
        net_count_starved(loop);
        refuse(h, h->exchange, E_BUSY);
    }
    h->pumping = false;
    if (h->to) {
        switch_protocol(h);
    } else if (h->out && h->out->n <= HOLD_BYTES) {
        h->held.send = send_held;
        net_loop_hold(loop, &h->held);
    } else {
        send_now(h);
    }
}

static void pump(http_conn *h) {
    h->pumping = true;
    while (can_parse(h) && request_begins(h) && step(h)) {
    }
    pump_end(h);
}

void http_answered(http_exchange *x) {
    http_conn *h = x->conn;
    assert(!x->carrier);
    if (h) {
        h->exchange = NULL;
        h->handed = false;
        h->last = x->last || x->to;
        h->linger = x->linger;
        h->to = x->to;
    } else {
        free(x->to);
    }
    exchange_give(x);
    if (h && !h->pumping) {
        pump(h);
    }
}

/* ---- as a protocol ---- */

static void opened(net_conn *c, void *context) {
    http_conn *h = net_conn_state(c);
    h->service = context;
    h->in.own = buf_init(BUF_NO_LIMIT); /* bounded by the request limits and WAITING_BYTES */
}

/* Whether the connection's first bytes are HTTP/2's: its client says so by ALPN, or by the preface. Fewer bytes than the preface has are
 * kept until more come. True: they are HTTP/2's, or may be. */
static bool is_http2(http_conn *h) {
    net_conn *c = net_conn_of(h);
    size_t n = h->in.n < HTTP2_PREFACE_BYTES ? h->in.n : HTTP2_PREFACE_BYTES;
    if (!slice_eq(net_conn_alpn(c), SLICE_LIT("h2"))) {
        h->is_http1 = memcmp(h->in.p, HTTP2_PREFACE, n) != 0;
        if (h->is_http1) {
            return false;
        }
        if (n < HTTP2_PREFACE_BYTES) {
            net_input_keep(&h->in);
            net_input_weigh(&h->in, net_conn_loop(c));
            return true;
        }
    }
    h->to = http2_switch_new(h->service);
    switch_protocol(h);
    return true;
}

static void bytes(net_conn *c, char *p, size_t n) {
    http_conn *h = net_conn_state(c);
    h->reading.progress += n;
    net_input_give(&h->in, p, n);
    if (h->is_http1 || !is_http2(h)) {
        pump(h);
    }
}

static void ended(net_conn *c) {
    http_conn *h = net_conn_state(c);
    h->ended = true;
    if (h->handed) { /* a half-closed client could still read, but nearly always it has given up */
        net__client_left(&h->exchange->client);
    }
    send_now(h);
}

static void drained(net_conn *c) {
    pump(net_conn_state(c));
}

static void timed_out(net_conn *c) {
    http_conn *h = net_conn_state(c);
    if (!h->exchange) {
        net_conn_finish(c, false);
        return;
    }
    if (h->reading.timing == NET_TIMING_BODY) {
        net_crowd_count_slow(net_conn_loop(c));
    }
    h->pumping = true;
    refuse(h, h->exchange, E_TIMEOUT);
    pump_end(h);
}

static bool receiving(net_conn *c, net_progress *progress_out) {
    const http_conn *h = net_conn_state(c);
    return h->exchange && !h->handed && net_reading_progress(&h->reading, &h->in, progress_out);
}

static bool busy(net_conn *c) {
    const http_conn *h = net_conn_state(c);
    return h->handed;
}

/* Its input is ignored. */
static void surplus(net_conn *c) {
    http_conn *h = net_conn_state(c);
    h->exchange = exchange_take(h);
    h->pumping = true;
    refuse(h, h->exchange, E_BUSY_CONNECTIONS);
    pump_end(h);
}

static void stopping(net_conn *c) {
    send_now(net_conn_state(c));
}

static void closed(net_conn *c) {
    http_conn *h = net_conn_state(c);
    http_exchange *x = h->exchange;
    if (x && h->handed) {
        x->conn = NULL; /* http_reply_end frees it */
        net__client_left(&x->client);
    } else if (x) {
        exchange_give(x);
    }
    if (h->out && !(x && x->out)) {
        net_loop_give_out(net_conn_loop(c), h->out);
    }
    net_loop_forget(net_conn_loop(c), &h->held);
    free_input(h);
    free(h->to);
}

const net_protocol http_protocol = {
    .name = "http",
    .alpn = "\x02h2\x08http/1.1",
    .state_bytes = sizeof(http_conn),
    .opened = opened,
    .bytes = bytes,
    .ended = ended,
    .drained = drained,
    .timed_out = timed_out,
    .receiving = receiving,
    .busy = busy,
    .surplus = surplus,
    .stopping = stopping,
    .closed = closed,
};

http_service *http_service_new(const http_front *front) {
    static const char *const websocket_names[] = {"sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol"};
    const char *names[HTTP_FIELDS_MAX + HTTP_WEBSOCKET_NAMES];
    size_t n = front->fields_n;
    assert(n <= HTTP_FIELDS_MAX);
    for (size_t i = 0; i < n; i++) {
        names[i] = front->fields[i];
    }
    if (front->websockets) {
        memcpy(names + n, websocket_names, sizeof websocket_names);
        n += HTTP_WEBSOCKET_NAMES;
    }
    http_service *service = mem_zero(sizeof *service);
    service->front = front;
    service->limits = &http_limits_default;
    service->names = http_names_new(names, n);
    service->http2 = http2_setup_new();
    return service;
}

slice http_websocket_field(const http_request *r, http_websocket_name name) {
    return r->field[((const http_exchange *)r)->front->fields_n + name];
}

void http_service_free(http_service *service) {
    http_names_free(service->names);
    http2_setup_free(service->http2);
    free(service);
}

void http_peer_address(const http_request *r, uint8_t into[static 16]) {
    const net_peer *peer = &((const http_exchange *)r)->peer;
    net_address_map(peer->ipv6, peer->address, into);
}

bool http_peer_is_local(const http_request *r) {
    uint8_t address[16];
    http_peer_address(r, address);
    return net_address_is_loopback(address);
}

void http_trust(http_request *r) {
    http_exchange *x = (http_exchange *)r;
    if (x->carrier) {
        x->carrier->trust(x->carrier_context);
    } else if (x->conn) {
        net_conn_trust(net_conn_of(x->conn));
    }
}

unsigned http_told_to_wait(http_request *r, unsigned ms) {
    http_exchange *x = (http_exchange *)r;
    int64_t now = r->client->loop->now_ms;
    int64_t *until = x->carrier ? x->carrier->wait_until(x->carrier_context) : x->conn ? &x->conn->wait_until_ms : NULL;
    if (!until) {
        return 0;
    }
    int64_t left = *until - now;
    *until = now + ms;
    return left > 0 ? (unsigned)left : 0;
}

const char *http_peer(const http_request *r, char into[static HTTP_PEER_BYTES]) {
    return net_peer_text(&((const http_exchange *)r)->peer, into);
}
