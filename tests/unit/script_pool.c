/* Worker processes and the threads that use them, with tests/unit/script_fake.c as the worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "script/execute.h"
#include "script/pool.h"
#include "script/run.h"

static const char *fake(void) {
    const char *path = getenv("TESELA_SCRIPT_FAKE");
    if (!path) {
        fail_msg("TESELA_SCRIPT_FAKE names the fake worker");
    }
    return path;
}

static int64_t in_ms(int64_t ms) {
    return script_now_us() + ms * 1000;
}

static size_t open_files(void) {
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir)) {
        n++;
    }
    closedir(dir);
    return n;
}

/* No child process is left, not even a zombie. */
static void no_children_left(void) {
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* ---- one process ---- */

static script_process start_ready(void) {
    script_process p;
    script_frame kind;
    buf text = buf_init(100);
    assert_true(script_process_start(fake(), &p));
    assert_int_equal(script_process_receive(&p, &kind, &text, in_ms(10000)), SCRIPT_FINE);
    assert_int_equal(kind, SCRIPT_READY);
    assert_true(slice_eq(buf_view(&text), SLICE_LIT("{}")));
    buf_free(&text);
    return p;
}

static err no_calls(void *context, slice call, buf *answer) {
    (void)context, (void)call;
    buf_add_lit(answer, "{\"status\":200,\"body\":[1]}");
    return OK;
}

typedef struct result {
    err code;
    arena arena;
    op op;
    script_run run;
} result;

static void run_for(result *r, script_process *p, const char *source, int64_t ms) {
    *r = (result){.arena = arena_init()};
    op_init(&r->op, &r->arena, 0);
    r->run = (script_run){.kind = "sproc",
                          .id = SLICE_LIT("s"),
                          .source = slice_str(source),
                          .arguments = SLICE_LIT("[1,\"é\"]"),
                          .self = SLICE_LIT("dbs/x/colls/y/"),
                          .alt = SLICE_LIT("dbs/d/colls/c"),
                          .until_us = in_ms(ms),
                          .call = no_calls,
                          .arena = &r->arena};
    r->code = script_run_in(p, &r->op, &r->run);
}

static void a_run_gives_its_body_as_it_is(void **state) {
    (void)state;
    static const char *const bodies[] = {"1", "\"text\"", "null", "true", "[1,{\"a\":-2.5}]", "{\"body\":{\"b\":[]}}", "1e+21"};
    script_process p = start_ready();
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char source[100];
        result r;
        snprintf(source, sizeof source, "done {\"log\":\"l\",\"body\":%s}", bodies[i]);
        run_for(&r, &p, source, 10000);
        assert_int_equal(r.code, OK);
        assert_true(r.run.fit);
        assert_true(slice_eq(r.run.body, slice_str(bodies[i])));
        assert_true(slice_eq(r.run.log, SLICE_LIT("l")));
        arena_free(&r.arena);
    }
    result r;
    run_for(&r, &p, "done {}", 10000);
    assert_int_equal(r.code, OK);
    assert_int_equal(r.run.body.n, 0);
    arena_free(&r.arena);
    run_for(&r, &p, "call {\"op\":\"x\"}\nlast", 10000);
    assert_true(slice_eq(r.run.body, SLICE_LIT("{\"status\":200,\"body\":[1]}")));
    arena_free(&r.arena);
    script_process_end(&p);
    no_children_left();
}

static void a_run_tells_what_was_thrown(void **state) {
    (void)state;
    result r;
    script_process p = start_ready();
    run_for(&r, &p, "fault {\"compile\":true,\"message\":\"SyntaxError: no\"}", 10000);
    assert_int_equal(r.code, E_SCRIPT_COMPILE);
    assert_non_null(strstr(r.op.detail, "SyntaxError: no"));
    arena_free(&r.arena);
    run_for(&r, &p, "fault {\"message\":\"Error: x\",\"log\":\"so far\"}", 10000);
    assert_int_equal(r.code, E_SCRIPT_FAILED);
    assert_non_null(strstr(r.op.detail, "Error: x"));
    assert_true(r.run.fit && slice_eq(r.run.log, SLICE_LIT("so far")));
    arena_free(&r.arena);
    script_process_end(&p);
}

/* Whatever a worker does, the run ends in time and reports the worker as unfit. */
static void a_bad_worker_is_unfit(void **state) {
    (void)state;
    static const struct {
        const char *source;
        err code;
        const char *words;
    } cases[] = {
        {"hang", E_SCRIPT_TIMEOUT, ""},
        {"spin 3000", E_SCRIPT_TIMEOUT, ""},
        {"nonsense", E_SCRIPT_FAILED, "engine failed"},
        {"close", E_SCRIPT_FAILED, ""},
        {"die 6", E_SCRIPT_FAILED, "Out of memory"},
        {"die 9", E_UNAVAILABLE, "was killed"},
        {"done [1]", E_SCRIPT_FAILED, "engine failed"},
        {"done {\"body\":", E_SCRIPT_FAILED, "engine failed"},
    };
    size_t files = open_files();
    log_set_level(LOG_ERROR);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result r;
        script_process p = start_ready();
        int64_t begun = script_now_us();
        run_for(&r, &p, cases[i].source, 200);
        if (r.code != cases[i].code || r.run.fit || (*cases[i].words && !strstr(r.op.detail, cases[i].words))) {
            fail_msg("%s: %s, %.*s", cases[i].source, err_lookup(r.code)->name, (int)r.op.detail_n, r.op.detail);
        }
        assert_true(script_now_us() - begun < 2500000);
        arena_free(&r.arena);
        script_process_end(&p);
    }
    assert_int_equal(open_files(), files);
    no_children_left();
}

static void processor_time_is_counted(void **state) {
    (void)state;
    result r;
    script_process p = start_ready();
    run_for(&r, &p, "spin 100\ndone {}", 10000);
    assert_true(r.run.cpu_us > 1000 && r.run.cpu_us < 10000000);
    arena_free(&r.arena);
    run_for(&r, &p, "sleep 100\ndone {}", 10000);
    assert_true(r.run.cpu_us < 90000);
    arena_free(&r.arena);
    script_process_end(&p);
}

/* ---- the pool ---- */

typedef struct job {
    script_job base;
    script_pool *pool;
    const char *source;
    int64_t ms;
    sem_t *ended;
    result result;
    pid_t pid;
    atomic_int *running, *most;
    int place;
} job;

static atomic_int places;

static void work(script_job *base) {
    job *j = (job *)base;
    script_process *p;
    int now = j->running ? atomic_fetch_add(j->running, 1) + 1 : 0;
    if (j->most && now > atomic_load(j->most)) {
        atomic_store(j->most, now);
    }
    j->place = atomic_fetch_add(&places, 1);
    j->result.code = script_process_take(j->pool, &p);
    if (j->result.code == OK) {
        j->pid = p->pid;
        run_for(&j->result, p, j->source, j->ms);
        arena_free(&j->result.arena);
        script_process_give(j->pool, p, j->result.run.fit);
    }
    if (j->running) {
        atomic_fetch_sub(j->running, 1);
    }
}

static void done(script_job *base) {
    job *j = (job *)base;
    sem_post(j->ended);
}

static void submit(script_pool *pool, job *j, const char *source, uint64_t sequence, sem_t *ended) {
    *j = (job){.base = {.sequence = sequence, .work = work, .done = done}, .pool = pool, .source = source, .ms = 10000, .ended = ended};
    assert_int_equal(script_submit(pool, &j->base), OK);
}

static void wait_all(sem_t *ended, size_t n) {
    while (n--) {
        while (sem_wait(ended) != 0) {
        }
    }
}

static script_pool *open_pool(int64_t idle_us) {
    return script_pool_open(&(script_options){.program = fake(), .idle_us = idle_us});
}

static void nothing_is_started_before_it_is_wanted(void **state) {
    (void)state;
    script_pool *pool = open_pool(0);
    usleep(20000);
    script_counts counts = script_pool_counts(pool);
    assert_int_equal(counts.processes, 0);
    assert_int_equal(counts.threads, 0);
    no_children_left();
    script_pool_warm(pool);
    for (int i = 0; i < 1000 && script_pool_counts(pool).idle == 0; i++) {
        usleep(10000);
    }
    counts = script_pool_counts(pool);
    assert_int_equal(counts.idle, 1);
    assert_int_equal(counts.threads, 0);
    script_pool_close(pool);
    no_children_left();
}

static void processes_are_used_again(void **state) {
    (void)state;
    sem_t ended;
    sem_init(&ended, 0, 0);
    script_pool *pool = open_pool(0);
    job j;
    for (int i = 0; i < 20; i++) {
        submit(pool, &j, "done {\"body\":1}", 0, &ended);
        wait_all(&ended, 1);
        assert_int_equal(j.result.code, OK);
    }
    assert_true(script_pool_counts(pool).started <= 3);
    script_pool_close(pool);
    no_children_left();
}

/* Kills a process and waits until it is dead, whether reaped or not. */
static void kill_idle(pid_t pid) {
    siginfo_t info;
    kill(pid, SIGKILL);
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
}

/* If a worker dies, only its own job fails, or none if it was idle. */
static void the_dead_are_replaced(void **state) {
    (void)state;
    sem_t ended;
    sem_init(&ended, 0, 0);
    log_set_level(LOG_ERROR);
    script_pool *pool = open_pool(0);
    job j;
    for (int i = 0; i < 5; i++) {
        submit(pool, &j, "die 6", 0, &ended);
        wait_all(&ended, 1);
        assert_int_equal(j.result.code, E_SCRIPT_FAILED);
        submit(pool, &j, "done {}", 0, &ended);
        wait_all(&ended, 1);
        assert_int_equal(j.result.code, OK);
        kill_idle(j.pid);
    }
    script_pool_close(pool);
    no_children_left();
}

/* A worker that announces its end with a run gets no further run, even in the same attempt. */
static void a_last_run_is_the_last(void **state) {
    (void)state;
    script_pool *pool = open_pool(0);
    arena a = arena_init();
    op o;
    op_init(&o, &a, 0);
    script_attempt attempt = {.op = &o, .pool = pool, .until_us = in_ms(20000)};
    pid_t before = 0;
    for (int i = 0; i < 6; i++) {
        script_run run = {.kind = "sproc", .source = SLICE_LIT("done {\"last\":true,\"body\":1}"), .arena = &a};
        assert_int_equal(script_attempt_run(&attempt, &run), OK);
        assert_true(slice_eq(run.body, SLICE_LIT("1")));
        assert_true(attempt.unfit && attempt.process->pid != before);
        before = attempt.process->pid;
    }
    assert_int_equal(attempt.retired, 0);
    script_process_give(pool, attempt.process, false);
    arena_free(&a);
    script_pool_close(pool);
    no_children_left();
}

static void idle_ones_end_but_for_a_spare(void **state) {
    (void)state;
    enum { N = 6 };
    sem_t ended;
    job jobs[N];
    sem_init(&ended, 0, 0);
    script_pool *pool = open_pool(100000);
    for (int i = 0; i < N; i++) {
        submit(pool, &jobs[i], "sleep 200\ndone {}", 0, &ended);
    }
    wait_all(&ended, N);
    assert_true(script_pool_counts(pool).processes >= N);
    for (int i = 0; i < 1000 && (script_pool_counts(pool).processes > 1 || script_pool_counts(pool).threads); i++) {
        usleep(10000);
    }
    script_counts counts = script_pool_counts(pool);
    assert_int_equal(counts.processes, 1);
    assert_int_equal(counts.idle, 1);
    assert_int_equal(counts.threads, 0);
    script_pool_close(pool);
    no_children_left();
}

static void a_sequence_is_serial_and_others_pass(void **state) {
    (void)state;
    enum { N = 12 };
    sem_t ended, other_ended;
    job jobs[N], other;
    atomic_int running = 0, most = 0;
    sem_init(&ended, 0, 0);
    sem_init(&other_ended, 0, 0);
    script_pool *pool = open_pool(0);
    atomic_store(&places, 0);
    for (int i = 0; i < N; i++) {
        jobs[i] = (job){.base = {.sequence = 7, .work = work, .done = done}, .pool = pool, .source = "sleep 30\ndone {}", .ms = 10000};
        jobs[i].ended = &ended;
        jobs[i].running = &running;
        jobs[i].most = &most;
        assert_int_equal(script_submit(pool, &jobs[i].base), OK);
    }
    submit(pool, &other, "done {}", 8, &other_ended);
    wait_all(&other_ended, 1);
    assert_true(other.place < N); /* it did not wait for all of them */
    wait_all(&ended, N);
    assert_int_equal(most, 1);
    for (int i = 1; i < N; i++) {
        assert_true(jobs[i - 1].place < jobs[i].place); /* in the order submitted */
    }
    script_pool_close(pool);
}

/* Twenty scripts of one container that do not end do not delay another container's script. */
static void a_tenant_leaves_threads_for_others(void **state) {
    (void)state;
    enum { N = 20 };
    sem_t ended, other_ended;
    job jobs[N], other;
    sem_init(&ended, 0, 0);
    sem_init(&other_ended, 0, 0);
    script_pool *pool = open_pool(0);
    for (unsigned i = 0; i < N; i++) {
        jobs[i] =
            (job){.base = {.sequence = 100 + i, .tenant = 1, .work = work, .done = done}, .pool = pool, .source = "hang", .ms = 60000};
        jobs[i].ended = &ended;
        assert_int_equal(script_submit(pool, &jobs[i].base), OK);
    }
    other = (job){.base = {.sequence = 8, .tenant = 2, .work = work, .done = done}, .pool = pool, .source = "done {}", .ms = 10000};
    other.ended = &other_ended;
    assert_int_equal(script_submit(pool, &other.base), OK);
    wait_all(&other_ended, 1);
    assert_int_equal(other.result.code, OK);
    while (script_pool_counts(pool).running < SCRIPT_THREADS_MAX * 3 / 4) { /* wait for all threads to begin */
        usleep(1000);
    }
    usleep(20000);
    assert_int_equal(script_pool_counts(pool).running, SCRIPT_THREADS_MAX * 3 / 4);
    script_pool_stop(pool);
    wait_all(&ended, N);
    script_pool_close(pool);
    no_children_left();
}

static void the_queue_is_bounded(void **state) {
    (void)state;
    sem_t ended;
    sem_init(&ended, 0, 0);
    script_pool *pool = open_pool(0);
    job *jobs = calloc(SCRIPT_SEQUENCE_MAX + 10, sizeof *jobs);
    size_t taken = 0;
    err code = OK;
    while (code == OK && taken < SCRIPT_SEQUENCE_MAX + 10) {
        jobs[taken] =
            (job){.base = {.sequence = 7, .work = work, .done = done}, .pool = pool, .source = "hang", .ms = 60000, .ended = &ended};
        code = script_submit(pool, &jobs[taken].base);
        taken += code == OK;
    }
    assert_int_equal(code, E_SCRIPTS_BUSY);
    assert_true(taken >= SCRIPT_SEQUENCE_MAX && taken <= SCRIPT_SEQUENCE_MAX + 1);
    int64_t begun = script_now_us();
    script_pool_stop(pool); /* kills the job that hangs, rejects the others */
    assert_true(script_now_us() - begun < 8000000);
    wait_all(&ended, taken);
    for (size_t i = 0; i < taken; i++) {
        assert_int_equal(jobs[i].base.code != OK ? jobs[i].base.code : jobs[i].result.code, E_UNAVAILABLE);
    }
    assert_int_equal(script_submit(pool, &jobs[0].base), E_UNAVAILABLE);
    script_pool_close(pool);
    free(jobs);
    no_children_left();
}

static void who_waits_too_long_is_refused(void **state) {
    (void)state;
    sem_t ended;
    job first, second;
    sem_init(&ended, 0, 0);
    script_pool *pool = script_pool_open(&(script_options){.program = fake(), .wait_us = 50000});
    submit(pool, &first, "sleep 400\ndone {}", 7, &ended);
    submit(pool, &second, "done {}", 7, &ended);
    wait_all(&ended, 2);
    assert_int_equal(first.result.code, OK);
    assert_int_equal(second.base.code, E_SCRIPTS_BUSY);
    script_pool_close(pool);
}

static void a_worker_that_is_not_there_is_told(void **state) {
    (void)state;
    sem_t ended;
    job j;
    sem_init(&ended, 0, 0);
    log_set_level(LOG_ERROR);
    static const char *const programs[] = {"/nowhere/tesela-script", "/bin/true"};
    for (size_t i = 0; i < 2; i++) {
        script_pool *pool = script_pool_open(&(script_options){.program = programs[i]});
        submit(pool, &j, "done {}", 0, &ended);
        wait_all(&ended, 1);
        assert_int_equal(j.result.code, E_UNAVAILABLE);
        script_pool_close(pool);
    }
    no_children_left();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_gives_its_body_as_it_is),
        cmocka_unit_test(a_run_tells_what_was_thrown),
        cmocka_unit_test(a_bad_worker_is_unfit),
        cmocka_unit_test(processor_time_is_counted),
        cmocka_unit_test(nothing_is_started_before_it_is_wanted),
        cmocka_unit_test(processes_are_used_again),
        cmocka_unit_test(the_dead_are_replaced),
        cmocka_unit_test(a_last_run_is_the_last),
        cmocka_unit_test(idle_ones_end_but_for_a_spare),
        cmocka_unit_test(a_sequence_is_serial_and_others_pass),
        cmocka_unit_test(a_tenant_leaves_threads_for_others),
        cmocka_unit_test(the_queue_is_bounded),
        cmocka_unit_test(who_waits_too_long_is_refused),
        cmocka_unit_test(a_worker_that_is_not_there_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
