/* loop_int.h — a loop's inside, for the files of this folder.
 *
 * What is here is used by one thread, the loop's, but for `posted` and what is in net_shared. The buffers are lent for the length of one
 * callback: a connection that is not being served holds none of them. */
#pragma once

#include <openssl/types.h>
#include <stdatomic.h>
#include <uv.h>

#include "net/delay.h"
#include "net/guard.h"
#include "net/server.h"
#include "net/wheel.h"
#include "net/work.h"

typedef struct net_conn net_conn;
typedef struct http_exchange http_exchange;
typedef struct net_peers net_peers;

enum {
    NET_READ_BYTES = 64 * 1024,                   /* one read */
    NET_PLAIN_BYTES = NET_READ_BYTES + 32 * 1024, /* what one read can decrypt to: itself and the record begun before */
    NET_OUTS_MAX = 32,                            /* output buffers kept for reuse */
    NET_OUTS_BYTES = 1024 * 1024,                 /* of all that are kept */
    NET_OUT_LEAST_BYTES = 16 * 1024,              /* of one buffer */
    NET_OUT_KEEP_BYTES = 256 * 1024,              /* larger ones are not kept */
    NET_REPLY_BYTES_MAX = 64 * 1024 * 1024,       /* far past what a front end may answer: a bound, not a size */
    NET_LINGER_MS = 2000,
    NET_INPUT_BYTES_SPARED = 64 * 1024, /* past input_bytes_max, connections with less go on */
    NET_PROGRESS_BYTES = 4096,          /* see body_timeout_ms */
};

/* Answers to be sent when the loop's turn ends: when all events that have come together are seen to. A client that has many requests under
 * way is then woken once, not by each answer, which would cost as much as reading an item. */
typedef struct net_held {
    struct net_held *next;
    bool waits;
    void (*send)(struct net_held *held);
} net_held;

/* An event that is counted, and logged now and then. */
typedef struct net_complaint {
    _Atomic int64_t said_ms;
    _Atomic uint64_t total, reported;
} net_complaint;

/* Counts the event. 0: do not log now; otherwise how often it happened since it was last logged. Any thread. */
unsigned net_complain(net_complaint *c, int64_t now_ms);

/* What all loops share. Written before they run, but for what is atomic and whether the guard is on. */
typedef struct net_shared {
    net_options options;
    SSL_CTX *tls; /* NULL: plain text only */
    net_guard guard;
    net_peers *peers;
    budget_pool requests;         /* half of memory_max: what requests take while they are served */
    budget_pool buffers;          /* the other half: requests being read, answers being written or waiting for their clients */
    _Atomic unsigned connections; /* without those that are surplus */
    _Atomic unsigned trusted;     /* of them */
    _Atomic unsigned surplus;
    _Atomic size_t waiting_bytes;                      /* that clients have not taken yet */
    net_complaint full;                                /* connections refused: as many as there may be; */
    net_complaint crowded;                             /* … as many as one address may have */
    net_complaint displaced;                           /* untrusted connections closed for newer ones */
    net_complaint slow;                                /* clients that send or read too slowly */
    net_complaint starved;                             /* requests and answers refused for want of memory */
    _Atomic unsigned drain_requests, drain_unanswered; /* see net_stats */
    sched *lanes[NET_LANES];
} net_shared;

/* How many ms are left until a client is too slow, if it began to send or read at began_ms and has moved `bytes` since. */
static inline unsigned net_time_left(const net_options *o, int64_t began_ms, int64_t bytes, int64_t now_ms) {
    int64_t left = o->least_rate ? began_ms + o->body_timeout_ms + bytes * 1000 / o->least_rate - now_ms : o->body_timeout_ms;
    return left < 0 ? 0 : left < o->body_timeout_ms ? (unsigned)left : o->body_timeout_ms;
}

struct net_loop {
    uv_loop_t uv;
    net_shared *shared;
    unsigned index;
    /* Whoever posts to an empty list writes to an eventfd. Not by uv_async_t: there the loop spins while the sending thread is off its
     * processor, as workers, which are nicer than loops, often are. */
    int wake_fd;
    uv_poll_t wake;
    _Atomic(net_task *) posted; /* newest first */
    random_source random;

    uint64_t seen; /* uv_now at the last reading of the clock */
    int64_t now_ms;
    int64_t wall_ms;

    char *read_bytes;
    char *plain_bytes; /* made with the first TLS connection */
    buf cipher;        /* TLS output of one call */
    buf *outs[NET_OUTS_MAX];
    unsigned outs_n;
    size_t outs_bytes;

    net_conn *conns;
    net_conn *untrusted_oldest, *untrusted_newest;
    _Atomic unsigned untrusted_n; /* loop 0 reads it */
    net_held *held;               /* the newest first */
    int64_t held_since_us;
    uv_prepare_t before_sleep;
    uv_check_t after_events;
    net_wheel wheel;
    uv_timer_t tick;
    net_delay delays; /* the ring's head; by time */
    uv_timer_t delay_timer;

    http_exchange *exchanges; /* free ones */
    unsigned exchanges_free;
    struct frames_exchange *frames; /* free ones */
    unsigned frames_free;
    struct http2_stream *streams; /* free ones */
    unsigned streams_free;
    _Atomic unsigned requests_live; /* of all protocols: being read, served or answered. Other threads may look */
    budget memory;                  /* of the loop's buffers: input, answers, what waits to be sent */
    size_t input_bytes;             /* of requests still coming in, over all connections */
    size_t input_bytes_max;
    struct {
        int64_t second;
        unsigned status;
        size_t n;
        char text[192];
    } reply_head; /* status line and Date as last written */
    struct {
        int64_t second;
        size_t n;
        char text[32];
    } date; /* as HTTP writes it */

    bool draining;
    bool stopped; /* has left, or is about to leave, its run */
    uv_timer_t drain;
    net_task drain_task;
    bool drain_posted; /* loop 0 says so, once */
};

MUST_CHECK err net_loop_init(net_loop *loop, net_shared *shared, unsigned index);
void net_loop_free(net_loop *loop); /* closes what is still open */

void net_loop_run_posted(net_loop *loop);
void net_loop_read_clock(net_loop *loop);
static inline void net_loop_refresh(net_loop *loop) { /* at the start of each callback: a new turn reads the clock, at most once a ms */
    if (uv_now(&loop->uv) != loop->seen) {
        net_loop_read_clock(loop);
    }
}

void net_loop_hold(net_loop *loop, net_held *held);
void net_loop_forget(net_loop *loop, net_held *held); /* whether it waits or not */
void net_loop_release(net_loop *loop);                /* at the end of a turn */
void net_loop_release_due(net_loop *loop);            /* before each event: nothing waits for more than 250 µs and one event's work */

void net_delays_init(net_loop *loop);
void net_delays_end(net_loop *loop); /* runs all of them now; those to come run at once, once the loop is draining */

void net_loop_start_ticking(net_loop *loop); /* while there are connections, deadlines are looked at */

buf *net_loop_take_out(net_loop *loop); /* an empty output buffer */
void net_loop_give_out(net_loop *loop, buf *out);

void net_crowd_note_slow(net_loop *loop); /* a client was too slow */
void net_crowd_reclaim(net_loop *loop);   /* at every tick: when memory is scarce, ends those who send or read too slowly */

void net_loop_drain(net_loop *loop);         /* close what is idle, let the rest finish, then stop */
void net_loop_check_drained(net_loop *loop); /* after a connection or an exchange ended */

void net__lanes_open(net_shared *shared);
void net__lanes_stop(net_shared *shared); /* what is done or refused by then has been posted to its loop */
void net__lanes_close(net_shared *shared);
void net__client_left(net_client *client); /* cancels its work, and ends its wait */
void net__wait_end(net_wait *wait);        /* unless it was woken */
