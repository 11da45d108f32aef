/* index_entries.h — within item/: the index entries of items. Committer's thread.
 *
 * Each term of an item (index/terms.h) has an entry in the item's segment: path, value, number. Queries over a range scan the entries of
 * its segments. For a query within one logical partition, that would scan the entries of all the others. So a partition that has grown past
 * LOCAL_FROM items gets additional entries of its own, *local* ones: new items at once, existing items a few with each following write
 * (size_sum says which items have them). Queries read smaller partitions whole. */
#pragma once

#include "item/stored.h"

/* Before the commit, on any thread: lists the terms of a body to be written, and keeps them with the operation. The only function here that
 * does not belong to the committer's thread. */
void item__list_ahead(const container *c, item_op *op, slice body);

/* The scratch lists that a home's committer collects terms in. */
item_lists *item_lists_new(void);
void item_lists_free(item_lists *lists);

enum { LOCAL_FROM = 128, LOCAL_STEP = 8 };
#define LOCAL_ALL UINT64_MAX

/* Writes the entries of an item. `before` is the item being replaced; before->there is false if none is. May change w->size.local and
 * w->size.local_from. */
MUST_CHECK err item__put_terms(item_work *w, const item_key *key, item_place place, const item_head *head, slice body,
                               const stored_item *before);
MUST_CHECK err item__remove_terms(item_work *w, const item_key *key, const stored_item *stored);
MUST_CHECK err item__move_terms(item_work *w, const stored_item *stored, uint32_t segment);

/* Writes the entries of an item in an index that is being built; w->size is of its partition. */
MUST_CHECK err item__build_terms(item_work *w, container_index *index, const item_key *key, const stored_item *stored);
