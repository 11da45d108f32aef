/* Deleted entries are merged away once they are a good part of a family and nothing is written: space comes back, and scans no longer step
 * over them. What a snapshot still needs stays, and is not merged again and again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/figures.h"
#include "store_harness.h"

enum {
    ITEMS = 24000,
    LEFT = 4,
    VALUE_BYTES = 200,
    TAIL_BYTES = 64 * 1024,
    LARGE_TAIL_BYTES = 32 * 1024 * 1024,
    IN_TAIL = 3000,
    GROUP = 500,
    WAIT_MS = 60 * 1000,
    STEP_MS = 50,
    QUIET_MS = 12 * 1000,
    KEY_BYTES = 100
};

static slice item_key(unsigned i, char bytes[32]) {
    return slice_of(bytes, (size_t)snprintf(bytes, 32, "item-%08u", i));
}

static slice term_key(unsigned i, char bytes[KEY_BYTES]) {
    static const char path[] = "term-of-a-path-with-a-long-name-as-some-have";
    return slice_of(bytes, (size_t)snprintf(bytes, KEY_BYTES, "%s-%08x-%08u-%08u", path, i * 2654435761u, i % 10, i));
}

static slice value_of(unsigned i, char bytes[VALUE_BYTES]) {
    random_source random;
    random_seed(&random, i + 1);
    random_bytes(&random, bytes, VALUE_BYTES);
    return slice_of(bytes, VALUE_BYTES);
}

/* Writes all items, or deletes all but one of LEFT. */
static void write_items(store *s, bool delete) {
    char key[KEY_BYTES], value[VALUE_BYTES];
    for (unsigned i = 0; i < ITEMS;) {
        store_batch batch;
        store_batch_init(&batch);
        for (unsigned end = i + GROUP; i < end; i++) {
            if (delete &&i % LEFT) {
                store_delete(&batch, STORE_ITEMS, item_key(i, key));
                store_delete(&batch, STORE_TERMS, term_key(i, key));
            } else if (!delete) {
                store_put(&batch, STORE_ITEMS, item_key(i, key), value_of(i, value));
                store_put(&batch, STORE_TERMS, term_key(i, key), value_of(i, value));
            }
        }
        assert_int_equal(store_write(s, &batch), OK);
        store_batch_free(&batch);
    }
}

static const store_family_figures *family(const store_figures *figures, store_family f) {
    return &figures->families[f];
}

static uint64_t jobs_of(store *s, store_family f) {
    uint64_t jobs = 0;
    store_figures figures;
    assert_true(store_measure(s, &figures));
    for (size_t level = 0; level < STORE_LEVELS; level++) {
        jobs += family(&figures, f)->levels[level].jobs;
    }
    return jobs;
}

static void assert_is_there(store *s, const store_snapshot *at, unsigned i, bool there) {
    char key[32], value[VALUE_BYTES];
    slice expected = there ? value_of(i, value) : (slice){0};
    assert_true(get_equals(s, STORE_ITEMS, at, item_key(i, key), expected));
}

/* There is one entry for each item that is left, and fewer deletes with theirs than a merge is worth: on a slow machine one begins before
 * the last items are deleted. Some of those deletes of index entries that are still in the tail stay there. */
static bool is_merged(store *s, store_family f) {
    store_figures figures;
    assert_true(store_measure(s, &figures));
    uint64_t entries = family(&figures, f)->entries, deletions = family(&figures, f)->deletions;
    return deletions < (entries - deletions) / 4 && entries - 2 * deletions <= ITEMS / LEFT + (f == STORE_TERMS ? IN_TAIL : 0);
}

static store *open_filled(const char *base, size_t tail_bytes) {
    store *s = open_rocks_tail(base, tail_bytes);
    write_items(s, false);
    store_close(s);
    return open_rocks_tail(base, tail_bytes);
}

static void check_deleting(size_t tail_bytes) {
    char *base = make_folder();
    store *s = open_filled(base, tail_bytes);
    store_figures figures;
    write_items(s, true);
    for (int ms = 0; ms < WAIT_MS && !(is_merged(s, STORE_ITEMS) && is_merged(s, STORE_TERMS)); ms += STEP_MS) {
        usleep(STEP_MS * 1000);
    }
    assert_true(is_merged(s, STORE_ITEMS));
    assert_true(is_merged(s, STORE_TERMS));
    assert_true(store_measure(s, &figures));
    assert_true(family(&figures, STORE_ITEMS)->bytes < ITEMS * VALUE_BYTES * 4 / 10);
    for (unsigned i = 0; i < ITEMS; i += 97) {
        assert_is_there(s, NULL, i, i % LEFT == 0);
    }
    store_close(s);
    remove_folder(base);
    free(base);
}

static void deleting_gives_its_space_back(void **state) {
    (void)state;
    check_deleting(TAIL_BYTES);
}

/* The deletes of index entries do not fill the tail. */
static void also_with_a_large_tail(void **state) {
    (void)state;
    check_deleting(LARGE_TAIL_BYTES);
}

static void what_a_snapshot_needs_stays(void **state) {
    (void)state;
    char *base = make_folder();
    store *s = open_filled(base, TAIL_BYTES);
    uint64_t jobs = jobs_of(s, STORE_ITEMS);
    const store_snapshot *at = store_snapshot_take(s);
    write_items(s, true);
    for (int ms = 0; ms < WAIT_MS && jobs_of(s, STORE_ITEMS) < jobs + 2; ms += STEP_MS) { /* a flush, a merge */
        usleep(STEP_MS * 1000);
    }
    jobs = jobs_of(s, STORE_ITEMS);
    assert_is_there(s, at, 1, true);
    assert_is_there(s, NULL, 1, false);
    usleep(QUIET_MS * 1000);
    assert_int_equal(jobs_of(s, STORE_ITEMS), jobs); /* not merged again: that would free nothing */
    store_snapshot_give(s, at);
    store_close(s);
    remove_folder(base);
    free(base);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deleting_gives_its_space_back),
        cmocka_unit_test(also_with_a_large_tail),
        cmocka_unit_test(what_a_snapshot_needs_stays),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
