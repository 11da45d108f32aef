#include "net/conn_int.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "net/tls.h"

void *net_conn_state(net_conn *c) {
    return c->state;
}

net_conn *net_conn_of(void *state) {
    return CONN_OF(state, state);
}

void net_conn_switch(net_conn *c, const net_protocol *protocol) {
    assert(protocol->state_bytes <= c->protocol->state_bytes);
    c->protocol = protocol;
}

net_loop *net_conn_loop(const net_conn *c) {
    return c->loop;
}

bool net_conn_is_tls(const net_conn *c) {
    return c->tls != NULL;
}

slice net_conn_alpn(const net_conn *c) {
    return c->tls ? net_tls_chosen(c->tls) : SLICE_EMPTY;
}

slice net_conn_server_name(const net_conn *c) {
    return c->tls ? net_tls_server_name(c->tls) : SLICE_EMPTY;
}

bool net_conn_is_open(const net_conn *c) {
    return c->phase == OPEN;
}

bool net_conn_is_stuck(const net_conn *c) {
    return c->queue != NULL;
}

net_conn *net_conn_next(const net_conn *c) {
    return c->link.list.next;
}

net_peer net_conn_peer(const net_conn *c) {
    return c->peer;
}

void net_conn_deadline(net_conn *c, unsigned after_ms) {
    if (c->phase == OPEN && !c->queue) { /* otherwise this layer's own deadline applies */
        net_wheel_set(&c->loop->wheel, &c->deadline, c->loop->now_ms + after_ms);
    }
}

void net_conn_no_deadline(net_conn *c) {
    if (c->phase == OPEN && !c->queue) {
        net_wheel_set(&c->loop->wheel, &c->deadline, NET_NEVER);
    }
}

static void own_deadline(net_conn *c, unsigned after_ms) {
    net_wheel_set(&c->loop->wheel, &c->deadline, c->loop->now_ms + after_ms);
}

/* ---- closing ---- */

/* The bytes were counted as an answer before they were queued, so counting them again must not fail (budget_force). */
static void weigh_queue(net_conn *c) {
    conn_queue *q = c->queue;
    size_t now = pieces_held(&q->bytes), before = q->weighed;
    now > before ? budget_force(&c->loop->memory, now - before) : budget_give(&c->loop->memory, before - now);
    atomic_fetch_add_explicit(&c->loop->shared->waiting_bytes, now - before, memory_order_relaxed);
    q->weighed = now;
}

static void free_queue(net_conn *c) {
    if (c->queue) {
        pieces_free(&c->queue->bytes);
        weigh_queue(c);
        free(c->queue);
        c->queue = NULL;
    }
}

static void unlink_conn(net_conn *c) {
    net_conn *next = c->link.list.next, *prev = c->link.list.prev;
    *(prev ? &prev->link.list.next : &c->loop->conns) = next;
    if (next) {
        next->link.list.prev = prev;
    }
}

static void on_closed(uv_handle_t *handle) {
    net_conn *c = CONN_OF(handle, poll);
    net_loop *loop = c->loop;
    c->protocol->closed(c);
    unlink_conn(c);
    free_queue(c);
    net_tls_free(c->tls);
    free(c);
    net_loop_check_drained(loop);
}

void net_conn_close(net_conn *c) {
    if (c->phase != CLOSED) {
        c->phase = CLOSED;
        net_wheel_remove(&c->deadline);
        uv_close((uv_handle_t *)&c->poll, on_closed);
        close(c->fd);
        net_crowd_leave(c);
    }
}

static void on_poll(uv_poll_t *poll, int status, int events);

/* A client that does not take answers is not read from either: that bounds the queued output. */
static bool wants_bytes(const net_conn *c) {
    return c->reading && !c->ended && !c->queue;
}

static void watch(net_conn *c) {
    int events = (wants_bytes(c) ? UV_READABLE : 0) | (c->queue ? UV_WRITABLE : 0);
    if (events == c->watching || c->phase == CLOSED) {
        return;
    }
    c->watching = (uint8_t)events;
    if (events) {
        uv_poll_start(&c->poll, events, on_poll);
    } else {
        uv_poll_stop(&c->poll);
    }
}

/* Called when all output is sent: half-closes, or closes. */
static void finish_now(net_conn *c) {
    if (!c->linger || c->ended || shutdown(c->fd, SHUT_WR) != 0) {
        net_conn_close(c);
        return;
    }
    c->phase = LINGERING;
    c->reading = true;
    own_deadline(c, NET_LINGER_MS);
    watch(c);
}

/* ---- writing ---- */

enum { VIEWS_MAX = 32 }; /* pieces sent by one system call */

/* How many bytes the kernel took. If the connection is broken, closes it: then all of them. */
static size_t send_views(net_conn *c, struct iovec *views, unsigned n) {
    struct msghdr message = {.msg_iov = views, .msg_iovlen = n};
    ssize_t k;
    do {
        k = n == 1 ? send(c->fd, views->iov_base, views->iov_len, MSG_NOSIGNAL) : sendmsg(c->fd, &message, MSG_NOSIGNAL);
    } while (k < 0 && errno == EINTR);
    if (k >= 0) {
        return (size_t)k;
    }
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
        net_conn_close(c);
    }
    return 0;
}

/* Drops what the kernel takes. A short write means that the socket's buffer is full: another would fail with EAGAIN. */
static size_t send_pieces(net_conn *c, pieces *p) {
    struct iovec views[VIEWS_MAX];
    size_t sent = 0, asked, k;
    do {
        asked = 0;
        unsigned n = pieces_view(p, views, VIEWS_MAX);
        for (unsigned i = 0; i < n; i++) {
            asked += views[i].iov_len;
        }
        k = asked ? send_views(c, views, n) : 0;
        pieces_drop(p, k);
        sent += k;
    } while (k && k == asked && pieces_bytes(p) && c->phase != CLOSED);
    return sent;
}

enum { QUEUE_STEAL_BYTES = 16 * 1024 }; /* larger answers are queued without copying, if most of their buffer is unsent */

static int kernel_bytes(net_conn *c) {
    int n = 0;
    return ioctl(c->fd, SIOCOUTQ, &n) == 0 ? n : 0;
}

static int64_t taken_bytes(net_conn *c) {
    return c->queue->sent_bytes + c->queue->kernel_began - kernel_bytes(c);
}

bool net_conn_progress(net_conn *c, net_progress *progress_out) {
    if (!c->queue) {
        return false;
    }
    *progress_out = (net_progress){c->queue->began_ms, taken_bytes(c), c->queue->weighed};
    return true;
}

static void time_queue(net_conn *c) {
    const net_options *options = &c->loop->shared->options;
    c->queue->kernel_bytes = kernel_bytes(c);
    own_deadline(c, net_time_left(options, c->queue->began_ms, taken_bytes(c), c->loop->now_ms));
}

static void begin_queue(net_conn *c) {
    c->queue = mem_zero(sizeof *c->queue);
    c->queue->bytes = pieces_init(NULL);
    c->queue->began_ms = c->loop->now_ms;
    c->queue->kernel_began = kernel_bytes(c);
    time_queue(c);
}

/* A socket's buffer may be megabytes, and is reported writable only when a good part of it is free. So a client that reads slowly but
 * steadily is recognised by how many bytes the kernel still holds. */
static bool peer_reads(net_conn *c) {
    return kernel_bytes(c) <= c->queue->kernel_bytes - NET_PROGRESS_BYTES &&
           net_time_left(&c->loop->shared->options, c->queue->began_ms, taken_bytes(c), c->loop->now_ms) > 0;
}

/* Copies the unsent bytes to a buffer of exactly their size. */
static buf rest_of(const buf *b, size_t at) {
    buf rest = buf_init(b->n - at);
    buf_add(&rest, b->p + at, b->n - at);
    rest.max = BUF_NO_LIMIT;
    return rest;
}

static void queue_rest(net_conn *c, buf *b, size_t at) {
    if (!c->queue) {
        begin_queue(c);
    }
    conn_queue *q = c->queue;
    if (pieces_bytes(&q->bytes)) {
        pieces_add(&q->bytes, b->p + at, b->n - at);
    } else if (b->n - at > b->cap / 2 && b->n > QUEUE_STEAL_BYTES) {
        pieces_adopt(&q->bytes, b);
        pieces_drop(&q->bytes, at);
    } else {
        buf rest = rest_of(b, at);
        pieces_adopt(&q->bytes, &rest);
    }
    weigh_queue(c);
    watch(c);
}

static void send_raw(net_conn *c, buf *b) {
    size_t at = c->queue || !b->n ? 0 : send_views(c, &(struct iovec){b->p, b->n}, 1);
    if (at < b->n && c->phase != CLOSED) {
        queue_rest(c, b, at);
    }
    buf_clear(b);
}

static bool encrypt(net_conn *c, const buf *b, const uint32_t *ends, unsigned ends_n) {
    size_t at = 0;
    for (unsigned i = 0; i < ends_n; i++) {
        if (!net_tls_output(c->tls, b->p + at, ends[i] - at)) {
            return false;
        }
        at = ends[i];
    }
    return at == b->n || net_tls_output(c->tls, b->p + at, b->n - at);
}

void net_conn_send(net_conn *c, buf *b) {
    net_conn_send_apart(c, b, NULL, 0);
}

void net_conn_send_apart(net_conn *c, buf *b, const uint32_t *ends, unsigned ends_n) {
    if (b->n == 0 || c->phase != OPEN) {
        buf_clear(b);
    } else if (!c->tls) {
        send_raw(c, b);
    } else if (encrypt(c, b, ends, ends_n)) {
        buf_clear(b);
        send_raw(c, &c->loop->cipher);
        if (c->loop->cipher.cap > NET_OUT_KEEP_BYTES) {
            buf_free(&c->loop->cipher);
        }
    } else {
        net_conn_close(c);
    }
}

/* The rest of what was to be sent waits; `p` keeps nothing. */
static void queue_pieces(net_conn *c, pieces *p) {
    pieces_recount(p, NULL);
    if (!c->queue) {
        begin_queue(c);
        c->queue->bytes = *p;
        *p = pieces_init(NULL);
    } else {
        pieces_join(&c->queue->bytes, p);
    }
    weigh_queue(c);
    watch(c);
}

static void send_encrypted(net_conn *c, pieces *p) {
    struct iovec view;
    while (c->phase == OPEN && pieces_view(p, &view, 1)) {
        buf one = {.p = view.iov_base, .n = view.iov_len};
        net_conn_send(c, &one);
        pieces_drop(p, view.iov_len);
    }
}

void net_conn_send_pieces(net_conn *c, buf *head, const uint32_t *ends, unsigned ends_n, pieces *p) {
    if (c->phase == OPEN && !c->tls) {
        pieces all = pieces_init(NULL);
        pieces_add(&all, head->p, head->n);
        buf_clear(head);
        pieces_join(&all, p);
        if (!c->queue) {
            send_pieces(c, &all);
        }
        if (pieces_bytes(&all) && c->phase != CLOSED) {
            queue_pieces(c, &all);
        }
        pieces_free(&all);
    } else {
        net_conn_send_apart(c, head, ends, ends_n);
        send_encrypted(c, p);
    }
    pieces_free(p);
}

static void on_writable(net_conn *c) {
    conn_queue *q = c->queue;
    size_t k = send_pieces(c, &q->bytes);
    q->sent_bytes += (int64_t)k;
    if (c->phase == CLOSED) {
        return;
    }
    if (pieces_bytes(&q->bytes)) {
        if (k >= NET_PROGRESS_BYTES) {
            time_queue(c);
        }
        weigh_queue(c);
        return;
    }
    free_queue(c);
    watch(c);
    if (c->phase == FINISHING) {
        finish_now(c);
    } else {
        net_wheel_set(&c->loop->wheel, &c->deadline, NET_NEVER);
        c->protocol->drained(c);
    }
}

void net_conn_finish(net_conn *c, bool linger) {
    if (c->phase != OPEN) {
        return;
    }
    c->phase = FINISHING;
    c->linger = linger;
    if (c->tls) {
        net_tls_goodbye(c->tls);
        send_raw(c, &c->loop->cipher);
    }
    if (!c->queue && c->phase == FINISHING) {
        finish_now(c);
    }
}

/* ---- reading ---- */

void net_conn_read(net_conn *c, bool on) {
    if (c->phase == OPEN && c->reading != on) {
        c->reading = on;
        watch(c);
    }
}

static void input_ended(net_conn *c) {
    c->ended = true;
    watch(c);
    if (c->tls ? net_tls_ready(c->tls) : c->sniffed) {
        c->protocol->ended(c);
    } else {
        net_conn_close(c);
    }
}

static void tls_bytes(net_conn *c, const char *p, size_t n) {
    size_t plain_n;
    net_tls_state state = net_tls_input(c->tls, p, n, &plain_n);
    send_raw(c, &c->loop->cipher); /* handshake, tickets, or an alert that says what is wrong */
    if (plain_n && c->phase == OPEN) {
        c->protocol->bytes(c, c->loop->plain_bytes, plain_n);
    }
    if (c->phase != OPEN) {
        return;
    }
    if (state == NET_TLS_FAILED) {
        net_conn_close(c);
    } else if (state == NET_TLS_ENDED && !c->ended) {
        input_ended(c);
    }
}

/* Decides from the first bytes whether they are TLS (*tls_out). False: undecided; the bytes are kept until more come, or until the deadline
 * of a new connection. */
static bool sniff(net_conn *c, const char *p, size_t n, bool *tls_out) {
    net_tls_guess guess = c->loop->shared->tls ? net_tls_guess_of(p, n) : NET_TLS_NO;
    *tls_out = guess == NET_TLS_YES;
    c->sniffed = guess != NET_TLS_UNSURE;
    c->hello_n = c->sniffed ? 0 : (uint8_t)n;
    memcpy(c->hello, p, c->hello_n);
    return c->sniffed;
}

static void take_bytes(net_conn *c, char *p, size_t n) {
    bool handshake = false;
    if (!c->sniffed && !sniff(c, p, n, &handshake)) {
        return;
    }
    if (c->surplus) {
        handshake ? net_conn_close(c) : c->protocol->surplus(c);
        return;
    }
    if (handshake) {
        c->tls = net_tls_new(c->loop->shared->tls, c->loop, c->protocol->alpn);
    }
    if (c->tls) {
        tls_bytes(c, p, n);
    } else {
        c->protocol->bytes(c, p, n);
    }
}

static void on_readable(net_conn *c) {
    size_t kept = c->hello_n;
    c->loop->reads++;
    ssize_t n = recv(c->fd, c->loop->read_bytes + kept, NET_READ_BYTES - kept, 0);
    if (n < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            net_conn_close(c);
        }
    } else if (c->phase == LINGERING) {
        if (n == 0) {
            net_conn_close(c);
        }
    } else if (n == 0) {
        input_ended(c);
    } else if (c->phase == OPEN) {
        if (kept) {
            memcpy(c->loop->read_bytes, c->hello, kept);
        }
        take_bytes(c, c->loop->read_bytes, kept + (size_t)n);
    }
}

static void on_poll(uv_poll_t *poll, int status, int events) {
    net_conn *c = CONN_OF(poll, poll);
    net_loop_refresh(c->loop);
    net_loop_release_due(c->loop);
    if (status < 0) {
        net_conn_close(c);
        return;
    }
    if ((events & UV_WRITABLE) && c->queue && c->phase != CLOSED) {
        on_writable(c);
    }
    if ((events & UV_READABLE) && wants_bytes(c) && c->phase != CLOSED) {
        on_readable(c);
    }
}

void net_conn_expired(net_deadline *deadline) {
    net_conn *c = CONN_OF(deadline, deadline);
    bool handshaking = c->tls ? !net_tls_ready(c->tls) : c->hello_n > 0;
    if (c->queue && peer_reads(c)) {
        time_queue(c);
    } else if (c->queue) {
        net_crowd_close_slow(c);
    } else if (c->phase != OPEN || handshaking || c->surplus) {
        net_conn_close(c);
    } else {
        c->protocol->timed_out(c);
    }
}

void net_conn_stopping(net_conn *c) {
    if (c->phase == OPEN && wants_bytes(c)) {
        on_readable(c); /* a request that has arrived but was not read yet is still answered */
    }
    bool handshaking = c->tls ? !net_tls_ready(c->tls) : c->hello_n > 0;
    if (c->phase == LINGERING || (c->phase == OPEN && handshaking)) {
        net_conn_close(c);
    } else if (c->phase == OPEN) {
        c->protocol->stopping(c);
    }
}

/* ---- opening ---- */

static void open_here(net_task *task) {
    net_conn *c = CONN_OF(task, link.deal);
    net_loop *loop = c->loop;
    if (loop->stopped || uv_poll_init(&loop->uv, &c->poll, c->fd) != 0) {
        close(c->fd);
        net_crowd_leave(c);
        free(c);
        return;
    }
    c->link.list.prev = NULL;
    c->link.list.next = loop->conns;
    if (loop->conns) {
        loop->conns->link.list.prev = c;
    }
    loop->conns = c;
    net_loop_start_ticking(loop);
    c->reading = true;
    watch(c);
    c->protocol->opened(c, c->context);
    net_crowd_enter(c);
    if (loop->draining) {
        net_conn_stopping(c);
    }
}

net_peer net_peer_of(const struct sockaddr_storage *address) {
    net_peer peer = {0};
    if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
        peer.ipv6 = true;
        peer.port = ntohs(in6->sin6_port);
        memcpy(peer.address, &in6->sin6_addr, 16);
    } else if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in4 = (const struct sockaddr_in *)address;
        peer.port = ntohs(in4->sin_port);
        memcpy(peer.address, &in4->sin_addr, 4);
    }
    return peer;
}

net_peer net_conn_local(const net_conn *c) {
    struct sockaddr_storage address = {0};
    socklen_t n = sizeof address;
    return getsockname(c->fd, (struct sockaddr *)&address, &n) == 0 ? net_peer_of(&address) : (net_peer){0};
}

const char *net_peer_text(const net_peer *peer, char into[static HTTP_PEER_BYTES]) {
    char address[INET6_ADDRSTRLEN] = "?";
    inet_ntop(peer->ipv6 ? AF_INET6 : AF_INET, peer->address, address, sizeof address);
    snprintf(into, HTTP_PEER_BYTES, peer->ipv6 ? "[%s]:%u" : "%s:%u", address, peer->port);
    return into;
}

void net_conn_deal(net_loop *loop, int fd, const net_peer *peer, bool surplus, const net_protocol *protocol, void *context) {
    net_conn *c = mem_zero(sizeof *c + protocol->state_bytes);
    c->loop = loop;
    c->fd = fd;
    c->peer = *peer;
    c->surplus = surplus;
    c->protocol = protocol;
    c->context = context;
    c->link.deal.run = open_here;
    net_post(loop, &c->link.deal);
}
