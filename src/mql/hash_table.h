/* hash_table.h — within mql/: a hash table from bytes to a small number, for groups and joins.
 *
 * The keys are chosen by clients, so the hash is keyed (base/keyed_hash.h); equal hashes are told apart by the bytes. Memory is counted;
 * entries cannot be removed one by one. */
#pragma once

#include "base/arena.h"

typedef struct mql__table {
    arena *arena; /* for keys and entries */
    struct mql__entry *entries;
    uint32_t *heads; /* first entry of each chain, plus 1; 0: empty */
    uint32_t n, room, heads_n;
} mql__table;

/* The arena must be counted, and must not be released to an earlier mark. */
void mql__table_init(mql__table *t, arena *a);
/* The entry of the key, which is added if there is none. Entries are numbered from 0 in the order in which they were added. */
MUST_CHECK err mql__table_put(mql__table *t, slice key, uint32_t *entry_out, bool *added_out);
bool mql__table_find(const mql__table *t, slice key, uint32_t *entry_out);
