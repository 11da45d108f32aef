/* Changing the indexing policy: the new index is built beside the current one while writes continue; builds are abandoned, reverted,
 * continued after a restart, and run on a failing store. After every step the entries of every generation are checked (terms_check.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "account/settings.h"
#include "item_harness.h"

#define KEY "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"

static const char *const policies[] = {
    KEY "}",
    KEY ",\"indexingPolicy\":{\"compositeIndexes\":[[{\"path\":\"/a\"},{\"path\":\"/b\",\"order\":\"descending\"}]]}}",
    KEY ",\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/a/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}]}}",
    KEY ",\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[{\"path\":\"/l/*\"}]}}",
    KEY ",\"indexingPolicy\":{\"indexingMode\":\"none\"}}",
};
enum { POLICIES = 5, OFF = 4, ITEMS = 130 };

static harness h;
static container *c;

static void start(size_t policy) {
    harness_open(&h);
    h.rules.no_merges = true;
    harness_restart(&h);
    c = harness_container(&h, policies[policy], 400);
}

static void renew(void) {
    container_give(c);
    c = harness_found(&h, "d", "c");
}

static void restart(void) {
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
}

static void stop(void) {
    harness_check(&h, c);
    container_give(c);
    harness_close(&h);
}

static err set_policy(size_t policy) {
    err code = harness_replace_container(&h, "d", "c", policies[policy]);
    renew();
    return code;
}

static err put(int id, int version) {
    char body[200];
    snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\",\"a\":%d,%s\"l\":[%d,%d]}", id, id % 3, version,
             version % 3 ? "\"b\":\"x\"," : "", id, version);
    return harness_write(&h, c, ITEM_UPSERT, NULL, NULL, body);
}

static err take_away(int id) {
    char key[16], name[16];
    snprintf(key, sizeof key, "[\"p%d\"]", id % 3);
    snprintf(name, sizeof name, "%d", id);
    return harness_write(&h, c, ITEM_DELETE, key, name, NULL);
}

static void fill(void) {
    for (int i = 0; i < ITEMS; i++) {
        assert_int_equal(put(i, i), OK);
    }
}

static bool build(unsigned cost) {
    bool ended;
    assert_int_equal(harness_build(&h, c, cost, false, &ended), OK);
    harness_check(&h, c);
    return ended;
}

static void put_to_use(void) {
    bool ended;
    assert_int_equal(harness_build(&h, c, 1, true, &ended), OK);
    assert_null(harness_part(c)->building);
    harness_check(&h, c);
}

/* ---- one change after the other ---- */

static void a_policy_is_changed_while_writes_go_on(void **state) {
    (void)state;
    start(0);
    fill();
    size_t before = terms_check(h.account, c);
    assert_int_equal(set_policy(1), OK);
    assert_non_null(harness_part(c)->building);
    assert_int_equal(harness_part(c)->index_progress, 0);
    assert_int_equal(container_space_seconds(c->space), (uint32_t)CONTAINER_UNKNOWN);
    uint32_t progress = 0, seconds = (uint32_t)CONTAINER_UNKNOWN;
    for (int i = 0; !build(10); i++) {
        assert_true(harness_part(c)->index_progress >= progress && harness_part(c)->index_progress < 100);
        progress = harness_part(c)->index_progress;
        assert_true(container_space_seconds(c->space) <= seconds); /* ten items in each five seconds, or fewer where some are gone */
        seconds = container_space_seconds(c->space);
        assert_true(i < 2 || seconds <= (ITEMS + (unsigned)i) / 2);
        clock_manual_advance(&h.clock, 5000);
        assert_int_equal(put(i, 1000), OK);             /* an item that is already built */
        assert_int_equal(put(ITEMS - 1 - i, 1000), OK); /* an item that is not built yet */
        assert_int_equal(put(ITEMS + i, 7), OK);        /* a new item */
        assert_int_equal(take_away(60 + i), OK);
        harness_check(&h, c);
    }
    assert_true(progress > 50);
    assert_true(seconds <= ITEMS / 2 / 2);
    put_to_use();
    assert_int_equal(harness_part(c)->index_progress, 100);
    assert_int_equal(container_space_seconds(c->space), 0);
    assert_true(((container_index *)harness_part(c)->index)->policy.composites_n == 1);
    assert_true(terms_check(h.account, c) > before / 2);
    stop();
}

static void back_in_the_middle(void **state) {
    (void)state;
    start(0);
    fill();
    uint8_t generation = ((container_index *)harness_part(c)->index)->generation;
    assert_int_equal(set_policy(2), OK);
    assert_false(build(40));
    assert_int_equal(set_policy(0), OK); /* the unfinished build is abandoned */
    assert_null(harness_part(c)->building);
    assert_int_equal(((container_index *)harness_part(c)->index)->generation, generation);
    harness_check(&h, c);
    assert_int_equal(set_policy(2), OK);
    assert_false(build(40));
    uint8_t given_up = ((container_index *)harness_part(c)->building)->generation;
    assert_int_equal(set_policy(3), OK); /* a third policy */
    assert_true(((container_index *)harness_part(c)->building)->generation != given_up &&
                ((container_index *)harness_part(c)->building)->generation != generation);
    harness_check(&h, c);
    assert_int_equal(set_policy(3), OK); /* the same policy: the build continues */
    while (!build(50)) {
    }
    put_to_use();
    assert_null(((container_index *)harness_part(c)->index)->policy.composites);
    stop();
}

static void none_and_back(void **state) {
    (void)state;
    start(0);
    fill();
    assert_int_equal(set_policy(OFF), OK); /* takes effect at once: there is nothing to build */
    assert_null(harness_part(c)->building);
    assert_int_equal(terms_check(h.account, c), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(put(i, 500), OK);
        assert_int_equal(take_away(20 + i), OK);
    }
    assert_int_equal(set_policy(0), OK);
    assert_non_null(harness_part(c)->building);
    assert_true(((container_index *)harness_part(c)->index)->policy.off); /* until the build is complete, the index is off */
    assert_false(build(30));
    assert_int_equal(set_policy(OFF), OK);
    assert_int_equal(terms_check(h.account, c), 0);
    assert_int_equal(set_policy(0), OK);
    while (!build(50)) {
    }
    put_to_use();
    assert_false(((container_index *)harness_part(c)->index)->policy.off);
    stop();
}

static void of_an_empty_container_at_once(void **state) {
    (void)state;
    start(0);
    assert_int_equal(set_policy(1), OK);
    assert_null(harness_part(c)->building);
    assert_true(((container_index *)harness_part(c)->index)->policy.composites_n == 1);
    fill();
    stop();
}

static void restarted_in_the_middle(void **state) {
    (void)state;
    start(0);
    fill();
    assert_int_equal(set_policy(3), OK);
    assert_false(build(60));
    uint32_t progress = harness_part(c)->index_progress;
    assert_true(progress > 20);
    restart();
    harness_check(&h, c);
    assert_non_null(harness_part(c)->building);
    assert_int_equal(harness_part(c)->index_progress, progress);
    assert_int_equal(put(3, 3000), OK);
    assert_int_equal(put(120, 3000), OK);
    while (!build(20)) {
    }
    restart(); /* completely built, but not in use yet */
    assert_non_null(harness_part(c)->building);
    assert_true(build(20));
    put_to_use();
    restart();
    assert_null(harness_part(c)->building);
    stop();
}

/* A partition with local entries. */
static void of_a_large_partition(void **state) {
    (void)state;
    start(0);
    for (int i = 0; i < 600; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"large\",\"a\":%d}", i, i);
        assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, body), OK);
        if (i == 540) { /* while its items get local entries */
            assert_int_equal(set_policy(1), OK);
        }
        if (i % 20 == 0 && i > 540) {
            assert_false(build(100));
        }
    }
    while (!build(200)) {
    }
    put_to_use();
    assert_int_equal(set_policy(OFF), OK);
    for (int i = 0; i < 600; i += 5) {
        char body[100];
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"large\",\"a\":%d}", i + (i % 2 ? 1000 : 0), i);
        assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, body), OK);
    }
    assert_int_equal(set_policy(2), OK);
    while (!build(200)) {
    }
    put_to_use();
    stop();
}

/* ---- random sequences ---- */

static void write_something(random_source *r) {
    int id = (int)random_below(r, 90);
    if (random_below(r, 3)) {
        assert_int_equal(put(id, (int)random_below(r, 50)), OK);
    } else {
        err code = take_away(id);
        assert_true(code == OK || code == E_NOT_FOUND);
    }
}

static void change_tiles(random_source *r) {
    const container_tiles *tiles = c->space->newest;
    size_t n = tiles->map->n, i = random_below(r, n);
    uint64_t what = random_below(r, 3);
    if (what == 0 && n < 5) {
        err code = account_split(h.account, harness_op(&h), c, tiles->ranges[i]->id, 2);
        assert_true(code == OK || code == E_BAD_REQUEST);
    } else if (what == 1 && i + 1 < n && tiles->ranges[i]->home == tiles->ranges[i + 1]->home) {
        assert_int_equal(account_merge(h.account, harness_op(&h), c, tiles->ranges[i]->id, tiles->ranges[i + 1]->id), OK);
    } else {
        harness_move(&h, c, 1 + (unsigned)random_below(r, 30));
    }
    renew();
}

/* A build step, a switch or a policy change during which the store fails, possibly for good, possibly after the write has reached the
 * disk. */
static void build_badly(random_source *r, size_t *policy) {
    unsigned in = 1 + (unsigned)random_below(r, 12);
    bool ended = false, changes = random_below(r, 4) == 0, dies;
    size_t wanted = random_below(r, POLICIES);
    uint64_t kind = random_below(r, 3);
    h.plan = (store_fault_plan){.code = E_STORE_IO, .get_in = kind == 0 ? in : 0, .scan_in = kind == 1 ? in : 0, .write_in = kind == 2};
    h.plan.sticky = dies = kind == 2 && random_below(r, 2);
    h.plan.torn = h.plan.sticky && random_below(r, 2);
    bool torn = h.plan.torn;
    err code = changes ? harness_replace_container(&h, "d", "c", policies[wanted]) : harness_build(&h, c, 20, false, &ended);
    assert_true(code == OK || code == E_STORE_IO);
    if (code == OK && ended && !changes) {
        code = harness_build(&h, c, 20, true, &ended);
        assert_true(code == OK || code == E_STORE_IO);
    }
    bool fired = h.plan.fired;
    h.plan = (store_fault_plan){.code = E_STORE_IO};
    if (dies) {
        restart();
    } else {
        renew();
    }
    *policy = changes && (code == OK || (dies && torn && fired)) ? wanted : *policy;
}

static void do_something(random_source *r, size_t *policy) {
    bool ended = false;
    switch (random_below(r, 12)) {
    case 0:
        *policy = random_below(r, POLICIES);
        assert_int_equal(set_policy(*policy), OK);
        break;
    case 1:
        restart();
        break;
    case 2:
        change_tiles(r);
        break;
    case 3:
    case 4:
        build_badly(r, policy);
        break;
    case 5:
    case 6:
    case 7:
        assert_int_equal(harness_build(&h, c, 1 + (unsigned)random_below(r, 25), false, &ended), OK);
        if (ended && harness_builds(c)) {
            assert_int_equal(harness_build(&h, c, 1, true, &ended), OK);
        }
        break;
    default:
        write_something(r);
    }
}

static void random_lives(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        random_source r;
        size_t policy = seed % POLICIES;
        random_seed(&r, seed);
        start(policy);
        for (int i = 0; i < 200; i++) {
            do_something(&r, &policy);
            harness_check(&h, c);
        }
        harness_build_all(&h, c);
        container_index *wanted = container_index_new(1, settings_indexing_policy(&h.arena, c), &c->key);
        assert_true(index_policy_same(&wanted->policy, &((container_index *)harness_part(c)->index)->policy));
        container_index_give(wanted);
        stop();
    }
}

int main(void) {
    log_set_level(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_policy_is_changed_while_writes_go_on),
        cmocka_unit_test(back_in_the_middle),
        cmocka_unit_test(none_and_back),
        cmocka_unit_test(of_an_empty_container_at_once),
        cmocka_unit_test(restarted_in_the_middle),
        cmocka_unit_test(of_a_large_partition),
        cmocka_unit_test(random_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
