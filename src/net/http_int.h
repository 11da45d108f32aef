/* http_int.h — HTTP as a protocol of connections. For the files of this folder. */
#pragma once

#include "net/conn.h"
#include "net/framing.h"

/* What a listening port needs to speak HTTP: the context of its connections. */
typedef struct http_service {
    const http_front *front;
    const http_limits *limits;
    http_names *names;
    struct http_service *next; /* the server's list */
} http_service;

http_service *http_service_new(const http_front *front);
void http_service_free(http_service *service);

extern const net_protocol http_protocol; /* its context: an http_service */

void http_free_exchanges(net_loop *loop); /* those that no request uses */

/* What HTTP knows of a connection. Idle, it holds no buffers. */
typedef struct http_conn {
    const http_service *service;
    http_exchange *exchange; /* being read, or handed to the front end; NULL: idle */
    http_input in;
    buf *out;              /* answers that are to be sent; NULL: none */
    net_held held;         /* if they are small */
    size_t weighed;        /* of `in`, in the loop's input_bytes */
    int64_t wait_until_ms; /* of the loop's clock: see http_told_to_wait */
    size_t progress;       /* bytes of a body since its time-out was last moved */
    bool handed;
    bool pumping;
    bool ended;  /* the client sends no more */
    bool last;   /* the last answer has been written */
    bool linger; /* and the client may not have stopped sending */
} http_conn;

typedef enum http_timing { HTTP_UNTIMED, HTTP_TIMING_HEAD, HTTP_TIMING_BODY } http_timing;

/* One request and its answer. From a loop's stock when the first byte comes, back to it when the answer ends. */
struct http_exchange {
    http_request request; /* first: the front end's pointer is ours */
    http_conn *conn;      /* NULL: the client has gone */
    http_exchange *next;  /* in the stock */
    const http_service *service;
    net_peer peer;
    budget budget; /* of the memory that the request takes, the arena's and what a front end counts */
    arena arena;
    buf bytes; /* of a large request, taken over from the connection's input */
    http_framing framing;
    http_timing timing;
    int64_t body_began_ms;
    int64_t body_bytes; /* that have come since */

    buf *out;         /* NULL: no reply started; else the connection's, or the exchange's own once the client has gone */
    size_t reply_at;  /* where in it this reply begins */
    size_t length_at; /* of the Content-Length's ten places; 0: none */
    size_t body_at;   /* 0: still in the fields */
    unsigned status;
    bool last; /* the connection closes after the answer */
    bool linger;
    bool starved; /* it is being refused, since there was no memory for its answer */
};

/* Less than 1/part of the memory for buffers is left; part 1: none is. */
static inline bool http_memory_is_short(net_loop *loop, size_t part) {
    budget_pool *memory = &loop->shared->buffers;
    size_t spare = part > 1 ? memory->max / part : 0;
    return atomic_load_explicit(&memory->used, memory_order_relaxed) > memory->max - spare;
}

err http_starved(net_loop *loop); /* counts a request or an answer refused for want of memory: E_BUSY_MEMORY */

void http_send_answered(http_exchange *x); /* sends the connection's answers that are whole. The exchange's own has not begun */

/* The answer is written (reply.c): the exchange goes back, the connection goes on. */
void http_answered(http_exchange *x);
