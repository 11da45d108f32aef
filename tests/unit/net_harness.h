/* net_harness.h — for the tests of src/net: a server in this process with a small front end, and a client that sends and receives raw
 * bytes.
 *
 *   /echo             verb, path, query, host, the two fields and the body, as text
 *   /trust            the same, authenticated: http_trust
 *   /later            the same, answered through net_post from another thread
 *   /hold             kept until harness_release
 *   /delay?N          the same as /echo, N milliseconds later
 *   /turns            reply begun at once, ended through net_post
 *   /bytes?N          N bytes
 *   /status?N         status N with a body (which net drops if the status allows none)
 *   /peer             the client's address
 *   /inject           a field whose value holds line breaks
 *   /second-thoughts  a reply that is abandoned and started again
 *   /too-much         more than the limit for answers */
#pragma once

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "net/delay.h"
#include "net/server.h"

typedef struct job {
    net_task task; /* must be first */
    http_request *request;
    struct job *next;
} job;

enum { HELD_MAX = 64 };

typedef struct harness {
    net_server *server;
    http_front front;
    uint16_t port;
    pthread_t server_thread;
    pthread_t worker_thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    job *jobs; /* oldest first */
    bool worker_ends;
    http_request *held[HELD_MAX];
    unsigned held_n;
    _Atomic unsigned busy; /* requests that have kept their loop busy, or do so now */
    bool running;
} harness;

/* ---- the front end ---- */

static inline void answer_echo(http_request *r) {
    http_reply_start(r, 200);
    http_reply_field(r, "Content-Type", SLICE_LIT("text/plain"));
    buf *b = http_reply_body(r);
    buf_addf(b, "%.*s %.*s?%.*s host=%.*s a=%.*s b=%.*s body=", (int)r->verb.n, r->verb.p, (int)r->path.n, r->path.p, (int)r->query.n,
             r->query.p ? r->query.p : "", (int)r->host.n, r->host.p, (int)r->field[0].n, r->field[0].p ? r->field[0].p : "",
             (int)r->field[1].n, r->field[1].p ? r->field[1].p : "");
    buf_add_slice(b, r->body);
    http_reply_end(r);
}

static inline void run_later(net_task *task) {
    http_request *r = ((job *)task)->request;
    if (slice_eq(r->path, SLICE_LIT("/turns"))) {
        buf_add_lit(http_reply_body(r), " and the end");
        http_reply_end(r);
    } else {
        answer_echo(r);
    }
}

static inline void *work(void *argument) {
    harness *h = argument;
    pthread_mutex_lock(&h->lock);
    while (!h->worker_ends || h->jobs) {
        job *j = h->jobs;
        if (!j) {
            pthread_cond_wait(&h->wake, &h->lock);
            continue;
        }
        h->jobs = j->next;
        net_post(j->request->client->loop, &j->task);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

static inline void answer_later(harness *h, http_request *r) {
    job *j = arena_new(r->arena, job);
    j->request = r;
    j->task.run = run_later;
    pthread_mutex_lock(&h->lock);
    job **end = &h->jobs;
    while (*end) {
        end = &(*end)->next;
    }
    *end = j;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->lock);
}

static inline void hold(harness *h, http_request *r) {
    pthread_mutex_lock(&h->lock);
    assert_true(h->held_n < HELD_MAX);
    h->held[h->held_n++] = r;
    pthread_mutex_unlock(&h->lock);
}

typedef struct late {
    net_delay delay; /* must be first */
    http_request *request;
} late;

static inline void answer_late(net_delay *delay) {
    answer_echo(((late *)delay)->request);
}

static inline uint64_t number_of(http_request *r) {
    uint64_t n = 0;
    slice_to_u64(r->query, &n);
    return n;
}

static inline void answer_bytes(http_request *r, unsigned status, uint64_t n) {
    static const char filler[1024] = {[0 ... 1023] = 'x'};
    http_reply_start(r, status);
    for (buf *b = http_reply_body(r); n && buf_ok(b);) {
        size_t k = n < sizeof filler ? (size_t)n : sizeof filler;
        buf_add(b, filler, k);
        n -= k;
    }
    http_reply_end(r);
}

static inline void handle(http_request *r) {
    harness *h = r->context;
    if (r->body_too_large) {
        answer_bytes(r, 413, 10);
    } else if (slice_eq(r->path, SLICE_LIT("/trust"))) {
        http_trust(r);
        answer_echo(r);
    } else if (slice_eq(r->path, SLICE_LIT("/later"))) {
        answer_later(h, r);
    } else if (slice_eq(r->path, SLICE_LIT("/busy"))) {
        h->busy++;
        usleep((unsigned)number_of(r) * 1000);
        answer_later(h, r);
    } else if (slice_eq(r->path, SLICE_LIT("/hold"))) {
        hold(h, r);
    } else if (slice_eq(r->path, SLICE_LIT("/delay"))) {
        late *l = arena_new(r->arena, late);
        l->request = r;
        net_delay_start(r->client->loop, &l->delay, (unsigned)number_of(r), answer_late);
    } else if (slice_eq(r->path, SLICE_LIT("/turns"))) {
        http_reply_start(r, 200);
        buf_add_lit(http_reply_body(r), "the beginning");
        answer_later(h, r);
    } else if (slice_eq(r->path, SLICE_LIT("/bytes"))) {
        answer_bytes(r, 200, number_of(r));
    } else if (slice_eq(r->path, SLICE_LIT("/status"))) {
        answer_bytes(r, (unsigned)number_of(r), 10);
    } else if (slice_eq(r->path, SLICE_LIT("/too-much"))) {
        answer_bytes(r, 200, 100u << 20);
    } else if (slice_eq(r->path, SLICE_LIT("/peer"))) {
        char peer[HTTP_PEER_BYTES];
        http_reply_start(r, 200);
        buf_addf(http_reply_body(r), "%s", http_peer(r, peer));
        http_reply_end(r);
    } else if (slice_eq(r->path, SLICE_LIT("/inject"))) {
        http_reply_start(r, 200);
        http_reply_field(r, "X-Value", SLICE_LIT("a\r\nSet-Cookie: b\r\n\r\nc"));
        http_reply_end(r);
    } else if (slice_eq(r->path, SLICE_LIT("/second-thoughts"))) {
        http_reply_start(r, 200);
        http_reply_field(r, "X-First", SLICE_LIT("yes"));
        buf_add_lit(http_reply_body(r), "never seen");
        http_reply_abandon(r);
        answer_bytes(r, 404, 3);
    } else {
        answer_echo(r);
    }
}

static inline void refuse(http_request *r, err code) {
    http_reply_start(r, err_lookup(code)->http_status);
    http_reply_field(r, "X-Error", slice_str(err_lookup(code)->name));
    buf_add_lit(http_reply_body(r), "refused");
    http_reply_end(r);
}

static inline void release_all(net_task *task) {
    job *j = (job *)task;
    answer_echo(j->request);
    free(j);
}

static inline unsigned harness_held(harness *h) {
    pthread_mutex_lock(&h->lock);
    unsigned n = h->held_n;
    pthread_mutex_unlock(&h->lock);
    return n;
}

static inline void harness_release(harness *h) {
    pthread_mutex_lock(&h->lock);
    for (unsigned i = 0; i < h->held_n; i++) {
        job *j = mem_zero(sizeof *j);
        j->request = h->held[i];
        j->task.run = release_all;
        net_post(h->held[i]->client->loop, &j->task);
    }
    h->held_n = 0;
    pthread_mutex_unlock(&h->lock);
}

/* ---- the server ---- */

static inline void *run_server(void *argument) {
    net_run(argument);
    return NULL;
}

static inline net_options harness_options(void) {
    net_options o = net_defaults;
    o.loops = 2;
    return o;
}

static inline harness *harness_open(const net_options *options) {
    static const char *const fields[] = {"x-a", "x-b"};
    harness *h = mem_zero(sizeof *h);
    log_set_level(LOG_ERROR);
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->wake, NULL);
    h->front = (http_front){.name = "test", .fields = fields, .fields_n = 2, .handle = handle, .refuse = refuse, .context = h};
    assert_int_equal(net_open(options, &h->server), OK);
    return h;
}

static inline void harness_run(harness *h) {
    char why[256] = "";
    if (net_listen(h->server, "localhost", 0, &h->front, &h->port, why, sizeof why) != OK) {
        fail_msg("%s", why);
    }
    h->running = true;
    assert_int_equal(pthread_create(&h->server_thread, NULL, run_server, h->server), 0);
    assert_int_equal(pthread_create(&h->worker_thread, NULL, work, h), 0);
}

static inline void harness_join(harness *h) { /* call after net_stop */
    pthread_join(h->server_thread, NULL);
    pthread_mutex_lock(&h->lock);
    h->worker_ends = true;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->lock);
    pthread_join(h->worker_thread, NULL);
    h->running = false;
}

static inline void harness_close(harness *h) {
    if (h->running) {
        net_stop(h->server);
        harness_join(h);
    }
    net_close(h->server);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->wake);
    free(h);
}

static inline harness *harness_start(void) {
    net_options o = harness_options();
    harness *h = harness_open(&o);
    harness_run(h);
    return h;
}

static inline int64_t now_ms(void) {
    return clock_monotonic_us(&clock_system) / 1000;
}

enum { PATIENCE_S = 60 }; /* timeout for events that must happen, however busy the machine is; only a failing test waits this long */

/* Waits until another thread makes the condition true. */
#define AWAIT(condition)                                                                                                                   \
    do {                                                                                                                                   \
        int64_t until_ = now_ms() + PATIENCE_S * 1000;                                                                                     \
        while (!(condition)) {                                                                                                             \
            if (now_ms() > until_) {                                                                                                       \
                fail_msg("not within %d s: %s", PATIENCE_S, #condition);                                                                   \
            }                                                                                                                              \
            usleep(2000);                                                                                                                  \
        }                                                                                                                                  \
    } while (0)

/* ---- the client ---- */

typedef struct client {
    int fd;
    SSL *ssl;
    buf in;
} client;

typedef struct response {
    int status; /* 0: the connection ended first */
    char head[4096];
    buf body;
} response;

/* `receive_bytes`: size of the client's receive buffer, and so of its TCP window; 0: the default. */
static inline int client_socket_of(const harness *h, int family, int receive_bytes) {
    int fd = socket(family, SOCK_STREAM, 0), on = 1;
    struct timeval limit = {.tv_sec = PATIENCE_S};
    assert_true(fd >= 0);
    if (receive_bytes) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(h->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(h->port), .sin6_addr = in6addr_loopback};
    int rc = family == AF_INET6 ? connect(fd, (struct sockaddr *)&in6, sizeof in6) : connect(fd, (struct sockaddr *)&in4, sizeof in4);
    if (rc != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static inline int client_socket(const harness *h, int family) {
    return client_socket_of(h, family, 0);
}

/* A client with a small receive buffer. */
static inline client client_open_narrow(const harness *h, int receive_bytes) {
    client c = {.fd = client_socket_of(h, AF_INET, receive_bytes), .in = buf_init(BUF_NO_LIMIT)};
    assert_true(c.fd >= 0);
    return c;
}

static inline client client_open(const harness *h) {
    return client_open_narrow(h, 0);
}

static inline void client_close(client *c) {
    if (c->ssl) {
        SSL_free(c->ssl);
    }
    close(c->fd);
    buf_free(&c->in);
}

static inline bool client_try_send(client *c, const char *p, size_t n) {
    while (n) {
        ssize_t k = c->ssl ? SSL_write(c->ssl, p, (int)n) : send(c->fd, p, n, MSG_NOSIGNAL);
        if (k <= 0) {
            return false;
        }
        p += k;
        n -= (size_t)k;
    }
    return true;
}

static inline void client_send(client *c, const char *text) {
    assert_true(client_try_send(c, text, strlen(text)));
}

static inline bool client_more(client *c) {
    char bytes[16384];
    ssize_t k = c->ssl ? SSL_read(c->ssl, bytes, sizeof bytes) : recv(c->fd, bytes, sizeof bytes, 0);
    if (k < 0 && !c->ssl && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        fail_msg("no bytes and no end for %d s", PATIENCE_S);
    }
    if (k > 0) {
        buf_add(&c->in, bytes, (size_t)k);
    }
    return k > 0;
}

static inline bool client_ended(client *c) { /* the server has closed, and nothing is left to read */
    return c->in.n == 0 && !client_more(c);
}

static inline const char *field_of(const response *r, const char *name) {
    static char value[1024];
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\r\n%s:", name);
    const char *at = strcasestr(r->head, wanted);
    if (!at) {
        return NULL;
    }
    at += strlen(wanted);
    at += strspn(at, " ");
    snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r"), at);
    return value;
}

/* `bodyless`: the answer to HEAD. The caller frees the body. */
static inline response client_response(client *c, bool bodyless) {
    response r = {.body = buf_init(BUF_NO_LIMIT)};
    char *end;
    while (!c->in.n || !(end = memmem(c->in.p, c->in.n, "\r\n\r\n", 4))) {
        if (!client_more(c)) {
            return r;
        }
    }
    size_t head_n = (size_t)(end + 4 - c->in.p);
    assert_true(head_n < sizeof r.head);
    memcpy(r.head, c->in.p, head_n);
    assert_int_equal(sscanf(r.head, "HTTP/1.1 %d ", &r.status), 1);
    const char *length = field_of(&r, "Content-Length");
    size_t body_n = bodyless || !length ? 0 : strtoul(length, NULL, 10);
    while (c->in.n < head_n + body_n) {
        assert_true(client_more(c));
    }
    buf_add(&r.body, c->in.p + head_n, body_n);
    buf_add_byte(&r.body, 0);
    r.body.n--;
    c->in.n -= head_n + body_n;
    memmove(c->in.p, c->in.p + head_n + body_n, c->in.n);
    return r;
}

/* Expects the next answer to have this status and body (NULL: any). */
static inline void expect_response(client *c, int status, const char *body) {
    response r = client_response(c, false);
    assert_int_equal(r.status, status);
    if (body) {
        assert_string_equal(r.body.p, body);
    }
    buf_free(&r.body);
}

static inline void expect_alive(const harness *h) {
    client c = client_open(h);
    client_send(&c, "GET /echo HTTP/1.1\r\nHost: alive\r\n\r\n");
    expect_response(&c, 200, "GET /echo? host=alive a= b= body=");
    client_close(&c);
}
