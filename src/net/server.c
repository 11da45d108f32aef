#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/conn_int.h"
#include "net/frames_int.h"
#include "net/http_int.h"
#include "net/listen.h"
#include "net/tls.h"

const net_options net_defaults = {
    .connections_max = 10000,
    .per_address_max = 2500,
    .spare_loopback = true,
    .header_timeout_ms = 30 * 1000,
    .body_timeout_ms = 30 * 1000,
    .least_rate = 4096,
    .idle_timeout_ms = 300 * 1000,
    .untrusted_timeout_ms = 10 * 1000,
    .drain_timeout_ms = 10 * 1000,
    .request_memory_max = 128 * 1024 * 1024,
    .memory_max = (size_t)512 * 1024 * 1024,
    .clock = &clock_system,
};

enum {
    LOOPS_MAX = 64,
    PORTS_MAX = 16,
    LOOP_SLICE_US = 100,      /* the kernel's time slice for loops: short, so that they run before workers when an event comes */
    ACCEPTS_PER_TURN = 64,    /* then events of existing connections are handled */
    ACCEPT_PAUSE_MS = 100,    /* pause when the system is out of descriptors or memory */
    CERTIFICATE_BYTES = 65536 /* max. size of the PEM file offered to clients */
};

typedef struct listener {
    uv_poll_t poll;
    net_server *server;
    struct listener *next;
    int fd;
    const net_protocol *protocol;
    void *context;
} listener;

typedef struct interval {
    uv_timer_t timer;
    struct interval *next;
    void (*tick)(void *context);
    void *context;
} interval;

struct net_server {
    net_shared shared;
    net_loop *loops;
    pthread_t *threads;
    unsigned loops_n;
    unsigned next_loop;
    listener *listeners;
    interval *intervals;
    uv_async_t stop;
    uv_timer_t accept_pause;
    net_complaint paused;
    http_service *services;
    net_port ports[PORTS_MAX];
    unsigned ports_n;
    buf certificate;
};

/* ---- accepting: all on loop 0 ---- */

static void on_incoming(uv_poll_t *poll, int status, int events);

static void accept_again(uv_timer_t *timer) {
    net_server *s = timer->data;
    for (listener *l = s->listeners; l; l = l->next) {
        uv_poll_start(&l->poll, UV_READABLE, on_incoming);
    }
}

static void pause_accepting(net_server *s, int reason) {
    unsigned times = net_count_event(&s->paused, s->loops[0].now_ms);
    if (times) {
        log_warn("net", "accepting paused", "reason=\"%s\" ms=%d times=%u", strerror(reason), ACCEPT_PAUSE_MS, times);
    }
    for (listener *l = s->listeners; l; l = l->next) {
        uv_poll_stop(&l->poll);
    }
    uv_timer_start(&s->accept_pause, accept_again, ACCEPT_PAUSE_MS, 0);
}

/* Loops close connections above the limit, but may be busy: this bounds how many are on their way to a loop. */
static bool is_flooded(net_server *s) {
    unsigned most = s->shared.options.connections_max + ACCEPTS_PER_TURN;
    if (atomic_load_explicit(&s->shared.connections, memory_order_relaxed) < most) {
        return false;
    }
    unsigned times = net_count_event(&s->shared.full, s->loops[0].now_ms);
    if (times) {
        log_warn("net", "too many connections", "max=%u refused=%u", s->shared.options.connections_max, times);
    }
    return true;
}

static void tell_crowded(net_server *s, const net_peer *peer) {
    unsigned times = net_count_event(&s->shared.crowded, s->loops[0].now_ms);
    if (times) {
        char text[HTTP_PEER_BYTES];
        log_warn("net", "too many connections of one address", "peer=%s max=%u refused=%u", net_peer_text(peer, text),
                 s->shared.options.per_address_max, times);
    }
}

/* Counts the connection, as surplus if its address has too many. False: close it at once. */
static bool admit(net_server *s, const net_peer *peer, bool *surplus_out) {
    if (is_flooded(s)) {
        return false;
    }
    *surplus_out = !net_peers_take(s->shared.peers, peer);
    if (*surplus_out) {
        tell_crowded(s, peer);
        return net_crowd_take_surplus(&s->shared);
    }
    atomic_fetch_add_explicit(&s->shared.connections, 1, memory_order_relaxed);
    return true;
}

/* Round robin; above connections_max, where an untrusted connection must give way, the loop with the most of them. */
static net_loop *choose_loop(net_server *s) {
    net_loop *chosen = &s->loops[s->next_loop];
    s->next_loop = (s->next_loop + 1) % s->loops_n;
    if (atomic_load_explicit(&s->shared.connections, memory_order_relaxed) > s->shared.options.connections_max) {
        for (unsigned i = 0; i < s->loops_n; i++) {
            unsigned n = atomic_load_explicit(&s->loops[i].untrusted_n, memory_order_relaxed);
            chosen = n > atomic_load_explicit(&chosen->untrusted_n, memory_order_relaxed) ? &s->loops[i] : chosen;
        }
    }
    return chosen;
}

static void deal(net_server *s, listener *l, int fd, const struct sockaddr_storage *address) {
    net_peer peer = net_peer_of(address);
    bool surplus;
    if (!admit(s, &peer, &surplus)) {
        close(fd);
        return;
    }
    int on = 1;
    unsigned unread_ms = 3 * s->shared.options.body_timeout_ms; /* bounds how long the kernel keeps unacknowledged output */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unread_ms, sizeof unread_ms);
    net_conn_deal(choose_loop(s), fd, &peer, surplus, l->protocol, l->context);
}

/* True: try again at once. */
static bool accept_failed(net_server *s, int reason) {
    switch (reason) {
    case EINTR:
    case ECONNABORTED:
        return true;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        pause_accepting(s, reason); /* the socket stays readable while a connection is in the backlog: polling would spin */
        return false;
    default: /* EAGAIN, or a network error that accept(2) says to treat like EAGAIN */
        return false;
    }
}

static void on_incoming(uv_poll_t *poll, int status, int events) {
    listener *l = poll->data;
    (void)status, (void)events;
    net_loop_refresh(&l->server->loops[0]);
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t n = sizeof peer;
        int fd = accept4(l->fd, (struct sockaddr *)&peer, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            deal(l->server, l, fd, &peer);
        } else if (!accept_failed(l->server, errno)) {
            return;
        }
    }
}

/* ---- listening ---- */

static void add_listener(net_server *s, int fd, const net_protocol *protocol, void *context) {
    listener *l = mem_zero(sizeof *l);
    *l = (listener){.server = s, .fd = fd, .protocol = protocol, .context = context, .next = s->listeners};
    s->listeners = l;
    uv_poll_init(&s->loops[0].uv, &l->poll, fd);
    l->poll.data = l;
    uv_poll_start(&l->poll, UV_READABLE, on_incoming);
}

static void add_port(net_server *s, const char *name, const char *host, const net_sockets *sockets, const net_protocol *protocol,
                     void *context) {
    assert(s->ports_n < PORTS_MAX);
    s->ports[s->ports_n++] = (net_port){name, sockets->port};
    for (unsigned i = 0; i < sockets->n; i++) {
        add_listener(s, sockets->fd[i], protocol, context);
        net_guard_listens(&s->shared.guard, sockets->fd[i]);
    }
    log_info("net", "listening", "front=%s host=%s port=%u tls=%s", name, host, sockets->port, s->shared.tls ? "auto" : "off");
}

err net_listen(net_server *s, const char *host, uint16_t port, const http_front *front, uint16_t *port_out, char *why, size_t why_n) {
    net_sockets sockets;
    TRY(net_listen_sockets(host, port, &sockets, why, why_n));
    http_service *service = http_service_new(front);
    service->next = s->services;
    s->services = service;
    add_port(s, front->name, host, &sockets, &http_protocol, service);
    *port_out = sockets.port;
    return OK;
}

err net_listen_frames(net_server *s, const char *host, uint16_t port, const frames_front *front, uint16_t *port_out, char *why,
                      size_t why_n) {
    assert(front->length && front->header_bytes > 0 && front->header_bytes <= FRAMES_HEADER_MAX);
    net_sockets sockets;
    TRY(net_listen_sockets(host, port, &sockets, why, why_n));
    add_port(s, front->name, host, &sockets, &frames_protocol, (void *)(uintptr_t)front); /* only used as const */
    *port_out = sockets.port;
    return OK;
}

unsigned net_server_ports(const net_server *s) {
    return s->ports_n;
}

net_port net_server_port(const net_server *s, unsigned index) {
    return s->ports[index];
}

void net_guard_turn(net_server *s, bool on) {
    atomic_store(&s->shared.guard.on, on);
}

static void stop_listening(net_server *s) {
    uv_timer_stop(&s->accept_pause);
    for (listener *l = s->listeners; l; l = l->next) {
        if (l->fd >= 0) {
            uv_close((uv_handle_t *)&l->poll, NULL);
            close(l->fd);
            l->fd = -1;
        }
    }
}

/* ---- TLS ---- */

static bool read_certificate(net_server *s, const char *path) {
    char chunk[4096];
    FILE *file = fopen(path, "re");
    if (!file) {
        return false;
    }
    buf_clear(&s->certificate);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;) {
        buf_add(&s->certificate, chunk, n);
    }
    fclose(file);
    return buf_ok(&s->certificate);
}

err net_tls(net_server *s, const char *data_dir, const char *cert_path, const char *key_path, char *why, size_t why_n) {
    char own_cert[4096], own_key[4096];
    if (!cert_path != !key_path) {
        snprintf(why, why_n, "a TLS certificate and its key must be given together");
        return E_INTERNAL;
    }
    if (!cert_path) {
        snprintf(own_cert, sizeof own_cert, "%s/tls-cert.pem", data_dir);
        snprintf(own_key, sizeof own_key, "%s/tls-key.pem", data_dir);
        cert_path = own_cert;
        key_path = own_key;
        net_certificate wanted = {cert_path, key_path, s->shared.options.certificate_names};
        TRY(net_tls_make_certificate(&wanted, clock_wall_ms(s->shared.options.clock) / 1000, why, why_n));
    }
    SSL_CTX *context;
    TRY(net_tls_context(cert_path, key_path, s->shared.options.clock, &context, why, why_n));
    SSL_CTX_free(s->shared.tls);
    s->shared.tls = context;
    if (!read_certificate(s, cert_path)) {
        snprintf(why, why_n, "cannot read the TLS certificate %s", cert_path);
        return E_INTERNAL;
    }
    return OK;
}

slice net_tls_certificate(net_server *s) {
    return buf_view(&s->certificate);
}

/* ---- life ---- */

/* Raises the descriptor limit to the system's maximum, and returns it. */
static unsigned raise_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 1024;
    }
    if (limit.rlim_cur != limit.rlim_max) {
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            limit.rlim_cur = before;
        }
    }
    return limit.rlim_cur > 1u << 20 ? 1u << 20 : (unsigned)limit.rlim_cur;
}

static unsigned loops_for(unsigned asked) {
    unsigned n = asked ? asked : uv_available_parallelism();
    return n < 1 ? 1 : n > LOOPS_MAX ? LOOPS_MAX : n;
}

static void on_stop(uv_async_t *stop) {
    net_server *s = stop->data;
    stop_listening(s);
    for (unsigned i = 0; i < s->loops_n; i++) {
        if (!s->loops[i].drain_posted) { /* a second signal changes nothing */
            s->loops[i].drain_posted = true;
            net_post(&s->loops[i], &s->loops[i].drain_task);
        }
    }
}

err net_open(const net_options *options, net_server **server_out) {
    net_server *s = mem_zero(sizeof *s);
    *server_out = NULL;
    s->shared.options = *options;
    s->shared.guard.allowed = options->hosts;
    s->certificate = buf_init(CERTIFICATE_BYTES);
    unsigned descriptors = raise_descriptors();
    if (s->shared.options.connections_max > descriptors / 4 * 3) {
        s->shared.options.connections_max = descriptors / 4 * 3;
        log_warn("net", "fewer connections than asked for", "max=%u open_files=%u", descriptors / 4 * 3, descriptors);
    }
    s->shared.requests.max = s->shared.buffers.max = options->memory_max / 2;
    if (s->shared.options.request_memory_max > s->shared.requests.max) { /* otherwise a large request would be told to retry for ever */
        s->shared.options.request_memory_max = s->shared.requests.max;
    }
    s->shared.peers = net_peers_new(s->shared.options.connections_max, options->per_address_max, options->spare_loopback);
    net__lanes_open(&s->shared);
    unsigned n = loops_for(options->loops);
    s->loops = mem_zero(n * sizeof *s->loops);
    s->threads = mem_zero(n * sizeof *s->threads);
    for (; s->loops_n < n; s->loops_n++) {
        err code = net_loop_init(&s->loops[s->loops_n], &s->shared, s->loops_n);
        if (code != OK) {
            net_close(s);
            return code;
        }
        s->loops[s->loops_n].input_bytes_max = s->shared.buffers.max / 2 / n;
    }
    uv_async_init(&s->loops[0].uv, &s->stop, on_stop);
    uv_timer_init(&s->loops[0].uv, &s->accept_pause);
    s->stop.data = s->accept_pause.data = s;
    *server_out = s;
    return OK;
}

net_loop *net_server_loop(net_server *s, unsigned index) {
    return &s->loops[index];
}

unsigned net_server_loops(const net_server *s) {
    return s->loops_n;
}

unsigned net_server_connections(const net_server *s) {
    return atomic_load_explicit(&s->shared.connections, memory_order_relaxed);
}

static uint64_t total(const net_complaint *c) {
    return atomic_load_explicit(&c->total, memory_order_relaxed);
}

static unsigned requests_live(const net_server *s) {
    unsigned n = 0;
    for (unsigned i = 0; i < s->loops_n; i++) {
        n += atomic_load_explicit(&s->loops[i].requests_live, memory_order_relaxed);
    }
    return n;
}

net_stats net_server_stats(const net_server *s) {
    const net_shared *shared = &s->shared;
    return (net_stats){
        .connections = net_server_connections(s),
        .authenticated = atomic_load_explicit(&shared->trusted, memory_order_relaxed),
        .requests = requests_live(s),
        .drain_requests = atomic_load_explicit(&shared->drain_requests, memory_order_relaxed),
        .drain_unanswered = atomic_load_explicit(&shared->drain_unanswered, memory_order_relaxed),
        .refused_full = total(&shared->full),
        .refused_address = total(&shared->crowded),
        .displaced = total(&shared->displaced),
        .slow_clients = total(&shared->slow),
        .starved = total(&shared->starved),
        .waiting_bytes = atomic_load_explicit(&shared->waiting_bytes, memory_order_relaxed),
        .request_bytes = atomic_load_explicit(&shared->requests.used, memory_order_relaxed),
        .buffer_bytes = atomic_load_explicit(&shared->buffers.used, memory_order_relaxed),
        .memory_max = shared->options.memory_max,
    };
}

sched_counts net_server_work(const net_server *s, net_lane lane) {
    return sched_counted(s->shared.lanes[lane]);
}

static void *run_loop(void *argument) {
    net_loop *loop = argument;
    char name[16];
    snprintf(name, sizeof name, "net-%u", loop->index);
    pthread_setname_np(pthread_self(), name);
    thread_ask_slices(LOOP_SLICE_US);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    return NULL;
}

/* Blocks signals in the new threads: only the thread that called net_run handles them. */
static void start_threads(net_server *s) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 1; i < s->loops_n; i++) {
        if (!thread_start(&s->threads[i], "net", run_loop, &s->loops[i])) {
            _exit(1); /* safe, since nothing was accepted yet; thread_start has logged the reason */
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void net_run(net_server *s) {
    start_threads(s);
    thread_ask_slices(LOOP_SLICE_US);
    uv_run(&s->loops[0].uv, UV_RUN_DEFAULT);
    for (unsigned i = 1; i < s->loops_n; i++) {
        pthread_join(s->threads[i], NULL);
    }
    log_info("net", "drained", "requests=%u unanswered=%u", s->shared.drain_requests, s->shared.drain_unanswered);
}

void net_stop(net_server *s) {
    uv_async_send(&s->stop);
}

void net_close(net_server *s) {
    stop_listening(s);
    net__lanes_stop(&s->shared);
    for (unsigned i = 0; i < s->loops_n; i++) {
        net_loop_free(&s->loops[i]);
    }
    for (listener *l = s->listeners, *next; l; l = next) {
        next = l->next;
        free(l);
    }
    for (http_service *service = s->services, *next; service; service = next) {
        next = service->next;
        http_service_free(service);
    }
    for (interval *i = s->intervals, *next; i; i = next) {
        next = i->next;
        free(i);
    }
    net__lanes_close(&s->shared);
    SSL_CTX_free(s->shared.tls);
    net_peers_free(s->shared.peers);
    buf_free(&s->certificate);
    free(s->threads);
    free(s->loops);
    free(s);
}

static void on_interval(uv_timer_t *timer) {
    interval *i = timer->data;
    i->tick(i->context);
}

void net_every(net_server *s, unsigned interval_ms, void (*tick)(void *context), void *context) {
    interval *i = mem_zero(sizeof *i);
    *i = (interval){.tick = tick, .context = context, .next = s->intervals};
    s->intervals = i;
    uv_timer_init(&s->loops[0].uv, &i->timer);
    i->timer.data = i;
    uv_timer_start(&i->timer, on_interval, interval_ms, interval_ms);
}
