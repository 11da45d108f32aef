/* batch_order.h — sorts changes of a batch by key. Keys of one family mostly begin alike, in a few ways, so whole keys are hardly ever
 * compared: only eight bytes at a time, as a number, after what the keys have in common. */
#pragma once

#include "store/write_batch.h"

typedef struct batch_point {
    uint64_t head; /* while sorting: eight bytes of the key. Afterwards: equal for equal keys */
    uint32_t index;
} batch_point;

/* Sorts the changes whose indexes are in `list`; they ascend. Changes of the same key stay in their order. `spare` has room for `n`, too.
 */
void store_batch_order(const store_change *changes, batch_point *list, batch_point *spare, size_t n);

/* Whether the change at `i` of a sorted list is the last of its key. */
static inline bool store_batch_is_last(const store_change *changes, const batch_point *list, size_t n, size_t i) {
    return i + 1 == n || list[i].head != list[i + 1].head || !slice_eq(changes[list[i].index].key, changes[list[i + 1].index].key);
}
