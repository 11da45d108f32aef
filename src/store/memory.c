/* The store in memory, for tests: per family a sorted table of shared nodes. A scan or a snapshot holds a table; a write copies the table
 * if somebody holds it. Simple before fast. */
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "store/store.h"

typedef struct node {
    unsigned refs;
    slice key, value;
    char bytes[];
} node;

typedef struct table {
    unsigned refs;
    size_t n, cap;
    node **nodes;
} table;

typedef struct memory_store {
    store base;
    pthread_mutex_t lock; /* of all reference counts and of `tables` */
    table *tables[STORE_FAMILIES];
} memory_store;

struct store_snapshot {
    table *tables[STORE_FAMILIES];
};

typedef struct memory_scan {
    store_scan base;
    table *table;
    size_t first, last; /* its bounds */
    size_t at, end;     /* nodes [at, end) are still to come */
    bool backward;
} memory_scan;

static node *node_make(slice key, slice value) {
    node *made = mem_alloc(sizeof *made + key.n + value.n);
    made->refs = 1;
    made->key = slice_of(memcpy(made->bytes, key.p ? key.p : "", key.n), key.n);
    made->value = slice_of(memcpy(made->bytes + key.n, value.p ? value.p : "", value.n), value.n);
    return made;
}

static void node_give(node *n) {
    if (--n->refs == 0) {
        free(n);
    }
}

static void table_give(table *t) {
    if (--t->refs == 0) {
        for (size_t i = 0; i < t->n; i++) {
            node_give(t->nodes[i]);
        }
        free(t->nodes);
        free(t);
    }
}

static table *table_copy(const table *t) {
    table *copy = mem_zero(sizeof *copy);
    copy->refs = 1;
    copy->n = copy->cap = t->n;
    copy->nodes = mem_alloc(t->n * sizeof *copy->nodes);
    for (size_t i = 0; i < t->n; i++) {
        copy->nodes[i] = t->nodes[i];
        copy->nodes[i]->refs++;
    }
    return copy;
}

/* Index of the first key not below `key`. */
static size_t lower_bound(const table *t, slice key) {
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_cmp(t->nodes[middle]->key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool holds(const table *t, size_t at, slice key) {
    return at < t->n && slice_eq(t->nodes[at]->key, key);
}

static void table_remove(table *t, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        node_give(t->nodes[i]);
    }
    if (to > from) {
        memmove(t->nodes + from, t->nodes + to, (t->n - to) * sizeof *t->nodes);
        t->n -= to - from;
    }
}

static void table_put(table *t, slice key, slice value) {
    size_t at = lower_bound(t, key);
    if (holds(t, at, key)) {
        node_give(t->nodes[at]);
    } else {
        if (t->n == t->cap) {
            t->cap = t->cap ? t->cap * 2 : 16;
            t->nodes = mem_resize(t->nodes, t->cap * sizeof *t->nodes);
        }
        memmove(t->nodes + at + 1, t->nodes + at, (t->n - at) * sizeof *t->nodes);
        t->n++;
    }
    t->nodes[at] = node_make(key, value);
}

static err memory_get(store *s, store_family family, const store_snapshot *at, slice key, store_value *value_out) {
    memory_store *m = (memory_store *)s;
    *value_out = (store_value){0};
    pthread_mutex_lock(&m->lock);
    table *t = at ? at->tables[family] : m->tables[family];
    size_t i = lower_bound(t, key);
    bool found = holds(t, i, key);
    if (found) {
        t->nodes[i]->refs++;
        *value_out = (store_value){.bytes = t->nodes[i]->value, .pin = t->nodes[i], .owner = s};
    }
    pthread_mutex_unlock(&m->lock);
    return found ? OK : E_NOT_FOUND;
}

static void memory_give(store_value *value) {
    memory_store *m = (memory_store *)value->owner;
    pthread_mutex_lock(&m->lock);
    node_give(value->pin);
    pthread_mutex_unlock(&m->lock);
}

static void apply(table *t, const store_change *c) {
    size_t at = lower_bound(t, c->key);
    switch (c->kind) {
    case STORE_PUT:
        table_put(t, c->key, c->value);
        break;
    case STORE_DELETE:
        table_remove(t, at, at + holds(t, at, c->key));
        break;
    case STORE_DELETE_RANGE:
        table_remove(t, at, lower_bound(t, c->value));
        break;
    }
}

static err memory_write(store *s, const store_batch *batch) {
    memory_store *m = (memory_store *)s;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < batch->n; i++) {
        table **t = &m->tables[batch->changes[i].family];
        if ((*t)->refs > 1) {
            table *copy = table_copy(*t);
            table_give(*t);
            *t = copy;
        }
        apply(*t, &batch->changes[i]);
    }
    pthread_mutex_unlock(&m->lock);
    return OK;
}

static store_scan *memory_scan_open(store *s, store_family family, const store_snapshot *at, slice from, slice to, bool backward) {
    memory_store *m = (memory_store *)s;
    memory_scan *scan = mem_zero(sizeof *scan);
    pthread_mutex_lock(&m->lock);
    scan->base.owner = s;
    scan->table = at ? at->tables[family] : m->tables[family];
    scan->table->refs++;
    scan->at = lower_bound(scan->table, from);
    scan->end = to.n ? lower_bound(scan->table, to) : scan->table->n;
    scan->first = scan->at;
    scan->last = scan->end;
    scan->backward = backward;
    pthread_mutex_unlock(&m->lock);
    return &scan->base;
}

static bool memory_scan_next(store_scan *base, slice *key_out, slice *value_out) {
    memory_scan *scan = (memory_scan *)base;
    if (scan->at >= scan->end) {
        return false;
    }
    const node *found = scan->table->nodes[scan->backward ? --scan->end : scan->at++];
    *key_out = found->key;
    *value_out = found->value;
    return true;
}

static void memory_scan_seek(store_scan *base, slice key, bool backward) {
    memory_scan *scan = (memory_scan *)base;
    size_t at = lower_bound(scan->table, key);
    at = at < scan->first ? scan->first : at > scan->last ? scan->last : at;
    scan->backward = backward;
    scan->at = backward ? scan->first : at;
    scan->end = backward ? at : scan->last;
}

static err memory_scan_close(store_scan *base) {
    memory_scan *scan = (memory_scan *)base;
    memory_store *m = (memory_store *)base->owner;
    pthread_mutex_lock(&m->lock);
    table_give(scan->table);
    pthread_mutex_unlock(&m->lock);
    free(scan);
    return OK;
}

static const store_snapshot *memory_snapshot_take(store *s) {
    memory_store *m = (memory_store *)s;
    store_snapshot *snapshot = mem_alloc(sizeof *snapshot);
    pthread_mutex_lock(&m->lock);
    for (int f = 0; f < STORE_FAMILIES; f++) {
        snapshot->tables[f] = m->tables[f];
        snapshot->tables[f]->refs++;
    }
    pthread_mutex_unlock(&m->lock);
    return snapshot;
}

static void memory_snapshot_give(store *s, const store_snapshot *snapshot) {
    memory_store *m = (memory_store *)s;
    pthread_mutex_lock(&m->lock);
    for (int f = 0; f < STORE_FAMILIES; f++) {
        table_give(snapshot->tables[f]);
    }
    pthread_mutex_unlock(&m->lock);
    free((void *)(uintptr_t)snapshot);
}

static void memory_reclaim(store *s, store_family family, slice from, slice to) {
    (void)s, (void)family, (void)from, (void)to; /* nothing lingers here */
}

static uint64_t memory_bytes(store *s, store_family family, slice from, slice to) {
    uint64_t bytes = 0;
    slice key, value;
    store_scan *scan = memory_scan_open(s, family, NULL, from, to, false);
    while (memory_scan_next(scan, &key, &value)) {
        bytes += key.n + value.n;
    }
    return memory_scan_close(scan) == OK ? bytes : 0;
}

static void memory_close(store *s) {
    memory_store *m = (memory_store *)s;
    for (int f = 0; f < STORE_FAMILIES; f++) {
        table_give(m->tables[f]);
    }
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static const store_ops memory_ops = {
    .name = "memory",
    .close = memory_close,
    .get = memory_get,
    .give = memory_give,
    .write = memory_write,
    .scan_open = memory_scan_open,
    .scan_next = memory_scan_next,
    .scan_seek = memory_scan_seek,
    .scan_close = memory_scan_close,
    .snapshot_take = memory_snapshot_take,
    .snapshot_give = memory_snapshot_give,
    .reclaim = memory_reclaim,
    .bytes = memory_bytes,
};

store *store_open_memory(void) {
    memory_store *m = mem_zero(sizeof *m);
    m->base.ops = &memory_ops;
    pthread_mutex_init(&m->lock, NULL);
    for (int f = 0; f < STORE_FAMILIES; f++) {
        m->tables[f] = mem_zero(sizeof(table));
        m->tables[f]->refs = 1;
    }
    return &m->base;
}
