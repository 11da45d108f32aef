/* sched.h — long work on worker threads: fair between tenants, in time slices, bounded, cancellable. Independent of protocols and sockets.
 *
 * A scheduler has a few *permits*, about one for each processor. A job runs on its own thread, and only while it holds a permit. At its
 * check points (op_check, with the job's turn), a job that has used up its time slice passes the permit to the next job and waits for its
 * turn. So even work of seconds delays others by one slice at most, if it has check points.
 *
 * The next job is one of the tenant that has run least (by virtual run time: a newcomer starts at the current minimum, with neither debt
 * nor credit). Jobs of one tenant take turns. A tenant is anything that must not starve others, here a container. A tenant without a
 * running job may get an *extra* permit at once, rather than wait for the end of a slice; the next jobs whose slices end then return their
 * permits.
 *
 * A job waits in a queue until it is started. The queues are bounded, per tenant and in total; so are started jobs, since each has a thread
 * and holds memory. A tenant without a started job may exceed the total, up to twice the bound, so that earlier tenants cannot lock it out.
 *
 *   submit ─► waiting ─► running ◄─► standing aside        running ─► done
 *                └── cancelled, or the scheduler stops ─────────────► done, without work
 *
 * Any thread may submit and cancel. One thread starts with the scheduler and stays, so that work continues even if the system refuses more
 * threads. The others start when they are needed, and end after a time without work. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/op.h"

typedef struct sched sched;

typedef struct sched_options {
    const char *name;     /* name of the threads */
    unsigned permits;     /* jobs that run at the same time */
    unsigned extra;       /* additional permits, for tenants without a running job */
    unsigned started_max; /* limit for jobs that run or stand aside */
    unsigned started_per_tenant;
    unsigned waiting_max; /* limit for jobs that are not started yet */
    unsigned waiting_per_tenant;
    int64_t slice_us;
    unsigned own_slices; /* slices in a turn while only jobs of the same tenant wait, which saves thread switches; 0 and 1: one slice */
    bool urgent;         /* its threads have the priority of loops, which otherwise run first on a busy machine */
    unsigned idle_ms;    /* after this time a thread without work ends, except the last one */
    const clock_source *clock;
} sched_options;

typedef struct sched_job sched_job;
struct sched_job {
    op_turn turn; /* must be first. The job's op points to it; only the job's own thread may use it */
    uint64_t tenant;
    void (*work)(sched_job *job); /* called on a worker thread */
    void (*done)(sched_job *job); /* the last call, on any thread: hands the result over */
    err code;                     /* OK: `work` was called. E_CANCELLED, E_UNAVAILABLE: it was not */
    int64_t waited_us;            /* for `done`: from submission to start */
    int64_t ran_us;               /* for `done`: since its permit was last granted */
    bool followed;                /* for `done`: its thread goes on with another job */

    /* Private to the scheduler. */
    sched *sched;
    sched_job *next;
    struct sched_tenant *of;
    struct sched_worker *on; /* NULL: not started */
    int64_t since_us;        /* when its run time was last accounted, its permit granted, or, before that, the job submitted */
    int64_t granted_us;      /* when its permit was granted */
    uint64_t place;          /* order in which jobs began to wait for a permit */
    atomic_bool cancelled;
};

sched *sched_open(const sched_options *options);

/* Accepts no more jobs. Waiting jobs are done with E_UNAVAILABLE, running ones get E_CANCELLED at their next check point. Returns when all
 * jobs are done and all threads have ended. */
void sched_stop(sched *s);
void sched_close(sched *s);

/* E_TENANT_BUSY, E_WORK_BUSY: a queue is full; E_UNAVAILABLE: the scheduler stops, or no thread can be started. After an error the job is
 * not taken, and `done` is not called. The caller keeps the memory valid until `done`. */
MUST_CHECK err sched_submit(sched *s, sched_job *job);

/* Call before the job is done. A waiting job is done at once, with E_CANCELLED; a started one gets E_CANCELLED at its next check point. */
void sched_cancel(sched_job *job);

typedef struct sched_counts {
    unsigned running, aside, waiting, threads;
    uint64_t jobs, refused, cancelled, turns; /* turns: permits passed to another job at the end of a slice */
} sched_counts;
sched_counts sched_counted(sched *s);
