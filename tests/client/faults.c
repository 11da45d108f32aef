/* What goes wrong: 429, 410, 449, 503, slow answers, a killed server; and many threads on one client. */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static tesela_container *k;
static tesela_key key;

/* Reads an item while a fault is set; returns how often the request was sent again. */
static unsigned read_again(void) {
    tesela_response *r;
    ok(tesela_item_read(k, "1", &key, NULL, &r, &error));
    unsigned retries = tesela_response_retries(r);
    tesela_response_free(r);
    return retries;
}

static void passing_faults(void **state) {
    (void)state;
    command("fault", "--status", "429", "--retry-after", "20", "--count", "3", NULL);
    assert_int_equal(read_again(), 3);
    command("fault", "--status", "410", "--count", "2", NULL);
    assert_int_equal(read_again(), 2);
    command("fault", "--status", "449", "--count", "4", NULL);
    assert_int_equal(read_again(), 4);
    command("fault", "--status", "503", "--count", "2", NULL);
    assert_int_equal(read_again(), 2);
    command("fault", "--status", "408", "--count", "1", NULL);
    assert_int_equal(read_again(), 1);
}

static void writes_again(void **state) {
    (void)state;
    command("fault", "--status", "429", "--retry-after", "20", "--count", "2", NULL);
    ok(tesela_item_upsert(k, "{\"id\":\"2\",\"pk\":\"a\"}", NULL, NULL, NULL, &error));
    command("fault", "--status", "408", "--count", "1", NULL); /* it may have been written */
    fails(tesela_item_upsert(k, "{\"id\":\"2\",\"pk\":\"a\"}", NULL, NULL, NULL, &error), TESELA_TIMEOUT);
}

static void lasting_faults(void **state) {
    (void)state;
    tesela_client *impatient;
    tesela_container *other;
    tesela_client_options options = {.endpoint = endpoint, .key = KEY, .throttle_retries = -1};
    ok(tesela_client_open(&options, &impatient, &error));
    ok(tesela_container_open(impatient, "d", "faults", &other, &error));
    command("fault", "--status", "429", "--retry-after", "70", "--count", "1", NULL);
    fails(tesela_item_read(other, "1", &key, NULL, NULL, &error), TESELA_THROTTLED);
    assert_int_equal(error.http_status, 429);
    assert_int_equal(error.retry_after_ms, 70);
    command("fault", "--status", "500", "--count", "1", NULL);
    fails(tesela_item_read(k, "1", &key, NULL, NULL, &error), TESELA_SERVER_ERROR);
    tesela_container_close(other);
    tesela_client_close(impatient);
}

static void slow_answers(void **state) {
    (void)state;
    tesela_client *hasty;
    tesela_container *other;
    ok(tesela_client_open(&(tesela_client_options){.endpoint = endpoint, .key = KEY, .request_timeout_ms = 300}, &hasty, &error));
    ok(tesela_container_open(hasty, "d", "faults", &other, &error));
    ok(tesela_item_read(other, "1", &key, NULL, NULL, &error));
    command("fault", "--delay", "30000", "--count", "1", NULL);
    ok(tesela_item_read(other, "1", &key, NULL, NULL, &error)); /* the second attempt is not slow */
    command("fault", "--delay", "30000", "--count", "1", NULL);
    fails(tesela_item_upsert(other, "{\"id\":\"2\",\"pk\":\"a\"}", NULL, NULL, NULL, &error), TESELA_TIMEOUT);
    command("fault", "--clear", NULL);
    tesela_container_close(other);
    tesela_client_close(hasty);
}

static void no_server(void **state) {
    (void)state;
    tesela_client *c;
    fails(tesela_client_open(&(tesela_client_options){.endpoint = "ftp://x", .key = KEY}, &c, &error), TESELA_BAD_ARGUMENT);
    ok(tesela_client_open(&(tesela_client_options){.endpoint = "http://127.0.0.1:1", .key = KEY, .stay = true}, &c, &error));
    fails(tesela_database_read(c, "d", NULL, &error), TESELA_NO_CONNECTION);
    tesela_client_close(c);
}

static void *restart_later(void *unused) {
    (void)unused;
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    server_restart();
    return NULL;
}

static void killed_server(void **state) {
    (void)state;
    pthread_t thread;
    server_kill();
    pthread_create(&thread, NULL, restart_later, NULL);
    ok(tesela_item_read(k, "1", &key, NULL, NULL, &error));
    ok(tesela_item_upsert(k, "{\"id\":\"3\",\"pk\":\"a\"}", NULL, NULL, NULL, &error));
    pthread_join(thread, NULL);
}

/* A bulk whose operations are throttled and whose ranges split under it. */
static void busy_bulk(void **state) {
    (void)state;
    size_t n;
    command("fault", "--status", "429", "--retry-after", "5", "--percent", "20", NULL);
    fill(k, 600, 60);
    command("fault", "--clear", NULL);
    command("fault", "--status", "410", "--substatus", "1002", "--percent", "20", NULL);
    tesela_bulk *b;
    ok(tesela_bulk_open(k, NULL, &b, &error));
    for (int i = 600; i < 1800; i++) {
        char item[64];
        if (i == 1200) {
            split("faults");
        }
        snprintf(item, sizeof item, "{\"id\":\"i%d\",\"pk\":\"p%d\"}", i, i % 60);
        ok(tesela_bulk_add(b, &(tesela_bulk_operation){.kind = TESELA_BULK_CREATE, .body = item}, &error));
    }
    ok(tesela_bulk_finish(b, &error));
    tesela_bulk_close(b);
    free(query_rows(k, "SELECT VALUE c.id FROM c WHERE STARTSWITH(c.id, 'i')", NULL,
                    &(tesela_query_options){.parallelism = 4, .page_items = 50}, &n));
    assert_int_equal(n, 1800);
    command("fault", "--clear", NULL);
}

enum { THREADS = 4, ROUNDS = 60 };

static void *work(void *number) {
    int t = (int)(intptr_t)number;
    tesela_error e;
    for (int i = 0; i < ROUNDS; i++) {
        char item[96], id[32], pk[32];
        snprintf(id, sizeof id, "t%d-%d", t, i);
        snprintf(pk, sizeof pk, "k%d", i % 10);
        snprintf(item, sizeof item, "{\"id\":\"%s\",\"pk\":\"%s\"}", id, pk);
        tesela_key own = tesela_key_string(pk);
        if (tesela_item_create(k, item, NULL, NULL, NULL, &e) != TESELA_OK || tesela_item_read(k, id, &own, NULL, NULL, &e) != TESELA_OK) {
            return (void *)1;
        }
        if (i % 20 == 0) {
            tesela_cursor *cursor;
            const char *row;
            tesela_query_options options = {.parallelism = 2};
            if (tesela_query(k, "SELECT VALUE c.id FROM c", NULL, &options, &cursor, &e) != TESELA_OK) {
                return (void *)2;
            }
            tesela_status status;
            while ((status = tesela_cursor_next(cursor, &row, NULL, &e)) == TESELA_OK) {
            }
            tesela_cursor_close(cursor);
            if (status != TESELA_DONE) {
                return (void *)3;
            }
        }
    }
    return NULL;
}

static void threads(void **state) {
    (void)state;
    pthread_t list[THREADS];
    command("fault", "--status", "410", "--substatus", "1002", "--percent", "5", NULL);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&list[i], NULL, work, (void *)(intptr_t)i);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(list[i], &failed);
        assert_null(failed);
    }
    command("fault", "--clear", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passing_faults), cmocka_unit_test(writes_again),  cmocka_unit_test(lasting_faults), cmocka_unit_test(slow_answers),
        cmocka_unit_test(no_server),      cmocka_unit_test(killed_server), cmocka_unit_test(busy_bulk),      cmocka_unit_test(threads),
    };
    server_start("--throttling", "off", NULL);
    k = container_new("faults", 12000);
    key = tesela_key_string("a");
    if (tesela_item_create(k, "{\"id\":\"1\",\"pk\":\"a\"}", NULL, NULL, NULL, &error) != TESELA_OK) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tesela_container_close(k);
    server_stop();
    return failed;
}
