/* Ten thousand containers in one account on RocksDB: start-up time, memory, and that deleting them all at once blocks no one. Figures are
 * printed; the bounds are loose, for slow machines and sanitizers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"

enum { CONTAINERS = 10000, DATABASES = 10 };

static double seconds(void) {
    return (double)clock_monotonic_us(&clock_system) / 1e6;
}

static double resident_mb(void) {
    unsigned long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%lu %lu", &size, &resident) != 2) {
            resident = 0;
        }
        fclose(file);
    }
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static void make_all(harness *h) {
    for (int i = 0; i < CONTAINERS; i++) {
        char database[20], properties[200];
        container *c;
        snprintf(database, sizeof database, "d%d", i % DATABASES);
        snprintf(properties, sizeof properties, "{\"id\":\"container number %d\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2}}", i);
        assert_int_equal(harness_create_container(h, database, properties, 400, &c), OK);
        if (i % 100 == 0) {
            assert_int_equal(harness_write(h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":1}"), OK);
        }
        container_give(c);
        if (i % 100 == 99) {
            arena_reset(&h->arena);
        }
    }
}

static bool count_one(void *context, const container *c) {
    (void)c;
    ++*(unsigned *)context;
    return true;
}

static unsigned count_all(harness *h) {
    unsigned n = 0;
    for (int i = 0; i < DATABASES; i++) {
        char name[20];
        database *d;
        snprintf(name, sizeof name, "d%d", i);
        if (account_database(h->account, slice_str(name), false, &d) == OK) {
            account_each_container(h->account, d, 0, count_one, &n);
            database_give(d);
        }
    }
    return n;
}

static void ten_thousand_containers(void **state) {
    (void)state;
    harness h;
    char *folder = make_folder();
    harness_open_on(&h, open_rocks(folder));
    for (int i = 0; i < DATABASES; i++) {
        char name[20];
        snprintf(name, sizeof name, "d%d", i);
        assert_int_equal(harness_create_database(&h, name, (throughput_setting){0}), OK);
    }
    double start = seconds();
    make_all(&h);
    printf("created: %.2f s, %.0f µs each (not synced)\n", seconds() - start, (seconds() - start) / CONTAINERS * 1e6);

    account_close(h.account);
    double before = resident_mb();
    start = seconds();
    harness_open_account(&h);
    double opening = seconds() - start;
    printf("opened: %.3f s, %.1f MB more\n", opening, resident_mb() - before);
    assert_true(opening < 10);
    assert_int_equal(count_all(&h), CONTAINERS);
    container *c = harness_found(&h, "d0", "container number 9900");
    assert_int_equal(harness_count(c), 1);
    assert_string_equal(harness_read(&h, c, "[1]", "1"), "{\"id\":\"1\",\"pk\":1}");

    start = seconds();
    for (int i = 0; i < 100000; i++) {
        container *found = NULL;
        assert_int_equal(account_container(h.account, SLICE_LIT("d7"), false, SLICE_LIT("container number 4567"), false, &found), OK);
        container_give(found);
    }
    printf("found by name: %.0f ns\n", (seconds() - start) / 100000 * 1e9);

    start = seconds();
    account_tick(h.account);
    printf("tick: %.0f µs\n", (seconds() - start) * 1e6);

    start = seconds();
    assert_int_equal(harness_delete_database(&h, "d0"), OK);
    double deleting = seconds() - start;
    printf("a database of %d containers deleted: %.3f s\n", CONTAINERS / DATABASES, deleting);
    assert_true(deleting < 5);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"2\",\"pk\":1}"), E_OWNER_NOT_FOUND);
    container_give(c);
    assert_int_equal(count_all(&h), CONTAINERS - CONTAINERS / DATABASES);
    start = seconds();
    harness_close(&h);
    double closing = seconds() - start;
    printf("closed: %.3f s\n", closing);
    assert_true(closing < 20);
    remove_folder(folder);
    free(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ten_thousand_containers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
