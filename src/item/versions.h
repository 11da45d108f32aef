/* versions.h — the log of versions: every create, replace and delete of a container's items, in order, for as long as its change feed
 * policy says. A container without such a policy has no log and pays nothing.
 *
 * A version is written with the item, in the same batch, under the segment that its range has at the time and the range's lsn. A segment's
 * *head* says what part of the hash space that range had. Splits and merges move nothing: who reads a part of the hash space merges the
 * segments whose heads overlap it, by lsn. A range made of others goes on with the highest of their lsns, so the versions of one key come
 * in order through all of them.
 *
 * What is too old goes by runs of keys. A head's *floor* says up to where versions are missing: who stands below it is told so, rather than
 * given less than there was. */
#pragma once

#include "item/item.h"

static inline bool item_versions_kept(const container *c) {
    return atomic_load_explicit(&c->space->version_minutes, memory_order_acquire) > 0;
}

/* ---- reading ---- */

typedef struct logged_version {
    log_entry entry;
    uint64_t lsn;
    item_head head; /* of the item as it is now; of a delete, as it was */
    slice body;
} logged_version;

/* False: the page is full, and this one not in it. One with the lsn of the one before it must be taken. */
typedef bool (*version_visit)(void *context, const logged_version *version);

/* As item_changes_read, but every version and delete, from a place in the log or from now on: `since_s` is not looked at. E_BAD_REQUEST
 * with a sentence: the container keeps no versions, or some of those after that place are gone. */
MUST_CHECK err item_versions_read(const items *s, op *o, container *c, item_changes *changes, version_visit visit, void *context,
                                  item_mark *mark_out);

/* ---- turning on and off; committer's thread, in a commit of its own ---- */

void item_versions_start(commit_group *group, const container *c, const home *home); /* of its ranges there, from here on */
void item_versions_drop(store_batch *batch, const container *c);
void item_versions_reclaim(const container *c, const home *home); /* after it was dropped and written so, before it may start again */

/* ---- retention ---- */

bool item_trim_due(const container *c, int64_t now_s);

/* Removes a part of what is too old by a commit of its own. `in_flight` is counted down when it has ended. */
void item_trim(const items *s, container *c, atomic_uint *in_flight);
