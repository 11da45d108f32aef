/* http_int.h — HTTP as a net_protocol. Private to this folder. */
#pragma once

#include "net/carried.h"
#include "net/conn.h"
#include "net/framing.h"
#include "net/http2.h"
#include "net/request_int.h"

/* The context of HTTP connections of one listening port. */
typedef struct http_service {
    const http_front *front;
    const http_limits *limits;
    http_names *names;
    http2_setup *http2;
    struct http_service *next; /* in the server's list */
} http_service;

http_service *http_service_new(const http_front *front);
void http_service_free(http_service *service);

/* A protocol that the connection switches to. From malloc; http.c frees it after `begin`, or if `begin` is never called. */
typedef struct http_switch http_switch;
struct http_switch {
    const net_protocol *protocol;
    void (*begin)(http_switch *to, net_conn *c); /* called instead of the protocol's `opened` */
};

/* Starts a 101 answer, instead of http_reply_start. Once that answer ends, the protocol gets the bytes after the request. Takes ownership
 * of `to`. */
void http_switch_start(http_request *r, http_switch *to);

/* Fields that net adds after the front end's own if it accepts WebSockets. */
typedef enum http_websocket_name {
    HTTP_WEBSOCKET_KEY,
    HTTP_WEBSOCKET_VERSION,
    HTTP_WEBSOCKET_PROTOCOL,
    HTTP_WEBSOCKET_NAMES
} http_websocket_name;
slice http_websocket_field(const http_request *r, http_websocket_name name);

extern const net_protocol http_protocol; /* its context is an http_service */

void http_free_exchanges(net_loop *loop); /* frees the unused exchanges */

/* HTTP's state of a connection. An idle connection holds no buffers. */
typedef struct http_conn {
    const http_service *service;
    http_exchange *exchange; /* being read, or handed to the front end; NULL: idle */
    net_input in;
    buf *out;              /* answers to be sent; NULL: none */
    net_held held;         /* to send small answers at the end of the turn */
    http_switch *to;       /* the protocol to switch to once the last answer is sent; NULL: none */
    int64_t wait_until_ms; /* on the loop's clock: see http_told_to_wait */
    net_reading reading;   /* timing of the exchange being read */
    bool is_http1;         /* the first bytes were not those of HTTP/2 */
    bool handed;
    bool idle; /* the idle timeout is running; empty lines do not restart it */
    bool pumping;
    bool ended;  /* the client sends no more */
    bool last;   /* the last answer has been written */
    bool linger; /* linger when closing: the client may still be sending */
} http_conn;

/* One request and its answer. Taken from the loop's free list when the first byte comes, returned when the answer ends. */
struct http_exchange {
    http_request request; /* must be first: front ends hold a pointer to it */
    http_conn *conn;      /* NULL: the client has disconnected, or the request is carried */
    const http_front *front;
    net_client client;   /* request.client, unless the request is carried */
    http_exchange *next; /* in the free list */
    const http_service *service;
    net_peer peer;
    net_serving serving;
    http_framing framing;

    buf *out;         /* NULL: no reply started; otherwise the connection's, or the exchange's own if the client has disconnected */
    size_t reply_at;  /* offset of this reply in `out` */
    size_t length_at; /* offset of the Content-Length's ten digits; 0: none */
    size_t body_at;   /* offset of the body; 0: the fields are still being written */
    unsigned status;
    http_switch *to; /* set by a 101 answer */
    bool last;       /* the connection closes after the answer */
    bool linger;
    bool starved; /* being refused because there was no memory for its answer */

    const http_carrier *carrier; /* NULL: it came by HTTP/1.1 */
    void *carrier_context;
};

/* Makes the exchange of a carried request in an arena that lives until the answer. The carrier counts requests and clients. */
http_exchange *http__carried_new(arena *a, net_client *client, const net_peer *peer, const http_front *front, const http_carrier *carrier,
                                 void *context);

/* ---- shared with HTTP/2 ---- */

http_method http__method(unsigned method); /* from http-parser's number */
void http__split_url(http_request *r, slice url);
slice http__joined(arena *a, slice first, slice more); /* joins the values of a repeated field: RFC 9110, 5.3 */
slice http__date(net_loop *loop);                      /* the current value of the Date field */
void http__refuse(http_exchange *x, err code);         /* calls the front end's `refuse`, with an empty request */

/* Whether the guard allows the request. The host of an absolute URL or of :authority replaces the Host field, so the guard must allow both.
 */
bool http__is_welcome(net_conn *c, const http_request *r, slice host_field, slice origin);

/* ---- answers ---- */

void http_send_answered(http_exchange *x); /* sends the connection's complete answers, before this exchange's own begins */

/* The answer is complete (called by reply.c): frees the exchange and continues with the connection's next request. */
void http_answered(http_exchange *x);
