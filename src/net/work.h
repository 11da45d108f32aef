/* work.h — a request's work that is too long for a loop: done by a worker's thread, finished on the loop that it came from.
 *
 * Each lane is a scheduler of its own (sched/sched.h), so work of one lane never waits for that of another; within a lane the tenants,
 * which are containers, take turns. When the client leaves, its work is cancelled: what still waits is not begun, what runs ends at its
 * next check point with E_CANCELLED. Either way `done` is called. Work of NET_ANSWERS is not cancelled. All calls on the loop's thread. */
#pragma once

#include <stdatomic.h>

#include "base/op.h"
#include "net/loop.h"
#include "sched/sched.h"

typedef enum net_lane {
    NET_SHORT,   /* some milliseconds at most: plans, queries of metadata */
    NET_PAGES,   /* of feeds and queries, up to seconds, with check points */
    NET_BODIES,  /* of large requests: tens of milliseconds without a check point */
    NET_ANSWERS, /* of large writes: as long as bodies. They were carried out, so they are neither refused nor cancelled */
    NET_ADMIN,   /* of the administration API, which admits one job of each kind (api/admin) */
    NET_LANES
} net_lane;

extern const char *const net_lane_names[NET_LANES];

typedef struct net_work net_work;
typedef struct net_wait net_wait; /* net/wait.h */

/* Whoever waits for an answer: a part of each protocol's request. */
typedef struct net_client {
    net_loop *loop;
    atomic_bool left;  /* it has closed its side, or has gone; any thread may look */
    net_work *working; /* work.c's: what a worker does for it */
    net_wait *waiting; /* wait.c's: what it waits for */
} net_client;

struct net_work {
    sched_job job; /* first */
    net_task task;
    net_client *client;
    op *op;
    bool kept; /* of NET_ANSWERS: it counts though the client has left or the server stops */
    void (*work)(net_work *work);
    void (*done)(net_work *work);
};

enum { NET_WORK_RETRY_MS = 500 }; /* what a refused client is told to wait */

/* `run` is called on a worker's thread, with o's turn set; then `done` on the loop's. If a queue is full, or the client has left already
 * (but for NET_ANSWERS), `done` is called at once, without `run`. The memory is the caller's until `done`. A client has one work at a
 * time. */
void net_work_start(net_client *client, op *o, net_lane lane, uint64_t tenant, net_work *work, void (*run)(net_work *),
                    void (*done)(net_work *));

/* For `done`: OK, or why `run` was not called (E_TENANT_BUSY, E_WORK_BUSY, E_CANCELLED), or that the server stops (E_UNAVAILABLE). */
static inline err net_work_code(const net_work *work) {
    return work->job.code;
}
