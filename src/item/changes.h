/* changes.h — within item/: maintaining the order of changes. Committer's thread.
 *
 * Every item has two entries keyed by the lsn of its last write, one in its segment and one in its logical partition, whatever the indexing
 * policy. item_changes_read (item.h) reads them. */
#pragma once

#include "item/stored.h"

/* `before` is the item being replaced; before->there is false if none is. */
void item__put_change(const item_work *w, const item_key *key, item_place place, const item_head *head, const stored_item *before);
void item__remove_change(const item_work *w, const item_key *key, const stored_item *stored);
void item__move_change(const item_work *w, const item_key *key, const stored_item *stored, uint32_t segment);
