/* http2_int.h — connections of HTTP/2 and their streams. For http2.c (the connection) and http2_stream.c (requests and answers).
 *
 *   READING ── request is whole, or refused ──► SERVED ── answered ──► ANSWERED ── sent, or reset ──► freed
 *      └── reset ──► freed                        └── reset: `reset` is set; freed when the front end has answered
 *
 * The connection's object outlives its net_conn while requests are SERVED (conn->net NULL). */
#pragma once

#include <nghttp2/nghttp2.h>

#include "net/http_int.h"

enum {
    HTTP2_STREAMS_MAX = 100,                       /* of one connection, in any state */
    HTTP2_WINDOW_BYTES = 1024 * 1024,              /* that a client may send ahead, per stream and per connection */
    HTTP2_DATA_BYTES = NET_OUT_LEAST_BYTES - 1024, /* of one DATA frame: with its header it fits any output buffer */
};

typedef struct http2_conn http2_conn;
typedef struct http2_stream http2_stream;

typedef enum http2_state { HTTP2_READING, HTTP2_SERVED, HTTP2_ANSWERED } http2_state;

/* How fast a request comes in, or an answer is taken; the same rule as for a connection of HTTP/1.1 (net_time_left). */
typedef struct http2_pace {
    int64_t began_ms;
    int64_t due_ms;  /* when the stream is too slow */
    int64_t bytes;   /* moved, but for `progress` */
    size_t progress; /* since due_ms was last moved */
} http2_pace;

struct http2_stream {
    http2_conn *conn;
    http_exchange *exchange; /* in the arena; NULL once answered */
    net_client client;
    net_serving serving;
    http2_stream *next, *prev; /* of the connection; `next` in the stock */
    int32_t id;
    uint8_t state; /* http2_state */
    bool head_whole;
    bool expects_continue;
    bool unread; /* the answer does not wait for the rest of the request */
    bool reset;  /* nghttp2 has forgotten it: the answer is thrown away */
    http2_pace pace;

    /* READING */
    err refusal;
    unsigned fields;
    size_t head_bytes;
    slice url, host, origin; /* p NULL: not seen; the request's own host is that of :authority */
    uint64_t length;         /* as announced; UINT64_MAX: it was not */
    uint64_t seen;           /* of the body */
    buf body;

    /* ANSWERED */
    buf *out; /* fields and body; the latter is from `at` to `end`. NULL: there are none */
    size_t at, end;
    char status[8], length_text[24], date[32]; /* further fields */
};

struct http2_conn {
    net_conn *net; /* NULL: it has closed */
    net_loop *loop;
    const http_service *service;
    nghttp2_session *session; /* NULL: it has closed */
    net_peer peer;
    http2_stream *streams;
    unsigned streams_n, served_n;
    net_input in;      /* holds no bytes; weighs the bodies that are being read */
    size_t body_bytes; /* of memory of those */
    buf last_fields;   /* of the last answer */
    buf *out;          /* frames that are being written; NULL outside of `flush` */
    net_held held;
    int64_t wait_until_ms; /* see http_told_to_wait */
    int64_t calm, calm_ms; /* see http2__spend */
    bool calm_lost;
    bool pumping; /* nghttp2 is reading: answers are sent when it has done */
    bool paused;  /* nghttp2 has more to send */
    bool idle;    /* the time that a connection may be idle runs */
    bool ended;   /* the client sends no more */
    bool linger;  /* at the end: the client may not have stopped sending */
};

/* ---- http2.c ---- */

void http2__send_soon(http2_conn *f);

/* Frames that cost us more than their sender: resets of streams that were not answered, pings, settings. Each has its price; the connection
 * earns by time, by answers and by the bytes they have. False: it has spent all, and ends. */
bool http2__spend(http2_conn *f, unsigned price);
void http2__earn(http2_conn *f, unsigned price);
void http2__freed(http2_conn *f); /* a stream is gone, the connection's last call perhaps: f may be too */

/* ---- http2_stream.c ---- */

http2_stream *http2__stream_new(http2_conn *f, int32_t id);
bool http2__field(http2_stream *s, slice name, slice value); /* of head or trailers. False: an attack, the connection is to end */
void http2__head(http2_stream *s, bool whole);               /* the head is there; `whole`: no body comes */
void http2__body(http2_stream *s, slice bytes);
void http2__whole(http2_stream *s);            /* hands the request over; s may be gone */
void http2__refuse(http2_stream *s, err code); /* a READING stream, which may be gone after it */
void http2__stream_closed(http2_stream *s);    /* nghttp2 has closed it, or the connection is closed; s may be gone */
void http2__stream_slow(http2_stream *s);      /* it is too slow: refused, or reset */
void http2__moved(http2_stream *s, size_t n);  /* bytes of it came in or went out */
void http2__wait_anew(http2_stream *s);        /* an ANSWERED stream could not be sent, for no fault of its own */
ssize_t http2__read_answer(nghttp2_session *session, int32_t id, uint8_t *into, size_t n, uint32_t *flags, nghttp2_data_source *source,
                           void *conn);
