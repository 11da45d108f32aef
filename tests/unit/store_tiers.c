/* At how many sorted sequences merging begins: more for larger families, so that an entry is rewritten a few times at any size; and more
 * while items are loaded and index entries are not read. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/rocks_int.h"
#include "store_harness.h"

enum {
    TAIL = 16 * 1024,
    MEGABYTE = 1024 * 1024,
    SEQUENCES_MAX = 64,
    FLUSHES = 3200,
    MILLION_FLUSHES = 48,
    FLUSH_BYTES = 32 * MEGABYTE / 3
};

static const rocks usual = {.tail_bytes = 32 * MEGABYTE};

static void more_for_larger_families(void **state) {
    (void)state;
    static const struct {
        uint64_t flushes;
        int tiers;
    } expected[] = {{0, 4}, {31, 4}, {33, 5}, {63, 5}, {65, 6}, {130, 7}, {260, 8}, {520, 9}, {1030, 10}, {2050, 11}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(store__tiers_of(&usual, expected[i].flushes * FLUSH_BYTES), expected[i].tiers);
    }
}

/* ---- a model of RocksDB's merging, one merge at a time ---- */

typedef struct sequences {
    size_t n;
    uint64_t flushes[SEQUENCES_MAX]; /* size of each, the newest first */
} sequences;

static uint64_t sum(const sequences *s, size_t from, size_t to) {
    uint64_t all = 0;
    for (size_t i = from; i < to; i++) {
        all += s->flushes[i];
    }
    return all;
}

/* The end of the sequences from `from` on that are merged: in a load none is more than twice as large as its neighbours, otherwise none is
 * much larger than all newer ones together. */
static size_t similar(const sequences *s, size_t from, bool loading) {
    size_t to = from + 1;
    while (to < s->n) {
        uint64_t before = loading ? s->flushes[to - 1] : sum(s, from, to), next = s->flushes[to];
        if (loading ? next > 2 * before || before > 2 * next : next * 100 > before * 120) {
            break;
        }
        to++;
    }
    return to;
}

/* `garbage`: everything is merged if the newer sequences have so many times the oldest one's size. */
static void choose(const sequences *s, size_t tiers, bool loading, unsigned garbage, size_t *from, size_t *to) {
    *from = 0;
    *to = s->n;
    if (sum(s, 0, s->n - 1) >= s->flushes[s->n - 1] * garbage) {
        return;
    }
    for (; *from < s->n; ++*from) {
        *to = similar(s, *from, loading);
        if (*to - *from >= 3) {
            return;
        }
    }
    *from = 0;
    *to = s->n > tiers ? s->n - tiers + 1 : 0;
}

/* Returns how many flushes' worth of bytes were written by the flushes and the merges, in a family that has `there` flushes already.
 * `fixed` 0: the usual number of sequences. */
static uint64_t written_by(int fixed, bool loading, unsigned garbage, uint64_t there, uint64_t flushes) {
    sequences s = {.n = there > 0, .flushes = {there}};
    uint64_t all = 0;
    for (uint64_t flushed = 1; flushed <= flushes; flushed++) {
        size_t from, to, tiers = (size_t)(fixed ? fixed : store__tiers_of(&usual, (there + flushed) * FLUSH_BYTES));
        memmove(s.flushes + 1, s.flushes, s.n++ * sizeof *s.flushes);
        s.flushes[0] = 1;
        all++;
        while (s.n >= tiers && (choose(&s, tiers, loading, garbage, &from, &to), to > from + 1)) {
            uint64_t merged = sum(&s, from, to);
            all += merged;
            s.flushes[from] = merged;
            memmove(s.flushes + from + 1, s.flushes + to, (s.n - to) * sizeof *s.flushes);
            s.n -= to - from - 1;
            assert_true(s.n < SEQUENCES_MAX - 1);
        }
    }
    return all;
}

static void an_entry_is_rewritten_a_few_times(void **state) {
    (void)state;
    const uint64_t million = MILLION_FLUSHES;
    assert_true(written_by(0, false, 1, 0, FLUSHES) < 7 * FLUSHES);
    assert_true(written_by(0, false, 3, 0, FLUSHES) < 7 * FLUSHES);  /* index entries */
    assert_true(written_by(4, false, 1, 0, FLUSHES) > 50 * FLUSHES); /* with four sequences at any size */
    assert_true(written_by(32, true, 4, 0, million) * 2 < written_by(0, false, 3, 0, million));
    assert_true(written_by(32, true, 4, 0, 10 * million) * 3 < written_by(0, false, 3, 0, 10 * million) * 2);
    assert_true(written_by(32, true, 4, 3 * million, 7 * million) < 14 * million);
    assert_true(written_by(32, true, 4, 10 * million, 20 * million) < 60 * million);
}

/* ---- on RocksDB ---- */

/* Opens RocksDB's newest file of options, which newer ones may replace meanwhile. */
static FILE *open_options(const char *base) {
    char path[4096];
    unsigned long newest = 0, number;
    snprintf(path, sizeof path, "%s/db", base);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d));) {
        if (sscanf(entry->d_name, "OPTIONS-%lu", &number) == 1 && !strstr(entry->d_name, "tmp") && number > newest) {
            newest = number;
        }
    }
    closedir(d);
    snprintf(path, sizeof path, "%s/db/OPTIONS-%06lu", base, newest);
    return fopen(path, "r");
}

static int option_of(const char *base, const char *family) {
    char line[4096], section[128];
    int value = 0;
    bool inside = false;
    FILE *file = NULL;
    for (unsigned i = 0; i < 100 && !(file = open_options(base)); i++) {
        usleep(10000);
    }
    assert_non_null(file);
    snprintf(section, sizeof section, "[CFOptions \"%s\"]", family);
    while (value == 0 && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, "level0_file_num_compaction_trigger=");
        inside = strchr(line, '[') ? strstr(line, section) != NULL : inside;
        value = inside && at ? atoi(strchr(at, '=') + 1) : 0;
    }
    fclose(file);
    return value;
}

/* Random keys: what 200 batches write takes more than half a megabyte even when it is merged and compressed. */
static void write_entries(store *s, unsigned batch) {
    char key[64];
    random_source random;
    store_batch b;
    random_seed(&random, batch + 1);
    store_batch_init(&b);
    for (unsigned i = 0; i < 500; i++) {
        unsigned long mix;
        random_bytes(&random, &mix, sizeof mix);
        int n = snprintf(key, sizeof key, "%016lx-%08u-%08u", mix, batch, i);
        store_put(&b, STORE_TERMS, slice_of(key, (size_t)n), SLICE_EMPTY);
    }
    assert_int_equal(store_write(s, &b), OK);
    store_batch_free(&b);
}

/* Writes now and then until the option is in these bounds. Looks at the work are five seconds apart. */
static int await_option(store *s, const char *base, unsigned batches, int least, int most) {
    int now = option_of(base, "terms");
    for (unsigned i = 0; i < 6000 && (now < least || now > most); i++) {
        if (i < batches) {
            write_entries(s, i);
        }
        usleep(10000);
        now = option_of(base, "terms");
    }
    return now;
}

static void a_load_merges_late(void **state) {
    (void)state;
    char *base = make_folder();
    store *s = open_rocks_tail(base, TAIL);
    assert_int_equal(option_of(base, "terms"), 32); /* a new folder is probably loaded */
    assert_int_equal(option_of(base, "index"), 4);
    assert_int_equal(await_option(s, base, 1, 4, 4), 4);
    for (unsigned i = 0; i < 200; i++) {
        write_entries(s, i);
    }
    assert_int_equal(await_option(s, base, UINT_MAX, 32, 32), 32);
    assert_int_equal(option_of(base, "index"), 4); /* it is read by each create, and has not grown */
    int grown = await_option(s, base, 0, 6, 19);
    assert_in_range(grown, 6, 19);
    store_close(s);
    s = open_rocks_tail(base, TAIL);
    assert_true(option_of(base, "terms") >= grown - 2); /* so the start of a large folder does not begin with a merge */
    store_close(s);
    remove_folder(base);
    free(base);
}

/* ---- what counts as a load ---- */

enum { SECOND_US = 1000000, LOOK_S = 5 };

static bool look(rocks *r, unsigned seconds, uint64_t logged, uint64_t scans) {
    r->written.logged[FAMILY_RUNS] += logged;
    r->tiers.scans += scans;
    return store__tiers_loading(r, r->tiers.looked_us + (int64_t)seconds * SECOND_US);
}

static void loads_write_fast_and_read_little(void **state) {
    (void)state;
    rocks r = {.tail_bytes = 32 * MEGABYTE};
    assert_false(store__tiers_loading(&r, 77)); /* nothing to compare with yet */
    assert_true(look(&r, LOOK_S, 6 * MEGABYTE, 0));
    assert_true(look(&r, LOOK_S, 6 * MEGABYTE, LOOK_S * 99));
    assert_false(look(&r, LOOK_S, 6 * MEGABYTE, LOOK_S * 100));
    assert_false(look(&r, LOOK_S, 5 * MEGABYTE, 0)); /* the tail is flushed less often than every ten seconds */
    assert_true(look(&r, 2 * LOOK_S, 12 * MEGABYTE, 0));
    assert_true(look(&r, LOOK_S, 6 * MEGABYTE, 0));
    assert_true(look(&r, 1, 0, 0)); /* a pause */
    assert_false(look(&r, 1, 0, 100));
    assert_true(look(&r, 1, 0, 0));
    assert_false(look(&r, 1, 0, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_for_larger_families),
        cmocka_unit_test(an_entry_is_rewritten_a_few_times),
        cmocka_unit_test(a_load_merges_late),
        cmocka_unit_test(loads_write_fast_and_read_little),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
