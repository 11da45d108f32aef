/* rocks_writers.c — RocksDB alone: writers that each put one batch, synced, and then the next. What a create can cost at best.
 *
 * `--bytes` is what a batch of the server's adds to the log for one item; here it is an item under its number and the small keys that
 * lead to it, of the same size together. RocksDB gathers the waiting writers into one sync by itself. One line of JSON. */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "histogram.h"

enum { WRITERS_MAX = 1024, SMALL_KEY_BYTES = 96 };

typedef struct writer {
    pthread_t thread;
    histogram latencies;
} writer;

static rocksdb_t *db;
static atomic_uint_fast64_t next_number;
static uint64_t counting_from, end;
static size_t batch_bytes = 1400;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void check(char *error) {
    if (error == NULL) {
        return;
    }
    fprintf(stderr, "rocks_writers: %s\n", error);
    exit(1);
}

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void put_be(char *p, uint64_t v) {
    for (int i = 7; i >= 0; i--, v >>= 8) {
        p[i] = (char)(v & 0xff);
    }
}

static void put_item(rocksdb_writebatch_t *batch, uint64_t number, char *value) {
    char key[12] = {0}, small[SMALL_KEY_BYTES], big_endian[8];
    put_be(key + 4, number);
    put_be(big_endian, number);
    for (size_t i = 0; i < sizeof small; i += 8) {
        put_be(small + i, mix(number + i + 1));
    }
    size_t value_bytes = batch_bytes - sizeof key - sizeof small - sizeof big_endian;
    for (size_t i = 0; i + 8 <= value_bytes; i += 64) {
        put_be(value + i, mix(number * 64 + i));
    }
    rocksdb_writebatch_put(batch, key, sizeof key, value, value_bytes);
    rocksdb_writebatch_put(batch, small, sizeof small, big_endian, sizeof big_endian);
}

static void *run(void *p) {
    writer *w = p;
    rocksdb_writeoptions_t *synced = rocksdb_writeoptions_create();
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    char *value = calloc(1, batch_bytes);
    rocksdb_writeoptions_set_sync(synced, 1);
    for (uint64_t start = now_ns(); start < end; start = now_ns()) {
        char *error = NULL;
        put_item(batch, atomic_fetch_add(&next_number, 1), value);
        rocksdb_write(db, synced, batch, &error);
        check(error);
        rocksdb_writebatch_clear(batch);
        if (start >= counting_from) {
            histogram_add(&w->latencies, now_ns() - start);
        }
    }
    free(value);
    rocksdb_writebatch_destroy(batch);
    rocksdb_writeoptions_destroy(synced);
    return NULL;
}

static double cpu_micros(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int main(int argc, char **argv) {
    static const struct option flags[] = {{"dir", 1, 0, 'd'},     {"writers", 1, 0, 'w'}, {"bytes", 1, 0, 'b'},
                                          {"seconds", 1, 0, 's'}, {"warm-up", 1, 0, 'u'}, {0}};
    static writer writers[WRITERS_MAX];
    static histogram total;
    const char *dir = NULL;
    int count = 32;
    double seconds = 5, warm_up = 1;
    for (int c; (c = getopt_long(argc, argv, "", flags, NULL)) != -1;) {
        if (c == 'd') {
            dir = optarg;
        } else if (c == 'w') {
            count = atoi(optarg);
        } else if (c == 'b') {
            batch_bytes = strtoul(optarg, NULL, 10);
        } else if (c == 's') {
            seconds = atof(optarg);
        } else if (c == 'u') {
            warm_up = atof(optarg);
        } else {
            return 2;
        }
    }
    if (dir == NULL || count < 1 || count > WRITERS_MAX || batch_bytes < 256) {
        fprintf(stderr, "rocks_writers --dir FOLDER [--writers 32] [--bytes 1400] [--seconds 5] [--warm-up 1]\n");
        return 2;
    }
    char *error = NULL;
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    db = rocksdb_open(options, dir, &error);
    check(error);
    counting_from = now_ns() + (uint64_t)(warm_up * 1e9);
    end = counting_from + (uint64_t)(seconds * 1e9);
    for (int i = 0; i < count; i++) {
        pthread_create(&writers[i].thread, NULL, run, &writers[i]);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(writers[i].thread, NULL);
        histogram_merge(&total, &writers[i].latencies);
    }
    printf("{\"writers\":%d,\"bytes\":%zu,\"rate\":%.0f,\"serverCpuMicros\":%.2f,\"microseconds\":{\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,"
           "\"max\":%.1f}}\n",
           count, batch_bytes, (double)total.total / seconds, cpu_micros() / (double)atomic_load(&next_number),
           (double)histogram_at(&total, 0.5) / 1e3, (double)histogram_at(&total, 0.9) / 1e3, (double)histogram_at(&total, 0.99) / 1e3,
           (double)total.max / 1e3);
    rocksdb_close(db);
    return 0;
}
