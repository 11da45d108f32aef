/* Length-prefixed frames: an echo protocol whose frames begin, like MongoDB's, with their little-endian length.
 *
 *   0..3 length   4..7 stream   8 verb   9.. argument
 *
 *   e  echo at once       l  echo, posted from another thread     h  echo at harness_release   n  no answer
 *   t  trust, and echo    b  as many bytes as the argument says   q  echo, and close           f  ten parts, each flushed
 *   w  wait on a worker until the client leaves                   o  more than an answer may hold
 *
 * A refusal has the verb '!' and the error's name. */
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

static uint32_t number_at(const char *p) {
    uint32_t n;
    memcpy(&n, p, 4);
    return n;
}

static void add_frame(buf *out, uint32_t stream, char verb, slice argument) {
    uint32_t n = HEADER + (uint32_t)argument.n;
    buf_add(out, &n, 4);
    buf_add(out, &stream, 4);
    buf_add_byte(out, verb);
    buf_add_slice(out, argument);
}

static slice argument_of(const frames_request *r) {
    return slice_of(r->frame.p + HEADER, r->frame.n - HEADER);
}

static void echo_answer(frames_request *r) {
    add_frame(frames_out(r), number_at(r->frame.p + 4), r->frame.p[8], argument_of(r));
    frames_end(r);
}

static bool echo_length(frames_conn *conn, const uint8_t *header, uint64_t *bytes_out) {
    (void)conn;
    *bytes_out = number_at((const char *)header);
    return header[8] != 'X';
}

typedef struct echo_job {
    net_task task; /* must be first */
    frames_request *request;
} echo_job;

static void run_job(net_task *task) {
    echo_answer(((echo_job *)task)->request);
}

static void *post_later(void *argument) {
    echo_job *j = argument;
    net_post(j->request->client.loop, &j->task);
    return NULL;
}

static void echo_later(frames_request *r) {
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

static void wait_for_leave(net_work *work) {
    while (!((echo_work *)work)->request->client.left) {
        usleep(1000);
    }
}

static void has_left(net_work *work) {
    echo_work *w = (echo_work *)work;
    ((echo *)w->request->context)->left++;
    frames_end(w->request);
}

static void work_until_left(frames_request *r) {
    echo_work *w = arena_new(r->arena, echo_work);
    w->request = r;
    net_work_start(&r->client, &w->op, NET_SHORT, 1, &w->work, wait_for_leave, has_left);
}

static void add_bytes(frames_request *r, uint32_t n) {
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

static void next_part(frames_request *r) {
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

static void echo_hold(echo *e, frames_request *r) {
    if (e->released) {
        echo_answer(r);
        return;
    }
    pthread_mutex_lock(&e->lock);
    assert_true(e->held_n < 1024);
    e->held[e->held_n++] = r;
    pthread_mutex_unlock(&e->lock);
}

static void echo_handle(frames_request *r) {
    echo *e = r->context;
    e->handled++;
    assert_int_equal(number_at(r->frame.p), r->frame.n);
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

static void echo_refuse(frames_request *r, err code) {
    add_frame(frames_out(r), r->frame.n >= 8 ? number_at(r->frame.p + 4) : 0, '!', slice_str(err_lookup(code)->name));
    frames_end(r);
}

static void echo_opened(frames_conn *conn) {
    echo_conn *state = frames_state(conn);
    assert_int_equal(state->frames, 0);
    state->own = mem_alloc(16); /* leaks, which the sanitizer reports, if `closed` is not called */
    ((echo *)frames_context(conn))->opened++;
}

static void echo_closed(frames_conn *conn) {
    free(((echo_conn *)frames_state(conn))->own);
    ((echo *)frames_context(conn))->closed++;
}

/* ---- the server ---- */

static echo *echo_open(const net_options *o, bool tls) {
    echo *e = mem_zero(sizeof *e);
    char why[256] = "", folder[] = "/tmp/tesela-frames-XXXXXX", file[64];
    pthread_mutex_init(&e->lock, NULL);
    e->front = (frames_front){
        .name = "echo",
        .header_bytes = HEADER,
        .length = echo_length,
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
    if (tls) {
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

static echo *echo_start(void) {
    net_options o = harness_options();
    return echo_open(&o, false);
}

static void echo_close(echo *e) {
    harness_close(e->h);
    assert_int_equal(e->opened, e->closed);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static void release_held(echo *e, bool backwards) {
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

static void release_for_good(echo *e) {
    e->released = true;
    release_held(e, false);
}

static unsigned held(echo *e) {
    pthread_mutex_lock(&e->lock);
    unsigned n = e->held_n;
    pthread_mutex_unlock(&e->lock);
    return n;
}

/* ---- the client ---- */

static client frames_client(const echo *e) {
    harness there = {.port = e->port};
    return client_open(&there);
}

static void send_frame(client *c, uint32_t stream, char verb, slice argument) {
    buf frame = buf_init(BUF_NO_LIMIT);
    add_frame(&frame, stream, verb, argument);
    assert_true(client_try_send(c, frame.p, frame.n));
    buf_free(&frame);
}

static void send_number(client *c, uint32_t stream, char verb, uint32_t n) {
    send_frame(c, stream, verb, slice_of((char *)&n, 4));
}

typedef struct reply {
    uint32_t stream; /* NONE: the connection ended first */
    char verb;
    char text[64]; /* the beginning of the argument */
    size_t n;
} reply;

enum { NONE = UINT32_MAX };

static reply next_reply(client *c) {
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

static void expect_reply(client *c, uint32_t stream, char verb, const char *text) {
    reply r = next_reply(c);
    assert_int_equal(r.stream, stream);
    assert_int_equal(r.verb, verb);
    if (text) {
        assert_string_equal(r.text, text);
    }
}

/* Expects one answer for each of the streams 0 to n - 1, in any order. */
static void expect_each_once(client *c, uint32_t n, size_t argument_n) {
    bool *seen = mem_zero(n);
    for (uint32_t i = 0; i < n; i++) {
        reply r = next_reply(c);
        assert_true(r.stream < n && !seen[r.stream]);
        assert_int_equal(r.n, argument_n);
        seen[r.stream] = true;
    }
    free(seen);
}

static void trust(client *c) {
    send_frame(c, 1, 't', SLICE_LIT("me"));
    expect_reply(c, 1, 't', "me");
}

static client trusted_client(const echo *e) {
    client c = frames_client(e);
    trust(&c);
    return c;
}

/* ---- requests and answers ---- */

static void frames_are_answered(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    send_frame(&c, 7, 'e', SLICE_LIT("hello"));
    expect_reply(&c, 7, 'e', "hello");
    send_frame(&c, 8, 'e', SLICE_EMPTY); /* only a header */
    expect_reply(&c, 8, 'e', "");
    send_frame(&c, 9, 'n', SLICE_LIT("wants no answer"));
    send_frame(&c, 10, 'l', SLICE_LIT("later"));
    expect_reply(&c, 10, 'l', "later");
    assert_int_equal(e->handled, 4);
    client_close(&c);
    AWAIT(e->closed == 1);
    echo_close(e);
}

/* The bytes may be split into reads anywhere. */
static void torn_frames_are_put_together(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    buf frames = buf_init(BUF_NO_LIMIT);
    for (uint32_t i = 0; i < 10; i++) {
        add_frame(&frames, i, 'e', slice_of("abcdefghijklmnop", i));
    }
    for (size_t at = 0, step = 1; at < frames.n; at += step, step = step % 5 + 1) {
        step = step < frames.n - at ? step : frames.n - at;
        assert_true(client_try_send(&c, frames.p + at, step));
        usleep(500);
    }
    for (uint32_t i = 0; i < 10; i++) {
        reply r = next_reply(&c);
        assert_int_equal(r.stream, i);
        assert_int_equal(r.n, i);
    }
    buf_free(&frames);
    client_close(&c);
    echo_close(e);
}

static void answers_come_in_the_order_they_are_ended_in(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    for (uint32_t i = 0; i < 10; i++) {
        send_frame(&c, i, 'h', SLICE_LIT("held"));
    }
    send_frame(&c, 99, 'e', SLICE_LIT("quick")); /* overtakes the held ones */
    expect_reply(&c, 99, 'e', "quick");
    AWAIT(held(e) == 10);
    assert_int_equal(net_server_stats(e->h->server).requests, 10);
    release_held(e, true);
    for (uint32_t i = 10; i-- > 0;) {
        expect_reply(&c, i, 'h', "held");
    }
    assert_int_equal(net_server_stats(e->h->server).requests, 0);
    client_close(&c);
    echo_close(e);
}

static void many_streams_on_many_connections(void **state) {
    (void)state;
    enum { CLIENTS = 8, FRAMES = 2000 };
    echo *e = echo_start();
    client c[CLIENTS];
    buf frames = buf_init(BUF_NO_LIMIT);
    for (uint32_t i = 0; i < FRAMES; i++) {
        add_frame(&frames, i, 'e', SLICE_LIT("some bytes"));
    }
    for (unsigned k = 0; k < CLIENTS; k++) {
        c[k] = frames_client(e);
        assert_true(client_try_send(&c[k], frames.p, frames.n));
    }
    for (unsigned k = 0; k < CLIENTS; k++) {
        for (uint32_t i = 0; i < FRAMES; i++) {
            expect_reply(&c[k], i, 'e', "some bytes");
        }
        client_close(&c[k]);
    }
    assert_int_equal(e->handled, CLIENTS * FRAMES);
    buf_free(&frames);
    echo_close(e);
}

/* ---- bounds ---- */

static void requests_in_flight_are_bounded(void **state) {
    (void)state;
    enum { FRAMES = 20000 };
    echo *e = echo_start();
    client c = frames_client(e);
    buf frames = buf_init(BUF_NO_LIMIT);
    for (uint32_t i = 0; i < FRAMES; i++) {
        add_frame(&frames, i, 'h', SLICE_LIT("0123456789012345678901234567890123456789"));
    }
    size_t sent = 0;
    for (int64_t quiet = now_ms() + 300; sent < frames.n && now_ms() < quiet;) { /* until the socket takes no more */
        ssize_t k = send(c.fd, frames.p + sent, frames.n - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (k > 0) {
            sent += (size_t)k;
            quiet = now_ms() + 300;
        } else {
            usleep(1000);
        }
    }
    AWAIT(held(e) == IN_FLIGHT);
    usleep(20 * 1000);
    assert_int_equal(held(e), IN_FLIGHT);                                  /* no more are parsed … */
    assert_true(net_server_stats(e->h->server).buffer_bytes < 512 * 1024); /* … and kept input is bounded */
    release_for_good(e);
    expect_each_once(&c, (uint32_t)(sent / (frames.n / FRAMES)), 40);
    client_close(&c);
    AWAIT(e->closed == 1);
    buf_free(&frames);
    echo_close(e);
}

typedef struct sending {
    client *c;
    buf *frames;
} sending;

static void *send_all(void *argument) {
    sending *s = argument;
    return client_try_send(s->c, s->frames->p, s->frames->n) ? argument : NULL;
}

static void bytes_in_flight_are_bounded(void **state) {
    (void)state;
    enum { FRAME = 100000, FRAMES = 12 };
    echo *e = echo_start();
    client c = trusted_client(e);
    static char argument[FRAME];
    memset(argument, 'y', sizeof argument);
    pthread_t sender;
    buf frames = buf_init(BUF_NO_LIMIT);
    for (uint32_t i = 0; i < FRAMES; i++) {
        add_frame(&frames, i, 'h', slice_of(argument, FRAME));
    }
    sending s = {&c, &frames};
    assert_int_equal(pthread_create(&sender, NULL, send_all, &s), 0);
    AWAIT(held(e) == 3); /* the third exceeds the limit */
    usleep(50 * 1000);
    assert_int_equal(held(e), 3);
    release_for_good(e);
    expect_each_once(&c, FRAMES, FRAME);
    pthread_join(sender, NULL);
    buf_free(&frames);
    client_close(&c);
    echo_close(e);
}

static void a_frame_has_a_largest_size(void **state) {
    (void)state;
    echo *e = echo_start();
    static char argument[FRAME_MAX];
    client c = frames_client(e);
    send_frame(&c, 1, 'e', slice_of(argument, UNTRUSTED_MAX - HEADER));
    assert_int_equal(next_reply(&c).n, UNTRUSTED_MAX - HEADER);
    send_frame(&c, 2, 'e', slice_of(argument, UNTRUSTED_MAX - HEADER + 1));
    expect_reply(&c, 2, '!', "E_TOO_LARGE");
    assert_true(client_ended(&c));
    client_close(&c);
    c = trusted_client(e);
    send_frame(&c, 3, 'e', slice_of(argument, FRAME_MAX - HEADER));
    assert_int_equal(next_reply(&c).n, FRAME_MAX - HEADER);
    client_try_send(&c, "\xff\xff\xff\xff\4\0\0\0e", 9);
    expect_reply(&c, 4, '!', "E_TOO_LARGE");
    assert_true(client_ended(&c));
    client_close(&c);
    echo_close(e);
}

/* Requests in flight are answered before the connection closes. */
static void malformed_frames_end_the_connection(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    send_frame(&c, 1, 'h', SLICE_LIT("held"));
    client_try_send(&c, "\5\0\0\0\2\0\0\0e", 9); /* shorter than its header */
    expect_reply(&c, 2, '!', "E_BAD_REQUEST");
    send_frame(&c, 3, 'e', SLICE_LIT("never seen"));
    release_held(e, false);
    expect_reply(&c, 1, 'h', "held");
    assert_true(client_ended(&c));
    client_close(&c);
    c = frames_client(e);
    client_try_send(&c, "\20\0\0\0\2\0\0\0X", 9);
    expect_reply(&c, 2, '!', "E_BAD_REQUEST");
    assert_true(client_ended(&c));
    client_close(&c);
    echo_close(e);
}

static void an_answer_has_a_largest_size(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    send_frame(&c, 1, 'o', SLICE_EMPTY);
    expect_reply(&c, 1, '!', "E_INTERNAL");
    send_frame(&c, 2, 'e', SLICE_LIT("still good"));
    expect_reply(&c, 2, 'e', "still good");
    client_close(&c);
    echo_close(e);
}

static void time_outs(void **state) {
    (void)state;
    net_options o = harness_options();
    o.header_timeout_ms = o.body_timeout_ms = o.untrusted_timeout_ms = 1500;
    o.idle_timeout_ms = 2000;
    echo *e = echo_open(&o, false);
    client busy = frames_client(e); /* each client sends everything at once, before a timeout */
    send_frame(&busy, 1, 'h', SLICE_LIT("works"));
    client torn = frames_client(e);
    client_try_send(&torn, "\20\0\0", 3);
    client slow = trusted_client(e);
    client_try_send(&slow, "\20\0\0\0\5\0\0\0e", 9);
    client silent = frames_client(e), idle = trusted_client(e);
    assert_true(client_ended(&silent));
    expect_reply(&torn, 0, '!', "E_TIMEOUT");
    assert_true(client_ended(&torn));
    expect_reply(&slow, 0, '!', "E_TIMEOUT");
    assert_true(client_ended(&slow));
    assert_true(client_ended(&idle));
    release_held(e, false); /* a request being served has no timeout */
    expect_reply(&busy, 1, 'h', "works");
    assert_true(client_ended(&busy));
    client *all[] = {&silent, &torn, &slow, &idle, &busy};
    for (unsigned i = 0; i < 5; i++) {
        client_close(all[i]);
    }
    echo_close(e);
}

/* ---- slow readers ---- */

static client slow_client(const echo *e, unsigned answers) {
    harness there = {.port = e->port};
    client c = client_open_narrow(&there, 16 * 1024);
    trust(&c);
    for (uint32_t i = 0; i < answers; i++) {
        send_number(&c, i, 'b', 4000000);
    }
    return c;
}

static void a_slow_reader_is_not_served_on(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = slow_client(e, 3);
    AWAIT(net_server_stats(e->h->server).waiting_bytes > 0);
    unsigned before = e->handled;
    for (uint32_t i = 0; i < 50; i++) {
        send_frame(&c, 100 + i, 'e', SLICE_LIT("waits"));
    }
    usleep(100 * 1000);
    assert_true(e->handled <= before + 3); /* those parsed before the kernel's buffer was full */
    for (uint32_t i = 0; i < 3; i++) {
        reply r = next_reply(&c);
        assert_int_equal(r.stream, i);
        assert_int_equal(r.n, 4000000);
    }
    for (uint32_t i = 0; i < 50; i++) {
        expect_reply(&c, 100 + i, 'e', "waits");
    }
    assert_int_equal(net_server_stats(e->h->server).waiting_bytes, 0);
    client_close(&c);
    echo_close(e);
}

static void a_reader_that_takes_nothing_is_ended(void **state) {
    (void)state;
    net_options o = harness_options();
    o.body_timeout_ms = 300;
    echo *e = echo_open(&o, false);
    client c = slow_client(e, 3);
    AWAIT(net_server_stats(e->h->server).slow_clients == 1);
    AWAIT(net_server_stats(e->h->server).waiting_bytes == 0 && e->closed == 1);
    client_close(&c);
    echo_close(e);
}

/* Queued answers of clients that do not read are bounded over all connections; further answers are refused until there is room. */
static void answers_that_wait_are_bounded(void **state) {
    (void)state;
    enum { CLIENTS = 40, MEMORY = 48 << 20 };
    net_options o = harness_options();
    o.memory_max = 2 * (size_t)MEMORY;
    o.least_rate = 0;
    echo *e = echo_open(&o, false);
    client c[CLIENTS];
    for (unsigned i = 0; i < CLIENTS; i++) {
        c[i] = slow_client(e, 4);
    }
    AWAIT(net_server_stats(e->h->server).starved > 0);
    net_stats stats = net_server_stats(e->h->server);
    assert_true(stats.waiting_bytes > MEMORY / 4 && stats.buffer_bytes < MEMORY + (8 << 20));
    client late = slow_client(e, 0);
    char verb = 'b';
    for (int64_t until = now_ms() + PATIENCE_S * 1000; verb == 'b';) { /* refused answers of others may leave room for a while */
        assert_true(now_ms() < until);
        send_number(&late, 1, 'b', 4000000);
        reply r = next_reply(&late);
        verb = r.verb;
        assert_true(verb == 'b' || strcmp(r.text, "E_BUSY_MEMORY") == 0);
    }
    send_frame(&late, 2, 'e', SLICE_LIT("small ones go on"));
    expect_reply(&late, 2, 'e', "small ones go on");
    for (unsigned i = 0; i < CLIENTS; i++) {
        client_close(&c[i]);
    }
    AWAIT(net_server_stats(e->h->server).waiting_bytes == 0);
    AWAIT(net_server_stats(e->h->server).buffer_bytes < 4 << 20);
    send_number(&late, 3, 'b', 4000000);
    assert_int_equal(next_reply(&late).n, 4000000);
    client_close(&late);
    echo_close(e);
}

static void a_long_answer_is_made_as_fast_as_it_is_read(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = slow_client(e, 0);
    send_frame(&c, 5, 'f', SLICE_EMPTY);
    AWAIT(net_server_stats(e->h->server).waiting_bytes > 0);
    usleep(50 * 1000);
    unsigned made = e->parts;
    assert_true(made < PARTS);
    assert_true(net_server_stats(e->h->server).waiting_bytes < 1 << 20);
    for (unsigned i = 0; i < PARTS; i++) {
        reply r = next_reply(&c);
        assert_int_equal(r.stream, 5);
        assert_int_equal(r.n, PART_BYTES);
    }
    assert_int_equal(e->parts, PARTS);
    client_close(&c);
    c = slow_client(e, 0);
    send_frame(&c, 6, 'f', SLICE_EMPTY);
    AWAIT(net_server_stats(e->h->server).waiting_bytes > 0);
    client_close(&c); /* the request that writes is notified */
    AWAIT(e->left == 1);
    echo_close(e);
}

/* ---- the client leaves, the connection ends ---- */

static void work_is_cancelled_when_the_client_leaves(void **state) {
    (void)state;
    echo *e = echo_start();
    client closes = frames_client(e), half = frames_client(e);
    send_frame(&closes, 1, 'w', SLICE_EMPTY);
    send_frame(&closes, 2, 'w', SLICE_EMPTY);
    send_frame(&half, 1, 'w', SLICE_EMPTY);
    AWAIT(e->handled == 3);
    assert_int_equal(e->left, 0);
    client_close(&closes);
    shutdown(half.fd, SHUT_WR);
    AWAIT(e->left == 3);
    assert_true(client_ended(&half));
    client_close(&half);
    AWAIT(e->closed == 2);
    echo_close(e);
}

/* The state of a connection lives until its last request has ended. */
static void requests_outlive_their_client(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    send_frame(&c, 1, 'h', SLICE_LIT("held"));
    send_frame(&c, 2, 'h', SLICE_LIT("held"));
    AWAIT(held(e) == 2);
    struct linger reset = {.l_onoff = 1};
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    client_close(&c);
    AWAIT(net_server_connections(e->h->server) == 0);
    usleep(20 * 1000);
    assert_int_equal(e->closed, 0);
    release_held(e, false);
    AWAIT(e->closed == 1);
    assert_int_equal(net_server_stats(e->h->server).requests, 0);
    echo_close(e);
}

static void a_connection_ends_after_its_last_answer(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    send_frame(&c, 1, 'h', SLICE_LIT("held"));
    AWAIT(held(e) == 1);
    send_frame(&c, 2, 'q', SLICE_LIT("bye"));
    expect_reply(&c, 2, 'q', "bye");
    send_frame(&c, 3, 'e', SLICE_LIT("too late"));
    release_held(e, false);
    expect_reply(&c, 1, 'h', "held");
    assert_true(client_ended(&c));
    client_close(&c);
    echo_close(e);
}

static void connections_that_do_not_authenticate_make_room(void **state) {
    (void)state;
    net_options o = harness_options();
    o.connections_max = 10;
    o.untrusted_timeout_ms = PATIENCE_S * 1000; /* they are closed only to make room */
    echo *e = echo_open(&o, false);
    client good = trusted_client(e), idle[30];
    for (unsigned i = 0; i < 30; i++) {
        idle[i] = frames_client(e);
        send_frame(&idle[i], i, 'e', SLICE_LIT("hello"));
        expect_reply(&idle[i], i, 'e', "hello");
    }
    assert_true(net_server_stats(e->h->server).displaced >= 20);
    assert_int_equal(net_server_stats(e->h->server).authenticated, 1);
    send_frame(&good, 1, 'e', SLICE_LIT("still here"));
    expect_reply(&good, 1, 'e', "still here");
    for (unsigned i = 0; i < 30; i++) {
        client_close(&idle[i]);
    }
    client_close(&good);
    echo_close(e);
}

static void a_connection_too_many_is_told(void **state) {
    (void)state;
    net_options o = harness_options();
    o.per_address_max = 1;
    o.spare_loopback = false;
    echo *e = echo_open(&o, false);
    client good = trusted_client(e), surplus = frames_client(e);
    send_frame(&surplus, 1, 'e', SLICE_LIT("hello"));
    expect_reply(&surplus, 0, '!', "E_BUSY_CONNECTIONS");
    assert_true(client_ended(&surplus));
    client_close(&surplus);
    client_close(&good);
    echo_close(e);
}

/* ---- events ---- */

static void push(net_task *task) {
    echo_job *j = (echo_job *)task;
    echo *e = j->request->context;
    frames_request *r = frames_begin(j->request->conn);
    e->refused_push += !r;
    e->pushed += r != NULL;
    if (r) {
        add_frame(frames_out(r), 0, 'v', SLICE_LIT("event"));
        frames_end(r);
    }
}

static void frames_may_be_sent_unasked(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    send_frame(&c, 1, 'h', SLICE_LIT("held"));
    AWAIT(held(e) == 1);
    echo_job j = {.task.run = push, .request = e->held[0]};
    net_post(e->held[0]->client.loop, &j.task);
    expect_reply(&c, 0, 'v', "event");
    release_held(e, false);
    expect_reply(&c, 1, 'h', "held");
    client_close(&c);
    client slow = slow_client(e, 0);
    send_frame(&slow, 1, 'h', SLICE_LIT("held"));
    AWAIT(held(e) == 1);
    send_number(&slow, 2, 'b', 8000000); /* no events are produced for a client that does not read */
    AWAIT(net_server_stats(e->h->server).waiting_bytes > 0);
    j = (echo_job){.task.run = push, .request = e->held[0]};
    unsigned before = e->pushed;
    net_post(e->held[0]->client.loop, &j.task);
    AWAIT(e->refused_push == 1);
    assert_int_equal(e->pushed, before);
    release_held(e, false);
    client_close(&slow);
    echo_close(e);
}

/* ---- stopping ---- */

/* A stop waits for requests of all protocols, and counts them. */
static void a_stop_waits_for_requests_in_flight(void **state) {
    (void)state;
    echo *e = echo_start();
    client busy = frames_client(e), idle = frames_client(e), torn = frames_client(e), http = client_open(e->h);
    for (uint32_t i = 0; i < 3; i++) {
        send_frame(&busy, i, 'h', SLICE_LIT("held"));
    }
    send_frame(&idle, 1, 'e', SLICE_LIT("hello"));
    expect_reply(&idle, 1, 'e', "hello");
    client_try_send(&torn, "\20\0", 2);
    client_send(&http, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
    AWAIT(held(e) == 3 && harness_held(e->h) == 1);
    net_stop(e->h->server);
    assert_true(client_ended(&idle));
    assert_true(client_ended(&torn));
    AWAIT(net_server_stats(e->h->server).drain_requests == 4);
    release_held(e, true);
    harness_release(e->h);
    for (uint32_t i = 3; i-- > 0;) {
        expect_reply(&busy, i, 'h', "held");
    }
    assert_true(client_ended(&busy));
    expect_response(&http, 200, NULL);
    client *all[] = {&busy, &idle, &torn, &http};
    for (unsigned i = 0; i < 4; i++) {
        client_close(all[i]);
    }
    harness_join(e->h);
    assert_int_equal(net_server_stats(e->h->server).drain_requests, 4);
    assert_int_equal(net_server_stats(e->h->server).drain_unanswered, 0);
    echo_close(e);
}

static void a_stop_does_not_wait_for_ever(void **state) {
    (void)state;
    net_options o = harness_options();
    o.drain_timeout_ms = 200;
    echo *e = echo_open(&o, false);
    client c = frames_client(e);
    send_frame(&c, 1, 'h', SLICE_LIT("held"));
    AWAIT(held(e) == 1);
    net_stop(e->h->server);
    harness_join(e->h);
    assert_int_equal(net_server_stats(e->h->server).drain_unanswered, 1);
    release_held(e, false); /* runs during net_close */
    client_close(&c);
    echo_close(e);
}

/* ---- TLS or plain on one port ---- */

static void shake_hands(client *c, SSL_CTX *context) {
    c->ssl = SSL_new(context);
    SSL_set_fd(c->ssl, c->fd);
    assert_int_equal(SSL_connect(c->ssl), 1);
}

static void tls_and_plain_share_a_port(void **state) {
    (void)state;
    net_options o = harness_options();
    echo *e = echo_open(&o, true);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        SSL_CTX_set_max_proto_version(context, version);
        client c = frames_client(e);
        shake_hands(&c, context);
        trust(&c);
        for (uint32_t i = 0; i < 20; i++) {
            send_frame(&c, i, i % 2 ? 'l' : 'e', SLICE_LIT("secret"));
            expect_reply(&c, i, i % 2 ? 'l' : 'e', "secret");
        }
        send_number(&c, 9, 'b', 2000000);
        assert_int_equal(next_reply(&c).n, 2000000);
        client_close(&c);
    }
    SSL_CTX_free(context);
    client c = frames_client(e);
    send_frame(&c, 1, 'e', SLICE_LIT("plain"));
    expect_reply(&c, 1, 'e', "plain");
    client_close(&c);
    echo_close(e);
}

/* The lengths of these frames begin like a TLS record: 16 01, 16 03 00, 16 03 01, 16 03 03 (hexadecimal). The stream numbers and the bytes
 * after them imitate a ClientHello as far as possible. */
static void frames_that_begin_like_tls_are_frames(void **state) {
    (void)state;
    static const struct {
        uint32_t length, stream;
    } all[] = {{0x116, 1},        {0x316, 0x0100},     {0x316, 0x01f0},   {0x10316, 0x0001},
               {0x10316, 0x01ff}, {0x10316, 0x4001ff}, {0x30316, 0x0140}, {0x20316, 0xff0110}};
    net_options o = harness_options();
    echo *e = echo_open(&o, true);
    e->front.untrusted = e->front.trusted;
    static char argument[0x40000];
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        for (unsigned torn = 0; torn < 2; torn++) {
            client c = frames_client(e);
            buf frame = buf_init(BUF_NO_LIMIT);
            add_frame(&frame, all[i].stream, 'e', slice_of(argument, all[i].length - HEADER));
            for (size_t at = 0; torn && at < 14; at++) { /* one byte per write */
                assert_true(client_try_send(&c, frame.p + at, 1));
                usleep(2000);
            }
            assert_true(client_try_send(&c, frame.p + (torn ? 14 : 0), frame.n - (torn ? 14 : 0)));
            reply r = next_reply(&c);
            assert_int_equal(r.stream, all[i].stream);
            assert_int_equal(r.n, all[i].length - HEADER);
            buf_free(&frame);
            client_close(&c);
        }
    }
    echo_close(e);
}

/* While the first bytes may be TLS or plain, the server waits no longer than for a new connection without bytes. */
static void undecided_bytes_have_a_time_out(void **state) {
    (void)state;
    net_options o = harness_options();
    o.untrusted_timeout_ms = 200;
    echo *e = echo_open(&o, true);
    client c = frames_client(e), ends = frames_client(e);
    client_try_send(&c, "\x16\x03\x01", 3);
    client_try_send(&ends, "\x16\x03\x01", 3);
    shutdown(ends.fd, SHUT_WR);
    assert_true(client_ended(&ends));
    assert_true(client_ended(&c));
    assert_int_equal(e->handled, 0);
    client_close(&c);
    client_close(&ends);
    echo_close(e);
}

/* ---- ports ---- */

static void ports_are_listed(void **state) {
    (void)state;
    echo *e = echo_start();
    assert_int_equal(net_server_ports(e->h->server), 2);
    net_port first = net_server_port(e->h->server, 0), second = net_server_port(e->h->server, 1);
    assert_string_equal(first.name, "echo");
    assert_int_equal(first.port, e->port);
    assert_string_equal(second.name, "test");
    assert_int_equal(second.port, e->h->port);
    expect_alive(e->h); /* HTTP works on the other port */
    echo_close(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_answered),
        cmocka_unit_test(torn_frames_are_put_together),
        cmocka_unit_test(answers_come_in_the_order_they_are_ended_in),
        cmocka_unit_test(many_streams_on_many_connections),
        cmocka_unit_test(requests_in_flight_are_bounded),
        cmocka_unit_test(bytes_in_flight_are_bounded),
        cmocka_unit_test(a_frame_has_a_largest_size),
        cmocka_unit_test(malformed_frames_end_the_connection),
        cmocka_unit_test(an_answer_has_a_largest_size),
        cmocka_unit_test(time_outs),
        cmocka_unit_test(a_slow_reader_is_not_served_on),
        cmocka_unit_test(a_reader_that_takes_nothing_is_ended),
        cmocka_unit_test(answers_that_wait_are_bounded),
        cmocka_unit_test(a_long_answer_is_made_as_fast_as_it_is_read),
        cmocka_unit_test(work_is_cancelled_when_the_client_leaves),
        cmocka_unit_test(requests_outlive_their_client),
        cmocka_unit_test(a_connection_ends_after_its_last_answer),
        cmocka_unit_test(connections_that_do_not_authenticate_make_room),
        cmocka_unit_test(a_connection_too_many_is_told),
        cmocka_unit_test(frames_may_be_sent_unasked),
        cmocka_unit_test(a_stop_waits_for_requests_in_flight),
        cmocka_unit_test(a_stop_does_not_wait_for_ever),
        cmocka_unit_test(tls_and_plain_share_a_port),
        cmocka_unit_test(frames_that_begin_like_tls_are_frames),
        cmocka_unit_test(undecided_bytes_have_a_time_out),
        cmocka_unit_test(ports_are_listed),
    };
    return cmocka_run_group_tests_name("net/frames", tests, NULL, NULL);
}
