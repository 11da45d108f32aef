/* Length-prefixed frames: clients that leave, connections that end, a server that stops; frames that are sent unasked. */
#include "net_frames_harness.h"

/* ---- the client leaves, the connection ends ---- */

static void work_is_cancelled_when_the_client_leaves(void **state) {
    (void)state;
    echo *e = echo_start();
    client closes = frames_client(e), half = frames_client(e);
    send_frame(&closes, 1, 'w', SLICE_EMPTY);
    send_frame(&closes, 2, 'w', SLICE_EMPTY);
    send_frame(&half, 1, 'w', SLICE_EMPTY);
    AWAIT(e->handled == 3);
    assert_int_equal(e->left, 0);
    client_close(&closes);
    shutdown(half.fd, SHUT_WR);
    AWAIT(e->left == 3);
    assert_true(client_ended(&half));
    client_close(&half);
    AWAIT(e->closed == 2);
    echo_close(e);
}

/* The state of a connection lives until its last request has ended. */
static void requests_outlive_their_client(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    send_frame(&c, 1, 'h', SLICE_LIT("held"));
    send_frame(&c, 2, 'h', SLICE_LIT("held"));
    AWAIT(held(e) == 2);
    struct linger reset = {.l_onoff = 1};
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    client_close(&c);
    AWAIT(net_server_connections(e->h->server) == 0);
    usleep(20 * 1000);
    assert_int_equal(e->closed, 0);
    release_held(e, false);
    AWAIT(e->closed == 1);
    assert_int_equal(net_server_stats(e->h->server).requests, 0);
    echo_close(e);
}

static void a_connection_ends_after_its_last_answer(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    send_frame(&c, 1, 'h', SLICE_LIT("held"));
    AWAIT(held(e) == 1);
    send_frame(&c, 2, 'q', SLICE_LIT("bye"));
    expect_reply(&c, 2, 'q', "bye");
    send_frame(&c, 3, 'e', SLICE_LIT("too late"));
    release_held(e, false);
    expect_reply(&c, 1, 'h', "held");
    assert_true(client_ended(&c));
    client_close(&c);
    echo_close(e);
}

static void connections_that_do_not_authenticate_make_room(void **state) {
    (void)state;
    net_options o = harness_options();
    o.connections_max = 10;
    o.untrusted_timeout_ms = PATIENCE_S * 1000; /* they are closed only to make room */
    echo *e = echo_open(&o, false);
    client good = trusted_client(e), idle[30];
    for (unsigned i = 0; i < 30; i++) {
        idle[i] = frames_client(e);
        send_frame(&idle[i], i, 'e', SLICE_LIT("hello"));
        expect_reply(&idle[i], i, 'e', "hello");
    }
    assert_true(net_server_stats(e->h->server).displaced >= 20);
    assert_int_equal(net_server_stats(e->h->server).authenticated, 1);
    send_frame(&good, 1, 'e', SLICE_LIT("still here"));
    expect_reply(&good, 1, 'e', "still here");
    for (unsigned i = 0; i < 30; i++) {
        client_close(&idle[i]);
    }
    client_close(&good);
    echo_close(e);
}

static void a_connection_too_many_is_told(void **state) {
    (void)state;
    net_options o = harness_options();
    o.per_address_max = 1;
    o.spare_loopback = false;
    echo *e = echo_open(&o, false);
    client good = trusted_client(e), surplus = frames_client(e);
    send_frame(&surplus, 1, 'e', SLICE_LIT("hello"));
    expect_reply(&surplus, 0, '!', "E_BUSY_CONNECTIONS");
    assert_true(client_ended(&surplus));
    client_close(&surplus);
    client_close(&good);
    echo_close(e);
}

/* ---- events ---- */

static void push(net_task *task) {
    echo_job *j = (echo_job *)task;
    echo *e = j->request->context;
    frames_request *r = frames_begin(j->request->conn);
    e->refused_push += !r;
    e->pushed += r != NULL;
    if (r) {
        add_frame(frames_out(r), 0, 'v', SLICE_LIT("event"));
        frames_end(r);
    }
}

static void frames_may_be_sent_unasked(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    send_frame(&c, 1, 'h', SLICE_LIT("held"));
    AWAIT(held(e) == 1);
    echo_job j = {.task.run = push, .request = e->held[0]};
    net_post(e->held[0]->client.loop, &j.task);
    expect_reply(&c, 0, 'v', "event");
    release_held(e, false);
    expect_reply(&c, 1, 'h', "held");
    client_close(&c);
    client slow = slow_client(e, 0);
    send_frame(&slow, 1, 'h', SLICE_LIT("held"));
    AWAIT(held(e) == 1);
    send_number(&slow, 2, 'b', 8000000); /* no events are produced for a client that does not read */
    AWAIT(net_server_stats(e->h->server).waiting_bytes > 0);
    j = (echo_job){.task.run = push, .request = e->held[0]};
    unsigned before = e->pushed;
    net_post(e->held[0]->client.loop, &j.task);
    AWAIT(e->refused_push == 1);
    assert_int_equal(e->pushed, before);
    release_held(e, false);
    client_close(&slow);
    echo_close(e);
}

/* ---- stopping ---- */

/* A stop waits for requests of all protocols, and counts them. */
static void a_stop_waits_for_requests_in_flight(void **state) {
    (void)state;
    echo *e = echo_start();
    client busy = frames_client(e), idle = frames_client(e), torn = frames_client(e), http = client_open(e->h);
    for (uint32_t i = 0; i < 3; i++) {
        send_frame(&busy, i, 'h', SLICE_LIT("held"));
    }
    send_frame(&idle, 1, 'e', SLICE_LIT("hello"));
    expect_reply(&idle, 1, 'e', "hello");
    client_try_send(&torn, "\20\0", 2);
    client_send(&http, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
    AWAIT(held(e) == 3 && harness_held(e->h) == 1);
    net_stop(e->h->server);
    assert_true(client_ended(&idle));
    assert_true(client_ended(&torn));
    AWAIT(net_server_stats(e->h->server).drain_requests == 4);
    release_held(e, true);
    harness_release(e->h);
    for (uint32_t i = 3; i-- > 0;) {
        expect_reply(&busy, i, 'h', "held");
    }
    assert_true(client_ended(&busy));
    expect_response(&http, 200, NULL);
    client *all[] = {&busy, &idle, &torn, &http};
    for (unsigned i = 0; i < 4; i++) {
        client_close(all[i]);
    }
    harness_join(e->h);
    assert_int_equal(net_server_stats(e->h->server).drain_requests, 4);
    assert_int_equal(net_server_stats(e->h->server).drain_unanswered, 0);
    echo_close(e);
}

static void a_stop_does_not_wait_for_ever(void **state) {
    (void)state;
    net_options o = harness_options();
    o.drain_timeout_ms = 200;
    echo *e = echo_open(&o, false);
    client c = frames_client(e);
    send_frame(&c, 1, 'h', SLICE_LIT("held"));
    AWAIT(held(e) == 1);
    net_stop(e->h->server);
    harness_join(e->h);
    assert_int_equal(net_server_stats(e->h->server).drain_unanswered, 1);
    release_held(e, false); /* runs during net_close */
    client_close(&c);
    echo_close(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_cancelled_when_the_client_leaves),
        cmocka_unit_test(requests_outlive_their_client),
        cmocka_unit_test(a_connection_ends_after_its_last_answer),
        cmocka_unit_test(connections_that_do_not_authenticate_make_room),
        cmocka_unit_test(a_connection_too_many_is_told),
        cmocka_unit_test(frames_may_be_sent_unasked),
        cmocka_unit_test(a_stop_waits_for_requests_in_flight),
        cmocka_unit_test(a_stop_does_not_wait_for_ever),
    };
    return cmocka_run_group_tests_name("net/frames", tests, NULL, NULL);
}
