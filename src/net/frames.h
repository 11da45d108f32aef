/* frames.h — a protocol of length-prefixed frames: many requests in flight on one connection, answers in any order.
 *
 * A front end says how many bytes a frame's header has and how to read the frame's length from them; it gets whole frames on a loop's
 * thread. Each frame is a request and is ended exactly once (frames_end), at once or later on the same loop's thread, with an answer or
 * without one. Answers go out in the order in which they are ended. Messages of a WebSocket are frames too: see websocket.h.
 *
 * Bounds. A frame has a largest size. A connection has a largest number of requests in flight and of their bytes: while either is reached,
 * nothing more of it is parsed, and its socket is not read. All three are smaller until the front end has authenticated the peer
 * (frames_trust). Input, requests and answers are counted against net_options.memory_max, and slow senders and readers are ended, as with
 * HTTP (server.h).
 *
 * Lifetimes. A request's frame and arena live until frames_end. A connection's object and the front end's state in it live until the
 * connection has closed and its last request has ended: then `closed` is called. So a request may always use r->conn, whatever became of
 * the client. All calls are on the connection's loop. */
#pragma once

#include "base/buf.h"
#include "net/server.h"

typedef struct frames_conn frames_conn;
typedef struct frames_front frames_front;

typedef struct frames_request {
    arena *arena; /* its budget is the request's (net_options.request_memory_max) */
    net_client client;
    slice frame; /* header and body; of a WebSocket, the message */
    bool text;   /* of a WebSocket: the message is text, in UTF-8; so will the answer be, unless this is changed */
    frames_conn *conn;
    void *context; /* the front end's own, from frames_front */
} frames_request;

typedef struct frames_limits {
    uint32_t frame_bytes;
    uint32_t in_flight;     /* requests of one connection */
    size_t in_flight_bytes; /* of their frames */
} frames_limits;

/* What a front end gives net to serve a port with. It outlives the server. */
struct frames_front {
    const char *name;      /* for logs and the list of ports */
    uint32_t header_bytes; /* that `length` needs: 1 to FRAMES_HEADER_MAX. Not for WebSockets */
    /* The whole frame's length, its header included, from the header's bytes. False: they are no header. Not for WebSockets. */
    bool (*length)(frames_conn *conn, const uint8_t *header, uint64_t *bytes_out);
    frames_limits untrusted, trusted;  /* before frames_trust and after it */
    unsigned idle_timeout_ms;          /* of a trusted connection without a request; 0: net_options.idle_timeout_ms */
    size_t state_bytes;                /* of the front end's own memory in each connection, zeroed: frames_state */
    void (*opened)(frames_conn *conn); /* may be NULL */
    void (*closed)(frames_conn *conn); /* may be NULL; frees what the state points to */
    void (*handle)(frames_request *request);
    /* Like handle, but to say why there is no answer. E_BUSY_MEMORY, E_INTERNAL: the request was whole, but there is no memory for it or
     * its answer, or that was larger than any may be; the connection goes on. Any other code: the frame is malformed (E_BAD_REQUEST), too
     * large (E_TOO_LARGE), came too slowly (E_TIMEOUT), or there are too many connections; `frame` has the header if that was whole, or
     * else is empty, and the connection closes after the answer. */
    void (*refuse)(frames_request *request, err code);
    void *context;
};

enum { FRAMES_HEADER_MAX = 64 };

/* Listens, as net_listen does. */
MUST_CHECK err net_listen_frames(net_server *server, const char *host, uint16_t port, const frames_front *front, uint16_t *port_out,
                                 char *why, size_t why_n);

/* ---- answering ---- */

/* Append the answer here: one whole frame, or several, or none; for a WebSocket one message, without its header. Small answers always have
 * room; a large one may find none, and then `refuse` is called instead of the answer being sent. */
buf *frames_out(frames_request *r);
void frames_abandon(frames_request *r); /* forgets what was appended since the request came or since frames_flush */
void frames_end(frames_request *r);     /* sends; r is gone */

/* Sends what was appended; the request goes on when `go_on` is called, from the loop, once the client has taken it, or has left:
 * r->client.left. So a long answer is made only as fast as it is read. If what was appended had no room, `refuse` is called, and `go_on`
 * never is. */
void frames_flush(frames_request *r, void (*go_on)(frames_request *r));

/* A request of our own, to send what no client asked for (events). It has no frame, counts in flight, and is ended like others. NULL: the
 * connection closes, or the client does not read, and then nothing more is made for it. */
frames_request *frames_begin(frames_conn *conn);

/* ---- the connection ---- */

void *frames_state(frames_conn *conn);
void *frames_context(const frames_conn *conn); /* frames_front.context */
net_loop *frames_loop(const frames_conn *conn);
bool frames_is_tls(const frames_conn *conn);
bool frames_is_trusted(const frames_conn *conn);
void frames_trust(frames_conn *conn); /* its peer has authenticated: larger limits, longer time-outs, and it is not closed for newer ones */
void frames_finish(frames_conn *conn); /* nothing more is read; it closes once what is in flight has been answered */

/* See http_peer, http_peer_address and http_peer_is_local. */
const char *frames_peer(const frames_conn *conn, char into[static HTTP_PEER_BYTES]);
void frames_peer_address(const frames_conn *conn, uint8_t into[static 16]);
bool frames_peer_is_local(const frames_conn *conn);
