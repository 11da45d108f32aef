/* Lookups, listings, reads and writes by many threads while databases and containers are created, changed and deleted. For ThreadSanitizer;
 * also checks that every object found is complete. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"

enum { THREADS = 4, ROUNDS = 120, NAMES = 5 };

static harness h;
static atomic_bool stop;

#define KEY "\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"

static void must(bool condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

/* A container has the settings it was made with: its ttl tells which version they are. */
static void look_at(const container *c) {
    must(c->key.n == 1 && c->space && c->tiles->map->n == 2, "container");
    must(c->ttl == TTL_OFF || (c->ttl >= 10 && c->ttl < 10 + ROUNDS), "ttl");
    must(slice_starts(c->id, SLICE_LIT("c")) && slice_eq(c->database_id, SLICE_LIT("d")), "names");
    must(c->settings.n > 20, "settings");
}

static bool visit(void *context, const container *c) {
    ++*(unsigned *)context;
    look_at(c);
    return true;
}

static void use_items(random_source *r, container *c, arena *a) {
    waited_commit w = {.base = {.items = account_items(h.account), .container = c, .n = 1, .atomic = true, .range_id = -1}};
    item_op o = {.kind = random_below(r, 4) ? ITEM_UPSERT : ITEM_DELETE};
    bson_t body = BSON_INITIALIZER;
    pkey key = {.n = 1, .values = {{.type = PKEY_NUMBER, .number = (double)random_below(r, 10)}}};
    op_init(&o.op, a, HARNESS_START_S);
    bson_append_utf8(&body, "id", -1, "x", -1);
    bson_append_double(&body, "pk", -1, key.values[0].number);
    o.body = arena_copy(a, slice_of(bson_get_data(&body), body.len));
    bson_destroy(&body);
    err code = o.kind == ITEM_UPSERT ? item_check_body(&o.op, c, NULL, &o) : item_check_key(&o.op, c, &key, SLICE_LIT("x"), &o.key);
    must(code == OK, "prepare");
    w.base.ops = &o;
    w.base.done = commit_is_done;
    sem_init(&w.waiter.done, 0, 0);
    w.base.op = &o.op;
    must(item_commit_submit(&w.base) == OK, "submit");
    waiter_wait(&w.waiter);
    item_commit_give(&w.base);
    code = w.base.base.code;
    must(code == OK || code == E_NOT_FOUND || code == E_OWNER_NOT_FOUND, "write");
    item_found found;
    op reading;
    op_init(&reading, a, HARNESS_START_S);
    code = item_read(account_items(h.account), &reading, c, &o.key, &found);
    must(code == OK || code == E_NOT_FOUND, "read");
    if (code == OK) {
        item_give(&found);
    }
}

static void *look_around(void *context) {
    random_source r;
    arena a = arena_init();
    random_seed(&r, (uintptr_t)context);
    while (!atomic_load(&stop)) {
        char name[8];
        container *c = NULL;
        database *d = NULL;
        offer o;
        unsigned n = 0;
        slice id = slice_of(name, (size_t)snprintf(name, sizeof name, "c%u", (unsigned)random_below(&r, NAMES)));
        if (account_container(h.account, SLICE_LIT("d"), false, id, false, &c) == OK) {
            look_at(c);
            use_items(&r, c, &a);
            account_offer_of(h.account, 1, c->space->container, &o);
            container_give(c);
        }
        if (account_database(h.account, SLICE_LIT("d"), false, &d) == OK) {
            must(strcmp(d->id, "d") == 0, "database");
            account_each_container(h.account, d, 0, visit, &n);
            must(n <= NAMES, "listing");
            database_give(d);
        }
        account_lsn(h.account);
        arena_reset(&a);
    }
    arena_free(&a);
    return NULL;
}

static void change_something(random_source *r, int round) {
    char name[8], properties[200];
    container *made = NULL;
    snprintf(name, sizeof name, "c%u", (unsigned)random_below(r, NAMES));
    snprintf(properties, sizeof properties, "{\"id\":\"%s\"," KEY "}", name);
    switch (random_below(r, 8)) {
    case 0:
        if (random_below(r, 4) == 0) {
            assert_int_equal(harness_delete_database(&h, "d"), OK);
            assert_int_equal(harness_create_database(&h, "d", (throughput_setting){.kind = THROUGHPUT_MANUAL, .value = 400}), OK);
        }
        break;
    case 1:
    case 2:
        harness_delete_container(&h, "d", name);
        break;
    case 3:
    case 4:
        snprintf(properties, sizeof properties, "{\"id\":\"%s\"," KEY ",\"defaultTtl\":%d}", name, 10 + round);
        harness_replace_container(&h, "d", name, properties);
        break;
    default:
        if (harness_create_container(&h, "d", properties, 2000, &made) == OK) {
            container_give(made);
        }
    }
    account_tick(h.account);
}

static void lookups_while_everything_changes(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    random_source r;
    random_seed(&r, 9);
    harness_open(&h);
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, look_around, (void *)(i + 1)), 0);
    }
    for (int round = 0; round < ROUNDS; round++) {
        change_something(&r, round);
        usleep(500);
        arena_reset(&h.arena);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    while (atomic_load(&h.account->sweeps_in_flight)) {
        usleep(100);
    }
    for (int i = 0; i < NAMES; i++) {
        char name[8];
        snprintf(name, sizeof name, "c%d", i);
        container *c = harness_find(&h, "d", name);
        if (c) {
            harness_check(&h, c);
            container_give(c);
        }
    }
    harness_close(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lookups_while_everything_changes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
