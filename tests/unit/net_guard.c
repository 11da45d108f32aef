/* The guard against web pages: which hosts and origins it accepts, including similar ones that it must reject. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/guard.h"

static net_guard guard = {.on = true};
static unsigned addresses_asked;

/* The connection arrived at 192.0.2.7. */
static void local_address(const void *context, uint8_t into[static 16]) {
    (void)context;
    addresses_asked++;
    net_address_map(false, (const uint8_t[]){192, 0, 2, 7}, into);
}

static bool allows(const net_guard *g, const char *host, const char *origin, bool tls) {
    net_caller caller = {.host = slice_str(host), .tls = tls, .local_address = local_address};
    caller.origin = origin ? slice_str(origin) : SLICE_EMPTY;
    return net_guard_allows(g, &caller);
}

static bool allows_host(const char *host) {
    return allows(&guard, host, NULL, false);
}

static void loopback_names_are_ours(void **state) {
    (void)state;
    static const char *const ours[] = {"localhost",  "localhost:8081",       "LocalHost:1",      "localhost:65535",
                                       "127.0.0.1",  "127.0.0.1:8081",       "127.1.2.3:80",     "[::1]",
                                       "[::1]:8081", "[0:0:0:0:0:0:0:1]:80", "[::ffff:7f00:1]:1"};
    addresses_asked = 0;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        assert_true(allows_host(ours[i]));
    }
    assert_int_equal(addresses_asked, 0); /* not called, since it costs a system call */
}

static void what_looks_like_them_is_not(void **state) {
    (void)state;
    static const char *const others[] = {
        "", ":", ":80", " ", "evil.example", "evil.example:80",
        /* users, paths and invalid ports */
        "localhost:80@evil.example", "localhost@evil.example", "evil.example@localhost", "localhost:8081:8081", "localhost:", "localhost:x",
        "localhost:-1", "localhost:+80", "localhost: 80", "localhost:65536", "localhost:999999", "localhost/", "localhost/evil",
        "localhost#", "localhost?", "localhost:80/", "localhost\\", "//localhost", "http://localhost",
        /* names that only begin or end like ours */
        "localhost.", "localhost.evil.example", "evil.localhost", "xlocalhost", "localhost ", " localhost", "localhost,evil.example",
        "127.0.0.1.evil.example", "127.evil.example", "127.0.0.1.", "127.0.0.1.5", "localhost.localdomain",
        /* other spellings of 127.0.0.1, which browsers do not send */
        "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.01", "127.0.0.256", "0", "0.0.0.0",
        "0.0.0.0:8081",
        /* IPv6 */
        "::1", "::1:80", "[::1", "::1]", "[::1]x", "[::1]:", "[::1]:x", "[::1]evil.example", "[::1%lo]", "[::]", "[::2]", "[]", "[", "]",
        "[localhost]", "[127.0.0.1]", "[[::1]]", "[::1].evil.example:80", "[::1]@evil.example",
        /* other addresses */
        "128.0.0.1", "126.255.255.255", "192.0.2.8", "[::ffff:c000:208]"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (allows_host(others[i])) {
            fail_msg("%s is let pass", others[i]);
        }
    }
    net_caller zero = {.host = SLICE_LIT("localhost\0.evil.example"), .local_address = local_address};
    assert_false(net_guard_allows(&guard, &zero));
    zero.host = SLICE_LIT("127.0.0.1\0.evil.example");
    assert_false(net_guard_allows(&guard, &zero));
}

static void the_address_that_was_connected_to_is_ours(void **state) {
    (void)state;
    assert_true(allows_host("192.0.2.7"));
    assert_true(allows_host("192.0.2.7:8081"));
    assert_true(allows_host("[::ffff:192.0.2.7]:8081"));
    assert_false(allows_host("192.0.2.70"));
    assert_false(allows_host("192.0.2.7.evil.example"));
}

static void names_can_be_allowed(void **state) {
    (void)state;
    net_guard named = {.on = true, .allowed = "tesela, db.Example ,[fd00::1],10.0.0.1", .machine = "laptop"};
    static const char *const ours[] = {"tesela:8081", "DB.example", "[fd00::1]:80", "10.0.0.1:80", "laptop:8081", "Laptop", "localhost"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        assert_true(allows(&named, ours[i], NULL, false));
    }
    static const char *const others[] = {"teselax", "tesela.evil.example", "example",   "db",
                                         "tesela,", "tesela,db.example",   "[fd00::2]", "laptop."};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(allows(&named, others[i], NULL, false));
    }
    assert_false(allows_host("laptop"));
    assert_true(net_guard_list_good(SLICE_LIT("tesela, db.example,[fd00::1],10.0.0.1,a_b-c")));
    static const char *const bad[] = {"", " ", ",", "a,,b", "a:80", "a b", "*", "http://a", "a/b", "[x]", "a@b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(net_guard_list_good(slice_str(bad[i])));
    }
}

static void origins_are_of_the_same_host(void **state) {
    (void)state;
    assert_true(allows(&guard, "localhost:8081", "http://localhost:8081", false));
    assert_true(allows(&guard, "localhost:8081", "http://LOCALHOST:8081", false));
    assert_true(allows(&guard, "[::1]:8081", "https://[::1]:8081", true));
    static const char *const others[] = {"",
                                         "null",
                                         "localhost:8081",
                                         "http://",
                                         "http://localhost",
                                         "http://localhost:3000",
                                         "https://localhost:8081",
                                         "http://127.0.0.1:8081",
                                         "http://localhost:8081/",
                                         "http://localhost:8081.evil.example",
                                         "http://localhost:8081@evil.example",
                                         "http://evil.example",
                                         "http://localhost:8081, http://localhost:8081",
                                         "http://localhost:8081 http://evil.example",
                                         "file://",
                                         "chrome-extension://localhost:8081"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (allows(&guard, "localhost:8081", others[i], false)) {
            fail_msg("%s is let pass", others[i]);
        }
    }
    assert_false(allows(&guard, "evil.example", "http://evil.example", false));
}

static void off_it_lets_all_pass(void **state) {
    (void)state;
    net_guard off = {.on = false};
    assert_true(allows(&off, "evil.example", "null", false));
    assert_true(allows(&off, "", "", true));
}

static int listening_at(uint32_t ip) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(ip)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void the_machines_name_counts_where_others_reach_it(void **state) {
    (void)state;
    char name[NET_NAME_BYTES] = "";
    net_guard g = {.on = true};
    assert_int_equal(gethostname(name, sizeof name - 1), 0);
    int fd = listening_at(INADDR_ANY);
    net_guard_listens(&g, fd);
    close(fd);
    assert_string_equal(g.machine, name);
    net_guard local = {.on = true};
    fd = listening_at(0x7F4D4D4D); /* 127.77.77.77, which no hosts file has */
    net_guard_listens(&local, fd);
    close(fd);
    assert_string_equal(local.machine, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback_names_are_ours),
        cmocka_unit_test(what_looks_like_them_is_not),
        cmocka_unit_test(the_address_that_was_connected_to_is_ours),
        cmocka_unit_test(names_can_be_allowed),
        cmocka_unit_test(origins_are_of_the_same_host),
        cmocka_unit_test(off_it_lets_all_pass),
        cmocka_unit_test(the_machines_name_counts_where_others_reach_it),
    };
    return cmocka_run_group_tests_name("net/guard", tests, NULL, NULL);
}
