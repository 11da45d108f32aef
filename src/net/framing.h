/* framing.h — where one HTTP/1.1 request ends and the next begins: bytes in, requests or refusals out. For the files of this folder.
 *
 * No sockets, no clock: the fuzz target drives it as the server does. The head is read by http-parser, whose build in Debian is the
 * lenient one, so what strict mode would refuse (blanks in names, bare line feeds, folded lines, HTTP/0.9, …) is refused here. Bodies,
 * plain and chunked, are counted here.
 *
 * The same bytes give the same requests and refusals however they are cut into reads. For that, whatever is wrong with a head is
 * decided when the head is whole (or malformed, or past its limit), not when the first sign of it is seen. */
#pragma once

#include <http_parser.h>

#include "net/http.h"
#include "net/input.h"

typedef struct http_limits {
    uint32_t head_bytes;
    uint32_t url_bytes;
    uint32_t fields;
    uint32_t body_bytes;    /* longer ones are thrown away … */
    uint32_t discard_bytes; /* … up to here, past which the connection is not worth keeping */
} http_limits;

extern const http_limits http_limits_default;

/* The names a front end asks for, hashed, and those that framing needs itself. */
typedef struct http_names http_names;
http_names *http_names_new(const char *const *fields, size_t fields_n);
void http_names_free(http_names *names);

typedef enum http_own_field {
    HTTP_OWN_NONE,
    HTTP_OWN_HOST,
    HTTP_OWN_ORIGIN,
    HTTP_OWN_EXPECT,
    HTTP_OWN_UPGRADE,
    HTTP_OWN_TRANSFER_ENCODING
} http_own_field;

/* The front end's number of a field, or -1 if it did not ask for it; own_out: which of the fields that net reads itself it is. The name
 * is not empty, and of the characters that HTTP allows in names. */
int http_names_find(const http_names *names, slice name, http_own_field *own_out);

/* A request's target: within the limit, of visible ASCII characters, without a fragment. */
bool http_url_allowed(slice url, const http_limits *limits);

/* ---- one request ---- */

typedef struct http_span {
    uint32_t at; /* from the request's first byte */
    uint32_t n;
} http_span;

typedef struct http_found {
    http_span value;
    uint8_t field;
} http_found;

enum { HTTP_FOUND_MAX = HTTP_FIELDS_MAX + 16 }; /* asked-for fields, repeated ones included */

typedef enum http_step {
    HTTP_MORE,     /* bytes are missing: keep the input, give more */
    HTTP_CONTINUE, /* the client waits for "100 Continue"; step again */
    HTTP_WHOLE,    /* a request: see the members below */
    HTTP_REFUSED,  /* see `refusal` */
} http_step;

typedef struct http_framing {
    /* the result, once HTTP_WHOLE; spans are valid until the input moves */
    http_span url;
    http_span host;
    http_span origin;
    http_span body;
    uint32_t used; /* bytes of the input that were this request */
    err refusal;
    uint8_t method; /* http-parser's number */
    uint8_t found_n;
    bool origin_seen; /* `origin` is there, be it empty */
    bool keep_alive;
    bool http10;
    bool websocket; /* it asks to be upgraded to one */
    bool body_too_large;
    bool abandon; /* too much is still to come: answer, then close */
    http_found found[HTTP_FOUND_MAX];

    /* at work */
    bool head_whole; /* may be looked at: which time-out applies */
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
    uint32_t parsed; /* bytes of the input looked at */
    uint32_t head_n;
    uint32_t overhead; /* bytes of chunk extensions and trailers */
    uint64_t left;     /* of the body, or of the chunk */
    uint64_t seen;     /* of the body */
    http_span name;
    http_span value;
    char *base;
    const http_names *names;
    const http_limits *limits;
    http_parser parser;
} http_framing;

void http_framing_start(http_framing *f, const http_names *names, const http_limits *limits);

/* The request begins at in->p. After HTTP_WHOLE skip `used` bytes; after HTTP_REFUSED the rest of the input means nothing. */
http_step http_framing_next(http_framing *f, net_input *in);
