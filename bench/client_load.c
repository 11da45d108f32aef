/* client_load URL read|create|bulk|order SECONDS FIRST — libtesela in a closed loop; one line of JSON: requests, and how many a second of
 * this process's processor time would do. `read` and `create` have 16 calls at a time, by threads, as client_sdk.mjs has; the others are
 * on one thread. `bulk` counts items, `order` rows that are merged from all ranges. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <tesela/tesela.h>
#include <time.h>

#define KEY "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

enum { ITEMS = 100, CALLS = 16 };

static _Thread_local tesela_error error;
static _Thread_local char item[1200];

static void must(tesela_status status) {
    if (status != TESELA_OK) {
        fprintf(stderr, "client_load: %s: %s\n", tesela_status_text(status), error.message);
        exit(1);
    }
}

static double seconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const char *make_item(long n) {
    int used = snprintf(item, sizeof item, "{\"id\":\"%ld\",\"pk\":\"p%ld\",\"n\":%ld,\"note\":\"", n, n % 100, n * 7919 % 1000003);
    memset(item + used, 'x', 1000 - (size_t)used);
    strcpy(item + 1000, "\"}");
    return item;
}

static void read_one(tesela_container *k, long n) {
    char id[24], pk[24];
    tesela_response *r;
    snprintf(id, sizeof id, "%ld", n % ITEMS);
    snprintf(pk, sizeof pk, "p%ld", n % ITEMS % 100);
    tesela_key key = tesela_key_string(pk);
    must(tesela_item_read(k, id, &key, NULL, &r, &error));
    tesela_response_free(r);
}

static void create_one(tesela_container *k, long n) {
    char pk[24];
    snprintf(pk, sizeof pk, "p%ld", n % 100);
    tesela_key key = tesela_key_string(pk);
    must(tesela_item_create(k, make_item(n), &key, NULL, NULL, &error));
}

/* All rows of an ORDER BY over all ranges; returns their number. */
static long order_all(tesela_container *k) {
    tesela_cursor *cursor;
    const char *row;
    long n = 0;
    tesela_query_options options = {.parallelism = -1};
    must(tesela_query(k, "SELECT VALUE c.n FROM c ORDER BY c.n", NULL, &options, &cursor, &error));
    while (tesela_cursor_next(cursor, &row, NULL, &error) == TESELA_OK) {
        n++;
    }
    tesela_cursor_close(cursor);
    return n;
}

/* ---- many calls at a time ---- */

static struct {
    tesela_container *container;
    void (*call)(tesela_container *k, long n);
    double end;
    atomic_long next, done;
} shared;

static void *call_on(void *unused) {
    while (seconds_of(CLOCK_MONOTONIC) < shared.end) {
        shared.call(shared.container, atomic_fetch_add(&shared.next, 1));
        atomic_fetch_add(&shared.done, 1);
    }
    return unused;
}

static long call_many(tesela_container *k, void (*call)(tesela_container *k, long n), double seconds, long next) {
    pthread_t threads[CALLS];
    shared.container = k;
    shared.call = call;
    shared.done = 0;
    shared.end = seconds_of(CLOCK_MONOTONIC) + seconds;
    shared.next = next;
    for (int i = 0; i < CALLS; i++) {
        if (pthread_create(&threads[i], NULL, call_on, NULL) != 0) {
            perror("client_load");
            exit(1);
        }
    }
    for (int i = 0; i < CALLS; i++) {
        pthread_join(threads[i], NULL);
    }
    return shared.done;
}

static long run(tesela_container *k, const char *mode, double seconds, long next) {
    long done = 0;
    tesela_bulk *bulk;
    tesela_bulk_options options = {.no_body = true};
    must(tesela_bulk_open(k, &options, &bulk, &error));
    for (double end = seconds_of(CLOCK_MONOTONIC) + seconds; seconds_of(CLOCK_MONOTONIC) < end;) {
        if (strcmp(mode, "bulk") == 0) {
            tesela_bulk_operation create = {.kind = TESELA_BULK_CREATE, .body = make_item(next++)};
            must(tesela_bulk_add(bulk, &create, &error));
            done++;
        } else {
            done += order_all(k);
        }
    }
    must(tesela_bulk_finish(bulk, &error));
    tesela_bulk_close(bulk);
    return done;
}

static long work(tesela_container *k, const char *mode, double seconds, long next) {
    if (strcmp(mode, "read") == 0) {
        return call_many(k, read_one, seconds, next);
    }
    return strcmp(mode, "create") == 0 ? call_many(k, create_one, seconds, next) : run(k, mode, seconds, next);
}

int main(int argc, char **argv) {
    tesela_client *client;
    tesela_container *k;
    if (argc != 5) {
        fprintf(stderr, "usage: client_load URL read|create|bulk|order SECONDS FIRST\n");
        return 2;
    }
    tesela_client_options options = {.endpoint = argv[1], .key = KEY};
    tesela_throughput throughput = {.manual = 1000000};
    must(tesela_client_open(&options, &client, &error));
    (void)tesela_database_create(client, "bench", NULL, NULL, NULL);
    (void)tesela_container_create(client, "bench",
                                  "{\"id\":\"client\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}", &throughput,
                                  NULL, NULL);
    must(tesela_container_open(client, "bench", "client", &k, &error));
    for (long n = 0; n < ITEMS; n++) {
        must(tesela_item_upsert(k, make_item(n), NULL, NULL, NULL, &error));
    }
    double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID), begun = seconds_of(CLOCK_MONOTONIC);
    long done = work(k, argv[2], atof(argv[3]), atol(argv[4]));
    cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("{\"requests\":%ld,\"rate\":%.1f,\"perSecond\":%.1f}\n", done, (double)done / cpu,
           (double)done / (seconds_of(CLOCK_MONOTONIC) - begun));
    tesela_container_close(k);
    tesela_client_close(client);
    return 0;
}
