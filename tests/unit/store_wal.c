/* Checks RocksDB's log when it is whole, torn at its end, and damaged in the middle: only the last is refused. RocksDB itself writes the
 * logs. */
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "store/wal.h"
#include "store_harness.h"

enum { BATCHES = 60 };

static char *folder;
static buf log_bytes;            /* the log as RocksDB wrote it */
static size_t ends[BATCHES + 1]; /* offset of each batch's end in the log */

static void path_of(char into[4096], const char *name) {
    snprintf(into, 4096, "%s/%s", folder, name);
}

static void write_log(const char *name, slice bytes) {
    char path[4096];
    path_of(path, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes.p, bytes.n), bytes.n);
    close(fd);
}

static void read_log(const char *path) {
    char bytes[4096];
    ssize_t n;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    buf_clear(&log_bytes);
    while ((n = read(fd, bytes, sizeof bytes)) > 0) {
        buf_add(&log_bytes, bytes, (size_t)n);
    }
    close(fd);
}

/* Writes a log of small batches, and a few that span several blocks. */
static int make_log(void **state) {
    (void)state;
    static char value[100000];
    char *data = make_folder(), path[4200];
    store *s = open_rocks(data);
    store_batch b;
    struct stat status;
    random_source r;
    random_seed(&r, 5);
    log_bytes = buf_init(BUF_NO_LIMIT);
    store_batch_init(&b);
    snprintf(path, sizeof path, "%s/db/000004.log", data);
    for (size_t i = 0; i < BATCHES; i++) {
        size_t n = i % 20 == 19 ? sizeof value : (size_t)random_below(&r, 1000);
        random_bytes(&r, value, n);
        store_batch_clear(&b);
        store_put(&b, STORE_ITEMS, SLICE_LIT("key"), slice_of(value, n));
        assert_int_equal(store_write(s, &b), OK);
        assert_int_equal(stat(path, &status), 0);
        ends[i + 1] = (size_t)status.st_size;
    }
    read_log(path);
    assert_int_equal(log_bytes.n, ends[BATCHES]);
    store_batch_free(&b);
    store_close(s);
    remove_folder(data);
    free(data);
    folder = make_folder();
    return 0;
}

static int forget_log(void **state) {
    (void)state;
    buf_free(&log_bytes);
    remove_folder(folder);
    free(folder);
    return 0;
}

static bool good(void) {
    char why[9000] = "";
    err code = store_wal_check(folder, why, sizeof why);
    assert_true(code == OK || (code == E_STORE_CORRUPT && strstr(why, "later writes follow")));
    return code == OK;
}

static void whole_logs(void **state) {
    (void)state;
    assert_true(good()); /* no log at all */
    write_log("000004.log", buf_view(&log_bytes));
    assert_true(good());
    write_log("000009.log", SLICE_EMPTY);
    write_log("000010.log", buf_view(&log_bytes));
    write_log("LOG", SLICE_LIT("not a log of batches"));
    write_log("12x.log", SLICE_LIT("nor this"));
    assert_true(good());
}

/* RocksDB has a function of this name, and the first definition in the order in which the dynamic linker looks is another. */
static void checksums_are_ours(void **state) {
    (void)state;
    static const char name[] = "_ZN7rocksdb6crc32c6ExtendEjPKcm";
    uint32_t (*extend)(uint32_t crc, const char *data, size_t n);
    Dl_info rocksdb;
    *(void **)&extend = dlsym(RTLD_DEFAULT, "rocksdb_open");
    assert_true(dladdr(*(void **)&extend, &rocksdb));
    void *library = dlopen(rocksdb.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    assert_non_null(library);
    void *theirs = dlsym(library, name);
    *(void **)&extend = dlsym(RTLD_DEFAULT, name);
    assert_non_null(theirs);
    assert_non_null(*(void **)&extend);
    assert_ptr_not_equal(theirs, *(void **)&extend);
    assert_int_equal(extend(0, "123456789", 9), 0xE3069283);
    assert_int_equal(extend(extend(0, "1234", 4), "56789", 5), 0xE3069283);
    dlclose(library);
}

/* The log cut anywhere, followed by nothing, zeros or garbage: what a power loss may leave of the last batch. */
static void torn_ends(void **state) {
    (void)state;
    random_source r;
    static char rubbish[50000];
    random_seed(&r, 6);
    random_bytes(&r, rubbish, sizeof rubbish);
    for (int i = 0; i < 400; i++) {
        size_t cut = (size_t)random_below(&r, log_bytes.n + 1), more = (size_t)random_below(&r, sizeof rubbish);
        buf torn = buf_init(BUF_NO_LIMIT);
        buf_add(&torn, log_bytes.p, cut);
        if (i % 3 == 1) {
            buf_add(&torn, rubbish, more);
        } else if (i % 3 == 2) {
            for (size_t j = 0; j < more; j++) {
                buf_add_byte(&torn, 0);
            }
        }
        write_log("000004.log", buf_view(&torn));
        assert_true(good());
        buf_free(&torn);
    }
}

/* Some pages of the last batch are missing; later pieces of the same batch may be whole. */
static void a_last_batch_with_holes(void **state) {
    (void)state;
    assert_true(ends[BATCHES] - ends[BATCHES - 1] > 90000);
    for (size_t page = 4096; page < 90000; page += 4096) {
        buf torn = buf_init(BUF_NO_LIMIT);
        buf_add_slice(&torn, buf_view(&log_bytes));
        memset(torn.p + ends[BATCHES - 1] + page - 4096, 0, 4096);
        write_log("000004.log", buf_view(&torn));
        assert_true(good());
        buf_free(&torn);
    }
}

static void damage_in_the_middle(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 7);
    for (int i = 0; i < 400; i++) { /* any byte of any batch but the last: checksum, length, type or payload */
        size_t at = (size_t)random_below(&r, ends[BATCHES - 1]);
        buf bad = buf_init(BUF_NO_LIMIT);
        buf_add_slice(&bad, buf_view(&log_bytes));
        bad.p[at] = (char)(bad.p[at] ^ (1 + (int)random_below(&r, 255)));
        bool padding = at % 32768 > 32768 - 7 && log_bytes.p[at] == 0;
        write_log("000004.log", buf_view(&bad));
        if (good() && !padding) {
            fail_msg("byte %zu is damaged, and nobody says so", at);
        }
        buf_free(&bad);
    }
}

/* The end of an older log was synced before the next log began. */
static void damage_in_an_older_log(void **state) {
    (void)state;
    write_log("000004.log", slice_of(log_bytes.p, log_bytes.n - 10));
    assert_true(good());
    write_log("000011.log", SLICE_EMPTY);
    assert_true(good());
    write_log("000011.log", slice_of(log_bytes.p, ends[1]));
    assert_false(good());
}

static void the_way_out_that_is_told(void **state) {
    (void)state;
    char why[9000] = "", path[4096];
    log_bytes.p[ends[10] + 20] ^= 1;
    write_log("000004.log", buf_view(&log_bytes));
    assert_int_equal(store_wal_check(folder, why, sizeof why), E_STORE_CORRUPT);
    const char *told = strstr(why, "truncate -s ");
    assert_non_null(told);
    size_t size = told ? (size_t)strtoul(told + strlen("truncate -s "), NULL, 10) : 0;
    assert_int_equal(size, ends[10]);
    path_of(path, "000004.log");
    assert_int_equal(truncate(path, (off_t)size), 0);
    assert_true(good());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whole_logs, make_log, forget_log),
        cmocka_unit_test(checksums_are_ours),
        cmocka_unit_test_setup_teardown(torn_ends, make_log, forget_log),
        cmocka_unit_test_setup_teardown(a_last_batch_with_holes, make_log, forget_log),
        cmocka_unit_test_setup_teardown(damage_in_the_middle, make_log, forget_log),
        cmocka_unit_test_setup_teardown(damage_in_an_older_log, make_log, forget_log),
        cmocka_unit_test_setup_teardown(the_way_out_that_is_told, make_log, forget_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
