/* pool.h — the thread pool for scripts, and its pool of worker processes.
 *
 * A server without scripts starts none of these: the first job, or script_pool_warm, starts a supervisor thread, which starts the first
 * process in the background. From then on one spare process is kept ready; further idle processes are ended after 30 s. Threads are started
 * on demand, up to SCRIPT_THREADS_MAX. They are not libuv's, so a script of 5 s does not delay queries.
 *
 * Jobs of the same *sequence* run one at a time, in the order of submission; scripts of one partition key value form a sequence. Among the
 * jobs that may run, the *tenant* (container) with the fewest running jobs goes first, with its oldest job. One tenant gets at most three
 * quarters of the threads and half of the queue. Any thread. */
#pragma once

#include "script/process.h"

typedef struct script_pool script_pool;

enum {
    SCRIPT_THREADS_MAX = 16,
    SCRIPT_QUEUE_MAX = 1024,       /* waiting jobs in all */
    SCRIPT_SEQUENCE_MAX = 128,     /* waiting jobs per sequence */
    SCRIPT_TENANT_MAX = 512,       /* waiting jobs per tenant */
    SCRIPT_WAIT_US = 10 * 1000000, /* queue timeout; the job is rejected with E_SCRIPTS_BUSY */
    SCRIPT_IDLE_US = 30 * 1000000,
    SCRIPT_START_US = 10 * 1000000, /* start timeout of a process */
};

typedef struct script_options {
    const char *program;  /* path of the worker; NULL: tesela-script in the server's own folder */
    unsigned threads_max; /* 0: SCRIPT_THREADS_MAX */
    int64_t idle_us;      /* 0: SCRIPT_IDLE_US */
    int64_t wait_us;      /* 0: SCRIPT_WAIT_US */
} script_options;

script_pool *script_pool_open(const script_options *options);

/* Rejects new and waiting jobs, gives running jobs a second and then kills their processes. Returns when all have ended. Call it before
 * stopping the committer, since a job may wait for it. */
void script_pool_stop(script_pool *pool);
void script_pool_close(script_pool *pool);

/* Call it when scripts are about to be used: starts a process in the background if none is ready. */
void script_pool_warm(script_pool *pool);

/* ---- jobs ---- */

typedef struct script_job script_job;
struct script_job {
    script_job *next;
    uint64_t sequence;             /* 0: none */
    uint64_t tenant;               /* 0: none */
    void (*work)(script_job *job); /* on a script thread; not called if the job is rejected */
    void (*done)(script_job *job); /* on a script thread; the pool does not touch the job afterwards */
    err code;                      /* OK, or why `work` was not called: E_SCRIPTS_BUSY, E_UNAVAILABLE */
    int64_t submitted_us;
};

/* E_SCRIPTS_BUSY, E_UNAVAILABLE: the job was rejected, and `done` is not called. */
MUST_CHECK err script_submit(script_pool *pool, script_job *job);

/* ---- processes, for jobs ---- */

/* Takes a ready process for exclusive use until it is given back. E_UNAVAILABLE: none can be started; the log says why. */
MUST_CHECK err script_process_take(script_pool *pool, script_process **process_out);

/* `fit`: the process may be used again; otherwise it is killed. */
void script_process_give(script_pool *pool, script_process *process, bool fit);

typedef struct script_counts {
    unsigned processes, idle, threads, waiting, running;
    uint64_t started, killed, jobs, refused;
} script_counts;
script_counts script_pool_counts(script_pool *pool);
