/* http_int.h — HTTP as a protocol of connections. For the files of this folder. */
#pragma once

#include "net/carried.h"
#include "net/conn.h"
#include "net/framing.h"
#include "net/http2.h"
#include "net/request_int.h"

/* What a listening port needs to speak HTTP: the context of its connections. */
typedef struct http_service {
    const http_front *front;
    const http_limits *limits;
    http_names *names;
    http2_setup *http2;
    struct http_service *next; /* the server's list */
} http_service;

http_service *http_service_new(const http_front *front);
void http_service_free(http_service *service);

/* Another protocol that a connection goes on with. From malloc; freed by http.c after `begin`, or if that is never called. */
typedef struct http_switch http_switch;
struct http_switch {
    const net_protocol *protocol;
    void (*begin)(http_switch *to, net_conn *c); /* instead of the protocol's `opened` */
};

/* Starts the answer 101, instead of http_reply_start; the protocol gets what follows the request once the answer is ended. `to` is taken.
 */
void http_switch_start(http_request *r, http_switch *to);

/* Fields that are asked for if the front end takes WebSockets: behind its own. */
typedef enum http_websocket_name {
    HTTP_WEBSOCKET_KEY,
    HTTP_WEBSOCKET_VERSION,
    HTTP_WEBSOCKET_PROTOCOL,
    HTTP_WEBSOCKET_NAMES
} http_websocket_name;
slice http_websocket_field(const http_request *r, http_websocket_name name);

extern const net_protocol http_protocol; /* its context: an http_service */

void http_free_exchanges(net_loop *loop); /* those that no request uses */

/* What HTTP knows of a connection. Idle, it holds no buffers. */
typedef struct http_conn {
    const http_service *service;
    http_exchange *exchange; /* being read, or handed to the front end; NULL: idle */
    net_input in;
    buf *out;              /* answers that are to be sent; NULL: none */
    net_held held;         /* if they are small */
    http_switch *to;       /* the protocol to go on with, once the last answer is sent; NULL: none */
    int64_t wait_until_ms; /* of the loop's clock: see http_told_to_wait */
    net_reading reading;   /* of the exchange that is being read */
    bool is_http1;         /* its first bytes have shown that it is not HTTP/2 */
    bool handed;
    bool idle; /* the time that a connection may be idle runs; empty lines do not begin it anew */
    bool pumping;
    bool ended;  /* the client sends no more */
    bool last;   /* the last answer has been written */
    bool linger; /* and the client may not have stopped sending */
} http_conn;

/* One request and its answer. From a loop's stock when the first byte comes, back to it when the answer ends. */
struct http_exchange {
    http_request request; /* first: the front end's pointer is ours */
    http_conn *conn;      /* NULL: the client has gone, or the request is carried */
    const http_front *front;
    net_client client;   /* request.client, unless the request is carried */
    http_exchange *next; /* in the stock */
    const http_service *service;
    net_peer peer;
    net_serving serving;
    http_framing framing;

    buf *out;         /* NULL: no reply started; else the connection's, or the exchange's own once the client has gone */
    size_t reply_at;  /* where in it this reply begins */
    size_t length_at; /* of the Content-Length's ten places; 0: none */
    size_t body_at;   /* 0: still in the fields */
    unsigned status;
    http_switch *to; /* of an answer 101 */
    bool last;       /* the connection closes after the answer */
    bool linger;
    bool starved; /* it is being refused, since there was no memory for its answer */

    const http_carrier *carrier; /* NULL: it came by HTTP/1.1 */
    void *carrier_context;
};

/* Makes the exchange of a carried request in an arena that lives until it is answered. Requests and clients are counted by the carrier. */
http_exchange *http__carried_new(arena *a, net_client *client, const net_peer *peer, const http_front *front, const http_carrier *carrier,
                                 void *context);

/* ---- what HTTP/2 shares ---- */

http_method http__method(unsigned method); /* from http-parser's number */
void http__split_url(http_request *r, slice url);
slice http__joined(arena *a, slice first, slice more); /* values of a repeated field: RFC 9110, 5.3 */
slice http__date(net_loop *loop);                      /* now, as the field Date has it */
void http__refuse(http_exchange *x, err code);         /* by the front end, which is shown nothing of the request */

/* Whether the guard lets the request pass. The host of a URL or of :authority replaces the field's; the guard must allow both. */
bool http__is_welcome(net_conn *c, const http_request *r, slice host_field, slice origin);

/* ---- answers ---- */

void http_send_answered(http_exchange *x); /* sends the connection's answers that are whole. The exchange's own has not begun */

/* The answer is written (reply.c): the exchange goes back, the connection goes on. */
void http_answered(http_exchange *x);
