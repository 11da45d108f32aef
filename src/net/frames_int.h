/* frames_int.h — connections whose requests are answered in any order. For frames.c, which serves them, and websocket.c, whose messages are
 * delimited in another way. */
#pragma once

#include "net/frames.h"
#include "net/request_int.h"

/* Where one request ends and the next begins, and what an answer is wrapped in. */
typedef struct frames_codec {
    /* Reads f->in: calls frames__hand_over or frames__refuse, or uses up something that is no request. False: bytes are missing. */
    bool (*step)(frames_conn *f);
    void (*begin)(buf *out);                              /* an answer begins: room for its header; NULL: it needs none */
    bool (*wrap)(const frames_request *r, buf *out);      /* the header; false: there is no memory for it */
    void (*refuse)(frames_conn *f, slice head, err code); /* says why the connection ends: frames__refuse has seen to all else */
    void (*goodbye)(frames_conn *f);                      /* before the connection closes; may be NULL */
    bool (*idle)(frames_conn *f);                         /* nothing came for a while. True: it may stay; NULL: it may not */
    void (*ended)(frames_conn *f);                        /* frees codec_state; may be NULL */
} frames_codec;

extern const net_protocol frames_protocol; /* its context: a frames_front */

struct frames_conn {
    net_conn *net; /* NULL: it has closed */
    net_loop *loop;
    const frames_front *front;
    const frames_codec *codec;
    void *codec_state;
    net_peer peer;
    net_input in;
    buf collected;                /* of a request that comes in several pieces (WebSocket); weighed with `in` */
    net_reading reading;          /* of the request that is coming in */
    uint64_t frame_n;             /* of that request, header included; 0: not known yet */
    struct frames_exchange *live; /* requests in flight */
    unsigned live_n;
    unsigned waiting_n; /* of them, for frames_flush */
    size_t live_bytes;
    buf *out;      /* answers that are to be sent; NULL: none */
    net_held held; /* if they are small */
    bool tls;
    bool pumping;
    bool ended;   /* the client sends no more */
    bool last;    /* nothing more is parsed; it closes once all in flight is answered */
    bool linger;  /* and the client may not have stopped sending */
    bool mute;    /* answers are thrown away */
    bool stopped; /* the server stops: what comes from now on is thrown away */
    max_align_t state[];
};

/* The connection's object, which `c` has as its state from now on; then its life begins. */
frames_conn *frames__make(net_conn *c, const frames_front *front, const frames_codec *codec);
void frames__start(frames_conn *f);

typedef struct frames_exchange frames_exchange;
frames_exchange *frames__take(frames_conn *f);
net_serving *frames__serving(frames_exchange *x);
void frames__hand_over(frames_exchange *x, slice frame, bool text);
void frames__refuse(frames_conn *f, slice head, err code); /* the connection ends with it */
void frames__leave(frames_conn *f);                        /* the client takes no more answers: the connection ends */

enum { FRAMES_CONTROL_BYTES = 256 };
buf *frames__control(frames_conn *f); /* to append up to FRAMES_CONTROL_BYTES that are no answer */
const frames_limits *frames__limits(const frames_conn *f);

void frames__free_stock(net_loop *loop);
