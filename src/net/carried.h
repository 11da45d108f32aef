/* carried.h — HTTP requests that arrive inside another protocol, the carrier: streams of HTTP/2, frames of rntbd.
 *
 * The carrier makes the request, fills in method, verb, path, query, host, fields, body and tls, and hands it to the front end's `handle`.
 * The front end answers it like any other request (http_reply_…). The carrier then gets the whole answer, once, on the loop's thread, and
 * sends it in its own form. The carrier also enforces the limits on size, time and number of requests. */
#pragma once

#include "net/frames.h"
#include "net/http.h"

/* Valid during `answered`. */
typedef struct http_answer {
    unsigned status;
    slice fields; /* whole "Name: value\r\n" lines, without Date, Connection and Content-Length */
    slice body;
    size_t length; /* the body's length, also if the body is omitted because the request was HEAD */
    buf **bytes;   /* the buffer of fields and body; a carrier that keeps it sets *bytes to NULL. NULL: there is no buffer */
} http_answer;

typedef struct http_carrier {
    const char *name;                                           /* for logs */
    void (*answered)(void *context, const http_answer *answer); /* called once; the request is freed afterwards */
    void (*trust)(void *context);                               /* called by http_trust */
    int64_t *(*wait_until)(void *context); /* where http_told_to_wait stores its time, per connection; NULL: the connection has closed */
} http_carrier;

/* Makes a request that arrived in a frame. It uses the frame's arena and client, so it must be answered before frames_end. Arena, client,
 * context, peer and tls are set; everything else is empty. */
http_request *http_carry(frames_request *frame, const http_front *front, const http_carrier *carrier, void *context);
