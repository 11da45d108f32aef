/* The balancer: once a second it adds the meters to the history, lets shares follow the load if configured, and checks every container for
 * ranges that must be split or may be merged (partition/split_merge.h decides). In between it moves items after splits, a little at a time.
 *
 * What it writes is bounded. A split or a merge is one small write. What follows (moving items, building an index, removing what was
 * deleted by partition key) goes in steps: one at a time in the whole account, each of *_COST, with a pause after each turn of all
 * containers. While the disk of any store does not keep up (store_is_behind), no step begins; the next round looks again.
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "account/wide.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "item/wipe.h"
#include "throughput/shares.h"

enum {
    WORK_MAX = 64,
    STEPS_MAX = 256,
    MOVE_COST = 32,
    INDEX_COST = 64,
    WIPE_COST = 16,
    MOVE_PAUSE_MS = 2,
    ROUND_MS = 1000,
    REFUSALS_S = 60,
    REFUSALS_MAX = 16
};

/* ---- planning ---- */

/* If a split failed because all partitions have the same hash (V1 keys that are equal in their first 100 characters), the plan counts them
 * as one. */
static uint64_t partitions_of(const container_range *range) {
    uint64_t n = atomic_load_explicit(&range->partitions, memory_order_relaxed);
    return n && n == atomic_load_explicit(&range->uncut, memory_order_relaxed) ? 1 : n;
}

static void describe(const container *c, const container_tiles *tiles, plan_range *ranges) {
    for (size_t i = 0; i < tiles->map->n; i++) {
        const partition_range *range = &tiles->map->ranges[i];
        ranges[i] = (plan_range){
            .bytes = container_range_stored(tiles->ranges[i]),
            .partitions = partitions_of(tiles->ranges[i]),
            .width = epk_position(&c->key, &range->max) - epk_position(&c->key, &range->min),
            .home = tiles->ranges[i]->home->number,
        };
    }
}

/* With follow_load ranges are not merged: shares need several ranges to move between. */
static bool may_merge(const account *a, const container *c) {
    return !a->rules.no_merges && !a->rules.follow_load &&
           clock_monotonic_us(a->items.clock) >= atomic_load_explicit(&c->space->merges_after_us, memory_order_relaxed);
}

static plan_step plan(account *a, const container *c, const container_tiles *tiles, double total) {
    plan_limits limits = {
        .throughput = total,
        .range_most = a->rules.range_throughput,
        .range_bytes = account__range_bytes(a, c),
        .ranges_max = PARTITION_RANGES_MAX,
        .merges = may_merge(a, c),
        .fixed = c->key.n == 0,
    };
    plan_range few[16] = {0}, *ranges = tiles->map->n <= 16 ? few : mem_alloc(tiles->map->n * sizeof *ranges);
    describe(c, tiles, ranges);
    plan_step step = plan_next(&limits, ranges, tiles->map->n);
    if (ranges != few) {
        free(ranges);
    }
    return step;
}

static bool range_leaves(const range_sources *sources) {
    bool leaves = false;
    for (size_t i = 0; i < sources->n; i++) {
        leaves = leaves || sources->list[i].leaving;
    }
    return leaves;
}

static const container_range *leaving_range(const container_tiles *tiles) {
    for (size_t i = 0; i < tiles->map->n; i++) {
        if (range_leaves(&tiles->sources[i])) {
            return tiles->ranges[i];
        }
    }
    return NULL;
}

/* After a store failure: another home lacks the newest settings, or the record lacks another home's newest ranges. */
static bool is_behind(const container *c) {
    bool behind = atomic_load_explicit(&c->space->tiles_unrecorded, memory_order_relaxed);
    for (size_t i = 1; i < c->space->parts_n && !behind; i++) {
        behind = !account__follows_settings(c, &c->space->parts[i]);
    }
    return behind;
}

static bool is_building(const container *c) {
    bool builds = false;
    for (size_t i = 0; i < c->space->parts_n; i++) {
        builds = builds || atomic_load_explicit(&c->space->parts[i].building, memory_order_relaxed);
    }
    return builds;
}

/* ---- list of pending work ---- */

/* Serverless containers get throughput per range, so throughput never requires a split. */
static double total_of(account *a, const container_node *node) {
    return a->rules.serverless ? 0 : account__provision(a, node).total;
}

/* The current value, which may have changed since the last step. */
static double total_now(account *a, const container *c) {
    pthread_rwlock_rdlock(&a->lock);
    const container_node *node = account__node_of(a, c);
    double total = node ? total_of(a, node) : 0;
    pthread_rwlock_unlock(&a->lock);
    return total;
}

static container_node *next_of(account *a, container_node *node) {
    return node && node->by_rid.next ? node->by_rid.next : a->containers_by_rid;
}

/* If there is more work than the list holds, the next list starts after this one, so that each container gets its turn. */
static size_t find_work(account *a, container **list) {
    size_t n = 0;
    container_node *node = NULL;
    pthread_rwlock_rdlock(&a->lock);
    HASH_FIND(by_rid, a->containers_by_rid, a->balancer.last_rid, sizeof a->balancer.last_rid, node);
    for (size_t left = HASH_CNT(by_rid, a->containers_by_rid); left > 0 && n < WORK_MAX; left--) {
        node = next_of(a, node);
        container *c = node->container;
        if (leaving_range(c->tiles) || is_building(c) || is_behind(c) || item_wipes_due(&a->items, c) ||
            plan(a, c, c->tiles, total_of(a, node)).reason != PLAN_NOTHING) {
            list[n++] = container_take(c);
            memcpy(a->balancer.last_rid, c->rid, sizeof c->rid);
        }
    }
    pthread_rwlock_unlock(&a->lock);
    return n;
}

/* ---- splitting and merging ---- */

static bool is_stopping(balancer *b) {
    pthread_mutex_lock(&b->lock);
    bool stopping = b->stopping;
    pthread_mutex_unlock(&b->lock);
    return stopping;
}

static bool take_step(account *a, container *c) {
    container_tiles *tiles = container_space_newest(c->space);
    plan_step step = plan(a, c, tiles, total_now(a, c));
    bool go_on = step.reason != PLAN_NOTHING;
    if (go_on) {
        container_range *first = tiles->ranges[step.first];
        reshape_request request = {c, first->id, step.n, step.parts, step.reason};
        err code = account__reshape(a, &request);
        if (code == E_BAD_REQUEST) { /* no cut separates its partitions: do not retry until their number changes */
            atomic_store(&first->uncut, atomic_load(&first->partitions));
        }
        go_on = code == OK;
    }
    container_tiles_give(tiles);
    return go_on;
}

/* A step that fails is retried in the next round. */
static void catch_up(account *a, container *c) {
    (void)!account__record_tiles(a, c);
    for (size_t i = 1; i < c->space->parts_n; i++) {
        if (!account__follows_settings(c, &c->space->parts[i])) {
            (void)!account__follow_settings(a, c);
            return;
        }
    }
}

static void reshape_all(account *a, container *c) {
    catch_up(a, c);
    for (int i = 0; i < STEPS_MAX && !is_stopping(&a->balancer) && take_step(a, c); i++) {
    }
}

/* ---- moving ---- */

typedef struct waited_move {
    item_move base;
    sem_t done;
} waited_move;

static void move_is_done(item_move *m) {
    sem_post(&((waited_move *)m)->done);
}

static err move_some(account *a, container *c, uint32_t range_id, bool *ended_out) {
    waited_move w = {.base = {.items = &a->items, .container = c, .range_id = range_id, .cost_max = MOVE_COST, .done = move_is_done}};
    sem_init(&w.done, 0, 0);
    item_move_submit(&w.base);
    while (sem_wait(&w.done) != 0) {
    }
    sem_destroy(&w.done);
    *ended_out = w.base.ended;
    return w.base.base.code;
}

/* Moves items of one range, one step. False: nothing (more) to move, or it is not possible now. */
static bool move_step(account *a, container *c) {
    container_tiles *tiles = container_space_newest(c->space);
    const container_range *range = leaving_range(tiles);
    bool ended = false, go_on = range != NULL;
    if (range) {
        err code = move_some(a, c, range->id, &ended);
        if (code == OK && ended) {
            code = account__forget_sources(a, c, range->id);
        }
        go_on = code == OK;
    }
    container_tiles_give(tiles);
    return go_on;
}

/* ---- deleting by partition key ---- */

typedef struct waited_wipe {
    item_wipe_step base;
    sem_t done;
} waited_wipe;

static void wipe_is_done(item_wipe_step *step) {
    sem_post(&((waited_wipe *)step)->done);
}

/* False: nothing (more) to remove now. */
static bool wipe_step(account *a, container *c) {
    if (!item_wipes_due(&a->items, c)) {
        return false;
    }
    waited_wipe w = {.base = {.items = &a->items, .container = c, .cost_max = WIPE_COST, .done = wipe_is_done}};
    sem_init(&w.done, 0, 0);
    bool submitted = item_wipe_step_submit(&w.base);
    while (submitted && sem_wait(&w.done) != 0) {
    }
    sem_destroy(&w.done);
    return submitted && w.base.base.code == OK;
}

/* ---- indexing under a new policy ---- */

typedef struct waited_step {
    item_index_step base;
    sem_t done;
} waited_step;

static void step_is_done(item_index_step *step) {
    sem_post(&((waited_step *)step)->done);
}

static err index_some(account *a, container *c, home *home, bool switches, bool *ended_out) {
    waited_step w = {
        .base = {.items = &a->items, .home = home, .container = c, .cost_max = INDEX_COST, .switches = switches, .done = step_is_done}};
    sem_init(&w.done, 0, 0);
    item_index_step_submit(&w.base);
    while (sem_wait(&w.done) != 0) {
    }
    sem_destroy(&w.done);
    *ended_out = w.base.ended;
    return w.base.base.code;
}

/* False: nothing (more) to build, or it is not possible now. */
static bool build_part(account *a, container *c, const container_part *part) {
    bool ended = false;
    if (!atomic_load(&part->building)) {
        return false;
    }
    err code = index_some(a, c, part->home, false, &ended);
    if (code == OK && ended) {
        code = index_some(a, c, part->home, true, &ended);
    }
    return code == OK;
}

static bool build_step(account *a, container *c) {
    bool go_on = false;
    for (size_t i = 0; i < c->space->parts_n; i++) {
        go_on = build_part(a, c, &c->space->parts[i]) || go_on;
    }
    return go_on;
}

static void pause_ms(unsigned ms) {
    struct timespec t = {.tv_nsec = (long)ms * 1000000};
    nanosleep(&t, NULL);
}

/* ---- meters and shares ---- */

static void tick_ranges(const container_tiles *tiles, int64_t second) {
    for (size_t i = 0; i < tiles->map->n; i++) {
        container_range *range = tiles->ranges[i];
        meter_tick(&range->meter, second, atomic_load_explicit(&container_range_bucket(range)->rate, memory_order_relaxed));
    }
}

/* Sets shares by the demand of the last second: the RUs spent, plus the usual charge for each throttled request. */
static void follow_load(account *a, const container_tiles *tiles, double total) {
    size_t n = tiles->map->n;
    share_rule rule = {.total = total, .most = a->rules.range_throughput, .least_part = 0.1};
    double *demand = mem_alloc(2 * n * sizeof *demand), *shares = demand + n;
    for (size_t i = 0; i < n; i++) {
        meter_sample last = meter_last(&tiles->ranges[i]->meter);
        double usual = atomic_load_explicit(&container_range_bucket(tiles->ranges[i])->usual_charge, memory_order_relaxed);
        demand[i] = (double)last.ru + last.throttled * usual;
    }
    shares_follow(&rule, demand, shares, n);
    for (size_t i = 0; i < n; i++) {
        bucket_set_rate(container_range_bucket(tiles->ranges[i]), shares[i], clock_monotonic_us(a->items.clock) * 1000);
    }
    free(demand);
}

/* ---- throttled requests ---- */

/* A log line, written after the account's lock is released. */
typedef struct refusals {
    container *container;
    uint64_t refused, of;
    int64_t seconds;
    double total; /* RU/s */
    size_t ranges;
    const char *remedy;
} refusals;

static const char *remedy_for(const account *a, const provision *p) {
    return a->rules.serverless ? "spread the load over more partition keys"
           : p->shared         ? "raise the database's throughput"
                               : "raise the container's throughput";
}

/* Each container is logged at once the first time, then at most once a minute. */
static bool is_due(account *a, const container_node *node, int64_t second, refusals *told_out) {
    container *c = node->container;
    container_space *s = c->space;
    for (size_t i = 0; i < c->tiles->map->n; i++) {
        meter_sample last = meter_last(&c->tiles->ranges[i]->meter);
        s->refused_from_s = s->refused == 0 && last.throttled ? second : s->refused_from_s;
        s->refused += last.throttled;
        s->refused_among += s->refused ? last.requests : 0;
    }
    if (s->refused == 0 || second - s->refused_logged_s < REFUSALS_S) {
        return false;
    }
    provision p = account__provision(a, node);
    *told_out = (refusals){container_take(c), s->refused,       s->refused_among, second - s->refused_from_s + 1,
                           p.total,           c->tiles->map->n, remedy_for(a, &p)};
    s->refused = s->refused_among = 0;
    s->refused_logged_s = second;
    return true;
}

static void tell_refusals(refusals *list, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const refusals *r = &list[i];
        const container *c = r->container;
        char name[2 * LIMIT_NAME_BYTES + 16], quoted[2 * LIMIT_NAME_BYTES + 32];
        int name_n = snprintf(name, sizeof name, "%.*s/%.*s", (int)c->database_id.n, c->database_id.p, (int)c->id.n, c->id.p);
        log_warn(
            "throughput", "requests refused (429): more was asked for than is provisioned",
            "container=%s refused=%lu of=%lu seconds=%ld provisioned=%.0f ranges=%zu remedy=\"%s; or 'tesela serve --throttling off'\"",
            log_value(quoted, sizeof quoted, name, (size_t)name_n), (unsigned long)r->refused, (unsigned long)r->of, (long)r->seconds,
            r->total, r->ranges, r->remedy);
        container_give(list[i].container);
    }
}

static void tick_all(account *a, int64_t second) {
    refusals told[REFUSALS_MAX];
    size_t told_n = 0;
    pthread_rwlock_rdlock(&a->lock);
    int64_t now_s = clock_wall_ms(a->items.clock) / 1000; /* a change may have been noted since `second` was read */
    for (container_node *node = a->containers_by_rid; node; node = node->by_rid.next) {
        const container_tiles *tiles = node->container->tiles;
        tick_ranges(tiles, second);
        meter_tick(&node->container->space->past, second, 0);
        provision p = account__provision(a, node);
        provisioned_note(&node->container->space->provisioned, now_s, p.total);
        told_n += told_n < REFUSALS_MAX && !a->rules.unlimited && is_due(a, node, second, &told[told_n]);
        if (a->rules.follow_load && !a->rules.unlimited && tiles->map->n > 1 && !p.shared) {
            follow_load(a, tiles, p.total);
        }
    }
    pthread_rwlock_unlock(&a->lock);
    tell_refusals(told, told_n);
}

/* ---- autoscale: the maximum is raised to at least 10 RU/s per gigabyte stored ---- */

static bool find_outgrown(account *a, offer *offer_out, uint32_t *value_out) {
    bool found = false;
    pthread_rwlock_rdlock(&a->lock);
    for (offer_node *node = a->offers; node && !found; node = node->by_number.next) {
        if (node->offer.throughput.kind == THROUGHPUT_AUTOSCALE) {
            *offer_out = node->offer;
            *value_out = throughput_for_storage(node->offer.throughput, account__offer_state(a, &node->offer).storage);
            found = *value_out > node->offer.throughput.value;
        }
    }
    pthread_rwlock_unlock(&a->lock);
    return found;
}

static void change_is_done(account_change *change) {
    sem_post(change->context);
}

static void raise_outgrown(account *a) {
    offer o;
    uint32_t value;
    if (!find_outgrown(a, &o, &value)) {
        return;
    }
    arena scratch = arena_init();
    op operation;
    op_init(&operation, &scratch, clock_wall_ms(a->items.clock) / 1000);
    sem_t done;
    sem_init(&done, 0, 0);
    offer_replacement replace = {
        .base = {.account = a, .op = &operation, .done = change_is_done, .context = &done}, .offer = o.rid, .throughput = o.throughput};
    replace.throughput.value = value;
    account_replace_offer(&replace);
    while (sem_wait(&done) != 0) {
    }
    sem_destroy(&done);
    arena_free(&scratch);
}

/* ---- a round ---- */

static bool disks_keep_up(const account *a) {
    bool behind = false;
    for (size_t i = 0; i < a->items.homes_n; i++) {
        behind = behind || store_is_behind(a->items.homes[i]->store);
    }
    return !behind;
}

static bool move_for(account *a, container *const *list, size_t n, unsigned move_ms) {
    int64_t until = clock_monotonic_us(&clock_system) + (int64_t)move_ms * 1000;
    bool more = true;
    while (more && !is_stopping(&a->balancer) && clock_monotonic_us(&clock_system) < until) {
        more = false;
        for (size_t i = 0; i < n && disks_keep_up(a); i++) {
            more = move_step(a, list[i]) || more;
            more = build_step(a, list[i]) || more;
            more = wipe_step(a, list[i]) || more;
        }
        if (more) {
            pause_ms(MOVE_PAUSE_MS);
        }
    }
    return more && n > 0;
}

bool account_balance(account *a, unsigned move_ms) {
    container *list[WORK_MAX];
    pthread_mutex_lock(&a->balancer.turn);
    int64_t second = clock_wall_ms(a->items.clock) / 1000;
    if (second != a->balancer.ticked_s) {
        a->balancer.ticked_s = second;
        tick_all(a, second);
        raise_outgrown(a);
    }
    size_t n = find_work(a, list);
    for (size_t i = 0; i < n; i++) {
        reshape_all(a, list[i]);
    }
    bool more = move_for(a, list, n, move_ms);
    for (size_t i = 0; i < n; i++) {
        container_give(list[i]);
    }
    pthread_mutex_unlock(&a->balancer.turn);
    return more;
}

/* ---- the thread ---- */

void account_wake(account *a) {
    pthread_mutex_lock(&a->balancer.lock);
    a->balancer.woken = true;
    pthread_mutex_unlock(&a->balancer.lock);
    pthread_cond_signal(&a->balancer.wake);
}

static void wait_turn(balancer *b, unsigned ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&b->lock);
    while (!b->woken && !b->stopping && pthread_cond_timedwait(&b->wake, &b->lock, &until) == 0) {
    }
    b->woken = false;
    pthread_mutex_unlock(&b->lock);
}

static void *run(void *context) {
    account *a = context;
    while (!is_stopping(&a->balancer)) {
        bool more = account_balance(a, ROUND_MS / 4);
        wait_turn(&a->balancer, more ? 1 : ROUND_MS - (unsigned)(clock_wall_ms(a->items.clock) % ROUND_MS));
    }
    return NULL;
}

void account__init_balancer(balancer *b) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&b->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&b->lock, NULL);
    pthread_mutex_init(&b->turn, NULL);
}

void account__free_balancer(balancer *b) {
    pthread_cond_destroy(&b->wake);
    pthread_mutex_destroy(&b->lock);
    pthread_mutex_destroy(&b->turn);
}

bool account__start_balancer(account *a) {
    balancer *b = &a->balancer;
    b->running = thread_start(&b->thread, "balancer", run, a);
    return b->running;
}

void account__stop_balancer(account *a) {
    balancer *b = &a->balancer;
    if (b->running) {
        pthread_mutex_lock(&b->lock);
        b->stopping = true;
        pthread_mutex_unlock(&b->lock);
        pthread_cond_signal(&b->wake);
        pthread_join(b->thread, NULL);
        b->running = false;
    }
}
