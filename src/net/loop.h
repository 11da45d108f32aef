/* loop.h — event loops: one thread each, with sockets and timers from libuv.
 *
 * A connection belongs to one loop for life. All its work is done on that loop's thread, so front ends need no locks of their own. Other
 * threads (the committer) hand results back with net_post. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/budget.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"

typedef struct net_loop net_loop;

typedef struct net_task net_task;
struct net_task {
    net_task *next;
    void (*run)(net_task *task); /* called on the loop's thread; the caller owns the task's memory */
};

/* Any thread. Tasks posted by one thread run in the order posted. Never blocks, never fails. */
void net_post(net_loop *loop, net_task *task);

/* The same, for a thread that posts several tasks in a row: a loop that is asleep stays so, and the caller must post to it with net_post
 * right afterwards. */
void net_post_before(net_loop *loop, net_task *task);

/* The same, but the loop may take its time, up to `delay_us`, so that several tasks wake it once: each wake-up costs two thread switches.
 */
void net_post_within(net_loop *loop, net_task *task, int64_t delay_us);

unsigned net_loop_index(const net_loop *loop); /* 0, 1, … */
const clock_source *net_loop_clock(const net_loop *loop);
int64_t net_loop_wall_ms(const net_loop *loop); /* read once per turn of the loop, so it is cheap */
random_source *net_loop_random(net_loop *loop);
bool net_loop_is_stopping(const net_loop *loop); /* the server stops: requests should end soon. On the loop's thread */
budget_pool *net_loop_memory(net_loop *loop);    /* the pool for all requests being served */
