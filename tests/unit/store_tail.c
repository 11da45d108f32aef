/* The store on disk compared with the store in memory, over random changes, with tails so small that they are flushed all the time. Also
 * concurrent readers, a process killed at any moment, tables that cannot be written, and a damaged log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>

#include "rounds.h"
#include "store_tail_harness.h"

static void walk_open(pair *p, walk *w) {
    char from_bytes[8], to_bytes[8];
    slice from = random_key(&p->random, from_bytes), to = random_key(&p->random, to_bytes);
    bool backward = random_below(&p->random, 2), snapshot = random_below(&p->random, 2);
    from = random_below(&p->random, 3) ? from : SLICE_EMPTY;
    to = random_below(&p->random, 3) ? to : SLICE_EMPTY;
    w->memory_at = snapshot ? store_snapshot_take(p->memory) : NULL;
    w->rocks_at = snapshot ? store_snapshot_take(p->rocks) : NULL;
    w->memory = store_scan_open(p->memory, STORE_TERMS, w->memory_at, from, to, backward);
    w->rocks = store_scan_open(p->rocks, STORE_TERMS, w->rocks_at, from, to, backward);
}

static void walk_some(pair *p, walk *w) {
    slice a, b, x, y;
    uint64_t steps = random_below(&p->random, 12);
    if (random_below(&p->random, 3) == 0) {
        char bytes[8];
        slice key = random_key(&p->random, bytes);
        bool backward = random_below(&p->random, 2);
        store_scan_seek(w->memory, key, backward);
        store_scan_seek(w->rocks, key, backward);
    }
    for (bool more = true; more && steps; steps--) {
        more = store_scan_next(w->memory, &a, &x);
        assert_int_equal(store_scan_next(w->rocks, &b, &y), more);
        assert_true(!more || (slice_eq(a, b) && slice_eq(x, y)));
    }
}

static void walk_close(pair *p, walk *w) {
    assert_int_equal(store_scan_close(w->memory), OK);
    assert_int_equal(store_scan_close(w->rocks), OK);
    if (w->rocks_at) {
        for (int i = 0; i < 10; i++) {
            char bytes[8];
            store_value value;
            slice key = random_key(&p->random, bytes);
            err code = store_get(p->memory, STORE_TERMS, w->memory_at, key, &value);
            assert_true(get_equals(p->rocks, STORE_TERMS, w->rocks_at, key, code == OK ? value.bytes : SLICE_EMPTY));
            store_give(&value);
        }
        assert_same(p, w->memory_at, w->rocks_at);
        store_snapshot_give(p->memory, w->memory_at);
        store_snapshot_give(p->rocks, w->rocks_at);
    }
}

static void stores_agree_whatever_the_tail(void **state) {
    (void)state;
    enum { WALKS = 6 };
    static const struct {
        size_t tail;
        int rounds;
    } cases[] = {{1, 100}, {TINY, ROUNDS(4) * 100}, {LITTLE, ROUNDS(10) * 100}, {0, ROUNDS(6) * 100}};
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
        pair p;
        walk walks[WALKS] = {0};
        pair_open(&p, 10 + t, cases[t].tail);
        for (int round = 0; round < cases[t].rounds; round++) {
            size_t i = (size_t)random_below(&p.random, WALKS);
            fill_terms(&p.batch, &p.random);
            write_both(&p);
            if (!walks[i].rocks) {
                walk_open(&p, &walks[i]);
            } else if (random_below(&p.random, 4) == 0) {
                walk_close(&p, &walks[i]);
                walks[i] = (walk){0};
            } else {
                walk_some(&p, &walks[i]);
            }
            if (round % 100 == 99) {
                for (i = 0; i < WALKS; i++) {
                    if (walks[i].rocks) {
                        walk_close(&p, &walks[i]);
                        walks[i] = (walk){0};
                    }
                }
                store_close(p.rocks);
                p.rocks = open_rocks_tail(p.folder, round % 200 == 99 ? p.tail_bytes : LITTLE);
                assert_same(&p, NULL, NULL);
            }
        }
        pair_close(&p);
    }
}

/* Sizes include the tail, and ranges deleted in the tail stay deleted. */
static void bytes_and_reclaiming(void **state) {
    (void)state;
    pair p;
    char key[16];
    pair_open(&p, 20, LITTLE);
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 100; i++) {
            int n = snprintf(key, sizeof key, "%c%05d", "abc"[i % 3], round * 100 + i);
            store_put(&p.batch, STORE_TERMS, slice_of(key, (size_t)n), SLICE_EMPTY);
        }
        write_both(&p);
        if (round == 0) {
            assert_true(store_bytes(p.rocks, STORE_TERMS, SLICE_LIT("b"), SLICE_LIT("c")) >= 33 * 6);
            assert_int_equal(store_bytes(p.rocks, STORE_TERMS, SLICE_LIT("d"), SLICE_LIT("e")), 0);
        }
    }
    store_delete_range(&p.batch, STORE_TERMS, SLICE_LIT("b"), SLICE_LIT("c"));
    write_both(&p);
    store_reclaim(p.rocks, STORE_TERMS, SLICE_LIT("b"), SLICE_LIT("c"));
    for (int round = 0; round < 20; round++) {
        assert_same(&p, NULL, NULL);
        for (int i = 0; i < 100; i++) {
            int n = snprintf(key, sizeof key, "%c%05d", "ac"[i % 2], round * 100 + i);
            i % 3 ? store_put(&p.batch, STORE_TERMS, slice_of(key, (size_t)n), SLICE_LIT("new"))
                  : store_delete(&p.batch, STORE_TERMS, slice_of(key, (size_t)n));
        }
        write_both(&p);
    }
    store_close(p.rocks);
    p.rocks = open_rocks_tail(p.folder, TINY);
    assert_same(&p, NULL, NULL);
    pair_close(&p);
}

/* ---- concurrent readers ---- */

/* Every batch writes its number into an item and several entries, and moves a window of entries forward. */
enum { MARKS = 5, WINDOW = 40, READERS = 3 };

typedef struct shared {
    store *store;
    atomic_bool done;
    atomic_int wrong; /* line number of a failed check in a reader; cmocka's assertions work in the main thread only */
} shared;

#define EXPECT(c, what)                                                                                                                    \
    do {                                                                                                                                   \
        if (!(what)) {                                                                                                                     \
            atomic_store(&(c)->wrong, __LINE__);                                                                                           \
        }                                                                                                                                  \
    } while (0)

static void fill_numbered(store_batch *b, uint32_t number) {
    char key[16], value[16];
    slice said = slice_of(value, (size_t)snprintf(value, sizeof value, "%08u", number));
    store_put(b, STORE_ITEMS, SLICE_LIT("number"), said);
    for (int i = 0; i < MARKS; i++) {
        store_put(b, STORE_TERMS, slice_of(key, (size_t)snprintf(key, sizeof key, "m%d", i)), said);
    }
    if (number > 1) { /* there is always exactly one of these */
        store_delete(b, STORE_TERMS, slice_of(key, (size_t)snprintf(key, sizeof key, "sole%08u", number - 1)));
    }
    store_put(b, STORE_TERMS, slice_of(key, (size_t)snprintf(key, sizeof key, "sole%08u", number)), SLICE_EMPTY);
    store_put(b, STORE_TERMS, slice_of(key, (size_t)snprintf(key, sizeof key, "w%08u", number)), SLICE_EMPTY);
    if (number > WINDOW && number % 50) {
        store_delete(b, STORE_TERMS, slice_of(key, (size_t)snprintf(key, sizeof key, "w%08u", number - WINDOW)));
    } else if (number > WINDOW) {
        char end[16];
        snprintf(key, sizeof key, "w%08u", number - WINDOW);
        snprintf(end, sizeof end, "w%08u", number - WINDOW + 1);
        store_delete_range(b, STORE_TERMS, slice_str(key), slice_str(end));
    }
}

static uint32_t number_of(slice text) {
    uint64_t number = 0;
    return slice_to_u64(text, &number) ? (uint32_t)number : UINT32_MAX;
}

/* Checks that a scan of the entries shows exactly one batch. Returns its number. */
static uint32_t check_entries(shared *c, const store_snapshot *at, bool backward) {
    slice key, value;
    uint32_t marks = 0, window = 0, low = UINT32_MAX, high = 0, number = 0;
    store_scan *scan = store_scan_open(c->store, STORE_TERMS, at, SLICE_EMPTY, SLICE_EMPTY, backward);
    while (store_scan_next(scan, &key, &value)) {
        bool mark = key.p[0] == 'm';
        if (key.p[0] == 's') {
            continue;
        }
        uint32_t said = number_of(mark ? value : slice_skip(key, 1));
        marks += mark;
        window += !mark;
        EXPECT(c, !mark || !number || said == number);
        number = mark ? said : number;
        low = !mark && said < low ? said : low;
        high = !mark && said > high ? said : high;
    }
    EXPECT(c, store_scan_close(scan) == OK);
    if (marks) {
        EXPECT(c, marks == MARKS);
        EXPECT(c, high == number);
        EXPECT(c, window == (number < WINDOW ? number : WINDOW));
        EXPECT(c, high - low + 1 == window);
    }
    return number;
}

/* Checks that the stem has exactly one entry. Returns its number. */
static uint32_t check_stem(shared *c, const store_snapshot *at, bool many) {
    slice key, value;
    uint32_t number = 0, n = 0;
    store_scan *scan = store_stem_open(c->store, at, SLICE_LIT("sole"), SLICE_LIT("solf"), many);
    for (; store_scan_next(scan, &key, &value); n++) {
        number = number_of(slice_skip(key, 4));
    }
    EXPECT(c, store_scan_close(scan) == OK);
    EXPECT(c, n == (number ? 1 : 0));
    return number;
}

static void *read_along(void *context) {
    shared *c = context;
    uint32_t last = 0;
    for (int i = 0; !atomic_load(&c->done); i++) {
        const store_snapshot *at = i % 3 ? store_snapshot_take(c->store) : NULL;
        uint32_t number = check_entries(c, at, i % 2);
        EXPECT(c, number >= last); /* numbers never decrease */
        last = number;
        number = check_stem(c, at, i % 5 < 2);
        EXPECT(c, at ? number == last : number >= last);
        last = number;
        if (at) {
            char text[16];
            snprintf(text, sizeof text, "%08u", number);
            EXPECT(c, get_equals(c->store, STORE_ITEMS, at, SLICE_LIT("number"), number ? slice_str(text) : SLICE_EMPTY));
            EXPECT(c, get_equals(c->store, STORE_TERMS, at, SLICE_LIT("m0"), number ? slice_str(text) : SLICE_EMPTY));
            store_snapshot_give(c->store, at);
        }
    }
    return NULL;
}

static void readers_see_whole_batches(void **state) {
    (void)state;
    static const struct {
        size_t tail;
        uint32_t batches;
    } cases[] = {{1, 100}, {2000, ROUNDS(1500)}, {LITTLE, ROUNDS(3000)}, {0, ROUNDS(3000)}};
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
        char *folder = make_folder();
        shared c = {.store = open_rocks_tail(folder, cases[t].tail)};
        pthread_t readers[READERS];
        store_batch b;
        store_batch_init(&b);
        for (size_t i = 0; i < READERS; i++) {
            assert_int_equal(pthread_create(&readers[i], NULL, read_along, &c), 0);
        }
        for (uint32_t number = 1; number <= cases[t].batches; number++) {
            store_batch_clear(&b);
            fill_numbered(&b, number);
            assert_int_equal(store_write(c.store, &b), OK);
        }
        atomic_store(&c.done, true);
        for (size_t i = 0; i < READERS; i++) {
            pthread_join(readers[i], NULL);
        }
        assert_int_equal(check_entries(&c, NULL, false), cases[t].batches);
        assert_int_equal(c.wrong, 0);
        store_batch_free(&b);
        store_close(c.store);
        remove_folder(folder);
        free(folder);
    }
}

/* ---- crashes and failures ---- */

enum { SEED = 1000 };

/* Writes batch after batch, each with its number, until it is killed. */
static _Noreturn void write_until_killed(const char *folder, uint32_t from, int told) {
    char why[256], number[16];
    store *s;
    store_batch b;
    random_source r;
    store_options options = {.dir = folder, .cache_bytes = 1 << 20, .tail_bytes = TINY};
    if (store_open_rocks(&options, &s, why, sizeof why) != OK) {
        _exit(1);
    }
    store_batch_init(&b);
    for (uint32_t i = from;; i++) {
        store_batch_clear(&b);
        random_seed(&r, SEED + i);
        fill_terms(&b, &r);
        store_put(&b, STORE_META, SLICE_LIT("n"), slice_of(number, (size_t)snprintf(number, sizeof number, "%u", i)));
        if (store_write(s, &b) != OK || write(told, &i, sizeof i) != sizeof i) {
            _exit(1);
        }
    }
}

/* Executes this program again, since a forked process has none of RocksDB's threads. */
static pid_t start_writer(const char *folder, uint32_t from, int told) {
    char from_text[16], told_text[16];
    snprintf(from_text, sizeof from_text, "%u", from);
    snprintf(told_text, sizeof told_text, "%d", told);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "store_tail", folder, from_text, told_text, (char *)NULL);
        _exit(1);
    }
    return child;
}

/* Kills the child after `us`, and returns the number of the last batch that it reported. */
static uint32_t kill_after(pid_t child, int told, useconds_t us) {
    uint32_t last, number;
    assert_int_equal(read(told, &last, sizeof last), sizeof last); /* it has started to write */
    usleep(us);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    while (read(told, &number, sizeof number) == sizeof number) {
        last = number;
    }
    return last;
}

/* Applies batches [from, to] to the model. */
static void catch_up(store *model, uint32_t from, uint32_t to) {
    char text[16];
    store_batch b;
    random_source r;
    store_batch_init(&b);
    for (uint32_t i = from; i <= to; i++) {
        store_batch_clear(&b);
        random_seed(&r, SEED + i);
        fill_terms(&b, &r);
        store_put(&b, STORE_META, SLICE_LIT("n"), slice_of(text, (size_t)snprintf(text, sizeof text, "%u", i)));
        assert_int_equal(store_write(model, &b), OK);
    }
    store_batch_free(&b);
}

static uint32_t number_in(store *s) {
    store_value value;
    char text[16] = "";
    assert_int_equal(store_get(s, STORE_META, NULL, SLICE_LIT("n"), &value), OK);
    memcpy(text, value.bytes.p, value.bytes.n < 15 ? value.bytes.n : 15);
    store_give(&value);
    return (uint32_t)strtoul(text, NULL, 10);
}

static void a_killed_writer_leaves_whole_batches(void **state) {
    (void)state;
    enum { KILLS = 12 };
    char *folder = make_folder();
    store *model = store_open_memory();
    uint32_t have = 0;
    random_source r;
    random_seed(&r, 40);
    for (int i = 0; i < KILLS; i++) {
        int told[2];
        assert_int_equal(pipe(told), 0);
        pid_t child = start_writer(folder, have + 1, told[1]);
        close(told[1]);
        uint32_t acknowledged = kill_after(child, told[0], (useconds_t)random_below(&r, 30000));
        close(told[0]);
        store *s = open_rocks_tail(folder, i % 2 ? TINY : 0);
        uint32_t there = number_in(s);
        assert_true(there >= acknowledged && there <= acknowledged + 1);
        catch_up(model, have + 1, there);
        have = there;
        buf left = dump_store(model, NULL), right = dump_store(s, NULL);
        assert_true(slice_eq(buf_view(&left), buf_view(&right)));
        buf_free(&left);
        buf_free(&right);
        store_close(s);
    }
    store_close(model);
    remove_folder(folder);
    free(folder);
}

/* A folder is in the way of the table file: entries stay in the tail and its log until the folder is removed. */
static void a_table_that_cannot_be_written(void **state) {
    (void)state;
    pair p;
    char path[4200];
    pair_open(&p, 50, LITTLE);
    store_tail *tail = ((rocks *)p.rocks)->tail;
    snprintf(path, sizeof path, "%s/tail.sst", p.folder);
    assert_int_equal(mkdir(path, 0700), 0);
    err code = OK;
    while (code == OK) {
        store_batch_clear(&p.batch);
        fill_terms(&p.batch, &p.random);
        for (int i = 0; i < 100; i++) {
            char key[16];
            random_bytes(&p.random, key, sizeof key);
            store_put(&p.batch, STORE_TERMS, slice_of(key, sizeof key), SLICE_EMPTY);
        }
        code = store_write(p.rocks, &p.batch);
        assert_int_equal(code == OK ? store_write(p.memory, &p.batch) : OK, OK);
    }
    assert_int_equal(code, E_STORE_IO);
    assert_true(store_tail_held(tail) > LITTLE);
    assert_same(&p, NULL, NULL);
    assert_int_equal(rmdir(path), 0);
    while (store_tail_held(tail) >= LITTLE) {
        usleep(1000);
    }
    write_both(&p);
    assert_same(&p, NULL, NULL);
    pair_close(&p);
}

/* Opens RocksDB directly, to put a record into the log that the store would never write. */
static void put_into_log(const char *folder, slice key, slice value) {
    static const char *const names[FAMILIES] = {"default", "items", "index", "terms", "versions", "runs"};
    rocksdb_column_family_handle_t *families[FAMILIES];
    rocksdb_options_t *options = rocksdb_options_create();
    const rocksdb_options_t *each[FAMILIES] = {options, options, options, options, options, options};
    char path[4200], *message = NULL;
    snprintf(path, sizeof path, "%s/db", folder);
    rocksdb_t *db = rocksdb_open_column_families(options, path, FAMILIES, names, each, families, &message);
    assert_null(message);
    rocksdb_writeoptions_t *writing = rocksdb_writeoptions_create();
    rocksdb_put_cf(db, writing, families[FAMILY_RUNS], key.p, key.n, value.p, value.n, &message);
    assert_null(message);
    rocksdb_writeoptions_destroy(writing);
    for (int f = 0; f < FAMILIES; f++) {
        rocksdb_column_family_handle_destroy(families[f]);
    }
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

static void assert_refused(const char *folder) {
    store *s;
    char why[512] = "";
    store_options options = {.dir = folder, .cache_bytes = 1 << 20};
    assert_int_equal(store_open_rocks(&options, &s, why, sizeof why), E_STORE_CORRUPT);
    assert_null(s);
    assert_non_null(strstr(why, "the index's log"));
    assert_non_null(strstr(why, "Restore"));
}

/* The readable part of a damaged log is not flushed: that would delete the rest of the log unnoticed. */
static void a_large_damaged_log_stays_as_it_is(void **state) {
    (void)state;
    static const char value[1000];
    pair p;
    store_batch b;
    pair_open(&p, 61, 0);
    store_close(p.rocks);
    store_batch_init(&b);
    for (unsigned i = 0; i < 2000; i++) {
        store_put(&b, STORE_TERMS, slice_of(&i, sizeof i), slice_of(value, sizeof value));
    }
    store_run *run = store_run_of_batch(&b);
    put_into_log(p.folder, SLICE_LIT("n"), SLICE_LIT("\0\0\0\0\0\0\0\2"));
    put_into_log(p.folder, SLICE_LIT("r\0\0\0\0\0\0\0\1"), slice_of(run->p, run->bytes));
    put_into_log(p.folder, SLICE_LIT("r\0\0\0\0\0\0\0\2"), SLICE_LIT("rubbish"));
    assert_refused(p.folder);
    assert_refused(p.folder);
    store_run_give(run);
    store_batch_free(&b);
    remove_folder(p.folder);
    p.rocks = open_rocks(p.folder);
    pair_close(&p);
}

static void a_damaged_log_is_refused(void **state) {
    (void)state;
    pair p;
    pair_open(&p, 60, 0);
    write_both(&p);
    write_both(&p);
    store_close(p.rocks);
    put_into_log(p.folder, SLICE_LIT("r\0\0\0\0\0\0\0\1"), SLICE_LIT("\1\0\0\0\0\5\0\0\0rubbish"));
    assert_refused(p.folder);
    remove_folder(p.folder);
    p.rocks = open_rocks(p.folder);
    store_close(p.rocks);
    put_into_log(p.folder, SLICE_LIT("r\0\0\0\0\0\0\0\5"), SLICE_LIT("\1\0\0\0\0\0\0\0\0")); /* a batch number that was never assigned */
    assert_refused(p.folder);
    put_into_log(p.folder, SLICE_LIT("n"), SLICE_LIT("seven"));
    assert_refused(p.folder);
    remove_folder(p.folder);
    p.rocks = open_rocks(p.folder);
    pair_close(&p);
}

static void a_file_left_by_a_crash_is_removed(void **state) {
    (void)state;
    pair p;
    char path[4200];
    pair_open(&p, 70, 0);
    write_both(&p);
    store_close(p.rocks);
    snprintf(path, sizeof path, "%s/tail.sst", p.folder);
    FILE *left = fopen(path, "w");
    assert_non_null(left);
    fputs("half a table", left);
    fclose(left);
    p.rocks = open_rocks(p.folder);
    assert_int_equal(access(path, F_OK), -1);
    assert_same(&p, NULL, NULL);
    pair_close(&p);
}

int main(int argc, char **argv) {
    if (argc == 4) {
        write_until_killed(argv[1], (uint32_t)strtoul(argv[2], NULL, 10), atoi(argv[3]));
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_writer_leaves_whole_batches),
        cmocka_unit_test(stores_agree_whatever_the_tail),
        cmocka_unit_test(bytes_and_reclaiming),
        cmocka_unit_test(readers_see_whole_batches),
        cmocka_unit_test(a_table_that_cannot_be_written),
        cmocka_unit_test(a_damaged_log_is_refused),
        cmocka_unit_test(a_large_damaged_log_stays_as_it_is),
        cmocka_unit_test(a_file_left_by_a_crash_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
