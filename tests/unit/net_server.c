/* Ports, loops, timeouts, the limit on connections, and stopping. */
#include <sys/resource.h>

#include "net/loop_int.h"
#include "net_harness.h"

#define GET "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n"
#define GOT "GET /echo? host=h a= b= body="

/* ---- ports ---- */

static void localhost_is_both_families(void **state) {
    (void)state;
    harness *h = harness_start();
    int v4 = client_socket(h, AF_INET), v6 = client_socket(h, AF_INET6);
    assert_true(v4 >= 0);
    if (v6 >= 0) { /* without IPv6 the server listens on IPv4 only */
        client c = {.fd = v6, .in = buf_init(BUF_NO_LIMIT)};
        client_send(&c, GET);
        expect_response(&c, 200, GOT);
        client_close(&c);
    }
    close(v4);
    harness_close(h);
}

static void a_port_in_use_is_said_so(void **state) {
    (void)state;
    harness *h = harness_start();
    net_options o = harness_options();
    net_server *second;
    char why[256];
    uint16_t port;
    assert_int_equal(net_open(&o, &second), OK);
    assert_int_not_equal(net_listen(second, "localhost", h->port, &h->front, &port, why, sizeof why), OK);
    assert_non_null(strstr(why, "in use"));
    assert_int_not_equal(net_listen(second, "no such host", 0, &h->front, &port, why, sizeof why), OK);
    assert_non_null(strstr(why, "no such host"));
    assert_int_not_equal(net_listen(second, "192.0.2.1", 0, &h->front, &port, why, sizeof why), OK);
    assert_non_null(strstr(why, "no such address"));
    assert_int_equal(net_listen(second, "127.0.0.1", 0, &h->front, &port, why, sizeof why), OK);
    assert_int_not_equal(port, h->port);
    net_close(second);
    expect_alive(h);
    harness_close(h);
}

/* ---- loops ---- */

enum { POSTERS = 4, POSTS = 2000 };

typedef struct numbered {
    net_task task; /* must be first */
    struct poster *poster;
    int number;
} numbered;

typedef struct poster {
    pthread_t thread;
    net_loop *loop;
    numbered tasks[POSTS];
    _Atomic int done;
} poster;

static void run_numbered(net_task *task) {
    numbered *t = (numbered *)task;
    assert_int_equal(t->number, t->poster->done);
    t->poster->done = t->number + 1;
}

static void *post_all(void *argument) {
    poster *p = argument;
    for (int i = 0; i < POSTS; i++) {
        p->tasks[i] = (numbered){{.run = run_numbered}, p, i};
        net_post(p->loop, &p->tasks[i].task);
    }
    return NULL;
}

static void posts_run_in_the_order_of_their_poster(void **state) {
    (void)state;
    harness *h = harness_start();
    static poster posters[POSTERS];
    assert_int_equal(net_server_loops(h->server), 2);
    for (int i = 0; i < POSTERS; i++) {
        posters[i].loop = net_server_loop(h->server, (unsigned)i % 2);
        assert_int_equal(net_loop_index(posters[i].loop), i % 2);
        pthread_create(&posters[i].thread, NULL, post_all, &posters[i]);
    }
    for (int i = 0; i < POSTERS; i++) {
        pthread_join(posters[i].thread, NULL);
        AWAIT(posters[i].done == POSTS);
    }
    harness_close(h);
}

/* A task that may wait does not wake the loop; a task that may not does, and the loop then runs both. */
static void a_task_that_may_wait_is_run_with_the_next(void **state) {
    (void)state;
    harness *h = harness_start();
    static poster p;
    p = (poster){.loop = net_server_loop(h->server, 0)};
    for (int i = 0; i < 2; i++) {
        p.tasks[i] = (numbered){{.run = run_numbered}, &p, i};
    }
    AWAIT(p.loop->asleep);
    usleep(20000); /* so that it really is: the flag is set a moment before */
    net_post_within(p.loop, &p.tasks[0].task, 3600 * (int64_t)1000000);
    usleep(20000);
    assert_int_equal(p.done, 0);
    net_post(p.loop, &p.tasks[1].task);
    AWAIT(p.done == 2);
    harness_close(h);
}

static void a_task_posted_before_another_is_run_with_it(void **state) {
    (void)state;
    harness *h = harness_start();
    static poster p;
    p = (poster){.loop = net_server_loop(h->server, 0)};
    AWAIT(p.loop->asleep);
    usleep(20000);
    for (int i = 0; i < 3; i++) {
        p.tasks[i] = (numbered){{.run = run_numbered}, &p, i};
        i < 2 ? net_post_before(p.loop, &p.tasks[i].task) : usleep(20000);
    }
    assert_int_equal(p.done, 0);
    net_post(p.loop, &p.tasks[2].task);
    AWAIT(p.done == 3);
    harness_close(h);
}

static void a_task_that_may_wait_is_run_in_time(void **state) {
    (void)state;
    harness *h = harness_start();
    static poster p;
    p = (poster){.loop = net_server_loop(h->server, 1)};
    for (int i = 0; i < 3; i++) {
        p.tasks[i] = (numbered){{.run = run_numbered}, &p, i};
        net_post_within(p.loop, &p.tasks[i].task, i == 1 ? 0 : 5000);
        AWAIT(p.done == i + 1);
    }
    harness_close(h);
}

typedef struct chain {
    net_task task; /* must be first */
    net_loop *loop;
    int left; /* how often it posts itself again; negative: until `stop` */
    bool woken;
    atomic_bool stop;
    atomic_int runs;
} chain;

static void run_chain(net_task *task) {
    chain *c = (chain *)task;
    if (c->left != 0 && !c->stop) {
        c->left -= c->left > 0;
        net_post(c->loop, &c->task);
        c->woken |= c->loop->woken;
    }
    c->runs++;
}

static void a_loop_that_is_awake_is_not_woken(void **state) {
    (void)state;
    harness *h = harness_start();
    chain c = {.task.run = run_chain, .loop = net_server_loop(h->server, 0), .left = 2};
    AWAIT(c.loop->asleep);
    net_post(c.loop, &c.task);
    AWAIT(c.runs == 3);
    assert_false(c.woken);
    harness_close(h);
}

static void tasks_that_post_tasks_do_not_keep_clients_waiting(void **state) {
    (void)state;
    net_options o = harness_options();
    o.loops = 1;
    harness *h = harness_open(&o);
    harness_run(h);
    chain c = {.task.run = run_chain, .loop = net_server_loop(h->server, 0), .left = -1};
    net_post(c.loop, &c.task);
    for (int i = 0; i < 10; i++) {
        expect_alive(h);
    }
    int runs = c.runs;
    AWAIT(c.runs > runs + 100);
    c.stop = true;
    expect_alive(h);
    harness_close(h);
}

/* While the loop is busy, a quick request and then several long ones arrive, all in one turn. The quick one's answer does not wait for the
 * last of them. */
static void an_answer_does_not_wait_for_a_long_turn(void **state) {
    (void)state;
    enum { LONG = 5 };
    net_options o = harness_options();
    o.loops = 1;
    harness *h = harness_open(&o);
    harness_run(h);
    client first = client_open(h), quick = client_open(h), slow[LONG];
    for (int i = 0; i < LONG; i++) {
        slow[i] = client_open(h);
        client_send(&slow[i], GET);
        expect_response(&slow[i], 200, GOT);
    }
    client_send(&quick, GET);
    expect_response(&quick, 200, GOT);
    client_send(&first, "GET /busy?200 HTTP/1.1\r\nHost: h\r\n\r\n");
    AWAIT(h->busy == 1);
    client_send(&quick, GET);
    for (int i = 0; i < LONG; i++) {
        client_send(&slow[i], "GET /busy?60 HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    expect_response(&quick, 200, GOT);
    assert_true(h->busy < 1 + LONG);
    expect_response(&first, 200, "GET /busy?200 host=h a= b= body=");
    client_close(&first);
    client_close(&quick);
    for (int i = 0; i < LONG; i++) {
        expect_response(&slow[i], 200, "GET /busy?60 host=h a= b= body=");
        client_close(&slow[i]);
    }
    harness_close(h);
}

static void count_tick(void *context) {
    ++*(_Atomic int *)context;
}

static void intervals_tick(void **state) {
    (void)state;
    _Atomic int ticks = 0;
    net_options o = harness_options();
    harness *h = harness_open(&o);
    net_every(h->server, 10, count_tick, &ticks);
    harness_run(h);
    AWAIT(ticks >= 3);
    harness_close(h);
}

/* ---- bounds ---- */

static void surplus_connections_are_told_so(void **state) {
    (void)state;
    net_options o = harness_options();
    o.connections_max = 5;
    harness *h = harness_open(&o);
    harness_run(h);
    client c[5];
    for (int i = 0; i < 5; i++) {
        c[i] = client_open(h);
        client_send(&c[i], "GET /trust HTTP/1.1\r\nHost: h\r\n\r\n");
        expect_response(&c[i], 200, NULL);
    }
    for (int i = 0; i < 3; i++) {
        client surplus = client_open(h);
        client_send(&surplus, GET);
        response r = client_response(&surplus, false);
        assert_int_equal(r.status, 503);
        assert_string_equal(field_of(&r, "X-Error"), "E_BUSY_CONNECTIONS");
        buf_free(&r.body);
        assert_true(client_ended(&surplus));
        client_close(&surplus);
    }
    client silent = client_open(h);
    assert_true(client_ended(&silent));
    client_close(&silent);
    assert_int_equal(net_server_stats(h->server).refused_full, 4);
    client_send(&c[4], GET); /* admitted connections still work */
    expect_response(&c[4], 200, GOT);
    client_close(&c[4]);
    AWAIT(net_server_connections(h->server) == 4);
    expect_alive(h);
    for (int i = 0; i < 4; i++) {
        client_close(&c[i]);
    }
    harness_close(h);
}

static int64_t cpu_ms(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

static void running_out_of_descriptors_is_waited_out(void **state) {
    (void)state;
    harness *h = harness_start();
    expect_alive(h);
    struct rlimit before, low;
    getrlimit(RLIMIT_NOFILE, &before);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    low = before;
    low.rlim_cur = (rlim_t)fd + 1; /* new descriptors get the lowest free number, so none is left below the limit */
    int filler[64], n = 0;
    setrlimit(RLIMIT_NOFILE, &low);
    while (n < 64 && (filler[n] = dup(fd)) >= 0) {
        n++;
    }
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(h->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    client c = {.fd = fd, .in = buf_init(BUF_NO_LIMIT)};
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    client_send(&c, GET);
    int64_t cpu = cpu_ms();
    usleep(400 * 1000);
    assert_true(cpu_ms() - cpu < 100); /* the loop does not spin */
    setrlimit(RLIMIT_NOFILE, &before);
    expect_response(&c, 200, GOT);
    while (n) {
        close(filler[--n]);
    }
    client_close(&c);
    harness_close(h);
}

/* ---- slow clients ---- */

static harness *impatient(void) {
    net_options o = harness_options();
    o.header_timeout_ms = 300;
    o.body_timeout_ms = 300;
    o.idle_timeout_ms = 600;
    o.untrusted_timeout_ms = 300;
    harness *h = harness_open(&o);
    harness_run(h);
    return h;
}

static void expect_timeout(client *c) {
    response r = client_response(c, false);
    assert_int_equal(r.status, 408);
    assert_string_equal(field_of(&r, "X-Error"), "E_TIMEOUT");
    buf_free(&r.body);
    assert_true(client_ended(c));
}

static void slow_heads_are_ended(void **state) {
    (void)state;
    harness *h = impatient();
    client c = client_open(h);
    client_send(&c, GET "GET /echo HTTP/1.1\r\nHos");
    expect_response(&c, 200, GOT);
    int64_t begin = now_ms();
    for (int i = 0; i < 8; i++) { /* an occasional byte does not extend the deadline */
        client_try_send(&c, "t", 1);
        usleep(50 * 1000);
    }
    expect_timeout(&c);
    assert_in_range(now_ms() - begin, 250, 3000);
    client_close(&c);
    harness_close(h);
}

static void slow_bodies_are_ended(void **state) {
    (void)state;
    harness *h = impatient();
    client c = client_open(h);
    client_send(&c, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n");
    char part[5000] = {0};
    for (int i = 0; i < 8; i++) { /* progress extends the deadline */
        assert_true(client_try_send(&c, part, sizeof part));
        usleep(100 * 1000);
    }
    expect_timeout(&c);
    client_close(&c);
    harness_close(h);
}

static void silent_connections_are_ended(void **state) {
    (void)state;
    harness *h = impatient();
    client never = client_open(h), idle = client_open(h), unknown = client_open(h);
    client_send(&idle, "GET /trust HTTP/1.1\r\nHost: h\r\n\r\n");
    expect_response(&idle, 200, NULL);
    client_send(&unknown, GET);
    expect_response(&unknown, 200, GOT);
    int64_t begin = now_ms();
    assert_true(client_ended(&never));
    assert_in_range(now_ms() - begin, 200, 3000);
    assert_true(client_ended(&unknown));
    assert_true(client_ended(&idle)); /* an authenticated connection may be idle for longer */
    assert_in_range(now_ms() - begin, 550, 3000);
    client_close(&never);
    client_close(&unknown);
    client_close(&idle);
    harness_close(h);
}

static void waiting_for_the_front_end_is_not_idling(void **state) {
    (void)state;
    harness *h = impatient();
    client c = client_open(h);
    client_send(&c, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
    AWAIT(harness_held(h) == 1);
    usleep(900 * 1000);
    harness_release(h);
    expect_response(&c, 200, "GET /hold? host=h a= b= body=");
    client_close(&c);
    harness_close(h);
}

static void slow_readers_are_ended(void **state) {
    (void)state;
    harness *h = impatient();
    client c = client_open(h);
    for (int i = 0; i < 8; i++) {
        client_send(&c, "GET /bytes?4000000 HTTP/1.1\r\nHost: h\r\n\r\n"); /* more than all socket buffers can hold */
    }
    usleep(100 * 1000);
    assert_int_equal(net_server_connections(h->server), 1);
    AWAIT(net_server_connections(h->server) == 0);
    client_close(&c);
    expect_alive(h);
    harness_close(h);
}

/* A client that reads slowly but steadily is not closed, although its socket does not become writable in time. */
static void steady_readers_are_not_closed(void **state) {
    (void)state;
    harness *h = impatient();
    client c = client_open(h);
    for (int i = 0; i < 4; i++) {
        client_send(&c, "GET /bytes?4000000 HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    static char bytes[1000000];
    size_t got = 0;
    for (int64_t slow_until = now_ms() + 1200; got < 16000000;) {
        bool slow = now_ms() < slow_until;
        ssize_t k = recv(c.fd, bytes, slow ? 10000 : sizeof bytes, 0);
        assert_true(k > 0);
        got += (size_t)k;
        usleep(slow ? 5000 : 0);
    }
    client_close(&c);
    harness_close(h);
}

/* ---- stopping ---- */

static void *stop_and_join(void *argument) {
    harness *h = argument;
    net_stop(h->server);
    harness_join(h);
    return NULL;
}

static bool refuses_connections(harness *h) {
    int fd = client_socket(h, AF_INET);
    if (fd >= 0) {
        close(fd);
    }
    return fd < 0;
}

static void stopping_finishes_what_is_in_flight(void **state) {
    (void)state;
    harness *h = harness_start();
    client idle = client_open(h), held = client_open(h), partial = client_open(h);
    client_send(&idle, GET);
    expect_response(&idle, 200, GOT);
    client_send(&held, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n" GET);
    client_send(&partial, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nh");
    AWAIT(harness_held(h) == 1 && net_server_connections(h->server) == 3);
    usleep(50 * 1000);
    pthread_t stopping;
    pthread_create(&stopping, NULL, stop_and_join, h);
    assert_true(client_ended(&idle));
    AWAIT(refuses_connections(h)); /* the port is closed */
    AWAIT(net_server_connections(h->server) == 2);
    client_send(&partial, "i");
    response r = client_response(&partial, false);
    assert_int_equal(r.status, 200);
    assert_string_equal(field_of(&r, "Connection"), "close");
    buf_free(&r.body);
    harness_release(h);
    r = client_response(&held, false);
    assert_int_equal(r.status, 200);
    assert_string_equal(field_of(&r, "Connection"), "close");
    buf_free(&r.body);
    assert_true(client_ended(&held));
    pthread_join(stopping, NULL);
    assert_int_equal(net_server_connections(h->server), 0);
    client_close(&idle);
    client_close(&held);
    client_close(&partial);
    harness_close(h);
}

static void stopping_waits_for_requests_without_clients(void **state) {
    (void)state;
    harness *h = harness_start();
    client c = client_open(h);
    struct linger reset = {.l_onoff = 1};
    client_send(&c, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
    AWAIT(harness_held(h) == 1);
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    client_close(&c);
    AWAIT(net_server_connections(h->server) == 0);
    pthread_t stopping;
    pthread_create(&stopping, NULL, stop_and_join, h);
    usleep(100 * 1000);
    assert_true(pthread_tryjoin_np(stopping, NULL) != 0);
    harness_release(h);
    pthread_join(stopping, NULL);
    harness_close(h);
}

static void stopping_does_not_wait_for_ever(void **state) {
    (void)state;
    net_options o = harness_options();
    o.drain_timeout_ms = 200;
    harness *h = harness_open(&o);
    harness_run(h);
    client c = client_open(h);
    client_send(&c, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
    AWAIT(harness_held(h) == 1);
    int64_t begin = now_ms();
    stop_and_join(h);
    assert_in_range(now_ms() - begin, 150, 3000);
    assert_true(client_ended(&c));
    harness_release(h); /* answered too late: net_close runs the task, which has no effect */
    client_close(&c);
    harness_close(h);
}

static void stopping_twice_or_early_is_fine(void **state) {
    (void)state;
    net_options o = harness_options();
    harness *h = harness_open(&o);
    net_stop(h->server);
    harness_run(h);
    net_stop(h->server);
    harness_join(h);
    harness_close(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(localhost_is_both_families),
        cmocka_unit_test(a_port_in_use_is_said_so),
        cmocka_unit_test(posts_run_in_the_order_of_their_poster),
        cmocka_unit_test(a_task_that_may_wait_is_run_with_the_next),
        cmocka_unit_test(a_task_posted_before_another_is_run_with_it),
        cmocka_unit_test(a_task_that_may_wait_is_run_in_time),
        cmocka_unit_test(a_loop_that_is_awake_is_not_woken),
        cmocka_unit_test(tasks_that_post_tasks_do_not_keep_clients_waiting),
        cmocka_unit_test(an_answer_does_not_wait_for_a_long_turn),
        cmocka_unit_test(intervals_tick),
        cmocka_unit_test(surplus_connections_are_told_so),
        cmocka_unit_test(running_out_of_descriptors_is_waited_out),
        cmocka_unit_test(slow_heads_are_ended),
        cmocka_unit_test(slow_bodies_are_ended),
        cmocka_unit_test(silent_connections_are_ended),
        cmocka_unit_test(waiting_for_the_front_end_is_not_idling),
        cmocka_unit_test(slow_readers_are_ended),
        cmocka_unit_test(steady_readers_are_not_closed),
        cmocka_unit_test(stopping_finishes_what_is_in_flight),
        cmocka_unit_test(stopping_waits_for_requests_without_clients),
        cmocka_unit_test(stopping_does_not_wait_for_ever),
        cmocka_unit_test(stopping_twice_or_early_is_fine),
    };
    return cmocka_run_group_tests_name("net/server", tests, NULL, NULL);
}
