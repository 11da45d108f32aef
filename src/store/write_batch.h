/* write_batch.h — a list of changes that a store applies atomically.
 *
 * A batch can be searched for a key, so that the operations of one group commit see the ones before them. It can be cut back to a mark, so
 * that an operation that fails leaves no changes. Later changes of a key win. One thread. */
#pragma once

#include "base/arena.h"

typedef enum store_family {
    STORE_META,     /* databases, containers, offers, range states, the format's version */
    STORE_ITEMS,    /* items by segment and document number */
    STORE_INDEX,    /* small keys that point to items: primary keys, order within a partition, unique keys, expiry */
    STORE_TERMS,    /* the index: paths and values that point to items */
    STORE_VERSIONS, /* every change of the items of some containers, in order */
    STORE_FAMILIES
} store_family;

/* What a batch does to the space on disk. The fuller the disk, the fewer uses are accepted (store_has_room). If a use is accepted, so are
 * those below it in this list. */
typedef enum store_use {
    STORE_GROWS, /* any other write */
    STORE_FREES, /* deletes items: writes a little now, and compaction frees much more */
    STORE_DROPS, /* deletes a container or a database: writes a few hundred bytes, and whole files are deleted at once */
    STORE_READS  /* writes nothing */
} store_use;

typedef enum store_change_kind { STORE_PUT, STORE_DELETE, STORE_DELETE_RANGE } store_change_kind;

typedef struct store_change {
    store_change_kind kind;
    store_family family;
    slice key;      /* for a range: its first key */
    slice value;    /* for a range: the first key after it */
    uint32_t older; /* index + 1 of the next older change in the same hash chain; 0: none; UINT32_MAX: it is in no chain */
    uint32_t hash;
} store_change;

typedef struct store_batch {
    store_change *changes;
    size_t n;
    size_t cap;
    uint32_t *buckets; /* index + 1 of the newest change in each chain */
    size_t buckets_n;  /* a power of two */
    store_use use;     /* the lowest use of its commits; STORE_GROWS by default */
    size_t bytes;      /* size of keys and values */
    size_t bytes_held; /* the same, including cut changes, whose memory is held until the batch is cleared */
    arena arena;
} store_batch;

void store_batch_init(store_batch *b);
void store_batch_free(store_batch *b);
void store_batch_clear(store_batch *b); /* keeps its memory for the next group */

/* Keys and values are copied. */
void store_put(store_batch *b, store_family family, slice key, slice value);
void store_delete(store_batch *b, store_family family, slice key);
void store_delete_range(store_batch *b, store_family family, slice from, slice to);

/* The same, cheaper, for keys without a value that store_batch_find is never asked for: most index entries. */
void store_put_unsought(store_batch *b, store_family family, slice key);
void store_delete_unsought(store_batch *b, store_family family, slice key);

/* Like store_put, but returns the value's `n` bytes for the caller to fill in, which saves a copy. */
char *store_put_space(store_batch *b, store_family family, slice key, size_t n);

/* The newest put or delete of a key, or NULL. Range deletions are ignored: they delete whole containers, whose items no later operation of
 * the group can reach. */
const store_change *store_batch_find(const store_batch *b, store_family family, slice key);

typedef size_t store_mark;
static inline store_mark store_batch_mark(const store_batch *b) {
    return b->n;
}
void store_batch_cut(store_batch *b, store_mark mark); /* discards all changes since the mark */
