#include "store/failing_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "base/memory.h"
#include "store/figures.h"

/* A key that was read from the slow disk, after its family's number. */
typedef struct known_key {
    UT_hash_handle hh;
    char bytes[];
} known_key;

typedef struct near_snapshot {
    UT_hash_handle hh;
    const store_snapshot *snapshot; /* taken in memory */
} near_snapshot;

typedef struct fault_store {
    store base;
    store *inner;
    store_fault_plan *plan;
    pthread_mutex_t lock;
    known_key *known;
    near_snapshot *near;
} fault_store;

typedef struct fault_scan {
    store_scan base;
    store_scan *inner;
    store_family family;
    bool in_memory;
    err code; /* what broke it */
} fault_scan;

static bool fires(store_fault_plan *plan, unsigned *in) {
    if (*in == 0 || --*in > 0) {
        return false;
    }
    plan->fired++;
    *in = plan->sticky ? 1 : 0;
    return true;
}

/* ---- the slow disk ---- */

/* Whether the key was read before; with `add`, it is from now on. */
static bool is_known(fault_store *f, store_family family, slice key, bool add) {
    known_key *found, *made = mem_zero(sizeof *made + 1 + key.n);
    made->bytes[0] = (char)family;
    memcpy(made->bytes + 1, key.p, key.n);
    pthread_mutex_lock(&f->lock);
    HASH_FIND(hh, f->known, made->bytes, 1 + key.n, found);
    if (!found && add) {
        HASH_ADD_KEYPTR(hh, f->known, made->bytes, 1 + key.n, made);
        made = NULL;
    }
    pthread_mutex_unlock(&f->lock);
    free(made);
    return found;
}

static void forget_all(fault_store *f) {
    known_key *each, *next;
    HASH_ITER(hh, f->known, each, next) {
        HASH_DEL(f->known, each);
        free(each);
    }
}

static bool is_committer(void) {
    char name[16] = "";
    return pthread_getname_np(pthread_self(), name, sizeof name) == 0 && strcmp(name, "committer") == 0;
}

static void wait_for_disk(fault_store *f, store_family family, slice key) {
    unsigned disk_ms = f->plan->disk_ms;
    if (disk_ms && !(f->plan->disk_cached && is_known(f, family, key, true))) {
        f->plan->disk_held += is_committer();
        nanosleep(&(struct timespec){.tv_sec = disk_ms / 1000, .tv_nsec = disk_ms % 1000 * 1000000L}, NULL);
    }
}

static void keep_written(fault_store *f, const store_batch *batch) {
    for (size_t i = 0; f->plan->disk_cached && i < batch->n; i++) {
        (void)is_known(f, batch->changes[i].family, batch->changes[i].key, true);
    }
}

static bool is_in_memory(fault_store *f, store_family family, slice key) {
    return f->plan->disk_ms == 0 || (f->plan->disk_cached && is_known(f, family, key, false));
}

/* ---- calls ---- */

static err fault_get(store *s, store_family family, const store_snapshot *at, slice key, store_value *value_out) {
    fault_store *f = (fault_store *)s;
    if (fires(f->plan, &f->plan->get_in)) {
        *value_out = (store_value){0};
        return f->plan->code;
    }
    wait_for_disk(f, family, key);
    return store_get(f->inner, family, at, key, value_out); /* the inner store owns the value */
}

static err fault_get_in_memory(store *s, store_family family, slice key, store_value *value_out) {
    *value_out = (store_value){0};
    fault_store *f = (fault_store *)s;
    if (f->plan->miss_in && --f->plan->miss_in == 0) {
        return E_NOT_IN_MEMORY;
    }
    return is_in_memory(f, family, key) ? fault_get(s, family, NULL, key, value_out) : E_NOT_IN_MEMORY;
}

static bool fault_has_room(store *s, store_use use) {
    return use >= ((fault_store *)s)->plan->room;
}

static bool fault_is_behind(store *s) {
    return ((fault_store *)s)->plan->behind;
}

static err fault_write(store *s, const store_batch *batch) {
    fault_store *f = (fault_store *)s;
    keep_written(f, batch);
    if (batch->use < f->plan->room) {
        return E_STORE_FULL;
    }
    if (fires(f->plan, &f->plan->write_in)) {
        err code = f->plan->torn ? store_write(f->inner, batch) : OK;
        return code != OK ? code : f->plan->code;
    }
    return store_write(f->inner, batch);
}

static bool is_near(fault_store *f, const store_snapshot *at) {
    near_snapshot *found;
    pthread_mutex_lock(&f->lock);
    HASH_FIND_PTR(f->near, &at, found);
    pthread_mutex_unlock(&f->lock);
    return found;
}

static store_scan *fault_scan_open(store *s, store_family family, const store_snapshot *at, slice from, slice to, bool backward) {
    fault_store *f = (fault_store *)s;
    fault_scan *scan = mem_zero(sizeof *scan);
    scan->base.owner = s;
    scan->inner = store_scan_open(f->inner, family, at, from, to, backward);
    scan->family = family;
    scan->in_memory = f->plan->disk_scans && at && is_near(f, at);
    return &scan->base;
}

static err break_or_wait(fault_store *f, const fault_scan *scan, slice key) {
    if (scan->in_memory && !is_in_memory(f, scan->family, key)) {
        return E_NOT_IN_MEMORY;
    }
    if (f->plan->disk_scans) {
        wait_for_disk(f, scan->family, key);
    }
    return OK;
}

static bool fault_scan_next(store_scan *base, slice *key_out, slice *value_out) {
    fault_scan *scan = (fault_scan *)base;
    fault_store *f = (fault_store *)base->owner;
    if (scan->code == OK && fires(f->plan, &f->plan->scan_in)) {
        scan->code = f->plan->code;
    }
    if (scan->code != OK || !store_scan_next(scan->inner, key_out, value_out)) {
        return false;
    }
    scan->code = break_or_wait(f, scan, *key_out);
    return scan->code == OK;
}

static void fault_scan_seek(store_scan *base, slice key, bool backward) {
    store_scan_seek(((fault_scan *)base)->inner, key, backward);
}

static err fault_scan_close(store_scan *base) {
    fault_scan *scan = (fault_scan *)base;
    err code = store_scan_close(scan->inner);
    code = scan->code != OK ? scan->code : code;
    free(scan);
    return code;
}

static const store_snapshot *fault_snapshot_take(store *s, bool in_memory) {
    fault_store *f = (fault_store *)s;
    const store_snapshot *taken = f->inner->ops->snapshot_take(f->inner, in_memory);
    if (in_memory) {
        near_snapshot *made = mem_zero(sizeof *made);
        made->snapshot = taken;
        pthread_mutex_lock(&f->lock);
        HASH_ADD_PTR(f->near, snapshot, made);
        pthread_mutex_unlock(&f->lock);
    }
    return taken;
}

static void fault_snapshot_give(store *s, const store_snapshot *snapshot) {
    fault_store *f = (fault_store *)s;
    near_snapshot *found;
    pthread_mutex_lock(&f->lock);
    HASH_FIND_PTR(f->near, &snapshot, found);
    if (found) {
        HASH_DEL(f->near, found);
        free(found);
    }
    pthread_mutex_unlock(&f->lock);
    store_snapshot_give(f->inner, snapshot);
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
    fault_store *f = (fault_store *)s;
    store_close(f->inner);
    forget_all(f);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static const store_ops fault_ops = {
    .name = "fault",
    .close = fault_close,
    .get = fault_get,
    .get_in_memory = fault_get_in_memory,
    .give = NULL, /* the inner store owns the values */
    .has_room = fault_has_room,
    .is_behind = fault_is_behind,
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
    pthread_mutex_init(&f->lock, NULL);
    return &f->base;
}
