#include "query/distinct.h"

static size_t slot_of(const query_distinct *d, const query_value *v, uint64_t hash) {
    size_t mask = d->cap * 2 - 1, at = hash & mask;
    while (d->buckets[at] && !value_equal(&d->values[d->buckets[at] - 1], v)) {
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
