#include "query/distinct.h"

#include <stdlib.h>

static size_t slot_of(const query_distinct *d, const query_value *v, uint64_t hash) {
    size_t mask = d->cap * 2 - 1, at = hash & mask;
    while (d->buckets[at] && !value_same(&d->values[d->buckets[at] - 1], v)) {
        at = (at + 1) & mask;
    }
    return at;
}

static bool grow(query_distinct *d) {
    size_t cap = d->cap ? d->cap * 4 : 16;
    if (!arena_fits(d->keep, cap * (sizeof *d->values + 2 * sizeof *d->buckets))) {
        return false;
    }
    d->seed = (uintptr_t)d->keep;
    query_value *values = arena_array(d->keep, query_value, cap);
    memcpy(values, d->n ? (const void *)d->values : "", d->n * sizeof *values);
    d->values = values;
    d->cap = cap;
    d->buckets = arena_array(d->keep, uint64_t, cap * 2);
    for (size_t i = 0; i < d->n; i++) {
        d->buckets[slot_of(d, &values[i], value_hash(&values[i], d->seed))] = i + 1;
    }
    return true;
}

bool query_distinct_add(query_distinct *d, const query_value *v) {
    if (d->n == d->cap && !grow(d)) {
        return false;
    }
    size_t at = slot_of(d, v, value_hash(v, d->seed));
    if (d->buckets[at]) {
        return false;
    }
    d->values[d->n] = value_keep(d->keep, v);
    d->buckets[at] = ++d->n;
    return true;
}

static int by_value(const void *a, const void *b) {
    return value_compare(a, b);
}

void query_distinct_cut(query_distinct *d, size_t n) {
    arena before = *d->keep;
    query_distinct cut = {.keep = d->keep};
    *d->keep = arena_init_counted(before.budget);
    qsort(d->values, d->n, sizeof *d->values, by_value);
    for (size_t i = 0; i < d->n && i < n; i++) {
        query_distinct_add(&cut, &d->values[i]);
    }
    *d = cut;
    arena_free(&before);
}

/* ---- counting keys ---- */

static bool put_hash(query_key_count *c, uint64_t hash) {
    size_t mask = c->cap - 1, at = hash & mask;
    while (c->table[at] && c->table[at] != hash) {
        at = (at + 1) & mask;
    }
    bool added = !c->table[at];
    c->table[at] = hash;
    return added;
}

static bool grow_count(query_key_count *c) {
    query_key_count before = *c;
    size_t cap = before.cap ? before.cap * 4 : 1024;
    if (!arena_fits(c->keep, cap * sizeof *c->table)) {
        return false;
    }
    c->cap = cap;
    c->table = arena_array(c->keep, uint64_t, c->cap);
    for (size_t i = 0; i < before.cap; i++) {
        if (before.table[i]) {
            put_hash(c, before.table[i]);
        }
    }
    return true;
}

bool query_key_count_add(query_key_count *c, const query_value *key, size_t values_n) {
    uint64_t hash = 0;
    for (size_t i = 0; i < values_n; i++) {
        hash = value_hash(&key[i], hash + i);
    }
    if (2 * c->n >= c->cap && !grow_count(c)) {
        return false;
    }
    bool added = put_hash(c, hash ? hash : 1);
    c->n += added;
    return added;
}
