/* Divides the throughput of offers among the buckets of ranges; how many ranges a new container gets.
 *
 * A container with its own offer: each of its n ranges has a bucket of T / n, limited to the rate of a physical partition. A container that
 * shares its database's offer: the throughput makes N = ceil(T / t) buckets of T / N each, the hash space is divided evenly among them, and
 * a range of any of its containers draws from the bucket that the range's first key falls into. */
#include <stdlib.h>

#include "account/account_int.h"
#include "base/memory.h"
#include "throughput/shares.h"

static int64_t now_ns(const account *a) {
    return clock_monotonic_us(a->items.clock) * 1000;
}

uint32_t account__ranges_for(const account *a, throughput_setting t, bool fixed) {
    if (t.kind == THROUGHPUT_NONE || fixed) {
        return 1;
    }
    return plan_ranges_for(t.value, a->rules.range_throughput, PARTITION_RANGES_MAX);
}

/* One range while it can give the throughput. Beyond that manual throughput gets more ranges than it needs, so that it can be raised
 * without a split, as in the service. */
uint32_t account__ranges_at_creation(const account *a, throughput_setting own, bool fixed) {
    uint32_t most = a->rules.range_throughput, initial = a->rules.initial_range_throughput;
    if (own.kind != THROUGHPUT_MANUAL || fixed || own.value <= most) {
        return account__ranges_for(a, own, fixed);
    }
    return plan_ranges_for(own.value, initial < most ? initial : most, PARTITION_RANGES_MAX);
}

provision account__provision(account *a, const container_node *node) {
    static const uint8_t no_lanes[5];
    uint32_t database = node->database->database->number, container = node->container->space->container;
    offer_node *own = account__find_offer(a, database, container);
    offer_node *from = own ? own : account__find_offer(a, database, 0);
    if (!from) { /* serverless */
        return (provision){(double)SERVERLESS_RANGE * (double)node->container->space->newest->map->n, false, no_lanes};
    }
    return (provision){throughput_provisioned(from->offer.throughput), !own, from->offer.bucket_percents};
}

static void set_bucket(account *a, bucket *b, double rate, const uint8_t *bucket_percents) {
    atomic_store_explicit(&b->burst, a->rules.burst, memory_order_relaxed);
    bucket_set_rate(b, a->rules.unlimited ? 0 : rate, now_ns(a));
    for (unsigned i = 0; i < THROUGHPUT_BUCKETS; i++) {
        bucket_set_named(b, i + 1, bucket_percents[i]);
    }
}

static void divide_own(account *a, const container_tiles *tiles, const provision *p) {
    share_rule rule = {.total = p->total, .most = a->rules.range_throughput, .least_part = 0.1};
    double *shares = mem_alloc(tiles->map->n * sizeof *shares);
    shares_equal(&rule, shares, tiles->map->n);
    for (size_t i = 0; i < tiles->map->n; i++) {
        set_bucket(a, container_range_bucket(tiles->ranges[i]), shares[i], p->bucket_percents);
    }
    free(shares);
}

static void draw_from_pool(const container_node *node, const container_tiles *tiles) {
    const database_node *d = node->database;
    partition_map *slices = partition_map_new(&node->container->key, (uint32_t)d->pool_n);
    for (size_t i = 0; i < tiles->map->n; i++) {
        bucket *b = d->pool[partition_map_find(slices, &tiles->map->ranges[i].min) - slices->ranges];
        if (container_range_bucket(tiles->ranges[i]) != b) {
            container_range_set_bucket(tiles->ranges[i], bucket_take(b));
        }
    }
    partition_map_free(slices);
}

void account__divide(account *a, const container_node *node) {
    const container_tiles *tiles = node->container->space->newest;
    provision p = account__provision(a, node);
    provisioned_note(&node->container->space->provisioned, clock_wall_ms(a->items.clock) / 1000, p.total);
    if (p.shared && node->database->pool_n) {
        draw_from_pool(node, tiles);
    } else {
        divide_own(a, tiles, &p);
    }
}

static void free_buckets(bucket **list, size_t n) {
    for (size_t i = 0; i < n; i++) {
        bucket_give(list[i]);
    }
    free(list);
}

void account__free_pool(database_node *d) {
    free_buckets(d->pool, d->pool_n);
    free_buckets(d->spare, d->spare_n);
    d->pool = d->spare = NULL;
    d->pool_n = d->spare_n = 0;
}

/* Reuses a spare bucket if there is one. It was retired two pools ago: no request in flight still draws from it. */
static bucket *next_bucket(account *a, database_node *d, double rate) {
    if (d->spare_n == 0) {
        return bucket_new(rate, a->rules.burst, now_ns(a));
    }
    bucket *b = d->spare[--d->spare_n];
    bucket_reset(b, rate, a->rules.burst, now_ns(a));
    return b;
}

static void resize_pool(account *a, database_node *d, size_t n, double rate) {
    bucket **pool = mem_zero(n * sizeof(bucket *));
    for (size_t i = 0; i < n; i++) {
        pool[i] = next_bucket(a, d, rate);
    }
    bucket_hand_over(d->pool, d->pool_n, pool, n, now_ns(a));
    d->pool = mem_resize(d->pool, (d->pool_n + d->spare_n + 1) * sizeof(bucket *));
    for (size_t i = 0; i < d->spare_n; i++) { /* unused ones stay spare */
        d->pool[d->pool_n + i] = d->spare[i];
    }
    free(d->spare);
    d->spare = d->pool;
    d->spare_n += d->pool_n;
    d->pool = pool;
    d->pool_n = n;
}

void account__divide_database(account *a, database_node *d) {
    offer_node *shared = account__find_offer(a, d->database->number, 0);
    if (!shared) {
        return;
    }
    const offer *o = &shared->offer;
    size_t n = account__ranges_for(a, o->throughput, false);
    double rate = throughput_provisioned(o->throughput) / (double)n;
    if (n != d->pool_n) {
        resize_pool(a, d, n, rate);
    }
    for (size_t i = 0; i < n; i++) {
        set_bucket(a, d->pool[i], rate, o->bucket_percents);
    }
    for (container_node *c = d->containers; c; c = c->by_name.next) {
        if (!account__find_offer(a, d->database->number, c->container->space->container)) {
            account__divide(a, c);
        }
    }
}

/* ---- state of an offer ---- */

static void add_container(account *a, const container_node *c, const offer *o, offer_state *state) {
    const container_tiles *tiles = c->container->space->newest;
    for (size_t i = 0; i < tiles->map->n; i++) {
        state->storage += container_range_stored(tiles->ranges[i]);
    }
    state->containers++;
    state->ranges += (uint32_t)tiles->map->n;
    state->pending = state->pending || tiles->map->n < account__ranges_for(a, o->throughput, c->container->key.n == 0);
}

offer_state account__offer_state(account *a, const offer *o) {
    offer_state state = {0};
    container_node *own = NULL;
    database_node *d = NULL;
    if (o->container) {
        HASH_FIND(by_rid, a->containers_by_rid, o->resource.bytes, 8, own);
    } else {
        HASH_FIND(by_number, a->databases_by_number, &o->database, sizeof o->database, d);
    }
    if (own) {
        add_container(a, own, o, &state);
    }
    for (container_node *c = d ? d->containers : NULL; c; c = c->by_name.next) {
        if (!account__find_offer(a, o->database, c->container->space->container)) {
            add_container(a, c, o, &state);
        }
    }
    uint64_t instant = (uint64_t)a->rules.range_throughput * (o->container && state.ranges ? state.ranges : d ? d->pool_n : 1);
    state.instant = instant > THROUGHPUT_MAX ? THROUGHPUT_MAX : (uint32_t)instant;
    state.least = throughput_minimum(o, state.storage, o->container ? 0 : state.containers);
    return state;
}

offer_state account_offer_state(account *a, const offer *o) {
    pthread_rwlock_rdlock(&a->lock);
    offer_state state = account__offer_state(a, o);
    pthread_rwlock_unlock(&a->lock);
    return state;
}
