/* The cache of size entries: what it knows is what the store has, whatever groups write, cut or fail to write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "item/size_cache.h"
#include "rounds.h"

enum { ENTRIES = 40, ENTRY_MAX = 200 };

typedef struct fixture {
    size_cache *cache;
    commit_group group;
    uint64_t stored[ENTRIES], pending[ENTRIES]; /* the number in the entry's value; 0: there is no entry */
} fixture;

static void set_up(fixture *f, size_t bytes) {
    *f = (fixture){.cache = size_cache_open(bytes)};
    store_batch_init(&f->group.batch);
}

static void tear_down(fixture *f) {
    store_batch_free(&f->group.batch);
    size_cache_close(f->cache);
}

/* Entry 0 is too long to be kept. */
static slice entry_of(unsigned i, char text[ENTRY_MAX]) {
    return slice_of(text, (size_t)snprintf(text, ENTRY_MAX, "%0*u", i == 0 ? 150 : 8, i));
}

static void put(fixture *f, unsigned i, uint64_t number) {
    char text[ENTRY_MAX], value[LAYOUT_SIZE_BYTES] = {0};
    slice entry = entry_of(i, text);
    memcpy(value, &number, sizeof number);
    if (number) {
        store_put(&f->group.batch, STORE_INDEX, entry, slice_of(value, sizeof value));
    } else {
        store_delete(&f->group.batch, STORE_INDEX, entry);
    }
    size_cache_written(f->cache, &f->group, entry);
    f->pending[i] = number;
}

static void end_group(fixture *f, err code) {
    commit_hook *hook = f->group.hooks;
    f->group.hooks = NULL;
    if (hook) { /* there is no other */
        assert_null(hook->next);
        hook->before(hook, &f->group);
        hook->linked = false;
        hook->after(hook, code);
    }
    memcpy(code == OK ? f->stored : f->pending, code == OK ? f->pending : f->stored, sizeof f->stored);
    store_batch_clear(&f->group.batch);
}

/* Whether the entry is known; if so it must be as stored. */
static bool knows(const fixture *f, unsigned i) {
    char text[ENTRY_MAX];
    slice value;
    uint64_t number = 0;
    if (!size_cache_find(f->cache, entry_of(i, text), &value)) {
        return false;
    }
    assert_true(value.n == 0 || value.n == LAYOUT_SIZE_BYTES);
    memcpy(&number, value.p ? value.p : "", value.n ? sizeof number : 0);
    assert_int_equal(number, f->stored[i]);
    return true;
}

static void an_entry_is_known_once_it_is_written(void **state) {
    (void)state;
    fixture f;
    set_up(&f, 1 << 20);
    assert_false(knows(&f, 1));
    put(&f, 1, 7);
    assert_false(knows(&f, 1));
    end_group(&f, OK);
    assert_true(knows(&f, 1));
    put(&f, 1, 8);
    assert_false(knows(&f, 1));
    put(&f, 1, 0);
    end_group(&f, OK);
    assert_true(knows(&f, 1)); /* that there is none */
    put(&f, 1, 9);
    end_group(&f, E_STORE_FULL);
    assert_false(knows(&f, 1));
    tear_down(&f);
}

static void a_change_that_was_cut_is_not_known(void **state) {
    (void)state;
    fixture f;
    set_up(&f, 1 << 20);
    put(&f, 1, 7);
    put(&f, 2, 7);
    end_group(&f, OK);
    store_mark mark = store_batch_mark(&f.group.batch);
    put(&f, 1, 8);
    store_batch_cut(&f.group.batch, mark);
    f.pending[1] = f.stored[1];
    put(&f, 2, 9);
    end_group(&f, OK);
    assert_false(knows(&f, 1));
    assert_true(knows(&f, 2));
    tear_down(&f);
}

static void long_entries_and_no_memory_are_fine(void **state) {
    (void)state;
    fixture f;
    set_up(&f, 1 << 20);
    put(&f, 0, 7);
    end_group(&f, OK);
    assert_false(knows(&f, 0));
    tear_down(&f);
    set_up(&f, 0);
    put(&f, 1, 7);
    end_group(&f, OK);
    assert_false(knows(&f, 1));
    tear_down(&f);
}

static void cut_some(fixture *f, random_source *r) {
    uint64_t before[ENTRIES];
    memcpy(before, f->pending, sizeof before);
    store_mark mark = store_batch_mark(&f->group.batch);
    for (uint64_t n = random_below(r, 4); n > 0; n--) {
        put(f, (unsigned)random_below(r, ENTRIES), random_below(r, 3));
    }
    store_batch_cut(&f->group.batch, mark);
    memcpy(f->pending, before, sizeof before);
}

/* With few slots, so that entries replace each other within a group. */
static void what_is_known_is_what_is_stored(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 31);
    unsigned known = 0;
    for (size_t bytes = 0; bytes <= 4096; bytes += 512) {
        fixture f;
        set_up(&f, bytes);
        for (int group = 0; group < ROUNDS(2000); group++) {
            for (uint64_t n = random_below(&r, 6); n > 0; n--) {
                random_below(&r, 4) ? put(&f, (unsigned)random_below(&r, ENTRIES), random_below(&r, 3)) : cut_some(&f, &r);
            }
            end_group(&f, random_below(&r, 8) ? OK : E_STORE_FULL);
            for (unsigned i = 0; i < ENTRIES; i++) {
                known += knows(&f, i);
            }
        }
        tear_down(&f);
    }
    assert_true(known > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_known_once_it_is_written),
        cmocka_unit_test(a_change_that_was_cut_is_not_known),
        cmocka_unit_test(long_entries_and_no_memory_are_fine),
        cmocka_unit_test(what_is_known_is_what_is_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
