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
    HTTP2_STREAMS_MAX = 100,                       /* streams of one connection, in any state */
    HTTP2_WINDOW_BYTES = 1024 * 1024,              /* bytes that a client may send ahead, per stream and per connection */
    HTTP2_DATA_BYTES = NET_OUT_LEAST_BYTES - 1024, /* payload of one DATA frame: with its header it fits any output buffer */
};

typedef struct http2_conn http2_conn;
typedef struct http2_stream http2_stream;

typedef enum http2_state { HTTP2_READING, HTTP2_SERVED, HTTP2_ANSWERED } http2_state;

/* Progress of a request being received, or of an answer being sent. The rule is that of HTTP/1.1 connections (net_time_left). */
typedef struct http2_pace {
    int64_t began_ms;
    int64_t due_ms;  /* the deadline */
    int64_t bytes;   /* received or sent, without `progress` */
    size_t progress; /* bytes since due_ms was last renewed */
} http2_pace;

struct http2_stream {
    http2_conn *conn;
    http_exchange *exchange; /* in the arena; NULL once answered */
    net_client client;
    net_serving serving;
    http2_stream *next, *prev; /* the connection's list; free streams use only `next` */
    int32_t id;
    uint8_t state; /* http2_state */
    bool head_whole;
    bool expects_continue;
    bool unread; /* the request was answered before its end; the rest is not read */
    bool reset;  /* nghttp2 has closed the stream: the answer is discarded */
    http2_pace pace;

    /* READING */
    err refusal;
    unsigned fields;
    size_t head_bytes;
    slice url, host, origin; /* p NULL: not received; request.host is :authority */
    uint64_t length;         /* content-length; UINT64_MAX: none was sent */
    uint64_t seen;           /* bytes of the body received */
    buf body;

    /* ANSWERED */
    buf *out; /* fields and body; the unsent body is from `at` to `end`. NULL: none */
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
    net_input in;      /* counts the memory of bodies being received; holds no bytes */
    size_t body_bytes; /* memory of those bodies */
    buf last_fields;   /* the fields of the last answer */
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

/* Flood protection. Frames that carry no request, and streams that end unanswered, have a price. The connection earns by time, by answers
 * and by bytes of answers sent. False: it has spent everything and must be closed. */
bool http2__spend(http2_conn *f, unsigned price);
void http2__earn(http2_conn *f, unsigned price);
void http2__freed(http2_conn *f); /* a stream was freed: frees f if it was the last one of a closed connection */

/* ---- http2_stream.c ---- */

http2_stream *http2__stream_new(http2_conn *f, int32_t id);
bool http2__field(http2_stream *s, slice name,
                  slice value);                /* a field of the head or the trailers. False: far too long; close the connection */
void http2__head(http2_stream *s, bool whole); /* the head is complete; `whole`: there is no body */
void http2__body(http2_stream *s, slice bytes);
void http2__whole(http2_stream *s);            /* hands the request to the front end; may free s */
void http2__refuse(http2_stream *s, err code); /* refuses a READING stream; may free s */
void http2__stream_closed(http2_stream *s);    /* nghttp2 has closed the stream, or the connection has closed; may free s */
void http2__stream_slow(http2_stream *s);      /* the deadline passed: refuses or resets the stream */
void http2__moved(http2_stream *s, size_t n);  /* n bytes were received or sent */
void http2__wait_anew(http2_stream *s);        /* restarts the clock of an ANSWERED stream */
ssize_t http2__read_answer(nghttp2_session *session, int32_t id, uint8_t *into, size_t n, uint32_t *flags, nghttp2_data_source *source,
                           void *conn);
