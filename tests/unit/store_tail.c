/* How index entries are stored: sorted runs and their merging, the tail in memory, and its tables. Reads are compared with the store in
 * memory over random changes, with tails so small that they are flushed all the time. Also concurrent readers, a process killed at any
 * moment, tables that cannot be written, and a damaged log. */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "rounds.h"
#include "store/rocks_int.h"
#include "store_harness.h"

enum { TINY = 400, LITTLE = 20000 };

/* ---- random changes ---- */

/* Keys from a small set, so that changes hit the same keys. */
static slice random_key(random_source *r, char into[8]) {
    static const unsigned char letters[] = {0, 1, 'a', 'b', 0x7F, 0x80, 0xFE, 0xFF};
    size_t n = 1 + (size_t)random_below(r, 4);
    for (size_t i = 0; i < n; i++) {
        into[i] = (char)letters[random_below(r, sizeof letters)];
    }
    return slice_of(into, n);
}

/* Random changes, mostly in STORE_TERMS and mostly without values. */
static void fill_terms(store_batch *b, random_source *r) {
    static char value[300];
    char key[8], to[8];
    uint64_t n = 1 + random_below(r, 40);
    for (uint64_t i = 0; i < n; i++) {
        store_family family = random_below(r, 8) ? STORE_TERMS : (store_family)random_below(r, STORE_FAMILIES);
        slice k = random_key(r, key), end = random_key(r, to);
        uint64_t kind = random_below(r, 60);
        if (kind < 35) {
            size_t size = random_below(r, 4) ? 0 : (size_t)random_below(r, sizeof value);
            random_bytes(r, value, size);
            store_put(b, family, k, slice_of(value, size));
        } else if (kind < 59) {
            store_delete(b, family, k);
        } else if (family == STORE_TERMS || slice_cmp(k, end) < 0) {
            store_delete_range(b, family, k, end); /* in STORE_TERMS the range may be empty or reversed */
        }
    }
}

static store_run *random_run(random_source *r, uint64_t number) {
    store_batch b;
    store_run *run = NULL;
    store_batch_init(&b);
    while (!run) {
        store_batch_clear(&b);
        fill_terms(&b, r);
        run = store_run_of_batch(&b);
    }
    store_batch_free(&b);
    run->first = run->last = number;
    return run;
}

/* ---- runs ---- */

static void runs_are_read_back(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 1);
    for (int round = 0; round < 200; round++) {
        store_run *run = random_run(&r, 7), *again;
        assert_int_equal(store_run_read(slice_of(run->p, run->bytes), 7, &again), OK);
        assert_int_equal(again->n, run->n);
        assert_int_equal(again->ranges_n, run->ranges_n);
        assert_memory_equal(again->at, run->at, run->n * sizeof *run->at);
        for (size_t i = 0; i < run->n; i++) {
            store_run_change a = store_run_get(run, i), b = store_run_get(again, i);
            assert_true(slice_eq(a.key, b.key) && slice_eq(a.value, b.value) && a.gone == b.gone);
            assert_int_equal(store_run_find(again, a.key), i);
        }
        store_run_give(run);
        store_run_give(again);
    }
}

/* A run that is cut anywhere, or has a byte changed, is refused or gives another valid run. */
static void damaged_runs_are_refused(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 2);
    for (int round = 0; round < 60; round++) {
        store_run *run = random_run(&r, 1), *read;
        char *bytes = malloc(run->bytes);
        assert_non_null(bytes);
        for (size_t n = 0; n < run->bytes; n++) {
            char *cut = malloc(n ? n : 1); /* a separate allocation, so that a sanitizer detects reads past the end */
            assert_non_null(cut);
            memcpy(cut, run->p, n);
            assert_int_equal(store_run_read(slice_of(cut, n), 1, &read), E_STORE_CORRUPT);
            assert_null(read);
            free(cut);
        }
        for (int flip = 0; flip < 100; flip++) {
            memcpy(bytes, run->p, run->bytes);
            bytes[random_below(&r, run->bytes)] ^= (char)(1 + random_below(&r, 255));
            if (store_run_read(slice_of(bytes, run->bytes), 1, &read) == OK) {
                for (size_t i = 1; i < read->n; i++) {
                    assert_true(slice_cmp(store_run_key(read, i - 1), store_run_key(read, i)) < 0);
                }
                store_run_give(read);
            }
        }
        free(bytes);
        store_run_give(run);
    }
}

/* ---- versions and cursors ---- */

static store_version *version_of(store_run **runs, size_t n) {
    store_version *v = calloc(1, sizeof *v + n * sizeof *v->runs);
    assert_non_null(v);
    atomic_init(&v->refs, 1);
    v->n = n;
    for (size_t i = 0; i < n; i++) {
        v->runs[i] = store_run_hold(runs[i]);
        v->ranged = runs[i]->ranges_n ? i + 1 : v->ranged;
    }
    return v;
}

static void dump_version(const store_version *v, bool backward, buf *out) {
    store_cursor cursor;
    store_cursor_open(&cursor, v);
    for (store_cursor_seek(&cursor, NULL, backward); cursor.live; store_cursor_next(&cursor)) {
        buf_add_be32(out, (uint32_t)cursor.change.key.n);
        buf_add_slice(out, cursor.change.key);
        buf_add_byte(out, cursor.change.gone ? '-' : '+');
        buf_add_be32(out, (uint32_t)cursor.change.value.n);
        buf_add_slice(out, cursor.change.value);
    }
    store_cursor_close(&cursor);
}

/* Several runs read the same as one merged run, whichever pair is merged first; by scans in both directions and by gets. */
static void merged_runs_say_the_same(void **state) {
    (void)state;
    enum { RUNS = 6 };
    random_source r;
    random_seed(&r, 3);
    for (int round = 0; round < 200; round++) {
        store_run *runs[RUNS];
        for (size_t i = 0; i < RUNS; i++) {
            runs[i] = random_run(&r, i + 1);
        }
        for (size_t n = RUNS; n > 1; n--) {
            size_t at = (size_t)random_below(&r, n - 1);
            store_version *before = version_of(runs, n);
            store_run *merged = store_run_merge(runs[at], runs[at + 1]);
            assert_true(merged->first == runs[at]->first && merged->last == runs[at + 1]->last);
            store_run_give(runs[at]);
            store_run_give(runs[at + 1]);
            runs[at] = merged;
            memmove(runs + at + 1, runs + at + 2, (n - at - 2) * sizeof *runs);
            store_version *after = version_of(runs, n - 1);
            for (int backward = 0; backward < 2; backward++) {
                buf a = buf_init(BUF_NO_LIMIT), b = buf_init(BUF_NO_LIMIT);
                dump_version(before, backward, &a);
                dump_version(after, backward, &b);
                assert_true(slice_eq(buf_view(&a), buf_view(&b)));
                buf_free(&a);
                buf_free(&b);
            }
            for (int i = 0; i < 20; i++) {
                char bytes[8];
                slice key = random_key(&r, bytes), x = SLICE_EMPTY, y = SLICE_EMPTY;
                store_run *x_run = NULL, *y_run = NULL;
                store_found found = store_version_get(before, key, &x, &x_run);
                assert_int_equal(store_version_get(after, key, &y, &y_run), found);
                assert_int_equal(store_version_covers(before, key) != NULL, store_version_covers(after, key) != NULL);
                if (found == STORE_FOUND) {
                    assert_true(slice_eq(x, y));
                    store_run_give(x_run);
                    store_run_give(y_run);
                }
            }
            store_version_give(before);
            store_version_give(after);
        }
        store_run_give(runs[0]);
    }
}

/* ---- against the store in memory ---- */

typedef struct pair {
    store *memory, *rocks;
    char *folder;
    size_t tail_bytes;
    random_source random;
    store_batch batch;
} pair;

static void pair_open(pair *p, uint64_t seed, size_t tail_bytes) {
    p->folder = make_folder();
    p->tail_bytes = tail_bytes;
    p->memory = store_open_memory();
    p->rocks = open_rocks_tail(p->folder, tail_bytes);
    random_seed(&p->random, seed);
    store_batch_init(&p->batch);
}

static void pair_close(pair *p) {
    store_close(p->memory);
    store_close(p->rocks);
    remove_folder(p->folder);
    free(p->folder);
    store_batch_free(&p->batch);
}

/* Writes the batch to both stores and clears it. */
static void write_both(pair *p) {
    assert_int_equal(store_write(p->memory, &p->batch), OK);
    assert_int_equal(store_write(p->rocks, &p->batch), OK);
    store_batch_clear(&p->batch);
}

static void assert_same(pair *p, const store_snapshot *memory_at, const store_snapshot *rocks_at) {
    buf left = dump_store(p->memory, memory_at), right = dump_store(p->rocks, rocks_at);
    assert_true(slice_eq(buf_view(&left), buf_view(&right)));
    buf_free(&left);
    buf_free(&right);
}

/* Scans of both stores in step: a few steps, then a seek in either direction. */
typedef struct walk {
    const store_snapshot *memory_at, *rocks_at;
    store_scan *memory, *rocks;
} walk;

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

/* ---- stems ---- */

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
    uint64_t steps = random_below(&p->random, 12);
    if (random_below(&p->random, 3) == 0) {
        char bytes[32];
        uint64_t be = htobe64(random_below(&p->random, NUMBERS));
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

/* A large tail is flushed at close, so that the next start need not read it; even if a lookup's iterator is still in the pool. */
static void a_large_tail_is_settled_at_the_end(void **state) {
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

/* ---- the tail by itself ---- */

typedef struct settler {
    sem_t called, go;
    err code;
    atomic_uint flushed;
} settler;

static err settle_when_told(void *context, const store_version *runs) {
    settler *s = context;
    assert_true(runs->n > 0);
    sem_post(&s->called);
    while (sem_wait(&s->go) != 0) {
    }
    s->flushed += s->code == OK;
    return s->code;
}

static store_tail *tail_with(settler *s, size_t bytes) {
    sem_init(&s->called, 0, 0);
    sem_init(&s->go, 0, 0);
    store_tail_options options = {.bytes = bytes, .flush = settle_when_told, .context = s};
    return store_tail_open(&options);
}

static void tail_write(store_tail *tail, random_source *r) {
    store_run *run = random_run(r, 0);
    run->first = run->last = store_tail_begin(tail);
    store_tail_end(tail, run, true);
}

static void tail_write_until_full(store_tail *tail, random_source *r, size_t bytes) {
    while (store_tail_held(tail) <= bytes) {
        tail_write(tail, r);
    }
}

/* A merge may shrink the tail before it is flushed: then more is written. */
static void await_call(store_tail *tail, random_source *r, settler *s, size_t bytes) {
    struct timespec until;
    do {
        tail_write_until_full(tail, r, bytes);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
    } while (sem_timedwait(&s->called, &until) != 0);
}

static void *admit(void *context) {
    return (void *)(uintptr_t)(store_tail_admit(context) == OK);
}

static void the_writer_waits_for_the_keeper(void **state) {
    (void)state;
    settler s = {.code = OK};
    random_source r;
    pthread_t waiting;
    void *admitted = NULL;
    store_tail *tail = tail_with(&s, 10000);
    random_seed(&r, 30);
    await_call(tail, &r, &s, 10000);
    tail_write_until_full(tail, &r, 20000); /* more runs come during the flush, and are admitted */
    assert_int_equal(store_tail_admit(tail), OK);
    tail_write_until_full(tail, &r, 30000);
    size_t before = store_tail_held(tail);
    assert_int_equal(pthread_create(&waiting, NULL, admit, tail), 0);
    sem_post(&s.go);
    pthread_join(waiting, &admitted);
    assert_non_null(admitted);
    assert_true(store_tail_held(tail) < before && s.flushed == 1);
    sem_post(&s.go);
    store_tail_close(tail, true);
    sem_destroy(&s.called);
    sem_destroy(&s.go);
}

/* Nothing is lost while flushing fails. The writer gets an error when the tail is too large; after a successful flush it can write
 * again. */
static void settling_fails_and_is_tried_again(void **state) {
    (void)state;
    settler s = {.code = E_STORE_FULL};
    random_source r;
    store_tail *tail = tail_with(&s, 10000);
    random_seed(&r, 31);
    tail_write_until_full(tail, &r, 30000);
    store_version *before = store_tail_take(tail);
    assert_int_equal(sem_wait(&s.called), 0);
    sem_post(&s.go);
    assert_int_equal(store_tail_admit(tail), E_STORE_FULL);
    assert_true(store_tail_held(tail) > 30000);
    s.code = OK;
    assert_int_equal(sem_wait(&s.called), 0); /* about a second later */
    sem_post(&s.go);
    while (store_tail_held(tail) > 10000) {
        usleep(1000);
    }
    assert_int_equal(store_tail_admit(tail), OK);
    buf dump = buf_init(BUF_NO_LIMIT);
    dump_version(before, false, &dump); /* the version is still readable while it is held */
    assert_true(dump.n > 1000);
    buf_free(&dump);
    store_version_give(before);
    sem_post(&s.go);
    store_tail_close(tail, true);
    sem_destroy(&s.called);
    sem_destroy(&s.go);
}

/* Without writes, all runs are merged into one. */
static void an_idle_tail_is_one_run(void **state) {
    (void)state;
    random_source r;
    store_tail_options options = {.bytes = 1 << 20};
    store_tail *tail = store_tail_open(&options);
    buf before = buf_init(BUF_NO_LIMIT), after = buf_init(BUF_NO_LIMIT);
    random_seed(&r, 32);
    store_version *v = store_tail_take(tail);
    while (v->n < 3) {
        store_version_give(v);
        tail_write(tail, &r);
        v = store_tail_take(tail);
    }
    dump_version(v, true, &before);
    for (int i = 0; v->n > 1 && i < 10000; i++) {
        usleep(1000);
        store_version_give(v);
        v = store_tail_take(tail);
    }
    assert_int_equal(v->n, 1);
    dump_version(v, true, &after);
    assert_true(slice_eq(buf_view(&before), buf_view(&after)));
    store_version_give(v);
    store_tail_close(tail, true);
    buf_free(&before);
    buf_free(&after);
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
        cmocka_unit_test(runs_are_read_back),
        cmocka_unit_test(damaged_runs_are_refused),
        cmocka_unit_test(merged_runs_say_the_same),
        cmocka_unit_test(a_killed_writer_leaves_whole_batches),
        cmocka_unit_test(stores_agree_whatever_the_tail),
        cmocka_unit_test(stems_agree_whatever_the_tail),
        cmocka_unit_test(lists_are_made_and_dropped),
        cmocka_unit_test(lists_make_room),
        cmocka_unit_test(a_large_tail_is_settled_at_the_end),
        cmocka_unit_test(bytes_and_reclaiming),
        cmocka_unit_test(the_writer_waits_for_the_keeper),
        cmocka_unit_test(settling_fails_and_is_tried_again),
        cmocka_unit_test(an_idle_tail_is_one_run),
        cmocka_unit_test(readers_see_whole_batches),
        cmocka_unit_test(a_table_that_cannot_be_written),
        cmocka_unit_test(a_damaged_log_is_refused),
        cmocka_unit_test(a_large_damaged_log_stays_as_it_is),
        cmocka_unit_test(a_file_left_by_a_crash_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
