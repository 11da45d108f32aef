/* changes.h — within item/: the order of changes. Committer's thread.
 *
 * Every item has two entries by its last write's lsn, one in its segment and one in its logical partition, whatever the indexing policy
 * says: they are kept here, with the item. Reading them is item.h's item_changes_read. */
#pragma once

#include "item/stored.h"

/* `before` is the item whose place it takes, or has there false. */
void item__put_change(const item_work *w, const item_key *key, item_place place, const item_head *head, const stored_item *before);
void item__remove_change(const item_work *w, const item_key *key, const stored_item *stored);
void item__move_change(const item_work *w, const item_key *key, const stored_item *stored, uint32_t segment);
