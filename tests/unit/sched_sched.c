/* The order in which jobs of several tenants run with one permit. Only the jobs' own work advances the clock, so every order is
 * deterministic. One test uses many threads and the real clock, for ThreadSanitizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"
#include "sched/sched.h"

enum { SLICE_US = 1000, LOG_MAX = 4096 };

/* ---- a clock that the jobs' work advances ---- */

static _Atomic int64_t time_us;

static int64_t read_time(const clock_source *c) {
    (void)c;
    return atomic_load(&time_us);
}

static const clock_source work_clock = {.wall_ms = read_time, .monotonic_us = read_time};

/* ---- jobs ---- */

typedef struct task {
    sched_job job;  /* must be first */
    unsigned steps; /* each step is a slice of work and a check point */
    char name;
    sem_t *begun, *goes_on;  /* if not NULL, posted and waited for at the beginning of the work */
    struct task *submits;    /* a job that this one submits; NULL: none */
    unsigned submits_before; /* `submits` is submitted in step number steps - submits_before, counting from 0 */
    sched *sched;
    err seen; /* result of the last check point */
    bool worked;
    int64_t waited_us;
    int nice; /* of the thread that did it */
    sem_t done;
} task;

static char order[LOG_MAX + 1];
static atomic_uint order_n;

static void do_steps(sched_job *job) {
    task *t = (task *)job;
    t->worked = true;
    t->nice = getpriority(PRIO_PROCESS, (id_t)gettid());
    if (t->begun) {
        sem_post(t->begun);
        sem_wait(t->goes_on);
    }
    for (unsigned i = 0; i < t->steps && t->seen == OK; i++) {
        order[atomic_fetch_add(&order_n, 1) % LOG_MAX] = t->name;
        atomic_fetch_add(&time_us, SLICE_US);
        if (t->submits && i + t->submits_before == t->steps) {
            assert_int_equal(sched_submit(t->sched, &t->submits->job), OK);
        }
        t->seen = job->turn.check(&job->turn);
    }
    t->waited_us = job->turn.waited_us;
}

static void is_done(sched_job *job) {
    sem_post(&((task *)job)->done);
}

static task *make(char name, unsigned steps) {
    task *t = mem_zero(sizeof *t);
    t->name = name;
    t->steps = steps;
    t->job = (sched_job){.tenant = (uint64_t)name, .work = do_steps, .done = is_done};
    sem_init(&t->done, 0, 0);
    return t;
}

static void wait_and_free(task *t) {
    sem_wait(&t->done);
    sem_destroy(&t->done);
    free(t);
}

/* ---- a scheduler whose only permit is held until all jobs of a test are submitted ---- */

typedef struct bench {
    sched *sched;
    task *gate;
    sem_t begun, goes_on;
} bench;

static bench open_bench(sched_options options) {
    bench b = {0};
    options.name = "test";
    options.clock = &work_clock;
    options.slice_us = SLICE_US;
    options.idle_ms = 10000;
    b.sched = sched_open(&options);
    atomic_store(&order_n, 0);
    return b;
}

static const sched_options roomy = {
    .permits = 1, .started_max = 32, .started_per_tenant = 32, .waiting_max = 100, .waiting_per_tenant = 100};

static void hold(bench *b) {
    sem_init(&b->begun, 0, 0);
    sem_init(&b->goes_on, 0, 0);
    b->gate = make('g', 0);
    b->gate->begun = &b->begun;
    b->gate->goes_on = &b->goes_on;
    assert_int_equal(sched_submit(b->sched, &b->gate->job), OK);
    sem_wait(&b->begun);
}

static void let_go(bench *b) {
    sem_post(&b->goes_on);
    wait_and_free(b->gate);
    sem_destroy(&b->begun);
    sem_destroy(&b->goes_on);
}

static const char *seen_order(void) {
    order[atomic_load(&order_n)] = '\0';
    return order;
}

/* ---- fairness ---- */

/* Nine jobs of one tenant and one of another: the single job gets half of the time, while it has work. */
static void a_tenants_turn_comes_round(void **state) {
    (void)state;
    bench b = open_bench(roomy);
    task *many[9], *one = make('b', 4);
    hold(&b);
    for (unsigned i = 0; i < 9; i++) {
        many[i] = make('a', 2);
        assert_int_equal(sched_submit(b.sched, &many[i]->job), OK);
    }
    assert_int_equal(sched_submit(b.sched, &one->job), OK);
    let_go(&b);
    wait_and_free(one);
    for (unsigned i = 0; i < 9; i++) {
        wait_and_free(many[i]);
    }
    assert_string_equal(seen_order(), "ababababaaaaaaaaaaaaaa");
    sched_close(b.sched);
}

/* Run time counts, not the number of turns. */
static void time_counts_not_turns(void **state) {
    (void)state;
    bench b = open_bench(roomy);
    task *a = make('a', 6), *c = make('c', 2);
    hold(&b);
    a->submits = c;
    a->sched = b.sched;
    a->submits_before = 6; /* in its first step */
    assert_int_equal(sched_submit(b.sched, &a->job), OK);
    let_go(&b);
    wait_and_free(a);
    wait_and_free(c);
    assert_string_equal(seen_order(), "acacaaaa");
    sched_close(b.sched);
}

/* A tenant that ran alone for long has no debt: a newcomer starts at its run time. */
static void a_newcomer_begins_at_the_minimum(void **state) {
    (void)state;
    bench b = open_bench(roomy);
    task *a = make('a', 20), *c = make('c', 5);
    a->submits = c;
    a->sched = b.sched;
    a->submits_before = 8; /* after twelve steps */
    assert_int_equal(sched_submit(b.sched, &a->job), OK);
    wait_and_free(a);
    wait_and_free(c);
    assert_string_equal(seen_order(), "aaaaaaaaaaaaacacacacacaaa");
    sched_close(b.sched);
}

/* Jobs of one tenant take turns, also with later ones. */
static void jobs_of_a_tenant_take_turns(void **state) {
    (void)state;
    bench b = open_bench(roomy);
    task *jobs[3];
    hold(&b);
    for (unsigned i = 0; i < 3; i++) {
        jobs[i] = make((char)('x' + i), 3);
        jobs[i]->job.tenant = 1;
        assert_int_equal(sched_submit(b.sched, &jobs[i]->job), OK);
    }
    let_go(&b);
    for (unsigned i = 0; i < 3; i++) {
        sem_wait(&jobs[i]->done);
        assert_int_equal(jobs[i]->waited_us, (6 - i) * SLICE_US); /* at each job's last check point the others have less left to do */
        sem_post(&jobs[i]->done);
        wait_and_free(jobs[i]);
    }
    assert_string_equal(seen_order(), "xyzxyzxyz");
    sched_close(b.sched);
}

/* While no other tenant wants the permit, a job keeps it for several slices. Another tenant's job ends the turn after one. */
static void a_turn_among_jobs_of_one_tenant_is_longer(void **state) {
    (void)state;
    sched_options options = roomy;
    options.own_slices = 2;
    bench b = open_bench(options);
    task *jobs[3];
    hold(&b);
    for (unsigned i = 0; i < 2; i++) {
        jobs[i] = make((char)('x' + i), 5);
        jobs[i]->job.tenant = 1;
        assert_int_equal(sched_submit(b.sched, &jobs[i]->job), OK);
    }
    jobs[2] = make('b', 1);
    jobs[0]->submits = jobs[2];
    jobs[0]->submits_before = 3; /* in its third step, which is the first of its second turn */
    jobs[0]->sched = b.sched;
    let_go(&b);
    for (unsigned i = 0; i < 3; i++) {
        wait_and_free(jobs[i]);
    }
    assert_string_equal(seen_order(), "xxyyxbyxxyy"); /* b needs the permit once more, to end, so y's turn is one slice */
    sched_close(b.sched);
}

/* `done` can tell whether jobs queue up: from how long the job waited, and whether its thread has the next one. It also knows how long the
 * job ran. */
static void a_done_job_knows_its_wait_and_its_follower(void **state) {
    (void)state;
    sched_options options = roomy;
    options.own_slices = 2;
    bench b = open_bench(options);
    task *first = make('a', 1), *last = make('a', 1);
    hold(&b);
    assert_int_equal(sched_submit(b.sched, &first->job), OK);
    assert_int_equal(sched_submit(b.sched, &last->job), OK);
    atomic_fetch_add(&time_us, 7 * SLICE_US);
    let_go(&b);
    sem_wait(&first->done);
    sem_wait(&last->done);
    assert_int_equal(first->job.waited_us, 7 * SLICE_US);
    assert_int_equal(last->job.waited_us, 8 * SLICE_US);
    assert_int_equal(first->job.ran_us, SLICE_US);
    assert_int_equal(last->job.ran_us, SLICE_US);
    assert_true(first->job.followed);
    assert_false(last->job.followed);
    sem_post(&first->done);
    sem_post(&last->done);
    wait_and_free(first);
    wait_and_free(last);
    sched_close(b.sched);
}

/* The only permit is held: a tenant without a running job need not wait for it, but the tenant that holds it must. */
static void an_extra_permit_is_for_others(void **state) {
    (void)state;
    sched_options options = roomy;
    options.extra = 1;
    bench b = open_bench(options);
    task *same = make('g', 1), *other = make('b', 3);
    hold(&b);
    assert_int_equal(sched_submit(b.sched, &same->job), OK);
    assert_int_equal(sched_submit(b.sched, &other->job), OK);
    sem_wait(&other->done);
    assert_int_equal(sched_counted(b.sched).running, 1);
    assert_int_equal(sched_counted(b.sched).waiting, 1);
    sem_post(&other->done);
    wait_and_free(other);
    let_go(&b);
    wait_and_free(same);
    assert_string_equal(seen_order(), "bbbg");
    sched_close(b.sched);
}

/* A job that is alone is not interrupted. */
static void a_single_job_is_not_interrupted(void **state) {
    (void)state;
    bench b = open_bench(roomy);
    task *a = make('a', 50);
    assert_int_equal(sched_submit(b.sched, &a->job), OK);
    sem_wait(&a->done);
    assert_int_equal(a->waited_us, 0);
    assert_int_equal(sched_counted(b.sched).turns, 0);
    sem_post(&a->done);
    wait_and_free(a);
    sched_close(b.sched);
}

/* ---- bounds ---- */

static void queues_are_bounded(void **state) {
    (void)state;
    bench b =
        open_bench((sched_options){.permits = 1, .started_max = 8, .started_per_tenant = 8, .waiting_max = 4, .waiting_per_tenant = 3});
    task *jobs[5];
    hold(&b);
    for (unsigned i = 0; i < 3; i++) {
        jobs[i] = make('a', 1);
        assert_int_equal(sched_submit(b.sched, &jobs[i]->job), OK);
    }
    task *surplus = make('a', 1);
    assert_int_equal(sched_submit(b.sched, &surplus->job), E_TENANT_BUSY);
    jobs[3] = make('b', 1);
    assert_int_equal(sched_submit(b.sched, &jobs[3]->job), OK);
    surplus->job.tenant = 'b';
    assert_int_equal(sched_submit(b.sched, &surplus->job), E_WORK_BUSY);
    jobs[4] = make('c', 1); /* other tenants' jobs fill the queue, but a new tenant still gets its place */
    assert_int_equal(sched_submit(b.sched, &jobs[4]->job), OK);
    assert_int_equal(sched_counted(b.sched).refused, 2);
    assert_int_equal(sched_counted(b.sched).waiting, 5);
    let_go(&b);
    for (unsigned i = 0; i < 5; i++) {
        wait_and_free(jobs[i]);
    }
    assert_false(surplus->worked);
    sem_post(&surplus->done);
    wait_and_free(surplus);
    sched_close(b.sched);
}

/* At most two jobs are started: the third of one tenant waits until one is done. Another tenant's job is started all the same. */
static void started_jobs_are_bounded(void **state) {
    (void)state;
    bench b =
        open_bench((sched_options){.permits = 1, .started_max = 2, .started_per_tenant = 2, .waiting_max = 9, .waiting_per_tenant = 9});
    task *jobs[4];
    hold(&b);
    for (unsigned i = 0; i < 3; i++) {
        jobs[i] = make((char)('x' + i), 4);
        jobs[i]->job.tenant = 1;
        assert_int_equal(sched_submit(b.sched, &jobs[i]->job), OK);
    }
    jobs[3] = make('b', 2);
    jobs[0]->submits = jobs[3];
    jobs[0]->submits_before = 3; /* in its second step, when the others have started */
    jobs[0]->sched = b.sched;
    let_go(&b);
    for (unsigned i = 0; i < 4; i++) {
        wait_and_free(jobs[i]);
    }
    assert_string_equal(seen_order(), "xyxbybxyxyzzzz");
    sched_close(b.sched);
}

/* ---- cancelling ---- */

static void what_waits_is_not_begun_when_cancelled(void **state) {
    (void)state;
    bench b = open_bench(roomy);
    task *first = make('a', 1), *second = make('a', 1), *third = make('a', 1);
    hold(&b);
    assert_int_equal(sched_submit(b.sched, &first->job), OK);
    assert_int_equal(sched_submit(b.sched, &second->job), OK);
    sched_cancel(&second->job);
    assert_int_equal(sem_trywait(&second->done), 0);
    assert_int_equal(second->job.code, E_CANCELLED);
    assert_false(second->worked);
    assert_int_equal(sched_submit(b.sched, &third->job), OK); /* the queue still works after its last job was removed */
    let_go(&b);
    wait_and_free(first);
    wait_and_free(third);
    sem_post(&second->done);
    wait_and_free(second);
    assert_string_equal(seen_order(), "aa");
    sched_close(b.sched);
}

static void what_runs_sees_it_at_its_check_point(void **state) {
    (void)state;
    bench b = open_bench(roomy);
    hold(&b);
    b.gate->steps = 100;
    sched_cancel(&b.gate->job);
    sem_post(&b.goes_on);
    sem_wait(&b.gate->done);
    assert_int_equal(b.gate->seen, E_CANCELLED);
    assert_int_equal(b.gate->job.code, OK); /* it had started, so it reports its own result */
    assert_string_equal(seen_order(), "g");
    sem_post(&b.gate->done);
    wait_and_free(b.gate);
    sched_close(b.sched);
}

static void *stop(void *context) {
    sched_stop(context);
    return NULL;
}

static void stopping_ends_all(void **state) {
    (void)state;
    bench b = open_bench(roomy);
    task *waiting = make('a', 1), *late = make('a', 1);
    pthread_t stopper;
    hold(&b);
    b.gate->steps = 100;
    assert_int_equal(sched_submit(b.sched, &waiting->job), OK);
    pthread_create(&stopper, NULL, stop, b.sched);
    sem_wait(&waiting->done);
    assert_int_equal(waiting->job.code, E_UNAVAILABLE);
    assert_false(waiting->worked);
    assert_int_equal(sched_submit(b.sched, &late->job), E_UNAVAILABLE);
    sem_post(&b.goes_on);
    sem_wait(&b.gate->done);
    assert_int_equal(b.gate->seen, E_CANCELLED);
    pthread_join(stopper, NULL);
    assert_int_equal(sched_counted(b.sched).threads, 0);
    for (task **t = (task *[]){b.gate, waiting, late, NULL}; *t; t++) {
        sem_post(&(*t)->done);
        wait_and_free(*t);
    }
    sched_close(b.sched);
}

/* ---- many threads ---- */

enum { SUBMITTERS = 4, JOBS_EACH = 200 };

typedef struct real_job {
    sched_job job; /* must be first */
    atomic_uint *left;
    unsigned seed;
    _Atomic bool done;
} real_job;

static void spin(sched_job *job) {
    real_job *r = (real_job *)job;
    for (unsigned i = 0; i < r->seed % 40; i++) {
        int64_t until = clock_monotonic_us(&clock_system) + 20;
        while (clock_monotonic_us(&clock_system) < until) {
        }
        if (job->turn.check(&job->turn) != OK) {
            return;
        }
    }
}

static void spun(sched_job *job) {
    real_job *r = (real_job *)job;
    assert_false(atomic_exchange(&r->done, true));
    atomic_fetch_sub(r->left, 1);
}

typedef struct submitter {
    sched *sched;
    pthread_t thread;
    unsigned seed;
    atomic_uint left;
    real_job jobs[JOBS_EACH];
} submitter;

static void *submit_many(void *context) {
    submitter *s = context;
    for (unsigned i = 0; i < JOBS_EACH; i++) {
        real_job *r = &s->jobs[i];
        s->seed = s->seed * 1103515245 + 12345;
        *r = (real_job){.left = &s->left, .seed = s->seed >> 16, .job = {.tenant = s->seed >> 8 & 3, .work = spin, .done = spun}};
        atomic_fetch_add(&s->left, 1);
        if (sched_submit(s->sched, &r->job) != OK) {
            atomic_fetch_sub(&s->left, 1);
        } else if (i % 5 == 4) { /* may be too late, which is harmless: the memory stays valid until the end */
            sched_cancel(&r->job);
        }
    }
    return NULL;
}

static void many_threads(void **state) {
    (void)state;
    sched_options options = {.name = "test",
                             .permits = 2,
                             .extra = 2,
                             .started_max = 6,
                             .started_per_tenant = 3,
                             .waiting_max = 40,
                             .waiting_per_tenant = 20,
                             .slice_us = 50,
                             .idle_ms = 10000,
                             .clock = &clock_system};
    sched *s = sched_open(&options);
    submitter *all = mem_zero(SUBMITTERS * sizeof *all);
    for (unsigned i = 0; i < SUBMITTERS; i++) {
        all[i].sched = s;
        all[i].seed = i + 1;
        pthread_create(&all[i].thread, NULL, submit_many, &all[i]);
    }
    for (unsigned i = 0; i < SUBMITTERS; i++) {
        pthread_join(all[i].thread, NULL);
    }
    sched_counts counts = sched_counted(s);
    assert_int_equal(counts.jobs + counts.refused, SUBMITTERS * JOBS_EACH);
    assert_true(counts.jobs > 40);
    sched_close(s);
    for (unsigned i = 0; i < SUBMITTERS; i++) {
        assert_int_equal(atomic_load(&all[i].left), 0);
    }
    free(all);
}

/* ---- without threads ---- */

static int refuse_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context) {
    (void)thread;
    (void)attributes;
    (void)run;
    (void)context;
    return EAGAIN;
}

static sched *open_small(unsigned idle_ms) {
    sched_options options = {.name = "test",
                             .permits = 2,
                             .started_max = 2,
                             .started_per_tenant = 2,
                             .waiting_max = 10,
                             .waiting_per_tenant = 10,
                             .slice_us = SLICE_US,
                             .idle_ms = idle_ms,
                             .clock = &work_clock};
    return sched_open(&options);
}

static void without_a_thread_jobs_are_refused_not_kept(void **state) {
    (void)state;
    thread_create = refuse_thread;
    sched *s = open_small(10000);
    atomic_fetch_add(&time_us, 2000000);
    atomic_uint left = 1;
    real_job job = {.left = &left, .seed = 1, .job = {.tenant = 1, .work = spin, .done = spun}};
    assert_int_equal(sched_submit(s, &job.job), E_UNAVAILABLE);
    thread_create = pthread_create;
    assert_int_equal(sched_submit(s, &job.job), E_UNAVAILABLE); /* threads are only retried after a second */
    atomic_fetch_add(&time_us, 2000000);
    assert_int_equal(sched_submit(s, &job.job), OK);
    sched_close(s);
    assert_int_equal(atomic_load(&left), 0);
}

static void submit_two_and_wait(sched *s) {
    sem_t begun, goes_on;
    task t[2];
    sem_init(&begun, 0, 0);
    sem_init(&goes_on, 0, 0);
    for (unsigned i = 0; i < 2; i++) {
        t[i] = (task){.name = 'a', .begun = &begun, .goes_on = &goes_on, .job = {.tenant = i, .work = do_steps, .done = is_done}};
        sem_init(&t[i].done, 0, 0);
        assert_int_equal(sched_submit(s, &t[i].job), OK);
    }
    sem_wait(&begun);
    sem_wait(&begun);
    sem_post(&goes_on);
    sem_post(&goes_on);
    for (unsigned i = 0; i < 2; i++) {
        sem_wait(&t[i].done);
    }
}

/* Threads without work end, except the last one, which serves alone if the system refuses more. */
static void one_thread_is_there_from_the_beginning_to_the_end(void **state) {
    (void)state;
    sched *s = open_small(1);
    assert_int_equal(sched_counted(s).threads, 1);
    submit_two_and_wait(s);
    for (unsigned ms = 0; sched_counted(s).threads > 1; ms++) {
        assert_true(ms < 60000);
        usleep(1000);
    }
    usleep(50 * 1000);
    assert_int_equal(sched_counted(s).threads, 1);
    thread_create = refuse_thread;
    atomic_uint left = 1;
    real_job job = {.left = &left, .seed = 1, .job = {.tenant = 1, .work = spin, .done = spun}};
    assert_int_equal(sched_submit(s, &job.job), OK);
    for (unsigned ms = 0; atomic_load(&left); ms++) {
        assert_true(ms < 60000);
        usleep(1000);
    }
    thread_create = pthread_create;
    sched_close(s);
}

/* A thread inherits the nice value of the one that starts it, here of a worker. */
static void all_threads_have_one_priority(void **state) {
    (void)state;
    bench b = open_bench(roomy);
    task *a = make('a', 3), *c = make('c', 3), *e = make('e', 3);
    a->submits = c;
    c->submits = e;
    a->sched = c->sched = b.sched;
    a->submits_before = c->submits_before = 3;
    assert_int_equal(sched_submit(b.sched, &a->job), OK);
    sem_wait(&a->done);
    sem_wait(&c->done);
    sem_wait(&e->done);
    assert_int_equal(sched_counted(b.sched).threads, 3);
    assert_true(a->nice > getpriority(PRIO_PROCESS, (id_t)gettid()) || a->nice == 19);
    assert_int_equal(c->nice, a->nice);
    assert_int_equal(e->nice, a->nice);
    sem_post(&a->done);
    sem_post(&c->done);
    sem_post(&e->done);
    wait_and_free(a);
    wait_and_free(c);
    wait_and_free(e);
    sched_close(b.sched);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tenants_turn_comes_round),
        cmocka_unit_test(time_counts_not_turns),
        cmocka_unit_test(a_newcomer_begins_at_the_minimum),
        cmocka_unit_test(jobs_of_a_tenant_take_turns),
        cmocka_unit_test(a_turn_among_jobs_of_one_tenant_is_longer),
        cmocka_unit_test(a_done_job_knows_its_wait_and_its_follower),
        cmocka_unit_test(an_extra_permit_is_for_others),
        cmocka_unit_test(a_single_job_is_not_interrupted),
        cmocka_unit_test(queues_are_bounded),
        cmocka_unit_test(started_jobs_are_bounded),
        cmocka_unit_test(all_threads_have_one_priority),
        cmocka_unit_test(what_waits_is_not_begun_when_cancelled),
        cmocka_unit_test(what_runs_sees_it_at_its_check_point),
        cmocka_unit_test(stopping_ends_all),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(without_a_thread_jobs_are_refused_not_kept),
        cmocka_unit_test(one_thread_is_there_from_the_beginning_to_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
