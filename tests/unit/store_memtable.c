/* The memtables (store/rocks_memtable.h), used by RocksDB itself with all data in memory: gets, seeks and steps in both directions against
 * a sorted array, for keys in many orders; and readers beside the writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "rounds.h"
#include "store/rocks_memtable.h"
#include "store_harness.h"

enum { MEMORY = 256 << 20, KEY_MAX = 64, VALUE_BYTES = 8 };

typedef struct table {
    char *folder;
    rocksdb_options_t *options;
    rocksdb_readoptions_t *read;
    rocksdb_writeoptions_t *write;
    rocksdb_t *db;
} table;

static void table_open(table *t) {
    char *message = NULL;
    t->folder = make_folder();
    t->options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(t->options, 1);
    rocksdb_options_set_write_buffer_size(t->options, MEMORY);
    rocksdb_options_set_allow_concurrent_memtable_write(t->options, 0);
    store__memtable_use(t->options);
    t->read = rocksdb_readoptions_create();
    t->write = rocksdb_writeoptions_create();
    rocksdb_writeoptions_disable_WAL(t->write, 1);
    t->db = rocksdb_open(t->options, t->folder, &message);
    assert_null(message);
}

static void table_close(table *t) {
    rocksdb_close(t->db);
    rocksdb_readoptions_destroy(t->read);
    rocksdb_writeoptions_destroy(t->write);
    rocksdb_options_destroy(t->options);
    remove_folder(t->folder);
    free(t->folder);
}

static void put(table *t, slice key, uint64_t value) {
    char *message = NULL;
    rocksdb_put(t->db, t->write, key.p, key.n, (const char *)&value, sizeof value, &message);
    assert_null(message);
}

static void delete (table *t, slice key) {
    char *message = NULL;
    rocksdb_delete(t->db, t->write, key.p, key.n, &message);
    assert_null(message);
}

/* 0: not there. */
static uint64_t get(const table *t, const rocksdb_readoptions_t *read, slice key) {
    char *message = NULL;
    size_t n;
    uint64_t value = 0;
    char *p = rocksdb_get(t->db, read, key.p, key.n, &n, &message);
    assert_null(message);
    if (p) {
        assert_int_equal(n, sizeof value);
        memcpy(&value, p, sizeof value);
        rocksdb_free(p);
    }
    return value;
}

/* ---- against a sorted array ---- */

typedef struct row {
    char key[KEY_MAX];
    size_t n;
    uint64_t value;  /* 0: deleted */
    uint64_t before; /* when the snapshot was taken */
} row;

typedef struct model {
    row *rows; /* in the order of their keys */
    size_t n, cap;
} model;

static slice key_of(const row *r) {
    return slice_of(r->key, r->n);
}

/* The position of the first row that is not before the key. */
static size_t model_find(const model *m, slice key) {
    size_t low = 0, high = m->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (slice_cmp(key_of(&m->rows[middle]), key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void model_put(model *m, slice key, uint64_t value) {
    size_t i = model_find(m, key);
    if (i == m->n || !slice_eq(key_of(&m->rows[i]), key)) {
        if (m->n == m->cap) {
            m->cap = m->cap ? 2 * m->cap : 1024;
            m->rows = realloc(m->rows, m->cap * sizeof *m->rows);
            assert_non_null(m->rows);
        }
        memmove(&m->rows[i + 1], &m->rows[i], (m->n - i) * sizeof *m->rows);
        m->rows[i] = (row){.n = key.n};
        memcpy(m->rows[i].key, key.p, key.n);
        m->n++;
    }
    m->rows[i].value = value;
}

typedef size_t (*key_maker)(random_source *r, size_t i, char key[KEY_MAX]);

/* Of few different bytes, the highest and the lowest among them: many are equal, begin alike, or have the head of a link to nowhere. */
static size_t short_key(random_source *r, size_t i, char key[KEY_MAX]) {
    static const unsigned char letters[] = {0, 1, 'a', 0x7F, 0x80, 0xFF};
    size_t n = random_below(r, 14);
    for (size_t j = 0; j < n; j++) {
        key[j] = (char)(i % 3 ? letters[random_below(r, sizeof letters)] : 0xFF);
    }
    return n;
}

/* In no order, different within the first eight bytes. */
static size_t mixed_key(random_source *r, size_t i, char key[KEY_MAX]) {
    (void)i;
    random_bytes(r, key, 24);
    return 24;
}

/* As primary keys, some of one partition: alike in the first eight bytes, or in many more. */
static size_t alike_key(random_source *r, size_t i, char key[KEY_MAX]) {
    (void)i;
    return (size_t)snprintf(key, KEY_MAX, "container-p%08x-k%010u", (unsigned)random_below(r, 20) * 2654435761u,
                            (unsigned)random_below(r, 5000));
}

/* As items, in their order; and as a commit group's keys: a few that ascend, then a few that ascend elsewhere. */
static size_t ascending_key(random_source *r, size_t i, char key[KEY_MAX]) {
    (void)r;
    return (size_t)snprintf(key, KEY_MAX, "%012zu", i);
}

static size_t grouped_key(random_source *r, size_t i, char key[KEY_MAX]) {
    (void)r;
    size_t group = i / 32, place = i % 32;
    return (size_t)snprintf(key, KEY_MAX, "%04zu-%06zu", place * 31 % 1000 + place, group * 7919 % 100003);
}

static void check_gets(const table *t, const model *m, const rocksdb_readoptions_t *before) {
    for (size_t i = 0; i < m->n; i++) {
        assert_int_equal(get(t, t->read, key_of(&m->rows[i])), m->rows[i].value);
        assert_int_equal(get(t, before, key_of(&m->rows[i])), m->rows[i].before);
    }
}

static void check_at(const rocksdb_iterator_t *at, const row *expected) {
    size_t n;
    assert_true(rocksdb_iter_valid(at));
    const char *p = rocksdb_iter_key(at, &n);
    assert_true(slice_eq(slice_of(p, n), key_of(expected)));
}

static void check_steps(const table *t, const model *m) {
    rocksdb_iterator_t *at = rocksdb_create_iterator(t->db, t->read);
    rocksdb_iter_seek_to_first(at);
    for (size_t i = 0; i < m->n; i++) {
        if (m->rows[i].value) {
            check_at(at, &m->rows[i]);
            rocksdb_iter_next(at);
        }
    }
    assert_false(rocksdb_iter_valid(at));
    rocksdb_iter_seek_to_last(at);
    for (size_t i = m->n; i-- > 0;) {
        if (m->rows[i].value) {
            check_at(at, &m->rows[i]);
            rocksdb_iter_prev(at);
        }
    }
    assert_false(rocksdb_iter_valid(at));
    rocksdb_iter_destroy(at);
}

static void check_seeks(const table *t, const model *m, random_source *r, key_maker make) {
    char key[KEY_MAX];
    rocksdb_iterator_t *at = rocksdb_create_iterator(t->db, t->read);
    for (size_t round = 0; round < 2000; round++) {
        slice sought = slice_of(key, make(r, random_below(r, 2 * m->n), key));
        size_t i = model_find(m, sought), j = i + (i < m->n && slice_eq(key_of(&m->rows[i]), sought));
        rocksdb_iter_seek(at, sought.p, sought.n);
        for (; i < m->n && !m->rows[i].value; i++) {
        }
        i < m->n ? check_at(at, &m->rows[i]) : assert_false(rocksdb_iter_valid(at));
        rocksdb_iter_seek_for_prev(at, sought.p, sought.n);
        for (; j > 0 && !m->rows[j - 1].value; j--) {
        }
        j > 0 ? check_at(at, &m->rows[j - 1]) : assert_false(rocksdb_iter_valid(at));
    }
    rocksdb_iter_destroy(at);
}

static void fill(table *t, model *m, random_source *r, key_maker make, size_t n, size_t from) {
    char key[KEY_MAX];
    for (size_t i = 0; i < n; i++) {
        slice made = slice_of(key, make(r, i, key));
        uint64_t value = random_below(r, 8) ? from + i + 1 : 0;
        value ? put(t, made, value) : delete (t, made);
        model_put(m, made, value);
    }
}

static void compare(key_maker make, uint64_t seed) {
    enum { KEYS = 8000 };
    table t;
    model m = {0};
    random_source r;
    random_seed(&r, seed);
    table_open(&t);
    fill(&t, &m, &r, make, KEYS, 0);
    for (size_t i = 0; i < m.n; i++) {
        m.rows[i].before = m.rows[i].value;
    }
    const rocksdb_snapshot_t *snapshot = rocksdb_create_snapshot(t.db);
    rocksdb_readoptions_t *before = rocksdb_readoptions_create();
    rocksdb_readoptions_set_snapshot(before, snapshot);
    fill(&t, &m, &r, make, KEYS / 2, KEYS);
    check_gets(&t, &m, before);
    check_steps(&t, &m);
    check_seeks(&t, &m, &r, make);
    rocksdb_readoptions_destroy(before);
    rocksdb_release_snapshot(t.db, snapshot);
    table_close(&t);
    free(m.rows);
}

static void keys_in_any_order_are_found_in_theirs(void **state) {
    (void)state;
    static const key_maker makers[] = {short_key, mixed_key, alike_key, ascending_key, grouped_key};
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        compare(makers[i], 90 + i);
    }
}

static void an_empty_memtable_has_no_keys(void **state) {
    (void)state;
    table t;
    model m = {0};
    table_open(&t);
    assert_int_equal(get(&t, t.read, SLICE_LIT("a")), 0);
    check_steps(&t, &m);
    table_close(&t);
}

/* ---- readers beside the writer ---- */

enum { READERS = 3, WRITTEN = 60000 };

typedef struct shared {
    table t;
    atomic_uint written; /* keys 1 … written are in the table */
} shared;

/* In no order. */
static slice number_key(uint64_t number, char key[KEY_MAX]) {
    return slice_of(key, (size_t)snprintf(key, KEY_MAX, "%08x", (unsigned)number * 2654435761u));
}

/* What a scan must show: keys in their order, and at least those that were there when it began. */
static void check_scan(const table *t, unsigned written) {
    char last[KEY_MAX];
    size_t last_n = 0, rows = 0;
    rocksdb_iterator_t *at = rocksdb_create_iterator(t->db, t->read);
    for (rocksdb_iter_seek_to_first(at); rocksdb_iter_valid(at); rocksdb_iter_next(at), rows++) {
        size_t n;
        const char *p = rocksdb_iter_key(at, &n);
        assert_true(slice_cmp(slice_of(last, last_n), slice_of(p, n)) < 0);
        memcpy(last, p, n);
        last_n = n;
    }
    assert_true(rows >= written);
    rocksdb_iter_destroy(at);
}

static void *read_beside(void *context) {
    shared *s = context;
    random_source r;
    char key[KEY_MAX];
    random_seed(&r, (uint64_t)(uintptr_t)&r);
    for (unsigned written = 0, round = 0; written < WRITTEN; round++) {
        written = atomic_load_explicit(&s->written, memory_order_acquire);
        uint64_t number = 1 + random_below(&r, written + 1);
        uint64_t found = get(&s->t, s->t.read, number_key(number, key));
        assert_true(found == number || (number > written && found == 0));
        if (round % 4096 == 0) {
            check_scan(&s->t, written);
        }
    }
    return NULL;
}

static void readers_see_all_that_was_written_before(void **state) {
    (void)state;
    static shared s;
    pthread_t readers[READERS];
    char key[KEY_MAX];
    for (unsigned round = 0; round < (unsigned)ROUNDS(4); round++) {
        s.written = 0;
        table_open(&s.t);
        for (int i = 0; i < READERS; i++) {
            assert_int_equal(pthread_create(&readers[i], NULL, read_beside, &s), 0);
        }
        for (unsigned number = 1; number <= WRITTEN; number++) {
            put(&s.t, number_key(number, key), number);
            atomic_store_explicit(&s.written, number, memory_order_release);
        }
        for (int i = 0; i < READERS; i++) {
            pthread_join(readers[i], NULL);
        }
        table_close(&s.t);
    }
}

/* ---- memory ---- */

static size_t resident_bytes(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %zu", &pages), 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void spare_memory_is_given_back(void **state) {
    (void)state;
    char key[KEY_MAX];
    table t;
    table_open(&t);
    for (unsigned number = 1; number <= 4 * WRITTEN; number++) {
        put(&t, number_key(number, key), number);
    }
    table_close(&t);
    size_t before = resident_bytes();
    store__memtable_free_spare();
    size_t after = resident_bytes();
    assert_true(before > after && before - after >= 4 << 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_in_any_order_are_found_in_theirs),
        cmocka_unit_test(an_empty_memtable_has_no_keys),
        cmocka_unit_test(readers_see_all_that_was_written_before),
        cmocka_unit_test(spare_memory_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
