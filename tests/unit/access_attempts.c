/* Failed authentications: counted exactly, logged rarely. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "access/attempts.h"

static clock_manual now;
static int kept_stderr, log_fd;

/* Redirects the log to an unlinked file. */
static int take_log(void **state) {
    char path[] = "/tmp/tesela-attempts-XXXXXX";
    (void)state;
    clock_manual_init(&now, 1800000000000);
    log_fd = mkstemp(path);
    unlink(path);
    kept_stderr = dup(2);
    return log_fd < 0 || dup2(log_fd, 2) < 0;
}

static int give_log(void **state) {
    (void)state;
    dup2(kept_stderr, 2);
    close(kept_stderr);
    close(log_fd);
    return 0;
}

static char text[1 << 18];

static size_t lines_with(const char *word) {
    ssize_t n = pread(log_fd, text, sizeof text - 1, 0);
    size_t found = 0;
    text[n > 0 ? n : 0] = '\0';
    char *rest = text;
    for (char *line = strtok_r(rest, "\n", &rest); line; line = strtok_r(rest, "\n", &rest)) {
        found += strstr(line, word) != NULL;
    }
    return found;
}

static void note(access_attempts *a, const char *address, err code) {
    uint8_t bytes[16];
    char mapped[64];
    snprintf(mapped, sizeof mapped, "%s%s", strchr(address, ':') ? "" : "::ffff:", address);
    assert_int_equal(inet_pton(AF_INET6, mapped, bytes), 1);
    access_attempts_note(a, bytes, code);
}

static void an_address_is_told_once_and_then_counted(void **state) {
    (void)state;
    access_attempts *a = access_attempts_new(&now.source);
    for (int i = 0; i < 1000; i++) {
        note(a, "192.0.2.7", i % 10 == 0 ? E_NO_AUTHORIZATION : i % 10 == 1 ? E_BAD_AUTHORIZATION : E_UNAUTHORIZED);
    }
    note(a, "192.0.2.8", E_UNAUTHORIZED);
    note(a, "192.0.2.8", E_NOT_FOUND);
    assert_int_equal(lines_with("address=192.0.2.7 count=1 missing=1 malformed=0 wrong=0 seconds=0"), 1);
    assert_int_equal(lines_with("address="), 2);
    clock_manual_advance(&now, (ATTEMPTS_INTERVAL_S - 1) * 1000);
    access_attempts_tick(a);
    assert_int_equal(lines_with("address="), 2);
    clock_manual_advance(&now, 1000);
    access_attempts_tick(a);
    access_attempts_tick(a);
    assert_int_equal(lines_with("address=192.0.2.7 count=999 missing=99 malformed=100 wrong=800 seconds=60"), 1);
    assert_int_equal(lines_with("address="), 3);
    assert_int_equal(access_attempts_total(a, ATTEMPT_MISSING), 100);
    assert_int_equal(access_attempts_total(a, ATTEMPT_MALFORMED), 100);
    assert_int_equal(access_attempts_total(a, ATTEMPT_WRONG), 801);

    clock_manual_advance(&now, ATTEMPTS_INTERVAL_S * 1000); /* after a quiet interval the address is new again */
    access_attempts_tick(a);
    note(a, "192.0.2.7", E_UNAUTHORIZED);
    note(a, "192.0.2.7", E_UNAUTHORIZED);
    assert_int_equal(lines_with("address="), 4);
    access_attempts_free(a); /* logs the remaining count */
    assert_int_equal(lines_with("address="), 5);
}

static void a_network_is_one_address(void **state) {
    (void)state;
    access_attempts *a = access_attempts_new(&now.source);
    note(a, "2001:db8:1:2:3:4:5:6", E_UNAUTHORIZED);
    note(a, "2001:db8:1:2:ffff::1", E_UNAUTHORIZED);
    note(a, "2001:db8:1:3::1", E_UNAUTHORIZED);
    note(a, "::1", E_UNAUTHORIZED);
    assert_int_equal(lines_with("address=2001:db8:1:2::/64 "), 1);
    assert_int_equal(lines_with("address=2001:db8:1:3::/64 "), 1);
    assert_int_equal(lines_with("address=::1 "), 1);
    access_attempts_free(a);
}

static void a_flood_from_everywhere_is_quiet(void **state) {
    (void)state;
    enum { ADDRESSES = 20000 };
    access_attempts *a = access_attempts_new(&now.source);
    for (unsigned i = 0; i < ADDRESSES; i++) {
        char address[32];
        snprintf(address, sizeof address, "10.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255);
        note(a, address, E_UNAUTHORIZED);
    }
    size_t told = lines_with("address=");
    assert_in_range(told, 2, ATTEMPTS_ADDRESSES + 1);
    assert_int_equal(lines_with("address=others"), 1);
    clock_manual_advance(&now, ATTEMPTS_INTERVAL_S * 1000);
    access_attempts_tick(a);
    assert_int_equal(lines_with("address="), told + 1); /* the shared entry, with its count */
    assert_int_equal(access_attempts_total(a, ATTEMPT_WRONG), ADDRESSES);
    access_attempts_free(a);
}

static void *note_many(void *attempts) {
    for (int i = 0; i < 5000; i++) {
        note(attempts, i % 2 ? "192.0.2.1" : "192.0.2.2", E_UNAUTHORIZED);
    }
    return NULL;
}

static void threads_lose_none(void **state) {
    (void)state;
    access_attempts *a = access_attempts_new(&now.source);
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, note_many, a), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    access_attempts_free(a);
    assert_int_equal(lines_with("count=1 "), 2);
    assert_int_equal(lines_with("count=9999 "), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_address_is_told_once_and_then_counted, take_log, give_log),
        cmocka_unit_test_setup_teardown(a_network_is_one_address, take_log, give_log),
        cmocka_unit_test_setup_teardown(a_flood_from_everywhere_is_quiet, take_log, give_log),
        cmocka_unit_test_setup_teardown(threads_lose_none, take_log, give_log),
    };
    return cmocka_run_group_tests_name("access_attempts", tests, NULL, NULL);
}
