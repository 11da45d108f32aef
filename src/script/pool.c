#include "script/pool.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"

enum { GRACE_US = 1000000, SUPERVISOR_INTERVAL_US = 1000000, START_TRIES = 3, RETRY_US = 2000000, PATH_BYTES = 4096 };

typedef struct worker worker;
struct worker {
    script_process process; /* must be first: jobs hold a pointer to it */
    worker *next;           /* idle list, most recently used first */
    worker *next_used, *previous_used;
    int64_t idle_since_us;
};

struct script_pool {
    script_options options;
    char program[PATH_BYTES];
    pthread_mutex_t lock;
    pthread_cond_t jobs_available;    /* wakes threads */
    pthread_cond_t workers_available; /* wakes jobs that wait for a process */
    pthread_cond_t supervisor_wanted; /* wakes the supervisor */
    pthread_cond_t all_ended;         /* wakes script_pool_stop */

    script_job *first, **last;
    uint64_t sequences[SCRIPT_THREADS_MAX]; /* sequences of the running jobs; 0: slot is free */
    uint64_t tenants[SCRIPT_THREADS_MAX];   /* tenants of the running jobs, in the same slots */
    unsigned threads, threads_idle;

    worker *idle, *used;
    unsigned workers;  /* idle, used and starting */
    unsigned wanting;  /* jobs that wait for a process */
    unsigned starting; /* processes being started */
    int64_t failed_us; /* time of the last failed start: the supervisor delays its retry, jobs retry at once; 0: none */
    bool keeps, wanted, stopping, killing;
    pthread_t supervisor;
    script_counts counts;
};

/* ---- life ---- */

static void find_program(script_pool *pool) {
    if (pool->options.program) {
        snprintf(pool->program, sizeof pool->program, "%s", pool->options.program);
        return;
    }
    char own[PATH_BYTES - 16];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    own[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(own, '/');
    snprintf(pool->program, sizeof pool->program, "%.*s/tesela-script", slash ? (int)(slash - own) : 0, own);
}

static void make_condition(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

script_pool *script_pool_open(const script_options *options) {
    script_pool *pool = mem_zero(sizeof *pool);
    script_options *o = &pool->options;
    *o = *options;
    o->threads_max = o->threads_max && o->threads_max < SCRIPT_THREADS_MAX ? o->threads_max : SCRIPT_THREADS_MAX;
    o->idle_us = o->idle_us ? o->idle_us : SCRIPT_IDLE_US;
    o->wait_us = o->wait_us ? o->wait_us : SCRIPT_WAIT_US;
    pool->last = &pool->first;
    find_program(pool);
    pthread_mutex_init(&pool->lock, NULL);
    make_condition(&pool->jobs_available);
    make_condition(&pool->workers_available);
    make_condition(&pool->supervisor_wanted);
    make_condition(&pool->all_ended);
    return pool;
}

/* Called with the lock. */
static void wait_until(script_pool *pool, pthread_cond_t *condition, int64_t until_us) {
    struct timespec at = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    pthread_cond_timedwait(condition, &pool->lock, &at);
}

/* ---- processes ---- */

static worker *make_worker(const script_pool *pool) {
    script_process process;
    script_frame kind = SCRIPT_FAULT;
    buf text = buf_init(SCRIPT_FRAME_BYTES_MAX);
    if (!script_process_start(pool->program, &process)) {
        log_error("script", "the worker cannot be started", "program=%s reason=\"%s\"", pool->program, strerror(errno));
        return NULL;
    }
    script_sign sign = script_process_receive(&process, &kind, &text, script_now_us() + SCRIPT_START_US);
    buf_free(&text);
    if (sign != SCRIPT_FINE || kind != SCRIPT_READY) {
        int status = script_process_end(&process);
        log_error("script", "the worker did not become ready", "program=%s sign=%d status=%d", pool->program, (int)sign, status);
        return NULL;
    }
    worker *made = mem_zero(sizeof *made);
    made->process = process;
    return made;
}

static void end_worker(worker *w) {
    script_process_end(&w->process);
    free(w);
}

/* An idle worker must not send anything: if its socket is readable, it sent a frame or ended, and is unfit. */
static bool is_sound(const worker *w) {
    struct pollfd fd = {.fd = w->process.socket, .events = POLLIN};
    return poll(&fd, 1, 0) == 0;
}

static void link_used(script_pool *pool, worker *w) {
    w->previous_used = NULL;
    w->next_used = pool->used;
    if (pool->used) {
        pool->used->previous_used = w;
    }
    pool->used = w;
}

static void unlink_used(script_pool *pool, worker *w) {
    *(w->previous_used ? &w->previous_used->next_used : &pool->used) = w->next_used;
    if (w->next_used) {
        w->next_used->previous_used = w->previous_used;
    }
}

/* Called with the lock. */
static void add_idle(script_pool *pool, worker *w) {
    w->next = pool->idle;
    w->idle_since_us = script_now_us();
    pool->idle = w;
    pool->counts.idle++;
    pthread_cond_signal(&pool->workers_available);
}

/* Called with the lock, which is released meanwhile. A waiting job gets the worker. If the start fails, all waiting jobs are woken. */
static bool start_worker(script_pool *pool) {
    pool->starting++;
    pool->workers++;
    pthread_mutex_unlock(&pool->lock);
    worker *made = make_worker(pool);
    pthread_mutex_lock(&pool->lock);
    pool->starting--;
    if (made) {
        pool->counts.started++;
        pool->failed_us = 0;
        add_idle(pool, made);
    } else {
        pool->workers--;
        pool->failed_us = script_now_us();
        pthread_cond_broadcast(&pool->workers_available);
    }
    return made != NULL;
}

static worker *take_idle(script_pool *pool) {
    worker *w = pool->idle;
    if (w) {
        pool->idle = w->next;
        pool->counts.idle--;
    }
    return w;
}

/* Called with the lock. Drops workers that died while idle. */
static worker *take_sound(script_pool *pool) {
    worker *w;
    while ((w = take_idle(pool)) && !is_sound(w)) {
        pool->workers--;
        pool->counts.killed++;
        end_worker(w);
    }
    return w;
}

static void wake_keeper(script_pool *pool) {
    pool->wanted = true;
    pthread_cond_signal(&pool->supervisor_wanted);
}

err script_process_take(script_pool *pool, script_process **process_out) {
    worker *w;
    unsigned failures = 0;
    pthread_mutex_lock(&pool->lock);
    pool->wanting++;
    while (!(w = take_sound(pool)) && !pool->killing && failures < START_TRIES) {
        if (pool->starting < pool->wanting) {
            failures += !start_worker(pool);
        } else { /* a process is being started for each waiting job */
            pthread_cond_wait(&pool->workers_available, &pool->lock);
        }
    }
    pool->wanting--;
    if (w) {
        link_used(pool, w);
        wake_keeper(pool); /* to start another spare */
    }
    pthread_mutex_unlock(&pool->lock);
    *process_out = w ? &w->process : NULL;
    return w ? OK : E_UNAVAILABLE;
}

void script_process_give(script_pool *pool, script_process *process, bool fit) {
    worker *w = (worker *)process;
    pthread_mutex_lock(&pool->lock);
    unlink_used(pool, w);
    fit = fit && !pool->killing;
    if (fit) {
        add_idle(pool, w);
    } else {
        pool->workers--;
        pool->counts.killed++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!fit) {
        end_worker(w);
    }
}

/* ---- the supervisor: keeps one spare, ends idle and dead workers ---- */

/* Called with the lock. Removes idle and dead workers from the list. The first live one, the most recently used, is the spare and stays. */
static worker *take_stale(script_pool *pool) {
    worker *gone = NULL, **at = &pool->idle;
    int64_t now = script_now_us();
    for (bool spare = true; *at;) {
        worker *w = *at;
        bool stale = !spare && now - w->idle_since_us > pool->options.idle_us;
        if (stale || !is_sound(w)) {
            *at = w->next;
            w->next = gone;
            gone = w;
            pool->workers--;
            pool->counts.idle--;
            pool->counts.killed++;
        } else {
            spare = false;
            at = &w->next;
        }
    }
    return gone;
}

static void end_stale(script_pool *pool) {
    worker *gone = take_stale(pool);
    if (gone) {
        pthread_mutex_unlock(&pool->lock);
        for (worker *next; gone; gone = next) {
            next = gone->next;
            end_worker(gone);
        }
        pthread_mutex_lock(&pool->lock);
    }
}

static bool wants_spare(const script_pool *pool) {
    bool failing = pool->failed_us && script_now_us() - pool->failed_us < RETRY_US;
    return !pool->idle && !pool->starting && pool->workers < pool->options.threads_max + 1 && !failing;
}

static void *keep(void *context) {
    script_pool *pool = context;
    pthread_mutex_lock(&pool->lock);
    while (!pool->stopping) {
        pool->wanted = false;
        end_stale(pool);
        if (wants_spare(pool)) {
            (void)start_worker(pool);
        } else if (!pool->wanted) {
            wait_until(pool, &pool->supervisor_wanted, script_now_us() + SUPERVISOR_INTERVAL_US);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Called with the lock. */
static void start_supervisor(script_pool *pool) {
    if (!pool->keeps && !pool->stopping) {
        pool->keeps = thread_start(&pool->supervisor, "script-super", keep, pool);
    }
}

void script_pool_warm(script_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    start_supervisor(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- jobs ---- */

static bool sequence_runs(const script_pool *pool, uint64_t sequence) {
    bool runs = false;
    for (unsigned i = 0; sequence && i < SCRIPT_THREADS_MAX; i++) {
        runs = runs || pool->sequences[i] == sequence;
    }
    return runs;
}

static unsigned tenant_runs(const script_pool *pool, uint64_t tenant) {
    unsigned n = 0;
    for (unsigned i = 0; tenant && i < SCRIPT_THREADS_MAX; i++) {
        n += pool->tenants[i] == tenant;
    }
    return n;
}

static script_job *take_out(script_pool *pool, script_job **at, err code) {
    script_job *job = *at;
    *at = job->next;
    pool->last = job->next ? pool->last : at;
    pool->counts.waiting--;
    job->code = code;
    return job;
}

/* Called with the lock. Takes a job that may run, or that must be rejected (queue timeout, or the pool is stopping). */
static script_job *take_job(script_pool *pool) {
    int64_t now = script_now_us();
    script_job **best = NULL;
    unsigned fewest = pool->options.threads_max - pool->options.threads_max / 4;
    for (script_job **at = &pool->first; *at; at = &(*at)->next) {
        if (pool->stopping || now - (*at)->submitted_us > pool->options.wait_us) {
            return take_out(pool, at, pool->stopping ? E_UNAVAILABLE : E_SCRIPTS_BUSY);
        }
        unsigned runs = tenant_runs(pool, (*at)->tenant);
        if (runs < fewest && !sequence_runs(pool, (*at)->sequence)) {
            best = at;
            fewest = runs;
        }
    }
    return best ? take_out(pool, best, OK) : NULL;
}

/* Called with the lock, which is released meanwhile. */
static void do_job(script_pool *pool, script_job *job) {
    unsigned place = 0;
    while (pool->sequences[place]) {
        place++;
    }
    pool->sequences[place] = job->sequence ? job->sequence : UINT64_MAX; /* marks the slot as used; no job has this sequence */
    pool->tenants[place] = job->tenant;
    pool->counts.running++;
    pthread_mutex_unlock(&pool->lock);
    if (job->code == OK) {
        job->work(job);
    }
    pthread_mutex_lock(&pool->lock);
    pool->sequences[place] = pool->tenants[place] = 0;
    pool->counts.running--;
    bool more = pool->first && pool->threads_idle;
    pthread_mutex_unlock(&pool->lock);
    if (more) { /* a job of this sequence or tenant may run now */
        pthread_cond_signal(&pool->jobs_available);
    }
    job->done(job);
    pthread_mutex_lock(&pool->lock);
}

static void *work(void *context) {
    script_pool *pool = context;
    int64_t idle_since_us = script_now_us();
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        script_job *job = take_job(pool);
        if (job) {
            do_job(pool, job);
            idle_since_us = script_now_us();
        } else if (pool->stopping || script_now_us() - idle_since_us > pool->options.idle_us) {
            break;
        } else {
            pool->threads_idle++;
            wait_until(pool, &pool->jobs_available, script_now_us() + SUPERVISOR_INTERVAL_US);
            pool->threads_idle--;
        }
    }
    pool->threads--;
    pthread_cond_signal(&pool->all_ended);
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Called with the lock. Wakes or starts a thread for the waiting jobs; false if there is none. */
static bool find_thread(script_pool *pool) {
    pthread_t thread;
    if (pool->threads_idle) {
        pthread_cond_signal(&pool->jobs_available);
    }
    if (pool->threads_idle < pool->counts.waiting && pool->threads < pool->options.threads_max) {
        pool->threads++;
        if (thread_start(&thread, "script", work, pool)) {
            pthread_detach(thread);
        } else {
            pool->threads--;
        }
    }
    return pool->threads > 0;
}

static unsigned waiting_in(const script_pool *pool, uint64_t sequence) {
    unsigned n = 0;
    for (const script_job *job = sequence ? pool->first : NULL; job; job = job->next) {
        n += job->sequence == sequence;
    }
    return n;
}

static unsigned waiting_of(const script_pool *pool, uint64_t tenant) {
    unsigned n = 0;
    for (const script_job *job = tenant ? pool->first : NULL; job; job = job->next) {
        n += job->tenant == tenant;
    }
    return n;
}

static err admit(const script_pool *pool, const script_job *job) {
    if (pool->stopping) {
        return E_UNAVAILABLE;
    }
    bool full = pool->counts.waiting >= SCRIPT_QUEUE_MAX || waiting_in(pool, job->sequence) >= SCRIPT_SEQUENCE_MAX ||
                waiting_of(pool, job->tenant) >= SCRIPT_TENANT_MAX;
    return full ? E_SCRIPTS_BUSY : OK;
}

err script_submit(script_pool *pool, script_job *job) {
    pthread_mutex_lock(&pool->lock);
    err code = admit(pool, job);
    if (code == OK) {
        job->next = NULL;
        job->code = OK;
        job->submitted_us = script_now_us();
        start_supervisor(pool);
        *pool->last = job;
        pool->last = &job->next;
        pool->counts.waiting++;
        pool->counts.jobs++;
        if (!find_thread(pool)) { /* no thread can have taken it: remove it from the end */
            script_job **at = &pool->first;
            while (*at != job) {
                at = &(*at)->next;
            }
            *at = NULL;
            pool->last = at;
            pool->counts.waiting--;
            code = E_UNAVAILABLE;
        }
    }
    pool->counts.refused += code != OK;
    pthread_mutex_unlock(&pool->lock);
    return code;
}

/* ---- the end ---- */

/* Called with the lock. Kills all processes in use, so that their jobs fail and end. */
static void kill_used(script_pool *pool) {
    pool->killing = true;
    for (worker *w = pool->used; w; w = w->next_used) {
        kill(w->process.pid, SIGKILL);
    }
    pthread_cond_broadcast(&pool->workers_available);
}

void script_pool_stop(script_pool *pool) {
    int64_t until_us = script_now_us() + GRACE_US;
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->jobs_available);
    wake_keeper(pool);
    while (pool->threads) {
        if (script_now_us() >= until_us) {
            kill_used(pool);
            until_us = script_now_us() + GRACE_US;
        }
        wait_until(pool, &pool->all_ended, until_us);
    }
    bool keeps = pool->keeps;
    pool->keeps = false;
    pthread_mutex_unlock(&pool->lock);
    if (keeps) {
        pthread_join(pool->supervisor, NULL);
    }
}

void script_pool_close(script_pool *pool) {
    script_pool_stop(pool);
    for (worker *w; (w = take_idle(pool));) {
        end_worker(w);
    }
    pthread_cond_destroy(&pool->jobs_available);
    pthread_cond_destroy(&pool->workers_available);
    pthread_cond_destroy(&pool->supervisor_wanted);
    pthread_cond_destroy(&pool->all_ended);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

script_counts script_pool_counts(script_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    script_counts counts = pool->counts;
    counts.processes = pool->workers;
    counts.threads = pool->threads;
    pthread_mutex_unlock(&pool->lock);
    return counts;
}
