/* Sorted runs of index entries and their merging, and the tail of runs by itself: the writer waits for flushes, a flush fails, an idle tail
 * becomes one run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lz4.h>
#include <time.h>

#include "store_tail_harness.h"

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

/* A run of `n` keys that begin alike, as index entries do. */
static store_run *long_run(unsigned n) {
    store_batch b;
    char key[64];
    store_batch_init(&b);
    for (unsigned i = 0; i < n; i++) {
        store_put(&b, STORE_TERMS, slice_of(key, (size_t)snprintf(key, sizeof key, "container/path/value-%08u-%08u", i / 7, i)),
                  SLICE_EMPTY);
    }
    store_run *run = store_run_of_batch(&b);
    store_batch_free(&b);
    run->first = run->last = 9;
    return run;
}

/* Keys that have the beginning, the end, both or nothing in common with the one before, short ones among them; values, deletes and ranges.
 */
static store_run *varied_run(random_source *r) {
    store_batch b;
    char key[80], value[300] = {0};
    store_batch_init(&b);
    for (uint64_t i = random_below(r, 3); i > 0; i--) {
        store_delete_range(&b, STORE_TERMS, SLICE_LIT("a"), slice_of("zz", random_below(r, 2) + 1));
    }
    for (uint64_t i = 30 + random_below(r, 300); i > 0; i--) {
        size_t n = random_below(r, 9) ? 60 : random_below(r, 12), begin = random_below(r, 40), end = random_below(r, 9);
        memset(key, 'k', sizeof key);
        if (begin + end < n) {
            random_bytes(r, key + begin, random_below(r, n - begin - end));
        }
        uint64_t kind = random_below(r, 8);
        if (kind == 0) {
            store_delete(&b, STORE_TERMS, slice_of(key, n));
        } else {
            store_put(&b, STORE_TERMS, slice_of(key, n), slice_of(value, kind == 1 ? random_below(r, sizeof value) : 0));
        }
    }
    store_run *run = store_run_of_batch(&b);
    store_batch_free(&b);
    run->first = run->last = 9;
    return run;
}

static void check_read_back(const store_run *run, slice logged) {
    store_run *again;
    assert_int_equal(store_run_read(logged, 9, &again), OK);
    assert_int_equal(again->bytes, run->bytes);
    assert_memory_equal(again->p, run->p, run->bytes);
    assert_int_equal(again->n, run->n);
    assert_int_equal(again->ranges_n, run->ranges_n);
    assert_int_equal(again->last, 9);
    store_run_give(again);
}

/* As earlier versions logged long runs. */
static slice compressed(const store_run *run, buf *out) {
    uint32_t size = (uint32_t)run->bytes;
    int most = LZ4_compressBound((int)run->bytes);
    buf_clear(out);
    buf_grow(out, 5 + (size_t)most);
    out->p[0] = 2;
    memcpy(out->p + 1, &size, sizeof size);
    out->n = 5 + (size_t)LZ4_compress_default(run->p, out->p + 5, (int)run->bytes, most);
    return buf_view(out);
}

static void long_runs_are_logged_shortened(void **state) {
    (void)state;
    buf scratch = buf_init(BUF_NO_LIMIT), older = buf_init(BUF_NO_LIMIT);
    for (unsigned n = 1; n < 20000; n = n * 3 + 1) {
        store_run *run = long_run(n);
        slice logged = store_run_logged(run, &scratch);
        assert_true(run->bytes < 512 ? logged.n == run->bytes : logged.n < run->bytes / 2);
        check_read_back(run, logged);
        check_read_back(run, slice_of(run->p, run->bytes));
        check_read_back(run, compressed(run, &older));
        store_run_give(run);
    }
    buf_free(&scratch);
    buf_free(&older);
}

static void shortened_runs_are_read_back(void **state) {
    (void)state;
    random_source r;
    unsigned shortened = 0;
    random_seed(&r, 12);
    for (int round = 0; round < 300; round++) {
        buf scratch = buf_init(BUF_NO_LIMIT);
        store_run *run = varied_run(&r);
        slice logged = store_run_logged(run, &scratch);
        char *exact = malloc(logged.n); /* so that a sanitizer detects reads past the end */
        assert_non_null(exact);
        memcpy(exact, logged.p, logged.n);
        shortened += logged.p[0] == 3;
        check_read_back(run, slice_of(exact, logged.n));
        free(exact);
        store_run_give(run);
        buf_free(&scratch);
    }
    assert_true(shortened > 250);
}

/* Cut anywhere, it is refused; with other bytes it is refused or gives another valid run. */
static void check_damaged(slice logged, random_source *r) {
    store_run *read;
    char *bytes = malloc(logged.n);
    assert_non_null(bytes);
    for (size_t n = 0; n < logged.n; n++) {
        char *cut = malloc(n ? n : 1);
        assert_non_null(cut);
        memcpy(cut, logged.p, n);
        assert_int_equal(store_run_read(slice_of(cut, n), 1, &read), E_STORE_CORRUPT);
        assert_null(read);
        free(cut);
    }
    for (int flip = 0; flip < 20000; flip++) {
        memcpy(bytes, logged.p, logged.n);
        bytes[random_below(r, logged.n)] ^= (char)(1 + random_below(r, 255));
        if (store_run_read(slice_of(bytes, logged.n), 1, &read) == OK) {
            for (size_t i = 1; i < read->n; i++) {
                assert_true(slice_cmp(store_run_key(read, i - 1), store_run_key(read, i)) < 0);
            }
            store_run_give(read);
        }
    }
    free(bytes);
}

static void damaged_logged_runs_are_refused(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 3);
    buf scratch = buf_init(BUF_NO_LIMIT);
    store_run *run = long_run(300), *varied = varied_run(&r);
    slice logged = store_run_logged(run, &scratch);
    assert_int_equal(logged.p[0], 3);
    check_damaged(logged, &r);
    check_damaged(compressed(run, &scratch), &r);
    check_damaged(store_run_logged(varied, &scratch), &r);
    store_run_give(run);
    store_run_give(varied);
    buf_free(&scratch);
}

/* A size that no compressed or shortened bytes can have is refused before memory is taken for it. */
static void logged_runs_do_not_lie_about_their_size(void **state) {
    (void)state;
    char bytes[64] = {0, -1, -1, -1, 127};
    store_run *read;
    for (bytes[0] = 2; bytes[0] <= 3; bytes[0]++) {
        assert_int_equal(store_run_read(slice_of(bytes, sizeof bytes), 1, &read), E_STORE_CORRUPT);
        assert_null(read);
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

/* Several runs read the same as one merged run, however many are merged at once, and whichever first; by scans in both directions and by
 * gets. */
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
        for (size_t n = RUNS, many; n > 1; n -= many - 1) {
            size_t at = (size_t)random_below(&r, n - 1);
            many = 2 + (size_t)random_below(&r, n - at - 1);
            store_version *before = version_of(runs, n);
            store_run *merged = store_run_merge(runs + at, many);
            assert_true(merged->first == runs[at]->first && merged->last == runs[at + many - 1]->last);
            for (size_t i = 0; i < many; i++) {
                store_run_give(runs[at + i]);
            }
            runs[at] = merged;
            memmove(runs + at + 1, runs + at + many, (n - at - many) * sizeof *runs);
            store_version *after = version_of(runs, n - many + 1);
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
static void flushing_fails_and_is_retried(void **state) {
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

static void tail_write_entries(store_tail *tail, random_source *r, unsigned n) {
    store_batch b;
    store_batch_init(&b);
    for (unsigned i = 0; i < n; i++) {
        char key[24];
        random_bytes(r, key, sizeof key);
        store_put(&b, STORE_TERMS, slice_of(key, sizeof key), SLICE_EMPTY);
    }
    store_run *run = store_run_of_batch(&b);
    store_batch_free(&b);
    run->first = run->last = store_tail_begin(tail);
    store_tail_end(tail, run, true);
}

static size_t runs_of(store_tail *tail) {
    store_version *v = store_tail_take(tail);
    size_t n = v->n;
    store_version_give(v);
    return n;
}

/* Waits until there are at most so many. Returns whether that took as long as the merger needs to find the tail idle. */
static bool await_few(store_tail *tail, size_t most) {
    unsigned ms = 0;
    for (; ms < 10000 && runs_of(tail) > most; ms++) {
        usleep(1000);
    }
    assert_true(runs_of(tail) <= most);
    return ms > 700;
}

/* Whatever the sizes of the batches: each reader searches each run. The merger may need a moment, but not an idle tail. */
static void runs_stay_few(void **state) {
    (void)state;
    static const unsigned sizes[][3] = {{1, 1, 1}, {10, 30, 90}, {1, 1, 500}, {300, 300, 300}, {1, 20, 2000}};
    enum { ENTRIES = 60000, MOST = 32 };
    for (size_t kind = 0; kind < sizeof sizes / sizeof *sizes; kind++) {
        random_source r;
        unsigned late = 0;
        store_tail_options options = {.bytes = 1 << 20};
        store_tail *tail = store_tail_open(&options);
        random_seed(&r, kind + 1);
        for (unsigned made = 0, n; made < ENTRIES; made += n) {
            n = sizes[kind][random_below(&r, 3)];
            tail_write_entries(tail, &r, n);
            late += await_few(tail, MOST);
        }
        assert_in_range(late, 0, 3); /* on a busy machine */
        store_tail_close(tail, true);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_read_back),
        cmocka_unit_test(damaged_runs_are_refused),
        cmocka_unit_test(long_runs_are_logged_shortened),
        cmocka_unit_test(shortened_runs_are_read_back),
        cmocka_unit_test(damaged_logged_runs_are_refused),
        cmocka_unit_test(logged_runs_do_not_lie_about_their_size),
        cmocka_unit_test(merged_runs_say_the_same),
        cmocka_unit_test(the_writer_waits_for_the_keeper),
        cmocka_unit_test(flushing_fails_and_is_retried),
        cmocka_unit_test(an_idle_tail_is_one_run),
        cmocka_unit_test(runs_stay_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
