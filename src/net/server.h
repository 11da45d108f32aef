/* server.h — loops and listening ports.
 *
 * Loop 0 runs on the thread that calls net_run. It accepts connections and deals them to the loops in turn. TLS is detected from a
 * connection's first bytes, so one port serves TLS and plain text, whatever the protocol.
 *
 * Lifecycle: net_open, then net_tls and net_listen as needed, net_run (returns after net_stop and the drain), net_close. Call all of them
 * from one thread, except net_stop. Do not call net_post once net_close has begun. */
#pragma once

#include "net/http.h"

typedef struct net_server net_server;

typedef struct net_options {
    unsigned loops;                /* 0: one per processor */
    unsigned connections_max;      /* over all loops; newer ones displace unauthenticated ones. At most 3/4 of the file descriptors */
    unsigned per_address_max;      /* connections from one IPv4 address or IPv6 network (/64); 0: no limit */
    bool spare_loopback;           /* per_address_max does not apply to clients on the same machine */
    unsigned header_timeout_ms;    /* from the first byte of a request to the end of its fields */
    unsigned body_timeout_ms;      /* limit for each 4 KB of progress while reading a body or writing an answer */
    unsigned least_rate;           /* minimum bytes per second for a body or an answer, once body_timeout_ms has passed; 0: no minimum */
    unsigned idle_timeout_ms;      /* between requests, for a connection that http_trust was called on */
    unsigned untrusted_timeout_ms; /* for other connections: to complete a request's header, and between requests */
    unsigned drain_timeout_ms;     /* how long a stop waits for requests in flight */
    size_t request_memory_max;     /* limit for one request while it is served */
    size_t memory_max;             /* half for requests being served (net_loop_memory), half for buffers of requests and answers */
    const clock_source *clock;
    const char *hosts;             /* more host names that the guard allows, comma-separated (guard.h); NULL: none. Outlives the server */
    const char *certificate_names; /* more names and addresses for the self-signed certificate, in the same form */
} net_options;

extern const net_options net_defaults;

/* Creates the loops without starting them, and raises the limit of open files to the system's maximum. */
MUST_CHECK err net_open(const net_options *options, net_server **server_out);

/* Initialises OpenSSL, which takes some milliseconds. Any thread: at start-up it can run while the store is opened. */
void net_tls_prepare(void);

/* Enables TLS on all ports, with a certificate and key from PEM files. If both paths are NULL, a self-signed certificate (localhost,
 * 127.0.0.1, ::1, host name, certificate_names; EC P-256) is used from tls-cert.pem and tls-key.pem (mode 0600) in `data_dir`. It is made
 * if it is missing, lacks one of the names, or expires within 30 days. `why` explains a failure. Before net_run. */
MUST_CHECK err net_tls(net_server *server, const char *data_dir, const char *cert_path, const char *key_path, char *why, size_t why_n);
slice net_tls_certificate(net_server *server); /* PEM text, for /_explorer/emulator.pem; empty without TLS; lives as long as the server */

/* Listens for HTTP; frames.h has the equivalent for other protocols. `host` "localhost" means both loopback families; port 0 picks a free
 * one (the same for both families). `why` explains a failure and what to do about it ("port 8081 is in use…"). */
MUST_CHECK err net_listen(net_server *server, const char *host, uint16_t port, const http_front *front, uint16_t *port_out, char *why,
                          size_t why_n);

/* The listening ports, in the order of the calls that opened them; `name` is the front end's. */
typedef struct net_port {
    const char *name;
    uint16_t port;
} net_port;
unsigned net_server_ports(const net_server *server);
net_port net_server_port(const net_server *server, unsigned index);

/* Turns the guard on or off (guard.h): while it is on, requests that a web page may have sent are refused with E_WRONG_HOST. Any thread. */
void net_guard_turn(net_server *server, bool on);

net_loop *net_server_loop(net_server *server, unsigned index);
unsigned net_server_loops(const net_server *server);
unsigned net_server_connections(const net_server *server);

/* Counters since the start, and current values. Any thread. */
typedef struct net_stats {
    unsigned connections, authenticated;
    unsigned requests;         /* requests of all protocols being read, served or answered */
    unsigned drain_requests;   /* requests in flight when the server was stopped; it waits for them */
    unsigned drain_unanswered; /* how many of them drain_timeout_ms cut off */
    uint64_t refused_full;     /* connections refused because connections_max were open */
    uint64_t refused_address;  /* connections refused because their address had per_address_max */
    uint64_t displaced;        /* unauthenticated connections closed to make room for newer ones */
    uint64_t slow_clients;     /* connections closed for sending a body or reading an answer too slowly */
    uint64_t starved;          /* requests and answers refused because memory was short */
    uint64_t waiting_bytes;    /* unsent bytes of answers */
    uint64_t request_bytes;    /* memory of requests being served */
    uint64_t buffer_bytes;     /* memory of requests being read, and of answers being written or waiting to be sent */
    uint64_t memory_max;       /* limit for request_bytes and buffer_bytes, half for each */
} net_stats;
net_stats net_server_stats(const net_server *server);
sched_counts net_server_work(const net_server *server, net_lane lane); /* any thread */

/* Runs until net_stop (any thread, signal-safe), then drains and returns. Draining stops listening, closes idle connections, and answers
 * requests in flight of all protocols, for up to drain_timeout_ms; each connection closes after its last answer. The log says how many
 * requests there were. */
void net_run(net_server *server);
void net_stop(net_server *server);
void net_close(net_server *server); /* runs tasks posted after the drain, closes remaining connections, frees everything */

/* Starts a periodic timer on loop 0, for background work such as expiry. Call before net_run, or on loop 0. It ends with the server. */
void net_every(net_server *server, unsigned interval_ms, void (*tick)(void *context), void *context);
