/* conn_int.h — a connection's inside: for conn.c, which moves its bytes, and crowd.c, which decides who stays when there are too many. */
#pragma once

#include "net/conn.h"
#include "net/tls.h"

typedef enum conn_phase { OPEN, FINISHING, LINGERING, CLOSED } conn_phase;

/* What the kernel has not taken yet. */
typedef struct conn_queue {
    buf bytes;
    size_t at;
    size_t weighed;     /* of `bytes`, in the loop's budget */
    int kernel_bytes;   /* in the socket's buffer when the deadline was last moved */
    int kernel_began;   /* … and when the queue began */
    int64_t began_ms;   /* when the first byte had to wait */
    int64_t sent_bytes; /* to the kernel since then */
} conn_queue;

struct net_conn {
    uv_poll_t poll;
    net_loop *loop;
    const net_protocol *protocol;
    net_tls_session *tls;
    conn_queue *queue; /* NULL: nothing waits */
    net_deadline deadline;
    union {
        struct {
            net_conn *next;
            net_conn *prev;
        } list;
        net_task deal; /* before it is in the list: on its way to the loop */
    } link;
    net_conn *younger, *older; /* among the loop's untrusted connections */
    void *context;             /* for `opened` */
    int fd;
    net_peer peer;
    uint8_t phase; /* conn_phase */
    uint8_t watching;
    uint8_t hello_n;                 /* of `hello` */
    char hello[NET_TLS_HELLO_BYTES]; /* the first bytes, while they may be TLS's or another protocol's */
    bool sniffed;                    /* it is known which */
    bool reading;
    bool ended;
    bool linger;
    bool trusted; /* the front end has authenticated its peer */
    bool surplus; /* one too many: it gets a refusal, nothing else */
    max_align_t state[];
};

#define CONN_OF(p, member) ((net_conn *)((char *)(p)-offsetof(net_conn, member)))

/* ---- conn.c ---- */

bool net_conn_progress(net_conn *c, net_progress *progress_out); /* of what the kernel has not taken; false: it took all */

/* ---- crowd.c ---- */

void net_crowd_enter(net_conn *c); /* a new connection, on its loop: makes room for it, or marks it as surplus, or closes it */
void net_crowd_leave(net_conn *c); /* it is closed: nothing of it counts any more */
void net_crowd_slow(net_conn *c);  /* closes one that reads too slowly */
bool net_crowd_take_surplus(net_shared *shared);
