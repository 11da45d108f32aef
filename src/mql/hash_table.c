/* hash_table.c — chained hashing; the chains are indexes into one array of entries. */
#include "mql/hash_table.h"

#include "base/keyed_hash.h"

typedef struct mql__entry {
    uint64_t hash;
    slice key;
    uint32_t next; /* entry + 1; 0: the chain ends */
} mql__entry;

void mql__table_init(mql__table *t, arena *a) {
    *t = (mql__table){.arena = a};
}

static bool find(const mql__table *t, uint64_t hash, slice key, uint32_t *entry_out) {
    if (t->heads_n == 0) {
        return false;
    }
    for (uint32_t at = t->heads[hash & (t->heads_n - 1)]; at; at = t->entries[at - 1].next) {
        if (t->entries[at - 1].hash == hash && slice_eq(t->entries[at - 1].key, key)) {
            *entry_out = at - 1;
            return true;
        }
    }
    return false;
}

bool mql__table_find(const mql__table *t, slice key, uint32_t *entry_out) {
    return find(t, keyed_hash_bytes(key, 0), key, entry_out);
}

static void link_entry(mql__table *t, uint32_t entry) {
    uint32_t *head = &t->heads[t->entries[entry].hash & (t->heads_n - 1)];
    t->entries[entry].next = *head;
    *head = entry + 1;
}

/* Twice the room. The old arrays stay in the arena, which at most doubles what they take. */
static err grow(mql__table *t) {
    uint32_t room = t->room ? 2 * t->room : 64;
    size_t bytes = room * (sizeof(mql__entry) + sizeof(uint32_t));
    if (room > UINT32_MAX / 4) {
        return E_MEMORY;
    }
    if (!arena_fits(t->arena, bytes)) {
        return budget_error(t->arena->budget);
    }
    mql__entry *entries = arena_array(t->arena, mql__entry, room);
    if (t->n) {
        memcpy(entries, t->entries, t->n * sizeof *entries);
    }
    t->entries = entries;
    t->heads = arena_array(t->arena, uint32_t, room);
    t->heads_n = t->room = room;
    for (uint32_t i = 0; i < t->n; i++) {
        link_entry(t, i);
    }
    return OK;
}

err mql__table_put(mql__table *t, slice key, uint32_t *entry_out, bool *added_out) {
    uint64_t hash = keyed_hash_bytes(key, 0);
    *added_out = false;
    if (find(t, hash, key, entry_out)) {
        return OK;
    }
    if (t->n == t->room) {
        TRY(grow(t));
    }
    if (!arena_fits(t->arena, key.n)) {
        return budget_error(t->arena->budget);
    }
    t->entries[t->n] = (mql__entry){hash, arena_copy(t->arena, key), 0};
    link_entry(t, t->n);
    *entry_out = t->n++;
    *added_out = true;
    return t->arena->budget ? budget_error(t->arena->budget) : OK;
}
