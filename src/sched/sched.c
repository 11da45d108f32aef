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
    CROWDED_PART = 8 /* of a slice, when extra permits are held */
};

typedef struct jobs {
    sched_job *first, *last;
} jobs;

typedef struct sched_tenant tenant;
struct sched_tenant {
    uint64_t id;
    tenant *next;
    int64_t ran_us; /* virtual: see `least_us` */
    jobs waiting;   /* not started */
    jobs aside;     /* started, without a permit */
    unsigned waiting_n, started, running;
};

typedef struct sched_worker worker;
struct sched_worker {
    worker *next;   /* of the idle ones, the last used first */
    sched_job *job; /* NULL: idle */
    bool granted;   /* its job holds a permit */
    pthread_cond_t wake;
};

struct sched {
    sched_options options;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    tenant *tenants;  /* those with jobs, and those that ran more than the least */
    int64_t least_us; /* virtual run time where newcomers begin; never goes back */
    uint64_t places;
    unsigned ready; /* jobs that want a permit */
    unsigned started, running, threads;
    worker *idle;
    int64_t failed_us; /* when a thread could not be made; 0: it could */
    atomic_bool stopping;
    atomic_bool crowded; /* extra permits are held: the next job at a check point gives its own back */
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

/* The least that a tenant with jobs has run; if none has any, the most that any has, and all debts are forgotten. */
static void find_least(sched *s) {
    int64_t least = INT64_MAX, most = s->least_us;
    for (const tenant *t = s->tenants; t; t = t->next) {
        least = !is_idle(t) && t->ran_us < least ? t->ran_us : least;
        most = t->ran_us > most ? t->ran_us : most;
    }
    least = least == INT64_MAX ? most : least;
    s->least_us = least > s->least_us ? least : s->least_us;
}

/* One that has run more than the least is kept while it is idle, or else it could forget its debt by leaving. */
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

/* Whoever was idle comes back with what it owes, never with savings. */
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

/* Of one tenant: whoever has wanted a permit for longest. */
static sched_job *next_of(const sched *s, const tenant *t, int64_t now) {
    sched_job *aside = t->aside.first, *waiting = may_start(s, t, now) ? t->waiting.first : NULL;
    return !aside ? waiting : !waiting ? aside : aside->place < waiting->place ? aside : waiting;
}

static bool has_permit(const sched *s, const tenant *t) {
    return s->running < s->options.permits + (t->running ? 0 : s->options.extra);
}

/* NULL: nobody wants a permit, or there is none. */
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

/* Signals are for the thread that serves. */
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

/* False: there is no thread for it; it goes on waiting. */
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

/* With the lock, as all above: gives the permits that nobody holds. */
static void grant_all(sched *s, int64_t now) {
    for (sched_job *job; (job = next_job(s, now));) {
        if (job->on) {
            take_first(&job->of->aside);
            s->counts.aside--;
            grant(s, job, now);
        } else if (start_job(s, job)) {
            grant(s, job, now);
        } /* or else no thread can be made, and those that wait are not asked again */
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

/* With the lock. */
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

/* With the lock. Every switch of threads costs time, so jobs of one tenant are switched more rarely than tenants are. */
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

/* With the lock. Returns ETIMEDOUT, or 0. */
static int wait_idle(sched *s, worker *w) {
    struct timespec until;
    if (s->threads == 1) { /* the last one stays: another might be refused when it is needed */
        return pthread_cond_wait(&w->wake, &s->lock);
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + s->options.idle_ms * (int64_t)1000000;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    return pthread_cond_timedwait(&w->wake, &s->lock, &until);
}

/* With the lock. False: nothing came, and the thread ends. */
static bool wait_for_job(sched *s, worker *w) {
    int reason = 0;
    while (!w->job && !atomic_load(&s->stopping) && !(reason == ETIMEDOUT && s->threads > 1)) {
        reason = wait_idle(s, w);
    }
    return w->job != NULL;
}

/* With the lock, which is let go meanwhile. */
static void do_job(sched *s, worker *w) {
    sched_job *job = w->job;
    pthread_mutex_unlock(&s->lock);
    job->work(job);
    pthread_mutex_lock(&s->lock);
    int64_t now = now_us(s);
    pay(job, now);
    give_permit(s, job);
    job->of->started--;
    s->started--;
    w->job = NULL;
    w->next = s->idle;
    s->idle = w;
    grant_all(s, now); /* perhaps to a job on this thread */
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

/* On a busy machine loops go first: the kernel gives a thread that is nicer a smaller share, and others run sooner when they wake. */
static void give_way(void) {
    id_t thread = (id_t)gettid();
    setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + NICER);
}

static void *run_worker(void *context) {
    beginning b = *(beginning *)context;
    sched *s = b.sched;
    free(context);
    pthread_setname_np(pthread_self(), s->options.name);
    give_way();
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
    job->turn = (op_turn){.check = check};
    job->place = s->places++;
    atomic_init(&job->cancelled, false);
    append(&t->waiting, job);
    t->waiting_n++;
    s->counts.waiting++;
    s->counts.jobs++;
    s->ready++;
    grant_all(s, now_us(s));
}

/* With the lock. False: it was started. */
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
    if (code == OK && s->threads == 0 && dequeue(s, job, OK)) { /* no thread could be made, and nobody else will come */
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
