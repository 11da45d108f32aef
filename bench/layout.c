/* layout.c — by key or by number: two ways to lay items out in RocksDB, measured (design: docs/layout.md).
 *
 *   by key      items   [container u32][EPK 16][pk]0[id]0      → the item
 *               small   [segment u32][number u64]              → that key        (the side list: creation order, index hits)
 *   by number   items   [segment u32][number u64]              → the item
 *               small   [container u32][EPK 16][pk]0[id]0      → number u64      (the primary index)
 *
 * One run loads one layout into an empty folder and prints one line of JSON. The RocksDB options are flags, because the question
 * "what does the second lookup cost" has no answer without them. Numbers are big-endian, so byte order is number order.
 *
 *   layout --dir /tmp/x --layout number --items 1000000 --per-partition 1000 --block 8192 --hash-index */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <rocksdb/c.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { VALUE_BYTES = 1024, KEY_BYTES_MAX = 128, BATCH = 32, NUMBER_KEY_BYTES = 12, WANTED = 1000, CACHE_SLOTS = 1 << 22 };
enum family { FAMILY_DEFAULT, FAMILY_ITEMS, FAMILY_SMALL, FAMILIES };

typedef struct settings {
    const char *dir;
    bool by_number, compress, mmap, hash_index, compact, statistics, filters_for_hits, points_only;
    uint64_t items, per_partition;
    size_t block_bytes, small_block_bytes, cache_bytes, row_cache_bytes;
    int bloom_bits, restart;
} settings;

static settings set = {.by_number = true,
                       .items = 10000,
                       .per_partition = 1,
                       .block_bytes = 4096,
                       .small_block_bytes = 4096,
                       .cache_bytes = (size_t)2 << 30,
                       .bloom_bits = 10,
                       .restart = 16};

static rocksdb_t *db;
static rocksdb_options_t *db_options;
static rocksdb_column_family_handle_t *families[FAMILIES];
static rocksdb_readoptions_t *reading;
static rocksdb_cache_t *cache;

typedef struct key {
    size_t n;
    char bytes[KEY_BYTES_MAX];
} key;

/* What a server could keep in memory in front of the gets: a table by key hash that gives the number (a hit is checked against the
 * item's own key, which the read fetches anyway), or the item itself. */
enum way { WAY_STORE, WAY_NUMBER_CACHE, WAY_ITEM_CACHE, WAYS };

typedef struct cached_item {
    key key;
    char value[VALUE_BYTES];
} cached_item;

typedef struct slot {
    uint64_t hash, number;
    cached_item *item;
} slot;

static slot *slots;

/* ---- small things ---- */

static double clock_seconds(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now(void) {
    return clock_seconds(CLOCK_MONOTONIC);
}

/* Reads are from memory and count by the thread's own time, so that a busy neighbour does not show as a slow layout. */
static double cpu_now(void) {
    return clock_seconds(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t random_next(uint64_t *state) {
    return mix((*state)++);
}

static void check(char *error) {
    if (error == NULL) {
        return;
    }
    fprintf(stderr, "layout: %s\n", error);
    exit(1);
}

static void put_be(char *p, uint64_t v, int bytes) {
    for (int i = bytes - 1; i >= 0; i--, v >>= 8) {
        p[i] = (char)(v & 0xff);
    }
}

/* ---- keys and values, all a function of the item's number ---- */

static uint64_t partition_of(uint64_t number) {
    uint64_t partitions = set.items / set.per_partition;
    return number % (partitions ? partitions : 1);
}

static size_t guid(char *out, uint64_t number) {
    uint64_t a = mix(number ^ 0xabcdef), b = mix(a);
    return (size_t)snprintf(out, 40, "%08x-%04x-%04x-%04x-%012" PRIx64, (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xffff),
                            (unsigned)(a & 0xffff), (unsigned)(b >> 48), b & 0xffffffffffff);
}

static size_t partition_prefix(char *out, uint64_t partition) {
    put_be(out, 7, 4);
    put_be(out + 4, mix(partition) >> 2, 8);
    put_be(out + 12, mix(partition ^ 0x5555), 8);
    size_t n = set.per_partition == 1 ? guid(out + 20, partition) : (size_t)snprintf(out + 20, 40, "device-%08" PRIu64, partition);
    return 20 + n + 1;
}

static void item_key(key *k, uint64_t number) {
    k->n = partition_prefix(k->bytes, partition_of(number));
    k->n += guid(k->bytes + k->n, number) + 1;
}

static void number_key(key *k, uint64_t number) {
    put_be(k->bytes, 3, 4);
    put_be(k->bytes + 4, number, 8);
    k->n = NUMBER_KEY_BYTES;
}

/* Half random bytes and half words, so that LZ4 has about the work that JSON gives it. */
static void item_value(char *out, uint64_t number) {
    static const char words[] = "\"temperature\":21.5,\"humidity\":40,\"name\":\"device\",\"ok\":true,     ";
    for (size_t i = 0; i < VALUE_BYTES; i += 64) {
        if (i / 64 % 2) {
            memcpy(out + i, words, 64);
        } else {
            for (size_t j = 0; j < 64; j += 8) {
                put_be(out + i + j, mix(number * 1024 + i + j), 8);
            }
        }
    }
}

static uint64_t hash_of(const key *k) {
    uint64_t h = k->n, word;
    for (size_t i = 0; i + 8 <= k->n; i += 8) {
        memcpy(&word, k->bytes + i, 8);
        h = mix(h ^ word);
    }
    return h;
}

/* ---- the database ---- */

static rocksdb_options_t *family_options(size_t block_bytes, bool small) {
    rocksdb_options_t *o = rocksdb_options_create();
    rocksdb_block_based_table_options_t *t = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(t, cache);
    rocksdb_block_based_options_set_block_size(t, block_bytes);
    rocksdb_block_based_options_set_format_version(t, 5);
    if (!small) {
        rocksdb_block_based_options_set_block_restart_interval(t, set.restart);
    }
    if (set.bloom_bits > 0) {
        rocksdb_block_based_options_set_filter_policy(t, rocksdb_filterpolicy_create_bloom_full(set.bloom_bits));
    }
    if (set.hash_index && (small || !set.by_number)) {
        rocksdb_block_based_options_set_data_block_index_type(t, rocksdb_block_based_table_data_block_index_type_binary_search_and_hash);
        rocksdb_block_based_options_set_data_block_hash_ratio(t, 0.75);
    }
    rocksdb_options_set_block_based_table_factory(o, t);
    rocksdb_options_set_compression(o, set.compress ? rocksdb_lz4_compression : rocksdb_no_compression);
    rocksdb_options_set_write_buffer_size(o, (size_t)64 << 20);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(o, 1);
    rocksdb_options_set_optimize_filters_for_hits(o, set.filters_for_hits);
    if (set.row_cache_bytes && !small) {
        rocksdb_options_set_row_cache(o, rocksdb_cache_create_lru(set.row_cache_bytes));
    }
    return o;
}

static void open_db(void) {
    static const char *names[FAMILIES] = {"default", "items", "small"};
    char *error = NULL;
    cache = rocksdb_cache_create_lru(set.cache_bytes);
    db_options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(db_options, 1);
    rocksdb_options_set_create_missing_column_families(db_options, 1);
    rocksdb_options_set_error_if_exists(db_options, 1);
    rocksdb_options_set_max_open_files(db_options, -1);
    rocksdb_options_set_allow_mmap_reads(db_options, set.mmap);
    rocksdb_options_set_max_background_jobs(db_options, 2);
    if (set.statistics) {
        rocksdb_options_enable_statistics(db_options);
    }
    const rocksdb_options_t *options[FAMILIES] = {family_options(4096, true), family_options(set.block_bytes, false),
                                                  family_options(set.small_block_bytes, true)};
    db = rocksdb_open_column_families(db_options, set.dir, FAMILIES, names, options, families, &error);
    check(error);
    reading = rocksdb_readoptions_create();
}

static uint64_t property(enum family f, const char *name) {
    uint64_t v = 0;
    rocksdb_property_int_cf(db, families[f], name, &v);
    return v;
}

static uint64_t statistic(const char *name) {
    char *all = rocksdb_options_statistics_get_string(db_options), *at = all ? strstr(all, name) : NULL;
    uint64_t v = at ? strtoull(strstr(at, "COUNT : ") + 8, NULL, 10) : 0;
    free(all);
    return v;
}

static bool busy(void) {
    bool any = false;
    for (int f = FAMILY_ITEMS; f < FAMILIES; f++) {
        any |= property(f, "rocksdb.compaction-pending") || property(f, "rocksdb.num-running-compactions") ||
               property(f, "rocksdb.num-running-flushes") || property(f, "rocksdb.mem-table-flush-pending");
    }
    return any;
}

static void wait_until_idle(void) {
    for (int idle = 0; idle < 5; idle = busy() ? 0 : idle + 1) {
        usleep(20000);
    }
}

/* ---- (a) load ---- */

static double load(void) {
    rocksdb_writeoptions_t *writing = rocksdb_writeoptions_create();
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    char value[VALUE_BYTES], big_endian[8];
    double start = now();
    for (uint64_t i = 0; i < set.items; i++) {
        key by_key, by_number;
        char *error = NULL;
        item_key(&by_key, i);
        number_key(&by_number, i);
        item_value(value, i);
        put_be(big_endian, i, 8);
        const key *item = set.by_number ? &by_number : &by_key, *other = set.by_number ? &by_key : &by_number;
        const char *pointer = set.by_number ? big_endian : by_key.bytes;
        rocksdb_writebatch_put_cf(batch, families[FAMILY_ITEMS], item->bytes, item->n, value, sizeof value);
        rocksdb_writebatch_put_cf(batch, families[FAMILY_SMALL], other->bytes, other->n, pointer, set.by_number ? 8 : by_key.n);
        if ((i + 1) % BATCH != 0 && i + 1 != set.items) {
            continue;
        }
        rocksdb_write(db, writing, batch, &error);
        check(error);
        rocksdb_writebatch_clear(batch);
    }
    return now() - start;
}

static double flush_and_settle(void) {
    double start = now();
    char *error = NULL;
    rocksdb_flushoptions_t *o = rocksdb_flushoptions_create();
    for (int f = FAMILY_ITEMS; f < FAMILIES; f++) {
        rocksdb_flush_cf(db, o, families[f], &error);
        check(error);
    }
    wait_until_idle();
    if (set.compact) {
        for (int f = FAMILY_ITEMS; f < FAMILIES; f++) {
            rocksdb_compact_range_cf(db, families[f], NULL, 0, NULL, 0);
        }
    }
    wait_until_idle();
    return now() - start;
}

/* ---- reads ---- */

static rocksdb_pinnableslice_t *get(enum family f, const char *k, size_t n) {
    char *error = NULL;
    rocksdb_pinnableslice_t *v = rocksdb_get_pinned_cf(db, reading, families[f], k, n, &error);
    check(error);
    if (v == NULL) {
        check(strdup("a key that was written is missing"));
    }
    return v;
}

static size_t drop(rocksdb_pinnableslice_t *v) {
    size_t n;
    const char *p = rocksdb_pinnableslice_value(v, &n);
    volatile char touched = p[n / 2];
    (void)touched;
    rocksdb_pinnableslice_destroy(v);
    return n;
}

/* A get by the pointer that the small family holds: a number, or a key. */
static size_t get_through(const char *small_key, size_t n) {
    rocksdb_pinnableslice_t *pointer = get(FAMILY_SMALL, small_key, n);
    const char *p = rocksdb_pinnableslice_value(pointer, &n);
    char k[KEY_BYTES_MAX];
    size_t at = 0;
    if (set.by_number) {
        put_be(k, 3, 4);
        at = 4;
    }
    memcpy(k + at, p, n);
    rocksdb_pinnableslice_destroy(pointer);
    return drop(get(FAMILY_ITEMS, k, at + n));
}

static size_t read_store(const key *k) {
    return set.by_number ? get_through(k->bytes, k->n) : drop(get(FAMILY_ITEMS, k->bytes, k->n));
}

static slot *slot_of(uint64_t hash) {
    uint64_t at = hash % CACHE_SLOTS;
    while (slots[at].item != NULL && slots[at].hash != hash) {
        at = (at + 1) % CACHE_SLOTS;
    }
    return &slots[at];
}

static size_t read_by_cached_number(const key *k) {
    key by_number;
    number_key(&by_number, slot_of(hash_of(k))->number);
    return drop(get(FAMILY_ITEMS, by_number.bytes, by_number.n));
}

static size_t read_cached_item(const key *k, char *out) {
    const cached_item *item = slot_of(hash_of(k))->item;
    if (item == NULL || item->key.n != k->n || memcmp(item->key.bytes, k->bytes, k->n) != 0) {
        return read_store(k);
    }
    memcpy(out, item->value, VALUE_BYTES);
    return VALUE_BYTES;
}

static void fill_caches(void) {
    slots = calloc(CACHE_SLOTS, sizeof *slots);
    for (uint64_t i = 0; i < set.items; i++) {
        cached_item *item = malloc(sizeof *item);
        item_key(&item->key, i);
        item_value(item->value, i);
        uint64_t hash = hash_of(&item->key);
        *slot_of(hash) = (slot){.hash = hash, .number = i, .item = item};
    }
}

enum { KEYS = 1 << 16 };

typedef struct reader {
    pthread_t thread;
    enum way way;
    uint64_t seed, done;
    double seconds, took;
    key *keys;
} reader;

static void *read_points(void *p) {
    reader *r = p;
    char out[VALUE_BYTES];
    double start = cpu_now();
    do {
        for (int i = 0; i < 512; i++) {
            const key *k = &r->keys[r->done++ % KEYS];
            if (r->way == WAY_STORE) {
                read_store(k);
            } else if (r->way == WAY_NUMBER_CACHE) {
                read_by_cached_number(k);
            } else {
                read_cached_item(k, out);
            }
        }
    } while (cpu_now() - start < r->seconds);
    r->took = cpu_now() - start;
    return NULL;
}

/* (b) Microseconds per read, as one thread feels it. Keys are made outside the time that counts. */
static double point_reads(enum way way, int threads, double seconds) {
    reader readers[2] = {0};
    double micros = 0;
    for (int t = 0; t < threads; t++) {
        reader *r = &readers[t];
        *r = (reader){.seed = (uint64_t)t << 40, .way = way, .seconds = seconds, .keys = calloc(KEYS, sizeof(key))};
        for (int i = 0; i < KEYS; i++) {
            item_key(&r->keys[i], random_next(&r->seed) % set.items);
        }
    }
    for (int t = 0; t < threads; t++) {
        pthread_create(&readers[t].thread, NULL, read_points, &readers[t]);
    }
    for (int t = 0; t < threads; t++) {
        pthread_join(readers[t].thread, NULL);
        micros += 1e6 * readers[t].took / (double)readers[t].done / threads;
        free(readers[t].keys);
    }
    return micros;
}

enum { ROUNDS = 5 };
static const char *way_names[WAYS] = {"store", "numberCache", "itemCache"};

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* All ways in turn, ROUNDS times, and the median of each: the machine is shared and its mood changes. */
static void report_point_reads(void) {
    double micros[WAYS][2][ROUNDS];
    int ways = set.by_number ? WAYS : 1;
    point_reads(WAY_STORE, 1, 1);
    for (int round = 0; round < ROUNDS; round++) {
        for (int way = 0; way < ways; way++) {
            for (int threads = 1; threads <= 2; threads++) {
                micros[way][threads - 1][round] = point_reads(way, threads, 0.4);
            }
        }
    }
    for (int way = 0; way < ways; way++) {
        for (int t = 0; t < 2; t++) {
            qsort(micros[way][t], ROUNDS, sizeof(double), compare_doubles);
        }
        printf(",\"%sMicros\":[%.2f,%.2f]", way_names[way], micros[way][0][ROUNDS / 2], micros[way][1][ROUNDS / 2]);
    }
}

/* (c) Everything in creation order, MB/s of item bytes. */
static double scan(void) {
    double start = cpu_now();
    uint64_t bytes = 0;
    rocksdb_readoptions_t *o = rocksdb_readoptions_create();
    rocksdb_readoptions_set_readahead_size(o, 1 << 20);
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(db, o, families[set.by_number ? FAMILY_ITEMS : FAMILY_SMALL]);
    for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
        size_t n;
        const char *v = rocksdb_iter_value(it, &n);
        bytes += set.by_number ? n : drop(get(FAMILY_ITEMS, v, n));
    }
    rocksdb_iter_destroy(it);
    rocksdb_readoptions_destroy(o);
    return (double)bytes / 1e6 / (cpu_now() - start);
}

static int compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* (d) WANTED rows by sorted document numbers, as an index gives them; microseconds per row. */
static double index_hits(int rounds) {
    uint64_t seed = 99, numbers[WANTED];
    double took = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < WANTED; i++) {
            numbers[i] = random_next(&seed) % set.items;
        }
        qsort(numbers, WANTED, sizeof numbers[0], compare_numbers);
        double start = cpu_now();
        for (int i = 0; i < WANTED; i++) {
            key k;
            number_key(&k, numbers[i]);
            if (set.by_number) {
                drop(get(FAMILY_ITEMS, k.bytes, k.n));
            } else {
                get_through(k.bytes, k.n);
            }
        }
        took += cpu_now() - start;
    }
    return 1e6 * took / rounds / WANTED;
}

/* The rows [from, from+n) of keys, fetched together: RocksDB sorts them by file and block and shares the work. */
static void get_batch(char keys[][NUMBER_KEY_BYTES], size_t n) {
    const char *p[WANTED];
    size_t sizes[WANTED];
    rocksdb_pinnableslice_t *values[WANTED];
    char *errors[WANTED];
    for (size_t i = 0; i < n; i++) {
        p[i] = keys[i], sizes[i] = NUMBER_KEY_BYTES;
    }
    rocksdb_batched_multi_get_cf(db, reading, families[FAMILY_ITEMS], n, p, sizes, values, errors, false);
    for (size_t i = 0; i < n; i++) {
        check(errors[i]), drop(values[i]);
    }
}

/* (d) again, with the batched get; only by number can use it in one step. */
static double index_hits_batched(int rounds) {
    uint64_t seed = 99, numbers[WANTED];
    static char keys[WANTED][NUMBER_KEY_BYTES];
    double took = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < WANTED; i++) {
            numbers[i] = random_next(&seed) % set.items;
        }
        qsort(numbers, WANTED, sizeof numbers[0], compare_numbers);
        double start = cpu_now();
        for (int i = 0; i < WANTED; i++) {
            put_be(keys[i], 3, 4), put_be(keys[i] + 4, numbers[i], 8);
        }
        for (int i = 0; i < WANTED; i += 100) {
            get_batch(keys + i, 100);
        }
        took += cpu_now() - start;
    }
    return 1e6 * took / rounds / WANTED;
}

/* (e) One logical partition in row-key order; microseconds per row. By number it is the primary index and then one get a row. */
static double partition_reads(int rounds) {
    uint64_t seed = 5, rows = 0;
    double start = cpu_now();
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(db, reading, families[set.by_number ? FAMILY_SMALL : FAMILY_ITEMS]);
    for (int round = 0; round < rounds; round++) {
        char prefix[KEY_BYTES_MAX];
        size_t n, prefix_bytes = partition_prefix(prefix, random_next(&seed) % (set.items / set.per_partition));
        for (rocksdb_iter_seek(it, prefix, prefix_bytes); rocksdb_iter_valid(it); rocksdb_iter_next(it), rows++) {
            const char *k = rocksdb_iter_key(it, &n);
            if (n < prefix_bytes || memcmp(k, prefix, prefix_bytes) != 0) {
                break;
            }
            const char *v = rocksdb_iter_value(it, &n);
            if (!set.by_number) {
                continue;
            }
            char number[NUMBER_KEY_BYTES];
            put_be(number, 3, 4);
            memcpy(number + 4, v, 8);
            drop(get(FAMILY_ITEMS, number, sizeof number));
        }
    }
    rocksdb_iter_destroy(it);
    return 1e6 * (cpu_now() - start) / (double)rows;
}

/* ---- main ---- */

static void parse(int argc, char **argv) {
    static const struct option options[] = {{"dir", 1, 0, 'd'},        {"layout", 1, 0, 'l'},
                                            {"items", 1, 0, 'n'},      {"per-partition", 1, 0, 'p'},
                                            {"block", 1, 0, 'b'},      {"small-block", 1, 0, 's'},
                                            {"cache-mb", 1, 0, 'c'},   {"bloom", 1, 0, 'f'},
                                            {"lz4", 0, 0, 'z'},        {"mmap", 0, 0, 'm'},
                                            {"hash-index", 0, 0, 'h'}, {"compact", 0, 0, 'C'},
                                            {"statistics", 0, 0, 'S'}, {"filters-for-hits", 0, 0, 'F'},
                                            {"restart", 1, 0, 'r'},    {"row-cache-mb", 1, 0, 'R'},
                                            {"points", 0, 0, 'P'},     {0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'd') {
            set.dir = optarg;
        } else if (c == 'l') {
            set.by_number = strcmp(optarg, "number") == 0;
        } else if (c == 'n') {
            set.items = strtoull(optarg, NULL, 10);
        } else if (c == 'p') {
            set.per_partition = strtoull(optarg, NULL, 10);
        } else if (c == 'b') {
            set.block_bytes = strtoul(optarg, NULL, 10);
        } else if (c == 's') {
            set.small_block_bytes = strtoul(optarg, NULL, 10);
        } else if (c == 'c') {
            set.cache_bytes = strtoul(optarg, NULL, 10) << 20;
        } else if (c == 'f') {
            set.bloom_bits = atoi(optarg);
        } else if (c == 'z') {
            set.compress = true;
        } else if (c == 'm') {
            set.mmap = true;
        } else if (c == 'h') {
            set.hash_index = true;
        } else if (c == 'C') {
            set.compact = true;
        } else if (c == 'S') {
            set.statistics = true;
        } else if (c == 'F') {
            set.filters_for_hits = true;
        } else if (c == 'r') {
            set.restart = atoi(optarg);
        } else if (c == 'R') {
            set.row_cache_bytes = strtoul(optarg, NULL, 10) << 20;
        } else if (c == 'P') {
            set.points_only = true;
        } else {
            exit(2);
        }
    }
    if (set.dir == NULL || set.items < WANTED || set.per_partition == 0) {
        check(strdup("give --dir, an empty folder, and --items of 1000 or more"));
    }
}

static void report_load(double loaded, double settled) {
    double payload = (double)set.items * VALUE_BYTES;
    double disk = (double)(property(FAMILY_ITEMS, "rocksdb.total-sst-files-size") + property(FAMILY_SMALL, "rocksdb.total-sst-files-size"));
    double written =
        (double)(statistic("rocksdb.compact.write.bytes") + statistic("rocksdb.flush.write.bytes") + statistic("rocksdb.wal.bytes"));
    printf("{\"layout\":\"%s\",\"items\":%" PRIu64 ",\"perPartition\":%" PRIu64, set.by_number ? "number" : "key", set.items,
           set.per_partition);
    printf(",\"insertPerSecond\":%.0f,\"settleSeconds\":%.2f,\"diskMB\":%.0f", (double)set.items / loaded, settled, disk / 1e6);
    if (set.statistics) {
        printf(",\"writeAmplification\":%.2f", written / payload);
    }
}

static void report_scans(void) {
    printf(",\"scanMBs\":%.0f,\"indexHitMicros\":%.2f", scan(), index_hits(50));
    if (set.by_number) {
        printf(",\"indexHitBatchedMicros\":%.2f", index_hits_batched(50));
    }
    if (set.per_partition > 1) {
        printf(",\"partitionRowMicros\":%.2f", partition_reads(50));
    }
}

int main(int argc, char **argv) {
    parse(argc, argv);
    open_db();
    double loaded = load(), settled = flush_and_settle();
    report_load(loaded, settled);
    scan(); /* brings everything into the cache */
    if (set.by_number) {
        fill_caches();
    }
    report_point_reads();
    if (!set.points_only) {
        report_scans();
    }
    printf(",\"cacheMB\":%zu}\n", rocksdb_cache_get_usage(cache) >> 20);
    for (int f = 0; f < FAMILIES; f++) {
        rocksdb_column_family_handle_destroy(families[f]);
    }
    rocksdb_close(db);
    return 0;
}
