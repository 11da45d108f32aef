/* versions.h — the log of versions: every create, replace and delete of a container's items, in order, for as long as its change feed
 * policy says. A container without such a policy has no log and no cost.
 *
 * A version is written in the same batch as the item, keyed by its range's current segment and lsn. A segment's *head* records which part
 * of the hash space that range had. Splits and merges move nothing: a reader of a part of the hash space merges, by lsn, the segments whose
 * heads overlap it. A merged range continues with the highest lsn of its parents, so the versions of one key stay in order across segments.
 *
 * Old versions are removed by key range. A head's *floor* is the lsn up to which versions are missing: a reader below it gets an error
 * rather than an incomplete result. */
#pragma once

#include "item/item.h"

static inline bool item_versions_kept(const container *c) {
    return atomic_load_explicit(&c->space->version_minutes, memory_order_acquire) > 0;
}

/* ---- reading ---- */

typedef struct logged_version {
    log_entry entry;
    uint64_t lsn;
    uint32_t segment; /* versions of one lsn come in the order of segment and place */
    uint16_t place;
    item_head head; /* head of the item after the write; for a delete, of the deleted item */
    slice body;
    slice note; /* the note of the edit that made it: BSON, or empty */
} logged_version;

/* False: the page is full; this version is not part of it. A version with the same lsn as the previous one must be accepted. */
typedef bool (*version_visit)(void *context, const logged_version *version);

/* Like item_changes_read, but returns every version and delete, from an lsn on or from now on; `since_s` is ignored. E_BAD_REQUEST with an
 * error text: the container keeps no versions, or some after that lsn have been removed. */
MUST_CHECK err item_versions_read(const items *s, op *o, container *c, item_changes *changes, version_visit visit, void *context,
                                  item_mark *mark_out);

/* ---- turning on and off; committer's thread, in a commit of its own ---- */

void item_versions_start(commit_group *group, const container *c, const home *home); /* starts the log of its ranges there */
void item_versions_drop(store_batch *batch, uint32_t container);
void item_versions_reclaim(const container *c, const home *home); /* after a drop was written, and before a log may start again */

/* ---- retention ---- */

bool item_trim_due(const container *c, int64_t now_s);

/* Removes some of the versions that are past their retention, by a commit of its own. Decrements `in_flight` when the commit has ended. */
void item_trim(const items *s, container *c, atomic_uint *in_flight);
