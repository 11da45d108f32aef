/* hot.h — the hottest and the largest logical partitions of a range: how requests and writes feed its sketch (throughput/hotkeys.h), and
 * how the sketch's list of the largest is made whole and exact for those who show it.
 *
 * By size, the sketch is told of a partition with each of its writes, before the group that holds the write is on disk, and knows nothing
 * of partitions that were not written since the server started. So whoever shows sizes first seeds the sketch from the partitions' own
 * entries (item/sizes.h), and then looks up those that it names: what it says is a choice of candidates, what the entries say is true. */
#pragma once

#include "item/item.h"

/* ---- feeding: within item/, any thread ---- */

void item__spent(container_range *range, const item_key *key, double ru, int64_t now_ns);
void item__sized(container_range *range, const item_key *key, uint64_t bytes); /* 0: the partition is gone */

/* After a split or a merge: what the keys of `from` have lately spent goes on in the range at `position` of the new tiles, if they are its
 * keys now. Keys that are too long for the sketch begin anew. */
void item_hot_inherit(const container *c, const container_tiles *tiles, size_t position, container_range *from, int64_t now_ns);

/* ---- showing: a thread that may wait ---- */

/* Of the range at `position` of the container (item/range_info.h). */
bool item_hot_sizes_known(const container *c, size_t position); /* its sketch was seeded, and has been fed ever since */

/* Where the seeding of one range stands. Zeroed: not begun. */
typedef struct hot_seeding {
    bool begun;
    epk next;
} hot_seeding;

/* Seeds the sketch, from where it stands, until `until_us` (monotonic) at the latest; *ended_out says that it is done. One thread at a time
 * for a range. */
MUST_CHECK err item_hot_seed(const items *s, const container *c, size_t position, hot_seeding *seeding, int64_t until_us, bool *ended_out);

typedef struct hot_size {
    hotkey key;
    size_sum size;
    bool exact; /* looked up; not if the key is too long for the sketch: then only `bytes` is there, as it was at the last write */
} hot_size;

/* The largest partitions, largest first; returns how many. */
MUST_CHECK err item_hot_sizes(const container *c, size_t position, hot_size top[HOTKEYS_TOP], size_t *n_out);
