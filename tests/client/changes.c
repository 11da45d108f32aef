/* The change feed by ranges, over splits; and processors that share it, while one of them is killed. */
#include "harness.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static tesela_container *k;

static void add(int from, int to) {
    tesela_bulk *b;
    ok(tesela_bulk_open(k, NULL, &b, &error));
    for (int i = from; i < to; i++) {
        char item[64];
        snprintf(item, sizeof item, "{\"id\":\"i%d\",\"pk\":\"p%d\"}", i, i % 50);
        ok(tesela_bulk_add(b, &(tesela_bulk_operation){.kind = TESELA_BULK_UPSERT, .body = item}, &error));
    }
    ok(tesela_bulk_finish(b, &error));
    tesela_bulk_close(b);
}

/* All changes until there are no more for now. */
static unsigned drain(tesela_changes *c) {
    const char *item;
    unsigned n = 0;
    tesela_status status;
    while ((status = tesela_changes_next(c, &item, NULL, &error)) == TESELA_OK) {
        assert_non_null(strstr(item, "\"_lsn\":"));
        n++;
    }
    fails(status, TESELA_DONE);
    return n;
}

static void feed(void **state) {
    (void)state;
    tesela_changes *c, *again, *now, *one;
    tesela_key key = tesela_key_string("p7");
    const char *item;
    size_t count;
    add(0, 300);
    ok(tesela_changes_open(k, &(tesela_changes_options){.page_items = 20}, &c, &error));
    ok(tesela_changes_open(k, &(tesela_changes_options){.from_now = true}, &now, &error));
    ok(tesela_changes_open(k, &(tesela_changes_options){.key = &key}, &one, &error));
    assert_int_equal(drain(now), 0);
    assert_int_equal(drain(one), 6);
    for (int i = 0; i < 30; i++) {
        ok(tesela_changes_next(c, &item, NULL, &error));
    }
    assert_true(tesela_changes_charge(c) > 0);
    ok(tesela_changes_open(k, &(tesela_changes_options){.continuation = tesela_changes_continuation(c)}, &again, &error));
    assert_int_equal(drain(c), 270);
    assert_in_range(drain(again), 270, 280); /* a page that was not read whole comes again */
    split("feed");
    add(100, 400);
    assert_int_equal(drain(c), 300);
    assert_int_equal(drain(now), 300);
    ok(tesela_changes_page(one, &count, &error));
    assert_int_equal(count, 6);
    assert_non_null(tesela_changes_item(one, 5, NULL));
    assert_null(tesela_changes_item(one, 6, NULL));
    tesela_changes_close(c);
    tesela_changes_close(again);
    tesela_changes_close(now);
    tesela_changes_close(one);
    fails(tesela_changes_open(k, &(tesela_changes_options){.continuation = "{\"version\":7}"}, &c, &error), TESELA_BAD_ARGUMENT);
    fails(tesela_changes_open(k, &(tesela_changes_options){.min = "xyz"}, &c, &error), TESELA_BAD_ARGUMENT);
}

static void all_versions(void **state) {
    (void)state;
    static const char definition[] = "{\"id\":\"logged\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},"
                                     "\"changeFeedPolicy\":{\"retentionDuration\":60}}";
    tesela_container *logged;
    tesela_changes *c, *again;
    const char *event;
    tesela_key key = tesela_key_string("p");
    ok(tesela_container_create(client, "d", definition, NULL, NULL, &error));
    ok(tesela_container_open(client, "d", "logged", &logged, &error));
    ok(tesela_changes_open(logged, &(tesela_changes_options){.all_versions = true, .from_now = true}, &c, &error));
    fails(tesela_changes_next(c, &event, NULL, &error), TESELA_DONE);
    ok(tesela_item_create(logged, "{\"id\":\"1\",\"pk\":\"p\",\"n\":1}", NULL, NULL, NULL, &error));
    ok(tesela_item_upsert(logged, "{\"id\":\"1\",\"pk\":\"p\",\"n\":2}", NULL, NULL, NULL, &error));
    ok(tesela_item_delete(logged, "1", &key, NULL, NULL, &error));
    tesela_changes_options options = {.all_versions = true, .continuation = tesela_changes_continuation(c)};
    ok(tesela_changes_open(logged, &options, &again, &error));
    static const char *const kinds[] = {"\"operationType\":\"create\"", "\"operationType\":\"replace\"", "\"operationType\":\"delete\""};
    for (size_t i = 0; i < 3; i++) {
        ok(tesela_changes_next(c, &event, NULL, &error));
        assert_non_null(strstr(event, kinds[i]));
        ok(tesela_changes_next(again, &event, NULL, &error));
        assert_non_null(strstr(event, kinds[i]));
    }
    fails(tesela_changes_next(c, &event, NULL, &error), TESELA_DONE);
    tesela_changes_close(again);
    tesela_changes_close(c);
    ok(tesela_changes_open(logged, &(tesela_changes_options){.all_versions = true}, &c, &error)); /* not from the beginning */
    fails(tesela_changes_next(c, &event, NULL, &error), TESELA_BAD_REQUEST);
    tesela_changes_close(c);
    tesela_container_close(logged);
}

/* ---- processors ---- */

enum { PROCESSORS = 3, ITEMS = 900 };

typedef struct shared {
    atomic_uint seen[ITEMS];
    atomic_uint handled[PROCESSORS], leases[PROCESSORS];
} shared;

static shared *s;
static tesela_processor *running;

static bool handle(void *context, const tesela_processor_page *page) {
    int number = (int)(intptr_t)context;
    for (size_t i = 0; i < page->count; i++) {
        int id;
        if (sscanf(page->items[i], "{\"id\":\"i%d\"", &id) == 1 && id < ITEMS) {
            s->seen[id]++;
        }
    }
    s->handled[number] += (unsigned)page->count;
    s->leases[number] = tesela_processor_leases(running);
    return true;
}

static void on_term(int unused) {
    (void)unused;
    tesela_processor_stop(running);
}

static pid_t start_processor(int number) {
    pid_t pid = fork();
    if (pid) {
        return pid;
    }
    tesela_client *own;
    tesela_container *from = NULL, *leases = NULL;
    char instance[16];
    snprintf(instance, sizeof instance, "worker%d", number);
    signal(SIGTERM, on_term);
    tesela_client_options options = {.endpoint = endpoint, .key = KEY};
    if (tesela_client_open(&options, &own, &error) != TESELA_OK || tesela_container_open(own, "d", "feed", &from, &error) != TESELA_OK ||
        tesela_container_open(own, "d", "leases", &leases, &error) != TESELA_OK) {
        _exit(1);
    }
    tesela_processor_options p = {.name = "copy",
                                  .instance = instance,
                                  .feed = from,
                                  .leases = leases,
                                  .handle = handle,
                                  .context = (void *)(intptr_t)number,
                                  .page_items = 10,
                                  .poll_ms = 50,
                                  .renew_ms = 200,
                                  .expire_ms = 1500};
    if (tesela_processor_open(&p, &running, &error) != TESELA_OK) {
        _exit(2);
    }
    tesela_status status = tesela_processor_run(running, &error);
    tesela_processor_close(running);
    tesela_container_close(from);
    tesela_container_close(leases);
    tesela_client_close(own);
    _exit(status == TESELA_OK ? 0 : 3);
}

/* Waits until all items up to `n` were handled, a minute at most. */
static void wait_for(int n) {
    int missing = -1;
    for (int i = 0; i < 600; i++) {
        missing = -1;
        for (int id = 0; id < n; id++) {
            missing = s->seen[id] ? missing : id;
        }
        if (missing < 0) {
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    fail_msg("item %d was not handled", missing);
}

static void processors(void **state) {
    (void)state;
    tesela_processor *p;
    pid_t pids[PROCESSORS];
    int how;
    fails(tesela_processor_open(&(tesela_processor_options){.name = "x"}, &p, &error), TESELA_BAD_ARGUMENT);
    ok(tesela_container_create(client, "d", "{\"id\":\"leases\",\"partitionKey\":{\"paths\":[\"/id\"],\"kind\":\"Hash\",\"version\":2}}",
                               NULL, NULL, &error));
    for (int i = 0; i < 2; i++) {
        pids[i] = start_processor(i);
    }
    wait_for(400); /* the items of before */
    add(400, 600);
    split("feed");
    add(600, 700);
    wait_for(700);
    kill(pids[0], SIGKILL);
    waitpid(pids[0], &how, 0);
    add(700, 800);
    pids[2] = start_processor(2);
    wait_for(800);
    add(800, 900);
    wait_for(900);
    assert_true(s->handled[0] > 0 && s->handled[1] > 0);
    for (int i = 1; i < PROCESSORS; i++) {
        kill(pids[i], SIGTERM);
        waitpid(pids[i], &how, 0);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
    tesela_container *leases;
    size_t n;
    ok(tesela_container_open(client, "d", "leases", &leases, &error));
    free(query_rows(leases, "SELECT * FROM c WHERE c.owner != ''", NULL, NULL, &n));
    assert_int_equal(n, 0);
    free(query_rows(leases, "SELECT * FROM c", NULL, NULL, &n));
    assert_true(n >= 4);
    tesela_container_close(leases);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(feed), cmocka_unit_test(all_versions), cmocka_unit_test(processors)};
    server_start("--throttling", "off", NULL);
    k = container_new("feed", 12000);
    s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tesela_container_close(k);
    server_stop();
    return failed;
}
