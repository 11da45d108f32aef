/* sched.h — long work on worker threads: fair between tenants, in time slices, bounded, cancellable. It knows no protocol and no sockets.
 *
 * A scheduler has a few *permits*, about one for each processor. A job runs on a thread of its own, and only while it holds a permit. At
 * its check points (op_check, by the job's turn) a job whose time slice is used up gives the permit to the next job and waits for its turn.
 * So work of seconds keeps nobody waiting for longer than a slice, if it has check points.
 *
 * The next job is the one of the tenant that has run least (virtual run time: a newcomer begins at the current minimum, so it owes nothing
 * and has saved nothing). Jobs of one tenant take turns. A tenant is whatever must not starve others: a container. One that has no running
 * job may get an *extra* permit at once, rather than wait for the end of somebody's slice; those whose slices end next give theirs back.
 *
 * A job waits in a queue until it is started. Queues are bounded, for each tenant and over all; so are started jobs, since each has a
 * thread and holds memory. A tenant that has no started job may go past the bound over all, up to twice of it: tenants who came first
 * cannot lock it out.
 *
 *   submit ─► waiting ─► running ◄─► standing aside        running ─► done
 *                └── cancelled, or the scheduler stops ─────────────► done, without work
 *
 * Any thread may submit and cancel. One thread starts with the scheduler and stays, so that work goes on when the system refuses further
 * ones. The others start when they are needed, and end after a time without work. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/op.h"

typedef struct sched sched;

typedef struct sched_options {
    const char *name;     /* of the threads */
    unsigned permits;     /* jobs that run at the same time */
    unsigned extra;       /* … and so many more, of tenants that run no other */
    unsigned started_max; /* jobs that run or stand aside */
    unsigned started_per_tenant;
    unsigned waiting_max; /* jobs that are not started yet */
    unsigned waiting_per_tenant;
    int64_t slice_us;
    unsigned own_slices; /* a job's turn while only jobs of its own tenant want its permit: fewer switches; 0 and 1: one slice */
    unsigned idle_ms;    /* after which a thread without work ends, but for the last */
    const clock_source *clock;
} sched_options;

typedef struct sched_job sched_job;
struct sched_job {
    op_turn turn; /* first. The job's op points to it; only the job's own thread may ask it */
    uint64_t tenant;
    void (*work)(sched_job *job); /* on a worker's thread */
    void (*done)(sched_job *job); /* last touch, on any thread: hands over */
    err code;                     /* OK: the work was done. E_CANCELLED, E_UNAVAILABLE: it was not begun */

    /* the scheduler's */
    sched *sched;
    sched_job *next;
    struct sched_tenant *of;
    struct sched_worker *on; /* NULL: not started */
    int64_t since_us;        /* it holds its permit, or stands aside */
    int64_t granted_us;      /* its permit was granted */
    uint64_t place;          /* in the order of those that want a permit */
    atomic_bool cancelled;
};

sched *sched_open(const sched_options *options);

/* No more jobs. Those that wait are done with E_UNAVAILABLE, those that run see E_CANCELLED at their next check point. Returns when all are
 * done and all threads have ended. */
void sched_stop(sched *s);
void sched_close(sched *s);

/* E_TENANT_BUSY, E_WORK_BUSY: a queue is full; E_UNAVAILABLE: it stops, or no thread can be made. Then the job is not taken, and done is
 * not called. The memory is the caller's until done. */
MUST_CHECK err sched_submit(sched *s, sched_job *job);

/* Before the job is done. If it still waits it is done now, with E_CANCELLED; otherwise its next check point returns E_CANCELLED. */
void sched_cancel(sched_job *job);

typedef struct sched_counts {
    unsigned running, aside, waiting, threads;
    uint64_t jobs, refused, cancelled, turns; /* turns: permits given to another job at the end of a slice */
} sched_counts;
sched_counts sched_counted(sched *s);
