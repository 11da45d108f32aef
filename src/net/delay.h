/* delay.h — delayed calls on a loop, for answers that are sent late on purpose. No thread waits for them. */
#pragma once

#include "net/loop.h"

typedef struct net_delay net_delay;
struct net_delay {
    net_delay *next, *prev;
    int64_t due_ms;
    void (*run)(net_delay *delay);
};

/* Calls `run` once, on the loop's thread, after `ms` or slightly later; at once if the server is stopping. Call it on the loop's thread.
 * The loop uses the caller's memory until then. */
void net_delay_start(net_loop *loop, net_delay *delay, unsigned ms, void (*run)(net_delay *));

/* Cancels a delay whose `run` has not been called yet. On the loop's thread. */
void net_delay_stop(net_delay *delay);
