/* carried.h — requests of an HTTP front end that another protocol carries: streams of HTTP/2, frames of rntbd.
 *
 * The carrier makes the request, fills in method, verb, path, query, host, fields, body and tls, and hands it to the front end's `handle`.
 * The front end answers it as it answers any other (http_reply_…). The carrier is then given the whole answer, once, on the loop's
 * thread; what it sends of it, and when, is its own business. Bounds on size, time and number of requests are the carrier's too. */
#pragma once

#include "net/frames.h"
#include "net/http.h"

/* Valid during `answered`. */
typedef struct http_answer {
    unsigned status;
    slice fields; /* whole "Name: value\r\n" lines, without Date, Connection and Content-Length */
    slice body;
    size_t length; /* of the body, also if it is left out: the request was HEAD */
    buf **bytes;   /* the output buffer that fields and body lie in; a carrier that keeps it sets *bytes to NULL. NULL: there is none */
} http_answer;

typedef struct http_carrier {
    const char *name;                                           /* for logs */
    void (*answered)(void *context, const http_answer *answer); /* the request is gone after it */
    void (*trust)(void *context);                               /* http_trust */
    int64_t *(*wait_until)(void *context);                      /* the connection's place for http_told_to_wait; NULL: it has gone */
} http_carrier;

/* A request that a frame carries. It has the frame's arena and client, so it must be answered before frames_end. All but these, the
 * context and the peer is empty. */
http_request *http_carry(frames_request *frame, const http_front *front, const http_carrier *carrier, void *context);
