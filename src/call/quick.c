/* quick.c — which queries are worth a try on the loop.
 *
 * A try that gives up has read dozens of index entries for nothing. So a query that has given up three times in a row goes straight to a
 * worker, and only its 16th request is tried again. Queries are known by a hash of their text and container: two with the same hash share a
 * slot, which affects only where their pages run. */
#include "base/hash.h"
#include "call/call_int.h"

enum { SLOTS = 4096, GIVEN_UP = 3, NEXT_TRY = GIVEN_UP + 15 };

/* Below GIVEN_UP: the number of tries that gave up in a row. From GIVEN_UP on it also counts the requests since the last try. */
static _Atomic uint8_t slots[SLOTS];

static _Atomic uint8_t *slot_of(uint64_t container, slice text) {
    return &slots[hash_bytes(text, container) % SLOTS];
}

bool call__worth_a_try(uint64_t container, slice text) {
    _Atomic uint8_t *slot = slot_of(container, text);
    uint8_t n = atomic_load_explicit(slot, memory_order_relaxed);
    if (n < GIVEN_UP) {
        return true;
    }
    atomic_store_explicit(slot, n == NEXT_TRY ? GIVEN_UP - 1 : n + 1, memory_order_relaxed); /* a lost update does no harm */
    return n == NEXT_TRY;
}

void call__tried(uint64_t container, slice text, bool gave_up) {
    _Atomic uint8_t *slot = slot_of(container, text);
    uint8_t n = atomic_load_explicit(slot, memory_order_relaxed), next = !gave_up ? 0 : n < GIVEN_UP ? n + 1 : n;
    if (next != n) {
        atomic_store_explicit(slot, next, memory_order_relaxed);
    }
}
