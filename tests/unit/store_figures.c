/* Figures of a store on RocksDB: what was written is counted by family, tables are found in their levels, and a folder is measured without
 * changing it. Fails if the layout of RocksDB's C types, which rocks_stats.cc repeats, is another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "doc/json.h"
#include "store/figures.h"
#include "store_harness.h"
#include "tool/inspect_view.h"

enum { VALUE_BYTES = 1000, BATCHES = 200, KEYS = 50, TAIL_BYTES = 64 * 1024 };

static char *base;

static int set_up(void **state) {
    (void)state;
    base = make_folder();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    remove_folder(base);
    free(base);
    return 0;
}

static const store_family_figures *family(const store_figures *figures, const char *name) {
    for (size_t i = 0; i < figures->n; i++) {
        if (strcmp(figures->families[i].name, name) == 0) {
            return &figures->families[i];
        }
    }
    fail_msg("no family %s", name);
    abort();
}

/* BATCHES batches of KEYS items and as many index entries. */
static void fill(store *s) {
    char key[32], value[VALUE_BYTES];
    memset(value, 'v', sizeof value);
    for (unsigned i = 0; i < BATCHES; i++) {
        store_batch batch;
        store_batch_init(&batch);
        for (unsigned j = 0; j < KEYS; j++) {
            int n = snprintf(key, sizeof key, "key-%08u-%08u", j, i);
            store_put(&batch, STORE_ITEMS, slice_of(key, (size_t)n), slice_of(value, sizeof value));
            store_put(&batch, STORE_TERMS, slice_of(key, (size_t)n), SLICE_EMPTY);
        }
        assert_int_equal(store_write(s, &batch), OK);
        store_batch_free(&batch);
    }
}

static void what_is_written_is_counted_by_family(void **state) {
    (void)state;
    store *s = open_rocks_tail(base, TAIL_BYTES);
    store_figures before, after;
    assert_true(store_measure(s, &before));
    assert_int_equal(before.n, 6);
    assert_int_equal(family(&before, "items")->logged, 0);
    fill(s);
    assert_true(store_measure(s, &after));
    const store_family_figures *items = family(&after, "items"), *terms = family(&after, "terms"), *runs = family(&after, "runs");
    assert_int_equal(items->logged, (uint64_t)BATCHES * KEYS * (VALUE_BYTES + 21));
    assert_true(items->memtable_bytes >= (uint64_t)BATCHES * KEYS * VALUE_BYTES);
    assert_int_equal(terms->logged, 0); /* they are logged as runs */
    assert_true(runs->logged > 0);
    assert_true(terms->ingested > 0); /* the tail is small, so some of it is in tables */
    assert_true(terms->bytes > 0 && terms->files > 0 && terms->entries > 0 && terms->key_bytes > terms->entries * 21);
    assert_true(terms->filter_bytes > 0 && terms->index_bytes > 0);
    assert_true(after.log_bytes >= items->logged);
    assert_true(after.cache_bytes == (8 << 20) / 16 * 15); /* the rest is for short lists */
    assert_true(store_figures_written(&after) >= items->logged + runs->logged + terms->ingested);
    store_close(s);
}

/* Opening replays the log into memtables, but leaves the folder as it is. */
static void a_closed_folder_is_measured_without_changes(void **state) {
    (void)state;
    store *s = open_rocks_tail(base, TAIL_BYTES), *other;
    store_figures figures;
    struct stat first, then;
    char why[512] = "", path[4096];
    store_options options = {.dir = base, .cache_bytes = 1 << 20, .read_only = true};
    fill(s);
    assert_int_not_equal(store_open_rocks(&options, &other, why, sizeof why), OK);
    assert_non_null(strstr(why, "already serves"));
    store_close(s);
    snprintf(path, sizeof path, "%s/db", base);
    assert_int_equal(stat(path, &first), 0);
    assert_int_equal(store_open_rocks(&options, &s, why, sizeof why), OK);
    assert_true(store_measure(s, &figures));
    const store_family_figures *items = family(&figures, "items");
    assert_true(items->bytes > 0 || items->memtable_bytes > 0);
    assert_true(family(&figures, "terms")->entries > 0);
    assert_int_equal(items->logged, 0);
    store_close(s);
    assert_int_equal(stat(path, &then), 0);
    assert_int_equal(first.st_mtim.tv_sec, then.st_mtim.tv_sec);
    assert_int_equal(first.st_mtim.tv_nsec, then.st_mtim.tv_nsec);
}

/* A close writes large memtables to tables, so that the next open has little log to replay. */
static void a_clean_stop_leaves_little_log(void **state) {
    (void)state;
    store_figures figures;
    store *s = open_rocks(base);
    for (int i = 0; i < 4; i++) {
        fill(s); /* 10 MB */
    }
    store_close(s);
    s = open_rocks(base);
    assert_true(store_measure(s, &figures));
    assert_true(figures.replayed < 1000000);
    assert_true(family(&figures, "items")->bytes > 0);
    store_close(s);
}

static void write_one(store *s) {
    store_batch batch;
    store_batch_init(&batch);
    store_put(&batch, STORE_ITEMS, SLICE_LIT("one more"), SLICE_LIT("value"));
    assert_int_equal(store_write(s, &batch), OK);
    store_batch_free(&batch);
}

/* Above its limit the log is cut by flushing what it holds, by the first write after the flush before; or some seconds later, if two
 * flushes ended at the same moment. */
static void the_log_is_bounded(void **state) {
    (void)state;
    store *s;
    store_figures figures;
    char why[512] = "";
    store_options options = {.dir = base, .cache_bytes = 1 << 20, .log_bytes = 4 << 20};
    assert_int_equal(store_open_rocks(&options, &s, why, sizeof why), OK);
    for (int i = 0; i < 4; i++) {
        fill(s);
    }
    for (int tries = 0; tries < 3000; tries++) { /* flushes are done in the background */
        assert_true(store_measure(s, &figures));
        if (figures.log_bytes < 20000000) {
            break;
        }
        write_one(s);
        usleep(10000);
    }
    assert_true(figures.log_bytes < 20000000); /* 42 MB were logged */
    store_close(s);
}

/* A point read of a cold store reads one block of entries; besides these there are those of the table's index. Then all are cached. */
static void blocks_that_are_not_cached_are_counted(void **state) {
    (void)state;
    store_figures before, cold, warm;
    store_value value;
    store *s = open_rocks(base);
    for (int i = 0; i < 4; i++) {
        fill(s);
    }
    store_close(s);
    s = open_rocks(base);
    assert_true(store_measure(s, &before));
    assert_int_equal(store_get(s, STORE_ITEMS, NULL, SLICE_LIT("key-00000007-00000033"), &value), OK);
    store_give(&value);
    assert_true(store_measure(s, &cold));
    assert_in_range(cold.table_reads - before.table_reads, 1, 3);
    assert_true(cold.table_read_bytes - before.table_read_bytes > 0);
    assert_int_equal(store_get(s, STORE_ITEMS, NULL, SLICE_LIT("key-00000007-00000033"), &value), OK);
    store_give(&value);
    assert_true(store_measure(s, &warm));
    assert_int_equal(warm.table_reads, cold.table_reads);
    store_close(s);
}

static void a_missing_folder_is_not_made(void **state) {
    (void)state;
    char path[4096], why[512] = "";
    store *s;
    snprintf(path, sizeof path, "%s/none", base);
    store_options options = {.dir = path, .cache_bytes = 1 << 20, .read_only = true};
    assert_int_not_equal(store_open_rocks(&options, &s, why, sizeof why), OK);
    assert_non_null(strstr(why, "not a tesela data folder"));
    assert_int_equal(access(path, F_OK), -1);
}

static void a_store_in_memory_has_none(void **state) {
    (void)state;
    store *s = store_open_memory();
    store_figures figures;
    assert_false(store_measure(s, &figures));
    assert_int_equal(figures.n, 0);
    store_close(s);
}

/* ---- shown ---- */

static void to_text(const store_figures *figures, buf *out) {
    buf json = buf_init(BUF_NO_LIMIT), bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    buf_add_lit(&json, "{\"stores\":[");
    store_figures_json(figures, &json);
    buf_add_lit(&json, "]}");
    assert_int_equal(json_to_bson(buf_view(&json), NULL, &bson, &root, NULL), OK);
    assert_int_equal(root, JSON_OBJECT);
    inspect_store_text(buf_view(&bson), out);
    buf_add_byte(out, 0);
    buf_free(&json);
    buf_free(&bson);
}

static void figures_are_shown_as_tables(void **state) {
    (void)state;
    buf text = buf_init(BUF_NO_LIMIT);
    store_figures figures = {.n = 1, .log_bytes = 7000000, .cache_bytes = 64000000, .table_reads = 4321, .table_read_bytes = 17000000};
    figures.families[0] = (store_family_figures){.name = "terms",
                                                 .files = 3,
                                                 .bytes = 100000000,
                                                 .entries = 12345,
                                                 .logged = 10000000,
                                                 .ingested = 50000000,
                                                 .compacted = 140000000,
                                                 .stopped = 9};
    figures.families[0].levels[6] = (store_level_figures){.files = 3, .bytes = 100000000, .written = 140000000, .jobs = 4, .cpu_s = 2.5};
    to_text(&figures, &text);
    assert_non_null(strstr(text.p, "tables 100.0 MB, log 7.0 MB"));
    assert_non_null(strstr(text.p, "4321 blocks of tables read, 17.0 MB"));
    assert_non_null(strstr(text.p, "12345"));
    assert_non_null(strstr(text.p, "3.80")); /* (50 + 140) / 50 */
    assert_non_null(strstr(text.p, "written 200.0 MB in all: 2.00 times the 100.0 MB of tables"));
    assert_non_null(strstr(text.p, "level 6"));
    assert_null(strstr(text.p, "level 5"));
    buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_counted_by_family, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_closed_folder_is_measured_without_changes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_folder_is_not_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_clean_stop_leaves_little_log, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_log_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(blocks_that_are_not_cached_are_counted, set_up, tear_down),
        cmocka_unit_test(a_store_in_memory_has_none),
        cmocka_unit_test(figures_are_shown_as_tables),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
