/* frames_int.h — connections whose requests are answered in any order. For frames.c, which serves them, and websocket.c, whose messages are
 * framed differently. */
#pragma once

#include "net/frames.h"
#include "net/request_int.h"

/* How requests are delimited in the input, and how answers are wrapped. */
typedef struct frames_codec {
    /* Reads f->in. Hands a request over (frames__hand_over), refuses it (frames__refuse), or consumes other bytes. False: bytes are
     * missing. */
    bool (*step)(frames_conn *f);
    void (*begin)(buf *out);                              /* reserves room for an answer's header; NULL: there is none */
    bool (*wrap)(const frames_request *r, buf *out);      /* writes the answer's header; false: no memory */
    void (*refuse)(frames_conn *f, slice head, err code); /* tells the client why the connection ends; frames__refuse does the rest */
    void (*goodbye)(frames_conn *f);                      /* called before the connection closes; may be NULL */
    bool (*idle)(frames_conn *f);  /* called when the idle timeout passes. True: keep the connection; NULL: close it */
    void (*ended)(frames_conn *f); /* frees codec_state; may be NULL */
} frames_codec;

extern const net_protocol frames_protocol; /* its context is a frames_front */

struct frames_conn {
    net_conn *net; /* NULL: the connection has closed */
    net_loop *loop;
    const frames_front *front;
    const frames_codec *codec;
    void *codec_state;
    net_peer peer;
    net_input in;
    buf collected;                /* payload so far of a message in several frames (WebSocket); weighed with `in` */
    net_reading reading;          /* timing of the request being received */
    uint64_t frame_n;             /* length of the frame being received, header included; 0: not known yet */
    struct frames_exchange *live; /* requests in flight */
    unsigned live_n;
    unsigned waiting_n; /* requests waiting in frames_flush */
    size_t live_bytes;
    buf *out;      /* answers to be sent; NULL: none */
    net_held held; /* to send small answers at the end of the turn */
    bool tls;
    bool pumping;
    bool ended;   /* the client sends no more */
    bool last;    /* no more input is parsed; the connection closes once requests in flight are answered */
    bool linger;  /* linger when closing: the client may still be sending */
    bool mute;    /* answers are discarded */
    bool stopped; /* the server stops: new input is discarded */
    max_align_t state[];
};

/* Makes the connection's object and stores it as the state of `c`; frames__start then begins to serve it. */
frames_conn *frames__make(net_conn *c, const frames_front *front, const frames_codec *codec);
void frames__start(frames_conn *f);

typedef struct frames_exchange frames_exchange;
frames_exchange *frames__take(frames_conn *f);
net_serving *frames__serving(frames_exchange *x);
void frames__hand_over(frames_exchange *x, slice frame, bool text);
void frames__refuse(frames_conn *f, slice head, err code); /* the connection closes afterwards */
void frames__leave(frames_conn *f);                        /* the client takes no more answers: closes the connection */

enum { FRAMES_CONTROL_BYTES = 256 };
buf *frames__control(frames_conn *f); /* a buffer with room for FRAMES_CONTROL_BYTES of control frames */
const frames_limits *frames__limits(const frames_conn *f);

void frames__free_stock(net_loop *loop);
