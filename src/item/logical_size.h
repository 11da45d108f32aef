/* logical_size.h — the exact size of each logical partition, in an entry that is updated with every write of the partition. The entry is
 * created with the first item and deleted with the last. A write that would exceed the limit is rejected (item__check_room in stored.h).
 *
 * A split uses these entries to find where half of the data is, and what each new range will hold: it scans them in a snapshot while writes
 * continue, and a *watch* on the range counts the changes after that snapshot. */
#pragma once

#include "item/layout.h"

typedef struct items items;

/* The size of one logical partition, or the sum of many. */
typedef struct size_sum {
    uint64_t items, bytes, index_bytes, partitions;
    /* Only for one partition, never summed: the items with numbers up to `local`, and from `local_from` on (0: none), have local index
     * entries (item/index_entries.h). */
    uint64_t local, local_from;
} size_sum;

/* How adjacent ranges are to be divided: into the pieces [from, cuts[0]), [cuts[0], cuts[1]), … up to `to`. */
typedef struct size_pieces {
    uint32_t container;
    epk from, to;
    const epk *cuts;
    uint32_t n; /* number of pieces: one more than cuts */
} size_pieces;

/* Scans the partitions of [pieces->from, pieces->to) and finds where to cut them into `pieces->n` pieces of about the same number of bytes;
 * `total` is their sum. Writes at most n - 1 cuts in the service's format, and their number to *cuts_n: fewer if there are too few
 * partitions. */
MUST_CHECK err item_sizes_cut(store *s, const pkey_definition *key, const size_pieces *pieces, uint64_t total, epk *cuts, uint32_t *cuts_n);

/* Sums up each piece as of the snapshot. */
MUST_CHECK err item_sizes_sum(store *s, const store_snapshot *at, const size_pieces *pieces, size_sum *sums);

/* Visits the partitions of [from, to) in EPK order. The visitor returns false to stop. */
typedef bool (*size_visit)(void *context, const epk *e, slice key, const size_sum *size);
MUST_CHECK err item_sizes_each(store *s, const store_snapshot *at, const size_pieces *pieces, size_visit visit, void *context);

/* ---- watching: the committer's thread ---- */

struct range_watch {
    size_pieces pieces;
    size_sum *pending; /* changes by the current group, per piece; negative ones wrap around */
    size_sum *written; /* changes since the watch began */
    err code;          /* not OK: a change could not be counted */
};

range_watch *range_watch_new(const size_pieces *pieces);
void range_watch_free(range_watch *watch);
void range_watch_count(range_watch *watch, commit_group *group); /* before a group is written */
void range_watch_end(range_watch *watch, err code);              /* after the group was written */
