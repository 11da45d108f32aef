/* account_reshape_harness.h — for tests of splits and merges: one account with one container, whose ranges change by command. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "account/account_int.h"
#include "account/report.h"
#include "item/range_info.h"
#include "item_harness.h"
#include "rounds.h"

#define KEY "\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"
#define UNIQUE "{\"id\":\"c\"," KEY ",\"defaultTtl\":-1,\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]}]}}"
#define PLAIN "{\"id\":\"c\"," KEY "}"

static harness h;
static container *c;

/* The balancer does nothing unless a test's rules say so. */
static inline void start(const char *properties, uint32_t throughput, account_rules rules) {
    rules.unlimited = true;
    rules.range_throughput = rules.range_throughput ? rules.range_throughput : 1000000;
    harness_open(&h);
    h.rules = rules;
    harness_restart(&h);
    c = harness_container(&h, properties, throughput);
}

static const account_rules quiet = {.no_merges = true};

static inline void stop(void) {
    harness_check(&h, c);
    container_give(c);
    harness_close(&h);
}

static inline void renew(void) {
    container_give(c);
    c = harness_found(&h, "d", "c");
}

static inline void restart(void) {
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
}

static inline void put(int partition, int id, unsigned padding) {
    char *body = malloc(padding + 200);
    snprintf(body, padding + 200, "{\"id\":\"%d\",\"pk\":\"p%d\",\"u\":%d,\"x\":\"%0*d\"}", id, partition, id, (int)padding + 1, 0);
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, body), OK);
    free(body);
}

static inline size_t ranges(void) {
    return c->space->newest->map->n;
}

static inline container_range *range_at(size_t i) {
    return c->space->newest->ranges[i];
}

static inline err split(uint32_t id, uint32_t parts) {
    err code = account_split(h.account, harness_op(&h), c, id, parts);
    renew();
    return code;
}

static inline err merge(size_t i) {
    err code = account_merge(h.account, harness_op(&h), c, range_at(i)->id, range_at(i + 1)->id);
    renew();
    return code;
}

static inline void move_all(void) {
    while (account_balance(h.account, 1000)) {
    }
    renew();
}

static inline size_t sources(void) {
    size_t n = 0;
    for (size_t i = 0; i < ranges(); i++) {
        n += c->space->newest->sources[i].n;
    }
    return n;
}
