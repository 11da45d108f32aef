/* conn_int.h — private parts of a connection: for conn.c, which moves its bytes, and crowd.c, which decides which connections to close. */
#pragma once

#include "net/conn.h"
#include "net/tls.h"

typedef enum conn_phase { OPEN, FINISHING, LINGERING, CLOSED } conn_phase;

/* Output that the kernel has not taken yet. */
typedef struct conn_queue {
    pieces bytes;       /* without a budget: see weigh_queue */
    size_t weighed;     /* memory of `bytes` as counted in the loop's budget */
    int kernel_bytes;   /* bytes in the socket's send buffer when the deadline was last moved */
    int kernel_began;   /* bytes in the socket's send buffer when the queue began */
    int64_t began_ms;   /* when the queue began */
    int64_t sent_bytes; /* bytes passed to the kernel since then */
} conn_queue;

struct net_conn {
    uv_poll_t poll;
    net_loop *loop;
    const net_protocol *protocol;
    net_tls_session *tls;
    conn_queue *queue; /* NULL: all output is sent */
    net_deadline deadline;
    union {
        struct {
            net_conn *next;
            net_conn *prev;
        } list;
        net_task deal; /* until the loop adds it to its list */
    } link;
    net_conn *younger, *older; /* neighbours in the loop's list of untrusted connections */
    void *context;             /* passed to `opened` */
    int fd;
    net_peer peer;
    uint8_t phase; /* conn_phase */
    uint8_t watching;
    uint8_t hello_n;                 /* bytes in `hello` */
    char hello[NET_TLS_HELLO_BYTES]; /* the first bytes, until they show whether this is TLS */
    bool sniffed;                    /* TLS or plain text has been decided */
    bool reading;
    bool ended;
    bool linger;
    bool trusted; /* the front end has authenticated its peer */
    bool surplus; /* above a connection limit: it gets a refusal, nothing else */
    max_align_t state[];
};

#define CONN_OF(p, member) ((net_conn *)((char *)(p)-offsetof(net_conn, member)))

/* ---- conn.c ---- */

bool net_conn_progress(net_conn *c, net_progress *progress_out); /* progress of the queued output; false: nothing is queued */

/* ---- crowd.c ---- */

void net_crowd_enter(net_conn *c);      /* a new connection, on its loop: makes room for it, marks it as surplus, or closes it */
void net_crowd_leave(net_conn *c);      /* a closed connection no longer counts */
void net_crowd_close_slow(net_conn *c); /* closes a connection whose client reads too slowly */
bool net_crowd_take_surplus(net_shared *shared);
