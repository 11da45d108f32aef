/* Too many clients, and slow ones: which are admitted, which are closed, and how much memory they hold. */
#include "net_harness.h"

#include "net/loop_int.h"

#define GET "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n"
#define GOT "GET /echo? host=h a= b= body="
#define TRUST "GET /trust HTTP/1.1\r\nHost: h\r\n\r\n"
#define TRUSTED "GET /trust? host=h a= b= body="
#define LARGE "GET /bytes?4000000 HTTP/1.1\r\nHost: h\r\n\r\n"

static harness *start(const net_options *o) {
    harness *h = harness_open(o);
    harness_run(h);
    return h;
}

static client answered(const harness *h, const char *request, const char *answer) {
    client c = client_open(h);
    client_send(&c, request);
    expect_response(&c, 200, answer);
    return c;
}

static void close_all(client *c, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        client_close(&c[i]);
    }
}

static bool is_closed(client *c) { /* does not wait */
    char byte;
    return recv(c->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

/* ---- connections ---- */

static void idle_unauthenticated_connections_keep_nobody_out(void **state) {
    (void)state;
    enum { MAX = 30, IDLE = 90, CLIENTS = 10 };
    net_options o = harness_options();
    o.connections_max = MAX;
    o.untrusted_timeout_ms = PATIENCE_S * 1000; /* they are closed only to make room */
    harness *h = start(&o);
    client idle[IDLE], good[CLIENTS];
    for (unsigned i = 0; i < IDLE; i++) {
        idle[i] = i % 3 ? answered(h, GET, GOT) : client_open(h); /* some never send anything */
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        good[i] = answered(h, TRUST, TRUSTED);
    }
    AWAIT(net_server_connections(h->server) <= MAX);
    assert_true(is_closed(&idle[0]) && !is_closed(&idle[IDLE - 1])); /* the oldest are closed first */
    for (unsigned i = 0; i < MAX; i++) {
        client_close(&idle[i]);
        idle[i] = answered(h, GET, GOT);
    }
    for (unsigned i = 0; i < CLIENTS; i++) { /* authenticated connections stay, however many newcomers there are */
        client_send(&good[i], GET);
        expect_response(&good[i], 200, GOT);
    }
    net_stats stats = net_server_stats(h->server);
    assert_int_equal(stats.authenticated, CLIENTS);
    assert_int_equal(stats.refused_full, 0);
    assert_true(stats.displaced >= IDLE - MAX);
    close_all(idle, IDLE);
    close_all(good, CLIENTS);
    AWAIT(net_server_connections(h->server) == 0);
    assert_int_equal(net_server_stats(h->server).authenticated, 0);
    harness_close(h);
}

static void a_request_in_progress_is_not_displaced(void **state) {
    (void)state;
    net_options o = harness_options();
    o.connections_max = 6;
    harness *h = start(&o);
    client held = client_open(h), later[20];
    client_send(&held, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
    AWAIT(harness_held(h) == 1);
    for (unsigned i = 0; i < 20; i++) {
        later[i] = answered(h, GET, GOT);
    }
    harness_release(h);
    expect_response(&held, 200, "GET /hold? host=h a= b= body=");
    close_all(later, 20);
    client_close(&held);
    harness_close(h);
}

static void an_address_has_its_share(void **state) {
    (void)state;
    net_options o = harness_options();
    o.per_address_max = 4;
    o.spare_loopback = false;
    harness *h = start(&o);
    client c[4];
    for (unsigned i = 0; i < 4; i++) {
        c[i] = answered(h, TRUST, TRUSTED);
    }
    client surplus = client_open(h);
    client_send(&surplus, GET);
    expect_response(&surplus, 503, "refused");
    client_close(&surplus);
    assert_int_equal(net_server_stats(h->server).refused_address, 1);
    client_close(&c[3]);
    AWAIT(net_server_connections(h->server) == 3);
    c[3] = answered(h, GET, GOT);
    close_all(c, 4);
    AWAIT(net_server_connections(h->server) == 0);
    harness_close(h);
}

static bool has_ended(client *c) { /* does not wait; closed or reset */
    char byte;
    ssize_t k = recv(c->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return k == 0 || (k < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

/* Empty lines may precede a request, but a client that sends nothing else is idle. */
static void empty_lines_are_no_requests(void **state) {
    (void)state;
    net_options o = harness_options();
    o.untrusted_timeout_ms = o.idle_timeout_ms = 1000;
    harness *h = start(&o);
    client blank = client_open(h);
    for (int64_t until = now_ms() + 20000; !has_ended(&blank); usleep(50 * 1000)) {
        assert_true(now_ms() < until);
        client_try_send(&blank, "\r\n", 2);
    }
    client_close(&blank);
    client good = answered(h, "\r\n\r\n" TRUST "\r\n", TRUSTED);
    client_send(&good, "\r\n" GET "\r\n");
    expect_response(&good, 200, GOT);
    assert_true(client_ended(&good)); /* even though the last input was an empty line */
    client_close(&good);
    harness_close(h);
}

/* More clients than surplus connections are allowed: each of them ends soon and makes room for another. */
static void refusals_are_bounded(void **state) {
    (void)state;
    enum { CLIENTS = 200 };
    net_options o = harness_options();
    o.per_address_max = 1;
    o.spare_loopback = false;
    harness *h = start(&o);
    client first = answered(h, TRUST, TRUSTED), c[CLIENTS];
    for (unsigned i = 0; i < CLIENTS; i++) {
        c[i] = client_open(h);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        assert_true(client_ended(&c[i]));
    }
    close_all(c, CLIENTS);
    client_send(&first, GET);
    expect_response(&first, 200, GOT);
    client_close(&first);
    AWAIT(net_server_connections(h->server) == 0);
    expect_alive(h);
    harness_close(h);
}

/* ---- slow clients ---- */

enum { SLOW_MS = 2000 }; /* the machine may delay even a fast client for this long */

static void a_body_has_a_least_rate(void **state) {
    (void)state;
    net_options o = harness_options();
    o.body_timeout_ms = SLOW_MS;
    o.least_rate = 500000;
    harness *h = start(&o);
    static char part[4000000];
    memset(part, 'x', sizeof part);
    client fast = client_open(h);
    client_send(&fast, "POST /bytes?10 HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n");
    assert_true(client_try_send(&fast, part, sizeof part));
    expect_response(&fast, 200, "xxxxxxxxxx");
    client slow = client_open(h);
    client_send(&slow, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n");
    for (unsigned sent = 0; net_server_stats(h->server).slow_clients == 0; sent += 8192, usleep(50 * 1000)) {
        assert_true(sent < sizeof part / 2);
        client_try_send(&slow, part, 8192); /* 160 KB a second: progress, but too slow */
    }
    client_close(&slow);
    client_close(&fast);
    harness_close(h);
}

static bool reads_to_the_end(client *c, size_t step, unsigned pause_us, size_t bytes) {
    static char sink[1000000];
    for (size_t got = 0; got < bytes;) {
        ssize_t k = recv(c->fd, sink, step, 0);
        if (k <= 0) {
            return false;
        }
        got += (size_t)k;
        usleep(pause_us);
    }
    return true;
}

static client asking(const harness *h, unsigned large) {
    client c = client_open_narrow(h, 16 * 1024);
    for (unsigned i = 0; i < large; i++) {
        client_send(&c, LARGE);
    }
    return c;
}

static void a_reader_has_a_least_rate(void **state) {
    (void)state;
    net_options o = harness_options();
    o.body_timeout_ms = SLOW_MS;
    o.least_rate = 1000000;
    harness *h = start(&o);
    client fast = asking(h, 2);
    assert_true(reads_to_the_end(&fast, 1000000, 0, 8000000));
    client slow = asking(h, 4);
    size_t got = 0;
    for (; net_server_stats(h->server).slow_clients == 0; got += 10000) {
        assert_true(got < 8000000);
        if (!reads_to_the_end(&slow, 10000, 50000, 10000)) { /* 200 KB a second: progress, but too slow */
            break;
        }
    }
    AWAIT(net_server_stats(h->server).slow_clients == 1);
    assert_false(reads_to_the_end(&slow, 1000000, 0, 16000000 - got));
    client_close(&slow);
    client_close(&fast);
    harness_close(h);
}

/* The kernel took the whole answer, so none of it is queued and the connection seems idle; it is closed all the same. */
static void an_answer_that_only_the_kernel_holds_is_given_up(void **state) {
    (void)state;
    net_options o = harness_options();
    o.body_timeout_ms = 400;
    harness *h = start(&o);
    client c = client_open_narrow(h, 4096);
    client_send(&c, TRUST);
    expect_response(&c, 200, TRUSTED);
    client_send(&c, "GET /bytes?60000 HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_true(client_more(&c)); /* the answer has begun */
    bool waits = net_server_stats(h->server).waiting_bytes > 0;
    if (!waits) {
        AWAIT(net_server_connections(h->server) == 0);
    }
    client_close(&c);
    harness_close(h);
    if (waits) {
        skip(); /* this kernel took less than the whole answer, so the case cannot be tested */
    }
}

/* The kernel takes little more than the client has room for. The rest is queued in our memory, where it is counted. */
static void the_kernel_takes_little_for_a_client_that_does_not_read(void **state) {
    (void)state;
    harness *h = harness_start();
    client c = asking(h, 1);
    AWAIT(net_server_stats(h->server).waiting_bytes > 0);
    assert_true(net_server_stats(h->server).waiting_bytes > 3000000);
    client_close(&c);
    harness_close(h);
}

/* ---- memory ---- */

enum { MEMORY = 48 << 20 }; /* for buffers */

static net_options little_memory(void) {
    net_options o = harness_options();
    o.memory_max = 2 * (size_t)MEMORY; /* the other half is for requests being served */
    return o;
}

/* Reads an answer, which may be one of success. */
static bool is_starved(client *c) {
    response r = client_response(c, false);
    bool starved = r.status == 503 && strcmp(field_of(&r, "X-Error"), "E_BUSY_MEMORY") == 0;
    assert_true(starved || r.status == 200);
    buf_free(&r.body);
    return starved;
}

/* Answers that grow at the same time may all be refused, and leave room for a few more. Clients that ask one after the other take it. */
typedef struct latecomers {
    client list[100];
    unsigned n;
} latecomers;

static void take_room(const harness *h, latecomers *l) {
    assert_true(l->n < sizeof l->list / sizeof *l->list);
    client *c = &l->list[l->n++];
    *c = asking(h, 1);
    assert_true(client_more(c)); /* the answer is whole, and waits; or it is a refusal */
}

static void expect_starved_soon(const harness *h, client *c, latecomers *l) {
    client_send(c, LARGE);
    while (!is_starved(c)) {
        take_room(h, l);
        client_send(c, LARGE);
    }
}

/* Clients that do not read: their queued answers are bounded, small answers of other clients still go out, and all memory is released at
 * the end. */
static void answers_that_wait_are_bounded(void **state) {
    (void)state;
    enum { CLIENTS = 60 };
    net_options o = little_memory();
    o.least_rate = 0; /* no connection is closed as too slow */
    harness *h = start(&o);
    client c[CLIENTS];
    for (unsigned i = 0; i < CLIENTS; i++) {
        c[i] = asking(h, 3);
    }
    AWAIT(net_server_stats(h->server).starved > 0);
    net_stats stats = net_server_stats(h->server);
    assert_true(stats.waiting_bytes > MEMORY / 4 && stats.waiting_bytes < MEMORY + (8 << 20));
    assert_true(stats.buffer_bytes < MEMORY + (8 << 20));
    expect_alive(h);
    client late = asking(h, 0);
    latecomers more = {.n = 0};
    expect_starved_soon(h, &late, &more);
    client_send(&late, GET); /* the connection still works */
    expect_response(&late, 200, GOT);
    close_all(c, CLIENTS);
    close_all(more.list, more.n);
    AWAIT(net_server_stats(h->server).waiting_bytes == 0);
    AWAIT(net_server_stats(h->server).buffer_bytes < 4 << 20);
    client_send(&late, LARGE);
    expect_response(&late, 200, NULL);
    client_close(&late);
    harness_close(h);
}

/* Answers to requests that arrive together share a buffer. When it is full and there is no memory for a larger one, one request is refused,
 * and the answers before it are sent. */
static void answers_that_share_a_buffer_are_refused_one_by_one(void **state) {
    (void)state;
    enum { REQUESTS = 100 };
    net_options o = little_memory();
    o.loops = 1;
    o.least_rate = 0;
    harness *h = start(&o);
    client unread = asking(h, 3), c = client_open(h);
    AWAIT(net_server_stats(h->server).waiting_bytes > 2 << 20); /* more than the loop's own share */
    atomic_fetch_add(&net_server_loop(h->server, 0)->shared->buffers.used, MEMORY);
    buf requests = buf_init(BUF_NO_LIMIT);
    for (unsigned i = 0; i < REQUESTS; i++) {
        buf_add_lit(&requests, "GET /bytes?1000 HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    assert_true(client_try_send(&c, requests.p, requests.n));
    for (unsigned i = 0; i < REQUESTS; i++) {
        response r = client_response(&c, false);
        assert_true(r.status == 200 ? r.body.n == 1000 : r.status == 503);
        buf_free(&r.body);
    }
    atomic_fetch_sub(&net_server_loop(h->server, 0)->shared->buffers.used, MEMORY);
    assert_true(net_server_stats(h->server).starved > 0);
    buf_free(&requests);
    client_close(&c);
    client_close(&unread);
    harness_close(h);
}

static bool is_refused(const harness *h, const char *body, size_t n) {
    client late = client_open(h);
    client_send(&late, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 50000\r\n\r\n");
    client_try_send(&late, body, n);
    bool refused = is_starved(&late);
    client_close(&late);
    return refused;
}

/* While there is room the request is carried out. */
static void expect_large_refused(const harness *h, latecomers *l) {
    static char body[50000];
    memset(body, 'x', sizeof body);
    while (!is_refused(h, body, sizeof body)) {
        take_room(h, l);
    }
}

static void large_requests_are_refused_before_they_are_carried_out(void **state) {
    (void)state;
    enum { CLIENTS = 60 };
    net_options o = little_memory();
    o.least_rate = 0; /* no connection is closed as too slow */
    harness *h = start(&o);
    client c[CLIENTS];
    for (unsigned i = 0; i < CLIENTS; i++) {
        c[i] = asking(h, 3);
    }
    AWAIT(net_server_stats(h->server).starved > 0 && net_server_stats(h->server).buffer_bytes > MEMORY / 8 * 7);
    latecomers more = {.n = 0};
    expect_large_refused(h, &more);
    close_all(c, CLIENTS);
    close_all(more.list, more.n);
    harness_close(h);
}

/* Requests a large answer and reads it. A client that reads that much within two seconds is never closed, at most refused. If the machine
 * delayed the reader for longer, it may be closed as too slow; then another one takes its place. */
static void read_quickly(const harness *h, client *reader) {
    client_send(reader, LARGE);
    int64_t began = now_ms();
    response r = client_response(reader, false);
    assert_true(r.status == 200 || r.status == 503 || (r.status == 0 && now_ms() - began >= 2000));
    buf_free(&r.body);
    if (r.status == 0) {
        client_close(reader);
        *reader = asking(h, 0);
    }
}

/* A slow client has 30 s while memory is free, and two when it is short. Clients that read stay. */
static void scarce_memory_ends_the_slowest_readers(void **state) {
    (void)state;
    enum { CLIENTS = 40 };
    net_options o = little_memory();
    harness *h = start(&o);
    client c[CLIENTS];
    for (unsigned i = 0; i < CLIENTS; i++) {
        c[i] = asking(h, 3);
    }
    AWAIT(net_server_stats(h->server).buffer_bytes > MEMORY / 4 * 3);
    client reader = asking(h, 0);
    for (int64_t until = now_ms() + PATIENCE_S * 1000; net_server_stats(h->server).buffer_bytes > MEMORY / 4 * 3; usleep(20 * 1000)) {
        assert_true(now_ms() < until);
        read_quickly(h, &reader);
    }
    uint64_t ended = net_server_stats(h->server).slow_clients;
    assert_true(ended > 0 && ended < CLIENTS); /* no more than necessary */
    client_send(&reader, GET);
    expect_response(&reader, 200, GOT);
    close_all(c, CLIENTS);
    client_close(&reader);
    harness_close(h);
}

static void trickle(client *c, unsigned n, const char *part) {
    for (unsigned i = 0; i < n; i++) {
        send(c[i].fd, part, 2000, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

static bool sends_quickly(const harness *h, const char *body) { /* a body of 2 MB */
    client c = client_open(h);
    client_send(&c, "POST /bytes?10 HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n");
    client_try_send(&c, body, 2000000);
    response r = client_response(&c, false);
    bool good = r.status == 200;
    buf_free(&r.body);
    client_close(&c);
    return good;
}

/* Bodies that come just fast enough, and fill the memory for input: they are ended to make room for one that comes quickly. */
static void scarce_memory_ends_the_slowest_bodies(void **state) {
    (void)state;
    enum { CLIENTS = 80, PART = 2000000 };
    net_options o = little_memory();
    harness *h = start(&o);
    client c[CLIENTS];
    static char part[PART];
    memset(part, 'x', sizeof part);
    for (unsigned i = 0; i < CLIENTS; i++) {
        c[i] = client_open(h);
        client_send(&c[i], "POST /bytes?10 HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n");
        client_try_send(&c[i], part, 200000);
    }
    AWAIT(net_server_stats(h->server).buffer_bytes > MEMORY / 3);
    for (int64_t until = now_ms() + PATIENCE_S * 1000; net_server_stats(h->server).slow_clients == 0; usleep(100 * 1000)) {
        assert_true(now_ms() < until);
        trickle(c, CLIENTS, part); /* 20 KB a second: five times the minimum */
    }
    for (int64_t until = now_ms() + PATIENCE_S * 1000; !sends_quickly(h, part); usleep(100 * 1000)) { /* each loop frees its own memory */
        assert_true(now_ms() < until);
        trickle(c, CLIENTS, part);
    }
    assert_true(net_server_stats(h->server).slow_clients < CLIENTS);
    close_all(c, CLIENTS);
    harness_close(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_unauthenticated_connections_keep_nobody_out),
        cmocka_unit_test(a_request_in_progress_is_not_displaced),
        cmocka_unit_test(an_address_has_its_share),
        cmocka_unit_test(empty_lines_are_no_requests),
        cmocka_unit_test(refusals_are_bounded),
        cmocka_unit_test(a_body_has_a_least_rate),
        cmocka_unit_test(a_reader_has_a_least_rate),
        cmocka_unit_test(an_answer_that_only_the_kernel_holds_is_given_up),
        cmocka_unit_test(the_kernel_takes_little_for_a_client_that_does_not_read),
        cmocka_unit_test(answers_that_wait_are_bounded),
        cmocka_unit_test(answers_that_share_a_buffer_are_refused_one_by_one),
        cmocka_unit_test(large_requests_are_refused_before_they_are_carried_out),
        cmocka_unit_test(scarce_memory_ends_the_slowest_readers),
        cmocka_unit_test(scarce_memory_ends_the_slowest_bodies),
    };
    return cmocka_run_group_tests_name("net/crowd", tests, NULL, NULL);
}
