/* Length-prefixed frames over TLS, and plain ones on the same port; which ports a server lists. */
#include "net_frames_harness.h"

/* ---- TLS or plain on one port ---- */

static void shake_hands(client *c, SSL_CTX *context) {
    c->ssl = SSL_new(context);
    SSL_set_fd(c->ssl, c->fd);
    assert_int_equal(SSL_connect(c->ssl), 1);
}

static void tls_and_plain_share_a_port(void **state) {
    (void)state;
    net_options o = harness_options();
    echo *e = echo_open(&o, true);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        SSL_CTX_set_max_proto_version(context, version);
        client c = frames_client(e);
        shake_hands(&c, context);
        trust(&c);
        for (uint32_t i = 0; i < 20; i++) {
            send_frame(&c, i, i % 2 ? 'l' : 'e', SLICE_LIT("secret"));
            expect_reply(&c, i, i % 2 ? 'l' : 'e', "secret");
        }
        send_number(&c, 9, 'b', 2000000);
        assert_int_equal(next_reply(&c).n, 2000000);
        client_close(&c);
    }
    SSL_CTX_free(context);
    client c = frames_client(e);
    send_frame(&c, 1, 'e', SLICE_LIT("plain"));
    expect_reply(&c, 1, 'e', "plain");
    client_close(&c);
    echo_close(e);
}

/* Of answers that are ended together. An SSL_read gives what is in one record. */
static size_t bytes_of_first_record(echo *e) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    char record[16384];
    client c = frames_client(e);
    shake_hands(&c, context);
    trust(&c);
    buf frames = buf_init(BUF_NO_LIMIT);
    for (uint32_t i = 0; i < 8; i++) {
        add_frame(&frames, i, 'e', SLICE_LIT("together"));
    }
    assert_true(client_try_send(&c, frames.p, frames.n));
    int n = SSL_read(c.ssl, record, sizeof record);
    buf_free(&frames);
    client_close(&c);
    SSL_CTX_free(context);
    return (size_t)n;
}

static void answers_may_be_in_records_of_their_own(void **state) {
    (void)state;
    net_options o = harness_options();
    echo *apart = echo_open_as(&o, (echo_kind){.tls = true, .apart = true}), *joined = echo_open_as(&o, (echo_kind){.tls = true});
    assert_int_equal(bytes_of_first_record(apart), HEADER + 8);
    assert_true(bytes_of_first_record(joined) > HEADER + 8);
    echo_close(apart);
    echo_close(joined);
}

/* More than are sent together. */
static void many_answers_in_records_of_their_own(void **state) {
    (void)state;
    net_options o = harness_options();
    echo *e = echo_open_as(&o, (echo_kind){.tls = true, .apart = true});
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    client c = frames_client(e);
    buf frames = buf_init(BUF_NO_LIMIT);
    shake_hands(&c, context);
    trust(&c);
    for (uint32_t i = 0; i < 200; i++) {
        add_frame(&frames, i, 'e', SLICE_LIT("many"));
    }
    assert_true(client_try_send(&c, frames.p, frames.n));
    for (uint32_t i = 0; i < 200; i++) {
        expect_reply(&c, i, 'e', "many");
    }
    buf_free(&frames);
    client_close(&c);
    SSL_CTX_free(context);
    echo_close(e);
}

/* The lengths of these frames begin like a TLS record: 16 01, 16 03 00, 16 03 01, 16 03 03 (hexadecimal). The stream numbers and the bytes
 * after them imitate a ClientHello as far as possible. */
static void frames_that_begin_like_tls_are_frames(void **state) {
    (void)state;
    static const struct {
        uint32_t length, stream;
    } all[] = {{0x116, 1},        {0x316, 0x0100},     {0x316, 0x01f0},   {0x10316, 0x0001},
               {0x10316, 0x01ff}, {0x10316, 0x4001ff}, {0x30316, 0x0140}, {0x20316, 0xff0110}};
    net_options o = harness_options();
    echo *e = echo_open(&o, true);
    e->front.untrusted = e->front.trusted;
    static char argument[0x40000];
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        for (unsigned torn = 0; torn < 2; torn++) {
            client c = frames_client(e);
            buf frame = buf_init(BUF_NO_LIMIT);
            add_frame(&frame, all[i].stream, 'e', slice_of(argument, all[i].length - HEADER));
            for (size_t at = 0; torn && at < 14; at++) { /* one byte per write */
                assert_true(client_try_send(&c, frame.p + at, 1));
                usleep(2000);
            }
            assert_true(client_try_send(&c, frame.p + (torn ? 14 : 0), frame.n - (torn ? 14 : 0)));
            reply r = next_reply(&c);
            assert_int_equal(r.stream, all[i].stream);
            assert_int_equal(r.n, all[i].length - HEADER);
            buf_free(&frame);
            client_close(&c);
        }
    }
    echo_close(e);
}

static void those_who_are_welcome_may_be_idle(void **state) {
    (void)state;
    net_options o = harness_options();
    o.untrusted_timeout_ms = 200;
    echo *e = echo_open(&o, false);
    client welcome = frames_client(e), other = frames_client(e);
    send_frame(&welcome, 1, 'g', SLICE_LIT("hello"));
    expect_reply(&welcome, 1, 'g', "hello");
    send_frame(&other, 1, 'e', SLICE_LIT("hello"));
    expect_reply(&other, 1, 'e', "hello");
    assert_true(client_ended(&other));
    usleep(300 * 1000);
    send_frame(&welcome, 2, 'e', SLICE_LIT("again"));
    expect_reply(&welcome, 2, 'e', "again");
    client_try_send(&welcome, "\x10", 1); /* a frame that begins is waited for no longer than others */
    expect_reply(&welcome, 0, '!', "E_TIMEOUT");
    assert_true(client_ended(&welcome));
    client_close(&welcome);
    client_close(&other);
    echo_close(e);
}

/* While the first bytes may be TLS or plain, the server waits no longer than for a new connection without bytes. */
static void undecided_bytes_have_a_time_out(void **state) {
    (void)state;
    net_options o = harness_options();
    o.untrusted_timeout_ms = 200;
    echo *e = echo_open(&o, true);
    client c = frames_client(e), ends = frames_client(e);
    client_try_send(&c, "\x16\x03\x01", 3);
    client_try_send(&ends, "\x16\x03\x01", 3);
    shutdown(ends.fd, SHUT_WR);
    assert_true(client_ended(&ends));
    assert_true(client_ended(&c));
    assert_int_equal(e->handled, 0);
    client_close(&c);
    client_close(&ends);
    echo_close(e);
}

/* ---- ports ---- */

static void ports_are_listed(void **state) {
    (void)state;
    echo *e = echo_start();
    assert_int_equal(net_server_ports(e->h->server), 2);
    net_port first = net_server_port(e->h->server, 0), second = net_server_port(e->h->server, 1);
    assert_string_equal(first.name, "echo");
    assert_int_equal(first.port, e->port);
    assert_string_equal(second.name, "test");
    assert_int_equal(second.port, e->h->port);
    expect_alive(e->h); /* HTTP works on the other port */
    echo_close(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tls_and_plain_share_a_port),
        cmocka_unit_test(answers_may_be_in_records_of_their_own),
        cmocka_unit_test(many_answers_in_records_of_their_own),
        cmocka_unit_test(frames_that_begin_like_tls_are_frames),
        cmocka_unit_test(those_who_are_welcome_may_be_idle),
        cmocka_unit_test(undecided_bytes_have_a_time_out),
        cmocka_unit_test(ports_are_listed),
    };
    return cmocka_run_group_tests_name("net/frames", tests, NULL, NULL);
}
