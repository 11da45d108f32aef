/* Delays run in order of time, never early, and do not block other requests; a server that stops does not wait for them. */
#include "net_harness.h"

static void ask(client *c, unsigned ms) {
    char text[64];
    snprintf(text, sizeof text, "GET /delay?%u HTTP/1.1\r\nHost: h\r\n\r\n", ms);
    client_send(c, text);
}

static void never_early(void **state) {
    harness *h = harness_start();
    client c = client_open(h);
    (void)state;
    for (unsigned ms = 0; ms <= 60; ms += 12) {
        int64_t before = now_ms();
        ask(&c, ms);
        expect_response(&c, 200, NULL);
        assert_true(now_ms() - before >= ms);
    }
    client_close(&c);
    harness_close(h);
}

/* With one loop, all delays are in one list. */
static void in_the_order_of_their_times(void **state) {
    enum { N = 8 };
    static const unsigned waits[N] = {200, 50, 350, 50, 125, 275, 0, 425};
    net_options o = harness_options();
    o.loops = 1;
    harness *h = harness_open(&o);
    harness_run(h);
    client clients[N];
    struct pollfd fds[N];
    int64_t answered[N];
    (void)state;
    for (unsigned i = 0; i < N; i++) {
        clients[i] = client_open(h);
        fds[i] = (struct pollfd){clients[i].fd, POLLIN, 0};
        ask(&clients[i], waits[i]);
    }
    expect_alive(h); /* other requests are served meanwhile */
    for (unsigned left = N; left;) {
        assert_true(poll(fds, N, 10000) > 0);
        for (unsigned i = 0; i < N; i++) {
            if (fds[i].revents) {
                answered[i] = now_ms();
                expect_response(&clients[i], 200, NULL);
                fds[i].fd = -1;
                left--;
            }
        }
    }
    for (unsigned i = 0; i < N; i++) {
        for (unsigned j = 0; j < N; j++) {
            assert_true(waits[i] >= waits[j] || answered[i] <= answered[j]);
        }
        client_close(&clients[i]);
    }
    harness_close(h);
}

static void a_client_that_leaves_is_forgotten(void **state) {
    harness *h = harness_start();
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        client c = client_open(h);
        ask(&c, 20 + i);
        client_close(&c);
    }
    usleep(100000);
    expect_alive(h);
    harness_close(h);
}

static void stopping_answers_at_once(void **state) {
    harness *h = harness_start();
    client c = client_open(h), d = client_open(h);
    (void)state;
    ask(&c, 600000);
    ask(&d, 500000);
    usleep(50000);
    int64_t before = now_ms();
    net_stop(h->server);
    expect_response(&c, 200, NULL);
    expect_response(&d, 200, NULL);
    harness_join(h);
    assert_true(now_ms() - before < 5000);
    client_close(&c);
    client_close(&d);
    harness_close(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_early),
        cmocka_unit_test(in_the_order_of_their_times),
        cmocka_unit_test(a_client_that_leaves_is_forgotten),
        cmocka_unit_test(stopping_answers_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
