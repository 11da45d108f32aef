/* Scans of one stem, which is what the entries of one value begin with: reused iterators and lists of numbers agree with the store in
 * memory while tails are flushed, and stay within their memory. */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rounds.h"
#include "store_tail_harness.h"

enum { STEMS = 7, NUMBERS = 40 };

/* Builds a stem that is not a prefix of another, as stems of index entries are, followed by a number. */
static slice stem_key(unsigned stem, uint64_t number, char bytes[32]) {
    uint64_t be = htobe64(number);
    size_t n = (size_t)snprintf(bytes, 24, "path%c%0*u", 'a' + (int)stem % 3, (int)stem % 3 + 1, stem) + 1;
    memcpy(bytes + n, &be, sizeof be);
    return slice_of(bytes, n + sizeof be);
}

static slice random_stem_key(random_source *r, char bytes[32]) {
    return stem_key((unsigned)random_below(r, STEMS), random_below(r, NUMBERS), bytes);
}

static void fill_stems(store_batch *b, random_source *r) {
    char from[32], to[32];
    for (uint64_t n = 1 + random_below(r, 6); n; n--) {
        if (random_below(r, 3)) {
            store_put(b, STORE_TERMS, random_stem_key(r, from), SLICE_EMPTY);
        } else {
            store_delete(b, STORE_TERMS, random_stem_key(r, from));
        }
    }
    if (random_below(r, 40) == 0) { /* deletes a path with all its stems, or a part of a stem */
        slice first = random_stem_key(r, from), second = random_stem_key(r, to);
        bool turned = slice_cmp(second, first) < 0;
        store_delete_range(b, STORE_TERMS, turned ? second : first, turned ? first : second);
    }
}

static void stem_open(pair *p, walk *w, char stem_bytes[32], slice *stem_out) {
    char after[32];
    slice stem = random_stem_key(&p->random, stem_bytes);
    bool snapshot = random_below(&p->random, 2);
    stem.n -= 8;
    memcpy(after, stem.p, stem.n);
    after[stem.n - 1] = 1; /* the stem ends with a zero byte */
    w->memory_at = snapshot ? store_snapshot_take(p->memory) : NULL;
    w->rocks_at = snapshot ? store_snapshot_take(p->rocks) : NULL;
    w->memory = store_stem_open(p->memory, w->memory_at, stem, slice_of(after, stem.n), false);
    w->rocks = store_stem_open(p->rocks, w->rocks_at, stem, slice_of(after, stem.n), random_below(&p->random, 2));
    *stem_out = stem;
}

static void stem_walk(pair *p, walk *w, slice stem) {
    slice a, b, x, y;
    uint64_t steps = random_below(&p->random, 3) ? random_below(&p->random, 12) : 2 * NUMBERS;
    if (random_below(&p->random, 3) == 0) {
        char bytes[32];
        uint64_t be = htobe64(random_below(&p->random, random_below(&p->random, 2) ? 3 : NUMBERS));
        memcpy(bytes, stem.p, stem.n);
        memcpy(bytes + stem.n, &be, sizeof be);
        store_scan_seek(w->memory, slice_of(bytes, stem.n + 8), false);
        store_scan_seek(w->rocks, slice_of(bytes, stem.n + 8), false);
    }
    for (bool more = true; more && steps; steps--) {
        more = store_scan_next(w->memory, &a, &x);
        assert_int_equal(store_scan_next(w->rocks, &b, &y), more);
        assert_true(!more || slice_eq(a, b));
    }
}

static void stem_close(pair *p, walk *w) {
    assert_int_equal(store_scan_close(w->memory), OK);
    assert_int_equal(store_scan_close(w->rocks), OK);
    if (w->rocks_at) {
        store_snapshot_give(p->memory, w->memory_at);
        store_snapshot_give(p->rocks, w->rocks_at);
    }
    *w = (walk){0};
}

/* Reuses iterators, and makes and drops lists, while tails are flushed in between. */
static void stems_agree_whatever_the_tail(void **state) {
    (void)state;
    enum { WALKS = 6 };
    static const size_t tails[] = {1, 200, TINY, LITTLE, 0};
    for (size_t t = 0; t < sizeof tails / sizeof *tails; t++) {
        pair p;
        walk walks[WALKS] = {0};
        char bytes[WALKS][32];
        slice stems[WALKS];
        pair_open(&p, 30 + t, tails[t]);
        for (int round = 0; round < (tails[t] == 1 ? 200 : ROUNDS(1500)); round++) {
            size_t i = (size_t)random_below(&p.random, WALKS);
            if (random_below(&p.random, 2)) {
                fill_stems(&p.batch, &p.random);
                write_both(&p);
            }
            if (!walks[i].rocks) {
                stem_open(&p, &walks[i], bytes[i], &stems[i]);
            }
            stem_walk(&p, &walks[i], stems[i]);
            if (random_below(&p.random, 3) == 0) {
                stem_close(&p, &walks[i]);
            }
        }
        for (size_t i = 0; i < WALKS; i++) {
            if (walks[i].rocks) {
                stem_close(&p, &walks[i]);
            }
        }
        pair_close(&p);
    }
}

/* ---- lists ---- */

/* The store's own threads also drop lists and iterators, so the counts are read under the lock. */
static size_t read_locked(pthread_mutex_t *lock, const size_t *number) {
    pthread_mutex_lock(lock);
    size_t now = *number;
    pthread_mutex_unlock(lock);
    return now;
}

static size_t lists_of(const pair *p) {
    kept_lists *kept = &((rocks *)p->rocks)->kept;
    return read_locked(&kept->lock, &kept->n);
}

static size_t idle_of(const pair *p) {
    idle_iterators *idle = &((rocks *)p->rocks)->idle;
    return read_locked(&idle->lock, &idle->n);
}

static void put_numbers(pair *p, unsigned stem, uint64_t from, uint64_t to) {
    char bytes[32];
    for (uint64_t number = from; number < to; number++) {
        store_put(&p->batch, STORE_TERMS, stem_key(stem, number, bytes), SLICE_EMPTY);
    }
    write_both(p);
}

static void settle_all(pair *p) {
    store_tail_drain(((rocks *)p->rocks)->tail);
}

/* Scans a whole stem in both stores, then from some numbers in it. */
static void walk_stem(pair *p, unsigned stem) {
    char bytes[32], after[32];
    slice key = stem_key(stem, 0, bytes), a, b, x, y;
    slice begins = slice_of(key.p, key.n - 8);
    memcpy(after, begins.p, begins.n);
    after[begins.n - 1] = 1;
    store_scan *memory = store_stem_open(p->memory, NULL, begins, slice_of(after, begins.n), true);
    store_scan *rocks = store_stem_open(p->rocks, NULL, begins, slice_of(after, begins.n), true);
    for (bool more = true; more;) {
        more = store_scan_next(memory, &a, &x);
        assert_int_equal(store_scan_next(rocks, &b, &y), more);
        assert_true(!more || (slice_eq(a, b) && slice_eq(x, y)));
    }
    for (int i = 0; i < 40; i++) {
        char sought[32];
        slice to = stem_key(stem, random_below(&p->random, 700), sought);
        to.n -= i % 4 == 3 ? (size_t)random_below(&p->random, 12) : 0; /* cut within the number or the stem */
        store_scan_seek(memory, to, false);
        store_scan_seek(rocks, to, false);
        bool more = store_scan_next(memory, &a, &x);
        assert_int_equal(store_scan_next(rocks, &b, &y), more);
        assert_true(!more || slice_eq(a, b));
    }
    assert_int_equal(store_scan_close(memory), OK);
    assert_int_equal(store_scan_close(rocks), OK);
}

/* A list is made once scans of a stem have cost as much as the list. Later writes are laid over it; a new table drops it. */
static void lists_are_made_and_dropped(void **state) {
    (void)state;
    pair p;
    char from[32], to[32];
    pair_open(&p, 50, LITTLE);
    put_numbers(&p, 1, 0, 500);
    put_numbers(&p, 2, 100, 600);
    settle_all(&p);
    assert_int_equal(lists_of(&p), 0);
    walk_stem(&p, 1);
    assert_int_equal(lists_of(&p), 0);
    walk_stem(&p, 1);
    assert_int_equal(lists_of(&p), 1);
    walk_stem(&p, 2);
    walk_stem(&p, 2);
    assert_int_equal(lists_of(&p), 2);

    put_numbers(&p, 1, 480, 520);
    store_delete(&p.batch, STORE_TERMS, stem_key(1, 7, from));
    store_delete_range(&p.batch, STORE_TERMS, stem_key(1, 100, from), stem_key(1, 200, to));
    write_both(&p);
    put_numbers(&p, 1, 150, 151);
    walk_stem(&p, 1);
    assert_int_equal(lists_of(&p), 2);

    settle_all(&p);
    assert_int_equal(lists_of(&p), 0);
    walk_stem(&p, 1);
    walk_stem(&p, 1);
    assert_int_equal(lists_of(&p), 1);
    pair_close(&p);
}

static uint64_t walked_without(kept_lists *kept) {
    uint64_t sum = 0;
    pthread_mutex_lock(&kept->lock);
    for (size_t i = 0; i < ASKED_MAX; i++) {
        sum += kept->asked[i].walked;
    }
    pthread_mutex_unlock(&kept->lock);
    return sum;
}

/* Lists stay within their memory limit; a list that is used again and again is kept. */
static void lists_make_room(void **state) {
    (void)state;
    enum { MANY = 40, EACH = 2500 };
    pair p;
    pair_open(&p, 51, 1 << 20);
    kept_lists *kept = &((rocks *)p.rocks)->kept;
    for (unsigned stem = 0; stem < MANY; stem++) {
        put_numbers(&p, stem, 0, EACH);
    }
    settle_all(&p);
    for (unsigned stem = 0; stem < MANY; stem++) {
        walk_stem(&p, stem);
        walk_stem(&p, stem);
        walk_stem(&p, 0);
        assert_true(read_locked(&kept->lock, &kept->bytes) <= kept->bytes_max && lists_of(&p) >= 1);
    }
    assert_true(lists_of(&p) < MANY && lists_of(&p) > 10);
    uint64_t before = walked_without(kept);
    walk_stem(&p, 0);
    assert_int_equal(walked_without(kept), before);
    pair_close(&p);
}

/* ---- short lists ---- */

/* Reads the whole stem in both stores, from number 1 on as lookups do. Returns how many entries it has. */
static size_t read_stem(pair *p, unsigned stem, const store_snapshot *memory_at, const store_snapshot *rocks_at) {
    char bytes[32], after[32];
    slice key = stem_key(stem, 1, bytes), begins = slice_of(key.p, key.n - 8), a, b, x, y;
    size_t n = 0;
    memcpy(after, begins.p, begins.n);
    after[begins.n - 1] = 1;
    store_scan *memory = store_stem_open(p->memory, memory_at, begins, slice_of(after, begins.n), false);
    store_scan *rocks = store_stem_open(p->rocks, rocks_at, begins, slice_of(after, begins.n), false);
    store_scan_seek(memory, key, false);
    store_scan_seek(rocks, key, false);
    for (bool more = true; more; n += more) {
        more = store_scan_next(memory, &a, &x);
        assert_int_equal(store_scan_next(rocks, &b, &y), more);
        assert_true(!more || (slice_eq(a, b) && slice_eq(x, y)));
    }
    assert_int_equal(store_scan_close(memory), OK);
    assert_int_equal(store_scan_close(rocks), OK);
    return n;
}

/* Whether a reader of the snapshot, or of the present state, is given a list. */
static bool is_listed(const pair *p, unsigned stem, const store_snapshot *at) {
    char bytes[32];
    rocks *r = (rocks *)p->rocks;
    slice key = stem_key(stem, 0, bytes);
    store_version *version = at ? store_version_hold(at->version) : store_tail_take(r->tail);
    store_scan *scan = store__short_scan(r, version->number, slice_of(key.p, key.n - 8));
    store_version_give(version);
    return scan && store_scan_close(scan) == OK;
}

/* A list is noted by the first scan of its stem. It is given to all who see the same entries, and only to them. */
static void short_lists_follow_the_batches(void **state) {
    (void)state;
    pair p;
    char from[32], to[32];
    pair_open(&p, 53, LITTLE);
    put_numbers(&p, 1, 0, 50);
    put_numbers(&p, 2, 10, 20);
    assert_false(is_listed(&p, 1, NULL));
    assert_int_equal(read_stem(&p, 1, NULL, NULL), 49);
    assert_int_equal(read_stem(&p, 3, NULL, NULL), 0);
    assert_true(is_listed(&p, 1, NULL) && is_listed(&p, 3, NULL));
    put_numbers(&p, 2, 20, 21);
    assert_true(is_listed(&p, 1, NULL) && is_listed(&p, 3, NULL));

    const store_snapshot *memory_before = store_snapshot_take(p.memory), *before = store_snapshot_take(p.rocks);
    assert_true(is_listed(&p, 1, before));
    put_numbers(&p, 1, 60, 61);
    put_numbers(&p, 3, 5, 6);
    assert_false(is_listed(&p, 1, NULL) || is_listed(&p, 1, before) || is_listed(&p, 3, NULL));
    assert_int_equal(read_stem(&p, 1, memory_before, before), 49); /* too old to be listed */
    assert_false(is_listed(&p, 1, NULL) || is_listed(&p, 1, before));
    assert_int_equal(read_stem(&p, 1, NULL, NULL), 50);
    assert_int_equal(read_stem(&p, 3, NULL, NULL), 1);
    assert_true(is_listed(&p, 1, NULL) && !is_listed(&p, 1, before));
    assert_int_equal(read_stem(&p, 1, memory_before, before), 49);
    assert_true(is_listed(&p, 1, NULL));
    store_snapshot_give(p.memory, memory_before);
    store_snapshot_give(p.rocks, before);

    settle_all(&p); /* a flush changes no list */
    assert_true(is_listed(&p, 1, NULL));
    assert_int_equal(read_stem(&p, 1, NULL, NULL), 50);
    store_delete(&p.batch, STORE_TERMS, stem_key(1, 7, from));
    write_both(&p);
    assert_false(is_listed(&p, 1, NULL));
    assert_int_equal(read_stem(&p, 1, NULL, NULL), 49);
    store_delete_range(&p.batch, STORE_TERMS, stem_key(1, 20, from), stem_key(1, 30, to));
    write_both(&p);
    assert_false(is_listed(&p, 1, NULL));
    assert_int_equal(read_stem(&p, 1, NULL, NULL), 39);
    assert_true(is_listed(&p, 1, NULL));
    pair_close(&p);
}

/* Only whole and short stems are listed. Lists stay within their memory limit. */
static void short_lists_have_bounds(void **state) {
    (void)state;
    pair p;
    pair_open(&p, 54, 1 << 20);
    short_lists *t = &((rocks *)p.rocks)->short_lists;
    put_numbers(&p, 1, 1, SHORT_MAX + 1);
    put_numbers(&p, 2, 1, SHORT_MAX + 2);
    assert_int_equal(read_stem(&p, 1, NULL, NULL), SHORT_MAX);
    assert_int_equal(read_stem(&p, 2, NULL, NULL), SHORT_MAX + 1);
    assert_true(is_listed(&p, 1, NULL) && !is_listed(&p, 2, NULL));
    store_put(&p.batch, STORE_TERMS, stem_key(3, 5, (char[32]){0}), SLICE_LIT("value"));
    write_both(&p);
    assert_int_equal(read_stem(&p, 3, NULL, NULL), 1);
    assert_false(is_listed(&p, 3, NULL));
    for (unsigned stem = 10; stem < 7000; stem++) {
        put_numbers(&p, stem, 1, 8);
        assert_int_equal(read_stem(&p, stem, NULL, NULL), 7);
    }
    size_t listed = 0;
    for (unsigned stem = 10; stem < 7000; stem++) {
        listed += is_listed(&p, stem, NULL);
    }
    for (size_t i = 0; i < SHORT_SHARDS; i++) {
        assert_true(read_locked(&t->shards[i].lock, &t->shards[i].bytes) <= t->bytes_max);
    }
    assert_true(listed > 1000 && listed < 5000);
    pair_close(&p);
}

/* A large tail is flushed at close, so that the next start need not read it; even if a lookup's iterator is still in the pool. */
static void a_large_tail_is_flushed_at_the_end(void **state) {
    (void)state;
    pair p;
    pair_open(&p, 52, 0);
    for (unsigned stem = 0; stem < 60; stem++) {
        put_numbers(&p, stem, 0, 1000);
    }
    assert_true(store_tail_held(((rocks *)p.rocks)->tail) > 1024 * 1024);
    char bytes[32], to[32];
    store_delete_range(&p.batch, STORE_TERMS, stem_key(2, 7, bytes),
                       stem_key(2, 9, to)); /* RocksDB must flush it before it ingests a table */
    write_both(&p);
    slice key = stem_key(1, 0, bytes), found, value;
    for (int tries = 0; idle_of(&p) == 0; tries++) { /* retry if it took so long that the iterator expired */
        assert_true(tries < 100);
        store_scan *scan = store_stem_open(p.rocks, NULL, slice_of(key.p, key.n - 8), SLICE_LIT("z"), false);
        assert_true(store_scan_next(scan, &found, &value));
        assert_int_equal(store_scan_close(scan), OK);
    }
    store_close(p.rocks);
    p.rocks = open_rocks_tail(p.folder, 0);
    assert_int_equal(store_tail_held(((rocks *)p.rocks)->tail), 0);
    assert_same(&p, NULL, NULL);
    pair_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stems_agree_whatever_the_tail),
        cmocka_unit_test(lists_are_made_and_dropped),
        cmocka_unit_test(lists_make_room),
        cmocka_unit_test(short_lists_follow_the_batches),
        cmocka_unit_test(short_lists_have_bounds),
        cmocka_unit_test(a_large_tail_is_flushed_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
