/* server.h — loops and listening ports.
 *
 * One thread accepts and deals connections to the loops in turn. The first byte of a connection tells TLS (0x16) from plain text, so both
 * are served on one port. */
#pragma once

#include "net/http.h"

typedef struct net_server net_server;

typedef struct net_options {
    unsigned loops;             /* 0: one per processor */
    unsigned connections_max;   /* over all loops; further ones are closed at once */
    unsigned header_timeout_ms; /* from the first byte of a request to the end of its fields */
    unsigned body_timeout_ms;   /* without progress, reading a body or writing an answer */
    unsigned idle_timeout_ms;   /* keep-alive */
    unsigned drain_timeout_ms;  /* at stop, for what is in flight */
    const clock_source *clock;
} net_options;

extern const net_options net_defaults;

/* Makes the loops, not running yet. */
MUST_CHECK err net_open(const net_options *options, net_server **server_out);

/* TLS for all ports: PEM files. With both NULL, a self-signed certificate (localhost, 127.0.0.1, ::1, host name; EC P-256) is made in
 * `data_dir` as tls-cert.pem and tls-key.pem (mode 0600) unless it is there already and valid for another 30 days.
 * `why` explains a failure. */
MUST_CHECK err net_tls(net_server *server, const char *data_dir, const char *cert_path, const char *key_path, char *why, size_t why_n);
slice net_tls_certificate(net_server *server); /* PEM text, for /_explorer/emulator.pem */

/* Listens. `host` "localhost" means both loopback families; port 0 picks a free one (the same for both families). `why` explains a
 * failure in words that tell what to do ("port 8081 is in use…"). */
MUST_CHECK err net_listen(net_server *server, const char *host, uint16_t port, const http_front *front, uint16_t *port_out, char *why,
                          size_t why_n);

net_loop *net_server_loop(net_server *server, unsigned index);
unsigned net_server_loops(const net_server *server);
unsigned net_server_connections(const net_server *server);

/* Runs until net_stop (any thread, signal-safe), then drains and returns. */
void net_run(net_server *server);
void net_stop(net_server *server);
void net_close(net_server *server);

/* A timer on loop 0, for background work such as expiry. */
void net_every(net_server *server, unsigned interval_ms, void (*tick)(void *context), void *context);
