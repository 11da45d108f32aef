#include "account/report.h"

#include <math.h>
#include <stdlib.h>

#include "account/account_int.h"
#include "base/memory.h"

/* ---- which containers ---- */

static void add_container(account *a, report *r, const container_node *node) {
    uint32_t database = node->database->database->number;
    offer_node *own = account__find_offer(a, database, node->container->space->container);
    offer_node *from = own ? own : account__find_offer(a, database, 0);
    r->list[r->n++] = (report_container){
        .container = container_take(node->container),
        .throughput = from ? from->offer.throughput : (throughput_setting){0},
        .shared = from && !own,
    };
}

static void add_database(account *a, report *r, const database_node *d, slice container) {
    for (container_node *node = d->containers; node; node = node->by_name.next) {
        if (container.n == 0 || slice_eq(container, node->container->id)) {
            add_container(a, r, node);
        }
    }
}

err account_report(account *a, slice database, slice container, report *report_out) {
    report r = {0};
    bool found = database.n == 0;
    pthread_rwlock_rdlock(&a->lock);
    r.databases = HASH_CNT(by_number, a->databases_by_number);
    r.list = mem_alloc((HASH_CNT(by_rid, a->containers_by_rid) + 1) * sizeof *r.list);
    for (database_node *d = a->databases_by_number; d; d = d->by_number.next) {
        if (database.n == 0 || slice_eq(database, slice_str(d->database->id))) {
            found = true;
            add_database(a, &r, d, container);
        }
    }
    pthread_rwlock_unlock(&a->lock);
    if (!found || (container.n && r.n == 0)) {
        report_free(&r);
        return E_NOT_FOUND;
    }
    *report_out = r;
    return OK;
}

void report_free(report *r) {
    for (size_t i = 0; i < r->n; i++) {
        container_give(r->list[i].container);
    }
    free(r->list);
    *r = (report){0};
}

/* ---- stores ---- */

bool account_store_figures(const account *a, size_t i, store_figures *figures_out) {
    const items *all = account_items(a);
    return i < all->homes_n && store_measure(all->homes[i]->store, figures_out);
}

/* ---- ranges ---- */

#define load(p) atomic_load_explicit((p), memory_order_relaxed)

static bool is_moving(const range_sources *sources) {
    bool moving = false;
    for (size_t i = 0; i < sources->n; i++) {
        moving = moving || sources->list[i].leaving;
    }
    return moving;
}

report_range report_range_at(const container *c, size_t position) {
    container_range *range = c->tiles->ranges[position];
    const range_sources *sources = &c->tiles->sources[position];
    meter *m = &range->meter;
    return (report_range){
        .items = load(&range->items),
        .bytes = load(&range->bytes),
        .index_bytes = load(&range->index_bytes),
        .partitions = load(&range->partitions),
        .lsn = load(&range->lsn),
        .share = load(&container_range_bucket(range)->rate),
        .last = meter_last(m),
        .requests = load(&m->requests),
        .throttled = load(&m->throttled),
        .failed = load(&m->failed),
        .ru = (double)load(&m->micro_ru) / 1e6,
        .latency_s = (double)load(&m->latency_us) / 1e6,
        .segments = sources->n,
        .moving = is_moving(sources),
    };
}

static uint32_t narrow(uint64_t n) {
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static void add_sample(meter_sample *to, const meter_sample *s) {
    uint64_t requests = (uint64_t)to->requests + s->requests;
    double latency = (double)to->latency_average_us * to->requests + (double)s->latency_average_us * s->requests;
    to->latency_average_us = requests ? (uint32_t)llrint(latency / (double)requests) : 0;
    to->latency_max_us = s->latency_max_us > to->latency_max_us ? s->latency_max_us : to->latency_max_us;
    to->normalized = s->normalized > to->normalized ? s->normalized : to->normalized;
    meter_sample_add_ru(to, s);
    to->requests = narrow(requests);
    to->throttled = narrow((uint64_t)to->throttled + s->throttled);
}

/* Whether the range shares its bucket with the range before it, as under shared database throughput; then its share is not added again. */
static bool draws_from_seen(const container_tiles *tiles, size_t i) {
    return i > 0 && container_range_bucket(tiles->ranges[i]) == container_range_bucket(tiles->ranges[i - 1]);
}

report_range report_sum(const container *c) {
    report_range sum = {0};
    for (size_t i = 0; i < c->tiles->map->n; i++) {
        report_range r = report_range_at(c, i);
        sum.items += r.items;
        sum.bytes += r.bytes;
        sum.index_bytes += r.index_bytes;
        sum.partitions += r.partitions;
        sum.lsn = r.lsn > sum.lsn ? r.lsn : sum.lsn;
        sum.share += draws_from_seen(c->tiles, i) ? 0 : r.share;
        sum.requests += r.requests;
        sum.throttled += r.throttled;
        sum.failed += r.failed;
        sum.ru += r.ru;
        sum.latency_s += r.latency_s;
        sum.segments += r.segments;
        sum.moving = sum.moving || r.moving;
        add_sample(&sum.last, &r.last);
    }
    return sum;
}

/* ---- history ---- */

void report_history(const container *c, size_t position, bool by_minute, int64_t from_s, meter_sample *samples, size_t n) {
    void (*read)(meter *, int64_t, meter_sample *, size_t) = by_minute ? meter_minutes : meter_seconds;
    if (position != REPORT_ALL_RANGES) {
        read(&c->tiles->ranges[position]->meter, from_s, samples, n);
        return;
    }
    meter_sample *one = mem_alloc(n * sizeof *one);
    read(&c->space->past, from_s, samples, n);
    for (size_t i = 0; i < c->tiles->map->n; i++) {
        read(&c->tiles->ranges[i]->meter, from_s, one, n);
        for (size_t j = 0; j < n; j++) {
            add_sample(&samples[j], &one[j]);
        }
    }
    free(one);
}

void report_provisioned(const container *c, bool by_minute, int64_t from_s, double *ru, size_t n) {
    provisioned_read(&c->space->provisioned, from_s, by_minute ? 60 : 1, ru, n);
}

size_t report_provisioned_steps(const container *c, int64_t from_s, provisioned_step *steps_out) {
    return provisioned_steps(&c->space->provisioned, from_s, steps_out);
}
