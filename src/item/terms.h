/* terms.h — within item/: the index entries of items. Committer's thread.
 *
 * Each term of an item (index/terms.h) has an entry in its segment: path, value, number. Queries over a range walk the entries of its
 * segments. Within a logical partition that would pay for all the others, so one that has grown past LOCAL_FROM items gets entries of its
 * own beside them, *local* ones: new items at once, those of before with the writes that follow, a few at a time (size_sum says which have
 * them). Smaller ones are read whole. */
#pragma once

#include "item/stored.h"

/* Before the commit, on any thread: the terms of a body that is to be written, kept with the operation. The one part of this header that is
 * not the committer's. */
void item__list_ahead(const container *c, item_op *op, slice body);

/* What a home's committer lists terms with. */
item_lists *item_lists_new(void);
void item_lists_free(item_lists *lists);

enum { LOCAL_FROM = 128, LOCAL_STEP = 8 };
#define LOCAL_ALL UINT64_MAX

/* The entries of an item that is written; `before` is the one it takes the place of, or has there false. Changes w->size.local. */
MUST_CHECK err item__put_terms(item_work *w, const item_key *key, item_place place, const item_head *head, slice body,
                               const stored_item *before);
MUST_CHECK err item__remove_terms(item_work *w, const item_key *key, const stored_item *stored);
MUST_CHECK err item__move_terms(item_work *w, const stored_item *stored, uint32_t segment);

/* The entries of an item in an index that is being built; `size` is of its partition. */
MUST_CHECK err item__build_terms(item_work *w, container_index *index, const item_key *key, const stored_item *stored);
