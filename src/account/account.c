#include "account/account_int.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "account/settings.h"
#include "base/memory.h"
#include "base/thread.h"
#include "item/nearest.h"
#include "item/versions.h"
#include "item/waiters.h"

enum { SWEEP_COST = 500, IDLE_PASSED = 64, PAGE_MS = 5000 };

/* ---- objects ---- */

database *database_new(uint32_t number, slice id, int64_t ts, uint64_t version, bool shares, slice memo) {
    database *d = mem_zero(sizeof *d);
    d->refs = 1;
    d->number = number;
    d->rid = rid_database(number);
    d->id = mem_text(id.p, id.n);
    d->ts = ts;
    d->version = version;
    d->shares_throughput = shares;
    d->memo = memo.n ? slice_of(mem_text(memo.p, memo.n), memo.n) : SLICE_EMPTY;
    return d;
}

static database *database_take(database *d) {
    atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    return d;
}

void database_give(database *d) {
    if (d && atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) == 1) {
        free(d->id);
        free((char *)(uintptr_t)d->memo.p);
        free(d);
    }
}

/* ---- tables ---- */

database_node *account__find_database(account *a, slice name, bool by_rid) {
    database_node *node = NULL;
    rid r;
    if (by_rid && rid_parse(name, &r) == RID_DATABASE) {
        uint32_t number = (uint32_t)rid_number(&r);
        HASH_FIND(by_number, a->databases_by_number, &number, sizeof number, node);
    }
    if (!node) {
        HASH_FIND(by_name, a->databases_by_name, name.p, name.n, node);
    }
    return node;
}

container_node *account__find_container(account *a, database_node *d, slice name, bool by_rid) {
    container_node *node = NULL;
    rid r;
    if (by_rid && rid_parse(name, &r) == RID_CONTAINER) {
        HASH_FIND(by_rid, a->containers_by_rid, r.bytes, sizeof(((container *)0)->rid), node);
        node = node && node->database == d ? node : NULL;
    }
    if (!node) {
        HASH_FIND(by_name, d->containers, name.p, name.n, node);
    }
    return node;
}

container_node *account__find_any_case(account *a, database_node *d, slice name) {
    container_node *node = account__find_container(a, d, name, false);
    for (container_node *each = node ? NULL : d->containers; each && !node; each = each->by_name.next) {
        node = slice_eq_nocase(each->container->id, name) ? each : NULL;
    }
    return node;
}

offer_node *account__find_offer(account *a, uint32_t database, uint32_t container) {
    uint32_t resource[2] = {database, container};
    offer_node *node = NULL;
    HASH_FIND(by_resource, a->offers_by_resource, resource, sizeof resource, node);
    return node;
}

void account__add_database(account *a, database *d) {
    database_node *node = mem_zero(sizeof *node);
    node->database = d;
    HASH_ADD_KEYPTR(by_name, a->databases_by_name, d->id, strlen(d->id), node);
    HASH_ADD_KEYPTR(by_number, a->databases_by_number, &d->number, sizeof d->number, node);
}

void account__swap_database(database_node *node, database *d) {
    database *before = node->database;
    node->database = d; /* the tables' keys point into the database */
    node->by_name.key = d->id;
    node->by_number.key = &d->number;
    database_give(before);
}

void account__add_container(account *a, database_node *d, container *c) {
    container_node *node = mem_zero(sizeof *node);
    node->container = c;
    node->database = d;
    HASH_ADD_KEYPTR(by_name, d->containers, c->id.p, c->id.n, node);
    HASH_ADD_KEYPTR(by_rid, a->containers_by_rid, c->rid, sizeof c->rid, node);
    account__note_sweeps(a, node);
}

static void forget_sweeps(account *a, container_node *node) {
    if (node->is_swept) {
        HASH_DELETE(by_sweep, a->containers_swept, node);
        node->is_swept = false;
    }
}

void account__note_sweeps(account *a, container_node *node) {
    if (node->container->ttl == TTL_OFF && node->container->version_minutes == 0) {
        forget_sweeps(a, node);
    } else if (!node->is_swept) {
        HASH_ADD_KEYPTR(by_sweep, a->containers_swept, node->container->rid, sizeof node->container->rid, node);
        node->is_swept = true;
    } else {
        node->by_sweep.key = node->container->rid; /* the same rid, stored in the new container */
    }
}

void account__add_offer(account *a, const offer *o) {
    offer_node *node = mem_zero(sizeof *node);
    node->offer = *o;
    HASH_ADD(by_number, a->offers, offer.number, sizeof o->number, node);
    HASH_ADD(by_resource, a->offers_by_resource, offer.database, 2 * sizeof o->database, node);
}

void account__remove_offer(account *a, offer_node *node) {
    if (node) {
        HASH_DELETE(by_number, a->offers, node);
        HASH_DELETE(by_resource, a->offers_by_resource, node);
        free(node);
    }
}

void account__set_rules(const container *c, const home *home) {
    if (atomic_exchange(&c->space->version_minutes, c->version_minutes) != c->version_minutes) {
        waiters_wake_all(c->space); /* followers of versions must notice the change */
    }
    for (size_t i = 0; i < c->space->parts_n; i++) {
        if (!home || i == home->number) {
            container_part_set_rules(&c->space->parts[i], c->ttl, c->version_minutes);
            c->space->parts[i].checks = container_checks(c);
        }
    }
}

void account__swap_container(account *a, container_node *node, container *c) {
    container *before = node->container;
    /* The tables' keys point into the container: repoint them to the new one, which keeps the old one's place in the order. */
    node->container = c;
    node->by_name.key = c->id.p;
    node->by_rid.key = c->rid;
    account__set_rules(c, a->homes[0]);
    account__note_sweeps(a, node);
    container_give(before);
}

static int by_container_number(const container_node *a, const container_node *b) {
    uint32_t x = a->container->space->container, y = b->container->space->container;
    return (x > y) - (x < y);
}

void account__rename_container(account *a, container_node *node, container *c) {
    HASH_DELETE(by_name, node->database->containers, node);
    account__swap_container(a, node, c);
    char *key = (char *)(uintptr_t)c->id.p; /* the macro needs a non-const pointer */
    HASH_ADD_KEYPTR_INORDER(by_name, node->database->containers, key, c->id.n, node, by_container_number);
}

void account__exchange_containers(account *a, container_node *one, container *c, container_node *other, container *d) {
    HASH_DELETE(by_name, other->database->containers, other);
    account__rename_container(a, one, c);
    account__swap_container(a, other, d);
    char *key = (char *)(uintptr_t)d->id.p; /* the macro needs a non-const pointer */
    HASH_ADD_KEYPTR_INORDER(by_name, other->database->containers, key, d->id.n, other, by_container_number);
}

container_node *account__node_of(account *a, const container *c) {
    container_node *node = NULL;
    HASH_FIND(by_rid, a->containers_by_rid, c->rid, sizeof c->rid, node);
    return node;
}

void account__remove_container(account *a, container_node *node) {
    HASH_DELETE(by_name, node->database->containers, node);
    HASH_DELETE(by_rid, a->containers_by_rid, node);
    forget_sweeps(a, node);
    account__free_scripts(node);
    container_give(node->container);
    free(node);
}

void account__remove_database(account *a, database_node *node) {
    container_node *each, *next;
    HASH_ITER(by_name, node->containers, each, next) {
        account__remove_container(a, each);
    }
    account__remove_users(node);
    account__free_encryption_keys(node);
    HASH_DELETE(by_name, a->databases_by_name, node);
    HASH_DELETE(by_number, a->databases_by_number, node);
    account__free_pool(node);
    database_give(node->database);
    free(node);
}

/* ---- opening ---- */

static account_rules with_defaults(account_rules rules) {
    rules.range_throughput = rules.range_throughput ? rules.range_throughput : 10000;
    rules.initial_range_throughput = rules.initial_range_throughput ? rules.initial_range_throughput : 6000;
    rules.range_bytes = rules.range_bytes ? rules.range_bytes : (uint64_t)50 << 30;
    rules.partition_bytes = rules.partition_bytes ? rules.partition_bytes : (uint64_t)20 << 30;
    rules.fixed_bytes = rules.fixed_bytes ? rules.fixed_bytes : (uint64_t)10 << 30;
    return rules;
}

/* Items keep their time in 32 bits (clock_ts). A clock past that range would stamp wrong times on everything that is written. */
static err check_clock(const clock_source *clock, char *why, size_t why_n) {
    int64_t now_s = clock_wall_ms(clock) / 1000;
    if (now_s >= 0 && now_s < UINT32_MAX) {
        return OK;
    }
    snprintf(why, why_n,
             "the system's clock says %lld seconds since 1970; times are kept from 1970 to 2106. Set the clock, then start again",
             (long long)now_s);
    return E_UNAVAILABLE;
}

static void open_homes(account *a, const account_options *options) {
    size_t n = 1 + options->others_n, cache_bytes = options->item_cache_bytes / n;
    for (size_t i = 0; i < n; i++) {
        a->homes[i] = home_open((uint32_t)i, i ? options->others[i - 1] : options->store, cache_bytes);
    }
    a->items = (items){
        .homes = a->homes,
        .homes_n = n,
        .clock = options->clock,
        .limits = {a->rules.partition_bytes, a->rules.fixed_bytes},
    };
    a->items.nearest = options->vector_bytes ? item_nearest_open(&a->items, options->vector_bytes, options->background) : NULL;
}

static bool has_committers(const account *a) {
    bool all = true;
    for (size_t i = 0; i < a->items.homes_n; i++) {
        all = all && a->homes[i]->committer;
    }
    return all;
}

static err load(account *a, const account_options *options, char *why, size_t why_n) {
    TRY(check_clock(options->clock, why, why_n));
    err code = account__check_homes(a, why, why_n);
    if (code != OK && *why) {
        return code;
    }
    code = code != OK ? code : account__load(a);
    a->lsn = a->numbers.version - 1;
    if (code != OK) {
        snprintf(why, why_n, "the databases and containers in the data folder cannot be read: %s", err_lookup(code)->sentence);
    } else if (!has_committers(a) || (options->background && !account__start_balancer(a))) {
        snprintf(why, why_n, THREAD_REFUSED);
        code = E_UNAVAILABLE;
    }
    return code;
}

err account_open(const account_options *options, account **account_out, char *why, size_t why_n) {
    account *a = mem_zero(sizeof *a);
    assert(options->others_n < HOMES_MAX);
    a->rules = with_defaults(options->rules);
    a->placement = options->placement;
    a->numbers = (account_numbers){1, 1, 1, 1, 1, 1, 1, 1, 1};
    pthread_rwlock_init(&a->lock, NULL);
    pthread_mutex_init(&a->events_lock, NULL);
    account__init_balancer(&a->balancer);
    open_homes(a, options);
    *why = 0;
    err code = load(a, options, why, why_n);
    if (code != OK) {
        account_close(a);
        a = NULL;
    }
    *account_out = a;
    return code;
}

/* A change that affects several homes passes from committer to committer: no committer may be closed before all such changes are done. */
static void wait_for_wide(account *a) {
    while (atomic_load(&a->wide)) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

void account_stop(account *a) {
    account__stop_balancer(a);
    if (a->items.nearest) {
        item_nearest_stop(a->items.nearest);
    }
    wait_for_wide(a);
    for (size_t i = 0; i < a->items.homes_n; i++) {
        home_stop(a->homes[i]);
    }
}

void account_close(account *a) {
    database_node *each, *next;
    offer_node *offer_each, *offer_next;
    account_stop(a);
    HASH_ITER(by_name, a->databases_by_name, each, next) {
        account__remove_database(a, each);
    }
    HASH_ITER(by_number, a->offers, offer_each, offer_next) {
        account__remove_offer(a, offer_each);
    }
    for (size_t i = 0; i < a->items.homes_n; i++) {
        home_close(a->homes[i]);
    }
    if (a->items.nearest) { /* all ranges and their graphs are freed now */
        item_nearest_close(a->items.nearest);
    }
    free(a->events);
    pthread_mutex_destroy(&a->events_lock);
    account__free_balancer(&a->balancer);
    pthread_rwlock_destroy(&a->lock);
    free(a);
}

int64_t account_page_deadline_us(const account *a) {
    return clock_monotonic_us(a->items.clock) + 1000 * (int64_t)(a->rules.page_ms ? a->rules.page_ms : PAGE_MS);
}

const items *account_items(const account *a) {
    return &a->items;
}

const account_rules *account_get_rules(const account *a) {
    return &a->rules;
}

uint64_t account_lsn(const account *a) {
    return atomic_load_explicit(&a->lsn, memory_order_relaxed);
}

/* ---- finding ---- */

err account_database(account *a, slice name, bool by_rid, database **database_out) {
    *database_out = NULL;
    pthread_rwlock_rdlock(&a->lock);
    database_node *node = account__find_database(a, name, by_rid);
    if (node) {
        *database_out = database_take(node->database);
    }
    pthread_rwlock_unlock(&a->lock);
    return node ? OK : E_NOT_FOUND;
}

err account_container(account *a, slice database, bool database_by_rid, slice name, bool by_rid, container **container_out) {
    *container_out = NULL;
    pthread_rwlock_rdlock(&a->lock);
    database_node *d = account__find_database(a, database, database_by_rid);
    container_node *node = d ? account__find_container(a, d, name, by_rid) : NULL;
    if (node) {
        *container_out = container_take(node->container);
    }
    pthread_rwlock_unlock(&a->lock);
    return node ? OK : d ? E_NOT_FOUND : E_OWNER_NOT_FOUND;
}

err account_container_any_case(account *a, slice database, slice name, container **container_out) {
    *container_out = NULL;
    pthread_rwlock_rdlock(&a->lock);
    database_node *d = account__find_database(a, database, false);
    container_node *node = d ? account__find_any_case(a, d, name) : NULL;
    if (node) {
        *container_out = container_take(node->container);
    }
    pthread_rwlock_unlock(&a->lock);
    return node ? OK : d ? E_NOT_FOUND : E_OWNER_NOT_FOUND;
}

container *account_container_newest(account *a, const container *c) {
    container_node *node = NULL;
    pthread_rwlock_rdlock(&a->lock);
    HASH_FIND(by_rid, a->containers_by_rid, c->rid, sizeof c->rid, node);
    container *newest = node ? container_take(node->container) : NULL;
    pthread_rwlock_unlock(&a->lock);
    return newest;
}

err account_offer(account *a, const rid *offer_rid, offer *offer_out) {
    uint32_t number = (uint32_t)rid_number(offer_rid);
    offer_node *node = NULL;
    pthread_rwlock_rdlock(&a->lock);
    HASH_FIND(by_number, a->offers, &number, sizeof number, node);
    if (node) {
        *offer_out = node->offer;
    }
    pthread_rwlock_unlock(&a->lock);
    return node ? OK : E_NOT_FOUND;
}

bool account_offer_of(account *a, uint32_t database, uint32_t container, offer *offer_out) {
    pthread_rwlock_rdlock(&a->lock);
    offer_node *node = account__find_offer(a, database, container);
    if (node) {
        *offer_out = node->offer;
    }
    pthread_rwlock_unlock(&a->lock);
    return node != NULL;
}

void account_each_database(account *a, uint32_t after, bool (*visit)(void *, const database *), void *context) {
    pthread_rwlock_rdlock(&a->lock);
    for (database_node *node = a->databases_by_number; node; node = node->by_number.next) {
        if (node->database->number > after && !visit(context, node->database)) {
            break;
        }
    }
    pthread_rwlock_unlock(&a->lock);
}

void account_each_container(account *a, const database *d, uint32_t after, bool (*visit)(void *, const container *), void *context) {
    database_node *found = NULL;
    pthread_rwlock_rdlock(&a->lock);
    HASH_FIND(by_number, a->databases_by_number, &d->number, sizeof d->number, found);
    for (container_node *node = found ? found->containers : NULL; node; node = node->by_name.next) {
        if (node->container->space->container > after && !visit(context, node->container)) {
            break;
        }
    }
    pthread_rwlock_unlock(&a->lock);
}

void account_each_offer(account *a, uint32_t after, bool (*visit)(void *, const offer *), void *context) {
    pthread_rwlock_rdlock(&a->lock);
    for (offer_node *node = a->offers; node; node = node->by_number.next) {
        if (node->offer.number > after && !visit(context, &node->offer)) {
            break;
        }
    }
    pthread_rwlock_unlock(&a->lock);
}

/* ---- background ---- */

/* Containers that keep versions rarely have anything to trim: up to IDLE_PASSED idle ones are skipped. */
static container *next_to_sweep(account *a, int64_t now_s) {
    container_node *last = NULL, *next = NULL;
    container *due = NULL;
    pthread_rwlock_rdlock(&a->lock);
    HASH_FIND(by_sweep, a->containers_swept, a->swept_rid, sizeof a->swept_rid, last);
    for (int i = 0; i < IDLE_PASSED && !due; i++) {
        next = last && last->by_sweep.next ? last->by_sweep.next : a->containers_swept;
        if (!next) {
            break;
        }
        if (next->container->ttl != TTL_OFF || item_trim_due(next->container, now_s)) {
            due = container_take(next->container);
        }
        last = next;
        memcpy(a->swept_rid, next->container->rid, sizeof a->swept_rid);
    }
    pthread_rwlock_unlock(&a->lock);
    return due;
}

/* Sweeps one container at a time, continuing after the one of the last tick: every container gets its turn, and no request waits for more
 * than one sweep. */
void account_tick(account *a) {
    if (!a->homes[0]->committer || atomic_load(&a->sweeps_in_flight)) {
        return;
    }
    int64_t now_s = clock_wall_ms(a->items.clock) / 1000;
    container *due = next_to_sweep(a, now_s);
    if (!due) {
        return;
    }
    if (due->ttl != TTL_OFF) {
        item_sweep(&a->items, due, SWEEP_COST, &a->sweeps_in_flight);
    }
    if (item_trim_due(due, now_s)) {
        item_trim(&a->items, due, &a->sweeps_in_flight);
    }
    container_give(due);
}
