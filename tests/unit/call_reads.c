/* Point reads and writes on a slow disk, by many connections: those that miss memory are done side by side, and do not delay those that hit
 * it.
 *
 * The times are of the clock. On a busy machine the processors may take longer than the disk, so a check that fails is made again with a
 * disk that is twice as slow: requests that wait for the disk become slower with it, the others do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "call_harness.h"

enum { DISK_MS = 20, DISK_MS_MAX = 320, CLIENTS = 32, FEW = 8, DISKS_PER_PHASE = 30, CACHED_REQUESTS = 200 };

static atomic_bool stop;

typedef struct misser misser;
struct misser {
    const world *w;
    void (*request)(misser *m, client *c);
    pthread_t thread;
    unsigned number, requests;
};

/* Reads an item that does not exist: nothing caches that, so each read waits for the disk. */
static void read_missing(misser *m, client *c) {
    (void)m;
    EXPECT(c, "E_NOT_FOUND", "{\"do\":\"read\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"none\"}}");
}

/* Every key is a new one. */
static void create_missing(misser *m, client *c) {
    EXPECT(c, "OK", "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":%d,\"item\":{\"id\":\"%u\",\"pk\":\"new %u\"}}]}", ITEM_CREATE,
           m->requests, m->number);
}

static void *miss(void *context) {
    misser *m = context;
    client c = client_open(m->w);
    while (!atomic_load(&stop)) {
        m->request(m, &c);
        m->requests++;
    }
    leave(&c);
    return NULL;
}

static void start_missing(const world *w, void (*request)(misser *, client *), misser *missers, size_t n) {
    static unsigned number;
    atomic_store(&stop, false);
    for (size_t i = 0; i < n; i++) {
        missers[i] = (misser){.w = w, .request = request, .number = number++};
        assert_int_equal(pthread_create(&missers[i].thread, NULL, miss, &missers[i]), 0);
    }
}

static unsigned stop_missing(misser *missers, size_t n) {
    unsigned requests = 0;
    atomic_store(&stop, true);
    for (size_t i = 0; i < n; i++) {
        pthread_join(missers[i].thread, NULL);
        requests += missers[i].requests;
    }
    return requests;
}

static unsigned misses_of(const world *w, void (*request)(misser *, client *), size_t connections) {
    misser missers[CLIENTS];
    start_missing(w, request, missers, connections);
    usleep(DISKS_PER_PHASE * w->h.plan.disk_ms * 1000);
    return stop_missing(missers, connections);
}

static void open_slow(world *w, client *c, unsigned disk_ms) {
    world_open(w, false, false);
    *c = client_open(w);
    fill(c);
    EXPECT(c, "OK", "{\"do\":\"read\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"i01\"}}"); /* now it is cached */
    w->h.plan.disk_ms = disk_ms;
}

static bool are_side_by_side(const char *what, void (*request)(misser *, client *), bool disk_cached, unsigned disk_ms) {
    world w;
    client c;
    open_slow(&w, &c, disk_ms);
    w.h.plan.disk_cached = disk_cached;
    unsigned one = misses_of(&w, request, 1), all = misses_of(&w, request, CLIENTS);
    print_message("%u ms disk, %u ms: %u %s by one connection, %u by %d\n", disk_ms, DISKS_PER_PHASE * disk_ms, one, what, all, CLIENTS);
    w.h.plan.disk_ms = 0;
    leave(&c);
    world_close(&w);
    return one > 0 && all >= 10 * one;
}

static void check_side_by_side(const char *what, void (*request)(misser *, client *), bool disk_cached) {
    unsigned disk_ms = DISK_MS;
    while (!are_side_by_side(what, request, disk_cached, disk_ms)) {
        disk_ms *= 2;
        assert_true(disk_ms <= DISK_MS_MAX);
    }
}

static void misses_are_read_side_by_side(void **state) {
    (void)state;
    check_side_by_side("reads", read_missing, false);
}

static void misses_are_written_side_by_side(void **state) {
    (void)state;
    check_side_by_side("writes", create_missing, true);
}

static void read_cached(client *c) {
    EXPECT(c, "OK", "{\"do\":\"read\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"i01\"}}");
}

/* After the first time its keys are in memory. */
static void write_cached(client *c) {
    EXPECT(c, "OK", "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":%d,\"item\":{\"id\":\"i02\",\"pk\":\"p2\"}}]}", ITEM_UPSERT);
}

static int64_t time_cached(client *c, void (*request)(client *)) {
    int64_t begun = now_ms();
    for (int i = 0; i < CACHED_REQUESTS; i++) {
        request(c);
    }
    return now_ms() - begun;
}

/* If a loop or the committer waited for the disk, nearly every request would take as long as the disk. */
static bool are_undelayed(const char *what, void (*cached)(client *), void (*missing)(misser *, client *), size_t missing_n,
                          bool disk_cached, unsigned disk_ms) {
    world w;
    client c;
    misser missers[CLIENTS];
    open_slow(&w, &c, disk_ms);
    w.h.plan.disk_cached = disk_cached;
    cached(&c);
    int64_t alone = time_cached(&c, cached);
    start_missing(&w, missing, missers, missing_n);
    usleep(5 * disk_ms * 1000);
    int64_t beside = time_cached(&c, cached);
    stop_missing(missers, missing_n);
    print_message("%d cached %s: %ld ms alone, %ld ms beside %zu connections that miss\n", CACHED_REQUESTS, what, (long)alone, (long)beside,
                  missing_n);
    w.h.plan.disk_ms = 0;
    leave(&c);
    world_close(&w);
    return beside < CACHED_REQUESTS * disk_ms / 4;
}

static void check_cached(const char *what, void (*cached)(client *), void (*missing)(misser *, client *), size_t missing_n,
                         bool disk_cached) {
    unsigned disk_ms = DISK_MS;
    while (!are_undelayed(what, cached, missing, missing_n, disk_cached, disk_ms)) {
        disk_ms *= 2;
        assert_true(disk_ms <= DISK_MS_MAX);
    }
}

static void cached_reads_do_not_wait_for_the_disk(void **state) {
    (void)state;
    check_cached("reads", read_cached, read_missing, CLIENTS, false);
}

static void cached_writes_do_not_wait_for_the_disk(void **state) {
    (void)state;
    check_cached("writes", write_cached, create_missing, FEW, true); /* each keeps the processors busy too */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misses_are_read_side_by_side),
        cmocka_unit_test(misses_are_written_side_by_side),
        cmocka_unit_test(cached_reads_do_not_wait_for_the_disk),
        cmocka_unit_test(cached_writes_do_not_wait_for_the_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
