/* http.h — HTTP/1.1 exchanges on a connection: framing, keep-alive, pipelining, limits, time-outs.
 *
 * A handler gets a whole request and must answer exactly once: at once, or later on the same loop's thread (net_post brings one there).
 * The next pipelined request of the connection waits until then. All slices of a request, and its arena, live until http_reply_end,
 * whatever becomes of the client meanwhile: an answer to a client that has gone is thrown away there, and nobody else need care. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "net/work.h"

/* The tag differs from the name because http_parser.h has an enum of that tag. */
typedef enum http_verb { VERB_GET, VERB_POST, VERB_PUT, VERB_PATCH, VERB_DELETE, VERB_HEAD, VERB_OPTIONS, VERB_OTHER } http_method;

enum {
    HTTP_FIELDS_MAX = 64, /* names a front end may ask for */
    HTTP_PEER_BYTES = 64,
};

typedef struct http_request {
    http_method method;
    slice verb;                   /* as sent: "GET" */
    slice path;                   /* raw, percent-encoded, up to '?'; visible ASCII only */
    slice query;                  /* after '?' */
    slice host;                   /* the Host field, or the host of an absolute URL */
    slice field[HTTP_FIELDS_MAX]; /* values of the asked-for fields, p NULL if absent; blanks trimmed, repeated ones joined by ", " */
    slice body;
    bool tls;
    bool body_too_large; /* the body passed LIMIT_BODY_BYTES and was thrown away: answer 413 */
    arena *arena;        /* its budget is the request's (net_options.request_memory_max) */
    net_client *client;
    void *context; /* the handler's own, from http_front */
} http_request;

/* What a front end gives net to serve a port with. It outlives the server. */
typedef struct http_front {
    const char *name;          /* for logs */
    const char *const *fields; /* lower-case field names; field[i] answers fields[i] */
    size_t fields_n;
    bool websockets; /* `handle` is given requests that ask for a WebSocket (websocket.h); otherwise they are refused with E_BAD_REQUEST */
    void (*handle)(http_request *request);
    /* Writes an answer for what never became a request (malformed, too large, timed out): the protocol's own form. Same rules as
     * handle, but only context, arena, loop and tls are there; path, host and body are empty. The connection closes afterwards. */
    void (*refuse)(http_request *request, err code);
    void *context;
} http_front;

/* Answering: start, fields, body, end. Status line, Date, Connection and Content-Length are net's. All on the loop's thread. */
void http_reply_start(http_request *r, unsigned status);
buf *http_reply_fields(http_request *r);                               /* append whole "Name: value\r\n" lines */
void http_reply_field(http_request *r, const char *name, slice value); /* line breaks in the value are dropped */
buf *http_reply_body(http_request *r);                                 /* ends the fields; append the body here */
void http_reply_end(http_request *r);                                  /* sends; r is gone. Without memory for the answer: `refuse` */

/* The request was authenticated, by a signature or a token: its connection is trusted from now on. It may stay idle for longer, and is not
 * closed when there are too many. */
void http_trust(http_request *r);

/* For a body that is to be written in another form at its end: what of it is written, valid until the next append; empty if it had no room.
 * http_reply_rewrite forgets it, not the fields. */
slice http_reply_written(http_request *r);
void http_reply_rewrite(http_request *r);

/* Cutting a reply back, for a body that turns out to fail midway: forget everything since http_reply_start, then start again. */
void http_reply_abandon(http_request *r);

/* Notes that this answer tells the client to retry after `ms`. Returns how many ms are left of the wait that an earlier answer on the same
 * connection told it; 0: none. */
unsigned http_told_to_wait(http_request *r, unsigned ms);

/* "127.0.0.1:5123" or "[::1]:5123", for logs. Returns `into`. */
const char *http_peer(const http_request *r, char into[static HTTP_PEER_BYTES]);

/* The address alone, as IPv6 has it: IPv4's as ::ffff:a.b.c.d. */
void http_peer_address(const http_request *r, uint8_t into[static 16]);
bool http_peer_is_local(const http_request *r); /* a loopback address */
