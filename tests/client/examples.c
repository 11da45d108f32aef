/* Every example of examples/client runs, and prints what it says. */
#include "harness.h"

static void run(const char *name, const char *expected) {
    char program[512], all[8192];
    snprintf(program, sizeof program, "%s/example-%s %s", getenv("TESELA_EXAMPLES"), name, endpoint);
    FILE *out = popen(program, "r");
    assert_non_null(out);
    all[fread(all, 1, sizeof all - 1, out)] = 0;
    assert_int_equal(pclose(out), 0);
    if (!strstr(all, expected)) {
        fail_msg("%s printed: %s", name, all);
    }
}

static void examples(void **state) {
    (void)state;
    run("hash", "{\"id\":\"J1\",\"userId\":\"@John\"}\n{\"id\":\"J1\",\"status\":\"Available\"}\n");
    run("range", "{\"id\":\"1\",\"eventTime\":\"2015-04-03\"}\n{\"id\":\"2\",\"eventTime\":\"2015-04-20\"}\n@Eva is in north0\n");
    run("managed", "\"id\":\"logs-2\"");
    run("own", "{\"id\":\"1\",\"kind\":\"bar\"}\n");
    run("state", "\"virtualNodes\":64");
    run("grow", " of 200 items");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples)};
    server_start("--throttling", "off", NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    server_stop();
    return failed;
}
