#include "sched/sched.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"

enum {
    THREAD_RETRY_US = 1000000,
    STACK_BYTES = 4 * 1024 * 1024,
    NICER = 5,
    CROWDED_PART = 8 /* while extra permits are held, a slice is 1/8 as long */
};

typedef struct jobs {
    sched_job *first, *last;
} jobs;

typedef struct sched_tenant tenant;
struct sched_tenant {
    uint64_t id;
    tenant *next;
    int64_t ran_us; /* virtual run time: see `least_us` */
    jobs waiting;   /* not started */
    jobs aside;     /* started, without a permit */
    unsigned waiting_n, started, running;
};

typedef struct sched_worker worker;
struct sched_worker {
    worker *next;   /* in the list of idle workers, last used first */
    sched_job *job; /* NULL: idle */
    bool granted;   /* its job holds a permit */
    pthread_cond_t wake;
};

struct sched {
    sched_options options;
    int nice; /* of the thread that opened it; workers that are not urgent have NICER more */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    tenant *tenants;  /* tenants with jobs, and idle ones that have run more than least_us */
    int64_t least_us; /* virtual run time at which newcomers start; never decreases */
    uint64_t places;
    unsigned ready; /* jobs waiting for a permit */
    unsigned started, running, threads;
    worker *idle;
    int64_t failed_us; /* when a thread last failed to start; 0: the last attempt succeeded */
    atomic_bool stopping;
    atomic_bool crowded; /* extra permits are held: the next job at a check point returns its permit */
    sched_counts counts;
};

static int64_t now_us(const sched *s) {
    return clock_monotonic_us(s->options.clock);
}

/* ---- lists ---- */

static void append(jobs *list, sched_job *job) {
    job->next = NULL;
    *(list->first ? &list->last->next : &list->first) = job;
    list->last = job;
}

static sched_job *take_first(jobs *list) {
    sched_job *job = list->first;
    list->first = job->next;
    return job;
}

static bool take_out(jobs *list, const sched_job *job) {
    sched_job *before = NULL;
    for (sched_job **at = &list->first; *at; before = *at, at = &(*at)->next) {
        if (*at == job) {
            *at = job->next;
            list->last = list->last == job ? before : list->last;
            return true;
        }
    }
    return false;
}

/* ---- tenants ---- */

static bool is_idle(const tenant *t) {
    return t->waiting_n == 0 && t->started == 0;
}

/* Updates least_us: the lowest run time of a tenant with jobs. If no tenant has any, the highest run time of all, which cancels all
 * debts. */
static void find_least(sched *s) {
    int64_t least = INT64_MAX, most = s->least_us;
    for (const tenant *t = s->tenants; t; t = t->next) {
        least = !is_idle(t) && t->ran_us < least ? t->ran_us : least;
        most = t->ran_us > most ? t->ran_us : most;
    }
    least = least == INT64_MAX ? most : least;
    s->least_us = least > s->least_us ? least : s->least_us;
}

/* Frees idle tenants, except those that have run more than least_us: otherwise a tenant could lose its debt by leaving. */
static void forget_tenants(sched *s) {
    for (tenant **at = &s->tenants; *at;) {
        tenant *t = *at;
        if (is_idle(t) && t->ran_us <= s->least_us) {
            *at = t->next;
            free(t);
        } else {
            at = &t->next;
        }
    }
}

static tenant *find_tenant(sched *s, uint64_t id) {
    for (tenant *t = s->tenants; t; t = t->next) {
        if (t->id == id) {
            return t;
        }
    }
    find_least(s);
    forget_tenants(s);
    tenant *t = mem_zero(sizeof *t);
    t->id = id;
    t->next = s->tenants;
    s->tenants = t;
    return t;
}

/* A tenant that was idle keeps its debt, but gets no credit for the idle time. */
static void wake_tenant(sched *s, tenant *t) {
    if (is_idle(t)) {
        find_least(s);
        t->ran_us = t->ran_us < s->least_us ? s->least_us : t->ran_us;
    }
}

/* ---- choosing the next job ---- */

static bool has_thread(const sched *s, int64_t now) {
    bool fails = s->failed_us && now - s->failed_us < THREAD_RETRY_US;
    return s->idle || (s->threads < 2 * s->options.started_max && !fails);
}

static bool may_start(const sched *s, const tenant *t, int64_t now) {
    unsigned most = t->started ? s->options.started_max : 2 * s->options.started_max;
    return t->waiting.first && t->started < s->options.started_per_tenant && s->started < most && has_thread(s, now);
}

/* The tenant's job that has waited longest for a permit. */
static sched_job *next_of(const sched *s, const tenant *t, int64_t now) {
    sched_job *aside = t->aside.first, *waiting = may_start(s, t, now) ? t->waiting.first : NULL;
    return !aside ? waiting : !waiting ? aside : aside->place < waiting->place ? aside : waiting;
}

static bool has_permit(const sched *s, const tenant *t) {
    return s->running < s->options.permits + (t->running ? 0 : s->options.extra);
}

/* NULL: no job wants a permit, or no permit is free. */
static sched_job *next_job(const sched *s, int64_t now) {
    sched_job *best = NULL;
    for (const tenant *t = s->tenants; t; t = t->next) {
        sched_job *job = has_permit(s, t) ? next_of(s, t, now) : NULL;
        bool before = job && best && (t->ran_us != best->of->ran_us ? t->ran_us < best->of->ran_us : job->place < best->place);
        best = job && (!best || before) ? job : best;
    }
    return best;
}

/* ---- permits ---- */

static void *run_worker(void *context);

typedef struct beginning {
    sched *sched;
    worker *worker;
} beginning;

/* Blocks all signals in the new thread: the main thread handles them. */
static bool start_thread(sched *s, worker *w) {
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    beginning *b = mem_alloc(sizeof *b);
    *b = (beginning){s, w};
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int reason = thread_create(&thread, &attributes, run_worker, b);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (reason != 0) {
        log_error("sched", "cannot start a worker thread", "lane=%s threads=%u reason=\"%s\"", s->options.name, s->threads,
                  strerror(reason));
        free(b);
    }
    return reason == 0;
}

static worker *make_worker(sched *s) {
    worker *w = mem_zero(sizeof *w);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (start_thread(s, w)) {
        s->threads++;
        s->failed_us = 0;
        return w;
    }
    s->failed_us = now_us(s) | 1;
    pthread_cond_destroy(&w->wake);
    free(w);
    return NULL;
}

static worker *take_worker(sched *s) {
    worker *w = s->idle;
    if (!w) {
        return make_worker(s);
    }
    s->idle = w->next;
    return w;
}

/* False: no thread is available, and the job keeps waiting. */
static bool start_job(sched *s, sched_job *job) {
    worker *w = take_worker(s);
    if (!w) {
        return false;
    }
    take_first(&job->of->waiting);
    job->of->waiting_n--;
    job->of->started++;
    s->started++;
    s->counts.waiting--;
    w->job = job;
    job->on = w;
    return true;
}

static void count_running(sched *s, int more) {
    s->running += (unsigned)more;
    atomic_store_explicit(&s->crowded, s->running > s->options.permits, memory_order_relaxed);
}

static void grant(sched *s, sched_job *job, int64_t now) {
    count_running(s, 1);
    job->of->running++;
    s->ready--;
    job->since_us = job->granted_us = now;
    job->on->granted = true;
    pthread_cond_signal(&job->on->wake);
}

/* Lock held, as in all functions above. Grants the free permits. */
static void grant_all(sched *s, int64_t now) {
    for (sched_job *job; (job = next_job(s, now));) {
        if (job->on) {
            take_first(&job->of->aside);
            s->counts.aside--;
            grant(s, job, now);
        } else if (start_job(s, job)) {
            job->waited_us = now - job->since_us;
            grant(s, job, now);
        } /* otherwise no thread can be started, and next_job skips jobs that need one */
    }
}

static void pay(sched_job *job, int64_t now) {
    job->of->ran_us += now - job->since_us;
    job->since_us = now;
}

static void give_permit(sched *s, sched_job *job) {
    count_running(s, -1);
    job->of->running--;
    job->on->granted = false;
}

/* ---- a job's check points ---- */

/* Lock held. */
static void stand_aside(sched *s, sched_job *job, int64_t now) {
    worker *w = job->on;
    give_permit(s, job);
    job->place = s->places++;
    append(&job->of->aside, job);
    s->counts.aside++;
    s->ready++;
    grant_all(s, now);
    s->counts.turns += !w->granted;
    while (!w->granted) {
        pthread_cond_wait(&w->wake, &s->lock);
    }
    job->turn.waited_us += job->since_us - now;
}

/* Lock held. A thread switch costs time, so jobs of one tenant are switched less often than tenants. */
static bool ends_turn(const sched *s, const sched_job *job, int64_t now) {
    const tenant *t = job->of;
    unsigned own = (t->waiting.first && t->started < s->options.started_per_tenant) + (t->aside.first != NULL);
    bool others = false;
    for (const tenant *each = s->tenants; each && !others; each = each->next) {
        others = each != t && (each->waiting.first || each->aside.first);
    }
    return s->running > s->options.permits || others || (own && now - job->granted_us >= s->options.own_slices * s->options.slice_us);
}

static err check(op_turn *turn) {
    sched_job *job = (sched_job *)turn;
    sched *s = job->sched;
    int64_t now = now_us(s);
    bool crowded = atomic_load_explicit(&s->crowded, memory_order_relaxed);
    if (now - job->since_us >= s->options.slice_us / (crowded ? CROWDED_PART : 1)) {
        pthread_mutex_lock(&s->lock);
        pay(job, now);
        if (ends_turn(s, job, now)) {
            stand_aside(s, job, now);
        }
        pthread_mutex_unlock(&s->lock);
    }
    bool ends = atomic_load_explicit(&job->cancelled, memory_order_relaxed) || atomic_load_explicit(&s->stopping, memory_order_relaxed);
    return ends ? E_CANCELLED : OK;
}

/* ---- threads ---- */

/* Lock held. Returns ETIMEDOUT, or 0. */
static int wait_idle(sched *s, worker *w) {
    struct timespec until;
    if (s->threads == 1) { /* the last thread stays: the system might refuse a new one later */
        return pthread_cond_wait(&w->wake, &s->lock);
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + s->options.idle_ms * (int64_t)1000000;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    return pthread_cond_timedwait(&w->wake, &s->lock, &until);
}

/* Lock held. False: no job came, and the thread ends. */
static bool wait_for_job(sched *s, worker *w) {
    int reason = 0;
    while (!w->job && !atomic_load(&s->stopping) && !(reason == ETIMEDOUT && s->threads > 1)) {
        reason = wait_idle(s, w);
    }
    return w->job != NULL;
}

/* Lock held, but released during the work. */
static void do_job(sched *s, worker *w) {
    sched_job *job = w->job;
    pthread_mutex_unlock(&s->lock);
    job->work(job);
    pthread_mutex_lock(&s->lock);
    int64_t now = now_us(s);
    job->ran_us = now - job->granted_us;
    pay(job, now);
    give_permit(s, job);
    job->of->started--;
    s->started--;
    w->job = NULL;
    w->next = s->idle;
    s->idle = w;
    grant_all(s, now); /* may start another job on this thread */
    job->followed = w->job != NULL;
    pthread_mutex_unlock(&s->lock);
    job->done(job);
    pthread_mutex_lock(&s->lock);
}

static void end_worker(sched *s, worker *w) {
    for (worker **at = &s->idle; *at; at = &(*at)->next) {
        if (*at == w) {
            *at = w->next;
            break;
        }
    }
    s->threads--;
    pthread_cond_destroy(&w->wake);
    free(w);
    pthread_cond_signal(&s->ended);
}

/* Lowers the thread's priority (raises its nice value), so that on a busy machine loops go first and run sooner when they wake. Its own
 * value is that of the thread that started it, which may be a worker. */
static void give_way(const sched *s) {
    setpriority(PRIO_PROCESS, (id_t)gettid(), s->nice + NICER);
}

static void *run_worker(void *context) {
    beginning b = *(beginning *)context;
    sched *s = b.sched;
    free(context);
    pthread_setname_np(pthread_self(), s->options.name);
    if (!s->options.urgent) {
        give_way(s);
    }
    pthread_mutex_lock(&s->lock);
    while (wait_for_job(s, b.worker)) {
        do_job(s, b.worker);
    }
    end_worker(s, b.worker);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- jobs ---- */

static err find_room(const sched *s, const tenant *t) {
    unsigned most = t->waiting_n ? s->options.waiting_max : 2 * s->options.waiting_max;
    return t->waiting_n >= s->options.waiting_per_tenant ? E_TENANT_BUSY : s->counts.waiting >= most ? E_WORK_BUSY : OK;
}

static err admit(const sched *s, const tenant *t) {
    bool ends = atomic_load(&s->stopping) || (s->threads == 0 && !has_thread(s, now_us(s)));
    return ends ? E_UNAVAILABLE : find_room(s, t);
}

static void enqueue(sched *s, tenant *t, sched_job *job) {
    wake_tenant(s, t);
    job->sched = s;
    job->of = t;
    job->on = NULL;
    job->code = OK;
    job->waited_us = job->ran_us = 0;
    job->followed = false;
    job->since_us = now_us(s);
    job->turn = (op_turn){.check = check};
    job->place = s->places++;
    atomic_init(&job->cancelled, false);
    append(&t->waiting, job);
    t->waiting_n++;
    s->counts.waiting++;
    s->counts.jobs++;
    s->ready++;
    grant_all(s, job->since_us);
}

/* Lock held. False: the job was started already. */
static bool dequeue(sched *s, sched_job *job, err code) {
    if (job->on || !take_out(&job->of->waiting, job)) {
        return false;
    }
    job->of->waiting_n--;
    s->counts.waiting--;
    s->ready--;
    job->code = code;
    return true;
}

err sched_submit(sched *s, sched_job *job) {
    pthread_mutex_lock(&s->lock);
    tenant *t = find_tenant(s, job->tenant);
    err code = admit(s, t);
    if (code == OK) {
        enqueue(s, t, job);
    }
    if (code == OK && s->threads == 0 && dequeue(s, job, OK)) { /* no thread could be started, and there is none to take the job later */
        code = E_UNAVAILABLE;
    }
    s->counts.refused += code != OK;
    pthread_mutex_unlock(&s->lock);
    return code;
}

void sched_cancel(sched_job *job) {
    sched *s = job->sched;
    pthread_mutex_lock(&s->lock);
    atomic_store_explicit(&job->cancelled, true, memory_order_relaxed);
    s->counts.cancelled++;
    bool waited = dequeue(s, job, E_CANCELLED);
    pthread_mutex_unlock(&s->lock);
    if (waited) {
        job->done(job);
    }
}

sched_counts sched_counted(sched *s) {
    pthread_mutex_lock(&s->lock);
    sched_counts counts = s->counts;
    counts.threads = s->threads;
    counts.running = s->running;
    pthread_mutex_unlock(&s->lock);
    return counts;
}

/* ---- life ---- */

sched *sched_open(const sched_options *options) {
    sched *s = mem_zero(sizeof *s);
    s->options = *options;
    s->nice = getpriority(PRIO_PROCESS, (id_t)gettid());
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->ended, NULL);
    pthread_mutex_lock(&s->lock);
    s->idle = make_worker(s);
    pthread_mutex_unlock(&s->lock);
    return s;
}

static sched_job *any_waiting(const sched *s) {
    for (const tenant *t = s->tenants; t; t = t->next) {
        if (t->waiting.first) {
            return t->waiting.first;
        }
    }
    return NULL;
}

static void refuse_waiting(sched *s) {
    for (sched_job *job; (job = any_waiting(s));) {
        dequeue(s, job, E_UNAVAILABLE);
        pthread_mutex_unlock(&s->lock);
        job->done(job);
        pthread_mutex_lock(&s->lock);
    }
}

void sched_stop(sched *s) {
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->stopping, true);
    refuse_waiting(s);
    for (worker *w = s->idle; w; w = w->next) {
        pthread_cond_signal(&w->wake);
    }
    while (s->threads) {
        pthread_cond_wait(&s->ended, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
}

void sched_close(sched *s) {
    sched_stop(s);
    find_least(s);
    forget_tenants(s);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->ended);
    free(s);
}
