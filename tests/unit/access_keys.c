/* The account's keys while they change: their sources, what is rejected, and loops that read them concurrently. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/keys.h"
#include "base/log.h"

static const char first[] = "Zmlyc3Qga2V5IG9mIGFsbCwgbG9uZyBlbm91Z2ggZm9yIGEga2V5Lg==";
static const char second[] = "c2Vjb25kIGtleSBvZiBhbGwsIGxvbmcgZW5vdWdoIGZvciBhIGtleS4=";
static const char reader[] = "cmVhZGVycycga2V5LCBhcyBsb25nIGFzIHRoZSBvdGhlcnMgYXJlLi4=";

static char folder[64], file[96];

static int make_folder(void **state) {
    (void)state;
    log_set_level(LOG_ERROR);
    snprintf(folder, sizeof folder, "/tmp/tesela-keys-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/keys", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(file);
    assert_int_equal(rmdir(folder), 0); /* no temporary file is left */
    return 0;
}

static void write_file(const char *text) {
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    chmod(file, 0600);
}

static void write_keys(const char *a, const char *b, const char *c) {
    char text[512];
    snprintf(text, sizeof text, "%s\n%s\n%s\n", a, b, c);
    write_file(text);
}

static access_keys *open_file(void) {
    char why[ACCESS_KEYS_WHY_BYTES] = "";
    access_keys *keys = access_keys_open(&(access_keys_options){.file = file}, why);
    if (!keys) {
        fail_msg("%s", why);
    }
    return keys;
}

static bool has(access_keys *keys, const char *text, access_key as) {
    access_key found;
    return access_ring_find(access_keys_ring(keys), slice_str(text), &found) && found == as;
}

static void given_keys_stay(void **state) {
    (void)state;
    char why[ACCESS_KEYS_WHY_BYTES] = "", text[ACCESS_KEY_TEXT_BYTES];
    access_keys *keys = access_keys_open(&(access_keys_options){.given = {first, NULL, reader}}, why);
    assert_non_null(keys);
    assert_int_equal(access_keys_source(keys), ACCESS_KEYS_GIVEN);
    assert_true(has(keys, first, ACCESS_KEY_PRIMARY) && has(keys, reader, ACCESS_KEY_PRIMARY_READ_ONLY));
    assert_true(access_keys_text(keys, ACCESS_KEY_PRIMARY, text));
    assert_string_equal(text, first);
    assert_false(access_keys_text(keys, ACCESS_KEY_SECONDARY, text));
    assert_false(access_keys_regenerate(keys, ACCESS_KEY_PRIMARY, why));
    assert_non_null(strstr(why, "--key-file"));
    assert_false(access_keys_reload(keys, why));
    assert_true(has(keys, first, ACCESS_KEY_PRIMARY));
    access_keys_close(keys);

    keys = access_keys_open(&(access_keys_options){0}, why);
    assert_int_equal(access_keys_source(keys), ACCESS_KEYS_WELL_KNOWN);
    assert_true(has(keys, access_key_emulator, ACCESS_KEY_PRIMARY));
    assert_false(access_keys_regenerate(keys, ACCESS_KEY_SECONDARY, why));
    assert_non_null(strstr(why, "--key-file"));
    access_keys_close(keys);
}

static void bad_ones_are_refused(void **state) {
    (void)state;
    char why[ACCESS_KEYS_WHY_BYTES] = "", long_key[500];
    assert_null(access_keys_open(&(access_keys_options){.given = {"not base64!"}}, why));
    assert_non_null(strstr(why, "base64"));
    assert_null(strstr(why, "not base64!")); /* the text could be a part of a key */
    assert_null(access_keys_open(&(access_keys_options){.given = {first, first}}, why));
    assert_non_null(strstr(why, "the same"));
    memset(long_key, 'A', sizeof long_key - 1);
    long_key[sizeof long_key - 1] = '\0';
    assert_null(access_keys_open(&(access_keys_options){.given = {long_key}}, why));
    assert_null(access_keys_open(&(access_keys_options){.file = "/nowhere/at/all"}, why));
    assert_non_null(strstr(why, "/nowhere/at/all"));
    assert_null(access_keys_open(&(access_keys_options){.file = "/tmp"}, why));
}

static void a_file_is_read_again(void **state) {
    (void)state;
    char why[ACCESS_KEYS_WHY_BYTES] = "";
    write_keys(first, second, "-");
    access_keys *keys = open_file();
    assert_true(has(keys, first, ACCESS_KEY_PRIMARY) && has(keys, second, ACCESS_KEY_SECONDARY));
    write_keys(first, "-", reader);
    assert_true(access_keys_reload(keys, why));
    assert_false(has(keys, second, ACCESS_KEY_SECONDARY));
    assert_true(has(keys, first, ACCESS_KEY_PRIMARY) && has(keys, reader, ACCESS_KEY_PRIMARY_READ_ONLY));
    assert_int_equal(access_keys_changes(keys), 1);
    assert_true(access_keys_reload(keys, why));
    assert_int_equal(access_keys_changes(keys), 1);

    write_keys(second, "-", "-");
    access_keys_tick(keys);
    assert_true(has(keys, first, ACCESS_KEY_PRIMARY));
    access_keys_reload_soon(keys);
    access_keys_tick(keys);
    assert_true(has(keys, second, ACCESS_KEY_PRIMARY));
    access_keys_close(keys);
}

static void a_bad_line_is_named(void **state) {
    (void)state;
    static const struct {
        const char *text, *place;
    } bad[] = {{"!\n", "line 1 of "},
               {"AAAA\n\n\nno base64!\n", "line 4 of "},
               {"AAAA\nAAAA\n", "line 2 of "},
               {"A\n-\n-\n-\nAAAA\n", "line 5 of "}};
    char why[ACCESS_KEYS_WHY_BYTES];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(bad[i].text);
        assert_null(access_keys_open(&(access_keys_options){.file = file}, why));
        if (!strstr(why, bad[i].place) || !strstr(why, file)) {
            fail_msg("%s", why);
        }
    }
}

static void a_bad_file_changes_nothing(void **state) {
    (void)state;
    static const char *const bad[] = {"", "\n\n", "-\n", "-\nAAAA\n", "!\n", "AAAA\nAAAA\n", "AAAA\nBBBB\nCCCC\nDDDD\nEEEE\n"};
    char why[ACCESS_KEYS_WHY_BYTES], large[5000];
    write_keys(first, second, reader);
    access_keys *keys = open_file();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(bad[i]);
        why[0] = '\0';
        assert_false(access_keys_reload(keys, why));
        assert_true(strlen(why) > 10);
        assert_false(access_keys_regenerate(keys, ACCESS_KEY_SECONDARY_READ_ONLY, why));
    }
    memset(large, 'A', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    write_file(large);
    assert_false(access_keys_reload(keys, why));
    unlink(file);
    assert_false(access_keys_reload(keys, why));
    assert_int_equal(mkfifo(file, 0600), 0); /* it has no writer: a blocking open would hang */
    assert_false(access_keys_reload(keys, why));
    unlink(file);
    assert_true(has(keys, first, ACCESS_KEY_PRIMARY) && has(keys, second, ACCESS_KEY_SECONDARY) &&
                has(keys, reader, ACCESS_KEY_PRIMARY_READ_ONLY));
    assert_int_equal(access_keys_changes(keys), 0);
    access_keys_close(keys);
}

/* As any kind of key, from flags or from a file. */
static void the_emulators_key_is_refused_where_others_reach_it(void **state) {
    (void)state;
    char why[ACCESS_KEYS_WHY_BYTES] = "";
    for (access_key kind = ACCESS_KEY_PRIMARY; kind < ACCESS_KEY_COUNT; kind++) {
        access_keys_options o = {.given = {first}, .exposed = true};
        o.given[kind] = access_key_emulator;
        assert_null(access_keys_open(&o, why));
        assert_non_null(strstr(why, access_key_names[kind]));
        assert_non_null(strstr(why, "--allow-well-known-key"));
        o.allow_well_known = true;
        access_keys *allowed = access_keys_open(&o, why);
        assert_non_null(allowed);
        assert_true(has(allowed, access_key_emulator, kind));
        access_keys_close(allowed);
        o.exposed = o.allow_well_known = false;
        access_keys *local = access_keys_open(&o, why);
        assert_non_null(local);
        access_keys_close(local);
    }
    assert_null(access_keys_open(&(access_keys_options){.exposed = true}, why)); /* without a key the default is the emulator's */
    write_keys(first, access_key_emulator, "-");
    assert_null(access_keys_open(&(access_keys_options){.file = file, .exposed = true}, why));
}

static void the_emulators_key_is_refused_from_a_file_that_changed(void **state) {
    (void)state;
    char why[ACCESS_KEYS_WHY_BYTES] = "";
    write_keys(first, second, "-");
    access_keys *keys = access_keys_open(&(access_keys_options){.file = file, .exposed = true}, why);
    assert_non_null(keys);
    write_keys(first, access_key_emulator, reader);
    assert_false(access_keys_reload(keys, why));
    assert_non_null(strstr(why, "secondary"));
    assert_false(access_keys_regenerate(keys, ACCESS_KEY_PRIMARY, why));
    access_keys_reload_soon(keys);
    access_keys_tick(keys);
    assert_true(has(keys, first, ACCESS_KEY_PRIMARY) && has(keys, second, ACCESS_KEY_SECONDARY));
    assert_false(has(keys, access_key_emulator, ACCESS_KEY_SECONDARY) || has(keys, reader, ACCESS_KEY_PRIMARY_READ_ONLY));
    assert_int_equal(access_keys_changes(keys), 0);
    assert_true(access_keys_regenerate(keys, ACCESS_KEY_SECONDARY, why)); /* replaces the emulator's key */
    assert_true(has(keys, reader, ACCESS_KEY_PRIMARY_READ_ONLY));
    access_keys_close(keys);
}

static void a_new_key_is_in_the_file(void **state) {
    (void)state;
    char why[ACCESS_KEYS_WHY_BYTES] = "", text[ACCESS_KEY_TEXT_BYTES], link_path[128];
    struct stat is;
    write_keys(first, second, "-");
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    assert_int_equal(symlink(file, link_path), 0);
    access_keys *keys = access_keys_open(&(access_keys_options){.file = link_path}, why);
    chmod(file, 0644);
    assert_true(access_keys_regenerate(keys, ACCESS_KEY_PRIMARY, why));
    assert_true(access_keys_regenerate(keys, ACCESS_KEY_SECONDARY_READ_ONLY, why));
    assert_false(has(keys, first, ACCESS_KEY_PRIMARY));
    assert_true(has(keys, second, ACCESS_KEY_SECONDARY));
    assert_true(access_keys_text(keys, ACCESS_KEY_PRIMARY, text));
    assert_int_equal(strlen(text), 88);
    assert_true(has(keys, text, ACCESS_KEY_PRIMARY));
    assert_int_equal(stat(file, &is), 0);
    assert_int_equal(is.st_mode & 0777, 0600);
    assert_int_equal(lstat(link_path, &is), 0);
    assert_true(S_ISLNK(is.st_mode));

    access_keys *again = open_file(); /* as after a restart */
    for (access_key key = ACCESS_KEY_PRIMARY; key < ACCESS_KEY_COUNT; key++) {
        char other[ACCESS_KEY_TEXT_BYTES];
        bool set = access_keys_text(keys, key, text);
        assert_int_equal(set, access_keys_text(again, key, other));
        assert_string_equal(text, other);
        assert_int_equal(set, key != ACCESS_KEY_PRIMARY_READ_ONLY);
    }
    access_keys_close(again);
    access_keys_close(keys);
    unlink(link_path);
}

static void kinds_have_names(void **state) {
    (void)state;
    access_key key;
    assert_true(access_key_parse(SLICE_LIT("primary"), &key) && key == ACCESS_KEY_PRIMARY);
    assert_true(access_key_parse(SLICE_LIT("SECONDARY"), &key) && key == ACCESS_KEY_SECONDARY);
    assert_true(access_key_parse(SLICE_LIT("primary-read-only"), &key) && key == ACCESS_KEY_PRIMARY_READ_ONLY);
    assert_true(access_key_parse(SLICE_LIT("secondaryReadonly"), &key) && key == ACCESS_KEY_SECONDARY_READ_ONLY);
    assert_false(access_key_parse(SLICE_LIT(""), &key));
    assert_false(access_key_parse(SLICE_LIT("primaryprimaryprimaryprimaryprimaryprimary"), &key));
}

/* ---- loops that read while keys change ---- */

typedef struct reading {
    net_task task; /* must be first */
    net_loop *loop;
    access_keys *keys;
    unsigned long rounds;
    bool wrong;
} reading;

static atomic_bool reading_ends;
static atomic_uint readers_left;

/* The secondary key stays while the primary changes: it must be valid in every ring. */
static void read_once(net_task *task) {
    reading *r = (reading *)task;
    char room[128];
    buf signature = {.p = room, .cap = sizeof room, .max = sizeof room};
    const access_ring *ring = access_keys_ring(r->keys);
    bool good = access_ring_sign(ring, ACCESS_KEY_SECONDARY, SLICE_LIT("text"), &signature) && has(r->keys, second, ACCESS_KEY_SECONDARY);
    good = good && access_ring_sign(ring, ACCESS_KEY_PRIMARY, SLICE_LIT("text"), &signature) && signature.n == 88;
    r->wrong = r->wrong || !good;
    r->rounds++;
    if (atomic_load(&reading_ends)) {
        atomic_fetch_sub(&readers_left, 1);
    } else {
        net_post(r->loop, &r->task);
    }
}

static void *run_server(void *server) {
    net_run(server);
    return NULL;
}

static void loops_read_while_keys_change(void **state) {
    (void)state;
    enum { LOOPS = 3, CHANGES = 60 };
    char why[ACCESS_KEYS_WHY_BYTES] = "";
    net_options options = net_defaults;
    net_server *server;
    pthread_t thread;
    reading readers[LOOPS];
    options.loops = LOOPS;
    assert_int_equal(net_open(&options, &server), OK);
    write_keys(first, second, "-");
    access_keys *keys = open_file();
    access_keys_serve(keys, server);
    atomic_store(&reading_ends, false);
    atomic_store(&readers_left, LOOPS);
    for (unsigned i = 0; i < LOOPS; i++) {
        readers[i] = (reading){.task = {.run = read_once}, .loop = net_server_loop(server, i), .keys = keys};
        net_post(readers[i].loop, &readers[i].task);
    }
    assert_int_equal(pthread_create(&thread, NULL, run_server, server), 0);
    for (unsigned i = 0; i < CHANGES; i++) {
        assert_true(i % 3 ? access_keys_regenerate(keys, ACCESS_KEY_PRIMARY, why) : access_keys_reload(keys, why));
    }
    atomic_store(&reading_ends, true);
    while (atomic_load(&readers_left)) {
        usleep(1000);
    }
    net_stop(server);
    pthread_join(thread, NULL);
    assert_true(access_keys_regenerate(keys, ACCESS_KEY_PRIMARY, why)); /* net_close runs late posts */
    net_close(server);
    for (unsigned i = 0; i < LOOPS; i++) {
        assert_true(readers[i].rounds > 0);
        assert_false(readers[i].wrong);
    }
    assert_false(has(keys, first, ACCESS_KEY_PRIMARY));
    access_keys_close(keys);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_keys_stay),
        cmocka_unit_test(bad_ones_are_refused),
        cmocka_unit_test_setup_teardown(the_emulators_key_is_refused_where_others_reach_it, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(the_emulators_key_is_refused_from_a_file_that_changed, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_file_is_read_again, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_bad_line_is_named, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_bad_file_changes_nothing, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_new_key_is_in_the_file, make_folder, remove_folder),
        cmocka_unit_test(kinds_have_names),
        cmocka_unit_test_setup_teardown(loops_read_while_keys_change, make_folder, remove_folder),
    };
    return cmocka_run_group_tests_name("access_keys", tests, NULL, NULL);
}
