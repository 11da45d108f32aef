/* framing.h — splits a byte stream into HTTP/1.1 requests and refusals. Private to this folder.
 *
 * No sockets, no clock: the fuzz target calls it as the server does. head.c reads the head of an ordinary request that came in one read,
 * and http-parser all others. Debian builds http-parser in lenient mode, so this module refuses what strict mode would (blanks in names,
 * bare line feeds, folded lines, HTTP/0.9, …). It also reads the bodies, plain and chunked.
 *
 * The same bytes give the same requests and refusals however they are split into reads. For that, errors in a head are reported when the
 * head is complete (or malformed, or past its limit), not when the first sign of one is seen. */
#pragma once

#include <http_parser.h>

#include "net/http.h"
#include "net/input.h"
#include "net/names.h"

typedef struct http_limits {
    uint32_t head_bytes;
    uint32_t url_bytes;
    uint32_t fields;
    uint32_t body_bytes;    /* a longer body is refused; it is still read, up to discard_bytes */
    uint32_t discard_bytes; /* a body beyond this size closes the connection */
    bool parser_only;       /* http-parser reads every head, also the ordinary ones (head.h): for tests that compare */
} http_limits;

extern const http_limits http_limits_default;

/* A request's target: within the limit, of visible ASCII characters, without a fragment. */
bool http_url_allowed(slice url, const http_limits *limits);

/* ---- one request ---- */

typedef struct http_span {
    uint32_t at; /* offset from the request's first byte */
    uint32_t n;
} http_span;

typedef struct http_found {
    http_span value;
    uint8_t field;
} http_found;

enum { HTTP_FOUND_MAX = HTTP_FIELDS_MAX + 16 }; /* maximum number of asked-for fields in a request, counting repeats */

typedef enum http_step {
    HTTP_MORE,     /* bytes are missing: keep the input and add more */
    HTTP_CONTINUE, /* the client waits for "100 Continue"; call again after sending it */
    HTTP_WHOLE,    /* a whole request: see the members below */
    HTTP_REFUSED,  /* see `refusal` */
} http_step;

typedef struct http_framing {
    /* The result, after HTTP_WHOLE; spans are valid until the input moves. */
    http_span url;
    http_span host;
    http_span origin;
    http_span body;
    uint32_t used; /* bytes of the input that this request took */
    err refusal;
    uint8_t method; /* http-parser's number */
    uint8_t found_n;
    bool origin_seen; /* there is an Origin field, perhaps empty */
    bool keep_alive;
    bool http10;
    bool websocket; /* the request asks for an upgrade to WebSocket */
    bool body_too_large;
    bool abandon; /* too much of the body is still to come: answer, then close */
    http_found found[HTTP_FOUND_MAX];

    /* Internal state. */
    bool head_whole; /* the head is complete. Callers read it to choose a timeout */
    bool ordinary;   /* http-parser was not needed. Tests read it */
    bool expects_continue;
    bool chunked;
    bool field_open;
    bool value_open;
    bool host_seen;
    bool upgrade_h2c;
    bool upgrade_websocket;
    uint8_t chunk_state;
    uint8_t chunk_digits;
    uint32_t fields;
    uint32_t parsed; /* bytes of the input parsed so far */
    uint32_t head_n;
    uint32_t overhead; /* bytes of chunk extensions and trailers */
    uint64_t left;     /* bytes still to come of the body, or of the chunk */
    uint64_t seen;     /* body bytes received in chunks */
    http_span name;
    http_span value;
    char *base;
    const http_names *names;
    const http_limits *limits;
    http_parser parser;
} http_framing;

void http_framing_start(http_framing *f, const http_names *names, const http_limits *limits);

/* The request begins at in->p. After HTTP_WHOLE, skip `used` bytes; after HTTP_REFUSED, ignore the rest of the input. */
http_step http_framing_next(http_framing *f, net_input *in);
