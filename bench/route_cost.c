/* route_cost.c — from a partition key to the range that owns it: hashing, and finding among 1, 100 and 10,000 ranges; nanoseconds each.
 *
 *     route_cost [keys]      default 2,000,000 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/random.h"
#include "partition/map.h"

enum { KEYS = 4096 };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static pkey_definition definition = {.kind = PKEY_HASH, .version = 2, .n = 1};
static char texts[KEYS][40];
static pkey keys[KEYS];
static epk epks[KEYS];
static volatile uint64_t sink;

static double hashing(size_t n) {
    double begun = now_ns();
    for (size_t i = 0; i < n; i++) {
        epk_of(&definition, &keys[i % KEYS], &epks[i % KEYS]);
    }
    return (now_ns() - begun) / (double)n;
}

static double finding(uint32_t ranges, size_t n) {
    partition_map *map = partition_map_new(&definition, ranges);
    double begun = now_ns();
    for (size_t i = 0; i < n; i++) {
        sink += partition_map_find(map, &epks[i % KEYS])->id;
    }
    double each = (now_ns() - begun) / (double)n;
    partition_map_free(map);
    return each;
}

int main(int argc, char **argv) {
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000000;
    random_source r;
    random_seed(&r, 1);
    for (size_t i = 0; i < KEYS; i++) {
        int length = snprintf(texts[i], sizeof texts[i], "device-%016lx", (unsigned long)random_u64(&r));
        keys[i] = (pkey){.n = 1, .values = {{.type = PKEY_STRING, .text = slice_of(texts[i], (size_t)length)}}};
    }
    hashing(KEYS);
    printf("{\"hash\":%.1f,\"find1\":%.1f,\"find100\":%.1f,\"find10000\":%.1f}\n", hashing(n), finding(1, n), finding(100, n),
           finding(10000, n));
    return 0;
}
