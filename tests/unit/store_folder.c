/* Data folders: created, opened, locked, and refused with a reason and without changes to them. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "store_harness.h"

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

static const char *at(const char *name) {
    static char paths[4][4096];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", base, name);
    return path;
}

static void write_file(const char *path, const char *text, size_t n) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, n), n);
    close(fd);
}

static bool opens(const char *dir, const char *word) {
    store_folder folder;
    char why[1024] = "";
    err code = store_folder_open(&folder, dir, NULL, why, sizeof why);
    if (code == OK) {
        store_folder_close(&folder);
        return true;
    }
    assert_true(*why != 0);
    assert_null(folder.dir);
    if (word && !strstr(why, word)) {
        fail_msg("'%s' does not say '%s'", why, word);
    }
    return false;
}

static void a_missing_folder_is_made_with_its_parents(void **state) {
    (void)state;
    char line[64] = {0};
    assert_true(opens(at("x/y/z"), NULL));
    assert_true(opens(at("x/y/z"), NULL));
    int fd = open(at("x/y/z/FORMAT"), O_RDONLY);
    assert_true(read(fd, line, sizeof line) > 0);
    close(fd);
    assert_string_equal(line, "tesela data 4\n");
}

static void an_empty_folder_becomes_ours(void **state) {
    (void)state;
    assert_int_equal(mkdir(at("d"), 0700), 0);
    assert_int_equal(mkdir(at("d/lost+found"), 0700), 0);
    write_file(at("d/FORMAT.new"), "tes", 3); /* left by a first start that was killed */
    assert_true(opens(at("d"), NULL));
    assert_int_equal(access(at("d/FORMAT.new"), F_OK), -1);
}

static void somebody_elses_folder_is_refused(void **state) {
    (void)state;
    assert_int_equal(mkdir(at("d"), 0700), 0);
    write_file(at("d/notes"), "x", 1);
    assert_false(opens(at("d"), "not a tesela data folder"));
    assert_int_equal(access(at("d/FORMAT"), F_OK), -1);
    write_file(at("file"), "x", 1);
    assert_false(opens(at("file"), at("file")));
    assert_false(opens(at("file/below"), "Not a directory"));
    assert_false(opens("", "empty"));
    static char longest[5000];
    memset(longest, 'x', sizeof longest - 1);
    assert_false(opens(longest, "too long"));
}

static void one_server_at_a_time(void **state) {
    (void)state;
    store_folder first;
    char why[512];
    assert_int_equal(store_folder_open(&first, at("d"), NULL, why, sizeof why), OK);
    assert_false(opens(at("d"), "another tesela"));
    store_folder_close(&first);
    assert_true(opens(at("d"), NULL));
}

static void format_files(void **state) {
    (void)state;
    static const struct {
        const char *text, *word;
    } wrong[] = {{"", "damaged"},
                 {"tesela data", "damaged"},
                 {"tesela data ", "damaged"},
                 {"tesela data 4", "damaged"},
                 {"tesela data x\n", "damaged"},
                 {"tesela data 4 x\n", "damaged"},
                 {"tesela data 4\nx", "damaged"},
                 {"something else\n", "damaged"},
                 {"tesela data 1\n", "format 1"},
                 {"tesela data 12\n", "format 12"},
                 {"tesela data 0\n", "format 0"}};
    assert_true(opens(at("d"), NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_file(at("d/FORMAT"), wrong[i].text, strlen(wrong[i].text));
        assert_false(opens(at("d"), wrong[i].word));
    }
    write_file(at("d/FORMAT"), "tesela data 4\n\0\0", 16);
    assert_true(opens(at("d"), NULL));
}

/* RocksDB would create a new database over the old files. */
static void a_database_without_its_current_file_is_refused(void **state) {
    (void)state;
    static const char *const files[] = {"d/db/000012.sst", "d/db/000004.log", "d/db/MANIFEST-000016"};
    assert_true(opens(at("d"), NULL));
    assert_int_equal(mkdir(at("d/db"), 0700), 0);
    assert_true(opens(at("d"), NULL));
    write_file(at("d/db/MANIFEST-000001"), "x", 1);
    write_file(at("d/db/LOG"), "x", 1);
    assert_true(opens(at("d"), NULL)); /* a first start that was killed may leave these */
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_file(at(files[i]), "x", 1);
        assert_false(opens(at("d"), "CURRENT is missing"));
        write_file(at("d/db/CURRENT"), "x", 1);
        assert_true(opens(at("d"), NULL));
        unlink(at("d/db/CURRENT"));
        unlink(at(files[i]));
    }
}

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

/* Like a start that fails after opening the folder. */
static store_folder_new open_and_close(const char *dir) {
    store_folder folder;
    store_folder_new made;
    char why[512];
    assert_int_equal(store_folder_open(&folder, dir, &made, why, sizeof why), OK);
    store_folder_close(&folder);
    return made;
}

static void a_file_is_no_folder(void **state) {
    (void)state;
    write_file(at("file"), "x", 1);
    assert_false(opens(at("file"), "is a file, not a folder"));
    assert_false(opens(at("file/below"), "Not a directory"));
}

static void what_a_failed_start_made_is_taken_back(void **state) {
    (void)state;
    assert_int_equal(mkdir(at("there"), 0700), 0);
    store_folder_new deep = open_and_close(at("there/a/b/c"));
    assert_int_equal(mkdir(at("there/a/b/c/db"), 0700), 0);
    write_file(at("there/a/b/c/db/CURRENT"), "x", 1);
    write_file(at("there/a/b/c/tls-key.pem"), "x", 1);
    store_folder_discard(at("there/a/b/c"), &deep);
    assert_false(exists(at("there/a")));
    assert_true(exists(at("there")));

    store_folder_new empty = open_and_close(at("there"));
    assert_true(empty.marked);
    store_folder_discard(at("there"), &empty);
    assert_true(exists(at("there")));
    assert_false(exists(at("there/FORMAT")));
}

static void a_folder_of_before_is_not_taken_back(void **state) {
    (void)state;
    open_and_close(at("d"));
    store_folder_new again = open_and_close(at("d"));
    assert_false(again.marked);
    store_folder_discard(at("d"), &again);
    assert_true(exists(at("d/FORMAT")));
}

static void a_folder_with_something_else_stays(void **state) {
    (void)state;
    store_folder_new made = open_and_close(at("d"));
    write_file(at("d/notes"), "x", 1);
    store_folder_discard(at("d"), &made);
    assert_true(exists(at("d/notes")));
}

static bool resets(const char *dir, const char *word) {
    char why[512] = "";
    bool good = store_folder_reset(dir, why, sizeof why) == OK;
    assert_true(good == !word);
    if (word && !strstr(why, word)) {
        fail_msg("'%s' does not say '%s'", why, word);
    }
    return good;
}

static void a_reset_deletes_the_data_alone(void **state) {
    (void)state;
    open_and_close(at("d"));
    assert_int_equal(mkdir(at("d/db"), 0700), 0);
    write_file(at("d/db/000004.log"), "x", 1); /* a damaged store: CURRENT is missing */
    write_file(at("d/tls-cert.pem"), "x", 1);
    assert_true(resets(at("d"), NULL));
    assert_false(exists(at("d/db")));
    assert_true(exists(at("d/tls-cert.pem")));
    assert_true(opens(at("d"), NULL));
    assert_true(resets(at("d"), NULL)); /* resetting an empty folder is no error */
}

static void only_an_own_folder_that_nobody_uses_is_reset(void **state) {
    (void)state;
    store_folder used;
    char why[512];
    assert_int_equal(mkdir(at("other"), 0700), 0);
    assert_int_equal(mkdir(at("other/db"), 0700), 0);
    write_file(at("other/db/precious"), "x", 1);
    resets(at("other"), "no FORMAT file");
    write_file(at("other/FORMAT"), "a format of others\n", 19);
    resets(at("other"), "damaged");
    assert_true(exists(at("other/db/precious")));
    resets(at("nowhere"), "no FORMAT file");
    resets("", "empty");
    assert_int_equal(store_folder_open(&used, at("d"), NULL, why, sizeof why), OK);
    resets(at("d"), "another tesela");
    store_folder_close(&used);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_no_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_failed_start_made_is_taken_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_of_before_is_not_taken_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_with_something_else_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reset_deletes_the_data_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_an_own_folder_that_nobody_uses_is_reset, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_folder_is_made_with_its_parents, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_empty_folder_becomes_ours, set_up, tear_down),
        cmocka_unit_test_setup_teardown(somebody_elses_folder_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_server_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(format_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_database_without_its_current_file_is_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
