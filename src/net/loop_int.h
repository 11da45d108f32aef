/* loop_int.h — private parts of a loop, for the files of this folder.
 *
 * Only the loop's thread uses a net_loop, except for `posted` and other atomic members. Buffers are lent for the duration of one callback:
 * a connection that is not being served holds none of them. */
#pragma once

#include <openssl/types.h>
#include <stdatomic.h>
#include <uv.h>

#include "net/delay.h"
#include "net/guard.h"
#include "net/look.h"
#include "net/server.h"
#include "net/wheel.h"
#include "net/work.h"

typedef struct net_conn net_conn;
typedef struct http_exchange http_exchange;
typedef struct net_peers net_peers;

enum {
    NET_READ_BYTES = 64 * 1024,                   /* bytes per read */
    NET_PLAIN_BYTES = NET_READ_BYTES + 32 * 1024, /* plain text of one read: its own bytes and the record begun before */
    NET_OUTS_MAX = 32,                            /* output buffers kept for reuse */
    NET_OUTS_BYTES = 1024 * 1024,                 /* max. total size of the kept ones */
    NET_OUT_LEAST_BYTES = 16 * 1024,              /* min. size of one buffer */
    NET_OUT_KEEP_BYTES = 256 * 1024,              /* larger buffers are freed */
    NET_REPLY_BYTES_MAX = 64 * 1024 * 1024,       /* far more than any front end answers: a safety bound */
    NET_LINGER_MS = 2000,
    NET_INPUT_BYTES_SPARED = 64 * 1024, /* connections with less input are served even above input_bytes_max */
    NET_PROGRESS_BYTES = 4096,          /* see body_timeout_ms */
};

/* Answers held until the loop's turn ends, that is, until all events that came together are handled. A client with many requests in flight
 * is then woken once, not by each answer, which would cost as much as reading an item. */
typedef struct net_held {
    struct net_held *next;
    bool waits;
    void (*send)(struct net_held *held);
} net_held;

/* Counter of an event that is logged only now and then. */
typedef struct net_complaint {
    _Atomic int64_t said_ms;
    _Atomic uint64_t total, reported;
} net_complaint;

/* Counts the event. Returns 0 if it should not be logged now; otherwise the number of events since the last log line. Any thread. */
unsigned net_count_event(net_complaint *c, int64_t now_ms);

/* Shared by all loops. Written before they run, except for the atomic members and the guard's switch. */
typedef struct net_shared {
    net_options options;
    SSL_CTX *tls; /* NULL: plain text only */
    net_guard guard;
    net_peers *peers;
    budget_pool requests;         /* half of memory_max: memory of requests being served */
    budget_pool buffers;          /* the other half: requests being read, answers being written or waiting to be sent */
    _Atomic unsigned connections; /* not counting surplus ones */
    _Atomic unsigned trusted;     /* how many of these are trusted */
    _Atomic unsigned surplus;
    _Atomic size_t waiting_bytes;                      /* unsent bytes of answers */
    net_complaint full;                                /* connections refused because of connections_max */
    net_complaint crowded;                             /* connections refused because of per_address_max */
    net_complaint displaced;                           /* untrusted connections closed to make room for newer ones */
    net_complaint slow;                                /* clients that send or read too slowly */
    net_complaint starved;                             /* requests and answers refused because memory was short */
    _Atomic unsigned drain_requests, drain_unanswered; /* see net_stats */
    sched *lanes[NET_LANES];
} net_shared;

/* How many ms are left until a client counts as too slow, if it began to send or read at began_ms and has moved `bytes` since. */
static inline unsigned net_time_left(const net_options *o, int64_t began_ms, int64_t bytes, int64_t now_ms) {
    int64_t left = o->least_rate ? began_ms + o->body_timeout_ms + bytes * 1000 / o->least_rate - now_ms : o->body_timeout_ms;
    return left < 0 ? 0 : left < o->body_timeout_ms ? (unsigned)left : o->body_timeout_ms;
}

struct net_loop {
    uv_loop_t uv;
    net_shared *shared;
    unsigned index;
    _Atomic(net_task *) posted; /* newest first */
    /* A thread that posts writes to this eventfd, unless another has. uv_async_t would make the loop spin while the posting thread is
     * preempted, which happens often: worker threads have lower priority than loops. */
    int wake_fd;
    uv_poll_t wake;
    atomic_bool woken;
    atomic_bool asleep; /* waiting for events, or about to: a thread that posts must wake it */
    /* A timerfd that wakes the loop for tasks of net_post_within. */
    int alarm_fd;
    uv_poll_t alarm;
    atomic_bool alarm_set;
    random_source random;

    uint64_t seen; /* uv_now when the clock was last read */
    int64_t now_ms;
    int64_t wall_ms;

    char *read_bytes;
    char *plain_bytes; /* allocated with the first TLS connection */
    buf cipher;        /* TLS output of one call */
    buf *outs[NET_OUTS_MAX];
    unsigned outs_n;
    size_t outs_bytes;

    net_conn *conns;
    net_conn *untrusted_oldest, *untrusted_newest;
    _Atomic unsigned untrusted_n; /* loop 0 reads it */
    net_held *held;               /* newest first */
    int64_t held_since_us;
    uv_prepare_t before_sleep;
    uv_check_t after_events;
    net_look look;
    uv_idle_t poll_at_once; /* while it is active, the loop polls without waiting */
    unsigned reads;         /* of connections, in this turn */
    net_wheel wheel;
    uv_timer_t tick;
    net_delay delays; /* head of a ring, sorted by time */
    uv_timer_t delay_timer;

    http_exchange *exchanges; /* free list */
    unsigned exchanges_free;
    struct frames_exchange *frames; /* free list */
    unsigned frames_free;
    struct http2_stream *streams; /* free ones */
    unsigned streams_free;
    _Atomic unsigned requests_live; /* requests of all protocols being read, served or answered. Other threads may read it */
    budget memory;                  /* memory of the loop's buffers: input, answers, queued output */
    size_t input_bytes;             /* input of requests still being received, over all connections */
    size_t input_bytes_max;
    struct {
        int64_t second;
        unsigned status;
        size_t n;
        char text[192];
    } reply_head; /* the last status line and Date, cached */
    struct {
        int64_t second;
        size_t n;
        char text[32];
    } date; /* the value of the Date field, cached */

    bool draining;
    bool stopped; /* uv_run has returned or is about to */
    uv_timer_t drain;
    net_task drain_task;
    bool drain_posted; /* set by loop 0, so that drain_task is posted once */
};

MUST_CHECK err net_loop_init(net_loop *loop, net_shared *shared, unsigned index);
void net_loop_free(net_loop *loop); /* closes remaining connections */

void net_loop_run_posted(net_loop *loop);
void net_loop_read_clock(net_loop *loop);
static inline void net_loop_rise(net_loop *loop) {
    if (atomic_load_explicit(&loop->asleep, memory_order_relaxed)) {
        atomic_store_explicit(&loop->asleep, false, memory_order_relaxed);
    }
}
static inline void net_loop_refresh(net_loop *loop) { /* at the start of each callback; reads the clock at most once a turn and ms */
    net_loop_rise(loop);
    if (uv_now(&loop->uv) != loop->seen) {
        net_loop_read_clock(loop);
    }
}

void net_loop_hold(net_loop *loop, net_held *held);
void net_loop_forget(net_loop *loop, net_held *held); /* does nothing if it is not held */
void net_loop_release(net_loop *loop);                /* at the end of a turn */
void net_loop_release_due(net_loop *loop); /* before each event, so that no answer is held for more than 250 µs plus one event's work */

void net_delays_init(net_loop *loop);
void net_delays_end(net_loop *loop); /* runs all delays now; once the loop is draining, new ones run at once */

void net_loop_start_ticking(net_loop *loop); /* starts the timer that checks deadlines, which runs while there are connections */

buf *net_loop_take_out(net_loop *loop); /* an empty output buffer */
void net_loop_give_out(net_loop *loop, buf *out);

void net_crowd_count_slow(net_loop *loop); /* counts a client that was too slow */
void net_crowd_reclaim(net_loop *loop);    /* at every tick: when memory is short, closes connections that send or receive too slowly */

void net_loop_drain(net_loop *loop);         /* closes idle connections, lets the others finish, then stops */
void net_loop_check_drained(net_loop *loop); /* call after a connection or an exchange has ended */

void net__lanes_open(net_shared *shared);
void net__lanes_stop(net_shared *shared); /* on return, all jobs that were finished or refused have been posted to their loops */
void net__lanes_close(net_shared *shared);
void net__client_left(net_client *client); /* cancels the client's work, and ends its wait */
void net__wait_end(net_wait *wait);        /* ends a wait that has not been woken */
