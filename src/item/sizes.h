/* sizes.h — how much each logical partition holds: counted exactly, in an entry of its own that is written with every write of the
 * partition. It comes with the first item and goes with the last.
 *
 * From these entries a split knows where half of the data is, and what each new range will hold: it walks them in a snapshot while writes
 * go on, and a *watch* on the range counts what changes after that snapshot. */
#pragma once

#include "item/layout.h"

typedef struct items items;

/* Of one logical partition, or of many together. */
typedef struct size_sum {
    uint64_t items, bytes, index_bytes, partitions;
    /* of one partition, not summed up: its items up to this number, and those from that one on (0: none), have index entries of their own
     * (item/terms.h) */
    uint64_t local, local_from;
} size_sum;

/* What becomes of ranges that lie side by side: pieces [from, cuts[0]), [cuts[0], cuts[1]), … up to `to`. */
typedef struct size_pieces {
    uint32_t container;
    epk from, to;
    const epk *cuts;
    uint32_t n; /* pieces: one more than cuts */
} size_pieces;

/* Walks the partitions of [pieces->from, pieces->to) and finds where to cut it into `pieces->n` of about the same weight in bytes; `total`
 * is their sum. Writes at most n - 1 cuts in the service's shape and says how many: fewer if there are too few partitions. */
MUST_CHECK err item_sizes_cut(store *s, const pkey_definition *key, const size_pieces *pieces, uint64_t total, epk *cuts, uint32_t *cuts_n);

/* What each piece held when the snapshot was taken. */
MUST_CHECK err item_sizes_sum(store *s, const store_snapshot *at, const size_pieces *pieces, size_sum *sums);

/* Visits the partitions of [from, to), in EPK order; the visitor returns false to stop. */
typedef bool (*size_visit)(void *context, const epk *e, slice key, const size_sum *size);
MUST_CHECK err item_sizes_each(store *s, const store_snapshot *at, const size_pieces *pieces, size_visit visit, void *context);

/* ---- watching: the committer's thread ---- */

struct range_watch {
    size_pieces pieces;
    size_sum *pending; /* changes by this group, per piece; they wrap around below zero */
    size_sum *written; /* changes since the watch began */
    err code;          /* a change could not be counted */
};

range_watch *range_watch_new(const size_pieces *pieces);
void range_watch_free(range_watch *watch);
void range_watch_count(range_watch *watch, commit_group *group); /* before a group is written */
void range_watch_end(range_watch *watch, err code);              /* and after */
