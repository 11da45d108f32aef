/* terms_cost.c — what index entries cost in the store (design: docs/layout.md, "How index entries are written").
 *
 * Writes items of 35 entries each, as item/layout.h lays them out, and nothing else; then looks entries up. Processor time: of the writing
 * thread while it writes, and of the whole process until the last write returns, per entry; of the reading thread, per lookup.
 *
 *   terms_cost --dir DIR [--items 100000] [--group 32] [--tail BYTES] [--sync] */
#include <endian.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/random.h"
#include "store/store.h"

enum { TERMS = 35, KEY_BYTES = 64, LOOKUPS = 100000, CACHE_BYTES = 256 << 20 };

typedef struct settings {
    const char *dir;
    uint64_t items, group;
    size_t tail;
    bool sync;
} settings;

static random_source source;

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t add_be64(char *p, uint64_t value) {
    value = htobe64(value);
    memcpy(p, &value, sizeof value);
    return sizeof value;
}

/* 'g' · segment · generation · path · type · value · number. Some paths have few values, some many, some grow with the items. */
static slice make_key(char k[KEY_BYTES], unsigned term, uint64_t value, uint64_t number) {
    static const char begins[] = {'g', 0, 0, 0, 1, 1};
    size_t n = sizeof begins;
    memcpy(k, begins, n);
    n += add_be64(k + n, (term + 1) * 0x9E3779B97F4A7C15u);
    k[n++] = 5;
    n += add_be64(k + n, value);
    if (term % 3 == 0) {
        n += add_be64(k + n, value * 0x9E3779B97F4A7C15u);
    }
    n += add_be64(k + n, number);
    return slice_of(k, n);
}

static uint64_t value_of(unsigned term, uint64_t item) {
    return term < 5 ? random_below(&source, 5) : term < 12 ? random_below(&source, 1000) : term < 20 ? item : random_u64(&source);
}

static long memory_mb(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

static void write_items(const settings *set, store *s) {
    store_batch batch;
    char key[KEY_BYTES];
    double writer = 0, all = seconds(CLOCK_PROCESS_CPUTIME_ID), longest = 0;
    store_batch_init(&batch);
    for (uint64_t item = 0; item < set->items;) {
        store_batch_clear(&batch);
        for (uint64_t end = item + set->group; item < end; item++) {
            for (unsigned term = 0; term < TERMS; term++) {
                store_put(&batch, STORE_TERMS, make_key(key, term, value_of(term, item), item), SLICE_EMPTY);
            }
        }
        double cpu = seconds(CLOCK_THREAD_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
        if (store_write(s, &batch) != OK) {
            exit(1);
        }
        writer += seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
        wall = seconds(CLOCK_MONOTONIC) - wall;
        longest = wall > longest ? wall : longest;
    }
    all = seconds(CLOCK_PROCESS_CPUTIME_ID) - all;
    double terms = (double)set->items * TERMS;
    printf("write: writer %.0f ns, all threads %.0f ns an entry; longest write %.1f ms; most memory %ld MB\n", writer / terms * 1e9,
           all / terms * 1e9, longest * 1e3, memory_mb());
    store_batch_free(&batch);
}

static void look_up(const settings *set, store *s, const char *when) {
    char key[KEY_BYTES], end[KEY_BYTES];
    slice found, value;
    uint64_t rows = 0;
    double cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < LOOKUPS; i++) {
        uint64_t item = random_below(&source, set->items);
        slice from = make_key(key, 15, item, 0), to = make_key(end, 15, item, UINT64_MAX);
        const store_snapshot *at = store_snapshot_take(s);
        store_scan *scan = store_scan_open(s, STORE_TERMS, at, from, to, false);
        while (store_scan_next(scan, &found, &value)) {
            rows++;
        }
        if (store_scan_close(scan) != OK) {
            exit(1);
        }
        store_snapshot_give(s, at);
    }
    cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    printf("%s: %.2f us a lookup of one row (%.2f found)", when, cpu / LOOKUPS * 1e6, (double)rows / LOOKUPS);
    cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    rows = 0;
    store_scan *scan = store_scan_open(s, STORE_TERMS, NULL, SLICE_EMPTY, SLICE_EMPTY, false);
    while (store_scan_next(scan, &found, &value)) {
        rows++;
    }
    (void)!store_scan_close(scan);
    cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    printf(", %.0f ns a row of a scan of all %lu\n", cpu / (double)rows * 1e9, (unsigned long)rows);
}

static bool read_flags(int argc, char **argv, settings *set) {
    static const struct option flags[] = {{"dir", 1, NULL, 'd'},  {"items", 1, NULL, 'i'}, {"group", 1, NULL, 'g'},
                                          {"tail", 1, NULL, 't'}, {"sync", 0, NULL, 's'},  {0}};
    for (int c; (c = getopt_long(argc, argv, "", flags, NULL)) != -1;) {
        switch (c) {
        case 'd':
            set->dir = optarg;
            break;
        case 'i':
            set->items = strtoull(optarg, NULL, 10);
            break;
        case 'g':
            set->group = strtoull(optarg, NULL, 10);
            break;
        case 't':
            set->tail = strtoull(optarg, NULL, 10);
            break;
        case 's':
            set->sync = true;
            break;
        default:
            return false;
        }
    }
    return set->dir && set->group;
}

int main(int argc, char **argv) {
    settings set = {.items = 100000, .group = 32};
    char why[512] = "";
    store *s;
    if (!read_flags(argc, argv, &set)) {
        fprintf(stderr, "usage: terms_cost --dir DIR [--items N] [--group N] [--tail BYTES] [--sync]\n");
        return 2;
    }
    store_options options = {.dir = set.dir, .sync = set.sync, .cache_bytes = CACHE_BYTES, .tail_bytes = set.tail};
    random_seed(&source, 1);
    if (store_open_rocks(&options, &s, why, sizeof why) != OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    write_items(&set, s);
    look_up(&set, s, "at once");
    struct timespec settled = {.tv_sec = 5};
    nanosleep(&settled, NULL);
    look_up(&set, s, "after 5 s");
    printf("%.0f bytes an entry\n", (double)store_bytes(s, STORE_TERMS, SLICE_LIT("a"), SLICE_LIT("z")) / ((double)set.items * TERMS));
    store_close(s);
    return 0;
}
