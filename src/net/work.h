/* work.h — work that is too long for a loop: done by a worker thread, finished on the loop it came from.
 *
 * For pages of feeds and queries, so that a point read never waits behind them. */
#pragma once

#include "net/loop.h"

typedef struct net_work net_work;
struct net_work {
    void (*work)(net_work *work); /* on a worker's thread */
    void (*done)(net_work *work); /* then on the loop's */
    uint64_t space[20];           /* libuv's */
};

/* On the loop's thread. The memory is the caller's until done. */
void net_work_start(net_loop *loop, net_work *work, void (*run)(net_work *), void (*done)(net_work *));
