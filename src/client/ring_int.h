/* ring_int.h — the state of a ring that can change, and what clients and the manager do with it.
 *
 *   phase     reads of a key that moves        its writes                 the manager
 *   stable    current                          current                    —
 *   prepare   current, then next               current                    waits until every client reads both
 *   hold      current, then next               wait for the next phase    waits until no client writes to current
 *   move      current, then next               next, after moving it      moves items, container after container
 *   settle    next                             next                       waits, then removes the marks of deletes
 *
 * "Then" matters: an item is created in its next container before it is deleted in its current one, so that a reader of both, in this
 * order, finds it in one of them. What is in next wins. A key that stays is always read and written in current, which is its next too.
 *
 * Moving one item, by whomever and however often: read it in current; create it in next, where an item or a mark that is there already
 * stays; delete it in current if it has not changed. Deletes in `move` leave a mark in next, an item with its id, its key and
 * "_tesela_deleted", so a mover that has read the item before cannot bring it back. */
#pragma once

#include "base/arena.h"
#include "client/hash_ring.h"
#include "client/through.h"

typedef enum ring_phase { RING_STABLE, RING_PREPARE, RING_HOLD, RING_MOVE, RING_SETTLE } ring_phase;

typedef struct ring_state {
    atomic_uint references;
    ring_phase phase;
    bool unavailable;
    char *database, *key_path;
    uint32_t refresh_ms, request_ms;
    uint64_t epoch;
    hash_ring *current, *next; /* next: NULL in `stable` */
    char *etag;
    int64_t read_us;
} ring_state;

extern const char *const client__ring_phases[];

/* Reads the state from its item. */
tesela_status client__ring_read(tesela_container *states, const char *name, const tesela_hash_options *hash, ring_state **out,
                                tesela_error *error);
void client__ring_give(ring_state *s);
void client__ring_write(const ring_state *s, const char *name, buf *out);

/* Moves one item from its current container to its next one; both may be as if it had been moved before. *moved_out, which may be NULL:
 * whether it was this call. */
tesela_status client__ring_move(tesela_container *from, tesela_container *to, const char *id, const tesela_key *key, bool *moved_out,
                                tesela_error *error);

/* The id and partition key of an item of a container. Texts live in `memory`. */
tesela_status client__item_name(tesela_container *k, slice item, arena *memory, char **id_out, tesela_key *key_out, tesela_error *error);

bool client__ring_is_mark(slice item);
