/* work.h — work that is too long for a loop: a worker thread runs it, and the request's loop finishes it.
 *
 * Each lane is a scheduler of its own (sched/sched.h), so lanes never wait for each other; within a lane the tenants, which are containers,
 * take turns. When the client leaves, its work is cancelled: waiting work is not started, running work ends at its next check point with
 * E_CANCELLED. Either way `done` is called. Work of NET_ANSWERS is not cancelled. All calls on the loop's thread. */
#pragma once

#include <stdatomic.h>

#include "base/op.h"
#include "net/loop.h"
#include "sched/sched.h"

typedef enum net_lane {
    NET_SHORT,   /* a few milliseconds at most: plans, metadata queries */
    NET_PAGES,   /* pages of feeds and queries: up to seconds, with check points */
    NET_BODIES,  /* bodies of large requests: tens of milliseconds without a check point */
    NET_ANSWERS, /* answers of large writes, as long as bodies. Never refused or cancelled, since the write has been carried out */
    NET_READS,   /* reads of items that are not in memory: each waits for the disk */
    NET_ADMIN,   /* the administration API, which admits one job of each kind (api/admin) */
    NET_LANES
} net_lane;

extern const char *const net_lane_names[NET_LANES];

typedef struct net_work net_work;
typedef struct net_wait net_wait; /* net/wait.h */

/* The client of a request; part of each protocol's request. */
typedef struct net_client {
    net_loop *loop;
    atomic_bool left;  /* it has closed its sending side or the connection; any thread may read this */
    net_work *working; /* its work on a worker thread; owned by work.c */
    net_wait *waiting; /* its pending wait; owned by wait.c */
} net_client;

struct net_work {
    sched_job job; /* must be first */
    net_task task;
    net_client *client;
    op *op;
    bool kept; /* NET_ANSWERS: not cancelled if the client leaves or the server stops */
    void (*work)(net_work *work);
    void (*done)(net_work *work);
};

enum { NET_WORK_RETRY_MS = 500 }; /* retry-after time of a refused request */

/* Calls `run` on a worker thread, with o's turn set, then `done` on the loop's. If a queue is full, or the client has left already (except
 * for NET_ANSWERS), `done` is called at once, without `run`. The caller keeps the memory valid until `done`. A client has one work at a
 * time. */
void net_work_start(net_client *client, op *o, net_lane lane, uint64_t tenant, net_work *work, void (*run)(net_work *),
                    void (*done)(net_work *));

/* Ends the client's work and its wait as if it had left, though it gets its answer. On the loop's thread. */
void net_cancel(net_client *client);

/* For `done`: OK, or why `run` was not called (E_TENANT_BUSY, E_WORK_BUSY, E_CANCELLED); E_UNAVAILABLE if the server is stopping. */
static inline err net_work_code(const net_work *work) {
    return work->job.code;
}
