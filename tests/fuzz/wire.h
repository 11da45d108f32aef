/* wire.h — a connection to a server in this process, without threads: sends bytes in given pieces and collects the answers.
 *
 * Everything from the socket upwards is the real code: reading, limits, answers, lifetimes. Too little time passes for any timeout. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/random.h"
#include "net/conn.h"
#include "net/loop_int.h"
#include "net/server.h"

typedef struct wire {
    int fd;
    bool over; /* the server has closed the connection */
    buf out;   /* bytes received from the server */
} wire;

static net_server *wire_server;

static inline void check(bool ok, const char *what) {
    if (!ok) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

static inline net_loop *wire_loop(void) {
    return net_server_loop(wire_server, 0);
}

static inline void wire_start(void) {
    net_options o = net_defaults;
    o.loops = 1;
    o.header_timeout_ms = o.body_timeout_ms = o.idle_timeout_ms = o.untrusted_timeout_ms = 3600 * 1000;
    log_set_level(LOG_ERROR);
    check(net_open(&o, &wire_server) == OK, "a server");
}

static inline wire wire_open(const net_protocol *protocol, void *context) {
    int ends[2];
    net_peer peer = {.port = 1};
    net_shared *shared = wire_loop()->shared;
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "sockets");
    check(net_peers_take(shared->peers, &peer), "a place");
    atomic_fetch_add(&shared->connections, 1);
    net_conn_deal(wire_loop(), ends[0], &peer, false, protocol, context);
    return (wire){.fd = ends[1], .out = buf_init(BUF_NO_LIMIT)};
}

static inline bool wire_read(wire *w) {
    char bytes[16384];
    ssize_t n = recv(w->fd, bytes, sizeof bytes, 0);
    if (n > 0) {
        buf_add(&w->out, bytes, (size_t)n);
    }
    w->over |= n == 0 || (n < 0 && errno != EAGAIN);
    return n > 0;
}

/* Runs the loop until nothing more happens. */
static inline void wire_run(wire *w) {
    for (int quiet = 0; quiet < 4;) {
        uv_run(&wire_loop()->uv, UV_RUN_NOWAIT);
        quiet = wire_read(w) ? 0 : quiet + 1;
    }
}

static inline void wire_send(wire *w, const void *bytes, size_t n) {
    const char *p = bytes;
    while (n && !w->over) {
        ssize_t k = send(w->fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno != EAGAIN) {
            w->over = true;
        }
        wire_run(w);
        if (k > 0) {
            p += k;
            n -= (size_t)k;
        } else if (send(w->fd, p, 1, MSG_NOSIGNAL) == 1) { /* the server reads again */
            p++;
            n--;
        } else {
            return; /* the server stopped reading: the limit of requests in flight is reached */
        }
    }
}

/* Sends bytes, in random pieces if `cuts` is not NULL. */
static inline void wire_send_cut(wire *w, const uint8_t *data, size_t n, random_source *cuts) {
    while (n && !w->over) {
        size_t k = cuts ? 1 + random_below(cuts, random_below(cuts, 4) ? 8 : 200) : n;
        k = k < n ? k : n;
        wire_send(w, data, k);
        data += k;
        n -= k;
    }
    wire_run(w);
}

static inline void wire_close(wire *w) {
    close(w->fd);
    for (int i = 0; i < 100 && net_server_connections(wire_server); i++) {
        uv_run(&wire_loop()->uv, UV_RUN_NOWAIT);
    }
}

/* Checks that no connection or request is left. */
static inline void wire_expect_nothing(void) {
    for (int i = 0; i < 100 && (wire_loop()->conns || wire_loop()->requests_live); i++) {
        uv_run(&wire_loop()->uv, UV_RUN_NOWAIT);
    }
    check(net_server_connections(wire_server) == 0 && !wire_loop()->conns, "a connection stays");
    check(wire_loop()->requests_live == 0, "a request stays");
    check(wire_loop()->input_bytes == 0, "input stays counted");
    check(atomic_load(&wire_loop()->shared->waiting_bytes) == 0, "output stays counted");
}

static inline void wire_expect_same(const buf *whole, const buf *cut) {
    if (!slice_eq(buf_view(whole), buf_view(cut))) {
        fprintf(stderr, "in one piece: %zu bytes, in pieces: %zu bytes\n", whole->n, cut->n);
        abort();
    }
}
