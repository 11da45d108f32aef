/* Length-prefixed frames: requests and answers, bounds, slow readers. */
#include "net_frames_harness.h"

/* ---- requests and answers ---- */

static void frames_are_answered(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    send_frame(&c, 7, 'e', SLICE_LIT("hello"));
    expect_reply(&c, 7, 'e', "hello");
    send_frame(&c, 8, 'e', SLICE_EMPTY); /* only a header */
    expect_reply(&c, 8, 'e', "");
    send_frame(&c, 9, 'n', SLICE_LIT("wants no answer"));
    send_frame(&c, 10, 'l', SLICE_LIT("later"));
    expect_reply(&c, 10, 'l', "later");
    assert_int_equal(e->handled, 4);
    client_close(&c);
    AWAIT(e->closed == 1);
    echo_close(e);
}

/* The bytes may be split into reads anywhere. */
static void torn_frames_are_put_together(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    buf frames = buf_init(BUF_NO_LIMIT);
    for (uint32_t i = 0; i < 10; i++) {
        add_frame(&frames, i, 'e', slice_of("abcdefghijklmnop", i));
    }
    for (size_t at = 0, step = 1; at < frames.n; at += step, step = step % 5 + 1) {
        step = step < frames.n - at ? step : frames.n - at;
        assert_true(client_try_send(&c, frames.p + at, step));
        usleep(500);
    }
    for (uint32_t i = 0; i < 10; i++) {
        reply r = next_reply(&c);
        assert_int_equal(r.stream, i);
        assert_int_equal(r.n, i);
    }
    buf_free(&frames);
    client_close(&c);
    echo_close(e);
}

static void answers_come_in_the_order_they_are_ended_in(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    for (uint32_t i = 0; i < 10; i++) {
        send_frame(&c, i, 'h', SLICE_LIT("held"));
    }
    send_frame(&c, 99, 'e', SLICE_LIT("quick")); /* overtakes the held ones */
    expect_reply(&c, 99, 'e', "quick");
    AWAIT(held(e) == 10);
    assert_int_equal(net_server_stats(e->h->server).requests, 10);
    release_held(e, true);
    for (uint32_t i = 10; i-- > 0;) {
        expect_reply(&c, i, 'h', "held");
    }
    assert_int_equal(net_server_stats(e->h->server).requests, 0);
    client_close(&c);
    echo_close(e);
}

static void many_streams_on_many_connections(void **state) {
    (void)state;
    enum { CLIENTS = 8, FRAMES = 2000 };
    echo *e = echo_start();
    client c[CLIENTS];
    buf frames = buf_init(BUF_NO_LIMIT);
    for (uint32_t i = 0; i < FRAMES; i++) {
        add_frame(&frames, i, 'e', SLICE_LIT("some bytes"));
    }
    for (unsigned k = 0; k < CLIENTS; k++) {
        c[k] = frames_client(e);
        assert_true(client_try_send(&c[k], frames.p, frames.n));
    }
    for (unsigned k = 0; k < CLIENTS; k++) {
        for (uint32_t i = 0; i < FRAMES; i++) {
            expect_reply(&c[k], i, 'e', "some bytes");
        }
        client_close(&c[k]);
    }
    assert_int_equal(e->handled, CLIENTS * FRAMES);
    buf_free(&frames);
    echo_close(e);
}

/* ---- bounds ---- */

static void requests_in_flight_are_bounded(void **state) {
    (void)state;
    enum { FRAMES = 20000 };
    echo *e = echo_start();
    client c = frames_client(e);
    buf frames = buf_init(BUF_NO_LIMIT);
    for (uint32_t i = 0; i < FRAMES; i++) {
        add_frame(&frames, i, 'h', SLICE_LIT("0123456789012345678901234567890123456789"));
    }
    size_t sent = 0;
    for (int64_t quiet = now_ms() + 300; sent < frames.n && now_ms() < quiet;) { /* until the socket takes no more */
        ssize_t k = send(c.fd, frames.p + sent, frames.n - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (k > 0) {
            sent += (size_t)k;
            quiet = now_ms() + 300;
        } else {
            usleep(1000);
        }
    }
    AWAIT(held(e) == IN_FLIGHT);
    usleep(20 * 1000);
    assert_int_equal(held(e), IN_FLIGHT);                                  /* no more are parsed */
    assert_true(net_server_stats(e->h->server).buffer_bytes < 512 * 1024); /* kept input is bounded */
    release_for_good(e);
    expect_each_once(&c, (uint32_t)(sent / (frames.n / FRAMES)), 40);
    client_close(&c);
    AWAIT(e->closed == 1);
    buf_free(&frames);
    echo_close(e);
}

typedef struct sending {
    client *c;
    buf *frames;
} sending;

static void *send_all(void *argument) {
    sending *s = argument;
    return client_try_send(s->c, s->frames->p, s->frames->n) ? argument : NULL;
}

static void bytes_in_flight_are_bounded(void **state) {
    (void)state;
    enum { FRAME = 100000, FRAMES = 12 };
    echo *e = echo_start();
    client c = trusted_client(e);
    static char argument[FRAME];
    memset(argument, 'y', sizeof argument);
    pthread_t sender;
    buf frames = buf_init(BUF_NO_LIMIT);
    for (uint32_t i = 0; i < FRAMES; i++) {
        add_frame(&frames, i, 'h', slice_of(argument, FRAME));
    }
    sending s = {&c, &frames};
    assert_int_equal(pthread_create(&sender, NULL, send_all, &s), 0);
    AWAIT(held(e) == 3); /* the third exceeds the limit */
    usleep(50 * 1000);
    assert_int_equal(held(e), 3);
    release_for_good(e);
    expect_each_once(&c, FRAMES, FRAME);
    pthread_join(sender, NULL);
    buf_free(&frames);
    client_close(&c);
    echo_close(e);
}

static void a_frame_has_a_largest_size(void **state) {
    (void)state;
    echo *e = echo_start();
    static char argument[FRAME_MAX];
    client c = frames_client(e);
    send_frame(&c, 1, 'e', slice_of(argument, UNTRUSTED_MAX - HEADER));
    assert_int_equal(next_reply(&c).n, UNTRUSTED_MAX - HEADER);
    send_frame(&c, 2, 'e', slice_of(argument, UNTRUSTED_MAX - HEADER + 1));
    expect_reply(&c, 2, '!', "E_TOO_LARGE");
    assert_true(client_ended(&c));
    client_close(&c);
    c = trusted_client(e);
    send_frame(&c, 3, 'e', slice_of(argument, FRAME_MAX - HEADER));
    assert_int_equal(next_reply(&c).n, FRAME_MAX - HEADER);
    client_try_send(&c, "\xff\xff\xff\xff\4\0\0\0e", 9);
    expect_reply(&c, 4, '!', "E_TOO_LARGE");
    assert_true(client_ended(&c));
    client_close(&c);
    echo_close(e);
}

/* ---- frames whose header does not have their length ---- */

static void add_extended(buf *out, uint32_t stream, uint32_t tail) {
    static const char filler[FRAME_MAX];
    uint32_t n = EXTENDED_BYTES;
    buf_add(out, &n, 4);
    buf_add(out, &stream, 4);
    buf_add_byte(out, '+');
    buf_add(out, &tail, 4);
    buf_add(out, filler, tail < sizeof filler ? tail : sizeof filler);
}

static void frames_are_extended(void **state) {
    (void)state;
    static const uint32_t tails[] = {0, 1, 100, UNTRUSTED_MAX - EXTENDED_BYTES};
    net_options o = harness_options();
    echo *e = echo_open_as(&o, (echo_kind){.extend = true});
    for (size_t step = 1; step < 10000; step *= 7) {
        client c = frames_client(e);
        buf frames = buf_init(BUF_NO_LIMIT);
        for (uint32_t i = 0; i < 4; i++) {
            add_extended(&frames, i, tails[i]);
            add_frame(&frames, 10 + i, 'e', SLICE_LIT("between"));
        }
        for (size_t at = 0; at < frames.n; at += step) {
            assert_true(client_try_send(&c, frames.p + at, step < frames.n - at ? step : frames.n - at));
        }
        for (uint32_t i = 0; i < 4; i++) {
            reply r = next_reply(&c);
            assert_int_equal(r.stream, i);
            assert_int_equal(r.n, tails[i] + 4);
            expect_reply(&c, 10 + i, 'e', "between");
        }
        buf_free(&frames);
        client_close(&c);
    }
    echo_close(e);
}

/* The refusal has all of the frame that was understood: its stream is known. */
static void extended_frames_are_bounded(void **state) {
    (void)state;
    static const uint32_t tails[] = {UNTRUSTED_MAX - EXTENDED_BYTES + 1, UINT32_MAX};
    net_options o = harness_options();
    echo *e = echo_open_as(&o, (echo_kind){.extend = true});
    for (uint32_t i = 0; i < 2; i++) {
        client c = frames_client(e);
        buf frame = buf_init(BUF_NO_LIMIT);
        add_extended(&frame, 7 + i, tails[i]);
        assert_true(client_try_send(&c, frame.p, EXTENDED_BYTES));
        expect_reply(&c, 7 + i, '!', "E_TOO_LARGE");
        assert_true(client_ended(&c));
        buf_free(&frame);
        client_close(&c);
    }
    client c = frames_client(e);
    send_frame(&c, 3, '-', SLICE_LIT("any"));
    expect_reply(&c, 3, '!', "E_BAD_REQUEST");
    assert_true(client_ended(&c));
    client_close(&c);
    assert_int_equal(e->handled, 0);
    echo_close(e);
}

/* Requests in flight are answered before the connection closes. */
static void malformed_frames_end_the_connection(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    send_frame(&c, 1, 'h', SLICE_LIT("held"));
    client_try_send(&c, "\5\0\0\0\2\0\0\0e", 9); /* shorter than its header */
    expect_reply(&c, 2, '!', "E_BAD_REQUEST");
    send_frame(&c, 3, 'e', SLICE_LIT("never seen"));
    release_held(e, false);
    expect_reply(&c, 1, 'h', "held");
    assert_true(client_ended(&c));
    client_close(&c);
    c = frames_client(e);
    client_try_send(&c, "\20\0\0\0\2\0\0\0X", 9);
    expect_reply(&c, 2, '!', "E_BAD_REQUEST");
    assert_true(client_ended(&c));
    client_close(&c);
    echo_close(e);
}

static void an_answer_has_a_largest_size(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = frames_client(e);
    send_frame(&c, 1, 'o', SLICE_EMPTY);
    expect_reply(&c, 1, '!', "E_INTERNAL");
    send_frame(&c, 2, 'e', SLICE_LIT("still good"));
    expect_reply(&c, 2, 'e', "still good");
    client_close(&c);
    echo_close(e);
}

static void time_outs(void **state) {
    (void)state;
    net_options o = harness_options();
    o.header_timeout_ms = o.body_timeout_ms = o.untrusted_timeout_ms = 1500;
    o.idle_timeout_ms = 2000;
    echo *e = echo_open(&o, false);
    client busy = frames_client(e); /* each client sends everything at once, before a timeout */
    send_frame(&busy, 1, 'h', SLICE_LIT("works"));
    client torn = frames_client(e);
    client_try_send(&torn, "\20\0\0", 3);
    client slow = trusted_client(e);
    client_try_send(&slow, "\20\0\0\0\5\0\0\0e", 9);
    client silent = frames_client(e), idle = trusted_client(e);
    assert_true(client_ended(&silent));
    expect_reply(&torn, 0, '!', "E_TIMEOUT");
    assert_true(client_ended(&torn));
    expect_reply(&slow, 0, '!', "E_TIMEOUT");
    assert_true(client_ended(&slow));
    assert_true(client_ended(&idle));
    release_held(e, false); /* a request being served has no timeout */
    expect_reply(&busy, 1, 'h', "works");
    assert_true(client_ended(&busy));
    client *all[] = {&silent, &torn, &slow, &idle, &busy};
    for (unsigned i = 0; i < 5; i++) {
        client_close(all[i]);
    }
    echo_close(e);
}

/* ---- slow readers ---- */

static void a_slow_reader_is_not_served_on(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = slow_client(e, 3);
    AWAIT(net_server_stats(e->h->server).waiting_bytes > 0);
    unsigned before = e->handled;
    for (uint32_t i = 0; i < 50; i++) {
        send_frame(&c, 100 + i, 'e', SLICE_LIT("waits"));
    }
    usleep(100 * 1000);
    assert_true(e->handled <= before + 3); /* those parsed before the kernel's buffer was full */
    for (uint32_t i = 0; i < 3; i++) {
        reply r = next_reply(&c);
        assert_int_equal(r.stream, i);
        assert_int_equal(r.n, 4000000);
    }
    for (uint32_t i = 0; i < 50; i++) {
        expect_reply(&c, 100 + i, 'e', "waits");
    }
    assert_int_equal(net_server_stats(e->h->server).waiting_bytes, 0);
    client_close(&c);
    echo_close(e);
}

static void a_reader_that_takes_nothing_is_ended(void **state) {
    (void)state;
    net_options o = harness_options();
    o.body_timeout_ms = 300;
    echo *e = echo_open(&o, false);
    client c = slow_client(e, 3);
    AWAIT(net_server_stats(e->h->server).slow_clients == 1);
    AWAIT(net_server_stats(e->h->server).waiting_bytes == 0 && e->closed == 1);
    client_close(&c);
    echo_close(e);
}

/* Queued answers of clients that do not read are bounded over all connections; further answers are refused until there is room. */
static void answers_that_wait_are_bounded(void **state) {
    (void)state;
    enum { CLIENTS = 40, CLIENTS_MAX = 120, MEMORY = 48 << 20 };
    net_options o = harness_options();
    o.memory_max = 2 * (size_t)MEMORY;
    o.least_rate = 0;
    echo *e = echo_open(&o, false);
    client c[CLIENTS_MAX];
    unsigned n = 0;
    while (n < CLIENTS) {
        c[n++] = slow_client(e, 4);
    }
    AWAIT(net_server_stats(e->h->server).starved > 0);
    net_stats stats = net_server_stats(e->h->server);
    assert_true(stats.waiting_bytes > MEMORY / 4 && stats.buffer_bytes < MEMORY + (8 << 20));
    client late = slow_client(e, 0);
    char verb = 'b';
    while (verb == 'b') { /* what the kernel takes of others' answers leaves room: one more takes that */
        assert_true(n < CLIENTS_MAX);
        c[n++] = slow_client(e, 1);
        send_number(&late, 1, 'b', 4000000);
        reply r = next_reply(&late);
        verb = r.verb;
        assert_true(verb == 'b' || strcmp(r.text, "E_BUSY_MEMORY") == 0);
    }
    send_frame(&late, 2, 'e', SLICE_LIT("small ones go on"));
    expect_reply(&late, 2, 'e', "small ones go on");
    for (unsigned i = 0; i < n; i++) {
        client_close(&c[i]);
    }
    AWAIT(net_server_stats(e->h->server).waiting_bytes == 0);
    AWAIT(net_server_stats(e->h->server).buffer_bytes < 4 << 20);
    send_number(&late, 3, 'b', 4000000);
    assert_int_equal(next_reply(&late).n, 4000000);
    client_close(&late);
    echo_close(e);
}

static void a_long_answer_is_made_as_fast_as_it_is_read(void **state) {
    (void)state;
    echo *e = echo_start();
    client c = slow_client(e, 0);
    send_frame(&c, 5, 'f', SLICE_EMPTY);
    AWAIT(net_server_stats(e->h->server).waiting_bytes > 0);
    usleep(50 * 1000);
    unsigned made = e->parts;
    assert_true(made < PARTS);
    assert_true(net_server_stats(e->h->server).waiting_bytes < 1 << 20);
    for (unsigned i = 0; i < PARTS; i++) {
        reply r = next_reply(&c);
        assert_int_equal(r.stream, 5);
        assert_int_equal(r.n, PART_BYTES);
    }
    assert_int_equal(e->parts, PARTS);
    client_close(&c);
    c = slow_client(e, 0);
    send_frame(&c, 6, 'f', SLICE_EMPTY);
    AWAIT(net_server_stats(e->h->server).waiting_bytes > 0);
    client_close(&c); /* the request that writes is notified */
    AWAIT(e->left == 1);
    echo_close(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_answered),
        cmocka_unit_test(torn_frames_are_put_together),
        cmocka_unit_test(answers_come_in_the_order_they_are_ended_in),
        cmocka_unit_test(many_streams_on_many_connections),
        cmocka_unit_test(requests_in_flight_are_bounded),
        cmocka_unit_test(bytes_in_flight_are_bounded),
        cmocka_unit_test(a_frame_has_a_largest_size),
        cmocka_unit_test(frames_are_extended),
        cmocka_unit_test(extended_frames_are_bounded),
        cmocka_unit_test(malformed_frames_end_the_connection),
        cmocka_unit_test(an_answer_has_a_largest_size),
        cmocka_unit_test(time_outs),
        cmocka_unit_test(a_slow_reader_is_not_served_on),
        cmocka_unit_test(a_reader_that_takes_nothing_is_ended),
        cmocka_unit_test(answers_that_wait_are_bounded),
        cmocka_unit_test(a_long_answer_is_made_as_fast_as_it_is_read),
    };
    return cmocka_run_group_tests_name("net/frames", tests, NULL, NULL);
}
