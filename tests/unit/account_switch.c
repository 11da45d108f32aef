/* Another container in the place of one: freezes, and the exchange of names: with writes, restarts, failing stores and threads. On both
 * kinds of store. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"

static harness h;
static char *folder; /* RocksDB's folder; NULL: in memory */

static err create(const char *properties, const char *api) {
    container_creation c = {.database = harness_name("d"),
                            .settings = harness_bson(&h, properties),
                            .throughput = {.kind = THROUGHPUT_MANUAL, .value = 400},
                            .api = api ? slice_str(api) : SLICE_EMPTY};
    err code = harness_change(&h, &c, account_create_container);
    if (c.container_out) {
        container_give(c.container_out);
    }
    return code;
}

static void make_two(void) {
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    assert_int_equal(create("{\"id\":\"a\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}", NULL), OK);
    assert_int_equal(create("{\"id\":\"b\",\"partitionKey\":{\"paths\":[\"/city\"],\"kind\":\"Hash\",\"version\":2}}", NULL), OK);
}

static int set_up(void **state) {
    (void)state;
    harness_open_on(&h, store_open_memory());
    make_two();
    return 0;
}

static int set_up_rocks(void **state) {
    (void)state;
    folder = make_folder();
    harness_open_on(&h, open_rocks(folder));
    make_two();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    harness_close(&h);
    if (folder) {
        remove_folder(folder);
        free(folder);
        folder = NULL;
    }
    return 0;
}

/* ---- steps ---- */

static err put_into(container *c, const char *id) {
    char body[100];
    snprintf(body, sizeof body, "{\"id\":\"%s\",\"pk\":\"p\",\"city\":\"lima\"}", id);
    return harness_write(&h, c, ITEM_UPSERT, NULL, NULL, body);
}

static err put(const char *name, const char *id) {
    container *c = harness_found(&h, "d", name);
    err code = put_into(c, id);
    container_give(c);
    return code;
}

static err freeze(const char *name, unsigned ms, int64_t *token) {
    container *c = harness_found(&h, "d", name);
    err code = account_freeze(h.account, harness_op(&h), c, ms, token);
    container_give(c);
    return code;
}

static void thaw(const char *name, int64_t token) {
    container *c = harness_found(&h, "d", name);
    account_thaw(c, token);
    container_give(c);
}

static err exchange(const char *name, const char *with, int64_t token) {
    container *c = harness_found(&h, "d", name), *other = harness_found(&h, "d", with);
    err code = account_switch(h.account, harness_op(&h), c, other, token);
    container_give(c);
    container_give(other);
    return code;
}

/* "/pk", and whether it is retired. */
static const char *key_of(const char *name) {
    container *c = harness_found(&h, "d", name);
    const char *text =
        arena_printf(&h.arena, "%.*s%s", (int)c->key.paths[0].text.n, c->key.paths[0].text.p, c->retired ? " retired" : "").p;
    container_give(c);
    return text;
}

static bool list_container(void *context, const container *c) {
    buf_add_slice(context, c->id);
    buf_add_byte(context, ' ');
    return true;
}

static const char *listing(void) {
    buf text = buf_init(BUF_NO_LIMIT);
    database *d = NULL;
    assert_int_equal(account_database(h.account, SLICE_LIT("d"), false, &d), OK);
    account_each_container(h.account, d, 0, list_container, &text);
    database_give(d);
    const char *made = arena_text(&h.arena, buf_view(&text));
    buf_free(&text);
    return made;
}

/* ---- tests ---- */

static void a_freeze_refuses_writes_until_it_is_over(void **state) {
    (void)state;
    int64_t token = 0, other = 0;
    assert_int_equal(put("a", "1"), OK);
    assert_int_equal(freeze("a", 5000, &token), OK);
    assert_true(token > 0);
    assert_int_equal(put("a", "2"), E_FROZEN);
    assert_int_equal(put("b", "2"), OK);
    container *c = harness_found(&h, "d", "a");
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"p\"]", "1", NULL), E_FROZEN);
    assert_int_equal(harness_write(&h, c, ITEM_READ, "[\"p\"]", "1", NULL), OK); /* within a transaction */
    assert_non_null(harness_read(&h, c, "[\"p\"]", "1"));
    container_give(c);
    assert_int_equal(freeze("a", 5000, &other), E_CONFLICT);
    clock_manual_advance(&h.clock, 4000);
    int64_t prolonged = token;
    assert_int_equal(freeze("a", 5000, &prolonged), OK);
    assert_true(prolonged > token);
    clock_manual_advance(&h.clock, 4000);
    assert_int_equal(put("a", "2"), E_FROZEN);
    thaw("a", token); /* not that one any more */
    assert_int_equal(put("a", "2"), E_FROZEN);
    clock_manual_advance(&h.clock, 1001);
    assert_int_equal(put("a", "2"), OK);
    assert_int_equal(freeze("a", 5000, &prolonged), E_CONFLICT); /* it was over: writes may have come */
    token = 0;
    assert_int_equal(freeze("a", 5000, &token), OK);
    thaw("a", token);
    assert_int_equal(put("a", "3"), OK);
    token = 0;
    assert_int_equal(freeze("a", 5000, &token), OK);
    harness_restart(&h);
    assert_int_equal(put("a", "4"), OK);
}

static err claim(const char *name, uint64_t claimant, unsigned ms) {
    container *c = harness_found(&h, "d", name);
    err code = account_claim(h.account, harness_op(&h), c, claimant, ms);
    container_give(c);
    return code;
}

static void a_claim_refuses_claims_of_others_until_it_is_over(void **state) {
    (void)state;
    assert_int_equal(claim("a", 7, 5000), OK);
    assert_int_equal(claim("a", 8, 5000), E_CONFLICT);
    assert_int_equal(claim("b", 8, 5000), OK);
    assert_int_equal(put("a", "1"), OK);
    clock_manual_advance(&h.clock, 4000);
    assert_int_equal(claim("a", 7, 5000), OK);
    clock_manual_advance(&h.clock, 4000);
    assert_int_equal(claim("a", 8, 5000), E_CONFLICT);
    clock_manual_advance(&h.clock, 1001);
    assert_int_equal(claim("a", 8, 5000), OK);
    assert_int_equal(claim("a", 7, 5000), E_CONFLICT);
    assert_int_equal(claim("a", 8, 1), OK); /* given up */
    clock_manual_advance(&h.clock, 2);
    assert_int_equal(claim("a", 7, 5000), OK);
    harness_restart(&h);
    assert_int_equal(claim("a", 8, 5000), OK);
}

static void names_are_exchanged_in_one_step(void **state) {
    (void)state;
    int64_t token = 0;
    assert_int_equal(put("a", "1"), OK);
    assert_int_equal(put("b", "2"), OK);
    assert_int_equal(freeze("a", 5000, &token), OK);
    container *before = harness_found(&h, "d", "a"), *with = harness_found(&h, "d", "b");
    assert_int_equal(exchange("a", "b", token), OK);
    for (int again = 0; again < 2; again++) {
        assert_string_equal(listing(), "b a "); /* by their numbers */
        assert_string_equal(key_of("a"), "/city");
        assert_string_equal(key_of("b"), "/pk retired");
        assert_int_equal(put("a", "3"), OK);
        assert_int_equal(put("b", "3"), E_RETIRED);
        container *now = harness_found(&h, "d", "a"), *old = harness_found(&h, "d", "b");
        assert_memory_equal(now->rid, with->rid, sizeof now->rid);
        assert_memory_equal(old->rid, before->rid, sizeof old->rid);
        assert_int_equal(harness_write(&h, old, ITEM_READ, "[\"p\"]", "1", NULL), OK);
        assert_int_equal(harness_write(&h, now, ITEM_READ, "[\"lima\"]", "2", NULL), OK);
        harness_check(&h, now);
        harness_check(&h, old);
        container_give(now);
        container_give(old);
        if (again == 0) {
            assert_int_equal(put_into(before, "late"), E_FROZEN); /* found before: its client is told to retry, and finds the new one */
            container_give(before);
            container_give(with);
            harness_restart(&h);
            before = harness_found(&h, "d", "b");
            with = harness_found(&h, "d", "a");
        }
    }
    container_give(before);
    container_give(with);
    token = 0;
    assert_int_equal(freeze("b", 5000, &token), E_RETIRED);
    container_deletion remove = {.database = harness_name("d"), .container = harness_name("b")};
    assert_int_equal(harness_change(&h, &remove, account_delete_container), OK);
    assert_string_equal(listing(), "a ");
    harness_restart(&h);
    assert_string_equal(listing(), "a ");
    assert_int_equal(put("a", "4"), OK);
}

static void what_is_not_frozen_or_alike_is_refused(void **state) {
    (void)state;
    int64_t token = 0;
    assert_int_equal(create("{\"id\":\"m\",\"partitionKey\":{\"paths\":[\"/city\"],\"kind\":\"Hash\",\"version\":2}}", "mongo"), OK);
    assert_int_equal(exchange("a", "b", 0), E_PRECONDITION);
    assert_int_equal(exchange("a", "b", CONTAINER_FOREVER), E_PRECONDITION);
    assert_int_equal(freeze("a", 5000, &token), OK);
    assert_int_equal(exchange("a", "b", token + 1), E_PRECONDITION);
    assert_int_equal(exchange("a", "a", token), E_BAD_REQUEST);
    assert_int_equal(exchange("a", "m", token), E_BAD_REQUEST);
    assert_int_equal(put("a", "1"), E_FROZEN); /* still */
    clock_manual_advance(&h.clock, 5001);
    assert_int_equal(put("a", "1"), OK); /* a write has come: the copy may lack it */
    assert_int_equal(exchange("a", "b", token), E_PRECONDITION);
    assert_string_equal(key_of("a"), "/pk");
    assert_string_equal(listing(), "a b m ");
}

static void a_failed_write_leaves_it_as_it_was(void **state) {
    (void)state;
    int64_t token = 0;
    assert_int_equal(put("a", "1"), OK);
    assert_int_equal(freeze("a", 5000, &token), OK);
    h.plan.write_in = 1;
    h.plan.fired = 0;
    assert_int_equal(exchange("a", "b", token), E_STORE_IO);
    assert_int_equal(h.plan.fired, 1);
    h.plan.write_in = 0;
    assert_string_equal(listing(), "a b ");
    assert_string_equal(key_of("a"), "/pk");
    harness_restart(&h); /* the store takes no more writes after a failed one */
    assert_string_equal(listing(), "a b ");
    assert_string_equal(key_of("a"), "/pk");
    assert_int_equal(put("a", "2"), OK);
    token = 0;
    assert_int_equal(freeze("a", 5000, &token), OK);
    assert_int_equal(exchange("a", "b", token), OK);
    assert_string_equal(key_of("a"), "/city");
}

/* ---- threads: a write at the very end of a freeze, and the switch ---- */

enum { ROUNDS = 2000, HELD_US = 30 };

static container *racing;
static int64_t token_now;
static pthread_barrier_t gate;
static bool admitted, retired, over;

static void *write_when_thawed(void *unused) {
    for (;;) {
        pthread_barrier_wait(&gate);
        if (over) {
            return unused;
        }
        while (container_space_is_frozen(racing->space, &clock_system) && atomic_load(&racing->space->frozen_us) != CONTAINER_FOREVER) {
        }
        admitted = !container_space_is_frozen(racing->space, &clock_system);
        pthread_barrier_wait(&gate);
    }
}

static void a_write_or_the_switch_but_not_both(void **state) {
    (void)state;
    pthread_t writer;
    unsigned both = 0, neither = 0;
    racing = harness_found(&h, "d", "a");
    pthread_barrier_init(&gate, NULL, 2);
    assert_int_equal(pthread_create(&writer, NULL, write_when_thawed, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        token_now = clock_monotonic_us(&clock_system) + HELD_US;
        atomic_store(&racing->space->frozen_us, 0);
        assert_true(container_space_freeze(racing->space, &clock_system, 0, token_now));
        pthread_barrier_wait(&gate);
        while (clock_monotonic_us(&clock_system) < token_now - 2 + i % 5) {
        }
        retired = container_space_retire(racing->space, token_now);
        pthread_barrier_wait(&gate);
        both += admitted && retired;
        neither += !admitted && !retired;
    }
    over = true;
    pthread_barrier_wait(&gate);
    pthread_join(writer, NULL);
    pthread_barrier_destroy(&gate);
    atomic_store(&racing->space->frozen_us, 0);
    container_give(racing);
    assert_int_equal(both, 0);
    assert_int_equal(neither, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define ON_BOTH(test)                                                                                                                      \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down), cmocka_unit_test_setup_teardown(test, set_up_rocks, tear_down)
        ON_BOTH(a_freeze_refuses_writes_until_it_is_over),
        ON_BOTH(a_claim_refuses_claims_of_others_until_it_is_over),
        ON_BOTH(names_are_exchanged_in_one_step),
        ON_BOTH(what_is_not_frozen_or_alike_is_refused),
        ON_BOTH(a_failed_write_leaves_it_as_it_was),
        cmocka_unit_test_setup_teardown(a_write_or_the_switch_but_not_both, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
