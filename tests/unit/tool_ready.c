/* The ready line names every port that listens. */
#include "net_harness.h"

#include "net/frames.h"
#include "tool/ready.h"

static bool length(frames_conn *conn, const uint8_t *header, uint64_t *bytes_out) {
    (void)conn, (void)header;
    *bytes_out = 4;
    return true;
}

static void refuse_frame(frames_request *r, err code) {
    (void)code;
    frames_end(r);
}

static const frames_front cassandra = {
    .name = "cassandra",
    .header_bytes = 4,
    .length = length,
    .untrusted = {.frame_bytes = 4, .in_flight = 1, .in_flight_bytes = 4},
    .trusted = {.frame_bytes = 4, .in_flight = 1, .in_flight_bytes = 4},
    .handle = frames_end,
    .refuse = refuse_frame,
};

static void expect_line(const net_server *server, const char *host, const char *wanted) {
    buf line = buf_init(BUF_NO_LIMIT);
    tool_ready_line(&line, host, server, 4711);
    buf_add_byte(&line, 0);
    assert_string_equal(line.p, wanted);
    buf_free(&line);
}

static void every_port_is_named(void **state) {
    (void)state;
    char why[256] = "", wanted[256];
    net_options o = harness_options();
    harness *h = harness_open(&o);
    expect_line(h->server, "localhost", "{\"ready\":true,\"pid\":4711}\n"); /* all ports are off */
    uint16_t sql, other;
    h->front.name = "sql";
    assert_int_equal(net_listen(h->server, "localhost", 0, &h->front, &sql, why, sizeof why), OK);
    snprintf(wanted, sizeof wanted, "{\"ready\":true,\"sql\":\"127.0.0.1:%u\",\"pid\":4711}\n", sql);
    expect_line(h->server, "localhost", wanted);
    assert_int_equal(net_listen_frames(h->server, "localhost", 0, &cassandra, &other, why, sizeof why), OK);
    assert_int_not_equal(sql, other);
    snprintf(wanted, sizeof wanted, "{\"ready\":true,\"sql\":\"[::1]:%u\",\"cassandra\":\"[::1]:%u\",\"pid\":4711}\n", sql, other);
    expect_line(h->server, "::1", wanted);
    harness_close(h);
}

static void a_port_in_use_is_not_named(void **state) {
    (void)state;
    char why[256] = "", wanted[256];
    net_options o = harness_options();
    harness *h = harness_open(&o);
    uint16_t sql, other;
    h->front.name = "sql";
    assert_int_equal(net_listen(h->server, "127.0.0.1", 0, &h->front, &sql, why, sizeof why), OK);
    assert_int_equal(net_listen_frames(h->server, "127.0.0.1", sql, &cassandra, &other, why, sizeof why), E_INTERNAL);
    assert_non_null(strstr(why, "in use"));
    snprintf(wanted, sizeof wanted, "{\"ready\":true,\"sql\":\"127.0.0.1:%u\",\"pid\":4711}\n", sql);
    expect_line(h->server, "127.0.0.1", wanted);
    harness_close(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_port_is_named),
        cmocka_unit_test(a_port_in_use_is_not_named),
    };
    return cmocka_run_group_tests_name("tool/ready", tests, NULL, NULL);
}
