/* stored.h — within item/: an item as the committer handles it, and the entries that go with it. Committer's thread. */
#pragma once

#include "item/item.h"
#include "item/sizes.h"

/* An item as it is now, the group's changes included. */
typedef struct stored_item {
    bool there;
    item_place place;
    item_head head;
    slice body;
    store_value pin; /* of body, if the store holds it */
} stored_item;

/* What a write works on. */
typedef struct item_work {
    const items *items;
    home *home; /* whose committer works */
    commit_group *group;
    item_commit *commit; /* a request's, and its operation that is applied now; otherwise NULL */
    item_op *op;
    container *container;
    container_part *part;         /* of the container in that home */
    const container_tiles *tiles; /* the newest, as far as that home is concerned */
    container_range *range;
    size_sum size;           /* of the logical partition, loaded before its items are changed */
    const item_key *spelled; /* whose primary key and size entry these two are; NULL: nobody's */
    const layout_key *primary_key, *size_key;
    arena *arena; /* for bytes that outlive the group */
    int64_t now_s;
    size_t result_bytes; /* of the request's operations so far */
} item_work;

MUST_CHECK err item__load(const item_work *w, const item_key *key, stored_item *stored_out);
MUST_CHECK err item__load_place(const item_work *w, item_place place, stored_item *stored_out);

/* The key that an item has by its body. It points into the body, or lives in `a`. */
MUST_CHECK err item__key_of(const container *c, arena *a, slice body, item_key *key_out);

/* Sets w->range and w->size to those of a key: to be called before the first change of its partition. */
MUST_CHECK err item__enter(item_work *w, const item_key *key);
MUST_CHECK err item__enter_range(item_work *w, const item_key *key); /* w->range is set already */

/* Spells the keys of an item once for all that follows, until w->spelled is NULL again. They are kept in `primary` and `size`. */
void item__spell_keys(item_work *w, const item_key *key, layout_key *primary, layout_key *size);

/* Puts an item and all entries that lead to it; `before` is the one it takes the place of, or has there false. What fails leaves some of
 * its changes in the batch: the caller cuts them, or its commit fails. */
MUST_CHECK err item__put(item_work *w, const item_key *key, item_place place, const item_head *head, slice body, const stored_item *before);
/* Takes an lsn, as every change does. `expired`: by its ttl, not by somebody's wish. */
MUST_CHECK err item__remove(item_work *w, const item_key *key, const stored_item *stored, bool expired);

/* Changes what the partition, and its range, are counted to hold. */
void item__count_bytes(item_work *w, const item_key *key, int64_t bytes);

/* A logical partition that is full takes nothing more; what is there may be read, deleted and made smaller. */
MUST_CHECK err item__check_room(item_work *w, op *o, size_t before, size_t after);

/* What hangs on an item that goes (item/attach.c). */
MUST_CHECK err item__remove_attachments(item_work *w, const item_key *key, uint64_t number);

/* The same item, its entries leading to another segment. */
MUST_CHECK err item__move(item_work *w, const item_key *key, const stored_item *stored, uint32_t segment);

/* Unique keys: E_UNIQUE_KEY if another item of the partition has the same values. `self` is the item's own number, or 0. */
MUST_CHECK err item__unique_check(item_work *w, const item_key *key, slice body, uint64_t self);
size_t item__unique_put(const item_work *w, const item_key *key, slice body, item_place place); /* the bytes of the entries */
size_t item__unique_remove(const item_work *w, const item_key *key, slice body);

/* The log of versions (item/versions.h), if there is one. */
MUST_CHECK err item__log_put(item_work *w, const item_key *key, const item_head *head, slice body, const stored_item *before);
MUST_CHECK err item__log_remove(item_work *w, const item_key *key, const stored_item *stored, bool expired, uint64_t lsn);

/* The expiry entry that an item of this head has; false if none. */
bool item__expiry_key(const container *c, const container_part *part, item_place place, const item_head *head, layout_key *k);
