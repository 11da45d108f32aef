/* Point reads on a slow disk, by many connections: reads that miss memory are done side by side, and do not delay reads that hit it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "call_harness.h"

enum { DISK_MS = 20, CLIENTS = 32, PHASE_MS = 600, CACHED_READS = 200 };

static atomic_bool stop;

typedef struct misser {
    const world *w;
    pthread_t thread;
    unsigned reads;
} misser;

/* Reads an item that does not exist: nothing caches that, so each read waits for the disk. */
static void *miss(void *context) {
    misser *m = context;
    client c = client_open(m->w);
    while (!atomic_load(&stop)) {
        EXPECT(&c, "E_NOT_FOUND", "{\"do\":\"read\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"none\"}}");
        m->reads++;
    }
    leave(&c);
    return NULL;
}

static void start_missing(const world *w, misser *missers, size_t n) {
    atomic_store(&stop, false);
    for (size_t i = 0; i < n; i++) {
        missers[i] = (misser){.w = w};
        assert_int_equal(pthread_create(&missers[i].thread, NULL, miss, &missers[i]), 0);
    }
}

static unsigned stop_missing(misser *missers, size_t n) {
    unsigned reads = 0;
    atomic_store(&stop, true);
    for (size_t i = 0; i < n; i++) {
        pthread_join(missers[i].thread, NULL);
        reads += missers[i].reads;
    }
    return reads;
}

static unsigned misses_of(const world *w, size_t connections) {
    misser missers[CLIENTS];
    start_missing(w, missers, connections);
    usleep(PHASE_MS * 1000);
    return stop_missing(missers, connections);
}

static void open_slow(world *w, client *c) {
    world_open(w, false, false);
    *c = client_open(w);
    fill(c);
    EXPECT(c, "OK", "{\"do\":\"read\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"i01\"}}"); /* now it is cached */
    w->h.plan.disk_ms = DISK_MS;
}

static void misses_are_read_side_by_side(void **state) {
    world w;
    client c;
    (void)state;
    open_slow(&w, &c);
    unsigned one = misses_of(&w, 1), all = misses_of(&w, CLIENTS);
    print_message("%d ms disk, %d ms: %u reads by one connection, %u by %d\n", DISK_MS, PHASE_MS, one, all, CLIENTS);
    assert_true(one > 0 && all >= 10 * one);
    w.h.plan.disk_ms = 0;
    leave(&c);
    world_close(&w);
}

static int64_t time_cached_reads(client *c) {
    int64_t begun = now_ms();
    for (int i = 0; i < CACHED_READS; i++) {
        EXPECT(c, "OK", "{\"do\":\"read\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"i01\"}}");
    }
    return now_ms() - begun;
}

/* If a loop waited for the disk, nearly every read would take as long as the disk. */
static void cached_reads_do_not_wait_for_the_disk(void **state) {
    world w;
    client c;
    misser missers[CLIENTS];
    (void)state;
    open_slow(&w, &c);
    int64_t alone = time_cached_reads(&c);
    start_missing(&w, missers, CLIENTS);
    usleep(5 * DISK_MS * 1000);
    int64_t beside = time_cached_reads(&c);
    stop_missing(missers, CLIENTS);
    print_message("%d cached reads: %ld ms alone, %ld ms beside %d connections that miss\n", CACHED_READS, (long)alone, (long)beside,
                  CLIENTS);
    assert_true(beside < CACHED_READS * DISK_MS / 4);
    w.h.plan.disk_ms = 0;
    leave(&c);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misses_are_read_side_by_side),
        cmocka_unit_test(cached_reads_do_not_wait_for_the_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
