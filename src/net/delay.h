/* delay.h — a call later, on the same loop: for answers that are to come late. No thread waits for it. */
#pragma once

#include "net/loop.h"

typedef struct net_delay net_delay;
struct net_delay {
    net_delay *next, *prev;
    int64_t due_ms;
    void (*run)(net_delay *delay);
};

/* On the loop's thread. Calls `run` there, once, `ms` later or a little after; at once when the server is stopping, so that nobody waits
 * for it. The memory is the caller's until then. */
void net_delay_start(net_loop *loop, net_delay *delay, unsigned ms, void (*run)(net_delay *));

/* Before `run` was called: it is not called any more. On the loop's thread. */
void net_delay_stop(net_delay *delay);
