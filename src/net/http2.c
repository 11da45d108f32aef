/* A connection of HTTP/2. Input goes to nghttp2, whose callbacks turn streams into requests. Its output is sent when the turn ends.
 *
 *   bytes ── nghttp2_session_mem_recv ──► callbacks ──► http2_stream.c ──► front end
 *   answers ──► nghttp2's queue ── `flush`, while the kernel takes bytes and the client's windows are open ──► net_conn_send
 *
 * nghttp2 does framing, HPACK, flow control and the states of streams. This file and http2_stream.c limit the number
 * of streams, their size and time, and frames that carry no request (http2__spend). While output is queued, nothing is read. */
#include "net/http2_int.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>

#include "base/memory.h"

enum {
    FLUSH_BYTES = 64 * 1024, /* sent at once */
    LAST_FIELDS_BYTES = 4096,
    CALM_MAX = 10000, /* the calm that a connection begins with; see http2__spend */
    CALM_PER_MS = 1,
    CALM_PER_BYTES = 512,     /* earned per 512 bytes of answers: reading them takes WINDOW_UPDATE frames */
    PRICE_FRAME = 1,          /* any frame but HEADERS and DATA */
    PRICE_CONTINUATION = 100, /* honest clients rarely need any */
    PRICE_UNANSWERED = 25,    /* a stream that ends before its answer */
};

struct http2_setup {
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *options;
};

/* ---- calm ---- */

void http2__earn(http2_conn *f, unsigned price) {
    f->calm += price;
    if (f->calm > CALM_MAX) {
        f->calm = CALM_MAX;
    }
}

bool http2__spend(http2_conn *f, unsigned price) {
    int64_t ms = f->loop->now_ms - f->calm_ms;
    f->calm_ms = f->loop->now_ms;
    http2__earn(f, ms < CALM_MAX ? (unsigned)ms * CALM_PER_MS : CALM_MAX);
    f->calm -= price;
    f->calm_lost |= f->calm < 0;
    return !f->calm_lost;
}

static int go_on(bool ok) {
    return ok ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* ---- nghttp2's memory, counted as buffers ---- */

static void *counted(net_loop *loop, void *p) {
    budget_force(&loop->memory, malloc_usable_size(p));
    return p;
}

static void uncount(net_loop *loop, void *p) {
    if (p) {
        budget_give(&loop->memory, malloc_usable_size(p));
    }
}

static void *memory_new(size_t n, void *loop) {
    return counted(loop, mem_alloc(n ? n : 1));
}

static void *memory_zero(size_t n, size_t each, void *loop) {
    size_t bytes = n * each; /* the size of one of nghttp2's structures: it cannot overflow */
    return counted(loop, mem_zero(bytes ? bytes : 1));
}

static void *memory_resize(void *p, size_t n, void *loop) {
    uncount(loop, p);
    return counted(loop, mem_resize(p, n ? n : 1));
}

static void memory_free(void *p, void *loop) {
    uncount(loop, p);
    free(p);
}

/* ---- what comes in ---- */

static http2_stream *stream_of(nghttp2_session *session, int32_t id) {
    return id > 0 ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *conn) {
    (void)session;
    switch (head->type) {
    case NGHTTP2_HEADERS:
        return 0;
    case NGHTTP2_DATA:
        return go_on(head->length > 0 || http2__spend(conn, PRICE_FRAME));
    case NGHTTP2_CONTINUATION:
        return go_on(http2__spend(conn, PRICE_CONTINUATION));
    default:
        return go_on(http2__spend(conn, PRICE_FRAME));
    }
}

/* Frames of other types are read over, as the protocol says. nghttp2 tells of them only if it has this function. */
static int unpack_nothing(nghttp2_session *session, void **payload, const nghttp2_frame_hd *head, void *conn) {
    (void)session, (void)payload, (void)head, (void)conn;
    return NGHTTP2_ERR_CANCEL;
}

/* Reset streams that are still being served count too, so opening and resetting streams gains nothing. */
static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *conn) {
    http2_conn *f = conn;
    int32_t id = frame->hd.stream_id;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        return 0;
    }
    if (f->streams_n >= HTTP2_STREAMS_MAX || f->ended) {
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
        return go_on(http2__spend(f, PRICE_UNANSWERED));
    }
    nghttp2_session_set_stream_user_data(session, id, http2__stream_new(f, id));
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n, const uint8_t *value,
                     size_t value_n, uint8_t flags, void *conn) {
    http2_stream *s = stream_of(session, frame->hd.stream_id);
    http2_conn *f = conn;
    (void)flags;
    if (s && !http2__field(s, slice_of((const char *)name, name_n), slice_of((const char *)value, value_n))) {
        f->calm_lost = true;
    }
    return go_on(!f->calm_lost);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *conn) {
    http2_stream *s = stream_of(session, id);
    (void)flags, (void)conn;
    if (s && s->state == HTTP2_READING) {
        http2__body(s, slice_of((const char *)p, n));
    }
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *conn) {
    http2_stream *s = stream_of(session, frame->hd.stream_id);
    bool last = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    (void)conn;
    if (!s || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)) {
        return 0;
    }
    if (s->state == HTTP2_READING && !s->head_whole) {
        http2__head(s, last);
    } else if (last) {
        s->unread = false;
        if (s->state == HTTP2_READING) {
            http2__whole(s);
        }
    }
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *conn) {
    http2_stream *s = stream_of(session, id);
    (void)code;
    if (!s) {
        return 0;
    }
    bool answered = s->state == HTTP2_ANSWERED;
    http2__stream_closed(s);
    return go_on(answered || http2__spend(conn, PRICE_UNANSWERED));
}

/* ---- what goes out ---- */

/* Sends what was written before if the new bytes do not fit. */
static void append(http2_conn *f, const void *p, size_t n) {
    if (f->out->n + n > FLUSH_BYTES || !buf_reserve(f->out, n)) {
        f->out->overflow = false;
        net_conn_send(f->net, f->out);
    }
    buf_add(f->out, p, n);
}

/* One DATA frame, from the answer's own buffer. */
static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n, nghttp2_data_source *source,
                     void *conn) {
    enum { HEAD_BYTES = 9 };
    http2_conn *f = conn;
    http2_stream *s = source->ptr;
    (void)session, (void)frame;
    append(f, head, HEAD_BYTES);
    append(f, s->out->p + s->at, n);
    s->at += n;
    http2__moved(s, n);
    http2__earn(f, (unsigned)(n / CALM_PER_BYTES));
    f->paused = f->out->n >= FLUSH_BYTES / 2;
    return f->paused ? NGHTTP2_ERR_PAUSE : 0;
}

/* After an early answer the rest of the request is refused: RFC 9113, 8.1. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *conn) {
    (void)conn;
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) && frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        const http2_stream *s = stream_of(session, frame->hd.stream_id);
        if (s && s->unread) {
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
        }
    }
    return 0;
}

/* Writes nghttp2's output to `out`. False: out of memory; the connection must be closed. */
static bool write_frames(http2_conn *f) {
    const uint8_t *p;
    ssize_t n = 0;
    f->paused = false;
    while (!net_conn_is_stuck(f->net) && (n = nghttp2_session_mem_send(f->session, &p)) > 0) {
        append(f, p, (size_t)n);
    }
    return n >= 0 && buf_ok(f->out);
}

static void flush(http2_conn *f) {
    net_conn *c = f->net;
    if (!nghttp2_session_want_write(f->session)) {
        return;
    }
    f->out = net_loop_take_out(f->loop);
    do {
        if (!write_frames(f)) {
            net_conn_close(c);
        }
        net_conn_send(c, f->out);
    } while (f->paused && net_conn_is_open(c) && !net_conn_is_stuck(c));
    net_loop_give_out(f->loop, f->out);
    f->out = NULL;
}

/* ---- what the connection waits for next ---- */

static int64_t soonest_due(const http2_conn *f) {
    int64_t due = NET_NEVER;
    for (const http2_stream *s = f->streams; s && f->streams_n > f->served_n; s = s->next) {
        if (s->state != HTTP2_SERVED && s->pace.due_ms < due) {
            due = s->pace.due_ms;
        }
    }
    return due;
}

static void set_deadline(http2_conn *f) {
    const net_options *options = &f->loop->shared->options;
    int64_t due = soonest_due(f);
    if (due != NET_NEVER) {
        int64_t left = due - f->loop->now_ms;
        net_conn_deadline(f->net, left > 0 ? (unsigned)left : 0);
    } else if (f->streams_n) {
        net_conn_no_deadline(f->net);
    } else if (!f->idle) {
        f->idle = true;
        net_reading_idle(f->net, options, options->idle_timeout_ms);
    }
}

static void wait_for_next(http2_conn *f) {
    net_conn *c = f->net;
    bool over = !nghttp2_session_want_read(f->session) && !nghttp2_session_want_write(f->session);
    if (!net_conn_is_open(c)) {
        return;
    }
    if (over) {
        net_conn_finish(c, true);
    } else if (!net_conn_is_stuck(c)) {
        bool last = f->ended ? f->served_n == 0 : f->loop->draining && f->streams_n == 0;
        last ? net_conn_finish(c, f->linger) : set_deadline(f);
    }
}

static void send_now(http2_conn *f) {
    if (!net_conn_is_stuck(f->net)) {
        flush(f);
    }
    wait_for_next(f);
}

static void send_held(net_held *held) {
    send_now((http2_conn *)((char *)held - offsetof(http2_conn, held)));
}

void http2__send_soon(http2_conn *f) {
    if (!f->pumping) {
        f->held.send = send_held;
        net_loop_hold(f->loop, &f->held);
    }
}

/* ---- as a protocol ---- */

static http2_conn *conn_of(net_conn *c) {
    return *(http2_conn **)net_conn_state(c);
}

void http2__freed(http2_conn *f) {
    if (!f->net && f->streams_n == 0) {
        free(f);
    }
}

static void say_settings(http2_conn *f) {
    const nghttp2_settings_entry ours[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, HTTP2_STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, f->service->limits->head_bytes},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    nghttp2_submit_settings(f->session, NGHTTP2_FLAG_NONE, ours, sizeof ours / sizeof *ours);
    nghttp2_session_set_local_window_size(f->session, NGHTTP2_FLAG_NONE, 0, HTTP2_WINDOW_BYTES);
}

typedef struct http2_switch {
    http_switch to; /* first */
    const http_service *service;
} http2_switch;

static void begin(http_switch *to, net_conn *c) {
    http2_conn *f = mem_zero(sizeof *f);
    f->net = c;
    f->loop = net_conn_loop(c);
    f->service = ((http2_switch *)to)->service;
    f->peer = net_conn_peer(c);
    f->calm = CALM_MAX;
    f->calm_ms = f->loop->now_ms;
    f->in.own = buf_init(0);
    f->last_fields = buf_init_counted(LAST_FIELDS_BYTES, &f->loop->memory);
    nghttp2_mem memory = {f->loop, memory_new, memory_free, memory_zero, memory_resize};
    if (nghttp2_session_server_new3(&f->session, f->service->http2->callbacks, f, f->service->http2->options, &memory) != 0) {
        abort(); /* out of memory: see base/memory.h */
    }
    *(http2_conn **)net_conn_state(c) = f;
    say_settings(f);
}

static void fail(http2_conn *f, ssize_t code) {
    bool flood = f->calm_lost || code == NGHTTP2_ERR_FLOODED || code == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS;
    if (code != NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
        nghttp2_session_terminate_session(f->session, flood ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_INTERNAL_ERROR);
        flush(f);
    }
    net_conn_finish(f->net, true);
}

static void bytes(net_conn *c, char *p, size_t n) {
    http2_conn *f = conn_of(c);
    f->pumping = true;
    ssize_t used = nghttp2_session_mem_recv(f->session, (const uint8_t *)p, n);
    f->pumping = false;
    if (used < 0) {
        fail(f, used);
    } else {
        http2__send_soon(f);
    }
}

static void ended(net_conn *c) {
    http2_conn *f = conn_of(c);
    f->ended = true;
    for (http2_stream *s = f->streams; s; s = s->next) {
        if (s->state == HTTP2_SERVED) { /* a half-closed client could still read, but nearly always it has left */
            net__client_left(&s->client);
        }
    }
    send_now(f);
}

static void drained(net_conn *c) {
    http2_conn *f = conn_of(c);
    for (http2_stream *s = f->streams; s; s = s->next) {
        if (s->state == HTTP2_ANSWERED) {
            http2__wait_anew(s);
        }
    }
    send_now(f);
}

/* Ends streams whose deadline has passed; with `all`, every stream being received. Returns how many. */
static unsigned end_slow(http2_conn *f, bool all) {
    unsigned n = 0;
    for (http2_stream *s = f->streams, *next; s; s = next) {
        next = s->next;
        if (s->state != HTTP2_SERVED && (s->pace.due_ms <= f->loop->now_ms || (all && s->state == HTTP2_READING))) {
            n++;
            http2__stream_slow(s);
        }
    }
    return n;
}

/* Also called when memory is scarce (crowd.c). Then no deadline has passed, and all requests being received are ended. */
static void timed_out(net_conn *c) {
    http2_conn *f = conn_of(c);
    f->pumping = true;
    if (f->streams_n == 0) {
        nghttp2_session_terminate_session(f->session, NGHTTP2_NO_ERROR);
    } else if (!end_slow(f, false)) {
        end_slow(f, true);
    }
    f->pumping = false;
    send_now(f);
}

/* Sums up the streams of one state; false: they hold nothing. */
static bool progress_of(const http2_conn *f, http2_state state, net_progress *out) {
    *out = (net_progress){.began_ms = NET_NEVER};
    for (const http2_stream *s = f->streams; s; s = s->next) {
        if (s->state == state) {
            out->began_ms = s->pace.began_ms < out->began_ms ? s->pace.began_ms : out->began_ms;
            out->moved_bytes += s->pace.bytes + (int64_t)s->pace.progress;
            out->held_bytes += s->body.cap + (s->out ? s->out->cap : 0);
        }
    }
    return out->held_bytes > 0;
}

static bool receiving(net_conn *c, net_progress *progress_out) {
    const http2_conn *f = conn_of(c);
    return f->in.weighed > NET_INPUT_BYTES_SPARED && progress_of(f, HTTP2_READING, progress_out);
}

static bool answering(net_conn *c, net_progress *progress_out) {
    return progress_of(conn_of(c), HTTP2_ANSWERED, progress_out);
}

static bool busy(net_conn *c) {
    return conn_of(c)->served_n > 0;
}

static void surplus(net_conn *c) { /* a connection is surplus before its first bytes are looked at, when it is still HTTP/1.1's */
    net_conn_close(c);
}

static void stopping(net_conn *c) {
    http2_conn *f = conn_of(c);
    f->linger = f->streams_n > 0;
    nghttp2_submit_goaway(f->session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(f->session), NGHTTP2_NO_ERROR, NULL, 0);
    send_now(f);
}

static void closed(net_conn *c) {
    http2_conn *f = conn_of(c);
    net_loop_forget(f->loop, &f->held);
    nghttp2_session_del(f->session);
    f->session = NULL;
    buf_free(&f->last_fields);
    for (http2_stream *s = f->streams, *next; s; s = next) {
        next = s->next;
        http2__stream_closed(s);
    }
    f->net = NULL;
    http2__freed(f);
}

static const net_protocol http2_protocol = {
    .name = "http2",
    .state_bytes = sizeof(http2_conn *),
    .bytes = bytes,
    .ended = ended,
    .drained = drained,
    .timed_out = timed_out,
    .receiving = receiving,
    .answering = answering,
    .busy = busy,
    .surplus = surplus,
    .stopping = stopping,
    .closed = closed,
};

http_switch *http2_switch_new(const http_service *service) {
    http2_switch *s = mem_zero(sizeof *s);
    *s = (http2_switch){.to = {.protocol = &http2_protocol, .begin = begin}, .service = service};
    return &s->to;
}

/* ---- what the connections of a port share ---- */

http2_setup *http2_setup_new(void) {
    http2_setup *setup = mem_zero(sizeof *setup);
    if (nghttp2_session_callbacks_new(&setup->callbacks) != 0 || nghttp2_option_new(&setup->options) != 0) {
        abort(); /* out of memory: see base/memory.h */
    }
    nghttp2_option_set_no_closed_streams(setup->options, 1);
    for (unsigned type = NGHTTP2_CONTINUATION + 1; type <= UINT8_MAX; type++) {
        nghttp2_option_set_user_recv_extension_type(setup->options, (uint8_t)type);
    }
    nghttp2_session_callbacks *to = setup->callbacks;
    nghttp2_session_callbacks_set_on_begin_frame_callback(to, on_begin_frame);
    nghttp2_session_callbacks_set_unpack_extension_callback(to, unpack_nothing);
    nghttp2_session_callbacks_set_on_begin_headers_callback(to, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(to, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(to, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(to, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(to, on_stream_close);
    nghttp2_session_callbacks_set_send_data_callback(to, send_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(to, on_frame_sent);
    return setup;
}

void http2_setup_free(http2_setup *setup) {
    nghttp2_session_callbacks_del(setup->callbacks);
    nghttp2_option_del(setup->options);
    free(setup);
}
