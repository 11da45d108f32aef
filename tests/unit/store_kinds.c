/* The stores behave alike: random batches, gets, scans in both directions and snapshots give the same results on the store in memory and on
 * RocksDB, also after RocksDB was closed and reopened. Then the store that fails on demand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_harness.h"

typedef struct pair {
    store *memory, *rocks;
    char *folder;
    random_source random;
} pair;

enum { SMALL_TAIL = 2000 }; /* small, so that some index entries are in the tail and some in tables; see also store_tail.c */

static void pair_open(pair *p, uint64_t seed) {
    p->folder = make_folder();
    p->memory = store_open_memory();
    p->rocks = open_rocks_tail(p->folder, SMALL_TAIL);
    random_seed(&p->random, seed);
}

static void pair_close(pair *p) {
    store_close(p->memory);
    store_close(p->rocks);
    remove_folder(p->folder);
    free(p->folder);
}

/* Keys from a small set, so that changes hit the same keys: short ones, prefixes of each other, bytes from 0 to FF. */
static slice random_key(random_source *r, char into[8]) {
    static const unsigned char letters[] = {0, 1, 'a', 'b', 0x7F, 0x80, 0xFE, 0xFF};
    size_t n = 1 + (size_t)random_below(r, 4);
    for (size_t i = 0; i < n; i++) {
        into[i] = (char)letters[random_below(r, sizeof letters)];
    }
    return slice_of(into, n);
}

static void fill_batch(store_batch *b, random_source *r) {
    static char value[5000];
    char key[8], to[8];
    uint64_t n = random_below(r, 30);
    for (uint64_t i = 0; i < n; i++) {
        store_family family = (store_family)random_below(r, STORE_FAMILIES);
        slice k = random_key(r, key), end = random_key(r, to);
        uint64_t kind = random_below(r, 20);
        if (kind < 12) {
            size_t size = (size_t)random_below(r, random_below(r, 10) ? 50 : sizeof value);
            random_bytes(r, value, size);
            store_put(b, family, k, slice_of(value, size));
        } else if (kind < 19) {
            store_delete(b, family, k);
        } else if (slice_cmp(k, end) < 0) {
            store_delete_range(b, family, k, end);
        }
    }
}

static void assert_same_scan(pair *p, const store_snapshot *memory_at, const store_snapshot *rocks_at) {
    char from_bytes[8], to_bytes[8];
    bool backward = random_below(&p->random, 2);
    store_family family = (store_family)random_below(&p->random, STORE_FAMILIES);
    slice from = random_key(&p->random, from_bytes), to = random_key(&p->random, to_bytes);
    from = random_below(&p->random, 4) ? from : SLICE_EMPTY;
    to = random_below(&p->random, 4) ? to : SLICE_EMPTY;
    buf a = buf_init(BUF_NO_LIMIT), b = buf_init(BUF_NO_LIMIT);
    dump_family(p->memory, family, memory_at, from, to, backward, &a);
    dump_family(p->rocks, family, rocks_at, from, to, backward, &b);
    assert_true(slice_eq(buf_view(&a), buf_view(&b)));
    buf_free(&a);
    buf_free(&b);
}

static void assert_same_get(pair *p, const store_snapshot *memory_at, const store_snapshot *rocks_at) {
    char key_bytes[8];
    store_family family = (store_family)random_below(&p->random, STORE_FAMILIES);
    slice key = random_key(&p->random, key_bytes);
    store_value value;
    err code = store_get(p->memory, family, memory_at, key, &value);
    assert_true(code == OK || code == E_NOT_FOUND);
    assert_true(get_equals(p->rocks, family, rocks_at, key, code == OK ? value.bytes : SLICE_EMPTY));
    store_give(&value);
}

static void assert_same_store(store *a, store *b, const store_snapshot *a_at, const store_snapshot *b_at) {
    buf left = dump_store(a, a_at), right = dump_store(b, b_at);
    assert_true(slice_eq(buf_view(&left), buf_view(&right)));
    buf_free(&left);
    buf_free(&right);
}

static void write_both(pair *p, store_batch *b) {
    store_batch_clear(b);
    fill_batch(b, &p->random);
    assert_int_equal(store_write(p->memory, b), OK);
    assert_int_equal(store_write(p->rocks, b), OK);
}

static void memory_and_rocksdb_agree(void **state) {
    (void)state;
    pair p;
    store_batch b;
    pair_open(&p, 41);
    store_batch_init(&b);
    for (int round = 0; round < 400; round++) {
        write_both(&p, &b);
        for (int i = 0; i < 4; i++) {
            assert_same_scan(&p, NULL, NULL);
            assert_same_get(&p, NULL, NULL);
        }
        if (round % 100 == 99) {
            store_close(p.rocks);
            p.rocks = open_rocks_tail(p.folder, SMALL_TAIL);
            assert_same_store(p.memory, p.rocks, NULL, NULL);
        }
    }
    store_batch_free(&b);
    pair_close(&p);
}

static store *open_merged(const char *folder, bool leveled) {
    store *s;
    char why[512] = "";
    store_options options = {.dir = folder, .cache_bytes = 8 << 20, .tail_bytes = SMALL_TAIL, .leveled = leveled};
    assert_int_equal(store_open_rocks(&options, &s, why, sizeof why), OK);
    return s;
}

/* Earlier versions merged all families in levels, and a disk that gets full makes a store do so again. */
static void levels_and_tiers_open_each_other(void **state) {
    (void)state;
    pair p;
    store_batch b;
    pair_open(&p, 46);
    store_batch_init(&b);
    for (int turn = 0; turn < 6; turn++) {
        store_close(p.rocks);
        p.rocks = open_merged(p.folder, turn % 2 == 0);
        for (int i = 0; i < 60; i++) {
            write_both(&p, &b);
        }
        store_reclaim(p.rocks, STORE_TERMS, SLICE_LIT("\x01"), SLICE_LIT("\x01")); /* flushes the tail, and compacts */
        assert_same_store(p.memory, p.rocks, NULL, NULL);
    }
    store_batch_free(&b);
    pair_close(&p);
}

static void snapshots_stand_still(void **state) {
    (void)state;
    enum { HELD = 5 };
    pair p;
    store_batch b;
    const store_snapshot *memory_at[HELD] = {0}, *rocks_at[HELD] = {0};
    buf then[HELD];
    pair_open(&p, 42);
    store_batch_init(&b);
    for (int round = 0; round < 200; round++) {
        size_t i = (size_t)random_below(&p.random, HELD);
        write_both(&p, &b);
        if (memory_at[i]) {
            assert_same_scan(&p, memory_at[i], rocks_at[i]);
            assert_same_get(&p, memory_at[i], rocks_at[i]);
            buf now = dump_store(p.rocks, rocks_at[i]);
            assert_true(slice_eq(buf_view(&then[i]), buf_view(&now)));
            assert_same_store(p.memory, p.rocks, memory_at[i], rocks_at[i]);
            store_snapshot_give(p.memory, memory_at[i]);
            store_snapshot_give(p.rocks, rocks_at[i]);
            buf_free(&then[i]);
            buf_free(&now);
        }
        memory_at[i] = store_snapshot_take(p.memory);
        rocks_at[i] = store_snapshot_take(p.rocks);
        then[i] = dump_store(p.memory, NULL);
    }
    for (size_t i = 0; i < HELD; i++) {
        if (memory_at[i]) {
            store_snapshot_give(p.memory, memory_at[i]);
            store_snapshot_give(p.rocks, rocks_at[i]);
            buf_free(&then[i]);
        }
    }
    store_batch_free(&b);
    pair_close(&p);
}

/* A scan sees the store as it was when opened, despite later writes. */
static void a_scan_does_not_see_later_writes(void **state) {
    (void)state;
    pair p;
    store_batch b;
    pair_open(&p, 43);
    store_batch_init(&b);
    store *stores[] = {p.memory, p.rocks};
    for (size_t s = 0; s < 2; s++) {
        slice key, value;
        store_batch_clear(&b);
        store_put(&b, STORE_META, SLICE_LIT("b"), SLICE_LIT("1"));
        store_put(&b, STORE_META, SLICE_LIT("d"), SLICE_LIT("2"));
        assert_int_equal(store_write(stores[s], &b), OK);
        store_scan *scan = store_scan_open(stores[s], STORE_META, NULL, SLICE_EMPTY, SLICE_EMPTY, false);
        assert_true(store_scan_next(scan, &key, &value));
        store_batch_clear(&b);
        store_put(&b, STORE_META, SLICE_LIT("c"), SLICE_LIT("3"));
        store_put(&b, STORE_META, SLICE_LIT("d"), SLICE_LIT("4"));
        assert_int_equal(store_write(stores[s], &b), OK);
        assert_true(slice_eq(key, SLICE_LIT("b")) && slice_eq(value, SLICE_LIT("1"))); /* slices live until the next step */
        assert_true(store_scan_next(scan, &key, &value));
        assert_true(slice_eq(key, SLICE_LIT("d")) && slice_eq(value, SLICE_LIT("2")));
        assert_false(store_scan_next(scan, &key, &value));
        assert_int_equal(store_scan_close(scan), OK);
    }
    store_batch_free(&b);
    pair_close(&p);
}

/* A returned value is pinned: later writes do not change its bytes. */
static void values_are_pinned(void **state) {
    (void)state;
    pair p;
    store_batch b;
    pair_open(&p, 44);
    store_batch_init(&b);
    store *stores[] = {p.memory, p.rocks};
    for (size_t s = 0; s < 2; s++) {
        store_value value;
        store_batch_clear(&b);
        store_put(&b, STORE_ITEMS, SLICE_LIT("k"), SLICE_LIT("old"));
        assert_int_equal(store_write(stores[s], &b), OK);
        assert_int_equal(store_get(stores[s], STORE_ITEMS, NULL, SLICE_LIT("k"), &value), OK);
        store_batch_clear(&b);
        store_delete(&b, STORE_ITEMS, SLICE_LIT("k"));
        assert_int_equal(store_write(stores[s], &b), OK);
        assert_true(slice_eq(value.bytes, SLICE_LIT("old")));
        store_give(&value);
        store_give(&value); /* the second call does nothing */
        assert_true(get_equals(stores[s], STORE_ITEMS, NULL, SLICE_LIT("k"), SLICE_EMPTY));
    }
    store_batch_free(&b);
    pair_close(&p);
}

enum { TRIES = 20 };

/* Reads k in memory after its pages were dropped. The kernel may load them again before, on a busy disk: then the store, which now has the
 * block, is opened once more. *dropped_out: whether pages can be dropped here. */
static err get_after_drop(pair *p, bool *dropped_out, store_value *value_out) {
    err code = OK;
    *dropped_out = true;
    for (int i = 0; i < TRIES && code == OK && *dropped_out; i++) {
        store_close(p->rocks);
        p->rocks = open_rocks_tail(p->folder, SMALL_TAIL); /* writes the log's contents to a table */
        *dropped_out = drop_pages(p->folder);
        code = *dropped_out ? store_get_in_memory(p->rocks, STORE_ITEMS, SLICE_LIT("k"), value_out) : OK;
        if (code == OK && *dropped_out) {
            store_give(value_out);
        }
    }
    return code;
}

/* The same after its pages were read, which the kernel may also drop again. */
static err get_after_read(pair *p, store_value *value_out) {
    err code = E_NOT_IN_MEMORY;
    for (int i = 0; i < TRIES && code == E_NOT_IN_MEMORY; i++) {
        with_tables(p->folder, read_table);
        code = store_get_in_memory(p->rocks, STORE_ITEMS, SLICE_LIT("k"), value_out);
    }
    return code;
}

/* A get in memory does not wait for the disk. It finds what a get has loaded, and what the kernel has in its page cache. */
static void gets_in_memory_do_not_read_the_disk(void **state) {
    (void)state;
    pair p;
    store_batch b;
    store_value value;
    static char large[100000];
    pair_open(&p, 45);
    store_batch_init(&b);
    store_put(&b, STORE_ITEMS, SLICE_LIT("k"), slice_of(large, sizeof large));
    assert_int_equal(store_write(p.rocks, &b), OK);
    assert_int_equal(store_get_in_memory(p.rocks, STORE_ITEMS, SLICE_LIT("k"), &value), OK); /* from the memtable */
    store_give(&value);
    bool dropped;
    err code = get_after_drop(&p, &dropped, &value);
    if (dropped) {
        assert_int_equal(code, E_NOT_IN_MEMORY);
        assert_null(value.owner);
        assert_int_equal(get_after_read(&p, &value), OK);
        store_give(&value);
    }
    assert_int_equal(store_get(p.rocks, STORE_ITEMS, NULL, SLICE_LIT("k"), &value), OK);
    store_give(&value);
    assert_int_equal(store_get_in_memory(p.rocks, STORE_ITEMS, SLICE_LIT("k"), &value), OK);
    assert_int_equal(value.bytes.n, sizeof large);
    store_give(&value);
    assert_int_equal(store_get_in_memory(p.rocks, STORE_ITEMS, SLICE_LIT("other"), &value), E_NOT_FOUND);
    store_batch_free(&b);
    pair_close(&p);
}

/* The space of deleted ranges is freed in the background; neighbouring keys stay. */
static void reclaiming_keeps_the_neighbours(void **state) {
    (void)state;
    pair p;
    store_batch b;
    char key[16], value[1000];
    pair_open(&p, 45);
    store_batch_init(&b);
    memset(value, 'v', sizeof value);
    for (int i = 0; i < 3000; i++) {
        store_put(&b, STORE_ITEMS, slice_of(key, (size_t)snprintf(key, sizeof key, "%c%05d", "abc"[i % 3], i)),
                  slice_of(value, sizeof value));
    }
    assert_int_equal(store_write(p.rocks, &b), OK);
    assert_int_equal(store_write(p.memory, &b), OK);
    assert_true(store_bytes(p.memory, STORE_ITEMS, SLICE_LIT("b"), SLICE_LIT("c")) > 1000 * 1000);
    store_batch_clear(&b);
    store_delete_range(&b, STORE_ITEMS, SLICE_LIT("b"), SLICE_LIT("c"));
    assert_int_equal(store_write(p.rocks, &b), OK);
    assert_int_equal(store_write(p.memory, &b), OK);
    store_reclaim(p.rocks, STORE_ITEMS, SLICE_LIT("b"), SLICE_LIT("c"));
    store_reclaim(p.memory, STORE_ITEMS, SLICE_LIT("b"), SLICE_LIT("c"));
    store_close(p.rocks); /* perhaps while it reclaims */
    p.rocks = open_rocks(p.folder);
    store_reclaim(p.rocks, STORE_ITEMS, SLICE_LIT("b"), SLICE_LIT("c"));
    assert_same_store(p.memory, p.rocks, NULL, NULL);
    assert_int_equal(store_bytes(p.memory, STORE_ITEMS, SLICE_LIT("b"), SLICE_LIT("c")), 0);
    store_batch_free(&b);
    pair_close(&p);
}

/* ---- the store that fails on demand ---- */

static void write_one(store *s, const char *key, const char *value, err expected) {
    store_batch b;
    store_batch_init(&b);
    store_put(&b, STORE_META, slice_str(key), slice_str(value));
    assert_int_equal(store_write(s, &b), expected);
    store_batch_free(&b);
}

static void the_nth_call_fails(void **state) {
    (void)state;
    store_fault_plan plan = {.code = E_STORE_IO};
    store *s = store_open_fault(store_open_memory(), &plan);
    store_value value;
    write_one(s, "a", "1", OK);
    plan.write_in = 2;
    write_one(s, "a", "2", OK);
    write_one(s, "a", "3", E_STORE_IO);
    write_one(s, "b", "4", OK);
    assert_true(get_equals(s, STORE_META, NULL, SLICE_LIT("a"), SLICE_LIT("2")));
    plan.get_in = 1;
    assert_int_equal(store_get(s, STORE_META, NULL, SLICE_LIT("a"), &value), E_STORE_IO);
    assert_int_equal(value.bytes.n, 0);
    assert_true(get_equals(s, STORE_META, NULL, SLICE_LIT("a"), SLICE_LIT("2")));
    assert_int_equal(plan.fired, 2);
    store_close(s);
}

static void sticky_and_torn_failures(void **state) {
    (void)state;
    store_fault_plan plan = {.code = E_STORE_FULL, .write_in = 1, .sticky = true};
    store *s = store_open_fault(store_open_memory(), &plan);
    write_one(s, "a", "1", E_STORE_FULL);
    write_one(s, "a", "2", E_STORE_FULL);
    plan = (store_fault_plan){.code = E_STORE_IO, .write_in = 1, .torn = true};
    write_one(s, "a", "3", E_STORE_IO);
    assert_true(get_equals(s, STORE_META, NULL, SLICE_LIT("a"), SLICE_LIT("3"))); /* it reported an error, but wrote */
    store_close(s);
}

static void a_scan_breaks_and_says_so(void **state) {
    (void)state;
    store_fault_plan plan = {.code = E_STORE_CORRUPT};
    store *s = store_open_fault(store_open_memory(), &plan);
    slice key, value;
    write_one(s, "a", "1", OK);
    write_one(s, "b", "2", OK);
    plan.scan_in = 2;
    store_scan *scan = store_scan_open(s, STORE_META, NULL, SLICE_EMPTY, SLICE_EMPTY, false);
    assert_true(store_scan_next(scan, &key, &value));
    assert_false(store_scan_next(scan, &key, &value));
    assert_false(store_scan_next(scan, &key, &value)); /* it stays broken */
    assert_int_equal(store_scan_close(scan), E_STORE_CORRUPT);
    scan = store_scan_open(s, STORE_META, NULL, SLICE_EMPTY, SLICE_EMPTY, true);
    assert_true(store_scan_next(scan, &key, &value) && slice_eq(key, SLICE_LIT("b")));
    assert_int_equal(store_scan_close(scan), OK);
    store_close(s);
}

/* ---- seeking ---- */

enum { SEEK_KEYS_MAX = 600 };

/* Lists the keys in [from, to) in order, copied to the arena. */
static size_t list_keys(store *s, store_family family, slice from, slice to, arena *a, slice *keys) {
    slice key, value;
    size_t n = 0;
    store_scan *scan = store_scan_open(s, family, NULL, from, to, false);
    while (store_scan_next(scan, &key, &value) && n < SEEK_KEYS_MAX) {
        keys[n++] = arena_copy(a, key);
    }
    assert_int_equal(store_scan_close(scan), OK);
    return n;
}

/* The index of the key that the first step after a seek returns, or n for none. */
static size_t sought(const slice *keys, size_t n, slice key, bool backward) {
    size_t at = 0;
    while (at < n && slice_cmp(keys[at], key) < 0) {
        at++;
    }
    return !backward ? at : at > 0 ? at - 1 : n;
}

static void seek_in(store *s, random_source *r) {
    char from_bytes[8], to_bytes[8], key_bytes[8];
    slice keys[SEEK_KEYS_MAX], found, value;
    arena a = arena_init();
    store_family family = (store_family)random_below(r, STORE_FAMILIES);
    slice from = random_below(r, 3) ? random_key(r, from_bytes) : SLICE_EMPTY,
          to = random_below(r, 3) ? random_key(r, to_bytes) : SLICE_EMPTY;
    size_t n = list_keys(s, family, from, to, &a, keys);
    store_scan *scan = store_scan_open(s, family, NULL, from, to, random_below(r, 2));
    for (int i = 0; i < 20; i++) {
        bool backward = random_below(r, 2);
        slice key = n && random_below(r, 3) == 0 ? keys[random_below(r, n)] : random_key(r, key_bytes); /* may be out of bounds */
        store_scan_seek(scan, key, backward);
        size_t at = sought(keys, n, key, backward);
        for (uint64_t steps = random_below(r, 6); steps > 0; steps--) {
            bool there = store_scan_next(scan, &found, &value);
            assert_int_equal(there, at < n);
            if (!there) { /* the scan has ended */
                break;
            }
            assert_true(slice_eq(found, keys[at]));
            at = !backward ? at + 1 : at > 0 ? at - 1 : n;
        }
    }
    assert_int_equal(store_scan_close(scan), OK);
    arena_free(&a);
}

static void seeking_in_all_kinds(void **state) {
    (void)state;
    pair p;
    store_batch b;
    store_fault_plan plan = {.code = E_STORE_IO};
    pair_open(&p, 77);
    store *kinds[] = {p.memory, p.rocks, store_open_fault(store_open_memory(), &plan)};
    store_batch_init(&b);
    for (int round = 0; round < 60; round++) {
        write_both(&p, &b);
        assert_int_equal(store_write(kinds[2], &b), OK);
        for (int i = 0; i < 12; i++) {
            seek_in(kinds[i % 3], &p.random);
        }
    }
    store_batch_free(&b);
    store_close(kinds[2]);
    pair_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeking_in_all_kinds),
        cmocka_unit_test(memory_and_rocksdb_agree),
        cmocka_unit_test(snapshots_stand_still),
        cmocka_unit_test(a_scan_does_not_see_later_writes),
        cmocka_unit_test(values_are_pinned),
        cmocka_unit_test(reclaiming_keeps_the_neighbours),
        cmocka_unit_test(the_nth_call_fails),
        cmocka_unit_test(sticky_and_torn_failures),
        cmocka_unit_test(levels_and_tiers_open_each_other),
        cmocka_unit_test(a_scan_breaks_and_says_so),
        cmocka_unit_test(gets_in_memory_do_not_read_the_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
