/* pool.h — where scripts run: threads of their own, and worker processes ready for use.
 *
 * A server without scripts has none of it: the first job or script_pool_warm starts a supervisor, which starts the first process; nobody
 * waits for that but who needs one. From then on one spare is kept ready; those beyond it end after 30 s of doing nothing. Threads are
 * started on demand, SCRIPT_THREADS_MAX at most, and are not libuv's: a script of 5 s holds up no query.
 *
 * Jobs of one *sequence* run one after the other, in the order in which they were submitted: what scripts of one partition key value need.
 * The others do not wait for them. Of jobs that may run, one of the *tenant* (the container) with the fewest running goes first, the oldest
 * of those; and one tenant never has more than three quarters of the threads, nor more than half of the queue. Any thread. */
#pragma once

#include "script/process.h"

typedef struct script_pool script_pool;

enum {
    SCRIPT_THREADS_MAX = 16,
    SCRIPT_QUEUE_MAX = 1024,       /* jobs that wait */
    SCRIPT_SEQUENCE_MAX = 128,     /* of them, of one sequence */
    SCRIPT_TENANT_MAX = 512,       /* … and of one tenant */
    SCRIPT_WAIT_US = 10 * 1000000, /* who has not had a turn by then gets none */
    SCRIPT_IDLE_US = 30 * 1000000,
    SCRIPT_START_US = 10 * 1000000, /* a process that is not ready by then never is */
};

typedef struct script_options {
    const char *program;  /* of the worker; NULL: tesela-script, beside our own */
    unsigned threads_max; /* 0: SCRIPT_THREADS_MAX */
    int64_t idle_us;      /* 0: SCRIPT_IDLE_US */
    int64_t wait_us;      /* 0: SCRIPT_WAIT_US */
} script_options;

script_pool *script_pool_open(const script_options *options);

/* No more jobs: those that wait are refused, those that run are given a second and then have their processes killed. Returns when all are
 * done. Before the committer stops, since a job may wait for it. */
void script_pool_stop(script_pool *pool);
void script_pool_close(script_pool *pool);

/* Scripts are about to be used: a process is started, in the background, if none is ready. */
void script_pool_warm(script_pool *pool);

/* ---- jobs ---- */

typedef struct script_job script_job;
struct script_job {
    script_job *next;
    uint64_t sequence;             /* 0: none */
    uint64_t tenant;               /* 0: none */
    void (*work)(script_job *job); /* on a script thread; not called if the job is refused later on */
    void (*done)(script_job *job); /* on such a thread too, last touch: hand over */
    err code;                      /* OK, or why there was no work: E_SCRIPTS_BUSY, E_UNAVAILABLE */
    int64_t submitted_us;
};

/* E_SCRIPTS_BUSY, E_UNAVAILABLE: it is not taken, and done is not called. */
MUST_CHECK err script_submit(script_pool *pool, script_job *job);

/* ---- processes, for jobs ---- */

/* A ready one for the job's own use until it is given back. E_UNAVAILABLE: none can be started; the log says why. */
MUST_CHECK err script_process_take(script_pool *pool, script_process **process_out);

/* `fit`: it may be used again. Otherwise it is killed. */
void script_process_give(script_pool *pool, script_process *process, bool fit);

typedef struct script_counts {
    unsigned processes, idle, threads, waiting, running;
    uint64_t started, killed, jobs, refused;
} script_counts;
script_counts script_pool_counts(script_pool *pool);
