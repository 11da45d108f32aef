/* frames.h — a protocol of length-prefixed frames: many requests in flight on one connection, answers in any order.
 *
 * A front end says how many bytes a frame's header has and how to read the frame's length from them, or from more of the frame; it gets
 * whole frames on a loop's thread. Each frame is a request. The front end ends each request exactly once (frames_end), at once or later on
 * the same loop's thread, with or without an answer. Answers are sent in the order in which requests end. Messages of a WebSocket are
 * frames too: see websocket.h.
 *
 * Bounds. A frame has a maximum size. A connection has a maximum number of requests in flight, and of their bytes: while either is reached,
 * no more input is parsed, and the socket is not read. All three limits are smaller until the front end has authenticated the peer
 * (frames_trust). Input, requests and answers count against net_options.memory_max, and connections of slow senders and readers are closed,
 * as with HTTP (server.h).
 *
 * Lifetimes. A request's frame and arena live until frames_end. A connection's object, and the front end's state in it, live until the
 * connection has closed and its last request has ended: then `closed` is called. So r->conn is always valid during a request, even after
 * the client has disconnected. All calls are on the connection's loop. */
#pragma once

#include "base/pieces.h"
#include "net/server.h"

typedef struct frames_conn frames_conn;
typedef struct frames_front frames_front;

typedef struct frames_request {
    arena *arena; /* its budget is net_options.request_memory_max */
    net_client client;
    slice frame; /* header and body; for a WebSocket, the message */
    bool text;   /* WebSocket: the message is UTF-8 text; the answer will be text too, unless the front end changes this */
    frames_conn *conn;
    void *context; /* the front end's own, from frames_front */
} frames_request;

typedef struct frames_limits {
    uint32_t frame_bytes;
    uint32_t in_flight;     /* max. requests of one connection */
    size_t in_flight_bytes; /* max. bytes of their frames */
} frames_limits;

/* Describes a front end that serves a port. Outlives the server. */
struct frames_front {
    const char *name;      /* for logs and the list of ports */
    uint32_t header_bytes; /* bytes that `length` needs: 1 to FRAMES_HEADER_MAX. Not for WebSockets */
    /* Reads the frame's length, header included, from the header's bytes. False: the header is invalid. Not for WebSockets. */
    bool (*length)(frames_conn *conn, const uint8_t *header, uint64_t *bytes_out);
    /* For frames whose length the header alone does not tell; otherwise NULL. Called when *bytes_out bytes of the frame have come. If the
     * frame is longer, raises *bytes_out, and is called again when that many have come. False: the frame is malformed. */
    bool (*extend)(frames_conn *conn, slice begun, uint64_t *bytes_out);
    bool apart;                        /* over TLS, each answer begins a new record. Not for WebSockets */
    frames_limits untrusted, trusted;  /* before frames_trust and after it */
    unsigned idle_timeout_ms;          /* for trusted connections; 0: net_options.idle_timeout_ms */
    size_t state_bytes;                /* size of the front end's state in each connection, zeroed; see frames_state */
    void (*opened)(frames_conn *conn); /* may be NULL */
    void (*closed)(frames_conn *conn); /* may be NULL; frees what the state points to */
    void (*handle)(frames_request *request);
    /* Like handle, but answers with an error. With E_BUSY_MEMORY or E_INTERNAL the request was whole, but there is no memory for it or its
     * answer, or the answer was too large; the connection stays open. With any other code the frame is malformed (E_BAD_REQUEST) or too
     * large (E_TOO_LARGE), came too slowly (E_TIMEOUT), or there are too many connections; `frame` has the bytes that `length` or `extend`
     * was last called with, otherwise it is empty, and the connection closes after the answer. */
    void (*refuse)(frames_request *request, err code);
    void *context;
};

enum { FRAMES_HEADER_MAX = 64 };

/* Listens for frames; see net_listen. */
MUST_CHECK err net_listen_frames(net_server *server, const char *host, uint16_t port, const frames_front *front, uint16_t *port_out,
                                 char *why, size_t why_n);

/* ---- answering ---- */

/* Append the answer here: one or more whole frames, or none; for a WebSocket one message, without its header. There is always room for a
 * small answer. If there is no memory for a large one, `refuse` is called and the answer is dropped. */
buf *frames_out(frames_request *r);
/* Moves the pieces to the end of the answer, without copying; `p` is left empty, and nothing is appended afterwards. Not for WebSockets. */
void frames_attach(frames_request *r, pieces *p);
void frames_abandon(frames_request *r); /* discards the answer so far (since the request came, or since frames_flush) */
void frames_end(frames_request *r);     /* sends the answer and frees r */

/* Sends the answer so far. `go_on` is called, from the loop, once the client has taken it, or has left (r->client.left). So a long answer
 * is made only as fast as the client reads. If there was no memory for the answer so far, `refuse` is called instead of `go_on`. */
void frames_flush(frames_request *r, void (*go_on)(frames_request *r));

/* Makes a request without a frame, to send an event that no client asked for. It counts as in flight, and is ended like others. NULL: the
 * connection is closing, or the client is not reading, so that the event should be dropped. */
frames_request *frames_begin(frames_conn *conn);
bool frames_is_stuck(const frames_conn *conn); /* the client has not taken all output yet */

/* ---- the connection ---- */

void *frames_state(frames_conn *conn);
void *frames_context(const frames_conn *conn); /* frames_front.context */
net_loop *frames_loop(const frames_conn *conn);
bool frames_is_tls(const frames_conn *conn);
bool frames_is_trusted(const frames_conn *conn);
void frames_trust(frames_conn *conn); /* the peer has authenticated: larger limits, longer timeouts, no displacement by newer connections */
void frames_welcome(frames_conn *conn); /* the peer speaks the protocol: between requests it may be idle as long as a trusted one */
void frames_finish(frames_conn *conn);  /* stops reading; closes once requests in flight are answered */

/* The address and port that the client has connected to, "127.0.0.1:10255"; makes a system call. "" after the connection has closed. */
const char *frames_local(const frames_conn *conn, char into[static HTTP_PEER_BYTES]);
/* The host name that the client has asked for in its TLS handshake (SNI); empty: none. Valid while the connection is open. */
slice frames_server_name(const frames_conn *conn);

/* See http_peer, http_peer_address and http_peer_is_local. */
const char *frames_peer(const frames_conn *conn, char into[static HTTP_PEER_BYTES]);
void frames_peer_address(const frames_conn *conn, uint8_t into[static 16]);
bool frames_peer_is_local(const frames_conn *conn);
