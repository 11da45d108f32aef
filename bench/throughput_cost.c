/* What admission, charging and counting add to a request: nanoseconds each, alone and with two threads on the same range.
 *
 *     throughput_cost [operations]      default 5,000,000 of each kind */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/random.h"
#include "throughput/bucket.h"
#include "throughput/hotkeys.h"
#include "throughput/meter.h"

enum { KEYS = 1000000, DRAWN = 1 << 20 };

typedef struct range {
    bucket *bucket;
    hotkeys *hotkeys;
    meter meter;
    const uint32_t *keys; /* DRAWN of them */
    uint64_t operations;
} range;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static size_t text_of(const void *key, char *into, size_t max) {
    return (size_t)snprintf(into, max, "[\"key-%u\"]", *(const uint32_t *)key);
}

static void *admit_and_charge(void *p) {
    range *r = p;
    int64_t now = now_ns();
    for (uint64_t i = 0; i < r->operations; i++) {
        if (bucket_admit(r->bucket, (bucket_class){0}, now) == 0) {
            bucket_charge(r->bucket, (bucket_class){0}, 1, now);
        }
        now += 5000;
    }
    return NULL;
}

static void *refuse(void *p) {
    range *r = p;
    int64_t now = now_ns();
    for (uint64_t i = 0; i < r->operations; i++) {
        bucket_admit(r->bucket, (bucket_class){0}, now);
    }
    return NULL;
}

static void *add_to_meter(void *p) {
    range *r = p;
    for (uint64_t i = 0; i < r->operations; i++) {
        meter_add(&r->meter, METER_READ, 1, (uint32_t)(i & 1023), false, false);
    }
    return NULL;
}

/* At 200,000 requests a second, as the clock it is given has it. */
static void *count_keys(void *p) {
    range *r = p;
    int64_t now = now_ns();
    for (uint64_t i = 0; i < r->operations; i++) {
        uint32_t key = r->keys[i % DRAWN];
        hotkeys_spent(r->hotkeys, (key + 1) * 0x9e3779b97f4a7c15u, 1, now, text_of, &key);
        now += 5000;
    }
    return NULL;
}

/* The worst case: so slow a clock that no request is left out. */
static void *count_every_key(void *p) {
    range *r = p;
    int64_t now = now_ns();
    for (uint64_t i = 0; i < r->operations; i++) {
        uint32_t key = r->keys[i % DRAWN];
        hotkeys_spent(r->hotkeys, (key + 1) * 0x9e3779b97f4a7c15u, 1, now, text_of, &key);
        now += 2000000;
    }
    return NULL;
}

static void *note_sizes(void *p) {
    range *r = p;
    for (uint64_t i = 0; i < r->operations; i++) {
        uint32_t key = r->keys[i % DRAWN];
        hotkeys_size(r->hotkeys, (key + 1) * 0x9e3779b97f4a7c15u, i / 1000 + 1, text_of, &key);
    }
    return NULL;
}

static void measure(const char *name, void *(*work)(void *), range *r) {
    printf("%-44s", name);
    for (unsigned threads = 1; threads <= 2; threads++) {
        pthread_t ids[2];
        int64_t start = now_ns();
        for (unsigned i = 0; i < threads; i++) {
            pthread_create(&ids[i], NULL, work, r);
        }
        for (unsigned i = 0; i < threads; i++) {
            pthread_join(ids[i], NULL);
        }
        printf("  %8.1f ns", (double)(now_ns() - start) / (double)r->operations);
    }
    printf("\n");
}

static uint32_t *draw_keys(bool zipf) {
    uint32_t *keys = malloc(DRAWN * sizeof *keys);
    random_source random;
    random_seed(&random, 1);
    for (unsigned i = 0; i < DRAWN; i++) {
        double x = (double)(random_u64(&random) >> 11) * 0x1p-53;
        keys[i] = (uint32_t)(zipf ? pow(KEYS, x) - 1 : x * KEYS); /* density 1/key: Zipf(1.0), near enough */
    }
    return keys;
}

static range make_range(uint64_t operations, double rate, const uint32_t *keys) {
    range r = {.bucket = bucket_new(rate, false, now_ns()), .hotkeys = hotkeys_new(), .keys = keys, .operations = operations};
    meter_init(&r.meter);
    return r;
}

static void free_range(range *r) {
    bucket_give(r->bucket);
    hotkeys_free(r->hotkeys);
    meter_free(&r->meter);
}

static void measure_keys(const char *name, void *(*work)(void *), uint64_t operations, const uint32_t *keys) {
    range r = make_range(operations, 1, keys);
    measure(name, work, &r);
    free_range(&r);
}

int main(int argc, char **argv) {
    uint64_t operations = argc > 1 ? strtoull(argv[1], NULL, 10) : 5000000;
    uint32_t *uniform = draw_keys(false), *zipf = draw_keys(true);
    printf("%-44s  %11s  %11s\n", "each operation, on one range", "1 thread", "2 threads");
    range r = make_range(operations, 1e9, uniform);
    measure("bucket: admit and charge", admit_and_charge, &r);
    measure("meter: add", add_to_meter, &r);
    free_range(&r);
    r = make_range(operations, 1, uniform);
    bucket_charge(r.bucket, (bucket_class){0}, 1e6, now_ns());
    measure("bucket: refuse", refuse, &r);
    free_range(&r);
    measure_keys("hot keys: 200,000/s, uniform, 1M keys", count_keys, operations, uniform);
    measure_keys("hot keys: 200,000/s, Zipf, 1M keys", count_keys, operations, zipf);
    measure_keys("hot keys: every request, uniform", count_every_key, operations, uniform);
    measure_keys("hot keys: every request, Zipf", count_every_key, operations, zipf);
    measure_keys("hot keys: size, uniform", note_sizes, operations, uniform);
    free(uniform);
    free(zipf);
    return 0;
}
