/* Sorting the changes of a batch: as comparing whole keys would, whatever the keys have in common. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "store/batch_order.h"

enum { MOST = 3000, KEY_BYTES = 400 };

typedef size_t (*key_maker)(random_source *r, size_t i, char *key);

/* Short keys of few different bytes, so that many are equal, or begin alike and end with zeros. */
static size_t short_key(random_source *r, size_t i, char *key) {
    (void)i;
    size_t n = random_below(r, 20);
    for (size_t j = 0; j < n; j++) {
        key[j] = (char)(random_below(r, 4) ? 0 : random_below(r, 3) - 1);
    }
    return n;
}

/* As index entries: a segment, one of some paths, a value, a number. */
static size_t entry_key(random_source *r, size_t i, char *key) {
    unsigned path = (unsigned)random_below(r, 30);
    return (size_t)snprintf(key, KEY_BYTES, "g0000-%08x-path-value%0*u-%08zu", path * 2654435761u, (int)(path % 7), path * 77, i / 2);
}

/* Each of them begins as the one before, for longer than the recursion goes. */
static size_t deep_key(random_source *r, size_t i, char *key) {
    size_t n = random_below(r, KEY_BYTES / 2) + i % (KEY_BYTES / 2);
    memset(key, 'a', n);
    return n;
}

static size_t same_key(random_source *r, size_t i, char *key) {
    (void)r, (void)i;
    return (size_t)snprintf(key, KEY_BYTES, "the same key of every change");
}

static void check(const store_change *changes, const batch_point *list, size_t n) {
    bool *seen = calloc(n, 1);
    assert_non_null(seen);
    for (size_t i = 0; i < n; i++) {
        assert_true(list[i].index < n && !seen[list[i].index]);
        seen[list[i].index] = true;
        int c = i ? slice_cmp(changes[list[i - 1].index].key, changes[list[i].index].key) : -1;
        assert_true(c <= 0);
        assert_true(c < 0 || list[i - 1].index < list[i].index);
        assert_int_equal(i && store_batch_is_last(changes, list, n, i - 1), i && c < 0);
    }
    free(seen);
}

static void sort(random_source *r, key_maker make, size_t n) {
    char key[KEY_BYTES];
    store_batch b;
    batch_point *list = calloc(2 * n + 1, sizeof *list);
    assert_non_null(list);
    store_batch_init(&b);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = make(r, i, key);
        store_put_unsought(&b, STORE_TERMS, slice_of(key, bytes));
        list[i].index = (uint32_t)i;
    }
    store_batch_order(b.changes, list, list + n, n);
    check(b.changes, list, n);
    store_batch_free(&b);
    free(list);
}

static void sorted_as_by_whole_keys(void **state) {
    (void)state;
    static const key_maker makers[] = {short_key, entry_key, deep_key, same_key};
    random_source r;
    random_seed(&r, 5);
    for (size_t m = 0; m < sizeof makers / sizeof *makers; m++) {
        for (size_t n = 0; n < 40; n++) {
            sort(&r, makers[m], n);
        }
        for (int round = 0; round < 10; round++) {
            sort(&r, makers[m], random_below(&r, MOST));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sorted_as_by_whole_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
