/* store_joined.h — for tests of an account on two stores: a read-mostly view of both as one. A key that both have appears once, with the
 * first store's value; the key that identifies a store ('H') is hidden. A write, which tests use to damage data, goes to the store that has
 * the key, or to both. Scans go forward. */
#pragma once

#include <stdlib.h>

#include "base/memory.h"
#include "store/store.h"

enum { JOINED = 2 };

typedef struct joined_store {
    store base;
    store *each[JOINED];
} joined_store;

typedef struct joined_scan {
    store_scan base;
    store_scan *each[JOINED];
    slice keys[JOINED], values[JOINED];
    bool live[JOINED], begun;
    size_t last; /* store of the last entry returned; JOINED: both */
} joined_scan;

static inline err joined_get(store *s, store_family family, const store_snapshot *at, slice key, store_value *value_out) {
    joined_store *j = (joined_store *)s;
    (void)at; /* tests read the current state only */
    err code = store_get(j->each[0], family, NULL, key, value_out);
    return code == E_NOT_FOUND ? store_get(j->each[1], family, NULL, key, value_out) : code;
}

static inline bool joined_has(store *s, store_family family, slice key) {
    store_value value;
    bool has = store_get(s, family, NULL, key, &value) == OK;
    store_give(&value);
    return has;
}

static inline err joined_write(store *s, const store_batch *batch) {
    joined_store *j = (joined_store *)s;
    for (size_t i = 0; i < batch->n; i++) {
        const store_change *c = &batch->changes[i];
        bool first = joined_has(j->each[0], c->family, c->key), second = joined_has(j->each[1], c->family, c->key);
        store_batch one;
        store_batch_init(&one);
        if (c->kind == STORE_PUT) {
            store_put(&one, c->family, c->key, c->value);
        } else {
            store_delete(&one, c->family, c->key);
        }
        err code = first || !second ? store_write(j->each[0], &one) : OK;
        code = code == OK && (second || !first) ? store_write(j->each[1], &one) : code;
        store_batch_free(&one);
        if (code != OK) {
            return code;
        }
    }
    return OK;
}

static inline store_scan *joined_scan_open(store *s, store_family family, const store_snapshot *at, slice from, slice to, bool backward) {
    joined_store *j = (joined_store *)s;
    joined_scan *scan = mem_zero(sizeof *scan);
    (void)at, (void)backward;
    scan->base.owner = s;
    for (size_t i = 0; i < JOINED; i++) {
        scan->each[i] = store_scan_open(j->each[i], family, NULL, from, to, false);
    }
    return &scan->base;
}

static inline bool joined_scan_step(store_scan *base, slice *key_out, slice *value_out) {
    joined_scan *s = (joined_scan *)base;
    for (size_t i = 0; i < JOINED; i++) {
        if (!s->begun || s->last == i || s->last == JOINED) {
            s->live[i] = store_scan_next(s->each[i], &s->keys[i], &s->values[i]);
        }
    }
    s->begun = true;
    if (!s->live[0] && !s->live[1]) {
        return false;
    }
    int order = !s->live[0] ? 1 : !s->live[1] ? -1 : slice_cmp(s->keys[0], s->keys[1]);
    s->last = order == 0 ? JOINED : order > 0;
    *key_out = s->keys[order > 0];
    *value_out = s->values[order > 0];
    return true;
}

static inline bool joined_scan_next(store_scan *base, slice *key_out, slice *value_out) {
    bool more = joined_scan_step(base, key_out, value_out);
    return more && slice_eq(*key_out, SLICE_LIT("H")) ? joined_scan_step(base, key_out, value_out) : more;
}

static inline err joined_scan_close(store_scan *base) {
    joined_scan *s = (joined_scan *)base;
    err first = store_scan_close(s->each[0]), second = store_scan_close(s->each[1]);
    free(s);
    return first != OK ? first : second;
}

static inline const store_snapshot *joined_snapshot_take(store *s, bool in_memory) {
    (void)s, (void)in_memory;
    return NULL;
}

static inline void joined_snapshot_give(store *s, const store_snapshot *snapshot) {
    (void)s, (void)snapshot;
}

static inline void joined_close(store *s) {
    joined_store *j = (joined_store *)s;
    store_close(j->each[0]);
    store_close(j->each[1]);
    free(j);
}

static inline store *store_open_joined(store *first, store *second) {
    static const store_ops ops = {
        .name = "joined",
        .close = joined_close,
        .get = joined_get,
        .write = joined_write,
        .scan_open = joined_scan_open,
        .scan_next = joined_scan_next,
        .scan_close = joined_scan_close,
        .snapshot_take = joined_snapshot_take,
        .snapshot_give = joined_snapshot_give,
    };
    joined_store *j = mem_zero(sizeof *j);
    *j = (joined_store){.base = {.ops = &ops}, .each = {first, second}};
    return &j->base;
}
