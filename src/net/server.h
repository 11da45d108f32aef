/* server.h — loops and listening ports.
 *
 * Loop 0, on the thread that calls net_run, accepts and deals connections to the loops in turn. The first bytes of a connection tell
 * whether it is TLS, so that and plain text are served on one port, whatever the protocol.
 *
 * Order of life: net_open, then net_tls and net_listen as needed, net_run (returns after net_stop and the drain), net_close. All from
 * one thread but net_stop. Nobody may net_post once net_close is called. */
#pragma once

#include "net/http.h"

typedef struct net_server net_server;

typedef struct net_options {
    unsigned loops; /* 0: one per processor */
    unsigned
        connections_max; /* over all loops; the unauthenticated make room for newer ones. Cut to three quarters of the file descriptors */
    unsigned per_address_max;      /* of one IPv4 address or IPv6 network (/64); 0: no limit */
    bool spare_loopback;           /* … but none for clients on the same machine */
    unsigned header_timeout_ms;    /* from the first byte of a request to the end of its fields */
    unsigned body_timeout_ms;      /* without 4 KB of progress, reading a body or writing an answer */
    unsigned least_rate;           /* bytes per second at which a body must come and an answer be read, after body_timeout_ms; 0: any */
    unsigned idle_timeout_ms;      /* keep-alive, once http_trust was called */
    unsigned untrusted_timeout_ms; /* before: from connecting to the end of a request's fields, and between requests */
    unsigned drain_timeout_ms;     /* at stop, for what is in flight */
    size_t request_memory_max;     /* that one request may take while it is served */
    size_t memory_max; /* half for what requests take while they are served (net_loop_memory), half for buffers of requests and answers */
    const clock_source *clock;
    const char *hosts; /* further names that the guard lets pass, with commas between (guard.h); NULL: none. Outlives the server */
    const char *certificate_names; /* further names and addresses that the self-signed certificate is for, likewise */
} net_options;

extern const net_options net_defaults;

/* Makes the loops, not running yet, and raises the limit of open files to what the system allows. */
MUST_CHECK err net_open(const net_options *options, net_server **server_out);

/* Loads what TLS needs of OpenSSL, which takes some milliseconds. Any thread: at start it can be done beside opening the store. */
void net_tls_prepare(void);

/* TLS for all ports: PEM files. With both NULL, a self-signed certificate (localhost, 127.0.0.1, ::1, host name, certificate_names; EC
 * P-256) is made in `data_dir` as tls-cert.pem and tls-key.pem (mode 0600) unless it is there already, for all those names, and valid for
 * another 30 days. `why` explains a failure. Before net_run. */
MUST_CHECK err net_tls(net_server *server, const char *data_dir, const char *cert_path, const char *key_path, char *why, size_t why_n);
slice net_tls_certificate(net_server *server); /* PEM text, for /_explorer/emulator.pem; empty without TLS; lives as long as the server */

/* Listens with HTTP; frames.h has the same for other protocols. `host` "localhost" means both loopback families; port 0 picks a free one
 * (the same for both families). `why` explains a failure in words that tell what to do ("port 8081 is in use…"). */
MUST_CHECK err net_listen(net_server *server, const char *host, uint16_t port, const http_front *front, uint16_t *port_out, char *why,
                          size_t why_n);

/* The ports that listen, in the order in which they were asked for: `name` is the front end's. */
typedef struct net_port {
    const char *name;
    uint16_t port;
} net_port;
unsigned net_server_ports(const net_server *server);
net_port net_server_port(const net_server *server, unsigned index);

/* Turns the guard on or off (guard.h): while on, requests that a web page may have sent are refused with E_WRONG_HOST. Any thread. */
void net_guard_turn(net_server *server, bool on);

net_loop *net_server_loop(net_server *server, unsigned index);
unsigned net_server_loops(const net_server *server);
unsigned net_server_connections(const net_server *server);

/* What happened since the start, and what is now. Any thread. */
typedef struct net_stats {
    unsigned connections, authenticated;
    unsigned requests;         /* of all protocols: being read, served or answered */
    unsigned drain_requests;   /* that were under way when the server was stopped: it waits for them, */
    unsigned drain_unanswered; /* … and these were cut off by drain_timeout_ms */
    uint64_t refused_full;     /* connections refused because there were connections_max */
    uint64_t refused_address;  /* … because their address had per_address_max */
    uint64_t displaced;        /* unauthenticated connections closed for newer ones */
    uint64_t slow_clients;     /* ended: they sent a body or read an answer too slowly */
    uint64_t starved;          /* requests and answers refused for want of memory */
    uint64_t waiting_bytes;    /* of answers that clients have not taken yet */
    uint64_t request_bytes;    /* of requests that are being served */
    uint64_t buffer_bytes;     /* of requests being read, answers being written, and those that wait */
    uint64_t memory_max;       /* of both, half for each */
} net_stats;
net_stats net_server_stats(const net_server *server);
sched_counts net_server_work(const net_server *server, net_lane lane); /* any thread */

/* Runs until net_stop (any thread, signal-safe), then drains and returns: listening ends, idle connections close, requests in flight of all
 * protocols are answered, up to drain_timeout_ms, each connection closes after its last answer. The log says how many there were. */
void net_run(net_server *server);
void net_stop(net_server *server);
void net_close(net_server *server); /* runs what was posted too late, closes what is still open, frees all */

/* A timer on loop 0, for background work such as expiry. Before net_run, or on loop 0. Ends with the server. */
void net_every(net_server *server, unsigned interval_ms, void (*tick)(void *context), void *context);
