/* A stream of HTTP/2: makes a request of its fields and body, and frames of the answer. The states are drawn in http2_int.h. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "net/http2_int.h"

enum {
    STOCK_MAX = 64,        /* free streams per loop, with their arena's block */
    OWN_BYTES = 32 * 1024, /* memory that each request has without asking the pool: a connection has many requests */
    FIELD_BYTES = 32,      /* overhead of a field in the size of a head: RFC 9113, 6.5.2 */
    HEAD_TIMES_MAX = 4,    /* a head longer than this multiple of the limit closes the connection */
    EARNED_BY_ANSWER = 2,
    FIELDS_MAX = 128, /* fields in an answer; front ends send some thirty */
};

/* ---- life ---- */

static void pace_begin(http2_stream *s, unsigned timeout_ms) {
    int64_t now = s->conn->loop->now_ms;
    s->pace = (http2_pace){.began_ms = now, .due_ms = now + timeout_ms};
}

void http2__moved(http2_stream *s, size_t n) {
    const net_loop *loop = s->conn->loop;
    http2_pace *p = &s->pace;
    p->progress += n;
    if (p->progress >= NET_PROGRESS_BYTES) {
        p->bytes += (int64_t)p->progress;
        p->progress = 0;
        p->due_ms = loop->now_ms + net_time_left(&loop->shared->options, p->began_ms, p->bytes, loop->now_ms);
    }
}

void http2__wait_anew(http2_stream *s) {
    pace_begin(s, s->conn->loop->shared->options.body_timeout_ms);
}

static http2_stream *stream_take(net_loop *loop) {
    http2_stream *s = loop->streams;
    if (s) {
        loop->streams = s->next;
        loop->streams_free--;
        return s;
    }
    s = mem_zero(sizeof *s);
    net_serving_init(&s->serving, loop, OWN_BYTES);
    s->client.loop = loop;
    return s;
}

static const http_carrier carrier;

http2_stream *http2__stream_new(http2_conn *f, int32_t id) {
    const net_options *options = &f->loop->shared->options;
    http2_stream *s = stream_take(f->loop);
    net_serving serving = s->serving;
    *s = (http2_stream){.conn = f, .id = id, .client = {.loop = f->loop}, .length = UINT64_MAX, .next = f->streams};
    s->serving = serving;
    s->body = buf_init(BUF_NO_LIMIT); /* bounded by the limits of a body */
    s->exchange = http__carried_new(&s->serving.arena, &s->client, &f->peer, f->service->front, &carrier, s);
    s->exchange->request.tls = net_conn_is_tls(f->net);
    net_serving_begin(f->loop);
    if (f->streams) {
        f->streams->prev = s;
    }
    f->streams = s;
    f->streams_n++;
    f->idle = false;
    pace_begin(s, net_conn_is_trusted(f->net) ? options->header_timeout_ms : options->untrusted_timeout_ms);
    return s;
}

static void free_body(http2_stream *s) {
    s->conn->body_bytes -= s->body.cap;
    buf_free(&s->body);
    net_input_weigh_to(&s->conn->in, s->conn->loop, s->conn->body_bytes);
}

/* Ends the request and frees its memory. */
static void end_serving(http2_stream *s) {
    net_loop *loop = s->conn->loop;
    s->exchange = NULL;
    net_serving_end(&s->serving, loop, true);
}

static void stream_free(http2_stream *s) {
    http2_conn *f = s->conn;
    net_loop *loop = f->loop;
    if (s->exchange) {
        end_serving(s);
    }
    if (s->out) {
        net_loop_give_out(loop, s->out);
    }
    free_body(s);
    *(s->prev ? &s->prev->next : &f->streams) = s->next;
    if (s->next) {
        s->next->prev = s->prev;
    }
    f->streams_n--;
    if (loop->streams_free < STOCK_MAX) {
        s->next = loop->streams;
        loop->streams = s;
        loop->streams_free++;
    } else {
        net_serving_free(&s->serving);
        free(s);
    }
    http2__freed(f);
}

void http2_free_streams(net_loop *loop) {
    while (loop->streams) {
        http2_stream *s = loop->streams;
        loop->streams = s->next;
        net_serving_free(&s->serving);
        free(s);
    }
}

/* A request being served stays until the front end answers. */
void http2__stream_closed(http2_stream *s) {
    if (s->state == HTTP2_SERVED) {
        s->reset = true;
        net__client_left(&s->client);
    } else {
        stream_free(s);
    }
}

/* ---- fields ---- */

static void refuse_later(http2_stream *s, err code) { /* the first reason counts */
    s->refusal = s->refusal ? s->refusal : code;
}

static slice keep(http2_stream *s, slice value) {
    slice copy = arena_copy(&s->serving.arena, value);
    return copy.p ? copy : slice_str(""); /* an empty value is there */
}

static void set_method(http2_stream *s, slice name) {
    http_exchange *x = s->exchange;
    for (unsigned m = 0; m <= HTTP_SOURCE; m++) {
        if (slice_eq(name, slice_str(http_method_str((enum http_method)m)))) {
            x->framing.method = (uint8_t)m;
            x->request.method = http__method(m);
            x->request.verb = slice_str(http_method_str((enum http_method)m));
            return;
        }
    }
    refuse_later(s, E_BAD_REQUEST);
}

/* nghttp2 has checked that each is sent once, before all other fields. */
static void pseudo_field(http2_stream *s, slice name, slice value) {
    if (slice_eq(name, SLICE_LIT(":method"))) {
        set_method(s, value);
    } else if (slice_eq(name, SLICE_LIT(":path"))) {
        s->url = keep(s, value);
    } else if (slice_eq(name, SLICE_LIT(":authority"))) {
        s->exchange->request.host = keep(s, value);
    }
}

static void once(http2_stream *s, slice *kept, slice value) {
    if (kept->p) {
        refuse_later(s, E_BAD_REQUEST);
    }
    *kept = keep(s, value);
}

static void own_field(http2_stream *s, http_own_field own, slice value) {
    if (own == HTTP_OWN_HOST) {
        once(s, &s->host, value);
    } else if (own == HTTP_OWN_ORIGIN) {
        once(s, &s->origin, value);
    } else if (own == HTTP_OWN_EXPECT) {
        s->expects_continue |= slice_eq_nocase(value, SLICE_LIT("100-continue"));
    }
}

static void ordinary_field(http2_stream *s, slice name, slice value) {
    http_own_field own;
    int index = http_names_find(s->conn->service->names, name, &own);
    if (index >= 0 && (size_t)index < s->exchange->front->fields_n) { /* fields of WebSockets follow; they are for HTTP/1.1 */
        slice *field = &s->exchange->request.field[index];
        *field = field->p ? http__joined(&s->serving.arena, *field, value) : keep(s, value);
    }
    own_field(s, own, value);
    if (slice_eq(name, SLICE_LIT("content-length")) && !slice_to_u64(value, &s->length)) {
        refuse_later(s, E_BAD_REQUEST);
    }
}

bool http2__field(http2_stream *s, slice name, slice value) {
    const http_limits *limits = s->conn->service->limits;
    s->head_bytes += name.n + value.n + FIELD_BYTES;
    if (++s->fields > limits->fields || s->head_bytes > limits->head_bytes) {
        refuse_later(s, E_TOO_MANY_HEADERS);
    }
    if (s->state == HTTP2_READING && !s->head_whole && !s->refusal) { /* trailers are read over */
        name.p[0] == ':' ? pseudo_field(s, name, value) : ordinary_field(s, name, value);
    }
    return s->head_bytes <= HEAD_TIMES_MAX * (size_t)limits->head_bytes;
}

/* ---- the request ---- */

/* As framing.c checks the head of HTTP/1.1. A host of both kinds must be the same: RFC 9113, 8.3.1. */
static err check_head(http2_stream *s) {
    http_request *r = &s->exchange->request;
    bool regular = s->url.n && (s->url.p[0] == '/' || slice_eq(s->url, SLICE_LIT("*")));
    if (s->refusal) {
        return s->refusal;
    }
    if (s->exchange->framing.method == HTTP_CONNECT) {
        return E_METHOD;
    }
    if (!regular || !http_url_allowed(s->url, s->conn->service->limits)) {
        return E_BAD_REQUEST;
    }
    if (!r->host.p) {
        r->host = s->host;
    }
    bool same = !s->host.p || slice_eq_nocase(r->host, s->host);
    return r->host.p && same && !memchr(r->host.p, '@', r->host.n) ? OK : E_BAD_REQUEST;
}

static void say_continue(http2_stream *s) {
    uint8_t name[] = ":status", value[] = "100";
    nghttp2_nv status = {.name = name, .namelen = sizeof name - 1, .value = value, .valuelen = sizeof value - 1};
    nghttp2_submit_headers(s->conn->session, NGHTTP2_FLAG_NONE, s->id, NULL, &status, 1, NULL);
}

/* Whether the body is too large even to be read and discarded. A client that waits for 100 Continue need not send it at all. */
static bool is_hopeless(const http2_stream *s, uint64_t body_bytes) {
    const http_limits *limits = s->conn->service->limits;
    return body_bytes > limits->discard_bytes || (s->expects_continue && body_bytes > limits->body_bytes);
}

void http2__head(http2_stream *s, bool whole) {
    err code = check_head(s);
    s->head_whole = true;
    s->unread = !whole;
    if (code != OK) {
        http2__refuse(s, code);
        return;
    }
    http__split_url(&s->exchange->request, s->url);
    if (whole) {
        http2__whole(s);
        return;
    }
    pace_begin(s, s->conn->loop->shared->options.body_timeout_ms);
    if (s->length != UINT64_MAX && is_hopeless(s, s->length)) {
        s->exchange->request.body_too_large = true;
        http2__whole(s);
    } else if (s->expects_continue) {
        say_continue(s);
    }
}

static void collect(http2_stream *s, slice bytes) {
    http2_conn *f = s->conn;
    size_t before = s->body.cap;
    buf_add_slice(&s->body, bytes);
    f->body_bytes += s->body.cap - before;
    net_input_weigh_to(&f->in, f->loop, f->body_bytes);
    if (net_input_weighs_too_much(&f->in, f->loop)) {
        net_count_starved(f->loop);
        http2__refuse(s, E_BUSY);
    }
}

void http2__body(http2_stream *s, slice bytes) {
    const http_limits *limits = s->conn->service->limits;
    s->seen += bytes.n;
    http2__moved(s, bytes.n);
    if (s->seen <= limits->body_bytes) {
        collect(s, bytes);
        return;
    }
    s->exchange->request.body_too_large = true;
    free_body(s);
    if (s->seen > limits->discard_bytes) {
        http2__whole(s);
    }
}

static void begin_serving(http2_stream *s) {
    assert(s->state == HTTP2_READING);
    s->state = HTTP2_SERVED;
    s->conn->served_n++;
}

void http2__whole(http2_stream *s) {
    http2_conn *f = s->conn;
    http_exchange *x = s->exchange;
    size_t n = s->body.n;
    begin_serving(s);
    f->body_bytes -= s->body.cap;
    x->request.body = n ? net_serving_take(&s->serving, f->loop, &s->body) : slice_str("");
    net_input_weigh_to(&f->in, f->loop, f->body_bytes);
    if (!http__is_welcome(f->net, &x->request, s->host.p ? s->host : x->request.host, s->origin)) {
        http__refuse(x, E_WRONG_HOST);
    } else if (net_is_unaffordable(f->loop, n)) {
        http__refuse(x, net_count_starved(f->loop));
    } else {
        x->front->handle(&x->request);
    }
}

void http2__refuse(http2_stream *s, err code) {
    begin_serving(s);
    free_body(s);
    http__refuse(s->exchange, code);
}

/* A connection cannot continue after an incomplete head, because HPACK's table is unknown. */
void http2__stream_slow(http2_stream *s) {
    if (!s->head_whole) {
        nghttp2_session_terminate_session(s->conn->session, NGHTTP2_NO_ERROR);
        return;
    }
    net_crowd_count_slow(s->conn->loop);
    if (s->state == HTTP2_READING) {
        s->unread = true;
        http2__refuse(s, E_TIMEOUT);
    } else if (s->state == HTTP2_ANSWERED) {
        nghttp2_submit_rst_stream(s->conn->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL);
    }
}

/* ---- the answer ---- */

/* Name and value must live until the frame is sent or the stream is freed. */
static nghttp2_nv nv_of(slice name, slice value, unsigned flags) {
    return (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name.p,
        .namelen = name.n,
        .value = (uint8_t *)(uintptr_t)value.p,
        .valuelen = value.n,
        .flags = (uint8_t)(flags | NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE),
    };
}

static slice next_line(slice *lines) { /* with its end; skips it */
    if (!lines->n) {
        return SLICE_EMPTY;
    }
    const char *end = memchr(lines->p, '\n', lines->n);
    slice line = slice_of(lines->p, end ? (size_t)(end - lines->p) + 1 : lines->n);
    *lines = slice_skip(*lines, line.n);
    return line;
}

static size_t lower_name(char *p) { /* up to the colon, which is there */
    size_t n = 0;
    for (; p[n] != ':'; n++) {
        p[n] = (char)(p[n] >= 'A' && p[n] <= 'Z' ? p[n] | 0x20 : p[n]);
    }
    return n;
}

/* Only lines that the previous answer had at the same place are put into HPACK's table. Values that change with each answer would evict
 * the others. */
static size_t add_fields(http2_conn *f, char *text, size_t n, nghttp2_nv *nv) {
    slice lines = slice_of(text, n), before = buf_view(&f->last_fields);
    size_t count = 0;
    while (lines.n) {
        assert(count < FIELDS_MAX);
        char *at = text + (lines.p - text);
        slice line = next_line(&lines), last = next_line(&before);
        size_t name_n = lower_name(at);
        slice value = slice_trim(slice_skip(line, name_n + 1));
        nv[count++] = nv_of(slice_of(at, name_n), value, slice_eq(line, last) ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX);
    }
    buf_clear(&f->last_fields);
    buf_add(&f->last_fields, text, n);
    return count;
}

static slice number_text(char *into, size_t bytes, size_t number) {
    return slice_of(into, (size_t)snprintf(into, bytes, "%zu", number));
}

static slice date_text(http2_stream *s) {
    slice date = http__date(s->conn->loop);
    memcpy(s->date, date.p, date.n);
    return slice_of(s->date, date.n);
}

static bool has_length(const http_answer *answer) {
    return answer->length || (answer->status != 204 && answer->status != 304);
}

/* Fields and body stay in the answer's buffer until the stream is gone. */
static bool submit(http2_stream *s, const http_answer *answer) {
    nghttp2_nv nv[FIELDS_MAX + 3];
    size_t n = 0;
    nv[n++] = nv_of(SLICE_LIT(":status"), number_text(s->status, sizeof s->status, answer->status), NGHTTP2_NV_FLAG_NONE);
    nv[n++] = nv_of(SLICE_LIT("date"), date_text(s), NGHTTP2_NV_FLAG_NONE);
    if (has_length(answer)) {
        nv[n++] = nv_of(SLICE_LIT("content-length"), number_text(s->length_text, sizeof s->length_text, answer->length),
                        NGHTTP2_NV_FLAG_NO_INDEX);
    }
    if (answer->bytes) {
        s->out = *answer->bytes;
        *answer->bytes = NULL;
        s->at = answer->body.n ? (size_t)(answer->body.p - s->out->p) : 0;
        s->end = s->at + answer->body.n;
        n += add_fields(s->conn, s->out->p + (answer->fields.p - s->out->p), answer->fields.n, nv + n);
    }
    nghttp2_data_provider body = {.source.ptr = s, .read_callback = http2__read_answer};
    return nghttp2_submit_response(s->conn->session, s->id, nv, n, answer->body.n ? &body : NULL) == 0;
}

ssize_t http2__read_answer(nghttp2_session *session, int32_t id, uint8_t *into, size_t n, uint32_t *flags, nghttp2_data_source *source,
                           void *conn) {
    const http2_stream *s = source->ptr;
    size_t left = s->end - s->at;
    (void)session, (void)id, (void)into, (void)conn;
    n = n < HTTP2_DATA_BYTES ? n : HTTP2_DATA_BYTES;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY | (left <= n ? NGHTTP2_DATA_FLAG_EOF : 0);
    return (ssize_t)(left <= n ? left : n);
}

static void answered(void *context, const http_answer *answer) {
    http2_stream *s = context;
    http2_conn *f = s->conn;
    net_loop *loop = f->loop;
    bool is_there = f->net != NULL; /* otherwise f is freed with its last stream */
    bool sent = is_there && !s->reset && net_conn_is_open(f->net) && submit(s, answer);
    f->served_n--;
    s->state = HTTP2_ANSWERED;
    end_serving(s);
    if (sent) {
        pace_begin(s, loop->shared->options.body_timeout_ms);
        http2__earn(f, EARNED_BY_ANSWER);
    } else {
        if (f->session && !s->reset) {
            nghttp2_session_set_stream_user_data(f->session, s->id, NULL);
        }
        stream_free(s);
    }
    if (is_there) {
        http2__send_soon(f); /* may also finish the connection */
    }
    net_loop_check_drained(loop);
}

static void trust(void *context) {
    const http2_stream *s = context;
    if (s->conn->net) {
        net_conn_trust(s->conn->net);
    }
}

static int64_t *wait_until(void *context) {
    http2_conn *f = ((const http2_stream *)context)->conn;
    return f->net ? &f->wait_until_ms : NULL;
}

static const http_carrier carrier = {.name = "http2", .answered = answered, .trust = trust, .wait_until = wait_until};
