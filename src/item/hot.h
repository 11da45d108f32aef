/* hot.h — the hottest and the largest logical partitions of a range: requests and writes feed the range's sketch (throughput/hotkeys.h);
 * before sizes are shown, its list of the largest is completed and corrected here.
 *
 * Each write reports the partition's size to the sketch before its group is on disk, and the sketch knows nothing of partitions that were
 * not written since the server started. So code that shows sizes first seeds the sketch from the partitions' size entries
 * (item/logical_size.h), and then looks up the partitions that the sketch names. The sketch only selects candidates; the entries hold the
 * true sizes. */
#pragma once

#include "item/item.h"

/* ---- feeding: within item/, any thread ---- */

void item__note_spent(container_range *range, const item_key *key, double ru, int64_t now_ns);
void item__note_size(container_range *range, const item_key *key, uint64_t bytes); /* 0: the partition was removed */

/* After a split or a merge: copies the recent consumption of those keys of `from` that now belong to the range at `position` of the new
 * tiles. Keys that are too long for the sketch start from zero. */
void item_hot_copy_usage(const container *c, const container_tiles *tiles, size_t position, container_range *from, int64_t now_ns);

/* ---- showing: on a thread that may block ---- */

/* For the range at `position` of the container (item/range_info.h). */
bool item_hot_sizes_known(const container *c, size_t position); /* the sketch was seeded, and has seen all writes since */

/* Progress of seeding one range. Zeroed: not begun. */
typedef struct hot_seeding {
    bool begun;
    epk next;
} hot_seeding;

/* Continues seeding the sketch until `until_us` (monotonic) at the latest. *ended_out: seeding is complete. One thread at a time per
 * range. */
MUST_CHECK err item_hot_seed(const items *s, const container *c, size_t position, hot_seeding *seeding, int64_t until_us, bool *ended_out);

typedef struct hot_size {
    hotkey key;
    size_sum size;
    bool exact; /* looked up in the store. False if the key is too long for the sketch: then only `bytes` is set, as of the last write */
} hot_size;

/* Finds the largest partitions, largest first. *n_out: how many. */
MUST_CHECK err item_hot_sizes(const container *c, size_t position, hot_size top[HOTKEYS_TOP], size_t *n_out);
