/* The request log: no lines while it is off; when on, a sample of requests and all slow ones; and one line per request, whatever a client
 * sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/request_log.h"

static unsigned chosen_of(unsigned requests, int64_t us) {
    unsigned n = 0;
    for (unsigned i = 0; i < requests; i++) {
        n += request_log_wants(us, false) != REQUEST_LOG_NONE;
    }
    return n;
}

static void off_it_wants_nothing(void **state) {
    (void)state;
    request_log_set(&(request_log_rules){0});
    assert_int_equal(chosen_of(100, 1000000), 0);
    assert_false(request_log_explains());
}

static void it_takes_one_of_so_many(void **state) {
    (void)state;
    request_log_set(&(request_log_rules){.one_of = 1});
    assert_int_equal(chosen_of(100, 5), 100);
    request_log_set(&(request_log_rules){.one_of = 10});
    assert_int_equal(chosen_of(100, 5), 10);
}

static void all_slow_ones_are_taken(void **state) {
    (void)state;
    request_log_set(&(request_log_rules){.slow_us = 1000});
    assert_int_equal(chosen_of(10, 999), 0);
    assert_int_equal(chosen_of(10, 1000), 10);
    assert_int_equal(request_log_wants(1000, false), REQUEST_LOG_SLOW);
    assert_true(request_log_explains());
}

/* Captures what is written to standard error meanwhile. */
static const char *written(unsigned wanted, const request_log_entry *entry) {
    static char text[8192];
    int ends[2], kept = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    request_log_write(wanted, entry);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    text[n > 0 ? n : 0] = 0;
    return text;
}

static unsigned lines_of(const char *text) {
    unsigned n = 0;
    for (; *text; text++) {
        n += *text == '\n';
    }
    return n;
}

static void a_line_has_it_all(void **state) {
    (void)state;
    request_log_entry e = {.api = "sql",
                           .verb = SLICE_LIT("GET"),
                           .path = SLICE_LIT("/dbs/d"),
                           .status = 429,
                           .substatus = 3200,
                           .charge_ru = 0.38,
                           .us = 1250,
                           .range = 7,
                           .activity = SLICE_LIT("0a"),
                           .explanation = SLICE_LIT("rows=3")};
    const char *line = written(REQUEST_LOG_ACCESS, &e);
    assert_non_null(strstr(line, "info  access: GET /dbs/d api=sql status=429 substatus=3200 ru=0.38 ms=1.25 range=7 activity=0a\n"));
    line = written(REQUEST_LOG_ACCESS | REQUEST_LOG_SLOW, &e);
    assert_int_equal(lines_of(line), 2);
    assert_non_null(strstr(line, "warn  slow: GET /dbs/d api=sql"));
    assert_non_null(strstr(line, "activity=0a rows=3\n"));
}

static void a_line_stays_a_line(void **state) {
    (void)state;
    char path[3000];
    memset(path, 'x', sizeof path);
    memcpy(path, "/a b\n\"\x1b", 7);
    request_log_entry e = {.api = "sql", .verb = SLICE_LIT("GE\nT"), .path = slice_of(path, sizeof path), .range = -1};
    const char *line = written(REQUEST_LOG_ACCESS, &e);
    assert_int_equal(lines_of(line), 1);
    assert_non_null(strstr(line, "GE?T /a?b???xxx"));
    assert_non_null(strstr(line, " range=- "));
    e.path = e.verb = SLICE_EMPTY;
    assert_non_null(strstr(written(REQUEST_LOG_ACCESS, &e), "access: - - api=sql"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(off_it_wants_nothing), cmocka_unit_test(it_takes_one_of_so_many), cmocka_unit_test(all_slow_ones_are_taken),
        cmocka_unit_test(a_line_has_it_all),    cmocka_unit_test(a_line_stays_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
