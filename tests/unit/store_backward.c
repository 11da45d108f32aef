/* Long scans backward give every row once, however the keys are spread: RocksDB's are read forward in chunks whose beginnings are guessed
 * (store/rocks_back.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_harness.h"

enum { ROWS = 3000, BATCH = 100, KEY_MAX = 64 };

/* The key of row i; keys need not be unique, nor ascend. */
typedef size_t (*make_key)(random_source *r, unsigned i, char *key);

static size_t dense(random_source *r, unsigned i, char *key) {
    (void)r;
    return (size_t)snprintf(key, KEY_MAX, "table\x01%c%c%c%c", (char)(i >> 24), (char)(i >> 16), (char)(i >> 8), (char)i);
}

static size_t spread(random_source *r, unsigned i, char *key) {
    (void)i;
    memcpy(key, "t", 1);
    random_bytes(r, key + 1, 16);
    return 17;
}

/* Runs of neighbours with wide gaps between them. */
static size_t clustered(random_source *r, unsigned i, char *key) {
    (void)r;
    unsigned gap = i / 50 * 0x01234567u;
    return (size_t)snprintf(key, KEY_MAX, "c%08x-%03u", gap, i % 50);
}

/* Each key twice as far from the next as the one before. */
static size_t geometric(random_source *r, unsigned i, char *key) {
    (void)r;
    memset(key, i % 2 ? 0xFF : 0, 24);
    key[i / 16 % 24] = (char)(1 << i % 8);
    key[24] = (char)(i >> 8);
    key[25] = (char)i;
    return 26;
}

/* Prefixes of each other. */
static size_t nested(random_source *r, unsigned i, char *key) {
    (void)r;
    memset(key, 'x', 60);
    key[60] = (char)(i >> 8);
    key[61] = (char)i;
    return 1 + i % 62;
}

static void fill(store *const *stores, random_source *r, make_key key_of) {
    static char value[20000];
    store_batch b;
    store_batch_init(&b);
    for (unsigned i = 0; i < ROWS; i++) {
        char key[KEY_MAX];
        size_t n = key_of(r, i, key), size = random_below(r, 200) ? (size_t)random_below(r, 60) : sizeof value;
        random_bytes(r, value, 8);
        if (random_below(r, 12)) {
            store_put(&b, STORE_INDEX, slice_of(key, n), slice_of(value, size));
        } else {
            store_delete(&b, STORE_INDEX, slice_of(key, n));
        }
        if (i % BATCH == BATCH - 1) {
            assert_int_equal(store_write(stores[0], &b), OK);
            assert_int_equal(store_write(stores[1], &b), OK);
            store_batch_clear(&b);
        }
    }
    store_batch_free(&b);
}

/* Steps through both backward, with a seek now and then. */
static void assert_same_backward(store *const *stores, random_source *r, make_key key_of, slice from, slice to) {
    store_scan *scans[2];
    slice key, value, other_key, other_value;
    char sought[KEY_MAX];
    for (int i = 0; i < 2; i++) {
        scans[i] = store_scan_open(stores[i], STORE_INDEX, NULL, from, to, true);
    }
    for (bool there = true; there;) {
        if (random_below(r, 700) == 0) {
            slice at = slice_of(sought, key_of(r, (unsigned)random_below(r, ROWS), sought));
            bool backward = random_below(r, 4);
            store_scan_seek(scans[0], at, backward);
            store_scan_seek(scans[1], at, backward);
        }
        there = store_scan_next(scans[0], &key, &value);
        assert_int_equal(store_scan_next(scans[1], &other_key, &other_value), there);
        assert_true(!there || (slice_eq(key, other_key) && slice_eq(value, other_value)));
    }
    assert_false(store_scan_next(scans[1], &key, &value));
    assert_int_equal(store_scan_close(scans[0]), OK);
    assert_int_equal(store_scan_close(scans[1]), OK);
}

static void long_scans_agree(make_key key_of, uint64_t seed) {
    random_source r;
    char *folder = make_folder(), low[KEY_MAX], high[KEY_MAX];
    store *stores[2] = {store_open_memory(), open_rocks(folder)};
    random_seed(&r, seed);
    fill(stores, &r, key_of);
    for (int reopened = 0; reopened < 2; reopened++) { /* from a memtable, then from tables */
        assert_same_backward(stores, &r, key_of, SLICE_EMPTY, SLICE_EMPTY);
        for (int i = 0; i < 8; i++) {
            slice from = slice_of(low, key_of(&r, (unsigned)random_below(&r, ROWS), low));
            slice to = slice_of(high, key_of(&r, (unsigned)random_below(&r, ROWS), high));
            bool ordered = slice_cmp(from, to) < 0;
            assert_same_backward(stores, &r, key_of, ordered ? from : SLICE_EMPTY, to);
        }
        store_close(stores[1]);
        stores[1] = open_rocks(folder);
    }
    store_close(stores[0]);
    store_close(stores[1]);
    remove_folder(folder);
    free(folder);
}

static void dense_keys(void **state) {
    (void)state;
    long_scans_agree(dense, 1);
}

static void spread_keys(void **state) {
    (void)state;
    long_scans_agree(spread, 2);
}

static void clustered_keys(void **state) {
    (void)state;
    long_scans_agree(clustered, 3);
}

static void geometric_keys(void **state) {
    (void)state;
    long_scans_agree(geometric, 4);
}

static void nested_keys(void **state) {
    (void)state;
    long_scans_agree(nested, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_keys),     cmocka_unit_test(spread_keys), cmocka_unit_test(clustered_keys),
        cmocka_unit_test(geometric_keys), cmocka_unit_test(nested_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
