/* http.h — HTTP/1.1 exchanges on a connection: framing, keep-alive, pipelining, limits, timeouts.
 *
 * A handler gets a whole request and must answer exactly once: at once, or later on the same loop's thread (use net_post to get there). The
 * next pipelined request of the connection waits until then. All slices of a request, and its arena, live until http_reply_end, even if the
 * client disconnects. http_reply_end then discards the answer, so handlers need not check. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "net/work.h"

/* The tag differs from the name because http_parser.h has an enum of that tag. */
typedef enum http_verb { VERB_GET, VERB_POST, VERB_PUT, VERB_PATCH, VERB_DELETE, VERB_HEAD, VERB_OPTIONS, VERB_OTHER } http_method;

enum {
    HTTP_FIELDS_MAX = 64, /* max. number of field names that a front end may ask for */
    HTTP_PEER_BYTES = 64,
};

typedef struct http_request {
    http_method method;
    slice verb;                   /* as sent: "GET" */
    slice path;                   /* raw, percent-encoded, up to '?'; visible ASCII only */
    slice query;                  /* after '?' */
    slice host;                   /* the Host field, or the host of an absolute URL */
    slice field[HTTP_FIELDS_MAX]; /* values of the asked-for fields; p NULL if absent. Blanks are trimmed, repeated fields joined by ", " */
    slice body;
    bool tls;
    bool body_too_large; /* the body exceeded LIMIT_BODY_BYTES and was discarded: answer 413 */
    arena *arena;        /* its budget is net_options.request_memory_max */
    net_client *client;
    void *context; /* http_front.context */
} http_request;

/* Describes a front end that serves a port. Outlives the server. */
typedef struct http_front {
    const char *name;          /* for logs */
    const char *const *fields; /* lower-case field names; http_request.field[i] is the value of fields[i] */
    size_t fields_n;
    bool websockets; /* `handle` also gets WebSocket upgrade requests (websocket.h); otherwise they are refused with E_BAD_REQUEST */
    void (*handle)(http_request *request);
    /* Answers input that never became a request (malformed, too large, timed out), in the protocol's own form. Same rules as handle, but
     * only context, arena, loop and tls are set; path, host and body are empty. The connection closes afterwards. */
    void (*refuse)(http_request *request, err code);
    void *context;
} http_front;

/* Answering: start, fields, body, end. Net itself writes status line, Date, Connection and Content-Length. All on the loop's thread. */
void http_reply_start(http_request *r, unsigned status);
buf *http_reply_fields(http_request *r);                               /* append whole "Name: value\r\n" lines */
void http_reply_field(http_request *r, const char *name, slice value); /* line breaks in the value are dropped */
buf *http_reply_body(http_request *r);                                 /* ends the fields; append the body here */
void http_reply_end(http_request *r); /* sends the answer and frees r; calls `refuse` if there is no memory for the answer */

/* The request was authenticated, by a signature or a token: its connection is trusted from now on. It may stay idle for longer, and is not
 * closed to make room for others. */
void http_trust(http_request *r);

/* For a caller that converts the body to another format at its end. http_reply_written returns the body so far, valid until the next
 * append; empty if it did not fit. http_reply_rewrite discards the body and keeps the fields. */
slice http_reply_written(http_request *r);
void http_reply_rewrite(http_request *r);

/* Discards the reply since http_reply_start, so that it can be started again: for a body that fails midway. */
void http_reply_abandon(http_request *r);

/* Records that this answer tells the client to retry after `ms`. Returns how many ms are left of the wait that an earlier answer on the
 * same connection demanded; 0: none. */
unsigned http_told_to_wait(http_request *r, unsigned ms);

/* "127.0.0.1:5123" or "[::1]:5123", for logs. Returns `into`. */
const char *http_peer(const http_request *r, char into[static HTTP_PEER_BYTES]);

/* The address without the port, in IPv6 form: IPv4 is mapped to ::ffff:a.b.c.d. */
void http_peer_address(const http_request *r, uint8_t into[static 16]);
bool http_peer_is_local(const http_request *r); /* a loopback address */
