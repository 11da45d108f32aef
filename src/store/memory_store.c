/* The store in memory, for tests: each family is a sorted table of shared nodes, in blocks. A scan or a snapshot holds a reference to a
 * table. A write copies the table if others hold it, and the blocks that it changes. Simple rather than fast. */
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "store/store.h"

enum { BLOCK_NODES = 256 };

typedef struct node {
    unsigned refs;
    slice key, value;
    char bytes[];
} node;

typedef struct block {
    unsigned refs;
    size_t n; /* never 0 */
    node *nodes[BLOCK_NODES];
} block;

typedef struct table {
    unsigned refs;
    size_t n, cap;
    block **blocks;
} table;

/* Position of a node in a table; {n, 0} is past the last one. */
typedef struct place {
    size_t block, at;
} place;

typedef struct memory_store {
    store base;
    pthread_mutex_t lock; /* protects all reference counts and `tables` */
    table *tables[STORE_FAMILIES];
} memory_store;

struct store_snapshot {
    table *tables[STORE_FAMILIES];
};

typedef struct memory_scan {
    store_scan base;
    table *table;
    place first, last; /* the scan's bounds */
    place at, end;     /* nodes [at, end) are yet to come */
    bool backward;
} memory_scan;

/* ---- nodes and blocks ---- */

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

static block *block_make(node *const *nodes, size_t n) {
    block *made = mem_alloc(sizeof *made);
    made->refs = 1;
    made->n = n;
    memcpy(made->nodes, nodes, n * sizeof *nodes);
    return made;
}

static void block_give(block *b) {
    if (--b->refs == 0) {
        for (size_t i = 0; i < b->n; i++) {
            node_give(b->nodes[i]);
        }
        free(b);
    }
}

/* ---- tables ---- */

static void table_give(table *t) {
    if (--t->refs == 0) {
        for (size_t i = 0; i < t->n; i++) {
            block_give(t->blocks[i]);
        }
        free(t->blocks);
        free(t);
    }
}

static table *table_copy(const table *t) {
    table *copy = mem_zero(sizeof *copy);
    copy->refs = 1;
    copy->n = copy->cap = t->n;
    copy->blocks = mem_alloc(t->n * sizeof *copy->blocks);
    for (size_t i = 0; i < t->n; i++) {
        copy->blocks[i] = t->blocks[i];
        copy->blocks[i]->refs++;
    }
    return copy;
}

/* Returns a block that only this table holds, so that it can be changed. */
static block *own_block(table *t, size_t i) {
    block *b = t->blocks[i];
    if (b->refs > 1) {
        t->blocks[i] = block_make(b->nodes, b->n);
        for (size_t j = 0; j < b->n; j++) {
            b->nodes[j]->refs++;
        }
        b->refs--;
    }
    return t->blocks[i];
}

static void add_block(table *t, size_t at, block *b) {
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 16;
        t->blocks = mem_resize(t->blocks, t->cap * sizeof *t->blocks);
    }
    memmove(t->blocks + at + 1, t->blocks + at, (t->n++ - at) * sizeof *t->blocks);
    t->blocks[at] = b;
}

static void drop_block(table *t, size_t at) {
    block_give(t->blocks[at]);
    memmove(t->blocks + at, t->blocks + at + 1, (--t->n - at) * sizeof *t->blocks);
}

static node *node_at(const table *t, place p) {
    return t->blocks[p.block]->nodes[p.at];
}

static place place_next(const table *t, place p) {
    return p.at + 1 < t->blocks[p.block]->n ? (place){p.block, p.at + 1} : (place){p.block + 1, 0};
}

static place place_before(const table *t, place p) {
    return p.at ? (place){p.block, p.at - 1} : (place){p.block - 1, t->blocks[p.block - 1]->n - 1};
}

static bool is_before(place a, place b) {
    return a.block < b.block || (a.block == b.block && a.at < b.at);
}

/* Position of the first key that is not below `key`. */
static place lower_bound(const table *t, slice key) {
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const block *b = t->blocks[middle];
        if (slice_cmp(b->nodes[b->n - 1]->key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    place p = {low, 0};
    for (size_t until = low < t->n ? t->blocks[low]->n : 0; p.at < until;) {
        size_t middle = p.at + (until - p.at) / 2;
        if (slice_cmp(t->blocks[low]->nodes[middle]->key, key) < 0) {
            p.at = middle + 1;
        } else {
            until = middle;
        }
    }
    return p;
}

static bool holds(const table *t, place p, slice key) {
    return p.block < t->n && slice_eq(node_at(t, p)->key, key);
}

static void remove_of_block(table *t, size_t i, size_t from, size_t to) {
    block *b = own_block(t, i);
    for (size_t j = from; j < to; j++) {
        node_give(b->nodes[j]);
    }
    memmove(b->nodes + from, b->nodes + to, (b->n - to) * sizeof *b->nodes);
    b->n -= to - from;
    if (b->n == 0) {
        drop_block(t, i);
    }
}

static void table_remove(table *t, place from, place to) {
    if (!is_before(from, to)) {
        return;
    }
    if (to.at) {
        remove_of_block(t, to.block, to.block == from.block ? from.at : 0, to.at);
    }
    if (to.block == from.block) {
        return;
    }
    while (--to.block > from.block) {
        drop_block(t, to.block);
    }
    remove_of_block(t, from.block, from.at, t->blocks[from.block]->n);
}

/* A position past the last block means the end of the last block. */
static void insert(table *t, place p, node *n) {
    if (p.block == t->n && t->n) {
        p = (place){t->n - 1, t->blocks[t->n - 1]->n};
    } else if (t->n == 0) {
        add_block(t, 0, block_make(&n, 1));
        return;
    }
    block *b = own_block(t, p.block);
    if (b->n == BLOCK_NODES) {
        b->n /= 2;
        add_block(t, p.block + 1, block_make(b->nodes + b->n, BLOCK_NODES - b->n));
        if (p.at > b->n) {
            p = (place){p.block + 1, p.at - b->n};
            b = t->blocks[p.block];
        }
    }
    memmove(b->nodes + p.at + 1, b->nodes + p.at, (b->n++ - p.at) * sizeof *b->nodes);
    b->nodes[p.at] = n;
}

static void table_put(table *t, slice key, slice value) {
    place at = lower_bound(t, key);
    node *made = node_make(key, value);
    if (holds(t, at, key)) {
        node **there = &own_block(t, at.block)->nodes[at.at];
        node_give(*there);
        *there = made;
    } else {
        insert(t, at, made);
    }
}

/* ---- the store ---- */

static err memory_get(store *s, store_family family, const store_snapshot *at, slice key, store_value *value_out) {
    memory_store *m = (memory_store *)s;
    *value_out = (store_value){0};
    pthread_mutex_lock(&m->lock);
    table *t = at ? at->tables[family] : m->tables[family];
    place p = lower_bound(t, key);
    bool found = holds(t, p, key);
    if (found) {
        node *n = node_at(t, p);
        n->refs++;
        *value_out = (store_value){.bytes = n->value, .pin = n, .owner = s};
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
    place at = lower_bound(t, c->key);
    switch (c->kind) {
    case STORE_PUT:
        table_put(t, c->key, c->value);
        break;
    case STORE_DELETE:
        table_remove(t, at, holds(t, at, c->key) ? place_next(t, at) : at);
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
    scan->end = to.n ? lower_bound(scan->table, to) : (place){scan->table->n, 0};
    scan->first = scan->at;
    scan->last = scan->end;
    scan->backward = backward;
    pthread_mutex_unlock(&m->lock);
    return &scan->base;
}

static bool memory_scan_next(store_scan *base, slice *key_out, slice *value_out) {
    memory_scan *scan = (memory_scan *)base;
    if (!is_before(scan->at, scan->end)) {
        return false;
    }
    place p = scan->backward ? place_before(scan->table, scan->end) : scan->at;
    const node *found = node_at(scan->table, p);
    if (scan->backward) {
        scan->end = p;
    } else {
        scan->at = place_next(scan->table, p);
    }
    *key_out = found->key;
    *value_out = found->value;
    return true;
}

static void memory_scan_seek(store_scan *base, slice key, bool backward) {
    memory_scan *scan = (memory_scan *)base;
    place at = lower_bound(scan->table, key);
    at = is_before(at, scan->first) ? scan->first : is_before(scan->last, at) ? scan->last : at;
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

static const store_snapshot *memory_snapshot_take(store *s, bool in_memory) {
    (void)in_memory; /* all is */
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
    (void)s, (void)family, (void)from, (void)to; /* deleted nodes are freed at once */
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
