/* net_frames_harness.h — for tests of length-prefixed frames: an echo protocol whose frames begin, like MongoDB's, with their little-endian
 * length.
 *
 *   0..3 length   4..7 stream   8 verb   9.. argument
 *
 *   e  echo at once       l  echo, posted from another thread     h  echo at harness_release   n  no answer
 *   t  trust, and echo    b  as many bytes as the argument says   q  echo, and close           f  ten parts, each flushed
 *   g  welcome, and echo
 *   w  wait on a worker until the client leaves                   o  more than an answer may hold
 *
 * Of a front end with `extend`, the argument of + is 4 bytes that say how many follow after the length in the header; - is malformed there.
 *
 * A refusal has the verb '!' and the error's name. */
#pragma once

#include "net_harness.h"

#include "net/frames.h"
#include "net/loop_int.h"
#include "net/work.h"

enum { HEADER = 9, FRAME_MAX = 1 << 20, UNTRUSTED_MAX = 4096, IN_FLIGHT = 16, IN_FLIGHT_BYTES = 256 * 1024 };

typedef struct echo {
    harness *h;
    frames_front front;
    uint16_t port;
    pthread_mutex_t lock;
    frames_request *held[1024];
    unsigned held_n;
    _Atomic unsigned handled, opened, closed, left, parts, pushed, refused_push;
    atomic_bool released; /* later requests are not held */
} echo;

typedef struct echo_conn {
    unsigned frames;
    char *own;
} echo_conn;

static inline uint32_t number_at(const char *p) {
    uint32_t n;
    memcpy(&n, p, 4);
    return n;
}

static inline void add_frame(buf *out, uint32_t stream, char verb, slice argument) {
    uint32_t n = HEADER + (uint32_t)argument.n;
    buf_add(out, &n, 4);
    buf_add(out, &stream, 4);
    buf_add_byte(out, verb);
    buf_add_slice(out, argument);
}

static inline slice argument_of(const frames_request *r) {
    return slice_of(r->frame.p + HEADER, r->frame.n - HEADER);
}

static inline void echo_answer(frames_request *r) {
    add_frame(frames_out(r), number_at(r->frame.p + 4), r->frame.p[8], argument_of(r));
    frames_end(r);
}

static inline bool echo_length(frames_conn *conn, const uint8_t *header, uint64_t *bytes_out) {
    (void)conn;
    *bytes_out = number_at((const char *)header);
    return header[8] != 'X';
}

typedef struct echo_job {
    net_task task; /* must be first */
    frames_request *request;
} echo_job;

static inline void run_job(net_task *task) {
    echo_answer(((echo_job *)task)->request);
}

static inline void *post_later(void *argument) {
    echo_job *j = argument;
    net_post(j->request->client.loop, &j->task);
    return NULL;
}

static inline void echo_later(frames_request *r) {
    echo_job *j = arena_new(r->arena, echo_job);
    pthread_t thread;
    *j = (echo_job){.task.run = run_job, .request = r};
    assert_int_equal(pthread_create(&thread, NULL, post_later, j), 0);
    pthread_detach(thread);
}

typedef struct echo_work {
    net_work work; /* must be first */
    op op;
    frames_request *request;
} echo_work;

static inline void wait_for_leave(net_work *work) {
    while (!((echo_work *)work)->request->client.left) {
        usleep(1000);
    }
}

static inline void has_left(net_work *work) {
    echo_work *w = (echo_work *)work;
    ((echo *)w->request->context)->left++;
    frames_end(w->request);
}

static inline void work_until_left(frames_request *r) {
    echo_work *w = arena_new(r->arena, echo_work);
    w->request = r;
    net_work_start(&r->client, &w->op, NET_SHORT, 1, &w->work, wait_for_leave, has_left);
}

static inline void add_bytes(frames_request *r, uint32_t n) {
    static const char filler[4096] = {[0 ... 4095] = 'x'};
    uint32_t all = n + HEADER, stream = number_at(r->frame.p + 4);
    buf *out = frames_out(r);
    buf_add(out, &all, 4);
    buf_add(out, &stream, 4);
    buf_add_byte(out, 'b');
    for (; n && buf_ok(out); n -= n < sizeof filler ? n : (uint32_t)sizeof filler) {
        buf_add(out, filler, n < sizeof filler ? n : sizeof filler);
    }
}

enum { PARTS = 40, PART_BYTES = 200000 };

static inline void next_part(frames_request *r) {
    echo *e = r->context;
    echo_conn *state = frames_state(r->conn);
    if (r->client.left || ++state->frames > PARTS) {
        e->left += r->client.left;
        frames_end(r);
        return;
    }
    e->parts++;
    add_bytes(r, PART_BYTES);
    frames_flush(r, next_part);
}

static inline void echo_hold(echo *e, frames_request *r) {
    if (e->released) {
        echo_answer(r);
        return;
    }
    pthread_mutex_lock(&e->lock);
    assert_true(e->held_n < 1024);
    e->held[e->held_n++] = r;
    pthread_mutex_unlock(&e->lock);
}

static inline void echo_handle(frames_request *r) {
    echo *e = r->context;
    e->handled++;
    assert_true(number_at(r->frame.p) == r->frame.n || r->frame.p[8] == '+');
    switch (r->frame.p[8]) {
    case 'l':
        echo_later(r);
        break;
    case 'h':
        echo_hold(e, r);
        break;
    case 'n':
        frames_end(r);
        break;
    case 't':
        frames_trust(r->conn);
        echo_answer(r);
        break;
    case 'g':
        frames_welcome(r->conn);
        echo_answer(r);
        break;
    case 'b':
        add_bytes(r, number_at(r->frame.p + HEADER));
        frames_end(r);
        break;
    case 'o':
        add_bytes(r, 100u << 20);
        frames_end(r);
        break;
    case 'q':
        frames_finish(r->conn);
        echo_answer(r);
        break;
    case 'f':
        next_part(r);
        break;
    case 'w':
        work_until_left(r);
        break;
    default:
        echo_answer(r);
    }
}

static inline void echo_refuse(frames_request *r, err code) {
    add_frame(frames_out(r), r->frame.n >= 8 ? number_at(r->frame.p + 4) : 0, '!', slice_str(err_lookup(code)->name));
    frames_end(r);
}

static inline void echo_opened(frames_conn *conn) {
    echo_conn *state = frames_state(conn);
    assert_int_equal(state->frames, 0);
    state->own = mem_alloc(16); /* leaks, which the sanitizer reports, if `closed` is not called */
    ((echo *)frames_context(conn))->opened++;
}

static inline void echo_closed(frames_conn *conn) {
    free(((echo_conn *)frames_state(conn))->own);
    ((echo *)frames_context(conn))->closed++;
}

/* ---- the server ---- */

enum { EXTENDED_BYTES = HEADER + 4 };

static inline bool echo_extend(frames_conn *conn, slice begun, uint64_t *bytes_out) {
    (void)conn;
    assert_int_equal(*bytes_out, begun.n);
    if (begun.p[8] == '+' && begun.n == EXTENDED_BYTES) {
        *bytes_out += number_at(begun.p + HEADER);
    }
    return begun.p[8] != '-';
}

typedef struct echo_kind {
    bool tls, extend, apart;
} echo_kind;

static inline echo *echo_open_as(const net_options *o, echo_kind kind) {
    echo *e = mem_zero(sizeof *e);
    char why[256] = "", folder[] = "/tmp/tesela-frames-XXXXXX", file[64];
    pthread_mutex_init(&e->lock, NULL);
    e->front = (frames_front){
        .name = "echo",
        .header_bytes = HEADER,
        .length = echo_length,
        .extend = kind.extend ? echo_extend : NULL,
        .apart = kind.apart,
        .untrusted = {.frame_bytes = UNTRUSTED_MAX, .in_flight = IN_FLIGHT, .in_flight_bytes = IN_FLIGHT_BYTES},
        .trusted = {.frame_bytes = FRAME_MAX, .in_flight = IN_FLIGHT, .in_flight_bytes = IN_FLIGHT_BYTES},
        .state_bytes = sizeof(echo_conn),
        .opened = echo_opened,
        .closed = echo_closed,
        .handle = echo_handle,
        .refuse = echo_refuse,
        .context = e,
    };
    e->h = harness_open(o);
    if (kind.tls) {
        assert_non_null(mkdtemp(folder));
        assert_int_equal(net_tls(e->h->server, folder, NULL, NULL, why, sizeof why), OK);
        for (int i = 0; i < 2; i++) {
            snprintf(file, sizeof file, "%s/%s", folder, i ? "tls-key.pem" : "tls-cert.pem");
            unlink(file);
        }
        rmdir(folder);
    }
    assert_int_equal(net_listen_frames(e->h->server, "localhost", 0, &e->front, &e->port, why, sizeof why), OK);
    harness_run(e->h);
    return e;
}

static inline echo *echo_open(const net_options *o, bool tls) {
    return echo_open_as(o, (echo_kind){.tls = tls});
}

static inline echo *echo_start(void) {
    net_options o = harness_options();
    return echo_open(&o, false);
}

static inline void echo_close(echo *e) {
    harness_close(e->h);
    assert_int_equal(e->opened, e->closed);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static inline void release_held(echo *e, bool backwards) {
    pthread_mutex_lock(&e->lock);
    for (unsigned i = 0; i < e->held_n; i++) {
        frames_request *r = e->held[backwards ? e->held_n - 1 - i : i];
        echo_job *j = arena_new(r->arena, echo_job);
        *j = (echo_job){.task.run = run_job, .request = r};
        net_post(r->client.loop, &j->task);
    }
    e->held_n = 0;
    pthread_mutex_unlock(&e->lock);
}

static inline void release_for_good(echo *e) {
    e->released = true;
    release_held(e, false);
}

static inline unsigned held(echo *e) {
    pthread_mutex_lock(&e->lock);
    unsigned n = e->held_n;
    pthread_mutex_unlock(&e->lock);
    return n;
}

/* ---- the client ---- */

static inline client frames_client(const echo *e) {
    harness there = {.port = e->port};
    return client_open(&there);
}

static inline void send_frame(client *c, uint32_t stream, char verb, slice argument) {
    buf frame = buf_init(BUF_NO_LIMIT);
    add_frame(&frame, stream, verb, argument);
    assert_true(client_try_send(c, frame.p, frame.n));
    buf_free(&frame);
}

static inline void send_number(client *c, uint32_t stream, char verb, uint32_t n) {
    send_frame(c, stream, verb, slice_of((char *)&n, 4));
}

typedef struct reply {
    uint32_t stream; /* NONE: the connection ended first */
    char verb;
    char text[64]; /* the beginning of the argument */
    size_t n;
} reply;

enum { NONE = UINT32_MAX };

static inline reply next_reply(client *c) {
    reply r = {.stream = NONE};
    while (c->in.n < HEADER || c->in.n < number_at(c->in.p)) {
        if (!client_more(c)) {
            return r;
        }
    }
    uint32_t n = number_at(c->in.p);
    r = (reply){.stream = number_at(c->in.p + 4), .verb = c->in.p[8], .n = n - HEADER};
    memcpy(r.text, c->in.p + HEADER, r.n < sizeof r.text - 1 ? r.n : sizeof r.text - 1);
    c->in.n -= n;
    memmove(c->in.p, c->in.p + n, c->in.n);
    return r;
}

static inline void expect_reply(client *c, uint32_t stream, char verb, const char *text) {
    reply r = next_reply(c);
    assert_int_equal(r.stream, stream);
    assert_int_equal(r.verb, verb);
    if (text) {
        assert_string_equal(r.text, text);
    }
}

/* Expects one answer for each of the streams 0 to n - 1, in any order. */
static inline void expect_each_once(client *c, uint32_t n, size_t argument_n) {
    bool *seen = mem_zero(n);
    for (uint32_t i = 0; i < n; i++) {
        reply r = next_reply(c);
        assert_true(r.stream < n && !seen[r.stream]);
        assert_int_equal(r.n, argument_n);
        seen[r.stream] = true;
    }
    free(seen);
}

static inline void trust(client *c) {
    send_frame(c, 1, 't', SLICE_LIT("me"));
    expect_reply(c, 1, 't', "me");
}

static inline client trusted_client(const echo *e) {
    client c = frames_client(e);
    trust(&c);
    return c;
}

/* A client whose answers of 4 MB each do not fit into the kernel's buffers. */
static inline client slow_client(const echo *e, unsigned answers) {
    harness there = {.port = e->port};
    client c = client_open_narrow(&there, 16 * 1024);
    trust(&c);
    for (uint32_t i = 0; i < answers; i++) {
        send_number(&c, i, 'b', 4000000);
    }
    return c;
}
