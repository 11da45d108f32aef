/* world.h — for fuzz targets that write items: the unit tests' harness, with assertions that abort, and containers of every kind. Each
 * input has a new account on a store in memory, so that it does not depend on earlier inputs. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define broken(what) (fprintf(stderr, "broken at %s:%d: %s\n", __FILE__, __LINE__, what), abort())
#define assert_true(x) ((x) ? (void)0 : broken(#x))
#define assert_false(x) assert_true(!(x))
#define assert_int_equal(a, b) assert_true((uint64_t)(a) == (uint64_t)(b))
#define assert_null(p) assert_true((p) == NULL)
#define assert_non_null(p) assert_true((p) != NULL)
#define assert_string_equal(a, b) assert_true(strcmp((a), (b)) == 0)
#define assert_memory_equal(a, b, n) assert_true(memcmp((a), (b), (n)) == 0)
#define fail_msg(...) (fprintf(stderr, __VA_ARGS__), fprintf(stderr, "\n"), abort())

#include "../unit/item_harness.h"

#define WORLD_KEY "\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"

static const struct world_kind {
    const char *properties;
    uint32_t throughput;
} world_kinds[] = {
    {"{" WORLD_KEY "}", 2000},
    {"{" WORLD_KEY ",\"defaultTtl\":10,\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]},{\"paths\":[\"/v\",\"/w/x\"]}]}}", 3000},
    {"{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\",\"/b\"],\"kind\":\"MultiHash\",\"version\":2},\"indexingPolicy\":{"
     "\"includedPaths\":[{\"path\":\"/a/[]/b/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}]}}",
     400},
    {"{\"id\":\"c\",\"defaultTtl\":-1}", 400},
    {"{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk/\\\"a b\\\"\"],\"kind\":\"Hash\",\"version\":1}}", 400},
};

enum { WORLD_KINDS = sizeof world_kinds / sizeof *world_kinds };

typedef struct world {
    harness h;
    container *c;
} world;

static inline void world_open(world *w, unsigned kind) {
    log_set_level(LOG_ERROR);
    harness_open(&w->h);
    w->c = harness_container(&w->h, world_kinds[kind % WORLD_KINDS].properties, world_kinds[kind % WORLD_KINDS].throughput);
}

/* Checks at the end that the store is consistent and, with `restart` (which is slow), that a restart finds the same. */
static inline void world_close(world *w, bool restart) {
    harness_check(&w->h, w->c);
    if (restart) {
        uint64_t count = harness_count(w->c);
        container_give(w->c);
        harness_restart(&w->h);
        w->c = harness_found(&w->h, "d", "c");
        assert_int_equal(harness_count(w->c), count);
        harness_check(&w->h, w->c);
    }
    container_give(w->c);
    harness_close(&w->h);
}

/* Checks that the item with this key has this body. */
static inline void world_expect(world *w, const item_key *key, slice body) {
    item_found found;
    op *o = harness_op(&w->h);
    assert_int_equal(item_read(harness_items(&w->h), o, w->c, key, &found), OK);
    assert_true(slice_eq(found.body, body));
    assert_true(o->charge_ru >= 1);
    item_give(&found);
}

static inline void world_expect_absent(world *w, const item_key *key) {
    item_found found;
    assert_int_equal(item_read(harness_items(&w->h), harness_op(&w->h), w->c, key, &found), E_NOT_FOUND);
}
