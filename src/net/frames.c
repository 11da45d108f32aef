/* Requests in flight on a connection, and their answers.
 *
 *   bytes ── step ──► handed over: in flight ── frames_end ──► answer joins `out` ──► sent when the turn ends
 *               └──► refused: the connection ends after the last answer
 *
 * `pump` is the only place that parses: it runs when bytes come, when a request ends, and when queued output has been sent. Each request
 * has its own buffer for its answer, so that several can be written at a time. The first answer's buffer becomes the connection's; further
 * answers are appended to it, or sent separately if they are large.
 *
 * The object outlives its net_conn while requests are in flight (f->net NULL). */
#include "net/frames_int.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"

enum {
    STOCK_MAX = 64,            /* free exchanges kept per loop, each with one arena block */
    OWN_BYTES = 32 * 1024,     /* request memory not drawn from the pool; small, since a connection has many requests */
    WAITING_BYTES = 64 * 1024, /* input kept while the in-flight limit is reached; above it the socket is not read */
    JOIN_BYTES = 64 * 1024,    /* answers sent together */
    HOLD_BYTES = 16 * 1024,    /* answers up to this size are held until the end of the turn */
};

struct frames_exchange {
    frames_request request; /* must be first: front ends hold a pointer to it */
    net_serving serving;
    frames_exchange *next, *prev; /* in the list of requests in flight; `next` also in the free list */
    buf *out;                     /* NULL: no answer has begun */
    pieces more;                  /* the rest of the answer */
    size_t weight;                /* bytes counted in live_bytes */
    void (*go_on)(frames_request *r);
    net_task task; /* posted to call go_on */
    bool waiting;  /* frames_flush waits until the client has taken the output */
    bool starved;  /* being refused because its answer did not fit */
};

static frames_exchange *exchange_of(frames_request *r) {
    return (frames_exchange *)r;
}

static frames_conn *conn_of(net_conn *c) {
    return *(frames_conn **)net_conn_state(c);
}

/* ---- exchanges ---- */

frames_exchange *frames__take(frames_conn *f) {
    net_loop *loop = f->loop;
    frames_exchange *x = loop->frames;
    if (x) {
        loop->frames = x->next;
        loop->frames_free--;
    } else {
        x = mem_zero(sizeof *x);
        net_serving_init(&x->serving, loop, OWN_BYTES);
        x->more = pieces_init(&loop->memory);
        x->request.arena = &x->serving.arena;
        x->request.client.loop = loop;
    }
    net_serving_begin(loop);
    x->request.conn = f;
    x->request.context = f->front->context;
    x->request.client.left = f->ended;
    x->request.text = false;
    x->request.frame = SLICE_EMPTY;
    x->weight = 0;
    x->waiting = x->starved = false;
    x->prev = NULL;
    x->next = f->live;
    if (f->live) {
        f->live->prev = x;
    }
    f->live = x;
    f->live_n++;
    return x;
}

net_serving *frames__serving(frames_exchange *x) {
    return &x->serving;
}

static void exchange_give(frames_exchange *x) {
    frames_conn *f = x->request.conn;
    net_loop *loop = f->loop;
    *(x->prev ? &x->prev->next : &f->live) = x->next;
    if (x->next) {
        x->next->prev = x->prev;
    }
    f->live_n--;
    f->live_bytes -= x->weight;
    bool reuse = loop->frames_free < STOCK_MAX;
    net_serving_end(&x->serving, loop, reuse);
    if (reuse) {
        x->next = loop->frames;
        loop->frames = x;
        loop->frames_free++;
    } else {
        free(x);
    }
}

void frames__free_stock(net_loop *loop) {
    while (loop->frames) {
        frames_exchange *x = loop->frames;
        loop->frames = x->next;
        net_serving_free(&x->serving);
        free(x);
    }
}

/* ---- sending ---- */

static void flush(frames_conn *f) {
    if (f->out) {
        net_conn_send_apart(f->net, f->out, f->ends, f->ends_n);
        net_loop_give_out(f->loop, f->out);
        f->out = NULL;
        f->ends_n = 0;
    }
}

static void run_go_on(net_task *task) {
    frames_exchange *x = (frames_exchange *)((char *)task - offsetof(frames_exchange, task));
    x->go_on(&x->request);
}

/* The flushed output has been taken, or the client has left. */
static void wake_waiting(frames_conn *f) {
    for (frames_exchange *x = f->live; x && f->waiting_n; x = x->next) {
        if (x->waiting) {
            x->waiting = false;
            f->waiting_n--;
            net_post(f->loop, &x->task);
        }
    }
}

/* Adds a complete answer to the output; takes ownership of the buffer, and empties the pieces. */
static void join(frames_conn *f, buf *answer, pieces *more) {
    if (!f->net || !net_conn_is_open(f->net) || f->mute) {
        net_loop_give_out(f->loop, answer);
        pieces_free(more);
        return;
    }
    bool full = f->out && (f->out->n + answer->n > JOIN_BYTES || f->ends_n == FRAMES_JOINED_MAX || !buf_reserve(f->out, answer->n));
    if (full) {
        f->out->overflow = false;
        flush(f);
    }
    if (f->out) {
        buf_add(f->out, answer->p, answer->n);
        net_loop_give_out(f->loop, answer);
    } else {
        f->out = answer;
    }
    if (f->front->apart) {
        f->ends[f->ends_n++] = (uint32_t)f->out->n;
    }
    if (pieces_bytes(more)) {
        net_conn_send_pieces(f->net, f->out, f->ends, f->ends_n - f->front->apart, more); /* the answer goes on after its last end */
        net_loop_give_out(f->loop, f->out);
        f->out = NULL;
        f->ends_n = 0;
    }
}

buf *frames__control(frames_conn *f) {
    if (!f->out) {
        f->out = net_loop_take_out(f->loop);
    } else if (!buf_reserve(f->out, FRAMES_CONTROL_BYTES)) {
        f->out->overflow = false;
        flush(f);
        f->out = net_loop_take_out(f->loop);
    }
    return f->out;
}

/* ---- waiting for the next event ---- */

const frames_limits *frames__limits(const frames_conn *f) {
    return net_conn_is_trusted(f->net) ? &f->front->trusted : &f->front->untrusted;
}

static bool is_full(const frames_conn *f) {
    const frames_limits *limits = frames__limits(f);
    return f->live_n >= limits->in_flight || f->live_bytes >= limits->in_flight_bytes;
}

/* No more input will be parsed, and all requests are answered. */
static bool is_over(const frames_conn *f) {
    return f->live_n == 0 && (f->last || f->ended || f->stopped);
}

static void weigh(frames_conn *f) {
    net_input_weigh_to(&f->in, f->loop, f->in.own.cap + f->collected.cap);
}

static void free_input(frames_conn *f) {
    net_input_free(&f->in);
    buf_free(&f->collected);
    weigh(f);
}

static void finish(frames_conn *f) {
    net_conn *c = f->net;
    if (net_conn_is_open(c) && f->codec->goodbye) {
        f->codec->goodbye(f);
        flush(f);
    }
    net_conn_finish(c, f->linger || f->in.n);
    free_input(f);
}

static void wait_idle(frames_conn *f) {
    const net_options *options = &f->loop->shared->options;
    unsigned idle_ms = f->front->idle_timeout_ms ? f->front->idle_timeout_ms : options->idle_timeout_ms;
    if (f->welcome) {
        net_conn_deadline(f->net, idle_ms);
    } else {
        net_reading_idle(f->net, options, idle_ms);
    }
}

static void wait_for_next(frames_conn *f) {
    net_conn *c = f->net;
    if (!net_conn_is_open(c) || f->pumping) {
        return;
    }
    if (is_over(f) && (f->last || !net_conn_is_stuck(c))) {
        finish(f);
    } else if (f->last || f->ended || f->stopped || is_full(f)) {
        net_conn_no_deadline(c);
        f->reading.timing = NET_UNTIMED;
        net_conn_read(c, f->in.n < WAITING_BYTES);
    } else if (!net_conn_is_stuck(c)) { /* otherwise `drained` follows, or the deadline for stalled writes */
        net_conn_read(c, true);
        if (f->in.n || f->collected.n) {
            net_reading_time(&f->reading, c, f->frame_n || f->collected.n);
        } else if (f->live_n) {
            net_conn_no_deadline(c);
        } else {
            wait_idle(f);
        }
    }
}

static void send_now(frames_conn *f) {
    flush(f);
    wait_for_next(f);
    if (f->waiting_n && !net_conn_is_stuck(f->net)) {
        wake_waiting(f);
    }
}

static void send_held(net_held *held) {
    send_now((frames_conn *)((char *)held - offsetof(frames_conn, held)));
}

static void send_soon(frames_conn *f) {
    if (f->out && f->out->n <= HOLD_BYTES) {
        f->held.send = send_held;
        net_loop_hold(f->loop, &f->held);
    } else {
        send_now(f);
    }
}

/* ---- from bytes to requests ---- */

static bool can_parse(const frames_conn *f) {
    return !f->last && f->in.n && net_conn_is_open(f->net) && !net_conn_is_stuck(f->net) && !is_full(f);
}

static void pump(frames_conn *f) {
    f->pumping = true;
    while (can_parse(f) && f->codec->step(f)) {
        if (f->out && f->out->n >= JOIN_BYTES) {
            flush(f);
        }
    }
    net_input_keep(&f->in);
    weigh(f);
    if (!f->last && (f->frame_n || f->collected.n) && net_input_weighs_too_much(&f->in, f->loop)) {
        net_count_starved(f->loop);
        frames__refuse(f, SLICE_EMPTY, E_BUSY);
    }
    f->pumping = false;
    send_soon(f);
}

void frames__hand_over(frames_exchange *x, slice frame, bool text) {
    frames_conn *f = x->request.conn;
    x->request.frame = frame;
    x->request.text = text;
    x->weight = frame.n;
    f->live_bytes += frame.n;
    f->frame_n = 0;
    f->reading.timing = NET_UNTIMED;
    if (net_is_unaffordable(f->loop, frame.n)) {
        x->starved = true;
        f->front->refuse(&x->request, net_count_starved(f->loop));
    } else {
        f->front->handle(&x->request);
    }
}

void frames__refuse(frames_conn *f, slice head, err code) {
    f->last = f->linger = true;
    f->frame_n = 0;
    f->codec->refuse(f, head, code);
}

/* ---- length-prefixed frames ---- */

/* The frame's bytes whose end is known: its header, then as far as its length was last said to go. */
static size_t known_bytes(const frames_conn *f) {
    return f->frame_n ? (size_t)f->frame_n : f->front->header_bytes;
}

static bool refuse_frame(frames_conn *f, err code) {
    frames__refuse(f, slice_of(f->in.p, known_bytes(f)), code);
    return true;
}

/* The length by the bytes that have come; the known ones have. False: they are no frame. */
static bool measure(frames_conn *f, uint64_t *bytes_out) {
    *bytes_out = f->frame_n;
    if (!f->frame_n) {
        return f->front->length(f, (const uint8_t *)f->in.p, bytes_out);
    }
    return !f->front->extend || f->front->extend(f, slice_of(f->in.p, (size_t)f->frame_n), bytes_out);
}

static bool step(frames_conn *f) {
    size_t known = known_bytes(f);
    uint64_t n;
    if (f->in.n < known) {
        return false;
    }
    bool first = !f->frame_n;
    if (!measure(f, &n) || n < known) {
        return refuse_frame(f, E_BAD_REQUEST);
    }
    if (n > frames__limits(f)->frame_bytes) {
        return refuse_frame(f, E_TOO_LARGE);
    }
    if (n > known || (first && f->front->extend)) {
        f->frame_n = n;
        return true;
    }
    frames_exchange *x = frames__take(f);
    frames__hand_over(x, slice_of(net_serving_adopt(&x->serving, f->loop, &f->in, known, known), known), false);
    return true;
}

static void refuse_in_form(frames_conn *f, slice head, err code) {
    frames_exchange *x = frames__take(f);
    x->request.frame = arena_fits(x->request.arena, head.n) ? arena_copy(x->request.arena, head) : SLICE_EMPTY;
    f->front->refuse(&x->request, code);
}

static const frames_codec length_prefixed = {.step = step, .refuse = refuse_in_form};

/* ---- answering ---- */

buf *frames_out(frames_request *r) {
    frames_exchange *x = exchange_of(r);
    if (!x->out) {
        x->out = net_loop_take_out(r->client.loop);
        if (r->conn->codec->begin) {
            r->conn->codec->begin(x->out);
        }
    }
    return x->out;
}

void frames_attach(frames_request *r, pieces *p) {
    frames_exchange *x = exchange_of(r);
    buf *out = frames_out(r);
    size_t n = pieces_bytes(p);
    assert(!r->conn->codec->wrap && !pieces_bytes(&x->more));
    if (n > out->max || out->n > out->max - n || !pieces_recount(p, &r->client.loop->memory)) {
        out->overflow = true;
    }
    pieces_join(&x->more, p);
}

void frames_abandon(frames_request *r) {
    frames_exchange *x = exchange_of(r);
    pieces_free(&x->more);
    if (x->out) {
        net_loop_give_out(r->client.loop, x->out);
        x->out = NULL;
    }
}

/* The front end's last call for this connection. */
static void conn_free(frames_conn *f) {
    if (f->front->closed) {
        f->front->closed(f);
    }
    if (f->codec->ended) {
        f->codec->ended(f);
    }
    free(f);
}

/* Moves the answer to the connection. False: it did not fit, and was discarded. */
static bool pass_on(frames_exchange *x) {
    frames_conn *f = x->request.conn;
    buf *out = x->out;
    if (!out) {
        return true;
    }
    if (!buf_ok(out) || (f->codec->wrap && !f->codec->wrap(&x->request, out))) {
        frames_abandon(&x->request);
        return false;
    }
    x->out = NULL;
    join(f, out, &x->more);
    return true;
}

/* The answer did not fit (no memory, or too large): lets the front end refuse, once. */
static void refuse_unfit(frames_exchange *x) {
    frames_conn *f = x->request.conn;
    bool starved = net_answer_starved(f->loop);
    if (!starved) {
        log_error("net", "answer larger than any may be", "front=%s bytes_max=%d", f->front->name, NET_REPLY_BYTES_MAX);
    }
    if (x->starved) { /* even the refusal did not fit: nothing more can be sent */
        if (f->net) {
            net_conn_close(f->net);
        }
        frames_end(&x->request);
        return;
    }
    x->starved = true;
    f->front->refuse(&x->request, starved ? net_count_starved(f->loop) : E_INTERNAL);
}

void frames_end(frames_request *r) {
    frames_exchange *x = exchange_of(r);
    frames_conn *f = r->conn;
    net_loop *loop = f->loop;
    assert(!x->waiting);
    if (!pass_on(x)) {
        refuse_unfit(x);
        return;
    }
    exchange_give(x);
    if (!f->net && f->live_n == 0) {
        conn_free(f);
    } else if (f->net && !f->pumping) {
        pump(f);
    }
    net_loop_check_drained(loop);
}

void frames_flush(frames_request *r, void (*go_on)(frames_request *r)) {
    frames_exchange *x = exchange_of(r);
    frames_conn *f = r->conn;
    assert(!x->waiting);
    if (!pass_on(x)) {
        refuse_unfit(x);
        return;
    }
    x->go_on = go_on;
    x->task = (net_task){.run = run_go_on};
    if (!f->net || r->client.left) {
        net_post(f->loop, &x->task);
        return;
    }
    x->waiting = true;
    f->waiting_n++;
    if (!f->pumping) {
        send_soon(f);
    }
}

frames_request *frames_begin(frames_conn *f) {
    if (!f->net || !net_conn_is_open(f->net) || net_conn_is_stuck(f->net) || f->last || f->ended || f->stopped) {
        return NULL;
    }
    return &frames__take(f)->request;
}

bool frames_is_stuck(const frames_conn *f) {
    return f->net && net_conn_is_stuck(f->net);
}

/* ---- as a protocol ---- */

frames_conn *frames__make(net_conn *c, const frames_front *front, const frames_codec *codec) {
    frames_conn *f = mem_zero(sizeof *f + front->state_bytes);
    f->net = c;
    f->loop = net_conn_loop(c);
    f->front = front;
    f->codec = codec;
    f->peer = net_conn_peer(c);
    f->in.own = buf_init(BUF_NO_LIMIT); /* bounded by the frame limits and WAITING_BYTES */
    f->collected = buf_init(BUF_NO_LIMIT);
    *(frames_conn **)net_conn_state(c) = f;
    return f;
}

void frames__start(frames_conn *f) {
    if (f->front->opened) {
        f->front->opened(f);
    }
    pump(f);
}

static void opened(net_conn *c, void *context) {
    frames__start(frames__make(c, context, &length_prefixed));
}

static void bytes(net_conn *c, char *p, size_t n) {
    frames_conn *f = conn_of(c);
    if (f->stopped) {
        return;
    }
    f->reading.progress += n;
    net_input_give(&f->in, p, n);
    pump(f);
}

static void clients_left(frames_conn *f) {
    for (frames_exchange *x = f->live; x; x = x->next) {
        net__client_left(&x->request.client);
    }
    wake_waiting(f);
}

void frames__leave(frames_conn *f) {
    f->last = f->linger = f->mute = true;
    clients_left(f);
}

static void ended(net_conn *c) {
    frames_conn *f = conn_of(c);
    f->ended = true;
    clients_left(f); /* a half-closed client could still read, but nearly always it has given up */
    send_now(f);
}

static void drained(net_conn *c) {
    frames_conn *f = conn_of(c);
    f->reading.timing = NET_UNTIMED; /* its deadline was replaced by that of the stalled write */
    pump(f);
}

static void timed_out(net_conn *c) {
    frames_conn *f = conn_of(c);
    if (!f->in.n && !f->collected.n) {
        if (!f->codec->idle || !net_conn_is_trusted(c) || !f->codec->idle(f)) {
            f->last = true;
        }
        send_now(f);
        return;
    }
    if (f->reading.timing == NET_TIMING_BODY) {
        net_crowd_count_slow(f->loop);
    }
    f->pumping = true;
    frames__refuse(f, SLICE_EMPTY, E_TIMEOUT);
    f->pumping = false;
    send_now(f);
}

static bool receiving(net_conn *c, net_progress *progress_out) {
    const frames_conn *f = conn_of(c);
    return !f->last && net_reading_progress(&f->reading, &f->in, progress_out);
}

static bool busy(net_conn *c) {
    return conn_of(c)->live_n > 0;
}

/* Its input is ignored. */
static void surplus(net_conn *c) {
    frames_conn *f = conn_of(c);
    f->pumping = true;
    frames__refuse(f, SLICE_EMPTY, E_BUSY_CONNECTIONS);
    f->pumping = false;
    send_now(f);
}

/* Whole frames that have already arrived are still answered. */
static void stopping(net_conn *c) {
    frames_conn *f = conn_of(c);
    f->stopped = true;
    f->linger |= f->live_n > 0;
    pump(f);
}

static void closed(net_conn *c) {
    frames_conn *f = conn_of(c);
    if (f->out) {
        net_loop_give_out(f->loop, f->out);
        f->out = NULL;
    }
    net_loop_forget(f->loop, &f->held);
    free_input(f);
    f->tls = net_conn_is_tls(c);
    f->net = NULL;
    f->ended = true;
    clients_left(f);
    if (f->live_n == 0) {
        conn_free(f);
    }
}

const net_protocol frames_protocol = {
    .name = "frames",
    .state_bytes = sizeof(frames_conn *),
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

/* ---- for front ends ---- */

void *frames_state(frames_conn *f) {
    return f->state;
}

void *frames_context(const frames_conn *f) {
    return f->front->context;
}

net_loop *frames_loop(const frames_conn *f) {
    return f->loop;
}

bool frames_is_tls(const frames_conn *f) {
    return f->net ? net_conn_is_tls(f->net) : f->tls;
}

bool frames_is_trusted(const frames_conn *f) {
    return f->net && net_conn_is_trusted(f->net);
}

void frames_trust(frames_conn *f) {
    if (f->net) {
        net_conn_trust(f->net);
    }
}

void frames_welcome(frames_conn *f) {
    f->welcome = true;
}

void frames_finish(frames_conn *f) {
    f->last = f->linger = true;
    if (f->net && !f->pumping) {
        send_soon(f);
    }
}

const char *frames_peer(const frames_conn *f, char into[static HTTP_PEER_BYTES]) {
    return net_peer_text(&f->peer, into);
}

const char *frames_local(const frames_conn *f, char into[static HTTP_PEER_BYTES]) {
    into[0] = 0;
    if (f->net) {
        net_peer local = net_conn_local(f->net);
        net_peer_text(&local, into);
    }
    return into;
}

slice frames_server_name(const frames_conn *f) {
    return f->net ? net_conn_server_name(f->net) : SLICE_EMPTY;
}

void frames_peer_address(const frames_conn *f, uint8_t into[static 16]) {
    net_address_map(f->peer.ipv6, f->peer.address, into);
}

bool frames_peer_is_local(const frames_conn *f) {
    uint8_t address[16];
    frames_peer_address(f, address);
    return net_address_is_loopback(address);
}
