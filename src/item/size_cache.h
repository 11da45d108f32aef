/* size_cache.h — the size entries of logical partitions that were written recently, in memory: the committer reads the entry of a partition
 * before it writes to it, and partitions in use are written again soon.
 *
 * A table of fixed size; an entry has few slots, and replaces the one of them that was written longest ago. It is never older than the
 * store: an entry that a group writes is unknown until the group is written. Committer's thread only. */
#pragma once

#include "item/layout.h"

typedef struct size_cache size_cache;

size_cache *size_cache_open(size_t bytes_max);
void size_cache_close(size_cache *c);

/* False: not known. Otherwise the entry's value, empty if the partition has no entry; valid until the next call. */
bool size_cache_find(const size_cache *c, slice entry, slice *value_out);

/* Within apply: the group puts or deletes this entry. */
void size_cache_written(size_cache *c, commit_group *group, slice entry);
