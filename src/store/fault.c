#include "store/fault.h"

#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "store/figures.h"

typedef struct fault_store {
    store base;
    store *inner;
    store_fault_plan *plan;
} fault_store;

typedef struct fault_scan {
    store_scan base;
    store_scan *inner;
    bool broken;
} fault_scan;

static bool fires(store_fault_plan *plan, unsigned *in) {
    if (*in == 0 || --*in > 0) {
        return false;
    }
    plan->fired++;
    *in = plan->sticky ? 1 : 0;
    return true;
}

static err fault_get(store *s, store_family family, const store_snapshot *at, slice key, store_value *value_out) {
    fault_store *f = (fault_store *)s;
    if (fires(f->plan, &f->plan->get_in)) {
        *value_out = (store_value){0};
        return f->plan->code;
    }
    unsigned disk_ms = f->plan->disk_ms;
    if (disk_ms) {
        nanosleep(&(struct timespec){.tv_sec = disk_ms / 1000, .tv_nsec = disk_ms % 1000 * 1000000L}, NULL);
    }
    return store_get(f->inner, family, at, key, value_out); /* the inner store owns the value */
}

static err fault_get_in_memory(store *s, store_family family, slice key, store_value *value_out) {
    *value_out = (store_value){0};
    return ((fault_store *)s)->plan->disk_ms ? E_NOT_IN_MEMORY : fault_get(s, family, NULL, key, value_out);
}

static bool fault_has_room(store *s, store_use use) {
    return use >= ((fault_store *)s)->plan->room;
}

static err fault_write(store *s, const store_batch *batch) {
    fault_store *f = (fault_store *)s;
    if (batch->use < f->plan->room) {
        return E_STORE_FULL;
    }
    if (fires(f->plan, &f->plan->write_in)) {
        err code = f->plan->torn ? store_write(f->inner, batch) : OK;
        return code != OK ? code : f->plan->code;
    }
    return store_write(f->inner, batch);
}

static store_scan *fault_scan_open(store *s, store_family family, const store_snapshot *at, slice from, slice to, bool backward) {
    fault_store *f = (fault_store *)s;
    fault_scan *scan = mem_zero(sizeof *scan);
    scan->base.owner = s;
    scan->inner = store_scan_open(f->inner, family, at, from, to, backward);
    return &scan->base;
}

static bool fault_scan_next(store_scan *base, slice *key_out, slice *value_out) {
    fault_scan *scan = (fault_scan *)base;
    fault_store *f = (fault_store *)base->owner;
    scan->broken = scan->broken || fires(f->plan, &f->plan->scan_in);
    return !scan->broken && store_scan_next(scan->inner, key_out, value_out);
}

static void fault_scan_seek(store_scan *base, slice key, bool backward) {
    store_scan_seek(((fault_scan *)base)->inner, key, backward);
}

static err fault_scan_close(store_scan *base) {
    fault_scan *scan = (fault_scan *)base;
    fault_store *f = (fault_store *)base->owner;
    err code = store_scan_close(scan->inner);
    code = scan->broken ? f->plan->code : code;
    free(scan);
    return code;
}

static const store_snapshot *fault_snapshot_take(store *s, bool in_memory) {
    store *inner = ((fault_store *)s)->inner;
    return inner->ops->snapshot_take(inner, in_memory);
}

static void fault_snapshot_give(store *s, const store_snapshot *snapshot) {
    store_snapshot_give(((fault_store *)s)->inner, snapshot);
}

static void fault_reclaim(store *s, store_family family, slice from, slice to) {
    store_reclaim(((fault_store *)s)->inner, family, from, to);
}

static uint64_t fault_bytes(store *s, store_family family, slice from, slice to) {
    return store_bytes(((fault_store *)s)->inner, family, from, to);
}

static void fault_measure(store *s, store_figures *out) {
    (void)!store_measure(((fault_store *)s)->inner, out);
}

static void fault_close(store *s) {
    store_close(((fault_store *)s)->inner);
    free(s);
}

static const store_ops fault_ops = {
    .name = "fault",
    .close = fault_close,
    .get = fault_get,
    .get_in_memory = fault_get_in_memory,
    .give = NULL, /* the inner store owns the values */
    .has_room = fault_has_room,
    .write = fault_write,
    .scan_open = fault_scan_open,
    .scan_next = fault_scan_next,
    .scan_seek = fault_scan_seek,
    .scan_close = fault_scan_close,
    .snapshot_take = fault_snapshot_take,
    .snapshot_give = fault_snapshot_give,
    .reclaim = fault_reclaim,
    .bytes = fault_bytes,
    .measure = fault_measure,
};

store *store_open_fault(store *inner, store_fault_plan *plan) {
    fault_store *f = mem_zero(sizeof *f);
    *f = (fault_store){.base.ops = &fault_ops, .inner = inner, .plan = plan};
    return &f->base;
}
